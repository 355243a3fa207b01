//! `fragments:`: named blocks that several places of the pack use.

use super::kinds::{Anything, ListOf, kinds};
use super::section::section;
use super::{Spanned, SyntaxReader, faults};
use crate::mapping::schema::{map_of, text};
use crate::yaml::{Kind, Node};
use serde_json::{Value, json};

/// The key under which a fragment is used.
pub(crate) const USE: &str = "$use";

section! {
    /// A named block.
    FragmentDecl is "a fragment", defines "fragment" {
        name name: Spanned<String>,
        /// Its arguments: names, or `{name: value}` with the value of uses that give none. In the
        /// block, `<name>` is the argument, alone or within a text.
        default takes: ListOf<Parameter>,
        /// The block: keys of a map, elements of a list, or one value.
        required gives: Anything,
    }
}

/// An argument that a fragment takes.
#[derive(Clone, Debug)]
pub(crate) struct ParameterDecl {
    pub name: Spanned<String>,
    pub default: Option<Node>,
}

kinds! {
    /// `name` or `{name: default}`
    Parameter -> ParameterDecl, |_, node, reader| {
        let (name, default) = match &node.kind {
            Kind::Map(entries) if entries.len() == 1 => {
                (SyntaxReader::key(&entries[0].0), Some(entries[0].1.clone()))
            }
            _ => (reader.text(node)?, None),
        };
        if !is_parameter(&name.value) {
            reader.findings.push(faults::parameter_name(&name));
            return None;
        }
        Some(ParameterDecl { name, default })
    }, |_| json!({"anyOf": [
        text(), {"type": "object", "minProperties": 1, "maxProperties": 1},
    ]});
}

/// Returns whether a text can be the name of an argument.
pub(crate) fn is_parameter(name: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    name.starts_with(|letter: char| letter.is_ascii_alphabetic()) && name.chars().all(is_part)
}

/// Returns the schema of a use: the name of a fragment, or the name with arguments.
pub(crate) fn use_schema() -> Value {
    let with = json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": map_of(&json!({}))});
    json!({
        "description": "Stands for the block of a fragment: its name, or `{name: {argument: value}}`.",
        "anyOf": [text(), with],
    })
}
