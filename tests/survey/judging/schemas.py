"""Converts the schemas of a document to JSON Schema 2020-12, and validates values by the library
`jsonschema-rs`.

`oneOf` is converted to `anyOf`: services do not reject a value because two alternatives accept it. A *closed*
schema also rejects members that it does not declare, wherever it declares any: a service ignores such a
member, so a client that sends it loses it.
"""
import functools

import jsonschema_rs

COPIED = set("""minLength maxLength minItems maxItems uniqueItems minProperties maxProperties multipleOf const""".split())
FORMATS = set("date-time date uuid email uri ipv4 ipv6".split())
TYPES = set("string number integer boolean array object null".split())
INTEGERS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
LISTS = {"allOf": "allOf", "anyOf": "anyOf", "oneOf": "anyOf"}


@functools.lru_cache(None)
def compiles(pattern):
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern})
        return True
    except Exception:
        return False


class Schemas:
    """The converted schemas of one document. `direction` is `request` or `response`."""

    def __init__(self, document):
        self.document = document
        self.names = {}
        self.titles = {}
        self.definitions = {}
        self.work = []
        self.validators = {}
        self.roots = {}
        self.declaring = {}
        self.references = {}

    def validator(self, handle, direction, is_closed=False):
        key = (tuple(id(node) for _, node in handle), direction, is_closed)
        if key not in self.validators:
            context = (direction, is_closed)
            parts = [self.convert(part, context, len(handle) == 1) for part in handle]
            root = parts[0] if len(parts) == 1 else {"allOf": parts}
            while self.work:
                name, part, given, is_value = self.work.pop()
                self.definitions[name] = self.convert(part, given, is_value)
            # A validator gets the definitions that it reaches: it would compile all that it is given.
            reached, stack = {}, [references(root)]
            while stack:
                for name in stack.pop():
                    if name not in reached:
                        reached[name] = self.definitions[name]
                        if name not in self.references:
                            self.references[name] = set(references(self.definitions[name]))
                        stack.append(self.references[name])
            root = {"allOf": [root], "$defs": reached} if reached else root
            self.roots[key] = root
            self.validators[key] = jsonschema_rs.Draft202012Validator(root, validate_formats=True)
        return self.validators[key]

    def errors(self, handle, value, direction, is_closed=False, sent=None):
        """Returns `(place, keyword, message)` for each violation; undeclared members only if there is no
        other. `sent` is the value by the document of its sender, with `names` and `is_disclosed`.
        """
        found = list(self.validator(handle, direction).iter_errors(value))
        if found or not is_closed:
            fits = (lambda error: self.fitting(handle, direction, error, sent)) if sent else None
            return [entry(error) for error in innermost(found, fits)]
        found = list(innermost(self.validator(handle, direction, True).iter_errors(value)))
        # An object with a violation inside is reported as well: keep the innermost ones.
        places = [tuple(error.instance_path) for error in found]
        inner = {(at, name) for error, at in zip(found, places) for name in getattr(error.kind, "unexpected", ())
                 if not any(len(other) > len(at) and other[:len(at)] == at for other in places)}
        return [(at + (name,), "undeclared", f"`{name}` is not declared") for at, name in sorted(inner, key=str)]

    def fitting(self, handle, direction, error, sent):
        """Returns the indexes of the alternatives that have the name of the sent one; `None` if none has it, and it
        is disclosed that the sender has this alternative alone.
        """
        names = sent.names(tuple(error.instance_path))
        at = self.roots[(tuple(id(node) for _, node in handle), direction, False)]
        for step in error.schema_path:
            at = at[step]
        found = [index for index, one in enumerate(at) if names & self.alternatives(one, set())]
        return None if names and not found and sent.is_disclosed(tuple(error.instance_path), names) else found

    def alternatives(self, schema, seen):
        """Returns the names of a converted schema and of the alternatives in it."""
        if not isinstance(schema, dict):
            return set()
        found = set().union(*(self.alternatives(one, seen) for key in ("anyOf", "allOf") for one in schema.get(key, ())))
        name = schema.get("$ref", "").rsplit("/", 1)[-1]
        if name and name not in seen:
            seen.add(name)
            found |= {self.titles[name]} | self.alternatives(self.definitions[name], seen)
        return found

    def convert(self, part, context, is_value):
        file, node = part
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            return {}
        if isinstance(node.get("$ref"), str):
            reference = {"$ref": f"#/$defs/{self.name(part, context, is_value)}"}
            rest = {key: value for key, value in node.items() if key not in ("$ref", "description", "summary")}
            if not self.document.is_31 or not rest:
                return reference
            return {"allOf": [reference, self.convert((file, rest), context, False)]}
        direction, is_closed = context
        out = {key: node[key] for key in COPIED if key in node and node[key] is not None}
        kinds = node.get("type")
        kinds = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind in TYPES]
        if kinds:
            out["type"] = kinds
        if isinstance(node.get("enum"), list) and node["enum"]:
            out["enum"] = node["enum"]
        for bound, strict in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if isinstance(node.get(bound), (int, float)):
                out[strict if node.get(strict) is True else bound] = node[bound]
            if isinstance(node.get(strict), (int, float)) and not isinstance(node[strict], bool):
                out[strict] = node[strict]
        if node.get("format") in FORMATS and kinds == ["string"]:
            out["format"] = node["format"]
        if node.get("format") in INTEGERS and kinds == ["integer"]:
            low, high = INTEGERS[node["format"]]
            out["minimum"], out["maximum"] = max(low, out.get("minimum", low)), min(high, out.get("maximum", high))
        if isinstance(node.get("pattern"), str) and compiles(node["pattern"]):
            out["pattern"] = node["pattern"]
        properties = node.get("properties") or {}
        if properties:
            out["properties"] = {name: self.convert((file, one), context, True) for name, one in properties.items()}
        if isinstance(node.get("required"), list):
            skipped = "readOnly" if direction == "request" else "writeOnly"
            out["required"] = [name for name in node["required"]
                               if not self.has_flag((file, properties.get(name)), skipped)]
        for key in ("items", "additionalProperties"):
            if key in node and node[key] is not None and not isinstance(node[key], list):
                out[key] = self.convert((file, node[key]), context, True)
        for key in ("patternProperties",):
            if isinstance(node.get(key), dict):
                out[key] = {name: self.convert((file, one), context, True) for name, one in node[key].items()}
        lists = []
        for key, target in LISTS.items():
            if node.get(key):
                lists.append({target: [self.convert((file, one), context, False) for one in node[key]]})
        if len(lists) == 1:
            out.update(lists[0])
        elif lists:
            out["allOf"] = lists
        if isinstance(node.get("not"), dict):
            out["not"] = self.convert((file, node["not"]), (direction, False), False)
        if is_closed and is_value and self.declares(part, frozenset()):
            out["unevaluatedProperties"] = False
        if node.get("nullable") is True or node.get("x-nullable") is True:
            return {"anyOf": [{"type": "null"}, out]}
        return out

    def name(self, part, context, is_value):
        file, target, title = self.document.follow(*part)
        # An open schema is the same in both positions.
        is_value = is_value and context[1]
        key = (id(target), context, is_value)
        if key not in self.names:
            self.names[key] = f"d{len(self.names)}"
            self.titles[self.names[key]] = title
            self.work.append((self.names[key], (file, target), context, is_value))
        return self.names[key]

    def has_flag(self, part, flag):
        if not isinstance(part[1], dict):
            return False
        node = self.document.follow(*part)[1]
        return part[1].get(flag) is True or isinstance(node, dict) and node.get(flag) is True

    def declares(self, part, seen):
        """Returns whether the schema declares members, itself or in what it is composed of."""
        file, node, _ = self.document.follow(*part)
        if not isinstance(node, dict) or id(node) in seen:
            return False
        if id(node) not in self.declaring:
            inner = [one for key in LISTS for one in node.get(key) or []]
            self.declaring[id(node)] = bool(node.get("properties")) or any(
                self.declares((file, one), seen | {id(node)}) for one in inner)
        return self.declaring[id(node)]


def references(schema):
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value.rsplit("/", 1)[-1]
            else:
                yield from references(value)
    elif isinstance(schema, list):
        for one in schema:
            yield from references(one)


def entry(error):
    if isinstance(error, tuple):
        return error
    keyword = next((str(step) for step in reversed(error.schema_path) if not isinstance(step, int)), "schema")
    place = tuple(error.instance_path)
    if keyword == "required":
        place += (error.kind.property,)
    return place, keyword, error.message[:200]


def innermost(errors, fits=None):
    """Replaces the error of a group of alternatives by those of the alternative that fits best; `fits` names the
    alternatives to choose from.
    """
    for error in errors:
        context = getattr(error.kind, "context", None)
        if not context:
            yield error
            continue
        fitting = fits(error) if fits else []
        if fitting is None:
            yield tuple(error.instance_path), "alternative", "the other version has no such alternative"
            continue
        branches = [context[at] for at in fitting if context[at]] or [branch for branch in context if branch]
        nullless = [branch for branch in branches if list(branch[0].schema_path)[-1:] != ["type"]] or branches
        if not nullless:
            yield error
            continue
        nearest = min(nullless, key=lambda branch: (len(branch), -max(len(one.instance_path) for one in branch)))
        yield from innermost(nearest, fits)
