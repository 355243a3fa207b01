//! Figures of the sources that a review would otherwise count by hand. A limit is lowered when the
//! code allows it.

use crate::support::sources::{Source, imports, sources};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn comments_fit_into_110_columns() {
    let is_long = |line: &&String| line.trim_start().starts_with("//") && line.chars().count() > 110;
    check("lines", 0, |source| source.lines.iter().filter(is_long).cloned().collect());
}

#[test]
fn errors_have_types_outside_the_command_line() {
    // The drafts of `init` return a sentence for a decision, which a person reads.
    check("results", 1, |source| {
        let is_allowed = source.package == "switchback" && source.room() == "cli";
        let code: String = source.code.split_whitespace().collect();
        let ends = code.match_indices(",String>").map(|(at, _)| &code[..at]);
        let errors =
            ends.filter(|_| !is_allowed).filter(|before| innermost_generic(before) == Some("Result"));
        errors.map(|before| before[before.len().saturating_sub(60)..].to_owned()).collect()
    });
}

/// Returns the name before the last `<` of the text that is still open.
fn innermost_generic(text: &str) -> Option<&str> {
    let mut depth = 0;
    for (at, c) in text.char_indices().rev() {
        match c {
            '>' if !text[..at].ends_with(['-', '=']) => depth += 1,
            '<' if depth > 0 => depth -= 1,
            '<' => return text[..at].rsplit(|c: char| !c.is_alphanumeric()).next(),
            '{' | '}' | ';' => return None,
            _ => {}
        }
    }
    None
}

#[test]
fn modules_of_a_crate_import_one_another_without_circles() {
    let gateway = imports("gateway");
    assert!(gateway["proxy::compose::pair"].contains("proxy::compose::exchange"), "{gateway:?}");
    assert!(gateway["proxy::stack"].contains("proxy::layers::rescue"), "{gateway:?}");
    let packages: BTreeSet<String> = sources().into_iter().map(|source| source.package).collect();
    let circles: Vec<String> = packages.iter().flat_map(|package| circles(package)).collect();
    assert!(circles.is_empty(), "{} circles of imports:\n{}", circles.len(), circles.join("\n"));
}

fn circles(package: &str) -> Vec<String> {
    let imports = imports(package);
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for from in imports.keys() {
        let reached = reached.entry(from).or_default();
        let mut next = vec![from.as_str()];
        while let Some(module) = next.pop() {
            next.extend(imports[module].iter().map(String::as_str).filter(|module| reached.insert(module)));
        }
    }
    let circle = |module: &&str| -> BTreeSet<&str> {
        let others = reached[module].iter().copied();
        others.filter(|other| reached[other].contains(module)).collect()
    };
    let circles: BTreeSet<BTreeSet<&str>> =
        reached.keys().map(circle).filter(|circle| !circle.is_empty()).collect();
    let render = |circle: BTreeSet<&str>| circle.into_iter().collect::<Vec<_>>().join(", ");
    circles.into_iter().map(|circle| format!("{package}: {}", render(circle))).collect()
}

#[test]
fn type_names_are_seldom_defined_twice() {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for source in sources() {
        let words: Vec<&str> = source.code.split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| ["struct", "enum", "trait", "union"].contains(&pair[0])) {
            let name: String = pair[1].chars().take_while(|c| c.is_alphanumeric()).collect();
            *places.entry(name).or_default() += 1;
        }
    }
    let twice: Vec<&String> = places.iter().filter(|(_, count)| **count > 1).map(|(name, _)| name).collect();
    let percent = 100.0 * twice.len() as f64 / places.len() as f64;
    assert!(percent <= 10.0, "{percent:.1} % of the names of types are defined more than once: {twice:?}");
}

/// Fails if the sources have more places than `limit`.
fn check(kind: &str, limit: usize, places: impl Fn(&Source) -> Vec<String>) {
    let found: Vec<String> = sources()
        .iter()
        .flat_map(|source| {
            let file = format!("{}/{}", source.package, source.path);
            places(source).into_iter().map(move |place| format!("{file}: {place}"))
        })
        .collect();
    assert!(
        found.len() <= limit,
        "{} {kind}, at most {limit} are allowed:\n{}",
        found.len(),
        found.join("\n")
    );
}
