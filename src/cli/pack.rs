//! The PACK argument that verbs about mappings share, and the reading of it.

use crate::diagnostic::{self, Colour, Severity};
use crate::mapping::load::PackSource;
use crate::mapping::{Compiled, compile};
use crate::plan::Pack;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Which pack.
#[derive(clap::Args)]
pub(super) struct PackArg {
    /// Folder of the pack
    #[arg(value_name = "PACK", default_value = "mappings/messaging")]
    pack: PathBuf,
}

/// The thing examined has findings.
pub(super) const HAS_FINDINGS: u8 = 1;
/// It could not be examined.
pub(super) const COULD_NOT_RUN: u8 = 3;

impl PackArg {
    /// Reads and compiles it.
    pub fn compile(&self) -> Result<Compiled, ExitCode> {
        match PackSource::from_dir(&self.pack) {
            Ok(source) => Ok(compile(&source)),
            Err(error) => {
                eprintln!("{}: {error}", self.pack.display());
                Err(ExitCode::from(COULD_NOT_RUN))
            }
        }
    }

    /// Reads and compiles it for verbs that need it whole; says what is wrong with it otherwise.
    pub fn pack(&self) -> Result<Arc<Pack>, ExitCode> {
        let compiled = self.compile()?;
        compiled.pack.clone().ok_or_else(|| {
            eprint!("{}", shown(&compiled, io::stderr().is_terminal()));
            eprintln!("{} errors in {}", compiled.findings.count(Severity::Error), self.pack.display());
            ExitCode::from(HAS_FINDINGS)
        })
    }
}

/// The findings as text.
pub(super) fn shown(compiled: &Compiled, terminal: bool) -> String {
    let colour = if terminal { Colour::Always } else { Colour::Never };
    diagnostic::to_text(&compiled.sources, &compiled.findings, colour)
}
