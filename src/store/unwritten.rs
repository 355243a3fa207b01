//! Knowing that nobody has written to a SQLite file without asking SQLite. Everyone who serves from a store looks every second
//! whether something has changed, and hardly ever has it; a statement for that would keep the whole database engine busy, and in
//! memory, for nothing.
//!
//! Every commit rewrites the header of the index of the write-ahead log, which lies in the file beside the database that is
//! called like it with `-shm` (SQLite, "WAL-mode File Format", section 2.1). So as long as that header stays what it was before
//! the store was asked, the answer is still right. What cannot be read, or not for sure, is asked.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The header stands there twice.
const HEADER_BYTES: usize = 2 * 48;

/// What was to be seen from outside at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    file: u64,
    header: [u8; HEADER_BYTES],
}

/// Looks at the SQLite file `database`. Nothing where there is no such index, or where writing through a mapping and reading
/// the file are not known to agree.
pub(super) fn look(database: &Path) -> Option<Seen> {
    #[cfg(target_os = "linux")]
    {
        use std::io::Read as _;
        use std::os::unix::fs::MetadataExt as _;
        let mut name = database.as_os_str().to_owned();
        name.push("-shm");
        let mut index = std::fs::File::open(name).ok()?;
        let file = index.metadata().ok()?.ino();
        let mut header = [0; HEADER_BYTES];
        index.read_exact(&mut header).ok()?;
        Some(Seen { file, header })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = database;
        None
    }
}

/// The last answer, and what was to be seen before it was asked for.
#[derive(Debug, Default)]
pub(super) struct LastChange(Mutex<Option<(Seen, i64)>>);

impl LastChange {
    /// The number of the last write, if nothing has been written since it was noted.
    pub(super) fn still(&self, seen: Option<Seen>) -> Option<i64> {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.filter(|(before, _)| Some(*before) == seen).map(|(_, change)| change)
    }

    /// Notes an answer. `seen` must have been looked at before the store was asked.
    pub(super) fn note(&self, seen: Option<Seen>, change: i64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = seen.map(|seen| (seen, change));
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use crate::clock::Clock;
    use crate::store::seal::{KeyRing, SealingKey};
    use crate::store::{Missing, Store};

    async fn open(url: &str, ring: &KeyRing) -> Store {
        Store::open(url, ring.clone(), Clock::machine(), Missing::Create).await.expect("it opens")
    }

    #[tokio::test]
    async fn what_another_program_writes_is_seen_and_nothing_is_asked_until_it_does() {
        let folder = tempfile::tempdir().expect("a folder for the store");
        let url = format!("sqlite:{}", folder.path().join("switchback.db").display());
        let ring = KeyRing::parse(&[SealingKey::generate()]).expect("a ring");
        let (ours, theirs) = (open(&url, &ring).await, open(&url, &ring).await);
        let mut last = ours.change().await.expect("a number");
        for _ in 0..3 {
            theirs.write().await.expect("a transaction").commit().await.expect("a commit");
            let now = ours.change().await.expect("a number");
            assert_eq!(now, last + 1);
            last = now;
        }
        // From here on whoever asks fails.
        ours.close().await;
        assert_eq!(ours.change().await.expect("it is known"), last);
        theirs.write().await.expect("a transaction").commit().await.expect("a commit");
        ours.change().await.expect_err("a write makes it ask again");
    }

    #[tokio::test]
    async fn what_is_not_committed_is_no_change() {
        let folder = tempfile::tempdir().expect("a folder for the store");
        let url = format!("sqlite:{}", folder.path().join("switchback.db").display());
        let ring = KeyRing::parse(&[SealingKey::generate()]).expect("a ring");
        let (ours, theirs) = (open(&url, &ring).await, open(&url, &ring).await);
        let before = ours.change().await.expect("a number");
        drop(theirs.write().await.expect("a transaction"));
        assert_eq!(ours.change().await.expect("a number"), before);
    }
}
