//! What a connection is doing, as its transport and its requests tell it, whether it has taken too long over it, and what
//! it is told to do. The transport is wrapped to note reads and writes that cannot go on; nothing is timed per byte or per
//! request, and nothing is asked of other connections: what a connection looks at is its own.

use super::Options;
use futures_util::task::AtomicWaker;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A moment that has not been.
const NEVER: u64 = 0;

/// How long a connection that was asked to close for its idleness may take to say good-bye.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(5);

/// Shared by one connection's transport, its requests and the roster that watches it; never by two connections. All
/// moments are milliseconds since `opened`, plus one.
pub(super) struct Activity {
    opened: Instant,
    in_flight: AtomicU32,
    is_h2: AtomicBool,
    /// When the last request ended, or the connection began.
    quiet_since: AtomicU64,
    /// When the first byte of a head came that is not complete.
    head_since: AtomicU64,
    /// When a write could not go on.
    stalled_since: AtomicU64,
    /// When it was asked to close for its idleness.
    farewell_since: AtomicU64,
    /// The highest [`Order`] given.
    order: AtomicU8,
    /// Wakes the connection's task when an order comes.
    waker: AtomicWaker,
}

/// What a connection is told from outside. A later one never takes back an earlier, stronger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    None,
    /// Answer what is in flight, then close.
    Finish,
    /// End now.
    Cut,
}

/// Why a connection is closed by its deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// No request, or half of one.
    Head,
    /// No request for long: a polite close will do.
    Idle,
    /// The polite close took too long.
    Farewell,
    /// The client does not read its answer.
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
            stalled_since: AtomicU64::new(NEVER),
            farewell_since: AtomicU64::new(NEVER),
            order: AtomicU8::new(Order::None as u8),
            waker: AtomicWaker::new(),
        };
        activity.begin();
        Arc::new(activity)
    }

    /// A connection that is new, or whose handshake is done, owes its first request as if its first byte had come.
    pub(super) fn begin(&self) {
        self.head_since.store(self.now(), Relaxed);
    }

    /// Tells the connection what to do, from any thread.
    pub(super) fn give(&self, order: Order) {
        if self.order.fetch_max(order as u8, AcqRel) < order as u8 {
            self.waker.wake();
        }
    }

    /// Asks an idle connection to close, within [`FAREWELL_TIMEOUT`].
    pub(super) fn part(&self) {
        self.farewell_since.store(self.now(), Relaxed);
        self.give(Order::Finish);
    }

    /// What the connection has been told so far.
    pub(super) fn order(&self) -> Order {
        match self.order.load(Acquire) {
            0 => Order::None,
            1 => Order::Finish,
            _ => Order::Cut,
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// Notes that a request has come; it is in flight until the guard is dropped.
    pub(super) fn request(self: &Arc<Activity>, is_h2: bool) -> InFlight {
        self.in_flight.fetch_add(1, Relaxed);
        self.is_h2.store(is_h2, Relaxed);
        self.head_since.store(NEVER, Relaxed);
        InFlight(Arc::clone(self))
    }

    fn read(&self) {
        if self.head_since.load(Relaxed) == NEVER
            && self.in_flight.load(Relaxed) == 0
            && !self.is_h2.load(Relaxed)
        {
            self.head_since.store(self.now(), Relaxed);
        }
    }

    fn wrote(&self, is_pending: bool) {
        let stalled = self.stalled_since.load(Relaxed);
        if is_pending && stalled == NEVER {
            self.stalled_since.store(self.now(), Relaxed);
        } else if !is_pending && stalled != NEVER {
            self.stalled_since.store(NEVER, Relaxed);
        }
    }

    /// What this connection has taken too long over, if anything.
    pub(super) fn overdue(&self, options: &Options) -> Option<Overdue> {
        let now = self.now();
        let is_over = |since: u64, limit: Duration| {
            since != NEVER && u128::from(now.saturating_sub(since)) >= limit.as_millis()
        };
        if is_over(self.stalled_since.load(Relaxed), options.write_timeout) {
            return Some(Overdue::Write);
        }
        if self.in_flight.load(Relaxed) > 0 {
            return None;
        }
        if is_over(self.head_since.load(Relaxed), options.header_timeout) {
            return Some(Overdue::Head);
        }
        // Whoever has been asked to close is given a little time and not asked again.
        let farewell_since = self.farewell_since.load(Relaxed);
        if farewell_since != NEVER {
            return is_over(farewell_since, FAREWELL_TIMEOUT).then_some(Overdue::Farewell);
        }
        is_over(self.quiet_since.load(Relaxed), options.idle_timeout).then_some(Overdue::Idle)
    }
}

/// Hears the orders given to a connection, for its task.
pub(super) struct Ear<'a> {
    activity: &'a Activity,
    /// What is registered to be woken.
    waker: Option<Waker>,
}

impl<'a> Ear<'a> {
    pub(super) fn new(activity: &'a Activity) -> Ear<'a> {
        Ear { activity, waker: None }
    }

    /// What the connection has been told. Its task, whose context this is, is woken when that changes.
    pub(super) fn order(&mut self, cx: &Context<'_>) -> Order {
        // An order uses the registered waker up. While there has been none, it is still in its place, and to put it there again
        // would cost two locked instructions each time.
        let is_registered = self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if is_registered && self.activity.order() == Order::None {
            return Order::None;
        }
        // Registered first: an order that comes in between is seen below or wakes.
        self.activity.waker.register(cx.waker());
        if !is_registered {
            self.waker = Some(cx.waker().clone());
        }
        self.activity.order()
    }
}

/// A request that is being answered, down to the last byte of its body.
pub(super) struct InFlight(Arc<Activity>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.quiet_since.store(self.0.now(), Relaxed);
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

/// A transport that tells its [`Activity`].
pub(super) struct Told<T> {
    pub(super) transport: T,
    pub(super) activity: Arc<Activity>,
}

impl<T: AsyncRead + Unpin> AsyncRead for Told<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.transport).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.activity.read();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Told<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.transport).poll_write(cx, buf);
        self.activity.wrote(polled.is_pending());
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.transport).poll_write_vectored(cx, bufs);
        self.activity.wrote(polled.is_pending());
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.transport).poll_flush(cx);
        if polled.is_pending() {
            self.activity.wrote(true);
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

    fn options(header_ms: u64, idle_ms: u64, write_ms: u64) -> Options {
        Options {
            header_timeout: Duration::from_millis(header_ms),
            idle_timeout: Duration::from_millis(idle_ms),
            write_timeout: Duration::from_millis(write_ms),
            ..Options::default()
        }
    }

    const LONG: u64 = 1_000_000;

    #[test]
    fn a_new_connection_owes_a_request() {
        let activity = Activity::new();
        assert_eq!(activity.overdue(&options(0, LONG, LONG)), Some(Overdue::Head));
        assert_eq!(activity.overdue(&options(LONG, 0, LONG)), None);
    }

    #[test]
    fn between_requests_only_idleness_counts_until_a_byte_comes() {
        let activity = Activity::new();
        drop(activity.request(false));
        assert_eq!(activity.overdue(&options(0, LONG, LONG)), None);
        assert_eq!(activity.overdue(&options(0, 0, LONG)), Some(Overdue::Idle));
        activity.read();
        assert_eq!(activity.overdue(&options(0, LONG, LONG)), Some(Overdue::Head));
    }

    #[test]
    fn a_request_in_flight_is_given_time_but_a_stalled_reader_is_not() {
        let activity = Activity::new();
        let _request = activity.request(false);
        activity.read();
        assert_eq!(activity.overdue(&options(0, 0, 0)), None);
        activity.wrote(true);
        assert_eq!(activity.overdue(&options(LONG, LONG, 0)), Some(Overdue::Write));
        activity.wrote(false);
        assert_eq!(activity.overdue(&options(LONG, LONG, 0)), None);
    }

    #[test]
    fn an_idle_connection_is_asked_to_close_once() {
        let activity = Activity::new();
        drop(activity.request(false));
        assert_eq!(activity.overdue(&options(LONG, 0, LONG)), Some(Overdue::Idle));
        activity.part();
        assert_eq!(activity.overdue(&options(LONG, 0, LONG)), None);
    }

    #[test]
    fn an_order_is_never_taken_back() {
        let activity = Activity::new();
        let cx = Context::from_waker(Waker::noop());
        let mut ear = Ear::new(&activity);
        assert_eq!(ear.order(&cx), Order::None);
        activity.give(Order::Cut);
        activity.give(Order::Finish);
        assert_eq!(ear.order(&cx), Order::Cut);
    }

    #[tokio::test]
    async fn each_order_wakes_a_task_that_heard_none_before() {
        let activity = Activity::new();
        let heard = Arc::clone(&activity);
        let listening = tokio::spawn(async move {
            let mut ear = Ear::new(&heard);
            let mut orders = Vec::new();
            for awaited in [Order::Finish, Order::Cut] {
                let order = std::future::poll_fn(|cx| match ear.order(cx) {
                    order if order >= awaited => Poll::Ready(order),
                    _ => Poll::Pending,
                });
                orders.push(order.await);
            }
            orders
        });
        for order in [Order::Finish, Order::Cut] {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            activity.give(order);
        }
        let orders = tokio::time::timeout(Duration::from_secs(60), listening).await;
        assert_eq!(orders.expect("an order woke nobody").unwrap(), [Order::Finish, Order::Cut]);
    }

    #[test]
    fn pings_of_an_http2_client_are_no_half_request() {
        let activity = Activity::new();
        drop(activity.request(true));
        activity.read();
        assert_eq!(activity.overdue(&options(0, LONG, LONG)), None);
    }
}
