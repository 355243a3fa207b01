//! How connections to an upstream are made: TCP, and TLS above it where its address asks for it.

use crate::proxy::limits::Limits;
use crate::tls::TlsSetup;
use hyper_rustls::builderstates::WantsProtocols1;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;

pub(super) fn tcp(limits: &Limits) -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.set_connect_timeout(Some(limits.connect_timeout));
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    tcp
}

/// What makes TLS connections, of protocols that are still to be said.
pub(super) fn connecting(setup: &TlsSetup) -> HttpsConnectorBuilder<WantsProtocols1> {
    let builder = HttpsConnectorBuilder::new().with_tls_config(setup.config.clone()).https_only();
    match &setup.server_name {
        Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name.clone())),
        None => builder,
    }
}
