//! Negotiates the language of responses among the languages of the pack.

use http::{HeaderMap, header};
use switchback_engine::translate;

/// Index into the languages of the pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language(pub usize);

impl Language {
    /// Returns the best match of `Accept-Language` among `languages`, or the first language if
    /// there is no match.
    pub fn negotiate(headers: &HeaderMap, languages: &[String]) -> Language {
        let mut lines = headers.get_all(header::ACCEPT_LANGUAGE).iter().filter_map(|line| line.to_str().ok());
        let Some(first) = lines.next() else { return Language(0) };
        Language(match lines.next() {
            None => translate::negotiate(first, languages),
            Some(second) => {
                let all: Vec<&str> = [first, second].into_iter().chain(lines).collect();
                translate::negotiate(&all.join(","), languages)
            }
        })
    }
}
