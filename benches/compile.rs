//! How long the front end takes: a whole pack from its text to its plans. Reloads, tests and editors wait for this.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use switchback::mapping::compile;
use switchback::mapping::load::PackSource;

fn pack(criterion: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging");
    let source = PackSource::from_dir(&folder).expect("the pack lies in the sources");
    assert!(compile(&source).pack.is_some(), "the pack compiles");
    criterion.bench_function("compile/messaging", |bencher| bencher.iter(|| compile(black_box(&source))));
}

criterion_group!(benches, pack);
criterion_main!(benches);
