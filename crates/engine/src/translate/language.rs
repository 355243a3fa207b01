//! Which of a pack's languages a client reads best (RFC 9110, section 12.5.4; matching as in RFC 4647).

/// The language wanted most by an `Accept-Language` value, as an index into `languages` (lower-case tags); the first when
/// nothing fits. A range fits a tag when one is the other up to a `-`: `pt` fits `pt-br`, `en-US` fits `en`. An exact fit
/// wins over a near one of the same weight.
pub fn negotiate(accept_language: &str, languages: &[String]) -> usize {
    let mut best = (0, 0, 0);
    let wanted = accept_language.split(',').filter_map(weighted).filter(|(_, weight)| *weight > 0);
    for (range, weight) in wanted {
        for (at, tag) in languages.iter().enumerate() {
            let fit = fit(range, tag);
            if fit > 0 && (weight, fit) > (best.0, best.1) {
                best = (weight, fit, at);
            }
        }
    }
    best.2
}

/// A language range and its weight in thousandths; none where there is no range or a weight that is none.
fn weighted(text: &str) -> Option<(&str, u16)> {
    let (range, parameter) = match text.split_once(';') {
        Some((range, parameter)) => (range.trim(), Some(parameter.trim())),
        None => (text.trim(), None),
    };
    let weight = match parameter {
        None => 1000,
        Some(parameter) => {
            let value: f32 =
                parameter.strip_prefix(['q', 'Q'])?.trim_start().strip_prefix('=')?.trim().parse().ok()?;
            // The range is checked, so the cast keeps what it shows.
            (0.0..=1.0).contains(&value).then_some((value * 1000.0) as u16)?
        }
    };
    (!range.is_empty()).then_some((range, weight))
}

/// How well a range fits a tag: 4 exactly, 3 as its beginning, 2 as its extension, 1 as `*`, 0 not at all.
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
