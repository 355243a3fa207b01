//! Writes accepted lines into the mapping files: into the shapes of their types, else into a new shape
//! with the routes that use it. The result compiles; a line that prevents that is not written.

use super::evidence::NULL_IS_ABSENT;
use super::model::{Learned, LearnedLine};
use crate::contract::{Contracts, Object, Operation, Type, TypeKind, assignable};
use crate::diagnostic::{Findings, Severity, Sources};
use crate::mapping::Compiler;
use crate::mapping::fragments::has_use;
use crate::mapping::load::{MAPPING_SUFFIX, PackSource};
use crate::yaml::{self, Key, Kind, Node};
use std::collections::{BTreeMap, BTreeSet};
use switchback_plan::Message;

/// Why a line cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AcceptError(String);

/// The result of accepting lines.
#[derive(Debug, Default)]
pub struct Acceptance {
    /// Changed and new files: paths within the pack, and texts.
    pub files: BTreeMap<String, String>,
    /// Ids of the written lines.
    pub written: Vec<String>,
    /// Ids of the other lines, with the reason.
    pub rejected: Vec<(String, AcceptError)>,
}

/// Accepts the lines with these ids. Only lines that compile are written.
///
/// # Errors
///
/// The first error of the pack, which must compile before it is changed.
pub fn accept(
    source: &PackSource,
    learned: &Learned,
    ids: &BTreeSet<String>,
) -> Result<Acceptance, AcceptError> {
    let mut compiler = Compiler::default();
    let compiled = compiler.compile(source);
    let Some(contracts) = compiled.contracts.as_ref().filter(|_| compiled.pack.is_some()) else {
        return Err(first_error(&compiled.findings));
    };
    let lines: Vec<&LearnedLine> = learned.lines.iter().filter(|line| ids.contains(&line.id)).collect();
    let mut writer = Writer { source, learned, contracts, compiler, done: Acceptance::default() };
    writer.write(&lines);
    Ok(writer.done)
}

struct Writer<'w> {
    source: &'w PackSource,
    learned: &'w Learned,
    contracts: &'w Contracts,
    compiler: Compiler,
    done: Acceptance,
}

impl Writer<'_> {
    /// Writes the lines at once if they compile, else each half of them.
    fn write(&mut self, lines: &[&LearnedLine]) {
        let why = match self.with(lines) {
            Ok(files) => {
                let compiled = self.compiler.compile(&changed(self.source, &files));
                if compiled.pack.is_some() {
                    self.done.files = files;
                    self.done.written.extend(lines.iter().map(|line| line.id.clone()));
                    return;
                }
                first_error(&compiled.findings)
            }
            Err(why) => why,
        };
        match lines {
            [] => {}
            [line] => self.done.rejected.push((line.id.clone(), why)),
            lines => {
                let (one, other) = lines.split_at(lines.len() / 2);
                self.write(one);
                self.write(other);
            }
        }
    }

    /// Returns the changed files with the lines.
    fn with(&self, lines: &[&LearnedLine]) -> Result<BTreeMap<String, String>, AcceptError> {
        let mut files = self.done.files.clone();
        let mut without_shape: BTreeMap<&[String; 2], Vec<&LearnedLine>> = BTreeMap::new();
        for line in lines {
            if line.places.iter().any(|place| place.contains("[*]")) {
                let why = "it is within a list whose elements have no type of their own";
                return Err(AcceptError(why.to_owned()));
            }
            if !self.edit_shapes(line, &mut files)? {
                without_shape.entry(&line.types).or_default().push(line);
            }
        }
        for (types, lines) in without_shape {
            let text = self.new_shape(types, &lines)?;
            files.insert(format!("learned-{}{MAPPING_SUFFIX}", crate::init::slug(&types[0])), text);
        }
        Ok(files)
    }

    /// Writes the line into all shapes of its types. Returns whether there are any.
    fn edit_shapes(
        &self,
        line: &LearnedLine,
        files: &mut BTreeMap<String, String>,
    ) -> Result<bool, AcceptError> {
        let mut is_found = false;
        let all = changed(self.source, files);
        for (name, bytes) in all.files().iter().filter(|(name, _)| name.ends_with(MAPPING_SUFFIX)) {
            let (mut sources, mut findings) = (Sources::new(), Findings::new());
            let Some(root) = yaml::parse(&mut sources, name, bytes, &mut findings) else { continue };
            let Ok(text) = std::str::from_utf8(bytes) else { continue };
            let shapes = root.get("shapes").and_then(Node::as_map).unwrap_or_default();
            let sides = &self.learned.sides;
            let is_of = |shape: &&(Key, Node)| {
                let ty = |side: usize| {
                    shape.1.get("of").and_then(|of| of.get(&sides[side])).and_then(Node::as_str)
                };
                [0, 1].into_iter().all(|side| ty(side) == Some(&*line.types[side]))
            };
            let mut edits = Vec::new();
            for (key, shape) in shapes.iter().filter(is_of) {
                if !is_written_out(shape) {
                    let why = format!(
                        "the shape `{}` uses a text that stands elsewhere; write it by hand",
                        key.name
                    );
                    return Err(AcceptError(why));
                }
                edit(text, shape, line, sides, &mut edits);
                is_found = true;
            }
            if !edits.is_empty() {
                files.insert(name.clone(), apply(text, edits));
            }
        }
        Ok(is_found)
    }

    /// Returns a mapping file with a shape of two types, and the pairs that answer with them.
    fn new_shape(&self, types: &[String; 2], lines: &[&LearnedLine]) -> Result<String, AcceptError> {
        let [a, b] = self.learned.sides.each_ref().map(|side| name(side));
        let find = |side: usize| {
            let known = &self.contracts[side].types;
            let object = known.get(&types[side]).and_then(|named| known.at(&named.ty).object());
            let why = || AcceptError(format!("`{}` is no named object of the contract", types[side]));
            object.ok_or_else(why)
        };
        let [old, new] = [find(0)?, find(1)?];
        let shape = name(&types[0]);
        let routes: String =
            self.learned.links.iter().filter_map(|link| self.route(link, types, &shape)).collect();
        if routes.is_empty() {
            let why = format!("no pair of operations answers with `{}` and `{}`", types[0], types[1]);
            return Err(AcceptError(why));
        }
        let (same, only) = self.unchanged([old, new], lines)?;
        let mut text =
            format!("mapping: 1\nshapes:\n  {shape}:\n    of: {{{a}: {shape}, {b}: {}}}\n", name(&types[1]));
        if !same.is_empty() {
            text.push_str(&format!("    same: [{}]\n", same.join(", ")));
        }
        for section in ["rename", "copy"] {
            let all = lines.iter().filter(|line| (section == "copy") == line.is_copy);
            let all: Vec<String> = all.map(|line| line.render(&self.learned.sides)).collect();
            match section {
                _ if all.is_empty() => {}
                "copy" => text.push_str(&format!("    copy: {{{a}: {{{}}}}}\n", all.join(", "))),
                _ => text.push_str(&format!("    rename:\n      {}\n", all.join("\n      "))),
            }
        }
        if !only.is_empty() {
            text.push_str(&format!("    only: {{{a}: {{{}}}}}\n", only.join(", ")));
        }
        text.push_str(&format!("    rest: {{{b}: lost}}\nroutes:\n{routes}"));
        Ok(text)
    }

    /// Returns the members that both types have, and those that only the old one has.
    fn unchanged(
        &self,
        [old, new]: [&Object; 2],
        lines: &[&LearnedLine],
    ) -> Result<(Vec<String>, Vec<String>), AcceptError> {
        let (mut same, mut only) = (Vec::new(), Vec::new());
        let [to, from] = self.contracts.each_ref().map(|contract| &contract.types);
        let is_free = |member: &str| {
            let is_first = |place: &String| place.split('.').next() == Some(member);
            !lines.iter().any(|line| is_first(&line.places[0]))
        };
        for field in old.fields.iter().filter(|field| is_free(&field.name)) {
            let fits = new.field(&field.name).is_some_and(|other| {
                assignable(from.at(&other.ty), to.at(&field.ty), Some(Message::Answer)).is_ok()
                    && (other.required || !field.required)
            });
            match fits {
                true => same.push(name(&field.name)),
                false if !field.required => only.push(format!("{}: absent", name(&field.name))),
                false => {
                    let why = format!("`{}` is required and has no counterpart yet", field.name);
                    return Err(AcceptError(why));
                }
            }
        }
        Ok((same, only))
    }

    /// Returns the route of two operations that answer with these types, or with lists of them.
    fn route(&self, link: &super::model::OperationLink, types: &[String; 2], shape: &str) -> Option<String> {
        let operations: [&Operation; 2] = [0, 1].map(|side: usize| {
            let all = self.contracts[side].operations.iter();
            all.clone()
                .find(|one| one.key.to_string() == link.operations[side])
                .unwrap_or(&self.contracts[side].operations[0])
        });
        let answers = operations.map(|operation| operation.success_bodies().next());
        let named = |ty: &Type, side: usize| matches!(&ty.kind, TypeKind::Named(reference) if *reference.name == *types[side]);
        let form = |side: usize| -> Option<bool> {
            let ty = answers[side]?;
            match &ty.kind {
                TypeKind::Array(array) => named(&array.items, side).then_some(true),
                _ => named(ty, side).then_some(false),
            }
        };
        let is_list = form(0)?;
        if form(1)? != is_list {
            return None;
        }
        let [a, b] = self.learned.sides.each_ref().map(|side| name(side));
        let keys = operations.map(|operation| format!("'{}'", operation.key));
        let mut text = format!("  - pair: {{{a}: {}, {b}: {}, front: {a}}}\n", keys[0], keys[1]);
        let variables = operations.map(|operation| operation.key.path.variables().collect::<Vec<_>>());
        let renamed: Vec<String> = variables[0]
            .iter()
            .zip(&variables[1])
            .filter(|(old, new)| old != new)
            .map(|(old, new)| format!("{}: {}", name(old), name(new)))
            .collect();
        if !renamed.is_empty() {
            text.push_str(&format!("    path: {{{}}}\n", renamed.join(", ")));
        }
        let has = |operation: &Operation, name: &str| operation.query.iter().any(|one| one.name == name);
        let query = operations[0].query.iter().filter(|one| has(operations[1], &one.name));
        let query: Vec<String> = query.map(|one| name(&one.name)).collect();
        if !query.is_empty() {
            text.push_str(&format!("    query: [{}]\n", query.join(", ")));
        }
        let shape = if is_list { format!("[{shape}]") } else { shape.to_owned() };
        Some(text + &format!("    response: {shape}\n"))
    }
}

impl LearnedLine {
    /// Renders the line as in `rename` or `copy`.
    pub fn render(&self, sides: &[String; 2]) -> String {
        let [old, new] = self.places.each_ref().map(|place| place_of(place));
        let [a, b] = sides.each_ref().map(|side| name(side));
        let mut more = String::new();
        if let Some(conversion) = &self.conversion {
            more.push_str(&format!(", as: {conversion}"));
            // Only some values were seen. Most conversions do not accept every other one.
            if conversion != NULL_IS_ABSENT {
                more.push_str(", else: error");
            }
        }
        let defaults = [&a, &b].into_iter().zip(&self.defaults);
        let defaults: Vec<String> =
            defaults.filter_map(|(side, value)| Some(format!("{side}: {}", value.as_ref()?))).collect();
        if !defaults.is_empty() {
            more.push_str(&format!(", default: {{{}}}", defaults.join(", ")));
        }
        match more.as_str() {
            "" => format!("{old}: {new}"),
            more => format!("{old}: {{{b}: {new}{more}}}"),
        }
    }
}

/// Returns a place as mappings write it.
fn place_of(place: &str) -> String {
    if place.contains('.') { format!("$.{place}") } else { name(place) }
}

/// Returns a name, in quotes where YAML could read anything else.
fn name(text: &str) -> String {
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && !matches!(text, "true" | "false" | "null" | "y" | "n" | "yes" | "no" | "on" | "off");
    if is_plain { text.to_owned() } else { super::records::quote(text) }
}

/// Returns the pack with other texts of some files.
fn changed(source: &PackSource, files: &BTreeMap<String, String>) -> PackSource {
    let kept = source.files().iter().filter(|(name, _)| !files.contains_key(name)).cloned();
    let new = files.iter().map(|(name, text)| (name.clone(), text.as_bytes().into()));
    PackSource::from_files(kept.chain(new).collect())
}

fn first_error(findings: &Findings) -> AcceptError {
    let all = findings.in_order();
    let error = all.into_iter().find(|one| one.severity == Severity::Error);
    AcceptError(error.map_or_else(String::new, |error| error.message.to_string()))
}

/// A replacement of a part of a text.
type TextEdit = (std::ops::Range<usize>, String);

fn apply(text: &str, mut edits: Vec<TextEdit>) -> String {
    let mut text = text.to_owned();
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    for (range, new) in edits {
        text.replace_range(range, &new);
    }
    text
}

/// Adds the edits that write a line into a shape. Other lines about its places are removed.
fn edit(text: &str, shape: &Node, line: &LearnedLine, sides: &[String; 2], edits: &mut Vec<TextEdit>) {
    let [old, new] = line.places.each_ref().map(|place| place_of(place));
    let is_place = |node: &str, place: &str| node == place || place_of(node) == place;
    if let (Some(same), true) = (shape.get("same").and_then(Node::as_seq), line.places[0] == line.places[1]) {
        let at = same.iter().position(|item| item.as_str().is_some_and(|name| is_place(name, &old)));
        edits.extend(at.map(|at| removal(text, &same.iter().map(range).collect::<Vec<_>>(), at)));
    }
    let only = shape.get("only");
    for (side, place) in [(0, &old), (1, &new)].into_iter().filter(|(side, _)| *side == 0 || !line.is_copy) {
        let Some(entries) = only.and_then(|only| only.get(&sides[side])).and_then(Node::as_map) else {
            continue;
        };
        if let Some(at) = entries.iter().position(|(key, _)| is_place(&key.name, place)) {
            edits.push(removal(text, &ranges(entries), at));
        }
    }
    let section = if line.is_copy { "copy" } else { "rename" };
    let (rendered, side) = (line.render(sides), name(&sides[0]));
    let known = shape
        .get(section)
        .filter(|_| !line.is_copy || shape.get(section).is_some_and(|copy| copy.get(&sides[0]).is_some()));
    let known = if line.is_copy { known.and_then(|copy| copy.get(&sides[0])) } else { known };
    if let Some((node, entries)) = known.and_then(|node| Some((node, node.as_map()?))) {
        if let Some((key, value)) = entries.iter().find(|(key, _)| is_place(&key.name, &old)) {
            let target = value.as_str().or_else(|| value.get(&sides[1]).and_then(Node::as_str));
            let conversion = value.get("as").map(|how| &text[range(how)]);
            let is_written = target.is_some_and(|target| is_place(target, &new))
                && line.conversion.as_deref() == conversion;
            // A line that states the same may state more, such as `shape:` or another `else:`.
            if !is_written {
                edits.push((key.span.start as usize..range(value).end, rendered));
            }
        } else {
            edits.push(insertion(text, node, &rendered));
        }
    } else if line.is_copy {
        edits.push(insertion(text, shape, &format!("copy: {{{side}: {{{rendered}}}}}")));
    } else {
        edits.push(insertion(text, shape, &format!("rename: {{{rendered}}}")));
    }
}

/// Returns whether a shape uses no alias and no fragment.
fn is_written_out(shape: &Node) -> bool {
    let mut copies = 0;
    shape.clone().each_span(&mut |span| copies += usize::from(span.file != shape.span.file));
    copies == 0 && !has_use(shape)
}

fn range(node: &Node) -> std::ops::Range<usize> {
    node.span.start as usize..node.span.end as usize
}

fn ranges(entries: &[(Key, Node)]) -> Vec<std::ops::Range<usize>> {
    entries.iter().map(|(key, value)| key.span.start as usize..range(value).end).collect()
}

/// Returns the edit that adds an entry in front of the others of a map.
fn insertion(text: &str, map: &Node, entry: &str) -> TextEdit {
    let start = range(map).start;
    if text[start..].starts_with('{') {
        let comma = if matches!(&map.kind, Kind::Map(entries) if entries.is_empty()) { "" } else { ", " };
        return (start + 1..start + 1, format!("{entry}{comma}"));
    }
    let column = start - text[..start].rfind('\n').map_or(0, |at| at + 1);
    (start..start, format!("{entry}\n{}", " ".repeat(column)))
}

/// Returns the edit that removes one of the entries of a list or map. The last one remains as an
/// empty collection.
fn removal(text: &str, all: &[std::ops::Range<usize>], at: usize) -> TextEdit {
    let one = &all[at];
    let range = match (all.get(at + 1), at.checked_sub(1)) {
        (Some(next), _) => one.start..next.start,
        (None, Some(before)) => all[before].end..one.end,
        (None, None) => one.clone(),
    };
    // A comment between two entries belongs to the next one.
    let after = one.end.max(range.start)..range.end;
    let comment = text[after.clone()].find('#').map_or(range.end, |comment| after.start + comment);
    (range.start..comment, String::new())
}
