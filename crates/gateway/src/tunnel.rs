//! A connection that has gone over to another protocol, such as WebSocket: bytes go both ways, unread, until one side ends, both
//! are silent for too long, or its time is over.

use crate::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;

/// Bytes that are read in one go.
const PIECE_BYTES: usize = 8 * 1024;

/// How long a tunnel may be.
#[derive(Clone, Copy, Debug)]
pub struct TunnelLimits {
    /// Longest time without a byte either way.
    pub idle: Duration,
    /// Longest time in all.
    pub lifetime: Duration,
}

impl Default for TunnelLimits {
    fn default() -> TunnelLimits {
        TunnelLimits { idle: Duration::from_secs(300), lifetime: Duration::from_secs(86_400) }
    }
}

/// The upstream's end, as an extension of its answer. Whoever takes it has it alone.
#[derive(Clone)]
pub(crate) struct Switched(Arc<Mutex<Option<Upgraded>>>);

impl Switched {
    pub(crate) fn new(upgraded: Upgraded) -> Switched {
        Switched(Arc::new(Mutex::new(Some(upgraded))))
    }

    fn take(&self) -> Option<Upgraded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A tunnel whose client's end is not known yet.
pub(crate) struct Tunnel {
    upstream: Upgraded,
    headers: HeaderMap,
    /// Watched by those who count the request: it ends with the tunnel.
    answer: Body,
}

impl Tunnel {
    /// What an answer brings along; the answer is not sent by anyone else.
    pub(crate) fn of(response: &mut http::Response<Body>) -> Option<Tunnel> {
        let upstream = response.extensions_mut().remove::<Switched>()?.take()?;
        let answer = std::mem::take(response.body_mut());
        Some(Tunnel { upstream, headers: response.headers().clone(), answer })
    }

    /// Tells the client that it speaks to the upstream from here on, and has it do so. `early` is what it has said already.
    pub(crate) async fn run<T>(self, mut client: T, early: Bytes, limits: TunnelLimits) -> io::Result<()>
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let Tunnel { upstream, headers, answer } = self;
        let mut upstream = TokioIo::new(upstream);
        client.write_all(&head(&headers)).await?;
        client.flush().await?;
        upstream.write_all(&early).await?;
        upstream.flush().await?;
        let outcome = tokio::time::timeout(limits.lifetime, both_ways(client, upstream, limits.idle)).await;
        drop(answer);
        outcome.unwrap_or_else(|_| {
            tracing::debug!("a tunnel has lived for as long as it may");
            Ok(())
        })
    }
}

fn head(headers: &HeaderMap) -> Vec<u8> {
    let mut head = b"HTTP/1.1 101 Switching Protocols\r\n".to_vec();
    for (name, value) in headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}

async fn both_ways<C, U>(client: C, upstream: U, idle: Duration) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    let began = Instant::now();
    // Milliseconds since then.
    let last = AtomicU64::new(0);
    let (from_client, to_client) = tokio::io::split(client);
    let (from_upstream, to_upstream) = tokio::io::split(upstream);
    let silent = async {
        loop {
            let until = began + Duration::from_millis(last.load(Relaxed)) + idle;
            if Instant::now() >= until {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    };
    let passing = async {
        let up = pass(from_client, to_upstream, began, &last);
        let down = pass(from_upstream, to_client, began, &last);
        tokio::try_join!(up, down).map(drop)
    };
    tokio::select! {
        outcome = passing => outcome,
        () = silent => {
            tracing::debug!("a tunnel was silent for too long");
            Ok(())
        }
    }
}

/// Passes bytes on until there are no more; then the reader is told so.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    began: Instant,
    last: &AtomicU64,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = from.read(&mut piece).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&piece[..count]).await?;
        to.flush().await?;
        let now = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        last.store(now, Relaxed);
    }
}
