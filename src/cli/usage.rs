//! `switchback usage`: who still calls what.

use super::stored::{Failure, Format, StoreArgs, block_on, print_json};
use std::process::ExitCode;
use switchback_gateway::retire::{Usage, UsageInfo};

/// Who still calls what: calls by client and operation since they were first counted, summed over all gateways of the store,
/// with the last call and what became of it: answered, refused by the pack, unknown to the contract, turned away by a
/// brownout, or retired. A running gateway adds its own every five seconds.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    switchback usage --config switchback.yaml\n  \
    switchback usage --config switchback.yaml --client acme --kind refused --format json")]
pub struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Of this client alone
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// Of this side alone
    #[arg(long)]
    side: Option<String>,
    /// Only what became this: answered, refused, unknown, brownout or retired
    #[arg(long, value_parser = ["answered", "refused", "unknown", "brownout", "retired"])]
    kind: Option<String>,
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    block_on(show(args))
}

async fn show(args: Args) -> Result<(), Failure> {
    let opened = args.store.open_existing().await?;
    let mut usage = Usage::new(opened.store.clone()).list().await?;
    let is = |wanted: &Option<String>, text: &str| wanted.as_deref().is_none_or(|wanted| wanted == text);
    usage.retain(|one| {
        is(&args.client, &one.client) && is(&args.side, &one.side) && is(&args.kind, &one.kind)
    });
    match args.store.format {
        Format::Json => print_json(&usage),
        Format::Text if usage.is_empty() => println!("No calls."),
        Format::Text => table(&usage),
    }
    opened.store.close().await;
    Ok(())
}

fn table(usage: &[UsageInfo]) {
    println!("{:<4} {:<24} {:<44} {:<9} {:>9}  last", "side", "client", "operation", "became", "calls");
    for one in usage {
        let client = if one.client.is_empty() { "(nobody enrolled)" } else { &one.client };
        let UsageInfo { side, operation, kind, calls, last, .. } = one;
        println!("{side:<4} {client:<24} {operation:<44} {kind:<9} {calls:>9}  {last}");
    }
}
