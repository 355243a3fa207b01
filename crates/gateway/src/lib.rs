//! The data path and what it needs: listeners, the tower stack, clients and their grants, the store, recording, the dual run and
//! telemetry. It sees plans, never the text of a mapping.
//!
//! A program that has the gateway inside begins at [`Gateway::builder`]; its packs come from the crate `switchback-compiler`, by
//! `mapping::compile`. The modules are the parts that the program `switchback` joins by itself: they change with it.

// What no other crate can reach says so, and the compiler finds it when nothing calls it.
#![warn(unreachable_pub)]
// Other programs build on this crate: what it offers says what it means, and when it fails.
#![deny(missing_docs, clippy::missing_errors_doc)]

mod batch;
pub mod body;
pub mod capture;
pub mod clients;
pub mod clock;
pub mod error;
pub mod events;
mod gateway;
mod heavy;
pub mod http_client;
mod interim;
pub mod memory;
pub mod outcome;
pub mod proxy;
pub mod resident;
pub mod retire;
pub mod secret;
pub mod server;
pub mod shadow;
mod shard;
pub mod store;
pub mod telemetry;
pub mod tls;
pub mod token;
pub mod tunnel;

pub use gateway::{BuildError, Builder, Gateway, GatewayLayer, Layered};
