//! Work on large bodies, apart from the threads that answer clients: what takes milliseconds in one go would keep everyone else
//! on a core waiting. It goes to threads of its own, one per core, to which those that answer come first. They are started
//! when the first large body comes.

use std::io;
use std::num::NonZero;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Bytes of a body up to which it is worked on where it came: less than a millisecond's work, whatever it holds.
pub(crate) const LIGHT_BYTES_MAX: u64 = 32 * 1024;

/// How much less urgent these threads are than those that answer: they get about a quarter of a core that both want.
const NICENESS: i32 = 6;

/// Where large bodies are worked on. Clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heavy(Arc<OnceLock<io::Result<Threads>>>);

#[derive(Debug)]
struct Threads(Option<Runtime>);

impl Heavy {
    /// Does `work`, and gives what came of it; none when it panicked or the program ends. What it needs it must own, so that it
    /// lasts as long: work that nobody waits for any more goes on to its end.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let threads = self.0.get_or_init(Threads::start);
        let Ok(Threads(Some(runtime))) = threads else {
            // Without threads it is done here: late is better than not.
            return Some(work());
        };
        runtime.spawn(async move { work() }).await.ok()
    }

    /// Does `work`, which nobody waits for.
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
        // A thread that may not be less urgent is as urgent as others.
        builder.on_thread_start(|| {
            let _ = rustix::process::nice(NICENESS);
        });
        Ok(Threads(Some(builder.build()?)))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Dropping it here would wait for its threads, which is not allowed where tasks run.
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
