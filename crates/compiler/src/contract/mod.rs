//! The contract of one side: an OpenAPI document, parsed into operations and types with their
//! places. Mappings are not part of this module. It provides the contract to the compiler, and
//! checks planned calls against it.
//!
//! Documents are Swagger 2.0 and OpenAPI 3.0, 3.1 and 3.2, in JSON or YAML, in one file or several.
//! They are written by others, so valid constructs are accepted, annotations irrelevant to calls
//! are skipped, and an error affects only the place where it occurs. The stages:
//!
//! - [`documents`]: files and references;
//! - [`normal`]: operations of every dialect in one form;
//! - [`schema`], [`alternatives`]: schemas become types; a schema without an equivalent type
//!   accepts any value;
//! - [`read`](mod@read): combines them. A body that is not JSON is opaque: forwarded unchanged, or
//!   refused.
//!
//! Findings are grouped: one for each construct of a document, with its count and its first places.
//!
//! Two interpretations to know: an object without `additionalProperties` is open, and a nullable
//! enumeration must list `null`, both as in JSON Schema. A violation of the latter is a warning,
//! unless `nullable` makes the intent clear.

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
mod xml;

pub use call::{call_breaches, parameter_breaches};
pub use compare::{
    Difference, Mismatch, Narrowing, Proven, alternatives_of, assignable, compare, compare_once,
};
pub(crate) use compare::{
    assignable_but_for_null, compare_but_for_null, compare_lists, defaults, exclusions, is_out_of_bounds,
    unread,
};
pub use conform::{Breach, BreachKind, breaches};
pub use documents::{Documents, Fetch};
pub use path::{OpKey, OpKeyFault, PathFault, PathTemplate, Segment, SegmentPart};
pub use read::parse_contract;
pub use sample::sample;
pub use types::{
    Access, Additional, Array, Choice, Enum, Field, JsonKind, Keyword, Limits, Literal, NamedType, Object,
    Reference, Resolved, Scalar, ScalarKind, ScalarLimits, Test, Type, TypeId, TypeIn, TypeKind, Types,
    Unread,
};

pub use xml::{XmlBody, XmlProblem};

use crate::diagnostic::Span;
use http::Method;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use switchback_plan::{BodyFormat, HostId, ListStyle, essence};

/// The contract of one side.
#[derive(Debug, Clone, Default)]
pub struct Contract {
    /// Name of the side.
    pub name: String,
    /// Operations in document order. No two operations have the same method and paths that differ
    /// only in variable names.
    pub operations: Vec<Operation>,
    /// Calls that the service makes (`webhooks`), in document order.
    pub webhooks: Vec<Webhook>,
    /// Named types (`components/schemas`), in document order.
    pub types: Types,
    /// The type of any value.
    pub any: Type,
    by_shape: HashMap<(Method, String), usize>,
}

/// The contracts of a pack, old side first. Each result of a compiler shares those that did not change.
pub type Contracts = [Arc<Contract>; 2];

/// One method of one path.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Method and path.
    pub key: OpKey,
    /// Path variables in order; all required.
    pub path_params: Vec<Parameter>,
    /// Query parameters.
    pub query: Vec<Parameter>,
    /// Header parameters.
    pub headers: Vec<Parameter>,
    /// Cookies.
    pub cookies: Vec<Parameter>,
    /// Request body, if any.
    pub body: Option<RequestBody>,
    /// Declared responses, in document order.
    pub responses: Vec<Response>,
    /// Servers that override the document's, with the defaults of their variables filled in.
    pub servers: Vec<String>,
    /// Host of the operation; the main one unless the pack overrides it.
    pub host: HostId,
    /// The `operationId`.
    pub id: Option<String>,
    /// Summary from the document.
    pub summary: Option<String>,
    /// Place of the method in the document.
    pub span: Span,
}

/// An event: a call that the service makes to its subscribers.
#[derive(Debug, Clone)]
pub struct Webhook {
    /// Name under `webhooks`.
    pub name: String,
    /// Body of the event, if any.
    pub body: Option<RequestBody>,
    /// Place of the name in the document.
    pub span: Span,
}

/// A parameter of a request, or a header of a response.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Name as sent.
    pub name: String,
    /// Type of the value.
    pub ty: Type,
    /// Whether it is required.
    pub required: bool,
    /// Notation.
    pub form: ParameterForm,
    /// The service's default, as JSON.
    pub default: Option<Box<str>>,
    /// Place in the document.
    pub span: Span,
}

/// The notation of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParameterForm {
    /// A name and a text; repeated for each element of a list.
    #[default]
    Plain,
    /// One text that contains the list.
    Joined(ListStyle),
    /// One text, for any value.
    Text,
    /// One parameter per field: `name[field]`.
    Deep,
}

/// The media type of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Media {
    /// `application/json`
    Json,
    /// JSON with another media type, such as `application/vnd.thing+json`.
    OtherJson(Arc<str>),
    /// A URL-encoded form, with the styles of lists that are written without brackets.
    Form(Arc<str>, Vec<(String, ListStyle)>),
    /// A multipart form, with the declared encodings of parts and the styles of lists.
    Multipart(Arc<str>, Vec<(String, PartEncoding)>, Vec<(String, ListStyle)>),
    /// XML, with the layout of its type.
    Xml(Arc<XmlBody>),
    /// Any other body: opaque, with all its media types.
    Bytes(Arc<[Arc<str>]>),
}

/// The declared encoding of a part of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartEncoding {
    /// Text, as for any form field.
    Text,
    /// JSON with this media type.
    Json(Arc<str>),
    /// Opaque bytes.
    File,
}

impl Media {
    /// Returns the media of a JSON media type.
    fn of_json(media: &str) -> Media {
        // Parameters other than the charset, such as `version=2`, distinguish types and are sent.
        let mut parts = media.split(';').map(str::trim);
        let named = parts.next().unwrap_or("");
        let is_sent = |part: &&str| !part.is_empty() && !part.to_ascii_lowercase().starts_with("charset=");
        let parameters: Vec<&str> = parts.filter(is_sent).collect();
        // A range such as `*/*` includes JSON.
        if named.contains('*') || named.eq_ignore_ascii_case(BodyFormat::JSON) && parameters.is_empty() {
            return Media::Json;
        }
        let whole = std::iter::once(named).chain(parameters).collect::<Vec<_>>().join("; ");
        match http::HeaderValue::from_str(&whole) {
            Ok(_) => Media::OtherJson(whole.into()),
            Err(_) => Media::OtherJson(named.into()),
        }
    }

    /// Returns the media of a form.
    fn of_form(media: &str, parts: Vec<(String, PartEncoding)>, lists: Vec<(String, ListStyle)>) -> Media {
        let essence = media.split(';').next().unwrap_or("").trim();
        match essence.eq_ignore_ascii_case(BodyFormat::FORM) {
            true => Media::Form(essence.into(), lists),
            false => Media::Multipart(essence.into(), parts, lists),
        }
    }

    /// Returns whether the gateway parses the body, as JSON, a form or XML.
    pub fn is_read(&self) -> bool {
        self.is_json() || matches!(self, Media::Form(..) | Media::Xml(_))
    }

    /// Returns whether both bodies are XML, of different layouts.
    pub fn is_laid_out_unlike(&self, other: &Media) -> bool {
        match (self, other) {
            (Media::Xml(one), Media::Xml(other)) => {
                (&one.format.root, &one.format.types) != (&other.format.root, &other.format.types)
            }
            _ => false,
        }
    }

    /// Returns whether the body is JSON with any media type.
    pub fn is_json(&self) -> bool {
        matches!(self, Media::Json | Media::OtherJson(_))
    }

    /// Returns the media type for messages.
    pub fn name(&self) -> &str {
        match self {
            Media::Json => BodyFormat::JSON,
            Media::OtherJson(name) | Media::Form(name, _) | Media::Multipart(name, ..) => name,
            Media::Xml(body) => &body.media,
            Media::Bytes(all) => all.first().map_or("", |name| name),
        }
    }

    /// Returns all media types, in lower case.
    pub fn ranges(&self) -> Vec<Arc<str>> {
        let small = |name: &str| essence(name).to_ascii_lowercase().into();
        match self {
            Media::Bytes(all) => all.iter().map(|name| small(name)).collect(),
            one => vec![small(one.name())],
        }
    }
}

/// A media type of a body that the gateway does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadMedia {
    /// Media type, in lower case and without parameters.
    pub name: Arc<str>,
    /// Its schema as canonical text, if it is not the schema of the type that the gateway reads.
    pub schema: Option<Arc<str>>,
}

/// A second format of a request body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlsoRead {
    /// JSON, beside a URL-encoded form.
    Json,
    /// A URL-encoded form, beside JSON, with the styles of lists that are written without brackets.
    Form(Vec<(String, ListStyle)>),
}

impl RequestBody {
    /// Returns whether clients may send a URL-encoded form.
    pub fn takes_form(&self) -> bool {
        matches!(self.media, Media::Form(..)) || matches!(self.also, Some(AlsoRead::Form(_)))
    }

    /// Returns the media type of the second format.
    pub fn also_named(&self) -> Option<&'static str> {
        self.also.as_ref().map(|also| match also {
            AlsoRead::Json => BodyFormat::JSON,
            AlsoRead::Form(_) => BodyFormat::FORM,
        })
    }
}

/// A request body.
#[derive(Debug, Clone)]
pub struct RequestBody {
    /// Type of the body; any value if opaque.
    pub ty: Type,
    /// Media type.
    pub media: Media,
    /// A second format of the same body, which the gateway reads as well.
    pub also: Option<AlsoRead>,
    /// Other accepted media types, which the gateway does not read unless `also` is one of them.
    pub unread: Vec<UnreadMedia>,
    /// Whether a request without a body is invalid.
    pub required: bool,
    /// Place in the document.
    pub span: Span,
}

/// A declared response.
#[derive(Debug, Clone)]
pub struct Response {
    /// The statuses that it applies to.
    pub status: StatusPattern,
    /// Type of the body; `None` if it is empty.
    pub body: Option<Type>,
    /// Media type of the body.
    pub media: Media,
    /// Other media types of the body, which the gateway does not read.
    pub unread: Vec<UnreadMedia>,
    /// Declared header fields.
    pub headers: Vec<Parameter>,
    /// Place of the status in the document.
    pub span: Span,
}

/// The statuses that a response applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatusPattern {
    /// One status, 100 to 599.
    Exact(u16),
    /// All statuses of a class: `Class(2)` is written `2XX`.
    Class(u8),
    /// All statuses without another response; only errors, if a success is declared.
    Default,
}

impl StatusPattern {
    /// Parses `200`, `2XX` (or `2xx`) or `default`.
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

    /// Returns whether the pattern matches a status, regardless of the operation's other responses.
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
    /// Removes a query parameter from all operations.
    pub(crate) fn take_query(&mut self, name: &str) {
        for operation in &mut self.operations {
            operation.query.retain(|parameter| parameter.name != name);
        }
    }

    /// Removes a field of URL-encoded bodies from all operations.
    pub(crate) fn take_form_field(&mut self, name: &str) {
        for operation in &mut self.operations {
            if let Some(body) = operation.body.as_mut().filter(|body| body.takes_form()) {
                self.types.take_field(&mut body.ty, name);
            }
        }
    }

    /// Returns the event with this name.
    pub(crate) fn webhook(&self, name: &str) -> Option<&Webhook> {
        self.webhooks.iter().find(|webhook| webhook.name == name)
    }

    /// Returns the operation of this method and path; names of variables must match too.
    pub fn find(&self, key: &OpKey) -> Option<&Operation> {
        // The same shape with other variable names is a different key.
        self.find_shape(&key.method, &key.path.shape()).filter(|operation| operation.key == *key)
    }

    /// Returns the operation that a request for this method and path calls. If several match, the
    /// one that the router prefers applies.
    pub fn find_path(&self, method: &Method, path: &str) -> Option<&Operation> {
        let is_called = |one: &&Operation| one.key.method == *method && one.key.path.matches(path);
        // Templates may overlap, such as `/a/{x}` and `/a/b`. Concrete paths precede templated ones
        // (OpenAPI 3.1, section 4.8.8.2), and the router uses the same order.
        self.operations.iter().filter(is_called).max_by_key(|one| one.key.path.precedence())
    }

    /// Returns the operation of this method with a path of this [shape](PathTemplate::shape),
    /// regardless of variable names.
    pub fn find_shape(&self, method: &Method, shape: &str) -> Option<&Operation> {
        self.by_shape.get(&(method.clone(), shape.to_owned())).map(|index| &self.operations[*index])
    }

    /// Adds an operation, or returns the existing one with the same method and shape.
    fn add(&mut self, operation: Operation) -> Result<(), &Operation> {
        let shape = (operation.key.method.clone(), operation.key.path.shape());
        // Templates that differ only in variable names are identical and must not exist twice (OpenAPI
        // 3.1, section 4.8.8).
        if let Some(index) = self.by_shape.get(&shape) {
            return Err(&self.operations[*index]);
        }
        self.by_shape.insert(shape, self.operations.len());
        self.operations.push(operation);
        Ok(())
    }
}

impl Response {
    /// Returns whether it applies to successes only.
    pub fn is_success(&self) -> bool {
        match self.status {
            StatusPattern::Exact(status) => status / 100 == 2,
            StatusPattern::Class(class) => class == 2,
            StatusPattern::Default => false,
        }
    }
}

impl Operation {
    /// Returns whether all its bodies are JSON. Any other body is forwarded unchanged, or refused.
    pub fn is_typed(&self) -> bool {
        let is_json = |response: &Response| response.body.is_none() || response.media.is_json();
        self.body.as_ref().is_none_or(|body| body.media.is_json()) && self.responses.iter().all(is_json)
    }

    /// Returns the types of the bodies of its successful responses.
    pub(crate) fn success_bodies(&self) -> impl Iterator<Item = &Type> {
        self.responses.iter().filter(|one| one.is_success()).filter_map(|one| one.body.as_ref())
    }

    /// Returns the declared response for a status: the exact one, otherwise its class, otherwise
    /// the default. If a success is declared, the default applies to errors only.
    pub fn response(&self, status: u16) -> Option<&Response> {
        // Most documents use `default` for errors next to a success. It must not give an unlisted success
        // the type of an error.
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
