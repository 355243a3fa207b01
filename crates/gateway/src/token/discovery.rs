//! Where an authorization server's endpoints are, and what it can do: as configured, or as its metadata says (RFC 8414, or
//! OpenID Connect Discovery). Asked once, by whoever needs it first, and again on reload: a server that is down at the start
//! keeps no gateway from starting.

use super::wire::{self, OAuth};
use crate::http_client::HttpClient;
use arc_swap::ArcSwapOption;
use http::{Method, StatusCode, header};
use reqwest::Url;
use serde_json::Value;
use std::sync::Arc;
use switchback_plan::ClientAuth;
use tokio::sync::Mutex;

/// Metadata longer than this is not read on.
const METADATA_BYTES_MAX: usize = 256 * 1024;

/// What is known of an authorization server.
#[derive(Debug)]
pub(super) struct Found {
    pub authorize_url: Option<Url>,
    pub token_url: Url,
    /// Where tokens are revoked (RFC 7009).
    pub revocation_url: Option<Url>,
    /// Who it is, to be compared with what a callback says (RFC 9207).
    pub issuer: Option<String>,
    /// Whether every callback says who it is from.
    pub names_itself: bool,
    /// How the application shows who it is, unless the configuration says so.
    pub client_auth: ClientAuth,
}

#[derive(Debug)]
pub(super) struct Discovery {
    found: ArcSwapOption<Found>,
    /// Held by the one who asks.
    asking: Mutex<()>,
    scope: Option<String>,
    is_needed: bool,
}

impl Discovery {
    pub(super) fn new(oauth: &OAuth) -> Discovery {
        let scope = oauth.scopes.join(" ");
        let found = oauth.token_url.clone().filter(|_| oauth.authorize_url.is_some()).map(|token_url| {
            Arc::new(Found {
                authorize_url: oauth.authorize_url.clone(),
                token_url,
                revocation_url: oauth.revocation_url.clone(),
                issuer: oauth.issuer.clone(),
                names_itself: false,
                client_auth: ClientAuth::Basic,
            })
        });
        Discovery {
            is_needed: found.is_none(),
            found: ArcSwapOption::new(found),
            asking: Mutex::new(()),
            scope: (!scope.is_empty()).then_some(scope),
        }
    }

    /// The scopes as requests carry them.
    pub(super) fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// What is known, asked for where nothing is. The error is for logs.
    pub(super) async fn found(&self, http: &HttpClient, oauth: &OAuth) -> Result<Arc<Found>, String> {
        if let Some(found) = self.found.load_full() {
            return Ok(found);
        }
        let _asking = self.asking.lock().await;
        match self.found.load_full() {
            Some(found) => Ok(found),
            None => self.ask(http, oauth).await,
        }
    }

    /// Asks anew.
    pub(super) async fn again(&self, http: &HttpClient, oauth: &OAuth) -> Result<(), String> {
        if !self.is_needed {
            return Ok(());
        }
        let _asking = self.asking.lock().await;
        self.ask(http, oauth).await.map(drop)
    }

    async fn ask(&self, http: &HttpClient, oauth: &OAuth) -> Result<Arc<Found>, String> {
        let issuer = oauth.issuer.as_deref().ok_or("no issuer to ask for the addresses")?;
        let mut failure = String::new();
        for url in well_known(issuer) {
            match metadata(http, url).await.and_then(|metadata| read(&metadata, issuer, oauth)) {
                Ok(found) => {
                    let found = Arc::new(found);
                    self.found.store(Some(Arc::clone(&found)));
                    return Ok(found);
                }
                Err(what) => failure = what,
            }
        }
        Err(format!("metadata of the issuer: {failure}"))
    }
}

/// Where the metadata may be: RFC 8414, section 3.1, with the well-known part before the issuer's path, and OpenID Connect
/// Discovery, section 4, with it behind.
fn well_known(issuer: &str) -> Vec<Url> {
    let Ok(issuer) = Url::parse(issuer) else { return Vec::new() };
    let path = issuer.path().trim_end_matches('/');
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url
    };
    vec![
        at(format!("/.well-known/oauth-authorization-server{path}")),
        at(format!("{path}/.well-known/openid-configuration")),
    ]
}

async fn metadata(http: &HttpClient, url: Url) -> Result<Value, String> {
    let request = http.request(Method::GET, &url).header(header::ACCEPT, "application/json");
    let mut response = request.send().await.map_err(|error| wire::describe(&error))?;
    let status = response.status();
    if status != StatusCode::OK {
        return Err(format!("status {}", status.as_u16()));
    }
    let body = wire::read(&mut response, METADATA_BYTES_MAX).await?;
    serde_json::from_slice(&body).map_err(|_| "not JSON".to_owned())
}

fn read(metadata: &Value, issuer: &str, oauth: &OAuth) -> Result<Found, String> {
    let text = |name: &str| metadata.get(name).and_then(Value::as_str);
    // Whoever answers for another issuer is not to be believed (RFC 8414, section 3.3).
    if text("issuer") != Some(issuer) {
        return Err("it is of another issuer".to_owned());
    }
    let url = |name: &str| {
        let url = text(name).and_then(|text| Url::parse(text).ok());
        url.filter(|url| url.scheme() == "https" || wire::is_loopback(url))
    };
    let token_url = oauth.token_url.clone().or_else(|| url("token_endpoint"));
    let methods = metadata.get("token_endpoint_auth_methods_supported").and_then(Value::as_array);
    let can = |method: &str| methods.is_none_or(|all| all.iter().any(|one| one.as_str() == Some(method)));
    let client_auth = match () {
        () if can("client_secret_basic") => ClientAuth::Basic,
        () if can("client_secret_post") => ClientAuth::Post,
        () if can("none") => ClientAuth::None,
        () => return Err("it takes none of client_secret_basic, client_secret_post and none".to_owned()),
    };
    let names_itself = metadata.get("authorization_response_iss_parameter_supported");
    Ok(Found {
        authorize_url: oauth.authorize_url.clone().or_else(|| url("authorization_endpoint")),
        token_url: token_url.ok_or("no token_endpoint with https")?,
        revocation_url: oauth.revocation_url.clone().or_else(|| url("revocation_endpoint")),
        issuer: Some(issuer.to_owned()),
        names_itself: names_itself.and_then(Value::as_bool).unwrap_or(false),
        client_auth,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn oauth(issuer: &str) -> OAuth {
        let url: Url = "http://127.0.0.1:1/cb".parse().expect("a URL");
        OAuth {
            issuer: Some(issuer.to_owned()),
            authorize_url: None,
            token_url: None,
            ..OAuth::at(url.clone(), url.clone(), url)
        }
    }

    #[test]
    fn metadata_is_looked_for_where_both_standards_say() {
        let urls = |issuer: &str| well_known(issuer).iter().map(Url::to_string).collect::<Vec<_>>();
        assert_eq!(
            urls("https://auth.example/tenant"),
            [
                "https://auth.example/.well-known/oauth-authorization-server/tenant",
                "https://auth.example/tenant/.well-known/openid-configuration"
            ]
        );
        assert_eq!(
            urls("https://auth.example/"),
            [
                "https://auth.example/.well-known/oauth-authorization-server",
                "https://auth.example/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn metadata_counts_when_it_is_the_issuers_and_names_what_is_needed() {
        let issuer = "https://auth.example";
        let full = json!({
            "issuer": issuer, "token_endpoint": "https://auth.example/t",
            "authorization_endpoint": "https://auth.example/a",
            "token_endpoint_auth_methods_supported": ["private_key_jwt", "client_secret_post"],
            "authorization_response_iss_parameter_supported": true,
        });
        let found = read(&full, issuer, &oauth(issuer)).expect("complete");
        assert_eq!(found.token_url.as_str(), "https://auth.example/t");
        assert_eq!((found.client_auth, found.names_itself), (ClientAuth::Post, true));
        for (name, value) in [
            ("issuer", json!("https://evil.example")),
            ("issuer", json!("https://auth.example/")),
            ("token_endpoint", json!("http://auth.example/t")),
            ("token_endpoint", json!(null)),
            ("token_endpoint_auth_methods_supported", json!(["private_key_jwt"])),
        ] {
            let mut other = full.clone();
            other[name] = value.clone();
            assert!(read(&other, issuer, &oauth(issuer)).is_err(), "{name} {value}");
        }
        let mut bare = full;
        bare.as_object_mut()
            .expect("an object")
            .retain(|name, _| name == "issuer" || name == "token_endpoint");
        let found = read(&bare, issuer, &oauth(issuer)).expect("enough for a refresh");
        assert_eq!((found.client_auth, found.names_itself), (ClientAuth::Basic, false));
    }
}
