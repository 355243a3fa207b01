//! The scripted upstream over HTTP/2. Scripts define their answers in HTTP/1.1; here they are
//! converted to frames. An incomplete body of HTTP/1.1, by length or without a last chunk, becomes
//! a stream that is not ended.

use super::raw::{Act, Script, Seen};
use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{RecvStream, SendStream};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

/// How a call wants its connection to end.
enum End {
    /// The call is answered.
    Orderly,
    /// In the middle of an answer, or before it.
    Abrupt,
    Reset,
}

/// How far an answer has come.
enum Replied {
    Whole,
    /// More is to come, or was promised.
    Unfinished(SendStream<Bytes>),
    /// There was no head, or the call was cancelled.
    Nothing,
}

/// State that the calls of all connections share.
pub(super) struct Shared {
    pub script: Arc<Script>,
    pub seen: Arc<Mutex<Vec<Seen>>>,
    /// Calls that the other side gave up, and connections that ended.
    pub closed: Arc<Mutex<usize>>,
    /// Pieces of floods that were taken.
    pub flooded: Arc<AtomicUsize>,
}

/// Serves one connection. `reset` makes its end a reset.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    reset: impl FnOnce(),
    connection: usize,
    shared: Arc<Shared>,
) {
    let Ok(mut http2) = server::Builder::new().max_header_list_size(1 << 20).handshake(stream).await else {
        return;
    };
    let mut pings = http2.ping_pong().expect("it was not taken");
    let (ends, mut ending) = mpsc::unbounded_channel();
    loop {
        tokio::select! {
            accepted = http2.accept() => match accepted {
                Some(Ok((request, respond))) => {
                    tokio::spawn(answer(request, respond, connection, Arc::clone(&shared), ends.clone()));
                }
                _ => return,
            },
            Some(end) = ending.recv() => match end {
                End::Orderly => http2.graceful_shutdown(),
                end => {
                    // Earlier data is sent first: the pong to a later ping confirms it.
                    for _ in 0..2 {
                        tokio::select! {
                            _ = pings.ping(h2::Ping::opaque()) => {}
                            _ = http2.accept() => {}
                        }
                    }
                    if let End::Reset = end {
                        reset();
                    }
                    return;
                }
            },
        }
    }
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    connection: usize,
    shared: Arc<Shared>,
    ends: mpsc::UnboundedSender<End>,
) {
    let Some(request) = read(request, connection).await else { return };
    let act = {
        let mut seen = shared.seen.lock().unwrap();
        let act = (shared.script)(seen.len(), &request);
        seen.push(request);
        act
    };
    match act {
        Act::Reply(bytes) => {
            if let Replied::Unfinished(mut unfinished) = reply(&mut respond, &bytes).await {
                let _ = poll_fn(|cx| unfinished.poll_reset(cx)).await;
                *shared.closed.lock().unwrap() += 1;
            }
        }
        Act::ReplyAndClose(bytes) => match reply(&mut respond, &bytes).await {
            Replied::Whole => drop(ends.send(End::Orderly)),
            replied => end(&ends, End::Abrupt, respond, replied).await,
        },
        Act::ReplyAndReset(bytes) => {
            let replied = reply(&mut respond, &bytes).await;
            end(&ends, End::Reset, respond, replied).await;
        }
        Act::Silence => {
            let _ = poll_fn(|cx| respond.poll_reset(cx)).await;
            *shared.closed.lock().unwrap() += 1;
        }
        Act::Flood { head, piece } => {
            if let Replied::Unfinished(mut stream) = reply(&mut respond, &head).await {
                let piece = Bytes::from(piece);
                while send(&mut stream, piece.clone(), false).await.is_some() {
                    shared.flooded.fetch_add(1, Relaxed);
                }
            }
            *shared.closed.lock().unwrap() += 1;
        }
        Act::Switch(_) => panic!("there is nothing to switch to from HTTP/2"),
    }
}

/// Ends the connection; the call keeps its state until then.
async fn end(
    ends: &mpsc::UnboundedSender<End>,
    how: End,
    mut respond: SendResponse<Bytes>,
    replied: Replied,
) {
    let _ = ends.send(how);
    match replied {
        Replied::Unfinished(mut stream) => drop(poll_fn(|cx| stream.poll_reset(cx)).await),
        _ => drop(poll_fn(|cx| respond.poll_reset(cx)).await),
    }
}

async fn read(request: Request<RecvStream>, connection: usize) -> Option<Seen> {
    let (head, mut incoming) = request.into_parts();
    let mut text = format!("{} {} HTTP/2\r\n", head.method, head.uri.path_and_query()?);
    for (name, value) in &head.headers {
        text.push_str(&format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes())));
    }
    let mut body = Vec::new();
    while let Some(piece) = incoming.data().await {
        let piece = piece.ok()?;
        let _ = incoming.flow_control().release_capacity(piece.len());
        body.extend_from_slice(&piece);
    }
    Some(Seen { head: text, body, connection })
}

/// Sends `bytes`. Without a length, more data follows.
async fn reply(respond: &mut SendResponse<Bytes>, bytes: &[u8]) -> Replied {
    let mut rest = bytes;
    loop {
        let Some(end) = rest.windows(4).position(|window| window == b"\r\n\r\n") else {
            return Replied::Nothing;
        };
        let head = std::str::from_utf8(&rest[..end]).expect("heads are text");
        rest = &rest[end + 4..];
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status");
        let mut response = Response::new(());
        *response.status_mut() = status.parse::<StatusCode>().expect("a status");
        let (mut length, mut is_chunked) = (None, false);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let (name, value) = (name.to_ascii_lowercase(), value.trim());
            match name.as_str() {
                "connection" | "keep-alive" => continue,
                "transfer-encoding" => {
                    is_chunked = true;
                    continue;
                }
                "content-length" => length = value.parse::<usize>().ok(),
                _ => {}
            }
            let value = HeaderValue::from_str(value).expect("visible text");
            response.headers_mut().append(HeaderName::try_from(name).expect("a name"), value);
        }
        if response.status().is_informational() {
            let _ = respond.send_informational(response);
            continue;
        }
        let (body, is_whole) = match length {
            Some(length) if rest.len() >= length => (rest[..length].to_vec(), true),
            None if is_chunked => unchunked(rest),
            _ => (rest.to_vec(), false),
        };
        let Ok(mut stream) = respond.send_response(response, false) else {
            return Replied::Nothing;
        };
        return match send(&mut stream, Bytes::from(body), is_whole).await {
            Some(()) if is_whole => Replied::Whole,
            Some(()) => Replied::Unfinished(stream),
            None => Replied::Nothing,
        };
    }
}

/// Returns the content of chunks, and whether the last one is present.
fn unchunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size =
            std::str::from_utf8(&rest[..end]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.expect("the size of a chunk");
        rest = &rest[end + 2..];
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        rest = rest.get(size + 2..).unwrap_or_default();
    }
    (body, false)
}

/// Sends data as fast as the other side accepts it; none if it has cancelled.
async fn send(stream: &mut SendStream<Bytes>, mut bytes: Bytes, is_last: bool) -> Option<()> {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let capacity = poll_fn(|cx| stream.poll_capacity(cx)).await?.ok()?;
        let piece = bytes.split_to(capacity.min(bytes.len()));
        stream.send_data(piece, false).ok()?;
    }
    if is_last {
        stream.send_data(Bytes::new(), true).ok()?;
    }
    Some(())
}
