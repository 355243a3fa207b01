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

/// The last answer, and what was to be seen before it was asked for.
#[derive(Debug, Default)]
pub(super) struct LastChange {
    last: Mutex<Option<(Seen, i64)>>,
    /// The index, opened once.
    #[cfg(target_os = "linux")]
    index: std::sync::OnceLock<Kept>,
}

/// An open file that is never closed. A process that closes a file loses every lock that it holds on it by whichever other
/// descriptor (POSIX, `fcntl`), and SQLite's own locks on the index are such: without them the next program that opens the
/// database takes it for abandoned and cuts the index short under everyone who uses it.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Kept(std::mem::ManuallyDrop<std::fs::File>);

impl LastChange {
    /// Looks at the SQLite file `database`. Nothing where there is no such index, where it is another one than at the first
    /// look, or where writing through a mapping and reading the file are not known to agree.
    pub(super) fn look(&self, database: &Path) -> Option<Seen> {
        #[cfg(target_os = "linux")]
        {
            use std::os::unix::fs::{FileExt as _, MetadataExt as _};
            let mut name = database.as_os_str().to_owned();
            name.push("-shm");
            // By its name, which opens nothing.
            let file = std::fs::metadata(&name).ok()?.ino();
            let index = match self.index.get() {
                Some(kept) => kept,
                None => {
                    let kept = Kept(std::mem::ManuallyDrop::new(std::fs::File::open(&name).ok()?));
                    self.index.get_or_init(|| kept)
                }
            };
            if index.0.metadata().ok()?.ino() != file {
                return None;
            }
            let mut header = [0; HEADER_BYTES];
            index.0.read_exact_at(&mut header, 0).ok()?;
            Some(Seen { file, header })
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = database;
            None
        }
    }

    /// The number of the last write, if nothing has been written since it was noted.
    pub(super) fn still(&self, seen: Option<Seen>) -> Option<i64> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.filter(|(before, _)| Some(*before) == seen).map(|(_, change)| change)
    }

    /// Notes an answer. `seen` must have been looked at before the store was asked.
    pub(super) fn note(&self, seen: Option<Seen>, change: i64) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = seen.map(|seen| (seen, change));
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

    /// How many locks this process holds on a file, as the system counts them.
    fn locks(file: &std::path::Path) -> usize {
        use std::os::unix::fs::MetadataExt as _;
        let (ours, inode) = (std::process::id(), std::fs::metadata(file).expect("it is there").ino());
        let all = std::fs::read_to_string("/proc/locks").expect("the system lists them");
        let is_ours = |line: &&str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.contains(&ours.to_string().as_str())
                && words.iter().any(|word| word.ends_with(&format!(":{inode}")))
        };
        all.lines().filter(is_ours).count()
    }

    #[tokio::test]
    async fn looking_takes_no_lock_away_from_sqlite() {
        let folder = tempfile::tempdir().expect("a folder for the store");
        let url = format!("sqlite:{}", folder.path().join("switchback.db").display());
        let store = open(&url, &KeyRing::parse(&[SealingKey::generate()]).expect("a ring")).await;
        let index = folder.path().join("switchback.db-shm");
        let before = locks(&index);
        assert!(before > 0, "who uses the database says so");
        for _ in 0..3 {
            store.change().await.expect("a number");
        }
        assert_eq!(locks(&index), before);
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
