//! The status that `app` publishes for operators: the served pack and configuration, and the
//! outcome of the last reload. Replaced as a unit, read without a lock.

use crate::operate::PackRestoration;
use crate::playground::{KeptContracts, KeptFiles};
use arc_swap::ArcSwap;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use switchback_compiler::init::{DECISIONS_JSON, DecisionGroup, parse_list};
use switchback_plan::Report;

pub type Board = Arc<ArcSwap<Status>>;

/// The currently served state.
#[derive(Clone, Debug)]
pub struct Status {
    /// The configuration with secrets replaced by `***`.
    pub config: Value,
    pub pack: PackStatus,
    /// The served pack for display; `None` if it was not read from files.
    pub shown: Option<Arc<PackShown>>,
    /// The previously served pack.
    pub before: Option<Arc<PackShown>>,
    /// Certificates of the client listener and of the gateway as a TLS client.
    pub certificates: Vec<CertificateEnd>,
}

/// The expiry of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateEnd {
    /// The configuration key, such as `tls` or `upstreams.v3.tls`.
    pub key: String,
    /// Unix time in milliseconds.
    pub ends_ms: i64,
}

/// A pack for display.
#[derive(Debug)]
pub struct PackShown {
    /// Includes the parts that only checks need, which the served pack has dropped.
    pub report: Report,
    pub contracts: Arc<KeptContracts>,
    pub files: Arc<KeptFiles>,
    /// `None` for the built-in pack.
    pub folder: Option<PathBuf>,
}

/// Largest list of decisions that is displayed, in bytes.
const DECISIONS_BYTES_MAX: u64 = 64 << 20;

impl PackShown {
    /// Reads the decisions of a drafted pack from its folder, where `switchback decide` changes them.
    /// Returns `None` if there is no readable list.
    pub fn read_decisions(&self) -> Option<Vec<DecisionGroup>> {
        let path = self.folder.as_ref()?.join(DECISIONS_JSON);
        let length = std::fs::metadata(&path).ok()?.len();
        let text = (length <= DECISIONS_BYTES_MAX).then(|| std::fs::read_to_string(path).ok())??;
        parse_list(&text)
    }
}

/// The served pack, and the last attempt to replace it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PackStatus {
    pub name: String,
    /// The folder, or `built in`.
    pub source: String,
    /// SHA-256 of all files, in hexadecimal.
    pub hash: String,
    /// RFC 3339, UTC.
    pub loaded_at: String,
    /// Number of loaded packs, starting at 1.
    pub generation: u64,
    /// `None` before the first reload.
    pub last_reload: Option<ReloadOutcome>,
    /// Set while a recorded pack serves instead of the one on disk.
    pub restored: Option<PackRestoration>,
}

/// The outcome of a reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReloadOutcome {
    pub succeeded: bool,
    /// RFC 3339, UTC.
    pub at: String,
    /// The error as `switchback check` would print it. The previous pack and configuration continue
    /// to serve.
    pub error: Option<String>,
    /// Changed keys that need a restart.
    pub needs_restart: Vec<String>,
}
