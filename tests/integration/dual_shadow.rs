//! The shadow through the real binary: its comparisons and records, that it has no effect, that no
//! candidate reaches the client, and that no secret is stored.

use crate::support::dual::{
    Dual, Running, Upstreams, administrator, ask, control, eventually, received, request,
};
use crate::support::postgres;
use crate::support::raw::{Act, Client, Upstream};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use switchback_gateway::telemetry::metrics as names;
use switchback_sandbox::{Options, Sandbox};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const SHADOW: &str = "phases: { default: shadow }\nshadow: { noise: 0, timeout: 2s }\n";
const READ_BACK: &str = "phases: { default: shadow }\nshadow: { noise: 0, timeout: 2s, read_back: 1 }\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_old_service_answers_and_what_the_new_one_says_otherwise_is_found_and_kept() {
    differences_are_found_and_kept(Dual::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_found_is_kept_in_postgresql_as_well() {
    let Some(url) = postgres::database() else { return };
    let mut dual = Dual::new();
    dual.store = url;
    differences_are_found_and_kept(dual).await;
}

async fn differences_are_found_and_kept(dual: Dual) {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    dual.configure(&service, Upstreams::of(&service), &["administrator"], SHADOW);
    let gateway = dual.started().await;
    let rule = json!({"side": "v2", "path": "/contacts/{id}", "of": 1001, "field": "$.name", "change": {"set": "Only v2"}});
    control(&service, "POST differences", rule).await;

    for line in ["GET /v2/contacts/1001", "GET /v2/contacts/1001", "GET /v2/contacts/1003"] {
        let answer = ask(&gateway, &service, line, "").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let body: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!(body["name"] == "Only v2", line.ends_with("1001"), "the client sees v2: {body}");
    }
    gateway.settled(3).await;
    let report = gateway.reported("GET /contacts/{id}", 3).await;
    assert_eq!(
        (&report["counts"]["different"], &report["counts"]["equal"]),
        (&json!(2), &json!(1)),
        "{report}"
    );
    let top = &report["top"][0];
    assert_eq!(
        (&top["pattern"], &top["kind"], &top["calls"]),
        (&json!("$.name"), &json!("value"), &json!(2))
    );
    assert_eq!(report["phase"], "shadow");
    assert_eq!(gateway.counted(names::SHADOW_FINDINGS, &[("kind", "value")]).await, 2);

    let lines = gateway.admin_text("GET /api/diff/export", &Value::Null).await.text();
    let lines = lines.split_once("\r\n\r\n").map_or(lines.as_str(), |(_, body)| body).to_owned();
    let records: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON Lines")).collect();
    assert_eq!(records.len(), 2, "{lines}");
    assert_eq!(
        (&records[0]["kind"], &records[0]["target"]),
        (&json!("difference"), &json!("/contacts/1001"))
    );

    let page = gateway.admin_text("GET /differences", &Value::Null).await.text();
    assert!(page.contains("GET /contacts/{id}") && page.contains("$.name"), "{page}");
    let (code, said, _) = dual.cli(&["diff", "report"]).await;
    assert!(
        code == Some(1) && said.contains("GET /contacts/{id}") && said.contains("$.name"),
        "above the threshold, {code:?}: {said}"
    );
    // Two of three differ: a threshold of nearly one is not exceeded, and three calls prove none.
    let (code, said, _) = dual.cli(&["diff", "report", "--mismatch", "0.9"]).await;
    assert!(code == Some(4) && said.contains("not enough evidence"), "{code:?}: {said}");
    let (code, said, _) = dual.cli(&["diff", "report", "--mismatch", "1"]).await;
    assert!(code == Some(0) && said.contains("within the threshold"), "{code:?}: {said}");
    let (code, ..) = dual.cli(&["diff", "report", "--mismatch", "twice"]).await;
    assert_eq!(code, Some(2), "wrong use");
    let (code, said, _) = dual.cli(&["diff", "report", "--help"]).await;
    assert!(code == Some(0) && said.contains("4 none is above it"), "{said}");
    let (code, exported, error) = dual.cli(&["diff", "export"]).await;
    assert_eq!((code, exported), (Some(0), lines), "{error}");

    // The counts persist after the process.
    gateway.stop().await;
    let gateway = dual.started().await;
    let report = gateway.reported("GET /contacts/{id}", 3).await;
    assert_eq!(report["counts"]["different"], 2, "{report}");

    // The evidence is against moving it on: that takes a word of its own, and a reason.
    let asked = json!({"operation": "GET /contacts/{id}", "phase": "translated"});
    let (status, refused) = gateway.admin("POST /api/phases", &asked).await;
    let said = refused["error"].as_str().unwrap_or_default().to_owned();
    assert!(status == 409 && said.contains("2 of 3 compared answers differ"), "{status} {said}");
    assert!(
        said.contains("$.name") && said.contains("contacts.map.yaml:"),
        "the line of the mapping: {said}"
    );
    let mut forced = asked.clone();
    forced["force"] = json!(true);
    let (status, refused) = gateway.admin("POST /api/phases", &forced).await;
    assert!(status == 400 && refused["error"].to_string().contains("takes a reason"), "{status} {refused}");
    let set = ["phase", "set", "GET /contacts/{id}", "canary", "--share", "0.5"];
    let (code, _, said) = dual.cli(&set).await;
    assert!(code == Some(2) && said.contains("2 of 3 compared answers differ"), "{code:?} {said}");
    let (code, _, said) = dual.cli(&[&set[..], &["--force"]].concat()).await;
    assert!(code == Some(2) && said.contains("--reason"), "{code:?} {said}");
    let (_, phases) = gateway.admin("GET /api/phases", &Value::Null).await;
    let of =
        phases.as_array().and_then(|all| all.iter().find(|one| one["operation"] == "GET /contacts/{id}"));
    assert_eq!(of.map(|one| &one["phase"]), Some(&json!("shadow")), "nothing was moved");
    forced["reason"] = json!("the old service is wrong");
    assert_eq!(gateway.admin("POST /api/phases", &forced).await.0, 200);
    let transitions = dual.cli_json(&["phase", "transitions"]).await;
    assert_eq!(transitions[0]["evidence"], "the old service is wrong");
    let answer = ask(&gateway, &service, "GET /v2/contacts/1001", "").await;
    assert!(!answer.text().contains("Only v2"), "the new service answers now");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_canary_whoever_does_not_answer_is_asked_beside() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let more = "phases: { 'GET /agents/{id}': { phase: canary, share: 1 } }\nshadow: { noise: 0 }\n";
    dual.configure(&service, Upstreams::of(&service), &["administrator"], more);
    let gateway = dual.started().await;
    let rule = json!({"side": "v2", "path": "/agents/{id}", "field": "$.name", "change": {"set": "Only v2"}});
    control(&service, "POST differences", rule).await;
    let answer = ask(&gateway, &service, "GET /v2/agents/203", "").await;
    assert!(answer.status == 200 && !answer.text().contains("Only v2"), "{}", answer.text());
    gateway.settled(1).await;
    let report = gateway.reported("GET /agents/{id}", 1).await;
    let finding = &report["top"][0]["example"];
    assert_eq!(finding["place"], "$.name", "{report}");
    // Names are not shown; how long they are is.
    assert_eq!(
        finding["reference"]["length"],
        "Only v2".len(),
        "the old service is the reference: {finding}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_side_that_contradicts_itself_is_noise_and_no_finding() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let more = "phases: { default: shadow }\nshadow: { noise: 1 }\n";
    // The old service numbers its answers: no two of them are the same.
    let old = Upstream::start(
        (0..400).map(|n| Act::json(200, &format!(r#"{{"id":203,"name":"n{n}"}}"#))).collect(),
    )
    .await;
    let upstreams = Upstreams { v2: old.address, v3: service.address() };
    dual.configure(&service, upstreams, &["administrator"], more);
    let gateway = dual.started().await;
    for _ in 0..6 {
        let twice = gateway.counted(names::SHADOW_COMPARED, &[("result", "twice")]).await;
        assert_eq!(ask(&gateway, &service, "GET /v2/agents/203", "").await.status, 200);
        eventually("the old service is asked twice", async || {
            gateway.counted(names::SHADOW_COMPARED, &[("result", "twice")]).await > twice
        })
        .await;
    }
    let learnt = gateway.counted(names::SHADOW_NOISE, &[("why", "learnt")]).await;
    assert!(learnt > 0, "what differs between two answers of one side is noise");
    gateway.stop().await;
    let gateway = dual.started().await;
    assert_eq!(ask(&gateway, &service, "GET /v2/agents/203", "").await.status, 200);
    // Both sides are compared after the one side with itself.
    gateway.settled(2).await;
    assert!(gateway.counted(names::SHADOW_NOISE, &[("why", "learnt")]).await > 0, "and stays known");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_side_says_otherwise_every_time_is_learnt_and_what_differs_beside_it_is_still_found() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let more = "phases: { default: shadow }\nshadow: { noise: 0.2 }\n";
    dual.configure(&service, Upstreams::of(&service), &["administrator"], more);
    let gateway = dual.started().await;
    for (field, change) in [("$.email", json!("renew")), ("$.name", json!({"set": "Only v2"}))] {
        let rule =
            json!({"side": "v2", "path": "/contacts/{id}", "of": 1001, "field": field, "change": change});
        control(&service, "POST differences", rule).await;
    }
    let (mut asked, mut twice) = (0, 0);
    // Noise is a difference in both of two repeated reads; one request in five is repeated.
    while twice < 3 {
        assert_eq!(ask(&gateway, &service, "GET /v2/contacts/1001", "").await.status, 200);
        asked += 1;
        assert!(asked < 500, "{asked} requests, and only {twice} of them asked twice");
        eventually("the request is compared", async || {
            let compared = gateway.counted(names::SHADOW_COMPARED, &[]).await;
            twice = gateway.counted(names::SHADOW_COMPARED, &[("result", "twice")]).await;
            compared >= asked + twice
        })
        .await;
    }
    let before = gateway.reported("GET /contacts/{id}", asked).await;
    let calls = |report: &Value, pattern: &str| {
        let top = report["top"].as_array().expect("a list").iter().find(|tally| tally["pattern"] == pattern);
        top.map_or(0, |tally| tally["calls"].as_u64().expect("a number"))
    };
    assert_eq!(calls(&before, "$.email"), 0, "what is never the same twice says nothing: {before}");

    let more = 20;
    for _ in 0..more {
        assert_eq!(ask(&gateway, &service, "GET /v2/contacts/1001", "").await.status, 200);
    }
    let after = gateway.reported("GET /contacts/{id}", asked + more).await;
    assert_eq!(calls(&after, "$.email"), calls(&before, "$.email"), "{after}");
    assert_eq!(calls(&after, "$.name"), asked + more, "{after}");
    assert!(after["counts"]["learnt_noise"].as_u64() >= Some(more), "{after}");
    let records = gateway.exported().await;
    let findings = records.last().expect("a record")["comparison"]["findings"].as_array().expect("a list");
    assert!(findings.len() == 1 && findings[0]["place"] == "$.name", "{findings:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_compared_while_the_grant_it_needs_is_still_on_its_way() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    dual.configure(&service, Upstreams::of(&service), &["administrator"], SHADOW);
    let rule = json!({"side": "oauth", "action": {"delay": {"ms": 600}}});
    control(&service, "POST faults", rule).await;
    let gateway = dual.start().await;
    assert_eq!(ask(&gateway, &service, "GET /v2/contacts/1001", "").await.status, 200);
    assert_eq!(gateway.counted(names::TOKEN_EXPIRY, &[]).await, 0, "the client did not wait for it");
    gateway.settled(1).await;
    assert_eq!(gateway.counted(names::SHADOW_DROPPED, &[]).await, 0);
    assert_eq!(gateway.counted(names::SHADOW_COMPARED, &[("result", "equal")]).await, 1);
    assert_eq!(received(&service, "/oauth/access_token").await.len(), 1, "the shadow renews nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reading_that_a_service_would_take_for_a_write_is_made_once() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    // The plans answer, and the old service, which would get the client's own fields, is called in
    // addition.
    let more = "phases: { 'GET /agents/{id}': { phase: canary, share: 1 } }\nshadow: { noise: 0 }\n";
    dual.configure(&service, Upstreams::of(&service), &["administrator"], more);
    let gateway = dual.started().await;
    let fields = "x-http-method-override: DELETE\r\n";
    let answer = gateway.ask(administrator(&service), "GET /v2/agents/203", fields, "").await;
    assert_eq!(answer.expect("an answer").status, 200);
    assert_eq!(ask(&gateway, &service, "GET /v2/agents/203", "").await.status, 200);
    gateway.settled(1).await;
    assert_eq!(received(&service, "/v2/agents/203").await.len(), 1, "for the second request alone");
}

/// One request of every operation with effects, and whether v3 can do it.
fn effects(mark: &str) -> Vec<(String, String)> {
    let message = json!({"text": mark, "isInternal": false}).to_string();
    let contact = json!({"name": mark, "phone": "5511977776666", "email": format!("{mark}@example.com")});
    let lines: [(&str, String); 13] = [
        ("POST /v2/agents", json!({"email": format!("{mark}@agents.example.com"), "type": 2}).to_string()),
        ("PUT /v2/agents/203", "{}".into()),
        ("POST /v2/contacts", contact.to_string()),
        ("PUT /v2/contacts/1001", json!({"phone": "5511988887777", "city": mark}).to_string()),
        ("DELETE /v2/contacts/1002", String::new()),
        ("POST /v2/chats/email", contact.to_string()),
        ("POST /v2/chats/1/messages", message),
        ("POST /v2/chats/1/queue", String::new()),
        ("POST /v2/chats/5/reopen", String::new()),
        ("POST /v2/chats/1/situation", r#"{"situation":"wait_for_chat"}"#.into()),
        ("POST /v2/chats/1/tags", r#"{"tags":"vip"}"#.into()),
        ("POST /v2/chats/2/flow", r#"{"flowId":51}"#.into()),
        ("POST /v2/flows/51/contact/1001/exec", r#"{"whenInChat":true,"whenInAuto":true}"#.into()),
    ];
    let mut all: Vec<_> = lines.into_iter().map(|(line, body)| (line.to_owned(), body)).collect();
    all.push(("POST /v2/chats/1/close".to_owned(), r#"{"sendFeedback":false}"#.to_owned()));
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_effect_is_made_twice_whatever_clients_do() {
    no_effect_is_made_twice(SHADOW).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_effect_is_made_twice_either_where_every_write_is_read_back() {
    let gateway_saw = no_effect_is_made_twice(READ_BACK).await;
    assert!(gateway_saw > 0, "nothing was read back");
}

/// Gives how many writes were read back.
async fn no_effect_is_made_twice(more: &str) -> u64 {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    dual.configure(&service, Upstreams::of(&service), &["administrator"], more);
    let gateway = dual.started().await;
    control(&service, "PUT requests", json!({"keep": 100_000})).await;
    let writes = writing_operations(&gateway).await;
    assert_eq!(writes.len(), effects("x").len(), "one request of every operation: {writes:?}");

    let mut asking = JoinSet::new();
    let (rounds, account) = (24_usize, administrator(&service).clone());
    for round in 0..rounds {
        for (at, (line, body)) in effects(&format!("round-{round}")).into_iter().enumerate() {
            let trace = format!("{:016x}{:016x}", round + 1, at + 1);
            let fields = format!("traceparent: 00-{trace}-00000000000000aa-00\r\n");
            let bytes = request(&account, &line, &fields, &body);
            let address = gateway.address;
            asking.spawn(async move {
                let mut client = Client::connect(address).await;
                client.send(bytes).await;
                // Every third client does not wait for its answer.
                match (round + at) % 3 {
                    0 => client.reset(),
                    _ => drop(client.answer().await),
                }
            });
        }
    }
    asking.join_all().await;
    // Every request to the old service was answered or abandoned, so the shadow has processed each.
    gateway.settled(1).await;
    eventually("the queue is empty", async || gateway.counted(names::SHADOW_WAITING, &[]).await == 0).await;

    let mut sent: BTreeMap<String, u64> = BTreeMap::new();
    let v2 = received(&service, "/v2/").await;
    assert_eq!(v2.iter().any(|entry| entry["method"] == "GET"), more == READ_BACK, "read where it is wanted");
    for entry in v2.into_iter().filter(|entry| entry["method"] != "GET") {
        *sent
            .entry(entry["headers"]["traceparent"].as_str().expect("a trace")[3..35].to_owned())
            .or_default() += 1;
    }
    assert!(sent.values().all(|count| *count == 1), "{sent:?}");
    assert!(sent.len() > rounds * 14 / 2, "{}", sent.len());
    let v3 = received(&service, "/v3/").await;
    assert!(v3.iter().all(|entry| entry["method"] == "GET"), "{v3:?}");
    let effects = control(&service, "GET effects", Value::Null).await;
    let messages: u64 = effects
        .as_array()
        .expect("a list")
        .iter()
        .filter(|effect| effect["effect"] == "message")
        .filter_map(|effect| effect["count"].as_u64())
        .sum();
    assert!(messages > 0 && messages <= rounds as u64, "{messages} messages of {rounds}");

    gateway.reported("POST /chats/{id}/messages", messages.min(8)).await;
    let planned = gateway.counted(names::SHADOW_COMPARED, &[("result", "planned")]).await;
    let wrong = gateway.counted(names::SHADOW_COMPARED, &[("result", "planned_wrong")]).await;
    let lines = gateway.admin_text("GET /api/diff/export", &Value::Null).await.text();
    assert!(planned > 0 && wrong == 0, "{planned} planned, {wrong} wrong:\n{lines}");
    assert!(
        lines.contains(r#""kind":"planned""#) && lines.contains(r#""planned":{"calls":[{"operation":"#),
        "{lines}"
    );
    let same = gateway.counted(names::SHADOW_COMPARED, &[("result", "read_back")]).await;
    same + gateway.counted(names::SHADOW_COMPARED, &[("result", "read_back_different")]).await
}

async fn writing_operations(gateway: &Running) -> Vec<String> {
    let (_, list) = gateway.admin("GET /api/phases", &Value::Null).await;
    let writes = list.as_array().expect("a list").iter().filter(|info| info["writes"] == true);
    writes.map(|info| info["operation"].as_str().expect("a name").to_owned()).collect()
}

/// Requests a page of the old service many times at once; every answer must be the old service's.
async fn clients_are_served(gateway: &Running, service: &Sandbox) {
    let account = administrator(service).clone();
    let mut witness = Client::connect(service.address()).await;
    witness.send(request(&account, "GET /v2/contacts", "", "")).await;
    let expected = witness.answer().await.expect("an answer").body;
    let mut asking = JoinSet::new();
    for _ in 0..60 {
        let (address, account) = (gateway.address, account.clone());
        asking.spawn(async move {
            let mut client = Client::connect(address).await;
            client.send(request(&account, "GET /v2/contacts", "", "")).await;
            client.answer().await.expect("an answer")
        });
    }
    for answer in asking.join_all().await {
        assert_eq!((answer.status, &answer.body), (200, &expected));
    }
    gateway.settled(60).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_that_is_dead_slow_or_endless_reaches_no_client_and_fills_no_memory() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        listener.local_addr().expect("it is bound")
    };
    let head =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n[\r\n";
    let flood = Act::Flood { head: head.to_vec(), piece: b"a\r\n{\"id\":\"1\"},\r\n".repeat(512) };
    let liar = Act::json(200, r#"[{"id":"not an id"},7,null]"#);
    // One store for all: a refresh token is good for one use.
    let dual = Dual::new();
    for (what, script) in [
        ("dead", None),
        ("silent", Some(Act::Silence)),
        ("endless", Some(flood)),
        ("resetting", Some(Act::ReplyAndReset(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n[".to_vec()))),
        ("lying", Some(liar)),
        ("refusing", Some(Act::json(401, "{}"))),
    ] {
        let candidate = match script {
            Some(act) => Some(Upstream::start(vec![act]).await),
            None => None,
        };
        let more = "phases: { default: shadow }\n\
             shadow: { noise: 0, timeout: 300ms, calls: 2, queue: 4, queue_bytes: 1MiB, body_bytes: 64KiB }\n";
        let v3 = candidate.as_ref().map_or(nobody, |upstream| upstream.address);
        let upstreams = Upstreams { v2: service.address(), v3 };
        dual.configure(&service, upstreams, &["administrator"], more);
        let gateway = dual.started().await;
        let refreshes = received(&service, "/oauth/access_token").await.len();
        clients_are_served(&gateway, &service).await;
        let dropped = gateway.counted(names::SHADOW_DROPPED, &[("reason", "queue")]).await;
        let compared = gateway.counted(names::SHADOW_COMPARED, &[]).await;
        match what {
            "silent" => assert!(dropped > 0, "{what}: nothing was dropped, {compared} compared"),
            "refusing" => {
                let reason = [("reason", "credential")];
                assert!(gateway.counted(names::SHADOW_DROPPED, &reason).await > 0, "{what}");
                let now = received(&service, "/oauth/access_token").await.len();
                assert_eq!(now, refreshes, "a 401 in the shadow refreshes nothing");
                let metrics = gateway.admin_text("GET /metrics", &Value::Null).await.text();
                let state =
                    metrics.lines().find(|line| line.contains("token_state") && line.contains("active"));
                assert!(state.is_some_and(|line| line.ends_with(" 1")), "{metrics}");
            }
            "lying" => assert!(compared > 0, "{what}"),
            _ => {
                let failed = gateway.counted(names::SHADOW_DROPPED, &[("reason", "candidate_failed")]).await;
                assert!(
                    failed > 0 && compared == 0,
                    "{what}: {failed} without an answer, {compared} compared"
                );
            }
        }
        assert!(gateway.counted(names::SHADOW_WAITING, &[]).await <= 4, "{what}");
        assert!(gateway.counted(names::SHADOW_BYTES, &[]).await <= 1 << 20, "{what}");
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn white_space_without_end_is_late_and_keeps_no_worker() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let head =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n[\r\n";
    // In the smallest possible pieces: a single piece would exceed the amount that can be read in time.
    let flood = Act::Flood { head: head.to_vec(), piece: b"1\r\n \r\n".repeat(4096) };
    let candidate = Upstream::start(vec![flood.clone(), flood, Act::json(200, "[]")]).await;
    let dual = Dual::new();
    let more = "phases: { default: shadow }\nshadow: { noise: 0, timeout: 1s, calls: 2 }\n";
    let upstreams = Upstreams { v2: service.address(), v3: candidate.address };
    dual.configure(&service, upstreams, &["administrator"], more);
    let gateway = dual.started().await;
    // Both workers are given a flood.
    for _ in 0..2 {
        assert_eq!(ask(&gateway, &service, "GET /v2/contacts", "").await.status, 200);
    }
    candidate.received(2).await;
    assert_eq!(ask(&gateway, &service, "GET /v2/contacts", "").await.status, 200);
    gateway.settled(3).await;
    candidate.closed(2).await;
    assert_eq!(candidate.seen().len(), 3, "a worker was free for the third");
    assert_eq!(gateway.counted(names::SHADOW_DROPPED, &[]).await, 2);
    assert_eq!(gateway.counted(names::SHADOW_DROPPED, &[("reason", "candidate_failed")]).await, 2);
    assert_eq!(gateway.counted(names::SHADOW_BYTES, &[]).await, 0, "nothing of it is kept");
}

/// Looks like a credential at any place.
fn planted(place: &str) -> String {
    format!("sk_live_{place}4eC39HqLyjWDarjtT1zdp7dc")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_planted_anywhere_appears_in_nothing_that_is_kept_or_shown() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    dual.configure(&service, Upstreams::of(&service), &["administrator"], READ_BACK);
    let gateway = dual.started().await;
    let places = ["header", "query", "body", "edit", "v2answer", "v3answer", "v2error", "v3error"];
    let secrets: BTreeMap<&str, String> = places.into_iter().map(|place| (place, planted(place))).collect();
    let of = |place: &str| secrets[place].as_str();
    for (side, secret) in [("v2", of("v2answer")), ("v3", of("v3answer"))] {
        let rule =
            json!({"side": side, "path": "/contacts/{id}", "field": "$.name", "change": {"set": secret}});
        control(&service, "POST differences", rule).await;
    }
    for (side, secret) in [("v2", of("v2error")), ("v3", of("v3error"))] {
        let reason = format!("no {secret}, and {}", administrator(&service).v2_token);
        let action = json!({"status": {"code": 404, "body": {"reason": reason}}});
        let rule = json!({"side": side, "method": "GET", "path": "/chats/{id}", "action": action});
        control(&service, "POST faults", rule).await;
    }
    let fields = format!("cookie: session={}\r\n", of("header"));
    let query = format!("GET /v2/contacts?page=0&api_key={}", of("query"));
    let text = json!({"text": of("body"), "isInternal": false}).to_string();
    let edit = json!({"name": "Ana", "city": of("edit")}).to_string();
    let asked = [
        ("GET /v2/contacts/1001", ""),
        (query.as_str(), ""),
        ("GET /v2/chats/1", ""),
        ("POST /v2/chats/1/messages", text.as_str()),
        ("PUT /v2/contacts/1003", edit.as_str()),
    ];
    for (line, body) in asked {
        let answer = gateway.ask(administrator(&service), line, &fields, body).await.expect("an answer");
        assert!(answer.status < 500, "{line}: {}", answer.text());
    }
    gateway.settled(asked.len() as u64).await;
    gateway.reported("POST /chats/{id}/messages", 1).await;
    gateway.reported("GET /chats/{id}", 1).await;
    let report =
        gateway.reported_when("PUT /contacts/{id}", |counts| counts["read_back_different"] == 1).await;
    assert_eq!(report["counts"]["planned"], 1, "planned and read back: {report}");

    let access: Vec<String> = received(&service, "/v3/")
        .await
        .iter()
        .filter_map(|entry| {
            entry["headers"]["authorization"].as_str()?.strip_prefix("Bearer ").map(str::to_owned)
        })
        .collect();
    assert!(!access.is_empty());
    let mut shown: Vec<(String, Vec<u8>)> = Vec::new();
    for words in [
        &["diff", "report"][..],
        &["diff", "report", "--markdown"],
        &["diff", "export"],
        &["phase", "transitions"],
    ] {
        let (_, said, error) = dual.cli(words).await;
        shown.push((words.join(" "), (said + &error).into_bytes()));
    }
    for address in ["/api/diff", "/api/diff/export", "/api/phases", "/metrics", "/"] {
        let text = gateway.admin_text(&format!("GET {address}"), &Value::Null).await.text();
        assert!(text.contains("contacts"), "{address}: {text}");
        shown.push((address.to_owned(), text.into_bytes()));
    }
    let program = gateway.program;
    program.signal("TERM");
    let (status, log) = tokio::task::spawn_blocking(|| program.ended()).await.expect("it ends");
    assert!(status.success() && log.contains("both sides differ"), "{log}");
    shown.push(("log".to_owned(), log.into_bytes()));
    for file in std::fs::read_dir(dual.folder.path()).expect("a folder") {
        let file = file.expect("a file").path();
        if file.file_name().is_some_and(|name| name != "switchback.yaml") {
            shown.push((file.display().to_string(), std::fs::read(&file).expect("it can be read")));
        }
    }
    let known = [administrator(&service).v2_token.clone(), administrator(&service).refresh_token.clone()];
    for secret in secrets.values().chain(&access).chain(&known) {
        for (name, content) in &shown {
            let found = memchr::memmem::find(content, secret.as_bytes());
            let around =
                found.map(|at| String::from_utf8_lossy(&content[at.saturating_sub(200)..at]).into_owned());
            assert!(found.is_none(), "{secret} in {name}, after {around:?}");
        }
    }
}
