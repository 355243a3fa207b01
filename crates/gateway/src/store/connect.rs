//! Pending authorizations: the keyed hash of each `state` that was given out, until its answer comes or it expires.

use super::db::args;
use super::seal::KeyedHash;
use super::{Store, StoreError};
use std::time::Duration;

impl Store {
    /// Notes that an authorization for the client with id `client` is pending under the `state` with this hash, for `ttl`.
    pub async fn put_connect_state(
        &self,
        hash: &KeyedHash,
        client: &str,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        let expires = self.clock.unix_ms().saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        let mut tx = self.write().await?;
        tx.run(
            "INSERT INTO connect_states (hash, client, expires_ms) VALUES ($1, $2, $3)",
            args![&hash[..], client, expires],
        )
        .await?;
        tx.commit().await
    }

    /// Uses up a pending `state`: gives the id of its client the first time, if it has not expired, and nothing ever after.
    pub async fn take_connect_state(&self, hash: &KeyedHash) -> Result<Option<String>, StoreError> {
        let now = self.clock.unix_ms();
        let mut tx = self.write().await?;
        let sql = "DELETE FROM connect_states WHERE hash = $1 RETURNING client, expires_ms";
        let row = tx.row(sql, args![&hash[..]]).await?;
        tx.commit().await?;
        let Some(row) = row else { return Ok(None) };
        if row.int("expires_ms")? <= now { Ok(None) } else { Ok(Some(row.text("client")?)) }
    }
}
