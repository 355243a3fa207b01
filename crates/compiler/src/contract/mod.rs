//! The contract of one side: an OpenAPI document, read into operations and types with the place of everything. No mappings
//! here: a contract says what is promised, to the compiler, and of a planned call whether it keeps to that.
//!
//! Documents are Swagger 2.0 and OpenAPI 3.0, 3.1 and 3.2, in JSON or YAML, in one file or many. Somebody else wrote them:
//! what is legal is read, what says nothing about calls is passed over, and what goes wrong in one place costs that place
//! only. On the way:
//!
//! - [`documents`]: the files, and where references lead;
//! - [`normal`]: the operations of every dialect in one form;
//! - [`schema`], [`alternatives`]: schemas become types; what cannot be typed is any value;
//! - [`read`](mod@read): both together. A body that is no JSON is opaque: passed as it is, or refused.
//!
//! Findings are grouped: one for each construct of a document, with its count and its first places.
//!
//! Two readings to know: an object without `additionalProperties` is open, as JSON Schema has it; and a nullable enumeration
//! must list `null`, as JSON Schema has it too (a warning says so), unless `nullable` says that null is meant.

mod alternatives;
mod call;
mod compare;
mod conform;
mod documents;
mod faults;
mod grouped;
mod normal;
mod numbers;
mod path;
mod read;
mod sample;
mod schema;
mod types;

pub use call::{call_breaches, parameter_breaches};
pub use compare::{Mismatch, Narrowing, Proven, Why, assignable, compare, compare_once};
pub(crate) use compare::{
    assignable_but_for_null, compare_but_for_null, compare_lists, defaults, exclusions, is_out_of_bounds,
    unread,
};
pub use conform::{Breach, BreachKind, breaches, breaches_in};
pub use documents::{Documents, Fetch};
pub use path::{OpKey, OpKeyFault, Part, PathFault, PathTemplate, Segment};
pub use read::read;
pub use sample::sample;
pub use types::{
    Access, Additional, Array, Bounds, Choice, Enum, Field, JsonKind, Keyword, Limits, Literal, NamedType,
    Object, Reference, Resolved, Scalar, ScalarKind, Test, Type, TypeId, TypeIn, TypeKind, Types, Unread,
};

use crate::diagnostic::Span;
use http::Method;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use switchback_plan::{BodyFormat, HostId, ListStyle};

/// Everything one side promises.
#[derive(Debug, Clone, Default)]
pub struct Contract {
    /// Name of the side.
    pub name: String,
    /// Operations, in the order of the document. No two of one method differ only by names of variables.
    pub operations: Vec<Operation>,
    /// What the service calls by itself (`webhooks`), in the order of the document.
    pub webhooks: Vec<Webhook>,
    /// Named types (`components/schemas`), in the order of the document.
    pub types: Types,
    /// Any value.
    pub any: Type,
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
    /// Cookies.
    pub cookies: Vec<Parameter>,
    /// The request body, if it may have one.
    pub body: Option<Body>,
    /// The answers it promises, in the order of the document.
    pub responses: Vec<Response>,
    /// The servers that answer it instead of the document's, as the document writes them, variables with their defaults.
    pub servers: Vec<String>,
    /// The host that answers it; the main one until a pack says otherwise.
    pub host: HostId,
    /// Its `operationId`.
    pub id: Option<String>,
    /// One line about it, from the document.
    pub summary: Option<String>,
    /// The method in the document.
    pub span: Span,
}

/// An event: a call that the service makes to those who asked for it.
#[derive(Debug, Clone)]
pub struct Webhook {
    /// Name under `webhooks`.
    pub name: String,
    /// What it brings; none where it brings nothing.
    pub body: Option<Body>,
    /// Its name in the document.
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
    /// How it is written.
    pub form: ParameterForm,
    /// What a service takes where it is left out, as JSON.
    pub default: Option<Box<str>>,
    /// Its place in the document.
    pub span: Span,
}

/// How a parameter is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParameterForm {
    /// Its name and a text; a list repeats it.
    #[default]
    Plain,
    /// One text, a list within it.
    Joined(ListStyle),
    /// One text, whatever it is.
    Text,
    /// As many parameters as it has fields: `name[field]`.
    Deep,
}

/// What a body is written in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Media {
    /// `application/json`
    Json,
    /// JSON under another name, such as `application/vnd.thing+json`.
    OtherJson(Arc<str>),
    /// An urlencoded form, and how it writes its lists that have no brackets.
    Form(Arc<str>, Vec<(String, ListStyle)>),
    /// A form of parts, what it says of some of them, and how it writes lists.
    Multipart(Arc<str>, Vec<(String, PartEncoding)>, Vec<(String, ListStyle)>),
    /// Anything else: opaque. All media types that it may have.
    Bytes(Arc<[Arc<str>]>),
}

/// What a document says of how a part of a form is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartEncoding {
    /// As a text, like any field of a form.
    Text,
    /// As JSON, under this name.
    Json(Arc<str>),
    /// As what is not looked into.
    File,
}

impl Media {
    /// Of a media type that stands for JSON.
    fn of_json(media: &str) -> Media {
        let essence = media.split(';').next().unwrap_or("").trim();
        match essence.contains('*') || essence.eq_ignore_ascii_case(BodyFormat::JSON) {
            true => Media::Json,
            false => Media::OtherJson(essence.into()),
        }
    }

    /// Of a form.
    fn of_form(media: &str, parts: Vec<(String, PartEncoding)>, lists: Vec<(String, ListStyle)>) -> Media {
        let essence = media.split(';').next().unwrap_or("").trim();
        match essence.eq_ignore_ascii_case(BodyFormat::FORM) {
            true => Media::Form(essence.into(), lists),
            false => Media::Multipart(essence.into(), parts, lists),
        }
    }

    /// Whether the gateway reads it, as JSON or as another spelling of it.
    pub fn is_read(&self) -> bool {
        self.is_json() || matches!(self, Media::Form(..))
    }

    /// Whether it is JSON, under whichever name.
    pub fn is_json(&self) -> bool {
        matches!(self, Media::Json | Media::OtherJson(_))
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        match self {
            Media::Json => BodyFormat::JSON,
            Media::OtherJson(name) | Media::Form(name, _) | Media::Multipart(name, ..) => name,
            Media::Bytes(all) => all.first().map_or("", |name| name),
        }
    }

    /// All media types of it, in small letters.
    pub fn ranges(&self) -> Vec<Arc<str>> {
        let small = |name: &str| name.to_ascii_lowercase().into();
        match self {
            Media::Bytes(all) => all.iter().map(|name| small(name)).collect(),
            one => vec![small(one.name())],
        }
    }
}

/// A request body.
#[derive(Debug, Clone)]
pub struct Body {
    /// Its type; any for one of bytes.
    pub ty: Type,
    /// What it is written in.
    pub media: Media,
    /// Other media types that it may have, which are not read.
    pub unread: Vec<Arc<str>>,
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
    /// Its body; `None` is an empty one.
    pub body: Option<Type>,
    /// What its body is written in.
    pub media: Media,
    /// Other media types that its body may have, which are not read.
    pub unread: Vec<Arc<str>>,
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
    /// All that no other response of the operation stands for; errors alone, where it lists a success.
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
    /// Forgets a query parameter, in all operations.
    pub(crate) fn take_query(&mut self, name: &str) {
        for operation in &mut self.operations {
            operation.query.retain(|parameter| parameter.name != name);
        }
    }

    /// Forgets a field of urlencoded bodies, in all operations.
    pub(crate) fn take_form_field(&mut self, name: &str) {
        for operation in &mut self.operations {
            if let Some(body) = operation.body.as_mut().filter(|body| matches!(body.media, Media::Form(..))) {
                self.types.take_field(&mut body.ty, name);
            }
        }
    }

    /// The operation of this method and path, names of variables included.
    pub fn find(&self, key: &OpKey) -> Option<&Operation> {
        self.find_shape(&key.method, &key.path.shape()).filter(|operation| operation.key == *key)
    }

    /// The operation that a request of this method for this path calls: of several, the one with the most literal segments.
    pub fn find_path(&self, method: &Method, path: &str) -> Option<&Operation> {
        let is_called = |one: &&Operation| one.key.method == *method && one.key.path.matches(path);
        let literals = |one: &&Operation| {
            one.key.path.segments().iter().filter(|segment| matches!(segment, Segment::Literal(_))).count()
        };
        self.operations.iter().filter(is_called).max_by_key(literals)
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

impl Response {
    /// Whether it stands for a success.
    pub fn is_success(&self) -> bool {
        match self.status {
            StatusPattern::Exact(status) => status / 100 == 2,
            StatusPattern::Class(class) => class == 2,
            StatusPattern::Default => false,
        }
    }
}

impl Operation {
    /// Whether all its bodies can be read; one that cannot be is passed as it is, or refused.
    pub fn is_typed(&self) -> bool {
        let is_json = |response: &Response| response.body.is_none() || response.media.is_json();
        self.body.as_ref().is_none_or(|body| body.media.is_json()) && self.responses.iter().all(is_json)
    }

    /// The promised answer for a status: the exact one, else its class, else the default. Where a success is listed, the
    /// default stands for errors alone.
    pub fn response(&self, status: u16) -> Option<&Response> {
        let is_error = status >= 400 || !self.responses.iter().any(Response::is_success);
        let covers = |response: &&Response| {
            response.status.covers(status) && (is_error || response.status != StatusPattern::Default)
        };
        self.responses.iter().filter(covers).min_by_key(|response| response.status)
    }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
