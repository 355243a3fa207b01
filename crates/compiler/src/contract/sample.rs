//! Sample values: one deterministic value per type, for examples. Samples are small and only as
//! deep as required.

use super::{Additional, Array, Literal, Object, Scalar, ScalarKind, Type, TypeKind, Types};
use serde_json::{Map, Number, Value, json};

/// Number of values after which a sample contains only required members.
const VALUES_MAX: usize = 200;
/// Maximum nesting depth. Deeper values of a recursive type are null.
const DEPTH_MAX: usize = 24;

/// Returns a value of the type. Patterns, exclusive bounds, multiples and uniqueness are not
/// considered.
pub fn sample(types: &Types, ty: &Type) -> Value {
    Sampler { types, left: VALUES_MAX }.value(ty, 0)
}

struct Sampler<'t> {
    types: &'t Types,
    left: usize,
}

impl Sampler<'_> {
    fn value(&mut self, ty: &Type, depth: usize) -> Value {
        self.left = self.left.saturating_sub(1);
        match self.types.resolve(ty).kind {
            TypeKind::Null | TypeKind::Named(_) => Value::Null,
            _ if depth > DEPTH_MAX => Value::Null,
            TypeKind::Any => json!({}),
            TypeKind::Scalar(scalar) => self::scalar(scalar),
            TypeKind::Array(array) => self.array(array, depth),
            TypeKind::Object(object) => self.object(object, depth),
            TypeKind::OneOf(alternatives) => self.first(alternatives, depth),
            TypeKind::Choice(choice) => self.first(&choice.alternatives, depth),
        }
    }

    fn first(&mut self, alternatives: &[Type], depth: usize) -> Value {
        alternatives.first().map_or(Value::Null, |one| self.value(one, depth + 1))
    }

    fn array(&mut self, array: &Array, depth: usize) -> Value {
        // At least one element, until the limit is reached.
        let wanted = u64::from(self.left > 0 && array.max_items != Some(0));
        let count = array.min_items.max(wanted).min(VALUES_MAX as u64);
        (0..count).map(|_| self.value(&array.items, depth + 1)).collect()
    }

    fn object(&mut self, object: &Object, depth: usize) -> Value {
        let mut members = Map::new();
        for field in object.fields.iter() {
            // Optional members only near the top, so that samples of recursive types stay small.
            if field.required || (self.left > 0 && depth < DEPTH_MAX / 4) {
                members.insert(field.name.clone(), self.value(&field.ty, depth + 1));
            }
        }
        if let (Additional::Of(value), true, true) =
            (&object.additional, object.fields.is_empty(), self.left > 0)
        {
            members.insert("key".to_owned(), self.value(value, depth + 1));
        }
        Value::Object(members)
    }
}

fn scalar(scalar: &Scalar) -> Value {
    if let Some(first) = scalar.values.as_ref().and_then(|values| values.values.first()) {
        return literal(first);
    }
    let bound = |text: &Option<String>| text.as_deref().and_then(number);
    let limits = &scalar.limits;
    match scalar.kind {
        ScalarKind::Boolean => Value::Bool(true),
        ScalarKind::Integer | ScalarKind::Number => {
            bound(&limits.minimum).or_else(|| bound(&limits.maximum)).unwrap_or_else(|| json!(1))
        }
        ScalarKind::String => Value::String(text(scalar)),
    }
}

fn text(scalar: &Scalar) -> String {
    let text = match scalar.format.as_deref() {
        Some("date-time") => "2024-03-09T10:00:00Z",
        Some("date") => "2024-03-09",
        Some("uuid") => "0b7e1f5c-2a0d-4c53-9d0e-6f2f0a7c1e11",
        Some("email") => "someone@example.com",
        Some("uri" | "url") => "https://example.com/",
        _ => "text",
    };
    let least = scalar.limits.min_length.unwrap_or(0).min(4096) as usize;
    let most = scalar.limits.max_length.map_or(usize::MAX, |most| most as usize);
    text.chars().chain(std::iter::repeat('x')).take(text.len().max(least).min(most)).collect()
}

fn literal(literal: &Literal) -> Value {
    match literal {
        Literal::Boolean(value) => Value::Bool(*value),
        Literal::Number(text) => number(text).unwrap_or_else(|| json!(1)),
        Literal::String(text) => Value::String(text.clone()),
    }
}

fn number(text: &str) -> Option<Value> {
    text.parse::<Number>().ok().map(Value::Number)
}
