//! `scale`: a number on the old side, a fixed multiple of it on the new one: euros and cents,
//! seconds and milliseconds. The arithmetic is decimal and exact: a number without an exact result
//! is outside the domain. The number survives; its spelling (`1.50`, `15e-1`) does not.

use super::{
    ArgumentError, Arguments, ConversionKind, Convert, Domain, Example, Facts, Given, Holds, Law, Spec, Yield,
};
use crate::decimal::Decimal;
use crate::{Kinds, SideId};
use std::sync::Arc;
use switchback_json::raw::Kind;

const NUMBER: Domain =
    Domain { kinds: Kinds::from_kinds(&[Kind::Number]), integer: false, absent: false, total: false };

pub(super) const SPEC: Spec = Spec {
    name: "scale",
    about: "a number on the old side, so many times that number on the new one",
    arguments: Arguments::Own {
        such_as: "{scale: 100}",
        schema: r#"{"type": "number", "exclusiveMinimum": 0}"#,
        read: parse,
    },
    old: NUMBER,
    new: NUMBER,
    null_passes: true,
    structural: false,
    law: Law::Iso,
    examples: &[
        example("19.99", "1999", Holds::Both),
        example("-0.5", "-50", Holds::Both),
        example("0.005", "0.5", Holds::Both),
        example("12345678901234567890.12", "1234567890123456789012", Holds::Both),
        example("1.50", "150", Holds::Forward),
        example("null", "null", Holds::Both),
    ],
};

const fn example(old: &'static str, new: &'static str, holds: Holds) -> Example {
    Example { written: "{scale: 100}", kind: sample, old: Some(old), new: Some(new), holds }
}

fn sample() -> ConversionKind {
    let factor = Decimal::power_of_ten(2);
    ConversionKind::Own(Arc::new(Scale { factor, integers: [false, false] }))
}

#[derive(Debug)]
struct Scale {
    factor: Decimal,
    /// Per side, whether its place accepts only integers.
    integers: [bool; 2],
}

fn parse(given: &Given<'_>) -> Result<ConversionKind, ArgumentError> {
    let text = given.arguments.as_number().map(|number| number.text().to_owned());
    let factor = text.and_then(|text| Decimal::parse(text.as_bytes())).filter(|factor| factor.is_positive());
    let Some(factor) = factor else { return Err("it takes a number greater than 0".into()) };
    if factor == Decimal::power_of_ten(0) {
        return Err("once a number is that number".into());
    }
    // Only a place that is known to hold integers rejects fractions.
    let integers = given.facts.map(|facts| facts.is_some_and(|facts| !facts.any && facts.integers));
    Ok(ConversionKind::Own(Arc::new(Scale { factor, integers })))
}

impl Scale {
    /// Scales a number with too many digits for [`Decimal`]: an integer, or what one was divided to.
    fn long(&self, json: &[u8], forward: bool, out: &mut Vec<u8>) -> Option<Yield> {
        if self.integers[usize::from(!forward)] && json.contains(&b'.') {
            return None;
        }
        let scaled = match forward {
            true => self.factor.times_long(json)?,
            false => self.factor.divide_integer(json)?,
        };
        // A contract with `type: integer` on the receiving side would reject the fraction, so the value
        // counts as outside the domain here.
        if self.integers[usize::from(forward)] && scaled.contains('.') {
            return None;
        }
        out.extend_from_slice(scaled.as_bytes());
        Some(Yield::Written)
    }
}

impl Convert for Scale {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn convert(&self, json: &[u8], forward: bool, out: &mut Vec<u8>) -> Option<Yield> {
        // A number beyond the precision of `Decimal` may still be an integer of any length.
        let Some(number) = Decimal::parse(json) else { return self.long(json, forward, out) };
        let result = if forward { number.times(self.factor) } else { number.over(self.factor) };
        let Some(result) = result else { return self.long(json, forward, out) };
        let [from, to] = if forward { [0, 1] } else { [1, 0] };
        let fits = |at: usize, number: Decimal| !self.integers[at] || number.is_integer();
        if !fits(from, number) || !fits(to, result) {
            return None;
        }
        match result.text() {
            Some(text) => out.extend_from_slice(text.as_bytes()),
            None => return self.long(json, forward, out),
        }
        Some(Yield::Written)
    }

    fn domain_text(&self, from: SideId) -> &'static str {
        match (self.integers[usize::from(from.0)], self.integers[usize::from(from.other().0)]) {
            (_, true) => "a number that gives an integer",
            (true, false) => "an integer that has an exact result",
            (false, false) => "an integer, or a number of at most 30 digits",
        }
    }

    fn is_integer(&self, side: SideId) -> bool {
        self.integers[usize::from(side.0)]
    }

    /// An integer factor accepts every integer towards the new side. The inverse needs a power of
    /// ten, because other quotients may have infinitely many digits.
    fn takes_all(&self, from: SideId, facts: &Facts) -> bool {
        let whole = self.factor.is_integer();
        // Integers beyond the digits of `Decimal` can be scaled only by an integer factor.
        let bounded = if whole { facts.integers } else { facts.is_between(i64::MIN, i64::MAX) };
        // A power of ten shifts the decimal point. Its inverse is exact too if the other side
        // accepts fractions.
        let tens = self.factor.is_power_of_ten();
        match from {
            SideId::OLD => bounded && (whole || !self.integers[1]),
            _ => bounded && tens && !self.integers[0],
        }
    }

    fn sample(&self, side: SideId, seed: u64) -> String {
        let number = Decimal::from((seed % 100_000) as i64 - 50_000);
        // A factor such as 0.001 gives fractions for most numbers. Where the new side accepts only
        // integers, use zero, which survives every factor.
        let scaled = number.times(self.factor).filter(|scaled| !self.integers[1] || scaled.is_integer());
        let of = |number: Decimal| number.text().unwrap_or_default();
        match (side, scaled) {
            (SideId::OLD, Some(_)) => of(number),
            (_, Some(scaled)) => of(scaled),
            (_, None) => "0".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scaled(factor: &str, integers: [bool; 2], json: &str, forward: bool) -> Option<String> {
        let factor = Decimal::parse(factor.as_bytes()).expect("a factor");
        let mut out = Vec::new();
        Scale { factor, integers }.convert(json.as_bytes(), forward, &mut out)?;
        Some(String::from_utf8(out).expect("digits"))
    }

    #[test]
    fn what_has_no_exact_result_is_outside_the_domain() {
        let none = [false, false];
        assert_eq!(scaled("60", none, "1", false), None, "a third of a minute never ends");
        assert_eq!(scaled("60", none, "90", false).as_deref(), Some("1.5"));
        assert_eq!(scaled("100", [false, true], "0.005", true), None, "half a cent is no integer");
        assert_eq!(scaled("100", [true, true], "150", false), None);
        assert_eq!(scaled("100", none, "1e400", true), None, "too long to be written");
        let nines = "9".repeat(31);
        assert_eq!(scaled("100", none, &format!("{nines}.5"), true), Some(format!("{nines}50")));
        assert_eq!(scaled("100", [true, false], &format!("{nines}.5"), true), None);
        assert_eq!(
            scaled("100", [true, true], "15000000000000000000000000000000000", false).as_deref(),
            Some("150000000000000000000000000000000")
        );
        assert_eq!(scaled("100", [true, true], "15000000000000000000000000000000001", false), None);
        let long = "9".repeat(31);
        assert_eq!(scaled("100", [true, true], &long, true), Some(format!("{long}00")));
        assert_eq!(scaled("0.01", none, "-0", true).as_deref(), Some("0"));
    }

    #[test]
    fn a_whole_factor_takes_every_integer_however_long_and_the_way_back_wants_bounds() {
        let integers = |bounds| Facts { any: false, integers: true, bounds, ..Facts::default() };
        let takes = |factor: &str, from, facts: &Facts| {
            let factor = Decimal::parse(factor.as_bytes()).expect("a factor");
            Scale { factor, integers: [true, false] }.takes_all(from, facts)
        };
        let unbounded = integers([None, None]);
        assert!(takes("100", SideId::OLD, &unbounded));
        assert!(!takes("0.5", SideId::OLD, &unbounded), "halves of long integers are not calculated");
        assert!(!takes("100", SideId::NEW, &unbounded), "not every integer is a multiple of 100");
        assert!(!takes("100", SideId::OLD, &Facts { integers: false, ..unbounded }));
    }

    proptest! {
        #[test]
        fn decimals_come_back_exactly(whole in 0..1_000_000_000_000i64, places in "[0-9]{0,8}", power in 0..6u32) {
            let text = format!("{whole}.{places}1");
            let factor = 10i64.pow(power).to_string();
            if let Some(there) = scaled(&factor, [false, false], &text, true) {
                prop_assert_eq!(scaled(&factor, [false, false], &there, false), Some(text));
            }
        }
    }
}
