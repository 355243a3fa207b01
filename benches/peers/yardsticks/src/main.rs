//! The program that measures Switchback against its peers; `benches/peers/run` builds and calls it.
//!
//! - `pass.rs`, `value.rs`: our yardsticks on hyper, forwarding and translating with
//!   `serde_json::Value`; `proxy.rs` has their common parts.
//! - `fixture.rs`, `bodies.rs`: the upstream of all peers, and its answers.
//! - `tls.rs`, `secure.rs`, `relay.rs`: certificates, the fixture behind TLS, and a slower path to
//!   it.
//! - `candidate.rs`: upstreams that a shadow should not wait for.
//! - `load.rs`, `wire.rs`: the load generator, and the detection of message ends in both it and the
//!   fixture.
//! - `bench/`: starts the peers, checks that they agree, measures them in rotation and writes the
//!   tables.

mod bench;
mod bodies;
mod candidate;
mod fixture;
mod load;
mod pass;
mod proxy;
mod relay;
mod secure;
mod tls;
mod value;
mod wire;

use anyhow::Result;
use clap::Parser;
use std::net::SocketAddr;

#[derive(Parser)]
#[command(about = "Measures Switchback beside what a user would pick instead")]
enum Verb {
    /// Start the peers, check that they agree, measure them in rotation, write the tables
    Run(bench::Options),
    /// Count the gateway's instructions per call with callgrind and compare them with budgets
    Instructions(bench::instructions::Options),
    /// The upstream that all peers share, alone
    Fixture {
        #[arg(long, default_value = "127.0.0.1:9003")]
        listen: SocketAddr,
    },
    /// Plain hyper, passing through
    Hyper {
        #[arg(long)]
        listen: SocketAddr,
        #[arg(long)]
        upstream: SocketAddr,
    },
    /// Hyper and `serde_json::Value`, translating
    Value {
        #[arg(long)]
        listen: SocketAddr,
        #[arg(long)]
        upstream: SocketAddr,
        #[arg(long, default_value = fixture::CLIENT_TOKEN)]
        client_token: String,
        #[arg(long, default_value = fixture::ACCESS_TOKEN)]
        access_token: String,
    },
}

fn main() -> Result<()> {
    match Verb::parse() {
        Verb::Run(options) => bench::run(options),
        Verb::Instructions(options) => bench::instructions::run(&options),
        Verb::Fixture { listen } => {
            let fixture = fixture::Fixture::start(listen)?;
            println!("http://{}/v3 with `Authorization: Bearer {}`", fixture.address, fixture::ACCESS_TOKEN);
            fixture.wait();
            Ok(())
        }
        Verb::Hyper { listen, upstream } => pass::serve(listen, upstream),
        Verb::Value { listen, upstream, client_token, access_token } => {
            value::serve(listen, upstream, &client_token, &access_token)
        }
    }
}
