//! The upstream of all peers: answers with fixed bytes, checks the access token, issues grants and
//! counts. It has one thread, so that it shares the second core with the load generator and leaves
//! the first one to the peer.
//!
//! `/v2/chats/N/messages` is a page in the form of the old version; neither it nor the same for
//! `/v2/chats/N` is counted. `/v3/chats/N/messages` is a page of messages for N below 1000,
//! otherwise a list of N bytes. `/requests` returns the number of answered calls of v3.
//! `/v3/chats/900/messages` and the following ids are lists of varying messages. `/v3/things-N/M`
//! is an object, for generated packs. `secure.rs` serves the same over TLS.

use crate::bench::growth;
use crate::bodies;
use crate::secure::Secure;
use crate::tls::{Certificates, HTTP_1, HTTP_2};
use crate::wire::Reader;
use anyhow::{Context, Result};
use bytes::Bytes;
use hyper::StatusCode;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The token for calls of the new version; the grant of the fixture contains it.
pub const ACCESS_TOKEN: &str = "v3-access-token-0123456789abcdef";
/// The token of clients of the old version. It is invented, like all tokens here.
pub const CLIENT_TOKEN: &str = "v2-client-token-0123456789abcdef";

const LISTENER: u64 = u64::MAX;
/// The chat with the first of the varying lists.
pub const VARIED_FROM: usize = 900;

/// A running fixture, which stops on drop.
pub struct Fixture {
    pub address: SocketAddr,
    /// The same over TLS, with HTTP/1.1 and with HTTP/2.
    secure: Option<[Secure; 2]>,
    seen: Arc<Seen>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// The transport of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    Plain,
    TlsHttp1,
    TlsHttp2,
}

/// Counters that all threads of a fixture share.
#[derive(Default)]
pub struct Seen {
    /// By transport.
    requests: [AtomicU64; 3],
    posted: Mutex<Vec<u8>>,
    stop: AtomicBool,
}

impl Seen {
    fn all(&self) -> u64 {
        self.requests.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

impl Fixture {
    /// Starts a fixture; port 0 selects a free port.
    pub fn start(listen: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(listen).context("the fixture cannot listen")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Seen::default());
        let mut served = Served::new(listener, seen.clone())?;
        let thread = std::thread::Builder::new().name("fixture".to_owned()).spawn(move || {
            if let Err(error) = served.run() {
                eprintln!("the fixture failed: {error:#}");
            }
        })?;
        Ok(Self { address, secure: None, seen, thread: Some(thread) })
    }

    /// Also serves over TLS, on free addresses.
    ///
    /// # Errors
    /// No address that can be listened on, and certificates that cannot be read.
    pub fn secure(&mut self, certificates: &Certificates) -> Result<()> {
        let start = |name| Secure::start(certificates.server(&[name])?, self.seen.clone());
        self.secure = Some([start(HTTP_1)?, start(HTTP_2)?]);
        Ok(())
    }

    /// Returns the address for calls of this transport.
    ///
    /// # Errors
    /// TLS that is not served.
    pub fn address_of(&self, wire: Wire) -> Result<SocketAddr> {
        let secure = |at: usize| Ok(self.secure.as_ref().context("the fixture serves no TLS")?[at].address);
        match wire {
            Wire::Plain => Ok(self.address),
            Wire::TlsHttp1 => secure(0),
            Wire::TlsHttp2 => secure(1),
        }
    }

    /// Returns the number of answered calls of v3.
    pub fn requests(&self) -> u64 {
        self.seen.all()
    }

    /// Returns the number of them with this transport.
    pub fn requests_over(&self, wire: Wire) -> u64 {
        self.seen.requests[wire as usize].load(Ordering::Relaxed)
    }

    /// Returns the last body that was posted to v3.
    pub fn posted(&self) -> Vec<u8> {
        self.seen.posted.lock().expect("nothing panics while it is held").clone()
    }

    /// Serves until the process ends.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic occurs only where a test should see it.
            thread.join().expect("the fixture does not panic");
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.seen.stop.store(true, Ordering::Relaxed);
        // A connection wakes up the thread.
        if let (Some(thread), Ok(_)) = (self.thread.take(), TcpStream::connect(self.address)) {
            drop(thread.join());
        }
    }
}

struct Served {
    listener: TcpListener,
    epoll: OwnedFd,
    connections: HashMap<u64, Connection>,
    next: u64,
    answers: Answers,
    seen: Arc<Seen>,
}

struct Connection {
    socket: TcpStream,
    reader: Reader,
    /// The pending bytes, and the number of bytes already written.
    pending: Option<(Bytes, usize)>,
}

impl Served {
    fn new(listener: TcpListener, seen: Arc<Seen>) -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        Ok(Self { listener, epoll, connections: HashMap::new(), next: 0, answers: Answers::new(), seen })
    }

    fn run(&mut self) -> Result<()> {
        let mut events = Vec::with_capacity(256);
        let mut buffer = vec![0; 64 * 1024];
        while !self.seen.stop.load(Ordering::Relaxed) {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            for event in &events {
                let event: &epoll::Event = event;
                let id = event.data.u64();
                if id == LISTENER {
                    self.accept()?;
                } else if !self.advance(id, &mut buffer).unwrap_or(false) {
                    self.connections.remove(&id);
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<()> {
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            epoll::add(&self.epoll, &socket, EventData::new_u64(self.next), EventFlags::IN)?;
            self.connections
                .insert(self.next, Connection { socket, reader: Reader::new(true), pending: None });
            self.next += 1;
        }
    }

    /// Writes pending bytes, or reads and answers. Returns whether the connection stays open.
    fn advance(&mut self, id: u64, buffer: &mut [u8]) -> Result<bool> {
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(true) };
        if connection.pending.is_none() {
            let read = match connection.socket.read(buffer) {
                Ok(0) => return Ok(false),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                result => result?,
            };
            let taken = connection.reader.push(&buffer[..read])?;
            anyhow::ensure!(taken == read, "a second request before the answer to the first");
            if !connection.reader.is_complete() {
                return Ok(true);
            }
            let (method, target) = connection.reader.request();
            let authorization = connection.reader.field("authorization");
            let asked = Asked { method, target, authorization, body: connection.reader.body() };
            let answer = self.answers.to(&asked, Wire::Plain, &self.seen).whole;
            connection.reader.reset();
            connection.pending = Some((answer, 0));
            if connection.write()? {
                return Ok(true);
            }
            epoll::modify(&self.epoll, &connection.socket, EventData::new_u64(id), EventFlags::OUT)?;
        } else if connection.write()? {
            epoll::modify(&self.epoll, &connection.socket, EventData::new_u64(id), EventFlags::IN)?;
        }
        Ok(true)
    }
}

impl Connection {
    /// Writes as much as the socket accepts. Returns whether everything was written.
    fn write(&mut self) -> Result<bool> {
        let Some((answer, at)) = &mut self.pending else { return Ok(true) };
        while *at < answer.len() {
            match self.socket.write(&answer[*at..]) {
                Ok(written) => *at += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        self.pending = None;
        Ok(true)
    }
}

/// The relevant parts of a request.
pub struct Asked<'a> {
    pub method: &'a [u8],
    pub target: &'a [u8],
    pub authorization: Option<&'a [u8]>,
    pub body: &'a [u8],
}

/// A complete answer, built once.
#[derive(Clone)]
pub struct Reply {
    pub status: StatusCode,
    /// Head of HTTP/1.1 and body.
    whole: Bytes,
    head_bytes: usize,
}

impl Reply {
    /// The body alone.
    pub fn body(&self) -> Bytes {
        self.whole.slice(self.head_bytes..)
    }
}

/// All answers.
pub struct Answers {
    old_page: Reply,
    page: Reply,
    varied: Vec<Reply>,
    lists: HashMap<usize, Reply>,
    chat: Reply,
    sent: Reply,
    thing: Reply,
    grant: Reply,
    unauthorized: Reply,
    missing: Reply,
    authorization: String,
}

impl Answers {
    /// Builds the answers, except large lists, which are built on demand.
    pub fn new() -> Self {
        let grant = format!(
            r#"{{"token_type":"Bearer","expires_in":2592000,"access_token":"{ACCESS_TOKEN}","refresh_token":"v3-refresh-token-0123456789abcdef"}}"#
        );
        Self {
            old_page: ok(&bodies::old_messages()),
            page: ok(&bodies::messages(0)),
            varied: bodies::varied().iter().map(|list| ok(list)).collect(),
            lists: HashMap::new(),
            chat: ok(&bodies::chat()),
            sent: ok(&bodies::sent()),
            thing: ok(&growth::thing()),
            grant: ok(&grant),
            unauthorized: answer(StatusCode::UNAUTHORIZED, r#"{"reason":"Unknown token."}"#),
            missing: answer(StatusCode::NOT_FOUND, r#"{"reason":"Not found."}"#),
            authorization: format!("Bearer {ACCESS_TOKEN}"),
        }
    }

    /// Returns the answer to a request, and counts it.
    pub fn to(&mut self, asked: &Asked<'_>, wire: Wire, seen: &Seen) -> Reply {
        match (asked.method, asked.target) {
            (b"POST", b"/oauth/access_token") => return self.grant.clone(),
            (b"GET", b"/requests") => return ok(&seen.all().to_string()),
            (b"GET", target) if target.starts_with(b"/v2/chats/") => return self.old_page.clone(),
            _ => {}
        }
        seen.requests[wire as usize].fetch_add(1, Ordering::Relaxed);
        if asked.authorization != Some(self.authorization.as_bytes()) {
            return self.unauthorized.clone();
        }
        match (asked.method, chat_of(asked.target)) {
            (b"GET", None) if asked.target.starts_with(b"/v3/things-") => self.thing.clone(),
            (b"GET", Some((_, b""))) => self.chat.clone(),
            (b"GET", Some((id @ 0..1000, b"/messages"))) => {
                let varied = id.checked_sub(VARIED_FROM).and_then(|at| self.varied.get(at));
                varied.unwrap_or(&self.page).clone()
            }
            (b"GET", Some((bytes, b"/messages"))) => self.list(bytes),
            (b"POST", Some((_, b"/messages"))) => {
                let mut posted = seen.posted.lock().expect("nothing panics while it is held");
                posted.clear();
                posted.extend_from_slice(asked.body);
                self.sent.clone()
            }
            _ => self.missing.clone(),
        }
    }

    fn list(&mut self, bytes: usize) -> Reply {
        self.lists.entry(bytes).or_insert_with(|| ok(&bodies::messages(bytes))).clone()
    }
}

/// Returns the id of the chat in a target, and the rest of the target.
fn chat_of(target: &[u8]) -> Option<(usize, &[u8])> {
    let rest = target.strip_prefix(b"/v3/chats/")?;
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    let id = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    Some((id, &rest[digits..]))
}

fn ok(body: &str) -> Reply {
    answer(StatusCode::OK, body)
}

fn answer(status: StatusCode, body: &str) -> Reply {
    let head = format!(
        "HTTP/1.1 {status}\r\ndate: Thu, 02 May 2024 14:31:07 GMT\r\nserver: fixture\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let whole = [head.as_bytes(), body.as_bytes()].concat().into();
    Reply { status, whole, head_bytes: head.len() }
}
