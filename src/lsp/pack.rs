//! The packs of open files. An open file replaces the one on disk.

use super::text::{path_of, uri_of};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchback_compiler::diagnostic::{Code, FileId};
use switchback_compiler::mapping::load::{MANIFEST, MAPPING_SUFFIX, PackFile, PackSource};
use switchback_compiler::mapping::{Compiled, Compiler};

/// Longest compilation. An editor is answered without its result after that.
pub(super) const COMPILE_TIME_MAX: Duration = Duration::from_secs(10);

/// An open file.
#[derive(Debug)]
pub(super) struct Buffer {
    /// The URI as the editor writes it.
    pub(super) uri: String,
    /// The editor's number of the text, which findings repeat.
    version: Value,
    pub(super) text: Arc<str>,
}

/// The open files, by path, and the packs that they belong to, by folder.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    pub(super) buffers: BTreeMap<PathBuf, Buffer>,
    packs: BTreeMap<PathBuf, OpenPack>,
    /// The files of the only pack, at `/`. `None`: packs are folders on disk.
    memory: Option<PackSource>,
}

/// A pack with an open file.
#[derive(Debug)]
struct OpenPack {
    compiler: Compiler,
    /// The last result.
    current: Option<Compiled>,
    /// Whether a text has changed since the last result.
    is_stale: bool,
    /// The last result for which every file was YAML. It describes names while a file is broken.
    whole: Option<Compiled>,
    /// Files with published findings.
    published: Vec<PathBuf>,
    /// Whether the findings of the present texts are published.
    is_published: bool,
}

impl OpenPack {
    fn new() -> OpenPack {
        OpenPack {
            compiler: Compiler::with_references(),
            current: None,
            is_stale: true,
            whole: None,
            published: Vec::new(),
            is_published: false,
        }
    }
}

/// A place in an open file of a pack.
#[derive(Debug)]
pub(super) struct Cursor {
    /// Folder of the pack.
    pub(super) root: PathBuf,
    /// Path of the file inside the pack.
    pub(super) file: String,
    pub(super) text: Arc<str>,
    pub(super) offset: u32,
}

impl Workspace {
    /// Creates a workspace of one pack, whose closed files have these texts. Its folder is `/`.
    pub(super) fn of_memory(files: PackSource) -> Workspace {
        let packs = BTreeMap::from([(PathBuf::from("/"), OpenPack::new())]);
        Workspace { buffers: BTreeMap::new(), packs, memory: Some(files) }
    }

    /// Returns the text of an open file.
    pub(super) fn text(&self, path: &Path) -> Option<&str> {
        self.buffers.get(path).map(|buffer| &*buffer.text)
    }

    /// Sets the text of a file, and opens its pack.
    pub(super) fn open(&mut self, uri: &str, version: Value, text: &str) {
        let Some(path) = path_of(uri) else { return };
        self.buffers.insert(path, Buffer { uri: uri.to_owned(), version, text: text.into() });
        self.refresh();
    }

    /// Forgets the text of a file.
    pub(super) fn close(&mut self, uri: &str) {
        path_of(uri).and_then(|path| self.buffers.remove(&path));
        self.refresh();
    }

    /// Marks all packs as changed, and adds the packs of new files. A pack without an open file
    /// stays until its findings are withdrawn.
    pub(super) fn refresh(&mut self) {
        let roots: Vec<PathBuf> = self.buffers.keys().filter_map(|path| self.root_of(path)).collect();
        for pack in self.packs.values_mut() {
            (pack.is_stale, pack.is_published) = (true, false);
        }
        for root in roots {
            self.packs.entry(root).or_insert_with(OpenPack::new);
        }
    }

    /// Returns the packs whose findings are not published yet.
    pub(super) fn unpublished(&self) -> Vec<PathBuf> {
        self.packs.iter().filter(|(_, pack)| !pack.is_published).map(|(root, _)| root.clone()).collect()
    }

    /// Marks the findings of a pack as published, and returns the files that had findings before. A
    /// pack without an open file is forgotten.
    pub(super) fn replace_published(&mut self, root: &Path, files: Vec<PathBuf>) -> Vec<PathBuf> {
        let is_open = !self.open_files(root).is_empty();
        let Some(pack) = self.packs.get_mut(root) else { return Vec::new() };
        pack.is_published = true;
        let before = std::mem::replace(&mut pack.published, files);
        if !is_open {
            self.packs.remove(root);
        }
        before
    }

    /// Returns the open files of a pack.
    pub(super) fn open_files(&self, root: &Path) -> Vec<PathBuf> {
        let is_own = |path: &&PathBuf| self.root_of(path).as_deref() == Some(root);
        self.buffers.keys().filter(is_own).cloned().collect()
    }

    /// Returns the folder of the pack that a file belongs to: the nearest one with a manifest.
    fn root_of(&self, file: &Path) -> Option<PathBuf> {
        if self.memory.is_some() {
            return Some(PathBuf::from("/"));
        }
        let has_manifest = |folder: &&Path| {
            let manifest = folder.join(MANIFEST);
            self.buffers.contains_key(&manifest) || manifest.is_file()
        };
        file.ancestors().skip(1).find(has_manifest).map(Path::to_owned)
    }

    /// Returns the URIs of the open files.
    pub(super) fn uris(&self) -> BTreeMap<PathBuf, String> {
        self.buffers.iter().map(|(path, buffer)| (path.clone(), buffer.uri.clone())).collect()
    }

    /// Returns the URI of a file, as the editor writes it if it is open.
    pub(super) fn uri(&self, path: &Path) -> String {
        self.buffers.get(path).map_or_else(|| uri_of(path), |buffer| buffer.uri.clone())
    }

    /// Returns the version of an open file.
    pub(super) fn version(&self, path: &Path) -> Option<&Value> {
        self.buffers.get(path).map(|buffer| &buffer.version).filter(|version| version.is_i64())
    }

    /// Returns the place of an offset in an open file, or `None` if the file is not open or belongs to
    /// no pack.
    pub(super) fn cursor(&self, uri: &str, offset: impl FnOnce(&str) -> Option<u32>) -> Option<Cursor> {
        let path = path_of(uri)?;
        let text = Arc::clone(&self.buffers.get(&path)?.text);
        let root = self.root_of(&path)?;
        let file = path.strip_prefix(&root).ok()?.to_str()?.to_owned();
        let offset = offset(&text)?;
        Some(Cursor { root, file, text, offset })
    }

    /// Returns the files of a pack as the editor shows them.
    fn source(&self, root: &Path) -> PackSource {
        // A folder that cannot be read is a pack without its closed files, and the findings name these.
        let closed = match &self.memory {
            Some(files) => files.clone(),
            None => PackSource::from_dir(root).unwrap_or_default(),
        };
        let mut files: BTreeMap<String, Arc<[u8]>> = closed.files().iter().cloned().collect();
        for (path, buffer) in &self.buffers {
            let name = path.strip_prefix(root).ok().and_then(Path::to_str);
            let is_own = |name: &&str| {
                files.contains_key(*name)
                    || *name == MANIFEST
                    || (name.ends_with(MAPPING_SUFFIX) && !name.contains('/'))
            };
            if let Some(name) = name.filter(is_own) {
                files.insert(name.to_owned(), buffer.text.as_bytes().into());
            }
        }
        PackSource::from_files(files.into_iter().collect())
    }

    /// Returns the result for the present texts of a pack.
    pub(super) fn compile(&mut self, root: &Path) -> Option<&Compiled> {
        self.compile_until(root, &|| false)
    }

    /// Like [`Workspace::compile`]. Returns `None` if `is_stopped` returns true first, or after
    /// [`COMPILE_TIME_MAX`].
    pub(super) fn compile_until(&mut self, root: &Path, is_stopped: &dyn Fn() -> bool) -> Option<&Compiled> {
        if self.packs.get(root)?.is_stale {
            let source = self.source(root);
            let pack = self.packs.get_mut(root)?;
            let until = Instant::now() + COMPILE_TIME_MAX;
            let is_stopped = || is_stopped() || Instant::now() >= until;
            let compiled = pack.compiler.compile_until(&source, &is_stopped)?;
            pack.is_stale = false;
            let is_whole = is_whole(&compiled);
            let before = pack.current.replace(compiled);
            pack.whole = match before.filter(self::is_whole) {
                _ if is_whole => None,
                None => pack.whole.take(),
                before => before,
            };
        }
        self.packs.get(root)?.current.as_ref()
    }

    /// Returns the last result in which the names of a file have a meaning, the file, and the offset
    /// of the same text in it. While the file is broken, a text that has changed since has none.
    pub(super) fn names(&mut self, cursor: &Cursor) -> Option<(&Compiled, FileId, u32)> {
        self.compile(&cursor.root)?;
        let pack = self.packs.get(&cursor.root)?;
        let compiled = pack.whole.as_ref().or(pack.current.as_ref())?;
        let file = compiled.sources.find(&cursor.file)?;
        let offset = map_offset(&cursor.text, compiled.sources.text(file), cursor.offset)?;
        Some((compiled, file, offset))
    }

    /// Compiles a pack with other texts, which the editor does not show. The result does not replace
    /// that of the present texts.
    pub(super) fn try_texts(&mut self, root: &Path, texts: &[(String, String)]) -> Option<Compiled> {
        let mut files: BTreeMap<String, Arc<[u8]>> = self.source(root).files().iter().cloned().collect();
        files.extend(texts.iter().map(|(name, text)| (name.clone(), text.as_bytes().into())));
        let files: Vec<PackFile> = files.into_iter().collect();
        let until = Instant::now() + COMPILE_TIME_MAX;
        let is_stopped = || Instant::now() >= until;
        self.packs.get_mut(root)?.compiler.compile_until(&PackSource::from_files(files), &is_stopped)
    }
}

/// Returns whether every file has a tree.
fn is_whole(compiled: &Compiled) -> bool {
    const UNREAD: [Code; 4] = [Code::YamlSyntax, Code::NotUtf8, Code::EmptyFile, Code::TooLarge];
    compiled.contracts.is_some() && !compiled.findings.in_order().iter().any(|one| UNREAD.contains(&one.code))
}

/// Returns the offset in `other` of the text at `offset` of `text`, or `None` if that text is between
/// the equal beginnings and the equal ends of both.
pub(super) fn map_offset(text: &str, other: &str, offset: u32) -> Option<u32> {
    let (own, other) = (text.as_bytes(), other.as_bytes());
    let count_equal = |equal: &mut dyn Iterator<Item = bool>| equal.take_while(|equal| *equal).count();
    let begin = count_equal(&mut own.iter().zip(other).map(|(a, b)| a == b));
    let end = count_equal(&mut own.iter().rev().zip(other.iter().rev()).map(|(a, b)| a == b));
    let offset = offset as usize;
    let moved = if offset <= begin {
        offset
    } else if offset >= own.len() - end {
        (offset + other.len()).checked_sub(own.len())?
    } else {
        return None;
    };
    u32::try_from(moved).ok()
}

#[cfg(test)]
mod tests {
    use super::map_offset;

    #[test]
    fn only_a_changed_text_has_no_place_in_the_other_one() {
        let (text, other) = ("abcXXdef", "abcdef");
        let places = [0, 3, 4, 5, 8].map(|offset| map_offset(text, other, offset));
        assert_eq!(places, [Some(0), Some(3), None, Some(3), Some(6)]);
        assert_eq!(map_offset(other, text, 6), Some(8));
    }
}
