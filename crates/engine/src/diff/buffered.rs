//! A body buffered for comparison: its start up to a cap, and a digest of the rest. Two bodies of
//! any size can be proved equal; unequal ones are compared as far as they are buffered.

use bytes::{Bytes, BytesMut};
use sha2::{Digest, Sha256};
use switchback_json::{
    Array, Container, ErrorKind, Limit, Limits, Number, Object, Reader, Scalar, Sink, Str, Value,
};

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
        let mut tree = Tree::default();
        let mut reader = Reader::new(TreeSink { tree: &mut tree, nodes_left: nodes_max }, TREE_LIMITS);
        let end = reader.feed(&self.start).and_then(|()| match self.is_whole() {
            true => reader.finish().map(drop),
            false => Ok(()),
        });
        match end {
            // A reached limit yields a sample; any other error means that the body is not JSON.
            Err(error) if !error.is_limit() => Content::Other,
            end => tree.finish(end.is_ok() && self.is_whole()),
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

/// A partial value under construction.
#[derive(Default)]
struct Tree {
    open: Vec<Open>,
    done: Option<Value>,
}

enum Open {
    Array(Array),
    Object { members: Object, key: Option<Str> },
}

impl Tree {
    fn add(&mut self, value: Value) -> Result<(), ErrorKind> {
        match self.open.last_mut() {
            None => self.done = Some(value),
            Some(Open::Array(values)) => values.push(value),
            Some(Open::Object { members, key }) => {
                let key = key.take().expect("a reader tells a name before each value of an object");
                members.insert_new(key, value).map_err(|_| ErrorKind::DuplicateMember)?;
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), ErrorKind> {
        match self.open.pop().expect("a reader closes what it opened") {
            Open::Array(values) => self.add(Value::Array(values)),
            Open::Object { members, .. } => self.add(Value::Object(members)),
        }
    }

    fn finish(mut self, whole: bool) -> Content {
        let open = self.open.len();
        // Close the containers that were not read to their end, so that the value is complete.
        while !self.open.is_empty() {
            if self.close().is_err() {
                return Content::Other;
            }
        }
        match self.done {
            Some(value) => Content::Json { value, open, whole },
            None => Content::Unread,
        }
    }
}

/// A sink that borrows the tree it builds, so that the tree survives a parse that stops early.
struct TreeSink<'t> {
    tree: &'t mut Tree,
    nodes_left: usize,
}

impl TreeSink<'_> {
    fn count(&mut self) -> Result<(), ErrorKind> {
        self.nodes_left = self.nodes_left.checked_sub(1).ok_or(ErrorKind::Limit(Limit::Nodes))?;
        Ok(())
    }
}

impl Sink for TreeSink<'_> {
    fn open(&mut self, container: Container) -> Result<(), ErrorKind> {
        self.count()?;
        self.tree.open.push(match container {
            Container::Array => Open::Array(Array::new()),
            Container::Object => Open::Object { members: Object::new(), key: None },
        });
        Ok(())
    }

    fn key(&mut self, raw: &str) -> Result<(), ErrorKind> {
        if let Some(Open::Object { key, .. }) = self.tree.open.last_mut() {
            *key = Str::from_raw(raw);
        }
        Ok(())
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<(), ErrorKind> {
        self.count()?;
        let value = match scalar {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Number(text) => Value::Number(Number::from_text(text).ok_or(ErrorKind::InvalidNumber)?),
            Scalar::String(raw) => Value::String(Str::from_raw(raw).ok_or(ErrorKind::InvalidEscape)?),
        };
        self.tree.add(value)
    }

    fn close(&mut self, _: Container) -> Result<(), ErrorKind> {
        self.tree.close()
    }
}
