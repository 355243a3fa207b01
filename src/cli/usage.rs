//! `switchback usage`: prints the calls by client and operation, and the losses once the old
//! service is gone.

use super::output::count_noun;
use super::pack::compile_pack;
use super::stored::{Format, OpenedStore, StoreArgs, VerbError, block_on, print_json, suggesting};
use crate::after_sunset::{AfterSunset, after_sunset};
use crate::app;
use crate::playground::{Letter, ends_for};
use serde_json::json;
use std::collections::BTreeSet;
use std::process::ExitCode;
use switchback_compiler::diagnostic::did_you_mean;
use switchback_engine::translate::Settings;
use switchback_gateway::clock::rfc3339;
use switchback_gateway::outcome::OUTCOMES;
use switchback_gateway::retire::{UNRECORDED, Usage, UsageInfo};
use switchback_json::{Limits, Value};

/// Lists calls by client, operation and outcome, summed over all gateways of the store, with the
/// last call. A running gateway adds its own every five seconds.
///
/// Calls of unknown clients are counted if the old service answers them. Calls that the gateway
/// rejects for their token, and calls below no front, are not counted. A count is dropped 400 days
/// after its last call. Of calls that match no operation, the newest 2,000 counts are retained.
#[derive(clap::Args)]
#[command(after_help = after_help())]
pub struct UsageArgs {
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
    /// What each client loses once the old service is gone, by the report of the pack under the
    /// settings of --config, and the settings that would serve it
    #[arg(long)]
    after_sunset: bool,
    /// Print a notice for the owner of --client: from when the old version ends, the calls to change with
    /// their replacements as curl, and the losses of each call that stays
    #[arg(long, requires = "client", conflicts_with = "after_sunset")]
    notice: bool,
}

/// Renders the outcomes with their meanings, and examples.
fn after_help() -> String {
    let meanings = OUTCOMES.iter().map(|outcome| (outcome.as_str(), outcome.meaning()));
    let unrecorded = (UNRECORDED, "Counted by an earlier release, which recorded no outcome of this list.");
    let lines = meanings.chain([unrecorded]).map(|(word, meaning)| format!("  {word:<14}  {meaning}\n"));
    format!(
        "Outcomes:\n{}\nExamples:\n  \
        switchback usage --config switchback.yaml\n  \
        switchback usage --config switchback.yaml --client acme --outcome refused --format json\n  \
        switchback usage --config switchback.yaml --after-sunset\n  \
        switchback usage --config switchback.yaml --client acme --notice",
        lines.collect::<String>()
    )
}

fn words() -> Vec<&'static str> {
    OUTCOMES.iter().map(|outcome| outcome.as_str()).chain([UNRECORDED]).collect()
}

pub fn run(args: UsageArgs) -> ExitCode {
    block_on(show(args))
}

async fn show(args: UsageArgs) -> Result<(), VerbError> {
    let opened = args.store.open_existing().await?;
    let mut usage = Usage::new(opened.store.clone()).list().await?;
    if let Some(client) = args.client.as_deref().filter(|_| args.notice) {
        usage.retain(|one| one.client == client);
        return print_notice(&args, client, opened, &usage).await;
    }
    // Before the pack is compiled, which takes longer than reading the counts.
    opened.store.close().await;
    let is = |wanted: &Option<String>, text: &str| wanted.as_deref().is_none_or(|wanted| wanted == text);
    let callers: BTreeSet<String> = usage.iter().map(|one| one.client.clone()).collect();
    usage.retain(|one| {
        is(&args.client, &one.client)
            && is(&args.side, &one.side)
            && is(&args.outcome, one.outcome)
            && (!args.unknown || one.unknown)
    });
    let is_filtered =
        args.unknown || [&args.client, &args.side, &args.outcome].into_iter().any(Option::is_some);
    let rows = if args.after_sunset { Some(join_report(&args, &usage)?) } else { None };
    match (args.store.format(), rows) {
        (Format::Json, Some(rows)) => print_json(&rows),
        (Format::Json, None) => print_json(&usage),
        (Format::Text, _) if usage.is_empty() && is_filtered => {
            let near = args.client.as_deref().filter(|name| !callers.contains(*name));
            let near = near.and_then(|name| did_you_mean(name, &callers));
            match near {
                Some(near) => println!("No such calls; {near}"),
                None => println!("No such calls."),
            }
        }
        (Format::Text, _) if usage.is_empty() => println!("No calls."),
        (Format::Text, Some(rows)) => print!("{}", losses(&rows, is_filtered)),
        (Format::Text, None) => print!("{}", table(&usage)),
    }
    Ok(())
}

/// Prints the migration notice for the owner of a client.
async fn print_notice(
    args: &UsageArgs,
    client: &str,
    opened: OpenedStore,
    usage: &[UsageInfo],
) -> Result<(), VerbError> {
    let config = args.store.configuration()?;
    let file = args.store.file().map(ToOwned::to_owned);
    suggesting(&opened.store, opened.store.client(client)).await?;
    let retirement = app::retirement(&config, opened.store.clone(), file.clone()).await?;
    let announced = config.sunsets.iter();
    let announced =
        announced.filter_map(|one| Some((one.side.value.clone(), rfc3339(one.sunset?.unix_ms()))));
    let ends = ends_for(client, announced, &retirement.sunsets());
    opened.store.close().await;
    let losses = join_report(args, usage)?;
    let playground = app::playground(&config, file).await?;
    let notice = playground.letter(Letter { client, usage, losses: &losses, ends }).await;
    let notice = notice.map_err(|error| VerbError::Run(error.to_string()))?;
    args.store.format().print(&json!({ "client": client, "notice": notice }), || match notice.as_str() {
        "" => format!("{client} makes no call that must change."),
        notice => notice.trim_end().to_owned(),
    });
    Ok(())
}

fn join_report(args: &UsageArgs, usage: &[UsageInfo]) -> Result<Vec<AfterSunset>, VerbError> {
    let config = args.store.configuration()?;
    let pack = compile_pack(config.mapping.as_deref()).map_err(VerbError::Run)?;
    let given = Value::parse(config.settings.value.to_string().as_bytes(), &Limits::DOCUMENT)
        .map_err(|error| VerbError::Run(error.to_string()))?;
    let settings = Settings::new(&pack, &given).map_err(|errors| {
        VerbError::Run(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    })?;
    let is_on = |name: &str| {
        pack.settings.iter().zip(0..).any(|(setting, at)| setting.name == name && settings.is_on(at))
    };
    Ok(after_sunset(usage, &switchback_plan::report(&pack), is_on))
}

fn client_of(name: &str, is_overflow: bool) -> &str {
    match name {
        _ if is_overflow => "(several clients)",
        "" => "(unknown client)",
        name => name,
    }
}

fn table(usage: &[UsageInfo]) -> String {
    let mut out = format!(
        "{:<4} {:<24} {:<44} {:<14} {:>9}  last\n",
        "side", "client", "operation", "outcome", "calls"
    );
    for one in usage {
        let UsageInfo { side, client, operation, outcome, calls, last, .. } = one;
        let client = client_of(client, one.is_overflow());
        let (operation, mark) = match (one.is_overflow(), one.unknown) {
            (true, _) => ("(several operations)", ""),
            (false, true) => (operation.as_str(), "  (unknown operation)"),
            (false, false) => (operation.as_str(), ""),
        };
        out += &format!("{side:<4} {client:<24} {operation:<44} {outcome:<14} {calls:>9}  {last}{mark}\n");
    }
    out
}

/// Renders the rows as text. Rows without losses are only counted.
fn losses(rows: &[AfterSunset], is_filtered: bool) -> String {
    let mut out = String::new();
    let (losing, whole): (Vec<_>, Vec<_>) = rows.iter().partition(|row| !row.loses.is_empty());
    for row in &losing {
        let AfterSunset { side, operation, calls, refused, last, verdict, .. } = row;
        let refused = if *refused > 0 { format!(", {refused} refused already") } else { String::new() };
        let client = client_of(&row.client, row.is_overflow);
        let calls = count_noun(calls.unsigned_abs(), "call");
        out += &format!("{client}  {side} {operation}  {verdict}  ({calls}{refused}, last {last})\n");
        row.loses.iter().for_each(|text| out += &format!("    {text}\n"));
        for then in &row.settings {
            out += &format!("    with the setting {}: {}\n", then.setting, then.verdict);
            then.loses.iter().for_each(|text| out += &format!("        {text}\n"));
        }
    }
    let selected = if is_filtered { "selected" } else { "called" };
    out += &format!(
        "{} of {} {selected} operations (by client) lose something after the sunset, {} lose nothing\n",
        losing.len(),
        rows.len(),
        whole.len()
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(client: &str, operation: &str, unknown: bool, calls: i64) -> UsageInfo {
        UsageInfo {
            side: "v2".to_owned(),
            client: client.to_owned(),
            operation: operation.to_owned(),
            unknown,
            outcome: "forwarded",
            calls,
            first: "2026-01-01T00:00:00Z".to_owned(),
            last: "2026-01-02T00:00:00Z".to_owned(),
        }
    }

    #[test]
    fn a_table_names_known_clients_unknown_ones_and_calls_that_were_counted_together() {
        let usage = [
            call("acme", "GET /things", false, 12),
            call("", "GET /v2/*", true, 3),
            call("", "other", false, 7),
        ];
        let table = table(&usage);
        let words: Vec<Vec<&str>> = table.lines().map(|line| line.split("  ").collect()).collect();
        let cells = |line: usize| -> Vec<&str> {
            words[line].iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty()).collect()
        };
        let last = "2026-01-02T00:00:00Z";
        assert_eq!(cells(1), ["v2", "acme", "GET /things", "forwarded", "12", last]);
        assert_eq!(
            cells(2),
            ["v2", "(unknown client)", "GET /v2/*", "forwarded", "3", last, "(unknown operation)"]
        );
        assert_eq!(cells(3), ["v2", "(several clients)", "(several operations)", "forwarded", "7", last]);
    }

    #[test]
    fn losses_are_counted_and_a_selection_is_called_one() {
        let report = switchback_plan::report(&compile_pack(None).expect("the pack that is built in"));
        let rows = after_sunset(&[call("acme", "GET /v2/*", true, 1)], &report, |_| false);
        assert_eq!(
            losses(&rows, true),
            "acme  v2 GET /v2/*  unknown  (1 call, last 2026-01-02T00:00:00Z)\n    \
             no contract has it: only the old service answers it\n\
             1 of 1 selected operations (by client) lose something after the sunset, 0 lose nothing\n"
        );
        assert!(losses(&rows, false).contains("1 of 1 called operations"));
    }

    #[test]
    fn the_help_and_the_guide_have_the_same_outcomes_with_the_same_meanings() {
        let guide = include_str!("../../docs/MIGRATION.md");
        let section = guide.split("## Outcomes").nth(1).and_then(|rest| rest.split("\n## ").next());
        let rows = section.expect("the guide has the section").lines().filter(|line| line.starts_with("| `"));
        let rows: Vec<&str> = rows.collect();
        let wanted = OUTCOMES.map(|outcome| format!("| `{}` | {} |", outcome.as_str(), outcome.meaning()));
        assert_eq!(rows, wanted);
        let help = after_help();
        assert!(OUTCOMES.iter().all(|outcome| help.contains(outcome.meaning())), "{help}");
    }

    #[test]
    fn the_help_has_the_periods_and_bounds_of_the_counts() {
        use switchback_gateway::retire::{UNKNOWN_USAGE_MAX, USAGE_FLUSH, USAGE_KEEP};
        let verb = <UsageArgs as clap::Args>::augment_args(clap::Command::new("usage"));
        let help = verb.get_long_about().map(ToString::to_string).unwrap_or_default();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for (text, holds) in [
            ("adds its own every five seconds", USAGE_FLUSH.as_secs() == 5),
            ("dropped 400 days after its last call", USAGE_KEEP.as_secs() == 400 * 24 * 3600),
            ("the newest 2,000 counts are retained", UNKNOWN_USAGE_MAX == 2000),
        ] {
            assert!(help.contains(text) && holds, "{text}: {help}");
        }
    }
}
