//! The memory that the process may have, and who has how much of it: connections, requests, bodies held whole, trees made of
//! them. Whatever cannot have its share is turned away; nothing waits for memory, and the process does not die of it.
//!
//! Decisions to know:
//!
//! - Shares are taken before memory is, in the size that it will have (a body's announced length, a tree's nodes, the fields of
//!   a form), so that a burst is refused while it comes.
//! - What shares do not see (the allocator's holes, the run time's own) is seen in what of the process is resident, which is
//!   looked at now and then while shares are taken. Close to the bound nobody gets a share.
//! - The bound is `limits.memory`, or what the control group or the machine has.

use crate::resident;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

/// Parts in a hundred of the bound that the process may have resident, and at which no more is given out: what is left is for
/// pages of the kernel that a control group counts too.
const RESIDENT_PERCENT: u64 = 88;

/// Parts in a hundred that shares may make up of what is left of the bound beside the process at its start. The rest is what
/// the allocator loses between them.
const SHARED_PERCENT: u64 = 75;

/// How old the last look at resident memory may be.
const LOOK_AFTER: Duration = Duration::from_millis(20);

/// How often memory is given back while there is too little of it.
const TRIM_AFTER: Duration = Duration::from_secs(1);

/// The memory that shares are taken of. Clones are one.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The whole, of which this may be a part with a bound of its own.
    whole: Option<Memory>,
    used: AtomicU64,
    bytes_max: u64,
    watch: Option<Watch>,
}

/// There is too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short;

impl Memory {
    /// `bytes_max` bytes, whatever the process has.
    pub fn new(bytes_max: u64) -> Memory {
        Memory::of(None, bytes_max, None)
    }

    /// As much as a process that may have `bytes_max` bytes resident can give out.
    pub fn of_process(bytes_max: u64) -> Memory {
        let resident_max = bytes_max / 100 * RESIDENT_PERCENT;
        let own = resident::resident().unwrap_or(0);
        let shared = resident_max.saturating_sub(own) / 100 * SHARED_PERCENT;
        Memory::of(None, shared, Some(Watch::new(resident_max)))
    }

    /// A part of it, of at most so many bytes.
    #[must_use]
    pub fn part(&self, bytes_max: u64) -> Memory {
        Memory::of(Some(self.clone()), bytes_max, None)
    }

    fn of(whole: Option<Memory>, bytes_max: u64, watch: Option<Watch>) -> Memory {
        Memory(Arc::new(Inner { whole, used: AtomicU64::new(0), bytes_max, watch }))
    }

    /// A share of nothing, to grow.
    pub fn share(&self) -> Share {
        Share { memory: self.clone(), bytes: 0 }
    }

    /// A share of so many bytes.
    ///
    /// # Errors
    ///
    /// There is not as much left.
    pub fn take(&self, bytes: u64) -> Result<Share, Short> {
        let mut share = self.share();
        share.grow(bytes)?;
        Ok(share)
    }

    /// Bytes that are shares now.
    pub fn used(&self) -> u64 {
        self.0.used.load(Relaxed)
    }

    /// Bytes that shares may be.
    pub fn bytes_max(&self) -> u64 {
        self.0.bytes_max
    }

    fn grow(&self, bytes: u64) -> Result<(), Short> {
        let used = self.0.used.fetch_add(bytes, Relaxed).saturating_add(bytes);
        let is_short = used > self.0.bytes_max || self.0.watch.as_ref().is_some_and(Watch::is_short);
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

/// Some of the memory, given back when dropped.
#[derive(Debug)]
pub struct Share {
    memory: Memory,
    bytes: u64,
}

impl Share {
    /// Takes more. Without it the share stays as it was.
    ///
    /// # Errors
    ///
    /// There is not as much left.
    pub fn grow(&mut self, bytes: u64) -> Result<(), Short> {
        self.memory.grow(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Bytes that it holds of the budget.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Both as one; both are of the same memory.
    pub fn join(&mut self, mut other: Share) {
        debug_assert!(Arc::ptr_eq(&self.memory.0, &other.memory.0), "each memory gets back what it gave");
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Nothing yet, of the same memory.
    pub fn beside(&self) -> Share {
        self.memory.share()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.memory.shrink(self.bytes);
    }
}

/// Looks at what is resident.
#[derive(Debug)]
struct Watch {
    resident_max: u64,
    start: Instant,
    /// Milliseconds since `start` of the last look, and of the last time that memory was given back.
    looked: AtomicU64,
    trimmed: AtomicU64,
    is_short: AtomicBool,
}

impl Watch {
    fn new(resident_max: u64) -> Watch {
        Watch {
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
        if is_due && self.looked.compare_exchange(looked, now, Relaxed, Relaxed).is_ok() {
            let resident = resident::resident().unwrap_or(0);
            self.is_short.store(resident > self.resident_max, Relaxed);
            if resident > self.resident_max {
                self.trim(now);
            }
        }
        self.is_short.load(Relaxed)
    }

    /// Has memory given back beside those who answer: it takes the allocator's locks.
    fn trim(&self, now: u64) {
        let trimmed = self.trimmed.load(Relaxed);
        let is_due = trimmed == 0 || now.saturating_sub(trimmed) >= TRIM_AFTER.as_millis() as u64;
        if is_due && self.trimmed.compare_exchange(trimmed, now.max(1), Relaxed, Relaxed).is_ok() {
            // Without a thread it is given back later.
            let _ = std::thread::Builder::new().name("trim".to_owned()).spawn(resident::trim);
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Bytes that this process may have: the least of what its cgroups and the machine have; none where nothing tells.
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

/// The least bound of the cgroups that this process is in, of either version (cgroups(7)), up to the outermost that can be
/// seen: inside a container the path of a group may be one that is seen outside only.
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
        assert_eq!((share.bytes(), memory.used()), (10, 10));
        let mut joined = memory.share();
        joined.join(share);
        assert_eq!((joined.bytes(), memory.used()), (10, 10));
        drop(joined);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn a_part_is_bounded_by_itself_and_by_the_whole() {
        let whole = Memory::new(10);
        let (first, second) = (whole.part(6), whole.part(8));
        assert_eq!(first.take(7).unwrap_err(), Short);
        let share = first.take(6).unwrap();
        assert_eq!(second.take(5).unwrap_err(), Short);
        assert_eq!((second.used(), whole.used()), (0, 6), "what was refused is not counted");
        drop(share);
        assert!(second.take(8).is_ok());
        assert_eq!((first.used(), second.used(), whole.used()), (0, 0, 0));
    }

    #[test]
    fn a_process_that_has_more_than_it_may_gives_nothing_out() {
        let memory = Memory::of(None, u64::MAX, Some(Watch::new(1)));
        memory.0.watch.as_ref().unwrap().is_short.store(true, Relaxed);
        assert_eq!(memory.take(1).unwrap_err(), Short);
        assert_eq!(memory.used(), 0);
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
