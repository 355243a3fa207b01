//! `chunks`: a list as lists of at most so many elements, for calls that take a bounded number of
//! elements. A step makes a call for each of them by `each`.

use super::{Function, FunctionArguments, FunctionSpec, Gives, LIST, Takes, are_all, example};
use crate::Kinds;
use crate::convert::Facts;
use std::sync::Arc;
use switchback_json::Value;
use switchback_json::raw::Kind;

/// Maximum number of elements of a chunk.
const SIZE_MAX: i64 = 10_000;

pub(super) const SPEC: FunctionSpec = FunctionSpec {
    name: "chunks",
    about: "The lists of at most so many elements each that make up a list.",
    arguments: Some(FunctionArguments {
        such_as: "{chunks: 50}",
        schema: r#"{"type": "integer", "minimum": 1, "maximum": 10000}"#,
    }),
    build: |given| match given.arguments.as_i64() {
        Some(size @ 1..=SIZE_MAX) => Ok(Arc::new(Chunks { size: size as usize })),
        _ => Err("it takes a number of elements from 1 to 10,000".into()),
    },
    examples: &[
        example("2", "[1,2,3,4,5]", Some("[[1,2],[3,4],[5]]")),
        example("2", "[]", Some("[]")),
        example("2", "{}", None),
    ],
};

#[derive(Debug)]
struct Chunks {
    size: usize,
}

impl Function for Chunks {
    fn name(&self) -> &'static str {
        SPEC.name
    }

    fn takes(&self) -> Takes {
        let any = [Kind::Null, Kind::Bool, Kind::Number, Kind::String, Kind::Array, Kind::Object];
        Takes { kinds: LIST, elements: Kinds::from_kinds(&any) }
    }

    fn gives(&self, _facts: &Facts) -> Gives {
        Gives::Chunks
    }

    fn takes_all(&self, facts: &Facts) -> bool {
        are_all(facts, LIST)
    }

    fn domain_text(&self) -> &'static str {
        "a list"
    }

    fn apply(&self, value: Value) -> Option<Value> {
        let Value::Array(list) = value else { return None };
        let (mut chunks, mut chunk) = (Vec::new(), Vec::new());
        for element in list {
            chunk.push(element);
            if chunk.len() == self.size {
                chunks.push(Value::from(std::mem::take(&mut chunk)));
            }
        }
        if !chunk.is_empty() {
            chunks.push(Value::from(chunk));
        }
        Some(Value::from(chunks))
    }
}
