//! Formats an access log line byte for byte as the subscriber of `log` does, but directly. Every
//! request pays for this event, and general formatting costs as much as routing and authentication
//! together. A test compares the two.

use super::fields::{AccessRecord, TARGET};
use crate::telemetry::escape::Escaped;
use crate::telemetry::log::LogFormat;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;

/// Passes the line of `record` to `write`.
pub(super) fn with_line(record: &AccessRecord<'_>, format: LogFormat, write: impl FnOnce(&[u8])) {
    thread_local! {
        static LINE: RefCell<String> = const { RefCell::new(String::new()) };
    }
    LINE.with_borrow_mut(|line| {
        line.clear();
        add_line(record, format, line);
        write(line.as_bytes());
    });
}

/// The text before the value of a field in each format. Each is one constant, because names are known
/// when the program is built.
struct Name {
    text: &'static str,
    json: &'static str,
}

macro_rules! name {
    ($name:literal) => {
        Name { text: concat!(" ", $name, "="), json: concat!(",\"", $name, "\":") }
    };
}

fn add_line(record: &AccessRecord<'_>, format: LogFormat, line: &mut String) {
    let mut fields = match format {
        LogFormat::Text => {
            add_timestamp(line);
            line.push_str("  INFO ");
            line.push_str(TARGET);
            line.push(':');
            LineWriter { line, is_json: false }
        }
        LogFormat::Json => {
            line.push_str("{\"timestamp\":\"");
            add_timestamp(line);
            line.push_str("\",\"level\":\"INFO\"");
            LineWriter { line, is_json: true }
        }
    };
    fields.push_escaped(name!("request_id"), record.request_id);
    fields.push_escaped(name!("client_request_id"), record.client_request_id);
    fields.push_escaped(name!("trace_id"), record.trace_id);
    fields.push_escaped(name!("method"), record.method);
    fields.push_escaped(name!("path"), record.path);
    fields.push_quoted(name!("operation"), record.operation);
    fields.push_escaped(name!("client"), record.client);
    fields.address(name!("address"), record);
    fields.push_escaped(name!("phase"), record.phase);
    fields.push_escaped(name!("answered_by"), record.answered_by);
    fields.push_escaped(name!("outcome"), record.outcome);
    fields.number(name!("status"), record.status.into());
    fields.number(name!("body_bytes"), record.body_bytes);
    fields.number(name!("upstream_calls"), record.upstream_calls.into());
    fields.number(name!("upstream_us"), record.upstream_us());
    fields.number(name!("elapsed_us"), record.elapsed_us());
    fields.push_escaped(name!("cause"), record.cause);
    if format == LogFormat::Json {
        line.push_str(",\"target\":\"");
        line.push_str(TARGET);
        line.push_str("\"}");
    }
    line.push('\n');
}

struct LineWriter<'l> {
    line: &'l mut String,
    is_json: bool,
}

impl LineWriter<'_> {
    fn name(&mut self, name: Name) {
        self.line.push_str(if self.is_json { name.json } else { name.text });
    }

    /// Adds a field with external text, escaped.
    fn push_escaped(&mut self, name: Name, text: &str) {
        self.name(name);
        match (self.is_json, is_plain(text)) {
            (false, true) => self.line.push_str(text),
            // Writing to a string cannot fail.
            (false, false) => _ = write!(self.line, "{}", Escaped(text)),
            (true, true) => self.between_quotes(text),
            (true, false) => self.json(&Escaped(text).to_string()),
        }
    }

    /// Adds a field with the gateway's own text in `Debug` form, as the subscriber does.
    fn push_quoted(&mut self, name: Name, text: &str) {
        self.name(name);
        match (self.is_json, is_plain(text)) {
            (_, true) => self.between_quotes(text),
            (false, false) => _ = write!(self.line, "{text:?}"),
            (true, false) => self.json(text),
        }
    }

    /// Adds the address. Consecutive lines of a thread usually share it, so the formatted text is
    /// cached.
    fn address(&mut self, name: Name, record: &AccessRecord<'_>) {
        thread_local! {
            static SHOWN: RefCell<(Option<IpAddr>, String)> = const { RefCell::new((None, String::new())) };
        }
        self.name(name);
        SHOWN.with_borrow_mut(|(address, shown)| {
            if *address != record.address {
                *address = record.address;
                *shown = record.shown_address().to_string();
            }
            match self.is_json {
                true => self.between_quotes(shown),
                false => self.line.push_str(shown),
            }
        });
    }

    fn number(&mut self, name: Name, number: u64) {
        self.name(name);
        self.line.push_str(itoa::Buffer::new().format(number));
    }

    fn between_quotes(&mut self, text: &str) {
        self.line.push('"');
        self.line.push_str(text);
        self.line.push('"');
    }

    fn json(&mut self, text: &str) {
        let _ = write!(self.line, "{}", serde_json::Value::from(text));
    }
}

/// Returns whether a text is identical with and without escapes of any kind, as most are.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') & (*byte != b'"') & (*byte != b'\\');
    text.len() <= 512 && text.as_bytes().iter().fold(true, |plain, byte| plain & is_plain(byte))
}

/// Adds a timestamp such as `2026-11-21T14:20:17.123456Z`. All but the fraction is cached for a
/// second.
fn add_timestamp(line: &mut String) {
    thread_local! {
        static SECOND: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    SECOND.with_borrow_mut(|(second, text)| {
        if *second != now.as_secs() || text.is_empty() {
            *second = now.as_secs();
            *text = whole_second(now.as_secs());
        }
        line.push_str(text);
    });
    let mut micros = now.subsec_micros();
    let mut fraction = *b".000000Z";
    for digit in fraction[1..7].iter_mut().rev() {
        *digit = b'0' + (micros % 10) as u8;
        micros /= 10;
    }
    line.push_str(std::str::from_utf8(&fraction).unwrap_or_default());
}

fn whole_second(unix: u64) -> String {
    let moment = i64::try_from(unix).ok().and_then(|unix| OffsetDateTime::from_unix_timestamp(unix).ok());
    let moment = moment.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = (moment.year(), u8::from(moment.month()), moment.day());
    format!("{year}-{month:02}-{day:02}T{:02}:{:02}:{:02}", moment.hour(), moment.minute(), moment.second())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn subscribers_line(record: &AccessRecord<'_>, format: LogFormat) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let builder = tracing_subscriber::fmt().with_writer(move || writer.clone());
        match format {
            LogFormat::Text => {
                tracing::subscriber::with_default(builder.with_ansi(false).finish(), || record.event());
            }
            LogFormat::Json => {
                let json = builder.json().flatten_event(true).with_current_span(false).finish();
                tracing::subscriber::with_default(json, || record.event());
            }
        }
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    /// The line with `T` for its moment, whose digits differ.
    fn timeless(line: &str) -> String {
        let at = line.find("20").unwrap();
        let (before, rest) = line.split_at(at);
        let (moment, after) = rest.split_at(27);
        assert!(moment.ends_with('Z') && moment.as_bytes()[10] == b'T', "{line}");
        format!("{before}T{after}")
    }

    #[test]
    fn the_line_is_the_subscribers_own() {
        let long = "é".repeat(600);
        for (path, operation, client, cause, address) in [
            ("/v2/things", "GET /things", "acme", "", Some("192.0.2.1")),
            (
                "/a\nINFO forged\u{1b}[0m",
                "GET /\"things\"\\",
                "x\r\ny",
                "a \"quote\" and \\",
                Some("2001:db8::1"),
            ),
            ("/é\u{202e}/%0a", "", "ö", long.as_str(), None),
        ] {
            let record = AccessRecord {
                request_id: "00f067aa0ba902b7",
                client_request_id: cause,
                trace_id: "0af7651916cd43dd8448eb211c80319c",
                method: "GET",
                path,
                operation,
                client,
                address: address.map(|address| address.parse().unwrap()),
                phase: "canary",
                answered_by: "v3",
                outcome: "translated",
                status: 200,
                body_bytes: u64::MAX,
                upstream_calls: 2,
                upstream: Duration::from_micros(7),
                elapsed: Duration::from_micros(1500),
                cause,
            };
            for format in [LogFormat::Text, LogFormat::Json] {
                let mut line = String::new();
                add_line(&record, format, &mut line);
                assert_eq!(timeless(&line), timeless(&subscribers_line(&record, format)));
            }
        }
    }

    #[test]
    fn seconds_are_written_as_dates() {
        assert_eq!(whole_second(0), "1970-01-01T00:00:00");
        assert_eq!(whole_second(1_709_210_096), "2024-02-29T12:34:56");
    }
}
