//! Rollouts: through the steps of a plan by evidence, back after differences, and by an operator's
//! actions, on a clock that the test controls or through the real binary.

use super::dual_gate::{configured, shown};
use crate::support::dual::{Dual, Running, Upstreams, administrator, control, eventually, request};
use crate::support::postgres;
use crate::support::raw::{self, Act, Client, Upstream, answer};
use crate::support::studio::{Session, address, section};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use switchback_gateway::clock::Clock;
use switchback_sandbox::{Account, Options, Sandbox};

const OPERATION: &str = "GET /contacts/{id}";
const LIST: &str = "GET /chats";
/// A plan without times, for operations without traffic.
const PLANS: &str = "phases: { 'GET /chats': legacy }\n\
    rollout: { careful: { steps: [{ phase: shadow, for: 1h }, { phase: canary, share: 50%, for: 1h }, translated] } }\n";

async fn call(clients: SocketAddr, account: &Account) {
    let mut client = Client::connect(clients).await;
    client.send(request(account, "GET /v2/contacts/1001", "", "")).await;
    assert_eq!(client.answer().await.expect("an answer").status, 200);
}

/// Sends requests and advances the clock until the rollout of the operation satisfies a condition.
async fn until(
    what: &str,
    (admin, clients): (SocketAddr, SocketAddr),
    clock: &Clock,
    account: &Account,
    is_so: impl Fn(&Value) -> bool,
) -> Value {
    let mut found = Value::Null;
    let working = async {
        loop {
            for _ in 0..20 {
                call(clients, account).await;
            }
            clock.advance(Duration::from_secs(30));
            tokio::time::sleep(Duration::from_millis(50)).await;
            found = shown(admin, "/api/rollouts").await[0].clone();
            if is_so(&found) {
                return;
            }
        }
    };
    let outcome = tokio::time::timeout(raw::PATIENCE * 3, working).await;
    assert!(outcome.is_ok(), "never {what}: {found} {}", shown(admin, "/api/phases/transitions").await);
    found
}

/// The history as auditors download it: pairs of the kind and the reason, oldest first.
async fn history(admin: SocketAddr) -> Vec<(String, String)> {
    let all = shown(admin, "/history/export.json").await;
    let text = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    all.as_array().expect("a list").iter().rev().map(|one| (text(one, "kind"), text(one, "why"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configured_rollout_takes_its_steps_with_time_and_evidence() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let more = "phases: { 'GET /contacts/{id}': { rollout: careful } }\nshadow: { noise: 0 }\n\
        rollout: { careful: { steps: [{ phase: shadow, for: 1m }, { phase: canary, share: 50%, for: 0s }, \
        { phase: canary, share: 1, for: 0s }, { phase: translated, check: 1, for: 1m }] } }\n\
        gate: { default: { mismatch: 0.2, compared: 20 } }\n";
    let (app, clock) = configured(&dual, &service, more).await;
    let (admin, clients) = (app.addresses().admin, app.addresses().clients);
    let account = administrator(&service);
    let done = |rollout: &Value| rollout["state"] == "completed";
    let rollout = until("completed", (admin, clients), &clock, account, done).await;
    assert_eq!(
        (&rollout["plan"], &rollout["step"], &rollout["now"]["phase"]),
        (&json!("careful"), &json!(4), &json!("translated"))
    );
    assert_eq!(rollout["steps"][1], json!({"phase": "canary", "share": 0.5, "seconds": 0.0}));
    let transitions = shown(admin, "/api/phases/transitions").await;
    let transitions: Vec<_> = transitions.as_array().expect("a list").iter().rev().collect();
    let to: Vec<_> = transitions.iter().filter_map(|one| one["to"].as_str()).collect();
    assert_eq!(
        to,
        ["canary for 0.5 of clients", "canary for 1 of clients", "translated, 1 of requests checked"]
    );
    for (one, (step, phase)) in transitions.iter().zip([(2, "canary"), (3, "canary"), (4, "translated")]) {
        let evidence = one["evidence"].as_str().expect("text");
        let expected = format!("rollout `careful`, step {step} of 4: promoted to {phase}: 0 of ");
        assert!(evidence.starts_with(&expected), "{evidence}");
        assert!(evidence.contains("differed, the true rate is between"), "{evidence}");
        assert_eq!(one["by"], "gate");
    }
    let history = history(admin).await;
    let kinds: Vec<&str> =
        history.iter().map(|(kind, _)| kind.as_str()).filter(|kind| !kind.starts_with("clients")).collect();
    let expected = ["rollout started", "transition", "transition", "transition", "rollout completed"];
    assert_eq!(kinds, expected, "{history:?}");
    app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_rollout_is_rolled_back_and_aborted_and_not_promoted_again() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let more = "phases: { 'GET /contacts/{id}': shadow }\nshadow: { noise: 0 }\n\
        rollout: { quick: { steps: [{ phase: canary, share: 1, for: 0s }, { phase: translated, check: 1 }] } }\n\
        gate: { default: { mismatch: 0.2, compared: 20, min_period: 1m, share: 1 } }\n";
    let (app, clock) = configured(&dual, &service, more).await;
    let (admin, clients) = (app.addresses().admin, app.addresses().clients);
    let account = administrator(&service);
    for action in ["start", "pause"] {
        let (status, answer) =
            post(admin, action, &json!({"operation": OPERATION, "reason": "a trial"})).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["now"]["phase"], "canary");
    }
    let rule = json!({"side": "v3", "path": "/contacts/{id}", "field": "$.name", "change": {"set": "Somebody else"}});
    control(&service, "POST differences", rule).await;
    let done = |rollout: &Value| rollout["state"] == "aborted";
    let rollout = until("aborted", (admin, clients), &clock, account, done).await;
    assert_eq!((&rollout["now"]["phase"], &rollout["waits"]), (&json!("shadow"), &json!([])));
    let reason = rollout["reason"].as_str().expect("text");
    assert!(reason.starts_with("rolled back to shadow: ") && reason.contains("differed"), "{reason}");
    let history = history(admin).await;
    let of =
        |kind: &str| history.iter().filter(|one| one.0 == kind).map(|one| one.1.clone()).collect::<Vec<_>>();
    assert_eq!(of("rollout aborted"), [format!("plan `quick`: {reason}")]);
    assert_eq!(of("rollout paused"), ["plan `quick`: a trial"]);
    // The gate has a policy and would promote the operation, and the evidence allows it now.
    control(&service, "DELETE differences", Value::Null).await;
    let equal = async || {
        let report = shown(admin, "/api/diff").await;
        report["operations"][0]["counts"]["equal"].as_u64().unwrap_or(0)
    };
    while equal().await < 100 {
        call(clients, account).await;
        clock.advance(Duration::from_secs(30));
    }
    let rollout = shown(admin, "/api/rollouts").await[0].clone();
    assert_eq!((&rollout["now"]["phase"], &rollout["state"]), (&json!("shadow"), &json!("aborted")));
    app.shutdown().await;
}

async fn post(admin: SocketAddr, action: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let mut client = Client::connect(admin).await;
    let (token, length) = (crate::support::dual::ADMIN_TOKEN, body.len());
    let head = format!(
        "POST /api/rollouts/{action} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    client.send(format!("{head}{body}")).await;
    let answer = client.answer().await.expect("the admin port answers");
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_starts_where_its_operation_is_and_an_operator_promotes_it_where_the_gate_is_closed() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let more = "phases: { 'GET /contacts/{id}': shadow, 'GET /chats': { phase: canary, share: 0.5 } }\n\
        shadow: { noise: 0 }\n\
        rollout: { slow: { steps: [{ phase: shadow, for: 1h }, { phase: canary, share: 0.5, for: 0s }, translated] } }\n\
        gate: { default: { mismatch: 0.2, compared: 20, min_period: 30d }, 'GET /chats': never }\n";
    let (app, clock) = configured(&dual, &service, more).await;
    let (admin, clients) = (app.addresses().admin, app.addresses().clients);
    let account = administrator(&service);
    let waits = |rollout: &Value| -> Vec<String> {
        let waits = rollout["waits"].as_array().expect("a list");
        waits.iter().filter_map(|wait| wait["for"].as_str()).map(str::to_owned).collect()
    };
    // Time and evidence before the rollout do not count as time in its step.
    let counts = async || shown(admin, "/api/diff").await["operations"][0]["counts"].clone();
    while counts().await["equal"].as_u64().unwrap_or(0) == 0 {
        call(clients, account).await;
    }
    clock.advance(Duration::from_secs(2 * 3600));
    let (status, started) = post(admin, "start", &json!({"operation": OPERATION})).await;
    assert_eq!(
        (status, &started["step"], &started["seconds_in_step"]),
        (200, &json!(1), &json!(0)),
        "{started}"
    );
    assert_eq!(started["waits"][0]["seconds"], 3600, "{started}");

    let (status, started) = post(admin, "start", &json!({"operation": LIST})).await;
    let now = json!({"phase": "canary", "share": 0.5});
    assert_eq!((status, &started["step"], &started["now"]), (200, &json!(2), &now), "{started}");
    assert_eq!(
        (waits(&started), shown(admin, "/api/phases/transitions").await),
        (vec!["gate".into()], json!([]))
    );
    let (status, promoted) = post(admin, "promote", &json!({"operation": LIST})).await;
    assert_eq!((status, &promoted["now"]["phase"]), (200, &json!("translated")), "{promoted}");
    let (status, aborted) = post(admin, "abort", &json!({"operation": LIST})).await;
    assert_eq!((status, &aborted["state"]), (200, &json!("aborted")), "{aborted}");
    assert_eq!(aborted["now"]["phase"], "translated", "it stays in its phase");

    // Against the evidence, a promotion is forced with a reason.
    let rule = json!({"side": "v3", "path": "/contacts/{id}", "field": "$.name", "change": {"set": "Somebody else"}});
    control(&service, "POST differences", rule).await;
    let is_against = |counts: &Value| {
        let [different, equal] = ["different", "equal"].map(|name| counts[name].as_u64().unwrap_or(0));
        different >= 40 && different > equal
    };
    while !is_against(&counts().await) {
        call(clients, account).await;
        clock.advance(Duration::from_secs(1));
    }
    for (request, part) in [
        (json!({"operation": OPERATION, "reason": "now"}), "differ"),
        (json!({"operation": OPERATION, "force": true}), "reason"),
    ] {
        let (status, refused) = post(admin, "promote", &request).await;
        let text = refused["error"].as_str().unwrap_or_default();
        assert!((400..500).contains(&status) && text.contains(part), "{status} {refused}");
    }
    let forced = json!({"operation": OPERATION, "reason": "the old service is wrong", "force": true});
    let (status, promoted) = post(admin, "promote", &forced).await;
    assert_eq!((status, &promoted["now"]["phase"]), (200, &json!("canary")), "{promoted}");
    app.shutdown().await;
}

/// The phase of an operation at a running gateway.
async fn phase_of(gateway: &Running, operation: &str) -> Value {
    let (_, all) = gateway.admin("GET /api/phases", &Value::Null).await;
    let all = all.as_array().expect("a list").iter().find(|info| info["operation"] == operation).cloned();
    all.expect("it is served")["phase"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verbs_start_pause_resume_promote_and_abort_across_a_restart() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    dual.configure(&service, Upstreams::of(&service), &["administrator"], PLANS);
    let gateway = dual.start().await;
    let refused = async |words: &[&str], reason: &str| {
        let (code, out, err) = dual.cli(words).await;
        assert_eq!(code, Some(2), "{words:?}: {out}{err}");
        assert!(err.contains(reason), "{words:?}: {err}");
    };
    refused(&["rollout", "pause", LIST], "the operation has no rollout").await;
    let misspelt = ["rollout", "start", LIST, "--plan", "carefull"];
    refused(&misspelt, "the configuration has no rollout plan `carefull`; did you mean `careful`?").await;
    refused(&["rollout", "start", "GET /agents"], "has reached the last phase of the plan `careful`").await;

    let started =
        dual.cli_json(&["rollout", "start", LIST, "--by", "Edsger", "--reason", "it is time"]).await;
    assert_eq!(
        [&started["plan"], &started["state"], &started["step"], &started["now"]["phase"], &started["reason"]],
        [&json!("careful"), &json!("running"), &json!(1), &json!("shadow"), &json!("it is time")]
    );
    let waits = started["waits"].as_array().expect("a list");
    let kinds: Vec<&str> = waits.iter().filter_map(|wait| wait["for"].as_str()).collect();
    assert_eq!(kinds, ["time", "evidence"]);
    refused(&["rollout", "start", LIST], "the rollout `careful` of the operation is running").await;
    eventually("the gateway follows", async || phase_of(&gateway, LIST).await == "shadow").await;

    assert_eq!(dual.cli_json(&["rollout", "pause", LIST]).await["state"], "paused");
    refused(&["rollout", "pause", LIST], "is paused").await;
    gateway.stop().await;
    let gateway = dual.start().await;
    let (code, out, _) = dual.cli(&["rollout", "status"]).await;
    assert_eq!(code, Some(0));
    assert!(
        out.starts_with(
            "v2 GET /chats in shadow: rollout careful, paused, step 1 of 3; waits for an operator"
        ),
        "{out}"
    );
    assert_eq!(dual.cli_json(&["rollout", "resume", LIST]).await["state"], "running");
    let promoted = dual.cli_json(&["rollout", "promote", LIST, "--reason", "few callers"]).await;
    assert_eq!((&promoted["step"], &promoted["now"]["share"]), (&json!(2), &json!(0.5)));
    eventually("the gateway follows", async || phase_of(&gateway, LIST).await == "canary").await;
    let aborted = dual.cli_json(&["rollout", "abort", LIST, "--back", "--reason", "not yet"]).await;
    assert_eq!((&aborted["state"], &aborted["now"]["phase"]), (&json!("aborted"), &json!("legacy")));
    refused(&["rollout", "resume", LIST], "is aborted").await;

    let transitions = dual.cli_json(&["phase", "transitions"]).await;
    let why: Vec<_> =
        transitions.as_array().expect("a list").iter().map(|one| one["evidence"].clone()).collect();
    assert_eq!(
        why,
        [
            "rollout `careful` aborted: not yet",
            "rollout `careful`, step 2 of 3: few callers",
            "rollout `careful`, step 1 of 3: it is time"
        ]
    );
    // A phase that an operator sets ends a rollout.
    dual.cli_json(&["rollout", "start", LIST]).await;
    dual.cli_json(&["phase", "set", LIST, "legacy"]).await;
    assert_eq!(dual.cli_json(&["rollout", "status"]).await, json!([]));
    let kinds = history(gateway.admin).await;
    let aborted = kinds.iter().filter(|one| one.0 == "rollout aborted").map(|one| one.1.as_str());
    let expected = ["plan `careful`: not yet", "plan `careful`: an operator set the phase"];
    assert_eq!(aborted.collect::<Vec<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_an_aborted_and_a_completed_rollout_have_a_notice_and_a_paused_one_needs_attention() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let receiver = Upstream::start(vec![Act::Reply(answer(200, "", "ok"))]).await;
    let dual = Dual::new();
    let more = format!(
        "{PLANS}notices: {{ receivers: {{ operations: {{ url: 'http://{}/', secret: \
         whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD }} }} }}\n",
        receiver.address
    );
    dual.configure(&service, Upstreams::of(&service), &["administrator"], &more);
    let gateway = dual.start().await;
    let attention = async |part: &str| {
        let (_, found) = gateway.admin("GET /api/attention", &Value::Null).await;
        found.to_string().contains(part)
    };
    let by = ["--by", "Ada", "--reason"];
    let act =
        async |words: &[&str]| dual.cli_json(&[&["rollout"], words, &by, &["a holiday"]].concat()).await;
    act(&["start", LIST]).await;
    act(&["pause", LIST]).await;
    receiver.received(1).await;
    eventually("it needs attention", async || attention("has a paused rollout, careful, by Ada").await).await;
    act(&["abort", LIST]).await;
    receiver.received(2).await;
    eventually("it needs none", async || !attention("rollout").await).await;
    act(&["start", LIST]).await;
    for _ in ["canary", "translated", "completed"] {
        act(&["promote", LIST]).await;
    }
    receiver.received(3).await;
    let seen = receiver.seen();
    let sent: Vec<Value> = seen.iter().map(|one| serde_json::from_slice(&one.body).expect("JSON")).collect();
    let kinds: Vec<&str> = sent.iter().filter_map(|one| one["type"].as_str()).collect();
    assert_eq!(kinds, ["rollout.paused", "rollout.aborted", "rollout.completed"]);
    let data = json!({"side": "v2", "operation": LIST, "by": "Ada (command line)", "reason": "plan `careful`: a holiday"});
    for one in &sent {
        assert_eq!(one["data"], data);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_on_one_database_take_each_step_once_and_continue_after_a_restart() {
    let Some(url) = postgres::database() else { return };
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let mut dual = Dual::new();
    dual.store = url;
    let other = dual.beside();
    let more = "phases: { 'GET /contacts/{id}': { rollout: quick } }\nshadow: { noise: 0 }\n\
        rollout: { quick: { steps: [{ phase: shadow, for: 0s }, { phase: canary, share: 1 }] } }\n\
        gate: { default: { mismatch: 0.2, compared: 20 } }\n";
    for one in [&dual, &other] {
        one.configure(&service, Upstreams::of(&service), &["administrator"], more);
    }
    let (first, second) = (dual.started().await, other.started().await);
    eventually("it is started", async || {
        second.admin("GET /api/rollouts", &Value::Null).await.1[0]["state"] == "running"
    })
    .await;
    first.stop().await;
    let first = dual.started().await;
    let done = async {
        while second.admin("GET /api/rollouts", &Value::Null).await.1[0]["state"] != "completed" {
            for gateway in [&first, &second] {
                call(gateway.address, administrator(&service)).await;
            }
        }
    };
    let outcome = tokio::time::timeout(raw::PATIENCE * 3, done).await;
    assert!(outcome.is_ok(), "{}", second.admin("GET /api/rollouts", &Value::Null).await.1);
    let kinds = history(first.admin).await;
    let kinds: Vec<&str> =
        kinds.iter().map(|(kind, _)| kind.as_str()).filter(|kind| !kind.starts_with("clients")).collect();
    assert_eq!(kinds, ["rollout started", "transition", "rollout completed"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_an_operation_has_the_steps_the_conditions_and_the_controls() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    dual.configure(&service, Upstreams::of(&service), &["administrator"], PLANS);
    let gateway = dual.start().await;
    let session = Session::open(&gateway).await;
    let here = address("operations", "v2", LIST);
    let panel = async |mark: &str| {
        let mut text = String::new();
        eventually(&format!("the panel has {mark}"), async || {
            text = section(&session.page(&gateway, &here).await, "rollout");
            text.contains(mark)
        })
        .await;
        text
    };
    panel("Review rollout").await;
    let review = session.page(&gateway, &format!("{here}/start?plan=careful")).await;
    for part in ["Start this rollout?", "The service of v2 answers all clients", "<ol class=\"steps\">"] {
        assert!(review.contains(part), "{part}: {review}");
    }
    let act = async |action: &str, fields: &[(&str, &str)]| {
        let answer = session.submit(&gateway, &format!("{here}/{action}"), fields).await;
        assert_eq!(answer.status, 303, "{action}: {}", answer.text());
        assert_eq!(answer.value("location"), format!("{here}?done={action}"));
    };
    act("start", &[("plan", "careful"), ("reason", "it is time")]).await;
    let text = panel("running").await;
    for part in [
        "by Ada",
        "it is time",
        "shadow for at least 1 h current",
        "evidence: too few comparisons",
        "time: ",
        "Pause",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = session.page(&gateway, &here).await;
    assert_eq!(page.matches("aria-current=\"step\"").count(), 1);
    act("pause", &[("reason", "a holiday")]).await;
    let text = panel("paused").await;
    assert!(text.contains("a holiday") && text.contains("Resume"), "{text}");
    act("resume", &[]).await;
    // A form that was rendered before another transition is refused.
    let stale = session.submit(&gateway, &format!("{here}/promote"), &[("version", "0")]).await;
    assert_eq!(stale.status, 422, "{}", stale.text());
    act("promote", &[]).await;
    assert_eq!(phase_of(&gateway, LIST).await, "canary");
    act("abort", &[("back", "1")]).await;
    panel("aborted").await;
    assert_eq!(phase_of(&gateway, LIST).await, "legacy");
}
