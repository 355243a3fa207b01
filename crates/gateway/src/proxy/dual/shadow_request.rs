//! A request whose other side is to be asked, and what is known of how its client was answered.

use super::writes::WriteMark;
use crate::body::Body;
use crate::capture::{CallRecord, Recording};
use crate::error::GatewayError;
use crate::proxy::Request;
use crate::proxy::calls::call::Credential;
use crate::proxy::calls::upstream_auth;
use crate::proxy::context::RequestContext;
use crate::proxy::program::ShadowUpstreams;
use crate::secret::Secret;
use crate::shadow::Subject;
use crate::token::carried;
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchback_engine::diff::{BufferedAnswer, NotReadBack};
use switchback_engine::har;
use switchback_engine::translate;

/// Who answers the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Primary {
    /// The served side's own service.
    Legacy,
    /// The other side, translated.
    Plans,
}

/// A request whose other side is to be asked, without its body.
pub(crate) struct ShadowRequest {
    pub(crate) subject: Subject,
    pub(crate) context: Arc<RequestContext>,
    pub(crate) beside: Arc<ShadowUpstreams>,
    pub(crate) primary: Primary,
    pub(crate) writes: bool,
    /// The client's writes when the request came; of a write, the others.
    pub(crate) written: WriteMark,
    /// Why the effect of a write is not read back; `None` where it is, and of readings.
    pub(crate) not_read_back: Option<NotReadBack>,
}

/// How the client was answered.
pub(crate) enum ClientView {
    Answered { status: u16, headers: HeaderMap, body: BufferedAnswer },
    Failed(GatewayError),
}

impl ShadowRequest {
    /// The request once more, with a context of its own: what the shadow does is not counted as the client's.
    pub(crate) fn request(&self, body: Bytes) -> Request {
        let own = &self.context;
        let context = own.with_head(own.method.clone(), own.uri.clone(), own.headers.clone());
        context.set_front(Arc::clone(&own.route_match().front));
        context.set_matched(own.route_match().clone());
        context.set_client(Arc::clone(own.expect_client()));
        Request { context: Arc::new(context), body: Body::full(body) }
    }

    /// The request once more, for the plans in place of the service that answered: while a capture records it, the calls of
    /// this try take the place of those of an earlier one.
    pub(super) fn as_shadow(&self, body: Bytes) -> Request {
        let request = self.request(body);
        if let Some(recording) = self.recording() {
            recording.restart();
            request.context.set_recording(Arc::clone(recording));
        }
        request
    }

    /// Where the shadow's calls are recorded: not where the plans answered the client, whose calls are recorded themselves.
    fn recording(&self) -> Option<&Arc<Recording>> {
        self.context.recording().filter(|_| self.primary == Primary::Legacy)
    }

    /// Records how far the shadow followed the plan.
    pub(super) fn record(&self, shadow: impl FnOnce() -> har::Shadow) {
        if let Some(recording) = self.recording() {
            recording.shadow(shadow());
        }
    }

    /// Records a call with an effect, which the shadow plans and does not make.
    pub(super) fn record_planned(&self, call: &translate::Call) {
        if let Some(recording) = self.recording() {
            recording.call(CallRecord {
                method: call.method.clone(),
                target: call.target.clone(),
                headers: call.headers.clone(),
                body: Some(call.body.clone().unwrap_or_default()),
                started: Instant::now(),
                head: None,
                answer: None,
            });
        }
    }

    /// Waits for the grants that calls go out with and that are being refreshed at this moment, as they all are when a
    /// gateway begins: the shadow renews none, and need not miss what is on its way.
    pub(super) async fn credentials_renewed(&self, patience: Duration) {
        let serves = self.context.route_match().front.serves;
        for side in [serves, serves.other()] {
            let credential =
                upstream_auth::credential(&self.context.program, self.context.expect_client(), side);
            if let Ok(Credential::Grant { client, .. }) = credential {
                client.grant.token_within(patience).await;
            }
        }
    }

    /// Every credential that the request came with, and the one that its calls go out with.
    pub(super) fn secrets(&self) -> Vec<Secret<String>> {
        let front = &self.context.route_match().front;
        let credential = self.context.program.credential(front.serves);
        let own = credential.read_headers();
        let names = own.chain(["authorization", "proxy-authorization", "cookie"]);
        let values =
            names.flat_map(|name| self.context.headers.get_all(name)).filter_map(|value| value.to_str().ok());
        let words = values.flat_map(str::split_whitespace);
        let mut secrets: Vec<Secret<String>> = words.map(Secret::from).collect();
        // What is read of a header need not stand in it as it is.
        secrets.extend(credential.read_fields().flat_map(|(header, scheme)| {
            let values = self.context.headers.get_all(header).iter();
            values.filter_map(|value| {
                Some(Secret::from(&*carried::extract_token(value.to_str().ok()?, scheme)?))
            })
        }));
        let query = self.context.uri.query().unwrap_or_default();
        let in_query = credential.read_queries().flat_map(|name| carried::values(query, name));
        let in_form =
            credential.read_form_fields().flat_map(|name| carried::values(self.context.form(), name));
        secrets.extend(in_query.chain(in_form).map(|token| Secret::from(&*token)));
        for side in [front.serves, front.serves.other()] {
            match upstream_auth::credential(&self.context.program, self.context.expect_client(), side) {
                Ok(Credential::Grant { client, .. }) => {
                    secrets.extend(client.grant.current().map(|token| token.secret().clone()));
                }
                Ok(Credential::Fixed { token, value, .. }) => {
                    secrets.push(token.secret().clone());
                    secrets
                        .extend(value.to_str().into_iter().flat_map(str::split_whitespace).map(Secret::from));
                }
                Ok(Credential::Ready { .. } | Credential::Carried) | Err(_) => {}
            }
        }
        secrets
    }
}

/// A failure of a service says nothing about the other one.
pub(crate) fn is_failure(status: u16) -> bool {
    status >= 500
}
