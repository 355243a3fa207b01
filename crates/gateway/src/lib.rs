//! The data path: listeners, the tower stack, clients and their OAuth grants, the store, recording,
//! dual runs and telemetry. The crate reads compiled plans and never parses mapping files.
//!
//! Programs that embed the gateway start at [`Gateway::builder`]. The crate `switchback-compiler`
//! compiles packs with `mapping::compile`. The modules are public for the program `switchback`; they
//! change with it.

// Keeps `pub` limited to items that other crates can reach, so the compiler reports unused ones.
#![warn(unreachable_pub)]
// Other programs build on this crate, so every public item documents its meaning and errors.
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
pub mod notices;
pub mod outcome;
mod permit;
pub mod probe;
pub mod proxy;
pub mod recent;
pub mod resident;
pub mod retire;
pub mod secret;
pub mod server;
pub mod shadow;
mod shard;
pub mod signature;
pub mod store;
pub mod telemetry;
pub mod tls;
pub mod token;
pub mod tunnel;

pub use gateway::{
    BuildError, DualSettings, FrontSettings, Gateway, GatewayBuilder, GatewayLayer, GatewayParts, Layered,
    ProgramSettings, ServiceSettings, Upstreams,
};
