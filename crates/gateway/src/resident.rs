//! Returns unused memory to the system. Compiling a pack and opening a store leave free pages in
//! the heap, as do bursts of requests and closed connections, and the allocator retains all of
//! them. This module trims the heap after the start, with each reload, and whenever the process is
//! idle, so that its resident size reflects its needs.
//!
//! Apart from reloads, which have just used a core for much of a second, trimming never runs while
//! there is work. The process's CPU time reveals whether there is work, so requests pay nothing for
//! it, not even a counter.
//!
//! `unsafe` occurs only here, in the scanning of `json`, and in one call in `shadow/thread.rs`.

#![expect(unsafe_code, reason = "calls of the allocator and the system")]

use std::time::Duration;

/// Time between two checks for idleness.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Highest CPU time between two checks at which the process counts as idle.
const QUIET_CPU_MAX: Duration = Duration::from_millis(10);

/// Growth of resident memory since the last trim, in bytes, that justifies another.
const GROWTH_BYTES_MIN: u64 = 1 << 20;

/// Number of checks between two trims for small growth, so that an occasional caller does not find
/// cold pages each time. With default timeouts, idle connections have closed by then too.
const LOOKS_BETWEEN: u32 = 18;

/// Growth in bytes that is trimmed at the first idle check, since it stems from a burst of
/// requests.
const BURST_BYTES_MIN: u64 = 16 << 20;

/// Free bytes at the top of a heap that the allocator retains for the next burst. Its default of
/// 128 KiB is less than the responses of one scheduler turn of a core need, so it released pages
/// and faulted them in again, zeroed, every turn.
const HEAP_SPARE_BYTES: i32 = 4 << 20;

/// Allocation size in bytes from which the allocator maps and unmaps memory per use. Setting the
/// trim threshold disables the allocator's dynamic adjustment of this one.
const LARGE_BYTES: i32 = 1 << 20;

/// Configures the allocator to retain memory for bursts. Call it before starting any thread.
/// [`keep_small`] returns that memory when idle.
pub fn prepare() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `mallopt` changes settings of the allocator and has no preconditions
        // (mallopt(3)). No other thread runs yet; if one did, the function would take the
        // allocator's lock.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, HEAP_SPARE_BYTES);
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        }
    }
}

/// Returns the heap's free pages to the system. Has no effect on platforms other than glibc.
pub fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the function has no preconditions and may be called from any thread
        // (malloc_trim(3)).
        unsafe { libc::malloc_trim(0) };
    }
}

/// Trims the heap whenever the process is idle, until dropped. Returns if the platform does not
/// report CPU time or resident memory.
pub async fn keep_small() {
    let mut watch = ResidentWatch::default();
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let (Some(cpu), Some(resident)) = (cpu(), resident()) else { return };
        if watch.look(cpu, resident) {
            trim();
            watch.note_trim(self::cpu().unwrap_or(cpu), self::resident().unwrap_or(resident));
        }
    }
}

/// Decides when to trim.
#[derive(Default)]
struct ResidentWatch {
    /// CPU time at the last check.
    cpu: Duration,
    /// Resident bytes after the last trim.
    left: u64,
    /// Number of checks until small growth justifies a trim.
    pause: u32,
    /// Whether the last trim followed growth. It is then repeated after the pause, because memory
    /// freed meanwhile by closing connections does not appear in the resident size.
    owes: bool,
}

impl ResidentWatch {
    /// Takes the process's CPU time and resident bytes. Returns whether to trim now.
    fn look(&mut self, cpu: Duration, resident: u64) -> bool {
        let is_quiet = cpu.saturating_sub(self.cpu) <= QUIET_CPU_MAX;
        self.cpu = cpu;
        self.pause = self.pause.saturating_sub(1);
        let worth = if self.pause == 0 { GROWTH_BYTES_MIN } else { BURST_BYTES_MIN };
        let has_grown = resident >= self.left.saturating_add(worth);
        if !is_quiet || !(has_grown || (self.owes && self.pause == 0)) {
            return false;
        }
        self.owes = has_grown;
        true
    }

    /// Records a trim. The values are those after it, since trimming takes CPU time itself.
    fn note_trim(&mut self, cpu: Duration, resident: u64) {
        *self = ResidentWatch { cpu, left: resident, pause: LOOKS_BETWEEN, owes: self.owes };
    }
}

/// Returns the CPU time of all threads since the start.
fn cpu() -> Option<Duration> {
    #[cfg(unix)]
    {
        let mut spent = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `spent` is initialized and valid for writes during the call (clock_gettime(2)).
        let outcome = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut spent) };
        let (seconds, nanos) = (u64::try_from(spent.tv_sec).ok()?, u32::try_from(spent.tv_nsec).ok()?);
        (outcome == 0).then(|| Duration::new(seconds, nanos))
    }
    #[cfg(not(unix))]
    None
}

/// Returns the resident bytes, or `None` if the platform does not report them. Assumes the smallest
/// page size, which suffices to detect growth.
pub(crate) fn resident() -> Option<u64> {
    const PAGE_BYTES: u64 = 4096;
    let counts = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(counts.split(' ').nth(1)?.parse::<u64>().ok()? * PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const MB: u64 = 1 << 20;

    #[test]
    fn memory_is_given_back_once_the_process_falls_quiet() {
        let mut watch = ResidentWatch::default();
        assert!(!watch.look(900 * MS, 50 * MB), "it is busy starting");
        assert!(!watch.look(2_000 * MS, 60 * MB), "and answering");
        assert!(watch.look(2_005 * MS, 60 * MB));
    }

    #[test]
    fn it_is_not_given_back_again_and_again() {
        let mut watch = ResidentWatch::default();
        watch.note_trim(900 * MS, 10 * MB);
        let looks: Vec<bool> = (1..=30).map(|look| watch.look((900 + look) * MS, 20 * MB)).collect();
        let pause = LOOKS_BETWEEN as usize - 1;
        assert_eq!(looks.iter().position(|is_time| *is_time), Some(pause));
    }

    #[test]
    fn what_a_burst_has_left_is_given_back_at_once() {
        let mut watch = ResidentWatch::default();
        watch.note_trim(900 * MS, 10 * MB);
        assert!(!watch.look(2_000 * MS, 40 * MB));
        assert!(watch.look(2_001 * MS, 40 * MB));
    }

    #[test]
    fn what_is_freed_later_is_given_back_too_and_then_it_is_over() {
        let mut watch = ResidentWatch::default();
        let mut cpu = 0;
        let mut looks_until_trimmed = |resident| {
            (1..=1000).find(|_| {
                cpu += 1;
                let is_time = watch.look(cpu * MS, resident);
                if is_time {
                    watch.note_trim(cpu * MS, resident);
                }
                is_time
            })
        };
        assert_eq!(looks_until_trimmed(50 * MB), Some(1));
        assert_eq!(looks_until_trimmed(50 * MB), Some(LOOKS_BETWEEN));
        assert_eq!(looks_until_trimmed(50 * MB), None);
    }

    #[test]
    fn little_growth_is_not_worth_it() {
        let mut watch = ResidentWatch::default();
        watch.note_trim(900 * MS, 10 * MB);
        assert!((1..=30).all(|look| !watch.look((900 + look) * MS, 10 * MB + GROWTH_BYTES_MIN - 1)));
    }

    #[test]
    fn the_work_of_giving_back_does_not_count_as_work() {
        let mut watch = ResidentWatch { pause: 1, ..ResidentWatch::default() };
        watch.note_trim(900 * MS, 0);
        watch.pause = 0;
        assert!(watch.look(901 * MS, MB));
    }

    #[test]
    fn the_program_goes_on_as_before() {
        let words: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        trim();
        assert_eq!(words.concat().len(), 10 + 90 * 2 + 900 * 3);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn time_and_memory_are_read() {
        assert!(cpu().is_some_and(|cpu| cpu > Duration::ZERO));
        assert!(resident().is_some_and(|bytes| bytes > MB));
    }
}
