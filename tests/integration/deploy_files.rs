//! Validates the files of `deploy` with the programs and schemas that read them: Prometheus' own
//! tool, the schemas of Kubernetes and of compose files, systemd.

use crate::support::python;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

fn text(file: &str) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns a program of the system, or `None` with a message if it is absent.
fn installed(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: {name} is not installed");
    }
    found
}

fn said(done: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
}

/// Returns the text after `before`, up to the end of the word.
fn words<'t>(text: &'t str, before: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(before).skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

#[test]
fn alerts_fire_when_they_should_and_only_then() {
    let Some(promtool) = installed("promtool") else { return };
    for arguments in [["check", "rules", "deploy/alerts.yaml"], ["test", "rules", "deploy/alerts.test.yaml"]]
    {
        let done = Command::new(&promtool).args(arguments).output().expect("promtool runs");
        assert!(done.status.success(), "{}", said(&done));
    }
}

#[test]
fn every_alert_is_tested() {
    let rules = text("deploy/alerts.yaml");
    let alerts: BTreeSet<&str> = words(&rules, "- alert: ").collect();
    let tests = text("deploy/alerts.test.yaml");
    let tested: BTreeSet<&str> = words(&tests, "alertname=\"").collect();
    assert!(alerts.len() > 15, "{alerts:?}");
    assert_eq!(alerts, tested);
}

#[test]
fn rules_and_dashboard_name_metrics_that_there_are() {
    let source = text("crates/gateway/src/telemetry/metrics.rs");
    let known: BTreeSet<&str> = words(&source, ": &str = \"switchback_").collect();
    assert!(known.len() > 25, "{known:?}");
    for file in ["deploy/alerts.yaml", "deploy/grafana/switchback.json"] {
        let text = text(file);
        let named: BTreeSet<&str> = words(&text, "switchback_").collect();
        assert!(named.len() > 12, "{file}: {named:?}");
        for name in named {
            let own = name.trim_end_matches("_bucket").trim_end_matches("_count").trim_end_matches("_sum");
            assert!(known.contains(own), "{file} names switchback_{name}");
        }
    }
}

#[test]
fn manifests_and_compose_files_are_as_their_readers_want_them() {
    let Some(python) = python::python() else { return };
    let complaints = python::run(&python, "tests/deploy/check.py", &[], "");
    assert_eq!(complaints, Ok(String::new()));
}

/// The measure of `systemd-analyze security`, in tenths.
const EXPOSURE_MAX: &str = "--threshold=20";

#[test]
fn the_unit_leaves_little_open() {
    let Some(analyze) = installed("systemd-analyze") else { return };
    let judged = |file: &str| {
        let words = ["security", "--no-pager", "--offline=true", EXPOSURE_MAX, file];
        Command::new(&analyze).args(words).output().expect("it runs")
    };
    let done = judged("deploy/switchback.service");
    assert!(done.status.success(), "{}", said(&done));
    // It would report a unit without these restrictions.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let open = folder.path().join("open.service");
    let unit =
        text("deploy/switchback.service").replace("CapabilityBoundingSet=", "#").replace("Protect", "#");
    std::fs::write(&open, unit).expect("the folder is ours");
    assert!(!judged(open.to_str().expect("a plain path")).status.success());
}
