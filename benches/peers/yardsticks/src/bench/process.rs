//! The processes of a peer: started on the first core, observed through `/proc`, stopped on drop.

use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const STOP_WAIT_MAX: Duration = Duration::from_secs(3);

/// A running command with the processes that it started.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a command on a core (if given), with its output in a file. It is signalled when this
    /// process ends.
    pub fn start(command: &Command, core: Option<usize>, log: &Path) -> Result<Self> {
        let mut words = vec!["setpriv".to_owned(), "--pdeathsig".to_owned(), "TERM".to_owned()];
        if let Some(core) = core {
            words.extend(["taskset".to_owned(), "-c".to_owned(), core.to_string()]);
        }
        let out = fs::OpenOptions::new().create(true).append(true).open(log)?;
        let mut bound = Command::new(&words[0]);
        bound.args(&words[1..]).arg(command.get_program()).args(command.get_args());
        bound.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        bound.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let child = bound.spawn().with_context(|| format!("{command:?} cannot be started"))?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Fails with the last output if the process has ended.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("it ended with {status}: {}", self.last_words());
        }
        Ok(())
    }

    /// Returns the last output.
    pub fn last_words(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let last = log.len().saturating_sub(2000);
        log.get(last..).unwrap_or(&log).to_owned()
    }

    /// Truncates the log, which would otherwise grow without a reader.
    pub fn forget_log(&self) -> Result<()> {
        Ok(fs::OpenOptions::new().write(true).open(&self.log)?.set_len(0)?)
    }

    /// Returns the process and all of its descendants.
    pub fn tree(&self) -> Vec<u32> {
        let mut tree = vec![self.child.id()];
        let mut at = 0;
        while let Some(pid) = tree.get(at).copied() {
            for thread in entries(&format!("/proc/{pid}/task")) {
                let children =
                    fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
                tree.extend(children.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            }
            at += 1;
        }
        tree
    }

    /// Returns the time for which the threads ran on a core and waited for one, so far.
    pub fn cpu(&self) -> Cpu {
        let mut threads = HashMap::new();
        for pid in self.tree() {
            for thread in entries(&format!("/proc/{pid}/task")) {
                let text =
                    fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).unwrap_or_default();
                let mut words = text.split(' ').map(|word| word.parse().unwrap_or(0));
                threads.insert(thread, [words.next().unwrap_or(0), words.next().unwrap_or(0)]);
            }
        }
        Cpu { threads }
    }

    /// Returns a line of `/proc/PID/status` in bytes, summed over all processes:
    /// `VmRSS` (resident), `RssAnon` (anonymous) or `VmHWM` (peak of resident memory).
    pub fn memory(&self, line: &str) -> u64 {
        let of = |pid: u32| {
            let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let value = text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'));
            let kibibytes = value.and_then(|value| value.trim().trim_end_matches(" kB").parse::<u64>().ok());
            kibibytes.unwrap_or(0) * 1024
        };
        self.tree().into_iter().map(of).sum()
    }

    /// Resets `VmHWM` to the present resident memory.
    pub fn forget_peak(&self) {
        for pid in self.tree() {
            // If the kernel does not permit it, the peak is that since the start, which is never less.
            fs::write(format!("/proc/{pid}/clear_refs"), "5").ok();
        }
    }
}

impl Process {
    /// Ends the process, if it is running, and waits for it.
    pub fn stop(&mut self) {
        let (pid, start) = (rustix::process::Pid::from_child(&self.child), Instant::now());
        let mut signal = Some(rustix::process::Signal::TERM);
        // Before it is waited for, the process id cannot be reused.
        while matches!(self.child.try_wait(), Ok(None)) {
            if let Some(signal) = signal.take() {
                rustix::process::kill_process(pid, signal).ok();
            } else if start.elapsed() > STOP_WAIT_MAX {
                eprintln!("process {} did not end in {STOP_WAIT_MAX:?} and is killed", pid.as_raw_pid());
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Nanoseconds of each thread, running and waiting, at one time.
pub struct Cpu {
    threads: HashMap<String, [u64; 2]>,
}

/// The activity of a peer's threads between two times.
#[derive(Clone, Copy)]
pub struct Spent {
    /// Time on a core, user and system.
    pub running: Duration,
    /// Time ready to run without a core.
    pub waiting: Duration,
}

impl Cpu {
    /// Returns the difference to an earlier time. Threads that ended in between are omitted; a
    /// proxy ends them after idle time.
    pub fn since(&self, earlier: &Cpu) -> Spent {
        let sum = |at: usize| {
            let spent = self.threads.iter().map(|(thread, now)| {
                let before = earlier.threads.get(thread).map_or(0, |before| before[at]);
                now[at].saturating_sub(before)
            });
            Duration::from_nanos(spent.sum())
        };
        Spent { running: sum(0), waiting: sum(1) }
    }
}

fn entries(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}
