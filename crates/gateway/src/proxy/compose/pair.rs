//! Responses of pairs: one call, whose response body streams through its plan. `compose` contains
//! the code shared with routes of several calls.

use super::buffered::buffer;
use super::coding::{strip_coding, without_mark};
use super::converted::{convert, converted_whole};
use super::exchange::Exchange;
use crate::body::Body;
use crate::error::{ErrorKind, ErrorSide, GatewayError};
use crate::heavy::LIGHT_BYTES_MAX;
use crate::proxy::Response;
use crate::proxy::calls::call::Payload;
use crate::proxy::error_form::ErrorStatus;
use crate::proxy::origin::CallOrigin;
use crate::proxy::request::KnownRequest;
use crate::telemetry::metrics;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::sync::Arc;
use switchback_engine::translate::stream::{Bounds, Transcoder};
use switchback_engine::translate::{
    self, ErrorTranslator, Fault, FaultKind, Next, PairHeads, Reply, RequestHead, body_type, foreign_success,
    head, is_foreign_type, is_usable_redirect, redirect, unlisted_part,
};
use switchback_json as json;
use switchback_plan::{BodyFormat, ErrorPlan, Origin, Pair, ResponseBody, Route, RouteKind};

/// Maximum bytes of an ignored body to read so that its connection can be reused.
const DRAINED_BYTES_MAX: u64 = 256 * 1024;

impl Exchange<'_> {
    /// Answers by a pair: performs one call and translates the response body as it arrives.
    pub(crate) async fn pair(
        &mut self,
        route: &Route,
        pair: &Pair,
        text: Bytes,
        limits: json::Limits,
        original: &Bytes,
    ) -> Result<Response, GatewayError> {
        let next = self.called(text, limits).await?;
        let call = match next.map_err(|fault| self.fault(&fault))? {
            Next::Call(call) => call,
            Next::Refuse(refused) => return Box::pin(self.refuse(refused, original)).await,
            Next::Answer(_) | Next::Recall(_) | Next::Keep(_) | Next::Wait(_) => {
                return Err(GatewayError::new(ErrorKind::Internal, "a pair begins with its call"));
            }
        };
        let call = match &self.pager {
            Some(pager) => {
                let target = pager.target(&call.target).map_err(|fault| self.fault(&fault))?;
                translate::Call { target, ..call }
            }
            None => call,
        };
        let mut call = Box::new(self.outgoing(call)?);
        let reply = self.composer.calls.send(&mut call).await?;
        drop(call);
        let (head, body) = reply.into_parts();
        let mut answer = self.pair_answer(route, pair, &head, body).await?;
        if let Some(mut pager) = self.pager.take()
            && head.status.is_success()
        {
            let told = pager.head(&head.headers).and_then(|()| pager.tell_head(answer.headers_mut()));
            told.map_err(|fault| self.fault(&fault))?;
        }
        Ok(answer)
    }

    /// Answers by a pair whose request body is streamed. The body is not buffered, so the call
    /// cannot be retried.
    pub(crate) async fn stream_pair(
        &mut self,
        route: &Route,
        pair: &Pair,
        body: Body,
    ) -> Result<Response, GatewayError> {
        let call = translate::head::wrong_constant(&pair.constants, self.request.query())
            .and_then(|()| self.call_head(route, pair))
            .map_err(|fault| self.fault(&fault))?;
        let mut call = Box::new(self.outgoing(call)?);
        call.payload = Payload::Stream(body);
        let reply = self.composer.calls.send(&mut call).await?;
        drop(call);
        let (head, body) = reply.into_parts();
        self.pair_answer(route, pair, &head, body).await
    }

    /// Builds the call of the matched pair: on this thread if the body is small, otherwise on a thread
    /// for heavy work.
    async fn called(
        &mut self,
        text: Bytes,
        limits: json::Limits,
    ) -> Result<Result<Next, Fault>, GatewayError> {
        let request = Arc::clone(&self.request);
        // The reservations move with the work, which uses the memory until it finishes, even if the
        // client disconnects meanwhile.
        let shares = std::mem::take(&mut self.shares);
        let work = move || {
            let (served, route) = (request.front.serves, request.route());
            let next = match &route.kind {
                RouteKind::Pair(pair) => {
                    heads(&request, route).next(served, pair, &text, &limits, fastrand::u64(..))
                }
                RouteKind::Serve(_) | RouteKind::Refuse(_) => {
                    Err(Fault::new(FaultKind::Internal, "a route of several calls has no one call"))
                }
            };
            (next, shares)
        };
        // Boxed, so that the future of small bodies stays small.
        let (next, shares) = match self.worked <= LIGHT_BYTES_MAX {
            true => work(),
            false => Box::pin(self.run_heavy(self.worked, work)).await?,
        };
        self.shares = shares;
        Ok(next)
    }

    /// Builds the call of a pair whose body is streamed unchanged.
    fn call_head(&self, route: &Route, pair: &Pair) -> Result<translate::Call, Fault> {
        let (heads, head) = (heads(&self.request, route), &pair.call);
        Ok(translate::Call {
            step: 0,
            operation: Arc::clone(&head.operation),
            host: head.host,
            method: head.method.clone(),
            target: heads.target(head)?,
            headers: {
                let mut headers = heads.call_headers(head)?;
                translate::passed::headers(pair, &self.request.context.headers, true, &mut headers)?;
                headers
            },
            body: None,
            effect: head.effect,
            repeatable: head.repeatable,
            is_read: true,
            resume_key: None,
        })
    }

    pub(super) async fn pair_answer(
        &self,
        route: &Route,
        pair: &Pair,
        parts: &http::response::Parts,
        body: Body,
    ) -> Result<Response, GatewayError> {
        let limits = &self.composer.limits;
        let response_bytes_max = self.request.limits().calls.response_bytes_max;
        let status = parts.status.as_u16();
        if let Some(detail) = unlisted_part(status, &pair.call) {
            return Err(foreign(detail, route));
        }
        let at = pair.responses.iter().position(|response| response.from.matches(status));
        let at =
            at.ok_or_else(|| GatewayError::new(ErrorKind::UpstreamBroken, "a status that no rule is for"))?;
        let response = &pair.responses[at];
        let heads = heads(&self.request, route);
        let mut own =
            heads.answer_headers(response, status, &parts.headers).map_err(|fault| self.fault(&fault))?;
        let body = match &response.body {
            ResponseBody::Empty | ResponseBody::Undescribed
                if parts.status.is_redirection() && !self.can_follow(pair, status, &own) =>
            {
                return Err(foreign(&redirect(status, &parts.headers), route));
            }
            // The body of a redirect is a note for humans (RFC 9110, section 15.4).
            ResponseBody::Empty if parts.status.is_redirection() => Body::empty(),
            ResponseBody::Empty => {
                if !body.is_empty() {
                    Box::pin(self.drain_response(route, &parts.headers, body)).await?;
                }
                Body::empty()
            }
            ResponseBody::Plan(_) => {
                let (ratio_max, bytes_max) = (limits.bodies.decode_ratio_max, response_bytes_max);
                let body = strip_coding(body, &parts.headers, ErrorSide::Upstream, ratio_max, bytes_max)?;
                let body = match self.at_once(body, at, &route.origin) {
                    Ok(body) => body,
                    // Boxed: most bodies are complete by now, so the common future has no room for
                    // waiting.
                    Err(body) => {
                        let transcoder = Box::new(self.transcoder(at));
                        let waited = |time| self.request.context.record.add_pause(time);
                        let whole_bytes_max = limits.bodies.whole_bytes_max;
                        Box::pin(convert(body, transcoder, whole_bytes_max, &route.origin, waited)).await
                    }
                };
                body.map_err(|error| self.translation_error(error, &parts.headers))?
            }
            ResponseBody::Opaque(media) => {
                translate::passed::answer(media, &parts.headers, body.is_empty(), &mut own)
                    .map_err(|failed| foreign(&failed.detail, route))?;
                body.with_limit(response_bytes_max)
            }
            ResponseBody::Undescribed => {
                translate::passed::undescribed(&parts.headers, &mut own);
                body.with_limit(response_bytes_max)
            }
            // A status below 400 without a rule is sent only by servers outside the contract.
            ResponseBody::Error(_) if status < 400 => {
                return Err(foreign(&redirect(status, &parts.headers), route));
            }
            ResponseBody::Error(plan) => Box::pin(self.error_words(route, plan, parts, body)).await?,
        };
        let mut answer = Response::new(body);
        *answer.status_mut() =
            StatusCode::from_u16(head::status(response.to, status)).unwrap_or(StatusCode::BAD_GATEWAY);
        *answer.headers_mut() = self.answer_fields(&parts.headers, &own);
        let is_passed = matches!(response.body, ResponseBody::Opaque(_) | ResponseBody::Undescribed);
        if !is_passed && !answer.body().is_empty() && !answer.headers().contains_key(header::CONTENT_TYPE) {
            let is_error = matches!(response.body, ResponseBody::Error(_));
            let json = HeaderValue::from_static(BodyFormat::JSON);
            let errors = self.request.context.program.errors(self.request.front.serves);
            let kind = if is_error { errors.content_type().clone() } else { json };
            answer.headers_mut().insert(header::CONTENT_TYPE, kind);
        }
        if matches!(response.body, ResponseBody::Error(_)) {
            let errors = self.request.context.program.errors(self.request.front.serves);
            let status = answer.status();
            if let Some(answered) = errors.answered_otherwise(status) {
                *answer.status_mut() = answered;
                answer.extensions_mut().insert(ErrorStatus(status));
            }
        }
        Ok(answer)
    }

    /// Returns whether the client can follow a redirect with these header fields.
    fn can_follow(&self, pair: &Pair, status: u16, answer: &HeaderMap) -> bool {
        let upstreams = self.request.front.upstreams_for(self.composer.origin);
        let upstream = upstreams.and_then(|upstreams| upstreams.at(pair.call.host));
        is_usable_redirect(status, answer, upstream.map(|upstream| upstream.authority().host()))
    }

    /// Translates a body that is complete in memory, or returns the body otherwise.
    fn at_once(&self, mut body: Body, at: usize, line: &Origin) -> Result<Result<Body, GatewayError>, Body> {
        let whole = body.take_whole(self.composer.limits.bodies.whole_bytes_max).ok_or(body)?;
        Ok(whole.and_then(|whole| converted_whole(whole, self.transcoder(at), line)))
    }

    /// Returns the body of an error response. An unreadable upstream body is treated as empty, so
    /// that the client still receives the status.
    async fn error_words(
        &self,
        route: &Route,
        plan: &ErrorPlan,
        parts: &http::response::Parts,
        body: Body,
    ) -> Result<Body, GatewayError> {
        let body = self.words(&parts.headers, body).await.unwrap_or_else(|error| {
            if error.is_unanswered() {
                self.request.context.record.set_unanswered();
            }
            Bytes::new()
        });
        let context = &self.request.context;
        let reply = Reply { status: parts.status.as_u16(), headers: parts.headers.clone(), body };
        let translator = ErrorTranslator {
            pack: context.program.pack(),
            served: self.request.front.serves,
            settings: context.program.settings(),
            language: context.language.0,
            limits: &switchback_json::Limits::DOCUMENT,
        };
        let answer = translator
            .answer(&plan.body.op, plan.declared.as_deref(), &reply)
            .map_err(|failed| foreign(&failed.detail, route))?;
        if let Some(detail) = answer.foreign {
            self.note(&format!("{detail} ({}:{})", route.origin.file, route.origin.line));
        }
        Ok(Body::full(answer.body))
    }

    /// Drains an ignored body so that its connection can be reused, up to [`DRAINED_BYTES_MAX`]. A
    /// body that breaks off is not an error: the head reported success, and an error would make the
    /// client repeat the operation. A response outside the contract is an error, because its sender
    /// cannot have performed the operation.
    async fn drain_response(
        &self,
        route: &Route,
        headers: &HeaderMap,
        mut body: Body,
    ) -> Result<(), GatewayError> {
        let needs_all = is_foreign_type(headers, self.json_types());
        let mut seen = BytesMut::new();
        let mut read = 0;
        while let Some(Ok(chunk)) = body.chunk().await {
            if needs_all || seen.is_empty() {
                seen.extend_from_slice(&chunk);
            }
            read += chunk.len() as u64;
            if read > DRAINED_BYTES_MAX {
                break;
            }
        }
        match foreign_success(headers, self.json_types(), &seen) {
            Some(detail) => Err(foreign(&detail, route)),
            None => Ok(()),
        }
    }

    /// Adds the media type to a translation error if it is unexpected. It is more useful to an
    /// operator than the position of the JSON error.
    fn translation_error(&self, error: GatewayError, headers: &HeaderMap) -> GatewayError {
        self.count_failure();
        if is_foreign_type(headers, self.json_types()) {
            error.at(&format!("reading {}", body_type(headers)))
        } else {
            error
        }
    }

    /// Returns the transcoder for the pair's response at index `at`.
    fn transcoder(&self, at: usize) -> Transcoder {
        let (program, limits) = (&self.request.context.program, &self.composer.limits.bodies);
        Transcoder::new(
            program.transcoder(self.request.front.serves, self.request.operation.route, at),
            Arc::clone(program.values()),
            Bounds {
                json: json::Limits {
                    members: limits.object_members_max,
                    depth: limits.depth_max,
                    scalar_bytes: limits.scalar_bytes_max,
                    ..json::Limits::STREAM
                },
                ..Bounds::default()
            },
        )
    }

    fn count_failure(&self) {
        if self.composer.origin == CallOrigin::Client {
            metrics::transform_failed(self.request.operation_key(), "answer");
        }
    }

    async fn words(&self, headers: &HeaderMap, body: Body) -> Result<bytes::Bytes, GatewayError> {
        let limits = &self.composer.limits.bodies;
        let body =
            strip_coding(body, headers, ErrorSide::Upstream, limits.decode_ratio_max, limits.held_bytes_max)?;
        let share = self.composer.memory.share();
        let reading = buffer(body, ErrorSide::Upstream, limits.held_bytes_max, share);
        let held = self.request.context.pause(reading).await?;
        Ok(without_mark(held.bytes))
    }
}

/// The heads of a request by a pair.
fn heads<'h>(request: &'h KnownRequest, route: &'h Route) -> PairHeads<'h> {
    let context = &request.context;
    PairHeads {
        pack: context.program.pack(),
        route,
        settings: context.program.settings(),
        language: context.language.0,
        request: RequestHead {
            path: &request.operation.values,
            query: request.query(),
            headers: &context.headers,
        },
    }
}

/// Returns the error for a response that does not match the contract.
fn foreign(detail: &str, route: &Route) -> GatewayError {
    let Origin { file, line } = &route.origin;
    GatewayError::new(ErrorKind::UpstreamBroken, format!("{detail} ({file}:{line})"))
}
