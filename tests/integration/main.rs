//! All tests through the outside of the program, in one binary so that it links once.

mod admin_port;
mod borders;
mod config_files;
mod contract_walk;
mod demo_lines;
mod diagnostics;
mod gateway_two_witnesses;
mod gateway_upstream;
mod http_fields;
mod http_framing;
mod manual;
mod oauth_connect;
mod oauth_peer;
mod pack;
mod reload_pack;
mod sandbox;
mod serve_verb;
mod server_protocols;
mod store_cli;
mod store_files;
mod support;
mod token_clients;
mod token_kill;
mod token_refresh;
mod token_replicas;
mod typos;
