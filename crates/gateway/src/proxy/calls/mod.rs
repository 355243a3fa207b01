//! One call to an upstream and what is done about it on its way: capture, credential, retry. `stack.rs` lists the layers, outermost
//! first. Knows nothing of plans.

pub(crate) mod call;
mod read_failure;
mod record;
pub mod retry;
mod send;
mod shadow_auth;
mod span;
pub(crate) mod stack;
pub(crate) mod upstream_auth;
