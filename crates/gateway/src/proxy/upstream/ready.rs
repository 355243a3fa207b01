//! Ready connections to one upstream, in one shard per core. A connection is reused on the core
//! that opened it, so cores contend neither for a lock nor for wake-ups. `pool` opens connections
//! and sends calls on them.

use super::connect::DialError;
use super::connection::Connection;
use super::http2::SharedConnection;
use crate::proxy::limits::UpstreamLimits;
use crate::shard;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use std::error::Error as StdError;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum time between two sweeps of idle connections.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The ready connections of all cores.
pub(super) struct ReadyConnections {
    /// How long an unused connection is retained.
    idle_timeout: Duration,
    /// Maximum number of idle HTTP/1.1 connections per shard.
    idle_max: usize,
    shards: Box<[ConnectionShard]>,
}

/// The ready connections of one core.
#[derive(Default)]
struct ConnectionShard {
    /// Idle HTTP/1.1 connections. Used as a stack: the most recently used one is taken first, so
    /// surplus connections reach their timeout.
    idle: Mutex<Vec<Idle<Box<Connection>>>>,
    /// The HTTP/2 connection.
    shared: Mutex<SharedSlot>,
    is_swept: AtomicBool,
}

struct Idle<T> {
    connection: T,
    /// The connection is not reused after this time.
    until: Instant,
}

/// The HTTP/2 connection shared by the calls of a core.
#[derive(Default)]
struct SharedSlot {
    open: Option<Idle<SharedConnection>>,
    /// The handshake in progress. The reference is weak because the waiting calls own and poll it:
    /// if all of them are cancelled, the handshake is cancelled too.
    opening: Option<WeakShared<Opening>>,
}

/// A handshake that several calls wait for.
pub(super) type Opening = BoxFuture<'static, Result<Option<SharedConnection>, SharedError>>;

/// Error of a shared handshake, cloneable for each waiting call.
#[derive(Clone, Debug)]
pub(super) struct SharedError(Arc<dyn StdError + Send + Sync>);

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for SharedError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.0)
    }
}

impl From<DialError> for SharedError {
    fn from(error: DialError) -> SharedError {
        SharedError(error.into())
    }
}

impl ReadyConnections {
    /// Creates an empty set of shards.
    pub(super) fn new(limits: &UpstreamLimits) -> ReadyConnections {
        let shards: Box<[ConnectionShard]> =
            (0..shard::count()).map(|_| ConnectionShard::default()).collect();
        ReadyConnections {
            idle_timeout: limits.idle_timeout,
            // Rounded up, so that each core can keep at least one connection.
            idle_max: limits.idle_max.div_ceil(shards.len()),
            shards,
        }
    }

    /// Returns how long an unused connection is retained.
    pub(super) fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }

    /// Takes an idle HTTP/1.1 connection.
    pub(super) fn idle(&self, now: Instant) -> Option<Box<Connection>> {
        let mut idle = self.shard().idle();
        while let Some(mut next) = idle.pop() {
            // Connections that fail the check are dropped, which closes them: the next one may
            // still be usable.
            if now < next.until && next.connection.poll_ready() {
                return Some(next.connection);
            }
        }
        None
    }

    /// Returns the shared HTTP/2 connection of this core.
    pub(super) fn shared_connection(&self, now: Instant) -> Option<SharedConnection> {
        self.shard().lock_shared().open(now, self.idle_timeout)
    }

    /// Offers a connection to the other calls of this core. If the core already has a usable one,
    /// returns that one instead.
    pub(super) fn share(self: &Arc<ReadyConnections>, connection: SharedConnection) -> SharedConnection {
        let now = Instant::now();
        // The check and the store happen under one lock. Two handshakes that finish together would
        // otherwise divide the calls of this core between two connections.
        let mut slot = self.shard().lock_shared();
        if let Some(open) = slot.open(now, self.idle_timeout) {
            return open;
        }
        slot.open = Some(Idle { connection: connection.clone(), until: now + self.idle_timeout });
        drop(slot);
        self.have_swept();
        connection
    }

    /// Returns the handshake in progress on this core, or starts one with `begin`. The flag is
    /// `true` if this call started it.
    pub(super) fn opening(&self, begin: impl FnOnce() -> Opening) -> (Shared<Opening>, bool) {
        let mut slot = self.shard().lock_shared();
        let opening = slot.opening.as_ref().and_then(WeakShared::upgrade);
        // Ignore a completed handshake: its connection is in the slot already, or is no longer
        // usable.
        if let Some(opening) = opening.filter(|opening| opening.peek().is_none()) {
            return (opening, false);
        }
        let opening = begin().shared();
        // The caller returns the only strong reference, so the handshake lives as long as a call
        // waits.
        slot.opening = opening.downgrade();
        (opening, true)
    }

    /// Stores a free connection for `kept`, or closes it if the shard is full.
    pub(super) fn put(self: &Arc<ReadyConnections>, connection: Box<Connection>, kept: Duration) {
        let mut idle = self.shard().idle();
        if idle.len() < self.idle_max {
            // Pushed last and taken first: the pool shrinks to the number of connections that the
            // load needs.
            idle.push(Idle { connection, until: Instant::now() + kept });
        }
        drop(idle);
        self.have_swept();
    }

    /// Ensures that a sweeper task runs for this core's shard.
    fn have_swept(self: &Arc<ReadyConnections>) {
        let shard = self.shard();
        if !shard.is_swept.swap(true, Relaxed) {
            let (connections, at) = (Arc::downgrade(self), shard::current() % self.shards.len());
            // A shorter idle timeout must not be exceeded by the length of a sweep.
            let interval = SWEEP_INTERVAL.min(self.idle_timeout);
            // The weak reference lets the pool be dropped after a reload; the task then finishes
            // with its next tick. An empty shard stops its task too, so idle upstreams cost no
            // timers.
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(interval).await;
                    let Some(connections) = connections.upgrade() else { return };
                    if connections.sweep(&connections.shards[at]) {
                        return;
                    }
                }
            });
        }
    }

    /// Closes connections that timed out or were closed by the upstream. Returns whether the shard
    /// is empty.
    fn sweep(&self, shard: &ConnectionShard) -> bool {
        let mut idle = shard.idle();
        let now = Instant::now();
        idle.retain_mut(|idle| now < idle.until && idle.connection.poll_ready());
        let mut shared = shard.lock_shared();
        shared.open = shared.open.take().filter(|open| now < open.until && open.connection.is_ready());
        let is_empty = idle.is_empty() && shared.open.is_none();
        // Still under both locks, so a connection stored afterwards sees the cleared flag and
        // starts a new sweeper.
        if is_empty {
            shard.is_swept.store(false, Relaxed);
        }
        is_empty
    }

    fn shard(&self) -> &ConnectionShard {
        &self.shards[shard::current() % self.shards.len()]
    }
}

impl ConnectionShard {
    fn idle(&self) -> MutexGuard<'_, Vec<Idle<Box<Connection>>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_shared(&self) -> MutexGuard<'_, SharedSlot> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedSlot {
    /// Returns the connection if it is usable, and extends its idle timeout to `kept` from now.
    fn open(&mut self, now: Instant, kept: Duration) -> Option<SharedConnection> {
        let open = self.open.as_mut().filter(|open| now < open.until && open.connection.is_ready())?;
        open.until = now + kept;
        Some(open.connection.clone())
    }
}
