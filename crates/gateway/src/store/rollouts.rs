//! Rollouts of operations. The module `shadow` interprets them.

use super::db::{DbRow, Tx, args};
use super::{NewHistory, ROLLOUT_ABORTED, Store, StoreError};

/// The rollout of an operation, running or over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RolloutRow {
    pub side: String,
    pub operation: String,
    pub plan: String,
    pub state: String,
    /// The phase before the rollout.
    pub back_phase: String,
    /// Its share in millionths, for phases with a share.
    pub back_share: Option<i64>,
    /// The author of the state.
    pub who: String,
    /// The reason of the state, or empty.
    pub reason: String,
    /// Wall time in milliseconds since 1970.
    pub started_ms: i64,
    /// Wall time of the last change in milliseconds since 1970.
    pub updated_ms: i64,
    /// Number of the write that set it.
    pub change: i64,
}

/// The effect of a write on the rollout of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RolloutWrite<'w> {
    /// The rollout stays as it is. Nothing is written if it is not that of write `seen` (`None`:
    /// no rollout).
    Keep { seen: Option<i64> },
    /// The rollout is replaced, under the same condition. `entry` is the kind of its entry in the
    /// history, if it has one.
    Put { row: &'w RolloutRow, seen: Option<i64>, entry: Option<&'static str> },
    /// The rollout is removed, if there is one.
    Remove,
}

impl Store {
    /// Returns all rollouts.
    pub(crate) async fn rollouts(&self) -> Result<Vec<RolloutRow>, StoreError> {
        let sql = "SELECT side, operation, plan, state, back_phase, back_share, who, reason, started_ms, updated_ms, \
                   change FROM rollouts ORDER BY side, operation";
        self.db.rows(sql, &[]).await?.iter().map(rollout).collect()
    }

    /// Replaces a rollout without a transition. Returns `false` if another writer was faster.
    pub(crate) async fn put_rollout(
        &self,
        row: &RolloutRow,
        seen: Option<i64>,
        entry: &'static str,
    ) -> Result<bool, StoreError> {
        let mut tx = self.write().await?;
        let write = RolloutWrite::Put { row, seen, entry: Some(entry) };
        if !self.write_rollout(&mut tx, (&row.side, &row.operation), write).await? {
            tx.undo().await;
            return Ok(false);
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Writes a rollout within the transaction of its transition. Returns `false` if another writer
    /// was faster.
    pub(super) async fn write_rollout(
        &self,
        tx: &mut Tx,
        (side, operation): (&str, &str),
        write: RolloutWrite<'_>,
    ) -> Result<bool, StoreError> {
        let sql = "SELECT plan, state, change FROM rollouts WHERE side = $1 AND operation = $2";
        let found = tx.row(sql, args![side, operation]).await?;
        let change = found.as_ref().map(|row| row.int("change")).transpose()?;
        let subject = format!("{side} {operation}");
        match write {
            RolloutWrite::Keep { seen } => return Ok(change == seen),
            RolloutWrite::Put { seen, .. } if change != seen => return Ok(false),
            RolloutWrite::Put { .. } => {}
            RolloutWrite::Remove => {
                let Some(found) = found else { return Ok(true) };
                if ["running", "paused"].contains(&found.text("state")?.as_str()) {
                    let detail = format!("plan `{}`: an operator set the phase", found.text("plan")?);
                    let entry = NewHistory {
                        kind: ROLLOUT_ABORTED,
                        subject: &subject,
                        detail: &detail,
                        ..NewHistory::default()
                    };
                    self.enter(tx, &entry).await?;
                }
            }
        }
        tx.run("DELETE FROM rollouts WHERE side = $1 AND operation = $2", args![side, operation]).await?;
        let RolloutWrite::Put { row, entry, .. } = write else { return Ok(true) };
        tx.run(
            "INSERT INTO rollouts (side, operation, plan, state, back_phase, back_share, who, reason, started_ms, \
             updated_ms, change) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            args![
                side,
                operation,
                row.plan.as_str(),
                row.state.as_str(),
                row.back_phase.as_str(),
                row.back_share,
                row.who.as_str(),
                row.reason.as_str(),
                row.started_ms,
                row.updated_ms,
                tx.change(),
            ],
        )
        .await?;
        if let Some(kind) = entry {
            let colon = if row.reason.is_empty() { "" } else { ": " };
            let detail = format!("plan `{}`{colon}{}", row.plan, row.reason);
            let entry = NewHistory { kind, subject: &subject, detail: &detail, ..NewHistory::default() };
            self.by(&row.who).enter(tx, &entry).await?;
        }
        Ok(true)
    }
}

fn rollout(row: &DbRow) -> Result<RolloutRow, StoreError> {
    Ok(RolloutRow {
        side: row.text("side")?,
        operation: row.text("operation")?,
        plan: row.text("plan")?,
        state: row.text("state")?,
        back_phase: row.text("back_phase")?,
        back_share: row.int_or_none("back_share")?,
        who: row.text("who")?,
        reason: row.text("reason")?,
        started_ms: row.int("started_ms")?,
        updated_ms: row.int("updated_ms")?,
        change: row.int("change")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::store::seal::{KeyRing, SealingKey};
    use crate::store::{MissingStore, ROLLOUT_PAUSED};

    #[tokio::test]
    async fn a_rollout_is_replaced_only_in_the_state_that_the_writer_has_read() {
        let folder = tempfile::tempdir().expect("a folder for the store");
        let url = format!("sqlite:{}", folder.path().join("switchback.db").display());
        let ring = KeyRing::parse(&[SealingKey::generate()]).expect("a ring");
        let store =
            Store::open(&url, ring, Clock::paused_at(0), MissingStore::Create).await.expect("it opens");
        let row = |state: &str| RolloutRow {
            side: "v2".to_owned(),
            operation: "GET /a".to_owned(),
            plan: "careful".to_owned(),
            state: state.to_owned(),
            back_phase: "legacy".to_owned(),
            back_share: None,
            who: "Ada".to_owned(),
            reason: "a holiday".to_owned(),
            started_ms: 1,
            updated_ms: 2,
            change: 0,
        };
        let put = async |state: &str, seen| {
            store.put_rollout(&row(state), seen, ROLLOUT_PAUSED).await.expect("the store answers")
        };
        let stored = async || store.rollouts().await.expect("a list").pop().expect("there is one");
        assert!(put("running", None).await);
        let first = stored().await.change;
        assert!(!put("paused", None).await && !put("paused", Some(first + 1)).await);
        assert_eq!(stored().await, RolloutRow { change: first, ..row("running") });
        assert!(put("paused", Some(first)).await);
        assert!(!put("aborted", Some(first)).await, "it has changed since");
        let second = stored().await.change;
        assert!(second > first);
        let mut tx = store.write().await.expect("the store answers");
        for (seen, expected) in [(None, false), (Some(first), false), (Some(second), true)] {
            let kept = store.write_rollout(&mut tx, ("v2", "GET /a"), RolloutWrite::Keep { seen }).await;
            assert_eq!(kept.expect("the store answers"), expected, "{seen:?}");
        }
        tx.undo().await;
        let entries = store.history(9).await.expect("a list");
        let entries: Vec<_> = entries.iter().map(|one| (one.subject.as_str(), one.detail.as_str())).collect();
        assert_eq!(entries, [("v2 GET /a", "plan `careful`: a holiday"); 2], "one for each change");
    }
}
