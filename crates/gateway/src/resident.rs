//! Memory that the process needs no more: what only the start or a reload needed, and what a burst of requests has left
//! behind. Compiling a pack and opening a store leave holes in the heap; connections that have gone leave more of them. The
//! allocator keeps all of it; here it is given back, once when the start is over, with each reload, and whenever the process
//! has fallen quiet, so that what it seems to need is what it needs.
//!
//! Decision to know: but for reloads, which have just taken a core for a good part of a second, nothing of this is ever done
//! while there is work. Whether there is work is read from the time that the process has spent on its cores, so that requests
//! pay nothing for it, not even a counter.
//!
//! Besides the scanning of `json` and one call in `shadow/thread.rs` the only place with `unsafe`.

#![expect(unsafe_code, reason = "calls of the allocator and the system")]

use std::time::Duration;

/// How often it is looked whether the process is quiet.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Time on the cores between two looks, up to which there was no work to speak of.
const QUIET_CPU_MAX: Duration = Duration::from_millis(10);

/// Bytes that must have become resident since the last time, so that giving back is worth it.
const GROWTH_BYTES_MIN: u64 = 1 << 20;

/// Looks until so little is given back again: whoever asks once in a while shall not find cold pages each time. By then idle
/// connections have gone too, unless they are kept longer than usual.
const LOOKS_BETWEEN: u32 = 18;

/// Bytes that are given back at the first quiet look: a burst of requests has left them.
const BURST_BYTES_MIN: u64 = 16 << 20;

/// Free bytes at the end of a heap that the allocator keeps for the next burst. Its own measure, 128 KiB, is less than what the
/// answers of one turn of a core take together: it gave pages back and took them again, zeroed, with every turn.
const HEAP_SPARE_BYTES: i32 = 4 << 20;

/// Bytes from which memory comes from the kernel and goes back to it for each use. The allocator would find it out by itself,
/// were it not told the other measure.
const LARGE_BYTES: i32 = 1 << 20;

/// What to do before anything starts: has the allocator keep what bursts need. It is given back by [`keep_small`].
pub fn prepare() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the function changes settings of the allocator and has no preconditions (mallopt(3)). No other thread runs yet
        // that could be inside of it, and if one did, it would take its lock.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, HEAP_SPARE_BYTES);
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        }
    }
}

/// Gives back the heap's free pages. Does nothing where the allocator has no such thing.
pub fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the function has no preconditions and may be called from any thread (malloc_trim(3)).
        unsafe { libc::malloc_trim(0) };
    }
}

/// Gives memory back whenever the process has fallen quiet, until dropped.
pub async fn keep_small() {
    let mut watch = Watch::default();
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let (Some(cpu), Some(resident)) = (cpu(), resident()) else { return };
        if watch.look(cpu, resident) {
            trim();
            watch.trimmed(self::cpu().unwrap_or(cpu), self::resident().unwrap_or(resident));
        }
    }
}

/// When to give back.
#[derive(Default)]
struct Watch {
    /// Time spent on the cores at the last look.
    cpu: Duration,
    /// Bytes that were left resident by the last trimming.
    left: u64,
    /// Looks to come before little is worth trimming.
    pause: u32,
    /// Whether there has been growth: then it is given back a second time after the pause, since what is freed meanwhile, by
    /// connections that end, shows in no number.
    owes: bool,
}

impl Watch {
    /// Takes the time that the process has spent on its cores since its start and what of it is resident, in bytes; whether
    /// now is the time.
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

    /// Notes that memory was given back, which takes some time itself.
    fn trimmed(&mut self, cpu: Duration, resident: u64) {
        *self = Watch { cpu, left: resident, pause: LOOKS_BETWEEN, owes: self.owes };
    }
}

/// Time that all threads have spent on the cores since the start.
fn cpu() -> Option<Duration> {
    #[cfg(unix)]
    {
        let mut spent = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `spent` is a place for the answer, valid for the call (clock_gettime(2)); it holds a time before it, too.
        let outcome = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut spent) };
        let (seconds, nanos) = (u64::try_from(spent.tv_sec).ok()?, u32::try_from(spent.tv_nsec).ok()?);
        (outcome == 0).then(|| Duration::new(seconds, nanos))
    }
    #[cfg(not(unix))]
    None
}

/// Bytes that are resident. Pages are counted as the smallest there are: this only tells growth.
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
        let mut watch = Watch::default();
        assert!(!watch.look(900 * MS, 50 * MB), "it is busy starting");
        assert!(!watch.look(2_000 * MS, 60 * MB), "and answering");
        assert!(watch.look(2_005 * MS, 60 * MB));
    }

    #[test]
    fn it_is_not_given_back_again_and_again() {
        let mut watch = Watch::default();
        watch.trimmed(900 * MS, 10 * MB);
        let looks: Vec<bool> = (1..=30).map(|look| watch.look((900 + look) * MS, 20 * MB)).collect();
        let pause = LOOKS_BETWEEN as usize - 1;
        assert_eq!(looks.iter().position(|is_time| *is_time), Some(pause));
    }

    #[test]
    fn what_a_burst_has_left_is_given_back_at_once() {
        let mut watch = Watch::default();
        watch.trimmed(900 * MS, 10 * MB);
        assert!(!watch.look(2_000 * MS, 40 * MB));
        assert!(watch.look(2_001 * MS, 40 * MB));
    }

    #[test]
    fn what_is_freed_later_is_given_back_too_and_then_it_is_over() {
        let mut watch = Watch::default();
        let mut cpu = 0;
        let mut looks_until_trimmed = |resident| {
            (1..=1000).find(|_| {
                cpu += 1;
                let is_time = watch.look(cpu * MS, resident);
                if is_time {
                    watch.trimmed(cpu * MS, resident);
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
        let mut watch = Watch::default();
        watch.trimmed(900 * MS, 10 * MB);
        assert!((1..=30).all(|look| !watch.look((900 + look) * MS, 10 * MB + GROWTH_BYTES_MIN - 1)));
    }

    #[test]
    fn the_work_of_giving_back_does_not_count_as_work() {
        let mut watch = Watch { pause: 1, ..Watch::default() };
        watch.trimmed(900 * MS, 0);
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
