//! `switchback unknown`: what clients call that nobody knows.

use super::admin_port::{AdminArgs, http};
use super::stored::{Failure, Format, block_on, print_json};
use serde_json::Value;
use std::process::ExitCode;

/// What clients of a running gateway call that no contract has, and tokens that nobody enrolled: the newest fifty, each with
/// how often it came. Such calls go to the old service; a query parameter that the contract of an operation does not have is
/// dropped where the operation is translated. Paths are shown as in the access log.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  switchback unknown --config switchback.yaml")]
pub struct Args {
    #[command(flatten)]
    port: AdminArgs,

    /// How to print the result
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Runs the verb.
pub fn run(args: &Args) -> ExitCode {
    block_on(show(args))
}

async fn show(args: &Args) -> Result<(), Failure> {
    let (admin, token) = args.port.address()?;
    let url = admin.join("api/unknown").map_err(|error| Failure::Usage(format!("--admin: {error}")))?;
    let request = http()?.get(url);
    let request = match &token {
        Some(token) => request.bearer_auth(token.expose()),
        None => request,
    };
    let response = request.send().await;
    let response =
        response.map_err(|error| Failure::Run(format!("the admin port cannot be reached: {error}")))?;
    if !response.status().is_success() {
        return Err(Failure::Run(format!("the gateway answers {}", response.status())));
    }
    let calls: Vec<Value> = response
        .json()
        .await
        .map_err(|error| Failure::Run(format!("the gateway's answer is not understood: {error}")))?;
    match args.format {
        Format::Json => print_json(&calls),
        Format::Text => calls.iter().for_each(|call| println!("{}", line(call))),
    }
    Ok(())
}

fn line(call: &Value) -> String {
    let text = |name: &str| call[name].as_str().unwrap_or_default();
    let client = match text("client") {
        "" => "nobody enrolled",
        client => client,
    };
    let count = call["count"].as_u64().unwrap_or_default();
    format!(
        "{}  {count:>6} x  {:<7} {:<40} unknown {:<10} {client}",
        text("last"),
        text("method"),
        text("path"),
        text("unknown"),
    )
}
