//! Converts YAML trees to the syntax tree of the language. Checks form only: unknown and missing
//! keys, wrong kinds, words outside a closed list. Later checks on the entire program decide
//! whether names exist and types fit.
//!
//! There is one file per part of the language. A part with an error is reported and omitted, so
//! that one slip does not hide others. The errors prevent the incomplete program from being
//! compiled.

mod archive;
mod event;
mod example;
mod expr;
mod faults;
pub(super) mod keys;
mod manifest;
mod paging;
mod policy;
mod route;
mod shape;
mod step;

use super::ast::{FieldPlace, Manifest, ProgramDecl, ReasonDecl, SideRef, Spanned};
use crate::diagnostic::{Findings, Span};
use crate::yaml::{Fields, Key, Keys, Kind, Node};

/// Reader state: the names of the sides, and the findings.
pub(super) struct SyntaxReader<'a> {
    sides: [Spanned<String>; 2],
    findings: &'a mut Findings,
}

/// Returns the keywords of conditions.
pub(super) fn predicates() -> impl Iterator<Item = &'static str> {
    step::PREDICATES.iter().map(|(word, _)| *word)
}

/// Reads `pack.yaml`. Returns `None` if the name, the sides, the contracts or the error format
/// cannot be read.
pub(super) fn manifest(root: &Node, findings: &mut Findings) -> Option<Manifest> {
    manifest::parse_manifest(root, findings)
}

/// Reads one mapping file and appends its contents to a program.
pub(super) fn file(root: &Node, program: &mut ProgramDecl, findings: &mut Findings) {
    let mut reader = SyntaxReader { sides: program.manifest.sides.clone(), findings };
    // Sections are independent of each other, so an error in one does not stop the next.
    let Some(fields) = Fields::parse(root, &keys::FILE, reader.findings) else { return };
    if let Some(version) = fields.get("mapping") {
        reader.version(version);
    }
    for (key, value) in reader.map_of(fields.get("shapes")) {
        program.shapes.extend(reader.shape(Some(key), value));
    }
    for value in reader.list_of(fields.get("routes")) {
        program.routes.extend(reader.route(value));
    }
    for (key, value) in reader.map_of(fields.get("reasons")) {
        program.reasons.extend(reader.reason(key, value));
    }
    for (key, value) in reader.map_of(fields.get("archives")) {
        program.archives.extend(reader.archive(key, value));
    }
    for (key, value) in reader.map_of(fields.get("harvests")) {
        program.harvests.extend(reader.harvest(key, value));
    }
    for value in reader.list_of(fields.get("events")) {
        program.events.extend(reader.event(value));
    }
    for value in reader.list_of(fields.get("examples")) {
        program.examples.extend(reader.example(value));
    }
}

impl SyntaxReader<'_> {
    /// Checks the version of the language. The only version is 1.
    fn version(&mut self, node: &Node) {
        if !matches!(&node.kind, Kind::Number(text) if text == "1") {
            self.findings.push(faults::version(node.span));
        }
    }

    fn fields<'n>(&mut self, node: &'n Node, keys: &Keys) -> Option<Fields<'n>> {
        Fields::parse(node, keys, self.findings)
    }

    /// Returns the entries of a map, or an empty slice if the key is absent or its value is not a
    /// map.
    fn map_of<'n>(&mut self, node: Option<&'n Node>) -> &'n [(Key, Node)] {
        node.and_then(|n| n.map(self.findings)).unwrap_or(&[])
    }

    /// Returns the items of a list, or an empty slice if the key is absent or its value is not a
    /// list.
    fn list_of<'n>(&mut self, node: Option<&'n Node>) -> &'n [Node] {
        node.and_then(|n| n.list(self.findings)).unwrap_or(&[])
    }

    fn text(&mut self, node: &Node) -> Option<Spanned<String>> {
        let value = node.text(self.findings)?.to_owned();
        Some(Spanned { value, span: node.span })
    }

    fn text_of(&mut self, node: Option<&Node>) -> Option<Spanned<String>> {
        node.and_then(|n| self.text(n))
    }

    fn texts(&mut self, node: Option<&Node>) -> Vec<Spanned<String>> {
        self.list_of(node).iter().filter_map(|n| self.text(n)).collect()
    }

    fn whole(&mut self, node: &Node, range: std::ops::RangeInclusive<u64>) -> Option<Spanned<i64>> {
        let value = node.whole(range, self.findings)?;
        Some(Spanned { value: value as i64, span: node.span })
    }

    /// Reads an HTTP status. Interim statuses (1xx) are no final responses.
    fn status(&mut self, node: &Node) -> Option<Spanned<i64>> {
        self.whole(node, 200..=599)
    }

    /// Reads an HTTP status from a key.
    fn status_key(&mut self, key: &Key) -> Option<Spanned<i64>> {
        match key.name.parse() {
            Ok(value) if (200..=599).contains(&value) => Some(Spanned { value, span: key.span }),
            _ => {
                self.findings.push(faults::status(&key.name, key.span));
                None
            }
        }
    }

    /// Resolves the name of a side.
    fn side(&mut self, name: &str, span: Span) -> Option<SideRef> {
        let side = self.sides.iter().position(|side| side.value == name);
        if side.is_none() {
            self.findings.push(faults::unknown_side(name, span, &self.sides));
        }
        side.map(|side| SideRef { side, span })
    }

    /// Reads a map with one entry per side. Reports missing sides unless `optional`.
    fn by_side<'n>(&mut self, node: &'n Node, what: &str, optional: bool) -> [Option<&'n Node>; 2] {
        let mut found = [None, None];
        let Some(entries) = node.map(self.findings) else { return found };
        for (key, value) in entries {
            if let Some(side) = self.side(&key.name, key.span) {
                found[side.side] = Some(value);
            }
        }
        for (side, value) in found.iter().enumerate() {
            if value.is_none() && !optional {
                self.findings.push(faults::missing_side(what, &self.sides[side].value, node.span));
            }
        }
        found
    }

    /// Reads a text for each side.
    fn texts_by_side(&mut self, node: &Node, what: &str) -> Option<[Spanned<String>; 2]> {
        let [old, new] = self.by_side(node, what, false);
        Some([self.text(old?)?, self.text(new?)?])
    }

    /// Reads a place: one name, or a JSONPath of names.
    fn place(&mut self, text: &str, span: Span) -> Option<Spanned<FieldPlace>> {
        let names = if text.starts_with('$') { names_of_path(text) } else { Some(vec![text.to_owned()]) };
        if names.is_none() {
            self.findings.push(faults::place(text, span));
        }
        names.map(|names| Spanned { value: FieldPlace(names), span })
    }

    fn key(key: &Key) -> Spanned<String> {
        Spanned { value: key.name.clone(), span: key.span }
    }

    fn reason(&mut self, key: &Key, node: &Node) -> Option<ReasonDecl> {
        let mut texts = Vec::new();
        for (language, text) in node.map(self.findings)? {
            texts.extend(self.text(text).map(|text| (Self::key(language), text)));
        }
        Some(ReasonDecl { name: Self::key(key), texts })
    }
}

/// Returns the member names of a singular JSONPath, or `None` if it contains anything else.
fn names_of_path(text: &str) -> Option<Vec<String>> {
    use jsonpath_rust::parser::model::{Segment, Selector};
    let query = jsonpath_rust::parser::parse_json_path(text).ok()?;
    let names: Option<Vec<String>> = query
        .segments
        .iter()
        .map(|segment| match segment {
            Segment::Selector(Selector::Name(name)) => Some(unquote(name)),
            _ => None,
        })
        .collect();
    names.filter(|names| !names.is_empty())
}

/// Removes the quotes that the JSONPath parser retains in names in brackets.
pub(super) fn unquote(name: &str) -> String {
    let inner = |quote| name.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('\'').or_else(|| inner('"')).unwrap_or(name).to_owned()
}
