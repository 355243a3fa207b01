//! Parser events → tree. The parser is iterative and so is this: depth is bounded by a count, not by the
//! stack.

use super::bounds::{DEPTH_MAX, NODES_MAX};
use super::scalar::{Plain, plain};
use super::{Key, Kind, Node, Style, faults};
use crate::diagnostic::{FileId, Findings, Span};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

/// Reads a text; see [`super::read`].
pub(super) fn tree(text: &str, file: FileId, findings: &mut Findings) -> Option<Node> {
    let places = Places::new(text, file);
    let mut builder = Builder { places: &places, open: Vec::new(), root: None, nodes: 0, findings };
    // The parser takes a byte order mark for content after a comment; offsets count it all the same.
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
                    return builder.root;
                }
            }
            Event::StreamEnd => break,
            event => builder.event(event, span)?,
        }
    }
    if builder.root.is_none() {
        builder.findings.push(faults::empty_file(Span::new(file, 0, 0)));
    }
    builder.root
}

/// A list or map that has not ended.
enum Open {
    Seq { span: Span, items: Vec<Node> },
    Map { span: Span, entries: Vec<(Key, Node)>, key: Option<Slot> },
}

/// The key of the entry being read.
enum Slot {
    Key(Key),
    /// Not a text: reported, and its value is dropped.
    Unusable,
}

struct Builder<'a> {
    places: &'a Places<'a>,
    open: Vec<Open>,
    root: Option<Node>,
    nodes: usize,
    findings: &'a mut Findings,
}

impl Builder<'_> {
    /// Takes one event; `None` when a bound is passed.
    fn event(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.count(span)?;
                self.decoration(anchor, tag.as_deref(), span);
                self.scalar(&text, style, self.places.trimmed(span));
            }
            Event::Alias(_) => {
                self.count(span)?;
                self.findings.push(faults::alias(span));
                self.close(Node { span, kind: Kind::Null });
            }
            Event::SequenceStart(anchor, tag) => {
                self.start(span)?;
                self.decoration(anchor, tag.as_deref(), span);
                self.open.push(Open::Seq { span, items: Vec::new() });
            }
            Event::MappingStart(anchor, tag) => {
                self.start(span)?;
                self.decoration(anchor, tag.as_deref(), span);
                self.open.push(Open::Map { span, entries: Vec::new(), key: None });
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            _ => {}
        }
        Some(())
    }

    fn count(&mut self, span: Span) -> Option<()> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            self.findings.push(faults::too_many_nodes(span));
            return None;
        }
        Some(())
    }

    fn start(&mut self, span: Span) -> Option<()> {
        self.count(span)?;
        if self.open.len() == DEPTH_MAX {
            self.findings.push(faults::too_deep(span));
            return None;
        }
        Some(())
    }

    fn decoration(&mut self, anchor: usize, tag: Option<&Tag>, span: Span) {
        if anchor > 0 {
            self.findings.push(faults::anchor(span));
        }
        if let Some(tag) = tag {
            let handle = if tag.is_yaml_core_schema() { "!!" } else { &tag.handle };
            self.findings.push(faults::tag(span, &format!("{handle}{}", tag.suffix)));
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, span: Span) {
        if self.expects_key() {
            return self.key(text, style, span);
        }
        let style = match style {
            ScalarStyle::Plain => return self.plain(text, span),
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
            ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
        };
        self.close(Node { span, kind: Kind::String(text.to_owned(), style) });
    }

    fn plain(&mut self, text: &str, span: Span) {
        let string = || Kind::String(text.to_owned(), Style::Plain);
        let kind = match plain(text) {
            Plain::Null => Kind::Null,
            Plain::Bool(value) => Kind::Bool(value),
            Plain::Number => Kind::Number(text.to_owned()),
            Plain::Text => string(),
            Plain::MaybeBool => {
                self.findings.push(faults::ambiguous_boolean(span, text));
                string()
            }
            Plain::MaybeNumber => {
                self.findings.push(faults::ambiguous_number(span, text));
                string()
            }
        };
        self.close(Node { span, kind });
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map { key: None, .. }))
    }

    fn key(&mut self, text: &str, style: ScalarStyle, span: Span) {
        let plain = style == ScalarStyle::Plain;
        let slot = if plain && matches!(text, "" | "~") {
            self.findings.push(faults::key_kind(span));
            Slot::Unusable
        } else if plain && text == "<<" {
            self.findings.push(faults::merge_key(span));
            Slot::Unusable
        } else {
            Slot::Key(Key { name: text.to_owned(), span })
        };
        if let Some(Open::Map { key, .. }) = self.open.last_mut() {
            *key = Some(slot);
        }
    }

    /// Puts a finished value where it belongs.
    fn close(&mut self, mut node: Node) {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::Seq { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => match key.take() {
                Some(Slot::Key(key)) => {
                    if node.span.start == node.span.end {
                        node.span = key.span;
                    }
                    entries.push((key, node));
                }
                Some(Slot::Unusable) => {}
                None => {
                    self.findings.push(faults::key_kind(node.span));
                    *key = Some(Slot::Unusable);
                }
            },
        }
    }

    /// Ends the innermost list or map. A block ends, for the parser, where the next token starts; for people
    /// it ends with its last value.
    fn end(&mut self, at: Span) {
        let Some(open) = self.open.pop() else { return };
        let (span, last, kind) = match open {
            Open::Seq { span, items } => (span, items.last().map(|item| item.span), Kind::Seq(items)),
            Open::Map { span, entries, .. } => {
                let entries = self.without_duplicates(entries);
                let first = entries.first().map_or(span, |(key, _)| key.span);
                let last = entries.last().map(|(key, value)| key.span.to(value.span));
                // A block map starts, for the parser, at the colon of its first entry.
                let span = if first.start < span.start { Span { start: first.start, ..span } } else { span };
                (span, last, Kind::Map(entries))
            }
        };
        let end = if at.start < at.end { at.end } else { last.map_or(span.end, |last| last.end) };
        self.close(Node { span: Span::new(span.file, span.start, end), kind });
    }

    fn without_duplicates(&mut self, mut entries: Vec<(Key, Node)>) -> Vec<(Key, Node)> {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|a, b| entries[*a].0.name.cmp(&entries[*b].0.name).then(a.cmp(b)));
        let mut again = vec![false; entries.len()];
        for run in order.chunk_by(|a, b| entries[*a].0.name == entries[*b].0.name) {
            let first = &entries[run[0]].0;
            for later in &run[1..] {
                let key = &entries[*later].0;
                self.findings.push(faults::duplicate_key(&key.name, key.span, first.span));
                again[*later] = true;
            }
        }
        let mut again = again.into_iter();
        entries.retain(|_| !again.next().unwrap_or(false));
        entries
    }
}

/// From the parser's places, which count characters, to byte offsets.
struct Places<'a> {
    text: &'a str,
    file: FileId,
    /// Byte order mark.
    skipped_bytes: usize,
    /// Byte offset of every [`STRIDE`]th character; none when all characters are one byte.
    strides: Vec<u32>,
}

/// Characters between two remembered offsets.
const STRIDE: usize = 64;

impl<'a> Places<'a> {
    fn new(text: &'a str, file: FileId) -> Places<'a> {
        let skipped_bytes = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let body = &text[skipped_bytes..];
        let strides = if body.is_ascii() {
            Vec::new()
        } else {
            body.char_indices().step_by(STRIDE).map(|(at, _)| at as u32).collect()
        };
        Places { text, file, skipped_bytes, strides }
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

    /// Without the white space that the parser counts to the end of multi-line scalars.
    fn trimmed(&self, span: Span) -> Span {
        let text = &self.text[span.start as usize..span.end as usize];
        Span { end: span.start + text.trim_end().len() as u32, ..span }
    }

    fn syntax(&self, marker: &Marker, info: &str) -> crate::diagnostic::Finding {
        let at = self.offset(marker);
        let line = self.text[..at as usize].rfind('\n').map_or(0, |newline| newline + 1);
        let indent = self.text[line..].bytes().take_while(|b| matches!(b, b' ' | b'\t'));
        let tab = indent.into_iter().any(|b| b == b'\t');
        let fault = faults::syntax(Span::new(self.file, at, at), info, tab);
        // The parser stops where it can go on no more, which is lines after what was forgotten.
        match unclosed(&self.text[..at as usize]) {
            Some(open) => faults::unclosed(fault, Span::new(self.file, open as u32, open as u32 + 1)),
            None => fault,
        }
    }
}

/// The innermost brace, bracket or quote of a text that is not closed. Marks within words are no marks.
fn unclosed(text: &str) -> Option<usize> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut before = '\n';
    for (at, c) in text.char_indices() {
        // What a value can begin after.
        let begins = matches!(before, '\n' | '[' | '{' | ',' | ':' | '-');
        match (open.last().map(|(_, mark)| *mark), c) {
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
        if c != ' ' {
            before = c;
        }
    }
    open.iter().rev().find(|(_, mark)| *mark != '#').map(|(at, _)| *at)
}
