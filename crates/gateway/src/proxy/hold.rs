//! Bodies that have to be held whole, within a bound for each and a bound for all of them together.

use super::limit::refused;
use crate::body::Body;
use crate::error::{GatewayError, Kind, Side};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The memory that all held bodies share.
#[derive(Clone, Debug)]
pub struct Memory {
    used: Arc<AtomicU64>,
    bytes_max: u64,
}

impl Memory {
    pub fn new(bytes_max: u64) -> Memory {
        Memory { used: Arc::default(), bytes_max }
    }

    fn take(&self) -> Share {
        Share { memory: self.clone(), bytes: 0 }
    }

    /// Bytes held now.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }
}

/// What one body uses of the shared memory, given back when dropped.
#[derive(Debug)]
pub struct Share {
    memory: Memory,
    bytes: u64,
}

impl Share {
    fn grow(&mut self, bytes: u64) -> Result<(), GatewayError> {
        self.bytes += bytes;
        if self.memory.used.fetch_add(bytes, Relaxed) + bytes > self.memory.bytes_max {
            return Err(refused("held_bytes"));
        }
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Relaxed);
    }
}

/// A body held whole, and its share of the memory.
#[derive(Debug)]
pub struct Held {
    pub bytes: Bytes,
    pub share: Share,
}

impl Held {
    /// A body without bytes.
    pub fn empty(memory: &Memory) -> Held {
        Held { bytes: Bytes::new(), share: memory.take() }
    }
}

/// Reads all of a body. More than `bytes_max` bytes are an error of `side`, who sends it; more than the shared memory can
/// take is an overload. Nothing is held beyond either.
pub async fn hold(mut body: Body, side: Side, bytes_max: u64, memory: &Memory) -> Result<Held, GatewayError> {
    let mut share = memory.take();
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let announced = body.length().unwrap_or(0);
    if announced > bytes_max {
        return Err(too_large(side, bytes_max));
    }
    while let Some(chunk) = body.chunk().await.transpose()? {
        if share.bytes + chunk.len() as u64 > bytes_max {
            return Err(too_large(side, bytes_max));
        }
        share.grow(chunk.len() as u64)?;
        // The usual body is one frame: it is handed on without a copy.
        if first.is_empty() && all.is_empty() {
            first = chunk;
            continue;
        }
        if all.is_empty() {
            // An announced length was checked above; what is announced is reserved at once, to copy only once.
            all.reserve(usize::try_from(announced).unwrap_or(0).max(first.len() + chunk.len()));
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&chunk);
    }
    Ok(Held { bytes: if all.is_empty() { first } else { all.freeze() }, share })
}

fn too_large(side: Side, bytes_max: u64) -> GatewayError {
    let kind = if side == Side::Client { Kind::TooLarge } else { Kind::UpstreamBroken };
    GatewayError::new(kind, format!("a body of the {} is larger than {bytes_max} bytes", side.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn held(pieces: &[&'static str], bytes_max: u64, memory: &Memory) -> Result<Held, GatewayError> {
        let (sender, body) = Body::channel(pieces.len().max(1), None);
        for piece in pieces {
            sender.send(Ok(Bytes::from_static(piece.as_bytes()))).await.unwrap();
        }
        drop(sender);
        hold(body, Side::Client, bytes_max, memory).await
    }

    #[tokio::test]
    async fn what_is_held_counts_until_it_is_let_go() {
        let memory = Memory::new(10);
        let first = held(&["abc", "de"], 5, &memory).await.unwrap();
        assert_eq!((&first.bytes[..], memory.used()), (&b"abcde"[..], 5));
        let second = held(&["abcde"], 5, &memory).await.unwrap();
        let third = held(&["x"], 5, &memory).await.unwrap_err();
        assert!(matches!(third.kind(), Kind::Overloaded { .. }));
        drop((first, second));
        assert_eq!(memory.used(), 0);
    }

    #[tokio::test]
    async fn one_byte_too_many_is_refused_and_nothing_stays_held() {
        let memory = Memory::new(100);
        assert_eq!(*held(&["abc", "def"], 5, &memory).await.unwrap_err().kind(), Kind::TooLarge);
        assert_eq!(held(&[], 5, &memory).await.unwrap().bytes.len(), 0);
        assert_eq!(memory.used(), 0);
    }
}
