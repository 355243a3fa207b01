//! `paging:` of a route: how each side asks for pages and is told of them.

use super::{Place, Spanned};
use crate::diagnostic::Span;

/// `paging: {v1: {…}, v2: {…}, call: GET /things, upto: 20}`
#[derive(Clone, Debug)]
pub(crate) struct PagedRoute {
    pub sides: [PagedSide; 2],
    /// The call that reads a page, where a `serve` route makes several.
    pub call: Option<Spanned<String>>,
    /// Most calls for one page.
    pub upto: Option<Spanned<i64>>,
    pub span: Span,
}

/// How one side pages.
#[derive(Clone, Debug)]
pub(crate) struct PagedSide {
    pub page: Option<Spanned<String>>,
    pub offset: Option<Spanned<String>>,
    pub cursor: Option<Spanned<String>>,
    /// The number of the first page.
    pub first: Option<Spanned<i64>>,
    /// The cursors that stand for the first page, and for none.
    pub start: Option<Spanned<String>>,
    pub end: Option<Spanned<String>>,
    pub size: Option<Spanned<String>>,
    pub default: Option<Spanned<i64>>,
    pub maximum: Option<Spanned<i64>>,
    pub next: Option<Spanned<Told>>,
    pub more: Option<Spanned<Place>>,
    pub total: Option<Spanned<Place>>,
    pub items: Option<Spanned<Place>>,
    pub span: Span,
}

/// Where the next page is told.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// `next: $.meta.next`
    Member(Place),
    /// `next: {header: x-next}`
    Header(String),
    /// `next: link`
    Link,
    /// `next: {link: $.links.next}`
    LinkMember(Place),
}

impl PagedRoute {
    /// Whether clients of a side count pages or items, and the other side gives cursors.
    pub(crate) fn walks(&self, client: usize) -> bool {
        self.sides[client].counts() && !self.sides[1 - client].counts()
    }
}

impl PagedSide {
    /// Whether any page can be asked for.
    pub(crate) fn counts(&self) -> bool {
        self.page.is_some() || self.offset.is_some()
    }

    /// The parameters about pages.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &Spanned<String>> {
        [&self.page, &self.offset, &self.cursor, &self.size].into_iter().flatten()
    }

    /// The members of an answer that tell of other pages: the gateway writes them for clients.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Place> {
        let next = self.next.as_ref().and_then(|told| match &told.value {
            Told::Member(place) | Told::LinkMember(place) => Some(place),
            Told::Header(_) | Told::Link => None,
        });
        next.into_iter().chain(self.more.as_ref().map(|more| &more.value))
    }
}
