//! The table of differences between two documents. Each row states what it does to the set of valid
//! messages, by the meaning of the keyword in JSON Schema and OpenAPI alone.

use super::draw::{Edit, Lines, Message, PATTERNS, Site, SiteKind, nullable, sites};
use fastrand::Rng;
use serde_json::{Value, json};

/// The valid messages after an edit, compared with those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    Same,
    /// Fewer messages are valid.
    Narrower,
    /// More messages are valid, or carry more.
    Wider,
    /// Neither set contains the other.
    Apart,
    /// No statement: the judge alone decides.
    Open,
}

impl Values {
    pub fn loses_as_target(self) -> bool {
        matches!(self, Values::Narrower | Values::Apart)
    }

    pub fn loses_as_source(self) -> bool {
        matches!(self, Values::Wider | Values::Apart)
    }
}

/// The effect of an edit on both messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    request: Values,
    answer: Values,
}

impl Change {
    const fn both(values: Values) -> Change {
        Change { request: values, answer: values }
    }

    const fn request(values: Values) -> Change {
        Change { request: values, answer: Values::Same }
    }

    const fn answer(values: Values) -> Change {
        Change { request: Values::Same, answer: values }
    }

    pub fn of(self, message: Message) -> Values {
        match message {
            Message::Request => self.request,
            Message::Answer => self.answer,
        }
    }
}

/// The place that a row edits.
struct Place<'d> {
    /// The schema or the operation.
    value: &'d mut Value,
    kind: SiteKind,
    /// Whether the schema is a property that its object requires.
    is_required: bool,
    is_property: bool,
    /// Whether the place is a component, whose name the pack's lines use.
    is_component: bool,
    /// Whether it belongs to the bodies of errors.
    is_error: bool,
}

type Apply = fn(&mut Rng, &mut Place<'_>) -> Option<Change>;

/// One kind of difference.
pub struct Row {
    pub name: &'static str,
    on: On,
    apply: Apply,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    /// A schema of any version.
    Schema,
    /// A schema of OpenAPI 3.1.
    Schema31,
    Operation,
    /// An operation of a pack without lines of its own.
    KeptOperation,
    /// A schema of a pack with lines of its own.
    LinedSchema,
}

const fn row(name: &'static str, on: On, apply: Apply) -> Row {
    Row { name, on, apply }
}

const NARROWER: Change = Change::both(Values::Narrower);
const WIDER: Change = Change::both(Values::Wider);
const APART: Change = Change::both(Values::Apart);
pub const SAME: Change = Change::both(Values::Same);
const OPEN: Change = Change::both(Values::Open);

fn is(schema: &Value, of: &str) -> bool {
    match &schema["type"] {
        Value::String(found) => found == of,
        Value::Array(types) => types.iter().any(|found| found == of),
        _ => false,
    }
}

fn has(schema: &Value, keywords: &[&str]) -> bool {
    keywords.iter().any(|keyword| schema.get(*keyword).is_some())
}

/// A number without an enumeration and without these keywords.
fn is_number_without(schema: &Value, keywords: &[&str]) -> bool {
    (is(schema, "integer") || is(schema, "number"))
        && !has(schema, &["enum", "default"])
        && !has(schema, keywords)
}

fn is_string_without(schema: &Value, keywords: &[&str]) -> bool {
    is(schema, "string") && !has(schema, &["enum", "default"]) && !has(schema, keywords)
}

fn is_open(schema: &Value) -> bool {
    is(schema, "object") && schema.get("additionalProperties").is_none()
}

/// Sets a keyword of a schema that fits.
fn set(place: &mut Place<'_>, fits: bool, keyword: &str, value: Value, change: Change) -> Option<Change> {
    fits.then(|| place.value[keyword] = value)?;
    Some(change)
}

/// Replaces the keywords of an enumeration.
fn instead_of_enum(place: &mut Place<'_>, of: &str, other: Value, change: Change) -> Option<Change> {
    let fits =
        place.value["type"] == of && place.value["enum"].as_array().is_some_and(|values| values.len() == 3);
    (fits && !has(place.value, &["default"])).then(|| *place.value = other)?;
    Some(change)
}

const TEXT: &[&str] = &["minLength", "maxLength", "pattern", "format"];

fn first_property(schema: &Value) -> Option<String> {
    schema["properties"].as_object()?.keys().next().cloned()
}

fn required(schema: &Value) -> Vec<String> {
    let all = schema["required"].as_array().into_iter().flatten();
    all.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Every row. A difference is drawn on either side, so that removal of a keyword needs no row.
pub const ROWS: &[Row] = &[
    row("maximum", On::Schema, |_, at| {
        let fits = is_number_without(at.value, &["maximum", "exclusiveMaximum", "multipleOf"]);
        set(at, fits, "maximum", json!(10), NARROWER)
    }),
    row("exclusiveMaximum", On::Schema, |_, at| {
        let fits = is_number_without(at.value, &["maximum", "exclusiveMaximum", "multipleOf"]);
        set(at, fits, "exclusiveMaximum", json!(10), NARROWER)
    }),
    row("minimum", On::Schema, |_, at| {
        let fits = is_number_without(at.value, &["minimum", "exclusiveMinimum", "multipleOf"]);
        set(at, fits, "minimum", json!(5), NARROWER)
    }),
    row("exclusiveMinimum", On::Schema, |_, at| {
        let fits = is_number_without(at.value, &["minimum", "exclusiveMinimum", "multipleOf"]);
        set(at, fits, "exclusiveMinimum", json!(5), NARROWER)
    }),
    row("minimum becomes exclusive", On::Schema, |_, at| {
        let minimum = is_number_without(at.value, &[]).then(|| at.value.get("minimum").cloned())??;
        at.value.as_object_mut()?.remove("minimum");
        set(at, true, "exclusiveMinimum", minimum, NARROWER)
    }),
    row("minimum of integers as an exclusive one", On::Schema, |_, at| {
        let fits = is(at.value, "integer") && at.value["minimum"] == 1 && !has(at.value, &["default"]);
        fits.then(|| at.value.as_object_mut()?.remove("minimum"))??;
        set(at, true, "exclusiveMinimum", json!(0), SAME)
    }),
    row("multipleOf", On::Schema, |_, at| {
        let fits = is_number_without(at.value, &["multipleOf"]);
        set(at, fits, "multipleOf", json!(3), NARROWER)
    }),
    row("int32", On::Schema, |_, at| {
        let fits = is_number_without(at.value, &["maximum", "exclusiveMaximum", "multipleOf"])
            && is(at.value, "integer")
            && at.value["format"] != "int32";
        set(at, fits, "format", json!("int32"), NARROWER)
    }),
    row("integer becomes number", On::Schema, |_, at| {
        let fits =
            at.value["type"] == "integer" && !has(at.value, &["enum", "format", "multipleOf", "default"]);
        set(at, fits, "type", json!("number"), WIDER)
    }),
    row("maxLength", On::Schema, |_, at| {
        let fits = is_string_without(at.value, &["maxLength", "pattern", "format"]);
        set(at, fits, "maxLength", json!(3), NARROWER)
    }),
    row("minLength", On::Schema, |_, at| {
        let fits = is_string_without(at.value, &["minLength", "pattern", "format"]);
        set(at, fits, "minLength", json!(4), NARROWER)
    }),
    row("pattern", On::Schema, |rng, at| {
        let fits = is_string_without(at.value, TEXT);
        set(at, fits, "pattern", json!(PATTERNS[rng.usize(..PATTERNS.len())].0), NARROWER)
    }),
    row("another pattern", On::Schema, |_, at| {
        let old = at.value["pattern"].as_str().filter(|_| is_string_without(at.value, &[]))?;
        let at_old = PATTERNS.iter().position(|(pattern, ..)| *pattern == old)?;
        let (new, change) = [(1, WIDER), (0, NARROWER), (1, APART)][at_old];
        set(at, true, "pattern", json!(PATTERNS[new].0), change)
    }),
    row("format", On::Schema, |rng, at| {
        let fits = is_string_without(at.value, TEXT);
        set(at, fits, "format", json!(["date", "date-time", "uuid"][rng.usize(..3)]), NARROWER)
    }),
    row("date becomes date-time", On::Schema, |_, at| {
        let fits = at.value["format"] == "date" && !has(at.value, &["default"]);
        set(at, fits, "format", json!("date-time"), APART)
    }),
    row("enum without a value", On::Schema, |_, at| {
        let fits = at.value["enum"].as_array().is_some_and(|values| values.len() >= 3)
            && !has(at.value, &["default"]);
        fits.then(|| at.value["enum"].as_array_mut().map(|values| values.remove(1)))??;
        Some(NARROWER)
    }),
    row("enum in another order", On::Schema, |_, at| {
        at.value.get_mut("enum")?.as_array_mut()?.reverse();
        Some(SAME)
    }),
    row("enum becomes const", On::Schema, |_, at| {
        instead_of_enum(at, "string", json!({"type": "string", "const": "def"}), NARROWER)
    }),
    row("enum becomes pattern", On::Schema, |_, at| {
        instead_of_enum(at, "string", json!({"type": "string", "pattern": "^[a-m]+$"}), APART)
    }),
    row("enum becomes maxLength", On::Schema, |_, at| {
        instead_of_enum(at, "string", json!({"type": "string", "maxLength": 2}), APART)
    }),
    row("enum becomes format", On::Schema, |_, at| {
        instead_of_enum(at, "string", json!({"type": "string", "format": "date"}), APART)
    }),
    row("enum becomes string", On::Schema, |_, at| {
        instead_of_enum(at, "string", json!({"type": "string"}), WIDER)
    }),
    row("enum becomes multipleOf", On::Schema, |_, at| {
        instead_of_enum(at, "integer", json!({"type": "integer", "multipleOf": 2}), APART)
    }),
    row("enum becomes maximum", On::Schema, |_, at| {
        instead_of_enum(at, "integer", json!({"type": "integer", "maximum": 2}), APART)
    }),
    row("enum becomes a range that contains it", On::Schema, |_, at| {
        instead_of_enum(at, "integer", json!({"type": "integer", "minimum": 0}), WIDER)
    }),
    row("null", On::Schema, |_, at| {
        let fits = at.kind == SiteKind::Body && at.is_property && at.value["type"].is_string();
        (fits && !has(at.value, &["default"])).then(|| nullable(at.value))?;
        Some(WIDER)
    }),
    row("string becomes integer", On::Schema, |_, at| {
        let fits = is_string_without(at.value, TEXT) && at.value["type"] == "string";
        let change = if at.kind == SiteKind::Text { NARROWER } else { APART };
        set(at, fits, "type", json!("integer"), change)
    }),
    row("alternatives", On::Schema, |_, at| {
        let fits = at.kind == SiteKind::Body && at.is_property && at.value["type"] == "string";
        (fits && !has(at.value, &["default"])).then(|| {
            *at.value = json!({"oneOf": [at.value.take(), {"type": "boolean"}]});
        })?;
        Some(WIDER)
    }),
    row("allOf with a bound", On::Schema, |_, at| {
        let fits = is_number_without(at.value, &["exclusiveMaximum", "multipleOf"]);
        fits.then(|| *at.value = json!({"allOf": [at.value.take(), {"maximum": 10}]}))?;
        Some(NARROWER)
    }),
    row("allOf with a bound before", On::Schema, |_, at| {
        let fits = is_string_without(at.value, &["maxLength", "pattern", "format"]);
        fits.then(|| *at.value = json!({"allOf": [{"maxLength": 3}, at.value.take()]}))?;
        Some(NARROWER)
    }),
    row("allOf around", On::Schema, |_, at| {
        let fits = at.is_property && at.value["type"] == "string";
        fits.then(|| *at.value = json!({"allOf": [at.value.take()]}))?;
        Some(SAME)
    }),
    row("readOnly", On::Schema, |_, at| {
        let fits = at.kind == SiteKind::Body && at.is_property && !at.is_error;
        let values = if at.is_required { Values::Apart } else { Values::Narrower };
        set(at, fits, "readOnly", json!(true), Change::request(values))
    }),
    row("writeOnly", On::Schema, |_, at| {
        let fits = at.kind == SiteKind::Body && at.is_property && !at.is_error;
        let values = if at.is_required { Values::Wider } else { Values::Open };
        set(at, fits, "writeOnly", json!(true), Change::answer(values))
    }),
    row("description", On::Schema, |_, at| {
        let fits = at.value["type"].is_string();
        set(at, fits, "description", json!("Another text."), SAME)
    }),
    row("default", On::Schema, |_, at| {
        let fits =
            at.value["type"] == "string" && !has(at.value, &["enum", "default"]) && !has(at.value, TEXT);
        set(at, fits, "default", json!("unset"), OPEN)
    }),
    row("maxItems", On::Schema, |_, at| {
        let fits = is(at.value, "array") && at.value["maxItems"].as_u64().is_none_or(|most| most > 2);
        set(at, fits, "maxItems", json!(2), NARROWER)
    }),
    row("minItems", On::Schema, |_, at| {
        let fits = is(at.value, "array") && !has(at.value, &["minItems"]);
        set(at, fits, "minItems", json!(2), NARROWER)
    }),
    row("uniqueItems", On::Schema, |_, at| {
        let fits = is(at.value, "array");
        set(at, fits, "uniqueItems", json!(true), NARROWER)
    }),
    row("contains", On::Schema31, |_, at| {
        let fits =
            is(at.value, "array") && at.value["items"]["type"] == "string" && at.kind == SiteKind::Body;
        set(at, fits, "contains", json!({"type": "string", "minLength": 3}), NARROWER)
    }),
    row("closed object", On::Schema, |_, at| {
        let fits = is_open(at.value);
        set(at, fits, "additionalProperties", json!(false), NARROWER)
    }),
    row("typed further members", On::Schema, |_, at| {
        let fits = is_open(at.value);
        set(at, fits, "additionalProperties", json!({"type": "integer"}), NARROWER)
    }),
    row("map of another type", On::Schema, |_, at| {
        let fits = at.value["additionalProperties"]["type"] == "string"
            && is_string_without(&at.value["additionalProperties"], TEXT);
        fits.then(|| at.value["additionalProperties"]["maxLength"] = json!(1))?;
        Some(NARROWER)
    }),
    row("required member", On::Schema, |_, at| {
        let required = required(at.value);
        let properties = at.value["properties"].as_object()?;
        let name = properties.keys().find(|name| !required.contains(name))?.clone();
        let all: Vec<String> = required.into_iter().chain([name]).collect();
        set(at, true, "required", json!(all), NARROWER)
    }),
    row("maxProperties", On::Schema, |_, at| {
        let fits = is_open(at.value);
        let most = required(at.value).len() + 1;
        set(at, fits, "maxProperties", json!(most), NARROWER)
    }),
    row("minProperties", On::Schema, |_, at| {
        let fits = is_open(at.value);
        let least = required(at.value).len() + 1;
        set(at, fits, "minProperties", json!(least), NARROWER)
    }),
    row("propertyNames", On::Schema31, |_, at| {
        let fits = is_open(at.value);
        set(at, fits, "propertyNames", json!({"pattern": "^[a-u]+$"}), NARROWER)
    }),
    row("patternProperties", On::Schema31, |_, at| {
        let fits = is_open(at.value);
        set(at, fits, "patternProperties", json!({"^z": {"type": "integer"}}), NARROWER)
    }),
    row("dependentRequired", On::Schema31, |_, at| {
        let name = is_open(at.value).then(|| first_property(at.value))??;
        let is_free = !required(at.value).contains(&"zz".to_owned());
        set(at, is_free, "dependentRequired", json!({name: ["zz"]}), NARROWER)
    }),
    row("not", On::Schema, |_, at| {
        let name = is_open(at.value).then(|| first_property(at.value))??;
        let is_free = !required(at.value).contains(&name);
        set(at, is_free, "not", json!({"required": [name]}), NARROWER)
    }),
    row("if and then", On::Schema31, |_, at| {
        let name = is_open(at.value).then(|| first_property(at.value))??;
        let fits = required(at.value).len() < 2;
        at.value["then"] = json!({"required": ["zz"]});
        set(at, fits, "if", json!({"required": [name]}), NARROWER)
    }),
    row("member more", On::Schema, |_, at| {
        at.value["properties"].as_object_mut()?.insert("more".to_owned(), json!({"type": "integer"}));
        Some(OPEN)
    }),
    row("required member more", On::Schema, |_, at| {
        let all: Vec<String> = required(at.value).into_iter().chain(["more".to_owned()]).collect();
        at.value["properties"].as_object_mut()?.insert("more".to_owned(), json!({"type": "integer"}));
        set(at, true, "required", json!(all), NARROWER)
    }),
    row("renamed member", On::LinedSchema, |_, at| {
        at.is_component.then_some(())?;
        let name = first_property(at.value)?;
        let properties = at.value["properties"].as_object_mut()?;
        let schema = properties.remove(&name)?;
        properties.insert("renamed".to_owned(), schema);
        let all: Vec<String> = required(at.value)
            .into_iter()
            .map(|one| if one == name { "renamed".to_owned() } else { one })
            .collect();
        if !all.is_empty() {
            at.value["required"] = json!(all);
        }
        Some(SAME)
    }),
    row("required parameter", On::Operation, |_, at| {
        let all = at.value["parameters"].as_array_mut()?;
        let optional = all.iter_mut().find(|one| one["required"] != true)?;
        optional["required"] = json!(true);
        Some(Change::request(Values::Narrower))
    }),
    row("parameter more", On::KeptOperation, |rng, at| {
        let place = ["query", "header", "cookie"][rng.usize(..3)];
        let more = json!({"name": "extra", "in": place, "schema": {"type": "integer"}});
        at.value["parameters"].as_array_mut()?.push(more);
        Some(Change::request(Values::Wider))
    }),
    row("required parameter more", On::KeptOperation, |rng, at| {
        let place = ["query", "header", "cookie"][rng.usize(..3)];
        let more = json!({"name": "extra", "in": place, "required": true, "schema": {"type": "integer"}});
        at.value["parameters"].as_array_mut()?.push(more);
        Some(Change::request(Values::Apart))
    }),
    row("parameter in another place", On::KeptOperation, |_, at| {
        let all = at.value["parameters"].as_array_mut()?;
        let header = all.iter_mut().find(|one| one["in"] == "header")?;
        header["in"] = json!("query");
        Some(Change::request(Values::Apart))
    }),
    row("list in one parameter", On::Operation, |_, at| {
        let all = at.value["parameters"].as_array_mut()?;
        let list = all.iter_mut().find(|one| one["schema"]["type"] == "array")?;
        list["explode"] = json!(false);
        Some(Change::request(Values::Open))
    }),
    row("required body", On::Operation, |_, at| {
        let body = at.value.get_mut("requestBody")?;
        (body["required"] != true).then(|| body["required"] = json!(true))?;
        Some(Change::request(Values::Narrower))
    }),
    row("required header of the answer", On::Operation, |_, at| {
        let responses = at.value["responses"].as_object_mut()?;
        let header = responses.values_mut().find_map(|one| one.get_mut("headers")?.get_mut("X-Left"))?;
        (header["required"] != true).then(|| header["required"] = json!(true))?;
        Some(Change::answer(Values::Narrower))
    }),
    row("header of the answer more", On::Operation, |_, at| {
        let responses = at.value["responses"].as_object_mut()?;
        let success = responses.iter_mut().find(|(status, _)| status.starts_with('2'))?.1;
        success["headers"]["X-More"] = json!({"schema": {"type": "integer"}});
        Some(Change::answer(Values::Open))
    }),
    row("required header of the answer more", On::Operation, |_, at| {
        let responses = at.value["responses"].as_object_mut()?;
        let success = responses.iter_mut().find(|(status, _)| status.starts_with('2'))?.1;
        success["headers"]["X-More"] = json!({"required": true, "schema": {"type": "integer"}});
        Some(Change::answer(Values::Narrower))
    }),
    row("status of acceptance", On::Operation, |_, at| {
        at.value["responses"]["202"] = json!({"description": "later"});
        Some(Change::answer(Values::Wider))
    }),
    row("status without content", On::Operation, |_, at| {
        at.value["responses"]["204"] = json!({"description": "done"});
        Some(Change::answer(Values::Wider))
    }),
    row("redirection", On::Operation, |_, at| {
        let location = json!({"Location": {"required": true, "schema": {"type": "string"}}});
        at.value["responses"]["303"] = json!({"description": "elsewhere", "headers": location});
        Some(Change::answer(Values::Wider))
    }),
    row("error status", On::Operation, |_, at| {
        at.value["responses"]["409"] = json!({"description": "no", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}});
        Some(Change::answer(Values::Open))
    }),
    row("default", On::Operation, |_, at| {
        at.value["responses"]["default"] = json!({"description": "no", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}});
        Some(Change::answer(Values::Open))
    }),
    row("second media type of the request", On::Operation, |_, at| {
        at.value.get_mut("requestBody")?["content"]["text/csv"] = json!({"schema": {"type": "string"}});
        Some(Change::request(Values::Wider))
    }),
];

/// Draws an edit and applies it; none where no place fits.
pub fn draw(
    rng: &mut Rng,
    documents: &mut [Value; 2],
    is_new: [bool; 2],
    lines: Lines,
    before: &[Edit],
) -> Option<Edit> {
    let side = rng.usize(..2);
    let others = sites(&documents[1 - side]);
    let document = &mut documents[side];
    let is_apart = |site: &Site| {
        let (one, slash) = (&site.pointer, "/");
        // The members of an edited object and the object of an edited member are left alone, so
        // that a row keeps its meaning.
        before.iter().all(|edit| {
            let other = &edit.pointer;
            one != other
                && !one.starts_with(&(other.clone() + slash))
                && !other.starts_with(&(one.clone() + slash))
        })
    };
    let mut places: Vec<Site> = sites(document).into_iter().filter(is_apart).collect();
    rng.shuffle(&mut places);
    for _ in 0..8 {
        let row = &ROWS[rng.usize(..ROWS.len())];
        let fits = |site: &&Site| match row.on {
            On::Schema => site.kind != SiteKind::Operation,
            On::Schema31 => site.kind == SiteKind::Body && is_new[side],
            On::LinedSchema => site.kind == SiteKind::Body && lines == Lines::Shapes,
            On::Operation => site.kind == SiteKind::Operation,
            On::KeptOperation => site.kind == SiteKind::Operation && lines != Lines::Shapes,
        };
        for site in places.iter().filter(fits) {
            if let Some(change) = apply(rng, row, document, site) {
                // A message that one document alone declares has nothing to be compared with.
                let is_of_both = |used: &&(String, Message)| {
                    others.iter().any(|other| other.pointer == site.pointer && other.uses.contains(used))
                };
                let uses = site.uses.iter().filter(is_of_both).cloned().collect();
                // `init` writes conversions: one that takes null for absence, and one between
                // numbers and their texts.
                let is_number = row.name == "string becomes integer" && site.kind == SiteKind::Body;
                let is_converted = lines == Lines::Drafted && (row.name == "null" || is_number);
                let change = if is_converted { OPEN } else { change };
                let pointer = site.pointer.clone();
                return Some(Edit { row: row.name, side, pointer, uses, change });
            }
        }
    }
    None
}

fn apply(rng: &mut Rng, row: &Row, document: &mut Value, site: &Site) -> Option<Change> {
    let parent = site.pointer.rsplit_once("/properties/");
    let holder = parent.and_then(|(holder, _)| document.pointer(holder));
    // A list within a property is no property itself.
    let is_property = holder.is_some() && parent.is_some_and(|(_, name)| !name.contains('/'));
    let is_required = holder
        .is_some_and(|holder| parent.is_some_and(|(_, name)| required(holder).iter().any(|one| one == name)));
    let is_component = site.pointer == "/components/schemas/Thing";
    let value = document.pointer_mut(&site.pointer)?;
    let before = value.clone();
    let is_error = site.pointer.starts_with("/components/schemas/Error");
    let mut place = Place { value, kind: site.kind, is_required, is_property, is_component, is_error };
    let change = (row.apply)(rng, &mut place);
    if change.is_none() {
        *place.value = before;
    }
    change
}
