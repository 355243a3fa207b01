//! `switchback pack export`: writes the built-in pack to a folder.

use super::output::count_noun;
use super::pack::{COULD_NOT_RUN, HAS_FINDINGS};
use crate::app::builtin;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The pack that is built into the program.
#[derive(clap::Args)]
pub struct ExportArgs {
    #[command(subcommand)]
    verb: ExportVerb,
}

#[derive(clap::Subcommand)]
enum ExportVerb {
    /// Writes it out as a folder, for `mapping:` of a configuration. What its settings do not say can then be changed
    Export {
        /// A folder that is empty or not there yet
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

pub fn run(args: &ExportArgs) -> ExitCode {
    let ExportVerb::Export { folder } = &args.verb;
    match is_free(folder) {
        Ok(true) => {}
        Ok(false) => {
            eprintln!("{} is not empty; nothing was written", folder.display());
            return ExitCode::from(HAS_FINDINGS);
        }
        Err(error) => return could_not(folder, &error),
    }
    let source = builtin::source();
    for (name, content) in source.files() {
        let path = folder.join(name);
        let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        if let Err(error) = written.and_then(|()| std::fs::write(&path, content)) {
            return could_not(&path, &error);
        }
    }
    println!("{} in {}", count_noun(source.files().len() as u64, "file"), folder.display());
    ExitCode::SUCCESS
}

/// Returns whether the folder is missing or empty, so that no file is overwritten.
fn is_free(folder: &Path) -> io::Result<bool> {
    match std::fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

fn could_not(path: &Path, error: &io::Error) -> ExitCode {
    eprintln!("{}: {error}", path.display());
    ExitCode::from(COULD_NOT_RUN)
}
