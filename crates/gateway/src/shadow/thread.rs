//! The shadow's thread. A comparison costs many times as much as a response, so on a shared thread,
//! or at the same priority as the serving threads, it would delay clients.
//!
//! This module contains `unsafe` code for a system call without a safe wrapper.

#![expect(unsafe_code, reason = "a call of the system")]

use std::io;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// Priority of the shadow's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Yields to all other work on the machine. Without an idle core, no comparisons run.
    #[default]
    Low,
    /// Scheduled like other threads.
    Normal,
}

impl Priority {
    /// The identifiers of the priorities.
    pub const WORDS: &[&str] = &["low", "normal"];

    /// Parses an identifier.
    pub fn of_word(word: &str) -> Option<Priority> {
        [Priority::Low, Priority::Normal].into_iter().find(|priority| priority.word() == word)
    }

    /// Returns the identifier.
    pub fn word(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Normal => "normal",
        }
    }
}

/// A single-threaded runtime. Dropping it stops the tasks on it.
pub(super) struct ShadowRuntime(Option<Runtime>);

impl ShadowRuntime {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system refuses to start another thread.
    pub(super) fn start(priority: Priority) -> io::Result<ShadowRuntime> {
        let mut builder = Builder::new_multi_thread();
        // A multi-threaded runtime with one worker: unlike a current-thread one, it drives its
        // tasks itself.
        builder.worker_threads(1).thread_name("shadow").enable_all();
        if priority == Priority::Low {
            builder.on_thread_start(give_way);
        }
        // Threads for blocking work, such as name lookups, exit when idle.
        builder.thread_keep_alive(Duration::from_secs(1));
        Ok(ShadowRuntime(Some(builder.build()?)))
    }

    /// Returns the handle for spawning tasks.
    pub(super) fn handle(&self) -> Handle {
        self.0.as_ref().expect("it is only taken when dropped").handle().clone()
    }
}

impl Drop for ShadowRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Dropping the runtime would block on its threads, which is not allowed inside a task.
            runtime.shutdown_background();
        }
    }
}

/// Gives the calling thread the lowest priority, if the system has a policy for it (sched(7)): any
/// other thread that wakes preempts it at once. Niceness would not suffice, since a nice thread
/// still finishes a time slice of several milliseconds.
fn give_way() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: `sched_param` is a plain C structure of integers, for which zeroes are a valid
        // value; the call reads it and retains no pointer to it (sched_setscheduler(2)). Thread 0
        // is the calling one.
        let refused = unsafe {
            let priority: libc::sched_param = std::mem::zeroed();
            libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const priority)
        };
        if refused != 0 {
            let error = io::Error::last_os_error();
            // Not fatal: some container profiles forbid the call, and comparisons work without it.
            tracing::debug!(%error, "the shadow's thread has no lower priority than others");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Returns the scheduling policy of this thread (proc_pid_stat(5), field 41).
    fn policy() -> i32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(38).unwrap().parse().unwrap()
    }

    /// Returns the policies of a shadow thread and of this one.
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
