//! Records traffic while a capture is open, and the messages of sampled requests. The layer is near
//! the outside of the stack, so it records what the client sees. Without a capture, the cost for a
//! request that is not sampled is a few atomic loads. Calls to upstreams are recorded in
//! `calls/record.rs`.

use super::ending::ResponseEnd;
use super::middleware::{Before, Middleware};
use crate::body::Copier;
use crate::capture::{Head, Recording, Redaction, Tap};
use crate::proxy::context::RequestContext;
use crate::proxy::{Request, Response};
use crate::recent::{RecentRequests, RecordingSlot, SampleMessages};
use http::header;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchback_engine::har::Exchange;

/// Starts and finishes the recording of a request.
#[derive(Clone)]
pub(crate) struct RecordLayer {
    pub tap: Tap,
    pub recent: RecentRequests,
}

/// A recording in progress, with the context of its request.
pub(crate) struct Watched {
    recording: Arc<Recording>,
    context: Arc<RequestContext>,
}

impl Middleware<Request> for RecordLayer {
    type Inward = Request;
    type Kept = Option<Watched>;
    type Fault = Infallible;

    fn before(&self, mut request: Request) -> Before<Self, Request> {
        let slot = self.recent.admit(request.context.arrived);
        if slot.is_some() {
            request.context.record.set_sampled();
        }
        let recording = match (self.tap.take(fastrand::f64), slot) {
            // An open capture takes precedence: a request has one recording.
            (Some(capture), _) => Recording::new(capture),
            (None, Some(slot)) if slot.has_room() => sampled_recording(&request.context, slot),
            (None, _) => return ControlFlow::Continue((request, None)),
        };
        let recording = Arc::new(recording);
        let context = Arc::clone(&request.context);
        context.facts().recording = Some(Arc::clone(&recording));
        let watched = Watched { recording: Arc::clone(&recording), context };
        let bytes_max = recording.body_bytes_max();
        let copier = Copier::new(bytes_max, move |copied| recording.request_body(copied));
        request.body.watch(Box::new(copier));
        ControlFlow::Continue((request, Some(watched)))
    }

    fn after(watched: Option<Watched>, response: &mut Response) {
        if let Some(watched) = watched {
            watch(watched, response);
        }
    }
}

/// Maximum number of bytes of a sampled body. A longer one is not recorded, because a part of a
/// JSON text cannot be masked.
const SAMPLED_BODY_BYTES_MAX: usize = 4 << 10;

#[cold]
fn sampled_recording(context: &RequestContext, slot: RecordingSlot) -> Recording {
    let (id, program) = (context.id, Arc::clone(&context.program));
    let deliver = move |exchange: Exchange| {
        let masked = Redaction::new(program.pack(), slot.salt()).redact(&exchange);
        slot.add(&id.to_string(), SampleMessages::new(masked));
    };
    Recording::for_sample(SAMPLED_BODY_BYTES_MAX, Box::new(deliver))
}

fn watch(watched: Watched, response: &mut Response) {
    let Watched { recording, context } = watched;
    let (status, answer_headers) = (response.status().as_u16(), response.headers().clone());
    let bytes_max = recording.body_bytes_max();
    let mut ending = ResponseEnd::default();
    ending.on_response(response);
    let copier = Copier::new(bytes_max, move |copied| {
        ending.on_end(copied.end);
        // Only requests of a front belong to a side; others are discarded.
        let facts = context.facts();
        let Some(front) = &facts.front else { return };
        let target = context.uri.path_and_query().map_or("/", |target| target.as_str());
        let head = Head {
            method: &context.method,
            url: url(&context),
            headers: &context.headers,
            side: facts.side(),
            target: target.get(front.prefix.len()..).unwrap_or("/"),
            operation: facts.operation(),
            client: facts.client(),
            language: context.language.0,
            outcome: ending.outcome(&facts).as_str(),
            status,
            answer_headers: &answer_headers,
        };
        recording.finish(&head, copied);
    });
    response.body_mut().watch(Box::new(copier));
}

/// Returns the absolute URL of a request, as HAR files require it.
fn url(context: &RequestContext) -> String {
    if context.uri.scheme().is_some() {
        return context.uri.to_string();
    }
    let host = context.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    format!("http://{host}{}", context.uri)
}
