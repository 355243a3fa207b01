//! The pack under test: the served one, or a variant with edited files. Compiled on demand with its
//! examples, and cached.

use super::checked::CheckedExamples;
use super::files::{KeptFiles, PackFile};
use super::recorded::RecordedExchanges;
use crate::lsp::MemoryPack;
use arc_swap::ArcSwap;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use switchback_compiler::contract::{Contract, Contracts, OpKey, TypeKind};
use switchback_compiler::diagnostic::{Colour, to_text};
use switchback_compiler::mapping::load::{MANIFEST, MAPPING_SUFFIX, PackSource};
use switchback_compiler::mapping::{Compiler, kept};
use switchback_engine::translate::Settings;
use switchback_gateway::http_client::ServiceAddress;
use switchback_json::{Limits, Value};
use switchback_plan::router::{Found, Router};
use switchback_plan::{Example, ExampleKind, Origin, Pack, PerSide, Raw, RouteExample, SideId};
use tokio::task::spawn_blocking;

/// The served state that dry runs depend on.
#[derive(Clone, Debug)]
pub struct ServedPack {
    pub files: Arc<KeptFiles>,
    /// The operator's values of the pack's settings, as JSON.
    pub settings: String,
    /// Path prefixes with the side that clients speak there.
    pub fronts: Vec<(String, String)>,
    /// Service addresses, by side, and by `SIDE/HOST` for other hosts.
    pub upstreams: Vec<(String, ServiceAddress)>,
    /// Configured public addresses of services, by the same names.
    pub public_urls: Vec<(String, String)>,
    /// The folder of the pack, if edited files may be saved there.
    pub writable: Option<PathBuf>,
}

/// A playground session. Clones share its state.
#[derive(Clone)]
pub struct PlaygroundSession(pub(super) Arc<WorkbenchState>);

pub(super) struct WorkbenchState {
    pub(super) served: ArcSwap<ServedPack>,
    /// Compiled packs by their edited files, the newest last. A compilation may outlive a reload,
    /// so lookups also compare the served state.
    compiled: Mutex<Vec<(Changes, Arc<DryRunPack>)>>,
    /// Locked during a compilation, so that concurrent requests for the same pack compile once and
    /// never occupy all cores.
    pub(super) compiling: tokio::sync::Mutex<()>,
    recorded: RecordedExchanges,
    pub(super) editor: Arc<tokio::sync::Mutex<EditorState>>,
}

/// The compiled state of the editors, with the pack that it belongs to.
pub(super) type EditorState = Option<(Arc<ServedPack>, MemoryPack)>;

/// Texts of mapping files, by name, in place of the served ones.
pub type Changes = BTreeMap<String, String>;

/// Most cached packs.
// Typically the served pack and one edited variant.
const COMPILED_MAX: usize = 2;

/// Longest compilation of a dry run. Large packs take seconds.
const COMPILE_TIME_MAX: Duration = Duration::from_secs(30);

/// A compiled pack under test.
pub(super) struct DryRunPack {
    pub(super) pack: Arc<Pack>,
    pub(super) routers: PerSide<Router>,
    pub(super) contracts: Contracts,
    pub(super) settings: Arc<Settings>,
    /// Examples of routes. Those generated from the contracts are last.
    pub(super) examples: Vec<RouteExample>,
    pub(super) checked: CheckedExamples,
    pub(super) files: PackSource,
    pub(super) served: Arc<ServedPack>,
}

/// Why a dry run failed.
#[derive(Debug, thiserror::Error)]
pub enum TryError {
    /// The rendered findings of the compiler.
    #[error("{0}")]
    Findings(String),
    #[error("the pack has no file `{0}`")]
    NoSuchFile(String),
    #[error("{0}")]
    Request(String),
    /// The rendered results of the examples.
    #[error("examples of the pack do not hold:\n{}", .0.join("\n"))]
    Examples(Vec<String>),
    #[error("no text is changed")]
    Unchanged,
    #[error(
        "`{0}` has changed since it was opened here; copy your text, open the file again and repeat the change"
    )]
    Conflict(String),
    #[error("the configuration does not permit changes of the pack; set `mapping.writable`")]
    NotWritable,
    #[error("`{0}` is a link; change the file that it leads to where it is deployed from")]
    Link(String),
    #[error("the pack cannot be changed: {0}")]
    Write(String),
    #[error("the pack takes more than {0} s to compile; make fewer changes at once")]
    CompileTime(u64),
    #[error("interrupted")]
    Interrupted,
}

/// The request of an example.
#[derive(Clone, Debug, Serialize)]
pub struct ExampleRequest {
    pub side: String,
    pub operation: String,
    /// `file:line` of the mapping.
    pub at: String,
    pub method: String,
    /// Includes the front's prefix.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// The expected end: a status, or the name of a reason.
    pub end: String,
}

impl PlaygroundSession {
    /// Creates a session for the served pack.
    pub fn new(served: ServedPack) -> PlaygroundSession {
        let shared = WorkbenchState {
            served: ArcSwap::from_pointee(served),
            compiled: Mutex::default(),
            compiling: tokio::sync::Mutex::default(),
            recorded: RecordedExchanges::default(),
            editor: Arc::default(),
        };
        PlaygroundSession(Arc::new(shared))
    }

    /// Returns the exchanges that were recorded for dry runs.
    pub fn recorded(&self) -> &RecordedExchanges {
        &self.0.recorded
    }

    /// Replaces the served pack and clears the cache.
    pub fn serve(&self, served: ServedPack) {
        self.0.served.store(Arc::new(served));
        // Lookups would not return these any more, since they compare the served state. Clearing frees
        // their memory.
        self.0.compiled.lock().unwrap_or_else(PoisonError::into_inner).clear();
        if let Ok(mut editor) = self.0.editor.try_lock() {
            *editor = None;
        }
    }

    /// Returns the served mapping files by name. These can be edited for a dry run.
    pub fn files(&self) -> Vec<(String, String)> {
        let served = self.0.served.load_full();
        let is_editable = |file: &&PackFile| is_mapping(&file.name);
        served.files.iter().filter(is_editable).map(|file| (file.name.clone(), file.text())).collect()
    }

    /// Returns the address of a side's service, or of another host of it (`SIDE/HOST`).
    pub fn upstream(&self, side: &str) -> Option<ServiceAddress> {
        let served = self.0.served.load();
        served.upstreams.iter().find(|(name, _)| name == side).map(|(_, url)| url.clone())
    }

    /// Returns the numbered lines of a served file from `line - more` to `line + more`.
    pub fn lines_around(&self, file: &str, line: u32, more: u32) -> Vec<(u32, String)> {
        let served = self.0.served.load_full();
        let Some(text) = served.files.find(file).map(PackFile::text) else { return Vec::new() };
        let wanted = line.saturating_sub(more).max(1)..=line.saturating_add(more);
        (1..)
            .zip(text.lines())
            .filter(|(at, _)| wanted.contains(at))
            .map(|(at, text)| (at, text.to_owned()))
            .collect()
    }

    /// Returns the requests of the pack's examples, in the order of its operations.
    pub async fn examples(&self) -> Result<Vec<ExampleRequest>, TryError> {
        let tried = self.compile_changes(BTreeMap::new()).await?;
        Ok(tried.examples.iter().map(|example| tried.example_request(example)).collect())
    }

    /// Returns the examples if that takes no longer than `patience`. On `None`, the compilation
    /// continues in the background for later requests.
    pub async fn examples_within(&self, patience: Duration) -> Result<Option<Vec<ExampleRequest>>, TryError> {
        let bench = self.clone();
        // A task, so that the compilation continues after the time limit.
        let compiling = tokio::spawn(async move { bench.examples().await });
        match tokio::time::timeout(patience, compiling).await {
            Ok(Ok(examples)) => examples.map(Some),
            Ok(Err(_)) => Err(TryError::Interrupted),
            Err(_) => Ok(None),
        }
    }

    /// Returns the named contract type that contains a place of an operation's response, and the
    /// place within it, as `compare:` in a pack refers to it. `pattern` has the form of findings,
    /// such as `$[*].name`.
    pub async fn declared_type(
        &self,
        side: &str,
        operation: &str,
        pattern: &str,
    ) -> Option<(String, String)> {
        let tried = self.compile_changes(BTreeMap::new()).await.ok()?;
        let at = SideId::BOTH.into_iter().find(|at| tried.pack.sides[*at].name == side)?;
        named_place(&tried.contracts[usize::from(at.0)], operation, pattern)
    }

    /// Returns the compiled pack with some files replaced, from the cache if possible.
    pub(super) async fn compile_changes(&self, changes: Changes) -> Result<Arc<DryRunPack>, TryError> {
        let served = self.0.served.load_full();
        if let Some(tried) = self.lookup_cached(&changes, &served) {
            return Ok(tried);
        }
        // Look up again after the lock: another request may have compiled the pack.
        let _compiling = self.0.compiling.lock().await;
        if let Some(tried) = self.lookup_cached(&changes, &served) {
            return Ok(tried);
        }
        let files = apply_changes(&served.files, &changes)?;
        // Dropped with the request, so that a compilation without a request ends.
        let awaited = Arc::new(());
        let (alive, until) = (Arc::downgrade(&awaited), Instant::now() + COMPILE_TIME_MAX);
        let is_stopped = move || alive.strong_count() == 0 || Instant::now() >= until;
        let made = spawn_blocking(move || compile_files(files, served, &is_stopped)).await;
        drop(awaited);
        let tried = Arc::new(made.map_err(|_| TryError::Interrupted)??);
        self.keep(changes, &tried);
        Ok(tried)
    }

    fn lookup_cached(&self, changes: &Changes, served: &Arc<ServedPack>) -> Option<Arc<DryRunPack>> {
        let compiled = self.0.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let found =
            compiled.iter().find(|(known, tried)| known == changes && Arc::ptr_eq(&tried.served, served));
        found.map(|(_, tried)| Arc::clone(tried))
    }

    fn keep(&self, changes: Changes, tried: &Arc<DryRunPack>) {
        let mut compiled = self.0.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.len() >= COMPILED_MAX {
            compiled.remove(0);
        }
        compiled.push((changes, Arc::clone(tried)));
    }
}

impl DryRunPack {
    /// Returns the prefix of a front of the side.
    pub(super) fn prefix(&self, side: SideId) -> String {
        let name = &self.pack.sides[side].name;
        let found = self.served.fronts.iter().find(|(_, speaks)| speaks == name);
        found.map_or_else(|| format!("/{name}"), |(prefix, _)| prefix.clone())
    }

    /// Returns the operation that an example calls.
    pub(super) fn operation_of(&self, example: &RouteExample) -> String {
        let path = example.target.split('?').next().unwrap_or_default();
        match self.routers[example.serves].find(&example.method, path) {
            Found::Route { route, .. } => {
                self.pack.directions[example.serves].routes[route].operation.key.to_string()
            }
            _ => String::new(),
        }
    }

    fn example_request(&self, example: &RouteExample) -> ExampleRequest {
        use switchback_plan::ExampleEnd;
        let origin = example.exchange.calls.first().map(|call| call.origin.clone());
        ExampleRequest {
            side: self.pack.sides[example.serves].name.clone(),
            operation: self.operation_of(example),
            at: origin.as_ref().map(Origin::to_string).unwrap_or_default(),
            method: example.method.to_string(),
            target: format!("{}{}", self.prefix(example.serves), example.target),
            headers: example.headers.clone(),
            body: example.body.as_ref().map(text_of).unwrap_or_default(),
            end: match &example.exchange.end {
                ExampleEnd::Answer { status, .. } => status.to_string(),
                ExampleEnd::Refused(reason) => reason.clone(),
            },
        }
    }
}

/// Resolves a pattern through the type of an operation's first success response.
fn named_place(contract: &Contract, operation: &str, pattern: &str) -> Option<(String, String)> {
    let operation = contract.find(&OpKey::parse(operation).ok()?)?;
    let mut ty = operation.responses.iter().find(|response| response.is_success())?.body.as_ref()?;
    let mut found: Option<(String, String)> = None;
    let mut rest = pattern.strip_prefix('$')?;
    loop {
        if let TypeKind::Named(reference) = &ty.kind {
            found = Some((contract.types.by_id(reference.id).name.to_string(), String::new()));
        }
        let kind = contract.types.resolve(ty).kind;
        if let Some(after) = rest.strip_prefix("[*]") {
            let TypeKind::Array(array) = kind else { return None };
            (ty, rest) = (&array.items, after);
            if let Some((_, below)) = &mut found {
                below.push_str("[*]");
            }
            continue;
        }
        let Some(after) = rest.strip_prefix('.') else { break };
        let end = after.find(['.', '[']).unwrap_or(after.len());
        let name = &after[..end];
        let TypeKind::Object(object) = kind else { return None };
        ty = &object.fields.iter().find(|field| field.name == name)?.ty;
        rest = &after[end..];
        if let Some((_, below)) = &mut found {
            below.push_str(if below.is_empty() { "" } else { "." });
            below.push_str(name);
        }
    }
    found.filter(|(_, place)| rest.is_empty() && !place.is_empty())
}

/// Returns whether a file of a pack can be edited: the manifest and mapping files.
pub(super) fn is_mapping(name: &str) -> bool {
    name == MANIFEST || (name.ends_with(MAPPING_SUFFIX) && !name.contains('/'))
}

/// Compiles a pack within [`COMPILE_TIME_MAX`].
pub(super) fn compile_in_time(files: PackSource, served: Arc<ServedPack>) -> Result<DryRunPack, TryError> {
    let until = Instant::now() + COMPILE_TIME_MAX;
    compile_files(files, served, &|| Instant::now() >= until)
}

/// Compiles a pack, until `is_stopped` returns true.
fn compile_files(
    files: PackSource,
    served: Arc<ServedPack>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<DryRunPack, TryError> {
    let compiled = Compiler::default().compile_until(&files, is_stopped);
    let compiled = compiled.ok_or(TryError::CompileTime(COMPILE_TIME_MAX.as_secs()))?;
    let (Some(mut pack), Some(contracts)) = (compiled.pack, compiled.contracts) else {
        return Err(TryError::Findings(to_text(&compiled.sources, &compiled.findings, Colour::Never)));
    };
    let given = Value::parse(served.settings.as_bytes(), &Limits::DOCUMENT);
    let given = given.map_err(|error| TryError::Request(error.to_string()))?;
    let settings = Settings::new(&pack, &given).map_err(|errors| {
        TryError::Findings(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })?;
    let of_routes = |example: Example| match example.kind {
        ExampleKind::Route(route) => Some(*route),
        ExampleKind::Shape(_) | ExampleKind::Harvest(_) => None,
    };
    // Before `choose`: an example may be of a route that the settings do not select.
    let checked = CheckedExamples::run(&pack);
    let kept = kept::examples(&pack, &contracts);
    let examples = pack.examples.iter().cloned().chain(kept).filter_map(of_routes).collect();
    let own = Arc::get_mut(&mut pack).expect("nobody else has been given the pack yet");
    settings.choose(own);
    let routers = SideId::BOTH.map(|side| Router::new(&pack.directions[side]));
    Ok(DryRunPack {
        pack,
        routers,
        contracts,
        settings: Arc::new(settings),
        examples,
        checked,
        files,
        served,
    })
}

fn apply_changes(files: &KeptFiles, changes: &Changes) -> Result<PackSource, TryError> {
    let mut files: Vec<_> =
        files.iter().map(|file| (file.name.clone(), file.content().into_owned())).collect();
    for (name, text) in changes {
        let Some((_, content)) = files.iter_mut().find(|(known, _)| known == name) else {
            return Err(TryError::NoSuchFile(name.clone()));
        };
        *content = text.clone().into_bytes();
    }
    Ok(PackSource::from_files(files))
}

pub(super) fn text_of(raw: &Raw) -> String {
    String::from_utf8_lossy(raw).into_owned()
}
