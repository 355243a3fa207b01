//! Parses JSON documents into a tree. It is several times faster than a YAML parser, and correct
//! where YAML differs: surrogate pairs, tabs, the byte order mark.

use super::bounds::DOCUMENT;
use super::build::without_duplicates;
use super::{Key, Kind, Node, TextStyle, faults};
use crate::diagnostic::{FileId, Findings, Span};
use std::borrow::Cow;
use switchback_json::{raw, text};

/// The result of parsing.
pub(super) enum JsonOutcome {
    Read(Node),
    /// The text is not JSON, but may be YAML.
    NotJson,
    /// A limit is exceeded, and reported.
    OverBounds,
}

/// The reason why parsing stopped.
enum ParseStop {
    NotJson,
    OverBounds,
}

/// Parses a text that starts like a JSON object or array.
pub(super) fn parse_json(text: &str, file: FileId, findings: &mut Findings) -> JsonOutcome {
    // A byte order mark has three bytes.
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let mut reader =
        JsonReader { text, bytes: text.as_bytes(), at: start, file, nodes: 0, depth: 0, findings };
    reader.space();
    if !matches!(reader.peek(), Some(b'{' | b'[')) {
        return JsonOutcome::NotJson;
    }
    let mark = reader.findings.len();
    let read = reader.value().and_then(|node| {
        reader.space();
        if reader.at == text.len() { Ok(node) } else { Err(ParseStop::NotJson) }
    });
    match read {
        Ok(node) => JsonOutcome::Read(node),
        Err(ParseStop::OverBounds) => JsonOutcome::OverBounds,
        Err(ParseStop::NotJson) => {
            // Discard the findings: the text is read again as YAML.
            findings.truncate(mark);
            JsonOutcome::NotJson
        }
    }
}

struct JsonReader<'t, 'f> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    file: FileId,
    nodes: usize,
    depth: usize,
    findings: &'f mut Findings,
}

impl JsonReader<'_, '_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        self.at = raw::skip_blank(self.bytes, self.at);
    }

    fn span(&self, start: usize) -> Span {
        Span::new(self.file, start as u32, self.at as u32)
    }

    fn count(&mut self) -> Result<(), ParseStop> {
        self.nodes += 1;
        if self.nodes > DOCUMENT.nodes {
            let span = self.span(self.at);
            self.findings.push(faults::too_many_nodes(span, &DOCUMENT));
            return Err(ParseStop::OverBounds);
        }
        Ok(())
    }

    /// Parses a value. The reader is at its first character.
    fn value(&mut self) -> Result<Node, ParseStop> {
        self.count()?;
        let start = self.at;
        let kind = match self.peek().ok_or(ParseStop::NotJson)? {
            b'{' => return self.parse_nested(Self::object),
            b'[' => return self.parse_nested(Self::list),
            b'"' => Kind::String(self.string()?, TextStyle::Quoted),
            b't' => self.word("true", Kind::Bool(true))?,
            b'f' => self.word("false", Kind::Bool(false))?,
            b'n' => self.word("null", Kind::Null)?,
            _ => self.number()?,
        };
        Ok(Node { span: self.span(start), kind })
    }

    fn parse_nested(&mut self, read: fn(&mut Self) -> Result<Node, ParseStop>) -> Result<Node, ParseStop> {
        // The reader is recursive, so this also bounds the stack.
        if self.depth == DOCUMENT.depth {
            let span = self.span(self.at);
            self.findings.push(faults::too_deep(span, &DOCUMENT));
            return Err(ParseStop::OverBounds);
        }
        self.depth += 1;
        let node = read(self)?;
        self.depth -= 1;
        Ok(node)
    }

    fn object(&mut self) -> Result<Node, ParseStop> {
        let start = self.at;
        self.at += 1;
        let mut entries = Vec::new();
        self.space();
        if self.peek() != Some(b'}') {
            loop {
                self.space();
                let at = self.at;
                if self.peek() != Some(b'"') {
                    return Err(ParseStop::NotJson);
                }
                self.count()?;
                let name = self.string()?;
                let key = Key { name, span: self.span(at) };
                self.space();
                self.expect(b':')?;
                self.space();
                entries.push((key, self.value()?));
                self.space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b'}') => break,
                    _ => return Err(ParseStop::NotJson),
                }
            }
        }
        self.at += 1;
        entries.shrink_to_fit();
        // As in a lenient reading, the last of several equal keys applies.
        let entries = without_duplicates(entries, true, self.findings);
        Ok(Node { span: self.span(start), kind: Kind::Map(entries.into()) })
    }

    fn list(&mut self) -> Result<Node, ParseStop> {
        let start = self.at;
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.peek() != Some(b']') {
            loop {
                self.space();
                items.push(self.value()?);
                self.space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b']') => break,
                    _ => return Err(ParseStop::NotJson),
                }
            }
        }
        self.at += 1;
        items.shrink_to_fit();
        Ok(Node { span: self.span(start), kind: Kind::Seq(items.into()) })
    }

    fn expect(&mut self, byte: u8) -> Result<(), ParseStop> {
        if self.peek() != Some(byte) {
            return Err(ParseStop::NotJson);
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str, kind: Kind) -> Result<Kind, ParseStop> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(ParseStop::NotJson);
        }
        self.at += word.len();
        Ok(kind)
    }

    fn number(&mut self) -> Result<Kind, ParseStop> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')) {
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        text::check_number(text.as_bytes()).map_err(|_| ParseStop::NotJson)?;
        Ok(Kind::Number(text.to_owned()))
    }

    /// Parses a string. The reader is at the opening quote.
    fn string(&mut self) -> Result<String, ParseStop> {
        let end = raw::skip_string(self.bytes, self.at).map_err(|_| ParseStop::NotJson)?;
        let text = &self.text[self.at + 1..end - 1];
        self.at = end;
        // A lone surrogate has no UTF-8 form and is replaced, rather than rejecting the document.
        text::try_decode(text).map(Cow::into_owned).ok_or(ParseStop::NotJson)
    }
}
