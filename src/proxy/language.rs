//! Which of the pack's languages a client reads best (RFC 9110, section 12.5.4; matching as in RFC 4647).

use super::context::Language;
use http::{HeaderMap, header};

/// The language wanted most; the first of `languages` (lower-case tags) when nothing fits. A range fits a tag when one is
/// the other up to a `-`: `pt` fits `pt-br`, `en-US` fits `en`. An exact fit wins over a near one of the same weight.
pub fn negotiate(headers: &HeaderMap, languages: &[String]) -> Language {
    let mut best: Option<(u16, u8, usize)> = None;
    let mut excluded = Vec::new();
    for value in headers.get_all(header::ACCEPT_LANGUAGE) {
        let Ok(text) = value.to_str() else { continue };
        for range in text.split(',') {
            let Some((range, weight)) = parse(range) else { continue };
            let fit = languages.iter().enumerate().filter_map(|(at, tag)| Some((fit(range, tag)?, at)));
            for (fit, at) in fit {
                if weight == 0 {
                    excluded.push(at);
                } else if best
                    .is_none_or(|(best_weight, best_fit, _)| (best_weight, best_fit) < (weight, fit))
                {
                    best = Some((weight, fit, at));
                }
            }
        }
    }
    match best {
        Some((_, _, at)) if !excluded.contains(&at) => Language(at),
        _ => Language(0),
    }
}

/// A language range and its weight in thousandths.
fn parse(text: &str) -> Option<(&str, u16)> {
    let mut parts = text.split(';').map(str::trim);
    let range = parts.next().filter(|range| !range.is_empty())?;
    let weight = match parts.next() {
        None => 1000,
        Some(parameter) => {
            let (name, value) = parameter.split_once('=')?;
            if !name.trim().eq_ignore_ascii_case("q") {
                return None;
            }
            weight(value.trim())?
        }
    };
    Some((range, weight))
}

/// `0`, `0.5`, `1.000`: at most three decimals (RFC 9110, section 12.4.2).
fn weight(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let thousandths: u16 = format!("{decimals:0<3}").parse().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}

/// How well a range fits a tag: 3 exactly, 2 as its prefix, 1 as its extension, 0 as `*`.
fn fit(range: &str, tag: &str) -> Option<u8> {
    if range == "*" {
        return Some(0);
    }
    if range.eq_ignore_ascii_case(tag) {
        return Some(3);
    }
    let is_prefix = |short: &str, long: &str| {
        long.get(..short.len()).is_some_and(|head| head.eq_ignore_ascii_case(short))
            && long.as_bytes().get(short.len()) == Some(&b'-')
    };
    if is_prefix(range, tag) { Some(2) } else { is_prefix(tag, range).then_some(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn the_client_reads_what_it_asked_for_as_near_as_there_is() {
        let languages = ["en", "pt-br", "es"].map(str::to_owned);
        for (accepted, expected) in [
            (None, "en"),
            (Some("es"), "es"),
            (Some("pt-BR"), "pt-br"),
            (Some("pt"), "pt-br"),
            (Some("es-MX"), "es"),
            (Some("fr, es;q=0.5, pt-br;q=0.7"), "pt-br"),
            (Some("de"), "en"),
            (Some("*"), "en"),
            (Some("es;q=0"), "en"),
            (Some("en;q=0.1, es;q=0.11"), "es"),
            (Some("esperanto"), "en"),
            (Some("es;q=2, pt-br;q=0.1"), "pt-br"),
            (Some("pt;q=0.5, pt-br;q=0.5, es;q=0.5"), "pt-br"),
            (Some(",,;q=1, es ; Q=0.3"), "es"),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(text) = accepted {
                headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static(text));
            }
            let Language(at) = negotiate(&headers, &languages);
            assert_eq!(languages[at], expected, "{accepted:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_passed_over() {
        let mut headers = HeaderMap::new();
        headers.append(header::ACCEPT_LANGUAGE, HeaderValue::from_bytes(b"\xff\xfe").unwrap());
        headers.append(header::ACCEPT_LANGUAGE, HeaderValue::from_static("es"));
        assert_eq!(negotiate(&headers, &["en".into(), "es".into()]), Language(1));
    }
}
