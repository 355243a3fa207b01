//! `switchback completions`: shell completions of the command line.

use clap_complete::Shell;
use std::process::ExitCode;

/// Prints the completions for a shell, such as `switchback completions bash >
/// /etc/bash_completion.d/switchback`.
#[derive(clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &CompletionsArgs) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "switchback", &mut script);
    print!("{}", String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}
