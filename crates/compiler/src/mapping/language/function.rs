//! Functions under `to:` of a value.

use super::kinds::kinds;
use super::shape::{one_key, with_arguments};
use super::{Spanned, SyntaxReader};
use crate::mapping::schema::{reference, words};
use crate::yaml::{Kind, Node, described};
use serde_json::{Value, json};
use switchback_plan::convert::Arguments;
use switchback_plan::function::{FUNCTIONS, converting};

/// `name` or `{name: arguments}`
#[derive(Clone, Debug)]
pub(crate) struct FunctionUse {
    pub name: Spanned<String>,
    pub arguments: Option<Node>,
}

kinds! {
    /// `to: function` or `to: [function, …]`, applied in order.
    FunctionUses -> Vec<FunctionUse>, |_, node, reader| match &node.kind {
        Kind::Seq(items) if !items.is_empty() => items.iter().map(|item| function(item, reader)).collect(),
        _ => Some(vec![function(node, reader)?]),
    }, |_| {
        let several = json!({"type": "array", "minItems": 1, "items": reference("function")});
        json!({"anyOf": [reference("function"), described(several, &["Functions in order."])]})
    };
}

fn function(node: &Node, reader: &mut SyntaxReader<'_>) -> Option<FunctionUse> {
    match &node.kind {
        Kind::Map(entries) if entries.len() == 1 => {
            let (key, arguments) = &entries[0];
            Some(FunctionUse { name: SyntaxReader::key(key), arguments: Some(arguments.clone()) })
        }
        _ => Some(FunctionUse { name: reader.text(node)?, arguments: None }),
    }
}

/// Returns the schema of a single function.
pub(super) fn definition() -> Value {
    let plain = FUNCTIONS.iter().filter(|spec| spec.arguments.is_none()).map(|spec| spec.name);
    let converting_plain = converting().filter(|spec| matches!(spec.arguments, Arguments::None));
    let plain: Vec<&str> = plain.chain(converting_plain.map(|spec| spec.name)).collect();
    let mut forms = vec![words(&plain)];
    for spec in FUNCTIONS {
        let Some(arguments) = spec.arguments else { continue };
        let schema =
            serde_json::from_str(arguments.schema).expect("a function's schema is JSON, which a test reads");
        forms.push(one_key(spec.name, described(schema, &[spec.about])));
    }
    forms.extend(with_arguments(converting()));
    json!({"anyOf": forms})
}
