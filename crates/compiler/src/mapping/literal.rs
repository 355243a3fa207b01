//! Literals of mapping files: converts YAML values to JSON text, and checks literals against
//! contract types.

use crate::contract::{Additional, Enum, Literal, ScalarKind, TypeIn, TypeKind, is_out_of_bounds};
use crate::yaml::{Kind, Node};
use std::time::Duration;
use switchback_json::text;
use switchback_plan::Raw;

/// Returns the literal as JSON text. Preserves the order of members and the spelling of numbers.
pub(super) fn json(node: &Node) -> Raw {
    let mut out = String::new();
    write(node, &mut out);
    out.into_bytes().into()
}

/// Appends the literal as JSON text.
pub(super) fn write(node: &Node, out: &mut String) {
    match &node.kind {
        Kind::Null => out.push_str("null"),
        Kind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Kind::Number(number) => out.push_str(number),
        Kind::String(content, _) => string(content, out),
        Kind::Seq(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Kind::Map(entries) => {
            out.push('{');
            for (at, (key, value)) in entries.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                string(&key.name, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
    }
}

/// Appends a text as a JSON string.
pub(super) fn string(content: &str, out: &mut String) {
    out.push('"');
    out.push_str(&text::escape(content));
    out.push('"');
}

/// Converts a scalar to the literal type of contracts. Returns `None` for null, lists and maps.
pub(super) fn scalar(node: &Node) -> Option<Literal> {
    match &node.kind {
        Kind::Bool(value) => Some(Literal::Boolean(*value)),
        Kind::Number(text) => Some(Literal::Number(text.clone())),
        Kind::String(text, _) => Some(Literal::String(text.clone())),
        Kind::Null | Kind::Seq(_) | Kind::Map(_) => None,
    }
}

/// The reason why a literal is not a value of a type.
#[derive(Debug)]
pub(super) struct Misfit<'n> {
    /// The literal, or the part of it that does not fit.
    pub node: &'n Node,
    /// The predicate of the message, such as `is not integer`.
    pub why: String,
}

/// Checks a literal against a type: kinds, listed values, bounds, required and declared fields.
pub(super) fn check<'n>(node: &'n Node, ty: TypeIn<'_>) -> Result<(), Misfit<'n>> {
    check_as(node, ty, true)
}

/// Checks a literal with placeholders as texts: like [`check`], but without bounds.
pub(super) fn check_pattern<'n>(node: &'n Node, ty: TypeIn<'_>) -> Result<(), Misfit<'n>> {
    check_as(node, ty, false)
}

fn check_as<'n>(node: &'n Node, ty: TypeIn<'_>, bounds: bool) -> Result<(), Misfit<'n>> {
    let check = |node: &'n Node, ty: TypeIn<'_>| check_as(node, ty, bounds);
    let resolved = ty.types.resolve(ty.ty);
    let misfit = || Misfit { node, why: format!("is not {}", ty.ty) };
    if node.is_null() {
        return if resolved.nullable { Ok(()) } else { Err(misfit()) };
    }
    match (resolved.kind, &node.kind) {
        (TypeKind::Any, _) => Ok(()),
        (TypeKind::OneOf(alternatives), _) => {
            let fits = alternatives.iter().any(|one| check(node, ty.types.at(one)).is_ok());
            if fits { Ok(()) } else { Err(misfit()) }
        }
        (TypeKind::Scalar(wanted), _) => {
            let kind_fits = match (&node.kind, wanted.kind) {
                (Kind::Bool(_), ScalarKind::Boolean) | (Kind::String(..), ScalarKind::String) => true,
                // JSON Schema counts `1.0` as an integer as well. Literals are sent as written, so
                // require the usual spelling.
                (Kind::Number(text), ScalarKind::Integer) => !text.contains(['.', 'e', 'E']),
                (Kind::Number(_), ScalarKind::Number) => true,
                _ => false,
            };
            let listed = |values: &Enum| scalar(node).is_some_and(|value| values.values.contains(&value));
            let value_fits = wanted.values.as_ref().is_none_or(|values| values.open || listed(values));
            if !kind_fits || !value_fits {
                return Err(misfit());
            }
            match scalar(node).filter(|value| bounds && is_out_of_bounds(wanted, value)) {
                Some(_) => Err(Misfit { node, why: format!("is outside the bounds of {}", ty.ty) }),
                None => Ok(()),
            }
        }
        (TypeKind::Array(array), Kind::Seq(items)) => {
            let count = items.len() as u64;
            if bounds && (count < array.min_items || array.max_items.is_some_and(|most| count > most)) {
                return Err(Misfit { node, why: "has too few or too many elements".to_owned() });
            }
            items.iter().try_for_each(|item| check(item, ty.types.at(&array.items)))
        }
        (TypeKind::Object(object), Kind::Map(entries)) => {
            for field in object.fields.iter().filter(|field| field.required) {
                if !entries.iter().any(|(key, _)| key.name == field.name) {
                    return Err(Misfit { node, why: format!("has no `{}`, which is required", field.name) });
                }
            }
            entries.iter().try_for_each(|(key, value)| match (object.field(&key.name), &object.additional) {
                (Some(field), _) => check(value, ty.types.at(&field.ty)),
                (None, Additional::Of(of)) => check(value, ty.types.at(of)),
                (None, Additional::Open) => Ok(()),
                (None, Additional::Closed) => {
                    Err(Misfit { node: value, why: format!("is at `{}`, which is not declared", key.name) })
                }
            })
        }
        _ => Err(misfit()),
    }
}

/// Parses a duration such as `500ms`, `20s`, `2m` or `1h`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(unit).map(Duration::from_millis)
}
