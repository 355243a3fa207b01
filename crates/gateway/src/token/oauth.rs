//! Settings of the authorization server.

use crate::tls::ServiceTls;
use reqwest::Url;
use std::time::Duration;
use switchback_plan::TokenRequests;

/// Addresses of the authorization server and settings for its requests.
#[derive(Clone, Debug)]
pub struct OAuth {
    /// The issuer (RFC 8414). Its metadata supply addresses that are not set here.
    pub issuer: Option<String>,
    /// The authorization endpoint, which a person opens.
    pub authorize_url: Option<Url>,
    /// The token endpoint, which exchanges codes and refresh tokens.
    pub token_url: Option<Url>,
    /// The revocation endpoint (RFC 7009).
    pub revocation_url: Option<Url>,
    /// The gateway's callback, exactly as registered for the application.
    pub redirect_url: Url,
    /// Requested scopes.
    pub scopes: Vec<String>,
    /// Time limit for one exchange.
    pub timeout: Duration,
    /// The audience of client assertions (`private_key_jwt`). `None`: the issuer, or the token endpoint
    /// if no issuer is known.
    pub assertion_audience: Option<String>,
    /// Deviations of the requests from the RFCs and the metadata.
    pub requests: TokenRequests,
    /// Names and values of additional fields in token requests.
    pub parameters: Vec<(String, String)>,
    /// Names and values of additional parameters in authorization links.
    pub authorize_parameters: Vec<(String, String)>,
    /// Whether a callback without `state` is accepted while exactly one authorization is pending.
    pub is_state_optional: bool,
    /// Trusted authorities and client certificate.
    pub tls: ServiceTls,
}

impl OAuth {
    /// Returns settings for a server at these addresses that follows the RFCs.
    pub fn at(authorize_url: Url, token_url: Url, redirect_url: Url) -> OAuth {
        OAuth {
            issuer: None,
            authorize_url: Some(authorize_url),
            token_url: Some(token_url),
            revocation_url: None,
            redirect_url,
            scopes: Vec::new(),
            timeout: Duration::from_secs(10),
            assertion_audience: None,
            requests: TokenRequests::default(),
            parameters: Vec::new(),
            authorize_parameters: Vec::new(),
            is_state_optional: false,
            tls: ServiceTls::default(),
        }
    }
}
