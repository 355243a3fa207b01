//! The language of mapping files: the syntax tree, its reader and its JSON Schema.
//!
//! Each map of the language is declared once by [`section::section`]; the reader, the known keys of
//! messages and the schema for editors follow from the declaration. Irregular forms have a
//! hand-written [`section::Read`]. There is one file per part of the language. `docs/manual`
//! is the manual and has an example of every form.
//!
//! Reading checks form only: unknown and missing keys, wrong kinds, words outside a closed list.
//! Later checks on the entire program decide whether names exist and types fit. A part with an
//! error is reported and omitted, so that one slip does not hide others. The errors prevent the
//! incomplete program from being compiled.

mod archive;
mod check;
mod decide;
mod event;
mod example;
mod expr;
mod faults;
mod fragment;
mod function;
mod kinds;
mod manifest;
mod notes;
mod paging;
mod policy;
mod route;
mod section;
mod shape;
mod step;

pub(crate) use archive::*;
pub(crate) use check::*;
pub(crate) use decide::*;
pub(crate) use event::*;
pub(crate) use example::*;
pub(crate) use expr::*;
pub(crate) use fragment::*;
pub(crate) use function::FunctionUse;
pub(crate) use manifest::*;
pub(crate) use notes::*;
pub(crate) use paging::*;
pub(crate) use policy::*;
pub(crate) use route::*;
pub(crate) use shape::*;
pub(crate) use step::*;

use super::schema::{Sides, map_of, text};
use crate::diagnostic::{Findings, Span};
use crate::yaml::{Key, Kind, Node};
use kinds::{EntriesOf, ListOf, MapOf, Text, kinds};
use section::{Read, section};
use serde_json::{Value, json};

/// A value and its span in the source.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<T> {
    pub value: T,
    pub span: Span,
}

/// All files of a pack, parsed.
#[derive(Debug)]
pub(crate) struct ProgramDecl {
    pub manifest: Manifest,
    pub shapes: Vec<ShapeDecl>,
    pub routes: Vec<RouteDecl>,
    pub reasons: Vec<ReasonDecl>,
    pub archives: Vec<ArchiveDecl>,
    pub harvests: Vec<HarvestDecl>,
    pub events: Vec<EventDecl>,
    pub examples: Vec<ExampleDecl>,
}

section! {
    /// A mapping file.
    FileDecl is "a mapping file" {
        /// Version of the language.
        filled version("mapping"): Version,
        /// Named blocks that several places of the pack use, by name.
        optional fragments: ReadFragments,
        /// Lenses between a type of the old side and a type of the new one, by name; each works in
        /// both directions.
        default shapes: EntriesOf<NamedShapeKeys>,
        /// How each operation of either side is answered.
        default routes: Routes,
        /// Texts for people, by name and language; `{name}` is a placeholder.
        default reasons: EntriesOf<ReasonDecl>,
        /// Data that the gateway stores for clients, by name.
        default archives: EntriesOf<ArchiveDecl>,
        /// Backfills of archives from a live side, by name.
        default harvests: EntriesOf<HarvestKeys>,
        /// Translation of each event of the sending side.
        default events: ListOf<EventDecl>,
        /// Requests with their expected results: the tests of the pack.
        default examples: ListOf<ExampleDecl>,
    }
}

/// Reads one mapping file and appends its contents to a program.
pub(super) fn file(root: &Node, program: &mut ProgramDecl, findings: &mut Findings) {
    let mut reader = SyntaxReader { sides: program.manifest.sides.clone(), findings };
    let key = Key { name: String::new(), span: root.span };
    let Some(file) = FileDecl::read(&key, root, &mut reader) else { return };
    let FileDecl {
        version: (),
        fragments: None | Some(()),
        shapes,
        routes,
        reasons,
        archives,
        harvests,
        events,
        examples,
    } = file;
    program.shapes.extend(shapes);
    program.routes.extend(routes);
    program.reasons.extend(reasons);
    program.archives.extend(archives);
    program.harvests.extend(harvests);
    program.events.extend(events);
    program.examples.extend(examples);
}

/// Returns the fragments of a mapping file, without findings: [`file`] reports them.
pub(super) fn fragments(root: &Node, manifest: &Manifest) -> Vec<FragmentDecl> {
    let mut discarded = Findings::new();
    let mut reader = SyntaxReader { sides: manifest.sides.clone(), findings: &mut discarded };
    let Some(entries) = root.get("fragments").and_then(Node::as_map) else { return Vec::new() };
    entries.iter().filter_map(|(key, node)| FragmentDecl::read(key, node, &mut reader)).collect()
}

kinds! {
    /// The version of the language. The only version is 1.
    Version -> (), |_, node, reader| {
        if !matches!(&node.kind, Kind::Number(text) if text == "1") {
            reader.findings.push(faults::version(node.span));
        }
        Some(())
    }, |_| json!({"const": 1});
    /// Fragments, of which the uses have been replaced before.
    ReadFragments -> (), |key, node, reader| EntriesOf::<FragmentDecl>::read(key, node, reader).map(drop),
        EntriesOf::<FragmentDecl>::schema;
}

/// One entry of `reasons:`.
#[derive(Clone, Debug)]
pub(crate) struct ReasonDecl {
    pub name: Spanned<String>,
    /// Language → text with `{placeholder}`s.
    pub texts: Vec<(Spanned<String>, Spanned<String>)>,
}

impl Read for ReasonDecl {
    type Output = ReasonDecl;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<ReasonDecl> {
        let texts = MapOf::<Text>::read(key, node, reader)?;
        Some(ReasonDecl { name: SyntaxReader::key(key), texts })
    }

    fn schema(_: Sides<'_>) -> Value {
        map_of(&text())
    }
}

/// A place: member names from the enclosing object down. A bare word is one name; a text that
/// starts with `$` is a singular JSONPath of names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FieldPlace(pub Vec<String>);

/// A side's name, resolved: 0 is old, 1 is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SideRef {
    pub side: usize,
    pub span: Span,
}

/// Reader state: the names of the sides, and the findings.
pub(crate) struct SyntaxReader<'a> {
    sides: [Spanned<String>; 2],
    findings: &'a mut Findings,
}

/// A value of a side, with its key.
type SideEntry<'n> = Option<(&'n Key, &'n Node)>;

impl SyntaxReader<'_> {
    fn text(&mut self, node: &Node) -> Option<Spanned<String>> {
        let value = node.text(self.findings)?.to_owned();
        Some(Spanned { value, span: node.span })
    }

    fn whole(&mut self, node: &Node, range: std::ops::RangeInclusive<u64>) -> Option<Spanned<i64>> {
        let value = node.whole(range, self.findings)?;
        Some(Spanned { value: value as i64, span: node.span })
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
    fn by_side<'n>(&mut self, node: &'n Node, what: &str, optional: bool) -> Option<[SideEntry<'n>; 2]> {
        let mut found = [None, None];
        for (key, value) in node.map(self.findings)? {
            if let Some(side) = self.side(&key.name, key.span) {
                found[side.side] = Some((key, value));
            }
        }
        for (side, value) in found.iter().enumerate() {
            if value.is_none() && !optional {
                self.findings.push(faults::missing_side(what, &self.sides[side].value, node.span));
            }
        }
        Some(found)
    }

    /// Reads `{side: {…}}` and returns the valid lines of both sides.
    fn lines_by_side<T>(
        &mut self,
        node: &Node,
        mut line: impl FnMut(&Key, &Node, SideRef, &mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut lines = Vec::new();
        for (key, node) in node.map(self.findings)? {
            let Some(side) = self.side(&key.name, key.span) else { continue };
            for (key, value) in node.map(self.findings).unwrap_or_default() {
                lines.extend(line(key, value, side, self));
            }
        }
        Some(lines)
    }

    /// Reads a place: one name, or a JSONPath of names.
    fn place(&mut self, text: &str, span: Span) -> Option<Spanned<FieldPlace>> {
        let names = if text.starts_with('$') { names_of_path(text) } else { Some(vec![text.to_owned()]) };
        if names.is_none() {
            self.findings.push(faults::place(text, span));
        }
        names.map(|names| Spanned { value: FieldPlace(names), span })
    }

    /// Reads a place from a value.
    fn place_of(&mut self, node: &Node) -> Option<Spanned<FieldPlace>> {
        let text = self.text(node)?;
        self.place(&text.value, text.span)
    }

    /// Warns about a keyword in quotes. `meant` describes how to write the text itself.
    fn warn_of_quotes(&mut self, node: &Node, words: &[&str], meant: &str) {
        if let Kind::String(word, crate::yaml::TextStyle::Quoted) = &node.kind
            && words.contains(&word.as_str())
        {
            self.findings.push(faults::quoted_word(word, meant, node.span));
        }
    }

    fn key(key: &Key) -> Spanned<String> {
        Spanned { value: key.name.clone(), span: key.span }
    }
}

/// Returns the schema of a mapping file, without its definitions.
pub(super) fn file_schema(sides: Sides<'_>) -> Value {
    FileDecl::definition(sides)
}

/// Returns the shared definitions of mapping files.
pub(super) fn definitions(sides: Sides<'_>) -> Value {
    json!({
        "status": super::schema::status(),
        "policy": RefusePolicyDecl::definition(sides),
        "place": super::schema::place(),
        "shape": NamedShapeKeys::definition(sides),
        "shapeInPlace": ShapeLines::definition(sides),
        "shapeUse": ShapeUse::definition(),
        "conversion": ConversionUse::definition(),
        "function": function::definition(),
        "pair": PairDecl::definition(sides),
        "serve": ServeDecl::definition(sides),
        "paging": PagedRoute::definition(sides),
        "body": BodyDecl::definition(sides),
        "sentences": kinds::OneOrList::<Text>::schema(sides),
        "verdict": super::schema::words(VERDICTS),
        "outcome": OutcomeKeys::definition(sides),
        "answer": AnswerDecl::definition(sides),
        "decide": DecideDecl::definition(sides),
        "check": CheckDecl::definition(sides),
        "predicate": PredicateDecl::definition(sides),
        "step": StepDecl::definition(sides),
        "action": StepActionDecl::definition(sides),
        "onFail": OnFailDecl::definition(sides),
        "value": ExprDecl::definition(sides),
        "exampleAnswer": ExampleAnswerDecl::definition(sides),
        "exampleCall": ExampleCallDecl::definition(sides),
        "routeExample": RouteExampleDecl::definition(sides),
        "shapeExample": ShapeExampleDecl::definition(sides),
        "harvestExample": HarvestExampleKeys::definition(sides),
        "event": EventDecl::definition(sides),
        "archive": ArchiveDecl::definition(sides),
        "harvest": HarvestKeys::definition(sides),
    })
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
