//! `paging:` of a route: how each side requests pages and announces further ones.

use super::kinds::{Count, Text, kinds};
use super::section::{Read, section};
use super::{FieldPlace, Spanned, SyntaxReader, faults};
use crate::diagnostic::Span;
use crate::mapping::schema::{Sides, by_side, reference, text};
use crate::yaml::{Key, Kind, Node, described};
use serde_json::{Value, json};

/// `paging: {v1: {…}, v2: {…}, call: GET /things, upto: 20}`
#[derive(Clone, Debug)]
pub(crate) struct PagedRoute {
    pub sides: [PagedSideDecl; 2],
    /// The call that reads a page, if a `serve` route has several calls.
    pub call: Option<Spanned<String>>,
    /// Maximum number of calls for one page.
    pub upto: Option<Spanned<i64>>,
    pub span: Span,
}

/// Maximum number of calls for one page.
type Upto = Count<1, 50>;

impl Read for PagedRoute {
    type Output = PagedRoute;

    fn read(_: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<PagedRoute> {
        let mut sides = [None, None];
        let (mut call, mut upto) = (None, None);
        for (key, value) in node.map(reader.findings)? {
            match key.name.as_str() {
                "call" => call = Text::read(key, value, reader),
                "upto" => upto = Upto::read(key, value, reader),
                _ => {
                    if let Some(side) = reader.side(&key.name, key.span) {
                        let mark = reader.findings.len();
                        let read = PagedSideDecl::read(key, value, reader);
                        sides[side.side] = read.filter(|_| !reader.findings.errors_since(mark));
                    }
                }
            }
        }
        for (side, read) in sides.iter().enumerate() {
            // A side with an error is present, so do not report it as missing.
            if node.get(&reader.sides[side].value).is_none() && read.is_none() {
                let name = &reader.sides[side].value;
                reader.findings.push(faults::missing_side("`paging`", name, node.span));
            }
        }
        let [old, new] = sides;
        Some(PagedRoute { sides: [old?, new?], call, upto, span: node.span })
    }

    fn schema(_: Sides<'_>) -> Value {
        reference("paging")
    }
}

impl PagedRoute {
    pub(in crate::mapping) fn definition(sides: Sides<'_>) -> Value {
        let mut paging = by_side(sides, 2, &PagedSideDecl::definition(sides));
        // While the names of the sides are unknown, `by_side` declares no properties.
        if paging.get("properties").is_none() {
            paging["properties"] = json!({});
        }
        let call = "Which call reads the page, where a `serve` route makes several.";
        let upto =
            "Most calls for a page that is found by reading the ones before it; 20 unless said otherwise.";
        paging["properties"]["call"] = described(text(), &[call]);
        paging["properties"]["upto"] = described(Upto::schema(sides), &[upto]);
        paging["maxProperties"] = json!(4);
        paging
    }

    /// Returns whether clients of a side address pages by number or offset while the other side
    /// uses cursors.
    pub(crate) fn walks(&self, client: usize) -> bool {
        self.sides[client].counts() && !self.sides[1 - client].counts()
    }
}

section! {
    /// Paging style of one side.
    PagedSideDecl is "the paging of a side" {
        /// The query parameter with the number of the page.
        optional page: Text,
        /// The query parameter with the number of items before the page.
        optional offset: Text,
        /// The query parameter with a text of the service's own.
        optional cursor: Text,
        /// The number of the first page; the default is 1.
        optional first: Count<0, 1>,
        /// The cursor of the first page.
        optional start: Text,
        /// The cursor in the answer of the last page.
        optional end: Text,
        /// The query parameter with the size of a page.
        optional size: Text,
        /// The default size of a page.
        optional default: Count<1, 100_000>,
        /// Most items of a page.
        optional maximum: Count<1, 100_000>,
        /// Where a response announces the next page: `$.place` in the body, `link` for the header
        /// field `Link`, `{header: name}`, or `{link: $.place}` for a URL in the body.
        optional next: NextPage,
        /// The member that is true if there are more items.
        optional more: PagedPlace,
        /// The member with the total number of items.
        optional total: PagedPlace,
        /// The list of the items; `$` for the entire body.
        optional items: PagedPlace,
        at span: Span,
    }
}

section! {
    /// A `next:` in map form.
    NextPageKeys is "`next`" {
        /// A header field with the cursor.
        strict header: Text,
        /// A member of the body with the URL of the next page.
        strict link: PagedPlace,
    }
    into NextPageDecl: |keys, fields, reader| match (keys.header, keys.link) {
        (Some(name), None) => Some(NextPageDecl::Header(name.value)),
        (None, Some(place)) => Some(NextPageDecl::LinkMember(place.value)),
        _ => {
            reader.findings.push(faults::one_of_keys(fields.node.span, "`next`", &["header", "link"]));
            None
        }
    }
}

/// Where a response announces the next page.
#[derive(Clone, Debug)]
pub(crate) enum NextPageDecl {
    /// `next: $.meta.next`
    Member(FieldPlace),
    /// `next: {header: x-next}`
    Header(String),
    /// `next: link`
    Link,
    /// `next: {link: $.links.next}`
    LinkMember(FieldPlace),
}

kinds! {
    /// `link`, `$.place`, `{header: name}` or `{link: $.place}`.
    NextPage -> Spanned<NextPageDecl>, |key, node, reader| {
        let span = node.span;
        let value = match &node.kind {
            Kind::String(word, _) if word == "link" => NextPageDecl::Link,
            Kind::Map(_) => NextPageKeys::read(key, node, reader)?,
            _ => NextPageDecl::Member(PagedPlace::read(key, node, reader)?.value),
        };
        Some(Spanned { value, span })
    }, |sides| json!({"anyOf": [text(), NextPageKeys::definition(sides)]});
    /// A place in a response; `$` is the entire body.
    PagedPlace -> Spanned<FieldPlace>, |_, node, reader| {
        let text = reader.text(node)?;
        match text.value.as_str() {
            "$" => Some(Spanned { value: FieldPlace(Vec::new()), span: text.span }),
            path => reader.place(path, text.span),
        }
    }, |_| text();
}

impl PagedSideDecl {
    /// Returns whether the side has random access to pages.
    pub(crate) fn counts(&self) -> bool {
        self.page.is_some() || self.offset.is_some()
    }

    /// Returns the parameters that control paging.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &Spanned<String>> {
        [&self.page, &self.offset, &self.cursor, &self.size].into_iter().flatten()
    }

    /// Returns the response members that describe other pages. The gateway writes these for
    /// clients.
    pub(crate) fn members(&self) -> impl Iterator<Item = &FieldPlace> {
        let next = self.next.as_ref().and_then(|next| match &next.value {
            NextPageDecl::Member(place) | NextPageDecl::LinkMember(place) => Some(place),
            NextPageDecl::Header(_) | NextPageDecl::Link => None,
        });
        next.into_iter().chain(self.more.as_ref().map(|more| &more.value))
    }
}
