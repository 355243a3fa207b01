//! All SQL of the gateway: clients, credentials, grants, pending authorizations, unfinished work,
//! phases, records of the dual run, and retirement data, in SQLite (default) or PostgreSQL. Other
//! modules (`token`, `proxy`) decide how to use the data; [`seal`] encrypts secrets.
//!
//! - [`Store::open`] verifies the sealing key before any change, then migrates the schema.
//! - Several programs may open a store concurrently, such as the command line and a running
//!   gateway: every write is one transaction, and [`Store::change`] reveals to readers whether
//!   there are new writes. Only the *gateway role* ([`Store::take_gateway_role`]), which permits
//!   refreshing grants, may be exclusive. On SQLite one process has it, through a file lock that
//!   the operating system releases with the process. On PostgreSQL every gateway has it, and a
//!   lease per grant prevents conflicts.
//! - New tables are added as a pair of files under `migrations/`, with the same name for both
//!   databases, listed in `schema.rs`.

mod archive;
mod clients;
mod connect;
mod credentials;
mod db;
mod dual;
mod event_pairs;
mod events;
mod follow;
mod grants;
mod history;
mod keys;
mod notices;
mod origin;
mod outage;
mod packs;
mod pairing;
mod phases;
mod reach;
mod replicas;
mod reserve;
mod resume;
mod retire;
mod rollouts;
mod schema;
pub mod seal;
mod sessions;

pub use archive::{ArchiveCount, ArchiveEntry, ArchiveOwner, HarvestRow, NewEntries};
pub use clients::{ClientRow, Ensured, TokenRow};
pub(crate) use clients::{NewClientRow, NewTokenRow};
pub use connect::PendingAuthorization;
pub use credentials::CredentialRow;
pub(crate) use credentials::NewCredentialRow;
pub(crate) use dual::{DualBatch, DualRecordRow, EvidenceKey, EvidenceRow, NoiseRow};
pub(crate) use event_pairs::Unpaired;
pub(crate) use events::{EnqueueResult, LeasedEvent, NewEvent, QueueBounds};
pub use events::{EventChoice, EventCount, EventSummary};
pub(crate) use follow::repeat;
pub(crate) use grants::GrantSeed;
pub use grants::{Begin, Finish, GrantFlow, GrantKey, GrantRow, GrantState, NewTokens, Opened};
pub(crate) use grants::{GrantSummary, REFRESH_REQUESTED};
use history::GATEWAY;
pub use history::{CONFIGURATION, HistoryRow, NewHistory, RELOAD_FAILED};
pub(crate) use history::{GATE_HELD, GRANT_ENDED, ROLLOUT_ABORTED, ROLLOUT_COMPLETED, ROLLOUT_PAUSED};
pub use keys::Resealed;
pub use origin::TokenOrigin;
pub use packs::{NewPackRecord, PackRecordRow, RestoredPackRow};
pub(crate) use pairing::{Met, PairBounds, PairLookup, PairedEvent};
pub(crate) use phases::{HoldRow, PhaseRow, TransitionRow};
pub use reach::{StoreFacts, StoreState, inspect, reach};
pub use replicas::{ReplicaRow, ReplicaSlot};
pub(crate) use retire::{AddBrownoutResult as AddedBrownout, BrownoutRow, SunsetRow, UsageRow};
pub(crate) use rollouts::{RolloutRow, RolloutWrite};

use crate::clock::Clock;
use db::{Db, Tx, args};
use seal::{Hasher, KeyRing, SealError};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// An error of the store. No text contains a secret or a database password.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address is neither `sqlite:FILE` nor `postgres://…`, or is malformed.
    #[error("not a store address: expected sqlite:FILE or postgres://USER:PASSWORD@HOST/DATABASE")]
    Url,
    /// The SQLite file does not exist and is not to be created.
    #[error("there is no store at {}", .0.display())]
    NoSuchFile(PathBuf),
    /// The database does not answer or is busy for too long; a later retry may succeed.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// The disk is full.
    #[error("the disk of the store is full: {0}")]
    Full(String),
    /// The database rejected a statement.
    #[error("store: {0}")]
    Failed(String),
    /// The database is damaged, or is not a store.
    #[error("store damaged: {0}")]
    Corrupt(String),
    /// A newer program has migrated the schema.
    #[error("the store has schema version {0}, which this program is too old for; nothing was changed")]
    NewerSchema(i64),
    /// A schema version has the same number but other content.
    #[error("the store's schema version {0} is not this program's; nothing was changed")]
    ForeignSchema(i64),
    /// The store is sealed with a key that is not in the ring.
    #[error("the store is sealed with key {0}, which was not given; nothing was changed")]
    WrongKey(String),
    /// This process's sealing key was retired: all values were sealed with another.
    #[error("sealing key {0} was retired by `switchback key rotate`; restart with the key in use")]
    KeyRetired(String),
    /// Another gateway process uses the same SQLite file.
    #[error(
        "another gateway already serves from {}; one SQLite store has one gateway (use PostgreSQL for several)",
        .0.display()
    )]
    AlreadyServed(PathBuf),
    /// A sealed value was modified or moved.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// Another program has modified a row.
    #[error("the stored row of client {0} was changed outside of Switchback; it is not used")]
    Tampered(String),
    /// Another client's grant was seeded with the same refresh token.
    #[error("client {0} was given the same refresh token; each client needs an authorization of its own")]
    RefreshTokenTaken(String),
    /// Another client has the name.
    #[error("there is already a client called {0}")]
    NameTaken(String),
    /// The token already authenticates another client.
    #[error("this token already belongs to client {0}")]
    TokenTaken(String),
    /// There is no client of that name.
    #[error("there is no client called {0}")]
    NoSuchClient(String),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(detail) => {
                let (code, message) = (detail.code(), detail.message().to_owned());
                match code.as_deref().unwrap_or_default() {
                    // SQLITE_CORRUPT and SQLITE_NOTADB: no retry helps, and the file must not be
                    // overwritten.
                    "11" | "26" => StoreError::Corrupt(message),
                    // SQLITE_FULL, and PostgreSQL's disk_full.
                    "13" | "53100" => StoreError::Full(message),
                    // SQLITE_BUSY in its forms; PostgreSQL starting, stopping, or out of
                    // connections.
                    "5" | "261" | "517" | "773" | "57P01" | "57P02" | "57P03" | "53300" => {
                        StoreError::Unavailable(message)
                    }
                    code if code.len() == 5 && code.starts_with("08") => StoreError::Unavailable(message),
                    _ => StoreError::Failed(message),
                }
            }
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_) => {
                StoreError::Corrupt(error.to_string())
            }
            sqlx::Error::Configuration(_) => StoreError::Url,
            sqlx::Error::PoolTimedOut => StoreError::Unavailable("cannot connect in time".to_owned()),
            _ => StoreError::Unavailable(error.to_string()),
        }
    }
}

/// Pauses between attempts to acquire the gateway role.
const ROLE_WAITS: [Duration; 5] = [Duration::from_millis(100); 5];

/// An open store. Clones share it.
#[derive(Clone, Debug)]
pub struct Store {
    db: Db,
    keys: KeyRing,
    hasher: Hasher,
    clock: Clock,
    home: Handle,
    /// The author of changes made with this handle, for the history.
    author: Arc<str>,
}

/// Handling of a missing SQLite file in [`Store::open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingStore {
    /// Create the file.
    Create,
    /// Return an error.
    Refuse,
}

impl Store {
    /// Opens the store at `url`, which is sealed with a key of `keys`.
    ///
    /// If a key is wrong, the file damaged or the schema newer, no data is written. If the first
    /// key of the ring is new to the store, it is enrolled, provided that the ring contains all
    /// keys of the store.
    ///
    /// # Errors
    ///
    /// The address is invalid, the file does not exist, a key is wrong, the schema is newer or
    /// another program's, or the database does not answer, is damaged or fails.
    pub async fn open(
        url: &str,
        keys: KeyRing,
        clock: Clock,
        missing: MissingStore,
    ) -> Result<Self, StoreError> {
        let db = Db::open(url, missing == MissingStore::Create).await?;
        // Verify before the migration: a wrong key must leave the store unchanged.
        if db.has_table("sealing_keys").await? {
            keys::verify(&db, &keys).await?;
        }
        db.migrate().await?;
        let hasher = keys::enroll(&db, &keys, &clock).await?;
        Ok(Store { db, keys, hasher, clock, home: Handle::current(), author: Arc::from(GATEWAY) })
    }

    /// Returns the runtime on which the store was opened. Tasks there outlive the caller and the
    /// caller's runtime.
    pub(crate) fn home(&self) -> &Handle {
        &self.home
    }

    /// Runs `work` on the runtime on which the store was opened. A low-priority thread, such as the
    /// shadow's, must not occupy one of the few connections, since others wait for them.
    ///
    /// # Errors
    ///
    /// Errors of `work`, and [`StoreError::Unavailable`] if that runtime shuts down.
    pub(crate) async fn at_home<T, F>(&self, work: impl FnOnce(Store) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        // A dropped caller does not cancel the task, so a transaction is never abandoned midway.
        let done = self.home.spawn(work(self.clone())).await;
        done.unwrap_or_else(|ended| Err(StoreError::Unavailable(ended.to_string())))
    }

    /// Acquires the right to refresh grants of this store. On SQLite a second claim fails after
    /// half a second, while the first is active.
    ///
    /// # Errors
    ///
    /// Another process has the role ([`StoreError::AlreadyServed`]), or the database fails.
    pub async fn take_gateway_role(&self) -> Result<GatewayRole, StoreError> {
        // Before the first refresh: a damaged file could lose the tokens that it appears to accept.
        self.db.check_soundness().await?;
        let Some(file) = self.db.file() else { return Ok(GatewayRole { _lock: None }) };
        let mut name = file.as_os_str().to_owned();
        name.push(".gateway-lock");
        let shown = PathBuf::from(&name);
        let unavailable = |error: std::io::Error| StoreError::Failed(format!("{}: {error}", shown.display()));
        let lock = reserve::private(File::options().create(true).append(true)).open(&name);
        let lock = lock.and_then(for_owner_only).map_err(unavailable)?;
        // A gateway that is being replaced may take a moment to exit.
        for wait in ROLE_WAITS {
            // A lock of the operating system is released with the process even after a crash. A
            // successor would have to judge whether the owner of a row still runs.
            match lock.try_lock() {
                Ok(()) => return Ok(GatewayRole { _lock: Some(Arc::new(lock)) }),
                Err(std::fs::TryLockError::WouldBlock) => tokio::time::sleep(wait).await,
                Err(std::fs::TryLockError::Error(error)) => return Err(unavailable(error)),
            }
        }
        Err(StoreError::AlreadyServed(file.to_owned()))
    }

    /// Returns the number of the last numbered write. It grows with every write of any process.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn change(&self) -> Result<i64, StoreError> {
        let row = self.db.row("SELECT value FROM change_counter WHERE id = 1", &[]).await?;
        let row = row.ok_or_else(|| StoreError::Corrupt("change counter missing".to_owned()))?;
        row.int("value")
    }

    /// Opens a writing transaction, provided that the store still has the newest key of the ring:
    /// values sealed with a key that another process has rotated out could never be opened again.
    async fn write(&self) -> Result<Tx, StoreError> {
        let newest = self.keys.newest().id().to_string();
        // The check is part of the transaction: a rotation of keys cannot happen between it and the
        // write.
        let mut tx = self.db.write().await?;
        match tx.row("SELECT id FROM sealing_keys WHERE id = $1", args![newest.as_str()]).await? {
            Some(_) => Ok(tx),
            None => Err(StoreError::KeyRetired(newest)),
        }
    }

    /// Runs a write that must not be lost. On a full disk, repeats it with the reserved space.
    async fn write_for_sure<T, W>(&self, work: impl Fn() -> W) -> Result<T, StoreError>
    where
        W: Future<Output = Result<T, StoreError>>,
    {
        match work().await {
            Err(StoreError::Full(what)) => {
                tracing::error!(target: "switchback::store", what, "the disk of the store is full; using the reserved space");
                self.db.make_room().await;
                work().await
            }
            outcome => outcome,
        }
    }

    /// Returns the hasher of this store.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Returns the store's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns whether several gateways may share this store.
    pub fn is_shared(&self) -> bool {
        self.db.is_shared()
    }

    /// Closes all connections, waiting up to five seconds for running work.
    pub async fn close(&self) {
        self.db.close().await;
    }
}

/// Restricts a lock file to its owner, since an earlier version created it with wider permissions.
fn for_owner_only(lock: File) -> std::io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mut rights = lock.metadata()?.permissions();
        if rights.mode() & 0o077 != 0 {
            rights.set_mode(0o600);
            lock.set_permissions(rights)?;
        }
    }
    Ok(lock)
}

/// The right to refresh grants. Released on drop, or when the process exits for any reason.
#[derive(Clone, Debug)]
pub struct GatewayRole {
    _lock: Option<Arc<File>>,
}

/// Returns a new random row id: 128 bits in hexadecimal.
fn new_id() -> String {
    seal::random::<16>().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{MissingStore, Store};
    use crate::clock::Clock;
    use crate::store::seal::{KeyRing, SealingKey};

    async fn open(url: &str, ring: &KeyRing) -> Store {
        Store::open(url, ring.clone(), Clock::machine(), MissingStore::Create).await.expect("it opens")
    }

    #[tokio::test]
    async fn the_number_of_the_last_write_counts_what_another_program_commits_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder for the store");
        let url = format!("sqlite:{}", folder.path().join("switchback.db").display());
        let ring = KeyRing::parse(&[SealingKey::generate()]).expect("a ring");
        let (ours, theirs) = (open(&url, &ring).await, open(&url, &ring).await);
        let before = ours.change().await.expect("a number");
        drop(theirs.write().await.expect("a transaction"));
        assert_eq!(ours.change().await.expect("a number"), before, "it was not committed");
        for more in 1..=3 {
            theirs.write().await.expect("a transaction").commit().await.expect("a commit");
            assert_eq!(ours.change().await.expect("a number"), before + more);
        }
    }
}
