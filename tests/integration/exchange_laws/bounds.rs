//! Routes of several calls with a bound: writes for each element, reads for each element, and
//! pages. The called service is a store, so that a test can inspect the written data.

use super::judge::{Answered, Asked, Judge};
use super::services::{Ended, asked, run};
use fastrand::Rng;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method};
use serde_json::{Value, json};
use std::sync::Arc;
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::PackSource;
use switchback_plan::{Pack, SideId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Writes,
    Readings,
    Pages,
}

/// One drawn route.
#[derive(Debug)]
struct Bounded {
    kind: Kind,
    upto: usize,
    beyond: &'static str,
    /// `maxItems` of the list that has a call for each element.
    most: Option<usize>,
    /// Elements of one page, and the number of the first page.
    page: (usize, usize),
    /// Whether a 404 leaves an element without a reply.
    tolerates: bool,
}

const REFUSE: &str = "{refuse: too_many}";

fn drawn(rng: &mut Rng) -> Bounded {
    let kind = [Kind::Writes, Kind::Readings, Kind::Pages][rng.usize(..3)];
    let beyond: &[&str] = match kind {
        Kind::Writes => &[REFUSE, "absent"],
        Kind::Readings => &[REFUSE, "absent"],
        Kind::Pages => &[REFUSE, "absent", "cut"],
    };
    Bounded {
        kind,
        upto: 1 + rng.usize(..4),
        beyond: beyond[rng.usize(..beyond.len())],
        most: rng.bool().then(|| 1 + rng.usize(..6)),
        page: (1 + rng.usize(..3), rng.usize(..2)),
        tolerates: kind == Kind::Writes || rng.bool(),
    }
}

impl Bounded {
    fn key(&self) -> &'static str {
        match self.kind {
            Kind::Writes => "POST /tags",
            Kind::Readings => "GET /details",
            Kind::Pages => "GET /all",
        }
    }

    fn list(&self) -> Value {
        let mut list = json!({"type": "array", "items": {"type": "string"}});
        if let Some(most) = self.most {
            list["maxItems"] = json!(most);
        }
        list
    }

    fn documents(&self) -> [Value; 2] {
        let answer = |schema: Value| json!({"200": {"description": "it", "content": {"application/json": {"schema": schema}}}});
        // Also with errors of this status.
        let answer_or = |schema: Value, status: &str| {
            let mut answers = answer(schema);
            answers[status] = json!({"description": "an error", "content": {"application/json": {"schema": {"type": "object", "required": ["message"], "properties": {"message": {"type": "string"}}}}}});
            answers
        };
        let object = |required: Value, properties: Value| json!({"type": "object", "required": required, "properties": properties});
        let items = |of: Value| json!({"type": "array", "items": of});
        let document = |paths: Value| json!({"openapi": "3.1.0", "info": {"title": "drawn", "version": "1"}, "paths": paths});
        let id = json!([{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]);
        let done = object(json!(["id"]), json!({"id": {"type": "string"}, "status": {"type": "integer"}}));
        let detail = object(json!(["id"]), json!({"id": {"type": "string"}, "text": {"type": "string"}}));
        let of_a = match self.kind {
            Kind::Writes => json!({"/tags": {"post": {
                "requestBody": {"required": true, "content": {"application/json": {"schema": object(json!(["ids"]), json!({"ids": self.list()}))}}},
                "responses": answer_or(object(json!(["done"]), json!({"done": items(done)})), "400")}}}),
            Kind::Readings => {
                json!({"/details": {"get": {"responses": answer(object(json!(["items"]), json!({"items": items(detail)})))}}})
            }
            Kind::Pages => {
                json!({"/all": {"get": {"responses": answer(object(json!([]), json!({"items": items(json!({"type": "string"}))})))}}})
            }
        };
        let item = object(json!(["id"]), json!({"id": {"type": "string"}}));
        let text = object(json!(["text"]), json!({"text": {"type": "string"}}));
        let status = object(json!(["status"]), json!({"status": {"type": "string"}}));
        let of_b = json!({
            "/tags/{id}": {"put": {"parameters": id, "responses": answer_or(status, "404")}},
            "/list": {"get": {"responses": answer(self.list())}},
            "/items/{id}": {"get": {"parameters": id, "responses": answer_or(text, "404")}},
            "/items": {"get": {"parameters": [{"name": "page", "in": "query", "schema": {"type": "integer"}}], "responses": answer(items(item))}},
        });
        [document(of_a), document(of_b)]
    }

    fn mapping(&self, verdict: &str) -> String {
        let (upto, beyond) = (self.upto, self.beyond);
        let on_fail = if self.tolerates { ", on_fail: {absent: [404]}" } else { "" };
        let head = format!("mapping: 1\nroutes:\n  - serve: a\n    at: {}\n{verdict}", self.key());
        let (body, mut reasons) = match self.kind {
            Kind::Writes => (
                format!(
                    "    check: [{{conforms: [ids], else: {{status: 400, reason: no_ids}}}}]
    steps:
      - ids: {{make: {{$each: {{id: $.request.body.ids}}, give: $.id}}}}
      - done: {{each: {{tag: $.ids}}, upto: {upto}, beyond: {beyond}, call: 'PUT /tags/{{$.tag}}'{on_fail}, resume: [$.tag]}}
    answer: {{status: 200, body: {{done: {{$each: {{one: $.done}}, give: {{id: $.one.tag, status: $.one.status}}}}}}}}
"
                ),
                "  no_ids: {en: 'Give ids.'}\n".to_owned(),
            ),
            Kind::Readings => (
                format!(
                    "    steps:
      - list: {{call: GET /list}}
      - full: {{each: {{id: $.list.body}}, upto: {upto}, beyond: {beyond}, call: 'GET /items/{{$.id}}'{on_fail}}}
    answer: {{status: 200, body: {{items: {{$each: {{one: $.full}}, give: {{id: $.one.id, text: $.one.body.text}}}}}}}}
"
                ),
                String::new(),
            ),
            Kind::Pages => (
                format!(
                    "    steps: [{{items: {{call: GET /items, pages: {{upto: {upto}, beyond: {beyond}}}}}}}]
    answer: {{status: 200, body: {{items: {{$each: {{one: $.items.body}}, give: $.one.id}}}}}}
"
                ),
                String::new(),
            ),
        };
        if beyond == REFUSE {
            reasons.push_str("  too_many: {en: 'These are too many.'}\n");
        }
        let reasons = if reasons.is_empty() { String::new() } else { format!("reasons:\n{reasons}") };
        format!("{head}{body}{reasons}")
    }

    /// Returns the compiled pack with its verdict, or `None` if the compiler rejects it.
    fn compiled(&self) -> Result<Arc<Pack>, String> {
        let (size, first) = self.page;
        let manifest = format!(
            "pack: drawn\nsides: {{old: a, new: b}}\ncontracts: {{a: a.json, b: b.json}}\nserves: [a]\nrest: refuse\n\
             paging: {{query: page, first: {first}, size: {size}}}\n\
             credentials:\n  a: {{read: [authorization], send: authorization, scheme: Bearer}}\n  b: {{read: [authorization], send: authorization, scheme: Bearer}}\n\
             languages: [en]\nerrors: {{body: {{message: $text}}}}\nrefuse: {{legacy: never, status: 501}}\n"
        );
        let [a, b] = self.documents();
        let mut why = String::new();
        for verdict in ["", "    verdict: different\n", "    verdict: partly\n"] {
            let files = [
                ("pack.yaml", manifest.clone()),
                ("a.json", a.to_string()),
                ("b.json", b.to_string()),
                ("x.map.yaml", self.mapping(verdict)),
            ];
            let files = files.map(|(name, text)| (name.to_owned(), text.into_bytes()));
            let compiled = compile(&PackSource::from_files(files.to_vec()));
            match compiled.pack {
                Some(pack) => return Ok(pack),
                None => {
                    let sorted = compiled.findings.in_order();
                    let all = sorted
                        .iter()
                        .map(|finding| format!("{}: {}", finding.code.number(), finding.message));
                    why.push_str(&format!("{verdict}{}\n", all.collect::<Vec<_>>().join("\n")));
                }
            }
        }
        Err(why)
    }
}

/// The store of the called service.
struct Store {
    ids: Vec<String>,
    gone: Vec<String>,
    /// The write that fails, counted from 0.
    fails_at: Option<usize>,
    writes: Vec<String>,
    page: (usize, usize),
}

impl Store {
    fn answer(&mut self, operation: &str, asked: &Asked) -> Answered {
        let last = asked.target.rsplit('/').next().unwrap_or_default().to_owned();
        let json = |status: u16, value: Value| {
            let mut answered =
                Answered { status, body: value.to_string().into_bytes(), ..Answered::default() };
            answered.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            answered
        };
        match operation {
            _ if self.gone.contains(&last) => json(404, json!({"message": "gone"})),
            "PUT /tags/{id}" if self.fails_at == Some(self.writes.len()) => {
                json(500, json!({"message": "no"}))
            }
            "PUT /tags/{id}" => {
                self.writes.push(last);
                json(200, json!({"status": "set"}))
            }
            "GET /list" => json(200, json!(self.ids)),
            "GET /items/{id}" => json(200, json!({"text": format!("text of {last}")})),
            _ => {
                let (size, first) = self.page;
                let page = asked.target.split_once("page=").and_then(|(_, n)| n.parse::<usize>().ok());
                let from = page.unwrap_or(first).saturating_sub(first) * size;
                let items = self.ids.iter().skip(from).take(size);
                json(200, items.map(|id| json!({"id": id})).collect())
            }
        }
    }
}

/// Returns the violated laws for one list of elements.
fn fault(bounded: &Bounded, pack: &Arc<Pack>, store: &mut Store) -> Option<String> {
    let documents = bounded.documents();
    let judge = Judge::new(&documents[0]);
    let key = bounded.key();
    let route =
        pack.directions[SideId::OLD].routes.iter().find(|route| route.operation.key.to_string() == key)?;
    let mut sent = Asked { target: key.split_once(' ')?.1.to_owned(), ..Asked::default() };
    if bounded.kind == Kind::Writes {
        sent.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        sent.body = json!({"ids": store.ids}).to_string().into_bytes();
    }
    let mut methods = Vec::new();
    let ended = run(pack, 0, route.id, &sent, &mut |call| {
        methods.push(call.method.clone());
        store.answer(&call.operation, &asked(call))
    });
    if bounded.kind != Kind::Writes && methods.iter().any(|method| *method != Method::GET) {
        return Some("a reading writes".to_owned());
    }
    let answered = match &ended {
        Ended::Answered(answered) if answered.status == 200 => Some(answered),
        Ended::Answered(_) | Ended::Stopped(_) => None,
    };
    if let Some(answered) = answered {
        let breaches = judge.answer(key, answered).1;
        if !breaches.is_empty() {
            return Some(format!("{breaches:?}"));
        }
    }
    let body = answered.and_then(|answered| serde_json::from_slice::<Value>(&answered.body).ok());
    let length = store.ids.len();
    let is_clean = super::laws::is_exact(pack, key);
    let there = |id: &&String| !store.gone.contains(id);
    match bounded.kind {
        Kind::Writes if length > bounded.upto => (!store.writes.is_empty() || body.is_some())
            .then(|| format!("{} of {length} written", store.writes.len())),
        Kind::Writes => {
            let wanted: Vec<&String> = store.ids.iter().filter(there).collect();
            let is_cut = store.fails_at.is_some_and(|at| at < wanted.len());
            let statuses =
                store.ids.iter().map(|id| json!({"id": id, "status": if there(&id) { 200 } else { 404 }}));
            let told = json!({"done": statuses.collect::<Vec<_>>()});
            match body {
                None if is_cut => None,
                Some(_) if is_cut => Some("a failed write is answered as a success".to_owned()),
                Some(body) if body == told && store.writes.iter().collect::<Vec<_>>() == wanted => None,
                body => Some(format!("written {:?}, answered {body:?}", store.writes)),
            }
        }
        Kind::Readings => {
            let is_beyond = length > bounded.upto;
            let is_lost = !bounded.tolerates && store.ids.iter().take(bounded.upto).any(|id| !there(&id));
            let Some(body) = body else {
                let is_due = (is_beyond && bounded.beyond == REFUSE) || is_lost;
                return (!is_due).then(|| format!("{ended:?}"));
            };
            let item = |(at, id): (usize, &String)| match there(&id) && at < bounded.upto {
                true => json!({"id": id, "text": format!("text of {id}")}),
                false => json!({"id": id}),
            };
            let told = json!({"items": store.ids.iter().enumerate().map(item).collect::<Vec<_>>()});
            (body != told || (is_beyond && (bounded.beyond == REFUSE || is_clean)))
                .then(|| format!("answered {body}, exact without a loss: {is_clean}"))
        }
        Kind::Pages => {
            let room = bounded.upto * bounded.page.0;
            let all = json!({"items": store.ids});
            let cut = json!({"items": store.ids.iter().take(room).collect::<Vec<_>>()});
            let holds = match (&body, bounded.beyond) {
                // Whether a full last page is the end is not known.
                (None, REFUSE) => length >= room,
                (Some(body), "absent") if length >= room => *body == all || *body == json!({}),
                (Some(body), "cut") if length >= room => *body == cut && !(is_clean && length > room),
                (Some(body), _) => *body == all && length <= room,
                (None, _) => false,
            };
            (!holds).then(|| format!("{length} items, room for {room}: {ended:?}"))
        }
    }
}

/// Writes for each element happen for all of them or for none, and a list that ends at a bound
/// never counts as complete. The campaign: `SWITCHBACK_DRAWN_PACKS=2000`.
#[test]
fn beyond_a_bound_nothing_is_written_and_nothing_is_called_complete() {
    let setting =
        |name: &str, usual| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok()).unwrap_or(usual);
    let (count, first) = (setting("SWITCHBACK_DRAWN_PACKS", 60), setting("SWITCHBACK_DRAWN_FROM", 1));
    let (mut compiled, mut refused, mut failed) = (0, 0, Vec::new());
    for seed in first..first + count {
        let mut rng = Rng::with_seed(seed);
        let bounded = drawn(&mut rng);
        let pack = match bounded.compiled() {
            Ok(pack) => pack,
            // A write that is left out beyond a bound is no pack.
            Err(_) if bounded.kind == Kind::Writes && bounded.beyond == "absent" => {
                refused += 1;
                continue;
            }
            Err(why) => {
                failed.push(format!("seed {seed}: {bounded:?} does not compile: {why}"));
                continue;
            }
        };
        compiled += 1;
        if bounded.kind == Kind::Writes && bounded.beyond == "absent" {
            failed.push(format!("seed {seed}: {bounded:?} compiles"));
            continue;
        }
        for _ in 0..12 {
            let most = if bounded.kind == Kind::Pages {
                bounded.upto * bounded.page.0 + 2
            } else {
                bounded.upto + 2
            };
            let length =
                rng.usize(..=most).min(bounded.most.filter(|_| bounded.kind != Kind::Pages).unwrap_or(most));
            let ids: Vec<String> = (0..length).map(|at| format!("t{at}")).collect();
            let gone =
                ids.iter().filter(|_| bounded.kind != Kind::Pages && rng.u8(..5) == 0).cloned().collect();
            let fails_at = (rng.u8(..4) == 0).then(|| rng.usize(..4));
            let mut store = Store { ids, gone, fails_at, writes: Vec::new(), page: bounded.page };
            if let Some(why) = fault(&bounded, &pack, &mut store) {
                failed.push(format!(
                    "seed {seed}: {bounded:?}, gone {:?}, fails at {fails_at:?}: {why}",
                    store.gone
                ));
                break;
            }
        }
    }
    println!("{compiled} routes compile, {refused} are refused");
    assert!(failed.is_empty(), "{} routes break a law:\n{}", failed.len(), failed.join("\n"));
    assert!(compiled * 2 > count, "{compiled} of {count} routes compile");
}
