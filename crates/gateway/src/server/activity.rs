//! State of one connection: its progress as reported by the transport and the requests, its
//! deadlines, and its shutdown signal. A transport wrapper records stalled reads and writes. Timers
//! are not set per byte or per request, and a connection touches only its own state.
//!
//! Over HTTP/2, a stalled response need not stall the connection: each stream checks itself
//! ([`super::http2`]) by the same rule ([`Arrears`]).

use super::ConnectionTimeouts;
use crate::interim::Interim;
use crate::tunnel::Tunnel;
use bytes::{Buf as _, Bytes};
use futures_util::task::AtomicWaker;
use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Marks a moment that has not occurred.
const NEVER: u64 = 0;

/// Maximum time for the graceful close of an idle connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// State shared by a connection's transport, its requests and the registry. Moments are
/// milliseconds since `opened`, plus one.
pub(super) struct Activity {
    opened: Instant,
    in_flight: AtomicU32,
    is_h2: AtomicBool,
    /// End of the last request, or start of the connection.
    quiet_since: AtomicU64,
    /// Arrival of the first byte of an incomplete request head.
    head_since: AtomicU64,
    reader: ReaderState,
    /// Whether no data was read yet, except for a TLS handshake.
    is_silent: AtomicBool,
    /// Whether the next response closes the connection.
    is_last: AtomicBool,
    /// Whether the client has authenticated, which protects the connection from eviction.
    is_trusted: AtomicBool,
    /// Start of the graceful close of an idle connection.
    closing_since: AtomicU64,
    shutdown: ShutdownState,
    aside: AsideState,
}

/// Progress of the client in reading responses.
#[derive(Default)]
struct ReaderState {
    /// Time of the write that is currently stalled.
    stalled_since: AtomicU64,
    /// [`Arrears`] left by earlier stalls in milliseconds, and when they were recorded.
    arrears: AtomicU64,
    arrears_at: AtomicU64,
}

/// The shutdown signals to one connection.
#[derive(Default)]
struct ShutdownState {
    /// The strongest [`ShutdownSignal`] received.
    order: AtomicU8,
    /// Wakes the connection's task when a signal arrives.
    waker: AtomicWaker,
}

/// Output that bypasses hyper.
#[derive(Default)]
struct AsideState {
    content: Mutex<Aside>,
    /// [`NOTHING`], [`INTERIM`] or [`TUNNEL`]; spares most writes the lock.
    kind: AtomicU8,
}

/// HTTP/1.1 output and upgrades that hyper does not support.
#[derive(Default)]
struct Aside {
    /// Serialized interim responses.
    interim: Vec<u8>,
    /// The tunnel that takes over the connection.
    tunnel: Option<Tunnel>,
}

/// No output is pending.
const NOTHING: u8 = 0;
/// Interim responses are pending.
const INTERIM: u8 = 1;
/// A tunnel takes over the connection; hyper must not write the response head.
const TUNNEL: u8 = 2;

/// A shutdown request to a connection, ordered by strength. A weaker signal does not replace a
/// stronger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShutdownSignal {
    None,
    /// Answer the requests in flight, then close.
    Finish,
    /// Close immediately.
    Cut,
}

/// The deadline that a connection missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// No complete request head arrived in time.
    Head,
    /// No request for long; a graceful close suffices.
    Idle,
    /// The graceful close took too long.
    CloseTimeout,
    /// The client does not read the response.
    Write,
}

impl Activity {
    pub(super) fn new() -> Arc<Activity> {
        let activity = Activity {
            opened: Instant::now(),
            in_flight: AtomicU32::new(0),
            is_h2: AtomicBool::new(false),
            quiet_since: AtomicU64::new(NEVER),
            head_since: AtomicU64::new(NEVER),
            reader: ReaderState::default(),
            is_silent: AtomicBool::new(true),
            is_last: AtomicBool::new(false),
            is_trusted: AtomicBool::new(false),
            closing_since: AtomicU64::new(NEVER),
            shutdown: ShutdownState::default(),
            aside: AsideState::default(),
        };
        activity.begin();
        Arc::new(activity)
    }

    /// Starts the deadline of the first request head, for a new connection or after the handshake.
    pub(super) fn begin(&self) {
        self.head_since.store(self.now(), Relaxed);
    }

    /// Sends a shutdown signal from any thread.
    pub(super) fn give(&self, order: ShutdownSignal) {
        // Wakes only for a stronger signal, since the sweep repeats its signals with each tick.
        if self.shutdown.order.fetch_max(order as u8, AcqRel) < order as u8 {
            self.shutdown.waker.wake();
        }
    }

    /// Announces the shutdown: the next response closes the connection, so that no request is lost
    /// on an idle one. HTTP/2 sends GOAWAY at once instead.
    pub(super) fn leave(&self) {
        self.is_last.store(true, Relaxed);
        if self.is_h2.load(Relaxed) {
            self.give(ShutdownSignal::Finish);
        }
    }

    /// Protects the connection from eviction.
    pub(super) fn trust(&self) {
        self.is_trusted.store(true, Relaxed);
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.is_trusted.load(Relaxed)
    }

    /// Records that the connection uses HTTP/2.
    pub(super) fn speaks_h2(&self) {
        self.is_h2.store(true, Relaxed);
        // The connection arrived during the announcement.
        if self.is_last.load(Relaxed) {
            self.give(ShutdownSignal::Finish);
        }
    }

    /// Closes an idle connection gracefully, within [`CLOSE_TIMEOUT`].
    pub(super) fn close_gracefully(&self) {
        self.closing_since.store(self.now(), Relaxed);
        self.give(ShutdownSignal::Finish);
    }

    /// Returns the current shutdown signal.
    pub(super) fn order(&self) -> ShutdownSignal {
        match self.shutdown.order.load(Acquire) {
            0 => ShutdownSignal::None,
            1 => ShutdownSignal::Finish,
            _ => ShutdownSignal::Cut,
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// Records the start of a request, which is in flight until the guard is dropped.
    pub(super) fn request(self: &Arc<Activity>, is_h2: bool) -> InFlight {
        self.in_flight.fetch_add(1, Relaxed);
        self.is_h2.store(is_h2, Relaxed);
        self.head_since.store(NEVER, Relaxed);
        InFlight(Arc::clone(self))
    }

    /// Returns whether no request is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.load(Relaxed) == 0
    }

    /// Returns whether the client has not sent anything yet.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Relaxed)
    }

    fn on_read(&self) {
        self.is_silent.store(false, Relaxed);
        if self.head_since.load(Relaxed) == NEVER
            && self.in_flight.load(Relaxed) == 0
            && !self.is_h2.load(Relaxed)
        {
            self.head_since.store(self.now(), Relaxed);
        }
    }

    /// Records that the socket accepted a write of `taken` bytes.
    fn wrote(&self, taken: usize, bytes_per_second_min: u64) {
        self.reader.wrote(taken, bytes_per_second_min, || self.now());
    }

    /// Records that a write or flush stalled.
    fn on_stall(&self) {
        self.reader.on_stall(|| self.now());
    }

    /// Takes the tunnel that replaces hyper on this connection, with the request that stays in
    /// flight for it.
    pub(super) fn tunnel(self: &Arc<Activity>) -> Option<(Tunnel, InFlight)> {
        if self.aside.kind.load(Relaxed) != TUNNEL {
            return None;
        }
        self.aside.kind.store(NOTHING, Relaxed);
        let tunnel = self.aside().tunnel.take()?;
        Some((tunnel, InFlight(Arc::clone(self))))
    }

    fn aside(&self) -> MutexGuard<'_, Aside> {
        self.aside.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a stalled stream was reset. If no request is left in flight, the connection
    /// closes.
    pub(super) fn stream_cut(&self) {
        if self.in_flight.load(Relaxed) <= 1 {
            self.close_gracefully();
        }
    }

    /// Returns the deadline that this connection missed, if any.
    pub(super) fn overdue(&self, timeouts: &ConnectionTimeouts) -> Option<Overdue> {
        let now = self.now();
        let is_over = |since: u64, limit: Duration| {
            since != NEVER && u128::from(now.saturating_sub(since)) >= limit.as_millis()
        };
        // The debt of earlier stalls shortens the time that this one may take.
        let left = Duration::from_millis(self.reader.arrears.load(Relaxed));
        if is_over(self.reader.stalled_since.load(Relaxed), timeouts.write.saturating_sub(left)) {
            return Some(Overdue::Write);
        }
        // A request in flight has its own limits; only a stalled write is the client's fault meanwhile.
        if self.in_flight.load(Relaxed) > 0 {
            return None;
        }
        if is_over(self.head_since.load(Relaxed), timeouts.header) {
            return Some(Overdue::Head);
        }
        // A graceful close is in progress: its deadline replaces the idle one.
        let closing_since = self.closing_since.load(Relaxed);
        if closing_since != NEVER {
            return is_over(closing_since, CLOSE_TIMEOUT).then_some(Overdue::CloseTimeout);
        }
        is_over(self.quiet_since.load(Relaxed), timeouts.idle).then_some(Overdue::Idle)
    }
}

impl ReaderState {
    /// Records that the socket accepted a write of `taken` bytes.
    fn wrote(&self, taken: usize, bytes_per_second_min: u64, now: impl FnOnce() -> u64) {
        let (since, left) = (self.stalled_since.load(Relaxed), self.arrears.load(Relaxed));
        if since == NEVER && left == 0 {
            return;
        }
        let now = now();
        let mut arrears = Arrears(left);
        match since {
            NEVER => arrears.add_idle(now.saturating_sub(self.arrears_at.load(Relaxed))),
            since => arrears.add_stall(now.saturating_sub(since)),
        }
        arrears.paid(taken as u64, bytes_per_second_min);
        self.stalled_since.store(NEVER, Relaxed);
        self.arrears.store(arrears.0, Relaxed);
        self.arrears_at.store(now, Relaxed);
    }

    /// Records that a write or flush stalled.
    fn on_stall(&self, now: impl FnOnce() -> u64) {
        if self.stalled_since.load(Relaxed) != NEVER {
            return;
        }
        let now = now();
        let mut arrears = Arrears(self.arrears.load(Relaxed));
        if arrears.0 > 0 {
            arrears.add_idle(now.saturating_sub(self.arrears_at.load(Relaxed)));
            self.arrears.store(arrears.0, Relaxed);
        }
        self.stalled_since.store(now, Relaxed);
    }
}

/// Debt of a reader in milliseconds: the time that it stalled a response, minus the bytes it read
/// at the minimum rate, minus the time without stalls. Reading a byte now and then is thereby
/// limited like not reading at all for `write_timeout`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrears(pub(super) u64);

impl Arrears {
    /// Adds time during which the client stalled the response.
    pub(super) fn add_stall(&mut self, ms: u64) {
        self.0 = self.0.saturating_add(ms);
    }

    /// Subtracts time without a stall.
    pub(super) fn add_idle(&mut self, ms: u64) {
        self.0 = self.0.saturating_sub(ms);
    }

    /// Subtracts the time that these bytes are worth. Without a minimum rate, one byte clears the
    /// debt.
    pub(super) fn paid(&mut self, bytes: u64, bytes_per_second_min: u64) {
        let ms = bytes.saturating_mul(1000).checked_div(bytes_per_second_min);
        self.0 = ms.map_or(0, |ms| self.0.saturating_sub(ms));
    }
}

/// Receiver of a connection's shutdown signals, used by its task.
pub(super) struct ShutdownListener<'a> {
    activity: &'a Activity,
    /// The waker that is registered.
    waker: Option<Waker>,
}

impl<'a> ShutdownListener<'a> {
    pub(super) fn new(activity: &'a Activity) -> ShutdownListener<'a> {
        ShutdownListener { activity, waker: None }
    }

    /// Returns the current signal and registers the task to be woken by the next one.
    pub(super) fn order(&mut self, cx: &Context<'_>) -> ShutdownSignal {
        // A signal consumes the registered waker. Without a signal it is still registered, and
        // registering again would cost two locked instructions per poll.
        let is_registered = self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if is_registered && self.activity.order() == ShutdownSignal::None {
            return ShutdownSignal::None;
        }
        // Register before the check, so that a signal in between is either seen below or wakes the
        // task.
        self.activity.shutdown.waker.register(cx.waker());
        if !is_registered {
            self.waker = Some(cx.waker().clone());
        }
        self.activity.order()
    }
}

/// Guard of a request in flight, up to the last byte of its response body.
pub(super) struct InFlight(Arc<Activity>);

impl InFlight {
    /// Queues interim responses before the final one; HTTP/1.0 does not support them.
    pub(super) fn say(&self, interim: Vec<Interim>) {
        let mut aside = self.0.aside();
        for Interim { status, headers } in interim {
            let reason = status.canonical_reason().unwrap_or("");
            aside.interim.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).as_bytes());
            for (name, value) in &headers {
                for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                    aside.interim.extend_from_slice(part);
                }
            }
            aside.interim.extend_from_slice(b"\r\n");
        }
        self.0.aside.kind.store(INTERIM, Relaxed);
    }

    /// Passes the connection to the tunnel once hyper has finished.
    pub(super) fn into_tunnel(self, tunnel: Tunnel) {
        // The tunnel counts as a request in flight.
        self.0.in_flight.fetch_add(1, Relaxed);
        self.0.aside().tunnel = Some(tunnel);
        self.0.aside.kind.store(TUNNEL, Relaxed);
    }

    /// Returns whether the response closes the connection.
    pub(super) fn is_last(&self) -> bool {
        self.0.is_last.load(Relaxed)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // Before the count: a sweep in between would otherwise see an idle connection with the time
        // of an earlier request, and close it.
        self.0.quiet_since.store(self.0.now(), Relaxed);
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

/// A transport that reports to its [`Activity`].
pub(super) struct TrackedIo<T> {
    pub(super) transport: T,
    pub(super) activity: Arc<Activity>,
    /// Bytes read for protocol detection; reads return them first.
    pub(super) first: Bytes,
    pub(super) bytes_per_second_min: u64,
    /// Whether all written data is flushed, so that the next write starts a message.
    is_between: bool,
}

impl<T: AsyncWrite + Unpin> TrackedIo<T> {
    /// Writes pending output that bypasses hyper, if this is a message boundary.
    fn poll_aside(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut aside = self.activity.aside();
        if !self.is_between {
            // Earlier pipelined responses are still being written, so these are too late to be
            // useful.
            aside.interim.clear();
        }
        while !aside.interim.is_empty() {
            let count = ready!(Pin::new(&mut self.transport).poll_write(cx, &aside.interim))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            aside.interim.drain(..count);
        }
        self.activity.aside.kind.store(NOTHING, Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<T> TrackedIo<T> {
    pub(super) fn new(
        transport: T,
        activity: Arc<Activity>,
        first: Bytes,
        bytes_per_second_min: u64,
    ) -> TrackedIo<T> {
        TrackedIo { transport, activity, first, bytes_per_second_min, is_between: true }
    }

    /// Returns the kind of output to write before hyper's.
    fn aside(&self) -> u8 {
        self.activity.aside.kind.load(Relaxed)
    }

    fn wrote(&self, polled: &Poll<io::Result<usize>>) {
        match polled {
            Poll::Ready(Ok(taken)) => self.activity.wrote(*taken, self.bytes_per_second_min),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.activity.on_stall(),
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for TrackedIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.first.is_empty() {
            let count = self.first.len().min(buf.remaining());
            buf.put_slice(&self.first[..count]);
            self.first.advance(count);
            self.activity.on_read();
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.transport).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.activity.on_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for TrackedIo<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.aside() {
            NOTHING => {}
            INTERIM => ready!(self.poll_aside(cx))?,
            // hyper may release the connection without writing the head, so the tunnel always
            // writes it.
            _ => return Poll::Ready(Ok(buf.len())),
        }
        self.is_between = false;
        let polled = Pin::new(&mut self.transport).poll_write(cx, buf);
        self.wrote(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.aside() {
            NOTHING => {}
            INTERIM => ready!(self.poll_aside(cx))?,
            _ => return Poll::Ready(Ok(bufs.iter().map(|buf| buf.len()).sum())),
        }
        self.is_between = false;
        let polled = Pin::new(&mut self.transport).poll_write_vectored(cx, bufs);
        self.wrote(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.aside() == INTERIM {
            // A completed flush leaves no unwritten data.
            self.is_between = true;
            ready!(self.poll_aside(cx))?;
        }
        let polled = Pin::new(&mut self.transport).poll_flush(cx);
        match polled {
            Poll::Pending => self.activity.on_stall(),
            Poll::Ready(_) => self.is_between = true,
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeouts(header_ms: u64, idle_ms: u64, write_ms: u64) -> ConnectionTimeouts {
        ConnectionTimeouts {
            header: Duration::from_millis(header_ms),
            idle: Duration::from_millis(idle_ms),
            write: Duration::from_millis(write_ms),
            ..ConnectionTimeouts::default()
        }
    }

    const LONG: u64 = 1_000_000;

    #[test]
    fn a_new_connection_owes_a_request() {
        let activity = Activity::new();
        assert_eq!(activity.overdue(&timeouts(0, LONG, LONG)), Some(Overdue::Head));
        assert_eq!(activity.overdue(&timeouts(LONG, 0, LONG)), None);
    }

    #[test]
    fn between_requests_only_idleness_counts_until_a_byte_comes() {
        let activity = Activity::new();
        drop(activity.request(false));
        assert_eq!(activity.overdue(&timeouts(0, LONG, LONG)), None);
        assert_eq!(activity.overdue(&timeouts(0, 0, LONG)), Some(Overdue::Idle));
        activity.on_read();
        assert_eq!(activity.overdue(&timeouts(0, LONG, LONG)), Some(Overdue::Head));
    }

    #[test]
    fn a_request_in_flight_is_given_time_but_a_stalled_reader_is_not() {
        let activity = Activity::new();
        let _request = activity.request(false);
        activity.on_read();
        assert_eq!(activity.overdue(&timeouts(0, 0, 0)), None);
        activity.on_stall();
        assert_eq!(activity.overdue(&timeouts(LONG, LONG, 0)), Some(Overdue::Write));
        activity.wrote(1, 0);
        assert_eq!(activity.overdue(&timeouts(LONG, LONG, 0)), None);
    }

    #[test]
    fn a_byte_now_and_then_does_not_make_a_reader() {
        // One byte per 29 s, with a limit of 30 s and a minimum of 1 KiB/s.
        let mut arrears = Arrears::default();
        for _ in 0..2 {
            arrears.add_stall(29_000);
            arrears.paid(1, 1024);
        }
        assert!(arrears.0 > 30_000);
        // A reader at twice the minimum rate never owes more than one stall.
        let mut arrears = Arrears::default();
        for _ in 0..100 {
            arrears.add_stall(5_000);
            assert!(arrears.0 <= 5_000);
            arrears.paid(10_240, 1024);
        }
        // Neither does one that reads all data at intervals and leaves idle time between.
        arrears.add_stall(29_000);
        arrears.add_idle(60_000);
        assert_eq!(arrears, Arrears::default());
        arrears.add_stall(29_000);
        arrears.paid(1, 0);
        assert_eq!(arrears, Arrears::default());
    }

    #[test]
    fn an_idle_connection_is_asked_to_close_once() {
        let activity = Activity::new();
        drop(activity.request(false));
        assert_eq!(activity.overdue(&timeouts(LONG, 0, LONG)), Some(Overdue::Idle));
        activity.close_gracefully();
        assert_eq!(activity.overdue(&timeouts(LONG, 0, LONG)), None);
    }

    #[test]
    fn an_order_is_never_taken_back() {
        let activity = Activity::new();
        let cx = Context::from_waker(Waker::noop());
        let mut signals = ShutdownListener::new(&activity);
        assert_eq!(signals.order(&cx), ShutdownSignal::None);
        activity.give(ShutdownSignal::Cut);
        activity.give(ShutdownSignal::Finish);
        assert_eq!(signals.order(&cx), ShutdownSignal::Cut);
    }

    #[tokio::test]
    async fn each_order_wakes_a_task_that_heard_none_before() {
        let activity = Activity::new();
        let heard = Arc::clone(&activity);
        let listening = tokio::spawn(async move {
            let mut signals = ShutdownListener::new(&heard);
            let mut orders = Vec::new();
            for awaited in [ShutdownSignal::Finish, ShutdownSignal::Cut] {
                let order = std::future::poll_fn(|cx| match signals.order(cx) {
                    order if order >= awaited => Poll::Ready(order),
                    _ => Poll::Pending,
                });
                orders.push(order.await);
            }
            orders
        });
        for order in [ShutdownSignal::Finish, ShutdownSignal::Cut] {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            activity.give(order);
        }
        let orders = tokio::time::timeout(Duration::from_secs(60), listening).await;
        assert_eq!(
            orders.expect("an order woke nobody").unwrap(),
            [ShutdownSignal::Finish, ShutdownSignal::Cut]
        );
    }

    #[test]
    fn pings_of_an_http2_client_are_no_half_request() {
        let activity = Activity::new();
        drop(activity.request(true));
        activity.on_read();
        assert_eq!(activity.overdue(&timeouts(0, LONG, LONG)), None);
    }
}
