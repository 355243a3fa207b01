//! Tests of complete contracts: the parsed types, and the exact wording of every finding.

mod comparing;

use super::*;
use crate::diagnostic::{Colour, Findings, Sources, to_text};
use proptest::prelude::*;
use switchback_plan::Message;

/// A contract stays in memory as long as the gateway runs, and a large one has a hundred thousand
/// fields. Rare parts (bounds, enumerations, alternatives) are therefore boxed.
#[test]
fn a_field_without_bounds_is_small() {
    assert_eq!(std::mem::size_of::<Type>(), 80);
    assert_eq!(std::mem::size_of::<Field>(), 136);
}

fn read_all(text: &str) -> (Sources, Contract, Findings) {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let documents = Documents::single(&mut sources, "a.openapi.yaml", text.as_bytes(), &mut findings);
    let contract = parse_contract("old", &documents.expect("a tree"), &mut findings);
    (sources, contract, findings)
}

fn good(text: &str) -> Contract {
    let (sources, contract, findings) = read_all(text);
    assert_eq!(to_text(&sources, &findings, Colour::Never), "");
    contract
}

/// Returns findings as `line:column code message | help`.
fn messages(text: &str) -> Vec<String> {
    let (sources, _, findings) = read_all(text);
    let line = |f: &crate::diagnostic::Finding| {
        let at = sources.start(f.span);
        let help = f.help.as_ref().map(|help| format!(" | {help}")).unwrap_or_default();
        let count = f.group.as_ref().map_or(1, |group| group.count);
        let times = if count > 1 { format!(" x{count}") } else { String::new() };
        format!("{}:{} {}{times} {} {}{help}", at.line, at.column, f.severity.word(), f.code, f.message)
    };
    findings.in_order().into_iter().map(line).collect()
}

const HEAD: &str = "openapi: 3.1.0\ninfo: {title: t, version: '1'}\n";

/// Returns a document with these schemas; the first one is on line 6.
fn with_schemas(schemas: &str) -> String {
    let body: String = schemas.lines().map(|line| format!("    {line}\n")).collect();
    format!("{HEAD}paths: {{}}\ncomponents:\n  schemas:\n{body}")
}

/// Returns the type `T` of these schemas.
fn typed(schemas: &str) -> (Contract, Type) {
    typed_in(good(&with_schemas(schemas)))
}

fn typed_in(contract: Contract) -> (Contract, Type) {
    let ty = contract.types.get("T").expect("T").ty.clone();
    (contract, ty)
}

fn shown(schema: &str) -> String {
    typed(&format!("T: {schema}\nOther: {{type: object}}")).1.to_string()
}

/// Compares `T` of the first schemas with `T` of the second.
fn goes(from: &str, into: &str) -> Result<(), String> {
    let ((a, from), (b, to)) = (typed(from), typed(into));
    assignable(a.types.at(&from), b.types.at(&to), None).map_err(|why| why.to_string())
}

/// Returns a document with these paths; the first one is on line 4.
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
fn what_is_no_contract_is_refused() {
    assert_eq!(
        messages("openapi: 4.0.0\npaths: []\n"),
        [
            "1:10 error C001 OpenAPI 4.0.0 is not read | contracts are documents of OpenAPI 3.0, 3.1 or 3.2, or of Swagger 2.0",
        ]
    );
    assert_eq!(
        messages("paths: {}\n"),
        [
            "1:1 error C001 this is no OpenAPI document: it has neither `openapi` nor `swagger` | a contract begins with `openapi: 3.1.0`, or `swagger: '2.0'`",
        ]
    );
    assert_eq!(messages("- openapi\n"), ["1:1 error Y022 a map is needed here, and this is a list"]);
    assert_eq!(
        messages("openapi: 3.1.0\npaths: []\n"),
        ["2:8 warning Y022 paths must be a map, and this is a list: it is passed over"]
    );
}

#[test]
fn references_that_lead_nowhere_elsewhere_or_in_a_circle_cost_their_place_only() {
    assert_eq!(
        messages(&with_schemas(
            "Thing: {type: array, items: {$ref: '#/components/schemas/Thng'}}\nB: {$ref: 'https://example.com/x.yaml#/X'}\nC: {$ref: '#/components/schemas/Thing', minItems: 1}\nD: {$ref: '#/components/schemas/E'}\nE: {oneOf: [{type: string}, {$ref: '#/components/schemas/D'}]}"
        )),
        [
            "6:40 warning C002 `#/components/schemas/Thng` leads nowhere: it stands for any value | did you mean `Thing`?",
            "7:15 warning C003 `https://example.com/x.yaml#/X` leads out to the net: it stands for any value | save the document beside this one, and refer to it by its path",
            "10:5 warning C004 `E` leads only back to itself: it stands for any value",
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
fn keywords_that_only_narrow_are_told_once_and_typing_mistakes_with_the_right_word() {
    assert_eq!(
        messages(&with_schemas(
            "A: {type: string, not: {const: a}}\nB: {type: string, not: {const: b}}\nC: {type: object, propertis: {}}\nD: {type: string, mine: 1, x-mine: 1}\nE: {type: strng}"
        )),
        [
            "6:23 note x2 C005 `not` is not read: the type takes more values than the document allows",
            "8:23 warning Y020 `propertis` says nothing in a schema | did you mean `properties`?",
            "10:15 warning Y023 `strng` is no type: it stands for any value | did you mean `string`?",
        ]
    );
}

/// Returns the fields of the object `T` of these schemas as `name: type`, with `!` for required
/// ones.
fn fields_of(schemas: &str) -> Vec<String> {
    let (contract, ty) = typed(schemas);
    let TypeKind::Object(object) = contract.types.resolve(&ty).kind else { panic!("{ty}") };
    let field = |f: &Field| format!("{}{}: {}", f.name, if f.required { "!" } else { "" }, f.ty);
    object.fields.iter().map(field).collect()
}

#[test]
fn all_of_is_one_type_of_all_its_parts() {
    let base =
        "Base: {type: object, required: [id], properties: {id: {type: integer}, kind: {type: string}}}";
    let with = |schema: &str| fields_of(&format!("T: {schema}\n{base}"));
    assert_eq!(
        with(
            "{allOf: [{$ref: '#/components/schemas/Base'}, {required: [kind], properties: {kind: {enum: [a]}, more: {}}}]}"
        ),
        ["kind!: enum(a)", "more: any", "id!: integer"]
    );
    assert_eq!(
        with("{$ref: '#/components/schemas/Base', properties: {more: {type: string}}}"),
        ["more: string", "id!: integer", "kind: string"]
    );
    assert_eq!(with("{allOf: [{properties: {a: {}}}], properties: {b: {}}}"), ["b: any", "a: any"]);
    assert_eq!(with("{type: object, required: [a, b], properties: {b: {}}}"), ["b!: any", "a!: any"]);
    assert_eq!(
        shown("{allOf: [{$ref: '#/components/schemas/Other'}], description: said here}"),
        "Other",
        "a reference with remarks is the reference"
    );
    assert_eq!(
        shown("{type: object, nullable: true, allOf: [{$ref: '#/components/schemas/Other'}]}"),
        "Other or null"
    );
    assert_eq!(shown("{allOf: [{type: string}, {enum: [a, b]}]}"), "enum(a, b)");
    assert_eq!(
        messages(&with_schemas("T: {allOf: [{type: string}, {type: integer}]}")),
        ["6:40 warning C006 no value is of all types that `allOf` asks for: it stands for any value"]
    );
}

/// `nullable` adds null to the type next to it; authors also write it next to `allOf`.
#[test]
fn a_conjunction_takes_null_if_all_of_its_types_do() {
    let cases = [
        ("{allOf: [{$ref: '#/components/schemas/N'}, {type: object, properties: {b: {}}}]}", false),
        ("{allOf: [{$ref: '#/components/schemas/N'}, {properties: {b: {}}}]}", true),
        (
            "{allOf: [{$ref: '#/components/schemas/N'}, {type: object, nullable: true, properties: {b: {}}}]}",
            true,
        ),
        (
            "{allOf: [{$ref: '#/components/schemas/O'}, {type: object, nullable: true, properties: {b: {}}}]}",
            false,
        ),
        ("{allOf: [{$ref: '#/components/schemas/O'}, {nullable: true}]}", true),
        ("{nullable: true, allOf: [{$ref: '#/components/schemas/O'}]}", true),
        ("{type: object, nullable: true, allOf: [{$ref: '#/components/schemas/O'}]}", true),
        ("{allOf: [{$ref: '#/components/schemas/N'}]}", true),
    ];
    for (schema, is_nullable) in cases {
        let (contract, ty) = typed(&format!(
            "T: {schema}\nN: {{type: object, nullable: true, properties: {{a: {{}}}}}}\nO: {{type: object, properties: {{a: {{}}}}}}"
        ));
        assert_eq!(contract.types.resolve(&ty).nullable, is_nullable, "{schema}");
    }
}

#[test]
fn what_a_schema_without_a_type_speaks_about_is_its_type() {
    for (schema, text) in [
        ("{properties: {a: {}}}", "object"),
        ("{additionalProperties: {type: string}}", "object"),
        ("{required: [a]}", "object"),
        ("{items: {type: string}}", "list of string"),
        ("{pattern: '^a'}", "string"),
        ("{minimum: 1}", "number"),
        ("{type: string, items: {}, uniqueItems: true}", "string"),
        ("{type: string, nullable: true}", "string or null"),
        ("{type: string, x-nullable: true}", "string or null"),
        ("{type: string, nullable: true, enum: [a]}", "enum(a) or null"),
        ("{type: [string, null]}", "string or null"),
        ("{type: file}", "any"),
        ("{const: null}", "null"),
        ("{type: string, enum: []}", "string"),
        ("{type: array, items: [{type: string}]}", "list of any"),
    ] {
        let (_, contract, findings) =
            read_all(&with_schemas(&format!("T: {schema}\nOther: {{type: object}}")));
        assert!(
            !findings.has_errors() && findings.count(crate::diagnostic::Severity::Warning) == 0,
            "{schema}"
        );
        assert_eq!(contract.types.get("T").unwrap().ty.to_string(), text, "{schema}");
    }
}

#[test]
fn enumerations_hold_scalars_of_their_type() {
    assert_eq!(
        messages(&with_schemas(
            "A: {type: string, enum: [a, 1, a]}\nB: {type: [string, 'null'], enum: [a]}\nC: {type: string, enum: [a], x-values-seen: [b]}\nD: {type: string, enum: [[b]]}\nE: {type: string, const: null}"
        )),
        [
            "6:33 warning x2 C013 `1` (integer) is not a value of the type string",
            "7:39 warning C013 the type allows null, and the enumeration leaves it out | list `null` as well, or take 'null' out of `type`: as it stands null is not allowed",
            "8:49 warning C013 an enumeration is either closed or open | keep `enum`, or keep `x-values-seen` for one that may grow",
            "9:30 note C013 a list of values that are lists or objects is not read",
        ]
    );
}

#[test]
fn alternatives_are_told_apart_by_whatever_tells_them_apart() {
    let objects = "Cat: {type: object, required: [kind], properties: {kind: {enum: [cat]}, purr: {type: string}}}\nDog: {type: object, required: [kind, bark], properties: {kind: {enum: [dog, hound]}, bark: {type: string}}}\nBee: {type: object, required: [sting], properties: {sting: {type: string}}}\nFly: {type: object, properties: {buzz: {type: string}}}";
    let of = |list: &str| {
        let refs: Vec<String> =
            list.split(' ').map(|name| format!("{{$ref: '#/components/schemas/{name}'}}")).collect();
        format!("oneOf: [{}]", refs.join(", "))
    };
    let test = |schema: &str| {
        let (_, contract, _) = read_all(&with_schemas(&format!("T: {{{schema}}}\n{objects}")));
        match &contract.types.get("T").unwrap().ty.kind {
            TypeKind::Choice(choice) => format!("{:?}", choice.test),
            other => other.to_string(),
        }
    };
    let constant = |member: &str, values: &[(&str, usize)]| {
        let values = values.iter().map(|(value, at)| (Literal::String((*value).to_owned()), *at)).collect();
        format!("{:?}", Test::Constant { member: member.to_owned(), values })
    };
    assert_eq!(test(&of("Cat Dog")), constant("kind", &[("cat", 0), ("dog", 1), ("hound", 1)]));
    assert_eq!(test(&of("Bee Fly")), format!("{:?}", Test::OwnField(vec![Some("sting".to_owned()), None])));
    assert_eq!(
        test(&of("Fly Bee Dog")),
        format!("{:?}", Test::OwnField(vec![None, Some("sting".to_owned()), Some("kind".to_owned())]))
    );
    assert_eq!(
        test(&format!(
            "{}, discriminator: {{propertyName: type, mapping: {{b: '#/components/schemas/Bee', c: Fly}}}}",
            of("Bee Fly")
        )),
        constant("type", &[("b", 0), ("c", 1)])
    );
    assert_eq!(
        test(&format!("{}, discriminator: {{propertyName: type}}", of("Bee Fly"))),
        constant("type", &[("Bee", 0), ("Fly", 1)])
    );
    // By kind, with null and overlapping scalars merged.
    assert_eq!(
        test(
            "anyOf: [{type: string, enum: [a]}, {$ref: '#/components/schemas/Cat'}, {type: string}, {type: 'null'}]"
        ),
        "string or Cat"
    );
    assert_eq!(test("anyOf: [{type: integer}, {type: number}]"), "number");
    assert_eq!(test("anyOf: [{enum: [a]}, {enum: [b]}]"), "enum(a, b)");
    // Alternatives that only list required members are not a choice.
    assert_eq!(test("type: object, anyOf: [{required: [a]}, {required: [b]}]"), "object");
    // No test distinguishes these.
    assert_eq!(test("oneOf: [{$ref: '#/components/schemas/Fly'}, {type: object}]"), "any");
    assert_eq!(
        messages(&with_schemas(&format!(
            "T: {{oneOf: [{{$ref: '#/components/schemas/Fly'}}, {{type: object}}]}}\n{objects}"
        ))),
        [
            "6:8 note C006 nothing tells these alternatives apart: together they are any value | a `discriminator`, a required constant, or a required field of its own in each would"
        ]
    );
}

#[test]
fn what_stands_beside_alternatives_holds_for_each() {
    let schemas = "T: {type: object, required: [id], properties: {id: {type: integer}}, oneOf: [{required: [a], properties: {a: {type: string}}}, {required: [b], properties: {b: {type: string}}}]}";
    let (contract, ty) = typed(schemas);
    let TypeKind::Choice(choice) = &ty.kind else { panic!("{ty}") };
    for (alternative, own) in choice.alternatives.iter().zip(["a", "b"]) {
        let TypeKind::Object(object) = contract.types.resolve(alternative).kind else {
            panic!("{alternative}")
        };
        assert!(object.field("id").is_some_and(|field| field.required), "{own}");
        assert!(object.field(own).is_some_and(|field| field.required), "{own}");
    }
}

#[test]
fn alternatives_go_to_those_that_mean_the_same() {
    let of = |cat: &str, dog: &str| {
        format!(
            "T: {{oneOf: [{{type: object, required: [k], properties: {{k: {{enum: [cat]}}, v: {{type: {cat}}}}}}}, {{type: object, required: [k], properties: {{k: {{enum: [{dog}]}}}}}}]}}"
        )
    };
    assert_eq!(goes(&of("string", "dog"), &of("string", "dog, hound")), Ok(()));
    assert_eq!(
        goes(&of("string", "dog"), &of("integer", "dog")),
        Err("`v`: string is not integer".to_owned())
    );
    assert_eq!(
        goes(&of("string", "dog, hound"), &of("string", "dog")),
        Err("object or object is not object or object".to_owned())
    );
    let cat = "T: {type: object, required: [k], properties: {k: {enum: [cat]}, v: {type: string}}}";
    assert_eq!(goes(cat, &of("string", "dog")), Ok(()));
    assert_eq!(goes(cat, &of("integer", "dog")), Err("`v`: string is not integer".to_owned()));
    assert_eq!(goes(&of("string", "dog"), "T: {type: object}"), Ok(()));
}

#[test]
fn a_field_of_one_way_is_not_asked_for_the_other_way() {
    let target = "T: {type: object, required: [id, name], properties: {id: {type: integer, readOnly: true}, name: {}}}";
    assert_eq!(goes("T: {type: object, required: [name], properties: {name: {}}}", target), Ok(()));
    assert_eq!(
        goes("T: {type: object, properties: {}}", target),
        Err("`name`: it is required, and there is none".to_owned())
    );
}

#[test]
fn paths_and_their_parameters_agree() {
    assert_eq!(
        messages(&with_paths(
            "/a/{id}:\n  get:\n    parameters: [{name: ident, in: path, required: true, schema: {}}]\n    responses: {200: {}}\n/a/{other}:\n  get:\n    parameters:\n      - {name: other, in: path, schema: {}}\n      - {name: q, in: query, schema: {}}\n      - {name: q, in: query, schema: {}}\n      - {name: c, in: cookie, schema: {}}\n      - {name: d, in: trailer, schema: {}}\n    responses: {200: {}}\n/b/:\n  get: {responses: {200: {}}}\n/c?d:\n  get: {responses: {200: {}}}"
        )),
        [
            "5:5 warning C008 `id` of GET /a/{id} is not among its parameters: it is any text",
            "6:20 warning C008 the path of GET /a/{id} has no variable `ident`",
            "9:5 warning C014 GET /a/{other} matches the same requests as GET /a/{id}: it is left out",
            "13:11 warning C015 the parameter `q` is given twice: the first counts",
            "15:11 note C010 parameters in `trailer` are passed over",
            "19:3 warning C007 `/c?d` is not a path that requests could have (`?` cannot stand in a path): its operations are left out",
        ]
    );
}

#[test]
fn bodies_are_json_or_a_form_or_bytes() {
    let text = with_paths(
        "/a:\n  post:\n    requestBody: {content: {text/plain: {schema: {}}, application/json: {}}}\n    responses:\n      2xx: {content: {application/hal+json: {schema: {type: string}}}}\n      600: {}\n      200: {$ref: '#/components/responses/None'}\n      201: {content: {application/xml: {}}}\n  put:\n    requestBody: {content: {multipart/form-data: {schema: {type: object, properties: {a: {}}}}}}\n    responses: {200: {content: {'*/*': {schema: {type: string}}}}}\n  get: {responses: {}}",
    );
    assert_eq!(
        messages(&text),
        [
            "9:9 warning C009 `600` is not a status: the answer is passed over | write a status such as 200, a class such as 2XX, or default",
            "10:21 warning C002 `#/components/responses/None` leads nowhere: it stands for any value",
            "15:5 warning C009 GET /a promises no response",
        ]
    );
    let (_, contract, _) = read_all(&text);
    let shown = |key: &str| {
        let operation = contract.find(&OpKey::parse(key).unwrap()).unwrap();
        let body = operation.body.as_ref().map(|body| format!("{} {}", body.media.name(), body.ty));
        let answers = operation.responses.iter().map(|r| format!("{} {}", r.status, r.media.name()));
        (body.unwrap_or_default(), answers.collect::<Vec<_>>().join(", "), operation.is_typed())
    };
    let post = ("application/json any", "2XX application/hal+json, 201 application/xml", false);
    assert_eq!(shown("POST /a"), (post.0.to_owned(), post.1.to_owned(), post.2));
    let put = ("multipart/form-data object", "200 application/json", false);
    assert_eq!(shown("PUT /a"), (put.0.to_owned(), put.1.to_owned(), put.2));
}

#[test]
fn swagger_2_is_lowered_to_the_same_form() {
    let contract = good(
        r"
swagger: '2.0'
info: {title: t, version: '1'}
consumes: [application/json]
produces: [application/json]
parameters: {Page: {name: page, in: query, type: integer}}
responses: {Missing: {description: none, schema: {$ref: '#/definitions/Thing'}}}
definitions: {Thing: {type: object, required: [id], properties: {id: {type: integer}, note: {type: string, x-nullable: true}}}}
paths:
  /things/{id}:
    parameters: [{name: id, in: path, required: true, type: integer}]
    get:
      parameters: [{$ref: '#/parameters/Page'}, {name: tags, in: query, type: array, items: {type: string}, collectionFormat: csv}]
      responses: {200: {description: it, schema: {$ref: '#/definitions/Thing'}}, 404: {$ref: '#/responses/Missing'}, 204: {description: none}}
    put:
      parameters: [{name: body, in: body, required: true, schema: {$ref: '#/definitions/Thing'}}]
      responses: {204: {description: done}}
    post:
      parameters: [{name: title, in: formData, type: string, required: true}, {name: picture, in: formData, type: file}]
      responses: {204: {description: done}}
",
    );
    let operation = |key: &str| contract.find(&OpKey::parse(key).unwrap()).unwrap();
    let get = operation("GET /things/{id}");
    assert_eq!(get.path_params[0].ty.to_string(), "integer");
    let query: Vec<_> = get.query.iter().map(|p| format!("{} {}", p.name, p.ty)).collect();
    assert_eq!(query, ["page integer", "tags list of string"]);
    assert_eq!(get.response(404).unwrap().body.as_ref().unwrap().to_string(), "Thing");
    assert_eq!(get.response(204).unwrap().body, None);
    let put = operation("PUT /things/{id}").body.as_ref().unwrap();
    assert_eq!((put.ty.to_string().as_str(), put.required, put.media.is_json()), ("Thing", true, true));
    let post = operation("POST /things/{id}").body.as_ref().unwrap();
    assert_eq!((post.required, post.media.name()), (true, "multipart/form-data"));
    let TypeKind::Object(form) = &post.ty.kind else { panic!("{}", post.ty) };
    assert_eq!(
        form.fields.iter().map(|f| (f.name.as_str(), f.required)).collect::<Vec<_>>(),
        [("title", true), ("picture", false)]
    );
}

#[test]
fn long_schemas_of_a_second_media_type_are_compared() {
    let unread = |before: &str, last: &str| {
        let fields: String = (0..1500).map(|n| format!("member{n}: {{type: string}}, ")).collect();
        let schema = format!("{{schema: {{type: object, properties: {{{fields}last: {{type: {last}}}}}}}}}");
        let content =
            format!("application/json: {{schema: {{type: object}}}}, application/vnd.a+json: {schema}");
        let paths = format!(
            "{before}/a:\n  get:\n    responses: {{200: {{description: it, content: {{{content}}}}}}}"
        );
        let mut contract = good(&with_paths(&paths));
        let unread = contract.operations.pop().unwrap().responses.remove(0).unread;
        assert!(unread[0].schema.as_ref().is_some_and(|schema| schema.len() > 33_000));
        unread
    };
    let earlier = "/_:\n  get:\n    responses: {204: {description: done}}\n";
    assert_eq!(unread("", "string"), unread(earlier, "string"));
    assert_ne!(unread("", "string"), unread("", "integer"));
}

#[test]
fn a_form_beside_json_is_read_if_its_schema_is_the_same() {
    let also = |content: &str| {
        let paths = format!(
            "/a:\n  post:\n    requestBody: {{content: {{{content}}}}}\n    responses: {{204: {{description: done}}}}"
        );
        let mut contract = good(&with_paths(&paths));
        let body = contract.operations.remove(0).body.unwrap();
        (body.also_named(), body.unread.iter().filter(|media| media.schema.is_some()).count())
    };
    let (json, form) = ("application/json", "application/x-www-form-urlencoded");
    let (text, number) =
        ("{schema: {type: object, properties: {a: {type: string}}}}", "{schema: {type: object}}");
    assert_eq!(also(&format!("{json}: {text}, {form}: {text}")), (Some(form), 0));
    assert_eq!(also(&format!("{form}: {text}, {json}: {text}")), (Some(form), 0));
    assert_eq!(also(&format!("{json}: {text}, {form}: {number}")), (None, 1));
    assert_eq!(also(&format!("{form}: {text}")), (None, 0));
    let swagger = |consumes: &str| {
        let mut contract = good(&format!(
            "swagger: '2.0'\ninfo: {{title: t, version: '1'}}\nconsumes: [{consumes}]\npaths:\n  /a:\n    post:\n      parameters: [{{name: a, in: formData, type: string}}]\n      responses: {{204: {{description: done}}}}"
        ));
        contract.operations.remove(0).body.unwrap().also_named()
    };
    assert_eq!(swagger(&format!("{form}, {json}")), Some(json));
    assert_eq!(swagger(json), None);
    assert_eq!(swagger(&format!("multipart/form-data, {json}")), None);
}

#[test]
fn parameters_that_are_objects_are_read_by_their_style() {
    let contract = good(&with_paths(
        "/a:\n  get:\n    parameters:\n      - {name: side, in: query, schema: {type: object, properties: {x: {type: integer}, y: {type: string}}}}\n      - {name: deep, in: query, style: deepObject, explode: true, schema: {type: object, properties: {z: {type: string}}}}\n      - {name: one, in: query, style: form, explode: false, schema: {type: object, properties: {w: {type: string}}}}\n    responses: {204: {description: done}}",
    ));
    let query: Vec<_> =
        contract.operations[0].query.iter().map(|p| format!("{} {:?} {}", p.name, p.form, p.ty)).collect();
    assert_eq!(query, ["x Plain integer", "y Plain string", "deep Deep object", "one Joined(Comma) object"]);
    let contract = good(&with_paths(
        "/a:\n  get:\n    parameters: [{name: list, in: query, style: deepObject, explode: true, schema: {type: array, items: {type: string}}}]\n    responses: {204: {description: done}}",
    ));
    let listed = &contract.operations[0].query[0];
    assert_eq!((listed.name.as_str(), listed.form), ("list[]", ParameterForm::Plain));
    let contract = good(&with_paths(
        "/a:\n  get:\n    parameters: [{name: list, in: query, required: true, style: deepObject, explode: true, schema: {type: array, items: {type: object, properties: {b: {type: string}}}}}]\n    responses: {204: {description: done}}",
    ));
    let listed = &contract.operations[0].query[0];
    assert_eq!((listed.name.as_str(), listed.form), ("list", ParameterForm::Deep));
    assert_eq!(call_breaches(&contract, "GET /a", "/a?list[0][b]=1", None), Vec::<String>::new());
    assert_eq!(
        call_breaches(&contract, "GET /a", "/a?listed[0][b]=1", None),
        ["the parameter `list` is required and missing", "the parameter `listed[0][b]` is not known"]
    );
    let contract = good(&with_paths(
        "/a:\n  get:\n    parameters:\n      - {name: some, in: query, style: deepObject, explode: true, schema: {anyOf: [{type: array, items: {type: string}}, {type: string, enum: ['']}]}}\n      - {name: many, in: query, style: deepObject, explode: true, schema: {anyOf: [{type: array, items: {type: object, properties: {b: {type: string}}}}, {type: string, enum: ['']}]}}\n    responses: {204: {description: done}}",
    ));
    let query = contract.operations[0].query.iter().map(|p| (p.name.as_str(), p.form));
    let expected =
        [("some[]", ParameterForm::Plain), ("some", ParameterForm::Plain), ("many", ParameterForm::Deep)];
    assert_eq!(query.collect::<Vec<_>>(), expected);
    let contract = good(&with_paths(
        "/a:\n  get:\n    parameters: [{name: at, in: query, style: deepObject, explode: true, schema: {anyOf: [{type: object, properties: {gt: {type: integer}}}, {type: integer}]}}]\n    responses: {204: {description: done}}",
    ));
    let query: Vec<_> =
        contract.operations[0].query.iter().map(|p| format!("{} {:?} {}", p.name, p.form, p.ty)).collect();
    assert_eq!(query, ["at[gt] Plain integer", "at Plain object or integer"]);
    // A parameter that is one of several objects has the members of all of them.
    for own in [", b", ""] {
        let contract = read_all(&with_paths(&format!(
            "/a:\n  get:\n    parameters:\n      - {{name: filter, in: query, required: true, schema: {{oneOf: [{{type: object, properties: {{a: {{type: string}}, c: {{}}}}, required: [a, c]}}, {{type: object, properties: {{b: {{type: string}}, c: {{}}}}, required: [c{own}]}}]}}}}\n    responses: {{204: {{description: done}}}}"
        )))
        .1;
        let query: Vec<_> =
            contract.operations[0].query.iter().map(|p| format!("{} {}", p.name, p.required)).collect();
        assert_eq!(query, ["a false", "c true", "b false"], "{own}");
    }
}

#[test]
fn references_lead_to_other_files_and_into_paths() {
    let files: [(&str, &[u8]); 3] = [
        (
            "api/main.yaml",
            b"openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths:\n  /a: {$ref: 'paths/a.yaml'}\n  /b:\n    get: {responses: {200: {$ref: '#/paths/~1a/get/responses/200'}}}\n",
        ),
        (
            "api/paths/a.yaml",
            b"get:\n  responses:\n    200: {description: it, content: {application/json: {schema: {$ref: '../types.json#/Thing'}}}}\n",
        ),
        ("api/types.json", br##"{"Thing": {"type": "object", "properties": {"next": {"$ref": "#/Thing"}}}}"##),
    ];
    let fetch = |name: &str| files.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes);
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let documents =
        Documents::load(&mut sources, "api/main.yaml", &fetch, &mut findings).expect("it is there");
    let contract = parse_contract("old", &documents, &mut findings);
    assert_eq!(to_text(&sources, &findings, Colour::Never), "");
    for operation in &contract.operations {
        assert_eq!(
            operation.response(200).unwrap().body.as_ref().unwrap().to_string(),
            "Thing",
            "{}",
            operation.key
        );
    }
    let fields = contract.types.get("Thing").map(|named| named.ty.clone()).expect("Thing");
    let TypeKind::Object(thing) = &fields.kind else { panic!("{fields}") };
    assert_eq!(thing.field("next").unwrap().ty.to_string(), "Thing");
}

#[test]
fn a_document_that_somebody_else_wrote_is_read_as_other_readers_read_it() {
    let contract = good(
        "openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths: {\n  }\ncomponents:\n  schemas:\n    Base: &base\n      type: object\n      description: \"two\nlines\"\n      properties: {a: {type: string}}\n    T:\n      <<: *base\n      required: [a]\n    U: {type: string, enum: [Y, N, 090, yes]}\n",
    );
    assert_eq!(contract.types.get("U").unwrap().ty.to_string(), "enum(Y, N, 090, yes)");
    assert!(matches!(&contract.types.get("T").unwrap().ty.kind, TypeKind::Object(o) if o.fields[0].required));
    let json = "{\"openapi\": \"3.0.3\", \"info\": {\"title\": \"\\ud83d\\ude00\",\t\"version\": \"1\"}, \"paths\": {}}";
    good(json);
}

#[test]
fn a_value_that_is_copied_without_end_is_refused() {
    let mut text = String::from("openapi: 3.1.0\nx: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
    for level in 1..12 {
        let copies = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("x{level}: &a{level} [{copies}]\n"));
    }
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    assert!(Documents::single(&mut sources, "a", text.as_bytes(), &mut findings).is_none());
    assert!(findings.in_order()[0].message.contains("more than 3000000 values"), "{:?}", findings.in_order());
}

#[test]
fn a_hundred_thousand_references_that_lead_nowhere_among_thousands_of_names_are_one_finding() {
    let mut text = String::from("{\"openapi\": \"3.0.3\", \"paths\": {}, \"components\": {\"schemas\": {");
    for i in 0..9_000 {
        text.push_str(&format!("\"Name{i}\": {{\"type\": \"object\", \"properties\": {{"));
        for j in 0..12 {
            text.push_str(&format!("\"f{j}\": {{\"$ref\": \"#/components/schemas/Nmae{i}x{j}\"}},"));
        }
        text.push_str("\"id\": {}}},");
    }
    text.push_str("\"End\": {}}}}");
    let findings = messages(&text);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(
        findings[0].contains("x108000 C002 `#/components/schemas/Nmae0x0` leads nowhere"),
        "{findings:?}"
    );
}

#[test]
fn a_finding_in_a_thousand_places_is_one_line() {
    let schemas: String =
        (0..1_000).map(|i| format!("T{i}: {{type: string, not: {{}}, pattern: [1]}}\n")).collect();
    let (sources, _, findings) = read_all(&with_schemas(&schemas));
    assert_eq!(
        to_text(&sources, &findings, Colour::Never),
        "note[C005]: `not` is not read: the type takes more values than the document allows (1000 places: a.openapi.yaml:6:24, a.openapi.yaml:7:24, a.openapi.yaml:8:24, …)\n"
    );
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
                assert_eq!(assignable(there, there, None), Ok(()), "{} goes into itself", named.name);
            }
            read += 1;
        }
    }
    assert!(read >= 2, "two sides make a pack");
}

/// Returns the words and punctuation of a document, as places to damage.
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
        if let Some(documents) = Documents::single(&mut sources, "a", text.as_bytes(), &mut findings) {
            let contract = parse_contract("old", &documents, &mut findings);
            for named in contract.types.iter() {
                let there = contract.types.at(&named.ty);
                prop_assert_eq!(assignable(there, there, None), Ok(()));
            }
        }
        to_text(&sources, &findings, Colour::Never);
    }
}
