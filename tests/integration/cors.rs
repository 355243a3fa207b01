//! Pages of other origins at a front with CORS, through the real binary: preflights, and the fields of
//! translated, forwarded and error responses. One test uses a page in Chromium, if that is installed.

use crate::support::program::Program;
use crate::support::raw::{Act, Answer, Upstream, answer, exchange};
use crate::support::serving;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use switchback_gateway::store::seal::SealingKey;
use tempfile::TempDir;
use tokio::task::spawn_blocking;

const PAGE: &str = "https://app.example.com";
const OTHER: &str = "https://app.example.org";
const TOKEN: &str = "old-token-of-acme";

/// A gateway with a translated operation; all others are forwarded.
struct Gateway {
    address: SocketAddr,
    old: Upstream,
    new: Upstream,
    program: Arc<Program>,
    folder: TempDir,
}

impl Gateway {
    async fn start(cors: &str) -> Gateway {
        let new = Upstream::start(vec![Act::json(200, r#"[{"id":1,"name":"Ana"}]"#)]).await;
        // A service that permits every page.
        let own = "access-control-allow-origin: *\r\naccess-control-allow-credentials: true\r\n\
                   access-control-expose-headers: x-old\r\nvary: accept\r\n";
        let old = Upstream::start(vec![Act::Reply(answer(200, own, "by the old service"))]).await;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{}/store.db\nkey: ${{TEST_KEY}}\n\
             upstreams: {{ v3: {{ url: 'http://{}/v3' }}, v2: {{ url: 'http://{}/v2' }} }}\n\
             settings: {{ agents: {{ max_chats: 5 }} }}\nphases: {{ default: legacy, 'GET /agents': translated }}\n\
             clients: [{{ name: acme, v2_token: {TOKEN}, credentials: {{ v3: new-token-of-acme }} }}]\n\
             limits: {{ target_bytes: 256 }}\nreload: {{ watch: false }}\n\
             fronts: {{ /v2: {{ speaks: v2, cors: {cors} }}, /plain: {{ speaks: v2 }} }}\n",
            folder.path().display(),
            new.address,
            old.address,
        );
        let file = folder.path().join("switchback.yaml");
        std::fs::write(&file, text).expect("the file is written");
        let (program, address, _) = serving::serve(&file, &SealingKey::generate()).await;
        Gateway { address, old, new, program: Arc::new(program), folder }
    }

    async fn ask(&self, line: &str, fields: &str) -> Answer {
        let request = format!("{line} HTTP/1.1\r\nhost: g\r\n{fields}\r\n");
        exchange(self.address, request).await.expect("an answer")
    }

    /// Replaces a text of the configuration, and waits until the gateway uses it.
    async fn reload(&self, from: &str, to: &str) {
        let file = self.folder.path().join("switchback.yaml");
        let text = std::fs::read_to_string(&file).expect("it was written");
        assert!(text.contains(from), "{from} in {text}");
        std::fs::write(&file, text.replacen(from, to, 1)).expect("written");
        self.program.signal("HUP");
        let program = Arc::clone(&self.program);
        spawn_blocking(move || program.stderr_until("reloaded")).await.expect("it reloads");
    }
}

/// The fields that a page depends on: origin, credentials, exposed fields and `Vary`.
fn fields(answer: &Answer) -> [String; 4] {
    let names = [
        "access-control-allow-origin",
        "access-control-allow-credentials",
        "access-control-expose-headers",
        "vary",
    ];
    names.map(|name| answer.values(name).join(" | "))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_of_a_front_has_the_fields_of_its_policy() {
    let gateway = Gateway::start(&format!(
        "{{ origins: ['{PAGE}', 'https://*.pages.example'], expose: [x-request-id, Retry-After], credentials: true }}"
    ))
    .await;
    let token = format!("x-authorization: Bearer {TOKEN}\r\n");
    let long = format!("GET /v2/agents?x={}", "x".repeat(300));
    for (name, line, fields_sent, status) in [
        ("translated", "GET /v2/agents", token.as_str(), 200),
        ("forwarded", "GET /v2/departments", &token, 200),
        ("a path of no contract, forwarded", "GET /v2/elsewhere", &token, 200),
        ("rejected for its token", "GET /v2/agents", "x-authorization: Bearer wrong\r\n", 401),
        ("rejected before it is routed", &long, &token, 414),
        ("the prefix alone, forwarded", "GET /v2", &token, 200),
    ] {
        for origin in [PAGE, "https://a.pages.example"] {
            let answer = gateway.ask(line, &format!("{fields_sent}origin: {origin}\r\n")).await;
            assert_eq!(answer.status, status, "{name}: {}", answer.head);
            let [allowed, credentials, exposed, vary] = fields(&answer);
            assert_eq!(
                (allowed.as_str(), credentials.as_str(), exposed.as_str()),
                (origin, "true", "x-request-id, retry-after"),
                "{name}: {}",
                answer.head
            );
            assert!(vary.ends_with("origin"), "{name}: {vary}");
        }
        // Neither the gateway's fields nor those of a service.
        for origin in [format!("origin: {OTHER}\r\n"), "origin: null\r\n".to_owned(), String::new()] {
            let answer = gateway.ask(line, &format!("{fields_sent}{origin}")).await;
            let [allowed, credentials, exposed, vary] = fields(&answer);
            assert_eq!((answer.status, allowed + &credentials + &exposed), (status, String::new()), "{name}");
            assert!(vary.ends_with("origin"), "{name}, which a cache may store: {vary}");
        }
    }
    // Another front, without `cors`, passes the fields of the service.
    let answer = gateway.ask("GET /plain/departments", &format!("{token}origin: {OTHER}\r\n")).await;
    assert_eq!(fields(&answer), ["*", "true", "x-old", "accept"]);

    gateway.reload("credentials: true", "credentials: false").await;
    let answer = gateway.ask("GET /v2/departments", &format!("{token}origin: {PAGE}\r\n")).await;
    assert_eq!(fields(&answer), [PAGE, "", "x-request-id, retry-after", "accept | origin"]);
    let listed = format!("'{PAGE}', 'https://*.pages.example'");
    gateway.reload(&listed, "'*'").await;
    for origin in [format!("origin: {OTHER}\r\n"), String::new()] {
        let answer = gateway.ask("GET /v2/departments", &format!("{token}{origin}")).await;
        assert_eq!(fields(&answer), ["*", "", "x-request-id, retry-after", "accept"], "the same for all");
    }
}

const PREFLIGHT: &str = "access-control-request-method: PATCH\r\naccess-control-request-headers: content-type, x-authorization\r\n";

/// What a browser reads of a response to a preflight: status, methods, header fields, age.
fn permissions(answer: &Answer) -> (u16, [&str; 3]) {
    let names = ["access-control-allow-methods", "access-control-allow-headers", "access-control-max-age"];
    (answer.status, names.map(|name| answer.value(name)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn preflights_are_answered_without_a_service() {
    let gateway = Gateway::start(&format!("{{ origins: ['{PAGE}'], max_age: 10m }}")).await;
    let all = "GET, HEAD, POST, PUT, PATCH, DELETE";
    for line in ["OPTIONS /v2/agents/7", "OPTIONS /v2/no/such/path", "OPTIONS /v2"] {
        // Browsers send no token with a preflight.
        let answer = gateway.ask(line, &format!("origin: {PAGE}\r\n{PREFLIGHT}")).await;
        assert_eq!(permissions(&answer), (204, [all, "content-type, x-authorization", "600"]), "{line}");
        assert_eq!(fields(&answer), [PAGE, "", "", "origin"], "{line}");
        let answer = gateway.ask(line, &format!("origin: {OTHER}\r\n{PREFLIGHT}")).await;
        assert_eq!(permissions(&answer), (204, ["", "", ""]), "{line}");
        assert_eq!(fields(&answer), ["", "", "", "origin"], "{line}");
    }
    let configured = "max_age: 10m, methods: [GET, PATCH], headers: [X-Authorization]";
    gateway.reload("max_age: 10m", configured).await;
    let answer = gateway.ask("OPTIONS /v2/agents/7", &format!("origin: {PAGE}\r\n{PREFLIGHT}")).await;
    assert_eq!(permissions(&answer), (204, ["GET, PATCH", "x-authorization", "600"]));
    assert!(gateway.old.seen().is_empty() && gateway.new.seen().is_empty());

    // Any other OPTIONS, and a preflight at a front without `cors`, go to the service.
    for (line, sent) in [
        ("OPTIONS /v2/agents/7", format!("origin: {PAGE}\r\n")),
        ("OPTIONS /v2/agents/7", PREFLIGHT.to_owned()),
        ("OPTIONS /plain/agents/7", format!("origin: {PAGE}\r\n{PREFLIGHT}")),
    ] {
        let before = gateway.old.seen().len();
        assert_eq!(gateway.ask(line, &sent).await.text(), "by the old service", "{line}");
        assert_eq!(gateway.old.seen().len(), before + 1, "{line}");
    }
}

/// Writes the outcome of three requests into the page: what the browser permits a script to read.
const SCRIPT: &str = r#"<pre id="out"></pre><script>
const read = (method, path, token) => {
  const request = new XMLHttpRequest();
  try {
    request.open(method, "http://GATEWAY" + path, false);
    request.setRequestHeader("x-authorization", "Bearer " + token);
    request.send();
    return request.status + " " + (request.getResponseHeader("x-request-id") ? "id" : "no id");
  } catch (error) { return error.name; }
};
out.textContent = ["GET /v2/agents TOKEN", "DELETE /v2/elsewhere TOKEN", "GET /v2/agents wrong", "GET /plain/agents TOKEN"]
  .map((line) => read(...line.split(" "))).join("; ");
</script>"#;

fn dom(chromium: &str, profile: &Path, url: &str) -> String {
    let profile = format!("--user-data-dir={}", profile.display());
    let output = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            &profile,
            "--dump-dom",
            url,
        ])
        .output()
        .expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_in_a_browser_reads_what_the_policy_permits() {
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    });
    let Some(chromium) = found else {
        eprintln!("SKIPPED: Chromium is not installed");
        return;
    };
    let gateway =
        Gateway::start("{ origins: ['https://later.example'], expose: [x-request-id], methods: [DELETE] }")
            .await;
    let script = SCRIPT.replace("GATEWAY", &gateway.address.to_string()).replace("TOKEN", TOKEN);
    let page = answer(200, "content-type: text/html\r\n", &script);
    let page = Upstream::start(vec![Act::Reply(page)]).await;
    let url = format!("http://{}", page.address);
    for (origin, expected) in [
        ("https://later.example", "NetworkError; NetworkError; NetworkError; NetworkError"),
        // The front without `cors`: the preflight fails at the old service, which permits no field.
        (url.as_str(), "200 id; 200 id; 401 id; NetworkError"),
    ] {
        if origin == url {
            gateway.reload("https://later.example", &url).await;
        }
        let (profile, url) = (gateway.folder.path().join("profile"), format!("{url}/"));
        let shown = spawn_blocking(move || dom(chromium, &profile, &url)).await.expect("it ends");
        assert!(shown.contains(&format!("<pre id=\"out\">{expected}</pre>")), "{origin}: {shown}");
    }
}
