//! A gateway's tokens as tests want them: one client called `acme`, enrolled with the refresh token
//! that the authority knows.

use super::authority::{Authority, app, secret};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use switchback_gateway::clock::Clock;
use switchback_gateway::secret::Secret;
use switchback_gateway::store::seal::{KeyRing, SealingKey};
use switchback_gateway::store::{GrantFlow, MissingStore, Store};
use switchback_gateway::token::{
    CallOperation, Client, NewClient, RefreshSettings, Registry, TokenEndpoint, Tokens,
};
use switchback_plan::{BodyForm, ClientAuth, RefreshExtra, TokenRequests};

pub const OLD_TOKEN: &str = "old-token-canary";
/// 2026-01-01, in milliseconds.
pub const NEW_YEAR: i64 = 1_767_225_600_000;
/// How long anything on loopback may take before a test has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn key() -> Secret<String> {
    SealingKey::generate()
}

pub fn ring(keys: &[&Secret<String>]) -> KeyRing {
    let keys: Vec<Secret<String>> = keys.iter().map(|key| (*key).clone()).collect();
    KeyRing::parse(&keys).expect("generated keys parse")
}

pub fn sqlite_in(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("store.db").display())
}

pub fn acme(refresh_token: &str) -> NewClient {
    NewClient {
        name: "acme".to_owned(),
        company: None,
        tokens: vec![secret(OLD_TOKEN).into()],
        credentials: Vec::new(),
        flow: GrantFlow::AuthorizationCode,
        app: Some(app()),
        refresh_token: Some(secret(refresh_token)),
    }
}

/// A store with one client, and the gateway on it.
pub struct Gateway {
    pub store: Store,
    pub tokens: Tokens,
    pub clock: Clock,
    pub key: Secret<String>,
    pub url: String,
    pub folder: Arc<tempfile::TempDir>,
}

impl Gateway {
    /// On a new SQLite file, at a paused clock.
    pub async fn new(authority: &Authority) -> Self {
        Self::with(authority, authority.endpoint(), RefreshSettings::default(), Clock::paused_at(NEW_YEAR))
            .await
    }

    pub async fn with(
        authority: &Authority,
        endpoint: TokenEndpoint,
        settings: RefreshSettings,
        clock: Clock,
    ) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
        let url = sqlite_in(folder.path());
        let key = key();
        let store = Store::open(&url, ring(&[&key]), clock.clone(), MissingStore::Create)
            .await
            .expect("a new store opens");
        let seed = authority.state().active.clone();
        Registry::new(store.clone(), None).add(acme(&seed)).await.expect("a new client is added");
        let tokens =
            Tokens::open(store.clone(), Some(endpoint), settings).await.expect("the gateway role is free");
        Gateway { store, tokens, clock, key, url, folder }
    }

    pub fn client(&self) -> Arc<Client> {
        self.tokens.clients().authenticate(OLD_TOKEN.as_bytes(), "v2").expect("the client is enrolled")
    }

    /// The state of a new process: memory is empty.
    pub async fn restart(self, endpoint: TokenEndpoint, settings: RefreshSettings) -> Self {
        let Gateway { store, tokens, clock, key, url, folder } = self;
        tokens.drain(PATIENCE).await;
        drop(tokens);
        store.close().await;
        drop(store);
        let clock = Clock::paused_at(clock.unix_ms());
        let store = Store::open(&url, ring(&[&key]), clock.clone(), MissingStore::Refuse)
            .await
            .expect("the store reopens");
        let tokens =
            Tokens::open(store.clone(), Some(endpoint), settings).await.expect("the gateway role is free");
        Gateway { store, tokens, clock, key, url, folder }
    }
}

/// Lets other tasks run until `condition` holds.
pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never happened: {what}"));
}

/// Some operation of the API.
pub fn operation() -> CallOperation {
    operation_at("/things/1")
}

/// The operation that reads `path`.
pub fn operation_at(path: &str) -> CallOperation {
    CallOperation::from_call(&http::Method::GET, path)
}

/// The token requests of the messaging service's authorization server.
pub fn service_requests() -> TokenRequests {
    TokenRequests {
        body: Some(BodyForm::Json),
        client_auth: Some(ClientAuth::Post),
        refresh_sends: Some(vec![RefreshExtra::AccessToken]),
    }
}
