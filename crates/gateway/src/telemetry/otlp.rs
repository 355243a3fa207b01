//! OpenTelemetry traces: requests queue spans, and a separate task sends them to a collector in
//! batches (OTLP 1.x over HTTP with protobuf). A slow or unavailable collector loses spans, which
//! are counted, but never delays a request: the queue is bounded, and spans beyond it are dropped.
//!
//! The SDK's own pipeline (tracer and processor) is not used: it does not count dropped spans,
//! starts spans before sampling is decided, and runs its own threads. Its span data and exporter
//! are used unchanged.

use super::metrics::SpanMeter;
use super::trace::TraceParent;
use crate::http_client::is_loopback;
use crate::secret::Secret;
use bytes::Bytes;
use opentelemetry::InstrumentationScope;
pub(crate) use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

/// Maximum number of spans per request to the collector.
const BATCH_SPANS: usize = 512;
/// Longest time that a span waits to be batched.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// Longest response of a collector; it contains little more than the number of rejected spans.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Path below a collector's address (OTLP specification, "OTLP/HTTP request").
const TRACES_PATH: &str = "/v1/traces";

/// Settings of the trace export.
#[derive(Clone, Debug)]
pub struct OtlpSettings {
    /// The collector's URL, without `/v1/traces`.
    pub endpoint: String,
    /// Header fields of every request to the collector, such as its credential.
    pub headers: Vec<(String, Secret<String>)>,
    /// Fraction of traces to record, of those that start here. Others follow the sampling decision
    /// of their caller.
    pub ratio: f64,
    /// Time limit for one export, including retries.
    pub timeout: Duration,
    /// Maximum number of queued spans.
    pub queue: usize,
}

impl PartialEq for OtlpSettings {
    fn eq(&self, other: &OtlpSettings) -> bool {
        let headers = |settings: &OtlpSettings| -> Vec<(String, String)> {
            settings.headers.iter().map(|(name, value)| (name.clone(), value.expose().clone())).collect()
        };
        (&self.endpoint, self.ratio, self.timeout, self.queue)
            == (&other.endpoint, other.ratio, other.timeout, other.queue)
            && headers(self) == headers(other)
    }
}

/// An error in the trace settings.
#[derive(Debug, thiserror::Error)]
#[error("telemetry.otlp: {0}")]
pub struct OtlpError(String);

/// Records traces. After the last user is dropped, the background task sends the remaining queue
/// and exits.
pub struct Traces {
    queue: mpsc::Sender<Queued>,
    /// Traces that start here are recorded if their id is below this bound. `None`: all are
    /// recorded.
    below: Option<u64>,
    scope: InstrumentationScope,
    meter: SpanMeter,
}

enum Queued {
    Span(Box<SpanData>),
    /// Notifies a caller once all spans before it have been sent.
    Flush(oneshot::Sender<()>),
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Traces")
    }
}

impl Traces {
    /// Starts sending. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The address or the header fields are invalid, or TLS cannot be set up.
    pub fn start(settings: &OtlpSettings) -> Result<Arc<Traces>, OtlpError> {
        let exporter = exporter(settings)?;
        let (sender, queue) = mpsc::channel(settings.queue.max(1));
        let meter = SpanMeter::new();
        tokio::spawn(send_all(queue, exporter, meter.clone()));
        // A ratio of 1 would need the bound 2^64, which does not fit into 64 bits.
        let below = (settings.ratio < 1.0).then(|| (settings.ratio.max(0.0) * (u64::MAX as f64)) as u64);
        let scope =
            InstrumentationScope::builder("switchback").with_version(env!("CARGO_PKG_VERSION")).build();
        Ok(Arc::new(Traces { queue: sender, below, scope, meter }))
    }

    /// Returns a request's position in its trace, and its span if it is recorded. The client's
    /// `parent`, if present, decides about recording. `own` is the new trace for requests without
    /// one.
    pub(crate) fn begin(
        self: &Arc<Traces>,
        parent: Option<TraceParent>,
        own: TraceParent,
    ) -> (TraceParent, Option<Arc<RequestSpan>>) {
        let is_recorded = match parent {
            Some(parent) => parent.is_sampled(),
            None => self.below.is_none_or(|below| (own.trace_number() as u64) < below),
        };
        if !is_recorded {
            return (parent.unwrap_or(own), None);
        }
        let trace = parent.unwrap_or(own).with_sampling().child(fastrand::u64(..));
        let parent = parent.map(|parent| parent.parent_number());
        let span = RequestSpan { traces: Arc::clone(self), trace, parent, anchor: Anchor::now() };
        (trace, Some(Arc::new(span)))
    }

    /// Waits up to `patience` until all spans recorded so far have been sent or lost.
    pub async fn flush(&self, patience: Duration) {
        let (done, sent) = oneshot::channel();
        let all = async {
            if self.queue.send(Queued::Flush(done)).await.is_ok() {
                let _ = sent.await;
            }
        };
        if timeout(patience, all).await.is_err() {
            tracing::warn!("the last traces were not sent before the shutdown and are lost");
        }
    }
}

/// The span of a request, the parent of the spans of its calls.
#[derive(Debug)]
pub(crate) struct RequestSpan {
    traces: Arc<Traces>,
    /// The request's own position in the trace.
    trace: TraceParent,
    /// The span of the client, if it has one.
    parent: Option<u64>,
    anchor: Anchor,
}

/// One moment on both clocks. All spans of a request are placed relative to it, so calls lie within
/// their request even if the wall clock jumps or a thread is descheduled between the two readings.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    instant: std::time::Instant,
    wall: SystemTime,
}

impl Anchor {
    fn now() -> Anchor {
        Anchor { instant: std::time::Instant::now(), wall: SystemTime::now() }
    }

    /// Converts a monotonic time to wall time.
    fn place(&self, at: std::time::Instant) -> SystemTime {
        let moment = match at.checked_duration_since(self.instant) {
            Some(after) => self.wall.checked_add(after),
            None => self.wall.checked_sub(self.instant.duration_since(at)),
        };
        moment.unwrap_or(self.wall)
    }
}

/// A finished span.
pub(crate) struct EndedSpan {
    pub(crate) name: String,
    pub(crate) started: std::time::Instant,
    pub(crate) ended: std::time::Instant,
    pub(crate) attributes: Vec<KeyValue>,
    /// Whether it counts as an error.
    pub(crate) is_failed: bool,
}

impl RequestSpan {
    /// Returns a new position in the trace for a call of the request.
    pub(crate) fn call(&self) -> TraceParent {
        self.trace.child(fastrand::u64(..))
    }

    /// Records the span of the request.
    pub(crate) fn record(&self, ended: EndedSpan) {
        self.put(self.trace, self.parent, SpanKind::Server, ended);
    }

    /// Records the span of a call at position `call`.
    pub(crate) fn record_call(&self, call: TraceParent, ended: EndedSpan) {
        self.put(call, Some(self.trace.parent_number()), SpanKind::Client, ended);
    }

    fn put(&self, place: TraceParent, parent: Option<u64>, kind: SpanKind, ended: EndedSpan) {
        let context = SpanContext::new(
            TraceId::from(place.trace_number()),
            SpanId::from(place.parent_number()),
            TraceFlags::SAMPLED,
            false,
            TraceState::NONE,
        );
        let span = SpanData {
            span_context: context,
            parent_span_id: parent.map_or(SpanId::INVALID, SpanId::from),
            parent_span_is_remote: kind == SpanKind::Server && parent.is_some(),
            span_kind: kind,
            name: ended.name.into(),
            start_time: self.anchor.place(ended.started),
            end_time: self.anchor.place(ended.ended),
            attributes: ended.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: if ended.is_failed { Status::error("") } else { Status::Unset },
            instrumentation_scope: self.traces.scope.clone(),
        };
        if self.traces.queue.try_send(Queued::Span(Box::new(span))).is_err() {
            self.traces.meter.count_dropped(1);
        }
    }
}

/// Sends queued spans until all senders are dropped.
async fn send_all(
    mut queue: mpsc::Receiver<Queued>,
    exporter: opentelemetry_otlp::SpanExporter,
    meter: SpanMeter,
) {
    let mut batch = Vec::new();
    let mut due = Instant::now();
    let mut reached = true;
    loop {
        let next = if batch.is_empty() {
            queue.recv().await
        } else {
            match timeout_at(due, queue.recv()).await {
                Ok(next) => next,
                Err(_) => {
                    send(&exporter, &mut batch, &meter, &mut reached).await;
                    continue;
                }
            }
        };
        match next {
            Some(Queued::Span(span)) => {
                if batch.is_empty() {
                    due = Instant::now() + BATCH_DELAY;
                }
                batch.push(*span);
                if batch.len() >= BATCH_SPANS {
                    send(&exporter, &mut batch, &meter, &mut reached).await;
                }
            }
            Some(Queued::Flush(done)) => {
                send(&exporter, &mut batch, &meter, &mut reached).await;
                let _ = done.send(());
            }
            None => return send(&exporter, &mut batch, &meter, &mut reached).await,
        }
    }
}

/// Sends a batch unless it is empty. Logs when the collector stops accepting spans, and when it
/// accepts them again.
async fn send(
    exporter: &opentelemetry_otlp::SpanExporter,
    batch: &mut Vec<SpanData>,
    meter: &SpanMeter,
    reached: &mut bool,
) {
    if batch.is_empty() {
        return;
    }
    let spans = batch.len() as u64;
    let outcome = exporter.export(std::mem::take(batch)).await;
    let before = std::mem::replace(reached, outcome.is_ok());
    match outcome {
        Ok(()) => meter.count_exported(spans),
        Err(_) => meter.count_failed(spans),
    }
    match outcome {
        Err(error) if before => {
            tracing::warn!(%error, "the collector does not accept traces, which are dropped; check its address and credentials")
        }
        Ok(()) if !before => tracing::info!("the collector accepts traces again"),
        _ => {}
    }
}

fn exporter(settings: &OtlpSettings) -> Result<opentelemetry_otlp::SpanExporter, OtlpError> {
    let text = |error: &dyn fmt::Display| OtlpError(error.to_string());
    let mut http = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(settings.timeout)
        .timeout(settings.timeout)
        .user_agent(concat!("switchback/", env!("CARGO_PKG_VERSION")));
    let endpoint = settings.endpoint.parse::<http::Uri>();
    if endpoint.is_ok_and(|endpoint| is_loopback(endpoint.host())) {
        http = http.no_proxy();
    }
    let http = http.build().map_err(|error| text(&error.without_url()))?;
    let headers =
        settings.headers.iter().map(|(name, value)| (name.clone(), value.expose().clone())).collect();
    let mut exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_http_client(Collector(http))
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("{}{TRACES_PATH}", settings.endpoint.trim_end_matches('/')))
        .with_timeout(settings.timeout)
        .with_headers(headers)
        .build()
        .map_err(|error| text(&error))?;
    exporter.set_resource(&resource());
    Ok(exporter)
}

/// Describes this process as the source of traces. `OTEL_SERVICE_NAME` and
/// `OTEL_RESOURCE_ATTRIBUTES` take precedence.
fn resource() -> Resource {
    let known = Resource::builder().build();
    let has = |name: &'static str| known.get(&opentelemetry::Key::new(name)).is_some();
    let mut own = vec![KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))];
    if std::env::var_os("OTEL_SERVICE_NAME").is_none()
        && !std::env::var("OTEL_RESOURCE_ATTRIBUTES").is_ok_and(|given| given.contains("service.name="))
    {
        own.push(KeyValue::new("service.name", "switchback"));
    }
    if !has("service.instance.id") {
        // A random id distinguishes replicas in any deployment.
        own.push(KeyValue::new("service.instance.id", format!("{:032x}", fastrand::u128(..))));
    }
    Resource::builder().with_attributes(own).build()
}

/// The exporter's HTTP client.
#[derive(Debug)]
struct Collector(reqwest::Client);

impl HttpClient for Collector {
    // The signature that `async_trait` expands to.
    fn send_bytes<'this, 'call>(
        &'this self,
        request: http::Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<http::Response<Bytes>, HttpError>> + Send + 'call>>
    where
        'this: 'call,
        Self: 'call,
    {
        Box::pin(async move {
            let request = reqwest::Request::try_from(request)?;
            // Remove the URL from the error, since errors are logged.
            let mut answer = self.0.execute(request).await.map_err(reqwest::Error::without_url)?;
            let (status, headers) = (answer.status(), std::mem::take(answer.headers_mut()));
            let mut body = Vec::new();
            while let Some(piece) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
                if body.len() + piece.len() > ANSWER_BYTES_MAX {
                    return Err("the collector's answer is too long".into());
                }
                body.extend_from_slice(&piece);
            }
            let mut response = http::Response::new(Bytes::from(body));
            (*response.status_mut(), *response.headers_mut()) = (status, headers);
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that lies within its request does so by the wall clock, too, though it is placed later.
    #[test]
    fn moments_keep_their_order_and_their_distance() {
        let anchor = Anchor::now();
        let (before, after) =
            (anchor.instant.checked_sub(Duration::from_micros(7)), Duration::from_millis(3));
        let before = before.expect("the machine has run for a moment");
        assert_eq!(anchor.place(anchor.instant), anchor.wall);
        assert_eq!(anchor.place(before) + Duration::from_micros(7), anchor.wall);
        assert_eq!(anchor.place(anchor.instant + after), anchor.wall + after);
    }
}
