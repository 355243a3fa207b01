//! How a peer is spoken to and how it speaks to the service: in the clear, as tests and sidecars
//! have it, or over TLS, as production has it.

use super::peers::Peer;
use crate::fixture::Wire;
use clap::ValueEnum;

/// What is between load generator, peer and fixture.
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
    /// What is appended to the title of a call.
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

    /// Whether clients use TLS.
    pub fn is_client_tls(self) -> bool {
        matches!(self, Self::ClientTls | Self::BothTls | Self::BothH2)
    }

    /// How calls are to reach the fixture.
    pub fn wire(self) -> Wire {
        match self {
            Self::Plain | Self::ClientTls => Wire::Plain,
            Self::UpstreamTls | Self::BothTls => Wire::TlsHttp1,
            Self::UpstreamH2 | Self::BothH2 => Wire::TlsHttp2,
        }
    }

    /// The conditions under which lines of configurations hold.
    pub fn conditions(self) -> Vec<&'static str> {
        let client = if self.is_client_tls() { "client-tls" } else { "client-plain" };
        let upstream: &[_] = match self.wire() {
            Wire::Plain => &["upstream-plain"],
            Wire::TlsHttp1 => &["upstream-tls", "upstream-h1"],
            Wire::TlsHttp2 => &["upstream-tls", "upstream-h2"],
        };
        [&[client], upstream].concat()
    }

    /// Whether a peer is configured for it.
    pub fn is_for(self, peer: Peer) -> bool {
        match peer {
            _ if self == Self::Plain => true,
            Peer::Gateway | Peer::Envoy | Peer::Haproxy => true,
            // It speaks HTTP/2 to no service.
            Peer::Nginx => self.wire() != Wire::TlsHttp2,
            _ => false,
        }
    }
}
