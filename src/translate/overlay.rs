//! Laying a new view over an old value: the `put` of a lens. What the source states wins; what it is silent about keeps
//! its old value; what neither has is made up as the shape says.

use super::error::kind_name;
use crate::json::raw::Kind;
use crate::json::{Object, Value};
use crate::plan::Key;

/// The old value cut down to the members that the target's type has; an absent or null one is empty. The error names the
/// kind of a value that is no object.
pub(super) fn cut(base: Option<Value>, fields: &[Key]) -> Result<Value, &'static str> {
    let mut members = match base {
        None | Some(Value::Null) => Object::new(),
        Some(Value::Object(members)) => members,
        Some(Value::Bool(_)) => return Err(kind_name(Kind::Bool)),
        Some(Value::Number(_)) => return Err(kind_name(Kind::Number)),
        Some(Value::String(_)) => return Err(kind_name(Kind::String)),
        Some(Value::Array(_)) => return Err(kind_name(Kind::Array)),
    };
    members.retain(|key, _| fields.iter().any(|field| key.is(&field.text)));
    Ok(Value::Object(members))
}

/// `stated`: what the shape makes of the source alone; `whole`: the same with all that it makes up.
pub(super) fn put(base: Value, stated: Value, whole: Value) -> Value {
    under(over(base, stated), whole)
}

/// `new` laid over `old`: objects member by member, anything else replaced. Nesting is bounded by the documents' limit.
fn over(old: Value, new: Value) -> Value {
    match (old, new) {
        (Value::Object(mut old), Value::Object(new)) => {
            for (key, value) in new {
                let merged = match old.get_mut(&key.decode()) {
                    Some(place) => over(place.take(), value),
                    None => value,
                };
                old.insert(key, merged);
            }
            Value::Object(old)
        }
        (_, new) => new,
    }
}

/// `value` with the members of `spare` that it does not have.
fn under(value: Value, spare: Value) -> Value {
    match (value, spare) {
        (Value::Object(mut members), Value::Object(spare)) => {
            for (key, value) in spare {
                match members.get_mut(&key.decode()) {
                    Some(place) => *place = under(place.take(), value),
                    None => {
                        members.insert(key, value);
                    }
                }
            }
            Value::Object(members)
        }
        (value, _) => value,
    }
}
