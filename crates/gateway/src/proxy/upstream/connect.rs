//! Opens connections to an upstream: TCP, and TLS on top for `https` addresses. Over TLS, ALPN (RFC
//! 7301) selects the protocol; `connection` and `http2` implement HTTP/1.1 and HTTP/2.

use super::UpstreamError;
use crate::proxy::limits::UpstreamLimits;
use crate::tls::{ServiceTls, TlsError};
use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls_pki_types::ServerName;
use std::error::Error as StdError;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::ServiceExt as _;

const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// Error of a failed connection attempt.
pub(super) type DialError = Box<dyn StdError + Send + Sync>;

/// Opens connections to one upstream.
pub(super) struct Connector {
    tcp: HttpConnector,
    /// Address of the upstream.
    address: Uri,
    tls: Option<Tls>,
    /// Limit for TCP connect and TLS handshake together.
    timeout: Duration,
}

struct Tls {
    /// Offers HTTP/2 and HTTP/1.1.
    either: TlsConnector,
    /// Offers HTTP/1.1 alone.
    http1: TlsConnector,
    /// Name that the upstream's certificate must be valid for.
    name: ServerName<'static>,
}

/// A connection to an upstream, plain or TLS.
pub(super) enum UpstreamStream {
    Plain(TcpStream),
    /// Boxed because TLS state is large and connections are moved often.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connector {
    /// Creates a connector to `address`. `tls` applies to `https` addresses only.
    ///
    /// # Errors
    ///
    /// Returns an error if a file named by `tls` cannot be used, or if the host of `address` is not
    /// a valid certificate name.
    pub(super) fn new(
        address: Uri,
        tls: &ServiceTls,
        limits: &UpstreamLimits,
    ) -> Result<Connector, UpstreamError> {
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(limits.connect_timeout));
        // Without it, Nagle's algorithm delays the last segment of a request until an earlier one
        // is acknowledged, which delayed acknowledgements postpone by up to 40 ms.
        tcp.set_nodelay(true);
        // The connector would otherwise reject `https` addresses, whose TLS is added here.
        tcp.enforce_http(false);
        let is_secured = address.scheme() == Some(&Scheme::HTTPS);
        let tls = is_secured.then(|| tls_for(&address, tls)).transpose()?;
        Ok(Connector { tcp, address, tls, timeout: limits.connect_timeout })
    }

    /// Opens a connection. Over TLS, HTTP/2 is offered before HTTP/1.1; plain connections use
    /// HTTP/1.1.
    pub(super) async fn connect(&self) -> Result<UpstreamStream, DialError> {
        self.connect_with(|tls| &tls.either).await
    }

    /// Opens a connection for HTTP/1.1.
    pub(super) async fn connect_http1(&self) -> Result<UpstreamStream, DialError> {
        self.connect_with(|tls| &tls.http1).await
    }

    async fn connect_with(&self, offer: impl Fn(&Tls) -> &TlsConnector) -> Result<UpstreamStream, DialError> {
        let connecting = self.tcp.clone().oneshot(self.address.clone());
        let Some(tls) = &self.tls else {
            return Ok(UpstreamStream::Plain(connecting.await?.into_inner()));
        };
        let securing = async {
            let tcp = connecting.await?.into_inner();
            Ok(UpstreamStream::Tls(Box::new(offer(tls).connect(tls.name.clone(), tcp).await?)))
        };
        // The connector's own timeout covers TCP only; a server that accepts and stays silent would
        // hold the call in the TLS handshake.
        tokio::time::timeout(self.timeout, securing).await.unwrap_or_else(|_| {
            Err(io::Error::new(io::ErrorKind::TimedOut, "TLS was not agreed in time").into())
        })
    }
}

fn tls_for(address: &Uri, tls: &ServiceTls) -> Result<Tls, UpstreamError> {
    let setup = tls.load()?;
    let name = match setup.server_name {
        Some(name) => name,
        None => {
            let host = address.host().unwrap_or_default();
            // URIs put an IPv6 address in brackets; certificates do not.
            let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            ServerName::try_from(bare).map_err(|_| TlsError::ServerName(host.to_owned()))?
        }
    };
    let offering = |protocols: &[&[u8]]| {
        let mut config = setup.config.clone();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    };
    Ok(Tls { either: offering(&[HTTP2, HTTP1]), http1: offering(&[HTTP1]), name })
}

impl UpstreamStream {
    /// Returns whether ALPN selected HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        match self {
            UpstreamStream::Plain(_) => false,
            UpstreamStream::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(HTTP2),
        }
    }
}

impl AsyncRead for UpstreamStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            UpstreamStream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            UpstreamStream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for UpstreamStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            UpstreamStream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            UpstreamStream::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            UpstreamStream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            UpstreamStream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            UpstreamStream::Plain(stream) => stream.is_write_vectored(),
            UpstreamStream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            UpstreamStream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            UpstreamStream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            UpstreamStream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            UpstreamStream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
