//! The available packs: the first one, and the blocks of the language's manual.

use std::path::{Path, PathBuf};
use switchback_compiler::mapping::load::PackSource;

/// `mappings/messaging`.
pub fn messaging_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging")
}

/// Every pack under `mappings/`, and the manual.
pub fn all() -> Vec<PackSource> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings");
    let entries = std::fs::read_dir(folder).expect("the packs lie beside the tests");
    let folders = entries.map(|entry| entry.expect("a folder that can be listed").path());
    let mut packs: Vec<PathBuf> = folders.filter(|path| path.join("pack.yaml").is_file()).collect();
    packs.sort();
    let packs = packs.iter().map(|folder| PackSource::from_dir(folder).expect("a pack can be read"));
    packs.chain([manual(), shop()]).collect()
}

/// A pack with every form of line that a shape has.
pub fn forms() -> PackSource {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/lens_laws/forms");
    PackSource::from_dir(&folder).expect("the pack lies beside the tests")
}

/// The blocks of `mappings/README.md` that start with `# file:`.
pub fn manual() -> PackSource {
    let of_shop = |name: &str| name.starts_with(SHOP);
    PackSource::from_files(blocks().filter(|(name, _)| !of_shop(name)).collect())
}

/// The files of the manual's section about queries and other spellings, a pack of its own.
pub fn shop() -> PackSource {
    let named = |(name, text): (String, Vec<u8>)| Some((name.strip_prefix(SHOP)?.to_owned(), text));
    PackSource::from_files(blocks().filter_map(named).collect())
}

/// Files of the pack `shop` are named below this.
const SHOP: &str = "shop/";

fn blocks() -> impl Iterator<Item = (String, Vec<u8>)> {
    let text = include_str!("../../../mappings/README.md");
    text.split("```yaml\n# file: ").skip(1).map(|block| {
        let (name, rest) = block.split_once('\n').expect("a block has lines");
        (name.to_owned(), rest.split("```").next().expect("split gives one").as_bytes().to_vec())
    })
}
