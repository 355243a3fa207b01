//! Noticing that files have changed. Folders are watched rather than files, since editors and ConfigMaps replace files
//! instead of writing into them; whether anything that matters has changed is judged by the reload, by content.

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Watches folders until dropped.
pub(super) struct Watch {
    _watcher: Option<RecommendedWatcher>,
    changed: Arc<Notify>,
    /// How long files must stay unchanged before they are worth reading.
    settle: Duration,
}

impl Watch {
    /// Watches the folder of the configuration file and the folder of the pack with its subfolders. Where the system cannot
    /// watch, that is logged, and reloading is left to SIGHUP and the admin API.
    pub(super) fn new(file: Option<&Path>, pack: Option<&Path>, settle: Duration) -> Watch {
        let changed = Arc::new(Notify::new());
        let folders = file.map(folder_of).into_iter().map(|folder| (folder, RecursiveMode::NonRecursive));
        let folders = folders.chain(pack.map(|pack| (pack.to_owned(), RecursiveMode::Recursive)));
        let told = Arc::clone(&changed);
        let tell = move |event: notify::Result<Event>| {
            // Reading a file is an event too, and our own reading must not wake us.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                told.notify_one();
            }
        };
        let watcher = notify::recommended_watcher(tell).and_then(|mut watcher| {
            for (folder, mode) in folders {
                watcher.watch(&folder, mode)?;
            }
            Ok(watcher)
        });
        if let Err(error) = &watcher {
            tracing::warn!(%error, "files cannot be watched; reload with SIGHUP");
        }
        Watch { _watcher: watcher.ok(), changed, settle }
    }

    /// Waits for a change, and then until nothing has changed for a while: an editor writes in several steps, and a pack is
    /// several files.
    pub(super) async fn settled(&self) {
        self.changed.notified().await;
        while tokio::time::timeout(self.settle, self.changed.notified()).await.is_ok() {}
    }
}

fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}
