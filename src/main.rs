//! The `switchback` binary. See [`switchback::cli`] for the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    switchback::cli::main()
}
