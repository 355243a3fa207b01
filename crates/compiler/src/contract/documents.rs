//! The files of one contract, the document and the files that it references, and the resolution of
//! `$ref`. The meaning of nodes is not part of this module.

use super::faults;
use super::grouped::Grouped;
use crate::diagnostic::{FileId, Findings, Sources, Span};
use crate::yaml::{self, Kind, Node};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use switchback_plan::essence;

/// Maximum number of files of one contract. References to further files stay unresolved.
const FILES_MAX: usize = 5_000;
/// Maximum length of a chain of references.
const STEPS_MAX: usize = 64;
/// Minimum number of entries for which a map gets an index.
const INDEXED_MIN: usize = 24;

/// The trees of one contract's files. The first is the document itself.
#[derive(Debug)]
pub struct Documents {
    trees: Vec<DocumentTree>,
    by_name: HashMap<String, usize>,
    /// Media types that denote JSON although their names do not tell it.
    json_types: Vec<String>,
}

#[derive(Debug)]
struct DocumentTree {
    /// Path within the pack, with `/` between folders.
    name: String,
    file: FileId,
    root: Node,
}

/// Bytes of a file in markup that its finding refers to.
const SHOWN_BYTES: usize = 256;

/// Returns the kind of a document in XML or HTML, which is neither YAML nor JSON.
fn markup(bytes: &[u8]) -> Option<&'static str> {
    let start =
        bytes.iter().position(|byte| !byte.is_ascii_whitespace() && !matches!(byte, 0xef | 0xbb | 0xbf))?;
    let head = String::from_utf8_lossy(&bytes[start..bytes.len().min(start + 4096)]).to_lowercase();
    match () {
        () if !head.starts_with('<') => None,
        () if head.contains("wsdl") => Some("a WSDL document"),
        () if head.contains("<application") && head.contains("wadl") => Some("a WADL document"),
        () if head.contains("edmx") => Some("an OData metadata document"),
        () if head.contains("<html") || head.contains("<!doctype html") => Some("an HTML page"),
        () => Some("an XML document"),
    }
}

/// Returns the bytes of a file by its path, if it exists.
pub type Fetch<'f, 'b> = &'f dyn Fn(&str) -> Option<&'b [u8]>;

impl Documents {
    /// Reads the document `name` and every file that its references lead to. Returns `None` if the
    /// document does not exist or cannot be parsed; the latter is reported in `findings`. A missing
    /// file is reported where it is referenced.
    pub fn load(
        sources: &mut Sources,
        name: &str,
        fetch: Fetch<'_, '_>,
        findings: &mut Findings,
    ) -> Option<Documents> {
        let bytes = fetch(name)?;
        let mut documents = Documents { trees: Vec::new(), by_name: HashMap::new(), json_types: Vec::new() };
        documents.add(sources, name, bytes, findings)?;
        let mut next = 0;
        while next < documents.trees.len() && documents.trees.len() < FILES_MAX {
            let wanted = documents.outgoing(next);
            for name in wanted {
                if documents.by_name.contains_key(&name) || documents.trees.len() >= FILES_MAX {
                    continue;
                }
                if let Some(bytes) = fetch(&name) {
                    // References into a file that cannot be parsed stay unresolved.
                    documents.add(sources, &name, bytes, findings);
                }
            }
            next += 1;
        }
        Some(documents)
    }

    /// Declares media types that denote JSON although their names do not tell it.
    #[must_use]
    pub fn with_json_types(self, json_types: Vec<String>) -> Documents {
        Documents { json_types, ..self }
    }

    /// Returns whether a media type is declared as JSON. Parameters and letter case are ignored.
    pub(super) fn declares_json(&self, media: &str) -> bool {
        self.json_types.iter().any(|own| own.eq_ignore_ascii_case(essence(media)))
    }

    /// Reads one document from memory, without other files.
    pub fn single(
        sources: &mut Sources,
        name: &str,
        bytes: &[u8],
        findings: &mut Findings,
    ) -> Option<Documents> {
        Documents::load(sources, name, &|wanted| (wanted == name).then_some(bytes), findings)
    }

    fn add(
        &mut self,
        sources: &mut Sources,
        name: &str,
        bytes: &[u8],
        findings: &mut Findings,
    ) -> Option<()> {
        if let Some(kind) = markup(bytes) {
            let file = sources.add(name, String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]));
            findings.push(faults::no_openapi(Span::new(file, 0, 0), Some(kind)));
            return None;
        }
        let root = yaml::read_document(sources, name, bytes, findings)?;
        self.by_name.insert(name.to_owned(), self.trees.len());
        self.trees.push(DocumentTree { name: name.to_owned(), file: root.span.file, root });
        Some(())
    }

    /// Returns the files that a tree references, without duplicates, in text order.
    fn outgoing(&self, tree: usize) -> Vec<String> {
        let tree = &self.trees[tree];
        let (mut wanted, mut seen) = (Vec::new(), HashSet::new());
        let mut open = vec![&tree.root];
        while let Some(node) = open.pop() {
            match &node.kind {
                // `open` is a stack; reversed, it yields text order.
                Kind::Seq(items) => open.extend(items.iter().rev()),
                Kind::Map(entries) => {
                    for (key, value) in entries.iter().rev() {
                        if key.name == "$ref"
                            && let Some(target) = value.as_str()
                            && let Some(file) = file_of(&tree.name, target)
                            && seen.insert(file.clone())
                        {
                            wanted.push(file);
                        }
                        open.push(value);
                    }
                }
                _ => {}
            }
        }
        wanted
    }

    /// Returns the root of the document itself.
    pub fn root(&self) -> &Node {
        &self.trees[0].root
    }

    /// Returns the paths of all files, the document's first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.trees.iter().map(|tree| tree.name.as_str())
    }
}

/// Returns the path of the file that a reference names, relative to the file `from`. Returns `None`
/// for a reference within the file, for a URL, and for a path that leaves the root folder.
fn file_of(from: &str, target: &str) -> Option<String> {
    let file = target.split('#').next().unwrap_or("");
    // URLs are never fetched: the result of a compilation must not depend on the network.
    if file.is_empty() || file.contains("://") {
        return None;
    }
    // File names in references may be percent-encoded.
    let file = percent_encoding::percent_decode_str(file).decode_utf8_lossy().into_owned();
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A resolver of references with a cache.
pub(super) struct Follow<'n> {
    pub documents: &'n Documents,
    files: HashMap<FileId, usize>,
    found: RefCell<HashMap<(FileId, &'n str), Option<&'n Node>>>,
    indexes: RefCell<HashMap<*const Node, HashMap<&'n str, usize>>>,
}

/// The target of a reference, with a candidate for its name.
#[derive(Clone, Copy)]
pub(super) struct ReferenceTarget<'n> {
    pub node: &'n Node,
    pub name: &'n str,
}

impl<'n> Follow<'n> {
    pub(super) fn new(documents: &'n Documents) -> Follow<'n> {
        let files = documents.trees.iter().enumerate().map(|(at, tree)| (tree.file, at)).collect();
        Follow { documents, files, found: RefCell::default(), indexes: RefCell::default() }
    }

    /// Resolves the text of a `$ref`.
    pub(super) fn target(&self, reference: &'n Node) -> Option<ReferenceTarget<'n>> {
        let text = reference.as_str()?;
        let file = reference.span.file;
        // The same text has different targets in different files.
        let known = self.found.borrow().get(&(file, text)).copied();
        let node = match known {
            Some(node) => node,
            None => {
                let node = self.look_up(file, text);
                self.found.borrow_mut().insert((file, text), node);
                node
            }
        };
        node.map(|node| ReferenceTarget { node, name: name_of(text) })
    }

    fn look_up(&self, file: FileId, text: &str) -> Option<&'n Node> {
        let from = *self.files.get(&file)?;
        let tree = match file_of(&self.documents.trees[from].name, text) {
            Some(name) => *self.documents.by_name.get(&name)?,
            None if text.contains("://") => return None,
            None => from,
        };
        let root = &self.documents.trees[tree].root;
        let Some((_, pointer)) = text.split_once('#') else { return Some(root) };
        // The fragment is percent-encoded (RFC 6901, section 6).
        let pointer = percent_encoding::percent_decode_str(pointer).decode_utf8_lossy();
        if pointer.is_empty() || pointer == "/" {
            return Some(root);
        }
        let mut node = root;
        for part in pointer.strip_prefix('/')?.split('/') {
            // `~1` is decoded before `~0`, so that `~01` becomes `~1` (RFC 6901, section 4).
            node = self.step(node, &part.replace("~1", "/").replace("~0", "~"))?;
        }
        Some(node)
    }

    /// Returns the value under a key, or the item at an index. Follows a `$ref` in place of the
    /// map.
    fn step(&self, node: &'n Node, part: &str) -> Option<&'n Node> {
        match &node.kind {
            Kind::Seq(items) => items.get(part.parse::<usize>().ok()?),
            Kind::Map(_) => self.get(node, part).or_else(|| {
                let through = self.follow(node)?;
                if std::ptr::eq(through, node) { None } else { self.get(through, part) }
            }),
            _ => None,
        }
    }

    /// Like [`Node::get`], with an index for large maps.
    pub(super) fn get(&self, node: &'n Node, name: &str) -> Option<&'n Node> {
        let entries = node.as_map()?;
        if entries.len() < INDEXED_MIN {
            return node.get(name);
        }
        let mut indexes = self.indexes.borrow_mut();
        let index = indexes.entry(std::ptr::from_ref(node)).or_insert_with(|| {
            entries.iter().enumerate().map(|(at, (key, _))| (key.name.as_str(), at)).collect()
        });
        index.get(name).map(|at| &entries[*at].1)
    }

    /// Returns the node itself, or the final target of its `$ref`. Returns `None` if the reference
    /// cannot be resolved.
    pub(super) fn follow(&self, node: &'n Node) -> Option<&'n Node> {
        let mut node = node;
        // The limit also detects cycles.
        for _ in 0..STEPS_MAX {
            match node.get("$ref").filter(|reference| reference.as_str().is_some()) {
                None => return Some(node),
                Some(reference) => node = self.target(reference)?.node,
            }
        }
        None
    }

    /// Like [`Follow::follow`], but reports a reference that cannot be resolved.
    pub(super) fn follow_or_report(&self, node: &'n Node, findings: &mut Grouped) -> Option<&'n Node> {
        let found = self.follow(node);
        if found.is_none() {
            self.report(node.get("$ref").unwrap_or(node), findings);
        }
        found
    }

    /// Reports a reference that is cyclic or cannot be resolved.
    pub(super) fn report(&self, reference: &'n Node, findings: &mut Grouped) {
        let text = reference.as_str().unwrap_or("");
        // The direct target exists, so the chain is cyclic or too long.
        if self.target(reference).is_some() {
            return findings.add("cycle", reference.span, || faults::reference_cycle(reference.span, text));
        }
        if text.contains("://") {
            return findings.add("net", reference.span, || faults::reference_away(reference.span, text));
        }
        findings.add("nowhere", reference.span, || {
            faults::unknown_reference(reference.span, text, &self.siblings(reference.span, text))
        });
    }

    /// Returns the sibling names of the missing target, for a suggestion.
    fn siblings(&self, span: Span, text: &str) -> Vec<&'n str> {
        let around = text.rsplit_once('/').and_then(|(around, _)| self.look_up(span.file, around));
        let entries = around.and_then(Node::as_map).unwrap_or_default();
        entries.iter().map(|(key, _)| key.name.as_str()).collect()
    }
}

/// Returns the last part of a reference, without a file extension.
fn name_of(text: &str) -> &str {
    let (file, pointer) = text.split_once('#').unwrap_or((text, ""));
    let last = pointer.rsplit('/').next().filter(|part| !part.is_empty());
    last.unwrap_or_else(|| {
        let file = file.rsplit('/').next().unwrap_or(file);
        file.split('.').next().unwrap_or(file)
    })
}
