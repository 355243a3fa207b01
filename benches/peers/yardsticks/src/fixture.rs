//! The upstream of all peers: answers with fixed bytes, checks the access token, gives grants and counts. One thread, so that it
//! shares the second core with the load generator and leaves the first one to the peer.
//!
//! `/v2/chats/N/messages` is a page as the old version shows it; that and `/v2/chats/N`, the same, are not counted.
//! `/v3/chats/N/messages` is a page of messages where N is below 1000, otherwise a list of N bytes. `/requests` says how many
//! calls of v3 have been answered.

use crate::bodies;
use crate::wire::Reader;
use anyhow::{Context, Result};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What calls of the new version must carry; the grant that the fixture gives holds it.
pub const ACCESS_TOKEN: &str = "v3-access-token-0123456789abcdef";
/// What clients of the old version carry. A made-up one, like all tokens here.
pub const CLIENT_TOKEN: &str = "v2-client-token-0123456789abcdef";

const LISTENER: u64 = u64::MAX;

/// A running fixture; it stops when dropped.
pub struct Fixture {
    pub address: SocketAddr,
    seen: Arc<Seen>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    requests: AtomicU64,
    posted: Mutex<Vec<u8>>,
    stop: AtomicBool,
}

impl Fixture {
    /// Starts a fixture on an address of its own choice where the port is 0.
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
        Ok(Self { address, seen, thread: Some(thread) })
    }

    /// Calls of v3 answered so far.
    pub fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::Relaxed)
    }

    /// The last body that was posted to v3.
    pub fn posted(&self) -> Vec<u8> {
        self.seen.posted.lock().expect("nothing panics while it is held").clone()
    }

    /// Serves until the process ends.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            // It only panics where a test would want to see it.
            thread.join().expect("the fixture does not panic");
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.seen.stop.store(true, Ordering::Relaxed);
        // A connection wakes it.
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
    /// What is still to be written, and how much of it has been.
    pending: Option<(Arc<[u8]>, usize)>,
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

    /// Writes what is pending, or reads and answers; says whether the connection goes on.
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
            let answer = self.answers.to(&connection.reader, &self.seen);
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
    /// Writes as much as the socket takes; says whether that was all.
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

/// Whole answers, head and body, made once.
struct Answers {
    old_page: Arc<[u8]>,
    page: Arc<[u8]>,
    lists: HashMap<usize, Arc<[u8]>>,
    chat: Arc<[u8]>,
    sent: Arc<[u8]>,
    grant: Arc<[u8]>,
    unauthorized: Arc<[u8]>,
    missing: Arc<[u8]>,
    authorization: String,
}

impl Answers {
    fn new() -> Self {
        let grant = format!(
            r#"{{"token_type":"Bearer","expires_in":2592000,"access_token":"{ACCESS_TOKEN}","refresh_token":"v3-refresh-token-0123456789abcdef"}}"#
        );
        Self {
            old_page: answer("200 OK", &bodies::old_messages()),
            page: answer("200 OK", &bodies::messages(0)),
            lists: HashMap::new(),
            chat: answer("200 OK", &bodies::chat()),
            sent: answer("200 OK", &bodies::sent()),
            grant: answer("200 OK", &grant),
            unauthorized: answer("401 Unauthorized", r#"{"reason":"Unknown token."}"#),
            missing: answer("404 Not Found", r#"{"reason":"Not found."}"#),
            authorization: format!("Bearer {ACCESS_TOKEN}"),
        }
    }

    fn to(&mut self, request: &Reader, seen: &Seen) -> Arc<[u8]> {
        match request.request() {
            (b"POST", b"/oauth/access_token") => return self.grant.clone(),
            (b"GET", b"/requests") => {
                return answer("200 OK", &seen.requests.load(Ordering::Relaxed).to_string());
            }
            (b"GET", target) if target.starts_with(b"/v2/chats/") => return self.old_page.clone(),
            _ => {}
        }
        seen.requests.fetch_add(1, Ordering::Relaxed);
        if request.field("authorization") != Some(self.authorization.as_bytes()) {
            return self.unauthorized.clone();
        }
        let (method, target) = request.request();
        match (method, chat_of(target)) {
            (b"GET", Some((_, b""))) => self.chat.clone(),
            (b"GET", Some((0..1000, b"/messages"))) => self.page.clone(),
            (b"GET", Some((bytes, b"/messages"))) => self.list(bytes),
            (b"POST", Some((_, b"/messages"))) => {
                let mut posted = seen.posted.lock().expect("nothing panics while it is held");
                posted.clear();
                posted.extend_from_slice(request.body());
                self.sent.clone()
            }
            _ => self.missing.clone(),
        }
    }

    fn list(&mut self, bytes: usize) -> Arc<[u8]> {
        self.lists.entry(bytes).or_insert_with(|| answer("200 OK", &bodies::messages(bytes))).clone()
    }
}

/// The id of the chat that a target names, and what comes behind it.
fn chat_of(target: &[u8]) -> Option<(usize, &[u8])> {
    let rest = target.strip_prefix(b"/v3/chats/")?;
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    let id = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    Some((id, &rest[digits..]))
}

fn answer(status: &str, body: &str) -> Arc<[u8]> {
    let head = format!(
        "HTTP/1.1 {status}\r\ndate: Thu, 02 May 2024 14:31:07 GMT\r\nserver: fixture\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat().into()
}
