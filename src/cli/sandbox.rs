//! `switchback sandbox`: the service alone.

use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {}

/// Serves until interrupted.
pub fn run(_args: Args) -> ExitCode {
    ExitCode::SUCCESS
}
