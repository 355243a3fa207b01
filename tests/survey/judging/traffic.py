"""Sends generated requests of the old document through `switchback serve` to a mock of the new one.

Both sides are validated: the calls by the new document, the answers by the old one.
"""
import base64
import http.client
import json
import os
import re
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlencode

from .differ import Differ, names_of
from .documents import FORM, MULTIPART, Answer, is_json
from .drafts import Draft, Served
from .mock import BODYLESS, Message, Service, Upstream, Violation, find_media
from .parameters import deep, text, write, write_path
from .schemas import Schemas
from .values import Generator

TOKEN = "token:of-the-judge-0123456789"
LONGEST_TARGET = 7_000


class Gateway:
    """A running gateway that serves a pack."""

    def __init__(self, program, folder, draft, port, seconds=120):
        old, new = draft.sides
        work = folder.parent
        key = subprocess.run([program, "key", "generate"], capture_output=True, text=True, check=True).stdout.strip()
        config = work / "switchback.yaml"
        config.write_text(
            f"listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: 'sqlite:{work}/store.db'\nkey: ${{JUDGE_KEY}}\n"
            f"mapping: {json.dumps(str(folder))}\nfronts: {{ /{old}: {{ speaks: {old} }} }}\n"
            f"upstreams: {{ {new}: {{ url: 'http://127.0.0.1:{port}' }} }}\n"
            f"clients: [{{ name: judge, {old}_token: {json.dumps(TOKEN)}, credentials: {{ {new}: 'service:0123456789' }} }}]\n"
            "log: { format: text, level: 'info,switchback::access=off' }\n")
        self.side = old
        self.process = subprocess.Popen([program, "serve", "--config", str(config)], stderr=subprocess.PIPE, text=True,
                                        stdout=subprocess.DEVNULL, env={**os.environ, "JUDGE_KEY": key})
        self.log, self.port, self.connection = [], 0, None
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        end = time.monotonic() + seconds
        while not self.port and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        if not self.port:
            self.stop()
            raise RuntimeError("serve: " + " | ".join(line.strip() for line in self.log[-4:])[-500:])

    def read(self):
        for line in self.process.stderr:
            self.log = self.log[-40:] + [line]
            address = re.search(r'clients="?127\.0\.0\.1:(\d+)', line)
            if address:
                self.port = int(address.group(1))

    def send(self, method, target, headers, body):
        for again in (True, False):
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=40)
                self.connection.request(method, f"/{self.side}{target}", body or None, headers)
                answer = self.connection.getresponse()
                fields = {name.lower(): value for name, value in answer.getheaders()}
                return answer.status, Message(str(answer.status), fields, answer.read())
            except (http.client.HTTPException, OSError) as error:
                self.connection = None
                if not again or isinstance(error, TimeoutError):
                    return 0, Message(f"no answer: {error}", {}, b"")

    def stop(self):
        if self.connection is not None:
            self.connection.close()
        # The gateway drains for seconds after SIGTERM, and nothing is in flight.
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()


@dataclass
class Request:
    method: str
    target: str
    headers: dict
    body: bytes
    names: tuple        # of the parameters and members that it has


@dataclass
class Finding:
    """A violation in the traffic of one operation, with its first example."""
    kind: str           # `call` or `answer`
    operation: str
    violation: Violation
    example: dict
    count: int = 1
    is_excused: bool = False

    def to_json(self):
        violation = self.violation
        return {"kind": self.kind, "operation": self.operation, "where": violation.label(), "name": violation.name,
                "rule": violation.rule, "message": violation.message, "count": self.count, "excused": self.is_excused,
                "example": self.example}


@dataclass
class Outcome:
    """The traffic of one pair of documents."""
    sent: int = 0
    invalid_calls: int = 0
    invalid_answers: int = 0
    excused: int = 0
    undeclared_errors: int = 0
    skipped: list = field(default_factory=list)
    findings: list = field(default_factory=list)


class Client:
    """Writes requests that the old document allows."""

    def __init__(self, service, credential, count):
        self.service, self.count = service, count
        self.credential = credential

    def requests(self, operation):
        """Returns requests: the least, the most, then variations."""
        parameters = [(one, self.valid(one.schema)) for one in operation.parameters if not self.is_credential(one)]
        media = self.media(operation.body)
        bodies = {name: self.valid(find_media(name, operation.body.media)[0], name in (FORM, MULTIPART)) for name in media}
        if any(one.required and not values for one, values in parameters) or media and not any(bodies.values()) \
                and operation.body.required:
            return []
        forms = max([2] + [len(values) for _, values in parameters] + [len(values) for values in bodies.values()])
        made = []
        for turn in range(min(self.count, forms)):
            name = media[turn % len(media)] if media and turn > 1 else media[0] if media else ""
            request = self.write(operation, parameters, name, bodies.get(name), turn)
            if request is not None and request not in made:
                made.append(request)
        return made

    def is_credential(self, parameter):
        return self.service.is_credential(parameter) or parameter.place == "header" and \
            parameter.name.lower() in ("authorization", "accept", "content-type")

    def media(self, body):
        if body is None:
            return []
        ranked = sorted(body.media, key=lambda one: (not is_json(one), one != FORM, one != MULTIPART))
        return [one for one in ranked if "*" not in one or body.media[one] is None] or ["application/json"] * ("*/*" in body.media)

    def valid(self, handle, is_form=False):
        """Returns the generated values that pass the schema; optional members that contradict themselves are
        removed.
        """
        if handle is None:
            return []
        schemas, found = self.service.schemas, []
        for value in self.service.generator.values(handle, "request", self.count):
            value = without_empty(value) if is_form else value
            for _ in range(4):
                # A member that the old document does not declare is not sent either.
                errors = schemas.errors(handle, value, "request", True)
                if not errors:
                    found.append(value)
                    break
                if not all(remove(value, place) for place, _, _ in errors):
                    break
        return found

    def write(self, operation, parameters, media, bodies, turn):
        path, query, headers, names = operation.path, [], {"accept": accept_of(operation)}, []
        cookies = []
        for one, values in parameters:
            if not values or turn == 0 and not one.required:
                continue
            value = values[turn % len(values)]
            names.append(one.name)
            if one.place == "path":
                written = write_path(one, value)
                if not written or written in (".", ".."):
                    return None
                path = path.replace(f"{{{one.name}}}", written)
            elif one.place == "query":
                query += write(one, value)
            elif one.place == "header":
                headers |= {key: part for key, part in write(one, value) if part.isascii() and "\n" not in part}
            else:
                cookies += [f"{key}={quote(part)}" for key, part in write(one, value)]
        if cookies:
            headers["cookie"] = "; ".join(cookies)
        body = b""
        handle = find_media(media, operation.body.media)[0] if media else None
        if media and (turn > 0 or operation.body.required) and (bodies or handle is None):
            value = bodies[turn % len(bodies)] if bodies else None
            names += sorted(members(value))
            content_type, body = self.body(operation, media, value)
            headers["content-type"] = content_type
        query += self.credential.get("query", [])
        headers |= self.credential.get("headers", {})
        target = path + ("?" + urlencode(query, quote_via=quote) if query else "")
        if len(target) > LONGEST_TARGET:
            return None
        return Request(operation.method, target, headers, body, tuple(names))

    def body(self, operation, media, value):
        if is_json(media):
            return media, json.dumps(value if value is not None else {}).encode()
        if media in (FORM, MULTIPART):
            fields = []
            handle = find_media(media, operation.body.media)[0]
            flat = self.service.document.flat(handle) if handle else None
            for name, one in (value or {}).items():
                style, explode = operation.body.encoding.get(name, ("form", True))
                if isinstance(one, dict):
                    fields += deep(name, one) if style == "deepObject" else [(name, json.dumps(one))]
                elif isinstance(one, list) and style == "deepObject":
                    fields += deep(name, one)
                elif isinstance(one, list):
                    parts = [text(part) for part in one]
                    fields += [(name, part) for part in parts] if explode else [(name, ",".join(parts))]
                elif one is not None or flat is None:
                    fields.append((name, text(one)))
            if media == FORM:
                return media, urlencode(fields).encode()
            parts = "".join(f'--judge\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{part}\r\n' for name, part in fields)
            return f"{media}; boundary=judge", (parts + "--judge--\r\n").encode()
        return media, b"bytes that are no JSON"


@dataclass
class Sent:
    """A body of the service, by its own document."""
    service: Service
    draft: Draft
    served: Served
    handle: tuple
    value: object

    def names(self, place):
        """Returns the names of all alternatives at a place that permit the value there; an empty set if it is
        not known by which of them the value was sent.
        """
        document, handles, value = self.service.document, [self.handle], self.value
        for step in place:
            handles = [inner for handle in handles for leaf in self.leaves(handle) for inner in members_at(document.flat(leaf), step)]
            value = value[step]
        leaves = [leaf for handle in handles for leaf in self.leaves(handle)]
        names = {names_of(document, leaf) for leaf in leaves
                 if self.service.schemas.validator(leaf, "response").is_valid(value)}
        return set() if "" in names else names

    def leaves(self, handle, depth=0):
        groups = self.service.document.flat(handle).groups
        if not groups or depth > 8:
            return [handle]
        return [leaf for _, branches in groups for branch in branches for leaf in self.leaves(branch, depth + 1)]

    def is_disclosed(self, place, names):
        members = tuple(step for step in place if isinstance(step, str))
        return all(self.draft.lacks(self.served, members, name) for name in names)


def members_at(flat, step):
    """Returns the schemas of a member or an element."""
    if isinstance(step, int):
        return [flat.items] if flat.items else []
    extra = flat.additional if isinstance(flat.additional, tuple) else None
    return [one for one in [flat.properties.get(step, extra)] if one]


class Traffic:
    """Judges the traffic of one draft."""

    def __init__(self, draft, old, new, count, seconds):
        self.draft, self.old, self.new, self.count, self.seconds = draft, old, new, count, seconds
        self.places = draft.manifest.get("credentials") or {}
        self.client_service = self.service(old, draft.sides[0])
        self.upstream_service = self.service(new, draft.sides[1])
        self.client = Client(self.client_service, credential_of(self.places.get(draft.sides[0]) or {}), count)
        self.outcome = Outcome()
        self.by_label = {}
        self.equal = {}

    def service(self, document, side):
        return Service(document, Schemas(document), Generator(document), names_of_credentials(self.places.get(side) or {}))

    def run(self, program, folder):
        """Starts the gateway, and sends everything. A 401 comes last: the gateway may take its token for
        refused.
        """
        upstream = Upstream(self.upstream_service, self.count)
        gateway = None
        try:
            gateway = Gateway(program, folder, self.draft, upstream.port)
            end = time.monotonic() + self.seconds
            for served in self.draft.served:
                for turn, request in self.exchanges(served):
                    if time.monotonic() > end:
                        self.outcome.skipped.append(f"{served.old}: the time of the pair is over")
                        break
                    self.exchange(gateway, upstream, served, request, turn)
            self.own_errors(gateway, upstream)
        finally:
            if gateway is not None:
                gateway.stop()
            upstream.shutdown()
            upstream.server_close()
        self.outcome.findings = list(self.by_label.values())
        return self.outcome

    def exchanges(self, served):
        a, b = self.old.operations.get(served.old), self.new.operations.get(served.new)
        if a is None or b is None:
            return
        requests = self.client.requests(a)
        if not requests:
            self.outcome.skipped.append(f"{served.old}: no valid request was generated")
            return
        answers = self.upstream_service.answers(b, self.count)
        for turn in range(max(len(requests), len(answers))):
            yield turn, requests[turn % len(requests)]

    def exchange(self, gateway, upstream, served, request, turn):
        a, b = self.old.operations[served.old], self.new.operations[served.new]
        upstream.expected, upstream.turn, upstream.calls = served.new, turn, []
        status, answer = gateway.send(request.method, request.target, request.headers, request.body)
        calls = upstream.calls
        self.outcome.sent += 1
        example = {"request": brief(f"{request.method} {request.target}", request.body),
                   "calls": [brief(call.message.line, call.message.body) for call in calls],
                   "answered": [brief(str(call.status), call.answer.body) for call in calls],
                   "answer": brief(answer.line, answer.body)}
        wrong_calls = [violation for call in calls for violation in call.violations]
        wrong_answers = []
        if not calls:
            wrong_calls.append(Violation("status", (str(status),), "not-called",
                                         f"the gateway answers {answer.line} without a call: {brief('', answer.body)}"))
        elif status == 0 or status >= 500 and calls[-1].status < 500 and status != calls[-1].status:
            wrong_answers.append(Violation("status", (str(calls[-1].status),), "not-passed",
                                           f"the service answers {calls[-1].status}, the client gets {answer.line}: "
                                           + brief("", answer.body)))
        else:
            wrong_answers = self.client_service.check_answer(a, answer, status, self.sent(served, b, calls[-1], answer))
        if calls and self.are_equal(a, b):
            wrong_calls += altered(request, calls[0].message, a)
            # Where a document declares errors alone, the mock invents a success. Neither document forbids it, so
            # it has to pass as it is.
            if status == calls[-1].status and b.answer(status)[1] is None:
                wrong_answers = [one for one in wrong_answers if (one.part, one.rule) != ("status", "undeclared")]
            if not wrong_answers:
                wrong_answers += altered_answer(request, calls[-1], status, answer)
        self.record("call", served, wrong_calls, example, request)
        self.record("answer", served, wrong_answers, example, request)

    def sent(self, served, operation, call, answer):
        """Returns the body that the service sent, if it passed as it is."""
        handle = find_media(call.answer.headers.get("content-type", ""), (operation.answer(call.status)[1] or Answer({}, {})).media)[0]
        value = call.answer.json()
        return Sent(self.upstream_service, self.draft, served, handle, value) if handle and value == answer.json() else None

    def record(self, kind, served, violations, example, request):
        counted = excused = False
        for violation in violations:
            if violation.rule == "undeclared-error":
                self.outcome.undeclared_errors += 1
                continue
            # The report names a path variable as the old document does.
            name = self.path_names(served).get(violation.name, violation.name) if violation.part == "path" else violation.name
            is_excused = violation.rule == "alternative" or self.draft.excuses(served, name)
            if violation.rule == "not-called":
                is_excused = bool(served.report.get("refusals")) and any(self.draft.excuses(served, name) for name in request.names)
            counted |= not is_excused
            excused |= is_excused
            label = (kind, served.old, violation.label())
            if label in self.by_label:
                self.by_label[label].count += 1
            else:
                self.by_label[label] = Finding(kind, served.old, violation, example, is_excused=is_excused)
        if counted and kind == "call":
            self.outcome.invalid_calls += 1
        elif counted:
            self.outcome.invalid_answers += 1
        elif excused:
            self.outcome.excused += 1

    def path_names(self, served):
        """Returns the names of path variables of the old document by those of the new one."""
        a, b = self.old.operations[served.old], self.new.operations[served.new]
        return dict(zip(b.names_in_path(), a.names_in_path()))

    def are_equal(self, a, b):
        """Returns whether two operations do not differ in any direction: nothing may change on the way."""
        if a.key not in self.equal:
            self.equal[a.key] = a.key == b.key and not Differ(self.old, self.new).compare(a, b) \
                and not Differ(self.new, self.old).compare(b, a)
        return self.equal[a.key]

    def own_errors(self, gateway, upstream):
        """Sends an unknown token once per type of error: the gateway's own answer must be as the old document
        declares it.
        """
        seen = set()
        for served in self.draft.served:
            operation = self.old.operations.get(served.old)
            declared = operation and operation.answer(401)[1]
            handles = [handle for media, handle in declared.media.items() if handle and is_json(media)] if declared else []
            kind = tuple(id(self.old.follow(*part)[1]) for handle in handles[:1] for part in handle)
            requests = self.client.requests(operation) if kind and kind not in seen else []
            if not requests:
                continue
            seen.add(kind)
            headers = {name: value.replace("judge", "stranger") if name in self.client.credential["headers"] else value
                       for name, value in requests[0].headers.items()}
            headers |= {"authorization": "Basic " + base64.b64encode(b"a:stranger").decode()} \
                if headers.get("authorization", "").startswith("Basic ") else {}
            target = requests[0].target.replace(quote(TOKEN), "stranger").replace(TOKEN, "stranger")
            upstream.calls = []
            status, answer = gateway.send(requests[0].method, target, headers, requests[0].body)
            if status == 401 and not upstream.calls:
                self.outcome.sent += 1
                found = self.client_service.check_answer(operation, answer, status)
                found = [Violation(one.part, one.place, f"own-error-{one.rule}", one.message) for one in found]
                example = {"request": brief(f"{requests[0].method} {target} with an unknown token", b""), "calls": [], "answered": [],
                           "answer": brief(answer.line, answer.body)}
                self.record("answer", served, found, example, requests[0])


def altered(request, call, operation):
    path, _, sent = request.target.partition("?")
    called, _, received = call.line.split(" ")[1].partition("?")
    if unquote(path) != unquote(called):
        yield Violation("path", (), "altered", f"sent `{path}`, received `{called}`")
    sent, received = (Counter(filter(None, query.split("&"))) for query in (sent, received))
    if sent != received and not any("token" in parameter for parameter in sent):
        lost, added = ("&".join((one - other).elements())[:200] for one, other in ((sent, received), (received, sent)))
        yield Violation("query", (), "altered", f"lost `{lost}`, added `{added}`")
    same = request.body == call.body or is_json(request.headers.get("content-type", "")) and \
        Message("", {}, request.body).json() == call.json()
    if not same and "multipart" not in request.headers.get("content-type", ""):
        yield Violation("body", (), "altered", f"sent `{brief('', request.body)}`, received `{brief('', call.body)}`")


def altered_answer(request, call, status, answer):
    if status != call.status:
        yield Violation("status", (str(call.status),), "altered", f"the service answers {call.status}, the client gets {status}")
    elif status not in BODYLESS and request.method != "HEAD" and answer.body != call.answer.body \
            and (answer.json() is None or answer.json() != call.answer.json()):
        yield Violation("body", (str(status),), "altered",
                        f"the service answers `{brief('', call.answer.body)}`, the client gets `{brief('', answer.body)}`")


def accept_of(operation):
    """Returns the media type that a client of the operation asks for."""
    media = [one for status, answer in operation.answers.items() if status.startswith("2") for one in answer.media]
    return next((one for one in media if is_json(one)), media[0] if media else "*/*")


def credential_of(declared):
    """Returns the fields in which a client of the side sends its token."""
    first = (declared.get("read") or [declared.get("send")])[0]
    encoded = base64.b64encode(TOKEN.encode()).decode()
    if isinstance(first, str):
        first = {"header": first, "scheme": declared.get("scheme")}
    first = first or {"header": "authorization", "scheme": "Bearer"}
    if "basic" in first:
        return {"headers": {"authorization": f"Basic {encoded}"}}
    if "query" in first:
        return {"query": [(first["query"], TOKEN)], "headers": {}}
    scheme = first.get("scheme") or declared.get("scheme") or "none"
    return {"headers": {first["header"].lower(): TOKEN if scheme == "none" else f"{scheme} {TOKEN}"}}


def names_of_credentials(declared):
    names = []
    for one in [*(declared.get("read") or []), declared.get("send")]:
        for place in one if isinstance(one, list) else [one]:
            names += [place] if isinstance(place, str) else [place.get("header"), place.get("query"), place.get("form")] if place else []
    return [name for name in names if name] + ["authorization"]


def members(value):
    if isinstance(value, dict):
        return set(value).union(*map(members, value.values()))
    return set().union(*map(members, value)) if isinstance(value, list) else set()


def without_empty(value):
    """Removes empty lists, empty objects and nulls, for which a form has no notation."""
    if isinstance(value, dict):
        inner = {name: without_empty(one) for name, one in value.items()}
        return {name: one for name, one in inner.items() if one not in ([], {}, None)}
    return [without_empty(one) for one in value] if isinstance(value, list) else value


def remove(value, place):
    """Removes the innermost member of an object on the way to a place; returns whether there was one."""
    holder = None
    for step in place:
        if isinstance(value, dict) and step in value:
            holder = (value, step)
        elif not (isinstance(value, list) and isinstance(step, int) and step < len(value)):
            break
        value = value[step]
    if holder:
        del holder[0][holder[1]]
    return holder is not None


def brief(line, body):
    shown = f"{line} {body.decode(errors='replace')}".strip()
    return shown if len(shown) <= 500 else shown[:497] + "…"
