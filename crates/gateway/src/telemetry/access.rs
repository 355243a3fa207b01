//! The access log: one event per answered request, under the target `switchback::access`, so that it can be filtered or
//! shipped apart from the rest. It holds facts about the exchange and nothing of its content: no values of paths, no query
//! string, no header values, no bodies.

use super::access_line::with_line;
use super::escape::Escaped;
use super::log;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// The tracing target of all access events.
pub(crate) const TARGET: &str = "switchback::access";

/// What one line of the access log says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessRecord<'a> {
    pub request_id: &'a str,
    /// `X-Request-Id` as the client sent it, empty where it did not.
    pub client_request_id: &'a str,
    /// 32 hexadecimal digits of the W3C trace, empty when there is none.
    pub trace_id: &'a str,
    pub method: &'a str,
    /// The path as a template, such as `/v2/things/{id}`: values in a path may be personal data or tokens.
    pub path: &'a str,
    /// `GET /things/{id}` of the contract; empty when nothing matched.
    pub operation: &'a str,
    /// The enrolled name, empty before authentication.
    pub client: &'a str,
    /// Where the client connects from, as far as trusted proxies say; nothing where that is not to be logged.
    pub address: Option<IpAddr>,
    /// The phase of the operation; empty where nothing matched, or the request did not get so far.
    pub phase: &'a str,
    /// The upstream whose answer it is, or `gateway`.
    pub answered_by: &'a str,
    /// The word of the [`crate::outcome::Outcome`].
    pub outcome: &'a str,
    pub status: u16,
    /// Bytes of the answer's body that were handed to the connection.
    pub body_bytes: u64,
    /// Calls made to upstreams for this request.
    pub upstream_calls: u32,
    /// How much of that was waiting for the heads of upstreams' answers, all calls together.
    pub upstream: Duration,
    /// From the arrival of the head to the end of the answer.
    pub elapsed: Duration,
    /// The inner cause when the gateway answered an error itself; never sent to the client.
    pub cause: &'a str,
}

impl AccessRecord<'_> {
    /// Writes the line. Texts from outside are escaped. Whether it is wanted was asked before: see [`TARGET`].
    pub(crate) fn emit(&self) {
        match log::direct() {
            Some((outlet, format)) => with_line(self, format, |line| outlet.put(line)),
            None => self.event(),
        }
    }

    /// Writes the line by way of the subscriber, whatever it is.
    pub(super) fn event(&self) {
        tracing::info!(
            target: "switchback::access",
            request_id = %Escaped(self.request_id),
            client_request_id = %Escaped(self.client_request_id),
            trace_id = %Escaped(self.trace_id),
            method = %Escaped(self.method),
            path = %Escaped(self.path),
            operation = self.operation,
            client = %Escaped(self.client),
            address = %self.shown_address(),
            phase = %Escaped(self.phase),
            answered_by = %Escaped(self.answered_by),
            outcome = %Escaped(self.outcome),
            status = self.status,
            body_bytes = self.body_bytes,
            upstream_calls = self.upstream_calls,
            upstream_us = self.upstream_us(),
            elapsed_us = self.elapsed_us(),
            cause = %Escaped(self.cause),
        );
    }

    pub(super) fn elapsed_us(&self) -> u64 {
        micros(self.elapsed)
    }

    pub(super) fn upstream_us(&self) -> u64 {
        micros(self.upstream)
    }

    pub(super) fn shown_address(&self) -> impl fmt::Display + use<> {
        struct Shown(Option<IpAddr>);
        impl fmt::Display for Shown {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.map_or(Ok(()), |address| address.fmt(f))
            }
        }
        Shown(self.address)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(record: AccessRecord<'_>) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || record.emit());
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    const RECORD: AccessRecord<'static> = AccessRecord {
        request_id: "r1",
        client_request_id: "",
        trace_id: "",
        method: "GET",
        path: "/v2/things",
        operation: "GET /things",
        client: "acme",
        address: None,
        phase: "translated",
        answered_by: "v3",
        outcome: "translated",
        status: 200,
        body_bytes: 12,
        upstream_calls: 1,
        upstream: Duration::from_micros(900),
        elapsed: Duration::from_micros(1500),
        cause: "",
    };

    #[test]
    fn one_request_is_one_line_with_its_facts() {
        let line = logged(RECORD);
        assert_eq!(line.lines().count(), 1);
        for fact in [
            "switchback::access",
            "operation=\"GET /things\"",
            "client=acme",
            "status=200",
            "answered_by=v3 outcome=translated",
            "upstream_us=900 elapsed_us=1500",
        ] {
            assert!(line.contains(fact), "{fact} in {line}");
        }
    }

    #[test]
    fn a_forged_path_stays_on_its_line() {
        let line = logged(AccessRecord { path: "/a\nINFO forged\u{1b}[0m", client: "x\r\ny", ..RECORD });
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(!line.trim_end().chars().any(char::is_control), "{line}");
    }
}
