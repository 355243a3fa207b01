//! Entries of `routes:`: pairs, and the head of `serve` routes.

use super::kinds::{
    Anything, Drop, Effect, LinesBySide, ListOf, MapOf, OneOrList, Operation, Retry, SideName, Status, Text,
    kinds,
};
use super::notes::Notes;
use super::section::{Read, section};
use super::shape::{conversion, with_new_side};
use super::{
    BlockKeys, CheckDecl, ConstantValue, ConversionUse, PagedRoute, ShapeDecl, ShapeLines, ShapeUse, SideRef,
    Spanned, SyntaxReader, faults,
};
use crate::diagnostic::{Span, suggest};
use crate::mapping::schema::{Sides, anything, by_side, list_of, map_of, reference, text, words};
use crate::yaml::{Key, Kind, Node, described};
use serde_json::{Value, json};
use std::sync::Arc;

/// One entry of `routes:`.
#[derive(Clone, Debug)]
pub(crate) enum RouteDecl {
    Pair(PairDecl),
    Serve(ServeDecl),
}

impl RouteDecl {
    /// Returns the setting that enables the route.
    pub(crate) fn only_if(&self) -> Option<&Spanned<String>> {
        match self {
            RouteDecl::Pair(pair) => pair.only_if.as_ref(),
            RouteDecl::Serve(serve) => serve.only_if.as_ref(),
        }
    }
}

impl Read for RouteDecl {
    type Output = RouteDecl;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<RouteDecl> {
        let is = |key: &str| node.get(key).is_some();
        match (is("pair"), is("serve")) {
            (true, false) => PairDecl::read(key, node, reader).map(RouteDecl::Pair),
            (false, true) => ServeDecl::read(key, node, reader).map(RouteDecl::Serve),
            _ => {
                const KINDS: &[&str] = &["pair", "serve"];
                let entries = node.map(reader.findings)?;
                // Report a misspelled key at the key instead of the entire route.
                let is_slip = |key: &&Key| suggest(&key.name, KINDS).is_some();
                reader.findings.push(match entries.iter().map(|(key, _)| key).find(is_slip) {
                    Some(key) if !is("pair") && !is("serve") => {
                        faults::unknown_line(&key.name, key.span, "a route", KINDS)
                    }
                    _ => faults::one_of_keys(node.span, "a route", KINDS),
                });
                None
            }
        }
    }

    fn schema(_: Sides<'_>) -> Value {
        json!({"anyOf": [reference("pair"), reference("serve")]})
    }
}

kinds! {
    /// The routes. One with several operations under `at` is a route for each of them.
    Routes -> Vec<RouteDecl>, |key, node, reader| {
        let mut routes = Vec::new();
        for route in node.list(reader.findings)? {
            let operations = route.get("at").and_then(Node::as_seq).filter(|list| !list.is_empty());
            let Some(operations) = operations else {
                routes.extend(RouteDecl::read(key, route, reader));
                continue;
            };
            for operation in operations {
                let mut one = route.clone();
                if let Kind::Map(entries) = &mut one.kind {
                    Arc::make_mut(entries).iter_mut().filter(|(key, _)| key.name == "at").for_each(|(_, at)| *at = operation.clone());
                }
                routes.extend(RouteDecl::read(key, &one, reader));
            }
        }
        Some(routes)
    }, ListOf::<RouteDecl>::schema;
    /// An operation; a list of operations is read as several routes.
    Operations -> Spanned<String>, Operation::read, OneOrList::<Operation>::schema;
}

section! {
    /// `pair: {v2: GET /a, v3: GET /b, front: v2}`
    PairDecl is "a pair", defines "pair" {
        /// The operation of each side; with `front`, the side that is served.
        required sides("pair"): PairSides,
        /// A boolean setting, `$.config.name`: answers instead of the other route while it is on.
        optional only_if("if"): Text,
        /// Path variables: `{old: new}`; those of the same name are passed.
        default path: MapOf<Text>,
        /// Path variables with values that may contain escaped slashes (`%2F`).
        default allow_slash: ListOf<Text>,
        /// Query parameters that are passed: names, or `{old: new}`; or another rule for them.
        default query: QueryRules,
        /// Paging of both sides, if their styles differ.
        optional paging: PagedRoute,
        /// Header fields that are passed.
        default headers: PairHeaders,
        /// Media types of bodies that are passed, where the sides name them differently.
        default media: PairMedia,
        /// The request's body: a shape, `[Shape]`, `empty`, `keep`, or lines of a shape.
        optional request: BodyDecl,
        /// The response's body.
        optional response: BodyDecl,
        /// Old status: new statuses; the first is sent when going the other way.
        default status: StatusLines,
        /// Statuses that are answers, not failures of the service.
        default business_errors: ListOf<Status>,
        /// Whether a repeat of this write is harmless.
        optional retry: Retry,
        /// Whether it writes, where the method misleads.
        optional effect: Effect,
        part notes: Notes,
        span_of span("pair"): Span,
    }
}

/// The operations of a pair.
#[derive(Clone, Debug)]
pub(crate) struct PairSides {
    /// Operation keys, by side.
    pub operations: [Spanned<String>; 2],
    /// The only side that the pair serves; both if omitted.
    pub front: Option<SideRef>,
    /// Generated for operations that are equal on both sides, and dropped if they turn out to
    /// differ.
    pub made: bool,
}

impl Read for PairSides {
    type Output = PairSides;

    /// Reads `{v1: GET /a, v2: GET /b, front: v1}`.
    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<PairSides> {
        let mut operations = [None, None];
        let mut front = None;
        for (name, value) in node.map(reader.findings)? {
            if name.name == "front" {
                front = SideName::read(key, value, reader);
            // Precedes the lookup of sides, which would report a misspelled `front` as an unknown
            // side.
            } else if suggest(&name.name, &["front"]).is_some() {
                reader.findings.push(faults::unknown_line(&name.name, name.span, "a pair", &["front"]));
            } else if let Some(side) = reader.side(&name.name, name.span) {
                operations[side.side] = reader.text(value);
            }
        }
        for (side, operation) in operations.iter().enumerate() {
            if operation.is_none() {
                let name = &reader.sides[side].value;
                reader.findings.push(faults::missing_side("a pair", name, node.span));
            }
        }
        let [old, new] = operations;
        Some(PairSides { operations: [old?, new?], front, made: false })
    }

    fn schema(sides: Sides<'_>) -> Value {
        let mut operations = by_side(sides, 2, &Operation::schema(sides));
        operations["properties"]["front"] = described(text(), &["Only this side is served by the pair."]);
        // The two sides and `front`.
        operations["maxProperties"] = json!(3);
        operations
    }
}

section! {
    /// Header fields of a pair.
    #[derive(Default)]
    PairHeaders is "`headers`" {
        /// Header fields of requests: `{old: new}`, or `{name: drop}`.
        default request: HeaderRules,
        /// Header fields of responses: `{old: new}`, or `{name: drop}`.
        default response: HeaderRules,
    }
}

section! {
    /// Media types of bodies that are passed through.
    #[derive(Default)]
    PairMedia is "`media`" {
        /// Of requests: `{old: new}`.
        default request: MapOf<Text>,
        /// Of responses: `{old: new}`.
        default response: MapOf<Text>,
    }
}

/// Query parameters or headers of a pair.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParameterRules {
    /// `[page]`, `{old: new}` or `{old: {v2: new, as: conversion}}`
    pub lines: Vec<ParameterLine>,
    /// `{name: {constant: {v2: value}}}`
    pub constants: Vec<ConstantParameter>,
    /// `{name: {refuse: reason, unless: [value]}}`
    pub refused: Vec<RefusedParameter>,
    /// Names in lines with an error; suppresses further findings about them.
    pub faulty: Vec<String>,
}

/// A query parameter or header of one side and its counterpart on the other.
#[derive(Clone, Debug)]
pub(crate) struct ParameterLine {
    pub old: Spanned<String>,
    pub new: Spanned<String>,
    pub conversion: Option<ConversionUse>,
}

impl ParameterLine {
    /// Creates a line without a conversion.
    pub(crate) fn plain(old: Spanned<String>, new: Spanned<String>) -> ParameterLine {
        ParameterLine { old, new, conversion: None }
    }
}

/// A query parameter or header with a fixed value on one side.
#[derive(Clone, Debug)]
pub(crate) struct ConstantParameter {
    pub name: Spanned<String>,
    pub side: SideRef,
    pub value: Node,
}

section! {
    /// A query parameter of either side that refuses the call.
    RefusedParameter is "a refused parameter" {
        name name: Spanned<String>,
        /// The reason for which a client that sends it is refused.
        required reason("refuse"): Text,
        /// Values that have no effect: with them, the parameter is dropped.
        default unless: ListOf<Text>,
    }
}

section! {
    /// `{constant: {v2: value}}`
    ConstantKeys is "a constant" {
        /// The one value that it has, by side.
        filled constant: LinesBySide<ConstantValue, 1>,
    }
    into Vec<(SideRef, Node)>: |keys, _, _| Some(keys.constant)
}

kinds! {
    /// Query parameters: `[name]`, or `{old: new}` with converted, constant or refused values.
    QueryRules -> ParameterRules, |key, node, reader| {
        if let Kind::Seq(_) = node.kind {
            let names = ListOf::<Text>::read(key, node, reader)?.into_iter();
            let lines = names.map(|name| ParameterLine::plain(name.clone(), name)).collect();
            return Some(ParameterRules { lines, ..ParameterRules::default() });
        }
        parameters(node, true, reader)
    }, |sides| {
        let [line, constant] = parameter(sides);
        let line = json!({"anyOf": [text(), line, constant, RefusedParameter::definition(sides)]});
        json!({"anyOf": [list_of(&text()), map_of(&line)]})
    };
    /// Header fields: `{old: new}` with converted or constant values.
    HeaderRules -> ParameterRules, |_, node, reader| parameters(node, false, reader), |sides| {
        let [line, constant] = parameter(sides);
        map_of(&json!({"anyOf": [text(), line, constant]}))
    };
}

/// Reads `{old: new}`.
fn parameters(node: &Node, refusable: bool, reader: &mut SyntaxReader<'_>) -> Option<ParameterRules> {
    let mut read = ParameterRules::default();
    for (key, value) in node.map(reader.findings)? {
        let mark = reader.findings.len();
        match value.kind {
            Kind::Map(_) if value.get("constant").is_some() => {
                let constants = ConstantKeys::read(key, value, reader);
                read.constants.extend(
                    constants.into_iter().flatten().map(|(side, value)| ConstantParameter {
                        name: SyntaxReader::key(key),
                        side,
                        value,
                    }),
                );
            }
            Kind::Map(_) if refusable && value.get("refuse").is_some() => {
                read.refused.extend(RefusedParameter::read(key, value, reader));
            }
            Kind::Map(_) => read.lines.extend(converted_parameter(key, value, reader)),
            _ => {
                let line = reader.text(value);
                read.lines.extend(line.map(|value| ParameterLine::plain(SyntaxReader::key(key), value)));
            }
        }
        // Record every name on the line, because an error hides which of them it covers.
        if reader.findings.errors_since(mark) {
            let named = value.as_map().unwrap_or_default().iter().filter_map(|(_, value)| value.as_str());
            read.faulty.extend(named.chain([key.name.as_str()]).map(str::to_owned));
        }
    }
    Some(read)
}

/// Keys of a parameter or header, in addition to the name of the new side.
const PARAMETER: &[&str] = &["as", "else"];

/// Reads `old: {<new side>: new, as, else}`.
fn converted_parameter(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<ParameterLine> {
    let new_side = reader.sides[1].value.clone();
    let known = [&[new_side.as_str()], PARAMETER].concat();
    for (key, _) in node.map(reader.findings)?.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
        let all = [known.as_slice(), &["constant", "refuse"]].concat();
        reader.findings.push(faults::unknown_line(&key.name, key.span, "a parameter", &all));
    }
    // An unknown key, reported above, may be the misspelled name of the side.
    let Some(new) = node.get(&new_side) else {
        if node.as_map().is_some_and(|lines| lines.iter().all(|(key, _)| known.contains(&key.name.as_str())))
        {
            reader.findings.push(faults::missing_side("a parameter", &new_side, node.span));
        }
        return None;
    };
    let conversion = conversion(node.get("as"), node.get("else"), reader);
    Some(ParameterLine { old: SyntaxReader::key(key), new: reader.text(new)?, conversion })
}

/// Returns the schemas of a parameter with a conversion, and of a constant one.
fn parameter(sides: Sides<'_>) -> [Value; 2] {
    let about = |key: &str| match key {
        "as" => described(reference("conversion"), &["Conversion of the value."]),
        _ => described(anything(), &["What happens outside the conversion's domain."]),
    };
    let properties = PARAMETER.iter().map(|key| ((*key).to_owned(), about(key))).collect();
    let new = described(text(), &["Its name on the new side."]);
    [with_new_side(sides, properties, new, text()), ConstantKeys::definition(sides)]
}

/// A body of a pair.
#[derive(Clone, Debug)]
pub(crate) enum BodyDecl {
    /// `empty`
    Empty(Span),
    /// `keep`: identical on both sides.
    Keep(Span),
    Shape(ShapeUse),
    /// `{same: […], …}`: an unnamed shape.
    Inline(Box<ShapeDecl>),
}

section! {
    /// `{shape: [Name], else: drop}`
    ShapedBody is "a body" {
        /// Shape of each element: `[Name]`.
        required shape: ShapeUse,
        /// Fallback for an element that the shape does not accept: `drop`, `error` or a literal, or
        /// one of these for each side.
        optional otherwise("else"): Anything,
    }
    into ShapeUse: |ShapedBody { mut shape, otherwise }, _, reader| {
        match otherwise {
            Some(otherwise) if shape.each => shape.read_else(&otherwise, reader),
            Some(otherwise) => reader.findings.push(faults::else_of_body(otherwise.span)),
            None => {}
        }
        Some(shape)
    }
}

impl Read for BodyDecl {
    type Output = BodyDecl;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<BodyDecl> {
        match &node.kind {
            Kind::String(word, _) if word == "empty" => Some(BodyDecl::Empty(node.span)),
            Kind::String(word, _) if word == "keep" => Some(BodyDecl::Keep(node.span)),
            Kind::Map(_) if node.get("shape").is_some() => {
                ShapedBody::read(key, node, reader).map(BodyDecl::Shape)
            }
            Kind::Map(_) => {
                let shape = ShapeDecl::read_in_place(key, node, reader);
                shape.map(|shape| BodyDecl::Inline(Box::new(shape)))
            }
            Kind::Seq(_) | Kind::String(..) => ShapeUse::read(key, node, reader).map(BodyDecl::Shape),
            _ => {
                let lines = ShapeLines::KEYS.all();
                let lines = lines.iter().map(|(line, _)| format!("`{line}`")).collect::<Vec<_>>().join(", ");
                let help =
                    format!("the name of a shape, `[Name]`, `empty`, `keep`, or lines of a shape: {lines}");
                node.wrong_kind("a body", Some(help), reader.findings)
            }
        }
    }

    fn schema(_: Sides<'_>) -> Value {
        reference("body")
    }
}

impl BodyDecl {
    pub(in crate::mapping) fn definition(sides: Sides<'_>) -> Value {
        json!({"anyOf": [
            words(&["empty", "keep"]), reference("shapeUse"), reference("shapeInPlace"), ShapedBody::definition(sides),
        ]})
    }
}

#[derive(Clone, Debug)]
pub(crate) struct StatusLine {
    pub old: Spanned<i64>,
    pub new: Vec<Spanned<StatusWord>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusWord {
    Exact(u16),
    /// `2xx`
    Class(u8),
}

kinds! {
    /// `status: {201: [200, 2xx]}`: old status → new statuses; the first is sent in the opposite
    /// direction.
    StatusLines -> Vec<StatusLine>, |key, node, reader| {
        let mut lines = Vec::new();
        for (old, value) in node.map(reader.findings)? {
            let Some(old) = reader.status_key(old) else { continue };
            // An invalid word has been reported, but an empty list has not.
            if value.as_seq().is_some_and(<[Node]>::is_empty) {
                reader.findings.push(faults::status("[]", value.span));
            }
            lines.push(StatusLine { old, new: OneOrList::<StatusKind>::read(key, value, reader).unwrap_or_default() });
        }
        Some(lines)
    }, |sides| json!({
        "type": "object", "propertyNames": {"pattern": "^[2-5][0-9][0-9]$"},
        "additionalProperties": OneOrList::<StatusKind>::schema(sides),
    });
    /// A status, or a class such as `2xx`.
    StatusKind -> Spanned<StatusWord>, |key, node, reader| {
        let value = match &node.kind {
            Kind::String(text, _) => match text.as_bytes() {
                [digit @ b'2'..=b'5', b'x', b'x'] => StatusWord::Class(digit - b'0'),
                _ => {
                    reader.findings.push(faults::status(text, node.span));
                    return None;
                }
            },
            _ => StatusWord::Exact(Status::read(key, node, reader)?.value as u16),
        };
        Some(Spanned { value, span: node.span })
    }, |_| json!({"anyOf": [reference("status"), {"type": "string", "pattern": "^[2-5]xx$"}]});
    /// `{name: drop}`
    Dropped -> Vec<Spanned<String>>, |key, node, reader| {
        let names = MapOf::<Drop>::read(key, node, reader)?;
        Some(names.into_iter().map(|(name, _)| name).collect())
    }, MapOf::<Drop>::schema;
}

section! {
    /// `serve: v2, at: POST /a`
    ServeDecl is "a `serve` route", defines "serve", with super::step::one_end {
        /// The side that is served.
        required side("serve"): SideName,
        /// The operation that is served, or several that are served alike.
        required at: Operations,
        /// A boolean setting, `$.config.name`: answers instead of the other route while it is on.
        optional only_if("if"): Text,
        /// Path variables with values that may contain escaped slashes (`%2F`).
        default allow_slash: ListOf<Text>,
        /// Conditions on the request, before anything is called.
        default check: ListOf<CheckDecl>,
        /// Defaults of the request's body.
        default fill: MapOf<Anything>,
        /// Query parameters that no call uses: `{name: drop}`.
        default dropped("query"): Dropped,
        /// Header fields of the request that no call uses, or of the contract's answer that this
        /// one lacks: `{name: drop}`.
        default dropped_headers("headers"): Dropped,
        /// Paging of both sides, if their styles differ.
        optional paging: PagedRoute,
        part block: BlockKeys,
        /// Statuses that are answers, not failures of the service.
        default business_errors: ListOf<Status>,
        part notes: Notes,
        span_of span("at"): Span,
    }
}
