//! `switchback notices`: sends a test notice to receivers.

use super::output::{HAS_FINDINGS, list};
use super::stored::{OutputArgs, VerbError, block_on_verdict, load_config};
use crate::app::notice_endpoints;
use clap::Subcommand;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use switchback_compiler::diagnostic::did_you_mean;
use switchback_gateway::clock::Clock;
use switchback_gateway::notices::{Notice, NoticeEndpoint};

/// Longest part of an answer that is printed, in characters.
const ANSWER_CHARS_MAX: usize = 200;

/// Arguments of `switchback notices`.
#[derive(clap::Args)]
pub struct NoticesArgs {
    #[command(subcommand)]
    verb: NoticesVerb,
}

#[derive(Subcommand)]
enum NoticesVerb {
    /// Send a test notice to the receivers, once, and print their answers
    #[command(
        after_help = "Exit codes: 0 all receivers accepted it, 1 a receiver did not, 2 usage error.\n\n\
                            Example:\n  switchback notices test --receiver team --config switchback.yaml"
    )]
    Test(TestArgs),
}

#[derive(clap::Args)]
struct TestArgs {
    /// Configuration file of the gateway
    #[arg(long, value_name = "FILE", env = "SWITCHBACK_CONFIG")]
    config: PathBuf,
    /// Name of a receiver [default: all]
    #[arg(long, value_name = "NAME")]
    receiver: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &NoticesArgs) -> ExitCode {
    let NoticesVerb::Test(args) = &args.verb;
    block_on_verdict(test(args))
}

async fn test(args: &TestArgs) -> Result<ExitCode, VerbError> {
    let mut config = load_config(&args.config)?.notices;
    let names: Vec<String> = config.receivers.iter().map(|one| one.name.clone()).collect();
    if let Some(name) = &args.receiver {
        config.receivers.retain(|one| one.name == *name);
    }
    if config.receivers.is_empty() {
        let what = match &args.receiver {
            Some(name) => format!("`notices.receivers` has no receiver `{name}`"),
            None => "`notices.receivers` has no receivers".to_owned(),
        };
        let suggestion = args.receiver.as_ref().and_then(|name| did_you_mean(name, &names));
        let suggestion = suggestion.map_or_else(String::new, |suggestion| format!("; {suggestion}"));
        return Err(VerbError::Usage(what + &suggestion));
    }
    let now_ms = Clock::machine().unix_ms();
    let notice = Notice::test(now_ms);
    let mut answers = Vec::new();
    for endpoint in notice_endpoints(&config)? {
        answers.push(answer(&endpoint, &notice, now_ms).await);
    }
    args.output.format().print(&answers, || list(answers.iter().map(line), ""));
    let are_delivered = answers.iter().all(|answer| answer["delivered"] == true);
    Ok(if are_delivered { ExitCode::SUCCESS } else { ExitCode::from(HAS_FINDINGS) })
}

async fn answer(endpoint: &NoticeEndpoint, notice: &Notice, now_ms: i64) -> Value {
    let name = &endpoint.receiver.name;
    match endpoint.send(notice, now_ms).await {
        Ok(answer) => {
            let text = answer.text.lines().next().unwrap_or_default().chars();
            let text: String = text.filter(|c| !c.is_control()).take(ANSWER_CHARS_MAX).collect();
            let status = answer.status;
            json!({"receiver": name, "delivered": status.is_success(), "status": status.as_u16(), "answer": text})
        }
        Err(why) => json!({"receiver": name, "delivered": false, "status": null, "answer": why}),
    }
}

fn line(answer: &Value) -> String {
    let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
    let state = if answer["delivered"] == true { "delivered" } else { "not delivered" };
    let status = answer["status"].as_u64().map_or_else(String::new, |status| format!(" {status}"));
    format!("{}: {state},{status} {}", text("receiver"), text("answer"))
        .trim_end_matches([' ', ','])
        .to_owned()
}
