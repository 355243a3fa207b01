//! A pack's files, from a folder or from memory, and their reading into one program. The only part of the front end that
//! touches a disk, and it only reads.

use super::ast::{Manifest, Program, Spanned};
use super::corrections::Corrections;
use super::syntax;
use crate::contract::{self, Contract, Documents, Fetch};
use crate::diagnostic::{Code, Finding, Findings, Sources, Span};
use crate::yaml;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Name of the file that makes a folder a pack.
pub const MANIFEST: &str = "pack.yaml";
/// What the names of mapping files end with.
pub const MAPPING_SUFFIX: &str = ".map.yaml";
/// Files of one folder that are looked at; more is taken for a mistake in the path.
const FILES_MAX: usize = 5_000;
/// Folders inside one another.
const DEPTH_MAX: usize = 8;

/// The files of a pack, by their path inside it, sorted.
#[derive(Clone, Debug, Default)]
pub struct PackSource {
    files: Vec<PackFile>,
}

/// A file of a pack: its path inside it, with `/` between folders, and its content, which copies of a source share.
pub type PackFile = (String, Arc<[u8]>);

impl PackSource {
    /// Reads `pack.yaml`, all `*.map.yaml` beside it, and all YAML and JSON in the folders below.
    ///
    /// # Errors
    /// When the folder or one of these files cannot be read, or one of them is larger than any pack's file may be.
    pub fn from_dir(folder: &Path) -> io::Result<PackSource> {
        let mut files = Vec::new();
        collect(folder, "", &mut files)?;
        Ok(PackSource::from_files(files))
    }

    /// Takes files that are in memory already: path inside the pack, with `/` between folders and each once, and content.
    pub fn from_files<B: Into<Arc<[u8]>>>(files: Vec<(String, B)>) -> PackSource {
        let mut files: Vec<PackFile> = files.into_iter().map(|(name, bytes)| (name, bytes.into())).collect();
        files.sort();
        PackSource { files }
    }

    /// The files, sorted by name.
    pub fn files(&self) -> &[PackFile] {
        &self.files
    }

    fn file(&self, name: &str) -> Option<&Arc<[u8]>> {
        let at = self.files.binary_search_by(|(have, _)| have.as_str().cmp(name)).ok()?;
        Some(&self.files[at].1)
    }

    fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.file(name).map(|bytes| &**bytes)
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        // A name that is not UTF-8 is not one of ours.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let (path, meta) = (entry.path(), std::fs::metadata(entry.path())?);
        if meta.is_dir() && prefix.matches('/').count() < DEPTH_MAX && !name.starts_with('.') {
            collect(&path, &format!("{prefix}{name}/"), files)?;
        } else if meta.is_file() && is_of_pack(&name, prefix) {
            if meta.len() > yaml::bounds::DOCUMENT_BYTES_MAX as u64 || files.len() >= FILES_MAX {
                return Err(io::Error::other(format!(
                    "{} is too large, or one file too many, for a pack",
                    path.display()
                )));
            }
            files.push((format!("{prefix}{name}"), std::fs::read(&path)?));
        }
    }
    Ok(())
}

fn is_of_pack(name: &str, prefix: &str) -> bool {
    match prefix {
        "" => name == MANIFEST || name.ends_with(MAPPING_SUFFIX),
        _ => [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending)),
    }
}

/// Reads a pack: the program of its mapping files, and its contracts, old side first.
///
/// `None` when the manifest cannot be read; findings then say why. Otherwise what could be read, and findings for the
/// rest.
pub(super) fn read(
    source: &PackSource,
    sources: &mut Sources,
    findings: &mut Findings,
) -> Option<(Program, [Contract; 2])> {
    let (corrections, mut corrected) = (Corrections::default(), Vec::new());
    read_with(source, &corrections, &mut corrected, &mut Texts::default(), sources, findings)
}

/// The same, with corrections put in; `corrected` gets the places where that was done. What `texts` has is not read again.
pub(super) fn read_with(
    source: &PackSource,
    corrections: &Corrections,
    corrected: &mut Vec<Span>,
    texts: &mut Texts,
    sources: &mut Sources,
    findings: &mut Findings,
) -> Option<(Program, [Contract; 2])> {
    let Some(bytes) = source.bytes(MANIFEST) else {
        let file = sources.add(MANIFEST, "");
        let help =
            "a pack is a folder with `pack.yaml`, two contracts, and mapping files that end in `.map.yaml`";
        findings.push(
            Finding::error(Code::NoManifest, Span::new(file, 0, 0), "this folder has no `pack.yaml`")
                .help(help),
        );
        return None;
    };
    let mut manifest = yaml::read(sources, MANIFEST, bytes, findings)?;
    corrected.extend(corrections.put_in(&mut manifest));
    let manifest = syntax::manifest(&manifest, findings)?;
    let (contracts, mappings) = texts.read(source, &manifest, sources, findings);
    let mut program = Program::new(manifest);
    for root in mappings {
        if corrections.is_empty() {
            syntax::file(root, &mut program, findings);
            continue;
        }
        let mut root = root.clone();
        corrected.extend(corrections.put_in(&mut root));
        syntax::file(&root, &mut program, findings);
    }
    let [old, new] = contracts;
    Some((program, [old?, new?]))
}

/// What files were read to, before corrections are put in: a file that is still the same is not read a second time.
#[derive(Debug, Default)]
pub(super) struct Texts {
    contracts: [Option<(ContractKey, Part<Contract>)>; 2],
    /// By path, which is their order.
    mappings: BTreeMap<String, Part<yaml::Node>>,
}

/// Name of the side, and path of its document.
type ContractKey = (String, String);

/// What came of a file, or of a document and those that it refers to.
#[derive(Debug)]
struct Part<T> {
    /// The files that were asked for, with what they held; nothing where there was none.
    asked: Vec<(String, Option<Arc<[u8]>>)>,
    /// How many files were there before: places name files by their number.
    before: usize,
    /// The files that were added.
    added: Sources,
    findings: Findings,
    value: Option<T>,
}

impl<T> Part<T> {
    /// Whether it would come out the same. What could not be read is read anew: why not may say something of other files.
    fn holds(&self, source: &PackSource, sources: &Sources) -> bool {
        let is_same = |(name, then): &(String, Option<Arc<[u8]>>)| match (then, source.file(name)) {
            (None, None) => true,
            (Some(then), Some(now)) => Arc::ptr_eq(then, now) || then == now,
            (None, Some(_)) | (Some(_), None) => false,
        };
        self.value.is_some() && self.before == sources.len() && self.asked.iter().all(is_same)
    }

    /// The part as it is known, if it still holds, or as `read` makes it with what gives it files. Its files are added to
    /// `sources`, and what was found in them to `findings`.
    fn reuse_or_read<'s>(
        known: Option<Part<T>>,
        source: &'s PackSource,
        sources: &mut Sources,
        findings: &mut Findings,
        read: impl FnOnce(&dyn Fn(&str) -> Option<&'s [u8]>, &mut Sources, &mut Findings) -> Option<T>,
    ) -> Part<T> {
        if let Some(known) = known.filter(|known| known.holds(source, sources)) {
            sources.append(&known.added);
            findings.append(known.findings.clone());
            return known;
        }
        let asked = RefCell::new(Vec::new());
        let fetch = |name: &str| {
            let file = source.file(name);
            asked.borrow_mut().push((name.to_owned(), file.cloned()));
            file.map(|bytes| &**bytes)
        };
        let (before, mut found) = (sources.len(), Findings::new());
        let value = read(&fetch, sources, &mut found);
        findings.append(found.clone());
        Part { asked: asked.into_inner(), before, added: sources.after(before), findings: found, value }
    }
}

impl Texts {
    /// The contracts, as far as they can be read, and the mapping files that can be read, in their order. `sources` holds the
    /// manifest.
    fn read<'t>(
        &'t mut self,
        source: &PackSource,
        manifest: &Manifest,
        sources: &mut Sources,
        findings: &mut Findings,
    ) -> ([Option<Contract>; 2], impl Iterator<Item = &'t yaml::Node> + use<'t>) {
        let contracts = [0, 1].map(|side: usize| {
            let key = (manifest.sides[side].value.clone(), manifest.contracts[side].value.clone());
            let known = self.contracts[side].take().filter(|(of, _)| *of == key).map(|(_, part)| part);
            let part = Part::reuse_or_read(known, source, sources, findings, |fetch, sources, findings| {
                read_contract(source, manifest, side, fetch, sources, findings)
            });
            self.contracts[side].insert((key, part)).1.value.clone()
        });
        let mut mappings = BTreeMap::new();
        let names = source.files().iter().map(|(name, _)| name);
        for name in names.filter(|name| name.ends_with(MAPPING_SUFFIX)) {
            let known = self.mappings.remove(name);
            let part = Part::reuse_or_read(known, source, sources, findings, |fetch, sources, findings| {
                yaml::read(sources, name, fetch(name)?, findings)
            });
            mappings.insert(name.clone(), part);
        }
        self.mappings = mappings;
        (contracts, self.mappings.values().filter_map(|part| part.value.as_ref()))
    }
}

/// The names of a pack's sides, old one first; none when the manifest cannot be read.
pub fn sides(source: &PackSource) -> Option<[String; 2]> {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let root = yaml::read(&mut sources, MANIFEST, source.bytes(MANIFEST)?, &mut findings)?;
    let manifest = syntax::manifest(&root, &mut findings)?;
    Some(manifest.sides.map(|side| side.value))
}

fn read_contract(
    source: &PackSource,
    manifest: &Manifest,
    side: usize,
    fetch: Fetch<'_, '_>,
    sources: &mut Sources,
    findings: &mut Findings,
) -> Option<Contract> {
    let Spanned { value: path, span } = &manifest.contracts[side];
    if fetch(path).is_none() {
        let known = source
            .files()
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| !name.ends_with(MAPPING_SUFFIX));
        let near = crate::diagnostic::did_you_mean(path, known.collect::<Vec<_>>());
        findings.push(
            Finding::error(Code::NoContract, *span, format!("this pack has no file `{path}`"))
                .maybe_help(near),
        );
        return None;
    }
    let documents = Documents::load(sources, path, fetch, findings)?;
    Some(contract::read(&manifest.sides[side].value, &documents, findings))
}

impl Program {
    /// A program without shapes, routes, reasons, archives and examples.
    pub(super) fn new(manifest: Manifest) -> Program {
        Program {
            manifest,
            shapes: Vec::new(),
            routes: Vec::new(),
            reasons: Vec::new(),
            archives: Vec::new(),
            harvests: Vec::new(),
            events: Vec::new(),
            examples: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic;

    fn findings_of(folder: &str) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let source = PackSource::from_dir(&folder).expect("the pack lies beside the sources");
        let (mut sources, mut findings) = (Sources::new(), Findings::new());
        let read = read(&source, &mut sources, &mut findings);
        assert!(read.is_some() || findings.has_errors());
        diagnostic::to_text(&sources, &findings, diagnostic::Colour::Never)
    }

    #[test]
    fn the_form_of_the_messaging_pack_is_right() {
        assert_eq!(findings_of("mappings/messaging"), "");
    }

    #[test]
    fn a_folder_that_is_no_pack_is_told_what_a_pack_is() {
        assert!(findings_of("src").contains("this folder has no `pack.yaml`"));
    }
}
