//! A bounded copy of a body, taken while the body is read, for observers outside the data path such
//! as recording. Copying never delays the reader, which receives all bytes even if they exceed the
//! bound.

use super::{BodyEnd, BodyWatcher};
use bytes::Bytes;

/// The copy of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The first bytes of the body. They are the complete body if [`Copied::is_whole`] returns
    /// true.
    pub bytes: Bytes,
    /// Total bytes of the body that were read.
    pub total: u64,
    /// The outcome: complete, failed, or abandoned by the reader.
    pub end: BodyEnd,
}

impl Copied {
    /// Returns whether the body completed and the copy contains all of it.
    pub fn is_whole(&self) -> bool {
        self.end == BodyEnd::Complete && self.bytes.len() as u64 == self.total
    }
}

/// A [`Watch`] that copies a body up to a bound and calls `done` once with the result. Added with
/// [`super::Body::watched`].
pub(crate) struct Copier<F: FnOnce(Copied) + Send> {
    kept: Vec<u8>,
    bytes_max: usize,
    total: u64,
    done: Option<F>,
}

impl<F: FnOnce(Copied) + Send> Copier<F> {
    /// Returns a copier of the first `bytes_max` bytes. `done` must not block: it runs where the
    /// body is read.
    pub(crate) fn new(bytes_max: usize, done: F) -> Copier<F> {
        Copier { kept: Vec::new(), bytes_max, total: 0, done: Some(done) }
    }
}

impl<F: FnOnce(Copied) + Send> BodyWatcher for Copier<F> {
    fn chunk(&mut self, bytes: &Bytes) {
        self.total += bytes.len() as u64;
        let room = self.bytes_max - self.kept.len();
        // Copy instead of cloning the `Bytes`: a clone keeps the connection's entire read buffer
        // alive, outside any bound.
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end(&mut self, end: BodyEnd) {
        if let Some(done) = self.done.take() {
            done(Copied { bytes: std::mem::take(&mut self.kept).into(), total: self.total, end });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;
    use std::sync::mpsc::{Receiver, channel};

    /// A body of these frames that is copied up to `bytes_max`, and what its copier says.
    fn copied(frames: &[&'static str], bytes_max: usize) -> (Body, Receiver<Copied>) {
        let (sender, body) = Body::channel(frames.len(), None);
        for frame in frames {
            sender.try_send(Ok(Bytes::from_static(frame.as_bytes()))).expect("the channel has room for all");
        }
        let (tell, told) = channel();
        let copier = Copier::new(bytes_max, move |copied| tell.send(copied).expect("the test waits for it"));
        (body.with_watcher(Box::new(copier)), told)
    }

    #[tokio::test]
    async fn the_reader_gets_all_and_the_copy_what_it_has_room_for() {
        for (bytes_max, kept) in [(0, ""), (4, "abcd"), (6, "abcdef"), (7, "abcdef")] {
            let (body, told) = copied(&["abc", "def"], bytes_max);
            assert_eq!(body.whole().await.unwrap(), "abcdef");
            let copied = told.try_recv().unwrap();
            assert_eq!(copied, Copied { bytes: kept.into(), total: 6, end: BodyEnd::Complete });
            assert_eq!(copied.is_whole(), bytes_max >= 6);
        }
    }

    #[tokio::test]
    async fn a_body_that_nobody_reads_to_its_end_is_no_whole_copy() {
        let (mut body, told) = copied(&["abc", "def"], 100);
        body.chunk().await.unwrap().unwrap();
        drop(body);
        let copied = told.try_recv().unwrap();
        assert_eq!((copied.end, &*copied.bytes), (BodyEnd::Abandoned, &b"abc"[..]));
        assert!(!copied.is_whole());
    }
}
