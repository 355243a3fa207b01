"""Writes and reads parameters and forms by the styles of OpenAPI."""
import json
from urllib.parse import quote

SEPARATORS = {"form": ",", "simple": ",", "spaceDelimited": " ", "pipeDelimited": "|", "label": ".", "matrix": ","}


def text(value):
    if isinstance(value, str):
        return value
    return {True: "true", False: "false", None: ""}.get(value) if isinstance(value, (bool, type(None))) else json.dumps(value)


def write(parameter, value):
    """Returns the fields `(name, text)` of a value in a query, a header or a form."""
    name, style, explode = parameter.name, parameter.style, parameter.explode
    if parameter.is_json:
        return [(name, json.dumps(value))]
    if isinstance(value, dict):
        if style == "deepObject":
            return deep(name, value)
        pairs = [(key, text(one)) for key, one in value.items()]
        if explode and style == "form":
            return pairs
        return [(name, ",".join(part for pair in pairs for part in pair))]
    if isinstance(value, list):
        if style == "deepObject":
            return deep(name, value)
        if explode and style in ("form", "spaceDelimited", "pipeDelimited"):
            return [(name, text(one)) for one in value]
        return [(name, SEPARATORS.get(style, ",").join(map(text, value)))] if value else []
    return [(name, text(value))]


def deep(name, value):
    if isinstance(value, dict):
        return [field for key, one in value.items() for field in deep(f"{name}[{key}]", one)]
    if isinstance(value, list):
        return [field for at, one in enumerate(value) for field in deep(f"{name}[{at}]" if isinstance(one, dict) else f"{name}[]", one)]
    return [(name, text(value))]


def write_path(parameter, value):
    lead = {"label": ".", "matrix": f";{parameter.name}="}.get(parameter.style, "")
    if isinstance(value, list):
        value = ",".join(map(text, value))
    elif isinstance(value, dict):
        value = ",".join(f"{key}={text(one)}" if parameter.explode else f"{key},{text(one)}" for key, one in value.items())
    return lead + quote(text(value), safe=",")


class Reader:
    """Reads the fields of a request by the declarations of a document."""

    def __init__(self, document, schemas):
        self.document, self.schemas = document, schemas

    def take(self, parameter, fields):
        """Removes the fields of a parameter from the list; returns `(is present, value)`."""
        name, handle = parameter.name, parameter.schema
        flat = self.document.chosen(handle, lambda _, branches: branches[0])
        if parameter.style == "deepObject" or not parameter.is_json and any(key.startswith(f"{name}[") for key, _ in fields):
            mine = [field for field in fields if field[0] == name or field[0].startswith(f"{name}[")]
            fields[:] = [field for field in fields if field not in mine]
            if len(mine) == 1 and mine[0][0] == name:
                # One alternative of the parameter may be a plain value.
                return True, self.coerce(mine[0][1], handle)
            return bool(mine), self.nested(name, mine, handle) if mine else None
        if flat.is_object() and parameter.explode and parameter.style == "form" and not parameter.is_json:
            known = dict(flat.properties)
            for _, branches in self.document.flat(handle).groups:
                for branch in branches:
                    known |= self.document.flat(branch).properties
            mine = [field for field in fields if field[0] in known]
            fields[:] = [field for field in fields if field[0] not in known]
            return bool(mine), {key: self.coerce(one, known[key]) for key, one in mine}
        mine = [one for key, one in fields if key == name]
        fields[:] = [field for field in fields if field[0] != name]
        if not mine:
            return False, None
        if parameter.is_json:
            return True, self.parse(mine[0])
        return True, self.value(parameter, mine, flat)

    def value(self, parameter, texts, flat):
        handle = parameter.schema
        wants_list = flat.types is not None and "array" in flat.types or flat.items is not None
        if wants_list and not (flat.types and "string" in flat.types and len(texts) == 1):
            items = texts
            if not (parameter.explode and parameter.style == "form") and len(texts) == 1:
                items = texts[0].split(SEPARATORS.get(parameter.style, ","))
            items = [one for one in items if one != ""] if items == [""] else items
            return [self.coerce(one, flat.items) if flat.items else one for one in items]
        if flat.is_object() and not (flat.types and "string" in flat.types):
            parts = texts[0].split(",")
            pairs = [part.split("=", 1) for part in parts] if parameter.explode else list(zip(parts[::2], parts[1::2]))
            return {pair[0]: self.coerce(pair[1], flat.properties.get(pair[0])) for pair in pairs if len(pair) == 2}
        if len(texts) > 1:
            return [self.coerce(one, handle) for one in texts]
        return self.coerce(texts[0], handle)

    def nested(self, name, fields, handle):
        root = {}
        for key, one in fields:
            steps = [step.rstrip("]") for step in key[len(name):].split("[")[1:]]
            at = root
            for step in steps[:-1]:
                at = at.setdefault(step, {}) if isinstance(at, dict) else {}
            last = steps[-1] if steps else ""
            if isinstance(at, dict):
                if last == "" or last in at and not isinstance(at[last], dict):
                    at.setdefault("", []).append(one)
                else:
                    at[last] = one
        return self.shape(root, handle)

    def shape(self, value, handle):
        """Gives a value of nested fields the types of its schema."""
        if handle is None:
            return value
        if isinstance(value, str):
            return self.coerce(value, handle)
        flat = self.document.flat(handle)
        if flat.groups:
            shaped = [self.shape_by(value, self.document.chosen(handle, lambda _, branches, at=at: branches[at % len(branches)]))
                      for at in range(len(flat.groups[0][1]))]
            return next((one for one in shaped if self.schemas.validator(handle, "request").is_valid(one)), shaped[0])
        return self.shape_by(value, flat)

    def shape_by(self, value, flat):
        is_list = flat.items or flat.types and "array" in flat.types
        if is_list and isinstance(value, dict) and all(key == "" or key.isdigit() for key in value):
            items = [one for key, one in value.items() if key] + value.get("", [])
            return [self.shape(one, flat.items) for one in items]
        if isinstance(value, dict):
            if list(value) == [""]:
                return value[""] if len(value[""]) > 1 else value[""][0]
            extra = flat.additional if isinstance(flat.additional, tuple) else None
            return {key: self.shape(one, flat.properties.get(key, extra)) for key, one in value.items()}
        return value

    def coerce(self, one, handle):
        """Reads a text as the first type of the schema that accepts it."""
        if handle is None or not isinstance(one, str):
            return one
        flat = self.document.flat(handle)
        candidates = [one]
        if one in ("true", "false"):
            candidates.insert(0, one == "true")
        try:
            candidates.insert(0, int(one))
        except ValueError:
            try:
                candidates.insert(0, float(one))
            except ValueError:
                pass
        if flat.types and "string" in flat.types:
            candidates.insert(0, one)
        if one[:1] in "[{" or flat.is_object() or flat.items:
            candidates.append(self.parse(one))
        if flat.items and not one[:1] in "[{":
            candidates.append([self.coerce(part, flat.items) for part in one.split(",")])
        if one == "" and flat.nullable:
            candidates.append(None)
        validator = self.schemas.validator(handle, "request")
        return next((value for value in candidates if validator.is_valid(value)), candidates[0] if not flat.types or
                    "string" not in flat.types else one)

    def parse(self, one):
        try:
            return json.loads(one)
        except ValueError:
            return one
