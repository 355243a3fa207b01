//! `switchback learn` where the truth is known: the mapping of a pack is hidden, and learned again from
//! traffic of both versions.

use crate::sandbox::Service;
use crate::support::dual::{ADMIN_TOKEN, Dual, Upstreams, administrator, request};
use crate::support::program::Program;
use crate::support::raw::exchange;
use http::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use switchback_compiler::contract::{Contracts, Type, TypeKind, Types};
use switchback_compiler::diagnostic::{Findings, Sources};
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::PackSource;
use switchback_compiler::yaml::{self, Node};
use switchback_engine::har::{self, Exchange, Gateway, Request, Response, Shadow, Writer};
use switchback_engine::translate::{self, Event, Next, Reply, Run, Settings};
use switchback_json::Limits;
use switchback_plan::router::{Found, Router};
use switchback_plan::{ExampleKind, Pack, RouteExample, SideId};
use switchback_sandbox::{Options, Sandbox};

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_switchback")).args(arguments).output();
    let output = output.expect("the binary of this build starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

fn succeed(arguments: &[&str]) -> String {
    let (code, text) = run(arguments);
    assert_eq!(code, Some(0), "{arguments:?}\n{text}");
    text
}

fn path(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

/// A line of a pack: the types, the places in them, and the names of the conversions, in their order.
type Line = ([String; 2], [String; 2], Vec<String>);

/// The lines of all shapes of a pack, with those that they include.
fn truth(folder: &Path, sides: [&str; 2]) -> BTreeSet<Line> {
    let mut shapes: BTreeMap<String, Node> = BTreeMap::new();
    for file in fs::read_dir(folder).expect("a pack") {
        let file = file.expect("an entry").path();
        if path(&file).ends_with(".map.yaml") {
            let (mut sources, mut findings) = (Sources::new(), Findings::new());
            let text = fs::read(&file).expect("a file");
            let root = yaml::parse(&mut sources, path(&file), &text, &mut findings).expect("YAML");
            for (name, shape) in root.get("shapes").and_then(Node::as_map).unwrap_or_default() {
                shapes.insert(name.name.clone(), shape.clone());
            }
        }
    }
    let mut lines = BTreeSet::new();
    for shape in shapes.values() {
        let types = sides.map(|side| shape.get("of").and_then(|of| of.get(side)).and_then(Node::as_str));
        let [Some(old), Some(new)] = types else { continue };
        let types = [old.to_owned(), new.to_owned()];
        let mut from = Some(shape);
        while let Some(shape) = from {
            lines.extend(
                lines_of(shape, &sides).into_iter().map(|(places, how)| (types.clone(), places, how)),
            );
            from = shape.get("like").and_then(Node::as_str).map(|name| &shapes[name]);
        }
    }
    lines
}

fn lines_of(shape: &Node, sides: &[&str; 2]) -> Vec<([String; 2], Vec<String>)> {
    let bare = |place: &str| place.trim_start_matches("$.").to_owned();
    let mut lines = Vec::new();
    for place in shape.get("same").and_then(Node::as_seq).unwrap_or_default().iter().filter_map(Node::as_str)
    {
        lines.push(([bare(place), bare(place)], Vec::new()));
    }
    let name = |how: &Node| match how.as_map() {
        Some(entries) => entries[0].0.name.clone(),
        None => how.as_str().expect("a name").to_owned(),
    };
    for (old, new) in shape.get("rename").and_then(Node::as_map).unwrap_or_default() {
        let place = new.as_str().or_else(|| new.get(sides[1]).and_then(Node::as_str)).expect("a place");
        let chain = new.get("as").map(|how| match how.as_seq() {
            Some(all) => all.iter().map(name).collect(),
            None => vec![name(how)],
        });
        lines.push(([bare(&old.name), bare(place)], chain.unwrap_or_default()));
    }
    let copies = shape.get("copy").and_then(|copy| copy.get(sides[0])).and_then(Node::as_map);
    for (old, new) in copies.unwrap_or_default() {
        lines.push(([bare(&old.name), bare(new.as_str().expect("a place"))], Vec::new()));
    }
    lines
}

/// The lines that were learned, of one confidence or of members that are the same.
fn learned(report: &Value, confidence: &str) -> Vec<Line> {
    let texts = |value: &Value| [0, 1].map(|at: usize| value[at].as_str().expect("a text").to_owned());
    let list = |name: &str| report[name].as_array().expect("a list").clone();
    if confidence == "same" {
        let place = |one: &Value| one["place"].as_str().expect("a place").to_owned();
        let line = |one: &Value| (texts(&one["types"]), [place(one), place(one)], Vec::new());
        return list("same").iter().map(line).collect();
    }
    let name = |how: &Value| {
        how.as_str().map(|how| how.trim_start_matches('{').split(':').next().unwrap_or_default().to_owned())
    };
    let of = list("lines");
    let of = of.iter().filter(|line| line["confidence"] == confidence);
    of.map(|line| (texts(&line["types"]), texts(&line["places"]), name(&line["as"]).into_iter().collect()))
        .collect()
}

/// The names of the types whose objects are in the messages of an archive, by side.
fn seen_types(archive: &Path, contracts: &Contracts) -> [BTreeSet<String>; 2] {
    let mut found = [BTreeSet::new(), BTreeSet::new()];
    let mut add = |side: usize, target: &str, call: &Exchange, has_answer: bool| {
        let path = target.split('?').next().unwrap_or_default();
        let method = call.request.method.parse().expect("a method");
        let Some(operation) = contracts[side].find_path(&method, path) else { return };
        let Some(response) = &call.response else { return };
        let parse = |body: &har::Body| body.bytes().and_then(|text| serde_json::from_slice(&text).ok());
        let types = &contracts[side].types;
        if let (Some(body), Some(sent)) = (&operation.body, parse(&call.request.body)) {
            collect_types(types, &body.ty, &sent, &mut found[side]);
        }
        let declared = operation.response(response.status).and_then(|one| one.body.as_ref());
        if let (Some(ty), Some(answer), true) = (declared, parse(&response.body), has_answer) {
            collect_types(types, ty, &answer, &mut found[side]);
        }
    };
    let read = har::parse(File::open(archive).expect("an archive"), |entry| {
        let exchange = entry.expect("an entry");
        match &exchange.gateway {
            Some(known) => {
                let side = usize::from(known.side != contracts[0].name);
                add(side, &known.target, &exchange, known.outcome == "forwarded");
                known.calls.iter().for_each(|call| add(1 - side, &call.request.url, call, true));
            }
            None => {
                let mut ends =
                    contracts.iter().map(|one| exchange.request.url.split_once(&format!("/{}/", one.name)));
                let side = ends.clone().position(|end| end.is_some()).expect("the name of a side");
                let (_, target) = ends.nth(side).flatten().expect("it was found");
                add(side, &format!("/{target}"), &exchange, true);
            }
        }
    });
    read.expect("an archive");
    found
}

fn collect_types(types: &Types, ty: &Type, value: &Value, found: &mut BTreeSet<String>) {
    if let (TypeKind::Named(reference), true) = (&ty.kind, value.is_object()) {
        found.insert(reference.name.to_string());
    }
    let known = types.at(ty);
    if let (Some(items), Some(values)) = (known.items(), value.as_array()) {
        values.iter().for_each(|value| collect_types(types, items.ty, value, found));
    }
    if let (Some(object), Some(members)) = (known.object(), value.as_object()) {
        for (name, value) in members {
            if let Some(field) = object.field(name) {
                collect_types(types, &field.ty, value, found);
            }
        }
    }
}

/// The lines that were learned, compared with the truth.
#[derive(Debug, Default)]
struct Score {
    /// Lines of the truth whose two types were in the traffic, and those that were found.
    seen: usize,
    found: usize,
    /// The same for lines with another place or a conversion.
    renames: usize,
    renames_found: usize,
    sure: usize,
    sure_wrong: Vec<Line>,
    likely_wrong: Vec<Line>,
    missing: Vec<Line>,
}

/// Whether a learned line says the same as one of the truth: the same types and places, with
/// - the same conversion, or none;
/// - one conversion of a chain, such as `pairs` of `[empty_is_array, pairs]`;
/// - no conversion where the truth reads integers from texts for some clients (`integer`).
///
/// `copy:` of the truth is a line as any other.
fn is_same(learned: &Line, truth: &Line) -> bool {
    let is_alike = match learned.2.as_slice() {
        [] => truth.2.is_empty() || truth.2 == ["integer"],
        [how] => truth.2.contains(how),
        _ => false,
    };
    learned.0 == truth.0 && learned.1 == truth.1 && is_alike
}

fn score(name: &str, truth: &BTreeSet<Line>, report: &Value, seen: &[BTreeSet<String>; 2]) -> Score {
    let [sure, likely, same] = ["sure", "likely", "same"].map(|confidence| learned(report, confidence));
    let all: Vec<&Line> = sure.iter().chain(&likely).chain(&same).collect();
    let mut score = Score { sure: sure.len(), ..Score::default() };
    let mut places: BTreeMap<(&[String; 2], &String), Vec<&Line>> = BTreeMap::new();
    for line in truth {
        places.entry((&line.0, &line.1[0])).or_default().push(line);
    }
    for ((types, _), lines) in &places {
        if !(0..2).all(|side| seen[side].contains(&types[side])) {
            continue;
        }
        // Shapes of the same types may differ in how they write a member.
        let is_found = lines.iter().any(|line| all.iter().any(|found| is_same(found, line)));
        let is_rename = lines.iter().all(|line| line.1[0] != line.1[1] || !line.2.is_empty());
        score.seen += 1;
        score.found += usize::from(is_found);
        score.renames += usize::from(is_rename);
        score.renames_found += usize::from(is_rename && is_found);
        score.missing.extend((!is_found).then(|| lines[0].clone()));
    }
    let is_wrong = |line: &&Line| !truth.iter().any(|known| is_same(line, known));
    score.sure_wrong = sure.iter().filter(is_wrong).cloned().collect();
    score.likely_wrong = likely.iter().filter(is_wrong).cloned().collect();
    println!(
        "{name}: {} of {} lines found ({} %), {} of {} renames; {} sure, {} of them wrong; {} of {} likely wrong",
        score.found,
        score.seen,
        score.found * 100 / score.seen.max(1),
        score.renames_found,
        score.renames,
        score.sure,
        score.sure_wrong.len(),
        score.likely_wrong.len(),
        likely.len(),
    );
    score
}

fn entry(url: String, status: u16, body: Vec<u8>) -> Exchange {
    Exchange {
        request: Request { method: "GET".to_owned(), url, ..Request::default() },
        response: Some(Response { status, headers: Vec::new(), body: bytes::Bytes::from(body).into() }),
        ..Exchange::default()
    }
}

fn report(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("LEARNED.json")).expect("the findings are written");
    serde_json::from_str(&text).expect("JSON")
}

/// Drafts a pack from the contracts of another one, without its mapping.
fn draft(source: &Path, sides: [&str; 2], folder: &Path) -> PathBuf {
    let documents = sides.map(|side| {
        let document = folder.join(format!("api-{side}.yaml"));
        let contract = source.join(format!("contracts/{side}.openapi.yaml"));
        fs::copy(contract, &document).expect("a contract");
        document
    });
    let pack = folder.join("pack");
    succeed(&["init", path(&documents[0]), path(&documents[1]), path(&pack)]);
    pack
}

/// Archived calls of an account through both versions.
struct BothVersions {
    service: Service,
    writer: Writer<File>,
}

impl BothVersions {
    async fn call(&mut self, side: &str, method: Method, target: &str, body: &Value) -> Value {
        let account = self.service.account("administrator");
        let (field, token) = match side {
            "v2" => ("x-authorization", &account.v2_token),
            _ => ("authorization", &account.access_token),
        };
        let sent = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let (token, address) = (format!("Bearer {token}"), format!("/{side}{target}"));
        let answer = self.service.send(method.clone(), &address, &[(field, &token)], sent.clone()).await;
        let answer = answer.expect("an answer");
        let url = format!("https://service.example/{side}{target}");
        let mut call = entry(url, answer.status.as_u16(), answer.bytes.to_vec());
        call.request.method = method.to_string();
        if !sent.is_empty() {
            call.request.headers.push(("content-type".to_owned(), "application/json".to_owned()));
            call.request.body = bytes::Bytes::from(sent).into();
        }
        self.writer.entry(&call).expect("it is written");
        if answer.status.is_success() { answer.json() } else { Value::Null }
    }

    /// Reads through both versions.
    async fn read(&mut self, target: &str) -> Value {
        self.call("v3", Method::GET, target, &Value::Null).await;
        self.call("v2", Method::GET, target, &Value::Null).await
    }

    /// Returns the ids of all resources of a list.
    async fn list(&mut self, list: &str) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        for page in 0..5 {
            let answer = self.read(&format!("/{list}?page={page}")).await;
            let found = answer.as_array().expect("a list").iter().map(|one| one["id"].to_string());
            ids.extend(found.map(|id| id.trim_matches('"').to_owned()));
        }
        ids
    }
}

/// Clients of both versions write to different resources, and read all of them.
async fn write_and_read_everything(file: &Path) {
    let writer = Writer::new(File::create(file).expect("a file")).expect("an archive");
    let mut both = BothVersions { service: Service::start().await, writer };
    for n in 0..14 {
        let contact = json!({"name": format!("New {n}"), "email": format!("new{n}@example.com"), "phone": format!("55119{:08}", n)});
        both.call("v2", Method::POST, "/contacts", &contact).await;
        let invite = json!({"email": format!("agent{n}@example.com"), "type": 2, "maxChats": 3});
        both.call(["v2", "v3"][n % 2], Method::POST, "/agents", &invite).await;
    }
    let contacts = both.list("contacts").await;
    for (n, id) in contacts.iter().enumerate() {
        let text = |word: &str| format!("{word} {n}");
        let edit = json!({
            "name": text("Name"), "email": format!("edit{n}@example.com"), "phone": format!("55118{:08}", n),
            "mobile": format!("55117{:08}", n), "address": text("Street"), "city": text("City"),
            "district": text("District"), "state": text("State"), "obs": text("Note"),
        });
        both.call(["v2", "v3"][n % 2], Method::PUT, &format!("/contacts/{id}"), &edit).await;
    }
    for (n, id) in both.list("chats").await.iter().enumerate() {
        let message = json!({"text": format!("Message number {n}"), "isInternal": n % 3 == 0});
        both.call(["v2", "v3"][n % 2], Method::POST, &format!("/chats/{id}/messages"), &message).await;
    }
    for list in ["agents", "contacts", "chats"] {
        for id in both.list(list).await {
            both.read(&format!("/{list}/{id}")).await;
            if list == "chats" {
                both.read(&format!("/{list}/{id}/messages")).await;
            }
        }
    }
    both.writer.finish().expect("it is written");
}

fn messaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging")
}

fn contracts(pack: &Path) -> Contracts {
    compile(&PackSource::from_dir(pack).expect("a pack")).contracts.expect("two contracts")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hidden_mapping_of_the_messaging_pack_is_learned_from_traffic_of_both_versions() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = folder.path().join("traffic.har");
    write_and_read_everything(&archive).await;
    let source = messaging();
    let pack = draft(&source, ["v2", "v3"], folder.path());
    succeed(&["learn", path(&pack), "--har", path(&archive)]);
    let findings = report(&pack);
    let seen = seen_types(&archive, &contracts(&source));
    let score = score("messaging", &truth(&source, ["v2", "v3"]), &findings, &seen);
    assert!(score.found * 10 >= score.seen * 7, "{score:#?}");
    assert!(score.renames_found * 10 >= score.renames * 7, "{score:#?}");
    assert_eq!(score.sure_wrong, [], "{score:#?}");
    assert!(score.sure >= 6, "{score:#?}");
    let guesses = findings["guesses"].as_array().expect("a list");
    assert!(guesses.iter().any(|guess| guess["holds"] == true), "{guesses:#?}");
    // The lists of the draft have the same ranking.
    let decisions = fs::read_to_string(pack.join("DECISIONS.md")).expect("a list");
    assert!(decisions.contains(" calls, 1 client."), "{decisions}");
    // The decision that most calls wait for comes first.
    let ranked = findings["decisions"].as_array().expect("a list");
    let calls: Vec<u64> = ranked.iter().filter_map(|one| one["calls"].as_u64()).collect();
    assert!(calls.is_sorted_by(|a, b| a >= b) && calls.first().is_some_and(|most| *most > 0), "{ranked:#?}");

    // Sure lines are written, and the draft still compiles with them. Those of a shape whose required
    // members have no counterpart yet are not, and the exit code says so.
    let before = succeed(&["report", path(&pack)]);
    let (code, said) = run(&["learn", path(&pack), "--har", path(&archive), "--accept", "sure"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("map.yaml: changed") && said.contains("3 lines written"), "{said}");
    assert_eq!(said.matches("is required and has no counterpart yet").count(), 3, "{said}");
    assert!(succeed(&["check", path(&pack)]).contains("0 errors"));
    assert_ne!(succeed(&["report", path(&pack)]), before);
    let (code, said) = run(&["learn", path(&pack), "--har", path(&archive), "--accept", "no-such-line"]);
    assert!(code == Some(3) && said.contains("`no-such-line` is no line of LEARNED.md"), "{said}");

    // Without documents, the traffic is the document.
    let bare = folder.path().join("bare");
    let said = succeed(&["learn", path(&bare), "--har", path(&archive), "--sides", "v2,v3"]);
    let next = said.split("next: switchback ").nth(1).expect("the next command is printed").trim();
    succeed(&next.split(' ').collect::<Vec<_>>());
    assert!(succeed(&["check", path(&bare)]).contains("0 errors"), "{said}");
    let said = succeed(&["learn", path(&bare), "--har", path(&archive)]);
    assert!(!said.contains(": 0 sure lines"), "{said}");
}

/// The pairs of a dual run, as the gateway itself captures them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_capture_of_the_gateway_in_a_dual_run_is_learned_from() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let shadow = "phases: { default: shadow }\nshadow: { noise: 0, timeout: 5s }\n";
    dual.configure(&service, Upstreams::of(&service), &["administrator"], shadow);
    let gateway = dual.started().await;
    let archive = dual.folder.path().join("traffic.har");
    let admin = format!("http://{}", gateway.admin);
    let arguments = ["capture", "--admin", &admin, "--token", "env:ADMIN", "--out", path(&archive)];
    let capturing = Program::start(&arguments, &[("ADMIN", ADMIN_TOKEN)]);
    gateway.program.stderr_until("a capture of traffic begins");
    let account = administrator(&service);
    let mut count = 0;
    let mut read = async |target: String| {
        let answer = exchange(gateway.address, request(account, &format!("GET /v2{target}"), "", "")).await;
        count += 1;
        serde_json::from_slice::<Value>(&answer.expect("an answer").body).expect("JSON")
    };
    for list in ["agents", "contacts", "chats"] {
        let entries = read(format!("/{list}")).await;
        for id in entries.as_array().expect("a list").iter().map(|one| one["id"].to_string()) {
            let id = id.trim_matches('"');
            read(format!("/{list}/{id}")).await;
            if list == "chats" {
                read(format!("/chats/{id}/messages")).await;
            }
        }
    }
    gateway.settled(count).await;
    capturing.signal("INT");
    let (status, said) = tokio::task::spawn_blocking(|| capturing.ended()).await.expect("it ends");
    assert!(status.success() && said.contains(&format!("{count} exchanges")), "{status} {said}");

    // Without a draft in the folder, the contracts of the pack are enough.
    let pack = dual.folder.path().join("pack");
    for folder in ["", "contracts"] {
        fs::create_dir_all(pack.join(folder)).expect("a folder");
        for file in fs::read_dir(messaging().join(folder)).expect("a pack").map(|file| file.expect("a file"))
        {
            if file.path().is_file() {
                fs::copy(file.path(), pack.join(folder).join(file.file_name())).expect("it is copied");
            }
        }
    }
    succeed(&["learn", path(&pack), "--har", path(&archive)]);
    let (findings, seen) = (report(&pack), seen_types(&archive, &contracts(&pack)));
    let score = score("capture", &truth(&pack, ["v2", "v3"]), &findings, &seen);
    assert!(score.found * 10 >= score.seen * 7, "{score:#?}");
    assert_eq!(score.sure_wrong, [], "{score:#?}");
    assert_eq!(findings["calls"][0], json!(count), "{findings:#}");
    let most = &findings["operations"][0];
    assert!(most["calls"].as_u64() > Some(10) && most["clients"] == 1, "{most}");
    // Masks are equal or not. They are no values of a table or a template.
    assert!(!findings["lines"].to_string().contains("***"), "{findings:#}");
}

/// Three thousand pages of both versions, 48 MB: what is kept of them is bounded.
#[test]
fn a_large_archive_is_read_in_bounded_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = folder.path().join("traffic.har");
    let mut writer = Writer::new(File::create(&archive).expect("a file")).expect("an archive");
    for page in 0..1_500 {
        let items = |side: usize| -> Vec<Value> {
            let item = |n: usize| {
                let id = page * 20 + n;
                let [name, at] = [["name", "fullName"], ["at", "createdAt"]].map(|names| names[side]);
                let texts =
                    (0..12).map(|m| (format!("text{m}"), json!(format!("a longer text {m} of {id}"))));
                let mut item: serde_json::Map<String, Value> = texts.collect();
                item.insert("id".to_owned(), json!(id));
                item.insert(name.to_owned(), json!(format!("n{id}")));
                item.insert(at.to_owned(), json!(1_700_000_000 + id));
                Value::Object(item)
            };
            (0..20).map(item).collect()
        };
        for (at, side) in ["v1", "v2"].into_iter().enumerate() {
            let url = format!("https://service.example/{side}/things?page={page}");
            let body = serde_json::to_vec(&items(at)).expect("JSON");
            writer.entry(&entry(url, 200, body)).expect("it is written");
        }
    }
    writer.finish().expect("it is written");
    let learned = folder.path().join("learned");
    let started = std::time::Instant::now();
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 400000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_switchback"), "learn"]);
    let output = limited.args([path(&learned), "--har", path(&archive), "--sides", "v1,v2"]).output();
    let output = output.expect("a shell starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let megabytes = fs::metadata(&archive).expect("an archive").len() / 1_000_000;
    println!("{megabytes} MB, 3,000 exchanges: {:.1} s", started.elapsed().as_secs_f64());
    let lines: Vec<String> =
        self::learned(&report(&learned), "sure").into_iter().map(|line| line.1.join(" is ")).collect();
    assert_eq!(lines, ["at is createdAt", "name is fullName"]);
}

/// A deterministic variation of a reply: numbers and texts change with the seed, equal texts equally, and
/// values of an enumeration become other values of it. `name` is the member's.
fn vary(value: &Value, name: &str, seed: u64, enumerations: &[Vec<String>]) -> Value {
    let hash = |text: &str| {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, step) >> 20
    };
    match value {
        Value::Bool(_) => Value::Bool(hash(name) % 2 == 0),
        Value::Number(number) if number.is_i64() => Value::from(hash(name) % 1_000_000_000),
        Value::String(text) => match enumerations.iter().find(|values| values.contains(text)) {
            Some(values) => Value::from(values[hash(name) as usize % values.len()].clone()),
            None if text.chars().all(|c| c.is_ascii_digit()) => {
                Value::from(format!("{}", 1_000 + hash(text) % 1_000_000_000))
            }
            None => Value::from(format!("{text}{seed}")),
        },
        Value::Array(items) => items.iter().map(|item| vary(item, name, seed, enumerations)).collect(),
        Value::Object(members) => {
            let vary =
                |(name, value): (&String, &Value)| (name.clone(), vary(value, name, seed, enumerations));
            Value::Object(members.iter().map(vary).collect())
        }
        other => other.clone(),
    }
}

/// The enumerations of both contracts of a pack.
fn enumerations(folder: &Path) -> Vec<Vec<String>> {
    fn collect(node: &Node, found: &mut Vec<Vec<String>>) {
        for (key, value) in node.as_map().unwrap_or_default() {
            match value.as_seq() {
                Some(values) if key.name == "enum" => {
                    found.push(values.iter().filter_map(Node::as_str).map(str::to_owned).collect());
                }
                _ => collect(value, found),
            }
        }
        node.as_seq().unwrap_or_default().iter().for_each(|item| collect(item, found));
    }
    let mut found = Vec::new();
    for file in fs::read_dir(folder.join("contracts")).expect("contracts") {
        let (mut sources, mut findings) = (Sources::new(), Findings::new());
        let text = fs::read(file.expect("an entry").path()).expect("a file");
        collect(&yaml::parse(&mut sources, "x", &text, &mut findings).expect("YAML"), &mut found);
    }
    found
}

/// An example of a read as a recorded dual run: the replies vary with the seed, and the old answer is
/// the one that the pack makes of them.
fn dual_run(pack: &Arc<Pack>, example: &RouteExample, seed: u64, lists: &[Vec<String>]) -> Option<Exchange> {
    let router = Router::new(&pack.directions[SideId::OLD]);
    let (path, query) = example.target.split_once('?').unwrap_or((&example.target, ""));
    let Found::Route { route, values } = router.find(&example.method, path) else { return None };
    let path = values.into_iter().map(|value| value.into_owned()).collect();
    let query = Some(query.to_owned());
    let request = translate::Request { path, query, ..translate::Request::default() };
    let settings = Settings::new(pack, &switchback_json::Value::from(&serde_json::json!({}))).ok()?;
    let (pack, settings) = (Arc::clone(pack), Arc::new(settings));
    let mut run = Run::new(pack, SideId::OLD, route, request, settings, Limits::DOCUMENT);
    let (mut event, mut calls) = (Event::Start, Vec::new());
    loop {
        event = match run.next(event).ok()? {
            Next::Call(call) => {
                let known = example.exchange.calls.get(calls.len()).filter(|known| known.status == 200)?;
                let body: Value = serde_json::from_slice(known.reply.as_ref()?).ok()?;
                let body = serde_json::to_vec(&vary(&body, "", seed, lists)).expect("JSON");
                calls.push(entry(call.target, 200, body.clone()));
                let headers = [(http::header::CONTENT_TYPE, "application/json".parse().expect("a value"))];
                Event::Reply(Reply { status: 200, headers: headers.into_iter().collect(), body: body.into() })
            }
            Next::Answer(answer) if answer.status == 200 => {
                let shadow = Some(Shadow::Answered {
                    answer: Response { status: 200, ..Response::default() },
                    masked: Vec::new(),
                });
                let gateway = Gateway {
                    side: "old".to_owned(),
                    target: example.target.clone(),
                    client: "app".to_owned(),
                    outcome: "forwarded".to_owned(),
                    shadow,
                    calls,
                    ..Gateway::default()
                };
                let body = answer.body?.to_vec();
                return Some(Exchange { gateway: Some(gateway), ..entry(example.target.clone(), 200, body) });
            }
            _ => return None,
        };
    }
}

#[test]
fn the_hidden_mappings_of_other_packs_are_learned_from_their_dual_runs() {
    for (name, least) in [("tickets", 3), ("tweets", 14), ("sendgrid", 0)] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings").join(name);
        let compiled = compile(&PackSource::from_dir(&source).expect("a pack"));
        let (pack, lists) = (compiled.pack.expect("it compiles"), enumerations(&source));
        let sides = pack.sides.each_ref().map(|side| side.name.clone());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let archive = folder.path().join("traffic.har");
        let mut writer = Writer::new(File::create(&archive).expect("a file")).expect("an archive");
        for example in &pack.examples {
            let ExampleKind::Route(example) = &example.kind else { continue };
            if example.serves != SideId::OLD || example.method != Method::GET {
                continue;
            }
            for mut exchange in (0..60).filter_map(|seed| dual_run(&pack, example, seed, &lists)) {
                exchange.gateway.as_mut().expect("it is set").side.clone_from(&sides[0]);
                writer.entry(&exchange).expect("it is written");
            }
        }
        writer.finish().expect("it is written");
        let hidden = draft(&source, [&sides[0], &sides[1]], folder.path());
        succeed(&["learn", path(&hidden), "--har", path(&archive)]);
        let seen = seen_types(&archive, &contracts(&source));
        let score = score(name, &truth(&source, [&sides[0], &sides[1]]), &report(&hidden), &seen);
        assert!(score.found >= least && score.found * 10 >= score.seen * 7, "{name}: {score:#?}");
        assert_eq!(score.sure_wrong, [], "{name}: {score:#?}");
    }
}
