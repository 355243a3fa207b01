//! The layers of the data path, one per file; `stack.rs` has their order. A layer sees the request
//! and its context. It depends neither on its neighbours nor on how a response is produced.

mod access_log;
pub(crate) mod authenticate;
mod count;
mod ending;
pub(crate) mod form_token;
pub(crate) mod front_fields;
pub(crate) mod limit;
pub(crate) mod middleware;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod request_id;
pub(crate) mod rescue;
pub(crate) mod retire;
pub(crate) mod route;
mod sample;
pub(crate) mod timeout;
mod trace;
pub(crate) mod validate;
