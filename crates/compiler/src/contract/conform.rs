//! Checks whether a JSON value conforms to a type. For planned calls that are never sent, so no
//! service validates them. It checks kinds, enumerated values, required fields and list lengths,
//! but not the bounds of scalars (lengths, ranges, patterns).

use super::{Additional, Enum, Field, JsonKind, Literal, Object, ScalarKind, Type, TypeKind, Types};
use std::fmt;
use switchback_json::Value;
use switchback_plan::Message;

/// A violation of a type by a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// Place, such as `$.items[3].name`.
    pub place: String,
    /// Kind of violation.
    pub what: BreachKind,
}

/// A kind of violation. It contains no part of the value, which may be confidential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BreachKind {
    /// A required field is absent.
    Missing,
    /// A closed object has an undeclared field.
    Unknown,
    /// The value is not of this kind.
    Kind(String),
    /// The value is not one of the enumerated values.
    NotListed,
    /// The list is too short or too long.
    Length,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.place;
        match &self.what {
            BreachKind::Missing => write!(f, "`{place}` is required and missing"),
            BreachKind::Unknown => write!(f, "`{place}` is not known"),
            BreachKind::Kind(wanted) => write!(f, "`{place}` should be {wanted}"),
            BreachKind::NotListed => write!(f, "`{place}` is none of the listed values"),
            BreachKind::Length => write!(f, "`{place}` has too few or too many items"),
        }
    }
}

/// Maximum number of violations to report.
const BREACHES_MAX: usize = 20;

/// Returns the violations of `ty` by `value` in the order of the value, at most 20. Empty if it
/// conforms. In the body of a message, a required field that only the other message contains may be
/// absent.
pub fn breaches(types: &Types, ty: &Type, value: &Value, message: Option<Message>) -> Vec<Breach> {
    let mut conformance = Conformance { types, message, place: "$".to_owned(), found: Vec::new() };
    conformance.value(ty, value);
    conformance.found
}

struct Conformance<'t> {
    types: &'t Types,
    /// `None` if the value is not part of a message.
    message: Option<Message>,
    /// The place of the value.
    place: String,
    found: Vec<Breach>,
}

impl Conformance<'_> {
    fn value(&mut self, ty: &Type, value: &Value) {
        if self.found.len() >= BREACHES_MAX {
            return;
        }
        let resolved = self.types.resolve(ty);
        // Before the kinds, because `nullable` may come from an alternative or from a reference around the
        // type.
        if matches!(value, Value::Null) && resolved.nullable {
            return;
        }
        match (resolved.kind, value) {
            (TypeKind::Any, _) => {}
            (TypeKind::Array(array), Value::Array(items)) => {
                let count = items.len() as u64;
                if count < array.min_items || array.max_items.is_some_and(|most| count > most) {
                    self.note(BreachKind::Length);
                }
                // The items are still checked, as their faults are independent of the length.
                for (at, item) in items.iter().enumerate() {
                    self.within(["[", &at.to_string(), "]"], |item_at| item_at.value(&array.items, item));
                }
            }
            (TypeKind::Object(object), Value::Object(_)) => self.object(object, value),
            (TypeKind::Scalar(scalar), value) if is_of(scalar.kind, value) => {
                if scalar.values.as_ref().is_some_and(|listed| !is_listed(listed, value)) {
                    self.note(BreachKind::NotListed);
                }
            }
            (TypeKind::OneOf(types), value) => {
                // Alternatives differ in JSON kind, so at most one matches.
                let kind = kind_of(value);
                match types
                    .iter()
                    .find(|ty| kind.is_some_and(|kind| self.types.json_kinds(ty).contains(&kind)))
                {
                    Some(meant) => self.value(meant, value),
                    None => self.note(BreachKind::Kind("one of several kinds".to_owned())),
                }
            }
            (TypeKind::Choice(choice), Value::Object(members)) => {
                let scalar = |name: &str| literal(members.get(name)?);
                let has = |name: &str| members.get(name).is_some_and(|value| !matches!(value, Value::Null));
                match choice.pick(scalar, has) {
                    Some(at) => self.value(&choice.alternatives[at], value),
                    None => self.note(BreachKind::Kind("one of several objects".to_owned())),
                }
            }
            (TypeKind::Named(_), _) => {}
            (kind, _) => self.note(BreachKind::Kind(word(kind).to_owned())),
        }
    }

    fn object(&mut self, object: &Object, value: &Value) {
        let Some(members) = value.as_object() else { return };
        let message = self.message;
        // A `readOnly` property may be required and still absent in a request (OpenAPI 3.0, Schema
        // Object).
        let is_sent = |field: &Field| message.is_none_or(|message| field.access.is_in(message));
        for field in &object.fields {
            match members.get(&field.name) {
                Some(value) => self.member(&field.name, |member| member.value(&field.ty, value)),
                None if field.required && is_sent(field) => {
                    self.member(&field.name, |member| member.note(BreachKind::Missing));
                }
                None => {}
            }
        }
        for (name, value) in members.iter() {
            let name = name.decode();
            if object.field(&name).is_some() {
                continue;
            }
            match &object.additional {
                Additional::Open => {}
                Additional::Closed => self.member(&name, |member| member.note(BreachKind::Unknown)),
                Additional::Of(ty) => self.member(&name, |member| member.value(ty, value)),
            }
        }
    }

    /// Runs a check at the place of a member.
    fn member(&mut self, name: &str, check: impl FnOnce(&mut Self)) {
        self.within([".", name, ""], check);
    }

    /// Runs a check at a place inside the present one.
    fn within(&mut self, step: [&str; 3], check: impl FnOnce(&mut Self)) {
        let outer = self.place.len();
        self.place.extend(step);
        check(self);
        self.place.truncate(outer);
    }

    /// Records a violation at the present place.
    fn note(&mut self, what: BreachKind) {
        // A list of the wrong type would otherwise report each of its thousand items.
        if self.found.len() < BREACHES_MAX {
            self.found.push(Breach { place: self.place.clone(), what });
        }
    }
}

/// Returns a scalar in the form of contracts.
fn literal(value: &Value) -> Option<Literal> {
    match value {
        Value::Bool(value) => Some(Literal::Boolean(*value)),
        Value::Number(number) => Some(Literal::Number(number.text().to_owned())),
        Value::String(text) => Some(Literal::String(text.decode().into_owned())),
        _ => None,
    }
}

/// Returns the kind of a value, or `None` for null.
fn kind_of(value: &Value) -> Option<JsonKind> {
    match value {
        Value::Null => None,
        Value::Bool(_) => Some(JsonKind::Boolean),
        Value::Number(_) => Some(JsonKind::Number),
        Value::String(_) => Some(JsonKind::String),
        Value::Array(_) => Some(JsonKind::Array),
        Value::Object(_) => Some(JsonKind::Object),
    }
}

fn is_of(kind: ScalarKind, value: &Value) -> bool {
    match (kind, value) {
        (ScalarKind::Boolean, Value::Bool(_))
        | (ScalarKind::Number, Value::Number(_))
        | (ScalarKind::String, Value::String(_)) => true,
        (ScalarKind::Integer, Value::Number(number)) => !number.text().contains(['.', 'e', 'E']),
        _ => false,
    }
}

fn is_listed(listed: &Enum, value: &Value) -> bool {
    let same = |literal: &Literal| match (literal, value) {
        (Literal::Boolean(wanted), Value::Bool(value)) => wanted == value,
        (Literal::Number(wanted), Value::Number(value)) => wanted == value.text(),
        (Literal::String(wanted), Value::String(value)) => *wanted == value.decode(),
        _ => false,
    };
    listed.open || listed.values.iter().any(same)
}

fn word(kind: &TypeKind) -> &'static str {
    match kind {
        TypeKind::Any => "any value",
        TypeKind::Null => "null",
        TypeKind::Scalar(scalar) => match scalar.kind {
            ScalarKind::Boolean => "a boolean",
            ScalarKind::Integer => "a whole number",
            ScalarKind::Number => "a number",
            ScalarKind::String => "a text",
        },
        TypeKind::Array(_) => "a list",
        TypeKind::Object(_) | TypeKind::Choice(_) => "an object",
        TypeKind::Named(_) | TypeKind::OneOf(_) => "one of several kinds",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Contract, Documents, parse_contract};
    use crate::diagnostic::{Findings, Sources};
    use switchback_json::Limits;

    const THINGS: &str = "
openapi: 3.1.0
info: { title: t, version: '1' }
paths: {}
components:
  schemas:
    Thing:
      type: object
      additionalProperties: false
      required: [id, kind]
      properties:
        id: { type: integer }
        kind: { type: string, enum: [a, b] }
        name: { type: [string, 'null'] }
        tags: { type: array, items: { $ref: '#/components/schemas/Tag' }, maxItems: 2 }
        either: { oneOf: [{ type: string }, { type: object, required: [x], properties: { x: { type: boolean } } }] }
        free: {}
    Tag: { type: object, additionalProperties: { type: integer } }
";

    fn contract() -> Contract {
        let (mut sources, mut findings) = (Sources::new(), Findings::new());
        let things = Documents::single(&mut sources, "things", THINGS.as_bytes(), &mut findings);
        let contract = parse_contract("things", &things.expect("it is YAML"), &mut findings);
        assert!(!findings.has_errors(), "{:?}", findings.in_order());
        contract
    }

    fn found(value: &str) -> Vec<String> {
        let contract = contract();
        let value = Value::parse(value.as_bytes(), &Limits::DOCUMENT).expect("it is JSON");
        let ty = &contract.types.get("Thing").expect("it is declared").ty;
        breaches(&contract.types, ty, &value, None).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_conforms_has_no_breach() {
        for value in [
            r#"{"id":1,"kind":"a"}"#,
            r#"{"id":1,"kind":"b","name":null,"tags":[{"x":1}],"either":"s","free":[1,{}]}"#,
            r#"{"id":-7,"kind":"b","either":{"x":true,"y":1}}"#,
        ] {
            assert_eq!(found(value), Vec::<String>::new(), "{value}");
        }
    }

    #[test]
    fn every_breach_is_told_by_its_place_and_without_the_value() {
        for (value, breach) in [
            (r#"{"kind":"a"}"#, "`$.id` is required and missing"),
            (r#"{"id":"1","kind":"a"}"#, "`$.id` should be a whole number"),
            (r#"{"id":1.5,"kind":"a"}"#, "`$.id` should be a whole number"),
            (r#"{"id":1,"kind":"c"}"#, "`$.kind` is none of the listed values"),
            (r#"{"id":1,"kind":null}"#, "`$.kind` should be a text"),
            (r#"{"id":1,"kind":"a","more":1}"#, "`$.more` is not known"),
            (r#"{"id":1,"kind":"a","tags":[{"x":"y"}]}"#, "`$.tags[0].x` should be a whole number"),
            (r#"{"id":1,"kind":"a","tags":[{},{},{}]}"#, "`$.tags` has too few or too many items"),
            (r#"{"id":1,"kind":"a","either":7}"#, "`$.either` should be one of several kinds"),
            (r#"{"id":1,"kind":"a","either":{}}"#, "`$.either.x` is required and missing"),
            ("[]", "`$` should be an object"),
        ] {
            assert_eq!(found(value), [breach], "{value}");
        }
    }

    #[test]
    fn a_flood_of_breaches_is_cut_off() {
        let tags: Vec<&str> = std::iter::repeat_n("7", 1_000).collect();
        let value = format!(r#"{{"id":1,"kind":"a","tags":[{}]}}"#, tags.join(","));
        assert_eq!(found(&value).len(), BREACHES_MAX);
    }
}
