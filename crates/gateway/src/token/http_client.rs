//! The HTTP client that the authorization server is asked with. Another name than that of its address is asked for (SNI) by
//! calling it by that name and looking up the address's: the client underneath knows no other way.

use super::wire::OAuthConfigError;
use crate::tls::ServiceTls;
use http::{Method, header};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, RequestBuilder, Url};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) struct Http {
    client: reqwest::Client,
    renamed: Option<Renamed>,
}

/// A host that is called by another name.
#[derive(Clone, Debug)]
struct Renamed {
    host: Arc<str>,
    name: String,
}

impl Http {
    /// What `builder` says, for a server at `url`, called as `tls` says where TLS is spoken.
    pub(crate) fn new(
        mut builder: ClientBuilder,
        url: &Url,
        tls: &ServiceTls,
    ) -> Result<Http, OAuthConfigError> {
        let mut renamed = None;
        if url.scheme() == "https" {
            let mut setup = tls.read().map_err(|error| OAuthConfigError::Tls(error.to_string()))?;
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
        let client =
            builder.build().map_err(|error| OAuthConfigError::Tls(error.without_url().to_string()))?;
        Ok(Http { client, renamed })
    }

    pub(crate) fn request(&self, method: Method, url: &Url) -> RequestBuilder {
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
