//! Streaming translation of response bodies. The start of a body is translated before the response
//! head is sent, so that errors in it, and all errors in small bodies, become a 502. The rest of a
//! larger body streams through in constant memory. A late error aborts the response, which then
//! never looks complete.

use super::coding::{may_be_mark, without_mark};
use crate::body::Body;
use crate::error::{ErrorKind, ErrorSide, GatewayError};
use bytes::{Bytes, BytesMut};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use switchback_engine::translate::TranslateError;
use switchback_engine::translate::stream::Transcoder;
use switchback_plan::Origin;

/// Pieces processed per poll without any output, as with long runs of white space. The task then
/// yields, so that other tasks and the timeout of this one can run.
const SILENT_PIECES_MAX: usize = 16;

/// Translates a complete body. `line` is the mapping line of the route, for errors.
///
/// # Errors
///
/// Returns an error if the body does not match the plan.
pub(super) fn converted_whole(
    body: Bytes,
    mut transcoder: Transcoder,
    line: &Origin,
) -> Result<Body, GatewayError> {
    let out = transcoder.push(without_mark(body)).map_err(|error| broken(&error, line))?;
    let mut last = Vec::new();
    transcoder.finish(&mut last).map_err(|error| broken(&error, line))?;
    Ok(Body::full(join(out, last.into())))
}

/// Translates a body. Returns after `whole_bytes_max` bytes of `body`, or later if there is no
/// output yet, so that the head is never sent for a response that turns out to be invalid. `waited`
/// receives each time spent waiting for `body`.
///
/// # Errors
///
/// Returns an error if this first part of the body breaks off or does not match the plan.
pub(super) async fn convert(
    body: Body,
    transcoder: Box<Transcoder>,
    whole_bytes_max: u64,
    line: &Origin,
    waited: impl Fn(Duration),
) -> Result<Body, GatewayError> {
    let mut converted = Converted {
        body,
        transcoder: Some(transcoder),
        start: Some(Bytes::new()),
        ready: None,
        came: 0,
        line: line.clone(),
    };
    let mut out = Pieces::default();
    let mut pieces = 0;
    while converted.came <= whole_bytes_max || out.is_empty() {
        let started = Instant::now();
        let chunk = converted.body.chunk().await;
        waited(started.elapsed());
        let chunk = chunk.transpose().map_err(|error| converted.broke_off(error))?;
        let Some(chunk) = chunk else {
            out.add(converted.finish()?);
            return Ok(Body::full(out.into_bytes()));
        };
        out.add(converted.push(chunk)?);
        pieces += 1;
        if pieces % SILENT_PIECES_MAX == 0 {
            // Bytes that have already arrived never make `chunk` wait. Yield so that other tasks
            // can run.
            tokio::task::yield_now().await;
        }
    }
    converted.ready = Some(out.into_bytes());
    Ok(Body::generated(move |cx| converted.poll_chunk(cx), ErrorSide::Upstream))
}

/// Concatenated pieces of a text; a single piece is not copied.
#[derive(Default)]
struct Pieces {
    first: Bytes,
    all: BytesMut,
}

impl Pieces {
    fn is_empty(&self) -> bool {
        self.first.is_empty() && self.all.is_empty()
    }

    fn add(&mut self, piece: Bytes) {
        if self.is_empty() {
            self.first = piece;
        } else if !piece.is_empty() {
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
            self.all.extend_from_slice(&piece);
        }
    }

    fn into_bytes(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.freeze() }
    }
}

/// Concatenates two pieces without a copy if one is empty. Usually the body is one chunk and the
/// transcoder's last output is empty.
fn join(first: Bytes, second: Bytes) -> Bytes {
    match (first.is_empty(), second.is_empty()) {
        (true, _) => second,
        (_, true) => first,
        (false, false) => [first, second].concat().into(),
    }
}

fn broken(error: &TranslateError, line: &Origin) -> GatewayError {
    let detail = format!("an answer cannot be translated ({}:{})", line.file, line.line);
    GatewayError::new(ErrorKind::UpstreamBroken, detail).because(error.clone())
}

/// A body that is translated while it is read.
struct Converted {
    body: Body,
    /// `None` after the end of the body.
    transcoder: Option<Box<Transcoder>>,
    /// Bytes buffered until it is known whether the text starts with a byte order mark.
    start: Option<Bytes>,
    ready: Option<Bytes>,
    /// Bytes received so far.
    came: u64,
    /// Mapping line of the route.
    line: Origin,
}

impl Converted {
    fn push(&mut self, mut chunk: Bytes) -> Result<Bytes, GatewayError> {
        self.came += chunk.len() as u64;
        if let Some(start) = self.start.take() {
            // The mark may be cut between two chunks.
            chunk = join(start, chunk);
            if may_be_mark(&chunk) {
                self.start = Some(chunk);
                return Ok(Bytes::new());
            }
            chunk = without_mark(chunk);
        }
        self.convert(chunk)
    }

    fn convert(&mut self, chunk: Bytes) -> Result<Bytes, GatewayError> {
        self.transcoder
            .as_mut()
            .map_or(Ok(Bytes::new()), |transcoder| transcoder.push(chunk))
            .map_err(|error| broken(&error, &self.line))
    }

    fn finish(&mut self) -> Result<Bytes, GatewayError> {
        let out = match self.start.take() {
            Some(start) => self.convert(start)?,
            None => Bytes::new(),
        };
        let mut last = Vec::new();
        self.transcoder
            .take()
            .map_or(Ok(()), |transcoder| transcoder.finish(&mut last))
            .map_err(|error| broken(&error, &self.line))?;
        Ok(join(out, last.into()))
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, GatewayError>>> {
        for _ in 0..SILENT_PIECES_MAX {
            if let Some(ready) = self.ready.take() {
                return Poll::Ready(Some(Ok(ready)));
            }
            if self.transcoder.is_none() {
                return Poll::Ready(None);
            }
            let chunk = ready!(self.body.poll_chunk(cx)).transpose();
            let made = match chunk.map_err(|error| self.broke_off(error))? {
                Some(chunk) => self.push(chunk)?,
                None => self.finish()?,
            };
            self.ready = Some(made).filter(|made| !made.is_empty());
        }
        // The pieces produced no output. Yield to the runtime, but stay scheduled.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Adds the current position to an error of the body itself.
    fn broke_off(&self, error: GatewayError) -> GatewayError {
        let place = self.transcoder.as_ref().map_or_else(|| "$".to_owned(), |transcoder| transcoder.place());
        let Origin { file, line } = &self.line;
        error.at(&format!("after {} bytes, at {place} ({file}:{line})", self.came))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Frame;
    use std::pin::Pin;
    use std::sync::Arc;
    use switchback_engine::translate::stream::{Bounds, Program, Values};
    use switchback_plan::ValueOp;

    fn line() -> Origin {
        Origin { file: "things.map.yaml".into(), line: 7 }
    }

    fn transcoder() -> Box<Transcoder> {
        let program = Arc::new(Program::compile(&ValueOp::Array(Box::new(ValueOp::Keep))));
        Box::new(Transcoder::new(program, Arc::new(Values::default()), Bounds::default()))
    }

    fn body(pieces: &[&'static str]) -> Body {
        let (sender, body) = Body::channel(pieces.len(), None);
        for piece in pieces {
            sender.try_send(Ok(Bytes::from_static(piece.as_bytes()))).unwrap();
        }
        body
    }

    #[tokio::test]
    async fn a_small_body_is_whole_before_it_is_answered() {
        let whole = convert(body(&["[1", ",2", "]"]), transcoder(), 100, &line(), |_| {}).await.unwrap();
        assert_eq!(whole.length(), Some(5));
        assert_eq!(whole.whole().await.unwrap(), "[1,2]");
        assert!(convert(body(&["[1", ",2"]), transcoder(), 100, &line(), |_| {}).await.is_err());
    }

    /// White space that is always there already.
    struct Blank(usize);

    impl http_body::Body for Blank {
        type Data = Bytes;
        type Error = GatewayError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
            self.0 += 1;
            // Far more than anyone waits for, and still an end, for a test that fails.
            let more = (self.0 < 2_000_000).then(|| Ok(Frame::data(Bytes::from_static(b"  "))));
            Poll::Ready(more)
        }
    }

    #[tokio::test]
    async fn white_space_without_end_leaves_the_timer_its_turn() {
        let blank = Body::stream(Blank(0), ErrorSide::Upstream);
        let converting = async { convert(blank, transcoder(), 1, &line(), |_| {}).await?.whole().await };
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(5), converting);
        assert!(waiting.await.is_err(), "the timer was not asked until the body ended");
    }

    #[tokio::test]
    async fn a_large_body_streams_and_breaks_off_where_it_is_cut() {
        let streamed = convert(body(&["[1", ",2", "]"]), transcoder(), 1, &line(), |_| {}).await.unwrap();
        assert_eq!(streamed.length(), None);
        assert_eq!(streamed.whole().await.unwrap(), "[1,2]");
        let cut = convert(body(&["[1", ",2"]), transcoder(), 1, &line(), |_| {}).await.unwrap();
        assert_eq!(*cut.whole().await.unwrap_err().kind(), ErrorKind::UpstreamBroken);
    }

    #[tokio::test]
    async fn a_large_body_that_begins_wrongly_is_no_answer() {
        for pieces in [&["<html>", "sign in"][..], &["  ", " ", "{\"a\":1}"], &["[\u{1}"], &["", "  "]] {
            let error = convert(body(pieces), transcoder(), 1, &line(), |_| {}).await.unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::UpstreamBroken, "{pieces:?}");
            assert!(error.detail().contains("things.map.yaml:7"), "{error:?}");
        }
    }

    #[tokio::test]
    async fn a_byte_order_mark_is_passed_over_however_it_comes() {
        for pieces in [&["\u{feff}[1,2]"][..], &["\u{feff}", "[1,2]"], &["", "\u{feff}[1", ",2]"]] {
            let whole = convert(body(pieces), transcoder(), 100, &line(), |_| {}).await.unwrap();
            assert_eq!(whole.whole().await.unwrap(), "[1,2]", "{pieces:?}");
        }
        let (sender, split) = Body::channel(4, None);
        for piece in [&b"\xef"[..], b"\xbb", b"\xbf[1", b",2]"] {
            sender.try_send(Ok(Bytes::from_static(piece))).unwrap();
        }
        drop(sender);
        let whole = convert(split, transcoder(), 100, &line(), |_| {}).await.unwrap();
        assert_eq!(whole.whole().await.unwrap(), "[1,2]");
    }

    #[tokio::test]
    async fn a_body_that_is_cut_says_where_it_was() {
        let (sender, cut) = Body::channel(2, None);
        sender.try_send(Ok(Bytes::from_static(b"[1,2,"))).unwrap();
        sender.try_send(Err(GatewayError::new(ErrorKind::UpstreamClosed, "it broke off"))).unwrap();
        let streamed = convert(cut, transcoder(), 1, &line(), |_| {}).await.unwrap();
        let error = streamed.whole().await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::UpstreamClosed);
        assert_eq!(error.detail(), "it broke off, after 5 bytes, at $[*] (things.map.yaml:7)");
    }
}
