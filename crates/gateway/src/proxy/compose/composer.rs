//! What requests are composed with, made once.

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

/// What all requests are composed with.
#[derive(Clone)]
pub(crate) struct Composer {
    pub calls: Calls,
    pub limits: Arc<Limits>,
    pub pseudonym: Pseudonym,
    /// What forwarded requests say of the way they came.
    pub forwarding: Forwarding,
    pub memory: Memory,
    /// Where large bodies are worked on.
    pub heavy: Heavy,
    pub resume: Resume,
    /// The service's cursors, where clients count pages.
    pub cursors: CursorCache,
    pub clock: Clock,
    /// Who calls are made for.
    pub origin: CallOrigin,
    /// Requests that go on without their client; waited for when the program ends.
    pub detached: TaskTracker,
}
