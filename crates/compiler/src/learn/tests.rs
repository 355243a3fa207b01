use super::*;
use crate::contract::{Contract, Documents, parse_contract};
use crate::diagnostic::{Findings, Severity, Sources};
use crate::mapping::compile;
use crate::mapping::load::PackSource;
use std::collections::BTreeSet;
use switchback_json::{Limits, Value};
use switchback_plan::SideId;

const OLD: &str = "
openapi: 3.1.0
info: {title: t, version: '1'}
paths:
  /books: {get: {responses: {'200': {description: ok, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Book'}}}}}}}}
  '/books/{id}':
    parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
    get: {responses: {'200': {description: ok, content: {application/json: {schema: {$ref: '#/components/schemas/BookView'}}}}}}
    put:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/BookEdit'}}}}
      responses: {'204': {description: ok}}
components:
  schemas:
    BookView: {type: object, properties: {id: {type: integer}, shelf: {type: string}, writer: {type: string}}}
    BookEdit: {type: object, properties: {by: {type: string}, shelf: {type: string}}}
    Book:
      type: object
      required: [id]
      properties:
        id: {type: integer}
        shelf: {type: string}
        writer: {type: string}
        bought: {type: integer}
        price: {type: number}
        open: {type: integer}
        seen: {type: string}
        lent: {type: string}
        code: {type: string}
        owner: {type: string}
";

const NEW: &str = "
openapi: 3.1.0
info: {title: t, version: '2'}
paths:
  /library/books: {get: {responses: {'200': {description: ok, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Volume'}}}}}}}}
  '/library/books/{key}':
    parameters: [{name: key, in: path, required: true, schema: {type: string}}]
    put:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/VolumeEdit'}}}}
      responses: {'204': {description: ok}}
  '/owners/{id}':
    parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
    get: {responses: {'200': {description: ok, content: {application/json: {schema: {$ref: '#/components/schemas/Owner'}}}}}}
components:
  schemas:
    Volume:
      type: object
      required: [key]
      properties:
        key: {type: string}
        place: {type: object, properties: {shelf: {type: string}}}
        author: {type: string}
        boughtAt: {type: string, format: date-time}
        cents: {type: integer}
        status: {type: string}
        foundOn: {type: string}
        seenOn: {type: string}
        lent: {type: string}
        code: {type: string}
        ownerId: {type: integer}
    VolumeEdit: {type: object, properties: {author: {type: string}, ownerId: {type: integer}}}
    Owner: {type: object, properties: {id: {type: integer}, label: {type: string}}}
";

fn contract(name: &str, text: &str) -> Contract {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let documents = Documents::load(&mut sources, name, &|_| Some(text.as_bytes()), &mut findings);
    parse_contract(name, &documents.expect("a document"), &mut findings)
}

fn call(side: SideId, target: &str, answer: &str) -> TrafficCall {
    TrafficCall {
        side,
        method: http::Method::GET,
        target: target.to_owned(),
        sent: None,
        is_form: false,
        status: 200,
        answer: Some(Value::parse(answer.as_bytes(), &Limits::DOCUMENT).expect("JSON")),
        client: Some("app".to_owned()),
        exchange: None,
    }
}

/// Forty books as both versions show them. The times of `foundOn` and `seenOn` are the same, and
/// one `lent` differs.
fn traffic() -> Vec<TrafficCall> {
    let (mut old, mut new, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..40 {
        let (day, price, open, owner) = (10 + n % 18, 100 + 7 * n, n % 2, 500 + n % 9);
        let writer = if n % 5 == 0 { String::new() } else { format!(r#""writer":"w{n}","#) };
        let author = if n % 5 == 0 { "null".to_owned() } else { format!(r#""w{n}""#) };
        old.push(format!(
            r#"{{"id":{n},"shelf":"s{}",{writer}"bought":{},"price":{}.{:02},"open":{open},"seen":"t{n}","lent":"l{n}","code":"c{n}","owner":"o{owner}"}}"#,
            n / 2, 1_700_000_000 + n * 86_400, price / 100, price % 100
        ));
        let date = format!("2023-11-{:02}T22:13:20Z", 14 + n);
        let date = if 14 + n > 30 { format!("2023-12-{:02}T22:13:20Z", n - 16) } else { date };
        let lent = if n == 3 { "other".to_owned() } else { format!("l{n}") };
        new.push(format!(
            r#"{{"key":"{n}","place":{{"shelf":"s{}"}},"author":{author},"boughtAt":"{date}","cents":{price},"status":"{}","foundOn":"t{n}","seenOn":"t{n}","lent":"{lent}","code":"x{day}{n}","ownerId":{owner}}}"#,
            n / 2, ["closed", "open"][open as usize]
        ));
    }
    calls.push(call(SideId::OLD, "/books", &format!("[{}]", old.join(","))));
    calls.push(call(SideId::NEW, "/library/books?all=1", &format!("[{}]", new.join(","))));
    for owner in 500..509 {
        calls.push(call(
            SideId::NEW,
            &format!("/owners/{owner}"),
            &format!(r#"{{"id":{owner},"label":"o{owner}"}}"#),
        ));
    }
    calls
}

fn learn(calls: &[TrafficCall]) -> Learned {
    let contracts = [contract("v1", OLD), contract("v2", NEW)];
    let mut witness = Witness::new(contracts.each_ref());
    calls.iter().for_each(|call| witness.add(call));
    witness.finish(&mut |_| ())
}

fn lines(learned: &Learned, confidence: Confidence) -> Vec<String> {
    let of = learned.lines.iter().filter(|line| line.confidence == confidence);
    of.map(|line| line.render(&learned.sides)).collect()
}

#[test]
fn values_of_the_same_resources_show_renames_conversions_and_tables() {
    let learned = learn(&traffic());
    assert_eq!(
        lines(&learned, Confidence::Sure),
        [
            r#"bought: {v2: boughtAt, as: {date: {"v1": "epoch_second", "v2": "rfc3339"}}, else: error}"#,
            "id: {v2: key, as: integer_to_string, else: error}",
            r#"open: {v2: status, as: {table: {"0": "closed", "1": "open"}}, else: error}"#,
            "price: {v2: cents, as: {scale: 100}, else: error}",
            "shelf: $.place.shelf",
            "writer: {v2: author, as: null_is_absent}",
        ]
    );
    // Two members explain `seen`, one value of `lent` contradicts, and those of `code` differ.
    assert_eq!(lines(&learned, Confidence::Likely), ["lent: lent", "seen: seenOn"]);
    assert_eq!(learned.lines.last().expect("two likely lines").rivals, ["seen and foundOn"]);
    let conflicts: Vec<&str> = learned.conflicts.iter().map(|one| one.place.as_str()).collect();
    assert_eq!(conflicts, ["code"]);
    let [join] = learned.joins.as_slice() else { panic!("one join: {:?}", learned.joins) };
    assert_eq!((&*join.place, &*join.via, &*join.found), ("owner", "ownerId", "label"));
    assert_eq!(join.operation, "GET /owners/{id} $");
}

#[test]
fn operations_are_ranked_by_calls_and_paired_by_their_resources() {
    let mut calls = traffic();
    calls.push(TrafficCall { client: Some("other".to_owned()), ..calls[0].clone() });
    calls.push(TrafficCall { target: "/elsewhere".to_owned(), ..calls[0].clone() });
    let learned = learn(&calls);
    let ranked: Vec<(&str, u64, usize)> =
        learned.operations.iter().map(|one| (&*one.operation, one.calls, one.clients.len())).collect();
    assert_eq!(ranked, [("GET /books", 2, 2), ("GET /books/{id}", 0, 0), ("PUT /books/{id}", 0, 0)]);
    assert_eq!((learned.unknown, learned.calls), (1, [3, 10]));
    let [link] = learned.links.as_slice() else { panic!("one pair: {:?}", learned.links) };
    assert_eq!((&*link.operations[1], link.objects), ("GET /library/books", 40));
}

/// The writers of books through both versions: a member that the answers repeat.
fn writes() -> Vec<TrafficCall> {
    let wrote = |n: u32| !n.is_multiple_of(5);
    let write = |(side, target, body): (SideId, String, String)| TrafficCall {
        method: http::Method::PUT,
        sent: Some(Value::parse(body.as_bytes(), &Limits::DOCUMENT).expect("JSON")),
        status: 204,
        answer: None,
        ..call(side, &target, "null")
    };
    let old = (0..20).filter(|n| wrote(*n));
    let old = old.map(|n| (SideId::OLD, format!("/books/{n}"), format!(r#"{{"by":"w{n}"}}"#)));
    let new = (20..40).filter(|n| wrote(*n));
    let new = new.map(|n| (SideId::NEW, format!("/library/books/{n}"), format!(r#"{{"author":"w{n}"}}"#)));
    old.chain(new).map(write).collect()
}

#[test]
fn members_of_requests_correspond_through_the_answers_that_repeat_them() {
    let learned = learn(&[traffic(), writes()].concat());
    let of_requests = |line: &&LearnedLine| line.through.is_some();
    let found: Vec<&LearnedLine> = learned.lines.iter().filter(of_requests).collect();
    let [line, shown] = found.as_slice() else { panic!("two lines: {found:?}") };
    // An answer of the new side that shows a request of the old side is no pair of operations.
    assert_eq!((&*shown.types[1], shown.confidence), ("Volume", Confidence::Likely));
    assert_eq!(line.types, ["BookEdit", "VolumeEdit"]);
    assert_eq!(line.render(&learned.sides), "by: {v2: author, as: null_is_absent}");
    assert_eq!((line.supports, line.confidence), (16, Confidence::Sure));
    // A request that was rejected shows nothing.
    let rejected = writes().into_iter().map(|call| TrafficCall { status: 400, ..call });
    let learned = learn(&traffic().into_iter().chain(rejected).collect::<Vec<_>>());
    assert_eq!(learned.lines.iter().filter(of_requests).count(), 0);
}

#[test]
fn a_type_with_a_better_counterpart_is_no_sure_one() {
    let mut calls = traffic();
    for n in 0..40 {
        let view = format!(r#"{{"id":{n},"shelf":"s{}","writer":"w{n}"}}"#, n / 2);
        calls.push(call(SideId::OLD, &format!("/books/{n}"), &view));
    }
    let learned = learn(&calls);
    let of_view: Vec<&LearnedLine> =
        learned.lines.iter().filter(|line| line.types[0] == "BookView").collect();
    assert!(of_view.iter().any(|line| line.places[1] == "place.shelf"), "{of_view:?}");
    assert!(of_view.iter().all(|line| line.confidence == Confidence::Likely), "{of_view:?}");
    let sure = learned.lines.iter().filter(|line| line.confidence == Confidence::Sure);
    assert_eq!(sure.count(), 6);
}

#[test]
fn masked_texts_are_equal_or_not_and_nothing_else() {
    let masked = |text: &str| text.replace(r#""closed""#, r#""***0a""#).replace(r#""open""#, r#""***0b""#);
    let long = "x".repeat(600);
    let masked = |call: TrafficCall| {
        let text = call.answer.as_ref().map(ToString::to_string).unwrap_or_default();
        // Two values that say nothing: a masked text, and one that is kept as a hash.
        let text = masked(&text).replace(r#""place":{"shelf":"s1"#, &format!(r#""place":{{"shelf":"{long}"#));
        self::call(call.side, &call.target, &text)
    };
    let learned = learn(&traffic().into_iter().map(masked).collect::<Vec<_>>());
    let tables = learned.lines.iter().filter(|line| line.render(&learned.sides).contains("table"));
    assert_eq!(tables.count(), 0, "{:?}", learned.lines);
}

#[test]
fn few_values_are_no_proof() {
    let few = |calls: Vec<TrafficCall>| -> Vec<TrafficCall> {
        let cut = |call: TrafficCall| match &call.answer {
            Some(Value::Array(items)) => {
                let items = items.iter().take(8).map(ToString::to_string).collect::<Vec<_>>();
                self::call(call.side, &call.target, &format!("[{}]", items.join(",")))
            }
            _ => call,
        };
        calls.into_iter().map(cut).collect()
    };
    let learned = learn(&few(traffic()));
    assert_eq!(lines(&learned, Confidence::Sure), [""; 0]);
    assert!(lines(&learned, Confidence::Likely).contains(&"shelf: $.place.shelf".to_owned()));
}

fn pack(more: &str) -> PackSource {
    let manifest = "pack: t\nsides: {old: v1, new: v2}\ncontracts: {v1: contracts/v1.yaml, v2: contracts/v2.yaml}\n\
        credentials:\n  v1: {read: [x-token], send: x-token, scheme: none}\n  v2: {read: [x-token], send: x-token, scheme: none}\n\
        languages: [en]\nserves: [v1]\nrest: refuse\nerrors: {body: {error: $text}}\nrefuse: {legacy: never, status: 501}\n";
    let files = [
        ("pack.yaml", manifest),
        ("contracts/v1.yaml", OLD),
        ("contracts/v2.yaml", NEW),
        ("books.map.yaml", more),
    ];
    PackSource::from_files(files.map(|(name, text)| (name.to_owned(), text.as_bytes())).to_vec())
}

fn with(source: &PackSource, acceptance: &Acceptance) -> PackSource {
    let kept = source.files().iter().filter(|(name, _)| !acceptance.files.contains_key(name)).cloned();
    let new = acceptance.files.iter().map(|(name, text)| (name.clone(), text.as_bytes().into()));
    PackSource::from_files(kept.chain(new).collect())
}

#[test]
fn accepted_lines_are_written_into_the_shape_of_their_types() {
    let shape = "mapping: 1\nshapes:\n  Book:\n    of: {v1: Book, v2: Volume}   # a comment\n    rename:\n      id: {v2: key, as: integer_to_string, else: {v1: error}}\n    only: {v1: {shelf: absent, writer: absent, bought: absent, price: absent, open: absent, seen: absent, lent: absent, code: absent, owner: absent}}\n    rest: {v2: lost}\n\
        routes:\n  - pair: {v1: GET /books, v2: GET /library/books, front: v1}\n    response: [Book]\n";
    let (source, learned) = (pack(shape), learn(&traffic()));
    let compiled = compile(&source);
    assert_eq!(compiled.findings.count(Severity::Error), 0, "{:?}", compiled.findings.in_order());
    let sure = learned.lines.iter().filter(|line| line.confidence == Confidence::Sure);
    let ids: BTreeSet<String> = sure.map(|line| line.id.clone()).collect();
    let acceptance = accept(&source, &learned, &ids).expect("the pack compiles");
    assert_eq!((acceptance.rejected.as_slice(), acceptance.written.len()), ([].as_slice(), 6));
    let text = &acceptance.files["books.map.yaml"];
    assert!(text.contains("      shelf: $.place.shelf\n") && text.contains("# a comment"), "{text}");
    assert!(text.contains("id: {v2: key, as: integer_to_string, else: {v1: error}}"), "{text}");
    assert!(text.contains("only: {v1: {seen: absent, lent: absent, code: absent, owner: absent}}"), "{text}");
    assert!(compile(&with(&source, &acceptance)).pack.is_some());
}

#[test]
fn a_shape_that_uses_other_text_is_not_edited() {
    let shape = "mapping: 1\nfragments:\n  book:\n    gives:\n      rename: {id: {v2: key, as: integer_to_string, else: {v1: error}}}\n      only: {v1: {shelf: absent, writer: absent, bought: absent, price: absent, open: absent, seen: absent, lent: absent, code: absent, owner: absent}}\n      rest: {v2: lost}\n\
        shapes: {Book: {of: {v1: Book, v2: Volume}, $use: book}}\nroutes:\n  - {pair: {v1: GET /books, v2: GET /library/books, front: v1}, response: [Book]}\n";
    let (source, learned) = (pack(shape), learn(&traffic()));
    let sure = learned.lines.iter().filter(|line| line.confidence == Confidence::Sure);
    let ids: BTreeSet<String> = sure.map(|line| line.id.clone()).collect();
    let acceptance = accept(&source, &learned, &ids).expect("the pack compiles");
    assert_eq!((acceptance.files.len(), acceptance.rejected.len()), (0, 6));
    assert!(acceptance.rejected[0].1.to_string().contains("`Book` uses a text that stands elsewhere"));
}

#[test]
fn accepted_lines_without_a_shape_get_one_with_its_route() {
    let (source, learned) = (pack("mapping: 1\nreasons: {rest: {en: Gone.}}\n"), learn(&traffic()));
    let ids: BTreeSet<String> = learned.lines.iter().map(|line| line.id.clone()).collect();
    let acceptance = accept(&source, &learned, &ids).expect("the pack compiles");
    assert_eq!((acceptance.rejected.as_slice(), acceptance.written.len()), ([].as_slice(), 8));
    let text = &acceptance.files["learned-book.map.yaml"];
    assert!(
        text.contains(
            "  - pair: {v1: 'GET /books', v2: 'GET /library/books', front: v1}\n    response: [Book]\n"
        ),
        "{text}"
    );
    // The old member is required, and only its line gives it a value.
    let (one, others): (BTreeSet<String>, BTreeSet<String>) =
        ids.into_iter().partition(|id| id.contains("key"));
    let acceptance = accept(&source, &learned, &others).expect("the pack compiles");
    assert_eq!((acceptance.rejected.len(), one.len()), (7, 1), "{:?}", acceptance.rejected);
}

#[test]
fn contracts_from_traffic_have_paths_types_and_required_members() {
    let mut inference = Inference::default();
    let mut calls = traffic();
    calls.retain(|call| call.side == SideId::NEW);
    for n in 0..30_u8 {
        let name = [b'a' + n % 26, b'a' + n / 26].map(char::from);
        calls.push(TrafficCall {
            method: http::Method::POST,
            sent: Some(
                Value::parse(
                    format!(r#"{{"kind":"{}","n":{n}}}"#, ["a", "b"][usize::from(n % 2)]).as_bytes(),
                    &Limits::DOCUMENT,
                )
                .expect("JSON"),
            ),
            status: 201,
            answer: None,
            ..call(SideId::NEW, &format!("/owners/{}{}/notes", name[0], name[1]), "null")
        });
    }
    calls.iter().for_each(|call| inference.add(call));
    let text = inference.document("v2", "1");
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let documents = Documents::load(&mut sources, "x.json", &|_| Some(text.as_bytes()), &mut findings);
    let contract = parse_contract("v2", &documents.expect("a document"), &mut findings);
    assert_eq!(findings.in_order().len(), 0, "{:?}", findings.in_order());
    let keys: Vec<String> = contract.operations.iter().map(|one| one.key.to_string()).collect();
    assert_eq!(keys, ["GET /library/books", "GET /owners/{id}", "POST /owners/{id}/notes"]);
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let item = &document["components"]["schemas"]["LibraryBooksItem"];
    assert_eq!(item["properties"]["boughtAt"], serde_json::json!({"type": "string", "format": "date-time"}));
    assert_eq!(item["properties"]["author"]["type"], serde_json::json!(["null", "string"]));
    assert_eq!(item["properties"]["status"]["x-values-seen"], serde_json::json!(["closed", "open"]));
    assert_eq!(item["required"].as_array().map(Vec::len), Some(11));
    let body = &document["paths"]["/owners/{id}/notes"]["post"]["requestBody"];
    assert_eq!(body["content"]["application/json"]["schema"]["required"], serde_json::json!(["kind", "n"]));
    assert_eq!(document["paths"]["/owners/{id}"]["get"]["parameters"][0]["schema"]["type"], "integer");
}

#[test]
fn a_likely_line_about_a_member_with_a_sure_one_is_left_out() {
    let line = |places: [&str; 2], confidence, is_copy| LearnedLine {
        id: places.join("-"),
        types: ["Chat", "Room"].map(str::to_owned),
        places: places.map(str::to_owned),
        conversion: None,
        defaults: [None, None],
        is_copy,
        supports: 3,
        against: 0,
        distinct: 3,
        bits: 9.0,
        rivals: Vec::new(),
        through: None,
        confidence,
    };
    let mut other = line(["title", "subject"], Confidence::Likely, false);
    other.types[1] = "Ticket".to_owned();
    let lines = vec![
        line(["title", "name"], Confidence::Sure, false),
        line(["title", "subject"], Confidence::Likely, false),
        line(["label", "name.text"], Confidence::Likely, false),
        line(["caption", "name"], Confidence::Likely, true),
        line(["titles", "names"], Confidence::Likely, false),
        other,
    ];
    let left: Vec<String> = super::witness::without_superseded(lines).into_iter().map(|one| one.id).collect();
    assert_eq!(left, ["title-name", "caption-name", "titles-names", "title-subject"]);
}
