//! A connection to a service in separate steps, for diagnosis. The data path connects through
//! `proxy/upstream`, which reports only the result.

use crate::tls::{ServiceTls, TlsError, earliest_end};
use rustls_pki_types::{InvalidDnsNameError, ServerName};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The steps of one connection.
#[derive(Debug)]
pub struct ConnectionProbe {
    /// The address of the established TCP connection, or why there is none.
    pub connected: Result<SocketAddr, ProbeError>,
    /// The TLS handshake; `None` without TLS or without a connection.
    pub handshake: Option<Result<PeerCertificate, ProbeError>>,
}

/// The verified certificate of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCertificate {
    /// The earliest expiry in its chain, in seconds since 1970, if it can be parsed.
    pub ends: Option<u64>,
}

/// Why a step of a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The name cannot be resolved, the connection is refused, or the handshake fails.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A file of the TLS settings cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The host of the address cannot be in a certificate.
    #[error("the host is no name of a server: {0}")]
    Name(#[from] InvalidDnsNameError),
    /// No answer within the time limit.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Late(Duration),
}

/// Connects to a service and closes the connection. `tls` is `None` for a service without TLS. Each
/// step has the timeout. Sends nothing beyond the handshake.
pub async fn probe(host: &str, port: u16, tls: Option<&ServiceTls>, timeout: Duration) -> ConnectionProbe {
    // `http::Uri` retains the brackets of an IPv6 host.
    let host = host.trim_matches(['[', ']']);
    let connecting = async { Ok(TcpStream::connect((host, port)).await?) };
    let stream = match limited(timeout, connecting).await {
        Ok(stream) => stream,
        Err(error) => return ConnectionProbe { connected: Err(error), handshake: None },
    };
    let connected = stream.peer_addr().map_err(ProbeError::from);
    let handshake = match tls {
        Some(tls) => Some(limited(timeout, shake_hands(stream, host, tls)).await),
        None => None,
    };
    ConnectionProbe { connected, handshake }
}

async fn limited<T>(
    timeout: Duration,
    step: impl Future<Output = Result<T, ProbeError>>,
) -> Result<T, ProbeError> {
    tokio::time::timeout(timeout, step).await.unwrap_or(Err(ProbeError::Late(timeout)))
}

async fn shake_hands(stream: TcpStream, host: &str, tls: &ServiceTls) -> Result<PeerCertificate, ProbeError> {
    let mut setup = tls.load()?;
    setup.config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = match setup.server_name {
        Some(name) => name,
        None => ServerName::try_from(host.to_owned())?,
    };
    let connector = TlsConnector::from(Arc::new(setup.config));
    let stream = connector.connect(name, stream).await?;
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    Ok(PeerCertificate { ends: earliest_end(certificates) })
}
