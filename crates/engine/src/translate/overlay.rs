//! Overlays a new view on an old value: the `put` of a lens. Values that the source states win;
//! members that it does not mention keep their old value; members that neither has get the shape's
//! defaults.
//!
//! Decision to know before editing: values are merged member by member only where the operation
//! composes an object of members. A value that the operation copies as a unit is replaced as a
//! unit, as is every list; otherwise an edit could never remove an element. Of a map, entries that
//! the source no longer names are removed. Members that the target type holds recursively are
//! replaced as a unit, too. If the operation writes no value because the source states an absence
//! (null where the other side omits the member, null for an object that is split up, or a type that
//! selects another place), the old value is removed.

use super::document::{Env, Walk, document, translate};
use super::error::{TranslateError, kind_name};
use switchback_json::raw::{self, Kind};
use switchback_json::{Limits, Object, Value};
use switchback_plan::convert::{Conversion, Yield};
use switchback_plan::{Captured, Close, CloseFrom, Key, MemberAction, ObjectOp, Others, ValueOp};

/// Reduces the old value to the members of the target type. An absent or null value yields an empty
/// object. The error is the name of a type other than object.
pub fn cut(base: Option<Value>, fields: &[Key]) -> Result<Value, &'static str> {
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

/// Overlays the translation of `source` on `base`. An error refers to `source`.
pub fn put(
    op: &ValueOp,
    source: &Value,
    mut base: Value,
    env: &Env<'_>,
    limits: &Limits,
) -> Result<Value, TranslateError> {
    let text = source.to_vec();
    // Translate twice: values from the source override the old value, whereas defaults only fill
    // gaps.
    let (mut stated, mut whole) = (Vec::new(), Vec::new());
    translate(op, &text, Walk { env: *env, make_up: false }, limits, &mut stated)?;
    document(op, &text, env, limits, &mut whole)?;
    // Remove stated absences first, so that only a default can replace the old value.
    take_away(op, source, &mut base);
    let made = Made::by(op);
    Ok(made.fill_from(made.over(base, own(&stated)), own(&whole)))
}

/// Parses JSON text that the gateway wrote.
fn own(json: &[u8]) -> Value {
    Value::parse(json, &Limits::UNLIMITED).unwrap_or(Value::Null)
}

/// The way in which a value of the target is produced.
#[derive(Clone, Copy)]
enum Made<'p> {
    /// As a unit.
    AsOne,
    By(&'p ValueOp),
    /// Composed of these members.
    Of(&'p [Close]),
}

impl<'p> Made<'p> {
    /// Returns how an operation produces its value. An unwrapped list is produced like its only
    /// element.
    fn by(op: &'p ValueOp) -> Made<'p> {
        match op {
            ValueOp::Unwrap(inner) => Made::by(inner),
            op => Made::By(op),
        }
    }

    fn is_composed(self) -> bool {
        matches!(self, Made::By(ValueOp::Object(_)) | Made::Of(_))
    }

    fn member(self, name: &str) -> Made<'p> {
        let written = |close: &'p [Close]| close.iter().find(|close| &*close.name.text == name);
        match self {
            Made::By(ValueOp::Object(op)) => {
                let emits = op.members.iter().filter_map(|member| match &member.action {
                    MemberAction::Emit(emit) => Some(emit),
                    _ => None,
                });
                let emit = emits.into_iter().find(|emit| &*emit.name.text == name);
                let other = || match &op.others {
                    Others::Each(op) => Made::by(op),
                    Others::Keep | Others::Drop | Others::Refuse(_) => Made::AsOne,
                };
                emit.map_or_else(
                    || written(&op.close).map_or_else(other, Made::at_close),
                    |emit| Made::by(&emit.op),
                )
            }
            Made::Of(close) => written(close).map_or(Made::AsOne, Made::at_close),
            Made::AsOne | Made::By(_) => Made::AsOne,
        }
    }

    fn at_close(close: &'p Close) -> Made<'p> {
        match &close.from {
            CloseFrom::Object(close) => Made::Of(close),
            CloseFrom::Captured { alternatives, .. } => match alternatives.as_slice() {
                [only] => Made::by(&only.op),
                _ => Made::AsOne,
            },
            _ => Made::AsOne,
        }
    }

    /// Overlays `new` on `old`: composed objects member by member, other values as a unit.
    fn over(self, old: Value, new: Value) -> Value {
        match (old, new) {
            (Value::Object(mut old), Value::Object(new)) if self.is_composed() => {
                for (key, value) in new {
                    let name = key.decode().into_owned();
                    let merged = match old.get_mut(&name) {
                        Some(place) => self.member(&name).over(place.take(), value),
                        None => value,
                    };
                    old.insert(key, merged);
                }
                Value::Object(old)
            }
            (_, new) => new,
        }
    }

    /// Adds the members of `spare` that `value` lacks.
    fn fill_from(self, value: Value, spare: Value) -> Value {
        match (value, spare) {
            (Value::Object(mut members), Value::Object(spare)) if self.is_composed() => {
                for (key, value) in spare {
                    let name = key.decode().into_owned();
                    match members.get_mut(&name) {
                        Some(place) => *place = self.member(&name).fill_from(place.take(), value),
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
}

/// Returns whether an operation treats its object as a map without named members.
fn is_map(op: &ObjectOp) -> bool {
    op.members.is_empty() && op.close.is_empty() && matches!(op.others, Others::Each(_) | Others::Keep)
}

/// Removes from the old value the members that the source states to be absent.
fn take_away(op: &ValueOp, source: &Value, base: &mut Value) {
    if let (ValueOp::Unwrap(inner), Some([only])) = (op, source.as_array().map(|items| &items[..])) {
        return take_away(inner, only, base);
    }
    let ValueOp::Object(op) = op else { return };
    let Some(old) = base.as_object_mut() else { return };
    if let (true, Some(source)) = (is_map(op), source.as_object()) {
        // A map is complete: an entry that the source lacks was removed.
        old.retain(|key, _| source.contains_key(&key.decode()));
        if let Others::Each(inner) = &op.others {
            for (key, value) in source.iter() {
                old.get_mut(&key.decode()).into_iter().for_each(|old| take_away(inner, value, old));
            }
        }
        return;
    }
    for member in &op.members {
        let (MemberAction::Emit(emit), Some(value)) = (&member.action, source.get(&member.name.text)) else {
            continue;
        };
        if writes_nothing(&emit.op, value) {
            old.remove(&emit.name.text);
        } else if let Some(old) = old.get_mut(&emit.name.text) {
            take_away(&emit.op, value, old);
        }
    }
    take_away_at_close(&op.close, op, source, old);
}

fn take_away_at_close(close: &[Close], op: &ObjectOp, source: &Value, old: &mut Object) {
    for close in close {
        match &close.from {
            CloseFrom::Object(inner) => {
                if let Some(old) = old.get_mut(&close.name.text).and_then(Value::as_object_mut) {
                    take_away_at_close(inner, op, source, old);
                }
            }
            CloseFrom::Captured { alternatives, .. } => {
                let found: Vec<_> =
                    alternatives.iter().filter_map(|place| Some((place, at(op, place, source)?))).collect();
                let nothing = |(place, value): &(&Captured, &Value)| {
                    !is_wanted(place, value) || writes_nothing(&place.op, value)
                };
                // A required member keeps its old value.
                let is_null = found.is_empty() && !close.needed;
                if !found.is_empty() && found.iter().all(nothing)
                    // A null parent states that the captured value is absent.
                    || is_null && alternatives.iter().any(|place| is_within_null(op, place, source))
                {
                    old.remove(&close.name.text);
                } else if let (Some((place, value)), Some(old)) =
                    (found.first(), old.get_mut(&close.name.text))
                {
                    take_away(&place.op, value, old);
                }
            }
            _ => {}
        }
    }
}

/// Returns the source value of a captured place.
fn at<'v>(op: &ObjectOp, place: &Captured, source: &'v Value) -> Option<&'v Value> {
    let holder = op.members.iter().find(|member| member.capture == Some(place.slot))?;
    let top = source.get(&holder.name.text)?;
    place.path.iter().try_fold(top, |value, key| value.get(&key.text))
}

/// Returns whether an object on the path to a captured place is null in the source.
fn is_within_null(op: &ObjectOp, place: &Captured, source: &Value) -> bool {
    let holder = op.members.iter().find(|member| member.capture == Some(place.slot));
    let Some(top) = holder.and_then(|holder| source.get(&holder.name.text)) else { return false };
    let mut value = top;
    for key in &place.path {
        match value.get(&key.text) {
            Some(inner) => value = inner,
            None => return value.is_null(),
        }
    }
    false
}

fn is_wanted(place: &Captured, value: &Value) -> bool {
    place.only.is_none_or(|only| raw::kind(&value.to_vec()).is_some_and(|kind| only.contains(kind)))
}

fn writes_nothing(op: &ValueOp, value: &Value) -> bool {
    let ValueOp::Convert(conversion) = op else { return false };
    yields_nothing(conversion, value)
}

fn yields_nothing(conversion: &Conversion, value: &Value) -> bool {
    conversion.apply(&value.to_vec(), &mut Vec::new()) == Ok(Yield::Nothing)
}
