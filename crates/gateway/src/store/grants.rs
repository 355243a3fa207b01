//! Grants as rows, and the transactions a refresh is made of. When to refresh, and what an answer means, is decided in `token`.
//!
//! The *generation* of a grant fences every write about its tokens: it counts the token sets the grant has had, and a write
//! that was meant for another generation than the row's changes nothing and says so. The order that loses no grant is:
//! [`Store::begin_refresh`] commits the intent, the refresh token is spent, [`Store::finish_refresh`] commits the result, and
//! only then is the result used.

use super::db::{Row, Tx, args};
use super::seal::{HashOf, Hasher, KeyRing, KeyedHash, Part, Place, SealError};
use super::{Store, StoreError, new_id};
use crate::clock::Clock;
use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Names a grant: its client's id and its own. Secrets are bound to both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrantKey {
    /// Id of the client.
    pub client: String,
    /// Id of the grant.
    pub grant: String,
}

/// Where a grant stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantState {
    /// Nobody has given this client an authorization yet.
    Unconnected,
    /// It has what an access token is asked for with, and has not had one yet.
    Pending,
    /// It has tokens, and refreshes them.
    Active,
    /// The authorization server refuses how it is asked: the application's id, its secret, a scope. An operator has to change
    /// the configuration, here or there; the grant itself may be sound, and is tried now and then.
    Misconfigured,
    /// The authorization server takes its refresh token no more; a person has to connect the client again.
    NeedsReconnect,
}

impl GrantState {
    /// All of them.
    pub const ALL: [GrantState; 5] = [
        GrantState::Unconnected,
        GrantState::Pending,
        GrantState::Active,
        GrantState::Misconfigured,
        GrantState::NeedsReconnect,
    ];

    /// The name that metrics and answers use.
    pub fn name(self) -> &'static str {
        match self {
            GrantState::Unconnected => "unconnected",
            GrantState::Pending => "pending",
            GrantState::Active => "active",
            GrantState::Misconfigured => "misconfigured",
            GrantState::NeedsReconnect => "needs_reconnect",
        }
    }

    /// Whether asking for another access token is worth a try.
    pub(crate) fn can_refresh(self) -> bool {
        matches!(self, GrantState::Pending | GrantState::Active | GrantState::Misconfigured)
    }

    /// Reads the name in the store. A grant that waits for its first token is an active one there, without a token.
    fn parse(name: &str, has_had_token: bool) -> Result<Self, StoreError> {
        let state = GrantState::ALL.into_iter().find(|state| state.name() == name);
        match state.ok_or_else(|| StoreError::Corrupt(format!("unknown grant state {name:?}")))? {
            GrantState::Active if !has_had_token => Ok(GrantState::Pending),
            state => Ok(state),
        }
    }
}

/// How a grant gets its access tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// A person authorizes once; a refresh token brings each next access token (RFC 6749, sections 4.1 and 6).
    #[default]
    AuthorizationCode,
    /// The application asks for itself (RFC 6749, section 4.4).
    ClientCredentials,
}

impl Flow {
    /// The name that the store, the configuration and answers use.
    pub fn name(self) -> &'static str {
        match self {
            Flow::AuthorizationCode => "authorization_code",
            Flow::ClientCredentials => "client_credentials",
        }
    }

    fn parse(name: &str) -> Result<Self, StoreError> {
        [Flow::AuthorizationCode, Flow::ClientCredentials]
            .into_iter()
            .find(|flow| flow.name() == name)
            .ok_or_else(|| StoreError::Corrupt(format!("unknown flow {name:?}")))
    }
}

/// The opened secrets of a grant.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// Id of the application at the authorization server.
    pub app_id: Option<Secret<String>>,
    /// Secret of the application.
    pub app_secret: Option<Secret<String>>,
    /// The access token that calls go out with.
    pub access: Option<Secret<String>>,
    /// The refresh token that the next refresh spends.
    pub refresh: Option<Secret<String>>,
    /// The refresh token before that, kept until the access token has worked once.
    pub previous_refresh: Option<Secret<String>>,
}

/// A grant as stored.
#[derive(Clone, Debug)]
pub struct GrantRow {
    /// Which one.
    pub key: GrantKey,
    /// Counts its token sets.
    pub generation: i64,
    /// How it gets its access tokens.
    pub flow: Flow,
    /// Where it stands.
    pub state: GrantState,
    /// Why it stands there, or how the last refresh failed: a machine-readable word or an OAuth error code.
    pub reason: Option<String>,
    /// When the access token was issued, wall time in milliseconds since 1970.
    pub issued_ms: Option<i64>,
    /// For how long it was issued, in milliseconds; `None` when the server did not say, or said nonsense.
    pub lifetime_ms: Option<i64>,
    /// Whether a refresh of this generation was begun and its outcome never learnt.
    pub outcome_unknown: bool,
    /// Number of the write that touched it last.
    pub change: i64,
    /// Its secrets, or why they do not open.
    pub secrets: Result<Opened, SealError>,
}

/// A grant without its secrets, for lists.
#[derive(Clone, Debug)]
pub(crate) struct GrantSummary {
    /// Id of the client it belongs to.
    pub client: String,
    /// See [`GrantRow`] for these.
    pub generation: i64,
    /// Where it stands.
    pub state: GrantState,
    /// Why it stands there.
    pub reason: Option<String>,
    /// Wall time in milliseconds since 1970.
    pub issued_ms: Option<i64>,
    /// Milliseconds.
    pub lifetime_ms: Option<i64>,
}

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

/// Credentials that a grant starts from.
pub(crate) struct GrantSeed<'a> {
    pub flow: Flow,
    pub app_id: &'a Secret<String>,
    pub app_secret: &'a Secret<String>,
    pub refresh: Option<(&'a Secret<String>, KeyedHash)>,
}

const APP_ID: &str = "grants.app_id";
const APP_SECRET: &str = "grants.app_secret";
const ACCESS: &str = "grants.access";
/// Both the next and the previous refresh token are sealed for this name.
const REFRESH: &str = "grants.refresh";

/// Sealed columns and the name each is sealed for.
const SEALED: [(&str, &str); 5] = [
    ("app_id", APP_ID),
    ("app_secret", APP_SECRET),
    ("access", ACCESS),
    ("refresh", REFRESH),
    ("previous_refresh", REFRESH),
];

macro_rules! select_grants {
    ($rest:literal) => {
        concat!(
            "SELECT g.id AS id, g.client AS client, g.generation AS generation, g.state AS state, ",
            "g.state_reason AS state_reason, g.app_id AS app_id, g.app_secret AS app_secret, g.access AS access, ",
            "g.refresh AS refresh, g.previous_refresh AS previous_refresh, g.issued_ms AS issued_ms, ",
            "g.lifetime_ms AS lifetime_ms, g.change AS change, g.lease_owner AS lease_owner, ",
            "g.lease_until_ms AS lease_until_ms, g.flow AS flow, g.mac AS mac, i.generation AS intent ",
            "FROM grants g LEFT JOIN refresh_intents i ON i.grant_id = g.id ",
            $rest
        )
    };
}

macro_rules! select_summaries {
    ($rest:literal) => {
        concat!("SELECT client, generation, state, state_reason, issued_ms, lifetime_ms FROM grants ", $rest)
    };
}

impl Store {
    /// Grants touched by a write later than `change`; 0 gives all.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn grants_since(&self, change: i64) -> Result<Vec<GrantRow>, StoreError> {
        let rows = self.db.rows(select_grants!("WHERE g.change > $1"), args![change]).await?;
        rows.iter().map(|row| self.grant_row(row)).collect()
    }

    /// The grant of the client with this id.
    ///
    /// # Errors
    ///
    /// There is no such client, or the database fails.
    pub async fn grant_of(&self, client: &str) -> Result<GrantRow, StoreError> {
        let row = self.db.row(select_grants!("WHERE g.client = $1"), args![client]).await?;
        self.grant_row(&row.ok_or_else(|| StoreError::NoSuchClient(client.to_owned()))?)
    }

    /// All grants without their secrets; opens nothing.
    pub(crate) async fn grant_summaries(&self) -> Result<Vec<GrantSummary>, StoreError> {
        self.db.rows(select_summaries!(""), &[]).await?.iter().map(summary).collect()
    }

    /// The grant of the client with this id, without its secrets.
    pub(crate) async fn grant_summary(&self, client: &str) -> Result<GrantSummary, StoreError> {
        let row = self.db.row(select_summaries!("WHERE client = $1"), args![client]).await?;
        summary(&row.ok_or_else(|| StoreError::NoSuchClient(client.to_owned()))?)
    }

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

    /// Gives a grant the application that its next authorization is for.
    pub(crate) async fn set_app(
        &self,
        key: &GrantKey,
        app_id: &Secret<String>,
        app_secret: &Secret<String>,
    ) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        let seed = GrantSeed { flow: Flow::AuthorizationCode, app_id, app_secret, refresh: None };
        self.seed_grant(&mut tx, key, &seed).await?;
        tx.commit().await
    }

    /// Adds the empty grant of a new client.
    pub(super) async fn insert_empty_grant(&self, tx: &mut Tx, client: &str) -> Result<(), StoreError> {
        let (id, change) = (new_id(), tx.change());
        let mac = mac(&self.hasher, &id, client, Flow::default());
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

    /// Brings a client's grant in line with configured credentials; says whether that changed anything.
    pub(super) async fn seed_grant_of(
        &self,
        tx: &mut Tx,
        client: &str,
        seed: &GrantSeed<'_>,
    ) -> Result<bool, StoreError> {
        let row = tx.row("SELECT id FROM grants WHERE client = $1", args![client]).await?;
        let id = row.ok_or_else(|| StoreError::Corrupt("client without a grant".to_owned()))?.text("id")?;
        self.seed_grant(tx, &GrantKey { client: client.to_owned(), grant: id }, seed).await
    }

    /// The application is replaced when it differs. The refresh token is taken only when it is another than the one seeded
    /// before: the stored one has most likely been rotated since, and the configured one spent.
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
        let flow_before = Flow::parse(&row.text("flow")?)?;
        if flow_before != seed.flow {
            changed = true;
            self.set_flow(tx, key, seed.flow).await?;
        }
        if !holds(keys, key, APP_ID, row.bytes_or_none("app_id")?, seed.app_id)
            || !holds(keys, key, APP_SECRET, row.bytes_or_none("app_secret")?, seed.app_secret)
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
            // The server had refused the application, not the grant: with other credentials it deserves another try.
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
        // An application that asks for itself needs nobody to connect it.
        if seed.flow == Flow::ClientCredentials && changed {
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

    /// Two grants of one refresh token end each other: whichever is refreshed second presents a spent token.
    async fn refuse_shared(&self, tx: &mut Tx, key: &GrantKey, mark: &KeyedHash) -> Result<(), StoreError> {
        let sql = "SELECT c.name AS name FROM grants g JOIN clients c ON c.id = g.client \
                   WHERE g.seed_mark = $1 AND g.id <> $2";
        match tx.row(sql, args![&mark[..], key.grant.as_str()]).await? {
            Some(row) => Err(StoreError::RefreshTokenTaken(row.text("name")?)),
            None => Ok(()),
        }
    }

    async fn set_flow(&self, tx: &mut Tx, key: &GrantKey, flow: Flow) -> Result<(), StoreError> {
        let change = tx.change();
        let mac = mac(&self.hasher, &key.grant, &key.client, flow);
        // What the other flow brought is of no use to this one.
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

    fn grant_row(&self, row: &Row) -> Result<GrantRow, StoreError> {
        let key = GrantKey { client: row.text("client")?, grant: row.text("id")? };
        let generation = row.int("generation")?;
        let flow = Flow::parse(&row.text("flow")?)?;
        let is_ours = self.hasher.is_row(
            HashOf::GrantRow,
            &parts(&key.grant, &key.client, flow),
            row.bytes_or_none("mac")?.as_deref(),
        );
        let issued_ms = row.int_or_none("issued_ms")?;
        let mut sealed = Vec::with_capacity(SEALED.len());
        for (column, name) in SEALED {
            sealed.push((name, row.bytes_or_none(column)?));
        }
        Ok(GrantRow {
            generation,
            flow,
            state: GrantState::parse(&row.text("state")?, issued_ms.is_some())?,
            reason: row.text_or_none("state_reason")?,
            issued_ms,
            lifetime_ms: row.int_or_none("lifetime_ms")?,
            outcome_unknown: row.int_or_none("intent")? == Some(generation),
            change: row.int("change")?,
            secrets: match is_ours {
                true => open_all(&self.keys, &key, sealed),
                false => Err(SealError::Broken),
            },
            key,
        })
    }
}

/// Gives the rows from before keyed hashes theirs.
pub(super) async fn bind(tx: &mut Tx, hasher: &Hasher) -> Result<(), StoreError> {
    for row in tx.rows("SELECT id, client, flow FROM grants", &[]).await? {
        let (id, flow) = (row.text("id")?, Flow::parse(&row.text("flow")?)?);
        let mac = mac(hasher, &id, &row.text("client")?, flow);
        tx.run("UPDATE grants SET mac = $2 WHERE id = $1", args![id.as_str(), &mac[..]]).await?;
    }
    Ok(())
}

fn mac(hasher: &Hasher, id: &str, client: &str, flow: Flow) -> KeyedHash {
    hasher.row(HashOf::GrantRow, &parts(id, client, flow))
}

fn parts<'a>(id: &'a str, client: &'a str, flow: Flow) -> [Part<'a>; 3] {
    [id.into(), client.into(), flow.name().into()]
}

/// Erases all secrets of a client's grant.
pub(super) async fn erase(tx: &mut Tx, clock: &Clock, client: &str) -> Result<(), StoreError> {
    let change = tx.change();
    tx.run(
        "DELETE FROM refresh_intents WHERE grant_id IN (SELECT id FROM grants WHERE client = $1)",
        args![client],
    )
    .await?;
    tx.run(
        "UPDATE grants SET generation = generation + 1, state = $2, state_reason = 'revoked', app_id = NULL, \
         app_secret = NULL, access = NULL, refresh = NULL, previous_refresh = NULL, issued_ms = NULL, \
         lifetime_ms = NULL, seed_mark = NULL, lease_owner = NULL, lease_until_ms = NULL, updated_ms = $3, \
         change = $4 WHERE client = $1",
        args![client, GrantState::Unconnected.name(), clock.unix_ms(), change],
    )
    .await?;
    Ok(())
}

/// Seals every secret of every grant anew; gives how many.
pub(super) async fn reseal(tx: &mut Tx, keys: &KeyRing) -> Result<u64, StoreError> {
    let mut values = 0;
    let rows = tx
        .rows("SELECT id, client, app_id, app_secret, access, refresh, previous_refresh FROM grants", &[])
        .await?;
    for row in rows {
        let key = GrantKey { client: row.text("client")?, grant: row.text("id")? };
        let mut resealed = Vec::with_capacity(SEALED.len());
        for (column, name) in SEALED {
            resealed.push(match row.bytes_or_none(column)? {
                None => None,
                Some(sealed) => {
                    values += 1;
                    Some(keys.seal(&place(name, &key), keys.open(&place(name, &key), &sealed)?.expose()))
                }
            });
        }
        let mut resealed = resealed.into_iter();
        let mut next = || resealed.next().flatten();
        tx.run(
            "UPDATE grants SET app_id = $2, app_secret = $3, access = $4, refresh = $5, previous_refresh = $6 \
             WHERE id = $1",
            args![key.grant.as_str(), next(), next(), next(), next(), next()],
        )
        .await?;
    }
    Ok(values)
}

fn summary(row: &Row) -> Result<GrantSummary, StoreError> {
    let issued_ms = row.int_or_none("issued_ms")?;
    Ok(GrantSummary {
        client: row.text("client")?,
        generation: row.int("generation")?,
        state: GrantState::parse(&row.text("state")?, issued_ms.is_some())?,
        reason: row.text_or_none("state_reason")?,
        issued_ms,
        lifetime_ms: row.int_or_none("lifetime_ms")?,
    })
}

async fn locked(tx: &mut Tx, key: &GrantKey) -> Result<Row, StoreError> {
    let row = tx.row(select_grants!("WHERE g.id = $1"), args![key.grant.as_str()]).await?;
    row.ok_or_else(|| StoreError::NoSuchClient(key.client.clone()))
}

fn place<'a>(column: &'static str, key: &'a GrantKey) -> Place<'a> {
    Place { column, client: &key.client, row: key.grant.as_bytes() }
}

fn open(
    keys: &KeyRing,
    key: &GrantKey,
    name: &'static str,
    sealed: &[u8],
) -> Result<Secret<String>, SealError> {
    keys.open(&place(name, key), sealed)?.into_text().ok_or(SealError::Broken)
}

fn open_all(
    keys: &KeyRing,
    key: &GrantKey,
    sealed: Vec<(&'static str, Option<Vec<u8>>)>,
) -> Result<Opened, SealError> {
    let mut opened = Vec::with_capacity(sealed.len());
    for (name, sealed) in sealed {
        opened.push(sealed.map(|sealed| open(keys, key, name, &sealed)).transpose()?);
    }
    let mut opened = opened.into_iter();
    let mut next = || opened.next().flatten();
    Ok(Opened {
        app_id: next(),
        app_secret: next(),
        access: next(),
        refresh: next(),
        previous_refresh: next(),
    })
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

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
