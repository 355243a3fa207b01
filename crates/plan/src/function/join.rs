//! `join`: one text of the scalars of a list, with a separator between them. Null is skipped. For
//! the inverse, a shape has the conversion of the same name.

use super::{Function, FunctionArguments, FunctionSpec, LIST, SCALARS, TEXT_MAX, Takes, are_all, example};
use crate::convert::Facts;
use std::borrow::Cow;
use std::sync::Arc;
use switchback_json::Value;

pub(super) const SPEC: FunctionSpec = FunctionSpec {
    name: "join",
    about: "One text of the values of a list, with a separator between them. Null is skipped.",
    arguments: Some(FunctionArguments { such_as: "{join: ', '}", schema: r#"{"type": "string"}"# }),
    build: |given| match given.arguments.as_str() {
        Some(separator) => Ok(Arc::new(Join { separator: separator.into_owned() })),
        None => Err("it takes the text between the values, which may be empty".into()),
    },
    examples: &[
        example("\" \"", "[\"Ada\",\"Lovelace\"]", Some("\"Ada Lovelace\"")),
        example("\"\"", "[\"a\",1,true,null]", Some("\"a1true\"")),
        example("\", \"", "[]", Some("\"\"")),
        example("\", \"", "[[]]", None),
    ],
};

#[derive(Debug)]
struct Join {
    separator: String,
}

impl Function for Join {
    fn name(&self) -> &'static str {
        SPEC.name
    }

    fn takes(&self) -> Takes {
        Takes { kinds: LIST, elements: SCALARS }
    }

    fn takes_all(&self, facts: &Facts) -> bool {
        are_all(facts, LIST) && facts.items.as_ref().is_some_and(|items| are_all(items, SCALARS))
    }

    fn domain_text(&self) -> &'static str {
        "a list of scalars that make a text of at most one mebibyte"
    }

    fn apply(&self, value: Value) -> Option<Value> {
        let mut joined = String::new();
        let elements = value.as_array()?.iter().filter(|element| !element.is_null());
        for (at, element) in elements.enumerate() {
            let text = match element {
                Value::String(text) => text.decode(),
                Value::Number(number) => Cow::Borrowed(number.text()),
                Value::Bool(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            };
            if at > 0 {
                joined.push_str(&self.separator);
            }
            joined.push_str(&text);
            // A long separator could multiply the size of the list.
            if joined.len() > TEXT_MAX {
                return None;
            }
        }
        Some(Value::string(&joined))
    }
}
