//! The messaging pack under mutation: every line of it is necessary, and typing errors are reported
//! at their place.

mod lines;
mod two_slips;
mod typos;

use std::path::Path;
use switchback_compiler::mapping::load::PackSource;
use switchback_compiler::mapping::{Compiled, Compiler, compile};
use switchback_engine::translate::example;

/// The pack as it lies in the repository.
fn messaging() -> PackSource {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging");
    PackSource::from_dir(&folder).expect("the pack lies beside the sources")
}

/// The examined files: the manifest and the mapping files, without the examples and the contracts.
fn written(source: &PackSource) -> impl Iterator<Item = (&str, &str)> {
    let files = source.files().iter().map(|(name, bytes)| (name.as_str(), bytes));
    let mapping = files.filter(|(name, _)| !name.contains('/') && !name.ends_with(".examples.map.yaml"));
    mapping.map(|(name, bytes)| (name, std::str::from_utf8(bytes).expect("the pack is text")))
}

/// The pack with one file replaced.
fn with_file(source: &PackSource, name: &str, text: String) -> PackSource {
    let mut files = source.files().to_vec();
    let file = files.iter_mut().find(|(have, _)| have == name).expect("the file is one of the pack");
    file.1 = text.into_bytes().into();
    PackSource::from_files(files)
}

/// Whether `check --deny-warnings` and `test` both pass.
fn passes(compiled: &Compiled) -> bool {
    let pack = compiled.pack.as_ref().filter(|_| compiled.findings.is_empty());
    pack.is_some_and(|pack| example::run_all(pack).is_good())
}

/// Runs `work` over all items on all cores, each with a compiler of its own, because little of a
/// pack changes between items. Returns the results in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&mut Compiler, &T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let chunk = items.len().div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = items
            .chunks(chunk)
            .map(|items| {
                scope.spawn(|| {
                    let mut compiler = Compiler::default();
                    items.iter().map(|item| work(&mut compiler, item)).collect::<Vec<_>>()
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("a worker panics only with its test"))
            .collect()
    })
}

#[test]
fn the_pack_passes_as_it_is() {
    let compiled = compile(&messaging());
    let said = switchback_compiler::diagnostic::to_text(
        &compiled.sources,
        &compiled.findings,
        switchback_compiler::diagnostic::Colour::Never,
    );
    assert_eq!(said, "");
    assert!(passes(&compiled), "{:#?}", example::run_all(compiled.pack.as_ref().expect("no findings")));
}

#[test]
fn calls_carry_only_fields_that_are_a_packs_to_choose() {
    let source = messaging();
    let (_, manifest) = written(&source).find(|(name, _)| *name == "pack.yaml").expect("every pack has one");
    for (field, said) in [
        ("content-type: application/json", ""),
        ("x-api-version: '3'", ""),
        ("host: a", "`host` is made by the gateway for each call"),
        ("content-length: '0'", "`content-length` is made by the gateway for each call"),
        ("Authorization: a", "`Authorization` is made by the gateway for each call"),
        ("'a b': c", "`a b` is not the name of a header field"),
        (r#"x: "a\nb""#, "this is not the value of a header field"),
    ] {
        let changed =
            manifest.replace("headers: {content-type: application/json}", &format!("headers: {{{field}}}"));
        assert!(changed != manifest || said.is_empty(), "the pack has such a line");
        let compiled = compile(&with_file(&source, "pack.yaml", changed));
        let all: Vec<_> =
            compiled.findings.in_order().iter().map(|finding| finding.message.clone()).collect();
        let is_as_said = if said.is_empty() { all.is_empty() } else { all.iter().any(|one| one == said) };
        assert!(is_as_said, "{field}: {all:?}");
    }
    let nowhere = manifest.replace("send: authorization", "send: []");
    let compiled = compile(&with_file(&source, "pack.yaml", nowhere));
    assert!(
        compiled
            .findings
            .in_order()
            .iter()
            .any(|finding| finding.message == "there is no header to send a token in")
    );
}
