//! Assignment of threads to shards. State that all cores use, such as idle connections and log
//! lines, is sharded per core so that no core waits for another.

use std::cell::Cell;
use std::num::NonZero;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

thread_local! {
    static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Returns the number of cores, and therefore of threads that serve clients.
pub(crate) fn count() -> usize {
    static COUNT: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, NonZero::get));
    *COUNT
}

/// Assigns a core's number to this thread.
pub(crate) fn is_core(core: usize) {
    NUMBER.set(Some(core));
}

/// Returns this thread's number: that of its core, or else the next one above the cores'. Threads
/// whose numbers map to the same shard share it, which is slower but correct.
pub(crate) fn current() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NUMBER.get().unwrap_or_else(|| {
        let number = count() + NEXT.fetch_add(1, Relaxed);
        NUMBER.set(Some(number));
        number
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn cores_have_their_own_number_and_no_other_thread_has_the_same() {
        let of_core = thread::spawn(|| {
            is_core(0);
            (current(), current())
        });
        assert_eq!(of_core.join().unwrap(), (0, 0));
        let others = [0; 2].map(|_| thread::spawn(|| (current(), current())).join().unwrap());
        assert!(others.iter().all(|(first, again)| first == again && *first >= count()), "{others:?}");
        assert_ne!(others[0], others[1]);
    }
}
