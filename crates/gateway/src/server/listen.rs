//! Listening sockets, with the two options that must be set before binding: address reuse, and one
//! address shared by several sockets, so that each core accepts for itself.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Maximum number of connections in the kernel's accept queue.
const BACKLOG: i32 = 1024;

/// Pause of accepting when the process is out of file descriptors, to avoid a busy loop.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// A listening socket that is not registered with a runtime yet.
pub struct Bound {
    socket: std::net::TcpListener,
    tls: Option<TlsAcceptor>,
}

impl Bound {
    /// Binds one socket that does not share its address.
    fn alone(address: SocketAddr, tls: Option<TlsAcceptor>) -> io::Result<Bound> {
        Ok(Bound { socket: listening(socket(address, false)?)?, tls })
    }

    /// Binds `count` sockets (at least one) to the same address; the kernel distributes connections
    /// among them. The address must be free: sockets of another program are not joined, even if
    /// they permit it.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is in use, not local, or not permitted.
    pub fn together(address: SocketAddr, count: usize, tls: Option<TlsAcceptor>) -> io::Result<Vec<Bound>> {
        if count <= 1 || !cfg!(unix) {
            return Ok(vec![Bound::alone(address, tls)?]);
        }
        if address.port() != 0 {
            // Bind without sharing first, to detect another program's socket.
            drop(socket(address, false)?);
        }
        let first = listening(socket(address, true)?)?;
        let address = first.local_addr()?;
        let mut all = vec![Bound { socket: first, tls: tls.clone() }];
        for _ in 1..count {
            all.push(Bound { socket: listening(socket(address, true)?)?, tls: tls.clone() });
        }
        Ok(all)
    }

    /// Duplicates an open socket `count` times (at least once). Unlike sockets bound to the same
    /// address, the duplicates share one accept queue, which exists as long as one of them is open.
    ///
    /// # Errors
    ///
    /// Returns an error if the socket cannot be duplicated.
    pub fn from_socket(
        socket: std::net::TcpListener,
        count: usize,
        tls: Option<TlsAcceptor>,
    ) -> io::Result<Vec<Bound>> {
        let mut all = Vec::new();
        for _ in 1..count {
            all.push(Bound { socket: socket.try_clone()?, tls: tls.clone() });
        }
        all.push(Bound { socket, tls });
        Ok(all)
    }

    /// Returns the bound address, with the actual port if port 0 was requested.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot report the address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Registers the socket with the current runtime.
    pub(super) fn open(self) -> io::Result<Listener> {
        Ok(Listener { socket: TcpListener::from_std(self.socket)?, tls: self.tls })
    }
}

/// Binds a socket to an address; with `shared`, other sockets can bind it too.
fn socket(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Without it, a restart would fail for a minute while old connections are in TIME_WAIT.
    socket.set_reuse_address(true)?;
    #[cfg(unix)]
    socket.set_reuse_port(shared)?;
    #[cfg(not(unix))]
    let _ = shared;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn listening(socket: Socket) -> io::Result<std::net::TcpListener> {
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// A bound socket that accepts connections, with or without TLS.
pub struct Listener {
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl Listener {
    /// Binds a socket that does not share its address. Must be called inside the runtime that will
    /// accept.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is in use, not local, or not permitted.
    pub fn bind(address: SocketAddr, tls: Option<TlsAcceptor>) -> io::Result<Listener> {
        Bound::alone(address, tls)?.open()
    }

    /// Listens on a socket that is already open. Must be called inside the runtime that will
    /// accept.
    ///
    /// # Errors
    ///
    /// Returns an error if the socket cannot be set to non-blocking, or outside of a runtime.
    pub fn from_socket(socket: std::net::TcpListener) -> io::Result<Listener> {
        Bound { socket, tls: None }.open()
    }

    /// Returns the bound address, with the actual port if port 0 was requested.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot report the address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(super) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    pub(super) fn tls(&self) -> Option<TlsAcceptor> {
        self.tls.clone()
    }

    /// Closes the socket and returns the connections left in its accept queue.
    pub(super) fn into_waiting(self) -> impl Iterator<Item = (TcpStream, SocketAddr)> {
        // Bypass the runtime: it polls the system only after a readiness event.
        let socket = self.socket.into_std().ok();
        std::iter::from_fn(move || {
            loop {
                match socket.as_ref()?.accept() {
                    Ok((stream, address)) => {
                        if let Ok(stream) = configure_stream(stream) {
                            return Some((stream, address));
                        }
                    }
                    Err(error) if concerns_one_connection(&error) => {}
                    Err(_) => return None,
                }
            }
        })
    }

    /// Accepts the next connection. Errors of single connections are skipped; when the process is
    /// out of descriptors, accepting pauses.
    pub(super) async fn accept(&self) -> (TcpStream, SocketAddr) {
        loop {
            match self.socket.accept().await {
                Ok((stream, address)) => {
                    prepare(&stream);
                    return (stream, address);
                }
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections, trying again shortly; check the limit of open files");
                    // The listener stays readable, so without a pause the loop would use a core
                    // until a descriptor is free.
                    tokio::time::sleep(EXHAUSTED_PAUSE).await;
                }
            }
        }
    }
}

fn configure_stream(stream: std::net::TcpStream) -> io::Result<TcpStream> {
    stream.set_nonblocking(true)?;
    let stream = TcpStream::from_std(stream)?;
    prepare(&stream);
    Ok(stream)
}

fn prepare(stream: &TcpStream) {
    // Responses are written in complete buffers, so Nagle's algorithm would only delay them.
    let _ = stream.set_nodelay(true);
    bound_unsent(stream);
}

/// Number of unsent bytes in the kernel's send buffer above which a connection is not writable
/// (`TCP_NOTSENT_LOWAT`). The default grows to megabytes for a client
/// that does not read: memory that the budget does not count, and a stalled reader would go
/// unnoticed for long.
#[cfg(target_os = "linux")]
const UNSENT_BYTES_MAX: u32 = 128 * 1024;

fn bound_unsent(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

/// Raises the soft limit of file descriptors to the hard limit. Returns the resulting limit, or
/// `None` if it is unlimited.
pub fn raise_descriptors() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current?;
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => Some(current),
    }
}
