//! The closed list of conversions (`as:`): one file each, with its kinds, inverse, law and examples.
//!
//! A conversion works on the JSON text of one bounded value and writes JSON text, or nothing (the member is left out).
//! Null passes through conversions of scalars and of lists unchanged: whether null may stand there is the contracts'
//! business, and the checker's. To add one: write its file with a [`Spec`] and a [`Convert`], then name it in [`SPECS`]; the
//! compiler reads its arguments, checks and shows it by what these say, and its examples become documentation and tests.
//! Conversions that ops or the checker treat apart are variants of [`ConversionKind`] besides.

mod csv;
mod date;
mod empty_is_array;
mod facts;
mod fold;
mod integer;
mod integer_to_string;
mod null_is_absent;
mod pairs;
mod scale;
mod split;
mod string_to_integer;
mod table;
mod template;
mod union;

pub use date::instant;
pub use facts::Facts;
pub use table::Table;

use super::SideId;
use super::body::{Kinds, Raw};
use std::fmt;
use std::sync::Arc;
use switchback_json::Value;
use switchback_json::raw::{self, Kind};

/// A conversion in one direction. `forward` leads from the old side to the new one.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// Which transformation it is, with its arguments.
    pub kind: ConversionKind,
    /// Whether it goes from the old side to the new one; else it goes back.
    pub forward: bool,
    /// What follows when the value is outside the conversion's domain.
    pub otherwise: Otherwise,
}

/// Which conversion.
#[derive(Clone, Debug)]
pub enum ConversionKind {
    /// old integer ↔ new numeric string.
    IntegerToString,
    /// old numeric string ↔ new integer.
    StringToInteger,
    /// old integer ↔ new integer, or numeric string.
    Integer,
    /// old absent ↔ new null.
    AbsentToNull,
    /// old `[]` for none, else an object ↔ new null for none, else an object.
    EmptyArrayToNull,
    /// old value ↔ new value, one to one.
    Table(Arc<Table>),
    /// old comma-separated text ↔ new array of strings.
    CsvToArray,
    /// old object of key to value ↔ new array of two-member objects.
    ObjectToPairs {
        /// Member of an entry that holds the key.
        key: Arc<str>,
        /// Member of an entry that holds the value.
        value: Arc<str>,
    },
    /// text ↔ the same text in lower case, whichever way it goes.
    LowerCase,
    /// text ↔ the digits in it, whichever way it goes.
    Digits,
    /// The first of these that takes the value; at least two.
    FirstOf(Arc<[ConversionKind]>),
    /// One that is all in its file.
    Own(Arc<dyn Convert>),
}

/// A conversion with its arguments. What it is by name alone is in its [`Spec`].
pub trait Convert: fmt::Debug + Send + Sync {
    /// What the manual, the schema and the compiler know of it by its name.
    fn spec(&self) -> &'static Spec;

    /// Converts the JSON text of one value, which is appended to `out`. None = outside the domain; `out` may then hold a
    /// part of something.
    fn convert(&self, json: &[u8], forward: bool, out: &mut Vec<u8>) -> Option<Yield>;

    /// What it takes on this side, as words for a message.
    fn expected(&self, from: SideId) -> &'static str;

    /// The kinds of values on this side.
    fn kinds(&self, side: SideId) -> Kinds {
        self.spec().domain(side).kinds
    }

    /// Whether numbers that it takes and gives on this side are integers.
    fn is_integer(&self, side: SideId) -> bool {
        self.spec().domain(side).integer
    }

    /// Whether it takes every value of its kinds that a place on this side may have.
    fn takes_all(&self, from: SideId, _facts: &Facts) -> bool {
        self.spec().domain(from).total
    }

    /// What going to the other side and back gives.
    fn law(&self) -> Law {
        self.spec().law
    }

    /// A value of the domain of this side that comes back as it was, another one for most seeds.
    fn sample(&self, side: SideId, seed: u64) -> String;
}

/// What follows when a value is outside a conversion's domain.
#[derive(Clone, Debug)]
pub enum Otherwise {
    /// The message is refused: it is not what its sender's contract says.
    Error,
    /// The value is copied as it stands.
    Keep,
    /// The member or element is left out.
    Drop,
    /// This JSON text stands in its place.
    Value(Raw),
}

/// Whether a conversion wrote something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// A value was appended to the output.
    Written,
    /// The member is left out.
    Nothing,
}

/// A value outside a conversion's domain. Carries nothing of the value, so that it may be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvertError {
    /// Name as written after `as:`.
    pub conversion: &'static str,
    /// What would have been accepted, for a person.
    pub expected: &'static str,
}

impl fmt::Display for ConvertError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` expects {}", self.conversion, self.expected)
    }
}

impl std::error::Error for ConvertError {}

/// What one conversion is, for the checker, the manual and the tests.
#[derive(Debug)]
pub struct Spec {
    /// As written after `as:`.
    pub name: &'static str,
    /// One line for the manual.
    pub about: &'static str,
    /// What stands behind its name.
    pub arguments: Arguments,
    /// What it takes of the old side, and gives towards it.
    pub old: Domain,
    /// What it takes of the new side, and gives towards it.
    pub new: Domain,
    /// Whether a null that stands in the source passes unchanged, beside the kinds of the domains.
    pub null_passes: bool,
    /// Whether it looks at a whole list or object, which is then held.
    pub structural: bool,
    /// What going there and back gives, where no arguments say otherwise.
    pub law: Law,
    /// Executed by the tests and shown in the manual; at least one.
    pub examples: &'static [Example],
}

/// The arguments a conversion takes.
#[derive(Clone, Copy, Debug)]
pub enum Arguments {
    /// It has none.
    None,
    /// `{old: new, …}`, scalars.
    Table,
    /// `{key: name, value: name}`: member names of the entries on the new side.
    Pairs,
    /// As the conversion itself reads them.
    Own {
        /// The conversion with arguments, as an example to follow. `OLD` and `NEW` stand for the names of the sides.
        such_as: &'static str,
        /// JSON schema of the arguments.
        schema: &'static str,
        /// Makes the conversion of its arguments, or says what is wrong with them, as a clause without a full stop.
        read: fn(&Given<'_>) -> Result<ConversionKind, String>,
    },
}

/// What is known where a conversion is written.
#[derive(Debug)]
pub struct Given<'a> {
    /// As written beside the name; null where nothing is.
    pub arguments: &'a Value,
    /// Names of the sides.
    pub sides: [&'a str; 2],
    /// The values of its two places, as far as they are known.
    pub facts: [Option<&'a Facts>; 2],
}

impl Given<'_> {
    /// The arguments by side, where they are a map of the sides' names and others that `besides` lists.
    fn by_side(&self, besides: &[&str]) -> Result<Option<[&Value; 2]>, String> {
        let Some(map) = self.arguments.as_object() else { return Ok(None) };
        for key in map.keys() {
            let name = key.decode();
            if !self.sides.contains(&&*name) && !besides.contains(&&*name) {
                return Err(format!("`{name}` is not a side of this pack"));
            }
        }
        let of = |side: &str| map.get(side).ok_or_else(|| format!("it says nothing for {side}"));
        Ok(Some([of(self.sides[0])?, of(self.sides[1])?]))
    }
}

/// The values of one side that a conversion takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The JSON kinds of values.
    pub kinds: Kinds,
    /// Numbers of the domain are integers.
    pub integer: bool,
    /// Absence is a value of the domain.
    pub absent: bool,
    /// Every value of these kinds is in the domain; otherwise `else:` decides about the rest.
    pub total: bool,
}

/// What going there and back gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// The same value, from either side of the domain.
    Iso,
    /// The same value from the old side; the new side carries more, which is lost towards the old one.
    Lens,
    /// The same value from the new side; the old side carries more, which is lost towards the new one.
    OldLens,
    /// The same value where it is already as the conversion gives it; how it was spelt otherwise is lost, in either direction.
    Fold,
}

/// One line of a conversion's examples. `None` = absent.
#[derive(Debug)]
pub struct Example {
    /// As written after `as:`.
    pub written: &'static str,
    /// Makes the conversion that `written` spells.
    pub kind: fn() -> ConversionKind,
    /// JSON text of the old side's value.
    pub old: Option<&'static str>,
    /// JSON text of the new side's value.
    pub new: Option<&'static str>,
    /// In which directions one value becomes the other.
    pub holds: Holds,
}

/// In which directions an example holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Each value becomes the other.
    Both,
    /// Only from the old side to the new one: another spelling of the same value.
    Forward,
    /// Only from the new side to the old one.
    Backward,
}

/// All conversions, in the order of the manual.
pub const SPECS: &[&Spec] = &[
    &integer_to_string::SPEC,
    &string_to_integer::SPEC,
    &integer::SPEC,
    &null_is_absent::SPEC,
    &empty_is_array::SPEC,
    &csv::SPEC,
    &table::SPEC,
    &pairs::SPEC,
    &date::SPEC,
    &scale::SPEC,
    &split::SPEC,
    &template::PREFIX,
    &template::TEMPLATE,
    &fold::LOWER_CASE,
    &fold::DIGITS,
];

impl Spec {
    /// The conversion of this name, as written after `as:`.
    pub fn named(name: &str) -> Option<&'static Spec> {
        SPECS.iter().copied().find(|spec| spec.name == name)
    }

    /// The domain on this side.
    pub fn domain(&self, side: SideId) -> Domain {
        if side == SideId::OLD { self.old } else { self.new }
    }
}

impl ConversionKind {
    /// What the manual, the schema and the compiler know of it by its name; of several, what is said of choosing.
    pub fn spec(&self) -> &'static Spec {
        match self {
            ConversionKind::IntegerToString => &integer_to_string::SPEC,
            ConversionKind::StringToInteger => &string_to_integer::SPEC,
            ConversionKind::Integer => &integer::SPEC,
            ConversionKind::LowerCase => &fold::LOWER_CASE,
            ConversionKind::Digits => &fold::DIGITS,
            ConversionKind::AbsentToNull => &null_is_absent::SPEC,
            ConversionKind::EmptyArrayToNull => &empty_is_array::SPEC,
            ConversionKind::Table(_) => &table::SPEC,
            ConversionKind::CsvToArray => &csv::SPEC,
            ConversionKind::ObjectToPairs { .. } => &pairs::SPEC,
            ConversionKind::FirstOf(_) => &union::SPEC,
            ConversionKind::Own(own) => own.spec(),
        }
    }

    /// The conversions that it is made of: itself, or those that it chooses from.
    pub fn alternatives(&self) -> &[ConversionKind] {
        match self {
            ConversionKind::FirstOf(kinds) => kinds,
            kind => std::slice::from_ref(kind),
        }
    }

    /// Its name as mappings write it; of several, with `or` between.
    pub fn name(&self) -> String {
        self.alternatives().iter().map(|kind| kind.spec().name).collect::<Vec<_>>().join(" or ")
    }

    /// The kinds of values on this side that the conversion takes, and gives when it comes from the other side.
    pub fn kinds(&self, side: SideId) -> Kinds {
        match self {
            ConversionKind::Table(table) => table.kinds(side),
            ConversionKind::FirstOf(kinds) => union::kinds(kinds, side),
            ConversionKind::Own(own) => own.kinds(side),
            _ => self.spec().domain(side).kinds,
        }
    }

    /// Whether numbers that it takes on this side, and gives there, are integers.
    pub fn is_integer(&self, side: SideId) -> bool {
        match self {
            ConversionKind::Own(own) => own.is_integer(side),
            _ => self.spec().domain(side).integer,
        }
    }

    /// What going there and back gives.
    pub fn law(&self) -> Law {
        match self {
            ConversionKind::Own(own) => own.law(),
            ConversionKind::Table(table) => table.law(),
            _ => self.spec().law,
        }
    }

    /// Whether it looks at a whole list or object.
    pub fn is_structural(&self) -> bool {
        self.alternatives().iter().any(|kind| kind.spec().structural)
    }

    /// Whether it takes every value of its kinds that a place on this side may have. Null that passes is none of them.
    pub fn takes_all(&self, from: SideId, facts: &Facts) -> bool {
        let old = from == SideId::OLD;
        match self {
            ConversionKind::IntegerToString | ConversionKind::Integer if old => true,
            ConversionKind::StringToInteger if !old => true,
            ConversionKind::IntegerToString | ConversionKind::StringToInteger | ConversionKind::Integer => {
                integer_to_string::all_digits(facts)
            }
            ConversionKind::EmptyArrayToNull if old => !facts.kinds.array || facts.items_most == Some(0),
            ConversionKind::Table(table) => table.takes_all(from, facts),
            ConversionKind::CsvToArray if !old => csv::all_join(facts),
            ConversionKind::FirstOf(kinds) => union::takes_all(kinds, from, facts),
            ConversionKind::Own(own) => own.takes_all(from, facts),
            _ => self.spec().domain(from).total,
        }
    }
}

impl Conversion {
    /// A conversion that refuses the message when a value is outside its domain.
    pub fn new(kind: ConversionKind, forward: bool) -> Conversion {
        Conversion { kind, forward, otherwise: Otherwise::Error }
    }

    /// The same conversion the other way, with the same `else:`.
    #[must_use]
    pub fn inverse(&self) -> Conversion {
        Conversion { forward: !self.forward, ..self.clone() }
    }

    /// The side that values come from.
    pub fn from(&self) -> SideId {
        if self.forward { SideId::OLD } else { SideId::NEW }
    }

    /// What is written (when the enclosing object closes) for a source that is absent; none = nothing.
    pub fn absent(&self) -> Option<Raw> {
        let null = matches!(self.kind, ConversionKind::AbsentToNull) && self.forward;
        null.then(|| Raw::from(&b"null"[..]))
    }

    /// Converts one value. `json` is the text of exactly one value without white space around it; what is appended to
    /// `out` is too. Nothing is appended on an error or when the conversion yields nothing.
    pub fn apply(&self, json: &[u8], out: &mut Vec<u8>) -> Result<Yield, ConvertError> {
        let start = out.len();
        if let Some(done) = self.convert(json, out) {
            return Ok(done);
        }
        out.truncate(start);
        if self.kind.spec().null_passes && raw::kind(json) == Some(Kind::Null) {
            out.extend_from_slice(json);
            return Ok(Yield::Written);
        }
        match &self.otherwise {
            Otherwise::Keep => out.extend_from_slice(json),
            Otherwise::Drop => return Ok(Yield::Nothing),
            Otherwise::Value(value) => out.extend_from_slice(value),
            Otherwise::Error => {
                let expected = expected(&self.kind, self.forward);
                return Err(ConvertError { conversion: self.kind.spec().name, expected });
            }
        }
        Ok(Yield::Written)
    }

    /// None = outside the domain; `out` may then hold a part of something.
    fn convert(&self, json: &[u8], out: &mut Vec<u8>) -> Option<Yield> {
        self.kind.convert(json, self.forward, out)
    }
}

impl ConversionKind {
    fn convert(&self, json: &[u8], forward: bool, out: &mut Vec<u8>) -> Option<Yield> {
        match (self, forward) {
            (ConversionKind::FirstOf(kinds), forward) => union::convert(kinds, json, forward, out),
            (ConversionKind::IntegerToString, true) => integer_to_string::to_string(json, out),
            (ConversionKind::IntegerToString, false) => integer_to_string::to_integer(json, out),
            (ConversionKind::StringToInteger, true) => integer_to_string::to_integer(json, out),
            (ConversionKind::StringToInteger, false) => integer_to_string::to_string(json, out),
            (ConversionKind::Integer, true) => integer::to_new(json, out),
            (ConversionKind::Integer, false) => integer::to_old(json, out),
            (ConversionKind::LowerCase, _) => fold::to_lower_case(json, out),
            (ConversionKind::Digits, _) => fold::to_digits(json, out),
            (ConversionKind::AbsentToNull, true) => null_is_absent::to_new(json, out),
            (ConversionKind::AbsentToNull, false) => null_is_absent::to_old(json, out),
            (ConversionKind::EmptyArrayToNull, true) => empty_is_array::to_new(json, out),
            (ConversionKind::EmptyArrayToNull, false) => empty_is_array::to_old(json, out),
            (ConversionKind::Table(table), forward) => table.convert(json, forward, out),
            (ConversionKind::CsvToArray, true) => csv::to_new(json, out),
            (ConversionKind::CsvToArray, false) => csv::to_old(json, out),
            (ConversionKind::ObjectToPairs { key, value }, true) => pairs::to_new(json, key, value, out),
            (ConversionKind::ObjectToPairs { key, value }, false) => pairs::to_old(json, key, value, out),
            (ConversionKind::Own(own), forward) => own.convert(json, forward, out),
        }
    }
}

/// What a conversion takes in one direction, as words for a message.
fn expected(kind: &ConversionKind, forward: bool) -> &'static str {
    match (kind, forward) {
        (ConversionKind::IntegerToString | ConversionKind::Integer, true)
        | (ConversionKind::StringToInteger, false) => "an integer",
        (ConversionKind::Integer, false) => "an integer, or a string of digits",
        (ConversionKind::LowerCase, _) => "a text",
        (ConversionKind::Digits, _) => "a text with a digit in it",
        (ConversionKind::IntegerToString, false) | (ConversionKind::StringToInteger, true) => {
            "a string of digits"
        }
        (ConversionKind::AbsentToNull, _) => "any value",
        (ConversionKind::EmptyArrayToNull, true) => "an empty array or an object",
        (ConversionKind::EmptyArrayToNull, false) => "null or an object",
        (ConversionKind::Table(_), _) => "a value that its table lists",
        (ConversionKind::CsvToArray, true) => "a text",
        (ConversionKind::CsvToArray, false) => "an array of texts without commas",
        (ConversionKind::ObjectToPairs { .. }, true) => "an object",
        (ConversionKind::ObjectToPairs { .. }, false) => "an array of objects with a different key each",
        (ConversionKind::Own(own), forward) => own.expected(if forward { SideId::OLD } else { SideId::NEW }),
        (ConversionKind::FirstOf(_), _) => "a value that one of its conversions takes",
    }
}

#[cfg(test)]
mod tests;
