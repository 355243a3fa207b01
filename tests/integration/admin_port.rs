//! The admin port over real sockets, with the sandbox as authorization server.

use crate::support::raw::exchange;
use crate::support::tokens::service_requests;
use arc_swap::ArcSwap;
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use switchback::admin::{
    AdminParts, Board, PackStatus, ReloadRequest, ReloadRequests, RequestsView, SessionPolicy, Status,
};
use switchback::app::{Admin, builtin};
use switchback::playground::{PlaygroundSession, ServedPack as Tried};
use switchback_compiler::mapping;
use switchback_gateway::capture::Tap;
use switchback_gateway::clock::Clock;
use switchback_gateway::proxy::program::Program;
use switchback_gateway::proxy::unknown_calls::UnknownCalls;
use switchback_gateway::recent::RecentRequests;
use switchback_gateway::retire::{Retirement, Usage};
use switchback_gateway::secret::Secret;
use switchback_gateway::server::{self, Drain, Listener};
use switchback_gateway::shadow::{Archive, Phases};
use switchback_gateway::store::seal::{KeyRing, SealingKey};
use switchback_gateway::store::{MissingStore, Store};
use switchback_gateway::telemetry::metrics;
use switchback_gateway::token::{OAuth, RefreshSettings, Registry, TokenEndpoint, Tokens};
use switchback_sandbox::{Options, Sandbox};
use tokio::sync::{Mutex, mpsc};

const TOKEN: &str = "admin-token-of-the-test";
const READ_TOKEN: &str = "read-token-of-the-test";

/// An admin port with a sandbox behind it.
struct Port {
    base: String,
    http: Client,
    sandbox: Sandbox,
    requested: Mutex<mpsc::Receiver<ReloadRequest>>,
    drain: Drain,
    _folder: tempfile::TempDir,
}

/// The pack that is built in, served nowhere.
fn program() -> Program {
    let pack = mapping::compile(&builtin::source()).pack.expect("the pack that is built in compiles");
    Program::new(pack, Arc::default(), Vec::new())
}

impl Drop for Port {
    fn drop(&mut self) {
        self.drain.begin();
    }
}

impl Port {
    async fn open(token: Option<&str>) -> Port {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), None).expect("a free port");
        let base = format!("http://{}", listener.address().unwrap());
        let callback = format!("{base}/oauth/callback");
        let options = Options { redirect_uris: vec![callback.clone()], ..Options::default() };
        let sandbox = Sandbox::start(options).await.expect("a sandbox starts");
        let service = format!("http://{}", sandbox.address());
        let url = |path: &str| format!("{service}{path}").parse().unwrap();
        let endpoint = TokenEndpoint::new(OAuth {
            scopes: vec!["install_app".to_owned()],
            requests: service_requests(),
            ..OAuth::at(url("/oauth/authorize"), url("/oauth/access_token"), callback.parse().unwrap())
        });
        let endpoint = endpoint.expect("loopback needs no TLS");
        let keys = KeyRing::parse(&[SealingKey::generate()]).expect("a generated key parses");
        let url = format!("sqlite:{}", folder.path().join("store.db").display());
        let clock = Clock::machine();
        let store =
            Store::open(&url, keys, clock.clone(), MissingStore::Create).await.expect("a store opens");
        let tokens = Tokens::open(store.clone(), Some(endpoint.clone()), RefreshSettings::default())
            .await
            .expect("tokens open");
        let (reload, requested) = ReloadRequests::new();
        let parts = AdminParts {
            metrics: metrics::install(),
            archive: Archive::new(store.clone()),
            phases: Phases::open(store.clone()).await.expect("nothing was set"),
            usage: Usage::new(store.clone()),
            retirement: Retirement::new(store.clone()),
            workbench: PlaygroundSession::new(Tried {
                files: Arc::default(),
                settings: "{}".to_owned(),
                fronts: Vec::new(),
                upstreams: Vec::new(),
                public_urls: Vec::new(),
                writable: None,
            }),
            registry: Registry::new(store.clone(), Some(endpoint)),
            tokens,
            board: board(),
            drain: Drain::new(),
            reload,
            program: Arc::new(ArcSwap::from_pointee(program())),
            tap: Tap::default(),
            requests: RequestsView::new(RecentRequests::default()),
            unknown: UnknownCalls::new(Clock::machine()),
            clock,
            store,
        };
        let access = SessionPolicy {
            token: token.map(Secret::from),
            read_token: token.map(|_| Secret::from(READ_TOKEN)),
            session: Duration::from_secs(60),
            session_max: Duration::from_secs(3600),
            keys: vec![SealingKey::generate()],
        };
        let admin = Admin::new(parts, &access, vec!["admin.example.com".to_owned()]);
        let drain = Drain::new();
        tokio::spawn(server::serve(
            listener,
            admin,
            Arc::new(server::ServerOptions { tells_peer: true, ..server::ServerOptions::default() }),
            drain.clone(),
        ));
        let http = crate::support::http::client();
        Port { base, http, sandbox, requested: Mutex::new(requested), drain, _folder: folder }
    }

    async fn get(&self, path: &str) -> Response {
        let request = self.http.get(format!("{}{path}", self.base)).bearer_auth(TOKEN);
        request.send().await.expect("the port answers")
    }

    async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        let request = self.http.post(format!("{}{path}", self.base)).bearer_auth(TOKEN).json(body);
        let response = request.send().await.expect("the port answers");
        (response.status(), response.json().await.expect("its answers are JSON"))
    }

    async fn add_acme(&self) -> Value {
        let credentials = self.sandbox.credentials();
        let (id, secret) = (&credentials.client_id, &credentials.client_secret);
        let (status, added) = self
            .post("/api/clients", &json!({"name": "acme", "client_id": id, "client_secret": secret}))
            .await;
        assert_eq!(status, StatusCode::CREATED, "{added}");
        added
    }
}

fn board() -> Board {
    Arc::new(arc_swap::ArcSwap::from_pointee(Status {
        config: json!({"key": ["***"]}),
        pack: PackStatus {
            name: "things <b>".to_owned(),
            source: "built in".to_owned(),
            hash: "0123456789abcdef0123456789abcdef".to_owned(),
            loaded_at: "2026-01-01T00:00:00Z".to_owned(),
            generation: 1,
            last_reload: None,
            restored: None,
        },
        shown: None,
        before: None,
        certificates: Vec::new(),
    }))
}

#[tokio::test]
async fn a_client_is_added_connected_by_a_person_rotated_and_revoked() {
    let port = Port::open(Some(TOKEN)).await;
    assert_eq!(
        port.get("/healthz/ready").await.status(),
        StatusCode::OK,
        "without clients there is nothing to wait for"
    );
    let added = port.add_acme().await;
    assert!(added["token"].as_str().is_some_and(|token| token.len() > 20), "a token is made and shown once");
    assert_eq!(added["client"]["grant"]["state"], "unconnected");
    assert_eq!(
        port.get("/healthz/ready").await.status(),
        StatusCode::OK,
        "the link that connects its only client must be reached"
    );

    let (status, link) = port.post("/api/clients/acme/connect", &json!({})).await;
    assert_eq!(status, StatusCode::OK, "{link}");
    let authorize = format!("{}&auto_approve=1", link["url"].as_str().unwrap());
    let sent_back = port.http.get(authorize).send().await.expect("the sandbox answers");
    let callback = sent_back.headers()["location"].to_str().unwrap().to_owned();
    assert!(callback.starts_with(&format!("{}/oauth/callback?", port.base)), "{callback}");
    // Following the link for a check, as scanners of mail do, does not use it up.
    let looked_at = port.http.head(&callback).send().await.unwrap();
    assert_eq!(looked_at.status(), StatusCode::METHOD_NOT_ALLOWED);
    let page = port.http.get(&callback).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK);
    let page = page.text().await.unwrap();
    assert!(page.contains("<strong>acme</strong> is connected"), "{page}");
    assert_eq!(
        port.http.get(&callback).send().await.unwrap().status(),
        StatusCode::BAD_REQUEST,
        "a link works once"
    );
    assert_eq!(port.get("/healthz/ready").await.status(), StatusCode::OK);

    let (status, rotated) = port.post("/api/clients/acme/rotate", &json!({"grace_seconds": 60})).await;
    assert_eq!((status, &rotated["client"]["tokens"]), (StatusCode::OK, &json!(2)));
    assert_ne!(rotated["token"], added["token"]);
    let (status, revoked) = port.post("/api/clients/acme/revoke", &json!({})).await;
    assert_eq!(status, StatusCode::OK);
    assert!(revoked["client"]["revoked_at"].is_string(), "{revoked}");
    let listed: Value = port.get("/api/clients").await.json().await.unwrap();
    assert_eq!(listed[0]["name"], "acme");
    assert!(!listed.to_string().contains(added["token"].as_str().unwrap()), "no token is listed");
}

#[tokio::test]
async fn what_is_asked_wrongly_is_answered_with_why() {
    let port = Port::open(Some(TOKEN)).await;
    for (path, body, status) in [
        ("/api/clients", json!({"name": "two words"}), StatusCode::BAD_REQUEST),
        ("/api/clients", json!({"name": "a", "client_id": "x"}), StatusCode::BAD_REQUEST),
        ("/api/clients", json!({"nmae": "a"}), StatusCode::BAD_REQUEST),
        ("/api/clients", json!({"name": "a".repeat(70_000)}), StatusCode::PAYLOAD_TOO_LARGE),
        ("/api/clients/nobody/revoke", json!({}), StatusCode::NOT_FOUND),
        ("/api/clients/nobody/connect", json!({}), StatusCode::NOT_FOUND),
        ("/api/nothing", json!({}), StatusCode::NOT_FOUND),
    ] {
        let (found, answer) = port.post(path, &body).await;
        assert_eq!(found, status, "{path}: {answer}");
        assert!(answer["error"].is_string(), "{answer}");
    }
    let (status, answer) =
        port.post("/api/clients", &json!({"name": "a", "token": 5, "client_id": "hunter2"})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(!answer.to_string().contains("hunter2"));
}

#[tokio::test]
async fn nobody_reads_or_changes_without_the_token() {
    let port = Port::open(Some(TOKEN)).await;
    for path in
        ["/", "/metrics", "/api/config", "/api/clients", "/api/pack", "/api/operations", "/clients", "/pack"]
    {
        let response = port.http.get(format!("{}{path}", port.base)).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert!(matches!(port.get(path).await.status().as_u16(), 200 | 404), "{path}");
    }
    let live = port.http.get(format!("{}/healthz/live", port.base)).send().await.unwrap();
    assert_eq!(live.status(), StatusCode::OK);
    // Probes of HTTP/1.0 name no host.
    let address = port.base.trim_start_matches("http://").parse().expect("an address");
    for (path, status) in
        [("/healthz/live", 200), ("/healthz/ready", 200), ("/metrics", 403), ("/login", 403)]
    {
        let answer = exchange(address, format!("GET {path} HTTP/1.0\r\n\r\n")).await.expect("an answer");
        assert_eq!(answer.status, status, "{path}");
    }
    let stolen =
        port.http.post(format!("{}/api/reload", port.base)).basic_auth("me", Some(TOKEN)).json(&json!({}));
    assert_eq!(
        stolen.send().await.unwrap().status(),
        StatusCode::UNAUTHORIZED,
        "a browser repeats Basic for any page"
    );
    let rebound =
        port.http.get(format!("{}/api/clients", port.base)).header("host", "evil.example").bearer_auth(TOKEN);
    assert_eq!(rebound.send().await.unwrap().status(), StatusCode::FORBIDDEN);
    let (status, _) = port.post("/api/reload", &json!({})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    port.reload_requested().await;
}

#[tokio::test]
async fn without_a_token_loopback_may_read_and_change_nothing() {
    let port = Port::open(None).await;
    assert_eq!(port.get("/api/clients").await.status(), StatusCode::OK);
    let (status, answer) = port.post("/api/clients", &json!({"name": "acme"})).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
}

#[tokio::test]
async fn pages_hold_no_script_of_their_own_and_say_what_serves() {
    let port = Port::open(Some(TOKEN)).await;
    port.add_acme().await;
    let response = port.get("/").await;
    let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let page = response.text().await.unwrap();
    for part in ["acme", "is not connected", "things &lt;b&gt;", "/assets/studio-"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(page.contains("<script src=\"/assets/") && page.matches("<script").count() == 1, "{page}");
    assert!(!page.contains(" style=") && !page.contains(" onclick="), "{page}");
    let head = port.http.request(Method::HEAD, &port.base).bearer_auth(TOKEN).send().await.unwrap();
    assert_eq!(head.status(), StatusCode::OK);
    assert_eq!(head.bytes().await.unwrap().len(), 0);
}

#[tokio::test]
async fn metrics_are_the_text_format() {
    let port = Port::open(Some(TOKEN)).await;
    let response = port.get("/metrics").await;
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = response.text().await.unwrap();
    assert!(text.contains("switchback_build_info{version="), "{text}");
    assert!(!text.contains(TOKEN));
}

#[tokio::test]
async fn a_client_of_a_side_without_grants_is_given_a_credential_that_is_never_shown() {
    let port = Port::open(Some(TOKEN)).await;
    let (status, added) = port
        .post("/api/clients", &json!({"name": "beta", "side": "v3", "credentials": {"v2": "secret-canary"}}))
        .await;
    assert_eq!(status, StatusCode::CREATED, "{added}");
    assert_eq!(added["client"]["token_sides"], json!(["v3"]));
    assert!(added["token"].is_string() && !added.to_string().contains("canary"), "{added}");
    assert_eq!(
        port.get("/healthz/ready").await.status(),
        StatusCode::OK,
        "its calls can go out, though nobody connected it"
    );
    let (status, set) =
        port.post("/api/clients/beta/credential", &json!({"side": "v1", "token": "another-canary"})).await;
    assert_eq!(status, StatusCode::OK, "{set}");
    let sides: Vec<_> = set["client"]["credentials"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["side"].clone())
        .collect();
    assert_eq!(sides, ["v1", "v2"]);
    for (body, expected) in [
        (json!({"side": "v2"}), StatusCode::BAD_REQUEST),
        (json!({"side": "v2", "token": "short"}), StatusCode::BAD_REQUEST),
        (json!({"side": "a b", "token": "long-enough"}), StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(port.post("/api/clients/beta/credential", &body).await.0, expected, "{body}");
    }
    let unknown =
        port.post("/api/clients/nobody/credential", &json!({"side": "v2", "token": "long-enough"})).await;
    assert_eq!(unknown.0, StatusCode::NOT_FOUND);
    for path in ["/clients", "/api/clients"] {
        let page = port.get(path).await.text().await.expect("a text");
        assert!(page.contains("v2") && !page.contains("canary"), "{page}");
    }
}

/// A browser, as far as forms and cookies go.
struct Browser<'p> {
    port: &'p Port,
    cookie: String,
}

impl Browser<'_> {
    async fn look(&self, path: &str) -> Response {
        let request = self.port.http.get(format!("{}{path}", self.port.base)).header("accept", "text/html");
        request.header("cookie", &self.cookie).send().await.expect("the port answers")
    }

    /// Sends a form the way a page of the port does.
    async fn send(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        self.send_from(&self.port.base, path, fields).await
    }

    async fn send_from(&self, origin: &str, path: &str, fields: &[(&str, &str)]) -> Response {
        let body = fields.iter().map(|(name, value)| format!("{name}={}", value.replace(' ', "+")));
        let request = self.port.http.post(format!("{}{path}", self.port.base)).header("origin", origin);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let request = request.header("cookie", &self.cookie).body(body.collect::<Vec<_>>().join("&"));
        request.send().await.expect("the port answers")
    }
}

impl Port {
    /// Waits until a reload is requested.
    async fn reload_requested(&self) {
        let request = self.requested.lock().await.recv().await;
        assert!(matches!(request, Some(ReloadRequest::Reload { .. })), "{request:?}");
    }

    fn stranger(&self) -> Browser<'_> {
        Browser { port: self, cookie: String::new() }
    }

    async fn signed_in(&self, token: &str) -> Browser<'_> {
        let answer =
            self.stranger().send("/login", &[("token", token), ("name", "Ada"), ("to", "/pack")]).await;
        assert_eq!(
            (answer.status(), &answer.headers()["location"]),
            (StatusCode::SEE_OTHER, &"/pack".parse().unwrap())
        );
        let cookie = answer.headers()["set-cookie"].to_str().unwrap();
        assert!(cookie.contains("HttpOnly; SameSite=Strict") && !cookie.contains(token), "{cookie}");
        Browser { port: self, cookie: cookie.split(';').next().unwrap().to_owned() }
    }
}

/// The token that the forms of a page carry.
fn form_token(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"form_token\" value=\"").expect("a form");
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_person_signs_in_looks_and_signs_out() {
    let port = Port::open(Some(TOKEN)).await;
    let sent = port.stranger().look("/clients?page=2").await;
    assert_eq!(sent.status(), StatusCode::SEE_OTHER);
    assert_eq!(sent.headers()["location"], "/login?to=%2Fclients%3Fpage%3D2");
    let wrong = port.stranger().send("/login", &[("token", "wrong"), ("to", "//evil.example")]).await;
    assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED);
    let browser = port.signed_in(TOKEN).await;
    let page = browser.look("/clients").await.text().await.unwrap();
    assert!(page.contains("Ada") && page.contains("operate"), "{page}");
    assert_eq!(browser.look("/api/clients").await.status(), StatusCode::OK, "a session reads the API");
    let out = browser.send("/logout", &[("form_token", &form_token(&page))]).await;
    assert!(out.headers()["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    // A copied cookie alone is useless.
    assert_eq!(browser.look("/api/clients").await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(browser.look("/clients").await.status(), StatusCode::SEE_OTHER, "it is sent to sign in");
    let late = browser.send("/reload", &[("form_token", &form_token(&page))]).await;
    assert_eq!(late.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_form_is_taken_from_its_own_page_its_own_session_and_who_may() {
    let port = Port::open(Some(TOKEN)).await;
    let (operator, reader) = (port.signed_in(TOKEN).await, port.signed_in(READ_TOKEN).await);
    let token = form_token(&operator.look("/").await.text().await.unwrap());
    let readers = form_token(&reader.look("/").await.text().await.unwrap());
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        let answer = operator.send_from(origin, "/reload", &[("form_token", &token)]).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{origin}");
    }
    for (browser, token, why) in [
        (&operator, "", "without a token"),
        (&operator, readers.as_str(), "with the token of another session"),
        (&reader, readers.as_str(), "by who may only look"),
    ] {
        let answer = browser.send("/reload", &[("form_token", token)]).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{why}");
    }
    let answer = operator.send("/reload", &[("form_token", &token)]).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    port.reload_requested().await;
}

#[tokio::test]
async fn what_was_typed_outlives_a_session_and_is_sent_by_hand() {
    let port = Port::open(Some(TOKEN)).await;
    let written = "because <b>why</b>";
    let late = port.stranger().send("/reload", &[("reason", written), ("form_token", "old")]).await;
    assert_eq!(late.status(), StatusCode::UNAUTHORIZED);
    let page = late.text().await.unwrap();
    assert!(
        page.contains("value=\"because &lt;b&gt;why&lt;/b&gt;\"") && page.contains("kept.reason"),
        "{page}"
    );
    let fields = [("token", TOKEN), ("to", "/reload"), ("kept.reason", written)];
    let again = port.stranger().send("/login", &fields).await;
    let cookie = again.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let page = again.text().await.unwrap();
    assert!(page.contains("action=\"/reload\"") && page.contains("&lt;b&gt;why"), "{page}");
    let browser = Browser { port: &port, cookie };
    let sent = browser.send("/reload", &[("reason", written), ("form_token", &form_token(&page))]).await;
    assert_eq!(sent.status(), StatusCode::SEE_OTHER);
    port.reload_requested().await;
}
