"""A stand-in for `switchback` in the judge's own tests: it writes the draft that a scenario has, and lies as
the scenario says.

LIAR names a JSON file: `report` and `files` of the pack, and `lies` of its gateway. Without a lie, the
gateway forwards everything.
"""
import http.client
import http.server
import json
import os
import re
import sys
from pathlib import Path

SCENARIO = json.loads(Path(os.environ["LIAR"]).read_text())


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    upstream = 0

    def forward(self):
        lies = SCENARIO.get("lies", {})
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path, _, query = self.path.removeprefix("/old").partition("?")
        if "stranger" in self.headers.get("authorization", ""):
            return self.reply(401, {"content-type": "application/json"}, json.dumps(lies.get("own_error", {})).encode())
        if "refuse" in lies:
            return self.reply(501, {"content-type": "application/json"}, b'{"message":"not here"}')
        if "path" in lies:
            path = path.replace(*lies["path"])
        query = "&".join(part for part in query.split("&") if part.split("=")[0] != lies.get("drop"))
        connection = http.client.HTTPConnection("127.0.0.1", self.upstream)
        fields = {name: value for name, value in self.headers.items() if name.lower() in ("content-type", "accept")}
        connection.request(self.command, path + (f"?{query}" if query else ""), body or None, fields)
        answer = connection.getresponse()
        content, status = answer.read(), answer.status
        if status in lies.get("fails", []):
            return self.reply(502, {}, b"")
        if "answer" in lies and content:
            content = json.dumps(json.loads(content) | lies["answer"]).encode()
        self.reply(status, {name: value for name, value in answer.getheaders() if name.lower() != "content-length"}, content)

    def reply(self, status, headers, content):
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(b"" if status in (204, 304) or self.command == "HEAD" else content)
        self.wfile.flush()

    do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = do_HEAD = forward


def init(folder):
    folder.mkdir(parents=True)
    for name, text in SCENARIO["files"].items():
        (folder / name).write_text(text)


def serve(config):
    Proxy.upstream = int(re.search(r"url: 'http://127.0.0.1:(\d+)'", Path(config).read_text()).group(1))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    print(f"serving clients=127.0.0.1:{server.server_port}", file=sys.stderr, flush=True)
    server.serve_forever()


match sys.argv[1:]:
    case ["init", _, _, folder, *_]:
        init(Path(folder))
    case ["report", *_]:
        print(json.dumps(SCENARIO["report"]))
    case ["key", "generate"]:
        print("key")
    case ["serve", "--config", config]:
        serve(config)
