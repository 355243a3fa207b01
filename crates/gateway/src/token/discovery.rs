//! Addresses and capabilities of an authorization server, from the configuration or its metadata
//! (RFC 8414, or OpenID Connect Discovery). The first caller that needs the metadata fetches them,
//! and a reload fetches them again, so the gateway starts even while the server is down.

use super::oauth::OAuth;
use crate::http_client::{HttpClient, describe, is_loopback, read_limited};
use arc_swap::ArcSwapOption;
use http::{Method, StatusCode, header};
use reqwest::Url;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use switchback_plan::ClientAuth;
use tokio::sync::Mutex;

/// Longest metadata document that is read.
const METADATA_BYTES_MAX: usize = 256 * 1024;
/// Longest issuer URL that is included in an error.
const ISSUER_BYTES_MAX: usize = 200;

/// Why a metadata document cannot be used. The texts are for logs and reports.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// The request failed.
    #[error("{}", describe(.0))]
    Request(#[from] reqwest::Error),
    /// The status is not 200.
    #[error("status {0}")]
    Status(u16),
    /// The response is too long or incomplete.
    #[error("{0}")]
    Body(&'static str),
    /// The response is not JSON.
    #[error("not JSON")]
    NotJson,
    /// The document names another issuer. It is included if it contains no secret: usually the only
    /// difference is a slash at the end.
    #[error("it is of another issuer{} (RFC 8414, section 3.3)", .0.as_ref().map(|issuer| format!(", `{issuer}`")).unwrap_or_default())]
    OtherIssuer(Option<String>),
    /// The server supports no method that authenticates the application.
    #[error("it takes none of client_secret_basic, client_secret_post, none and private_key_jwt")]
    NoClientAuth,
    /// There is no token endpoint that is safe to send secrets to.
    #[error("no token_endpoint with https")]
    NoTokenEndpoint,
}

/// Why an authorization server's metadata cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The configuration names no issuer.
    #[error("no issuer to ask for the addresses")]
    NoIssuer,
    /// No address has usable metadata. Contains the error of the last one.
    #[error("metadata of the issuer: {}", .0.as_ref().map(ToString::to_string).unwrap_or_default())]
    Unusable(Option<MetadataError>),
    /// No address has readable metadata. Contains the path and the error of each.
    #[error("its metadata cannot be read ({})", .0.iter().map(|(path, error)| format!("{path}: {error}")).collect::<Vec<_>>().join("; "))]
    Unreadable(Vec<(String, MetadataError)>),
}

/// Addresses and capabilities of an authorization server.
#[derive(Debug)]
pub(super) struct ServerMetadata {
    pub authorize_url: Option<Url>,
    pub token_url: Url,
    /// The revocation endpoint (RFC 7009).
    pub revocation_url: Option<Url>,
    /// The issuer, to compare with the `iss` parameter of a callback (RFC 9207).
    pub issuer: Option<String>,
    /// Whether every callback has an `iss` parameter.
    pub names_itself: bool,
    /// The method that authenticates an application with a secret, unless the configuration sets one;
    /// `PrivateKeyJwt` if the server supports no other.
    pub client_auth: ClientAuth,
}

#[derive(Debug)]
pub(super) struct Discovery {
    found: ArcSwapOption<ServerMetadata>,
    /// Serializes fetches of the metadata.
    asking: Mutex<()>,
    scope: Option<String>,
    is_needed: bool,
}

impl Discovery {
    pub(super) fn new(oauth: &OAuth) -> Discovery {
        let scope = oauth.scopes.join(" ");
        let found = oauth.token_url.clone().filter(|_| oauth.authorize_url.is_some()).map(|token_url| {
            Arc::new(ServerMetadata {
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

    /// Returns the scopes, joined as in requests.
    pub(super) fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// Returns the server's addresses and fetches the metadata if they are missing.
    pub(super) async fn metadata(
        &self,
        http: &HttpClient,
        oauth: &OAuth,
    ) -> Result<Arc<ServerMetadata>, DiscoveryError> {
        if let Some(found) = self.found.load_full() {
            return Ok(found);
        }
        let _asking = self.asking.lock().await;
        // Checked again under the lock: the caller before may have fetched it.
        match self.found.load_full() {
            Some(found) => Ok(found),
            None => self.ask(http, oauth).await,
        }
    }

    /// Fetches the metadata again.
    pub(super) async fn refetch(&self, http: &HttpClient, oauth: &OAuth) -> Result<(), DiscoveryError> {
        if !self.is_needed {
            return Ok(());
        }
        let _asking = self.asking.lock().await;
        self.ask(http, oauth).await.map(drop)
    }

    async fn ask(&self, http: &HttpClient, oauth: &OAuth) -> Result<Arc<ServerMetadata>, DiscoveryError> {
        let issuer = oauth.issuer.as_deref().ok_or(DiscoveryError::NoIssuer)?;
        let mut last = None;
        for url in well_known(issuer) {
            match metadata(http, url).await.and_then(|metadata| parse_metadata(&metadata, issuer, oauth)) {
                Ok(found) => {
                    let found = Arc::new(found);
                    self.found.store(Some(Arc::clone(&found)));
                    return Ok(found);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(DiscoveryError::Unusable(last))
    }
}

/// Returns the possible metadata URLs: RFC 8414, section 3.1, inserts the well-known part before
/// the issuer's path, and OpenID Connect Discovery, section 4, appends it.
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

async fn metadata(http: &HttpClient, url: Url) -> Result<Value, MetadataError> {
    let request = http.request(Method::GET, &url).header(header::ACCEPT, "application/json");
    let mut response = request.send().await?;
    let status = response.status();
    if status != StatusCode::OK {
        return Err(MetadataError::Status(status.as_u16()));
    }
    let body = read_limited(&mut response, METADATA_BYTES_MAX).await.map_err(MetadataError::Body)?;
    serde_json::from_slice(&body).map_err(|_| MetadataError::NotJson)
}

fn parse_metadata(metadata: &Value, issuer: &str, oauth: &OAuth) -> Result<ServerMetadata, MetadataError> {
    check_issuer(metadata, issuer)?;
    let url = |name: &str| address(metadata, name);
    let token_url = oauth.token_url.clone().or_else(|| url("token_endpoint"));
    let methods = metadata.get("token_endpoint_auth_methods_supported").and_then(Value::as_array);
    let can = |method: &str| methods.is_none_or(|all| all.iter().any(|one| one.as_str() == Some(method)));
    let client_auth = match () {
        () if can("client_secret_basic") => ClientAuth::Basic,
        () if can("client_secret_post") => ClientAuth::Post,
        () if can("none") => ClientAuth::None,
        () if can(KEY_METHOD) => ClientAuth::PrivateKeyJwt,
        () => return Err(MetadataError::NoClientAuth),
    };
    let names_itself = metadata.get("authorization_response_iss_parameter_supported");
    Ok(ServerMetadata {
        authorize_url: oauth.authorize_url.clone().or_else(|| url("authorization_endpoint")),
        token_url: token_url.ok_or(MetadataError::NoTokenEndpoint)?,
        revocation_url: oauth.revocation_url.clone().or_else(|| url("revocation_endpoint")),
        issuer: Some(issuer.to_owned()),
        names_itself: names_itself.and_then(Value::as_bool).unwrap_or(false),
        client_auth,
    })
}

/// Rejects metadata of another issuer (RFC 8414, section 3.3).
fn check_issuer(metadata: &Value, issuer: &str) -> Result<(), MetadataError> {
    let named = metadata.get("issuer").and_then(Value::as_str);
    if named == Some(issuer) {
        return Ok(());
    }
    let is_plain = |url: &Url| url.username().is_empty() && url.password().is_none() && url.query().is_none();
    let is_shown =
        |named: &&str| named.len() <= ISSUER_BYTES_MAX && Url::parse(named).is_ok_and(|url| is_plain(&url));
    Err(MetadataError::OtherIssuer(named.filter(is_shown).map(str::to_owned)))
}

/// Returns the URL under this name in the metadata, if it is safe to send secrets to.
fn address(metadata: &Value, name: &str) -> Option<Url> {
    let url = metadata.get(name).and_then(Value::as_str).and_then(|text| Url::parse(text).ok());
    // Metadata are fetched from the network, so an address in them must not lower the protection of
    // secrets.
    url.filter(|url| url.scheme() == "https" || is_loopback(url.host_str()))
}

/// The grant types and authentication methods that clients use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wants {
    /// The authorization code flow with refresh tokens.
    pub authorization_code: bool,
    /// The client credentials flow.
    pub client_credentials: bool,
    /// Whether some application has a secret, or is public.
    pub secrets: bool,
    /// The JWS algorithms of the applications' private keys.
    pub key_algorithms: BTreeSet<&'static str>,
}

/// Problems in the metadata of an authorization server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataReport {
    /// Problems that prevent some clients from obtaining tokens.
    pub errors: Vec<String>,
    /// Problems that do not prevent obtaining tokens.
    pub warnings: Vec<String>,
}

/// Fetches the metadata and reports their problems.
pub(super) async fn examine(
    http: &HttpClient,
    oauth: &OAuth,
    wants: &Wants,
) -> Result<MetadataReport, DiscoveryError> {
    let issuer = oauth.issuer.as_deref().ok_or(DiscoveryError::NoIssuer)?;
    let mut failures = Vec::new();
    for url in well_known(issuer) {
        let read = metadata(http, url.clone()).await;
        match read.and_then(|metadata| check_issuer(&metadata, issuer).map(|()| metadata)) {
            Ok(metadata) => return Ok(report(&metadata, oauth, wants)),
            Err(error) => failures.push((url.path().to_owned(), error)),
        }
    }
    Err(DiscoveryError::Unreadable(failures))
}

/// Reports what metadata lack according to RFC 8414, section 2. An absent list has a default,
/// except that of PKCE methods: without it the server does not support PKCE, and ignores the
/// parameters.
fn report(metadata: &Value, oauth: &OAuth, wants: &Wants) -> MetadataReport {
    let mut report = MetadataReport::default();
    let errors = &mut report.errors;
    if oauth.token_url.is_none() && address(metadata, "token_endpoint").is_none() {
        errors.push("the metadata have no `token_endpoint` with https; set `oauth.token_url`".to_owned());
    }
    let has_authorize_url =
        oauth.authorize_url.is_some() || address(metadata, "authorization_endpoint").is_some();
    if wants.authorization_code && !has_authorize_url {
        errors.push(
            "the metadata have no `authorization_endpoint` with https; set `oauth.authorize_url`".to_owned(),
        );
    }
    let lacks = |list: &str, word: &str| {
        let listed = metadata.get(list).and_then(Value::as_array);
        listed.is_some_and(|listed| !listed.iter().any(|one| one.as_str() == Some(word)))
    };
    let grants = [
        ("authorization_code", wants.authorization_code),
        ("refresh_token", wants.authorization_code),
        ("client_credentials", wants.client_credentials),
    ];
    for (grant, _) in
        grants.into_iter().filter(|(grant, is_wanted)| *is_wanted && lacks("grant_types_supported", grant))
    {
        errors.push(format!("`grant_types_supported` lacks `{grant}`"));
    }
    const METHODS: &str = "token_endpoint_auth_methods_supported";
    match oauth.requests.client_auth.map(auth_method).filter(|_| wants.secrets) {
        Some(method) if lacks(METHODS, method) => {
            errors.push(format!("`{METHODS}` lacks `{method}`, which `oauth.client_auth` or the pack wants"));
        }
        None if wants.secrets && SECRET_METHODS.iter().all(|method| lacks(METHODS, method)) => {
            errors.push(format!("`{METHODS}` has none of `{}`", SECRET_METHODS.join("`, `")));
        }
        _ => {}
    }
    if !wants.key_algorithms.is_empty() && lacks(METHODS, KEY_METHOD) {
        errors.push(format!("`{METHODS}` lacks `{KEY_METHOD}`, which the `client_key` of a client needs"));
    }
    const ALGORITHMS: &str = "token_endpoint_auth_signing_alg_values_supported";
    for algorithm in wants.key_algorithms.iter().filter(|algorithm| lacks(ALGORITHMS, algorithm)) {
        errors.push(format!("`{ALGORITHMS}` lacks `{algorithm}`, the algorithm of a client's `client_key`"));
    }
    const CHALLENGES: &str = "code_challenge_methods_supported";
    if wants.authorization_code && lacks(CHALLENGES, "S256") {
        errors.push(format!("`{CHALLENGES}` lacks `S256`, the method of every link (PKCE)"));
    } else if wants.authorization_code && metadata.get(CHALLENGES).and_then(Value::as_array).is_none() {
        let warning =
            format!("the metadata have no `{CHALLENGES}`: codes are not bound to their link (PKCE)");
        report.warnings.push(warning);
    }
    report
}

/// Methods that authenticate an application without a key, in order of preference.
const SECRET_METHODS: [&str; 3] = ["client_secret_basic", "client_secret_post", "none"];
/// The method that authenticates an application with a key.
const KEY_METHOD: &str = "private_key_jwt";

fn auth_method(auth: ClientAuth) -> &'static str {
    match auth {
        ClientAuth::Basic => SECRET_METHODS[0],
        ClientAuth::Post => SECRET_METHODS[1],
        ClientAuth::None => SECRET_METHODS[2],
        ClientAuth::PrivateKeyJwt => KEY_METHOD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_names_all_that_metadata_lack() {
        let issuer = "https://auth.example";
        let both = Wants {
            authorization_code: true,
            client_credentials: true,
            secrets: true,
            key_algorithms: BTreeSet::from(["ES256"]),
        };
        let full = json!({
            "issuer": issuer, "token_endpoint": "https://auth.example/t",
            "authorization_endpoint": "https://auth.example/a",
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "code_challenge_methods_supported": ["plain", "S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"],
        });
        assert_eq!(report(&full, &oauth(issuer), &both), MetadataReport::default());
        for (name, value, wanted) in [
            ("token_endpoint", json!("http://auth.example/t"), "`token_endpoint`"),
            ("authorization_endpoint", json!(null), "`authorization_endpoint`"),
            ("grant_types_supported", json!(["authorization_code", "client_credentials"]), "`refresh_token`"),
            ("grant_types_supported", json!(["authorization_code", "refresh_token"]), "`client_credentials`"),
            ("code_challenge_methods_supported", json!(["plain"]), "`S256`"),
            ("token_endpoint_auth_methods_supported", json!(["private_key_jwt"]), "`client_secret_basic`"),
            ("token_endpoint_auth_methods_supported", json!(["client_secret_post"]), "`private_key_jwt`"),
            ("token_endpoint_auth_signing_alg_values_supported", json!(["RS256"]), "`ES256`"),
        ] {
            let mut other = full.clone();
            other[name] = value;
            let found = report(&other, &oauth(issuer), &both);
            assert!(matches!(&found.errors[..], [one] if one.contains(wanted)), "{name}: {found:?}");
            assert_eq!(found.warnings, [""; 0]);
        }
        let bare = json!({"issuer": issuer, "token_endpoint": "https://auth.example/t"});
        let machines = Wants { authorization_code: false, ..both.clone() };
        assert_eq!(report(&bare, &oauth(issuer), &machines), MetadataReport::default());
        let found = report(&bare, &oauth(issuer), &both);
        assert_eq!((found.errors.len(), found.warnings.len()), (1, 1), "{found:?}");
        assert!(
            check_issuer(&json!({"issuer": "https://auth.example/"}), issuer)
                .unwrap_err()
                .to_string()
                .contains("`https://auth.example/`")
        );
        assert!(
            !check_issuer(&json!({"issuer": "https://u:p@auth.example"}), issuer)
                .unwrap_err()
                .to_string()
                .contains("u:p")
        );
    }

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
        let found = parse_metadata(&full, issuer, &oauth(issuer)).expect("complete");
        assert_eq!(found.token_url.as_str(), "https://auth.example/t");
        assert_eq!((found.client_auth, found.names_itself), (ClientAuth::Post, true));
        for (name, value) in [
            ("issuer", json!("https://evil.example")),
            ("issuer", json!("https://auth.example/")),
            ("token_endpoint", json!("http://auth.example/t")),
            ("token_endpoint", json!(null)),
            ("token_endpoint_auth_methods_supported", json!(["tls_client_auth"])),
        ] {
            let mut other = full.clone();
            other[name] = value.clone();
            assert!(parse_metadata(&other, issuer, &oauth(issuer)).is_err(), "{name} {value}");
        }
        let mut bare = full;
        bare.as_object_mut()
            .expect("an object")
            .retain(|name, _| name == "issuer" || name == "token_endpoint");
        let found = parse_metadata(&bare, issuer, &oauth(issuer)).expect("enough for a refresh");
        assert_eq!((found.client_auth, found.names_itself), (ClientAuth::Basic, false));
    }
}
