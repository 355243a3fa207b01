//! `match` and `replace`: regular expressions over texts. The engine is linear in the length of the
//! text; the size of the pattern is checked when the pack is compiled, and text, matches and result
//! are bounded. A client therefore cannot choose a text that takes long.

use super::{Function, FunctionArguments, FunctionSpec, TEXT, TEXT_MAX, are_all, example};
use crate::convert::{ArgumentError, Facts};
use regex::{Captures, Regex, RegexBuilder};
use std::sync::Arc;
use switchback_json::Value;

/// Maximum length of a pattern in bytes.
const PATTERN_MAX: usize = 500;
/// Maximum size of a compiled pattern, and of its cache of states, in bytes.
const PROGRAM_MAX: usize = 1 << 18;
/// Maximum length of a text in bytes.
const SUBJECT_MAX: usize = 1 << 16;
/// Maximum number of replaced matches. Each search may read the whole rest of the text, so without
/// this bound the time would be quadratic.
const MATCHES_MAX: usize = 1_000;

pub(super) const MATCH: FunctionSpec = FunctionSpec {
    name: "match",
    about: "The first group of a regular expression in a text; without a group, all that it matches.",
    arguments: Some(FunctionArguments {
        such_as: r"{match: '^(\S+) '}",
        schema: r#"{"type": "string", "minLength": 1, "maxLength": 500}"#,
    }),
    build: |given| {
        let Some(text) = given.arguments.as_str() else { return Err("it takes a pattern".into()) };
        let pattern = pattern(&text)?;
        // With a second group, it would be unclear which one is the result.
        if pattern.captures_len() > 2 {
            return Err("it has more than one group: write the others as `(?:…)`".into());
        }
        let group = pattern.captures_len() - 1;
        Ok(Arc::new(Match { pattern, group }))
    },
    examples: &[
        example(r#""^(\\S+) ""#, "\"Ada Lovelace\"", Some("\"Ada\"")),
        example(r#""[0-9]+""#, "\"no. 17, p. 4\"", Some("\"17\"")),
        example(r#""^(\\S+) ""#, "\"Ada\"", None),
    ],
};

pub(super) const REPLACE: FunctionSpec = FunctionSpec {
    name: "replace",
    about: "A text with all matches of a regular expression replaced.",
    arguments: Some(FunctionArguments {
        such_as: r"{replace: {pattern: '<[^>]*>', by: ''}}",
        schema: r#"{"type": "object", "additionalProperties": false, "required": ["pattern", "by"], "properties": {
            "pattern": {"type": "string", "minLength": 1, "maxLength": 500, "description": "A regular expression."},
            "by": {"type": "string", "description": "The text instead. `$1` or `${name}` is a group of the match, `$$` is a dollar sign."}}}"#,
    }),
    build: |given| {
        let text = |name: &str| given.arguments.get(name).and_then(Value::as_str);
        let names = given.arguments.as_object().map(|map| map.len());
        let (Some(written), Some(by), Some(2)) = (text("pattern"), text("by"), names) else {
            return Err("it takes a `pattern` and the text `by` which its matches are replaced".into());
        };
        let pattern = pattern(&written)?;
        check_groups(&pattern, &by)?;
        Ok(Arc::new(Replace { pattern, by: by.into_owned() }))
    },
    examples: &[
        example(r#"{"pattern": "<[^>]*>", "by": ""}"#, "\"<b>Tea</b>\"", Some("\"Tea\"")),
        example(
            r#"{"pattern": "(\\w+), (\\w+)", "by": "$2 $1"}"#,
            "\"Lovelace, Ada\"",
            Some("\"Ada Lovelace\""),
        ),
        example(r#"{"pattern": "^", "by": "$$"}"#, "\"5\"", Some("\"$5\"")),
        example(r#"{"pattern": "a", "by": "b"}"#, "7", None),
    ],
};

fn pattern(text: &str) -> Result<Regex, ArgumentError> {
    if text.is_empty() || text.len() > PATTERN_MAX {
        return Err(format!("a pattern has 1 to {PATTERN_MAX} bytes").into());
    }
    let built =
        RegexBuilder::new(text).size_limit(PROGRAM_MAX).dfa_size_limit(PROGRAM_MAX).nest_limit(50).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            "the pattern is too large: take smaller counts, or `[0-9]` for `\\d` and `[A-Za-z]` for letters"
                .into()
        }
        // The last line of the message names the mistake; the others repeat the pattern.
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            ArgumentError::from(last.trim().trim_start_matches("error: ").to_owned())
        }
    })
}

/// Checks that each group in a replacement is one of the pattern. Others would be replaced by nothing.
fn check_groups(pattern: &Regex, by: &str) -> Result<(), ArgumentError> {
    let mut rest = by;
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let name = match rest.chars().next() {
            Some('$') => {
                rest = &rest[1..];
                continue;
            }
            Some('{') => rest[1..].split('}').next().unwrap_or_default(),
            _ => &rest[..rest.find(|letter| !is_letter(letter)).unwrap_or(rest.len())],
        };
        let is_group = match name.parse::<usize>() {
            Ok(number) => number < pattern.captures_len(),
            Err(_) => pattern.capture_names().flatten().any(|known| known == name),
        };
        if !is_group {
            return Err(format!(
                "`by` refers to `${name}`, which is no group of the pattern; `$$` is a dollar sign, and `${{1}}a` \
                 separates a group from letters"
            )
            .into());
        }
    }
    Ok(())
}

#[derive(Debug)]
struct Match {
    pattern: Regex,
    group: usize,
}

impl Function for Match {
    fn name(&self) -> &'static str {
        MATCH.name
    }

    fn takes_all(&self, facts: &Facts) -> bool {
        is_each(self, facts)
    }

    fn domain_text(&self) -> &'static str {
        "a text of at most 64 KiB that its pattern matches"
    }

    fn apply(&self, value: Value) -> Option<Value> {
        let text = value.as_str().filter(|text| text.len() <= SUBJECT_MAX)?;
        let found = match self.group {
            0 => self.pattern.find(&text)?,
            group => self.pattern.captures(&text)?.get(group)?,
        };
        Some(Value::string(found.as_str()))
    }
}

#[derive(Debug)]
struct Replace {
    pattern: Regex,
    by: String,
}

impl Function for Replace {
    fn name(&self) -> &'static str {
        REPLACE.name
    }

    fn takes_all(&self, facts: &Facts) -> bool {
        is_each(self, facts) || are_all(facts, TEXT) && facts.length_most.is_some_and(|most| most <= 1_000)
    }

    fn domain_text(&self) -> &'static str {
        "a text of at most 64 KiB with at most 1,000 matches of its pattern"
    }

    fn apply(&self, value: Value) -> Option<Value> {
        let text = value.as_str().filter(|text| text.len() <= SUBJECT_MAX)?;
        let (mut replaced, mut end) = (String::with_capacity(text.len()), 0);
        for (at, found) in self.pattern.captures_iter(&text).enumerate() {
            if at == MATCHES_MAX {
                return None;
            }
            let whole = found.get_match();
            replaced.push_str(&text[end..whole.start()]);
            self.expand(&found, &mut replaced)?;
            end = whole.end();
        }
        replaced.push_str(&text[end..]);
        Some(Value::string(&replaced))
    }
}

impl Replace {
    fn expand(&self, found: &Captures<'_>, out: &mut String) -> Option<()> {
        found.expand(&self.by, out);
        (out.len() <= TEXT_MAX).then_some(())
    }
}

/// Returns whether a function accepts each of the values that the contract lists.
fn is_each(function: &impl Function, facts: &Facts) -> bool {
    let takes = |json: &[u8]| {
        let value = Value::parse(json, &switchback_json::Limits::DOCUMENT).ok();
        value.is_some_and(|value| value.is_null() || function.apply(value).is_some())
    };
    !facts.any && facts.values.as_ref().is_some_and(|values| values.iter().all(|value| takes(value)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{applied, build};
    use super::*;

    #[test]
    fn a_pattern_that_is_too_large_is_refused() {
        for pattern in [r#""\\w{500}""#, r#""((a{100}){100}){100}""#, r#""(a""#, r#""""#, "7", r#""(a)(b)""#]
        {
            let error = build("match", pattern).expect_err(pattern).to_string();
            assert!(!error.is_empty() && !error.contains('\n'), "{pattern}: {error}");
        }
        let long = format!("\"{}\"", "a".repeat(PATTERN_MAX + 1));
        assert!(build("match", &long).is_err());
    }

    #[test]
    fn a_replacement_refers_to_groups_of_its_pattern() {
        let by = |by: &str| build("replace", &format!(r#"{{"pattern": "(a)(?P<b>b)", "by": "{by}"}}"#));
        for right in ["$1", "${1}x", "$b", "${b}", "$$", "$0", "x"] {
            assert!(by(right).is_ok(), "{right}");
        }
        for wrong in ["$3", "$1x", "${c}", "$", "$ 1"] {
            assert!(by(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn texts_and_matches_beyond_the_bounds_are_outside_the_domain() {
        let all = |text: &str| applied("replace", r#"{"pattern": "a", "by": "bb"}"#, &format!("\"{text}\""));
        assert_eq!(all(&"a".repeat(MATCHES_MAX)), Some(format!("\"{}\"", "b".repeat(2 * MATCHES_MAX))));
        assert_eq!(all(&"a".repeat(MATCHES_MAX + 1)), None);
        assert!(all(&"x".repeat(SUBJECT_MAX)).is_some());
        assert_eq!(all(&"x".repeat(SUBJECT_MAX + 1)), None);
        let doubled = format!(r#"{{"pattern": "(x+)a", "by": "{}"}}"#, "$1".repeat(100));
        let text = format!("\"{}\"", format!("{}a", "x".repeat(30_000)).repeat(2));
        // `$1$1` is a group followed by another one.
        assert_eq!(applied("replace", &doubled, &text), None);
    }

    #[test]
    fn a_search_from_every_character_ends() {
        // A pattern whose every search reads the rest of the text.
        let pattern = r#"{"pattern": "a.*b|a", "by": ""}"#;
        assert_eq!(applied("replace", pattern, &format!("\"{}\"", "a".repeat(SUBJECT_MAX))), None);
    }
}
