//! The address, token and HTTP client of verbs that call a running gateway's admin port.

use super::stored::{SecretRef, VerbError, load_config};
use reqwest::{Client, Url};
use std::path::PathBuf;
use switchback_gateway::secret::Secret;

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
