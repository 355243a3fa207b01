//! Pagination schemes, guessed from the names of parameters: page number, offset or cursor, and the
//! page size.

use super::bodies::quote;
use crate::contract::{Contract, Operation, Type, TypeKind};
use std::collections::BTreeMap;

/// The role of a pagination parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PagingWord {
    Number,
    Offset,
    Cursor,
    Size,
}

/// Names in lower case without separators and brackets.
const NAMES: &[(PagingWord, &str)] = &[
    (PagingWord::Number, "page pagenumber pagenum pageindex pageno currentpage"),
    (PagingWord::Offset, "offset skip startindex startat startposition"),
    (
        PagingWord::Cursor,
        "cursor pagetoken nextpagetoken nexttoken continuationtoken continue after startingafter \
         sinceid marker pagecursor nextcursor",
    ),
    (PagingWord::Size, "limit perpage pagesize pagelimit maxresults maxitems top count pagecount size"),
];

/// The pagination parameters of an operation on both sides.
#[derive(Debug, Default)]
pub(super) struct Paired<'c> {
    /// Pairs of the same role with different names.
    pub renamed: Vec<(&'c str, &'c str)>,
    /// A parameter without a counterpart of the same role, with the reason.
    pub differs: Option<(&'c str, String)>,
}

pub(super) fn pair_parameters<'c>(old: &'c Operation, new: &'c Operation) -> Paired<'c> {
    let (a, b) = (paging_words(old), paging_words(new));
    let mut paired = Paired::default();
    for (word, name) in &a {
        match (b.get(word), by(&b)) {
            (Some(other), _) if name != other => paired.renamed.push((name, other)),
            (None, Some((there, other))) if *word != PagingWord::Size => {
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

/// The translation of pagination between an old side that numbers pages or items and a new side
/// with another scheme.
#[derive(Debug)]
pub(super) struct PagingDraft<'c> {
    /// The line `paging:` of the route.
    pub line: String,
    /// Parameters of the old side that the line replaces.
    pub parameters: Vec<&'c str>,
}

/// Returns `None` if the response does not contain the members that the line needs. `names` are the
/// names of the sides.
pub(super) fn translate_paging<'c>(
    [old, new]: [&'c Operation; 2],
    contract: &Contract,
    names: [&str; 2],
) -> Option<PagingDraft<'c>> {
    let (a, b) = (paging_words(old), paging_words(new));
    let ((from, name), (to, other)) = (by(&a)?, by(&b)?);
    if from == to || from == PagingWord::Cursor {
        return None;
    }
    let size = |words: &BTreeMap<PagingWord, &str>| {
        words.get(&PagingWord::Size).map(|size| format!(", size: {}", quote(size))).unwrap_or_default()
    };
    let key = |word: PagingWord| if word == PagingWord::Number { "page" } else { word.word() };
    // The cursor is read from the response, so its member must be known.
    let told = match to {
        PagingWord::Cursor => {
            let (items, next) = next_page_member(new, contract)?;
            format!(", next: {next}, items: {items}")
        }
        _ => String::new(),
    };
    let line = format!(
        "paging: {{{}: {{{}: {}{}, default: 20}}, {}: {{{}: {}{}{told}}}}}",
        names[0],
        key(from),
        quote(name),
        size(&a),
        names[1],
        key(to),
        quote(other),
        size(&b),
    );
    let parameters = [Some(name), a.get(&PagingWord::Size).copied()].into_iter().flatten().collect();
    Some(PagingDraft { line, parameters })
}

/// Returns the only list of a response and the only member with the name of a next-page cursor.
/// Both are at the top or in an object at the top.
fn next_page_member(operation: &Operation, contract: &Contract) -> Option<(String, String)> {
    const NEXT: &[&str] = &["next", "nextcursor", "nexttoken", "nextpagetoken", "endcursor", "cursor"];
    let body = operation.success_bodies().next()?;
    let TypeKind::Object(object) = contract.types.resolve(body).kind else { return None };
    let (mut lists, mut nexts) = (Vec::new(), Vec::new());
    let mut look = |place: String, name: &str, ty: &Type| match contract.types.resolve(ty).kind {
        TypeKind::Array(_) => lists.push(place),
        TypeKind::Scalar(scalar) if scalar.kind == crate::contract::ScalarKind::String => {
            let letters: String =
                name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
            if NEXT.contains(&letters.as_str()) {
                nexts.push(place);
            }
        }
        _ => {}
    };
    // Other names would need another notation in a place.
    let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    for field in object.fields.iter().filter(|field| is_plain(&field.name)) {
        look(format!("$.{}", field.name), &field.name, &field.ty);
        if let TypeKind::Object(inner) = contract.types.resolve(&field.ty).kind {
            for within in inner.fields.iter().filter(|within| is_plain(&within.name)) {
                look(format!("$.{}.{}", field.name, within.name), &within.name, &within.ty);
            }
        }
    }
    match (lists.as_slice(), nexts.as_slice()) {
        ([items], [next]) => Some((items.clone(), next.clone())),
        _ => None,
    }
}

/// Returns the pagination roles that exactly one parameter has.
fn paging_words(operation: &Operation) -> BTreeMap<PagingWord, &str> {
    let mut found: BTreeMap<PagingWord, Vec<&str>> = BTreeMap::new();
    for parameter in &operation.query {
        if let Some(word) = word_of(&parameter.name) {
            found.entry(word).or_default().push(&parameter.name);
        }
    }
    // Names such as `after` and `limit` are ambiguous; they count only in combination.
    let is_paged = found.len() > 1 || found.contains_key(&PagingWord::Number);
    found.retain(|_, names| is_paged && names.len() == 1);
    found.into_iter().map(|(word, names)| (word, names[0])).collect()
}

fn word_of(name: &str) -> Option<PagingWord> {
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    NAMES.iter().find(|(_, names)| names.split(' ').any(|name| name == letters)).map(|(word, _)| *word)
}

/// Returns the parameter that selects the page.
fn by<'n>(words: &BTreeMap<PagingWord, &'n str>) -> Option<(PagingWord, &'n str)> {
    words.iter().find(|(word, _)| **word != PagingWord::Size).map(|(word, name)| (*word, *name))
}

impl PagingWord {
    fn word(self) -> &'static str {
        match self {
            PagingWord::Number => "number",
            PagingWord::Offset => "offset",
            PagingWord::Cursor => "cursor",
            PagingWord::Size => "size",
        }
    }
}

/// Describes the most frequent scheme of a side. For page numbers, also returns the line of
/// `pack.yaml`.
pub(super) fn usual(contract: &Contract) -> Option<(String, Option<String>)> {
    let mut counts: BTreeMap<(PagingWord, &str, Option<&str>), usize> = BTreeMap::new();
    for operation in contract.operations.iter().filter(|operation| operation.key.method == http::Method::GET)
    {
        let words = paging_words(operation);
        if let Some((word, name)) = by(&words) {
            *counts.entry((word, name, words.get(&PagingWord::Size).copied())).or_default() += 1;
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
    // A minimum of 0 indicates zero-based page numbers.
    let starts_at_zero = matches!(
        first,
        Some(crate::contract::TypeKind::Scalar(scalar)) if scalar.limits.minimum.as_deref() == Some("0")
    );
    let line = (word == PagingWord::Number).then(|| {
        format!("paging: {{query: {}, first: {}, size: 20}}", quote(name), i32::from(!starts_at_zero))
    });
    Some((text, line))
}
