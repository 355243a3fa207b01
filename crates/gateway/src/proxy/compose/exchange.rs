//! Processing of one request: drives the plan's state machine and performs the calls that it
//! requests.

use super::buffered::{Buffered, buffer};
use super::coding::{strip_coding, without_mark};
use super::composer::Composer;
use super::forward::forward;
use super::pages::RequestPages;
use super::resume::ResumableStep;
use crate::body::Body;
use crate::clock::Clock;
use crate::error::{ErrorKind, ErrorSide, GatewayError, RetrySafety};
use crate::heavy::{Heavy, LIGHT_BYTES_MAX};
use crate::memory::{MemoryShare, Short};
use crate::proxy::calls::call::{Call, Delivery, InterimHandling, Payload};
use crate::proxy::calls::upstream_auth;
use crate::proxy::concurrency::{RETRY_AFTER, limit_error};
use crate::proxy::error_form::ErrorStatus;
use crate::proxy::origin::CallOrigin;
use crate::proxy::request::KnownRequest;
use crate::proxy::upstream::Upstream;
use crate::proxy::{Response, headers};
use crate::telemetry::escape::Escaped;
use crate::telemetry::metrics;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::sync::Arc;
use switchback_engine::translate::paging::{Pager, Pages};
use switchback_engine::translate::{
    self, Answer, Event, FailKind, Failed, Fault, FaultKind, Next, Refused, Reply, Run,
};
use switchback_json as json;
use switchback_plan as plan;
use switchback_plan::router::encode_segment;
use switchback_plan::{BodyFormat, Effect};

/// Returns an upper bound on the values in a JSON text: one per comma, one per opening bracket,
/// plus the root. In an XML text, each start tag and each attribute is a value.
pub(super) fn tree_nodes_max(text: &[u8]) -> usize {
    if switchback_engine::xml::begins_as_xml(text) {
        return 1 + text.iter().filter(|byte| matches!(byte, b'<' | b'=')).count();
    }
    1 + text.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count()
}

/// Estimated bytes per value in a tree: the value, its key, and allocator overhead, in a vector
/// that doubles as it grows.
pub(super) const TREE_NODE_BYTES: u64 = 200;

/// Bytes reserved for the response before a write is sent: after the write, the request must not
/// fail for lack of memory.
const WRITTEN_BYTES: u64 = 64 * 1024;

/// State of one request.
pub(crate) struct Exchange<'c> {
    pub(crate) composer: &'c Composer,
    pub(crate) request: Arc<KnownRequest>,
    /// Set when a call with effects may have reached an upstream.
    wrote: bool,
    /// Resumable steps that this request has claimed.
    works: Vec<ResumableStep>,
    /// Total bytes of the texts passed to the plan.
    pub(super) worked: u64,
    /// Memory reserved for those texts and for the values derived from them, until the request
    /// finishes.
    pub(super) shares: Vec<MemoryShare>,
    /// Pager of a pair whose paging does not depend on the body.
    pub(super) pager: Option<Box<Pager>>,
}

impl<'c> Exchange<'c> {
    pub(crate) fn new(composer: &'c Composer, request: Arc<KnownRequest>) -> Exchange<'c> {
        let (wrote, works, worked, shares, pager) = (false, Vec::new(), 0, Vec::new(), None);
        Exchange { composer, request, wrote, works, worked, shares, pager }
    }
}

impl Exchange<'_> {
    /// Returns the page store of this request, which seals cursors and caches those of its list.
    pub(super) fn pages(&self) -> Result<Arc<RequestPages>, GatewayError> {
        Ok(Arc::new(RequestPages::new(self.composer, &self.request, self.account()?)))
    }

    /// Parses the page parameters of a request to a pair.
    pub(super) fn page(
        &mut self,
        route: &plan::Route,
        paging: &Arc<plan::Paging>,
        pages: Arc<dyn Pages>,
    ) -> Result<(), GatewayError> {
        let (values, query) = (&self.request.operation.values, self.request.query());
        let pager = Pager::new(paging, pages, &route.operation.key, values, query);
        self.pager = Some(Box::new(pager.map_err(|fault| self.fault(&fault))?));
        Ok(())
    }

    /// Reserves memory for the values of a text. Small texts are covered by the request's own
    /// reservation.
    pub(super) fn take(&mut self, bytes: u64) -> Result<(), GatewayError> {
        if bytes > LIGHT_BYTES_MAX {
            let share = self.composer.memory.take(bytes).map_err(|Short| limit_error("memory"))?;
            self.shares.push(share);
        }
        Ok(())
    }

    /// Advances the plan: inline for small inputs, otherwise on the pool for heavy work.
    pub(crate) async fn next(
        &mut self,
        mut run: Box<Run>,
        event: Event,
    ) -> Result<(Box<Run>, Result<Next, Fault>), GatewayError> {
        if self.worked <= LIGHT_BYTES_MAX {
            let next = run.next(event);
            return Ok((run, next));
        }
        // Move the reservations into the job: a cancelled request drops its future, but the job and
        // its memory live on until the job finishes.
        let shares = std::mem::take(&mut self.shares);
        let work = move || {
            let next = run.next(event);
            (run, next, shares)
        };
        let (run, next, shares) = Box::pin(self.run_heavy(self.worked, work)).await?;
        self.shares = shares;
        Ok((run, next))
    }

    /// Runs `work` on `bytes` bytes of input: inline if they are few, otherwise on the pool for
    /// heavy work.
    pub(super) async fn run_heavy<T: Send + 'static>(
        &self,
        bytes: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, GatewayError> {
        if bytes <= LIGHT_BYTES_MAX {
            return Ok(work());
        }
        let broke_off = || GatewayError::new(ErrorKind::Internal, "work on a large body broke off");
        self.composer.heavy.work(work).await.ok_or_else(broke_off)
    }

    /// Runs the plan to its response. `original` is the request body as received, for forwarding to
    /// the legacy service if the plan refuses late.
    pub(super) async fn drive(&mut self, run: Box<Run>, original: &Bytes) -> Result<Response, GatewayError> {
        let mut run = RunEnd { run: Some(run), large: None };
        let mut event = Event::Start;
        let mut reply_headers = HeaderMap::new();
        // Number of shares before the last reply's, and the bytes of that reply.
        let mut last = None;
        loop {
            let at_work = run.run.take().expect("it comes back from each step");
            run.large = (self.worked > LIGHT_BYTES_MAX).then(|| self.composer.heavy.clone());
            let (back, next) = self.next(at_work, event).await?;
            run.run = Some(back);
            match next.map_err(|fault| self.fault(&fault))? {
                Next::Call(call) => match self.perform(call).await? {
                    Ok((reply, share)) => {
                        reply_headers.clone_from(&reply.headers);
                        let bytes = reply.body.len() as u64;
                        // Record where this reply's share starts. A poll that has to wait drops it
                        // again, so that repeated polling does not accumulate reservations.
                        last = Some((self.shares.len(), bytes));
                        self.worked += bytes;
                        self.shares.extend(share.filter(|share| share.bytes() > 0));
                        event = Event::Reply(reply);
                    }
                    Err(failed) => {
                        last = None;
                        event = Event::Failed(failed);
                    }
                },
                Next::Wait(wait) => {
                    // The next reply replaces this one.
                    if let Some((shares, bytes)) = last.take() {
                        self.shares.truncate(shares);
                        self.worked -= bytes;
                    }
                    let may_write = run.run.as_ref().is_some_and(|run| run.may_write());
                    event = Box::pin(self.wait(wait, may_write)).await?;
                }
                Next::Answer(answer) => {
                    if answer.forward
                        && let Some(own) = self.own_service()
                        && own.is_there().await
                    {
                        return self.forward(own, original).await;
                    }
                    if let Some(cause) = &answer.cause {
                        self.note(cause);
                    }
                    // If the client has left, retain the finished steps: they answer its next
                    // attempt.
                    let is_told = !self.request.context.record.has_left();
                    let is_done = (200..300).contains(&answer.error.unwrap_or(answer.status));
                    // After an error, the next attempt of the client continues after the completed
                    // steps.
                    if is_told && (is_done || answer.is_over) {
                        for work in self.works.drain(..) {
                            work.forget().await;
                        }
                    }
                    return Ok(self.response(answer, &reply_headers));
                }
                Next::Refuse(refused) => return self.refuse(refused, original).await,
                Next::Recall(lookup) => event = Box::pin(self.recall(lookup)).await?,
                Next::Keep(_) if self.composer.origin == CallOrigin::Shadow => {
                    let detail = "nothing is kept in the shadow";
                    return Err(GatewayError::new(ErrorKind::Internal, detail));
                }
                Next::Keep(entries) => {
                    event = Box::pin(self.keep(entries)).await?;
                    self.wrote = true;
                }
            }
        }
    }

    /// Returns the client and account that the request acts on.
    pub(super) fn acts_on(&self) -> Result<(&str, Option<&str>), GatewayError> {
        Ok((&self.request.client.id, self.account()?))
    }

    /// Performs a call, or returns its reply recorded by an earlier request. The plan handles the
    /// inner result.
    async fn perform(
        &mut self,
        call: translate::Call,
    ) -> Result<Result<(Reply, Option<MemoryShare>), Failed>, GatewayError> {
        // Without a key the plan does not declare the step as resumable.
        let Some(key) = call.resume_key.clone() else { return self.exchange(call).await };
        // The claim is exclusive: two attempts of the same client must not both perform the step.
        let work = self.composer.resume.claim(&self.request.client.id, key).await;
        if let Some(reply) = work.reply().await? {
            if let Some(recording) = self.request.context.recording() {
                recording.note_archive_read();
            }
            self.wrote = true;
            self.works.push(work);
            return Ok(Ok((reply, None)));
        }
        let outcome = self.exchange(call).await;
        if let Ok(Ok((reply, _))) = &outcome
            && (200..300).contains(&reply.status)
            // The plan treats such a reply as a failure, so it must not be recorded as a completed
            // step.
            && translate::foreign_success(&reply.headers, self.json_types(), &reply.body).is_none()
        {
            work.done(reply).await;
        }
        self.works.push(work);
        outcome
    }

    /// Returns the media types that the pack declares as JSON.
    pub(super) fn json_types(&self) -> &[Arc<str>] {
        &self.request.context.program.pack().json_types
    }

    /// Performs a call. The plan handles the inner result.
    pub(crate) async fn exchange(
        &mut self,
        call: translate::Call,
    ) -> Result<Result<(Reply, Option<MemoryShare>), Failed>, GatewayError> {
        let effect = call.effect;
        let mut call = self.outgoing(call)?;
        let mut share = self.composer.memory.share();
        // Refused before the call is sent, so a retry of the client is safe.
        if effect == Effect::Write && share.grow(WRITTEN_BYTES).is_err() {
            return Err(limit_error("memory").safe_to_retry());
        }
        let outcome = self.reply(&mut call, share).await;
        match outcome {
            // From here on, forwarding to the legacy service is no longer allowed: the request has
            // had an effect.
            Ok((reply, share)) => {
                self.wrote |= effect == Effect::Write;
                Ok(Ok((reply, Some(share))))
            }
            Err(error) => {
                let had_written = self.wrote;
                self.wrote |= effect == Effect::Write && error.retry() == RetrySafety::Never;
                if error.is_unanswered() {
                    self.request.context.record.set_unanswered();
                }
                tracing::debug!(request_id = %self.request.context.id, ?error, "a call failed");
                // After an effect only the plan can decide how the request continues, so every
                // failure is passed to it.
                let kind = fail_kind(error.kind()).or(had_written.then_some(FailKind::Unreachable));
                match kind {
                    Some(kind) => Ok(Err(Failed { kind, detail: error.detail() })),
                    None => Err(error),
                }
            }
        }
    }

    /// Adds to the plan's call everything that the plan does not know: address, credential, and the
    /// gateway's own fields.
    pub(crate) fn outgoing(&self, call: translate::Call) -> Result<Call, GatewayError> {
        let front = &self.request.front;
        let backend = front.serves.other();
        let origin = self.composer.origin;
        if origin == CallOrigin::Shadow && call.effect == Effect::Write {
            return Err(GatewayError::new(
                ErrorKind::Internal,
                "a call with an effect is not made in the shadow",
            ));
        }
        let upstream = front
            .upstreams_for(origin)
            .ok_or_else(|| GatewayError::new(ErrorKind::Internal, "the shadow has no service to ask"))?
            .at(call.host)
            .ok_or_else(|| GatewayError::new(ErrorKind::Internal, "the host has no address"))?;
        let (context, pseudonym) = (&self.request.context, &self.composer.pseudonym);
        let own = context.program.call_headers(backend);
        let mut headers = headers::translated_request(
            &context.headers,
            context.version,
            context.trace,
            pseudonym,
            call.headers.len() + own.len() + if call.body.is_some() { 2 } else { 0 },
        );
        for (name, value) in own {
            headers.insert(name.clone(), value.clone());
        }
        for (name, value) in &call.headers {
            // These fields are single-valued, and the plan takes precedence.
            if *name == header::ACCEPT || *name == header::CONTENT_TYPE {
                headers.insert(name, value.clone());
            } else {
                headers.append(name, value.clone());
            }
        }
        if call.body.is_some() && !headers.contains_key(header::CONTENT_TYPE) {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(BodyFormat::JSON));
        }
        let scope = self.scope(backend)?;
        Ok(Call {
            context: Arc::clone(context),
            client: Some(Arc::clone(&self.request.client)),
            upstream: Arc::clone(upstream),
            side: Some(backend),
            limits: self.request.limits().calls,
            delivery: Delivery::new(InterimHandling::Answer, self.is_repeatable(&call)),
            scope_bytes: scope.len(),
            target: if scope.is_empty() { call.target } else { scope + &call.target },
            method: call.method,
            headers,
            payload: Payload::Whole(call.body.unwrap_or_default()),
            credential: upstream_auth::credential(&context.program, &self.request.client, backend)?,
        })
    }

    /// Returns whether the call may be retried. Reads may be; other calls only if the plan allows
    /// it and both the client's method and the call's method are idempotent.
    fn is_repeatable(&self, call: &translate::Call) -> bool {
        let is_read = call.effect == Effect::None && call.method == Method::GET;
        // Except for reads, both methods must be idempotent (RFC 9110, section 9.2.2): a plan may
        // translate PUT into a call that is not, and POST into one that is.
        call.repeatable
            && (is_read || (self.request.context.method.is_idempotent() && call.method.is_idempotent()))
    }

    /// Returns the secondary account of the request: the client's own or the one named in the path.
    /// If both exist and differ, the request fails, because a call must never reach another account
    /// than the intended one.
    fn account(&self) -> Result<Option<&str>, GatewayError> {
        match (self.request.client.company.as_deref(), self.request.operation.account.as_deref()) {
            (Some(own), Some(asked)) if own != asked => {
                let detail = "the path names another account than the client is bound to";
                Err(GatewayError::new(ErrorKind::AccountUnavailable, detail).safe_to_retry())
            }
            (own, asked) => Ok(own.or(asked)),
        }
    }

    /// Returns the path prefix of that account on a side.
    fn scope(&self, side: plan::SideId) -> Result<String, GatewayError> {
        let Some(account) = self.account()? else { return Ok(String::new()) };
        let Some(template) = self.request.context.program.side(side).scope.as_deref() else {
            let detail = "a secondary account, and the side that is called has none";
            return Err(GatewayError::new(ErrorKind::AccountUnavailable, detail).safe_to_retry());
        };
        scope_prefix(template, account)
    }

    /// Sends the call and buffers its reply. `share` is memory already reserved for the reply.
    async fn reply(&self, call: &mut Call, share: MemoryShare) -> Result<(Reply, MemoryShare), GatewayError> {
        let limits = &self.composer.limits.bodies;
        let answer = self.composer.calls.send(call).await?;
        let (parts, body) = answer.into_parts();
        let body = strip_coding(
            body,
            &parts.headers,
            ErrorSide::Upstream,
            limits.decode_ratio_max,
            limits.held_bytes_max,
        )?;
        let Buffered { bytes, mut share } = self
            .request
            .context
            .pause(buffer(body, ErrorSide::Upstream, limits.held_bytes_max, share))
            .await?;
        // The tree is reserved before it is parsed: it may be many times larger than the text.
        let tree = tree_nodes_max(&bytes).min(json::Limits::DOCUMENT.nodes) as u64 * TREE_NODE_BYTES;
        if bytes.len() as u64 + tree > share.bytes().max(LIGHT_BYTES_MAX) {
            share.grow(bytes.len() as u64 + tree - share.bytes()).map_err(|Short| limit_error("memory"))?;
        }
        let body = without_mark(bytes);
        Ok((Reply { status: parts.status.as_u16(), headers: parts.headers, body }, share))
    }

    /// Logs an upstream error that did not prevent a response.
    pub(crate) fn note(&self, cause: &str) {
        if self.composer.origin == CallOrigin::Client {
            let KnownRequest { context, client, .. } = &*self.request;
            let (id, operation, client) = (context.id, &**self.request.operation_key(), &*client.name);
            tracing::warn!(request_id = %id, operation, client, cause = %Escaped(cause), "an upstream returned an error that its contract does not declare");
            context.facts().cause.get_or_insert_with(|| cause.to_owned());
        }
    }

    pub(crate) fn response(&self, answer: Answer, reply_headers: &HeaderMap) -> Response {
        let mut response = Response::new(answer.body.map_or_else(Body::empty, Body::full));
        *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY);
        *response.headers_mut() = self.answer_fields(reply_headers, &answer.headers);
        if let Some(Ok(status)) = answer.error.map(StatusCode::from_u16) {
            response.extensions_mut().insert(ErrorStatus(status));
        }
        response
    }

    /// Builds the response fields: a few of the reply's, the gateway's, and the plan's.
    pub(crate) fn answer_fields(&self, reply: &HeaderMap, own: &HeaderMap) -> HeaderMap {
        let mut headers = headers::translated_answer(reply);
        if let Some(vary) = self.request.context.program.vary(self.request.front.serves) {
            headers.insert(header::VARY, vary.clone());
        }
        // A rule of the pack overrides the field copied from the reply.
        if own.contains_key(header::CACHE_CONTROL) {
            headers.remove(header::CACHE_CONTROL);
        }
        for (name, value) in own {
            headers.append(name, value.clone());
        }
        headers
    }

    /// Returns the legacy service for this request, if forwarding is still allowed: no call with an
    /// effect was sent, and the request is not a shadow one.
    fn own_service(&self) -> Option<&Arc<Upstream>> {
        let front = &self.request.front;
        let own = front.own.as_ref().and_then(|own| own.at(self.request.route().operation.host))?;
        let is_client = self.composer.origin == CallOrigin::Client && !self.wrote;
        let may_forward = || self.request.context.program.may_forward(&self.request.client, front.serves);
        (is_client && may_forward()).then_some(own)
    }

    /// Forwards the request unchanged to the legacy service.
    async fn forward(&self, own: &Arc<Upstream>, original: &Bytes) -> Result<Response, GatewayError> {
        let request = self.request.forwarded(Body::full(original.clone()));
        Box::pin(forward(self.composer, Arc::clone(own), request)).await
    }

    /// Handles a request that the plan refuses: forwards it to the legacy service if the refusal
    /// allows that, no effect has occurred and the service is reachable. Otherwise returns the
    /// refusal as an error.
    pub(crate) async fn refuse(&self, refused: Refused, original: &Bytes) -> Result<Response, GatewayError> {
        if refused.refusal.legacy_forward
            && !refused.wrote
            && let Some(own) = self.own_service()
            && own.is_there().await
        {
            return self.forward(own, original).await;
        }
        let settings = self.request.context.program.settings();
        let status = if is_over(&refused.refusal, settings, &self.composer.clock) {
            refused.refusal.after_status
        } else {
            refused.refusal.status
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::NOT_IMPLEMENTED);
        Err(GatewayError::new(ErrorKind::Refused, "the pack refuses this")
            .saying(refused.text)
            .with_status(status))
    }

    pub(crate) fn fault(&self, fault: &Fault) -> GatewayError {
        if fault.kind == FaultKind::Overloaded {
            return limit_error("memory");
        }
        let kind = kind_of(fault.kind);
        if self.composer.origin == CallOrigin::Client
            && matches!(kind, ErrorKind::BadBody | ErrorKind::UpstreamBroken)
        {
            let direction = if kind == ErrorKind::BadBody { "request" } else { "answer" };
            metrics::transform_failed(self.request.operation_key(), direction);
        }
        let error = GatewayError::new(kind, fault.to_string());
        match &fault.headers {
            Some(headers) => error.with_headers(HeaderMap::clone(headers)),
            None => error,
        }
    }
}

/// Owner of a run that drops large state on the pool for heavy work, because deallocating it takes
/// long.
struct RunEnd {
    run: Option<Box<Run>>,
    large: Option<Heavy>,
}

impl Drop for RunEnd {
    fn drop(&mut self) {
        if let (Some(heavy), Some(run)) = (self.large.take(), self.run.take()) {
            heavy.leave(move || drop(run));
        }
    }
}

/// Returns the path prefix of an account, built from the template of its side.
pub(crate) fn scope_prefix(template: &str, account: &str) -> Result<String, GatewayError> {
    let (before, rest) = template.split_once('{').unwrap_or((template, "}"));
    let (_, after) = rest.split_once('}').unwrap_or(("", ""));
    let mut prefix = before.to_owned();
    encode_segment(account, &mut prefix)
        .map_err(|error| GatewayError::new(ErrorKind::Internal, "a client's account").because(error))?;
    Ok(prefix + after)
}

/// Returns whether the refusal's `after_date` has been reached.
fn is_over(refusal: &plan::Refusal, settings: &translate::Settings, clock: &Clock) -> bool {
    let date = match &refusal.after_date {
        None => None,
        Some(plan::AfterDate::Day(day)) => Some(day.clone()),
        Some(plan::AfterDate::Setting(at)) => settings.text(*at),
    };
    let Some(date) = date else { return false };
    let today =
        time::OffsetDateTime::from_unix_timestamp(clock.unix_ms().div_euclid(1000)).map(|now| now.date());
    // Both are ISO 8601 dates, so text order is date order.
    today.is_ok_and(|today| today.to_string() >= date)
}

/// Returns the failure kind for errors that plans can handle.
fn fail_kind(kind: &ErrorKind) -> Option<FailKind> {
    match kind {
        ErrorKind::UpstreamUnreachable => Some(FailKind::Unreachable),
        ErrorKind::UpstreamTimeout => Some(FailKind::Timeout),
        ErrorKind::UpstreamClosed => Some(FailKind::Closed),
        ErrorKind::UpstreamBroken => Some(FailKind::Broken),
        _ => None,
    }
}

/// Returns the client-facing error kind of a fault.
pub(super) fn kind_of(kind: FaultKind) -> ErrorKind {
    match kind {
        FaultKind::BadRequest => ErrorKind::BadRequest,
        FaultKind::BadCursor => ErrorKind::BadCursor,
        FaultKind::BadPage => ErrorKind::BadPage,
        FaultKind::BadBody => ErrorKind::BadBody,
        FaultKind::TooLarge => ErrorKind::TooLarge,
        FaultKind::UnsupportedMedia => ErrorKind::UnsupportedMedia,
        FaultKind::NotFound => ErrorKind::NotFound,
        FaultKind::UpstreamUnreachable => ErrorKind::UpstreamUnreachable,
        FaultKind::UpstreamTimeout => ErrorKind::UpstreamTimeout,
        FaultKind::UpstreamClosed => ErrorKind::UpstreamClosed,
        FaultKind::UpstreamBroken => ErrorKind::UpstreamBroken,
        FaultKind::Overloaded => ErrorKind::Overloaded { retry_after: RETRY_AFTER },
        FaultKind::Internal => ErrorKind::Internal,
    }
}
