//! Requests with effects in the dual run, through the real binary: the planned calls to the other
//! side, and the state of both sides afterwards. In no case does a write reach the second side.

use crate::support::dual::{Dual, Running, Upstreams, administrator, ask, control, received, started};
use crate::support::raw::{Act, Upstream, answer, exchange};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use switchback_gateway::telemetry::metrics as names;
use switchback_sandbox::{Options, Sandbox};
use tokio::net::TcpListener;

const READ_BACK: &str = "phases: { default: shadow }\nshadow: { noise: 0, timeout: 2s, read_back: 1 }\n";
const PLANNED: &str = "phases: { default: shadow }\nshadow: { noise: 0, timeout: 2s }\n";

const EDIT: &str = r#"{"name":"Ana","phone":"5511988887777"}"#;

fn read_back(counts: &Value) -> (u64, u64) {
    let count = |name: &str| counts[name].as_u64().unwrap_or(0);
    (count("read_back"), count("read_back_different"))
}

/// Method and path below the version, of the requests that the sandbox received for one version.
async fn lines(service: &Sandbox, version: &str) -> Vec<String> {
    let entries = received(service, version).await;
    let text = |entry: &Value, name: &str| entry[name].as_str().expect("a text").to_owned();
    entries.iter().map(|entry| format!("{} {}", text(entry, "method"), text(entry, "path"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_write_has_changed_is_looked_at_on_both_sides_and_found_where_they_show_it_otherwise() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let (dual, gateway) = started(&service, Upstreams::of(&service), READ_BACK).await;
    let (operation, reading) = ("PUT /contacts/{id}", "GET /contacts/{id}");
    assert_eq!(ask(&gateway, &service, "PUT /v2/contacts/1001", EDIT).await.status, 204);
    let report = gateway.reported_when(operation, |counts| read_back(counts).0 == 1).await;
    assert_eq!((read_back(&report["counts"]), &report["top"]), ((1, 0), &json!([])), "{report}");

    let rule = json!({"side": "v3", "path": "/contacts/{id}", "of": 1001, "field": "$.phone", "change": {"set": "0"}});
    control(&service, "POST differences", rule).await;
    assert_eq!(ask(&gateway, &service, "PUT /v2/contacts/1001", EDIT).await.status, 204);
    let report = gateway.reported_when(operation, |counts| read_back(counts).0 == 2).await;
    assert_eq!(read_back(&report["counts"]), (2, 1), "{report}");
    let top = &report["top"][0];
    assert_eq!(
        (&top["pattern"], &top["kind"], &top["read_back"], &top["cause"]["by"]),
        (&json!("$.phone"), &json!("value"), &json!(reading), &json!("copied")),
    );
    let line = top["cause"]["line"].as_str().expect("a line of the mapping").to_owned();
    assert!(line.starts_with("contacts.map.yaml:"), "{line}");
    assert_eq!(report["counts"]["different"], 0, "answers are counted apart: {report}");

    let records = gateway.exported().await;
    let found: Vec<_> = records.iter().filter(|record| record["kind"] == "read_back").collect();
    assert_eq!(found.len(), 1, "{records:?}");
    assert_eq!(
        (&found[0]["operation"], &found[0]["target"], &found[0]["read_back"]),
        (&json!(operation), &json!("/contacts/1001"), &json!(reading))
    );
    let (code, said, _) = dual.cli(&["diff", "report"]).await;
    for words in [
        "read back 2, of these different 1".to_owned(),
        format!("value $.phone (read back by {reading}) in 1 call, copied by {line}"),
    ] {
        assert!(said.contains(&words), "{words}\n{said}");
    }
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(gateway.counted(names::SHADOW_COMPARED, &[("result", "read_back")]).await, 1);
    assert_eq!(gateway.counted(names::SHADOW_COMPARED, &[("result", "read_back_different")]).await, 1);
    let v3 = lines(&service, "/v3/").await;
    assert!(v3.len() >= 2 && v3.iter().all(|line| line == "GET /v3/contacts/1001"), "{v3:?}");
    let writes = lines(&service, "/v2/").await.into_iter().filter(|line| !line.starts_with("GET "));
    assert_eq!(writes.count(), 2, "each effect was made once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_of_what_was_made_is_in_the_answer_and_what_was_not_done_is_not_read_back() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let (_dual, gateway) = started(&service, Upstreams::of(&service), READ_BACK).await;
    let contact = r#"{"name":"Bia","phone":"5511977776666","email":"bia@example.com"}"#;
    let made = ask(&gateway, &service, "POST /v2/contacts", contact).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let id = serde_json::from_slice::<Value>(&made.body).expect("JSON")[0]["id"].to_string();
    let report = gateway.reported_when("POST /contacts", |counts| read_back(counts).0 == 1).await;
    assert_eq!(read_back(&report["counts"]), (1, 0), "{report}");
    let path = format!("GET /v3/contacts/{}", id.trim_matches('"'));
    assert_eq!(lines(&service, "/v3/").await, [path]);

    let message = r#"{"text":"Hello","isInternal":false}"#;
    assert_eq!(ask(&gateway, &service, "POST /v2/chats/1/messages", message).await.status, 201);
    let list = gateway.reported_when("POST /chats/{id}/messages", |counts| read_back(counts).0 == 1).await;
    assert_eq!(read_back(&list["counts"]), (1, 0), "{list}");

    assert_eq!(ask(&gateway, &service, "PUT /v2/contacts/1001", "{}").await.status, 400);
    assert_eq!(ask(&gateway, &service, "POST /v2/chats/1/tags", r#"{"tags":"vip"}"#).await.status / 100, 2);
    let refused = |counts: &Value| counts["skipped"]["not_accepted"] == 1;
    let report = gateway.reported_when("PUT /contacts/{id}", refused).await;
    assert_eq!(read_back(&report["counts"]).0, 0, "nothing was done: {report}");
    let planned = |counts: &Value| counts["planned"] == 1;
    let report = gateway.reported_when("POST /chats/{id}/tags", planned).await;
    assert_eq!(read_back(&report["counts"]).0, 0, "nothing is declared: {report}");
    assert_eq!(gateway.counted(names::SHADOW_DROPPED, &[]).await, 1);
}

const CANARY: &str = "phases: { default: { phase: canary, share: 1 } }\n\
    shadow: { noise: 0, timeout: 2s, read_back: 1 }\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_effect_of_a_write_that_the_new_version_did_is_read_back() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let operation = "PUT /contacts/{id}";
    let edited = async |gateway: &Running, service: &Sandbox| {
        let answer = ask(gateway, service, "PUT /v2/contacts/1001", EDIT).await;
        assert_eq!(answer.status, 204, "{}", answer.text());
    };
    // A new version that answers correctly but performs no effect.
    let account = administrator(&service);
    let head = format!(
        "GET /v3/contacts/1001 HTTP/1.1\r\nhost: v3\r\nauthorization: Bearer {}\r\n\r\n",
        account.access_token
    );
    let now = exchange(service.address(), head).await.expect("an answer").text();
    let idle = Upstream::answering(move |_, seen| match seen.line().starts_with("GET") {
        true => Act::json(200, &now),
        false => done(),
    })
    .await;
    let upstreams = Upstreams { v2: service.address(), v3: idle.address };
    let (dual, gateway) = started(&service, upstreams, CANARY).await;
    edited(&gateway, &service).await;
    let report = gateway.reported_when(operation, |counts| read_back(counts).0 == 1).await;
    assert_eq!(read_back(&report["counts"]), (1, 1), "{report}");
    let top = &report["top"][0];
    assert_eq!((&top["pattern"], &top["cause"]["by"]), (&json!("$.name"), &json!("made")), "{report}");
    let (code, said, _) = dual.cli(&["diff", "report"]).await;
    assert!(code == Some(1) && said.contains("read back 1, of these different 1"), "{code:?}: {said}");

    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let (_dual, gateway) = started(&service, Upstreams::of(&service), CANARY).await;
    edited(&gateway, &service).await;
    let report = gateway.reported_when(operation, |counts| read_back(counts).0 == 1).await;
    assert_eq!((read_back(&report["counts"]), &report["top"]), ((1, 0), &json!([])), "{report}");
    let rule = json!({"side": "v3", "path": "/contacts/{id}", "of": 1001, "field": "$.phone", "change": {"set": "0"}});
    control(&service, "POST differences", rule).await;
    edited(&gateway, &service).await;
    let report = gateway.reported_when(operation, |counts| read_back(counts).0 == 2).await;
    assert_eq!(read_back(&report["counts"]), (2, 1), "{report}");
    let v2 = lines(&service, "/v2/").await;
    assert!(v2.iter().all(|line| line == "GET /v2/contacts/1001"), "no effect is made twice: {v2:?}");
}

/// The read after a write with the answers of both services, and its result: effects read back,
/// different effects, and comparisons skipped as unreadable.
async fn read_after_a_write(reading: Act) -> ((u64, u64), u64, Value) {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let now = r#"{"id":"1001","name":"Old","email":null,"phone":null,"mobile":null,"address":null,"city":null,"district":null,"state":null,"obs":null}"#;
    let written = Arc::new(AtomicBool::new(false));
    let (is_written, after) = (Arc::clone(&written), reading.clone());
    let new = Upstream::answering(move |_, seen| match seen.line().starts_with("GET") {
        true if is_written.load(SeqCst) => after.clone(),
        true => Act::json(200, now),
        false => {
            is_written.store(true, SeqCst);
            done()
        }
    })
    .await;
    let old = Upstream::answering(move |_, _| reading.clone()).await;
    let upstreams = Upstreams { v2: old.address, v3: new.address };
    let (_dual, gateway) = started(&service, upstreams, CANARY).await;
    assert_eq!(ask(&gateway, &service, "PUT /v2/contacts/1001", EDIT).await.status, 204);
    let is_done =
        |counts: &Value| read_back(counts).0 + counts["skipped"]["unreadable"].as_u64().unwrap_or(0) == 1;
    let report = gateway.reported_when("PUT /contacts/{id}", is_done).await;
    let unreadable = report["counts"]["skipped"]["unreadable"].as_u64().unwrap_or(0);
    (read_back(&report["counts"]), unreadable, report["top"][0].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_reading_does_not_show_it_is_never_counted_as_right() {
    // Both services answer that the written record does not exist.
    let (counts, unreadable, top) = read_after_a_write(Act::json(404, r#"{"reason":"no"}"#)).await;
    assert_eq!((counts, unreadable, &top["kind"]), ((1, 1), 0, &json!("status")), "{top}");
    // Both refuse the read, so the effect is unknown.
    let (counts, unreadable, top) = read_after_a_write(Act::json(403, r#"{"reason":"no"}"#)).await;
    assert_eq!((counts, unreadable), ((0, 0), 1), "{top}");
    let (counts, _, top) = read_after_a_write(Act::json(200, "null")).await;
    assert_eq!(counts, (1, 1), "{top}");
}

/// The old version is no longer configured. The effect of the new one is still read back, and
/// compared with the request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_old_version_is_gone_the_reading_is_compared_with_the_request() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let more = "phases: { default: { phase: translated, check: 1 } }\nshadow: { noise: 0, timeout: 2s, read_back: 1 }\n";
    let account = administrator(&service);
    let head = format!(
        "GET /v3/contacts/1001 HTTP/1.1\r\nhost: v3\r\nauthorization: Bearer {}\r\n\r\n",
        account.access_token
    );
    let now = exchange(service.address(), head).await.expect("an answer").text();
    let idle = Upstream::answering(move |_, seen| match seen.line().starts_with("GET") {
        true => Act::json(200, &now),
        false => done(),
    })
    .await;
    for (v3, wrong) in [(idle.address, 1), (service.address(), 0)] {
        let service = Sandbox::start(Options::default()).await.expect("a loopback address");
        let v3 = if wrong == 0 { service.address() } else { v3 };
        let upstreams = Upstreams { v2: service.address(), v3 };
        let dual = Dual::new();
        dual.configure(&service, upstreams, &["administrator"], more);
        let text = std::fs::read_to_string(dual.file()).expect("it was written");
        let without = text.replace(&format!(", v2: {{ url: 'http://{}/v2' }}", service.address()), "");
        assert_ne!(without, text);
        std::fs::write(dual.file(), without).expect("it is written");
        let gateway = dual.started().await;
        assert_eq!(ask(&gateway, &service, "GET /v2/contacts/1001", "").await.status, 200);
        assert_eq!(ask(&gateway, &service, "PUT /v2/contacts/1001", EDIT).await.status, 204);
        let report = gateway.reported_when("PUT /contacts/{id}", |counts| read_back(counts).0 == 1).await;
        assert_eq!(read_back(&report["counts"]), (1, wrong), "{report}");
        assert_eq!(gateway.counted(names::SHADOW_DROPPED, &[]).await, 0, "readings have no other side");
        assert_eq!(lines(&service, "/v2/").await, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reading_that_the_pack_names_shows_what_was_written() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let (_dual, gateway) = started(&service, Upstreams::of(&service), CANARY).await;
    let agent = ask(&gateway, &service, "GET /v2/agents/203", "").await;
    let agent: Value = serde_json::from_slice(&agent.body).expect("JSON");
    let writes = [
        (
            "POST /v2/contacts",
            "POST /contacts",
            r#"{"name":"Bia","phone":"5511977776666","email":"b@example.com"}"#.to_owned(),
        ),
        (
            "PUT /v2/contacts/1001",
            "PUT /contacts/{id}",
            r#"{"name":"Ana","phone":"5511977776666","mobile":"5511977775555"}"#.to_owned(),
        ),
        ("PUT /v2/agents/203", "PUT /agents/{id}", json!({"type": agent["type"]}).to_string()),
    ];
    for (line, operation, body) in writes {
        let answer = ask(&gateway, &service, line, &body).await;
        assert_eq!(answer.status / 100, 2, "{line}: {}", answer.text());
        let report = gateway.reported_when(operation, |counts| read_back(counts).0 == 1).await;
        assert_eq!((read_back(&report["counts"]), &report["top"]), ((1, 0), &json!([])), "{report}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_nobody_examined_are_counted_with_the_reason() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let canary = "phases: { default: { phase: canary, share: 1 } }\nshadow: { noise: 0 }\n";
    let (dual, gateway) = started(&service, Upstreams::of(&service), canary).await;
    assert_eq!(ask(&gateway, &service, "PUT /v2/contacts/1001", EDIT).await.status, 204);
    assert_eq!(ask(&gateway, &service, "PUT /v2/contacts/1001", "{}").await.status, 400);
    assert_eq!(ask(&gateway, &service, "POST /v2/chats/1/tags", r#"{"tags":"vip"}"#).await.status / 100, 2);
    let off = |counts: &Value| counts["not_read_back"] == json!({"off": 1});
    gateway.reported_when("PUT /contacts/{id}", off).await;
    let undeclared = |counts: &Value| counts["not_read_back"] == json!({"undeclared": 1});
    gateway.reported_when("POST /chats/{id}/tags", undeclared).await;
    let (_, said, _) = dual.cli(&["diff", "report"]).await;
    for line in [
        "no effect read back of 1 writes (1: `shadow.read_back` is 0)",
        "→ No write was examined: raise `shadow.read_back`.",
        "→ No write was examined: declare a reading for it in `compare.read_back` of the pack.",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    // Evidence of an earlier period is not rendered as evidence of the present one.
    let to = json!({"operation": "PUT /contacts/{id}", "phase": "shadow"});
    assert_eq!(gateway.admin("POST /api/phases", &to).await.0, 200);
    let (_, report) = gateway.admin("GET /api/diff", &Value::Null).await;
    let operations = report["operations"].as_array().expect("a list");
    let present: Vec<_> = operations.iter().map(|one| (&one["operation"], &one["present_phase"])).collect();
    assert!(present.contains(&(&json!("PUT /contacts/{id}"), &json!("shadow"))), "{report}");
    assert!(present.contains(&(&json!("POST /chats/{id}/tags"), &Value::Null)), "{report}");
    let (_, said, _) = dual.cli(&["diff", "report"]).await;
    assert!(said.contains("PUT /contacts/{id}  canary (an earlier period; now in shadow)"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_read_back_unless_the_operator_wants_it() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let (_dual, gateway) = started(&service, Upstreams::of(&service), PLANNED).await;
    assert_eq!(ask(&gateway, &service, "PUT /v2/contacts/1001", EDIT).await.status, 204);
    let report = gateway.reported("PUT /contacts/{id}", 1).await;
    assert_eq!(read_back(&report["counts"]), (0, 0), "{report}");
    assert_eq!(report["counts"]["not_read_back"], json!({"off": 1}), "{report}");
    assert_eq!(lines(&service, "/v2/").await, ["PUT /v2/contacts/1001"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_writes_than_there_are_places_for_are_not_read_back_and_counted() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let more =
        "phases: { default: shadow }\nshadow: { noise: 0, timeout: 5s, read_back: 1, read_backs: 1 }\n";
    let (_dual, gateway) = started(&service, Upstreams::of(&service), more).await;
    let slow =
        json!({"side": "v2", "method": "GET", "path": "/contacts/{id}", "action": {"delay": {"ms": 1500}}});
    control(&service, "POST faults", slow).await;
    for _ in 0..2 {
        assert_eq!(ask(&gateway, &service, "PUT /v2/contacts/1001", EDIT).await.status, 204);
    }
    let report = gateway.reported_when("PUT /contacts/{id}", |counts| read_back(counts).0 == 1).await;
    assert_eq!(
        (&report["counts"]["dropped"], &report["counts"]["planned"]),
        (&json!(1), &json!(2)),
        "{report}"
    );
    assert_eq!(gateway.counted(names::SHADOW_DROPPED, &[("reason", "budget")]).await, 1);
}

/// An answer without a body, and one that shows an agent of this name.
fn done() -> Act {
    Act::Reply(b"HTTP/1.1 204 Done\r\n\r\n".to_vec())
}

fn agent(name: &str) -> Act {
    Act::json(200, &format!(r#"{{"id":203,"name":"{name}"}}"#))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_while_it_is_read_back_proves_nothing() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let old =
        Upstream::start(vec![done(), agent("Ana"), agent("Bia"), done(), agent("Ana"), agent("Ana")]).await;
    let upstreams = Upstreams { v2: old.address, v3: service.address() };
    let (_dual, gateway) = started(&service, upstreams, READ_BACK).await;
    assert_eq!(ask(&gateway, &service, "PUT /v2/agents/203", "{}").await.status, 204);
    gateway.settled(2).await;
    assert_eq!(gateway.counted(names::SHADOW_DROPPED, &[("reason", "moved")]).await, 1);

    assert_eq!(ask(&gateway, &service, "PUT /v2/agents/203", "{}").await.status, 204);
    let report = gateway.reported_when("PUT /agents/{id}", |counts| read_back(counts).0 == 1).await;
    assert_eq!(
        read_back(&report["counts"]),
        (1, 1),
        "now it stood still, and v3 shows another agent: {report}"
    );
    let heads: Vec<String> = old.seen().iter().map(|seen| seen.head.to_ascii_lowercase()).collect();
    let readings: Vec<_> = heads.iter().filter(|head| head.starts_with("get ")).collect();
    assert_eq!(readings.len(), 4);
    assert!(readings.iter().all(|head| !head.contains("content-length") && head.contains("x-authorization")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_goes_on_behind_its_readings_and_none_of_its_writes_is_made() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    // The old service performs no effect, so the plans find the state unchanged.
    let said =
        |status: u16, body: &str| Act::Reply(answer(status, "content-type: application/json\r\n", body));
    let old = Upstream::start(vec![done(), said(201, ""), said(201, r#"[{"id":1}]"#), said(204, "")]).await;
    let upstreams = Upstreams { v2: old.address, v3: service.address() };
    let (_dual, gateway) = started(&service, upstreams, PLANNED).await;
    let contact = r#"{"name":"Bia","phone":"5511977776666","email":"bia@example.com"}"#;
    let writes = [
        ("PUT /v2/contacts/1001", EDIT),
        ("POST /v2/chats/1/situation", r#"{"situation":"wait_for_chat"}"#),
        ("POST /v2/contacts", contact),
        ("PUT /v2/contacts/999999", EDIT),
    ];
    for ((line, body), asked) in writes.into_iter().zip(1..) {
        assert_eq!(ask(&gateway, &service, line, body).await.status / 100, 2, "{line}");
        // One after another, because they are identified by their order.
        gateway.settled(asked).await;
    }
    gateway.reported("PUT /contacts/{id}", 2).await;
    let records = gateway.exported().await;
    let planned = |target: &str| {
        let found = records.iter().find(|record| record["target"] == target);
        found.unwrap_or_else(|| panic!("no record of {target}: {records:?}"))["planned"].clone()
    };
    let calls = |planned: &Value| -> Vec<Value> {
        let calls = planned["calls"].as_array().expect("a list");
        calls.iter().map(|call| call["operation"].clone()).collect()
    };
    let edit = planned("/contacts/1001");
    assert_eq!(
        (calls(&edit), &edit["readings"], &edit["is_all"]),
        (vec![json!("PUT /contacts/{id}")], &json!(1), &json!(true))
    );
    assert_eq!(edit["calls"][0]["target"], "/contacts/1001");
    let queued = planned("/chats/1/situation");
    assert_eq!((calls(&queued), &queued["is_all"]), (vec![json!("PUT /chats/{id}/queue")], &json!(true)));
    let made = planned("/contacts");
    assert_eq!((calls(&made), &made["is_all"]), (vec![json!("POST /contacts")], &json!(false)), "{made}");
    assert_eq!(made["ends"], "what follows depends on the answer to the last call");
    // The contact does not exist: no call follows, and the read after the effect is not a finding.
    let none = planned("/contacts/999999");
    assert_eq!(
        (calls(&none), &none["readings"], &none["status"]),
        (Vec::new(), &json!(1), &json!(404)),
        "{none}"
    );
    assert_eq!(
        gateway.counted(names::SHADOW_COMPARED, &[("result", "planned_wrong")]).await,
        0,
        "{records:?}"
    );
    let v3 = lines(&service, "/v3/").await;
    assert_eq!(v3, ["GET /v3/contacts/1001", "GET /v3/chats/1", "GET /v3/contacts/999999"]);
}

async fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("it is bound")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_whose_reading_nobody_answers_says_so_and_is_no_finding() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let upstreams = Upstreams { v2: service.address(), v3: nobody().await };
    let (_dual, gateway) = started(&service, upstreams, PLANNED).await;
    assert_eq!(ask(&gateway, &service, "PUT /v2/contacts/1001", EDIT).await.status, 204);
    gateway.reported_when("PUT /contacts/{id}", |counts| counts["candidate_unanswered"] == 1).await;
    let records = gateway.exported().await;
    let planned = &records[0]["planned"];
    assert_eq!((&planned["calls"], &planned["is_all"]), (&json!([]), &json!(false)), "{planned}");
    assert!(planned["ends"].as_str().is_some_and(|why| why.contains("no connection")), "{planned}");
    assert_eq!(gateway.counted(names::SHADOW_COMPARED, &[]).await, 0);
    assert_eq!(gateway.counted(names::SHADOW_DROPPED, &[("reason", "candidate_failed")]).await, 1);
}
