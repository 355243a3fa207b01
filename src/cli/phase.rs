//! `switchback phase`: how operations are answered, and moving them while gateways serve.

use super::stored::{Failure, Format, StoreArgs, block_on, print_json};
use crate::app;
use clap::Subcommand;
use std::process::ExitCode;
use switchback_gateway::shadow::{Phase, PhaseInfo, Phases, Share, Shown, Word};

/// Arguments of `switchback phase`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    store: StoreArgs,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Every operation with its phase, and where that comes from
    List,
    /// Set the phase of an operation; what is set wins over the configuration until it is reset
    #[command(after_help = "Examples:\n  \
        switchback phase set 'GET /things' shadow\n  \
        switchback phase set 'GET /things' canary --share 0.1\n  \
        switchback phase set 'GET /things' translated --share 0.01    # checks one request in a hundred\n  \
        switchback phase set 'GET /things' translated --force --reason 'the old service is wrong'")]
    Set(SetArgs),
    /// Take back what was set: the operation is in its configured phase again, and its evidence is counted anew
    Reset(ResetArgs),
    /// What was moved, when, by whom and why; newest first
    Transitions {
        /// How many
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        count: u32,
    },
}

#[derive(clap::Args)]
struct Named {
    /// Operation, as `switchback phase list` writes it
    operation: String,
    /// Side that clients speak; only needed where several sides have the operation
    #[arg(long)]
    side: Option<String>,
}

#[derive(clap::Args)]
struct ResetArgs {
    #[command(flatten)]
    of: Named,
    #[command(flatten)]
    why: Why,
}

#[derive(clap::Args)]
struct Why {
    /// Reason, for the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    /// Move it although the evidence is against it; takes --reason
    #[arg(long, requires = "reason")]
    force: bool,
}

impl Why {
    fn word<'w>(&'w self, who: &'w str) -> Word<'w> {
        Word { who, reason: self.reason.trim(), seen: None, force: self.force }
    }
}

#[derive(clap::Args)]
struct SetArgs {
    #[command(flatten)]
    of: Named,
    /// legacy, shadow, canary or translated
    phase: String,
    /// For canary: the share of clients that the other side answers. For translated: the share of requests that are checked
    #[arg(long, value_name = "SHARE")]
    share: Option<Share>,
    #[command(flatten)]
    why: Why,
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    block_on(manage(args))
}

async fn manage(args: Args) -> Result<(), Failure> {
    let config = args.store.configuration()?;
    let opened = args.store.open_existing().await?;
    let (format, by) = (args.store.format, args.store.author());
    let file = args.store.file().map(ToOwned::to_owned);
    let phases = app::phases(&config, opened.store.clone(), file).await?;
    match args.verb {
        Verb::List => show_list(format, &phases.list()),
        Verb::Set(args) => {
            let phase =
                Phase::named(&args.phase, args.share).map_err(|fault| Failure::Usage(fault.to_string()))?;
            let side = args.of.side.as_deref();
            let word = args.why.word(&by);
            show(format, &phases.set_by_word(side, &args.of.operation, Some(phase), word).await?);
        }
        Verb::Reset(args) => {
            let side = args.of.side.as_deref();
            let word = args.why.word(&by);
            show(format, &phases.set_by_word(side, &args.of.operation, None, word).await?);
        }
        Verb::Transitions { count } => show_transitions(format, &phases, count).await?,
    }
    opened.store.close().await;
    Ok(())
}

fn show_list(format: Format, operations: &[PhaseInfo]) {
    match format {
        Format::Json => print_json(&operations),
        Format::Text => operations.iter().for_each(|info| println!("{}", line(info))),
    }
}

fn show(format: Format, info: &PhaseInfo) {
    match format {
        Format::Json => print_json(info),
        Format::Text => println!("{}", line(info)),
    }
}

fn line(info: &PhaseInfo) -> String {
    let since = info.since.as_deref().map(|at| format!(" at {at}")).unwrap_or_default();
    let from = match info.from.as_str() {
        "configuration" => "as configured".to_owned(),
        by => format!("set by the {by}{since}; configured: {}", words(&info.configured)),
    };
    format!("{:<4} {:<40} {:<18} {from}", info.side, info.operation, words(&info.now))
}

fn words(shown: &Shown) -> String {
    match shown.share {
        Some(share) => format!("{} {share}", shown.phase),
        None => shown.phase.to_owned(),
    }
}

async fn show_transitions(format: Format, phases: &Phases, count: u32) -> Result<(), Failure> {
    let transitions = phases.transitions(count).await?;
    if format == Format::Json {
        print_json(&transitions);
        return Ok(());
    }
    for one in transitions {
        let who = if one.who.is_empty() { String::new() } else { format!(", {}", one.who) };
        println!(
            "{}  {} {}: {} → {}, by the {}{who}",
            one.at, one.side, one.operation, one.from, one.to, one.by
        );
        if !one.evidence.is_empty() {
            println!("    {}", one.evidence);
        }
    }
    Ok(())
}
