//! The data path: everything between a client's connection and the upstream's. `stack.rs` lists the layers, outermost
//! first, each with the reason for its place; the other files hold one layer each, or something several of them need.
//! It never sees mapping text: only plans.

pub mod after;
pub mod call;
pub mod coding;
pub mod compose;
pub mod context;
pub mod converted;
pub mod error_form;
mod finish;
pub mod headers;
pub mod hold;
pub mod limits;
pub mod program;

pub mod access_log;
pub mod announce;
pub mod authenticate;
pub mod behalf;
mod beside;
pub mod dual;
pub mod forward;
pub mod intake;
pub mod limit;
mod line;
mod lines;
pub mod metrics;
pub mod pair;
pub mod phase;
mod planned;
mod read_back;
pub mod record;
pub mod request_id;
pub mod rescue;
pub mod resume;
pub mod retry;
pub mod route;
pub mod stack;
mod tee;
pub mod timeout;
pub mod upstream;
pub mod upstream_auth;

use crate::body::Body;
use context::Facts;
use std::sync::Arc;

/// A request on its way through the stack: few words to hand down, since layers pass it on more often than they look at it.
#[derive(Debug)]
pub struct Request {
    /// Its head, and what is known about it.
    pub facts: Arc<Facts>,
    pub body: Body,
}

/// An answer on its way back.
pub type Response = http::Response<Body>;
