//! Why a message cannot be translated, and where in it. Texts name places and kinds of values, never values, so that they
//! may be logged.

use std::fmt;
use switchback_json as json;
use switchback_json::raw::Kind;
use switchback_plan::convert::ConvertError;
use switchback_plan::{Origin, ReasonId};

/// A body that a plan cannot translate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslateError {
    /// What is wrong.
    pub cause: Cause,
    /// Where in the body, as a JSONPath such as `$[3].sender`; `$` for faults of the JSON text itself.
    pub place: String,
    /// The mapping line that wanted something else.
    pub origin: Option<Origin>,
}

impl Cause {
    /// Whether the value is one that the plan does not take. Text that is no JSON, and what the mapping refuses, is another
    /// matter, and so is what the operator left out.
    pub(super) fn is_of_the_value(&self) -> bool {
        match self {
            Cause::Kind { .. }
            | Cause::NoMembers
            | Cause::NotOne
            | Cause::NoAlternative
            | Cause::Convert(_) => true,
            Cause::Json(_) | Cause::Refused(_) | Cause::Setting(_) => false,
        }
    }
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The text is no JSON, or passes a limit.
    Json(json::Error),
    /// A value of another kind than the plan can work on.
    Kind {
        /// What the plan can work on.
        expected: Kind,
        /// What stands there.
        found: Kind,
    },
    /// An object without members, of a type that requires some.
    NoMembers,
    /// An array that was to hold exactly one element does not.
    NotOne,
    /// An object that is none of the alternatives that the plan knows.
    NoAlternative,
    /// A value outside a conversion's domain.
    Convert(ConvertError),
    /// A member that the mapping refuses is there. No fault of the message: the call is refused.
    Refused(ReasonId),
    /// The operator gave no value for this setting (index into [`switchback_plan::Pack::settings`]).
    Setting(u16),
}

impl TranslateError {
    /// An error of the whole text, not yet blamed on a place or a line.
    pub fn new(cause: Cause) -> TranslateError {
        TranslateError { cause, place: "$".into(), origin: None }
    }

    /// Whether a limit was passed, rather than the message broken.
    pub fn is_limit(&self) -> bool {
        matches!(&self.cause, Cause::Json(error) if error.is_limit())
    }

    /// The same error seen from the object that holds the place in this member, written by this line unless an inner one
    /// is known.
    #[must_use]
    pub fn inside_member(mut self, name: &str, origin: Option<&Origin>) -> TranslateError {
        self.place.replace_range(..1, &format!("$.{name}"));
        self.origin = self.origin.or_else(|| origin.cloned());
        self
    }

    /// The same error seen from the array that holds the place in this element.
    #[must_use]
    pub fn inside_element(mut self, at: usize) -> TranslateError {
        self.place.replace_range(..1, &format!("$[{at}]"));
        self
    }

    /// The same error seen from the array that holds the place in an element that was not counted.
    #[must_use]
    pub fn inside_any_element(mut self) -> TranslateError {
        self.place.replace_range(..1, "$[*]");
        self
    }
}

impl From<json::Error> for TranslateError {
    fn from(error: json::Error) -> TranslateError {
        TranslateError::new(Cause::Json(error))
    }
}

impl From<Cause> for TranslateError {
    fn from(cause: Cause) -> TranslateError {
        TranslateError::new(cause)
    }
}

impl fmt::Display for TranslateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.cause)?;
        match &self.origin {
            Some(origin) => write!(out, " ({}:{})", origin.file, origin.line),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TranslateError {}

impl fmt::Display for Cause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Json(error) => error.fmt(out),
            Cause::Kind { expected, found } => {
                write!(out, "expected {}, found {}", kind_name(*expected), kind_name(*found))
            }
            Cause::NoMembers => out.write_str("an object without the members that its contract requires"),
            Cause::NotOne => out.write_str("expected an array of exactly one element"),
            Cause::NoAlternative => out.write_str("an object that is none of the alternatives"),
            Cause::Convert(error) => error.fmt(out),
            Cause::Refused(_) => out.write_str("the mapping refuses this member"),
            Cause::Setting(_) => out.write_str("a setting that the mapping reads has no value"),
        }
    }
}

/// A kind as a noun with its article, null without one.
pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Number => "a number",
        Kind::String => "a string",
        Kind::Array => "an array",
        Kind::Object => "an object",
    }
}
