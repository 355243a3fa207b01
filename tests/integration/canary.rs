//! Planted words at every place for secrets or personal texts: in all parts of requests and
//! answers, in the configuration, in the exchange of tokens. Then all stored and displayed data of
//! the gateway is searched for them. They look like normal words, so that a detection of token-like
//! texts does not find them.

use crate::support::dual::{
    ADMIN_TOKEN, Dual, Running, Upstreams, administrator, control, eventually, received,
};
use crate::support::program::Program;
use crate::support::raw::{Answer, exchange};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use switchback_gateway::telemetry::metrics as names;
use switchback_sandbox::{Options, Sandbox};

/// A word for a place.
fn word(place: &str) -> String {
    format!("quagga{place}moon")
}

const MODERN: &str = "modern-token-of-the-canary";
const STRANGER: &str = "quaggastrangermoon";
const IN_CONFIGURATION: [&str; 3] = ["quaggamistypedmoon", "quaggaduplicatemoon", "quaggaurlmoon"];

/// The searched data: its place and its content.
#[derive(Default)]
struct Sinks(Vec<(String, Vec<u8>)>);

impl Sinks {
    fn add(&mut self, name: impl Into<String>, content: impl Into<Vec<u8>>) {
        let (name, content) = (name.into(), content.into());
        assert!(!content.is_empty(), "{name} is empty: nothing is searched there");
        self.0.push((name, content));
    }

    fn text(&self, name: &str) -> String {
        let found = self.0.iter().find(|(known, _)| known == name);
        String::from_utf8_lossy(&found.unwrap_or_else(|| panic!("no sink {name}")).1).into_owned()
    }

    /// Fails with all places in which one of these is.
    fn hold_none_of(&self, planted: &[String]) {
        let mut found = Vec::new();
        for secret in planted {
            for (name, content) in &self.0 {
                if let Some(at) = memchr::memmem::find(content, secret.as_bytes()) {
                    let around =
                        &content[at.saturating_sub(160)..(at + secret.len() + 40).min(content.len())];
                    found.push(format!("{secret} in {name}: …{}…", String::from_utf8_lossy(around)));
                }
            }
        }
        assert!(found.is_empty(), "{} leaks:\n{}", found.len(), found.join("\n"));
    }
}

/// A gateway with both fronts before both versions, which logs all that it can for developers.
async fn gateway(service: &Sandbox, phases: &str) -> (Dual, Running) {
    let dual = Dual::new();
    let more = format!(
        "fronts: {{ /v2: {{ speaks: v2 }}, /v3: {{ speaks: v3 }} }}\nphases: {phases}\n\
         shadow: {{ noise: 0, timeout: 2s, read_back: 1 }}\nlog: {{ level: debug }}\n"
    );
    dual.configure(service, Upstreams::of(service), &["administrator"], &more);
    let account = administrator(service);
    let text = std::fs::read_to_string(dual.file()).expect("it was written");
    let modern = format!(
        "clients:\n- {{ name: modern, v3_token: {MODERN}, credentials: {{ v2: '{}', v3: '{}' }} }}\n",
        account.v2_token, account.access_token
    );
    std::fs::write(dual.file(), text.replace("clients:\n", &modern)).expect("it is written");
    let gateway = dual.started().await;
    (dual, gateway)
}

/// The service's answer, with planted words: in declared members, in an undeclared one, as a name,
/// in errors.
async fn plant_answers(service: &Sandbox, planted: &mut Vec<String>) {
    for side in ["v2", "v3"] {
        let set = async |path: &str, field: &str, change: Value| {
            let rule = json!({"side": side, "path": path, "field": field, "change": change});
            control(service, "POST differences", rule).await;
        };
        let mut plant = |place: &str| {
            let word = word(&format!("{side}{place}").replace('2', "two").replace('3', "three"));
            planted.push(word.clone());
            word
        };
        set("/contacts/{id}", "$.name", json!({"set": plant("name")})).await;
        set("/contacts/{id}", "$.unheard_of", json!({"set": {"passwort": plant("unknown")}})).await;
        set("/contacts/{id}", "$.customFields", json!({"set": {(plant("key")): plant("value")}})).await;
        set("/contacts", "$.email", json!({"set": format!("{}@example.com", plant("email"))})).await;
        set("/agents", "$.name", json!({"set": plant("agent")})).await;
        let action = json!({"status": {"code": 404, "body": {"reason": format!("no {}", plant("reason"))}}});
        let rule = json!({"side": side, "method": "GET", "path": "/chats/{id}", "action": action});
        control(service, "POST faults", rule).await;
    }
}

/// The requests of a client of one side: line, fields and body.
fn requests(side: &str, planted: &mut Vec<String>) -> Vec<(String, String, String)> {
    let mut plant = |place: &str| {
        let word = word(&format!("{side}asks{place}").replace('2', "two").replace('3', "three"));
        planted.push(word.clone());
        word
    };
    let fields = format!(
        "x-kennung: {}\r\ncookie: sitzung={}\r\nreferer: https://example.com/{}\r\nx-api-key: {}\r\n",
        plant("field"),
        plant("cookie"),
        plant("referer"),
        plant("apikey")
    );
    let message = json!({"text": plant("text"), "isInternal": false, "passwort": plant("passwort")});
    let edit = json!({
        "name": plant("name"), "email": format!("{}@example.com", plant("mail")), "phone": "5511988887777", "mobile": plant("mobile"),
        "city": plant("city"), "obs": format!("first\n{}, {}", plant("line"), plant("comma")),
    });
    let contact = json!({"name": plant("newname"), "email": format!("{}@example.com", plant("newmail")), "phone": plant("phone")});
    let flow = json!({"flowId": 1, "variables": {(plant("variable")): plant("variablevalue")}});
    let asked = [
        (format!("GET /{side}/contacts/1001"), String::new()),
        (format!("GET /{side}/agents"), String::new()),
        (
            format!(
                "GET /{side}/contacts?page=0&search={}&{}={}",
                plant("query"),
                plant("parameter"),
                plant("other")
            ),
            String::new(),
        ),
        (format!("GET /{side}/contacts?{}", plant("bare")), String::new()),
        (format!("GET /{side}/chats/1"), String::new()),
        (format!("GET /{side}/{}", plant("path")), String::new()),
        (format!("GET /{side}/contacts/{}", plant("segment")), String::new()),
        (format!("GET /{side}/contacts/{}/{}/x", plant("deep"), plant("deeper")), String::new()),
        (format!("GET /{}/x", plant("front")), String::new()),
        (format!("PATCH /{side}/contacts/1001"), json!({"name": plant("patch")}).to_string()),
        (format!("POST /{side}/chats/1/messages"), message.to_string()),
        (format!("POST /{side}/chats/1/messages"), format!("{{\"text\": {}", plant("broken"))),
        (
            format!("POST /{side}/chats/1/messages"),
            json!({"text": {"deep": [plant("wrongkind")]}}).to_string(),
        ),
        (format!("PUT /{side}/contacts/1003"), edit.to_string()),
        (format!("POST /{side}/contacts"), contact.to_string()),
        (format!("POST /{side}/chats/1/flow"), flow.to_string()),
    ];
    asked.into_iter().map(|(line, body)| (line, fields.clone(), body)).collect()
}

async fn ask(gateway: &Running, side: &str, token: &str, line: &str, fields: &str, body: &str) -> Answer {
    let name = if side == "v2" { "x-authorization" } else { "authorization" };
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let request = format!(
        "{line} HTTP/1.1\r\nhost: gateway.test\r\n{name}: Bearer {token}\r\ncontent-type: application/json\r\n{fields}{length}\r\n{body}"
    );
    exchange(gateway.address, request).await.expect("an answer")
}

/// Captures requests until Ctrl-C. Returns the archive.
async fn captured<F: Future<Output = usize>>(
    dual: &Dual,
    gateway: &Running,
    log: &mut String,
    traffic: impl FnOnce() -> F,
) -> PathBuf {
    let file = dual.folder.path().join("traffic.har");
    let (admin, out) = (format!("http://{}", gateway.admin), file.display().to_string());
    let arguments = ["capture", "--admin", &admin, "--token", "env:ADMIN", "--out", &out];
    let capturing = Program::start(&arguments, &[("ADMIN", ADMIN_TOKEN)]);
    log.push_str(&gateway.program.stderr_until("a capture of traffic begins"));
    let count = traffic().await;
    capturing.signal("INT");
    let (status, said) = tokio::task::spawn_blocking(|| capturing.ended()).await.expect("it ends");
    assert!(status.success() && said.contains(&format!("{count} exchanges")), "{status} {said}");
    file
}

/// Connects a client as a person does. Returns the secrets of that flow.
async fn connected(dual: &Dual, gateway: &Running, sinks: &mut Sinks) -> Vec<String> {
    let (code, link, said) = dual.cli(&["client", "connect", "administrator"]).await;
    assert_eq!(code, Some(0), "{link}{said}");
    let link = link.split_whitespace().find(|word| word.starts_with("http")).expect("a link").to_owned();
    let browser = crate::support::http::client();
    let back = browser.get(format!("{link}&auto_approve=1")).send().await.expect("an answer");
    let location = back.headers()["location"].to_str().expect("a text").to_owned();
    let query = location.split_once('?').expect("a code and a state").1.to_owned();
    let forged = format!("code={}&state={}", word("code"), word("state"));
    for query in [&forged, &query] {
        let page = exchange(
            gateway.admin,
            format!("GET /oauth/callback?{query} HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        )
        .await;
        sinks.add("callback page", page.expect("a page").body);
    }
    let value = |name: &str| {
        let pair = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        pair.unwrap_or_else(|| panic!("no {name} in {query}")).to_owned()
    };
    vec![value("code"), value("state"), word("code"), word("state")]
}

/// Reloads a configuration with errors next to secrets, and inspects it with the command line.
async fn slip(dual: &Dual, gateway: &Running, log: &mut String, sinks: &mut Sinks) {
    let right = std::fs::read_to_string(dual.file()).expect("it was written");
    let [mistyped, duplicate, url] = IN_CONFIGURATION;
    let wrong = right.replace(
        "clients:\n",
        &format!("clients:\n- {{ name: new, v2_token: {duplicate}, v2_token: {duplicate}x, grant: {{ clientsecret: {mistyped} }} }}\n"),
    );
    let wrong = format!("{wrong}sunset: {{ v2: {{ policy: 'https://me:{url}@example.com/' }} }}\n");
    std::fs::write(dual.file(), wrong).expect("it is written");
    gateway.program.signal("HUP");
    log.push_str(&gateway.program.stderr_until("the reload failed"));
    eventually("the failed reload is posted", async || {
        let (_, pack) = gateway.admin("GET /api/pack", &Value::Null).await;
        pack["last_reload"]["error"].as_str().is_some_and(|error| error.contains("clientsecret"))
    })
    .await;
    for format in ["text", "json"] {
        let (code, out, error) = dual.cli(&["serve", "--check", "--format", format]).await;
        assert_eq!(code, Some(1), "{out}{error}");
        assert!((out.clone() + &error).contains("clientsecret"), "{out}{error}");
        sinks.add(format!("serve --check --format {format}"), out + &error);
    }
    for address in ["/api/pack", "/pack?show=reload"] {
        let page = gateway.admin_text(&format!("GET {address}"), &Value::Null).await.text();
        assert!(page.contains("clientsecret"), "{page}");
        sinks.add(format!("{address} after a failed reload"), page);
    }
    std::fs::write(dual.file(), right).expect("it is written");
}

/// Everything that shows something.
async fn shown(dual: &Dual, gateway: &Running, sinks: &mut Sinks) {
    for address in [
        "/",
        "/metrics",
        "/api/config",
        "/api/pack",
        "/api/operations",
        "/api/clients",
        "/api/phases",
        "/api/phases/transitions",
        "/api/diff",
    ] {
        sinks.add(address, gateway.admin_text(&format!("GET {address}"), &Value::Null).await.body);
    }
    for words in
        [&["client", "list"][..], &["diff", "report"], &["diff", "report", "--markdown"], &["phase", "list"]]
    {
        let (_, out, error) = dual.cli(words).await;
        sinks.add(words.join(" "), out + &error);
    }
    for token in ["quaggatypedmoon", "--app-secret=quaggatypedmoon"] {
        let (code, out, error) = dual.cli(&["client", "add", "typed", "--token", token]).await;
        assert_eq!(code, Some(2), "{out}{error}");
        sinks.add("client add", out + &error);
    }
    let (code, out, error) = dual.cli(&["client", "add", "typed", "quaggatypedmoon"]).await;
    assert_eq!(code, Some(2), "{out}{error}");
    sinks.add("client add", out + &error);
}

async fn nothing_is_shown(phases: &str, is_dual: bool) {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let account = administrator(&service).clone();
    let mut planted = vec![
        account.v2_token.clone(),
        account.access_token.clone(),
        account.refresh_token.clone(),
        service.credentials().client_secret.clone(),
        MODERN.to_owned(),
        ADMIN_TOKEN.to_owned(),
        STRANGER.to_owned(),
        "quaggatypedmoon".to_owned(),
    ];
    planted.extend(IN_CONFIGURATION.map(str::to_owned));
    let before = planted.len();
    plant_answers(&service, &mut planted).await;
    let said_by_service = planted[before..].to_vec();
    let (dual, gateway) = gateway(&service, phases).await;
    let (mut sinks, mut log) = (Sinks::default(), gateway.said.clone());
    let asked: Vec<_> = [("v2", account.v2_token.as_str()), ("v3", MODERN)]
        .into_iter()
        .flat_map(|(side, token)| {
            requests(side, &mut planted).into_iter().map(move |request| (side, token, request))
        })
        .collect();
    let count = asked.len() + 2;
    // A request for no front is not recorded as traffic.
    let recorded = count - asked.iter().filter(|(_, _, (line, ..))| line.contains("front")).count();
    let mut refused = Vec::new();
    let archive = captured(&dual, &gateway, &mut log, || async {
        for (side, token, (line, fields, body)) in &asked {
            let answer = ask(&gateway, side, token, line, fields, body).await;
            // A text of the service is for the client only. An error of the gateway itself has its own
            // language.
            let text = answer.text();
            let is_passed = answer.value("content-language").is_empty()
                && said_by_service.iter().any(|word| text.contains(word));
            let is_services = is_passed || text.contains("reasonmoon");
            if answer.status >= 400 && !is_services {
                refused.push((line.clone(), answer));
            }
        }
        for side in ["v2", "v3"] {
            let answer = ask(&gateway, side, STRANGER, &format!("GET /{side}/agents"), "", "").await;
            assert_eq!(answer.status, 401, "by the gateway, or by the service that is asked");
            if !is_dual {
                refused.push((side.to_owned(), answer));
            }
        }
        recorded
    })
    .await;
    for (line, answer) in &refused {
        sinks.add(format!("the answer to {line}"), format!("{}{}", answer.head, answer.text()));
    }
    assert!(refused.len() > 2, "{refused:?}");
    if is_dual {
        for operation in ["POST /chats/{id}/messages", "PUT /contacts/{id}", "GET /contacts/{id}"] {
            gateway.reported(operation, 1).await;
        }
        gateway.settled(16).await;
        let export = gateway.admin_text("GET /api/diff/export", &Value::Null).await.text();
        assert!(
            export.contains("\"kind\":\"planned\"") && export.contains("\"kind\":\"difference\""),
            "{export}"
        );
        assert!(export.contains("\"side\":\"v2\""), "{export}");
        sinks.add("/api/diff/export", export);
        let (_, out, error) = dual.cli(&["diff", "export"]).await;
        sinks.add("diff export", out + &error);
    }
    let har = std::fs::read(&archive).expect("an archive");
    let read: Value = serde_json::from_slice(&har).expect("an archive is JSON");
    let entries = read["log"]["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), recorded);
    let calls = entries
        .iter()
        .flat_map(|entry| entry["_switchback"]["calls"].as_array())
        .map(Vec::len)
        .sum::<usize>();
    assert!(calls > 10, "{calls} calls in the archive");
    sinks.add("the archive", har);
    let output = Command::new(env!("CARGO_BIN_EXE_switchback"))
        .arg("replay")
        .arg(&archive)
        .arg("mappings/messaging")
        .output();
    let output = output.expect("the program runs");
    sinks.add("replay", [output.stdout, output.stderr].concat());

    planted.extend(connected(&dual, &gateway, &mut sinks).await);
    slip(&dual, &gateway, &mut log, &mut sinks).await;
    shown(&dual, &gateway, &mut sinks).await;
    let authorised = received(&service, "/v3/").await;
    let access = authorised.iter().filter_map(|entry| {
        entry["headers"]["authorization"].as_str()?.strip_prefix("Bearer ").map(str::to_owned)
    });
    let before = planted.len();
    planted.extend(access);
    assert!(planted.len() > before, "calls went out with access tokens");
    assert!(gateway.counted(names::REQUESTS, &[]).await >= count as u64);

    let program = gateway.program;
    program.signal("TERM");
    let (status, rest) = tokio::task::spawn_blocking(|| program.ended()).await.expect("it ends");
    assert!(status.success(), "{rest}");
    log.push_str(&rest);
    for said in ["path=/v2/contacts/{id}", "path=/v3/*", "switchback::target", "path=/*", "DEBUG"] {
        assert!(log.contains(said), "{said} is not in the log:\n{log}");
    }
    sinks.add("log", log);
    for file in std::fs::read_dir(dual.folder.path()).expect("a folder") {
        let file = file.expect("a file").path();
        let content = std::fs::read(&file).expect("it can be read");
        // The lock file is empty.
        if file.file_name().is_some_and(|name| name != "switchback.yaml") && !content.is_empty() {
            sinks.add(file.display().to_string(), content);
        }
    }
    assert!(sinks.text("the archive").contains("***") && sinks.text("/metrics").contains("switchback_"));
    planted.sort();
    planted.dedup();
    sinks.hold_none_of(&planted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_planted_in_a_dual_run_is_kept_or_shown() {
    nothing_is_shown("{ 'v2 default': shadow, 'v3 default': shadow }", true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_planted_in_translated_traffic_is_kept_or_shown() {
    nothing_is_shown("{ 'v2 default': translated, 'v3 default': translated }", false).await;
}
