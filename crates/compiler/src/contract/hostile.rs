//! Documents that are legal and meant to hurt: each family makes much work out of little text, if it is let. What comes out
//! must be a contract, with findings of a few lines. There is no clock here: without its bounds a family of the sizes below
//! does not come to an end.

use super::*;
use crate::diagnostic::{Colour, Findings, Sources, to_text};
use proptest::prelude::*;

/// Lines that findings about one document may take.
const LINES_MAX: usize = 40;

type Family = (&'static str, fn(usize) -> String);

fn reference(name: impl std::fmt::Display) -> String {
    format!("{{\"$ref\":\"#/components/schemas/{name}\"}}")
}

fn refs(names: impl Iterator<Item = String>) -> String {
    names.map(reference).collect::<Vec<_>>().join(",")
}

const FAMILIES: &[Family] = &[
    ("each type of all others, by field", |n| {
        let fields: Vec<String> =
            (0..n).map(|j| format!("\"f{j}\":{}", reference(format!("T{j}")))).collect();
        (0..n)
            .map(|i| format!("\"T{i}\":{{\"type\":\"object\",\"properties\":{{{}}}}},", fields.join(",")))
            .collect()
    }),
    ("each type of all others, by `allOf`", |n| {
        let all = refs((0..n).map(|j| format!("T{j}")));
        (0..n)
            .map(|i| format!("\"T{i}\":{{\"allOf\":[{all},{{\"properties\":{{\"p{i}\":{{}}}}}}]}},"))
            .collect()
    }),
    ("doubling by `allOf`", |n| {
        (0..n)
            .map(|i| {
                let both = refs([format!("T{}", i + 1), format!("T{}", i + 1)].into_iter());
                format!("\"T{i}\":{{\"allOf\":[{both}]}},")
            })
            .chain([format!("\"T{n}\":{{\"type\":\"object\"}},")])
            .collect()
    }),
    ("doubling by `oneOf`", |n| {
        (0..n)
            .map(|i| {
                let both = refs([format!("T{}", i + 1), format!("T{}", i + 2)].into_iter());
                format!("\"T{i}\":{{\"oneOf\":[{both}]}},")
            })
            .chain([format!("\"T{n}\":{{\"type\":\"object\"}},\"T{}\":{{\"type\":\"string\"}},", n + 1)])
            .collect()
    }),
    ("choices within choices, each with a base", |n| {
        (0..n)
            .map(|i| {
                let next = reference(format!("T{}", (i + 1) % n));
                format!(
                    "\"T{i}\":{{\"type\":\"object\",\"properties\":{{\"p{i}\":{next}}},\"oneOf\":[{{\"properties\":{{\"a{i}\":{next}}},\"required\":[\"a{i}\"]}},{next}]}},"
                )
            })
            .collect()
    }),
    ("heirs of heirs, with a field that is narrowed in each", |n| {
        (0..n)
            .map(|i| {
                let base = reference(format!("T{}", i + 1));
                format!("\"T{i}\":{{\"allOf\":[{base},{{\"properties\":{{\"child\":{{\"allOf\":[{base},{{\"title\":\"x\",\"required\":[\"q{i}\"]}}]}}}}}}]}},")
            })
            .chain([format!("\"T{n}\":{{\"type\":\"object\",\"properties\":{{\"child\":{}}}}},", reference("T0"))])
            .collect()
    }),
    ("a large base with many heirs", |n| {
        let fields: Vec<String> = (0..n)
            .map(|j| {
                format!("\"f{j}\":{{\"type\":\"object\",\"properties\":{{\"g\":{{\"type\":\"string\"}}}}}}")
            })
            .collect();
        let base = format!("\"Base\":{{\"type\":\"object\",\"properties\":{{{}}}}},", fields.join(","));
        let heirs: String = (0..n)
            .map(|i| {
                format!(
                    "\"T{i}\":{{\"allOf\":[{},{{\"properties\":{{\"x{i}\":{{}}}}}}]}},",
                    reference("Base")
                )
            })
            .collect();
        base + &heirs
    }),
    ("circles of references", |n| {
        (0..n).map(|i| format!("\"T{i}\":{},", reference(format!("T{}", (i + 1) % n)))).collect()
    }),
    ("references into other schemas", |n| {
        let first = "\"T0\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\"}}},".to_owned();
        let others = (1..n).map(|i| {
            format!(
                "\"T{i}\":{{\"type\":\"object\",\"properties\":{{\"a\":{{\"$ref\":\"#/components/schemas/T{}/properties/a\"}}}}}},",
                i - 1
            )
        });
        std::iter::once(first).chain(others).collect()
    }),
    ("alternatives that nothing tells apart", |n| {
        let all = refs((0..n).map(|j| format!("T{j}")));
        let types: String = (0..n)
            .map(|i| format!("\"T{i}\":{{\"type\":\"object\",\"properties\":{{\"a\":{{}}}}}},"))
            .collect();
        types
            + &format!("\"Any\":{{\"oneOf\":[{all}]}},\"Anys\":{{\"anyOf\":[{},{}]}},", reference("Any"), all)
    }),
    ("long lists of values", |n| {
        let values: Vec<String> = (0..n * 20).map(|i| format!("\"v{i}\"")).collect();
        let all = values.join(",");
        format!("\"A\":{{\"enum\":[{all}]}},\"B\":{{\"anyOf\":[{{\"enum\":[{all}]}},{{\"enum\":[{all}]}}]}},")
    }),
    ("names that are nearly known", |n| {
        (0..n).map(|i| format!("\"T{i}\":{{\"propertie{i}\":{{}},\"requird{i}\":[],\"x\":1}},")).collect()
    }),
];

fn document(schemas: &str) -> String {
    let schemas = schemas.trim_end_matches(',');
    format!(
        "{{\"openapi\":\"3.0.3\",\"info\":{{\"title\":\"t\",\"version\":\"1\"}},\"paths\":{{\"/a\":{{\"get\":{{\"responses\":{{\"200\":{{\"description\":\"a\",\"content\":{{\"application/json\":{{\"schema\":{}}}}}}}}}}}}}}},\"components\":{{\"schemas\":{{{schemas}}}}}}}",
        reference("T0")
    )
}

/// Reads a document, and holds what comes of it against the bounds.
fn check(what: &str, text: &str) {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let documents = Documents::single(&mut sources, "hostile.json", text.as_bytes(), &mut findings);
    let contract = read("old", &documents.expect("it is JSON"), &mut findings);
    assert!(!findings.has_errors(), "{what}");
    let lines = to_text(&sources, &findings, Colour::Never).lines().count();
    assert!(lines <= LINES_MAX, "{what}: {lines} lines of findings");
    for named in contract.types.iter().take(20) {
        let there = contract.types.at(&named.ty);
        assert_eq!(assignable(there, there), Ok(()), "{what}: {} goes into itself", named.name);
        assert!(named.ty.to_string().len() < 10_000, "{what}: {} is written at length", named.name);
    }
}

#[test]
fn every_family_of_hostile_documents_is_read_within_bounds() {
    for (name, family) in FAMILIES {
        for size in [2, 12, 80] {
            check(&format!("{name}, {size}"), &document(&family(size)));
        }
    }
}

#[test]
fn lists_and_objects_inside_one_another_have_a_bound() {
    for depth in [100, 10_000, 1_000_000] {
        let nested = "{\"items\":".repeat(depth) + "{}" + &"}".repeat(depth);
        let text = document(&format!("\"T0\":{nested},"));
        let (mut sources, mut findings) = (Sources::new(), Findings::new());
        let read = Documents::single(&mut sources, "deep.json", text.as_bytes(), &mut findings);
        assert_eq!(read.is_none(), depth > 200, "{depth}");
        assert_eq!(findings.has_errors(), depth > 200, "{depth}");
        assert!(to_text(&sources, &findings, Colour::Never).len() < 10_000, "{depth}");
    }
}

/// A schema made at random of everything that refers, merges and chooses.
fn schema() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (0..8usize).prop_map(|i| reference(format!("T{i}"))),
        Just("{}".to_owned()),
        Just("{\"type\":\"string\"}".to_owned()),
        Just("{\"type\":\"object\"}".to_owned()),
        Just("{\"enum\":[\"a\",null,1]}".to_owned()),
        Just("{\"nullable\":true,\"type\":\"integer\"}".to_owned()),
        Just("true".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let list = || prop::collection::vec(inner.clone(), 0..4).prop_map(|all| all.join(","));
        prop_oneof![
            list().prop_map(|all| format!("{{\"allOf\":[{all}]}}")),
            list().prop_map(|all| format!("{{\"oneOf\":[{all}],\"discriminator\":{{\"propertyName\":\"k\"}}}}")),
            (list(), inner.clone())
                .prop_map(|(all, p)| format!("{{\"anyOf\":[{all}],\"properties\":{{\"k\":{p}}},\"required\":[\"k\",\"z\"]}}")),
            inner.clone().prop_map(|item| format!("{{\"type\":\"array\",\"items\":{item}}}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| {
                format!("{{\"type\":\"object\",\"properties\":{{\"k\":{a},\"z\":{{\"readOnly\":true}}}},\"additionalProperties\":{b}}}")
            }),
            (0..8usize, inner.clone())
                .prop_map(|(i, p)| format!("{{\"$ref\":\"#/components/schemas/T{i}\",\"properties\":{{\"k\":{p}}}}}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn schemas_made_at_random_are_read_within_bounds(schemas in prop::collection::vec(schema(), 8)) {
        let named: String = schemas.iter().enumerate().map(|(i, schema)| format!("\"T{i}\":{schema},")).collect();
        check("a random document", &document(&named));
    }
}
