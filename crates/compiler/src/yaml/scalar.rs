//! Classifies plain scalars: null, boolean, number, text, or a notation that YAML parsers interpret
//! differently.

use switchback_json::text::check_number;

/// The classification of a plain scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlainScalar {
    Null,
    Bool(bool),
    Number,
    Text,
    /// A boolean in YAML 1.1, a text in YAML 1.2.
    MaybeBool,
    /// A number in some version of YAML, but not in JSON.
    MaybeNumber,
}

/// Classifies a plain scalar by the core schema of YAML 1.2 (section 10.3.2), except for notations
/// with another meaning in YAML 1.1.
pub(super) fn plain(text: &str) -> PlainScalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => PlainScalar::Null,
        "true" => PlainScalar::Bool(true),
        "false" => PlainScalar::Bool(false),
        _ if is_boolean_word(text) => PlainScalar::MaybeBool,
        _ if is_json_number(text) => PlainScalar::Number,
        _ if is_number_like(text) => PlainScalar::MaybeNumber,
        _ => PlainScalar::Text,
    }
}

fn is_boolean_word(text: &str) -> bool {
    const WORDS: [&str; 8] = ["yes", "no", "on", "off", "y", "n", "true", "false"];
    text.len() <= 5 && WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Returns whether the text is a JSON number (RFC 8259, section 6).
fn is_json_number(text: &str) -> bool {
    check_number(text.as_bytes()).is_ok()
}

/// Returns whether the text is a YAML number with a sign, leading zeros, a leading or trailing
/// point, another base, or an infinity.
fn is_number_like(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    if matches!(lower.as_str(), ".inf" | ".nan") {
        return true;
    }
    if let Some(hex) = lower.strip_prefix("0x") {
        return !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit());
    }
    if let Some(digits) = lower.strip_prefix("0o").or_else(|| lower.strip_prefix("0b")) {
        return !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    }
    let (mantissa, exponent) = match lower.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (lower.as_str(), None),
    };
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    (!whole.is_empty() || !fraction.is_empty())
        && all_digits(whole)
        && all_digits(fraction)
        && exponent.is_none_or(|e| !e.is_empty() && all_digits(e))
}

/// Converts a YAML number to JSON notation: without a plus sign, with digits on both sides of the
/// point. Returns `None` for other bases, infinities, and leading zeros, which rather indicate an
/// id.
pub(super) fn json_number(text: &str) -> Option<String> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let whole = if unsigned.starts_with('.') { "0" } else { "" };
    let fixed = format!("{sign}{whole}{unsigned}").replace(".e", ".0e").replace(".E", ".0E");
    let fixed = if fixed.ends_with('.') { fixed + "0" } else { fixed };
    is_json_number(&fixed).then_some(fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_plain_scalar() {
        let cases = [
            (PlainScalar::Null, &["", "~", "null", "NULL"][..]),
            (PlainScalar::Number, &["0", "-0", "12", "-1.50", "1e9", "1.0E-3", "9007199254740993"]),
            (
                PlainScalar::MaybeNumber,
                &["+1", "007", ".5", "1.", "0x1F", "0o17", "-.inf", ".NaN", "01.5", "1.e3"],
            ),
            (PlainScalar::MaybeBool, &["yes", "No", "ON", "off", "y", "N", "True", "FALSE"]),
            (
                PlainScalar::Text,
                &[
                    "a",
                    "-",
                    ".",
                    "e3",
                    "1e",
                    "0x",
                    "12:30",
                    "2024-01-01",
                    "1 2",
                    "+",
                    "nulls",
                    "2xx",
                    "1_000",
                ],
            ),
        ];
        for (kind, texts) in cases {
            for text in texts {
                assert_eq!(plain(text), kind, "{text}");
            }
        }
        assert_eq!(plain("true"), PlainScalar::Bool(true));
    }
}
