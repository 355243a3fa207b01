//! Buffers log lines per thread; a dedicated thread writes them to standard error in batches.
//! Logging makes no system call and takes no contended lock, and a stalled log reader cannot delay
//! it: lines beyond the buffers are dropped and counted.

use std::io::{self, Write};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// Longest time that a line waits to be batched. Warnings, errors and full buffers are written at
/// once.
const GATHERING: Duration = Duration::from_millis(50);
/// Buffer limit per shard in bytes; further lines are lost.
const SHARD_BYTES_MAX: usize = 1 << 20;
/// Bytes in a shard that trigger a write at once: larger buffers would evict request data from the
/// core's cache and grow the shard.
const SHARD_BYTES_ENOUGH: usize = 64 * 1024;
/// Capacity that an emptied shard retains, for lines that arrive until the next write.
const SHARD_BYTES_KEPT: usize = 2 * SHARD_BYTES_ENOUGH;
/// Number of shards; more threads than that share them.
const SHARDS: usize = 16;

/// Buffers log lines and writes them to standard error a little later. Clones share the buffers.
#[derive(Clone)]
pub(crate) struct NonBlockingWriter(Arc<Shards>);

#[derive(Default)]
struct Shards {
    shards: [Mutex<Vec<u8>>; SHARDS],
    lost: AtomicU64,
    /// Set while the writer is awake but has not started to write. Lines that arrive meanwhile do
    /// not wake it again, which would cut its batching short and cost a context switch.
    is_woken: AtomicBool,
    is_urgent: AtomicBool,
    /// Serializes writes, so that lines do not interleave.
    writing: Mutex<()>,
    writer: OnceLock<Thread>,
}

impl NonBlockingWriter {
    /// Starts the writer thread, which runs until the program exits.
    pub(crate) fn start() -> io::Result<NonBlockingWriter> {
        let shards = Arc::new(Shards::default());
        let theirs = Arc::clone(&shards);
        let writer = thread::Builder::new().name("log".to_owned()).spawn(move || {
            loop {
                thread::park();
                if !theirs.is_urgent.load(Relaxed) {
                    thread::park_timeout(GATHERING);
                }
                theirs.write_out(&mut io::stderr().lock());
            }
        })?;
        let _ = shards.writer.set(writer.thread().clone());
        Ok(NonBlockingWriter(shards))
    }

    /// Buffers a complete line.
    pub(crate) fn put(&self, line: &[u8]) {
        self.0.put(line, false);
    }

    /// Writes all buffered lines from the caller's thread, before the program exits.
    pub(crate) fn flush(&self) {
        self.0.write_out(&mut io::stderr().lock());
    }
}

impl Shards {
    fn put(&self, line: &[u8], is_urgent: bool) {
        let mut shard = lock(&self.shards[crate::shard::current() % SHARDS]);
        let (before, after) = (shard.len(), shard.len() + line.len());
        if after > SHARD_BYTES_MAX {
            drop(shard);
            self.lost.fetch_add(1, Relaxed);
            return;
        }
        shard.extend_from_slice(line);
        drop(shard);
        if self.must_wake(before, after, is_urgent)
            && let Some(writer) = self.writer.get()
        {
            writer.unpark();
        }
    }

    /// Returns whether to wake the writer for a line that grew its shard from `before` to `after`
    /// bytes: for the first line since the last write, for a line that fills the shard, and for an
    /// urgent one.
    fn must_wake(&self, before: usize, after: usize, is_urgent: bool) -> bool {
        if is_urgent {
            self.is_urgent.store(true, Relaxed);
        }
        let is_enough = before < SHARD_BYTES_ENOUGH && after >= SHARD_BYTES_ENOUGH;
        (before == 0 && !self.is_woken.swap(true, Relaxed)) || is_enough || is_urgent
    }

    /// Writes all buffered lines. Write errors are ignored, because there is no place left to
    /// report them.
    fn write_out(&self, out: &mut impl Write) {
        let _alone = lock(&self.writing);
        // Reset before emptying the shards: a line that arrives after its shard was emptied then
        // wakes the writer again.
        self.is_woken.store(false, Relaxed);
        self.is_urgent.store(false, Relaxed);
        let mut waiting = Vec::new();
        for shard in &self.shards {
            mem::swap(&mut *lock(shard), &mut waiting);
            if !waiting.is_empty() {
                let _ = out.write_all(&waiting);
            }
            waiting.clear();
            waiting.shrink_to(SHARD_BYTES_KEPT);
            // Return the buffer, unless other threads have filled the shard meanwhile.
            let mut shard = lock(shard);
            if shard.capacity() == 0 {
                mem::swap(&mut *shard, &mut waiting);
            }
        }
        let lost = self.lost.swap(0, Relaxed);
        if lost > 0 {
            let _ = writeln!(out, "{lost} log lines were lost: they were not read fast enough");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> MakeWriter<'a> for NonBlockingWriter {
    type Writer = EventWriter<'a>;

    fn make_writer(&'a self) -> EventWriter<'a> {
        EventWriter { non_blocking: self, is_urgent: false }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> EventWriter<'a> {
        EventWriter { non_blocking: self, is_urgent: *meta.level() <= Level::WARN }
    }
}

/// Writes one event to the non-blocking writer.
pub(crate) struct EventWriter<'a> {
    non_blocking: &'a NonBlockingWriter,
    is_urgent: bool,
}

impl Write for EventWriter<'_> {
    /// Buffers an event. The subscriber writes each event with one call, so lines stay intact.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.non_blocking.0.put(line, self.is_urgent);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(shards: &Shards) -> String {
        let mut out = Vec::new();
        shards.write_out(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_of_a_thread_come_out_once_whole_and_in_order() {
        let shards = Shards::default();
        for line in ["a\n", "b\n", "c\n"] {
            shards.put(line.as_bytes(), false);
        }
        assert_eq!(written(&shards), "a\nb\nc\n");
        assert_eq!(written(&shards), "");
    }

    #[test]
    fn the_writer_is_woken_once_for_the_lines_of_all_lanes_and_for_each_urgent_one() {
        let shards = Shards::default();
        assert!(shards.must_wake(0, 1, false));
        assert!(!shards.must_wake(0, 1, false), "a second shard while the first one gathers");
        assert!(!shards.must_wake(1, 2, false));
        assert!(shards.must_wake(1, 2, true));
        assert!(shards.must_wake(SHARD_BYTES_ENOUGH - 1, SHARD_BYTES_ENOUGH, false), "enough to write");
        assert!(!shards.must_wake(SHARD_BYTES_ENOUGH, SHARD_BYTES_ENOUGH + 1, false), "and told so once");
        assert_eq!(written(&shards), "");
        assert!(shards.must_wake(0, 1, false), "anew after writing");
    }

    #[test]
    fn many_threads_lose_nothing() {
        let shards = Arc::new(Shards::default());
        let threads: Vec<_> = (0..SHARDS + 2)
            .map(|number| {
                let shards = Arc::clone(&shards);
                thread::spawn(move || {
                    (0..100).for_each(|_| shards.put(format!("{number}\n").as_bytes(), false))
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(written(&shards).lines().count(), (SHARDS + 2) * 100);
    }

    #[test]
    fn what_nobody_reads_is_lost_and_counted_but_never_kept() {
        let shards = Shards::default();
        let line = vec![b'x'; SHARD_BYTES_MAX / 2];
        (0..5).for_each(|_| shards.put(&line, false));
        let text = written(&shards);
        assert!(text.len() < SHARD_BYTES_MAX + 100);
        assert!(text.ends_with("3 log lines were lost: they were not read fast enough\n"));
        shards.put(b"y\n", false);
        assert_eq!(written(&shards), "y\n");
    }
}
