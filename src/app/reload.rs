//! Reloads pack and configuration while requests are served. Both are read, compiled, tested and
//! checked against each other before they are swapped in atomically. On any error the running ones
//! continue to serve. Requests in flight finish on the program that they started with.

use super::assemble::{self, Services};
use super::watch::FolderWatch;
use super::{
    Replaceable, StartError, Stopping, admin_access, admin_hosts, check_exposure, client_of, endpoint,
    examine, pack, tls_files, warn_of,
};
use crate::admin::{Admin, Board, CertificateEnd, PackStatus, ReloadOutcome, Status};
use crate::config::{self, Config, Environment, against_pack};
use crate::playground::PlaygroundSession;
use arc_swap::ArcSwap;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use switchback_compiler::diagnostic::{Colour, Findings, to_text};
use switchback_gateway::clients;
use switchback_gateway::clock::{Clock, rfc3339};
use switchback_gateway::proxy::program::CurrentProgram;
use switchback_gateway::proxy::stack;
use switchback_gateway::resident;
use switchback_gateway::retire::Retirement;
use switchback_gateway::secret::Secret;
use switchback_gateway::shadow::{Archive, Phases, Shadow, Workers, keep_gate};
use switchback_gateway::store::seal::KeyRing;
use switchback_gateway::store::{CONFIGURATION, NewHistory, Store};
use switchback_gateway::telemetry::log::{self, LogSettings};
use switchback_gateway::telemetry::metrics;
use switchback_gateway::tls::{ServerCertificate, ServiceTls};
use switchback_gateway::token::{Registry, Tokens};
use switchback_plan::Pack;
use tokio::task::spawn_blocking;
use tokio_util::task::AbortOnDropHandle;

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

/// The state of reloads.
pub(super) struct Reloader {
    /// The configuration file. `None`: reloads read only the pack.
    pub(super) file: Option<PathBuf>,
    /// The running configuration.
    pub(super) config: Config,
    pub(super) services: Services,
    /// Fingerprint of the files at the last attempt, successful or not.
    pub(super) tried: String,
    pub(super) watch: Option<FolderWatch>,
    pub(super) current: CurrentProgram,
    /// The parts that serve connections.
    pub(super) parts: stack::StackParts,
    /// Replaces the parts and the limits for new connections.
    pub(super) serve: clients::Replace,
    /// The certificate for clients, if they connect with TLS.
    pub(super) certificate: Option<ServerCertificate>,
    pub(super) admin: Admin,
    /// The bound address of the admin port.
    pub(super) admin_address: SocketAddr,
    /// The shadow that compares events.
    pub(super) events_shadow: Arc<ArcSwap<Shadow>>,
    pub(super) workers: Replaceable<Workers>,
    /// The task that promotes and rolls back operations.
    pub(super) gate: AbortOnDropHandle<()>,
    pub(super) stopping: Arc<ArcSwap<Stopping>>,
    /// Fingerprint of the authorization server's settings.
    pub(super) authority: String,
    pub(super) board: Board,
    pub(super) registry: Registry,
    pub(super) tokens: Tokens,
    pub(super) phases: Phases,
    pub(super) retirement: Retirement,
    pub(super) workbench: PlaygroundSession,
    /// Records the outcome of each reload in its history.
    pub(super) store: Store,
    pub(super) clock: Clock,
}

impl Reloader {
    /// Reloads if a file has changed since the last attempt.
    pub(super) async fn reload_if_changed(&mut self) {
        if fingerprint(self.file.as_deref(), &self.config) != self.tried {
            self.reload().await;
        }
    }

    /// Reloads unconditionally and publishes the outcome.
    pub(super) async fn reload(&mut self) {
        // Before reading the files: a change during this reload must trigger another one.
        self.tried = fingerprint(self.file.as_deref(), &self.config);
        let before = self.config.masked.clone();
        let outcome = self.try_reload().await;
        // Compilation allocates several times the size of its result, in the arena of whichever
        // thread runs it. A process under load never becomes idle, so trim after every reload.
        let _ = spawn_blocking(resident::trim).await;
        let now_ms = self.clock.unix_ms();
        metrics::config_reloaded(outcome.is_ok(), now_ms.div_euclid(1000));
        let (error, needs_restart) = match outcome {
            Ok(needs_restart) => {
                metrics::restart_pending(needs_restart.len());
                (None, needs_restart)
            }
            // The keys that an earlier reload left pending still need a restart.
            Err(error) => {
                let before = self.board.load().pack.last_reload.clone();
                (Some(error), before.map(|reload| reload.needs_restart).unwrap_or_default())
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
        let mut status = Status::clone(&self.board.load());
        let (kind, subject) =
            (if outcome.succeeded { "reload" } else { "reload failed" }, status.pack.name.clone());
        let detail = match &outcome.error {
            Some(error) => error.lines().next().unwrap_or_default().to_owned(),
            None => format!("pack {}", status.pack.hash.get(..16).unwrap_or(&status.pack.hash)),
        };
        status.pack.last_reload = Some(outcome);
        self.board.store(Arc::new(status));
        let entry = NewHistory { kind, subject: &subject, detail: &detail, ..NewHistory::default() };
        note(&self.store, &entry).await;
        let configuration = self.store.by(CONFIGURATION);
        for (kind, detail) in changed_sections(&before, &self.config.masked) {
            note(&configuration, &NewHistory { kind, detail: &detail, ..NewHistory::default() }).await;
        }
    }

    /// Loads and applies the configuration. Returns the changed keys that need a restart.
    async fn try_reload(&mut self) -> Result<Vec<String>, String> {
        let file = self.file.clone();
        let config = match file {
            Some(file) => {
                spawn_blocking(move || read_config(&file)).await.map_err(|error| error.to_string())??
            }
            None => self.config.clone(),
        };
        let needs_restart = needs_restart(&self.config, &config);
        let config = effective(&self.config, config);
        // The new configuration may lack `admin.token`.
        check_exposure(&config, self.admin_address).map_err(|error| error.to_string())?;
        let folder = config.mapping.clone();
        let read = spawn_blocking(move || pack::load(folder.as_deref()))
            .await
            .map_err(|error| error.to_string())??;
        warn(check_against_pack(&config, &read.facts(), self.file.as_deref())?);
        check_parts(&config, self.file.as_deref())?;
        let text = |error: StartError| error.to_string();
        let loaded = assemble::apply_settings(&config, read).map_err(text)?;

        let before = &self.config;
        let (new_limits, new_shadow) = (before.limits != config.limits, before.shadow != config.shadow);
        let new_edge = before.trusted_proxies != config.trusted_proxies
            || before.forwarded != config.forwarded
            || before.logs_address != config.logs_address;
        let mut parts = self.parts.clone();
        if new_limits {
            parts.limits = Arc::new(assemble::fit_to_memory(assemble::limits(&config.limits), &parts.memory));
        }
        parts.forwarding = assemble::forwarding(&config);
        // Each upstream has its limits, so a change of them rebuilds all upstreams.
        let kept = (!new_limits && !new_shadow).then_some(&self.services);
        let services = Services::new(&config, &parts.limits, kept).map_err(text)?;
        let tables = assemble::tables(&config, &loaded);
        let program = assemble::program(&config, &loaded, &services, &tables).map_err(text)?;
        let descriptors = assemble::descriptors(&config).map_err(text)?;
        let authority = authority(&config, &loaded.pack);
        let endpoint = match authority == self.authority {
            true => None,
            false => Some(endpoint(&config, &loaded).map_err(text)?),
        };
        let certificate = match (&self.certificate, &config.tls) {
            (Some(_), Some(files)) => {
                Some(ServerCertificate::load(&tls_files(files)).map_err(|error| format!("tls: {error}"))?)
            }
            _ => None,
        };
        let mut workers = None;
        if new_shadow {
            let started = Shadow::start(self.store.clone(), assemble::shadow(&config.shadow)).await;
            let (shadow, started) = started.map_err(|error| error.to_string())?;
            (parts.shadow, workers) = (shadow, Some(started));
        }
        if expose_all(&before.keys) != expose_all(&config.keys) {
            let keys = KeyRing::parse(&config.keys).map_err(|error| format!("key: {error}"))?;
            self.store.set_keys(&keys).await.map_err(|error| format!("key: {error}"))?;
        }
        let clients = config.clients.iter().map(client_of).collect();
        warn_of(self.registry.ensure(clients).await.map_err(|error| error.to_string())?);

        // Everything below is infallible. A reload that fails above has changed at most the store's
        // keys and the configured clients.
        if let Some(endpoint) = endpoint {
            self.registry.set_endpoint(endpoint.clone());
            self.tokens.set_endpoint(endpoint);
        }
        self.tokens.discover();
        if workers.is_some() {
            self.events_shadow.store(Arc::new(parts.shadow.clone()));
        }
        self.phases.serve(tables.into_iter().flatten().collect());
        self.phases.set_gate(config.gate.clone());
        self.retirement.serve(assemble::retirement_rules(&config, &loaded));
        self.workbench.serve(assemble::playground_pack(&config, &loaded));
        self.current.store(Arc::new(program));
        parts.shadow.expire();
        if let Err(error) = self.tokens.sync().await {
            tracing::warn!(%error, "changes of clients are stored; they are taken up at the next look at the store");
        }
        if let (Some(shown), Some(fresh)) = (&self.certificate, &certificate) {
            shown.replace(fresh);
        }
        let certificates =
            show_certificates(&config, self.certificate.as_ref(), &self.board.load().certificates);
        self.admin.set_access(&admin_access(&config), admin_hosts(&config));
        if before.log != config.log && !log::refilter(&config.log) {
            tracing::warn!("the log goes on being filtered as before: its filter is not ours");
        }
        if before.gate != config.gate {
            self.gate = gate(&config, &self.phases, &self.store, &self.clock);
            self.admin.set_gate(config.gate.clone());
        }
        self.stopping.store(Arc::new(Stopping::from_limits(&config.limits)));
        if new_limits || new_shadow || new_edge {
            let options = assemble::listener_options(&config, &parts.memory, descriptors);
            assemble::warn_of_descriptors(&config, &options);
            (self.serve)(parts.clone(), options);
        }
        if let Some(workers) = workers
            && let Some(before) = self.workers.lock().await.replace(workers)
        {
            // In the background: running comparisons may take that long.
            tokio::spawn(before.stop(config.limits.drain_timeout));
        }
        let is_watched_as_before = (before.reload, &before.files, &before.mapping)
            == (config.reload, &config.files, &config.mapping);
        // Other files need a new watch, and a new baseline of their content.
        if !is_watched_as_before {
            self.watch = watch(self.file.as_deref(), &config);
            self.tried = fingerprint(self.file.as_deref(), &config);
        }
        let posted = self.board.load();
        let hash = loaded.hash;
        self.board.store(Arc::new(Status {
            config: config.masked.clone(),
            pack: PackStatus {
                name: loaded.pack.name.clone(),
                source: loaded.source,
                hash: hash.clone(),
                loaded_at: rfc3339(self.clock.unix_ms()),
                generation: posted.pack.generation + 1,
                last_reload: None,
            },
            before: posted
                .shown
                .clone()
                .filter(|_| posted.pack.hash != hash)
                .or_else(|| posted.before.clone()),
            shown: Some(loaded.shown),
            certificates,
        }));
        (self.services, self.parts, self.authority, self.config) = (services, parts, authority, config);
        Ok(needs_restart)
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
        new.oauth.is_some() && callback(running) != callback(new),
        running.store != new.store,
        running.limits.memory != new.limits.memory,
        running.log.format != new.log.format,
        running.masked["events"] != new.masked["events"],
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
    let way = assemble::way(oauth.token_url.as_ref().unwrap_or(&oauth.redirect_url), &oauth.tls);
    format!("{oauth:?} {:?} {way}", pack.sides[1].credential.tokens)
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

/// Watches the files of a configuration, if enabled.
pub(super) fn watch(file: Option<&Path>, config: &Config) -> Option<FolderWatch> {
    let reload = config.reload;
    reload.watch.then(|| FolderWatch::new(file, &config.files, config.mapping.as_deref(), reload.settle))
}

/// Spawns the gate, which promotes and rolls back operations by the configured policies.
pub(super) fn gate(config: &Config, phases: &Phases, store: &Store, clock: &Clock) -> AbortOnDropHandle<()> {
    let keeping = keep_gate(phases.clone(), Archive::new(store.clone()), clock.clone(), config.gate.clone());
    AbortOnDropHandle::new(tokio::spawn(keeping))
}

fn read_config(file: &std::path::Path) -> Result<Config, String> {
    let outcome = config::load(file, &Environment::process())
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    outcome.config.ok_or_else(|| to_text(&outcome.sources, &outcome.findings, Colour::Never))
}

/// Checks a configuration against its pack. Returns the rendered findings: as the error if one is
/// an error, else the warnings, if any.
pub(super) fn check_against_pack(
    config: &Config,
    facts: &config::PackFacts,
    file: Option<&std::path::Path>,
) -> Result<Option<String>, String> {
    render_findings(against_pack(config, facts), file)
}

/// Checks the keys and files that a configuration names, which only a start reads.
pub(super) fn check_parts(config: &Config, file: Option<&std::path::Path>) -> Result<(), String> {
    render_findings(examine::parts(config), file).map(drop)
}

fn render_findings(findings: Findings, file: Option<&std::path::Path>) -> Result<Option<String>, String> {
    if findings.is_empty() {
        return Ok(None);
    }
    let reread = file.and_then(|file| config::load(file, &Environment::process()).ok());
    let shown = match reread {
        Some(outcome) => to_text(&outcome.sources, &findings, Colour::Never),
        None => {
            findings.in_order().iter().map(|finding| finding.message.clone()).collect::<Vec<_>>().join("\n")
        }
    };
    if findings.has_errors() { Err(shown) } else { Ok(Some(shown)) }
}

/// Logs findings that do not prevent operation.
pub(super) fn warn(findings: Option<String>) {
    if let Some(findings) = findings {
        tracing::warn!("{}", findings.trim_end());
    }
}

/// Hashes everything that a reload reads. Unreadable files count as empty; the reload reports the
/// cause.
pub(super) fn fingerprint(file: Option<&Path>, config: &Config) -> String {
    let read = |file: &Path| std::fs::read(file).unwrap_or_default();
    let own = file.map(read).unwrap_or_default();
    let pack =
        pack::read_pack(config.mapping.as_deref()).map(|source| pack::hash(&source)).unwrap_or_default();
    let mut files = vec![("configuration".to_owned(), own), ("pack".to_owned(), pack.into_bytes())];
    files.extend(config.files.iter().map(|file| (file.display().to_string(), read(file))));
    pack::hash(&switchback_compiler::mapping::load::PackSource::from_files(files))
}
