//! Shared dependencies of all composed requests.

use super::cursors::CursorCache;
use super::resume::Resume;
use crate::clock::Clock;
use crate::heavy::Heavy;
use crate::memory::Memory;
use crate::proxy::calls::stack::Calls;
use crate::proxy::forwarding::Forwarding;
use crate::proxy::headers::Pseudonym;
use crate::proxy::limits::Limits;
use crate::proxy::origin::CallOrigin;
use std::sync::Arc;
use tokio_util::task::TaskTracker;

/// Dependencies that composed requests share.
#[derive(Clone)]
pub(crate) struct Composer {
    pub calls: Calls,
    pub limits: Arc<Limits>,
    pub pseudonym: Pseudonym,
    /// Settings for the forwarding fields of requests.
    pub forwarding: Forwarding,
    pub memory: Memory,
    /// Pool of threads for work on large bodies.
    pub heavy: Heavy,
    pub resume: Resume,
    /// Upstream cursors, for clients that address pages by number.
    pub cursors: CursorCache,
    pub clock: Clock,
    /// Origin of the calls made with this composer.
    pub origin: CallOrigin,
    /// Requests that continue after their client left. Shutdown waits for them.
    pub detached: TaskTracker,
}
