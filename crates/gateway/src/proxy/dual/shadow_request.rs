//! A request selected for the shadow, and the response that its client received.

use super::writes::WriteMark;
use crate::capture::{CallRecord, Recording};
use crate::error::GatewayError;
use crate::proxy::calls::call::Credential;
use crate::proxy::calls::upstream_auth;
use crate::proxy::program::ShadowUpstreams;
use crate::proxy::request::{Form, KnownRequest};
use crate::secret::Secret;
use crate::shadow::Subject;
use crate::token::carried;
use http::HeaderMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchback_engine::diff::{BufferedAnswer, NotReadBack};
use switchback_engine::har;
use switchback_engine::translate;

/// The side that answers the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Primary {
    /// The served side's own service.
    Legacy,
    /// The other side, translated.
    Plans,
}

/// A request selected for the shadow, without its body.
pub(crate) struct ShadowRequest {
    pub(crate) subject: Subject,
    pub(crate) request: Arc<KnownRequest>,
    pub(crate) beside: Arc<ShadowUpstreams>,
    pub(crate) primary: Primary,
    pub(crate) writes: bool,
    /// The client's write activity when the request arrived, excluding this request.
    pub(crate) written: WriteMark,
    /// Why the effect of a write is not read back; `None` if it is, and for reads.
    pub(crate) not_read_back: Option<NotReadBack>,
}

/// The response that the client received.
pub(crate) enum ClientView {
    Answered { status: u16, headers: HeaderMap, body: BufferedAnswer },
    Failed(GatewayError),
}

impl ShadowRequest {
    /// Returns the request with a new context, so that shadow calls are not counted as the client's.
    pub(super) fn repeat(&self) -> Arc<KnownRequest> {
        let KnownRequest { context: own, front, operation, .. } = &*self.request;
        let context = own.with_head(own.method.clone(), own.uri.clone(), own.headers.clone());
        self.request.derive(context, Arc::clone(front), operation.clone())
    }

    /// Returns a copy of the request for the plans. If a capture records the request, the recorded
    /// calls of an earlier try are discarded.
    pub(super) fn as_shadow(&self) -> Arc<KnownRequest> {
        let request = self.repeat();
        if let Some(recording) = self.recording() {
            recording.restart();
            request.context.facts().recording = Some(recording);
        }
        request
    }

    /// Returns the recording for shadow calls. `None` if the plans answered the client, because those
    /// calls are already recorded.
    fn recording(&self) -> Option<Arc<Recording>> {
        self.request.context.recording().filter(|_| self.primary == Primary::Legacy)
    }

    /// Records the shadow's result.
    pub(super) fn record(&self, shadow: impl FnOnce() -> har::Shadow) {
        if let Some(recording) = self.recording() {
            recording.shadow(shadow());
        }
    }

    /// Records a call with an effect, which is planned but not sent.
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

    /// Waits up to `patience` per grant for refreshes that are running or due, as all are when a
    /// gateway starts. The shadow starts no refresh itself.
    pub(super) async fn credentials_renewed(&self, patience: Duration) {
        let KnownRequest { context, front, client, .. } = &*self.request;
        for side in [front.serves, front.serves.other()] {
            let credential = upstream_auth::credential(&context.program, client, side);
            if let Ok(Credential::Grant { client, .. }) = credential {
                client.grant.token_within(patience).await;
            }
        }
    }

    /// Returns the credentials of the request and of its upstream calls, to be masked in reports.
    pub(super) fn secrets(&self) -> Vec<Secret<String>> {
        let KnownRequest { context, front, client, form, .. } = &*self.request;
        let credential = context.program.credential(front.serves);
        let own = credential.read_headers();
        let names = own.chain(["authorization", "proxy-authorization", "cookie"]);
        let values =
            names.flat_map(|name| context.headers.get_all(name)).filter_map(|value| value.to_str().ok());
        let words = values.flat_map(str::split_whitespace);
        let mut secrets: Vec<Secret<String>> = words.map(Secret::from).collect();
        // A token may be encoded in its header, so the decoded form is added as well.
        secrets.extend(credential.read_fields().flat_map(|(header, scheme)| {
            let values = context.headers.get_all(header).iter();
            values.filter_map(|value| {
                Some(Secret::from(&*carried::extract_token(value.to_str().ok()?, scheme)?))
            })
        }));
        let query = context.uri.query().unwrap_or_default();
        let in_query = credential.read_queries().flat_map(|name| carried::values(query, name));
        let form = Form::text(form);
        let in_form = credential.read_form_fields().flat_map(|name| carried::values(form, name));
        secrets.extend(in_query.chain(in_form).map(|token| Secret::from(&*token)));
        for side in [front.serves, front.serves.other()] {
            match upstream_auth::credential(&context.program, client, side) {
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

/// Returns whether a status is a server error, which is no evidence about the other side.
pub(crate) fn is_failure(status: u16) -> bool {
    status >= 500
}
