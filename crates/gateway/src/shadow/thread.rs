//! The thread that the shadow works on. Comparing an answer takes many times what answering it takes; on a thread that other
//! work of the program shares, or that the system holds to be as urgent as those that answer, clients would wait for it.
//!
//! One of the few places with `unsafe`: a call of the system that nothing safe offers.

#![expect(unsafe_code, reason = "a call of the system")]

use std::io;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// How urgent the shadow's work is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// It gives way to everything else on the machine. Where no core is to spare, nothing is compared.
    #[default]
    Low,
    /// It takes its turn as everything else does.
    Normal,
}

impl Priority {
    /// The words for it.
    pub const WORDS: &[&str] = &["low", "normal"];

    /// The one that a word stands for.
    pub fn of_word(word: &str) -> Option<Priority> {
        [Priority::Low, Priority::Normal].into_iter().find(|priority| priority.word() == word)
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Normal => "normal",
        }
    }
}

/// A run time of one thread. It ends when this is dropped; what still runs on it ends with it.
pub(super) struct ShadowRuntime(Option<Runtime>);

impl ShadowRuntime {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(super) fn start(priority: Priority) -> io::Result<ShadowRuntime> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("shadow").enable_all();
        if priority == Priority::Low {
            builder.on_thread_start(give_way);
        }
        // Threads for what blocks (names being looked up) end when there is nothing to do.
        builder.thread_keep_alive(Duration::from_secs(1));
        Ok(ShadowRuntime(Some(builder.build()?)))
    }

    /// Where to put work.
    pub(super) fn handle(&self) -> Handle {
        self.0.as_ref().expect("it is only taken when dropped").handle().clone()
    }
}

impl Drop for ShadowRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Dropping it here would wait for its threads, which is not allowed where tasks run.
            runtime.shutdown_background();
        }
    }
}

/// Makes the thread that calls this one less urgent than all others, where the system has a policy for it (sched(7)): any
/// other thread that wakes takes the core from it at once. Niceness would not do, since a nice thread keeps its slice of some
/// milliseconds.
fn give_way() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: `sched_param` is a plain C structure of integers, for which zeroes are a value; the call reads it and keeps
        // no pointer to it (sched_setscheduler(2)). Thread 0 is the calling one.
        let refused = unsafe {
            let priority: libc::sched_param = std::mem::zeroed();
            libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const priority)
        };
        if refused != 0 {
            let error = io::Error::last_os_error();
            tracing::debug!(%error, "the shadow's thread is as urgent as others");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The scheduling policy of this thread, as the system tells it (proc_pid_stat(5), field 41).
    fn policy() -> i32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(38).unwrap().parse().unwrap()
    }

    /// Of a thread in the shadow's place, and of this one.
    async fn policies(priority: Priority) -> [i32; 2] {
        let apart = ShadowRuntime::start(priority).unwrap();
        [apart.handle().spawn(async { policy() }).await.unwrap(), policy()]
    }

    #[tokio::test]
    async fn work_apart_gives_way_and_the_rest_of_the_program_does_not() {
        assert_eq!(policies(Priority::Low).await, [libc::SCHED_IDLE, libc::SCHED_OTHER]);
        assert_eq!(policies(Priority::Normal).await, [libc::SCHED_OTHER; 2]);
    }
}
