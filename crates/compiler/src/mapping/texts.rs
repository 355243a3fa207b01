//! Languages and reasons: every text in every language of the pack, with equal placeholders.

use super::ast::{Manifest, ReasonDecl, Spanned};
use super::{faults, origin};
use crate::diagnostic::{Findings, Sources};
use std::collections::{BTreeMap, BTreeSet};
use switchback_plan as plan;

/// Returns the languages of a pack as lower-case tags, default first.
pub(super) fn languages(manifest: &Manifest, findings: &mut Findings) -> Vec<String> {
    let mut languages: Vec<String> = Vec::new();
    for language in &manifest.languages {
        if !is_tag(&language.value) {
            findings.push(faults::language_tag(language));
        } else if languages.contains(&language.value) {
            findings.push(faults::language_twice(language));
        } else {
            languages.push(language.value.clone());
        }
    }
    if manifest.languages.is_empty() {
        findings.push(faults::no_language(manifest.span));
    }
    languages
}

/// Returns whether a text is a lower-case language tag: subtags of letters and digits, the first of
/// letters (BCP 47).
fn is_tag(text: &str) -> bool {
    let mut parts = text.split('-');
    let first = parts.next().unwrap_or_default();
    let lower = |part: &str| part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    (2..=8).contains(&first.len())
        && first.bytes().all(|b| b.is_ascii_lowercase())
        && parts.all(|part| (1..=8).contains(&part.len()) && lower(part))
}

/// Returns the reasons of a pack in order, and the placeholders of each.
pub(super) fn reasons(
    reasons: &[ReasonDecl],
    languages: &[String],
    sources: &Sources,
    findings: &mut Findings,
) -> (Vec<plan::Reason>, Vec<BTreeSet<String>>) {
    let mut compiled = Vec::new();
    let mut placeholders = Vec::new();
    for reason in reasons {
        let (texts, names) = texts(reason, languages, findings);
        placeholders.push(names);
        compiled.push(plan::Reason {
            name: reason.name.value.clone(),
            texts,
            origin: origin(sources, reason.name.span),
        });
    }
    (compiled, placeholders)
}

fn texts(
    reason: &ReasonDecl,
    languages: &[String],
    findings: &mut Findings,
) -> (BTreeMap<String, String>, BTreeSet<String>) {
    let mut texts = BTreeMap::new();
    let mut first: Option<(&Spanned<String>, BTreeSet<String>)> = None;
    for (language, text) in &reason.texts {
        if !languages.contains(&language.value) {
            findings.push(faults::unknown_language(language, languages));
            continue;
        }
        let Some(names) = placeholders(&text.value) else {
            findings.push(faults::placeholder_form(text.span));
            continue;
        };
        match &first {
            None => first = Some((text, names)),
            Some((other, wanted)) if *wanted != names => {
                findings.push(faults::other_placeholders(text.span, other.span, wanted));
            }
            Some(_) => {}
        }
        texts.insert(language.value.clone(), text.value.clone());
    }
    let written = |language: &str| reason.texts.iter().any(|(written, _)| written.value == language);
    for (at, language) in languages.iter().enumerate().filter(|(_, language)| !written(language)) {
        findings.push(faults::missing_language(&reason.name, language, at == 0));
    }
    // The first text determines the placeholders; the others were compared with it.
    (texts, first.map(|(_, names)| names).unwrap_or_default())
}

/// Returns the names in braces, or `None` if a brace is unpaired or contains no valid name.
fn placeholders(text: &str) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut rest = text;
    while let Some(open) = rest.find(['{', '}']) {
        let inner = rest[open..].strip_prefix('{')?;
        let (name, after) = inner.split_once('}')?;
        let named = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !named {
            return None;
        }
        names.insert(name.to_owned());
        rest = after;
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_names_in_braces() {
        let found = |text| placeholders(text).map(|names| names.into_iter().collect::<Vec<_>>().join(" "));
        assert_eq!(found("no names").as_deref(), Some(""));
        assert_eq!(found("{b} of {a}, {b} again").as_deref(), Some("a b"));
        for text in ["{", "}", "{}", "{a", "a}", "{a b}", "{{a}}"] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn tags_are_lower_case() {
        assert!(["en", "pt-br", "zh-hans-cn", "de-1996"].iter().all(|tag| is_tag(tag)));
        assert!(["", "e", "pt-BR", "EN", "pt_br", "pt-", "1e"].iter().all(|tag| !is_tag(tag)));
    }
}
