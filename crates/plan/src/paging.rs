//! Pagination: the way in which clients request pages and learn of further ones, on both sides, if
//! the sides differ.

use super::{Key, Origin};
use std::sync::Arc;

/// The pagination of one operation, translated between the sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paging {
    /// Pagination of the served side.
    pub client: PagedSide,
    /// Pagination of the other side's service.
    pub service: PagedSide,
    /// The call that reads a page, as in the other side's contract.
    pub call: Arc<str>,
    /// Maximum number of calls for one request, if a page is found by reading the preceding ones.
    pub upto: u32,
    /// The line of the mapping that declares it.
    pub origin: Origin,
}

/// The pagination of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagedSide {
    /// The way in which a page is selected.
    pub by: PagedBy,
    /// Query parameter for the page size.
    pub size: Option<Arc<str>>,
    /// Default page size.
    pub default: Option<u32>,
    /// Maximum page size.
    pub maximum: Option<u32>,
    /// Location of the reference to the next page.
    pub next: Option<Told>,
    /// Whether a `next` member of the body is a number.
    pub next_is_number: bool,
    /// Value of `next` after the last page.
    pub last: LastPage,
    /// Member that contains whether there are more items.
    pub more: Option<MemberPath>,
    /// Member that contains the total number of items.
    pub total: Option<MemberPath>,
    /// List of items.
    pub items: Option<MemberPath>,
}

/// The selector of a page: a query parameter, or the URL from the preceding page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PagedBy {
    /// The page number.
    Page {
        /// Query parameter that carries it.
        parameter: Arc<str>,
        /// Number of the first page.
        first: u32,
    },
    /// The number of preceding items.
    Offset {
        /// Query parameter that carries it.
        parameter: Arc<str>,
    },
    /// An opaque text of the service.
    Cursor {
        /// Query parameter that carries it.
        parameter: Arc<str>,
        /// Cursor of the first page. `None`: the parameter is omitted.
        start: Option<Arc<str>>,
        /// Cursor that marks the end of the list.
        end: Option<Arc<str>>,
    },
    /// The complete query of the URL.
    Link,
}

/// The location of the reference to the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A member of the body with the cursor, page number or offset.
    Member(MemberPath),
    /// A header field with the cursor, page number or offset.
    Header(Arc<str>),
    /// The header field `Link` (RFC 8288) with the relation `next`.
    Link,
    /// A member of the body with a URL.
    LinkMember(MemberPath),
}

/// The value of `next` after the last page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastPage {
    /// The member is absent.
    Absent,
    /// The member is null.
    Null,
    /// A word that marks the end.
    Word(Arc<str>),
}

/// Member names from the top of the body; empty for the body itself.
pub type MemberPath = Vec<Key>;

impl Told {
    /// Returns the member of the body that contains the reference, if any.
    pub fn member(&self) -> Option<&MemberPath> {
        match self {
            Told::Member(path) | Told::LinkMember(path) => Some(path),
            Told::Header(_) | Told::Link => None,
        }
    }
}

impl PagedSide {
    /// Returns the name of the pagination scheme for reports.
    pub fn word(&self) -> &'static str {
        match self.by {
            PagedBy::Page { .. } => "page number",
            PagedBy::Offset { .. } => "offset",
            PagedBy::Cursor { .. } => "cursor",
            PagedBy::Link => "link",
        }
    }

    /// Returns the query parameter that selects the page.
    pub fn parameter(&self) -> Option<&Arc<str>> {
        match &self.by {
            PagedBy::Page { parameter, .. }
            | PagedBy::Offset { parameter }
            | PagedBy::Cursor { parameter, .. } => Some(parameter),
            PagedBy::Link => None,
        }
    }

    /// Returns whether pages or items are numbered, so that any page can be requested directly.
    pub fn counts(&self) -> bool {
        matches!(self.by, PagedBy::Page { .. } | PagedBy::Offset { .. })
    }

    /// Returns whether a response contains information about a further page.
    pub fn is_told(&self) -> bool {
        self.next.is_some() || self.more.is_some()
    }

    /// Returns the members of the body that contain information about other pages.
    pub fn members(&self) -> impl Iterator<Item = &MemberPath> {
        self.next.as_ref().and_then(Told::member).into_iter().chain(&self.more)
    }
}

impl Paging {
    /// Returns whether clients get cursors in which the gateway seals their position.
    pub fn seals(&self) -> bool {
        // Page numbers and offsets contain the position, and a cursor of the service is passed on.
        !self.client.counts() && !matches!(self.service.by, PagedBy::Cursor { .. })
    }

    /// Returns whether a page is found by reading the preceding ones.
    pub fn walks(&self) -> bool {
        // A page can be requested directly only if the service numbers pages or items.
        self.client.counts() && !self.service.counts()
    }

    /// Returns whether the gateway must read the service's page body, or write pagination members
    /// into the client's.
    pub fn reads_body(&self) -> bool {
        let needs_next = self.walks() || self.client.is_told();
        // Only `Link` headers and header cursors reveal the next page without the body. A client offset
        // must count the items of the page, and `more` is a member, so both need the body anyway.
        let by_header = matches!(self.service.next, Some(Told::Header(_) | Told::Link))
            && self.service.more.is_none()
            && !matches!(self.client.by, PagedBy::Offset { .. });
        // Bodies are read for three reasons: to compose a page from several, to replace the client's
        // members about other pages, and to find out whether there is a next page.
        self.walks() || self.client.members().next().is_some() || needs_next && !by_header
    }

    /// Returns descriptions of requests that clients can no longer make.
    pub fn limits(&self) -> Vec<String> {
        let (client, service) = (&self.client, &self.service);
        let mut limits = Vec::new();
        if self.walks() {
            limits.push(format!("a page that needs more than {} calls is refused", self.upto));
        }
        // An offset can be translated only at the start of a page.
        if let (PagedBy::Offset { .. }, PagedBy::Page { .. } | PagedBy::Cursor { .. } | PagedBy::Link) =
            (&client.by, &service.by)
        {
            limits.push("an offset at which no page of the service begins is refused".to_owned());
        }
        // Without a size parameter, the service's default is the only page size.
        let fixed = service.default.filter(|_| service.size.is_none());
        let most = [service.maximum, fixed].into_iter().flatten().min();
        // A page of the client must not be larger than a page of the service.
        if let (Some(most), Some(_)) = (most, &client.size)
            && client.maximum.is_none_or(|own| own > most)
        {
            limits.push(match client.is_told() {
                true => format!("a page has at most {most} items"),
                false => format!("more than {most} items at once are refused"),
            });
        }
        limits
    }

    /// Returns a one-line description.
    pub fn sentence(&self) -> String {
        let (client, service) = (self.client.word(), self.service.word());
        let mut text = format!("pages by {client}, read by {service}");
        if self.seals() {
            text.push_str("; the cursor that clients get seals where they are");
        }
        if self.walks() {
            text.push_str("; a page is found by reading the ones before it that nobody remembers");
        }
        for limit in self.limits() {
            text.push_str("; ");
            text.push_str(&limit);
        }
        text
    }
}
