//! A connection that has switched to another protocol, such as WebSocket. Bytes are forwarded in
//! both directions without inspection until one side closes, both stay silent too long, or the
//! maximum lifetime expires.

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

/// Size of the read buffer of each direction.
const PIECE_BYTES: usize = 8 * 1024;

/// Time limits of a tunnel.
#[derive(Clone, Copy, Debug)]
pub struct TunnelLimits {
    /// Longest time without a byte in either direction.
    pub idle: Duration,
    /// Longest total duration.
    pub lifetime: Duration,
}

impl Default for TunnelLimits {
    fn default() -> TunnelLimits {
        TunnelLimits { idle: Duration::from_secs(300), lifetime: Duration::from_secs(86_400) }
    }
}

/// The upstream end of the tunnel, stored as an extension of its response. The first `take` removes
/// it; clones share it.
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

/// A tunnel with its upstream end, before the client end is available.
pub(crate) struct Tunnel {
    upstream: Upgraded,
    headers: HeaderMap,
    /// The response's body. Its watchers count the request, so dropping it when the tunnel closes
    /// ends their measurement.
    answer: Body,
}

impl Tunnel {
    /// Extracts the tunnel from a response. Returns `None` if the upstream did not switch
    /// protocols.
    pub(crate) fn take_from(response: &mut http::Response<Body>) -> Option<Tunnel> {
        let upstream = response.extensions_mut().remove::<Switched>()?.take()?;
        let answer = std::mem::take(response.body_mut());
        Some(Tunnel { upstream, headers: response.headers().clone(), answer })
    }

    /// Sends the client the `101` response, then forwards bytes in both directions. `early` holds
    /// the bytes that the client sent before the switch.
    pub(crate) async fn run<T>(self, mut client: T, early: Bytes, limits: TunnelLimits) -> io::Result<()>
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let Tunnel { upstream, headers, answer } = self;
        let mut upstream = TokioIo::new(upstream);
        client.write_all(&head(&headers)).await?;
        client.flush().await?;
        // These bytes followed the request head and have already been read from the socket.
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
    // Time of the last byte, in milliseconds since `began`.
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

/// Copies bytes until the reader reaches its end, then shuts down the writer.
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
