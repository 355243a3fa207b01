//! Loads a pack from a folder or from memory and parses it into one program. This is the only part
//! of the front end that accesses the file system, and it only reads.

use super::ast::{Manifest, ProgramDecl, Spanned};
use super::corrections::Corrections;
use super::fragments::{self, Fragments};
use super::language;
use crate::contract::{self, Contract, Contracts, Documents, Fetch};
use crate::diagnostic::{Code, Finding, Findings, Sources, Span};
use crate::yaml;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Name of the manifest. A folder that contains it is a pack.
pub const MANIFEST: &str = "pack.yaml";
/// File name suffix of mapping files.
pub const MAPPING_SUFFIX: &str = ".map.yaml";
/// Maximum number of files in a pack. A larger folder indicates a wrong path.
const FILES_MAX: usize = 20_000;
/// Maximum depth of nested folders.
const DEPTH_MAX: usize = 12;

/// The files of a pack, sorted by their path inside it.
#[derive(Clone, Debug, Default)]
pub struct PackSource {
    files: Vec<PackFile>,
}

/// A file of a pack: its path inside the pack, separated by `/`, and its content. Clones of a
/// source share the content.
pub type PackFile = (String, Arc<[u8]>);

impl PackSource {
    /// Reads `pack.yaml`, all `*.map.yaml` files next to it, and all YAML and JSON files in
    /// subfolders.
    ///
    /// # Errors Returns an error if the folder or a file cannot be read, a file exceeds the size
    /// limit of YAML documents, or the folder contains too many files.
    pub fn from_dir(folder: &Path) -> io::Result<PackSource> {
        let mut files = Vec::new();
        collect(folder, "", &mut files)?;
        Ok(PackSource::from_files(files))
    }

    /// Creates a source from files in memory: unique paths inside the pack, separated by `/`, and
    /// contents.
    pub fn from_files<B: Into<Arc<[u8]>>>(files: Vec<(String, B)>) -> PackSource {
        let mut files: Vec<PackFile> = files.into_iter().map(|(name, bytes)| (name, bytes.into())).collect();
        files.sort();
        PackSource { files }
    }

    /// Returns the files, sorted by name.
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
    // The order of a directory depends on the file system. Sort for deterministic errors.
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        // File names of packs are UTF-8, so any other name belongs to an unrelated file.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let (path, meta) = (entry.path(), std::fs::metadata(entry.path())?);
        if meta.is_dir() && prefix.matches('/').count() < DEPTH_MAX && !name.starts_with('.') {
            collect(&path, &format!("{prefix}{name}/"), files)?;
        } else if meta.is_file() && is_of_pack(&name, prefix) {
            // Check the size before reading, so that a wrong path cannot exhaust memory.
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
/// Returns `None` if the manifest or a contract cannot be read. Findings report each file that
/// could not be read.
pub(super) fn load_pack(
    source: &PackSource,
    sources: &mut Sources,
    findings: &mut Findings,
) -> Option<(ProgramDecl, Contracts)> {
    let (corrections, mut corrected) = (Corrections::default(), Vec::new());
    read_with(source, &corrections, &mut corrected, &mut Texts::default(), &|| false, sources, findings)
}

/// Reads a pack with `corrections` applied. Appends the corrected spans to `corrected`, and reuses
/// unchanged files of `texts`. Returns `None` if `is_stopped` returns true.
pub(super) fn read_with(
    source: &PackSource,
    corrections: &Corrections,
    corrected: &mut Vec<Span>,
    texts: &mut Texts,
    is_stopped: &dyn Fn() -> bool,
    sources: &mut Sources,
    findings: &mut Findings,
) -> Option<(ProgramDecl, Contracts)> {
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
    let mut manifest = yaml::parse(sources, MANIFEST, bytes, findings)?;
    corrected.extend(corrections.put_in(&mut manifest, sources));
    let manifest = language::manifest(&manifest, findings)?;
    let (contracts, mappings) = texts.load_contracts(source, &manifest, is_stopped, sources, findings)?;
    let mut program = ProgramDecl::new(manifest);
    // Clone a tree only to change it. The cache retains the text as written.
    let mut roots: Vec<Cow<'_, yaml::Node>> = mappings.map(Cow::Borrowed).collect();
    if !corrections.is_empty() {
        roots.iter_mut().for_each(|root| corrected.extend(corrections.put_in(root.to_mut(), sources)));
    }
    let declared = roots.iter().flat_map(|root| language::fragments(root, &program.manifest)).collect();
    let mut fragments = Fragments::collect(declared, findings);
    for mut root in roots {
        if is_stopped() {
            return None;
        }
        if fragments::has_use(&root) {
            fragments.expand(root.to_mut(), sources, findings);
        }
        language::file(&root, &mut program, findings);
    }
    fragments.report(findings);
    let [old, new] = contracts;
    Some((program, [old?, new?]))
}

/// Cache of parsed files, before corrections are applied. Unchanged files are not parsed again.
#[derive(Debug, Default)]
pub(super) struct Texts {
    contracts: [Option<(ContractKey, LoadedPart<Arc<Contract>>)>; 2],
    /// By path, the order in which they are processed.
    mappings: BTreeMap<String, LoadedPart<yaml::Node>>,
}

/// Name of the side, path of its document, and the media types that the pack declares as JSON.
type ContractKey = (String, String, Vec<String>);

/// Parse result of a mapping file, or of a contract document with the documents it references.
#[derive(Debug)]
struct LoadedPart<T> {
    /// The requested files and their contents; `None` for a missing file.
    asked: Vec<(String, Option<Arc<[u8]>>)>,
    /// Number of source files registered before this part. Spans refer to files by number, so a
    /// cached part is valid at this position only.
    before: usize,
    /// The source files that this part registered.
    added: Sources,
    findings: Findings,
    value: Option<T>,
}

impl<T> LoadedPart<T> {
    /// Returns whether parsing again would yield the same result. Failures are never reused,
    /// because their findings may depend on other files.
    fn holds(&self, source: &PackSource, sources: &Sources) -> bool {
        let is_same = |(name, then): &(String, Option<Arc<[u8]>>)| match (then, source.file(name)) {
            (None, None) => true,
            // Clones of a source share their contents, so comparing pointers usually suffices.
            (Some(then), Some(now)) => Arc::ptr_eq(then, now) || then == now,
            (None, Some(_)) | (Some(_), None) => false,
        };
        self.value.is_some() && self.before == sources.len() && self.asked.iter().all(is_same)
    }

    /// Reuses `known` if it is still valid, otherwise calls `read` with a function that fetches
    /// files and records them as dependencies. Adds the part's files to `sources` and its findings
    /// to `findings`.
    fn reuse_or_read<'s>(
        known: Option<LoadedPart<T>>,
        source: &'s PackSource,
        sources: &mut Sources,
        findings: &mut Findings,
        read: impl FnOnce(&dyn Fn(&str) -> Option<&'s [u8]>, &mut Sources, &mut Findings) -> Option<T>,
    ) -> LoadedPart<T> {
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
        LoadedPart { asked: asked.into_inner(), before, added: sources.after(before), findings: found, value }
    }
}

impl Texts {
    /// Returns the contracts and mapping files that can be read, the latter in order of their
    /// paths. Expects the manifest to be in `sources` already. Returns `None` if `is_stopped` returns
    /// true.
    fn load_contracts<'t>(
        &'t mut self,
        source: &PackSource,
        manifest: &Manifest,
        is_stopped: &dyn Fn() -> bool,
        sources: &mut Sources,
        findings: &mut Findings,
    ) -> Option<([Option<Arc<Contract>>; 2], impl Iterator<Item = &'t yaml::Node> + use<'t>)> {
        let contracts = [0, 1].map(|side: usize| {
            let key = (
                manifest.sides[side].value.clone(),
                manifest.contracts[side].value.clone(),
                manifest.json_types(),
            );
            // A different side name or document path invalidates the part.
            let known = self.contracts[side].take().filter(|(of, _)| *of == key).map(|(_, part)| part);
            let part =
                LoadedPart::reuse_or_read(known, source, sources, findings, |fetch, sources, findings| {
                    read_contract(source, manifest, side, fetch, sources, findings)
                });
            self.contracts[side].insert((key, part)).1.value.clone()
        });
        let mut mappings = BTreeMap::new();
        let names = source.files().iter().map(|(name, _)| name);
        for name in names.filter(|name| name.ends_with(MAPPING_SUFFIX)) {
            if is_stopped() {
                return None;
            }
            // Move entries instead of cloning them. Those of deleted files stay behind and are
            // dropped.
            let known = self.mappings.remove(name);
            let part =
                LoadedPart::reuse_or_read(known, source, sources, findings, |fetch, sources, findings| {
                    yaml::parse(sources, name, fetch(name)?, findings)
                });
            mappings.insert(name.clone(), part);
        }
        self.mappings = mappings;
        Some((contracts, self.mappings.values().filter_map(|part| part.value.as_ref())))
    }
}

/// Returns the names of a pack's sides, old side first, or `None` if the manifest cannot be read.
pub fn sides(source: &PackSource) -> Option<[String; 2]> {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let root = yaml::parse(&mut sources, MANIFEST, source.bytes(MANIFEST)?, &mut findings)?;
    let manifest = language::manifest(&root, &mut findings)?;
    Some(manifest.sides.map(|side| side.value))
}

fn read_contract(
    source: &PackSource,
    manifest: &Manifest,
    side: usize,
    fetch: Fetch<'_, '_>,
    sources: &mut Sources,
    findings: &mut Findings,
) -> Option<Arc<Contract>> {
    let Spanned { value: path, span } = &manifest.contracts[side];
    if fetch(path).is_none() {
        // Mapping files are never contracts, so do not suggest them.
        let known = source
            .files()
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| !name.ends_with(MAPPING_SUFFIX));
        findings.push(
            Finding::error(Code::NoContract, *span, format!("this pack has no file `{path}`"))
                .did_you_mean(path, known),
        );
        return None;
    }
    let documents = Documents::load(sources, path, fetch, findings)?.with_json_types(manifest.json_types());
    Some(Arc::new(contract::parse_contract(&manifest.sides[side].value, &documents, findings)))
}

impl ProgramDecl {
    /// Creates a program that contains only the manifest.
    pub(super) fn new(manifest: Manifest) -> ProgramDecl {
        ProgramDecl {
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
        let read = load_pack(&source, &mut sources, &mut findings);
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
