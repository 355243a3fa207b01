//! `sum`, `difference`, `product`, `quotient` and `round`: exact decimal arithmetic on JSON numbers
//! of at most 30 digits. Only `quotient` and `round` round, to a stated number of places in a stated
//! mode. Null, a longer number, a longer result and a division by zero are outside the domain.

use super::{Function, FunctionArguments, FunctionSpec, Gives, LIST, NUMBER, Takes, are_all, example};
use crate::convert::{ArgumentError, Facts, Given};
use crate::decimal::{Decimal, Rounding};
use std::sync::Arc;
use switchback_json::Value;

pub(super) const SUM: FunctionSpec = FunctionSpec {
    name: "sum",
    about: "The exact sum of the numbers of a list.",
    arguments: None,
    build: |_| Ok(Arc::new(Arithmetic { spec: &SUM, compute: Compute::Sum })),
    examples: &[
        example("null", "[0.1,0.2]", Some("0.3")),
        example("null", "[]", Some("0")),
        example("null", "[1,null]", None),
    ],
};

pub(super) const DIFFERENCE: FunctionSpec = FunctionSpec {
    name: "difference",
    about: "The first of two numbers less the second, exactly.",
    arguments: None,
    build: |_| Ok(Arc::new(Arithmetic { spec: &DIFFERENCE, compute: Compute::Difference })),
    examples: &[
        example("null", "[19.99,20]", Some("-0.01")),
        example("null", "[1]", None),
        example("null", "[3,2,1]", None),
    ],
};

pub(super) const PRODUCT: FunctionSpec = FunctionSpec {
    name: "product",
    about: "The exact product of the numbers of a list.",
    arguments: None,
    build: |_| Ok(Arc::new(Arithmetic { spec: &PRODUCT, compute: Compute::Product })),
    examples: &[
        example("null", "[19.99,3]", Some("59.97")),
        example("null", "[1e30,1e30,1e30]", None),
        example("null", "[\"2\",3]", None),
    ],
};

pub(super) const QUOTIENT: FunctionSpec = FunctionSpec {
    name: "quotient",
    about: "The first of two numbers by the second, rounded.",
    arguments: Some(FunctionArguments {
        such_as: "{quotient: {places: 2, mode: half_even}}",
        schema: SCHEMA,
    }),
    build: |given| {
        let (places, mode) = rounding(given)?;
        Ok(Arc::new(Arithmetic { spec: &QUOTIENT, compute: Compute::Quotient(places, mode) }))
    },
    examples: &[
        example(HALF_EVEN, "[1,3]", Some("0.33")),
        example(HALF_EVEN, "[0.125,1]", Some("0.12")),
        example(HALF_EVEN, "[1,0]", None),
        example(r#"{"places": 0, "mode": "down"}"#, "[-7,2]", Some("-3")),
    ],
};

pub(super) const ROUND: FunctionSpec = FunctionSpec {
    name: "round",
    about: "A number, rounded to so many decimal places.",
    arguments: Some(FunctionArguments { such_as: "{round: {places: 2, mode: half_up}}", schema: SCHEMA }),
    build: |given| {
        let (places, mode) = rounding(given)?;
        Ok(Arc::new(Arithmetic { spec: &ROUND, compute: Compute::Round(places, mode) }))
    },
    examples: &[
        example(r#"{"places": 2, "mode": "half_up"}"#, "2.345", Some("2.35")),
        example(r#"{"places": 2, "mode": "half_up"}"#, "-2.345", Some("-2.35")),
        example(HALF_EVEN, "2.345", Some("2.34")),
        example(r#"{"places": 0, "mode": "up"}"#, "2.1", Some("3")),
        example(HALF_EVEN, "\"2\"", None),
    ],
};

const HALF_EVEN: &str = r#"{"places": 2, "mode": "half_even"}"#;

const SCHEMA: &str = r#"{"type": "object", "additionalProperties": false, "required": ["places", "mode"], "properties": {
    "places": {"type": "integer", "minimum": 0, "maximum": 20, "description": "Decimal places of the result."},
    "mode": {"enum": ["half_up", "half_even", "down", "up"], "description": "Halves away from zero or to the even digit; towards zero; away from zero."}}}"#;

fn rounding(given: &Given<'_>) -> Result<(i32, Rounding), ArgumentError> {
    let argument = |name: &str| given.arguments.get(name);
    let Some(2) = given.arguments.as_object().map(|map| map.len()) else {
        return Err("it takes `places` and a `mode`".into());
    };
    let places = argument("places").and_then(Value::as_i64).filter(|places| (0..=20).contains(places));
    let places = places.ok_or("`places` is a number from 0 to 20")?;
    let mode = match argument("mode").and_then(Value::as_str).as_deref() {
        Some("half_up") => Rounding::HalfUp,
        Some("half_even") => Rounding::HalfEven,
        Some("down") => Rounding::Down,
        Some("up") => Rounding::Up,
        _ => return Err("`mode` is `half_up`, `half_even`, `down` or `up`".into()),
    };
    Ok((places as i32, mode))
}

#[derive(Debug)]
struct Arithmetic {
    spec: &'static FunctionSpec,
    compute: Compute,
}

#[derive(Clone, Copy, Debug)]
enum Compute {
    Sum,
    Difference,
    Product,
    Quotient(i32, Rounding),
    Round(i32, Rounding),
}

impl Arithmetic {
    /// Returns whether it needs exactly two numbers.
    fn is_of_two(&self) -> bool {
        matches!(self.compute, Compute::Difference | Compute::Quotient(..))
    }
}

impl Function for Arithmetic {
    fn name(&self) -> &'static str {
        self.spec.name
    }

    fn takes(&self) -> Takes {
        let kinds = if matches!(self.compute, Compute::Round(..)) { NUMBER } else { LIST };
        Takes { kinds, elements: NUMBER }
    }

    fn gives(&self, facts: &Facts) -> Gives {
        let of_integers = facts.items.as_ref().is_some_and(|items| items.integers && !items.any);
        let integer = match self.compute {
            Compute::Sum | Compute::Difference | Compute::Product => of_integers,
            Compute::Quotient(places, _) | Compute::Round(places, _) => places == 0,
        };
        Gives::Kinds { kinds: NUMBER, integer }
    }

    /// A result cannot be too long if the contract bounds the numbers.
    fn takes_all(&self, facts: &Facts) -> bool {
        const LARGE: i64 = 1_000_000_000_000;
        let count = facts.items_most.unwrap_or(u64::MAX);
        let items = facts.items.as_deref().filter(|items| are_all(items, NUMBER) && !items.kinds.null);
        let are_bounded = are_all(facts, LIST) && items.is_some_and(|items| items.is_between(-LARGE, LARGE));
        match self.compute {
            Compute::Sum => are_bounded && count <= 10_000,
            Compute::Difference => are_bounded && facts.items_least == 2 && count == 2,
            Compute::Product => are_bounded && count <= 2,
            // The second number may be 0.
            Compute::Quotient(..) => false,
            Compute::Round(..) => are_all(facts, NUMBER) && facts.is_between(-LARGE, LARGE),
        }
    }

    fn domain_text(&self) -> &'static str {
        match self.compute {
            Compute::Round(..) => "a number of at most 30 digits",
            Compute::Quotient(..) => "two numbers of at most 30 digits, the second of them not 0",
            Compute::Difference => "two numbers of at most 30 digits",
            Compute::Sum | Compute::Product => "numbers of at most 30 digits, with a result of that length",
        }
    }

    fn apply(&self, value: Value) -> Option<Value> {
        let number = |value: &Value| Decimal::parse(value.as_number()?.text().as_bytes());
        let numbers = match &value {
            Value::Array(list) => list.iter().map(number).collect::<Option<Vec<Decimal>>>()?,
            one => vec![number(one)?],
        };
        if matches!(value, Value::Array(_)) == matches!(self.compute, Compute::Round(..))
            || self.is_of_two() && numbers.len() != 2
        {
            return None;
        }
        let result = match self.compute {
            Compute::Sum => numbers.iter().try_fold(Decimal::from(0), |sum, one| sum.plus(*one))?,
            Compute::Product => {
                numbers.iter().try_fold(Decimal::from(1), |product, one| product.times(*one))?
            }
            Compute::Difference => numbers[0].minus(numbers[1])?,
            Compute::Quotient(places, mode) => numbers[0].quotient(numbers[1], places, mode)?,
            Compute::Round(places, mode) => numbers[0].rounded(places, mode)?,
        };
        Some(Value::Number(switchback_json::Number::from_text(&result.text()?)?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{applied, build};

    #[test]
    fn arguments_are_checked() {
        for wrong in [
            r#"{"places": 2}"#,
            r#"{"places": -1, "mode": "up"}"#,
            r#"{"places": 2, "mode": "near"}"#,
            r#"{"places": 2, "mode": "up", "more": 1}"#,
            "2",
        ] {
            assert!(build("round", wrong).is_err() && build("quotient", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn modes_differ_at_halves_and_below_zero() {
        let rounded = |mode: &str, number: &str| {
            applied("round", &format!(r#"{{"places": 1, "mode": "{mode}"}}"#), number).expect("a number")
        };
        for (number, by_mode) in [
            ("0.25", ["0.3", "0.2", "0.2", "0.3"]),
            ("-0.25", ["-0.3", "-0.2", "-0.2", "-0.3"]),
            ("0.35", ["0.4", "0.4", "0.3", "0.4"]),
            ("0.2501", ["0.3", "0.3", "0.2", "0.3"]),
            ("1e-50", ["0", "0", "0", "0.1"]),
            ("7", ["7", "7", "7", "7"]),
        ] {
            let found = ["half_up", "half_even", "down", "up"].map(|mode| rounded(mode, number));
            assert_eq!(found.each_ref().map(String::as_str), by_mode, "{number}");
        }
    }

    #[test]
    fn results_that_are_too_long_are_outside_the_domain() {
        let nines = "9".repeat(30);
        assert_eq!(applied("product", "null", &format!("[{nines},{nines}]")), None);
        assert_eq!(applied("sum", "null", &format!("[{nines},1e-40]")), None);
        assert_eq!(
            applied("quotient", r#"{"places": 20, "mode": "down"}"#, &format!("[{nines},1e-20]")),
            None
        );
        assert_eq!(applied("sum", "null", &format!("[{nines}9]")), None);
    }
}
