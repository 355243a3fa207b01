//! `switchback brownout`: adds, lists and removes windows in which calls are rejected.

use super::output::list;
use super::stored::{StoreArgs, VerbError, block_on, confirm, suggesting};
use crate::app;
use crate::config::{DateOrTime, Period};
use crate::operate::operation_names;
use clap::Subcommand;
use serde_json::json;
use std::process::ExitCode;
use switchback_gateway::clock::{Clock, rfc3339};
use switchback_gateway::retire::{Brownout, NewBrownout, Usage};

/// Arguments of `switchback brownout`.
#[derive(clap::Args)]
pub struct BrownoutArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(subcommand)]
    verb: BrownoutVerb,
}

#[derive(Subcommand)]
enum BrownoutVerb {
    /// Add a window in which all gateways of the store reject its calls with 503 and Retry-After
    #[command(after_help = "Examples:\n  \
        switchback brownout add --for 10m --operation 'GET /things'\n  \
        switchback brownout add --from 2026-12-01T10:00:00Z --for 1h --client acme --reason 'v2 ends on 31 December'\n  \
        switchback brownout add --for 1m --everything --yes    # all calls of all clients")]
    Add(AddBrownoutArgs),
    /// List windows, including those of the configuration and those that ended within a month
    List,
    /// Remove a window
    Remove {
        /// Id of the window, from `switchback brownout list`
        id: String,
    },
}

#[derive(clap::Args)]
struct AddBrownoutArgs {
    /// Start: a date or a time such as 2026-12-01T10:00:00Z [default: now]
    #[arg(long, value_name = "TIME")]
    from: Option<DateOrTime>,
    /// End: a date or a time
    #[arg(long, value_name = "TIME", required_unless_present = "duration")]
    until: Option<DateOrTime>,
    /// Duration, instead of --until: 90s, 10m, 1h
    #[arg(long = "for", value_name = "TIME", conflicts_with = "until")]
    duration: Option<Period>,
    /// Operation, from `switchback phase list`; repeat for several [default: with --client, all its calls]
    #[arg(long = "operation", value_name = "OPERATION")]
    operations: Vec<String>,
    /// Client; repeat for several [default: with --operation, all clients]
    #[arg(long = "client", value_name = "NAME")]
    clients: Vec<String>,
    /// All calls of all clients; requires confirmation
    #[arg(long, conflicts_with_all = ["operations", "clients"])]
    everything: bool,
    /// Skip the confirmation
    #[arg(long)]
    yes: bool,
    /// Side that the clients use; required if they use several
    #[arg(long)]
    side: Option<String>,
    /// Text for clients [default: the text of the pack]
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
}

pub fn run(args: BrownoutArgs) -> ExitCode {
    block_on(manage(args))
}

async fn manage(args: BrownoutArgs) -> Result<(), VerbError> {
    let config = args.store.configuration()?;
    let opened = args.store.open_existing().await?;
    let file = args.store.file().map(ToOwned::to_owned);
    let retirement = app::retirement(&config, opened.store.clone(), file).await?;
    let format = args.store.format();
    match args.verb {
        BrownoutVerb::Add(args) => {
            let yes = args.yes;
            let new = new(args);
            // An empty list means all. A forgotten option must not stop every client, so this needs a word
            // of its own.
            if new.is_for_all() && !new.everything {
                return Err(VerbError::Usage(
                    "say what is turned away: --operation, --client, or --everything".to_owned(),
                ));
            }
            let usage = Usage::new(opened.store.clone()).list().await?;
            // Printed before the question, so that the affected clients are known before the decision.
            let reach = suggesting(&opened.store, retirement.preview(&new, &usage)).await?;
            eprintln!("Reach: {reach}.");
            if new.everything && !yes {
                confirm("All calls of all clients would be turned away", "everything")?;
            }
            let added = retirement.add(new).await?;
            format.print(&added, || format!("Added {}.", line(&added, now_ms())));
        }
        BrownoutVerb::List => {
            let all = retirement.brownouts();
            format.print(&all, || list(all.iter().map(|one| line(one, now_ms())), "No brownouts."));
        }
        BrownoutVerb::Remove { id } => {
            retirement.remove(&id).await?;
            format.print(&json!({ "removed": id }), || format!("Removed {id}."));
        }
    }
    opened.store.close().await;
    Ok(())
}

fn new(args: AddBrownoutArgs) -> NewBrownout {
    let from_ms = args.from.map_or_else(|| Clock::machine().unix_ms(), DateOrTime::unix_ms);
    let lasts = args.duration.map(|time| i64::try_from(time.0.as_millis()).unwrap_or(i64::MAX));
    // clap requires one of the two, so the default is never used.
    let until_ms = match (args.until, lasts) {
        (Some(until), _) => until.unix_ms(),
        (None, lasts) => from_ms.saturating_add(lasts.unwrap_or_default()),
    };
    let (side, operations) = operation_names(args.side, &args.operations);
    NewBrownout {
        side,
        operations,
        clients: args.clients,
        everything: args.everything,
        from_ms,
        until_ms,
        seen: None,
        reason: args.reason,
    }
}

fn now_ms() -> i64 {
    Clock::machine().unix_ms()
}

fn line(brownout: &Brownout, now_ms: i64) -> String {
    let of = |names: &[String], all: &str| if names.is_empty() { all.to_owned() } else { names.join(", ") };
    let reason =
        if brownout.reason.is_empty() { String::new() } else { format!("  \"{}\"", brownout.reason) };
    format!(
        "{:<16} {:<7} {} to {}  {} {}  {}{reason}",
        brownout.id,
        brownout.state(now_ms),
        rfc3339(brownout.from_ms),
        rfc3339(brownout.until_ms),
        brownout.side,
        of(&brownout.operations, "all calls"),
        of(&brownout.clients, "all clients"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_whether_a_window_is_planned_open_or_over() {
        let window = |operations: &[&str], clients: &[&str], reason: &str| Brownout {
            id: "b1".to_owned(),
            side: "v2".to_owned(),
            operations: operations.iter().map(|name| (*name).to_owned()).collect(),
            clients: clients.iter().map(|name| (*name).to_owned()).collect(),
            from_ms: 60_000,
            until_ms: 120_000,
            reason: reason.to_owned(),
            by: "operator".to_owned(),
        };
        let time = "1970-01-01T00:01:00Z to 1970-01-01T00:02:00Z";
        let one = window(&["GET /a", "GET /b"], &["acme"], "v2 ends");
        for (now_ms, state) in
            [(59_999, "planned"), (60_000, "open   "), (119_999, "open   "), (120_000, "over   ")]
        {
            assert_eq!(
                line(&one, now_ms),
                format!("b1               {state} {time}  v2 GET /a, GET /b  acme  \"v2 ends\"")
            );
        }
        assert_eq!(
            line(&window(&[], &[], ""), 0),
            format!("b1               planned {time}  v2 all calls  all clients")
        );
    }
}
