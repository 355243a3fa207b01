//! The contract of one side: an OpenAPI 3.1 document, read into operations and types with the place of
//! everything. No mappings here: a contract says what is promised, to the compiler, and of a planned call whether
//! it keeps to that.
//!
//! The part of OpenAPI that is read (anything else is a finding, so that a contract never means more than
//! was understood):
//!
//! - `paths` with operations, their parameters (`path`, `query`, `header`), JSON bodies and responses by
//!   status, class (`2XX`) or `default`, and `$ref` to `components` of the same file;
//! - schemas: `type` (one or several, with `'null'`), `enum`, `const`, `properties`, `required`,
//!   `additionalProperties`, `items`, `oneOf`/`anyOf` of alternatives that differ by JSON type, `$ref`;
//! - `x-values-seen: [...]`, which is an enumeration that may grow;
//! - bounds of values, of which `minimum`, `maximum`, `minLength`, `maxLength`, `pattern`, `minItems` and
//!   `maxItems` are kept, and the others do not change how a value is translated;
//! - `info`, `servers`, `tags`, security, descriptions, examples, defaults and other `x-` keys are
//!   recognised and have no effect.
//!
//! Two readings to know: an object without `additionalProperties` is open, as JSON Schema has it; and a
//! nullable enumeration must list `null`, as JSON Schema has it too (a warning says so).

mod assign;
mod call;
mod conform;
mod faults;
mod path;
mod read;
mod schema;
mod types;

pub use assign::{Mismatch, Why, assignable};
pub use call::call_breaches;
pub use conform::{Breach, BreachKind, breaches};
pub use path::{OpKey, OpKeyFault, PathFault, PathTemplate, Segment};
pub use read::read;
pub use types::{
    Additional, Array, Enum, Field, JsonKind, Limits, Literal, NamedType, Object, Reference, Resolved,
    Scalar, ScalarKind, Type, TypeId, TypeIn, TypeKind, Types,
};

use crate::diagnostic::Span;
use http::Method;
use std::collections::HashMap;
use std::fmt;

/// Everything one side promises.
#[derive(Debug, Clone, Default)]
pub struct Contract {
    /// Name of the side.
    pub name: String,
    /// Operations, in the order of the document. No two of one method differ only by names of variables.
    pub operations: Vec<Operation>,
    /// Named types (`components/schemas`), in the order of the document.
    pub types: Types,
    by_shape: HashMap<(Method, String), usize>,
}

/// One method of one path.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Its method and path.
    pub key: OpKey,
    /// Variables of the path, in the order of the path; all required.
    pub path_params: Vec<Parameter>,
    /// Query parameters.
    pub query: Vec<Parameter>,
    /// Header parameters.
    pub headers: Vec<Parameter>,
    /// The request body, if it may have one.
    pub body: Option<Body>,
    /// The answers it promises, in the order of the document.
    pub responses: Vec<Response>,
    /// One line about it, from the document.
    pub summary: Option<String>,
    /// The method in the document.
    pub span: Span,
}

/// A parameter of a request, or a header of a response.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Its name as sent.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Whether it is always there.
    pub required: bool,
    /// Its place in the document.
    pub span: Span,
}

/// A JSON request body.
#[derive(Debug, Clone)]
pub struct Body {
    /// Its type.
    pub ty: Type,
    /// Whether a request without it is broken.
    pub required: bool,
    /// Its place in the document.
    pub span: Span,
}

/// One promised answer.
#[derive(Debug, Clone)]
pub struct Response {
    /// The statuses it stands for.
    pub status: StatusPattern,
    /// Its JSON body; `None` is an empty one.
    pub body: Option<Type>,
    /// Headers it carries beside the usual ones.
    pub headers: Vec<Parameter>,
    /// The status in the document.
    pub span: Span,
}

/// Which statuses a response stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatusPattern {
    /// One status, 100 to 599.
    Exact(u16),
    /// All of a class: `Class(2)` is written `2XX`.
    Class(u8),
    /// All that no other response of the operation stands for.
    Default,
}

impl StatusPattern {
    /// Reads `200`, `2XX` (or `2xx`) or `default`.
    pub fn parse(text: &str) -> Option<StatusPattern> {
        if text == "default" {
            return Some(StatusPattern::Default);
        }
        let bytes = text.as_bytes();
        match bytes {
            [b'1'..=b'5', b'X' | b'x', b'X' | b'x'] => Some(StatusPattern::Class(bytes[0] - b'0')),
            [b'1'..=b'5', b'0'..=b'9', b'0'..=b'9'] => text.parse().ok().map(StatusPattern::Exact),
            _ => None,
        }
    }

    /// Whether a status falls under it, other responses of the operation aside.
    pub fn covers(self, status: u16) -> bool {
        match self {
            StatusPattern::Exact(exact) => exact == status,
            StatusPattern::Class(class) => status / 100 == u16::from(class),
            StatusPattern::Default => true,
        }
    }
}

impl fmt::Display for StatusPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatusPattern::Exact(status) => write!(f, "{status}"),
            StatusPattern::Class(class) => write!(f, "{class}XX"),
            StatusPattern::Default => f.write_str("default"),
        }
    }
}

impl Contract {
    /// The operation of this method and path, names of variables included.
    pub fn find(&self, key: &OpKey) -> Option<&Operation> {
        self.find_shape(&key.method, &key.path.shape()).filter(|operation| operation.key == *key)
    }

    /// The operation of this method whose path has this [shape](PathTemplate::shape), whatever its variables
    /// are called.
    pub fn find_shape(&self, method: &Method, shape: &str) -> Option<&Operation> {
        self.by_shape.get(&(method.clone(), shape.to_owned())).map(|index| &self.operations[*index])
    }

    /// Adds an operation, or returns the one of the same method and shape that is there already.
    fn add(&mut self, operation: Operation) -> Result<(), &Operation> {
        let shape = (operation.key.method.clone(), operation.key.path.shape());
        if let Some(index) = self.by_shape.get(&shape) {
            return Err(&self.operations[*index]);
        }
        self.by_shape.insert(shape, self.operations.len());
        self.operations.push(operation);
        Ok(())
    }
}

impl Operation {
    /// The promised answer for a status: the exact one, else its class, else the default.
    pub fn response(&self, status: u16) -> Option<&Response> {
        self.responses.iter().filter(|response| response.status.covers(status)).min_by_key(|r| r.status)
    }
}

#[cfg(test)]
mod tests;
