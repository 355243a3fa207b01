//! The limits of the data path. A test reaches each of them. The program sets them from its
//! configuration; the defaults are for other users of this crate.
//!
//! They are grouped by the part that enforces them: `requests` by the layers above translation,
//! `bodies` where bodies are read and translated, `upstream` by the connections to the services.
//! Some of them a front or an operation may replace: after routing, these are read from
//! [`FrontLimits`] only.

use crate::body::BodyTimeout;
use std::time::Duration;
use switchback_plan::RouteId;

/// Limits of one request, of one client, and of all requests together.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Limits of requests before their bodies are read.
    pub requests: RequestLimits,
    /// Limits of the bodies of requests and responses.
    pub bodies: BodyLimits,
    /// Limits of calls to one upstream and of its connections.
    pub upstream: UpstreamLimits,
}

/// Limits of requests before their bodies are read.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// Bytes of a request target; beyond it 414.
    pub target_bytes_max: usize,
    /// Bytes of names and values of a request's header fields; beyond it 431.
    pub header_bytes_max: usize,
    /// How slowly a request body may arrive.
    pub body_timeout: BodyTimeout,
    /// Concurrent requests; beyond it 503.
    pub in_flight_max: usize,
    /// Concurrent requests of one client; beyond it 503.
    pub client_in_flight_max: usize,
    /// Time from the arrival of a request to the head of its response. Requests that are forwarded
    /// unchanged are exempt.
    pub total_timeout: Duration,
}

/// Limits of the bodies of requests and responses. Beyond those that apply to both, requests are
/// answered with 413 and responses with 502.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// Bytes of a request body, as received and once decoded; beyond it 413.
    pub request_bytes_max: u64,
    /// Bytes of a request body that is forwarded unchanged; beyond it 413.
    pub forwarded_bytes_max: u64,
    /// Members of one object, in requests and in the parts of responses that are read.
    pub object_members_max: usize,
    /// Values in a request body; beyond it 413.
    pub request_values_max: usize,
    /// Nested arrays and objects, in requests and in the parts of responses that are read.
    pub depth_max: usize,
    /// Bytes of one string or number that a plan reads of a streamed response; beyond it 502.
    pub scalar_bytes_max: usize,
    /// Bytes of a response that must be buffered; beyond it 502.
    pub held_bytes_max: u64,
    /// Bytes of all buffered bodies together; beyond it 503.
    pub held_bytes_all_max: u64,
    /// Bytes of a response that are translated before the first byte is sent, so that an error in
    /// them is still a 502.
    pub whole_bytes_max: u64,
    /// Largest ratio of a decoded body to its coded form.
    pub decode_ratio_max: u64,
}

/// Limits of calls to one upstream and of its connections.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamLimits {
    /// Time to open a connection, TLS included.
    pub connect_timeout: Duration,
    /// Time to the head of a response, and between two chunks of its body. Forwarded calls are
    /// exempt.
    pub response_timeout: Duration,
    /// Longest silence of a forwarded call, in both directions together.
    pub forwarded_idle_timeout: Duration,
    /// How long an upstream must be unreachable until calls that only it can answer are refused.
    pub gone_after: Duration,
    /// Concurrent calls; beyond it 503 at once, so that a hanging upstream does not pile up
    /// requests.
    pub in_flight_max: usize,
    /// Concurrent calls of one client. In any case, no client has more than are left to others.
    pub client_in_flight_max: usize,
    /// Bytes of the head of a response; beyond it 502. Each connection may buffer as much.
    pub head_bytes_max: usize,
    /// Header fields of a response; beyond it 502.
    pub fields_max: usize,
    /// Bytes of a streamed response, once decoded; beyond it the response breaks off.
    pub response_bytes_max: u64,
    /// Idle connections that stay open.
    pub idle_max: usize,
    /// How long a connection stays open while idle, unless the upstream announces less.
    pub idle_timeout: Duration,
}

/// The limits that a front or one of its operations may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationLimits {
    /// See [`BodyLimits::request_bytes_max`].
    pub request_bytes_max: u64,
    /// See [`BodyLimits::forwarded_bytes_max`].
    pub forwarded_bytes_max: u64,
    /// See [`RequestLimits::body_timeout`].
    pub body_timeout: BodyTimeout,
    /// See [`RequestLimits::total_timeout`].
    pub total_timeout: Duration,
    /// Limits of each call to an upstream.
    pub calls: CallLimits,
}

/// The limits of one call that a front or an operation may replace. Calls of the shadow have those
/// of their upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// See [`UpstreamLimits::response_timeout`].
    pub response_timeout: Duration,
    /// See [`UpstreamLimits::forwarded_idle_timeout`].
    pub forwarded_idle_timeout: Duration,
    /// See [`UpstreamLimits::response_bytes_max`].
    pub response_bytes_max: u64,
}

/// Replacements for some of the [`OperationLimits`]. `None` keeps the inherited limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitOverrides {
    /// See [`BodyLimits::request_bytes_max`].
    pub request_bytes_max: Option<u64>,
    /// See [`BodyLimits::forwarded_bytes_max`].
    pub forwarded_bytes_max: Option<u64>,
    /// See [`BodyTimeout::idle`].
    pub body_idle_timeout: Option<Duration>,
    /// See [`RequestLimits::total_timeout`].
    pub total_timeout: Option<Duration>,
    /// See [`UpstreamLimits::response_timeout`].
    pub response_timeout: Option<Duration>,
    /// See [`UpstreamLimits::forwarded_idle_timeout`].
    pub forwarded_idle_timeout: Option<Duration>,
    /// See [`UpstreamLimits::response_bytes_max`].
    pub response_bytes_max: Option<u64>,
}

/// The limits of a front, and of its operations with limits of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontLimits {
    front: OperationLimits,
    /// Sorted by route; usually empty.
    operations: Vec<(RouteId, OperationLimits)>,
}

impl Limits {
    /// Returns the limits that fronts inherit.
    pub fn operation_limits(&self) -> OperationLimits {
        OperationLimits {
            request_bytes_max: self.bodies.request_bytes_max,
            forwarded_bytes_max: self.bodies.forwarded_bytes_max,
            body_timeout: self.requests.body_timeout,
            total_timeout: self.requests.total_timeout,
            calls: self.upstream.call_limits(),
        }
    }
}

impl UpstreamLimits {
    /// Returns the limits of calls without limits of their own.
    pub(crate) fn call_limits(&self) -> CallLimits {
        CallLimits {
            response_timeout: self.response_timeout,
            forwarded_idle_timeout: self.forwarded_idle_timeout,
            response_bytes_max: self.response_bytes_max,
        }
    }
}

impl OperationLimits {
    /// Replaces limits by those of `own`.
    #[must_use]
    pub fn override_by(self, own: &LimitOverrides) -> OperationLimits {
        let OperationLimits { body_timeout, calls, .. } = self;
        OperationLimits {
            request_bytes_max: own.request_bytes_max.unwrap_or(self.request_bytes_max),
            forwarded_bytes_max: own.forwarded_bytes_max.unwrap_or(self.forwarded_bytes_max),
            body_timeout: BodyTimeout {
                idle: own.body_idle_timeout.unwrap_or(body_timeout.idle),
                ..body_timeout
            },
            total_timeout: own.total_timeout.unwrap_or(self.total_timeout),
            calls: CallLimits {
                response_timeout: own.response_timeout.unwrap_or(calls.response_timeout),
                forwarded_idle_timeout: own.forwarded_idle_timeout.unwrap_or(calls.forwarded_idle_timeout),
                response_bytes_max: own.response_bytes_max.unwrap_or(calls.response_bytes_max),
            },
        }
    }

    /// Returns the limit of a body that may be forwarded or translated. Code that buffers a body
    /// enforces `request_bytes_max`.
    pub(crate) fn body_bytes_max(&self) -> u64 {
        self.forwarded_bytes_max.max(self.request_bytes_max)
    }
}

impl FrontLimits {
    /// Creates the limits of a front. Operations inherit those of the front.
    pub fn new(
        front: OperationLimits,
        operations: impl IntoIterator<Item = (RouteId, LimitOverrides)>,
    ) -> FrontLimits {
        let operations = operations.into_iter().map(|(route, own)| (route, front.override_by(&own)));
        let mut operations: Vec<_> = operations.collect();
        operations.sort_by_key(|(route, _)| *route);
        FrontLimits { front, operations }
    }

    /// Returns the limits of an operation, or those of requests without one.
    pub fn for_route(&self, route: Option<RouteId>) -> &OperationLimits {
        let found =
            route.and_then(|route| self.operations.binary_search_by_key(&route, |(own, _)| *own).ok());
        found.map_or(&self.front, |at| &self.operations[at].1)
    }
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        RequestLimits {
            target_bytes_max: 8 * 1024,
            header_bytes_max: 16 * 1024,
            body_timeout: BodyTimeout { idle: Duration::from_secs(10), bytes_per_second_min: 1024 },
            in_flight_max: 4_096,
            client_in_flight_max: 512,
            total_timeout: Duration::from_secs(30),
        }
    }
}

impl Default for BodyLimits {
    fn default() -> BodyLimits {
        BodyLimits {
            request_bytes_max: 10 * 1024 * 1024,
            forwarded_bytes_max: 1024 * 1024 * 1024,
            object_members_max: 10_000,
            request_values_max: 1_000_000,
            depth_max: 64,
            scalar_bytes_max: 1024 * 1024,
            held_bytes_max: 16 * 1024 * 1024,
            held_bytes_all_max: 256 * 1024 * 1024,
            whole_bytes_max: 64 * 1024,
            // Deflate compresses constant input by a factor of up to 1,032; only bombs come near it.
            decode_ratio_max: 500,
        }
    }
}

impl Default for UpstreamLimits {
    fn default() -> UpstreamLimits {
        UpstreamLimits {
            connect_timeout: Duration::from_millis(3_500),
            response_timeout: Duration::from_secs(15),
            forwarded_idle_timeout: Duration::from_secs(60),
            gone_after: Duration::from_secs(60),
            in_flight_max: 1_024,
            client_in_flight_max: 1_024,
            head_bytes_max: 32 * 1024,
            fields_max: 100,
            response_bytes_max: 1024 * 1024 * 1024,
            idle_max: 256,
            // Servers commonly close idle connections after five seconds or more. If both sides close at
            // the same moment, a write in transit fails and must not be repeated, so the gateway closes
            // first.
            idle_timeout: Duration::from_secs(4),
        }
    }
}
