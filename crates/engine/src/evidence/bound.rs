//! Confidence bounds on the true rate of differences, given the number of differences among the
//! comparisons. There are two, for two uses:
//!
//! - [`exact_upper`] is the bound of Clopper and Pearson (1934). Evaluated **once**, after a number
//!   of comparisons fixed in advance, it is below the true rate with a probability of at most
//!   `1 - confidence`. Reports use it.
//! - [`Sequence`] may be evaluated after **every** comparison, without a limit: the probability
//!   that it is *ever* wrong is at most `1 - confidence`. The gate does exactly that; an exact
//!   bound evaluated repeatedly until it is low enough is certain to be wrong eventually.
//!
//! The sequence is the mixture of Robbins (1970) for Bernoulli trials, a Beta(a, b) mixture of
//! likelihood ratios. For every rate p, `M(p) = B(a + k, b + n - k) / (B(a, b) p^k (1 - p)^(n -
//! k))` after k differences in n comparisons is a non-negative martingale that starts at 1 if p is
//! the true rate. By Ville's inequality it ever reaches 1/α with a probability of at most α. The
//! rates for which it has not reached 1/α form the interval (Howard, Ramdas, McAuliffe and Sekhon
//! 2021, "Time-uniform, nonparametric, nonasymptotic confidence sequences").
//!
//! Both assume that each comparison differs with the same probability, independently of earlier
//! ones. They cover only calls like the compared ones, and count many calls for one resource as
//! independent. If the rate changes with time, the sequence does not bound its average: start a new
//! phase with new counts.

use super::beta::{incomplete, ln_beta};
use serde::{Deserialize, Serialize};

/// Bisection steps in the search for a bound, enough for the precision of an `f64`.
const HALVINGS: u32 = 64;

/// An interval that contains the true rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower bound, at least 0.
    pub lower: f64,
    /// Upper bound, at most 1.
    pub upper: f64,
}

/// Returns the one-sided upper bound of Clopper and Pearson on the true rate, after `different` of
/// `compared` differed. Returns 1 without comparisons.
pub fn exact_upper(different: u64, compared: u64, confidence: f64) -> f64 {
    if different >= compared {
        return 1.0;
    }
    let (k, n) = (different as f64, compared as f64);
    // The bound is the rate at which `k` differences or fewer have the probability
    // `1 - confidence`.
    solve(|rate| 1.0 - incomplete(k + 1.0, n - k, rate) <= 1.0 - confidence)
}

/// A confidence sequence: an interval that is valid at all times simultaneously.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sequence {
    a: f64,
    b: f64,
    /// ln(1/α)
    ln_limit: f64,
}

impl Sequence {
    /// Creates a sequence with this confidence, between 0 and 1, that is narrowest for rates near
    /// `rate`. Both must be chosen before the first comparison.
    pub fn new(confidence: f64, rate: f64) -> Sequence {
        // A rate of zero would make `b` infinite.
        let rate = rate.clamp(1e-6, 0.5);
        // A small `a` costs little while no difference occurs. `b` sets the mean of the mixture to
        // a third of the rate.
        let a = 0.5;
        let b = a * (3.0 / rate - 1.0);
        // With a confidence of 1, no rate would ever be excluded.
        Sequence { a, b, ln_limit: -(1.0 - confidence.clamp(0.0, 1.0 - 1e-12)).ln() }
    }

    /// Returns whether the evidence excludes exactly this rate.
    pub fn rules_out(&self, rate: f64, different: u64, compared: u64) -> bool {
        let (k, n) = (different.min(compared) as f64, compared as f64);
        // 0 ln 0 counts as 0, but evaluates to NaN.
        let heads = if k > 0.0 { k * rate.ln() } else { 0.0 };
        let tails = if n > k { (n - k) * (-rate).ln_1p() } else { 0.0 };
        let mixture = ln_beta(self.a + k, self.b + n - k) - ln_beta(self.a, self.b);
        mixture - heads - tails >= self.ln_limit
    }

    /// Returns whether the evidence excludes this rate and all higher ones.
    pub fn proves_below(&self, rate: f64, different: u64, compared: u64) -> bool {
        // The martingale has one peak, so a rate that is excluded above the observed one excludes
        // all higher rates too.
        (different as f64) < rate * compared as f64 && self.rules_out(rate, different, compared)
    }

    /// Returns whether the evidence excludes this rate and all lower ones.
    pub fn proves_above(&self, rate: f64, different: u64, compared: u64) -> bool {
        different as f64 > rate * compared as f64 && self.rules_out(rate, different, compared)
    }

    /// Returns the rates that the evidence does not exclude.
    pub fn interval(&self, different: u64, compared: u64) -> Interval {
        if compared == 0 {
            return Interval { lower: 0.0, upper: 1.0 };
        }
        // The likelihood has a single peak at the observed rate, so each side has exactly one
        // boundary.
        let seen = different as f64 / compared as f64;
        let is_ruled_out = |rate: f64| self.rules_out(rate, different, compared);
        let upper = if different >= compared { 1.0 } else { solve_between(seen, 1.0, is_ruled_out) };
        let lower = match different {
            0 => 0.0,
            _ => 1.0 - solve_between(1.0 - seen, 1.0, |rate| is_ruled_out(1.0 - rate)),
        };
        Interval { lower, upper }
    }
}

/// Returns the least rate at which the monotonic predicate `holds` is true.
fn solve(holds: impl Fn(f64) -> bool) -> f64 {
    solve_between(0.0, 1.0, holds)
}

/// Returns the least rate between `from` and `to` at which `holds` is true, or `to` if there is
/// none. The result is rounded up.
fn solve_between(from: f64, to: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (from, to);
    // Bisection instead of the closed form: it needs only the function that decides, so the printed
    // interval and the decision cannot disagree.
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if holds(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_exact_bound_is_that_of_the_tables() {
        // The rule of three, and values of published tables of one-sided 95 % limits.
        for (different, compared, bound) in [
            (0, 300, 0.009_936),
            (0, 59, 0.049_508),
            (1, 100, 0.046_559),
            (5, 50, 0.198833),
            (10, 20, 0.698046),
        ] {
            let found = exact_upper(different, compared, 0.95);
            assert!((found - bound).abs() < 5e-5, "{different} of {compared}: {found}, not {bound}");
        }
        assert_eq!(exact_upper(0, 0, 0.95), 1.0);
        assert_eq!(exact_upper(7, 7, 0.95), 1.0);
    }

    /// Summed over all outcomes, the bound is below the true rate with the guaranteed probability.
    #[test]
    fn the_exact_bound_is_wrong_as_seldom_as_it_says() {
        for rate in [0.001, 0.01, 0.1, 0.5] {
            for compared in [10u64, 100, 500] {
                let mut wrong = 0.0;
                let mut chance = (compared as f64 * f64::ln_1p(-rate)).exp();
                for different in 0..=compared {
                    if exact_upper(different, compared, 0.95) < rate {
                        wrong += chance;
                    }
                    chance *= (compared - different) as f64 / (different + 1) as f64 * rate / (1.0 - rate);
                }
                assert!(wrong <= 0.05 + 1e-9, "rate {rate}, {compared} compared: wrong with {wrong}");
            }
        }
    }

    /// Evaluated after each of a thousand comparisons, in a thousand runs.
    #[test]
    fn the_sequence_is_ever_wrong_as_seldom_as_it_says() {
        for rate in [0.001, 0.01, 0.05] {
            let sequence = Sequence::new(0.95, 0.01);
            let runs = 1000;
            let mut wrong = 0;
            for seed in 0..runs {
                let mut random = fastrand::Rng::with_seed(seed);
                let (mut different, mut left) = (0, false);
                for compared in 1..=1000 {
                    different += u64::from(random.f64() < rate);
                    left |= rate > 0.0 && sequence.rules_out(rate, different, compared);
                }
                wrong += u32::from(left);
            }
            // Five per cent, plus four standard deviations of a thousand trials.
            assert!(wrong <= 50 + 28, "rate {rate}: {wrong} of {runs} runs left the interval");
        }
    }

    #[test]
    fn to_look_always_costs_no_more_than_half_as_much_again() {
        let sequence = Sequence::new(0.95, 0.01);
        let needed = (1..5000).find(|compared| sequence.interval(0, *compared).upper <= 0.01);
        assert!(needed.is_some_and(|needed| needed <= 299 * 2), "{needed:?} equal comparisons prove 1 %");
    }

    proptest! {
        #[test]
        fn bounds_grow_with_differences_and_shrink_with_comparisons(
            different in 0u64..200,
            equal in 1u64..5000,
            confidence in 0.5f64..0.999,
        ) {
            let compared = different + equal;
            let sequence = Sequence::new(confidence, 0.01);
            let (here, worse, more) = (
                sequence.interval(different, compared),
                sequence.interval(different + 1, compared),
                sequence.interval(different, compared + 1),
            );
            prop_assert!(here.lower <= here.upper);
            let seen = different as f64 / compared as f64;
            prop_assert!(here.lower <= seen && seen <= here.upper);
            prop_assert!(worse.upper >= here.upper && worse.lower >= here.lower);
            // A later interval may be wider while the evidence contradicts the mixture, but never
            // on the side of the latest result.
            prop_assert!(more.lower <= here.lower + 1e-12);
            prop_assert!(exact_upper(different + 1, compared, confidence) >= exact_upper(different, compared, confidence));
            prop_assert!(exact_upper(different, compared + 1, confidence) <= exact_upper(different, compared, confidence));
            prop_assert!(exact_upper(different, compared, confidence) <= here.upper + 1e-9);
        }
    }
}
