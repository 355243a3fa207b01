//! Rendering of findings: as text with an excerpt of the source, and as JSON for tools.

use super::source::clamp;
use super::{Finding, Findings, Severity, Sources, Span};
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use serde_json::{Value, json};

/// Whether to use terminal colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Plain characters, for files, pipes and tests.
    Never,
    /// ANSI escapes.
    Always,
}

/// Renders all findings as text, in stable order, separated by blank lines. Findings of one line
/// are not separated.
pub fn to_text(sources: &Sources, findings: &Findings, colour: Colour) -> String {
    let renderer = match colour {
        Colour::Never => Renderer::plain(),
        Colour::Always => Renderer::styled(),
    };
    let mut text = String::new();
    let mut after_line = true;
    for finding in findings.in_order() {
        let line = finding.group.is_some() || is_long(sources, finding);
        if !(text.is_empty() || line && after_line) {
            text.push('\n');
        }
        after_line = line;
        match line {
            true => text.push_str(&one_line(sources, finding)),
            false => text.push_str(&renderer.render(&[group(sources, finding)])),
        }
        text.push('\n');
    }
    text
}

/// Maximum length of an excerpt in bytes. A finding with a longer one is rendered without it:
/// minified JSON is a single line of megabytes.
const EXCERPT_BYTES_MAX: usize = 16 * 1024;

fn is_long(sources: &Sources, finding: &Finding) -> bool {
    // A minified contract is one line of megabytes, and an excerpt would print all of it.
    let places = std::iter::once(finding.span).chain(finding.related.iter().map(|(span, _)| *span));
    let within = |file| {
        let starts = places.clone().filter(|span| span.file == file).map(|span| span.start);
        (starts.clone().min().unwrap_or(0), starts.max().unwrap_or(0))
    };
    let mut files = places.clone().map(|span| span.file);
    files.any(|file| {
        let (first, last) = within(file);
        sources.lines(file, first, last).0.len() > EXCERPT_BYTES_MAX
    })
}

/// Renders a finding as
/// `note[C005]: problem (431 places: a.yaml:12:3, a.yaml:40:7, …); suggestion`.
fn one_line(sources: &Sources, finding: &Finding) -> String {
    let place = |span: &Span| {
        let at = sources.start(*span);
        format!("{}:{}:{}", sources.name(span.file), at.line, at.column)
    };
    let places = match &finding.group {
        Some(group) if group.count > 1 => {
            let first: Vec<String> = group.first.iter().map(place).collect();
            let more = if group.count > group.first.len() { ", …" } else { "" };
            format!("{} places: {}{more}", group.count, first.join(", "))
        }
        _ => place(&finding.span),
    };
    let help = finding.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
    let (word, code) = (finding.severity.word(), finding.code.number());
    // Messages quote names of the pack, and a control character in one could change the state of the
    // terminal.
    printable(&format!("{word}[{code}]: {} ({places}){help}", finding.message))
}

fn group<'a>(sources: &'a Sources, finding: &'a Finding) -> Group<'a> {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut group = level.primary_title(&finding.message).id(finding.code.number()).element(excerpt(
        sources,
        finding.span,
        finding.label.as_deref(),
        finding.related.iter().filter(|(span, _)| span.file == finding.span.file),
    ));
    // A snippet contains lines of one file only.
    for (span, words) in finding.related.iter().filter(|(span, _)| span.file != finding.span.file) {
        group = group.element(excerpt(sources, *span, Some(words), std::iter::empty()));
    }
    match &finding.help {
        Some(help) => group.element(Level::HELP.message(printable(&help.to_string()))),
        None => group,
    }
}

/// Returns the lines around `span`, underlined, with related places of the same file.
///
/// Only the lines from the first to the last place are passed to the renderer, because it scans all
/// of its input for every finding.
fn excerpt<'a>(
    sources: &'a Sources,
    span: Span,
    label: Option<&'a str>,
    related: impl Iterator<Item = &'a (Span, String)> + Clone,
) -> Snippet<'a, Annotation<'a>> {
    // One excerpt covers all places of the file, so that their order on the screen is that of the file.
    let first = related.clone().map(|(other, _)| other.start).fold(span.start, u32::min);
    let last = related.clone().map(|(other, _)| other.start).fold(span.start, u32::max);
    let (range, line) = sources.lines(span.file, first, last);
    let text = &sources.text(span.file)[range.clone()];
    let place = |span: Span| underline_range(text, span, range.start);
    Snippet::source(text)
        .path(sources.name(span.file))
        .line_start(line)
        .annotation(AnnotationKind::Primary.span(place(span)).label(label))
        .annotations(
            related.map(|(other, words)| AnnotationKind::Context.span(place(*other)).label(words.as_str())),
        )
}

/// Returns the part of a span on its first line, as a byte range of `text`, which starts at
/// `offset` of the file. A map of a hundred lines is represented by its first.
fn underline_range(text: &str, span: Span, offset: usize) -> std::ops::Range<usize> {
    let local = |at: u32| clamp(text, (at as usize).saturating_sub(offset) as u32);
    let (start, end) = (local(span.start), local(span.end));
    // A node of many lines is underlined on its first one only, which suffices to find it.
    let first_line = text[start..end].lines().next().unwrap_or("");
    start..start + first_line.trim_end().len()
}

/// Replaces control characters, because a suggestion may contain names from a file, and must not
/// control the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// Renders all findings as a JSON object, in stable order. `?` marks optional members:
///
/// ```text
/// {errors, warnings, findings: [{code, slug, severity, message, file, line, column,
///   end: {line, column}, label?, help?, count?, places?,
///   related: [{file, line, column, message}]}]}
/// ```
pub fn to_json(sources: &Sources, findings: &Findings) -> Value {
    json!({
        "errors": findings.count(Severity::Error),
        "warnings": findings.count(Severity::Warning),
        "findings": findings.in_order().into_iter().map(|f| finding_json(sources, f)).collect::<Vec<_>>(),
    })
}

fn finding_json(sources: &Sources, finding: &Finding) -> Value {
    let mut value = json!({
        "code": finding.code.number(),
        "slug": finding.code.slug(),
        "severity": finding.severity.word(),
        "message": finding.message,
    });
    place_json(&mut value, sources, finding.span);
    let end = sources.end(finding.span);
    value["end"] = json!({"line": end.line, "column": end.column});
    if let Some(label) = &finding.label {
        value["label"] = json!(label);
    }
    if let Some(help) = &finding.help {
        value["help"] = json!(help.to_string());
    }
    if let Some(group) = &finding.group {
        value["count"] = json!(group.count);
        value["places"] = group
            .first
            .iter()
            .map(|span| {
                let mut place = json!({});
                place_json(&mut place, sources, *span);
                place
            })
            .collect();
    }
    // Present even if empty, so that a tool need not distinguish absent and empty.
    value["related"] = finding
        .related
        .iter()
        .map(|(span, words)| {
            let mut related = json!({});
            place_json(&mut related, sources, *span);
            related["message"] = json!(words);
            related
        })
        .collect();
    value
}

fn place_json(value: &mut Value, sources: &Sources, span: Span) {
    let start = sources.start(span);
    value["file"] = json!(sources.name(span.file));
    value["line"] = json!(start.line);
    value["column"] = json!(start.column);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Code;

    fn two_findings() -> (Sources, Findings) {
        let mut sources = Sources::new();
        let a = sources.add("mapping/a.map.yaml", "one: 1\ntwo: {same: [é, typ]}\nthree:\n  four: 4\n");
        let b = sources.add("contracts/b.yaml", "x: 1\n");
        let mut findings = Findings::new();
        findings.push(
            Finding::error(Code::UnknownWord, Span::new(a, 24, 27), "`typ` is not a field")
                .label("not there")
                .did_you_mean("typ", ["type"])
                .with_related(Span::new(a, 0, 3), "one of these")
                .with_related(Span::new(b, 0, 1), "the type is here"),
        );
        findings.push(Finding::warning(Code::UnknownKey, Span::new(a, 30, 45), "three is not used"));
        (sources, findings)
    }

    #[test]
    fn text_shows_place_excerpt_label_and_help() {
        let (sources, findings) = two_findings();
        assert_eq!(
            to_text(&sources, &findings, Colour::Never),
            "\
error[Y023]: `typ` is not a field
 --> mapping/a.map.yaml:2:17
  |
1 | one: 1
  | --- one of these
2 | two: {same: [é, typ]}
  |                 ^^^ not there
  |
 ::: contracts/b.yaml:1:1
  |
1 | x: 1
  | ^ the type is here
  |
  = help: did you mean `type`?

warning[Y020]: three is not used
 --> mapping/a.map.yaml:3:1
  |
3 | three:
  | ^^^^^^
"
        );
    }

    #[test]
    fn colours_only_when_asked() {
        let (sources, findings) = two_findings();
        assert!(!to_text(&sources, &findings, Colour::Never).contains('\u{1b}'));
        assert!(to_text(&sources, &findings, Colour::Always).contains('\u{1b}'));
    }

    #[test]
    fn json_carries_the_same_places() {
        let (sources, findings) = two_findings();
        let value = to_json(&sources, &findings);
        assert_eq!(value["errors"], 1);
        assert_eq!(value["warnings"], 1);
        let first = &value["findings"][0];
        assert_eq!((first["line"].as_u64(), first["column"].as_u64()), (Some(2), Some(17)));
        assert_eq!(first["end"], json!({"line": 2, "column": 20}));
        assert_eq!(first["related"][1]["file"], "contracts/b.yaml");
        assert_eq!(first["help"], "did you mean `type`?");
        assert!(value["findings"][1].get("label").is_none());
    }

    #[test]
    fn places_at_and_past_the_end_of_a_file_are_shown() {
        let mut sources = Sources::new();
        let file = sources.add("a.yaml", "a: é");
        let empty = sources.add("empty.yaml", "");
        let mut findings = Findings::new();
        findings.push(Finding::error(Code::EmptyFile, Span::new(empty, 0, 0), "nothing"));
        findings.push(Finding::error(Code::YamlSyntax, Span::new(file, 5, 5), "cut short"));
        findings.push(Finding::error(Code::YamlSyntax, Span::new(file, 99, 120), "past the end"));
        findings.push(Finding::error(Code::YamlSyntax, Span::new(file, 4, 5), "inside a letter"));
        let text = to_text(&sources, &findings, Colour::Never);
        for place in ["empty.yaml:1:1", "a.yaml:1:5", "past the end", "inside a letter"] {
            assert!(text.contains(place), "{place} in\n{text}");
        }
    }
}
