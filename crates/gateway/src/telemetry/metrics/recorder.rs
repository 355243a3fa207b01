//! The recorder behind `/metrics`: its text output, and tables derived from that text.

use super::{
    BUILD_INFO, NONE, PROCESS_CPU, PROCESS_MAX_FDS, PROCESS_OPEN_FDS, PROCESS_RESIDENT, PROCESS_STARTED,
    PROCESS_THREADS, PROCESS_VIRTUAL, REQUESTS, be_born, describe,
};
use crate::telemetry::process;
use metrics::{counter, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Upper bounds of the duration histograms, in seconds: from well under a translation to beyond the
/// total timeout.
pub(in crate::telemetry) const DURATION_BUCKETS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// Reads recorded metrics. Cheap to clone; all clones read the single recorder of the process.
#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
}

/// Installs the recorder of this process on the first call, and returns a reader of it on every
/// call. If a program that embeds the library has already installed another recorder, that one
/// receives the metrics and the reader is empty.
pub fn install() -> Metrics {
    static INSTALLED: OnceLock<PrometheusHandle> = OnceLock::new();
    let handle = INSTALLED.get_or_init(|| {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_duration_seconds".to_owned()), &DURATION_BUCKETS)
            .expect("the list of buckets is not empty")
            .build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("another metrics recorder is installed, so /metrics remains empty");
        }
        describe();
        gauge!(BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        be_born();
        handle
    });
    Metrics { handle: handle.clone() }
}

/// Updates the process metrics.
fn process() {
    let Some(process) = process::current() else { return };
    // Counters of the recorder hold integers.
    counter!(PROCESS_CPU).absolute(process.cpu.as_secs());
    gauge!(PROCESS_RESIDENT).set(process.resident_bytes);
    gauge!(PROCESS_VIRTUAL).set(process.virtual_bytes);
    gauge!(PROCESS_THREADS).set(process.threads);
    gauge!(PROCESS_MAX_FDS).set(process.max_fds);
    if let Some(started) = process.started {
        gauge!(PROCESS_STARTED).set(started.as_secs_f64());
    }
    if let Some(open) = process.open_fds {
        gauge!(PROCESS_OPEN_FDS).set(open);
    }
}

impl Metrics {
    /// Renders the Prometheus text format, version 0.0.4, without gauges of removed subjects.
    /// Updates the process metrics first.
    pub fn render(&self) -> String {
        process();
        without_absent(self.handle.render())
    }

    /// Drops samples that have been aggregated. Call it periodically, or histograms grow.
    pub fn upkeep(&self) {
        self.handle.run_upkeep();
    }

    /// Returns finished requests over all clients, by side and operation (such as `v1 GET
    /// /things`), then by outcome.
    pub fn requests_by_operation(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let mut table: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for (labels, value) in samples(&self.render(), REQUESTS) {
            let (Some(side), Some(operation), Some(outcome)) =
                (label(labels, "side"), label(labels, "operation"), label(labels, "outcome"))
            else {
                continue;
            };
            let named: Vec<_> = [side, operation].into_iter().filter(|name| name != NONE).collect();
            let row = if named.is_empty() { NONE.to_owned() } else { named.join(" ") };
            *table.entry(row).or_default().entry(outcome.into_owned()).or_default() += value;
        }
        table
    }
}

/// Removes samples without a value, to which gauges of removed subjects are set.
fn without_absent(text: String) -> String {
    const ABSENT: &str = " NaN\n";
    if !text.contains(ABSENT) {
        return text;
    }
    text.split_inclusive('\n').filter(|line| line.starts_with('#') || !line.ends_with(ABSENT)).collect()
}

/// Returns the labels and the values of one counter. The recorder's text is its only public view.
fn samples<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
    text.lines().filter_map(move |line| {
        let (labels, value) = line.strip_prefix(name)?.strip_prefix('{')?.rsplit_once("} ")?;
        Some((labels, value.parse().ok()?))
    })
}

/// Returns the value of a label in `a="x",b="y"`. A value cannot be mistaken for a label, since
/// quotes in values are escaped.
pub(in crate::telemetry) fn label<'l>(labels: &'l str, name: &str) -> Option<Cow<'l, str>> {
    let mut rest = labels;
    while let Some((found, quoted)) = rest.split_once("=\"") {
        let bytes = quoted.as_bytes();
        let mut end = 0;
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let value = quoted.get(..end)?;
        if found.trim_start_matches(',') == name {
            return Some(unescape(value));
        }
        rest = quoted.get(end + 1..)?;
    }
    None
}

/// Replaces `\"`, `\\` and `\n`.
fn unescape(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') {
        return Cow::Borrowed(value);
    }
    let mut chars = value.chars();
    let next = || match chars.next()? {
        '\\' => chars.next().map(|escaped| if escaped == 'n' { '\n' } else { escaped }),
        plain => Some(plain),
    };
    std::iter::from_fn(next).collect()
}

#[cfg(test)]
mod tests {
    use super::super::config_reloaded;
    use super::*;

    #[test]
    fn installing_twice_reads_the_same_numbers() {
        let (first, second) = (install(), install());
        config_reloaded(true, 1_700_000_000);
        assert!(first.render().contains("switchback_config_reload_total{result=\"success\"}"));
        assert!(second.render().contains("switchback_config_reload_total{result=\"success\"}"));
    }

    #[test]
    fn a_gauge_without_a_value_is_no_sample() {
        use super::super::{TokenLife, token_life, token_state};
        let metrics = install();
        let of_gone = || -> Vec<String> {
            let text = metrics.render();
            let mut lines: Vec<_> = text.lines().filter(|line| line.contains("\"gone\"")).collect();
            lines.sort_unstable();
            lines.into_iter().map(str::to_owned).collect()
        };
        token_state("gone", "active", Some(true));
        token_life("gone", Some(TokenLife::new(5_000, 60_000)));
        assert_eq!(
            of_gone(),
            [
                "switchback_token_expiry_timestamp_seconds{client=\"gone\"} 65",
                "switchback_token_lifetime_seconds{client=\"gone\"} 60",
                "switchback_token_state{client=\"gone\",state=\"active\"} 1",
            ]
        );
        token_state("gone", "active", None);
        token_life("gone", None);
        assert_eq!(of_gone(), [""; 0]);
        token_state("gone", "active", Some(false));
        assert_eq!(of_gone(), ["switchback_token_state{client=\"gone\",state=\"active\"} 0"]);
    }

    #[test]
    fn labels_come_back_unescaped() {
        let labels = r#"client="a \"side=\\",side="v1",path="\\n\n",operation="GET /x/{id}""#;
        let of = |name| label(labels, name);
        assert_eq!(of("client").as_deref(), Some(r#"a "side=\"#));
        assert_eq!(of("path").as_deref(), Some("\\n\n"));
        assert_eq!((of("side").as_deref(), of("operation").as_deref()), (Some("v1"), Some("GET /x/{id}")));
        assert_eq!(of("outcome"), None);
    }
}
