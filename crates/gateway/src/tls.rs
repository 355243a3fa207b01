//! TLS towards both sides: the certificate that clients are shown, which can be replaced while they are, and whom we trust
//! and what we show where a service or the authorization server is called. Both are called with the same settings, and trust
//! the same authorities.

use arc_swap::ArcSwap;
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use x509_cert::der::Decode as _;

/// A certificate with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM, leaf first.
    pub certificates: PathBuf,
    /// PEM: PKCS#8, PKCS#1 or SEC1.
    pub key: PathBuf,
}

/// How a service is called with TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceTls {
    /// PEM: the authorities to trust instead of the system's.
    pub authorities: Option<PathBuf>,
    /// What we show to a service that asks who we are.
    pub own: Option<TlsFiles>,
    /// The name that its certificate is for, asked for by SNI, instead of the one in its address.
    pub server_name: Option<String>,
}

/// Why TLS cannot be had with what was given.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file of the certificate chain, or of the authorities, cannot be read.
    #[error("cannot read certificates from {file}: {reason}")]
    Certificates {
        /// As the configuration has it.
        file: PathBuf,
        /// No such file, or no PEM.
        reason: rustls_pki_types::pem::Error,
    },
    /// The file of the private key cannot be read.
    #[error("cannot read a private key from {file}: {reason}")]
    Key {
        /// As the configuration has it.
        file: PathBuf,
        /// No such file, or no PEM; says nothing of the key.
        reason: rustls_pki_types::pem::Error,
    },
    /// They do not belong together, or are of a kind that is not supported.
    #[error("certificate and key do not serve: {0}")]
    Unfit(#[from] rustls::Error),
    /// A certificate that services are to be held against cannot be an authority.
    #[error("{file} holds a certificate that no authority can have: {reason}")]
    Authority {
        /// As the configuration has it.
        file: PathBuf,
        /// What is wrong with the certificate.
        reason: rustls::Error,
    },
    /// The store of the operating system cannot be read.
    #[error("the system's certificate authorities cannot be read: {0}")]
    Roots(String),
    /// Neither a DNS name nor an address.
    #[error("`{0}` is no name of a server")]
    ServerName(String),
}

/// All that is wrong with the files.
pub fn tls_faults(files: &TlsFiles) -> Vec<TlsError> {
    let alone = [certificates(&files.certificates).err(), key(&files.key).err()];
    let faults: Vec<TlsError> = alone.into_iter().flatten().collect();
    if faults.is_empty() { certified(files).err().into_iter().collect() } else { faults }
}

/// All that is wrong with how a service is to be called.
pub fn service_faults(tls: &ServiceTls) -> Vec<TlsError> {
    let faults: Vec<TlsError> = tls.own.iter().flat_map(tls_faults).collect();
    if faults.is_empty() { tls.read().err().into_iter().collect() } else { faults }
}

/// Reads the files and makes an acceptor of them.
///
/// # Errors
///
/// A file cannot be read, or certificate and key do not belong together.
pub fn tls_acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    ServerCertificate::read(files)?.acceptor()
}

/// What clients are shown. Clones show the same; replaced in one, it is in all, for connections that come from then on.
#[derive(Clone, Debug)]
pub struct ServerCertificate(Arc<Shown>);

#[derive(Debug)]
struct Shown(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl ServerCertificate {
    /// Reads certificate and key, which belong together.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or certificate and key do not belong together.
    pub fn read(files: &TlsFiles) -> Result<ServerCertificate, TlsError> {
        Ok(ServerCertificate(Arc::new(Shown(ArcSwap::from_pointee(certified(files)?)))))
    }

    /// Shows the other's from here on.
    pub fn replace(&self, other: &ServerCertificate) {
        self.0.0.store(other.0.0.load_full());
    }

    /// For listeners: HTTP/2 and HTTP/1.1 by ALPN.
    ///
    /// # Errors
    ///
    /// The TLS library knows no protocol version that it would serve.
    pub fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let shown: Arc<Shown> = Arc::clone(&self.0);
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(shown);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// When the certificate ends, in seconds since 1970, where it says so in a form that we read.
    pub fn ends(&self) -> Option<u64> {
        self.0.0.load().cert.first().and_then(ends)
    }
}

/// What a [`ServiceTls`] comes to.
#[derive(Clone, Debug)]
pub struct TlsSetup {
    /// Without ALPN, which is the business of whoever connects.
    pub config: rustls::ClientConfig,
    /// What certificates are held against, where it is another name than that of the address.
    pub server_name: Option<ServerName<'static>>,
}

impl ServiceTls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// A file cannot be read or used, the name is none of a server, or the system's authorities cannot be
    /// read.
    pub fn read(&self) -> Result<TlsSetup, TlsError> {
        let server_name = self
            .server_name
            .clone()
            .map(|name| ServerName::try_from(name.clone()).map_err(|_| TlsError::ServerName(name)));
        let builder = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(self.roots()?);
        let config = match &self.own {
            None => builder.with_no_client_auth(),
            Some(files) => {
                let chain = certificates(&files.certificates)?;
                builder.with_client_auth_cert(chain, key(&files.key)?)?
            }
        };
        Ok(TlsSetup { config, server_name: server_name.transpose()? })
    }

    /// The files that it names.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let own = self.own.iter().flat_map(|own| [&own.certificates, &own.key]);
        self.authorities.iter().chain(own).map(PathBuf::as_path)
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        let Some(file) = &self.authorities else {
            let found = rustls_native_certs::load_native_certs();
            let (added, _) = roots.add_parsable_certificates(found.certs);
            if added == 0 {
                let why = found.errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                return Err(TlsError::Roots(if why.is_empty() { "there are none".to_owned() } else { why }));
            }
            return Ok(roots);
        };
        for certificate in certificates(file)? {
            let added = roots.add(certificate);
            added.map_err(|reason| TlsError::Authority { file: file.clone(), reason })?;
        }
        Ok(roots)
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |reason| TlsError::Certificates { file: file.to_owned(), reason };
    let found: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect).map_err(failed)?;
    if found.is_empty() { Err(failed(rustls_pki_types::pem::Error::NoItemsFound)) } else { Ok(found) }
}

fn key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(file).map_err(|reason| TlsError::Key { file: file.to_owned(), reason })
}

fn certified(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let (certificates, key) = (certificates(&files.certificates)?, key(&files.key)?);
    Ok(CertifiedKey::from_der(certificates, key, &default_provider())?)
}

fn ends(certificate: &CertificateDer<'static>) -> Option<u64> {
    let certificate = x509_cert::Certificate::from_der(certificate).ok()?;
    Some(certificate.tbs_certificate().validity().not_after.to_unix_duration().as_secs())
}
