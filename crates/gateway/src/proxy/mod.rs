//! The data path, from a client's connection to the upstream's. `stack.rs` lists the layers,
//! outermost first, with the reason for each position. The data path sees compiled plans only,
//! never mapping text.
//!
//! The files of this folder describe a request and the program that serves it. Its modules build on
//! them, and on each other only as follows: `layers` process a request before and after its
//! response; `compose` executes its plan; `calls` sends one call to an upstream; `upstream` owns
//! the connections; `dual` compares with the other side.

pub(crate) mod concurrency;
pub mod context;
pub mod cors;
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
