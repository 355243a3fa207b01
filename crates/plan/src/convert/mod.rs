//! The closed list of conversions (`as:`): one file each, with its kinds, inverse, law and examples.
//!
//! A conversion works on the JSON text of one bounded value and writes JSON text, or nothing (the member is left out).
//! Null passes through conversions of scalars and of lists unchanged: whether null may stand there is the contracts'
//! business, and the checker's. To add one: write its file, then add it to [`ConversionKind`], [`SPECS`] and the three
//! `match`es below; its examples become documentation and tests by being listed.

mod csv;
mod date;
mod empty_is_array;
mod fold;
mod integer;
mod integer_to_string;
mod null_is_absent;
mod pairs;
mod string_to_integer;
mod table;
mod union;

pub use date::check_patterns as check_date_patterns;
pub use table::Table;

use super::SideId;
use super::body::{Kinds, Raw};
use std::fmt;
use std::sync::Arc;
use switchback_json::raw::{self, Kind};

/// A conversion in one direction. `forward` leads from the old side to the new one.
#[derive(Clone, Debug)]
pub struct Conversion {
    pub kind: ConversionKind,
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
    ObjectToPairs { key: Arc<str>, value: Arc<str> },
    /// old text in the first date pattern ↔ new text in the second.
    Date { old: Arc<str>, new: Arc<str> },
    /// text ↔ the same text in lower case, whichever way it goes.
    LowerCase,
    /// text ↔ the digits in it, whichever way it goes.
    Digits,
    /// The first of these that takes the value; at least two.
    FirstOf(Arc<[ConversionKind]>),
}

/// What follows when a value is outside a conversion's domain.
#[derive(Clone, Debug)]
pub enum Otherwise {
    /// The message is refused: it is not what its sender's contract says.
    Error,
    /// The value is copied as it stands.
    Keep,
    Value(Raw),
}

/// Whether a conversion wrote something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
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
    pub arguments: Arguments,
    pub old: Domain,
    pub new: Domain,
    /// Whether a null that stands in the source passes unchanged, beside the kinds of the domains.
    pub null_passes: bool,
    pub law: Law,
    pub examples: &'static [Example],
}

/// The arguments a conversion takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments {
    None,
    /// `{old: new, …}`, scalars.
    Table,
    /// `{key: name, value: name}`: member names of the entries on the new side.
    Pairs,
    /// A date pattern for each side.
    Patterns,
}

/// The values of one side that a conversion takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
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
    /// The same value where it is already as the conversion gives it; how it was spelt otherwise is lost, in either direction.
    Fold,
}

/// One line of a conversion's examples. `None` = absent.
#[derive(Debug)]
pub struct Example {
    /// As written after `as:`.
    pub written: &'static str,
    pub kind: fn() -> ConversionKind,
    pub old: Option<&'static str>,
    pub new: Option<&'static str>,
    pub holds: Holds,
}

/// In which directions an example holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Both,
    /// Only from the old side to the new one: another spelling of the same value.
    Forward,
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
            ConversionKind::Date { .. } => &date::SPEC,
            ConversionKind::FirstOf(_) => &union::SPEC,
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
            _ => self.spec().domain(side).kinds,
        }
    }
}

impl Conversion {
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
            (ConversionKind::Date { old, new }, true) => date::convert(json, old, new, out),
            (ConversionKind::Date { old, new }, false) => date::convert(json, new, old, out),
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
        (ConversionKind::Date { .. }, _) => "a date in the pattern of its side",
        (ConversionKind::FirstOf(_), _) => "a value that one of its conversions takes",
    }
}

#[cfg(test)]
mod tests;
