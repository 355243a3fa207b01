//! Unchanged clients, step by step, compared with the statements of `switchback report` about their
//! operations. Every step is performed twice from the same seed: at the service's own front, and at
//! the gateway in front of the other version. The report must declare the differences of the two
//! answers; a step that it does not cover is an error of the report.

use crate::contract_walk::document::{Document, read_yaml};
use crate::support::raw::{Answer, exchange};
use crate::support::serving::Serving;
use crate::support::witness::{
    differences, is_error_form, json, messaging_pack, route_of, undeclared_members,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;
use switchback_plan::{Pack, SideId};
use switchback_sandbox::{Options, Sandbox};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_report_is_true_of_every_step_of_an_unchanged_v2_client() {
    walk(SideId::OLD, 137).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_report_is_true_of_every_step_of_an_unchanged_v3_client() {
    walk(SideId::NEW, 90).await;
}

const CLIENT_TOKEN: &str = "token-of-an-unchanged-client";

/// Both services, and the server in front of one of them.
struct World {
    pack: std::sync::Arc<Pack>,
    side: SideId,
    own: Sandbox,
    behind: Sandbox,
    gateway: Serving,
    /// Operations of the side as the report has them.
    report: Vec<Value>,
}

impl World {
    async fn new(side: SideId) -> World {
        let (own, behind) = (sandbox().await, sandbox().await);
        let pack = messaging_pack();
        let names = [&pack.sides[usize::from(side.0)].name, &pack.sides[1 - usize::from(side.0)].name];
        let token = behind.credentials();
        let called = if side == SideId::OLD { &token.access_token } else { &token.v2_token };
        let client =
            format!("{}_token: {CLIENT_TOKEN}, credentials: {{ {}: '{called}' }}", names[0], names[1]);
        let more = format!(
            "fronts: {{ /{0}: {{ speaks: {0} }} }}\nclients: [{{ name: acme, {client} }}]\n",
            names[0]
        );
        let gateway = Serving::configured(behind.address(), &[names[1]], &more).await;
        let report = report()["sides"][usize::from(side.0)]["operations"].as_array().expect("a list").clone();
        World { side, own, behind, gateway, report, pack }
    }

    /// The same data on both sides, and an empty log.
    async fn reset(&self) {
        for sandbox in [&self.own, &self.behind] {
            let answer = call(sandbox.address(), "", "POST /_sandbox/reset", Some("{}")).await;
            assert_eq!(answer.status / 100, 2, "{}", answer.text());
        }
    }

    fn own_token(&self) -> &str {
        let token = self.own.credentials();
        if self.side == SideId::OLD { &token.v2_token } else { &token.access_token }
    }

    /// Returns the report of an operation; none for a call outside the contract.
    fn of(&self, line: &str) -> Option<&Value> {
        let key = route_of(&self.pack, self.side, line)?.operation.key.to_string();
        Some(self.report.iter().find(|one| one["operation"] == key.as_str()).expect("all are reported"))
    }
}

async fn sandbox() -> Sandbox {
    Sandbox::start(Options::default()).await.expect("it starts")
}

fn report() -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
    command.args(["report", "--format", "json", "--set", "agents.max_chats=5"]);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

async fn call(address: SocketAddr, token: &str, line: &str, body: Option<&str>) -> Answer {
    let body = body.unwrap_or_default();
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let fields = format!(
        "content-type: application/json\r\nauthorization: Bearer {token}\r\nx-authorization: Bearer {token}\r\n{length}"
    );
    let request = format!("{line} HTTP/1.1\r\nhost: service.test\r\n{fields}\r\n{body}");
    exchange(address, request).await.expect("an answer")
}

/// Performs all steps of a client. Returns those that the report does not cover.
async fn walk(side: SideId, steps_min: usize) {
    let world = World::new(side).await;
    let name = &world.pack.sides[usize::from(side.0)].name;
    let called: &'static str = if side == SideId::OLD { "v3" } else { "v2" };
    let contract = Document::load(called);
    let sessions = read_yaml(&format!("tests/integration/unchanged_clients/{name}.yaml"));
    let of_gateway: Vec<String> = ["not_found", "bad_body"]
        .iter()
        .filter_map(|name| world.pack.reasons.iter().find(|reason| reason.name == *name))
        .map(|reason| reason.texts["en"].clone())
        .collect();
    let (mut faults, mut met, mut count) = (Vec::new(), BTreeSet::new(), 0);
    for session in sessions.as_array().expect("a list of sessions") {
        world.reset().await;
        let mut shown = String::new();
        for step in session["steps"].as_array().expect("a session has steps") {
            let line = step["at"].as_str().expect("a step has a request");
            let body = match &step["send"] {
                Value::Null => None,
                Value::String(word) if word == "shown" => Some(shown.clone()),
                body => Some(body.to_string()),
            };
            let told = call(world.own.address(), world.own_token(), line, body.as_deref()).await;
            let got = call(world.gateway.address, CLIENT_TOKEN, line, body.as_deref()).await;
            let reported = world.of(line);
            met.extend(reported.and_then(|one| one["operation"].as_str()).map(str::to_owned));
            let by = step["by"].as_str().map(|by| world.of(by).expect("`by` names an operation"));
            let found = judge(&of_gateway, step, reported, by, &told, &got);
            let place = format!("{}: {line} {}", session["session"], body.unwrap_or_default());
            faults.extend(found.into_iter().map(|fault| format!("{place}: {fault}")));
            shown = told.text();
            count += 1;
        }
        let log = json(&call(world.behind.address(), "", "GET /_sandbox/requests", None).await);
        faults.extend(undeclared_members(&contract, &log));
    }
    assert!(faults.is_empty(), "{} of {count} steps:\n{}", faults.len(), faults.join("\n"));
    assert!(count >= steps_min, "{count} steps");
    let missing: Vec<_> = world
        .report
        .iter()
        .filter_map(|one| one["operation"].as_str())
        .filter(|key| !met.contains(*key))
        .collect();
    assert!(missing.is_empty(), "no step calls {missing:?}");
}

/// The relation between the answers of the gateway and of the service.
enum Outcome {
    Equal,
    Missing,
    Refused,
    Words,
    Differs(BTreeSet<String>),
}

/// Returns the faults of a step: another outcome than expected, or one that the report does not
/// cover. `of_gateway` are the texts for requests outside their contract.
fn judge(
    of_gateway: &[String],
    step: &Value,
    of: Option<&Value>,
    by: Option<&Value>,
    told: &Answer,
    got: &Answer,
) -> Vec<String> {
    let texts = |of: Option<&Value>, field: &str| -> Vec<String> {
        let list = of.and_then(|of| of[field].as_array()).cloned().unwrap_or_default();
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let reason = json(got)["reason"].as_str().unwrap_or_default().to_owned();
    let outcome = outcome(of, told, got, texts(of, "refusals").contains(&reason));
    let verdict = of.and_then(|of| of["verdict"].as_str()).unwrap_or("none");
    let has_sentence =
        |of: Option<&Value>| !texts(of, "differs").is_empty() || !texts(of, "approximate").is_empty();
    let (word, is_covered) = match &outcome {
        Outcome::Equal => ("equal", verdict != "not possible" || got.status >= 400),
        Outcome::Missing => ("missing", verdict != "exact"),
        Outcome::Refused => ("refused", ["partly", "not possible"].contains(&verdict)),
        Outcome::Words => {
            let is_listed = texts(of, "own_words").iter().any(|words| is_text_of(words, got.status, &reason));
            let sentence = format!("text of the {}", got.status);
            let is_told = texts(of, "differs").iter().any(|differs| differs.contains(&sentence));
            ("words", is_listed || is_told || of_gateway.contains(&reason))
        }
        Outcome::Differs(_) => ("differs", verdict != "exact" && (has_sentence(of) || has_sentence(by))),
    };
    let mut found = Vec::new();
    if step["as"] != word {
        let texts = format!("{} {} / {} {}", told.status, told.text(), got.status, got.text());
        found.push(format!("{word} where {} is due: {texts:.600}", step["as"]));
    }
    if let Outcome::Differs(places) = &outcome {
        let named = step["in"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let named: BTreeSet<String> = named.map(str::to_owned).collect();
        if *places != named {
            found.push(format!("differs at {places:?}, not at {named:?}"));
        }
    }
    if !is_covered {
        found.push(format!("the report does not say that this {word}: {verdict}"));
    }
    if got.status >= 400 && !is_error_form(&json(got)) {
        found.push(format!("an error in another form: {}", got.text()));
    }
    found
}

fn outcome(of: Option<&Value>, told: &Answer, got: &Answer, is_refusal: bool) -> Outcome {
    if got.status == 501 && is_refusal {
        return Outcome::Refused;
    }
    let (left, right) = (json(told), json(got));
    let found = differences(&left, &right);
    if told.status != got.status {
        return Outcome::Differs(BTreeSet::new());
    }
    if found.is_empty() && left.is_null() == right.is_null() {
        return Outcome::Equal;
    }
    if got.status >= 400 {
        return Outcome::Words;
    }
    let gaps: Vec<&str> = of
        .and_then(|of| of["without_source"].as_array())
        .into_iter()
        .flatten()
        .filter_map(|gap| gap["place"].as_str())
        .collect();
    let is_gap = |place: &str| {
        let below = |gap: &&str| {
            place.strip_prefix(*gap).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        gaps.iter().any(below)
    };
    let places: BTreeSet<String> =
        found.iter().map(|one| one.place.clone()).filter(|place| !is_gap(place)).collect();
    if places.is_empty() { Outcome::Missing } else { Outcome::Differs(places) }
}

/// Whether an error is one of those that the report lists, as `400: The parameter {parameter} is missing.`
fn is_text_of(listed: &str, status: u16, reason: &str) -> bool {
    let Some(text) = listed.strip_prefix(&format!("{status}: ")) else { return false };
    let mut rest = reason;
    let mut pieces = text.split('{').enumerate();
    pieces.all(|(at, piece)| {
        let piece = if at == 0 { piece } else { piece.split_once('}').map_or("", |(_, after)| after) };
        match rest.find(piece) {
            Some(found) if at > 0 || found == 0 => {
                rest = &rest[found + piece.len()..];
                true
            }
            _ => false,
        }
    }) && (rest.is_empty() || text.ends_with('}'))
}

#[test]
fn a_listed_text_is_known_by_what_stands_around_its_placeholders() {
    let listed = "400: The parameter {parameter} is missing.";
    assert!(is_text_of(listed, 400, "The parameter name is missing."));
    assert!(!is_text_of(listed, 404, "The parameter name is missing."));
    assert!(!is_text_of(listed, 400, "The parameter name is missing. Or not."));
    assert!(!is_text_of(listed, 400, "A parameter name is missing."));
    assert!(is_text_of("400: Given: {what}", 400, "Given: all"));
}
