//! Announces the following page in the head or body of the client's answer.

use super::{Ask, Found, Pager};
use crate::translate::fault::{Fault, FaultKind};
use crate::translate::head::with_text;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use switchback_json::{Limits, Number, Object, Value};
use switchback_plan::{LastPage, MemberPath, PagedBy, Told};

impl Pager {
    /// Returns the client's parameter value for the following page, if there is one.
    pub(super) fn next(&self) -> Result<Option<String>, Fault> {
        let Some(Found { next: Some(next), count }) = &self.found else { return Ok(None) };
        Ok(Some(match &self.paging.client.by {
            PagedBy::Page { first, .. } => (self.asked + 1).saturating_add(u64::from(*first)).to_string(),
            PagedBy::Offset { .. } => {
                let ahead = match count {
                    Some(count) => *count,
                    None => self.span()?,
                };
                self.asked.saturating_add(ahead).to_string()
            }
            PagedBy::Cursor { .. } | PagedBy::Link => {
                let place = match next {
                    // The service's own cursor needs no sealing.
                    Ask::Cursor(cursor) => return Ok(Some(cursor.clone())),
                    Ask::Query(query) => format!("link={query}"),
                    Ask::Offset(offset) => format!("offset={offset}"),
                    Ask::First => "offset=0".to_owned(),
                };
                let size = self.size.map_or_else(String::new, |size| size.to_string());
                self.pages.seal(&format!("size={size}&{place}"), &self.list)
            }
        }))
    }

    /// Returns the client's URL of a page, with the client's own parameters.
    fn url(&self, place: &str) -> String {
        let client = &self.paging.client;
        let mut url = self.pages.address();
        if !self.rest.is_empty() {
            url = format!("{url}?{}", self.rest);
        }
        if let (Some(parameter), Some(size)) = (&client.size, self.size) {
            url = with_text(&url, parameter, &size.to_string());
        }
        match client.parameter() {
            Some(parameter) => with_text(&url, parameter, place),
            None => url,
        }
    }

    /// Announces the following page in the head of the answer.
    pub fn tell_head(&self, headers: &mut HeaderMap) -> Result<(), Fault> {
        let Some(next) = self.next()? else { return Ok(()) };
        let text = match &self.paging.client.next {
            Some(Told::Header(name)) => (HeaderName::from_bytes(name.as_bytes()).ok(), next),
            Some(Told::Link) => (Some(header::LINK), format!("<{}>; rel=\"next\"", self.url(&next))),
            _ => return Ok(()),
        };
        let (Some(name), Ok(value)) = (text.0, HeaderValue::from_str(&text.1)) else {
            let said = "the service gave a cursor that no header field can carry";
            return Err(Fault::new(FaultKind::UpstreamBroken, said));
        };
        headers.insert(name, value);
        Ok(())
    }

    /// Returns the answer's body with the announcement of the following page, or `None` if it
    /// contains none.
    pub(in crate::translate) fn tell_body(
        &self,
        body: &[u8],
        limits: &Limits,
    ) -> Result<Option<Bytes>, Fault> {
        let client = &self.paging.client;
        if client.members().next().is_none() {
            return Ok(None);
        }
        let broken = |_| Fault::new(FaultKind::Internal, "an answer of the route's own is no JSON");
        let mut body = Value::parse(body, limits).map_err(broken)?;
        let next = self.next()?;
        if let Some(path) = &client.more {
            put(&mut body, path, Some(Value::Bool(next.is_some())));
        }
        if let Some(told) = &client.next
            && let Some(path) = told.member()
        {
            let value = match (next, &client.last) {
                (Some(next), _) if matches!(told, Told::LinkMember(_)) => {
                    Some(Value::string(&self.url(&next)))
                }
                (Some(next), _) if client.next_is_number => Number::from_text(&next).map(Value::Number),
                (Some(next), _) => Some(Value::string(&next)),
                (None, LastPage::Absent) => None,
                (None, LastPage::Null) => Some(Value::Null),
                (None, LastPage::Word(word)) => Some(Value::string(word)),
            };
            put(&mut body, path, value);
        }
        Ok(Some(Bytes::from(body.to_vec())))
    }
}

/// Sets or removes a member. Missing parents are created if there is a value to set.
fn put(body: &mut Value, path: &MemberPath, value: Option<Value>) {
    let Some((last, way)) = path.split_last() else { return };
    let mut at = body;
    for key in way {
        let Some(object) = at.as_object_mut() else { return };
        if object.get(&key.text).is_none_or(Value::is_null) {
            // Do not create parents only to remove a member.
            if value.is_none() {
                return;
            }
            object.insert(&*key.text, Value::Object(Object::new()));
        }
        let Some(inner) = object.get_mut(&key.text) else { return };
        at = inner;
    }
    let Some(object) = at.as_object_mut() else { return };
    match value {
        Some(value) => drop(object.insert(&*last.text, value)),
        None => drop(object.remove(&last.text)),
    }
}
