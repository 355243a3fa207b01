//! The description of the admin port, `/api/openapi.json`, checked against the running program by
//! schemathesis.

use crate::support::dual::{ADMIN_TOKEN, Running, Upstreams, started};
use crate::support::python;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;
use switchback::admin::ROUTES;
use switchback_sandbox::{Options, Sandbox};

/// The variable of a client's path has a value that exists. Captures last as long as their caller
/// wants, a well-formed body may name what does not exist, and wrong tokens are slowed down by 429,
/// which the checks of credentials take for an error; `admin::guard` has tests of them.
const SETTINGS: &str = r#"
[cache]
enabled = false

[parameters]
"path.name" = "manager"

[checks]
positive_data_acceptance.enabled = false
ignored_auth.enabled = false
missing_required_header.enabled = false

[[operations]]
include-path = "/api/capture"
enabled = false

[[operations]]
include-path = "/oauth/callback"
checks.not_a_server_error.enabled = false
"#;

/// Runs schemathesis with a fixed seed. `None`: it is not installed.
fn schemathesis(gateway: &Running) -> Option<(bool, String)> {
    let python = python::python()?;
    let has = Command::new(&python).args(["-c", "import schemathesis"]).output().expect("it starts");
    if !has.status.success() {
        eprintln!("SKIPPED: the Python packages lack schemathesis (.ci/run installs it)");
        return None;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("schemathesis.toml"), SETTINGS).expect("it is written");
    let output = Command::new(python)
        .current_dir(folder.path())
        .args(["-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"])
        .arg(format!("http://{}/api/openapi.json", gateway.admin))
        .args(["--header", &format!("Authorization: Bearer {ADMIN_TOKEN}")])
        .args(["--phases", "examples,coverage,fuzzing", "--max-examples", "8", "--seed", "7"])
        .args(["--generation-deterministic", "--no-shrink"])
        .args(["--suppress-health-check", "all", "--continue-on-failure", "--no-color", "--warnings", "off"])
        .output()
        .expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((output.status.success(), text(&output.stdout) + &text(&output.stderr)))
}

/// Compares the document with the table of the router, in both directions.
async fn is_the_table(gateway: &Running, document: &Value) {
    let paths = document["paths"].as_object().expect("paths");
    let described: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, item)| item.as_object().expect("methods").keys().map(move |method| (path, method)))
        .map(|(path, method)| (path.clone(), method.to_ascii_uppercase()))
        .collect();
    let routed = ROUTES.iter().map(|route| (route.path.to_owned(), route.method.to_owned())).collect();
    assert_eq!(described, routed);
    assert_eq!(described.len(), ROUTES.len(), "no route is there twice");
    let operations = paths.values().flat_map(|item| item.as_object().expect("methods").values());
    let ids: BTreeSet<&str> = operations.filter_map(|one| one["operationId"].as_str()).collect();
    assert_eq!(ids.len(), ROUTES.len(), "{ids:?}");
    for (path, method) in described {
        let other = if method == "GET" { "POST" } else { "GET" };
        let is_only = paths[&path].as_object().is_some_and(|item| item.len() == 1);
        let path = path.replace(['{', '}'], "");
        // Another method shows that the path is known, without an effect.
        let answer = gateway.admin_text(&format!("{other} {path}"), &Value::Null).await;
        assert!(!is_only || answer.status == 405, "{other} {path}: {}", answer.status);
    }
    let text = document.to_string();
    let used = text.split("\"#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next());
    let defined = document["components"]["schemas"].as_object().expect("schemas");
    assert_eq!(used.collect::<BTreeSet<_>>(), defined.keys().map(String::as_str).collect());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_admin_port_answers_as_its_description_says() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let tickets = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings/messaging");
    let (_dual, gateway) =
        started(&service, Upstreams::of(&service), &format!("mapping: '{tickets}'\n")).await;
    let manager = json!({ "name": "manager", "side": "v2", "token": "a-token-of-the-manager" });
    assert_eq!(gateway.admin("POST /api/clients", &manager).await.0, 201);
    let (status, document) = gateway.admin("GET /api/openapi.json", &Value::Null).await;
    assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")));
    is_the_table(&gateway, &document).await;
    let unknown = gateway.admin_text("PUT /api/clients", &Value::Null).await;
    assert_eq!((unknown.status, unknown.values("allow")), (405, vec!["GET, HEAD, POST"]));
    assert_eq!(gateway.admin("GET /api/nothing", &Value::Null).await.0, 404);
    let before = changes(&gateway).await;
    let (done, gateway) =
        tokio::task::spawn_blocking(|| (schemathesis(&gateway), gateway)).await.expect("it ends");
    if let Some((is_whole, text)) = done {
        assert!(is_whole, "{text}");
        let after = changes(&gateway).await;
        assert!(after.len() > before.len() + 3, "it has changed something: {after:?}, {text}");
    }
}

/// The kinds of changes in the history.
async fn changes(gateway: &Running) -> BTreeSet<String> {
    let (_, entries) = gateway.admin("GET /history/export.json", &Value::Null).await;
    let kinds = entries.as_array().expect("a list").iter().filter_map(|entry| entry["kind"].as_str());
    kinds.map(str::to_owned).collect()
}
