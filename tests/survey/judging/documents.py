"""Reads OpenAPI documents (Swagger 2.0, OpenAPI 3.0 and 3.1) into one form.

A schema is a *handle*: a tuple of parts `(file, node)`, all of which apply. `Document.flat` merges the parts,
with `$ref` resolved and `allOf` merged.
"""
import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote

import yaml

METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"]
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
# Keywords of a Swagger 2.0 parameter or header that belong to its schema.
SCHEMA_KEYS = set("""type format items enum minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern
minItems maxItems uniqueItems default x-nullable""".split())
BOUNDS = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains",
          "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"]
# Keywords that restrict values further, which are compared as they are written.
FURTHER = ["contains", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties", "propertyNames",
           "prefixItems", "unevaluatedItems", "unevaluatedProperties", "contentSchema", "contentMediaType", "contentEncoding"]


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """YAML 1.2: dates are texts, `no` is a text, keys are texts."""
    yaml_implicit_resolvers = {}

    def construct_mapping(self, node, deep=False):
        self.flatten_mapping(node)
        return {text_of(self.construct_object(key, deep=True)): self.construct_object(value, deep=deep)
                for key, value in node.value}


for tag, pattern, first in [
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("merge", r"^<<$", "<"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
]:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))
Loader.add_constructor("tag:yaml.org,2002:map", lambda loader, node: loader.construct_mapping(node, deep=True))
# YAML 1.1 reads 010 as octal.
Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))


def text_of(key):
    return key if isinstance(key, str) else json.dumps(key)


@dataclass
class Parameter:
    name: str
    place: str
    required: bool
    schema: tuple
    style: str
    explode: bool
    is_json: bool = False


@dataclass
class Body:
    required: bool
    media: dict     # media type -> handle, or None without a schema
    encoding: dict  # member of a form -> (style, explode)


@dataclass
class Answer:
    media: dict
    headers: dict   # lower-case name -> (required, handle)


@dataclass
class Operation:
    method: str
    path: str
    id: str
    parameters: list
    body: Body
    answers: dict   # `200`, `2XX`, `default` -> Answer

    @property
    def key(self):
        return f"{self.method} {self.path}"

    def names_in_path(self):
        return re.findall(r"\{([^{}]+)\}", self.path)

    def parameter(self, place, name):
        same = (lambda a, b: a.lower() == b.lower()) if place == "header" else (lambda a, b: a == b)
        return next((one for one in self.parameters if one.place == place and same(one.name, name)), None)

    def answer(self, status):
        """Returns the key and the declaration that applies to a status; `(None, None)` if it is undeclared."""
        for key in [str(status), f"{str(status)[0]}XX", "default"]:
            if key in self.answers:
                return key, self.answers[key]
        return None, None


@dataclass
class Flat:
    """A schema after the merge of its parts."""
    types: object = None            # a set of JSON types, or None for any
    nullable: bool = False
    enum: object = None
    format: object = None
    pattern: object = None
    bounds: dict = field(default_factory=dict)
    properties: dict = field(default_factory=dict)
    required: set = field(default_factory=set)
    items: object = None
    additional: object = None       # None: not declared; a bool; or a handle
    groups: list = field(default_factory=list)      # of alternatives: (keyword, [handle])
    discriminator: object = None    # (member, {value: name of the schema})
    read_only: bool = False
    write_only: bool = False
    unique: bool = False
    multiple: object = None
    further: dict = field(default_factory=dict)     # keyword -> part
    default: object = None
    names: list = field(default_factory=list)       # of referenced schemas

    def is_object(self):
        return self.types is None and bool(self.properties) or self.types is not None and "object" in self.types

    def is_any(self):
        return self.types is None and not (self.properties or self.enum or self.groups or self.items)


class Document:
    def __init__(self, path):
        self.path = Path(path)
        self.files = {}
        self.root_file = str(self.path.resolve())
        self.root = self.load(self.root_file)
        self.is_swagger = "swagger" in self.root
        self.is_31 = str(self.root.get("openapi", "")).startswith("3.1")
        self.flats = {}
        self.made = []              # synthetic nodes; the identity of a node is its address, so they must stay alive
        self.operations = {}
        for path, item in (self.root.get("paths") or {}).items():
            if path.startswith("x-") or not isinstance(item, dict):
                continue
            file, item, _ = self.follow(self.root_file, item)
            for method in METHODS:
                if isinstance(item.get(method), dict):
                    operation = self.operation(file, method, path, item)
                    self.operations[operation.key] = operation

    def load(self, file):
        if file not in self.files:
            text = Path(file).read_text(encoding="utf-8-sig")
            is_json = text.lstrip()[:1] in "{["
            self.files[file] = json.loads(text) if is_json else yaml.load(text, Loader)
        return self.files[file]

    def follow(self, file, node):
        """Follows a chain of `$ref`. Returns the file, the node, and the name of the last target."""
        name = None
        for _ in range(50):
            if not isinstance(node, dict) or not isinstance(node.get("$ref"), str):
                break
            reference, _, pointer = node["$ref"].partition("#")
            if reference:
                file = str((Path(file).parent / unquote(reference)).resolve())
            node = self.load(file)
            name = pointer.rsplit("/", 1)[-1] if pointer else Path(file).stem
            for step in filter(None, pointer.split("/")):
                step = unquote(step).replace("~1", "/").replace("~0", "~")
                node = node[int(step)] if isinstance(node, list) else (node or {}).get(step)
        return file, node, name

    def keep(self, node):
        self.made.append(node)
        return node

    def operation(self, file, method, path, item):
        # Documents of several files may have each operation in one of its own.
        own, node, _ = self.follow(file, item[method])
        by_name = {}
        for at, one in [(file, one) for one in item.get("parameters") or []] + [(own, one) for one in node.get("parameters") or []]:
            at, one, _ = self.follow(at, one)
            if isinstance(one, dict) and "name" in one:
                by_name[(one.get("in"), one["name"])] = (at, one)
        given = list(by_name.values())
        parameters = [self.parameter(at, one) for at, one in given if one.get("in") in ("path", "query", "header", "cookie")]
        # A document that declares no parameter for a variable of the path still has the variable.
        for name in re.findall(r"\{([^{}]+)\}", path):
            if not any(one.place == "path" and one.name == name for one in parameters):
                schema = ((file, self.keep({"type": "string"})),)
                parameters.append(Parameter(name, "path", True, schema, "simple", False))
        body = self.swagger_body(node, given) if self.is_swagger else self.body(own, node)
        answers = {}
        for status, answer in (node.get("responses") or {}).items():
            if not status.startswith("x-"):
                at, answer, _ = self.follow(own, answer)
                answers[status.upper() if status != "default" else status] = self.answer(at, answer or {}, node)
        return Operation(method.upper(), path, node.get("operationId") or "", parameters, body, answers)

    def parameter(self, file, node):
        place, name = node["in"], node["name"]
        required = node.get("required") is True or place == "path"
        if self.is_swagger:
            schema = ((file, self.keep({key: value for key, value in node.items() if key in SCHEMA_KEYS})),)
            styles = {"multi": ("form", True), "ssv": ("spaceDelimited", False), "pipes": ("pipeDelimited", False)}
            usual = ("form", False) if place in ("query", "cookie") else ("simple", False)
            style, explode = styles.get(node.get("collectionFormat"), usual)
            return Parameter(name, place, required, schema, style, explode)
        style = node.get("style") or ("form" if place in ("query", "cookie") else "simple")
        explode = node["explode"] if isinstance(node.get("explode"), bool) else style == "form"
        content = node.get("content") or {}
        is_json = any("json" in media for media in content)
        schema = node.get("schema", next((one.get("schema", {}) for one in content.values()), {}))
        return Parameter(name, place, required, ((file, schema),), style, explode, is_json)

    def swagger_body(self, node, given):
        form = [(at, one) for at, one in given if one.get("in") == "formData"]
        bodies = [(at, one) for at, one in given if one.get("in") == "body"]
        consumes = node.get("consumes") or self.root.get("consumes") or []
        if bodies:
            at, one = bodies[0]
            handle = ((at, one["schema"]),) if "schema" in one else None
            return Body(one.get("required") is True, {media: handle for media in consumes or ["application/json"]}, {})
        if not form:
            return None
        properties = {one["name"]: {key: value for key, value in one.items() if key in SCHEMA_KEYS} for _, one in form}
        schema = self.keep({"type": "object", "properties": properties,
                            "required": [one["name"] for _, one in form if one.get("required") is True]})
        is_file = any(one.get("type") == "file" for _, one in form)
        media = [one for one in consumes if one in (FORM, MULTIPART)] or [MULTIPART if is_file else FORM]
        encoding = {one["name"]: ("form", one.get("collectionFormat") == "multi") for _, one in form}
        return Body(bool(schema["required"]), {one: ((self.root_file, schema),) for one in media}, encoding)

    def body(self, file, node):
        at, body, _ = self.follow(file, node.get("requestBody"))
        if not isinstance(body, dict) or not body.get("content"):
            return None
        media, encoding = self.content(at, body), {}
        for one in body["content"].values():
            for name, how in ((one or {}).get("encoding") or {}).items():
                style = how.get("style", "form")
                encoding[name] = (style, how.get("explode", style == "form"))
        return Body(body.get("required") is True, media, encoding)

    def content(self, file, node):
        media = {}
        for name, one in (node.get("content") or {}).items():
            at, one, _ = self.follow(file, one)
            media[name] = ((at, one["schema"]),) if isinstance(one, dict) and "schema" in one else None
        return media

    def answer(self, file, node, operation):
        headers = {}
        for name, header in (node.get("headers") or {}).items():
            at, header, _ = self.follow(file, header)
            if not isinstance(header, dict):
                continue
            schema = {key: value for key, value in header.items() if key in SCHEMA_KEYS} if self.is_swagger \
                else header.get("schema", {})
            headers[name.lower()] = (header.get("required") is True, ((at, self.keep(schema)),))
        # OpenAPI ignores a declared `Content-Type`; the media types declare it.
        headers.pop("content-type", None)
        if not self.is_swagger:
            return Answer(self.content(file, node), headers)
        if "schema" not in node:
            return Answer({}, headers)
        produces = operation.get("produces") or self.root.get("produces") or ["application/json"]
        return Answer({media: ((file, node["schema"]),) for media in produces}, headers)

    # --- schemas ------------------------------------------------------------

    def flat(self, handle):
        key = tuple(id(node) for _, node in handle)
        if key not in self.flats:
            flat = Flat()
            for part in handle:
                self.merge(flat, part, frozenset())
            if flat.types is not None:
                flat.types = flat.types - {"null"}
            flat.nullable = all_null(self.allows_null(part, frozenset()) for part in handle) is True
            self.flats[key] = flat
        return self.flats[key]

    def merge(self, flat, part, seen):
        file, node = part
        if not isinstance(node, dict) or id(node) in seen:
            return
        seen = seen | {id(node)}
        if isinstance(node.get("$ref"), str):
            at, target, name = self.follow(file, node)
            flat.names.append(name)
            self.merge(flat, (at, target), seen)
            if not self.is_31:
                return
        kinds = node.get("type")
        if kinds is not None:
            kinds = set(kinds) if isinstance(kinds, list) else {kinds}
            kinds = {"string" if kind == "file" else kind for kind in kinds}
            flat.types = kinds if flat.types is None else both(flat.types, kinds)
        values = [node["const"]] if "const" in node else node.get("enum")
        if isinstance(values, list) and values:
            values = [value for value in values if value is not None]
            kept = values if flat.enum is None else [value for value in flat.enum if value in values]
            flat.enum = kept or values
        flat.format = node.get("format", flat.format)
        flat.pattern = node.get("pattern", flat.pattern)
        flat.default = node.get("default", flat.default)
        flat.multiple = node.get("multipleOf", flat.multiple)
        flat.further |= {keyword: (file, node[keyword]) for keyword in FURTHER if keyword in node}
        flat.unique |= node.get("uniqueItems") is True
        flat.read_only |= node.get("readOnly") is True
        flat.write_only |= node.get("writeOnly") is True
        for keyword, value in bounds_of(node).items():
            tighter = max if keyword.lower().startswith(("min", "exclusivemin")) else min
            flat.bounds[keyword] = tighter(flat.bounds.get(keyword, value), value)
        for name, schema in (node.get("properties") or {}).items():
            flat.properties[name] = flat.properties.get(name, ()) + ((file, schema),)
        required = node.get("required")
        if isinstance(required, list):
            flat.required |= set(required)
        if "items" in node:
            flat.items = (flat.items or ()) + ((file, node["items"]),)
        if "additionalProperties" in node:
            additional = node["additionalProperties"]
            flat.additional = additional if isinstance(additional, bool) else ((file, additional),)
        if isinstance(node.get("discriminator"), dict) and node["discriminator"].get("propertyName"):
            mapping = node["discriminator"].get("mapping") or {}
            names = {value: target.rsplit("/", 1)[-1] for value, target in mapping.items()}
            flat.discriminator = (node["discriminator"]["propertyName"], names)
        for one in node.get("allOf") or []:
            self.merge(flat, (file, one), seen)
        for keyword in ("oneOf", "anyOf"):
            branches = [((file, one),) for one in node.get(keyword) or []]
            some = [branch for branch in branches if not self.is_null(branch)]
            if len(some) == 1:
                self.merge(flat, some[0][0], seen)
            elif some:
                flat.groups.append((keyword, some))

    def allows_null(self, part, seen):
        """Returns whether a schema allows null; `None` if it does not restrict its type."""
        file, node, _ = self.follow(*part)
        if not isinstance(node, dict) or id(node) in seen:
            return None
        seen = seen | {id(node)}
        kinds = node.get("type")
        if node.get("nullable") is True or node.get("x-nullable") is True or kinds == "null" or \
                isinstance(kinds, list) and "null" in kinds:
            return True
        if kinds is not None or "const" in node:
            return False
        found = [None in node["enum"]] if isinstance(node.get("enum"), list) else []
        found += [self.allows_null((file, one), seen) for one in node.get("allOf") or []]
        for keyword in ("oneOf", "anyOf"):
            branches = [self.allows_null((file, one), seen) for one in node.get(keyword) or []]
            found += [any(branches)] if branches else []
        return all_null(found)

    def is_null(self, handle):
        node = self.follow(*handle[0])[1]
        return isinstance(node, dict) and (node.get("type") == "null" or node.get("enum") == [None])

    def chosen(self, handle, pick):
        """Returns a schema with one branch of each group of alternatives; `pick` selects from `(keyword,
        branches)`.
        """
        flat = self.flat(handle)
        for _ in range(8):
            if not flat.groups:
                return flat
            whole = replace(flat, bounds=dict(flat.bounds), properties=dict(flat.properties), required=set(flat.required),
                            groups=[], names=list(flat.names))
            for keyword, branches in flat.groups:
                branch = pick(keyword, branches)
                for part in branch:
                    self.merge(whole, part, frozenset())
                if flat.discriminator:
                    self.discriminate(whole, flat.discriminator, branch)
            if whole.types is not None and "null" in whole.types:
                whole.types = whole.types - {"null"}
            flat = whole
        return replace(flat, groups=[])

    def discriminate(self, flat, discriminator, branch):
        """Restricts the discriminating member to the value that names the branch."""
        member, mapping = discriminator
        name = self.follow(*branch[0])[2]
        values = [value for value, target in mapping.items() if target == name] or ([name] if name else [])
        known = self.flat(flat.properties[member]).enum if member in flat.properties else None
        if values and not known:
            flat.properties[member] = flat.properties.get(member, ()) + ((self.root_file, self.keep({"enum": values[:1]})),)


def all_null(found):
    """Combines what parts of a schema say about null, which all apply."""
    known = [one for one in found if one is not None]
    return all(known) if known else None


def both(a, b):
    common = a & b
    if "integer" in a | b and "number" in a | b:
        common = common | {"integer"}
    return common or b


def bounds_of(node):
    """Returns the bounds of a schema, with the boolean forms of older dialects converted."""
    found = {key: node[key] for key in BOUNDS if isinstance(node.get(key), (int, float)) and not isinstance(node[key], bool)}
    for bound, strict in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if node.get(strict) is True and bound in found:
            found[strict] = found.pop(bound)
    return found


def is_json(media):
    media = media.split(";")[0].strip().lower()
    return media.endswith("/json") or media.endswith("+json") or media == "text/json"
