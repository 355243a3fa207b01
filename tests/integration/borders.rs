//! The finer borders of `src/README.md`, verified by reading the sources: permitted imports between
//! the rooms of a crate, and access to files, clocks and SQL. Cargo enforces the borders between
//! crates. `words` verifies that only the sandbox names the first pack's service.

use crate::support::sources::{imports, sources, take_apart};
use std::fs;
use std::path::Path;

/// Crates that take values and return values. Their manifests name no library for sockets or tasks.
const PURE: [&str; 5] = ["json", "plan", "compiler", "engine", "playground"];

fn assert_none(broken: Vec<String>) {
    assert!(broken.is_empty(), "borders of src/README.md that are crossed:\n{}", broken.join("\n"));
}

#[test]
fn pure_crates_know_no_sockets_files_clocks_or_threads() {
    const IMPURE: [&str; 7] =
        ["std::net", "std::fs", "std::env", "std::process", "std::thread", "Instant", "SystemTime"];
    const LIBRARIES: [&str; 5] = ["tokio", "hyper", "reqwest", "sqlx", "notify"];
    let mut broken = Vec::new();
    for source in sources().iter().filter(|source| PURE.contains(&source.package.as_str())) {
        // The second file is compiled for tests alone.
        let readers = ["mapping/load.rs", "mapping/manual_pages.rs"];
        let may_read_files = source.package == "compiler" && readers.contains(&source.path.as_str());
        for impure in IMPURE.iter().filter(|impure| !(may_read_files && **impure == "std::fs")) {
            if source.uses(impure) {
                broken.push(format!("{}: {} uses {impure}", source.package, source.path));
            }
        }
    }
    for package in PURE {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(package).join("Cargo.toml");
        let text = fs::read_to_string(manifest).expect("each crate has a manifest");
        let named = LIBRARIES.iter().filter(|library| text.lines().any(|line| line.starts_with(**library)));
        broken.extend(named.map(|library| format!("{package} depends on {library}")));
    }
    assert_none(broken);
}

#[test]
fn rooms_do_not_see_what_they_must_not_see() {
    const FORBIDDEN: [(&str, &str, &[&str]); 13] = [
        ("compiler", "diagnostic", &["yaml", "contract", "mapping"]),
        ("compiler", "yaml", &["contract", "mapping"]),
        ("compiler", "contract", &["mapping"]),
        ("engine", "translate", &["diff", "redact", "evidence", "har"]),
        ("engine", "diff", &["translate", "har"]),
        ("engine", "evidence", &["translate", "diff", "redact", "har"]),
        ("engine", "redact", &["translate", "diff", "evidence", "har"]),
        ("engine", "har", &["translate", "diff", "evidence", "redact"]),
        ("gateway", "capture", &["token", "proxy", "store"]),
        ("gateway", "shadow", &["token", "proxy"]),
        ("gateway", "token", &["body", "proxy"]),
        ("gateway", "store", &["token", "proxy", "shadow"]),
        ("switchback", "replay", &["admin", "config"]),
    ];
    let mut broken = Vec::new();
    for source in sources() {
        let used = source.rooms_used();
        let rules = FORBIDDEN
            .iter()
            .filter(|(package, room, _)| (*package, *room) == (source.package.as_str(), source.room()));
        for (_, _, forbidden) in rules {
            let crossed = forbidden.iter().filter(|room| used.contains(**room));
            broken.extend(
                crossed.map(|room| format!("{}: {} uses the room {room}", source.package, source.path)),
            );
        }
        if source.package == "switchback" && !["app", "cli", "main", "lib"].contains(&source.room()) {
            let crossed = ["app", "cli"].into_iter().filter(|room| used.contains(*room));
            broken.extend(crossed.map(|room| format!("{} uses the room {room}", source.path)));
        }
    }
    assert_none(broken);
}

#[test]
fn rooms_of_the_data_path_build_on_one_another_as_listed() {
    const MAY: [(&str, &[&str]); 5] = [
        ("upstream", &[]),
        ("layers", &[]),
        ("calls", &["upstream"]),
        ("compose", &["calls", "upstream"]),
        ("dual", &["calls", "compose", "layers", "upstream"]),
    ];
    let room = |module: &str| module.strip_prefix("proxy::")?.split("::").next().map(str::to_owned);
    let mut broken = Vec::new();
    for (module, imports) in imports("gateway") {
        let Some((own, may)) = MAY.iter().find(|(own, _)| room(&module).as_deref() == Some(*own)) else {
            continue;
        };
        let is_crossed = |import: &&String| {
            room(import).is_some_and(|other| {
                other != *own && MAY.iter().any(|(room, _)| *room == other) && !may.contains(&other.as_str())
            })
        };
        broken.extend(imports.iter().filter(is_crossed).map(|import| format!("{module} uses {import}")));
    }
    assert_none(broken);
}

#[test]
fn each_outside_thing_has_one_place() {
    const OWNERS: [(&str, &[&str]); 6] = [
        ("sqlx", &["store"]),
        ("saphyr_parser", &["yaml"]),
        ("notify", &["app"]),
        // Calls of the gateway's own; calls on behalf of a client go through `proxy`.
        ("reqwest", &["app", "cli", "events", "http_client", "notices", "replay", "telemetry", "token"]),
        ("annotate_snippets", &["diagnostic"]),
        ("metrics_exporter_prometheus", &["telemetry"]),
    ];
    let mut broken = Vec::new();
    for source in sources() {
        for (library, owners) in OWNERS {
            // The sandbox replaces the service for tests and demos, so its libraries are its own choice.
            if source.package != "sandbox" && !owners.contains(&source.room()) && source.uses_of(library) {
                broken.push(format!("{} uses {library}", source.path));
            }
        }
        let counts = ["counter!(", "gauge!(", "histogram!("].iter().any(|made| source.code.contains(made));
        if source.package != "sandbox" && !source.path.starts_with("telemetry/metrics") && counts {
            broken.push(format!("{} names a metric; `telemetry/metrics.rs` does", source.path));
        }
        let reads_configuration =
            source.code.contains("config::load") || source.code.contains("config::parse");
        if reads_configuration && !["config", "app", "cli"].contains(&source.room()) {
            broken.push(format!("{} reads configuration files", source.path));
        }
    }
    assert_none(broken);
}

#[test]
fn the_judge_of_drawn_exchanges_shares_no_code_with_the_compiler() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/exchange_laws");
    let mut broken = Vec::new();
    for file in ["draw.rs", "edits.rs", "judge.rs", "values.rs"] {
        let text = fs::read_to_string(folder.join(file)).expect("the tests are here when they run");
        let source = take_apart("tests", file.to_owned(), &text);
        let libraries =
            ["compiler", "engine", "gateway", "json", "plan"].map(|name| format!("switchback_{name}"));
        let used = libraries.iter().filter(|library| source.uses_of(library));
        broken.extend(used.map(|library| format!("{file} uses {library}")));
    }
    assert_none(broken);
}

#[test]
fn sources_are_taken_apart_as_the_other_tests_assume() {
    let text = r##"
        use crate::{alpha::{a, b}, beta}; // use crate::comment;
        /* crate::block */ fn f<'a>(x: &'a str) -> char { crate::gamma::g("crate::text \" /chats", r#"raw "x""#); '"' }
        use super::super::delta;
    "##;
    let source = take_apart("gateway", "room/inner.rs".to_owned(), text);
    assert_eq!(source.rooms_used().into_iter().collect::<Vec<_>>(), ["alpha", "beta", "delta", "gamma"]);
    assert!(!source.code.contains("raw") && !source.code.contains("text \\"), "{}", source.code);
    assert!(take_apart("gateway", "a.rs".to_owned(), "use tokio::sync;").uses("tokio"));
    assert!(!take_apart("gateway", "a.rs".to_owned(), "let mytokio = 1;").uses("tokio"));
    assert!(take_apart("gateway", "a.rs".to_owned(), "use tokio::sync;").uses_of("tokio"));
    assert!(!take_apart("gateway", "a.rs".to_owned(), "crate::tokio::x(); tokio.y()").uses_of("tokio"));
}
