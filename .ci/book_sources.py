"""Preprocessor of the documentation site: includes pages that lie outside the folder of the book, and adapts relative links.

A link to a page that the book has, also by an include, leads to that page; one to another file of the sources leads to the
repository that `preprocessor.sources.repository` names, or becomes text. A link that leads nowhere fails the build.
"""

import json
import os
import re
import sys

INCLUDE = re.compile(r"\{\{#include ([^:}]+)(?::([\w-]+))?\}\}\n?")
LINK = re.compile(r"\[((?:[^\[\]]|!?\[[^\]]*\](?:\([^)]*\))?)*)\]\(([^)\s]+)\)")


def chapters(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            yield chapter
            yield from chapters(chapter["sub_items"])


def included(path, anchor):
    """Returns the text of a file, or its part between the comments `ANCHOR: name` and `ANCHOR_END: name`."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if anchor:
        text = text.split(f"<!-- ANCHOR: {anchor} -->\n")[1].split(f"<!-- ANCHOR_END: {anchor} -->")[0]
    return re.sub(r"<!-- ANCHOR(_END)?: [\w-]+ -->\n?", "", text)


def main():
    context, book = json.load(sys.stdin)
    root = os.path.realpath(context["root"])
    repository = context["config"]["preprocessor"]["sources"].get("repository")
    found = list(chapters(book.get("items") or book.get("sections")))
    # The page of each file: its own, or the one that consists of it.
    pages = {os.path.join(root, chapter["path"]): chapter["path"] for chapter in found}
    for chapter in found:
        whole = INCLUDE.fullmatch(chapter["content"])
        if whole and not whole[2]:
            pages[os.path.realpath(os.path.join(root, whole[1]))] = chapter["path"]
    broken = []

    def link(match, page, base):
        text, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, _, heading = target.partition("#")
        path = os.path.realpath(os.path.join(base, path))
        if path in pages:
            to = re.sub(r"README\.md$", "index.html", pages[path]).removesuffix(".md")
            to = to if to.endswith(".html") else to + ".html"
        elif os.path.isfile(path) and path.startswith(root + os.sep) and not path.endswith(".md"):
            to = os.path.relpath(path, root)
        elif os.path.exists(path):
            name = os.path.relpath(path, os.path.dirname(root))
            if repository:
                return f"[{text}]({repository}/{name})"
            return text if f"`{name}`" in text else f"{text} (`{name}`)"
        else:
            broken.append(f"{page}: {target}")
            return match[0]
        to = os.path.relpath(to, os.path.dirname(page) or ".")
        return f"[{text}]({to}{'#' + heading if heading else ''})"

    def adapt(text, page, base):
        # Blocks of code have no links.
        parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
        return "".join(part if part.startswith("```") else LINK.sub(lambda m: link(m, page, base), part) for part in parts)

    for chapter in found:
        page = chapter["path"]
        base = os.path.dirname(os.path.join(root, page))
        content, at = [], 0
        for match in INCLUDE.finditer(chapter["content"]):
            path = os.path.join(base, match[1])
            content.append(adapt(chapter["content"][at : match.start()], page, base))
            content.append(adapt(included(path, match[2]), page, os.path.dirname(path)))
            at = match.end()
        content.append(adapt(chapter["content"][at:], page, base))
        chapter["content"] = "".join(content)
    if broken:
        sys.exit("links that lead nowhere:\n" + "\n".join(broken))
    json.dump(book, sys.stdout)


# mdBook asks `supports RENDERER` first; every renderer is.
if sys.argv[1:2] != ["supports"]:
    main()
