//! What `app` posts for operators to see: the pack and configuration that serve, and how the last reload went. Posted
//! whole, read without a lock.

use crate::playground::{KeptContracts, KeptFiles};
use arc_swap::ArcSwap;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use switchback_plan::Report;

/// Where the status is posted and read.
pub type Board = Arc<ArcSwap<Status>>;

/// What serves at this moment.
#[derive(Clone, Debug)]
pub struct Status {
    /// The configuration with secrets as `***`.
    pub config: Value,
    pub pack: PackStatus,
    /// The pack as people look at it; none where it was not read from files.
    pub shown: Option<Arc<PackShown>>,
    /// The one that was served before.
    pub before: Option<Arc<PackShown>>,
    /// Of clients' connections, and what the gateway shows to services.
    pub certificates: Vec<CertificateEnd>,
}

/// When a certificate ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateEnd {
    /// Its key in the configuration, such as `tls` or `upstreams.v3.tls`.
    pub key: String,
    /// Wall time in milliseconds since 1970.
    pub ends_ms: i64,
}

/// A pack as people look at it.
#[derive(Debug)]
pub struct PackShown {
    /// With what only checks need, which what serves has not.
    pub report: Report,
    pub contracts: Arc<KeptContracts>,
    pub files: Arc<KeptFiles>,
}

/// The pack that serves, and the last try to replace it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PackStatus {
    pub name: String,
    /// Folder, or `built in`.
    pub source: String,
    /// SHA-256 of all its files, in hexadecimal.
    pub hash: String,
    /// RFC 3339, UTC.
    pub loaded_at: String,
    /// Counts what was loaded, from 1 at the start.
    pub generation: u64,
    /// None until something was reloaded.
    pub last_reload: Option<ReloadOutcome>,
}

/// How a reload went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReloadOutcome {
    pub succeeded: bool,
    /// RFC 3339, UTC.
    pub at: String,
    /// What was wrong, as `switchback check` would show it; the old pack and configuration go on serving.
    pub error: Option<String>,
    /// Keys whose changes take a restart.
    pub needs_restart: Vec<String>,
}
