//! Syntax tree of a route's `paging:`: how each side requests pages and announces further ones.

use super::{FieldPlace, Spanned};
use crate::diagnostic::Span;

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

/// Paging style of one side.
#[derive(Clone, Debug)]
pub(crate) struct PagedSideDecl {
    pub page: Option<Spanned<String>>,
    pub offset: Option<Spanned<String>>,
    pub cursor: Option<Spanned<String>>,
    /// Number of the first page.
    pub first: Option<Spanned<i64>>,
    /// Cursors that denote the first page (`start`) and the absence of a next page (`end`).
    pub start: Option<Spanned<String>>,
    pub end: Option<Spanned<String>>,
    pub size: Option<Spanned<String>>,
    pub default: Option<Spanned<i64>>,
    pub maximum: Option<Spanned<i64>>,
    pub next: Option<Spanned<NextPageDecl>>,
    pub more: Option<Spanned<FieldPlace>>,
    pub total: Option<Spanned<FieldPlace>>,
    pub items: Option<Spanned<FieldPlace>>,
    pub span: Span,
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

impl PagedRoute {
    /// Returns whether clients of a side address pages by number or offset while the other side
    /// uses cursors.
    pub(crate) fn walks(&self, client: usize) -> bool {
        self.sides[client].counts() && !self.sides[1 - client].counts()
    }
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
        let next = self.next.as_ref().and_then(|told| match &told.value {
            NextPageDecl::Member(place) | NextPageDecl::LinkMember(place) => Some(place),
            NextPageDecl::Header(_) | NextPageDecl::Link => None,
        });
        next.into_iter().chain(self.more.as_ref().map(|more| &more.value))
    }
}
