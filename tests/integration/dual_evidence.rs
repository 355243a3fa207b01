//! Evidence in the dual run, through the real binary: calls without an answer, data that changes
//! between the reads, plans of writes; and the restart of counting.

use crate::support::dual::{
    Dual, Running, Upstreams, administrator, ask, control, eventually, received, started,
};
use crate::support::raw::{Act, Client, Upstream, exchange};
use crate::support::studio::{markup, texts};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use switchback_gateway::telemetry::metrics as names;
use switchback_sandbox::{Options, Sandbox};

const SHADOW: &str = "phases: { default: shadow }\nshadow: { noise: 0, timeout: 2s }\n";
const CANARY: &str = "phases: { default: { phase: canary, share: 1 } }\nshadow: { noise: 0, timeout: 2s }\n";
const CONTACT: &str = "GET /contacts/{id}";
const EDIT: &str = r#"{"name":"Ana","phone":"5511988887777"}"#;

fn count(counts: &Value, name: &str) -> u64 {
    counts[name].as_u64().unwrap_or(0)
}

/// Disturbs calls of one side until further notice, or a number of them.
async fn spoil(service: &Sandbox, side: &str, path: &str, times: Option<u64>, action: Value) {
    control(service, "DELETE faults", Value::Null).await;
    let mut rule = json!({"side": side, "method": "GET", "path": path, "action": action});
    if let Some(times) = times {
        rule["count"] = times.into();
    }
    control(service, "POST faults", rule).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_got_no_answer_proves_nothing_of_the_mapping() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let (dual, gateway) = started(&service, Upstreams::of(&service), SHADOW).await;
    let path = "/contacts/{id}";
    let asked = async || assert_eq!(ask(&gateway, &service, "GET /v2/contacts/1001", "").await.status, 200);

    spoil(&service, "v3", path, Some(1), json!({"reset": {}})).await;
    asked().await;
    let report = gateway.reported_when(CONTACT, |counts| count(counts, "equal") == 1).await;
    assert_eq!(report["counts"]["candidate_unanswered"], 0, "asked once more: {report}");

    let without = [
        json!({"reset": {}}),
        json!({"reset": {"when": "after"}}),
        json!({"truncate": {"bytes": 9}}),
        json!({"delay": {"ms": 3_000}}),
    ];
    for (action, times) in without.into_iter().zip(1..) {
        spoil(&service, "v3", path, None, action.clone()).await;
        asked().await;
        let unanswered = |counts: &Value| count(counts, "candidate_unanswered") == times;
        let report = gateway.reported_when(CONTACT, unanswered).await;
        assert_eq!(
            (&report["counts"]["different"], &report["top"]),
            (&json!(0), &json!([])),
            "{action}: {report}"
        );
    }
    let (_, said, _) = dual.cli(&["diff", "report"]).await;
    assert!(said.contains("without an answer 0 of the reference and 4 of the candidate"), "{said}");

    // An answer that arrived but is unusable counts as an answer.
    spoil(&service, "v3", path, None, json!({"invalid_json": {}})).await;
    asked().await;
    gateway.reported_when(CONTACT, |counts| count(counts, "different") == 1).await;
    // So does a permanent failure; after a transient one, the call is repeated.
    spoil(&service, "v3", path, Some(1), json!({"status": {"code": 503}})).await;
    asked().await;
    gateway.reported_when(CONTACT, |counts| count(counts, "equal") == 2).await;
    spoil(&service, "v3", path, None, json!({"status": {"code": 503}})).await;
    asked().await;
    gateway.reported_when(CONTACT, |counts| count(counts, "different") == 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_does_one_in_a_canary_whichever_side_gave_none() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let (_dual, gateway) = started(&service, Upstreams::of(&service), CANARY).await;
    let path = "/contacts/{id}";
    spoil(&service, "v2", path, Some(1), json!({"reset": {}})).await;
    assert_eq!(ask(&gateway, &service, "GET /v2/contacts/1001", "").await.status, 200);
    gateway.reported_when(CONTACT, |counts| count(counts, "equal") == 1).await;
    spoil(&service, "v2", path, None, json!({"reset": {}})).await;
    assert_eq!(ask(&gateway, &service, "GET /v2/contacts/1001", "").await.status, 200);
    gateway.reported_when(CONTACT, |counts| count(counts, "reference_unanswered") == 1).await;

    spoil(&service, "v3", path, None, json!({"reset": {}})).await;
    assert_eq!(ask(&gateway, &service, "GET /v2/contacts/1001", "").await.status, 502);
    let report = gateway.reported_when(CONTACT, |counts| count(counts, "candidate_unanswered") == 1).await;
    assert_eq!(
        (&report["counts"]["different"], &report["counts"]["equal"]),
        (&json!(0), &json!(1)),
        "{report}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_changed_between_two_readings_is_looked_at_once_more() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let mut witness = Client::connect(service.address()).await;
    let request = crate::support::dual::request(administrator(&service), "GET /v2/agents/203", "", "");
    witness.send(request).await;
    let now = witness.answer().await.expect("an answer").text();
    let of = |name: &str| {
        let mut agent: Value = serde_json::from_str(&now).expect("JSON");
        agent["name"] = name.into();
        Act::json(200, &agent.to_string())
    };
    // The old service before and after another client wrote; then one that is stable; then one that
    // changes constantly.
    let script = vec![of("Old"), Act::json(200, &now), of("Old"), of("Old"), of("A"), of("B")];
    let old = Upstream::start(script).await;
    let upstreams = Upstreams { v2: old.address, v3: service.address() };
    let (_dual, gateway) = started(&service, upstreams, SHADOW).await;
    let operation = "GET /agents/{id}";
    let asked = async || assert_eq!(ask(&gateway, &service, "GET /v2/agents/203", "").await.status, 200);
    asked().await;
    let report = gateway.reported_when(operation, |counts| count(counts, "equal") == 1).await;
    assert_eq!(report["counts"]["different"], 0, "{report}");
    asked().await;
    let report = gateway.reported_when(operation, |counts| count(counts, "different") == 1).await;
    assert_eq!(report["top"][0]["pattern"], "$.name", "{report}");
    asked().await;
    gateway.reported_when(operation, |counts| count(counts, "dropped") == 1).await;
    assert_eq!(gateway.counted(names::SHADOW_DROPPED, &[("reason", "moved")]).await, 1);
    assert_eq!(old.seen().len(), 6, "no difference is looked at for ever");
}

/// An answer of v3 to a reading of the contact with another name than the service has.
fn wrong_contact() -> Value {
    json!({"status": {"code": 200, "body": {"id": 1001, "name": "Somebody else"}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_answer_of_a_canary_that_is_not_repeated_is_unsettled_and_not_equal() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let (dual, gateway) = started(&service, Upstreams::of(&service), CANARY).await;
    let asked = async || ask(&gateway, &service, "GET /v2/contacts/1001", "").await;
    spoil(&service, "v3", "/contacts/{id}", Some(1), wrong_contact()).await;
    assert!(asked().await.text().contains("Somebody else"), "the client got the wrong answer");
    let report = gateway.reported_when(CONTACT, |counts| count(counts, "unsettled") == 1).await;
    assert_eq!(
        (&report["counts"]["equal"], &report["counts"]["different"]),
        (&json!(0), &json!(0)),
        "{report}"
    );
    assert_eq!(report["top"][0]["is_unsettled"], true, "{report}");
    assert_eq!(gateway.counted(names::SHADOW_COMPARED, &[("result", "unsettled")]).await, 1);
    let records = gateway.exported().await;
    assert_eq!(records[0]["kind"], "unsettled", "{records:?}");
    let (_, said, _) = dual.cli(&["diff", "report"]).await;
    assert!(
        said.contains("unsettled 1 (at most 100.00 %)") && said.contains("(unsettled) in 1 call"),
        "{said}"
    );
    let page =
        gateway.admin_text("GET /operations/v2/GET%20%2Fcontacts%2F%7Bid%7D", &Value::Null).await.text();
    assert!(page.contains("1 differed once and did not repeat"), "{page}");

    // A repetition is different, and the one after it is equal.
    spoil(&service, "v3", "/contacts/{id}", Some(2), wrong_contact()).await;
    asked().await;
    gateway.reported_when(CONTACT, |counts| count(counts, "different") == 1).await;
    asked().await;
    let report = gateway.reported_when(CONTACT, |counts| count(counts, "equal") == 1).await;
    assert_eq!(report["counts"]["unsettled"], 1, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_of_the_client_between_the_answers_of_a_canary_is_no_difference() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let (_dual, gateway) = started(&service, Upstreams::of(&service), CANARY).await;
    let slow = json!({"delay": {"ms": 700}});
    spoil(&service, "v2", "/contacts/{id}", Some(1), slow).await;
    assert_eq!(ask(&gateway, &service, "GET /v2/contacts/1001", "").await.status, 200);
    assert_eq!(ask(&gateway, &service, "PUT /v2/contacts/1001", EDIT).await.status, 204);
    let report = gateway.reported_when(CONTACT, |counts| count(counts, "equal") == 1).await;
    assert_eq!(report["counts"]["unsettled"], 0, "{report}");
    let v2 = received(&service, "/v2/contacts").await;
    assert_eq!(v2.len(), 1, "the slow reading of the reference came after the write: {v2:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_plan_of_a_write_that_the_reference_refused_is_not_judged() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let (dual, gateway) = started(&service, Upstreams::of(&service), SHADOW).await;
    let operation = "PUT /contacts/{id}";
    for _ in 0..3 {
        assert_eq!(ask(&gateway, &service, "PUT /v2/contacts/1001", "{}").await.status, 400);
    }
    assert_eq!(ask(&gateway, &service, "PUT /v2/contacts/1001", EDIT).await.status, 204);
    let is_counted = |counts: &Value| counts["skipped"]["not_accepted"] == 3 && count(counts, "planned") == 1;
    let report = gateway.reported_when(operation, is_counted).await;
    assert_eq!((&report["counts"]["planned_wrong"], &report["top"]), (&json!(0), &json!([])), "{report}");
    assert_eq!(gateway.counted(names::SHADOW_DROPPED, &[("reason", "not_accepted")]).await, 3);
    let (_, said, _) = dual.cli(&["diff", "report"]).await;
    assert!(said.contains("not compared 3 (3: the answering side did not accept the write)"), "{said}");
    let page =
        gateway.admin_text("GET /operations/v2/PUT%20%2Fcontacts%2F%7Bid%7D", &Value::Null).await.text();
    assert!(page.contains("3: the answering side did not accept the write"), "{page}");
    assert!(!page.contains("for lack of room"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_new_version_is_timed_and_not_promoted_where_a_latency_is_demanded() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let more = "phases: { 'GET /contacts/{id}': shadow }\nshadow: { noise: 0, timeout: 5s, timed: 1 }\n\
        gate: { 'GET /contacts/{id}': { mismatch: 0.2, compared: 20, min_period: 1s, latency: { p50: 1.5x } } }\n";
    let (dual, gateway) = started(&service, Upstreams::of(&service), more).await;
    spoil(&service, "v3", "/contacts/{id}", None, json!({"delay": {"ms": 500}})).await;
    for _ in 0..60 {
        assert_eq!(ask(&gateway, &service, "GET /v2/contacts/1001", "").await.status, 200);
    }
    let mut found = Value::Null;
    eventually("all are timed", async || {
        let (_, report) = gateway.admin("GET /api/diff", &Value::Null).await;
        found = report["operations"][0].clone();
        found["timed"] == 60
    })
    .await;
    let (median, bound) =
        (&found["latency"][0], |side: &str, name: &str| found["latency"][0][side][name].as_f64());
    assert_eq!(median["name"], "p50", "{found}");
    assert!(bound("candidate", "lower_ms") >= Some(450.0), "{found}");
    // The old version has no delay; how fast it is depends on the machine.
    let reference = bound("reference", "upper_ms");
    assert!(reference.is_some() && reference < bound("candidate", "lower_ms"), "{found}");
    let (_, said, _) = dual.cli(&["diff", "report"]).await;
    assert!(said.contains("timed 60 (p50 "), "{said}");
    let mut page = String::new();
    eventually("the time in the phase is long enough", async || {
        let path = "GET /operations/v2/GET%20%2Fcontacts%2F%7Bid%7D";
        page = gateway.admin_text(path, &Value::Null).await.text();
        page.contains("stays (the new version is slower than is tolerated)")
    })
    .await;
    assert!(page.contains("60 readings of either side, by the shadow"), "{page}");
    let ratio = |of: Option<f64>, to: Option<f64>| Some(of? / to.filter(|to| *to > 0.0)?);
    let least =
        ratio(bound("candidate", "lower_ms"), bound("reference", "upper_ms")).expect("both are known");
    let ratio = match ratio(bound("candidate", "upper_ms"), bound("reference", "lower_ms")) {
        Some(most) => format!("{least:.2} to {most:.2}"),
        None => format!("at least {least:.2}"),
    };
    let row = format!("Latency at p50, times that of the reference≤ 1.5{ratio}");
    assert!(texts(markup(&page, "evidence"), "tr").contains(&row), "{row}: {page}");
    let transitions = dual.cli_json(&["phase", "transitions"]).await;
    assert_eq!(transitions, json!([]), "it is not promoted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn right_plans_of_writes_and_wrong_ones_are_counted_together_and_unread_ones_apart() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let (dual, gateway) = started(&service, Upstreams::of(&service), SHADOW).await;
    let operation = "PUT /contacts/{id}";
    let path = "/contacts/{id}";
    let edited =
        async || assert_eq!(ask(&gateway, &service, "PUT /v2/contacts/1001", EDIT).await.status, 204);
    let planned = |right_and_wrong: u64, wrong: u64, unread: u64| {
        move |counts: &Value| {
            let all = ["planned", "planned_wrong", "candidate_unanswered"].map(|name| count(counts, name));
            all == [right_and_wrong, wrong, unread]
        }
    };
    edited().await;
    gateway.reported_when(operation, planned(1, 0, 0)).await;
    for (action, unread) in [json!({"reset": {}}), json!({"status": {"code": 503}})].into_iter().zip(1..) {
        spoil(&service, "v3", path, None, action).await;
        edited().await;
        gateway.reported_when(operation, planned(1, 0, unread)).await;
    }
    // One reading that breaks off is repeated.
    spoil(&service, "v3", path, Some(1), json!({"reset": {}})).await;
    edited().await;
    gateway.reported_when(operation, planned(2, 0, 2)).await;
    // A plan that cannot use its reply is wrong.
    spoil(&service, "v3", path, None, json!({"invalid_json": {}})).await;
    edited().await;
    let report = gateway.reported_when(operation, planned(3, 1, 2)).await;
    assert_eq!(
        (&report["counts"]["different"], &report["counts"]["equal"]),
        (&json!(0), &json!(0)),
        "{report}"
    );
    let (_, said, _) = dual.cli(&["diff", "report"]).await;
    assert!(said.contains("planned 3, of these wrong 1"), "{said}");
}

/// Requests the contact until the report has these counts.
async fn asked_until(gateway: &Running, service: &Sandbox, is_so: impl Fn(&Value) -> bool) {
    eventually("the counts are right", async || {
        assert_eq!(ask(gateway, service, "GET /v2/contacts/1001", "").await.status, 200);
        let (_, report) = gateway.admin("GET /api/diff", &Value::Null).await;
        let operations = report["operations"].as_array().cloned().unwrap_or_default();
        operations.iter().any(|entry| entry["operation"] == CONTACT && is_so(&entry["counts"]))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mended_mapping_and_a_reset_of_what_was_set_begin_anew() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let pack = dual.folder.path().join("pack");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging"), &pack);
    let more = format!("mapping: {}\nreload: {{ watch: false }}\n{SHADOW}", pack.display());
    dual.configure(&service, Upstreams::of(&service), &["administrator"], &more);
    let gateway = dual.started().await;
    let is_different = |counts: &Value| count(counts, "different") >= 2;
    let is_anew = |counts: &Value| count(counts, "different") == 0 && count(counts, "equal") >= 1;
    let differ = async || {
        let rule =
            json!({"side": "v3", "path": "/contacts/{id}", "field": "$.name", "change": {"set": "Other"}});
        control(&service, "POST differences", rule).await;
        asked_until(&gateway, &service, is_different).await;
        control(&service, "DELETE differences", Value::Null).await;
    };
    differ().await;
    let reset = dual.cli_json(&["phase", "reset", CONTACT]).await;
    assert_eq!((&reset["phase"], &reset["from"]), (&json!("shadow"), &json!("configuration")));
    // No phase was set: the evidence remains, and no transition occurs.
    asked_until(&gateway, &service, |counts| is_different(counts) && count(counts, "equal") >= 1).await;
    let (code, text, _) = dual.cli(&["phase", "transitions"]).await;
    assert_eq!((code, text.as_str()), (Some(0), "No transitions.\n"));

    let file = pack.join("contacts.map.yaml");
    let text = std::fs::read_to_string(&file).expect("it is text");
    std::fs::write(&file, format!("{text}# mended\n")).expect("written");
    assert_eq!(gateway.admin("POST /api/reload", &json!({})).await.0, 202);
    asked_until(&gateway, &service, is_anew).await;

    // Undoing it is a transition too, and restarts the evidence.
    differ().await;
    dual.cli_json(&["phase", "set", CONTACT, "shadow"]).await;
    asked_until(&gateway, &service, is_anew).await;
    differ().await;
    dual.cli_json(&["phase", "reset", CONTACT]).await;
    asked_until(&gateway, &service, is_anew).await;
    let transitions = dual.cli_json(&["phase", "transitions"]).await;
    assert_eq!(transitions.as_array().map(Vec::len), Some(2), "{transitions}");
    let packs: BTreeSet<String> =
        gateway.exported().await.iter().map(|record| record["pack"].to_string()).collect();
    assert_eq!(packs.len(), 2, "lines of the mapping are lines of one pack: {packs:?}");
}

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name())).expect("an entry");
        match entry.is_dir() {
            true => copy(&entry, &to.join(name)),
            false => drop(std::fs::copy(&entry, to.join(name)).expect("a file is copied")),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_both_fronts_a_phase_is_for_the_side_that_it_names() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let fronts = "fronts: { /v2: { speaks: v2 }, /v3: { speaks: v3 } }\n";
    let written = |phases: &str| {
        let more = format!("{fronts}phases: {phases}\nshadow: {{ noise: 0 }}\n");
        dual.configure(&service, Upstreams::of(&service), &["administrator"], &more);
        let text = std::fs::read_to_string(dual.file()).expect("it was written");
        let token = &administrator(&service).v2_token;
        let modern = format!(
            "clients:\n- {{ name: modern, v3_token: modern-token-of-v3, credentials: {{ v2: '{token}' }} }}\n"
        );
        std::fs::write(dual.file(), text.replace("clients:\n", &modern)).expect("written");
    };
    written("{ 'GET /contacts/{id}': shadow }");
    let (code, _, said) = dual.cli(&["serve", "--check"]).await;
    let told = "`GET /contacts/{id}` does not say which of `v2` and `v3` is meant to be `shadow`";
    assert!(code == Some(1) && said.contains(told), "{code:?}: {said}");
    assert!(said.contains("write `v2 GET /contacts/{id}`, or `v3 GET /contacts/{id}`, or both"), "{said}");

    written("{ 'v2 GET /contacts/{id}': shadow }");
    let gateway = dual.started().await;
    assert_eq!(ask(&gateway, &service, "GET /v2/contacts/1001", "").await.status, 200);
    let head = "GET /v3/contacts/1001 HTTP/1.1\r\nhost: gateway.test\r\nauthorization: Bearer modern-token-of-v3\r\n\r\n";
    let answer = exchange(gateway.address, head.to_owned()).await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    gateway.reported_when(CONTACT, |counts| count(counts, "equal") == 1).await;
    let (_, list) = gateway.admin("GET /api/phases", &Value::Null).await;
    let phases: Vec<_> =
        list.as_array().expect("a list").iter().filter(|info| info["operation"] == CONTACT).collect();
    let shown: Vec<_> = phases.iter().map(|info| (&info["side"], &info["phase"])).collect();
    assert_eq!(shown, [(&json!("v2"), &json!("shadow")), (&json!("v3"), &json!("translated"))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_misspelt_operation_is_told_what_may_have_been_meant() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let (dual, gateway) = started(&service, Upstreams::of(&service), SHADOW).await;
    let (code, _, said) = dual.cli(&["phase", "set", "GET /chat", "translated"]).await;
    assert!(code == Some(2) && said.contains("did you mean `GET /chats`?"), "{code:?}: {said}");
    let (code, _, said) = dual.cli(&["phase", "set", "GET /chats", "translated", "--side", "v9"]).await;
    assert!(
        code == Some(2) && said.contains("no front speaks `v9`; sides that clients speak: v2"),
        "{code:?}: {said}"
    );
    let (status, answer) =
        gateway.admin("POST /api/phases/reset", &json!({"operation": "GET /contact/{id}"})).await;
    let told = answer["error"].as_str().unwrap_or_default().to_owned();
    assert!(status == 404 && told.contains("did you mean `GET /contacts/{id}`?"), "{status} {answer}");

    let (code, out, said) = dual.cli(&["diff", "export", "--operation", "GET /chat"]).await;
    assert!(code == Some(2) && out.is_empty(), "{code:?}: {out}{said}");
    assert!(said.contains("no front serves an operation `GET /chat`; did you mean `GET /chats`?"), "{said}");
    let (code, out, said) = dual.cli(&["diff", "export", "--operation", "nope"]).await;
    assert!(code == Some(2) && out.is_empty() && said.contains("`nope`"), "{code:?}: {out}{said}");
    let (code, out, said) = dual.cli(&["diff", "export", "--operation", "GET /chats"]).await;
    assert!(
        code == Some(0) && out.is_empty() && said.contains("nothing is kept of `GET /chats`"),
        "{code:?}: {said}"
    );
    let (status, answer) = gateway.admin("GET /api/diff/export?operation=GET+/chat", &Value::Null).await;
    assert_eq!(status, 404, "{answer}");
    let (status, _) = gateway.admin("GET /api/diff/export?operation=GET+/chats", &Value::Null).await;
    assert_eq!(status, 200);
}
