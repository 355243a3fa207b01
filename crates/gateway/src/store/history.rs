//! The history: changes by operators and the gateway, with author, time, scope and reason. An entry
//! is written in the transaction of its change, so neither exists without the other. Phase
//! transitions have their own table (`phases`).

use super::db::{DbRow, Tx, args};
use super::{Store, StoreError, new_id};
use std::sync::Arc;

/// Maximum number of entries; the newest are retained.
const ENTRIES_MAX: i64 = 10_000;

/// The author of changes that no operator requested.
pub(super) const GATEWAY: &str = "gateway";
/// The author of changes from the configuration file.
pub const CONFIGURATION: &str = "configuration";

/// Kinds of entries that notices to operators are about.
pub(crate) const GATE_HELD: &str = "gate held";
pub(crate) const GRANT_ENDED: &str = "grant ended";
pub(crate) const ROLLOUT_PAUSED: &str = "rollout paused";
pub(crate) const ROLLOUT_ABORTED: &str = "rollout aborted";
pub(crate) const ROLLOUT_COMPLETED: &str = "rollout completed";
/// The kind of an entry about a failed reload.
pub const RELOAD_FAILED: &str = "reload failed";

/// The description of a change; the store adds time and author.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewHistory<'a> {
    /// Two or three words, such as `brownout set` or `reload`.
    pub kind: &'a str,
    /// The client, operation, pack, or id of a brownout.
    pub subject: &'a str,
    /// Affected sides, operations and clients. Empty if the subject is the full scope.
    pub scope: &'a str,
    /// Time when it takes effect, wall time in milliseconds since 1970; `None` for at once.
    pub from_ms: Option<i64>,
    /// Time when its effect expires; `None` for no expiry.
    pub until_ms: Option<i64>,
    /// A sentence for people, without secrets.
    pub detail: &'a str,
}

/// An entry of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRow {
    /// Wall time in milliseconds since 1970.
    pub at_ms: i64,
    /// See [`NewHistory::kind`].
    pub kind: String,
    /// See [`NewHistory::subject`].
    pub subject: String,
    /// See [`NewHistory::scope`].
    pub scope: String,
    /// The author: a person, the holder of a token, `configuration` or `gateway`. Entries of
    /// earlier versions may lack it.
    pub who: String,
    /// See [`NewHistory::from_ms`].
    pub from_ms: Option<i64>,
    /// See [`NewHistory::until_ms`].
    pub until_ms: Option<i64>,
    /// See [`NewHistory::detail`].
    pub detail: String,
}

impl Store {
    /// Returns the same store with another author of its changes.
    #[must_use]
    pub fn by(&self, author: &str) -> Store {
        Store { author: Arc::from(author), ..self.clone() }
    }

    /// Returns the author of changes made with this handle.
    pub fn author(&self) -> &str {
        &self.author
    }

    /// Writes an entry for a change outside of the store.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn note(&self, entry: &NewHistory<'_>) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        self.enter(&mut tx, entry).await?;
        tx.commit().await
    }

    /// Writes an entry within the transaction of its change.
    pub(super) async fn enter(&self, tx: &mut Tx, entry: &NewHistory<'_>) -> Result<(), StoreError> {
        let change = tx.change();
        tx.run(
            "INSERT INTO history (id, at_ms, kind, subject, scope, who, from_ms, until_ms, detail, change) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            args![
                new_id().as_str(),
                self.clock.unix_ms(),
                entry.kind,
                entry.subject,
                entry.scope,
                self.author(),
                entry.from_ms,
                entry.until_ms,
                entry.detail,
                change
            ],
        )
        .await?;
        // Trimming costs time proportional to the number of entries, so it runs on every 64th write
        // only.
        if change % 64 == 0 {
            let forget =
                "DELETE FROM history WHERE id NOT IN (SELECT id FROM history ORDER BY change DESC LIMIT $1)";
            tx.run(forget, args![ENTRIES_MAX]).await?;
        }
        Ok(())
    }

    /// Writes an entry about the client with this id.
    pub(super) async fn enter_of_client(
        &self,
        tx: &mut Tx,
        client: &str,
        entry: NewHistory<'_>,
    ) -> Result<(), StoreError> {
        let row = tx.row("SELECT name FROM clients WHERE id = $1", args![client]).await?;
        let name = row.map_or_else(|| Ok(client.to_owned()), |row| row.text("name"))?;
        self.enter(tx, &NewHistory { subject: &name, ..entry }).await
    }

    /// Returns the last `count` entries, newest first.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn history(&self, count: u32) -> Result<Vec<HistoryRow>, StoreError> {
        let sql = "SELECT at_ms, kind, subject, scope, who, from_ms, until_ms, detail FROM history \
                   ORDER BY change DESC LIMIT $1";
        self.db.rows(sql, args![i64::from(count)]).await?.iter().map(history).collect()
    }
}

pub(super) fn history(row: &DbRow) -> Result<HistoryRow, StoreError> {
    Ok(HistoryRow {
        at_ms: row.int("at_ms")?,
        kind: row.text("kind")?,
        subject: row.text("subject")?,
        scope: row.text("scope")?,
        who: row.text("who")?,
        from_ms: row.int_or_none("from_ms")?,
        until_ms: row.int_or_none("until_ms")?,
        detail: row.text("detail")?,
    })
}
