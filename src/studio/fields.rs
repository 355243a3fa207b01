//! Form fields and query parameters as browsers send them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Names and values, in the order sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// Parses `application/x-www-form-urlencoded`. Invalid UTF-8 becomes replacement characters.
    pub(crate) fn parse(text: &str) -> FormFields {
        let decoded =
            |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        };
        FormFields(pairs.map(pair).collect())
    }

    /// Returns the first value of a name, or the empty string.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    /// Returns whether the name is present.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(found, _)| found == name)
    }

    /// Returns all pairs in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the requested page of the list, counting from 1.
    pub(crate) fn page(&self) -> usize {
        self.page_of("page")
    }

    /// Returns the requested page of one of several lists, from the parameter `name`.
    pub(crate) fn page_of(&self, name: &str) -> usize {
        self.get(name).parse().unwrap_or(1).max(1)
    }

    /// Renders the query string with one parameter replaced. An empty value removes it.
    pub(crate) fn with(&self, name: &str, value: &str) -> String {
        let others = self.all().filter(|(found, value)| *found != name && !value.is_empty());
        let set = (!value.is_empty()).then_some((name, value));
        let pairs = others
            .chain(set)
            .map(|(name, value)| format!("{}={}", percent_encode(name), percent_encode(value)));
        format!("?{}", pairs.collect::<Vec<_>>().join("&"))
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for FormFields {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> FormFields {
        FormFields(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

/// Percent-encodes a text for a path segment or a query.
pub(crate) fn percent_encode(text: &str) -> String {
    const ALL_BUT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(text, ALL_BUT).to_string()
}

/// Decodes a path segment.
pub(crate) fn percent_decode(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

/// Validates a path that a browser sent back. Returns `/` unless it is a path on this host, which
/// prevents open redirects.
pub(crate) fn own_path(text: &str) -> &str {
    // Browsers take `//host` and `/\host` for the address of another host.
    let is_path = text.starts_with('/') && !text.starts_with("//");
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_path && is_plain { text } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_sends_is_read_and_written_back() {
        let fields = FormFields::parse("a=1+2%26&b=&page=3&c&a=x");
        assert_eq!((fields.get("a"), fields.get("b"), fields.get("none")), ("1 2&", "", ""));
        assert!(fields.has("c") && !fields.has("d"));
        assert_eq!(fields.page(), 3);
        assert_eq!(fields.with("page", "4"), "?a=1%202%26&a=x&page=4");
        assert_eq!(percent_decode(&percent_encode("GET /a/{b}?ü")), "GET /a/{b}?ü");
    }

    #[test]
    fn nobody_is_sent_to_another_host() {
        for (text, expected) in [
            ("/operations?x=1", "/operations?x=1"),
            ("//evil.example/", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/a\r\nb", "/"),
            ("", "/"),
        ] {
            assert_eq!(own_path(text), expected, "{text}");
        }
    }
}
