//! Client management: adds, lists, rotates and revokes clients, sets credentials, and applies the
//! configured clients. Used by the command line and the admin port; `connect` holds the OAuth
//! connection. Results are plain data without secrets (`report`), except for a newly generated
//! token, which is returned once.

use super::application::OAuthApp;
use super::report::{ClientInfo, info};
use super::wire::{Revocation, TokenEndpoint};
use crate::secret::Secret;
use crate::store::seal::{HashOf, KeyedHash, random};
use crate::store::{
    self, ClientRow, Ensured, GrantFlow, GrantKey, GrantSeed, GrantSummary, Store, StoreError, TokenOrigin,
};
use arc_swap::ArcSwapOption;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

const NAME_CHARS_MAX: usize = 64;
const TOKEN_BYTES_MIN: usize = 8;
const TOKEN_BYTES_MAX: usize = 4096;
/// Number of configured clients per transaction.
const ENSURED_TOGETHER: usize = 200;

/// An error of client management.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The name is not a valid label.
    #[error("a client's name is 1 to 64 characters of a-z A-Z 0-9 . _ -, not {0:?}")]
    Name(String),
    /// The name is not valid for a side.
    #[error("the name of a side is 1 to 64 characters of a-z A-Z 0-9 . _ -, not {0:?}")]
    Side(String),
    /// The token has an invalid length or contains characters that a header cannot carry.
    #[error("a client's token is 8 to 4096 visible ASCII characters")]
    Token,
    /// A refresh token is useless without the application that it was issued to.
    #[error("a refresh token needs the id of its application and the secret or key")]
    NoApp,
    /// A client credentials grant needs an application and has no refresh token.
    #[error(
        "a grant of the flow client_credentials needs the id of its application and the secret or key, and no refresh token"
    )]
    Flow,
    /// The client is not revoked, so it cannot be restored.
    #[error("client {0} is not revoked")]
    NotRevoked(String),
    /// The client has no credentials to obtain a token with.
    #[error("client {0} is not connected; `switchback client connect` makes the link")]
    NotConnected(String),
    /// The client is revoked.
    #[error("client {0} is revoked; `switchback client restore` takes it back")]
    Revoked(String),
    /// The setting is defined in the configuration file, which would overwrite the change at the
    /// next start.
    #[error("the {what} of client {client} is set in the configuration file; change it there")]
    Configured {
        /// `token` or `credential`.
        what: &'static str,
        /// Name of the client.
        client: String,
    },
    /// The client has tokens for several sides, and the request does not select one.
    #[error("client {client} has tokens for {}; say for which side", .sides.join(" and "))]
    WhichSide {
        /// Name of the client.
        client: String,
        /// The sides; `all` for tokens that are valid at all fronts.
        sides: Vec<String>,
    },
    /// The store failed or rejected the change.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A client to add, or to update from the configuration.
#[derive(Clone, Debug)]
pub struct NewClient {
    /// Unique name: 1 to 64 characters of `a-z A-Z 0-9 . _ -`. It appears in logs and metrics.
    pub name: String,
    /// Secondary company that its calls act for, if any.
    pub company: Option<String>,
    /// The tokens that authenticate the client. When a client is added, missing tokens are
    /// generated; a configuration contains all of them.
    pub tokens: Vec<NewToken>,
    /// Fixed tokens for calls to sides without grants, one per side.
    pub credentials: Vec<NewCredential>,
    /// The OAuth flow of its grant.
    pub flow: GrantFlow,
    /// The application of its grant.
    pub app: Option<OAuthApp>,
    /// An initial refresh token, as an alternative to connecting.
    pub refresh_token: Option<Secret<String>>,
}

/// A token that authenticates a client.
#[derive(Clone, Debug, Default)]
pub struct NewToken {
    /// The side whose fronts accept it; `None` for all fronts.
    pub side: Option<String>,
    /// The token. `None` generates one when a client is added or its token is rotated.
    pub token: Option<Secret<String>>,
}

impl From<Secret<String>> for NewToken {
    /// Wraps a token that is valid at all fronts.
    fn from(token: Secret<String>) -> NewToken {
        NewToken { side: None, token: Some(token) }
    }
}

/// A fixed token for calls to one side.
#[derive(Clone, Debug)]
pub struct NewCredential {
    /// The side of the calls.
    pub side: String,
    /// The token that authenticates the client at that service.
    pub token: Secret<String>,
}

/// A client that was added or whose token was rotated.
#[derive(Debug)]
pub struct AddedClient {
    /// The client after the change.
    pub client: ClientInfo,
    /// The token, if it was generated here. Only its keyed hash is stored, so it cannot be
    /// displayed again.
    pub token: Option<Secret<String>>,
}

/// A client that was revoked.
#[derive(Debug)]
pub struct Revoked {
    /// The client after the change.
    pub client: ClientInfo,
    /// The result of revoking its grant's tokens at the authorization server.
    pub at_server: Revocation,
}

/// Manages the clients of a store. Other processes may do so while a gateway runs; it sees their
/// changes within a second.
#[derive(Clone, Debug)]
pub struct Registry {
    pub(super) store: Store,
    pub(super) endpoint: Arc<ArcSwapOption<TokenEndpoint>>,
    /// The names of the clients in the configuration file, if known.
    configured: Arc<ArcSwapOption<HashSet<String>>>,
}

impl Registry {
    /// Creates a registry on `store`. `endpoint` is needed for connecting, and for revoking at the
    /// authorization server.
    pub fn new(store: Store, endpoint: Option<TokenEndpoint>) -> Self {
        let endpoint = Arc::new(ArcSwapOption::from(endpoint.map(Arc::new)));
        Registry { store, endpoint, configured: Arc::default() }
    }

    /// Returns the same registry with another author of its changes in the history.
    #[must_use]
    pub fn by(&self, author: &str) -> Registry {
        Registry { store: self.store.by(author), ..self.clone() }
    }

    /// Sets the authorization server that connects clients from now on.
    pub fn set_endpoint(&self, endpoint: Option<TokenEndpoint>) {
        self.endpoint.store(endpoint.map(Arc::new));
    }

    /// Sets the names of the clients in the configuration file. Clients that originate from it but
    /// are missing in `names` are reported as having left it.
    pub fn set_configured(&self, names: impl IntoIterator<Item = String>) {
        self.configured.store(Some(Arc::new(names.into_iter().collect())));
    }

    /// Adds a client. If it has no tokens, one that is valid at all fronts is generated.
    ///
    /// # Errors
    ///
    /// The name, a side or a token is invalid or in use, or the store fails.
    pub async fn add(&self, mut new: NewClient) -> Result<AddedClient, RegistryError> {
        check_name(&new.name)?;
        if new.tokens.is_empty() {
            new.tokens.push(NewToken::default());
        }
        let mut made = None;
        for token in &mut new.tokens {
            made = make_if_missing(token).or(made);
        }
        let marks = Marks::hash_new(&self.store, &new)?;
        self.store.add_client(marks.row(&new, TokenOrigin::Managed)).await?;
        Ok(AddedClient { client: self.get(&new.name).await?, token: made })
    }

    /// Applies the clients of the configuration file to the store. Each missing client is added.
    /// For existing ones, company, tokens, credentials and application are updated, and the refresh
    /// token only if the configured one has changed. The size of a transaction balances disk syncs
    /// per client against lock times for other gateways. Returns the names of clients that were
    /// skipped, with the reason.
    ///
    /// # Errors
    ///
    /// A name, a side or a token is invalid, or the store fails.
    pub async fn ensure(&self, configured: Vec<NewClient>) -> Result<Vec<(String, Ensured)>, RegistryError> {
        let mut left_alone = Vec::new();
        for together in configured.chunks(ENSURED_TOGETHER) {
            let marked = together.iter().map(|wanted| {
                check_name(&wanted.name)?;
                Ok((Marks::hash_new(&self.store, wanted)?, wanted))
            });
            let marked = marked.collect::<Result<Vec<_>, RegistryError>>()?;
            let rows: Vec<_> =
                marked.iter().map(|(marks, wanted)| marks.row(wanted, TokenOrigin::Configured)).collect();
            let ensured = self.store.ensure_clients(&rows).await?;
            let not_done = together.iter().zip(ensured).filter(|(_, ensured)| *ensured != Ensured::Done);
            left_alone.extend(not_done.map(|(wanted, ensured)| (wanted.name.clone(), ensured)));
        }
        self.set_configured(configured.into_iter().map(|client| client.name));
        Ok(left_alone)
    }

    /// Lists all clients by name.
    ///
    /// # Errors
    ///
    /// The store fails.
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
        Ok(clients.iter().filter_map(|row| Some(self.info(row, grants.remove(&row.id)?, now))).collect())
    }

    /// Returns one client.
    ///
    /// # Errors
    ///
    /// There is no such client, or the store fails.
    pub async fn get(&self, name: &str) -> Result<ClientInfo, RegistryError> {
        let row = self.store.client(name).await?;
        let grant = self.store.grant_summary(&row.id).await?;
        Ok(self.info(&row, grant, self.store.clock().unix_ms()))
    }

    fn info(&self, row: &ClientRow, grant: GrantSummary, now_ms: i64) -> ClientInfo {
        let configured = self.configured.load();
        let has_left = |names: &Arc<HashSet<String>>| row.is_configured() && !names.contains(&row.name);
        ClientInfo {
            left_configuration: configured.as_ref().is_some_and(has_left),
            ..info(row, grant, now_ms)
        }
    }

    /// Binds a new token to a client, given or generated. Other tokens of the same side expire at
    /// once or after `grace`. Without a side, the side of the client's existing tokens is used if
    /// it is unique.
    ///
    /// # Errors
    ///
    /// There is no such client, it is revoked, the configuration file defines its tokens, the token
    /// is invalid or in use, the side is ambiguous, or the store fails.
    pub async fn rotate(
        &self,
        name: &str,
        mut new: NewToken,
        grace: Option<Duration>,
    ) -> Result<AddedClient, RegistryError> {
        let client = self.living(name).await?;
        if new.side.is_none() {
            new.side = only_side(&client)?;
        }
        let is_configured = |token: &store::TokenRow| {
            token.side == new.side && token.origin == TokenOrigin::Configured && token.expires_ms.is_none()
        };
        if client.tokens.iter().any(is_configured) {
            return Err(RegistryError::Configured { what: "token", client: name.to_owned() });
        }
        let made = make_if_missing(&mut new);
        let grace_ms = grace.map(|grace| i64::try_from(grace.as_millis()).unwrap_or(i64::MAX));
        let row = store::NewTokenRow { hash: hash_of(&self.store, &new)?, side: new.side.as_deref() };
        self.store.rotate_token(&client.id, &row, grace_ms).await?;
        Ok(AddedClient { client: self.get(name).await?, token: made })
    }

    /// Sets or replaces the fixed token for a client's calls to a side.
    ///
    /// # Errors
    ///
    /// There is no such client, it is revoked, the side or token is invalid, the configuration file
    /// defines the credential, or the store fails.
    pub async fn set_credential(&self, name: &str, new: NewCredential) -> Result<ClientInfo, RegistryError> {
        let client = self.living(name).await?;
        check_token(&new.token)?;
        check_side(&new.side)?;
        let is_configured =
            |row: &store::CredentialRow| row.side == new.side && row.origin == TokenOrigin::Configured;
        if client.credentials.iter().any(is_configured) {
            return Err(RegistryError::Configured { what: "credential", client: name.to_owned() });
        }
        let row = store::NewCredentialRow { side: &new.side, token: &new.token };
        self.store.set_credential(&client.id, &row).await?;
        self.get(name).await
    }

    /// Revokes a client: its tokens become invalid, and the secrets of its grant and its
    /// credentials are erased. The tokens of its grant are then revoked at the authorization server
    /// (RFC 7009); a failure of that is part of the result, not an error.
    ///
    /// # Errors
    ///
    /// There is no such client, or the store fails.
    pub async fn revoke(&self, name: &str) -> Result<Revoked, RegistryError> {
        let client = self.store.client(name).await?;
        let grant = self.store.grant_of(&client.id).await?;
        self.store.revoke_client(&client.id).await?;
        let at_server = match (grant.secrets, self.endpoint.load_full()) {
            (Ok(secrets), _) if secrets.access.is_none() && secrets.refresh.is_none() => Revocation::NoTokens,
            (Ok(secrets), Some(endpoint)) => endpoint.revoke(&secrets).await,
            (Ok(_), None) => Revocation::NoEndpoint,
            (Err(error), _) => Revocation::Failed(error.to_string()),
        };
        if let Revocation::Failed(what) = &at_server {
            tracing::warn!(
                target: "switchback::token", client = name, what, "the client is revoked, but its tokens were not revoked at the authorization server"
            );
        }
        Ok(Revoked { client: self.get(name).await?, at_server })
    }

    /// Requests a new access token from the gateways at once, even during a pause after a failure
    /// or after the grant has ended.
    ///
    /// # Errors
    ///
    /// There is no such client, it is revoked or never connected, its grant cannot be decrypted, or
    /// the store fails.
    pub async fn retry(&self, name: &str) -> Result<ClientInfo, RegistryError> {
        let client = self.living(name).await?;
        let grant = self.store.grant_of(&client.id).await?;
        grant.secrets.map_err(StoreError::from)?;
        if !self.store.request_refresh(&grant.key).await? {
            return Err(RegistryError::NotConnected(name.to_owned()));
        }
        self.get(name).await
    }

    /// Restores a revoked client. Its tokens, grant and credentials were erased: the next reload
    /// sets those of the configuration, and the rest must be set again.
    ///
    /// # Errors
    ///
    /// There is no such client, it is not revoked, or the store fails.
    pub async fn restore(&self, name: &str) -> Result<ClientInfo, RegistryError> {
        let client = self.store.client(name).await?;
        if client.revoked_ms.is_none() {
            return Err(RegistryError::NotRevoked(name.to_owned()));
        }
        self.store.restore_client(&client.id).await?;
        self.get(name).await
    }

    /// Returns the row of a client that is neither revoked nor damaged.
    pub(super) async fn living(&self, name: &str) -> Result<ClientRow, RegistryError> {
        let client = self.store.client(name).await?;
        if client.revoked_ms.is_some() {
            return Err(RegistryError::Revoked(name.to_owned()));
        }
        if client.is_damaged {
            return Err(StoreError::Tampered(name.to_owned()).into());
        }
        Ok(client)
    }

    /// Returns the key of a client's grant and its application.
    pub(super) async fn grant_of(
        &self,
        client: &ClientRow,
    ) -> Result<(GrantKey, Option<OAuthApp>), RegistryError> {
        let row = self.store.grant_of(&client.id).await?;
        // The application of a damaged grant is unreadable, but the client can be connected with a
        // new one.
        let app = row.secrets.ok().and_then(|secrets| OAuthApp::of_grant(&secrets));
        Ok((row.key, app))
    }
}

/// Keyed hashes for a client's row.
struct Marks {
    /// In the order of the client's tokens.
    tokens: Vec<KeyedHash>,
    refresh: Option<KeyedHash>,
}

impl Marks {
    /// Validates a client and hashes its tokens.
    fn hash_new(store: &Store, new: &NewClient) -> Result<Marks, RegistryError> {
        if new.flow == GrantFlow::ClientCredentials && (new.app.is_none() || new.refresh_token.is_some()) {
            return Err(RegistryError::Flow);
        }
        if new.refresh_token.is_some() && new.app.is_none() {
            return Err(RegistryError::NoApp);
        }
        for credential in &new.credentials {
            check_token(&credential.token)?;
            check_side(&credential.side)?;
        }
        let tokens = new.tokens.iter().map(|token| hash_of(store, token)).collect::<Result<_, _>>()?;
        let refresh = new.refresh_token.as_ref();
        let refresh = refresh.map(|token| store.hasher().hash(HashOf::Seed, token.expose().as_bytes()));
        Ok(Marks { tokens, refresh })
    }

    /// Converts the client to the store's form.
    fn row<'a>(&self, new: &'a NewClient, origin: TokenOrigin) -> store::NewClientRow<'a> {
        let tokens = new.tokens.iter().zip(&self.tokens);
        let tokens =
            tokens.map(|(token, hash)| store::NewTokenRow { hash: *hash, side: token.side.as_deref() });
        let credentials = new.credentials.iter();
        let credentials =
            credentials.map(|new| store::NewCredentialRow { side: &new.side, token: &new.token });
        store::NewClientRow {
            name: &new.name,
            company: new.company.as_deref(),
            tokens: tokens.collect(),
            credentials: credentials.collect(),
            origin,
            seed: new.app.as_ref().map(|app| GrantSeed {
                flow: new.flow,
                app_id: &app.id,
                app_secret: app.credential.to_stored(),
                refresh: new.refresh_token.as_ref().zip(self.refresh),
            }),
        }
    }
}

/// Validates and hashes a token that was given or generated.
fn hash_of(store: &Store, new: &NewToken) -> Result<KeyedHash, RegistryError> {
    let token = new.token.as_ref().ok_or(RegistryError::Token)?;
    check_token(token)?;
    new.side.as_deref().map_or(Ok(()), check_side)?;
    Ok(store.hasher().hash(HashOf::ClientToken, token.expose().as_bytes()))
}

/// Returns the side of a client's tokens if it is unique.
fn only_side(client: &ClientRow) -> Result<Option<String>, RegistryError> {
    let mut sides: Vec<_> = client.tokens.iter().map(|token| token.side.clone()).collect();
    sides.sort();
    sides.dedup();
    if sides.len() > 1 {
        let sides = sides.into_iter().map(|side| side.unwrap_or_else(|| "all".to_owned())).collect();
        return Err(RegistryError::WhichSide { client: client.name.clone(), sides });
    }
    Ok(sides.pop().flatten())
}

fn check_name(name: &str) -> Result<(), RegistryError> {
    if is_label(name) { Ok(()) } else { Err(RegistryError::Name(start_of(name))) }
}

/// Checks that a side's name is a valid label. The pack that defines the names is not available
/// here.
fn check_side(side: &str) -> Result<(), RegistryError> {
    if is_label(side) { Ok(()) } else { Err(RegistryError::Side(start_of(side))) }
}

fn is_label(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_CHARS_MAX
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn start_of(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

fn check_token(token: &Secret<String>) -> Result<(), RegistryError> {
    let text = token.expose();
    let fine = (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_graphic());
    if fine { Ok(()) } else { Err(RegistryError::Token) }
}

/// Generates a token if none is given, and returns the generated one.
fn make_if_missing(new: &mut NewToken) -> Option<Secret<String>> {
    if new.token.is_some() {
        return None;
    }
    let token = Secret::new(format!("sbt_{}", URL_SAFE_NO_PAD.encode(random::<32>())));
    new.token = Some(token.clone());
    Some(token)
}
