#!/usr/bin/env bash
# What the gateway keeps in memory: resident when idle, after 256 connections, per client that does not read its 20 MB answer,
# and per large answer on its way to a client that does. Each is measured on a gateway of its own, so that none uses what
# another has left. Beside what is resident stands what of it is anonymous, without the program's own pages.
# Needs wrk, a release build of `switchback` and the yardsticks of benches/peers; ports 19103, 18180, 19190 must be free.
#   cargo build --release && cargo build --release --manifest-path benches/peers/yardsticks/Cargo.toml --target-dir target/peers
#   benches/memory.sh
set -euo pipefail
cd "$(dirname "$0")/.."
switchback=${SWITCHBACK:-target/release/switchback}
yardsticks=${YARDSTICKS:-target/peers/release/yardsticks}
readers=${READERS:-50} bodies=${BODIES:-8} seconds=${SECONDS_EACH:-5}
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$folder"' EXIT
command -v wrk >/dev/null || { echo "wrk is needed: apt-get install wrk" >&2; exit 2; }

# The made-up tokens that the fixture and its clients agree on.
token=v2-client-token-0123456789abcdef
"$yardsticks" fixture --listen 127.0.0.1:19103 >"$folder/fixture" 2>&1 &
cat >"$folder/config.yaml" <<CONFIG
listen: 127.0.0.1:18180
admin: { listen: 127.0.0.1:19190 }
mapping: mappings/messaging
store: sqlite:$folder/switchback.db
key: $("$switchback" key generate)
upstreams:
  v3: { url: 'http://127.0.0.1:19103/v3' }
oauth:
  authorize_url: http://127.0.0.1:19103/oauth/authorize
  token_url: http://127.0.0.1:19103/oauth/access_token
  redirect_url: http://127.0.0.1:19190/oauth/callback
  scopes: [install_app, read_agent_profile]
clients:
  - name: acme
    v2_token: $token
    grant: { client_id: APP-0, client_secret: not-a-secret, refresh_token: v3-refresh-token-of-the-configuration }
settings:
  agents: { max_chats: 10 }
limits: { write_timeout: 300s }
reload: { watch: false }
CONFIG
gateway=
# An answer of so many bytes, to a client that reads as the options of curl say. In place of the shell that asks for it, so
# that killing the one ends the other.
list() { exec curl -fs -o /dev/null "${@:2}" "http://127.0.0.1:18180/v2/chats/$1/messages" -H "X-Authorization: Bearer $token"; }
# A new gateway instead of the last one.
fresh() {
    if [ -n "$gateway" ]; then
        kill "$gateway"
        wait "$gateway" 2>/dev/null || true
    fi
    "$switchback" serve --config "$folder/config.yaml" >"$folder/gateway.log" 2>&1 &
    gateway=$!
    until curl -fs -o /dev/null http://127.0.0.1:19190/healthz/ready; do
        kill -0 "$gateway" || { cat "$folder/gateway.log" >&2; exit 1; }
        sleep 0.1
    done
}
kib() { awk -v field="$1:" '$1 == field {print $2}' "/proc/$gateway/status"; }
show() { printf '%-50s %8s KiB (anonymous %8s KiB)\n' "$1" "$(kib VmRSS)" "$(kib RssAnon)"; }
each() { printf '%-50s %8s KiB each\n' "$1" "$((($2 - $3) / $4))"; }

fresh
sleep 1
show 'idle'

(list 7)
wrk -t1 -c256 -d"${seconds}s" -H "X-Authorization: Bearer $token" http://127.0.0.1:18180/v2/chats/7/messages >"$folder/wrk"
show 'after 256 connections'

fresh
(list 20000000)
before=$(kib RssAnon)
stalled=()
for _ in $(seq "$readers"); do
    list 20000000 --limit-rate 1 &
    stalled+=($!)
done
sleep "$seconds"
each "$readers readers of 20 MB that stall" "$(kib RssAnon)" "$before" "$readers"
kill "${stalled[@]}" 2>/dev/null
wait "${stalled[@]}" 2>/dev/null || true

for megabytes in 1 10 100; do
    fresh
    (list $((megabytes * 1000000)))
    before=$(kib RssAnon)
    pids=() peak=$before
    for _ in $(seq "$bodies"); do
        # Two seconds for each, whatever its size, so that all are on their way together.
        list $((megabytes * 1000000)) --limit-rate $((megabytes * 500000)) &
        pids+=($!)
    done
    while jobs -pr | grep -qxFf <(printf '%s\n' "${pids[@]}"); do
        now=$(kib RssAnon)
        [ "$now" -gt "$peak" ] && peak=$now
        sleep 0.02
    done
    each "$bodies bodies of $megabytes MB on their way" "$peak" "$before" "$bodies"
done
