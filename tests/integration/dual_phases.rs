//! Phases at run time, through the real binary: set by command line and admin API, persistent over
//! restarts, applied by other gateways on the same store.

use crate::support::dual::{Dual, Running, Upstreams, control, eventually, received};
use crate::support::postgres;
use crate::support::studio::{Session, text};
use serde_json::{Value, json};
use switchback_gateway::shadow::Share;
use switchback_sandbox::{Options, Sandbox};

const LIST: &str = "GET /v2/chats";

/// Returns the version that answers an account's list, by the sandbox's log.
async fn answered_by(service: &Sandbox, gateway: &Running, role: &str) -> &'static str {
    control(service, "DELETE requests", Value::Null).await;
    let account = service.credentials().account(role).expect("a known role");
    let answer = gateway.ask(account, LIST, "", "").await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let (v2, v3) = (received(service, "/v2/").await, received(service, "/v3/").await);
    match (v2.len(), v3.len()) {
        (0, 1..) => "v3",
        (1.., 0) => "v2",
        both => panic!("{both:?} calls"),
    }
}

async fn phase_of(gateway: &Running, operation: &str) -> Value {
    let (status, list) = gateway.admin("GET /api/phases", &Value::Null).await;
    assert_eq!(status, 200);
    let of = |info: &&Value| info["operation"] == operation;
    list.as_array().expect("a list").iter().find(of).unwrap_or_else(|| panic!("{operation}: {list}")).clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_set_wins_over_the_file_through_restart_and_reload_until_it_is_reset() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let roles = ["administrator"];
    dual.configure(&service, Upstreams::of(&service), &roles, "phases: { 'GET /chats': legacy }\n");
    let gateway = dual.start().await;
    assert_eq!(answered_by(&service, &gateway, "administrator").await, "v2");
    let before = phase_of(&gateway, "GET /chats").await;
    assert_eq!((&before["phase"], &before["from"]), (&json!("legacy"), &json!("configuration")));

    let (status, set) =
        gateway.admin("POST /api/phases", &json!({"operation": "GET /chats", "phase": "translated"})).await;
    assert_eq!(
        (status, &set["from"], &set["configured"]["phase"]),
        (200, &json!("operator"), &json!("legacy"))
    );
    assert_eq!(answered_by(&service, &gateway, "administrator").await, "v3", "at once");

    gateway.stop().await;
    let (_, listed, _) = dual.cli(&["phase", "list"]).await;
    let line = |operation: &str| {
        let mut lines = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let start = format!("v2 {operation} ");
        lines.find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("{operation}: {listed}"))
    };
    let since = set["since"].as_str().expect("it was set");
    assert_eq!(
        line("GET /chats"),
        format!("v2 GET /chats translated set by the operator at {since}; configured: legacy")
    );
    assert_eq!(line("GET /agents"), "v2 GET /agents translated as configured");
    let gateway = dual.start().await;
    assert_eq!(answered_by(&service, &gateway, "administrator").await, "v3", "after a restart");
    let (status, _) = gateway.admin("POST /api/reload", &json!({})).await;
    assert_eq!(status, 202);
    assert_eq!(answered_by(&service, &gateway, "administrator").await, "v3", "after a reload");

    let reset = dual.cli_json(&["phase", "reset", "GET /chats"]).await;
    assert_eq!((&reset["phase"], &reset["from"]), (&json!("legacy"), &json!("configuration")));
    eventually("the gateway follows the command line", async || {
        phase_of(&gateway, "GET /chats").await["phase"] == "legacy"
    })
    .await;
    assert_eq!(answered_by(&service, &gateway, "administrator").await, "v2");
    // Resetting an unset phase is not a transition, and its period continues.
    let never_set = phase_of(&gateway, "GET /agents").await;
    assert_eq!(dual.cli_json(&["phase", "reset", "GET /agents"]).await, never_set);
    let transitions = dual.cli_json(&["phase", "transitions"]).await;
    let seen: Vec<_> =
        transitions.as_array().expect("a list").iter().map(|m| (&m["from"], &m["to"])).collect();
    assert_eq!(seen, [(&json!("translated"), &json!("legacy")), (&json!("legacy"), &json!("translated"))]);
    let (_, over_http) = gateway.admin("GET /api/phases/transitions", &Value::Null).await;
    assert_eq!(over_http, transitions);
    let metrics = gateway.admin_text("GET /metrics", &Value::Null).await.text();
    let line = "switchback_phase{side=\"v2\",operation=\"GET /chats\",phase=\"legacy\"} 1";
    assert!(metrics.contains(line), "{metrics}");
    let page = gateway.admin_text("GET /history", &Value::Null).await.text();
    assert!(page.contains("GET /chats") && page.contains("legacy"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_answers_the_same_clients_every_time_and_a_larger_share_only_adds_some() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let roles = ["administrator", "manager", "agent", "guest"];
    dual.configure(&service, Upstreams::of(&service), &roles, "shadow: { sample: 0 }\n");
    let gateway = dual.start().await;
    let session = Session::open(&gateway).await;
    let mut before: Vec<&str> = Vec::new();
    for share in ["0", "0.3", "0.6", "100%"] {
        let set = dual.cli_json(&["phase", "set", "GET /chats", "canary", "--share", share]).await;
        let wanted: Share = share.parse().expect("a share");
        assert_eq!(set["share"], json!(wanted.part()));
        eventually("the gateway follows", async || {
            phase_of(&gateway, "GET /chats").await["share"] == json!(wanted.part())
        })
        .await;
        let mut moved = Vec::new();
        for role in roles {
            for _ in 0..3 {
                let expected = if wanted.has_client(role, "GET /chats") { "v3" } else { "v2" };
                assert_eq!(answered_by(&service, &gateway, role).await, expected, "{role} at {share}");
            }
            moved.extend(wanted.has_client(role, "GET /chats").then_some(role));
        }
        assert!(before.iter().all(|role| moved.contains(role)), "{before:?} then {moved:?}");
        // The studio names the same clients before the transition.
        let path = format!("/operations/v2/GET%20%2Fchats/move?phase=canary&share={}", wanted.part());
        let page = text(&session.page(&gateway, &path).await);
        let named = page.split("Of the current 4 clients ").nth(1).expect("a sentence about them");
        match named.strip_prefix("these are: ").and_then(|rest| rest.split('.').next()) {
            None => assert!(moved.is_empty() && named.starts_with("none is selected."), "{named}"),
            Some(names) => {
                let mut expected = moved.clone();
                expected.sort_unstable();
                assert_eq!(names.split(", ").collect::<Vec<_>>(), expected, "at {share}");
            }
        }
        before = moved;
    }
    assert_eq!(before, roles);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_set_is_refused_with_the_reason() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    dual.configure(&service, Upstreams::of(&service), &["administrator"], "");
    let text = std::fs::read_to_string(dual.file()).expect("it was written");
    let own = format!(", v2: {{ url: 'http://{}/v2' }}", service.address());
    std::fs::write(dual.file(), text.replace(&own, "")).expect("the file is written");
    let gateway = dual.start().await;
    for (body, status, reason) in [
        (
            json!({"operation": "GET /chat", "phase": "legacy"}),
            404,
            "no front serves an operation `GET /chat`",
        ),
        (json!({"operation": "GET /chats", "phase": "shadowy"}), 400, "there is no phase `shadowy`"),
        (json!({"operation": "GET /chats", "phase": "canary"}), 400, "needs a share of clients"),
        (json!({"operation": "GET /chats", "phase": "canary", "share": 2}), 400, "from 0 to 1"),
        (json!({"operation": "GET /chats", "phase": "shadow"}), 409, "`upstreams.v2` is not configured"),
    ] {
        let (got, answer) = gateway.admin("POST /api/phases", &body).await;
        let said = answer["error"].as_str().unwrap_or_default();
        assert!(got == status && said.contains(reason), "{body}: {got} {answer}");
    }
    let (code, _, error) = dual.cli(&["phase", "set", "GET /chats", "shadow"]).await;
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("`upstreams.v2` is not configured"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_on_one_database_follow_one_another() {
    let Some(url) = postgres::database() else { return };
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let mut dual = Dual::new();
    dual.store = url;
    let other = dual.beside();
    for one in [&dual, &other] {
        one.configure(&service, Upstreams::of(&service), &["administrator"], "");
    }
    let (first, second) = (dual.start().await, other.start().await);
    assert_eq!(answered_by(&service, &second, "administrator").await, "v3");
    let (status, _) =
        first.admin("POST /api/phases", &json!({"operation": "GET /chats", "phase": "legacy"})).await;
    assert_eq!(status, 200);
    eventually("the other gateway follows", async || {
        phase_of(&second, "GET /chats").await["phase"] == "legacy"
    })
    .await;
    assert_eq!(answered_by(&service, &second, "administrator").await, "v2");
}
