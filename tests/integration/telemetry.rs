//! Observability of requests for operators: traces from the real binary, as a collector receives
//! them, decoded by the official protobuf package; and lines of the access log.

use crate::support::dual::{Dual, Upstreams, eventually};
use crate::support::program::Program;
use crate::support::python::{python, run};
use crate::support::raw::{Act, Seen, Upstream, exchange};
use crate::support::serving;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use switchback_sandbox::{Options, Sandbox};
use tempfile::TempDir;

const TOKEN: &str = "old-token-of-acme";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A service that gives tokens, and answers all else by a script of its own.
async fn service(script: impl Fn(usize, &Seen) -> Act + Send + Sync + 'static) -> Upstream {
    let tokens = r#"{"token_type":"Bearer","expires_in":2592000,"access_token":"a-1","refresh_token":"r-1"}"#;
    let calls = std::sync::atomic::AtomicUsize::new(0);
    Upstream::answering(move |_, seen| {
        if seen.line().contains("/token") {
            return Act::json(200, tokens);
        }
        script(calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed), seen)
    })
    .await
}

async fn collector() -> Upstream {
    Upstream::start(vec![Act::Reply(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec())]).await
}

fn agents() -> Act {
    Act::json(200, r#"[{"id":1,"name":"Ana"}]"#)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_refreshes_and_forget_the_tokens_of_a_client_that_is_gone() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    dual.configure(&service, Upstreams::of(&service), &["administrator", "manager"], "");
    let gateway = dual.started().await;
    let all = |client: &str| [("client", client.to_owned()), ("result", "ok".to_owned())];
    let refreshed = async |client: &str| {
        let labels = all(client);
        let labels = labels.each_ref().map(|(name, value)| (*name, value.as_str()));
        gateway.counted("switchback_token_refresh_total", &labels).await
    };
    eventually("each has its token", async || {
        refreshed("administrator").await == 1 && refreshed("manager").await == 1
    })
    .await;
    let (status, _) = gateway.admin("POST /api/clients/manager/retry", &json!({})).await;
    assert_eq!((status, refreshed("manager").await, refreshed("administrator").await), (200, 2, 1));

    let credential = json!({"side": "v2", "token": "a-token-of-the-old-service"});
    assert_eq!(gateway.admin("POST /api/clients/manager/credential", &credential).await.0, 200);
    let series = async |client: &str| -> BTreeSet<String> {
        let text = gateway.admin_text("GET /metrics", &Value::Null).await.text();
        let of_client = |line: &&str| line.contains(&format!("client=\"{client}\""));
        let name = |line: &str| line.split_once('{').map(|(name, _)| name.to_owned());
        let of_tokens = |name: &String| !name.ends_with("_total") && !name.contains("_request");
        text.lines().filter(of_client).filter_map(name).filter(of_tokens).collect()
    };
    let wanted = [
        "switchback_credential_refused",
        "switchback_token_expiry_timestamp_seconds",
        "switchback_token_lifetime_seconds",
        "switchback_token_state",
    ];
    assert_eq!(series("manager").await, wanted.map(str::to_owned).into());
    assert_eq!(gateway.admin("POST /api/clients/manager/revoke", &json!({})).await.0, 200);
    assert_eq!(series("manager").await, BTreeSet::new());
    assert_eq!(series("administrator").await, wanted[1..].iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(gateway.admin("POST /api/clients/manager/restore", &json!({})).await.0, 200);
    assert_eq!(series("manager").await, [wanted[3].to_owned()].into(), "it has no token yet");
    drop(gateway);
    let gateway = dual.start().await;
    let text = gateway.admin_text("GET /metrics", &Value::Null).await.text();
    assert!(text.contains("client=\"manager\""), "the configuration gives it its grant again");
}

struct Gateway {
    program: Program,
    address: SocketAddr,
    admin: SocketAddr,
    file: PathBuf,
    _folder: TempDir,
}

fn configuration(folder: &Path, service: SocketAddr, telemetry: &str) -> PathBuf {
    let more = format!(
        "oauth: {{ authorize_url: 'http://{service}/a', token_url: 'http://{service}/token', redirect_url: 'http://{service}/r' }}\n\
         clients: [{{ name: acme, v2_token: {TOKEN}, \
         grant: {{ client_id: app, client_secret: secret-of-app, refresh_token: r-0 }} }}]\n\
         limits: {{ drain_delay: 0s }}\n{telemetry}\n"
    );
    serving::write(folder, &service.to_string(), &more)
}

impl Gateway {
    fn start(service: SocketAddr, telemetry: &str) -> Gateway {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = configuration(folder.path(), service, telemetry);
        let program = serving::start(&file, &[]);
        let (address, admin) = serving::addresses(&program);
        Gateway { program, address, admin, file, _folder: folder }
    }

    async fn asked(&self, line: &str, fields: &str) -> u16 {
        let request = format!(
            "{line} HTTP/1.1\r\nhost: gateway.test:8080\r\nx-authorization: Bearer {TOKEN}\r\n{fields}\r\n"
        );
        exchange(self.address, request).await.expect("an answer").status
    }

    async fn counted(&self, result: &str) -> u64 {
        let request = format!("GET /metrics HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.admin);
        let metrics = exchange(self.admin, request).await.expect("the admin port answers").text();
        let line = format!("switchback_trace_spans_total{{result=\"{result}\"}} ");
        let count = metrics.lines().find_map(|known| known.strip_prefix(&line));
        count.unwrap_or_else(|| panic!("no {line} in {metrics}")).parse().expect("a number")
    }

    /// Ends it, which sends pending data.
    fn stop(self) {
        self.program.signal("TERM");
        let (status, log) = self.program.ended();
        assert!(status.success(), "{log}");
    }
}

/// All spans that a collector has got, decoded by others than us.
fn spans(python: &Path, collector: &Upstream) -> Vec<Value> {
    let messages: String = collector.seen().iter().map(|seen| STANDARD.encode(&seen.body) + "\n").collect();
    let decoded = run(python, "tests/otlp/decode.py", &[], &messages).expect("the collector understands it");
    let decoded: Vec<Value> = serde_json::from_str(&decoded).expect("JSON");
    for group in &decoded {
        assert_eq!(group["resource"]["service.name"], "switchback");
        assert_eq!(group["resource"]["service.version"], env!("CARGO_PKG_VERSION"));
        assert!(group["resource"]["service.instance.id"].is_string(), "{group}");
        assert_eq!(group["scope"], "switchback");
    }
    decoded.iter().flat_map(|group| group["spans"].as_array().expect("a list").clone()).collect()
}

fn of_kind<'s>(spans: &'s [Value], kind: &str) -> Vec<&'s Value> {
    spans.iter().filter(|span| span["kind"] == kind).collect()
}

fn sampled(flags: &str) -> String {
    format!("traceparent: 00-{TRACE}-{PARENT}-{flags}\r\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_and_its_calls_go_on_with_the_trace_of_the_client() {
    let Some(python) = python() else { return };
    let (service, collector) = (service(|_, _| agents()).await, collector().await);
    let gateway = Gateway::start(
        service.address,
        &format!(
            "telemetry: {{ otlp: {{ endpoint: 'http://{}/at', headers: {{ x-tenant: 'of-ours' }} }} }}",
            collector.address
        ),
    );
    assert_eq!(gateway.asked("GET /v2/agents?page=1", &sampled("01")).await, 200);
    gateway.stop();

    let message = &collector.seen()[0];
    assert_eq!(message.line(), "POST /at/v1/traces HTTP/1.1");
    assert_eq!(message.values("content-type"), ["application/x-protobuf"]);
    assert_eq!(message.values("x-tenant"), ["of-ours"]);
    let spans = spans(&python, &collector);
    let [server] = of_kind(&spans, "SPAN_KIND_SERVER")[..] else { panic!("{spans:#?}") };
    let [call] = of_kind(&spans, "SPAN_KIND_CLIENT")[..] else { panic!("{spans:#?}") };
    assert_eq!((&server["trace"], &server["parent"]), (&TRACE.into(), &PARENT.into()));
    assert_eq!((&call["trace"], &call["parent"]), (&TRACE.into(), &server["id"]));
    let said = service.seen().into_iter().find(|seen| seen.line().contains("/v3/")).expect("it was called");
    let span = call["id"].as_str().expect("an id");
    assert_eq!(said.values("traceparent"), [format!("00-{TRACE}-{span}-01")]);
    assert!(
        server["start"].as_u64() <= call["start"].as_u64() && call["end"].as_u64() <= server["end"].as_u64()
    );

    assert_eq!(server["name"], "GET /v2/agents");
    assert_eq!(server["status"], "STATUS_CODE_UNSET");
    let shown = &server["attributes"];
    for (name, value) in [
        ("http.request.method", "GET".into()),
        ("http.route", "/v2/agents".into()),
        ("url.path", "/v2/agents".into()),
        ("url.scheme", "http".into()),
        ("http.response.status_code", Value::from(200)),
        ("network.protocol.version", "1.1".into()),
        ("client.address", "127.0.0.1".into()),
        ("server.address", "gateway.test".into()),
        ("server.port", 8080.into()),
        ("switchback.operation", "GET /agents".into()),
        ("switchback.client", "acme".into()),
    ] {
        assert_eq!(shown[name], value, "{name} in {server:#}");
    }
    assert!(shown.get("error.type").is_none(), "{server:#}");
    let called = &call["attributes"];
    let port = service.address.port();
    for (name, value) in [
        ("http.request.method", Value::from("GET")),
        ("http.response.status_code", 200.into()),
        ("server.address", "127.0.0.1".into()),
        ("server.port", port.into()),
        ("url.template", "/agents".into()),
        ("url.full", format!("http://127.0.0.1:{port}/v3/agents").into()),
        ("switchback.upstream", "v3".into()),
        ("switchback.role", "client".into()),
    ] {
        assert_eq!(called[name], value, "{name} in {call:#}");
    }
    assert!(called.get("http.request.resend_count").is_none(), "{call:#}");
}

/// The recording of a trace is decided at its start: by the client if it sends a decision,
/// otherwise by the ratio.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_begins_a_trace_decides_whether_it_is_recorded() {
    let Some(python) = python() else { return };
    for (ratio, traceparent, recorded, passed_on) in
        [("0", "", false, "-00"), ("1", "", true, "-01"), ("0", "01", true, "-01"), ("1", "00", false, "-00")]
    {
        let (service, collector) = (service(|_, _| agents()).await, collector().await);
        let otlp = format!("endpoint: 'http://{}', ratio: {ratio}", collector.address);
        let gateway = Gateway::start(service.address, &format!("telemetry: {{ otlp: {{ {otlp} }} }}"));
        let fields = if traceparent.is_empty() { String::new() } else { sampled(traceparent) };
        assert_eq!(gateway.asked("GET /v2/agents", &fields).await, 200);
        gateway.stop();
        let situation = format!("ratio {ratio}, traceparent {traceparent:?}");
        let said =
            service.seen().into_iter().find(|seen| seen.line().contains("/v3/")).expect("it was called");
        assert!(said.values("traceparent")[0].ends_with(passed_on), "{situation}: {}", said.head);
        let spans = spans(&python, &collector);
        assert_eq!(spans.len(), if recorded { 2 } else { 0 }, "{situation}: {spans:#?}");
        if traceparent.is_empty() && recorded {
            assert_eq!(of_kind(&spans, "SPAN_KIND_SERVER")[0]["parent"], "", "{situation}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_sending_of_a_call_is_a_span_and_failures_are_errors() {
    let Some(python) = python() else { return };
    let script = |call: usize, _: &Seen| match call {
        0 => Act::ReplyAndReset(Vec::new()),
        1 => agents(),
        _ => Act::json(500, "{}"),
    };
    let (service, collector) = (service(script).await, collector().await);
    let telemetry = format!("telemetry: {{ otlp: {{ endpoint: 'http://{}' }} }}", collector.address);
    let gateway = Gateway::start(service.address, &telemetry);
    assert_eq!(gateway.asked("GET /v2/agents", "").await, 200);
    assert_eq!(gateway.asked("GET /v2/agents", &sampled("01")).await, 500);
    assert_eq!(gateway.asked("GET /v2/secret-in-a-path/x", &sampled("01")).await, 404);
    gateway.stop();

    let spans = spans(&python, &collector);
    let [first, second, refused] = of_kind(&spans, "SPAN_KIND_CLIENT")[..] else { panic!("{spans:#?}") };
    assert_eq!(first["status"], "STATUS_CODE_ERROR");
    assert_eq!(first["attributes"]["error.type"], "upstream_closed");
    assert_eq!(second["attributes"]["http.request.resend_count"], 1);
    assert_eq!(second["status"], "STATUS_CODE_UNSET");
    assert_ne!(first["id"], second["id"]);
    assert_eq!(refused["attributes"]["error.type"], "500");
    assert_eq!(refused["attributes"]["http.response.status_code"], 500);
    let [good, bad, unknown] = of_kind(&spans, "SPAN_KIND_SERVER")[..] else { panic!("{spans:#?}") };
    assert_eq!(good["status"], "STATUS_CODE_UNSET");
    assert_eq!(
        (&bad["status"], &bad["attributes"]["http.response.status_code"]),
        (&"STATUS_CODE_ERROR".into(), &500.into())
    );
    assert!(bad["attributes"]["error.type"].is_string(), "{bad:#}");
    assert_eq!(unknown["status"], "STATUS_CODE_UNSET");
    assert_eq!(unknown["name"], "GET");
    // Neither secret parts of a path nor tokens.
    for message in collector.seen() {
        for secret in ["secret-in-a-path", TOKEN, "a-1", "secret-of-app"] {
            let found = message.body.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
            assert!(!found, "{secret} is in what the collector gets");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_takes_nothing_costs_spans_and_no_request() {
    let service = service(|_, _| agents()).await;
    for (act, result) in [
        (Act::Silence, "dropped"),
        (Act::Reply(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_vec()), "failed"),
    ] {
        let collector = Upstream::start(vec![act]).await;
        let otlp = format!("endpoint: 'http://{}', queue: 4, timeout: 1m", collector.address);
        let gateway = Gateway::start(service.address, &format!("telemetry: {{ otlp: {{ {otlp} }} }}"));
        assert_eq!(gateway.counted(result).await, 0, "it is born at 0");
        // The first batch is on its way when the collector has its message.
        assert_eq!(gateway.asked("GET /v2/agents", "").await, 200);
        collector.received(1).await;
        for _ in 0..20 {
            assert_eq!(gateway.asked("GET /v2/agents", "").await, 200);
        }
        let mut counted = 0;
        for _ in 0..200 {
            counted = gateway.counted(result).await;
            if counted > 0 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert!(counted > 0, "{result}");
        assert_eq!(gateway.counted("exported").await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_turns_traces_on_and_sends_them_elsewhere() {
    let Some(python) = python() else { return };
    let service = service(|_, _| agents()).await;
    let (first, second) = (collector().await, collector().await);
    let gateway = Gateway::start(service.address, "reload: { watch: false }");
    let folder = gateway.file.parent().expect("a folder").to_owned();
    assert_eq!(gateway.asked("GET /v2/agents", "").await, 200);
    for collector in [&first, &second] {
        let telemetry = format!(
            "telemetry: {{ otlp: {{ endpoint: 'http://{}' }} }}\nreload: {{ watch: false }}",
            collector.address
        );
        configuration(&folder, service.address, &telemetry);
        gateway.program.signal("HUP");
        gateway.program.stderr_until("reloaded");
        assert_eq!(gateway.asked("GET /v2/agents", "").await, 200);
    }
    // The sender of the first ends with its last request, and sends its data before.
    first.received(1).await;
    gateway.stop();
    assert_eq!((spans(&python, &first).len(), spans(&python, &second).len()), (2, 2));
}

/// The line of the access log about the next request, as JSON.
fn line(program: &Program) -> Value {
    let said = program.stderr_until("switchback::access");
    serde_json::from_str(said.lines().last().expect("a line")).expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_of_the_access_log_says_who_asked_who_answered_and_what_was_waited_for() {
    let service = service(|_, _| agents()).await;
    let gateway = Gateway::start(service.address, "log: { format: json }\ntrusted_proxies: [127.0.0.0/8]");
    let own = "x-request-id: of-the-client\r\nx-forwarded-for: 6.6.6.6, 192.0.2.7\r\n";
    assert_eq!(gateway.asked("GET /v2/agents", own).await, 200);
    let translated = line(&gateway.program);
    for (name, value) in [
        ("client_request_id", "of-the-client"),
        ("address", "192.0.2.7"),
        ("client", "acme"),
        ("phase", "translated"),
        ("answered_by", "v3"),
    ] {
        assert_eq!(translated[name], value, "{name} in {translated:#}");
    }
    let (waited, took) = (translated["upstream_us"].as_u64(), translated["elapsed_us"].as_u64());
    assert!(waited > Some(0) && waited < took, "{translated:#}");
    assert_ne!(translated["request_id"], "of-the-client", "{translated:#}");
    let called = service.seen().into_iter().find(|seen| seen.line().contains("/v3/")).expect("it was called");
    assert_eq!(called.values("x-request-id"), ["of-the-client"]);

    // A refusal is the gateway's own answer, without any waiting.
    assert_eq!(gateway.asked("GET /v2/nothing", "").await, 404);
    let refused = line(&gateway.program);
    assert_eq!(
        (&refused["answered_by"], &refused["upstream_us"]),
        (&"gateway".into(), &0.into()),
        "{refused:#}"
    );
    assert_eq!((&refused["client_request_id"], &refused["phase"]), (&"".into(), &"".into()), "{refused:#}");
    assert_eq!(refused["address"], "127.0.0.1", "no proxy said more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_clients_connect_from_can_be_left_out_of_the_log_and_is_not_believed_of_strangers() {
    let service = service(|_, _| agents()).await;
    for (log, address) in
        [("log: { format: json }", "127.0.0.1"), ("log: { format: json, client_address: false }", "")]
    {
        let gateway = Gateway::start(service.address, log);
        assert_eq!(gateway.asked("GET /v2/agents", "x-forwarded-for: 192.0.2.7\r\n").await, 200);
        assert_eq!(line(&gateway.program)["address"], address, "{log}");
    }
}
