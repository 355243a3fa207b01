//! Tests of drafts from two small contracts.

mod decisions;
mod fields;
mod operations;
mod types;
mod values;

use super::*;
use crate::diagnostic::{Colour, to_text};

const OLD: &str = r"
openapi: 3.0.3
info: {title: t, version: '1'}
paths:
  /notes/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get: {operationId: getNote, responses: {200: {description: it, content: {application/json: {schema: {$ref: '#/components/schemas/Note'}}}}}}
    delete: {responses: {204: {description: done}}}
  /notes:
    get:
      parameters: [{name: page, in: query, schema: {type: integer}}]
      responses: {200: {description: all, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Note'}}}}}}
    post:
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/NewNote'}}}}
      responses: {201: {description: made, content: {application/json: {schema: {$ref: '#/components/schemas/Note'}}}}}
  /notes/{id}/picture:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get: {responses: {200: {description: it, content: {application/pdf: {}}}}}
  /rooms: {get: {responses: {204: {description: done}}}}
  /rooms/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    delete: {responses: {204: {description: done}}}
  /users/search_all: {get: {responses: {204: {description: done}}}}
  /gone: {get: {responses: {204: {description: done}}}}
components:
  schemas:
    Note:
      type: object
      required: [id]
      properties:
        id: {type: string}
        state: {type: string, enum: [open, done]}
        is_private: {type: boolean}
        stars: {type: integer}
    NewNote: {type: object, required: [title], properties: {title: {type: string}, colour: {type: string}}}
";

/// Returns the new side, which is partly equal.
fn new() -> String {
    OLD.replace("/rooms", "/spaces")
        .replace("/users/search_all", "/users/searchAll")
        .replace("  /gone: {get: {responses: {204: {description: done}}}}\n", "")
        .replace("enum: [open, done]", "enum: [open, done, stale]")
        .replace("is_private", "isPrivate")
        .replace(
            "stars: {type: integer}",
            "stars: {type: integer, nullable: true}\n        more: {type: string}",
        )
        .replace(", colour: {type: string}", "")
        .replace("NewNote: {type: object,", "NewNote: {type: object, additionalProperties: false,")
}

fn side(name: &str, text: &str) -> SideDocument {
    let document = format!("contracts/{name}/api.yaml");
    SideDocument {
        name: name.to_owned(),
        document: document.clone(),
        files: vec![(document, text.as_bytes().into())],
    }
}

fn drafted(old: &str, new: &str, accepted: &[&str]) -> Draft {
    let sides = [side("v1", old), side("v2", new)];
    let accepted = accepted.iter().map(|id| (*id).to_owned()).collect();
    let draft = draft("notes", &sides, &[], &accepted, &mut |_| ()).unwrap_or_else(|compiled| {
        panic!("{}", to_text(&compiled.sources, &compiled.findings, Colour::Never))
    });
    let findings = to_text(&draft.compiled.sources, &draft.compiled.findings, Colour::Never);
    assert!(draft.compiled.pack.is_some(), "a draft passes check at once:\n{findings}\n{:?}", draft.files);
    draft
}

/// Returns a document with these schemas and one operation that returns a `Note`.
fn notes(schemas: &str) -> String {
    format!(
        "openapi: 3.0.3\ninfo: {{title: t, version: '1'}}\npaths:\n  /note: {{get: {{responses: {{200: {{description: it, content: {{application/json: {{schema: {{$ref: '#/components/schemas/Note'}}}}}}}}}}}}}}\ncomponents:\n  schemas:\n{schemas}"
    )
}

fn file<'d>(draft: &'d Draft, name: &str) -> &'d str {
    draft.files.iter().find(|(known, _)| known == name).map_or("", |(_, text)| text)
}

/// Returns a document with one operation that takes a `Note`.
fn posted(schema: &str) -> String {
    format!(
        "openapi: 3.0.3\ninfo: {{title: t, version: '1'}}\npaths:\n  /note: {{post: {{requestBody: {{required: true, content: {{application/json: {{schema: {{$ref: '#/components/schemas/Note'}}}}}}}}, responses: {{204: {{description: taken}}}}}}}}\ncomponents:\n  schemas:\n    Note: {{type: object, additionalProperties: false, properties: {{id: {{type: string}}, {schema}}}}}\n"
    )
}

/// Returns a document with an operation that returns a `Note` with these members, all required.
fn noted(members: &str, required: &str) -> String {
    notes(&format!("    Note: {{type: object, required: [{required}], properties: {{{members}}}}}\n"))
}
