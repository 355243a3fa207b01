//! Clients and their credentials: which client a token selects, and what its calls go out with - the access token of its grant,
//! or a token that the operator gave for a side without grants.
//!
//! What the rest of the program does with it:
//!
//! ```no_run
//! # use switchback_gateway::{clock::Clock, store::{Missing, Store, seal::KeyRing}, token::*};
//! # use std::time::Duration;
//! # async fn example(keys: KeyRing, oauth: OAuth) -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Clock::machine();
//! let store = Store::open("sqlite:switchback.db", keys, clock, Missing::Create).await?;
//! let endpoint = Endpoint::new(oauth)?;
//! let tokens = Tokens::open(store.clone(), Some(endpoint.clone()), Settings::default()).await?;
//! let watching = tokio::spawn(tokens.clone().run());          // refreshes ahead of expiry, follows the store
//!
//! // Per request: no lock, no SQL.
//! let Some(client) = tokens.clients().authenticate(b"its token", "v2") else { /* 401 */ return Ok(()) };
//! let operation = Operation::of(&http::Method::GET, "/things/1");
//! let token = client.grant.access_token().await?;              // send token.header()
//! match 401 {
//!     401 => match client.grant.rejected(token.generation(), operation).await {
//!         Rejected::Replay(newer) => { /* send once more; on another 401: */ client.grant.refused(newer.generation(), operation) }
//!         Rejected::Pass => { /* pass the 401 on */ }
//!         Rejected::Unavailable(_why) => { /* 503: it says nothing about the client */ }
//!     },
//!     _ => client.grant.worked(&token, operation),
//! }
//!
//! // Management, from the command line and the admin port.
//! let registry = Registry::new(store, Some(endpoint));
//! let link = registry.connect("acme", None).await?;            // a person opens link.url
//! tokens.sync().await?;                                        // see a change at once; else within a second
//! # drop((watching, link)); tokens.drain(Duration::from_secs(30)).await; Ok(()) }
//! ```
//!
//! Secrets are sealed and stored by `store`; message bodies are not seen here. Management is in `registry` and `connect`, the
//! refresh itself in `refresh`, the authorization server's dialect in `wire`.

pub mod carried;
mod client;
mod connect;
mod discovery;
mod fixed;
mod grant;
mod lifetime;
mod refresh;
mod registry;
mod rejections;
mod report;
mod service;
mod wire;

pub use client::{Client, Clients};
pub use connect::{ConnectError, ConnectLink};
pub use discovery::{MetadataReport, Wants};
pub use fixed::FixedToken;
pub use grant::{AccessToken, Grant, Rejected};
pub use registry::{Added, NewClient, NewCredential, NewToken, Registry, RegistryError, Revoked};
pub use rejections::Operation;
pub use report::{ClientInfo, CredentialInfo, CredentialState, GrantInfo};
pub use service::{Health, Tokens};
pub use wire::{
    AUTHORIZE_FIELDS, App, Endpoint, OAuth, OAuthConfigError, Refusal, RefusalAbout, Revocation, TOKEN_FIELDS,
};

use std::time::Duration;

/// Times that govern refreshing; all in the clock's monotonic time.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How often the store is looked at for changes and grants for being due.
    pub poll: Duration,
    /// The first wait after a failed refresh; doubles with each further failure.
    pub retry_min: Duration,
    /// The longest such wait.
    pub retry_max: Duration,
    /// For how long further 401s of an operation are passed on that a fresh token was refused for.
    pub rejection_quiet: Duration,
    /// What that doubles up to while it goes on.
    pub rejection_quiet_max: Duration,
    /// How long a refresh that another gateway has begun is left to it after it was last heard of.
    pub lease: Duration,
    /// How many grants are refreshed ahead of expiry at the same time.
    pub refreshes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            poll: Duration::from_secs(1),
            retry_min: Duration::from_secs(1),
            retry_max: Duration::from_secs(300),
            rejection_quiet: Duration::from_secs(30),
            // A token that ends before its time is noticed after this at the latest, whatever the client calls.
            rejection_quiet_max: Duration::from_secs(300),
            lease: Duration::from_secs(6),
            refreshes_max: 8,
        }
    }
}

/// Why there is no access token for a call. Holds no secret. Nothing has been sent upstream, so the call itself may safely be
/// repeated once the cause is gone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Nobody has authorized this client yet.
    #[error("client is not connected")]
    NotConnected,
    /// The authorization has ended, for this reason; a person has to connect the client again.
    #[error("client needs to be connected again ({0})")]
    NeedsReconnect(String),
    /// The access token has ended and there is no newer one.
    #[error("access token has expired")]
    Expired,
    /// The authorization server refuses how it is asked, with this error code; an operator has to act.
    #[error("the authorization server refuses the application or the request ({0})")]
    Misconfigured(String),
    /// A refresh failed recently.
    #[error("{cause}; next try in {} ms", .wait.as_millis())]
    CoolingDown {
        /// The next try is not before this long.
        wait: Duration,
        /// Why it failed.
        cause: Box<TokenError>,
    },
    /// The authorization server gave no usable answer.
    #[error("authorization server: {0}")]
    Server(String),
    /// The store could not take the result of a refresh, so none was made.
    #[error("no refresh: {0}")]
    Store(String),
    /// No authorization server is configured.
    #[error("no authorization server configured")]
    NoServer,
    /// The refresh ended without a result: the program is shutting down.
    #[error("refresh interrupted")]
    Interrupted,
}

/// On whose side a [`TokenError`] lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    /// A person must act: connect the client, or configure the authorization server.
    Enrolment,
    /// The authorization server.
    Server,
    /// This gateway: its store, or its shutting down.
    Gateway,
}

impl TokenError {
    /// Whose fault it is.
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

    /// When trying again may help, if waiting helps at all.
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
