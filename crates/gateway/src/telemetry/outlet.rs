//! Log lines on their way to standard error: gathered per thread, written out together by a thread of their own. Whoever
//! logs takes no lock that other threads hold for long, makes no system call, and is never held up by a reader of the log
//! that does not read: then lines are lost, and counted.

use crate::shard;
use std::io::{self, Write};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// How long a line may wait for others to be written with it. Warnings, errors and enough of others do not wait.
const GATHERING: Duration = Duration::from_millis(50);
/// Bytes that may wait per lane; beyond it lines are lost.
const LANE_BYTES_MAX: usize = 1 << 20;
/// Bytes in a lane that are worth a writing of their own: more would push what requests need out of the core's cache, and make
/// the lane grow.
const LANE_BYTES_ENOUGH: usize = 64 * 1024;
/// Capacity that an emptied lane keeps: room for what comes while the writer is on its way.
const LANE_BYTES_KEPT: usize = 2 * LANE_BYTES_ENOUGH;
/// Threads share lanes when there are more of them.
const LANES: usize = 16;

/// Takes log lines and writes them to standard error a little later. All clones are one.
#[derive(Clone)]
pub struct Outlet(Arc<Lanes>);

#[derive(Default)]
struct Lanes {
    lanes: [Mutex<Vec<u8>>; LANES],
    lost: AtomicU64,
    /// The writer was woken and has not begun to write: whoever puts a line meanwhile need not wake it again, which would
    /// cut its gathering short and cost a switch of threads.
    is_woken: AtomicBool,
    is_urgent: AtomicBool,
    /// Only one writes at a time, or lines would cross.
    writing: Mutex<()>,
    writer: OnceLock<Thread>,
}

impl Outlet {
    /// Starts the thread that writes. It lives as long as the program.
    pub fn start() -> io::Result<Outlet> {
        let lanes = Arc::new(Lanes::default());
        let theirs = Arc::clone(&lanes);
        let writer = thread::Builder::new().name("log".to_owned()).spawn(move || {
            loop {
                thread::park();
                if !theirs.is_urgent.load(Relaxed) {
                    thread::park_timeout(GATHERING);
                }
                theirs.write_out(&mut io::stderr().lock());
            }
        })?;
        let _ = lanes.writer.set(writer.thread().clone());
        Ok(Outlet(lanes))
    }

    /// Takes a whole line.
    pub fn put(&self, line: &[u8]) {
        self.0.put(line, false);
    }

    /// Writes out what is waiting, in the thread of the caller: for the end of the program.
    pub fn flush(&self) {
        self.0.write_out(&mut io::stderr().lock());
    }
}

impl Lanes {
    fn put(&self, line: &[u8], is_urgent: bool) {
        let mut lane = lock(&self.lanes[shard::here() % LANES]);
        let (before, after) = (lane.len(), lane.len() + line.len());
        if after > LANE_BYTES_MAX {
            drop(lane);
            self.lost.fetch_add(1, Relaxed);
            return;
        }
        lane.extend_from_slice(line);
        drop(lane);
        if self.must_wake(before, after, is_urgent)
            && let Some(writer) = self.writer.get()
        {
            writer.unpark();
        }
    }

    /// Whether the writer has to be woken for a line that has filled its lane from `before` to `after` bytes: for the first of
    /// all lanes since it last began to write, for the one that makes enough, and for an urgent one.
    fn must_wake(&self, before: usize, after: usize, is_urgent: bool) -> bool {
        if is_urgent {
            self.is_urgent.store(true, Relaxed);
        }
        let is_enough = before < LANE_BYTES_ENOUGH && after >= LANE_BYTES_ENOUGH;
        (before == 0 && !self.is_woken.swap(true, Relaxed)) || is_enough || is_urgent
    }

    /// Writes what is waiting. A reader that is gone is not an error that anyone could be told.
    fn write_out(&self, out: &mut impl Write) {
        let _alone = lock(&self.writing);
        // Before the lanes are emptied: a line that comes after its lane's turn finds both as at the start.
        self.is_woken.store(false, Relaxed);
        self.is_urgent.store(false, Relaxed);
        let mut waiting = Vec::new();
        for lane in &self.lanes {
            mem::swap(&mut *lock(lane), &mut waiting);
            if !waiting.is_empty() {
                let _ = out.write_all(&waiting);
            }
            waiting.clear();
            waiting.shrink_to(LANE_BYTES_KEPT);
            // The space goes back, unless others have filled the lane meanwhile.
            let mut lane = lock(lane);
            if lane.capacity() == 0 {
                mem::swap(&mut *lane, &mut waiting);
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

impl<'a> MakeWriter<'a> for Outlet {
    type Writer = Slip<'a>;

    fn make_writer(&'a self) -> Slip<'a> {
        Slip { outlet: self, is_urgent: false }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Slip<'a> {
        Slip { outlet: self, is_urgent: *meta.level() <= Level::WARN }
    }
}

/// One event's way into the outlet.
pub struct Slip<'a> {
    outlet: &'a Outlet,
    is_urgent: bool,
}

impl Write for Slip<'_> {
    /// The subscriber writes an event with one call, so that lines stay whole.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.outlet.0.put(line, self.is_urgent);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(lanes: &Lanes) -> String {
        let mut out = Vec::new();
        lanes.write_out(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_of_a_thread_come_out_once_whole_and_in_order() {
        let lanes = Lanes::default();
        for line in ["a\n", "b\n", "c\n"] {
            lanes.put(line.as_bytes(), false);
        }
        assert_eq!(written(&lanes), "a\nb\nc\n");
        assert_eq!(written(&lanes), "");
    }

    #[test]
    fn the_writer_is_woken_once_for_the_lines_of_all_lanes_and_for_each_urgent_one() {
        let lanes = Lanes::default();
        assert!(lanes.must_wake(0, 1, false));
        assert!(!lanes.must_wake(0, 1, false), "a second lane while the first one gathers");
        assert!(!lanes.must_wake(1, 2, false));
        assert!(lanes.must_wake(1, 2, true));
        assert!(lanes.must_wake(LANE_BYTES_ENOUGH - 1, LANE_BYTES_ENOUGH, false), "enough to write");
        assert!(!lanes.must_wake(LANE_BYTES_ENOUGH, LANE_BYTES_ENOUGH + 1, false), "and told so once");
        assert_eq!(written(&lanes), "");
        assert!(lanes.must_wake(0, 1, false), "anew after writing");
    }

    #[test]
    fn many_threads_lose_nothing() {
        let lanes = Arc::new(Lanes::default());
        let threads: Vec<_> = (0..LANES + 2)
            .map(|number| {
                let lanes = Arc::clone(&lanes);
                thread::spawn(move || {
                    (0..100).for_each(|_| lanes.put(format!("{number}\n").as_bytes(), false))
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(written(&lanes).lines().count(), (LANES + 2) * 100);
    }

    #[test]
    fn what_nobody_reads_is_lost_and_counted_but_never_kept() {
        let lanes = Lanes::default();
        let line = vec![b'x'; LANE_BYTES_MAX / 2];
        (0..5).for_each(|_| lanes.put(&line, false));
        let text = written(&lanes);
        assert!(text.len() < LANE_BYTES_MAX + 100);
        assert!(text.ends_with("3 log lines were lost: they were not read fast enough\n"));
        lanes.put(b"y\n", false);
        assert_eq!(written(&lanes), "y\n");
    }
}
