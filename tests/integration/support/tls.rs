//! TLS of the tests: a self-signed certificate for `gateway.test`, and one for upstreams on
//! loopback. Their keys protect nothing.

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use switchback_gateway::tls::{TlsFiles, tls_acceptor};
use tokio_rustls::TlsAcceptor;

/// Of this folder.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/support/tls").join(name)
}

/// The certificate of upstreams on loopback, as PEM.
pub fn upstream_certificate() -> PathBuf {
    file("upstream.pem")
}

/// The key of [`upstream_certificate`].
pub fn upstream_key() -> PathBuf {
    file("upstream-key.pem")
}

/// For an upstream on loopback with these protocols.
pub fn upstream_acceptor(alpn: &[&str]) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_file(upstream_certificate()).unwrap();
    let key = PrivateKeyDer::from_pem_file(upstream_key()).unwrap();
    let mut config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// For the listener.
pub fn acceptor() -> TlsAcceptor {
    tls_acceptor(&TlsFiles { certificates: file("certificate.pem"), key: file("key.pem") }).unwrap()
}

/// For a client that trusts that certificate and no other.
pub fn client_config() -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("certificate.pem")).unwrap()).unwrap();
    rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}
