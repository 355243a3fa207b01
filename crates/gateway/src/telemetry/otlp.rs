//! Traces for OpenTelemetry: spans are queued where requests are answered, and sent to a collector, many at a time, from a task
//! of their own (OTLP 1.x over HTTP with protobuf). A collector that is slow or gone costs spans, which are counted, and never a
//! request its time: the queue is bounded, and whoever meets it full goes on without.
//!
//! The SDK's own pipeline (tracer, processor) is left out: it counts nothing of what it drops, it begins spans before it is known
//! whether they are wanted, and it has threads of its own. Its span data and its exporter are used as they are.

use super::metrics::SpanMeter;
use super::trace::TraceParent;
use crate::secret::Secret;
use bytes::Bytes;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
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

/// Most spans of one message to the collector.
const BATCH_SPANS: usize = 512;
/// How long a span waits for others to go with it.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// An answer of a collector says how many spans it refused, and no more.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// What this path is below a collector's address (OTLP specification, "OTLP/HTTP request").
const TRACES_PATH: &str = "/v1/traces";

/// Where traces go, and which.
#[derive(Clone, Debug)]
pub struct OtlpSettings {
    /// The collector, without `/v1/traces`.
    pub endpoint: String,
    /// Fields of every message to it, such as its credential.
    pub headers: Vec<(String, Secret<String>)>,
    /// The share of traces that are recorded, of those that begin here. Of others their beginning decides.
    pub ratio: f64,
    /// For one message, with all tries.
    pub timeout: Duration,
    /// Most spans that wait to be sent.
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

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("telemetry.otlp: {0}")]
pub struct OtlpError(String);

/// What traces are recorded with. Its sender ends with the last of its users, after it has sent what was queued.
pub struct Traces {
    queue: mpsc::Sender<Queued>,
    /// Traces that begin here are recorded whose id lies below; none: all of them.
    below: Option<u64>,
    scope: InstrumentationScope,
    meter: SpanMeter,
}

enum Queued {
    Span(Box<SpanData>),
    /// Whoever waits until all before it has been sent.
    Flush(oneshot::Sender<()>),
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Traces")
    }
}

impl Traces {
    /// Begins to send. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The address or the fields are none, or TLS cannot be set up.
    pub fn start(settings: &OtlpSettings) -> Result<Arc<Traces>, OtlpError> {
        let exporter = exporter(settings)?;
        let (sender, queue) = mpsc::channel(settings.queue.max(1));
        let meter = SpanMeter::new();
        tokio::spawn(send_all(queue, exporter, meter.clone()));
        // 2^64 cannot be said in 64 bits: a share of all needs no bound.
        let below = (settings.ratio < 1.0).then(|| (settings.ratio.max(0.0) * (u64::MAX as f64)) as u64);
        let scope =
            InstrumentationScope::builder("switchback").with_version(env!("CARGO_PKG_VERSION")).build();
        Ok(Arc::new(Traces { queue: sender, below, scope, meter }))
    }

    /// Where a request stands in its trace, and its span if that is recorded: `parent` is what its client said, and decides if it
    /// did; `own` is the trace that begins here otherwise.
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
        let trace = parent.unwrap_or(own).sampled().child(fastrand::u64(..));
        let parent = parent.map(|parent| parent.parent_number());
        let span = RequestSpan { traces: Arc::clone(self), trace, parent, anchor: Anchor::now() };
        (trace, Some(Arc::new(span)))
    }

    /// Waits until what was recorded so far has been sent, or lost; at most so long.
    pub async fn flush(&self, patience: Duration) {
        let (done, sent) = oneshot::channel();
        let all = async {
            if self.queue.send(Queued::Flush(done)).await.is_ok() {
                let _ = sent.await;
            }
        };
        if timeout(patience, all).await.is_err() {
            tracing::warn!("not all traces could be sent before the end");
        }
    }
}

/// The span of one request, to which those of its calls belong.
#[derive(Debug)]
pub(crate) struct RequestSpan {
    traces: Arc<Traces>,
    /// Its own place in the trace.
    trace: TraceParent,
    /// The span of its client, where that has one.
    parent: Option<u64>,
    anchor: Anchor,
}

/// One moment by both clocks. All spans of a request are placed by it, so that calls lie within their request whatever the
/// wall clock does, and however long a thread sleeps between reading the two.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    instant: std::time::Instant,
    wall: SystemTime,
}

impl Anchor {
    fn now() -> Anchor {
        Anchor { instant: std::time::Instant::now(), wall: SystemTime::now() }
    }

    /// When something was, by the wall clock.
    fn place(&self, at: std::time::Instant) -> SystemTime {
        let moment = match at.checked_duration_since(self.instant) {
            Some(after) => self.wall.checked_add(after),
            None => self.wall.checked_sub(self.instant.duration_since(at)),
        };
        moment.unwrap_or(self.wall)
    }
}

/// A span that has just ended.
pub(crate) struct Ended {
    pub(crate) name: String,
    pub(crate) started: std::time::Instant,
    pub(crate) ended: std::time::Instant,
    pub(crate) attributes: Vec<KeyValue>,
    /// Whether it counts as an error.
    pub(crate) is_failed: bool,
}

impl RequestSpan {
    /// Where a call of the request stands in the trace.
    pub(crate) fn call(&self) -> TraceParent {
        self.trace.child(fastrand::u64(..))
    }

    /// Records the request itself.
    pub(crate) fn record(&self, ended: Ended) {
        self.put(self.trace, self.parent, SpanKind::Server, ended);
    }

    /// Records a call of it that stands at `call`.
    pub(crate) fn record_call(&self, call: TraceParent, ended: Ended) {
        self.put(call, Some(self.trace.parent_number()), SpanKind::Client, ended);
    }

    fn put(&self, place: TraceParent, parent: Option<u64>, kind: SpanKind, ended: Ended) {
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
            self.traces.meter.dropped(1);
        }
    }
}

/// Sends what is queued until all who could queue something are gone.
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

/// Sends a batch, if there is one; said once when a collector stops to take them, and once when it does again.
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
        Ok(()) => meter.exported(spans),
        Err(_) => meter.failed(spans),
    }
    match outcome {
        Err(error) if before => tracing::warn!(%error, "the collector takes no traces; they are lost"),
        Ok(()) if !before => tracing::info!("the collector takes traces again"),
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
    if is_loopback(&settings.endpoint) {
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

/// Who records: `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say more of it.
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
        // Two replicas are told apart however they are run.
        own.push(KeyValue::new("service.instance.id", format!("{:032x}", fastrand::u128(..))));
    }
    Resource::builder().with_attributes(own).build()
}

fn is_loopback(endpoint: &str) -> bool {
    let Ok(url) = endpoint.parse::<http::Uri>() else { return false };
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The collector as the exporter speaks to it.
#[derive(Debug)]
struct Collector(reqwest::Client);

impl HttpClient for Collector {
    // As `async_trait` writes it.
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
            // Its address stays out of what is logged of a failure.
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
