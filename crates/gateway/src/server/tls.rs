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

/// All that is wrong with the files.
pub fn tls_faults(files: &TlsFiles) -> Vec<TlsError> {
    let alone = [certificates(files).err(), key(files).err()];
    let faults: Vec<TlsError> = alone.into_iter().flatten().collect();
    if faults.is_empty() { tls_acceptor(files).err().into_iter().collect() } else { faults }
}

fn certificates(files: &TlsFiles) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let file = &files.certificates;
    let found: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|reason| TlsError::Certificates { file: file.clone(), reason })?;
    if found.is_empty() {
        let reason = rustls_pki_types::pem::Error::NoItemsFound;
        return Err(TlsError::Certificates { file: file.clone(), reason });
    }
    Ok(found)
}

fn key(files: &TlsFiles) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|reason| TlsError::Key { file: files.key.clone(), reason })
}

/// Reads the files and makes an acceptor of them.
pub fn tls_acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let (certificates, key) = (certificates(files)?, key(files)?);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
