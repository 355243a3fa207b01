//! Replaces uses of fragments by their blocks, before files are read. The compiler therefore checks
//! each use where it stands, and plans do not know fragments.
//!
//! A block lies in a copy of its file, so that a finding leads to the line of the fragment and to
//! the use.

use super::ast::{FragmentDecl, Spanned, USE, is_form, is_parameter};
use super::faults;
use crate::diagnostic::{Code, FileId, Finding, Findings, NameKind, Sources, Span, suggest};
use crate::yaml::{Key, Kind, Node, bounds, without_duplicates};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;

/// Sections that are no program: texts, and messages that may contain any key.
pub(super) const PLAIN_SECTIONS: [&str; 3] = ["fragments", "reasons", "examples"];

/// Maximum number of fragments inside one another.
const CHAIN_MAX: usize = 16;

/// The key of a literal.
const LITERAL: &str = "$value";

/// The fragments of a pack.
pub(super) struct Fragments {
    declared: Vec<FragmentDecl>,
    /// The placeholders in the block of each.
    blocks: Vec<Vec<Placeholder>>,
    used: Vec<bool>,
    /// The names of arguments that uses give to each.
    given: Vec<BTreeSet<String>>,
    /// The finding about each name that no fragment has, with all its uses.
    unknown: BTreeMap<String, Finding>,
    /// Number of values that uses have added.
    values: usize,
}

/// A placeholder in a block.
struct Placeholder {
    name: String,
    /// The text that contains it, and its place.
    text: String,
    span: Span,
}

/// A text between placeholders, or the name in a placeholder.
enum TextPart<'t> {
    Text(&'t str),
    Parameter(&'t str),
}

impl Fragments {
    /// Checks that the names are unique.
    pub(super) fn collect(declared: Vec<FragmentDecl>, findings: &mut Findings) -> Fragments {
        let mut known: HashMap<&str, Span> = HashMap::new();
        for fragment in &declared {
            if let Some(first) = known.insert(&fragment.name.value, fragment.name.span) {
                findings.push(faults::fragment_twice(&fragment.name, first));
            }
        }
        drop(known);
        let blocks = declared.iter().map(|fragment| {
            let mut block = Vec::new();
            placeholders(&fragment.gives, &mut |name, text, span| {
                block.push(Placeholder { name: name.to_owned(), text: text.to_owned(), span });
            });
            block
        });
        let (blocks, given) = (blocks.collect(), vec![BTreeSet::new(); declared.len()]);
        let used = vec![false; declared.len()];
        Fragments { declared, blocks, used, given, unknown: BTreeMap::new(), values: 0 }
    }

    /// Replaces the uses in a file.
    pub(super) fn expand(&mut self, root: &mut Node, sources: &mut Sources, findings: &mut Findings) {
        let Kind::Map(sections) = &mut root.kind else { return };
        let mut expansion = Expansion { fragments: self, sources, findings, open: Vec::new() };
        Arc::make_mut(sections).retain_mut(|(key, section)| {
            PLAIN_SECTIONS.contains(&key.name.as_str()) || expansion.expand(section, 1)
        });
    }

    /// Reports fragments without a use, and arguments and placeholders without each other. To be called
    /// after all files are expanded.
    pub(super) fn report(self, findings: &mut Findings) {
        findings.extend(self.unknown.into_values());
        for ((fragment, block), given) in self.declared.iter().zip(&self.blocks).zip(&self.given) {
            check_parameters(fragment, block, given, findings);
        }
        let unused = self.declared.iter().zip(&self.used).filter(|(_, used)| !**used);
        for (fragment, _) in unused {
            let Spanned { value, span } = &fragment.name;
            findings.push(
                Finding::warning(Code::Unused, *span, format!("nothing uses the fragment `{value}`"))
                    .help("remove it, or use it")
                    .with_uses(NameKind::Fragment, value),
            );
        }
    }
}

/// Returns whether a file uses a fragment.
pub(crate) fn has_use(node: &Node) -> bool {
    match &node.kind {
        Kind::Seq(items) => items.iter().any(has_use),
        Kind::Map(entries) => {
            entries.iter().any(|(key, value)| key.name == USE || is_misspelt(key) || has_use(value))
        }
        _ => false,
    }
}

/// Returns whether a key is nearly `$use`, and no form of a value.
fn is_misspelt(key: &Key) -> bool {
    key.name.starts_with('$') && !is_form(&key.name) && suggest(&key.name, [USE]).is_some()
}

/// Reports placeholders without an argument, and arguments without a placeholder. `given` are the names
/// that uses give: of two names that differ by a slip, theirs is the right one.
fn check_parameters(
    fragment: &FragmentDecl,
    block: &[Placeholder],
    given: &BTreeSet<String>,
    findings: &mut Findings,
) {
    let known: Vec<&str> = fragment.takes.iter().map(|parameter| parameter.name.value.as_str()).collect();
    let unknown = || block.iter().filter(|one| !known.contains(&one.name.as_str()));
    let mut explained = BTreeSet::new();
    for Spanned { value, span } in fragment.takes.iter().map(|parameter| &parameter.name) {
        if block.iter().any(|one| one.name == *value) {
            continue;
        }
        match suggest(value, unknown().map(|one| one.name.as_str())) {
            Some(near) if given.contains(near) => {
                findings.push(faults::misspelt_parameter(value, *span, near));
                explained.insert(near.to_owned());
            }
            // The placeholder is reported.
            Some(_) => {}
            None => findings.push(faults::unused_parameter(value, *span)),
        }
    }
    for one in unknown().filter(|one| !explained.contains(&one.name)) {
        findings.push(faults::unknown_placeholder(&one.name, &one.text, one.span, &known));
    }
}

/// Calls `see` with the name of each placeholder, and the text that contains it with its place.
fn placeholders(node: &Node, see: &mut impl FnMut(&str, &str, Span)) {
    let mut see_text = |text: &str, span: Span| {
        for part in text_parts(text) {
            if let TextPart::Parameter(name) = part {
                see(name, text, span);
            }
        }
    };
    match &node.kind {
        Kind::String(text, _) => see_text(text, node.span),
        Kind::Seq(items) => items.iter().for_each(|item| placeholders(item, see)),
        Kind::Map(entries) => {
            entries.iter().for_each(|(key, _)| see_text(&key.name, key.span));
            entries.iter().for_each(|(_, value)| placeholders(value, see));
        }
        _ => {}
    }
}

/// Divides a text at its placeholders, `<name>`.
fn text_parts(mut text: &str) -> Vec<TextPart<'_>> {
    let mut parts = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find('<').map(|at| from + at) {
        let name = text[start + 1..].split_once('>').map(|(name, _)| name).filter(|name| is_parameter(name));
        let Some(name) = name else {
            from = start + 1;
            continue;
        };
        parts.extend([TextPart::Text(&text[..start]), TextPart::Parameter(name)]);
        (text, from) = (&text[start + name.len() + 2..], 0);
    }
    parts.push(TextPart::Text(text));
    parts
}

/// The arguments of a use, by name.
type Arguments = HashMap<String, Node>;

struct Expansion<'e> {
    fragments: &'e mut Fragments,
    sources: &'e mut Sources,
    findings: &'e mut Findings,
    /// The fragments around, with the places of their uses.
    open: Vec<(usize, Span)>,
}

impl Expansion<'_> {
    /// Replaces the uses in a value. Returns whether the value remains: one that cannot be replaced
    /// is left out, so that only its own finding is reported.
    fn expand(&mut self, node: &mut Node, depth: usize) -> bool {
        if depth > bounds::DEPTH_MAX {
            self.findings.push(faults::fragments_too_deep(node.span, bounds::DEPTH_MAX));
            return false;
        }
        // What is written without a use stays shared with the cached tree. Blocks are walked for their
        // depth.
        if self.open.is_empty() && !has_use(node) {
            return true;
        }
        match &mut node.kind {
            Kind::Seq(items) => {
                let items = Arc::make_mut(items);
                let mut expanded = Vec::with_capacity(items.len());
                for mut item in mem::take(items) {
                    let is_use = is_use(&item);
                    if !self.expand(&mut item, depth + 1) {
                        continue;
                    }
                    push_item(&mut expanded, item, is_use);
                }
                *items = expanded;
                true
            }
            Kind::Map(entries) if entries.iter().any(|(key, _)| key.name == LITERAL) => true,
            Kind::Map(entries) => {
                let entries = Arc::make_mut(entries);
                entries.retain(|(key, _)| !self.report_misspelt(key));
                let used = entries.iter().position(|(key, _)| key.name == USE);
                let block = used.map(|at| (at, entries.remove(at)));
                entries.retain_mut(|(_, value)| self.expand(value, depth + 1));
                let Some((at, (key, used))) = block else { return true };
                let block = self.block(&key, &used, depth);
                if entries.is_empty() {
                    return block.map(|block| *node = block).is_some();
                }
                // The keys that are written at the place take precedence.
                match block.map(|block| (block.span, block.kind)) {
                    None => {}
                    Some((_, Kind::Map(block))) => {
                        let own: Vec<_> = entries.iter().map(|(key, _)| key.name.clone()).collect();
                        let block = block.iter().filter(|(key, _)| !own.contains(&key.name)).cloned();
                        let at = at.min(entries.len());
                        entries.splice(at..at, block);
                    }
                    Some((span, _)) => self.findings.push(faults::fragment_of_no_keys(key.span, span)),
                }
                true
            }
            _ => true,
        }
    }

    /// Reports a key that is nearly `$use`, and returns whether it is one.
    fn report_misspelt(&mut self, key: &Key) -> bool {
        let is_misspelt = is_misspelt(key);
        if is_misspelt {
            self.findings.push(faults::misspelt_use(key));
        }
        is_misspelt
    }

    /// Returns the block that a use stands for.
    fn block(&mut self, key: &Key, used: &Node, depth: usize) -> Option<Node> {
        let (name, given): (_, &[(Key, Node)]) = match &used.kind {
            Kind::String(name, _) => (Spanned { value: name.clone(), span: used.span }, &[]),
            Kind::Map(entries) if entries.len() == 1 => {
                let (key, arguments) = &entries[0];
                (Spanned { value: key.name.clone(), span: key.span }, arguments.map(self.findings)?)
            }
            _ => {
                self.findings.push(faults::fragment_use(used.span));
                return None;
            }
        };
        let declared = &self.fragments.declared;
        let Some(index) = declared.iter().position(|fragment| fragment.name.value == name.value) else {
            let known = declared.iter().map(|known| (known.name.value.as_str(), known.name.span));
            let known: Vec<_> = known.collect();
            self.fragments
                .unknown
                .entry(name.value.clone())
                .and_modify(|finding| finding.add_use(name.span))
                .or_insert_with(|| faults::unknown_fragment(&name, &known));
            return None;
        };
        self.fragments.used[index] = true;
        if let Some(first) = self.open.iter().position(|(open, _)| *open == index) {
            let chain = self.open[first..].iter().map(|(open, _)| &self.fragments.declared[*open].name.value);
            let chain: Vec<&str> = chain.chain([&name.value]).map(String::as_str).collect();
            self.findings.push(faults::fragment_circle(&name, &chain));
            return None;
        }
        if self.open.len() == CHAIN_MAX {
            self.findings.push(faults::fragments_too_deep(name.span, CHAIN_MAX));
            return None;
        }
        let arguments = self.arguments(index, &name, given)?;
        // Too many values are reported once.
        if self.fragments.values > bounds::NODES_MAX {
            return None;
        }
        let mut block = self.copy(&self.fragments.declared[index].gives.clone(), key.span);
        self.fill(&mut block, &arguments);
        if self.fragments.values > bounds::NODES_MAX {
            self.findings.push(faults::fragments_too_large(name.span, bounds::NODES_MAX));
            return None;
        }
        self.open.push((index, name.span));
        let remains = self.expand(&mut block, depth);
        self.open.pop();
        remains.then_some(block)
    }

    /// Returns the value of each argument, or `None` if it reports an error.
    fn arguments(
        &mut self,
        index: usize,
        name: &Spanned<String>,
        given: &[(Key, Node)],
    ) -> Option<Arguments> {
        let takes = &self.fragments.declared[index].takes;
        let block = &self.fragments.blocks[index];
        let is_in_block = |name: &str| block.iter().any(|one| one.name == name);
        let mark = self.findings.len();
        let mut arguments = Arguments::new();
        for (key, value) in given {
            arguments.insert(key.name.clone(), value.clone());
            self.fragments.given[index].insert(key.name.clone());
            // A name that the block has is misspelt under `takes:`, where it is reported.
            if !is_in_block(&key.name) && !takes.iter().any(|parameter| parameter.name.value == key.name) {
                let is_free = |free: &&str| given.iter().all(|(key, _)| key.name != **free);
                let free = takes.iter().map(|parameter| parameter.name.value.as_str()).filter(is_free);
                self.findings.push(faults::unknown_argument(key, &name.value, free.collect()));
            }
        }
        let is_misspelt = self.findings.errors_since(mark);
        for parameter in takes {
            let known = &parameter.name.value;
            match &parameter.default {
                _ if arguments.contains_key(known) => {}
                Some(default) => drop(arguments.insert(known.clone(), default.clone())),
                // The argument may be the one whose name is unknown.
                None if is_misspelt || !is_in_block(known) => {}
                None => self.findings.push(faults::missing_argument(name, &parameter.name)),
            }
        }
        (!self.findings.errors_since(mark)).then_some(arguments)
    }

    /// Returns a copy of a value whose text is used at `place`; of too many values, the last are
    /// null.
    fn copy(&mut self, node: &Node, place: Span) -> Node {
        if self.fragments.values > bounds::NODES_MAX {
            return Node { kind: Kind::Null, span: place };
        }
        let mut copies: Vec<(FileId, FileId)> = Vec::new();
        let mut node = node.clone();
        node.each_span(&mut |span| {
            self.fragments.values += 1;
            let known = copies.iter().find(|(of, _)| *of == span.file).map(|(_, copy)| *copy);
            let copy = known.unwrap_or_else(|| self.sources.add_copy(span.file, place));
            if known.is_none() {
                copies.push((span.file, copy));
            }
            span.file = copy;
        });
        node
    }

    /// Replaces the placeholders in a block.
    fn fill(&mut self, node: &mut Node, arguments: &Arguments) {
        match &mut node.kind {
            Kind::String(text, _) => {
                if let [TextPart::Text(""), TextPart::Parameter(name), TextPart::Text("")] =
                    text_parts(text).as_slice()
                    && let Some(argument) = arguments.get(*name)
                {
                    *node = self.copy(argument, node.span);
                } else if let Some(filled) = self.fill_text(text, node.span, arguments) {
                    *text = filled;
                }
            }
            Kind::Seq(items) => {
                let items = Arc::make_mut(items);
                let mut filled = Vec::with_capacity(items.len());
                for mut item in mem::take(items) {
                    let is_placeholder = item.as_str().is_some();
                    self.fill(&mut item, arguments);
                    push_item(&mut filled, item, is_placeholder);
                }
                *items = filled;
            }
            Kind::Map(entries) => {
                let (entries, mut is_renamed) = (Arc::make_mut(entries), false);
                for (key, value) in &mut *entries {
                    if let Some(name) = self.fill_text(&key.name, key.span, arguments) {
                        key.name = name;
                        is_renamed = true;
                    }
                    self.fill(value, arguments);
                }
                if is_renamed {
                    *entries = without_duplicates(mem::take(entries), false, self.findings);
                }
            }
            _ => {}
        }
    }

    /// Returns a text with arguments in place of its placeholders, or `None` without placeholders.
    fn fill_text(&mut self, text: &str, span: Span, arguments: &Arguments) -> Option<String> {
        let parts = text_parts(text);
        if parts.len() == 1 {
            return None;
        }
        let mut filled = String::with_capacity(text.len());
        for part in parts {
            match part {
                TextPart::Text(text) => filled.push_str(text),
                TextPart::Parameter(name) => match arguments.get(name) {
                    Some(Node { kind: Kind::String(text, _) | Kind::Number(text), .. }) => {
                        filled.push_str(text)
                    }
                    Some(other) => self.findings.push(faults::argument_in_text(name, other, span)),
                    // The declaration reports a placeholder without an argument.
                    None => filled.extend(["<", name, ">"]),
                },
            }
        }
        Some(filled)
    }
}

/// Returns whether a value is nothing but the use of a fragment.
fn is_use(node: &Node) -> bool {
    matches!(node.as_map(), Some([(key, _)]) if key.name == USE)
}

/// Adds an element to a list. A list that stands in place of an element becomes several.
fn push_item(items: &mut Vec<Node>, item: Node, is_replaced: bool) {
    match item.kind {
        Kind::Seq(several) if is_replaced => items.extend(several.iter().cloned()),
        _ => items.push(item),
    }
}

#[cfg(test)]
mod tests;
