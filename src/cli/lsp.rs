//! `switchback lsp`: the language server for editors.

use super::output::COULD_NOT_RUN;
use super::pack::fail;
use std::process::ExitCode;

/// Serves an editor over standard input and output, by the Language Server Protocol: findings as typed,
/// completion, descriptions, definitions, renames of shapes and corrections.
#[derive(clap::Args)]
pub struct LspArgs {
    /// Use standard input and output, the only transport; editors pass it by convention
    #[arg(long)]
    stdio: bool,
}

pub fn run(args: &LspArgs) -> ExitCode {
    let LspArgs { stdio: _ } = args;
    match crate::lsp::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(COULD_NOT_RUN, format_args!("switchback lsp: {error}")),
    }
}
