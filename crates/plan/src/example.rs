//! The examples of a pack, which are its tests: what `translate::example` runs and `mapping` reads.

use super::body::{Raw, ValueOp};
use super::route::Loss;
use super::{Key, Origin, PerSide, SideId};

/// One example.
#[derive(Clone, Debug)]
pub struct Example {
    /// What is tried.
    pub kind: ExampleKind,
    /// Where the mapping gives it.
    pub origin: Origin,
}

/// The two kinds of example.
#[derive(Clone, Debug)]
pub enum ExampleKind {
    /// A request through a route.
    Route(Box<RouteExample>),
    /// A value through a shape.
    Shape(ShapeExample),
    /// A page of a harvest.
    Harvest(Box<HarvestExample>),
}

/// One page of a harvest: the calls it must make with their replies, and what it must keep.
#[derive(Clone, Debug)]
pub struct HarvestExample {
    /// Index into [`super::Pack::harvests`].
    pub harvest: usize,
    /// Number of the page that is read.
    pub page: i64,
    /// Its end is the answer 200, whatever the page.
    pub exchange: Exchange,
}

/// A request, the calls it must make with the replies they get, and how it ends.
#[derive(Clone, Debug)]
pub struct RouteExample {
    /// The side whose client asks.
    pub serves: SideId,
    /// The method that the client uses.
    pub method: http::Method,
    /// Path and query as a client of the served side sends them, without the front's prefix.
    pub target: String,
    /// Lower-case names.
    pub headers: Vec<(String, String)>,
    /// JSON text of the request's body; none = no body.
    pub body: Option<Raw>,
    /// Settings by dotted name; the rest keep their defaults.
    pub config: Vec<(String, Raw)>,
    /// What archives have before the request.
    pub archived: Vec<Archived>,
    /// What must happen.
    pub exchange: Exchange,
    /// The same request once more, with the replies that `resume` remembered.
    pub again: Option<Exchange>,
}

/// The calls of a request, in order, and its end.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// In the order in which they must be made.
    pub calls: Vec<ExampleCall>,
    /// All that must be kept; ages are not looked at.
    pub keeps: Vec<Archived>,
    /// How it must end.
    pub end: ExampleEnd,
}

/// An entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Archived {
    /// Which one it lies in.
    pub archive: super::ArchiveId,
    /// Under which it lies.
    pub key: String,
    /// In seconds.
    pub age: u64,
    /// None where an entry is its key alone.
    pub value: Option<Raw>,
}

/// A call that must be made, and its reply.
#[derive(Clone, Debug)]
pub struct ExampleCall {
    /// The method that must be used.
    pub method: http::Method,
    /// Path and query; parameters in any order.
    pub target: String,
    /// Header fields that it must have; there may be others.
    pub headers: Vec<(String, String)>,
    /// The body that must be sent; none = none may be sent.
    pub body: Option<Raw>,
    /// Status of the reply.
    pub status: u16,
    /// Header fields of the reply, names in lower case.
    pub reply_headers: Vec<(String, String)>,
    /// None = empty.
    pub reply: Option<Raw>,
    /// Where the example gives it.
    pub origin: Origin,
}

/// How a request must end.
#[derive(Clone, Debug)]
pub enum ExampleEnd {
    /// An answer with this status and body; other header fields than those given do not matter.
    Answer {
        /// Status that the client must get.
        status: u16,
        /// Lower-case names; other fields may be there too.
        headers: Vec<(String, String)>,
        /// Body that the client must get.
        body: Wanted,
    },
    /// By name of the reason.
    Refused(String),
}

/// A value that an example gives or asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing: no body, or no value.
    None,
    /// `'?'`: to be filled in.
    Open,
    /// This JSON text; compared as a value, whatever its spelling.
    Json(Raw),
}

/// One value on each side; runs both ways.
#[derive(Clone, Debug)]
pub struct ShapeExample {
    /// Name of the shape.
    pub shape: String,
    /// The side whose value was written first: the other is made from it.
    pub source: SideId,
    /// By side.
    pub values: PerSide<Wanted>,
    /// Places of the source that do not come back, such as `$.a.b`.
    pub lost: Vec<String>,
}

/// A named shape in both directions, for examples, laws and explanations; routes carry their own copies.
#[derive(Clone, Debug)]
pub struct Shape {
    /// By which mappings and examples call it.
    pub name: String,
    /// `to[0]` makes values of the old side. None where the shape cannot build that side at all.
    pub to: PerSide<Option<ShapePlan>>,
    /// Where the mapping declares it.
    pub origin: Origin,
}

/// A shape in one direction.
#[derive(Clone, Debug)]
pub struct ShapePlan {
    /// What makes the value of the other side.
    pub op: ValueOp,
    /// Places of the source that the target does not have.
    pub losses: Vec<Loss>,
    /// Fields that a route supplies, in the order of [`super::CloseFrom::Supplied`].
    pub supplied: Vec<Key>,
}
