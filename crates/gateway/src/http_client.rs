//! The HTTP client for calls outside the data path: to the authorization server, from the
//! playground, and from commands that call a service with a client's token.
//!
//! It connects directly (proxy variables of the environment are ignored), follows no redirect and
//! retries nothing: each of these could send the token to another party or spend it twice. To use a
//! server name (SNI) that differs from the host of the URL, it requests that name and resolves it
//! to the host's addresses, since reqwest offers no other way.

use crate::tls::{ServiceTls, TlsError};
use http::{HeaderValue, Method, header};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, RequestBuilder, Url};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Upper bound for `Retry-After`.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);

/// A client of one service. Clones share its connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: reqwest::Client,
    renamed: Option<Renamed>,
}

/// An error that prevents building a client.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    /// A file of the TLS settings cannot be used, or the system's certificate authorities cannot be
    /// read.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// reqwest cannot build the client.
    #[error("{0}")]
    Client(reqwest::Error),
}

/// Returns whether the host of a URL is this machine.
pub(crate) fn is_loopback(host: Option<&str>) -> bool {
    let host = host.unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Describes a failed request without its URL, which may contain secrets.
pub(crate) fn describe(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "cannot connect"
    } else {
        "connection lost"
    }
}

/// Reads a body of at most `bytes_max` bytes.
pub(crate) async fn read_limited(
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

/// Parses `Retry-After` (RFC 9110, section 10.2.3): seconds or a date. Returns at most
/// [`RETRY_AFTER_MAX`].
pub(crate) fn retry_after(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    let wait = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).ok()?,
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

/// The address of a service and its TLS settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAddress {
    /// The URL, with or without a path.
    pub url: String,
    /// Certificate authorities, client certificate and server name.
    pub tls: ServiceTls,
}

impl fmt::Display for ServiceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

/// A host that is requested under another server name.
#[derive(Clone, Debug)]
struct Renamed {
    host: Arc<str>,
    name: String,
}

impl HttpClient {
    /// Builds a client for the service at `url` from `builder`, which sets timeouts and pool sizes.
    ///
    /// # Errors
    ///
    /// A file of `tls` cannot be used, or the client cannot be built.
    pub fn new(builder: ClientBuilder, url: &Url, tls: &ServiceTls) -> Result<HttpClient, HttpClientError> {
        // Fails if another crate has installed a provider already, which is fine: ring is the only
        // one that this program is built with.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = builder
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .user_agent(concat!("switchback/", env!("CARGO_PKG_VERSION")));
        let mut renamed = None;
        if url.scheme() == "https" {
            let mut setup = tls.load()?;
            setup.config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            if let (Some(name), Some(host)) = (setup.server_name, url.host_str()) {
                let host: Arc<str> = host.trim_matches(['[', ']']).into();
                // HTTP/2 takes the TLS name and the request's authority from the same URL, so only
                // HTTP/1.1 can send the real host.
                setup.config.alpn_protocols.remove(0);
                builder = builder.http1_only().dns_resolver(Arc::new(LookUp(Arc::clone(&host))));
                renamed = Some(Renamed { host, name: name.to_str().into_owned() });
            }
            builder = builder.tls_backend_preconfigured(setup.config);
        }
        let client = builder.build().map_err(|error| HttpClientError::Client(error.without_url()))?;
        Ok(HttpClient { client, renamed })
    }

    /// Starts a request to `url`, which must belong to this client's service.
    pub fn request(&self, method: Method, url: &Url) -> RequestBuilder {
        let mut called = url.clone();
        let renamed = self.renamed.as_ref().filter(|renamed| {
            url.host_str().is_some_and(|host| host.trim_matches(['[', ']']) == &*renamed.host)
        });
        match renamed {
            Some(Renamed { name, .. }) if called.set_host(Some(name)).is_ok() => {
                self.client.request(method, called).header(header::HOST, url.authority())
            }
            _ => self.client.request(method, called),
        }
    }
}

/// A resolver that looks up one fixed host for every name.
struct LookUp(Arc<str>);

impl Resolve for LookUp {
    fn resolve(&self, _: Name) -> Resolving {
        let host = Arc::clone(&self.0);
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((&*host, 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
