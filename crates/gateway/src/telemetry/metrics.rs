//! The program's metrics: names, labels and handles. Only this module names a metric; other code
//! calls its functions, and `recorder.rs` renders the values. All of the program's own names start
//! with `switchback_` and finish with their unit. Labels are operations, client names, sides and
//! closed sets of words, so their cardinality is bounded by the pack and the clients, whatever
//! requests contain.

mod names;
mod recorder;

pub use names::*;
pub(super) use recorder::{DURATION_BUCKETS, label};
pub use recorder::{Metrics, install};

use crate::outcome::Outcome;
use http::StatusCode;
use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};
use std::cell::RefCell;
use std::time::Duration;
use switchback_engine::diff::FindingKind;

/// Gauge value of a removed subject. The recorder cannot remove a series, so `/metrics` omits this
/// value.
const ABSENT: f64 = f64::NAN;

/// Label value for a missing operation or client, so that queries over all requests include them.
pub(super) const NONE: &str = "none";

/// Creates the counters with known labels at 0. The first event is then an increase, which alerts
/// can detect.
fn be_born() {
    for result in ["success", "failure"] {
        counter!(CONFIG_RELOAD, "result" => result).increment(0);
    }
    for limit in LIMITS {
        counter!(LIMITED, "limit" => limit).increment(0);
    }
    // Series without an operation, so that sums over all operations exist.
    for direction in ["request", "answer"] {
        counter!(TRANSFORM_FAILURES, "operation" => NONE, "direction" => direction).increment(0);
    }
    for kind in FindingKind::ALL {
        counter!(SHADOW_FINDINGS, "side" => NONE, "operation" => NONE, "kind" => kind.word()).increment(0);
    }
    counter!(SHADOW_UNRECORDED).increment(0);
    connections().increment(0.0);
    requests_in_flight().increment(0.0);
    tokens_unpersisted(0.0);
    SpanMeter::new().count_exported(0);
}

/// The limits that [`limited`] accepts.
const LIMITS: [&str; 8] = [
    "in_flight",
    "client_in_flight",
    "upstream_in_flight",
    "client_upstream_in_flight",
    "connections",
    "connections_per_address",
    "memory",
    "layer",
];

/// Sets whether the store answers.
pub fn store_up(is_up: bool) {
    gauge!(STORE_UP).set(if is_up { 1.0 } else { 0.0 });
}

/// Metric handles for the requests of one client to one operation.
pub(crate) struct RequestMeter {
    /// Client, side and operation.
    labels: [(&'static str, String); 3],
    /// The side that the client uses: operations of both sides may have the same name.
    side: Box<str>,
    /// Counters by outcome and status, created on first use. Each outcome has few.
    counters: RefCell<Vec<(Outcome, u16, Counter)>>,
    duration: Histogram,
    added: Histogram,
}

/// Outcomes with the most common status of each. These series exist at 0 from the start, so that
/// the first error is an increase that alerts can detect. Other series are created when they first
/// occur.
const USUAL: [(Outcome, u16); 6] = [
    (Outcome::Translated, 200),
    (Outcome::Forwarded, 200),
    (Outcome::Refused, 501),
    (Outcome::Rejected, 400),
    (Outcome::UpstreamError, 502),
    (Outcome::GatewayError, 500),
];

/// Status in metrics and logs for a client that disconnected before its response, as in nginx.
pub(crate) const CLIENT_GONE: u16 = 499;

impl RequestMeter {
    /// Creates the handles. Empty names are labelled [`NONE`].
    pub(crate) fn new(client: &str, operation: &str, side: &str) -> RequestMeter {
        let labels =
            [("client", or_none(client)), ("side", or_none(side)), ("operation", or_none(operation))];
        let duration = histogram!(REQUEST_DURATION, &labels[1..]);
        let added = histogram!(ADDED_DURATION, &labels[1..2]);
        let meter = RequestMeter { labels, side: side.into(), counters: RefCell::default(), duration, added };
        USUAL.iter().for_each(|(outcome, status)| meter.count(*outcome, *status, 0));
        meter
    }

    fn count(&self, outcome: Outcome, status: u16, requests: u64) {
        let mut counters = self.counters.borrow_mut();
        if let Some((.., counter)) =
            counters.iter().find(|(known, code, _)| (*known, *code) == (outcome, status))
        {
            return counter.increment(requests);
        }
        let [client, side, operation] = self.labels.clone();
        let own = [("outcome", outcome.as_str().to_owned()), ("status", status.to_string())];
        let [outcome_label, status_label] = own;
        let counter = counter!(REQUESTS, &[client, side, operation, outcome_label, status_label]);
        counter.increment(requests);
        counters.push((outcome, status, counter));
    }

    /// Returns the side that the client uses.
    pub(crate) fn side(&self) -> &str {
        &self.side
    }

    /// Counts a finished request. `status` is `None` if the client disconnected before the
    /// response. `took` is the total duration and `added` the part added by the gateway, if known.
    pub(crate) fn record(
        &self,
        outcome: Outcome,
        status: Option<u16>,
        took: Option<Duration>,
        added: Option<Duration>,
    ) {
        self.count(outcome, status.unwrap_or(CLIENT_GONE), 1);
        took.iter().for_each(|took| self.duration.record(took.as_secs_f64()));
        added.iter().for_each(|added| self.added.record(added.as_secs_f64()));
    }
}

/// Returns the gauge of requests in flight.
pub(crate) fn requests_in_flight() -> Gauge {
    gauge!(REQUESTS_IN_FLIGHT)
}

/// Returns the gauge of open client connections.
pub(crate) fn connections() -> Gauge {
    gauge!(CONNECTIONS)
}

/// Metric handles for one upstream.
pub(crate) struct UpstreamMeter {
    /// Indexed by the first digit of the status; 0 is no response.
    answers: [Counter; 6],
    duration: Histogram,
}

impl UpstreamMeter {
    /// Creates the handles for the upstream of this name in this role.
    pub(crate) fn new(upstream: &str, role: &'static str) -> UpstreamMeter {
        let labels = [("upstream", upstream.to_owned()), ("role", role.to_owned())];
        let answers = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"].map(|class| {
            let [upstream, role] = labels.clone();
            counter!(UPSTREAM_REQUESTS, &[upstream, role, ("status", class.to_owned())])
        });
        // Created at 0, so that the first retry is an increase.
        for why in RETRY_REASONS {
            retries(upstream, role, why).increment(0);
        }
        let duration = histogram!(UPSTREAM_DURATION, &labels);
        UpstreamMeter { answers, duration }
    }

    /// Counts a call with the status of its response, or `None` if there was no response.
    pub(crate) fn record(&self, status: Option<StatusCode>, elapsed: Duration) {
        let class = status.map_or(0, |status| usize::from(status.as_u16() / 100).min(5));
        self.answers[class].increment(1);
        self.duration.record(elapsed.as_secs_f64());
    }
}

/// Metric handles for exported spans.
#[derive(Clone)]
pub(crate) struct SpanMeter {
    exported: Counter,
    failed: Counter,
    dropped: Counter,
}

#[cfg_attr(not(feature = "otlp"), expect(dead_code, reason = "no span is exported"))]
impl SpanMeter {
    /// Creates the handles at their current values, initially 0.
    pub(crate) fn new() -> SpanMeter {
        let of = |result: &'static str| counter!(TRACE_SPANS, "result" => result);
        SpanMeter { exported: of("exported"), failed: of("failed"), dropped: of("dropped") }
    }

    /// Counts spans that the collector accepted.
    pub(crate) fn count_exported(&self, spans: u64) {
        self.exported.increment(spans);
    }

    /// Counts spans that the collector did not accept.
    pub(crate) fn count_failed(&self, spans: u64) {
        self.failed.increment(spans);
    }

    /// Counts spans that were dropped because the queue was full.
    pub(crate) fn count_dropped(&self, spans: u64) {
        self.dropped.increment(spans);
    }
}

/// Counts a rejection by a limit.
pub(crate) fn count_limited(limit: &'static str) {
    debug_assert!(LIMITS.contains(&limit), "{limit} is to be born at 0");
    counter!(LIMITED, "limit" => limit).increment(1);
}

/// Counts a message that could not be translated; `direction` is `request` or `answer`.
pub(crate) fn transform_failed(operation: &str, direction: &'static str) {
    counter!(TRANSFORM_FAILURES, "operation" => or_none(operation), "direction" => direction).increment(1);
}

/// Counts an event of a receiver by outcome.
pub(crate) fn event(receiver: &str, outcome: &'static str) {
    counter!(EVENTS, "receiver" => receiver.to_owned(), "outcome" => outcome).increment(1);
}

/// Sets the number of a receiver's pending events and dead letters.
pub(crate) fn events_waiting(receiver: &str, (pending, dead): (i64, i64)) {
    gauge!(EVENTS_PENDING, "receiver" => receiver.to_owned()).set(pending as f64);
    gauge!(EVENTS_DEAD, "receiver" => receiver.to_owned()).set(dead as f64);
}

/// Creates the counters of a receiver of notices at 0.
pub(crate) fn notices_of(receiver: &str) {
    for outcome in NOTICE_OUTCOMES {
        counter!(NOTICES, "receiver" => receiver.to_owned(), "outcome" => outcome).increment(0);
    }
}

/// Outcomes of notices: delivered; no attempt succeeded; no room in the queue.
const NOTICE_OUTCOMES: [&str; 3] = ["delivered", "failed", "dropped"];

/// Counts the end of a notice to a receiver.
pub(crate) fn notice(receiver: &str, outcome: &'static str) {
    debug_assert!(NOTICE_OUTCOMES.contains(&outcome), "{outcome} is to be born at 0");
    counter!(NOTICES, "receiver" => receiver.to_owned(), "outcome" => outcome).increment(1);
}

/// Counts a call with an unknown part, which `unknown` names.
pub(crate) fn unknown_call(method: &'static str, path: String, unknown: &'static str) {
    counter!(UNKNOWN_CALLS, "method" => method, "path" => path, "unknown" => unknown).increment(1);
}

/// Counts a retried call.
pub(crate) fn count_retry(upstream: &str, role: &'static str, why: &'static str) {
    retries(upstream, role, why).increment(1);
}

fn retries(upstream: &str, role: &'static str, why: &'static str) -> Counter {
    counter!(RETRIES, "upstream" => upstream.to_owned(), "role" => role, "why" => why)
}

/// Reasons for retries: the upstream did not process the call, or its connection broke.
const RETRY_REASONS: [&str; 2] = ["unprocessed", "broken"];

/// Converts a condition to a gauge value. `None` removes the sample.
fn condition(is: Option<bool>) -> f64 {
    is.map_or(ABSENT, |is| if is { 1.0 } else { 0.0 })
}

/// Expiry and lifetime of an access token, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TokenLife {
    /// Seconds since 1970.
    pub ends: f64,
    pub lifetime: f64,
}

impl TokenLife {
    /// Converts the issue time (since 1970) and the lifetime of a token, both in milliseconds.
    pub(crate) fn new(issued_ms: i64, lifetime_ms: i64) -> TokenLife {
        TokenLife {
            ends: issued_ms.saturating_add(lifetime_ms) as f64 / 1000.0,
            lifetime: lifetime_ms as f64 / 1000.0,
        }
    }
}

/// Sets the expiry and the lifetime of a client's access token. `None` removes them, for a client
/// without a token or with an unknown lifetime.
pub(crate) fn token_life(client: &str, life: Option<TokenLife>) {
    gauge!(TOKEN_EXPIRY, "client" => client.to_owned()).set(life.map_or(ABSENT, |life| life.ends));
    gauge!(TOKEN_LIFETIME, "client" => client.to_owned()).set(life.map_or(ABSENT, |life| life.lifetime));
}

/// Creates the refresh counters of a client's grant at 0.
pub(crate) fn token_refreshes(client: &str) {
    for result in REFRESH_RESULTS {
        counter!(TOKEN_REFRESH, "client" => client.to_owned(), "result" => result).increment(0);
    }
}

/// Results of a refresh: new tokens; another process was first; the store failed; the tokens are in
/// memory only; no usable response; the application is rejected; the grant has ended.
const REFRESH_RESULTS: [&str; 7] =
    ["ok", "moved", "store", "unpersisted", "failed", "misconfigured", "refused"];

/// Sets whether a client's grant is in this state. `None` removes it, for a deleted client.
pub(crate) fn token_state(client: &str, state: &'static str, is: Option<bool>) {
    gauge!(TOKEN_STATE, "client" => client.to_owned(), "state" => state).set(condition(is));
}

/// Counts a refresh of a client's grant.
pub(crate) fn token_refreshed(client: &str, result: &'static str) {
    debug_assert!(REFRESH_RESULTS.contains(&result), "{result} is to be born at 0");
    counter!(TOKEN_REFRESH, "client" => client.to_owned(), "result" => result).increment(1);
}

/// Sets the number of grants whose newest tokens are in memory only.
pub(crate) fn tokens_unpersisted(grants: f64) {
    gauge!(TOKEN_UNPERSISTED).set(grants);
}

/// Sets whether a service refuses a client's fixed token for a side. `None` removes it.
pub(crate) fn credential_refused(client: &str, side: &str, is_refused: Option<bool>) {
    gauge!(CREDENTIAL_REFUSED, "client" => client.to_owned(), "side" => side.to_owned())
        .set(condition(is_refused));
}

/// Counts a request to a side that is announced as deprecated.
pub(crate) fn deprecated_request(client: &str, side: &str, operation: &str) {
    let labels = [("client", or_none(client)), ("side", or_none(side)), ("operation", or_none(operation))];
    counter!(DEPRECATED_REQUESTS, &labels).increment(1);
}

/// Sets the phase of an operation; `phases` lists the names of all phases.
pub(crate) fn in_phase(side: &str, operation: &str, phase: &str, phases: &[&'static str]) {
    for name in phases {
        let value = if *name == phase { 1.0 } else { 0.0 };
        gauge!(PHASE, "side" => side.to_owned(), "operation" => operation.to_owned(), "phase" => *name)
            .set(value);
    }
}

/// Removes the phase of an operation that is no longer served.
pub(crate) fn in_no_phase(side: &str, operation: &str, phases: &[&'static str]) {
    for name in phases {
        gauge!(PHASE, "side" => side.to_owned(), "operation" => operation.to_owned(), "phase" => *name)
            .set(ABSENT);
    }
}

/// Counts a transition of an operation to a phase.
pub(crate) fn phase_moved(side: &str, operation: &str, phase: &'static str, by: &'static str) {
    let [side, operation] = of_operation(side, operation);
    counter!(PHASE_TRANSITIONS, &[side, operation, ("phase", phase.to_owned()), ("by", by.to_owned())])
        .increment(1);
}

/// Counts one step of a comparison by its result.
pub(crate) fn shadow_compared(side: &str, operation: &str, result: &'static str) {
    let [side, operation] = of_operation(side, operation);
    counter!(SHADOW_COMPARED, &[side, operation, ("result", result.to_owned())]).increment(1);
}

/// Counts the findings of one comparison.
pub(crate) fn shadow_findings(side: &str, operation: &str, kinds: impl Iterator<Item = &'static str>) {
    for kind in kinds {
        let [side, operation] = of_operation(side, operation);
        counter!(SHADOW_FINDINGS, &[side, operation, ("kind", kind.to_owned())]).increment(1);
    }
}

/// Counts excused differences by reason.
pub(crate) fn shadow_noise(side: &str, operation: &str, counts: [(&'static str, u32); 3]) {
    for (why, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        let [side, operation] = of_operation(side, operation);
        counter!(SHADOW_NOISE, &[side, operation, ("why", why.to_owned())]).increment(u64::from(count));
    }
}

/// Counts a request or event that was excluded from its planned comparison.
pub(crate) fn shadow_dropped(side: &str, operation: &str, reason: &'static str) {
    let [side, operation] = of_operation(side, operation);
    counter!(SHADOW_DROPPED, &[side, operation, ("reason", reason.to_owned())]).increment(1);
}

fn of_operation(side: &str, operation: &str) -> [(&'static str, String); 2] {
    [("side", side.to_owned()), ("operation", operation.to_owned())]
}

/// Counts entries that could not be recorded.
pub(crate) fn shadow_unrecorded(entries: u64) {
    counter!(SHADOW_UNRECORDED).increment(entries);
}

/// Sets the number of requests in the shadow's queue.
pub(crate) fn shadow_waiting(requests: usize) {
    gauge!(SHADOW_WAITING).set(requests as f64);
}

/// Sets the bytes of bodies in the shadow's queue.
pub(crate) fn shadow_bytes(bytes: u64) {
    gauge!(SHADOW_BYTES).set(bytes as f64);
}

/// Counts a reload of the pack or the configuration, and sets the time of a successful one.
pub fn config_reloaded(succeeded: bool, unix_seconds: i64) {
    let result = if succeeded { "success" } else { "failure" };
    counter!(CONFIG_RELOAD, "result" => result).increment(1);
    if succeeded {
        gauge!(CONFIG_LOADED_AT).set(unix_seconds as f64);
    }
}

/// Removes the expiry of a certificate that is no longer configured.
pub fn no_certificate(key: &str) {
    gauge!(CERTIFICATE_EXPIRY, "key" => key.to_owned()).set(ABSENT);
}

/// Sets the number of changed configuration keys that take effect at a restart.
pub fn restart_pending(keys: usize) {
    gauge!(RESTART_PENDING).set(keys as f64);
}

/// Sets the expiry of the certificate under a configuration key.
pub fn certificate_expiry(key: &str, unix_seconds: u64) {
    gauge!(CERTIFICATE_EXPIRY, "key" => key.to_owned()).set(unix_seconds as f64);
}

fn or_none(label: &str) -> String {
    if label.is_empty() { NONE.to_owned() } else { label.to_owned() }
}

fn describe() {
    for metric in METRICS {
        match metric.kind {
            MetricKind::Counter => describe_counter!(metric.name, metric.about),
            MetricKind::Gauge => describe_gauge!(metric.name, metric.about),
            MetricKind::Histogram => describe_histogram!(metric.name, Unit::Seconds, metric.about),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn finished_requests_are_rendered_and_tabled() {
        let metrics = install();
        let operation = "GET /metrics-test/{id}";
        for (client, outcome) in [
            ("metrics-test \"a\"", Outcome::Translated),
            ("metrics-test b", Outcome::Translated),
            ("", Outcome::Refused),
        ] {
            RequestMeter::new(client, operation, "old").record(outcome, Some(200), Some(MS), Some(MS));
        }
        let text = metrics.render();
        assert!(text.contains("# TYPE switchback_requests_total counter"), "{text}");
        assert!(text.contains("switchback_request_duration_seconds_bucket"), "{text}");
        assert!(text.contains("client=\"none\""), "{text}");
        let table = metrics.requests_by_operation();
        let row = &table["old GET /metrics-test/{id}"];
        assert_eq!((row["translated"], row["refused"]), (2, 1));
        RequestMeter::new("", operation, "new").record(Outcome::Translated, Some(200), Some(MS), Some(MS));
        assert_eq!(metrics.requests_by_operation()["new GET /metrics-test/{id}"]["translated"], 1);
    }

    #[test]
    fn every_metric_has_its_name_its_labels_and_a_description() {
        let metrics = install();
        RequestMeter::new("every", "GET /every", "old").record(
            Outcome::Translated,
            Some(200),
            Some(MS),
            Some(MS),
        );
        requests_in_flight().set(1.0);
        connections().set(1.0);
        deprecated_request("every", "old", "GET /every");
        transform_failed("GET /every", "request");
        UpstreamMeter::new("every", "client").record(Some(StatusCode::OK), Duration::from_millis(1));
        count_retry("every", "client", "broken");
        unknown_call("GET", "/every".to_owned(), "client");
        count_limited("layer");
        store_up(true);
        token_refreshed("every", "ok");
        token_life("every", Some(TokenLife::new(1_000, 1_000)));
        token_state("every", "active", Some(true));
        credential_refused("every", "old", Some(false));
        tokens_unpersisted(0.0);
        config_reloaded(true, 1);
        restart_pending(0);
        certificate_expiry("every", 1);
        in_phase("old", "GET /every", "shadow", &["shadow"]);
        phase_moved("old", "GET /every", "canary", "gate");
        shadow_compared("old", "GET /every", "equal");
        shadow_findings("old", "GET /every", ["every"].into_iter());
        shadow_noise("old", "GET /every", [("declared", 1), ("learnt", 1), ("moved", 1)]);
        shadow_dropped("old", "GET /every", "memory");
        event("every", "queued");
        notice("every", "delivered");
        events_waiting("every", (1, 1));
        shadow_unrecorded(1);
        shadow_waiting(1);
        shadow_bytes(1);
        SpanMeter::new().count_dropped(1);
        let text = metrics.render();
        for MetricInfo { name, kind, labels, about } in METRICS {
            let word = kind.word();
            assert!(text.contains(&format!("# TYPE {name} {word}\n")), "{name} is no {word} in:\n{text}");
            assert!(text.contains(&format!("# HELP {name} {about}\n")), "{name} is not described");
            let sample = match kind {
                MetricKind::Histogram => format!("{name}_count"),
                _ => (*name).to_owned(),
            };
            let is_its_own =
                |line: &&str| line.strip_prefix(&sample).is_some_and(|rest| rest.starts_with(['{', ' ']));
            let line = text.lines().find(is_its_own).unwrap_or_else(|| panic!("{name} has no value"));
            let named = line.split_once('{').map_or("", |(_, rest)| rest.rsplit_once('}').unwrap().0);
            let missing: Vec<_> = labels.iter().filter(|wanted| label(named, wanted).is_none()).collect();
            assert_eq!((missing.len(), named.matches("=\"").count()), (0, labels.len()), "{name}: {named}");
        }
        let known = |line: &str| METRICS.iter().any(|metric| line.split(' ').nth(2) == Some(metric.name));
        let types = text.lines().filter(|line| line.starts_with("# TYPE "));
        let unknown: Vec<&str> = types.filter(|line| !known(line)).collect();
        assert_eq!(unknown, Vec::<&str>::new(), "these are not in the list");
    }
}
