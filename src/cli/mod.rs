//! The command line: one verb per file. A verb parses its arguments, calls the library and turns the result into text and
//! an exit code. Exit codes: 0 done, 1 the thing examined has findings, 2 wrong use, 3 could not run.

mod client;
mod key;
mod sandbox;
mod stored;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Carries integrations across an API version change.
#[derive(Parser)]
#[command(name = "switchback", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Clients and their grants: add, list, connect, rotate, revoke
    Client(client::Args),
    /// The sealing key: generate, rotate
    Key(key::Args),
    /// The service itself, stateful, on one address: v3, v2 and the authorization server
    Sandbox(sandbox::Args),
}

/// Parses the command line and runs the verb.
pub fn main() -> ExitCode {
    match Cli::parse().verb {
        Verb::Client(args) => client::run(args),
        Verb::Key(args) => key::run(args),
        Verb::Sandbox(args) => sandbox::run(args),
    }
}
