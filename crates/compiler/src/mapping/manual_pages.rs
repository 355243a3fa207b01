//! The packs in the pages of the manual, `docs/manual`, for tests.

use super::load::{MANIFEST, PackSource};
use std::path::Path;

/// Returns the code blocks that start with `# file:`, by the file that they name.
pub(super) fn blocks() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manual");
    let pages = std::fs::read_dir(folder).expect("the manual lies in the sources");
    let pages = pages.map(|entry| entry.expect("a page that can be listed").path());
    let mut pages: Vec<_> =
        pages.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.sort();
    let text: String = pages.iter().map(|page| std::fs::read_to_string(page).expect("a page")).collect();
    let blocks = text.split("```yaml\n# file: ").skip(1);
    let named = blocks.filter_map(|block| block.split("```").next()?.split_once('\n'));
    named.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

/// Returns the pack whose files have this folder before their names, such as `shop/`. The main pack
/// has none.
pub(super) fn pack(folder: &str) -> PackSource {
    let all = blocks();
    let folders: Vec<&str> = folders(&all).collect();
    let is_other = |name: &str| folders.iter().any(|other| *other != folder && name.starts_with(other));
    let files = all.iter().filter(|(name, _)| !folder.is_empty() || !is_other(name));
    let files = files.filter_map(|(name, text)| Some((name.strip_prefix(folder)?, text)));
    PackSource::from_files(files.map(|(name, text)| (name.to_owned(), text.clone().into_bytes())).collect())
}

/// Returns all packs of the manual.
pub(super) fn packs() -> Vec<PackSource> {
    let all = blocks();
    folders(&all).chain([""]).map(pack).collect()
}

/// Returns the folders of all packs but the main one.
fn folders(blocks: &[(String, String)]) -> impl Iterator<Item = &str> {
    let folders = blocks.iter().filter_map(|(name, _)| name.strip_suffix(MANIFEST));
    folders.filter(|folder| !folder.is_empty())
}
