//! The packs that there are: the first one, and the manual of the language, whose blocks are a pack.

use std::path::Path;
use switchback::mapping::load::PackSource;

/// `mappings/messaging`.
pub fn messaging() -> PackSource {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging");
    PackSource::from_dir(&folder).expect("the pack lies beside the tests")
}

/// The blocks of `mappings/README.md` that start with `# file:`.
pub fn manual() -> PackSource {
    let text = include_str!("../../../mappings/README.md");
    let blocks = text.split("```yaml\n# file: ").skip(1).map(|block| {
        let (name, rest) = block.split_once('\n').expect("a block has lines");
        (name.to_owned(), rest.split("```").next().expect("split gives one").as_bytes().to_vec())
    });
    PackSource::from_files(blocks.collect())
}
