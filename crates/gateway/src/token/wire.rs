//! The conversation with the authorization server: one POST per call and a judgement of the answer. Nothing is ever sent twice
//! from here, no redirect is followed, no connection is kept: a refresh token is spent by being received.
//!
//! RFC 6749 (sections 2.3.1, 4.1.3, 4.4, 5, 6) with its form bodies; what a service does otherwise is a setting. Where the
//! addresses are is found out in `discovery`. The `oauth2` crate would do less than this: it takes no JSON bodies, no
//! `expires_in` but a number, no errors but those of the RFC, and says of a failure neither whether the server may have acted
//! nor how long it asked to be left alone.

use super::discovery::{self, Discovery, Found, MetadataReport, Wants};
use super::lifetime::parse_expires_in;
use crate::http_client::HttpClient;
use crate::secret::Secret;
use crate::store::Opened;
use crate::tls::ServiceTls;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method};
use reqwest::Url;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use switchback_plan::{BodyForm, ClientAuth, RefreshExtra, TokenRequests};

/// Answers longer than this are not read on: a token set is a few hundred bytes.
pub(super) const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The longest `Retry-After` that is believed.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// The longest error code that is shown.
const CODE_BYTES_MAX: usize = 64;

/// Fields of a request for tokens that are sent from here; `oauth.parameters` has others.
pub const TOKEN_FIELDS: &[&str] = &[
    "grant_type",
    "client_id",
    "client_secret",
    "redirect_uri",
    "code",
    "code_verifier",
    "refresh_token",
    "access_token",
    "scope",
];

/// Fields of an authorization link that are sent from here; `oauth.authorize_parameters` has others.
pub const AUTHORIZE_FIELDS: &[&str] = &[
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
];

/// Where the authorization server is, and how it wants to be asked.
#[derive(Clone, Debug)]
pub struct OAuth {
    /// Who it is (RFC 8414). Gives the addresses that are not given here.
    pub issuer: Option<String>,
    /// Where a person authorizes the application.
    pub authorize_url: Option<Url>,
    /// Where codes and refresh tokens are exchanged.
    pub token_url: Option<Url>,
    /// Where tokens are revoked (RFC 7009).
    pub revocation_url: Option<Url>,
    /// Our callback, exactly as registered with the application.
    pub redirect_url: Url,
    /// Scopes to ask for.
    pub scopes: Vec<String>,
    /// How long one exchange may take in all.
    pub timeout: Duration,
    /// How it wants to be asked, where not as the RFCs and its metadata say.
    pub requests: TokenRequests,
    /// Names and values that requests for tokens carry besides.
    pub parameters: Vec<(String, String)>,
    /// Names and values that authorization links carry besides.
    pub authorize_parameters: Vec<(String, String)>,
    /// Whether a callback without `state` counts while exactly one authorization is pending.
    pub is_state_optional: bool,
    /// Whom to trust there, and what to show.
    pub tls: ServiceTls,
}

impl OAuth {
    /// A server at these addresses that wants to be asked as the RFCs say.
    pub fn at(authorize_url: Url, token_url: Url, redirect_url: Url) -> OAuth {
        OAuth {
            issuer: None,
            authorize_url: Some(authorize_url),
            token_url: Some(token_url),
            revocation_url: None,
            redirect_url,
            scopes: Vec::new(),
            timeout: Duration::from_secs(10),
            requests: TokenRequests::default(),
            parameters: Vec::new(),
            authorize_parameters: Vec::new(),
            is_state_optional: false,
            tls: ServiceTls::default(),
        }
    }
}

/// Why an [`OAuth`] configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OAuthConfigError {
    /// Secrets would travel in clear text.
    #[error("{0} must be https (http is for loopback only): credentials would travel in clear text")]
    ClearText(&'static str),
    /// Neither given nor to be found out.
    #[error("{0} is missing, and there is no issuer to ask for it")]
    NoAddress(&'static str),
    /// The issuer is no address that metadata could be asked of.
    #[error("the issuer is not a URL without query and fragment (RFC 8414, section 2)")]
    Issuer,
    /// The TLS side could not be set up: a file of its settings, or the system's authorities.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

/// What the application is known as at the authorization server.
#[derive(Clone, Debug)]
pub struct App {
    /// Its id.
    pub id: Secret<String>,
    /// Its secret; empty where it has none.
    pub secret: Secret<String>,
}

/// What is exchanged for tokens.
pub(super) enum Offer<'a> {
    /// A code, and the verifier of the challenge that it was asked for with (RFC 7636).
    Code { code: &'a Secret<String>, verifier: &'a Secret<String> },
    /// A refresh token, and the access token that it came with.
    RefreshToken { refresh: &'a Secret<String>, access: Option<&'a Secret<String>> },
    /// Nothing but the application itself.
    Application,
}

/// The tokens of a successful answer.
#[derive(Debug)]
pub(super) struct TokenAnswer {
    pub access: Secret<String>,
    pub refresh: Option<Secret<String>>,
    pub lifetime: Option<Duration>,
}

/// How an exchange ended.
#[derive(Debug)]
pub(super) enum Exchange {
    /// Tokens.
    Tokens(TokenAnswer),
    /// The server said no, for a reason that another try will not change by itself.
    Refused(Refusal),
    /// Anything else: worth another try later.
    Failed(Failure),
}

/// A no of the authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The error code, or `status_400` and the like where it gave none that can be shown.
    pub code: String,
    /// What it is about.
    pub about: RefusalAbout,
}

/// What a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalAbout {
    /// The code or refresh token: it has ended.
    Grant,
    /// The application or the request: a matter for the operator.
    Application,
    /// The server did not say in words of the RFC.
    Unknown,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code)
    }
}

/// An exchange without a usable answer.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// A short description without anything the server sent, but an error code.
    pub what: String,
    /// Whether the server may have acted on the request, and its answer been lost.
    pub outcome_unknown: bool,
    /// Whether the server could not be reached, or answered with a status of the 500s.
    pub is_outage: bool,
    /// How long the server asked us to stay away.
    pub retry_after: Option<Duration>,
}

/// What became of the tokens of a grant at the authorization server when their client was revoked (RFC 7009).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", content = "error", rename_all = "snake_case")]
pub enum Revocation {
    /// The grant had none.
    NoTokens,
    /// No address is known to revoke them at.
    NoEndpoint,
    /// They are revoked.
    Revoked,
    /// They are not, or not all of them, for this reason.
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

/// A client of the token endpoint; clones share what they have found out.
#[derive(Clone, Debug)]
pub struct Endpoint {
    http: HttpClient,
    oauth: Arc<OAuth>,
    discovery: Arc<Discovery>,
}

impl Endpoint {
    /// Prepares the conversation; connects to nothing yet.
    ///
    /// # Errors
    ///
    /// An address is missing or would have secrets travel in clear text, or its TLS cannot be set up.
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
                Some(url) if url.scheme() != "https" && !is_loopback(url) => {
                    return Err(OAuthConfigError::ClearText(name));
                }
                None if is_needed => return Err(OAuthConfigError::NoAddress(name)),
                _ => {}
            }
        }
        let http = reqwest::Client::builder()
            .pool_max_idle_per_host(0)
            .connect_timeout(oauth.timeout)
            .timeout(oauth.timeout);
        let asked = oauth.token_url.as_ref().or(issuer.as_ref());
        let asked = asked.ok_or(OAuthConfigError::NoAddress("token_url"))?;
        let http = HttpClient::new(http, asked, &oauth.tls)
            .map_err(|error| OAuthConfigError::Tls(error.to_string()))?;
        let discovery = Arc::new(Discovery::new(&oauth));
        Ok(Endpoint { http, oauth: Arc::new(oauth), discovery })
    }

    /// How it is configured.
    pub fn oauth(&self) -> &OAuth {
        &self.oauth
    }

    /// What is known of the server, asked of it where that has not been done.
    pub(super) async fn found(&self) -> Result<Arc<Found>, String> {
        self.discovery.found(&self.http, &self.oauth).await
    }

    /// Asks the server for its metadata anew, where that is where its addresses are from. What was known before serves until
    /// there is an answer, and goes on to where there is none.
    pub async fn discover(&self) {
        if let Err(what) = self.discovery.again(&self.http, &self.oauth).await {
            let issuer = self.oauth.issuer.as_deref().unwrap_or_default();
            tracing::warn!(target: "switchback::token", issuer, what, "the authorization server's metadata was not read");
        }
    }

    /// Sends one exchange and judges the answer. Not cancel-safe in effect: dropped after sending, the answer is lost; callers
    /// run it in a task of its own.
    pub(super) async fn exchange(&self, app: &App, offer: Offer<'_>) -> Exchange {
        let found = match self.found().await {
            Ok(found) => found,
            Err(what) => {
                return Exchange::Failed(Failure {
                    what,
                    outcome_unknown: false,
                    is_outage: false,
                    retry_after: None,
                });
            }
        };
        let mut fields = self.fields(offer);
        fields.extend(self.oauth.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let body = self.oauth.requests.body.unwrap_or(BodyForm::Form);
        match self.post(&found, &found.token_url, app, fields, body).await {
            Ok(response) => judge(response).await,
            Err(error) => Exchange::Failed(Failure {
                outcome_unknown: !error.is_connect() && !error.is_builder(),
                is_outage: error.is_connect(),
                what: describe(&error),
                retry_after: None,
            }),
        }
    }

    /// Posts fields together with what shows the application.
    async fn post(
        &self,
        found: &Found,
        url: &Url,
        app: &App,
        mut fields: Vec<(&str, &str)>,
        body: BodyForm,
    ) -> reqwest::Result<reqwest::Response> {
        let mut request = self.http.request(Method::POST, url).header(ACCEPT, "application/json");
        match self.oauth.requests.client_auth.unwrap_or(found.client_auth) {
            ClientAuth::Basic => request = request.header(AUTHORIZATION, basic(app)),
            ClientAuth::Post => {
                fields.push(("client_id", app.id.expose()));
                fields.push(("client_secret", app.secret.expose()));
            }
            ClientAuth::None => fields.push(("client_id", app.id.expose())),
        }
        let (kind, body) = match body {
            BodyForm::Form => ("application/x-www-form-urlencoded", form(&fields)),
            BodyForm::Json => ("application/json", json(&fields)),
        };
        // Not followed by `Secret`: the client takes the bytes. They are gone with the call.
        request.header(CONTENT_TYPE, kind).body(body).send().await
    }

    /// Revokes the tokens of a grant, the refresh token first: with it most servers end the access token too, and none can be
    /// fetched anew. The form is that of RFC 7009, whatever the form of requests for tokens.
    pub(super) async fn revoke(&self, secrets: &Opened) -> Revocation {
        let (Some(id), Some(secret)) = (&secrets.app_id, &secrets.app_secret) else {
            return Revocation::Failed("the grant has no application".to_owned());
        };
        let app = App { id: id.clone(), secret: secret.clone() };
        let found = match self.found().await {
            Ok(found) => found,
            Err(what) => return Revocation::Failed(what),
        };
        let Some(url) = &found.revocation_url else { return Revocation::NoEndpoint };
        for (hint, token) in [("refresh_token", &secrets.refresh), ("access_token", &secrets.access)] {
            let Some(token) = token else { continue };
            let fields = vec![("token", token.expose().as_str()), ("token_type_hint", hint)];
            let outcome = match self.post(&found, url, &app, fields, BodyForm::Form).await {
                Ok(response) => judge_revocation(response).await,
                Err(error) => Err(describe(&error)),
            };
            if let Err(what) = outcome {
                return Revocation::Failed(format!("{hint}: {what}"));
            }
        }
        Revocation::Revoked
    }

    /// Reads the issuer's metadata and reports what they lack for `wants`. The error says why there are none.
    ///
    /// # Errors
    ///
    /// There is no issuer, it does not answer, or what it answers is not its metadata.
    pub async fn examine(&self, wants: Wants) -> Result<MetadataReport, String> {
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

/// The application by HTTP Basic. Both halves are encoded as in a form first (RFC 6749, section 2.3.1), so that a colon in one
/// does not end it.
fn basic(app: &App) -> HeaderValue {
    let encoded = |text: &str| form(&[("", text)]).trim_start_matches('=').to_owned();
    let both = Secret::new(format!("{}:{}", encoded(app.id.expose()), encoded(app.secret.expose())));
    let value = format!("Basic {}", STANDARD.encode(both.expose()));
    let mut value = HeaderValue::try_from(value).expect("base64 fits into a header");
    value.set_sensitive(true);
    value
}

/// `application/x-www-form-urlencoded`, as the URL standard writes queries.
fn form(fields: &[(&str, &str)]) -> String {
    let mut url = Url::parse("http://localhost/").expect("it is one");
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

fn json(fields: &[(&str, &str)]) -> String {
    let members = fields.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
    Value::Object(members.collect::<Map<_, _>>()).to_string()
}

pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

pub(super) fn describe(error: &reqwest::Error) -> String {
    let what = if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "cannot connect"
    } else {
        "connection lost"
    };
    what.to_owned()
}

async fn judge(mut response: reqwest::Response) -> Exchange {
    let status = response.status();
    let retry_after = response.headers().get(RETRY_AFTER).and_then(retry_after);
    let body = read(&mut response, ANSWER_BYTES_MAX).await;
    let failed = |what: String, outcome_unknown| {
        tracing::debug!(target: "switchback::token", status = status.as_u16(), what, "token endpoint gave nothing usable");
        let is_outage = status.is_server_error();
        Exchange::Failed(Failure { what, outcome_unknown, is_outage, retry_after })
    };
    let body = match body {
        Ok(body) => body,
        Err(what) => return failed(what.to_owned(), status.is_success() || status.is_server_error()),
    };
    if status.is_success() {
        return match tokens_of(&body) {
            Some(tokens) => Exchange::Tokens(tokens),
            // Some servers say no with status 200.
            None => match refusal(status, &body).filter(|refusal| refusal.about != RefusalAbout::Unknown) {
                Some(refusal) => Exchange::Refused(refusal),
                None => failed(format!("status {} without tokens", status.as_u16()), true),
            },
        };
    }
    match refusal(status, &body) {
        Some(refusal) if is_final(status, &refusal) => Exchange::Refused(refusal),
        refusal => {
            let code = refusal.filter(|refusal| !refusal.code.starts_with("status_"));
            let code = code.map(|refusal| format!(" ({refusal})")).unwrap_or_default();
            failed(format!("status {}{code}", status.as_u16()), status.is_server_error())
        }
    }
}

/// Reads the answer to a revocation (RFC 7009, section 2.2).
async fn judge_revocation(mut response: reqwest::Response) -> Result<(), String> {
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let body = read(&mut response, ANSWER_BYTES_MAX).await.unwrap_or_default();
    let code = refusal(status, &body).filter(|refusal| !refusal.code.starts_with("status_"));
    let code = code.map(|refusal| format!(" ({refusal})")).unwrap_or_default();
    Err(format!("status {}{code}", status.as_u16()))
}

/// Whether what a server says with this status is about us. It may say the words of a refusal while it cannot work, or has had
/// too much work.
fn is_final(status: http::StatusCode, refusal: &Refusal) -> bool {
    match refusal.about {
        _ if !status.is_client_error() || matches!(status.as_u16(), 408 | 425 | 429) => false,
        RefusalAbout::Grant | RefusalAbout::Application => true,
        // The statuses that RFC 6749, section 5.2 gives to errors; others come from elsewhere, a wrong address for example.
        RefusalAbout::Unknown => matches!(status.as_u16(), 400 | 401) && !is_passing(&refusal.code),
    }
}

/// Error codes that say "later".
fn is_passing(code: &str) -> bool {
    ["temporarily_unavailable", "server_error", "slow_down", "authorization_pending"].contains(&code)
}

/// What a body says of a refusal, if it is a JSON object: an error page of something in between says nothing about us.
fn refusal(status: http::StatusCode, body: &[u8]) -> Option<Refusal> {
    let Ok(Value::Object(answer)) = serde_json::from_slice(body) else { return None };
    let code = answer.get("error").and_then(Value::as_str).filter(|code| is_code(code));
    let Some(code) = code else {
        return Some(Refusal { code: format!("status_{}", status.as_u16()), about: RefusalAbout::Unknown });
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
    Some(Refusal { code: code.to_owned(), about })
}

/// Whether a text is fit to be shown as an error code: a plain word, and not the place for a secret.
pub(super) fn is_code(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.".contains(&byte);
    !text.is_empty() && text.len() <= CODE_BYTES_MAX && text.bytes().all(is_plain)
}

pub(super) async fn read(
    response: &mut reqwest::Response,
    bytes_max: usize,
) -> Result<Vec<u8>, &'static str> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| "answer cut short")? {
        if body.len() + chunk.len() > bytes_max {
            return Err("answer too long");
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// A usable token set: an access token that fits into a header, of type Bearer where a type is given (RFC 6749 §7.1).
fn tokens_of(body: &[u8]) -> Option<TokenAnswer> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return None;
    }
    let access = text("access_token").filter(|token| bearer(token).is_some())?;
    Some(TokenAnswer {
        access: access.into(),
        refresh: text("refresh_token").map(Secret::from),
        lifetime: parse_expires_in(answer.get("expires_in")),
    })
}

/// The value of the `Authorization` header for a token, hidden from header dumps.
pub(super) fn bearer(token: &str) -> Option<HeaderValue> {
    authorization("Bearer", token)
}

/// A token under an authentication scheme (RFC 9110, section 11.6.2), or alone where that is empty, marked sensitive.
pub(super) fn authorization(scheme: &str, token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("{scheme} {token}").trim_start()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Reads `Retry-After` (RFC 9110 §10.2.3): seconds or a date.
fn retry_after(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    let wait = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).ok()?,
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

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
        let app = App { id: "a:b".into(), secret: "s p+ü%".into() };
        let shown = basic(&app);
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
        let endpoint = Endpoint::new(oauth).expect("https");
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
            assert!(Endpoint::new(at(fine)).is_ok(), "{fine}");
        }
        let refused = Endpoint::new(at("http://auth.example")).map(drop);
        assert_eq!(refused, Err(OAuthConfigError::ClearText("authorize_url")));
        let issuer = OAuth { issuer: Some("http://auth.example".to_owned()), ..at("https://auth.example") };
        assert_eq!(Endpoint::new(issuer).map(drop), Err(OAuthConfigError::ClearText("issuer")));
        let nowhere = OAuth { token_url: None, ..at("https://auth.example") };
        assert_eq!(Endpoint::new(nowhere).map(drop), Err(OAuthConfigError::NoAddress("token_url")));
    }
}
