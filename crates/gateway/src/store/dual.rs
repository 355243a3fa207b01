//! Records of the dual run: evidence per period of an operation in a phase, samples, and learned
//! noise. All of it is redacted text; `shadow` defines its format.

use super::db::{DbRow, Tx, args};
use super::{Store, StoreError, new_id};

/// A period of an operation in a phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EvidenceKey {
    pub side: String,
    pub operation: String,
    pub phase: String,
    /// The number of the write that started it; 0 for the configured phase.
    pub period: i64,
    /// The hash of the translating pack; empty for counts recorded before packs were distinguished.
    pub pack: String,
}

/// The evidence of a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EvidenceRow {
    pub key: EvidenceKey,
    pub summary: String,
}

/// A sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DualRecordRow {
    pub side: String,
    pub operation: String,
    /// The kind; the number of records is limited per operation and kind.
    pub kind: String,
    /// Wall time in milliseconds since 1970.
    pub at_ms: i64,
    pub record: String,
}

/// The learned noise of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoiseRow {
    pub side: String,
    pub operation: String,
    pub noise: String,
}

/// A batch of records.
#[derive(Clone, Debug, Default)]
pub(crate) struct DualBatch {
    /// The periods to update.
    pub evidence: Vec<EvidenceKey>,
    pub records: Vec<DualRecordRow>,
    pub noise: Vec<NoiseRow>,
    /// Maximum number of records per operation and kind.
    pub records_max: u32,
    /// Age limit of stored data, wall time in milliseconds since 1970.
    pub forget_before_ms: i64,
    /// The current wall time in milliseconds since 1970.
    pub at_ms: i64,
}

/// Selects the records of an operation of any side.
const RECORDS_OF_OPERATION: &str = "SELECT side, operation, kind, at_ms, record FROM dual_records \
     WHERE operation = $2 ORDER BY at_ms DESC, change DESC, id LIMIT $1";

impl Store {
    /// Writes a batch in one transaction. `merged` computes the new summary of a period from the
    /// stored one, so that concurrent counts of other processes are preserved.
    pub(crate) async fn write_dual(
        &self,
        batch: &DualBatch,
        mut merged: impl FnMut(&EvidenceKey, Option<&str>) -> String + Send,
    ) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        for key in &batch.evidence {
            // Read in the writing transaction, so that counts which another process adds are not
            // overwritten.
            let before = summary_of(&mut tx, key).await?;
            let summary = merged(key, before.as_deref());
            tx.run(
                "INSERT INTO dual_evidence (side, operation, phase, stay, pack, summary, updated_ms) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (side, operation, phase, stay, pack) \
                 DO UPDATE SET summary = excluded.summary, updated_ms = excluded.updated_ms",
                args![
                    key.side.as_str(),
                    key.operation.as_str(),
                    key.phase.as_str(),
                    key.period,
                    key.pack.as_str(),
                    summary.as_str(),
                    batch.at_ms
                ],
            )
            .await?;
        }
        for row in &batch.records {
            let change = tx.change();
            tx.run(
                "INSERT INTO dual_records (id, side, operation, kind, at_ms, record, change) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
                args![
                    new_id().as_str(),
                    row.side.as_str(),
                    row.operation.as_str(),
                    row.kind.as_str(),
                    row.at_ms,
                    row.record.as_str(),
                    change
                ],
            )
            .await?;
        }
        for row in &batch.noise {
            tx.run(
                "INSERT INTO dual_noise (side, operation, noise, updated_ms) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (side, operation) DO UPDATE SET noise = excluded.noise, updated_ms = excluded.updated_ms",
                args![row.side.as_str(), row.operation.as_str(), row.noise.as_str(), batch.at_ms],
            )
            .await?;
        }
        forget(&mut tx, batch).await?;
        tx.commit().await
    }

    /// Returns all evidence, in the order in which its periods started.
    pub(crate) async fn evidence(&self) -> Result<Vec<EvidenceRow>, StoreError> {
        let sql =
            "SELECT side, operation, phase, stay, pack, summary FROM dual_evidence ORDER BY stay, updated_ms";
        self.db.rows(sql, &[]).await?.iter().map(evidence).collect()
    }

    /// Returns the newest `count` records, oldest first, optionally of one operation.
    pub(crate) async fn dual_records(
        &self,
        operation: Option<&str>,
        count: u32,
    ) -> Result<Vec<DualRecordRow>, StoreError> {
        let count = i64::from(count);
        let rows = match operation {
            None => {
                let sql = "SELECT side, operation, kind, at_ms, record FROM dual_records \
                           ORDER BY at_ms DESC, change DESC, id LIMIT $1";
                self.db.rows(sql, args![count]).await?
            }
            Some(operation) => self.db.rows(RECORDS_OF_OPERATION, args![count, operation]).await?,
        };
        rows.iter().rev().map(record).collect()
    }

    /// Returns the newest `count` records of one operation of one side, oldest first.
    pub(crate) async fn dual_records_of(
        &self,
        side: &str,
        operation: &str,
        count: u32,
    ) -> Result<Vec<DualRecordRow>, StoreError> {
        let sql = "SELECT side, operation, kind, at_ms, record FROM dual_records \
                   WHERE operation = $2 AND side = $3 ORDER BY at_ms DESC, change DESC, id LIMIT $1";
        let rows = self.db.rows(sql, args![i64::from(count), operation, side]).await?;
        rows.iter().rev().map(record).collect()
    }

    /// Returns all learned noise.
    pub(crate) async fn learnt_noise(&self) -> Result<Vec<NoiseRow>, StoreError> {
        let rows = self.db.rows("SELECT side, operation, noise FROM dual_noise", &[]).await?;
        rows.iter()
            .map(|row| {
                let (side, operation) = (row.text("side")?, row.text("operation")?);
                Ok(NoiseRow { side, operation, noise: row.text("noise")? })
            })
            .collect()
    }
}

async fn summary_of(tx: &mut Tx, key: &EvidenceKey) -> Result<Option<String>, StoreError> {
    let sql = "SELECT summary FROM dual_evidence \
               WHERE side = $1 AND operation = $2 AND phase = $3 AND stay = $4 AND pack = $5";
    let (side, operation) = (key.side.as_str(), key.operation.as_str());
    let row = tx.row(sql, args![side, operation, key.phase.as_str(), key.period, key.pack.as_str()]).await?;
    row.map(|row| row.text("summary")).transpose()
}

/// Enforces the limits: deletes expired data, and the oldest records beyond the maximum of each
/// changed operation.
async fn forget(tx: &mut Tx, batch: &DualBatch) -> Result<(), StoreError> {
    let before = batch.forget_before_ms;
    tx.run("DELETE FROM dual_records WHERE at_ms < $1", args![before]).await?;
    tx.run("DELETE FROM dual_evidence WHERE updated_ms < $1", args![before]).await?;
    tx.run("DELETE FROM dual_noise WHERE updated_ms < $1", args![before]).await?;
    let mut touched: Vec<(&str, &str, &str)> = batch
        .records
        .iter()
        .map(|row| (row.side.as_str(), row.operation.as_str(), row.kind.as_str()))
        .collect();
    touched.sort_unstable();
    touched.dedup();
    for (side, operation, kind) in touched {
        tx.run(
            "DELETE FROM dual_records WHERE side = $1 AND operation = $2 AND kind = $3 AND id NOT IN \
             (SELECT id FROM dual_records WHERE side = $1 AND operation = $2 AND kind = $3 \
              ORDER BY at_ms DESC, change DESC, id LIMIT $4)",
            args![side, operation, kind, i64::from(batch.records_max)],
        )
        .await?;
    }
    Ok(())
}

fn evidence(row: &DbRow) -> Result<EvidenceRow, StoreError> {
    let key = EvidenceKey {
        side: row.text("side")?,
        operation: row.text("operation")?,
        phase: row.text("phase")?,
        period: row.int("stay")?,
        pack: row.text("pack")?,
    };
    Ok(EvidenceRow { key, summary: row.text("summary")? })
}

fn record(row: &DbRow) -> Result<DualRecordRow, StoreError> {
    Ok(DualRecordRow {
        side: row.text("side")?,
        operation: row.text("operation")?,
        kind: row.text("kind")?,
        at_ms: row.int("at_ms")?,
        record: row.text("record")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::store::MissingStore;
    use crate::store::seal::{KeyRing, SealingKey};

    /// With a million records, one that reads all of them takes most of a second for the few of an operation.
    #[tokio::test]
    async fn the_records_of_an_operation_are_found_without_reading_those_of_others() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let url = format!("sqlite:{}/store.db", folder.path().display());
        let ring = KeyRing::parse(&[SealingKey::generate()]).expect("a ring");
        let store =
            Store::open(&url, ring, Clock::paused_at(0), MissingStore::Create).await.expect("it opens");
        // Statements live as long as the program.
        let explained = format!("EXPLAIN QUERY PLAN {RECORDS_OF_OPERATION}").leak();
        let rows = store.db.rows(explained, args![1_i64, "GET /things"]).await.expect("a plan");
        let steps: Vec<String> = rows.iter().map(|row| row.text("detail").expect("a text")).collect();
        assert!(steps.iter().any(|step| step.starts_with("SEARCH dual_records USING INDEX")), "{steps:?}");
    }
}
