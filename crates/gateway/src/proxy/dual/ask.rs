//! Sends a shadow request to one side, within the shadow's timeout and on its own connections and
//! limits.

use super::shadow_request::{ClientView, ShadowRequest, is_failure};
use super::writes::Writes;
use crate::body::Body;
use crate::capture::fields;
use crate::error::{ErrorKind, ErrorSide, GatewayError};
use crate::proxy::Response;
use crate::proxy::compose;
use crate::proxy::compose::Composer;
use crate::proxy::compose::buffered::buffer;
use crate::proxy::compose::coding::{strip_coding, without_mark};
use crate::proxy::compose::forward::forward;
use crate::proxy::layers::rescue;
use crate::shadow::Shadow;
use bytes::Bytes;
use http::{HeaderMap, header};
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchback_engine::diff::{BufferedAnswer, Buffering, Candidate, SkipReason, View};
use switchback_engine::har::{self, Shadow as Recorded};
use switchback_engine::translate::failure_status;
use switchback_engine::translate::paging::asks_by_cursor;
use tokio::sync::Semaphore;

/// Number of bytes of a response that are read beyond the length of its counterpart. Reading further
/// would only confirm that the lengths differ.
const BEYOND_BYTES: u64 = 64 * 1024;

/// The resources for shadow requests to both sides. Clones share them.
#[derive(Clone)]
pub(crate) struct Dual {
    pub(crate) shadow: Shadow,
    /// The composer of shadow calls.
    pub(crate) composer: Arc<Composer>,
    /// Limits concurrent read-backs of writes.
    pub(crate) read_backs: Arc<Semaphore>,
    /// Write activity of each client.
    pub(super) writes: Writes,
}

impl Dual {
    pub(crate) fn new(shadow: Shadow, composer: Composer) -> Dual {
        let read_backs = Arc::new(Semaphore::new(shadow.settings().read_backs));
        Dual { shadow, composer: Arc::new(composer), read_backs, writes: Writes::new() }
    }

    /// Returns the response of the plans. Tries twice if the first try brings no response or a server
    /// error.
    pub(crate) async fn plans(
        &self,
        asked: &ShadowRequest,
        body: &BufferedAnswer,
        counterpart_bytes: u64,
    ) -> Result<Candidate, SkipReason> {
        comparable(asked)?;
        let asking = async {
            let first = self.plans_once(asked, body, counterpart_bytes).await;
            match first {
                Err(SkipReason::CandidateFailed) => self.plans_once(asked, body, counterpart_bytes).await,
                Ok(candidate) if self.has_failed(asked, &candidate) => {
                    self.plans_once(asked, body, counterpart_bytes).await
                }
                first => first,
            }
        };
        tokio::time::timeout(self.timeout(), asking).await.unwrap_or(Err(SkipReason::CandidateFailed))
    }

    async fn plans_once(
        &self,
        asked: &ShadowRequest,
        body: &BufferedAnswer,
        counterpart_bytes: u64,
    ) -> Result<Candidate, SkipReason> {
        let request = asked.as_shadow();
        let context = Arc::clone(&request.context);
        let answering = async {
            let body = Body::full(body.start().clone());
            let response = compose::answer(Arc::clone(&self.composer), request, body).await?;
            self.buffer_response(response, counterpart_bytes).await
        };
        let candidate = match answering.await {
            _ if context.record.is_unanswered() => Err(SkipReason::CandidateFailed),
            Ok(view) => Ok(Candidate::Answered(view)),
            Err(error) => self.failure(asked, &error).await,
        };
        asked.record(|| as_recorded(&candidate));
        candidate
    }

    /// Returns the response of the served side's own service. Tries twice if the first try brings no
    /// response or a server error.
    pub(crate) async fn own(&self, asked: &ShadowRequest, body: &BufferedAnswer) -> Result<View, SkipReason> {
        comparable(asked)?;
        let asking = async {
            match self.own_once(asked, body).await {
                Err(SkipReason::ReferenceFailed) => self.own_once(asked, body).await,
                first => first,
            }
        };
        tokio::time::timeout(self.timeout(), asking).await.unwrap_or(Err(SkipReason::ReferenceFailed))
    }

    async fn own_once(&self, asked: &ShadowRequest, body: &BufferedAnswer) -> Result<View, SkipReason> {
        let request = asked.repeat().forwarded(Body::full(body.start().clone()));
        let own = asked.beside.own.as_ref().and_then(|own| own.at(asked.request.route().operation.host));
        let own = own.ok_or(SkipReason::ReferenceFailed)?;
        let answering = async {
            let response = forward(&*self.composer, Arc::clone(own), request).await?;
            self.buffer_response(response, u64::MAX - BEYOND_BYTES).await
        };
        match answering.await {
            Ok(view) if !is_failure(self.client_status(asked, &view)) => Ok(view),
            Err(error) if matches!(error.kind(), ErrorKind::Overloaded { .. }) => Err(SkipReason::Budget),
            _ => Err(SkipReason::ReferenceFailed),
        }
    }

    /// Returns the time of a read by the served side's own service, up to the last byte. `None` if it
    /// fails.
    pub(super) async fn own_timed(&self, asked: &ShadowRequest, body: &BufferedAnswer) -> Option<Duration> {
        comparable(asked).ok()?;
        let began = Instant::now();
        let read = tokio::time::timeout(self.timeout(), self.own_once(asked, body)).await;
        read.ok()?.is_ok().then(|| began.elapsed())
    }

    /// Returns the time of a read by the plans, up to the last byte. `None` if it fails.
    pub(super) async fn plans_timed(&self, asked: &ShadowRequest, body: &BufferedAnswer) -> Option<Duration> {
        comparable(asked).ok()?;
        let began = Instant::now();
        let reading = self.plans_once(asked, body, u64::MAX - 2 * BEYOND_BYTES);
        let read = tokio::time::timeout(self.timeout(), reading).await.ok()?.ok()?;
        (!self.has_failed(asked, &read)).then(|| began.elapsed())
    }

    /// Converts an error of the plans: into the response that the client would have received, or into
    /// the reason to skip the comparison.
    pub(super) async fn failure(
        &self,
        asked: &ShadowRequest,
        error: &GatewayError,
    ) -> Result<Candidate, SkipReason> {
        let what = error.detail();
        match error.kind() {
            _ if error.is_unanswered() => Err(SkipReason::CandidateFailed),
            ErrorKind::UpstreamBroken => Ok(Candidate::Unanswered { what }),
            ErrorKind::BadBody | ErrorKind::Internal => Ok(Candidate::Untranslated { what }),
            ErrorKind::Overloaded { .. } => Err(SkipReason::Budget),
            ErrorKind::NeedsReconnect => Err(SkipReason::Credential),
            ErrorKind::Refused => Err(SkipReason::Refused),
            _ => {
                let view = self.buffer_response(rescue::response(&asked.request.context, error), 0).await;
                view.map(Candidate::Answered).map_err(|_| SkipReason::PrimaryFailed)
            }
        }
    }

    /// Returns the client's response with its content coding removed.
    pub(super) async fn view(&self, seen: ClientView) -> Result<View, SkipReason> {
        let ClientView::Answered { status, headers, body } = seen else {
            return Err(SkipReason::PrimaryFailed);
        };
        if !headers.contains_key(header::CONTENT_ENCODING) || body.is_empty() {
            return Ok(View { status, headers, body });
        }
        if !body.is_whole() {
            return Err(SkipReason::TooLarge);
        }
        let mut response = Response::new(Body::full(body.start().clone()));
        *response.headers_mut() = headers;
        let view = self.buffer_response(response, u64::MAX - BEYOND_BYTES).await;
        view.map(|view| View { status, ..view }).map_err(|_| SkipReason::PrimaryFailed)
    }

    /// Reads a response, removes its content coding and buffers the configured prefix. Stops reading
    /// soon after `counterpart_bytes`.
    async fn buffer_response(
        &self,
        response: Response,
        counterpart_bytes: u64,
    ) -> Result<View, GatewayError> {
        let limits = &self.composer.limits;
        let (parts, body) = response.into_parts();
        let mut body = strip_coding(
            body,
            &parts.headers,
            ErrorSide::Upstream,
            limits.bodies.decode_ratio_max,
            limits.upstream.response_bytes_max,
        )?;
        let body_bytes = self.shadow.settings().body_bytes;
        let enough = counterpart_bytes.max(body_bytes as u64) + BEYOND_BYTES;
        let (mut holding, mut read) = (Buffering::new(body_bytes), 0);
        while read <= enough
            && let Some(chunk) = body.chunk().await.transpose()?
        {
            let chunk = if read == 0 { without_mark(chunk) } else { chunk };
            read += chunk.len() as u64;
            holding.push(&chunk);
            // Yields, because a body of many small, ready chunks would otherwise starve the timeout.
            tokio::task::consume_budget().await;
        }
        Ok(View { status: parts.status.as_u16(), headers: parts.headers, body: holding.finish() })
    }

    /// Returns a request body with its content coding removed.
    pub(super) async fn decode_body(&self, headers: &HeaderMap, body: Bytes) -> Result<Bytes, SkipReason> {
        if !headers.contains_key(header::CONTENT_ENCODING) || body.is_empty() {
            return Ok(body);
        }
        let ratio_max = self.composer.limits.bodies.decode_ratio_max;
        let bytes_max = self.shadow.settings().body_bytes as u64;
        let plain = strip_coding(Body::full(body), headers, ErrorSide::Client, ratio_max, bytes_max);
        let plain = plain.map_err(|_| SkipReason::PrimaryFailed)?;
        let held = buffer(plain, ErrorSide::Client, bytes_max, self.composer.memory.share()).await;
        held.map(|held| held.bytes).map_err(|error| match error.kind() {
            ErrorKind::Overloaded { .. } => SkipReason::Memory,
            _ => SkipReason::TooLarge,
        })
    }

    /// Returns the effective status of a response on the served side: the pack's failure rules may
    /// map a 2xx response to an error.
    pub(super) fn client_status(&self, asked: &ShadowRequest, view: &View) -> u16 {
        let rules = &asked.request.context.program.pack().failures[asked.request.front.serves];
        if rules.is_empty() || !(200..300).contains(&view.status) || !view.body.is_whole() {
            return view.status;
        }
        failure_status(rules, &view.headers, view.body.start()).unwrap_or(view.status)
    }

    /// Returns whether the candidate is a server error, which is no evidence about the mapping.
    pub(super) fn has_failed(&self, asked: &ShadowRequest, candidate: &Candidate) -> bool {
        matches!(candidate, Candidate::Answered(view) if is_failure(self.client_status(asked, view)))
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.shadow.settings().timeout
    }
}

/// Rejects requests with a page cursor: only the side that issued a cursor can read it.
fn comparable(asked: &ShadowRequest) -> Result<(), SkipReason> {
    match &asked.request.route().paging {
        Some(paging) if asks_by_cursor(paging, asked.request.query()) => Err(SkipReason::Refused),
        _ => Ok(()),
    }
}

/// Converts a candidate for a capture.
fn as_recorded(candidate: &Result<Candidate, SkipReason>) -> Recorded {
    match candidate {
        Ok(Candidate::Answered(view)) => {
            let body = match view.body.is_whole() {
                true => view.body.start().clone().into(),
                false => har::Body::Missing,
            };
            let answer = har::Response { status: view.status, headers: fields(&view.headers), body };
            Recorded::Answered { answer, masked: Vec::new() }
        }
        Ok(_) => Recorded::Dropped("untranslated".to_owned()),
        Err(why) => Recorded::Dropped(why.name().to_owned()),
    }
}
