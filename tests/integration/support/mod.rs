//! Common parts of the gateway's tests: both ends of the wire, a small pack, a gateway that serves
//! it, an authorization server that misbehaves on request, a PostgreSQL of our own, and a gateway's
//! tokens.

pub mod api_server;
pub mod authority;
pub mod dual;
pub mod editor;
pub mod gateway;
pub mod http;
pub mod pack;
pub mod packs;
pub mod peers;
pub mod postgres;
pub mod program;
pub mod python;
pub mod raw;
mod raw_http2;
pub mod serving;
pub mod sources;
pub mod studio;
pub mod tls;
pub mod tokens;
pub mod values;
pub mod witness;
