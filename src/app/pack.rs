//! Loads a pack: reads and compiles it, and runs its examples. A pack that fails any of these is
//! rejected, at start and on reload.

use super::builtin::{self, BUILT_IN};
use crate::admin::PackShown;
use crate::config::{PackFacts, SettingFacts, SettingType, SideFacts, WaitFacts, without_secrets};
use crate::operate::PackRestoration;
use crate::playground::{KeptContracts, KeptFiles};
use sha2::{Digest, Sha256};
use std::fmt::{Display, Write as _};
use std::path::Path;
use std::sync::Arc;
use switchback_compiler::contract::call_breaches;
use switchback_compiler::diagnostic::{Colour, to_text};
use switchback_compiler::mapping;
use switchback_compiler::mapping::load::PackSource;
use switchback_engine::translate::{SettingError, Settings, example};
use switchback_gateway::shadow::{CallContract, Knowledge};
use switchback_json::Value;
use switchback_plan::{self as plan, Pack, SideId};

/// Why a pack cannot serve. The texts are those of `switchback check` and `switchback test`.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The folder, without secrets, and the cause.
    #[error("the pack {0} cannot be read: {1}")]
    Read(String, String),
    /// The rendered findings.
    #[error("{0}")]
    Findings(String),
    #[error("the store has no such pack, or a damaged one")]
    NotRecorded,
    #[error("examples of the pack do not hold:\n{}", .0.join("\n"))]
    Examples(Vec<String>),
}

/// A pack that is fit to serve, with all routes that settings choose from.
#[derive(Debug)]
pub(super) struct ReadPack {
    pack: Arc<Pack>,
    contracts: Arc<KeptContracts>,
    source: String,
    hash: String,
    files: Arc<KeptFiles>,
    shown: Arc<PackShown>,
}

/// A pack with the operator's settings applied.
#[derive(Debug)]
pub(super) struct LoadedPack {
    /// The compiled pack, reduced to one route per operation.
    pub(super) pack: Arc<Pack>,
    pub(super) settings: Arc<Settings>,
    /// The key of the collected evidence: the hash, plus each setting that selects a route other
    /// than the default, since evidence about one route does not apply to another.
    pub(super) served: String,
    /// The pack as the dual run sees it.
    pub(super) knowledge: Arc<Knowledge>,
    /// The folder, or [`BUILT_IN`].
    pub(super) source: String,
    /// SHA-256 of the names and contents of all files, in hexadecimal.
    pub(super) hash: String,
    /// The source files, which the playground edits.
    pub(super) files: Arc<KeptFiles>,
    /// The pack as the admin port presents it.
    pub(super) shown: Arc<PackShown>,
    /// Why it serves instead of the pack on disk, if it does.
    pub(super) restored: Option<PackRestoration>,
}

/// Reads the files of a pack; `None` is the built-in one.
pub(super) fn read_pack(folder: Option<&Path>) -> Result<PackSource, PackError> {
    match folder {
        None => Ok(builtin::source()),
        Some(folder) => PackSource::from_dir(folder).map_err(|error| {
            // A secret may have ended up in the path, for example a token in `mapping`.
            let text = |text: &dyn Display| without_secrets(&text.to_string());
            PackError::Read(text(&folder.display()), text(&error))
        }),
    }
}

/// Compiles a pack and runs its examples.
pub(super) fn load(folder: Option<&Path>) -> Result<ReadPack, PackError> {
    read(read_pack(folder)?, folder, "")
}

/// Compiles the files of a pack and runs its examples. `origin` precedes the folder in the name of
/// the source.
pub(super) fn read(source: PackSource, folder: Option<&Path>, origin: &str) -> Result<ReadPack, PackError> {
    let hash = hash(&source);
    let compiled = mapping::compile(&source);
    let Some(pack) = compiled.pack else {
        return Err(PackError::Findings(to_text(&compiled.sources, &compiled.findings, Colour::Never)));
    };
    check_examples(&pack)?;
    let files = Arc::new(KeptFiles::new(&source));
    let contracts = Arc::new(KeptContracts::new(Arc::clone(&files)));
    // Before `without_checks`: the report describes the named shapes, which serving does not need.
    let report = plan::report(&pack);
    let shown = PackShown {
        report,
        contracts: Arc::clone(&contracts),
        files: Arc::clone(&files),
        folder: folder.map(Path::to_owned),
    };
    let shown = Arc::new(shown);
    let pack = without_checks(pack);
    let source = folder.map_or_else(|| BUILT_IN.to_owned(), |folder| folder.display().to_string());
    let source = format!("{origin}{source}");
    Ok(ReadPack { pack, contracts, source, hash, files, shown })
}

impl ReadPack {
    /// Returns the facts that configurations are checked against.
    pub(super) fn facts(&self) -> PackFacts {
        facts(&self.pack)
    }

    /// Returns the names of the sides, old one first.
    pub(super) fn sides(&self) -> [String; 2] {
        self.pack.sides.each_ref().map(|side| side.name.clone())
    }

    /// Applies settings to the pack.
    pub(super) fn with_settings(mut self, given: &Value) -> Result<LoadedPack, Vec<SettingError>> {
        let settings = Settings::new(&self.pack, given)?;
        let own = Arc::get_mut(&mut self.pack).expect("nobody else has been given the pack yet");
        let chose = settings.choose(own);
        let mut served = self.hash.clone();
        for setting in chose {
            // The names suffice: each setting selects one alternative route by being enabled.
            let _ = write!(served, "+{}", own.settings[usize::from(setting)].name);
        }
        let contracts = [0, 1].map(|side| {
            let contracts = Arc::clone(&self.contracts);
            Box::new(Promised { contracts, side }) as Box<dyn CallContract>
        });
        let knowledge = Arc::new(Knowledge::new(Arc::clone(&self.pack), &served, contracts));
        let settings = Arc::new(settings);
        let ReadPack { pack, source, hash, files, shown, .. } = self;
        Ok(LoadedPack { pack, settings, served, knowledge, source, hash, files, shown, restored: None })
    }
}

/// The contract of one side, for the dual run.
#[derive(Debug)]
struct Promised {
    contracts: Arc<KeptContracts>,
    side: usize,
}

impl CallContract for Promised {
    fn breaches(&self, operation: &str, target: &str, body: Option<&[u8]>) -> Vec<String> {
        let contracts = self.contracts.contracts();
        contracts.map_or_else(Vec::new, |all| call_breaches(&all[self.side], operation, target, body))
    }
}

/// Drops the examples, and the named shapes that only they use, to save memory: serving does not
/// need them.
fn without_checks(mut pack: Arc<Pack>) -> Arc<Pack> {
    let own = Arc::get_mut(&mut pack).expect("nobody else has been given the pack yet");
    (own.examples, own.shapes) = (Vec::new(), Vec::new());
    pack
}

/// Runs the examples of a pack. An outcome that no example covers is left to `switchback test`: it
/// does not prevent serving.
fn check_examples(pack: &Arc<Pack>) -> Result<(), PackError> {
    let report = example::run_all(pack);
    let problems: Vec<String> =
        report.outcomes.iter().flat_map(|outcome| &outcome.problems).map(ToString::to_string).collect();
    if problems.is_empty() { Ok(()) } else { Err(PackError::Examples(problems)) }
}

/// Returns the SHA-256 of names and contents. Each part is prefixed with its length, so that bytes
/// cannot move from one part to the next unnoticed.
pub(super) fn hash(source: &PackSource) -> String {
    let mut digest = Sha256::new();
    for (name, content) in source.files() {
        for part in [name.as_bytes(), content] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
    }
    digest.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn facts(pack: &Pack) -> PackFacts {
    let side = |id: SideId| {
        let side = &pack.sides[id];
        let direction = &pack.directions[id];
        let events = pack.events.iter().filter(|events| events.from.other() == id);
        let waits = direction.routes.iter().filter_map(|route| {
            let longest = route.all().map(plan::Route::longest_wait).max().filter(|wait| !wait.is_zero())?;
            let origin = &route.origin;
            let (operation, route) =
                (route.operation.key.to_string(), format!("{}:{}", origin.file, origin.line));
            Some(WaitFacts { operation, route, longest })
        });
        let told = events.flat_map(|events| events.routes.iter().filter_map(plan::EventRoute::delivered));
        SideFacts {
            name: side.name.clone(),
            hosts: side.hosts.clone(),
            operations: direction.routes.iter().map(|route| route.operation.key.to_string()).collect(),
            events: told.map(|told| told.operation.to_string()).collect(),
            waits: waits.collect(),
            is_served: direction.is_served(),
            has_scope: side.scope.is_some(),
        }
    };
    let read = [SideId::OLD, SideId::NEW].map(|side| (&pack.sides[side].name, pack.settings_read(side)));
    let readers = |at: u16| -> Vec<String> {
        read.iter().filter(|(_, settings)| settings.contains(&at)).map(|(side, _)| (*side).clone()).collect()
    };
    let setting = |(setting, at): (&plan::Setting, u16)| SettingFacts {
        name: setting.name.clone(),
        kind: match setting.kind {
            plan::SettingKind::Boolean => SettingType::Boolean,
            plan::SettingKind::Integer => SettingType::Integer,
            plan::SettingKind::String => SettingType::String,
            plan::SettingKind::Date => SettingType::Date,
        },
        is_required: setting.is_required,
        read_by: readers(at),
        values: setting.values.clone(),
        about: setting.about.clone(),
    };
    PackFacts {
        sides: [side(SideId::OLD), side(SideId::NEW)],
        client_auth: pack.sides[SideId::NEW].credential.tokens.client_auth,
        settings: pack.settings.iter().zip(0..).map(setting).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_checks_need_is_not_kept() {
        let compiled = mapping::compile(&builtin::source()).pack.expect("the built-in pack compiles");
        assert!(!compiled.examples.is_empty() && !compiled.shapes.is_empty());
        let loaded = load(None).expect("the built-in pack is fit to serve");
        let loaded = loaded
            .with_settings(&Value::Object(switchback_json::Object::new()))
            .expect("no setting is wrong");
        assert!(loaded.pack.examples.is_empty() && loaded.pack.shapes.is_empty());
        assert_eq!(loaded.pack.directions[0].routes.len(), compiled.directions[0].routes.len());
    }
}
