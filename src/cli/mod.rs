//! The command line: one verb per file. A verb parses its arguments, calls the library, and
//! converts the result into text and an exit code.
//!
//! Exit codes: 0 success, 1 the examined object has findings, 2 usage error, 3 the verb could not
//! run. `diff report` also has 4: not enough evidence.

#[macro_use]
mod output;

mod admin_port;
mod archive;
mod brownout;
mod capture;
mod check;
mod client;
mod completions;
#[cfg(feature = "sandbox")]
mod demo;
mod diff;
mod events;
mod explain;
mod export;
mod init;
mod key;
mod man;
mod pack;
mod phase;
mod replay;
mod report;
#[cfg(feature = "sandbox")]
mod sandbox;
mod schema;
mod serve;
mod stored;
mod test;
mod unknown;
mod usage;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The version, with the commit if known.
const VERSION: &str = env!("SWITCHBACK_VERSION");

/// Carries integrations across an API version change.
#[derive(Parser)]
#[command(name = "switchback", version = VERSION, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// What the gateway keeps of its own: fill, status, clear
    Archive(archive::ArchiveArgs),
    /// Windows in which calls are turned away, so that an end is noticed before it comes: add, list, remove
    Brownout(brownout::BrownoutArgs),
    /// Live traffic of a running gateway, as an HTTP Archive
    Capture(capture::CaptureArgs),
    /// Compiles a pack and shows every finding
    Check(check::CheckArgs),
    /// Clients and their grants: add, list, connect, rotate, revoke, restore, sunset
    Client(client::ClientArgs),
    /// Completions of the command line, for a shell
    Completions(completions::CompletionsArgs),
    /// What the dual run found: report, export
    Diff(diff::DiffArgs),
    /// Events that wait for their receivers: list, retry, drop
    Events(events::EventsArgs),
    /// What a request would become, and which line of the mapping says so
    Explain(explain::ExplainArgs),
    /// Drafts a pack from the contracts of two versions
    Init(init::InitArgs),
    /// The sealing key: generate, rotate
    Key(key::KeyArgs),
    /// Manual pages, one for each verb
    Man(man::ManArgs),
    /// The pack that is built in: export
    Pack(export::ExportArgs),
    /// How operations are answered, and moving them while gateways serve: list, set, reset, transitions
    Phase(phase::PhaseArgs),
    /// Recorded traffic through a pack that may have changed: which answers change
    Replay(replay::ReplayArgs),
    /// What a pack keeps, changes, loses and refuses
    Report(report::ReportArgs),
    /// Sandbox, gateway and studio in one process on loopback, with a migration under way, ready to be tried
    #[cfg(feature = "sandbox")]
    Demo(demo::DemoArgs),
    /// The gateway against real upstreams, as a configuration file says
    Serve(serve::ServeArgs),
    /// The service itself, stateful, on one address: v3, v2 and the authorization server
    #[cfg(feature = "sandbox")]
    Sandbox(sandbox::SandboxArgs),
    /// JSON Schema of mapping files, packs and the configuration, for editors
    Schema(schema::SchemaArgs),
    /// Runs the examples of a pack
    Test(test::Args),
    /// What clients of a running gateway call that no contract has
    Unknown(unknown::UnknownArgs),
    /// Who still calls what, and what becomes of it
    Usage(usage::UsageArgs),
}

/// Parses the command line and runs the verb.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => without_values(error).exit(),
    };
    match cli.verb {
        Verb::Archive(args) => archive::run(args),
        Verb::Brownout(args) => brownout::run(args),
        Verb::Capture(args) => capture::run(&args),
        Verb::Check(args) => exit_code(check::run(&args)),
        Verb::Client(args) => client::run(args),
        Verb::Completions(args) => completions::run(&args),
        Verb::Diff(args) => diff::run(args),
        Verb::Events(args) => events::run(args),
        Verb::Explain(args) => exit_code(explain::run(&args)),
        Verb::Init(args) => init::run(&args),
        Verb::Key(args) => key::run(args),
        Verb::Man(args) => man::run(&args),
        Verb::Pack(args) => exit_code(export::run(&args)),
        Verb::Phase(args) => phase::run(args),
        Verb::Replay(args) => exit_code(replay::run(&args)),
        Verb::Report(args) => exit_code(report::run(&args)),
        #[cfg(feature = "sandbox")]
        Verb::Demo(args) => demo::run(&args),
        Verb::Serve(args) => exit_code(serve::run(&args)),
        #[cfg(feature = "sandbox")]
        Verb::Sandbox(args) => sandbox::run(args),
        Verb::Schema(args) => exit_code(schema::run(&args)),
        Verb::Test(args) => exit_code(test::run(&args)),
        Verb::Unknown(args) => unknown::run(&args),
        Verb::Usage(args) => usage::run(args),
    }
}

/// Returns the exit code of a verb, which has reported its failure.
fn exit_code(outcome: Result<ExitCode, ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|failed| failed)
}

/// Replaces an invalid value in errors.
const UNSHOWN: &str = "…";

/// Removes the invalid value from a clap error. It may be a secret where a reference was expected,
/// or one without its option, and errors end up in logs. Values of closed lists are printed.
fn without_values(mut error: clap::Error) -> clap::Error {
    match error.kind() {
        ErrorKind::ValueValidation => {
            error.insert(ContextKind::InvalidValue, ContextValue::String(UNSHOWN.to_owned()));
        }
        ErrorKind::UnknownArgument => {
            if let Some(ContextValue::String(text)) = error.get(ContextKind::InvalidArg) {
                let option = text.split('=').next().filter(|name| name.starts_with('-')).map(str::to_owned);
                let is_option = option.is_some();
                let shown = option.unwrap_or_else(|| UNSHOWN.to_owned());
                error.insert(ContextKind::InvalidArg, ContextValue::String(shown));
                if !is_option {
                    // The suggestion repeats the argument.
                    error.remove(ContextKind::Suggested);
                }
            }
        }
        _ => {}
    }
    error
}
