//! How lists are paged, guessed from the names of parameters: by number, by offset or by a cursor, and how many at once.

use crate::contract::{Contract, Operation};
use std::collections::BTreeMap;

/// What a parameter says about pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Number,
    Offset,
    Cursor,
    Size,
}

/// Names without capitals, `_`, `-`, `[` and `]`.
const NAMES: &[(Word, &[&str])] = &[
    (Word::Number, &["page", "pagenumber", "pagenum", "pageindex", "pageno", "currentpage"]),
    (Word::Offset, &["offset", "skip", "startindex", "startat", "startposition"]),
    (
        Word::Cursor,
        &[
            "cursor",
            "pagetoken",
            "nextpagetoken",
            "nexttoken",
            "continuationtoken",
            "continue",
            "after",
            "startingafter",
            "sinceid",
            "marker",
            "pagecursor",
            "nextcursor",
        ],
    ),
    (
        Word::Size,
        &[
            "limit",
            "perpage",
            "pagesize",
            "pagelimit",
            "maxresults",
            "maxitems",
            "top",
            "count",
            "pagecount",
            "size",
        ],
    ),
];

/// What becomes of the parameters about pages of an operation.
#[derive(Debug, Default)]
pub(super) struct Paired<'c> {
    /// The same under another name.
    pub renamed: Vec<(&'c str, &'c str)>,
    /// A parameter for which the new side has none of its kind, and why.
    pub differs: Option<(&'c str, String)>,
}

pub(super) fn paired<'c>(old: &'c Operation, new: &'c Operation) -> Paired<'c> {
    let (a, b) = (of(old), of(new));
    let mut paired = Paired::default();
    for (word, name) in &a {
        match (b.get(word), by(&b)) {
            (Some(other), _) if name != other => paired.renamed.push((name, other)),
            (None, Some((there, other))) if *word != Word::Size => {
                let why = format!(
                    "pages go by {} on the old side (`{name}`), and by {} on the new one (`{other}`)",
                    word.word(),
                    there.word()
                );
                paired.differs = Some((name, why));
            }
            _ => {}
        }
    }
    paired
}

/// The words that one parameter alone says.
fn of(operation: &Operation) -> BTreeMap<Word, &str> {
    let mut found: BTreeMap<Word, Vec<&str>> = BTreeMap::new();
    for parameter in &operation.query {
        if let Some(word) = word_of(&parameter.name) {
            found.entry(word).or_default().push(&parameter.name);
        }
    }
    // `after` and `limit` are about pages where they are together with one another.
    let is_paged = found.len() > 1 || found.contains_key(&Word::Number);
    found.retain(|_, names| is_paged && names.len() == 1);
    found.into_iter().map(|(word, names)| (word, names[0])).collect()
}

fn word_of(name: &str) -> Option<Word> {
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    NAMES.iter().find(|(_, names)| names.contains(&letters.as_str())).map(|(word, _)| *word)
}

/// What pages go by.
fn by<'n>(words: &BTreeMap<Word, &'n str>) -> Option<(Word, &'n str)> {
    words.iter().find(|(word, _)| **word != Word::Size).map(|(word, name)| (*word, *name))
}

impl Word {
    fn word(self) -> &'static str {
        match self {
            Word::Number => "number",
            Word::Offset => "offset",
            Word::Cursor => "cursor",
            Word::Size => "size",
        }
    }
}

/// How most lists of a side are paged, in words, and the line of `pack.yaml` where pages have numbers.
pub(super) fn usual(contract: &Contract) -> Option<(String, Option<String>)> {
    let mut counts: BTreeMap<(Word, &str, Option<&str>), usize> = BTreeMap::new();
    for operation in contract.operations.iter().filter(|operation| operation.key.method == http::Method::GET)
    {
        let words = of(operation);
        if let Some((word, name)) = by(&words) {
            *counts.entry((word, name, words.get(&Word::Size).copied())).or_default() += 1;
        }
    }
    let ((word, name, size), count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let size = size.map(|size| format!(", `{size}` at once")).unwrap_or_default();
    let text = format!("by {} (`{name}`{size}; {count} lists)", word.word());
    let first = contract
        .operations
        .iter()
        .flat_map(|operation| &operation.query)
        .find(|parameter| parameter.name == name)
        .map(|parameter| contract.types.resolve(&parameter.ty).kind);
    let starts_at_zero = matches!(
        first,
        Some(crate::contract::TypeKind::Scalar(scalar)) if scalar.limits.minimum.as_deref() == Some("0")
    );
    let line = (word == Word::Number).then(|| {
        format!(
            "paging: {{query: {}, first: {}, size: 20}}",
            super::bodies::quoted(name),
            i32::from(!starts_at_zero)
        )
    });
    Some((text, line))
}
