//! `switchback doctor`: examines a deployment and prints one line per check.

use super::output::HAS_FINDINGS;
use super::stored::{OutputArgs, VerbError, block_on_verdict};
use crate::app::{CheckState, DoctorCheck, diagnose};
use crate::config::{self, Environment};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Examines a deployment before or while it runs, and prints one line per check, with advice.
///
/// It reads the configuration, the pack, the files and the store, and changes none of them. To each service
/// it opens a connection and sends one HEAD request without a credential. It reads the metadata of the
/// issuer and, if a port is in use, the pack of the gateway at the own admin port. With --offline it sends
/// nothing.
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 no check failed, 1 a check failed (with --strict: or warns), 2 usage error, 3 the \
                        configuration cannot be read.\n\n\
                        Example:\n  switchback doctor switchback.yaml"
)]
pub struct DoctorArgs {
    /// Configuration file of the gateway
    #[arg(value_name = "CONFIG", env = "SWITCHBACK_CONFIG")]
    config: PathBuf,
    /// Send nothing; checks that need the network are unknown
    #[arg(long)]
    offline: bool,
    /// Fail on warnings, too
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &DoctorArgs) -> ExitCode {
    block_on_verdict(examine(args))
}

async fn examine(args: &DoctorArgs) -> Result<ExitCode, VerbError> {
    let outcome = config::load(&args.config, &Environment::process())
        .map_err(|error| VerbError::Run(format!("{} cannot be read: {error}", args.config.display())))?;
    let checks = diagnose(&args.config, outcome, args.offline).await;
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let [ok, warning, failed, unknown] =
        [CheckState::Ok, CheckState::Warning, CheckState::Failed, CheckState::Unknown].map(count);
    let is_healthy = failed == 0 && !(args.strict && warning > 0);
    let value = json!({
        "healthy": is_healthy,
        "ok": ok,
        "warning": warning,
        "failed": failed,
        "unknown": unknown,
        "checks": checks,
    });
    args.output.format().print(&value, || {
        let lines: Vec<String> = checks.iter().map(line).collect();
        format!("{}\n{ok} ok, {warning} warning, {failed} failed, {unknown} unknown", lines.join("\n"))
    });
    Ok(if is_healthy { ExitCode::SUCCESS } else { ExitCode::from(HAS_FINDINGS) })
}

/// Renders a check: its state, name and facts, with the advice below.
fn line(check: &DoctorCheck) -> String {
    let state = match check.state {
        CheckState::Ok => "ok",
        CheckState::Warning => "warning",
        CheckState::Failed => "failed",
        CheckState::Unknown => "unknown",
    };
    let found = check.found.replace('\n', "\n           ");
    let mut line = format!("{state:<8}   {}: {found}", check.name);
    if let Some(advice) = &check.advice {
        line += &format!("\n           → {advice}");
    }
    line
}
