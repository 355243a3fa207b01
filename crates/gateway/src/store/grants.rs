//! Rows of grants. The submodule `refresh` has the transactions of a refresh; the module `token`
//! decides when to refresh and interprets responses.
//!
//! The *generation* of a grant guards every write to its tokens. It counts the grant's token sets;
//! a write for another generation than the stored one changes no row and reports that. This order
//! loses no grant: [`Store::begin_refresh`] commits the intent, the refresh token is spent,
//! [`Store::finish_refresh`] commits the result, and only then is the result used.

mod refresh;
mod seed;

pub use refresh::{Begin, Finish, NewTokens};
pub(crate) use seed::GrantSeed;

use super::db::{DbRow, Tx, args};
use super::seal::{HashOf, HashedValue, Hasher, KeyRing, KeyedHash, SealContext, SealError};
use super::{Store, StoreError};
use crate::clock::Clock;
use crate::secret::Secret;
use serde::{Deserialize, Serialize};

/// Identifies a grant by its client's id and its own. Secrets are bound to both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrantKey {
    /// Id of the client.
    pub client: String,
    /// Id of the grant.
    pub grant: String,
}

/// The state of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantState {
    /// The client was never authorized.
    Unconnected,
    /// The grant has credentials but has not received an access token yet.
    Pending,
    /// The grant has tokens and refreshes them.
    Active,
    /// The authorization server rejects the application's id, its secret or a scope. An operator
    /// has to change the configuration on either side. The grant itself may be valid, and is
    /// retried occasionally.
    Misconfigured,
    /// The authorization server rejects the refresh token; a person has to connect the client
    /// again.
    NeedsReconnect,
}

impl GrantState {
    /// All states.
    pub const ALL: [GrantState; 5] = [
        GrantState::Unconnected,
        GrantState::Pending,
        GrantState::Active,
        GrantState::Misconfigured,
        GrantState::NeedsReconnect,
    ];

    /// Returns the name used in metrics and responses.
    pub fn name(self) -> &'static str {
        match self {
            GrantState::Unconnected => "unconnected",
            GrantState::Pending => "pending",
            GrantState::Active => "active",
            GrantState::Misconfigured => "misconfigured",
            GrantState::NeedsReconnect => "needs_reconnect",
        }
    }

    /// Returns whether requesting another access token is worth an attempt.
    pub(crate) fn can_refresh(self) -> bool {
        matches!(self, GrantState::Pending | GrantState::Active | GrantState::Misconfigured)
    }

    /// Parses the stored name. A pending grant is stored as an active one without a token.
    fn parse(name: &str, has_had_token: bool) -> Result<Self, StoreError> {
        let state = GrantState::ALL.into_iter().find(|state| state.name() == name);
        match state.ok_or_else(|| StoreError::Corrupt(format!("unknown grant state {name:?}")))? {
            GrantState::Active if !has_had_token => Ok(GrantState::Pending),
            state => Ok(state),
        }
    }
}

/// The OAuth flow of a grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantFlow {
    /// A person authorizes once; refresh tokens then provide access tokens (RFC 6749, sections 4.1
    /// and 6).
    #[default]
    AuthorizationCode,
    /// The application authenticates itself (RFC 6749, section 4.4).
    ClientCredentials,
}

impl GrantFlow {
    /// Returns the name used in the store, the configuration and responses.
    pub fn name(self) -> &'static str {
        match self {
            GrantFlow::AuthorizationCode => "authorization_code",
            GrantFlow::ClientCredentials => "client_credentials",
        }
    }

    fn parse(name: &str) -> Result<Self, StoreError> {
        [GrantFlow::AuthorizationCode, GrantFlow::ClientCredentials]
            .into_iter()
            .find(|flow| flow.name() == name)
            .ok_or_else(|| StoreError::Corrupt(format!("unknown flow {name:?}")))
    }
}

/// The decrypted secrets of a grant.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// Id of the application at the authorization server.
    pub app_id: Option<Secret<String>>,
    /// Secret of the application, or its private key, in the form that the module `token` stores.
    pub app_secret: Option<Secret<String>>,
    /// The access token for calls.
    pub access: Option<Secret<String>>,
    /// The refresh token for the next refresh.
    pub refresh: Option<Secret<String>>,
    /// The preceding refresh token, stored until the access token has worked once.
    pub previous_refresh: Option<Secret<String>>,
}

/// A stored grant.
#[derive(Clone, Debug)]
pub struct GrantRow {
    /// Its key.
    pub key: GrantKey,
    /// The number of its current token set.
    pub generation: i64,
    /// Its OAuth flow.
    pub flow: GrantFlow,
    /// Its state.
    pub state: GrantState,
    /// The reason of the state or of the last failed refresh: a machine-readable identifier or an
    /// OAuth error code.
    pub reason: Option<String>,
    /// Issue time of the access token, wall time in milliseconds since 1970.
    pub issued_ms: Option<i64>,
    /// Lifetime of the access token in milliseconds; `None` if the server sent no valid one.
    pub lifetime_ms: Option<i64>,
    /// Whether a refresh of this generation was started and its outcome is unknown.
    pub outcome_unknown: bool,
    /// Number of the last write that changed it.
    pub change: i64,
    /// Its secrets, or the reason why they cannot be decrypted.
    pub secrets: Result<Opened, SealError>,
}

/// The reason of a grant while a refresh requested by an operator is pending.
pub(crate) const REFRESH_REQUESTED: &str = "refresh_requested";

/// A grant without its secrets, for lists.
#[derive(Clone, Debug)]
pub(crate) struct GrantSummary {
    /// Id of its client.
    pub client: String,
    /// The number of its current token set.
    pub generation: i64,
    /// Its OAuth flow.
    pub flow: GrantFlow,
    /// Whether it has a refresh token.
    pub has_refresh: bool,
    /// Its state.
    pub state: GrantState,
    /// The reason of the state.
    pub reason: Option<String>,
    /// Wall time in milliseconds since 1970.
    pub issued_ms: Option<i64>,
    /// Milliseconds.
    pub lifetime_ms: Option<i64>,
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
        concat!(
            "SELECT client, generation, flow, CAST(CASE WHEN refresh IS NULL THEN 0 ELSE 1 END AS BIGINT) AS has_refresh, state, ",
            "state_reason, issued_ms, lifetime_ms FROM grants ",
            $rest
        )
    };
}

impl Store {
    /// Returns the grants changed by a write later than `change`; 0 returns all.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn grants_since(&self, change: i64) -> Result<Vec<GrantRow>, StoreError> {
        let rows = self.db.rows(select_grants!("WHERE g.change > $1"), args![change]).await?;
        rows.iter().map(|row| self.grant_row(row)).collect()
    }

    /// Returns the grant of the client with this id.
    ///
    /// # Errors
    ///
    /// There is no such client, or the database fails.
    pub async fn grant_of(&self, client: &str) -> Result<GrantRow, StoreError> {
        let row = self.db.row(select_grants!("WHERE g.client = $1"), args![client]).await?;
        self.grant_row(&row.ok_or_else(|| StoreError::NoSuchClient(client.to_owned()))?)
    }

    /// Returns all grants without their secrets. Decrypts no secrets.
    pub(crate) async fn grant_summaries(&self) -> Result<Vec<GrantSummary>, StoreError> {
        self.db.rows(select_summaries!(""), &[]).await?.iter().map(summary).collect()
    }

    /// Returns the grant of the client with this id, without its secrets.
    pub(crate) async fn grant_summary(&self, client: &str) -> Result<GrantSummary, StoreError> {
        let row = self.db.row(select_summaries!("WHERE client = $1"), args![client]).await?;
        summary(&row.ok_or_else(|| StoreError::NoSuchClient(client.to_owned()))?)
    }

    fn grant_row(&self, row: &DbRow) -> Result<GrantRow, StoreError> {
        let key = GrantKey { client: row.text("client")?, grant: row.text("id")? };
        let generation = row.int("generation")?;
        let flow = GrantFlow::parse(&row.text("flow")?)?;
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

/// Adds keyed hashes to rows written before they existed.
pub(super) async fn bind(tx: &mut Tx, hasher: &Hasher) -> Result<(), StoreError> {
    for row in tx.rows("SELECT id, client, flow FROM grants", &[]).await? {
        let (id, flow) = (row.text("id")?, GrantFlow::parse(&row.text("flow")?)?);
        let mac = mac(hasher, &id, &row.text("client")?, flow);
        tx.run("UPDATE grants SET mac = $2 WHERE id = $1", args![id.as_str(), &mac[..]]).await?;
    }
    Ok(())
}

fn mac(hasher: &Hasher, id: &str, client: &str, flow: GrantFlow) -> KeyedHash {
    hasher.row(HashOf::GrantRow, &parts(id, client, flow))
}

fn parts<'a>(id: &'a str, client: &'a str, flow: GrantFlow) -> [HashedValue<'a>; 3] {
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

/// Seals all secrets of all grants with the newest key. Returns their number.
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

fn summary(row: &DbRow) -> Result<GrantSummary, StoreError> {
    let issued_ms = row.int_or_none("issued_ms")?;
    Ok(GrantSummary {
        client: row.text("client")?,
        generation: row.int("generation")?,
        flow: GrantFlow::parse(&row.text("flow")?)?,
        has_refresh: row.int("has_refresh")? != 0,
        state: GrantState::parse(&row.text("state")?, issued_ms.is_some())?,
        reason: row.text_or_none("state_reason")?,
        issued_ms,
        lifetime_ms: row.int_or_none("lifetime_ms")?,
    })
}

async fn lock_row(tx: &mut Tx, key: &GrantKey) -> Result<DbRow, StoreError> {
    let row = tx.row(select_grants!("WHERE g.id = $1"), args![key.grant.as_str()]).await?;
    row.ok_or_else(|| StoreError::NoSuchClient(key.client.clone()))
}

fn place<'a>(column: &'static str, key: &'a GrantKey) -> SealContext<'a> {
    SealContext { column, client: &key.client, row: key.grant.as_bytes() }
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
