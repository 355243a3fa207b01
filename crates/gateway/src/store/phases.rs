//! Phases set at run time, and every phase transition of an operation. The module `shadow`
//! interprets them.

use super::db::{DbRow, args};
use super::{GATE_HELD, NewHistory, RolloutWrite, Store, StoreError, new_id};

/// The phase that was set for an operation, or its reset to the configured one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PhaseRow {
    pub side: String,
    pub operation: String,
    pub phase: String,
    /// In millionths, for phases with a share.
    pub share: Option<i64>,
    pub set_by: String,
    /// Wall time in milliseconds since 1970.
    pub set_ms: i64,
    /// Number of the write that set it.
    pub change: i64,
}

/// A transition of an operation, stored permanently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransitionRow {
    pub side: String,
    pub operation: String,
    pub from: String,
    pub to: String,
    pub by: String,
    /// Name of the operator, or empty.
    pub who: String,
    /// Wall time in milliseconds since 1970.
    pub at_ms: i64,
    pub evidence: String,
}

/// A hold that prevents the gate from moving an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HoldRow {
    pub side: String,
    pub operation: String,
    pub who: String,
    pub reason: String,
    /// Wall time in milliseconds since 1970.
    pub at_ms: i64,
}

impl Store {
    /// Returns all phases that were set or reset.
    pub(crate) async fn phases(&self) -> Result<Vec<PhaseRow>, StoreError> {
        let sql = "SELECT side, operation, phase, share, set_by, set_ms, change FROM phases ORDER BY side, operation";
        self.db.rows(sql, &[]).await?.iter().map(phase).collect()
    }

    /// Sets a phase, adds its transition and writes the rollout. Does nothing and returns `false` if
    /// the current row is not that of write `seen` (`None`: no row), or the rollout not the expected
    /// one, because another writer was faster.
    pub(crate) async fn put_phase(
        &self,
        row: &PhaseRow,
        moved: &TransitionRow,
        seen: Option<i64>,
        rollout: RolloutWrite<'_>,
    ) -> Result<bool, StoreError> {
        let (side, operation) = (row.side.as_str(), row.operation.as_str());
        let mut tx = self.write().await?;
        let found = tx
            .row("SELECT change FROM phases WHERE side = $1 AND operation = $2", args![side, operation])
            .await?;
        // The decision was based on the evidence of the period that `seen` started. If another
        // gateway or an operator has changed the phase since, that evidence does not apply to the
        // new one.
        let is_seen = found.map(|row| row.int("change")).transpose()? == seen;
        if !is_seen || !self.by(&moved.who).write_rollout(&mut tx, (side, operation), rollout).await? {
            tx.undo().await;
            return Ok(false);
        }
        tx.run("DELETE FROM phases WHERE side = $1 AND operation = $2", args![side, operation]).await?;
        let change = tx.change();
        tx.run(
            "INSERT INTO phases (side, operation, phase, share, set_by, set_ms, change) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            args![side, operation, row.phase.as_str(), row.share, row.set_by.as_str(), row.set_ms, change],
        )
        .await?;
        tx.run(
            "INSERT INTO phase_moves (id, side, operation, moved_from, moved_to, moved_by, who, at_ms, evidence, change) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            args![
                new_id().as_str(),
                side,
                operation,
                moved.from.as_str(),
                moved.to.as_str(),
                moved.by.as_str(),
                moved.who.as_str(),
                moved.at_ms,
                moved.evidence.as_str(),
                change,
            ],
        )
        .await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Returns all holds.
    pub(crate) async fn holds(&self) -> Result<Vec<HoldRow>, StoreError> {
        let sql = "SELECT side, operation, who, reason, at_ms FROM phase_holds";
        self.db.rows(sql, &[]).await?.iter().map(hold).collect()
    }

    /// Adds a hold, or replaces its reason.
    pub(crate) async fn put_hold(&self, row: &HoldRow) -> Result<(), StoreError> {
        let (side, operation) = (row.side.as_str(), row.operation.as_str());
        let mut tx = self.write().await?;
        tx.run("DELETE FROM phase_holds WHERE side = $1 AND operation = $2", args![side, operation]).await?;
        tx.run(
            "INSERT INTO phase_holds (side, operation, who, reason, at_ms) VALUES ($1, $2, $3, $4, $5)",
            args![side, operation, row.who.as_str(), row.reason.as_str(), row.at_ms],
        )
        .await?;
        let subject = format!("{side} {operation}");
        let entry =
            NewHistory { kind: GATE_HELD, subject: &subject, detail: &row.reason, ..NewHistory::default() };
        self.by(&row.who).enter(&mut tx, &entry).await?;
        tx.commit().await
    }

    /// Removes a hold on behalf of `who`.
    pub(crate) async fn end_hold(
        &self,
        side: &str,
        operation: &str,
        who: &str,
        reason: &str,
    ) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        tx.run("DELETE FROM phase_holds WHERE side = $1 AND operation = $2", args![side, operation]).await?;
        let subject = format!("{side} {operation}");
        let entry =
            NewHistory { kind: "gate released", subject: &subject, detail: reason, ..NewHistory::default() };
        self.by(who).enter(&mut tx, &entry).await?;
        tx.commit().await
    }

    /// Returns the last `count` transitions, newest first.
    pub(crate) async fn phase_transitions(&self, count: u32) -> Result<Vec<TransitionRow>, StoreError> {
        let sql = "SELECT side, operation, moved_from, moved_to, moved_by, who, at_ms, evidence FROM phase_moves \
                   ORDER BY change DESC LIMIT $1";
        self.db.rows(sql, args![i64::from(count)]).await?.iter().map(parse_transition).collect()
    }
}

fn phase(row: &DbRow) -> Result<PhaseRow, StoreError> {
    Ok(PhaseRow {
        side: row.text("side")?,
        operation: row.text("operation")?,
        phase: row.text("phase")?,
        share: row.int_or_none("share")?,
        set_by: row.text("set_by")?,
        set_ms: row.int("set_ms")?,
        change: row.int("change")?,
    })
}

fn hold(row: &DbRow) -> Result<HoldRow, StoreError> {
    Ok(HoldRow {
        side: row.text("side")?,
        operation: row.text("operation")?,
        who: row.text("who")?,
        reason: row.text("reason")?,
        at_ms: row.int("at_ms")?,
    })
}

pub(super) fn parse_transition(row: &DbRow) -> Result<TransitionRow, StoreError> {
    Ok(TransitionRow {
        side: row.text("side")?,
        operation: row.text("operation")?,
        from: row.text("moved_from")?,
        to: row.text("moved_to")?,
        by: row.text("moved_by")?,
        who: row.text("who")?,
        at_ms: row.int("at_ms")?,
        evidence: row.text("evidence")?,
    })
}
