//! Transports of clients and of the service: clear text, as in tests and sidecars, or TLS, as in
//! production.

use super::peers::Peer;
use crate::fixture::Wire;
use clap::ValueEnum;

/// The transport between load generator, peer and fixture.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Transport {
    /// HTTP/1.1 in the clear on both sides
    Plain,
    /// The service behind TLS, over HTTP/1.1
    UpstreamTls,
    /// The service behind TLS, over HTTP/2
    UpstreamH2,
    /// Clients over TLS
    ClientTls,
    /// Clients over TLS, and the service too, over HTTP/1.1
    BothTls,
    /// Clients over TLS, and the service too, over HTTP/2
    BothH2,
}

impl Transport {
    /// Returns the suffix for the title of a call.
    pub fn title(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::UpstreamTls => ", service behind TLS",
            Self::UpstreamH2 => ", service behind TLS with HTTP/2",
            Self::ClientTls => ", clients over TLS",
            Self::BothTls => ", TLS on both sides",
            Self::BothH2 => ", TLS on both sides, service with HTTP/2",
        }
    }

    /// Returns whether clients use TLS.
    pub fn is_client_tls(self) -> bool {
        matches!(self, Self::ClientTls | Self::BothTls | Self::BothH2)
    }

    /// Returns the expected transport of calls to the fixture.
    pub fn wire(self) -> Wire {
        match self {
            Self::Plain | Self::ClientTls => Wire::Plain,
            Self::UpstreamTls | Self::BothTls => Wire::TlsHttp1,
            Self::UpstreamH2 | Self::BothH2 => Wire::TlsHttp2,
        }
    }

    /// Returns the conditions for lines of configurations.
    pub fn conditions(self) -> Vec<&'static str> {
        let client = if self.is_client_tls() { "client-tls" } else { "client-plain" };
        let upstream: &[_] = match self.wire() {
            Wire::Plain => &["upstream-plain"],
            Wire::TlsHttp1 => &["upstream-tls", "upstream-h1"],
            Wire::TlsHttp2 => &["upstream-tls", "upstream-h2"],
        };
        [&[client], upstream].concat()
    }

    /// Returns whether a peer can be configured for it.
    pub fn is_for(self, peer: Peer) -> bool {
        match peer {
            _ if self == Self::Plain => true,
            Peer::Gateway | Peer::Envoy | Peer::Haproxy => true,
            // It does not support HTTP/2 to the service.
            Peer::Nginx => self.wire() != Wire::TlsHttp2,
            _ => false,
        }
    }
}
