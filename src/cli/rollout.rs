//! `switchback rollout`: starts and manages rollouts of operations while gateways serve.

use super::output::list;
use super::phase::{OperationName, ReasonArgs};
use super::stored::{StoreArgs, VerbError, block_on};
use crate::app;
use crate::operate::{rollout_line, rollouts_json};
use clap::Subcommand;
use std::process::ExitCode;
use switchback_gateway::shadow::{Archive, GateView, RolloutAction, gate_views};

/// Arguments of `switchback rollout`.
#[derive(clap::Args)]
pub struct RolloutArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(subcommand)]
    verb: RolloutVerb,
}

#[derive(Subcommand)]
enum RolloutVerb {
    /// Start a rollout: the operation enters the first step of the plan that is not behind its phase
    #[command(after_help = "Examples:\n  \
        switchback rollout start 'GET /things' --plan careful\n  \
        switchback rollout status")]
    Start(StartArgs),
    /// Stop advancing until it is resumed; a rollback by the evidence is still possible
    Pause(ActionArgs),
    /// Resume a paused rollout
    Resume(ActionArgs),
    /// Advance to the next step now, without its time, evidence and time of day
    Promote(ActionArgs),
    /// End a rollout; the operation stays in its phase
    Abort(AbortArgs),
    /// Show rollouts: the step, and the conditions for the next one
    Status {
        /// Operation [default: all with a rollout]
        operation: Option<String>,
    },
}

#[derive(clap::Args)]
struct StartArgs {
    #[command(flatten)]
    action: ActionArgs,
    /// Plan from `rollout` in the configuration [default: that of the operation, or the only one]
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
}

#[derive(clap::Args)]
struct AbortArgs {
    #[command(flatten)]
    action: ActionArgs,
    /// Return to the phase before the rollout
    #[arg(long)]
    back: bool,
}

#[derive(clap::Args)]
struct ActionArgs {
    #[command(flatten)]
    of: OperationName,
    #[command(flatten)]
    why: ReasonArgs,
}

pub fn run(args: RolloutArgs) -> ExitCode {
    block_on(manage(args))
}

async fn manage(args: RolloutArgs) -> Result<(), VerbError> {
    let config = args.store.configuration()?;
    let opened = args.store.open_existing().await?;
    let (format, by) = (args.store.format(), args.store.author());
    let file = args.store.file().map(ToOwned::to_owned);
    let phases = app::phases(&config, opened.store.clone(), file).await?;
    let archive = Archive::new(opened.store.clone());
    let (action, words) = match &args.verb {
        RolloutVerb::Start(args) => (&args.action, RolloutAction::Start { plan: args.plan.as_deref() }),
        RolloutVerb::Pause(args) => (args, RolloutAction::Pause),
        RolloutVerb::Resume(args) => (args, RolloutAction::Resume),
        RolloutVerb::Promote(args) => (args, RolloutAction::Promote),
        RolloutVerb::Abort(args) => (&args.action, RolloutAction::Abort { back: args.back }),
        RolloutVerb::Status { operation } => {
            let named = operation.as_ref().map(|name| crate::operate::operation_name(None, name));
            // An unknown operation is an error, not an empty list.
            let info = named.map(|(side, name)| phases.get(side, name)).transpose()?;
            let mut views = gate_views(&phases, &archive).await?;
            views.retain(|view| {
                info.as_ref().is_none_or(|info| view.side == info.side && view.operation == info.operation)
            });
            format.print(&rollouts_json(&views), || list(views.iter().filter_map(text), "No rollouts."));
            opened.store.close().await;
            return Ok(());
        }
    };
    let (side, operation) = action.of.parts();
    let info = phases.change_rollout(side, operation, words, action.why.word(&by)).await?;
    let mut views = gate_views(&phases, &archive).await?;
    views.retain(|view| view.side == info.side && view.operation == info.operation);
    format.print(&rollouts_json(&views).pop(), || list(views.iter().filter_map(text), "No rollout."));
    opened.store.close().await;
    Ok(())
}

/// Renders the rollout of an operation, if it has one.
fn text(view: &GateView) -> Option<String> {
    let rollout = view.rollout.as_ref()?;
    let (side, operation, evidence) = (&view.side, &view.operation, view.decision.evidence());
    Some(format!("{side} {operation} in {}: {}\n    {evidence}", rollout.phase, rollout_line(rollout)))
}
