//! Types of a contract, and how they are written in messages.

use crate::diagnostic::Span;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use switchback_plan::Message;

/// What a value may be.
#[derive(Debug, Clone, PartialEq)]
pub struct Type {
    /// Its kind, null aside.
    pub kind: TypeKind,
    /// Whether it may also be null. Always set for [`TypeKind::Any`] and [`TypeKind::Null`]. A reference may
    /// add null by what it leads to: ask [`Types::resolve`].
    pub nullable: bool,
    /// The schema in the document.
    pub span: Span,
}

/// What a value may be, null aside.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeKind {
    /// Any JSON value: the shape is not shown.
    Any,
    /// Nothing but null.
    Null,
    /// A boolean, number or string.
    Scalar(Scalar),
    /// A list.
    Array(Array),
    /// An object.
    Object(Object),
    /// A named type.
    Named(Reference),
    /// One of several types that differ by JSON kind; at least two.
    OneOf(Vec<Type>),
    /// One of several objects that a test tells apart. In a box, as is what few scalars have: contracts stay as long as
    /// the gateway runs, and most of their types are plain scalars.
    Choice(Box<Choice>),
}

/// Objects that are told apart by what is in them.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// How.
    pub test: Test,
    /// Each resolves to an object; at least two.
    pub alternatives: Vec<Type>,
}

/// What tells alternatives apart.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// The value of a member; each value with the index of its alternative.
    Constant {
        /// Its name.
        member: String,
        /// At least one for every alternative, none for two.
        values: Vec<(Literal, usize)>,
    },
    /// By alternative: a required member that no other one has. At most one is without, and is meant when none of the
    /// others is.
    OwnField(Vec<Option<String>>),
}

/// A boolean, number or string.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalar {
    /// Which of them.
    pub kind: ScalarKind,
    /// The values it takes, if they are listed.
    pub values: Option<Box<Enum>>,
    /// `format` as written.
    pub format: Option<Box<str>>,
    /// Bounds of its value.
    pub limits: Limits,
}

/// Kinds of scalars.
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

/// Listed values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enum {
    /// The values, in the order of the document, null left out.
    pub values: Vec<Literal>,
    /// Whether values outside the list may come (`x-values-seen`).
    pub open: bool,
}

/// A scalar value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Literal {
    /// A boolean.
    Boolean(bool),
    /// A number as it was written.
    Number(String),
    /// A string.
    String(String),
}

/// Bounds of a scalar's value, as written in the document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits(Option<Box<Bounds>>);

/// What [`Limits`] are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Least number.
    pub minimum: Option<String>,
    /// Greatest number.
    pub maximum: Option<String>,
    /// A number that all values are above.
    pub above: Option<String>,
    /// A number that all values are below.
    pub below: Option<String>,
    /// Numbers that all values are multiples of.
    pub multiples_of: Vec<String>,
    /// Least length of a string, in characters.
    pub min_length: Option<u64>,
    /// Greatest length of a string, in characters.
    pub max_length: Option<u64>,
    /// Regular expressions that a string matches somewhere, all of them.
    pub patterns: Vec<String>,
    /// Keywords that constrain the value in ways that the other members do not show.
    pub unread: Vec<Keyword>,
}

/// A keyword that a type does not show. Comparisons look at its text only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyword {
    /// Its name.
    pub name: Box<str>,
    /// Its value as JSON, references written out, members in the order of their names.
    pub value: Box<str>,
}

/// Keywords that a type does not show. In a box, since hardly any type has some.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unread(Option<Box<Keywords>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Keywords {
    all: Vec<Keyword>,
}

impl From<Vec<Keyword>> for Unread {
    fn from(all: Vec<Keyword>) -> Unread {
        Unread((!all.is_empty()).then(|| Box::new(Keywords { all })))
    }
}

impl std::ops::Deref for Unread {
    type Target = [Keyword];

    fn deref(&self) -> &[Keyword] {
        self.0.as_ref().map_or(&[], |keywords| &keywords.all)
    }
}

impl From<Bounds> for Limits {
    fn from(bounds: Bounds) -> Limits {
        Limits((bounds != Bounds::default()).then(|| Box::new(bounds)))
    }
}

impl std::ops::Deref for Limits {
    type Target = Bounds;

    fn deref(&self) -> &Bounds {
        static NONE: Bounds = Bounds {
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
    /// Least number of items.
    pub min_items: u64,
    /// Greatest number of items.
    pub max_items: Option<u64>,
    /// Whether no two items are equal.
    pub unique: bool,
    /// Keywords that constrain the list in ways that the other members do not show.
    pub unread: Unread,
}

/// An object.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Declared fields, in the order of the document.
    pub fields: Vec<Field>,
    /// What else may be in it.
    pub additional: Additional,
    /// Keywords that constrain the object in ways that the other members do not show.
    pub unread: Unread,
}

/// A declared field of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Whether it is always there.
    pub required: bool,
    /// In which messages it may be.
    pub access: Access,
    /// What a service takes where it is left out, as JSON.
    pub default: Option<Box<str>>,
    /// The name in the document.
    pub span: Span,
}

/// In which messages a field may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// In requests and answers.
    #[default]
    Both,
    /// In answers only: a request need not have it, though it be required.
    ReadOnly,
    /// In requests only.
    WriteOnly,
}

impl Access {
    /// Whether a message may have the field.
    pub fn is_in(self, message: Message) -> bool {
        match self {
            Access::Both => true,
            Access::ReadOnly => message == Message::Answer,
            Access::WriteOnly => message == Message::Request,
        }
    }
}

/// Fields of an object beside the declared ones.
#[derive(Debug, Clone, PartialEq)]
pub enum Additional {
    /// None.
    Closed,
    /// Any.
    Open,
    /// Any name, values of this type.
    Of(Box<Type>),
}

/// The use of a named type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Which type of [`Types`].
    pub id: TypeId,
    /// Its name, for messages.
    pub name: Arc<str>,
}

/// Index of a named type in its [`Types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(super) u32);

impl TypeId {
    /// Its place in [`Types::iter`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The named types of a contract.
#[derive(Debug, Clone, Default)]
pub struct Types {
    all: Vec<NamedType>,
    by_name: HashMap<String, TypeId>,
}

/// A type and its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedType {
    /// The name.
    pub name: Arc<str>,
    /// The type.
    pub ty: Type,
    /// The name in the document.
    pub span: Span,
}

/// A type after all references are followed.
#[derive(Debug, Clone, Copy)]
pub struct Resolved<'a> {
    /// Never a [`TypeKind::Named`].
    pub kind: &'a TypeKind,
    /// Whether null is possible, by the type itself or on the way to it.
    pub nullable: bool,
    /// Where the type is written.
    pub span: Span,
}

/// A type together with the named types that it may refer to.
#[derive(Debug, Clone, Copy)]
pub struct TypeIn<'a> {
    /// The types of its contract.
    pub types: &'a Types,
    /// The type.
    pub ty: &'a Type,
}

/// Kinds of JSON values that a reader can tell apart by their first character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JsonKind {
    /// `true`, `false`.
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
    /// The type of this name.
    pub fn get(&self, name: &str) -> Option<&NamedType> {
        self.by_name.get(name).map(|id| self.by_id(*id))
    }

    /// The type of this id, which came from these types.
    pub fn by_id(&self, id: TypeId) -> &NamedType {
        &self.all[id.0 as usize]
    }

    /// Forgets a field of a type, or of the named type that it is.
    pub(super) fn take_field(&mut self, ty: &mut Type, name: &str) {
        let mut id = None;
        let mut kind = &ty.kind;
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

    /// The id of a name.
    pub fn id(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// All types, in the order of the document.
    pub fn iter(&self) -> impl Iterator<Item = &NamedType> {
        self.all.iter()
    }

    /// Follows references to what a type is in the end. There is always an end: the reader breaks cycles.
    pub fn resolve<'a>(&'a self, ty: &'a Type) -> Resolved<'a> {
        let mut resolved = self.follow(ty);
        if let TypeKind::OneOf(alternatives) = resolved.kind {
            resolved.nullable = resolved.nullable || self.any_nullable(alternatives);
        }
        resolved
    }

    /// [`Types::resolve`], where null that only an alternative takes does not count.
    pub(super) fn follow<'a>(&'a self, ty: &'a Type) -> Resolved<'a> {
        let (mut ty, mut nullable) = (ty, ty.nullable);
        while let TypeKind::Named(reference) = &ty.kind {
            ty = &self.by_id(reference.id).ty;
            nullable |= ty.nullable;
        }
        Resolved { kind: &ty.kind, nullable, span: ty.span }
    }

    /// Whether one of the alternatives, or one of theirs, may be null. Alternatives may share alternatives, layer upon layer:
    /// each of them is looked at once.
    fn any_nullable(&self, alternatives: &[Type]) -> bool {
        let mut seen = HashSet::new();
        let mut open: Vec<&Type> = alternatives.iter().collect();
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

    /// The type with its types at hand.
    pub fn at<'a>(&'a self, ty: &'a Type) -> TypeIn<'a> {
        TypeIn { types: self, ty }
    }

    /// The kinds of JSON values that a type stands for, null aside; every kind for [`TypeKind::Any`].
    pub fn json_kinds(&self, ty: &Type) -> Vec<JsonKind> {
        let mut kinds: Vec<JsonKind> = Vec::new();
        // As in `any_nullable`.
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
    /// Any value at all.
    pub fn any(span: Span) -> Type {
        Type { kind: TypeKind::Any, nullable: true, span }
    }

    /// Whether its written form has an `or`.
    fn is_several_words(&self) -> bool {
        match self.kind {
            TypeKind::Any | TypeKind::Null => false,
            TypeKind::OneOf(_) | TypeKind::Choice(_) => true,
            _ => self.nullable,
        }
    }
}

impl TypeKind {
    /// The types that it is one of; none where it is no choice.
    pub fn alternatives(&self) -> &[Type] {
        match self {
            TypeKind::OneOf(alternatives) => alternatives,
            TypeKind::Choice(choice) => &choice.alternatives,
            _ => &[],
        }
    }
}

impl Field {
    /// Makes it a text of bytes that nobody looks into.
    pub(super) fn be_file(&mut self) {
        let format = Some(Scalar::BYTES.into());
        let scalar = Scalar { kind: ScalarKind::String, values: None, format, limits: Limits::default() };
        self.ty = Type { kind: TypeKind::Scalar(scalar), nullable: false, span: self.ty.span };
    }
}

impl Scalar {
    /// The format of a text that is the bytes of something.
    pub const BYTES: &'static str = "binary";
}

impl Choice {
    /// The alternative that is meant, by what an object has: `value` gives the scalar under a name, `has` says whether
    /// there is anything but null.
    pub fn pick(&self, value: impl Fn(&str) -> Option<Literal>, has: impl Fn(&str) -> bool) -> Option<usize> {
        match &self.test {
            Test::Constant { member, values } => {
                let found = value(member)?;
                values.iter().find(|(known, _)| *known == found).map(|(_, at)| *at)
            }
            Test::OwnField(fields) => fields
                .iter()
                .position(|field| field.as_deref().is_some_and(&has))
                .or_else(|| fields.iter().position(Option::is_none)),
        }
    }
}

impl Object {
    /// The declared field of this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl JsonKind {
    /// All kinds.
    pub const ALL: [JsonKind; 5] =
        [JsonKind::Boolean, JsonKind::Number, JsonKind::String, JsonKind::Array, JsonKind::Object];

    /// The kind in a word.
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
    /// The kind of its JSON values.
    pub fn json(self) -> JsonKind {
        match self {
            ScalarKind::Boolean => JsonKind::Boolean,
            ScalarKind::Integer | ScalarKind::Number => JsonKind::Number,
            ScalarKind::String => JsonKind::String,
        }
    }

    /// The kind as `type` names it.
    pub fn word(self) -> &'static str {
        match self {
            ScalarKind::Boolean => "boolean",
            ScalarKind::Integer => "integer",
            ScalarKind::Number => "number",
            ScalarKind::String => "string",
        }
    }
}

/// Values listed in messages before the rest is an ellipsis.
const VALUES_SHOWN: usize = 6;

/// `string or null`, `list of Thing`, `enum(small, large, …)`.
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
