//! The types of a contract, and their notation in messages.

use crate::diagnostic::Span;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use switchback_plan::Message;

/// A type of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Type {
    /// Kind of values other than null.
    pub kind: TypeKind,
    /// Whether null is allowed. Always set for [`TypeKind::Any`] and [`TypeKind::Null`]. The target
    /// of a reference may allow null too; use [`Types::resolve`].
    pub nullable: bool,
    /// Place of the schema in the document.
    pub span: Span,
}

/// The kind of values other than null.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeKind {
    /// Any JSON value: the contract does not declare a structure.
    Any,
    /// Only null.
    Null,
    /// A boolean, number or string.
    Scalar(Scalar),
    /// A list.
    Array(Array),
    /// An object.
    Object(Object),
    /// A named type.
    Named(Reference),
    /// One of several types of different JSON kinds; at least two.
    OneOf(Vec<Type>),
    /// One of several objects that a test distinguishes. Boxed, like the rare parts of scalars,
    /// because contracts stay in memory and most of their types are plain scalars.
    Choice(Box<Choice>),
}

/// Alternative objects.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The test that distinguishes them.
    pub test: Test,
    /// Each resolves to an object; at least two.
    pub alternatives: Vec<Type>,
}

/// The test that distinguishes alternatives.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// The value of a member. Each value has the index of its alternative.
    Constant {
        /// Name of the member.
        member: String,
        /// Each alternative has at least one value, and each value one alternative.
        values: Vec<(Literal, usize)>,
    },
    /// For each alternative, a required member that no other one declares. At most one alternative
    /// lacks such a member; it applies if no other does.
    OwnField(Vec<Option<String>>),
}

/// A boolean, number or string.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalar {
    /// Its kind.
    pub kind: ScalarKind,
    /// Allowed values, if enumerated.
    pub values: Option<Box<Enum>>,
    /// `format` as in the document.
    pub format: Option<Box<str>>,
    /// Bounds of the value.
    pub limits: Limits,
}

/// A kind of scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScalarKind {
    /// `true` or `false`.
    Boolean,
    /// A number without a fraction.
    Integer,
    /// Any number.
    Number,
    /// A string.
    String,
}

/// An enumeration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enum {
    /// The values, in document order, without null.
    pub values: Vec<Literal>,
    /// Whether other values are possible (`x-values-seen`).
    pub open: bool,
}

/// A scalar value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Literal {
    /// A boolean.
    Boolean(bool),
    /// A number in the document's notation.
    Number(String),
    /// A string.
    String(String),
}

/// Bounds of a scalar's value, as in the document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits(Option<Box<ScalarLimits>>);

/// The content of [`Limits`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScalarLimits {
    /// Inclusive minimum.
    pub minimum: Option<String>,
    /// Inclusive maximum.
    pub maximum: Option<String>,
    /// Exclusive minimum.
    pub above: Option<String>,
    /// Exclusive maximum.
    pub below: Option<String>,
    /// Numbers that the value is a multiple of.
    pub multiples_of: Vec<String>,
    /// Minimum length of a string, in characters.
    pub min_length: Option<u64>,
    /// Maximum length of a string, in characters.
    pub max_length: Option<u64>,
    /// Regular expressions; a string must contain a match of each.
    pub patterns: Vec<String>,
    /// Keywords that the other members do not represent.
    pub unread: Vec<Keyword>,
}

/// A keyword that a type does not represent. Comparisons use its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyword {
    /// Name.
    pub name: Box<str>,
    /// Value as canonical JSON: references inlined, members sorted by name.
    pub value: Box<str>,
}

/// Keywords that a type does not represent.
pub type Unread = Box<[Keyword]>;

impl From<ScalarLimits> for Limits {
    fn from(bounds: ScalarLimits) -> Limits {
        Limits((bounds != ScalarLimits::default()).then(|| Box::new(bounds)))
    }
}

impl std::ops::Deref for Limits {
    type Target = ScalarLimits;

    fn deref(&self) -> &ScalarLimits {
        // Static, so that absent bounds need no allocation.
        static NONE: ScalarLimits = ScalarLimits {
            minimum: None,
            maximum: None,
            above: None,
            below: None,
            multiples_of: Vec::new(),
            min_length: None,
            max_length: None,
            patterns: Vec::new(),
            unread: Vec::new(),
        };
        self.0.as_deref().unwrap_or(&NONE)
    }
}

/// A list.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Type of every item.
    pub items: Box<Type>,
    /// Minimum number of items.
    pub min_items: u64,
    /// Maximum number of items.
    pub max_items: Option<u64>,
    /// Whether the items must be distinct.
    pub unique: bool,
    /// Keywords that the other members do not represent.
    pub unread: Box<[Keyword]>,
}

/// An object.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Declared fields, in document order.
    pub fields: Vec<Field>,
    /// Undeclared fields.
    pub additional: Additional,
    /// Keywords that the other members do not represent.
    pub unread: Box<[Keyword]>,
}

/// A declared field of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: Type,
    /// Whether it is required.
    pub required: bool,
    /// Messages that may contain it.
    pub access: Access,
    /// The service's default, as JSON.
    pub default: Option<Box<str>>,
    /// Place of the name in the document.
    pub span: Span,
}

/// The messages that may contain a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Requests and responses.
    #[default]
    Both,
    /// Only responses; a request may omit the field even if it is required.
    ReadOnly,
    /// Only requests.
    WriteOnly,
}

impl Access {
    /// Returns whether a message may contain the field.
    pub fn is_in(self, message: Message) -> bool {
        match self {
            Access::Both => true,
            Access::ReadOnly => message == Message::Answer,
            Access::WriteOnly => message == Message::Request,
        }
    }
}

/// The undeclared fields of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Additional {
    /// Forbidden.
    Closed,
    /// Allowed with any value.
    Open,
    /// Allowed with values of this type.
    Of(Box<Type>),
}

/// A reference to a named type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Index in [`Types`].
    pub id: TypeId,
    /// Name, for messages.
    pub name: Arc<str>,
}

/// Index of a named type in its [`Types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(super) u32);

impl TypeId {
    /// Returns its position in [`Types::iter`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The named types of a contract.
#[derive(Debug, Clone, Default)]
pub struct Types {
    all: Vec<NamedType>,
    by_name: HashMap<String, TypeId>,
    overlapping: Overlapping,
}

/// Alternatives that no test distinguishes, by the place of their schema; `None` if several types have
/// that place. Such a schema is any value, and only comparisons consider its alternatives.
pub(super) type Overlapping = HashMap<Span, Option<Type>>;

/// A type with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedType {
    /// Name.
    pub name: Arc<str>,
    /// Type.
    pub ty: Type,
    /// Place of the name in the document.
    pub span: Span,
}

/// A type after following all references.
#[derive(Debug, Clone, Copy)]
pub struct Resolved<'a> {
    /// Never a [`TypeKind::Named`].
    pub kind: &'a TypeKind,
    /// Whether the type or a reference on the path to it allows null.
    pub nullable: bool,
    /// Place of the type.
    pub span: Span,
}

/// A type with the named types that it may refer to.
#[derive(Debug, Clone, Copy)]
pub struct TypeIn<'a> {
    /// The types of its contract.
    pub types: &'a Types,
    /// The type.
    pub ty: &'a Type,
}

impl<'a> TypeIn<'a> {
    /// Returns the kind of the type after following all references.
    pub fn kind(self) -> &'a TypeKind {
        self.types.resolve(self.ty).kind
    }

    /// Returns whether null is allowed, by the type or by a reference or alternative.
    pub fn is_nullable(self) -> bool {
        self.types.resolve(self.ty).nullable
    }

    /// Returns the object that the type is.
    pub fn object(self) -> Option<&'a Object> {
        match self.kind() {
            TypeKind::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the element type of a list.
    pub fn items(self) -> Option<TypeIn<'a>> {
        match self.kind() {
            TypeKind::Array(array) => Some(self.types.at(&array.items)),
            _ => None,
        }
    }
}

/// Kinds of JSON values that differ in their first character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JsonKind {
    /// `true` or `false`.
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
    /// A list.
    Array,
    /// An object.
    Object,
}

impl Types {
    /// Returns the type with this name.
    pub fn get(&self, name: &str) -> Option<&NamedType> {
        self.by_name.get(name).map(|id| self.by_id(*id))
    }

    /// Returns the type with this id, which must belong to these types.
    pub fn by_id(&self, id: TypeId) -> &NamedType {
        &self.all[id.0 as usize]
    }

    /// Removes a field from a type, or from the named type that it refers to.
    pub(super) fn take_field(&mut self, ty: &mut Type, name: &str) {
        let mut id = None;
        let mut kind = &ty.kind;
        // The field belongs to the type at the end of the references. Removing it from a copy would leave
        // the named type unchanged.
        while let TypeKind::Named(reference) = kind {
            id = Some(reference.id);
            kind = &self.by_id(reference.id).ty.kind;
        }
        let ty = match id {
            Some(id) => &mut self.all[id.0 as usize].ty,
            None => ty,
        };
        if let TypeKind::Object(object) = &mut ty.kind {
            object.fields.retain(|field| field.name != name);
        }
    }

    /// Returns the id of a name.
    pub fn id(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// Returns all types, in document order.
    pub fn iter(&self) -> impl Iterator<Item = &NamedType> {
        self.all.iter()
    }

    /// Follows references to the final type. It exists, because the reader breaks cycles.
    pub fn resolve<'a>(&'a self, ty: &'a Type) -> Resolved<'a> {
        let mut resolved = self.follow(ty);
        // An alternative may allow null by itself.
        if let TypeKind::OneOf(alternatives) = resolved.kind {
            resolved.nullable = resolved.nullable || self.any_nullable(alternatives);
        }
        resolved
    }

    /// Like [`Types::resolve`], but ignores null in alternatives.
    pub(super) fn follow<'a>(&'a self, ty: &'a Type) -> Resolved<'a> {
        let (mut ty, mut nullable) = (ty, ty.nullable);
        while let TypeKind::Named(reference) = &ty.kind {
            ty = &self.by_id(reference.id).ty;
            nullable |= ty.nullable;
        }
        Resolved { kind: &ty.kind, nullable, span: ty.span }
    }

    /// Returns whether one of the alternatives, or of their alternatives, allows null. Alternatives
    /// may be shared at many levels, so each is visited once.
    fn any_nullable(&self, alternatives: &[Type]) -> bool {
        let mut seen = HashSet::new();
        let mut open: Vec<&Type> = alternatives.iter().collect();
        // A worklist with visited sets: alternatives can refer to each other, and recursion would not end.
        while let Some(ty) = open.pop() {
            if ty.nullable {
                return true;
            }
            match &ty.kind {
                TypeKind::Named(reference) => open.push(&self.by_id(reference.id).ty),
                TypeKind::OneOf(inner) if seen.insert(inner.as_ptr()) => open.extend(inner),
                _ => {}
            }
        }
        false
    }

    /// Returns the type together with these types.
    pub fn at<'a>(&'a self, ty: &'a Type) -> TypeIn<'a> {
        TypeIn { types: self, ty }
    }

    /// Returns the kinds of JSON values of a type except null; all kinds for [`TypeKind::Any`].
    pub fn json_kinds(&self, ty: &Type) -> Vec<JsonKind> {
        let mut kinds: Vec<JsonKind> = Vec::new();
        // Visit shared alternatives once, as in `any_nullable`.
        let mut seen = HashSet::new();
        let mut open = vec![ty];
        while let Some(ty) = open.pop() {
            let found: &[JsonKind] = match self.follow(ty).kind {
                TypeKind::Any => &JsonKind::ALL,
                TypeKind::Null | TypeKind::Named(_) => &[],
                TypeKind::Scalar(scalar) => &[scalar.kind.json()],
                TypeKind::Array(_) => &[JsonKind::Array],
                TypeKind::Object(_) | TypeKind::Choice(_) => &[JsonKind::Object],
                TypeKind::OneOf(alternatives) => {
                    if seen.insert(alternatives.as_ptr()) {
                        open.extend(alternatives.iter().rev());
                    }
                    &[]
                }
            };
            for kind in found {
                if !kinds.contains(kind) {
                    kinds.push(*kind);
                }
            }
        }
        kinds
    }

    /// Returns the alternatives of a type that is any value because no test distinguishes them.
    pub(super) fn overlapping(&self, any: Resolved<'_>) -> Option<&Type> {
        self.overlapping.get(&any.span)?.as_ref().filter(|_| *any.kind == TypeKind::Any)
    }

    pub(super) fn set_overlapping(&mut self, all: Overlapping) {
        self.overlapping = all;
    }

    pub(super) fn add(&mut self, named: NamedType) {
        self.by_name.insert(named.name.to_string(), TypeId(self.all.len() as u32));
        self.all.push(named);
    }

    pub(super) fn replace(&mut self, id: TypeId, ty: Type) {
        self.all[id.0 as usize].ty = ty;
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = TypeId> + use<> {
        (0..self.all.len() as u32).map(TypeId)
    }
}

impl Default for Type {
    fn default() -> Type {
        Type::any(Span::default())
    }
}

impl Type {
    /// Returns the type of any value.
    pub fn any(span: Span) -> Type {
        Type { kind: TypeKind::Any, nullable: true, span }
    }

    /// Returns whether its notation contains `or`.
    fn is_several_words(&self) -> bool {
        match self.kind {
            TypeKind::Any | TypeKind::Null => false,
            TypeKind::OneOf(_) | TypeKind::Choice(_) => true,
            _ => self.nullable,
        }
    }
}

impl TypeKind {
    /// Returns the alternatives; empty if it is not a choice.
    pub fn alternatives(&self) -> &[Type] {
        match self {
            TypeKind::OneOf(alternatives) => alternatives,
            TypeKind::Choice(choice) => &choice.alternatives,
            _ => &[],
        }
    }
}

impl Field {
    /// Turns the field into a text of opaque bytes.
    pub(super) fn be_file(&mut self) {
        let format = Some(Scalar::BYTES.into());
        let scalar = Scalar { kind: ScalarKind::String, values: None, format, limits: Limits::default() };
        self.ty = Type { kind: TypeKind::Scalar(scalar), nullable: false, span: self.ty.span };
    }
}

impl Scalar {
    /// The format of binary texts.
    pub const BYTES: &'static str = "binary";
}

impl Choice {
    /// Returns the index of the alternative that an object matches. `value` returns the scalar of a
    /// member; `has` returns whether a member is present and not null.
    pub fn pick(&self, value: impl Fn(&str) -> Option<Literal>, has: impl Fn(&str) -> bool) -> Option<usize> {
        match &self.test {
            Test::Constant { member, values } => {
                let found = value(member)?;
                values.iter().find(|(known, _)| *known == found).map(|(_, at)| *at)
            }
            // The alternative without a field of its own is the fallback, so it is examined after all
            // others.
            Test::OwnField(fields) => fields
                .iter()
                .position(|field| field.as_deref().is_some_and(&has))
                .or_else(|| fields.iter().position(Option::is_none)),
        }
    }
}

impl Object {
    /// Returns the declared field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl JsonKind {
    /// All kinds.
    pub const ALL: [JsonKind; 5] =
        [JsonKind::Boolean, JsonKind::Number, JsonKind::String, JsonKind::Array, JsonKind::Object];

    /// Returns the name of the kind.
    pub fn word(self) -> &'static str {
        match self {
            JsonKind::Boolean => "boolean",
            JsonKind::Number => "number",
            JsonKind::String => "string",
            JsonKind::Array => "list",
            JsonKind::Object => "object",
        }
    }
}

impl ScalarKind {
    /// Returns the JSON kind.
    pub fn json(self) -> JsonKind {
        match self {
            ScalarKind::Boolean => JsonKind::Boolean,
            ScalarKind::Integer | ScalarKind::Number => JsonKind::Number,
            ScalarKind::String => JsonKind::String,
        }
    }

    /// Returns the name in `type`.
    pub fn word(self) -> &'static str {
        match self {
            ScalarKind::Boolean => "boolean",
            ScalarKind::Integer => "integer",
            ScalarKind::Number => "number",
            ScalarKind::String => "string",
        }
    }
}

/// Maximum number of values or alternatives in a message.
const VALUES_SHOWN: usize = 6;

/// Formats a type, such as `string or null`, `list of Thing`, `enum(small, large, …)`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        match self.kind {
            TypeKind::Any | TypeKind::Null => Ok(()),
            _ if self.nullable => f.write_str(" or null"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for TypeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeKind::Any => f.write_str("any"),
            TypeKind::Null => f.write_str("null"),
            TypeKind::Scalar(Scalar { values: Some(values), .. }) => write!(f, "{values}"),
            TypeKind::Scalar(scalar) => f.write_str(scalar.kind.word()),
            // Parentheses avoid the ambiguity of `list of a or null`.
            TypeKind::Array(array) => match array.items.is_several_words() {
                true => write!(f, "list of ({})", array.items),
                false => write!(f, "list of {}", array.items),
            },
            TypeKind::Object(_) => f.write_str("object"),
            TypeKind::Named(reference) => f.write_str(&reference.name),
            TypeKind::OneOf(_) | TypeKind::Choice(_) => {
                let alternatives = self.alternatives();
                for (i, alternative) in alternatives.iter().take(VALUES_SHOWN).enumerate() {
                    let or = if i == 0 { "" } else { " or " };
                    write!(f, "{or}{alternative}")?;
                }
                if alternatives.len() > VALUES_SHOWN { f.write_str(" or …") } else { Ok(()) }
            }
        }
    }
}

impl fmt::Display for Enum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown: Vec<String> = self.values.iter().take(VALUES_SHOWN).map(ToString::to_string).collect();
        if self.open || self.values.len() > VALUES_SHOWN {
            shown.push("…".to_owned());
        }
        write!(f, "enum({})", shown.join(", "))
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Boolean(value) => write!(f, "{value}"),
            Literal::Number(text) | Literal::String(text) => f.write_str(text),
        }
    }
}
