//! Requests outside the contracts: every field of every write, in both directions, with every JSON
//! kind and absent. For every request, an error implies that no write happened, and each write
//! affects only the named record.
//!
//! Through the real binary in front of the sandbox, in comparison with direct calls of a sandbox;
//! and through the plans of both packs, with a generated other side. `SWITCHBACK_MUTATIONS` is the
//! number of additional random mutations for each of the two; without it, a few are tried.

mod plans;

use crate::support::raw::{Answer, exchange};
use crate::support::serving::Serving;
use crate::support::witness::json;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::net::SocketAddr;
use switchback_sandbox::{Options, Sandbox};

/// A value of every kind, and of some kinds the one that programs stumble over.
fn values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(7),
        json!(1.5),
        json!(""),
        json!("x"),
        json!([]),
        json!(["a", 1]),
        json!({}),
        json!({"a": 1}),
    ]
}

/// Number of random mutations in addition to the systematic ones.
fn random_mutations(usual: u32) -> u32 {
    std::env::var("SWITCHBACK_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

/// A body with some changed members: the new value, or none for an absent one.
fn mutated(body: &Value, changes: &[(String, Option<Value>)]) -> Value {
    let mut body = body.clone();
    for (name, value) in changes {
        let Some(members) = body.as_object_mut() else { continue };
        match value {
            Some(value) => drop(members.insert(name.clone(), value.clone())),
            None => drop(members.remove(name)),
        }
    }
    body
}

/// Every single mutation of a body: each member absent and of each kind; the complete body too.
fn single_mutations(body: &Value) -> Vec<Value> {
    let mut bodies = values();
    let names: Vec<String> =
        body.as_object().into_iter().flat_map(|members| members.keys().cloned()).collect();
    for name in names {
        bodies.push(mutated(body, &[(name.clone(), None)]));
        bodies.extend(values().into_iter().map(|value| mutated(body, &[(name.clone(), Some(value))])));
    }
    bodies
}

/// A write that a side has, with a body that it takes, and the things that it may change.
struct Write {
    line: &'static str,
    body: Value,
    /// Ids of chats, contacts, agents or companies; a new record has an id of its own.
    on: &'static [u64],
    /// Whether it makes something.
    makes: bool,
}

fn write(line: &'static str, body: Value, on: &'static [u64]) -> Write {
    Write { line, body, on, makes: false }
}

fn contact() -> Value {
    json!({"name": "Zoë", "email": "zoe@example.com", "phone": "5511988887777", "mobile": "", "address": "Rua 1", "city": "Recife",
        "district": "Centro", "state": "PE", "obs": "VIP"})
}

fn old_writes() -> Vec<Write> {
    vec![
        write("POST /v2/agents", json!({"email": "n@agents.example.com", "type": 2}), &[41]),
        write("PUT /v2/agents/203", json!({"type": 1, "active": true}), &[203]),
        Write {
            makes: true,
            ..write(
                "POST /v2/contacts",
                json!({"name": "A", "phone": "5511", "email": "n@e.test", "mobile": "1"}),
                &[],
            )
        },
        write("PUT /v2/contacts/1001", contact(), &[1001]),
        write("POST /v2/chats/1/close", json!({"sendFeedback": true}), &[1]),
        write("POST /v2/chats/1/queue", json!({}), &[1]),
        write("POST /v2/chats/1/messages", json!({"text": "oi", "isInternal": false}), &[1]),
        write("POST /v2/chats/5/reopen", json!({}), &[5]),
        write("POST /v2/chats/1/situation", json!({"situation": "wait_for_chat"}), &[1]),
        write("POST /v2/chats/1/tags", json!({"tags": "vip"}), &[1]),
        write("POST /v2/chats/1/flow", json!({"flowId": 51}), &[1]),
        write(
            "POST /v2/flows/51/contact/1007/exec",
            json!({"uuid": "x", "variables": {"a": "b"}, "whenInChat": true, "whenWaitForChat": false, "whenInAuto": true}),
            &[7, 97],
        ),
        write(
            "POST /v2/flows/51/contact/1007/exec",
            json!({"variables": {"a": "b"}, "whenInChat": true, "whenWaitForChat": false, "whenInAuto": true}),
            &[7, 97],
        ),
    ]
}

fn new_writes() -> Vec<Write> {
    vec![
        write("POST /v3/agents", json!({"email": "n@agents.example.com", "type": 2, "maxChats": 5}), &[41]),
        write("PUT /v3/contacts/1001", contact(), &[1001]),
        write(
            "POST /v3/chats/1/messages",
            json!({"text": "oi", "isInternal": false, "options": [], "file": "https://f.example/a.png", "hsm": {}}),
            &[1],
        ),
        write("POST /v3/chats/1/messages", json!({"text": "oi", "isInternal": false}), &[1]),
        write("POST /v3/chats/1/flow", json!({"flowId": 51, "variables": {"a": "b"}}), &[1]),
        write("POST /v3/chats/9/flow", json!({"flowId": 51, "variables": {"a": "b"}}), &[9]),
        // Its contact has another chat open on the channel.
        write("POST /v3/chats/7/flow", json!({"flowId": 51, "variables": {"a": "b"}}), &[7]),
        write(
            "PUT /v3/chats/1/close",
            json!({"tabulation": 21, "comment": "done", "sendFeedback": true}),
            &[1],
        ),
        write("PUT /v3/chats/1/close", json!({"sendFeedback": true}), &[1]),
        write("PUT /v3/chats/1/queue", json!({}), &[1]),
        write("PUT /v3/chats/5/reopen", json!({}), &[5]),
        write("PUT /v3/chats/1/tags", json!({"tags": "vip"}), &[1]),
    ]
}

const TOKEN: &str = "token-of-a-client-of-the-gateway";

/// A sandbox for direct calls, and one behind a gateway that serves a side of the other.
struct Sides {
    own: Sandbox,
    own_token: String,
    behind: Sandbox,
    gateway: Serving,
}

impl Sides {
    async fn before(served: &str) -> Sides {
        let start = async || Sandbox::start(Options::default()).await.expect("it starts");
        let (own, behind) = (start().await, start().await);
        let account = own.credentials().account("administrator").expect("every sandbox has one").clone();
        let (called, token, own_token) = match served {
            "v2" => ("v3", account.access_token, account.v2_token),
            _ => ("v2", account.v2_token, account.access_token),
        };
        let more = format!(
            "fronts: {{ /{served}: {{ speaks: {served} }} }}\n\
             clients: [{{ name: client, {served}_token: {TOKEN}, credentials: {{ {called}: '{token}' }} }}]\n"
        );
        let gateway = Serving::configured(behind.address(), &[called], &more).await;
        Sides { own, own_token, behind, gateway }
    }

    /// Returns the faults of the results of a request.
    async fn fault(&self, write: &Write, body: &str) -> Option<String> {
        for sandbox in [&self.own, &self.behind] {
            let reset = call(sandbox.address(), "", "POST /_sandbox/reset", "{}").await;
            assert!(reset.status < 300, "{}", reset.text());
        }
        let told = call(self.own.address(), &self.own_token, write.line, body).await;
        let got = call(self.gateway.address, TOKEN, write.line, body).await;
        let effects = call(self.behind.address(), "", "GET /_sandbox/effects", "").await;
        let effects = json(&effects).as_array().cloned().unwrap_or_default();
        let on: Vec<u64> = effects.iter().filter_map(|effect| effect["id"].as_u64()).collect();
        let shown =
            || format!("{} {}, effects {effects:?}, directly {}", got.status, got.text(), told.status);
        // 501 means "not offered", which any request may get before its first effect.
        if got.status >= 400 && !effects.is_empty() {
            return Some(format!("was written, and answered {}", shown()));
        }
        if got.status < 400 && told.status >= 400 {
            return Some(format!("is a mistake, and answered {}", shown()));
        }
        if (400..500).contains(&got.status) && told.status < 400 {
            return Some(format!("is none, and answered {}", shown()));
        }
        let elsewhere = on.iter().any(|id| !write.on.contains(id));
        if elsewhere && !write.makes {
            return Some(format!("changed something else: {}", shown()));
        }
        if write.makes && on.iter().collect::<std::collections::BTreeSet<_>>().len() > 1 {
            return Some(format!("made more than one thing: {}", shown()));
        }
        None
    }
}

async fn call(address: SocketAddr, token: &str, line: &str, body: &str) -> Answer {
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let fields = format!("content-type: application/json\r\nauthorization: Bearer {token}\r\n");
    let request = format!("{line} HTTP/1.1\r\nhost: service.test\r\n{fields}{length}\r\n{body}");
    exchange(address, request).await.expect("an answer")
}

/// A write and its body, with up to three members of any kind.
fn random_mutation(
    writes: usize,
) -> impl Strategy<Value = (usize, Vec<(prop::sample::Index, Option<Value>)>)> {
    let value = prop::option::weighted(0.8, prop::sample::select(values()));
    (0..writes, prop::collection::vec((any::<prop::sample::Index>(), value), 1..4))
}

async fn no_mutation_is_acted_on(served: &str, writes: &[Write]) {
    let sides = Sides::before(served).await;
    let mut faults = Vec::new();
    let mut tried = 0;
    let mut check = async |write: &Write, body: &str| {
        if let Some(fault) = sides.fault(write, body).await {
            faults.push(format!("{} {body}: {fault}", write.line));
        }
    };
    for write in writes {
        check(write, "").await;
        check(write, &write.body.to_string()).await;
        for body in single_mutations(&write.body) {
            check(write, &body.to_string()).await;
            tried += 1;
        }
    }
    assert!(tried > 300, "only {tried}");
    let mut runner = TestRunner::new(Config::default());
    for _ in 0..random_mutations(50) {
        let drawn = random_mutation(writes.len()).new_tree(&mut runner).expect("it is drawn").current();
        let write = &writes[drawn.0];
        let names: Vec<&String> = write.body.as_object().into_iter().flat_map(|body| body.keys()).collect();
        if names.is_empty() {
            continue;
        }
        let changes: Vec<_> =
            drawn.1.into_iter().map(|(at, value)| (at.get(&names).to_string(), value)).collect();
        check(write, &mutated(&write.body, &changes).to_string()).await;
    }
    assert!(faults.is_empty(), "{} of them:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_mutated_request_of_an_old_client_is_half_done_or_done_elsewhere() {
    no_mutation_is_acted_on("v2", &old_writes()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_mutated_request_of_a_new_client_is_half_done_or_done_elsewhere() {
    no_mutation_is_acted_on("v3", &new_writes()).await;
}
