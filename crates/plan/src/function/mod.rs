//! The closed list of functions (`to:`): computations of values in routes and in computed members
//! of shapes. A function has no inverse, so a line of a shape takes a conversion instead.
//!
//! A function reads one value that is not null, or a list of values, and yields one value. Its
//! arguments are parsed when the pack is compiled; the size of its result is bounded. A value
//! outside its domain is handled by `else:`. Every conversion is a function as well, in its
//! direction from the old side to the new one ([`converted`]).
//!
//! To add a function, write a file with a [`FunctionSpec`] and a [`Function`], and list it in
//! [`FUNCTIONS`]. The compiler derives the schema, checks and messages from them; the examples are
//! tests.

mod arithmetic;
mod chunks;
mod converted;
mod digest;
mod join;
mod pattern;
mod plus;
mod sort;
mod uuid;

use crate::convert::{ArgumentError, Facts, Given, Spec};
use crate::{Key, Kinds, Raw};
use std::fmt;
use std::sync::Arc;
use switchback_json::Value;
use switchback_json::raw::Kind;

/// A function with its arguments. The provided methods describe a function from any text to a text.
pub trait Function: fmt::Debug + Send + Sync {
    /// Returns the name as written after `to:`.
    fn name(&self) -> &'static str;

    /// Returns the kinds of values that it accepts; for lists, those of their elements.
    fn takes(&self) -> Takes {
        Takes { kinds: TEXT, elements: TEXT }
    }

    /// Returns the type of the result for a value with these facts.
    fn gives(&self, _facts: &Facts) -> Gives {
        A_TEXT
    }

    /// Returns whether it accepts every value with these facts, apart from null.
    fn takes_all(&self, facts: &Facts) -> bool {
        are_all(facts, TEXT)
    }

    /// Returns the description of accepted values, for a message.
    fn domain_text(&self) -> &'static str {
        "a text"
    }

    /// Returns the result, or `None` if the value is outside the domain. The value is not null.
    fn apply(&self, value: Value) -> Option<Value>;

    /// Returns the members of the elements of its list that it reads.
    fn members(&self) -> &[Key] {
        &[]
    }
}

/// The values that a function accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Takes {
    /// The kinds of values.
    pub kinds: Kinds,
    /// The kinds of the elements of a list.
    pub elements: Kinds,
}

/// The type of a function's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// Values of these kinds.
    Kinds {
        /// The kinds.
        kinds: Kinds,
        /// Whether numbers are integers.
        integer: bool,
    },
    /// Lists of texts.
    Texts,
    /// Values of the type of its value.
    Same,
    /// Lists of values of the type of its value.
    Chunks,
}

/// The description of a function for the compiler, the schema and the tests.
#[derive(Debug)]
pub struct FunctionSpec {
    /// Name as written after `to:`.
    pub name: &'static str,
    /// One line for the manual and editors.
    pub about: &'static str,
    /// The arguments; `None` if it takes none.
    pub arguments: Option<FunctionArguments>,
    /// Builds the function from its arguments, which are null if there are none.
    pub build: fn(&Given<'_>) -> Result<Arc<dyn Function>, ArgumentError>,
    /// At least one example with a result. The tests execute them.
    pub examples: &'static [FunctionExample],
}

/// The arguments of a function.
#[derive(Clone, Copy, Debug)]
pub struct FunctionArguments {
    /// An example of the function with arguments.
    pub such_as: &'static str,
    /// JSON schema of the arguments.
    pub schema: &'static str,
}

/// One example of a function.
#[derive(Debug)]
pub struct FunctionExample {
    /// JSON text of the arguments.
    pub arguments: &'static str,
    /// JSON text of the value.
    pub from: &'static str,
    /// JSON text of the result; `None` for a value outside the domain.
    pub gives: Option<&'static str>,
}

/// The handling of a value outside the domain of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyElse {
    /// An error of the value's sender.
    Error,
    /// The result is absent.
    Absent,
    /// The result is this JSON text.
    Value(Raw),
}

/// All functions, in the order of the manual.
pub const FUNCTIONS: &[&FunctionSpec] = &[
    &join::SPEC,
    &pattern::MATCH,
    &pattern::REPLACE,
    &digest::MD5,
    &digest::SHA256,
    &uuid::SPEC,
    &arithmetic::SUM,
    &arithmetic::DIFFERENCE,
    &arithmetic::PRODUCT,
    &arithmetic::QUOTIENT,
    &arithmetic::ROUND,
    &plus::SPEC,
    &sort::SPEC,
    &chunks::SPEC,
];

impl FunctionSpec {
    /// Returns the function with this name, as written after `to:`.
    pub fn by_name(name: &str) -> Option<&'static FunctionSpec> {
        FUNCTIONS.iter().copied().find(|spec| spec.name == name)
    }
}

/// Returns the conversions that are functions, too. A function takes precedence over a conversion
/// of its name.
pub fn converting() -> impl Iterator<Item = &'static Spec> {
    let is_free = |spec: &&Spec| FunctionSpec::by_name(spec.name).is_none();
    // An absent value has no function.
    crate::convert::SPECS.iter().copied().filter(is_free).filter(|spec| !spec.old.absent)
}

pub use converted::converted;

/// Maximum length of a computed text in bytes.
const TEXT_MAX: usize = 1 << 20;

const TEXT: Kinds = Kinds::from_kinds(&[Kind::String]);
const NUMBER: Kinds = Kinds::from_kinds(&[Kind::Number]);
const LIST: Kinds = Kinds::from_kinds(&[Kind::Array]);
const SCALARS: Kinds = Kinds::from_kinds(&[Kind::Bool, Kind::Number, Kind::String]);

const A_TEXT: Gives = Gives::Kinds { kinds: TEXT, integer: false };

const fn example(
    arguments: &'static str,
    from: &'static str,
    gives: Option<&'static str>,
) -> FunctionExample {
    FunctionExample { arguments, from, gives }
}

/// Returns whether all values with these facts, apart from null, have one of the kinds.
fn are_all(facts: &Facts, kinds: Kinds) -> bool {
    let all = [Kind::Bool, Kind::Number, Kind::String, Kind::Array, Kind::Object];
    !facts.any && all.into_iter().all(|kind| !facts.kinds.contains(kind) || kinds.contains(kind))
}

#[cfg(test)]
mod tests;
