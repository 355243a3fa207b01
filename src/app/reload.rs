//! Reloading while requests are served: pack and configuration are read, compiled, tested and checked against each other,
//! and only then swapped in, whole. On any error what served before goes on serving. Requests in flight finish on what
//! they began with.

use super::assemble::{self, Services};
use super::{StartError, client_of, examine, pack, warn_of};
use crate::admin::{Board, PackStatus, ReloadOutcome, Status};
use crate::config::{self, Config, Environment, against_pack};
use crate::playground::Workbench;
use std::path::PathBuf;
use std::sync::Arc;
use switchback_compiler::diagnostic::{Colour, Findings, to_text};
use switchback_gateway::clock::{Clock, rfc3339};
use switchback_gateway::proxy::limits::Limits;
use switchback_gateway::proxy::program::Current;
use switchback_gateway::retire::Retirement;
use switchback_gateway::shadow::Phases;
use switchback_gateway::store::{HistoryRow, Store};
use switchback_gateway::telemetry::metrics;
use switchback_gateway::token::{Registry, Tokens};
use tokio::task::spawn_blocking;

/// What a reload works on.
pub(super) struct Reloader {
    /// None: the configuration was not read from a file, and only the pack is reloaded.
    pub(super) file: Option<PathBuf>,
    /// What serves.
    pub(super) config: Config,
    pub(super) services: Services,
    /// The hash of pack and configuration that were tried last, whatever came of it.
    pub(super) tried: String,
    pub(super) current: Current,
    pub(super) limits: Arc<Limits>,
    pub(super) board: Board,
    pub(super) registry: Registry,
    pub(super) tokens: Tokens,
    pub(super) phases: Phases,
    pub(super) retirement: Retirement,
    pub(super) workbench: Workbench,
    /// Where it is written down how a reload went.
    pub(super) store: Store,
    pub(super) clock: Clock,
}

impl Reloader {
    /// Reloads if a file has changed since the last try.
    pub(super) async fn reload_if_changed(&mut self) {
        if fingerprint(self.file.as_deref(), self.config.mapping.as_deref()) != self.tried {
            self.reload().await;
        }
    }

    /// Reloads, whether or not anything has changed, and posts how it went.
    pub(super) async fn reload(&mut self) {
        self.tried = fingerprint(self.file.as_deref(), self.config.mapping.as_deref());
        let outcome = self.try_reload().await;
        let now_ms = self.clock.unix_ms();
        metrics::config_reloaded(outcome.is_ok(), now_ms.div_euclid(1000));
        let (error, needs_restart) = match outcome {
            Ok(needs_restart) => (None, needs_restart),
            Err(error) => (Some(error), Vec::new()),
        };
        match &error {
            None => tracing::info!(?needs_restart, "reloaded"),
            Some(error) => tracing::error!(%error, "not reloaded; what served before goes on serving"),
        }
        let at = rfc3339(now_ms);
        let outcome = ReloadOutcome { succeeded: error.is_none(), at, error, needs_restart };
        let mut status = Status::clone(&self.board.load());
        let row = HistoryRow {
            at_ms: now_ms,
            kind: if outcome.succeeded { "reload" } else { "reload failed" }.to_owned(),
            subject: status.pack.name.clone(),
            who: String::new(),
            detail: match &outcome.error {
                Some(error) => error.lines().next().unwrap_or_default().to_owned(),
                None => format!("pack {}", status.pack.hash.get(..16).unwrap_or(&status.pack.hash)),
            },
        };
        status.pack.last_reload = Some(outcome);
        self.board.store(Arc::new(status));
        if let Err(error) = self.store.note(&row).await {
            tracing::warn!(%error, "the reload could not be written down");
        }
    }

    /// Gives the keys whose changes take a restart.
    async fn try_reload(&mut self) -> Result<Vec<String>, String> {
        let file = self.file.clone();
        let config = match file {
            Some(file) => {
                spawn_blocking(move || read_config(&file)).await.map_err(|error| error.to_string())??
            }
            None => self.config.clone(),
        };
        let folder = config.mapping.clone();
        let read = spawn_blocking(move || pack::load(folder.as_deref()))
            .await
            .map_err(|error| error.to_string())??;
        warn(check_against_pack(&config, &read.facts(), self.file.as_deref())?);
        let text = |error: StartError| error.to_string();
        let loaded = assemble::under(&config, read).map_err(text)?;
        let services = Services::new(&config, &self.limits, Some(&self.services)).map_err(text)?;
        let tables = assemble::tables(&config, &loaded);
        let program = assemble::program(&config, &loaded, &services, &tables).map_err(text)?;
        let clients = config.clients.iter().map(client_of).collect();
        warn_of(self.registry.ensure(clients).await.map_err(|error| error.to_string())?);
        self.tokens.discover();
        // Nothing fails from here on.
        self.phases.serve(tables.into_iter().flatten().collect());
        self.retirement.serve(assemble::retired(&config, &loaded));
        self.workbench.serve(assemble::tried(&config, &loaded));
        self.current.store(Arc::new(program));
        if let Err(error) = self.tokens.sync().await {
            tracing::warn!(%error, "changes of clients are stored; they are taken up at the next look at the store");
        }
        let needs_restart = needs_restart(&self.config, &config);
        let before = self.board.load();
        let hash = loaded.hash;
        self.board.store(Arc::new(Status {
            config: config.masked.clone(),
            pack: PackStatus {
                name: loaded.pack.name.clone(),
                source: loaded.source,
                hash: hash.clone(),
                loaded_at: rfc3339(self.clock.unix_ms()),
                generation: before.pack.generation + 1,
                last_reload: None,
            },
            before: before
                .shown
                .clone()
                .filter(|_| before.pack.hash != hash)
                .or_else(|| before.before.clone()),
            shown: Some(loaded.shown),
        }));
        self.services = services;
        self.config = kept(&self.config, config);
        Ok(needs_restart)
    }
}

/// What is running of the old configuration, and what was swapped in of the new one.
fn kept(running: &Config, new: Config) -> Config {
    Config {
        listen: running.listen,
        tls: running.tls.clone(),
        admin: running.admin.clone(),
        store: running.store.clone(),
        keys: running.keys.clone(),
        oauth: running.oauth.clone(),
        limits: running.limits,
        shadow: running.shadow,
        events: running.events.clone(),
        gate: running.gate.clone(),
        log: running.log.clone(),
        logs_address: running.logs_address,
        reload: running.reload,
        ..new
    }
}

/// The keys that differ and are not swapped in.
fn needs_restart(running: &Config, new: &Config) -> Vec<String> {
    let secrets = |config: &Config| {
        let keys: Vec<String> = config.keys.iter().map(|key| key.expose().clone()).collect();
        let tokens = [&config.admin.token, &config.admin.read_token];
        (keys, tokens.map(|token| token.as_ref().map(|token| token.expose().clone())))
    };
    let ((keys, tokens), (new_keys, new_tokens)) = (secrets(running), secrets(new));
    let changes = [
        ("listen", running.listen != new.listen),
        ("tls", running.tls != new.tls),
        (
            "admin",
            running.admin.listen != new.admin.listen
                || running.admin.hosts != new.admin.hosts
                || running.admin.session != new.admin.session
                || tokens != new_tokens,
        ),
        ("trusted_proxies", running.trusted_proxies != new.trusted_proxies),
        ("forwarded", running.forwarded != new.forwarded),
        ("store", running.store != new.store),
        ("key", keys != new_keys),
        ("oauth", running.oauth != new.oauth),
        ("limits", running.limits != new.limits),
        ("shadow", running.shadow != new.shadow),
        ("events", running.masked["events"] != new.masked["events"]),
        ("gate", running.gate != new.gate),
        ("log", running.log != new.log || running.logs_address != new.logs_address),
        ("reload", running.reload != new.reload),
    ];
    changes.iter().filter(|(_, changed)| *changed).map(|(key, _)| (*key).to_owned()).collect()
}

fn read_config(file: &std::path::Path) -> Result<Config, String> {
    let outcome = config::load(file, &Environment::process())
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    outcome.config.ok_or_else(|| to_text(&outcome.sources, &outcome.findings, Colour::Never))
}

/// Checks a configuration against its pack. The findings are shown in the text of the configuration: as the error when one
/// is, else the warnings, if any.
pub(super) fn check_against_pack(
    config: &Config,
    facts: &config::PackFacts,
    file: Option<&std::path::Path>,
) -> Result<Option<String>, String> {
    shown(against_pack(config, facts), file)
}

/// Checks keys and files that a configuration names, which only a start reads.
pub(super) fn check_parts(config: &Config, file: Option<&std::path::Path>) -> Result<(), String> {
    shown(examine::parts(config), file).map(drop)
}

fn shown(findings: Findings, file: Option<&std::path::Path>) -> Result<Option<String>, String> {
    if findings.is_empty() {
        return Ok(None);
    }
    let reread = file.and_then(|file| config::load(file, &Environment::process()).ok());
    let shown = match reread {
        Some(outcome) => to_text(&outcome.sources, &findings, Colour::Never),
        None => {
            findings.sorted().iter().map(|finding| finding.message.clone()).collect::<Vec<_>>().join("\n")
        }
    };
    if findings.has_errors() { Err(shown) } else { Ok(Some(shown)) }
}

/// Tells the operator what was found that keeps nothing from running.
pub(super) fn warn(findings: Option<String>) {
    if let Some(findings) = findings {
        tracing::warn!("{}", findings.trim_end());
    }
}

/// A hash over everything that a reload reads. What cannot be read counts as empty: the reload says why.
pub(super) fn fingerprint(file: Option<&std::path::Path>, mapping: Option<&std::path::Path>) -> String {
    let config = file.and_then(|file| std::fs::read(file).ok()).unwrap_or_default();
    let pack = pack::read(mapping).map(|source| pack::hash(&source)).unwrap_or_default();
    pack::hash(&switchback_compiler::mapping::load::PackSource::from_files(vec![
        ("configuration".to_owned(), config),
        ("pack".to_owned(), pack.into_bytes()),
    ]))
}
