//! `switchback status`: one screen about a running gateway, with the next steps.

use super::admin_port::AdminArgs;
use super::output::{HAS_FINDINGS, count_noun};
use super::stored::{OutputArgs, VerbError, block_on_verdict};
use crate::figures::{duration, percent, relative, span};
use serde_json::Value;
use std::fmt::Write as _;
use std::process::ExitCode;
use switchback_gateway::clock::unix_ms;

/// Prints one screen about a running gateway: health, pack, replicas, traffic, phases, evidence, grants,
/// brownouts, sunsets and queues, and the next steps: the list *Needs attention* of the studio.
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 nothing needs attention, 1 something does, 2 usage error, 3 the gateway cannot be \
                        reached.\n\n\
                        Examples:\n  \
                        switchback status --config switchback.yaml\n  \
                        switchback status --admin http://127.0.0.1:9090 --token env:ADMIN_TOKEN --json"
)]
pub struct StatusArgs {
    #[command(flatten)]
    port: AdminArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Most rows of a list; `--json` has all.
const ROWS_MAX: usize = 5;

pub fn run(args: &StatusArgs) -> ExitCode {
    block_on_verdict(show(args))
}

async fn show(args: &StatusArgs) -> Result<ExitCode, VerbError> {
    let status: Value = args.port.get("api/status", &[]).await?;
    args.output.format().print(&status, || text(&status).trim_end().to_owned());
    let is_calm = list(&status["attention"]).is_empty() && list(&status["unread"]).is_empty();
    Ok(if is_calm { ExitCode::SUCCESS } else { ExitCode::from(HAS_FINDINGS) })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn number(value: &Value) -> u64 {
    value.as_f64().unwrap_or_default().max(0.0) as u64
}

/// The clock of the gateway, so that relative times are right on a machine with another clock.
struct Moments {
    now_ms: i64,
}

impl Moments {
    fn text(&self, at: &Value) -> String {
        let at = at.as_str().unwrap_or_default();
        unix_ms(at).map_or_else(|| at.to_owned(), |at_ms| relative(at_ms, self.now_ms))
    }

    fn seconds_since(&self, at: &Value) -> u64 {
        let at_ms = at.as_str().and_then(unix_ms).unwrap_or(self.now_ms);
        ((self.now_ms - at_ms) / 1000).unsigned_abs()
    }
}

fn text(status: &Value) -> String {
    let moments = Moments { now_ms: unix_ms(word(status, "at")).unwrap_or_default() };
    let mut out = String::new();
    let mut line = |name: &str, text: &str| {
        let _ = writeln!(out, "{name:<11}{text}");
    };
    line("Gateway", &gateway(status, &moments));
    line("Pack", &pack(&status["pack"], &moments));
    let replicas = list(&status["replicas"]);
    let mut name = "Replicas";
    for one in replicas.iter().filter(|_| replicas.len() > 1) {
        line(std::mem::take(&mut name), &replica(one, &moments));
    }
    line("Traffic", &traffic(&status["traffic"], &moments));
    line("Phases", &phases(&status["phases"]));
    for text in rows(&status["held_back"], |one| held_back(one, &moments)) {
        line("", &text);
    }
    line("Evidence", &evidence(&status["evidence"]));
    line("Grants", &grants(&status["grants"]));
    for text in rows(&status["grants"]["ending"], ending) {
        line("", &text);
    }
    let mut name = "Brownouts";
    for text in brownouts(&status["brownouts"], &moments) {
        line(std::mem::take(&mut name), &text);
    }
    let mut name = "Sunsets";
    let sunsets = rows(&status["sunsets"], |one| sunset(one, &moments));
    for text in if sunsets.is_empty() { vec!["none".to_owned()] } else { sunsets } {
        line(std::mem::take(&mut name), &text);
    }
    let unknown = &status["unknown_calls"];
    let (calls, kinds) = (number(&unknown["calls"]), number(&unknown["kinds"]));
    line("Unknown", &format!("{} of {}", count_noun(calls, "call"), count_noun(kinds, "kind")));
    line("Queues", &queues(&status["queues"]));
    out + &next(status)
}

/// Renders the first rows of a list, and the number of the others.
fn rows(value: &Value, row: impl Fn(&Value) -> String) -> Vec<String> {
    let all = list(value);
    let mut texts: Vec<String> = all.iter().take(ROWS_MAX).map(row).collect();
    if all.len() > ROWS_MAX {
        texts.push(format!("and {} more", all.len() - ROWS_MAX));
    }
    texts
}

fn gateway(status: &Value, moments: &Moments) -> String {
    let ready = if status["ready"] == true { "ready" } else { "not ready: it is about to stop" };
    let up = span(moments.seconds_since(&status["started"]));
    let store = &status["store"];
    let in_memory = number(&store["grants_in_memory_only"]);
    let store_text = match (store["answers"] == true, in_memory) {
        (true, 0) => "the store answers".to_owned(),
        (true, _) => format!("the store answers, {} in memory only", count_noun(in_memory, "grant")),
        (false, _) if store["away_since"].is_null() => "the store does not answer".to_owned(),
        (false, _) => format!("the store stopped answering {}", moments.text(&store["away_since"])),
    };
    let (version, name) = (word(status, "version"), word(status, "replica"));
    format!("{ready}; version {version} on {name}, up {up}; {store_text}")
}

fn pack(pack: &Value, moments: &Moments) -> String {
    let (name, source) = (word(pack, "name"), word(pack, "source"));
    let hash = word(pack, "hash");
    let digest = hash.get(..12).unwrap_or(hash);
    let loaded = moments.text(&pack["loaded_at"]);
    let text =
        format!("{name} ({source}), digest {digest}, loaded {loaded}, generation {}", pack["generation"]);
    let restored = &pack["restored"];
    if restored.is_null() {
        return text;
    }
    let (by, since) = (word(restored, "by"), moments.text(&restored["since"]));
    format!("{text}; it is not the pack on disk: {by} restored it {since}")
}

fn replica(one: &Value, moments: &Moments) -> String {
    let state = match word(one, "state") {
        "this" => "this one".to_owned(),
        "present" => "present".to_owned(),
        state => format!("{state} {}", moments.text(&one["since"])),
    };
    let hash = word(one, "pack_hash");
    let digest = hash.get(..12).unwrap_or(hash);
    format!("{}: {state}, version {}, digest {digest}", word(one, "name"), word(one, "version"))
}

fn traffic(traffic: &Value, moments: &Moments) -> String {
    let (requests, failed) = (number(&traffic["requests"]), number(&traffic["failed"]));
    let since = match &traffic["known_since"] {
        Value::Null => "in the last hour".to_owned(),
        at => format!("since {}", moments.text(at)),
    };
    let mut text = format!("{} {since}, {failed} failed", count_noun(requests, "request"));
    if requests > 0 {
        let _ = write!(text, " ({})", percent(failed as f64 / requests as f64));
    }
    let seconds = |name: &str| traffic[name].as_f64();
    if let (Some(median), Some(p99)) = (seconds("median_seconds"), seconds("p99_seconds")) {
        let _ = write!(text, "; median {}, p99 {}", duration(median), duration(p99));
    }
    let (in_flight, connections) = (number(&traffic["in_flight"]), number(&traffic["connections"]));
    text + &format!("; {in_flight} in flight, {}", count_noun(connections, "connection"))
}

fn phases(phases: &Value) -> String {
    let counts = ["legacy", "shadow", "canary", "translated"];
    let counts = counts.map(|phase| format!("{phase} {}", number(&phases[phase])));
    counts.join(", ")
}

fn held_back(one: &Value, moments: &Moments) -> String {
    let since = match &one["since"] {
        Value::Null => String::new(),
        at => format!(" since {}", moments.text(at)),
    };
    let (side, operation) = (word(one, "side"), word(one, "operation"));
    format!("held back: {side} {operation}, {}{since}: {}", word(one, "phase"), word(one, "why"))
}

fn evidence(evidence: &Value) -> String {
    let compared = number(&evidence["compared"]);
    let (different, unsettled) = (number(&evidence["different"]), number(&evidence["unsettled"]));
    let operations = count_noun(number(&evidence["operations"]), "operation");
    let not_compared = number(&evidence["not_compared"]);
    format!(
        "{compared} compared in {operations}, {different} differ, {unsettled} unsettled; {not_compared} not compared"
    )
}

fn grants(grants: &Value) -> String {
    let mut text = format!(
        "{} of {} connected",
        number(&grants["connected"]),
        count_noun(number(&grants["clients"]), "client")
    );
    for (name, words) in [
        ("ended", "ended"),
        ("misconfigured", "misconfigured"),
        ("pending", "waiting for a token"),
        ("not_connected", "not connected"),
        ("fixed_credentials", "with fixed credentials"),
    ] {
        let number = number(&grants[name]);
        if number > 0 {
            let _ = write!(text, ", {number} {words}");
        }
    }
    text
}

fn ending(one: &Value) -> String {
    format!("{}: {}", word(one, "client"), word(one, "why"))
}

fn brownouts(brownouts: &Value, moments: &Moments) -> Vec<String> {
    let names = |one: &Value, name: &str, all: &str| {
        let names: Vec<&str> = list(&one[name]).iter().filter_map(Value::as_str).collect();
        if names.is_empty() { all.to_owned() } else { names.join(", ") }
    };
    let window = |one: &Value| {
        let calls = names(one, "operations", "all calls");
        let clients = names(one, "clients", "all clients");
        format!("{}: {} {calls} of {clients}", word(one, "id"), word(one, "side"))
    };
    let open = |one: &Value| format!("open, {}; ends {}", window(one), moments.text(&one["until"]));
    let mut texts = rows(&brownouts["open"], open);
    match &brownouts["next"] {
        Value::Null if texts.is_empty() => texts.push("none open, none planned".to_owned()),
        Value::Null => {}
        next => texts.push(format!("next, {}; starts {}", window(next), moments.text(&next["from"]))),
    }
    texts
}

fn sunset(one: &Value, moments: &Moments) -> String {
    let whose = match &one["client"] {
        Value::Null => word(one, "side").to_owned(),
        client => format!("{} for {}", word(one, "side"), client.as_str().unwrap_or_default()),
    };
    format!("{whose}: {} ({})", word(one, "at"), moments.text(&one["at"]))
}

fn queues(queues: &Value) -> String {
    let text = |name: &str, words: &str| format!("{} {words}", number(&queues[name]));
    let dead = number(&queues["events_dead"]);
    [
        text("comparisons_waiting", "comparisons waiting"),
        text("comparisons_dropped", "dropped"),
        text("comparisons_not_recorded", "not recorded"),
        text("events_pending", "events pending"),
        format!("{dead} dead"),
        text("requests_over_a_limit", "requests over a limit"),
    ]
    .join(", ")
}

fn next(status: &Value) -> String {
    let items = list(&status["attention"]);
    let unread: Vec<&str> = list(&status["unread"]).iter().filter_map(Value::as_str).collect();
    let mut out = String::new();
    if items.is_empty() && unread.is_empty() {
        return "\nNothing needs attention.\n".to_owned();
    }
    if !items.is_empty() {
        out += "\nWhat to do next\n";
    }
    for (item, at) in items.iter().zip(1..) {
        let _ = writeln!(out, "{at:>3}. {}", word(item, "text"));
        if let Some(command) = item["command"].as_str() {
            let _ = writeln!(out, "       {command}");
        }
    }
    if !unread.is_empty() {
        let _ = writeln!(out, "\nUnknown, because the store did not answer in time: {}", unread.join(", "));
    }
    out
}
