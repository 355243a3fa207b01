//! The bounds of the data path, with their defaults. Each is reached by a test.

use crate::body::BodyTimeout;
use std::time::Duration;
use switchback_engine::translate::stream::Check;

/// Bounds on one request, on one client, and on all of them together.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request target; beyond it 414.
    pub target_bytes_max: usize,
    /// Bytes of names and values of a request's header fields; beyond it 431.
    pub header_bytes_max: usize,
    /// Bytes of a request body, as sent and once decoded; beyond it 413.
    pub request_bytes_max: u64,
    /// Bytes of a request body that is forwarded as it comes; beyond it 413.
    pub forwarded_bytes_max: u64,
    /// Members of one object, in requests and in what is read of answers; beyond it 413, or 502.
    pub object_members_max: usize,
    /// Values of a request's body; beyond it 413.
    pub request_values_max: usize,
    /// Arrays and objects within one another, in requests and in what is read of answers; beyond it
    /// 413, or 502.
    pub body_depth_max: usize,
    /// Bytes of one text or number that a plan reads of an answer that streams through; beyond it 502.
    pub scalar_bytes_max: usize,
    /// Bytes of an upstream's answer that has to be held whole; beyond it 502.
    pub held_bytes_max: u64,
    /// So much of an answer is converted before its first byte is sent, so that a fault in it is still a 502.
    pub whole_bytes_max: u64,
    /// Bytes of an upstream's answer that streams through, once decoded; beyond it the answer breaks off.
    pub response_bytes_max: u64,
    /// How much of an upstream's answer is checked while it is converted.
    pub answer_check: Check,
    /// How many times larger than its coded form a decoded body may be.
    pub decode_ratio_max: u64,
    /// Requests being answered at once; beyond it 503.
    pub in_flight_max: usize,
    /// Requests of one client being answered at once; beyond it 503.
    pub client_in_flight_max: usize,
    /// Bytes of bodies held at once by all requests together; beyond it 503.
    pub held_bytes_all_max: u64,
    /// How slowly a request body may come.
    pub request_body_timeout: BodyTimeout,
    /// From the arrival of a request to the head of its answer, unless it is forwarded as it comes.
    pub total_timeout: Duration,
    /// For a connection to an upstream, TLS included.
    pub connect_timeout: Duration,
    /// For the head of an upstream's answer, and between two pieces of its body; not of a forwarded call.
    pub upstream_timeout: Duration,
    /// For the bytes of a forwarded call, in either direction: the longest silence.
    pub forwarded_idle_timeout: Duration,
    /// How long an upstream has not been reached, until what only it can answer is refused.
    pub upstream_gone_after: Duration,
    /// Calls to one upstream at once; beyond it 503 at once, so that a hanging upstream does not
    /// pile up requests.
    pub upstream_in_flight_max: usize,
    /// Of one client; in any case no client has more of them than are left to others.
    pub client_upstream_in_flight_max: usize,
    /// Bytes of the head of an upstream's answer; beyond it 502. A connection that answers come on
    /// may hold as much.
    pub upstream_head_bytes_max: usize,
    /// Header fields of an upstream's answer; beyond it 502.
    pub upstream_fields_max: usize,
    /// Idle connections kept per upstream.
    pub upstream_idle_max: usize,
    /// How long an idle connection to an upstream is kept, unless the upstream says that it keeps
    /// it for less.
    pub upstream_idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            target_bytes_max: 8 * 1024,
            header_bytes_max: 16 * 1024,
            request_bytes_max: 10 * 1024 * 1024,
            forwarded_bytes_max: 1024 * 1024 * 1024,
            object_members_max: 10_000,
            request_values_max: 1_000_000,
            body_depth_max: 64,
            scalar_bytes_max: 1024 * 1024,
            held_bytes_max: 16 * 1024 * 1024,
            whole_bytes_max: 64 * 1024,
            response_bytes_max: 1024 * 1024 * 1024,
            answer_check: Check::Grammar,
            decode_ratio_max: 500,
            in_flight_max: 4_096,
            client_in_flight_max: 512,
            held_bytes_all_max: 256 * 1024 * 1024,
            request_body_timeout: BodyTimeout { idle: Duration::from_secs(10), bytes_per_second_min: 1024 },
            total_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(1),
            upstream_timeout: Duration::from_secs(15),
            forwarded_idle_timeout: Duration::from_secs(60),
            upstream_gone_after: Duration::from_secs(60),
            upstream_in_flight_max: 1_024,
            client_upstream_in_flight_max: 1_024,
            upstream_head_bytes_max: 32 * 1024,
            upstream_fields_max: 256,
            upstream_idle_max: 256,
            // The shortest limit in common use is five seconds: a connection that both ends give up
            // at the same moment costs a write that nobody may repeat.
            upstream_idle_timeout: Duration::from_secs(4),
        }
    }
}
