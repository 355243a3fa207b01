//! Initial content of a grant: the empty grant of a new client, and credentials from the
//! configuration or an operator.

use super::{APP_ID, APP_SECRET, GrantFlow, GrantKey, GrantState, REFRESH, mac, open, place};
use crate::secret::Secret;
use crate::store::db::{Tx, args};
use crate::store::seal::{KeyRing, KeyedHash};
use crate::store::{Store, StoreError, new_id};

/// Initial credentials of a grant.
pub(crate) struct GrantSeed<'a> {
    pub flow: GrantFlow,
    pub app_id: &'a Secret<String>,
    /// The secret or the key, in its stored form.
    pub app_secret: Secret<String>,
    pub refresh: Option<(&'a Secret<String>, KeyedHash)>,
}

impl Store {
    /// Sets the application for a grant's next authorization.
    pub(crate) async fn set_app(
        &self,
        key: &GrantKey,
        app_id: &Secret<String>,
        app_secret: Secret<String>,
    ) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        let seed = GrantSeed { flow: GrantFlow::AuthorizationCode, app_id, app_secret, refresh: None };
        self.seed_grant(&mut tx, key, &seed).await?;
        tx.commit().await
    }

    /// Adds the empty grant of a new client.
    pub(in crate::store) async fn insert_empty_grant(
        &self,
        tx: &mut Tx,
        client: &str,
    ) -> Result<(), StoreError> {
        let (id, change) = (new_id(), tx.change());
        let mac = mac(&self.hasher, &id, client, GrantFlow::default());
        tx.run(
            "INSERT INTO grants (id, client, generation, state, updated_ms, change, mac) \
             VALUES ($1, $2, 0, $3, $4, $5, $6)",
            args![
                id.as_str(),
                client,
                GrantState::Unconnected.name(),
                self.clock.unix_ms(),
                change,
                &mac[..]
            ],
        )
        .await?;
        Ok(())
    }

    /// Applies configured credentials to a client's grant. Returns whether there was a change.
    pub(in crate::store) async fn seed_grant_of(
        &self,
        tx: &mut Tx,
        client: &str,
        seed: &GrantSeed<'_>,
    ) -> Result<bool, StoreError> {
        let row = tx.row("SELECT id FROM grants WHERE client = $1", args![client]).await?;
        let id = row.ok_or_else(|| StoreError::Corrupt("client without a grant".to_owned()))?.text("id")?;
        self.seed_grant(tx, &GrantKey { client: client.to_owned(), grant: id }, seed).await
    }

    /// Replaces the application if it differs. The refresh token is used only if it differs from
    /// the one seeded before: the stored one has probably been rotated since, and the configured
    /// one spent.
    async fn seed_grant(
        &self,
        tx: &mut Tx,
        key: &GrantKey,
        seed: &GrantSeed<'_>,
    ) -> Result<bool, StoreError> {
        let (keys, now, change) = (&self.keys, self.clock.unix_ms(), tx.change());
        let sql = "SELECT app_id, app_secret, seed_mark, flow FROM grants WHERE id = $1";
        let row = tx.row(sql, args![key.grant.as_str()]).await?;
        let row = row.ok_or_else(|| StoreError::Corrupt("client without a grant".to_owned()))?;
        let mut changed = false;
        let flow_before = GrantFlow::parse(&row.text("flow")?)?;
        if flow_before != seed.flow {
            changed = true;
            self.set_flow(tx, key, seed.flow).await?;
        }
        if !holds(keys, key, APP_ID, row.bytes_or_none("app_id")?, seed.app_id)
            || !holds(keys, key, APP_SECRET, row.bytes_or_none("app_secret")?, &seed.app_secret)
        {
            changed = true;
            tx.run(
                "UPDATE grants SET app_id = $2, app_secret = $3, updated_ms = $4, change = $5 WHERE id = $1",
                args![
                    key.grant.as_str(),
                    keys.seal(&place(APP_ID, key), seed.app_id.expose().as_bytes()),
                    keys.seal(&place(APP_SECRET, key), seed.app_secret.expose().as_bytes()),
                    now,
                    change
                ],
            )
            .await?;
            // The server rejected the application, not the grant, so other credentials justify
            // another attempt.
            tx.run(
                "UPDATE grants SET state = $2, state_reason = NULL WHERE id = $1 AND (state = $3 \
                 OR (state = $4 AND state_reason IN ('invalid_client', 'unauthorized_client')))",
                args![
                    key.grant.as_str(),
                    GrantState::Active.name(),
                    GrantState::Misconfigured.name(),
                    GrantState::NeedsReconnect.name(),
                ],
            )
            .await?;
        }
        // A client credentials grant needs no person to connect it.
        if seed.flow == GrantFlow::ClientCredentials && changed {
            let sql = "UPDATE grants SET state = $2, state_reason = NULL, updated_ms = $3, change = $4 WHERE id = $1";
            tx.run(sql, args![key.grant.as_str(), GrantState::Active.name(), now, change]).await?;
        }
        if let Some((refresh, mark)) = &seed.refresh
            && row.bytes_or_none("seed_mark")?.as_deref() != Some(&mark[..])
        {
            changed = true;
            self.refuse_shared(tx, key, mark).await?;
            tx.run(
                "UPDATE grants SET generation = generation + 1, state = $2, state_reason = NULL, access = NULL, \
                 refresh = $3, previous_refresh = NULL, issued_ms = NULL, lifetime_ms = NULL, seed_mark = $4, \
                 updated_ms = $5, change = $6 WHERE id = $1",
                args![
                    key.grant.as_str(),
                    GrantState::Active.name(),
                    keys.seal(&place(REFRESH, key), refresh.expose().as_bytes()),
                    &mark[..],
                    now,
                    change
                ],
            )
            .await?;
            tx.run("DELETE FROM refresh_intents WHERE grant_id = $1", args![key.grant.as_str()]).await?;
        }
        Ok(changed)
    }

    /// Rejects a refresh token that another grant was seeded with. Two grants with one refresh
    /// token would invalidate each other, since the second to refresh presents a spent token.
    async fn refuse_shared(&self, tx: &mut Tx, key: &GrantKey, mark: &KeyedHash) -> Result<(), StoreError> {
        let sql = "SELECT c.name AS name FROM grants g JOIN clients c ON c.id = g.client \
                   WHERE g.seed_mark = $1 AND g.id <> $2";
        match tx.row(sql, args![&mark[..], key.grant.as_str()]).await? {
            Some(row) => Err(StoreError::RefreshTokenTaken(row.text("name")?)),
            None => Ok(()),
        }
    }

    async fn set_flow(&self, tx: &mut Tx, key: &GrantKey, flow: GrantFlow) -> Result<(), StoreError> {
        let change = tx.change();
        let mac = mac(&self.hasher, &key.grant, &key.client, flow);
        // Tokens of the other flow are of no use.
        tx.run(
            "UPDATE grants SET flow = $2, mac = $3, generation = generation + 1, access = NULL, refresh = NULL, \
             previous_refresh = NULL, issued_ms = NULL, lifetime_ms = NULL, seed_mark = NULL, state = $4, \
             state_reason = NULL, change = $5 WHERE id = $1",
            args![key.grant.as_str(), flow.name(), &mac[..], GrantState::Unconnected.name(), change],
        )
        .await?;
        tx.run("DELETE FROM refresh_intents WHERE grant_id = $1", args![key.grant.as_str()]).await?;
        Ok(())
    }
}

fn holds(
    keys: &KeyRing,
    key: &GrantKey,
    name: &'static str,
    sealed: Option<Vec<u8>>,
    wanted: &Secret<String>,
) -> bool {
    sealed
        .and_then(|sealed| open(keys, key, name, &sealed).ok())
        .is_some_and(|held| held.expose() == wanted.expose())
}
