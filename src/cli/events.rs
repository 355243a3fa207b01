//! `switchback events`: lists, retries and drops undelivered events.

use super::output::{count_noun, list};
use super::stored::{StoreArgs, VerbError, block_on};
use clap::Subcommand;
use serde_json::json;
use std::process::ExitCode;
use switchback_gateway::clock::rfc3339;
use switchback_gateway::store::{EventChoice, EventSummary};

/// Arguments of `switchback events`.
#[derive(clap::Args)]
pub struct EventsArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(subcommand)]
    verb: EventsVerb,
}

#[derive(Subcommand)]
enum EventsVerb {
    /// List waiting events and dead letters, oldest first
    List(ListArgs),
    /// Retry events with new attempts [default: all dead letters]
    #[command(after_help = "Example:\n  switchback events retry --receiver acme --config switchback.yaml")]
    Retry(ChoiceArgs),
    /// Delete events without delivery
    #[command(
        after_help = "Example:\n  switchback events drop 3f6c0f5b8f0e4d0a9d7c5b1a2e3f4a5b --config switchback.yaml"
    )]
    Drop(DropArgs),
}

#[derive(clap::Args)]
struct ListArgs {
    /// Name of a receiver [default: all]
    #[arg(long, value_name = "NAME")]
    receiver: Option<String>,
    /// Only dead letters
    #[arg(long)]
    dead: bool,
    /// Maximum number of events
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

#[derive(clap::Args)]
struct ChoiceArgs {
    /// Ids of events, from `list`
    ids: Vec<String>,
    /// Only events of this receiver
    #[arg(long, value_name = "NAME")]
    receiver: Option<String>,
}

#[derive(clap::Args)]
struct DropArgs {
    /// Ids of events, from `list`
    #[arg(required_unless_present = "all_dead")]
    ids: Vec<String>,
    /// All dead letters
    #[arg(long, conflicts_with = "ids")]
    all_dead: bool,
    /// Only events of this receiver
    #[arg(long, value_name = "NAME")]
    receiver: Option<String>,
}

pub fn run(args: EventsArgs) -> ExitCode {
    block_on(manage(args))
}

async fn manage(args: EventsArgs) -> Result<(), VerbError> {
    let opened = args.store.open_existing().await?;
    let (store, format) = (&opened.store, args.store.format());
    let print_count = |word: &str, count: u64| {
        format.print(&json!({ word: count }), || format!("{} {word}", count_noun(count, "event")));
    };
    match args.verb {
        EventsVerb::List(of) => {
            let count = usize::try_from(of.limit).unwrap_or(usize::MAX);
            let events = store.events(of.receiver.as_deref(), of.dead, count).await?;
            format.print(&events, || list(events.iter().map(line), "No events."));
        }
        EventsVerb::Retry(of) => {
            let choice = EventChoice { receiver: of.receiver, ids: of.ids };
            print_count("retried", store.events_retry(&choice).await?);
        }
        EventsVerb::Drop(of) => {
            let choice = EventChoice { receiver: of.receiver, ids: of.ids };
            print_count("dropped", store.events_drop(&choice).await?);
        }
    }
    opened.store.close().await;
    Ok(())
}

fn line(event: &EventSummary) -> String {
    let EventSummary { id, receiver, event: name, state, .. } = event;
    let failure = event.failure.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    let attempts = count_noun(event.attempts.unsigned_abs(), "failed attempt");
    format!("{id} {receiver} {name} {state} since {}, {attempts}{failure}", rfc3339(event.came_ms))
}
