//! Management of clients: add, list, rotate, revoke, credentials, and keeping the configured ones. For the command line and the
//! admin port alike; connecting is next door in `connect`. Results are plain data without secrets (`report`), except where a
//! secret was made here and is given out this once.

use super::report::{ClientInfo, info};
use super::wire::{App, Endpoint, Revocation};
use crate::secret::Secret;
use crate::store::seal::{HashOf, KeyedHash, random};
use crate::store::{
    self, ClientRow, Ensured, Flow, GrantKey, GrantSeed, GrantSummary, Origin, Store, StoreError,
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
/// Clients of the configuration that one transaction writes.
const ENSURED_TOGETHER: usize = 200;

/// Why a client was not managed as asked.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The name would not do as a label.
    #[error("a client's name is 1 to 64 characters of a-z A-Z 0-9 . _ -, not {0:?}")]
    Name(String),
    /// No pack has a side of that name.
    #[error("the name of a side is 1 to 64 characters of a-z A-Z 0-9 . _ -, not {0:?}")]
    Side(String),
    /// The token is too short to be one, or no header could carry it.
    #[error("a client's token is 8 to 4096 visible ASCII characters")]
    Token,
    /// A refresh token is of no use without the application it was issued to.
    #[error("a refresh token needs the id and the secret of its application")]
    NoApp,
    /// An application that asks for itself has no refresh token to begin with.
    #[error(
        "a grant of the flow client_credentials needs the id and the secret of its application, and no refresh token"
    )]
    Flow,
    /// There is nothing to be taken back.
    #[error("client {0} is not revoked")]
    NotRevoked(String),
    /// The client has nothing to fetch a token with.
    #[error("client {0} is not connected; `switchback client connect` makes the link")]
    NotConnected(String),
    /// The client was revoked before.
    #[error("client {0} is revoked; `switchback client restore` takes it back")]
    Revoked(String),
    /// What is to be changed is set in the configuration file, which would set it again at the next start.
    #[error("the {what} of client {client} is set in the configuration file; change it there")]
    Configured {
        /// `token` or `credential`.
        what: &'static str,
        /// Name of the client.
        client: String,
    },
    /// The client has tokens for several sides, and nobody said which to rotate.
    #[error("client {client} has tokens for {}; say for which side", .sides.join(" and "))]
    WhichSide {
        /// Name of the client.
        client: String,
        /// The sides; `all` for tokens that open all fronts.
        sides: Vec<String>,
    },
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
    /// The tokens it is known by. When adding, one of them may be left to be made; in a configuration all are given.
    pub tokens: Vec<NewToken>,
    /// What its calls go out with to sides that have no grants, one for a side.
    pub credentials: Vec<NewCredential>,
    /// How its grant gets its access tokens.
    pub flow: Flow,
    /// The application its grant is for.
    pub app: Option<App>,
    /// A refresh token to begin with, instead of connecting.
    pub refresh_token: Option<Secret<String>>,
}

/// A token that a client is to be known by.
#[derive(Clone, Debug, Default)]
pub struct NewToken {
    /// The side whose fronts it opens; `None` for all.
    pub side: Option<String>,
    /// `None` has one made, where a client is added or its token rotated.
    pub token: Option<Secret<String>>,
}

impl From<Secret<String>> for NewToken {
    /// This token, for all fronts.
    fn from(token: Secret<String>) -> NewToken {
        NewToken { side: None, token: Some(token) }
    }
}

/// A token that calls to one side are to go out with.
#[derive(Clone, Debug)]
pub struct NewCredential {
    /// The side that is called.
    pub side: String,
    /// What the service there knows the client by.
    pub token: Secret<String>,
}

/// A client that was added or whose token was rotated.
#[derive(Debug)]
pub struct Added {
    /// The client as it is now.
    pub client: ClientInfo,
    /// Its token if one was made here. It is stored as a keyed hash only and cannot be shown again.
    pub token: Option<Secret<String>>,
}

/// A client that was revoked.
#[derive(Debug)]
pub struct Revoked {
    /// The client as it is now.
    pub client: ClientInfo,
    /// What became of the tokens of its grant at the authorization server.
    pub at_server: Revocation,
}

/// Manages the clients of a store. Any process may, beside a running gateway, which sees the changes within a second.
#[derive(Clone, Debug)]
pub struct Registry {
    pub(super) store: Store,
    pub(super) endpoint: Arc<ArcSwapOption<Endpoint>>,
    /// The names of the clients of the configuration file, where it is known.
    configured: Arc<ArcSwapOption<HashSet<String>>>,
}

impl Registry {
    /// A registry on `store`; `endpoint` is needed for connecting, and for revoking at the authorization server.
    pub fn new(store: Store, endpoint: Option<Endpoint>) -> Self {
        let endpoint = Arc::new(ArcSwapOption::from(endpoint.map(Arc::new)));
        Registry { store, endpoint, configured: Arc::default() }
    }

    /// The same registry with another author of its changes, for the history.
    #[must_use]
    pub fn by(&self, author: &str) -> Registry {
        Registry { store: self.store.by(author), ..self.clone() }
    }

    /// Clients are connected there from here on.
    pub fn set_endpoint(&self, endpoint: Option<Endpoint>) {
        self.endpoint.store(endpoint.map(Arc::new));
    }

    /// Tells which clients the configuration file has: others that came from it are shown as having left it.
    pub fn set_configured(&self, names: impl IntoIterator<Item = String>) {
        self.configured.store(Some(Arc::new(names.into_iter().collect())));
    }

    /// Adds a client. One that is given no token gets one made, which opens all fronts.
    ///
    /// # Errors
    ///
    /// The name, a side or a token will not do, or is taken; or the store fails.
    pub async fn add(&self, mut new: NewClient) -> Result<Added, RegistryError> {
        check_name(&new.name)?;
        if new.tokens.is_empty() {
            new.tokens.push(NewToken::default());
        }
        let mut made = None;
        for token in &mut new.tokens {
            made = make_if_missing(token).or(made);
        }
        let marks = Marks::of(&self.store, &new)?;
        self.store.add_client(marks.row(&new, Origin::Managed)).await?;
        Ok(Added { client: self.get(&new.name).await?, token: made })
    }

    /// Makes the store agree with the clients of the configuration file, so many in a transaction that each waits little for
    /// the disk, and so few that other gateways wait little for them. Each is added when missing; else its company,
    /// tokens, credentials and application are brought up to date, and its refresh token only if another one was configured
    /// than before. Gives the names of those that were left alone, and why.
    ///
    /// # Errors
    ///
    /// A name, a side or a token will not do; or the store fails.
    pub async fn ensure(&self, configured: Vec<NewClient>) -> Result<Vec<(String, Ensured)>, RegistryError> {
        self.set_configured(configured.iter().map(|client| client.name.clone()));
        let mut left_alone = Vec::new();
        for together in configured.chunks(ENSURED_TOGETHER) {
            let marked = together.iter().map(|wanted| {
                check_name(&wanted.name)?;
                Ok((Marks::of(&self.store, wanted)?, wanted))
            });
            let marked = marked.collect::<Result<Vec<_>, RegistryError>>()?;
            let rows: Vec<_> =
                marked.iter().map(|(marks, wanted)| marks.row(wanted, Origin::Configured)).collect();
            let ensured = self.store.ensure_clients(&rows).await?;
            let not_done = together.iter().zip(ensured).filter(|(_, ensured)| *ensured != Ensured::Done);
            left_alone.extend(not_done.map(|(wanted, ensured)| (wanted.name.clone(), ensured)));
        }
        Ok(left_alone)
    }

    /// All clients, by name.
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

    /// One client.
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

    /// Binds a new token to a client, the given one or one made here. The others of its side end at once, or after `grace`.
    /// Without a side it is that of the tokens that the client has, if that is one.
    ///
    /// # Errors
    ///
    /// There is no such client, it was revoked, its tokens are the configuration's, the token will not do or
    /// is taken, the side is not known, or the store fails.
    pub async fn rotate(
        &self,
        name: &str,
        mut new: NewToken,
        grace: Option<Duration>,
    ) -> Result<Added, RegistryError> {
        let client = self.living(name).await?;
        if new.side.is_none() {
            new.side = only_side(&client)?;
        }
        let is_configured = |token: &store::TokenRow| {
            token.side == new.side && token.origin == Origin::Configured && token.expires_ms.is_none()
        };
        if client.tokens.iter().any(is_configured) {
            return Err(RegistryError::Configured { what: "token", client: name.to_owned() });
        }
        let made = make_if_missing(&mut new);
        let grace_ms = grace.map(|grace| i64::try_from(grace.as_millis()).unwrap_or(i64::MAX));
        let row = store::NewToken { hash: hash_of(&self.store, &new)?, side: new.side.as_deref() };
        self.store.rotate_token(&client.id, &row, grace_ms).await?;
        Ok(Added { client: self.get(name).await?, token: made })
    }

    /// Sets what calls of a client to a side go out with, in place of what there was.
    ///
    /// # Errors
    ///
    /// There is no such client or side, it was revoked, the credential is the configuration's or no header
    /// could carry it, or the store fails.
    pub async fn set_credential(&self, name: &str, new: NewCredential) -> Result<ClientInfo, RegistryError> {
        let client = self.living(name).await?;
        check_token(&new.token)?;
        check_side(&new.side)?;
        let is_configured =
            |row: &store::CredentialRow| row.side == new.side && row.origin == Origin::Configured;
        if client.credentials.iter().any(is_configured) {
            return Err(RegistryError::Configured { what: "credential", client: name.to_owned() });
        }
        let row = store::NewCredential { side: &new.side, token: &new.token };
        self.store.set_credential(&client.id, &row).await?;
        self.get(name).await
    }

    /// Ends a client for good: its tokens select nothing, the secrets of its grant and its credentials are erased. After that
    /// the tokens of its grant are revoked at the authorization server (RFC 7009); that this failed is no error here.
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
                target: "switchback::token", client = name, what, "the client is revoked, its tokens at the authorization server are not"
            );
        }
        Ok(Revoked { client: self.get(name).await?, at_server })
    }

    /// Has the gateways fetch a new access token at once, also where they wait after a failure, and where the grant has ended.
    ///
    /// # Errors
    ///
    /// There is no such client, it was revoked or never connected, its grant does not open, or the store fails.
    pub async fn retry(&self, name: &str) -> Result<ClientInfo, RegistryError> {
        let client = self.living(name).await?;
        let grant = self.store.grant_of(&client.id).await?;
        grant.secrets.map_err(StoreError::from)?;
        if !self.store.request_refresh(&grant.key).await? {
            return Err(RegistryError::NotConnected(name.to_owned()));
        }
        self.get(name).await
    }

    /// Takes a client back that was revoked. Its tokens, its grant and its credentials were erased: what the configuration gives
    /// it comes back with the next reload, and the rest is to be given anew.
    ///
    /// # Errors
    ///
    /// There is no such client, it was not revoked, or the store fails.
    pub async fn restore(&self, name: &str) -> Result<ClientInfo, RegistryError> {
        let client = self.store.client(name).await?;
        if client.revoked_ms.is_none() {
            return Err(RegistryError::NotRevoked(name.to_owned()));
        }
        self.store.restore_client(&client.id).await?;
        self.get(name).await
    }

    /// The row of a client that is not revoked.
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

/// The keyed hashes that a client's row is made with.
struct Marks {
    /// In the order of its tokens.
    tokens: Vec<KeyedHash>,
    refresh: Option<KeyedHash>,
}

impl Marks {
    /// Checks what a client is given, and hashes it.
    fn of(store: &Store, new: &NewClient) -> Result<Marks, RegistryError> {
        if new.flow == Flow::ClientCredentials && (new.app.is_none() || new.refresh_token.is_some()) {
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

    /// The client in the store's terms.
    fn row<'a>(&self, new: &'a NewClient, origin: Origin) -> store::NewClient<'a> {
        let tokens = new.tokens.iter().zip(&self.tokens);
        let tokens = tokens.map(|(token, hash)| store::NewToken { hash: *hash, side: token.side.as_deref() });
        let credentials = new.credentials.iter();
        let credentials = credentials.map(|new| store::NewCredential { side: &new.side, token: &new.token });
        store::NewClient {
            name: &new.name,
            company: new.company.as_deref(),
            tokens: tokens.collect(),
            credentials: credentials.collect(),
            origin,
            seed: new.app.as_ref().map(|app| GrantSeed {
                flow: new.flow,
                app_id: &app.id,
                app_secret: &app.secret,
                refresh: new.refresh_token.as_ref().zip(self.refresh),
            }),
        }
    }
}

/// The keyed hash of a token that was given, or made before.
fn hash_of(store: &Store, new: &NewToken) -> Result<KeyedHash, RegistryError> {
    let token = new.token.as_ref().ok_or(RegistryError::Token)?;
    check_token(token)?;
    new.side.as_deref().map_or(Ok(()), check_side)?;
    Ok(store.hasher().hash(HashOf::ClientToken, token.expose().as_bytes()))
}

/// The one side that all tokens of a client are for.
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

/// A side is a name of the pack, which is not at hand here: what cannot be one is refused.
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

/// Makes a token where none is given; gives the one it made.
fn make_if_missing(new: &mut NewToken) -> Option<Secret<String>> {
    if new.token.is_some() {
        return None;
    }
    let token = Secret::new(format!("sbt_{}", URL_SAFE_NO_PAD.encode(random::<32>())));
    new.token = Some(token.clone());
    Some(token)
}
