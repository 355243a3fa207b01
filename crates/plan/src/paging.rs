//! How an operation's pages are asked for and told on both sides, where the two sides do it differently.

use super::{Key, Origin};
use std::sync::Arc;

/// The pages of one operation, translated between the sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paging {
    /// As clients of the served side ask for pages, and are told of the next one.
    pub client: PagedSide,
    /// As the other side's service wants to be asked, and tells.
    pub service: PagedSide,
    /// The call that reads a page, as the other side's contract writes it.
    pub call: Arc<str>,
    /// Most calls for one request, where a page is found by reading the ones before it.
    pub upto: u32,
    /// The line of the mapping that says so.
    pub origin: Origin,
}

/// How one side pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagedSide {
    /// What clients of this side ask with.
    pub by: PagedBy,
    /// The query parameter with how many items a page may have.
    pub size: Option<Arc<str>>,
    /// How many it has where nobody says.
    pub default: Option<u32>,
    /// Most items of a page.
    pub maximum: Option<u32>,
    /// Where the next page is told.
    pub next: Option<Told>,
    /// Whether `next` is told as a number, where it is a member of the body.
    pub next_is_number: bool,
    /// What stands there after the last page.
    pub last: LastPage,
    /// The member that says whether there are more items.
    pub more: Option<MemberPath>,
    /// The member that says how many items there are in all.
    pub total: Option<MemberPath>,
    /// The list of the items.
    pub items: Option<MemberPath>,
}

/// What a page is asked for by: a query parameter, or the URL that the page before gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PagedBy {
    /// Its number.
    Page {
        /// Query parameter that carries it.
        parameter: Arc<str>,
        /// Number of the first page.
        first: u32,
    },
    /// How many items stand before it.
    Offset {
        /// Query parameter that carries it.
        parameter: Arc<str>,
    },
    /// A text of the service's own. `start` stands for the first page, `end` for none.
    Cursor {
        /// Query parameter that carries it.
        parameter: Arc<str>,
        /// Text that asks for the first page; none = the parameter is left out then.
        start: Option<Arc<str>>,
        /// Text that says that there is no further page.
        end: Option<Arc<str>>,
    },
    /// The whole query of the URL.
    Link,
}

/// Where the next page is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// In a member of the body: the cursor, the number or the offset.
    Member(MemberPath),
    /// In a header field: the same.
    Header(Arc<str>),
    /// In the header field `Link` (RFC 8288), with the relation `next`.
    Link,
    /// In a member of the body: a URL.
    LinkMember(MemberPath),
}

/// What a client is told after the last page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastPage {
    /// The member is not there.
    Absent,
    /// The member is null.
    Null,
    /// A word that stands for no page.
    Word(Arc<str>),
}

/// A member of a body by the names that lead to it; none for the body itself.
pub type MemberPath = Vec<Key>;

impl Told {
    /// The member of the body that tells it.
    pub fn member(&self) -> Option<&MemberPath> {
        match self {
            Told::Member(path) | Told::LinkMember(path) => Some(path),
            Told::Header(_) | Told::Link => None,
        }
    }
}

impl PagedSide {
    /// What pages go by, as reports say it.
    pub fn word(&self) -> &'static str {
        match self.by {
            PagedBy::Page { .. } => "page number",
            PagedBy::Offset { .. } => "offset",
            PagedBy::Cursor { .. } => "cursor",
            PagedBy::Link => "link",
        }
    }

    /// The query parameter that says which page.
    pub fn parameter(&self) -> Option<&Arc<str>> {
        match &self.by {
            PagedBy::Page { parameter, .. }
            | PagedBy::Offset { parameter }
            | PagedBy::Cursor { parameter, .. } => Some(parameter),
            PagedBy::Link => None,
        }
    }

    /// Whether it counts pages or items: any page can be asked for.
    pub fn counts(&self) -> bool {
        matches!(self.by, PagedBy::Page { .. } | PagedBy::Offset { .. })
    }

    /// Whether whoever reads a page hears if there is another one.
    pub fn is_told(&self) -> bool {
        self.next.is_some() || self.more.is_some()
    }

    /// The members of the body that say something of other pages.
    pub fn members(&self) -> impl Iterator<Item = &MemberPath> {
        self.next.as_ref().and_then(Told::member).into_iter().chain(&self.more)
    }
}

impl Paging {
    /// Whether clients get cursors in which the gateway seals where they are.
    pub fn seals(&self) -> bool {
        !self.client.counts() && !matches!(self.service.by, PagedBy::Cursor { .. })
    }

    /// Whether a page is found by reading the ones before it.
    pub fn walks(&self) -> bool {
        self.client.counts() && !self.service.counts()
    }

    /// Whether the service's page must be looked at, or the client's written to, beyond what the route makes of it.
    pub fn reads_body(&self) -> bool {
        let needs_next = self.walks() || self.client.is_told();
        let by_header = matches!(self.service.next, Some(Told::Header(_) | Told::Link))
            && self.service.more.is_none()
            && !matches!(self.client.by, PagedBy::Offset { .. });
        self.walks() || self.client.members().next().is_some() || needs_next && !by_header
    }

    /// What clients cannot do any more, in words.
    pub fn limits(&self) -> Vec<String> {
        let (client, service) = (&self.client, &self.service);
        let mut limits = Vec::new();
        if self.walks() {
            limits.push(format!("a page that needs more than {} calls is refused", self.upto));
        }
        if let (PagedBy::Offset { .. }, PagedBy::Page { .. } | PagedBy::Cursor { .. } | PagedBy::Link) =
            (&client.by, &service.by)
        {
            limits.push("an offset at which no page of the service begins is refused".to_owned());
        }
        let fixed = service.default.filter(|_| service.size.is_none());
        let most = [service.maximum, fixed].into_iter().flatten().min();
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

    /// In one line.
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
