//! Management of clients: add, list, rotate, revoke, and keeping the configured ones. For the command line and the admin port
//! alike; connecting is next door in `connect`. Results are plain data without secrets, except where a secret was made here and
//! is given out this once.

use super::wire::{App, Endpoint};
use crate::clock::rfc3339;
use crate::secret::Secret;
use crate::store::seal::{HashOf, random};
use crate::store::{ClientRow, GrantKey, GrantState, GrantSummary, Store, StoreError, TokenOrigin};
use crate::store::{GrantSeed, NewClient as NewClientRow};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use std::collections::HashMap;
use std::time::Duration;

const NAME_CHARS_MAX: usize = 64;
const TOKEN_BYTES_MIN: usize = 8;
const TOKEN_BYTES_MAX: usize = 4096;

/// Why a client was not managed as asked.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The name would not do as a label.
    #[error("a client's name is 1 to 64 characters of a-z A-Z 0-9 . _ -, not {0:?}")]
    Name(String),
    /// The token is too short to be one, or no header could carry it.
    #[error("a client's token is 8 to 4096 visible ASCII characters")]
    Token,
    /// A refresh token is of no use without the application it was issued to.
    #[error("a refresh token needs the id and the secret of its application")]
    NoApp,
    /// The client was revoked before.
    #[error("client {0} is revoked; add another under a new name")]
    Revoked(String),
    /// Its token is set in the configuration file, which would set it again at the next start.
    #[error("the token of client {0} is set in the configuration file; change it there")]
    Configured(String),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A client to be added, or to be kept as configured.
#[derive(Clone, Debug)]
pub struct NewClient {
    /// Unique name: 1 to 64 characters of `a-z A-Z 0-9 . _ -`. It shows in logs and metrics.
    pub name: String,
    /// Secondary company, if its calls go out for one.
    pub company: Option<String>,
    /// Its old token; when adding, `None` has one made.
    pub token: Option<Secret<String>>,
    /// The application its grant is for.
    pub app: Option<App>,
    /// A refresh token to begin with, instead of connecting.
    pub refresh_token: Option<Secret<String>>,
}

/// A client that was added or whose token was rotated.
#[derive(Debug)]
pub struct Added {
    /// The client as it is now.
    pub client: ClientInfo,
    /// Its token if it was made here. It is stored as a keyed hash only and cannot be shown again.
    pub token: Option<Secret<String>>,
}

/// A client, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientInfo {
    /// Its name.
    pub name: String,
    /// Secondary company.
    pub company: Option<String>,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// RFC 3339, UTC; when it was revoked.
    pub revoked_at: Option<String>,
    /// How many tokens select it now; more than one during a rotation with grace.
    pub tokens: usize,
    /// Its grant.
    pub grant: GrantInfo,
}

/// A grant, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrantInfo {
    /// Where it stands.
    pub state: GrantState,
    /// Why it stands there.
    pub reason: Option<String>,
    /// Counts its token sets.
    pub generation: i64,
    /// RFC 3339, UTC; when the access token was issued.
    pub issued_at: Option<String>,
    /// RFC 3339, UTC; when it ends, where known.
    pub expires_at: Option<String>,
}

/// Manages the clients of a store. Any process may, beside a running gateway, which sees the changes within a second.
#[derive(Clone, Debug)]
pub struct Registry {
    pub(super) store: Store,
    pub(super) endpoint: Option<Endpoint>,
}

impl Registry {
    /// A registry on `store`; `endpoint` is needed for connecting only.
    pub fn new(store: Store, endpoint: Option<Endpoint>) -> Self {
        Registry { store, endpoint }
    }

    /// Adds a client.
    pub async fn add(&self, new: NewClient) -> Result<Added, RegistryError> {
        check_name(&new.name)?;
        let (token, made) = given_or_made(new.token.clone())?;
        let row = row_of(&self.store, &new, Some(&token), TokenOrigin::Managed)?;
        self.store.add_client(row.borrowed()).await?;
        Ok(Added { client: self.get(&new.name).await?, token: made.then_some(token) })
    }

    /// Makes the store agree with the clients of the configuration file. Each is added when missing; else its company, token
    /// and application are brought up to date, and its refresh token only if another one was configured than before. Gives
    /// the names of those that stay revoked.
    pub async fn ensure(&self, configured: Vec<NewClient>) -> Result<Vec<String>, RegistryError> {
        let mut revoked = Vec::new();
        for wanted in configured {
            check_name(&wanted.name)?;
            wanted.token.as_ref().map_or(Ok(()), check_token)?;
            let row = row_of(&self.store, &wanted, wanted.token.as_ref(), TokenOrigin::Configured)?;
            if self.store.ensure_client(row.borrowed()).await? {
                revoked.push(wanted.name);
            }
        }
        Ok(revoked)
    }

    /// All clients, by name.
    pub async fn list(&self) -> Result<Vec<ClientInfo>, RegistryError> {
        let mut grants: HashMap<String, GrantSummary> = self
            .store
            .grant_summaries()
            .await?
            .into_iter()
            .map(|grant| (grant.client.clone(), grant))
            .collect();
        let now = self.store.clock().unix_ms();
        let clients = self.store.clients_since(0).await?;
        Ok(clients.iter().filter_map(|row| Some(info(row, grants.remove(&row.id)?, now))).collect())
    }

    /// One client.
    pub async fn get(&self, name: &str) -> Result<ClientInfo, RegistryError> {
        let row = self.store.client(name).await?;
        let grant = self.store.grant_summary(&row.id).await?;
        Ok(info(&row, grant, self.store.clock().unix_ms()))
    }

    /// Binds a new token to a client, the given or one made here. The others end at once, or after `grace`.
    pub async fn rotate(
        &self,
        name: &str,
        token: Option<Secret<String>>,
        grace: Option<Duration>,
    ) -> Result<Added, RegistryError> {
        let client = self.living(name).await?;
        if client.tokens.iter().any(|token| token.origin == TokenOrigin::Configured) {
            return Err(RegistryError::Configured(name.to_owned()));
        }
        let (token, made) = given_or_made(token)?;
        let hash = self.store.hasher().hash(HashOf::ClientToken, token.expose().as_bytes());
        let grace_ms = grace.map(|grace| i64::try_from(grace.as_millis()).unwrap_or(i64::MAX));
        self.store.rotate_token(&client.id, &hash, grace_ms).await?;
        Ok(Added { client: self.get(name).await?, token: made.then_some(token) })
    }

    /// Ends a client for good: its tokens select nothing, its grant's secrets are erased. The authorization server is not told.
    pub async fn revoke(&self, name: &str) -> Result<ClientInfo, RegistryError> {
        let client = self.store.client(name).await?;
        self.store.revoke_client(&client.id).await?;
        self.get(name).await
    }

    /// The row of a client that is not revoked.
    pub(super) async fn living(&self, name: &str) -> Result<ClientRow, RegistryError> {
        let client = self.store.client(name).await?;
        if client.revoked_ms.is_some() {
            return Err(RegistryError::Revoked(name.to_owned()));
        }
        Ok(client)
    }

    /// The key of a client's grant, and the application it has.
    pub(super) async fn grant_of(
        &self,
        client: &ClientRow,
    ) -> Result<(GrantKey, Option<App>), RegistryError> {
        let row = self.store.grant_of(&client.id).await?;
        // A damaged grant has no application to offer, but may be connected anew with one given.
        let app = row
            .secrets
            .ok()
            .and_then(|secrets| Some(App { id: secrets.app_id?, secret: secrets.app_secret? }));
        Ok((row.key, app))
    }
}

/// A client in the store's terms, owning what the row borrows.
struct OwnedRow<'a> {
    new: &'a NewClient,
    token: Option<[u8; 32]>,
    origin: TokenOrigin,
    refresh_mark: Option<[u8; 32]>,
}

fn row_of<'a>(
    store: &Store,
    new: &'a NewClient,
    token: Option<&Secret<String>>,
    origin: TokenOrigin,
) -> Result<OwnedRow<'a>, RegistryError> {
    if new.refresh_token.is_some() && new.app.is_none() {
        return Err(RegistryError::NoApp);
    }
    let hash = |kind, secret: &Secret<String>| store.hasher().hash(kind, secret.expose().as_bytes());
    Ok(OwnedRow {
        new,
        token: token.map(|token| hash(HashOf::ClientToken, token)),
        origin,
        refresh_mark: new.refresh_token.as_ref().map(|token| hash(HashOf::Seed, token)),
    })
}

impl OwnedRow<'_> {
    fn borrowed(&self) -> NewClientRow<'_> {
        NewClientRow {
            name: &self.new.name,
            company: self.new.company.as_deref(),
            token: self.token.as_ref(),
            origin: self.origin,
            seed: self.new.app.as_ref().map(|app| GrantSeed {
                app_id: &app.id,
                app_secret: &app.secret,
                refresh: self.new.refresh_token.as_ref().zip(self.refresh_mark),
            }),
        }
    }
}

fn check_name(name: &str) -> Result<(), RegistryError> {
    let fine = !name.is_empty()
        && name.len() <= NAME_CHARS_MAX
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if fine { Ok(()) } else { Err(RegistryError::Name(name.chars().take(NAME_CHARS_MAX).collect())) }
}

fn check_token(token: &Secret<String>) -> Result<(), RegistryError> {
    let text = token.expose();
    let fine = (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_graphic());
    if fine { Ok(()) } else { Err(RegistryError::Token) }
}

/// The token to bind, and whether it was made here.
fn given_or_made(given: Option<Secret<String>>) -> Result<(Secret<String>, bool), RegistryError> {
    match given {
        Some(token) => check_token(&token).map(|()| (token, false)),
        None => Ok((Secret::new(format!("sbt_{}", URL_SAFE_NO_PAD.encode(random::<32>()))), true)),
    }
}

fn info(row: &ClientRow, grant: GrantSummary, now_ms: i64) -> ClientInfo {
    let end =
        grant.issued_ms.zip(grant.lifetime_ms).map(|(issued, lifetime)| issued.saturating_add(lifetime));
    ClientInfo {
        name: row.name.clone(),
        company: row.company.clone(),
        created_at: rfc3339(row.created_ms),
        revoked_at: row.revoked_ms.map(rfc3339),
        tokens: row.tokens.iter().filter(|token| token.expires_ms.is_none_or(|end| end > now_ms)).count(),
        grant: GrantInfo {
            state: grant.state,
            reason: grant.reason,
            generation: grant.generation,
            issued_at: grant.issued_ms.map(rfc3339),
            expires_at: end.map(rfc3339),
        },
    }
}
