"""A service that the new document describes: it validates each call by the document and answers as the
document declares.
"""
import json
import re
import socketserver
import threading
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from .documents import FORM, MULTIPART, Parameter, is_json
from .parameters import Reader, text

BODYLESS = {204, 205, 304}


@dataclass
class Violation:
    part: str           # path, query, header, body, media, status
    place: tuple
    rule: str
    message: str

    @property
    def name(self):
        return next((step for step in reversed(self.place) if isinstance(step, str)), "")

    def label(self):
        return f"{self.part} {'.'.join(str(step) for step in self.place if isinstance(step, str))} {self.rule}".replace("  ", " ")


@dataclass
class Message:
    """A request or an answer as it was sent."""
    line: str
    headers: dict
    body: bytes

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            return None


@dataclass
class Call:
    message: Message
    key: str = ""
    violations: list = field(default_factory=list)
    status: int = 0
    answer: Message = None


class Service:
    """Calls and answers by one document. `side` names it in texts."""

    def __init__(self, document, schemas, generator, credentials=()):
        self.document, self.schemas, self.generator = document, schemas, generator
        self.reader = Reader(document, schemas)
        self.credentials = {name.lower() for name in credentials}
        self.templates = []
        for operation in document.operations.values():
            pattern = "".join("[^/]*" if part.startswith("{") else re.escape(part)
                              for part in re.split(r"(\{[^{}]*\})", operation.path))
            groups = re.compile("".join("([^/]*)" if part.startswith("{") else re.escape(part)
                                        for part in re.split(r"(\{[^{}]*\})", operation.path)))
            self.templates.append((re.compile(pattern), groups, operation))
        self.answers_of = {}

    # --- calls ------------------------------------------------------------

    def is_credential(self, parameter):
        return parameter.place != "path" and parameter.name.lower() in self.credentials

    def operation(self, method, path, expected):
        found = [(groups, one) for pattern, groups, one in self.templates if one.method == method and pattern.fullmatch(path)]
        # A generated value may look like a literal segment of another operation.
        found.sort(key=lambda pair: (pair[1].key != expected, pair[1].path.count("{")))
        return found[0] if found else (None, None)

    def check(self, message, expected):
        """Validates a call. Returns the operation and the violations."""
        method, target = message.line.split(" ")[:2]
        path, _, query = target.partition("?")
        groups, operation = self.operation(method, path, expected)
        if operation is None:
            return None, [Violation("path", (path,), "unknown", f"the document has no operation {method} {path}")]
        if operation.key != expected:
            return operation, [Violation("path", (path,), "other", f"{operation.key} is called instead of {expected}")]
        found = []
        values = dict(zip(operation.names_in_path(), map(unquote, groups.fullmatch(path).groups())))
        fields = [one for one in parse_qsl(query, keep_blank_values=True) if one[0].lower() not in self.credentials]
        cookies = [tuple(part.strip().split("=", 1)) for part in message.headers.get("cookie", "").split(";") if "=" in part]
        for one in operation.parameters:
            if self.is_credential(one) or one.place == "header" and one.name.lower() in ("accept", "content-type"):
                continue
            if one.place == "path":
                given = [(one.name, values.get(one.name, ""))]
            elif one.place == "header":
                given = [(one.name, message.headers[one.name.lower()])] if one.name.lower() in message.headers else []
            else:
                given = fields if one.place == "query" else cookies
            is_there, value = self.reader.take(one, given)
            if is_there:
                found += [Violation(one.place, (one.name, *place), rule, why)
                          for place, rule, why in self.schemas.errors(one.schema, value, "request", True)]
            elif one.required:
                found.append(Violation(one.place, (one.name,), "required", "the parameter is missing"))
        found += [Violation("query", (name,), "undeclared", "the parameter is not declared") for name in dict(fields)]
        return operation, found + self.check_body(operation, message)

    def check_body(self, operation, message):
        declared = operation.body
        if not message.body:
            is_missing = declared is not None and declared.required
            return [Violation("body", (), "required", "the body is missing")] if is_missing else []
        if declared is None:
            return [Violation("body", (), "undeclared", "the operation has no body")]
        media = message.headers.get("content-type", "")
        handle, known = find_media(media, declared.media)
        if not known:
            return [Violation("media", (media.split(";")[0],), "undeclared", f"declared are {', '.join(declared.media)}")]
        if handle is None:
            return []
        plain = media.split(";")[0].strip().lower()
        if is_json(plain):
            value = message.json()
            if value is None and message.body.strip() != b"null":
                return [Violation("body", (), "syntax", "the body is not JSON")]
        elif plain == FORM:
            value = self.read_form(handle, parse_qsl(message.body.decode(), keep_blank_values=True), declared.encoding)
        elif plain == MULTIPART:
            value = self.read_form(handle, read_multipart(media, message.body), declared.encoding)
        else:
            return []
        return [Violation("body", place, rule, why) for place, rule, why in self.schemas.errors(handle, value, "request", True)]

    def read_form(self, handle, fields, encoding):
        fields = [one for one in fields if one[0].lower() not in self.credentials]
        flat = self.document.chosen(handle, lambda _, branches: branches[0])
        value = {}
        for name, schema in flat.properties.items():
            style, explode = encoding.get(name, ("form", True))
            # A nested object in a form of the default style is JSON.
            is_there, one = self.reader.take(Parameter(name, "form", False, schema, style, explode and not self.document.flat(schema)
                                                       .is_object()), fields)
            if is_there:
                value[name] = one
        return value | dict(fields)

    # --- answers ------------------------------------------------------------

    def answers(self, operation, count):
        """Returns answers `(status, media, headers, body)`: two of each declared status first, then
        variations.
        """
        if operation.key in self.answers_of:
            return self.answers_of[operation.key]
        by_status = []
        for key, answer in operation.answers.items():
            status = concrete(key, operation.answers)
            # A 401 is about the credential of the gateway, which is not part of a draft. An informational status is no
            # answer by itself.
            if status in (None, 401) or status < 200:
                continue
            heads = [{name: text(self.generator.values(handle, "response", 2)[-1])
                      for name, (required, handle) in answer.headers.items() if required or most} for most in (False, True)]
            if status in (301, 302, 303, 307, 308):
                heads = [{"location": "https://example.com/elsewhere"} | head for head in heads]
            variants = []
            for media, handle in answer.media.items() if status not in BODYLESS else ():
                for body in self.bodies(media, handle, count):
                    variants.append((status, media, heads[min(1, len(variants))], body))
            by_status.append(variants or [(status, "", heads[0], b"")])
        by_status.sort(key=lambda variants: not 200 <= variants[0][0] < 300)
        first = [one for variants in by_status for one in variants[:2]]
        rest = [one for variants in by_status for one in variants[2:]]
        self.answers_of[operation.key] = (first + rest)[:count] if first else [(200, "", {}, b"")]
        return self.answers_of[operation.key]

    def bodies(self, media, handle, count):
        plain = media.split(";")[0].strip().lower()
        if is_json(plain) or plain == "*/*" and handle is not None:
            values = [{}] if handle is None else self.generator.values(handle, "response", count)
            return [json.dumps(value).encode() for value in values
                    if handle is None or self.schemas.validator(handle, "response").is_valid(value)]
        return [b"bytes that are no JSON"]

    def check_answer(self, operation, message, status, sent=None):
        """Validates an answer by the declaration of an operation. Returns the violations. `sent` is the body by
        the document of the service that wrote it.
        """
        key, declared = operation.answer(status)
        if declared is None:
            rule = "undeclared" if status < 400 else "undeclared-error"
            return [Violation("status", (str(status),), rule, f"declared are {', '.join(operation.answers)}")]
        found = []
        for name, (required, handle) in declared.headers.items():
            if name not in message.headers:
                if required:
                    found.append(Violation("header", (name,), "required", f"the header of {status} is missing"))
                continue
            parameter = Parameter(name, "header", required, handle, "simple", False)
            value = self.reader.take(parameter, [(name, message.headers[name])])[1]
            found += [Violation("header", (name, *place), rule, why)
                      for place, rule, why in self.schemas.errors(handle, value, "response")]
        if not declared.media or status in BODYLESS or operation.method == "HEAD":
            return found
        media = message.headers.get("content-type", "")
        if not message.body:
            if any(handle is not None for handle in declared.media.values()):
                found.append(Violation("body", (), "required", f"{status} is declared with a body"))
            return found
        handle, known = find_media(media, declared.media)
        if not known:
            return found + [Violation("media", (media.split(";")[0],), "undeclared",
                                      f"{status} is declared as {', '.join(declared.media)}")]
        if handle is None or not is_json(media):
            return found
        value = message.json()
        if value is None and message.body.strip() != b"null":
            return found + [Violation("body", (), "syntax", f"the body of {status} is not JSON")]
        errors = self.schemas.errors(handle, value, "response", sent=sent)
        return found + [Violation("body", place, rule, why) for place, rule, why in errors]


def concrete(key, declared):
    if key.isdigit():
        return int(key)
    choices = [400, 409, 422] if key == "default" and any(one.startswith("2") for one in declared) else \
        [200] if key == "default" else [int(key[0]) * 100 + more for more in (0, 9, 22)]
    return next((status for status in choices if str(status) not in declared), None)


def find_media(media, declared):
    """Returns the schema of a declared media type that includes this one, and whether there is such a type."""
    plain = media.split(";")[0].strip().lower()
    names = {name.split(";")[0].strip().lower(): handle for name, handle in declared.items()}
    for name in (plain, plain.split("/")[0] + "/*", "*/*"):
        if name in names:
            return names[name], True
    if is_json(plain):
        for name, handle in names.items():
            if is_json(name):
                return handle, True
    return None, False


def read_multipart(media, body):
    boundary = re.search(r'boundary="?([^";]+)', media)
    if not boundary:
        return []
    fields = []
    for part in body.split(b"--" + boundary.group(1).encode())[1:-1]:
        head, _, content = part.strip(b"\r\n").partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]*)"', head)
        if name:
            fields.append((name.group(1).decode(), content.decode(errors="replace")))
    return fields


class Upstream(socketserver.ThreadingTCPServer):
    """Serves a `Service`. `expected` is the operation that the next call should be, `turn` selects its
    answer.
    """
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, service, count):
        super().__init__(("127.0.0.1", 0), Connection)
        self.service, self.count = service, count
        self.expected, self.turn, self.calls = "", 0, []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]

    def answer(self, message):
        operation, violations = self.service.check(message, self.expected)
        call = Call(message, operation.key if operation else "", violations)
        status, media, headers, body = 404, "", {}, b""
        if operation is not None:
            answers = self.service.answers(operation, self.count)
            accepted = [one for one in answers if accepts(message.headers.get("accept", "*/*"), one[1])] or answers
            status, media, headers, body = accepted[self.turn % len(accepted)]
        headers = dict(headers) | ({"content-type": "application/json" if media == "*/*" else media} if media else {})
        call.status, call.answer = status, Message(str(status), headers, body)
        self.calls.append(call)
        return status, headers, body


def accepts(accept, media):
    if not media or media == "*/*":
        return True
    plain = media.split(";")[0].strip().lower()
    wanted = [one.split(";")[0].strip().lower() for one in accept.split(",")]
    return any(one in ("*/*", plain) or one.endswith("/*") and plain.startswith(one[:-1]) for one in wanted)


class Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        while True:
            line = self.rfile.readline().decode("latin-1").strip()
            if not line:
                return
            headers = read_headers(self.rfile)
            if "chunked" in headers.get("transfer-encoding", ""):
                body = read_chunks(self.rfile)
            else:
                body = self.rfile.read(int(headers.get("content-length", 0)))
            status, fields, content = self.server.answer(Message(line, headers, body))
            head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            if status not in (204, 304):
                head += f"content-length: {len(content)}\r\n"
            is_bodyless = status in (204, 304) or line.startswith("HEAD ")
            self.wfile.write(f"{head}\r\n".encode("latin-1", "replace") + (b"" if is_bodyless else content))


def read_headers(file):
    headers = {}
    while True:
        line = file.readline().decode("latin-1").strip()
        if not line:
            return headers
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()


def read_chunks(file):
    body = b""
    while True:
        size = int(file.readline().split(b";")[0], 16)
        body += file.read(size)
        file.readline()
        if size == 0:
            return body
