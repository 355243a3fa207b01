//! Request parameters as in a contract: the JSON type of each, and the notation of lists and
//! objects.

use std::sync::Arc;

/// A parameter with its JSON type in the context.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Decoded name of the parameter or path variable.
    pub name: Arc<str>,
    /// Type of its value, or of each list element.
    pub kind: ParameterKind,
    /// Notation of its value.
    pub shape: ParameterShape,
    /// Whether the parameter is required; always true for path variables.
    pub required: bool,
    /// Whether the value of a path variable may contain slashes, which requests must escape.
    pub takes_slash: bool,
}

impl Variable {
    /// Returns a parameter with a single value.
    pub fn single(name: impl Into<Arc<str>>, kind: ParameterKind, required: bool) -> Variable {
        Variable { name: name.into(), kind, shape: ParameterShape::Single, required, takes_slash: false }
    }
}

/// The JSON type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A number without a fraction, of any length.
    Integer,
    /// A decimal number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A text, unchanged.
    String,
}

/// The notation of a query parameter.
#[derive(Clone, Debug)]
pub enum ParameterShape {
    /// One value; repeating it is an error.
    Single,
    /// A list of values in this style.
    List(ListStyle),
    /// An object with one parameter per field: `name[field]=value` (`deepObject`).
    Fields(Arc<[Variable]>),
}

/// The notation of a list in a query, from OpenAPI's `style` and `explode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListStyle {
    /// `name=a&name=b` (`form`, exploded)
    #[default]
    Repeated,
    /// `name=a,b` (`form`)
    Comma,
    /// `name=a%20b` (`spaceDelimited`)
    Space,
    /// `name=a|b` (`pipeDelimited`)
    Pipe,
}

impl ListStyle {
    /// Returns the delimiter of the elements; `None` if each element is a parameter.
    pub fn delimiter(self) -> Option<char> {
        match self {
            ListStyle::Repeated => None,
            ListStyle::Comma => Some(','),
            ListStyle::Space => Some(' '),
            ListStyle::Pipe => Some('|'),
        }
    }

    /// Returns a description.
    pub fn word(self) -> &'static str {
        match self {
            ListStyle::Repeated => "a parameter for each element",
            ListStyle::Comma => "with commas",
            ListStyle::Space => "with spaces",
            ListStyle::Pipe => "with pipes",
        }
    }
}
