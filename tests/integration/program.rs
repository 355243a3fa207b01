//! What the program says of itself: its version, completions of its command line, its manual.

use std::process::{Command, Output};

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
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
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
