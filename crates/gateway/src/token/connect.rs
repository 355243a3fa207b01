//! Connects a client: a link for a person to open, and the callback that completes it (RFC 6749,
//! section 4.1).
//!
//! The `state` in the link is 256 random bits, stored as a keyed hash, bound to one client, and
//! valid once within ten minutes. It is consumed first, so a replayed callback has no effect. There
//! is no browser session to bind it to: the command line or an operator of the admin port creates
//! the link, and whoever receives it is trusted to authorize. A PKCE challenge (RFC 7636) binds the
//! code to the link, so a code obtained through another link is rejected.

use super::application::OAuthApp;
use super::registry::{Registry, RegistryError};
use super::report::ClientInfo;
use super::wire::{Offer, TokenExchange, TokenRefusal, is_code};
use crate::clock::rfc3339;
use crate::secret::Secret;
use crate::store::seal::{HashOf, random};
use crate::store::{NewTokens, PendingAuthorization, StoreError};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// Time that a person has to authorize.
const LINK_TTL: Duration = Duration::from_secs(600);

/// An authorization link for a person to open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectLink {
    /// Name of the client to connect.
    pub client: String,
    /// The URL including the `state`. Give it only to the person who authorizes.
    pub url: String,
    /// Expiry as RFC 3339, UTC.
    pub expires_at: String,
}

/// An error that prevents connecting a client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No authorization server is configured.
    #[error("no authorization server configured")]
    NoServer,
    /// The application's credentials are neither stored nor passed in.
    #[error("client {0} has no application id and secret or key; give them")]
    NoApp(String),
    /// The `state` is unknown, used or expired.
    #[error("this link is unknown, used or expired; ask for a new one")]
    State,
    /// The callback has neither a code nor an error.
    #[error("the authorization server sent back no code")]
    NoCode,
    /// The person or the authorization server denied access, with this error code.
    #[error("authorization refused: {0}")]
    Denied(String),
    /// The callback is from another authorization server (RFC 9207).
    #[error("the answer is not from the authorization server that was asked")]
    OtherIssuer,
    /// The authorization server rejected the code or the application.
    #[error("code refused: {0}")]
    CodeRefused(TokenRefusal),
    /// The authorization server sent no usable response; the code may be spent.
    #[error("authorization server: {0}")]
    Server(String),
    /// The client does not exist, or the store failed.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl From<StoreError> for ConnectError {
    fn from(error: StoreError) -> Self {
        ConnectError::Registry(error.into())
    }
}

impl Registry {
    /// Creates a link that connects the client called `name`. `app`, if given, becomes the
    /// application of its grant.
    ///
    /// # Errors
    ///
    /// There is no authorization server, no such client, or no application for it, or the store
    /// fails.
    pub async fn connect(&self, name: &str, app: Option<OAuthApp>) -> Result<ConnectLink, ConnectError> {
        let endpoint = self.endpoint.load_full().ok_or(ConnectError::NoServer)?;
        let oauth = endpoint.oauth();
        let found = endpoint.metadata().await.map_err(|error| ConnectError::Server(error.to_string()))?;
        let no_address = || ConnectError::Server("its metadata has no authorization_endpoint".to_owned());
        let mut url = found.authorize_url.clone().ok_or_else(no_address)?;
        let client = self.living(name).await?;
        let (key, stored) = self.grant_of(&client).await?;
        if let Some(app) = &app {
            self.store.set_app(&key, &app.id, app.credential.to_stored()).await?;
        }
        let app = app.or(stored).ok_or_else(|| ConnectError::NoApp(name.to_owned()))?;
        // Stored only as a hash: the database alone does not suffice to complete a pending link.
        let state = URL_SAFE_NO_PAD.encode(random::<32>());
        let hash = self.store.hasher().hash(HashOf::ConnectState, state.as_bytes());
        let verifier = Secret::new(URL_SAFE_NO_PAD.encode(random::<32>()));
        self.store.put_connect_state(&hash, &client.id, &verifier, LINK_TTL).await?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", app.id.expose())
            .append_pair("redirect_uri", oauth.redirect_url.as_str())
            .append_pair("scope", &oauth.scopes.join(" "))
            .append_pair("state", &state)
            .append_pair("code_challenge", &challenge(&verifier))
            .append_pair("code_challenge_method", "S256")
            .extend_pairs(&oauth.authorize_parameters);
        let expires = self.store.clock().unix_ms().saturating_add(LINK_TTL.as_millis() as i64);
        Ok(ConnectLink { client: client.name, url: url.into(), expires_at: rfc3339(expires) })
    }

    /// Completes a connection with the query of the callback: validates and consumes the `state`,
    /// exchanges the code and stores the grant.
    ///
    /// # Errors
    ///
    /// The `state` is unknown, used or expired, the person or the server denied access, the server
    /// rejected the code, or the store fails.
    pub async fn callback(&self, query: &str) -> Result<ClientInfo, ConnectError> {
        let answer = Callback::parse(query);
        let endpoint = self.endpoint.load_full().ok_or(ConnectError::NoServer)?;
        // Must precede the use of the `state`, so that an unreachable server does not consume the
        // link.
        let found = endpoint.metadata().await.map_err(|error| ConnectError::Server(error.to_string()))?;
        let pending = match &answer.state {
            Some(state) => {
                let hash = self.store.hasher().hash(HashOf::ConnectState, state.as_bytes());
                self.store.take_connect_state(&hash).await?
            }
            // Some servers drop the `state`. The link is then unambiguous only if exactly one is
            // pending.
            None if endpoint.oauth().is_state_optional => self.store.take_only_connect_state().await?,
            None => None,
        };
        let PendingAuthorization { client, verifier } = pending.ok_or(ConnectError::State)?;
        match (&found.issuer, &answer.issuer) {
            (Some(ours), Some(theirs)) if ours != theirs => return Err(ConnectError::OtherIssuer),
            // A server that announces `iss` must send it (RFC 9207, section 2.4). Without this
            // check, another server's code could be injected (mix-up attack).
            (Some(_), None) if found.names_itself => return Err(ConnectError::OtherIssuer),
            _ => {}
        }
        if let Some(error) = answer.error {
            return Err(ConnectError::Denied(error));
        }
        let code = answer.code.ok_or(ConnectError::NoCode)?;
        let row = self.store.grant_of(&client).await?;
        let name = self.name_of(&client).await?;
        let secrets = row.secrets.map_err(StoreError::from)?;
        let app = OAuthApp::of_grant(&secrets).ok_or(ConnectError::NoApp(name.clone()))?;
        // Before the code is spent: without disk space for the tokens, the authorization would be
        // lost.
        self.store.prepare_connecting().await?;
        let offer = Offer::Code { code: &code, verifier: &verifier };
        let tokens = match endpoint.exchange(&app, offer).await {
            TokenExchange::Tokens(tokens) => tokens,
            TokenExchange::Refused(refusal) => return Err(ConnectError::CodeRefused(refusal)),
            TokenExchange::Failed(failure) => return Err(ConnectError::Server(failure.what)),
        };
        let tokens = NewTokens {
            access: tokens.access,
            refresh: tokens.refresh,
            previous_refresh: None,
            issued_ms: self.store.clock().unix_ms(),
            lifetime_ms: tokens
                .lifetime
                .map(|lifetime| i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX)),
        };
        self.store.by("its owner").connect_grant(&row.key, &tokens).await?;
        let client = self.get(&name).await?;
        if let Some(warning) = client.grant.warning {
            tracing::warn!(
                target: "switchback::token", client = name, expires_at = client.grant.expires_at, "connected, but {warning}"
            );
        }
        Ok(client)
    }

    async fn name_of(&self, client: &str) -> Result<String, ConnectError> {
        let rows = self.store.clients_since(0).await?;
        let found = rows.into_iter().find(|row| row.id == client && row.revoked_ms.is_none());
        found.map(|row| row.name).ok_or(ConnectError::State)
    }
}

/// The parameters of a callback. Of repeated parameters, the first counts.
#[derive(Default)]
struct Callback {
    state: Option<String>,
    issuer: Option<String>,
    code: Option<Secret<String>>,
    error: Option<String>,
}

impl Callback {
    fn parse(query: &str) -> Self {
        let mut callback = Callback::default();
        // Only the query matters; the URL parser requires a base.
        let Ok(mut url) = reqwest::Url::parse("http://localhost/") else { return callback };
        url.set_query(Some(query));
        for (name, value) in url.query_pairs() {
            match &*name {
                "state" if callback.state.is_none() => callback.state = Some(value.into_owned()),
                "iss" if callback.issuer.is_none() => callback.issuer = Some(value.into_owned()),
                "code" if callback.code.is_none() => callback.code = Some(Secret::new(value.into_owned())),
                "error" if callback.error.is_none() => callback.error = Some(error_code(&value)),
                _ => {}
            }
        }
        callback
    }
}

/// Returns the PKCE challenge of a verifier (RFC 7636, section 4.2).
fn challenge(verifier: &Secret<String>) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose().as_bytes()))
}

/// Returns an error code allowed by RFC 6749, section 4.1.2.1. Other text is replaced, since it
/// would reach logs and pages.
fn error_code(value: &str) -> String {
    if is_code(value) { value.to_owned() } else { "unreadable error".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_as_the_rfc_shows_it() {
        // RFC 7636, appendix B.
        let verifier = Secret::from("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(challenge(&verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn a_callback_is_read_from_its_query() {
        let callback = Callback::parse("code=a%2Bb&state=s&state=t&x=y");
        assert_eq!(
            (callback.state.as_deref().expect("a state"), callback.code.expect("a code").expose().as_str()),
            ("s", "a+b")
        );
        let denied = Callback::parse("error=access_denied&state=s");
        assert_eq!((denied.error.as_deref(), denied.code.is_none()), (Some("access_denied"), true));
        let hostile = Callback::parse("error=%3Cscript%3E&state=s");
        assert_eq!(hostile.error.as_deref(), Some("unreadable error"));
    }
}
