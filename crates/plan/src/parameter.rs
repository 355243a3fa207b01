//! Parameters of a request, as a contract has them: the JSON type of each, and how what is no single value is written.

use std::sync::Arc;

/// A parameter with the JSON type it takes in the context.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Name of the parameter or path variable, decoded.
    pub name: Arc<str>,
    /// Of its value, or of each element of its list.
    pub kind: ParameterKind,
    /// How values of a parameter are put together.
    pub shape: ParameterShape,
    /// Whether a request without it is broken; always so for path variables.
    pub required: bool,
    /// Of a path variable: whether its value may hold slashes, which requests escape.
    pub takes_slash: bool,
}

impl Variable {
    /// One that holds one value.
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
    /// A text, as it was sent.
    String,
}

/// What a query parameter holds.
#[derive(Clone, Debug)]
pub enum ParameterShape {
    /// One value; a request that repeats it is broken.
    Single,
    /// A list of values, written in this style.
    List(ListStyle),
    /// An object, each field a parameter of its own: `name[field]=value` (`deepObject`).
    Fields(Arc<[Variable]>),
}

/// How a query writes a list: what OpenAPI's `style` and `explode` say together.
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
    /// What stands between two elements of one text; none where each element is a parameter.
    pub fn delimiter(self) -> Option<char> {
        match self {
            ListStyle::Repeated => None,
            ListStyle::Comma => Some(','),
            ListStyle::Space => Some(' '),
            ListStyle::Pipe => Some('|'),
        }
    }

    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            ListStyle::Repeated => "a parameter for each element",
            ListStyle::Comma => "with commas",
            ListStyle::Space => "with spaces",
            ListStyle::Pipe => "with pipes",
        }
    }
}
