//! The identity law: a pack that `init` drafts from a document and the same document again serves
//! every operation, and changes no request and no answer.
//!
//! The answers are those that the document declares, and those that services send beside their
//! documents: bodies that it does not describe, statuses that it does not list.

use crate::support::program::Program;
use crate::support::raw::{Act, Answer, Client, Seen, Upstream};
use crate::support::serving;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use switchback_compiler::contract::{
    Contract, Media, Operation, Parameter, ParameterForm, Response, Scalar, StatusPattern, TypeKind,
    alternatives_of, breaches, sample,
};
use switchback_compiler::mapping::{contracts, load::PackSource};
use switchback_gateway::store::seal::SealingKey;
use switchback_json::Limits;
use tempfile::TempDir;

/// A document that would be written differently, and is of no contract.
const XML: &str = "<?xml version='1.0'?>\n<a b='1'><!-- c --></a>";
const TOKEN: &str = "token-of-a-client";

/// One answer of the service.
struct Case {
    status: u16,
    media: &'static str,
    body: String,
    more: &'static str,
}

impl Case {
    fn new(status: u16, media: &'static str, body: &str) -> Case {
        Case { status, media, body: body.to_owned(), more: "" }
    }

    fn bytes(&self) -> Vec<u8> {
        let named = match self.media {
            "" => String::new(),
            media => format!("content-type: {media}\r\n"),
        };
        let length = match self.status {
            204 => String::new(),
            _ => format!("content-length: {}\r\n", self.body.len()),
        };
        format!("HTTP/1.1 {} X\r\n{named}{}{length}\r\n{}", self.status, self.more, self.body).into_bytes()
    }
}

/// The answers to try of an operation.
fn cases(contract: &Contract, operation: &Operation) -> Vec<Case> {
    let is_head = operation.key.method == http::Method::HEAD;
    let mut cases: Vec<Case> =
        operation.responses.iter().flat_map(|response| of_response(contract, response, is_head)).collect();
    // Statuses without a response of their own, as far as a body of the contract's kind has them.
    let is_listed = |status: u16| {
        operation.responses.iter().any(|one| {
            one.status.covers(status)
                && (one.status != StatusPattern::Default
                    || !operation.responses.iter().any(Response::is_success))
        })
    };
    for status in [200, 201, 202, 204, 418] {
        if !is_listed(status) {
            let body = if status == 204 || is_head { "" } else { r#"{"unlisted": [1, 2.50]}"# };
            cases.push(Case::new(status, if body.is_empty() { "" } else { "application/json" }, body));
        }
    }
    cases
}

fn of_response(contract: &Contract, response: &Response, is_head: bool) -> Vec<Case> {
    let status = match response.status {
        StatusPattern::Exact(status @ (200..=205 | 207..=303 | 305..=599)) => status,
        StatusPattern::Class(class @ (2 | 4 | 5)) => u16::from(class) * 100 + 11,
        StatusPattern::Default => 499,
        _ => return Vec::new(),
    };
    if is_head || matches!(status, 204 | 205) {
        return vec![Case::new(status, "", "")];
    }
    if status / 100 == 3 {
        let more = "location: https://files.example.test/7?sign=a%2Fb\r\n";
        let note = Case::new(status, "text/html", "<a href='https://files.example.test/7'>here</a>");
        return vec![Case { more, ..Case::new(status, "", "") }, Case { more, ..note }];
    }
    let Some(ty) = &response.body else {
        return [("", ""), ("application/json", r#" {"a" : 1.0}"#), ("text/plain", "done")]
            .map(|(media, body)| Case::new(status, media, body))
            .to_vec();
    };
    match &response.media {
        Media::Json | Media::OtherJson(_) => {
            let several = alternatives_of(contract.types.at(ty)).unwrap_or_default();
            let value = sample(&contract.types, several.first().map_or(ty, |one| one.ty));
            // Pretty, so that a body that is written again differs.
            let text = serde_json::to_string_pretty(&value).expect("a value is JSON");
            let whole = Case::new(status, "application/json", &text);
            let bare = ["{ }", "[ ]"].map(|body| Case::new(status, "application/json", body));
            let is_allowed = |case: &Case| {
                let value = switchback_json::Value::parse(case.body.as_bytes(), &Limits::UNLIMITED);
                // A document may permit neither as one of several objects.
                several.len() < 2
                    && value.is_ok_and(|value| breaches(&contract.types, ty, &value, None).is_empty())
            };
            [whole].into_iter().chain(bare.into_iter().filter(is_allowed)).collect()
        }
        Media::Form(..) | Media::Multipart(..) => Vec::new(),
        Media::Xml(body) => vec![Case::new(status, String::leak(body.media.to_string()), XML)],
        media @ Media::Bytes(_) => {
            let named = media.ranges()[0].replace('*', "x");
            vec![Case { media: String::leak(named), ..Case::new(status, "", "\u{1}bytes") }]
        }
    }
}

impl Clone for Case {
    fn clone(&self) -> Case {
        Case { body: self.body.clone(), ..*self }
    }
}

/// A request of an operation: its line without the front, its fields, its body.
struct Request {
    line: String,
    fields: String,
    body: String,
}

fn request(contract: &Contract, operation: &Operation) -> Request {
    let types = &contract.types;
    let text = |parameter: &Parameter| match sample(types, &parameter.ty) {
        Value::String(text) => text.replace(|c: char| !c.is_ascii_alphanumeric(), "x"),
        value @ (Value::Number(_) | Value::Bool(_)) => value.to_string(),
        _ => "1".to_owned(),
    };
    let mut path = operation.key.path.to_string();
    for variable in &operation.path_params {
        let value = Some(text(variable)).filter(|text| !text.is_empty()).unwrap_or_else(|| "a".to_owned());
        path = path.replace(&format!("{{{}}}", variable.name), &value);
    }
    let is_scalar = |parameter: &&Parameter| {
        parameter.form == ParameterForm::Plain
            && matches!(types.resolve(&parameter.ty).kind, TypeKind::Scalar(Scalar { .. }))
            && parameter.name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
    };
    // An object and a list of objects have their fields in brackets.
    let deep = |parameter: &Parameter| match types.resolve(&parameter.ty).kind {
        TypeKind::Array(_) => format!("{}%5B0%5D%5Ba%5D=1&{0}%5B1%5D%5Bb%5D%5B%5D=2", parameter.name),
        TypeKind::OneOf(_) => format!("{}=&{0}%5B0%5D%5Ba%5D=1", parameter.name),
        _ => format!("{}%5Ba%5D=1&{0}%5Bb%5D%5Bc%5D=2", parameter.name),
    };
    let list = |parameter: &Parameter| {
        let name = parameter.name.strip_suffix("[]")?;
        Some(format!("{name}%5B%5D=x&{name}%5B%5D=y"))
    };
    // In the order of the contract, in which calls are sent.
    let query: Vec<String> = (operation.query.iter())
        .filter_map(|one| match one.form {
            ParameterForm::Deep => Some(deep(one)),
            _ if is_scalar(&one) => Some(format!("{}={}", one.name, text(one))),
            _ => list(one),
        })
        .collect();
    if !query.is_empty() {
        write!(path, "?{}", query.join("&")).expect("a text takes it");
    }
    let mut fields = String::new();
    for header in operation.headers.iter().filter(|header| is_scalar(header)) {
        if header.required
            && !["authorization", "accept", "content-type"].contains(&&*header.name.to_lowercase())
        {
            write!(fields, "{}: {}\r\n", header.name, text(header)).expect("a text takes it");
        }
    }
    let body = operation.body.as_ref().map(|body| match &body.media {
        media @ (Media::Json | Media::OtherJson(_)) => {
            let value = sample(types, &body.ty);
            let value = if value.is_null() { serde_json::json!({}) } else { value };
            let text = serde_json::to_string_pretty(&value).expect("a value is JSON");
            (media.name().to_owned(), text)
        }
        media @ Media::Form(..) => (media.name().to_owned(), "a=%20b&c[]=1".to_owned()),
        media @ Media::Multipart(..) => {
            let named = format!("{}; boundary=q", media.name());
            (named, "--q\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n1\r\n--q--\r\n".to_owned())
        }
        media @ Media::Xml(_) => (media.name().to_owned(), XML.to_owned()),
        media @ Media::Bytes(_) => (media.ranges()[0].replace('*', "x"), "\u{1}bytes".to_owned()),
    });
    let (named, body) = body.unwrap_or_default();
    if !named.is_empty() {
        write!(fields, "content-type: {named}\r\n").expect("a text takes it");
    }
    Request { line: format!("{} {path}", operation.key.method), fields, body }
}

/// A drafted pack behind a gateway, in front of a service that answers as it is told to.
struct Served {
    client: Client,
    gateway: std::net::SocketAddr,
    next: Arc<Mutex<(Vec<u8>, Option<Seen>)>>,
    _upstream: Upstream,
    _program: Program,
    _folder: TempDir,
}

impl Served {
    async fn start(folder: TempDir) -> Served {
        let next = Arc::<Mutex<(Vec<u8>, Option<Seen>)>>::default();
        let shared = Arc::clone(&next);
        let upstream = Upstream::answering(move |_, seen| {
            let mut next = shared.lock().expect("no test panics while it holds it");
            next.1 = Some(seen.clone());
            Act::Reply(next.0.clone())
        })
        .await;
        let file = folder.path().join("switchback.yaml");
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{0}/store.db\nkey: ${{TEST_KEY}}\n\
             mapping: {0}/pack\nfronts: {{ /front: {{ speaks: old }} }}\nupstreams: {{ new: {{ url: 'http://{1}' }} }}\n\
             clients: [{{ name: app, old_token: {TOKEN}, credentials: {{ new: token-of-the-service }} }}]\n",
            folder.path().display(),
            upstream.address
        );
        std::fs::write(&file, text).expect("it is written");
        let (program, gateway, _) = serving::serve(&file, &SealingKey::generate()).await;
        let client = Client::connect(gateway).await;
        Served { client, gateway, next, _upstream: upstream, _program: program, _folder: folder }
    }

    async fn ask(&mut self, request: &Request, answer: Vec<u8>) -> (Option<Answer>, Option<Seen>) {
        *self.next.lock().expect("no test panics while it holds it") = (answer, None);
        let (method, target) = request.line.split_once(' ').expect("a line has two words");
        let bytes = format!(
            "{method} /front{target} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: {}\r\n{}\r\n{}",
            request.body.len(),
            request.fields,
            request.body
        );
        let mut got = None;
        // The gateway may have closed an idle connection.
        for _ in 0..2 {
            self.client.send(&bytes).await;
            got = match method {
                "HEAD" => self.client.answer_to_head().await,
                _ => self.client.answer().await,
            };
            if got.as_ref().is_some_and(|answer| answer.value("connection") != "close") {
                break;
            }
            self.client = Client::connect(self.gateway).await;
            if got.is_some() {
                break;
            }
        }
        (got, self.next.lock().expect("no test panics while it holds it").1.take())
    }
}

/// Drafts a pack of a document and itself.
fn draft(document: &Path) -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pack = folder.path().join("pack");
    let drafted = Command::new(env!("CARGO_BIN_EXE_switchback"))
        .args(["init".as_ref(), document.as_os_str(), document.as_os_str(), pack.as_os_str()])
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&drafted.stdout).into_owned();
    assert!(drafted.status.success(), "{said}{}", String::from_utf8_lossy(&drafted.stderr));
    // All clients of the test carry their token in one place, whatever the document says.
    let manifest = pack.join("pack.yaml");
    let text = std::fs::read_to_string(&manifest).expect("a manifest");
    let line = |line: &str| match line.trim_start().starts_with("old: {read")
        || line.trim_start().starts_with("new: {read")
    {
        true => format!(
            "  {}: {{read: [authorization], send: authorization, scheme: Bearer}}\n",
            &line.trim_start()[..3]
        ),
        false => format!("{line}\n"),
    };
    std::fs::write(&manifest, text.lines().map(line).collect::<String>()).expect("it is written");
    (folder, said)
}

/// What a pack of the document and itself changes: the first line of what `init` says, where it is
/// not that all is untouched, and the calls that differ. Beside it the number of calls.
async fn changes(document: &Path) -> (Vec<String>, usize) {
    let (folder, said) = draft(document);
    let source = PackSource::from_dir(&folder.path().join("pack")).expect("it was written");
    let [contract, _] = contracts(&source).expect("both are read");
    let all = contract.operations.len();
    let head =
        format!("{all} operations; {all} served untouched, 0 by sure lines, 0 to be looked at, 0 refused");
    let mut found: Vec<String> = Vec::new();
    if !said.contains(&head) {
        let list = std::fs::read_to_string(folder.path().join("pack/DECISIONS.md")).unwrap_or_default();
        let some: String = list
            .lines()
            .filter(|line| line.starts_with("- "))
            .take(20)
            .map(|line| format!("\n  {line}"))
            .collect();
        found.push(format!("{}{some}", said.trim_end()));
    }
    // A pack without operations serves nothing.
    if all == 0 {
        return (found, 0);
    }
    let mut served = Served::start(folder).await;
    let mut calls = 0;
    for operation in &contract.operations {
        let request = request(&contract, operation);
        for case in cases(&contract, operation) {
            calls += 1;
            let (answer, seen) = served.ask(&request, case.bytes()).await;
            let key = &operation.key;
            let (status, kind) = (case.status, case.media);
            let what = format!("{key} {status} {kind} {:?}", case.body.chars().take(40).collect::<String>());
            let Some(answer) = answer else {
                found.push(format!("{what}: no answer"));
                continue;
            };
            if answer.status != case.status || answer.text() != case.body {
                let got: String = answer.text().chars().take(120).collect();
                found.push(format!("{what}: {} {got:?}", answer.status));
            }
            let Some(seen) = seen else {
                found.push(format!("{what}: {} was not sent on", request.line));
                continue;
            };
            if seen.line() != format!("{} HTTP/1.1", request.line) || seen.body != request.body.as_bytes() {
                let body = String::from_utf8_lossy(&seen.body).into_owned();
                found.push(format!("{what}: {} was sent as {} {body}", request.line, seen.line()));
            }
        }
    }
    (found, calls)
}

async fn hold(name: &str, text: &str, calls: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let document = folder.path().join(name);
    std::fs::write(&document, text).expect("it is written");
    let (found, made) = changes(&document).await;
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(made, calls);
}

/// Statuses with and without bodies, in the constructs of real documents that break most easily.
const STATUSES: &str = include_str!("identity/statuses.yaml");
/// The same in the older dialect.
const SWAGGER: &str = include_str!("identity/swagger.json");
/// Errors: lists, texts, classes, none at all.
const ERRORS: &str = include_str!("identity/errors.yaml");
/// Requests: parameters of every place and form, forms, bytes, media types.
const REQUESTS: &str = include_str!("identity/requests.yaml");

#[tokio::test]
async fn statuses_are_served_as_they_come() {
    hold("api.yaml", STATUSES, 68).await;
}

#[tokio::test]
async fn a_document_of_the_older_dialect_is_served_as_it_is() {
    hold("api.json", SWAGGER, 45).await;
}

#[tokio::test]
async fn errors_are_served_as_they_come() {
    hold("api.yaml", ERRORS, 48).await;
}

#[tokio::test]
async fn requests_are_sent_as_they_come() {
    hold("api.yaml", REQUESTS, 52).await;
}

/// Every set of these responses.
#[tokio::test]
async fn every_set_of_responses_is_served_as_it_comes() {
    let thing = "content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}}}";
    let responses = [
        format!("'200': {{description: it, {thing}}}"),
        "'201': {description: made}".to_owned(),
        format!("'204': {{description: done, {thing}}}"),
        "'302': {description: elsewhere}".to_owned(),
        "'401': {description: who}".to_owned(),
        format!("'404': {{description: none, {thing}}}"),
        format!("default: {{description: bad, {thing}}}"),
    ];
    let mut text = "openapi: 3.0.3\ninfo: {title: t, version: '1'}\npaths:\n".to_owned();
    for set in 1..1_u32 << responses.len() {
        let some: Vec<&str> =
            (0..responses.len()).filter(|at| set >> at & 1 == 1).map(|at| responses[at].as_str()).collect();
        let method = if set % 2 == 0 { "get" } else { "post" };
        writeln!(text, "  /set/{set}: {{{method}: {{responses: {{{}}}}}}}", some.join(", ")).expect("a text");
    }
    text += "components: {schemas: {Thing: {type: object, required: [id], properties: {id: {type: string}, of: {type: string, nullable: true}}}}}\n";
    hold("api.yaml", &text, 1171).await;
}

/// Every document of the folders in `SWITCHBACK_DOCUMENTS`, separated by `:`. Prints a line for
/// each.
#[tokio::test]
#[ignore = "needs documents, which are not part of the project"]
async fn documents_of_a_folder_are_served_as_they_are() {
    let folders = std::env::var("SWITCHBACK_DOCUMENTS").expect("SWITCHBACK_DOCUMENTS names folders");
    let mut broken = 0;
    for document in folders.split(':').flat_map(|folder| documents(Path::new(folder))) {
        let (found, calls) = changes(&document).await;
        println!("{}: {calls} calls, {} changes", document.display(), found.len());
        found.iter().take(12).for_each(|one| println!("    {one}"));
        broken += usize::from(!found.is_empty());
    }
    assert_eq!(broken, 0, "documents that are not served as they are");
}

/// The documents of a folder and of all folders in it: files with `openapi` or `swagger` at the top.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let is_document = |path: &PathBuf| {
        let Ok(text) = std::fs::read_to_string(path) else { return false };
        let says = |word: &str| {
            text.lines().any(|line| line.starts_with(&format!("{word}:")))
                || (text.trim_start().starts_with('{') && text.contains(&format!("\"{word}\"")))
        };
        says("openapi") || says("swagger")
    };
    let (mut open, mut all) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => open.push(path),
                false => all.push(path),
            }
        }
    }
    all.retain(is_document);
    all.sort();
    all
}
