//! Heuristics that recognize credentials by their appearance, regardless of their name, and texts
//! whose format excludes personal data. Both prefer masking: a masked identifier is still
//! comparable by its hash, whereas a disclosed token cannot be recalled.

/// Authorization schemes and vendor prefixes of credentials, in lower case.
const PREFIXES: [&str; 12] = [
    "bearer ",
    "basic ",
    "digest ",
    "sk-",
    "sk_",
    "pk_",
    "ghp_",
    "gho_",
    "github_pat_",
    "xoxb-",
    "xoxp-",
    "akia",
];

/// Minimum length of an unbroken run of characters that can be a token.
const TOKEN_CHARS_MIN: usize = 20;

/// Returns whether a text looks like a credential or a personal address: an authorization value, a
/// signed token, a long run of mixed letters and digits without spaces, an email address, or a
/// telephone number.
pub fn looks_secret(text: &str) -> bool {
    let trimmed = text.trim();
    let head: String = trimmed.chars().take(16).flat_map(char::to_lowercase).collect();
    PREFIXES.iter().any(|prefix| head.starts_with(prefix))
        || has_token(trimmed)
        || is_address(trimmed)
        || is_telephone(trimmed)
}

/// Returns whether the text contains a run of token characters that is long and mixed enough to be
/// machine-generated.
fn has_token(text: &str) -> bool {
    let is_token_char =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/' | '=' | '~');
    text.split(|c: char| !is_token_char(c)).any(is_token)
}

fn is_token(run: &str) -> bool {
    // Paths and host names are runs of words, so examine each of their segments.
    let parts = run.split(['/', '.']).filter(|part| !part.is_empty());
    // Every JWT starts with the Base64 of `{"`.
    let signed = run.starts_with("eyJ") && run.matches('.').count() >= 1;
    signed || parts.into_iter().any(is_token_part)
}

fn is_token_part(part: &str) -> bool {
    let count = |test: fn(&char) -> bool| part.chars().filter(test).count();
    let (letters, digits) = (count(char::is_ascii_alphabetic), count(char::is_ascii_digit));
    let long = part.len() >= TOKEN_CHARS_MIN;
    let mixed = letters >= 2 && digits >= 2;
    // Base64 without digits is rare but possible. Frequent changes from lower to upper case occur
    // in no natural word.
    let pairs = part.as_bytes().windows(2);
    let turns = pairs.filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()).count();
    long && (mixed || turns >= 4)
}

fn is_address(text: &str) -> bool {
    text.split(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | ',' | ';' | '(' | ')' | '"')).any(
        |word| {
            let Some((local, domain)) = word.split_once('@') else { return false };
            // `a.b` is the shortest domain with a dot.
            !local.is_empty() && domain.len() >= 3 && domain.trim_end_matches('.').contains('.')
        },
    )
}

/// Returns whether a text consists of at least eight digits and the punctuation of telephone
/// numbers. Dates are excluded by their own format.
fn is_telephone(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let only_marks =
        text.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '(' | ')' | ' ' | '-' | '.'));
    digits >= 8 && only_marks && !is_date(text)
}

/// Minimum number of digits of a telephone number or an identity document.
const PERSONAL_DIGITS_MIN: usize = 8;

/// Returns whether the format of a text excludes personal data: empty, a short number, or a time.
///
/// ```
/// use switchback_engine::redact::is_plain;
/// assert!(is_plain("") && is_plain("-12.5"));
/// assert!(is_plain("2024-03-09") && is_plain("09/03/2024 10:00:00"));
/// assert!(!is_plain("Ana") && !is_plain("5511988887777") && !is_plain("2024-03-09 call me"));
/// ```
pub fn is_plain(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let number = text.strip_prefix('-').unwrap_or(text);
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && number.matches('.').count() <= 1;
    text.is_empty() || (is_number && digits < PERSONAL_DIGITS_MIN) || is_moment(text)
}

/// Returns whether a text is exactly a date, optionally with a time of day and a zone.
pub fn is_moment(text: &str) -> bool {
    if text.len() > 40 || !is_date(text) {
        return false;
    }
    // `YYYY-MM-DD` and `DD/MM/YYYY` both have ten characters; the time follows.
    let Some(time) = text.get(10..) else { return false };
    let is_time_mark = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | '+' | '-');
    match time.strip_prefix(['T', ' ']) {
        None => time.is_empty(),
        Some(time) => {
            let time = time.strip_suffix('Z').unwrap_or(time);
            time.len() >= 5 && time.as_bytes()[2] == b':' && time.chars().all(is_time_mark)
        }
    }
}

/// Returns whether a text starts with `YYYY-MM-DD` or `DD-MM-YYYY`, with any of the usual
/// separators.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mark = |at: usize| bytes.get(at).is_some_and(|b| matches!(b, b'-' | b'.' | b'/'));
    let digits =
        |from: usize, to: usize| bytes.get(from..to).is_some_and(|part| part.iter().all(u8::is_ascii_digit));
    (digits(0, 4) && mark(4) && digits(5, 7) && mark(7) && digits(8, 10))
        || (digits(0, 2) && mark(2) && digits(3, 5) && mark(5) && digits(6, 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keys_and_addresses_of_people_look_secret() {
        for text in [
            "Bearer abc",
            "basic dXNlcjpwdw==",
            "eyJhbGciOiJIUzI1NiJ9.e30.XmNK3GpH3Ys_7wsYBfq4C3M6goz71I7dTgUkuIa5lyQ",
            "0f3a9c8e7d6b5a4f3e2d1c0b",
            "550e8400-e29b-41d4-a716-446655440000",
            "the key is 9f86d081884c7d659a2feaa0c55ad015, keep it",
            "https://files.example/9f86d081884c7d659a2feaa0c55ad015.png",
            "ana@example.org",
            "Ana <ana@example.org>",
            "+55 11 98888-7777",
            "5511988887777",
            "QWxhZGRpbjpvcGVuIHNlc2FtZQ",
        ] {
            assert!(looks_secret(text), "{text}");
        }
    }

    #[test]
    fn words_numbers_and_dates_do_not() {
        for text in [
            "",
            "in_chat",
            "wait_for_chat",
            "Recife",
            "2024-03-09",
            "2024-03-09 10:00:00",
            "09/03/2024 10:00",
            "A thing cannot be opened through this version.",
            "https://example.org/some/long/path/of/plain/words",
            "12345",
            "an_identifier_made_of_words_only",
            "@here",
        ] {
            assert!(!looks_secret(text), "{text}");
        }
    }
}
