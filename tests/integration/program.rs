//! Information about the program: its version, completions of its command line, its manual.

use std::process::{Command, Output, Stdio};

fn switchback(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_switchback")).args(arguments).output().expect("the program can be run")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("it writes text")
}

#[test]
fn the_version_names_the_commit_where_it_is_known() {
    let said = stdout(&switchback(&["--version"]));
    let version = said.trim().strip_prefix("switchback ").expect("the name first");
    let (version, commit) = version.split_once(' ').unwrap_or((version, ""));
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    let is_commit = |text: &str| text.len() >= 12 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let inner = commit.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    assert!(commit.is_empty() || inner.is_some_and(is_commit), "{said}");
}

#[test]
fn every_verb_can_be_completed_and_has_a_manual_page() {
    let help = stdout(&switchback(&["--help"]));
    let verbs: Vec<&str> = help
        .lines()
        .take_while(|line| *line != "Options:")
        .filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(verbs.len() > 10 && verbs.contains(&"serve"), "{help}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("text");
    assert!(switchback(&["man", path]).status.success());
    let script = stdout(&switchback(&["completions", "bash"]));
    for verb in verbs {
        assert!(
            script.contains(&format!("switchback__subcmd__{verb}"))
                || script.contains(&format!("switchback__{verb}")),
            "{verb}"
        );
        let page = folder.path().join(format!("switchback-{verb}.1"));
        assert!(verb == "help" || page.exists(), "no page for {verb}");
    }
    let nowhere = switchback(&["man", "/proc/nowhere"]);
    assert_eq!(nowhere.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("/proc/nowhere"));
}

/// A reader of only the first lines (`switchback report | head`) causes no panic, and a verb
/// completes its work.
#[test]
fn a_closed_pipe_ends_no_verb() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let store = format!("sqlite:{}", at("switchback.db"));
    let on_store = ["--store", &store, "--key", "env:TEST_KEY"];
    let key = stdout(&switchback(&["key", "generate"]));
    let pack = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings/ingress");
    let nothing = at("nothing");
    let run = |words: &[&str], is_closed: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
        command.args(words).env("TEST_KEY", key.trim()).stderr(Stdio::piped()).stdout(Stdio::null());
        if is_closed {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            command.stdout(writer);
        }
        let output = command.output().expect("the program can be run");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let with_store = |words: &[&'static str]| [words, &on_store[..]].concat();
    let added = run(&with_store(&["client", "add", "acme", "--side", "v2"]), true);
    assert_eq!(added.0, Some(0), "the client is added all the same: {}", added.1);
    for words in [
        with_store(&["client", "list"]),
        with_store(&["usage"]),
        with_store(&["diff", "report"]),
        with_store(&["key", "rotate"]),
        vec!["key", "generate"],
        vec!["report", pack],
        vec!["check", pack],
        vec!["test", pack],
        vec!["explain", "GET /v1/apis/networking.k8s.io/v1/ingresses", pack],
        vec!["schema", "config"],
        vec!["completions", "bash"],
        vec!["--help"],
        vec!["check", &nothing],
    ] {
        let open = run(&words, false);
        let closed = run(&words, true);
        assert_eq!(closed.0, open.0, "{words:?}: {} {}", open.1, closed.1);
        assert!(!closed.1.contains("panicked"), "{words:?}: {}", closed.1);
        // The same for unread messages.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut deaf = Command::new(env!("CARGO_BIN_EXE_switchback"));
        deaf.args(&words).env("TEST_KEY", key.trim()).stdout(Stdio::null()).stderr(writer);
        assert_eq!(deaf.status().expect("the program can be run").code(), open.0, "{words:?}");
    }
}
