//! Fixed tokens for calls to sides without grants: sealed, one per client and side. Each value has
//! its own id, so that state recorded for a replaced value has no effect.

use super::db::{DbRow, Tx, args};
use super::origin::TokenOrigin;
use super::seal::{HashOf, HashedValue, Hasher, KeyRing, KeyedHash, SealContext, SealError};
use super::{NewHistory, Store, StoreError, new_id};
use crate::secret::Secret;

const TOKEN: &str = "client_credentials.token";

/// A client's fixed token for one side.
#[derive(Clone, Debug)]
pub struct CredentialRow {
    /// Random id of this value.
    pub id: String,
    /// The side of the calls.
    pub side: String,
    /// The origin.
    pub origin: TokenOrigin,
    /// Time of the change, wall time in milliseconds since 1970.
    pub set_ms: i64,
    /// Time since which the service rejects it, as far as known; wall time in milliseconds since
    /// 1970.
    pub refused_ms: Option<i64>,
    /// The token, or the reason why it cannot be decrypted.
    pub token: Result<Secret<String>, SealError>,
}

/// A credential to set.
pub(crate) struct NewCredentialRow<'a> {
    pub side: &'a str,
    pub token: &'a Secret<String>,
}

macro_rules! select_credentials {
    ($rest:literal) => {
        concat!(
            "SELECT k.id AS id, k.client AS client, k.side AS side, k.origin AS origin, k.token AS token, ",
            "k.set_ms AS set_ms, k.refused_ms AS refused_ms, k.mac AS mac FROM client_credentials k ",
            $rest
        )
    };
}

impl Store {
    /// Sets or replaces a client's fixed token for a side.
    pub(crate) async fn set_credential(
        &self,
        client: &str,
        new: &NewCredentialRow<'_>,
    ) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        self.put_credential(&mut tx, client, new, TokenOrigin::Managed).await?;
        tx.touch_client(client).await?;
        let scope = format!("calls to {}", new.side);
        let entry = NewHistory { kind: "credential set", scope: &scope, ..NewHistory::default() };
        self.enter_of_client(&mut tx, client, entry).await?;
        tx.commit().await
    }

    /// Records whether the service accepts the credential with this id. Has no effect on a replaced
    /// credential.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn mark_credential(&self, id: &str, client: &str, is_refused: bool) -> Result<(), StoreError> {
        let refused_ms = is_refused.then(|| self.clock.unix_ms());
        let mut tx = self.write().await?;
        let sql = "UPDATE client_credentials SET refused_ms = $2 WHERE id = $1";
        if tx.run(sql, args![id, refused_ms]).await? > 0 {
            tx.touch_client(client).await?;
        }
        tx.commit().await
    }

    /// Returns the credentials of clients changed by a write later than `change`, each with its
    /// client's id; 0 returns all.
    pub(super) async fn credentials_since(
        &self,
        change: i64,
    ) -> Result<Vec<(String, CredentialRow)>, StoreError> {
        let sql =
            select_credentials!("JOIN clients c ON c.id = k.client WHERE c.change > $1 ORDER BY k.side");
        self.db.rows(sql, args![change]).await?.iter().map(|row| self.credential(row)).collect()
    }

    /// Returns a client's fixed token for a side, if it has one.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails, or the token was modified or not sealed by this
    /// store.
    pub async fn credential_of(
        &self,
        client: &str,
        side: &str,
    ) -> Result<Option<Secret<String>>, StoreError> {
        let all = self.credentials_of(client).await?;
        let found = all.into_iter().find(|credential| credential.side == side);
        found.map(|credential| credential.token.map_err(StoreError::from)).transpose()
    }

    pub(super) async fn credentials_of(&self, client: &str) -> Result<Vec<CredentialRow>, StoreError> {
        let sql = select_credentials!("WHERE k.client = $1 ORDER BY k.side");
        let rows = self.db.rows(sql, args![client]).await?;
        rows.iter().map(|row| Ok(self.credential(row)?.1)).collect()
    }

    /// Replaces the configured credentials of a client by `wanted`. Returns whether there was a
    /// change.
    pub(super) async fn bind_configured_credentials(
        &self,
        tx: &mut Tx,
        client: &str,
        wanted: &[NewCredentialRow<'_>],
    ) -> Result<bool, StoreError> {
        let mut held = Vec::new();
        for row in tx.rows(select_credentials!("WHERE k.client = $1"), args![client]).await? {
            held.push(self.credential(&row)?.1);
        }
        let mut changed = false;
        for row in held.iter().filter(|row| row.origin == TokenOrigin::Configured) {
            if !wanted.iter().any(|new| new.side == row.side) {
                tx.run("DELETE FROM client_credentials WHERE id = $1", args![row.id.as_str()]).await?;
                changed = true;
            }
        }
        for new in wanted {
            let is_held = held.iter().any(|row| {
                row.side == new.side
                    && row.origin == TokenOrigin::Configured
                    && row.token.as_ref().is_ok_and(|token| token.expose() == new.token.expose())
            });
            if !is_held {
                self.put_credential(tx, client, new, TokenOrigin::Configured).await?;
                changed = true;
            }
        }
        Ok(changed)
    }

    /// Sets one credential within a transaction.
    pub(super) async fn put_credential(
        &self,
        tx: &mut Tx,
        client: &str,
        new: &NewCredentialRow<'_>,
        origin: TokenOrigin,
    ) -> Result<(), StoreError> {
        let id = new_id();
        let sealed = self.keys.seal(&place(client, &id), new.token.expose().as_bytes());
        let mac = mac(&self.hasher, &id, client, new.side, origin.name());
        tx.run(
            "INSERT INTO client_credentials (id, client, side, origin, token, set_ms, mac) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) \
             ON CONFLICT (client, side) DO UPDATE SET id = excluded.id, origin = excluded.origin, \
             token = excluded.token, set_ms = excluded.set_ms, refused_ms = NULL, mac = excluded.mac",
            args![id.as_str(), client, new.side, origin.name(), sealed, self.clock.unix_ms(), &mac[..]],
        )
        .await?;
        Ok(())
    }

    fn credential(&self, row: &DbRow) -> Result<(String, CredentialRow), StoreError> {
        let (client, id, side) = (row.text("client")?, row.text("id")?, row.text("side")?);
        let origin = row.text("origin")?;
        let is_ours = self.hasher.is_row(
            HashOf::CredentialRow,
            &parts(&id, &client, &side, &origin),
            row.bytes_or_none("mac")?.as_deref(),
        );
        let opened = match is_ours {
            true => self.keys.open(&place(&client, &id), &row.bytes("token")?),
            false => Err(SealError::Broken),
        };
        let token = opened.and_then(|token| token.into_text().ok_or(SealError::Broken));
        let row = CredentialRow {
            id,
            side,
            origin: TokenOrigin::parse(&origin),
            set_ms: row.int("set_ms")?,
            refused_ms: row.int_or_none("refused_ms")?,
            token,
        };
        Ok((client, row))
    }
}

/// Erases all credentials of a client.
pub(super) async fn erase(tx: &mut Tx, client: &str) -> Result<(), StoreError> {
    tx.run("DELETE FROM client_credentials WHERE client = $1", args![client]).await?;
    Ok(())
}

/// Seals all credentials with the newest key. Returns their number.
pub(super) async fn reseal(tx: &mut Tx, keys: &KeyRing) -> Result<u64, StoreError> {
    let mut values = 0;
    for row in tx.rows("SELECT id, client, token FROM client_credentials", &[]).await? {
        let (id, client) = (row.text("id")?, row.text("client")?);
        let plain = keys.open(&place(&client, &id), &row.bytes("token")?)?;
        let sealed = keys.seal(&place(&client, &id), plain.expose());
        values += tx
            .run("UPDATE client_credentials SET token = $2 WHERE id = $1", args![id.as_str(), sealed])
            .await?;
    }
    Ok(values)
}

/// Adds keyed hashes to rows written before they existed.
pub(super) async fn bind(tx: &mut Tx, hasher: &Hasher) -> Result<(), StoreError> {
    for row in tx.rows("SELECT id, client, side, origin FROM client_credentials", &[]).await? {
        let id = row.text("id")?;
        let mac = mac(hasher, &id, &row.text("client")?, &row.text("side")?, &row.text("origin")?);
        tx.run("UPDATE client_credentials SET mac = $2 WHERE id = $1", args![id.as_str(), &mac[..]]).await?;
    }
    Ok(())
}

fn mac(hasher: &Hasher, id: &str, client: &str, side: &str, origin: &str) -> KeyedHash {
    hasher.row(HashOf::CredentialRow, &parts(id, client, side, origin))
}

fn parts<'a>(id: &'a str, client: &'a str, side: &'a str, origin: &'a str) -> [HashedValue<'a>; 4] {
    [id.into(), client.into(), side.into(), origin.into()]
}

fn place<'a>(client: &'a str, id: &'a str) -> SealContext<'a> {
    SealContext { column: TOKEN, client, row: id.as_bytes() }
}
