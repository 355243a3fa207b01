//! The history: every modifying call of the admin API, form of the studio and verb adds an entry
//! with its author. The lists of calls, forms and verbs are the program's own, so that a new one
//! must be added here.

use crate::support::dual::{ADMIN_TOKEN, Dual, Running, Upstreams, ask, eventually, started};
use crate::support::editor::copy;
use crate::support::raw::{Answer, Client};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use switchback::admin::{AdminRoute, ROUTES};
use switchback::app::FORMS;
use switchback_sandbox::{Options, Sandbox};

const OPERATION: &str = "GET /chats";

/// The calls of the API that may change something.
fn calls() -> impl Iterator<Item = &'static AdminRoute> {
    ROUTES.iter().filter(|route| route.method == "POST")
}

async fn world() -> (Sandbox, Dual, Running) {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let pack = dual.folder.path().join("pack");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging"), &pack);
    let more = format!(
        "mapping: {{ folder: '{}', writable: true }}\n\
         rollout: {{ plan: {{ steps: [shadow, {{ phase: canary, share: 50% }}, translated] }} }}\n",
        pack.display()
    );
    dual.configure(&service, Upstreams::of(&service), &["administrator", "manager"], &more);
    let gateway = dual.started().await;
    (service, dual, gateway)
}

/// A request to the admin port; `fields` end in `\r\n` each.
async fn send(gateway: &Running, line: &str, fields: &str, body: &str) -> Answer {
    let mut client = Client::connect(gateway.admin).await;
    let length = body.len();
    client
        .send(format!("{line} HTTP/1.1\r\nhost: localhost\r\n{fields}content-length: {length}\r\n\r\n{body}"))
        .await;
    client.answer().await.expect("the admin port answers")
}

/// A call of the API on somebody's behalf; gives the answer once its status is one of success.
async fn call(gateway: &Running, line: &str, body: &Value) -> Value {
    let fields = format!(
        "authorization: Bearer {ADMIN_TOKEN}\r\nx-operator: Grace\r\ncontent-type: application/json\r\n"
    );
    let mut found = Value::Null;
    eventually(line, async || {
        let answer = send(gateway, line, &fields, &body.to_string()).await;
        found = serde_json::from_slice(&answer.body).unwrap_or_default();
        // The only thing that can be in the way here is a capture that is still open.
        assert!(answer.status < 300 || found["error"] == "another capture is open", "{line}: {found}");
        answer.status < 300
    })
    .await;
    found
}

/// All entries, as auditors download them, once they have all of these, each with its kind and its author.
async fn entries(gateway: &Running, wanted: &[(&str, &str)]) -> Vec<Value> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    let has_all = async {
        loop {
            let (_, all) = gateway.admin("GET /history/export.json", &Value::Null).await;
            found = all.as_array().cloned().unwrap_or_default();
            let is_there = |(kind, by): &&(&str, &str)| {
                found
                    .iter()
                    .any(|one| one["kind"] == *kind && one["by"].as_str().is_some_and(|text| text == *by))
            };
            missing =
                wanted.iter().filter(|one| !is_there(one)).map(|one| format!("{one:?}")).collect::<Vec<_>>();
            if missing.is_empty() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    let came = tokio::time::timeout(std::time::Duration::from_secs(20), has_all).await;
    assert!(came.is_ok(), "no entry of {missing:?} in {found:#?}");
    found
}

/// Adds a remark to a mapping file. Returns the id of the recorded pack without it.
async fn other_pack(dual: &Dual, gateway: &Running) -> String {
    let file = dual.folder.path().join("pack/agents.map.yaml");
    let text = std::fs::read_to_string(&file).expect("the pack was copied");
    std::fs::write(&file, format!("# A remark.\n{text}")).expect("it is written");
    let mut id = String::new();
    eventually("both packs are recorded", async || {
        let (_, list) = gateway.admin("GET /api/packs", &Value::Null).await;
        id = list["packs"][1]["id"].as_str().unwrap_or_default().to_owned();
        !id.is_empty()
    })
    .await;
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_of_the_api_that_changes_something_leaves_an_entry() {
    let (service, dual, gateway) = world().await;
    let mut done = BTreeSet::from(["/api/playground", "/api/playground/what-if"]);
    let window = json!({
        "operations": [OPERATION], "clients": ["manager"], "from": "2998-12-31", "until": "2999-01-01", "reason": "it ends",
    });
    let app = json!({"client_id": "an-application", "client_secret": "and-its-secret"});
    for (pattern, body) in [
        ("/api/clients", json!({"name": "beta", "side": "v2"})),
        ("/api/clients/{name}/rotate", json!({})),
        ("/api/clients/{name}/credential", json!({"side": "v2", "token": "long-enough-for-a-token"})),
        ("/api/clients/{name}/connect", app),
        ("/api/clients/{name}/sunset", json!({"at": "2999-01-01"})),
        ("/api/clients/{name}/revoke", json!({})),
        ("/api/clients/{name}/restore", json!({})),
        ("/api/events/retry", json!({})),
        ("/api/events/drop", json!({"receiver": "nobody"})),
        ("/api/reload", json!({})),
        ("/api/phases", json!({"operation": OPERATION, "phase": "legacy", "reason": "it is slow"})),
        ("/api/rollouts/start", json!({"operation": OPERATION})),
        ("/api/rollouts/pause", json!({"operation": OPERATION})),
        ("/api/rollouts/resume", json!({"operation": OPERATION})),
        ("/api/rollouts/promote", json!({"operation": OPERATION})),
        ("/api/rollouts/abort", json!({"operation": OPERATION})),
        ("/api/phases/reset", json!({"operation": OPERATION, "reason": "it is not"})),
    ] {
        call(&gateway, &format!("POST {}", pattern.replace("{name}", "beta")), &body).await;
        done.insert(pattern);
    }
    // Only a client with a grant has something to ask for tokens with.
    let retried = call(&gateway, "POST /api/clients/manager/retry", &json!({})).await;
    assert_eq!([&retried["refreshed"], &retried["error"]], [&json!(true), &Value::Null]);
    done.insert("/api/clients/{name}/retry");
    let id = call(&gateway, "POST /api/brownouts", &window).await["id"].as_str().expect("an id").to_owned();
    call(&gateway, &format!("POST /api/brownouts/{id}/remove"), &json!({})).await;
    done.extend(["/api/brownouts", "/api/brownouts/{id}/remove"]);
    let id = other_pack(&dual, &gateway).await;
    call(&gateway, &format!("POST /api/packs/{id}/restore"), &json!({})).await;
    done.insert("/api/packs/{id}/restore");
    // A capture continues until it is ended.
    let ((), _) = tokio::join!(
        async {
            call(&gateway, "POST /api/capture", &json!({"operation": OPERATION, "seconds": 60})).await;
        },
        async {
            let fields = format!(
                "authorization: Bearer {ADMIN_TOKEN}\r\nx-operator: Grace\r\ncontent-type: application/json\r\n"
            );
            eventually("a capture is ended", async || {
                send(&gateway, "POST /api/capture/end", &fields, "{}").await.status == 202
            })
            .await;
        },
    );
    call(&gateway, "POST /api/playground/record", &json!({"exchanges": 1})).await;
    done.extend(["/api/capture", "/api/capture/end", "/api/playground/record"]);
    assert_eq!(done, calls().map(|call| call.path).collect(), "each call of the list is made here");

    let by =
        |kind: &str| if kind == "transition" { "operator, Grace (admin API)" } else { "Grace (admin API)" };
    let wanted: Vec<(&str, &str)> =
        calls().filter_map(|call| Some((call.history?, by(call.history?)))).collect();
    let all = entries(&gateway, &wanted).await;
    let of = |kind: &str| all.iter().find(|one| one["kind"] == kind).expect("it is there");
    let set = of("brownout set");
    assert_eq!(
        [&set["scope"], &set["from"], &set["until"], &set["why"]],
        ["v2: GET /chats; manager", "2998-12-31T00:00:00Z", "2999-01-01T00:00:00Z", "it ends"]
    );
    assert_eq!(of("brownout removed")["subject"], set["subject"]);
    assert_eq!(
        (&of("capture begun")["subject"], of("capture begun")["until"].is_string()),
        (&json!(OPERATION), true)
    );
    assert_eq!(
        [&of("credential set")["scope"], &of("client added")["scope"]],
        ["calls to v2", "fronts of v2"]
    );
    let set_up = of("clients configured");
    assert_eq!(
        (&set_up["by"], &set_up["why"]),
        (&json!("configuration"), &json!("2 added or changed: administrator, manager"))
    );
    let reasons: BTreeSet<&str> = all.iter().filter_map(|one| one["why"].as_str()).collect();
    assert!(reasons.contains("it is slow") && reasons.contains("it is not"), "{reasons:?}");
    assert!(
        all.iter().all(|one| one["by"].as_str().is_some_and(|by| !by.is_empty())),
        "each has an author: {all:#?}"
    );
    let secrets = ["long-enough-for-a-token", "and-its-secret", "sbt_"];
    assert!(!secrets.iter().any(|secret| json!(all).to_string().contains(secret)), "no secret is in it");
    // An unlisted call is not found, even if another handler answers it.
    let (status, _) = gateway.admin("POST /api/clients/beta", &json!({})).await;
    assert_eq!(status, 404);
    drop(service);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_form_of_the_studio_that_changes_something_leaves_an_entry() {
    let (_service, dual, gateway) = world().await;
    call(&gateway, "POST /api/clients", &json!({"name": "beta"})).await;
    let form = "content-type: application/x-www-form-urlencoded\r\norigin: http://localhost\r\n";
    let answer = send(&gateway, "POST /login", form, &format!("token={ADMIN_TOKEN}&name=Ada&to=/")).await;
    let cookie = answer
        .values("set-cookie")
        .first()
        .expect("a session")
        .split(';')
        .next()
        .expect("its value")
        .to_owned();
    let fields = format!("{form}cookie: {cookie}\r\n");
    let page = send(&gateway, "GET /clients", &format!("cookie: {cookie}\r\n"), "").await.text();
    let (_, rest) = page.split_once("name=\"form_token\" value=\"").expect("a form");
    let token = rest.split('"').next().expect("a token");
    let window = "operation=GET+/chats&client=*&minutes=10&from=2998-12-31T10:00";
    let mut done = BTreeSet::from([
        "/playground",
        "/editor",
        "/editor/check",
        "/editor/complete",
        "/editor/what-if",
        "/editor/patch",
    ]);
    for (pattern, body) in [
        ("/clients/brownouts", window),
        ("/clients/brownouts/{id}/remove", ""),
        ("/clients/{name}/sunset", "at=2999-01-02&announce=on"),
        ("/clients/{name}/rotate", ""),
        ("/clients/{name}/revoke", ""),
        ("/clients/{name}/restore", ""),
        ("/operations/{side}/{operation}/move", "phase=shadow&share=&reason=both+agree"),
        ("/operations/{side}/{operation}/hold", "reason=a+holiday"),
        ("/operations/{side}/{operation}/release", ""),
        ("/operations/{side}/{operation}/start", "plan=plan"),
        ("/operations/{side}/{operation}/pause", ""),
        ("/operations/{side}/{operation}/resume", ""),
        ("/operations/{side}/{operation}/promote", ""),
        ("/operations/{side}/{operation}/abort", ""),
        ("/playground/record", ""),
        ("/reload", ""),
    ] {
        let (_, windows) = gateway.admin("GET /api/brownouts", &Value::Null).await;
        let path = pattern
            .replace("{name}", "beta")
            .replace("{side}", "v2")
            .replace("{operation}", "GET%20%2Fchats");
        let path = path.replace("{id}", windows[0]["id"].as_str().unwrap_or_default());
        let answer =
            send(&gateway, &format!("POST {path}"), &fields, &format!("form_token={token}&{body}")).await;
        assert!([200, 303].contains(&answer.status), "{path}: {} {}", answer.status, answer.text());
        done.insert(pattern);
    }
    call(&gateway, "POST /api/capture/end", &json!({})).await;
    let path = "POST /editor/record";
    let answer = send(&gateway, path, &fields, &format!("form_token={token}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    done.insert("/editor/record");
    let page =
        send(&gateway, "GET /editor?file=pack.yaml", &format!("cookie: {cookie}\r\n"), "").await.text();
    let (_, rest) = page.split_once("name=\"opened:pack.yaml\" value=\"").expect("the served text");
    let opened = rest.split('"').next().expect("a digest");
    let text = std::fs::read_to_string(dual.folder.path().join("pack/pack.yaml")).expect("a manifest");
    let text = utf8_percent_encode(&format!("{text}# changed\n"), NON_ALPHANUMERIC).to_string();
    let body = format!("form_token={token}&opened%3Apack.yaml={opened}&text%3Apack.yaml={text}");
    let answer = send(&gateway, "POST /editor/save", &fields, &body).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    done.insert("/editor/save");
    // Only a client with an application can be connected.
    let path = "POST /clients/manager/retry";
    let answer = send(&gateway, path, &fields, &format!("form_token={token}")).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    done.insert("/clients/{name}/retry");
    let path = "POST /clients/manager/connect";
    let answer = send(&gateway, path, &fields, &format!("form_token={token}")).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    let link = answer.value("set-cookie").split(';').next().unwrap_or_default().to_owned();
    let with_link = fields.replacen("cookie: ", &format!("cookie: {link}; "), 1);
    let client = send(&gateway, "GET /clients/manager", &with_link, "").await.text();
    assert!(client.contains("connect-url"), "{link}: {client}");
    done.insert("/clients/{name}/connect");
    let id = other_pack(&dual, &gateway).await;
    // The form names the pack that it was rendered for.
    eventually("the pack is restored", async || {
        let page =
            send(&gateway, "GET /pack?show=recorded", &format!("cookie: {cookie}\r\n"), "").await.text();
        let Some((_, rest)) = page.split_once("name=\"seen\" value=\"") else { return false };
        let seen = rest.split('"').next().unwrap_or_default().replace(' ', "+").replace(':', "%3A");
        let body = format!("form_token={token}&seen={seen}&id={id}");
        send(&gateway, "POST /pack/restore", &fields, &body).await.status == 303
    })
    .await;
    done.insert("/pack/restore");
    assert_eq!(
        done,
        FORMS.iter().map(|(pattern, _)| *pattern).collect(),
        "each form of the list is sent here"
    );

    let by = |kind: &str| if kind == "transition" { "operator, Ada" } else { "Ada" };
    let wanted: Vec<(&str, &str)> =
        FORMS.iter().filter_map(|(_, kind)| Some(((*kind)?, by((*kind)?)))).collect();
    let all = entries(&gateway, &wanted).await;
    let of = |kind: &str| all.iter().filter(|one| one["kind"] == kind).collect::<Vec<_>>();
    assert_eq!(of("brownout set").len(), 1, "once, and not by the page as well: {all:#?}");
    assert_eq!(
        [&of("brownout set")[0]["scope"], &of("brownout set")[0]["until"]],
        ["v2: GET /chats; all clients", "2998-12-31T10:10:00Z"]
    );
    assert_eq!(
        [&of("sunset set")[0]["subject"], &of("sunset set")[0]["from"]],
        ["beta", "2999-01-02T00:00:00Z"]
    );
    assert_eq!(of("gate held")[0]["why"], "a holiday");
    // A form that is not listed is not found.
    let answer = send(&gateway, "POST /clients/beta/nothing", &fields, &format!("form_token={token}")).await;
    assert_eq!(answer.status, 404);
}

/// The verbs without those that have verbs of their own, as their manual pages are named.
fn verbs() -> BTreeSet<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut program = Command::new(env!("CARGO_BIN_EXE_switchback"));
    let status = program.arg("man").arg(folder.path()).status().expect("the program runs");
    assert!(status.success());
    let files = std::fs::read_dir(folder.path()).expect("it was written");
    let names =
        files.map(|file| file.expect("it can be read").file_name().into_string().expect("a plain name"));
    let names: BTreeSet<String> = names.map(|name| name.trim_end_matches(".1").to_owned()).collect();
    let is_leaf = |name: &&String| !names.iter().any(|other| other.starts_with(&format!("{name}-")));
    let plain = |name: &String| name.trim_start_matches("switchback").trim_start_matches('-').to_owned();
    names.iter().filter(is_leaf).map(plain).filter(|name| !name.contains("help")).collect()
}

/// The verbs that change neither a gateway nor its store.
const READING: [&str; 36] = [
    "archive-status",
    "brownout-list",
    "check",
    "client-list",
    "completions",
    "decide",
    "learn",
    "demo",
    "diff-export",
    "diff-report",
    "doctor",
    "events-list",
    "explain",
    "fmt",
    "init",
    "key-generate",
    "lsp",
    "man",
    "new",
    "notices-test",
    "pack-export",
    "pack-list",
    "phase-list",
    "phase-transitions",
    "reference",
    "replay",
    "report",
    "requests",
    "rollout-status",
    "sandbox",
    "serve",
    "status",
    "test",
    "unknown",
    "usage",
    "schema",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_verb_that_changes_something_leaves_an_entry() {
    let (service, dual, gateway) = world().await;
    // The command line reads a token from a file.
    let token = dual.folder.path().join("token");
    std::fs::write(&token, "a-token-of-the-command-line").expect("it is written");
    let (token, admin) = (format!("file:{}", token.display()), format!("http://{}", gateway.admin));
    let credential = format!("v2={token}");
    let by = &["--by", "Edsger"][..];
    let mut wanted = Vec::new();
    let mut done: BTreeSet<String> = READING.iter().map(|name| (*name).to_owned()).collect();
    let added = dual
        .cli_json(
            &[&["brownout", "add", "--for", "10m", "--operation", OPERATION, "--client", "manager"], by]
                .concat(),
        )
        .await;
    let id = added["id"].as_str().expect("an id");
    done.insert("brownout-add".to_owned());
    let pack = other_pack(&dual, &gateway).await;
    wanted.push(("brownout set", "Edsger (command line)"));
    for (verb, words, kind) in [
        ("brownout-remove", vec!["brownout", "remove", id], "brownout removed"),
        ("client-add", vec!["client", "add", "gamma", "--token", &token], "client added"),
        ("client-rotate", vec!["client", "rotate", "gamma"], "token rotated"),
        ("client-credential", vec!["client", "credential", "gamma", &credential], "credential set"),
        ("client-sunset", vec!["client", "sunset", "gamma", "2999-01-01"], "sunset set"),
        ("client-connect", vec!["client", "connect", "manager"], "connect link made"),
        ("client-retry", vec!["client", "retry", "manager"], "refresh requested"),
        ("client-revoke", vec!["client", "revoke", "gamma", "--yes"], "client revoked"),
        ("client-restore", vec!["client", "restore", "gamma"], "client restored"),
        ("pack-restore", vec!["pack", "restore", &pack, "--yes"], "pack restored"),
        ("events-retry", vec!["events", "retry"], "events retried"),
        ("events-drop", vec!["events", "drop", "--all-dead"], "events dropped"),
        ("archive-fill", vec!["archive", "fill", "administrator", "--rate", "1000"], "archive filled"),
        ("archive-clear", vec!["archive", "clear", "administrator", "chats"], "archive cleared"),
        ("phase-set", vec!["phase", "set", OPERATION, "legacy", "--reason", "it is slow"], "transition"),
        ("rollout-start", vec!["rollout", "start", OPERATION], "rollout started"),
        ("rollout-pause", vec!["rollout", "pause", OPERATION], "rollout paused"),
        ("rollout-resume", vec!["rollout", "resume", OPERATION], "rollout resumed"),
        ("rollout-promote", vec!["rollout", "promote", OPERATION], "transition"),
        ("rollout-abort", vec!["rollout", "abort", OPERATION], "rollout aborted"),
        ("phase-reset", vec!["phase", "reset", OPERATION], "transition"),
        ("key-rotate", vec!["key", "rotate"], "key rotated"),
    ] {
        let (code, out, err) = dual.cli(&[&words[..], by].concat()).await;
        // Not every archive can be filled from the sandbox; that it was tried is an entry too.
        assert!(code == Some(0) || verb == "archive-fill", "{words:?}: {out}{err}");
        done.insert(verb.to_owned());
        let author =
            if kind == "transition" { "operator, Edsger (command line)" } else { "Edsger (command line)" };
        wanted.push((kind, author));
    }
    let (code, _, err) = dual.cli(&["capture", "--for", "1s", "--out", "/dev/null", "--admin", &admin]).await;
    assert_eq!(code, Some(0), "{err}");
    done.insert("capture".to_owned());
    assert_eq!(done, verbs(), "each verb either only reads or is run here");
    let all = entries(&gateway, &wanted).await;
    let of = |kind: &str| all.iter().find(|one| one["kind"] == kind).expect("it is there");
    let by = of("capture begun")["by"].as_str().expect("an author").to_owned();
    assert!(by.ends_with(" (admin API)") && !by.starts_with("admin.token"), "{by}: the user of the system");
    assert_eq!(of("brownout set")["scope"], "v2: GET /chats; manager");
    assert!(of("archive cleared")["scope"].as_str().is_some_and(|scope| scope.starts_with("archive chats")));
    // Without --by it is the user of the operating system.
    dual.cli_json(&["client", "sunset", "gamma", "never"]).await;
    let user = by.replace(" (admin API)", " (command line)");
    let all = entries(&gateway, &[("sunset set", &user)]).await;
    assert_eq!(all.iter().filter(|one| one["kind"] == "sunset set").count(), 2);
    let page = gateway.admin_text("GET /history", &Value::Null).await.text();
    for words in ["Edsger (command line)", "v2: GET /chats; manager", "until <time", "it is slow"] {
        assert!(page.contains(words), "the page has {words}: {page}");
    }
    drop(service);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_brownout_of_everything_is_confirmed_and_its_reach_is_known_before() {
    let (service, dual, gateway) = world().await;
    for _ in 0..3 {
        ask(&gateway, &service, "GET /v2/chats", "").await;
    }
    let window = json!({"from": "2998-12-31", "until": "2999-01-01"});
    let with = |name: &str, value: Value| {
        let mut body = window.clone();
        body[name] = value;
        body
    };
    let (status, refused) = gateway.admin("POST /api/brownouts", &window).await;
    let said = refused["error"].as_str().unwrap_or_default().to_owned();
    assert!(status == 400 && said.contains("neither operations nor clients"), "{status} {said}");
    let mut both = with("everything", json!(true));
    both["operations"] = json!([OPERATION]);
    assert_eq!(gateway.admin("POST /api/brownouts", &both).await.0, 400, "one scope, not two");
    assert_eq!(gateway.admin("POST /api/brownouts", &with("operations", json!([OPERATION]))).await.0, 201);
    assert_eq!(gateway.admin("POST /api/brownouts", &with("everything", json!(true))).await.0, 201);

    // Counts are stored within seconds; the list stores them at once.
    gateway.admin("GET /api/usage", &Value::Null).await;
    let later = ["brownout", "add", "--from", "2998-12-31", "--for", "1h"];
    let (code, _, err) = dual.cli(&later).await;
    assert!(code == Some(2) && err.contains("--operation, --client, or --everything"), "{err}");
    let (code, _, err) = dual.cli(&[&later[..], &["--everything"]].concat()).await;
    assert!(code == Some(2) && err.contains("add --yes"), "{err}");
    assert!(err.contains("Reach: 1 client (administrator) made such calls in the last week"), "{err}");
    let (_, all) = gateway.admin("GET /api/brownouts", &Value::Null).await;
    assert_eq!(all.as_array().map(Vec::len), Some(2), "nothing was added: {all}");
    let (code, out, err) = dual.cli(&[&later[..], &["--everything", "--yes"]].concat()).await;
    assert!(code == Some(0) && out.contains("all calls  all clients"), "{out}{err}");
    let (code, _, err) = dual.cli(&[&later[..], &["--client", "manager"]].concat()).await;
    assert!(code == Some(0) && err.contains("its reach is unknown"), "it has not called: {err}");
    assert_eq!(ask(&gateway, &service, "GET /v2/chats", "").await.status, 200, "none of them has begun");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_reload_changes_of_phases_brownouts_and_sunsets_is_in_the_history() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let (dual, gateway) =
        started(&service, Upstreams::of(&service), "phases: { 'GET /chats': legacy }\n").await;
    let text = std::fs::read_to_string(dual.file()).expect("it was written");
    let changed = text.replace("'GET /chats': legacy", "'GET /chats': shadow, 'GET /agents': legacy");
    let more = "brownouts: [ { from: 2998-12-31, until: 2999-01-01, operations: ['GET /chats'] } ]\n\
                sunset: { v2: { sunset: 2999-01-01 } }\n";
    std::fs::write(dual.file(), format!("{changed}{more}")).expect("it is written");
    gateway.admin("POST /api/reload", &json!({})).await;
    let by = "configuration";
    let wanted = [("phases configured", by), ("brownouts configured", by), ("sunsets configured", by)];
    let all = entries(&gateway, &wanted).await;
    let why = |kind: &str| {
        let of: Vec<_> = all.iter().filter(|one| one["kind"] == kind).collect();
        assert_eq!(of.len(), 1, "{kind}: {of:?}");
        of[0]["why"].as_str().expect("a text").to_owned()
    };
    assert_eq!(why("phases configured"), "GET /agents: none to legacy; GET /chats: legacy to shadow");
    assert!(why("brownouts configured").contains("2998-12-31T00:00:00Z"), "{all:?}");
    assert!(why("sunsets configured").starts_with("v2: none to {"), "{all:?}");
    // A reload that does not change them adds no entry.
    gateway.admin("POST /api/reload", &json!({})).await;
    eventually("both reloads are in the history", async || {
        let all = entries(&gateway, &[]).await;
        all.iter().filter(|one| one["kind"] == "reload").count() == 2
    })
    .await;
    let all = entries(&gateway, &[]).await;
    assert_eq!(all.iter().filter(|one| one["kind"] == "phases configured").count(), 1, "{all:?}");
}
