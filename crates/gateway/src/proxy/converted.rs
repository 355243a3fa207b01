//! Bodies of upstreams, converted while they pass. A small one is converted whole before the client hears anything, so that
//! a fault in it is still a 502; a larger one goes out as it comes, in memory that does not depend on its size, and a late
//! fault breaks the answer off: it never ends as if it were complete.

use crate::body::Body;
use crate::error::{GatewayError, Kind, Side};
use bytes::Bytes;
use http_body::Frame;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use switchback_engine::translate::TranslateError;
use switchback_engine::translate::stream::Transcoder;

/// Pieces of a body that are taken in one go when nothing comes of them, as nothing does of white space. Then others get their
/// turn, the timer of whoever waits for the answer among them.
const SILENT_PIECES_MAX: usize = 16;

/// A body that is all here, converted.
pub fn converted_whole(body: Bytes, mut transcoder: Transcoder) -> Result<Body, GatewayError> {
    let out = transcoder.push(body).map_err(|error| broken(&error))?;
    let mut last = Vec::new();
    transcoder.finish(&mut last).map_err(|error| broken(&error))?;
    Ok(Body::full(joined(out, last.into())))
}

/// The converted body. Up to `whole_bytes_max` bytes of `body` are converted before this returns.
pub async fn converted(
    mut body: Body,
    mut transcoder: Box<Transcoder>,
    whole_bytes_max: u64,
) -> Result<Body, GatewayError> {
    let announced = body.length();
    let mut came = 0;
    let mut out = Bytes::new();
    while announced.is_none_or(|length| length <= whole_bytes_max) && came <= whole_bytes_max {
        match body.chunk().await.transpose()? {
            Some(chunk) => {
                came += chunk.len() as u64;
                out = joined(out, transcoder.push(chunk).map_err(|error| broken(&error))?);
            }
            None => {
                let mut last = Vec::new();
                transcoder.finish(&mut last).map_err(|error| broken(&error))?;
                return Ok(Body::full(joined(out, last.into())));
            }
        }
    }
    let ready = Some(out).filter(|out| !out.is_empty());
    Ok(Body::stream(Converted { body, transcoder: Some(transcoder), ready }, Side::Upstream))
}

/// Both, without a copy where one is empty: the usual body is one chunk, after which nothing is left to be said.
fn joined(first: Bytes, second: Bytes) -> Bytes {
    match (first.is_empty(), second.is_empty()) {
        (true, _) => second,
        (_, true) => first,
        (false, false) => [first, second].concat().into(),
    }
}

fn broken(error: &TranslateError) -> GatewayError {
    GatewayError::new(Kind::UpstreamBroken, "an answer cannot be translated").because(error.clone())
}

/// A body that is converted while it is read.
struct Converted {
    body: Body,
    /// None when it has said its last.
    transcoder: Option<Box<Transcoder>>,
    ready: Option<Bytes>,
}

impl Converted {
    fn push(&mut self, chunk: Bytes) -> Result<Bytes, GatewayError> {
        self.transcoder
            .as_mut()
            .map_or(Ok(Bytes::new()), |transcoder| transcoder.push(chunk))
            .map_err(|e| broken(&e))
    }

    fn finish(&mut self) -> Result<Bytes, GatewayError> {
        let mut last = Vec::new();
        self.transcoder
            .take()
            .map_or(Ok(()), |transcoder| transcoder.finish(&mut last))
            .map_err(|e| broken(&e))?;
        Ok(last.into())
    }
}

impl http_body::Body for Converted {
    type Data = Bytes;
    type Error = GatewayError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        let this = self.get_mut();
        for _ in 0..SILENT_PIECES_MAX {
            if let Some(ready) = this.ready.take() {
                return Poll::Ready(Some(Ok(Frame::data(ready))));
            }
            if this.transcoder.is_none() {
                return Poll::Ready(None);
            }
            let made = match ready!(http_body::Body::poll_frame(Pin::new(&mut this.body), cx)) {
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => this.push(frame.into_data().unwrap_or_default())?,
                None => this.finish()?,
            };
            this.ready = Some(made).filter(|made| !made.is_empty());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use switchback_engine::translate::stream::{Bounds, Check, Program, Values};
    use switchback_plan::ValueOp;

    fn transcoder() -> Box<Transcoder> {
        let program = Arc::new(Program::compile(&ValueOp::Array(Box::new(ValueOp::Keep))));
        Box::new(Transcoder::new(program, Arc::new(Values::default()), Check::Lenient, Bounds::default()))
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
        let whole = converted(body(&["[1", ",2", "]"]), transcoder(), 100).await.unwrap();
        assert_eq!(whole.length(), Some(5));
        assert_eq!(whole.collect(100).await.unwrap(), "[1,2]");
        assert!(converted(body(&["[1", ",2"]), transcoder(), 100).await.is_err());
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
        let blank = Body::stream(Blank(0), Side::Upstream);
        let streamed = converted(blank, transcoder(), 1).await.unwrap();
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(5), streamed.collect(100));
        assert!(waiting.await.is_err(), "the timer was not asked until the body ended");
    }

    #[tokio::test]
    async fn a_large_body_streams_and_breaks_off_where_it_is_cut() {
        let streamed = converted(body(&["[1", ",2", "]"]), transcoder(), 1).await.unwrap();
        assert_eq!(streamed.length(), None);
        assert_eq!(streamed.collect(100).await.unwrap(), "[1,2]");
        let cut = converted(body(&["[1", ",2"]), transcoder(), 1).await.unwrap();
        assert_eq!(*cut.collect(100).await.unwrap_err().kind(), Kind::UpstreamBroken);
    }
}
