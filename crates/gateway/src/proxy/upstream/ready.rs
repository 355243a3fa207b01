//! The connections to one upstream that are ready for a call, in shards, one per core, so that a connection is used again by
//! the core that opened it and cores wait for one another neither for a lock nor for a wake-up. How they are made and what
//! goes out on them is `pool`'s business.

use super::connect::ConnectError;
use super::connection::Connection;
use super::http2::SharedConnection;
use crate::proxy::limits::Limits;
use crate::shard;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use std::error::Error as StdError;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often idle connections are looked after, at most.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The connections of all cores.
pub(super) struct ReadyConnections {
    /// How long one is kept that nobody uses.
    idle_timeout: Duration,
    /// Idle connections of HTTP/1.1 per shard.
    idle_max: usize,
    shards: Box<[Shard]>,
}

/// The connections of one core.
#[derive(Default)]
struct Shard {
    /// Of HTTP/1.1. The last one used is the last: it is used next, so that those not needed grow old.
    idle: Mutex<Vec<Idle<Box<Connection>>>>,
    /// Of HTTP/2.
    shared: Mutex<SharedSlot>,
    is_swept: AtomicBool,
}

struct Idle<T> {
    connection: T,
    /// When it is too old to be used again.
    until: Instant,
}

/// The connection of HTTP/2 that the calls of a core share.
#[derive(Default)]
struct SharedSlot {
    open: Option<Idle<SharedConnection>>,
    /// Those who wait for it hold it, and drive it; without them it ends.
    opening: Option<WeakShared<Opening>>,
}

/// A connection in the making for which several calls wait.
pub(super) type Opening = BoxFuture<'static, Result<Option<SharedConnection>, SharedError>>;

/// Why a connection was not made that several calls waited for.
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

impl From<ConnectError> for SharedError {
    fn from(error: ConnectError) -> SharedError {
        SharedError(error.into())
    }
}

impl ReadyConnections {
    /// None yet.
    pub(super) fn new(limits: &Limits) -> ReadyConnections {
        let shards: Box<[Shard]> = (0..shard::count()).map(|_| Shard::default()).collect();
        ReadyConnections {
            idle_timeout: limits.upstream_idle_timeout,
            idle_max: limits.upstream_idle_max.div_ceil(shards.len()),
            shards,
        }
    }

    /// How long a connection is kept that nobody uses.
    pub(super) fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }

    /// A connection of HTTP/1.1 that a call may have for itself.
    pub(super) fn idle(&self, now: Instant) -> Option<Box<Connection>> {
        let mut idle = self.shard().idle();
        while let Some(mut next) = idle.pop() {
            if now < next.until && next.connection.poll_ready() {
                return Some(next.connection);
            }
        }
        None
    }

    /// The connection of HTTP/2 that calls share.
    pub(super) fn shared(&self, now: Instant) -> Option<SharedConnection> {
        self.shard().shared().open(now, self.idle_timeout)
    }

    /// Offers a connection to the other calls of this core, unless they have one: then it is that one.
    pub(super) fn share(self: &Arc<ReadyConnections>, connection: SharedConnection) -> SharedConnection {
        let now = Instant::now();
        let mut slot = self.shard().shared();
        if let Some(open) = slot.open(now, self.idle_timeout) {
            return open;
        }
        slot.open = Some(Idle { connection: connection.clone(), until: now + self.idle_timeout });
        drop(slot);
        self.have_swept();
        connection
    }

    /// The connection of HTTP/2 that this core waits for, and whether nobody did before: then it is `begin`'s.
    pub(super) fn opening(&self, begin: impl FnOnce() -> Opening) -> (Shared<Opening>, bool) {
        let mut slot = self.shard().shared();
        let opening = slot.opening.as_ref().and_then(WeakShared::upgrade);
        // One that is done has had its time: what it brought is in the slot, or is of no use any more.
        if let Some(opening) = opening.filter(|opening| opening.peek().is_none()) {
            return (opening, false);
        }
        let opening = begin().shared();
        slot.opening = opening.downgrade();
        (opening, true)
    }

    /// Takes a connection back that is free, for as long.
    pub(super) fn put(self: &Arc<ReadyConnections>, connection: Box<Connection>, kept: Duration) {
        let mut idle = self.shard().idle();
        if idle.len() < self.idle_max {
            idle.push(Idle { connection, until: Instant::now() + kept });
        }
        drop(idle);
        self.have_swept();
    }

    /// Sees to it that what is idle in this core's shard does not stay for ever.
    fn have_swept(self: &Arc<ReadyConnections>) {
        let shard = self.shard();
        if !shard.is_swept.swap(true, Relaxed) {
            let (connections, at) = (Arc::downgrade(self), shard::here() % self.shards.len());
            let interval = SWEEP_INTERVAL.min(self.idle_timeout);
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

    /// Closes what is too old or was closed by the upstream; whether none is left to come back for.
    fn sweep(&self, shard: &Shard) -> bool {
        let mut idle = shard.idle();
        let now = Instant::now();
        idle.retain_mut(|idle| now < idle.until && idle.connection.poll_ready());
        let mut shared = shard.shared();
        shared.open = shared.open.take().filter(|open| now < open.until && open.connection.is_ready());
        let is_empty = idle.is_empty() && shared.open.is_none();
        if is_empty {
            shard.is_swept.store(false, Relaxed);
        }
        is_empty
    }

    fn shard(&self) -> &Shard {
        &self.shards[shard::here() % self.shards.len()]
    }
}

impl Shard {
    fn idle(&self) -> MutexGuard<'_, Vec<Idle<Box<Connection>>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared(&self) -> MutexGuard<'_, SharedSlot> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedSlot {
    /// The connection, if it can be used; then it is kept for as long again.
    fn open(&mut self, now: Instant, kept: Duration) -> Option<SharedConnection> {
        let open = self.open.as_mut().filter(|open| now < open.until && open.connection.is_ready())?;
        open.until = now + kept;
        Some(open.connection.clone())
    }
}
