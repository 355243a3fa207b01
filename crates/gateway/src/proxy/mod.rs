//! The data path: everything between a client's connection and the upstream's. `stack.rs` lists the
//! layers, outermost first, each with the reason for its place. It never sees mapping text: only
//! plans.
//!
//! What is known about a request and what serves it is in the files here. The rooms build on it,
//! and on one another only as listed: `layers` decide about a request before and after its answer;
//! `compose` answers it by its plan; `calls` takes one call to an upstream; `upstream` has the
//! connections; `dual` asks the other side too.

pub(crate) mod concurrency;
pub mod context;
pub(crate) mod error_form;
pub(crate) mod facts;
pub mod forwarding;
pub mod headers;
pub mod language;
pub mod limits;
pub mod origin;
pub mod program;
pub(crate) mod record;
pub mod request;
pub mod side_upstreams;
pub mod stack;
pub mod unknown_calls;

pub mod calls;
pub mod compose;
pub(crate) mod dual;
pub(crate) mod layers;
pub mod upstream;

use crate::body::Body;
pub use request::Request;

/// An answer on its way back.
pub type Response = http::Response<Body>;
