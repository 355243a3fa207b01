//! Python with the packages of `tests/requirements.txt`, as installed by `.ci/run`: independent
//! implementations that judge our output.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the interpreter; `None`, with a message, if it is absent.
pub fn python() -> Option<PathBuf> {
    let of_ci = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../tools/python/bin/python");
    let given = std::env::var_os("SWITCHBACK_PYTHON").map(PathBuf::from);
    let found = given.unwrap_or(of_ci);
    if !found.exists() {
        eprintln!("SKIPPED: no Python with tests/requirements.txt at {} (.ci/run makes it)", found.display());
        return None;
    }
    Some(found)
}

/// Runs a script of the project with arguments and standard input. Returns its output, or its
/// error.
pub fn run(python: &Path, script: &str, arguments: &[&str], input: &str) -> Result<String, String> {
    let mut child = Command::new(python)
        .arg(script)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the interpreter starts");
    // A script that ends before it has read everything prints the reason.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let done = child.wait_with_output().expect("it is our child");
    match done.status.success() {
        true => Ok(String::from_utf8(done.stdout).expect("text")),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}
