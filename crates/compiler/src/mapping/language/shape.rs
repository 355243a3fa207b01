//! Shapes, named and in place: the lenses between two types.

use super::kinds::{
    Anything, BothSides, DespiteType, EachSide, EntriesOf, LinesBySide, ListOf, MapOf, Text, kinds,
};
use super::section::{Read, section};
use super::{ExprDecl, FieldPlace, SideRef, Spanned, SyntaxReader, faults};
use crate::diagnostic::{Span, suggest};
use crate::mapping::lens::SINGLE_IN_ARRAY;
use crate::mapping::schema::{Sides, anything, by_side, map_of, place, reference, text, words};
use crate::yaml::{Key, KeyEntry, Keys, Kind, Node, TextStyle, described};
use serde_json::{Map, Value, json};
use switchback_plan::convert::{Arguments, SPECS, Spec};
use switchback_plan::{PerSide, SideId};

/// Keyword that applies a conversion to each element of a list.
const EACH_ELEMENT: &str = "each";

/// Words that fill a field, in addition to literals.
const FILL_WORDS: &[&str] = &["absent", "none", "null"];

/// JSON kinds that `by_kind` distinguishes.
const KINDS: &[&str] = &["integer", "number", "boolean", "string", "object", "array"];

/// Keys of a rename, in addition to the name of the new side.
const RENAME: &[&str] = &["shape", "each_value", "as", "else", "default"];

/// A lens between a type of the old side and a type of the new one.
///
/// Inline shapes (in a pair's `request:`) have no name and no `of:`; they use the types of the
/// operation.
#[derive(Clone, Debug)]
pub(crate) struct ShapeDecl {
    pub name: Option<Spanned<String>>,
    /// `of: {v2: Thing, v3: Item}`: component schema names, by side.
    pub of: Option<[Spanned<String>; 2]>,
    /// `alternatives: [Cat, Dog]`: the shape of each alternative, for types that are one of several
    /// objects.
    pub alternatives: Vec<Spanned<String>>,
    /// `like: Other`: inherits all lines of another shape; lines here override them.
    pub like: Option<Spanned<String>>,
    pub lines: ShapeLines,
    /// By built side: values with names, in order, each visible to later ones.
    pub named: PerSide<Vec<(Spanned<String>, ExprDecl)>>,
    /// By built side: members that are computed. Each has a line with its span, too.
    pub computed: PerSide<Vec<(Spanned<String>, ExprDecl)>>,
    pub span: Span,
}

section! {
    /// The keys of a named shape.
    NamedShapeKeys is "a shape", defines "shape" {
        name name: Spanned<String>,
        /// The type of each side that the shape relates.
        lenient of: BothSides<Text>,
        /// Shapes, one for each object that the type may be; instead of lines.
        default alternatives: ListOf<Text>,
        /// Takes over the lines of another shape; lines here win.
        optional like: Text,
        part lines: ShapeLines,
        /// Names of values for `with:`, by the side that is built. `$.from` is the value that is
        /// read.
        default named("let"): EachSide<MapOf<ExprDecl>>,
        /// Members that are computed of the value that is read, `$.from`, wherever `$shape` uses
        /// the shape; by the side that is built.
        default computed("with"): EachSide<MapOf<ExprDecl>>,
    }
    into ShapeDecl: |NamedShapeKeys { name, of, alternatives, like, mut lines, named, computed }, _, _| {
        let span = name.span;
        for (side, (name, _)) in [0, 1].into_iter().flat_map(|side| computed[SideId(side)].iter().map(move |of| (side, of))) {
            let place = Spanned { value: FieldPlace(vec![name.value.clone()]), span: name.span };
            let side = SideRef { side: usize::from(side), span: name.span };
            lines.only.push(Only { side, place, fill: Fill::Computed, span: name.span });
        }
        Some(ShapeDecl { name: Some(name), of, alternatives, like, lines, named, computed, span })
    }
}

section! {
    /// The lines of a shape.
    ShapeLines is "a shape in place", defines "shapeInPlace" {
        /// Members with the same name and type on both sides.
        default same: ListOf<Text>,
        /// A place of the old side: its place on the new one.
        default rename: EntriesOf<Rename>,
        /// Members of one side that show a place of the other a second time.
        default copy: Copies,
        /// Members with a fixed value on each side.
        default constant: EntriesOf<Constant>,
        /// A place of the old side, and places of the new one by the kind of the value.
        default by_kind: EntriesOf<ByKind>,
        /// Places that only one side has, with the values that they are built with.
        default only: Onlys,
        /// All members of a side without a line: `lost`, or the value that they are built with.
        default rest: Rests,
    }
}

impl ShapeDecl {
    /// Reads a shape in place.
    pub(super) fn read_in_place(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<ShapeDecl> {
        let lines = ShapeLines::read(key, node, reader)?;
        Some(ShapeDecl {
            name: None,
            of: None,
            alternatives: Vec::new(),
            like: None,
            lines,
            named: PerSide::default(),
            computed: PerSide::default(),
            span: node.span,
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Rename {
    pub old: Spanned<FieldPlace>,
    pub new: Spanned<FieldPlace>,
    /// `shape: S` for an object, `shape: [S]` for each element of an array.
    pub shape: Option<ShapeUse>,
    /// `as: name` or `as: {name: arguments}`
    pub conversion: Option<ConversionUse>,
    /// `default: {v2: literal}`: the value on that side if the other side has no value.
    pub defaults: Vec<(SideRef, Node)>,
    pub span: Span,
}

impl Read for Rename {
    type Output = Rename;

    /// Reads `old: new` or `old: {<new side>: new, shape, as, else, default}`.
    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Rename> {
        let old = reader.place(&key.name, key.span);
        let span = key.span.to(node.span);
        let plain = |old, new| Rename { old, new, shape: None, conversion: None, defaults: Vec::new(), span };
        if let Kind::String(text, _) = &node.kind {
            let new = reader.place(text, node.span);
            return Some(plain(old?, new?));
        }
        let new_side = reader.sides[1].value.clone();
        let entries = node.map(reader.findings)?;
        let known = [&[new_side.as_str()], RENAME].concat();
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
            reader.findings.push(faults::unknown_line(&key.name, key.span, "a rename", &known));
        }
        let Some(new) = node.get(&new_side) else {
            reader.findings.push(faults::missing_side("a rename", &new_side, node.span));
            return None;
        };
        let new = reader.place_of(new);
        let mut rename = plain(old?, new?);
        rename.shape = match (node.get("shape"), node.get("each_value")) {
            (Some(shape), Some(_)) => {
                reader.findings.push(faults::one_shape(shape.span));
                None
            }
            (Some(shape), None) => ShapeUse::read(key, shape, reader),
            (None, Some(name)) => {
                let name = reader.text(name);
                name.map(|name| ShapeUse { name, each: false, each_value: true, otherwise: None })
            }
            (None, None) => None,
        };
        rename.conversion = conversion(node.get("as"), node.get("else"), reader);
        // Next to a conversion, `else:` belongs to the conversion.
        if let (Some(shape), None, Some(otherwise)) = (&mut rename.shape, node.get("as"), node.get("else")) {
            shape.read_else(otherwise, reader);
        }
        if let Some(defaults) = node.get("default") {
            rename.defaults = LinesBySide::<Anything, 1>::read(key, defaults, reader).unwrap_or_default();
        }
        Some(rename)
    }

    fn schema(sides: Sides<'_>) -> Value {
        let about = |key: &str| match key {
            "shape" => {
                described(reference("shapeUse"), &["Shape that turns the value; `[Name]` for each element."])
            }
            "each_value" => described(text(), &["Shape that turns each value of a map."]),
            "as" => described(reference("conversion"), &["Conversion of the value."]),
            "else" => described(
                anything(),
                &[
                    "What follows for a value that the conversion or the shape does not take: `error`, `keep`, `drop` or a literal, or one of these for each side.",
                ],
            ),
            _ => described(
                LinesBySide::<Anything, 1>::schema(sides),
                &["Written on a side when the other has nothing there."],
            ),
        };
        let properties = RENAME.iter().map(|key| ((*key).to_owned(), about(key))).collect();
        let new = described(reference("place"), &["The place on the new side."]);
        json!({"anyOf": [reference("place"), with_new_side(sides, properties, new, reference("place"))]})
    }
}

/// Returns the schema of a map with these keys and the name of the new side. While that name is
/// unknown, any other key may be it.
pub(super) fn with_new_side(
    sides: Sides<'_>,
    mut properties: Map<String, Value>,
    new: Value,
    any: Value,
) -> Value {
    match sides {
        Some([_, side]) => {
            properties.insert(side.to_owned(), new);
            json!({"type": "object", "additionalProperties": false, "properties": properties, "required": [side]})
        }
        None => json!({"type": "object", "additionalProperties": any, "properties": properties}),
    }
}

/// A reference to a shape, applied to a value or to each element of an array.
#[derive(Clone, Debug)]
pub(crate) struct ShapeUse {
    pub name: Spanned<String>,
    pub each: bool,
    /// `each_value: S`: applies the shape to each value of a map.
    pub each_value: bool,
    /// `else: error | drop | <literal>`, for both sides or by side: the fallback for a value that
    /// the shape does not accept.
    pub otherwise: Option<Node>,
}

impl Read for ShapeUse {
    type Output = ShapeUse;

    /// Reads `Name` or `[Name]`.
    fn read(_: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<ShapeUse> {
        let (name, each) = match &node.kind {
            Kind::String(name, _) => (Spanned { value: name.clone(), span: node.span }, false),
            Kind::Seq(items) if items.len() == 1 => (reader.text(&items[0])?, true),
            _ => {
                reader.findings.push(faults::shape_use(node.span));
                return None;
            }
        };
        Some(ShapeUse { name, each, each_value: false, otherwise: None })
    }

    fn schema(_: Sides<'_>) -> Value {
        reference("shapeUse")
    }
}

impl ShapeUse {
    pub(in crate::mapping) fn definition() -> Value {
        json!({"anyOf": [text(), {"type": "array", "items": text(), "minItems": 1, "maxItems": 1}]})
    }

    /// Reads the `else:` of a shape.
    pub(super) fn read_else(&mut self, node: &Node, reader: &mut SyntaxReader<'_>) {
        if self.each_value {
            reader.findings.push(faults::else_of_map(node.span));
            return;
        }
        // A text is never an object, so the type check of the literal reports a word in quotes.
        self.otherwise = otherwise(node, &["error", "drop"], None, reader);
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ConversionUse {
    pub name: Spanned<String>,
    pub arguments: Option<Node>,
    /// `else: error | keep | drop | <literal>`, for both sides or by side.
    pub otherwise: Option<Node>,
    /// `as: {each: conversion}`: converts each element of a list.
    pub each: Option<Span>,
    /// `as: [this, …]`: fallbacks, tried in order if this conversion does not accept the value.
    pub or: Vec<ConversionUse>,
}

/// Reads an `else:` with its keywords. If `meant` is given, warns about keywords in quotes; `meant`
/// describes how to write the text itself.
pub(super) fn otherwise(
    node: &Node,
    words: &[&str],
    meant: Option<&str>,
    reader: &mut SyntaxReader<'_>,
) -> Option<Node> {
    // Short words resemble too many texts to be reported as misspellings.
    if let Node { kind: Kind::String(word, TextStyle::Plain), span } = node
        && word.len() >= 4
        && !words.contains(&word.as_str())
        && let Some(near) = suggest(word, words)
    {
        reader.findings.push(faults::nearly_otherwise(word, near, *span));
    }
    let unquoted = unquote_word(node, reader);
    if let (None, Some(meant)) = (&unquoted, meant) {
        reader.warn_of_quotes(node, words, meant);
    }
    unquoted.or_else(|| Some(node.clone()))
}

/// Reads `as: name`, `as: {name: arguments}` or a list of these, with the `else:` of the line.
pub(super) fn conversion(
    node: Option<&Node>,
    fallback: Option<&Node>,
    reader: &mut SyntaxReader<'_>,
) -> Option<ConversionUse> {
    let node = node?;
    const WORDS: &[&str] = &["keep", "error", "drop"];
    let meant = "a `table` that lists it says that the text is meant";
    let otherwise = fallback.and_then(|fallback| otherwise(fallback, WORDS, Some(meant), reader));
    let mut conversions = match &node.kind {
        Kind::Seq(items) if items.len() > 1 => {
            items.iter().filter_map(|item| one_conversion(item, reader)).collect()
        }
        _ => vec![one_conversion(node, reader)?],
    };
    // The first conversion carries the fallback and the alternatives.
    let or = if conversions.is_empty() { Vec::new() } else { conversions.split_off(1) };
    let first = conversions.pop()?;
    Some(ConversionUse { otherwise, or, ..first })
}

/// Reads a conversion by name, with optional arguments.
fn one_conversion(node: &Node, reader: &mut SyntaxReader<'_>) -> Option<ConversionUse> {
    let (name, arguments) = match &node.kind {
        Kind::Map(entries) if entries.len() == 1 && entries[0].0.name == EACH_ELEMENT => {
            let inner = conversion(Some(&entries[0].1), None, reader)?;
            return Some(ConversionUse { each: Some(entries[0].0.span), ..inner });
        }
        Kind::Map(entries) if entries.len() == 1 => {
            let (key, arguments) = &entries[0];
            (SyntaxReader::key(key), Some(arguments.clone()))
        }
        _ => (reader.text(node)?, None),
    };
    Some(ConversionUse { name, arguments, otherwise: None, each: None, or: Vec::new() })
}

/// Arguments of the conversion `pairs`, which the compiler of conversions reads.
pub(in crate::mapping) const PAIRS: Keys =
    Keys { what: "`pairs`", entries: &[KeyEntry::required("key"), KeyEntry::required("value")] };

impl ConversionUse {
    pub(in crate::mapping) fn definition() -> Value {
        let plain = SPECS.iter().filter(|spec| matches!(spec.arguments, Arguments::None));
        let plain = plain.map(|spec| spec.name).chain([SINGLE_IN_ARRAY]);
        let mut forms = vec![words(&plain.collect::<Vec<_>>())];
        forms.extend(with_arguments(SPECS.iter().copied()));
        // Lists and `each` contain single conversions only, so build them before they join the forms.
        let several = json!({"type": "array", "minItems": 2, "items": {"anyOf": forms.clone()}});
        let each = described(json!({"anyOf": forms.clone()}), &["For each element of a list."]);
        forms.push(described(several, &["The first that takes the value."]));
        forms.push(one_key(EACH_ELEMENT, each));
        json!({"anyOf": forms})
    }
}

/// Returns the schema of a map with this key.
pub(super) fn one_key(name: &str, schema: Value) -> Value {
    json!({"type": "object", "additionalProperties": false, "required": [name], "properties": {name: schema}})
}

/// Returns the schemas of conversions with arguments.
pub(super) fn with_arguments(specs: impl Iterator<Item = &'static Spec>) -> Vec<Value> {
    let mut forms = Vec::new();
    for spec in specs {
        let schema = match spec.arguments {
            Arguments::None => continue,
            Arguments::Table => map_of(&cells()),
            Arguments::Pairs => super::section::object(&PAIRS, |properties| {
                let key = described(text(), &["Member of an entry that holds the key."]);
                let value = described(text(), &["Member of an entry that holds the value."]);
                properties.extend([("key".to_owned(), key), ("value".to_owned(), value)]);
            }),
            Arguments::Own { schema, .. } => {
                serde_json::from_str(schema).expect("a conversion's schema is JSON, which a test reads")
            }
        };
        forms.push(one_key(spec.name, described(schema, &[spec.about])));
    }
    forms
}

/// Returns the schema of a value of a table, or of a list of values, of which the first is written.
fn cells() -> Value {
    let cell = json!({"type": ["string", "number", "boolean", "null"]});
    json!({"anyOf": [cell.clone(), {"type": "array", "items": cell, "minItems": 1}]})
}

#[derive(Clone, Debug)]
pub(crate) struct CopyDecl {
    /// The side that receives the copy.
    pub to: SideRef,
    pub name: Spanned<String>,
    pub from: Spanned<FieldPlace>,
    pub span: Span,
}

kinds! {
    /// `copy: {v2: {place: $.a.b}}`: a read-only copy on one side of a place of the other.
    Copies -> Vec<CopyDecl>, |_, node, reader| {
        reader.lines_by_side(node, |key, value, to, reader| {
            let from = reader.place_of(value)?;
            Some(CopyDecl { to, name: SyntaxReader::key(key), from, span: key.span.to(value.span) })
        })
    }, |sides| by_side(sides, 1, &map_of(&place()));
    /// `only: {v2: {field: …}, v3: {field: …}}`
    Onlys -> Vec<Only>, |_, node, reader| {
        reader.lines_by_side(node, |key, value, side, reader| {
            let (place, fill) = (reader.place(&key.name, key.span), reader.fill(value));
            Some(Only { side, place: place?, fill: fill?, span: key.span.to(value.span) })
        })
    }, |sides| by_side(sides, 1, &map_of(&Fill::schema()));
    /// `rest: {v3: lost}` or `rest: {v3: null}`: all fields of the side that no line names.
    Rests -> Vec<Rest>, |_, node, reader| {
        let mut rests = Vec::new();
        for (key, value) in node.map(reader.findings)? {
            // Even with an invalid value the line covers the fields, so they are not reported as
            // missing.
            let fill = reader.rest_fill(value).unwrap_or(None);
            let side = reader.side(&key.name, key.span);
            rests.extend(side.map(|side| Rest { side, fill, span: key.span.to(value.span) }));
        }
        Some(rests)
    }, |sides| by_side(sides, 1, &RestFill::schema());
}

#[derive(Clone, Debug)]
pub(crate) struct Constant {
    pub name: Spanned<String>,
    pub values: [Node; 2],
    pub span: Span,
}

impl Read for Constant {
    type Output = Constant;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Constant> {
        let [old, new] = reader.by_side(node, "a constant", false)?;
        let values = [old?.1.clone(), new?.1.clone()];
        Some(Constant { name: SyntaxReader::key(key), values, span: key.span.to(node.span) })
    }

    fn schema(sides: Sides<'_>) -> Value {
        by_side(sides, 2, &anything())
    }
}

/// Splits one place of the old side into several of the new side by the JSON kind of the value.
#[derive(Clone, Debug)]
pub(crate) struct ByKind {
    pub old: Spanned<FieldPlace>,
    /// Kind (`integer`, `number`, `boolean`, `string`, `object`, `array`) → place on the new side.
    pub new: Vec<(Spanned<String>, Spanned<FieldPlace>)>,
    /// `default: {old side: value}`: the value on the old side if all of the places are absent.
    pub default: Option<Node>,
    pub span: Span,
}

impl Read for ByKind {
    type Output = ByKind;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<ByKind> {
        let old = reader.place(&key.name, key.span)?;
        let (mut new, mut default) = (Vec::new(), None);
        for (kind, place) in node.map(reader.findings).unwrap_or_default() {
            if kind.name == "default" {
                default = old_default(place, reader);
            } else if KINDS.contains(&kind.name.as_str()) {
                new.extend(reader.place_of(place).map(|place| (SyntaxReader::key(kind), place)));
            } else {
                reader.findings.push(faults::unknown_line(&kind.name, kind.span, "`by_kind`", KINDS));
            }
        }
        Some(ByKind { old, new, default, span: key.span.to(node.span) })
    }

    fn schema(_: Sides<'_>) -> Value {
        json!({"type": "object", "propertyNames": words(KINDS), "additionalProperties": reference("place")})
    }
}

/// Reads `{old side: value}`.
fn old_default(node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Node> {
    let known = [reader.sides[0].value.as_str()];
    for (key, _) in node.map(reader.findings)?.iter().filter(|(key, _)| key.name != known[0]) {
        let finding = faults::unknown_line(&key.name, key.span, "the default of `by_kind`", &known);
        reader.findings.push(finding);
    }
    node.get(known[0]).cloned()
}

/// A field that exists on one side only.
#[derive(Clone, Debug)]
pub(crate) struct Only {
    pub side: SideRef,
    pub place: Spanned<FieldPlace>,
    pub fill: Fill,
    pub span: Span,
}

/// Value of a one-sided field when its side is built.
#[derive(Clone, Debug)]
pub(crate) enum Fill {
    /// A literal, or `{value: literal, despite: type}`.
    Value { value: Node, despite_type: Option<Span> },
    /// `absent`: omitted.
    Absent,
    /// `none`: has no default; a route that builds this side supplies it under `with:`.
    Nothing,
    /// A member under `with:` of the shape.
    Computed,
    /// `$.config.name`
    Setting(Spanned<String>),
    /// `{refuse: reason}`: omitted when built; a value that arrives from this side refuses the
    /// call.
    Refuse(Spanned<String>),
}

#[derive(Clone, Debug)]
pub(crate) struct Rest {
    pub side: SideRef,
    /// The fill value; `None` for `lost`: the side can only be built without these fields.
    pub fill: Option<RestFill>,
    pub span: Span,
}

/// One literal for all fields that no line names: `null`, or `{value: null, despite: type}` if it
/// violates the type of some of them.
#[derive(Clone, Debug)]
pub(crate) struct RestFill {
    pub value: Node,
    pub despite_type: Option<Span>,
}

section! {
    /// `{value: literal, despite: type}`
    FillValue is "a value" {
        /// A literal.
        required value: Anything,
        /// It breaks the contract's type, and is listed in the report.
        optional despite: DespiteType,
    }
    into Fill: |fill, _, _| Some(Fill::Value { value: fill.value, despite_type: fill.despite })
}

section! {
    /// `{refuse: reason}`
    FillRefuse is "a refusal" {
        /// Left out, and a client that sends it is refused with this reason.
        required refuse: Text,
    }
    into Fill: |fill, _, _| Some(Fill::Refuse(fill.refuse))
}

/// A keyword in map form, for writers that quote every text.
const WORD: Keys = Keys { what: "a word", entries: &[KeyEntry::required("word")] };

impl Fill {
    fn schema() -> Value {
        // Maps are special forms. A literal object needs `{value: …}`.
        let literal = json!({"type": ["null", "boolean", "number", "string", "array"]});
        json!({"anyOf": [
            literal, {"type": "object", "maxProperties": 0}, FillValue::definition(None), FillRefuse::definition(None),
            word(&["absent", "none"]),
        ]})
    }
}

impl RestFill {
    fn schema() -> Value {
        let mut value = FillValue::definition(None);
        value["properties"]["value"]["description"] = "A literal for all of them.".into();
        value["properties"]["despite"]["description"] =
            "It breaks the type of some, which are listed in the report.".into();
        // A schema cannot see quotes, so every text counts as a keyword. A literal text needs `{value:
        // …}`.
        let literal = json!({"type": ["null", "boolean", "number", "array"]});
        json!({"anyOf": [words(&["lost"]), literal, value, word(&["lost"])]})
    }
}

/// Returns the schema of a keyword in a file where every text is in quotes.
fn word(known: &[&str]) -> Value {
    super::section::object(&WORD, |properties| {
        let word = described(words(known), &["A word that has a meaning, and is no text."]);
        properties.insert("word".to_owned(), word);
    })
}

/// Reads `{word: absent}`, the form of a keyword in JSON, where every text is in quotes.
fn unquote_word(node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Node> {
    let (Kind::Map(_), Some(_)) = (&node.kind, node.get("word")) else { return None };
    let fields = crate::yaml::Fields::parse(node, &WORD, reader.findings)?;
    let word = reader.text(fields.get("word")?)?;
    Some(Node { kind: Kind::String(word.value, TextStyle::Plain), span: word.span })
}

impl SyntaxReader<'_> {
    /// Reads the fill value of a one-sided field.
    fn fill(&mut self, node: &Node) -> Option<Fill> {
        if let Some(word) = unquote_word(node, self) {
            return self.fill(&word);
        }
        self.warn_of_quotes(node, &["absent", "none"], "`{value: …}` says that the text is meant");
        let key = Key { name: String::new(), span: node.span };
        match &node.kind {
            Kind::String(word, TextStyle::Plain) if word == "absent" => Some(Fill::Absent),
            Kind::String(word, TextStyle::Plain) if word == "none" => Some(Fill::Nothing),
            // An unquoted word is probably a misspelled keyword. Require quotes for texts.
            Kind::String(word, TextStyle::Plain) if !word.starts_with('$') => {
                self.findings.push(faults::fill_word(word, node.span));
                None
            }
            Kind::String(word, TextStyle::Plain) if nearly(word) => {
                self.findings.push(faults::nearly_a_filling(word, FILL_WORDS, node.span));
                None
            }
            Kind::String(path, _) if path.starts_with('$') => {
                if path.strip_prefix("$.config.").is_none_or(str::is_empty) {
                    self.findings.push(faults::config_path(path, node.span));
                    return None;
                }
                Some(Fill::Setting(Spanned { value: path["$.config.".len()..].to_owned(), span: node.span }))
            }
            Kind::Map(_) if node.get("refuse").is_some() => FillRefuse::read(&key, node, self),
            Kind::Map(_) if node.get("value").is_some() => FillValue::read(&key, node, self),
            Kind::Map(entries) if !entries.is_empty() => {
                self.findings.push(faults::fill(node.span));
                None
            }
            _ => Some(Fill::Value { value: node.clone(), despite_type: None }),
        }
    }

    /// Reads `lost`, a literal, or a literal despite the type.
    fn rest_fill(&mut self, node: &Node) -> Option<Option<RestFill>> {
        if let Some(word) = unquote_word(node, self) {
            return self.rest_fill(&word);
        }
        self.warn_of_quotes(node, &["lost"], "`{value: lost}` says that the text is meant");
        if let Kind::String(_, TextStyle::Plain) = &node.kind {
            return node.word(&["lost"], self.findings).map(|_| None);
        }
        match self.fill(node)? {
            Fill::Value { value, despite_type } => Some(Some(RestFill { value, despite_type })),
            Fill::Absent | Fill::Nothing | Fill::Computed | Fill::Setting(_) | Fill::Refuse(_) => {
                self.findings.push(faults::rest_fill(node.span));
                None
            }
        }
    }
}

/// Returns whether a plain text is so similar to a keyword that it is probably a misspelling.
fn nearly(word: &str) -> bool {
    word.len() >= 4 && suggest(word, FILL_WORDS).is_some()
}
