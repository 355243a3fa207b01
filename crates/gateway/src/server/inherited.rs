//! Listening sockets passed to the process (`LISTEN_FDS`, sd_listen_fds(3)). The service manager
//! keeps them open, so connections queue during a restart, and several processes can accept from
//! one socket.

use listenfd::ListenFd;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};

/// Inherited sockets that have not been claimed yet.
#[derive(Debug, Default)]
pub struct Inherited {
    sockets: Vec<(SocketAddr, TcpListener)>,
    were_any: bool,
}

impl Inherited {
    /// Takes the sockets that the environment announces. Call it once, before threads are spawned:
    /// it clears the environment.
    ///
    /// # Errors
    /// Returns an error if a passed descriptor is not a listening TCP socket.
    pub fn take() -> io::Result<Inherited> {
        let mut passed = ListenFd::from_env();
        let mut sockets = Vec::new();
        for at in 0..passed.len() {
            if let Some(socket) = passed.take_tcp_listener(at)? {
                // The service manager passes blocking sockets, and a runtime would block its thread
                // in `accept`.
                socket.set_nonblocking(true)?;
                sockets.push((socket.local_addr()?, socket));
            }
        }
        Ok(Inherited { were_any: !sockets.is_empty(), sockets })
    }

    /// Returns whether any sockets were passed, claimed or not.
    pub fn were_any(&self) -> bool {
        self.were_any
    }

    /// Claims the socket bound to `address`, or else one bound to its port on all addresses.
    pub fn claim(&mut self, address: SocketAddr) -> Option<TcpListener> {
        let is_at = |bound: &SocketAddr| *bound == address;
        // Service managers usually bind all addresses, while the configuration may name one.
        let is_wider = |bound: &SocketAddr| bound.port() == address.port() && bound.ip().is_unspecified();
        let addresses = || self.sockets.iter().map(|(bound, _)| bound);
        let at = addresses().position(is_at).or_else(|| addresses().position(is_wider))?;
        Some(self.sockets.swap_remove(at).1)
    }

    /// Returns the addresses of the unclaimed sockets.
    pub fn unclaimed_addresses(&self) -> Unclaimed {
        Unclaimed(self.sockets.iter().map(|(address, _)| *address).collect())
    }
}

/// Addresses of inherited sockets that no listener uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unclaimed(Vec<SocketAddr>);

impl Unclaimed {
    /// Returns whether every inherited socket has been claimed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Unclaimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.0.iter().map(SocketAddr::to_string).collect();
        f.write_str(&addresses.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(address: &str) -> (SocketAddr, TcpListener) {
        let socket = TcpListener::bind(address).expect("a free port");
        (socket.local_addr().expect("it is bound"), socket)
    }

    #[test]
    fn a_socket_is_claimed_by_its_address_or_by_its_port_at_all_addresses() {
        let (exact, wide) = (bound("127.0.0.1:0"), bound("0.0.0.0:0"));
        let (at, port) = (exact.0, wide.0.port());
        let mut inherited = Inherited { sockets: vec![exact, wide], were_any: true };
        assert!(inherited.claim(SocketAddr::from(([127, 0, 0, 2], at.port()))).is_none());
        assert_eq!(inherited.claim(at).map(|socket| socket.local_addr().expect("bound")), Some(at));
        assert!(inherited.claim(at).is_none(), "each once");
        assert_eq!(inherited.unclaimed_addresses().to_string(), format!("0.0.0.0:{port}"));
        assert!(inherited.claim(SocketAddr::from(([127, 0, 0, 1], port))).is_some());
        assert!(inherited.unclaimed_addresses().is_empty() && inherited.were_any());
    }
}
