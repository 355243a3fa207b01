//! Families of adversarial but valid documents, parameterized by size. They are shared by the tests
//! and the survey.

/// The name of a family, and a function that returns its schemas at a size.
pub(crate) type Family = (&'static str, fn(usize) -> String);

pub(crate) fn reference(name: impl std::fmt::Display) -> String {
    format!("{{\"$ref\":\"#/components/schemas/{name}\"}}")
}

fn refs(names: impl Iterator<Item = String>) -> String {
    names.map(reference).collect::<Vec<_>>().join(",")
}

pub(crate) const FAMILIES: &[Family] = &[
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
    ("overlapping alternatives that lead to one another, and lists of them", |n| {
        (0..n)
            .map(|i| {
                let (own, next) = (reference(format!("T{i}")), reference(format!("T{}", (i + 1) % n)));
                let lists = format!("{{\"type\":\"array\",\"items\":{own}}},{{\"type\":\"array\",\"items\":{next}}}");
                format!(
                    "\"T{i}\":{{\"anyOf\":[{next},{lists},{{\"type\":\"object\"}},{{\"type\":\"object\",\"properties\":{{\"a\":{next}}}}}]}},"
                )
            })
            .collect()
    }),
    ("alternatives with two uses of the next ones, in a circle", |n| {
        (0..n)
            .map(|i| {
                let next = reference(format!("T{}", (i + 1) % n));
                let inner = format!("{{\"oneOf\":[{next},{{\"type\":\"string\"}}]}}");
                format!(
                    "\"T{i}\":{{\"oneOf\":[{{\"type\":\"array\",\"items\":{inner}}},{{\"type\":\"object\",\"additionalProperties\":{inner}}}]}},"
                )
            })
            .collect()
    }),
    ("lists of lists in a circle, as alternatives", |n| {
        (0..n)
            .map(|i| {
                let next = |by: usize| reference(format!("T{}", (i + by) % n));
                format!(
                    "\"T{i}\":{{\"type\":\"array\",\"items\":{}}},\"U{i}\":{{\"anyOf\":[{},{}]}},",
                    next(1),
                    next(0),
                    next(1)
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
    ("choices by a constant, each of which holds the choice", |n| {
        let all = refs((0..n).map(|j| format!("C{j}")));
        let each: String = (0..n)
            .map(|i| {
                format!("\"C{i}\":{{\"type\":\"object\",\"required\":[\"k\"],\"properties\":{{\"k\":{{\"enum\":[\"c{i}\"]}},\"in\":{}}}}},", reference("T0"))
            })
            .collect();
        each + &format!("\"T0\":{{\"oneOf\":[{all}]}},")
    }),
    ("maps of maps of all others", |n| {
        (0..n)
            .map(|i| {
                let next = reference(format!("T{}", (i + 1) % n));
                format!("\"T{i}\":{{\"type\":\"object\",\"properties\":{{\"p{i}\":{next}}},\"additionalProperties\":{{\"type\":\"object\",\"properties\":{{\"q\":{next}}},\"additionalProperties\":{next}}}}},")
            })
            .collect()
    }),
    ("fields that are all described alike", |n| {
        let fields: Vec<String> = (0..n)
            .map(|j| format!("\"field{j}\":{{\"type\":\"string\",\"description\":\"the number {j} of the thing, as its owner wrote it\"}}"))
            .collect();
        format!("\"T0\":{{\"type\":\"object\",\"properties\":{{{}}}}},", fields.join(","))
    }),
    ("lists of lists of references", |n| {
        (0..n)
            .map(|i| {
                let next = reference(format!("T{}", (i + 1) % n));
                format!("\"T{i}\":{{\"type\":\"array\",\"items\":{{\"type\":\"array\",\"items\":{{\"type\":\"object\",\"properties\":{{\"a\":{next}}}}}}}}},")
            })
            .collect()
    }),
    ("names that are nearly known", |n| {
        (0..n).map(|i| format!("\"T{i}\":{{\"propertie{i}\":{{}},\"requird{i}\":[],\"x\":1}},")).collect()
    }),
];

/// Returns a document with these schemas and one operation that returns a `T0`.
pub(crate) fn document(schemas: &str) -> String {
    let schemas = schemas.trim_end_matches(',');
    format!(
        "{{\"openapi\":\"3.0.3\",\"info\":{{\"title\":\"t\",\"version\":\"1\"}},\"paths\":{{\"/a\":{{\"get\":{{\"responses\":{{\"200\":{{\"description\":\"a\",\"content\":{{\"application/json\":{{\"schema\":{}}}}}}}}}}}}}}},\"components\":{{\"schemas\":{{{schemas}}}}}}}",
        reference("T0")
    )
}
