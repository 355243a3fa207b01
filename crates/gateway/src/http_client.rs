//! The HTTP client for calls that go outside the data path: to the authorization server, and those of the playground and of
//! verbs that call a service with a client's token. It calls directly, whatever the environment says of proxies, follows no
//! redirect and repeats nothing: each would give the token to somebody else, or spend it twice. A server name other than the
//! host of the address (SNI) is used by calling that name and resolving the host instead: reqwest has no other way.

use crate::tls::{ServiceTls, TlsError};
use http::{Method, header};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, RequestBuilder, Url};
use std::fmt;
use std::sync::Arc;

/// A client of one service; clones share its connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: reqwest::Client,
    renamed: Option<Renamed>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    /// A file of the TLS settings cannot be used, or the system's authorities cannot be read.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The client cannot be built.
    #[error("{0}")]
    Client(reqwest::Error),
}

/// Where a service is, and how it is called where TLS is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAddress {
    /// With a path or without.
    pub url: String,
    /// Authorities, own certificate, server name.
    pub tls: ServiceTls,
}

impl fmt::Display for ServiceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

/// A host that is called by another name.
#[derive(Clone, Debug)]
struct Renamed {
    host: Arc<str>,
    name: String,
}

impl HttpClient {
    /// Builds a client for a service at `url` out of `builder`, which sets times and pools.
    ///
    /// # Errors
    ///
    /// A file of `tls` cannot be used, or the client cannot be built.
    pub fn new(builder: ClientBuilder, url: &Url, tls: &ServiceTls) -> Result<HttpClient, HttpClientError> {
        // The one provider this program is built with; whoever comes first installs it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = builder
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .user_agent(concat!("switchback/", env!("CARGO_PKG_VERSION")));
        let mut renamed = None;
        if url.scheme() == "https" {
            let mut setup = tls.read()?;
            setup.config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            if let (Some(name), Some(host)) = (setup.server_name, url.host_str()) {
                let host: Arc<str> = host.trim_matches(['[', ']']).into();
                // HTTP/2 has one name for TLS and for the request.
                setup.config.alpn_protocols.remove(0);
                builder = builder.http1_only().dns_resolver(Arc::new(LookUp(Arc::clone(&host))));
                renamed = Some(Renamed { host, name: name.to_str().into_owned() });
            }
            builder = builder.tls_backend_preconfigured(setup.config);
        }
        let client = builder.build().map_err(|error| HttpClientError::Client(error.without_url()))?;
        Ok(HttpClient { client, renamed })
    }

    /// A request to `url`, which is of the service that this is a client of.
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

/// Looks up one host, whatever it is called by.
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
