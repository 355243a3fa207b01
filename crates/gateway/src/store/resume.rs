//! Unfinished work of several calls. A route with several writes stores the result of each
//! completed step here; if the client repeats its request, completed steps are read back instead of
//! repeated. The caller defines the bytes of a step. They are sealed, since they may contain any
//! message data.

use super::db::{Tx, args};
use super::seal::{HashOf, KeyRing, KeyedHash, SealContext};
use super::{Store, StoreError};
use crate::secret::Secret;
use std::time::Duration;

const COLUMN: &str = "resume_steps.sealed";

/// Not a column: cursors are stored by clients.
const CURSOR: &str = "cursor";

impl Store {
    /// Seals a cursor for a client and its list. The client stores it, not the gateway.
    pub fn seal_cursor(&self, client: &str, list: &[u8], plain: &[u8]) -> Vec<u8> {
        self.keys.seal(&SealContext { column: CURSOR, client, row: list }, plain)
    }

    /// Opens a cursor sealed for this client and list by any program with the same keys.
    pub fn open_cursor(&self, client: &str, list: &[u8], sealed: &[u8]) -> Option<Secret<Vec<u8>>> {
        self.keys.open(&SealContext { column: CURSOR, client, row: list }, sealed).ok()
    }

    /// Stores for `ttl` the result `bytes` of a `step` of the work `key` of the client with id
    /// `client`. Requests with the same `key` are the same work; only its keyed hash is stored.
    /// Repeating a step replaces its bytes and restarts the time.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn resume_put(
        &self,
        client: &str,
        key: &[u8],
        step: &str,
        bytes: &[u8],
        ttl: Duration,
    ) -> Result<(), StoreError> {
        let work = self.hasher.hash(HashOf::Work, key);
        let sealed = self.keys.seal(&place(client, &row_of(&work, step)), bytes);
        let expires = self.clock.unix_ms().saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        let mut tx = self.write().await?;
        tx.run(
            "INSERT INTO resume_steps (client, work, step, sealed, expires_ms) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (client, work, step) DO UPDATE SET sealed = excluded.sealed, expires_ms = excluded.expires_ms",
            args![client, &work[..], step, sealed, expires],
        )
        .await?;
        tx.commit().await
    }

    /// Returns the completed steps of a piece of work by name; empty if there are none or they have
    /// expired.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails, or a step was modified or not sealed by this store.
    pub async fn resume_get(
        &self,
        client: &str,
        key: &[u8],
    ) -> Result<Vec<(String, Secret<Vec<u8>>)>, StoreError> {
        let work = self.hasher.hash(HashOf::Work, key);
        let rows = self
            .db
            .rows(
                "SELECT step, sealed FROM resume_steps WHERE client = $1 AND work = $2 AND expires_ms > $3 ORDER BY step",
                args![client, &work[..], self.clock.unix_ms()],
            )
            .await?;
        rows.iter()
            .map(|row| {
                let step = row.text("step")?;
                let bytes = self.keys.open(&place(client, &row_of(&work, &step)), &row.bytes("sealed")?)?;
                Ok((step, bytes))
            })
            .collect()
    }

    /// Deletes the steps of completed work.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn resume_clear(&self, client: &str, key: &[u8]) -> Result<(), StoreError> {
        let work = self.hasher.hash(HashOf::Work, key);
        let mut tx = self.write().await?;
        tx.run("DELETE FROM resume_steps WHERE client = $1 AND work = $2", args![client, &work[..]]).await?;
        tx.commit().await
    }
}

/// Seals all stored steps with the newest key. Returns their number.
pub(super) async fn reseal(tx: &mut Tx, keys: &KeyRing) -> Result<u64, StoreError> {
    let mut values = 0;
    for row in tx.rows("SELECT client, work, step, sealed FROM resume_steps", &[]).await? {
        let (client, work, step) = (row.text("client")?, row.bytes("work")?, row.text("step")?);
        let at = [work.as_slice(), step.as_bytes()].concat();
        let plain = keys.open(&place(&client, &at), &row.bytes("sealed")?)?;
        values += tx
            .run(
                "UPDATE resume_steps SET sealed = $4 WHERE client = $1 AND work = $2 AND step = $3",
                args![client.as_str(), work, step.as_str(), keys.seal(&place(&client, &at), plain.expose())],
            )
            .await?;
    }
    Ok(values)
}

fn row_of(work: &KeyedHash, step: &str) -> Vec<u8> {
    [&work[..], step.as_bytes()].concat()
}

fn place<'a>(client: &'a str, row: &'a [u8]) -> SealContext<'a> {
    SealContext { column: COLUMN, client, row }
}
