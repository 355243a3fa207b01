//! A rollout by the gate, on a clock that the test moves: from shadow to canary to translated while both sides agree, and back
//! when they do not; every move with its evidence.

use crate::support::dual::{Dual, Upstreams, control, request};
use crate::support::raw::{self, Client};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use switchback::app::{App, Start};
use switchback::config::{self, Surroundings};
use switchback_gateway::clock::Clock;
use switchback_gateway::store::seal::SealingKey;
use switchback_sandbox::{Account, Options, Sandbox};

const OPERATION: &str = "GET /contacts/{id}";

/// Asks so many times, then lets time pass until the gate has seen what came of it and moved the operation to a phase.
async fn until_moved_to(phase: &str, app: &App, clock: &Clock, admin: SocketAddr, account: &Account) {
    let clients = app.addresses().clients;
    let moving = async {
        loop {
            for _ in 0..20 {
                let mut client = Client::connect(clients).await;
                client.send(request(account, "GET /v2/contacts/1001", "", "")).await;
                assert_eq!(client.answer().await.expect("an answer").status, 200);
            }
            clock.advance(Duration::from_secs(30));
            tokio::time::sleep(Duration::from_millis(50)).await;
            if shown(admin, "/api/phases")
                .await
                .as_array()
                .expect("a list")
                .iter()
                .any(|info| info["operation"] == OPERATION && info["phase"] == phase)
            {
                return;
            }
        }
    };
    let patience = raw::PATIENCE * 3;
    if tokio::time::timeout(patience, moving).await.is_err() {
        panic!(
            "never {phase}: {} {}",
            shown(admin, "/api/diff").await,
            shown(admin, "/api/phases/moves").await
        );
    }
}

async fn shown(admin: SocketAddr, path: &str) -> Value {
    let mut client = Client::connect(admin).await;
    client
        .send(format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
            crate::support::dual::ADMIN_TOKEN
        ))
        .await;
    let answer = client.answer().await.expect("the admin port answers");
    serde_json::from_slice(&answer.body).expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_is_promoted_while_both_sides_agree_and_rolled_back_when_they_do_not() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let more = "phases: { 'GET /contacts/{id}': shadow }\nshadow: { noise: 0 }\nreload: { watch: false }\n\
        gate: { 'GET /contacts/{id}': { mismatch: 0.2, compared: 20, stay: 1m, share: 1, check: 1 } }\n";
    dual.configure(&service, Upstreams::of(&service), &["administrator"], more);
    let key = SealingKey::generate().expose().clone();
    let variable = move |name: &str| (name == "TEST_KEY").then(|| key.clone());
    let surroundings = Surroundings { variable: &variable, read_file: &|path| std::fs::read(path) };
    let config = config::load(&dual.file(), &surroundings).expect("the file is there");
    let config = config.config.expect("it is right");
    let clock = Clock::paused_at(1_767_225_600_000);
    let app = App::start(Start { config, file: None, clock: clock.clone() }).await.expect("it starts");
    let (admin, account) = (app.addresses().admin, service.credentials().account("administrator"));
    let account = account.expect("every sandbox has one");

    until_moved_to("canary", &app, &clock, admin, account).await;
    until_moved_to("translated", &app, &clock, admin, account).await;
    let rule = json!({"side": "v3", "path": "/contacts/{id}", "field": "$.name", "change": {"set": "Somebody else"}});
    control(&service, "POST differences", rule).await;
    until_moved_to("shadow", &app, &clock, admin, account).await;

    let moves = shown(admin, "/api/phases/moves").await;
    let moves = moves.as_array().expect("a list");
    let seen: Vec<_> = moves
        .iter()
        .rev()
        .map(|one| (one["from"].as_str().expect("text"), one["by"].as_str().expect("text")))
        .collect();
    assert_eq!(
        seen,
        [
            ("shadow", "gate"),
            ("canary for 1 of clients", "gate"),
            ("translated, 1 of requests checked", "gate")
        ]
    );
    for one in moves {
        let evidence = one["evidence"].as_str().expect("text");
        assert!(evidence.contains("differed, the true rate is between"), "{evidence}");
    }
    assert!(moves[0]["evidence"].as_str().is_some_and(|text| text.starts_with("rolled back to shadow")));
    app.shutdown().await;
}
