//! All tests through the outside of the program, in one binary so that it links once.

mod admin_port;
mod borders;
mod config_files;
mod contract_walk;
mod gateway_upstream;
mod http_fields;
mod http_framing;
mod sandbox;
mod support;
