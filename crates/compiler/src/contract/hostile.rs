//! Adversarial but valid documents: each family causes much work from a short text, unless it is
//! bounded. The result must be a contract, with a few lines of findings. The tests measure no time:
//! without the bounds, the families of these sizes would not terminate.

mod families;

use super::*;
use crate::diagnostic::{Colour, Findings, Sources, to_text};
use families::{FAMILIES, document, reference};
use proptest::prelude::*;

/// Maximum number of lines of findings about one document.
const LINES_MAX: usize = 40;

/// Reads a document and checks the result against the limits.
fn check(what: &str, text: &str) {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let documents = Documents::single(&mut sources, "hostile.json", text.as_bytes(), &mut findings);
    let contract = parse_contract("old", &documents.expect("it is JSON"), &mut findings);
    assert!(!findings.has_errors(), "{what}");
    let lines = to_text(&sources, &findings, Colour::Never).lines().count();
    assert!(lines <= LINES_MAX, "{what}: {lines} lines of findings");
    for named in contract.types.iter().take(20) {
        let there = contract.types.at(&named.ty);
        assert_eq!(assignable(there, there, None), Ok(()), "{what}: {} goes into itself", named.name);
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

/// Generates a schema from references, compositions and alternatives.
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
