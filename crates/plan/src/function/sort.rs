//! `sort`: the elements of a list in the order of their members, or of the elements themselves. The
//! sort is stable. Numbers are compared by value, RFC 3339 timestamps by instant, and other texts by
//! their characters. Of different kinds, absent and null come first, then booleans, numbers,
//! timestamps and texts; in descending order, last.

use super::{Function, FunctionArguments, FunctionSpec, Gives, LIST, Takes, are_all, example};
use crate::convert::{ArgumentError, Facts, Given, instant};
use crate::decimal::Decimal;
use crate::{Key, Kinds};
use std::cmp::Ordering;
use std::sync::Arc;
use switchback_json::raw::Kind;
use switchback_json::{Array, Number, Value};

pub(super) const SPEC: FunctionSpec = FunctionSpec {
    name: "sort",
    about: "A list in the order of a member of its elements.",
    arguments: Some(FunctionArguments {
        such_as: "{sort: name}",
        schema: r#"{"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": false, "minProperties": 1, "properties": {
            "by": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}], "description": "A member of the elements; of several, the next one decides ties. Without it, the elements are compared."},
            "order": {"enum": ["ascending", "descending"], "description": "The direction; `ascending` if absent."}}}]}"#,
    }),
    build,
    examples: &[
        example(
            r#""n""#,
            r#"[{"n":10},{"n":9},{"n":10,"a":1}]"#,
            Some(r#"[{"n":9},{"n":10},{"n":10,"a":1}]"#),
        ),
        example(
            r#"{"by": "at", "order": "descending"}"#,
            r#"[{"at":"2024-03-09T12:00:00+02:00"},{"at":"2024-03-09T11:00:00Z"},{}]"#,
            Some(r#"[{"at":"2024-03-09T11:00:00Z"},{"at":"2024-03-09T12:00:00+02:00"},{}]"#),
        ),
        example(r#"{"order": "ascending"}"#, r#"["b","a"]"#, Some(r#"["a","b"]"#)),
        example(r#""n""#, "7", None),
    ],
};

/// Maximum number of members that decide the order.
const MEMBERS_MAX: usize = 8;

#[derive(Debug)]
struct Sort {
    /// The members; the elements themselves if empty.
    members: Vec<Key>,
    is_descending: bool,
}

fn build(given: &Given<'_>) -> Result<Arc<dyn Function>, ArgumentError> {
    const FORM: &str = "it takes a member, or `{by: member, order: descending}`";
    let names = |value: &Value| -> Result<Vec<Key>, ArgumentError> {
        let all: &[Value] = match value {
            Value::Array(all) if (1..=MEMBERS_MAX).contains(&all.len()) => all,
            one => std::slice::from_ref(one),
        };
        all.iter().map(|name| Ok(Key::new(&name.as_str().ok_or(FORM)?))).collect()
    };
    let Some(map) = given.arguments.as_object() else {
        return Ok(Arc::new(Sort { members: names(given.arguments)?, is_descending: false }));
    };
    let (by, order) = (map.get("by"), map.get("order"));
    if map.is_empty() || map.len() != usize::from(by.is_some()) + usize::from(order.is_some()) {
        return Err(FORM.into());
    }
    let is_descending = match order.map(|order| order.as_str()) {
        None => false,
        Some(Some(word)) if word == "ascending" => false,
        Some(Some(word)) if word == "descending" => true,
        Some(_) => return Err("`order` is `ascending` or `descending`".into()),
    };
    Ok(Arc::new(Sort { members: by.map_or(Ok(Vec::new()), names)?, is_descending }))
}

impl Function for Sort {
    fn name(&self) -> &'static str {
        SPEC.name
    }

    fn takes(&self) -> Takes {
        let elements = match self.members.is_empty() {
            true => super::SCALARS,
            false => Kinds::from_kinds(&[Kind::Object]),
        };
        Takes { kinds: LIST, elements }
    }

    fn gives(&self, _facts: &Facts) -> Gives {
        Gives::Same
    }

    fn takes_all(&self, facts: &Facts) -> bool {
        are_all(facts, LIST)
    }

    fn domain_text(&self) -> &'static str {
        "a list"
    }

    fn apply(&self, value: Value) -> Option<Value> {
        let Value::Array(list) = value else { return None };
        // Each rank is computed once, because parsing a date costs more than a comparison.
        let mut ranked: Vec<(Vec<Rank>, Value)> =
            list.into_iter().map(|element| (self.ranks(&element), element)).collect();
        ranked.sort_by(|(a, _), (b, _)| if self.is_descending { b.cmp(a) } else { a.cmp(b) });
        Some(Value::Array(ranked.into_iter().map(|(_, element)| element).collect::<Array>()))
    }

    fn members(&self) -> &[Key] {
        &self.members
    }
}

impl Sort {
    fn ranks(&self, element: &Value) -> Vec<Rank> {
        match self.members.is_empty() {
            true => vec![rank(Some(element))],
            false => self.members.iter().map(|key| rank(element.get(&key.text))).collect(),
        }
    }
}

/// The place of a value in the order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Nothing,
    Bool(bool),
    Number(Magnitude),
    Timestamp(i64, u32),
    Text(String),
    /// A list or an object; their order is kept.
    Other,
}

fn rank(value: Option<&Value>) -> Rank {
    match value {
        None | Some(Value::Null) => Rank::Nothing,
        Some(Value::Bool(value)) => Rank::Bool(*value),
        Some(Value::Number(number)) => Rank::Number(Magnitude::new(number)),
        Some(Value::String(text)) => {
            let text = text.decode();
            match instant(&text) {
                Some((seconds, nanos)) => Rank::Timestamp(seconds, nanos),
                None => Rank::Text(text.into_owned()),
            }
        }
        Some(Value::Array(_) | Value::Object(_)) => Rank::Other,
    }
}

/// A number that is compared by value.
struct Magnitude {
    nearest: f64,
    /// `None` if it has too many digits, which are then ignored.
    exact: Option<Decimal>,
}

impl Magnitude {
    fn new(number: &Number) -> Magnitude {
        let text = number.text();
        Magnitude { nearest: text.parse().unwrap_or(0.0), exact: Decimal::parse(text.as_bytes()) }
    }
}

impl Ord for Magnitude {
    fn cmp(&self, other: &Magnitude) -> Ordering {
        let exactly = || {
            let difference = self.exact?.minus(other.exact?)?;
            Some(if difference.is_positive() {
                Ordering::Greater
            } else if difference.is_zero() {
                Ordering::Equal
            } else {
                Ordering::Less
            })
        };
        // `-0` and `0` are equal.
        let nearest = self.nearest.partial_cmp(&other.nearest).unwrap_or(Ordering::Equal);
        nearest.then_with(|| exactly().unwrap_or(Ordering::Equal))
    }
}

impl PartialOrd for Magnitude {
    fn partial_cmp(&self, other: &Magnitude) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Magnitude {
    fn eq(&self, other: &Magnitude) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Magnitude {}

#[cfg(test)]
mod tests {
    use super::super::tests::{applied, build};
    use proptest::prelude::*;

    #[test]
    fn kinds_and_exact_numbers_have_an_order() {
        let sorted = |list: &str| applied("sort", r#"{"order": "ascending"}"#, list).expect("a list");
        assert_eq!(
            sorted(r#"["b",2,true,null,"2024-03-09T12:00:00Z",false]"#),
            r#"[null,false,true,2,"2024-03-09T12:00:00Z","b"]"#
        );
        assert_eq!(
            sorted("[9007199254740993,9007199254740992,1e1,9.5]"),
            "[9.5,1e1,9007199254740992,9007199254740993]"
        );
    }

    #[test]
    fn arguments_are_checked() {
        for wrong in ["7", "{}", "[]", r#"{"of": "a"}"#, r#"{"by": "a", "order": "up"}"#, r#"{"by": []}"#] {
            assert!(build("sort", wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        /// The result is ordered, stable, and has the same elements.
        #[test]
        fn a_sort_is_a_stable_permutation(numbers in proptest::collection::vec(0..5i64, 0..30), descending: bool) {
            let list: Vec<String> = numbers.iter().enumerate().map(|(at, n)| format!(r#"{{"n":{n},"at":{at}}}"#)).collect();
            let order = if descending { "descending" } else { "ascending" };
            let found = applied("sort", &format!(r#"{{"by": "n", "order": "{order}"}}"#), &format!("[{}]", list.join(",")));
            let mut pairs: Vec<(i64, usize)> = numbers.iter().copied().zip(0..).collect();
            pairs.sort_by_key(|(n, at)| (if descending { -n } else { *n }, *at));
            let wanted: Vec<String> = pairs.iter().map(|(n, at)| format!(r#"{{"n":{n},"at":{at}}}"#)).collect();
            prop_assert_eq!(found, Some(format!("[{}]", wanted.join(","))));
        }
    }
}
