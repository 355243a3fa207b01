//! The files of a served pack, for display and for dry runs. Large contracts are compressed, since
//! their texts would take more memory than the rest of the pack, and parsed on demand.

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use std::borrow::Cow;
use std::io::{Read as _, Write as _};
use std::sync::{Arc, OnceLock};
use switchback_compiler::contract::Contracts;
use switchback_compiler::mapping;
use switchback_compiler::mapping::load::PackSource;

/// Files up to this size are stored uncompressed. This covers mapping files, which are displayed
/// and edited.
const PLAIN_BYTES_MAX: usize = 256 << 10;

/// The files of a pack, sorted by name.
#[derive(Debug, Default)]
pub struct KeptFiles(Vec<PackFile>);

/// A file of a pack.
#[derive(Debug)]
pub struct PackFile {
    /// Its path inside the pack.
    pub name: String,
    /// Uncompressed size in bytes.
    pub length: usize,
    content: FileContent,
}

#[derive(Debug)]
enum FileContent {
    Plain(Vec<u8>),
    /// Deflated (RFC 1951).
    Folded(Vec<u8>),
}

impl KeptFiles {
    /// Stores the files of a pack, the large ones compressed.
    pub fn new(source: &PackSource) -> KeptFiles {
        KeptFiles(source.files().iter().map(|(name, content)| PackFile::new(name, content)).collect())
    }

    /// Returns all files.
    pub fn iter(&self) -> impl Iterator<Item = &PackFile> {
        self.0.iter()
    }

    /// Returns the file with this path inside the pack.
    pub fn find(&self, name: &str) -> Option<&PackFile> {
        self.0.iter().find(|file| file.name == name)
    }
}

/// The contracts of a served pack. Plans do not need them, so they are parsed from the pack's files
/// when a page displays them or the dual run validates a planned call. Parsing takes up to a second
/// and never happens on the data path.
#[derive(Debug)]
pub struct KeptContracts {
    files: Arc<KeptFiles>,
    read: OnceLock<Option<Contracts>>,
}

impl KeptContracts {
    /// Creates the contracts of a pack that compiles.
    pub fn new(files: Arc<KeptFiles>) -> KeptContracts {
        KeptContracts { files, read: OnceLock::new() }
    }

    /// Returns the contracts, old side first. The first call parses them. `None` only if the files
    /// do not compile.
    pub fn contracts(&self) -> Option<&Contracts> {
        let read = || {
            let files = self.files.iter().map(|file| (file.name.clone(), file.content().into_owned()));
            mapping::contracts(&PackSource::from_files(files.collect()))
        };
        self.read.get_or_init(read).as_ref()
    }
}

impl PackFile {
    fn new(name: &str, content: &[u8]) -> PackFile {
        let folded = (content.len() > PLAIN_BYTES_MAX).then(|| compress(content)).flatten();
        let kept = folded.map_or_else(|| FileContent::Plain(content.to_vec()), FileContent::Folded);
        PackFile { name: name.to_owned(), length: content.len(), content: kept }
    }

    /// Returns the content, decompressed if necessary.
    pub fn content(&self) -> Cow<'_, [u8]> {
        match &self.content {
            FileContent::Plain(bytes) => Cow::Borrowed(bytes),
            FileContent::Folded(bytes) => {
                let mut content = Vec::with_capacity(self.length);
                // The data was compressed in this process, so an error is impossible short of a
                // bug.
                let _ = DeflateDecoder::new(&bytes[..]).read_to_end(&mut content);
                Cow::Owned(content)
            }
        }
    }

    /// Returns the content as text. Invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.content()).into_owned()
    }
}

fn compress(content: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).ok()?;
    let mut folded = encoder.finish().ok()?;
    folded.shrink_to_fit();
    Some(folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracts_are_read_when_somebody_asks_for_them() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging");
        let source = PackSource::from_dir(&folder).expect("the pack lies beside the sources");
        let kept = KeptContracts::new(Arc::new(KeptFiles::new(&source)));
        assert!(kept.read.get().is_none());
        let compiled = mapping::compile(&source).contracts.expect("the pack compiles");
        let keys = |contracts: &Contracts| -> Vec<String> {
            contracts.iter().flat_map(|one| &one.operations).map(|one| format!("{one:?}")).collect()
        };
        assert_eq!(kept.contracts().map(keys), Some(keys(&compiled)));
        assert!(kept.read.get().is_some());
    }

    #[test]
    fn a_large_file_is_folded_and_comes_back_whole() {
        let contract = "{\"paths\": {}}\n".repeat(PLAIN_BYTES_MAX / 8).into_bytes();
        let files =
            vec![("a.map.yaml".to_owned(), b"x: 1".to_vec()), ("b.json".to_owned(), contract.clone())];
        let kept = KeptFiles::new(&PackSource::from_files(files));
        let large = kept.find("b.json").expect("it was kept");
        assert!(matches!(&large.content, FileContent::Folded(bytes) if bytes.len() < contract.len() / 10));
        assert_eq!((large.length, &*large.content()), (contract.len(), &contract[..]));
        assert_eq!(kept.find("a.map.yaml").map(PackFile::text).as_deref(), Some("x: 1"));
        assert!(kept.find("c").is_none());
    }
}
