//! The layers around one call to an upstream: capture, credential, retry. `stack.rs` lists them,
//! outermost first. They do not depend on plans.

pub(crate) mod call;
mod read_failure;
mod record;
pub mod retry;
mod send;
mod shadow_auth;
mod span;
pub(crate) mod stack;
pub(crate) mod upstream_auth;
