//! TLS of the tests: a certificate for `gateway.test` that signs itself. Its key protects nothing.

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use switchback_gateway::server::{TlsFiles, tls_acceptor};
use tokio_rustls::TlsAcceptor;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/support/tls").join(name)
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
