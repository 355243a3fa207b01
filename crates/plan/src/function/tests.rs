//! Executes every example of every function.

use super::*;
use switchback_json::Limits;

fn json(text: &str) -> Value {
    Value::parse(text.as_bytes(), &Limits::UNLIMITED).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

pub(super) fn build(name: &str, arguments: &str) -> Result<Arc<dyn Function>, ArgumentError> {
    let spec = FunctionSpec::by_name(name).expect("a function");
    (spec.build)(&Given { arguments: &json(arguments), sides: ["v1", "v2"], facts: [None, None] })
}

/// Applies a function. `null` stands for no arguments.
pub(super) fn applied(name: &str, arguments: &str, from: &str) -> Option<String> {
    let function = build(name, arguments).unwrap_or_else(|error| panic!("{name}: {error}"));
    function.apply(json(from)).map(|value| value.to_string())
}

#[test]
fn every_example_holds() {
    for spec in FUNCTIONS {
        assert!(spec.examples.iter().any(|example| example.gives.is_some()), "{} shows a result", spec.name);
        for FunctionExample { arguments, from, gives } in spec.examples {
            assert_eq!(spec.arguments.is_none(), *arguments == "null", "{}", spec.name);
            let found = applied(spec.name, arguments, from);
            assert_eq!(found.as_deref(), *gives, "{} {arguments} of {from}", spec.name);
        }
    }
}

#[test]
fn examples_have_the_kinds_that_are_claimed() {
    for spec in FUNCTIONS {
        for FunctionExample { arguments, from, gives } in spec.examples {
            let function = build(spec.name, arguments).expect("a function");
            assert_eq!(function.name(), spec.name);
            let Some(given) = gives else {
                assert!(!function.domain_text().is_empty(), "{}", spec.name);
                continue;
            };
            let kind = |text: &str| switchback_json::raw::kind(text.as_bytes()).expect("a kind");
            assert!(function.takes().kinds.contains(kind(from)), "{} of {from}", spec.name);
            let facts = Facts { kinds: Kinds::from_kinds(&[kind(from)]), ..Facts::default() };
            match function.gives(&facts) {
                Gives::Kinds { kinds, integer } => {
                    assert!(kinds.contains(kind(given)), "{} gives {given}", spec.name);
                    assert!(!integer || !given.contains('.'), "{} gives {given}", spec.name);
                }
                Gives::Texts | Gives::Same | Gives::Chunks => {
                    assert_eq!(kind(given), Kind::Array, "{} gives {given}", spec.name)
                }
            }
        }
    }
}

#[test]
fn names_are_given_once() {
    let names: Vec<&str> =
        FUNCTIONS.iter().map(|spec| spec.name).chain(converting().map(|spec| spec.name)).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), names.len(), "{names:?}");
}

#[test]
fn schemas_are_json() {
    for spec in FUNCTIONS {
        if let Some(arguments) = spec.arguments {
            json(arguments.schema);
        }
    }
}
