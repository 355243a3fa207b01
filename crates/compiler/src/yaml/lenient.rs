//! Parses YAML leniently, for documents written by others. The differences to the strict reading:
//! it uses the parser that most tools use, with its rules of indentation; aliases and merge keys
//! are expanded; tags are ignored, except for strings; `yes` and `on` are texts, as in YAML 1.2;
//! the last of several equal keys takes precedence.

use super::bounds::DOCUMENT;
use super::build::TreeBuilder;
use super::{Node, TextStyle, faults};
use crate::diagnostic::{FileId, Findings, Span};
use libyaml_safer::{Event, EventData, Parser, ScalarStyle};
use std::borrow::Cow;
use std::collections::HashMap;

/// Parses a text; see [`super::read_document`].
pub(super) fn tree(text: &str, file: FileId, findings: &mut Findings) -> Option<Node> {
    let mut builder = TreeBuilder::new(&DOCUMENT, None, findings);
    // The parser panics on a block scalar at the end of the file without a line break.
    let ended = if text.ends_with('\n') { Cow::Borrowed(text) } else { Cow::Owned(format!("{text}\n")) };
    let mut input = ended.as_bytes();
    let mut parser = Parser::new();
    parser.set_input_string(&mut input);
    // Anchors by name. An anchor may be redefined; later aliases refer to the new value.
    let mut anchors: HashMap<String, usize> = HashMap::new();
    let mut given = 0;
    let mut documents = 0;
    loop {
        let event = match parser.parse() {
            Ok(event) => event,
            Err(error) => {
                let at = error.problem_mark().map_or(0, |mark| mark.index.min(text.len() as u64));
                builder.findings.push(syntax(text, file, at as u32, &error.to_string()));
                return None;
            }
        };
        let span = span(&event, text, file);
        match event.data {
            EventData::DocumentStart { .. } => {
                documents += 1;
                if documents > 1 {
                    builder.findings.push(faults::second_document(span));
                    return builder.into_root();
                }
            }
            EventData::StreamEnd => break,
            EventData::Scalar { anchor, value, style, tag, .. } => {
                builder.count(span)?;
                let style = match style {
                    // A value tagged `!!str` is a text: `!!str 5`.
                    _ if tag.as_deref().is_some_and(|tag| tag.ends_with(":str")) => TextStyle::Quoted,
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => TextStyle::Quoted,
                    ScalarStyle::Literal | ScalarStyle::Folded => TextStyle::Block,
                    _ => TextStyle::Plain,
                };
                let anchor = number(anchor, &mut anchors, &mut given);
                builder.scalar(value, style, trim(text, span), anchor);
            }
            EventData::Alias { anchor } => {
                builder.alias(span, anchors.get(&anchor).copied().unwrap_or(0))?;
            }
            EventData::SequenceStart { anchor, .. } => {
                builder.start_list(span, number(anchor, &mut anchors, &mut given))?;
            }
            EventData::MappingStart { anchor, .. } => {
                builder.start_map(span, number(anchor, &mut anchors, &mut given))?;
            }
            EventData::SequenceEnd | EventData::MappingEnd => builder.end(span),
            _ => {}
        }
    }
    builder.finish(file)
}

/// Returns the number of an anchor, starting from 1; 0 without an anchor.
fn number(anchor: Option<String>, anchors: &mut HashMap<String, usize>, given: &mut usize) -> usize {
    let Some(anchor) = anchor else { return 0 };
    *given += 1;
    anchors.insert(anchor, *given);
    *given
}

fn span(event: &Event, text: &str, file: FileId) -> Span {
    let at = |index: u64| index.min(text.len() as u64) as u32;
    Span::new(file, at(event.start_mark.index), at(event.end_mark.index))
}

/// Removes the trailing white space that the parser includes in scalars.
fn trim(text: &str, span: Span) -> Span {
    let covered = text.get(span.start as usize..span.end as usize).unwrap_or("");
    Span { end: span.start + covered.trim_end().len() as u32, ..span }
}

fn syntax(text: &str, file: FileId, at: u32, what: &str) -> crate::diagnostic::Finding {
    let at = text.floor_char_boundary(at as usize);
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let tab = text[line..].bytes().take_while(|b| matches!(b, b' ' | b'\t')).any(|b| b == b'\t');
    faults::syntax(Span::new(file, at as u32, at as u32), what, tab)
}
