//! Names of the metrics, and the table of all of them: kind, labels and description. `/metrics` and
//! the reference of the documentation are generated from the table.

/// Counter: answered requests by side, operation, client, outcome and status.
pub const REQUESTS: &str = "switchback_requests_total";
pub(crate) const EVENTS: &str = "switchback_events_total";
pub(crate) const NOTICES: &str = "switchback_notices_total";
pub(crate) const EVENTS_PENDING: &str = "switchback_events_pending";
pub(crate) const EVENTS_DEAD: &str = "switchback_events_dead";
pub(crate) const REQUEST_DURATION: &str = "switchback_request_duration_seconds";
pub(crate) const ADDED_DURATION: &str = "switchback_added_duration_seconds";
pub(crate) const REQUESTS_IN_FLIGHT: &str = "switchback_requests_in_flight";
/// Gauge: open client connections.
pub const CONNECTIONS: &str = "switchback_connections";
pub(crate) const DEPRECATED_REQUESTS: &str = "switchback_deprecated_requests_total";
pub(crate) const UNKNOWN_CALLS: &str = "switchback_unknown_calls_total";
pub(crate) const TRANSFORM_FAILURES: &str = "switchback_transform_failures_total";
pub(crate) const UPSTREAM_REQUESTS: &str = "switchback_upstream_requests_total";
pub(crate) const UPSTREAM_DURATION: &str = "switchback_upstream_request_duration_seconds";
pub(crate) const RETRIES: &str = "switchback_retries_total";
/// Name of a metric that `switchback status` displays.
pub const LIMITED: &str = "switchback_limited_total";
pub(crate) const STORE_UP: &str = "switchback_store_up";
pub(crate) const TOKEN_REFRESH: &str = "switchback_token_refresh_total";
/// Gauge: expiry of a client's access token in seconds since 1970.
pub const TOKEN_EXPIRY: &str = "switchback_token_expiry_timestamp_seconds";
pub(crate) const TOKEN_LIFETIME: &str = "switchback_token_lifetime_seconds";
pub(crate) const TOKEN_STATE: &str = "switchback_token_state";
pub(crate) const CREDENTIAL_REFUSED: &str = "switchback_credential_refused";
pub(crate) const TOKEN_UNPERSISTED: &str = "switchback_token_unpersisted";
pub(crate) const CONFIG_RELOAD: &str = "switchback_config_reload_total";
pub(crate) const CONFIG_LOADED_AT: &str = "switchback_config_loaded_timestamp_seconds";
pub(crate) const RESTART_PENDING: &str = "switchback_restart_pending";
pub(crate) const CERTIFICATE_EXPIRY: &str = "switchback_tls_certificate_expiry_timestamp_seconds";
/// Gauge: 1 for the current phase of an operation.
pub const PHASE: &str = "switchback_phase";
pub(crate) const PHASE_TRANSITIONS: &str = "switchback_phase_transitions_total";
/// Counter: comparisons of the dual run by operation and result.
pub const SHADOW_COMPARED: &str = "switchback_shadow_compared_total";
/// Counter: differences by operation and kind.
pub const SHADOW_FINDINGS: &str = "switchback_shadow_findings_total";
/// Counter: excused differences by operation and reason (declared or learned).
pub const SHADOW_NOISE: &str = "switchback_shadow_noise_total";
/// Counter: requests excluded from their planned comparison, by reason.
pub const SHADOW_DROPPED: &str = "switchback_shadow_dropped_total";
/// Name of a metric that `switchback status` displays.
pub const SHADOW_UNRECORDED: &str = "switchback_shadow_unrecorded_total";
/// Gauge: comparisons in the shadow's queue.
pub const SHADOW_WAITING: &str = "switchback_shadow_waiting";
/// Gauge: bytes of bodies in the shadow's queue.
pub const SHADOW_BYTES: &str = "switchback_shadow_bytes";
pub(crate) const TRACE_SPANS: &str = "switchback_trace_spans_total";
pub(crate) const BUILD_INFO: &str = "switchback_build_info";

/// Process metrics, named as in Prometheus' client libraries.
pub(crate) const PROCESS_CPU: &str = "process_cpu_seconds_total";
pub(crate) const PROCESS_RESIDENT: &str = "process_resident_memory_bytes";
pub(crate) const PROCESS_VIRTUAL: &str = "process_virtual_memory_bytes";
pub(crate) const PROCESS_OPEN_FDS: &str = "process_open_fds";
pub(crate) const PROCESS_MAX_FDS: &str = "process_max_fds";
pub(crate) const PROCESS_THREADS: &str = "process_threads";
pub(crate) const PROCESS_STARTED: &str = "process_start_time_seconds";

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A sum that only grows, until the process ends.
    Counter,
    /// A value that may fall.
    Gauge,
    /// A distribution of seconds.
    Histogram,
}

impl MetricKind {
    /// Returns the word of the text format of Prometheus.
    pub fn word(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// A metric of `/metrics`.
#[derive(Clone, Copy, Debug)]
pub struct MetricInfo {
    /// The name, with its unit last.
    pub name: &'static str,
    /// The kind.
    pub kind: MetricKind,
    /// The names of its labels, in alphabetical order.
    pub labels: &'static [&'static str],
    /// The description.
    pub about: &'static str,
}

const fn counter(name: &'static str, labels: &'static [&'static str], about: &'static str) -> MetricInfo {
    MetricInfo { name, kind: MetricKind::Counter, labels, about }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], about: &'static str) -> MetricInfo {
    MetricInfo { kind: MetricKind::Gauge, ..counter(name, labels, about) }
}

const fn histogram(name: &'static str, labels: &'static [&'static str], about: &'static str) -> MetricInfo {
    MetricInfo { kind: MetricKind::Histogram, ..counter(name, labels, about) }
}

/// All metrics.
pub const METRICS: &[MetricInfo] = &[
    counter(
        REQUESTS,
        &["client", "operation", "outcome", "side", "status"],
        "Requests that ended, by client, side, operation, outcome and status (499: the client was gone before its answer). A failure that a side answers with a success has the status that it stands for",
    ),
    histogram(
        REQUEST_DURATION,
        &["operation", "side"],
        "From the head of a request to the end of its answer; without tunnels and event streams",
    ),
    histogram(
        ADDED_DURATION,
        &["side"],
        "From the head of a request to the head of its answer, less the time in which heads and bodies of others were awaited; requests without a call, tunnels and event streams are left out",
    ),
    gauge(REQUESTS_IN_FLIGHT, &[], "Requests being answered"),
    gauge(CONNECTIONS, &[], "Open client connections"),
    counter(
        EVENTS,
        &["outcome", "receiver"],
        "Events, by receiver and outcome: queued, known, dropped, unsigned, refused, busy, beside, delivered, failed, dead",
    ),
    gauge(
        EVENTS_PENDING,
        &["receiver"],
        "Events that wait to be delivered, by receiver; of all gateways on the store, so do not sum over instances",
    ),
    gauge(
        EVENTS_DEAD,
        &["receiver"],
        "Dead letters, by receiver; of all gateways on the store, so do not sum over instances",
    ),
    counter(
        NOTICES,
        &["outcome", "receiver"],
        "Notices to operators, by receiver and outcome: delivered, failed, dropped",
    ),
    counter(
        DEPRECATED_REQUESTS,
        &["client", "operation", "side"],
        "Answered requests to a side, or of a client, with a sunset date, by client, side and operation",
    ),
    counter(
        TRANSFORM_FAILURES,
        &["direction", "operation"],
        "Messages that could not be translated, by operation and direction",
    ),
    counter(
        UNKNOWN_CALLS,
        &["method", "path", "unknown"],
        "Forwarded requests of no operation or of an unknown client, and undeclared query parameters of any request, up to 8 of each; by method, path and what is unknown",
    ),
    counter(
        UPSTREAM_REQUESTS,
        &["role", "status", "upstream"],
        "Calls to upstreams, by upstream, role (for a client or for the shadow) and class of status; a call that is sent again counts each time, and one that its client gave up does not count",
    ),
    histogram(UPSTREAM_DURATION, &["role", "upstream"], "From sending a call to the head of its answer"),
    counter(
        RETRIES,
        &["role", "upstream", "why"],
        "Calls sent again, by upstream, role (for a client or for the shadow) and why",
    ),
    counter(
        LIMITED,
        &["limit"],
        "Requests and connections refused by a limit, by limit: `connections` and `connections_per_address` refuse connections, `memory` both, the others requests",
    ),
    gauge(STORE_UP, &[], "1 while the store answers, else 0"),
    counter(TOKEN_REFRESH, &["client", "result"], "Refreshes of grants, by result"),
    gauge(TOKEN_EXPIRY, &["client"], "When a client's access token ends, seconds since 1970"),
    gauge(TOKEN_LIFETIME, &["client"], "How long a client's access token lives from its issue, in seconds"),
    gauge(TOKEN_STATE, &["client", "state"], "1 for the state that a client's grant is in, 0 for the others"),
    gauge(
        CREDENTIAL_REFUSED,
        &["client", "side"],
        "1 while a service refuses the token that a client's calls to a side go out with",
    ),
    gauge(TOKEN_UNPERSISTED, &[], "Grants whose newest tokens are in memory only"),
    counter(CONFIG_RELOAD, &["result"], "Reloads of pack and configuration, by result"),
    gauge(CONFIG_LOADED_AT, &[], "When the serving pack and configuration were loaded, seconds since 1970"),
    gauge(RESTART_PENDING, &[], "Keys of the configuration that have changed and take a restart"),
    gauge(
        CERTIFICATE_EXPIRY,
        &["key"],
        "When a certificate of ours ends, seconds since 1970, by its key in the configuration",
    ),
    gauge(
        PHASE,
        &["operation", "phase", "side"],
        "1 for the phase that a served operation is in, 0 for the others",
    ),
    counter(
        PHASE_TRANSITIONS,
        &["by", "operation", "phase", "side"],
        "Transitions of operations that this gateway saw, by side, operation, the phase moved to, and who moved it. Each gateway on a store sees those of all, so do not sum over instances",
    ),
    counter(
        SHADOW_COMPARED,
        &["operation", "result", "side"],
        "Steps of the dual run, by side, operation and result. Of one request or event there may be several: an answer compared, a plan, an effect read back, both sides timed, one side asked twice",
    ),
    counter(
        SHADOW_FINDINGS,
        &["kind", "operation", "side"],
        "Differences between both sides, by side, operation and kind",
    ),
    counter(
        SHADOW_NOISE,
        &["operation", "side", "why"],
        "Differences that are no findings, by side, operation and why",
    ),
    counter(
        SHADOW_DROPPED,
        &["operation", "reason", "side"],
        "Requests and events that were to be compared and were not, by side, operation and reason",
    ),
    counter(SHADOW_UNRECORDED, &[], "Entries of the dual run that the store has not"),
    gauge(SHADOW_WAITING, &[], "Requests that wait for their other side"),
    gauge(SHADOW_BYTES, &[], "Bytes of bodies that the shadow keeps"),
    counter(
        TRACE_SPANS,
        &["result"],
        "Spans by what became of them: exported, failed (the collector did not take them), dropped (the queue was full)",
    ),
    gauge(BUILD_INFO, &["version"], "Always 1; the label says which version runs"),
    counter(PROCESS_CPU, &[], "Total user and system CPU time spent, in whole seconds"),
    gauge(PROCESS_RESIDENT, &[], "Resident memory size in bytes"),
    gauge(PROCESS_VIRTUAL, &[], "Virtual memory size in bytes"),
    gauge(PROCESS_OPEN_FDS, &[], "Number of open file descriptors"),
    gauge(PROCESS_MAX_FDS, &[], "Maximum number of open file descriptors"),
    gauge(PROCESS_THREADS, &[], "Number of OS threads in the process"),
    gauge(PROCESS_STARTED, &[], "Start time of the process since unix epoch in seconds"),
];
