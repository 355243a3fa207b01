//! `switchback unknown`: prints calls to unknown operations and by unknown clients.

use super::admin_port::AdminArgs;
use super::stored::{Format, OutputArgs, VerbError, block_on, print_json};
use serde_json::Value;
use std::process::ExitCode;
use switchback_gateway::proxy::unknown_calls::UNKNOWN_CALLS_MAX;

/// Lists calls of one running gateway that match no operation of a contract, and calls with tokens
/// of unknown clients: the newest fifty since it started, each with its count. Such calls are
/// forwarded to the old service. A query parameter that the operation does not declare is listed,
/// too: a translated call drops it. Paths are those of the access log.
///
/// Fronts with `unknown: refuse` forward no such calls, so that none are listed; `switchback usage
/// --unknown` counts those that match no operation.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  switchback unknown --config switchback.yaml")]
pub struct UnknownArgs {
    #[command(flatten)]
    port: AdminArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &UnknownArgs) -> ExitCode {
    block_on(show(args))
}

async fn show(args: &UnknownArgs) -> Result<(), VerbError> {
    let calls: Vec<Value> = args.port.get("api/unknown", &[]).await?;
    match args.output.format() {
        Format::Json => print_json(&calls),
        Format::Text => print!("{}", text(&calls)),
    }
    Ok(())
}

fn text(calls: &[Value]) -> String {
    if calls.is_empty() {
        return "No unknown calls.\n".to_owned();
    }
    let mut out: String = calls.iter().map(|call| line(call) + "\n").collect();
    if calls.len() >= UNKNOWN_CALLS_MAX {
        out += &format!(
            "The list is full: it has the newest {UNKNOWN_CALLS_MAX}, and older calls are no longer listed.\n"
        );
    }
    out
}

fn line(call: &Value) -> String {
    let text = |name: &str| call[name].as_str().unwrap_or_default();
    let client = match text("client") {
        "" => "(unknown client)",
        client => client,
    };
    let count = call["count"].as_u64().unwrap_or_default();
    format!(
        "{}  {count:>6} x since {}  {:<7} {:<40} unknown {:<10} {client}",
        text("last"),
        text("first"),
        text("method"),
        text("path"),
        text("unknown"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_when_it_is_empty_and_when_it_is_full() {
        let call = serde_json::json!({
            "side": "v2", "method": "GET", "path": "/v2/reports/*", "client": "", "unknown": "path", "count": 3,
            "first": "2026-01-01T00:00:00Z", "last": "2026-01-02T00:00:00Z",
        });
        assert_eq!(text(&[]), "No unknown calls.\n");
        let one = text(std::slice::from_ref(&call));
        let words: Vec<&str> = one.split_whitespace().collect();
        assert_eq!(
            words.join(" "),
            "2026-01-02T00:00:00Z 3 x since 2026-01-01T00:00:00Z GET /v2/reports/* unknown path (unknown client)"
        );
        assert!(text(&vec![call.clone(); 50]).ends_with("older calls are no longer listed.\n"));
        assert_eq!(text(&vec![call; 49]).lines().count(), 49);
        let verb = <UnknownArgs as clap::Args>::augment_args(clap::Command::new("unknown"));
        let help = verb.get_long_about().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("fifty") && UNKNOWN_CALLS_MAX == 50, "{help}");
    }
}
