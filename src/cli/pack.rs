//! The argument PACK of the verbs about mappings.

use super::output::{COULD_NOT_RUN, HAS_FINDINGS, count_noun};
use crate::app::builtin::{self, BUILT_IN};
use serde_json::json;
use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use switchback_compiler::diagnostic::{self, Colour, Severity};
use switchback_compiler::mapping::load::PackSource;
use switchback_compiler::mapping::{Compiled, compile};
use switchback_engine::translate::Settings;
use switchback_json::{Limits, Value};
use switchback_plan::Pack;

/// The pack.
#[derive(clap::Args)]
pub(super) struct PackArg {
    /// Folder of the pack [default: `mappings/messaging` if it exists, else the built-in pack]
    #[arg(value_name = "PACK")]
    pack: Option<PathBuf>,
}

/// The default pack in a checkout of the repository.
const USUAL_FOLDER: &str = "mappings/messaging";

/// Reports why a verb failed. Returns its exit code.
pub(super) fn fail(code: u8, why: impl Display) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(code)
}

/// Reports that a file or folder cannot be read or written.
pub(super) fn could_not_use(path: &Path, error: &impl Display) -> ExitCode {
    fail(COULD_NOT_RUN, format_args!("{}: {error}", path.display()))
}

impl PackArg {
    /// Returns the folder of the pack; `None` for the built-in one.
    pub fn folder(&self) -> Option<&Path> {
        let usual = Path::new(USUAL_FOLDER);
        self.pack.as_deref().or_else(|| usual.is_dir().then_some(usual))
    }

    pub fn compile(&self) -> Result<Compiled, ExitCode> {
        let Some(folder) = self.folder() else { return Ok(compile(&builtin::source())) };
        let source = PackSource::from_dir(folder).map_err(|error| could_not_use(folder, &error))?;
        Ok(compile(&source))
    }

    fn name(&self) -> String {
        self.folder().map_or_else(|| BUILT_IN.to_owned(), |folder| folder.display().to_string())
    }

    /// Reads and compiles the pack, for verbs that need a valid one. Prints the findings otherwise.
    pub fn pack(&self) -> Result<Arc<Pack>, ExitCode> {
        let compiled = self.compile()?;
        compiled.pack.clone().ok_or_else(|| {
            eprint!("{}", render_findings(&compiled, io::stderr().is_terminal()));
            let errors = compiled.findings.count(Severity::Error) as u64;
            fail(HAS_FINDINGS, format_args!("{} in {}", count_noun(errors, "error"), self.name()))
        })
    }
}

/// Compiles the pack of a configuration: its folder, or the built-in one.
pub(super) fn compile_pack(folder: Option<&Path>) -> Result<Arc<Pack>, String> {
    let source = match folder {
        None => builtin::source(),
        Some(folder) => PackSource::from_dir(folder)
            .map_err(|error| format!("the pack {} cannot be read: {error}", folder.display()))?,
    };
    let compiled = compile(&source);
    compiled.pack.clone().ok_or_else(|| render_findings(&compiled, false))
}

pub(super) fn render_findings(compiled: &Compiled, terminal: bool) -> String {
    let colour = if terminal { Colour::Always } else { Colour::Never };
    diagnostic::to_text(&compiled.sources, &compiled.findings, colour)
}

/// Values for the settings of the pack, where no configuration gives them.
#[derive(clap::Args)]
pub(super) struct SettingsArg {
    /// Setting of the pack, such as limits.things=10; repeat for several
    #[arg(long = "set", value_name = "NAME=JSON")]
    settings: Vec<String>,
}

impl SettingsArg {
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }

    /// Returns the pack's default settings, overridden by these.
    pub fn resolve(&self, pack: &Pack) -> Result<Settings, String> {
        let mut tree = json!({});
        for text in &self.settings {
            let form = || format!("`{text}` is not NAME=JSON, such as limits.things=10");
            let (name, value) = text.split_once('=').ok_or_else(form)?;
            // A value that is no JSON counts as a string.
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            let mut place = &mut tree;
            for part in name.split('.') {
                place = place.as_object_mut().ok_or_else(form)?.entry(part).or_insert_with(|| json!({}));
            }
            *place = value;
        }
        let tree = Value::parse(tree.to_string().as_bytes(), &Limits::DOCUMENT)
            .map_err(|error| error.to_string())?;
        Settings::new(pack, &tree)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }
}
