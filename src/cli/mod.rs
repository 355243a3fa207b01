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
mod decide;
#[cfg(feature = "sandbox")]
mod demo;
mod diff;
mod doctor;
mod events;
mod explain;
mod export;
mod fmt;
mod init;
mod key;
mod learn;
mod lsp;
mod man;
mod new;
mod notices;
mod pack;
mod packs;
mod phase;
mod reference;
mod replay;
mod report;
mod requests;
mod rollout;
#[cfg(feature = "sandbox")]
mod sandbox;
mod schema;
mod serve;
mod status;
mod stored;
mod tasks;
mod test;
mod unknown;
mod usage;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
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
    /// Manage data that the gateway stores for the old version: fill, status, clear
    Archive(archive::ArchiveArgs),
    /// Manage windows in which calls are rejected to announce a sunset: add, list, remove
    Brownout(brownout::BrownoutArgs),
    /// Record live traffic of a running gateway as an HTTP Archive
    Capture(capture::CaptureArgs),
    /// Compile a pack and print all findings
    Check(check::CheckArgs),
    /// Manage clients and their grants: add, list, connect, rotate, revoke, restore, sunset
    Client(client::ClientArgs),
    /// Print shell completions
    Completions(completions::CompletionsArgs),
    /// Go through the open decisions of a drafted pack
    Decide(decide::DecideArgs),
    /// Show differences found by the dual run: report, export
    Diff(diff::DiffArgs),
    /// Examine a deployment, before or while it runs
    Doctor(doctor::DoctorArgs),
    /// Manage waiting events: list, retry, drop
    Events(events::EventsArgs),
    /// Explain how a request is translated, with the mapping lines
    Explain(explain::ExplainArgs),
    /// Format the mapping files of a pack
    Fmt(fmt::FmtArgs),
    /// Draft a pack from the contracts of two versions
    Init(init::InitArgs),
    /// Manage the encryption key of the store: generate, rotate
    Key(key::KeyArgs),
    /// Report which members of two versions correspond, from recorded traffic of both
    Learn(learn::LearnArgs),
    /// Serve an editor over the Language Server Protocol
    Lsp(lsp::LspArgs),
    /// Write manual pages
    Man(man::ManArgs),
    /// Write a small pack to start from
    New(new::NewArgs),
    /// Test the receivers of notices to operators
    Notices(notices::NoticesArgs),
    /// Manage packs: export the built-in one, list those that served, restore one
    Pack(packs::PacksArgs),
    /// Manage the phases of operations: list, set, reset, transitions
    Phase(phase::PhaseArgs),
    /// Print a reference page as Markdown: configuration, metrics or admin API
    Reference(reference::ReferenceArgs),
    /// Run recorded traffic through a pack and report changed answers
    Replay(replay::ReplayArgs),
    /// Report what a pack translates, changes, loses and refuses
    Report(report::ReportArgs),
    /// List a sample of recent requests of a running gateway
    Requests(requests::RequestsArgs),
    /// Manage rollouts of operations by a plan: start, pause, resume, promote, abort, status
    Rollout(rollout::RolloutArgs),
    /// Run sandbox, gateway and studio in one process on loopback, with a migration in progress
    #[cfg(feature = "sandbox")]
    Demo(demo::DemoArgs),
    /// Run the gateway with a configuration file
    Serve(serve::ServeArgs),
    /// Run a simulation of the messaging service: v3, v2 and the authorization server
    #[cfg(feature = "sandbox")]
    Sandbox(sandbox::SandboxArgs),
    /// Print the JSON Schema of mapping files, packs or the configuration, for editors
    Schema(schema::SchemaArgs),
    /// Print one screen about a running gateway, with the next steps
    Status(status::StatusArgs),
    /// Run the examples of a pack
    Test(test::Args),
    /// List calls of clients to unknown operations
    Unknown(unknown::UnknownArgs),
    /// Report calls by client and operation, with their outcomes
    Usage(usage::UsageArgs),
}

/// Returns the command line, with its verbs by task in the help.
fn command() -> Command {
    tasks::by_task(Cli::command())
}

/// Parses the command line and runs the verb.
pub fn main() -> ExitCode {
    let parsed = command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
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
        Verb::Decide(args) => decide::run(&args),
        Verb::Diff(args) => diff::run(args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Events(args) => events::run(args),
        Verb::Explain(args) => exit_code(explain::run(&args)),
        Verb::Fmt(args) => exit_code(fmt::run(&args)),
        Verb::Init(args) => init::run(&args),
        Verb::Key(args) => key::run(args),
        Verb::Learn(args) => exit_code(learn::run(&args)),
        Verb::Lsp(args) => lsp::run(&args),
        Verb::Man(args) => man::run(&args),
        Verb::New(args) => exit_code(new::run(&args)),
        Verb::Notices(args) => notices::run(&args),
        Verb::Pack(args) => packs::run(args),
        Verb::Phase(args) => phase::run(args),
        Verb::Reference(args) => reference::run(&args),
        Verb::Replay(args) => exit_code(replay::run(&args)),
        Verb::Report(args) => exit_code(report::run(&args)),
        Verb::Requests(args) => requests::run(&args),
        Verb::Rollout(args) => rollout::run(args),
        #[cfg(feature = "sandbox")]
        Verb::Demo(args) => demo::run(&args),
        Verb::Serve(args) => exit_code(serve::run(&args)),
        #[cfg(feature = "sandbox")]
        Verb::Sandbox(args) => sandbox::run(args),
        Verb::Schema(args) => exit_code(schema::run(&args)),
        Verb::Status(args) => status::run(&args),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Verbs without `--json`, each with the reason.
    const WITHOUT_JSON: [(&str, &str); 14] = [
        ("capture", "writes an archive"),
        ("completions", "prints a script"),
        ("demo", "runs until it is stopped"),
        ("explain", "prints text for people; `report` has the same facts as JSON"),
        ("fmt", "writes files"),
        ("init", "writes files, with the decisions as JSON"),
        ("key generate", "prints one value"),
        ("learn", "writes files, with the findings as JSON"),
        ("lsp", "speaks a protocol"),
        ("man", "writes files"),
        ("new", "writes files"),
        ("pack export", "writes files"),
        ("reference", "prints Markdown; `schema config` and `/api/openapi.json` are JSON"),
        ("sandbox", "runs until it is stopped"),
    ];
    /// The verb `schema` prints JSON in any case.
    const IS_JSON: &str = "schema";

    /// Collects the verbs that run, such as `client add`.
    fn leaves(command: &Command, path: &str, inherited: bool, found: &mut Vec<(String, bool)>) {
        let own = command.get_arguments().find(|argument| argument.get_id() == "json");
        let has_json = inherited || own.is_some();
        let is_global = inherited || own.is_some_and(clap::Arg::is_global_set);
        let mut verbs = command.get_subcommands().filter(|verb| verb.get_name() != "help").peekable();
        if verbs.peek().is_none() {
            found.push((path.to_owned(), has_json));
        }
        for verb in verbs {
            let path = format!("{path} {}", verb.get_name());
            leaves(verb, path.trim_start(), is_global, found);
        }
    }

    // Without the sandbox, its verbs are missing.
    #[cfg(feature = "sandbox")]
    #[test]
    fn every_verb_that_prints_has_json() {
        let mut found = Vec::new();
        leaves(&command(), "", false, &mut found);
        let without = found.iter().filter(|(verb, has_json)| !has_json && verb != IS_JSON);
        let mut without: Vec<&str> = without.map(|(verb, _)| verb.as_str()).collect();
        without.sort_unstable();
        assert_eq!(without, WITHOUT_JSON.map(|(verb, _)| verb));
    }

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }
}
