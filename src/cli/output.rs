//! Output of the verbs. These macros shadow those of the standard library, which panic once the
//! reader of a pipe has gone (`switchback usage | head`).
//!
//! A closed pipe does not stop a verb: it finishes its work, and its exit code is unchanged. Any
//! other error of standard output exits the program, so that no script mistakes partial output for
//! the complete result.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

macro_rules! print {
    ($($arg:tt)*) => { $crate::cli::output::print_out(format_args!($($arg)*)) };
}

macro_rules! println {
    () => { $crate::cli::output::print_out(format_args!("\n")) };
    ($($arg:tt)*) => {
        $crate::cli::output::print_out(format_args!("{}\n", format_args!($($arg)*)))
    };
}

macro_rules! eprint {
    ($($arg:tt)*) => { $crate::cli::output::print_error(format_args!($($arg)*)) };
}

macro_rules! eprintln {
    ($($arg:tt)*) => {
        $crate::cli::output::print_error(format_args!("{}\n", format_args!($($arg)*)))
    };
}

/// Exit code: the examined object has findings.
pub(super) const HAS_FINDINGS: u8 = 1;
/// Exit code: the verb could not run.
pub(super) const COULD_NOT_RUN: u8 = 3;

/// Returns a number with its noun: `1 call`, `2 calls`.
pub(super) fn count_noun(number: impl Into<u64>, noun: &str) -> String {
    match (number.into(), noun.strip_suffix("ry")) {
        (1, _) => format!("1 {noun}"),
        (number, Some(stem)) => format!("{number} {stem}ries"),
        (number, None) => format!("{number} {noun}s"),
    }
}

/// Joins the lines of a list. `none` is the line of an empty one.
pub(super) fn list(lines: impl Iterator<Item = String>, none: &str) -> String {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { none.to_owned() } else { lines.join("\n") }
}

/// A line on a terminal that is rewritten as the work proceeds.
pub(super) struct Progress {
    is_shown: bool,
    written: Instant,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress { is_shown: io::stderr().is_terminal(), written: Instant::now() }
    }

    /// Rewrites the line if half a second has passed.
    pub(super) fn show(&mut self, text: Arguments<'_>) {
        if self.is_shown && self.written.elapsed() > Duration::from_millis(500) {
            self.written = Instant::now();
            eprint!("\r{text}");
        }
    }

    /// Erases the line.
    pub(super) fn end(&self) {
        if self.is_shown {
            eprint!("\r\x1b[K");
        }
    }
}

/// Replaces the content of a file in one step, so that no reader sees a part of it.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    // A link stays one, and the file that it leads to is replaced.
    let path = path.canonicalize()?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = std::fs::write(&beside, content)
        .and_then(|()| std::fs::set_permissions(&beside, std::fs::metadata(&path)?.permissions()))
        .and_then(|()| std::fs::rename(&beside, &path));
    written.inspect_err(|_| drop(std::fs::remove_file(&beside)))
}

pub(super) fn print_out(text: Arguments<'_>) {
    let mut out = io::stdout().lock();
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("error: cannot write to standard output: {error}");
            std::process::exit(COULD_NOT_RUN.into());
        }
        _ => {}
    }
}

/// Writes to standard error. A failure cannot be reported anywhere, so it is ignored.
pub(super) fn print_error(text: Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::count_noun;

    #[test]
    fn one_thing_is_no_things() {
        let counts = [0_u64, 1, 2].map(|number| count_noun(number, "call"));
        assert_eq!(counts, ["0 calls", "1 call", "2 calls"]);
        assert_eq!(count_noun(3_u64, "entry"), "3 entries");
    }
}
