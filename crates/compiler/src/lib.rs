//! The front end: text in, plans or numbered findings out. Contracts are read from OpenAPI documents, mapping files are checked
//! against them and lowered. What comes out is a `switchback_plan::Pack`; nothing here runs it.

// What no other crate can reach says so, and the compiler finds it when nothing calls it.
#![warn(unreachable_pub)]
#![deny(missing_docs)]

pub mod contract;
pub mod diagnostic;
pub mod init;
pub mod mapping;
pub mod yaml;
