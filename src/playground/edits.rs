//! Edited mapping files: findings and completion for an editor, the patch, and saving them to the
//! folder of the pack.

use super::tried::{Changes, PlaygroundSession, ServedPack, TryError, compile_in_time, is_mapping};
use crate::lsp::MemoryPack;
use diffy::DiffOptions;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use switchback_compiler::mapping::load::PackSource;
use switchback_gateway::store::seal::random;
use tokio::task::spawn_blocking;

/// A text of a mapping file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEdit {
    pub text: String,
    /// SHA-256 of the text that was opened for editing, in hexadecimal.
    pub opened: String,
}

/// Edited mapping files, by name.
pub type Edits = BTreeMap<String, FileEdit>;

/// Returns the texts of edited files.
pub fn texts(edits: &Edits) -> BTreeMap<String, String> {
    edits.iter().map(|(name, edit)| (name.clone(), edit.text.clone())).collect()
}

impl PlaygroundSession {
    /// Returns the served text of a mapping file, unedited.
    pub fn open(&self, name: &str) -> Option<FileEdit> {
        let served = self.0.served.load_full();
        let file = served.files.find(name).filter(|_| is_mapping(name))?;
        Some(FileEdit { text: file.text(), opened: digest(&file.content()) })
    }

    /// Returns whether edited files may be saved to the folder of the pack.
    pub fn is_writable(&self) -> bool {
        self.0.served.load().writable.is_some()
    }

    /// Returns the findings of the compiler as diagnostics of the Language Server Protocol, by file.
    /// Columns are in UTF-16.
    pub async fn findings(&self, changes: Changes) -> Result<BTreeMap<String, Vec<Value>>, TryError> {
        let found = self.with_editor(changes, MemoryPack::findings).await?;
        found.ok_or(TryError::CompileTime(10))
    }

    /// Returns the completion items of the Language Server Protocol at a position of an edited file.
    pub async fn complete(&self, changes: Changes, file: String, position: Value) -> Result<Value, TryError> {
        let items = self.with_editor(changes, move |pack| pack.complete(&file, &position)).await?;
        Ok(items.unwrap_or_default())
    }

    /// Runs `work` on a blocking thread. One editor compiles at a time, so that several never occupy
    /// all cores.
    async fn with_editor<T: Send + 'static>(
        &self,
        changes: Changes,
        work: impl FnOnce(&mut MemoryPack) -> T + Send + 'static,
    ) -> Result<T, TryError> {
        let served = self.0.served.load_full();
        let is_unknown = |name: &&String| !is_mapping(name) || served.files.find(name).is_none();
        if let Some(name) = changes.keys().find(is_unknown) {
            return Err(TryError::NoSuchFile(name.clone()));
        }
        let mut editor = Arc::clone(&self.0.editor).lock_owned().await;
        let task = spawn_blocking(move || {
            let pack = match editor.take() {
                Some((of, pack)) if Arc::ptr_eq(&of, &served) => pack,
                _ => {
                    let file = |file: &super::PackFile| (file.name.clone(), file.content().into_owned());
                    MemoryPack::new(PackSource::from_files(served.files.iter().map(file).collect()))
                }
            };
            let (_, pack) = editor.insert((served, pack));
            pack.set_texts(&changes);
            work(pack)
        });
        task.await.map_err(|_| TryError::Interrupted)
    }

    /// Returns the unified diff of edited files, with paths relative to the folder of the pack, as
    /// `git apply` reads it.
    ///
    /// # Errors
    ///
    /// Returns an error if nothing is changed, or if a served text is not the one that was opened.
    pub fn patch(&self, edits: &Edits) -> Result<String, TryError> {
        let mut patch = String::new();
        for (name, edit) in edits {
            let served = self.open(name).ok_or_else(|| TryError::NoSuchFile(name.clone()))?;
            if served.opened != edit.opened {
                return Err(TryError::Conflict(name.clone()));
            }
            if served.text != edit.text {
                let mut options = DiffOptions::new();
                options.set_original_filename(format!("a/{name}"));
                options.set_modified_filename(format!("b/{name}"));
                patch.push_str(&options.create_patch(&served.text, &edit.text).to_string());
            }
        }
        if patch.is_empty() { Err(TryError::Unchanged) } else { Ok(patch) }
    }

    /// Replaces edited files in the folder of the pack, each in one step. A reload takes them up as any
    /// other change of the folder.
    ///
    /// # Errors
    ///
    /// Returns an error and changes nothing if the configuration does not permit it, if a file is not
    /// the one that was opened, or if a reload would refuse the folder with these texts.
    pub async fn save(&self, edits: &Edits) -> Result<(), TryError> {
        let served = self.0.served.load_full();
        let folder = served.writable.clone().ok_or(TryError::NotWritable)?;
        if edits.is_empty() {
            return Err(TryError::Unchanged);
        }
        let edits = edits.clone();
        let _compiling = self.0.compiling.lock().await;
        let saved = spawn_blocking(move || save_to(&folder, &edits, served)).await;
        saved.map_err(|_| TryError::Interrupted)?
    }
}

fn save_to(folder: &Path, edits: &Edits, served: Arc<ServedPack>) -> Result<(), TryError> {
    // The folder and not the served files: a reload will read it.
    let on_disk = PackSource::from_dir(folder).map_err(|error| TryError::Write(error.to_string()))?;
    let mut files = on_disk.files().to_vec();
    for (name, edit) in edits {
        // Names of the folder's own listing are paths inside it.
        let file = files.iter_mut().find(|(known, _)| known == name).filter(|_| is_mapping(name));
        let Some((_, content)) = file else { return Err(TryError::NoSuchFile(name.clone())) };
        check_unchanged(folder, name, edit)?;
        *content = edit.text.as_bytes().into();
    }
    let tried = compile_in_time(PackSource::from_files(files), served)?;
    if !tried.checked.failed.is_empty() {
        let failed = tried.checked.failed.iter().map(|example| example.what.clone());
        return Err(TryError::Examples(failed.collect()));
    }
    let written = edits.iter().map(|(name, edit)| Replacement::write(folder, name, &edit.text));
    let written = written.collect::<io::Result<Vec<_>>>();
    let written = written.map_err(|error| TryError::Write(error.to_string()))?;
    // Again, since the compilation takes time.
    edits.iter().try_for_each(|(name, edit)| check_unchanged(folder, name, edit))?;
    let replaced = written.into_iter().try_for_each(Replacement::replace);
    replaced.map_err(|error| TryError::Write(error.to_string()))
}

/// Checks that a file is a file of the folder itself with the text that was opened.
fn check_unchanged(folder: &Path, name: &str, edit: &FileEdit) -> Result<(), TryError> {
    let path = folder.join(name);
    let meta = fs::symlink_metadata(&path).map_err(|error| TryError::Write(error.to_string()))?;
    if !meta.is_file() {
        return Err(TryError::Link(name.to_owned()));
    }
    let content = fs::read(&path).map_err(|error| TryError::Write(error.to_string()))?;
    if digest(&content) == edit.opened { Ok(()) } else { Err(TryError::Conflict(name.to_owned())) }
}

/// A written file that is to replace another. Removed if it is dropped before.
struct Replacement {
    temporary: PathBuf,
    path: PathBuf,
    is_done: bool,
}

impl Replacement {
    fn write(folder: &Path, name: &str, text: &str) -> io::Result<Replacement> {
        let path = folder.join(name);
        let number = u64::from_le_bytes(random());
        let temporary = folder.join(format!(".{name}.{number:016x}.tmp"));
        let permissions = fs::metadata(&path)?.permissions();
        // `create_new` follows no link.
        let mut file = File::create_new(&temporary)?;
        let replacement = Replacement { temporary, path, is_done: false };
        file.write_all(text.as_bytes())?;
        file.set_permissions(permissions)?;
        file.sync_all()?;
        Ok(replacement)
    }

    fn replace(mut self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.path)?;
        self.is_done = true;
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Returns the SHA-256 of a content in hexadecimal.
fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
