//! Facts of a contract about the values at a place, as conversions need them.

use crate::contract::{Array, Literal, Scalar, ScalarKind, TypeIn, TypeKind};
use switchback_plan::convert::Facts;
use switchback_plan::{Kinds, Raw};

/// Returns the facts of a type. Alternatives differ in kind, so each contributes the facts about
/// its kind.
pub(in crate::mapping) fn facts_of(ty: TypeIn<'_>) -> Facts {
    let mut facts = Facts { kinds: kinds_of(ty), ..Facts::default() };
    add(ty, &mut facts);
    facts.values = closed_values(ty).map(|values| values.into_iter().map(Raw::from).collect());
    facts
}

fn add(ty: TypeIn<'_>, facts: &mut Facts) {
    match ty.kind() {
        TypeKind::Any => facts.any = true,
        TypeKind::Scalar(scalar) => add_scalar(scalar, facts),
        TypeKind::Array(array) => add_list(ty, array, facts),
        TypeKind::OneOf(alternatives) => alternatives.iter().for_each(|one| add(ty.types.at(one), facts)),
        TypeKind::Null | TypeKind::Object(_) | TypeKind::Choice(_) | TypeKind::Named(_) => {}
    }
}

fn add_scalar(scalar: &Scalar, facts: &mut Facts) {
    facts.format = facts.format.take().or_else(|| scalar.format.as_deref().map(str::to_owned));
    match scalar.kind {
        ScalarKind::Integer | ScalarKind::Number => {
            facts.integers = scalar.kind == ScalarKind::Integer;
            let bound = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
            facts.bounds = [bound(&scalar.limits.minimum), bound(&scalar.limits.maximum)];
        }
        ScalarKind::String => {
            facts.digits = scalar.limits.patterns.iter().any(|pattern| is_digits(pattern));
            facts.length_most = scalar.limits.max_length;
        }
        ScalarKind::Boolean => {}
    }
}

fn add_list(ty: TypeIn<'_>, array: &Array, facts: &mut Facts) {
    let items = ty.types.at(&array.items);
    // Conversions do not look into nested lists, and types may contain themselves.
    let holds_lists = matches!(items.kind(), TypeKind::Array(_) | TypeKind::OneOf(_));
    facts.items = (!holds_lists).then(|| Box::new(facts_of(items)));
    facts.items_least = array.min_items;
    facts.items_most = array.max_items;
}

/// Returns whether a pattern only matches integers in the spelling of JSON.
pub(super) fn is_digits(pattern: &str) -> bool {
    let Some(inner) = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')) else { return false };
    let inner = inner.replace("\\d", "[0-9]");
    let inner = inner.strip_prefix("-?").unwrap_or(&inner);
    let digits = |rest: &str| {
        let Some(count) = rest.strip_prefix("[1-9][0-9]") else { return false };
        let counted = count.strip_prefix('{').and_then(|count| count.strip_suffix('}'));
        matches!(count, "*" | "+" | "?" | "")
            || counted.is_some_and(|count| count.bytes().all(|byte| byte.is_ascii_digit() || byte == b','))
    };
    let either = inner.strip_prefix("(0|").or_else(|| inner.strip_prefix("(?:0|"));
    match either.and_then(|rest| rest.strip_suffix(')')) {
        Some(rest) => digits(rest) || rest == "[1-9]",
        None => digits(inner) || inner == "[0-9]" || inner == "[1-9]",
    }
}

/// Returns the JSON kinds of a type's values, including null.
pub(in crate::mapping) fn kinds_of(ty: TypeIn<'_>) -> Kinds {
    use crate::contract::JsonKind;
    let resolved = ty.types.resolve(ty.ty);
    let mut kinds =
        Kinds { null: resolved.nullable || matches!(resolved.kind, TypeKind::Null), ..Kinds::default() };
    for kind in ty.types.json_kinds(ty.ty) {
        match kind {
            JsonKind::Boolean => kinds.boolean = true,
            JsonKind::Number => kinds.number = true,
            JsonKind::String => kinds.string = true,
            JsonKind::Array => kinds.array = true,
            JsonKind::Object => kinds.object = true,
        }
    }
    kinds
}

/// Returns the values of a type with a closed list, as JSON, without null.
pub(super) fn closed_values(ty: TypeIn<'_>) -> Option<Vec<Vec<u8>>> {
    let TypeKind::Scalar(scalar) = ty.kind() else { return None };
    if scalar.kind == ScalarKind::Boolean && scalar.values.is_none() {
        return Some(vec![b"true".to_vec(), b"false".to_vec()]);
    }
    let values = scalar.values.as_ref().filter(|values| !values.open)?;
    let json = |value: &Literal| match value {
        Literal::Boolean(value) => value.to_string().into_bytes(),
        Literal::Number(text) => text.clone().into_bytes(),
        Literal::String(text) => serde_json::Value::from(text.as_str()).to_string().into_bytes(),
    };
    Some(values.values.iter().map(json).collect())
}

#[cfg(test)]
mod tests {
    use super::is_digits;

    #[test]
    fn patterns_of_integers_are_known() {
        for yes in ["^[1-9][0-9]*$", r"^[1-9]\d{0,18}$", "^(0|[1-9][0-9]*)$", r"^-?(?:0|[1-9]\d*)$", r"^\d$"]
        {
            assert!(is_digits(yes), "{yes}");
        }
        // Leading zeros, the empty text, and patterns that are not anchored at both ends.
        for no in
            ["^[0-9]+$", r"^\d*$", "[1-9][0-9]*", "^[1-9][0-9]*", "^[1-9][0-9a]*$", "^(0|[1-9][0-9]*)?$"]
        {
            assert!(!is_digits(no), "{no}");
        }
    }
}
