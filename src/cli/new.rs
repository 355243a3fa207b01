//! `switchback new`: a small pack to start from.

use super::export::is_free;
use super::output::{HAS_FINDINGS, count_noun};
use super::pack::{could_not_use, fail};
use std::path::PathBuf;
use std::process::ExitCode;

/// Writes a small pack that passes `check` and `test`: two contracts, a mapping file with an example, and a
/// page about what to change. With the documents of your versions, use `switchback init` instead.
#[derive(clap::Args)]
pub struct NewArgs {
    /// Empty or missing folder
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

const FILES: [(&str, &str); 5] = [
    ("README.md", include_str!("new/README.md")),
    ("contracts/v1.openapi.yaml", include_str!("new/v1.openapi.yaml")),
    ("contracts/v2.openapi.yaml", include_str!("new/v2.openapi.yaml")),
    ("notes.map.yaml", include_str!("new/notes.map.yaml")),
    ("pack.yaml", include_str!("new/pack.yaml")),
];

pub fn run(args: &NewArgs) -> Result<ExitCode, ExitCode> {
    let folder = &args.folder;
    if !is_free(folder).map_err(|error| could_not_use(folder, &error))? {
        return Err(fail(
            HAS_FINDINGS,
            format_args!("{} is not empty; nothing was written", folder.display()),
        ));
    }
    for (name, content) in FILES {
        let path = folder.join(name);
        let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written = written.and_then(|()| std::fs::write(&path, content));
        written.map_err(|error| could_not_use(&path, &error))?;
    }
    println!("{} in {folder}", count_noun(FILES.len() as u64, "file"), folder = folder.display());
    Ok(ExitCode::SUCCESS)
}
