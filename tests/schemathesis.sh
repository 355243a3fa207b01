#!/usr/bin/env bash
# Runs schemathesis (from PyPI) over both contracts of the messaging pack, each against a fresh sandbox, in all phases and
# with all checks that the service's document allows (schemathesis.toml says which and why). Fails on any finding.
#
# Slow and in need of the package index, so it is run by hand and not by the tests: minutes, not seconds. The tests have
# `contract_walk`, which asks for less at random and for more on purpose.
#
# Its warnings are off: that many calls end in 400 or 404 is the nature of a service whose chats close and are deleted.
#
#   tests/schemathesis.sh                  200 examples per operation and phase
#   tests/schemathesis.sh -n 1000          more; all further options go to `schemathesis run`
#   SCHEMATHESIS=/path/to/st tests/...     an installed one, instead of a new virtual environment
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
sandbox=
stop() {
    if [ -n "$sandbox" ]; then kill "$sandbox" && wait "$sandbox" || true; fi
    sandbox=
}
trap 'stop; rm -rf "$scratch"' EXIT

st=${SCHEMATHESIS:-$scratch/venv/bin/st}
if [ -z "${SCHEMATHESIS:-}" ]; then
    python3 -m venv "$scratch/venv"
    "$scratch/venv/bin/pip" install --quiet 'schemathesis>=4.32,<5'
fi
cargo build --quiet --bin switchback
switchback=${CARGO_TARGET_DIR:-target}/debug/switchback

# Prints the value that the sandbox announces under a name.
announced() { sed -n "s/^ *$1  *//p" "$scratch/sandbox.log" | head -n 1; }

# Runs over one contract: version, name of its token, header that carries it, further options.
campaign() {
    local version=$1 token_name=$2 header=$3 found=0
    shift 3
    "$switchback" sandbox --listen 127.0.0.1:0 >"$scratch/sandbox.log" &
    sandbox=$!
    for _ in $(seq 100); do
        [ -n "$(announced "$token_name")" ] && break
        sleep 0.1
    done
    echo "== $version at $(announced "$version")"
    "$st" --config-file tests/schemathesis.toml run "mappings/messaging/contracts/$version.openapi.yaml" \
        --url "$(announced "$version")" --header "$header: Bearer $(announced "$token_name")" \
        --phases examples,coverage,fuzzing,stateful --continue-on-failure \
        --generation-database "$scratch/$version.db" --no-color --warnings off -n 200 "$@" || found=1
    stop
    return $found
}

failed=0
campaign v3 'v3 access token' Authorization "$@" || failed=1
campaign v2 'v2 token' X-Authorization "$@" || failed=1
exit $failed
