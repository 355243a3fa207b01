//! Speed of the translation of bodies in process, by class of plan and size of body. It is compared
//! with copying the same bytes and with typical code for a JSON library: parsing, rebuilding and
//! writing a `serde_json::Value` (with `serde_json`, sonic-rs and simd-json), and a struct with
//! values that remain text (`serde_json`'s `RawValue`, sonic-rs's `LazyValue`).
//!
//! `cargo bench -p switchback-micro --bench transcoder` measures; `cargo test -p switchback-micro`
//! runs every case once at a tiny size and checks that all methods yield the same JSON.

use bytes::Bytes;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::translate::stream::{Bounds, Program, Transcoder, Values};
use switchback_engine::translate::{Env, Settings, document, urlencoded};
use switchback_json::Limits;
use switchback_json::scan::Level;
use switchback_plan::convert::{Conversion, ConversionKind, Otherwise};
use switchback_plan::{
    Absent, Captured, Close, CloseFrom, Emit, Form, FormField, FormFormat, FormKind, Key, Member,
    MemberAction, ObjectOp, Origin, Others, Raw, ValueOp,
};

const CHUNK_BYTES: usize = 64 * 1024;

/// Members of a parcel's note that are renamed.
const RENAMED: [(&str, &str); 5] = [
    ("text", "body"),
    ("isUrgent", "is_urgent"),
    ("isPrinted", "is_printed"),
    ("sentAt", "sent_at"),
    ("readAt", "read_at"),
];
const KEPT: [&str; 8] = ["id", "sender", "senderKind", "receiver", "receiverKind", "file", "kind", "parcel"];
const KEPT_OF_PARCEL: [&str; 5] = ["id", "road", "situation", "depot", "customer"];

fn key(name: &str) -> Key {
    Key { text: name.into(), json: Raw::from(format!("\"{name}\"").as_bytes()) }
}

fn emit(from: &str, to: &str, op: ValueOp) -> Member {
    let action = MemberAction::Emit(Emit { name: key(to), op });
    Member { name: key(from), action, capture: None, origin: origin() }
}

fn origin() -> Origin {
    Origin { file: "bench".into(), line: 1 }
}

fn object(members: Vec<Member>, close: Vec<Close>) -> ValueOp {
    let mut members = members;
    members.sort_by(|a, b| a.name.text.cmp(&b.name.text));
    let captures = members.iter().filter(|member| member.capture.is_some()).count() as u16;
    let name = "Note".into();
    ValueOp::Object(Arc::new(ObjectOp { name, members, others: Others::Drop, close, captures, supplied: 0 }))
}

fn keep(name: &&str) -> Member {
    emit(name, name, ValueOp::Keep)
}

fn note(captures: bool) -> ValueOp {
    let mut members: Vec<_> = KEPT.iter().filter(|name| **name != "parcel").map(keep).collect();
    members.extend(RENAMED.iter().map(|(from, to)| emit(from, to, ValueOp::Keep)));
    let parcel = object(KEPT_OF_PARCEL.iter().map(keep).collect(), vec![]);
    members.push(Member { capture: captures.then_some(0), ..emit("parcel", "parcel", parcel) });
    let place = |name: &str| CloseFrom::Captured {
        alternatives: vec![Captured { slot: 0, path: vec![key(name)], only: None, op: ValueOp::Keep }],
        absent: Absent::Omit,
    };
    let close =
        |name: &str, from| Close { name: key(name), from, needed: false, null: false, origin: origin() };
    let mut closes = vec![close("eventKind", CloseFrom::Constant(Raw::from(&b"null"[..])))];
    if captures {
        closes.push(close("road", place("road")));
        closes.push(close("customer", place("customer")));
    }
    object(members, closes)
}

/// A note as a typical struct for `serde`: the values, of type `R`, are text that is not parsed.
/// Members without a field are dropped.
#[derive(Deserialize, Serialize)]
struct Note<R> {
    id: R,
    #[serde(rename(serialize = "body", deserialize = "text"))]
    text: R,
    #[serde(rename(serialize = "is_urgent", deserialize = "isUrgent"))]
    is_urgent: R,
    #[serde(rename(serialize = "is_printed", deserialize = "isPrinted"))]
    is_printed: R,
    sender: R,
    #[serde(rename = "senderKind")]
    sender_kind: R,
    receiver: R,
    #[serde(rename = "receiverKind")]
    receiver_kind: R,
    file: R,
    parcel: Parcel<R>,
    #[serde(rename(serialize = "sent_at", deserialize = "sentAt"))]
    sent_at: R,
    #[serde(rename(serialize = "read_at", deserialize = "readAt"))]
    read_at: R,
    kind: R,
    #[serde(rename = "eventKind", default)]
    event_kind: (),
}

#[derive(Deserialize, Serialize)]
struct Parcel<R> {
    id: R,
    road: R,
    situation: R,
    depot: R,
    customer: R,
}

/// A function that translates a body.
type Translate = fn(&[u8]) -> Vec<u8>;

/// A function that translates one element of a buffered document.
type Rebuild = fn(&mut Map<String, Value>) -> Value;

/// The plans by class, cheapest first, each with the equivalent function for `serde_json`.
fn plans() -> Vec<(&'static str, ValueOp, Option<Rebuild>)> {
    let array = |op| ValueOp::Array(Box::new(op));
    let whole =
        Conversion { kind: ConversionKind::AbsentToNull, forward: false, otherwise: Otherwise::Error };
    vec![
        ("pass", ValueOp::Keep, None),
        ("tokens", array(note(false)), Some(|element| rebuild(element, false))),
        ("captures", array(note(true)), Some(|element| rebuild(element, true))),
        ("element", array(ValueOp::Convert(whole)), None),
    ]
}

/// The translation of the plans, on a parsed element.
fn rebuild(element: &mut Map<String, Value>, captures: bool) -> Value {
    let mut out = Map::new();
    let mut take = |from: &str, to: &str| {
        if let Some(value) = element.remove(from) {
            out.insert(to.to_owned(), value);
        }
    };
    KEPT.iter().for_each(|name| take(name, name));
    RENAMED.iter().for_each(|(from, to)| take(from, to));
    if let Some(Value::Object(parcel)) = out.get_mut("parcel") {
        parcel.retain(|name, _| KEPT_OF_PARCEL.contains(&name.as_str()));
    }
    out.insert("eventKind".to_owned(), Value::Null);
    if captures {
        for name in ["road", "customer"] {
            if let Some(value) = out.get("parcel").and_then(|parcel| parcel.get(name)).cloned() {
                out.insert(name.to_owned(), value);
            }
        }
    }
    Value::Object(out)
}

/// Returns a list of at least `bytes` bytes, about 620 bytes per element, as a service would send
/// it.
fn list(bytes: usize) -> Bytes {
    const TEXTS: [&str; 5] = [
        "The parcel is at the depot in Lisbon and goes out with the morning round; someone has to be there to sign for it, otherwise it waits for you until Friday.",
        "Olá! A encomenda já está no depósito e sai amanhã às 9h. Alguém precisa de assinar; senão fica à sua espera até sexta-feira, obrigado 🙂",
        "Please ring twice.\\nThe bell on the left does not work, the one on the right does, and the dog is \\\"friendly\\\" most of the time.",
        "¿Pueden dejarlo en la tienda de al lado? Está abierta hasta las ocho y media, pregunten por Inés o por su hermano.",
        "ok",
    ];
    let mut out = String::from("[");
    let mut at = 0usize;
    while out.len() < bytes {
        let comma = if at == 0 { "" } else { "," };
        let id = 9_007_199_254_740_993 + at;
        let text = TEXTS[at % TEXTS.len()];
        out.push_str(&format!(
            "{comma}{{\"id\":{id},\"text\":\"{text}\",\"isUrgent\":{},\"isPrinted\":false,\"sender\":{{\"id\":{at},\"name\":\"Ana Sofia Rodrigues\",\"email\":\"ana.rodrigues@example.org\",\"picture\":null}},\"senderKind\":\"clerk\",\"receiver\":{{\"id\":{},\"name\":\"Mesa 4\",\"email\":null}},\"receiverKind\":\"desk\",\"file\":null,\"parcel\":{{\"id\":{},\"road\":\"express\",\"situation\":\"on_the_way\",\"depot\":{{\"id\":7,\"name\":\"North\"}},\"customer\":{{\"id\":\"4711\",\"name\":\"João Müller\"}},\"flowId\":3,\"flowStepId\":null}},\"sentAt\":\"2024-05-{:02} 10:21:{:02}\",\"readAt\":null,\"kind\":\"text\",\"canReopen\":true}}",
            at.is_multiple_of(3),
            at + 1,
            at / 20,
            at % 28 + 1,
            at % 60,
        ));
        at += 1;
    }
    out.push(']');
    Bytes::from(out)
}

fn chunks(body: &Bytes) -> Vec<Bytes> {
    (0..body.len()).step_by(CHUNK_BYTES).map(|at| body.slice(at..body.len().min(at + CHUNK_BYTES))).collect()
}

/// Streams a body as the gateway does. Returns the number of bytes, and the bytes themselves with
/// `keep`.
fn stream(
    program: &Arc<Program>,
    values: &Arc<Values>,
    level: Level,
    chunks: &[Bytes],
    keep: bool,
) -> (usize, Vec<u8>) {
    let mut transcoder = Transcoder::new(program.clone(), values.clone(), Bounds::default()).at_level(level);
    let (mut sent, mut kept) = (0, Vec::new());
    for chunk in chunks {
        let out = transcoder.push(chunk.clone()).expect("the body can be translated");
        sent += out.len();
        if keep {
            kept.extend_from_slice(&out);
        }
        black_box(out);
    }
    let mut last = Vec::new();
    transcoder.finish(&mut last).expect("the body is whole");
    kept.extend_from_slice(&last);
    (sent + last.len(), kept)
}

/// A JSON library: its functions for parsing into a [`Value`] and for writing one.
type Library = (&'static str, fn(&[u8]) -> Value, fn(&Value) -> Vec<u8>);

const LIBRARIES: [Library; 3] = [
    (
        "serde_json Value",
        |text| serde_json::from_slice(text).expect("the body is JSON"),
        |value| serde_json::to_vec(value).expect("values can be written"),
    ),
    (
        "sonic-rs Value",
        |text| sonic_rs::from_slice(text).expect("the body is JSON"),
        |value| sonic_rs::to_vec(value).expect("values can be written"),
    ),
    (
        "simd-json Value",
        // The library parses in place, so the body must be copied.
        |text| simd_json::serde::from_slice(&mut text.to_vec()).expect("the body is JSON"),
        |value| simd_json::serde::to_vec(value).expect("values can be written"),
    ),
];

fn by_value((_, parse, write): &Library, body: &[u8], rebuild: Rebuild) -> Vec<u8> {
    let Value::Array(elements) = parse(body) else {
        return Vec::new();
    };
    let rebuilt = elements.into_iter().map(|element| match element {
        Value::Object(mut members) => rebuild(&mut members),
        other => other,
    });
    write(&Value::Array(rebuilt.collect()))
}

fn by_raw_value(body: &[u8]) -> Vec<u8> {
    let notes: Vec<Note<&RawValue>> = serde_json::from_slice(body).expect("the body is a list of notes");
    serde_json::to_vec(&notes).expect("notes can be written")
}

fn by_lazy_value(body: &[u8]) -> Vec<u8> {
    let notes: Vec<Note<sonic_rs::LazyValue<'_>>> =
        sonic_rs::from_slice(body).expect("the body is a list of notes");
    sonic_rs::to_vec(&notes).expect("notes can be written")
}

/// Sizes of lists: one element, a page, and a size for programs.
const SIZES: [(&str, usize); 4] = [("single", 2), ("16KB", 16_000), ("1MB", 1_000_000), ("10MB", 10_000_000)];
const TINY_SIZES: [(&str, usize); 3] = [("single", 2), ("16KB", 2_000), ("10MB", 70_000)];

fn transcoder(criterion: &mut Criterion) {
    let tiny = !std::env::args().any(|argument| argument == "--bench");
    let sizes = if tiny { &TINY_SIZES[..] } else { &SIZES[..] };
    for (size, bytes) in sizes {
        let body = list(*bytes);
        let mut group = criterion.benchmark_group(*size);
        group.throughput(Throughput::Bytes(body.len() as u64));
        let chunks = chunks(&body);
        group.bench_function("memcpy", |bencher| {
            bencher.iter(|| chunks.iter().map(|chunk| black_box(chunk.to_vec()).len()).sum::<usize>());
        });
        for (class, op, rebuild) in plans() {
            let translated = ours(&mut group, class, &op, &body, &chunks);
            if let Some(rebuild) = rebuild {
                theirs(&mut group, class, &body, rebuild, &translated);
            }
        }
        group.finish();
    }
}

type Group<'g> = BenchmarkGroup<'g, WallTime>;

/// Measures streams of one class at every level, and the document class.
/// Returns their common output.
fn ours(group: &mut Group<'_>, class: &str, op: &ValueOp, body: &[u8], chunks: &[Bytes]) -> Vec<u8> {
    let values = Arc::new(Values::default());
    let program = Arc::new(Program::compile(op));
    let (_, streamed) = stream(&program, &values, Level::best(), chunks, true);
    assert_eq!(streamed, by_document(op, body), "{class}");
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        assert_eq!(stream(&program, &values, level, chunks, true).1, streamed);
        group.bench_function(BenchmarkId::new(class, format!("{level:?}")), |bencher| {
            bencher.iter(|| stream(&program, &values, level, chunks, false).0);
        });
    }
    group.bench_function(BenchmarkId::new(class, "document"), |bencher| {
        bencher.iter(|| by_document(op, body).len());
    });
    streamed
}

/// Measures the same translation by other libraries, and checks that each yields the same JSON.
fn theirs(group: &mut Group<'_>, class: &str, body: &[u8], rebuild: Rebuild, translated: &[u8]) {
    let json = |text: &[u8]| serde_json::from_slice::<Value>(text).expect("both are JSON");
    let expected = json(translated);
    for library in &LIBRARIES {
        assert_eq!(json(&by_value(library, body, rebuild)), expected, "{class}, {}", library.0);
        group.bench_function(BenchmarkId::new(class, library.0), |bencher| {
            bencher.iter(|| by_value(library, body, rebuild).len());
        });
    }
    // A struct for moved members would be a different program, so structs are measured for the other plans
    // only.
    if class != "tokens" {
        return;
    }
    let structs: [(&str, Translate); 2] =
        [("serde_json RawValue", by_raw_value), ("sonic-rs LazyValue", by_lazy_value)];
    for (name, translate) in structs {
        assert_eq!(json(&translate(body)), expected, "{class}, {name}");
        group.bench_function(BenchmarkId::new(class, name), |bencher| {
            bencher.iter(|| translate(body).len());
        });
    }
}

fn by_document(op: &ValueOp, body: &[u8]) -> Vec<u8> {
    let settings = Settings::default();
    let env = Env { settings: &settings, supplied: &[] };
    let mut out = Vec::with_capacity(body.len());
    document(op, body, &env, &Limits::STREAM, &mut out).expect("the body can be translated");
    out
}

/// The variation of members between the elements of a list.
#[derive(Clone, Copy)]
enum Variety {
    /// All elements have the same members.
    Uniform,
    /// Three sets of members in rotation, in the element and in its nested object.
    Alternating,
    /// The same members in two alternating orders.
    TwoOrders,
}

/// Returns a list of one megabyte. Its elements have the members of [`note`], all with values of
/// the same size.
fn varied(variety: Variety) -> Bytes {
    let object = |members: &[(&str, &str)], left_out: &[&str], is_reversed: bool| {
        let mut members: Vec<_> = members.iter().filter(|(name, _)| !left_out.contains(name)).collect();
        if is_reversed {
            members.reverse();
        }
        let members = members.iter().map(|(name, value)| format!("\"{name}\":{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    };
    let element = |at: usize| {
        let sets: [[&[&str]; 2]; 3] = [
            [&[], &[]],
            [&["file", "readAt"], &["depot"]],
            [&["isPrinted", "sender"], &["road", "customer"]],
        ];
        let ([left_out, left_out_within], is_reversed) = match variety {
            Variety::Uniform => (sets[0], false),
            Variety::Alternating => (sets[at % 3], false),
            Variety::TwoOrders => (sets[0], at % 2 == 1),
        };
        let parcel = [
            ("id", "12345"),
            ("road", "\"express\""),
            ("situation", "\"on_the_way\""),
            ("depot", "{\"id\":7}"),
            ("customer", "\"João Müller\""),
            ("flowId", "3"),
        ];
        let parcel = object(&parcel, left_out_within, is_reversed);
        let members = [
            ("id", "9007199254740993"),
            ("text", "\"The parcel goes out with the morning round; someone has to sign for it.\""),
            ("isUrgent", "true"),
            ("isPrinted", "false"),
            ("sender", "{\"id\":5,\"name\":\"Ana Sofia Rodrigues\",\"picture\":null}"),
            ("senderKind", "\"clerk\""),
            ("receiverKind", "\"desk\""),
            ("file", "null"),
            ("parcel", &parcel),
            ("sentAt", "\"2024-05-03 10:21:44\""),
            ("readAt", "null"),
            ("kind", "\"text\""),
        ];
        object(&members, left_out, is_reversed)
    };
    let mut out = String::from("[");
    for at in 0.. {
        out.push_str(&element(at));
        if out.len() > 1_000_000 {
            break;
        }
        out.push(',');
    }
    out.push(']');
    Bytes::from(out)
}

/// Measures the class `tokens` on elements with varying members, in CPU time per byte.
fn variety(criterion: &mut Criterion) {
    let op = ValueOp::Array(Box::new(note(false)));
    let (values, program) = (Arc::new(Values::default()), Arc::new(Program::compile(&op)));
    let cases = [
        ("uniform", Variety::Uniform),
        ("alternating", Variety::Alternating),
        ("two orders", Variety::TwoOrders),
    ];
    for (name, variety) in cases {
        let body = varied(variety);
        let chunks = chunks(&body);
        let (_, streamed) = stream(&program, &values, Level::best(), &chunks, true);
        assert_eq!(streamed, by_document(&op, &body), "{name}");
        let mut group = criterion.benchmark_group("variety");
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| stream(&program, &values, Level::best(), &chunks, false).0);
        });
        group.finish();
    }
}

/// Measures the translation of a form of ten kilobytes, flat and nested, to JSON and back.
fn forms(criterion: &mut Criterion) {
    let form = |kind| Arc::new(Form { kind, nullable: false });
    let text = || form(FormKind::String(None));
    let fields = |names: Vec<String>, of: Arc<Form>| {
        let field =
            |name: String| FormField { name: Key::new(&name), form: Arc::clone(&of), required: false };
        form(FormKind::Object { fields: names.into_iter().map(field).collect(), others: None })
    };
    let names = |stem: &str, count: usize| (0..count).map(|n| format!("{stem}{n}")).collect::<Vec<_>>();
    let flat: Vec<String> =
        names("field", 40).iter().map(|name| format!("{name}={}", "some+text%2C+".repeat(18))).collect();
    let item = fields(names("part", 4), form(FormKind::Integer(None)));
    let list = form(FormKind::Array { items: item, items_min: 0, items_max: None });
    let nested: Vec<String> = (0..440).map(|n| format!("items[{}][part{}]={n}", n / 4, n % 4)).collect();
    let cases = [
        ("flat", fields(names("field", 40), text()), flat.join("&")),
        ("nested", fields(vec!["items".to_owned()], list), nested.join("&")),
    ];
    let mut group = criterion.benchmark_group("form");
    for (name, form, body) in cases {
        let format = FormFormat { form, lists: Vec::new() };
        let decoded = || {
            let mut out = Vec::with_capacity(body.len() * 2);
            urlencoded::decode(&format, body.as_bytes(), &Limits::DOCUMENT, &mut out).expect("it is a form");
            out
        };
        let json = decoded();
        let form = urlencoded::encode(&format, &json, &Limits::DOCUMENT).expect("it is JSON");
        let mut again = Vec::new();
        urlencoded::decode(&format, form.as_bytes(), &Limits::DOCUMENT, &mut again).expect("it is a form");
        assert_eq!(json, again, "{name}");
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(BenchmarkId::new("decode", name), |bencher| bencher.iter(|| decoded().len()));
        group.throughput(Throughput::Bytes(json.len() as u64));
        group.bench_function(BenchmarkId::new("encode", name), |bencher| {
            bencher.iter(|| {
                urlencoded::encode(&format, black_box(&json), &Limits::DOCUMENT).map(|form| form.len())
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = transcoder, variety, forms
}
criterion_main!(benches);
