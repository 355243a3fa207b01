"""Lists the breaking differences of two operations by the rules of oasdiff, written anew.

Requests flow from the old version to the new one, responses from the new one to the old one. A difference is
breaking if a request that the old document allows is not allowed by the new one, or a response that the new
document allows by the old one. Rules have the names of oasdiff, without their distinction of body and
property. Lifecycle rules (deprecation, sunset, stability) are left out. The rules of OURS are additions:
oasdiff reports them as information or not at all, but a client is affected. Alternatives are matched by name,
else by members: one that equals another in all but its name is no difference.
"""
import json
import re
from dataclasses import asdict, dataclass

from .documents import is_json

OURS = set("""response-property-enum-removed response-property-pattern-changed response-property-any-of-added
response-property-bound-unset response-success-status-added request-parameter-style-changed request-parameter-moved
request-property-unique-items-added response-property-unique-items-removed response-error-body-changed""".split())
WIDER = {("int32", "int64"), ("float", "double"), ("date", None), ("int32", "double")}
# Formats that restrict no text.
LOOSE = {None, "", "string", "password", "text", "binary", "byte", "double", "float", "markdown", "html", "url", "uri"}
TEXTS = {"description", "title", "example", "examples", "externalDocs"}
MAPS = {"properties", "patternProperties", "dependentRequired", "dependentSchemas"}
DEPTH = 14


@dataclass(frozen=True)
class Difference:
    rule: str
    direction: str          # request or response
    part: str               # `body`, `query`, `path`, `header`, `cookie`, `status`, `media`
    place: tuple            # members from the outside; a parameter has one
    old: str
    new: str
    status: str = ""        # of a response
    types: tuple = ()       # names of the schemas that the member belongs to, on both sides

    @property
    def name(self):
        return self.place[-1] if self.place else ""

    def to_json(self):
        return asdict(self) | {"place": list(self.place), "types": list(self.types)}


class Differ:
    def __init__(self, old, new):
        self.old, self.new = old, new
        self.equal = {}

    def compare(self, a, b):
        """Returns the breaking differences of two paired operations."""
        self.found = {}
        # A type is compared once per direction, at the first place that has it.
        self.seen = {"request": set(), "response": set()}
        self.parameters(a, b)
        self.bodies(a, b)
        self.answers(a, b)
        return list(self.found)

    def add(self, rule, direction, part, place, old="", new="", status="", types=()):
        types = tuple(dict.fromkeys(name for name in types if name))
        self.found[Difference(rule, direction, part, tuple(place), brief(old), brief(new), status, types)] = None

    # --- requests ------------------------------------------------------------

    def parameters(self, a, b):
        renamed = dict(zip(a.names_in_path(), b.names_in_path()))
        matched = set()
        for one in a.parameters:
            if is_ignored(one):
                continue
            name = renamed.get(one.name, one.name) if one.place == "path" else one.name
            other = b.parameter(one.place, name)
            if other is None:
                moved = next((two for two in b.parameters if two.name == one.name), None)
                if moved is not None:
                    matched.add((moved.place, moved.name.lower()))
                    self.add("request-parameter-moved", "request", one.place, [one.name], one.place, moved.place)
                else:
                    self.add("request-parameter-removed", "request", one.place, [one.name], one.place, "none")
                continue
            matched.add((other.place, other.name.lower()))
            if other.required and not one.required:
                self.add("request-parameter-become-required", "request", one.place, [one.name], "optional", "required")
            self.styles(one, other)
            self.schema("request", one.place, [one.name], one.schema, other.schema, 0)
            defaults = [self.old.flat(one.schema).default, self.new.flat(other.schema).default]
            if defaults[0] != defaults[1] and not one.required:
                self.add("request-parameter-default-value-changed", "request", one.place, [one.name], *defaults)
        for other in b.parameters:
            is_known = (other.place, other.name.lower()) in matched or is_ignored(other) or other.place == "path"
            if other.required and not is_known:
                self.add("new-required-request-parameter", "request", other.place, [other.name], "none", "required")
        if len(a.names_in_path()) < len(b.names_in_path()):
            for name in b.names_in_path()[len(a.names_in_path()):]:
                self.add("new-request-path-parameter", "request", "path", [name], "none", "required")

    def styles(self, one, other):
        flats = self.old.flat(one.schema), self.new.flat(other.schema)
        if not any(flat.types is None or flat.types & {"array", "object"} for flat in flats):
            return
        if any(flat.is_any() for flat in flats):
            return
        forms = [(p.style, p.explode, p.is_json) for p in (one, other)]
        if forms[0] != forms[1]:
            self.add("request-parameter-style-changed", "request", one.place, [one.name], *forms)

    def bodies(self, a, b):
        if a.body is None:
            if b.body is not None and b.body.required:
                self.add("added-required-request-body", "request", "media", [], "none", "required")
            return
        if b.body is None:
            self.add("request-body-removed", "request", "media", [], sorted(a.body.media), "none")
            return
        if b.body.required and not a.body.required:
            self.add("request-body-became-required", "request", "media", [], "optional", "required")
        for media, handle in a.body.media.items():
            known, other = match_media(media, b.body.media)
            if known is None:
                self.add("request-body-media-type-removed", "request", "media", [media], media, sorted(b.body.media))
            elif handle is not None and other is not None:
                self.schema("request", "body", [], handle, other, 0)

    # --- responses ------------------------------------------------------------

    def answers(self, a, b):
        for status in a.answers:
            if status.startswith("2") and b.answer(status)[1] is None:
                self.add("response-success-status-removed", "response", "status", [status], status, sorted(b.answers))
        for status, theirs in b.answers.items():
            if status.startswith(("2", "3")) and a.answer(status)[1] is None and a.answers:
                self.add("response-success-status-added", "response", "status", [status], sorted(a.answers), status)
            # A default of the new version answers what the old one declares by number.
            pairs = [a.answer(status)] if status != "default" else [
                (key, ours) for key, ours in a.answers.items() if key == "default" or key not in b.answers]
            for key, ours in pairs:
                if ours is not None and not (key == "default" and status.startswith("2") and "200" in a.answers):
                    self.answer(status if status != "default" else key, ours, theirs)

    def answer(self, status, ours, theirs):
        for media, expected in ours.media.items() if theirs.media else ():
            known, handle = match_media(media, theirs.media)
            if known is None:
                self.add("response-media-type-removed", "response", "media", [status], media, sorted(theirs.media), status)
            elif expected is not None and handle is None and is_json(media):
                self.add("response-body-media-type-schema-removed", "response", "media", [status], known, "no schema", status)
            elif expected is not None and handle is not None:
                self.schema("response", "body", [], expected, handle, 0, status)
        if ours.media and not theirs.media and any(ours.media.values()) and status.startswith("2"):
            self.add("response-media-type-removed", "response", "media", [status], sorted(ours.media), "no body", status)
        for name, (required, handle) in ours.headers.items():
            if name not in theirs.headers:
                rule = "required-response-header-removed" if required else "optional-response-header-removed"
                self.add(rule, "response", "header", [name], "declared", "none", status)
                continue
            other_required, other = theirs.headers[name]
            if required and not other_required:
                self.add("response-header-became-optional", "response", "header", [name], "required", "optional", status)
            self.schema("response", "header", [name], handle, other, 0, status)

    # --- schemas ------------------------------------------------------------

    def schema(self, direction, part, place, a, b, depth, status="", types=()):
        key = (part, identity(self.old, a), identity(self.new, b))
        if key in self.seen[direction] or depth > DEPTH or self.are_equal(a, b):
            return
        self.seen[direction].add(key)
        x, y = self.old.flat(a), self.new.flat(b)
        add = lambda rule, old="", new="", at=place, of=types: self.add(  # noqa: E731
            f"{direction}-{'parameter' if part in ('query', 'path', 'cookie') else 'property'}-{rule}"
            if direction == "request" and part == "header" or part != "header" else f"response-header-{rule}",
            direction, part, at, old, new, status, of)
        again = lambda at, c, d, of=types: self.schema(  # noqa: E731
            direction, part, at, c, d, depth + 1, status, of)
        # `given` is what the sender may send, `accepted` what the receiver expects.
        given, accepted = (x, y) if direction == "request" else (y, x)
        if x.groups or y.groups:
            self.branches(direction, add, again, place, a, b, x, y)
            if not (x.properties and y.properties):
                return
        if self.types(direction, part, add, given, accepted, x, y):
            return
        self.scalars(direction, add, given, accepted, x, y)
        own = tuple(name for name in x.names[:1] + y.names[:1]) or types
        self.members(direction, part, add, again, place, x, y, own)
        if x.items and y.items:
            again(place, x.items, y.items)
        maps = [flat.additional for flat in (x, y)]
        if all(isinstance(one, tuple) for one in maps):
            again([*place, "*"], *maps)

    def are_equal(self, a, b):
        return len(a) == len(b) and all(self.is_equal(one, two) for one, two in zip(a, b))

    def is_equal(self, a, b, is_map=False):
        """Returns whether two schemas are written equally, with equal targets of their references."""
        (x_file, x), (y_file, y) = a, b
        if isinstance(x, dict) and isinstance(y, dict) and "$ref" in x and "$ref" in y and not is_map:
            (x_file, x, name), (y_file, y, other) = self.old.follow(x_file, x), self.new.follow(y_file, y)
            key = (id(x), id(y))
            if name == other and key not in self.equal:
                # A recursive type is equal unless a difference is found; then its parts are compared again.
                known = set(self.equal)
                self.equal[key] = True
                if not self.is_equal((x_file, x), (y_file, y)):
                    self.equal = {one: result for one, result in self.equal.items() if one in known or not result}
                    self.equal[key] = False
            return name == other and self.equal[key]
        if isinstance(x, dict) and isinstance(y, dict):
            # A member may have the name of a keyword.
            keys = [{key for key in one if is_map or key not in TEXTS} for one in (x, y)]
            return keys[0] == keys[1] and all(
                self.is_equal((x_file, x[key]), (y_file, y[key]), key in MAPS and not is_map) for key in keys[0])
        if isinstance(x, list) and isinstance(y, list):
            return len(x) == len(y) and all(self.is_equal((x_file, one), (y_file, two)) for one, two in zip(x, y))
        return x == y and type(x) is type(y)

    def types(self, direction, part, add, given, accepted, x, y):
        """Compares types and nullability; returns whether they are too different to go on."""
        if given.nullable and not accepted.nullable and not accepted.is_any():
            add("become-not-nullable" if direction == "request" else "became-nullable", nullness(x), nullness(y))
        sent, wanted = kinds_of(given), kinds_of(accepted)
        if wanted is None:
            return sent is not None
        if part != "body" and direction == "request" and "string" in wanted and "string" not in (sent or ()):
            # Every text of a parameter is a string.
            return True
        if sent is None:
            if given.is_any():
                add("type-changed", kinds(x), kinds(y))
            return True
        beyond = {kind for kind in sent if kind not in wanted and not (kind == "integer" and "number" in wanted)}
        if beyond:
            add("type-changed", kinds(x), kinds(y))
        return not sent & wanted

    def scalars(self, direction, add, given, accepted, x, y):
        if given.format != accepted.format and (given.format, accepted.format) not in WIDER \
                and accepted.format not in LOOSE and not given.enum:
            add("type-changed", f"format {x.format}", f"format {y.format}")
        if accepted.enum is not None:
            if given.enum is None:
                if "boolean" not in (given.types or ()):
                    add("became-enum" if direction == "request" else "enum-removed", x.enum, y.enum)
            else:
                beyond = [value for value in given.enum if value not in accepted.enum]
                if beyond:
                    add("enum-value-removed" if direction == "request" else "enum-value-added", x.enum, brief(beyond))
        elif given.enum is None:
            if accepted.pattern and given.pattern != accepted.pattern:
                add("pattern-added" if not given.pattern else "pattern-changed", x.pattern, y.pattern)
        for keyword, limit in accepted.bounds.items():
            sent = given.bounds.get(keyword)
            is_low = "min" in keyword.lower()
            strict = "exclusive" + keyword.capitalize()
            if sent is None and strict in given.bounds:
                sent = given.bounds[strict]
            if given.enum is not None or sent is None and is_low and limit == 0 and keyword.startswith("min"):
                continue
            if sent is None or (sent < limit if is_low else sent > limit):
                name = re.sub(r"([A-Z])", r"-\1", keyword).lower()
                if sent is None:
                    add(f"{name}-set" if direction == "request" else "bound-unset", f"{keyword} {x.bounds.get(keyword)}",
                        f"{keyword} {y.bounds.get(keyword)}")
                else:
                    change = ("increased" if is_low else "decreased") if direction == "request" \
                        else ("decreased" if is_low else "increased")
                    add(f"{name}-{change}", x.bounds.get(keyword), y.bounds.get(keyword))
        for keyword, part in accepted.further.items():
            name = re.sub(r"([A-Z])", r"-\1", keyword).lower()
            if keyword not in given.further:
                add(f"{name}-added" if direction == "request" else f"{name}-removed", keyword in x.further, keyword in y.further)
            elif not self.is_equal(x.further[keyword], y.further[keyword], keyword in MAPS):
                add(f"{name}-changed", x.further[keyword][1], y.further[keyword][1])
        if "prefixItems" in given.further and "prefixItems" not in accepted.further:
            add("prefix-items-removed" if direction == "request" else "prefix-items-added", "", "")
        if accepted.unique and not given.unique:
            add("unique-items-added" if direction == "request" else "unique-items-removed", x.unique, y.unique)

    def members(self, direction, part, add, again, place, x, y, types):
        if not (x.is_object() and y.is_object()):
            return
        skips = "read_only" if direction == "request" else "write_only"
        mine = {name: handle for name, handle in x.properties.items() if not getattr(self.old.flat(handle), skips)}
        theirs = {name: handle for name, handle in y.properties.items() if not getattr(self.new.flat(handle), skips)}
        for name, handle in mine.items():
            at = [*place, name]
            if name not in theirs:
                # A free-form object of the new version declares no members to compare.
                if y.properties or not y.is_any():
                    kind = "" if direction == "request" else "required-" if name in x.required else "optional-"
                    if kind:
                        self.add(f"response-{kind}property-removed", direction, part, at, "declared", "none", types=types)
                    else:
                        add("removed", "declared", "none", at, types)
                continue
            if direction == "request" and name in y.required and name not in x.required:
                add("became-required", "optional", "required", at, types)
            if direction == "response" and name in x.required and name not in y.required:
                add("became-optional", "required", "optional", at, types)
            again(at, handle, theirs[name], types)
        if direction == "request":
            for name in y.required - set(x.properties):
                if name in theirs:
                    self.add("new-required-request-property", direction, part, [*place, name], "none", "required", types=types)

    def branches(self, direction, add, again, place, a, b, x, y):
        ours = x.groups[0][1] if x.groups else [a]
        theirs = y.groups[0][1] if y.groups else [b]
        keyword = "one-of" if "oneOf" in [group[0] for group in x.groups + y.groups] else "any-of"
        if not x.groups and x.is_any() or not y.groups and y.is_any():
            return
        sent, wanted = (ours, theirs) if direction == "request" else (theirs, ours)
        left, right = (self.old, self.new) if direction == "request" else (self.new, self.old)
        for branch in sent:
            match = best(left, branch, right, wanted)
            if match is None:
                label = names_of(left, branch)
                add(f"{keyword}-removed" if direction == "request" else f"{keyword}-added",
                    *((label, "none") if direction == "request" else ("none", label)))
                continue
            pair = (branch, match) if direction == "request" else (match, branch)
            if pair != (a, b):
                again(place, *pair)


def is_ignored(parameter):
    """OpenAPI ignores header parameters of these names: media types and security schemes declare them."""
    return parameter.place == "header" and parameter.name.lower() in ("accept", "content-type", "authorization")


def best(left, branch, right, wanted):
    """Returns the alternative that corresponds to a branch: by name, else by type and members in common."""
    name, x = names_of(left, branch), left.flat(branch)
    scored = []
    for other in wanted:
        y = right.flat(other)
        if name and name == names_of(right, other):
            return other
        sent, expected = kinds_of(x), kinds_of(y)
        if sent and expected and not sent & expected:
            continue
        union = set(x.properties) | set(y.properties)
        share = len(set(x.properties) & set(y.properties)) / len(union) if union else 1.0
        alike = [x.types == y.types, x.enum == y.enum, x.format == y.format, x.bounds == y.bounds]
        scored.append(((share, sum(alike)), other))
    (score, _), other = max(scored, key=lambda one: one[0], default=((0, 0), None))
    return other if score > 0.3 else None


def identity(document, handle):
    return tuple(id(document.follow(*part)[1]) for part in handle)


def names_of(document, handle):
    flat = document.flat(handle)
    node = handle[0][1]
    if not flat.names and flat.items and handle != flat.items:
        inner = names_of(document, flat.items)
        return f"[{inner}]" if inner else ""
    return flat.names[0] if flat.names else node.get("title", "") if isinstance(node, dict) else ""


def kinds_of(flat):
    if flat.types is not None:
        return flat.types
    if flat.enum:
        return {kind_of(value) for value in flat.enum}
    return {"object"} if flat.properties else {"array"} if flat.items else None


def kind_of(value):
    for kind, python in (("boolean", bool), ("integer", int), ("number", float), ("string", str), ("array", list)):
        if isinstance(value, python):
            return kind
    return "object"


def kinds(flat):
    return "|".join(sorted(kinds_of(flat) or {"any"}))


def nullness(flat):
    return "nullable" if flat.nullable else "not nullable"


def match_media(media, others):
    """Returns the declared media type that includes this one, and its schema."""
    plain = media.split(";")[0].strip().lower()
    for name, handle in others.items():
        other = name.split(";")[0].strip().lower()
        if other == plain or other == "*/*" or other.endswith("/*") and plain.startswith(other[:-1]):
            return name, handle
    if plain == "*/*":
        return next(iter(others.items()), (None, None))
    for name, handle in others.items():
        if is_json(plain) and is_json(name):
            return name, handle
    return None, None


def brief(value):
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 160 else text[:157] + "…"
