//! The protocol of the authorization server: one POST per call and an evaluation of the response.
//! This module never retries, follows no redirect and reuses no connection, because a refresh token
//! is spent as soon as the server receives it.
//!
//! It implements RFC 6749 (sections 2.3.1, 4.1.3, 4.4, 5 and 6) with form bodies; deviations of a
//! service are settings. The module `discovery` finds the addresses; `application` signs client
//! assertions. The `oauth2` crate would not suffice: it accepts no JSON bodies, only numeric
//! `expires_in`, and only the errors of the RFC. Nor does it report whether a failed request may have
//! taken effect, or how long the server wants clients to wait.

use super::application::{AppCredential, AppKeyError, OAuthApp};
use super::discovery::{self, Discovery, DiscoveryError, MetadataReport, ServerMetadata, Wants};
use super::lifetime::parse_expires_in;
use super::oauth::OAuth;
use crate::clock::Clock;
use crate::http_client::{HttpClient, describe, is_loopback, read_limited, retry_after};
use crate::secret::Secret;
use crate::store::Opened;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method};
use reqwest::Url;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use switchback_plan::{BodyForm, ClientAuth, RefreshExtra};

/// Longest response that is read; a token set has a few hundred bytes.
pub(super) const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Longest error code that is displayed.
const CODE_BYTES_MAX: usize = 64;

/// The kind of a client assertion (RFC 7523, section 2.2).
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Error code of requests that are not sent, because the application has no key that can sign.
const NO_USABLE_KEY: &str = "no_usable_client_key";

/// Fields that this module sets in a token request, so `oauth.parameters` must not contain them.
pub const TOKEN_FIELDS: &[&str] = &[
    "grant_type",
    "client_id",
    "client_secret",
    "client_assertion",
    "client_assertion_type",
    "redirect_uri",
    "code",
    "code_verifier",
    "refresh_token",
    "access_token",
    "scope",
];

/// Query parameters that this crate sets in an authorization link, so `oauth.authorize_parameters`
/// must not contain them.
pub const AUTHORIZE_FIELDS: &[&str] = &[
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
];

/// An error in an [`OAuth`] configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OAuthConfigError {
    /// The address is not encrypted, so secrets would be sent in clear text.
    #[error("{0} must be https (http is for loopback only): credentials would travel in clear text")]
    ClearText(&'static str),
    /// The address is neither set nor available from metadata.
    #[error("{0} is missing, and there is no issuer to ask for it")]
    NoAddress(&'static str),
    /// The issuer is not a valid URL for metadata.
    #[error("the issuer is not a URL without query and fragment (RFC 8414, section 2)")]
    Issuer,
    /// TLS cannot be set up: a file of its settings or the system's authorities are unusable.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

/// The credential that is exchanged for tokens.
pub(super) enum Offer<'a> {
    /// A code, with the verifier of its PKCE challenge (RFC 7636).
    Code { code: &'a Secret<String>, verifier: &'a Secret<String> },
    /// A refresh token, with the access token that was issued with it.
    RefreshToken { refresh: &'a Secret<String>, access: Option<&'a Secret<String>> },
    /// The application's own credentials.
    Application,
}

/// The tokens of a successful response.
#[derive(Debug)]
pub(super) struct TokenAnswer {
    pub access: Secret<String>,
    pub refresh: Option<Secret<String>>,
    pub lifetime: Option<Duration>,
}

/// The result of an exchange.
#[derive(Debug)]
pub(super) enum TokenExchange {
    /// New tokens.
    Tokens(TokenAnswer),
    /// A refusal that a retry by itself will not change.
    Refused(TokenRefusal),
    /// Any other failure; a later retry may succeed.
    Failed(ExchangeFailure),
}

/// A refusal by the authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRefusal {
    /// The error code, or `status_400` and the like if the response has no displayable one.
    pub code: String,
    /// The subject of the refusal.
    pub about: RefusalAbout,
}

/// The subject of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalAbout {
    /// The code or refresh token has ended.
    Grant,
    /// The application or the request is rejected; an operator has to act.
    Application,
    /// The server sent no error code of the RFC.
    Unknown,
}

impl fmt::Display for TokenRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code)
    }
}

/// An exchange without a usable response.
#[derive(Clone, Debug)]
pub(super) struct ExchangeFailure {
    /// A short description. Of the response it contains at most an error code.
    pub what: String,
    /// Whether the server may have processed the request although its response was lost.
    pub outcome_unknown: bool,
    /// Whether the server was unreachable or answered with a 5xx status.
    pub is_outage: bool,
    /// The wait that the server requested.
    pub retry_after: Option<Duration>,
}

/// The result of revoking a grant's tokens at the authorization server (RFC 7009).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", content = "error", rename_all = "snake_case")]
pub enum Revocation {
    /// The grant had no tokens.
    NoTokens,
    /// No revocation endpoint is known.
    NoEndpoint,
    /// The tokens are revoked.
    Revoked,
    /// The tokens are not all revoked, for this reason.
    Failed(String),
}

impl fmt::Display for Revocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Revocation::NoTokens => f.write_str("Its grant had no tokens."),
            Revocation::NoEndpoint => f.write_str(
                "Its tokens were not revoked at the authorization server: neither its metadata nor `oauth.revocation_url` \
                 give the address.",
            ),
            Revocation::Revoked => f.write_str("Its tokens are revoked at the authorization server too."),
            Revocation::Failed(what) => {
                write!(f, "Its tokens are not revoked at the authorization server ({what}), and are valid there until they end.")
            }
        }
    }
}

/// Why a request has no response.
#[derive(Debug, thiserror::Error)]
enum PostError {
    /// The server requires `private_key_jwt`, and the application has a secret.
    #[error("the authorization server requires private_key_jwt, and the application has no private key")]
    NoKey,
    /// The application's key cannot sign.
    #[error("the application's private key cannot be used: {0}")]
    Key(#[from] AppKeyError),
    /// The request failed.
    #[error("{}", describe(.0))]
    Request(#[from] reqwest::Error),
}

/// A client of the authorization server. Clones share its metadata.
#[derive(Clone, Debug)]
pub struct TokenEndpoint {
    http: HttpClient,
    oauth: Arc<OAuth>,
    discovery: Arc<Discovery>,
}

impl TokenEndpoint {
    /// Validates the settings and prepares the HTTP client. Does not connect yet.
    ///
    /// # Errors
    ///
    /// An address is missing or not encrypted, or TLS cannot be set up.
    pub fn new(oauth: OAuth) -> Result<Self, OAuthConfigError> {
        let issuer = oauth.issuer.as_deref().map(Url::parse).transpose();
        let issuer = issuer.map_err(|_| OAuthConfigError::Issuer)?;
        if issuer.as_ref().is_some_and(|url| url.query().is_some() || url.fragment().is_some()) {
            return Err(OAuthConfigError::Issuer);
        }
        let addresses = [
            ("authorize_url", &oauth.authorize_url, issuer.is_none()),
            ("token_url", &oauth.token_url, issuer.is_none()),
            ("issuer", &issuer, false),
            ("revocation_url", &oauth.revocation_url, false),
        ];
        for (name, url, is_needed) in addresses {
            match url {
                // RFC 6749, section 3.2, requires TLS; over loopback, no one else can read the
                // secrets.
                Some(url) if url.scheme() != "https" && !is_loopback(url.host_str()) => {
                    return Err(OAuthConfigError::ClearText(name));
                }
                None if is_needed => return Err(OAuthConfigError::NoAddress(name)),
                _ => {}
            }
        }
        let http = reqwest::Client::builder()
            // A reused connection may be closed by the server just as a request is sent; whether
            // the refresh token was spent would be unknown.
            .pool_max_idle_per_host(0)
            .connect_timeout(oauth.timeout)
            // No redirects either (see `HttpClient`): they would send the credentials to another
            // address.
            .timeout(oauth.timeout);
        let asked = oauth.token_url.as_ref().or(issuer.as_ref());
        let asked = asked.ok_or(OAuthConfigError::NoAddress("token_url"))?;
        let http = HttpClient::new(http, asked, &oauth.tls)
            .map_err(|error| OAuthConfigError::Tls(error.to_string()))?;
        let discovery = Arc::new(Discovery::new(&oauth));
        Ok(TokenEndpoint { http, oauth: Arc::new(oauth), discovery })
    }

    /// Returns the configuration.
    pub fn oauth(&self) -> &OAuth {
        &self.oauth
    }

    /// Returns the server's addresses, and fetches its metadata if necessary.
    pub(super) async fn metadata(&self) -> Result<Arc<ServerMetadata>, DiscoveryError> {
        self.discovery.metadata(&self.http, &self.oauth).await
    }

    /// Fetches the server's metadata again, if its addresses originate there. The previous metadata
    /// remain in use until then, and if the request fails.
    pub async fn discover(&self) {
        if let Err(error) = self.discovery.refetch(&self.http, &self.oauth).await {
            let what = error.to_string();
            let issuer = self.oauth.issuer.as_deref().unwrap_or_default();
            tracing::warn!(target: "switchback::token", issuer, what, "the authorization server's metadata was not read");
        }
    }

    /// Sends one exchange and evaluates the response. Callers run it in its own task, because
    /// dropping the future after sending loses the response.
    pub(super) async fn exchange(&self, app: &OAuthApp, offer: Offer<'_>) -> TokenExchange {
        let found = match self.metadata().await {
            Ok(found) => found,
            Err(error) => {
                return TokenExchange::Failed(ExchangeFailure {
                    what: error.to_string(),
                    outcome_unknown: false,
                    is_outage: false,
                    retry_after: None,
                });
            }
        };
        let mut fields = self.fields(offer);
        // Configured parameters cannot replace protocol fields, since `TOKEN_FIELDS` are rejected
        // there.
        fields.extend(self.oauth.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let body = self.oauth.requests.body.unwrap_or(BodyForm::Form);
        match self.post(&found, &found.token_url, app, fields, body).await {
            Ok(response) => judge(response).await,
            Err(PostError::Request(error)) => TokenExchange::Failed(ExchangeFailure {
                // Any later failure may have happened after the server received the refresh token.
                outcome_unknown: !error.is_connect() && !error.is_builder(),
                is_outage: error.is_connect(),
                what: describe(&error).to_owned(),
                retry_after: None,
            }),
            // Nothing was sent, and a retry by itself changes nothing, as with a refused application.
            Err(error) => {
                tracing::warn!(target: "switchback::token", %error, "no token request was sent");
                let code = NO_USABLE_KEY.to_owned();
                TokenExchange::Refused(TokenRefusal { code, about: RefusalAbout::Application })
            }
        }
    }

    /// Posts fields together with the application's credentials. Each call signs another assertion,
    /// because servers accept each only once.
    async fn post(
        &self,
        found: &ServerMetadata,
        url: &Url,
        app: &OAuthApp,
        mut fields: Vec<(&str, &str)>,
        body: BodyForm,
    ) -> Result<reqwest::Response, PostError> {
        let mut request = self.http.request(Method::POST, url).header(ACCEPT, "application/json");
        let assertion;
        match &app.credential {
            // The credential decides, because a key has only this use: one gateway may have
            // applications with a key and others with a secret.
            AppCredential::Key(key) => {
                assertion = key.assertion(&app.id, self.audience(found), Clock::machine().unix_ms())?;
                // The `sub` of the assertion identifies the application. Some servers read the
                // parameter all the same (RFC 7521, section 4.2).
                fields.push(("client_id", app.id.expose()));
                fields.push(("client_assertion_type", ASSERTION_TYPE));
                fields.push(("client_assertion", assertion.expose()));
            }
            AppCredential::Secret(secret) => {
                match self.oauth.requests.client_auth.unwrap_or(found.client_auth) {
                    ClientAuth::Basic => request = request.header(AUTHORIZATION, basic(&app.id, secret)),
                    ClientAuth::Post => {
                        fields.push(("client_id", app.id.expose()));
                        fields.push(("client_secret", secret.expose()));
                    }
                    // A public client still identifies itself (RFC 6749, section 3.2.1).
                    ClientAuth::None => fields.push(("client_id", app.id.expose())),
                    ClientAuth::PrivateKeyJwt => return Err(PostError::NoKey),
                }
            }
        }
        let (kind, body) = match body {
            BodyForm::Form => ("application/x-www-form-urlencoded", form(&fields)),
            BodyForm::Json => ("application/json", json(&fields)),
        };
        // The client takes ownership of the bytes, so they cannot remain in a `Secret`.
        Ok(request.header(CONTENT_TYPE, kind).body(body).send().await?)
    }

    /// Returns the audience of client assertions. RFC 7523, section 3, leaves the value to the server;
    /// the draft that updates it (draft-ietf-oauth-rfc7523bis) requires the issuer, so that a malicious
    /// server cannot pass an assertion on by naming another server's endpoint as its own.
    fn audience<'a>(&'a self, found: &'a ServerMetadata) -> &'a str {
        let audience = self.oauth.assertion_audience.as_deref().or(found.issuer.as_deref());
        audience.unwrap_or(found.token_url.as_str())
    }

    /// Revokes the tokens of a grant. The refresh token is first, because most servers then revoke
    /// the access token too. The request has the format of RFC 7009, independent of the format of
    /// token requests.
    pub(super) async fn revoke(&self, secrets: &Opened) -> Revocation {
        let Some(app) = OAuthApp::of_grant(secrets) else {
            return Revocation::Failed("the grant has no application".to_owned());
        };
        let found = match self.metadata().await {
            Ok(found) => found,
            Err(error) => return Revocation::Failed(error.to_string()),
        };
        let Some(url) = &found.revocation_url else { return Revocation::NoEndpoint };
        for (hint, token) in [("refresh_token", &secrets.refresh), ("access_token", &secrets.access)] {
            let Some(token) = token else { continue };
            let fields = vec![("token", token.expose().as_str()), ("token_type_hint", hint)];
            let outcome = match self.post(&found, url, &app, fields, BodyForm::Form).await {
                Ok(response) => judge_revocation(response).await,
                Err(error) => Some(error.to_string()),
            };
            if let Some(failure) = outcome {
                return Revocation::Failed(format!("{hint}: {failure}"));
            }
        }
        Revocation::Revoked
    }

    /// Fetches the issuer's metadata and reports the entries that are missing for `wants`.
    ///
    /// # Errors
    ///
    /// There is no issuer, it does not answer, or its response is not valid metadata.
    pub async fn examine(&self, wants: &Wants) -> Result<MetadataReport, DiscoveryError> {
        discovery::examine(&self.http, &self.oauth, wants).await
    }

    fn fields<'a>(&'a self, offer: Offer<'a>) -> Vec<(&'a str, &'a str)> {
        match offer {
            Offer::Code { code, verifier } => vec![
                ("grant_type", "authorization_code"),
                ("redirect_uri", self.oauth.redirect_url.as_str()),
                ("code", code.expose()),
                ("code_verifier", verifier.expose()),
            ],
            Offer::RefreshToken { refresh, access } => {
                let mut fields = vec![("grant_type", "refresh_token"), ("refresh_token", refresh.expose())];
                for extra in self.oauth.requests.refresh_sends.iter().flatten() {
                    match extra {
                        RefreshExtra::AccessToken => {
                            fields.extend(access.map(|access| ("access_token", access.expose().as_str())));
                        }
                        RefreshExtra::Scope => fields.extend(self.scope()),
                    }
                }
                fields
            }
            Offer::Application => {
                let mut fields = vec![("grant_type", "client_credentials")];
                fields.extend(self.scope());
                fields
            }
        }
    }

    fn scope(&self) -> Option<(&str, &str)> {
        self.discovery.scope().map(|scope| ("scope", scope))
    }
}

/// Returns the HTTP Basic value of the application. Both parts are form-encoded first (RFC 6749,
/// section 2.3.1), so that a colon does not separate them early.
fn basic(id: &Secret<String>, secret: &Secret<String>) -> HeaderValue {
    let encoded = |text: &str| form(&[("", text)]).trim_start_matches('=').to_owned();
    let both = Secret::new(format!("{}:{}", encoded(id.expose()), encoded(secret.expose())));
    let value = format!("Basic {}", STANDARD.encode(both.expose()));
    let mut value = HeaderValue::try_from(value).expect("base64 fits into a header");
    value.set_sensitive(true);
    value
}

/// Serializes fields as `application/x-www-form-urlencoded`, as defined by the URL standard.
fn form(fields: &[(&str, &str)]) -> String {
    let mut url = Url::parse("http://localhost/").expect("it is one");
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

fn json(fields: &[(&str, &str)]) -> String {
    let members = fields.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
    Value::Object(members.collect::<Map<_, _>>()).to_string()
}

async fn judge(mut response: reqwest::Response) -> TokenExchange {
    let status = response.status();
    let retry_after = response.headers().get(RETRY_AFTER).and_then(retry_after);
    let body = read_limited(&mut response, ANSWER_BYTES_MAX).await;
    let failed = |what: String, outcome_unknown| {
        tracing::debug!(target: "switchback::token", status = status.as_u16(), what, "token endpoint gave nothing usable");
        let is_outage = status.is_server_error();
        TokenExchange::Failed(ExchangeFailure { what, outcome_unknown, is_outage, retry_after })
    };
    let body = match body {
        Ok(body) => body,
        // A client error means that the server rejected the request, so the token is not spent;
        // with any other status that is uncertain.
        Err(what) => return failed(what.to_owned(), status.is_success() || status.is_server_error()),
    };
    if status.is_success() {
        return match tokens_of(&body) {
            Some(tokens) => TokenExchange::Tokens(tokens),
            // Some servers report an error with status 200.
            None => match refusal(status, &body).filter(|refusal| refusal.about != RefusalAbout::Unknown) {
                Some(refusal) => TokenExchange::Refused(refusal),
                None => failed(format!("status {} without tokens", status.as_u16()), true),
            },
        };
    }
    match refusal(status, &body) {
        Some(refusal) if is_final(status, &refusal) => TokenExchange::Refused(refusal),
        refusal => {
            let code = refusal.filter(|refusal| !refusal.code.starts_with("status_"));
            let code = code.map(|refusal| format!(" ({refusal})")).unwrap_or_default();
            failed(format!("status {}{code}", status.as_u16()), status.is_server_error())
        }
    }
}

/// Returns why a revocation failed (RFC 7009, section 2.2), or `None` if it succeeded.
async fn judge_revocation(mut response: reqwest::Response) -> Option<String> {
    let status = response.status();
    if status.is_success() {
        return None;
    }
    let body = read_limited(&mut response, ANSWER_BYTES_MAX).await.unwrap_or_default();
    let code = refusal(status, &body).filter(|refusal| !refusal.code.starts_with("status_"));
    let code = code.map(|refusal| format!(" ({refusal})")).unwrap_or_default();
    Some(format!("status {}{code}", status.as_u16()))
}

/// Returns whether a refusal concerns this client. An overloaded or failing server may send the
/// same error codes with other statuses.
fn is_final(status: http::StatusCode, refusal: &TokenRefusal) -> bool {
    match refusal.about {
        // Rate limits and timeouts are temporary. The grant must not be marked as ended, which
        // would require a person.
        _ if !status.is_client_error() || matches!(status.as_u16(), 408 | 425 | 429) => false,
        RefusalAbout::Grant | RefusalAbout::Application => true,
        // RFC 6749, section 5.2, defines these statuses for errors. Others have other causes, such
        // as a wrong URL.
        RefusalAbout::Unknown => matches!(status.as_u16(), 400 | 401) && !is_passing(&refusal.code),
    }
}

/// Returns whether an error code describes a temporary condition.
fn is_passing(code: &str) -> bool {
    ["temporarily_unavailable", "server_error", "slow_down", "authorization_pending"].contains(&code)
}

/// Parses a refusal from a JSON object. Other bodies, such as an intermediary's error page, are not
/// refusals.
fn refusal(status: http::StatusCode, body: &[u8]) -> Option<TokenRefusal> {
    // Only a JSON object can be the server's own answer.
    let Ok(Value::Object(answer)) = serde_json::from_slice(body) else { return None };
    let code = answer.get("error").and_then(Value::as_str).filter(|code| is_code(code));
    let Some(code) = code else {
        return Some(TokenRefusal {
            code: format!("status_{}", status.as_u16()),
            about: RefusalAbout::Unknown,
        });
    };
    let about = match code {
        "invalid_grant" => RefusalAbout::Grant,
        "invalid_client"
        | "unauthorized_client"
        | "invalid_request"
        | "unsupported_grant_type"
        | "invalid_scope"
        | "invalid_target" => RefusalAbout::Application,
        _ => RefusalAbout::Unknown,
    };
    Some(TokenRefusal { code: code.to_owned(), about })
}

/// Returns whether a text is safe to display as an error code: a short plain word that cannot carry
/// a secret.
pub(super) fn is_code(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.".contains(&byte);
    !text.is_empty() && text.len() <= CODE_BYTES_MAX && text.bytes().all(is_plain)
}

/// Parses a usable token set: the access token must fit into a header and have the type Bearer if a
/// type is given (RFC 6749, section 7.1).
fn tokens_of(body: &[u8]) -> Option<TokenAnswer> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    // A token of another type, such as `mac`, must be used differently (RFC 6749, section 7.1).
    if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return None;
    }
    // Checked here, while the refresh can still fail properly: later, a token that no header can
    // carry would fail each call.
    let access = text("access_token").filter(|token| bearer(token).is_some())?;
    Some(TokenAnswer {
        access: access.into(),
        refresh: text("refresh_token").map(Secret::from),
        lifetime: parse_expires_in(answer.get("expires_in")),
    })
}

/// Returns the `Authorization` value of a bearer token, marked sensitive.
pub(super) fn bearer(token: &str) -> Option<HeaderValue> {
    authorization("Bearer", token)
}

/// Returns a header value with a token after an authentication scheme (RFC 9110, section 11.6.2),
/// or with the token only if the scheme is empty. It is marked sensitive.
pub(super) fn authorization(scheme: &str, token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("{scheme} {token}").trim_start()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use switchback_plan::TokenRequests;

    #[test]
    fn a_refusal_is_about_the_grant_or_the_application_or_unknown() {
        use RefusalAbout::{Application, Grant, Unknown};
        for (status, body, expected) in [
            (400, r#"{"error":"invalid_grant","error_description":"x"}"#, Some(("invalid_grant", Grant))),
            (401, r#"{"error":"invalid_client"}"#, Some(("invalid_client", Application))),
            (400, r#"{"error":"unauthorized_client"}"#, Some(("unauthorized_client", Application))),
            (400, r#"{"error":"invalid_request"}"#, Some(("invalid_request", Application))),
            (400, r#"{"error":"invalid_scope"}"#, Some(("invalid_scope", Application))),
            (400, r#"{"error":"consent_required"}"#, Some(("consent_required", Unknown))),
            (400, r#"{"error":{"code":"invalid_grant"}}"#, Some(("status_400", Unknown))),
            (401, r#"{"reason":"invalid_grant"}"#, Some(("status_401", Unknown))),
            (400, r#"{"error":"<b>Not a word</b>"}"#, Some(("status_400", Unknown))),
            (400, "<html>invalid_grant</html>", None),
            (400, "[]", None),
            (400, "", None),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            let found = refusal(status, body.as_bytes());
            assert_eq!(found.as_ref().map(|found| (found.code.as_str(), found.about)), expected, "{body}");
            assert!(found.is_none_or(|found| is_final(status, &found)), "{body}");
        }
    }

    #[test]
    fn what_may_pass_by_itself_is_no_refusal() {
        for (status, body) in [
            (400, r#"{"error":"temporarily_unavailable"}"#),
            (429, r#"{"error":"invalid_grant"}"#),
            (503, r#"{"error":"invalid_client"}"#),
            (408, r#"{"error":"invalid_request"}"#),
            (404, r#"{"message":"no such page"}"#),
            (403, r#"{"message":"forbidden"}"#),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            let found = refusal(status, body.as_bytes()).expect("a JSON object");
            assert!(!is_final(status, &found), "{status} {body}");
        }
    }

    #[test]
    fn an_application_is_shown_by_basic_with_both_halves_encoded() {
        let shown = basic(&"a:b".into(), &"s p+ü%".into());
        assert!(shown.is_sensitive());
        let decoded = STANDARD.decode(shown.to_str().expect("ASCII").trim_start_matches("Basic "));
        assert_eq!(decoded.expect("base64"), b"a%3Ab:s+p%2B%C3%BC%25");
    }

    #[test]
    fn every_field_that_is_sent_is_one_that_parameters_may_not_have() {
        let url: Url = "https://auth.example/".parse().expect("a URL");
        let sends = vec![RefreshExtra::AccessToken, RefreshExtra::Scope];
        let oauth = OAuth {
            scopes: vec!["all".to_owned()],
            requests: TokenRequests { refresh_sends: Some(sends), ..TokenRequests::default() },
            ..OAuth::at(url.clone(), url.clone(), url)
        };
        let endpoint = TokenEndpoint::new(oauth).expect("https");
        let secret = Secret::from("x");
        let offers = [
            Offer::Code { code: &secret, verifier: &secret },
            Offer::RefreshToken { refresh: &secret, access: Some(&secret) },
            Offer::Application,
        ];
        for (name, _) in offers.into_iter().flat_map(|offer| endpoint.fields(offer)) {
            assert!(TOKEN_FIELDS.contains(&name), "{name}");
        }
    }

    #[tokio::test]
    async fn the_audience_is_the_setting_or_the_issuer_or_the_token_endpoint() {
        let url: Url = "https://auth.example/".parse().expect("a URL");
        let token_url: Url = "https://auth.example/token".parse().expect("a URL");
        let other = "https://other.example".to_owned();
        for (issuer, set, expected) in [
            (None, None, "https://auth.example/token"),
            (Some("https://auth.example"), None, "https://auth.example"),
            (Some("https://auth.example"), Some(other), "https://other.example"),
        ] {
            let oauth = OAuth {
                issuer: issuer.map(str::to_owned),
                assertion_audience: set,
                ..OAuth::at(url.clone(), token_url.clone(), url.clone())
            };
            let endpoint = TokenEndpoint::new(oauth).expect("https");
            let found = endpoint.metadata().await.expect("both addresses are set");
            assert_eq!(endpoint.audience(&found), expected);
        }
    }

    #[test]
    fn a_form_and_a_json_body_say_the_same() {
        let fields = [("grant_type", "refresh_token"), ("refresh_token", "a&b=c\"d")];
        assert_eq!(form(&fields), "grant_type=refresh_token&refresh_token=a%26b%3Dc%22d");
        assert_eq!(json(&fields), r#"{"grant_type":"refresh_token","refresh_token":"a&b=c\"d"}"#);
    }

    #[test]
    fn a_token_that_would_break_out_of_its_header_is_no_token() {
        assert!(tokens_of(b"{\"access_token\":\"a\\r\\nX-Evil: 1\"}").is_none());
        assert!(tokens_of(br#"{"access_token":""}"#).is_none());
        assert!(tokens_of(br#"{"access_token":"a","token_type":"mac"}"#).is_none());
        assert!(tokens_of(br#"{"access_token":"a","token_type":"bearer"}"#).is_some());
    }

    #[test]
    fn a_bearer_header_does_not_show_its_token() {
        assert!(!format!("{:?}", bearer("hunter2")).contains("hunter2"));
    }

    #[test]
    fn clear_text_is_refused_off_loopback() {
        let at = |base: &str| {
            let url = |path: &str| Url::parse(&format!("{base}/{path}")).expect("a URL");
            OAuth::at(url("authorize"), url("token"), url("cb"))
        };
        for fine in ["http://127.0.0.1:9", "http://[::1]:9", "http://localhost:9", "https://auth.example"] {
            assert!(TokenEndpoint::new(at(fine)).is_ok(), "{fine}");
        }
        let refused = TokenEndpoint::new(at("http://auth.example")).map(drop);
        assert_eq!(refused, Err(OAuthConfigError::ClearText("authorize_url")));
        let issuer = OAuth { issuer: Some("http://auth.example".to_owned()), ..at("https://auth.example") };
        assert_eq!(TokenEndpoint::new(issuer).map(drop), Err(OAuthConfigError::ClearText("issuer")));
        let nowhere = OAuth { token_url: None, ..at("https://auth.example") };
        assert_eq!(TokenEndpoint::new(nowhere).map(drop), Err(OAuthConfigError::NoAddress("token_url")));
    }
}
