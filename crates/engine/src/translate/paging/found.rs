//! Extracts the following page from a reply of the service.

use super::{Ask, Found, Pager};
use crate::translate::fault::Fault;
use crate::translate::links::link_target;
use crate::translate::request::{decode_query, query_pairs};
use http::HeaderMap;
use switchback_json::Value;
use switchback_plan::{MemberPath, PagedBy, Told};

impl Pager {
    /// Returns the reply's information about the following page.
    pub(super) fn look(&self, headers: &HeaderMap, body: Option<&Value>) -> Result<Found, Fault> {
        let service = &self.paging.service;
        let at = |path: &MemberPath| body.and_then(|body| member(body, path));
        let url =
            |url: Option<&str>| url.filter(|url| !url.is_empty()).and_then(|url| self.asked_by_url(url));
        let told = match &service.next {
            None => None,
            Some(Told::Member(path)) => {
                at(path).and_then(scalar).filter(|text| !text.is_empty()).map(|text| self.asking(text))
            }
            Some(Told::Header(name)) => {
                let text = headers.get(&**name).and_then(|value| value.to_str().ok()).map(str::trim);
                text.filter(|text| !text.is_empty()).map(|text| self.asking(text.to_owned()))
            }
            Some(Told::Link) => url(link_target(headers, "next")),
            Some(Told::LinkMember(path)) => url(at(path).and_then(Value::as_str).as_deref()),
        };
        let told = match (&service.by, told) {
            // The end marker is not a cursor.
            (PagedBy::Cursor { end: Some(end), .. }, Some(Ask::Cursor(cursor))) if *cursor == **end => None,
            (_, told) => told,
        };
        let more = service.more.as_ref().and_then(at).and_then(Value::as_bool);
        let items = service.items.as_ref().and_then(at);
        let count = items.and_then(Value::as_array).map(|items| items.len() as u64);
        // Some services return null for an empty list.
        let count = count.or_else(|| items.is_some_and(Value::is_null).then_some(0));
        let total = service
            .total
            .as_ref()
            .and_then(at)
            .and_then(Value::as_i64)
            .and_then(|total| u64::try_from(total).ok());
        // An explicit `false` overrides a cursor that the service still returns.
        if !service.counts() {
            return Ok(Found { next: told.filter(|_| more != Some(false)), count });
        }
        let offset = match self.ask {
            Ask::Offset(offset) => offset,
            _ => 0,
        };
        let span = self.span()?;
        let ahead = match (&service.by, count) {
            // A service may return fewer items than requested; the next page starts after the last
            // one returned.
            (PagedBy::Offset { .. }, Some(count)) => count,
            _ => span,
        };
        let follows = offset.saturating_add(ahead);
        // The most explicit information wins: a flag, then a total, then a link, then the page
        // size.
        let is_more = match (more, total, &service.next, count) {
            // An offset that does not advance would be requested forever.
            (_, _, _, Some(0)) if matches!(service.by, PagedBy::Offset { .. }) => false,
            (Some(more), ..) => more,
            (None, Some(total), ..) => follows < total,
            (None, None, Some(_), _) => told.is_some(),
            (None, None, None, Some(count)) => count >= span,
            (None, None, None, None) => false,
        };
        Ok(Found { next: is_more.then_some(Ask::Offset(follows)), count })
    }

    /// Interprets a cursor of the service as the page to request.
    pub(super) fn asking(&self, text: String) -> Ask {
        match self.paging.service.by {
            PagedBy::Link => Ask::Query(text),
            _ => Ask::Cursor(text),
        }
    }

    /// Interprets a URL of the service as the page to request. Only the query matters, or of it the
    /// cursor.
    fn asked_by_url(&self, url: &str) -> Option<Ask> {
        // Fragments are never sent to a server.
        let url = url.split_once('#').map_or(url, |(url, _)| url);
        let query = url.split_once('?').map_or("", |(_, query)| query);
        match &self.paging.service.by {
            PagedBy::Link => Some(Ask::Query(query.to_owned())),
            by => {
                let PagedBy::Cursor { parameter, .. } = by else { return Some(Ask::Cursor(String::new())) };
                let mut values = query_pairs(query).filter(|(name, _)| decode_query(name) == **parameter);
                values.next().map(|(_, value)| Ask::Cursor(decode_query(value.unwrap_or(""))))
            }
        }
    }
}

fn member<'v>(body: &'v Value, path: &MemberPath) -> Option<&'v Value> {
    path.iter().try_fold(body, |value, key| value.get(&key.text))
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.decode().into_owned()),
        Value::Number(number) => Some(number.text().to_owned()),
        _ => None,
    }
}
