//! The configuration files that the project ships: each is read without a finding, and the sample
//! has every key.

use std::path::{Path, PathBuf};
use switchback::config::{self, ConfigOutcome, Environment, LimitsConfig};
use switchback_compiler::diagnostic::{Colour, to_text};
use switchback_compiler::yaml::{self, Kind};

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(name: &str, text: &str) -> ConfigOutcome {
    let variable = |name: &str| match name {
        "DEMO_LISTEN" => Some("127.0.0.1:1".to_owned()),
        "DEMO_ADMIN" => Some("127.0.0.1:2".to_owned()),
        "DEMO_SANDBOX" => Some("http://127.0.0.1:3".to_owned()),
        "DEMO_SUNSET" => Some("2027-01-01T00:00:00Z".to_owned()),
        "DEMO_CALLBACK" => Some("http://127.0.0.1:2/oauth/callback".to_owned()),
        "SWITCHBACK_STORE" => Some("postgres://switchback:secret@db/switchback".to_owned()),
        "ACME_WEBHOOK_SECRET" | "NOTICES_SECRET" => Some("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned()),
        "NOTICES_URL" => Some("https://operations.example/notices".to_owned()),
        other => Some(format!("value-of-{other}")),
    };
    let read_file = |path: &Path| Ok(format!("content of {}", path.display()).into_bytes());
    config::parse(name, text, &Environment { variable: &variable, read_file: &read_file })
}

fn assert_read(name: &str, text: &str) -> config::Config {
    let outcome = read(name, text);
    let shown = to_text(&outcome.sources, &outcome.findings, Colour::Never);
    assert!(outcome.findings.is_empty(), "{name}:\n{shown}");
    outcome.config.expect("there are no findings")
}

fn text(path: &str) -> String {
    std::fs::read_to_string(project(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_sample_is_read_as_it_stands() {
    let config = assert_read("sample", &text("deploy/switchback.sample.yaml"));
    assert_eq!(config.limits, LimitsConfig::default(), "the limits that the sample shows are the defaults");
}

#[test]
fn the_sample_is_read_with_everything_that_is_commented_out() {
    let sample = text("deploy/switchback.sample.yaml");
    let uncommented: Vec<String> = sample.lines().map(uncomment).collect();
    let config = assert_read("sample", &uncommented.join("\n"));
    assert!(config.tls.is_some() && config.mapping.is_some() && config.sunsets.len() == 1);
    assert!(config.upstream("v2").is_some() && config.clients[1].company.is_some());
    assert!(config.clients[0].grant.as_ref().is_some_and(|grant| grant.refresh_token.is_some()));
}

/// A key that is commented out, without its `#`: no space follows it, as one does in sentences.
fn uncomment(line: &str) -> String {
    let key = line.trim_start();
    match key.strip_prefix('#').filter(|key| !key.starts_with(' ')) {
        Some(bare) => line.replacen(key, bare, 1),
        None => line.to_owned(),
    }
}

/// Every setting of the built-in pack is documented with a valid value and its purpose.
#[test]
fn the_sample_has_every_setting_of_the_built_in_pack() {
    let compiled = switchback_compiler::mapping::compile(&switchback::app::builtin::source());
    let pack = compiled.pack.expect("it compiles");
    let sample: Vec<String> = text("deploy/switchback.sample.yaml").lines().map(uncomment).collect();
    let config = assert_read("sample", &sample.join("\n"));
    let mut given: Vec<&str> = config.setting_places.iter().map(|(name, _)| name.as_str()).collect();
    let mut known: Vec<&str> = pack.settings.iter().map(|setting| setting.name.as_str()).collect();
    given.sort_unstable();
    known.sort_unstable();
    assert_eq!(given, known);
    let values = config.settings.value.to_string();
    let values = switchback_json::Value::parse(values.as_bytes(), &switchback_json::Limits::DOCUMENT);
    let settings = switchback_engine::translate::Settings::new(&pack, &values.expect("it is JSON"));
    assert!(settings.is_ok(), "{settings:?}");
    let page = text("mappings/messaging/README.md");
    let untold: Vec<&&str> = known.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(untold.is_empty(), "{untold:?}");
}

#[test]
fn the_sample_has_every_key_of_the_schema() {
    let sample: Vec<String> = text("deploy/switchback.sample.yaml").lines().map(uncomment).collect();
    let (mut sources, mut findings) =
        (switchback_compiler::diagnostic::Sources::new(), switchback_compiler::diagnostic::Findings::new());
    let sample = without_references(&sample.join("\n"));
    let tree = yaml::parse(&mut sources, "sample", sample.as_bytes(), &mut findings).expect("YAML");
    let schema = config::schema();
    let keys = |node: &yaml::Node| match &node.kind {
        Kind::Map(entries) => entries.iter().map(|(key, _)| key.name.clone()).collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    let sections =
        [("", None), ("limits", Some("limits")), ("admin", Some("admin")), ("oauth", Some("oauth"))];
    for (name, section) in
        sections.into_iter().chain(["tls", "log", "reload", "shadow"].map(|section| (section, Some(section))))
    {
        let (node, schema) = match section {
            None => (&tree, &schema),
            Some(key) => (tree.get(key).unwrap_or_else(|| panic!("{key}")), &schema["properties"][key]),
        };
        let have = keys(node);
        for key in schema["properties"].as_object().expect("a section has keys").keys() {
            assert!(have.contains(key), "`{name}.{key}` is missing in the sample");
        }
    }
}

/// The text with an ordinary word in place of every `${…}`, which is YAML only for the reader of
/// configurations.
fn without_references(text: &str) -> String {
    let mut parts = text.split("${");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + "value" + part.split_once('}').map_or(part, |(_, rest)| rest))
}

#[test]
fn the_files_of_compose_chart_and_demo_are_read() {
    assert_read("compose", &text("deploy/compose.switchback.yaml"));
    assert_read("demo", &text("mappings/messaging/demo.yaml"));
    let chart = text("deploy/chart/values.yaml");
    let block = chart.split("\nconfig:\n").nth(1).expect("the chart has a configuration");
    let lines: Vec<&str> =
        block.lines().take_while(|line| line.starts_with("  ")).map(|line| &line[2..]).collect();
    assert_read("chart", &lines.join("\n"));
}
