//! Entries of `examples:`. Values remain YAML until the example runs.

use super::kinds::{Anything, ListOf, MapOf, Natural, Operation, Status, Text, kinds};
use super::section::{Read, section};
use super::{Spanned, SyntaxReader, faults};
use crate::diagnostic::Span;
use crate::mapping::schema::{Sides, anything, list_of, map_of, reference, text};
use crate::yaml::{Key, Kind, Node, TextStyle, described};
use serde_json::{Map, Value, json};

/// One entry of `examples:`.
#[derive(Clone, Debug)]
pub(crate) enum ExampleDecl {
    Route(RouteExampleDecl),
    Shape(ShapeExampleDecl),
    Harvest(HarvestExampleDecl),
}

impl Read for ExampleDecl {
    type Output = ExampleDecl;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<ExampleDecl> {
        let has = |key| node.get(key).is_some();
        match (has("at"), has("shape"), has("harvest")) {
            (true, false, false) => RouteExampleDecl::read(key, node, reader).map(ExampleDecl::Route),
            (false, true, false) => ShapeExampleDecl::read(key, node, reader).map(ExampleDecl::Shape),
            (false, false, true) => HarvestExampleKeys::read(key, node, reader).map(ExampleDecl::Harvest),
            _ => {
                node.map(reader.findings)?;
                let known = &["at", "shape", "harvest"];
                reader.findings.push(faults::one_of_keys(node.span, "an example", known));
                None
            }
        }
    }

    fn schema(_: Sides<'_>) -> Value {
        json!({"anyOf": [reference("routeExample"), reference("shapeExample"), reference("harvestExample")]})
    }
}

section! {
    /// A request, the expected calls with their scripted replies, and the expected response.
    RouteExampleDecl is "an example", defines "routeExample", with one_end {
        /// Side, method and address, such as `v1 GET /things/7?page=2`.
        required at: ExampleAddress,
        /// Headers and body of the request, settings and archive entries.
        default send: SendDecl,
        part exchange: ExchangeKeys,
        /// The same request repeated, with the state that `resume` saved.
        strict again: AgainKeys,
        at span: Span,
    }
}

section! {
    /// Headers and body of the request, settings and archive entries.
    #[derive(Default)]
    SendDecl is "`send`" {
        /// Header fields of the request.
        default headers: MapOf<Text>,
        /// Body of the request.
        optional body: Anything,
        /// Settings by name; the others keep their defaults.
        default config: MapOf<Anything>,
        /// Entries of archives, by archive and key: `{age: seconds, value}`.
        default archives: Archives,
    }
}

section! {
    /// The same request repeated, with the state that `resume` saved.
    AgainKeys is "`again`", with one_end {
        part exchange: ExchangeKeys,
    }
    into ExchangeDecl: |again, _, _| Some(again.exchange)
}

section! {
    /// An entry of an archive.
    ArchivedEntry is "an entry" {
        /// Seconds since the entry was stored.
        required age: Natural,
        /// Its value, where the archive has values.
        optional value: Anything,
    }
}

kinds! {
    /// A side and a request line, such as `v2 PUT /things/7?x=1`.
    ExampleAddress -> Spanned<String>, |_, node, reader| {
        let at = reader.text(node)?;
        if at.value.split(' ').count() != 3 {
            reader.findings.push(faults::example_address(at.span));
        }
        Some(at)
    }, |_| text();
}

/// An entry of an archive.
#[derive(Clone, Debug)]
pub(crate) struct ArchivedDecl {
    pub archive: Spanned<String>,
    pub key: String,
    pub age: i64,
    pub value: Option<Node>,
}

kinds! {
    /// `{name: {key: {age: 60, value: …}}}`
    Archives -> Vec<ArchivedDecl>, |key, node, reader| {
        let archives = MapOf::<MapOf<ArchivedEntry>>::read(key, node, reader)?.into_iter();
        let entries = archives.flat_map(|(archive, entries)| {
            entries.into_iter().map(move |(key, ArchivedEntry { age, value })| {
                ArchivedDecl { archive: archive.clone(), key: key.value, age: age.value, value }
            })
        });
        Some(entries.collect())
    }, MapOf::<MapOf<ArchivedEntry>>::schema;
    /// `{name: {key: value}}`, or `{name: [key]}` for archives without values.
    Keeps -> Vec<ArchivedDecl>, |_, node, reader| {
        let mut all = Vec::new();
        for (name, entries) in node.map(reader.findings)? {
            let mut add = |key: String, value: Option<Node>| {
                all.push(ArchivedDecl { archive: SyntaxReader::key(name), key, age: 0, value });
            };
            match &entries.kind {
                Kind::Seq(keys) => {
                    for key in keys.iter() {
                        match &key.kind {
                            // YAML reads an unquoted numeric key as a number, and keys of archives
                            // are texts.
                            Kind::Number(text) => add(text.clone(), None),
                            _ => reader.text(key).into_iter().for_each(|key| add(key.value, None)),
                        }
                    }
                }
                _ => {
                    for (key, value) in entries.map(reader.findings).unwrap_or_default() {
                        add(key.name.clone(), Some(value.clone()));
                    }
                }
            }
        }
        Some(all)
    }, |_| map_of(&json!({"anyOf": [map_of(&anything()), {"type": "array"}]}));
}

section! {
    /// The expected calls and the expected end.
    ExchangeKeys is "an exchange" {
        /// The expected calls, in order.
        default calls: ListOf<ExampleCallDecl>,
        /// The expected archive entries, by archive: keys and values.
        default keeps: Keeps,
        /// The expected answer.
        optional answer: ExampleAnswerDecl,
        /// The expected reason of a refusal.
        optional refused: Text,
    }
    into ExchangeDecl: |ExchangeKeys { calls, keeps, answer, refused }, fields, reader| {
        if fields.get("answer").is_some() == fields.get("refused").is_some() {
            reader.findings.push(faults::example_end(fields.node.span));
            return None;
        }
        let answer = match answer {
            Some(ExampleAnswerDecl { status, headers, body }) => ExampleAnswer::Answer { status, headers, body },
            None => ExampleAnswer::Refused(refused?),
        };
        Some(ExchangeDecl { calls, keeps, answer })
    }
}

/// The expected calls and the expected response.
#[derive(Clone, Debug)]
pub(crate) struct ExchangeDecl {
    pub calls: Vec<ExampleCallDecl>,
    pub keeps: Vec<ArchivedDecl>,
    pub answer: ExampleAnswer,
}

#[derive(Clone, Debug)]
pub(crate) enum ExampleAnswer {
    /// `answer: {status, headers, body}`. With `--bless`, a body of `?` is filled in.
    Answer { status: Spanned<i64>, headers: Vec<(Spanned<String>, Spanned<String>)>, body: Option<Node> },
    /// `refused: reason`
    Refused(Spanned<String>),
}

fn one_end(schema: &mut Value) {
    schema["oneOf"] = json!([{"required": ["answer"]}, {"required": ["refused"]}]);
}

section! {
    /// The expected response.
    ExampleAnswerDecl is "an answer", defines "exampleAnswer" {
        /// Status of the answer.
        required status: Status,
        /// Expected header fields; others are permitted.
        default headers: MapOf<Text>,
        /// Its body; `'?'` is filled in by `switchback test --bless`.
        optional body: Anything,
    }
}

section! {
    /// An expected call with its scripted reply.
    ExampleCallDecl is "a call", defines "exampleCall" {
        /// Method and address of the call.
        required expect: Operation,
        /// Its reply: `{status: body}`, or `{status: empty}`.
        required reply: ReplyDecl,
        /// Expected header fields; others are permitted.
        default headers: MapOf<Text>,
        /// The expected body.
        optional body: Anything,
        /// Header fields of the reply.
        default reply_headers: MapOf<Text>,
    }
}

/// `{status: body}`, or `{status: empty}`.
#[derive(Clone, Debug)]
pub(crate) struct ReplyDecl {
    pub status: Spanned<i64>,
    /// `None` is an empty body.
    pub body: Option<Node>,
}

impl Read for ReplyDecl {
    type Output = ReplyDecl;

    fn read(_: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<ReplyDecl> {
        let [(status, body)] = node.map(reader.findings)? else {
            reader.findings.push(faults::example_reply(node.span));
            return None;
        };
        // In quotes the word is the text itself.
        let empty = matches!(&body.kind, Kind::String(word, TextStyle::Plain) if word == "empty");
        Some(ReplyDecl { status: reader.status_key(status)?, body: (!empty).then(|| body.clone()) })
    }

    fn schema(_: Sides<'_>) -> Value {
        json!({
            "type": "object", "minProperties": 1, "maxProperties": 1, "propertyNames": {"pattern": "^[2-5][0-9][0-9]$"},
        })
    }
}

/// One page of a harvest: the expected calls with their scripted replies, and the archived entries.
#[derive(Clone, Debug)]
pub(crate) struct HarvestExampleDecl {
    pub name: Spanned<String>,
    pub page: Spanned<i64>,
    pub exchange: ExchangeDecl,
    pub span: Span,
}

section! {
    /// The keys of an example of a harvest.
    HarvestExampleKeys is "an example of a harvest", defines "harvestExample" {
        /// Name of the harvest.
        required harvest: Text,
        /// Number of the page.
        required page: Natural,
        /// The expected calls, in order.
        default calls: ListOf<ExampleCallDecl>,
        /// The expected archive entries, by archive: keys and values.
        default keeps: Keeps,
        at span: Span,
    }
    into HarvestExampleDecl: |HarvestExampleKeys { harvest, page, calls, keeps, span }, _, _| {
        // A harvest returns no response to check, so an empty success takes its place.
        let status = Spanned { value: 200, span };
        let answer = ExampleAnswer::Answer { status, headers: Vec::new(), body: None };
        Some(HarvestExampleDecl { name: harvest, page, exchange: ExchangeDecl { calls, keeps, answer }, span })
    }
}

/// One value on each side, translated both ways. `lost` lists the places that the round trip loses.
#[derive(Clone, Debug)]
pub(crate) struct ShapeExampleDecl {
    pub shape: Spanned<String>,
    pub values: [Option<Node>; 2],
    /// Index of the side that the file lists first. The other value is derived from its value.
    pub source: usize,
    /// Places lost in the first direction, as paths.
    pub lost: Vec<Spanned<String>>,
    pub span: Span,
}

impl Read for ShapeExampleDecl {
    type Output = ShapeExampleDecl;

    fn read(_: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<ShapeExampleDecl> {
        let mut values = [None, None];
        let (mut shape, mut lost, mut source) = (None, Vec::new(), None);
        for (key, value) in node.map(reader.findings)? {
            match key.name.as_str() {
                "shape" => shape = reader.text(value),
                "lost" => lost = ListOf::<Text>::read(key, value, reader).unwrap_or_default(),
                name => {
                    let Some(side) = reader.side(name, key.span) else { continue };
                    // The side that is written first is the source, so the order of the keys
                    // matters.
                    source.get_or_insert(side.side);
                    values[side.side] = Some(value.clone());
                }
            }
        }
        let Some(source) = source else {
            let known = [reader.sides[0].value.as_str(), reader.sides[1].value.as_str()];
            reader.findings.push(faults::one_of_keys(node.span, "an example of a shape", &known));
            return None;
        };
        Some(ShapeExampleDecl { shape: shape?, values, source, lost, span: node.span })
    }

    fn schema(_: Sides<'_>) -> Value {
        reference("shapeExample")
    }
}

impl ShapeExampleDecl {
    pub(in crate::mapping) fn definition(sides: Sides<'_>) -> Value {
        let mut properties: Map<String, Value> = Map::new();
        let lost = "Places of the value written first that do not come back.";
        properties.insert("shape".to_owned(), described(text(), &["Name of the shape."]));
        properties.insert("lost".to_owned(), described(list_of(&text()), &[lost]));
        let mut open = anything();
        for side in sides.into_iter().flatten() {
            let about = "A value of this side; the one written first is the source.";
            properties.insert(side.to_owned(), described(anything(), &[about]));
            open = Value::Bool(false);
        }
        json!({
            "type": "object", "additionalProperties": open, "properties": properties, "required": ["shape"],
            "minProperties": 2, "maxProperties": 4,
        })
    }
}
