//! A snapshot of the program's metrics for display: totals since the start, by outcome and
//! operation. It is parsed from the text of `/metrics`, the recorder's only public view. Requests
//! are not affected.

use super::metrics::{
    ADDED_DURATION, CONNECTIONS, DURATION_BUCKETS, Metrics, REQUEST_DURATION, REQUESTS, REQUESTS_IN_FLIGHT,
    SHADOW_COMPARED, label,
};
use crate::outcome::{OUTCOMES, Outcome};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

/// Number of duration buckets: those of the recorder, and one for larger values.
pub(crate) const BUCKETS: usize = DURATION_BUCKETS.len() + 1;

/// Duration histogram since the start. Replicas exchange it.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Durations {
    /// Number of durations in each bucket; the last one is beyond all bounds.
    pub buckets: [u64; BUCKETS],
    /// Sum of all durations in seconds.
    pub seconds: f64,
}

/// Metrics of one operation of a side, over all clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationReading {
    /// Request counts in the order of [`OUTCOMES`].
    pub outcomes: [u64; OUTCOMES.len()],
    /// Times from the request head to the end of the response, in seconds.
    pub durations: Durations,
    /// Number of clients that have called it.
    pub clients: usize,
}

/// A snapshot of the metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricsSnapshot {
    /// By side and operation. Calls that match no operation have empty names.
    pub operations: BTreeMap<(String, String), OperationReading>,
    /// Responses and events that the dual run compared, and the number that differed, were
    /// unsettled or existed on one side only; by side and operation.
    pub compared: BTreeMap<(String, String), (u64, u64)>,
    /// Time that the gateway added to requests with upstream calls, up to the response head.
    pub added: Durations,
    /// Requests in flight.
    pub requests_in_flight: f64,
    /// Open client connections.
    pub connections: f64,
}

impl Durations {
    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the quantile for `share`: exact to the bucket, and interpolated linearly within it.
    /// Returns `None` if there are no durations.
    pub fn quantile(&self, share: f64) -> Option<Quantile> {
        let count = self.count();
        let wanted = share * count as f64;
        let mut below = 0.0;
        for (at, members) in self.buckets.iter().map(|members| *members as f64).enumerate() {
            if members > 0.0 && below + members >= wanted {
                let from = if at == 0 { 0.0 } else { DURATION_BUCKETS[at - 1] };
                let Some(to) = DURATION_BUCKETS.get(at) else { return Some(Quantile::Beyond(from)) };
                return Some(Quantile::Seconds(from + (to - from) * ((wanted - below) / members)));
            }
            below += members;
        }
        None
    }

    /// Returns the durations recorded since an earlier snapshot.
    pub fn since(&self, before: &Durations) -> Durations {
        let mut buckets = self.buckets;
        for (bucket, before) in buckets.iter_mut().zip(before.buckets) {
            *bucket = bucket.saturating_sub(before);
        }
        Durations { buckets, seconds: (self.seconds - before.seconds).max(0.0) }
    }

    /// Adds another histogram to this one.
    pub fn add(&mut self, more: &Durations) {
        for (bucket, more) in self.buckets.iter_mut().zip(more.buckets) {
            *bucket += more;
        }
        self.seconds += more.seconds;
    }
}

/// A quantile of durations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantile {
    /// A value in seconds.
    Seconds(f64),
    /// A value above the last bound of the recorder, given in seconds.
    Beyond(f64),
}

impl Quantile {
    /// Returns the value in seconds, or the last bound if the value is beyond it.
    pub fn seconds(self) -> f64 {
        match self {
            Quantile::Seconds(seconds) | Quantile::Beyond(seconds) => seconds,
        }
    }
}

impl OperationReading {
    /// Returns the number of requests.
    pub fn requests(&self) -> u64 {
        self.outcomes.iter().sum()
    }
}

impl Metrics {
    /// Returns a snapshot of the current metrics.
    pub fn reading(&self) -> MetricsSnapshot {
        parse(&self.render())
    }

    /// Returns the current values of metrics without buckets, each summed over its labels, in the
    /// order of `names`.
    pub fn sums<const N: usize>(&self, names: [&str; N]) -> [f64; N] {
        sums(&self.render(), names)
    }
}

fn sums<const N: usize>(text: &str, names: [&str; N]) -> [f64; N] {
    let mut sums = [0.0; N];
    for line in text.lines() {
        let Some((head, value)) = line.rsplit_once(' ') else { continue };
        let name = head.split_once('{').map_or(head, |(name, _)| name);
        let at = names.iter().position(|wanted| *wanted == name);
        if let (Some(at), Ok(value)) = (at, value.parse::<f64>()) {
            sums[at] += value;
        }
    }
    sums
}

fn parse(text: &str) -> MetricsSnapshot {
    let mut reading = MetricsSnapshot::default();
    let mut clients: BTreeMap<(String, String), HashSet<Cow<'_, str>>> = BTreeMap::new();
    let mut added_cumulated = [0; BUCKETS];
    let bucket_line = |line: &'static str| format!("{line}_bucket");
    let (request_bucket, added_bucket) = (bucket_line(REQUEST_DURATION), bucket_line(ADDED_DURATION));
    let (request_sum, added_sum) = (format!("{REQUEST_DURATION}_sum"), format!("{ADDED_DURATION}_sum"));
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((head, value)) = line.rsplit_once(' ') else { continue };
        let (name, labels) =
            head.split_once('{').map_or((head, ""), |(name, rest)| (name, rest.trim_end_matches('}')));
        let Ok(value) = value.parse::<f64>() else { continue };
        // Counts stay far below 2^53, the limit of exact integers in floats.
        let whole = value as u64;
        match name {
            REQUESTS => {
                let Some(outcome) = label(labels, "outcome") else { continue };
                let Some(outcome) = Outcome::parse(&outcome) else { continue };
                let key = key(labels);
                // Unauthenticated calls form one row but do not count as a client.
                if whole > 0
                    && let Some(client) = label(labels, "client")
                    && client != super::metrics::NONE
                {
                    clients.entry(key.clone()).or_default().insert(client);
                }
                reading.operations.entry(key).or_default().outcomes[outcome as usize] += whole;
            }
            SHADOW_COMPARED => {
                let is_different = match label(labels, "result").as_deref() {
                    Some("different" | "unsettled" | "missing" | "extra") => true,
                    Some("equal") => false,
                    _ => continue,
                };
                let counted = reading.compared.entry(key(labels)).or_default();
                counted.0 += whole;
                counted.1 += if is_different { whole } else { 0 };
            }
            REQUESTS_IN_FLIGHT => reading.requests_in_flight = value,
            CONNECTIONS => reading.connections = value,
            _ if name == request_bucket => {
                let Some(at) = bucket(labels) else { continue };
                reading.operations.entry(key(labels)).or_default().durations.buckets[at] = whole;
            }
            _ if name == request_sum => {
                reading.operations.entry(key(labels)).or_default().durations.seconds = value
            }
            _ if name == added_bucket => {
                let Some(at) = bucket(labels) else { continue };
                added_cumulated[at] += whole;
            }
            _ if name == added_sum => reading.added.seconds += value,
            _ => {}
        }
    }
    reading.added.buckets = bucket_counts(added_cumulated);
    for (key, operation) in &mut reading.operations {
        operation.durations.buckets = bucket_counts(operation.durations.buckets);
        operation.clients = clients.get(key).map_or(0, HashSet::len);
    }
    reading
}

/// Returns the side and the operation of a line.
fn key(labels: &str) -> (String, String) {
    let named = |name| {
        let value = label(labels, name).unwrap_or_default();
        if value == super::metrics::NONE { String::new() } else { value.into_owned() }
    };
    (named("side"), named("operation"))
}

/// Returns the bucket of a line.
fn bucket(labels: &str) -> Option<usize> {
    let bound = label(labels, "le")?;
    if bound == "+Inf" {
        return Some(BUCKETS - 1);
    }
    let bound: f64 = bound.parse().ok()?;
    DURATION_BUCKETS.iter().position(|known| (known - bound).abs() < f64::EPSILON)
}

/// Converts cumulative counts to counts per bucket.
fn bucket_counts(cumulated: [u64; BUCKETS]) -> [u64; BUCKETS] {
    let mut apart = cumulated;
    for at in (1..BUCKETS).rev() {
        apart[at] = cumulated[at].saturating_sub(cumulated[at - 1]);
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::super::metrics::{RequestMeter, install, shadow_compared};
    use super::*;
    use std::time::Duration;

    #[test]
    fn metrics_are_summed_over_their_labels() {
        let text = "# TYPE a counter\na{x=\"1\"} 2\na{x=\"2\"} 3\nab 7\nb 1\n";
        assert_eq!(sums(text, ["b", "a", "c"]), [1.0, 5.0, 0.0]);
    }

    #[test]
    fn what_was_counted_is_read_by_operation_with_its_clients() {
        let metrics = install();
        let operation = "GET /reading-test/{\"id\"}";
        let before = metrics.reading().added;
        for (client, outcome, ms, added) in [
            ("reading a", Outcome::Translated, Some(3), Some(1)),
            ("reading b", Outcome::Translated, Some(3), Some(1)),
            ("reading b", Outcome::GatewayError, Some(60_000), None),
            // Of no client that is known, and an event stream.
            ("", Outcome::Forwarded, None, None),
        ] {
            let time = |ms: Option<u64>| ms.map(Duration::from_millis);
            RequestMeter::new(client, operation, "old").record(outcome, Some(200), time(ms), time(added));
        }
        let reading = metrics.reading();
        assert_eq!(reading.added.since(&before).count(), 2, "of requests with a call");
        let found = &reading.operations[&("old".to_owned(), operation.to_owned())];
        assert_eq!((found.requests(), found.outcomes[0], found.outcomes[7], found.clients), (4, 2, 1, 2));
        assert_eq!((found.durations.count(), found.durations.buckets[BUCKETS - 1]), (3, 1));
        assert!((found.durations.seconds - 60.006).abs() < 1e-6);
    }

    #[test]
    fn comparisons_are_read_by_side_with_all_that_did_not_agree() {
        let metrics = install();
        for (side, result, times) in [
            ("old", "equal", 4),
            ("old", "different", 2),
            ("old", "unsettled", 1),
            ("old", "missing", 1),
            ("old", "timed", 9),
            ("new", "equal", 3),
        ] {
            (0..times).for_each(|_| shadow_compared(side, "GET /compared-test", result));
        }
        let compared = metrics.reading().compared;
        let of = |side: &str| compared[&(side.to_owned(), "GET /compared-test".to_owned())];
        assert_eq!((of("old"), of("new")), ((8, 4), (3, 0)));
    }

    #[test]
    fn quantiles_are_within_their_bucket() {
        let mut durations = Durations::default();
        assert_eq!(durations.quantile(0.5), None);
        durations.buckets[3] = 90;
        durations.buckets[6] = 10;
        let seconds = |share| durations.quantile(share).unwrap().seconds();
        assert!(seconds(0.5) > 0.0025 && seconds(0.5) < 0.005, "{}", seconds(0.5));
        assert!(seconds(0.99) > 0.025 && seconds(0.99) <= 0.05, "{}", seconds(0.99));
        let mut endless = durations;
        endless.buckets[BUCKETS - 1] = 10;
        assert_eq!(endless.quantile(0.99), Some(Quantile::Beyond(30.0)), "the recorder has no bound beyond");
        let before = Durations { buckets: [0; BUCKETS], seconds: 0.0 };
        assert_eq!(durations.since(&before), durations);
        let mut both = before;
        both.add(&durations);
        assert_eq!(both, durations);
    }
}
