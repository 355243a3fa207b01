//! The transactions that a refresh of a grant is made of, in the order that loses none: the claim and the intent, the result,
//! or how it failed.

use super::{ACCESS, GrantKey, GrantRow, GrantState, REFRESH, REFRESH_REQUESTED, locked, place};
use crate::secret::Secret;
use crate::store::db::{Tx, args};
use crate::store::seal::HashOf;
use crate::store::{NewHistory, Store, StoreError};
use std::time::Duration;

/// What [`Store::begin_refresh`] found.
#[derive(Debug)]
pub enum Begin {
    /// The intent is durable and the lease ours: spend the refresh token.
    Started(GrantRow),
    /// Another process has moved the grant on; this is it now.
    Moved(GrantRow),
    /// Another gateway is refreshing; look again after this long at the latest.
    Leased(Duration),
}

/// What [`Store::finish_refresh`] did.
#[derive(Debug)]
pub enum Finish {
    /// The new tokens are durable; this is the grant now.
    Stored(GrantRow),
    /// Another process has moved the grant on; ours were dropped, this is the grant.
    Moved(GrantRow),
}

/// A new set of tokens to store.
#[derive(Clone, Debug)]
pub struct NewTokens {
    /// The access token.
    pub access: Secret<String>,
    /// The refresh token to use next: the answer's, or the one that was spent when the answer had none.
    pub refresh: Option<Secret<String>>,
    /// The one that was spent, where it differs from `refresh`.
    pub previous_refresh: Option<Secret<String>>,
    /// When they were issued, wall time in milliseconds since 1970.
    pub issued_ms: i64,
    /// For how long, in milliseconds.
    pub lifetime_ms: Option<i64>,
}

impl Store {
    /// Claims the refresh of `generation` for `owner` and commits the intent to spend its refresh token. The claim ends by
    /// itself after `lease`, counted by the database's clock where gateways share one.
    ///
    /// # Errors
    ///
    /// There is no such grant, its tokens were not sealed by this store, or the database fails: then no claim
    /// was made.
    pub async fn begin_refresh(
        &self,
        key: &GrantKey,
        generation: i64,
        owner: &str,
        lease: Duration,
    ) -> Result<Begin, StoreError> {
        // What the refresh brings must find room, whatever else fills the disk meanwhile.
        self.db.reserve().await?;
        let mut tx = self.write().await?;
        let row = locked(&mut tx, key).await?;
        let grant = self.grant_row(&row)?;
        if grant.generation != generation || !grant.state.can_refresh() {
            tx.undo().await;
            return Ok(Begin::Moved(grant));
        }
        let now = tx.now_ms(&self.clock).await?;
        if let (true, Some(holder), Some(until)) =
            (self.is_shared(), row.text_or_none("lease_owner")?, row.int_or_none("lease_until_ms")?)
            && holder != owner
            && until > now
        {
            tx.undo().await;
            return Ok(Begin::Leased(Duration::from_millis(until.abs_diff(now))));
        }
        let until = now.saturating_add(millis(lease));
        tx.run(
            "UPDATE grants SET lease_owner = $2, lease_until_ms = $3 WHERE id = $1",
            args![key.grant.as_str(), owner, until],
        )
        .await?;
        let refresh = grant.secrets.as_ref().ok().and_then(|secrets| secrets.refresh.as_ref());
        let hash = refresh
            .map_or([0; 32], |token| self.hasher.hash(HashOf::RefreshToken, token.expose().as_bytes()));
        tx.run(
            "INSERT INTO refresh_intents (grant_id, generation, refresh_hash, owner, started_ms) \
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (grant_id) DO UPDATE SET generation = excluded.generation, \
             refresh_hash = excluded.refresh_hash, owner = excluded.owner, started_ms = excluded.started_ms",
            args![key.grant.as_str(), generation, &hash[..], owner, now],
        )
        .await?;
        tx.commit().await?;
        Ok(Begin::Started(grant))
    }

    /// Makes the tokens that succeed `generation` durable, provided the grant is still at it, and ends claim and intent.
    ///
    /// Safe to repeat after an error: when the first try did reach the disk, the grant has moved to exactly these tokens.
    ///
    /// # Errors
    ///
    /// The database fails. Whether the tokens are durable is not known then; ask again.
    pub async fn finish_refresh(
        &self,
        key: &GrantKey,
        generation: i64,
        tokens: &NewTokens,
    ) -> Result<Finish, StoreError> {
        self.write_for_sure(move || async move {
            let mut tx = self.write().await?;
            let grant = self.grant_row(&locked(&mut tx, key).await?)?;
            if grant.generation != generation || grant.state == GrantState::Unconnected {
                tx.undo().await;
                return Ok(Finish::Moved(grant));
            }
            self.put_tokens(&mut tx, key, generation + 1, tokens).await?;
            let grant = self.grant_row(&locked(&mut tx, key).await?)?;
            tx.commit().await?;
            Ok(Finish::Stored(grant))
        })
        .await
    }

    /// Lets the claim of `owner` hold for another `lease` from now. Where no gateways share the store nobody waits for it.
    pub(crate) async fn extend_lease(
        &self,
        key: &GrantKey,
        owner: &str,
        lease: Duration,
    ) -> Result<(), StoreError> {
        if !self.is_shared() {
            return Ok(());
        }
        // The database's clock, as everywhere in leases.
        let sql = "UPDATE grants SET lease_until_ms = (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT + $3 \
                   WHERE id = $1 AND lease_owner = $2";
        self.db.run_alone(sql, args![key.grant.as_str(), owner, millis(lease)]).await?;
        Ok(())
    }

    /// Makes sure, before a code is spent, that what it brings will find room.
    pub(crate) async fn prepare_connecting(&self) -> Result<(), StoreError> {
        self.db.reserve().await
    }

    /// Stores the tokens of a fresh authorization, whatever the grant had before.
    ///
    /// # Errors
    ///
    /// There is no such client, its refresh token is another client's, or the database fails.
    pub async fn connect_grant(&self, key: &GrantKey, tokens: &NewTokens) -> Result<GrantRow, StoreError> {
        self.write_for_sure(move || self.connect_once(key, tokens)).await
    }

    async fn connect_once(&self, key: &GrantKey, tokens: &NewTokens) -> Result<GrantRow, StoreError> {
        let mut tx = self.write().await?;
        let before = locked(&mut tx, key).await?;
        let client =
            tx.row("SELECT revoked_ms FROM clients WHERE id = $1", args![key.client.as_str()]).await?;
        if client.map_or(Ok(None), |row| row.int_or_none("revoked_ms"))?.is_some() {
            return Err(StoreError::NoSuchClient(key.client.clone()));
        }
        self.put_tokens(&mut tx, key, before.int("generation")? + 1, tokens).await?;
        let grant = self.grant_row(&locked(&mut tx, key).await?)?;
        let entry = NewHistory { kind: "client connected", ..NewHistory::default() };
        self.enter_of_client(&mut tx, &key.client, entry).await?;
        tx.commit().await?;
        Ok(grant)
    }

    /// Ends the claim on `generation` without a result, for `reason`. With `outcome_unknown` the intent stays, as the refresh
    /// token may have been spent.
    pub(crate) async fn abandon_refresh(
        &self,
        key: &GrantKey,
        generation: i64,
        owner: &str,
        reason: &str,
        outcome_unknown: bool,
    ) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        let change = tx.change();
        tx.run(
            "UPDATE grants SET lease_owner = NULL, lease_until_ms = NULL, state_reason = $4, change = $5 \
             WHERE id = $1 AND lease_owner = $2 AND generation = $3",
            args![key.grant.as_str(), owner, generation, reason, change],
        )
        .await?;
        if !outcome_unknown {
            tx.run(
                "DELETE FROM refresh_intents WHERE grant_id = $1 AND generation = $2 AND owner = $3",
                args![key.grant.as_str(), generation, owner],
            )
            .await?;
        }
        tx.commit().await
    }

    /// Puts the grant into `state` for `reason`, provided it is still at `generation`; gives the grant as it is then. Its tokens
    /// stay: the access token may live for a while yet.
    ///
    /// # Errors
    ///
    /// There is no such grant, or the database fails.
    pub async fn fail_grant(
        &self,
        key: &GrantKey,
        generation: i64,
        state: GrantState,
        reason: &str,
    ) -> Result<GrantRow, StoreError> {
        let mut tx = self.write().await?;
        let change = tx.change();
        let marked = tx
            .run(
                "UPDATE grants SET state = $3, state_reason = $4, lease_owner = NULL, lease_until_ms = NULL, \
                 updated_ms = $5, change = $6 WHERE id = $1 AND generation = $2",
                args![key.grant.as_str(), generation, state.name(), reason, self.clock.unix_ms(), change],
            )
            .await?;
        if marked > 0 {
            tx.run("DELETE FROM refresh_intents WHERE grant_id = $1", args![key.grant.as_str()]).await?;
        }
        let grant = self.grant_row(&locked(&mut tx, key).await?)?;
        tx.commit().await?;
        Ok(grant)
    }

    /// Has the gateways refresh the grant at once, also one that has ended or that waits after a failure. Returns whether the
    /// grant has something to refresh with.
    pub(crate) async fn request_refresh(&self, key: &GrantKey) -> Result<bool, StoreError> {
        let mut tx = self.write().await?;
        let change = tx.change();
        let marked = tx
            .run(
                "UPDATE grants SET state = $2, state_reason = $3, updated_ms = $4, change = $5 \
                 WHERE id = $1 AND state <> $6",
                args![
                    key.grant.as_str(),
                    GrantState::Active.name(),
                    REFRESH_REQUESTED,
                    self.clock.unix_ms(),
                    change,
                    GrantState::Unconnected.name()
                ],
            )
            .await?;
        if marked == 0 {
            tx.undo().await;
            return Ok(false);
        }
        let entry = NewHistory { kind: "refresh requested", ..NewHistory::default() };
        self.enter_of_client(&mut tx, &key.client, entry).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Drops the previous refresh token, now that the access token of `generation` has worked.
    pub(crate) async fn forget_previous(&self, key: &GrantKey, generation: i64) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        tx.run(
            "UPDATE grants SET previous_refresh = NULL WHERE id = $1 AND generation = $2",
            args![key.grant.as_str(), generation],
        )
        .await?;
        tx.commit().await
    }

    async fn put_tokens(
        &self,
        tx: &mut Tx,
        key: &GrantKey,
        generation: i64,
        tokens: &NewTokens,
    ) -> Result<(), StoreError> {
        let seal =
            |column, secret: &Secret<String>| self.keys.seal(&place(column, key), secret.expose().as_bytes());
        let change = tx.change();
        tx.run(
            "UPDATE grants SET generation = $2, state = $3, state_reason = NULL, access = $4, refresh = $5, \
             previous_refresh = $6, issued_ms = $7, lifetime_ms = $8, lease_owner = NULL, lease_until_ms = NULL, \
             updated_ms = $9, change = $10 WHERE id = $1",
            args![
                key.grant.as_str(),
                generation,
                GrantState::Active.name(),
                seal(ACCESS, &tokens.access),
                tokens.refresh.as_ref().map(|token| seal(REFRESH, token)),
                tokens.previous_refresh.as_ref().map(|token| seal(REFRESH, token)),
                tokens.issued_ms,
                tokens.lifetime_ms,
                self.clock.unix_ms(),
                change,
            ],
        )
        .await?;
        tx.run("DELETE FROM refresh_intents WHERE grant_id = $1", args![key.grant.as_str()]).await?;
        Ok(())
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
