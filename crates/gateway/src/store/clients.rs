//! Rows of clients and of the tokens that authenticate them. A token is stored only as a keyed
//! hash, and each row contains a keyed hash of its content: a token that another program has
//! reassigned to another client is rejected.

use super::credentials::{self, CredentialRow, NewCredentialRow};
use super::db::{DbRow, Tx, args};
use super::grants::{self, GrantSeed};
use super::origin::TokenOrigin;
use super::seal::{HashOf, HashedValue, Hasher, KeyedHash};
use super::{CONFIGURATION, NewHistory, Store, StoreError, archive, new_id};
use crate::clock::rfc3339;
use std::collections::HashMap;

/// A token that authenticates a client.
#[derive(Clone, Debug)]
pub struct TokenRow {
    /// Keyed hash of the token.
    pub hash: KeyedHash,
    /// The side whose fronts accept it; `None` for all fronts.
    pub side: Option<String>,
    /// The origin.
    pub origin: TokenOrigin,
    /// Expiry, wall time in milliseconds since 1970; `None` for no expiry.
    pub expires_ms: Option<i64>,
}

/// A client with its tokens and credentials.
#[derive(Clone, Debug)]
pub struct ClientRow {
    /// Random id, which secrets are bound to.
    pub id: String,
    /// Unique name, chosen by the operator.
    pub name: String,
    /// Secondary company that its calls act for, if any.
    pub company: Option<String>,
    /// Wall time in milliseconds since 1970.
    pub created_ms: i64,
    /// Time of revocation, wall time in milliseconds since 1970.
    pub revoked_ms: Option<i64>,
    /// Number of the last write that changed it.
    pub change: i64,
    /// Whether another program has modified the row. It must not be used then.
    pub is_damaged: bool,
    /// The tokens that authenticate it, oldest first.
    pub tokens: Vec<TokenRow>,
    /// Its fixed tokens for calls to sides without grants, sorted by side.
    pub credentials: Vec<CredentialRow>,
}

impl ClientRow {
    /// Returns whether it has a token or credential from the configuration file.
    pub(crate) fn is_configured(&self) -> bool {
        self.tokens.iter().any(|token| token.origin == TokenOrigin::Configured)
            || self.credentials.iter().any(|credential| credential.origin == TokenOrigin::Configured)
    }
}

/// A client to add.
pub(crate) struct NewClientRow<'a> {
    pub name: &'a str,
    pub company: Option<&'a str>,
    pub tokens: Vec<NewTokenRow<'a>>,
    pub credentials: Vec<NewCredentialRow<'a>>,
    pub origin: TokenOrigin,
    pub seed: Option<GrantSeed<'a>>,
}

/// The result of applying a configured client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ensured {
    /// The store agrees with the configuration.
    Done,
    /// The client is revoked and remains so.
    Revoked,
    /// Another program has modified its row, so it was skipped.
    Damaged,
}

/// A token to add to a client.
pub(crate) struct NewTokenRow<'a> {
    pub hash: KeyedHash,
    /// The side whose fronts accept it; `None` for all fronts.
    pub side: Option<&'a str>,
}

/// Records the tokens that match a condition as retired, before they are deleted. The write number
/// is read from the counter, which the transaction has already incremented.
macro_rules! retire_tokens {
    ($condition:literal) => {
        concat!(
            "INSERT INTO retired_tokens (hash, change) SELECT DISTINCT t.hash, c.value FROM client_tokens t, change_counter c ",
            "WHERE c.id = 1 AND ",
            $condition,
            " ON CONFLICT (hash) DO NOTHING"
        )
    };
}

/// Returns the column value of a side; all sides are stored as an empty string.
fn side_column(side: Option<&str>) -> &str {
    side.unwrap_or_default()
}

impl Store {
    /// Returns the clients changed by a write later than `change`, sorted by name; 0 returns all.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn clients_since(&self, change: i64) -> Result<Vec<ClientRow>, StoreError> {
        let rows = self
            .db
            .rows(
                "SELECT id, name, company, created_ms, revoked_ms, change, mac FROM clients WHERE change > $1 ORDER BY name",
                args![change],
            )
            .await?;
        let tokens = self
            .db
            .rows(
                "SELECT t.client AS client, t.hash AS hash, t.side AS side, t.origin AS origin, \
                 t.expires_ms AS expires_ms, t.mac AS mac \
                 FROM client_tokens t JOIN clients c ON c.id = t.client WHERE c.change > $1 ORDER BY t.created_ms",
                args![change],
            )
            .await?;
        // Three statements for all clients instead of two more per client: a start reads thousands.
        let mut tokens_of: HashMap<String, Vec<TokenRow>> = HashMap::new();
        for row in &tokens {
            if let Some(token) = self.token(row)? {
                tokens_of.entry(row.text("client")?).or_default().push(token);
            }
        }
        let mut credentials_of: HashMap<String, Vec<CredentialRow>> = HashMap::new();
        for (client, credential) in self.credentials_since(change).await? {
            credentials_of.entry(client).or_default().push(credential);
        }
        rows.iter()
            .map(|row| {
                let mut client = self.client_row(row)?;
                client.tokens = tokens_of.remove(&client.id).unwrap_or_default();
                client.credentials = credentials_of.remove(&client.id).unwrap_or_default();
                Ok(client)
            })
            .collect()
    }

    /// Returns the hashes of tokens retired by a write later than `change`: they were rotated, have
    /// expired, or their client was revoked. 0 returns all. If called after
    /// [`Store::clients_since`], it includes tokens retired between the two reads.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn retired_tokens_since(&self, change: i64) -> Result<Vec<KeyedHash>, StoreError> {
        let rows = self.db.rows("SELECT hash FROM retired_tokens WHERE change > $1", args![change]).await?;
        rows.iter().map(|row| token_hash(row.bytes("hash")?)).collect()
    }

    /// Returns the client called `name`.
    ///
    /// # Errors
    ///
    /// There is no client of this name, or the database fails.
    pub async fn client(&self, name: &str) -> Result<ClientRow, StoreError> {
        let row = self
            .db
            .row(
                "SELECT id, name, company, created_ms, revoked_ms, change, mac FROM clients WHERE name = $1",
                args![name],
            )
            .await?
            .ok_or_else(|| StoreError::NoSuchClient(name.to_owned()))?;
        let mut client = self.client_row(&row)?;
        let sql = "SELECT client, hash, side, origin, expires_ms, mac FROM client_tokens WHERE client = $1 \
                   ORDER BY created_ms";
        for row in self.db.rows(sql, args![client.id.as_str()]).await? {
            client.tokens.extend(self.token(&row)?);
        }
        client.credentials = self.credentials_of(&client.id).await?;
        Ok(client)
    }

    /// Adds a client with its grant, in one transaction.
    pub(crate) async fn add_client(&self, new: NewClientRow<'_>) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        self.insert_client(&mut tx, &new).await?;
        let (scope, detail) = words_of_new(&new);
        let entry = NewHistory {
            kind: "client added",
            subject: new.name,
            scope: &scope,
            detail: &detail,
            ..NewHistory::default()
        };
        self.enter(&mut tx, &entry).await?;
        tx.commit().await
    }

    /// Applies clients of the configuration file in one transaction: missing ones are added; for
    /// others, company, configured tokens and credentials, application and refresh token are
    /// updated. A revoked client remains revoked, and its configured tokens count as revoked too.
    /// Returns the results in order.
    pub(crate) async fn ensure_clients(
        &self,
        wanted: &[NewClientRow<'_>],
    ) -> Result<Vec<Ensured>, StoreError> {
        let mut tx = self.write().await?;
        let mut ensured = Vec::with_capacity(wanted.len());
        let (mut changed, mut retired) = (Vec::new(), 0);
        for client in wanted {
            let (became, is_changed) = self.ensure_client(&mut tx, client).await?;
            changed.extend(is_changed.then_some(client.name));
            if became != Ensured::Done {
                // A retired token is always rejected, while an unknown one may be forwarded to the
                // old service. The tokens of a revoked client must not be forwarded.
                retired += retire_unbound(&mut tx, &client.tokens).await?;
            }
            ensured.push(became);
        }
        // Rolled back, so that a reload without changes does not increase the number that all
        // gateways poll.
        if changed.is_empty() && retired == 0 {
            tx.undo().await;
            return Ok(ensured);
        }
        if !changed.is_empty() {
            // Write one history entry for all, since a first start adds thousands of clients.
            let detail = format!("{} added or changed: {}", changed.len(), first_names(&changed));
            let entry = NewHistory { kind: "clients configured", detail: &detail, ..NewHistory::default() };
            self.by(CONFIGURATION).enter(&mut tx, &entry).await?;
        }
        tx.commit().await?;
        Ok(ensured)
    }

    /// Applies one client. Also returns whether it was changed.
    async fn ensure_client(
        &self,
        tx: &mut Tx,
        wanted: &NewClientRow<'_>,
    ) -> Result<(Ensured, bool), StoreError> {
        let sql =
            "SELECT id, name, company, created_ms, revoked_ms, change, mac FROM clients WHERE name = $1";
        // Read inside of the transaction: two gateways that start together would otherwise both
        // insert.
        let Some(row) = tx.row(sql, args![wanted.name]).await? else {
            self.insert_client(tx, wanted).await?;
            return Ok((Ensured::Done, true));
        };
        let known = self.client_row(&row)?;
        if known.is_damaged {
            return Ok((Ensured::Damaged, false));
        }
        if known.revoked_ms.is_some() {
            return Ok((Ensured::Revoked, false));
        }
        let id = known.id;
        let mut touched = known.company.as_deref() != wanted.company;
        touched |= self.bind_configured_tokens(tx, &id, &wanted.tokens).await?;
        touched |= self.bind_configured_credentials(tx, &id, &wanted.credentials).await?;
        if let Some(seed) = &wanted.seed {
            touched |= self.seed_grant_of(tx, &id, seed).await?;
        }
        if !touched {
            return Ok((Ensured::Done, false));
        }
        let change = tx.change();
        let mac = mac_of_client(&self.hasher, &id, wanted.name, wanted.company, None);
        tx.run(
            "UPDATE clients SET company = $2, change = $3, mac = $4 WHERE id = $1",
            args![id.as_str(), wanted.company, change, &mac[..]],
        )
        .await?;
        Ok((Ensured::Done, true))
    }

    /// Adds a new token to a client. Its other tokens of the same side expire at once, or
    /// `grace_ms` from now.
    pub(crate) async fn rotate_token(
        &self,
        client: &str,
        new: &NewTokenRow<'_>,
        grace_ms: Option<i64>,
    ) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        let side = side_column(new.side);
        let ends_ms = grace_ms.map(|grace_ms| self.clock.unix_ms().saturating_add(grace_ms));
        match ends_ms {
            None => {
                let retire = retire_tokens!("t.client = $1 AND t.side = $2");
                tx.run(retire, args![client, side]).await?;
                let sql = "DELETE FROM client_tokens WHERE client = $1 AND side = $2";
                tx.run(sql, args![client, side]).await?
            }
            Some(ends) => {
                let sql = "SELECT client, hash, side, origin, expires_ms, mac FROM client_tokens \
                           WHERE client = $1 AND side = $2 AND (expires_ms IS NULL OR expires_ms > $3)";
                let mut ending = 0;
                for row in tx.rows(sql, args![client, side, ends]).await? {
                    let Some(token) = self.token(&row)? else { continue };
                    let origin = token.origin.name();
                    let mac = mac_of_token(&self.hasher, &token.hash, side, client, origin, Some(ends));
                    let sql =
                        "UPDATE client_tokens SET expires_ms = $3, mac = $4 WHERE hash = $1 AND side = $2";
                    ending += tx.run(sql, args![&token.hash[..], side, ends, &mac[..]]).await?;
                }
                ending
            }
        };
        self.insert_token(&mut tx, client, new, TokenOrigin::Managed).await?;
        tx.touch_client(client).await?;
        let scope = fronts(new.side);
        let detail = ends_ms.map_or_else(
            || "the tokens before it ended at once".to_owned(),
            |ends| format!("the tokens before it end at {}", rfc3339(ends)),
        );
        let entry =
            NewHistory { kind: "token rotated", scope: &scope, detail: &detail, ..NewHistory::default() };
        self.enter_of_client(&mut tx, client, entry).await?;
        tx.commit().await
    }

    /// Revokes a client: deletes its tokens, and erases the secrets of its grant and its
    /// credentials.
    pub(crate) async fn revoke_client(&self, client: &str) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        tx.run(retire_tokens!("t.client = $1"), args![client]).await?;
        tx.run("DELETE FROM client_tokens WHERE client = $1", args![client]).await?;
        // A pending authorization would give the revoked client a new grant.
        tx.run("DELETE FROM connect_states WHERE client = $1", args![client]).await?;
        tx.run("DELETE FROM resume_steps WHERE client = $1", args![client]).await?;
        archive::erase(&mut tx, client).await?;
        grants::erase(&mut tx, &self.clock, client).await?;
        credentials::erase(&mut tx, client).await?;
        let sql = "SELECT id, name, company, created_ms, revoked_ms, change, mac FROM clients WHERE id = $1";
        let row = tx.row(sql, args![client]).await?;
        let before = self.client_row(&row.ok_or_else(|| StoreError::NoSuchClient(client.to_owned()))?)?;
        let revoked = before.revoked_ms.filter(|_| !before.is_damaged).unwrap_or(self.clock.unix_ms());
        let mac = mac_of_client(&self.hasher, client, &before.name, before.company.as_deref(), Some(revoked));
        let change = tx.change();
        tx.run(
            "UPDATE clients SET revoked_ms = $2, change = $3, mac = $4 WHERE id = $1",
            args![client, revoked, change, &mac[..]],
        )
        .await?;
        let entry = NewHistory { kind: "client revoked", subject: &before.name, ..NewHistory::default() };
        self.enter(&mut tx, &entry).await?;
        tx.commit().await
    }

    /// Restores a revoked client. Erased data remains erased.
    pub(crate) async fn restore_client(&self, client: &str) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        let sql = "SELECT id, name, company, created_ms, revoked_ms, change, mac FROM clients WHERE id = $1";
        let row = tx.row(sql, args![client]).await?;
        let before = self.client_row(&row.ok_or_else(|| StoreError::NoSuchClient(client.to_owned()))?)?;
        if before.is_damaged {
            return Err(StoreError::Tampered(before.name));
        }
        let mac = mac_of_client(&self.hasher, client, &before.name, before.company.as_deref(), None);
        let change = tx.change();
        tx.run(
            "UPDATE clients SET revoked_ms = NULL, change = $2, mac = $3 WHERE id = $1",
            args![client, change, &mac[..]],
        )
        .await?;
        let entry = NewHistory { kind: "client restored", subject: &before.name, ..NewHistory::default() };
        self.enter(&mut tx, &entry).await?;
        tx.commit().await
    }

    /// Deletes expired rows: tokens after their grace period (their hashes remain as retired),
    /// pending authorizations, unfinished work and admin sessions. Returns the number of rows.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        let now = self.clock.unix_ms();
        let expired = "SELECT (SELECT COUNT(*) FROM client_tokens WHERE expires_ms <= $1) \
                       + (SELECT COUNT(*) FROM connect_states WHERE expires_ms <= $1) \
                       + (SELECT COUNT(*) FROM resume_steps WHERE expires_ms <= $1) \
                       + (SELECT COUNT(*) FROM admin_sessions WHERE ends_ms <= $1) AS expired";
        let row = self.db.row(expired, args![now]).await?;
        // A numbered write makes all gateways read again, so an idle sweep must not write.
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
        // Before the deletion, which removes the rows that it selects.
        tx.run(retire_tokens!("t.expires_ms <= $1"), args![now]).await?;
        let mut gone = tx.run("DELETE FROM client_tokens WHERE expires_ms <= $1", args![now]).await?;
        gone += tx.run("DELETE FROM connect_states WHERE expires_ms <= $1", args![now]).await?;
        gone += tx.run("DELETE FROM resume_steps WHERE expires_ms <= $1", args![now]).await?;
        gone += tx.run("DELETE FROM admin_sessions WHERE ends_ms <= $1", args![now]).await?;
        tx.commit().await?;
        Ok(gone)
    }

    async fn insert_client(&self, tx: &mut Tx, new: &NewClientRow<'_>) -> Result<(), StoreError> {
        let (id, change) = (new_id(), tx.change());
        let mac = mac_of_client(&self.hasher, &id, new.name, new.company, None);
        let added = tx
            .run(
                "INSERT INTO clients (id, name, company, created_ms, change, mac) VALUES ($1, $2, $3, $4, $5, $6) \
                 ON CONFLICT (name) DO NOTHING",
                args![id.as_str(), new.name, new.company, self.clock.unix_ms(), change, &mac[..]],
            )
            .await?;
        if added == 0 {
            return Err(StoreError::NameTaken(new.name.to_owned()));
        }
        for token in &new.tokens {
            self.insert_token(tx, &id, token, new.origin).await?;
        }
        for credential in &new.credentials {
            self.put_credential(tx, &id, credential, new.origin).await?;
        }
        self.insert_empty_grant(tx, &id).await?;
        if let Some(seed) = &new.seed {
            self.seed_grant_of(tx, &id, seed).await?;
        }
        Ok(())
    }

    /// Replaces the configured tokens of a client by `wanted`. Returns whether there was a change.
    async fn bind_configured_tokens(
        &self,
        tx: &mut Tx,
        client: &str,
        wanted: &[NewTokenRow<'_>],
    ) -> Result<bool, StoreError> {
        let sql = "SELECT client, hash, side, origin, expires_ms, mac FROM client_tokens WHERE client = $1";
        let mut held = Vec::new();
        for row in tx.rows(sql, args![client]).await? {
            held.extend(self.token(&row)?);
        }
        let is_same =
            |row: &TokenRow, new: &NewTokenRow<'_>| row.hash == new.hash && row.side.as_deref() == new.side;
        let mut changed = false;
        for row in held.iter().filter(|row| row.origin == TokenOrigin::Configured) {
            if !wanted.iter().any(|new| is_same(row, new)) {
                let side = side_column(row.side.as_deref());
                tx.run(retire_tokens!("t.hash = $1 AND t.side = $2"), args![&row.hash[..], side]).await?;
                let sql = "DELETE FROM client_tokens WHERE hash = $1 AND side = $2";
                tx.run(sql, args![&row.hash[..], side]).await?;
                changed = true;
            }
        }
        for new in wanted {
            if !held.iter().any(|row| is_same(row, new) && row.expires_ms.is_none()) {
                self.insert_token(tx, client, new, TokenOrigin::Configured).await?;
                changed = true;
            }
        }
        Ok(changed)
    }

    async fn insert_token(
        &self,
        tx: &mut Tx,
        client: &str,
        new: &NewTokenRow<'_>,
        origin: TokenOrigin,
    ) -> Result<(), StoreError> {
        let sql = "SELECT c.name AS name, t.client AS client, t.hash AS hash, t.side AS side, t.origin AS origin, \
                   t.expires_ms AS expires_ms, t.mac AS mac \
                   FROM client_tokens t JOIN clients c ON c.id = t.client WHERE t.hash = $1 AND c.id <> $2";
        for owner in tx.rows(sql, args![&new.hash[..], client]).await? {
            if self.token(&owner)?.is_some() {
                return Err(StoreError::TokenTaken(owner.text("name")?));
            }
            // Another program has reassigned the token to another client, where it is invalid, so
            // it can be taken.
            let sql = "DELETE FROM client_tokens WHERE hash = $1 AND side = $2";
            tx.run(sql, args![&new.hash[..], owner.text("side")?.as_str()]).await?;
        }
        let side = side_column(new.side);
        let mac = mac_of_token(&self.hasher, &new.hash, side, client, origin.name(), None);
        // A token of the same client, perhaps in its grace period, becomes current again.
        tx.run(
            "INSERT INTO client_tokens (hash, side, client, origin, created_ms, mac) VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT (hash, side) DO UPDATE SET expires_ms = NULL, origin = excluded.origin, mac = excluded.mac",
            args![&new.hash[..], side, client, origin.name(), self.clock.unix_ms(), &mac[..]],
        )
        .await?;
        Ok(())
    }

    fn client_row(&self, row: &DbRow) -> Result<ClientRow, StoreError> {
        let mut client = ClientRow {
            id: row.text("id")?,
            name: row.text("name")?,
            company: row.text_or_none("company")?,
            created_ms: row.int("created_ms")?,
            revoked_ms: row.int_or_none("revoked_ms")?,
            change: row.int("change")?,
            is_damaged: false,
            tokens: Vec::new(),
            credentials: Vec::new(),
        };
        let parts = parts_of_client(&client.id, &client.name, client.company.as_deref(), client.revoked_ms);
        let mac = row.bytes_or_none("mac")?;
        // Not an error: one modified row must not keep the other clients from being served.
        client.is_damaged = !self.hasher.is_row(HashOf::ClientRow, &parts, mac.as_deref());
        Ok(client)
    }

    /// Parses a token. Returns `None` if another program has modified its row.
    fn token(&self, row: &DbRow) -> Result<Option<TokenRow>, StoreError> {
        let hash = token_hash(row.bytes("hash")?)?;
        let (side, client, origin) = (row.text("side")?, row.text("client")?, row.text("origin")?);
        let expires_ms = row.int_or_none("expires_ms")?;
        let parts = parts_of_token(&hash, &side, &client, &origin, expires_ms);
        if !self.hasher.is_row(HashOf::TokenRow, &parts, row.bytes_or_none("mac")?.as_deref()) {
            tracing::error!(target: "switchback::store", client, "a token's row was changed outside of Switchback; the token is rejected");
            return Ok(None);
        }
        Ok(Some(TokenRow {
            hash,
            side: (!side.is_empty()).then_some(side),
            origin: TokenOrigin::parse(&origin),
            expires_ms,
        }))
    }
}

/// Records configured tokens of a revoked or damaged client as retired. Returns the number of new
/// ones. A token that authenticates another client remains valid, since retirement only matters for
/// tokens that authenticate no client.
async fn retire_unbound(tx: &mut Tx, tokens: &[NewTokenRow<'_>]) -> Result<u64, StoreError> {
    let change = tx.change();
    let sql = "INSERT INTO retired_tokens (hash, change) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING";
    let mut retired = 0;
    for token in tokens {
        retired += tx.run(sql, args![&token.hash[..], change]).await?;
    }
    Ok(retired)
}

fn token_hash(bytes: Vec<u8>) -> Result<KeyedHash, StoreError> {
    bytes.try_into().map_err(|_| StoreError::Corrupt("token hash of wrong length".to_owned()))
}

/// Describes the fronts that accept a token.
fn fronts(side: Option<&str>) -> String {
    side.map_or_else(|| "all fronts".to_owned(), |side| format!("fronts of {side}"))
}

/// Describes the scope and details of a new client, without its secrets.
fn words_of_new(new: &NewClientRow<'_>) -> (String, String) {
    let mut scope: Vec<String> = new.tokens.iter().map(|token| fronts(token.side)).collect();
    scope.dedup();
    let mut detail = Vec::new();
    detail.extend(new.company.map(|company| format!("company {company}")));
    detail.extend(new.credentials.iter().map(|credential| format!("a credential for {}", credential.side)));
    detail.extend(new.seed.as_ref().map(|seed| match seed.refresh {
        Some(_) => "an application and a refresh token".to_owned(),
        None => "an application".to_owned(),
    }));
    (scope.join(", "), detail.join(", "))
}

/// Joins the first few names and appends the number of the others.
fn first_names(names: &[&str]) -> String {
    const NAMED: usize = 10;
    let named = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Adds keyed hashes to rows written before they existed.
pub(super) async fn bind(tx: &mut Tx, hasher: &Hasher) -> Result<(), StoreError> {
    for row in tx.rows("SELECT id, name, company, revoked_ms FROM clients", &[]).await? {
        let (id, company) = (row.text("id")?, row.text_or_none("company")?);
        let revoked = row.int_or_none("revoked_ms")?;
        let mac = mac_of_client(hasher, &id, &row.text("name")?, company.as_deref(), revoked);
        tx.run("UPDATE clients SET mac = $2 WHERE id = $1", args![id.as_str(), &mac[..]]).await?;
    }
    for row in tx.rows("SELECT hash, side, client, origin, expires_ms FROM client_tokens", &[]).await? {
        let (hash, side, origin) = (row.bytes("hash")?, row.text("side")?, row.text("origin")?);
        let expires = row.int_or_none("expires_ms")?;
        let mac = mac_of_token(hasher, &hash, &side, &row.text("client")?, &origin, expires);
        let sql = "UPDATE client_tokens SET mac = $3 WHERE hash = $1 AND side = $2";
        tx.run(sql, args![hash, side.as_str(), &mac[..]]).await?;
    }
    Ok(())
}

fn mac_of_client(
    hasher: &Hasher,
    id: &str,
    name: &str,
    company: Option<&str>,
    revoked_ms: Option<i64>,
) -> KeyedHash {
    hasher.row(HashOf::ClientRow, &parts_of_client(id, name, company, revoked_ms))
}

fn parts_of_client<'a>(
    id: &'a str,
    name: &'a str,
    company: Option<&'a str>,
    revoked_ms: Option<i64>,
) -> [HashedValue<'a>; 4] {
    [id.into(), name.into(), company.into(), revoked_ms.into()]
}

fn mac_of_token(
    hasher: &Hasher,
    hash: &[u8],
    side: &str,
    client: &str,
    origin: &str,
    expires_ms: Option<i64>,
) -> KeyedHash {
    hasher.row(HashOf::TokenRow, &parts_of_token(hash, side, client, origin, expires_ms))
}

fn parts_of_token<'a>(
    hash: &'a [u8],
    side: &'a str,
    client: &'a str,
    origin: &'a str,
    expires_ms: Option<i64>,
) -> [HashedValue<'a>; 5] {
    [HashedValue::Bytes(hash), side.into(), client.into(), origin.into(), expires_ms.into()]
}
