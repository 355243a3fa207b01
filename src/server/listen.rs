//! Listening sockets, with the two options that must be set before they are bound: address reuse, and sharing of one
//! address by several sockets so that each core can accept for itself.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// How long accepting pauses when the process has no file descriptor left: at once would spin.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// A bound socket that accepts connections, plain or with TLS.
pub struct Listener {
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl Listener {
    /// Binds. With `shared`, other listeners may bind the same address and the kernel spreads connections over them.
    /// Must be called inside the runtime that will accept.
    pub fn bind(address: SocketAddr, shared: bool, tls: Option<TlsAcceptor>) -> io::Result<Listener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        #[cfg(unix)]
        socket.set_reuse_port(shared)?;
        #[cfg(not(unix))]
        let _ = shared;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(Listener { socket: TcpListener::from_std(socket.into())?, tls })
    }

    /// The address bound, with the port the system chose where port 0 was asked for.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(super) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    pub(super) fn tls(&self) -> Option<TlsAcceptor> {
        self.tls.clone()
    }

    /// The next connection. Errors of single connections are passed over; when the process runs out of descriptors,
    /// accepting pauses and goes on.
    pub(super) async fn accept(&self) -> (TcpStream, SocketAddr) {
        loop {
            match self.socket.accept().await {
                Ok((stream, address)) => {
                    // Answers are written whole; waiting for more to fill a segment only delays them.
                    let _ = stream.set_nodelay(true);
                    return (stream, address);
                }
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "accepting connections pauses");
                    tokio::time::sleep(EXHAUSTED_PAUSE).await;
                }
            }
        }
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}
