//! Steps that look up entries in archives and store entries there: the keys and values they refer
//! to, and the results of a lookup.

use super::context::Context;
use super::fault::{Fault, FaultKind, Stop};
use super::turn::{Entries, Entry, Lookup};
use switchback_json::{Limits, Object, Value};
use switchback_plan::{EachOf, Expr, Keep, Recall, Step};

/// Evaluates an expression in a context.
pub(super) type Evaluate<'e> = dyn Fn(&Context, &Expr) -> Result<Option<Value>, Stop> + 'e;

/// A pending lookup: its elements, and which of them have a key.
#[derive(Debug)]
pub(super) struct Looking {
    elements: Vec<Value>,
    has_key: Vec<bool>,
}

/// Returns the entries to look up, or `None` if no element has a key.
pub(super) fn lookup(
    recall: &Recall,
    context: &mut Context,
    value: &Evaluate<'_>,
) -> Result<(Looking, Option<Lookup>), Stop> {
    let elements = elements(context, recall.each.as_ref());
    let (mut keys, mut has_key) = (Vec::new(), Vec::with_capacity(elements.len()));
    for element in &elements {
        at(context, recall.each.as_ref(), element);
        let is_wanted = recall.when.as_ref().is_none_or(|when| context.holds(when));
        let key = if is_wanted { value(context, &recall.key)? } else { None };
        let key = key.as_ref().and_then(key_text);
        has_key.push(key.is_some());
        keys.extend(key);
    }
    leave(context, recall.each.as_ref());
    let lookup = (!keys.is_empty()).then_some(Lookup { archive: recall.archive, keys });
    Ok((Looking { elements, has_key }, lookup))
}

/// Adds the results to the context, in the order of the keys.
///
/// # Errors
/// Fails if an entry is not JSON, or if there are fewer entries than keys.
pub(super) fn store_found(
    recall: &Recall,
    step: &Step,
    looking: Looking,
    entries: Vec<Option<Entry>>,
    limits: &Limits,
    context: &mut Context,
) -> Result<(), Fault> {
    let broken =
        || Fault::new(FaultKind::Internal, "an archive holds what nobody can have kept").at(&step.origin);
    let Some(name) = &step.name else { return Ok(()) };
    let mut entries = entries.into_iter();
    let mut results = Vec::with_capacity(looking.elements.len());
    for (element, has_key) in looking.elements.into_iter().zip(looking.has_key) {
        // Elements without a key were not looked up.
        let entry = if has_key { entries.next().ok_or_else(broken)? } else { None };
        let mut result = Object::new();
        if let Some(entry) = &entry {
            result.insert("age", i64::try_from(entry.age).unwrap_or(i64::MAX));
            if let Some(value) = &entry.value {
                result.insert("value", Value::parse(value, limits).map_err(|_| broken())?);
            }
        }
        match &recall.each {
            Some(each) => {
                result.insert(&*each.name.text, element);
                results.push(Value::Object(result));
            }
            None if entry.is_some() => context.set(&name.text, Value::Object(result)),
            None => {}
        }
    }
    if recall.each.is_some() {
        context.set(&name.text, Value::from(results));
    }
    Ok(())
}

/// Returns the entries to store, or `None` if the list is empty.
pub(super) fn entries(
    keep: &Keep,
    context: &mut Context,
    value: &Evaluate<'_>,
) -> Result<Option<Entries>, Stop> {
    let mut entries: Vec<(String, Option<Vec<u8>>)> = Vec::new();
    for element in elements(context, keep.each.as_ref()) {
        at(context, keep.each.as_ref(), &element);
        if keep.when.as_ref().is_some_and(|when| !context.holds(when)) {
            continue;
        }
        let Some(key) = value(context, &keep.key)?.as_ref().and_then(key_text) else {
            // Skip list elements without a key. A single entry without a key is an error, because
            // the mapping requires that it is stored.
            if keep.each.is_some() {
                continue;
            }
            return Err(Fault::new(FaultKind::UpstreamBroken, "there is no key to keep this under").into());
        };
        let kept = match &keep.value {
            None => None,
            Some(expr) => match value(context, expr)? {
                Some(value) => Some(value.to_vec()),
                // An absent value stores no entry.
                None => continue,
            },
        };
        // The last of equal keys wins, as if the entries were stored in sequence.
        entries.retain(|(known, _)| *known != key);
        entries.push((key, kept));
    }
    leave(context, keep.each.as_ref());
    Ok((!entries.is_empty()).then_some(Entries { archive: keep.archive, entries }))
}

/// Returns the elements that a step applies to, or a placeholder for a step without a list.
fn elements(context: &Context, each: Option<&EachOf>) -> Vec<Value> {
    let Some(each) = each else { return vec![Value::Null] };
    match context.value(&each.list).map(std::borrow::Cow::into_owned) {
        Some(Value::Array(list)) => list.into_iter().collect(),
        _ => Vec::new(),
    }
}

fn at(context: &mut Context, each: Option<&EachOf>, element: &Value) {
    if let Some(each) = each {
        context.set(&each.name.text, element.clone());
    }
}

fn leave(context: &mut Context, each: Option<&EachOf>) {
    if let Some(each) = each {
        context.remove(&each.name.text);
    }
}

/// Returns a key as text. `7` and `"7"` are the same key, because versions of an API often differ
/// in exactly that.
fn key_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.decode().into_owned()),
        Value::Number(number) => Some(number.text().to_owned()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
