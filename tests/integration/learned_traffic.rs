//! `switchback learn` where the truth is known: the mapping of a pack is hidden, and learned again from
//! traffic of both versions.

use crate::sandbox::Service;
use http::Method;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use switchback_compiler::diagnostic::{Findings, Sources};
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::PackSource;
use switchback_compiler::yaml::{self, Node};
use switchback_engine::har::{Exchange, Gateway, Request, Response, Shadow, Writer};
use switchback_engine::translate::{self, Event, Next, Reply, Run, Settings};
use switchback_json::Limits;
use switchback_plan::router::{Found, Router};
use switchback_plan::{ExampleKind, Pack, RouteExample, SideId};

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

/// A line of a pack: the types, the places in them, and the name of the conversion.
type Line = ([String; 2], [String; 2], Option<String>);

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

fn lines_of(shape: &Node, sides: &[&str; 2]) -> Vec<([String; 2], Option<String>)> {
    let bare = |place: &str| place.trim_start_matches("$.").to_owned();
    let mut lines = Vec::new();
    for place in shape.get("same").and_then(Node::as_seq).unwrap_or_default().iter().filter_map(Node::as_str)
    {
        lines.push(([bare(place), bare(place)], None));
    }
    for (old, new) in shape.get("rename").and_then(Node::as_map).unwrap_or_default() {
        let place = new.as_str().or_else(|| new.get(sides[1]).and_then(Node::as_str)).expect("a place");
        let first = |node: &Node| node.as_seq().map_or_else(|| node.clone(), |items| items[0].clone());
        let how = new.get("as").map(first).map(|how| match how.as_map() {
            Some(entries) => entries[0].0.name.clone(),
            None => how.as_str().expect("a name").to_owned(),
        });
        lines.push(([bare(&old.name), bare(place)], how));
    }
    let copies = shape.get("copy").and_then(|copy| copy.get(sides[0])).and_then(Node::as_map);
    for (old, new) in copies.unwrap_or_default() {
        lines.push(([bare(&old.name), bare(new.as_str().expect("a place"))], None));
    }
    lines
}

/// The lines that were learned, of one confidence or of members that are the same.
fn learned(report: &Value, confidence: &str) -> Vec<Line> {
    let texts = |value: &Value| [0, 1].map(|at: usize| value[at].as_str().expect("a text").to_owned());
    let list = |name: &str| report[name].as_array().expect("a list").clone();
    if confidence == "same" {
        let place = |one: &Value| one["place"].as_str().expect("a place").to_owned();
        return list("same")
            .iter()
            .map(|one| (texts(&one["types"]), [place(one), place(one)], None))
            .collect();
    }
    let name = |how: &Value| {
        how.as_str().map(|how| how.trim_start_matches('{').split(':').next().unwrap_or_default().to_owned())
    };
    let of = list("lines");
    let of = of.iter().filter(|line| line["confidence"] == confidence);
    of.map(|line| (texts(&line["types"]), texts(&line["places"]), name(&line["as"]))).collect()
}

/// What was learned, held against the truth.
#[derive(Debug, Default)]
struct Score {
    /// Lines of the truth whose types were seen, and those that were found.
    seen: usize,
    found: usize,
    /// The same for lines with another place or a conversion.
    renames: usize,
    renames_found: usize,
    sure: Vec<Line>,
    sure_wrong: Vec<Line>,
    likely_wrong: Vec<Line>,
    missing: Vec<Line>,
}

fn score(truth: &BTreeSet<Line>, report: &Value) -> Score {
    let [sure, likely, same] = ["sure", "likely", "same"].map(|confidence| learned(report, confidence));
    let all: BTreeSet<&Line> = sure.iter().chain(&likely).chain(&same).collect();
    let types: BTreeSet<&[String; 2]> = all.iter().map(|line| &line.0).collect();
    let mut score = Score { sure: sure.clone(), ..Score::default() };
    let mut places: BTreeMap<(&[String; 2], &String), Vec<&Line>> = BTreeMap::new();
    for line in truth {
        places.entry((&line.0, &line.1[0])).or_default().push(line);
    }
    for ((of, _), lines) in &places {
        if !types.contains(of) {
            continue;
        }
        // Shapes of the same types may differ in how they write a member.
        let is_found = lines.iter().any(|line| all.contains(*line));
        let is_rename = lines.iter().all(|line| line.1[0] != line.1[1] || line.2.is_some());
        score.seen += 1;
        score.found += usize::from(is_found);
        score.renames += usize::from(is_rename);
        score.renames_found += usize::from(is_rename && is_found);
        score.missing.extend((!is_found).then(|| lines[0].clone()));
    }
    let is_wrong = |line: &&Line| {
        let known = places.keys().any(|(of, _)| **of == line.0);
        known && !truth.iter().any(|one| one.0 == line.0 && one.1 == line.1)
    };
    score.sure_wrong = sure.iter().filter(is_wrong).cloned().collect();
    score.likely_wrong = likely.iter().filter(is_wrong).cloned().collect();
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

/// Reads the same resources through both versions.
async fn read_everything(file: &Path) {
    let service = Service::start().await;
    let account = service.account("administrator");
    let (v2, v3) = (format!("Bearer {}", account.v2_token), format!("Bearer {}", account.access_token));
    let mut writer = Writer::new(File::create(file).expect("a file")).expect("an archive");
    let mut ids: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut read = async |target: String| {
        let mut answers = Vec::new();
        for (side, header, token) in [("v2", "x-authorization", &v2), ("v3", "authorization", &v3)] {
            let answer = service.send(Method::GET, &format!("/{side}{target}"), &[(header, token)], "").await;
            let answer = answer.expect("an answer");
            let url = format!("https://service.example/{side}{target}");
            writer.entry(&entry(url, answer.status.as_u16(), answer.bytes.to_vec())).expect("it is written");
            answers.push(answer);
        }
        answers.remove(0)
    };
    for list in ["agents", "contacts", "chats"] {
        for page in 0..5 {
            let answer = read(format!("/{list}?page={page}")).await.expect(200);
            let found = answer.as_array().expect("a list").iter().map(|one| one["id"].to_string());
            ids.entry(list).or_default().extend(found.map(|id| id.trim_matches('"').to_owned()));
        }
    }
    for (list, ids) in ids {
        for id in ids {
            read(format!("/{list}/{id}")).await;
            if list == "chats" {
                read(format!("/{list}/{id}/messages")).await;
            }
        }
    }
    writer.finish().expect("it is written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hidden_mapping_of_the_messaging_pack_is_learned_from_traffic_of_both_versions() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = folder.path().join("traffic.har");
    read_everything(&archive).await;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging");
    let pack = draft(&source, ["v2", "v3"], folder.path());
    succeed(&["learn", path(&pack), "--har", path(&archive)]);
    let findings = report(&pack);
    let score = score(&truth(&source, ["v2", "v3"]), &findings);
    assert!(score.found * 10 >= score.seen * 7, "{score:#?}");
    assert!(score.renames_found * 10 >= score.renames * 7, "{score:#?}");
    assert_eq!(score.sure_wrong, [], "{score:#?}");
    assert!(score.sure.len() >= 9, "{score:#?}");
    let guesses = findings["guesses"].as_array().expect("a list");
    assert!(guesses.iter().any(|guess| guess["holds"] == true), "{guesses:#?}");

    // What is sure is written, and the draft still compiles with it.
    let before = succeed(&["report", path(&pack)]);
    // A line for types that no route relates is not written, which the exit code says.
    let (code, said) = run(&["learn", path(&pack), "--har", path(&archive), "--accept", "sure"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("map.yaml: changed"), "{said}");
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
        let score = score(&truth(&source, [&sides[0], &sides[1]]), &report(&hidden));
        assert!(score.found >= least && score.found * 10 >= score.seen * 7, "{name}: {score:#?}");
        assert_eq!(score.sure_wrong, [], "{name}: {score:#?}");
    }
}
