//! Watches traffic for a capture, around everything, and so sees what the client sees. While no capture is open it reads one
//! word of memory. The calls between are watched in `calls/record.rs`.

use super::after::{After, Finish};
use crate::body::Copier;
use crate::capture::{Head, Recording, Tap};
use crate::proxy::context::Facts;
use crate::proxy::{Request, Response};
use http::header;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// Begins and ends recordings.
#[derive(Clone)]
pub struct RecordLayer {
    tap: Tap,
}

impl RecordLayer {
    pub fn new(tap: Tap) -> RecordLayer {
        RecordLayer { tap }
    }
}

impl<S> Layer<S> for RecordLayer {
    type Service = Record<S>;

    fn layer(&self, inner: S) -> Record<S> {
        Record { inner, tap: self.tap.clone() }
    }
}

#[derive(Clone)]
pub struct Record<S> {
    inner: S,
    tap: Tap,
}

/// What is needed when the answer comes.
pub struct Watched {
    recording: Arc<Recording>,
    facts: Arc<Facts>,
}

type Outcome = Result<Response, Infallible>;

impl<S> Service<Request> for Record<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = After<S::Future, Option<Watched>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let Some(capture) = self.tap.take(fastrand::f64) else {
            return After::wait(self.inner.call(request), None);
        };
        let recording = Arc::new(Recording::new(capture));
        let facts = Arc::clone(&request.facts);
        facts.set_recording(Arc::clone(&recording));
        let watched = Watched { recording: Arc::clone(&recording), facts };
        let bytes_max = recording.body_bytes_max();
        let copier = Copier::new(bytes_max, move |copied| recording.request_body(copied));
        request.body.watch(Box::new(copier));
        After::wait(self.inner.call(request), Some(watched))
    }
}

impl Finish<Outcome> for Option<Watched> {
    fn finish(self, outcome: &mut Outcome) {
        if let (Some(watched), Ok(response)) = (self, outcome) {
            watch(watched, response);
        }
    }
}

fn watch(watched: Watched, response: &mut Response) {
    let Watched { recording, facts } = watched;
    let (status, answer_headers) = (response.status().as_u16(), response.headers().clone());
    let bytes_max = recording.body_bytes_max();
    let copier = Copier::new(bytes_max, move |copied| {
        let Some(front) = facts.front() else { return };
        let target = facts.uri.path_and_query().map_or("/", |target| target.as_str());
        let head = Head {
            method: &facts.method,
            url: url(&facts),
            headers: &facts.headers,
            side: &facts.program.pack().sides[front.serves].name,
            target: target.get(front.prefix.len()..).unwrap_or("/"),
            operation: facts.operation(),
            client: facts.client(),
            language: facts.language.0,
            status,
            answer_headers: &answer_headers,
        };
        recording.finish(&head, copied);
    });
    response.body_mut().watch(Box::new(copier));
}

/// The request's address as archives want it: absolute.
fn url(facts: &Facts) -> String {
    if facts.uri.scheme().is_some() {
        return facts.uri.to_string();
    }
    let host = facts.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    format!("http://{host}{}", facts.uri)
}
