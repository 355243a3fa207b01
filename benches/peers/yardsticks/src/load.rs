//! The load generator: one thread, many connections, answers framed and skipped. Closed loop as
//! `wrk` does it, and open loop at a fixed rate as `wrk2` does it: each request has a time at which
//! it is due, and its latency counts from then, so a peer that stalls cannot hide the requests that
//! were not sent meanwhile (coordinated omission).

use crate::wire::Reader;
use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Maximum wait of an idle loop, after which it notices that it should stop.
const WAIT_MAX: Duration = Duration::from_millis(20);
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(120);

/// The requests, their concurrency, and their rate.
pub struct Load {
    pub target: Target,
    /// One after another, starting again after the last.
    pub requests: Vec<Vec<u8>>,
    /// The status that every answer must have.
    pub status: u16,
    pub connections: usize,
    pub pace: Pace,
}

/// The target, and whether it uses TLS.
#[derive(Clone)]
pub struct Target {
    pub address: SocketAddr,
    pub tls: Option<Arc<ClientConfig>>,
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self { address, tls: None }
    }
}

impl Target {
    /// Opens a connection, in blocking mode.
    fn connect(&self) -> Result<Stream> {
        let mut socket = TcpStream::connect(self.address).context("the peer cannot be reached")?;
        socket.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(socket)) };
        let mut session = ClientConnection::new(tls.clone(), self.address.ip().into())?;
        while session.is_handshaking() {
            session.complete_io(&mut socket).context("no TLS with the peer")?;
        }
        Ok(Stream::Tls(Box::new(StreamOwned::new(session, socket))))
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &stream.sock,
        }
    }

    /// Returns whether TLS may hold decrypted bytes that were not read yet. The socket does not
    /// report these as readable.
    fn may_hold(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The next request follows the answer.
    Closed,
    /// This number per second over all connections, regardless of the answers.
    Open { per_second: u32 },
}

/// The end of a load, and the recorded answers.
pub enum Until<'a> {
    /// After this number of answers, all of them recorded; no further requests are sent.
    Count(u64),
    /// On a signal; answers between `NOTE` and `STOP` are recorded.
    Told(&'a AtomicU8),
}

/// The initial state: connections are being opened, which takes time with TLS.
pub const CONNECT: u8 = 3;
pub const WARM: u8 = 0;
pub const NOTE: u8 = 1;
pub const STOP: u8 = 2;

/// The result.
pub struct Tally {
    /// Nanoseconds from the due time of a request to the end of its answer.
    pub latencies: Histogram<u64>,
    pub answers: u64,
    /// Answers with another status, and connections that broke during one.
    pub failures: u64,
}

/// One answer, with its body.
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

/// Sends one request on a separate connection.
pub fn fetch(target: &Target, request: &[u8]) -> Result<Answer> {
    let mut stream = target.connect()?;
    stream.socket().set_read_timeout(Some(ANSWER_WAIT_MAX))?;
    stream.write_all(request)?;
    let mut reader = Reader::new(true);
    let mut buffer = vec![0; 256 * 1024];
    while !reader.is_complete() {
        let read = stream.read(&mut buffer)?;
        ensure!(read > 0, "the connection ended within the answer");
        reader.push(&buffer[..read])?;
    }
    Ok(Answer { status: reader.status(), body: reader.body().to_vec() })
}

/// Runs a load to its end.
///
/// # Errors
/// A peer that cannot be reached, or one that fails more than a thousand times.
pub fn run(load: &Load, until: &Until<'_>) -> Result<Tally> {
    let mut running = Running::start(load)?;
    if let Until::Told(phase) = until {
        // If another state was set in the meantime, it remains.
        phase.compare_exchange(CONNECT, WARM, Ordering::Relaxed, Ordering::Relaxed).ok();
    }
    running.run(until)?;
    Ok(running.tally)
}

struct Running<'a> {
    load: &'a Load,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// Connections that wait for the due time of their next request.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    tally: Tally,
    buffer: Vec<u8>,
    noting: bool,
    /// Requests sent, and the number to send.
    asked: u64,
    to_ask: u64,
}

struct Connection {
    stream: Stream,
    reader: Reader,
    /// Index of the current request.
    request: usize,
    /// The due time of the current or the next request.
    due: Instant,
    /// Whether a part of the answer arrived.
    begun: bool,
    asking: bool,
}

impl<'a> Running<'a> {
    fn start(load: &'a Load) -> Result<Self> {
        // Otherwise waits end up to 50 µs late, which is the magnitude of the measured latencies.
        rustix::thread::set_current_timer_slack(std::num::NonZero::new(1)).ok();
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let latencies = Histogram::new_with_bounds(1, 600_000_000_000, 3).context("bounds of latencies")?;
        let mut running = Self {
            load,
            epoll,
            connections: Vec::with_capacity(load.connections),
            due: BinaryHeap::new(),
            tally: Tally { latencies, answers: 0, failures: 0 },
            buffer: vec![0; 256 * 1024],
            noting: false,
            asked: 0,
            to_ask: u64::MAX,
        };
        for at in 0..load.connections {
            let stream = running.connect(at)?;
            running.connections.push(Connection {
                stream,
                reader: Reader::new(false),
                request: 0,
                due: Instant::now(),
                begun: false,
                asking: false,
            });
        }
        // Requests are due only after all connections are open. Otherwise many connections would start
        // with all of their requests at once.
        let start = Instant::now();
        for (at, connection) in running.connections.iter_mut().enumerate() {
            connection.due = match load.pace {
                Pace::Closed => start,
                Pace::Open { per_second } => {
                    start + Duration::from_secs_f64(at as f64 / f64::from(per_second))
                }
            };
            running.due.push(Reverse((connection.due, at)));
        }
        Ok(running)
    }

    fn connect(&self, at: usize) -> Result<Stream> {
        let stream = self.load.target.connect()?;
        stream.socket().set_nonblocking(true)?;
        epoll::add(&self.epoll, stream.socket(), EventData::new_u64(at as u64), EventFlags::IN)?;
        Ok(stream)
    }

    fn run(&mut self, until: &Until<'_>) -> Result<()> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
        loop {
            match until {
                Until::Count(count) if self.tally.answers >= *count => return Ok(()),
                Until::Count(count) => (self.noting, self.to_ask) = (true, *count),
                Until::Told(phase) => match phase.load(Ordering::Relaxed) {
                    STOP => return Ok(()),
                    phase => self.noting = phase == NOTE,
                },
            }
            let wait = self.ask_what_is_due()?;
            events.clear();
            let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            for event in &events {
                self.take(event.data.u64() as usize)?;
            }
            if self.tally.failures > 1000 {
                bail!("more than a thousand answers failed");
            }
        }
    }

    /// Sends the due requests. Returns the time until the next one.
    fn ask_what_is_due(&mut self) -> Result<Duration> {
        while let Some(Reverse((due, at))) = self.due.peek().copied() {
            if self.asked == self.to_ask {
                break;
            }
            let now = Instant::now();
            if due > now {
                return Ok((due - now).min(WAIT_MAX));
            }
            self.due.pop();
            self.connections[at].request = self.asked as usize % self.load.requests.len();
            self.asked += 1;
            if self.load.pace == Pace::Closed {
                self.connections[at].due = now;
            }
            self.ask(at)?;
        }
        Ok(WAIT_MAX)
    }

    fn ask(&mut self, at: usize) -> Result<()> {
        let request = &self.load.requests[self.connections[at].request];
        let written = match self.connections[at].stream.write(request) {
            Ok(written) => written,
            Err(_) => {
                // The peer closed it between two requests, which is permitted.
                let stream = self.connect(at)?;
                self.connections[at].stream = stream;
                self.connections[at].stream.write(request)?
            }
        };
        ensure!(written == request.len(), "a request does not fit into the socket's buffer");
        self.connections[at].asking = true;
        Ok(())
    }

    /// Reads from a connection.
    fn take(&mut self, at: usize) -> Result<()> {
        loop {
            let connection = &mut self.connections[at];
            let read = match connection.stream.read(&mut self.buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Ok(0) | Err(_) => return self.reconnect(at),
                Ok(read) => read,
            };
            connection.begun = true;
            let taken = connection.reader.push(&self.buffer[..read])?;
            ensure!(taken == read, "more than an answer");
            if connection.reader.is_complete() {
                self.answered(at);
                return Ok(());
            }
            if !connection.stream.may_hold() {
                return Ok(());
            }
        }
    }

    fn answered(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let now = Instant::now();
        let latency = now.saturating_duration_since(connection.due);
        let failed = connection.reader.status() != self.load.status;
        connection.reader.reset();
        (connection.begun, connection.asking) = (false, false);
        connection.due = match self.load.pace {
            Pace::Closed => now,
            Pace::Open { per_second } => {
                connection.due + Duration::from_secs_f64(self.load.connections as f64 / f64::from(per_second))
            }
        };
        self.due.push(Reverse((connection.due, at)));
        self.tally.failures += u64::from(failed);
        if self.noting {
            self.tally.answers += 1;
            self.tally.latencies.saturating_record(latency.as_nanos() as u64);
        }
    }

    /// Reopens a connection that the peer closed. A connection that broke during an answer counts
    /// as failed.
    fn reconnect(&mut self, at: usize) -> Result<()> {
        let stream = self.connect(at)?;
        let connection = &mut self.connections[at];
        connection.stream = stream;
        connection.reader.reset();
        self.tally.failures += u64::from(std::mem::take(&mut connection.begun));
        if connection.asking { self.ask(at) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Load, Pace, Target, Until, fetch, run};
    use crate::fixture::{ACCESS_TOKEN, Fixture, Wire};
    use crate::tls::Certificates;
    use crate::wire::Reader;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::time::Duration;

    /// A server for one connection that answers its first request late and all others immediately.
    fn stalling(pause: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let (mut reader, mut buffer, mut pause) = (Reader::new(false), [0; 1024], Some(pause));
            while let Ok(read @ 1..) = socket.read(&mut buffer) {
                reader.push(&buffer[..read]).unwrap();
                if reader.is_complete() {
                    reader.reset();
                    pause.take().into_iter().for_each(std::thread::sleep);
                    socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                }
            }
        });
        address
    }

    #[test]
    fn requests_that_were_due_while_the_peer_stalled_count_as_late() {
        let load = Load {
            target: stalling(Duration::from_millis(200)).into(),
            requests: vec![b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".to_vec()],
            status: 200,
            connections: 1,
            pace: Pace::Open { per_second: 100 },
        };
        let tally = run(&load, &Until::Count(20)).unwrap();
        assert_eq!((tally.answers, tally.failures), (20, 0));
        // A request is due every 10 ms, so the first ten are at least 100 ms late on any machine.
        let late = tally.latencies.count_between(99_000_000, u64::MAX);
        assert!(late >= 10, "{late}");
    }

    #[test]
    fn a_closed_loop_asks_as_often_as_it_is_told() {
        let fixture = Fixture::start(([127, 0, 0, 1], 0).into()).unwrap();
        let with = |token: &str| {
            format!("GET /v3/chats/481 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n")
                .into_bytes()
        };
        let load = |request| Load {
            target: fixture.address.into(),
            requests: vec![request],
            status: 200,
            connections: 3,
            pace: Pace::Closed,
        };
        let tally = run(&load(with(ACCESS_TOKEN)), &Until::Count(31)).unwrap();
        assert_eq!((tally.answers, tally.failures, fixture.requests()), (31, 0, 31));
        let tally = run(&load(with("another")), &Until::Count(5)).unwrap();
        assert_eq!((tally.answers, tally.failures), (5, 5), "what is refused has failed");
        assert_eq!(fetch(&fixture.address.into(), &with("another")).unwrap().status, 401);
    }

    #[test]
    fn answers_over_tls_are_the_same_and_requests_are_sent_in_turn() {
        let folder = tempfile::tempdir().unwrap();
        let certificates = Certificates::make(folder.path().join("tls")).unwrap();
        let mut fixture = Fixture::start(([127, 0, 0, 1], 0).into()).unwrap();
        fixture.secure(&certificates).unwrap();
        let request = |path: &str| {
            format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {ACCESS_TOKEN}\r\n\r\n")
                .into_bytes()
        };
        let target = Target {
            address: fixture.address_of(Wire::TlsHttp1).unwrap(),
            tls: Some(certificates.client().unwrap()),
        };
        // One of them exceeds a TLS record and the buffer of a socket.
        let large = request("/v3/chats/1000000/messages");
        let secured = fetch(&target, &large).unwrap();
        assert!(secured.body == fetch(&fixture.address.into(), &large).unwrap().body);
        let requests = vec![large, request("/v3/chats/481")];
        let load = Load { target, requests, status: 200, connections: 2, pace: Pace::Closed };
        let tally = run(&load, &Until::Count(9)).unwrap();
        assert_eq!((tally.answers, tally.failures), (9, 0));
        let over = [Wire::Plain, Wire::TlsHttp1, Wire::TlsHttp2].map(|wire| fixture.requests_over(wire));
        assert_eq!(over, [1, 10, 0]);
    }
}
