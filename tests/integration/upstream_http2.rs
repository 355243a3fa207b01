//! An upstream with HTTP/2, frame by frame: its frames determine whether a call is repeated.

use crate::support::raw::{PATIENCE, exchange};
use crate::support::serving::Serving;
use crate::support::tls;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The reaction of the upstream to a complete call.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// 200 with an empty list.
    Answer,
    /// RST_STREAM with this code.
    Reset(u32),
    /// GOAWAY with this code, and the call's own stream or the one before as the last; then the end
    /// of the connection.
    GoAway { code: u32, takes_call: bool },
    /// 200, and GOAWAY after this call: all others on the connection are not taken, as with servers
    /// that end a connection after so many calls.
    AnswerAsLast,
    /// The end of the connection.
    Close,
    /// No further frames, for this call or any other on the connection, which remains open.
    FallSilent,
}

const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 11;

const UNTAKEN: [Act; 3] = [
    Act::Reset(REFUSED_STREAM),
    Act::GoAway { code: NO_ERROR, takes_call: false },
    Act::GoAway { code: ENHANCE_YOUR_CALM, takes_call: false },
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_was_not_taken_is_sent_again_whatever_it_does() {
    for act in UNTAKEN {
        for (line, body, status) in CALLS {
            let upstream = Upstream::start(vec![Act::Answer, act, act, Act::Answer]).await;
            let gateway = gateway(&upstream).await;
            // On a connection in use, and then on those that follow it.
            assert_eq!(ask(&gateway, line, body).await, status, "{line}");
            assert_eq!(ask(&gateway, line, body).await, status, "{line} after {act:?}");
            assert_eq!(upstream.calls(), 4, "{line} after {act:?}");
        }
    }
}

/// They meet again on the connection that follows, which takes one of them and turns away the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_are_turned_away_together_are_all_taken_in_the_end() {
    const TOGETHER: usize = 24;
    let upstream = Upstream::start(vec![Act::AnswerAsLast]).await;
    let gateway = gateway(&upstream).await;
    for round in 1..=5 {
        let asking = (0..TOGETHER).map(|_| {
            let (line, body, status) = CALLS[1];
            let asking = ask(&gateway, line, body);
            async move { (asking.await, status) }
        });
        for (answered, wanted) in futures_util::future::join_all(asking).await {
            assert_eq!(answered, wanted, "in round {round}");
        }
        assert_eq!(upstream.calls(), round * TOGETHER, "each was taken once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_takes_nothing_is_not_asked_for_ever() {
    for act in UNTAKEN {
        let upstream = Upstream::start(vec![act]).await;
        let gateway = gateway(&upstream).await;
        let (line, body, _) = CALLS[1];
        assert_eq!(ask(&gateway, line, body).await, 502, "{act:?}");
        assert_eq!(upstream.calls(), 4, "{act:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_may_have_been_taken_is_sent_once() {
    for act in [
        Act::Reset(INTERNAL_ERROR),
        Act::Reset(CANCEL),
        Act::GoAway { code: NO_ERROR, takes_call: true },
        Act::GoAway { code: INTERNAL_ERROR, takes_call: true },
        Act::Close,
    ] {
        let upstream = Upstream::start(vec![act, Act::Answer]).await;
        let gateway = gateway(&upstream).await;
        let (line, body, _) = CALLS[1];
        assert_eq!(ask(&gateway, line, body).await, 502, "{act:?}");
        assert_eq!(upstream.calls(), 1, "{act:?}");
        // A reading may be repeated even so.
        let upstream = Upstream::start(vec![act, Act::Answer]).await;
        let gateway = self::gateway(&upstream).await;
        let (line, body, status) = CALLS[0];
        assert_eq!(ask(&gateway, line, body).await, status, "{act:?}");
        assert_eq!(upstream.calls(), 2, "{act:?}");
    }
}

/// Long before the time for an answer is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_fell_silent_is_given_up() {
    let upstream = Upstream::start(vec![Act::Answer, Act::FallSilent, Act::Answer]).await;
    let limits = "limits: { upstream_idle_timeout: 200ms, connect_timeout: 1s, upstream_timeout: 50s, total_timeout: 60s }\n";
    let gateway = gateway_with(&upstream, limits).await;
    let (read, write) = (CALLS[0], CALLS[1]);
    assert_eq!(ask(&gateway, read.0, read.1).await, read.2);
    assert_eq!(ask(&gateway, write.0, write.1).await, 502);
    assert_eq!(ask(&gateway, write.0, write.1).await, write.2);
    assert_eq!(upstream.calls(), 3);
}

const CALLS: [(&str, &str, u16); 3] = [
    ("GET /v2/agents", "", 200),
    ("POST /v2/chats/1/messages", r#"{"text":"a"}"#, 201),
    ("POST /v2/chats/1/reopen", "", 201),
];

async fn gateway(upstream: &Upstream) -> Serving {
    gateway_with(upstream, "").await
}

async fn gateway_with(upstream: &Upstream, more: &str) -> Serving {
    let clients =
        "clients: [{ name: acme, v2_token: old-token-of-acme, credentials: { v3: new-token-of-acme } }]\n";
    Serving::at(&format!("https://{}/v3", upstream.address), &format!("{clients}{more}")).await
}

async fn ask(gateway: &Serving, line: &str, body: &str) -> u16 {
    let request = format!(
        "{line} HTTP/1.1\r\nhost: gateway.test\r\nx-authorization: Bearer old-token-of-acme\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    exchange(gateway.address, request).await.expect("an answer").status
}

/// A scripted upstream behind TLS. The last act of the script is repeated.
struct Upstream {
    address: SocketAddr,
    calls: Arc<Mutex<usize>>,
    accepting: JoinHandle<()>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Upstream {
    async fn start(script: Vec<Act>) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let (calls, script) = (Arc::<Mutex<usize>>::default(), Arc::new(script));
        let acceptor = tls::upstream_acceptor(&["h2"]);
        let counted = Arc::clone(&calls);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, script, calls) = (acceptor.clone(), Arc::clone(&script), Arc::clone(&counted));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let serving = serve(stream, &script, &calls);
                    let _ = tokio::time::timeout(PATIENCE, serving).await;
                });
            }
        });
        Upstream { address, calls, accepting }
    }

    /// Calls read so far.
    fn calls(&self) -> usize {
        *self.calls.lock().unwrap()
    }
}

/// Types of frames (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
/// Flags of frames.
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    script: &[Act],
    calls: &Mutex<usize>,
) -> std::io::Result<()> {
    stream.read_exact(&mut [0; 24]).await?;
    send(&mut stream, SETTINGS, 0, 0, &[]).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await?;
        match kind {
            SETTINGS if flags & ACK == 0 => send(&mut stream, SETTINGS, ACK, 0, &[]).await?,
            PING if flags & ACK == 0 => send(&mut stream, PING, ACK, 0, &payload).await?,
            HEADERS | DATA if flags & END_STREAM != 0 => {
                let act = {
                    let mut calls = calls.lock().unwrap();
                    *calls += 1;
                    script[(*calls - 1).min(script.len() - 1)]
                };
                match act {
                    Act::Answer | Act::AnswerAsLast => {
                        // `:status: 200`, and `content-type` by its place in the static table (RFC
                        // 7541, appendix A).
                        let mut fields = vec![0x88, 0x0f, 31 - 15, 16];
                        fields.extend_from_slice(b"application/json");
                        send(&mut stream, HEADERS, END_HEADERS, id, &fields).await?;
                        send(&mut stream, DATA, END_STREAM, id, b"[]").await?;
                        if let Act::AnswerAsLast = act {
                            let payload = [id.to_be_bytes(), NO_ERROR.to_be_bytes()].concat();
                            send(&mut stream, GOAWAY, 0, 0, &payload).await?;
                            // Other frames are read and discarded, so that no sent data is lost.
                            return tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.map(drop);
                        }
                    }
                    Act::Reset(code) => send(&mut stream, RST_STREAM, 0, id, &code.to_be_bytes()).await?,
                    Act::GoAway { code, takes_call } => {
                        let last = if takes_call { id } else { id.saturating_sub(2) };
                        let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
                        send(&mut stream, GOAWAY, 0, 0, &payload).await?;
                        return stream.shutdown().await;
                    }
                    Act::Close => return stream.shutdown().await,
                    Act::FallSilent => std::future::pending().await,
                }
            }
            _ => {}
        }
    }
}

async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    kind: u8,
    flags: u8,
    id: u32,
    payload: &[u8],
) -> std::io::Result<()> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&id.to_be_bytes());
    frame.extend_from_slice(payload);
    stream.write_all(&frame).await?;
    stream.flush().await
}
