//! The conversation with the authorization server: one POST per call, a JSON body, and a judgement of the answer. Nothing is
//! ever sent twice from here, no redirect is followed, no connection is kept: a refresh token is spent by being received.
//!
//! RFC 6749 §4.1.3, §5, §6; bodies are JSON, as the service documents its token endpoint.

use super::lifetime::parse_expires_in;
use crate::secret::Secret;
use http::HeaderValue;
use reqwest::Url;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// Answers longer than this are not read on: a token set is a few hundred bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The longest `Retry-After` that is believed.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);

/// Addresses of the authorization server, and what to ask it for.
#[derive(Clone, Debug)]
pub struct OAuth {
    /// Where a person authorizes the application.
    pub authorize_url: Url,
    /// Where codes and refresh tokens are exchanged.
    pub token_url: Url,
    /// Our callback, exactly as registered with the application.
    pub redirect_url: Url,
    /// Scopes to ask for.
    pub scopes: Vec<String>,
    /// How long one exchange may take in all.
    pub timeout: Duration,
}

/// Why an [`OAuth`] configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OAuthConfigError {
    /// Secrets would travel in clear text.
    #[error("{0} must be https (http is for loopback only): credentials would travel in clear text")]
    ClearText(&'static str),
    /// The TLS side could not be set up, for want of usable root certificates most likely.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

/// What the application is known as at the authorization server.
#[derive(Clone, Debug)]
pub struct App {
    /// Its id.
    pub id: Secret<String>,
    /// Its secret.
    pub secret: Secret<String>,
}

/// What is exchanged for tokens.
pub(super) enum Offer<'a> {
    Code(&'a Secret<String>),
    RefreshToken(&'a Secret<String>),
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
    /// The server said no in the words of RFC 6749 §5.2, for good.
    Refused(&'static str),
    /// Anything else: worth another try later.
    Failed(Failure),
}

/// An exchange without a usable answer.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// A short description without anything the server sent.
    pub what: String,
    /// Whether the server may have acted on the request, and its answer been lost.
    pub outcome_unknown: bool,
    /// How long the server asked us to stay away.
    pub retry_after: Option<Duration>,
}

/// A client of the token endpoint.
#[derive(Clone, Debug)]
pub struct Endpoint {
    http: reqwest::Client,
    oauth: OAuth,
}

impl Endpoint {
    /// Prepares the conversation; connects to nothing yet.
    pub fn new(oauth: OAuth) -> Result<Self, OAuthConfigError> {
        for (name, url) in [("authorize_url", &oauth.authorize_url), ("token_url", &oauth.token_url)] {
            if url.scheme() != "https" && !is_loopback(url) {
                return Err(OAuthConfigError::ClearText(name));
            }
        }
        // The one provider this program is built with; whoever comes first installs it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(0)
            .connect_timeout(oauth.timeout)
            .timeout(oauth.timeout)
            .user_agent(concat!("switchback/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&oauth.token_url) {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| OAuthConfigError::Tls(error.without_url().to_string()))?;
        Ok(Endpoint { http, oauth })
    }

    /// The addresses this talks to.
    pub fn oauth(&self) -> &OAuth {
        &self.oauth
    }

    /// Sends one exchange and judges the answer. Not cancel-safe in effect: dropped after sending, the answer is lost; callers
    /// run it in a task of its own.
    pub(super) async fn exchange(&self, app: &App, offer: Offer<'_>) -> Exchange {
        let mut body = json!({ "client_id": app.id.expose(), "client_secret": app.secret.expose() });
        match offer {
            Offer::Code(code) => {
                body["grant_type"] = "authorization_code".into();
                body["redirect_uri"] = self.oauth.redirect_url.as_str().into();
                body["code"] = code.expose().as_str().into();
            }
            Offer::RefreshToken(token) => {
                body["grant_type"] = "refresh_token".into();
                body["refresh_token"] = token.expose().as_str().into();
            }
        }
        let request = self
            .http
            .post(self.oauth.token_url.clone())
            .header(http::header::ACCEPT, "application/json")
            .json(&body);
        match request.send().await {
            Ok(response) => judge(response).await,
            Err(error) => Exchange::Failed(Failure {
                outcome_unknown: !error.is_connect() && !error.is_builder(),
                what: describe(&error),
                retry_after: None,
            }),
        }
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

fn describe(error: &reqwest::Error) -> String {
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
    let retry_after = response.headers().get(http::header::RETRY_AFTER).and_then(retry_after);
    let body = read(&mut response).await;
    let failed = |what: String, outcome_unknown| {
        tracing::debug!(target: "switchback::token", status = status.as_u16(), what, "token endpoint gave nothing usable");
        Exchange::Failed(Failure { what, outcome_unknown, retry_after })
    };
    if status.is_success() {
        return match body.as_deref().map(tokens_of) {
            Ok(Some(tokens)) => Exchange::Tokens(tokens),
            Ok(None) => failed(format!("status {} without tokens", status.as_u16()), true),
            Err(what) => failed((*what).to_owned(), true),
        };
    }
    let code = body.ok().as_deref().and_then(fatal_code);
    match code {
        Some(code) if status.is_client_error() && status != http::StatusCode::TOO_MANY_REQUESTS => {
            Exchange::Refused(code)
        }
        _ => failed(format!("status {}", status.as_u16()), status.is_server_error()),
    }
}

async fn read(response: &mut reqwest::Response) -> Result<Vec<u8>, &'static str> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| "answer cut short")? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
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

/// A token under an authentication scheme (RFC 9110, section 11.6.2), marked sensitive.
pub(super) fn authorization(scheme: &str, token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("{scheme} {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The codes of RFC 6749 §5.2 that end a grant. The others (`invalid_request`, `unsupported_grant_type`, `invalid_scope`) blame
/// our request, which connecting again would not change.
fn fatal_code(body: &[u8]) -> Option<&'static str> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let code = answer.get("error")?.as_str()?;
    ["invalid_grant", "invalid_client", "unauthorized_client"].into_iter().find(|fatal| *fatal == code)
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

    #[test]
    fn only_the_codes_that_end_a_grant_are_fatal() {
        for (body, fatal) in [
            (r#"{"error":"invalid_grant","error_description":"x"}"#, Some("invalid_grant")),
            (r#"{"error":"invalid_client"}"#, Some("invalid_client")),
            (r#"{"error":"unauthorized_client"}"#, Some("unauthorized_client")),
            (r#"{"error":"invalid_request"}"#, None),
            (r#"{"error":"temporarily_unavailable"}"#, None),
            (r#"{"error":{"code":"invalid_grant"}}"#, None),
            (r#"{"reason":"invalid_grant"}"#, None),
            ("<html>invalid_grant</html>", None),
            ("", None),
        ] {
            assert_eq!(fatal_code(body.as_bytes()), fatal, "{body}");
        }
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
        let oauth = |base: &str| OAuth {
            authorize_url: Url::parse(&format!("{base}/authorize")).expect("a URL"),
            token_url: Url::parse(&format!("{base}/token")).expect("a URL"),
            redirect_url: Url::parse("http://127.0.0.1:1/cb").expect("a URL"),
            scopes: Vec::new(),
            timeout: Duration::from_secs(1),
        };
        for fine in ["http://127.0.0.1:9", "http://[::1]:9", "http://localhost:9", "https://auth.example"] {
            assert!(Endpoint::new(oauth(fine)).is_ok(), "{fine}");
        }
        let refused = Endpoint::new(oauth("http://auth.example")).map(drop);
        assert_eq!(refused, Err(OAuthConfigError::ClearText("authorize_url")));
    }
}
