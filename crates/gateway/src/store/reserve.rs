//! Reserved disk space for writes that must not be lost. A refresh spends a token permanently, so
//! its result must be storable even if the disk fills up meanwhile. A file next to the database
//! occupies the space before the token is spent; if the database finds the disk full, the file is
//! deleted.
//!
//! The file contains random bytes, since some file systems do not allocate space for compressible
//! data.

use super::StoreError;
use super::seal;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Ample space for the results of several refreshes in SQLite's log: each is bounded by the longest
/// accepted response of an authorization server, 64 KiB, and usually takes three pages of 4 KiB.
const RESERVE_BYTES: usize = 512 * 1024;

/// The file that occupies the space.
#[derive(Debug)]
pub(super) struct Reserve {
    file: PathBuf,
}

impl Reserve {
    /// Returns the reserve of the database in `file`.
    pub(super) fn for_database(file: &Path) -> Reserve {
        let mut name = file.as_os_str().to_owned();
        name.push("-reserve");
        Reserve { file: name.into() }
    }

    /// Allocates the reserve. An error means that there is no space.
    pub(super) async fn hold(this: &Arc<Self>) -> Result<(), StoreError> {
        let reserve = Arc::clone(this);
        let held = spawn_blocking(move || reserve.fill()).await;
        let outcome = held.unwrap_or_else(|_| Err(io::Error::other("interrupted")));
        outcome.map_err(|error| {
            let what = format!("{} bytes at {}: {error}", RESERVE_BYTES, this.file.display());
            match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full(what),
                _ => StoreError::Unavailable(what),
            }
        })
    }

    /// Deletes the reserve, so that the database can use the space.
    pub(super) async fn release(this: &Arc<Self>) {
        let reserve = Arc::clone(this);
        let removed = spawn_blocking(move || std::fs::remove_file(&reserve.file)).await;
        match removed {
            Ok(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(target: "switchback::store", %error, "the reserved disk space was not released");
            }
            _ => {}
        }
    }

    fn fill(&self) -> io::Result<()> {
        let held = std::fs::metadata(&self.file).map_or(0, |found| found.len());
        if held == RESERVE_BYTES as u64 {
            return Ok(());
        }
        let filled = self.write();
        if filled.is_err() {
            // A partial reserve would only take space from the database.
            let _ = std::fs::remove_file(&self.file);
        }
        filled
    }

    fn write(&self) -> io::Result<()> {
        let mut file = private(File::options().write(true).create(true).truncate(true)).open(&self.file)?;
        for _ in 0..RESERVE_BYTES / 4096 {
            file.write_all(&seal::random::<4096>())?;
        }
        file.sync_all()
    }
}

/// Restricts files created with these options to their owner.
pub(super) fn private(options: &mut std::fs::OpenOptions) -> &mut std::fs::OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}
