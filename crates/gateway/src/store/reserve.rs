//! Room on the disk for what must not be lost. A refresh spends a token for good, and its result must then be written, however
//! full the disk has become in between. So a file beside the database holds some room from before the token is spent; when the
//! database finds no room, the file gives it up.
//!
//! It holds random bytes, since some file systems keep no room for what compresses well.

use super::StoreError;
use super::seal;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// What the results of several refreshes take in SQLite's log with room to spare: each is bounded by the longest answer of an
/// authorization server that is read, 64 KiB, and usually is three pages of 4 KiB.
const RESERVE_BYTES: usize = 512 * 1024;

/// The file that holds the room.
#[derive(Debug)]
pub(super) struct Reserve {
    file: PathBuf,
}

impl Reserve {
    /// That of the database in `file`.
    pub(super) fn beside(file: &Path) -> Reserve {
        let mut name = file.as_os_str().to_owned();
        name.push("-reserve");
        Reserve { file: name.into() }
    }

    /// Holds the room from here on. An error means that there is none.
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

    /// Gives the room up, to be used by the database.
    pub(super) async fn release(this: &Arc<Self>) {
        let reserve = Arc::clone(this);
        let removed = spawn_blocking(move || std::fs::remove_file(&reserve.file)).await;
        match removed {
            Ok(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(target: "switchback::store", %error, "reserved room on the disk was not given up");
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
            // Half of it would take room from the database for nothing.
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

/// A file made with these options is for its owner only.
pub(super) fn private(options: &mut std::fs::OpenOptions) -> &mut std::fs::OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}
