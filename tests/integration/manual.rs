//! The manual of the mapping language is itself a pack: it compiles, and its examples hold.

use std::path::Path;
use switchback_compiler::diagnostic::{Colour, to_text};
use switchback_compiler::mapping::load::PackSource;
use switchback_compiler::mapping::{Compiled, compile};

/// The pack of the section about queries and other spellings than JSON: its files are named below this.
const SHOP: &str = "shop/";

/// The blocks of the manual that begin with `# file:`, by the file they name.
fn blocks() -> Vec<(String, String)> {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/README.md");
    let manual = std::fs::read_to_string(manual).expect("the manual lies in the sources");
    let blocks = manual.split("```yaml\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let named = blocks.filter_map(|block| block.strip_prefix("# file: ")?.split_once('\n'));
    named.map(|(name, text)| (name.to_owned(), format!("{text}\n"))).collect()
}

/// The files of the manual's main pack.
pub fn files() -> Vec<(String, String)> {
    blocks().into_iter().filter(|(name, _)| !name.starts_with(SHOP)).collect()
}

/// The files of the shop.
pub fn shop() -> Vec<(String, String)> {
    let of_shop = |(name, text): (String, String)| Some((name.strip_prefix(SHOP)?.to_owned(), text));
    blocks().into_iter().filter_map(of_shop).collect()
}

/// A pack of these files, compiled.
pub fn compiled(files: &[(String, String)]) -> Compiled {
    let files = files.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes()));
    compile(&PackSource::from_files(files.collect()))
}

#[test]
fn the_manual_compiles_without_a_finding() {
    for files in [files(), shop()] {
        let compiled = compiled(&files);
        assert_eq!(to_text(&compiled.sources, &compiled.findings, Colour::Never), "");
        assert!(compiled.pack.is_some());
    }
}

#[test]
fn the_examples_of_the_manual_hold_and_reach_every_end() {
    for files in [files(), shop()] {
        let pack = compiled(&files).pack.expect("the manual compiles");
        let report = switchback_engine::translate::example::run_all(&pack);
        let problems: Vec<String> =
            report.outcomes.iter().flat_map(|outcome| &outcome.problems).map(ToString::to_string).collect();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        assert!(report.is_good(), "{:?}", report.unreached);
    }
}
