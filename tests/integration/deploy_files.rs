//! Validates the files of `deploy` with the programs and schemas that read them: Prometheus' own
//! tool, Helm, the schemas of Kubernetes, compose files and workflows, systemd. Compares the lists
//! of files of the packages, and the versions of everything that a release publishes.

use crate::support::python;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Output};
use switchback_gateway::telemetry::metrics::METRICS;

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
    let known: BTreeSet<&str> =
        METRICS.iter().filter_map(|metric| metric.name.strip_prefix("switchback_")).collect();
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
fn chart_compose_files_and_workflows_are_as_their_readers_want_them() {
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

#[test]
fn the_unit_is_read_without_a_complaint() {
    let Some(analyze) = installed("systemd-analyze") else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let verified = |unit: &str| {
        let file = folder.path().join("switchback.service");
        std::fs::write(&file, unit).expect("the folder is ours");
        said(&Command::new(&analyze).arg("verify").arg(&file).output().expect("it runs"))
    };
    // The program is not installed where tests run.
    let unit = text("deploy/switchback.service").replace("/usr/bin/switchback", "/bin/sh");
    assert!(!verified(&unit).contains("switchback.service:"), "{}", verified(&unit));
    let misspelt = unit.replace("TimeoutStopSec", "TimeoutStopSecs");
    assert!(verified(&misspelt).contains("TimeoutStopSecs"), "a misspelt key is reported");
}

/// A file of a package: its source, and its permissions.
type Assets = BTreeMap<String, (String, String)>;

/// Returns `package.metadata` of the program, as the tools that make packages read it.
fn metadata() -> Value {
    let done = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .output()
        .expect("cargo runs");
    let all: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let packages = all["packages"].as_array().expect("a list");
    packages.iter().find(|package| package["name"] == "switchback").expect("it is one of them")["metadata"]
        .clone()
}

/// Returns the files of a package by their place; a folder stands for the file of the source's name.
fn assets(list: &Value, key: fn(&Value, &str) -> Value) -> Assets {
    let each = list.as_array().expect("a list").iter().map(|asset| {
        let word = |name| key(asset, name).as_str().expect("a text").to_owned();
        let (source, dest) = (word("source"), word("dest"));
        let name = if dest.ends_with('/') { source.rsplit('/').next().unwrap_or_default() } else { "" };
        (format!("/{}{name}", dest.trim_start_matches('/')), (source, word("mode")))
    });
    each.collect()
}

#[test]
fn packages_have_the_same_files_and_those_exist() {
    let metadata = metadata();
    let rpm = assets(&metadata["generate-rpm"]["assets"], |asset, name| asset[name].clone());
    let deb = assets(&metadata["deb"]["assets"], |asset, name| {
        let place = ["source", "dest", "mode"].iter().position(|known| *known == name).expect("one of three");
        asset[place].clone()
    });
    let sources = |assets: &Assets| -> BTreeSet<(String, String)> { assets.values().cloned().collect() };
    // cargo-deb finds these by the name of the package.
    let found =
        ["service", "socket", "sysusers"].map(|kind| (format!("deploy/switchback.{kind}"), "644".to_owned()));
    let mut of_deb = sources(&deb);
    of_deb.extend(found);
    assert_eq!(of_deb, sources(&rpm));
    assert_eq!(metadata["deb"]["systemd-units"]["unit-scripts"], "deploy");
    let scripts = metadata["deb"]["maintainer-scripts"].as_str().expect("a folder");
    assert!(
        text(&format!("{scripts}/postinst")).contains("\n#DEBHELPER#\n"),
        "the user of the service is created there"
    );

    let release = text("deploy/release");
    for (source, _) in rpm.values() {
        match source.strip_prefix("target/release/package/") {
            Some(built) => {
                let word = built.rsplit('/').nth(1).unwrap_or(built);
                assert!(release.contains(&format!("/{word}\"")), "deploy/release does not make {source}");
            }
            None => {
                let fixed = source.split("/*").next().unwrap_or(source);
                assert!(std::path::Path::new(fixed).exists(), "{source} does not exist");
            }
        }
    }
    for script in ["post_install_script", "pre_uninstall_script"] {
        text(metadata["generate-rpm"][script].as_str().expect("a file"));
    }
    // The unit finds the program, its configuration and its user; upgrades do not replace the configuration.
    let unit = text("deploy/switchback.service");
    let read = ["/usr/bin/switchback", "/etc/switchback/switchback.yaml", "/etc/switchback/secrets.env"];
    for place in read {
        assert!(unit.contains(place) && rpm.contains_key(place) && deb.contains_key(place), "{place}");
    }
    assert!(unit.contains("User=switchback") && text("deploy/switchback.sysusers").contains("u switchback "));
    assert_eq!(rpm["/etc/switchback/secrets.env"].1, "600");
    for asset in metadata["generate-rpm"]["assets"].as_array().expect("a list") {
        let configuration = asset["dest"].as_str().is_some_and(|dest| dest.starts_with("/etc/"));
        assert_eq!(asset["config"] == "noreplace", configuration, "{asset}");
    }
}

#[test]
fn everything_that_is_released_has_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    let chart = text("deploy/chart/Chart.yaml");
    assert!(chart.contains(&format!("\nversion: {version}\n")), "{chart}");
    assert!(chart.contains(&format!("\nappVersion: {version}\n")), "{chart}");
    let extension: Value = serde_json::from_str(&text("deploy/editors/vscode/package.json")).expect("JSON");
    assert_eq!(extension["version"], version);
    let changes = text("CHANGELOG.md");
    let mut sections = changes.split("\n## ").skip(1).filter_map(|section| section.split_whitespace().next());
    assert_eq!(
        sections.find(|name| *name != "Unreleased"),
        Some(version),
        "the newest section of CHANGELOG.md"
    );
    // Each lock file of its own workspace, whose package has no version.
    for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let text = text(lock);
        let own = text.split("[[package]]").filter(|package| package.contains("name = \"switchback"));
        for package in own.filter(|package| !package.contains("\"0.0.0\"")) {
            assert!(package.contains(&format!("version = \"{version}\"")), "{lock}: {package}");
        }
    }
}
