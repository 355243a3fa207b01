#!/usr/bin/env bash
# The tests of the only code with `unsafe` (crates/json/src/scan), and of the streams that run it, under the address sanitizer; then
# the tests of scanning under valgrind's memcheck, where that is installed. By hand: everything is built once more for it.
#   tests/sanitizers.sh
# The compiler's own sanitizer run time is used, for which RUSTC_BOOTSTRAP=1 allows the stable compiler. Inputs lie flush
# with the end of an allocation of their own, so that a load beyond it is found. Miri would need a nightly compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(rustc -vV | sed -n 's/^host: //p')
target_dir=${CARGO_TARGET_DIR:-target}/sanitizers

echo "== address sanitizer"
RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address \
    cargo test --lib -p switchback-json -p switchback-engine \
    --target "$target" --target-dir "$target_dir/address" -- tests:: translate::stream::tests

echo "== memcheck"
if ! command -v valgrind >/dev/null; then
    echo "skipped: valgrind is not installed"
    exit 0
fi
# A loop of 8 cases a property is slow enough there.
binary=$(cargo test --lib -p switchback-json --no-run --message-format=json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n1)
PROPTEST_CASES=8 valgrind --quiet --error-exitcode=1 "$binary" --test-threads=1 tests::scanning
