//! Properties of the comparison, tested with generated documents.

use super::{compared, redactor, rules, said, view};
use crate::diff::{BufferedAnswer, Buffering, Candidate, Coverage, Limits, Noise, Verdict, compare};
use crate::redact::Masked;
use proptest::prelude::*;
use switchback_json::{Limits as JsonLimits, Object, Value};
use switchback_plan::{Disclosed, Disclosures};

/// Generates a document that shrinks well. All scalars have different texts, so that an edit can be
/// located.
fn document() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(|n| Value::from(i64::from(n))),
        "[a-zà-ü 0-9\"\\\\]{0,8}".prop_map(|text| Value::string(&text)),
    ];
    scalar.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-e]{1,2}", inner), 0..5)
                .prop_map(|members| members
                    .into_iter()
                    .map(|(name, value)| (name.as_str().to_owned(), value))
                    .collect::<Vec<_>>())
                .prop_map(|members| {
                    let mut object = Object::new();
                    for (name, value) in members {
                        object.insert(name.as_str(), value);
                    }
                    Value::Object(object)
                }),
        ]
    })
}

fn text(value: &Value) -> String {
    String::from_utf8(value.to_vec()).expect("JSON is UTF-8")
}

/// An edit of one place in a document.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Remove,
    Add,
    Retype,
    Replace,
}

/// Edits the `at`-th place in document order and returns the expected finding, or `None` if the
/// edit does not apply.
fn edit(value: &mut Value, at: usize, edit: Edit) -> Option<String> {
    let mut left = at;
    edit_below(value, &mut left, edit, "$")
}

fn edit_below(value: &mut Value, left: &mut usize, what: Edit, place: &str) -> Option<String> {
    if *left == 0 {
        return match what {
            Edit::Retype => {
                *value = if value.is_null() { Value::from(1) } else { Value::Null };
                Some(format!("type {place}"))
            }
            Edit::Replace => {
                *value = match value {
                    Value::Bool(flag) => Value::from(!*flag),
                    Value::Number(_) => Value::from(i64::MAX),
                    Value::String(_) => Value::string("something else entirely"),
                    _ => return None,
                };
                Some(format!("value {place}"))
            }
            Edit::Add => match value {
                Value::Array(items) => {
                    items.push(Value::string("added at the end"));
                    Some(format!("extra {place}[{}]", items.len() - 1))
                }
                Value::Object(members) => {
                    members.insert("added", Value::from(1));
                    Some(format!("extra {place}.added"))
                }
                _ => None,
            },
            Edit::Remove => match value {
                Value::Array(items) if !items.is_empty() => {
                    items.pop();
                    Some(format!("missing {place}[{}]", items.len()))
                }
                Value::Object(members) => {
                    let name = members.keys().next()?.decode().into_owned();
                    members.remove(&name);
                    Some(format!("missing {place}.{name}"))
                }
                _ => None,
            },
        };
    }
    match value {
        Value::Array(items) => items.iter_mut().enumerate().find_map(|(at, item)| {
            *left = left.checked_sub(1)?;
            let found = edit_below(item, left, what, &format!("{place}[{at}]"));
            found.filter(|_| *left == 0)
        }),
        Value::Object(members) => members.iter_mut().find_map(|(key, member)| {
            *left = left.checked_sub(1)?;
            let place = format!("{place}.{}", key.decode());
            let found = edit_below(member, left, what, &place);
            found.filter(|_| *left == 0)
        }),
        _ => None,
    }
}

fn keyed_list() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::btree_set(0i64..1000, 0..12).prop_map(|ids| {
        let item = |id: i64| {
            let mut object = Object::new();
            object.insert("id", Value::from(id));
            object.insert("text", Value::string(&format!("text of {id}")));
            Value::Object(object)
        };
        ids.into_iter().map(item).collect()
    })
}

fn held(body: &str, cap: usize) -> BufferedAnswer {
    let mut holding = Buffering::new(cap);
    holding.push(body.as_bytes());
    holding.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_document_is_equal_to_itself_however_it_is_written(value in document()) {
        let written = text(&value);
        let spaced = serde_json::to_string_pretty(
            &serde_json::from_str::<serde_json::Value>(&written).expect("JSON"),
        ).expect("JSON can be written");
        let found = compared(&rules(&[]), &written, &spaced);
        prop_assert_eq!(said(&found), Vec::<String>::new());
        prop_assert_eq!(found.verdict(), Verdict::Equal);
    }

    #[test]
    fn one_edit_is_one_finding_of_the_right_place_and_kind(
        value in document(),
        at in 0usize..30,
        what in prop_oneof![Just(Edit::Remove), Just(Edit::Add), Just(Edit::Retype), Just(Edit::Replace)],
    ) {
        let before = text(&value);
        let mut value = value;
        if let Some(wanted) = edit(&mut value, at, what) {
            let found = compared(&rules(&[]), &before, &text(&value));
            // Of several equal adjacent elements, any may be reported as removed.
            let places: Vec<String> = said(&found);
            prop_assert_eq!(places.len(), 1, "{:?} in {} and {}", places, before, text(&value));
            let (kind, place) = wanted.split_once(' ').expect("kind and place");
            let (found_kind, found_place) = places[0].split_once(' ').expect("kind and place");
            prop_assert_eq!(kind, found_kind);
            let pattern = |place: &str| place.split(|c: char| c.is_ascii_digit()).collect::<Vec<_>>().join("");
            match place.ends_with(']') {
                true => prop_assert_eq!(pattern(place), pattern(found_place)),
                false => prop_assert_eq!(place, found_place),
            }
        }
    }

    #[test]
    fn elements_with_keys_in_another_order_differ_in_order_alone(
        (items, shuffled) in keyed_list().prop_flat_map(|items| (Just(items.clone()), Just(items).prop_shuffle())),
    ) {
        let is_moved = items != shuffled;
        let (before, after) = (text(&Value::from(items)), text(&Value::from(shuffled)));
        let wanted: Vec<String> = if is_moved { vec!["order $".to_owned()] } else { Vec::new() };
        prop_assert_eq!(said(&compared(&rules(&["key $ id"]), &before, &after)), wanted);
        let nothing = Vec::<String>::new();
        prop_assert_eq!(said(&compared(&rules(&["key $ id", "unordered $"]), &before, &after)), nothing.clone());
        prop_assert_eq!(said(&compared(&rules(&["unordered $"]), &before, &after)), nothing);
    }

    /// A comparison by sample reports a subset: each of its findings is one of the full comparison,
    /// or refers to a list in which the full comparison has a finding.
    #[test]
    fn a_sample_finds_nothing_that_the_whole_does_not(
        left in prop_oneof![document(), keyed_list().prop_map(Value::from)],
        right in prop_oneof![document(), keyed_list().prop_map(Value::from)],
        edits in prop::collection::vec((0usize..30, prop_oneof![Just(Edit::Remove), Just(Edit::Add), Just(Edit::Replace)]), 0..3),
        unrelated in any::<bool>(),
        cap in 1usize..400,
        declared in prop_oneof![Just(&[][..]), Just(&["key $ id"][..]), Just(&["unordered $"][..])],
    ) {
        let before = text(&left);
        let mut changed = if unrelated { right } else { left };
        for (at, what) in edits {
            let _ = edit(&mut changed, at, what);
        }
        let after = text(&changed);
        let rules = rules(declared);
        let run = |cap: usize, other_cap: usize| {
            let candidate = Candidate::Answered(view(200, held(&after, other_cap)));
            let limits = Limits { findings: 1000, ..Limits::default() };
            compare(&rules, &view(200, held(&before, cap)), &candidate, &Noise::default(), &limits, &redactor())
        };
        let whole = run(usize::MAX, usize::MAX);
        for sample in [run(cap, cap), run(cap, usize::MAX), run(usize::MAX, cap)] {
            for finding in &sample.findings {
                let is_of_whole = whole.findings.iter().any(|known| {
                    (known.kind == finding.kind && known.pattern == finding.pattern)
                        || (sample.coverage == Coverage::Sample && known.pattern.starts_with(&finding.pattern))
                });
                prop_assert!(is_of_whole, "{:?} of {before} and {after}", said(&sample));
            }
            if sample.coverage == Coverage::Sample {
                prop_assert_ne!(sample.verdict(), Verdict::Equal);
            }
        }
    }

    #[test]
    fn a_planted_secret_is_in_nothing_that_comes_out(
        value in document(),
        other in document(),
        at in 0usize..30,
        secret in "[A-Za-z0-9]{24,40}".prop_filter("letters and digits", |s| {
            s.chars().filter(char::is_ascii_digit).count() >= 2 && s.chars().filter(char::is_ascii_alphabetic).count() >= 2
        }),
    ) {
        let mut planted = value;
        plant(&mut planted, &mut { at }, &secret);
        let clean = text(&other);
        for (left, right) in [(text(&planted), clean.clone()), (clean, text(&planted))] {
            let found = compared(&rules(&[]), &left, &right);
            let kept = serde_json::to_string(&found).expect("a comparison can be written");
            prop_assert!(!kept.contains(&secret), "{kept}");
        }
        let masked = text(&redactor().value(&planted, Disclosed::UNKNOWN, &mut Masked::default()));
        prop_assert!(!masked.contains(&secret), "{masked}");
        prop_assert!(Value::parse(masked.as_bytes(), &JsonLimits::UNLIMITED).is_ok());
    }

    #[test]
    fn a_known_secret_is_masked_however_it_is_surrounded(
        secret in "[a-z]{4,12}",
        before in "[a-z {:\"]{0,8}",
        after in "[a-z }\"]{0,8}",
    ) {
        let redactor = redactor().knowing([&secret]);
        let around = format!("{before}{secret}{after}");
        prop_assert!(!redactor.text(&around).contains(&secret));
        let target = format!("/a/{secret}?b={around}");
        prop_assert!(!redactor.target(&target, &Disclosures::default(), None).contains(&secret));
        let mut object = Object::new();
        object.insert(around.as_str(), Value::string(&around));
        let value = Value::Object(object);
        prop_assert!(!text(&redactor.value(&value, Disclosed::UNKNOWN, &mut Masked::default())).contains(&secret));
        let sample = redactor.sample(Some("n"), Disclosed::UNKNOWN, &Value::string(&around));
        prop_assert!(!serde_json::to_string(&sample).expect("JSON").contains(&secret));
    }
}

/// Inserts a secret at the `at`-th place, as a string or as a member name.
fn plant(value: &mut Value, at: &mut usize, secret: &str) {
    if *at == 0 {
        match value {
            Value::Object(members) => drop(members.insert(secret, Value::from(1))),
            value => *value = Value::string(secret),
        }
        return;
    }
    let mut into = |inner: &mut Value| {
        if let Some(less) = at.checked_sub(1) {
            *at = less;
            plant(inner, at, secret);
            if *at == 0 {
                *at = usize::MAX;
            }
        }
    };
    match value {
        Value::Array(items) => items.iter_mut().for_each(&mut into),
        Value::Object(members) => members.iter_mut().for_each(|(_, inner)| into(inner)),
        value => *value = Value::string(secret),
    }
}
