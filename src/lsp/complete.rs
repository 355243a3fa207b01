//! Completion. An unfinished name is replaced by a word that no pack has, and the compiler lists the
//! names that are possible in its place. So each name that the compiler checks is completed, by the
//! rules by which it is checked.

use super::names::schema_of;
use super::pack::{Cursor, Workspace};
use super::text::ColumnUnit;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ops::Range;
use switchback_compiler::diagnostic::{Code, Findings, Sources, UNFINISHED, plain_or_quoted, write_like};
use switchback_compiler::mapping::load::MANIFEST;
use switchback_compiler::mapping::schema::SchemaPlace;
use switchback_compiler::yaml;

/// A replacement of the unfinished text, to be compiled.
struct CompletionAttempt {
    range: Range<usize>,
    text: String,
    is_key: bool,
}

/// Returns the names that are possible at a place.
pub(super) fn complete(workspace: &mut Workspace, encoding: ColumnUnit, cursor: &Cursor) -> Option<Value> {
    let (text, at) = (&*cursor.text, cursor.offset as usize);
    let word = word_around(text, at);
    let state = LineState::scan(text.get(section_start(text, word.start)..word.start)?);
    let value = |range: Range<usize>, text: String| CompletionAttempt { range, text, is_key: false };
    let plain = || value(word.clone(), UNFINISHED.to_owned());
    let key = || CompletionAttempt {
        text: format!("{UNFINISHED}: {UNFINISHED}"),
        range: word.clone(),
        is_key: true,
    };
    let mut attempts = Vec::new();
    match (state.is_key_place(), text[word.end..].trim_start_matches(' ').starts_with(':')) {
        (true, false) => attempts.extend([key(), plain()]),
        (true, true) => attempts.extend([plain(), key()]),
        (false, _) => {
            attempts.push(plain());
            attempts.push(value(scalar_around(text, word.clone(), &state), format!("GET /{UNFINISHED}")));
        }
    }
    let mut items = Vec::new();
    for attempt in attempts {
        items.extend(compile(workspace, encoding, cursor, &state, &attempt).unwrap_or_default());
        if !items.is_empty() {
            break;
        }
    }
    Some(items.into())
}

/// Compiles the pack with an attempt, and returns the items for the names that are possible.
fn compile(
    workspace: &mut Workspace,
    encoding: ColumnUnit,
    cursor: &Cursor,
    state: &LineState,
    attempt: &CompletionAttempt,
) -> Option<Vec<Value>> {
    let (text, start) = readable(cursor, state, attempt)?;
    let compiled = workspace.try_texts(&cursor.root, &[(cursor.file.clone(), text.clone())])?;
    let file = compiled.sources.find(&cursor.file)?;
    let schema = schema_of(workspace, cursor);
    let tree = yaml::parse(&mut Sources::new(), &cursor.file, text.as_bytes(), &mut Findings::new());
    let place = tree.as_ref().and_then(|tree| SchemaPlace::find(&schema, tree, start as u32));
    // A key and its value may both be unfinished, and the cursor is at the key.
    let end = start + attempt.text.find(UNFINISHED).unwrap_or(0) + UNFINISHED.len();
    let mut seen = BTreeSet::new();
    let mut items = Vec::new();
    for finding in compiled.findings.in_order() {
        let [from, to] = [finding.span.start, finding.span.end].map(|at| at as usize);
        let is_here = finding.span.file == file && from < end && to > start;
        if finding.candidates.is_empty() || !is_here || to - from > cursor.text.len() {
            continue;
        }
        // The names of a path complete its last word; other names replace the entire text.
        let written = text.get(from..to)?;
        let word = start..start + attempt.text.len();
        let is_part = written.contains('$') || !word.contains(&from) && from > start;
        let before = if is_part { 0 } else { start.saturating_sub(from) };
        // A closing quote may only be in the text that was completed to be read.
        let after = text.get(word.end..to).filter(|_| !is_part && !attempt.is_key);
        let after =
            after.filter(|after| cursor.text[attempt.range.end..].starts_with(after)).map_or(0, str::len);
        let (from, to) = (attempt.range.start - before, attempt.range.end + after);
        let range = encoding.range(&cursor.text, from as u32, to as u32);
        for name in &finding.candidates {
            let new = match (is_part, attempt.is_key) {
                (true, _) => name.clone(),
                (false, true)
                    if cursor.text[to..].lines().next().is_none_or(|rest| rest.trim().is_empty()) =>
                {
                    format!("{}: ", plain_or_quoted(name))
                }
                (false, _) => write_like(written, name),
            };
            if !seen.insert(new.clone()) {
                continue;
            }
            let about =
                place.as_ref().filter(|place| place.key.is_some()).and_then(|place| place.describe(name));
            items.push(json!({
                "label": name,
                "kind": kind(finding.code),
                "detail": finding.message.split_once(" is not ").map(|(_, what)| what),
                "documentation": about,
                "textEdit": {"range": range, "newText": new},
            }));
        }
    }
    // The compiler has nothing to say about a value in a map that is not finished.
    let is_whole = attempt.text == UNFINISHED
        && scalar_around(&cursor.text, attempt.range.clone(), state) == attempt.range;
    if items.is_empty() && (is_whole || attempt.is_key) {
        let range = encoding.range(&cursor.text, attempt.range.start as u32, attempt.range.end as u32);
        for name in place.iter().flat_map(SchemaPlace::words) {
            let new = if state.quote.is_some() { name.to_owned() } else { plain_or_quoted(name) };
            items.push(json!({"label": name, "kind": 12, "textEdit": {"range": range, "newText": new}}));
        }
    }
    Some(items)
}

/// Returns the kind of an item in the protocol.
fn kind(code: Code) -> u8 {
    match code {
        Code::UnknownOperation => 2,
        Code::UnknownField | Code::PathUnknown | Code::MissingField => 5,
        Code::UnknownShape => 7,
        Code::UnknownKey => 10,
        Code::UnknownReason | Code::UnknownSetting => 21,
        Code::UnknownType => 22,
        _ => 12,
    }
}

/// Returns a text in which an attempt can be read, and the offset of the attempt in it: the file
/// itself, or, if it is not YAML, the file without the rest of the section, or the section alone.
fn readable(cursor: &Cursor, state: &LineState, attempt: &CompletionAttempt) -> Option<(String, usize)> {
    let (text, range) = (&*cursor.text, &attempt.range);
    let (before, after) = (text.get(..range.start)?, text.get(range.end..)?);
    let closed = format!("{}{}\n", attempt.text, state.closing());
    let rest = next_section(after).unwrap_or("");
    let section = &before[section_start(text, range.start)..];
    let head = if cursor.file == MANIFEST { "" } else { "mapping: 1\n" };
    let texts = [
        (format!("{before}{}{after}", attempt.text), range.start),
        (format!("{before}{closed}{rest}"), range.start),
        (format!("{head}{section}{closed}"), head.len() + section.len()),
    ];
    texts.into_iter().find(|(text, _)| {
        let mut findings = Findings::new();
        yaml::parse(&mut Sources::new(), &cursor.file, text.as_bytes(), &mut findings).is_some()
    })
}

/// Returns the start of the top-level section around an offset.
fn section_start(text: &str, at: usize) -> usize {
    let mut start = 0;
    for line in text[..at].split_inclusive('\n') {
        let from = line.as_ptr() as usize - text.as_ptr() as usize;
        if line.starts_with(|c: char| c.is_alphabetic() || matches!(c, '\'' | '"')) {
            start = from;
        }
    }
    start
}

/// Returns the text from the next top-level key.
fn next_section(text: &str) -> Option<&str> {
    let lines = text.match_indices('\n').map(|(at, _)| &text[at + 1..]);
    let mut sections = lines.filter(|rest| rest.starts_with(|c: char| c.is_alphabetic()));
    sections.next()
}

fn word_around(text: &str, at: usize) -> Range<usize> {
    let is_word = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '-' | '*');
    let before: usize = text[..at].chars().rev().take_while(is_word).map(char::len_utf8).sum();
    let after: usize = text[at..].chars().take_while(is_word).map(char::len_utf8).sum();
    at - before..at + after
}

/// Returns the scalar around a word, without its quotes.
fn scalar_around(text: &str, word: Range<usize>, state: &LineState) -> Range<usize> {
    let line = text[..word.start].rfind('\n').map_or(0, |at| at + 1);
    let (before, after) = (&text[line..word.start], &text[word.end..]);
    let after = after.split('\n').next().unwrap_or_default();
    if let Some(quote) = state.quote {
        let start = before.rfind(quote).map_or(word.start, |at| line + at + 1);
        return start..word.end + after.find(quote).unwrap_or(after.len());
    }
    let starts =
        [": ", "- ", ", ", "[", "{"].iter().filter_map(|start| Some(before.rfind(start)? + start.len()));
    let end = [",", "}", "]", " #"].iter().filter_map(|end| after.find(end)).min().unwrap_or(after.len());
    let start = line + starts.max().unwrap_or_else(|| before.len() - before.trim_start().len());
    start..word.end + after[..end].trim_end().len()
}

/// The state of YAML at the end of a text: open brackets, an open quote, and the last token.
struct LineState {
    brackets: Vec<char>,
    quote: Option<char>,
    /// The last character that is not a space.
    last: char,
    /// Whether only spaces and dashes precede on the line.
    is_line_start: bool,
}

impl LineState {
    fn scan(text: &str) -> LineState {
        let mut state = LineState { brackets: Vec::new(), quote: None, last: '\n', is_line_start: true };
        let mut chars = text.chars().peekable();
        let mut is_spaced = true;
        while let Some(c) = chars.next() {
            if let Some(quote) = state.quote {
                match c {
                    '\\' if quote == '"' => drop(chars.next()),
                    '\'' if quote == '\'' && chars.peek() == Some(&'\'') => drop(chars.next()),
                    _ if c == quote => (state.quote, state.last) = (None, c),
                    _ => {}
                }
                continue;
            }
            let is_token = matches!(state.last, '\n' | ':' | ',' | '[' | '{' | '-');
            match c {
                '#' if is_spaced => while chars.next_if(|c| *c != '\n').is_some() {},
                '\'' | '"' if is_token => state.quote = Some(c),
                '{' | '[' if is_token || !state.brackets.is_empty() => {
                    state.brackets.push(if c == '{' { '}' } else { ']' });
                }
                '}' | ']' => drop(state.brackets.pop()),
                _ => {}
            }
            is_spaced = c.is_whitespace();
            match c {
                '\n' => (state.last, state.is_line_start) = (c, true),
                ' ' | '\r' => {}
                _ => (state.last, state.is_line_start) = (c, state.is_line_start && c == '-'),
            }
        }
        state
    }

    /// Returns whether a key may follow.
    fn is_key_place(&self) -> bool {
        match (self.quote, self.brackets.last()) {
            (Some(_), _) | (None, Some(']')) => false,
            (None, Some(_)) => matches!(self.last, '{' | ',' | '\n'),
            (None, None) => self.is_line_start,
        }
    }

    /// Returns the characters that close the open quote and the open brackets.
    fn closing(&self) -> String {
        self.quote.into_iter().chain(self.brackets.iter().rev().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_quotes_are_closed_as_yaml_reads_them() {
        for (text, closing, is_key) in [
            ("a: {b: [c, ", "]}", false),
            ("a: {b: c, ", "}", true),
            ("a: GET /b/{c}\nd", "", false),
            ("a: 'it''s {", "'", false),
            ("a: b # {[\n  ", "", true),
            ("a: \"\\\"{", "\"", false),
            ("a:\n  - ", "", true),
            ("a: it's {", "", false),
            ("a: {b: c}\n", "", true),
        ] {
            let state = LineState::scan(text);
            assert_eq!((state.closing().as_str(), state.is_key_place()), (closing, is_key), "{text}");
        }
    }

    #[test]
    fn an_operation_is_replaced_as_a_whole() {
        for (text, at, wanted) in [
            ("  - serve: v1\n    at: GET /th", 29, "GET /th"),
            ("a: {v1: GET /th, v2: x}", 15, "GET /th"),
            ("a: {v1: 'GET /th/{id}', v2: x}", 16, "GET /th/{id}"),
            ("a: ", 3, ""),
        ] {
            let word = word_around(text, at);
            let state = LineState::scan(&text[..word.start]);
            assert_eq!(&text[scalar_around(text, word, &state)], wanted);
        }
    }
}
