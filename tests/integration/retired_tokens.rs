//! Rotated, expired or revoked tokens reach no service, in any phase of an operation: the old
//! service knows them, and would still answer.

use crate::support::dual::{Dual, Running, Upstreams, administrator, control, eventually, received};
use crate::support::postgres;
use crate::support::raw::exchange;
use serde_json::{Value, json};
use switchback_sandbox::{Options, Sandbox};

/// The policy of `fronts` for clients that are not enrolled.
const UNKNOWN: [&str; 2] = ["forward", "forward_all"];
const PHASES: [&str; 4] = ["legacy", "shadow", "{ phase: canary, share: 50% }", "translated"];

async fn status(gateway: &Running, token: &str, line: &str, body: &str) -> u16 {
    let request = format!(
        "{line} HTTP/1.1\r\nhost: g\r\nx-authorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    exchange(gateway.address, request).await.expect("an answer").status
}

/// The statuses of a reading and of a write.
async fn both(gateway: &Running, token: &str) -> [u16; 2] {
    let text = r#"{"text":"hello"}"#;
    [
        status(gateway, token, "GET /v2/agents", "").await,
        status(gateway, token, "POST /v2/chats/7/messages", text).await,
    ]
}

/// The token is refused, for operations and for paths outside the contract, and the old service
/// does not receive it.
async fn is_refused(gateway: &Running, service: &Sandbox, token: &str, case: &str) {
    control(service, "DELETE requests", Value::Null).await;
    assert_eq!(both(gateway, token).await, [401, 401], "{case}");
    assert_eq!(status(gateway, token, "GET /v2/never/heard", "").await, 401, "{case}");
    // A reading that a client sends with the token in another field is no reading of a stranger either.
    let basic = format!("GET /v2/agents HTTP/1.1\r\nhost: g\r\nauthorization: Token {token}\r\n\r\n");
    let answer = exchange(gateway.address, basic).await.expect("an answer");
    assert_eq!(answer.status, 401, "{case}");
    let carried = received(service, "/v2/").await;
    assert!(!Value::from(carried.clone()).to_string().contains(token), "{case}: {carried:?}");
    assert_eq!(carried, Vec::<Value>::new(), "{case}");
}

async fn changed(gateway: &Running, line: &str, body: Value) -> Value {
    let (status, answer) = gateway.admin(line, &body).await;
    assert!(status < 300, "{line}: {status} {answer}");
    answer
}

async fn no_retired_token_reaches_the_old_service(store: Option<String>, unknown: &str, phase: &str) {
    let case = &format!("{unknown}, {phase}");
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let mut dual = Dual::new();
    if let Some(store) = store {
        dual.store = store;
    }
    let more = format!(
        "fronts: {{ /v2: {{ speaks: v2, backend: v3, unknown: {unknown} }} }}\nphases: {{ default: {phase} }}\n"
    );
    dual.configure(&service, Upstreams::of(&service), &["administrator"], &more);
    let gateway = dual.started().await;

    // The token that the old service takes is the client's, by the configuration; another client
    // has three by commands.
    let of_service = administrator(&service).v2_token.clone();
    let [first, second, third] = ["first-token-of-c1", "second-token-of-c1", "third-token-of-c1"];
    changed(&gateway, "POST /api/clients", json!({"name": "c1", "token": first, "side": "v2"})).await;
    changed(&gateway, "POST /api/clients/c1/rotate", json!({"token": second, "grace_seconds": 1})).await;
    eventually("the grace is over", async || both(&gateway, first).await == [401, 401]).await;
    changed(&gateway, "POST /api/clients/c1/rotate", json!({"token": third})).await;
    changed(&gateway, "POST /api/clients/c1/revoke", json!({})).await;
    changed(&gateway, "POST /api/clients/administrator/revoke", json!({})).await;
    let gone = [first, second, third, &of_service];
    for token in gone {
        is_refused(&gateway, &service, token, case).await;
    }
    // Tokens of clients that are not enrolled are still judged by the old service.
    let of_stranger = status(&gateway, "of-a-stranger-of-both", "GET /v2/never/heard", "").await;
    assert_eq!(received(&service, "/v2/never").await.len(), 1, "{case}: {of_stranger}");

    let beside = dual.opened_store().await;
    beside.sweep().await.expect("swept");
    beside.close().await;
    drop(gateway);
    let gateway = dual.start().await;
    for token in gone {
        is_refused(&gateway, &service, token, &format!("{case}, swept and restarted")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_no_phase_does_the_old_service_see_a_token_that_was_rotated_or_revoked() {
    for unknown in UNKNOWN {
        for phase in PHASES {
            no_retired_token_reaches_the_old_service(None, unknown, phase).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_a_token_that_the_configuration_has_for_a_client_that_was_revoked() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let front = "fronts: { /v2: { speaks: v2, backend: v3, unknown: forward_all } }\n";
    dual.configure(&service, Upstreams::of(&service), &["administrator"], front);
    let gateway = dual.started().await;
    changed(&gateway, "POST /api/clients/administrator/revoke", json!({})).await;
    drop(gateway);
    let (of_service, new) = (administrator(&service).v2_token.clone(), "another-token-of-administrator");
    let text = std::fs::read_to_string(dual.file()).expect("it was written");
    std::fs::write(dual.file(), text.replace(&of_service, new)).expect("it is written");
    let gateway = dual.start().await;
    for token in [new, &of_service] {
        is_refused(&gateway, &service, token, "configured anew").await;
    }
    // A client that is taken back is known by it.
    changed(&gateway, "POST /api/clients/administrator/restore", json!({})).await;
    changed(&gateway, "POST /api/reload", json!({})).await;
    // The store has the token a moment before the data path does.
    eventually("the reload gives it the token", async || {
        status(&gateway, new, "GET /v2/agents", "").await != 401
    })
    .await;
    is_refused(&gateway, &service, &of_service, "restored").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_with_a_shared_store() {
    let Some(store) = postgres::database() else { return };
    no_retired_token_reaches_the_old_service(Some(store), "forward_all", "legacy").await;
}
