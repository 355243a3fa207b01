//! `switchback requests`: prints the sample of recent requests of a running gateway.

use super::admin_port::AdminArgs;
use super::stored::{Format, OutputArgs, VerbError, block_on, print_json};
use serde_json::Value;
use std::process::ExitCode;
use switchback_gateway::clock::rfc3339;

/// Lists a sample of recent requests of a running gateway and of its replicas, newest first, each
/// with its outcome, its upstream calls and its duration. `--format json` also has the times of
/// each call. Paths are masked like those of a capture.
///
/// The sample has all requests of a quiet gateway, and a part of those of a busy one, failed ones
/// first.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  switchback requests --config switchback.yaml --status 5xx\n  \
    switchback requests --config switchback.yaml --client acme --minutes 60 --format json")]
pub struct RequestsArgs {
    #[command(flatten)]
    port: AdminArgs,

    /// Length of the period: 5, 15, 60 or 1440 minutes
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,

    /// Requests of this client only; `(none)` for unknown clients
    #[arg(long, value_name = "NAME")]
    client: Option<String>,

    /// Requests for this operation only, such as 'GET /things/{id}'
    #[arg(long, value_name = "OPERATION")]
    operation: Option<String>,

    /// Requests with this status only, such as 404 or 5xx
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,

    /// Requests with this outcome only, such as `upstream_error`
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,

    /// Requests in this phase of their operation only
    #[arg(long, value_name = "PHASE")]
    phase: Option<String>,

    /// Requests whose id contains this text
    #[arg(long, value_name = "TEXT")]
    id: Option<String>,

    /// Most requests to list, up to 1000
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: u64,

    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &RequestsArgs) -> ExitCode {
    block_on(show(args))
}

async fn show(args: &RequestsArgs) -> Result<(), VerbError> {
    let number = |number: u64| Some(number.to_string());
    let pairs = [
        ("minutes", args.minutes.and_then(number)),
        ("client", args.client.clone()),
        ("operation", args.operation.clone()),
        ("status", args.status.clone()),
        ("outcome", args.outcome.clone()),
        ("phase", args.phase.clone()),
        ("id", args.id.clone()),
        ("limit", number(args.limit)),
    ];
    let given: Vec<(&str, String)> =
        pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let list: Value = args.port.get("api/requests", &given).await?;
    match args.output.format() {
        Format::Json => print_json(&list),
        Format::Text => print!("{}", text(&list)),
    }
    Ok(())
}

fn text(list: &Value) -> String {
    let number = |name: &str| list[name].as_u64().unwrap_or_default();
    let samples = list["samples"].as_array().map_or(&[][..], Vec::as_slice);
    let mut out: String = samples.iter().map(|sample| line(sample) + "\n").collect();
    out += &format!(
        "{} of {} matching requests; the sample has {} of {} requests of the last {} min\n",
        samples.len(),
        number("matching"),
        number("sampled"),
        number("requests"),
        number("minutes"),
    );
    out
}

fn line(sample: &Value) -> String {
    let text = |name: &str| sample[name].as_str().unwrap_or_default();
    let status = sample["status"].as_u64().map_or("-".to_owned(), |status| status.to_string());
    let millis = sample["took_us"].as_f64().unwrap_or_default() / 1e3;
    let client = match text("client") {
        "" => "(unknown client)",
        client => client,
    };
    format!(
        "{}  {}  {status:>3} {:<14} {millis:>9.1} ms  {} calls  {:<20} {} {}",
        rfc3339(sample["at_ms"].as_i64().unwrap_or_default()),
        text("id"),
        text("outcome"),
        sample["calls"].as_array().map_or(0, Vec::len),
        client,
        text("method"),
        text("path"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_is_a_line_and_the_last_one_has_the_extent_of_the_sample() {
        let sample = json!({
            "id": "00ab00000000cdef", "at_ms": 1_000, "client": "", "method": "GET", "path": "/v2/x", "status": null,
            "outcome": "cancelled", "took_us": 1_500, "calls": [{}],
        });
        let list =
            json!({ "minutes": 15, "sampled": 2, "requests": 900, "matching": 1, "samples": [sample] });
        let words: Vec<String> =
            text(&list).lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            words,
            [
                "1970-01-01T00:00:01Z 00ab00000000cdef - cancelled 1.5 ms 1 calls (unknown client) GET /v2/x",
                "1 of 1 matching requests; the sample has 2 of 900 requests of the last 15 min",
            ]
        );
    }
}
