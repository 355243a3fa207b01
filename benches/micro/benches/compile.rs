//! Duration of the front end: compiling a complete pack, and compiling it again after a change of
//! one file. Reloads, drafts, tests and editors wait for this. Also measures the routing of a
//! request.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use switchback_compiler::mapping::load::{PackFile, PackSource};
use switchback_compiler::mapping::{Compiler, compile};
use switchback_plan::router::{Found, Router};

fn pack(criterion: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mappings/messaging");
    let source = PackSource::from_dir(&folder).expect("the pack lies in the sources");
    assert!(compile(&source).pack.is_some(), "the pack compiles");
    criterion.bench_function("compile/messaging", |bencher| bencher.iter(|| compile(black_box(&source))));
    let changed = source.files().iter().map(|(name, bytes): &PackFile| match name.as_str() {
        "contacts.map.yaml" => (name.clone(), [bytes, b"\n".as_slice()].concat().into()),
        _ => (name.clone(), Arc::clone(bytes)),
    });
    let by_turns = [&source, &PackSource::from_files(changed.collect::<Vec<_>>())];
    let (mut compiler, mut turn) = (Compiler::default(), 0);
    criterion.bench_function("compile/messaging, one file changed", |bencher| {
        bencher.iter(|| {
            turn += 1;
            compiler.compile(black_box(by_turns[turn % 2]))
        });
    });
}

/// Requests of a client of the served side: for routes with and without variables, and for no
/// route.
const REQUESTS: [(&str, &str); 4] = [
    ("GET", "/chats"),
    ("GET", "/chats/7/messages"),
    ("POST", "/flows/3/contact/12/exec"),
    ("GET", "/nowhere/at/all"),
];

fn routing(criterion: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mappings/messaging");
    let source = PackSource::from_dir(&folder).expect("the pack lies in the sources");
    let pack = compile(&source).pack.expect("the pack compiles");
    let router = Router::new(&pack.directions[0]);
    let mut group = criterion.benchmark_group("route");
    for (method, path) in REQUESTS {
        let found = |path| router.find(&method.parse().expect("a method"), path);
        assert_eq!(matches!(found(path), Found::Route { .. }), !path.starts_with("/nowhere"), "{path}");
        group.bench_function(format!("{method} {path}"), |bencher| {
            let method = method.parse().expect("a method");
            bencher.iter(|| matches!(router.find(&method, black_box(path)), Found::Route { .. }));
        });
    }
    group.finish();
}

criterion_group!(benches, pack, routing);
criterion_main!(benches);
