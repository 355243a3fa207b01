//! Removes credentials from running text: error messages, log lines, addresses.

use super::MASK;
use super::names::CREDENTIAL_NAMES;

/// Authorization schemes that precede a credential.
const SCHEMES: [&str; 2] = ["bearer ", "basic "];

/// Replaces credentials by `***`: the word after `Bearer` or `Basic`, and the value of a member,
/// parameter or field whose name indicates a credential. Words that only contain such a name
/// (`barcode`) are unchanged.
///
/// ```
/// use switchback_engine::redact::without_credentials;
/// assert_eq!(without_credentials("Authorization: Bearer abc.def"), "Authorization: Bearer ***");
/// let json = without_credentials(r#"{"refresh_token": "r-1", "n": 1}"#);
/// assert_eq!(json, r#"{"refresh_token": "***", "n": 1}"#);
/// assert_eq!(without_credentials("/callback?code=55&state=x"), "/callback?code=***&state=x");
/// ```
pub fn without_credentials(text: &str) -> String {
    // ASCII lower-casing preserves the byte offsets.
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

/// Returns the span of a credential whose scheme or name starts at `at`.
fn credential_at(lower: &str, at: usize) -> Option<(usize, usize)> {
    // Names must match at the start of a word, or `barcode` would match `code`.
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
        return None; // the scan reaches the scheme later and masks its credential
    }
    value_span(lower, value)
}

fn leading_spaces(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// Returns the span from `start` to the next character that no credential contains.
fn value_span(lower: &str, start: usize) -> Option<(usize, usize)> {
    let length = lower[start..]
        .find(|c: char| {
            c.is_whitespace() || c.is_control() || matches!(c, '"' | '&' | ',' | ';' | '}' | '\'' | '<')
        })
        .unwrap_or(lower.len() - start);
    (length > 0).then_some((start, start + length))
}

/// Returns whether a character affects rendering: controls, line and paragraph separators, and the
/// bidirectional overrides, which make a text appear different from its content.
pub fn is_active(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

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
