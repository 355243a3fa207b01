//! The layout of XML bodies: a contract's types with their `xml` objects (OpenAPI 3.0, section
//! 4.7.26; Swagger 2.0, XML object), and `nodeType` of OpenAPI 3.2. A text next to attributes has
//! `nodeType: text`, or `x-text: true` in older documents.
//!
//! Constructs that XML cannot represent are collected as [`XmlProblem`]s. They are reported only
//! where a mapping translates the body: bodies that pass unchanged have no need of a layout.

use super::types::{Additional, Array, Field, Object, ScalarKind, Type, TypeId, TypeKind, Types};
use crate::diagnostic::{Code, Finding, Span};
use crate::yaml::{Kind, Node};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use switchback_plan::{
    Key, XmlFormat, XmlKind, XmlMember, XmlName, XmlPlace, XmlScalar, XmlType, essence, is_xml_name,
};

/// The `xml` objects of a document, by the place of their schema.
pub(super) type XmlObjects = HashMap<Span, XmlObject>;

/// An `xml` object. Absent keys are `None`.
#[derive(Debug, Clone, Default)]
pub(super) struct XmlObject {
    name: Option<String>,
    namespace: Option<String>,
    prefix: Option<String>,
    attribute: Option<bool>,
    wrapped: Option<bool>,
    text: Option<bool>,
}

impl XmlObject {
    /// Reads an `xml` object.
    pub(super) fn parse(node: &Node) -> XmlObject {
        let text = |key: &str| node.get(key).and_then(Node::as_str).map(str::to_owned);
        let flag = |key: &str| node.get(key).map(|value| value.kind == Kind::Bool(true));
        let kind = text("nodeType");
        let is_kind = |word: &str| kind.as_deref().map(|kind| kind == word);
        XmlObject {
            name: text("name"),
            namespace: text("namespace"),
            prefix: text("prefix"),
            attribute: flag("attribute").or_else(|| is_kind("attribute")),
            wrapped: flag("wrapped").or_else(|| is_kind("element")),
            text: flag("x-text")
                .or_else(|| is_kind("text").map(|is_text| is_text || kind.as_deref() == Some("cdata"))),
        }
    }

    /// Fills absent keys from the object of a referenced schema.
    fn or(self, other: &XmlObject) -> XmlObject {
        XmlObject {
            name: self.name.or_else(|| other.name.clone()),
            namespace: self.namespace.or_else(|| other.namespace.clone()),
            prefix: self.prefix.or_else(|| other.prefix.clone()),
            attribute: self.attribute.or(other.attribute),
            wrapped: self.wrapped.or(other.wrapped),
            text: self.text.or(other.text),
        }
    }
}

/// A body in XML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XmlBody {
    /// Media type without parameters.
    pub media: Arc<str>,
    /// The layout.
    pub format: Arc<XmlFormat>,
    /// Constructs of the type that XML cannot represent.
    pub problems: Vec<XmlProblem>,
}

/// A construct that XML cannot represent, or not distinctly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XmlProblem {
    /// Place in the contract.
    pub span: Span,
    text: String,
    help: &'static str,
    is_error: bool,
}

impl XmlProblem {
    /// Returns the finding.
    pub fn finding(&self) -> Finding {
        let finding = match self.is_error {
            true => Finding::error(Code::XmlForm, self.span, self.text.clone()),
            false => Finding::warning(Code::XmlForm, self.span, self.text.clone()),
        };
        finding.help(self.help)
    }
}

impl XmlBody {
    /// Creates a body whose layout is not known yet.
    pub(super) fn unread(media: &str) -> XmlBody {
        let media: Arc<str> = essence(media).into();
        // A text without a charset may be taken for ASCII (RFC 2046, section 4.1.2).
        let is_text = media.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("text/"));
        let content_type =
            if is_text { format!("{media}; charset=utf-8").into() } else { Arc::clone(&media) };
        let root = XmlName { local: "".into(), namespace: None, prefix: None };
        let format = XmlFormat { content_type, root, of: 0, types: Vec::new() };
        XmlBody { media, format: Arc::new(format), problems: Vec::new() }
    }

    /// Lays out the body's type, which must be final.
    pub(super) fn lay_out(&mut self, ty: &Type, types: &Types, objects: &XmlObjects, span: Span) {
        let mut layout =
            Layout { types, objects, laid: Vec::new(), named: HashMap::new(), problems: Vec::new() };
        let xml = layout.object_of(ty);
        let named = match &ty.kind {
            TypeKind::Named(reference) => Some(reference.name.to_string()),
            _ => None,
        };
        let root = match xml.name.clone().or(named) {
            Some(name) => layout.name(&name, &xml, ty.span),
            None => {
                layout.problem(
                    true,
                    span,
                    "the root element of this body has no name".to_owned(),
                    "write `xml: {name: …}` at its schema, or give the schema a name of its own in the document",
                );
                layout.name("root", &xml, ty.span)
            }
        };
        let of = layout.ty(ty, &root);
        self.problems = layout.problems;
        let content_type = Arc::clone(&self.format.content_type);
        self.format = Arc::new(XmlFormat { content_type, root, of, types: layout.laid });
    }
}

struct Layout<'t> {
    types: &'t Types,
    objects: &'t XmlObjects,
    laid: Vec<XmlType>,
    /// Named types are laid out once; the item name of a list depends on its member.
    named: HashMap<(TypeId, bool, Option<String>), usize>,
    problems: Vec<XmlProblem>,
}

impl<'t> Layout<'t> {
    fn problem(&mut self, is_error: bool, span: Span, text: String, help: &'static str) {
        let problem = XmlProblem { span, text, help, is_error };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Returns the `xml` object of a type, completed by those of its references.
    fn object_of(&self, mut ty: &'t Type) -> XmlObject {
        let of = |ty: &Type| self.objects.get(&ty.span).cloned().unwrap_or_default();
        let mut object = of(ty);
        while let TypeKind::Named(reference) = &ty.kind {
            ty = &self.types.by_id(reference.id).ty;
            object = object.or(&of(ty));
        }
        object
    }

    fn name(&mut self, local: &str, xml: &XmlObject, span: Span) -> XmlName {
        if !is_xml_name(local) {
            self.problem(
                true,
                span,
                format!("`{local}` is no name of an element or attribute"),
                "write the name that XML has for it, `xml: {name: …}`",
            );
        }
        if let Some(prefix) = &xml.prefix
            && (!is_xml_name(prefix)
                || prefix.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("xml")))
        {
            self.problem(
                true,
                span,
                format!("`{prefix}` is no prefix of a name"),
                "write a name that does not begin with `xml`, such as `prefix: p`",
            );
        }
        if let (Some(prefix), None) = (&xml.prefix, &xml.namespace) {
            self.problem(
                false,
                span,
                format!("the prefix `{prefix}` has no namespace"),
                "write `namespace:` next to `prefix:`; otherwise the prefix is written only in an element that declares it",
            );
        }
        XmlName {
            local: local.into(),
            namespace: xml.namespace.as_deref().map(Into::into),
            prefix: xml.prefix.as_deref().map(Into::into),
        }
    }

    fn add(&mut self, kind: XmlKind, nullable: bool) -> usize {
        self.laid.push(XmlType { kind, nullable });
        self.laid.len() - 1
    }

    /// Returns the index of a type's layout. `outer` is the name of its element, the default for
    /// the items of a list.
    fn ty(&mut self, ty: &'t Type, outer: &XmlName) -> usize {
        let resolved = self.types.resolve(ty);
        let is_list = matches!(resolved.kind, TypeKind::Array(_));
        let key = match &ty.kind {
            TypeKind::Named(reference) => {
                Some((reference.id, resolved.nullable, is_list.then(|| outer.local.to_string())))
            }
            _ => None,
        };
        if let Some(known) = key.as_ref().and_then(|key| self.named.get(key)) {
            return *known;
        }
        // Reserved first, so that a recursive reference finds it.
        let at = self.add(XmlKind::Any, resolved.nullable);
        if let Some(key) = key {
            self.named.insert(key, at);
        }
        let kind = match resolved.kind {
            TypeKind::Null => XmlKind::Scalar(XmlScalar::default()),
            TypeKind::Scalar(scalar) => XmlKind::Scalar(scalar_of(&[scalar.kind])),
            TypeKind::Array(array) => {
                let item = self.item_name(array, &outer.local);
                let of = self.ty(&array.items, &item);
                XmlKind::List { item, of }
            }
            TypeKind::Object(object) => self.members(&[object], resolved.span),
            TypeKind::Choice(choice) => {
                let objects = choice.alternatives.iter().filter_map(|one| self.types.at(one).object());
                let objects: Vec<&Object> = objects.collect();
                self.members(&objects, resolved.span)
            }
            TypeKind::OneOf(alternatives) => self.one_of(alternatives, resolved.span),
            TypeKind::Any | TypeKind::Named(_) => {
                let text = match self.types.overlapping(resolved) {
                    Some(_) => {
                        "alternatives that no member tells apart: XML in it is read as texts and elements"
                    }
                    None => "a value of any type: numbers and booleans in it are texts in XML",
                };
                self.problem(
                    false,
                    resolved.span,
                    text.to_owned(),
                    "give it a type; alternatives need a member with another constant in each of them",
                );
                XmlKind::Any
            }
        };
        self.laid[at].kind = kind;
        at
    }

    fn one_of(&mut self, alternatives: &'t [Type], span: Span) -> XmlKind {
        let kinds = alternatives.iter().map(|one| match self.types.resolve(one).kind {
            TypeKind::Scalar(scalar) => Some(scalar.kind),
            _ => None,
        });
        match kinds.collect::<Option<Vec<ScalarKind>>>() {
            Some(kinds) => {
                if kinds.contains(&ScalarKind::String) {
                    self.problem(
                        false,
                        span,
                        "a text that looks like a number or boolean is read as one".to_owned(),
                        "give the value one type, if the service always means the same",
                    );
                }
                XmlKind::Scalar(scalar_of(&kinds))
            }
            None => {
                self.problem(
                    false,
                    span,
                    "alternatives that XML does not tell apart: it is read as texts and elements".to_owned(),
                    "give the value one type, or a member for each of the alternatives",
                );
                XmlKind::Any
            }
        }
    }

    /// Returns the name of the items of a list.
    fn item_name(&mut self, array: &'t Array, outer: &str) -> XmlName {
        let xml = self.object_of(&array.items);
        let local = xml.name.clone().unwrap_or_else(|| outer.to_owned());
        self.name(&local, &xml, array.items.span)
    }

    /// Lays out the members of an object, or of all objects that a value may be.
    fn members(&mut self, objects: &[&'t Object], span: Span) -> XmlKind {
        let mut members: Vec<XmlMember> = Vec::new();
        let mut known: Vec<&'t Field> = Vec::new();
        for field in objects.iter().flat_map(|object| &object.fields) {
            match known.iter().find(|one| one.name == field.name) {
                None => known.push(field),
                Some(first) if first.ty.kind == field.ty.kind || both_texts(self.types, first, field) => {}
                Some(_) => self.problem(
                    false,
                    field.span,
                    format!(
                        "`{}` has another type in another alternative: the first one is read",
                        field.name
                    ),
                    "give the member the same type in all alternatives",
                ),
            }
        }
        for field in known {
            let is_required =
                objects.iter().all(|object| object.field(&field.name).is_some_and(|one| one.required));
            let member = self.member(field, is_required);
            members.push(member);
        }
        self.names_twice(&members, span);
        let mut others = None;
        for object in objects {
            if let Additional::Of(ty) = &object.additional {
                self.problem(
                    false,
                    ty.span,
                    "a map of arbitrary names: a name that XML does not allow is left out".to_owned(),
                    "declare its members, or describe it as a list of entries with a name and a value",
                );
                let name = XmlName { local: "entry".into(), namespace: None, prefix: None };
                others = Some(self.ty(ty, &name));
            }
        }
        XmlKind::Object { members, others }
    }

    fn member(&mut self, field: &'t Field, required: bool) -> XmlMember {
        let mut xml = self.object_of(&field.ty);
        let key = Key::new(&field.name);
        let is_text = xml.text == Some(true);
        let is_attribute = xml.attribute == Some(true);
        let kind = self.types.resolve(&field.ty).kind;
        let is_scalar = match kind {
            TypeKind::Scalar(_) => true,
            TypeKind::OneOf(all) => {
                all.iter().all(|one| matches!(self.types.resolve(one).kind, TypeKind::Scalar(_)))
            }
            _ => false,
        };
        if (is_text || is_attribute) && !is_scalar {
            self.problem(
                true,
                field.span,
                format!("`{}` is an attribute or text of its element, and no scalar", field.name),
                "an attribute holds one text: describe the member as an element",
            );
        }
        if is_attribute && xml.namespace.is_some() && xml.prefix.is_none() {
            self.problem(
                true,
                field.span,
                format!("the attribute `{}` has a namespace and no prefix", field.name),
                "write the prefix, `xml: {prefix: …}`: an attribute without one is in no namespace",
            );
        }
        match kind {
            TypeKind::Array(array) if xml.wrapped != Some(true) => {
                let item = self.item_name(array, &field.name);
                let of = self.ty(&array.items, &item);
                XmlMember { key, place: XmlPlace::Repeated(item), of, required }
            }
            _ => {
                let local = xml.name.take().unwrap_or_else(|| field.name.clone());
                let name = match is_text {
                    true => XmlName { local: "".into(), namespace: None, prefix: None },
                    false => self.name(&local, &xml, field.span),
                };
                let of = self.ty(&field.ty, &name);
                let place = match (is_text, is_attribute) {
                    (true, _) => XmlPlace::Text,
                    (false, true) => XmlPlace::Attribute(name),
                    (false, false) => XmlPlace::Element(name),
                };
                XmlMember { key, place, of, required }
            }
        }
    }

    fn names_twice(&mut self, members: &[XmlMember], span: Span) {
        let mut known = HashSet::new();
        for member in members {
            let name = match &member.place {
                XmlPlace::Element(name) | XmlPlace::Repeated(name) => (false, name),
                XmlPlace::Attribute(name) => (true, name),
                XmlPlace::Text => continue,
            };
            if !known.insert((name.0, &name.1.local, &name.1.namespace)) {
                self.problem(
                    true,
                    span,
                    format!("two members of this object are `{}` in XML", name.1.local),
                    "give one of them another name, `xml: {name: …}`",
                );
            }
        }
    }
}

fn both_texts(types: &Types, one: &Field, other: &Field) -> bool {
    let kind = |field: &Field| match types.resolve(&field.ty).kind {
        TypeKind::Scalar(scalar) => Some(scalar.kind),
        _ => None,
    };
    kind(one).is_some() && kind(one) == kind(other)
}

fn scalar_of(kinds: &[ScalarKind]) -> XmlScalar {
    XmlScalar {
        string: kinds.contains(&ScalarKind::String),
        boolean: kinds.contains(&ScalarKind::Boolean),
        integer: kinds.contains(&ScalarKind::Integer),
        number: kinds.contains(&ScalarKind::Number),
    }
}
