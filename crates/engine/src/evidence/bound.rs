//! Bounds on the true rate of differences, given how many of so many comparisons differed.
//!
//! Two of them, for two uses:
//!
//! - [`exact_upper`] is the bound of Clopper and Pearson (1934): looked at **once**, at a number of comparisons fixed
//!   beforehand, it is below the true rate with a chance of at most `1 - confidence`. For reports.
//! - [`Sequence`] may be looked at **after every comparison**, forever: the chance that it is *ever* wrong is at most
//!   `1 - confidence`. For the gate, which does just that; an exact bound looked at again and again until it pleases is sure
//!   to be wrong one day. It is the mixture of Robbins (1970) in its form for coins, a Beta(a, b) mixture of likelihood
//!   ratios: for every rate p, `M(p) = B(a + k, b + n - k) / (B(a, b) p^k (1 - p)^(n - k))` after k differences in n is a
//!   non-negative martingale that begins at 1 when p is the true rate, so by Ville's inequality it ever reaches 1/α with a
//!   chance of at most α. The rates for which it has not are an interval, which is the bound (Howard, Ramdas, McAuliffe and
//!   Sekhon 2021, "Time-uniform, nonparametric, nonasymptotic confidence sequences").
//!
//! What both assume: each comparison differs with the same chance, whatever those before it did. Calls that are not like the
//! ones compared are not spoken of; many calls for one and the same thing count as many though they are one. Where the rate
//! changes with time, the sequence bounds no average: enter a new phase and begin to count anew.

use super::beta::{incomplete, ln_beta};
use super::latency::LatencyProof;
use serde::{Deserialize, Serialize};

/// Halvings of an interval in the search for a bound; more than the digits of the number.
const HALVINGS: u32 = 64;

/// How many comparisons there were that prove something, and how many of them differed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Wrong ones.
    pub different: u64,
    /// Right and wrong ones together.
    pub compared: u64,
}

/// All that was observed of an operation in one period, by where it comes from. An operation is a read, of which answers are
/// compared, or a write, of which plans and effects are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Answers of both sides; among the compared ones are those that are unsettled. They speak for an operation and against
    /// it.
    pub answers: Observed,
    /// Answers of both sides that differed once, and nobody can say why: a wrong answer that was not repeated, or a change of
    /// the data in between. They speak against a promotion as differences do, and have a bound of their own.
    pub unsettled: u64,
    /// What the times of both sides prove about the demand on them. They speak against a promotion only.
    pub latency: LatencyProof,
    /// Calls that a write would have become, held against the contract. A wrong one speaks against the operation; a right one
    /// does not speak for it, since nobody knows how it would have been answered.
    pub plans: Observed,
    /// Effects of writes, read on both sides. They too only speak against.
    pub effects: Observed,
    /// Writes whose effect was not read back. They prove nothing.
    pub unexamined: u64,
}

/// An interval that holds the true rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// From 0, inclusive.
    pub lower: f64,
    /// To 1, inclusive.
    pub upper: f64,
}

/// The upper bound of Clopper and Pearson for the true rate after `different` of `compared`, one-sided. 1 when nothing was
/// compared.
pub fn exact_upper(different: u64, compared: u64, confidence: f64) -> f64 {
    if different >= compared {
        return 1.0;
    }
    let (k, n) = (different as f64, compared as f64);
    // The rate at which k differences or fewer have the chance 1 - confidence.
    solve(|rate| 1.0 - incomplete(k + 1.0, n - k, rate) <= 1.0 - confidence)
}

/// A bound that holds at all times at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sequence {
    a: f64,
    b: f64,
    /// ln(1/α)
    ln_limit: f64,
}

impl Sequence {
    /// The sequence of this confidence (between 0 and 1), at its sharpest for rates around `rate`. Both must be chosen before
    /// the first comparison.
    pub fn new(confidence: f64, rate: f64) -> Sequence {
        let rate = rate.clamp(1e-6, 0.5);
        // Half a difference expected: a small a costs little when none comes, and b puts the mean at a third of the rate.
        let a = 0.5;
        let b = a * (3.0 / rate - 1.0);
        Sequence { a, b, ln_limit: -(1.0 - confidence.clamp(0.0, 1.0 - 1e-12)).ln() }
    }

    /// Whether a rate is ruled out after `different` of `compared`.
    pub fn rules_out(&self, rate: f64, different: u64, compared: u64) -> bool {
        let (k, n) = (different.min(compared) as f64, compared as f64);
        let heads = if k > 0.0 { k * rate.ln() } else { 0.0 };
        let tails = if n > k { (n - k) * (-rate).ln_1p() } else { 0.0 };
        let mixture = ln_beta(self.a + k, self.b + n - k) - ln_beta(self.a, self.b);
        mixture - heads - tails >= self.ln_limit
    }

    /// Whether all rates from this one up are ruled out.
    pub fn proves_below(&self, rate: f64, different: u64, compared: u64) -> bool {
        (different as f64) < rate * compared as f64 && self.rules_out(rate, different, compared)
    }

    /// Whether all rates up to this one are ruled out.
    pub fn proves_above(&self, rate: f64, different: u64, compared: u64) -> bool {
        different as f64 > rate * compared as f64 && self.rules_out(rate, different, compared)
    }

    /// The rates that are not ruled out after `different` of `compared`.
    pub fn interval(&self, different: u64, compared: u64) -> Interval {
        if compared == 0 {
            return Interval { lower: 0.0, upper: 1.0 };
        }
        // The likelihood has one peak, at what was seen: what is ruled out lies beyond one point on either side.
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

/// The least rate at which `holds`, which does from there on.
fn solve(holds: impl Fn(f64) -> bool) -> f64 {
    solve_between(0.0, 1.0, holds)
}

/// The same, between two rates; the upper end when it holds nowhere. Errs upwards.
fn solve_between(from: f64, to: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (from, to);
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

    /// Summed over all outcomes, the chance that the bound lies below the true rate is what was promised.
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

    /// Looked at after every one of a thousand comparisons, in a thousand runs.
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
            // Five per cent, and four standard deviations of a thousand throws.
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
            // A later interval may be wider than an earlier one while the evidence is against the mixture, never on the
            // side of what was just seen.
            prop_assert!(more.lower <= here.lower + 1e-12);
            prop_assert!(exact_upper(different + 1, compared, confidence) >= exact_upper(different, compared, confidence));
            prop_assert!(exact_upper(different, compared + 1, confidence) <= exact_upper(different, compared, confidence));
            prop_assert!(exact_upper(different, compared, confidence) <= here.upper + 1e-9);
        }
    }
}
