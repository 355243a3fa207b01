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

/// A listening socket that no runtime has taken up yet.
pub struct Bound {
    socket: std::net::TcpListener,
    tls: Option<TlsAcceptor>,
}

impl Bound {
    /// Binds one socket, alone at its address.
    fn alone(address: SocketAddr, tls: Option<TlsAcceptor>) -> io::Result<Bound> {
        Ok(Bound { socket: listening(socket(address, false)?)?, tls })
    }

    /// Binds `count` sockets (at least one) of the same address, over which the kernel spreads connections. The address
    /// must be free: another program's sockets are not joined, even where they would allow it.
    ///
    /// # Errors
    ///
    /// The address is in use, not of this machine, or not permitted.
    pub fn together(address: SocketAddr, count: usize, tls: Option<TlsAcceptor>) -> io::Result<Vec<Bound>> {
        if count <= 1 || !cfg!(unix) {
            return Ok(vec![Bound::alone(address, tls)?]);
        }
        if address.port() != 0 {
            // A socket that shares with no one finds out whether someone is there.
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

    /// A socket that is open already, `count` times (at least once): connections go to whoever accepts them first. Unlike
    /// sockets of the same address, these have one queue, which lives for as long as anybody holds one of them.
    ///
    /// # Errors
    ///
    /// The socket cannot be used without blocking, or outside of a runtime.
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

    /// The address bound, with the port the system chose where port 0 was asked for.
    ///
    /// # Errors
    ///
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Gives the socket to the runtime in which this is called.
    pub(super) fn open(self) -> io::Result<Listener> {
        Ok(Listener { socket: TcpListener::from_std(self.socket)?, tls: self.tls })
    }
}

/// A socket bound to an address; with `shared`, others may bind it too.
fn socket(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
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

/// A bound socket that accepts connections, plain or with TLS.
pub struct Listener {
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl Listener {
    /// Binds, alone at the address. Must be called inside the runtime that will accept.
    ///
    /// # Errors
    ///
    /// The address is in use, not of this machine, or not permitted.
    pub fn bind(address: SocketAddr, tls: Option<TlsAcceptor>) -> io::Result<Listener> {
        Bound::alone(address, tls)?.open()
    }

    /// Takes up a socket that is open already. Must be called inside the runtime that will accept.
    ///
    /// # Errors
    ///
    /// The socket cannot be used without blocking, or outside of a runtime.
    pub fn from_socket(socket: std::net::TcpListener) -> io::Result<Listener> {
        Bound { socket, tls: None }.open()
    }

    /// The address bound, with the port the system chose where port 0 was asked for.
    ///
    /// # Errors
    ///
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(super) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    pub(super) fn tls(&self) -> Option<TlsAcceptor> {
        self.tls.clone()
    }

    /// Closes the socket; gives the connections that the system has accepted and nobody has taken up.
    pub(super) fn into_waiting(self) -> impl Iterator<Item = (TcpStream, SocketAddr)> {
        // Not through the runtime, which asks the system only when that has told it of a connection.
        let socket = self.socket.into_std().ok();
        std::iter::from_fn(move || {
            loop {
                match socket.as_ref()?.accept() {
                    Ok((stream, address)) => return Some((configure_stream(stream).ok()?, address)),
                    Err(error) if concerns_one_connection(&error) => {}
                    Err(_) => return None,
                }
            }
        })
    }

    /// The next connection. Errors of single connections are passed over; when the process runs out of descriptors,
    /// accepting pauses and goes on.
    pub(super) async fn accept(&self) -> (TcpStream, SocketAddr) {
        loop {
            match self.socket.accept().await {
                Ok((stream, address)) => {
                    prepare(&stream);
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

fn configure_stream(stream: std::net::TcpStream) -> io::Result<TcpStream> {
    stream.set_nonblocking(true)?;
    let stream = TcpStream::from_std(stream)?;
    prepare(&stream);
    Ok(stream)
}

fn prepare(stream: &TcpStream) {
    // Answers are written whole; waiting for more to fill a segment only delays them.
    let _ = stream.set_nodelay(true);
    bound_unsent(stream);
}

/// Bytes that may wait in the kernel beyond what is on its way. Its own measure grows to megabytes for a client that does not
/// read, which no bound of ours sees, and a write would not tell for long that it does not.
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

/// Raises the limit of descriptors to what the system allows; what it is then, or none where there is none.
pub fn raise_descriptors() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current?;
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => Some(current),
    }
}
