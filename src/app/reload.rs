//! Reloads pack and configuration while requests are served. Both are read, compiled, tested and
//! checked against each other before they are swapped in atomically. On any error the running ones
//! continue to serve. Requests in flight finish on the program that they started with.

use super::watch::FolderWatch;
use super::{
    Shared, StartError, Stopping, admin_access, admin_hosts, assemble, check_exposure, client_of, endpoint,
    examine, load, notice_endpoints, pack, recorded, tls_files, warn_of,
};
use crate::admin::{CertificateEnd, PackStatus, ReloadOutcome, ReloadRequest, Status};
use crate::config::{self, Config, Environment, against_pack};
use crate::operate::PackRestoration;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use switchback_compiler::diagnostic::{Colour, Findings, to_text};
use switchback_gateway::clients;
use switchback_gateway::clock::rfc3339;
use switchback_gateway::events::dual::EventsDual;
use switchback_gateway::proxy::stack::StackParts;
use switchback_gateway::resident;
use switchback_gateway::secret::Secret;
use switchback_gateway::shadow::{Shadow, ShadowStartError};
use switchback_gateway::store::seal::KeyRing;
use switchback_gateway::store::{CONFIGURATION, NewHistory, RELOAD_FAILED, Store, StoreError};
use switchback_gateway::telemetry::log::{self, LogSettings};
use switchback_gateway::telemetry::metrics;
use switchback_gateway::tls::{ServerCertificate, ServiceTls};
use switchback_gateway::token::RegistryError;
use switchback_gateway::{BuildError, Upstreams};
use switchback_plan::Pack;
use tokio::task::{JoinError, spawn_blocking};

/// Keys that only a restart can change. Listening sockets are bound once; clients and grants are
/// not moved between stores; outstanding reservations refer to the initial memory budget; one log
/// must not mix two formats; queued events refer to the current receivers.
pub const TAKE_A_RESTART: [&str; 9] = [
    "listen",
    "tls (added or taken away)",
    "admin.listen",
    "health.listen",
    "oauth.listen",
    "store",
    "limits.memory",
    "log.format",
    "events",
];

/// Why a reload failed. The running pack and configuration serve on.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReloadError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("{file} cannot be read: {error}", file = .0.display(), error = .1)]
    Read(PathBuf, io::Error),
    /// The rendered findings of the configuration.
    #[error("{0}")]
    Config(String),
    #[error(transparent)]
    Shadow(#[from] ShadowStartError),
    #[error("key: {0}")]
    Keys(StoreError),
    #[error(transparent)]
    Clients(#[from] RegistryError),
    #[error(transparent)]
    Task(#[from] JoinError),
}

impl From<BuildError> for ReloadError {
    fn from(error: BuildError) -> ReloadError {
        StartError::from(error).into()
    }
}

/// The state of reloads.
pub(super) struct Reloader {
    pub(super) shared: Shared,
    /// The configuration file. `None`: reloads read only the pack.
    pub(super) file: Option<PathBuf>,
    pub(super) files: WatchedFiles,
    /// The running configuration.
    pub(super) config: Config,
    /// The parts that serve connections.
    pub(super) stack: StackParts,
    /// The services that the running program calls.
    pub(super) upstreams: Upstreams,
    /// Replaces the parts and the limits for new connections.
    pub(super) serve: clients::Replace,
    /// The certificate for clients, if they connect with TLS.
    pub(super) certificate: Option<ServerCertificate>,
    /// The bound address of the admin port.
    pub(super) admin_address: SocketAddr,
    /// Compares events.
    pub(super) dual: EventsDual,
    /// Fingerprint of the authorization server's settings.
    pub(super) authority: String,
}

/// The files of a configuration, and their content at the last attempt to load them.
pub(super) struct WatchedFiles {
    fingerprint: String,
    watch: Option<FolderWatch>,
}

impl WatchedFiles {
    /// Watches the files of a configuration, if enabled.
    pub(super) fn new(file: Option<&Path>, config: &Config) -> WatchedFiles {
        let reload = config.reload;
        let watch = || FolderWatch::new(file, &config.files, config.mapping.as_deref(), reload.settle);
        WatchedFiles { watch: reload.watch.then(watch), fingerprint: fingerprint(file, config) }
    }

    /// Returns the watch, if enabled.
    pub(super) fn watch(&self) -> Option<&FolderWatch> {
        self.watch.as_ref()
    }
}

/// Why a reload runs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ReloadCause {
    Requested {
        author: String,
    },
    Files,
    /// The restored pack in the store is another one.
    Restoration,
}

impl Reloader {
    /// Runs a request of an operator or of the store.
    pub(super) async fn run(&mut self, request: ReloadRequest) {
        match request {
            ReloadRequest::Reload { author } => self.reload(ReloadCause::Requested { author }).await,
            ReloadRequest::Follow => {
                let restored = self.stack.store.restored_pack().await.ok().flatten();
                let serving = self.shared.board.load().pack.restored.clone();
                if serving != restored.map(PackRestoration::new) {
                    self.reload(ReloadCause::Restoration).await;
                } else {
                    // This request has interrupted the wait for a change, which may have been noticed.
                    self.reload_if_changed().await;
                }
            }
            ReloadRequest::Restore { id, author, answer } => {
                let store = self.stack.store.by(&author);
                let restored = recorded::restore_pack(&self.config, self.file.as_deref(), &store, &id).await;
                if restored.is_ok() {
                    self.reload(ReloadCause::Restoration).await;
                }
                // The operator may have left.
                let _ = answer.send(restored.map(drop));
            }
        }
    }

    /// Reloads if a file has changed since the last attempt.
    pub(super) async fn reload_if_changed(&mut self) {
        if fingerprint(self.file.as_deref(), &self.config) != self.files.fingerprint {
            self.reload(ReloadCause::Files).await;
        }
    }

    /// Reloads unconditionally and publishes the outcome.
    async fn reload(&mut self, cause: ReloadCause) {
        // Before reading the files: a change during this reload must trigger another one.
        self.files.fingerprint = fingerprint(self.file.as_deref(), &self.config);
        // `try_reload` replaces `self.config`, and the history names the sections that changed.
        let before = self.config.masked.clone();
        let outcome = self.try_reload(&cause).await;
        // Compilation allocates several times the size of its result, in the arena of whichever
        // thread runs it. A process under load never becomes idle, so trim after every reload.
        let _ = spawn_blocking(resident::trim).await;
        let now_ms = self.stack.clock.unix_ms();
        metrics::config_reloaded(outcome.is_ok(), now_ms.div_euclid(1000));
        let (error, needs_restart) = match outcome {
            Ok(needs_restart) => {
                metrics::restart_pending(needs_restart.len());
                (None, needs_restart)
            }
            // The keys that an earlier reload left pending still need a restart.
            Err(error) => {
                let before = self.shared.board.load().pack.last_reload.clone();
                (Some(error.to_string()), before.map(|reload| reload.needs_restart).unwrap_or_default())
            }
        };
        match &error {
            None => tracing::info!(?needs_restart, "reloaded"),
            Some(error) => {
                tracing::error!(%error, "the reload failed; the pack and configuration of before go on serving")
            }
        }
        let at = rfc3339(now_ms);
        let outcome = ReloadOutcome { succeeded: error.is_none(), at, error, needs_restart };
        // Load the board again: a successful reload has published its pack there, without an outcome.
        let mut status = Status::clone(&self.shared.board.load());
        let (kind, subject) =
            (if outcome.succeeded { "reload" } else { RELOAD_FAILED }, status.pack.name.clone());
        let detail = match &outcome.error {
            Some(error) => error.lines().next().unwrap_or_default().to_owned(),
            None => format!("pack {}", status.pack.hash.get(..16).unwrap_or(&status.pack.hash)),
        };
        status.pack.last_reload = Some(outcome);
        self.shared.board.store(Arc::new(status));
        let entry = NewHistory { kind, subject: &subject, detail: &detail, ..NewHistory::default() };
        note(&self.stack.store, &entry).await;
        let configuration = self.stack.store.by(CONFIGURATION);
        for (kind, detail) in changed_sections(&before, &self.config.masked) {
            note(&configuration, &NewHistory { kind, detail: &detail, ..NewHistory::default() }).await;
        }
    }

    /// Loads and applies the configuration. Returns the changed keys that need a restart.
    async fn try_reload(&mut self, cause: &ReloadCause) -> Result<Vec<String>, ReloadError> {
        let file = self.file.clone();
        let config = match file {
            Some(file) => spawn_blocking(move || read_config(&file)).await??,
            None => self.config.clone(),
        };
        // Compare before `effective` puts the running values back: afterwards no key would differ.
        let needs_restart = needs_restart(&self.config, &config);
        let config = effective(&self.config, config);
        // The new configuration may lack `admin.token`.
        check_exposure(&config, self.admin_address)?;
        let running = self.shared.board.load().pack.clone();
        let store = &self.stack.store;
        let (loaded, warnings) = load_served(&config, self.file.as_deref(), store, &running, cause).await?;
        warn(warnings);
        // Check keys and certificates before the constructors below read them: these findings have a place
        // in the file, the errors of the constructors do not.
        check_parts(&config, self.file.as_deref())?;

        let before = &self.config;
        let (new_limits, new_shadow) = (before.limits != config.limits, before.shadow != config.shadow);
        let new_edge = before.trusted_proxies != config.trusted_proxies
            || before.proxy_protocol != config.proxy_protocol
            || before.forwarded != config.forwarded
            || before.logs_address != config.logs_address;
        // A copy: if a later step fails, `self` still describes the parts that serve.
        let mut stack = self.stack.clone();
        if new_limits {
            stack.limits = Arc::new(assemble::fit_to_memory(assemble::limits(&config.limits), &stack.memory));
        }
        stack.forwarding = assemble::forwarding(&config);
        // An exporter with unchanged settings is reused: it may hold spans that are not exported yet.
        let running = stack.program.load().traces().cloned();
        let traces = assemble::traces(config.otlp.as_ref(), before.otlp.as_ref().zip(running.as_ref()))?;
        let tables = assemble::tables(&config, &loaded);
        let settings = assemble::program(&config, &loaded, &stack.limits, tables.clone(), traces);
        // Each upstream has its limits, so a change of them rebuilds all upstreams.
        let reused = if new_limits || new_shadow { &Upstreams::default() } else { &self.upstreams };
        let upstreams = settings.connect(reused)?;
        let program = settings.program(&upstreams)?;
        let descriptors = assemble::descriptors(&config)?;
        let authority = authority(&config, &loaded.pack);
        let new_endpoint = authority != self.authority;
        // Keep the endpoint of an unchanged server: it has its metadata, so tokens are refreshed even if
        // fetching the metadata fails now.
        let endpoint = new_endpoint.then(|| endpoint(&config, &loaded)).transpose()?;
        // Both or neither: `effective` leaves TLS on or off as it is until a restart.
        let certificate = match (&self.certificate, &config.tls) {
            (Some(_), Some(files)) => {
                Some(ServerCertificate::load(&tls_files(files)).map_err(StartError::from)?)
            }
            _ => None,
        };
        // In order: the first key seals, so the same keys in another order are a change.
        let new_keys = expose_all(&before.keys) != expose_all(&config.keys);
        let keys = new_keys.then(|| KeyRing::parse(&config.keys)).transpose().map_err(StartError::from)?;
        let receivers = notice_endpoints(&config.notices)?;
        let mut workers = None;
        if new_shadow {
            let (shadow, started) = Shadow::start(stack.store.clone(), config.shadow).await?;
            (stack.migration.shadow, workers) = (shadow, Some(started));
        }
        // A new key is enrolled last: with it in the store, a gateway with the running configuration
        // would not start again. Another gateway may have sealed with it already.
        if let Some(keys) = &keys {
            stack.store.accept_keys(keys).await.map_err(ReloadError::Keys)?;
        }
        let clients = config.clients.iter().map(client_of).collect();
        warn_of(self.shared.registry.ensure(clients).await?);
        if let Some(keys) = &keys {
            stack.store.set_keys(keys).await.map_err(ReloadError::Keys)?;
        }

        // Everything below is infallible. A reload that fails above has changed at most the configured
        // clients.
        let shared = &self.shared;
        if let Some(endpoint) = endpoint {
            shared.registry.set_endpoint(endpoint.clone());
            stack.tokens.set_endpoint(endpoint);
        }
        stack.tokens.discover();
        if workers.is_some() {
            // Pairs of events would otherwise be compared by workers that are stopped below.
            self.dual.set_shadow(stack.migration.shadow.clone());
        }
        shared.phases.serve(tables.into_iter().flatten().collect());
        shared.phases.set_policies(config.gate.clone(), config.phases.rollouts.clone());
        stack.migration.retirement.serve(assemble::retirement_rules(&config, &loaded));
        shared.notices.configure(receivers, config.notices.settings);
        shared.workbench.serve(assemble::playground_pack(&config, &loaded));
        stack.program.store(Arc::new(program));
        stack.migration.shadow.expire();
        if let Err(error) = stack.tokens.sync().await {
            tracing::warn!(%error, "changes of clients are stored; they are taken up at the next look at the store");
        }
        if let (Some(shown), Some(fresh)) = (&self.certificate, &certificate) {
            shown.replace(fresh);
        }
        let certificates =
            show_certificates(&config, self.certificate.as_ref(), &shared.board.load().certificates);
        let recent_bytes = assemble::bytes(config.admin.recent_requests_bytes);
        stack.recording.recent.set_bytes_max(recent_bytes);
        shared.admin.set_access(&admin_access(&config), admin_hosts(&config));
        if before.log != config.log && !log::refilter(&config.log) {
            tracing::warn!("the log goes on being filtered as before: its filter is not ours");
        }
        shared.stopping.store(Arc::new(Stopping::from_limits(&config.limits)));
        if new_limits || new_shadow || new_edge {
            let options = assemble::listener_options(&config, &stack.memory, descriptors);
            assemble::warn_of_descriptors(&config, &options);
            (self.serve)(stack.clone(), options);
        }
        if let Some(workers) = workers
            && let Some(before) = shared.workers.lock().await.replace(workers)
        {
            // In the background: running comparisons may take that long.
            tokio::spawn(before.stop(config.limits.drain_timeout));
        }
        let is_watched_as_before = (before.reload, &before.files, &before.mapping)
            == (config.reload, &config.files, &config.mapping);
        // Other files need a new watch, and a new baseline of their content.
        if !is_watched_as_before {
            self.files = WatchedFiles::new(self.file.as_deref(), &config);
        }
        let who = match (cause, &loaded.restored) {
            (_, Some(restored)) => restored.by.as_str(),
            (ReloadCause::Requested { author }, None) => author.as_str(),
            (_, None) => "files",
        };
        recorded::record(&stack.store, &loaded, who);
        let posted = shared.board.load();
        let hash = loaded.hash;
        shared.board.store(Arc::new(Status {
            config: config.masked.clone(),
            pack: PackStatus {
                name: loaded.pack.name.clone(),
                source: loaded.source,
                hash: hash.clone(),
                loaded_at: rfc3339(stack.clock.unix_ms()),
                generation: posted.pack.generation + 1,
                // `reload` adds the outcome, also that of a failed reload, which does not come here.
                last_reload: None,
                restored: loaded.restored,
            },
            // The studio compares the pack with its predecessor. Reloading an unchanged pack must not make
            // a pack its own predecessor.
            before: posted
                .shown
                .clone()
                .filter(|_| posted.pack.hash != hash)
                .or_else(|| posted.before.clone()),
            shown: Some(loaded.shown),
            certificates,
        }));
        drop(posted);
        (self.upstreams, self.stack, self.authority, self.config) = (upstreams, stack, authority, config);
        Ok(needs_restart)
    }
}

/// Loads the restored pack, if there is one for the pack on disk, or else that on disk. `running` is
/// the pack that serves.
async fn load_served(
    config: &Config,
    file: Option<&Path>,
    store: &Store,
    running: &PackStatus,
    cause: &ReloadCause,
) -> Result<recorded::Served, StartError> {
    let name = &running.name;
    let restored = match store.restored_pack().await {
        Ok(restored) => restored,
        // The files of a restored pack are in the store.
        Err(error) if running.restored.is_some() => return Err(error.into()),
        Err(_) => None,
    };
    let Some(restored) = restored else { return load(config, file).await };
    if let ReloadCause::Requested { author } = cause {
        store.by(author).end_restoration(name).await?;
        return load(config, file).await;
    }
    let on_disk = recorded::hash_on_disk(config).await?;
    match recorded::load_restored(config, file, store, Some(&restored), &on_disk).await? {
        Some(served) => Ok(served),
        None => {
            // With one replica, nothing else needs the row, and the files may come back.
            if !store.is_shared() {
                store.end_restoration(name).await?;
            }
            load(config, file).await
        }
    }
}

async fn note(store: &Store, entry: &NewHistory<'_>) {
    if let Err(error) = store.note(entry).await {
        tracing::warn!(%error, kind = entry.kind, "the history lacks an entry of the reload");
    }
}

/// Sections with their own history entries for changes, and the kind of entry.
const CONFIGURED: [(&str, &str); 4] = [
    ("phases", "phases configured"),
    ("gate", "gate configured"),
    ("brownouts", "brownouts configured"),
    ("sunset", "sunsets configured"),
];

/// Longest detail of a history entry, in characters.
const DETAIL_CHARS_MAX: usize = 500;

/// Returns the kind and detail of a history entry for each of these sections that changed.
fn changed_sections(before: &Value, after: &Value) -> Vec<(&'static str, String)> {
    let changed = CONFIGURED.iter().filter(|(section, _)| before[section] != after[section]);
    changed.map(|(section, kind)| (*kind, difference(&before[section], &after[section]))).collect()
}

/// Describes the members that differ, as `GET /things: legacy to shadow; …`.
fn difference(before: &Value, after: &Value) -> String {
    let words = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let change = |before: &Value, after: &Value| format!("{} to {}", words(before), words(after));
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return change(before, after).chars().take(DETAIL_CHARS_MAX).collect();
    };
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let differ = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
    let member = |name: &String| format!("{name}: {}", change(&before[name], &after[name]));
    let text: Vec<String> = differ.map(member).collect();
    text.join("; ").chars().take(DETAIL_CHARS_MAX).collect()
}

/// Returns the new configuration with the running values of all keys in [`TAKE_A_RESTART`].
fn effective(running: &Config, new: Config) -> Config {
    let listen = running.oauth.as_ref().and_then(|oauth| oauth.listen);
    let mut masked = new.masked;
    // The status must display the running value.
    masked["events"] = running.masked["events"].clone();
    Config {
        masked,
        listen: running.listen,
        // New certificate files apply at once. The listeners keep speaking TLS, or plain HTTP, until they
        // are bound again.
        tls: match (&running.tls, new.tls) {
            (Some(_), Some(new)) => Some(new),
            (running, _) => running.clone(),
        },
        admin: config::AdminConfig { listen: running.admin.listen, ..new.admin },
        health: running.health,
        oauth: new.oauth.map(|oauth| config::OAuthConfig { listen, ..oauth }),
        store: running.store.clone(),
        events: running.events.clone(),
        limits: config::LimitsConfig { memory: running.limits.memory, ..new.limits },
        log: LogSettings { format: running.log.format, ..new.log },
        ..new
    }
}

/// Returns the changed keys that need a restart, by their names in [`TAKE_A_RESTART`].
fn needs_restart(running: &Config, new: &Config) -> Vec<String> {
    let callback = |config: &Config| config.oauth.as_ref().and_then(|oauth| oauth.listen);
    let changed = [
        running.listen != new.listen,
        running.tls.is_some() != new.tls.is_some(),
        running.admin.listen != new.admin.listen,
        running.health != new.health,
        // Without `oauth` the old port has no callback to receive. That is no reason to restart.
        new.oauth.is_some() && callback(running) != callback(new),
        running.store != new.store,
        running.limits.memory != new.limits.memory,
        running.log.format != new.log.format,
        // The displayed form masks secrets, so these are compared on their own.
        running.masked["events"] != new.masked["events"] || !running.events.has_secrets_of(&new.events),
    ];
    let keys = TAKE_A_RESTART.iter().zip(changed).filter(|(_, changed)| *changed);
    keys.map(|(key, _)| (*key).to_owned()).collect()
}

fn expose_all(keys: &[Secret<String>]) -> Vec<&String> {
    keys.iter().map(Secret::expose).collect()
}

/// Fingerprints everything that affects requests to the authorization server.
pub(super) fn authority(config: &Config, pack: &Pack) -> String {
    let Some(oauth) = &config.oauth else { return String::new() };
    // The pack is a part of it because it may define the form of token requests; the content of the
    // certificate files because they are replaced in place.
    format!("{oauth:?} {:?} {}", pack.sides[1].credential.tokens, oauth.tls.fingerprint())
}

/// Publishes the expiry of all certificates as metrics and returns them. Removes the metrics of
/// keys in `before` that are gone.
pub(super) fn show_certificates(
    config: &Config,
    certificate: Option<&ServerCertificate>,
    before: &[CertificateEnd],
) -> Vec<CertificateEnd> {
    let own = certificate.and_then(ServerCertificate::ends).map(|ends| ("tls".to_owned(), ends));
    let ends = |key: String, tls: &ServiceTls| {
        let files = tls.own.as_ref()?;
        Some((key, ServerCertificate::load(files).ok()?.ends()?))
    };
    let services = config.services();
    let upstreams =
        services.filter_map(|(name, _, tls)| ends(format!("{}.tls", config::service_key(&name)), tls));
    let oauth = config.oauth.iter().filter_map(|oauth| ends("oauth.tls".to_owned(), &oauth.tls));
    let all: Vec<_> = own.into_iter().chain(upstreams).chain(oauth).collect();
    for gone in before.iter().filter(|end| all.iter().all(|(key, _)| *key != end.key)) {
        metrics::no_certificate(&gone.key);
    }
    all.into_iter()
        .map(|(key, ends)| {
            metrics::certificate_expiry(&key, ends);
            CertificateEnd {
                key,
                ends_ms: i64::try_from(ends).unwrap_or(i64::MAX / 1000).saturating_mul(1000),
            }
        })
        .collect()
}

fn read_config(file: &Path) -> Result<Config, ReloadError> {
    let outcome = config::load(file, &Environment::process());
    let outcome = outcome.map_err(|error| ReloadError::Read(file.to_owned(), error))?;
    let findings = || ReloadError::Config(to_text(&outcome.sources, &outcome.findings, Colour::Never));
    outcome.config.ok_or_else(findings)
}

/// Checks a configuration against its pack. Returns the rendered warnings, if any.
pub(super) fn check_against_pack(
    config: &Config,
    facts: &config::PackFacts,
    file: Option<&Path>,
) -> Result<Option<String>, StartError> {
    render_findings(against_pack(config, facts), file)
}

/// Checks the keys and files that a configuration names, which only a start reads.
pub(super) fn check_parts(config: &Config, file: Option<&Path>) -> Result<(), StartError> {
    render_findings(examine::parts(config), file).map(drop)
}

/// Renders the findings: as the error if one is an error, else as warnings.
fn render_findings(findings: Findings, file: Option<&Path>) -> Result<Option<String>, StartError> {
    if findings.is_empty() {
        return Ok(None);
    }
    // Findings point into the text of the file, which `Config` does not retain.
    let reread = file.and_then(|file| config::load(file, &Environment::process()).ok());
    let text = match reread {
        Some(outcome) => to_text(&outcome.sources, &findings, Colour::Never),
        None => {
            findings.in_order().iter().map(|finding| finding.message.clone()).collect::<Vec<_>>().join("\n")
        }
    };
    if findings.has_errors() { Err(StartError::Mismatch(text)) } else { Ok(Some(text)) }
}

/// Logs findings that do not prevent operation.
pub(super) fn warn(findings: Option<String>) {
    if let Some(findings) = findings {
        tracing::warn!("{}", findings.trim_end());
    }
}

/// Hashes everything that a reload reads. Unreadable files count as empty; the reload reports the
/// cause.
fn fingerprint(file: Option<&Path>, config: &Config) -> String {
    let read = |file: &Path| std::fs::read(file).unwrap_or_default();
    let own = file.map(read).unwrap_or_default();
    let pack =
        pack::read_pack(config.mapping.as_deref()).map(|source| pack::hash(&source)).unwrap_or_default();
    let mut files = vec![("configuration".to_owned(), own), ("pack".to_owned(), pack.into_bytes())];
    files.extend(config.files.iter().map(|file| (file.display().to_string(), read(file))));
    pack::hash(&switchback_compiler::mapping::load::PackSource::from_files(files))
}
