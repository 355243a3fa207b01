//! The labelled corpus of the dual run: the sandbox lets v2 and v3 differ in many ways, each at an
//! address of its own, among calls that are equal on both sides. Every difference must be found
//! with its place, kind and cause, and no other. `SWITCHBACK_CORPUS_CALLS` sets the total number of
//! calls (default 600; the complete corpus is 10000).

use crate::support::dual::{Dual, Running, Upstreams, control, eventually};
use crate::support::packs;
use crate::support::raw::{Answer, Client};
use crate::support::serving::Serving;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use switchback_compiler::mapping::{self, load::PackSource};
use switchback_engine::diff::{
    BufferedAnswer, Candidate, Comparison, Limits, Noise, Record, Rules, View, compare,
};
use switchback_engine::redact::{Redactor, Salt};
use switchback_gateway::telemetry::metrics as names;
use switchback_plan::SideId;
use switchback_plan::router::{Found, Router};
use switchback_sandbox::{Options, Sandbox};

/// One way in which the versions differ, on one address.
struct Way {
    /// Path below the version.
    path: &'static str,
    /// The request to control: `differences` with a rule's side and the rest of it, or `faults`.
    told: Told,
    /// `kind place`, then the cause: `made`, `copied` or `unmapped` by the line of a mapping file
    /// that has this text once.
    found: &'static [(&'static str, Cause)],
}

enum Told {
    /// Side and path of the rule, and its other members.
    Differ(&'static str, &'static str, &'static str),
    /// Side and action, on the address itself.
    Fault(&'static str, &'static str),
}
use Told::{Differ, Fault};

enum Cause {
    Made(&'static str, &'static str),
    Copied(&'static str, &'static str),
    Unmapped(&'static str, &'static str),
    /// The line of the route.
    Route(&'static str),
}
use Cause::{Copied, Made, Route, Unmapped};

const CONTACTS: &str = "contacts.map.yaml";
const CHATS: &str = "chats.map.yaml";
const MESSAGES: &str = "messages.map.yaml";
const AGENTS: &str = "agents.map.yaml";

const CONTACT_SAME: Cause = Copied(CONTACTS, "ContactItem: > same: [id, name, email, mobile, phone]");
const CONTACT_ROUTE: &str = "- pair: {v2: 'GET /contacts/{id}', v3: 'GET /contacts/{id}'}";
const BIRTHDAY: Cause = Made(CONTACTS, "ContactItem: > birthday: {v3: birthDate");
const FIELDS: Cause = Made(CONTACTS, "customFields: {v3: customFields");
const CHANNELS: Cause = Copied(CONTACTS, "same: [voip, messenger");
const CHAT_SAME: Cause = Copied(CHATS, "Chat: > same: [id, agentId, secondAgentId");
const CHAT_CHANNEL: Cause = Copied(CHATS, "same: [uuid, id, name, type]");
const CHAT_CHANNELS: Cause = Made(CHATS, "Chat: > rename: {channels: {v3: channels, shape: [ChatChannel]}}");
const AGENT_SAME: Cause = Copied(AGENTS, "same: [id, name, email, login, type, phone]");
const MESSAGE_CHAT: Cause = Copied(MESSAGES, "same: [id, channel, situation, department, customer]");
const MESSAGE_LIST: Cause =
    Made(MESSAGES, "- pair: {v2: 'GET /chats/{id}/messages', v3: 'GET /chats/{id}/messages'}");

const fn way(path: &'static str, told: Told, found: &'static [(&'static str, Cause)]) -> Way {
    Way { path, told, found }
}

const WAYS: &[Way] = &[
    // Values.
    way(
        "/contacts/1003",
        Differ("v2", "/contacts/1003", r#"{"field":"$.name","change":{"set":"A"}}"#),
        &[("value $.name", CONTACT_SAME)],
    ),
    way(
        "/contacts/1004",
        Differ("v3", "/contacts/1004", r#"{"field":"$.name","change":{"set":"B"}}"#),
        &[("value $.name", CONTACT_SAME)],
    ),
    way(
        "/contacts/1005",
        Differ("v2", "/contacts/1005", r#"{"field":"$.customFields.codigo_cliente","change":{"set":"008"}}"#),
        &[("value $.customFields['#']", FIELDS)],
    ),
    way(
        "/contacts/1006",
        Differ("v2", "/contacts/1006", r#"{"field":"$.birthday","change":{"set":"2001-01-01"}}"#),
        &[("value $.birthday", BIRTHDAY)],
    ),
    way(
        "/contacts/1007",
        Differ("v3", "/contacts/1007", r#"{"field":"$.channelsSituation.voip","change":{"set":false}}"#),
        &[("value $.channels.voip", CHANNELS)],
    ),
    way(
        "/agents/203",
        Differ("v2", "/agents/203", r#"{"field":"$.type","change":{"set":3}}"#),
        &[("value $.type", AGENT_SAME)],
    ),
    way(
        "/chats/1",
        Differ("v2", "/chats/1", r#"{"field":"$.channels[0].name","change":{"set":"C"}}"#),
        &[("value $.channels[0].name", CHAT_CHANNEL)],
    ),
    way(
        "/chats/3",
        Differ("v3", "/chats/3", r#"{"field":"$.createdAt","change":{"set":"2020-01-01 00:00:00"}}"#),
        &[("value $.createdAt", CHAT_SAME)],
    ),
    // One number written twice.
    way(
        "/agents/201",
        Differ("v2", "/agents/201", r#"{"field":"$.type","change":{"set":3.0}}"#),
        &[("spelling $.type", AGENT_SAME)],
    ),
    // Types.
    way(
        "/contacts/1008",
        Differ("v2", "/contacts/1008", r#"{"field":"$.id","change":"retype"}"#),
        &[("type $.id", CONTACT_SAME)],
    ),
    way(
        "/contacts/1009",
        Differ("v3", "/contacts/1009", r#"{"field":"$.id","change":"retype"}"#),
        &[("type $.id", CONTACT_SAME)],
    ),
    way(
        "/contacts/1010",
        Differ("v2", "/contacts/1010", r#"{"field":"$.name","change":{"set":null}}"#),
        &[("type $.name", CONTACT_SAME)],
    ),
    way(
        "/contacts/1011",
        Differ("v2", "/contacts/1011", r#"{"field":"$.channels.sms","change":"retype"}"#),
        &[("type $.channels.sms", CHANNELS)],
    ),
    way(
        "/contacts/1001",
        Differ("v2", "/contacts/1001", r#"{"field":"$.customFields","change":{"set":[]}}"#),
        &[("type $.customFields", FIELDS)],
    ),
    way(
        "/chats/4",
        Differ("v3", "/chats/4", r#"{"field":"$.departmentId","change":"retype"}"#),
        &[("type $.departmentId", CHAT_SAME)],
    ),
    // Missing from the candidate.
    way(
        "/contacts/1013",
        Differ("v3", "/contacts/1013", r#"{"field":"$.name","change":"remove"}"#),
        &[("missing $.name", CONTACT_SAME)],
    ),
    way(
        "/contacts/1014",
        Differ("v3", "/contacts/1014", r#"{"field":"$.channelsSituation.widget","change":"remove"}"#),
        &[("missing $.channels.widget", CHANNELS)],
    ),
    way(
        "/contacts/1015",
        Differ("v2", "/contacts/1015", r#"{"field":"$","change":{"add":{"nickname":"D"}}}"#),
        &[("missing $.nickname", Unmapped(CONTACTS, CONTACT_ROUTE))],
    ),
    way(
        "/contacts/1016",
        Differ("v2", "/contacts/1016", r#"{"field":"$.channels","change":{"add":{"fax":true}}}"#),
        &[("missing $.channels.fax", Unmapped(CONTACTS, "rename: {channels: {v3: channelsSituation"))],
    ),
    way(
        "/agents/210",
        Differ("v3", "/agents/210", r#"{"field":"$.phone","change":"remove"}"#),
        &[("missing $.phone", AGENT_SAME)],
    ),
    way(
        "/chats/5",
        Differ("v3", "/chats/5", r#"{"field":"$.channels[0]","change":"remove"}"#),
        &[("missing $.channels[0]", CHAT_CHANNELS)],
    ),
    way(
        "/chats/2",
        Differ(
            "v2",
            "/chats/2",
            r#"{"field":"$.channels","change":{"add":{"uuid":"u-1","id":"1","name":"E","type":"Email"}}}"#,
        ),
        &[("missing $.channels[1]", CHAT_CHANNELS)],
    ),
    // More than the reference has.
    way(
        "/contacts/1017",
        Differ("v2", "/contacts/1017", r#"{"field":"$.phone","change":"remove"}"#),
        &[("extra $.phone", CONTACT_SAME)],
    ),
    way(
        "/contacts/1018",
        Differ("v2", "/contacts/1018", r#"{"field":"$.channels.email","change":"remove"}"#),
        &[("extra $.channels.email", CHANNELS)],
    ),
    way(
        "/agents/211",
        Differ("v2", "/agents/211", r#"{"field":"$.login","change":"remove"}"#),
        &[("extra $.login", AGENT_SAME)],
    ),
    way(
        "/chats/7",
        Differ("v2", "/chats/7", r#"{"field":"$.closedAt","change":"remove"}"#),
        &[("extra $.closedAt", CHAT_SAME)],
    ),
    // Elements of lists.
    way(
        "/chats/2/messages",
        Differ("v2", "/chats/2/messages", r#"{"whole":true,"field":"$[2]","change":"remove"}"#),
        &[("extra $[2]", MESSAGE_LIST)],
    ),
    way(
        "/chats/3/messages",
        Differ("v3", "/chats/3/messages", r#"{"whole":true,"field":"$[0]","change":"remove"}"#),
        &[("missing $[0]", MESSAGE_LIST)],
    ),
    way(
        "/chats/6/messages",
        Differ("v2", "/chats/6/messages", r#"{"of":9007199254740998,"field":"$.body","change":{"set":"F"}}"#),
        &[("value $[2].body", Copied(MESSAGES, "body: text"))],
    ),
    way(
        "/chats/7/messages",
        Differ("v3", "/chats/7/messages", r#"{"field":"$.isInternal","change":"retype"}"#),
        &[("type $[0].is_internal", Copied(MESSAGES, "is_internal: isInternal"))],
    ),
    way(
        "/chats/8/messages",
        Differ("v2", "/chats/8/messages", r#"{"field":"$.chat.situation","change":{"set":"gone"}}"#),
        &[("value $[0].chat.situation", MESSAGE_CHAT)],
    ),
    way(
        "/chats/9/messages",
        Differ("v3", "/chats/9/messages", r#"{"field":"$.chat.channel","change":{"set":"G"}}"#),
        &[
            ("value $[0].channel", Copied(MESSAGES, "copy: {v2: {channel: $.chat.channel")),
            ("value $[0].chat.channel", MESSAGE_CHAT),
        ],
    ),
    way(
        "/contacts",
        Differ("v2", "/contacts", r#"{"of":1012,"field":"$.email","change":{"set":"H"}}"#),
        &[("value $[11].email", CONTACT_SAME)],
    ),
    // Order.
    way(
        "/chats/5/messages",
        Differ("v2", "/chats/5/messages", r#"{"whole":true,"field":"$","change":"reverse"}"#),
        &[("order $", MESSAGE_LIST)],
    ),
    way(
        "/agents",
        Differ("v3", "/agents", r#"{"whole":true,"field":"$","change":"reverse"}"#),
        &[("order $", Made(AGENTS, "- pair: {v2: GET /agents, v3: GET /agents, front: v2}"))],
    ),
    // Status, language, and answers that do not come from the service.
    way(
        "/contacts/1019",
        Fault("v3", r#"{"status":{"code":403}}"#),
        &[("status status", Route(CONTACT_ROUTE))],
    ),
    way(
        "/contacts/1020",
        Fault("v2", r#"{"status":{"code":404}}"#),
        &[("status status", Route(CONTACT_ROUTE))],
    ),
    way(
        "/contacts/1021",
        Fault("v3", r#"{"status":{"code":500}}"#),
        &[("status status", Route(CONTACT_ROUTE))],
    ),
    way(
        "/contacts/999001",
        Fault(
            "v3",
            r#"{"status":{"code":404,"body":{"reason":"Não é possível fazer isto: o contato não existe."}}}"#,
        ),
        &[("language $.reason", Route(CONTACT_ROUTE))],
    ),
    way(
        "/contacts/999002",
        Fault("v3", r#"{"status":{"code":404,"body":{"reason":"There is no such contact."}}}"#),
        &[("value $.reason", Route(CONTACT_ROUTE))],
    ),
    way("/contacts/1022", Fault("v3", r#"{"invalid_json":{}}"#), &[("status status", Route(CONTACT_ROUTE))]),
    way(
        "/contacts/1023",
        Fault("v2", r#"{"html":{"status":200}}"#),
        &[
            ("header header content-type", Unmapped(CONTACTS, CONTACT_ROUTE)),
            ("type $", Made(CONTACTS, CONTACT_ROUTE)),
        ],
    ),
    // Listed as lost by the report: v3 has no such field, so that it differs is expected.
    way("/chats/10", Differ("v2", "/chats/10", r#"{"field":"$.siteCustomerId","change":{"set":5}}"#), &[]),
    way(
        "/chats/10/messages",
        Differ("v2", "/chats/10/messages", r#"{"field":"$.eventType","change":{"set":"closed"}}"#),
        &[],
    ),
];

impl Way {
    async fn tell(&self, sandbox: &Sandbox) {
        let (what, rule) = match &self.told {
            Differ(side, path, rest) => {
                let mut rule: Value = serde_json::from_str(rest).expect("a rule is JSON");
                rule["side"] = json!(side);
                rule["path"] = json!(path);
                ("POST differences", rule)
            }
            Fault(side, action) => {
                let action: Value = serde_json::from_str(action).expect("an action is JSON");
                ("POST faults", json!({"side": side, "path": self.path, "action": action}))
            }
        };
        control(sandbox, what, rule).await;
    }

    /// The expected differences, as `kind place: cause`.
    fn wanted(&self, pack: &PackSource) -> Vec<String> {
        self.found.iter().map(|(found, cause)| format!("{found}: {}", cause.text(pack))).collect()
    }
}

impl Cause {
    fn text(&self, pack: &PackSource) -> String {
        match self {
            Made(file, line) => format!("made by {}", place(pack, file, line)),
            Copied(file, line) => format!("copied by {}", place(pack, file, line)),
            Unmapped(file, line) => format!("made by no line; nearest is {}", place(pack, file, line)),
            Route(line) => format!("copied by {}", place(pack, CONTACTS, line)),
        }
    }
}

/// `file:line` of the one line that has this text; with `shape: > text`, of the first that has it
/// within that shape.
fn place(pack: &PackSource, file: &str, text: &str) -> String {
    let (_, content) = pack.files().iter().find(|(name, _)| name == file).expect("a file of the pack");
    let content = String::from_utf8_lossy(content);
    let (shape, text) = text.split_once(" > ").unwrap_or(("", text));
    let begins = content.lines().position(|line| line.trim().starts_with(shape)).unwrap_or_default();
    let within = content.lines().enumerate().skip(begins);
    let mut lines = within.filter(|(_, line)| line.contains(text)).take(if shape.is_empty() { 2 } else { 1 });
    let (at, _) = lines.next().unwrap_or_else(|| panic!("{file} has no line with {text}"));
    assert!(lines.next().is_none(), "{file} has several lines with {text}");
    format!("{file}:{}", at + 1)
}

/// Addresses on which both versions agree.
fn agreed(dice: &mut fastrand::Rng) -> String {
    match dice.u8(0..7) {
        0 | 1 => format!("/chats/{}", dice.u32(61..100)),
        2 => format!("/chats?page={}", dice.u32(0..5)),
        3 => format!("/agents/{}", dice.u32(212..240)),
        4 => format!("/chats/{}", dice.u32(11..60)),
        5 => format!("/chats/{}/messages", dice.u32(11..60)),
        6 => format!("/contacts/{}", dice.u32(900_000..900_100)),
        _ => format!("/contacts/{}", dice.u32(1030..1100)),
    }
}

fn said(comparison: &Comparison) -> Vec<String> {
    let findings = comparison.findings.iter();
    findings.map(|f| unhashed(format!("{} {}: {}", f.kind.word(), f.place, f.cause))).collect()
}

/// Names that are data are shown as hashes, which differ from one gateway to the next.
fn unhashed(said: String) -> String {
    match said.split_once("['#").and_then(|(before, rest)| Some((before, rest.split_once("']")?.1))) {
        Some((before, after)) => format!("{before}['#']{after}"),
        None => said,
    }
}

struct Judge {
    pack: PackSource,
    rules: Rules,
    router: Router,
    redactor: Redactor,
}

impl Judge {
    fn new() -> Judge {
        let pack =
            PackSource::from_dir(&packs::messaging_folder()).expect("the pack lies beside the sources");
        let plans = mapping::compile(&pack).pack.expect("the pack compiles");
        let (rules, router) = (Rules::compile(&plans), Router::new(&plans.directions[0]));
        Judge { pack, rules, router, redactor: Redactor::new(Salt::new([1; 32])) }
    }

    fn compared(&self, path: &str, reference: Answer, candidate: Answer) -> Comparison {
        let below = path.split('?').next().unwrap_or(path);
        let Found::Route { route, .. } = self.router.find(&Method::GET, below) else {
            panic!("no route for {path}")
        };
        let rules = self.rules.of_route(SideId::OLD, route);
        let (noise, limits) = (Noise::default(), Limits::default());
        compare(
            rules,
            &view(reference),
            &Candidate::Answered(view(candidate)),
            &noise,
            &limits,
            &self.redactor,
        )
    }
}

fn view(answer: Answer) -> View {
    let mut headers = HeaderMap::new();
    for (name, value) in answer.head.lines().filter_map(|line| line.split_once(':')) {
        let name = HeaderName::from_bytes(name.trim().as_bytes()).expect("a header name");
        headers.append(name, HeaderValue::from_bytes(value.trim().as_bytes()).expect("a header value"));
    }
    View { status: answer.status, headers, body: BufferedAnswer::whole(answer.body) }
}

async fn ask(address: SocketAddr, token: &str, path: &str) -> Answer {
    let mut client = Client::connect(address).await;
    client
        .send(format!(
            "GET /v2{path} HTTP/1.1\r\nhost: service.test\r\nx-authorization: Bearer {token}\r\n\r\n"
        ))
        .await;
    client.answer().await.expect("an answer")
}

/// A status, a header, a place of the body, as a client of either side sees it. Data that does not
/// reach an answer is compared only by the shadow, under another name.
const BESIDE: &[(&str, &str)] = &[("/contacts/1022", "unanswered answer: the other service")];

/// Calls without an answer, which prove nothing.
const SLOW: &[Way] = &[
    way("/contacts/1024", Fault("v3", r#"{"delay":{"ms":4000}}"#), &[]),
    way("/contacts/1025", Fault("v3", r#"{"truncate":{"bytes":20}}"#), &[]),
];

fn calls() -> usize {
    std::env::var("SWITCHBACK_CORPUS_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(600)
}

/// The path of each call, most of them to addresses on which both sides agree.
fn paths(dice: &mut fastrand::Rng) -> Vec<String> {
    let mut ways = WAYS.iter().cycle();
    // Every ninth call differs, so that each kind of difference repeats.
    let mut path = |call: usize| {
        let way = (call.is_multiple_of(9)).then(|| ways.next()).flatten();
        way.map_or_else(|| agreed(dice), |way| way.path.to_owned())
    };
    (0..calls()).map(&mut path).collect()
}

/// The complete dual run: the old service answers, the shadow calls the new one, compares and
/// records.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shadow_records_every_way_to_differ_and_nothing_else() {
    let pack = PackSource::from_dir(&packs::messaging_folder()).expect("the pack lies beside the sources");
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let account = service.credentials().account("administrator").expect("every sandbox has one");
    let dual = Dual::new();
    let shadow = "phases: { default: shadow }\nshadow: { noise: 0, timeout: 2s, findings: 10000 }\n";
    dual.configure(&service, Upstreams::of(&service), &["administrator"], shadow);
    let gateway = dual.start().await;
    for way in WAYS.iter().chain(SLOW) {
        way.tell(&service).await;
    }
    let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for way in WAYS {
        let beside = BESIDE.iter().find(|(path, _)| *path == way.path);
        let found = beside.map_or_else(|| way.wanted(&pack), |(_, found)| vec![(*found).to_owned()]);
        wanted.insert(way.path.to_owned(), found);
    }
    let mut paths = paths(&mut fastrand::Rng::with_seed(7));
    paths.extend(SLOW.iter().map(|way| way.path.to_owned()));
    let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
    for (call, path) in paths.iter().enumerate() {
        let answer = gateway.ask(account, &format!("GET /v2{path}"), "", "").await;
        assert!(answer.is_some(), "{path}: no answer");
        *asked.entry(path).or_default() += 1;
        // Fewer wait at any time than the queue has room for.
        if call % 100 == 99 {
            gateway.settled(call as u64 - 99).await;
        }
    }
    compared(&gateway, paths.len(), SLOW.len()).await;
    let text = gateway.admin_text("GET /api/diff/export", &Value::Null).await.text();
    let lines = text.split_once("\r\n\r\n").map_or(text.as_str(), |(_, body)| body);
    let mut found: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    for line in lines.lines().filter(|line| !line.is_empty()) {
        let record: Record = serde_json::from_str(line).expect("JSON Lines");
        found.entry(record.target).or_default().push(said(&record.comparison));
    }
    let mut broken = Vec::new();
    for (path, records) in &found {
        let nothing = Vec::new();
        let wanted = wanted.get(path).unwrap_or(&nothing);
        if records.len() != asked[path.as_str()] || records.iter().any(|record| record != wanted) {
            broken.push(format!(
                "{path}, asked {}\n  wanted {wanted:?}\n  found  {records:?}",
                asked[path.as_str()]
            ));
        }
    }
    let unseen = wanted.iter().filter(|(path, wanted)| !wanted.is_empty() && !found.contains_key(*path));
    broken.extend(unseen.map(|(path, _)| format!("{path}: nothing recorded")));
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Waits until so many calls were compared and recorded, and of these so many had no answer.
async fn compared(gateway: &Running, calls: usize, unanswered: usize) {
    eventually("the record is written", async || {
        let (_, report) = gateway.admin("GET /api/diff", &Value::Null).await;
        let operations = report["operations"].as_array().cloned().unwrap_or_default();
        let count =
            |name: &str| operations.iter().filter_map(|one| one["counts"][name].as_u64()).sum::<u64>();
        if count("dropped") > 0 {
            let metrics = gateway.admin_text("GET /metrics", &Value::Null).await.text();
            let dropped: Vec<&str> =
                metrics.lines().filter(|line| line.starts_with(names::SHADOW_DROPPED)).collect();
            panic!("every call is compared: {dropped:#?}");
        }
        let compared = count("equal") + count("different") + count("equal_so_far");
        count("candidate_unanswered") == unanswered as u64 && compared + unanswered as u64 >= calls as u64
    })
    .await;
}

/// The answers of the service and of the gateway to a client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_to_differ_is_found_with_place_kind_and_cause_and_nothing_else_is() {
    let judge = Judge::new();
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let gateway = Serving::before(&service).await;
    let token = &service.credentials().account("administrator").expect("every sandbox has one").v2_token;
    let mut broken = Vec::new();
    let mut check = async |path: &str, wanted: &[String]| {
        let reference = ask(service.address(), token, path).await;
        let candidate = ask(gateway.address, token, path).await;
        let found = said(&judge.compared(path, reference, candidate));
        if found != wanted {
            broken.push(format!("{path}\n  wanted {wanted:?}\n  found  {found:?}"));
        }
    };
    for way in WAYS {
        check(way.path, &[]).await;
    }
    for way in WAYS {
        way.tell(&service).await;
    }
    for path in paths(&mut fastrand::Rng::with_seed(7)) {
        let way = WAYS.iter().find(|way| way.path == path);
        check(&path, &way.map_or_else(Vec::new, |way| way.wanted(&judge.pack))).await;
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
