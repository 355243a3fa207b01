//! Reads the effect of a write back on both sides, with the operation that the pack declares, and
//! compares the responses. If the plans executed the write, both sides display the same data, so the
//! read is also compared with the request members that the pack declares (`shows`).
//!
//! Disabled by default, limited by a separate budget, and read-only.

use super::ask::Dual;
use super::shadow_request::{Primary, ShadowRequest};
use crate::proxy::compose::exchange::scope_prefix;
use crate::proxy::layers::route;
use crate::proxy::request::KnownRequest;
use crate::shadow::{JobResult, ReadBack};
use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderMap, Method, Uri};
use std::sync::Arc;
use switchback_engine::diff::{BufferedAnswer, Candidate, SkipReason, View};
use switchback_engine::translate;
use switchback_json::{Limits, Object, Value};
use switchback_plan::{self as plan, Effect};

/// Header fields that describe the write, its body or its preconditions, which the read must not
/// repeat. Method override fields are absent because such requests have no shadow.
const OF_THE_WRITE: [HeaderName; 18] = [
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::TRANSFER_ENCODING,
    header::EXPECT,
    header::RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::IF_RANGE,
    header::CONTENT_RANGE,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("idempotency-key"),
];

impl Dual {
    /// Reads the effect of a write on both sides, or returns why it is not read. `None` if the write
    /// failed. `body` is the request body without a content coding, `written` the response.
    pub(crate) async fn read_back(
        &self,
        asked: &ShadowRequest,
        body: &Bytes,
        written: View,
    ) -> Option<JobResult> {
        if !(200..300).contains(&self.client_status(asked, &written)) {
            return None;
        }
        if let Some(why) = asked.not_read_back {
            return Some(JobResult::NotReadBack(why));
        }
        let declared = asked.request.route().read_back.as_ref()?;
        Some(match self.read_both(asked, declared, body, written).await {
            Ok(read) => JobResult::ReadBack(read),
            Err(why) => JobResult::Skipped(why),
        })
    }

    /// Reads the own service, the plans, and the own service again, so that a concurrent change is
    /// recognized.
    async fn read_both(
        &self,
        asked: &ShadowRequest,
        declared: &plan::ReadBack,
        body: &Bytes,
        written: View,
    ) -> Result<ReadBack, SkipReason> {
        let _place = self.read_backs.try_acquire().map_err(|_| SkipReason::Budget)?;
        if !written.body.is_whole() {
            return Err(SkipReason::TooLarge);
        }
        let reading = asked.reading(declared, body, &written).ok_or(SkipReason::Unaddressed)?;
        let none = BufferedAnswer::default();
        let route = reading.request.operation.route;
        let wanted = match asked.primary {
            Primary::Legacy => None,
            Primary::Plans => declared_members(&declared.shows, body),
        };
        let read = match self.own(&reading, &none).await {
            // Without a response from the old service, the new one is compared with the request only.
            Err(SkipReason::ReferenceFailed) if wanted.is_some() => {
                let candidate = self.plans(&reading, &none, 0).await?;
                let Candidate::Answered(view) = &candidate else { return Err(SkipReason::CandidateFailed) };
                if self.has_failed(&reading, &candidate) {
                    return Err(SkipReason::CandidateFailed);
                }
                let view = view.clone();
                ReadBack { route, reference: view.clone(), candidate, again: view, wanted }
            }
            reference => {
                let reference = reference?;
                let candidate = self.plans(&reading, &none, reference.body.total_bytes()).await?;
                let again = self.own(&reading, &none).await?;
                ReadBack { route, reference, candidate, again, wanted }
            }
        };
        // A later write of the same client may have changed what this one wrote.
        match read.wanted.is_some()
            && self.writes.has_written_since(&asked.request.client.name, asked.written)
        {
            true => Err(SkipReason::Moved),
            false => Ok(read),
        }
    }
}

/// Returns the declared members of a JSON request body that are not null. `None` if there are no such
/// members.
fn declared_members(shows: &[Arc<str>], body: &[u8]) -> Option<Value> {
    let Ok(Value::Object(asked)) = Value::parse(body, &Limits::DOCUMENT) else { return None };
    let mut wanted = Object::new();
    for name in shows {
        if let Some(value) = asked.get(name).filter(|value| !value.is_null()) {
            wanted.insert(&**name, value.clone());
        }
    }
    (!wanted.is_empty()).then_some(Value::Object(wanted))
}

impl ShadowRequest {
    /// Returns the read as a request of the same client. `None` if its address cannot be derived.
    fn reading(&self, declared: &plan::ReadBack, body: &Bytes, written: &View) -> Option<ShadowRequest> {
        let program = &self.request.context.program;
        let written = translate::Answer {
            status: written.status,
            headers: written.headers.clone(),
            body: Some(written.body.start().clone()),
            ..translate::Answer::default()
        };
        let route = self.request.route();
        let request = self.request.as_input(self.request.without_form_token(body.clone()));
        let path =
            translate::read_back(program.pack(), route, declared, &request, &written, program.settings())?;
        let uri = format!("{}{}{path}", self.request.front.prefix, self.account_prefix()?).parse().ok()?;
        self.turned_into(declared, uri)
    }

    /// Returns the path prefix of the account that the write addressed; empty for the main account.
    fn account_prefix(&self) -> Option<String> {
        let KnownRequest { context, front, operation, .. } = &*self.request;
        let Some(account) = &operation.account else { return Some(String::new()) };
        let template = context.program.side(front.serves).scope.as_deref()?;
        scope_prefix(template, account).ok()
    }

    /// Returns a `GET` of `uri` by the same client. `None` if `uri` does not match the declared read
    /// operation.
    fn turned_into(&self, declared: &plan::ReadBack, uri: Uri) -> Option<ShadowRequest> {
        let own = &self.request.context;
        let context = own.with_head(Method::GET, uri, of_the_reading(own.headers.clone()));
        let (front, rest) = route::front(&context).ok()?;
        let (front, operation) = (Arc::clone(front), route::find(&context, front, rest).ok()?);
        let request = self.request.derive(context, front, operation);
        let operation = &request.route().operation;
        if operation.key != declared.operation || operation.effect != Effect::None {
            return None;
        }
        Some(ShadowRequest {
            subject: self.subject.clone(),
            request,
            beside: Arc::clone(&self.beside),
            primary: self.primary,
            writes: false,
            written: self.written,
            not_read_back: None,
        })
    }
}

/// Returns the header fields of the read, derived from the write's.
fn of_the_reading(mut headers: HeaderMap) -> HeaderMap {
    OF_THE_WRITE.iter().for_each(|name| drop(headers.remove(name)));
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_the_write_says_of_itself_makes_its_reading_anything_else() {
        let write = [
            ("authorization", "Bearer token"),
            ("accept-language", "es"),
            ("content-type", "application/json"),
            ("content-digest", "sha-256=:AAAA:"),
            ("idempotency-key", "8e03978e"),
            ("if-match", "\"7\""),
        ];
        let write =
            write.map(|(name, value)| (HeaderName::from_static(name), http::HeaderValue::from_static(value)));
        let headers = of_the_reading(write.into_iter().collect());
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["authorization", "accept-language"]);
    }
}
