//! Situations of whole contracts: what is read, and the exact words of every finding.

use super::*;
use crate::diagnostic::{Colour, Findings, Sources, to_text};
use crate::yaml;
use proptest::prelude::*;

fn read_all(text: &str) -> (Sources, Contract, Findings) {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let root = yaml::read(&mut sources, "a.openapi.yaml", text.as_bytes(), &mut findings).expect("YAML");
    let contract = read("old", &root, &mut findings);
    (sources, contract, findings)
}

fn good(text: &str) -> Contract {
    let (sources, contract, findings) = read_all(text);
    assert_eq!(to_text(&sources, &findings, Colour::Never), "");
    contract
}

/// Findings as `line:column code message | help`.
fn messages(text: &str) -> Vec<String> {
    let (sources, _, findings) = read_all(text);
    let line = |f: &crate::diagnostic::Finding| {
        let at = sources.start(f.span);
        let help = f.help.as_ref().map(|help| format!(" | {help}")).unwrap_or_default();
        format!("{}:{} {} {}{help}", at.line, at.column, f.code, f.message)
    };
    findings.sorted().into_iter().map(line).collect()
}

const HEAD: &str = "openapi: 3.1.0\ninfo: {title: t, version: '1'}\n";

/// A document with these schemas, the first of them on line 6.
fn with_schemas(schemas: &str) -> String {
    let body: String = schemas.lines().map(|line| format!("    {line}\n")).collect();
    format!("{HEAD}paths: {{}}\ncomponents:\n  schemas:\n{body}")
}

/// The type `T` among these schemas.
fn typed(schemas: &str) -> (Contract, Type) {
    let contract = good(&with_schemas(schemas));
    let ty = contract.types.get("T").expect("T").ty.clone();
    (contract, ty)
}

fn shown(schema: &str) -> String {
    typed(&format!("T: {schema}\nOther: {{type: object}}")).1.to_string()
}

/// A document with these paths, the first of them on line 4.
fn with_paths(paths: &str) -> String {
    let body: String = paths.lines().map(|line| format!("  {line}\n")).collect();
    format!("{HEAD}paths:\n{body}")
}

const BOOKS: &str = r"
openapi: 3.1.0
info: {title: Books, version: '2'}
servers: [{url: 'http://localhost'}]
tags: [{name: books}]
security: [{token: []}]
x-note: anything
paths:
  /books/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer}}
      - {$ref: '#/components/parameters/Page'}
    get:
      operationId: getBook
      summary: One book
      tags: [books]
      parameters:
        - {name: page, in: query, schema: {type: string}, description: replaces the shared one}
        - {name: Accept-Language, in: header, schema: {type: string}}
      responses:
        200:
          description: the book
          headers:
            ETag: {required: true, schema: {type: string}}
            X-Left: {$ref: '#/components/headers/Left'}
          content: {application/json; charset=utf-8: {schema: {$ref: '#/components/schemas/Book'}}}
        404: {$ref: '#/components/responses/Missing'}
        4XX: {description: other}
        default: {description: anything}
    put:
      requestBody: {$ref: '#/components/requestBodies/Book'}
      responses: {'204': {description: done}}
components:
  securitySchemes: {token: {type: apiKey, in: header, name: X-Token}}
  headers: {Left: {schema: {type: integer}}}
  parameters: {Page: {name: page, in: query, schema: {type: integer}}}
  responses:
    Missing:
      description: not there
      content: {application/json: {schema: {type: object, properties: {reason: {type: string}}}}}
  requestBodies:
    Book: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Book'}}}}
  schemas:
    Book:
      type: object
      description: a book
      required: [id, title]
      additionalProperties: false
      properties:
        id: {type: integer, format: int64}
        title: {type: string, maxLength: 80}
        kind: {type: [string, 'null'], enum: [novel, poem, null]}
        state: {type: string, x-values-seen: [lent, free]}
        parts: {type: array, items: {$ref: '#/components/schemas/Book'}}
        owner: {oneOf: [{$ref: '#/components/schemas/Person'}, {type: 'null'}]}
    Person: {type: object, additionalProperties: {type: string}}
";

#[test]
fn a_whole_document_is_read_with_the_place_of_everything() {
    let (sources, contract, findings) = read_all(BOOKS);
    assert_eq!(to_text(&sources, &findings, Colour::Never), "");
    let keys: Vec<_> = contract.operations.iter().map(|operation| operation.key.to_string()).collect();
    assert_eq!(keys, ["GET /books/{id}", "PUT /books/{id}"]);

    let get = contract.find(&OpKey::parse("GET /books/{id}").unwrap()).unwrap();
    let parameters = |all: &[Parameter]| {
        all.iter().map(|p| format!("{}: {} {}", p.name, p.ty, p.required)).collect::<Vec<_>>()
    };
    assert_eq!(parameters(&get.path_params), ["id: integer true"]);
    assert_eq!(parameters(&get.query), ["page: string false"]);
    assert_eq!(parameters(&get.headers), ["Accept-Language: string false"]);
    assert_eq!(get.summary.as_deref(), Some("One book"));
    assert_eq!(sources.start(get.span).line, 13);
    let statuses: Vec<_> = get.responses.iter().map(|r| r.status.to_string()).collect();
    assert_eq!(statuses, ["200", "404", "4XX", "default"]);
    assert_eq!(get.response(200).unwrap().body.as_ref().unwrap().to_string(), "Book");
    assert_eq!(
        parameters(&get.response(200).unwrap().headers),
        ["ETag: string true", "X-Left: integer false"]
    );
    assert_eq!(get.response(404).unwrap().body.as_ref().unwrap().to_string(), "object");
    assert_eq!(get.response(418).unwrap().status, StatusPattern::Class(4));
    assert_eq!(get.response(500).unwrap().status, StatusPattern::Default);

    let put = contract.find_shape(&http::Method::PUT, "/books/{}").unwrap();
    assert!(put.body.as_ref().unwrap().required);
    assert_eq!(parameters(&put.query), ["page: integer false"]);
    assert_eq!(put.response(500).map(|r| r.status), None);
    assert!(contract.find(&OpKey::parse("GET /books/{other}").unwrap()).is_none());

    let book = contract.types.get("Book").unwrap();
    assert_eq!(sources.snippet(book.span), "Book");
    let TypeKind::Object(object) = &book.ty.kind else { panic!("{:?}", book.ty) };
    assert_eq!(object.additional, Additional::Closed);
    let fields: Vec<_> =
        object.fields.iter().map(|f| format!("{}: {} {}", f.name, f.ty, f.required)).collect();
    assert_eq!(
        fields,
        [
            "id: integer true",
            "title: string true",
            "kind: enum(novel, poem) or null false",
            "state: enum(lent, free, …) false",
            "parts: list of Book false",
            "owner: Person or null false",
        ]
    );
}

#[test]
fn types_are_written_as_people_say_them() {
    for (schema, text) in [
        ("{}", "any"),
        ("{description: not shown}", "any"),
        ("true", "any"),
        ("{type: 'null'}", "null"),
        ("{type: [string, 'null']}", "string or null"),
        ("{type: [integer, string, 'null']}", "integer or string or null"),
        ("{type: array}", "list of any"),
        ("{type: array, items: {type: [string, 'null']}}", "list of (string or null)"),
        ("{enum: [1, 2.5, a]}", "enum(1, 2.5) or enum(a)"),
        ("{enum: [a, null]}", "enum(a) or null"),
        ("{type: [integer, number, number]}", "number"),
        ("{const: fixed}", "enum(fixed)"),
        ("{type: string, enum: [a, b, c, d, e, f, g]}", "enum(a, b, c, d, e, f, …)"),
        ("{anyOf: [{$ref: '#/components/schemas/Other'}, {type: string}]}", "Other or string"),
        ("{oneOf: [{type: 'null'}]}", "null"),
        ("{$ref: '#/components/schemas/Other', description: said here}", "Other"),
    ] {
        assert_eq!(shown(schema), text, "{schema}");
    }
}

#[test]
fn resolving_follows_references_and_gathers_null() {
    let (contract, ty) = typed(
        "T: {$ref: '#/components/schemas/A'}\nA: {oneOf: [{$ref: '#/components/schemas/B'}, {type: string}]}\nB: {type: [object, 'null']}",
    );
    let resolved = contract.types.resolve(&ty);
    assert!(resolved.nullable);
    assert!(matches!(resolved.kind, TypeKind::OneOf(_)));
    assert_eq!(contract.types.json_kinds(&ty), [JsonKind::Object, JsonKind::String]);
}

#[test]
fn a_document_of_another_version_or_form_is_refused() {
    assert_eq!(
        messages("openapi: 3.0.3\npaths: []\npath: {}\n"),
        [
            "1:1 Y021 an OpenAPI document needs the key `info`",
            "1:10 C001 OpenAPI 3.0.3 is not read | contracts are OpenAPI 3.1 documents: `openapi: 3.1.0`",
            "2:8 Y022 a map is needed here, and this is a list",
            "3:1 Y020 an OpenAPI document has no key `path` | possible here: `info`, `servers`, `tags`, `components`, `security`, `externalDocs`, `jsonSchemaDialect`",
        ]
    );
}

#[test]
fn references_that_lead_nowhere_elsewhere_or_in_a_circle() {
    assert_eq!(
        messages(&with_schemas(
            "Thing: {type: array, items: {$ref: '#/components/schemas/Thng'}}\nB: {$ref: 'other.yaml#/X'}\nC: {$ref: '#/components/schemas/Thing', minItems: 1}\nD: {$ref: '#/components/schemas/E'}\nE: {oneOf: [{type: string}, {$ref: '#/components/schemas/D'}]}"
        )),
        [
            "6:40 C002 there is no `Thng` under `components/schemas` | did you mean `Thing`?",
            "7:15 C003 this reference leads out of what is read | a reference here is written '#/components/schemas/<name>'",
            "8:45 C003 `minItems` beside `$ref` would change the type | write it in the type that the reference leads to, or write the type out here",
            "10:5 C004 `E` leads only back to itself",
        ]
    );
}

#[test]
fn a_recursive_type_is_no_circle() {
    typed(
        "T: {type: object, properties: {next: {oneOf: [{$ref: '#/components/schemas/T'}, {type: 'null'}]}}}",
    );
}

#[test]
fn what_would_change_the_meaning_is_refused_with_what_to_do() {
    assert_eq!(
        messages(&with_schemas(
            "A: {allOf: [{type: string}]}\nB: {type: string, nullable: true}\nC: {oneOf: [{type: string}, {type: object}], discriminator: {}}\nD: {type: object, propertis: {}}\nE: {oneOf: [{type: string}], type: string}"
        )),
        [
            "6:9 C005 `allOf` is not part of OpenAPI that is read here | write the fields out in one schema",
            "7:23 C005 `nullable` is not part of OpenAPI that is read here | write the type as a list: `type: [<type>, 'null']`",
            "8:50 C005 `discriminator` is not part of OpenAPI that is read here | alternatives are told apart by their JSON type",
            "9:23 Y020 a schema has no key `propertis` | did you mean `properties`?",
            "10:34 C005 `type` beside `oneOf` is not read | write it in each alternative that it is about",
        ]
    );
}

#[test]
fn every_keyword_outside_the_subset_is_refused() {
    for (keyword, help) in schema::OUTSIDE {
        assert_eq!(
            messages(&with_schemas(&format!("A: {{{keyword}: 1}}"))),
            [format!("6:9 C005 `{keyword}` is not part of OpenAPI that is read here | {help}")]
        );
    }
}

#[test]
fn alternatives_of_one_json_type_are_refused() {
    assert_eq!(
        messages(&with_schemas(
            "A: {oneOf: [{type: integer}, {type: string}, {type: number}]}\nB: {anyOf: [{$ref: '#/components/schemas/C'}, {type: object}]}\nC: {type: object}\nD: {oneOf: []}"
        )),
        [
            "6:50 C006 two alternatives hold values of the JSON type number | alternatives must differ by their JSON type; write one type that covers both",
            "7:51 C006 two alternatives hold values of the JSON type object | alternatives must differ by their JSON type; write one type that covers both",
            "9:16 C006 there is no alternative here",
        ]
    );
}

#[test]
fn enumerations_hold_scalars_of_their_type_each_once() {
    assert_eq!(
        messages(&with_schemas(
            "A: {type: string, enum: [a, 1, a, [b]]}\nB: {type: [string, 'null'], enum: [a]}\nC: {type: string, enum: [a], x-values-seen: [b]}\nD: {type: string, enum: []}\nE: {type: string, const: null}"
        )),
        [
            "6:33 C013 `1` (integer) is not a value of the type string",
            "6:36 C013 the value `a` is listed twice",
            "6:39 Y022 a scalar is needed here, and this is a list",
            "7:39 C013 the type allows null, and the enumeration leaves it out | list `null` as well, or take 'null' out of `type`: as it stands null is not allowed",
            "8:34 C013 an enumeration is either closed or open | keep `enum`, or keep `x-values-seen` for one that may grow",
            "9:29 C013 an enumeration lists at least one value",
            "10:30 C013 `null` is not a value of the type string",
        ]
    );
}

#[test]
fn keywords_stand_beside_the_type_they_speak_about() {
    assert_eq!(
        messages(&with_schemas(
            "A: {properties: {}}\nB: {type: string, items: {}}\nC: {type: strng}\nD: {type: [string, null]}\nE: {type: object, properties: {name: {}}, required: [nmae, 5]}"
        )),
        [
            "6:9 C016 `properties` without a type says nothing of other values | add `type: object`",
            "7:23 C016 `items` speaks about array, and this is string",
            "8:15 Y023 `strng` is not one of the words possible here | did you mean `string`?",
            "9:24 Y022 a type is needed here, and this is nothing | quote it: 'null'",
            "10:58 C012 `nmae` is required and not among the properties | did you mean `name`?",
            "10:64 Y022 a text is needed here, and this is a number | quote it: '5'",
        ]
    );
}

#[test]
fn paths_and_their_parameters_agree() {
    assert_eq!(
        messages(&with_paths(
            "/a/{id}:\n  get:\n    parameters: [{name: ident, in: path, required: true, schema: {}}]\n    responses: {200: {}}\n/a/{other}:\n  get:\n    parameters:\n      - {name: other, in: path, schema: {}}\n      - {name: q, in: query, schema: {}}\n      - {name: q, in: query, schema: {}}\n      - {name: c, in: cookie, schema: {}}\n    responses: {200: {}}\n/b/:\n  get: {responses: {200: {}}}\n/c:\n  fetch: {}"
        )),
        [
            "5:5 C008 `id` of GET /a/{id} is not among its parameters | add {name: id, in: path, required: true, schema: …}",
            "6:20 C008 the path of GET /a/{id} has no variable `ident`",
            "9:5 C014 GET /a/{other} matches the same requests as GET /a/{id}",
            "11:11 C010 the path parameter `other` must be required | add `required: true`",
            "13:11 C015 the parameter `q` is given twice",
            "14:25 C010 parameters in `cookie` are not read | possible here: `path`, `query`, `header`",
            "16:3 C007 `/b/` is not a path: a path has no empty segments",
            "19:5 Y020 a path has no key `fetch` | possible here: `get`, `put`, `post`, `delete`, `options`, `head`, `patch`, `parameters`, `summary`, `description`",
        ]
    );
}

#[test]
fn bodies_and_responses_have_their_form() {
    assert_eq!(
        messages(&with_paths(
            "/a:\n  post:\n    requestBody: {content: {text/plain: {schema: {}}, application/json: {}}}\n    responses:\n      2xx: {}\n      600: {}\n      200: {$ref: '#/components/responses/None'}\n      201: {content: {application/xml: {}}, header: {}}\n  get: {responses: {}}\n  put: {}"
        )),
        [
            "6:31 C011 bodies of type `text/plain` are not read | bodies are application/json",
            "6:75 Y021 a media type needs the key `schema`",
            "9:9 C009 `600` is not a status | write a status such as 200, a class such as 2XX, or default",
            "10:21 C002 there is no `None` under `components/responses`",
            "11:25 C011 bodies of type `application/xml` are not read | bodies are application/json",
            "11:47 Y020 a response has no key `header` | did you mean `headers`?",
            "12:5 C009 GET /a promises no response",
            "13:10 Y021 an operation needs the key `responses`",
        ]
    );
}

/// Whether `T` of the first schemas goes into `T` of the second, or why not.
fn goes(from: &str, into: &str) -> Result<(), String> {
    let ((a, from), (b, to)) = (typed(from), typed(into));
    assignable(a.types.at(&from), b.types.at(&to)).map_err(|why| why.to_string())
}

#[test]
fn what_goes_into_what() {
    let object = |fields: &str| format!("T: {{type: object, {fields}}}");
    let cases = [
        ("T: {}", "T: {type: string}", Ok(())),
        ("T: {type: [string, 'null']}", "T: {}", Ok(())),
        ("T: {type: integer}", "T: {type: number}", Ok(())),
        ("T: {type: number}", "T: {type: integer}", Err("number is not integer")),
        ("T: {type: string}", "T: {type: integer}", Err("string is not integer")),
        ("T: {type: [string, 'null']}", "T: {type: string}", Err("it may be null, and string may not")),
        ("T: {type: string}", "T: {type: [string, 'null']}", Ok(())),
        ("T: {type: 'null'}", "T: {type: [string, 'null']}", Ok(())),
        ("T: {type: string, enum: [a]}", "T: {type: string, enum: [a, b]}", Ok(())),
        (
            "T: {type: string, enum: [a, c]}",
            "T: {type: string, enum: [a, b]}",
            Err("these values are not listed on the other side: c"),
        ),
        (
            "T: {type: string, x-values-seen: [a]}",
            "T: {type: string, enum: [a]}",
            Err("enum(a, …) may hold values outside enum(a)"),
        ),
        ("T: {type: string}", "T: {type: string, enum: [a]}", Err("string may hold values outside enum(a)")),
        ("T: {type: string}", "T: {type: string, x-values-seen: [a]}", Ok(())),
        ("T: {type: [string, integer]}", "T: {type: string}", Err("integer is not string")),
        ("T: {type: string}", "T: {type: [integer, string]}", Ok(())),
        ("T: {type: boolean}", "T: {type: [integer, string]}", Err("boolean is not integer or string")),
        (
            "T: {type: array, items: {type: [string, 'null']}}",
            "T: {type: array, items: {type: string}}",
            Err("`[]`: it may be null, and string may not"),
        ),
    ];
    for (from, into, wanted) in cases {
        assert_eq!(goes(from, into), wanted.map_err(str::to_owned), "{from} into {into}");
    }
    let cases = [
        ("properties: {a: {}}, required: [a]", "properties: {a: {}}, required: [a]", Ok(())),
        (
            "properties: {a: {}}",
            "properties: {a: {}}, required: [a]",
            Err("`a`: it is required, and may be absent"),
        ),
        (
            "properties: {}",
            "properties: {a: {}}, required: [a]",
            Err("`a`: it is required, and there is none"),
        ),
        ("properties: {a: {}}", "properties: {}", Ok(())),
        (
            "properties: {a: {}}",
            "additionalProperties: false",
            Err("`a`: there is no such field on the other side"),
        ),
        (
            "properties: {a: {type: string}}",
            "additionalProperties: {type: integer}",
            Err("`a`: string is not integer"),
        ),
        (
            "additionalProperties: {type: string}",
            "additionalProperties: {type: integer}",
            Err("`*`: string is not integer"),
        ),
        (
            "properties: {a: {type: array, items: {type: object, properties: {b: {type: string}}}}}",
            "properties: {a: {type: array, items: {type: object, properties: {b: {type: boolean}}}}}",
            Err("`a[].b`: string is not boolean"),
        ),
    ];
    for (from, into, wanted) in cases {
        assert_eq!(goes(&object(from), &object(into)), wanted.map_err(str::to_owned), "{from} into {into}");
    }
}

#[test]
fn recursive_types_are_compared_to_their_end() {
    let list = "T: {type: object, properties: {v: {type: string}, next: {$ref: '#/components/schemas/T'}}}";
    assert_eq!(goes(list, list), Ok(()));
    let unrolled = "T: {type: object, properties: {v: {type: string}, next: {$ref: '#/components/schemas/U'}}}\nU: {type: object, properties: {v: {type: string}, next: {type: object, properties: {next: {$ref: '#/components/schemas/T'}}}}}";
    assert_eq!(goes(list, unrolled), Ok(()));
    let other = "T: {type: object, properties: {next: {$ref: '#/components/schemas/U'}}}\nU: {type: object, properties: {v: {type: integer}}}";
    assert_eq!(goes(list, other), Err("`next.v`: string is not integer".to_owned()));
    let maybe =
        "T: {type: object, properties: {next: {oneOf: [{$ref: '#/components/schemas/T'}, {type: string}]}}}";
    assert_eq!(goes(maybe, maybe), Ok(()));
}

#[test]
fn the_contracts_of_every_pack_are_read_without_findings() {
    let packs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mappings");
    let mut read = 0;
    for pack in std::fs::read_dir(packs).expect("packs").map(|entry| entry.expect("entry").path()) {
        let Ok(contracts) = std::fs::read_dir(pack.join("contracts")) else { continue };
        for path in contracts.map(|entry| entry.expect("entry").path()) {
            let text = std::fs::read_to_string(&path).expect("text");
            let (sources, contract, findings) = read_all(&text);
            assert_eq!(to_text(&sources, &findings, Colour::Never), "", "{}", path.display());
            assert!(!contract.operations.is_empty(), "{}", path.display());
            for named in contract.types.iter() {
                let there = contract.types.at(&named.ty);
                assert_eq!(assignable(there, there), Ok(()), "{} goes into itself", named.name);
            }
            read += 1;
        }
    }
    assert!(read >= 2, "two sides make a pack");
}

#[test]
fn a_chain_of_types_as_long_as_a_document_is_compared_to_its_end() {
    let chain = |last: &str| {
        let mut text =
            String::from("T: {type: object, properties: {n: {$ref: '#/components/schemas/T0'}}}\n");
        for i in 0..5_000 {
            let next = format!("{{$ref: '#/components/schemas/T{}'}}", i + 1);
            text.push_str(&format!("T{i}: {{type: object, properties: {{n: {next}}}}}\n"));
        }
        text + &format!("T5000: {{type: {last}}}")
    };
    assert_eq!(goes(&chain("string"), &chain("string")), Ok(()));
    let why = goes(&chain("string"), &chain("integer")).unwrap_err();
    assert_eq!(why, format!("`n{}`: string is not integer", ".n".repeat(5_000)));
}

/// Words and numbers of a document, as places to damage.
fn tokens(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut tokens: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, c) in text.char_indices().filter(|(_, c)| c.is_alphanumeric() || "#/{}[]$".contains(*c)) {
        match tokens.last_mut() {
            Some(last) if last.end == at && c.is_alphanumeric() => last.end += c.len_utf8(),
            _ => tokens.push(at..at + c.len_utf8()),
        }
    }
    tokens
}

proptest! {
    #[test]
    fn a_damaged_document_is_read_or_refused(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..3u8), 1..6),
    ) {
        let mut text = BOOKS.to_owned();
        for (at, other, how) in damage {
            let tokens = tokens(&text);
            let (at, other) = (at.get(&tokens).clone(), text[other.get(&tokens).clone()].to_owned());
            match how {
                0 => text.replace_range(at, ""),
                1 => text.replace_range(at, &other),
                _ => text.insert_str(at.start, &other),
            }
        }
        let (mut sources, mut findings) = (Sources::new(), Findings::new());
        if let Some(root) = yaml::read(&mut sources, "a", text.as_bytes(), &mut findings) {
            let contract = read("old", &root, &mut findings);
            for named in contract.types.iter() {
                let there = contract.types.at(&named.ty);
                prop_assert_eq!(assignable(there, there), Ok(()));
            }
        }
        to_text(&sources, &findings, Colour::Never);
    }
}
