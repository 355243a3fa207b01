//! Definitions that several parts of mapping files share.

use super::{KeyDoc, Sides, anything, by_side, keys, list_of, map_of, object, reference, text, words};
use crate::mapping::lens::SINGLE_IN_ARRAY;
use crate::mapping::syntax::predicates;
use serde_json::{Map, Value, json};
use switchback_plan::convert::{Arguments, SPECS};

pub(super) fn defs(sides: Sides<'_>) -> Value {
    json!({
        "status": status(),
        "policy": policy(),
        "place": place(),
        "shape": shape(sides),
        "shapeInPlace": object(&keys::SHAPE_IN_PLACE, &shape_lines(sides)),
        "shapeUse": shape_use(),
        "conversion": conversion(),
        "pair": pair(sides),
        "serve": serve(sides),
        "paging": paging(sides),
        "body": {"anyOf": [
            words(&["empty", "keep"]), reference("shapeUse"), reference("shapeInPlace"), shaped_body(),
        ]},
        "sentences": {"anyOf": [text(), list_of(&text())]},
        "verdict": words(&["exact", "different", "partly"]),
        "outcome": outcome(),
        "answer": answer(),
        "decide": decide(),
        "check": check(),
        "predicate": predicate(&[], &[]),
        "step": step(),
        "action": {"anyOf": [call(), pick(false), first(), make(), recall(), keep()]},
        "onFail": on_fail(),
        "value": super::values::value(),
        "exampleAnswer": example_answer(),
        "exampleCall": example_call(),
        "routeExample": route_example(),
        "shapeExample": shape_example(sides),
        "harvestExample": harvest_example(),
        "event": event(sides),
        "archive": archive(sides),
        "harvest": harvest(sides),
    })
}

fn event(sides: Sides<'_>) -> Value {
    object(
        &keys::EVENT,
        &[
            ("event", "Its name on the side that sends, and on the other one.", by_side(sides, 1, &text())),
            ("body", "What the body becomes: a shape, or `keep` where it is the same.", text()),
            (
                "key",
                "The value in the body, such as `$.body.data.id`, that keeps events in order; by side where the other one sends them too.",
                json!({"anyOf": [text(), by_side(sides, 1, &text())]}),
            ),
            (
                "correlate",
                "By what a dual run knows the event of the other side that tells the same.",
                object(
                    &keys::CORRELATE,
                    &[
                        (
                            "by",
                            "Values in the body that receivers know, such as `$.body.note.id`: one, or several that are equal together.",
                            json!({"anyOf": [text(), list_of(&text())]}),
                        ),
                        ("within", "How long the one waits for the other: `90s`, `2m`, `1h`.", text()),
                    ],
                ),
            ),
            ("drop", "Why receivers of the other side are not told.", text()),
        ],
    )
}

pub(super) fn status() -> Value {
    json!({"type": "integer", "minimum": 200, "maximum": 599})
}

pub(super) fn policy() -> Value {
    let after = object(
        &keys::AFTER,
        &[
            (
                "date",
                "`YYYY-MM-DD`, `$.config.name` for a setting that is a date, or null for never.",
                json!({"type": ["string", "null"]}),
            ),
            ("status", "Answered from that day on.", reference("status")),
        ],
    );
    object(
        &keys::POLICY,
        &[
            ("legacy", "Whether the operation goes to the old service while one is configured.", legacy()),
            ("status", "Answered otherwise.", reference("status")),
            ("after", "Another status from a date on.", after),
        ],
    )
}

fn place() -> Value {
    json!({"type": "string", "description": "A member name, or a JSONPath of names such as `$.body.text`."})
}

fn shape(sides: Sides<'_>) -> Value {
    let mut lines: Vec<KeyDoc<'_>> = vec![
        ("of", "The type of each side that the shape relates.", by_side(sides, 2, &text())),
        (
            "alternatives",
            "Shapes, one for each object that the type may be; instead of lines.",
            list_of(&text()),
        ),
        ("like", "Takes over the lines of another shape; lines here win.", text()),
    ];
    lines.extend(shape_lines(sides));
    object(&keys::SHAPE, &lines)
}

fn shape_lines(sides: Sides<'_>) -> Vec<KeyDoc<'static>> {
    let kinds = json!({"type": "object", "propertyNames": words(keys::KINDS), "additionalProperties": reference("place")});
    vec![
        ("same", "Members with the same name and type on both sides.", list_of(&text())),
        ("rename", "A place of the old side: its place on the new one.", map_of(&rename(sides))),
        (
            "copy",
            "Members of one side that show a place of the other a second time.",
            by_side(sides, 1, &map_of(&place())),
        ),
        ("constant", "Members with a fixed value on each side.", map_of(&by_side(sides, 2, &anything()))),
        (
            "by_kind",
            "A place of the old side, and places of the new one by the kind of the value.",
            map_of(&kinds),
        ),
        (
            "only",
            "Places that one side has and the other has not, and what they are built with.",
            by_side(sides, 1, &map_of(&fill())),
        ),
        (
            "rest",
            "All members of a side that no line names: `lost`, or the value that they are built with.",
            by_side(sides, 1, &rest()),
        ),
    ]
}

/// `new place`, or `{<new side>: new place, …}`.
fn rename(sides: Sides<'_>) -> Value {
    let about: [(&str, Value); 5] = [
        ("each_value", describe("Shape that turns each value of a map.", text())),
        ("shape", describe("Shape that turns the value; `[Name]` for each element.", reference("shapeUse"))),
        ("as", describe("Conversion of the value.", reference("conversion"))),
        (
            "else",
            describe(
                "What follows for a value that the conversion or the shape does not take: `error`, `keep`, `drop` or a literal, or one of these for each side.",
                anything(),
            ),
        ),
        (
            "default",
            describe("Written on a side when the other has nothing there.", by_side(sides, 1, &anything())),
        ),
    ];
    let mut properties: Map<String, Value> = Map::new();
    for key in keys::RENAME {
        let schema = about.iter().find(|(name, _)| name == key).map(|(_, schema)| schema.clone());
        properties.insert((*key).to_owned(), schema.unwrap_or(Value::Bool(true)));
    }
    let long = match sides {
        Some([_, new]) => {
            properties.insert(new.to_owned(), describe("The place on the new side.", reference("place")));
            json!({"type": "object", "additionalProperties": false, "properties": properties, "required": [new]})
        }
        None => {
            // Without the names of the sides, any other key may be the new side.
            json!({"type": "object", "additionalProperties": reference("place"), "properties": properties})
        }
    };
    json!({"anyOf": [reference("place"), long]})
}

fn describe(about: &str, schema: Value) -> Value {
    super::describe_line(&("", about, schema))
}

fn shape_use() -> Value {
    json!({"anyOf": [text(), {"type": "array", "items": text(), "minItems": 1, "maxItems": 1}]})
}

/// `{shape: [Name], else: drop}`
fn shaped_body() -> Value {
    object(
        &keys::SHAPED_BODY,
        &[
            ("shape", "Shape of each element: `[Name]`.", reference("shapeUse")),
            (
                "else",
                "What follows for an element that the shape does not take: `drop`, `error` or a literal, or one of these for each side.",
                anything(),
            ),
        ],
    )
}

fn conversion() -> Value {
    let plain = SPECS.iter().filter(|spec| matches!(spec.arguments, Arguments::None));
    let plain = plain.map(|spec| spec.name).chain([SINGLE_IN_ARRAY]);
    let mut forms = vec![words(&plain.collect::<Vec<_>>())];
    for spec in SPECS {
        let schema = match spec.arguments {
            Arguments::None => continue,
            Arguments::Table => map_of(&cells()),
            Arguments::Pairs => object(
                &keys::PAIRS,
                &[
                    ("key", "Member of an entry that holds the key.", text()),
                    ("value", "Member of an entry that holds the value.", text()),
                ],
            ),
            Arguments::Own { schema, .. } => {
                serde_json::from_str(schema).expect("a conversion's schema is JSON, which a test reads")
            }
        };
        let properties = json!({spec.name: describe(spec.about, schema)});
        forms.push(json!({
            "type": "object", "additionalProperties": false, "required": [spec.name], "properties": properties,
        }));
    }
    // Lists and `each` contain single conversions only, so build them before they join the forms.
    let several = json!({"type": "array", "minItems": 2, "items": {"anyOf": forms.clone()}});
    let each = describe("For each element of a list.", json!({"anyOf": forms.clone()}));
    forms.push(describe("The first that takes the value.", several));
    forms.push(json!({
        "type": "object", "additionalProperties": false, "required": ["each"], "properties": {"each": each},
    }));
    json!({"anyOf": forms})
}

/// A value of a table, or a list whose first value is written.
fn cells() -> Value {
    let cell = json!({"type": ["string", "number", "boolean", "null"]});
    json!({"anyOf": [cell.clone(), {"type": "array", "items": cell, "minItems": 1}]})
}

/// Fill values of one-sided fields.
fn fill() -> Value {
    let value = object(
        &keys::FILL_VALUE,
        &[
            ("value", "A literal.", anything()),
            ("despite", "It breaks the contract's type, and is listed in the report.", words(&["type"])),
        ],
    );
    let refuse = object(
        &keys::FILL_REFUSE,
        &[("refuse", "Left out, and a client that sends it is refused with this reason.", text())],
    );
    // Maps are special forms. A literal object needs `{value: …}`.
    let literal = json!({"type": ["null", "boolean", "number", "string", "array"]});
    json!({"anyOf": [literal, {"type": "object", "maxProperties": 0}, value, refuse, word(&["absent", "none"])]})
}

/// Fill values of members that no line names.
fn rest() -> Value {
    let value = object(
        &keys::FILL_VALUE,
        &[
            ("value", "A literal for all of them.", anything()),
            ("despite", "It breaks the type of some, which are listed in the report.", words(&["type"])),
        ],
    );
    // A schema cannot see quotes, so every text counts as a keyword. A literal text needs `{value:
    // …}`.
    let literal = json!({"type": ["null", "boolean", "number", "array"]});
    json!({"anyOf": [words(&["lost"]), literal, value, word(&["lost"])]})
}

/// A keyword in a file where every text is in quotes.
fn word(known: &[&str]) -> Value {
    object(&keys::WORD, &[("word", "A word that has a meaning, and is no text.", words(known))])
}

fn operation() -> Value {
    json!({"type": "string", "pattern": "^(GET|PUT|POST|DELETE|OPTIONS|HEAD|PATCH) /"})
}

fn pair(sides: Sides<'_>) -> Value {
    let mut operations = by_side(sides, 2, &operation());
    operations["properties"]["front"] = describe("Only this side is served by the pair.", text());
    // The two sides and `front`.
    operations["maxProperties"] = json!(3);
    let texts = map_of(&text());
    let constant = object(
        &keys::CONSTANT,
        &[("constant", "The one value that it has, by side.", by_side(sides, 1, &constant_value()))],
    );
    let line = parameter(sides);
    let fields = map_of(&json!({"anyOf": [text(), line, constant]}));
    let headers = object(
        &keys::PAIR_HEADERS,
        &[
            ("request", "Header fields of requests: `{old: new}`, or `{name: drop}`.", fields.clone()),
            ("response", "Header fields of responses: `{old: new}`, or `{name: drop}`.", fields),
        ],
    );
    let media = object(
        &keys::PAIR_MEDIA,
        &[
            ("request", "Of requests: `{old: new}`.", map_of(&text())),
            ("response", "Of responses: `{old: new}`.", map_of(&text())),
        ],
    );
    let word = json!({"anyOf": [reference("status"), {"type": "string", "pattern": "^[2-5]xx$"}]});
    let status = json!({
        "type": "object", "propertyNames": {"pattern": "^[2-5][0-9][0-9]$"},
        "additionalProperties": {"anyOf": [word, list_of(&word)]},
    });
    let refused = object(
        &keys::QUERY_REFUSE,
        &[
            ("refuse", "The reason for which a client that sends it is refused.", text()),
            ("unless", "Values with which it means nothing, and is dropped.", list_of(&text())),
        ],
    );
    let lines: Vec<KeyDoc<'_>> = vec![
        ("pair", "The operation of each side; with `front`, the side that is served.", operations),
        (
            "if",
            "A boolean setting, `$.config.name`: answers instead of the other route while it is on.",
            text(),
        ),
        ("path", "Path variables: `{old: new}`; those of the same name are passed.", texts.clone()),
        ("allow_slash", "Path variables whose values may hold escaped slashes (`%2F`).", list_of(&text())),
        (
            "query",
            "Query parameters that are passed: names, or `{old: new}`; or what becomes of them instead.",
            json!({"anyOf": [list_of(&text()), map_of(&json!({"anyOf": [text(), line, constant, refused]}))]}),
        ),
        ("paging", "How both sides ask for pages, where they do it in different ways.", reference("paging")),
        ("headers", "Header fields that are passed.", headers),
        ("media", "Media types of bodies that are passed, where the sides name them differently.", media),
        (
            "request",
            "The request's body: a shape, `[Shape]`, `empty`, `keep`, or lines of a shape.",
            reference("body"),
        ),
        ("response", "The response's body.", reference("body")),
        ("status", "Old status: new statuses; the first is sent when going the other way.", status),
        (
            "business_errors",
            "Statuses that are answers, not failures of the service.",
            list_of(&reference("status")),
        ),
        ("retry", "Whether a repeat of this write is harmless.", words(&["safe", "never"])),
        ("effect", "Whether it writes, where the method misleads.", words(&["write", "none"])),
        ("differs", "What differs, for the report.", reference("sentences")),
        (
            "approximate",
            "What is only nearly the same, for the report; with names, answers are marked with them.",
            json!({"anyOf": [reference("sentences"), map_of(&text())]}),
        ),
        ("verdict", "How well the operation is kept.", verdict(sides)),
    ];
    object(&keys::PAIR, &lines)
}

/// A parameter or header with a conversion: `{<new side>: new, as, else}`.
fn parameter(sides: Sides<'_>) -> Value {
    let about = |key: &str| match key {
        "as" => describe("Conversion of the value.", reference("conversion")),
        _ => describe("What happens outside the conversion's domain.", anything()),
    };
    let mut properties: Map<String, Value> =
        keys::PARAMETER.iter().map(|key| ((*key).to_owned(), about(key))).collect();
    match sides {
        Some([_, new]) => {
            properties.insert(new.to_owned(), describe("Its name on the new side.", text()));
            json!({"type": "object", "additionalProperties": false, "properties": properties, "required": [new]})
        }
        // Without the names of the sides, any other key may be the new side.
        None => json!({"type": "object", "additionalProperties": text(), "properties": properties}),
    }
}

/// Values of constant parameters.
pub(super) fn constant_value() -> Value {
    json!({"type": ["string", "number", "boolean", "array"]})
}

fn verdict(sides: Sides<'_>) -> Value {
    json!({"anyOf": [reference("verdict"), by_side(sides, 1, &reference("verdict"))]})
}

/// The keys of steps and their end.
fn block() -> Vec<KeyDoc<'static>> {
    vec![
        ("steps", "Calls and selections, in order.", list_of(&reference("step"))),
        ("answer", "The end: what is answered.", reference("answer")),
        ("refuse", "The end: refused, with this reason.", text()),
        ("policy", "What happens to this refusal.", reference("policy")),
        ("decide", "The end: a table that chooses an outcome.", reference("decide")),
        ("outcomes", "What the table chooses among, by name.", map_of(&reference("outcome"))),
        ("differs", "What differs, for the report.", reference("sentences")),
        (
            "approximate",
            "What is only nearly the same, for the report; with names, answers are marked with them.",
            json!({"anyOf": [reference("sentences"), map_of(&text())]}),
        ),
    ]
}

fn one_end() -> Value {
    json!([{"required": ["answer"]}, {"required": ["refuse"]}, {"required": ["decide", "outcomes"]}])
}

fn serve(sides: Sides<'_>) -> Value {
    let side = sides.map_or_else(text, |sides| words(&sides));
    let mut lines: Vec<KeyDoc<'_>> = vec![
        ("serve", "The side that is served.", side),
        ("at", "The operation that is served.", operation()),
        (
            "if",
            "A boolean setting, `$.config.name`: answers instead of the other route while it is on.",
            text(),
        ),
        ("allow_slash", "Path variables whose values may hold escaped slashes (`%2F`).", list_of(&text())),
        ("check", "Conditions on the request, before anything is called.", list_of(&reference("check"))),
        ("fill", "Defaults of the request's body.", map_of(&anything())),
        ("query", "Query parameters that go nowhere: `{name: drop}`.", map_of(&words(&["drop"]))),
        (
            "headers",
            "Header fields of the request that go nowhere, or that the answer lacks: `{name: drop}`.",
            map_of(&words(&["drop"])),
        ),
        ("paging", "How both sides ask for pages, where they do it in different ways.", reference("paging")),
        (
            "business_errors",
            "Statuses that are answers, not failures of the service.",
            list_of(&reference("status")),
        ),
        ("verdict", "How well the operation is kept.", verdict(sides)),
    ];
    lines.extend(block());
    let mut serve = object(&keys::SERVE, &lines);
    serve["oneOf"] = one_end();
    serve
}

/// How a side requests pages and announces further ones.
fn paging(sides: Sides<'_>) -> Value {
    let count = |least: u32, most: u32| json!({"type": "integer", "minimum": least, "maximum": most});
    let next = object(
        &keys::PAGED_NEXT,
        &[
            ("header", "A header field with the cursor.", text()),
            ("link", "A member of the body with the URL of the next page.", text()),
        ],
    );
    let side = object(
        &keys::PAGED_SIDE,
        &[
            ("page", "The query parameter with the number of the page.", text()),
            ("offset", "The query parameter with how many items stand before the page.", text()),
            ("cursor", "The query parameter with a text of the service's own.", text()),
            ("first", "The number of the first page; 1 unless said otherwise.", count(0, 1)),
            ("start", "The cursor that stands for the first page.", text()),
            ("end", "The cursor that stands for no further page.", text()),
            ("size", "The query parameter with how many items a page may have.", text()),
            ("default", "How many items a page has where nobody says.", count(1, 100_000)),
            ("maximum", "Most items of a page.", count(1, 100_000)),
            (
                "next",
                "Where the next page is told: `$.place` in the body, `link` for the header field `Link`, `{header: name}`, or `{link: $.place}` for a URL in the body.",
                json!({"anyOf": [text(), next]}),
            ),
            ("more", "The member that says whether there are more items.", text()),
            ("total", "The member that says how many items there are.", text()),
            ("items", "The list of the items; `$` for the whole body.", text()),
        ],
    );
    let mut paging = by_side(sides, 2, &side);
    // While the names of the sides are unknown, `by_side` declares no properties.
    if paging.get("properties").is_none() {
        paging["properties"] = json!({});
    }
    let own = [
        ("Which call reads the page, where a `serve` route makes several.", text()),
        (
            "Most calls for a page that is found by reading the ones before it; 20 unless said otherwise.",
            count(1, 50),
        ),
    ];
    for (key, (says, mut value)) in keys::PAGED_ROUTE.iter().zip(own) {
        value["description"] = says.into();
        paging["properties"][*key] = value;
    }
    paging["maxProperties"] = json!(2 + keys::PAGED_ROUTE.len());
    paging
}

fn outcome() -> Value {
    let mut outcome = object(&keys::OUTCOME, &block());
    outcome["oneOf"] = one_end();
    outcome
}

fn answer() -> Value {
    object(
        &keys::ANSWER,
        &[
            ("legacy", "`forward`: the old service answers while one is configured.", legacy()),
            ("status", "Status of the answer.", reference("status")),
            ("headers", "Header fields of the answer.", map_of(&reference("value"))),
            ("body", "Body of the answer; empty without it.", reference("value")),
        ],
    )
}

fn decide() -> Value {
    let rows = list_of(&json!({"type": "array", "minItems": 2}));
    object(
        &keys::DECIDE,
        &[
            (
                "on",
                "Columns: paths or conditions.",
                list_of(&json!({"anyOf": [text(), reference("predicate")]})),
            ),
            (
                "rows",
                "Cells for each column and the name of an outcome; the first row that matches counts.",
                rows,
            ),
        ],
    )
}

/// A map with exactly one condition, plus the keys in `beside`.
fn predicate(beside: &[KeyDoc<'_>], needed: &[&str]) -> Value {
    let (one, list) = (text(), list_of(&text()));
    let two = json!({"type": "array", "items": text(), "minItems": 2, "maxItems": 2});
    let member = |value: Value| json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": value});
    let about = |word: &str| match word {
        "present" => ("The place is there.", one.clone()),
        "missing" => ("The place is not there, or null.", one.clone()),
        "not_null" => ("None of the places is null.", list.clone()),
        "any_present" => ("At least one of the places is there.", list.clone()),
        "all_present" => ("All of the places are there.", list.clone()),
        "none_present" => ("None of the places is there.", list.clone()),
        "one_of" => ("The place has one of these values.", member(anything())),
        "kind" => ("The place has a value of this kind.", member(anything())),
        "equal" => ("Both places have the same value.", two.clone()),
        "conforms" => ("All of the places are what the contract says of them.", list.clone()),
        "all" => (
            "All of these conditions hold.",
            json!({"type": "array", "items": reference("predicate"), "minItems": 2}),
        ),
        "any" => (
            "At least one of these conditions holds.",
            json!({"type": "array", "items": reference("predicate"), "minItems": 2}),
        ),
        "not" => ("This condition does not hold.", reference("predicate")),
        "absent_or_equal" => ("The first place is not there, or equals the second.", two.clone()),
        _ => ("", anything()),
    };
    let lines = predicates().map(|word| (word, about(word)));
    let mut properties: Map<String, Value> =
        lines.map(|(word, (about, schema))| (word.to_owned(), describe(about, schema))).collect();
    properties.extend(beside.iter().map(|line| (line.0.to_owned(), super::describe_line(line))));
    // Exactly one condition. The other keys are options of the map that contains it.
    let one: Vec<Value> = predicates().map(|word| json!({"required": [word]})).collect();
    json!({"type": "object", "additionalProperties": false, "properties": properties, "required": needed, "oneOf": one})
}

fn check() -> Value {
    let otherwise = object(
        &keys::CHECK_ELSE,
        &[
            ("status", "Answered when it does not hold.", reference("status")),
            ("reason", "With this reason.", text()),
        ],
    );
    let otherwise = json!({"anyOf": [otherwise, refusal()]});
    let about = |key: &str| match key {
        "if" => ("if", "A setting that makes the check optional: `$.config.name`.", text()),
        "unless" => ("unless", "A setting that takes the check away: `$.config.name`.", text()),
        _ => ("else", "What follows when the condition does not hold.", otherwise.clone()),
    };
    let beside: Vec<KeyDoc<'_>> = keys::CHECK.iter().map(|key| about(key)).collect();
    predicate(&beside, &["else"])
}

/// `{refuse: reason}` with its policy.
fn refusal() -> Value {
    object(
        &keys::CHECK_REFUSE,
        &[
            ("refuse", "Refused, with this reason.", text()),
            ("policy", "What happens to this refusal.", reference("policy")),
        ],
    )
}

fn step() -> Value {
    // An action as a key makes an unnamed step. Any other key is the name of the step.
    let named = json!({
        "type": "object", "minProperties": 1, "maxProperties": 1,
        "propertyNames": {"not": words(keys::ACTIONS)}, "additionalProperties": reference("action"),
    });
    json!({"anyOf": [call(), pick(false), first(), make(), recall(), keep(), named]})
}

fn call() -> Value {
    let pages = object(
        &keys::PAGES,
        &[
            (
                "upto",
                "Pages that are read at most.",
                json!({"type": "integer", "minimum": 1, "maximum": 1000}),
            ),
            ("until", "Stops when this path selects something.", text()),
            (
                "beyond",
                "What follows when the list goes on beyond these pages.",
                json!({"anyOf": [words(&["cut", "absent"]), refusal()]}),
            ),
        ],
    );
    object(
        &keys::CALL,
        &[
            (
                "call",
                "Method and path; `{var}` is a variable of the request, `{$.place}` any scalar.",
                operation(),
            ),
            ("when", "Made only while this holds.", reference("predicate")),
            (
                "each",
                "Made for each element of a list: `{name: list}`.",
                json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": text()}),
            ),
            (
                "upto",
                "Elements that it is made for at most.",
                json!({"type": "integer", "minimum": 1, "maximum": 1000}),
            ),
            (
                "beyond",
                "What follows when there are more elements; a write is refused.",
                json!({"anyOf": [words(&["absent"]), refusal()]}),
            ),
            ("query", "Query parameters.", map_of(&reference("value"))),
            ("headers", "Header fields.", map_of(&reference("value"))),
            ("body", "Body of the call.", reference("value")),
            ("pages", "Reads a list over several pages.", pages),
            (
                "until",
                "Made again until this holds of its reply; with `every` and `within`.",
                reference("predicate"),
            ),
            ("every", "From one reply to the next call: `500ms`, `1s`.", text()),
            ("within", "From the first reply to the last call: `20s`, `1m`.", text()),
            (
                "on_fail",
                "What follows when it is not answered 2xx; must be said after a write.",
                reference("onFail"),
            ),
            (
                "resume",
                "The reply is remembered under these values, so that a repeat goes on behind it.",
                list_of(&text()),
            ),
            ("retry", "Whether a repeat of this write is harmless.", words(&["safe", "never"])),
            ("effect", "Whether it writes, where the method misleads.", words(&["write", "none"])),
        ],
    )
}

fn on_fail() -> Value {
    let headers = ("headers", "Header fields added to the answer.", map_of(&reference("value")));
    let about = |word: &str| match word {
        "pass" => ("The status and error of the call.", object(&keys::PASS, std::slice::from_ref(&headers))),
        "absent" => ("After these statuses, goes on without a body.", list_of(&reference("status"))),
        "answer" => ("This answer.", reference("answer")),
        "use" => ("Goes on with this as the body of the reply.", reference("value")),
        _ => ("Refused, with this reason.", text()),
    };
    let one = |word: &&str| {
        let (sentence, schema) = about(word);
        json!({
            "type": "object", "additionalProperties": false, "required": [word],
            "properties": {*word: describe(sentence, schema)},
        })
    };
    let forms: Vec<Value> =
        std::iter::once(words(&["pass", "absent"])).chain(keys::ON_FAIL.iter().map(one)).collect();
    json!({"anyOf": forms})
}

fn pick(choice: bool) -> Value {
    let mut lines: Vec<KeyDoc<'_>> = vec![
        ("pick", "Path that selects.", text()),
        ("take", "All matches as a list, or the first.", words(&["first", "all"])),
        (
            "newest",
            "Takes the match whose member of this name is greatest; of several names, later ones decide between equals.",
            json!({"anyOf": [text(), list_of(&text())]}),
        ),
        ("page", "Takes the matches that the page of this number shows.", text()),
    ];
    if choice {
        lines.push(("when", "Chosen when this holds.", reference("predicate")));
    }
    let mut pick = object(if choice { &keys::CHOICE } else { &keys::PICK }, &lines);
    // The options exclude each other, because each selects in its own way.
    let both = [["take", "newest"], ["take", "page"], ["newest", "page"]];
    pick["not"] = json!({"anyOf": both.map(|both| json!({"required": both}))});
    pick
}

fn first() -> Value {
    object(&keys::FIRST, &[("first", "The first selection whose condition holds.", list_of(&pick(true)))])
}

fn make() -> Value {
    object(&keys::MAKE, &[("make", "A value that later steps read.", reference("value"))])
}

fn element() -> Value {
    json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": text()})
}

fn legacy() -> Value {
    json!({"anyOf": [words(&["forward", "never"]), map_of(&words(&["forward", "never"]))]})
}

fn recall() -> Value {
    object(
        &keys::RECALL,
        &[
            ("recall", "Looks into this archive: `{age, value}`, or nothing.", text()),
            ("key", "Key of the entry, a scalar.", reference("value")),
            ("each", "Looks an entry up for each element of a list: `{name: list}`.", element()),
            ("when", "Looks up only what this holds for.", reference("predicate")),
        ],
    )
}

fn keep() -> Value {
    object(
        &keys::KEEP,
        &[
            ("keep", "Puts an entry into this archive.", text()),
            ("key", "Key of the entry, a scalar.", reference("value")),
            ("value", "What is kept, where the archive has values.", reference("value")),
            ("each", "Keeps an entry for each element of a list: `{name: list}`.", element()),
            ("when", "Keeps only what this holds for.", reference("predicate")),
        ],
    )
}

fn archive(sides: Sides<'_>) -> Value {
    let mut properties: Map<String, Value> = Map::new();
    // Without the names of the sides, any other key may be one of them.
    let mut open = text();
    for side in sides.into_iter().flatten() {
        properties.insert(side.to_owned(), describe("A type of this side's contract.", text()));
        open = Value::Bool(false);
    }
    properties.insert("field".to_owned(), describe("A field of that type, and not the whole.", text()));
    let value = json!({"type": "object", "additionalProperties": open, "properties": properties, "minProperties": 1, "maxProperties": 2});
    object(
        &keys::ARCHIVE,
        &[
            ("about", "What is kept and why, for the operator.", text()),
            ("value", "The type of its values; without it an entry is its key alone.", value),
        ],
    )
}

fn harvest(sides: Sides<'_>) -> Value {
    object(
        &keys::HARVEST,
        &[
            ("about", "What is read, for the operator.", text()),
            ("from", "The side that is read.", sides.map_or_else(text, |sides| words(&sides))),
            ("steps", "What is done with one page, `$.request.query.page`.", list_of(&reference("step"))),
            ("page", "Path to the list that a page brings; a short one is the last.", text()),
        ],
    )
}

fn harvest_example() -> Value {
    object(
        &keys::HARVEST_EXAMPLE,
        &[
            ("harvest", "Name of the harvest.", text()),
            ("page", "Number of the page.", json!({"type": "integer", "minimum": 0})),
            ("calls", "The calls that must be made, in order.", list_of(&reference("exampleCall"))),
            ("keeps", "What must be kept: by archive, keys and values.", archive_keys()),
        ],
    )
}

/// `{archive: {key: value}}` or `{archive: [key]}`
fn archive_keys() -> Value {
    map_of(&json!({"anyOf": [map_of(&anything()), {"type": "array"}]}))
}

/// Expected end of an exchange.
fn ends() -> Vec<KeyDoc<'static>> {
    vec![
        ("calls", "The calls that must be made, in order.", list_of(&reference("exampleCall"))),
        ("keeps", "What must be kept: by archive, keys and values.", archive_keys()),
        ("answer", "The answer that must come.", reference("exampleAnswer")),
        ("refused", "The reason that it must be refused with.", text()),
    ]
}

fn route_example() -> Value {
    let entry = object(
        &keys::ARCHIVED,
        &[
            ("age", "Seconds since it was kept.", json!({"type": "integer", "minimum": 0})),
            ("value", "Its value, where the archive has values.", anything()),
        ],
    );
    let archives = map_of(&map_of(&entry));
    let send = object(
        &keys::SEND,
        &[
            ("headers", "Header fields of the request.", map_of(&text())),
            ("body", "Body of the request.", anything()),
            ("config", "Settings by name; the others keep their defaults.", map_of(&anything())),
            ("archives", "What archives have: by archive and key, `{age: seconds, value}`.", archives),
        ],
    );
    let one_end = json!([{"required": ["answer"]}, {"required": ["refused"]}]);
    let mut again = object(&keys::AGAIN, &ends());
    again["oneOf"] = one_end.clone();
    let mut lines: Vec<KeyDoc<'_>> = vec![
        ("at", "Side, method and address, such as `v1 GET /things/7?page=2`.", text()),
        ("send", "What the client sends besides.", send),
        ("again", "The same request once more, with what `resume` remembered.", again),
    ];
    lines.extend(ends());
    let mut example = object(&keys::ROUTE_EXAMPLE, &lines);
    example["oneOf"] = one_end;
    example
}

fn example_answer() -> Value {
    object(
        &keys::EXAMPLE_ANSWER,
        &[
            ("status", "Status of the answer.", reference("status")),
            ("headers", "Header fields that it must have; there may be others.", map_of(&text())),
            ("body", "Its body; `'?'` is filled in by `switchback test --bless`.", anything()),
        ],
    )
}

fn example_call() -> Value {
    let reply = json!({
        "type": "object", "minProperties": 1, "maxProperties": 1, "propertyNames": {"pattern": "^[2-5][0-9][0-9]$"},
    });
    object(
        &keys::EXAMPLE_CALL,
        &[
            ("expect", "Method and address of the call.", operation()),
            ("headers", "Header fields that it must have; there may be others.", map_of(&text())),
            ("body", "The body that must be sent.", anything()),
            ("reply_headers", "Header fields of the reply.", map_of(&text())),
            ("reply", "Its reply: `{status: body}`, or `{status: empty}`.", reply),
        ],
    )
}

fn shape_example(sides: Sides<'_>) -> Value {
    let about = |key: &str| match key {
        "shape" => describe("Name of the shape.", text()),
        _ => describe("Places of the value written first that do not come back.", list_of(&text())),
    };
    let mut properties: Map<String, Value> =
        keys::SHAPE_EXAMPLE.iter().map(|key| ((*key).to_owned(), about(key))).collect();
    let mut open = anything();
    for side in sides.into_iter().flatten() {
        properties.insert(
            side.to_owned(),
            describe("A value of this side; the one written first is the source.", anything()),
        );
        open = Value::Bool(false);
    }
    json!({
        "type": "object", "additionalProperties": open, "properties": properties, "required": ["shape"],
        "minProperties": 2, "maxProperties": 4,
    })
}
