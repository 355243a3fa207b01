//! The closed list of conversions (`as:`). Each has one file with its kinds, inverse, law and
//! examples.
//!
//! A conversion reads the JSON text of one value of bounded size, and writes JSON text or yields no
//! value (the member is then omitted). Conversions of scalars and lists pass null unchanged: the
//! contracts and the checker decide whether null is allowed.
//!
//! To add a conversion, write a file with a [`Spec`] and a [`Convert`], and list it in [`SPECS`].
//! The compiler derives argument parsing, checks and documentation from them; the examples become
//! documentation and tests. Only a conversion that ops or the checker treat specially needs its own
//! variant of [`ConversionKind`].

mod base64;
mod csv;
mod date;
mod duration;
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

pub(crate) use date::{Zone, add_span};
pub use date::{instant, time_zone, timestamp};
pub use facts::Facts;
pub use table::Table;

use super::SideId;
use super::json::{Kinds, Raw};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use switchback_json::Value;
use switchback_json::raw::{self, Kind};

/// A conversion in one direction. `forward` leads from the old side to the new one.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// The transformation with its arguments.
    pub kind: ConversionKind,
    /// Whether it converts from the old side to the new one, rather than back.
    pub forward: bool,
    /// Handling of a value outside the domain.
    pub otherwise: Otherwise,
}

/// The transformation of a conversion.
#[derive(Clone, Debug)]
pub enum ConversionKind {
    /// Old integer ↔ new numeric string.
    IntegerToString,
    /// Old numeric string ↔ new integer.
    StringToInteger,
    /// Old integer ↔ new integer or numeric string.
    Integer,
    /// Old absent ↔ new null.
    AbsentToNull,
    /// Old `[]` if empty, otherwise an object ↔ new null if empty, otherwise an object.
    EmptyArrayToNull,
    /// Old value ↔ new value, one to one.
    Table(Arc<Table>),
    /// Old comma-separated text ↔ new array of strings.
    CsvToArray,
    /// Object of key to value ↔ array of objects with two members.
    Pairs {
        /// Member of an entry that holds the key.
        key: Arc<str>,
        /// Member of an entry that holds the value.
        value: Arc<str>,
        /// The side of the array.
        list: SideId,
    },
    /// Text → the same text in lower case, in either direction.
    LowerCase,
    /// Text → its digits, in either direction.
    Digits,
    /// The first of these with a domain that contains the value; at least two.
    FirstOf(Arc<[ConversionKind]>),
    /// A conversion that its own file implements completely.
    Own(Arc<dyn Convert>),
}

/// A conversion with its arguments. Its [`Spec`] holds the properties that depend on the name
/// alone.
pub trait Convert: fmt::Debug + Send + Sync {
    /// Returns the description that the manual, the schema and the compiler use.
    fn spec(&self) -> &'static Spec;

    /// Converts the JSON text of one value and appends the result to `out`. Returns `None` if the
    /// value is outside the domain; `out` may then contain a partial result.
    fn convert(&self, json: &[u8], forward: bool, out: &mut Vec<u8>) -> Option<Yield>;

    /// Returns the description of accepted values of this side, for a message.
    fn domain_text(&self, from: SideId) -> &'static str;

    /// Returns the kinds of values of this side.
    fn kinds(&self, side: SideId) -> Kinds {
        self.spec().domain(side).kinds
    }

    /// Returns whether numbers of this side are integers.
    fn is_integer(&self, side: SideId) -> bool {
        self.spec().domain(side).integer
    }

    /// Returns whether the domain contains every value of its kinds that a place with these facts
    /// can hold.
    fn takes_all(&self, from: SideId, _facts: &Facts) -> bool {
        self.spec().domain(from).total
    }

    /// Returns the law of a round trip to the other side.
    fn law(&self) -> Law {
        self.spec().law
    }

    /// Returns a value of this side's domain that survives a round trip. Most seeds give different
    /// values.
    fn sample(&self, side: SideId, seed: u64) -> String;
}

/// The handling of a value outside a conversion's domain.
#[derive(Clone, Debug)]
pub enum Otherwise {
    /// Reject the message: it violates its sender's contract.
    Error,
    /// Copy the value unchanged.
    Keep,
    /// Omit the member or element.
    Drop,
    /// Write this JSON text instead.
    Value(Raw),
}

/// The result of a conversion that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// A value was appended to the output.
    Written,
    /// The member is omitted.
    Nothing,
}

/// A value outside a conversion's domain. Contains no part of the value, so it is safe to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvertError {
    /// Name as written after `as:`.
    pub conversion: &'static str,
    /// The accepted values, for a person.
    pub expected: &'static str,
}

impl fmt::Display for ConvertError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` expects {}", self.conversion, self.expected)
    }
}

impl std::error::Error for ConvertError {}

/// The description of one conversion for the checker, the manual and the tests.
#[derive(Debug)]
pub struct Spec {
    /// Name as written after `as:`.
    pub name: &'static str,
    /// One line for the manual.
    pub about: &'static str,
    /// Arguments that follow the name.
    pub arguments: Arguments,
    /// Values that it reads from, and writes to, the old side.
    pub old: Domain,
    /// Values that it reads from, and writes to, the new side.
    pub new: Domain,
    /// Whether null passes unchanged, in addition to the kinds of the domains.
    pub null_passes: bool,
    /// Whether it needs a complete list or object, which is then buffered.
    pub structural: bool,
    /// The law of a round trip, unless the arguments change it.
    pub law: Law,
    /// At least one example. The tests execute them, and the manual shows them.
    pub examples: &'static [Example],
}

/// The arguments of a conversion.
#[derive(Clone, Copy, Debug)]
pub enum Arguments {
    /// No arguments.
    None,
    /// `{old: new, …}` of scalars.
    Table,
    /// `{key: name, value: name}`: member names of the entries.
    Pairs,
    /// Arguments that the conversion parses itself.
    Own {
        /// An example of the conversion with arguments. `OLD` and `NEW` are placeholders for the
        /// names of the sides.
        such_as: &'static str,
        /// JSON schema of the arguments.
        schema: &'static str,
        /// Builds the conversion from its arguments.
        read: fn(&Given<'_>) -> Result<ConversionKind, ArgumentError>,
    },
}

/// Why arguments make no conversion, as a clause without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    clause: Cow<'static, str>,
    unknown: Option<UnknownWord>,
}

/// A word of the arguments that is not one of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    /// The word as written.
    pub word: String,
    /// The list.
    pub known: Vec<String>,
}

impl ArgumentError {
    /// Returns the error for a word that is not one of a list.
    pub(crate) fn unknown<'k>(
        clause: impl Into<Cow<'static, str>>,
        word: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> ArgumentError {
        let known = known.into_iter().map(str::to_owned).collect();
        ArgumentError { clause: clause.into(), unknown: Some(UnknownWord { word: word.to_owned(), known }) }
    }

    /// Returns the word that is the cause.
    pub fn unknown_word(&self) -> Option<&UnknownWord> {
        self.unknown.as_ref()
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.clause)
    }
}

impl std::error::Error for ArgumentError {}

impl From<&'static str> for ArgumentError {
    fn from(clause: &'static str) -> ArgumentError {
        ArgumentError { clause: clause.into(), unknown: None }
    }
}

impl From<String> for ArgumentError {
    fn from(clause: String) -> ArgumentError {
        ArgumentError { clause: clause.into(), unknown: None }
    }
}

/// The context of a conversion in a mapping.
#[derive(Debug)]
pub struct Given<'a> {
    /// The arguments after the name; null if there are none.
    pub arguments: &'a Value,
    /// Names of the sides.
    pub sides: [&'a str; 2],
    /// Known facts about the values of its two places.
    pub facts: [Option<&'a Facts>; 2],
}

impl Given<'_> {
    /// Returns the arguments per side if they are a map of the two side names. Other keys must be
    /// listed in `besides`.
    fn by_side(&self, besides: &[&str]) -> Result<Option<[&Value; 2]>, ArgumentError> {
        let Some(map) = self.arguments.as_object() else { return Ok(None) };
        // A misspelt side would otherwise be reported as a missing one, which hides the cause.
        for key in map.keys() {
            let name = key.decode();
            if !self.sides.contains(&&*name) && !besides.contains(&&*name) {
                let known = self.sides.into_iter().chain(besides.iter().copied());
                let clause = format!("`{name}` is not a side of this pack");
                return Err(ArgumentError::unknown(clause, &name, known));
            }
        }
        let of = |side: &str| map.get(side).ok_or_else(|| format!("it says nothing for {side}"));
        Ok(Some([of(self.sides[0])?, of(self.sides[1])?]))
    }
}

/// The values of one side that a conversion accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The JSON kinds of the values.
    pub kinds: Kinds,
    /// Whether numbers of the domain are integers.
    pub integer: bool,
    /// Whether absence is a value of the domain.
    pub absent: bool,
    /// Whether the domain contains every value of these kinds. If not, `else:` handles the rest.
    pub total: bool,
}

/// The guarantee of a conversion for a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// The same value, from either side.
    Iso,
    /// The same value, from the old side. The new side carries more, which is lost towards the old
    /// one.
    Lens,
    /// The same value, from the new side. The old side carries more, which is lost towards the new
    /// one.
    OldLens,
    /// The same value if it is already in the form that the conversion writes. Other spellings are
    /// lost in either direction.
    Fold,
}

/// One example of a conversion. `None` is an absent value.
#[derive(Debug)]
pub struct Example {
    /// The conversion as written after `as:`.
    pub written: &'static str,
    /// Builds the conversion that `written` spells.
    pub kind: fn() -> ConversionKind,
    /// JSON text of the old side's value.
    pub old: Option<&'static str>,
    /// JSON text of the new side's value.
    pub new: Option<&'static str>,
    /// Directions in which the example is valid.
    pub holds: Holds,
}

/// The directions in which an example is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Each value converts to the other.
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
    &pairs::FROM_OBJECT,
    &pairs::TO_OBJECT,
    &date::SPEC,
    &duration::SPEC,
    &scale::SPEC,
    &split::SPLIT,
    &split::JOIN,
    &template::PREFIX,
    &template::TEMPLATE,
    &base64::ENCODE,
    &base64::DECODE,
    &fold::LOWER_CASE,
    &fold::DIGITS,
];

impl Spec {
    /// Returns the conversion with this name, as written after `as:`.
    pub fn by_name(name: &str) -> Option<&'static Spec> {
        SPECS.iter().copied().find(|spec| spec.name == name)
    }

    /// Returns the domain of this side.
    pub fn domain(&self, side: SideId) -> Domain {
        if side == SideId::OLD { self.old } else { self.new }
    }
}

impl ConversionKind {
    /// Returns the description that the manual, the schema and the compiler use. For several
    /// alternatives, it describes the choice.
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
            ConversionKind::Pairs { list, .. } => pairs::spec(*list),
            ConversionKind::FirstOf(_) => &union::SPEC,
            ConversionKind::Own(own) => own.spec(),
        }
    }

    /// Returns the alternatives of a choice, or the conversion itself.
    pub fn alternatives(&self) -> &[ConversionKind] {
        match self {
            ConversionKind::FirstOf(kinds) => kinds,
            kind => std::slice::from_ref(kind),
        }
    }

    /// Returns its name as in mappings; alternatives are joined by `or`.
    pub fn name(&self) -> String {
        self.alternatives().iter().map(|kind| kind.spec().name).collect::<Vec<_>>().join(" or ")
    }

    /// Returns the kinds of values that it reads from, and writes to, this side.
    pub fn kinds(&self, side: SideId) -> Kinds {
        match self {
            ConversionKind::Table(table) => table.kinds(side),
            ConversionKind::FirstOf(kinds) => union::kinds(kinds, side),
            ConversionKind::Own(own) => own.kinds(side),
            _ => self.spec().domain(side).kinds,
        }
    }

    /// Returns whether the numbers that it reads from, and writes to, this side are integers.
    pub fn is_integer(&self, side: SideId) -> bool {
        match self {
            ConversionKind::Own(own) => own.is_integer(side),
            _ => self.spec().domain(side).integer,
        }
    }

    /// Returns the law of a round trip.
    pub fn law(&self) -> Law {
        match self {
            ConversionKind::Own(own) => own.law(),
            ConversionKind::Table(table) => table.law(),
            _ => self.spec().law,
        }
    }

    /// Returns whether it needs a complete list or object.
    pub fn is_structural(&self) -> bool {
        self.alternatives().iter().any(|kind| kind.spec().structural)
    }

    /// Returns whether the domain contains every value of its kinds that a place with these facts
    /// can hold. A null that passes unchanged is not counted.
    pub fn takes_all(&self, from: SideId, facts: &Facts) -> bool {
        let old = from == SideId::OLD;
        match self {
            // Every integer has digits, but not every text consists of digits. Only the contract's pattern
            // or list of values can rule out the other texts.
            ConversionKind::IntegerToString | ConversionKind::Integer if old => true,
            ConversionKind::StringToInteger if !old => true,
            ConversionKind::IntegerToString | ConversionKind::StringToInteger | ConversionKind::Integer => {
                integer_to_string::all_digits(facts)
            }
            // A non-empty array has no counterpart.
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
    /// Returns a conversion that rejects the message if a value is outside its domain.
    pub fn new(kind: ConversionKind, forward: bool) -> Conversion {
        Conversion { kind, forward, otherwise: Otherwise::Error }
    }

    /// Returns the same conversion in the other direction, with the same `else:`.
    #[must_use]
    pub fn inverse(&self) -> Conversion {
        // `otherwise` is copied. It applies to values outside the domain, whichever side they come from.
        Conversion { forward: !self.forward, ..self.clone() }
    }

    /// Returns the side of the values that it reads.
    pub fn from(&self) -> SideId {
        if self.forward { SideId::OLD } else { SideId::NEW }
    }

    /// Returns the description of the values that it accepts, for a message.
    pub fn domain_text(&self) -> &'static str {
        domain_text(&self.kind, self.forward)
    }

    /// Returns the text to write for an absent source when the enclosing object closes, if any.
    pub fn absent(&self) -> Option<Raw> {
        let null = matches!(self.kind, ConversionKind::AbsentToNull) && self.forward;
        null.then(|| Raw::from(&b"null"[..]))
    }

    /// Converts one value. `json` is the text of exactly one value without surrounding white space,
    /// and so is the text appended to `out`. On an error, or if the conversion yields no value,
    /// `out` is unchanged.
    pub fn apply(&self, json: &[u8], out: &mut Vec<u8>) -> Result<Yield, ConvertError> {
        let start = out.len();
        if let Some(done) = self.convert(json, out) {
            return Ok(done);
        }
        // A conversion that fails may have written a part of its result.
        out.truncate(start);
        // Checked after the conversion, because some conversions handle null themselves.
        if self.kind.spec().null_passes && raw::kind(json) == Some(Kind::Null) {
            out.extend_from_slice(json);
            return Ok(Yield::Written);
        }
        match &self.otherwise {
            Otherwise::Keep => out.extend_from_slice(json),
            Otherwise::Drop => return Ok(Yield::Nothing),
            Otherwise::Value(value) => out.extend_from_slice(value),
            Otherwise::Error => {
                return Err(ConvertError { conversion: self.kind.spec().name, expected: self.domain_text() });
            }
        }
        Ok(Yield::Written)
    }

    /// Returns `None` if the value is outside the domain; `out` may then contain a partial result.
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
            (ConversionKind::Pairs { key, value, list }, forward) => {
                match forward == (*list == SideId::NEW) {
                    true => pairs::to_list(json, key, value, out),
                    false => pairs::to_object(json, key, value, out),
                }
            }
            (ConversionKind::Own(own), forward) => own.convert(json, forward, out),
        }
    }
}

/// Returns the description of the values that a conversion accepts in one direction, for a message.
fn domain_text(kind: &ConversionKind, forward: bool) -> &'static str {
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
        (ConversionKind::Pairs { list, .. }, forward) => match forward == (*list == SideId::NEW) {
            true => "an object",
            false => "an array of objects with a different key each",
        },
        (ConversionKind::Own(own), forward) => {
            own.domain_text(if forward { SideId::OLD } else { SideId::NEW })
        }
        (ConversionKind::FirstOf(_), _) => "a value that one of its conversions takes",
    }
}

#[cfg(test)]
mod tests;
