"""Writes the pack that `tests/prism.sh` serves, with contracts of one kind: swagger-2.0, openapi-3.0 or openapi-3.1.

    documents.py KIND FOLDER
"""

import json
import pathlib
import sys

SIDES = {
    "v1": {"note": "Note", "path": "/notes", "title": "title", "count": {"type": "integer"}, "replies": "replies",
           "colour": "colour", "limit": "limit"},
    "v2": {"note": "Entry", "path": "/entries", "title": "name", "count": {"type": "string", "pattern": "^[1-9][0-9]{0,3}$"},
           "replies": "answers", "colour": "color", "limit": "per_page"},
}


def document(kind, side):
    words = SIDES[side]
    swagger = kind == "swagger-2.0"
    where = "#/definitions/" if swagger else "#/components/schemas/"
    ref = lambda name: {"$ref": where + name}
    note = {
        "type": "object",
        "required": ["id", words["title"], "count", "labels"],
        "additionalProperties": False,
        "properties": {
            "id": {"type": "string"},
            words["title"]: {"type": "string"},
            "count": {"minimum": 1, "maximum": 9999, **words["count"]} if side == "v1" else words["count"],
            words["replies"]: {"type": "array", "items": ref(words["note"]), "maxItems": 1},
            "labels": ref("Labels"),
        },
    }
    schemas = {
        words["note"]: note,
        "Labels": {"type": "object", "additionalProperties": ref("Label")},
        "Label": {
            "type": "object",
            "required": [words["colour"]],
            "additionalProperties": False,
            "properties": {words["colour"]: {"type": "string"}},
        },
    }

    def answer(schema):
        if swagger:
            return {"description": "it", "schema": schema}
        return {"description": "it", "content": {"application/json": {"schema": schema}}}

    def parameter(name, place, kind_of):
        kind_of = {"type": kind_of}
        return {"name": name, "in": place, "required": place == "path", **(kind_of if swagger else {"schema": kind_of})}

    post = {"responses": {"201": answer(ref(words["note"]))}}
    if swagger:
        post["parameters"] = [{"name": "body", "in": "body", "required": True, "schema": ref(words["note"])}]
    else:
        post["requestBody"] = {"required": True, "content": {"application/json": {"schema": ref(words["note"])}}}
    path = words["path"]
    many = answer({"type": "array", "items": ref(words["note"])})
    paths = {
        path: {
            "get": {"parameters": [parameter(words["limit"], "query", "integer")], "responses": {"200": many}},
            "post": post,
        },
        path + "/{id}": {
            "parameters": [parameter("id", "path", "string")],
            "get": {"responses": {"200": answer(ref(words["note"]))}},
            "delete": {"responses": {"204": {"description": "gone"}}},
        },
    }
    head = {
        "swagger-2.0": {"swagger": "2.0", "consumes": ["application/json"], "produces": ["application/json"]},
        "openapi-3.0": {"openapi": "3.0.3"},
        "openapi-3.1": {"openapi": "3.1.0"},
    }[kind]
    body = {"definitions": schemas} if swagger else {"components": {"schemas": schemas}}
    return {**head, "info": {"title": "notes", "version": side}, "paths": paths, **body}


def main(kind, folder):
    folder = pathlib.Path(folder)
    (folder / "contracts").mkdir(parents=True, exist_ok=True)
    for side in SIDES:
        (folder / "contracts" / f"{side}.json").write_text(json.dumps(document(kind, side), indent=2))
    credential = "{read: [authorization], send: authorization, scheme: Bearer}"
    (folder / "pack.yaml").write_text(
        "pack: notes\nsides: {old: v1, new: v2}\ncontracts: {v1: contracts/v1.json, v2: contracts/v2.json}\n"
        f"credentials:\n  v1: {credential}\n  v2: {credential}\nlanguages: [en]\n"
        "errors: {body: {message: $text}}\nrefuse: {legacy: never, status: 501}\n"
    )
    mapping = pathlib.Path(__file__).with_name("notes.map.yaml").read_text()
    (folder / "notes.map.yaml").write_text(mapping)


if __name__ == "__main__":
    main(*sys.argv[1:])
