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
use serde::{Deserialize, Serialize};

/// Halvings of an interval in the search for a bound; more than the digits of the number.
const HALVINGS: u32 = 100;

/// An interval that holds the true rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub lower: f64,
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

    /// The rates that are not ruled out after `different` of `compared`.
    pub fn interval(&self, different: u64, compared: u64) -> Interval {
        if compared == 0 {
            return Interval { lower: 0.0, upper: 1.0 };
        }
        let (k, n) = (different.min(compared) as f64, compared as f64);
        let seen = k / n;
        let mixture = ln_beta(self.a + k, self.b + n - k) - ln_beta(self.a, self.b);
        let is_ruled_out = |rate: f64| {
            let heads = if k > 0.0 { k * rate.ln() } else { 0.0 };
            let tails = if n > k { (n - k) * (-rate).ln_1p() } else { 0.0 };
            mixture - heads - tails >= self.ln_limit
        };
        // The likelihood has one peak, at what was seen: what is ruled out lies beyond one point on either side.
        let upper = if different >= compared { 1.0 } else { solve_between(seen, 1.0, is_ruled_out) };
        let lower = if different == 0 {
            0.0
        } else {
            1.0 - solve_between(1.0 - seen, 1.0, |rate| is_ruled_out(1.0 - rate))
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
