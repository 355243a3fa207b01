//! Finds the forms that a schema permits at a place of a file, for descriptions of keys in editors.

use crate::yaml::{Key, Kind, Node};
use serde_json::Value;

/// A key or a value of a file, as the schema permits it.
#[derive(Debug)]
pub struct SchemaPlace<'t> {
    /// The key; `None` for a value.
    pub key: Option<&'t Key>,
    root: &'t Value,
    /// Forms of the value, or of the map around the key.
    forms: Vec<&'t Value>,
}

impl<'t> SchemaPlace<'t> {
    /// Finds the key or the value at a byte offset of a file. `schema` is the schema of the file.
    pub fn find(schema: &'t Value, file: &'t Node, offset: u32) -> Option<SchemaPlace<'t>> {
        let (mut node, mut forms) = (file, vec![schema]);
        loop {
            forms = permitted(schema, &forms, node);
            match &node.kind {
                Kind::Map(entries) => {
                    let entries = entries.iter();
                    let at = |(key, value): &&(Key, Node)| {
                        key.span.start <= offset && offset <= key.span.end.max(value.span.end)
                    };
                    let (key, value) = entries.rev().find(at)?;
                    if offset <= key.span.end {
                        return Some(SchemaPlace { key: Some(key), root: schema, forms });
                    }
                    forms = forms.into_iter().filter_map(|form| find_member(form, &key.name)).collect();
                    node = value;
                }
                Kind::Seq(items) => {
                    node = items.iter().rev().find(|item| item.span.start <= offset)?;
                    forms = forms.into_iter().filter_map(|form| form.get("items")).collect();
                }
                _ => return Some(SchemaPlace { key: None, root: schema, forms }),
            }
        }
    }

    /// Returns the listed texts that are possible in this place.
    pub fn words(&self) -> Vec<&'t str> {
        let forms: Vec<&Value> = match self.key {
            None => self.forms.clone(),
            Some(_) => self.forms.iter().filter_map(|form| form.get("propertyNames")).collect(),
        };
        let listed =
            alternatives(self.root, &forms).into_iter().filter_map(|form| form.get("enum")?.as_array());
        let mut words: Vec<&str> = Vec::new();
        for word in listed.flatten().filter_map(Value::as_str) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        words
    }

    /// Returns the description of a key that is possible in this place.
    pub fn describe(&self, name: &str) -> Option<&'t str> {
        let properties = self.forms.iter().filter_map(|form| form.get("properties")?.get(name));
        properties
            .flat_map(|property| [Some(property), follow(self.root, property)])
            .flatten()
            .find_map(|property| property.get("description")?.as_str())
    }
}

/// Returns the alternatives of some schemas that a map with these keys can be, or all of them if its
/// keys fit none.
fn permitted<'t>(root: &'t Value, forms: &[&'t Value], node: &Node) -> Vec<&'t Value> {
    let all = alternatives(root, forms);
    let fits = |form: &&Value| match &node.kind {
        Kind::Map(entries) => entries.iter().all(|(key, _)| find_member(form, &key.name).is_some()),
        Kind::Seq(_) => form.get("items").is_some(),
        _ => true,
    };
    let fitting: Vec<&Value> = all.iter().copied().filter(fits).collect();
    if fitting.is_empty() { all } else { fitting }
}

/// Returns the schemas that some schemas consist of, without references.
fn alternatives<'t>(root: &'t Value, forms: &[&'t Value]) -> Vec<&'t Value> {
    let mut all = Vec::new();
    let mut open = forms.to_vec();
    while let Some(form) = open.pop() {
        open.extend(follow(root, form));
        let parts = ["anyOf", "allOf"].iter().filter_map(|keyword| form.get(keyword)?.as_array());
        let before = open.len();
        open.extend(parts.flatten());
        // A map may list conditions beside its members.
        if open.len() == before || form.get("properties").is_some() {
            all.push(form);
        }
    }
    all
}

fn follow<'t>(root: &'t Value, form: &Value) -> Option<&'t Value> {
    root.pointer(form.get("$ref")?.as_str()?.strip_prefix('#')?)
}

/// Returns the schema of a member.
fn find_member<'t>(form: &'t Value, name: &str) -> Option<&'t Value> {
    let property = form.get("properties").and_then(|properties| properties.get(name));
    property.or_else(|| form.get("additionalProperties").filter(|others| others.is_object()))
}
