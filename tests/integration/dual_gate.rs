//! A rollout by the gate, on a clock that the test controls: from shadow to canary to translated
//! while both sides agree, and back when they do not; every transition with its evidence. And one
//! through the real binary under all kinds of faults.

use crate::support::dual::{Dual, Running, Upstreams, control, eventually, request};
use crate::support::raw::{self, Client, Upstream};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use switchback::app::{RunningApp, StartOptions};
use switchback::config::{self, Environment};
use switchback_gateway::clock::Clock;
use switchback_gateway::server::Inherited;
use switchback_gateway::store::seal::SealingKey;
use switchback_gateway::telemetry::metrics as names;
use switchback_sandbox::{Account, Options, Sandbox};
use tokio::task::JoinSet;

const OPERATION: &str = "GET /contacts/{id}";

/// Sends a number of requests, then advances the clock until the gate has evaluated them and moved
/// the operation to a phase.
async fn until_moved_to(phase: &str, app: &RunningApp, clock: &Clock, admin: SocketAddr, account: &Account) {
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
            shown(admin, "/api/phases/transitions").await
        );
    }
}

pub async fn shown(admin: SocketAddr, path: &str) -> Value {
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

/// A gateway with an active gate for an operation in shadow, on a clock that the test controls.
async fn gated(dual: &Dual, service: &Sandbox, receiver: &Upstream) -> (RunningApp, Clock) {
    let more = "phases: { 'GET /contacts/{id}': shadow }\nshadow: { noise: 0 }\n\
        gate: { 'GET /contacts/{id}': { mismatch: 0.2, compared: 20, min_period: 1m, share: 1, check: 1 } }\n";
    let notices = format!(
        "notices: {{ receivers: {{ a: {{ url: 'http://{}', secret: whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD }} }} }}\n",
        receiver.address
    );
    configured(dual, service, &(more.to_owned() + &notices)).await
}

/// A receiver of notices.
async fn receiver() -> Upstream {
    Upstream::start(vec![raw::Act::Reply(raw::answer(200, "", ""))]).await
}

/// The notices that were sent, once there are so many.
async fn notices(receiver: &Upstream, clock: &Clock, count: usize) -> Vec<Value> {
    eventually("the notices are sent", async || {
        clock.advance(Duration::from_secs(1));
        receiver.seen().len() >= count
    })
    .await;
    let sent = receiver.seen();
    sent.iter().map(|one| serde_json::from_slice(&one.body).expect("JSON")).collect()
}

/// A gateway with this configuration, on a clock that the test moves.
pub async fn configured(dual: &Dual, service: &Sandbox, more: &str) -> (RunningApp, Clock) {
    let more = format!("{more}reload: {{ watch: false }}\n");
    dual.configure(service, Upstreams::of(service), &["administrator"], &more);
    let key = SealingKey::generate().expose().clone();
    let variable = move |name: &str| (name == "TEST_KEY").then(|| key.clone());
    let environment = Environment { variable: &variable, read_file: &|path| std::fs::read(path) };
    let config = config::load(&dual.file(), &environment).expect("the file is there");
    let config = config.config.expect("it is right");
    let clock = Clock::paused_at(1_767_225_600_000);
    let app = RunningApp::start(StartOptions {
        config,
        file: None,
        clock: clock.clone(),
        inherited: Inherited::default(),
    })
    .await
    .expect("it starts");
    (app, clock)
}

/// A canary of which one answer in seven is wrong, never twice in a row for the same reading.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_that_is_wrong_at_random_is_rolled_back_though_no_difference_repeats() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let (app, clock) = configured(
        &dual,
        &service,
        "phases: { 'GET /contacts/{id}': { phase: canary, share: 1 } }\nshadow: { noise: 0 }\n\
         gate: { 'GET /contacts/{id}': { mismatch: 0.05, compared: 60, min_period: 1m } }\n",
    )
    .await;
    let account = service.credentials().account("administrator").expect("every sandbox has one");
    let wrong = json!({"status": {"code": 200, "body": {"id": 1001, "name": "Somebody else"}}});
    let rule = json!({"side": "v3", "method": "GET", "path": "/contacts/{id}", "probability": 0.15, "action": wrong});
    control(&service, "POST faults", rule).await;
    let admin = app.addresses().admin;
    until_moved_to("shadow", &app, &clock, admin, account).await;
    let transitions = shown(admin, "/api/phases/transitions").await;
    let evidence = transitions[0]["evidence"].as_str().expect("text");
    assert_eq!(transitions.as_array().map(Vec::len), Some(1), "it was never promoted: {transitions}");
    assert!(evidence.starts_with("rolled back to shadow") && evidence.contains("unsettled"), "{evidence}");
    app.shutdown().await;
}

/// A browser that has signed in to the studio, as far as forms go.
struct Operator {
    http: reqwest::Client,
    base: String,
    cookie: String,
}

impl Operator {
    async fn sign_in(admin: SocketAddr) -> Operator {
        let http = crate::support::http::client();
        let mut operator = Operator { http, base: format!("http://{admin}"), cookie: String::new() };
        let answer = operator.send("/login", &format!("token={}", crate::support::dual::ADMIN_TOKEN)).await;
        let cookie = answer.headers()["set-cookie"].to_str().expect("visible characters");
        operator.cookie = cookie.split(';').next().expect("a pair").to_owned();
        operator
    }

    async fn send(&self, path: &str, form: &str) -> reqwest::Response {
        let request = self.http.post(format!("{}{path}", self.base)).header("origin", &self.base);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.header("cookie", &self.cookie).body(form.to_owned()).send().await.expect("the port answers")
    }

    /// Submits a form of a page, with its other fields.
    async fn send_from(&self, page: &str, path: &str, fields: &str) -> u16 {
        // A page waits for a busy store no longer than a person would, and then has no forms.
        let mut shown = String::new();
        for _ in 0..100 {
            let request = self.http.get(format!("{}{page}", self.base)).header("cookie", &self.cookie);
            let text = request.send().await.expect("the port answers").text().await.expect("a text");
            if let Some((_, rest)) = text.split_once("name=\"form_token\" value=\"") {
                let token = rest.split('"').next().expect("the value ends");
                return self.send(path, &format!("form_token={token}&{fields}")).await.status().as_u16();
            }
            shown = text;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the page {page} has no form: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_held_is_left_where_it_is_until_it_is_let_go() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let receiver = receiver().await;
    let (app, clock) = gated(&dual, &service, &receiver).await;
    let (admin, account) = (app.addresses().admin, service.credentials().account("administrator"));
    let account = account.expect("every sandbox has one");
    let operator = Operator::sign_in(admin).await;
    let page = "/operations/v2/GET%20%2Fcontacts%2F%7Bid%7D";
    let held = operator.send_from(page, &format!("{page}/hold"), "reason=holidays").await;
    assert_eq!(held, 303);
    let sent = notices(&receiver, &clock, 1).await;
    let expected =
        json!({"side": "v2", "operation": OPERATION, "by": "admin.token (studio)", "reason": "holidays"});
    assert_eq!((&sent[0]["type"], &sent[0]["data"]), (&json!("gate.held"), &expected));
    // More than enough evidence for a promotion, for long enough.
    let counted = async || shown(admin, "/api/diff").await["operations"][0]["counts"]["equal"].as_u64();
    let mut before = 0;
    while before < 100 {
        let mut client = Client::connect(app.addresses().clients).await;
        client.send(request(account, "GET /v2/contacts/1001", "", "")).await;
        assert_eq!(client.answer().await.expect("an answer").status, 200);
        // The clock advances with comparisons, not with requests; otherwise the operator's session would
        // expire on a slow machine.
        let now = counted().await.unwrap_or(0);
        if now > before {
            clock.advance(Duration::from_secs(30));
        }
        before = now;
    }
    let info = shown(admin, "/api/phases").await;
    let info = info.as_array().expect("a list").iter().find(|info| info["operation"] == OPERATION);
    let info = info.expect("it is served");
    assert_eq!((&info["phase"], &info["held"]["reason"]), (&json!("shadow"), &json!("holidays")));
    assert_eq!(shown(admin, "/api/phases/transitions").await, json!([]));
    assert_eq!(operator.send_from(page, &format!("{page}/release"), "").await, 303);
    until_moved_to("canary", &app, &clock, admin, account).await;
    app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_is_promoted_while_both_sides_agree_and_rolled_back_when_they_do_not() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let receiver = receiver().await;
    let (app, clock) = gated(&dual, &service, &receiver).await;
    let (admin, account) = (app.addresses().admin, service.credentials().account("administrator"));
    let account = account.expect("every sandbox has one");

    until_moved_to("canary", &app, &clock, admin, account).await;
    until_moved_to("translated", &app, &clock, admin, account).await;
    let rule = json!({"side": "v3", "path": "/contacts/{id}", "field": "$.name", "change": {"set": "Somebody else"}});
    control(&service, "POST differences", rule).await;
    until_moved_to("shadow", &app, &clock, admin, account).await;

    let transitions = shown(admin, "/api/phases/transitions").await;
    let transitions = transitions.as_array().expect("a list");
    let seen: Vec<_> = transitions
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
    for one in transitions {
        let evidence = one["evidence"].as_str().expect("text");
        assert!(evidence.contains("differed, the true rate is between"), "{evidence}");
    }
    assert!(
        transitions[0]["evidence"].as_str().is_some_and(|text| text.starts_with("rolled back to shadow"))
    );
    let sent = notices(&receiver, &clock, 3).await;
    let facts: Vec<_> = sent.iter().map(|one| (one["type"].as_str(), one["data"]["to"].as_str())).collect();
    assert_eq!(
        facts,
        [
            (Some("phase.changed"), Some("canary for 1 of clients")),
            (Some("phase.changed"), Some("translated, 1 of requests checked")),
            (Some("gate.rolled_back"), Some("shadow"))
        ]
    );
    assert_eq!(sent[2]["data"]["evidence"], transitions[0]["evidence"]);
    app.shutdown().await;
}

/// Where the operation was moved to so far, oldest first.
async fn transitions(gateway: &Running) -> Vec<String> {
    let (status, transitions) = gateway.admin("GET /api/phases/transitions", &Value::Null).await;
    assert_eq!(status, 200, "{transitions}");
    let to = |one: &Value| one["to"].as_str().expect("text").to_owned();
    transitions
        .as_array()
        .expect("a list")
        .iter()
        .rev()
        .filter(|one| one["operation"] == OPERATION)
        .map(to)
        .collect()
}

/// Reads and writes the same contact, several clients at once, until the operation was moved so often.
async fn worked_until_moved(gateway: &Running, account: &Account, dice: &mut fastrand::Rng, times: usize) {
    let working = async {
        while transitions(gateway).await.len() < times {
            let mut asking = JoinSet::new();
            for _ in 0..24 {
                let asked = match dice.u8(..4) {
                    0 => {
                        let body =
                            json!({"name": "Ana", "city": format!("City {}", dice.u32(..))}).to_string();
                        request(account, "PUT /v2/contacts/1001", "content-type: application/json\r\n", &body)
                    }
                    _ => request(account, "GET /v2/contacts/1001", "", ""),
                };
                let address = gateway.address;
                asking.spawn(async move {
                    let mut client = Client::connect(address).await;
                    client.send(asked).await;
                    client.answer().await.map(|answer| answer.status)
                });
            }
            for status in asking.join_all().await {
                assert!(matches!(status, Some(200 | 204 | 502)), "{status:?}");
            }
        }
    };
    if tokio::time::timeout(raw::PATIENCE * 3, working).await.is_err() {
        let (_, report) = gateway.admin("GET /api/diff", &Value::Null).await;
        panic!("moved to {:?} and no further: {report}", transitions(gateway).await);
    }
}

/// Both services reset one call in twenty, clients write data that others read, and the gateway is
/// killed in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_resets_writes_and_kills_equal_sides_are_promoted_and_a_defect_is_rolled_back() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut dice = fastrand::Rng::with_seed(seed);
    let service = Sandbox::start(Options { seed: dice.u64(..), ..Options::default() }).await;
    let service = service.expect("a loopback address");
    let dual = Dual::new();
    let more = "phases: { default: shadow }\nshadow: { noise: 0, read_back: 0.5 }\n\
        gate: { 'GET /contacts/{id}': { mismatch: 0.1, compared: 100, min_period: 1s, share: 1, check: 1 } }\n";
    dual.configure(&service, Upstreams::of(&service), &["administrator"], more);
    for (side, action) in [("v2", "before"), ("v3", "before"), ("v2", "after"), ("v3", "after")] {
        let reset = json!({"side": side, "probability": 0.025, "action": {"reset": {"when": action}}});
        control(&service, "POST faults", reset).await;
    }
    let account = service.credentials().account("administrator").expect("every sandbox has one");

    let gateway = dual.started().await;
    worked_until_moved(&gateway, account, &mut dice, 1).await;
    gateway.program.signal("KILL");
    drop(gateway);
    let gateway = dual.started().await;
    worked_until_moved(&gateway, account, &mut dice, 2).await;
    let so_far = ["canary for 1 of clients", "translated, 1 of requests checked"];
    assert_eq!(transitions(&gateway).await, so_far, "equal sides are never rolled back");
    let (_, report) = gateway.admin("GET /api/diff", &Value::Null).await;
    for operation in report["operations"].as_array().expect("a list") {
        assert_eq!(operation["top"], json!([]), "nothing differs: {operation}");
    }

    let rule = json!({"side": "v3", "path": "/contacts/{id}", "field": "$.name", "change": {"set": "Somebody else"}});
    control(&service, "POST differences", rule).await;
    worked_until_moved(&gateway, account, &mut dice, 3).await;
    assert_eq!(transitions(&gateway).await[2], "shadow");
    // The rollback is final while the defect exists.
    let (_, report) = gateway.admin("GET /api/diff", &Value::Null).await;
    assert_eq!(report["verdict"], "above", "{report}");
}

/// A scenario of real runs: the configured phase, the planted fault, and the phases that a run must
/// not enter.
struct Plan {
    name: &'static str,
    phase: &'static str,
    fault: Value,
    is_writing: bool,
    is_invalid: bool,
    forbidden: &'static str,
}

fn plans() -> Vec<Plan> {
    let wrong = |side: &str, probability: f64| {
        let action = json!({"status": {"code": 200, "body": {"id": 1001, "name": "Somebody else"}}});
        json!({"side": side, "method": "GET", "path": "/contacts/{id}", "probability": probability, "action": action})
    };
    let reset = json!({"side": "v3", "probability": 0.05, "action": {"reset": {"when": "before"}}});
    let (shadow, canary) = ("shadow", "{ phase: canary, share: 1 }");
    let few = "{ phase: canary, share: 0.0001 }";
    let plan = |name, phase, fault, forbidden| Plan {
        name,
        phase,
        fault,
        is_writing: false,
        is_invalid: false,
        forbidden,
    };
    vec![
        plan("equal sides in canary", canary, Value::Null, "shadow"),
        plan("a fifth wrong at random in canary", canary, wrong("v3", 0.2), "translated"),
        plan("a fifth wrong at random in shadow", shadow, wrong("v3", 0.2), "canary"),
        plan("all wrong in canary", canary, wrong("v3", 1.0), "translated"),
        plan("resets in canary", canary, reset, "shadow"),
        Plan { is_writing: true, ..plan("races in canary", canary, Value::Null, "shadow") },
        // The old version answers this client, so its writes are planned.
        Plan { is_invalid: true, ..plan("invalid clients in canary", few, Value::Null, "shadow") },
    ]
}

/// Runs of the program before a sandbox, on the machine's clock, in which the gate must not decide
/// wrongly. By hand: `RUNS=35 cargo test --test integration real_runs -- --ignored --nocapture`
/// prints a table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes about a minute for each five runs"]
async fn real_runs_are_not_decided_wrongly() {
    let runs: usize = std::env::var("RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(7);
    let mut ends: Vec<(&'static str, bool, Vec<String>)> = Vec::new();
    let all: Vec<usize> = (0..runs).collect();
    for batch in all.chunks(plans().len()) {
        let mut running = JoinSet::new();
        for at in batch {
            let plan = plans().swap_remove(at % plans().len());
            running.spawn(real_run(plan));
        }
        ends.extend(running.join_all().await);
    }
    println!("| Scenario | Runs | Wrong decisions | Ends |\n|---|---|---|---|");
    for plan in plans() {
        let of_plan: Vec<_> = ends.iter().filter(|(name, ..)| *name == plan.name).collect();
        let wrong = of_plan.iter().filter(|(_, is_wrong, _)| *is_wrong).count();
        let moved: Vec<String> =
            of_plan.iter().map(|(.., moved)| format!("[{}]", moved.join(", "))).collect();
        println!("| {} | {} | {wrong} | {} |", plan.name, of_plan.len(), moved.join(" "));
    }
    let wrong = ends.iter().filter(|(_, is_wrong, _)| *is_wrong).count();
    // One run in twenty may be decided wrongly; four standard deviations of that.
    let mean = runs as f64 * 0.05;
    assert!(wrong as f64 <= mean + 4.0 * mean.sqrt(), "{wrong} of {runs} runs: {ends:?}");
}

/// One run; gives whether a forbidden phase was entered, and the phases that were.
async fn real_run(plan: Plan) -> (&'static str, bool, Vec<String>) {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let more = format!(
        "phases: {{ 'GET /contacts/{{id}}': {phase}, 'PUT /contacts/{{id}}': {phase} }}\nshadow: {{ noise: 0, read_back: 1 }}\n\
         gate: {{ default: {{ mismatch: 0.05, compared: 60, min_period: 1s, share: 1, check: 1 }} }}\n",
        phase = plan.phase
    );
    dual.configure(&service, Upstreams::of(&service), &["administrator"], &more);
    let account = service.credentials().account("administrator").expect("every sandbox has one");
    let gateway = dual.start().await;
    while gateway.counted(names::TOKEN_EXPIRY, &[]).await == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    if !plan.fault.is_null() {
        control(&service, "POST faults", plan.fault).await;
    }
    let until = std::time::Instant::now() + Duration::from_secs(25);
    let mut number = 0_u32;
    let mut moved = Vec::new();
    while std::time::Instant::now() < until && moved.is_empty() {
        for _ in 0..10 {
            number += 1;
            let edit = json!({"name": "Ana", "email": format!("ana{number}@example.com")}).to_string();
            let fields = "content-type: application/json\r\n";
            let asked = match number % 4 {
                0 if plan.is_invalid => request(account, "PUT /v2/contacts/1001", fields, "{}"),
                1 if plan.is_invalid || plan.is_writing => {
                    request(account, "PUT /v2/contacts/1001", fields, &edit)
                }
                _ => request(account, "GET /v2/contacts/1001", "", ""),
            };
            let mut client = Client::connect(gateway.address).await;
            client.send(asked).await;
            assert!(client.answer().await.is_some(), "every request is answered");
        }
        let (_, all) = gateway.admin("GET /api/phases/transitions", &Value::Null).await;
        let to = |one: &Value| {
            format!("{} {}", one["operation"].as_str().unwrap_or(""), one["to"].as_str().unwrap_or(""))
        };
        moved = all.as_array().map(|all| all.iter().rev().map(to).collect()).unwrap_or_default();
    }
    let is_wrong =
        moved.iter().any(|to| to.split(' ').nth(2).is_some_and(|to| to.starts_with(plan.forbidden)));
    (plan.name, is_wrong, moved)
}
