"""Generates values that a schema allows: the least, the most, and variations at the bounds and of each
enumerated value.

The generator is deterministic. Its values are checked by `schemas.Schemas`; a value that does not pass is not
used.
"""
import json
import math
try:
    from re import _constants as constants, _parser as parser
except ImportError:     # Python 3.10
    import sre_constants as constants
    import sre_parse as parser

DEPTH = 5               # levels of optional members
LONGEST = 300           # characters of a text at its bound
MEMBERS = 400           # members of one value
SAMPLES = {
    "date-time": ["2024-03-09T10:20:30Z", "2024-12-31T23:59:59.250+01:00"],
    "date": ["2024-03-09", "2024-12-31"],
    "time": ["10:20:30Z"],
    "uuid": ["6f1ad0f5-2f3c-4c1b-9b2e-0a6d3c5b7e11"],
    "email": ["ann@example.com"],
    "idn-email": ["ann@example.com"],
    "uri": ["https://example.com/a?b=c"],
    "url": ["https://example.com/a"],
    "hostname": ["www.example.com"],
    "ipv4": ["192.0.2.7"],
    "ipv6": ["2001:db8::7"],
    "byte": ["aGVsbG8="],
    "binary": ["bytes"],
    "duration": ["P1D"],
}


class Generator:
    def __init__(self, document):
        self.document = document

    def values(self, handle, direction, count):
        """Returns up to `count` values: the least, the most, then variations, in which every choice takes its
        next form.
        """
        found = []
        for most, turn in [(False, 0), (True, 0)] + [(True, turn) for turn in range(1, count - 1)]:
            maker = Maker(self.document, direction, most, turn)
            value = maker.make(handle, 0, "")
            if turn > 0 and turn >= maker.choices:
                break
            if value not in found:
                found.append(value)
        return found[:count]


class Maker:
    def __init__(self, document, direction, most, turn):
        self.document, self.direction, self.most, self.turn = document, direction, most, turn
        self.choices = 1
        self.members = 0

    def choose(self, options):
        self.choices = max(self.choices, len(options))
        return options[self.turn % len(options)]

    def make(self, handle, depth, name):
        document = self.document
        flat = document.flat(handle)
        if flat.groups:
            # Beyond the depth, the first branch without members ends the recursion.
            flat = document.chosen(handle, lambda _, branches: self.choose(branches) if depth < DEPTH else branches[0])
        if flat.enum:
            return self.choose(flat.enum)
        if flat.is_object():
            if flat.nullable and self.most and depth > 0 and self.choose([False, True]):
                return None
            return self.object(flat, depth)
        kinds = flat.types or {"array" if flat.items else "string" if flat.format or flat.pattern else "any"}
        options = []
        for kind in ["array", "string", "integer", "number", "boolean", "any"]:
            if kind in kinds:
                options += getattr(self, kind + "s")(flat, depth, name)
        if flat.nullable and depth > 0:
            options.append(lambda: None)
        return self.choose(options)() if options else None

    def object(self, flat, depth):
        value = {}
        skips = "read_only" if self.direction == "request" else "write_only"
        for name, handle in flat.properties.items():
            wanted = name in flat.required
            inner = self.document.flat(handle)
            if getattr(inner, skips):
                continue
            # A member of a type that never ends is left out below the depth.
            if not wanted and (not self.most or depth >= DEPTH or self.members > MEMBERS):
                continue
            if depth > 4 * DEPTH:
                continue
            self.members += 1
            value[name] = self.make(handle, depth + 1, name)
        for name in sorted(flat.required - set(flat.properties)):
            value[name] = "text"
        extra = flat.additional if isinstance(flat.additional, tuple) else None
        fewest = flat.bounds.get("minProperties", 0)
        if extra and (self.most and depth < DEPTH or len(value) < fewest):
            value["key1"] = self.make(extra, depth + 1, "key1")
        for number in range(2, 9):
            if len(value) < fewest and flat.additional is not False:
                value[f"key{number}"] = self.make(extra, depth + 1, "key") if extra else "text"
        return value

    def arrays(self, flat, depth, name):
        fewest, most = flat.bounds.get("minItems", 0), flat.bounds.get("maxItems")
        inner = flat.items or ((self.document.root_file, {"type": "string"}),)

        def filled():
            if most == 0 or depth >= 2 * DEPTH and fewest == 0:
                return []
            items = [self.make(inner, depth + 1, name)]
            while len(items) < min(fewest, 50):
                items.append(self.make(inner, depth + 1, name) if not flat.unique else distinct(items[0], len(items)))
            return items
        return [filled] + ([lambda: []] if fewest == 0 and depth > 0 else [])

    def strings(self, flat, depth, name):
        shortest, longest = int(flat.bounds.get("minLength", 0)), flat.bounds.get("maxLength")
        if flat.format in SAMPLES:
            return [lambda sample=sample: sample for sample in SAMPLES[flat.format]]
        if flat.pattern:
            text = matching(flat.pattern, shortest)
            return [lambda: text]
        usual = name.replace("_", "") or "text"
        usual = "".join(c for c in usual if c.isascii() and c.isalnum())[:24] or "text"
        usual = usual.ljust(shortest, "x")[:int(longest) if longest is not None else None]
        texts = [usual]
        if shortest > 0:
            texts.append("m" * min(shortest, LONGEST))
        if longest is not None and longest <= LONGEST:
            texts.append("n" * int(longest))
        return [lambda text=text: text for text in texts]

    def integers(self, flat, depth, name):
        low, high = bounds(flat)
        low, high = math.ceil(low), math.floor(high)
        step = int(flat.multiple or 1) or 1
        usual = min(max(7, low), high)
        values = [usual] + [value for key, value in (("minimum", low), ("maximum", high)) if is_bound(flat, key)]
        return [lambda value=value: -(-value // step) * step for value in values]

    def numbers(self, flat, depth, name):
        if "integer" in (flat.types or ()):
            return []
        low, high = bounds(flat)
        usual = min(max(7.5, low), high)
        values = [usual] + [value for key, value in (("minimum", low), ("maximum", high)) if is_bound(flat, key)]
        return [lambda value=value: value if not flat.multiple else round(value / flat.multiple) * flat.multiple
                for value in values]

    def booleans(self, flat, depth, name):
        return [lambda: True, lambda: False]

    def anys(self, flat, depth, name):
        return [lambda: "text"]


def bounds(flat):
    strict = 1e-3 if flat.types and "integer" not in flat.types else 1
    low = max(flat.bounds.get("minimum", -(2**31) + 8), flat.bounds.get("exclusiveMinimum", -(2**31)) + strict)
    high = min(flat.bounds.get("maximum", 2**31 - 8), flat.bounds.get("exclusiveMaximum", 2**31) - strict)
    return low, high


def is_bound(flat, key):
    return key in flat.bounds or "exclusive" + key.capitalize() in flat.bounds


def distinct(value, number):
    if isinstance(value, str):
        return f"{value}{number}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value + number
    return json.loads(json.dumps(value))


def matching(pattern, shortest=0):
    """Returns a text that matches a regular expression, or a plain text if the expression is beyond this."""
    try:
        parsed = parser.parse(pattern)
    except Exception:
        return "text"
    for repeats in (1, 2, 3, shortest):
        text = render(parsed, max(1, repeats))
        if len(text) >= shortest:
            return text
    return text


def render(parsed, repeats):
    out = []
    for kind, value in parsed:
        if kind is constants.LITERAL:
            out.append(chr(value))
        elif kind is constants.NOT_LITERAL:
            out.append("a" if value != ord("a") else "b")
        elif kind is constants.ANY:
            out.append("a")
        elif kind is constants.IN:
            out.append(member(value))
        elif kind in (constants.MAX_REPEAT, constants.MIN_REPEAT):
            least, most, inner = value
            out.append(render(inner, repeats) * min(max(least, repeats), most))
        elif kind is constants.SUBPATTERN:
            out.append(render(value[-1], repeats))
        elif kind is constants.BRANCH:
            out.append(render(value[1][0], repeats))
    return "".join(out)


def member(choices):
    classes = {constants.CATEGORY_DIGIT: "7", constants.CATEGORY_WORD: "a", constants.CATEGORY_SPACE: " ",
               constants.CATEGORY_NOT_SPACE: "a", constants.CATEGORY_NOT_DIGIT: "a", constants.CATEGORY_NOT_WORD: "-"}
    if choices[0][0] is constants.NEGATE:
        taken = {value for kind, value in choices[1:] if kind is constants.LITERAL}
        return next(c for c in "abcdefghijk01234-_ " if ord(c) not in taken)
    # A letter or a digit is safe in every place of a request.
    found = [chr(value) if kind is constants.LITERAL else chr(value[0]) if kind is constants.RANGE else classes.get(value, "a")
             for kind, value in choices]
    return next((c for c in found if c.isalnum()), found[0])
