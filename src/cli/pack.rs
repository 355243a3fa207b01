//! The PACK argument that verbs about mappings share, and the reading of it.

use crate::app::builtin::{self, BUILT_IN};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use switchback_compiler::diagnostic::{self, Colour, Severity};
use switchback_compiler::mapping::load::PackSource;
use switchback_compiler::mapping::{Compiled, compile};
use switchback_plan::Pack;

/// Which pack.
#[derive(clap::Args)]
pub(super) struct PackArg {
    /// Folder of the pack; without it `mappings/messaging` where that is a folder, else the pack that is built in
    #[arg(value_name = "PACK")]
    pack: Option<PathBuf>,
}

/// The pack that people have at hand in a checkout.
const USUAL_FOLDER: &str = "mappings/messaging";

/// The thing examined has findings.
pub(super) const HAS_FINDINGS: u8 = 1;
/// It could not be examined.
pub(super) const COULD_NOT_RUN: u8 = 3;

impl PackArg {
    /// Its folder; none for the pack that is built in.
    pub fn folder(&self) -> Option<&Path> {
        let usual = Path::new(USUAL_FOLDER);
        self.pack.as_deref().or_else(|| usual.is_dir().then_some(usual))
    }

    /// Reads and compiles it.
    pub fn compile(&self) -> Result<Compiled, ExitCode> {
        let Some(folder) = self.folder() else { return Ok(compile(&builtin::source())) };
        match PackSource::from_dir(folder) {
            Ok(source) => Ok(compile(&source)),
            Err(error) => {
                eprintln!("{}: {error}", folder.display());
                Err(ExitCode::from(COULD_NOT_RUN))
            }
        }
    }

    fn name(&self) -> String {
        self.folder().map_or_else(|| BUILT_IN.to_owned(), |folder| folder.display().to_string())
    }

    /// Reads and compiles it for verbs that need it whole; says what is wrong with it otherwise.
    pub fn pack(&self) -> Result<Arc<Pack>, ExitCode> {
        let compiled = self.compile()?;
        compiled.pack.clone().ok_or_else(|| {
            eprint!("{}", shown(&compiled, io::stderr().is_terminal()));
            eprintln!("{} errors in {}", compiled.findings.count(Severity::Error), self.name());
            ExitCode::from(HAS_FINDINGS)
        })
    }
}

/// The findings as text.
pub(super) fn shown(compiled: &Compiled, terminal: bool) -> String {
    let colour = if terminal { Colour::Always } else { Colour::Never };
    diagnostic::to_text(&compiled.sources, &compiled.findings, colour)
}
