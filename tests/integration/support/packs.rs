//! The available packs: the first one, and those in the pages of the language's manual.

use std::path::{Path, PathBuf};
use switchback_compiler::mapping::load::PackSource;

/// `mappings/messaging`.
pub fn messaging_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging")
}

/// Every pack under `mappings/`, and those in the manual.
pub fn all() -> Vec<PackSource> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings");
    let entries = std::fs::read_dir(folder).expect("the packs lie beside the tests");
    let folders = entries.map(|entry| entry.expect("a folder that can be listed").path());
    let mut packs: Vec<PathBuf> = folders.filter(|path| path.join("pack.yaml").is_file()).collect();
    packs.sort();
    let packs = packs.iter().map(|folder| PackSource::from_dir(folder).expect("a pack can be read"));
    let manual = manual_folders();
    let manual = manual.iter().map(String::as_str).chain([""]).map(|folder| source(&manual_files(folder)));
    packs.chain(manual).collect()
}

/// A pack with every form of line that a shape has.
pub fn forms() -> PackSource {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/lens_laws/forms");
    PackSource::from_dir(&folder).expect("the pack lies beside the tests")
}

/// The manual's main pack.
pub fn manual() -> PackSource {
    source(&manual_files(""))
}

/// The manual's shop, which has forms, files and pages.
pub fn shop() -> PackSource {
    source(&manual_files("shop/"))
}

/// A pack of these files.
pub fn source(files: &[(String, String)]) -> PackSource {
    let files = files.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes()));
    PackSource::from_files(files.collect())
}

/// The files of the manual's pack in this folder, such as `shop/`. The main pack has none.
pub fn manual_files(folder: &str) -> Vec<(String, String)> {
    let folders = manual_folders();
    let is_other = |name: &str| folders.iter().any(|other| other != folder && name.starts_with(other));
    let files = blocks().into_iter().filter(|(name, _)| !folder.is_empty() || !is_other(name));
    files.filter_map(|(name, text)| Some((name.strip_prefix(folder)?.to_owned(), text))).collect()
}

/// The folders of the manual's packs, except that of the main pack.
pub fn manual_folders() -> Vec<String> {
    let names = blocks().into_iter().map(|(name, _)| name);
    let folders = names.filter_map(|name| Some(name.strip_suffix("pack.yaml")?.to_owned()));
    folders.filter(|folder| !folder.is_empty()).collect()
}

/// The blocks in `docs/manual` that start with `# file:`, by the file that they name.
fn blocks() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/manual");
    let pages = std::fs::read_dir(folder).expect("the manual lies in the sources");
    let pages = pages.map(|entry| entry.expect("a page that can be listed").path());
    let mut pages: Vec<_> =
        pages.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.sort();
    let text: String = pages.iter().map(|page| std::fs::read_to_string(page).expect("a page")).collect();
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let named = blocks.filter_map(|block| block.strip_prefix("# file: ")?.split_once('\n'));
    named.map(|(name, text)| (name.to_owned(), format!("{text}\n"))).collect()
}
