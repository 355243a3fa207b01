//! The real binary as a child process: started, listened to, stopped as an operator would.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Timeout for expected output of the program.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `switchback`; killed when dropped.
pub struct Program {
    child: Child,
    stdout: Mutex<Receiver<String>>,
    stderr: Mutex<Receiver<String>>,
}

impl Program {
    /// Starts the binary of this build with these arguments and variables of the environment.
    pub fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Program {
        Program::spawn(Command::new(env!("CARGO_BIN_EXE_switchback")).args(arguments), variables)
    }

    /// The same with at most so many descriptors.
    pub fn start_with_descriptors(count: u32, arguments: &[&str], variables: &[(&str, &str)]) -> Program {
        let script = format!("ulimit -n {count}; exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_switchback")]).args(arguments);
        Program::spawn(&mut shell, variables)
    }

    /// Starts the binary with two listening sockets, as a service manager passes them (sd_listen_fds(3)).
    pub fn activated(
        [clients, admin]: [&TcpListener; 2],
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Program {
        // The shell knows the number of the process before the program runs in it.
        let script =
            "export LISTEN_PID=$$ LISTEN_FDS=2; exec \"$0\" \"$@\" 3<&0 4<&1 0</dev/null 1>/dev/null";
        let mut shell = Command::new("sh");
        shell.args(["-c", script, env!("CARGO_BIN_EXE_switchback")]).args(arguments);
        let passed = |socket: &TcpListener| OwnedFd::from(socket.try_clone().expect("a descriptor is free"));
        shell.stdin(passed(clients)).stdout(passed(admin));
        Program::run(&mut shell, variables)
    }

    fn spawn(command: &mut Command, variables: &[(&str, &str)]) -> Program {
        Program::run(command.stdin(Stdio::null()).stdout(Stdio::piped()), variables)
    }

    fn run(command: &mut Command, variables: &[(&str, &str)]) -> Program {
        let mut child = command
            .envs(variables.iter().copied())
            .env_remove("RUST_LOG")
            .env_remove("SWITCHBACK_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary of this build starts");
        let stdout = child.stdout.take().map_or_else(|| channel().1, lines);
        let stderr = lines(child.stderr.take().expect("it is piped"));
        Program { child, stdout: Mutex::new(stdout), stderr: Mutex::new(stderr) }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its output, up to the line with `mark`.
    pub fn stdout_until(&self, mark: &str) -> String {
        until(&heard(&self.stdout), mark, || heard(&self.stderr).try_iter().collect::<Vec<_>>().join("\n"))
    }

    /// Returns its log, up to the line with `mark`.
    pub fn stderr_until(&self, mark: &str) -> String {
        until(&heard(&self.stderr), mark, String::new)
    }

    /// Sends a signal by its name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Stops it with a signal, as a service manager does, and waits.
    pub fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        self.child.wait().expect("it is our child")
    }

    /// Waits for its end. Returns its output and its log.
    pub fn all(mut self) -> (ExitStatus, String, String) {
        let status = self.child.wait().expect("it is our child");
        let text = |lines: &Mutex<Receiver<String>>| heard(lines).iter().collect::<Vec<_>>().join("\n");
        (status, text(&self.stdout), text(&self.stderr))
    }

    /// Kills it.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is our child");
    }

    /// Waits for its end. Returns its log, too.
    pub fn ended(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("it is our child");
        (status, heard(&self.stderr).iter().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn heard(lines: &Mutex<Receiver<String>>) -> MutexGuard<'_, Receiver<String>> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

fn until(from: &Receiver<String>, mark: &str, otherwise: impl Fn() -> String) -> String {
    let (begun, mut seen) = (Instant::now(), String::new());
    loop {
        // A program that logs all the time is not waited for any longer than a silent one.
        let Ok(line) = from.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())) else {
            panic!("no `{mark}` in:\n{seen}\n{}", otherwise())
        };
        seen.push_str(&line);
        seen.push('\n');
        if line.contains(mark) {
            return seen;
        }
    }
}

/// Resident bytes of a process.
pub fn resident(id: u32) -> u64 {
    memory(id, "VmRSS:")
}

/// The anonymous part of its memory. The kernel loads and discards pages of the program at will.
pub fn anonymous(id: u32) -> u64 {
    memory(id, "RssAnon:")
}

fn memory(id: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(what)).expect("it has memory");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}
