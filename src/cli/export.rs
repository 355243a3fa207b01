//! `switchback pack export`: writes the built-in pack to a folder.

use super::output::{HAS_FINDINGS, count_noun};
use super::pack::{could_not_use, fail};
use crate::app::builtin;
use std::io;
use std::path::Path;
use std::process::ExitCode;

pub(super) fn export(folder: &Path) -> Result<ExitCode, ExitCode> {
    if !is_free(folder).map_err(|error| could_not_use(folder, &error))? {
        let why = format!("{} is not empty; nothing was written", folder.display());
        return Err(fail(HAS_FINDINGS, why));
    }
    let source = builtin::source();
    for (name, content) in source.files() {
        let path = folder.join(name);
        let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written = written.and_then(|()| std::fs::write(&path, content));
        written.map_err(|error| could_not_use(&path, &error))?;
    }
    println!("{} in {}", count_noun(source.files().len() as u64, "file"), folder.display());
    Ok(ExitCode::SUCCESS)
}

/// Returns whether the folder is missing or empty, so that no file is overwritten.
pub(super) fn is_free(folder: &Path) -> io::Result<bool> {
    match std::fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}
