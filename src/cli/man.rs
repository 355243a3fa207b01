//! `switchback man`: generates manual pages from the text of `--help`.

use super::output::COULD_NOT_RUN;
use super::pack::fail;
use std::path::PathBuf;
use std::process::ExitCode;

/// Writes manual pages to a folder, one for the program and one for each verb, such as `switchback man
/// /usr/local/share/man/man1`.
#[derive(clap::Args)]
pub struct ManArgs {
    /// Folder; created if missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes all pages. Reports a folder that cannot be written.
pub fn run(args: &ManArgs) -> ExitCode {
    let written = std::fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(super::command(), &args.folder));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(COULD_NOT_RUN, format_args!("switchback man: {}: {error}", args.folder.display())),
    }
}
