//! The recording of one request.

use super::tap::OpenCapture;
use crate::body::Copied;
use bytes::Bytes;
use http::{HeaderMap, Method};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use switchback_engine::har::{Body, Exchange, Gateway, Request, Response, Shadow};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Collects a request until its response and its shadow job have finished, and then delivers the
/// exchange. Dropping it without [`Recording::finish`] discards it: a request that was abandoned
/// before its response cannot be replayed.
pub(crate) struct Recording {
    receiver: RecordReceiver,
    started_at: OffsetDateTime,
    started: Instant,
    /// Locked only briefly, and only by tasks of this request.
    gathered: Mutex<RecordedExchange>,
}

/// The receiver of a recorded exchange.
enum RecordReceiver {
    Capture(Arc<OpenCapture>),
    /// The sample of recent requests.
    Sample {
        body_bytes_max: usize,
        deliver: Option<Deliver>,
    },
}

/// Takes a recorded exchange, unmasked. Runs where the last part of the recording ended, so it must
/// not block.
type Deliver = Box<dyn FnOnce(Exchange) + Send + Sync>;

#[derive(Debug, Default)]
struct RecordedExchange {
    request_body: Option<Copied>,
    calls: Vec<CallRecord>,
    /// Number of calls discarded by restarts, and therefore the number of the first entry of
    /// `calls`.
    forgotten: usize,
    is_recalled: bool,
    shadow: Option<Shadow>,
    /// The exchange without its calls, once its response has finished.
    ended: Option<Exchange>,
}

/// A call to the other side.
#[derive(Debug)]
pub(crate) struct CallRecord {
    pub method: Method,
    /// Path and query below the upstream's base.
    pub target: String,
    /// Without the credential, which is added later.
    pub headers: HeaderMap,
    /// `None` if the body was streamed and not recorded.
    pub body: Option<Bytes>,
    pub started: Instant,
    /// Status and headers of the response, once received.
    pub head: Option<(u16, HeaderMap)>,
    /// The response body, once finished.
    pub answer: Option<Copied>,
}

/// The head of an exchange, collected when its response has finished.
#[derive(Debug)]
pub(crate) struct Head<'h> {
    pub method: &'h Method,
    pub url: String,
    pub headers: &'h HeaderMap,
    pub side: &'h str,
    pub target: &'h str,
    pub operation: &'h str,
    pub client: &'h str,
    pub language: usize,
    pub outcome: &'static str,
    pub status: u16,
    pub answer_headers: &'h HeaderMap,
}

impl Recording {
    /// Starts a recording permitted by [`super::Tap::take`].
    pub(crate) fn new(capture: Arc<OpenCapture>) -> Recording {
        Recording::start(RecordReceiver::Capture(capture))
    }

    /// Starts a recording that is passed to `deliver`.
    pub(crate) fn for_sample(body_bytes_max: usize, deliver: Deliver) -> Recording {
        Recording::start(RecordReceiver::Sample { body_bytes_max, deliver: Some(deliver) })
    }

    fn start(receiver: RecordReceiver) -> Recording {
        Recording {
            receiver,
            started_at: OffsetDateTime::now_utc(),
            started: Instant::now(),
            gathered: Mutex::default(),
        }
    }

    /// Returns the maximum number of recorded bytes per body.
    pub(crate) fn body_bytes_max(&self) -> usize {
        match &self.receiver {
            RecordReceiver::Capture(capture) => capture.body_bytes_max(),
            RecordReceiver::Sample { body_bytes_max, .. } => *body_bytes_max,
        }
    }

    /// Records the complete request body.
    pub(crate) fn request_body(&self, copied: Copied) {
        self.lock_gathered().request_body = Some(copied);
    }

    /// Records the start of a call and returns its number.
    pub(crate) fn call(&self, call: CallRecord) -> usize {
        let mut gathered = self.lock_gathered();
        gathered.calls.push(call);
        gathered.forgotten + gathered.calls.len() - 1
    }

    /// Discards all calls, because the shadow job restarts.
    pub(crate) fn restart(&self) {
        let mut gathered = self.lock_gathered();
        gathered.forgotten += gathered.calls.len();
        gathered.calls.clear();
        gathered.shadow = None;
    }

    /// Records how far the shadow followed the plan.
    pub(crate) fn shadow(&self, shadow: Shadow) {
        self.lock_gathered().shadow = Some(shadow);
    }

    /// Records that the plan read stored state of the gateway, which no recording contains.
    pub(crate) fn note_archive_read(&self) {
        self.lock_gathered().is_recalled = true;
    }

    /// Records the head of a call's response.
    pub(crate) fn call_head(&self, number: usize, status: u16, headers: &HeaderMap) {
        self.lock_gathered().with_call(number, |call| call.head = Some((status, headers.clone())));
    }

    /// Records the body of a call's response.
    pub(crate) fn call_body(&self, number: usize, copied: Copied) {
        self.lock_gathered().with_call(number, |call| call.answer = Some(copied));
    }

    /// Records the end of the response. If the exchange matches the capture's filter, it is
    /// delivered when the last reference to this recording is dropped.
    pub(crate) fn finish(&self, head: &Head<'_>, answer: Copied) {
        if let RecordReceiver::Capture(capture) = &self.receiver
            && !capture.wants(head.operation, head.client)
        {
            return;
        }
        let mut gathered = self.lock_gathered();
        let request_body = gathered.request_body.take();
        gathered.ended = Some(Exchange {
            started: self.started_at.format(&Rfc3339).unwrap_or_default(),
            millis: self.started.elapsed().as_secs_f64() * 1e3,
            request: Request {
                method: head.method.to_string(),
                url: head.url.clone(),
                headers: fields(head.headers),
                // A body that was never read was empty, or the request was answered without it.
                body: request_body.map_or(Body::None, |copied| body(&copied)),
                masked: Vec::new(),
            },
            response: Some(Response {
                status: head.status,
                headers: fields(head.answer_headers),
                body: body(&answer),
            }),
            gateway: Some(Gateway {
                side: head.side.to_owned(),
                target: head.target.to_owned(),
                client: head.client.to_owned(),
                language: head.language,
                outcome: head.outcome.to_owned(),
                ..Gateway::default()
            }),
        });
    }

    fn exchange_of(&self, call: CallRecord) -> Exchange {
        let since = call.started.duration_since(self.started);
        let answer = call.answer.as_ref().map_or(Body::Missing, body);
        Exchange {
            started: (self.started_at + since).format(&Rfc3339).unwrap_or_default(),
            millis: call.started.elapsed().as_secs_f64() * 1e3,
            request: Request {
                method: call.method.to_string(),
                url: call.target,
                headers: fields(&call.headers),
                body: call.body.map_or(Body::Missing, Body::from),
                masked: Vec::new(),
            },
            response: call.head.map(|(status, headers)| Response {
                status,
                headers: fields(&headers),
                body: answer,
            }),
            gateway: None,
        }
    }

    fn lock_gathered(&self) -> MutexGuard<'_, RecordedExchange> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordedExchange {
    fn with_call(&mut self, number: usize, change: impl FnOnce(&mut CallRecord)) {
        let at = number.checked_sub(self.forgotten);
        if let Some(call) = at.and_then(|at| self.calls.get_mut(at)) {
            change(call);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let mut gathered = std::mem::take(&mut *self.lock_gathered());
        let mut exchange = gathered.ended.take();
        if let Some(known) = exchange.as_mut().and_then(|exchange| exchange.gateway.as_mut()) {
            known.calls = gathered.calls.into_iter().map(|call| self.exchange_of(call)).collect();
            (known.shadow, known.is_recalled) = (gathered.shadow, gathered.is_recalled);
        }
        match &mut self.receiver {
            RecordReceiver::Capture(capture) => {
                if let Some(exchange) = exchange {
                    capture.offer(exchange);
                }
                capture.release();
            }
            RecordReceiver::Sample { deliver, .. } => {
                if let Some((exchange, deliver)) = exchange.zip(deliver.take()) {
                    deliver(exchange);
                }
            }
        }
    }
}

fn body(copied: &Copied) -> Body {
    if copied.is_whole() { copied.bytes.clone().into() } else { Body::Missing }
}

/// Converts header fields to the archive's format.
pub(crate) fn fields(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}
