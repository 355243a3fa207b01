//! Threads for work on large bodies. Work that takes milliseconds at a stretch would delay every
//! other call on a core, so it runs on separate, lower-priority threads, one per core. They start
//! with the first large body.

use std::io;
use std::num::NonZero;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Largest body, in bytes, that is processed on the thread that received it. This takes less than a
/// millisecond for any content.
pub(crate) const LIGHT_BYTES_MAX: u64 = 32 * 1024;

/// Niceness of these threads: they receive about a quarter of a core that a serving thread also
/// wants.
const NICENESS: i32 = 6;

/// The thread pool for large bodies. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heavy(Arc<OnceLock<io::Result<Threads>>>);

#[derive(Debug)]
struct Threads(Option<Runtime>);

impl Heavy {
    /// Runs `work` on the pool and returns its result, or `None` if it panicked or the program is
    /// shutting down. `work` must own its data: it runs to completion even if the caller is
    /// dropped.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let threads = self.0.get_or_init(Threads::start);
        let Ok(Threads(Some(runtime))) = threads else {
            // Run it here if no threads could be started: slow is better than failing.
            return Some(work());
        };
        runtime.spawn(async move { work() }).await.ok()
    }

    /// Runs `work` without waiting for its result.
    pub(crate) fn leave(&self, work: impl FnOnce() + Send + 'static) {
        match self.0.get_or_init(Threads::start) {
            Ok(Threads(Some(runtime))) => drop(runtime.spawn(async move { work() })),
            _ => work(),
        }
    }
}

impl Threads {
    fn start() -> io::Result<Threads> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(std::thread::available_parallelism().map_or(1, NonZero::get));
        builder.thread_name("heavy").thread_keep_alive(Duration::from_secs(1));
        // Lowering the priority is best effort; without it the thread competes as an equal.
        builder.on_thread_start(|| {
            let _ = rustix::process::nice(NICENESS);
        });
        Ok(Threads(Some(builder.build()?)))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Dropping the runtime would block on its threads, which is not allowed inside a task.
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_done_elsewhere_and_less_urgently() {
        let heavy = Heavy::default();
        let here = std::thread::current().id();
        let (there, niceness) = heavy
            .work(|| (std::thread::current().id(), rustix::process::nice(0)))
            .await
            .expect("it does not panic");
        assert_ne!(here, there);
        #[cfg(target_os = "linux")]
        assert_eq!(niceness.ok().map(|own| own - rustix::process::nice(0).unwrap()), Some(NICENESS));
        let _ = niceness;
    }

    #[tokio::test]
    async fn work_that_panics_gives_nothing_and_others_go_on() {
        let heavy = Heavy::default();
        let broken: Option<()> = heavy.work(|| panic!("as the test wants it")).await;
        assert_eq!((broken, heavy.work(|| 7).await), (None, Some(7)));
    }
}
