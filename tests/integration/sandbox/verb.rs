//! `switchback sandbox` from a user's view: its output works when pasted, and a signal ends it.

use super::Service;
use http::Method;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A started program, ended at the latest with the test. Its output stays open, so that it can go
/// on printing.
struct Program {
    child: Child,
    _output: BufReader<ChildStdout>,
}

impl Drop for Program {
    fn drop(&mut self) {
        // It is gone already where the test went well.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Starts the verb on a free port. Returns its output up to the last curl line.
fn start(arguments: &[&str]) -> (Program, Vec<String>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
    command.args(["sandbox", "--listen", "127.0.0.1:0"]).args(arguments);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut printed = Vec::new();
    for line in output.by_ref().lines().map(|line| line.expect("text")) {
        let is_last = line.contains("/oauth/access_token") && line.trim_start().starts_with("curl");
        printed.push(line);
        if is_last {
            break;
        }
    }
    (Program { child, _output: output }, printed)
}

/// Returns the words of a command line, split like a shell does.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.trim().chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("there is always one").push(c),
        }
    }
    words
}

/// Executes a curl line of ours: `-H`, `-d` and an address.
async fn run(client: &Service, line: &str) -> u16 {
    let words = words(line);
    let mut words = words.iter().map(String::as_str);
    assert_eq!(words.next(), Some("curl"));
    let (mut headers, mut body, mut address) = (Vec::new(), "", "");
    while let Some(word) = words.next() {
        match word {
            "-H" => headers.push(words.next().and_then(|header| header.split_once(": ")).expect("a header")),
            "-d" => body = words.next().expect("a body"),
            other => address = other,
        }
    }
    let method = if body.is_empty() { Method::GET } else { Method::POST };
    let answer = client.send_to(address, method, &headers, body.to_owned()).await.expect("an answer");
    answer.status.as_u16()
}

#[tokio::test]
async fn the_printed_lines_work_and_a_signal_ends_it() {
    let client = Service::start().await;
    let (mut program, printed) = start(&["--expires-in", "5m"]);
    let lines: Vec<&String> = printed.iter().filter(|line| line.starts_with("  curl")).collect();
    let mut statuses = Vec::new();
    for line in lines {
        statuses.push(run(&client, line).await);
    }
    assert_eq!(statuses, [200, 200, 201, 200]);
    let text = printed.join("\n");
    let same_seed = client.sandbox.credentials();
    for part in
        [&same_seed.v2_token, &same_seed.client_id, &same_seed.client_secret, &same_seed.refresh_token]
    {
        assert!(text.contains(part.as_str()), "{part} is printed");
    }

    let id = program.child.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &id]).status().expect("a signal sent");
    assert!(killed.success());
    assert_eq!(program.child.wait().expect("it ends").code(), Some(0));
}

#[tokio::test]
async fn a_taken_address_is_an_error_that_says_so() {
    let taken = Service::start().await;
    let address = taken.sandbox.address().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_switchback"))
        .args(["sandbox", "--listen", &address])
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("switchback sandbox: "));
}
