//! TLS on both hops: the server certificate, which can be replaced at run time, and the trust and
//! client certificates for calls to services and the authorization server. Both kinds of calls use
//! the same settings and trust the same authorities by default.

use arc_swap::ArcSwap;
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// A certificate chain with its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM, leaf first.
    pub certificates: PathBuf,
    /// PEM: PKCS#8, PKCS#1 or SEC1.
    pub key: PathBuf,
}

/// TLS settings for calls to a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceTls {
    /// PEM file of the authorities to trust instead of the system's.
    pub authorities: Option<PathBuf>,
    /// Client certificate, sent if the service requests one.
    pub own: Option<TlsFiles>,
    /// The name that is sent as SNI and verified in the service's certificate, instead of the host
    /// of its address.
    pub server_name: Option<String>,
}

/// An error in TLS files or settings.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file of the certificate chain or of the authorities cannot be read.
    #[error("cannot read certificates from {file}: {reason}")]
    Certificates {
        /// The path in the configuration.
        file: PathBuf,
        /// No such file, or not PEM.
        reason: rustls_pki_types::pem::Error,
    },
    /// The file of the private key cannot be read.
    #[error("cannot read a private key from {file}: {reason}")]
    Key {
        /// The path in the configuration.
        file: PathBuf,
        /// No such file, or not PEM. Contains nothing of the key.
        reason: rustls_pki_types::pem::Error,
    },
    /// Certificate and key do not match, or are of an unsupported type.
    #[error("certificate and key do not serve: {0}")]
    Unfit(#[from] rustls::Error),
    /// A certificate cannot be used as an authority.
    #[error("{file} holds a certificate that no authority can have: {reason}")]
    Authority {
        /// The path in the configuration.
        file: PathBuf,
        /// The reason for the rejection.
        reason: rustls::Error,
    },
    /// The certificate store of the operating system cannot be read.
    #[error("the system's certificate authorities cannot be read: {0}")]
    Roots(String),
    /// Neither a DNS name nor an IP address.
    #[error("`{0}` is no name of a server")]
    ServerName(String),
}

/// Returns all errors of a certificate and its key.
pub fn tls_faults(files: &TlsFiles) -> Vec<TlsError> {
    let alone = [certificates(&files.certificates).err(), key(&files.key).err()];
    // Whether both match can be checked only if each can be read.
    let faults: Vec<TlsError> = alone.into_iter().flatten().collect();
    if faults.is_empty() { load_certified_key(files).err().into_iter().collect() } else { faults }
}

/// Returns all errors of a service's TLS settings.
pub fn service_faults(tls: &ServiceTls) -> Vec<TlsError> {
    let faults: Vec<TlsError> = tls.own.iter().flat_map(tls_faults).collect();
    if faults.is_empty() { tls.load().err().into_iter().collect() } else { faults }
}

/// Reads the files and builds an acceptor.
///
/// # Errors
///
/// A file cannot be read, or certificate and key do not match.
pub fn tls_acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    ServerCertificate::load(files)?.acceptor()
}

/// The server certificate. Clones share it: a replacement applies to all clones, for new
/// connections.
#[derive(Clone, Debug)]
pub struct ServerCertificate(Arc<ServedCertificate>);

#[derive(Debug)]
struct ServedCertificate(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // Loaded per handshake: open connections keep their certificate, and new ones get a
        // replacement without a restart.
        Some(self.0.load_full())
    }
}

impl ServerCertificate {
    /// Reads a certificate and its key.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or certificate and key do not match.
    pub fn load(files: &TlsFiles) -> Result<ServerCertificate, TlsError> {
        Ok(ServerCertificate(Arc::new(ServedCertificate(ArcSwap::from_pointee(load_certified_key(files)?)))))
    }

    /// Replaces the certificate by that of `other`.
    pub fn replace(&self, other: &ServerCertificate) {
        self.0.0.store(other.0.0.load_full());
    }

    /// Builds an acceptor for listeners, with HTTP/2 and HTTP/1.1 in ALPN.
    ///
    /// # Errors
    ///
    /// The TLS library supports no protocol version for this configuration.
    pub fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let shown: Arc<ServedCertificate> = Arc::clone(&self.0);
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(shown);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Returns the expiry of the certificate in seconds since 1970, if it can be parsed.
    pub fn ends(&self) -> Option<u64> {
        self.0.0.load().cert.first().and_then(ends)
    }

    /// Returns the DNS names for which the certificate was issued (RFC 5280, section 4.2.1.6).
    pub fn names(&self) -> Vec<String> {
        let certified = self.0.0.load();
        let parse = |der: &CertificateDer<'static>| x509_cert::Certificate::from_der(der).ok();
        let Some(certificate) = certified.cert.first().and_then(parse) else { return Vec::new() };
        let found = certificate.tbs_certificate().get_extension::<SubjectAltName>();
        let names = found.ok().flatten().map(|(_, names)| names.0).unwrap_or_default();
        let name = |name: &GeneralName| match name {
            GeneralName::DnsName(name) => Some(name.to_string()),
            _ => None,
        };
        names.iter().filter_map(name).collect()
    }
}

/// A TLS client configuration built from a [`ServiceTls`].
#[derive(Clone, Debug)]
pub struct TlsSetup {
    /// Without ALPN, which the connecting code sets.
    pub config: rustls::ClientConfig,
    /// The name to verify certificates against, if it differs from the host of the address.
    pub server_name: Option<ServerName<'static>>,
}

impl ServiceTls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// A file cannot be read or used, the server name is invalid, or the system's authorities
    /// cannot be read.
    pub fn load(&self) -> Result<TlsSetup, TlsError> {
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

    /// Returns the paths of the files in use.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let own = self.own.iter().flat_map(|own| [&own.certificates, &own.key]);
        self.authorities.iter().chain(own).map(PathBuf::as_path)
    }

    /// Fingerprints the settings and the content of the files. Certificates are replaced in place,
    /// so paths alone do not reveal a change.
    pub fn fingerprint(&self) -> String {
        let mut digest = Sha256::new();
        for file in self.files() {
            let content = std::fs::read(file).unwrap_or_default();
            digest.update((content.len() as u64).to_be_bytes());
            digest.update(content);
        }
        format!("{self:?} {:?}", digest.finalize())
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

fn load_certified_key(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let (certificates, key) = (certificates(&files.certificates)?, key(&files.key)?);
    Ok(CertifiedKey::from_der(certificates, key, &default_provider())?)
}

/// Returns the earliest expiry of a chain in seconds since 1970, if it can be parsed.
pub(crate) fn earliest_end(chain: &[CertificateDer<'static>]) -> Option<u64> {
    chain.iter().filter_map(ends).min()
}

fn ends(certificate: &CertificateDer<'static>) -> Option<u64> {
    let certificate = x509_cert::Certificate::from_der(certificate).ok()?;
    Some(certificate.tbs_certificate().validity().not_after.to_unix_duration().as_secs())
}
