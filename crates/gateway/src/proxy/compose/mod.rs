//! Answers a request by its plan: buffers the body, runs the plan's state machine, performs its
//! calls and builds the response. Decisions belong to the plan; this module executes them.
//!
//! A request with effects completes even if its client disconnects, because a partial effect is
//! worse than an unread response. A request without effects is cancelled with its client; so is
//! waiting after all effects of a request are done.
//!
//! Rare paths (runs of several calls, forwarding) are boxed, so that the future of a common request
//! stays small.

mod archive;
pub mod buffered;
pub(crate) mod coding;
mod composer;
mod converted;
mod cursors;
pub(crate) mod exchange;
mod finish;
pub(crate) mod forward;
mod pages;
mod pair;
mod parts;
pub(crate) mod resume;
mod wait;

use self::buffered::{Buffered, buffer, buffer_request};
use self::coding::strip_coding;
pub(crate) use self::composer::Composer;
pub(crate) use self::cursors::CursorCache;
use self::exchange::{Exchange, TREE_NODE_BYTES, tree_nodes_max};
use self::finish::Finishing;
use crate::body::{Body, BodyStart};
use crate::error::{ErrorSide, GatewayError};
use crate::proxy::Response;
use crate::proxy::limits::BodyLimits;
use crate::proxy::request::KnownRequest;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header;
use std::sync::Arc;
use switchback_engine::translate;
use switchback_engine::translate::paging::Pages;
use switchback_engine::translate::parts::HELD_TIMES;
use switchback_json as json;
use switchback_plan::{BodyFormat, BodyPlan, Effect, MultipartFormat, Pair, Route, RouteKind};

/// Answers `request` by the plan of its operation.
pub(crate) fn answer(
    composer: Arc<Composer>,
    request: Arc<KnownRequest>,
    body: Body,
) -> BoxFuture<'static, Result<Response, GatewayError>> {
    let effect = request.route().operation.effect;
    let detached = composer.detached.clone();
    let of_work = Arc::clone(&request);
    let work: BoxFuture<'static, _> = match body.is_empty() {
        true => {
            let nothing = Buffered::empty(&composer.memory);
            Box::pin(compose(composer, of_work, nothing, None))
        }
        false if is_passed(&composer, &of_work, &body) => Box::pin(stream_request(composer, of_work, body)),
        false if has_parts(&composer, &of_work, &body) => Box::pin(in_parts(composer, of_work, body)),
        false => Box::pin(with_body(composer, of_work, body)),
    };
    match effect {
        Effect::None => work,
        Effect::Write => Box::pin(Finishing::new(work, request, &detached)),
    }
}

/// Returns the pair that streams the request body through unchanged.
fn passing(request: &KnownRequest) -> Option<(&Route, &Pair)> {
    let route = request.route();
    match &route.kind {
        RouteKind::Pair(pair)
            if pair.request.is_some() && pair.call.format.is_opaque() && !route.has_encoded_answers() =>
        {
            Some((route, pair))
        }
        _ => None,
    }
}

/// Returns the pair that maps the fields of a multipart request.
fn mapping_parts(request: &KnownRequest) -> Option<(&Route, &Pair, &Arc<MultipartFormat>, &BodyPlan)> {
    let route = request.route();
    match (&route.kind, &route.operation.format) {
        (RouteKind::Pair(pair), BodyFormat::Multipart(format)) => {
            Some((route, pair, format, pair.request.as_ref()?))
        }
        _ => None,
    }
}

/// Returns whether the files of a multipart body are streamed. Small bodies are buffered, so that
/// the call can be retried, and so are bodies of routes that need a run for their response.
fn has_parts(composer: &Composer, request: &KnownRequest, body: &Body) -> bool {
    let is_small = body.length().is_some_and(|length| length <= composer.limits.bodies.whole_bytes_max);
    !is_small
        && mapping_parts(request).is_some_and(|(route, pair, ..)| {
            route.paging.is_none()
                && !route.has_encoded_answers()
                && translate::head::refused_parameter(&pair.refused, request.query()).is_none()
        })
}

/// Maps the fields of a multipart body and streams its files.
async fn in_parts(
    composer: Arc<Composer>,
    request: Arc<KnownRequest>,
    body: Body,
) -> Result<Response, GatewayError> {
    let (limits, bytes_max) = (&composer.limits.bodies, request.limits().forwarded_bytes_max);
    // Treat an empty body as absent, whether or not its length was announced.
    let BodyStart::Longer(body) = body.with_limit(bytes_max).beginning(0).await? else {
        let nothing = Buffered::empty(&composer.memory);
        return Box::pin(compose(composer, request, nothing, None)).await;
    };
    let body =
        strip_coding(body, &request.context.headers, ErrorSide::Client, limits.decode_ratio_max, bytes_max)?;
    let mut exchange = Exchange::new(&composer, Arc::clone(&request));
    let (route, pair, format, plan) = mapping_parts(&request).expect("it was asked whether there is one");
    let json = json_limits(limits, request.limits().request_bytes_max, route);
    Box::pin(exchange.in_parts(route, pair, (format, &plan.op), json, body)).await
}

/// Returns whether the request body is streamed. A small body is buffered, so that its call can be
/// retried; so is one that the pack refuses, because it may be forwarded to the legacy service.
fn is_passed(composer: &Composer, request: &KnownRequest, body: &Body) -> bool {
    let is_small = body.length().is_some_and(|length| length <= composer.limits.bodies.whole_bytes_max);
    passing(request).is_some_and(|(_, pair)| {
        !is_small && translate::head::refused_parameter(&pair.refused, request.query()).is_none()
    })
}

/// Streams the request body to the call.
async fn stream_request(
    composer: Arc<Composer>,
    request: Arc<KnownRequest>,
    body: Body,
) -> Result<Response, GatewayError> {
    let mut exchange = Exchange::new(&composer, Arc::clone(&request));
    let (route, pair) = passing(&request).expect("it was asked whether there is one");
    exchange.stream_pair(route, pair, body.with_limit(request.limits().forwarded_bytes_max)).await
}

/// Buffers the request body first. A separate function, because most requests have no body and need
/// no room for this state.
async fn with_body(
    composer: Arc<Composer>,
    request: Arc<KnownRequest>,
    body: Body,
) -> Result<Response, GatewayError> {
    let waits = request.context.headers.contains_key(header::EXPECT);
    let reading = buffer_request(body, request.limits().request_bytes_max, composer.memory.share(), waits);
    let raw = request.context.pause(reading).await?;
    // A streamed format retains its content coding.
    let is_coded = request.context.headers.contains_key(header::CONTENT_ENCODING)
        && !raw.bytes.is_empty()
        && passing(&request).is_none();
    let plain = match is_coded {
        true => Some(Box::pin(decode_body(&composer, &request, &raw.bytes)).await?),
        false => None,
    };
    compose(composer, request, raw, plain).await
}

/// Composes the response. `raw` is the body as received and `plain` the decoded body, if it had a
/// content coding. Both stay reserved until the request finishes.
async fn compose(
    composer: Arc<Composer>,
    request: Arc<KnownRequest>,
    raw: Buffered,
    plain: Option<Buffered>,
) -> Result<Response, GatewayError> {
    let limits = &composer.limits.bodies;
    let known = Arc::clone(&request);
    let route = known.route();
    let limits = json_limits(limits, request.limits().request_bytes_max, route);
    let text = plain.as_ref().unwrap_or(&raw).bytes.clone();
    let text = request.without_form_token(text);
    let worked = worked_bytes(route, &text, &limits);
    let mut exchange = Exchange::new(&composer, request);
    exchange.worked += text.len() as u64;
    let run = |exchange: &Exchange<'_>| {
        Box::new(exchange.request.run(text.clone(), limits).with_salt(fastrand::u64(..)))
    };
    // Reserve before the run parses the body, so that an overload is reported before memory is
    // allocated.
    exchange.take(worked)?;
    if let Some(paging) = &route.paging {
        let pages: Arc<dyn Pages> = exchange.pages()?;
        // A list streams only if its paging can be decided from the heads. All other lists need a
        // run.
        let streams = match &route.kind {
            RouteKind::Pair(pair) => {
                let is_plain = pair.request.is_none() && pair.refused.is_empty() && pair.constants.is_empty();
                is_plain && !paging.reads_body() && !route.has_encoded_answers()
            }
            RouteKind::Serve(_) | RouteKind::Refuse(_) => false,
        };
        if !streams {
            let run = Box::new(run(&exchange).with_pages(pages));
            return Box::pin(exchange.drive(run, &raw.bytes)).await;
        }
        exchange.page(route, paging, pages)?;
    }
    match &route.kind {
        RouteKind::Pair(pair) if !route.has_encoded_answers() => {
            // Most pairs need no run; skip copying the request for one.
            exchange.pair(route, pair, text, limits, &raw.bytes).await
        }
        RouteKind::Pair(_) | RouteKind::Serve(_) | RouteKind::Refuse(_) => {
            let run = run(&exchange);
            Box::pin(exchange.drive(run, &raw.bytes)).await
        }
    }
}

/// Returns the JSON limits of a route. The bodies of pairs are translated as a stream, so the
/// number of their values needs no limit of its own. Routes of several calls build trees, which
/// take several times the size of the text.
fn json_limits(limits: &BodyLimits, request_bytes_max: u64, route: &Route) -> json::Limits {
    let is_held = route.paging.as_ref().is_some_and(|paging| paging.reads_body());
    let is_pair = matches!(route.kind, RouteKind::Pair(_)) && !is_held;
    let base = if is_pair { json::Limits::STREAM } else { json::Limits::DOCUMENT };
    // Scalars need no limit of their own: the limit of the whole buffered body covers them.
    let (depth, scalar_bytes) = (limits.depth_max, usize::MAX);
    json::Limits { nodes: base.nodes.min(limits.request_values_max), depth, scalar_bytes, ..base }
        .with_members(limits.object_members_max)
        .with_total_bytes(limits.held_bytes_max.max(request_bytes_max))
}

/// Decodes the content coding of the request body.
async fn decode_body(
    composer: &Composer,
    request: &KnownRequest,
    raw: &Bytes,
) -> Result<Buffered, GatewayError> {
    let bytes_max = request.limits().request_bytes_max;
    let body = strip_coding(
        Body::full(raw.clone()),
        &request.context.headers,
        ErrorSide::Client,
        composer.limits.bodies.decode_ratio_max,
        bytes_max,
    )?;
    buffer(body, ErrorSide::Client, bytes_max, composer.memory.share()).await
}

/// Returns the memory that a plan needs for a body of this text, in addition to the text: the
/// output of a pair or the tree of a route.
fn worked_bytes(route: &Route, text: &[u8], limits: &json::Limits) -> u64 {
    let length = text.len() as u64;
    match &route.kind {
        // All parts may be fields, which are buffered.
        RouteKind::Pair(_) if matches!(route.operation.format, BodyFormat::Multipart(_)) => {
            length * HELD_TIMES as u64
        }
        // The output is slightly longer than the input.
        RouteKind::Pair(_) => length + length / 4,
        RouteKind::Serve(_) | RouteKind::Refuse(_) => {
            length + tree_nodes_max(text).min(limits.nodes) as u64 * TREE_NODE_BYTES
        }
    }
}
