//! The thread that the shadow works on. Comparing an answer takes many times what answering it takes; on a thread that other
//! work of the program shares, or that the system holds to be as urgent as those that answer, clients would wait for it.
//!
//! One of the few places with `unsafe`: a call of the system that nothing safe offers.

#![expect(unsafe_code, reason = "a call of the system")]

use std::io;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// A run time of one thread, which gives way to all others. It ends when this is dropped; what still runs on it ends with it.
pub(super) struct LowPriorityRuntime(Option<Runtime>);

impl LowPriorityRuntime {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(super) fn start() -> io::Result<LowPriorityRuntime> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("shadow").on_thread_start(give_way).enable_all();
        // Threads for what blocks (names being looked up) end when there is nothing to do.
        builder.thread_keep_alive(Duration::from_secs(1));
        Ok(LowPriorityRuntime(Some(builder.build()?)))
    }

    /// Where to put work.
    pub(super) fn handle(&self) -> Handle {
        self.0.as_ref().expect("it is only taken when dropped").handle().clone()
    }
}

impl Drop for LowPriorityRuntime {
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

    #[tokio::test]
    async fn work_apart_gives_way_and_the_rest_of_the_program_does_not() {
        let apart = LowPriorityRuntime::start().unwrap();
        let theirs = apart.handle().spawn(async { policy() }).await.unwrap();
        assert_eq!((theirs, policy()), (libc::SCHED_IDLE, libc::SCHED_OTHER));
    }
}
