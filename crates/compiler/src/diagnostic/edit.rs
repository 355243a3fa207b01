//! Corrections as edits of a text: how a suggestion is written at its place.

use super::{Code, Finding, Help, Sources, Span};

/// A replacement of a part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEdit {
    /// The replaced part.
    pub span: Span,
    /// The new text.
    pub text: String,
}

impl Finding {
    /// Returns the edit that applies the suggestion, or `None` if there is none that a program can
    /// apply.
    pub fn edit(&self, sources: &Sources) -> Option<TextEdit> {
        let Some(Help::Suggestion(suggestion)) = &self.help else { return None };
        let (written, text) = (sources.snippet(suggestion.span), &suggestion.replacement);
        // A suggestion for an entire text would discard a value that is embedded in it.
        let is_lossy = written.contains("{$") && !text.contains("{$");
        // A word within a path cannot be quoted.
        let is_broken = self.code == Code::PathUnknown && !is_word(text);
        (!is_lossy && !is_broken).then(|| TextEdit { span: suggestion.span, text: write_like(written, text) })
    }
}

/// Writes a text as a YAML scalar with the quotes of the one that it replaces.
pub fn write_like(written: &str, text: &str) -> String {
    match written.as_bytes().first() {
        Some(b'\'') => single_quoted(text),
        Some(b'"') => serde_json::Value::from(text).to_string(),
        _ => plain_or_quoted(text),
    }
}

/// Writes a text as a YAML scalar that has the same value within and outside of brackets.
pub fn plain_or_quoted(text: &str) -> String {
    const OTHER_VALUES: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_plain = text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$' | '/'))
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '/' | '.' | '-' | ' '))
        && !text.ends_with(' ')
        && !OTHER_VALUES.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_plain { text.to_owned() } else { single_quoted(text) }
}

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns a text with edits applied, or `None` if two of them overlap or one is not within the
/// text.
pub fn apply(text: &str, edits: &[TextEdit]) -> Option<String> {
    let mut edits: Vec<&TextEdit> = edits.iter().collect();
    edits.sort_by_key(|edit| edit.span);
    let (mut edited, mut at) = (String::with_capacity(text.len()), 0);
    for edit in edits {
        edited.push_str(text.get(at..edit.span.start as usize)?);
        edited.push_str(&edit.text);
        at = edit.span.end as usize;
    }
    edited.push_str(text.get(at..)?);
    Some(edited)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, written: &str, code: Code, suggestion: &str) -> Option<String> {
        let mut sources = Sources::new();
        let file = sources.add("a", text);
        let start = text.find(written).expect("the text contains it") as u32;
        let span = Span::new(file, start, start + written.len() as u32);
        let finding = Finding::error(code, span, "wrong").suggest(suggestion);
        apply(text, &[finding.edit(&sources)?])
    }

    #[test]
    fn a_suggestion_is_quoted_like_the_text_that_it_replaces_or_where_yaml_needs_it() {
        for (text, written, suggestion, wanted) in [
            ("same: [nmae]", "nmae", "name", "same: [name]"),
            ("a: 'nmae'", "'nmae'", "it's", "a: 'it''s'"),
            ("a: \"nmae\"", "\"nmae\"", "na\"me", "a: \"na\\\"me\""),
            ("a: {b: GET /thing}", "GET /thing", "GET /things/{id}", "a: {b: 'GET /things/{id}'}"),
            ("a: ye", "ye", "yes", "a: 'yes'"),
            ("a: 1", "1", "10", "a: '10'"),
        ] {
            assert_eq!(edited(text, written, Code::UnknownKey, suggestion).as_deref(), Some(wanted));
        }
    }

    #[test]
    fn a_suggestion_that_would_lose_a_value_or_break_a_path_is_no_edit() {
        let call = "call: GET /thing/{$.id}";
        assert_eq!(edited(call, "GET /thing/{$.id}", Code::UnknownOperation, "GET /things/{id}"), None);
        assert_eq!(edited("a: $.b.nmae", "nmae", Code::PathUnknown, "my-name"), None);
        let path = edited("a: $.b.nmae", "nmae", Code::PathUnknown, "name");
        assert_eq!(path.as_deref(), Some("a: $.b.name"));
    }

    #[test]
    fn overlapping_edits_are_not_applied() {
        let file = Sources::new().add("a", "abc");
        let edit = |start, end| TextEdit { span: Span::new(file, start, end), text: "x".to_owned() };
        assert_eq!(apply("abc", &[edit(2, 3), edit(0, 1)]).as_deref(), Some("xbx"));
        assert_eq!(apply("abc", &[edit(0, 2), edit(1, 3)]), None);
        assert_eq!(apply("abc", &[edit(2, 5)]), None);
    }
}
