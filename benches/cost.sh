#!/usr/bin/env bash
# What the gateway costs: CPU of its process per request, and throughput, beside the sandbox asked directly.
# Needs wrk and a release build of `switchback`; ports 19003, 18080, 19090 must be free. About a minute.
#   cargo build --release && benches/cost.sh
# Numbers differ from machine to machine and run to run; compare what one run prints.
set -euo pipefail
cd "$(dirname "$0")/.."
switchback=${SWITCHBACK:-target/release/switchback}
seconds=${SECONDS_EACH:-5} connections=${CONNECTIONS:-64}
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$folder"' EXIT
command -v wrk >/dev/null || { echo "wrk is needed: apt-get install wrk" >&2; exit 2; }

"$switchback" sandbox --listen 127.0.0.1:19003 >"$folder/sandbox" 2>"$folder/sandbox.log" &
sandbox=$!
# Waits for a command to succeed while a process lives.
await() { until "${@:2}" 2>/dev/null; do kill -0 "$1" || { cat "$folder"/*.log >&2; exit 1; }; sleep 0.1; done; }
await "$sandbox" grep -q 'OAuth redirect_uri' "$folder/sandbox"
of() { sed -n "s/^  $1  *//p" "$folder/sandbox"; }
export DEMO_LISTEN=127.0.0.1:18080 DEMO_ADMIN=127.0.0.1:19090 DEMO_ADMIN_TOKEN=cost-of-the-gateway DEMO_FOLDER=$folder
export DEMO_SANDBOX=http://127.0.0.1:19003 DEMO_CALLBACK=http://127.0.0.1:19090/oauth/callback
DEMO_KEY=$("$switchback" key generate) DEMO_CLIENT_TOKEN=$(of 'v2 token') DEMO_CLIENT_ID=$(of 'OAuth client id')
DEMO_CLIENT_SECRET=$(of 'OAuth client secret') DEMO_REFRESH_TOKEN=$(of 'OAuth refresh token')
export DEMO_KEY DEMO_CLIENT_TOKEN DEMO_CLIENT_ID DEMO_CLIENT_SECRET DEMO_REFRESH_TOKEN
cp mappings/messaging/demo.yaml "$folder/config.yaml"
"$switchback" serve --config "$folder/config.yaml" >"$folder/gateway.log" 2>&1 &
gateway=$!
await "$gateway" curl -fs -o /dev/null http://127.0.0.1:18080/v2/chats/7 -H "X-Authorization: Bearer $DEMO_CLIENT_TOKEN"

ticks() { awk '{print $14 + $15}' "/proc/$1/stat"; }
# name, process whose CPU counts, address, header
measure() {
    local before after done
    wrk -t1 -c"$connections" -d1s -H "$4" "$3" >/dev/null
    before=$(ticks "$2")
    done=$(wrk -t1 -c"$connections" -d"${seconds}s" -H "$4" "$3")
    after=$(ticks "$2")
    echo "$done" | grep -q 'Non-2xx' && { echo "$1: failed"; echo "$done"; exit 1; }
    awk -v name="$1" -v cpu=$((after - before)) -v hz="$(getconf CLK_TCK)" \
        '/requests in/ {n = $1} /Requests\/sec/ {rate = $2} END {printf "%-44s %9.0f requests/s %8.1f µs CPU a request\n", name, rate, cpu / hz / n * 1e6}' <<<"$done"
}
v3="Authorization: Bearer $(of 'v3 access token')" v2="X-Authorization: Bearer $DEMO_CLIENT_TOKEN"
size=$(curl -s http://127.0.0.1:19003/v3/chats/7/messages -H "$v3" | wc -c)
measure 'sandbox alone, one chat of v3' "$sandbox" http://127.0.0.1:19003/v3/chats/7 "$v3"
measure 'gateway, one chat of v2 from v3' "$gateway" http://127.0.0.1:18080/v2/chats/7 "$v2"
measure "sandbox alone, 20 messages of v3 ($size B)" "$sandbox" http://127.0.0.1:19003/v3/chats/7/messages "$v3"
measure 'gateway, 20 messages of v2 from v3' "$gateway" http://127.0.0.1:18080/v2/chats/7/messages "$v2"
printf '%-44s %9s KiB\n' 'gateway, resident memory afterwards' "$(awk '/VmRSS/ {print $2}' "/proc/$gateway/status")"
