//! The shapes of the included packs, in both directions.

use super::*;
use crate::diagnostic::{self, Findings, Sources};
use crate::mapping::load::{self, PackSource};
use crate::mapping::manual_pages;
use std::path::Path;

fn manual() -> PackSource {
    manual_pages::pack("")
}

fn messaging() -> PackSource {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mappings/messaging");
    PackSource::from_dir(&folder).expect("the pack lies beside the sources")
}

/// Returns all findings from checking the shapes and building these.
fn findings(source: &PackSource, builds: &[(&str, SideId)], with: &Supply) -> String {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let (program, contracts) =
        load::load_pack(source, &mut sources, &mut findings).expect("the form is right");
    let names = PackNames::collect(&program, &mut findings);
    let world = LensEnv {
        program: &program,
        contracts: &contracts,
        names: &names,
        sources: &sources,
        is_stopped: &|| false,
    };
    let lenses = Lenses::check(world, &mut findings);
    for (name, to) in builds {
        let lens = lenses.lens(name, *to, with, &mut findings);
        assert!(lens.is_some() || findings.has_errors(), "{name} does not build, and nothing says why");
    }
    diagnostic::to_text(&sources, &findings, diagnostic::Colour::Never)
}

const OLD: SideId = SideId::OLD;
const NEW: SideId = SideId::NEW;

#[test]
fn the_shapes_of_the_messaging_pack_build_the_sides_that_its_routes_need() {
    let builds = [
        ("AgentItem", OLD),
        ("AgentDetail", OLD),
        ("AgentInvite", NEW),
        ("AgentInvite", OLD),
        ("ContactItem", OLD),
        ("ContactDetail", OLD),
        ("Chat", OLD),
        ("Message", OLD),
        ("Message", NEW),
    ];
    assert_eq!(findings(&messaging(), &builds, &Supply::default()), "");
}

#[test]
fn the_shapes_of_the_manual_build() {
    assert_eq!(findings(&manual(), &[("Note", OLD), ("NewNote", NEW)], &Supply::default()), "");
}

#[test]
fn what_only_the_new_side_has_cannot_be_made_out_of_the_old_one() {
    let said = findings(&messaging(), &[("Chat", NEW)], &Supply::default());
    assert!(said.contains("no source for `"), "{said}");
    assert!(said.contains("` (v3, required) where `Chat` builds v3"), "{said}");
}

#[test]
fn what_an_edit_leaves_out_comes_from_the_value_it_is_laid_over_or_nowhere() {
    let over = Supply { over: true, ..Supply::default() };
    assert_eq!(findings(&manual(), &[("NoteEdit", NEW)], &over), "");
    let said = findings(&manual(), &[("NoteEdit", NEW)], &Supply::default());
    assert!(said.contains("`author` of v1 may be absent, and `author` of v2 is required"), "{said}");
}

/// Returns a pack with `count` types per side that all contain each other, and a shape for each
/// pair of them.
fn mutual(count: usize) -> PackSource {
    let contract = |field: &str| {
        let mut text = String::from(
            "openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths:\n  /t:\n    get: {responses: {200: {description: t, content: {application/json: {schema: {$ref: '#/components/schemas/T0'}}}}}}\ncomponents:\n  schemas:\n",
        );
        for i in 0..count {
            let fields: Vec<String> =
                (0..count).map(|j| format!("{field}{j}: {{$ref: '#/components/schemas/T{j}'}}")).collect();
            text.push_str(&format!("    T{i}: {{type: object, properties: {{{}}}}}\n", fields.join(", ")));
        }
        text
    };
    let mut mapping = String::from("mapping: 1\nshapes:\n");
    for i in 0..count {
        mapping.push_str(&format!("  T{i}:\n    of: {{a: T{i}, b: T{i}}}\n    rename:\n"));
        (0..count).for_each(|j| mapping.push_str(&format!("      f{j}: {{b: g{j}, shape: T{j}}}\n")));
    }
    mapping.push_str("routes:\n  - pair: {a: GET /t, b: GET /t}\n    response: T0\n");
    let manifest = "\
pack: t
sides: {old: a, new: b}
contracts: {a: a.yaml, b: b.yaml}
credentials:
  a: {read: [x-token], send: x-token, scheme: Bearer}
  b: {read: [x-token], send: x-token, scheme: Bearer}
languages: [en]
errors: {body: {error: $text}}
refuse: {legacy: never, status: 501}
";
    let files = [
        ("pack.yaml", manifest.to_owned()),
        ("a.yaml", contract("f")),
        ("b.yaml", contract("g")),
        ("t.map.yaml", mapping),
    ];
    PackSource::from_files(files.map(|(name, text)| (name.to_owned(), text.into_bytes())).into())
}

#[test]
fn shapes_that_all_lead_to_one_another_are_built_once_each() {
    // The number of distinct paths is 30!.
    let names: Vec<String> = (0..30).map(|i| format!("T{i}")).collect();
    let builds: Vec<(&str, SideId)> =
        names.iter().flat_map(|name| [(name.as_str(), NEW), (name.as_str(), OLD)]).collect();
    assert_eq!(findings(&mutual(30), &builds, &Supply::default()), "");
}
