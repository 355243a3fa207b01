//! Records of the dual run and access to them: evidence per operation, samples of differences,
//! planned calls, and learned noise. The store contains them as text; this module defines its
//! format.

use super::evidence::PeriodEvidence;
use super::job::Subject;
use super::phases::{CurrentPhase, Phases};
use crate::store::{EvidenceKey, EvidenceRow, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::diff::{Noise, NotReadBack, Record, SkipReason, Summary};

/// The counter that an entry belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RecordKey {
    pub(super) side: Arc<str>,
    pub(super) operation: Arc<str>,
    pub(super) phase: &'static str,
    pub(super) period: i64,
    /// The hash of the pack that translated the request.
    pub(super) pack: Arc<str>,
}

impl RecordKey {
    pub(super) fn from_subject(subject: &Subject) -> RecordKey {
        RecordKey {
            side: Arc::clone(&subject.side),
            operation: Arc::clone(&subject.operation),
            phase: subject.phase.name(),
            period: subject.period,
            pack: Arc::clone(subject.knowledge.pack_hash()),
        }
    }

    pub(super) fn to_row_key(&self) -> EvidenceKey {
        EvidenceKey {
            side: self.side.to_string(),
            operation: self.operation.to_string(),
            phase: self.phase.to_owned(),
            period: self.period,
            pack: self.pack.to_string(),
        }
    }
}

/// An entry to record, fully redacted.
#[derive(Debug)]
pub(super) struct RecordEntry {
    pub(super) key: RecordKey,
    pub(super) at_ms: i64,
    pub(super) what: EntryKind,
}

#[derive(Debug)]
pub(super) enum EntryKind {
    Compared(Record),
    /// A difference that did not repeat.
    Unsettled(Record),
    /// The result of validating the plan of an effect, and its calls.
    Planned(Record, PlannedRecord),
    /// The same for a plan that depends on a failed read.
    Unread(Record, PlannedRecord),
    /// The comparison of an effect on both sides.
    ReadBack(Record),
    /// A write whose effect was not read back.
    NotReadBack(NotReadBack),
    /// An event that only one side sent.
    Unpaired {
        record: Record,
        is_missing: bool,
    },
    /// Response times of the same read on both sides.
    Timed {
        reference: Duration,
        candidate: Duration,
    },
    Skipped(SkipReason),
    Learnt(Arc<Noise>),
}

/// Stored form of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedRecord {
    /// In the order in which they would have been made.
    pub calls: Vec<PlannedCallRecord>,
    /// Number of reads made for the plan.
    pub readings: u32,
    /// Whether the plan lists every call with an effect.
    pub is_all: bool,
    /// The status of the planned response, if the plan reached it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The reason why the plan was not followed further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
}

/// Stored form of a planned call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedCallRecord {
    /// The operation as named in the contract of the called side.
    pub operation: String,
    /// The call's method, in capitals.
    pub method: String,
    /// Path and query, redacted.
    pub target: String,
    /// Its members, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<serde_json::Value>,
}

/// One line of an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exported {
    /// `difference`, `unsettled`, `planned`, `read_back` or `unpaired`.
    pub kind: String,
    /// The comparison, redacted.
    #[serde(flatten)]
    pub record: Record,
    /// The plan of a write; set only if `kind` is `planned`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<PlannedRecord>,
}

/// The kinds of records in the store.
pub(super) const DIFFERENCE: &str = "difference";
pub(super) const UNSETTLED: &str = "unsettled";
pub(super) const PLANNED: &str = "planned";
pub(super) const READ_BACK: &str = "read_back";
pub(super) const UNPAIRED: &str = "unpaired";

/// Read access to the records. Clones share the store.
#[derive(Clone, Debug)]
pub struct Archive {
    store: Store,
}

impl Archive {
    /// Creates an archive on a store.
    pub fn new(store: Store) -> Archive {
        Archive { store }
    }

    /// Returns all evidence; for each operation, the newest period is last.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn evidence(&self) -> Result<Vec<PeriodEvidence>, StoreError> {
        Ok(self.store.evidence().await?.iter().filter_map(parse_row).collect())
    }

    /// Returns one summary per operation, of its newest period with any counts. With `phases`, a
    /// summary of an earlier period also contains the current phase.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn summaries(&self, phases: Option<&Phases>) -> Result<Vec<Summary>, StoreError> {
        let current = phases.map(Phases::current).unwrap_or_default();
        let mut newest: HashMap<(String, String), Summary> = HashMap::new();
        for evidence in self.evidence().await? {
            let is_of = |one: &&CurrentPhase| {
                one.side == evidence.summary.side && one.operation == evidence.summary.operation
            };
            let present = current.iter().find(is_of).filter(|current| !current.has(&evidence));
            let present_phase = present.map(|current| current.phase.name().to_owned());
            let summary = Summary { present_phase, ..evidence.summary };
            newest.insert((summary.side.clone(), summary.operation.clone()), summary);
        }
        let mut summaries: Vec<Summary> = newest.into_values().collect();
        summaries.sort_by(|a, b| (&a.side, &a.operation).cmp(&(&b.side, &b.operation)));
        Ok(summaries)
    }

    /// Returns one summary per operation that has counts in its current period under the serving
    /// pack.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn current(&self, phases: &Phases) -> Result<Vec<Summary>, StoreError> {
        let current = phases.current();
        let is_current = |evidence: &PeriodEvidence| current.iter().any(|current| current.has(evidence));
        let mut summaries: Vec<Summary> =
            self.evidence().await?.into_iter().filter(is_current).map(|evidence| evidence.summary).collect();
        summaries.sort_by(|a, b| (&a.side, &a.operation).cmp(&(&b.side, &b.operation)));
        Ok(summaries)
    }

    /// Returns whether any evidence of an operation exists.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn has_counted(&self, operation: &str) -> Result<bool, StoreError> {
        Ok(self.store.evidence().await?.iter().any(|row| row.key.operation == operation))
    }

    /// Returns at most the `count` newest records, oldest first, optionally of one operation.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn records(&self, operation: Option<&str>, count: u32) -> Result<Vec<Exported>, StoreError> {
        let rows = self.store.dual_records(operation, count).await?;
        Ok(rows.iter().filter_map(|row| serde_json::from_str(&row.record).ok()).collect())
    }

    /// Returns at most the `count` newest records of one operation of one side, oldest first.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn samples(
        &self,
        side: &str,
        operation: &str,
        count: u32,
    ) -> Result<Vec<Exported>, StoreError> {
        let rows = self.store.dual_records_of(side, operation, count).await?;
        Ok(rows.iter().filter_map(|row| serde_json::from_str(&row.record).ok()).collect())
    }

    /// Returns the records of [`Archive::records`] as JSON Lines.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn export(&self, operation: Option<&str>, count: u32) -> Result<String, StoreError> {
        let rows = self.store.dual_records(operation, count).await?;
        Ok(rows.into_iter().flat_map(|row| [row.record, "\n".to_owned()]).collect())
    }
}

/// Parses a row. Returns `None` if a later version of this program wrote it.
fn parse_row(row: &EvidenceRow) -> Option<PeriodEvidence> {
    let summary = serde_json::from_str(&row.summary).ok()?;
    Some(PeriodEvidence { period: row.key.period, pack: row.key.pack.clone(), summary })
}

/// Reads the learned noise, by side and operation.
pub(super) async fn learnt(store: &Store) -> Result<HashMap<(String, String), Arc<Noise>>, StoreError> {
    let rows = store.learnt_noise().await?;
    let noise = |text: &str| serde_json::from_str(text).ok().map(Arc::new);
    Ok(rows.into_iter().filter_map(|row| Some(((row.side, row.operation), noise(&row.noise)?))).collect())
}
