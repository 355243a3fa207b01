//! Builds the tree from parser events. Both the parser and the builder are iterative, so the
//! nesting depth is limited by a counter, not by the stack. This module reads strictly;
//! [`super::lenient`] contains the differences of a lenient reading.

use super::anchors::Anchors;
use super::bounds::{STRICT, YamlLimits};
use super::scalar::{PlainScalar, json_number, plain};
use super::{Key, Kind, Node, TextStyle, faults};
use crate::diagnostic::{FileId, Findings, Span};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

/// Parses a text; see [`super::read`].
///
/// The values of aliases lie in copies of the file, of which `next` is the first. Returns the
/// aliases as well, one for each copy.
pub(super) fn tree(
    text: &str,
    file: FileId,
    next: FileId,
    findings: &mut Findings,
) -> (Option<Node>, Vec<Span>) {
    let mut builder = TreeBuilder::new(&STRICT, Some(next), findings);
    let root = strict_root(text, file, &mut builder);
    (root, builder.aliases)
}

fn strict_root(text: &str, file: FileId, builder: &mut TreeBuilder<'_>) -> Option<Node> {
    let places = ByteOffsets::new(text, file);
    // The parser does not accept a byte order mark before a comment, so skip it here. Offsets
    // include it.
    let mut parser = Parser::new_from_str(&text[places.skipped_bytes..]);
    let mut documents = 0;
    while let Some(event) = parser.next_event() {
        let (event, at) = match event {
            Ok(event) => event,
            Err(error) => {
                let fault = places.syntax(error.marker(), error.info());
                builder.findings.push(fault);
                return None;
            }
        };
        let span = places.span(at);
        match event {
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    builder.findings.push(faults::second_document(span));
                    return builder.root.take();
                }
            }
            Event::StreamEnd => break,
            event => builder.event(event, span, &places)?,
        }
    }
    builder.finish(file)
}

/// A list or map under construction.
enum OpenContainer {
    Seq { span: Span, items: Vec<Node>, anchor: usize },
    Map { span: Span, entries: Vec<(Key, Node)>, key: Option<KeySlot>, anchor: usize },
}

/// The key of the current entry.
enum KeySlot {
    Key(Key),
    /// The key is not a text. It was reported, and its value is dropped.
    Unusable,
    /// `<<` in a lenient reading: the keys of the value are merged.
    Merge,
}

pub(super) struct TreeBuilder<'a> {
    bounds: &'a YamlLimits,
    /// The copy of the file for the next alias; `None` in a lenient reading, which places values
    /// of aliases at their anchors.
    next: Option<FileId>,
    /// The aliases with copies of the file.
    aliases: Vec<Span>,
    anchors: Anchors,
    open: Vec<OpenContainer>,
    root: Option<Node>,
    nodes: usize,
    pub(super) findings: &'a mut Findings,
}

impl<'a> TreeBuilder<'a> {
    pub(super) fn new(
        bounds: &'a YamlLimits,
        next: Option<FileId>,
        findings: &'a mut Findings,
    ) -> TreeBuilder<'a> {
        TreeBuilder {
            bounds,
            next,
            aliases: Vec::new(),
            anchors: Anchors::default(),
            open: Vec::new(),
            root: None,
            nodes: 0,
            findings,
        }
    }

    pub(super) fn finish(&mut self, file: FileId) -> Option<Node> {
        if self.root.is_none() {
            self.findings.push(faults::empty_file(Span::new(file, 0, 0)));
        }
        self.root.take()
    }

    /// Returns the tree built so far, without checking that it is complete.
    pub(super) fn into_root(self) -> Option<Node> {
        self.root
    }
}

impl TreeBuilder<'_> {
    /// Processes one event of the strict parser. Returns `None` if a limit is exceeded.
    fn event(&mut self, event: Event<'_>, span: Span, places: &ByteOffsets<'_>) -> Option<()> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.count(span)?;
                self.tag(tag.as_deref(), span);
                let style = match style {
                    ScalarStyle::Plain => TextStyle::Plain,
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => TextStyle::Quoted,
                    ScalarStyle::Literal | ScalarStyle::Folded => TextStyle::Block,
                };
                self.scalar(text.into_owned(), style, places.trim(span), anchor);
            }
            Event::Alias(anchor) => self.alias(span, anchor)?,
            Event::SequenceStart(anchor, tag) => {
                self.tag(tag.as_deref(), span);
                self.start_list(span, anchor)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.tag(tag.as_deref(), span);
                self.start_map(span, anchor)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            _ => {}
        }
        Some(())
    }

    pub(super) fn count(&mut self, span: Span) -> Option<()> {
        self.nodes += 1;
        if self.nodes > self.bounds.nodes {
            self.findings.push(faults::too_many_nodes(span, self.bounds));
            return None;
        }
        Some(())
    }

    fn start(&mut self, span: Span) -> Option<()> {
        self.count(span)?;
        if self.open.len() == self.bounds.depth {
            self.findings.push(faults::too_deep(span, self.bounds));
            return None;
        }
        Some(())
    }

    pub(super) fn start_list(&mut self, span: Span, anchor: usize) -> Option<()> {
        self.start(span)?;
        self.open.push(OpenContainer::Seq { span, items: Vec::new(), anchor });
        Some(())
    }

    pub(super) fn start_map(&mut self, span: Span, anchor: usize) -> Option<()> {
        self.start(span)?;
        self.open.push(OpenContainer::Map { span, entries: Vec::new(), key: None, anchor });
        Some(())
    }

    /// Inserts the value of an alias. Returns `None` if a limit is exceeded; copies count like
    /// written values.
    pub(super) fn alias(&mut self, span: Span, anchor: usize) -> Option<()> {
        self.count(span)?;
        let Some(found) = self.anchors.get(anchor) else {
            self.findings.push(faults::unknown_alias(span, self.next.is_none()));
            self.close(Node { span, kind: Kind::Null });
            return Some(());
        };
        // Count before cloning, so that nested aliases cannot expand exponentially.
        self.nodes += found.nodes;
        if self.nodes > self.bounds.nodes {
            self.findings.push(faults::too_many_nodes(span, self.bounds));
            return None;
        }
        if self.open.len() + found.depth > self.bounds.depth {
            self.findings.push(faults::too_deep(span, self.bounds));
            return None;
        }
        let mut node = found.node.clone();
        // An alias may be a key.
        if let (true, Kind::String(text, _)) = (self.expects_key(), &node.kind) {
            let text = text.clone();
            self.key(text, TextStyle::Quoted, span);
            return Some(());
        }
        match &mut self.next {
            None => node.span = span,
            Some(next) => {
                let copy = *next;
                *next = copy.next();
                self.aliases.push(span);
                node.each_span(&mut |span| span.file = copy);
            }
        }
        self.close(node);
        Some(())
    }

    fn remember(&mut self, anchor: usize, node: &Node) {
        if anchor > 0 {
            self.anchors.set(anchor, node);
        }
    }

    fn tag(&mut self, tag: Option<&Tag>, span: Span) {
        if let Some(tag) = tag {
            let handle = if tag.is_yaml_core_schema() { "!!" } else { &tag.handle };
            self.findings.push(faults::tag(span, &format!("{handle}{}", tag.suffix)));
        }
    }

    pub(super) fn scalar(&mut self, text: String, style: TextStyle, span: Span, anchor: usize) {
        if self.expects_key() {
            return self.key(text, style, span);
        }
        let kind = match style {
            TextStyle::Plain => self.plain(text, span),
            style => Kind::String(text, style),
        };
        let node = Node { span, kind };
        self.remember(anchor, &node);
        self.close(node);
    }

    fn plain(&mut self, text: String, span: Span) -> Kind {
        let lenient = self.next.is_none();
        match plain(&text) {
            PlainScalar::Null => Kind::Null,
            PlainScalar::Bool(value) => Kind::Bool(value),
            PlainScalar::Number => Kind::Number(text),
            PlainScalar::Text => Kind::String(text, TextStyle::Plain),
            // YAML 1.2 has `True` and `False` besides the lower-case words, and numbers that are
            // not JSON numbers.
            PlainScalar::MaybeBool if lenient => match text.as_str() {
                "True" | "TRUE" => Kind::Bool(true),
                "False" | "FALSE" => Kind::Bool(false),
                _ => Kind::String(text, TextStyle::Plain),
            },
            PlainScalar::MaybeNumber if lenient => match json_number(&text) {
                Some(number) => Kind::Number(number),
                None => Kind::String(text, TextStyle::Plain),
            },
            PlainScalar::MaybeBool => {
                self.findings.push(faults::ambiguous_boolean(span, &text));
                Kind::String(text, TextStyle::Plain)
            }
            PlainScalar::MaybeNumber => {
                self.findings.push(faults::ambiguous_number(span, &text));
                Kind::String(text, TextStyle::Plain)
            }
        }
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(OpenContainer::Map { key: None, .. }))
    }

    fn key(&mut self, text: String, style: TextStyle, span: Span) {
        let plain = style == TextStyle::Plain;
        let lenient = self.next.is_none();
        let slot = if plain && text == "<<" {
            if lenient {
                KeySlot::Merge
            } else {
                self.findings.push(faults::merge_key(span));
                KeySlot::Unusable
            }
        // An empty plain key and `~` are null.
        } else if plain && !lenient && matches!(text.as_str(), "" | "~") {
            self.findings.push(faults::key_kind(span));
            KeySlot::Unusable
        } else {
            KeySlot::Key(Key { name: text, span })
        };
        if let Some(OpenContainer::Map { key, .. }) = self.open.last_mut() {
            *key = Some(slot);
        }
    }

    /// Adds a complete value to the innermost open list or map.
    fn close(&mut self, mut node: Node) {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(OpenContainer::Seq { items, .. }) => items.push(node),
            Some(OpenContainer::Map { entries, key, .. }) => match key.take() {
                Some(KeySlot::Key(key)) => {
                    // An absent value has the place of its key.
                    if node.span.start == node.span.end && !matches!(node.kind, Kind::Seq(_) | Kind::Map(_)) {
                        node.span = key.span;
                    }
                    entries.push((key, node));
                }
                Some(KeySlot::Unusable) => {}
                Some(KeySlot::Merge) => merge(entries, node),
                None => {
                    self.findings.push(faults::key_kind(node.span));
                    *key = Some(KeySlot::Unusable);
                }
            },
        }
    }

    /// Closes the innermost list or map. For the parser, a block extends to the next token; the
    /// span extends to its last value instead.
    pub(super) fn end(&mut self, at: Span) {
        let Some(open) = self.open.pop() else { return };
        let (span, last, kind, anchor) = match open {
            OpenContainer::Seq { span, items, anchor } => {
                // The value of an alias is written elsewhere.
                let last = items.last().map(|item| item.span).filter(|last| last.file == span.file);
                (span, last, Kind::Seq(items.into()), anchor)
            }
            OpenContainer::Map { span, entries, anchor, .. } => {
                let entries = self.without_duplicates(entries);
                let first = entries.first().map_or(span, |(key, _)| key.span);
                let last = entries.last().map(|(key, value)| {
                    if value.span.file == key.span.file { key.span.to(value.span) } else { key.span }
                });
                // For the parser, a block map starts at the colon of its first entry.
                let span = if first.start < span.start { Span { start: first.start, ..span } } else { span };
                (span, last, Kind::Map(entries.into()), anchor)
            }
        };
        // A flow collection has an end token; the end of a block is a point.
        let end = if at.start < at.end { at.end } else { last.map_or(span.end, |last| last.end) };
        let node = Node { span: Span::new(span.file, span.start, end), kind };
        self.remember(anchor, &node);
        self.close(node);
    }

    fn without_duplicates(&mut self, entries: Vec<(Key, Node)>) -> Vec<(Key, Node)> {
        let lenient = self.next.is_none();
        without_duplicates(entries, lenient, self.findings)
    }
}

/// Removes duplicate keys. A strict reading preserves the first and reports an error; a lenient one
/// preserves the last, like most parsers, and warns.
pub(crate) fn without_duplicates(
    mut entries: Vec<(Key, Node)>,
    lenient: bool,
    findings: &mut Findings,
) -> Vec<(Key, Node)> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    // Sort indices rather than compare all pairs: documents have maps with thousands of keys.
    order.sort_by(|a, b| entries[*a].0.name.cmp(&entries[*b].0.name).then(a.cmp(b)));
    // The common case: no duplicates.
    if order.windows(2).all(|pair| entries[pair[0]].0.name != entries[pair[1]].0.name) {
        return entries;
    }
    let mut again = vec![false; entries.len()];
    let mut swaps = Vec::new();
    for run in order.chunk_by(|a, b| entries[*a].0.name == entries[*b].0.name) {
        let first = &entries[run[0]].0;
        for later in &run[1..] {
            let key = &entries[*later].0;
            findings.push(faults::duplicate_key(&key.name, key.span, first.span, lenient));
            again[*later] = true;
        }
        if let (true, [first, .., last]) = (lenient, run) {
            swaps.push((*first, *last));
        }
    }
    // The last value takes the position of the first.
    swaps.into_iter().for_each(|(first, last)| entries.swap(first, last));
    let mut again = again.into_iter();
    entries.retain(|_| !again.next().unwrap_or(false));
    entries
}

/// Appends the entries of a merge key's value (a map, or a list of maps). Existing keys take
/// precedence.
fn merge(entries: &mut Vec<(Key, Node)>, node: Node) {
    let maps = match &node.kind {
        Kind::Seq(items) => items.to_vec(),
        _ => vec![node],
    };
    for (key, value) in maps.iter().filter_map(Node::as_map).flatten() {
        if !entries.iter().any(|(known, _)| known.name == key.name) {
            entries.push((key.clone(), value.clone()));
        }
    }
}

/// Conversion of the parser's positions, which count characters, to byte offsets.
struct ByteOffsets<'a> {
    text: &'a str,
    file: FileId,
    /// Length of the byte order mark.
    skipped_bytes: usize,
    /// Byte offset of every [`STRIDE`]th character; empty if all characters are ASCII.
    strides: Vec<u32>,
}

/// Number of characters between two stored offsets.
const STRIDE: usize = 64;

impl<'a> ByteOffsets<'a> {
    fn new(text: &'a str, file: FileId) -> ByteOffsets<'a> {
        let skipped_bytes = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let body = &text[skipped_bytes..];
        // In ASCII text, characters and bytes have the same offsets.
        let strides = if body.is_ascii() {
            Vec::new()
        } else {
            body.char_indices().step_by(STRIDE).map(|(at, _)| at as u32).collect()
        };
        ByteOffsets { text, file, skipped_bytes, strides }
    }

    fn offset(&self, marker: &Marker) -> u32 {
        let body = &self.text[self.skipped_bytes..];
        let index = marker.index();
        let at = if self.strides.is_empty() {
            index.min(body.len())
        } else {
            match self.strides.get(index / STRIDE) {
                None => body.len(),
                Some(start) => {
                    let rest = &body[*start as usize..];
                    let within = rest.char_indices().nth(index % STRIDE).map_or(rest.len(), |(at, _)| at);
                    *start as usize + within
                }
            }
        };
        (self.skipped_bytes + at) as u32
    }

    fn span(&self, at: saphyr_parser::Span) -> Span {
        Span::new(self.file, self.offset(&at.start), self.offset(&at.end))
    }

    /// Removes the trailing white space that the parser includes in multi-line scalars.
    fn trim(&self, span: Span) -> Span {
        let text = &self.text[span.start as usize..span.end as usize];
        Span { end: span.start + text.trim_end().len() as u32, ..span }
    }

    fn syntax(&self, marker: &Marker, info: &str) -> crate::diagnostic::Finding {
        let at = self.offset(marker);
        let line = self.text[..at as usize].rfind('\n').map_or(0, |newline| newline + 1);
        // A tab in the indentation is a frequent cause.
        let indent = self.text[line..].bytes().take_while(|b| matches!(b, b' ' | b'\t'));
        let tab = indent.into_iter().any(|b| b == b'\t');
        let fault = faults::syntax(Span::new(self.file, at, at), info, tab);
        // The parser stops where it cannot continue, often many lines after the missing bracket.
        match find_unclosed(&self.text[..at as usize]) {
            Some(open) => faults::with_unclosed(fault, Span::new(self.file, open as u32, open as u32 + 1)),
            None => fault,
        }
    }
}

/// Returns the position of the innermost unclosed brace, bracket or quote of a text. Characters
/// within words are ignored.
fn find_unclosed(text: &str) -> Option<usize> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut before = '\n';
    for (at, c) in text.char_indices() {
        // A value can start only after one of these.
        let begins = matches!(before, '\n' | '[' | '{' | ',' | ':' | '-');
        match (open.last().map(|(_, mark)| *mark), c) {
            // `#` on the stack is a comment, which a line break closes.
            (Some('#'), '\n') => drop(open.pop()),
            (Some('#'), _) => continue,
            (Some(quote @ ('"' | '\'')), c) if c == quote && before != '\\' => drop(open.pop()),
            (Some('"' | '\''), _) => {}
            (Some('{'), '}') | (Some('['), ']') => drop(open.pop()),
            (_, '#') if text[..at].ends_with([' ', '\n']) || at == 0 => {
                open.push((at, c));
                continue;
            }
            (_, '{' | '[' | '"' | '\'') if begins => open.push((at, c)),
            _ => {}
        }
        // Spaces between the two characters do not matter.
        if c != ' ' {
            before = c;
        }
    }
    open.iter().rev().find(|(_, mark)| *mark != '#').map(|(at, _)| *at)
}
