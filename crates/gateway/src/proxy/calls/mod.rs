//! One call to an upstream and what is done about it on its way: credential, retry. Knows nothing of plans and bodies.

pub mod behalf;
pub mod call;
pub mod retry;
pub mod upstream_auth;
