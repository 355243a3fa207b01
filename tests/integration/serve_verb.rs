//! `switchback serve` as an operator runs it: what it says about a configuration, how it starts, reloads and stops.

use crate::support::serving::{self, start as serve};
use std::path::{Path, PathBuf};

/// A configuration whose service cannot be reached: nothing here calls it.
fn write(folder: &Path, more: &str) -> PathBuf {
    serving::write(folder, "127.0.0.1:9", more)
}

#[test]
fn it_serves_reloads_on_sighup_and_stops_on_sigterm() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = serve(&write(folder.path(), ""), &[]);
    program.stderr_until("serving");
    program.signal("HUP");
    program.stderr_until("reloaded");
    program.signal("TERM");
    let (status, log) = program.ended();
    assert!(status.success(), "{status}: {log}");
    assert!(log.contains("draining") && log.contains("stopped"), "{log}");
}

#[test]
fn a_right_configuration_is_said_to_be_right_and_nothing_is_opened() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = serve(&write(folder.path(), ""), &["--check"]);
    program.stdout_until("ready to serve");
    let (status, log) = program.ended();
    assert!(status.success(), "{log}");
    assert!(!folder.path().join("store.db").exists());
}

#[test]
fn a_wrong_configuration_is_shown_with_all_its_mistakes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), "realod: { watch: false }\nlimits: { body_bytes: 1MB }\n");
    let (status, log) = serve(&file, &[]).ended();
    assert_eq!(status.code(), Some(1), "{log}");
    for part in ["switchback.yaml:7:1", "did you mean `reload`?", "switchback.yaml:8:23", "10MiB"] {
        assert!(log.contains(part), "{part} in {log}");
    }
}

#[test]
fn what_the_pack_does_not_have_is_shown_in_the_configuration() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), "fronts: { /v2: { speaks: v22 } }\n");
    let (status, log) = serve(&file, &["--check"]).ended();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("`v22` is not a side of the pack") && log.contains("switchback.yaml:7:26"), "{log}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let (status, log) = serve(Path::new("/nowhere/switchback.yaml"), &[]).ended();
    assert_eq!(status.code(), Some(3), "{log}");
    assert!(log.contains("/nowhere/switchback.yaml cannot be read"), "{log}");
}
