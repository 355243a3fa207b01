//! A permit of a concurrency limit: one place in a shared count. A leaf of the module tree, because
//! both limits and bodies own permits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A permit, released on drop.
#[derive(Debug)]
pub(crate) struct Permit {
    taken: Arc<AtomicUsize>,
}

impl Permit {
    /// Takes a permit from `taken` if fewer than `max` are in use.
    pub(crate) fn take(taken: &Arc<AtomicUsize>, max: usize) -> Option<Permit> {
        let permit = Permit { taken: Arc::clone(taken) };
        // Above the limit, dropping the permit undoes the increment.
        (taken.fetch_add(1, Relaxed) < max).then_some(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Relaxed);
    }
}
