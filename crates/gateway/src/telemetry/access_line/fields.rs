//! The content of an access log line.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// The tracing target of all access events.
pub(crate) const TARGET: &str = "switchback::access";

/// The content of one access log line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessRecord<'a> {
    pub request_id: &'a str,
    /// `X-Request-Id` of the client, or empty.
    pub client_request_id: &'a str,
    /// The W3C trace id in 32 hexadecimal digits, or empty.
    pub trace_id: &'a str,
    pub method: &'a str,
    /// The path as a template, such as `/v2/things/{id}`: values in a path may be personal data or
    /// tokens.
    pub path: &'a str,
    /// The matched operation of the contract, such as `GET /things/{id}`, or empty.
    pub operation: &'a str,
    /// The client's registered name; empty before authentication.
    pub client: &'a str,
    /// The client's address, as reported by trusted proxies. `None` if it is not to be logged.
    pub address: Option<IpAddr>,
    /// The phase of the operation; empty if no operation matched or the request failed before that.
    pub phase: &'a str,
    /// The upstream that sent the response, or `gateway`.
    pub answered_by: &'a str,
    /// The identifier of the [`crate::outcome::Outcome`].
    pub outcome: &'a str,
    pub status: u16,
    /// Bytes of the response body that were passed to the connection.
    pub body_bytes: u64,
    /// Number of upstream calls for this request.
    pub upstream_calls: u32,
    /// Total time spent waiting for the response heads of all upstream calls.
    pub upstream: Duration,
    /// Time from the arrival of the request head to the end of the response.
    pub elapsed: Duration,
    /// The internal cause if the gateway answered with its own error; never sent to the client.
    pub cause: &'a str,
}

impl AccessRecord<'_> {
    pub(super) fn elapsed_us(&self) -> u64 {
        micros(self.elapsed)
    }

    pub(super) fn upstream_us(&self) -> u64 {
        micros(self.upstream)
    }

    pub(super) fn shown_address(&self) -> impl fmt::Display + use<> {
        struct ShownAddress(Option<IpAddr>);
        impl fmt::Display for ShownAddress {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.map_or(Ok(()), |address| address.fmt(f))
            }
        }
        ShownAddress(self.address)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
