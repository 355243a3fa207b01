//! Process metrics, as defined by Prometheus' client libraries, read from `/proc` on demand. On
//! systems without `/proc` there are none. (The crate `metrics-process` does the same, but depends
//! on thirty crates for systems on which the gateway does not run.)

use rustix::process::{Resource, getrlimit};
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Current figures of this process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) cpu: Duration,
    pub(super) resident_bytes: f64,
    pub(super) virtual_bytes: f64,
    pub(super) threads: f64,
    /// Time since 1970.
    pub(super) started: Option<Duration>,
    pub(super) open_fds: Option<f64>,
    pub(super) max_fds: f64,
}

/// Reads the current figures. Returns `None` if the system does not provide them.
pub(super) fn current() -> Option<Process> {
    let stat = Stat::parse(&fs::read_to_string("/proc/self/stat").ok()?)?;
    let open = fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
    Some(Process {
        cpu: stat.cpu,
        resident_bytes: stat.resident_pages as f64 * rustix::param::page_size() as f64,
        virtual_bytes: stat.virtual_bytes as f64,
        threads: stat.threads as f64,
        started: start_time(stat.started),
        // Exclude the descriptor that reads the folder.
        open_fds: open.map(|open| open.saturating_sub(1) as f64),
        // Unlimited is the largest number, as in the client libraries.
        max_fds: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) as f64,
    })
}

/// Converts the start time after boot to the time since 1970.
fn start_time(after_boot: Duration) -> Option<Duration> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime = Duration::try_from_secs_f64(uptime.split(' ').next()?.parse().ok()?).ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    // Round to seconds, or the value would vary between readings by the skew of the two clocks.
    Some(Duration::from_secs((now - uptime + after_boot).as_secs()))
}

/// Fields of `/proc/self/stat` (proc(5)).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// User and kernel time.
    cpu: Duration,
    threads: u64,
    /// Time after boot.
    started: Duration,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Stat> {
        // The process name may contain spaces and parentheses. After it, the third field follows.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ticks =
            |ticks: u64| Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second());
        Some(Stat {
            cpu: ticks(field(14)? + field(15)?),
            threads: field(20)?,
            started: ticks(field(22)?),
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_program_may_hold_anything() {
        let line =
            "7 (a) (b 1 2) S 1 7 7 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 5 0 1200 4096000 300 184467440";
        let stat = Stat::parse(line).expect("a line of proc(5)");
        let seconds =
            |ticks: u64| Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second());
        assert_eq!((stat.cpu, stat.started), (seconds(300), seconds(1200)));
        assert_eq!((stat.threads, stat.virtual_bytes, stat.resident_pages), (5, 4_096_000, 300));
        assert_eq!(Stat::parse("7 (a) S 1"), None);
    }

    #[test]
    fn this_process_began_a_moment_ago() {
        let stat = Stat::parse(&fs::read_to_string("/proc/self/stat").expect("there")).expect("it is read");
        let age = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970")
            - start_time(stat.started).expect("known");
        assert!(age < Duration::from_secs(3600) && stat.resident_pages > 0 && stat.threads > 1, "{age:?}");
    }
}
