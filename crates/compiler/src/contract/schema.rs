//! Reads the schemas of a document into types.
//!
//! A schema is the conjunction of its *layers*: the schema itself, the targets of its `$ref`, and
//! the members of `allOf`, flattened. A schema without an equivalent type becomes any value, with a
//! finding. Two measures bound the work for any document: each set of layers is read once, as a
//! named type, and the number of layers per schema and of such types per document is limited.

mod keywords;
mod layers;
mod unread;
mod values;

use super::alternatives::{Discriminator, Discriminators};
use super::documents::{Follow, ReferenceTarget};
use super::faults;
use super::grouped::Grouped;
use super::numbers::order;
use super::types::{
    Access, Additional, Array, Field, Keyword, Limits, NamedType, Object, Reference, Scalar, ScalarKind,
    ScalarLimits, Type, TypeId, TypeKind, Types, Unread,
};
use super::xml::{XmlObject, XmlObjects};
use crate::diagnostic::Span;
use crate::yaml::{Key, Kind, Node};
use keywords::{only_requires, says_nullable, says_something};
use layers::{Conjoined, Layer, LayerSet, shape_of};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use switchback_plan::is_json;
use values::{EnumValues, TYPE_WORDS, common_values, type_words};

/// Maximum number of schemas to read. Inherited schemas count once for each schema that inherits
/// them.
const WORK_MAX: usize = 3_000_000;
/// Maximum number of alternatives in one schema.
const ALTERNATIVES_MAX: usize = 1_000;

/// State of the types of one document while they are read.
pub(super) struct Schemas<'n, 'f> {
    follow: &'f Follow<'n>,
    pub(super) findings: &'f mut Grouped,
    /// Named types; `None` until they are read.
    slots: Vec<(Arc<str>, Span, Option<Type>)>,
    by_shape: HashMap<LayerSet, TypeId>,
    names: HashSet<String>,
    /// Queue of named types to read.
    waiting: VecDeque<(TypeId, Vec<Layer<'n>>)>,
    /// Number of schemas read; those of merged types count each time.
    work: usize,
    merged: usize,
    merged_layers: usize,
    merged_layers_max: usize,
    pub(super) discriminators: Discriminators,
    xml: XmlObjects,
    /// Keywords that are in no list, with a similar known keyword if any.
    unknown: HashMap<&'n str, Option<&'static str>>,
}

impl<'n, 'f> Schemas<'n, 'f> {
    /// Returns whether a media type without parameters denotes JSON.
    pub(super) fn is_json(&self, media: &str) -> bool {
        is_json(media) || self.follow.documents.declares_json(media)
    }

    /// Declares the named schemas, in the order of their ids.
    pub(super) fn new(
        follow: &'f Follow<'n>,
        named: &'n [(Key, Node)],
        findings: &'f mut Grouped,
    ) -> Schemas<'n, 'f> {
        let mut schemas = Schemas {
            follow,
            findings,
            slots: Vec::new(),
            by_shape: HashMap::new(),
            names: HashSet::new(),
            waiting: VecDeque::new(),
            work: 0,
            merged: 0,
            merged_layers: 0,
            merged_layers_max: layers::merged_layers_max(bytes_of(named)),
            discriminators: Discriminators::default(),
            xml: XmlObjects::default(),
            unknown: HashMap::new(),
        };
        for (key, node) in named {
            let layer = Layer { node, bare: false };
            let id = schemas.declare(&key.name, key.span, vec![layer]);
            // References to the schema lead to this type.
            schemas.by_shape.insert(vec![(std::ptr::from_ref(node), false)], id);
        }
        schemas
    }

    fn declare(&mut self, name: &str, span: Span, layers: Vec<Layer<'n>>) -> TypeId {
        let mut unique = name.to_owned();
        let mut next = 2;
        while !self.names.insert(unique.clone()) {
            unique = format!("{name}-{next}");
            // Skip ahead: a name with thousands of duplicates would take quadratic time.
            next = if next < 100 { next + 1 } else { next + self.slots.len() };
        }
        let id = TypeId(self.slots.len() as u32);
        self.slots.push((unique.into(), span, None));
        self.waiting.push_back((id, layers));
        id
    }

    /// Reads all queued types, including those that are queued meanwhile.
    pub(super) fn finish(&mut self) {
        while let Some((id, layers)) = self.waiting.pop_front() {
            let ty = match layers.as_slice() {
                // A single layer is the schema of a named type; several are a merged type.
                [Layer { node, bare: false }] => self.root(id, node),
                layers => self.written_out(layers),
            };
            if let [Layer { node, bare: false }] = layers.as_slice() {
                self.note_xml(node, &ty);
            }
            self.slots[id.0 as usize].2 = Some(ty);
        }
    }

    /// Reads the schema of a named type. A conjunction is registered under this name, rather than
    /// as a new merged type.
    fn root(&mut self, id: TypeId, node: &'n Node) -> Type {
        let is_conjunction = node.get("$ref").is_some() || node.get("allOf").is_some();
        if !is_conjunction {
            return self.parse(node);
        }
        match self.conjoin(&[node], node.span) {
            Conjoined::Type(ty) => ty,
            Conjoined::Here(layers) => self.written_out(&layers),
            Conjoined::Layers { layers, nullable, .. } => {
                self.by_shape.entry(shape_of(&layers)).or_insert(id);
                let ty = self.written_out(&layers);
                Type { nullable: ty.nullable || nullable, span: node.span, ..ty }
            }
        }
    }

    /// Returns all named types. Requires [`Schemas::finish`].
    pub(super) fn types(self) -> (Types, Discriminators, XmlObjects) {
        let mut types = Types::default();
        for (name, span, ty) in self.slots {
            types.add(NamedType { name, ty: ty.unwrap_or_else(|| Type::any(span)), span });
        }
        (types, self.discriminators, self.xml)
    }

    /// Remembers the `xml` object of a schema, which is not part of its type.
    fn note_xml(&mut self, node: &Node, ty: &Type) {
        if let Some(xml) = node.get("xml") {
            self.xml.insert(ty.span, XmlObject::parse(xml));
        }
    }

    /// Returns the type that a schema describes.
    pub(super) fn parse(&mut self, node: &'n Node) -> Type {
        let ty = self.parse_type(node);
        self.note_xml(node, &ty);
        ty
    }

    fn parse_type(&mut self, node: &'n Node) -> Type {
        let span = node.span;
        self.work += 1;
        if self.work > WORK_MAX {
            self.findings.add("work", span, || faults::too_much_work(span, WORK_MAX));
            return Type::any(span);
        }
        match &node.kind {
            // The empty schema and `true` accept any value. `false` accepts no value, and is
            // treated alike.
            Kind::Map(entries) if entries.is_empty() => return Type::any(span),
            Kind::Map(_) => {}
            Kind::Bool(_) => return Type::any(span),
            _ => {
                self.findings.add("schema", span, || faults::not_a("a schema", "a map", node));
                return Type::any(span);
            }
        }
        if node.get("$ref").is_none() && node.get("allOf").is_none() {
            return self.written_out(&[Layer { node, bare: false }]);
        }
        self.conjunction(&[node], span)
    }

    fn reference(&self, id: TypeId, span: Span) -> Type {
        let name = Arc::clone(&self.slots[id.0 as usize].0);
        Type { kind: TypeKind::Named(Reference { id, name }), nullable: false, span }
    }

    /// Returns the named type that a reference leads to, and declares it if necessary.
    fn parse_reference(&mut self, target: ReferenceTarget<'n>, nullable: bool, span: Span) -> Type {
        let shape = vec![(std::ptr::from_ref(target.node), false)];
        let id = match self.by_shape.get(&shape) {
            Some(id) => *id,
            None => {
                let layer = Layer { node: target.node, bare: false };
                let name = percent_encoding::percent_decode_str(target.name).decode_utf8_lossy();
                let id = self.declare(&name, target.node.span, vec![layer]);
                self.by_shape.insert(shape, id);
                id
            }
        };
        Type { nullable, ..self.reference(id, span) }
    }

    /// Reads a schema that consists of these layers.
    fn written_out(&mut self, layers: &[Layer<'n>]) -> Type {
        let span = layers.first().map_or_else(Span::default, |layer| layer.node.span);
        layers.iter().for_each(|layer| self.check_keys(layer.node));
        let mut lists = layers.iter().filter(|layer| !layer.bare).flat_map(|layer| {
            let lists = [layer.node.get("oneOf"), layer.node.get("anyOf")];
            lists.into_iter().flatten().filter_map(move |list| Some((layer.node, list.as_seq()?)))
        });
        let mut choices: Vec<(&'n Node, &'n [Node])> =
            // Alternatives that only list required members are compared as text; see `unread`.
            lists.by_ref().filter(|(_, list)| !list.is_empty() && !list.iter().all(only_requires)).collect();
        let chosen = if choices.is_empty() { None } else { Some(choices.remove(0)) };
        match chosen {
            Some((holder, list)) => {
                if let Some((other, _)) = choices.first() {
                    self.findings.add("two choices", other.span, || faults::two_choices(other.span));
                }
                self.alternatives(layers, holder, list, span)
            }
            None => self.plain(layers, span),
        }
    }

    fn alternatives(&mut self, layers: &[Layer<'n>], holder: &'n Node, list: &'n [Node], span: Span) -> Type {
        if list.len() > ALTERNATIVES_MAX {
            self.findings.add("many", span, || faults::too_many_alternatives(span, ALTERNATIVES_MAX));
            return Type::any(span);
        }
        // Without constraints next to the alternatives, each of them keeps its own name, to which shapes
        // and messages refer.
        let base: Vec<Layer<'n>> = layers
            .iter()
            .filter(|layer| says_something(layer.node))
            .map(|layer| Layer { node: layer.node, bare: true })
            .collect();
        let mut nullable = layers.iter().any(|layer| says_nullable(layer.node));
        let mut read: Vec<Type> = Vec::new();
        for one in list {
            read.push(if base.is_empty() { self.parse(one) } else { self.with(&base, one) });
        }
        if let Some(discriminator) = self.discriminator(holder, list) {
            self.discriminators.insert(span, discriminator);
        }
        nullable |= read.iter().any(|ty| ty.kind == TypeKind::Null);
        let discriminated = self.discriminators.contains_key(&span);
        // The indices of the discriminator refer to the original list, including null.
        let mut others: Vec<Type> =
            read.into_iter().filter(|ty| discriminated || ty.kind != TypeKind::Null).collect();
        match others.len() {
            0 => Type { kind: TypeKind::Null, nullable: true, span },
            1 => {
                // A choice of one type and null is the usual notation of a nullable type since 3.1.
                let only = others.remove(0);
                Type { nullable: only.nullable || nullable, ..only }
            }
            _ => Type { kind: TypeKind::OneOf(others), nullable, span },
        }
    }

    /// Returns the discriminator of the alternatives, if the document declares a complete one.
    fn discriminator(&mut self, holder: &'n Node, list: &'n [Node]) -> Option<Discriminator> {
        let written = holder.get("discriminator")?;
        // Swagger 2.0 has a plain name.
        let member = written.as_str().or_else(|| written.get("propertyName")?.as_str())?;
        let mapping = written.get("mapping").and_then(Node::as_map).unwrap_or_default();
        let targets: Vec<Option<ReferenceTarget<'n>>> =
            list.iter().map(|one| self.follow.target(one.get("$ref")?)).collect();
        let mut values: Vec<(String, usize)> = Vec::new();
        for (key, value) in mapping {
            let Some(text) = value.as_str() else { continue };
            // `mapping` contains references or plain names of schemas.
            let by_reference = self.follow.target(value).map(|target| target.node);
            let at = targets.iter().position(|target| {
                target.is_some_and(|target| {
                    by_reference.is_some_and(|node| std::ptr::eq(node, target.node)) || target.name == text
                })
            });
            values.extend(at.map(|at| (key.name.clone(), at)));
        }
        // Without a mapping, the name of the schema is the value (OpenAPI 3.1, section 4.8.25).
        for (at, target) in targets.iter().enumerate() {
            let Some(target) = target else { continue };
            let said = values.iter().any(|(value, known)| *known == at || value == target.name);
            if !said {
                values.push((target.name.to_owned(), at));
            }
        }
        // A discriminator without a value for one of the alternatives could not identify every object.
        let all = (0..list.len()).all(|at| values.iter().any(|(_, known)| *known == at));
        all.then(|| Discriminator { member: member.to_owned(), values })
    }

    /// Reads a schema without alternatives.
    fn plain(&mut self, layers: &[Layer<'n>], span: Span) -> Type {
        let values = common_values(layers, self.findings);
        let Some(words) = type_words(layers, values.as_ref(), self.findings) else {
            return Type::any(span);
        };
        let allows_null = words.contains(&"null");
        let asked = is_null_asked(layers);
        let null_listed = values.as_ref().is_none_or(|values| values.open || values.null);
        if let Some(values) = &values {
            values.check(&words, allows_null && !null_listed && !asked, asked, self.findings);
        }
        // In JSON Schema an enumeration must list null, too. `nullable` states the intent, so it suffices
        // alone.
        let nullable = (allows_null && null_listed) || asked;
        let mut kinds: Vec<TypeKind> = TYPE_WORDS
            .iter()
            .filter(|word| **word != "null" && words.contains(word))
            // `number` includes `integer`.
            .filter(|word| **word != "integer" || !words.contains(&"number"))
            .map(|word| self.kind(word, layers, values.as_ref(), span))
            .collect();
        let kind = match kinds.len() {
            0 => TypeKind::Null,
            1 => kinds.remove(0),
            _ => {
                TypeKind::OneOf(kinds.into_iter().map(|kind| Type { kind, nullable: false, span }).collect())
            }
        };
        Type { nullable: nullable || kind == TypeKind::Null, kind, span }
    }

    fn kind(
        &mut self,
        word: &str,
        layers: &[Layer<'n>],
        values: Option<&EnumValues>,
        span: Span,
    ) -> TypeKind {
        let unread = self.unread(word, layers);
        let scalar = |kind: ScalarKind, unread: Vec<Keyword>| {
            TypeKind::Scalar(Scalar {
                kind,
                values: values.and_then(|values| values.to_enum(kind)).map(Box::new),
                format: text_of(layers, "format")
                    .or_else(|| bytes_format(layers))
                    .map(String::into_boxed_str),
                limits: limits(layers, unread),
            })
        };
        match word {
            "boolean" => scalar(ScalarKind::Boolean, unread),
            "integer" => scalar(ScalarKind::Integer, unread),
            "number" => scalar(ScalarKind::Number, unread),
            "string" => scalar(ScalarKind::String, unread),
            "array" => TypeKind::Array(Array {
                items: Box::new(self.items(layers, span)),
                // The strictest bounds of all layers apply.
                min_items: wholes_of(layers, "minItems").max().unwrap_or(0),
                max_items: wholes_of(layers, "maxItems").min(),
                unique: is_true(layers, "uniqueItems"),
                unread: unread.into(),
            }),
            _ => TypeKind::Object(Object { unread: unread.into(), ..self.object(layers) }),
        }
    }

    fn items(&mut self, layers: &[Layer<'n>], span: Span) -> Type {
        let all: Vec<&'n Node> = layers.iter().filter_map(|layer| layer.node.get("items")).collect();
        let tuple = layers.iter().find_map(|layer| layer.node.get("prefixItems"));
        if let Some(tuple) = tuple.or_else(|| all.iter().copied().find(|items| items.as_seq().is_some())) {
            self.findings.add("tuple", tuple.span, || faults::tuple(tuple.span));
            return Type::any(tuple.span);
        }
        if all.is_empty() { Type::any(span) } else { self.all_of(&all) }
    }

    /// Reads the conjunction of one or more schemas.
    fn all_of(&mut self, nodes: &[&'n Node]) -> Type {
        match nodes {
            [only] => self.parse(only),
            several => self.conjunction(several, several[0].span),
        }
    }

    fn object(&mut self, layers: &[Layer<'n>]) -> Object {
        let mut order: Vec<(&'n Key, Vec<&'n Node>)> = Vec::new();
        let mut by_name: HashMap<&'n str, usize> = HashMap::new();
        for layer in layers {
            for (key, node) in layer.node.get("properties").and_then(Node::as_map).unwrap_or_default() {
                let at = *by_name.entry(&key.name).or_insert_with(|| {
                    order.push((key, Vec::new()));
                    order.len() - 1
                });
                // A property in several members of `allOf` must satisfy all of its schemas.
                order[at].1.push(node);
            }
        }
        let mut fields: Vec<Field> = Vec::with_capacity(order.len());
        for (key, nodes) in &order {
            fields.push(Field {
                name: key.name.clone(),
                ty: self.all_of(nodes),
                required: false,
                access: Access::from_nodes(nodes, self.follow),
                default: self.default_of(nodes),
                span: key.span,
            });
        }
        for node in layers.iter().filter_map(|layer| layer.node.get("required")) {
            for item in node.as_seq().unwrap_or_default() {
                let Some(name) = item.as_str() else { continue };
                if let Some(at) = by_name.get(name) {
                    fields[*at].required = true;
                // The fields after those of `order` are undeclared.
                } else if !fields[order.len()..].iter().any(|field| field.name == name) {
                    // Required but undeclared: a field of any type.
                    let ty = Type::any(item.span);
                    let name = name.to_owned();
                    let access = Access::Both;
                    fields.push(Field { name, ty, required: true, access, default: None, span: item.span });
                }
            }
        }
        fields.shrink_to_fit();
        Object { additional: self.additional(layers), fields, unread: Unread::default() }
    }

    fn additional(&mut self, layers: &[Layer<'n>]) -> Additional {
        let described = layers.iter().filter(|layer| layer.node.get("properties").is_some()).count();
        let mut of: Vec<&'n Node> = Vec::new();
        for layer in layers {
            // `unevaluatedProperties` considers the properties of all layers.
            if layer.node.get("unevaluatedProperties").is_some_and(|node| node.kind == Kind::Bool(false)) {
                return Additional::Closed;
            }
            let patterns = layer.node.get("patternProperties").and_then(Node::as_map).unwrap_or_default();
            // Without declared properties, a single pattern is the type of all members.
            if let [(_, only)] = patterns
                && described == 0
            {
                of.push(only);
                continue;
            }
            let Some(node) = layer.node.get("additionalProperties") else { continue };
            match node.kind {
                Kind::Bool(true) => {}
                // `additionalProperties: false` in one layer would forbid the properties of the
                // others, which authors do not intend.
                Kind::Bool(false) if described > 1 || !patterns.is_empty() => {}
                Kind::Bool(false) => return Additional::Closed,
                _ => of.push(node),
            }
        }
        if of.is_empty() {
            return Additional::Open;
        }
        let ty = self.all_of(&of);
        if ty.kind == TypeKind::Any { Additional::Open } else { Additional::Of(Box::new(ty)) }
    }
}

impl Access {
    /// Combines the access of all schemas of a property.
    fn from_nodes<'n>(nodes: &[&'n Node], follow: &Follow<'n>) -> Access {
        let says = |key: &str| {
            nodes.iter().any(|node| {
                // `readOnly` may be next to a `$ref`, or at its target.
                let through = || node.get("$ref").and_then(|_| follow.follow(node));
                let is = |node: &Node| node.get(key).is_some_and(|value| value.kind == Kind::Bool(true));
                is(node) || through().is_some_and(is)
            })
        };
        match (says("readOnly"), says("writeOnly")) {
            (true, false) => Access::ReadOnly,
            (false, true) => Access::WriteOnly,
            _ => Access::Both,
        }
    }
}

/// Returns whether `nullable` adds null to a conjunction. Next to a type, it adds null to that type alone,
/// and the other types of the conjunction have to allow null as well. Without a type, it is the authors'
/// notation for the whole conjunction.
fn is_null_asked(layers: &[Layer<'_>]) -> bool {
    let is_typed = |layer: &&Layer<'_>| layer.node.get("type").is_some();
    let mut asking = layers.iter().filter(|layer| says_nullable(layer.node)).peekable();
    let is_asked = asking.peek().is_some();
    is_asked
        && (!asking.all(|layer| is_typed(&layer))
            || layers.iter().filter(is_typed).all(|layer| allows_null(layer.node)))
}

/// Returns whether a schema with a type allows null.
fn allows_null(node: &Node) -> bool {
    let listed = node.get("type").and_then(Node::as_seq).unwrap_or_default();
    says_nullable(node) || listed.iter().any(|word| word.as_str() == Some("null"))
}

/// Returns the length of the schemas in bytes.
fn bytes_of(named: &[(Key, Node)]) -> usize {
    named.iter().map(|(_, node)| (node.span.end - node.span.start) as usize).sum()
}

fn text_of(layers: &[Layer<'_>], key: &str) -> Option<String> {
    layers.iter().find_map(|layer| layer.node.get(key)?.as_str()).map(str::to_owned)
}

/// Returns the binary format of a text with a media type but without an encoding (OpenAPI 3.1).
/// JSON and `text/*` are ordinary texts.
fn bytes_format(layers: &[Layer<'_>]) -> Option<String> {
    let named = text_of(layers, "contentMediaType")?;
    let is_text = super::normal::json_rank(&named).is_some() || named.starts_with("text/");
    (!is_text && text_of(layers, "contentEncoding").is_none()).then(|| Scalar::BYTES.to_owned())
}

/// Returns the numbers under a key of the layers.
fn numbers_of<'n>(layers: &[Layer<'n>], key: &str) -> impl Iterator<Item = &'n str> {
    layers.iter().filter_map(move |layer| number_of(layer, key))
}

fn number_of<'n>(layer: &Layer<'n>, key: &str) -> Option<&'n str> {
    match &layer.node.get(key)?.kind {
        Kind::Number(text) => Some(text.as_str()),
        _ => None,
    }
}

fn is_true(layers: &[Layer<'_>], key: &str) -> bool {
    layers.iter().any(|layer| layer.node.get(key).is_some_and(|value| value.kind == Kind::Bool(true)))
}

fn wholes_of(layers: &[Layer<'_>], key: &str) -> impl Iterator<Item = u64> {
    numbers_of(layers, key).filter_map(|text| text.parse().ok())
}

/// Returns the strictest bounds of all layers.
fn limits(layers: &[Layer<'_>], unread: Vec<Keyword>) -> Limits {
    // Before 3.1, `exclusiveMinimum` is a flag for the `minimum` of the same schema; since then it
    // is a number.
    let is_flagged = |layer: &Layer<'_>, key: &str| is_true(std::slice::from_ref(layer), key);
    let ends = |key: &str, flag: &str, greatest: bool| {
        let included = layers.iter().filter(|layer| !is_flagged(layer, flag));
        let flagged = layers.iter().filter(|layer| is_flagged(layer, flag));
        let flagged = flagged.filter_map(|layer| number_of(layer, key));
        [
            narrowest(included.filter_map(|layer| number_of(layer, key)), greatest),
            narrowest(flagged.chain(numbers_of(layers, flag)), greatest),
        ]
    };
    let [minimum, above] = ends("minimum", "exclusiveMinimum", true);
    let [maximum, below] = ends("maximum", "exclusiveMaximum", false);
    let mut patterns: Vec<String> = Vec::new();
    for pattern in layers.iter().filter_map(|layer| layer.node.get("pattern")?.as_str()) {
        if !patterns.iter().any(|known| known == pattern) {
            patterns.push(pattern.to_owned());
        }
    }
    Limits::from(ScalarLimits {
        minimum,
        maximum,
        above,
        below,
        multiples_of: numbers_of(layers, "multipleOf").map(str::to_owned).collect(),
        min_length: wholes_of(layers, "minLength").max(),
        max_length: wholes_of(layers, "maxLength").min(),
        patterns,
        unread,
    })
}

/// Returns the greatest or the smallest of several bounds.
fn narrowest<'n>(bounds: impl Iterator<Item = &'n str>, greatest: bool) -> Option<String> {
    let wanted = if greatest { Ordering::Greater } else { Ordering::Less };
    let narrower = |known: &'n str, one: &'n str| if order(one, known) == Some(wanted) { one } else { known };
    bounds.reduce(narrower).map(str::to_owned)
}
