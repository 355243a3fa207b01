//! TLS of a listener: a certificate chain and key from PEM files, HTTP/2 and HTTP/1.1 by ALPN.

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Where the certificate is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM, leaf first.
    pub certificates: PathBuf,
    /// PEM: PKCS#8, PKCS#1 or SEC1.
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read certificates from {file}: {reason}")]
    Certificates { file: PathBuf, reason: rustls_pki_types::pem::Error },
    #[error("cannot read a private key from {file}: {reason}")]
    Key { file: PathBuf, reason: rustls_pki_types::pem::Error },
    #[error("certificate and key do not serve: {0}")]
    Unfit(#[from] rustls::Error),
}

/// Reads the files and makes an acceptor of them.
pub fn tls_acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.certificates)
        .and_then(Iterator::collect)
        .map_err(|reason| TlsError::Certificates { file: files.certificates.clone(), reason })?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|reason| TlsError::Key { file: files.key.clone(), reason })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
