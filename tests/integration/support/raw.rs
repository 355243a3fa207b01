//! Both ends of the wire, byte by byte: an upstream that answers from a script and records its
//! requests, and a client that sends arbitrary bytes. Neither adds or corrects anything.

use super::peers::Wire;
use super::{raw_http2, tls};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// How long anything on loopback may take before a test has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The reaction of the upstream to a request.
#[derive(Clone, Debug)]
pub enum Act {
    /// These bytes; the connection stays open for more.
    Reply(Vec<u8>),
    /// These bytes, then an orderly close.
    ReplyAndClose(Vec<u8>),
    /// These bytes, then a reset.
    ReplyAndReset(Vec<u8>),
    /// None, until the other side closes.
    Silence,
    /// These bytes; then, like another protocol, every byte as it arrives, with letters in upper
    /// case.
    Switch(Vec<u8>),
    /// These bytes, again and again, until the other side has enough.
    Flood { head: Vec<u8>, piece: Vec<u8> },
}

impl Act {
    /// A complete answer with a JSON body.
    pub fn json(status: u16, body: &str) -> Act {
        Act::Reply(answer(status, "content-type: application/json\r\n", body))
    }
}

/// An answer with a correct length.
pub fn answer(status: u16, fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{fields}\r\n{body}", body.len()).into_bytes()
}

/// One request as it stood on the wire.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Request line and fields, with their line ends, without the empty line.
    pub head: String,
    pub body: Vec<u8>,
    /// Counts connections from 0.
    pub connection: usize,
}

impl Seen {
    /// The request line.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or("")
    }

    /// All values of a field.
    pub fn values(&self, name: &str) -> Vec<&str> {
        fields(&self.head, name)
    }
}

/// A scripted upstream. The last act of the script is repeated.
pub struct Upstream {
    pub address: SocketAddr,
    /// Its protocol.
    pub wire: Wire,
    seen: Arc<Mutex<Vec<Seen>>>,
    closed: Arc<Mutex<usize>>,
    flooded: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

/// The reaction of an upstream to its nth request.
pub(super) type Script = dyn Fn(usize, &Seen) -> Act + Send + Sync;

impl Upstream {
    pub async fn start(script: Vec<Act>) -> Upstream {
        Upstream::over(Wire::Plain, script).await
    }

    /// An upstream with HTTP/1.1 or HTTP/2, with TLS or without.
    pub async fn over(wire: Wire, script: Vec<Act>) -> Upstream {
        Upstream::listen(wire, move |at, _| script[at.min(script.len() - 1)].clone()).await
    }

    /// One that looks at each request before it answers.
    pub async fn answering(script: impl Fn(usize, &Seen) -> Act + Send + Sync + 'static) -> Upstream {
        Upstream::listen(Wire::Plain, script).await
    }

    async fn listen(wire: Wire, script: impl Fn(usize, &Seen) -> Act + Send + Sync + 'static) -> Upstream {
        let script: Arc<Script> = Arc::new(script);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, closed) = (Arc::<Mutex<Vec<Seen>>>::default(), Arc::<Mutex<usize>>::default());
        let flooded = Arc::<AtomicUsize>::default();
        let shared = raw_http2::Shared {
            script,
            seen: seen.clone(),
            closed: closed.clone(),
            flooded: flooded.clone(),
        };
        let shared = Arc::new(shared);
        let acceptor = match wire {
            Wire::Plain => None,
            Wire::Tls1 => Some(tls::upstream_acceptor(&["http/1.1"])),
            Wire::Tls2 => Some(tls::upstream_acceptor(&["h2"])),
        };
        let accepting = tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let (shared, acceptor) = (shared.clone(), acceptor.clone());
                tokio::spawn(async move {
                    serve_over(wire, acceptor, stream, connection, &shared).await;
                    *shared.closed.lock().unwrap() += 1;
                });
            }
        });
        Upstream { address, wire, seen, closed, flooded, accepting }
    }

    /// Everything received so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many pieces of floods the other sides have taken.
    pub fn flooded(&self) -> usize {
        self.flooded.load(Relaxed)
    }

    /// Waits until this many connections have ended, or over HTTP/2 calls on them.
    pub async fn closed(&self, count: usize) {
        until(|| *self.closed.lock().unwrap() >= count).await;
    }

    /// Waits until this many requests have come.
    pub async fn received(&self, count: usize) {
        until(|| self.seen.lock().unwrap().len() >= count).await;
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Polls a condition that other tasks will bring about.
pub async fn until(mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("the condition never came about");
}

async fn serve_over(
    wire: Wire,
    acceptor: Option<TlsAcceptor>,
    stream: TcpStream,
    connection: usize,
    shared: &Arc<raw_http2::Shared>,
) {
    // The same connection, for when the stream itself is taken by TLS.
    let stream = stream.into_std().unwrap();
    let again = TcpStream::from_std(stream.try_clone().unwrap()).unwrap();
    let stream = TcpStream::from_std(stream).unwrap();
    let reset = move || drop(again.set_zero_linger());
    let Some(acceptor) = acceptor else {
        return serve(stream, reset, connection, shared).await;
    };
    let Ok(stream) = acceptor.accept(stream).await else { return };
    match wire {
        Wire::Tls2 => raw_http2::serve(stream, reset, connection, shared.clone()).await,
        _ => serve(stream, reset, connection, shared).await,
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    reset: impl FnOnce(),
    connection: usize,
    shared: &raw_http2::Shared,
) {
    while let Some((head, body)) = read_request(&mut stream).await {
        let act = {
            let mut seen = shared.seen.lock().unwrap();
            let request = Seen { head, body, connection };
            let act = (shared.script)(seen.len(), &request);
            seen.push(request);
            act
        };
        match act {
            Act::Reply(bytes) => {
                if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
            }
            Act::ReplyAndClose(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                return;
            }
            Act::ReplyAndReset(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.flush().await;
                reset();
                return;
            }
            Act::Silence => {
                let _ = stream.read(&mut [0; 64]).await;
                return;
            }
            Act::Switch(head) => {
                let _ = stream.write_all(&head).await;
                let _ = stream.flush().await;
                let mut piece = [0; 1024];
                while let Ok(count @ 1..) = stream.read(&mut piece).await {
                    piece[..count].make_ascii_uppercase();
                    let _ = stream.write_all(&piece[..count]).await;
                    let _ = stream.flush().await;
                }
                return;
            }
            Act::Flood { head, piece } => {
                let _ = stream.write_all(&head).await;
                while stream.write_all(&piece).await.is_ok() {
                    shared.flooded.fetch_add(1, Relaxed);
                }
                return;
            }
        }
    }
}

/// One request, framed by Content-Length or by chunks.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = find(&bytes, b"\r\n\r\n") {
            break end;
        }
        read_more(stream, &mut bytes).await?;
    };
    let head = String::from_utf8_lossy(&bytes[..end + 2]).into_owned();
    let mut body = bytes.split_off(end + 4);
    if fields(&head, "transfer-encoding").iter().any(|value| value.contains("chunked")) {
        while !(body.ends_with(b"\r\n\r\n")
            && (body.starts_with(b"0\r\n") || find(&body, b"\r\n0\r\n").is_some()))
        {
            read_more(stream, &mut body).await?;
        }
    } else {
        let length = fields(&head, "content-length").first().map_or(0, |value| value.parse().unwrap());
        while body.len() < length {
            read_more(stream, &mut body).await?;
        }
    }
    Some((head, body))
}

async fn read_more(stream: &mut (impl AsyncRead + Unpin), into: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 16 * 1024];
    let count = stream.read(&mut piece).await.ok()?;
    into.extend_from_slice(&piece[..count]);
    (count > 0).then_some(())
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn fields<'h>(head: &'h str, name: &str) -> Vec<&'h str> {
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    lines.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
}

/// An answer as a client saw it.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// Whether the body reached the end that its framing promises.
    pub is_complete: bool,
    /// Heads of earlier interim answers, except `100 Continue`.
    pub interim: Vec<String>,
    /// Fields after a chunked body, with their line ends.
    pub trailers: String,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn values(&self, name: &str) -> Vec<&str> {
        fields(&self.head, name)
    }

    pub fn value(&self, name: &str) -> &str {
        self.values(name).first().copied().unwrap_or("")
    }
}

/// A client on one connection.
pub struct Client {
    stream: TcpStream,
    pending: Vec<u8>,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Client {
        Client { stream: TcpStream::connect(address).await.unwrap(), pending: Vec::new() }
    }

    /// Sends bytes as they are. That the other side has closed is for [`Client::answer`] to find out.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// Returns the next answer to a request other than HEAD; none if the connection ends before one
    /// starts.
    pub async fn answer(&mut self) -> Option<Answer> {
        tokio::time::timeout(PATIENCE, self.read_answer(false)).await.expect("no answer came")
    }

    /// The next answer to a HEAD request.
    pub async fn answer_to_head(&mut self) -> Option<Answer> {
        tokio::time::timeout(PATIENCE, self.read_answer(true)).await.expect("no answer came")
    }

    /// Returns the first line of the next message, including interim answers; it is consumed with
    /// its fields.
    pub async fn first_line(&mut self) -> String {
        let reading = async {
            while find(&self.pending, b"\r\n\r\n").is_none() {
                read_more(&mut self.stream, &mut self.pending).await?;
            }
            Some(())
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("no answer came").expect("the connection ended");
        let end = find(&self.pending, b"\r\n\r\n").expect("read up to it");
        let head: Vec<u8> = self.pending.drain(..end + 4).collect();
        String::from_utf8_lossy(&head).lines().next().unwrap_or("").to_owned()
    }

    /// The next bytes, so many.
    pub async fn bytes(&mut self, count: usize) -> Vec<u8> {
        let reading = async {
            while self.pending.len() < count && read_more(&mut self.stream, &mut self.pending).await.is_some()
            {
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("nothing came");
        self.pending.drain(..count.min(self.pending.len())).collect()
    }

    /// Returns whether the other side has closed, after reading the rest.
    pub async fn is_closed(&mut self) -> bool {
        let reading = async { while read_more(&mut self.stream, &mut self.pending).await.is_some() {} };
        tokio::time::timeout(PATIENCE, reading).await.is_ok() && self.pending.is_empty()
    }

    /// Leaves without a good-bye.
    pub fn reset(self) {
        let _ = self.stream.set_zero_linger();
    }

    async fn read_answer(&mut self, is_head: bool) -> Option<Answer> {
        let end = loop {
            if let Some(end) = find(&self.pending, b"\r\n\r\n") {
                break end;
            }
            read_more(&mut self.stream, &mut self.pending).await?;
        };
        let head = String::from_utf8_lossy(&self.pending[..end + 2]).into_owned();
        self.pending.drain(..end + 4);
        let status: u16 = head.split_whitespace().nth(1).unwrap().parse().unwrap();
        if status < 200 && status != 101 {
            let mut answer = Box::pin(self.read_answer(is_head)).await?;
            if status != 100 {
                answer.interim.insert(0, head);
            }
            return Some(answer);
        }
        let mut answer = Answer { status, head, ..Answer::default() };
        if is_head || status == 101 || status == 204 || status == 304 {
            answer.is_complete = true;
        } else if answer.value("transfer-encoding") == "chunked" {
            let trailers = self.read_chunks(&mut answer.body).await;
            answer.is_complete = trailers.is_some();
            answer.trailers = trailers.unwrap_or_default();
        } else if let Ok(length) = answer.value("content-length").parse::<usize>() {
            let mut is_open = true;
            while self.pending.len() < length && is_open {
                is_open = read_more(&mut self.stream, &mut self.pending).await.is_some();
            }
            answer.is_complete = self.pending.len() >= length;
            answer.body = self.pending.drain(..length.min(self.pending.len())).collect();
        } else {
            while read_more(&mut self.stream, &mut self.pending).await.is_some() {}
            answer.body = std::mem::take(&mut self.pending);
        }
        Some(answer)
    }

    /// The trailers.
    async fn read_chunks(&mut self, body: &mut Vec<u8>) -> Option<String> {
        loop {
            let end = loop {
                if let Some(end) = find(&self.pending, b"\r\n") {
                    break end;
                }
                read_more(&mut self.stream, &mut self.pending).await?;
            };
            let size = usize::from_str_radix(std::str::from_utf8(&self.pending[..end]).ok()?, 16).ok()?;
            if size == 0 {
                // The line end of the last chunk belongs to the end, or to its trailers.
                self.pending.drain(..end);
                while find(&self.pending, b"\r\n\r\n").is_none() {
                    read_more(&mut self.stream, &mut self.pending).await?;
                }
                let end = find(&self.pending, b"\r\n\r\n").expect("read up to it");
                let trailers: Vec<u8> = self.pending.drain(..end + 4).collect();
                return Some(String::from_utf8_lossy(&trailers[2..end + 2]).into_owned());
            }
            while self.pending.len() < end + 2 + size + 2 {
                read_more(&mut self.stream, &mut self.pending).await?;
            }
            body.extend_from_slice(&self.pending[end + 2..end + 2 + size]);
            self.pending.drain(..end + 2 + size + 2);
        }
    }
}

/// Sends bytes on a connection of their own and reads one answer.
pub async fn exchange(address: SocketAddr, bytes: impl AsRef<[u8]>) -> Option<Answer> {
    let mut client = Client::connect(address).await;
    client.send(bytes).await;
    client.answer().await
}
