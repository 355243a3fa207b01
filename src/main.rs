//! The `switchback` binary: parses the command line and hands over to the verb.

use std::process::ExitCode;

fn main() -> ExitCode {
    switchback::cli::main()
}
