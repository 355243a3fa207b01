//! Certificates of a run: an authority for that run only, and one certificate of it for all servers
//! on loopback.

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Protocols by their ALPN names.
pub const HTTP_1: &[u8] = b"http/1.1";
pub const HTTP_2: &[u8] = b"h2";

/// The paths of the files: `ca.pem`, `server.pem`, `server.key`, and `server-both.pem` with the
/// last two of them.
pub struct Certificates {
    pub folder: PathBuf,
}

impl Certificates {
    /// Creates an authority and a certificate for `localhost` and 127.0.0.1, and writes them into a
    /// folder.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn make(folder: PathBuf) -> Result<Self> {
        let mut authority = CertificateParams::new([])?;
        // OpenSSL treats a certificate with equal names of issuer and subject as self-signed.
        authority.distinguished_name.push(DnType::CommonName, "authority of a run");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let mut certificate = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
        certificate.distinguished_name.push(DnType::CommonName, "localhost");
        let certificate = certificate.signed_by(&key, &authority)?.pem();
        let key = key.serialize_pem();
        fs::create_dir_all(&folder)?;
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).context("certificates");
        write("ca.pem", &authority.pem())?;
        write("server.pem", &certificate)?;
        write("server.key", &key)?;
        write("server-both.pem", &[certificate, key].concat())?;
        Ok(Self { folder })
    }

    /// For a server with these protocols. It selects the cipher, so that all peers are measured
    /// with the same one.
    ///
    /// # Errors
    /// Files that are gone.
    pub fn server(&self, protocols: &[&[u8]]) -> Result<Arc<ServerConfig>> {
        let chain = certificates(&self.folder.join("server.pem"))?;
        let key = PrivateKeyDer::from_pem_file(self.folder.join("server.key"))?;
        let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
        config.ignore_client_order = true;
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(Arc::new(config))
    }

    /// For a client with HTTP/1.1 that trusts only the authority.
    ///
    /// # Errors
    /// Files that are gone.
    pub fn client(&self) -> Result<Arc<ClientConfig>> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.folder.join("ca.pem"))? {
            roots.add(certificate)?;
        }
        let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![HTTP_1.to_vec()];
        Ok(Arc::new(config))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    Ok(CertificateDer::pem_file_iter(file)?.collect::<Result<_, _>>()?)
}
