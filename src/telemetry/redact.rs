//! Making text from outside fit for a log: control characters are escaped, so that nobody can forge a line or move the
//! reader's cursor, and what looks like a credential is masked. Secrets of our own never get here: they are wrapped in
//! `Secret`, which has no way to print itself.

use std::fmt::{self, Write as _};

/// What stands in a text instead of a credential.
pub const MASK: &str = "***";

/// Most characters of a text from outside that a log line repeats.
const SHOWN_CHARS_MAX: usize = 512;

/// Displays a text with every character that could act on a terminal or on a log parser written as an escape, cut after
/// 512 characters.
///
/// ```
/// use switchback::telemetry::redact::Escaped;
/// assert_eq!(Escaped("/a\r\nlevel=info \u{1b}[31m").to_string(), r"/a\r\nlevel=info \u{1b}[31m");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        for c in chars.by_ref().take(SHOWN_CHARS_MAX) {
            match c {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                c if is_active(c) => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        if chars.next().is_some() { f.write_char('…') } else { Ok(()) }
    }
}

/// Characters that act instead of being shown: controls, line and paragraph separators, and the bidirectional overrides
/// that make a text read differently from what it is.
fn is_active(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Names, as they stand in headers, query strings and token answers, whose value is a credential.
const CREDENTIAL_NAMES: [&str; 9] = [
    "access_token",
    "refresh_token",
    "id_token",
    "client_secret",
    "authorization",
    "api_key",
    "password",
    "token",
    "code",
];

/// Authorization schemes after which a credential follows.
const SCHEMES: [&str; 2] = ["bearer ", "basic "];

/// The text with credentials replaced by `***`: what follows `Bearer` or `Basic`, and the value of a member, parameter or
/// field whose name says that it is one. A word that merely contains such a name (`barcode`) is left alone.
///
/// ```
/// use switchback::telemetry::redact::without_credentials;
/// assert_eq!(without_credentials("Authorization: Bearer abc.def"), "Authorization: Bearer ***");
/// assert_eq!(without_credentials(r#"{"refresh_token": "r-1", "n": 1}"#), r#"{"refresh_token": "***", "n": 1}"#);
/// assert_eq!(without_credentials("/callback?code=55&state=x"), "/callback?code=***&state=x");
/// ```
pub fn without_credentials(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match credential_at(&lower, at) {
            Some((start, end)) => {
                out.push_str(&text[at..start]);
                out.push_str(MASK);
                at = end;
            }
            None => {
                let next = lower[at..].chars().next().map_or(1, char::len_utf8);
                out.push_str(&text[at..at + next]);
                at += next;
            }
        }
    }
    out
}

/// Where the credential begins and ends, if a scheme or a telling name stands at `at`.
fn credential_at(lower: &str, at: usize) -> Option<(usize, usize)> {
    let starts_word = !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if !starts_word {
        return None;
    }
    let rest = &lower[at..];
    if let Some(scheme) = SCHEMES.iter().find(|scheme| rest.starts_with(**scheme)) {
        return value_span(lower, at + scheme.len());
    }
    let name = CREDENTIAL_NAMES.iter().find(|name| rest.starts_with(**name))?;
    let mut value = at + name.len();
    value += usize::from(lower[value..].starts_with('"'));
    value += leading_spaces(&lower[value..]);
    if !lower[value..].starts_with([':', '=']) {
        return None;
    }
    value += 1;
    value += leading_spaces(&lower[value..]);
    value += usize::from(lower[value..].starts_with('"'));
    if SCHEMES.iter().any(|scheme| lower[value..].starts_with(scheme)) {
        return None; // the scheme is kept and its credential is found when the scan arrives there
    }
    value_span(lower, value)
}

fn leading_spaces(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// A credential reaches to the next character that cannot be part of one.
fn value_span(lower: &str, start: usize) -> Option<(usize, usize)> {
    let length = lower[start..]
        .find(|c: char| {
            c.is_whitespace() || c.is_control() || matches!(c, '"' | '&' | ',' | ';' | '}' | '\'' | '<')
        })
        .unwrap_or(lower.len() - start);
    (length > 0).then_some((start, start + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_forge_a_line_or_colour_the_terminal() {
        let forged = "/x\n2026 INFO all is well\u{1b}[2J\u{9b}1m\u{202e}";
        let shown = Escaped(forged).to_string();
        assert_eq!(shown, "/x\\n2026 INFO all is well\\u{1b}[2J\\u{9b}1m\\u{202e}");
        assert!(!shown.chars().any(char::is_control));
    }

    #[test]
    fn a_very_long_text_is_cut_and_says_so() {
        let shown = Escaped(&"é".repeat(SHOWN_CHARS_MAX + 1)).to_string();
        assert_eq!(shown.chars().count(), SHOWN_CHARS_MAX + 1);
        assert!(shown.ends_with('…'));
        assert!(!Escaped(&"é".repeat(SHOWN_CHARS_MAX)).to_string().ends_with('…'));
    }

    #[test]
    fn credentials_are_masked_wherever_they_stand() {
        for (text, masked) in [
            ("X-Authorization: Bearer t0k\r\nHost: a", "X-Authorization: Bearer ***\r\nHost: a"),
            ("authorization: t0k", "authorization: ***"),
            ("client_secret=s3cret&grant_type=refresh_token", "client_secret=***&grant_type=refresh_token"),
            (r#"{"access_token":"a.b-c","expires_in":5}"#, r#"{"access_token":"***","expires_in":5}"#),
            (r#"{ "Token" : "ñandú" , "x": 1}"#, r#"{ "Token" : "***" , "x": 1}"#),
            ("basic dXNlcjpwdw==", "basic ***"),
        ] {
            assert_eq!(without_credentials(text), masked, "{text}");
        }
    }

    #[test]
    fn ordinary_words_stay() {
        for text in
            ["barcode=5", "the code is fine", "token expired", "encode: yes", "bearer", "naïve 😀 text"]
        {
            assert_eq!(without_credentials(text), text);
        }
    }
}
