//! `switchback capture` and `switchback replay` as an engineer uses them: traffic through a running
//! gateway is recorded without its secrets, and run again through the pack as it is, through a pack
//! with a slip, and against a live service.

use crate::support::program::Program;
use crate::support::raw::exchange;
use crate::support::serving;
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use switchback_engine::har::{Body, Exchange, Request, Response, Writer};
use switchback_gateway::store::seal::SealingKey;
use switchback_sandbox::{Account, Options, Sandbox};

const ADMIN_TOKEN: &str = "admin-token-of-the-test";
/// Planted where clients carelessly put credentials; must be nowhere in an archive.
const PLANTED: &str = "sk_live_Zx81Qm2Lp04Nv7Rk55Tb";
const PACK: &str = "mappings/messaging";

/// A gateway with an admin token, before a sandbox.
struct Gateway {
    program: Program,
    clients: SocketAddr,
    admin: SocketAddr,
    folder: tempfile::TempDir,
}

impl Gateway {
    async fn before(sandbox: &Sandbox) -> Gateway {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let account = administrator(sandbox);
        let enrolled = [serving::Enrolled { account, company: None }];
        let more = serving::connected(sandbox, &enrolled);
        let file = serving::write(folder.path(), &sandbox.address().to_string(), &more);
        let text = fs::read_to_string(&file).expect("it was just written");
        let guarded = format!("admin: {{ listen: 127.0.0.1:0, token: {ADMIN_TOKEN} }}");
        fs::write(&file, text.replace("admin: { listen: 127.0.0.1:0 }", &guarded))
            .expect("the file is written");
        let (program, clients, admin) = serving::serve(&file, &SealingKey::generate()).await;
        Gateway { program, clients, admin, folder }
    }

    /// Captures a number of exchanges of `traffic`.
    async fn capture<F: Future<Output = usize>>(&self, count: usize, traffic: impl FnOnce() -> F) -> PathBuf {
        let file = self.folder.path().join("traffic.har");
        let admin = format!("http://{}", self.admin);
        let exchanges = count.to_string();
        let out = file.to_str().expect("temporary folders have plain names");
        let arguments =
            ["capture", "--admin", &admin, "--token", "env:ADMIN", "--out", out, "--exchanges", &exchanges];
        let capturing = Program::start(&arguments, &[("ADMIN", ADMIN_TOKEN)]);
        self.program.stderr_until("a capture of traffic begins");
        assert_eq!(traffic().await, count);
        let ended = tokio::task::spawn_blocking(move || capturing.ended()).await.expect("it ends");
        assert!(ended.0.success(), "{}", ended.1);
        assert!(ended.1.contains(&format!("{count} exchanges")), "{}", ended.1);
        file
    }
}

fn administrator(sandbox: &Sandbox) -> &Account {
    sandbox.credentials().account("administrator").expect("every sandbox has one")
}

/// Sends requests one after the other; gives their number.
async fn send(gateway: SocketAddr, token: &str, requests: &[(&str, &str)]) -> usize {
    for (line, body) in requests {
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nhost: gateway.example\r\nx-authorization: Bearer {token}\r\nx-api-key: {PLANTED}\r\n\
             accept-language: es\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        exchange(gateway, request).await.expect("an answer");
    }
    requests.len()
}

/// Pairs, routes of several calls, a refusal, errors, and secrets where they do not belong.
const TRAFFIC: &[(&str, &str)] = &[
    ("GET /v2/chats", ""),
    ("GET /v2/chats/1", ""),
    ("GET /v2/chats/1/messages", ""),
    ("GET /v2/chats/1/messages?page=0&token=sk_live_Zx81Qm2Lp04Nv7Rk55Tb", ""),
    ("POST /v2/chats/1/messages", r#"{"text":"key sk_live_Zx81Qm2Lp04Nv7Rk55Tb ok","isInternal":false}"#),
    ("POST /v2/chats/1/messages", r#"{"text":7}"#),
    ("PUT /v2/contacts/1001", r#"{"phone":"5511988887777"}"#),
    ("GET /v2/contacts/1001", ""),
    ("GET /v2/chats/999999", ""),
    ("DELETE /v2/contacts/1002", ""),
];

fn replay(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
    command.arg("replay").args(arguments).envs(variables.iter().copied());
    command.output().expect("the binary of this build starts")
}

/// Runs an archive through a pack: exit code and the report.
fn report(archive: &Path, more: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, Value) {
    let archive = archive.to_str().expect("temporary folders have plain names");
    let output = replay(&[&[archive], more, &["--format", "json"]].concat(), variables);
    let said = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&said);
    (
        output.status.code(),
        report.unwrap_or_else(|_| panic!("{said}{}", String::from_utf8_lossy(&output.stderr))),
    )
}

/// The pack with one text replaced, in a folder of its own.
fn changed_pack(folder: &Path, file: &str, from: &str, to: &str) -> PathBuf {
    let copy = folder.join("pack");
    copy_folder(Path::new(PACK), &copy);
    let file = copy.join(file);
    let text = fs::read_to_string(&file).expect("a file of the pack");
    assert_eq!(text.matches(from).count(), 1, "`{from}` names one place");
    fs::write(&file, text.replace(from, to)).expect("the file is written");
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_folder(&path, &to);
        } else {
            fs::copy(&path, &to).expect("a file");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_traffic_holds_no_secret_and_shows_what_a_changed_pack_changes() {
    let sandbox = Sandbox::start(Options::default()).await.expect("a sandbox");
    let gateway = Gateway::before(&sandbox).await;
    let token = administrator(&sandbox).v2_token.clone();
    let archive = gateway.capture(TRAFFIC.len(), || send(gateway.clients, &token, TRAFFIC)).await;

    let text = fs::read_to_string(&archive).expect("an archive");
    let account = administrator(&sandbox);
    for secret in [PLANTED, &token, &account.refresh_token, ADMIN_TOKEN] {
        assert!(!text.contains(secret), "`{secret}` is in the archive");
    }
    let har: Value = serde_json::from_str(&text).expect("an archive is JSON");
    let entries = har["log"]["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), TRAFFIC.len());
    let calls = |at: usize| entries[at]["_switchback"]["calls"].as_array().map_or(0, Vec::len);
    // A deletion that is refused looks first whether there is anybody.
    assert_eq!((calls(1), calls(9)), (1, 1));
    assert!(calls(6) > 1, "a route of several calls");

    let (code, said) = report(&archive, &["--strict", PACK], &[]);
    assert_eq!((code, &said["total"]["same"]), (Some(0), &Value::from(TRAFFIC.len())), "{said:#}");

    let right = "same: [id, senderType, receiverType, file, type, sender, receiver]   # people are copied whole, extra keys of \
                 agents too\n    rename:\n";
    let swapped = "same: [id, file, type, sender, receiver]\n    rename:\n      senderType: receiverType\n      \
                   receiverType: senderType\n";
    let slip = changed_pack(gateway.folder.path(), "messages.map.yaml", right, swapped);
    let (code, said) = report(&archive, &[slip.to_str().expect("a plain name")], &[]);
    assert_eq!(code, Some(1), "{said:#}");
    assert_eq!(said["operations"]["v2 GET /chats/{id}/messages"]["changed"], 2, "{said:#}");
    assert_eq!(said["operations"]["v2 GET /contacts/{id}"]["changed"], 0, "{said:#}");
    let changes = said["changed"][0]["changes"].to_string();
    assert!(changes.contains("senderType") && changes.contains("messages.map.yaml:"), "{changes}");
}

/// An archive as from a browser: exchanges of clients with the old service, without a gateway.
fn foreign(folder: &Path, exchanges: &[(&str, &str, &str, u16, Bytes)]) -> PathBuf {
    let file = folder.join("browser.har");
    let mut writer = Writer::new(fs::File::create(&file).expect("a file")).expect("it is written");
    for (method, url, sent, status, answer) in exchanges {
        let json = || vec![("content-type".to_owned(), "application/json".to_owned())];
        let request = Request {
            method: (*method).to_owned(),
            url: (*url).to_owned(),
            headers: json(),
            body: Body::from(Bytes::copy_from_slice(sent.as_bytes())),
            masked: Vec::new(),
        };
        let response = Response { status: *status, headers: json(), body: Body::from(answer.clone()) };
        let exchange = Exchange { request, response: Some(response), ..Exchange::default() };
        writer.entry(&exchange).expect("it is written");
    }
    writer.finish().expect("it is written");
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browsers_archive_is_compared_with_a_live_service_and_writes_nothing_unasked() {
    let sandbox = Sandbox::start(Options::default()).await.expect("a sandbox");
    let (at, account) = (sandbox.address(), administrator(&sandbox));
    let ask = async |side: &str, path: &str| {
        let auth = format!(
            "x-authorization: Bearer {}\r\nauthorization: Bearer {}",
            account.v2_token, account.access_token
        );
        let request = format!("GET /{side}{path} HTTP/1.1\r\nhost: s\r\n{auth}\r\n\r\n");
        let answer = exchange(at, request).await.expect("an answer");
        assert_eq!(answer.status, 200, "{path}");
        Bytes::from(answer.body)
    };
    let chat = ask("v2", "/chats/1").await;
    let contact = String::from_utf8(ask("v2", "/contacts/1001").await.to_vec()).expect("JSON is UTF-8");
    let mut altered: Value = serde_json::from_str(&contact).expect("a contact");
    altered["name"] = "Someone else".into();
    let before = ask("v3", "/chats/1/messages").await;
    let url = |path: &str| format!("https://old.example/api/v2{path}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = foreign(
        folder.path(),
        &[
            ("GET", &url("/chats/1"), "", 200, chat),
            ("GET", &url("/contacts/1001"), "", 200, altered.to_string().into()),
            ("POST", &url("/chats/1/messages"), r#"{"text":"again","isInternal":false}"#, 201, Bytes::new()),
            ("GET", "https://elsewhere.example/logo.png", "", 200, Bytes::new()),
        ],
    );
    let upstream = format!("http://{at}/v3");
    let live = ["--upstream", &upstream, "--header", "Authorization: Bearer ${TOKEN}", PACK];
    let (code, said) = report(&archive, &live, &[("TOKEN", &account.access_token)]);
    assert_eq!(code, Some(1), "{said:#}");
    assert_eq!(said["total"]["same"], 1, "{said:#}");
    let changed = said["changed"].as_array().expect("a list");
    assert_eq!((changed.len(), &changed[0]["entry"]), (1, &Value::from(2)), "{said:#}");
    assert!(changed[0]["changes"][0].as_str().is_some_and(|change| change.contains("$.name")), "{said:#}");
    assert_eq!(said["unknown"]["it has effects, and only reads are sent"], 1, "{said:#}");
    assert_eq!(said["unknown"]["not a call of the API"], 1, "{said:#}");
    assert_eq!(ask("v3", "/chats/1/messages").await, before, "nothing was sent");

    // Offline, the answer of the service is unknown, which is not a success.
    let (code, said) = report(&archive, &[PACK], &[]);
    assert_eq!((code, &said["total"]["unknown"]), (Some(3), &Value::from(4)), "{said:#}");
}

/// After seven exchanges, the verb is ended in each possible way: all seven are in a readable
/// archive, which only its owner can read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_is_whole_however_its_recording_ends() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::start(Options::default()).await.expect("a sandbox");
    let gateway = Gateway::before(&sandbox).await;
    let token = administrator(&sandbox).v2_token.clone();
    let file = gateway.folder.path().join("ended.har");
    let entries = || {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let har: Option<Value> = serde_json::from_str(&text).ok();
        har.and_then(|har| har["log"]["entries"].as_array().map(Vec::len))
    };
    for signal in ["INT", "TERM", "KILL"] {
        fs::write(&file, "x".repeat(100_000)).expect("a file was there");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("and others could read it");
        let (admin, out) = (format!("http://{}", gateway.admin), file.display().to_string());
        let arguments = ["capture", "--admin", &admin, "--token", "env:ADMIN", "--out", &out];
        let capturing = Program::start(&arguments, &[("ADMIN", ADMIN_TOKEN)]);
        gateway.program.stderr_until("a capture of traffic begins");
        assert_eq!(send(gateway.clients, &token, &TRAFFIC[..7]).await, 7);
        if signal == "KILL" {
            // It gets no signal, so its content was written before.
            crate::support::dual::eventually("all are written", async || entries() == Some(7)).await;
            capturing.kill();
        } else {
            capturing.signal(signal);
            let (status, said) = tokio::task::spawn_blocking(|| capturing.ended()).await.expect("it ends");
            assert!(status.success() && said.contains("7 exchanges"), "{signal}: {status} {said}");
        }
        assert_eq!(entries(), Some(7), "{signal}: seven, in an archive that can be read");
        let mode = fs::metadata(&file).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{signal}");
        let logged = gateway.program.stderr_until("a capture of traffic ends");
        let line = logged.lines().last().unwrap_or_default();
        if signal != "KILL" {
            assert!(line.contains("exchanges=7 left_out=0 cut=false"), "{signal}: {line}");
        }
    }

    // The gateway stops: the archive has all exchanges up to then, and the verb reports that it is
    // incomplete.
    let (admin, out) = (format!("http://{}", gateway.admin), file.display().to_string());
    let arguments = ["capture", "--admin", &admin, "--token", "env:ADMIN", "--out", &out];
    let capturing = Program::start(&arguments, &[("ADMIN", ADMIN_TOKEN)]);
    gateway.program.stderr_until("a capture of traffic begins");
    assert_eq!(send(gateway.clients, &token, &TRAFFIC[..3]).await, 3);
    crate::support::dual::eventually("all are written", async || entries() == Some(3)).await;
    gateway.program.kill();
    let (status, said) = tokio::task::spawn_blocking(|| capturing.ended()).await.expect("it ends");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines, ["the capture was cut short; what was recorded is kept", "3 exchanges"], "{status}");
    assert_eq!(entries(), Some(3), "in an archive that can be read");
}

/// Expected result of the replay of one operation.
#[derive(Default)]
struct Expected {
    judged: u64,
    reasons: BTreeMap<&'static str, u64>,
}

/// Reasons for unknown exchanges of the demo: the other side was not called, or the client has no
/// credential there. All others are judged.
fn unknown_reason(known: &Value) -> Option<&'static str> {
    // HAR uses the status 0 for a missing answer.
    let mut calls = known["calls"].as_array()?.iter();
    let is_unasked = calls.all(|call| call["response"]["status"] == 0);
    match (known["outcome"].as_str()?, &known["shadow"]) {
        ("forwarded", Value::Null) => Some("the old service answered it, and nobody asked the other side"),
        ("forwarded", shadow) if shadow["dropped"] == "credential" && is_unasked => {
            Some("the shadow came to no answer: credential")
        }
        ("gateway_error", Value::Null) if is_unasked => Some("the gateway answered it itself: gateway error"),
        _ => None,
    }
}

/// The operation of the report that an entry is a call of, such as `v2 GET /chats/{id}`: of several
/// the one with the fewest variables.
fn operation_of(report: &Value, entry: &Value) -> Option<String> {
    let known = &entry["_switchback"];
    let path = known["target"].as_str()?.split('?').next()?;
    let call = format!("{} {} {path}", known["side"].as_str()?, entry["request"]["method"].as_str()?);
    let is_for = |operation: &&String| {
        let (wanted, given): (Vec<_>, Vec<_>) = (operation.split('/').collect(), call.split('/').collect());
        wanted.len() == given.len()
            && wanted.iter().zip(&given).all(|(wanted, given)| wanted.starts_with('{') || wanted == given)
    };
    let operations = report["operations"].as_object()?.keys().filter(is_for);
    operations.min_by_key(|operation| operation.matches('{').count()).cloned()
}

#[test]
fn a_capture_of_the_demo_is_unchanged_through_its_own_pack_and_whatever_has_recorded_calls_is_judged() {
    let any = "127.0.0.1:0";
    let demo = Program::start(&["demo", "--listen", any, "--admin", any, "--sandbox", any], &[]);
    let printed = demo.stdout_until("Ctrl-C");
    let config = printed.split("--config ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let config = config.expect("the printed lines name the configuration");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = folder.path().join("demo.har");
    let out = archive.to_str().expect("temporary folders have plain names");
    let capturing = Program::start(&["capture", "--config", config, "--out", out, "--exchanges", "150"], &[]);
    let (status, said) = capturing.ended();
    assert!(status.success(), "{said}");

    let (code, said) = report(&archive, &[PACK, "--set", "agents.max_chats=10"], &[]);
    assert_eq!((code, &said["total"]["changed"]), (Some(0), &Value::from(0)), "{said:#}");
    // Expected result for each entry, by the archive alone: a reason if it cannot be judged.
    let text = fs::read_to_string(&archive).expect("an archive");
    let har: Value = serde_json::from_str(&text).expect("an archive is JSON");
    let mut wanted: BTreeMap<String, Expected> = BTreeMap::new();
    let (mut planned, mut foreign) = (0, 0);
    for entry in har["log"]["entries"].as_array().expect("entries") {
        let known = &entry["_switchback"];
        let Some(operation) = operation_of(&said, entry) else {
            foreign += 1;
            continue;
        };
        let of = wanted.entry(operation).or_default();
        match unknown_reason(known) {
            None => of.judged += 1,
            Some(reason) => *of.reasons.entry(reason).or_default() += 1,
        }
        planned += u64::from(known["shadow"] == "planned");
    }
    let operations = said["operations"].as_object().expect("operations");
    assert_eq!(operations.len(), wanted.len(), "{said:#}");
    for (operation, Expected { judged, reasons }) in &wanted {
        let found = &operations[operation];
        assert_eq!((&found["same"], &found["changed"]), (&json!(judged), &json!(0)), "{operation}: {said:#}");
        assert_eq!(found["reasons"], json!(reasons), "{operation}: {said:#}");
    }
    assert_eq!(
        said["unknown"].get("not a call of the API").unwrap_or(&json!(0)),
        &json!(foreign),
        "{said:#}"
    );
    let judged: u64 = wanted.values().map(|of| of.judged).sum();
    assert!(judged > 40, "{judged}: {said:#}");
    assert_eq!(
        (&said["judged"], &said["total"]["calls_only"]),
        (&json!(judged), &json!(planned)),
        "{said:#}"
    );
    let unknown = said["total"]["unknown"].as_u64().expect("a number");
    assert_eq!(judged + unknown, 150, "{said:#}");
    // The number of unknown exchanges can be limited.
    let (code, _) = report(&archive, &[PACK, "--set", "agents.max_chats=10", "--max-unknown", "0%"], &[]);
    assert_eq!(code, Some(if unknown > 0 { 1 } else { 0 }));
}
