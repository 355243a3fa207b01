//! `switchback completions`: what a shell needs to complete the command line.

use super::Cli;
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Writes the completions for a shell to standard output, such as
/// `switchback completions bash > /etc/bash_completion.d/switchback`.
#[derive(clap::Args)]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes them whole or says why not; who reads only the beginning has what he wanted.
pub fn run(args: &Args) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "switchback", &mut script);
    match io::stdout().write_all(&script) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("switchback completions: {error}");
            ExitCode::from(3)
        }
        _ => ExitCode::SUCCESS,
    }
}
