//! What happened beside transitions of operations, for those who ask later: by whom, when and why. What the words mean is the
//! business of whoever writes them.

use super::db::{Row, args};
use super::{Store, StoreError, new_id};

/// How much is kept: the newest so many.
const KEPT_MAX: i64 = 10_000;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRow {
    /// Wall time in milliseconds since 1970.
    pub at_ms: i64,
    /// What happened, in a word, such as `phase` or `reload`.
    pub kind: String,
    /// The client, the operation, the pack.
    pub subject: String,
    /// Who did it; empty where nobody said so.
    pub who: String,
    /// A sentence for people; holds no secret.
    pub detail: String,
}

impl Store {
    /// Writes down what happened.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn note(&self, row: &HistoryRow) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        let change = tx.change();
        tx.run(
            "INSERT INTO history (id, at_ms, kind, subject, who, detail, change) VALUES ($1, $2, $3, $4, $5, $6, $7)",
            args![
                new_id().as_str(),
                row.at_ms,
                row.kind.as_str(),
                row.subject.as_str(),
                row.who.as_str(),
                row.detail.as_str(),
                change
            ],
        )
        .await?;
        let forget =
            "DELETE FROM history WHERE id NOT IN (SELECT id FROM history ORDER BY change DESC LIMIT $1)";
        // Looking costs as much as there is, so it is not done each time.
        if change % 64 == 0 {
            tx.run(forget, args![KEPT_MAX]).await?;
        }
        tx.commit().await
    }

    /// The last `count` that happened, newest first.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn history(&self, count: u32) -> Result<Vec<HistoryRow>, StoreError> {
        let sql = "SELECT at_ms, kind, subject, who, detail FROM history ORDER BY change DESC LIMIT $1";
        self.db.rows(sql, args![i64::from(count)]).await?.iter().map(history).collect()
    }
}

fn history(row: &Row) -> Result<HistoryRow, StoreError> {
    Ok(HistoryRow {
        at_ms: row.int("at_ms")?,
        kind: row.text("kind")?,
        subject: row.text("subject")?,
        who: row.text("who")?,
        detail: row.text("detail")?,
    })
}
