#!/usr/bin/env python3
"""Measures what strangers and floods do to an honest client, against a gateway in front of a sandbox. Run by hand: it takes
minutes and, for `memory`, root and control groups (without them the bound is `limits.memory` and only RSS is looked at).

    tests/bounds.py stalled                      200 HTTP/2 peers that read nothing, beside an honest client
    tests/bounds.py costly                       four clients that send bodies of very many names, beside an honest client
    tests/bounds.py memory --limit 64            1,000 connections and 600 bodies of 1 MB in a group of 64 MiB
    tests/bounds.py memory --limit 512 --idle 0 --configured    the bound as limits.memory, without a group

SWITCHBACK=PATH is the program; without it the debug build. Nothing but Python is needed. It exits with 1 when what is
promised does not hold: an honest client's p99 at most doubled, nobody killed, resident memory below the bound.
"""

import argparse, asyncio, json, logging, multiprocessing, os, signal, socket, struct, subprocess, sys, tempfile, time, urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("SWITCHBACK") or str(
    Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "switchback")


# --- the gateway and what is around it -------------------------------------------------------------------------------


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def ask(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read() or b"null")


def until(condition, what):
    for _ in range(200):
        try:
            return condition()
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{what} did not start")


class Setup:
    """A sandbox, and a gateway with all of its accounts as clients."""

    def __init__(self, limits, group=None):
        self.folder = tempfile.TemporaryDirectory()
        self.service, self.port, self.admin = free_port(), free_port(), free_port()
        self.sandbox = subprocess.Popen(
            [PROGRAM, "sandbox", "--listen", f"127.0.0.1:{self.service}"], stdout=subprocess.DEVNULL)
        base = f"http://127.0.0.1:{self.service}"
        app = until(lambda: ask(f"{base}/_sandbox/credentials"), "the sandbox")
        self.tokens = [account["v2_token"] for account in app["accounts"]]
        clients = "".join(
            f"  - {{ name: {one['role']}, v2_token: {one['v2_token']}, grant: {{ client_id: {app['client_id']}, "
            f"client_secret: {app['client_secret']}, refresh_token: {one['refresh_token']} }} }}\n"
            for one in app["accounts"])
        configuration = Path(self.folder.name) / "switchback.yaml"
        key = subprocess.run([PROGRAM, "key", "generate"], capture_output=True, text=True, check=True).stdout.strip()
        configuration.write_text(
            f"listen: 127.0.0.1:{self.port}\nadmin: {{ listen: 127.0.0.1:{self.admin} }}\n"
            f"store: sqlite:{self.folder.name}/store.db\nkey: {key}\nupstreams: {{ v3: {{ url: '{base}/v3' }} }}\n"
            f"oauth: {{ authorize_url: '{base}/oauth/authorize', token_url: '{base}/oauth/access_token', "
            f"redirect_url: '{app['redirect_uri']}' }}\nsettings: {{ agents: {{ max_chats: 5 }} }}\n"
            f"clients:\n{clients}limits: {{ drain_delay: 0s, {limits} }}\nlog: {{ level: warn }}\n")
        enter = (lambda: Path(group, "cgroup.procs").write_text(str(os.getpid()))) if group else None
        self.log = open(Path(self.folder.name) / "log", "w+b")
        self.gateway = subprocess.Popen(
            [PROGRAM, "serve", "--config", str(configuration)], stderr=self.log, preexec_fn=enter)
        until(lambda: ask(f"http://127.0.0.1:{self.admin}/healthz/live"), "the gateway")

    def slow(self, ms):
        """Messages take so long at the service."""
        rule = {"side": "v3", "method": "POST", "path": "/chats/{id}/messages", "action": {"delay": {"ms": ms}}}
        ask(f"http://127.0.0.1:{self.service}/_sandbox/faults", rule)

    def rss(self, what="VmRSS"):
        status = Path(f"/proc/{self.gateway.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(what)) / 1024

    def stop(self):
        for process in (self.gateway, self.sandbox):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(60)
        self.folder.cleanup()


# --- clients ---------------------------------------------------------------------------------------------------------


def head(line, token, length=None):
    fields = f"host: g\r\nx-authorization: Bearer {token}\r\n"
    if length is not None:
        fields += f"content-type: application/json\r\ncontent-length: {length}\r\n"
    return f"{line} HTTP/1.1\r\n{fields}\r\n".encode()


async def answer(reader):
    """Status, fields and body of the next answer on a connection of HTTP/1.1."""
    text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    lines = text.split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
    body = b""
    if fields.get("transfer-encoding") == "chunked":
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    elif "content-length" in fields:
        body = await reader.readexactly(int(fields["content-length"]))
    return int(lines[0].split()[1]), fields, body


async def honest(port, token, requests):
    """Times of requests one after another, in milliseconds, and how many were not answered with 200."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times, failed = [], 0
    for _ in range(requests):
        begun = time.perf_counter()
        writer.write(head("GET /v2/chats/1", token))
        status, _, _ = await answer(reader)
        times.append((time.perf_counter() - begun) * 1000)
        failed += status != 200
    writer.close()
    return sorted(times), failed


def quantile(times, share):
    return times[min(len(times) - 1, int(len(times) * share))]


def frame(kind, flags, stream, payload=b""):
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def field(name, value):
    """A field of HPACK, written out (RFC 7541, section 6.2.2)."""
    def text(it):
        return (bytes([len(it)]) if len(it) < 127 else bytes([127, len(it) - 127])) + it
    return b"\0" + text(name) + text(value)


SETTINGS, PING, GOAWAY, DATA, HEADERS, RST, WINDOW = 4, 6, 7, 0, 1, 3, 8


async def stalled(port, token, streams):
    """An HTTP/2 client that never opens its window and answers PINGs; comes again when it is thrown out."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, struct.pack("!HI", 4, 0)))
            fields = field(b":method", b"GET") + field(b":scheme", b"http") + field(b":path", b"/v2/chats/1/messages")
            fields += field(b":authority", b"g") + field(b"x-authorization", b"Bearer " + token.encode())
            for number in range(streams):
                writer.write(frame(HEADERS, 5, 2 * number + 1, fields))
            while True:
                prefix = await reader.readexactly(9)
                length, kind, flags = int.from_bytes(prefix[:3], "big"), prefix[3], prefix[4]
                payload = await reader.readexactly(length)
                if kind == PING and not flags & 1:
                    writer.write(frame(PING, 1, 0, payload))
                if kind == SETTINGS and not flags & 1:
                    writer.write(frame(SETTINGS, 1, 0))
        except (asyncio.IncompleteReadError, OSError):
            await asyncio.sleep(1)


# --- what is measured ------------------------------------------------------------------------------------------------


def measure(setup, beside, requests):
    """An honest client alone, and beside what `beside` does, in a process of its own so that it keeps nobody from his clock."""
    honest_client = lambda count: asyncio.run(honest(setup.port, setup.tokens[0], count))
    honest_client(300)
    alone, failed_alone = honest_client(requests)
    others = multiprocessing.Process(target=lambda: asyncio.run(beside()))
    others.start()
    time.sleep(3)
    under, failed = honest_client(requests)
    health = sum(1 for _ in range(20) if ask(f"http://127.0.0.1:{setup.admin}/healthz/live").get("live"))
    others.kill()
    others.join()
    for name, times, bad in (("alone", alone, failed_alone), ("beside", under, failed)):
        print(f"{name:>7}: p50 {quantile(times, 0.5):.2f} ms  p99 {quantile(times, 0.99):.2f} ms  "
              f"max {times[-1]:.2f} ms  failed {bad} of {len(times)}")
    ratio = quantile(under, 0.99) / quantile(alone, 0.99)
    print(f"p99 beside / alone: {ratio:.2f}; /healthz/live answered {health} of 20; RSS {setup.rss():.0f} MiB")
    return failed == 0 and failed_alone == 0 and health == 20, ratio


def run_stalled(arguments):
    setup = Setup("write_timeout: 5s")

    async def beside():
        # Strangers and two clients, none of them the honest one; and 70 at the admin port.
        peers = [setup.tokens[1], setup.tokens[2], "of-nobody"]
        await asyncio.gather(*[stalled(setup.port, peers[n % 3], 20) for n in range(arguments.peers)],
                             *[stalled(setup.admin, "x", 20) for _ in range(70)])

    try:
        served, ratio = measure(setup, beside, arguments.requests)
    finally:
        setup.stop()
    return served and ratio <= 2


def run_costly(arguments):
    setup = Setup("object_members: 1000000, body_bytes: 10MiB" if arguments.wide else "body_bytes: 10MiB")
    names = [f'"n{number}":0' for number in range(9000)]
    objects = ",".join(["{" + ",".join(names) + "}"] * 75)
    body = ('{"text":"a","x":[' + objects + "]}").encode()

    async def costly(token):
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", setup.port)
            writer.write(head("POST /v2/chats/1/messages", token, len(body)) + body)
            await writer.drain()
            try:
                await answer(reader)
            except (asyncio.IncompleteReadError, OSError):
                pass
            writer.close()

    async def beside():
        await asyncio.gather(*[costly(setup.tokens[1]) for _ in range(4)])

    print(f"four connections of one client send bodies of {len(body) / 1e6:.1f} MB with {75 * len(names)} names")
    try:
        served, _ = measure(setup, beside, arguments.requests)
    finally:
        setup.stop()
    # How late an answer comes is said above; what it should be depends on the cores that there are for both.
    return served


def make_group(mib):
    first = Path("/sys/fs/cgroup/memory")
    if (first / "memory.limit_in_bytes").exists():
        group = first / f"switchback-bounds-{os.getpid()}"
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(mib << 20))
        return group, lambda: {
            "most": int((group / "memory.max_usage_in_bytes").read_text()) >> 20,
            "killed": next(int(line.split()[1]) for line in (group / "memory.oom_control").read_text().splitlines()
                           if line.startswith("oom_kill ")),
        }
    group = Path("/sys/fs/cgroup") / f"switchback-bounds-{os.getpid()}"
    group.mkdir()
    (group / "memory.max").write_text(str(mib << 20))
    (group / "memory.swap.max").write_text("0")
    return group, lambda: {
        "most": int((group / "memory.peak").read_text()) >> 20,
        "killed": next(int(line.split()[1]) for line in (group / "memory.events").read_text().splitlines()
                       if line.startswith("oom_kill ")),
    }


async def flood(setup, idle, bodies):
    body = ('{"text":"' + "a" * 1_000_000 + '"}').encode()
    counts = {}

    async def keep(token):
        reader, writer = await asyncio.open_connection("127.0.0.1", setup.port)
        try:
            writer.write(head("GET /v2/chats/1", token))
            status, _, _ = await answer(reader)
        except (asyncio.IncompleteReadError, OSError):
            status = "closed"
        counts[f"connection {status}"] = counts.get(f"connection {status}", 0) + 1
        return writer

    async def send(token):
        status = "closed"
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", setup.port)
            writer.write(head("POST /v2/chats/1/messages", token, len(body)))
            for at in range(0, len(body), 65536):
                writer.write(body[at:at + 65536])
                await writer.drain()
            status, fields, _ = await answer(reader)
            if status == 503 and "retry-after" not in fields:
                status = "503 without Retry-After"
            writer.close()
        except (asyncio.IncompleteReadError, OSError):
            pass
        counts[f"body {status}"] = counts.get(f"body {status}", 0) + 1

    most = 0

    async def watch():
        nonlocal most
        while True:
            most = max(most, setup.rss())
            await asyncio.sleep(0.02)

    watching = asyncio.ensure_future(watch())
    kept = await asyncio.gather(*[keep(setup.tokens[n % len(setup.tokens)]) for n in range(idle)])
    print(f"{idle} connections open: RSS {setup.rss():.0f} MiB")
    for _ in range(2):
        await asyncio.gather(*[send(setup.tokens[n % 3]) for n in range(bodies)])
    watching.cancel()
    for writer in kept:
        writer.close()
    begun = time.perf_counter()
    # Whoever comes again, as Retry-After says, is served when what the flood has left is given back.
    while True:
        try:
            _, failed = await honest(setup.port, setup.tokens[0], 20)
        except (asyncio.IncompleteReadError, OSError):
            failed = 20
        if not failed or time.perf_counter() - begun > 15:
            print(f"served again {time.perf_counter() - begun:.1f} s after the flood")
            return counts, most, failed
        await asyncio.sleep(1)


def run_memory(arguments):
    group, usage = (None, dict) if arguments.configured else make_group(arguments.limit)
    limits = f"memory: {arguments.limit}MiB" if arguments.configured else "requests: 4096"
    setup = Setup(limits, group)
    try:
        setup.slow(1000)
        print(f"bound {arguments.limit} MiB; RSS at the start {setup.rss():.0f} MiB")
        counts, most, failed = asyncio.run(flood(setup, arguments.idle, arguments.bodies))
        alive = setup.gateway.poll() is None
        print(", ".join(f"{what}: {count}" for what, count in sorted(counts.items())))
        print(f"RSS at most {most:.0f} MiB; the group: {usage()}; afterwards {20 - failed} of 20 requests answered; "
              f"{'alive' if alive else 'dead'}")
        return alive and failed == 0 and most < arguments.limit and usage().get("killed", 0) == 0
    finally:
        setup.stop()
        if group:
            group.rmdir()


def main():
    multiprocessing.set_start_method("fork")
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["stalled", "costly", "memory"])
    parser.add_argument("--peers", type=int, default=200)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--limit", type=int, default=64, help="MiB")
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--bodies", type=int, default=600)
    parser.add_argument("--configured", action="store_true")
    parser.add_argument("--wide", action="store_true", help="objects with as many names as one likes")
    arguments = parser.parse_args()
    holds = {"stalled": run_stalled, "costly": run_costly, "memory": run_memory}[arguments.what](arguments)
    print("holds" if holds else "DOES NOT HOLD")
    sys.exit(0 if holds else 1)


main()
