//! The packs in the manual of the mapping language compile, and their examples hold.

use crate::support::packs;
use switchback_compiler::diagnostic::{Colour, to_text};
use switchback_compiler::mapping::{Compiled, compile};

/// The files of the manual's main pack.
pub fn files() -> Vec<(String, String)> {
    packs::manual_files("")
}

/// The files of the shop.
pub fn shop() -> Vec<(String, String)> {
    packs::manual_files("shop/")
}

/// The folders and files of all packs in the manual.
fn all() -> Vec<(String, Vec<(String, String)>)> {
    let folders = packs::manual_folders().into_iter().chain([String::new()]);
    folders.map(|folder| (folder.clone(), packs::manual_files(&folder))).collect()
}

/// A pack of these files, compiled.
pub fn compiled(files: &[(String, String)]) -> Compiled {
    compile(&packs::source(files))
}

#[test]
fn the_manual_compiles_without_a_finding() {
    for (folder, files) in all() {
        let compiled = compiled(&files);
        assert_eq!(to_text(&compiled.sources, &compiled.findings, Colour::Never), "", "{folder}");
        assert!(compiled.pack.is_some());
    }
}

#[test]
fn the_examples_of_the_manual_hold_and_reach_every_end() {
    for (folder, files) in all() {
        let pack = compiled(&files).pack.expect("the manual compiles");
        let report = switchback_engine::translate::example::run_all(&pack);
        let problems: Vec<String> =
            report.outcomes.iter().flat_map(|outcome| &outcome.problems).map(ToString::to_string).collect();
        assert!(problems.is_empty(), "{folder}: {}", problems.join("\n"));
        assert!(report.is_good(), "{folder}: {:?}", report.unreached);
    }
}
