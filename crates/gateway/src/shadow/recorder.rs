//! Writes entries to the store in batches, in the background, so that a slow or unavailable store
//! delays no caller. Entries beyond the queue's capacity are counted and dropped.

use super::record::{
    DIFFERENCE, EntryKind, Exported, PLANNED, READ_BACK, RecordEntry, RecordKey, UNPAIRED, UNSETTLED,
};
use crate::clock::Clock;
use crate::store::{DualBatch, DualRecordRow, NoiseRow, Store};
use crate::telemetry::metrics;
use std::collections::HashMap;
use std::time::Duration;
use switchback_engine::diff::{Comparison, Record, SkipReason, Summary, Verdict};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;

/// Maximum number of queued entries.
const WAITING_MAX: usize = 4_096;
/// Interval between batches.
const EVERY: Duration = Duration::from_secs(1);
/// Maximum number of log lines about differences per batch; the store has all of them.
const LOG_LINES_MAX: usize = 20;

/// A queue of entries. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    entries: Sender<RecordEntry>,
}

/// Writes queued entries.
pub(super) struct RecordWriter {
    entries: Receiver<RecordEntry>,
    store: Store,
    clock: Clock,
    /// Records stored per operation and kind.
    records_max: u32,
    keep: Duration,
    /// Set when no more entries will arrive.
    finish: watch::Receiver<bool>,
}

impl Recorder {
    pub(super) fn new(
        store: Store,
        records_max: u32,
        keep: Duration,
        finish: watch::Receiver<bool>,
    ) -> (Recorder, RecordWriter) {
        let (entries, waiting) = channel(WAITING_MAX);
        let clock = store.clock().clone();
        (Recorder { entries }, RecordWriter { entries: waiting, store, clock, records_max, keep, finish })
    }

    /// Queues an entry. Never waits.
    pub(super) fn record(&self, entry: RecordEntry) {
        // Before the queue: the metrics remain complete even if the store loses entries.
        count(&entry);
        // Dropped evidence only delays a decision of the gate; waiting would delay requests.
        if self.entries.try_send(entry).is_err() {
            metrics::shadow_unrecorded(1);
        }
    }
}

/// Counts an entry in the metrics immediately.
fn count(entry: &RecordEntry) {
    let (side, operation) = (&*entry.key.side, &*entry.key.operation);
    match &entry.what {
        EntryKind::Compared(record) => {
            let result = match record.comparison.verdict() {
                Verdict::Equal => "equal",
                Verdict::Different => "different",
                Verdict::EqualSoFar => "equal_so_far",
            };
            metrics::shadow_compared(side, operation, result);
            metrics::shadow_findings(
                side,
                operation,
                record.comparison.findings.iter().map(|f| f.kind.word()),
            );
            let excused = &record.comparison.excused;
            let why =
                [("expected", excused.expected), ("declared", excused.declared), ("learnt", excused.learnt)];
            metrics::shadow_noise(side, operation, why);
        }
        EntryKind::Unsettled(record) => {
            metrics::shadow_compared(side, operation, "unsettled");
            metrics::shadow_findings(
                side,
                operation,
                record.comparison.findings.iter().map(|f| f.kind.word()),
            );
        }
        EntryKind::Planned(record, _) => {
            let is_right = record.comparison.findings.is_empty();
            metrics::shadow_compared(side, operation, if is_right { "planned" } else { "planned_wrong" });
            metrics::shadow_findings(
                side,
                operation,
                record.comparison.findings.iter().map(|f| f.kind.word()),
            );
        }
        EntryKind::Unread(..) => metrics::shadow_dropped(side, operation, SkipReason::CandidateFailed.name()),
        EntryKind::ReadBack(record) => {
            let is_alike = !is_different(&record.comparison);
            metrics::shadow_compared(
                side,
                operation,
                if is_alike { "read_back" } else { "read_back_different" },
            );
            metrics::shadow_findings(
                side,
                operation,
                record.comparison.findings.iter().map(|f| f.kind.word()),
            );
        }
        EntryKind::Unpaired { record, is_missing } => {
            metrics::shadow_compared(side, operation, if *is_missing { "missing" } else { "extra" });
            metrics::shadow_findings(
                side,
                operation,
                record.comparison.findings.iter().map(|f| f.kind.word()),
            );
        }
        EntryKind::Skipped(why) => metrics::shadow_dropped(side, operation, why.name()),
        // The metric counts comparisons, and no comparison took place.
        EntryKind::NotReadBack(_) => {}
        EntryKind::Timed { .. } => metrics::shadow_compared(side, operation, "timed"),
        EntryKind::Learnt(_) => metrics::shadow_compared(side, operation, "twice"),
    }
}

impl RecordWriter {
    /// Writes until `finish` is set or the last [`Recorder`] is dropped, and the queue is empty.
    pub(super) async fn run(mut self) {
        let mut waiting = Vec::new();
        loop {
            let open = self.gather(&mut waiting).await;
            if !waiting.is_empty() {
                self.write(std::mem::take(&mut waiting)).await;
            }
            if !open {
                return;
            }
        }
    }

    /// Collects entries until the next batch is due. Returns `false` when no more will arrive.
    async fn gather(&mut self, waiting: &mut Vec<RecordEntry>) -> bool {
        let clock = self.clock.clone();
        let time = clock.sleep(EVERY);
        tokio::pin!(time);
        loop {
            tokio::select! {
                entry = self.entries.recv() => match entry {
                    Some(entry) => waiting.push(entry),
                    None => return false,
                },
                // Closing rejects new entries, and `recv` still returns the queued ones before
                // `None`.
                _ = self.finish.wait_for(|finish| *finish), if !self.entries.is_closed() => self.entries.close(),
                () = &mut time => return true,
            }
            // Bounds the size of the transaction, during which other writers wait.
            if waiting.len() >= WAITING_MAX {
                return true;
            }
        }
    }

    async fn write(&self, entries: Vec<RecordEntry>) {
        log(&entries);
        let now_ms = self.clock.unix_ms();
        let count = entries.len() as u64;
        let mut by_period: HashMap<_, Vec<&RecordEntry>> = HashMap::new();
        for entry in entries.iter().filter(|entry| !matches!(entry.what, EntryKind::Learnt(_))) {
            by_period.entry(entry.key.to_row_key()).or_default().push(entry);
        }
        let keep_ms = i64::try_from(self.keep.as_millis()).unwrap_or(i64::MAX);
        let batch = DualBatch {
            evidence: by_period.keys().cloned().collect(),
            records: entries.iter().filter_map(record).collect(),
            noise: noise(&entries),
            records_max: self.records_max,
            forget_before_ms: now_ms.saturating_sub(keep_ms),
            at_ms: now_ms,
        };
        let written = self.store.write_dual(&batch, |key, before| {
            // An unreadable summary is replaced: its evidence is lost, which is safe, since the
            // gate then waits.
            let new = || Summary::new(&key.side, &key.operation, now_ms);
            let mut summary = before.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(new);
            for entry in by_period.get(key).into_iter().flatten() {
                add(&mut summary, entry);
            }
            summary.phase.clone_from(&key.phase);
            serde_json::to_string(&summary).expect("counts and texts serialise")
        });
        if let Err(error) = written.await {
            tracing::warn!(%error, entries = count, "records of the dual run were not written and are lost");
            metrics::shadow_unrecorded(count);
        }
    }
}

fn add(summary: &mut Summary, entry: &RecordEntry) {
    match &entry.what {
        EntryKind::Compared(record) => summary.add(entry.at_ms, &record.comparison),
        EntryKind::Unsettled(record) => summary.add_unsettled(entry.at_ms, &record.comparison),
        EntryKind::Planned(record, _) => summary.add_planned(entry.at_ms, &record.comparison),
        EntryKind::ReadBack(record) => summary.add_read_back(entry.at_ms, record),
        EntryKind::Unpaired { record, is_missing } => {
            summary.add_unpaired(entry.at_ms, *is_missing, &record.comparison);
        }
        EntryKind::NotReadBack(why) => *summary.counts.not_read_back.entry(*why).or_default() += 1,
        EntryKind::Skipped(why) => summary.counts.skip(*why),
        EntryKind::Unread(..) => summary.counts.skip(SkipReason::CandidateFailed),
        EntryKind::Timed { reference, candidate } => summary.timed.add(*reference, *candidate),
        EntryKind::Learnt(_) => {}
    }
}

/// Converts an entry to a stored sample: differences and all planned calls.
fn record(entry: &RecordEntry) -> Option<DualRecordRow> {
    let (kind, record, planned) = match &entry.what {
        EntryKind::Compared(record) if is_different(&record.comparison) => (DIFFERENCE, record, None),
        EntryKind::Unsettled(record) => (UNSETTLED, record, None),
        EntryKind::Planned(record, planned) | EntryKind::Unread(record, planned) => {
            (PLANNED, record, Some(planned.clone()))
        }
        EntryKind::ReadBack(record) if is_different(&record.comparison) => (READ_BACK, record, None),
        EntryKind::Unpaired { record, .. } => (UNPAIRED, record, None),
        EntryKind::Compared(_)
        | EntryKind::ReadBack(_)
        | EntryKind::NotReadBack(_)
        | EntryKind::Timed { .. }
        | EntryKind::Skipped(_)
        | EntryKind::Learnt(_) => return None,
    };
    let exported = Exported { kind: kind.to_owned(), record: record.clone(), planned };
    Some(DualRecordRow {
        side: exported.record.side.clone(),
        operation: exported.record.operation.clone(),
        kind: kind.to_owned(),
        at_ms: exported.record.at_ms,
        record: serde_json::to_string(&exported).expect("counts and texts serialise"),
    })
}

fn is_different(comparison: &Comparison) -> bool {
    comparison.verdict() == Verdict::Different
}

/// Returns the last learned noise of each operation.
fn noise(entries: &[RecordEntry]) -> Vec<NoiseRow> {
    let mut last: HashMap<&RecordKey, String> = HashMap::new();
    for entry in entries {
        if let EntryKind::Learnt(noise) = &entry.what {
            let text = serde_json::to_string(&**noise).expect("counts and texts serialise");
            last.insert(&entry.key, text);
        }
    }
    let row = |(key, noise): (&RecordKey, String)| NoiseRow {
        side: key.side.to_string(),
        operation: key.operation.to_string(),
        noise,
    };
    last.into_iter().map(row).collect()
}

/// Logs one line per pair that differs, up to a limit. All content is redacted.
fn log(entries: &[RecordEntry]) {
    let different = |entry: &&RecordEntry| match &entry.what {
        EntryKind::Compared(record)
        | EntryKind::Unsettled(record)
        | EntryKind::Planned(record, _)
        | EntryKind::ReadBack(record)
        | EntryKind::Unpaired { record, .. } => is_different(&record.comparison),
        EntryKind::Unread(..)
        | EntryKind::NotReadBack(_)
        | EntryKind::Timed { .. }
        | EntryKind::Skipped(_)
        | EntryKind::Learnt(_) => false,
    };
    let count = entries.iter().filter(different).count();
    for entry in entries.iter().filter(different).take(LOG_LINES_MAX) {
        if let EntryKind::Compared(record)
        | EntryKind::Unsettled(record)
        | EntryKind::Planned(record, _)
        | EntryKind::ReadBack(record)
        | EntryKind::Unpaired { record, .. } = &entry.what
        {
            log_line(entry.key.phase, record);
        }
    }
    if count > LOG_LINES_MAX {
        let more = count - LOG_LINES_MAX;
        tracing::info!(target: "switchback::shadow", more, "further comparisons found differences");
    }
}

fn log_line(phase: &str, record: &Record) {
    let findings = &record.comparison.findings;
    let Some(first) = findings.first() else { return };
    tracing::info!(
        target: "switchback::shadow",
        request_id = record.request_id.as_deref().unwrap_or_default(),
        operation = record.operation,
        client = record.client.as_deref().unwrap_or_default(),
        phase,
        read_back = record.read_back.as_deref().unwrap_or_default(),
        findings = findings.len(),
        kind = first.kind.word(),
        place = first.place,
        cause = %first.cause,
        "both sides differ"
    );
}
