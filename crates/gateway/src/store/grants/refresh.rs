//! The transactions of a grant's refresh, ordered so that no grant is lost: the claim with its
//! intent, then the result or the failure.

use super::{ACCESS, GrantKey, GrantRow, GrantState, REFRESH, REFRESH_REQUESTED, lock_row, place};
use crate::secret::Secret;
use crate::store::db::{Tx, args};
use crate::store::seal::HashOf;
use crate::store::{GRANT_ENDED, NewHistory, Store, StoreError};
use std::time::Duration;

/// The result of [`Store::begin_refresh`].
#[derive(Debug)]
pub enum Begin {
    /// The intent is durable and the lease acquired: spend the refresh token.
    Started(GrantRow),
    /// The grant has another generation or cannot be refreshed; this is its current row.
    Moved(GrantRow),
    /// Another gateway is refreshing; check again after at most this time.
    Leased(Duration),
}

/// The result of [`Store::finish_refresh`].
#[derive(Debug)]
pub enum Finish {
    /// The new tokens are durable; this is the new row.
    Stored(GrantRow),
    /// Another process has changed the grant, so the new tokens were discarded; this is its row.
    Moved(GrantRow),
}

/// A new set of tokens to store.
#[derive(Clone, Debug)]
pub struct NewTokens {
    /// The access token.
    pub access: Secret<String>,
    /// The refresh token for the next refresh: that of the response, or else the one just spent.
    pub refresh: Option<Secret<String>>,
    /// The spent refresh token, if it differs from `refresh`.
    pub previous_refresh: Option<Secret<String>>,
    /// Issue time, wall time in milliseconds since 1970.
    pub issued_ms: i64,
    /// Lifetime in milliseconds.
    pub lifetime_ms: Option<i64>,
}

impl Store {
    /// Claims the refresh of `generation` for `owner` and commits the intent to spend its refresh
    /// token. The claim expires after `lease`, measured by the database's clock if gateways share
    /// the store.
    ///
    /// # Errors
    ///
    /// There is no such grant, there is no disk space for the result, or the database fails. No
    /// claim was made then.
    pub async fn begin_refresh(
        &self,
        key: &GrantKey,
        generation: i64,
        owner: &str,
        lease: Duration,
    ) -> Result<Begin, StoreError> {
        // Reserve space first: the result of the refresh must be storable even if the disk fills up
        // meanwhile.
        self.db.reserve().await?;
        let mut tx = self.write().await?;
        let row = lock_row(&mut tx, key).await?;
        let grant = self.grant_row(&row)?;
        if grant.generation != generation || !grant.state.can_refresh() {
            tx.undo().await;
            return Ok(Begin::Moved(grant));
        }
        let now = tx.now_ms(&self.clock).await?;
        if let (true, Some(holder), Some(until)) =
            (self.is_shared(), row.text_or_none("lease_owner")?, row.int_or_none("lease_until_ms")?)
            // A lease of this process itself remains from an attempt whose result was not stored.
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
        // Only a hash: the intent needs to identify the token, not to contain it.
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

    /// Stores the tokens that succeed `generation`, provided that is the grant's generation, and
    /// removes claim and intent.
    ///
    /// Safe to repeat after an error: if the first attempt was committed, the grant already has
    /// exactly these tokens.
    ///
    /// # Errors
    ///
    /// The database fails. It is then unknown whether the tokens are durable; call again.
    pub async fn finish_refresh(
        &self,
        key: &GrantKey,
        generation: i64,
        tokens: &NewTokens,
    ) -> Result<Finish, StoreError> {
        self.write_for_sure(move || async move {
            let mut tx = self.write().await?;
            let grant = self.grant_row(&lock_row(&mut tx, key).await?)?;
            // Only the generation that was spent may be succeeded. A revocation in the meantime
            // erased the grant, and these tokens must not revive it.
            if grant.generation != generation || grant.state == GrantState::Unconnected {
                tx.undo().await;
                return Ok(Finish::Moved(grant));
            }
            self.put_tokens(&mut tx, key, generation + 1, tokens).await?;
            let grant = self.grant_row(&lock_row(&mut tx, key).await?)?;
            tx.commit().await?;
            Ok(Finish::Stored(grant))
        })
        .await
    }

    /// Extends the claim of `owner` to `lease` from now. Has no effect on a store that is not
    /// shared, where no other gateway waits for the claim.
    pub(crate) async fn extend_lease(
        &self,
        key: &GrantKey,
        owner: &str,
        lease: Duration,
    ) -> Result<(), StoreError> {
        if !self.is_shared() {
            return Ok(());
        }
        // Leases always use the database's clock.
        let sql = "UPDATE grants SET lease_until_ms = (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT + $3 \
                   WHERE id = $1 AND lease_owner = $2";
        self.db.run_alone(sql, args![key.grant.as_str(), owner, millis(lease)]).await?;
        Ok(())
    }

    /// Reserves disk space for the tokens before an authorization code is spent.
    pub(crate) async fn prepare_connecting(&self) -> Result<(), StoreError> {
        self.db.reserve().await
    }

    /// Stores the tokens of a new authorization, replacing existing ones.
    ///
    /// # Errors
    ///
    /// There is no such client, it is revoked, or the database fails.
    pub async fn connect_grant(&self, key: &GrantKey, tokens: &NewTokens) -> Result<GrantRow, StoreError> {
        self.write_for_sure(move || self.connect_once(key, tokens)).await
    }

    async fn connect_once(&self, key: &GrantKey, tokens: &NewTokens) -> Result<GrantRow, StoreError> {
        let mut tx = self.write().await?;
        let before = lock_row(&mut tx, key).await?;
        let client =
            tx.row("SELECT revoked_ms FROM clients WHERE id = $1", args![key.client.as_str()]).await?;
        if client.map_or(Ok(None), |row| row.int_or_none("revoked_ms"))?.is_some() {
            return Err(StoreError::NoSuchClient(key.client.clone()));
        }
        // A new generation, so that a refresh of the replaced tokens that is still running is
        // discarded.
        self.put_tokens(&mut tx, key, before.int("generation")? + 1, tokens).await?;
        let grant = self.grant_row(&lock_row(&mut tx, key).await?)?;
        let entry = NewHistory { kind: "client connected", ..NewHistory::default() };
        self.enter_of_client(&mut tx, &key.client, entry).await?;
        tx.commit().await?;
        Ok(grant)
    }

    /// Releases the claim on `generation` without a result, for `reason`. With `outcome_unknown`
    /// the intent remains, since the refresh token may have been spent.
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

    /// Sets the state of the grant for `reason`, provided that it still has `generation`, and
    /// returns the resulting grant. Its tokens remain, because the access token may still be valid.
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
        let sql = "SELECT state FROM grants WHERE id = $1 AND generation = $2";
        let before = tx.row(sql, args![key.grant.as_str(), generation]).await?;
        let before = before.map(|row| row.text("state")).transpose()?;
        let marked = tx
            .run(
                "UPDATE grants SET state = $3, state_reason = $4, lease_owner = NULL, lease_until_ms = NULL, \
                 updated_ms = $5, change = $6 WHERE id = $1 AND generation = $2",
                args![key.grant.as_str(), generation, state.name(), reason, self.clock.unix_ms(), change],
            )
            .await?;
        // The state explains the outcome now, so the next refresh starts without a doubt about its
        // token.
        if marked > 0 {
            tx.run("DELETE FROM refresh_intents WHERE grant_id = $1", args![key.grant.as_str()]).await?;
        }
        let has_ended = state == GrantState::NeedsReconnect;
        if has_ended && before.is_some_and(|before| before != state.name()) {
            let entry = NewHistory { kind: GRANT_ENDED, detail: reason, ..NewHistory::default() };
            self.enter_of_client(&mut tx, &key.client, entry).await?;
        }
        let grant = self.grant_row(&lock_row(&mut tx, key).await?)?;
        tx.commit().await?;
        Ok(grant)
    }

    /// Requests a refresh from the gateways at once, even during a pause after a failure or after
    /// the grant has ended. Returns whether the grant has credentials to refresh with.
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

    /// Deletes the previous refresh token after the access token of `generation` has worked.
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
