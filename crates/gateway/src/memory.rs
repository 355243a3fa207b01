//! Process-wide memory budget. Connections, requests, buffered bodies and parsed trees reserve
//! bytes before they allocate. A reservation that does not fit fails at once; no caller waits for
//! memory.
//!
//! - Callers reserve the expected size (announced body length, node count, form fields), so a burst
//!   is rejected on arrival.
//! - Reservations do not cover allocator fragmentation or runtime overhead. The budget therefore
//!   samples resident memory every 20 ms while callers reserve, and rejects all of them above 88 %
//!   of the limit.
//! - The limit is `limits.memory`, or else that of the control group or the machine.

use crate::resident;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

/// Percentage of the limit that may be resident before all reservations fail. The rest covers
/// kernel pages, which a control group counts too.
const RESIDENT_PERCENT: u64 = 88;

/// Percentage available to reservations, of the limit minus the memory resident at start. The rest
/// covers allocator fragmentation.
const SHARED_PERCENT: u64 = 75;

/// Minimum time between two samples of resident memory.
const LOOK_AFTER: Duration = Duration::from_millis(20);

/// Minimum time between two `malloc_trim` calls under pressure.
const TRIM_AFTER: Duration = Duration::from_secs(1);

/// A shared memory budget. Clones refer to the same budget.
#[derive(Clone, Debug)]
pub struct Memory(Arc<MemoryInner>);

#[derive(Debug)]
struct MemoryInner {
    /// The parent budget, if this is a part with its own limit.
    whole: Option<Memory>,
    used: AtomicU64,
    bytes_max: u64,
    watch: Option<MemoryWatch>,
}

/// The memory budget is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short;

impl Memory {
    /// Returns a budget of `bytes_max` bytes that does not watch resident memory.
    pub fn new(bytes_max: u64) -> Memory {
        Memory::new_part(None, bytes_max, None)
    }

    /// Returns the budget of a process whose resident memory is limited to `bytes_max` bytes.
    pub fn of_process(bytes_max: u64) -> Memory {
        let resident_max = bytes_max / 100 * RESIDENT_PERCENT;
        // The program, the pack and the store's caches are resident before the first request and
        // remain so.
        let own = resident::resident().unwrap_or(0);
        let shared = resident_max.saturating_sub(own) / 100 * SHARED_PERCENT;
        Memory::new_part(None, shared, Some(MemoryWatch::new(resident_max)))
    }

    /// Returns a child budget of at most `bytes_max` bytes. Its reservations also count against
    /// this budget.
    #[must_use]
    pub fn part(&self, bytes_max: u64) -> Memory {
        Memory::new_part(Some(self.clone()), bytes_max, None)
    }

    fn new_part(whole: Option<Memory>, bytes_max: u64, watch: Option<MemoryWatch>) -> Memory {
        Memory(Arc::new(MemoryInner { whole, used: AtomicU64::new(0), bytes_max, watch }))
    }

    /// Returns an empty reservation that can grow.
    pub fn share(&self) -> MemoryShare {
        MemoryShare { memory: self.clone(), bytes: 0 }
    }

    /// Reserves `bytes` bytes.
    ///
    /// # Errors
    ///
    /// The budget is exhausted.
    pub fn take(&self, bytes: u64) -> Result<MemoryShare, Short> {
        let mut share = self.share();
        share.grow(bytes)?;
        Ok(share)
    }

    /// Returns the number of reserved bytes.
    pub fn bytes_used(&self) -> u64 {
        self.0.used.load(Relaxed)
    }

    /// Returns the limit of reservations in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.0.bytes_max
    }

    fn grow(&self, bytes: u64) -> Result<(), Short> {
        // Add first and undo on failure, so that concurrent reservations cannot exceed the limit
        // together.
        let used = self.0.used.fetch_add(bytes, Relaxed).saturating_add(bytes);
        let is_short = used > self.0.bytes_max || self.0.watch.as_ref().is_some_and(MemoryWatch::is_short);
        let grown = match (is_short, &self.0.whole) {
            (true, _) => Err(Short),
            (false, Some(whole)) => whole.grow(bytes),
            (false, None) => Ok(()),
        };
        if grown.is_err() {
            self.0.used.fetch_sub(bytes, Relaxed);
        }
        grown
    }

    fn shrink(&self, bytes: u64) {
        self.0.used.fetch_sub(bytes, Relaxed);
        if let Some(whole) = &self.0.whole {
            whole.shrink(bytes);
        }
    }
}

/// A reservation, released on drop.
#[derive(Debug)]
pub struct MemoryShare {
    memory: Memory,
    bytes: u64,
}

impl MemoryShare {
    /// Reserves more bytes. On failure the reservation is unchanged.
    ///
    /// # Errors
    ///
    /// The budget is exhausted.
    pub fn grow(&mut self, bytes: u64) -> Result<(), Short> {
        self.memory.grow(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Returns the reserved bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Merges another reservation of the same budget into this one.
    pub fn join(&mut self, mut other: MemoryShare) {
        debug_assert!(Arc::ptr_eq(&self.memory.0, &other.memory.0), "each memory gets back what it gave");
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Returns an empty reservation of the same budget.
    pub fn empty_share(&self) -> MemoryShare {
        self.memory.share()
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.memory.shrink(self.bytes);
    }
}

/// Samples resident memory.
#[derive(Debug)]
struct MemoryWatch {
    resident_max: u64,
    start: Instant,
    /// Time of the last sample and of the last trim, in milliseconds since `start`.
    looked: AtomicU64,
    trimmed: AtomicU64,
    is_short: AtomicBool,
}

impl MemoryWatch {
    fn new(resident_max: u64) -> MemoryWatch {
        MemoryWatch {
            resident_max,
            start: Instant::now(),
            looked: AtomicU64::new(0),
            trimmed: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
        }
    }

    fn is_short(&self) -> bool {
        let now = self.now();
        let looked = self.looked.load(Relaxed);
        let is_due = now.saturating_sub(looked) >= LOOK_AFTER.as_millis() as u64;
        // One caller per interval samples; the others use its result without a system call.
        if is_due && self.looked.compare_exchange(looked, now, Relaxed, Relaxed).is_ok() {
            let resident = resident::resident().unwrap_or(0);
            self.is_short.store(resident > self.resident_max, Relaxed);
            if resident > self.resident_max {
                self.trim(now);
            }
        }
        self.is_short.load(Relaxed)
    }

    /// Starts a trim on another thread, because it holds the allocator's locks for a while.
    fn trim(&self, now: u64) {
        let trimmed = self.trimmed.load(Relaxed);
        let is_due = trimmed == 0 || now.saturating_sub(trimmed) >= TRIM_AFTER.as_millis() as u64;
        if is_due && self.trimmed.compare_exchange(trimmed, now.max(1), Relaxed, Relaxed).is_ok() {
            // If no thread can be started, a later sample tries again.
            let _ = std::thread::Builder::new().name("trim".to_owned()).spawn(resident::trim);
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Returns the memory limit of this process in bytes: the lowest of its cgroups and the machine.
/// Returns `None` if neither is known.
pub fn limit() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    group_limit(&read).into_iter().chain(machine_limit(&read)).min()
}

type ReadFile<'r> = &'r dyn Fn(&Path) -> Option<String>;

fn machine_limit(read: ReadFile<'_>) -> Option<u64> {
    let text = read(Path::new("/proc/meminfo"))?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Returns the lowest limit among the process's cgroups (cgroups(7), both versions) and their
/// ancestors. Inside a container the path may exist only outside of it, so missing files are
/// skipped.
fn group_limit(read: ReadFile<'_>) -> Option<u64> {
    let cgroups = read(Path::new("/proc/self/cgroup"))?;
    let bounds = cgroups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (root, file) = match controllers.split(',').any(|controller| controller == "memory") {
            true => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            false if number == "0" => ("/sys/fs/cgroup", "memory.max"),
            false => return None,
        };
        let ancestors = Path::new(path).ancestors();
        let files = ancestors.map(|group| {
            let inner = group.strip_prefix("/").unwrap_or(group);
            PathBuf::from(root).join(inner).join(file)
        });
        files.filter_map(|file| read(&file)?.trim().parse::<u64>().ok()).min()
    });
    bounds.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_share_is_given_or_not_and_given_back() {
        let memory = Memory::new(10);
        let mut share = memory.take(6).unwrap();
        assert_eq!(memory.take(5).unwrap_err(), Short);
        assert_eq!(share.grow(5), Err(Short));
        assert_eq!(share.grow(4), Ok(()));
        assert_eq!((share.bytes(), memory.bytes_used()), (10, 10));
        let mut joined = memory.share();
        joined.join(share);
        assert_eq!((joined.bytes(), memory.bytes_used()), (10, 10));
        drop(joined);
        assert_eq!(memory.bytes_used(), 0);
    }

    #[test]
    fn a_part_is_bounded_by_itself_and_by_the_whole() {
        let whole = Memory::new(10);
        let (first, second) = (whole.part(6), whole.part(8));
        assert_eq!(first.take(7).unwrap_err(), Short);
        let share = first.take(6).unwrap();
        assert_eq!(second.take(5).unwrap_err(), Short);
        assert_eq!((second.bytes_used(), whole.bytes_used()), (0, 6), "what was refused is not counted");
        drop(share);
        assert!(second.take(8).is_ok());
        assert_eq!((first.bytes_used(), second.bytes_used(), whole.bytes_used()), (0, 0, 0));
    }

    #[test]
    fn a_process_that_has_more_than_it_may_gives_nothing_out() {
        let memory = Memory::new_part(None, u64::MAX, Some(MemoryWatch::new(1)));
        memory.0.watch.as_ref().unwrap().is_short.store(true, Relaxed);
        assert_eq!(memory.take(1).unwrap_err(), Short);
        assert_eq!(memory.bytes_used(), 0);
        assert!(Memory::of_process(u64::MAX / 200).take(MIB).is_ok());
    }

    fn limit_of(files: &[(&str, &str)]) -> Option<u64> {
        let read = |path: &Path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path);
            file.map(|(_, text)| (*text).to_owned())
        };
        group_limit(&read)
    }

    #[test]
    fn the_least_bound_of_all_groups_counts_in_either_version() {
        let second = [
            ("/proc/self/cgroup", "0::/system.slice/switchback.service\n"),
            ("/sys/fs/cgroup/system.slice/switchback.service/memory.max", "max\n"),
            ("/sys/fs/cgroup/system.slice/memory.max", "67108864\n"),
        ];
        assert_eq!(limit_of(&second), Some(64 * MIB));
        let first = [
            ("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/docker/0123\n0::/a\n"),
            ("/sys/fs/cgroup/memory/docker/0123/memory.limit_in_bytes", "536870912\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/a/memory.max", "max\n"),
        ];
        assert_eq!(limit_of(&first), Some(512 * MIB));
        // Inside a container: the path is that of the host, and only the group's own files are there.
        let container = [
            ("/proc/self/cgroup", "4:memory:/kubepods/pod1/0123\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864"),
        ];
        assert_eq!(limit_of(&container), Some(64 * MIB));
        assert_eq!(limit_of(&[("/proc/self/cgroup", "0::/\n")]), None);
    }

    #[test]
    fn the_machine_has_a_bound() {
        let read = |_: &Path| Some("MemFree: 1 kB\nMemTotal:       1024 kB\n".to_owned());
        assert_eq!(machine_limit(&read), Some(MIB));
    }
}
