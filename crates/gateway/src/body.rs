//! The single body type of the data path, for requests and responses of both hops. It yields data
//! frames. Trailers are yielded only for messages that are forwarded unchanged
//! ([`Body::with_trailers`]); a translated message must not depend on them (RFC 9112, section
//! 7.1.2).
//!
//! A body is empty, fully buffered, read from the wire, or produced by a task or stream. Limits on
//! bytes and on the time between frames belong to the body, so no reader can forget them. Watchers
//! ([`BodyWatcher`]) observe the bytes and the outcome. They and the permits of a body live until it
//! ends.

mod beginning;
mod copy;
mod last_byte;

pub(crate) use beginning::BodyStart;
pub use copy::Copied;
pub(crate) use copy::Copier;
pub(crate) use last_byte::LastByte;

use crate::error::{ErrorKind, ErrorSide, GatewayError};
use crate::permit::Permit;
use bytes::Bytes;
use futures_util::stream;
use http::HeaderMap;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

/// The outcome of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// The body was read to its end.
    Complete,
    /// Reading failed with an error.
    Failed,
    /// The reader dropped the body early.
    Abandoned,
}

/// An observer of a body. It is dropped after `end`.
pub trait BodyWatcher: Send {
    /// Observes the bytes of one frame.
    fn chunk(&mut self, bytes: &Bytes);
    /// Observes the error that interrupts the body. A call of `end` with [`BodyEnd::Failed`] follows.
    fn on_error(&mut self, _error: &GatewayError) {}
    /// Observes the outcome. Called exactly once.
    fn end(&mut self, end: BodyEnd);
}

/// Log text for a response whose body was interrupted.
pub(crate) const BROKE_OFF: &str = "the upstream's body broke off";

/// Returns the error for an interrupted exchange with an upstream: the connection was lost, or the
/// bytes received are not valid HTTP.
pub(crate) fn broke_off(detail: &str, error: impl Into<Box<dyn StdError + Send + Sync>>) -> GatewayError {
    let error = error.into();
    let kind = if is_lost(&*error) { ErrorKind::UpstreamClosed } else { ErrorKind::UpstreamBroken };
    GatewayError::new(kind, detail).because(error).cut()
}

/// Returns whether an error means that a connection or stream closed, as opposed to invalid data
/// received on it.
fn is_lost(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let is_http = error
            .downcast_ref::<hyper::Error>()
            .is_some_and(|e| e.is_incomplete_message() || e.is_closed() || e.is_canceled());
        let is_io = error
            .downcast_ref::<io::Error>()
            .is_some_and(|e| !matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput));
        let is_h2 = error
            .downcast_ref::<h2::Error>()
            .is_some_and(|e| e.is_io() || (e.is_remote() && (e.is_reset() || e.is_go_away())));
        if is_http || is_io || is_h2 {
            return true;
        }
        next = error.source();
    }
    false
}

/// A message body.
pub struct Body {
    kind: BodySource,
    /// Bytes left before the size limit is exceeded. `None`: no limit.
    left: Option<u64>,
    /// Boxed because buffered bodies have no pace and bodies are moved often.
    pace: Option<Box<MinimumThroughput>>,
    /// The sender. Selects the error if a limit is exceeded.
    side: ErrorSide,
    attached: Vec<Attachment>,
    trailers: Trailers,
    ended: bool,
}

/// A part that lives as long as the body is read.
enum Attachment {
    Watcher(Box<dyn BodyWatcher>),
    /// Only released at the end, so that it needs no allocation of its own.
    Permit(#[expect(dead_code, reason = "only dropped")] Permit),
}

/// Handling of a body's trailers.
#[derive(Default)]
enum Trailers {
    #[default]
    Dropped,
    Kept,
    /// Trailers that have arrived and follow the last data frame.
    Here(Box<HeaderMap>),
}

enum BodySource {
    Empty,
    Full(Bytes),
    Incoming(Incoming),
    Channel { frames: mpsc::Receiver<Result<Bytes, GatewayError>>, length: Option<u64> },
    Stream { body: Pin<Box<dyn http_body::Body<Data = Bytes, Error = GatewayError> + Send>>, turn: Turn },
}

/// Longest time that a generated body may occupy a core before it yields to other tasks.
const TURN: Duration = Duration::from_millis(1);

/// Time that a body has spent since it last yielded.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    worked: Duration,
}

impl Turn {
    /// Calls `poll`, or yields if the body has used up its turn.
    fn poll<T>(&mut self, cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        // Decoding and translating produce a frame with every poll, so the task would never yield.
        if self.worked >= TURN {
            self.worked = Duration::ZERO;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let begun = std::time::Instant::now();
        let polled = poll(cx);
        self.worked = if polled.is_pending() { Duration::ZERO } else { self.worked + begun.elapsed() };
        polled
    }
}

/// Limits on how slowly a body may arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyTimeout {
    /// Longest time between two frames.
    pub idle: Duration,
    /// Lowest average rate in bytes per second since the first poll, enforced after a grace period
    /// of one `idle`. 0: no minimum.
    pub bytes_per_second_min: u64,
}

struct MinimumThroughput {
    timeout: BodyTimeout,
    timer: Option<Pin<Box<Sleep>>>,
    started: Option<Instant>,
    seen: u64,
    /// Set for forwarded calls, whose idle time is measured across both bodies.
    last_byte: Option<Arc<LastByte>>,
}

impl MinimumThroughput {
    /// Completes when both directions of an answered call have been idle for too long.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(last_byte) = &self.last_byte else { return Poll::Pending };
        loop {
            // The timer starts at the first wait: before it, the reader of this body may have been
            // the slow side.
            let idle = last_byte.idle();
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(idle)));
            ready!(timer.as_mut().poll(cx));
            match last_byte.deadline() {
                Some(deadline) => timer.as_mut().reset(deadline),
                None => return Poll::Ready(()),
            }
        }
    }
}

impl Trailers {
    fn come(&mut self, frame: Frame<Bytes>) {
        if matches!(self, Trailers::Kept)
            && let Ok(trailers) = frame.into_trailers()
        {
            *self = Trailers::Here(Box::new(trailers));
        }
    }
}

impl Body {
    /// Returns a body without bytes.
    pub fn empty() -> Body {
        Body::new(BodySource::Empty, ErrorSide::Gateway)
    }

    /// Returns a body with the given bytes.
    pub fn full(bytes: impl Into<Bytes>) -> Body {
        let bytes = bytes.into();
        if bytes.is_empty() { Body::empty() } else { Body::new(BodySource::Full(bytes), ErrorSide::Gateway) }
    }

    /// Wraps a body from the wire. `side` is its sender.
    pub fn incoming(body: Incoming, side: ErrorSide) -> Body {
        if body.is_end_stream() {
            Body::new(BodySource::Empty, side)
        } else {
            Body::new(BodySource::Incoming(body), side)
        }
    }

    /// Returns a body together with the sender that fills it, one frame at a time. The channel
    /// buffers up to `frames` frames. Dropping the sender completes the body; sending an error
    /// interrupts it. `length` is announced to the reader if known.
    pub fn channel(frames: usize, length: Option<u64>) -> (mpsc::Sender<Result<Bytes, GatewayError>>, Body) {
        let (sender, frames) = mpsc::channel(frames);
        (sender, Body::new(BodySource::Channel { frames, length }, ErrorSide::Gateway))
    }

    /// Wraps a body that is generated while it is read, such as a decoded or translated one.
    pub fn stream(
        body: impl http_body::Body<Data = Bytes, Error = GatewayError> + Send + 'static,
        side: ErrorSide,
    ) -> Body {
        Body::new(BodySource::Stream { body: Box::pin(body), turn: Turn::default() }, side)
    }

    /// Returns a body whose chunks `poll` generates.
    pub(crate) fn generated(
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<Option<Result<Bytes, GatewayError>>> + Send + 'static,
        side: ErrorSide,
    ) -> Body {
        Body::stream(StreamBody::new(stream::poll_fn(move |cx| poll(cx).map_ok(Frame::data))), side)
    }

    /// Wraps a foreign body type, such as a web framework's. `side` is its sender.
    pub fn wrap<B>(body: B, side: ErrorSide) -> Body
    where
        B: http_body::Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + 'static,
    {
        if body.is_end_stream() {
            return Body::empty();
        }
        Body::stream(body.map_err(move |error| Body::broken(side, error)), side)
    }

    fn new(kind: BodySource, side: ErrorSide) -> Body {
        Body {
            kind,
            left: None,
            pace: None,
            side,
            attached: Vec::new(),
            trailers: Trailers::Dropped,
            ended: false,
        }
    }

    /// Limits the body to `bytes_max` bytes: reading more yields an error. The lowest of several
    /// limits applies.
    #[must_use]
    pub fn with_limit(mut self, bytes_max: u64) -> Body {
        self.left = Some(self.left.map_or(bytes_max, |left| left.min(bytes_max)));
        self
    }

    /// Limits how slowly the body may arrive. Buffered bodies are unaffected.
    #[must_use]
    pub(crate) fn with_timeout(mut self, timeout: BodyTimeout) -> Body {
        if !matches!(self.kind, BodySource::Empty | BodySource::Full(_)) {
            let (timer, started, last_byte) = (None, None, None);
            self.pace = Some(Box::new(MinimumThroughput { timeout, timer, started, seen: 0, last_byte }));
        }
        self
    }

    /// Records this body's bytes in `last_byte`, for a forwarded call. Once the call is answered,
    /// the body times out only if both directions are idle for too long. Bodies without a pace are
    /// unaffected.
    #[must_use]
    pub(crate) fn timed_by(mut self, last_byte: &Arc<LastByte>) -> Body {
        if let Some(pace) = &mut self.pace {
            pace.last_byte = Some(Arc::clone(last_byte));
        }
        self
    }

    /// Lets the body yield trailers if it has any.
    #[must_use]
    pub(crate) fn with_trailers(mut self) -> Body {
        if !self.is_whole() {
            // A buffered body has no trailers to wait for.
            self.trailers = Trailers::Kept;
        }
        self
    }

    /// Adds an observer.
    #[must_use]
    pub fn with_watcher(mut self, watch: Box<dyn BodyWatcher>) -> Body {
        self.watch(watch);
        self
    }

    /// Adds an observer in place.
    pub fn watch(&mut self, watch: Box<dyn BodyWatcher>) {
        self.attached.push(Attachment::Watcher(watch));
    }

    /// Owns a permit until the body ends.
    pub(crate) fn hold(&mut self, permit: Permit) {
        self.attached.push(Attachment::Permit(permit));
    }

    /// Returns whether the body is known to have no bytes left.
    pub fn is_empty(&self) -> bool {
        self.is_end_stream()
    }

    /// Returns whether the body is fully buffered.
    pub fn is_whole(&self) -> bool {
        matches!(self.kind, BodySource::Empty | BodySource::Full(_))
    }

    /// Takes the complete body if it is buffered and at most `bytes_max` bytes long, and leaves the
    /// body empty. The body's own limit applies too.
    pub(crate) fn take_whole(&mut self, bytes_max: u64) -> Option<Result<Bytes, GatewayError>> {
        if self.ended || !self.is_whole() || self.length().is_none_or(|length| length > bytes_max) {
            return None;
        }
        let bytes = match std::mem::replace(&mut self.kind, BodySource::Empty) {
            BodySource::Full(bytes) => bytes,
            _ => Bytes::new(),
        };
        let outcome = self.admit(bytes);
        self.finish(if outcome.is_ok() { BodyEnd::Complete } else { BodyEnd::Failed });
        Some(outcome)
    }

    /// Returns the number of remaining bytes if it is known in advance.
    pub fn length(&self) -> Option<u64> {
        self.size_hint().exact()
    }

    /// Reads the next bytes. Returns `None` at the end.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, GatewayError>> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    fn too_large(&self) -> GatewayError {
        let detail = format!("a body of the {} is over its limit", self.side.name());
        match self.side {
            ErrorSide::Client => GatewayError::new(ErrorKind::TooLarge, detail),
            ErrorSide::Gateway | ErrorSide::Upstream => GatewayError::new(ErrorKind::UpstreamBroken, detail),
        }
    }

    fn too_slow(&self) -> GatewayError {
        let detail = format!("a body of the {} came too slowly", self.side.name());
        match self.side {
            ErrorSide::Client => GatewayError::new(ErrorKind::RequestTimeout, detail),
            ErrorSide::Gateway | ErrorSide::Upstream => GatewayError::new(ErrorKind::UpstreamTimeout, detail),
        }
    }

    fn broken(side: ErrorSide, error: impl Into<Box<dyn StdError + Send + Sync>>) -> GatewayError {
        match side {
            // A client that breaks its own framing receives an error response. A client that has
            // disconnected will not read it.
            ErrorSide::Client => {
                GatewayError::new(ErrorKind::BadRequest, "the request body broke off").because(error)
            }
            ErrorSide::Gateway | ErrorSide::Upstream => broke_off(BROKE_OFF, error),
        }
    }

    fn watchers(&mut self) -> impl Iterator<Item = &mut Box<dyn BodyWatcher>> {
        self.attached.iter_mut().filter_map(|attached| match attached {
            Attachment::Watcher(watcher) => Some(watcher),
            Attachment::Permit(_) => None,
        })
    }

    fn saw(&mut self, bytes: &Bytes) {
        for watcher in self.watchers() {
            watcher.chunk(bytes);
        }
    }

    fn finish(&mut self, end: BodyEnd) {
        if !self.ended {
            self.ended = true;
            // Drained, so that permits and reservations are released as soon as the body is
            // complete, not when its owner is dropped.
            for attached in self.attached.drain(..) {
                if let Attachment::Watcher(mut watcher) = attached {
                    watcher.end(end);
                }
            }
        }
    }

    /// Polls for the next bytes. Ready with `None` at the end.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, GatewayError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let polled = self.poll_source(cx);
        let outcome = match polled {
            Poll::Ready(Some(Ok(bytes))) => self.admit(bytes),
            Poll::Ready(Some(Err(error))) => Err(error),
            Poll::Ready(None) => {
                self.finish(BodyEnd::Complete);
                return Poll::Ready(None);
            }
            Poll::Pending => match self.poll_pace(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) => Err(self.too_slow()),
            },
        };
        if let Err(error) = &outcome {
            for watcher in self.watchers() {
                watcher.on_error(error);
            }
            self.finish(BodyEnd::Failed);
            self.kind = BodySource::Empty;
        }
        Poll::Ready(Some(outcome))
    }

    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, GatewayError>>> {
        let side = self.side;
        loop {
            let frame = match &mut self.kind {
                BodySource::Empty => return Poll::Ready(None),
                BodySource::Full(bytes) => {
                    let bytes = std::mem::take(bytes);
                    self.kind = BodySource::Empty;
                    return Poll::Ready(Some(Ok(bytes)));
                }
                BodySource::Channel { frames, .. } => return frames.poll_recv(cx),
                BodySource::Incoming(body) => {
                    Pin::new(body).poll_frame(cx).map_err(|error| Body::broken(side, error))
                }
                BodySource::Stream { body, turn } => turn.poll(cx, |cx| body.as_mut().poll_frame(cx)),
            };
            match ready!(frame).transpose()?.map(Frame::into_data) {
                Some(Ok(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Some(Err(frame)) => self.trailers.come(frame),
                None => return Poll::Ready(None),
            }
        }
    }

    /// Counts received bytes against the size limit and the pace.
    fn admit(&mut self, bytes: Bytes) -> Result<Bytes, GatewayError> {
        if let Some(left) = &mut self.left {
            match left.checked_sub(bytes.len() as u64) {
                Some(rest) => *left = rest,
                None => return Err(self.too_large()),
            }
        }
        if let Some(pace) = &mut self.pace {
            pace.seen += bytes.len() as u64;
            // Recreated at the next wait: resetting a timer for every frame would cost more than
            // the frame.
            pace.timer = None;
            if let Some(last_byte) = &pace.last_byte {
                last_byte.pass();
            }
        }
        self.saw(&bytes);
        Ok(bytes)
    }

    /// Completes when the body has been too slow. Called only while the source is pending.
    fn poll_pace(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(pace) = &mut self.pace else { return Poll::Pending };
        if pace.last_byte.as_ref().is_some_and(|last_byte| last_byte.is_answered()) {
            return pace.poll_silence(cx);
        }
        let started = *pace.started.get_or_insert_with(Instant::now);
        if pace.timeout.bytes_per_second_min > 0 {
            let beyond_grace = started.elapsed().saturating_sub(pace.timeout.idle);
            // Whole seconds: the minimum is an average, and rounding down favours the sender.
            if pace.seen < pace.timeout.bytes_per_second_min.saturating_mul(beyond_grace.as_secs()) {
                return Poll::Ready(());
            }
        }
        let idle = pace.timeout.idle;
        pace.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(idle))).as_mut().poll(cx)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = GatewayError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        match ready!(self.poll_chunk(cx)) {
            Some(result) => Poll::Ready(Some(result.map(Frame::data))),
            None => match std::mem::take(&mut self.trailers) {
                Trailers::Here(trailers) => Poll::Ready(Some(Ok(Frame::trailers(*trailers)))),
                Trailers::Dropped | Trailers::Kept => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        if matches!(self.trailers, Trailers::Here(_)) {
            return false;
        }
        match &self.kind {
            BodySource::Empty => true,
            BodySource::Full(_) | BodySource::Channel { .. } => false,
            BodySource::Incoming(body) => body.is_end_stream(),
            BodySource::Stream { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            BodySource::Empty => SizeHint::with_exact(0),
            BodySource::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodySource::Incoming(body) => body.size_hint(),
            BodySource::Channel { length: Some(length), .. } => SizeHint::with_exact(*length),
            BodySource::Channel { length: None, .. } => SizeHint::default(),
            BodySource::Stream { body, .. } => body.size_hint(),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        // A reader that knows the length may stop without polling the end, which is not an
        // abandonment.
        let end = if self.is_end_stream() { BodyEnd::Complete } else { BodyEnd::Abandoned };
        self.finish(end);
    }
}

impl Default for Body {
    fn default() -> Body {
        Body::empty()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            BodySource::Empty => "empty",
            BodySource::Full(_) => "full",
            BodySource::Incoming(_) => "incoming",
            BodySource::Channel { .. } => "channel",
            BodySource::Stream { .. } => "stream",
        };
        write!(f, "Body({kind}, {:?})", self.length())
    }
}

#[cfg(test)]
impl Body {
    /// Reads the complete body. Only for tests: other code bounds its buffers
    /// (`proxy::compose::hold`).
    pub(crate) async fn whole(mut self) -> Result<Bytes, GatewayError> {
        let mut all = bytes::BytesMut::new();
        while let Some(chunk) = self.chunk().await.transpose()? {
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Debug, Default, PartialEq)]
    struct Seen {
        bytes: usize,
        end: Option<BodyEnd>,
    }

    struct Spy(Arc<Mutex<Seen>>);

    impl BodyWatcher for Spy {
        fn chunk(&mut self, bytes: &Bytes) {
            self.0.lock().unwrap().bytes += bytes.len();
        }
        fn end(&mut self, end: BodyEnd) {
            assert!(self.0.lock().unwrap().end.replace(end).is_none(), "ended twice");
        }
    }

    fn spied(body: Body) -> (Body, Arc<Mutex<Seen>>) {
        let seen = Arc::new(Mutex::new(Seen::default()));
        (body.with_watcher(Box::new(Spy(seen.clone()))), seen)
    }

    #[tokio::test]
    async fn a_channel_body_is_collected_in_order_and_its_watcher_sees_the_end() {
        let (sender, body) = Body::channel(4, None);
        let (body, seen) = spied(body);
        for part in ["a", "bc", "def"] {
            sender.send(Ok(Bytes::from_static(part.as_bytes()))).await.unwrap();
        }
        drop(sender);
        assert_eq!(body.whole().await.unwrap(), "abcdef");
        assert_eq!(*seen.lock().unwrap(), Seen { bytes: 6, end: Some(BodyEnd::Complete) });
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_refused_while_it_comes() {
        let (sender, body) = Body::channel(4, None);
        sender.send(Ok(Bytes::from_static(b"1234"))).await.unwrap();
        sender.send(Ok(Bytes::from_static(b"5"))).await.unwrap();
        let error = body.with_limit(4).whole().await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::UpstreamBroken);
    }

    #[tokio::test]
    async fn a_silent_sender_breaks_a_paced_body() {
        let (sender, body) = Body::channel(1, None);
        let timeout = BodyTimeout { idle: Duration::from_millis(20), bytes_per_second_min: 0 };
        let error = body.with_timeout(timeout).whole().await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::UpstreamTimeout);
        drop(sender);
    }

    #[tokio::test]
    async fn a_dripping_sender_breaks_the_least_rate_although_it_is_never_silent() {
        let (sender, body) = Body::channel(1, None);
        let timeout = BodyTimeout { idle: Duration::from_millis(200), bytes_per_second_min: 1_000_000 };
        let drip = tokio::spawn(async move {
            while sender.send(Ok(Bytes::from_static(b"x"))).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        let error = body.with_timeout(timeout).whole().await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::UpstreamTimeout);
        drip.await.unwrap();
    }

    #[tokio::test]
    async fn a_dropped_body_was_abandoned() {
        let (sender, body) = Body::channel(1, None);
        let (body, seen) = spied(body);
        drop(body);
        assert_eq!(seen.lock().unwrap().end, Some(BodyEnd::Abandoned));
        drop(sender);
    }

    /// Work that takes long and never has to wait.
    struct Busy;

    impl http_body::Body for Busy {
        type Data = Bytes;
        type Error = GatewayError;

        fn poll_frame(
            self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
            let begun = std::time::Instant::now();
            while begun.elapsed() < TURN / 2 {
                std::hint::spin_loop();
            }
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
        }
    }

    #[tokio::test]
    async fn a_body_that_is_work_lets_others_have_their_turn() {
        let mut body = Body::stream(Busy, ErrorSide::Upstream);
        let other = tokio::spawn(async {});
        // Without turns the other would never be done; with them it is after few pieces.
        for _ in 0..100 {
            body.chunk().await.expect("it has no end").unwrap();
            if other.is_finished() {
                return;
            }
        }
        panic!("the body kept the core");
    }
}
