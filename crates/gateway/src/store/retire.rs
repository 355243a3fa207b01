//! Rows of the retirement: usage counts, brownouts, and sunsets of clients. The module `retire`
//! interprets them.

use super::db::{DbRow, Tx, args};
use super::{NewHistory, Store, StoreError};
use crate::clock::rfc3339;

/// A usage count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UsageRow {
    pub side: String,
    /// The client's name; empty for an unknown client.
    pub client: String,
    pub operation: String,
    /// The identifier of the outcome; earlier releases used others.
    pub outcome: String,
    /// Whether the calls match no operation.
    pub is_unknown: bool,
    pub calls: i64,
    /// Wall time in milliseconds since 1970.
    pub first_ms: i64,
    pub last_ms: i64,
}

/// A window in which calls are rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrownoutRow {
    pub id: String,
    pub side: String,
    /// A JSON list.
    pub operations: String,
    /// A JSON list.
    pub clients: String,
    /// Wall time in milliseconds since 1970.
    pub from_ms: i64,
    pub until_ms: i64,
    pub reason: String,
    pub set_by: String,
    pub set_ms: i64,
}

/// The result of adding a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddBrownoutResult {
    Done,
    TooMany,
    /// The stored windows differ from those the caller has seen.
    Changed,
}

/// The sunset of a side for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SunsetRow {
    pub client: String,
    pub side: String,
    /// Wall time in milliseconds since 1970. `None` removes a configured date.
    pub at_ms: Option<i64>,
    pub deprecated_ms: Option<i64>,
    pub announce: bool,
    pub set_by: String,
    pub set_ms: i64,
}

impl Store {
    /// Adds counts in one transaction. Retains the `unknown_max` newest unknown calls, and deletes
    /// counts last updated before `forget_before_ms`.
    pub(crate) async fn add_usage(
        &self,
        rows: &[UsageRow],
        unknown_max: u32,
        forget_before_ms: i64,
    ) -> Result<(), StoreError> {
        let mut tx = self.db.begin().await?;
        let mut has_unknown = false;
        // In the order of their keys, to avoid deadlocks with other gateways that update the same
        // rows.
        let mut sorted: Vec<&UsageRow> = rows.iter().collect();
        sorted.sort_unstable();
        for row in sorted {
            has_unknown |= row.is_unknown;
            tx.run(
                "INSERT INTO client_usage (side, client, operation, kind, calls, first_ms, last_ms, is_unknown) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (side, client, operation, kind) DO UPDATE SET \
                 calls = client_usage.calls + excluded.calls, \
                 first_ms = CASE WHEN excluded.first_ms < client_usage.first_ms THEN excluded.first_ms \
                            ELSE client_usage.first_ms END, \
                 last_ms = CASE WHEN excluded.last_ms > client_usage.last_ms THEN excluded.last_ms \
                           ELSE client_usage.last_ms END, is_unknown = excluded.is_unknown",
                args![
                    row.side.as_str(),
                    row.client.as_str(),
                    row.operation.as_str(),
                    row.outcome.as_str(),
                    row.calls,
                    row.first_ms,
                    row.last_ms,
                    i64::from(row.is_unknown),
                ],
            )
            .await?;
        }
        if has_unknown {
            tx.run(
                "DELETE FROM client_usage WHERE (is_unknown = 1 OR kind = 'unknown') AND last_ms < (SELECT last_ms FROM client_usage \
                 WHERE is_unknown = 1 OR kind = 'unknown' ORDER BY last_ms DESC LIMIT 1 OFFSET $1)",
                args![i64::from(unknown_max)],
            )
            .await?;
        }
        tx.run("DELETE FROM client_usage WHERE last_ms < $1", args![forget_before_ms]).await?;
        tx.commit().await
    }

    /// Returns all usage counts.
    pub(crate) async fn usage(&self) -> Result<Vec<UsageRow>, StoreError> {
        let sql = "SELECT side, client, operation, kind, is_unknown, calls, first_ms, last_ms FROM client_usage \
                   ORDER BY side, client, operation, kind";
        self.db.rows(sql, &[]).await?.iter().map(usage).collect()
    }

    /// Returns all windows, the earliest first.
    pub(crate) async fn brownouts(&self) -> Result<Vec<BrownoutRow>, StoreError> {
        let sql = "SELECT id, side, operations, clients, from_ms, until_ms, reason, set_by, set_ms FROM brownouts \
                   ORDER BY from_ms, id";
        self.db.rows(sql, &[]).await?.iter().map(brownout).collect()
    }

    /// Adds a window, provided that there are fewer than `brownouts_max`. Deletes those that closed
    /// before `forget_before_ms`. `seen` lists the window ids known to the caller; if the stored
    /// ones differ, no window is added.
    pub(crate) async fn add_brownout(
        &self,
        row: &BrownoutRow,
        brownouts_max: u32,
        forget_before_ms: i64,
        seen: Option<&[String]>,
    ) -> Result<AddBrownoutResult, StoreError> {
        let mut tx = self.write().await?;
        if let Some(seen) = seen {
            let rows = tx.rows("SELECT id FROM brownouts", &[]).await?;
            let ids = rows.iter().map(|row| row.text("id")).collect::<Result<Vec<_>, _>>()?;
            if ids.len() != seen.len() || ids.iter().any(|id| !seen.contains(id)) {
                tx.undo().await;
                return Ok(AddBrownoutResult::Changed);
            }
        }
        tx.run("DELETE FROM brownouts WHERE until_ms < $1", args![forget_before_ms]).await?;
        let count = tx.row("SELECT COUNT(*) AS count FROM brownouts", &[]).await?;
        if count.map_or(Ok(0), |row| row.int("count"))? >= i64::from(brownouts_max) {
            tx.undo().await;
            return Ok(AddBrownoutResult::TooMany);
        }
        let change = tx.change();
        tx.run(
            "INSERT INTO brownouts (id, side, operations, clients, from_ms, until_ms, reason, set_by, set_ms, change) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            args![
                row.id.as_str(),
                row.side.as_str(),
                row.operations.as_str(),
                row.clients.as_str(),
                row.from_ms,
                row.until_ms,
                row.reason.as_str(),
                row.set_by.as_str(),
                row.set_ms,
                change,
            ],
        )
        .await?;
        self.enter_of_brownout(&mut tx, "brownout set", row).await?;
        tx.commit().await?;
        Ok(AddBrownoutResult::Done)
    }

    /// Removes a window. Returns whether it existed.
    pub(crate) async fn remove_brownout(&self, id: &str) -> Result<bool, StoreError> {
        let mut tx = self.write().await?;
        let sql = "DELETE FROM brownouts WHERE id = $1 \
                   RETURNING id, side, operations, clients, from_ms, until_ms, reason, set_by, set_ms";
        let Some(row) = tx.row(sql, args![id]).await? else {
            tx.undo().await;
            return Ok(false);
        };
        self.enter_of_brownout(&mut tx, "brownout removed", &brownout(&row)?).await?;
        tx.commit().await?;
        Ok(true)
    }

    async fn enter_of_brownout(&self, tx: &mut Tx, kind: &str, row: &BrownoutRow) -> Result<(), StoreError> {
        let names = |list: &str, all: &str| {
            let names: Vec<String> = serde_json::from_str(list).unwrap_or_default();
            if names.is_empty() { all.to_owned() } else { names.join(", ") }
        };
        let (operations, clients) = (names(&row.operations, "all calls"), names(&row.clients, "all clients"));
        let scope = format!("{}: {operations}; {clients}", row.side);
        let entry = NewHistory {
            kind,
            subject: &row.id,
            scope: &scope,
            from_ms: Some(row.from_ms),
            until_ms: Some(row.until_ms),
            detail: &row.reason,
        };
        self.enter(tx, &entry).await
    }

    /// Returns all sunsets set at run time.
    pub(crate) async fn sunsets(&self) -> Result<Vec<SunsetRow>, StoreError> {
        let sql = "SELECT client, side, at_ms, deprecated_ms, announce, set_by, set_ms FROM client_sunsets \
                   ORDER BY client, side";
        self.db.rows(sql, &[]).await?.iter().map(sunset).collect()
    }

    /// Sets a client's sunset, or removes it even if the configuration sets one. `seen` is the
    /// `set_ms` known to the caller, 0 for none. If the stored one differs, changes no row and
    /// returns `false`.
    pub(crate) async fn put_sunset(&self, row: &SunsetRow, seen: Option<i64>) -> Result<bool, StoreError> {
        let mut tx = self.write().await?;
        if let Some(seen) = seen {
            let sql = "SELECT set_ms FROM client_sunsets WHERE client = $1 AND side = $2";
            let known = tx.row(sql, args![row.client.as_str(), row.side.as_str()]).await?;
            if known.map_or(Ok(0), |row| row.int("set_ms"))? != seen {
                tx.undo().await;
                return Ok(false);
            }
        }
        let change = tx.change();
        tx.run(
            "INSERT INTO client_sunsets (client, side, at_ms, deprecated_ms, announce, set_by, set_ms, change) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (client, side) DO UPDATE SET \
             at_ms = excluded.at_ms, deprecated_ms = excluded.deprecated_ms, announce = excluded.announce, \
             set_by = excluded.set_by, set_ms = excluded.set_ms, change = excluded.change",
            args![
                row.client.as_str(),
                row.side.as_str(),
                row.at_ms,
                row.deprecated_ms,
                i64::from(row.announce),
                row.set_by.as_str(),
                row.set_ms,
                change,
            ],
        )
        .await?;
        let detail = match (row.at_ms, row.announce) {
            (None, _) => "no end".to_owned(),
            (Some(at), true) => format!("ends {}, announced", rfc3339(at)),
            (Some(at), false) => format!("ends {}, in silence", rfc3339(at)),
        };
        let entry = NewHistory {
            kind: "sunset set",
            subject: &row.client,
            scope: &row.side,
            from_ms: row.at_ms,
            detail: &detail,
            ..NewHistory::default()
        };
        self.enter(&mut tx, &entry).await?;
        tx.commit().await?;
        Ok(true)
    }
}

fn usage(row: &DbRow) -> Result<UsageRow, StoreError> {
    Ok(UsageRow {
        side: row.text("side")?,
        client: row.text("client")?,
        operation: row.text("operation")?,
        outcome: row.text("kind")?,
        is_unknown: row.int("is_unknown")? != 0,
        calls: row.int("calls")?,
        first_ms: row.int("first_ms")?,
        last_ms: row.int("last_ms")?,
    })
}

fn brownout(row: &DbRow) -> Result<BrownoutRow, StoreError> {
    Ok(BrownoutRow {
        id: row.text("id")?,
        side: row.text("side")?,
        operations: row.text("operations")?,
        clients: row.text("clients")?,
        from_ms: row.int("from_ms")?,
        until_ms: row.int("until_ms")?,
        reason: row.text("reason")?,
        set_by: row.text("set_by")?,
        set_ms: row.int("set_ms")?,
    })
}

fn sunset(row: &DbRow) -> Result<SunsetRow, StoreError> {
    Ok(SunsetRow {
        client: row.text("client")?,
        side: row.text("side")?,
        at_ms: row.int_or_none("at_ms")?,
        deprecated_ms: row.int_or_none("deprecated_ms")?,
        announce: row.int("announce")? != 0,
        set_by: row.text("set_by")?,
        set_ms: row.int("set_ms")?,
    })
}
