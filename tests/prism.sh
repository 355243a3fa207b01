#!/usr/bin/env bash
# Serves a small pack in front of prism (from npm), which answers out of a contract, and has prism look over the gateway's
# shoulder on both sides: as the service it checks every call that the gateway makes, as a proxy before the gateway every
# request and answer of the client. For contracts of Swagger 2.0, OpenAPI 3.0 and 3.1, in both directions. The pack has a
# shape within itself, a map, a conversion and renamed fields, parameters and paths. Fails on anything that prism finds.
#
# In need of node and of the package index, so it is run by hand and not by the tests; without node it says so and ends well.
#
#   tests/prism.sh                         5 rounds of every request
#   tests/prism.sh 50                      more
#   PRISM=/path/to/prism tests/prism.sh    an installed one
#   SWITCHBACK=/path/to/switchback tests/  the same for the program
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}

if [ -z "${PRISM:-}" ] && ! { command -v node && command -v npm; } >/dev/null; then
    echo "skipped: there is no node or no npm here"
    exit 0
fi
scratch=$(mktemp -d)
running=()
stop() {
    for process in "${running[@]}"; do
        kill "$process" 2>/dev/null && wait "$process" 2>/dev/null || true
    done
    running=()
}
trap 'stop; rm -rf "$scratch"' EXIT

prism=${PRISM:-$scratch/node_modules/.bin/prism}
[ -n "${PRISM:-}" ] || npm install --silent --no-audit --no-fund --prefix "$scratch" '@stoplight/prism-cli@5'
if [ -z "${SWITCHBACK:-}" ]; then
    cargo build --quiet --bin switchback
    SWITCHBACK=${CARGO_TARGET_DIR:-target}/debug/switchback
fi
key=$("$SWITCHBACK" key generate | head -n 1)

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Waits until something listens on a port.
listens() {
    for _ in $(seq 300); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return 0
        sleep 0.1
    done
    echo "nothing listens on port $1"
    cat "$scratch"/*.log
    return 1
}

# One request through everything; prism answers in its own words when it finds something.
ask() {
    local wanted=$1 method=$2 path=$3 body=${4:-} status
    status=$(curl -sS -o "$scratch/answer" -w '%{http_code}' -X "$method" -H 'authorization: Bearer token-of-the-client' \
        ${body:+-H 'content-type: application/json' -d "$body"} "http://127.0.0.1:$proxy$path")
    if [ "$status" != "$wanted" ]; then
        echo "$kind, $speaks in front of $backend: $method $path is answered $status, not $wanted:"
        cat "$scratch/answer"
        echo
        found=1
    fi
    asked=$((asked + 1))
}

found=0
for kind in swagger-2.0 openapi-3.0 openapi-3.1; do
    python3 tests/prism/documents.py "$kind" "$scratch/$kind"
    "$SWITCHBACK" check "$scratch/$kind"
    for speaks in v1 v2; do
        case $speaks in
        v1)
            backend=v2 list='/notes?limit=2' one=/notes/7
            note='{"id":"1","title":"t","count":3,"labels":{"a b":{"colour":"red"}},"replies":[{"id":"2","title":"u","count":4,"labels":{}}]}'
            ;;
        v2)
            backend=v1 list='/entries?per_page=2' one=/entries/7
            note='{"id":"1","name":"t","count":"3","labels":{"a b":{"color":"red"}},"answers":[{"id":"2","name":"u","count":"4","labels":{}}]}'
            ;;
        esac
        service=$(free_port) gateway=$(free_port) proxy=$(free_port) asked=0
        cat >"$scratch/switchback.yaml" <<YAML
listen: 127.0.0.1:$gateway
admin: { listen: 127.0.0.1:0 }
store: sqlite:$scratch/$kind-$speaks.db
key: \${TEST_KEY}
mapping: $scratch/$kind
fronts: { /api: { speaks: $speaks } }
upstreams: { $backend: { url: 'http://127.0.0.1:$service' } }
clients: [{ name: app, ${speaks}_token: token-of-the-client, credentials: { $backend: token-of-the-service } }]
YAML
        "$prism" mock --errors -d -p "$service" "$scratch/$kind/contracts/$backend.json" >"$scratch/service.log" 2>&1 &
        running+=($!)
        TEST_KEY=$key "$SWITCHBACK" serve --config "$scratch/switchback.yaml" >"$scratch/gateway.log" 2>&1 &
        running+=($!)
        listens "$gateway"
        "$prism" proxy --errors -p "$proxy" "$scratch/$kind/contracts/$speaks.json" "http://127.0.0.1:$gateway/api" >"$scratch/proxy.log" 2>&1 &
        running+=($!)
        listens "$service"
        listens "$proxy"
        for _ in $(seq "$rounds"); do
            ask 200 GET "$list"
            ask 200 GET "$one"
            ask 201 POST "${list%%\?*}" "$note"
            ask 204 DELETE "$one"
        done
        echo "$kind: $speaks in front of $backend: $asked requests"
        stop
    done
done
exit $found
