//! A body buffered for comparison: its start up to a cap, and a digest of the rest. Two bodies of
//! any size can be proved equal; unequal ones are compared as far as they are buffered.

use bytes::{Bytes, BytesMut};
use sha2::{Digest, Sha256};
use switchback_json::{Container, ErrorKind, Limit, Limits, Reader, Scalar, Sink, Value, ValueBuilder};

/// A body that is still being received.
pub struct Buffering {
    cap_bytes: usize,
    start: BytesMut,
    total_bytes: u64,
    rest: Option<Sha256>,
}

impl Buffering {
    /// Creates an empty buffer that stores at most `cap_bytes`.
    pub fn new(cap_bytes: usize) -> Buffering {
        Buffering { cap_bytes, start: BytesMut::new(), total_bytes: 0, rest: None }
    }

    /// Appends the next chunk.
    pub fn push(&mut self, piece: &[u8]) {
        self.total_bytes += piece.len() as u64;
        let room = self.cap_bytes - self.start.len();
        let (held, rest) = piece.split_at(room.min(piece.len()));
        self.start.extend_from_slice(held);
        if !rest.is_empty() {
            // The start is compared directly, so the digest covers only the rest.
            self.rest.get_or_insert_default().update(rest);
        }
    }

    /// Completes the body.
    pub fn finish(self) -> BufferedAnswer {
        BufferedAnswer {
            start: self.start.freeze(),
            total_bytes: self.total_bytes,
            rest: self.rest.map(|rest| rest.finalize().into()),
        }
    }
}

/// A received body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BufferedAnswer {
    start: Bytes,
    total_bytes: u64,
    /// SHA-256 of the bytes beyond the cap.
    rest: Option<[u8; 32]>,
}

impl BufferedAnswer {
    /// Wraps a body that is buffered completely.
    pub fn whole(body: impl Into<Bytes>) -> BufferedAnswer {
        let start = body.into();
        BufferedAnswer { total_bytes: start.len() as u64, start, rest: None }
    }

    /// Returns the buffered part.
    pub fn start(&self) -> &Bytes {
        &self.start
    }

    /// Returns the length of the body, including the part that is not buffered.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Returns whether the body is buffered completely.
    pub fn is_whole(&self) -> bool {
        self.rest.is_none()
    }

    /// Returns whether the body has no bytes.
    pub fn is_empty(&self) -> bool {
        self.total_bytes == 0
    }

    /// Parses the buffered part as JSON, up to `nodes_max` values.
    pub(super) fn content(&self, nodes_max: usize) -> Content {
        if self.is_empty() {
            return Content::Empty;
        }
        let mut builder = ValueBuilder::default();
        let sink = BoundedSink { builder: &mut builder, nodes_left: nodes_max };
        let mut reader = Reader::new(sink, TREE_LIMITS);
        let end = reader.feed(&self.start).and_then(|()| match self.is_whole() {
            true => reader.finish().map(drop),
            false => Ok(()),
        });
        match end {
            // A reached limit yields a sample; any other error means that the body is not JSON.
            Err(error) if !error.is_limit() => Content::Other,
            end => match builder.finish_open() {
                Some((value, open)) => Content::Json { value, open, whole: end.is_ok() && self.is_whole() },
                None => Content::Unread,
            },
        }
    }
}

/// Limits of the parser. The sink counts the nodes itself, so that reaching that limit yields a
/// sample instead of an error.
const TREE_LIMITS: Limits = Limits {
    depth: 64,
    key_bytes: 4 * 1024,
    scalar_bytes: 16 * 1024 * 1024,
    members: usize::MAX,
    nodes: usize::MAX,
    total_bytes: u64::MAX,
};

/// A body parsed as JSON.
pub(super) enum Content {
    Empty,
    /// Not JSON.
    Other,
    /// The value as far as it was read. `open` is the number of containers, from the root down
    /// along the last children, that were not read to their end. `whole` is set if the body was
    /// read completely.
    Json {
        value: Value,
        open: usize,
        whole: bool,
    },
    /// Possibly JSON, but too little is buffered to build a value.
    Unread,
}

/// A sink that counts the values. It borrows the builder, so that its value survives a parse that
/// stops early.
struct BoundedSink<'b> {
    builder: &'b mut ValueBuilder,
    nodes_left: usize,
}

impl BoundedSink<'_> {
    fn count(&mut self) -> Result<(), ErrorKind> {
        self.nodes_left = self.nodes_left.checked_sub(1).ok_or(ErrorKind::Limit(Limit::Nodes))?;
        Ok(())
    }
}

impl Sink for BoundedSink<'_> {
    fn open(&mut self, container: Container) -> Result<(), ErrorKind> {
        self.count()?;
        self.builder.open(container)
    }

    fn key(&mut self, raw: &str) -> Result<(), ErrorKind> {
        self.builder.key(raw)
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<(), ErrorKind> {
        self.count()?;
        self.builder.scalar(scalar)
    }

    fn close(&mut self, container: Container) -> Result<(), ErrorKind> {
        self.builder.close(container)
    }
}
