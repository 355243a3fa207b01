//! Comparison of numbers in document notation.

use std::cmp::Ordering;

/// Returns the order of two numbers, or `None` if one of them is not a number. Integers are
/// compared exactly, others as `f64`.
pub(super) fn order(a: &str, b: &str) -> Option<Ordering> {
    match (a.parse::<i128>(), b.parse::<i128>()) {
        (Ok(a), Ok(b)) => Some(a.cmp(&b)),
        _ => a.parse::<f64>().ok()?.partial_cmp(&b.parse::<f64>().ok()?),
    }
}

/// Returns whether a number is a multiple of another, or `None` if that cannot be computed exactly.
pub(super) fn is_multiple(number: &str, of: &str) -> Option<bool> {
    let [number, of] = to_common_scale([number, of])?;
    (of != 0).then(|| number % of == 0)
}

/// Removes trailing zeros of a fraction.
pub(super) fn shortest(number: &str) -> String {
    match number.contains('.') && !number.contains(['e', 'E']) {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number.to_owned(),
    }
}

/// Scales two decimal numbers by the same power of ten to integers.
fn to_common_scale(texts: [&str; 2]) -> Option<[i128; 2]> {
    let digits = |text: &str| text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let places = texts.into_iter().map(digits).max()?;
    let whole = |text: &str| {
        let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
        format!("{integer}{fraction:0<places$}").parse().ok()
    };
    Some([whole(texts[0])?, whole(texts[1])?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_are_exact() {
        for (number, of, is) in [
            ("10", "5", Some(true)),
            ("11", "5", Some(false)),
            ("0.3", "0.1", Some(true)),
            ("0.35", "0.1", Some(false)),
            ("-1.5", "0.5", Some(true)),
            ("1e3", "10", None),
            ("1", "0", None),
        ] {
            assert_eq!(is_multiple(number, of), is, "{number} of {of}");
        }
    }
}
