//! What is recorded of the dual run, and reading it back: evidence per operation, samples of what differed, planned calls,
//! and learnt noise. The store keeps it as text; what the text means is here.

use super::job::Subject;
use super::phases::{Current, Phases};
use crate::store::{EvidenceKey, EvidenceRow, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::diff::{Noise, NotReadBack, Record, SkipReason, Summary};

/// What one entry counts for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) side: Arc<str>,
    pub(super) operation: Arc<str>,
    pub(super) phase: &'static str,
    pub(super) period: i64,
    /// The hash of the pack by which it was translated.
    pub(super) pack: Arc<str>,
}

impl Key {
    pub(super) fn of(subject: &Subject) -> Key {
        Key {
            side: Arc::clone(&subject.side),
            operation: Arc::clone(&subject.operation),
            phase: subject.phase.name(),
            period: subject.period,
            pack: Arc::clone(subject.knowledge.pack_hash()),
        }
    }

    pub(super) fn stored(&self) -> EvidenceKey {
        EvidenceKey {
            side: self.side.to_string(),
            operation: self.operation.to_string(),
            phase: self.phase.to_owned(),
            period: self.period,
            pack: self.pack.to_string(),
        }
    }
}

/// One thing to be recorded. Everything in it is redacted.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Key,
    pub(super) at_ms: i64,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Compared(Record),
    /// A difference that did not repeat.
    Unsettled(Record),
    /// How the plan of an effect looked, and the calls that it would have made.
    Planned(Record, PlannedRecord),
    /// The same, of a plan that depends on a reading which nobody answered.
    Unread(Record, PlannedRecord),
    /// How an effect looked on both sides.
    ReadBack(Record),
    /// A write whose effect was not read back.
    NotReadBack(NotReadBack),
    /// An event that one side alone sent.
    Unpaired {
        record: Record,
        is_missing: bool,
    },
    /// How long the same reading of either side took.
    Timed {
        reference: Duration,
        candidate: Duration,
    },
    Skipped(SkipReason),
    Learnt(Arc<Noise>),
}

/// The calls of a plan that were not made, as they are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedRecord {
    /// In the order in which they would have been made.
    pub calls: Vec<CallRecord>,
    /// Readings that were made for it.
    pub readings: u32,
    /// Whether these are all calls with an effect that there would have been.
    pub is_all: bool,
    /// What the plan would have answered, where it came that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why it was followed no further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
}

/// A call that was planned and not made, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// As the contract of the called side writes it.
    pub operation: String,
    /// The call's method, in capitals.
    pub method: String,
    /// Redacted.
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
    /// What was compared, redacted.
    #[serde(flatten)]
    pub record: Record,
    /// The plan of a write; only where `kind` is `planned`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<PlannedRecord>,
}

/// The kinds of records in the store.
pub(super) const DIFFERENCE: &str = "difference";
pub(super) const UNSETTLED: &str = "unsettled";
pub(super) const PLANNED: &str = "planned";
pub(super) const READ_BACK: &str = "read_back";
pub(super) const UNPAIRED: &str = "unpaired";

/// Evidence of one period of an operation in a phase, under one pack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Which period, by the number of the store's write that began it; 0 for the configured phase.
    pub period: i64,
    /// The hash of the pack by which all of it was translated.
    pub pack: String,
    /// What was counted in that time.
    #[serde(flatten)]
    pub summary: Summary,
}

/// What was recorded, for reading. Clones share the store.
#[derive(Clone, Debug)]
pub struct Archive {
    store: Store,
}

impl Archive {
    /// Reads and writes what this store keeps of the dual run.
    pub fn new(store: Store) -> Archive {
        Archive { store }
    }

    /// Everything that was counted; of each operation the newest period comes last.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn evidence(&self) -> Result<Vec<Evidence>, StoreError> {
        Ok(self.store.evidence().await?.iter().filter_map(read).collect())
    }

    /// One summary per operation: of its newest period in which anything was counted. By `phases`, a summary of an earlier
    /// period has the phase that the operation is in now; without them that is not known.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn summaries(&self, phases: Option<&Phases>) -> Result<Vec<Summary>, StoreError> {
        let current = phases.map(Phases::current).unwrap_or_default();
        let mut newest: HashMap<(String, String), Summary> = HashMap::new();
        for evidence in self.evidence().await? {
            let is_of = |one: &&Current| {
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

    /// One summary per operation of which anything was counted in its present period, under the pack that serves.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn current(&self, phases: &Phases) -> Result<Vec<Summary>, StoreError> {
        let current = phases.current();
        let is_current = |evidence: &Evidence| current.iter().any(|current| current.has(evidence));
        let mut summaries: Vec<Summary> =
            self.evidence().await?.into_iter().filter(is_current).map(|evidence| evidence.summary).collect();
        summaries.sort_by(|a, b| (&a.side, &a.operation).cmp(&(&b.side, &b.operation)));
        Ok(summaries)
    }

    /// Whether anything was ever counted of an operation.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn has_counted(&self, operation: &str) -> Result<bool, StoreError> {
        Ok(self.store.evidence().await?.iter().any(|row| row.key.operation == operation))
    }

    /// The kept records, oldest first, `count` of the newest at most; of one operation where that is given.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn records(&self, operation: Option<&str>, count: u32) -> Result<Vec<Exported>, StoreError> {
        let rows = self.store.dual_records(operation, count).await?;
        Ok(rows.iter().filter_map(|row| serde_json::from_str(&row.record).ok()).collect())
    }

    /// The kept records of one operation of one side, oldest first, `count` of the newest at most.
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

    /// The same as JSON Lines.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn export(&self, operation: Option<&str>, count: u32) -> Result<String, StoreError> {
        let rows = self.store.dual_records(operation, count).await?;
        Ok(rows.into_iter().flat_map(|row| [row.record, "\n".to_owned()]).collect())
    }
}

/// What cannot be read was written by a later version of this program: it is left out.
fn read(row: &EvidenceRow) -> Option<Evidence> {
    let summary = serde_json::from_str(&row.summary).ok()?;
    Some(Evidence { period: row.key.period, pack: row.key.pack.clone(), summary })
}

/// What was learnt, by side and operation.
pub(super) async fn learnt(store: &Store) -> Result<HashMap<(String, String), Arc<Noise>>, StoreError> {
    let rows = store.learnt_noise().await?;
    let noise = |text: &str| serde_json::from_str(text).ok().map(Arc::new);
    Ok(rows.into_iter().filter_map(|row| Some(((row.side, row.operation), noise(&row.noise)?))).collect())
}
