//! Sources of notices to operators, and the claims by which one gateway sends each of them.

use super::db::args;
use super::history::history;
use super::phases::parse_transition;
use super::{HistoryRow, Store, StoreError, TransitionRow};

/// Age of a claim before it is deleted, in milliseconds: longer than a brownout (31 days) and its
/// retention (30 days).
const CLAIMS_KEPT_MS: i64 = 90 * 24 * 3_600_000;

impl Store {
    /// Claims a notice. Returns whether this call was the first of all gateways. With `after`, the
    /// claim fails unless that notice was claimed.
    pub(crate) async fn claim_notice(&self, key: &str, after: Option<&str>) -> Result<bool, StoreError> {
        let mut tx = self.write().await?;
        let now_ms = self.clock.unix_ms();
        tx.run("DELETE FROM notices WHERE at_ms < $1", args![now_ms - CLAIMS_KEPT_MS]).await?;
        let is_due = match after {
            Some(after) => tx.row("SELECT id FROM notices WHERE id = $1", args![after]).await?.is_some(),
            None => true,
        };
        let insert = "INSERT INTO notices (id, at_ms) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";
        if !is_due || tx.run(insert, args![key, now_ms]).await? == 0 {
            tx.undo().await;
            return Ok(false);
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Returns the entries of the history after the write `since` up to `until` whose kind is one of
    /// these, each with its id, oldest first.
    pub(crate) async fn history_between(
        &self,
        [since, until]: [i64; 2],
        kinds: [&str; 6],
    ) -> Result<Vec<(String, HistoryRow)>, StoreError> {
        let sql = "SELECT id, at_ms, kind, subject, scope, who, from_ms, until_ms, detail FROM history \
                   WHERE change > $1 AND change <= $2 AND kind IN ($3, $4, $5, $6, $7, $8) ORDER BY change";
        let [a, b, c, d, e, f] = kinds;
        let rows = self.db.rows(sql, args![since, until, a, b, c, d, e, f]).await?;
        rows.iter().map(|row| Ok((row.text("id")?, history(row)?))).collect()
    }

    /// Returns the transitions by the gate after the write `since` up to `until`, each with its id,
    /// oldest first.
    pub(crate) async fn gate_transitions_between(
        &self,
        [since, until]: [i64; 2],
    ) -> Result<Vec<(String, TransitionRow)>, StoreError> {
        let sql = "SELECT id, side, operation, moved_from, moved_to, moved_by, who, at_ms, evidence \
                   FROM phase_moves WHERE change > $1 AND change <= $2 AND moved_by = 'gate' ORDER BY change";
        let rows = self.db.rows(sql, args![since, until]).await?;
        rows.iter().map(|row| Ok((row.text("id")?, parse_transition(row)?))).collect()
    }

    /// Returns the id of the last successful reload in the history, or an empty text.
    pub(crate) async fn last_reload(&self) -> Result<String, StoreError> {
        let sql = "SELECT id FROM history WHERE kind = 'reload' ORDER BY change DESC LIMIT 1";
        self.db.row(sql, &[]).await?.map_or_else(|| Ok(String::new()), |row| row.text("id"))
    }
}
