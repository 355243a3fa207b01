//! Typical mistakes in a configuration and the complete output of `serve --check` for them: each
//! file of `tests/config_mistakes` is one, with the output in the `.txt` next to it.
//! `UPDATE_EXPECT=1` writes the present output.

use std::path::{Path, PathBuf};
use std::process::Command;
use switchback_gateway::store::seal::SealingKey;

/// Files with several causes; every other one has one mistake and one finding.
const SEVERAL: [(&str, usize); 5] = [
    ("cors-several-mistakes", 6),
    ("notice-several-mistakes", 5),
    ("rollout-mistakes-at-once", 8),
    ("three-mistakes-at-once", 3),
    ("tls-files-missing", 2),
];

/// Placeholders for secrets in these files.
const SECRET: &str = "hunter";

fn said(folder: &Path, file: &str, key: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_switchback"))
        .args(["serve", "--config", file, "--check"])
        .current_dir(folder)
        .env("TEST_KEY", key)
        .env_remove("NOWHERE")
        .output()
        .expect("the program runs");
    let code = output.status.code().expect("it ends by itself");
    let text = [output.stdout, output.stderr].concat();
    format!("{}exit {code}\n", String::from_utf8(text).expect("it says text"))
}

#[test]
fn each_mistake_is_named_once_where_it_is_and_without_its_secrets() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config_mistakes");
    let entries = std::fs::read_dir(&folder).expect("the cases lie in the sources");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut cases: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    cases.sort();
    assert!(cases.len() >= 58, "{} cases", cases.len());
    let key = SealingKey::generate();
    let (mut wrong, mut secrets) = (Vec::new(), 0);
    for case in &cases {
        let file = case.file_name().and_then(|name| name.to_str()).expect("a plain name");
        let name = file.trim_end_matches(".yaml");
        let said = said(&folder, file, key.expose());
        secrets += usize::from(std::fs::read_to_string(case).expect("a text").contains(SECRET));
        let beside = case.with_extension("txt");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&beside, &said).expect("it is written");
        }
        if said != std::fs::read_to_string(&beside).unwrap_or_default() {
            wrong.push(format!("{name}: other words than beside it:\n{said}"));
        }
        let wanted = SEVERAL.iter().find(|(known, _)| *known == name).map_or(1, |(_, count)| *count);
        let findings = said.lines().filter(|line| line.starts_with("error[")).count();
        let places =
            said.lines().filter(|line| line.trim_start().starts_with(&format!("--> {file}:"))).count();
        if (findings, places) != (wanted, wanted) {
            wrong.push(format!("{name}: {findings} findings, {places} places:\n{said}"));
        }
        if said.contains(SECRET) || said.contains(key.expose()) || !said.ends_with("exit 1\n") {
            wrong.push(format!("{name}: a secret, or not refused:\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(secrets > 10, "there are secrets in {secrets} of them");
}

/// A secret in the place of names, paths and addresses that can be read, and only turn out to be wrong later.
#[test]
fn a_secret_in_the_place_of_a_name_a_path_or_an_address_is_in_no_output() {
    const SECRET: &str = "Zx81Qm2Lp04Nv7Rk55Tb";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let key = SealingKey::generate();
    let whole = "key: ${TEST_KEY}\nupstreams: { v3: { url: 'http://127.0.0.1:9/v3' } }\nsettings: { agents: { max_chats: 10 } }\n";
    for line in [
        "mapping: SECRET",
        "tls: { certificate: SECRET, private_key: SECRET }",
        "store: sqlite:SECRET/switchback.db",
        "store: SECRET",
        "listen: SECRET",
        "fronts: { /v2: { speaks: SECRET } }",
        "fronts: { /SECRET: { speaks: v2, unknown: SECRET } }",
        "clients: [ { name: SECRET, v9_token: SECRET } ]",
        "phases: { default: SECRET }",
        "phases: { 'GET /SECRET': legacy }",
        "sunset: { SECRET: { sunset: 2999-01-01 } }",
        "brownouts: [ { from: 2020-01-01, until: 2999-01-01, operations: [SECRET] } ]",
        "limits: { total_timeout: SECRET }",
        "log: { level: SECRET, format: SECRET }",
        "settings: { agents: { max_chats: SECRET } }",
        "upstreams: { v3: { url: SECRET } }",
        "upstreams: { v3: { url: 'http://127.0.0.1:9/SECRET', tls: { ca: SECRET } } }",
        "upstreams: { SECRET: { url: 'http://127.0.0.1:9/v3' } }",
        "oauth: { issuer: SECRET, redirect_url: SECRET }",
    ] {
        let rest = whole.lines().filter(|other| other.split(':').next() != line.split(':').next());
        let text = format!("{}\n{}\n", rest.collect::<Vec<_>>().join("\n"), line.replace("SECRET", SECRET));
        std::fs::write(folder.path().join("switchback.yaml"), text).expect("it is written");
        let said = said(folder.path(), "switchback.yaml", key.expose());
        assert!(!said.contains(SECRET), "{line}\n{said}");
        assert!(said.contains("error[") || line.starts_with("store: sqlite"), "{line}\n{said}");
    }
}
