//! The examples of a pack, which are its tests. The compiler reads them; `translate::example`
//! executes them.

use super::body::ValueOp;
use super::json::{Key, Raw};
use super::loss::Loss;
use super::{Origin, PerSide, SideId};

/// One example.
#[derive(Clone, Debug)]
pub struct Example {
    /// The kind of example with its data.
    pub kind: ExampleKind,
    /// Place of the example in the mapping.
    pub origin: Origin,
}

/// The kinds of example.
#[derive(Clone, Debug)]
pub enum ExampleKind {
    /// A request through a route.
    Route(Box<RouteExample>),
    /// A value through a shape.
    Shape(ShapeExample),
    /// A page of a harvest.
    Harvest(Box<HarvestExample>),
}

/// One page of a harvest: the expected calls with their replies, and the expected entries.
#[derive(Clone, Debug)]
pub struct HarvestExample {
    /// Index into [`super::Pack::harvests`].
    pub harvest: usize,
    /// Number of the page.
    pub page: i64,
    /// The expected exchange. Its end is always a 200 response.
    pub exchange: Exchange,
}

/// A request, the expected calls with their replies, and the expected end.
#[derive(Clone, Debug)]
pub struct RouteExample {
    /// The side of the client.
    pub serves: SideId,
    /// The request method.
    pub method: http::Method,
    /// Path and query as sent by a client of the served side, without the front's prefix.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// JSON text of the request body, if any.
    pub body: Option<Raw>,
    /// Settings by dotted name; others have their defaults.
    pub config: Vec<(String, Raw)>,
    /// Contents of the archives before the request.
    pub archived: Vec<Archived>,
    /// The expected exchange.
    pub exchange: Exchange,
    /// The expected exchange of a repeated request, with the replies that `resume` stored.
    pub again: Option<Exchange>,
}

/// The expected calls of a request, in order, and its end.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// In the order of execution.
    pub calls: Vec<ExampleCall>,
    /// All entries that must be stored; their ages are ignored.
    pub keeps: Vec<Archived>,
    /// The expected end.
    pub end: ExampleEnd,
}

/// An entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Archived {
    /// The archive.
    pub archive: super::ArchiveId,
    /// Key of the entry.
    pub key: String,
    /// Age in seconds.
    pub age: u64,
    /// Value; `None` if the entry consists of its key.
    pub value: Option<Raw>,
}

/// An expected call and its reply.
#[derive(Clone, Debug)]
pub struct ExampleCall {
    /// The expected method.
    pub method: http::Method,
    /// Path and query; parameters in any order.
    pub target: String,
    /// Required header fields; others are allowed.
    pub headers: Vec<(String, String)>,
    /// The expected body. `None`: the call must have no body.
    pub body: Option<Raw>,
    /// Status of the reply.
    pub status: u16,
    /// Header fields of the reply, names in lower case.
    pub reply_headers: Vec<(String, String)>,
    /// Body of the reply, if any.
    pub reply: Option<Raw>,
    /// Place of the call in the mapping.
    pub origin: Origin,
}

/// The expected end of a request.
#[derive(Clone, Debug)]
pub enum ExampleEnd {
    /// A response with this status and body.
    Answer {
        /// Expected status.
        status: u16,
        /// Required header fields, names in lower case; others are allowed.
        headers: Vec<(String, String)>,
        /// Expected body.
        body: Wanted,
    },
    /// A refusal, by the name of its reason.
    Refused(String),
}

/// A value that an example provides or expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// No body, or no value.
    None,
    /// `'?'`: a placeholder to be filled in.
    Open,
    /// This JSON text. It is compared as a value, regardless of spelling.
    Json(Raw),
}

/// A value of each side, converted in both directions.
#[derive(Clone, Debug)]
pub struct ShapeExample {
    /// Name of the shape.
    pub shape: String,
    /// The side whose value is written first; the other value is computed from it.
    pub source: SideId,
    /// The values by side.
    pub values: PerSide<Wanted>,
    /// Places of the source that do not survive the round trip, such as `$.a.b`.
    pub lost: Vec<String>,
}

/// A named shape in both directions, for examples, laws and explanations. Routes have their own
/// copies.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Name by which mappings and examples refer to the shape.
    pub name: String,
    /// `to[0]` produces values of the old side. `None` if the shape cannot produce values of that
    /// side.
    pub to: PerSide<Option<ShapePlan>>,
    /// Place of the declaration in the mapping.
    pub origin: Origin,
}

/// A shape in one direction.
#[derive(Clone, Debug)]
pub struct ShapePlan {
    /// Produces the value of the other side.
    pub op: ValueOp,
    /// Places of the source that the target lacks.
    pub losses: Vec<Loss>,
    /// Fields that a route supplies, in the order of [`super::CloseFrom::Supplied`].
    pub supplied: Vec<Key>,
}
