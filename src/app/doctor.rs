//! Examines a deployment, before or while a gateway runs: one result per check, with advice. Used
//! by `switchback doctor`.
//!
//! No check changes data, and each has a time limit. Requests are sent only if not `offline`: one
//! connection and one `HEAD` without a credential per service, `GET` of the issuer's metadata, and
//! `GET` at the own admin port if it is in use. No text contains a secret: addresses are masked,
//! and files are only named.

mod files;
mod network;
mod ports;
mod store;

use super::{assemble, examine, pack};
use crate::config::{Config, ConfigOutcome, without_secrets};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use switchback_compiler::diagnostic::{Colour, Severity, to_text};

/// Time limit of a check that has no limit of its own.
const PATIENCE: Duration = Duration::from_secs(60);

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorCheck {
    /// The configuration key or the subject, such as `upstreams.v3: TLS`.
    pub name: String,
    pub state: CheckState,
    /// The facts; may have several lines.
    pub found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    Ok,
    Warning,
    Failed,
    /// The check could not run.
    Unknown,
}

impl DoctorCheck {
    fn new(name: impl Into<String>, state: CheckState, found: impl Into<String>) -> DoctorCheck {
        DoctorCheck { name: name.into(), state, found: found.into(), advice: None }
    }

    fn ok(name: impl Into<String>, found: impl Into<String>) -> DoctorCheck {
        DoctorCheck::new(name, CheckState::Ok, found)
    }

    fn warning(name: impl Into<String>, found: impl Into<String>, advice: &str) -> DoctorCheck {
        DoctorCheck::new(name, CheckState::Warning, found).advise(advice)
    }

    fn failed(name: impl Into<String>, found: impl Into<String>, advice: &str) -> DoctorCheck {
        DoctorCheck::new(name, CheckState::Failed, found).advise(advice)
    }

    fn unknown(name: impl Into<String>, found: impl Into<String>) -> DoctorCheck {
        DoctorCheck::new(name, CheckState::Unknown, found)
    }

    fn advise(self, advice: &str) -> DoctorCheck {
        DoctorCheck { advice: Some(advice.to_owned()), ..self }
    }
}

/// Runs all checks of a deployment. `outcome` is the configuration as read from `file`.
pub async fn diagnose(file: &Path, mut outcome: ConfigOutcome, offline: bool) -> Vec<DoctorCheck> {
    let mut checks = Vec::new();
    let Some(config) = outcome.config.take() else {
        checks.push(configuration(file, &outcome, None));
        checks.push(DoctorCheck::unknown("all further checks", "they need a usable configuration"));
        return checks;
    };
    let examined = tokio::time::timeout(PATIENCE, examine(&config, false)).await;
    let (examined, error) = match examined {
        Ok(Ok(examined)) => (Some(examined), None),
        Ok(Err(error)) => (None, Some(without_secrets(&error.to_string()))),
        Err(_) => (None, Some(format!("the check took more than {} s", PATIENCE.as_secs()))),
    };
    let pack_findings = examined.as_ref().and_then(|examined| examined.pack.clone());
    outcome.findings.append(examined.map(|examined| examined.findings).unwrap_or_default());
    checks.push(configuration(file, &outcome, error));
    let is_usable = checks[0].state != CheckState::Failed;
    let hash = pack::read_pack(config.mapping.as_deref()).map(|source| pack::hash(&source));
    checks.push(pack_check(&config, pack_findings, hash.as_deref().ok()));
    checks.push(files::permissions(file, &config));
    checks.extend(config.tls.as_ref().map(files::listener_certificate));
    checks.push(descriptors(&config));
    checks.push(admin_exposure(&config));
    let (stored, services, ports) = futures_util::join!(
        store::examine_store(&config),
        network::examine_services(&config, offline, is_usable),
        ports::examine_ports(&config, hash.as_deref().ok(), offline),
    );
    checks.extend(stored);
    checks.extend(services);
    checks.extend(ports);
    checks
}

/// Reports the findings of `switchback serve --check`.
fn configuration(file: &Path, outcome: &ConfigOutcome, error: Option<String>) -> DoctorCheck {
    const NAME: &str = "configuration";
    let count = |severity| outcome.findings.count(severity);
    let text = to_text(&outcome.sources, &outcome.findings, Colour::Never);
    let text = [error.unwrap_or_default(), text.trim_end().to_owned()];
    let text = text.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    let file = file.display();
    match (text.is_empty(), count(Severity::Error), count(Severity::Warning)) {
        (true, ..) => DoctorCheck::ok(NAME, format!("{file} has no findings")),
        (false, 0, warnings) if warnings > 0 => DoctorCheck::warning(
            NAME,
            format!("{file} has warnings:\n{text}"),
            "see the line of each warning",
        ),
        _ => DoctorCheck::failed(NAME, text, "correct the file; `switchback serve --check` checks it again"),
    }
}

fn pack_check(config: &Config, findings: Option<String>, hash: Option<&str>) -> DoctorCheck {
    let source = config.mapping.as_ref();
    let source = source.map_or("the built-in pack".to_owned(), |folder| folder.display().to_string());
    let source = without_secrets(&source);
    match (findings, hash) {
        (Some(findings), _) => DoctorCheck::failed(
            "pack",
            format!("{source} cannot serve:\n{}", findings.trim_end()),
            "correct the mapping; `switchback check` and `switchback test` check it again",
        ),
        (None, Some(hash)) => {
            let digest = hash.get(..12).unwrap_or(hash);
            DoctorCheck::ok("pack", format!("{source} compiles and its examples pass, digest {digest}"))
        }
        (None, None) => DoctorCheck::failed(
            "pack",
            format!("{source} cannot be read"),
            "set `mapping` to the folder with `pack.yaml`",
        ),
    }
}

/// Compares the limit of file descriptors with the configured connections.
fn descriptors(config: &Config) -> DoctorCheck {
    const NAME: &str = "file descriptors";
    const RAISE: &str = "raise the limit: `ulimit -n`, or `LimitNOFILE=` of the service manager";
    let connections = u64::from(config.limits.connections);
    match assemble::descriptors(config) {
        Err(error) => DoctorCheck::failed(NAME, error.to_string(), RAISE),
        Ok(room) if room < connections => DoctorCheck::warning(
            NAME,
            format!("the limit of this shell has room for {room} of {connections} client connections"),
            RAISE,
        ),
        Ok(_) => {
            DoctorCheck::ok(NAME, format!("the limit of this shell has room for {connections} connections"))
        }
    }
}

/// Reports which machines reach the admin port. Without a token, an address that others reach is an
/// error of the configuration.
fn admin_exposure(config: &Config) -> DoctorCheck {
    let (address, has_token) = (config.admin.listen, config.admin.token.is_some());
    let found = match (address.ip().is_loopback(), has_token) {
        (true, true) => format!("{address} is reached from this machine only, with a token"),
        (true, false) => format!("{address} is reached from this machine only, and is read-only"),
        (false, _) => format!("{address} is reached from other machines, with a token"),
    };
    DoctorCheck::ok("admin access", found)
}
