//! Paging between clients and services with different paging styles: determines the page that a
//! request means, the call for it, the following page, and how the answer announces that page.
//!
//! All state between two requests is in the cursor that the client sends back. A client that counts
//! pages sends no cursor; if the service uses cursors, the gateway then reads the preceding pages
//! to find the requested one. Positions found earlier are cached, which only saves calls.

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

/// The environment of a request: keys for sealing cursors, cached positions of lists, and the
/// public address. `list` identifies a list by operation, variables and all parameters not related
/// to paging.
pub trait Pages: fmt::Debug + Send + Sync {
    /// Seals a cursor. Only the same client can use it, for the same list and a limited time.
    fn seal(&self, state: &str, list: &str) -> String;

    /// Opens a sealed cursor. Returns `None` if it is invalid, expired, or of another client or
    /// list.
    fn open(&self, cursor: &str, list: &str) -> Option<String>;

    /// Returns the nearest cached page at or before a position, with the service's cursor for it.
    fn recall(&self, list: &str, position: u64) -> Option<(u64, String)>;

    /// Caches the service's cursor for the page at a position.
    fn remember(&self, list: &str, position: u64, cursor: &str);

    /// Returns the public address of the request, without a query.
    fn address(&self) -> String;
}

/// Paging for examples and explanations: cursors are readable, and no position is cached.
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

/// Returns whether a request contains a cursor. Services accept only their own cursors and the
/// gateway only those that it sealed, so the other side cannot be called for the same page.
pub fn asks_by_cursor(paging: &Paging, query: &str) -> bool {
    let PagedBy::Cursor { parameter, start, .. } = &paging.client.by else { return false };
    let mut values = query_pairs(query).filter(|(name, _)| decode_query(name) == **parameter);
    values.any(|(_, value)| Some(&*decode_query(value.unwrap_or(""))) != start.as_deref())
}

/// Returns whether a request counts to a page other than the first.
pub fn asks_beyond_first(paging: &Paging, query: &str) -> bool {
    let (parameter, first) = match &paging.client.by {
        PagedBy::Page { parameter, first } => (parameter, *first),
        PagedBy::Offset { parameter } => (parameter, 0),
        PagedBy::Cursor { .. } | PagedBy::Link => return false,
    };
    let mut values = query_pairs(query).filter(|(name, _)| decode_query(name) == **parameter);
    values.any(|(_, value)| decode_query(value.unwrap_or("")).parse() != Ok(first))
}

/// The paging state of one request.
#[derive(Debug)]
pub struct Pager {
    paging: Arc<Paging>,
    pages: Arc<dyn Pages>,
    list: String,
    /// The client's other parameters, as received.
    rest: String,
    /// Number of items per page, if known.
    size: Option<u32>,
    /// The requested position, in the client's unit.
    asked: u64,
    /// The position that the calls have reached and the one they must reach: pages or items, in the
    /// client's unit.
    reached: u64,
    goal: u64,
    /// The page that the next call requests.
    ask: Ask,
    calls: u32,
    /// The reply's information about the requested page.
    found: Option<Found>,
    /// The call that reads a page, to be repeated for the next one.
    call: Option<Call>,
}

/// A page of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ask {
    First,
    /// The page that starts after this number of items.
    Offset(u64),
    Cursor(String),
    /// The query of a URL that the service returned.
    Query(String),
}

#[derive(Clone, Debug)]
struct Found {
    next: Option<Ask>,
    count: Option<u64>,
}

/// The step after a reply.
#[derive(Debug)]
pub enum After {
    /// The reply is the requested page or an error; the route continues with it.
    Page(Reply),
    /// The reply is a preceding page; this call follows.
    Call(Box<Call>),
}

impl Pager {
    /// Parses the page parameters of a request. `path` contains the values of the path variables.
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
            // The service could read the other value, and the client would get a page that it did
            // not request.
            if slot.replace(decode_query(value.unwrap_or(""))).is_some() {
                return Err(bad_request(&name, "comes twice"));
            }
        }
        // The order of parameters is irrelevant for the identity of a list.
        let mut sorted = rest.clone();
        sorted.sort_unstable();
        // Length prefixes keep the key unambiguous for values that contain separators.
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

    /// Determines the requested position.
    fn place(&mut self, place: Option<&str>, sized: bool) -> Result<(), Fault> {
        let paging = Arc::clone(&self.paging);
        let (client, service) = (&paging.client, &paging.service);
        match &client.by {
            PagedBy::Page { parameter, first } => {
                let number = place.map(|text| parse_count(text, parameter)).transpose()?;
                let number = number.unwrap_or(u64::from(*first));
                self.asked = number
                    .checked_sub(u64::from(*first))
                    .ok_or_else(|| bad_request(parameter, "is too small"))?;
            }
            PagedBy::Offset { parameter } => {
                self.asked = place.map(|text| parse_count(text, parameter)).transpose()?.unwrap_or(0);
            }
            PagedBy::Cursor { start, .. } => {
                // The start marker requests the first page.
                let Some(cursor) = place.filter(|cursor| start.as_deref() != Some(*cursor)) else {
                    return Ok(());
                };
                // Both sides use cursors, so the service's own passes unchanged.
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
            // A page number counts pages, an offset counts items.
            let offset = match &client.by {
                // Checked, because the page number is the client's.
                PagedBy::Page { .. } => self.asked.checked_mul(self.span()?),
                _ => Some(self.asked),
            };
            let offset = offset.ok_or_else(|| bad_page("further than numbers go"))?;
            self.ask = Ask::Offset(offset);
            return self.check_aligned(offset);
        }
        // Pages of another size have other boundaries, so they are cached separately.
        let size = self.size.map_or_else(String::new, |size| size.to_string());
        self.list = format!("{}\n{size}", self.list);
        self.goal = self.asked;
        if let Some((reached, cursor)) =
            (self.goal > 0).then(|| self.pages.recall(&self.list, self.goal)).flatten()
            // Pages can only be read forwards.
            && reached <= self.goal
        {
            self.reached = reached;
            self.ask = self.asking(cursor);
        }
        Ok(())
    }

    /// Continues at the position of a sealed cursor.
    fn resume(&mut self, state: &str, sized: bool) -> Result<(), Fault> {
        let (size, place) = state.split_once('&').ok_or_else(bad_cursor)?;
        let size = size.strip_prefix("size=").ok_or_else(bad_cursor)?;
        // A size in the request takes precedence over that of the cursor.
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
        self.check_aligned(offset)
    }

    /// Checks that a service that counts pages has a page that starts at `offset`.
    fn check_aligned(&self, offset: u64) -> Result<(), Fault> {
        if let PagedBy::Page { .. } = self.paging.service.by
            && offset != 0
            && !offset.is_multiple_of(self.span()?)
        {
            return Err(bad_page("the service has no page that begins there"));
        }
        Ok(())
    }

    /// Returns the number of items per page.
    fn span(&self) -> Result<u64, Fault> {
        let span = self.size.or(self.paging.service.default).filter(|size| *size > 0);
        span.map(u64::from).ok_or_else(|| Fault::new(FaultKind::Internal, "nobody says how large a page is"))
    }

    /// Returns whether the reply's body must be parsed or the answer's body modified.
    pub fn reads_body(&self) -> bool {
        self.paging.reads_body()
    }

    /// Returns the operation of the call that reads a page.
    pub fn operation(&self) -> &str {
        &self.paging.call
    }

    /// Returns the target of the call, with its page parameters.
    pub fn target(&self, target: &str) -> Result<String, Fault> {
        let service = &self.paging.service;
        let mut target = target.to_owned();
        // The service chose all parameters of its link, so they replace the query.
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

    /// Returns the call with its page parameters, and stores it for repetition.
    pub(super) fn call(&mut self, call: Call) -> Result<Call, Fault> {
        let addressed = Call { target: self.target(&call.target)?, ..call.clone() };
        self.calls = 1;
        self.call = Some(call);
        Ok(addressed)
    }

    /// Returns whether the call for a page was sent.
    pub(super) fn has_called(&self) -> bool {
        self.call.is_some()
    }

    /// Returns whether the reply to the call for the page is outstanding.
    pub(super) fn waits(&self) -> bool {
        self.call.is_some() && self.found.is_none()
    }

    /// Processes the head of a successful reply whose body contains no page information.
    pub fn head(&mut self, headers: &HeaderMap) -> Result<(), Fault> {
        self.found = Some(self.look(headers, None)?);
        Ok(())
    }

    /// Processes a reply.
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
            // The route rejects a body that is not JSON.
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
            // After an empty page, the position would be the same and the cached cursor wrong.
            && advance > 0
        {
            // Also for pages on the way, so that a client that counts up needs one call per page.
            self.pages.remember(&self.list, follows, cursor);
        }
        if self.reached == self.goal {
            self.found = Some(found);
            return Ok(After::Page(reply));
        }
        let Some(next) = found.next.clone() else {
            // Beyond the end of the list: return the last page without its items.
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
        // The client's position is within a page of the service.
        if follows > self.goal {
            return Err(bad_page("the service has no page that begins there"));
        }
        // One request must not cause an unlimited number of calls; the cached position helps the
        // next one.
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

/// Returns the number of items per page. A client that is informed about further pages may get
/// fewer items than requested. A client that counts may not: it would treat a short page as the
/// last one, or skip items.
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
    // A service without a size parameter always returns its fixed size.
    let size = fixed.unwrap_or(size);
    if size != wanted && asked.is_some() && !client.is_told() {
        return Err(bad_request(name, "is not how many items the service gives at once"));
    }
    Ok(Some(size))
}

fn parse_count(text: &str, parameter: &str) -> Result<u64, Fault> {
    match text.parse() {
        // The limit prevents an overflow when positions are multiplied by page sizes.
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
