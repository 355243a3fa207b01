//! The compiler of packs: reads contracts from OpenAPI documents, checks mapping files against
//! them, and lowers them to a `switchback_plan::Pack`, or reports numbered findings. It does not
//! execute plans.

// Items that no other crate uses must not be `pub`, so that the compiler reports them when they
// become unused.
#![warn(unreachable_pub)]
#![deny(missing_docs)]

pub mod contract;
pub mod diagnostic;
pub mod init;
pub mod learn;
pub mod mapping;
pub mod yaml;
