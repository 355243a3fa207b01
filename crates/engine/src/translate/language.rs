//! Content negotiation of the language (RFC 9110, section 12.5.4; matching as in RFC 4647).

/// Returns the index of the language in `languages` (lower-case tags) that an `Accept-Language`
/// value prefers, or 0 without a match. A range matches a tag if one is a prefix of the other at a
/// `-`: `pt` matches `pt-br`, and `en-US` matches `en`. Among equal weights, an exact match wins.
pub fn negotiate(accept_language: &str, languages: &[String]) -> usize {
    let mut best = (0, 0, 0);
    let wanted = accept_language.split(',').filter_map(parse_range).filter(|(_, weight)| *weight > 0);
    for (range, weight) in wanted {
        for (at, tag) in languages.iter().enumerate() {
            let fit = fit(range, tag);
            // Ties go to the earlier range, and then to the earlier language of the pack.
            if fit > 0 && (weight, fit) > (best.0, best.1) {
                best = (weight, fit, at);
            }
        }
    }
    best.2
}

/// Parses a language range and its weight in thousandths. Returns `None` if either is invalid.
fn parse_range(text: &str) -> Option<(&str, u16)> {
    let (range, parameter) = match text.split_once(';') {
        Some((range, parameter)) => (range.trim(), Some(parameter.trim())),
        None => (text.trim(), None),
    };
    let weight = match parameter {
        None => 1000,
        Some(parameter) => {
            let value: f32 =
                parameter.strip_prefix(['q', 'Q'])?.trim_start().strip_prefix('=')?.trim().parse().ok()?;
            // The value is in 0..=1000, so the cast is lossless except for the fraction.
            (0.0..=1.0).contains(&value).then_some((value * 1000.0) as u16)?
        }
    };
    (!range.is_empty()).then_some((range, weight))
}

/// Returns how well a range matches a tag: 4 exactly, 3 as a prefix, 2 as an extension, 1 as `*`, 0
/// not at all.
fn fit(range: &str, tag: &str) -> u8 {
    let begins = |long: &str, short: &str| {
        long.get(..short.len()).is_some_and(|head| head.eq_ignore_ascii_case(short))
            && long.as_bytes().get(short.len()) == Some(&b'-')
    };
    match range {
        "*" => 1,
        range if range.eq_ignore_ascii_case(tag) => 4,
        range if begins(tag, range) => 3,
        range if begins(range, tag) => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::negotiate;

    #[test]
    fn the_client_reads_what_it_asked_for_as_near_as_there_is() {
        let languages = ["en", "pt-br", "es"].map(str::to_owned);
        for (accepted, expected) in [
            ("", "en"),
            ("es", "es"),
            ("pt-BR", "pt-br"),
            ("pt", "pt-br"),
            ("es-MX, en;q=0.5", "es"),
            ("fr, es;q=0.5, pt-br;q=0.7", "pt-br"),
            ("de", "en"),
            ("*", "en"),
            ("es;q=0", "en"),
            ("es;q=2, pt-br;q=0.1", "pt-br"),
            ("esperanto", "en"),
            (",,;q=1, es ; q = 0.3", "es"),
        ] {
            assert_eq!(languages[negotiate(accepted, &languages)], expected, "{accepted}");
        }
    }
}
