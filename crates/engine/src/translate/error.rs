//! Errors of body translation, with their place. The texts contain places and types, never values,
//! so that they can be logged.

use std::fmt;
use switchback_json as json;
use switchback_json::raw::Kind;
use switchback_plan::convert::ConvertError;
use switchback_plan::{Origin, ReasonId};

/// A body that a plan cannot translate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslateError {
    /// The cause.
    pub cause: Cause,
    /// JSONPath of the place, such as `$[3].sender`; `$` for syntax errors.
    pub place: String,
    /// The mapping line whose expectation was violated.
    pub origin: Option<Origin>,
}

impl Cause {
    /// Returns whether the cause is a value that the plan does not accept, as opposed to a syntax
    /// error, a refusal by the mapping, or a missing setting.
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

/// The cause of a translation error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The text is not JSON or exceeds a limit.
    Json(json::Error),
    /// A value of a type that the plan does not support.
    Kind {
        /// The supported type.
        expected: Kind,
        /// The actual type.
        found: Kind,
    },
    /// An object without members, of a type that requires at least one.
    NoMembers,
    /// An array that does not contain exactly one element.
    NotOne,
    /// An object that matches no alternative of the plan.
    NoAlternative,
    /// A value outside the domain of a conversion.
    Convert(ConvertError),
    /// The message contains a member that the mapping refuses. The message is valid; the call is
    /// refused.
    Refused(ReasonId),
    /// The operator has not set this setting (index into [`switchback_plan::Pack::settings`]).
    Setting(u16),
}

impl TranslateError {
    /// Creates an error at the root, without a mapping line.
    pub fn new(cause: Cause) -> TranslateError {
        TranslateError { cause, place: "$".into(), origin: None }
    }

    /// Returns whether a limit was exceeded, as opposed to a malformed message.
    pub fn is_limit(&self) -> bool {
        matches!(&self.cause, Cause::Json(error) if error.is_limit())
    }

    /// Prepends a member to the place. `origin` is used unless an inner line is already known.
    #[must_use]
    pub fn inside_member(mut self, name: &str, origin: Option<&Origin>) -> TranslateError {
        // Replaces the leading `$`.
        self.place.replace_range(..1, &format!("$.{name}"));
        self.origin = self.origin.or_else(|| origin.cloned());
        self
    }

    /// Prepends an element to the place.
    #[must_use]
    pub fn inside_element(mut self, at: usize) -> TranslateError {
        self.place.replace_range(..1, &format!("$[{at}]"));
        self
    }

    /// Prepends an element of unknown index to the place.
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
            Some(origin) => write!(out, " ({origin})"),
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

/// Returns the name of a type with its article.
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
