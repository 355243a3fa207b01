//! Buffering of bodies, with a limit for each body and a shared memory budget for all of them.

use crate::body::Body;
use crate::error::{ErrorKind, ErrorSide, GatewayError};
use crate::memory::{Memory, MemoryShare, Short};
use crate::proxy::concurrency::limit_error;
use bytes::{Bytes, BytesMut};

/// Bytes gathered before the task yields.
const TURN_BYTES: u64 = 128 * 1024;

/// A buffered body and its share of the memory budget.
#[derive(Debug)]
pub struct Buffered {
    /// The complete body.
    pub bytes: Bytes,
    /// Memory reserved for `bytes`; must live as long as they do. Dropping it releases the memory.
    pub share: MemoryShare,
}

impl Buffered {
    /// Returns a body without bytes.
    pub(crate) fn empty(memory: &Memory) -> Buffered {
        Buffered { bytes: Bytes::new(), share: memory.share() }
    }
}

/// Buffers a body. A body over `bytes_max` bytes is an error of `side`, its sender; an exhausted
/// memory budget is an overload. Memory is reserved before it is allocated, and at once if the
/// length is announced.
///
/// # Errors
///
/// Returns an error if the body is too large, breaks off or arrives too slowly, or if the memory
/// budget is exhausted.
pub async fn buffer(
    mut body: Body,
    side: ErrorSide,
    bytes_max: u64,
    mut share: MemoryShare,
) -> Result<Buffered, GatewayError> {
    let announced = body.length().unwrap_or(0);
    if announced > bytes_max {
        return Err(too_large(side, bytes_max));
    }
    grow(&mut share, announced)?;
    let bytes = gather(&mut body, side, bytes_max, announced, &mut share).await?;
    Ok(Buffered { bytes, share })
}

/// Buffers the body of a client, as [`buffer`] does. If there is no memory for it, the body is read
/// and discarded before the error is returned: closing a connection while the client sends would
/// lose the response (RFC 9112, section 9.6), and with it the `Retry-After`. A client that sent
/// `Expect: 100-continue` (`waits`) has not sent the body yet, so the error is returned at once.
pub(crate) async fn buffer_request(
    mut body: Body,
    bytes_max: u64,
    mut share: MemoryShare,
    waits: bool,
) -> Result<Buffered, GatewayError> {
    let announced = body.length().unwrap_or(0);
    if announced > bytes_max {
        return Err(too_large(ErrorSide::Client, bytes_max));
    }
    // Only an overload is worth reading the body for, because the client may retry it.
    let is_refusal = |error: &GatewayError| matches!(error.kind(), ErrorKind::Overloaded { .. });
    let outcome = match grow(&mut share, announced) {
        Ok(()) => gather(&mut body, ErrorSide::Client, bytes_max, announced, &mut share).await,
        Err(error) if waits => return Err(error),
        Err(error) => Err(error),
    };
    if outcome.as_ref().is_err_and(is_refusal) {
        let mut read = 0;
        while let Some(Ok(chunk)) = body.chunk().await {
            read += chunk.len() as u64;
            if read > bytes_max {
                break;
            }
        }
    }
    outcome.map(|bytes| Buffered { bytes, share })
}

async fn gather(
    body: &mut Body,
    side: ErrorSide,
    bytes_max: u64,
    announced: u64,
    share: &mut MemoryShare,
) -> Result<Bytes, GatewayError> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let mut came = 0;
    while let Some(chunk) = body.chunk().await.transpose()? {
        came += chunk.len() as u64;
        if came > bytes_max {
            return Err(too_large(side, bytes_max));
        }
        // Most bodies arrive in one frame, which is returned without a copy.
        if first.is_empty() && all.is_empty() {
            grow(share, came)?;
            first = chunk;
            continue;
        }
        let wanted = all.len() + first.len() + chunk.len();
        if wanted > all.capacity() {
            // Reserve the announced length at once, so that bytes are copied only once; otherwise
            // double the capacity. Both buffers exist while the bytes are copied, so both are
            // accounted for.
            let capacity = wanted.max(usize::try_from(announced).unwrap_or(0)).max(all.capacity() * 2);
            grow(share, (capacity + all.capacity()) as u64)?;
            all.reserve(capacity - all.len());
        }
        all.extend_from_slice(&std::mem::take(&mut first));
        all.extend_from_slice(&chunk);
        // Bytes that have already arrived never make `chunk` wait, and decoding them takes time.
        // Yield so that other tasks can run.
        if came / TURN_BYTES != (came - chunk.len() as u64) / TURN_BYTES {
            tokio::task::yield_now().await;
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// Grows the share to cover `bytes`.
fn grow(share: &mut MemoryShare, bytes: u64) -> Result<(), GatewayError> {
    let more = bytes.saturating_sub(share.bytes());
    if more == 0 {
        return Ok(());
    }
    share.grow(more).map_err(|Short| limit_error("memory"))
}

fn too_large(side: ErrorSide, bytes_max: u64) -> GatewayError {
    let kind = if side == ErrorSide::Client { ErrorKind::TooLarge } else { ErrorKind::UpstreamBroken };
    GatewayError::new(kind, format!("a body of the {} is larger than {bytes_max} bytes", side.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn held(
        pieces: &[&'static str],
        bytes_max: u64,
        memory: &Memory,
    ) -> Result<Buffered, GatewayError> {
        let (sender, body) = Body::channel(pieces.len().max(1), None);
        for piece in pieces {
            sender.send(Ok(Bytes::from_static(piece.as_bytes()))).await.unwrap();
        }
        drop(sender);
        buffer(body, ErrorSide::Client, bytes_max, memory.share()).await
    }

    #[tokio::test]
    async fn what_is_held_counts_until_it_is_let_go() {
        let memory = Memory::new(10);
        let first = held(&["abc", "de"], 5, &memory).await.unwrap();
        assert_eq!((&first.bytes[..], memory.bytes_used()), (&b"abcde"[..], 5));
        let second = held(&["abcde"], 5, &memory).await.unwrap();
        let third = held(&["x"], 5, &memory).await.unwrap_err();
        assert!(matches!(third.kind(), ErrorKind::Overloaded { .. }));
        drop((first, second));
        assert_eq!(memory.bytes_used(), 0);
    }

    #[tokio::test]
    async fn what_is_announced_is_taken_before_it_comes_and_what_grows_is_counted_as_it_is_taken() {
        let memory = Memory::new(1000);
        let (sender, body) = Body::channel(1, Some(600));
        let mut holding = Box::pin(buffer(body, ErrorSide::Client, 1000, memory.share()));
        assert!(futures_util::poll!(&mut holding).is_pending());
        assert_eq!(memory.bytes_used(), 600);
        let second = buffer_request(Body::full(vec![0; 600]), 1000, memory.share(), false).await;
        assert!(matches!(second.unwrap_err().kind(), ErrorKind::Overloaded { .. }));
        drop(sender);
        drop(holding);
        let grown = held(&["a"; 100], 1000, &memory).await.unwrap();
        assert_eq!(grown.bytes.len(), 100);
        assert!(
            memory.bytes_used() >= 100 + 64,
            "growing holds the old and the new: {}",
            memory.bytes_used()
        );
        drop(grown);
        assert_eq!(memory.bytes_used(), 0);
    }

    #[tokio::test]
    async fn a_refused_client_is_read_to_its_end_unless_it_waits_to_be_asked() {
        let memory = Memory::new(1);
        for waits in [false, true] {
            let (sender, body) = Body::channel(2, Some(4));
            sender.try_send(Ok(Bytes::from_static(b"ab"))).unwrap();
            sender.try_send(Ok(Bytes::from_static(b"cd"))).unwrap();
            let holding = buffer_request(body, 10, memory.share(), waits);
            tokio::pin!(holding);
            let polled = futures_util::poll!(&mut holding);
            // The reader has consumed the buffered bytes and waits for the rest.
            assert_eq!(polled.is_ready(), waits);
            assert_eq!((sender.is_closed(), sender.capacity() == 2), (waits, true));
        }
    }

    #[tokio::test]
    async fn one_byte_too_many_is_refused_and_nothing_stays_held() {
        let memory = Memory::new(100);
        assert_eq!(*held(&["abc", "def"], 5, &memory).await.unwrap_err().kind(), ErrorKind::TooLarge);
        let announced = buffer(Body::full("abcdef"), ErrorSide::Client, 5, memory.share()).await;
        assert_eq!(*announced.unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!(held(&[], 5, &memory).await.unwrap().bytes.len(), 0);
        assert_eq!(memory.bytes_used(), 0);
    }
}
