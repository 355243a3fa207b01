//! The descriptions of fields in the documents. Contracts do not contain them, because they have no
//! use at run time. If a guess needs them, the documents are parsed again.

use super::SideDocument;
use crate::contract::{Field, TypeKind, Types};
use crate::diagnostic::{Findings, Sources, Span};
use crate::yaml::{self, Kind, Node};
use std::cell::OnceCell;
use std::collections::HashMap;

pub(super) struct Descriptions<'s> {
    sides: &'s [SideDocument; 2],
    /// Sources that the spans of the contracts refer to.
    sources: &'s Sources,
    by_place: OnceCell<HashMap<String, HashMap<u32, String>>>,
}

impl<'s> Descriptions<'s> {
    pub(super) fn new(sides: &'s [SideDocument; 2], sources: &'s Sources) -> Descriptions<'s> {
        Descriptions { sides, sources, by_place: OnceCell::new() }
    }

    /// Returns the description of a field, otherwise of its type.
    pub(super) fn get(&self, types: &Types, field: &Field) -> Option<&str> {
        let of_type = match &field.ty.kind {
            TypeKind::Named(reference) => self.at(types.by_id(reference.id).span),
            _ => None,
        };
        self.at(field.span).or(of_type)
    }

    /// Returns the description of a field itself.
    pub(super) fn of_field(&self, field: &Field) -> Option<&str> {
        self.at(field.span)
    }

    fn at(&self, key: Span) -> Option<&str> {
        // Parsed on first use, because only guesses need descriptions.
        let files = self.by_place.get_or_init(|| collect_descriptions(self.sides));
        files.get(self.sources.name(key.file))?.get(&key.start).map(String::as_str)
    }
}

fn collect_descriptions(sides: &[SideDocument; 2]) -> HashMap<String, HashMap<u32, String>> {
    let mut files = HashMap::new();
    for (name, bytes) in sides.iter().flat_map(|side| &side.files) {
        let (mut sources, mut findings) = (Sources::new(), Findings::new());
        if let Some(root) = yaml::read_document(&mut sources, name, bytes, &mut findings) {
            let places: &mut HashMap<u32, String> = files.entry(name.clone()).or_default();
            collect(&root, places);
        }
    }
    files
}

/// Collects the `description` of every map, by the position of the key before the map.
fn collect(root: &Node, places: &mut HashMap<u32, String>) {
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        match &node.kind {
            Kind::Map(entries) => {
                for (key, value) in entries.iter() {
                    let text = value.get("description").or_else(|| value.get("title")).and_then(Node::as_str);
                    if let Some(text) = text {
                        // Fields are identified by the position of their name.
                        places.insert(key.span.start, text.to_owned());
                    }
                    open.push(value);
                }
            }
            Kind::Seq(items) => open.extend(items.iter()),
            _ => {}
        }
    }
}
