//! `switchback usage`: which client still calls what, and what it loses once the old service is gone.

use super::pack::compiled;
use super::stored::{Failure, Format, StoreArgs, block_on, print_json};
use crate::after_sunset::{AfterSunset, after_sunset};
use std::process::ExitCode;
use switchback_engine::translate::Settings;
use switchback_gateway::outcome::OUTCOMES;
use switchback_gateway::retire::{UNRECORDED, Usage, UsageInfo};
use switchback_json::{Limits, Value};

/// Shows who still calls what: calls by client, operation and outcome since they were first counted, summed over all gateways of
/// the store, with the last call. A running gateway adds its own every five seconds. Calls without a valid token and calls below
/// no front are not counted.
#[derive(clap::Args)]
#[command(after_help = "Outcomes:\n  \
    translated      the gateway answered by the plan of the operation\n  \
    forwarded       the service of the client's own side answered\n  \
    refused         the pack refuses the operation, or this request of it\n  \
    rejected        the gateway rejected the request for its address, form or size\n  \
    brownout        a brownout was open for the call\n  \
    retired         the call came after the sunset of its client\n  \
    upstream_error  a service answered with a server error, or gave no usable answer\n  \
    gateway_error   the gateway could not answer: a limit, no usable credential, or an error of its own\n  \
    cancelled       the client went away before it had the whole answer\n  \
    unrecorded      counted by an earlier release, which recorded no outcome of this list\n\n\
    Examples:\n  \
    switchback usage --config switchback.yaml\n  \
    switchback usage --config switchback.yaml --client acme --outcome refused --format json\n  \
    switchback usage --config switchback.yaml --after-sunset")]
pub struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Calls of this client alone; an empty name selects calls from unknown clients
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// Calls of this side alone
    #[arg(long)]
    side: Option<String>,
    /// Calls with this outcome alone
    #[arg(long, visible_alias = "kind", value_parser = words())]
    outcome: Option<String>,
    /// Calls that match no operation of the contract alone
    #[arg(long)]
    unknown: bool,
    /// What each client loses once the old service is gone, by the report of the pack under the settings of --config, and the
    /// settings that would serve it
    #[arg(long)]
    after_sunset: bool,
}

fn words() -> Vec<&'static str> {
    OUTCOMES.iter().map(|outcome| outcome.as_str()).chain([UNRECORDED]).collect()
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    block_on(show(args))
}

async fn show(args: Args) -> Result<(), Failure> {
    let opened = args.store.open_existing().await?;
    let mut usage = Usage::new(opened.store.clone()).list().await?;
    opened.store.close().await;
    let is = |wanted: &Option<String>, text: &str| wanted.as_deref().is_none_or(|wanted| wanted == text);
    usage.retain(|one| {
        is(&args.client, &one.client)
            && is(&args.side, &one.side)
            && is(&args.outcome, one.outcome)
            && (!args.unknown || one.unknown)
    });
    let rows = if args.after_sunset { Some(joined(&args, &usage)?) } else { None };
    match (args.store.format, rows) {
        (Format::Json, Some(rows)) => print_json(&rows),
        (Format::Json, None) => print_json(&usage),
        (Format::Text, _) if usage.is_empty() => println!("No calls."),
        (Format::Text, Some(rows)) => print!("{}", losses(&rows)),
        (Format::Text, None) => table(&usage),
    }
    Ok(())
}

fn joined(args: &Args, usage: &[UsageInfo]) -> Result<Vec<AfterSunset>, Failure> {
    let config = args.store.configuration()?;
    let pack = compiled(config.mapping.as_deref()).map_err(Failure::Run)?;
    let given = Value::parse(config.settings.value.to_string().as_bytes(), &Limits::DOCUMENT)
        .map_err(|error| Failure::Run(error.to_string()))?;
    let settings = Settings::new(&pack, &given).map_err(|errors| {
        Failure::Run(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    })?;
    let is_on = |name: &str| {
        pack.settings.iter().zip(0..).any(|(setting, at)| setting.name == name && settings.is_on(at))
    };
    Ok(after_sunset(usage, &switchback_plan::report(&pack), is_on))
}

fn client_of(name: &str) -> &str {
    if name.is_empty() { "(unknown client)" } else { name }
}

fn table(usage: &[UsageInfo]) {
    println!("{:<4} {:<24} {:<44} {:<14} {:>9}  last", "side", "client", "operation", "outcome", "calls");
    for one in usage {
        let UsageInfo { side, client, operation, outcome, calls, last, .. } = one;
        let mark = if one.unknown { "  (unknown operation)" } else { "" };
        println!(
            "{side:<4} {:<24} {operation:<44} {outcome:<14} {calls:>9}  {last}{mark}",
            client_of(client)
        );
    }
}

/// The rows as text: those that lose nothing are counted.
fn losses(rows: &[AfterSunset]) -> String {
    let mut out = String::new();
    let (losing, whole): (Vec<_>, Vec<_>) = rows.iter().partition(|row| !row.loses.is_empty());
    for row in &losing {
        let AfterSunset { side, operation, calls, refused, last, verdict, .. } = row;
        let refused = if *refused > 0 { format!(", {refused} refused already") } else { String::new() };
        let client = client_of(&row.client);
        out += &format!("{client}  {side} {operation}  {verdict}  ({calls} calls{refused}, last {last})\n");
        row.loses.iter().for_each(|text| out += &format!("    {text}\n"));
        for then in &row.settings {
            out += &format!("    with the setting {}: {}\n", then.setting, then.verdict);
            then.loses.iter().for_each(|text| out += &format!("        {text}\n"));
        }
    }
    out += &format!(
        "{} of {} called operations (by client) lose something after the sunset, {} lose nothing\n",
        losing.len(),
        rows.len(),
        whole.len()
    );
    out
}
