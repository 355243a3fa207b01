//! Validates a client's value against the type in its contract. Undeclared fields of an object are
//! not validated, because a mapping never forwards fields that it does not name.

use super::context::same;
use super::value::constant;
use switchback_json::Value;
use switchback_plan::{Form, FormKind, Listed};

/// Returns whether a value conforms. The recursion is bounded by the form, which the compiler
/// builds from finite types.
pub(super) fn fits(value: &Value, form: &Form) -> bool {
    if value.is_null() {
        return form.nullable || matches!(form.kind, FormKind::Any | FormKind::Null);
    }
    match (&form.kind, value) {
        (FormKind::Any, _) | (FormKind::Boolean, Value::Bool(_)) => true,
        (FormKind::Number(listed), Value::Number(_)) | (FormKind::String(listed), Value::String(_)) => {
            is_listed(value, listed)
        }
        (FormKind::Integer(listed), Value::Number(number)) => {
            !number.text().contains(['.', 'e', 'E']) && is_listed(value, listed)
        }
        (FormKind::Array { items, items_min, items_max }, Value::Array(list)) => {
            let count = list.len() as u64;
            count >= *items_min
                && items_max.is_none_or(|most| count <= most)
                && list.iter().all(|item| fits(item, items))
        }
        (FormKind::Object { fields, others }, Value::Object(members)) => {
            let declared = fields.iter().all(|field| match members.get(&field.name.text) {
                Some(value) => fits(value, &field.form),
                None => !field.required,
            });
            let is_further = |name: &str| !fields.iter().any(|field| *field.name.text == *name);
            declared
                && others.as_ref().is_none_or(|form| {
                    members.iter().all(|(name, value)| !is_further(&name.decode()) || fits(value, form))
                })
        }
        (FormKind::OneOf(forms), _) => forms.iter().any(|form| fits(value, form)),
        _ => false,
    }
}

fn is_listed(value: &Value, listed: &Listed) -> bool {
    listed.as_ref().is_none_or(|listed| listed.iter().any(|one| same(value, &constant(one))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use switchback_json::Limits;
    use switchback_plan::{FormField, Key};

    fn form(kind: FormKind) -> Arc<Form> {
        Arc::new(Form { kind, nullable: false })
    }

    fn thing() -> Arc<Form> {
        let field = |name: &str, form, required| FormField { name: Key::new(name), form, required };
        let listed = Some(vec![b"1".to_vec().into(), b"2".to_vec().into()]);
        let tags = FormKind::Array { items: form(FormKind::String(None)), items_min: 0, items_max: Some(2) };
        let either = FormKind::OneOf(vec![form(FormKind::Boolean), form(FormKind::Integer(None))]);
        let map = FormKind::Object { fields: Vec::new(), others: Some(form(FormKind::Number(None))) };
        form(FormKind::Object {
            fields: vec![
                field("id", form(FormKind::Integer(None)), true),
                field("kind", form(FormKind::Integer(listed)), false),
                field("name", Arc::new(Form { kind: FormKind::String(None), nullable: true }), false),
                field("tags", form(tags), false),
                field("either", form(either), false),
                field("map", form(map), false),
                field("free", form(FormKind::Any), false),
            ],
            others: None,
        })
    }

    fn is_one(json: &str) -> bool {
        fits(&Value::parse(json.as_bytes(), &Limits::DOCUMENT).expect("it is JSON"), &thing())
    }

    #[test]
    fn what_the_contract_says_fits_and_further_fields_do_not_matter() {
        for json in [
            r#"{"id":1}"#,
            r#"{"id":-9007199254740993,"kind":2,"name":null,"tags":["a","b"],"either":true,"free":null,"more":[]}"#,
            r#"{"id":1,"name":"","tags":[],"either":7,"map":{"a":1.5},"free":{"x":1}}"#,
        ] {
            assert!(is_one(json), "{json}");
        }
    }

    #[test]
    fn anything_else_does_not() {
        for json in [
            "7",
            "null",
            "[]",
            "{}",
            r#"{"id":"1"}"#,
            r#"{"id":1.5}"#,
            r#"{"id":null}"#,
            r#"{"id":1,"kind":3}"#,
            r#"{"id":1,"kind":"1"}"#,
            r#"{"id":1,"name":7}"#,
            r#"{"id":1,"tags":["a",1]}"#,
            r#"{"id":1,"tags":["a","b","c"]}"#,
            r#"{"id":1,"tags":{}}"#,
            r#"{"id":1,"either":"x"}"#,
            r#"{"id":1,"map":{"a":"b"}}"#,
        ] {
            assert!(!is_one(json), "{json}");
        }
    }
}
