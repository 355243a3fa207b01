//! Clients and their credentials: the client that a token authenticates, and the token of its
//! upstream calls. That is the access token of its grant, or a fixed token for a side without
//! grants.
//!
//! The rest of the program uses it as follows:
//!
//! ```no_run
//! # use switchback_gateway::{clock::Clock, store::{MissingStore, Store, seal::KeyRing}, token::*};
//! # use std::time::Duration;
//! # async fn example(keys: KeyRing, oauth: OAuth) -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Clock::machine();
//! let store = Store::open("sqlite:switchback.db", keys, clock, MissingStore::Create).await?;
//! let endpoint = TokenEndpoint::new(oauth)?;
//! let tokens = Tokens::open(store.clone(), Some(endpoint.clone()), RefreshSettings::default()).await?;
//! let watching = tokio::spawn(tokens.clone().run());          // refreshes early, follows the store
//!
//! // Per request: no lock, no SQL.
//! let Some(client) = tokens.clients().authenticate(b"its token", "v2") else { return Ok(()) }; // 401
//! let operation = CallOperation::from_call(&http::Method::GET, "/things/1");
//! let token = client.grant.access_token().await?;              // send token.header()
//! match 401 {
//!     401 => match client.grant.on_unauthorized(token.generation(), operation).await {
//!         Rejected::Replay(newer) => {
//!             // Send once more; on another 401:
//!             client.grant.on_refused_again(newer.generation(), operation);
//!         }
//!         Rejected::Pass => { /* forward the 401 */ }
//!         Rejected::Unavailable(_why) => { /* 503: the 401 does not concern the client */ }
//!     },
//!     _ => client.grant.on_success(&token, operation),
//! }
//!
//! // Management, from the command line and the admin port.
//! let registry = Registry::new(store, Some(endpoint));
//! let link = registry.connect("acme", None).await?;            // a person opens link.url
//! tokens.sync().await?;                                        // applies the change now, not in a second
//! # drop((watching, link)); tokens.drain(Duration::from_secs(30)).await; Ok(()) }
//! ```
//!
//! The module `store` seals and stores secrets. Management is in `registry` and `connect`, the
//! refresh itself in `refresh`, the protocol of the authorization server in `wire`.

mod application;
pub mod carried;
mod client;
mod connect;
mod discovery;
mod fixed;
mod grant;
mod lifetime;
mod oauth;
mod recent;
mod refresh;
mod registry;
mod rejections;
mod report;
mod service;
mod wire;

pub use application::{AppCredential, AppKey, AppKeyError, OAuthApp};
pub use client::{Client, Clients};
pub use connect::{ConnectError, ConnectLink};
pub use discovery::{DiscoveryError, MetadataError, MetadataReport, Wants};
pub use fixed::FixedToken;
pub use grant::{AccessToken, Grant, Rejected};
pub use oauth::OAuth;
pub use registry::{AddedClient, NewClient, NewCredential, NewToken, Registry, RegistryError, Revoked};
pub use rejections::CallOperation;
pub use report::{ClientInfo, CredentialInfo, CredentialState, GrantInfo};
pub use service::{Health, Tokens};
pub use wire::{
    AUTHORIZE_FIELDS, OAuthConfigError, RefusalAbout, Revocation, TOKEN_FIELDS, TokenEndpoint, TokenRefusal,
};

use std::time::Duration;

/// Intervals and limits of refreshing, in the clock's monotonic time.
#[derive(Clone, Copy, Debug)]
pub struct RefreshSettings {
    /// Interval for reading changes of the store and for checking which grants are due.
    pub poll: Duration,
    /// Wait after the first failed refresh; it doubles with each further failure.
    pub retry_min: Duration,
    /// Longest wait after a failed refresh.
    pub retry_max: Duration,
    /// Time for which 401s of an operation are forwarded after a fresh token was rejected for it.
    pub rejection_quiet: Duration,
    /// Upper bound of that time, which doubles while the rejections continue.
    pub rejection_quiet_max: Duration,
    /// Time after the last renewal until a refresh claimed by another gateway may be taken over.
    pub lease: Duration,
    /// Number of grants that are refreshed ahead of expiry concurrently.
    pub refreshes_max: usize,
}

impl Default for RefreshSettings {
    fn default() -> Self {
        RefreshSettings {
            poll: Duration::from_secs(1),
            retry_min: Duration::from_secs(1),
            retry_max: Duration::from_secs(300),
            rejection_quiet: Duration::from_secs(30),
            // Bounds the time until a token that was invalidated early is noticed, whichever
            // operations the client calls.
            rejection_quiet_max: Duration::from_secs(300),
            lease: Duration::from_secs(6),
            refreshes_max: 8,
        }
    }
}

/// A reason why a call has no access token. Contains no secret. No part of the call was sent
/// upstream, so it may be repeated once the cause is resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The client was never authorized.
    #[error("client is not connected")]
    NotConnected,
    /// The authorization has ended, for this reason; a person has to connect the client again.
    #[error("client needs to be connected again ({0})")]
    NeedsReconnect(String),
    /// The access token has expired and no newer one is available.
    #[error("access token has expired")]
    Expired,
    /// The authorization server rejects the request with this error code; an operator has to act.
    #[error("the authorization server refuses the application or the request ({0})")]
    Misconfigured(String),
    /// A refresh failed recently.
    #[error("{cause}; next try in {} ms", .wait.as_millis())]
    CoolingDown {
        /// Time until the next attempt.
        wait: Duration,
        /// The cause of the failure.
        cause: Box<TokenError>,
    },
    /// The authorization server sent no usable response.
    #[error("authorization server: {0}")]
    Server(String),
    /// The store is unavailable, so no refresh was attempted.
    #[error("no refresh: {0}")]
    Store(String),
    /// No authorization server is configured.
    #[error("no authorization server configured")]
    NoServer,
    /// The refresh was interrupted because the program is shutting down.
    #[error("refresh interrupted")]
    Interrupted,
}

/// The party responsible for a [`TokenError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    /// A person must act: connect the client, or configure the authorization server.
    Enrolment,
    /// The authorization server.
    Server,
    /// This gateway: its store, or its shutdown.
    Gateway,
}

impl TokenError {
    /// Returns the responsible party.
    pub fn fault(&self) -> TokenFault {
        match self {
            TokenError::NotConnected
            | TokenError::NeedsReconnect(_)
            | TokenError::Misconfigured(_)
            | TokenError::NoServer => TokenFault::Enrolment,
            TokenError::CoolingDown { cause, .. } => cause.fault(),
            TokenError::Expired | TokenError::Server(_) => TokenFault::Server,
            TokenError::Store(_) | TokenError::Interrupted => TokenFault::Gateway,
        }
    }

    /// Returns the time after which a retry may succeed, if waiting can help.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            TokenError::CoolingDown { wait, cause } => cause.retry_after().and(Some(*wait)),
            TokenError::Expired | TokenError::Server(_) | TokenError::Store(_) | TokenError::Interrupted => {
                Some(Duration::from_secs(1))
            }
            TokenError::NotConnected
            | TokenError::NeedsReconnect(_)
            | TokenError::Misconfigured(_)
            | TokenError::NoServer => None,
        }
    }
}
