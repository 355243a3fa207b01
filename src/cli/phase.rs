//! `switchback phase`: lists and changes the phases of operations while gateways serve.

use super::output::list;
use super::stored::{Format, StoreArgs, VerbError, block_on};
use crate::app;
use crate::operate::operation_name;
use clap::Subcommand;
use std::process::ExitCode;
use switchback_gateway::shadow::{Phase, PhaseChange, PhaseInfo, PhaseView, Share, Transition};

/// Arguments of `switchback phase`.
#[derive(clap::Args)]
pub struct PhaseArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(subcommand)]
    verb: PhaseVerb,
}

#[derive(Subcommand)]
enum PhaseVerb {
    /// List operations with their phases and the source of each phase
    List,
    /// Set the phase of an operation; overrides the configuration until it is reset
    #[command(after_help = "Examples:\n  \
        switchback phase set 'GET /things' shadow\n  \
        switchback phase set 'GET /things' canary --share 0.1\n  \
        switchback phase set 'GET /things' translated --share 0.01    # checks one request in a hundred\n  \
        switchback phase set 'GET /things' translated --force --reason 'the old service is wrong'")]
    Set(SetArgs),
    /// Return an operation to its configured phase and restart its evidence
    Reset(ResetArgs),
    /// List transitions with time, author and reason, newest first
    Transitions {
        /// Maximum number
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        count: u32,
    },
}

#[derive(clap::Args)]
pub(super) struct OperationName {
    /// Operation, from `switchback phase list`, such as 'GET /things' or 'v2 GET /things'
    operation: String,
    /// Side that the clients use; required if several sides have the operation
    #[arg(long)]
    side: Option<String>,
}

impl OperationName {
    /// Returns the side, if given, and the name of the operation.
    pub(super) fn parts(&self) -> (Option<&str>, &str) {
        operation_name(self.side.as_deref(), &self.operation)
    }
}

#[derive(clap::Args)]
struct ResetArgs {
    #[command(flatten)]
    of: OperationName,
    #[command(flatten)]
    why: ReasonArgs,
}

#[derive(clap::Args)]
pub(super) struct ReasonArgs {
    /// Reason, for the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    /// Apply the transition against the evidence; requires --reason
    #[arg(long, requires = "reason")]
    force: bool,
}

impl ReasonArgs {
    pub(super) fn word<'w>(&'w self, who: &'w str) -> PhaseChange<'w> {
        // `None`: a command line has displayed no earlier state that could be outdated.
        PhaseChange { who, reason: self.reason.trim(), seen: None, force: self.force }
    }
}

#[derive(clap::Args)]
struct SetArgs {
    #[command(flatten)]
    of: OperationName,
    /// legacy, shadow, canary or translated
    phase: String,
    /// For canary: share of clients answered by the other side. For translated: share of requests that are
    /// compared
    #[arg(long, value_name = "SHARE")]
    share: Option<Share>,
    #[command(flatten)]
    why: ReasonArgs,
}

pub fn run(args: PhaseArgs) -> ExitCode {
    block_on(manage(args))
}

async fn manage(args: PhaseArgs) -> Result<(), VerbError> {
    let config = args.store.configuration()?;
    let opened = args.store.open_existing().await?;
    let (format, by) = (args.store.format(), args.store.author());
    let file = args.store.file().map(ToOwned::to_owned);
    let phases = app::phases(&config, opened.store.clone(), file).await?;
    match args.verb {
        PhaseVerb::List => {
            let all = phases.list();
            format.print(&all, || list(all.iter().map(line), "No operations."));
        }
        PhaseVerb::Set(args) => {
            let phase = Phase::parse(&args.phase, args.share)?;
            let (side, operation) = args.of.parts();
            let word = args.why.word(&by);
            show(format, &phases.set_by_word(side, operation, Some(phase), word).await?);
        }
        PhaseVerb::Reset(args) => {
            let (side, operation) = args.of.parts();
            let word = args.why.word(&by);
            show(format, &phases.set_by_word(side, operation, None, word).await?);
        }
        PhaseVerb::Transitions { count } => {
            let all = phases.transitions(count).await?;
            format.print(&all, || list(all.iter().map(transition_lines), "No transitions."));
        }
    }
    opened.store.close().await;
    Ok(())
}

fn show(format: Format, info: &PhaseInfo) {
    format.print(info, || line(info));
}

fn line(info: &PhaseInfo) -> String {
    let since = info.since.as_deref().map(|at| format!(" at {at}")).unwrap_or_default();
    let from = match info.from.as_str() {
        "configuration" => "as configured".to_owned(),
        by => format!("set by the {by}{since}; configured: {}", words(&info.configured)),
    };
    format!("{:<4} {:<40} {:<18} {from}", info.side, info.operation, words(&info.now))
}

fn words(shown: &PhaseView) -> String {
    match shown.share {
        Some(share) => format!("{} {share}", shown.phase),
        None => shown.phase.to_owned(),
    }
}

fn transition_lines(one: &Transition) -> String {
    let who = if one.who.is_empty() { String::new() } else { format!(", {}", one.who) };
    let mut lines = format!(
        "{}  {} {}: {} → {}, by the {}{who}",
        one.at, one.side, one.operation, one.from, one.to, one.by
    );
    if !one.evidence.is_empty() {
        lines += &format!("\n    {}", one.evidence);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_phase_and_whether_it_was_set_or_configured() {
        let canary = Phase::parse("canary", Share::new(0.1)).expect("a phase");
        let mut info = PhaseInfo {
            version: 0,
            held: None,
            side: "v2".to_owned(),
            operation: "GET /things".to_owned(),
            writes: false,
            now: Phase::Legacy.into(),
            from: "configuration".to_owned(),
            since: None,
            configured: Phase::Legacy.into(),
        };
        let words = |info: &PhaseInfo| line(info).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&info), "v2 GET /things legacy as configured");
        (info.now, info.from) = (canary.into(), "operator".to_owned());
        info.since = Some("2026-01-02T00:00:00Z".to_owned());
        assert_eq!(
            words(&info),
            "v2 GET /things canary 0.1 set by the operator at 2026-01-02T00:00:00Z; configured: legacy"
        );
    }

    #[test]
    fn a_transition_has_its_author_and_its_reason() {
        let mut one = Transition {
            at: "2026-01-02T00:00:00Z".to_owned(),
            side: "v2".to_owned(),
            operation: "GET /things".to_owned(),
            from: "shadow".to_owned(),
            to: "canary 0.1".to_owned(),
            by: "operator".to_owned(),
            who: "Edsger (command line)".to_owned(),
            evidence: "it is ready".to_owned(),
        };
        let moved = "2026-01-02T00:00:00Z  v2 GET /things: shadow → canary 0.1, by the ";
        assert_eq!(
            transition_lines(&one),
            format!("{moved}operator, Edsger (command line)\n    it is ready")
        );
        (one.by, one.who, one.evidence) = ("gate".to_owned(), String::new(), String::new());
        assert_eq!(transition_lines(&one), format!("{moved}gate"));
    }
}
