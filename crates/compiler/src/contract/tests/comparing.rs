//! Tests of comparisons of two contracts.

use super::*;

/// Returns the narrowings from `T` of the first schemas to `T` of the second, as `place: values`.
fn narrowed(from: &str, to: &str) -> Vec<String> {
    // Ignore notes about unsupported keywords.
    let read = |schemas: &str| typed_in(read_all(&with_schemas(schemas)).1);
    let ((a, from), (b, to)) = (read(from), read(to));
    let found = compare(a.types.at(&from), b.types.at(&to), None).expect("one goes into the other");
    found.iter().map(|one| format!("{}: {}", one.path, one.values)).collect()
}

#[test]
fn formats_without_a_common_value_are_two_types() {
    let text = |format: &str| format!("T: {{type: string, format: {format}}}");
    for (from, to) in [("date", "date-time"), ("date-time", "date"), ("uuid", "email"), ("time", "date-time")]
    {
        assert_eq!(goes(&text(from), &text(to)), Err(format!("a `{from}` is no `{to}`")));
    }
    for (from, to, narrower) in [
        ("date", "date", None),
        ("email", "idn-email", None),
        ("idn-email", "email", Some("$: texts that are no `email`")),
        ("password", "uuid", Some("$: texts that are no `uuid`")),
        ("uuid", "password", None),
        ("sku", "e164", Some("$: texts that are no `e164`")),
    ] {
        assert_eq!(narrowed(&text(from), &text(to)), Vec::from_iter(narrower), "{from} to {to}");
    }
    assert_eq!(narrowed("T: {type: string}", &text("date")), ["$: texts that are no `date`"]);
    assert_eq!(narrowed(&text("date"), "T: {type: string}"), Vec::<String>::new());
}

/// Each bound narrows in one direction only.
#[test]
fn a_narrower_target_is_found_by_every_bound() {
    for (wide, narrow, values) in [
        (
            "type: integer, format: int64",
            "type: integer, format: int32",
            vec!["values above 2147483647", "values below -2147483648"],
        ),
        (
            "type: integer, format: int64",
            "type: integer, format: uint64, maximum: 9223372036854775807",
            vec!["values below 0"],
        ),
        ("type: integer, minimum: 0", "type: integer, format: uint32", vec!["values above 4294967295"]),
        ("type: integer, maximum: 200", "type: integer, maximum: 100", vec!["values above 100"]),
        ("type: integer", "type: integer, minimum: 1", vec!["values below 1"]),
        ("type: number, maximum: 1.5e1", "type: number, exclusiveMaximum: 15", vec!["values from 15 on"]),
        (
            "type: number, minimum: 0",
            "type: number, minimum: 0, exclusiveMinimum: true",
            vec!["values up to 0"],
        ),
        (
            "type: integer, multipleOf: 5",
            "type: integer, multipleOf: 10",
            vec!["values that are no multiple of 10"],
        ),
        ("type: number", "type: number, format: float", vec!["values that `float` rounds"]),
        ("type: integer", "type: integer, format: unix-time", vec!["values that are no `unix-time`"]),
        (
            "type: string, maxLength: 51",
            "type: string, maxLength: 50",
            vec!["texts longer than 50 characters"],
        ),
        ("type: string", "type: string, minLength: 1", vec!["texts shorter than 1 character"]),
        ("type: string", "type: string, pattern: '^a$'", vec!["texts that do not match `^a$`"]),
        ("type: string, enum: [a, bcd]", "type: string, maxLength: 2", vec!["the value bcd"]),
        ("type: integer, enum: [1, 500]", "type: integer, maximum: 100", vec!["the value 500"]),
        ("type: integer, enum: [5, 7]", "type: integer, multipleOf: 5", vec!["the value 7"]),
        ("type: string, enum: [a, b1]", "type: string, pattern: '^[a-z]$'", vec!["the value b1"]),
        // A pattern with unsupported syntax decides nothing about a value.
        (
            "type: string, enum: [a, b1]",
            "type: string, pattern: '^(?!x)'",
            vec!["texts that do not match `^(?!x)`"],
        ),
        (
            "type: string, enum: ['2026-01-31', '2026-02-30']",
            "type: string, format: date",
            vec!["the value 2026-02-30"],
        ),
        ("type: string, enum: [a, b]", "type: string, format: uri", vec!["texts that are no `uri`"]),
        (
            "type: string, enum: [a, 123e4567-e89b-12d3-a456-426614174000]",
            "type: string, format: uuid",
            vec!["the value a"],
        ),
        // All members of `allOf` apply, in any order.
        (
            "type: integer, maximum: 100",
            "allOf: [{type: integer, maximum: 1000}, {maximum: 50, exclusiveMinimum: 3}]",
            vec!["values above 50", "values up to 3"],
        ),
        (
            "type: string, pattern: a",
            "allOf: [{type: string, pattern: a, maxLength: 9}, {pattern: b, maxLength: 8}]",
            vec!["texts longer than 8 characters", "texts that do not match `b`"],
        ),
        (
            "type: string, format: uuid",
            "allOf: [{type: string, format: uuid}, {format: password}]",
            vec!["values that `format: \"password\"` excludes"],
        ),
        (
            "type: object, additionalProperties: {type: string}",
            "allOf: [{type: object, additionalProperties: {type: string, maxLength: 3}}, {additionalProperties: {minLength: 2}}]",
            vec!["*: texts longer than 3 characters", "*: texts shorter than 2 characters"],
        ),
        (
            "type: object",
            "type: object, additionalProperties: false",
            vec!["*: members that the other side does not take"],
        ),
        (
            "type: object",
            "type: object, additionalProperties: {type: string}",
            vec!["*: members that are no string"],
        ),
        (
            "type: object, minProperties: 1",
            "type: object, minProperties: 2",
            vec!["values that `minProperties: 2` excludes"],
        ),
        ("type: object", "type: object, maxProperties: 2", vec!["values that `maxProperties: 2` excludes"]),
        (
            "type: string",
            "type: string, not: {const: a}",
            vec![r#"values that `not: {"const":"a"}` excludes"#],
        ),
        (
            "type: object",
            "type: object, propertyNames: {pattern: a}",
            vec![r#"values that `propertyNames: {"pattern":"a"}` excludes"#],
        ),
        (
            "type: object",
            "type: object, dependentRequired: {a: [b]}",
            vec![r#"values that `dependentRequired: {"a":["b"]}` excludes"#],
        ),
        (
            "type: array, items: {}",
            "type: array, items: {}, contains: {const: 1}",
            vec![r#"values that `contains: {"const":1}` excludes"#],
        ),
        (
            "type: array, items: {}",
            "type: array, prefixItems: [{type: integer}]",
            vec![r#"values that `prefixItems: [{"type":"integer"}]` excludes"#],
        ),
        (
            "type: string",
            "type: string, contentEncoding: base64",
            vec![r#"values that `contentEncoding: "base64"` excludes"#],
        ),
        (
            "type: object, properties: {a: {}}",
            "type: object, properties: {a: {}}, patternProperties: {^x: {type: integer}}",
            vec![r#"values that `patternProperties: {"^x":{"type":"integer"}}` excludes"#],
        ),
        (
            "type: object, properties: {a: {}}",
            "type: object, properties: {a: {}}, if: {required: [a]}, then: {minProperties: 2}",
            vec!["values that `if` excludes"],
        ),
        (
            "type: object, properties: {a: {}, b: {}}",
            "type: object, properties: {a: {}, b: {}}, anyOf: [{required: [a]}, {required: [b]}]",
            vec![r#"values that `anyOf: [{"required":["a"]},{"required":["b"]}]` excludes"#],
        ),
        (
            "type: object, properties: {a: {}}",
            "type: object, properties: {a: {}}, discriminator: {propertyName: a}",
            vec![r#"values that `discriminator: "a"` excludes"#],
        ),
        (
            "type: array, items: {}",
            "type: array, items: {}, maxItems: 3",
            vec!["lists of more than 3 elements"],
        ),
        (
            "type: array, items: {}",
            "type: array, items: {}, minItems: 1",
            vec!["lists of fewer than 1 elements"],
        ),
        (
            "type: array, items: {}",
            "type: array, items: {}, uniqueItems: true",
            vec!["lists with equal elements"],
        ),
    ] {
        let (wide, narrow) = (format!("T: {{{wide}}}"), format!("T: {{{narrow}}}"));
        let at_place = |values: &str| match values.split_once(": ") {
            Some((member @ "*", values)) => format!("$.{member}: {values}"),
            _ => format!("$: {values}"),
        };
        let values: Vec<String> = values.into_iter().map(at_place).collect();
        assert_eq!(narrowed(&wide, &narrow), values, "{wide} to {narrow}");
        // A type without enumerated values is never compatible with an enumeration.
        if !wide.contains("enum") {
            assert_eq!(narrowed(&narrow, &wide), Vec::<String>::new(), "{narrow} to {wide}");
        }
        assert_eq!(narrowed(&narrow, &narrow), Vec::<String>::new());
    }
    // A map is partly compatible with members of another type.
    let map = "T: {type: object, additionalProperties: {type: string}}";
    let object = "T: {type: object, properties: {a: {type: integer}}}";
    let partly = ["$.a: only among further members of the other side", "$.a: values that are no integer"];
    assert_eq!(narrowed(map, object), partly);
    // Disjoint patterns narrow in both directions.
    for (a, b) in [("^a$", "^b$"), ("^b$", "^a$")] {
        let text = |pattern: &str| format!("T: {{type: string, pattern: '{pattern}'}}");
        assert_eq!(narrowed(&text(a), &text(b)), [format!("$: texts that do not match `{b}`")]);
    }
}

#[test]
fn members_of_one_side_and_of_one_way_are_found_where_they_are() {
    let object = |members: &str| {
        format!(
            "T: {{type: object, properties: {{in: {{type: array, items: {{type: object, properties: {{{members}}}}}}}}}}}"
        )
    };
    let named = |from: &str, to: &str| narrowed(&object(from), &object(to));
    assert_eq!(
        named("user_name: {type: string}", "userName: {type: string}"),
        [
            "$.in[*].user_name: not declared on the other side",
            "$.in[*].userName: nothing on the other side fills it"
        ]
    );
    assert_eq!(
        named("a: {type: string}", "a: {type: string, readOnly: true}"),
        ["$.in[*].a: read-only on the other side"]
    );
    assert_eq!(
        named("a: {type: string, writeOnly: true}", "a: {type: string}"),
        ["$.in[*].a: never in answers of the other side"]
    );
    assert_eq!(
        named("a: {type: string, readOnly: true}", "a: {type: string, readOnly: true}"),
        Vec::<String>::new()
    );
}

/// The targets of references in an unsupported keyword are compared; annotations are not.
#[test]
fn keywords_are_compared_with_what_they_refer_to() {
    let of = |pattern: &str, remark: &str| {
        format!(
            "T: {{type: string, not: {{$ref: '#/components/schemas/N', description: {remark}}}}}, N: {{type: string, pattern: {pattern}, description: {remark}}}"
        )
    };
    let of = |pattern: &str, remark: &str| of(pattern, remark).replace(", N: {", "\nN: {");
    assert_eq!(narrowed(&of("a", "x"), &of("a", "y")), Vec::<String>::new());
    assert_eq!(
        narrowed(&of("a", "x"), &of("b", "x")),
        [r#"$: values that `not: {"pattern":"b","type":"string"}` excludes"#]
    );
}

/// A comparison for one message considers only the members of that message.
#[test]
fn required_members_are_there_in_the_message_that_has_them() {
    use Message::{Answer, Request};
    let object = |member: &str| format!("T: {{type: object, required: [a], properties: {{{member}}}}}");
    let missing = "`a`: it is required, and there is none";
    for (from, to, message, expected) in [
        ("a: {type: string, readOnly: true}", "a: {type: string}", Request, Err(missing)),
        ("a: {type: string, readOnly: true}", "a: {type: string}", Answer, Ok(())),
        ("a: {type: string, writeOnly: true}", "a: {type: string}", Answer, Err(missing)),
        ("a: {type: string, writeOnly: true}", "a: {type: string}", Request, Ok(())),
        ("a: {type: string}", "a: {type: string, readOnly: true}", Request, Ok(())),
        ("a: {type: string, readOnly: true}", "a: {type: string, readOnly: true}", Request, Ok(())),
    ] {
        let ((a, source), (b, target)) = (typed(&object(from)), typed(&object(to)));
        let found = assignable(a.types.at(&source), b.types.at(&target), Some(message));
        assert_eq!(
            found.map_err(|why| why.to_string()),
            expected.map_err(str::to_owned),
            "{from} to {to}, {message:?}"
        );
    }
    let lacks = "T: {type: object, properties: {b: {type: string}}}";
    for (access, message, is_lost) in [
        ("writeOnly", Request, true),
        ("writeOnly", Answer, false),
        ("readOnly", Answer, true),
        ("readOnly", Request, false),
    ] {
        let target = object(&format!("a: {{type: string, {access}: true}}, b: {{type: string}}"));
        let ((a, source), (b, target)) = (typed(lacks), typed(&target));
        let found = assignable(a.types.at(&source), b.types.at(&target), Some(message));
        assert_eq!(found.is_err(), is_lost, "{access} in {message:?}");
        // For both messages together, the other message narrows.
        let both = compare(a.types.at(&source), b.types.at(&target), None).expect("one message takes it");
        let only_in = if access == "readOnly" { Answer } else { Request };
        let found = both.iter().find(|one| one.path == "$.a").expect("it is found");
        assert_eq!(
            (found.only_in, found.values.as_str()),
            (Some(only_in), "required, and nothing on the other side fills it")
        );
    }
}

#[test]
fn a_type_is_as_narrow_at_each_place_that_it_is_used_at() {
    let of = |bound: &str| {
        format!(
            "T: {{type: object, properties: {{a: {{$ref: '#/components/schemas/P'}}, b: {{$ref: '#/components/schemas/P'}}, c: {{type: array, items: {{$ref: '#/components/schemas/P'}}}}}}}}\nP: {{type: object, properties: {{n: {{type: integer{bound}}}, p: {{$ref: '#/components/schemas/P'}}}}}}"
        )
    };
    assert_eq!(
        narrowed(&of(""), &of(", maximum: 3")),
        ["$.a.n: values above 3", "$.b.n: values above 3", "$.c[*].n: values above 3"]
    );
}

#[test]
fn two_defaults_of_one_member_are_a_difference_of_requests() {
    let of = |default: &str| format!("T: {{type: object, properties: {{a: {{type: integer{default}}}}}}}");
    let found = narrowed(&of(", default: 10"), &of(", default: 20"));
    assert_eq!(found, ["$.a: left out: it means 10, and 20 on the other side"]);
    assert_eq!(narrowed(&of(", default: 10"), &of("")), Vec::<String>::new());
    assert_eq!(narrowed(&of(", default: 10"), &of(", default: 10")), Vec::<String>::new());
}

#[test]
fn an_optional_member_may_select_another_alternative() {
    let choice = "T: {oneOf: [{type: object, required: [a], properties: {a: {type: integer}}}, {type: object, properties: {b: {}}}]}";
    assert_eq!(
        narrowed("T: {type: object, properties: {a: {type: string}, b: {}}}", choice),
        ["$: values with `a`, which select another alternative", "$.a: not declared on the other side",]
    );
}

/// A list has elements of one of the alternatives, not of both.
#[test]
fn lists_that_nothing_tells_apart_exclude_mixed_ones() {
    let own = "A: {type: object, properties: {x: {}}}\nB: {type: object, properties: {x: {}, y: {}}}";
    let [a, b] = ["A", "B"].map(|name| format!("{{$ref: '#/components/schemas/{name}'}}"));
    let mixed = format!("T: {{type: array, items: {{oneOf: [{a}, {b}]}}}}\n{own}");
    let one = format!("T: {{oneOf: [{{type: array, items: {a}}}, {{type: array, items: {b}}}]}}\n{own}");
    assert_eq!(narrowed(&mixed, &one), ["$: values that `anyOf: lists of A | B` excludes"]);
    assert_eq!(narrowed(&one, &one), Vec::<String>::new());
    assert_eq!(narrowed(&one, &mixed), Vec::<String>::new());
}

#[test]
fn a_map_fills_a_declared_member_by_chance_only() {
    let map = "T: {type: object, additionalProperties: {type: object}}";
    assert_eq!(
        narrowed(map, "T: {type: object, properties: {a: {type: object}}}"),
        ["$.a: only among further members of the other side"]
    );
}

/// Such a type is any value, so no difference makes two of them incompatible.
#[test]
fn alternatives_that_nothing_tells_apart_are_compared_with_their_versions() {
    let of = |members: &str, more: &str| {
        format!(
            "T: {{type: object, properties: {{v: {{anyOf: [{{$ref: '#/components/schemas/A'}}, {{$ref: '#/components/schemas/B'}}{more}]}}}}}}\nA: {{type: object, properties: {{{members}, up: {{$ref: '#/components/schemas/T'}}}}}}\nB: {{type: object, properties: {{id: {{type: string}}}}}}"
        )
    };
    let old = of("id: {type: string}, a: {type: integer}, b: {type: string}", "");
    assert_eq!(narrowed(&old, &old), Vec::<String>::new());
    // Every difference is told, also after one that would make two other types incompatible.
    let changed = of("id: {type: string, maxLength: 3}, a: {type: boolean}, c: {type: string}", "");
    assert_eq!(
        narrowed(&old, &changed),
        [
            "$.v.id: texts longer than 3 characters",
            "$.v.a: integer is not boolean",
            "$.v.b: not declared on the other side",
            "$.v.c: nothing on the other side fills it",
        ]
    );
    let more = of(
        "id: {type: string}, a: {type: integer}, b: {type: string}",
        ", {type: object, properties: {x: {}}}",
    );
    assert_eq!(narrowed(&more, &old), ["$.v.up.v: values that are object", "$.v: values that are object"]);
    assert_eq!(narrowed(&old, &more), Vec::<String>::new());
    // One of them remains.
    let one = "T: {type: object, properties: {v: {type: object, properties: {id: {type: string}, a: {type: integer}}}}}";
    assert_eq!(
        narrowed(&old, one),
        [
            "$.v.b: not declared on the other side",
            "$.v.up: not declared on the other side",
            "$.v.a: nothing on the other side fills it",
        ]
    );
    // What is found there decides nothing about the same types elsewhere.
    let strict = |text: &str| text.replace("v: {anyOf", "w: {$ref: '#/components/schemas/A'}, v: {anyOf");
    let [(a, source), (b, target)] =
        [&old, &changed].map(|text| typed_in(read_all(&with_schemas(&strict(text))).1));
    let found = assignable(a.types.at(&source), b.types.at(&target), None);
    assert_eq!(found.map_err(|why| why.to_string()), Err("`w.a`: integer is not boolean".to_owned()));
}

/// Beyond the limit, the outermost member of a place stands for all places below it.
#[test]
fn many_narrowings_have_all_their_outermost_members() {
    let of = |bound: &str| {
        let members: String = (0..600).map(|at| format!("m{at}: {{type: integer{bound}}}, ")).collect();
        format!(
            "T: {{type: object, properties: {{a: {{type: object, properties: {{{members}}}}}, b: {{type: object, properties: {{{members}}}}}}}}}"
        )
    };
    let found = narrowed(&of(""), &of(", maximum: 3"));
    assert_eq!(found.len(), 514);
    assert_eq!(found[512..], ["$.a: and others", "$.b: and others"]);
}

/// The cache returns the same narrowings as the first comparison.
#[test]
fn a_narrowing_is_found_each_time() {
    let from = "T: {type: object, properties: {a: {type: integer}, b: {$ref: '#/components/schemas/T'}}}";
    let ((a, source), (b, target)) = (typed(from), typed(&from.replace("integer", "integer, maximum: 3")));
    let mut proven = Proven::default();
    for _ in 0..2 {
        let found = compare_once(a.types.at(&source), b.types.at(&target), Message::Answer, &mut proven)
            .expect("it goes");
        assert_eq!(found.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), ["$.a", "$.b.a"]);
    }
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
