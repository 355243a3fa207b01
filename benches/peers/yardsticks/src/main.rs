//! What Switchback is measured against, and what measures it; `benches/peers/run` builds and calls this.
//!
//! - `pass.rs`, `value.rs`: our yardsticks on hyper, passing through and translating with
//!   `serde_json::Value`; `proxy.rs` is what they share.
//! - `fixture.rs`, `bodies.rs`: the upstream of all peers, and what it answers.
//! - `tls.rs`, `secure.rs`, `relay.rs`: certificates, the fixture behind TLS, and a way to it that
//!   takes longer.
//! - `candidate.rs`: upstreams that a shadow should not be asked to wait for.
//! - `load.rs`, `wire.rs`: the load generator, and how both it and the fixture find the ends of messages.
//! - `bench/`: starts the peers, checks that they agree, measures them in turn and writes the tables.

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
    /// Start the peers, check that they agree, measure them in turn, write the tables
    Run(bench::Options),
    /// Count the gateway's instructions per call with callgrind and hold them against budgets
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
