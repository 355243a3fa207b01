//! Parses the header field `Link` (RFC 8288, section 3). Strict: a syntax error ends the parsing of
//! its field, so that the gateway never sees a link where other parsers would not.

use http::{HeaderMap, header};

/// Returns the target of the first link with the relation `rel`, without `<` and `>`.
pub fn link_target<'h>(headers: &'h HeaderMap, rel: &str) -> Option<&'h str> {
    let fields = headers.get_all(header::LINK).into_iter().filter_map(|value| value.to_str().ok());
    fields.flat_map(links).find(|link| link.has(rel)).map(|link| link.target)
}

/// One link of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link<'h> {
    target: &'h str,
    /// Value of the first `rel`; further ones are ignored (section 3.3).
    rel: &'h str,
}

impl Link<'_> {
    fn has(&self, wanted: &str) -> bool {
        self.rel.split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case(wanted))
    }
}

/// Returns the links of a field, up to the first syntax error.
fn links(field: &str) -> impl Iterator<Item = Link<'_>> {
    let mut rest = field;
    std::iter::from_fn(move || {
        // Empty list elements are permitted (RFC 9110, section 5.6.1).
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (link, after) = link(rest)?;
        rest = after;
        Some(link)
    })
}

/// Parses a link at the start of a text. Returns it with the text after its comma.
fn link(text: &str) -> Option<(Link<'_>, &str)> {
    let (target, mut rest) = text.strip_prefix('<')?.split_once('>')?;
    let mut rel = None;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        if rest.is_empty() {
            break;
        }
        if let Some(after) = rest.strip_prefix(',') {
            rest = after;
            break;
        }
        rest = rest.strip_prefix(';')?.trim_start_matches([' ', '\t']);
        let name = rest.len() - rest.trim_start_matches(is_token).len();
        let (name, after) = rest.split_at(name);
        rest = after.trim_start_matches([' ', '\t']);
        let Some(after) = rest.strip_prefix('=') else { continue };
        let (value, after) = value(after.trim_start_matches([' ', '\t']))?;
        rest = after;
        if name.eq_ignore_ascii_case("rel") {
            rel.get_or_insert(value);
        }
    }
    Some((Link { target, rel: rel.unwrap_or("") }, rest))
}

/// Parses a token or quoted string. Returns it with the remaining text. Escapes are left in place,
/// because relations contain no escapes.
fn value(text: &str) -> Option<(&str, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let length = text.len() - text.trim_start_matches(is_token).len();
        return (length > 0).then(|| text.split_at(length));
    };
    let mut escaped = false;
    let end = quoted.char_indices().find(|(_, c)| match (*c, escaped) {
        ('"', false) => true,
        ('\\', false) => {
            escaped = true;
            false
        }
        _ => {
            escaped = false;
            false
        }
    });
    end.map(|(at, _)| (&quoted[..at], &quoted[at + 1..]))
}

/// Returns whether a character may occur in a token (RFC 9110, section 5.6.2).
fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn next(fields: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(header::LINK, HeaderValue::from_str(field).unwrap());
        }
        link_target(&headers, "next").map(str::to_owned)
    }

    #[test]
    fn the_next_page_is_found_among_other_links() {
        let github = r#"<https://x/?page=1>; rel="prev", <https://x/?page=3>; rel="next", <https://x/?page=9>; rel=last"#;
        assert_eq!(next(&[github]).as_deref(), Some("https://x/?page=3"));
        assert_eq!(
            next(&["<a>;rel=prev", "<b>; title=\"x, <c>; rel=next\" ; REL = \"start Next\""]).as_deref(),
            Some("b")
        );
        assert_eq!(next(&["<a,b>; rel=next"]).as_deref(), Some("a,b"));
        assert_eq!(next(&["<a>; crossorigin; rel=next"]).as_deref(), Some("a"));
        assert_eq!(next(&[r#"<a>; title="\""; rel=next"#]).as_deref(), Some("a"));
    }

    #[test]
    fn what_is_no_link_to_the_next_page_is_not_taken_for_one() {
        for field in [
            "",
            "a; rel=next",
            "<a",
            "<a>",
            "<a>; rel=",
            "<a>; rel=\"next",
            "<a> rel=next",
            "<a>; rel=nextish",
            "<a>; rel=prev; rel=next",
            "<a>; rev=next",
            "x, <a>; rel=next",
        ] {
            assert_eq!(next(&[field]), None, "{field}");
        }
    }

    proptest! {
        #[test]
        fn a_link_is_found_wherever_it_stands(
            before in prop::collection::vec(("[a-z/?=&,;]{0,12}", "[a-z]{1,5}", "[ -!#-\\[\\]-~]{0,12}"), 0..4),
            target in "[!-;=?-~]{0,20}",
        ) {
            let mut links: Vec<String> = before
                .iter()
                .map(|(target, rel, title)| format!("<{target}>; rel=\"x{rel}\"; title=\"{title}\""))
                .collect();
            links.push(format!("<{target}>; title=\"a, b\"; rel=\"next\""));
            prop_assert_eq!(next(&[&links.join(", ")]), Some(target));
        }

        #[test]
        fn any_text_is_read_without_harm(field in "[ -~]{0,60}") {
            let found = next(&[&field]);
            let is_there = found.is_none_or(|target| field.contains(&format!("<{target}>")));
            prop_assert!(is_there, "{}", field);
        }
    }
}
