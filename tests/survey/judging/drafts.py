"""Runs `switchback init`, and reads what the draft does and what it discloses: served pairs, mapping lines,
decisions, report.
"""
import json
import re
import subprocess
from dataclasses import dataclass, field

from .documents import Loader

import yaml

# Rules whose differences a plain rename carries.
RENAMES = re.compile("(property|parameter)-removed$|^new-required|-moved$")
WORD = re.compile(r"[\w.\-\[\]$@]+")


@dataclass
class Served:
    """An operation of the old version that the draft serves."""
    old: str
    new: str
    report: dict
    # Of each group of lines: names of types or None, words of changes, words of plain renames.
    lines: list = field(default_factory=list)
    texts: list = field(default_factory=list)       # of decisions about it


class Draft:
    """A drafted pack in `folder`, written by `program init` unless `is_ready`."""

    def __init__(self, program, documents, folder, is_ready=False, seconds=300):
        self.program, self.folder, self.seconds = program, folder, seconds
        if not is_ready:
            self.run("init", *map(str, documents), str(folder), "--sides", "old,new", may_retry=True)
        self.manifest = read_yaml(folder / "pack.yaml")
        self.sides = list(self.manifest["sides"].values())
        self.report = json.loads(self.run("report", str(folder), "--format", "json"))
        self.mappings = [read_yaml(path) for path in sorted(folder.glob("*.map.yaml"))]
        self.shapes = {name: shape for one in self.mappings for name, shape in (one.get("shapes") or {}).items()}
        self.routes = [route for one in self.mappings for route in one.get("routes") or []]
        self.decisions = read_decisions(folder)
        side = next(one for one in self.report["sides"] if one["side"] == self.sides[0])
        self.operations = len(side["operations"])
        self.served = [self.serve(one) for one in side["operations"] if one["route"] != "refuse"]

    def run(self, *arguments, may_retry=False):
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, timeout=self.seconds)
        if done.returncode and may_retry and "--sides" in done.stderr:
            # A release that does not accept the names of the sides takes them from the file names.
            return self.run(*arguments[:arguments.index("--sides")])
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments[:1])}: {(done.stderr or done.stdout).strip()[-600:]}")
        return done.stdout

    def serve(self, report):
        key = report["operation"]
        served = Served(key, report.get("counterpart") or key, report)
        for route in self.routes:
            pair = route.get("pair") if isinstance(route.get("pair"), dict) else {}
            if pair.get(self.sides[0]) == key or route.get("at") == key and route.get("serve") == self.sides[0]:
                served.new = pair.get(self.sides[1], served.new)
                self.carried(route, None, served, set())
        served.texts = [text for heading, text in self.decisions if names_operation(heading, text, key)]
        return served

    def carried(self, lines, types, served, seen):
        """Collects the words of lines that change something; `same` and equal names pass a value as it is."""
        words, renamed = set(), set()
        for key, value in lines.items():
            if key in ("pair", "of", "same", "front") or key in ("query", "path", "headers") and isinstance(value, list):
                continue
            if isinstance(value, dict):
                for name, how in value.items():
                    is_plain = not isinstance(how, dict) or set(how) <= {"shape", *self.sides}
                    if not is_plain or key == "only":
                        words |= set(words_of(name)) | set(words_of(how))
                        continue
                    # The member passes as it is, perhaps under another name; its shape may change something.
                    words |= set(words_of(how.get("shape"))) if isinstance(how, dict) else set()
                    to = [how.get(side) for side in self.sides] if isinstance(how, dict) else [how]
                    if any(one not in (None, name) for one in to):
                        renamed |= set(words_of(name)) | set(words_of(to))
            else:
                words |= set(words_of(value))
        served.lines.append((types, words, renamed))
        for name in words & set(self.shapes) - seen:
            seen.add(name)
            shape = self.shapes[name]
            of = shape.get("of")
            names = set(of.values()) if isinstance(of, dict) else {of} if of else None
            self.carried(shape, names, served, seen)
        for word in ("request", "response"):
            if isinstance(lines.get(word), dict):
                self.carried(lines[word], None, served, seen)

    def is_disclosed(self, served, difference):
        """Returns whether a mapping line, a decision or the report discloses the difference."""
        name = difference.name if difference.name != "*" else (difference.place[-2:-1] or [""])[0]
        if not name:
            return any(re.search(r"\bbod(y|ies)\b", text) for text in self.sentences(served))
        for types, words, renamed in served.lines:
            carried = words | renamed if RENAMES.search(difference.rule) else words
            if name in carried and (types is None or not difference.types or types & set(difference.types)):
                return True
        if any(is_at(place, difference.place) for place in self.places(served)):
            return True
        if any(mentions(text, name) for text in self.sentences(served)):
            return True
        # A decision about a member of a type: `Type: member`.
        headings = [heading for heading, _ in self.decisions]
        return any(heading.startswith(f"{kind}:") and mentions(heading, name) for kind in difference.types for heading in headings)

    def excuses(self, served, name):
        """Returns whether a decision or the report names the member of a violation."""
        return bool(name) and (any(mentions(text, name) for text in self.sentences(served))
                               or any(name in place for place in self.places(served)))

    def lacks(self, served, members, name):
        """Returns whether the report says that the client's version has no alternative of this name at a place."""
        return any(loss.get("values") == f"values that are {name}" and loss.get("side") == self.sides[1]
                   and steps(loss["place"]) == members for loss in served.report.get("lost", []))

    def places(self, served):
        return [steps(loss["place"]) for key in ("lost", "without_source") for loss in served.report.get(key, [])]

    def sentences(self, served):
        report = served.report
        disclosed = [text for key in ("differs", "approximate", "despite", "refusals", "changed") for text in report.get(key) or []]
        return served.texts + [text if isinstance(text, str) else json.dumps(text) for text in disclosed]

    def lines(self):
        """Returns the lines of the mapping in the notation of `labels.tsv`."""
        found = set()
        for name, shape in self.shapes.items():
            found |= shape_lines(name, shape)
        for route in self.routes:
            operation = next(iter(route.get("pair", {}).values()), "?") if isinstance(route.get("pair"), dict) else "?"
            for key, value in route.items():
                if key in ("request", "response") and isinstance(value, dict):
                    found |= shape_lines(f"{operation} {key}", value)
                elif key in ("query", "path", "headers") and isinstance(value, dict):
                    found |= {f"{operation} {key} {name}: {flow(one)}" for name, one in value.items()}
                else:
                    found.add(f"{operation} {key}: {flow(value)}")
        return found


def shape_lines(name, shape):
    found = set()
    for key, value in shape.items():
        if key == "of":
            continue
        if isinstance(value, list):
            found |= {f"{name} {key}: {flow(one)}" for one in value}
        elif key == "only" and isinstance(value, dict):
            found |= {f"{name} only {side}: {member}: {flow(fill)}" for side, members in value.items()
                      for member, fill in (members or {}).items()}
        elif isinstance(value, dict):
            found |= {f"{name} {key} {member}: {flow(one)}" for member, one in value.items()}
        else:
            found.add(f"{name} {key}: {flow(value)}")
    return found


def flow(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return {None: "null", True: "true", False: "false"}.get(value, str(value)) if not isinstance(value, (int, float)) or \
        isinstance(value, bool) else str(value)


def words_of(value):
    if isinstance(value, dict):
        for key, one in value.items():
            yield from words_of(key)
            yield from words_of(one)
    elif isinstance(value, list):
        for one in value:
            yield from words_of(one)
    elif value is not None:
        text = str(value)
        yield text
        for word in WORD.findall(text):
            yield from [word, *filter(None, re.split(r"[.$\[\]]+", word))]


def read_yaml(path):
    return yaml.load(path.read_text(), Loader) or {}


def read_decisions(folder):
    """Returns `(heading, text)` of each entry of the list of decisions; the JSON is preferred, where there is
    one.
    """
    for path in (folder / "decisions.json", folder / "DECISIONS.json"):
        if path.exists():
            whole = json.loads(path.read_text())
            entries = whole if isinstance(whole, list) else [one for value in whole.values() if isinstance(value, list) for one in value]
            return [entry for one in entries if isinstance(one, dict) for entry in cases_of(one)]
    path = folder / "DECISIONS.md"
    entries = []
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.startswith("- "):
            heading = re.match(r"- `([^`]+)`", line)
            entries.append([heading.group(1) if heading else "", line])
        elif line.startswith("  ") and entries:
            entries[-1][1] += "\n" + line
        elif line.strip():
            entries.append(["", ""])
    return [tuple(entry) for entry in entries if entry[1]]


def cases_of(entry):
    """Returns `(heading, text)` of an entry, or of each case of a question about several operations."""
    cases = entry.get("cases")
    if not isinstance(cases, list):
        return [(heading_of(entry), json.dumps(entry, ensure_ascii=False))]
    return [(heading_of(case), " ".join([str(entry.get("text", "")), *map(str, case.get("at") or [])])) for case in cases]


def heading_of(entry):
    return str(entry.get("operation") or entry.get("heading") or entry.get("about") or "")


def names_operation(heading, text, key):
    if heading == key or heading.startswith(f"{key} "):
        return True
    # An entry about several operations lists them. An entry about another operation may name this one as its
    # counterpart.
    return not re.match(r"[A-Z]+ /", heading) and (f"`{key}`" in text or f'"{key}"' in text)


def mentions(text, name):
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def steps(place):
    """Returns the members of a place such as `$.items[*].size`."""
    return tuple(re.findall(r"[^.\[\]$*]+", re.sub(r"\['?([^\]']+)'?\]", r".\1", place.replace("[*]", ""))))


def is_at(place, wanted):
    """Returns whether a disclosed place is that of a difference, or contains it."""
    wanted = tuple(step for step in wanted if step != "*")
    return bool(place) and (wanted[:len(place)] == place or wanted[-1:] == place[-1:] and set(place) <= set(wanted))


# --- pairs ------------------------------------------------------------


def judge_pair(served, old, new, labels):
    """Returns `same`, `right`, `wrong` or `open` for a served pair, and the reason."""
    a, b = old.operations.get(served.old), new.operations.get(served.new)
    label = labels.get((served.old, served.new))
    if label:
        return label, "label"
    if a is None or b is None:
        return "wrong", "an operation that the document does not have"
    if plain(a.path) == plain(b.path) and a.method == b.method:
        return "same", "equal key"
    if served.old in new.operations:
        return "wrong", "the new document has an operation with the same key"
    if a.id and a.id == b.id and a.method == b.method:
        return "same", "equal operationId"
    if a.method != b.method and "GET" in (a.method, b.method):
        return "wrong", f"{a.method} became {b.method}"
    nouns, theirs = nouns_of(a.path), nouns_of(b.path)
    if nouns and theirs and nouns[-1] != theirs[-1]:
        return "wrong", f"the paths name different resources: {nouns[-1]}, {theirs[-1]}"
    if a.method == b.method and nouns == theirs:
        return "same", "equal key apart from the version"
    return "open", "neither key nor operationId are equal"


def plain(path):
    return re.sub(r"\{[^}]*\}", "{}", path)


def nouns_of(path):
    words = [word for word in path.split("/") if word and "{" not in word and not re.fullmatch(r"v?\d[\w.\-]*", word, re.I)]
    return [re.sub(r"[^a-z0-9]", "", word.lower()).rstrip("s") for word in words]


def read_labels(path):
    """Returns, by pair of documents, the labels of lines (a list of `(label, text)`) and of paired
    operations.
    """
    lines, pairs = {}, {}
    for row in path.read_text().splitlines():
        cells = row.split("\t")
        if row.startswith("#") or len(cells) != 4:
            continue
        label, kind, pair, text = cells
        became = re.fullmatch(r"(\S+ \S+) (?:it )?may have become `(\S+ \S+)`.*", text)
        if kind == "guess" and became:
            pairs.setdefault(pair, {})[became.groups()] = label
        else:
            lines.setdefault(pair, []).append((label, kind, text))
    return lines, pairs


def wrong_lines(draft, labels):
    """Returns the labelled lines of the draft that are wrong; a wrong guess counts once the draft has it as a
    rename.
    """
    written = draft.lines()
    found = []
    for label, kind, text in labels:
        guess = re.fullmatch(r"(.+): (\S+) it has likely become `([^`]+)`.*", text)
        if label != "wrong":
            continue
        if kind == "line" and text in written:
            found.append(text)
        elif guess:
            kind, old, new = guess.groups()
            found += [line for line in written if re.match(rf"{re.escape(kind)}\w* rename {re.escape(old)}: ", line)
                      and mentions(line, new.split(".")[-1])]
    return found
