//! Adds an ended request to the sample of recent requests, if one is due. Texts are masked by the
//! rules of captures before they are stored.

use super::ending::EndedRequest;
use crate::capture::{Redaction, fields};
use crate::proxy::facts::RequestFacts;
use crate::proxy::record::CallTrace;
use crate::recent::{CallSample, RecentRequests, RequestSample, SampleEnd, SampleTimes, micros};
use http::{Method, Version, header};
use switchback_engine::har;

/// Maximum number of bytes of a stored path. A longer one is cut.
const PATH_BYTES_MAX: usize = 1024;

/// Counts a request, and samples it if that is due.
pub(super) fn record(ended: &EndedRequest<'_>, recent: &RecentRequests) {
    let EndedRequest { facts, ending, .. } = ended;
    if !recent.is_on() {
        return;
    }
    let is_answered = ending.outcome(facts).is_answered();
    let is_failure = !is_answered || ending.sent().is_none_or(|status| status >= 400);
    let is_sampled = facts.context.record.is_sampled();
    if let Some(permit) = recent.count(facts.context.arrived + ended.took, is_failure, is_sampled) {
        permit.add(sample(ended, recent));
    }
}

#[cold]
fn sample(ended: &EndedRequest<'_>, recent: &RecentRequests) -> RequestSample {
    let EndedRequest { facts, ending, .. } = ended;
    let context = facts.context;
    let masked = mask_heads(facts, recent);
    let gateway = masked.gateway.unwrap_or_default();
    let path = match &facts.front {
        Some(front) => format!("{}{}", front.prefix, gateway.target),
        None => masked.request.url,
    };
    let listed: u32 = facts.calls.iter().map(|call| call.attempts).sum();
    let took_ms = i64::try_from(ended.took.as_millis()).unwrap_or(i64::MAX);
    let mut translated = gateway.calls.into_iter();
    let calls = facts.calls.iter().map(|call| {
        let target = if call.side.is_some() { translated.next() } else { None };
        let target = target.map_or_else(|| gateway.target.clone(), |exchange| exchange.request.url);
        call_sample(facts, call, target)
    });
    RequestSample {
        id: context.id.to_string(),
        at_ms: recent.now_ms().saturating_sub(took_ms),
        client: facts.client().to_owned(),
        side: facts.side().to_owned(),
        operation: facts.operation().to_owned(),
        calls: calls.collect(),
        method: masked.request.method,
        path: cut(path),
        phase: facts.phase.to_owned(),
        end: SampleEnd {
            status: ending.sent(),
            outcome: ending.outcome(facts).as_str().to_owned(),
            error: facts.error.as_ref().map_or("", |error| error.kind).to_owned(),
            answered_by: facts.answered_by().to_owned(),
            bytes_in: request_bytes(facts),
            bytes_out: ended.body_bytes,
        },
        times: SampleTimes {
            took_us: micros(ended.took),
            head_us: ended.head.map(micros),
            waited_us: micros(context.record.upstream_wait()),
            paused_us: micros(context.record.pauses()),
        },
        attempts_left_out: context.record.calls().saturating_sub(listed),
    }
}

fn call_sample(facts: &RequestFacts<'_>, call: &CallTrace, target: String) -> CallSample {
    let arrived = facts.context.arrived;
    let side = call.side.map_or(facts.side(), |side| &facts.context.program.side(side).name);
    CallSample {
        start_us: call.times.map(|(start, _)| micros(start.saturating_duration_since(arrived))),
        took_us: call.times.map(|(start, end)| micros(end.saturating_duration_since(start))),
        side: side.to_owned(),
        method: method(&call.method),
        path: cut(target),
        status: call.outcome.ok(),
        error: call.outcome.err().unwrap_or_default().to_owned(),
        attempts: call.attempts,
    }
}

/// Returns the heads of the request and of its translated calls, masked. The credential of the
/// request is masked in all of them.
fn mask_heads(facts: &RequestFacts<'_>, recent: &RecentRequests) -> har::Exchange {
    let context = facts.context;
    let target = context.uri.path_and_query().map_or("/", |target| target.as_str());
    let head = |method: &Method, url: &str| har::Request {
        method: method.to_string(),
        url: url.to_owned(),
        ..har::Request::default()
    };
    let calls = facts.calls.iter().filter(|call| call.side.is_some());
    let calls = calls
        .map(|call| har::Exchange { request: head(&call.method, &call.target), ..har::Exchange::default() });
    let gateway = facts.front.as_ref().map(|front| har::Gateway {
        side: facts.side().to_owned(),
        target: target.get(front.prefix.len()..).unwrap_or("/").to_owned(),
        calls: calls.collect(),
        ..har::Gateway::default()
    });
    let request = har::Request { headers: fields(&context.headers), ..head(&context.method, target) };
    let exchange = har::Exchange { request, gateway, ..har::Exchange::default() };
    Redaction::new(context.program.pack(), recent.salt()).redact(&exchange)
}

/// Returns the length of the request body, if the head of the request determines it (RFC 9112,
/// section 6.3).
fn request_bytes(facts: &RequestFacts<'_>) -> Option<u64> {
    let context = facts.context;
    if let Some(length) = context.headers.get(header::CONTENT_LENGTH) {
        return length.to_str().ok()?.parse().ok();
    }
    // HTTP/2 delimits a body by its stream.
    let has_none =
        context.version != Version::HTTP_2 && !context.headers.contains_key(header::TRANSFER_ENCODING);
    has_none.then_some(0)
}

/// Returns a standard method, or `OTHER`: a custom one may be any text.
fn method(method: &Method) -> String {
    crate::proxy::unknown_calls::registered_method(method).unwrap_or("OTHER").to_owned()
}

fn cut(mut path: String) -> String {
    if path.len() > PATH_BYTES_MAX {
        let end = (0..=PATH_BYTES_MAX).rev().find(|at| path.is_char_boundary(*at)).unwrap_or_default();
        path.truncate(end);
        path.push('…');
    }
    path.shrink_to_fit();
    path
}
