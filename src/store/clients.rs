//! Clients and their old tokens as rows. A token is only ever here as a keyed hash.

use super::db::{Row, Tx, args};
use super::grants::{self, GrantSeed};
use super::seal::KeyedHash;
use super::{Store, StoreError, new_id};
use std::collections::HashMap;

/// Who set a token: the configuration file, which stays the place to change it, or a command at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenOrigin {
    /// Given in the configuration file.
    Configured,
    /// Given or generated at run time.
    Managed,
}

impl TokenOrigin {
    fn name(self) -> &'static str {
        match self {
            TokenOrigin::Configured => "configured",
            TokenOrigin::Managed => "managed",
        }
    }
}

/// An old token of a client.
#[derive(Clone, Debug)]
pub struct TokenRow {
    /// Keyed hash of the token.
    pub hash: KeyedHash,
    /// Who set it.
    pub origin: TokenOrigin,
    /// When it stops selecting the client, wall time in milliseconds since 1970; `None` means never.
    pub expires_ms: Option<i64>,
}

/// A client with its tokens.
#[derive(Clone, Debug)]
pub struct ClientRow {
    /// Random id; what secrets are bound to.
    pub id: String,
    /// Unique name, chosen by the operator.
    pub name: String,
    /// Secondary company, if calls go out for one.
    pub company: Option<String>,
    /// Wall time in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was revoked, wall time in milliseconds since 1970.
    pub revoked_ms: Option<i64>,
    /// Number of the write that touched it last.
    pub change: i64,
    /// Its tokens, oldest first.
    pub tokens: Vec<TokenRow>,
}

/// A client to be added.
pub(crate) struct NewClient<'a> {
    pub name: &'a str,
    pub company: Option<&'a str>,
    pub token: Option<&'a KeyedHash>,
    pub origin: TokenOrigin,
    pub seed: Option<GrantSeed<'a>>,
}

impl Store {
    /// Clients touched by a write later than `change`, in no particular order; 0 gives all.
    pub async fn clients_since(&self, change: i64) -> Result<Vec<ClientRow>, StoreError> {
        let rows = self
            .db
            .rows(
                "SELECT id, name, company, created_ms, revoked_ms, change FROM clients WHERE change > $1 ORDER BY name",
                args![change],
            )
            .await?;
        let tokens = self
            .db
            .rows(
                "SELECT t.client AS client, t.hash AS hash, t.origin AS origin, t.expires_ms AS expires_ms \
                 FROM client_tokens t JOIN clients c ON c.id = t.client WHERE c.change > $1 ORDER BY t.created_ms",
                args![change],
            )
            .await?;
        let mut tokens_of: HashMap<String, Vec<TokenRow>> = HashMap::new();
        for row in &tokens {
            tokens_of.entry(row.text("client")?).or_default().push(token(row)?);
        }
        rows.iter()
            .map(|row| {
                let mut client = client(row)?;
                client.tokens = tokens_of.remove(&client.id).unwrap_or_default();
                Ok(client)
            })
            .collect()
    }

    /// The client called `name`.
    pub async fn client(&self, name: &str) -> Result<ClientRow, StoreError> {
        let row = self
            .db
            .row(
                "SELECT id, name, company, created_ms, revoked_ms, change FROM clients WHERE name = $1",
                args![name],
            )
            .await?
            .ok_or_else(|| StoreError::NoSuchClient(name.to_owned()))?;
        let mut client = client(&row)?;
        let sql = "SELECT hash, origin, expires_ms FROM client_tokens WHERE client = $1 ORDER BY created_ms";
        for row in self.db.rows(sql, args![client.id.as_str()]).await? {
            client.tokens.push(token(&row)?);
        }
        Ok(client)
    }

    /// Adds a client with its grant, in one transaction.
    pub(crate) async fn add_client(&self, new: NewClient<'_>) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        self.insert_client(&mut tx, &new).await?;
        tx.commit().await
    }

    /// Makes the store agree with a client of the configuration file: adds it when missing, else brings company, configured
    /// token, application and refresh token up to date. A revoked client stays revoked. Says whether it is.
    pub(crate) async fn ensure_client(&self, wanted: NewClient<'_>) -> Result<bool, StoreError> {
        let mut tx = self.write().await?;
        let known =
            tx.row("SELECT id, company, revoked_ms FROM clients WHERE name = $1", args![wanted.name]).await?;
        let Some(row) = known else {
            self.insert_client(&mut tx, &wanted).await?;
            tx.commit().await?;
            return Ok(false);
        };
        let id = row.text("id")?;
        if row.int_or_none("revoked_ms")?.is_some() {
            return Ok(true);
        }
        let mut touched = row.text_or_none("company")?.as_deref() != wanted.company;
        if let Some(hash) = wanted.token {
            touched |= self.bind_configured_token(&mut tx, &id, hash).await?;
        }
        let mut seeded = false;
        if let Some(seed) = &wanted.seed {
            seeded = grants::seed(&mut tx, &self.keys, &self.clock, &id, seed).await?;
        }
        if !touched && !seeded {
            return Ok(false);
        }
        let change = tx.change();
        tx.run(
            "UPDATE clients SET company = $2, change = $3 WHERE id = $1",
            args![id.as_str(), wanted.company, change],
        )
        .await?;
        tx.commit().await?;
        Ok(false)
    }

    /// Binds a new token to a client. Its other tokens end at once, or `grace_ms` from now.
    pub(crate) async fn rotate_token(
        &self,
        client: &str,
        hash: &KeyedHash,
        grace_ms: Option<i64>,
    ) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        match grace_ms {
            None => tx.run("DELETE FROM client_tokens WHERE client = $1", args![client]).await?,
            Some(grace_ms) => {
                let ends = self.clock.unix_ms().saturating_add(grace_ms);
                tx.run(
                    "UPDATE client_tokens SET expires_ms = $2 \
                     WHERE client = $1 AND (expires_ms IS NULL OR expires_ms > $2)",
                    args![client, ends],
                )
                .await?
            }
        };
        self.insert_token(&mut tx, client, hash, TokenOrigin::Managed).await?;
        touch(&mut tx, client).await?;
        tx.commit().await
    }

    /// Ends a client: its tokens select nothing any more, and its grant's secrets are erased.
    pub(crate) async fn revoke_client(&self, client: &str) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        tx.run("DELETE FROM client_tokens WHERE client = $1", args![client]).await?;
        tx.run("DELETE FROM connect_states WHERE client = $1", args![client]).await?;
        tx.run("DELETE FROM resume_steps WHERE client = $1", args![client]).await?;
        grants::erase(&mut tx, &self.clock, client).await?;
        let change = tx.change();
        tx.run(
            "UPDATE clients SET revoked_ms = $2, change = $3 WHERE id = $1 AND revoked_ms IS NULL",
            args![client, self.clock.unix_ms(), change],
        )
        .await?;
        tx.commit().await
    }

    /// Deletes what has expired: old tokens past their grace, pending authorizations, half-done work. Gives how many rows.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        let now = self.clock.unix_ms();
        let expired = "SELECT (SELECT COUNT(*) FROM client_tokens WHERE expires_ms <= $1) \
                       + (SELECT COUNT(*) FROM connect_states WHERE expires_ms <= $1) \
                       + (SELECT COUNT(*) FROM resume_steps WHERE expires_ms <= $1) AS expired";
        let row = self.db.row(expired, args![now]).await?;
        if row.map_or(Ok(0), |row| row.int("expired"))? == 0 {
            return Ok(0);
        }
        let mut tx = self.write().await?;
        let change = tx.change();
        tx.run(
            "UPDATE clients SET change = $2 WHERE id IN (SELECT client FROM client_tokens WHERE expires_ms <= $1)",
            args![now, change],
        )
        .await?;
        let mut gone = tx.run("DELETE FROM client_tokens WHERE expires_ms <= $1", args![now]).await?;
        gone += tx.run("DELETE FROM connect_states WHERE expires_ms <= $1", args![now]).await?;
        gone += tx.run("DELETE FROM resume_steps WHERE expires_ms <= $1", args![now]).await?;
        tx.commit().await?;
        Ok(gone)
    }

    async fn insert_client(&self, tx: &mut Tx, new: &NewClient<'_>) -> Result<(), StoreError> {
        let (id, change) = (new_id(), tx.change());
        let added = tx
            .run(
                "INSERT INTO clients (id, name, company, created_ms, change) VALUES ($1, $2, $3, $4, $5) \
                 ON CONFLICT (name) DO NOTHING",
                args![id.as_str(), new.name, new.company, self.clock.unix_ms(), change],
            )
            .await?;
        if added == 0 {
            return Err(StoreError::NameTaken(new.name.to_owned()));
        }
        if let Some(hash) = new.token {
            self.insert_token(tx, &id, hash, new.origin).await?;
        }
        grants::insert_empty(tx, &self.clock, &id).await?;
        if let Some(seed) = &new.seed {
            grants::seed(tx, &self.keys, &self.clock, &id, seed).await?;
        }
        Ok(())
    }

    /// Makes `hash` the one token that the configuration gives the client. Says whether that changed anything.
    async fn bind_configured_token(
        &self,
        tx: &mut Tx,
        client: &str,
        hash: &KeyedHash,
    ) -> Result<bool, StoreError> {
        let bound = tx
            .row(
                "SELECT origin FROM client_tokens WHERE client = $1 AND hash = $2 AND expires_ms IS NULL",
                args![client, &hash[..]],
            )
            .await?;
        if bound.is_some() {
            return Ok(false);
        }
        tx.run(
            "DELETE FROM client_tokens WHERE client = $1 AND origin = $2",
            args![client, TokenOrigin::Configured.name()],
        )
        .await?;
        self.insert_token(tx, client, hash, TokenOrigin::Configured).await?;
        Ok(true)
    }

    async fn insert_token(
        &self,
        tx: &mut Tx,
        client: &str,
        hash: &KeyedHash,
        origin: TokenOrigin,
    ) -> Result<(), StoreError> {
        let added = tx
            .run(
                "INSERT INTO client_tokens (hash, client, origin, created_ms) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (hash) DO NOTHING",
                args![&hash[..], client, origin.name(), self.clock.unix_ms()],
            )
            .await?;
        if added == 1 {
            return Ok(());
        }
        let owner = tx
            .row(
                "SELECT c.id AS id, c.name AS name FROM clients c JOIN client_tokens t ON t.client = c.id \
                 WHERE t.hash = $1",
                args![&hash[..]],
            )
            .await?;
        match owner {
            Some(row) if row.text("id")? != client => Err(StoreError::TokenTaken(row.text("name")?)),
            // Its own token again, perhaps one in its grace period: it is the current one from here on.
            _ => {
                let sql = "UPDATE client_tokens SET expires_ms = NULL, origin = $2 WHERE hash = $1";
                tx.run(sql, args![&hash[..], origin.name()]).await?;
                Ok(())
            }
        }
    }
}

async fn touch(tx: &mut Tx, client: &str) -> Result<(), StoreError> {
    let change = tx.change();
    tx.run("UPDATE clients SET change = $2 WHERE id = $1", args![client, change]).await?;
    Ok(())
}

fn client(row: &Row) -> Result<ClientRow, StoreError> {
    Ok(ClientRow {
        id: row.text("id")?,
        name: row.text("name")?,
        company: row.text_or_none("company")?,
        created_ms: row.int("created_ms")?,
        revoked_ms: row.int_or_none("revoked_ms")?,
        change: row.int("change")?,
        tokens: Vec::new(),
    })
}

fn token(row: &Row) -> Result<TokenRow, StoreError> {
    let hash = row.bytes("hash")?;
    let hash = hash.try_into().map_err(|_| StoreError::Corrupt("token hash of wrong length".to_owned()))?;
    let origin = match row.text("origin")?.as_str() {
        "configured" => TokenOrigin::Configured,
        _ => TokenOrigin::Managed,
    };
    Ok(TokenRow { hash, origin, expires_ms: row.int_or_none("expires_ms")? })
}
