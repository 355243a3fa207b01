//! Pending authorizations: the keyed hash of each issued `state`, until its callback arrives or it
//! expires. The PKCE verifier (RFC 7636) is sealed for the client, hash and expiry of the row, so a
//! row reassigned to another client does not decrypt.

use super::db::{DbRow, args};
use super::seal::{KeyedHash, SealContext};
use super::{NewHistory, Store, StoreError};
use crate::secret::Secret;
use std::time::Duration;

/// A pending authorization that has been consumed.
#[derive(Debug)]
pub struct PendingAuthorization {
    /// Id of the client to connect.
    pub client: String,
    /// The PKCE verifier.
    pub verifier: Secret<String>,
}

impl Store {
    /// Stores a pending authorization for the client with id `client` under the hash of its
    /// `state`, for `ttl`.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn put_connect_state(
        &self,
        hash: &KeyedHash,
        client: &str,
        verifier: &Secret<String>,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        let expires = self.clock.unix_ms().saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        let sealed = self.keys.seal(&place(client, &row_of(hash, expires)), verifier.expose().as_bytes());
        let mut tx = self.write().await?;
        tx.run(
            "INSERT INTO connect_states (hash, client, expires_ms, verifier) VALUES ($1, $2, $3, $4)",
            args![&hash[..], client, expires, sealed],
        )
        .await?;
        let entry =
            NewHistory { kind: "connect link made", until_ms: Some(expires), ..NewHistory::default() };
        self.enter_of_client(&mut tx, client, entry).await?;
        tx.commit().await
    }

    /// Consumes a pending `state`. Returns the authorization the first time, unless it has expired,
    /// and `None` afterwards. Callers are unauthenticated, so an unknown `state` causes no write.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails, or the row was modified or not sealed by this store.
    pub async fn take_connect_state(
        &self,
        hash: &KeyedHash,
    ) -> Result<Option<PendingAuthorization>, StoreError> {
        let sql = "SELECT hash FROM connect_states WHERE hash = $1";
        if self.db.row(sql, args![&hash[..]]).await?.is_none() {
            return Ok(None);
        }
        let mut tx = self.write().await?;
        // Only one of two racing callbacks gets the deleted row.
        let sql = "DELETE FROM connect_states WHERE hash = $1 RETURNING hash, client, expires_ms, verifier";
        let row = tx.row(sql, args![&hash[..]]).await?;
        tx.commit().await?;
        row.map_or(Ok(None), |row| self.pending(&row))
    }

    /// Consumes the only pending authorization. Returns `None` if there is not exactly one.
    pub(crate) async fn take_only_connect_state(&self) -> Result<Option<PendingAuthorization>, StoreError> {
        let sql = "SELECT hash FROM connect_states WHERE expires_ms > $1 LIMIT 2";
        let rows = self.db.rows(sql, args![self.clock.unix_ms()]).await?;
        let [row] = rows.as_slice() else { return Ok(None) };
        let hash = row.bytes("hash")?;
        let hash =
            hash.try_into().map_err(|_| StoreError::Corrupt("state hash of wrong length".to_owned()))?;
        self.take_connect_state(&hash).await
    }

    fn pending(&self, row: &DbRow) -> Result<Option<PendingAuthorization>, StoreError> {
        let (hash, client, expires) = (row.bytes("hash")?, row.text("client")?, row.int("expires_ms")?);
        if expires <= self.clock.unix_ms() {
            return Ok(None);
        }
        let opened = self.keys.open(&place(&client, &row_of(&hash, expires)), &row.bytes("verifier")?)?;
        let verifier = opened.into_text().ok_or(super::SealError::Broken)?;
        Ok(Some(PendingAuthorization { client, verifier }))
    }
}

fn row_of(hash: &[u8], expires_ms: i64) -> Vec<u8> {
    [hash, &expires_ms.to_le_bytes()].concat()
}

fn place<'a>(client: &'a str, row: &'a [u8]) -> SealContext<'a> {
    SealContext { column: "connect_states.verifier", client, row }
}
