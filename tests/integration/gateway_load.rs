//! Many concurrent clients through the real binary, while connections to the service break and
//! tokens expire: by the sandbox's counts, no write happened twice, and no call used another
//! client's grant.

use crate::support::raw::{Answer, Client};
use crate::support::serving::{Enrolled, Serving};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use switchback_sandbox::{Account, Options, Sandbox};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// The clients: the sandbox's role, the secondary company, and a chat of its own for writes.
const CLIENTS: [(&str, Option<u64>, u64); 5] = [
    ("administrator", Some(42), 10_000_001),
    ("manager", None, 1),
    ("agent", None, 2),
    ("guest", None, 3),
    ("second-company", None, 10_000_002),
];

/// How many connections each client has, and how many requests come on each.
const CONNECTIONS: u64 = 4;
const REQUESTS: u64 = 30;

/// The request of a client, and the status that it received; none if its connection ended without
/// an answer.
struct Told {
    mark: String,
    kind: Kind,
    status: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Message,
    Contact,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_resets_and_expiry_nothing_is_done_twice_and_no_grant_serves_another_client() {
    let options = Options { expires_in: Duration::from_secs(2), ..Options::default() };
    let service = Sandbox::start(options).await.expect("a loopback address");
    let accounts = CLIENTS.map(|(role, ..)| service.credentials().account(role).expect("a known role"));
    let enrolled: Vec<_> = accounts
        .iter()
        .zip(CLIENTS)
        .map(|(account, (_, company, _))| Enrolled { account, company })
        .collect();
    let gateway = Serving::with(&service, &enrolled).await;
    control(&service, "PUT", "requests", json!({"keep": 100_000})).await;
    for when in ["before", "after"] {
        let rule = json!({"side": "v3", "probability": 0.025, "action": {"reset": {"when": when}}});
        control(&service, "POST", "faults", rule).await;
    }

    let told = run(&gateway, &service, &accounts).await;

    let faults = control(&service, "GET", "faults", Value::Null).await;
    for rule in list(&faults) {
        assert!(rule["done"].as_u64() > Some(0), "no connection was reset: {rule}");
    }
    control(&service, "DELETE", "faults", Value::Null).await;
    let log = control(&service, "GET", "requests", Value::Null).await;
    let log: Vec<&Value> = list(&log).iter().collect();
    nothing_was_sent_twice(&log, &told);
    nobody_had_anothers_token(&log);
    no_refresh_token_was_spent_twice(&log);
    the_state_is_what_the_clients_were_told(&service, &accounts, &told).await;
    for (account, (role, _, chat)) in accounts.iter().zip(CLIENTS) {
        let answer = call(gateway.address, account, &format!("GET /v2/chats/{chat}"), "", "").await;
        assert_eq!(answer.map(|answer| answer.status), Some(200), "{role} is still connected");
    }
}

/// All requests of all clients; in the midst of them every access token is ended.
async fn run(gateway: &Serving, service: &Sandbox, accounts: &[&Account]) -> Vec<Told> {
    let mut working = JoinSet::new();
    let under_way = Arc::new(Barrier::new(CLIENTS.len() * CONNECTIONS as usize + 1));
    for (at, (account, (_, _, chat))) in accounts.iter().zip(CLIENTS).enumerate() {
        for connection in 0..CONNECTIONS {
            let (address, account, under_way) = (gateway.address, (*account).clone(), under_way.clone());
            working.spawn(async move {
                let mut told = Vec::new();
                for number in connection * REQUESTS..(connection + 1) * REQUESTS {
                    if number == connection * REQUESTS + REQUESTS / 2 {
                        under_way.wait().await;
                    }
                    told.push(ask(address, &account, at, chat, number).await);
                }
                told
            });
        }
    }
    under_way.wait().await;
    control(service, "POST", "tokens/expire", json!({})).await;
    working.join_all().await.into_iter().flatten().collect()
}

/// One request of a client: every other one is a read; of the writes most are messages, some
/// internal, and some contacts.
async fn ask(address: SocketAddr, account: &Account, at: usize, chat: u64, number: u64) -> Told {
    let mark = format!("mark-{at}-{number:04}");
    let (kind, line, body) = match number % 8 {
        0 => (Kind::Read, format!("GET /v2/chats/{chat}/messages"), Value::Null),
        2 => (Kind::Read, format!("GET /v2/chats/{chat}"), Value::Null),
        4 => (Kind::Read, "GET /v2/contacts?page=1".to_owned(), Value::Null),
        6 => (Kind::Read, "GET /v2/agents".to_owned(), Value::Null),
        7 => {
            let phone = format!("55119{at}{number:07}");
            let contact = json!({"name": mark, "phone": phone, "email": format!("{mark}@example.com")});
            (Kind::Contact, "POST /v2/contacts".to_owned(), contact)
        }
        rest => {
            let message = json!({"text": mark, "isInternal": rest == 3});
            (Kind::Message, format!("POST /v2/chats/{chat}/messages"), message)
        }
    };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let trace = format!("traceparent: 00-{}-00000000000000aa-00\r\n", trace(at, number));
    let status = call(address, account, &line, &trace, &body).await.map(|answer| answer.status);
    Told { mark, kind, status }
}

/// A trace id that identifies client and request.
fn trace(at: usize, number: u64) -> String {
    format!("{:016x}{number:016x}", at + 1)
}

/// Returns the client of a logged request.
fn client_of(entry: &Value) -> usize {
    let trace = trace_of(entry);
    let client = usize::from_str_radix(&trace[..16], 16).expect("a trace of ours");
    assert!((1..=CLIENTS.len()).contains(&client), "a request that no client made: {entry}");
    client - 1
}

fn trace_of(entry: &Value) -> &str {
    let parent = entry["headers"]["traceparent"].as_str().unwrap_or_else(|| panic!("no trace: {entry}"));
    parent.split('-').nth(1).expect("a trace id")
}

fn path(entry: &Value) -> &str {
    entry["path"].as_str().expect("a path")
}

fn calls<'l>(log: &'l [&Value]) -> impl Iterator<Item = &'l Value> {
    log.iter().copied().filter(|entry| path(entry).starts_with("/v3/"))
}

/// A call with 401 had no effect and may be repeated with a new token; any other may have had its
/// effect, even if its connection was reset before an answer.
fn nothing_was_sent_twice(log: &[&Value], told: &[Told]) {
    let mut sent: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    let effectful = calls(log).filter(|entry| entry["method"] != "GET" && entry["status"] != 401);
    for entry in effectful {
        let method = entry["method"].as_str().expect("a method");
        *sent.entry((trace_of(entry), method, path(entry))).or_default() += 1;
    }
    let twice: Vec<_> = sent.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let writes = told.iter().filter(|told| told.kind != Kind::Read).count();
    let failed = told.iter().filter(|told| told.kind != Kind::Read && told.status == Some(502)).count();
    assert!(
        failed > 0 && sent.len() >= writes / 2,
        "{failed} of {writes} writes failed, {} calls",
        sent.len()
    );
}

fn nobody_had_anothers_token(log: &[&Value]) {
    let mut holders: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for entry in calls(log) {
        let token = entry["headers"]["authorization"].as_str().expect("one credential");
        holders.entry(token).or_default().insert(client_of(entry));
    }
    let shared: Vec<_> = holders.values().filter(|clients| clients.len() != 1).collect();
    assert!(shared.is_empty(), "{shared:?}");
    for (at, (role, ..)) in CLIENTS.iter().enumerate() {
        let tokens = holders.values().filter(|clients| clients.contains(&at)).count();
        assert!(tokens >= 2, "{role} went on with its first token");
    }
}

fn no_refresh_token_was_spent_twice(log: &[&Value]) {
    let refreshes: Vec<_> = log.iter().filter(|entry| path(entry) == "/oauth/access_token").collect();
    let spent: BTreeSet<_> = refreshes.iter().filter_map(|e| e["body"]["refresh_token"].as_str()).collect();
    assert_eq!(spent.len(), refreshes.len(), "a spent refresh token came again");
}

async fn the_state_is_what_the_clients_were_told(service: &Sandbox, accounts: &[&Account], told: &[Told]) {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (at, (account, (_, _, chat))) in accounts.iter().zip(CLIENTS).enumerate() {
        // The witness shows v2 of the company that the chat is in.
        let reader = if chat > 10_000_000 { accounts[4] } else { accounts[1] };
        let own = format!("mark-{at}-");
        for message in pages(service, reader, &format!("/v2/chats/{chat}/messages")).await {
            let text = message["body"].as_str().unwrap_or_default();
            if text.starts_with("mark-") {
                assert!(text.starts_with(&own), "{text} in another client's chat");
                assert_eq!(message["sender"]["id"], account.agent_id, "{text} was sent by another agent");
                *found.entry(text.to_owned()).or_default() += 1;
            }
        }
    }
    for reader in [accounts[1], accounts[4]] {
        for contact in pages(service, reader, "/v2/contacts").await {
            let name = contact["name"].as_str().unwrap_or_default();
            if name.starts_with("mark-") {
                *found.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
    for Told { mark, kind, status } in told {
        let count = found.get(mark).copied().unwrap_or(0);
        match (kind, status) {
            (Kind::Read, Some(200 | 401 | 502)) => assert_eq!(count, 0, "{mark}"),
            (Kind::Message | Kind::Contact, Some(200 | 201)) => assert_eq!(count, 1, "{mark}"),
            (Kind::Message | Kind::Contact, Some(502)) => assert!(count <= 1, "{mark}: {count}"),
            (Kind::Message | Kind::Contact, Some(401)) => assert_eq!(count, 0, "{mark}"),
            (_, status) => panic!("{mark} was answered {status:?}"),
        }
    }
    let effects = control(service, "GET", "effects", Value::Null).await;
    let wrote = |effect: &&Value| {
        ["message", "note", "create contact"].contains(&effect["effect"].as_str().unwrap_or_default())
    };
    let counted: u64 =
        list(&effects).iter().filter(wrote).filter_map(|effect| effect["count"].as_u64()).sum();
    assert_eq!(counted, found.len() as u64, "as many effects as things found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_requests_at_the_moment_of_expiry_cause_one_refresh_and_are_all_answered() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let gateway = Serving::before(&service).await;
    let account = service.credentials().account("administrator").expect("every sandbox has one").clone();
    let first = call(gateway.address, &account, "GET /v2/chats/1", "", "").await.expect("an answer");
    assert_eq!(first.status, 200, "{}", first.text());
    let before = refreshes(&service).await;
    control(&service, "POST", "tokens/expire", json!({})).await;

    let mut asking = JoinSet::new();
    let all = Arc::new(Barrier::new(200));
    for _ in 0..200 {
        let (all, account, address) = (all.clone(), account.clone(), gateway.address);
        asking.spawn(async move {
            let mut client = Client::connect(address).await;
            all.wait().await;
            client.send(request(&account, "GET /v2/chats/1", "", "")).await;
            client.answer().await.map(|answer| (answer.status, answer.body))
        });
    }
    let answers = asking.join_all().await;
    assert_eq!(answers.len(), 200);
    for answer in answers {
        assert_eq!(answer.as_ref(), Some(&(200, first.body.clone())));
    }
    assert_eq!(refreshes(&service).await, before + 1);
}

/// Returns the number of calls of the token endpoint.
async fn refreshes(service: &Sandbox) -> usize {
    list(&control(service, "GET", "requests?path=/oauth/access_token", Value::Null).await).len()
}

/// All entries of a list, as the sandbox's own v2 shows it.
async fn pages(service: &Sandbox, reader: &Account, path: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for page in 0.. {
        let line = format!("GET {path}?page={page}");
        let answer = call(service.address(), reader, &line, "", "").await.expect("an answer");
        let page: Value = serde_json::from_slice(&answer.body).expect("JSON");
        match list(&page) {
            [] => break,
            entries => all.extend_from_slice(entries),
        }
    }
    all
}

async fn control(service: &Sandbox, method: &str, what: &str, body: Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!("{method} /_sandbox/{what} HTTP/1.1\r\nhost: control\r\n");
    let mut client = Client::connect(service.address()).await;
    client.send(format!("{head}content-length: {}\r\n\r\n{body}", body.len())).await;
    let answer = client.answer().await.expect("control answers");
    assert!(answer.status < 300, "{what}: {}", answer.text());
    serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("a list: {value}"))
}

/// Sends a request on a separate connection; none if that ended without an answer.
async fn call(
    address: SocketAddr,
    account: &Account,
    line: &str,
    fields: &str,
    body: &str,
) -> Option<Answer> {
    let mut client = Client::connect(address).await;
    client.send(request(account, line, fields, body)).await;
    client.answer().await
}

/// A request with an account's v2 token; `fields` end in `\r\n` each.
fn request(account: &Account, line: &str, fields: &str, body: &str) -> String {
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let token = &account.v2_token;
    format!(
        "{line} HTTP/1.1\r\nhost: service.test\r\nx-authorization: Bearer {token}\r\n{length}{fields}\r\n{body}"
    )
}
