//! Detects file changes. Watches folders instead of files, since editors and ConfigMaps replace
//! files rather than write to them. The reload decides by content whether a change is relevant.

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Most settling periods to wait while changes continue. A file that is written continuously must
/// not delay a reload forever.
const SETTLES_MAX: u32 = 20;

/// A watch on folders, active until dropped.
pub(crate) struct FolderWatch {
    watcher: Option<RecommendedWatcher>,
    changed: Arc<Notify>,
    /// Time without changes before the files are read.
    settle: Duration,
}

impl FolderWatch {
    /// Watches the folders of the configuration file and of the files that it names, and the folder
    /// of the pack with its subfolders. If the system cannot watch, logs a warning; SIGHUP and the
    /// admin API still reload.
    pub(crate) fn new(
        file: Option<&Path>,
        others: &[PathBuf],
        pack: Option<&Path>,
        settle: Duration,
    ) -> FolderWatch {
        let changed = Arc::new(Notify::new());
        let files = || file.into_iter().chain(others.iter().map(PathBuf::as_path));
        let folders: BTreeSet<PathBuf> = files().map(folder_of).collect();
        let folders = folders.into_iter().map(|folder| (folder, RecursiveMode::NonRecursive));
        let folders = folders.chain(pack.map(|pack| (pack.to_owned(), RecursiveMode::Recursive)));
        let told = Arc::clone(&changed);
        let names: BTreeSet<OsString> = files().filter_map(Path::file_name).map(OsStr::to_owned).collect();
        // Most watchers report paths as they were registered; some systems report them with all
        // links resolved.
        let inside = [
            pack.and_then(|pack| std::path::absolute(pack).ok()),
            pack.and_then(|pack| pack.canonicalize().ok()),
        ];
        let tell = move |event: notify::Result<Event>| {
            // Reads are events, too. Ignore them: the reload's own reads would trigger reloads
            // forever. Some systems report no paths; such events count as relevant.
            let is_change = |event: &Event| {
                let is_ours = |path: &PathBuf| matters(path, &names, &inside);
                !event.kind.is_access() && (event.paths.is_empty() || event.paths.iter().any(is_ours))
            };
            if event.is_ok_and(|event| is_change(&event)) {
                told.notify_one();
            }
        };
        let watcher = notify::recommended_watcher(tell).and_then(|mut watcher| {
            for (folder, mode) in folders {
                watcher.watch(&folder, mode)?;
            }
            // Watching only a part of the folders would make a reload depend on the edited file.
            Ok(watcher)
        });
        if let Err(error) = &watcher {
            tracing::warn!(%error, "files cannot be watched; reload with SIGHUP");
        }
        FolderWatch { watcher: watcher.ok(), changed, settle }
    }

    /// Returns whether the system watches the folders.
    pub(crate) fn is_active(&self) -> bool {
        self.watcher.is_some()
    }

    /// Waits for a change, then until no change has occurred for the settling period: editors write
    /// in several steps, and a pack has several files.
    pub(crate) async fn wait_until_quiet(&self) {
        self.changed.notified().await;
        for _ in 0..SETTLES_MAX {
            if tokio::time::timeout(self.settle, self.changed.notified()).await.is_err() {
                return;
            }
        }
    }
}

/// Returns whether a change of `path` can affect one of the files with these `names` or the pack,
/// which has the paths `inside`. A log or store in the same folder may be written many times a
/// second. Names that start with `..` are the links by which Kubernetes swaps all files of a volume
/// at once.
fn matters(path: &Path, names: &BTreeSet<OsString>, inside: &[Option<PathBuf>]) -> bool {
    let own = path.file_name();
    own.is_some_and(|own| names.contains(own))
        || own.is_some_and(|own| own.as_encoded_bytes().starts_with(b".."))
        || inside.iter().flatten().any(|pack| path.starts_with(pack))
}

fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_or_a_store_beside_the_configuration_is_no_change() {
        let names = BTreeSet::from([OsString::from("own.yaml")]);
        let inside = ["etc/pack", "real/pack"].map(|path| Some(PathBuf::from(path)));
        let matters = |path: &str| matters(Path::new(path), &names, &inside);
        for path in [
            "etc/own.yaml",
            "etc/..data",
            "etc/pack/a.map.yaml",
            "etc/pack/sub/b.yaml",
            "real/pack/a.map.yaml",
        ] {
            assert!(matters(path), "{path}");
        }
        for path in ["etc/own.log", "etc/own.db-wal", "etc/other.yaml", "etc/pack.log"] {
            assert!(!matters(path), "{path}");
        }
    }
}
