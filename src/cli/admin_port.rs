//! The address, token and HTTP client of verbs that call a running gateway's admin port.

use super::stored::{SecretRef, VerbError, load_config};
use reqwest::{Client, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use switchback_gateway::secret::Secret;

/// Time limit of a request that a person waits for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The gateway to call.
#[derive(clap::Args)]
pub struct AdminArgs {
    /// Configuration file of the gateway, with the admin port and its token
    #[arg(long, value_name = "FILE", env = "SWITCHBACK_CONFIG", required_unless_present = "admin")]
    config: Option<PathBuf>,

    /// The admin port, instead of the configured one, such as http://127.0.0.1:9090
    #[arg(long, value_name = "URL")]
    admin: Option<Url>,

    /// Admin token, instead of the configured one: env:NAME, file:PATH or - for standard input
    #[arg(long, value_name = "REF")]
    token: Option<SecretRef>,
}

impl AdminArgs {
    /// Returns the address and the token of the admin port.
    pub fn address_and_token(&self) -> Result<(Url, Secret<String>), VerbError> {
        let (url, token) = self.address()?;
        let what = "this needs the admin port's token: set admin.token, or give --token";
        Ok((url, token.ok_or_else(|| VerbError::Usage(what.to_owned()))?))
    }

    /// Returns the address and the optional token: a loopback port may be readable without one.
    pub fn address(&self) -> Result<(Url, Option<Secret<String>>), VerbError> {
        let config = self.config.as_deref().map(load_config).transpose()?;
        let token = match &self.token {
            Some(reference) => Some(reference.load()?),
            None => config.as_ref().and_then(|config| config.admin.token.clone()),
        };
        let url = match (&self.admin, config) {
            (Some(url), _) => url.clone(),
            (None, Some(config)) => {
                let url = format!("http://{}", config.admin.listen);
                url.parse().map_err(|_| VerbError::Usage(format!("{url} is no address")))?
            }
            (None, None) => {
                return Err(VerbError::Usage("--config or --admin says where the gateway is".to_owned()));
            }
        };
        Ok((url, token))
    }

    /// Reads JSON from a path of the API, with these query parameters.
    ///
    /// # Errors
    ///
    /// The gateway cannot be reached, or refuses the request; then with its reason.
    pub async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<T, VerbError> {
        let (admin, token) = self.address()?;
        let mut url = admin.join(path).map_err(|error| VerbError::Usage(format!("--admin: {error}")))?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = http()?.get(url).timeout(ANSWER_TIMEOUT);
        let request = match &token {
            Some(token) => request.bearer_auth(token.expose()),
            None => request,
        };
        let response = request.send().await;
        let response =
            response.map_err(|error| VerbError::Run(format!("the admin port cannot be reached: {error}")))?;
        let status = response.status();
        if status == StatusCode::BAD_REQUEST {
            let refused: Value = response.json().await.unwrap_or_default();
            return Err(VerbError::Usage(
                refused["error"].as_str().unwrap_or("the request is refused").to_owned(),
            ));
        }
        if !status.is_success() {
            let help = match status {
                StatusCode::UNAUTHORIZED => "; give its token with --token, or set admin.token",
                StatusCode::NOT_FOUND => "; it may run an earlier version",
                _ => "",
            };
            return Err(VerbError::Run(format!("the gateway answers {status}{help}")));
        }
        let read = response.json().await;
        read.map_err(|error| VerbError::Run(format!("the gateway's answer is not understood: {error}")))
    }
}

/// Builds an HTTP client for the admin port. It ignores proxy settings, since no proxy may see the
/// token.
pub fn http() -> Result<Client, VerbError> {
    // The program has one TLS provider; installing it again fails harmlessly.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .no_proxy()
        .build()
        .map_err(|error| VerbError::Run(format!("HTTP cannot be set up: {error}")))
}
