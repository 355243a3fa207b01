//! Pages of a list, where clients ask for them in another way than the service wants to be asked: which page a request
//! means, what the call asks for, which page follows the one that came, and how the client is told of it.
//!
//! All that is known between two requests stands in the cursor that the client carries. A client that counts pages carries
//! none: before a service that gives cursors its page is found by reading the ones before it. What was read before is
//! remembered for a while, which saves calls and decides nothing.

mod found;
mod told;

use super::fault::{Fault, FaultKind};
use super::head::with_text;
use super::request::{decode_query, query_pairs};
use super::turn::{Call, Reply};
use bytes::Bytes;
use http::HeaderMap;
use std::fmt;
use std::sync::Arc;
use switchback_json::{Limits, Value};
use switchback_plan::{MemberPath, PagedBy, Paging};

/// What is outside of one request: the keys that cursors are sealed with, what is remembered of lists, and the address that
/// clients know. `list` says which list it is: operation, variables and all parameters but those about pages.
pub trait Pages: fmt::Debug + Send + Sync {
    /// A cursor that only the same client can use, for the same list, and not for ever.
    fn seal(&self, state: &str, list: &str) -> String;

    /// What was sealed; none for what was not, or for another client, another list or another time.
    fn open(&self, cursor: &str, list: &str) -> Option<String>;

    /// The nearest page at or before a position that somebody has read up to, and the service's cursor for it.
    fn recall(&self, list: &str, position: u64) -> Option<(u64, String)>;

    /// The service's cursor for the page at a position.
    fn remember(&self, list: &str, position: u64, cursor: &str);

    /// The address of the request as its client knows it, without a query.
    fn address(&self) -> String;
}

/// For examples and explanations: cursors that can be read, and nothing is remembered.
#[derive(Clone, Copy, Debug)]
pub struct Readable;

impl Pages for Readable {
    fn seal(&self, state: &str, _: &str) -> String {
        format!("sealed({state})")
    }

    fn open(&self, cursor: &str, _: &str) -> Option<String> {
        Some(cursor.strip_prefix("sealed(")?.strip_suffix(')')?.to_owned())
    }

    fn recall(&self, _: &str, _: u64) -> Option<(u64, String)> {
        None
    }

    fn remember(&self, _: &str, _: u64, _: &str) {}

    fn address(&self) -> String {
        "https://gateway.example".to_owned()
    }
}

/// Whether a request asks for a page by a cursor. Each service can read only its own cursors, and the gateway those that it
/// sealed: the other side cannot be asked for the same page.
pub fn asks_by_cursor(paging: &Paging, query: &str) -> bool {
    let PagedBy::Cursor { parameter, start, .. } = &paging.client.by else { return false };
    let mut values = query_pairs(query).filter(|(name, _)| decode_query(name) == **parameter);
    values.any(|(_, value)| Some(&*decode_query(value.unwrap_or(""))) != start.as_deref())
}

/// Whether a request counts to a page other than the first.
pub fn asks_beyond_first(paging: &Paging, query: &str) -> bool {
    let (parameter, first) = match &paging.client.by {
        PagedBy::Page { parameter, first } => (parameter, *first),
        PagedBy::Offset { parameter } => (parameter, 0),
        PagedBy::Cursor { .. } | PagedBy::Link => return false,
    };
    let mut values = query_pairs(query).filter(|(name, _)| decode_query(name) == **parameter);
    values.any(|(_, value)| decode_query(value.unwrap_or("")).parse() != Ok(first))
}

/// One request for a page.
#[derive(Debug)]
pub struct Pager {
    paging: Arc<Paging>,
    pages: Arc<dyn Pages>,
    list: String,
    /// The client's parameters that are not about pages, as they stand.
    rest: String,
    /// Items that the page may have, where it is known.
    size: Option<u32>,
    /// Where the client asked for, in the way it counts.
    asked: u64,
    /// How far the calls have come, and how far they must: pages or items, as the client counts.
    reached: u64,
    goal: u64,
    /// What the next call asks for.
    ask: Ask,
    calls: u32,
    /// What is known of the page that the client gets.
    found: Option<Found>,
    /// The call that reads a page, to be made again for the next one.
    call: Option<Call>,
}

/// Which page of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ask {
    First,
    /// The one that begins behind so many items.
    Offset(u64),
    Cursor(String),
    /// The query of the URL that the service gave.
    Query(String),
}

#[derive(Clone, Debug)]
struct Found {
    next: Option<Ask>,
    count: Option<u64>,
}

/// What follows a reply.
#[derive(Debug)]
pub enum After {
    /// It is the page, or an error: the route goes on with it.
    Page(Reply),
    /// It was one of the pages before.
    Call(Box<Call>),
}

impl Pager {
    /// Reads what a request asks for. `path` are the values of the variables of its path.
    pub fn new<S: AsRef<str>>(
        paging: &Arc<Paging>,
        pages: Arc<dyn Pages>,
        operation: &str,
        path: &[S],
        query: &str,
    ) -> Result<Pager, Fault> {
        let mut rest: Vec<&str> = Vec::new();
        let (mut place, mut size) = (None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = query_pairs(pair).next().unwrap_or((pair, None));
            let name = decode_query(name);
            let slot = match paging.client.parameter() {
                Some(parameter) if **parameter == name => &mut place,
                _ if paging.client.size.as_deref() == Some(name.as_str()) => &mut size,
                _ => {
                    rest.push(pair);
                    continue;
                }
            };
            if slot.replace(decode_query(value.unwrap_or(""))).is_some() {
                return Err(bad_request(&name, "comes twice"));
            }
        }
        let mut sorted = rest.clone();
        sorted.sort_unstable();
        let path: String =
            path.iter().map(|value| format!("{}:{}", value.as_ref().len(), value.as_ref())).collect();
        let mut pager = Pager {
            list: format!("{operation}\n{path}\n{}", sorted.join("&")),
            rest: rest.join("&"),
            size: size_of(paging, size.as_deref())?,
            asked: 0,
            reached: 0,
            goal: 0,
            ask: Ask::First,
            calls: 0,
            found: None,
            call: None,
            paging: Arc::clone(paging),
            pages,
        };
        pager.place(place.as_deref(), size.is_some())?;
        Ok(pager)
    }

    /// Where the client wants to be.
    fn place(&mut self, place: Option<&str>, sized: bool) -> Result<(), Fault> {
        let paging = Arc::clone(&self.paging);
        let (client, service) = (&paging.client, &paging.service);
        match &client.by {
            PagedBy::Page { parameter, first } => {
                let number = place.map(|text| counted(text, parameter)).transpose()?;
                let number = number.unwrap_or(u64::from(*first));
                self.asked = number
                    .checked_sub(u64::from(*first))
                    .ok_or_else(|| bad_request(parameter, "is too small"))?;
            }
            PagedBy::Offset { parameter } => {
                self.asked = place.map(|text| counted(text, parameter)).transpose()?.unwrap_or(0);
            }
            PagedBy::Cursor { start, .. } => {
                let Some(cursor) = place.filter(|cursor| start.as_deref() != Some(*cursor)) else {
                    return Ok(());
                };
                if let PagedBy::Cursor { .. } = service.by {
                    self.ask = Ask::Cursor(cursor.to_owned());
                    return Ok(());
                }
                let state = self.pages.open(cursor, &self.list).ok_or_else(bad_cursor)?;
                return self.resume(&state, sized);
            }
            PagedBy::Link => {}
        }
        if service.counts() {
            let offset = match &client.by {
                PagedBy::Page { .. } => self.asked.checked_mul(self.span()?),
                _ => Some(self.asked),
            };
            let offset = offset.ok_or_else(|| bad_page("further than numbers go"))?;
            self.ask = Ask::Offset(offset);
            return self.aligned(offset);
        }
        // Pages of another size are other pages.
        let size = self.size.map_or_else(String::new, |size| size.to_string());
        self.list = format!("{}\n{size}", self.list);
        self.goal = self.asked;
        if let Some((reached, cursor)) =
            (self.goal > 0).then(|| self.pages.recall(&self.list, self.goal)).flatten()
            && reached <= self.goal
        {
            self.reached = reached;
            self.ask = self.asking(cursor);
        }
        Ok(())
    }

    /// Goes on where a sealed cursor says.
    fn resume(&mut self, state: &str, sized: bool) -> Result<(), Fault> {
        let (size, place) = state.split_once('&').ok_or_else(bad_cursor)?;
        let size = size.strip_prefix("size=").ok_or_else(bad_cursor)?;
        if !sized && !size.is_empty() {
            self.size = Some(size.parse().map_err(|_| bad_cursor())?);
        }
        if let Some(query) = place.strip_prefix("link=") {
            self.ask = Ask::Query(query.to_owned());
            return Ok(());
        }
        let offset =
            place.strip_prefix("offset=").and_then(|text| text.parse().ok()).ok_or_else(bad_cursor)?;
        self.ask = Ask::Offset(offset);
        self.aligned(offset)
    }

    /// A service that counts pages can only begin at the begin of one.
    fn aligned(&self, offset: u64) -> Result<(), Fault> {
        if let PagedBy::Page { .. } = self.paging.service.by
            && offset != 0
            && !offset.is_multiple_of(self.span()?)
        {
            return Err(bad_page("the service has no page that begins there"));
        }
        Ok(())
    }

    /// Items from the begin of a page to the begin of the next.
    fn span(&self) -> Result<u64, Fault> {
        let span = self.size.or(self.paging.service.default).filter(|size| *size > 0);
        span.map(u64::from).ok_or_else(|| Fault::new(FaultKind::Internal, "nobody says how large a page is"))
    }

    /// Whether the reply's body must be looked at, or the answer's be written to.
    pub fn reads_body(&self) -> bool {
        self.paging.reads_body()
    }

    /// The operation of the call that reads a page.
    pub fn operation(&self) -> &str {
        &self.paging.call
    }

    /// The address of the call, with what it says of the page.
    pub fn target(&self, target: &str) -> Result<String, Fault> {
        let service = &self.paging.service;
        let mut target = target.to_owned();
        if let Ask::Query(query) = &self.ask {
            let path = target.split_once('?').map_or(target.as_str(), |(path, _)| path);
            return Ok(format!("{path}?{query}"));
        }
        if let (Some(parameter), Some(size)) = (&service.size, self.size) {
            target = with_text(&target, parameter, &size.to_string());
        }
        let value = match (&service.by, &self.ask) {
            (PagedBy::Page { first, .. }, Ask::Offset(0) | Ask::First) => Some(first.to_string()),
            (PagedBy::Page { first, .. }, Ask::Offset(offset)) => {
                Some((offset / self.span()?).saturating_add(u64::from(*first)).to_string())
            }
            (PagedBy::Offset { .. }, Ask::Offset(offset)) => Some(offset.to_string()),
            (PagedBy::Offset { .. }, Ask::First) => Some("0".to_owned()),
            (PagedBy::Cursor { .. }, Ask::Cursor(cursor)) => Some(cursor.clone()),
            (PagedBy::Cursor { start, .. }, Ask::First) => start.as_deref().map(str::to_owned),
            _ => None,
        };
        Ok(match (service.parameter(), value) {
            (Some(parameter), Some(value)) => with_text(&target, parameter, &value),
            _ => target,
        })
    }

    /// The call that reads a page, addressed; kept to be made again.
    pub(super) fn call(&mut self, call: Call) -> Result<Call, Fault> {
        let addressed = Call { target: self.target(&call.target)?, ..call.clone() };
        self.calls = 1;
        self.call = Some(call);
        Ok(addressed)
    }

    /// Whether the call of the page is out, or was.
    pub(super) fn has_called(&self) -> bool {
        self.call.is_some()
    }

    /// Whether the reply to the call of the page is still to come.
    pub(super) fn waits(&self) -> bool {
        self.call.is_some() && self.found.is_none()
    }

    /// Looks at the head of a successful reply, where its body says nothing of pages.
    pub fn head(&mut self, headers: &HeaderMap) -> Result<(), Fault> {
        self.found = Some(self.look(headers, None)?);
        Ok(())
    }

    /// Looks at a reply.
    pub(super) fn reply(&mut self, reply: Reply, limits: &Limits) -> Result<After, Fault> {
        if !(200..300).contains(&reply.status) {
            self.found = Some(Found { next: None, count: None });
            return Ok(After::Page(reply));
        }
        if !self.reads_body() {
            self.head(&reply.headers)?;
            return Ok(After::Page(reply));
        }
        let mut body = match reply.body.is_empty() {
            true => None,
            // What is no JSON is the route's to judge.
            false => match Value::parse(&reply.body, limits) {
                Ok(body) => Some(body),
                Err(_) => {
                    self.found = Some(Found { next: None, count: None });
                    return Ok(After::Page(reply));
                }
            },
        };
        let found = self.look(&reply.headers, body.as_ref())?;
        if !self.paging.walks() {
            self.found = Some(found);
            return Ok(After::Page(reply));
        }
        let advance = match self.paging.client.by {
            PagedBy::Offset { .. } => found.count.unwrap_or(0),
            _ => 1,
        };
        let follows = self.reached.saturating_add(advance);
        if let Some(Ask::Cursor(cursor) | Ask::Query(cursor)) = &found.next
            && advance > 0
        {
            self.pages.remember(&self.list, follows, cursor);
        }
        if self.reached == self.goal {
            self.found = Some(found);
            return Ok(After::Page(reply));
        }
        let Some(next) = found.next.clone() else {
            // Behind the end there is nothing: the last page, without its items.
            let items = self.paging.service.items.as_ref();
            if let (Some(body), Some(items)) = (&mut body, items)
                && let Some(items) = member_mut(body, items)
            {
                *items = Value::from(Vec::new());
            }
            self.found = Some(Found { next: None, count: Some(0) });
            let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_vec()));
            return Ok(After::Page(Reply { body, ..reply }));
        };
        if follows > self.goal {
            return Err(bad_page("the service has no page that begins there"));
        }
        if self.calls >= self.paging.upto {
            return Err(bad_page("further than the mapping reads"));
        }
        (self.reached, self.ask) = (follows, next);
        self.calls += 1;
        let call = self.call.clone().ok_or_else(|| Fault::new(FaultKind::Internal, "no page was read"))?;
        let step = call.step + self.calls - 1;
        let target = self.target(&call.target)?;
        Ok(After::Call(Box::new(Call { step, target, ..call })))
    }
}

/// How many items a page has. Whoever hears if there is more may get fewer than were asked for; whoever counts may not: it
/// would take a short page for the last, or pass over items.
fn size_of(paging: &Paging, asked: Option<&str>) -> Result<Option<u32>, Fault> {
    let (client, service) = (&paging.client, &paging.service);
    let name = client.size.as_deref().unwrap_or_default();
    let asked = match asked {
        None => None,
        Some(text) => match text.parse::<u32>() {
            Ok(size) if size > 0 => Some(size),
            _ => return Err(bad_request(name, "is no number of items")),
        },
    };
    let fixed = service.default.filter(|_| service.size.is_none());
    let most = [client.maximum, service.maximum, fixed].into_iter().flatten().min();
    let Some(wanted) = asked.or(client.default) else { return Ok(None) };
    let size = most.map_or(wanted, |most| wanted.min(most));
    // A service whose pages have one size has that, whatever is asked for.
    let size = fixed.unwrap_or(size);
    if size != wanted && asked.is_some() && !client.is_told() {
        return Err(bad_request(name, "is not how many items the service gives at once"));
    }
    Ok(Some(size))
}

fn counted(text: &str, parameter: &str) -> Result<u64, Fault> {
    match text.parse() {
        // Positions are multiplied by sizes of pages.
        Ok(number) if number <= u64::from(u32::MAX) * 1000 => Ok(number),
        _ => Err(bad_request(parameter, "is no position of a list")),
    }
}

fn bad_request(parameter: &str, what: &str) -> Fault {
    Fault::new(FaultKind::BadRequest, format!("the query parameter `{parameter}` {what}"))
}

fn bad_cursor() -> Fault {
    Fault::new(
        FaultKind::BadCursor,
        "a cursor that was not sealed here for this client and list, or too long ago",
    )
}

fn bad_page(why: &str) -> Fault {
    Fault::new(FaultKind::BadPage, format!("a page that cannot be reached: {why}"))
}

fn member_mut<'v>(body: &'v mut Value, path: &MemberPath) -> Option<&'v mut Value> {
    path.iter().try_fold(body, |value, key| value.get_mut(&key.text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_plan::{LastPage, Origin, PagedSide};

    fn side(by: PagedBy) -> PagedSide {
        PagedSide {
            by,
            size: None,
            default: None,
            maximum: None,
            next: None,
            next_is_number: false,
            last: LastPage::Absent,
            more: None,
            total: None,
            items: None,
        }
    }

    #[test]
    fn only_the_page_at_the_start_is_the_same_on_both_sides() {
        let cursor = || PagedBy::Cursor { parameter: "after".into(), start: Some("-1".into()), end: None };
        let page = || PagedBy::Page { parameter: "page".into(), first: 1 };
        for service in [cursor(), page(), PagedBy::Link] {
            let paged = |client| Paging {
                client: side(client),
                service: side(service.clone()),
                call: "GET /a".into(),
                upto: 1,
                origin: Origin { file: "a".into(), line: 1 },
            };
            let by_cursor = paged(cursor());
            assert!(!asks_by_cursor(&by_cursor, ""));
            assert!(!asks_by_cursor(&by_cursor, "size=2&after=-1&before=x"));
            assert!(asks_by_cursor(&by_cursor, "size=2&%61fter=x"));
            assert!(asks_by_cursor(&by_cursor, "after"));
            assert!(!asks_by_cursor(&paged(page()), "page=2&after=x"));
        }
    }
}
