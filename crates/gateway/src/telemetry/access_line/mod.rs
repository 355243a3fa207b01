//! The access log: one event per answered request, under the target `switchback::access`, so that
//! it can be filtered or shipped separately. It records facts about the exchange but none of its
//! content: no path values, query strings, header values or bodies.

mod fields;
mod format;

pub(crate) use fields::AccessRecord;

use super::escape::Escaped;
use super::log;
use format::with_line;

impl AccessRecord<'_> {
    /// Writes the line and escapes external text. The caller has checked that [`TARGET`] is
    /// enabled.
    pub(crate) fn emit(&self) {
        match log::direct() {
            Some((outlet, format)) => with_line(self, format, |line| outlet.put(line)),
            None => self.event(),
        }
    }

    /// Writes the line through the installed subscriber.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

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
