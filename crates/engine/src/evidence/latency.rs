//! Latency of both sides, and bounds on its quantiles.
//!
//! Only times under equal conditions are compared: both times of a pair are measured by the shadow,
//! which reads one side after the other over its own connections, in random order. Times that
//! clients waited are not used, because the two sides answer clients under different conditions.
//!
//! A quantile is below a time if few enough readings took longer. That share is a rate, so
//! [`Sequence`] bounds it, and the bounds on the quantile hold for any number of evaluations. Times
//! are counted in buckets; each bound is an edge of a bucket.

use super::bound::Sequence;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Upper edge of the first bucket, in milliseconds.
const FIRST_MS: f64 = 0.1;
/// Ratio of one edge to the previous one.
const GROWTH: f64 = 1.05;
/// Index of the last bucket, which has no upper edge. It starts at about 3.6 minutes.
const LAST: u16 = 300;

/// The quantiles that are reported and that a policy can restrict.
pub const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

/// A histogram of reading times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Times(BTreeMap<u16, u64>);

/// Histograms of both sides, with equal numbers of readings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timed {
    /// The legacy service.
    pub reference: Times,
    /// The gateway's translation of the other version.
    pub candidate: Times,
}

/// Bounds on a time, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeBounds {
    /// Lower bound; 0 while unproved.
    pub lower_ms: f64,
    /// Upper bound; `None` while unproved.
    pub upper_ms: Option<f64>,
}

/// One quantile of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimedQuantile {
    /// Name, such as `p99`.
    pub name: &'static str,
    /// The legacy service.
    pub reference: TimeBounds,
    /// The gateway's translation of the other version.
    pub candidate: TimeBounds,
}

/// Maximum ratio of the candidate's latency to the reference's, for each of [`QUANTILES`]. `None`:
/// unrestricted.
pub type LatencyMax = [Option<f64>; QUANTILES.len()];

/// The evaluation of measured times against the demanded latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyProof {
    /// No demand is violated.
    #[default]
    Within,
    /// Too few timed readings for a verdict.
    NotEnough,
    /// At least one demand is violated.
    Above,
}

impl Times {
    /// Adds a time.
    pub fn add(&mut self, time: Duration) {
        let steps = (time.as_secs_f64() * 1000.0 / FIRST_MS).ln() / GROWTH.ln();
        // Times beyond the last edge share the last bucket, so that no time is lost.
        let bucket = steps.ceil().clamp(0.0, f64::from(LAST)) as u16;
        *self.0.entry(bucket).or_default() += 1;
    }

    /// Returns the number of times.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the bounds on a quantile, each with the error probability of `sequence`, which must
    /// be created for the rate `1 - quantile`.
    fn bounds(&self, quantile: f64, sequence: &Sequence) -> TimeBounds {
        let (all, share) = (self.count(), 1.0 - quantile);
        let mut longer = all;
        let mut bounds = TimeBounds { lower_ms: 0.0, upper_ms: None };
        for (bucket, times) in &self.0 {
            // `longer` is the number of times above the lower edge of this bucket, and after the
            // subtraction above its upper edge.
            // The first bucket starts at zero, so it yields no lower bound.
            if *bucket > 0 && sequence.proves_above(share, longer, all) {
                bounds.lower_ms = edge_ms(*bucket - 1);
            }
            longer -= times;
            if bounds.upper_ms.is_none() && *bucket < LAST && sequence.proves_below(share, longer, all) {
                bounds.upper_ms = Some(edge_ms(*bucket));
            }
        }
        bounds
    }
}

fn edge_ms(bucket: u16) -> f64 {
    FIRST_MS * GROWTH.powi(i32::from(bucket))
}

impl Timed {
    /// Adds one reading of each side.
    pub fn add(&mut self, reference: Duration, candidate: Duration) {
        self.reference.add(reference);
        self.candidate.add(candidate);
    }

    /// Returns the number of pairs.
    pub fn pairs(&self) -> u64 {
        self.reference.count()
    }

    /// Returns the bounds on all quantiles. Each side's bounds get half of the error probability.
    pub fn quantiles(&self, confidence: f64) -> Vec<TimedQuantile> {
        // A verdict relies on both sides' bounds, so their error probabilities add up.
        let half = 1.0 - (1.0 - confidence) / 2.0;
        let of = |(name, quantile): &(&'static str, f64)| {
            let sequence = Sequence::new(half, 1.0 - quantile);
            TimedQuantile {
                name,
                reference: self.reference.bounds(*quantile, &sequence),
                candidate: self.candidate.bounds(*quantile, &sequence),
            }
        };
        QUANTILES.iter().map(of).collect()
    }

    /// Evaluates the times against the demanded ratios.
    pub fn proof(&self, demanded: &LatencyMax, confidence: f64) -> LatencyProof {
        if demanded.iter().all(Option::is_none) {
            return LatencyProof::Within;
        }
        let mut proof = LatencyProof::Within;
        for (quantile, max) in self.quantiles(confidence).iter().zip(demanded) {
            let Some(max) = max else { continue };
            // Compares the worst case of one side with the best of the other: only a ratio that no
            // error of the bounds explains is a verdict.
            let is_above =
                quantile.reference.upper_ms.is_some_and(|upper| quantile.candidate.lower_ms > max * upper);
            let is_within =
                quantile.candidate.upper_ms.is_some_and(|upper| upper <= max * quantile.reference.lower_ms);
            match (is_above, is_within) {
                // One violated demand decides; the other quantiles cannot change that.
                (true, _) => return LatencyProof::Above,
                (false, false) => proof = LatencyProof::NotEnough,
                (false, true) => {}
            }
        }
        proof
    }
}

impl std::fmt::Display for TimeBounds {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.upper_ms {
            Some(upper) => write!(out, "{:.1} to {upper:.1} ms", self.lower_ms),
            // Without a lower bound, too, the time is unknown.
            None if self.lower_ms == 0.0 => write!(out, "unknown"),
            None => write!(out, "at least {:.1} ms", self.lower_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_bound_nothing_are_rendered_as_unknown() {
        for (lower_ms, upper_ms, text) in
            [(0.0, None, "unknown"), (5.2, None, "at least 5.2 ms"), (0.0, Some(4.1), "0.0 to 4.1 ms")]
        {
            assert_eq!(TimeBounds { lower_ms, upper_ms }.to_string(), text);
        }
        let mut few = Timed::default();
        few.add(Duration::from_millis(1), Duration::from_millis(100));
        assert_eq!(few.quantiles(0.95)[0].reference.to_string(), "unknown");
    }

    /// A long-tailed time around one millisecond.
    fn time(random: &mut fastrand::Rng) -> f64 {
        let normal: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        (normal * 0.5).exp()
    }

    fn timed(seed: u64, pairs: u32, slower: f64) -> Timed {
        let (mut random, mut timed) = (fastrand::Rng::with_seed(seed), Timed::default());
        for _ in 0..pairs {
            let (reference, candidate) = (time(&mut random), time(&mut random) * slower);
            timed.add(
                Duration::from_secs_f64(reference / 1000.0),
                Duration::from_secs_f64(candidate / 1000.0),
            );
        }
        timed
    }

    #[test]
    fn a_candidate_twice_as_slow_is_seen_and_an_equal_one_is_not() {
        for seed in 0..20 {
            let proof = |pairs, slower, demanded| timed(seed, pairs, slower).proof(&demanded, 0.95);
            for demanded in [[Some(1.5), None, None], [None, Some(1.5), None]] {
                assert_eq!(proof(3000, 1.0, demanded), LatencyProof::Within, "seed {seed}");
                assert_eq!(proof(3000, 3.0, demanded), LatencyProof::Above, "seed {seed}");
                assert_eq!(proof(10, 1.0, demanded), LatencyProof::NotEnough, "seed {seed}");
            }
            assert_ne!(proof(3000, 2.0, [Some(1.5), Some(1.5), Some(1.5)]), LatencyProof::Within);
            assert_eq!(proof(0, 1.0, [None; 3]), LatencyProof::Within, "nothing is demanded");
        }
    }

    #[test]
    fn the_bounds_of_a_quantile_hold_the_true_one_as_often_as_they_say() {
        // The median of the times is 1 ms.
        let wrong = (0..300).filter(|seed| {
            let bounds = &timed(*seed, 400, 1.0).quantiles(0.95)[0].reference;
            bounds.lower_ms > 1.0 || bounds.upper_ms.is_some_and(|upper| upper < 1.0)
        });
        let wrong = wrong.count();
        assert!(wrong <= 15 + 15, "{wrong} of 300 are wrong");
        let bounds = timed(1, 4000, 1.0).quantiles(0.95)[0].reference;
        assert!(bounds.lower_ms > 0.8 && bounds.upper_ms.is_some_and(|upper| upper < 1.25), "{bounds}");
    }

    /// If all times fall into one bucket, its edges are the bounds.
    #[test]
    fn times_that_are_alike_have_bounds_on_both_sides() {
        let mut timed = Timed::default();
        for _ in 0..100 {
            timed.add(Duration::from_millis(5), Duration::from_millis(100));
        }
        let median = &timed.quantiles(0.95)[0];
        assert!(
            median.candidate.lower_ms > 95.0 && median.reference.upper_ms.is_some_and(|upper| upper < 5.3)
        );
        assert_eq!(timed.proof(&[Some(1.5), None, None], 0.95), LatencyProof::Above);
    }

    #[test]
    fn no_time_is_lost_beyond_the_buckets() {
        let mut times = Times::default();
        for time in [Duration::ZERO, Duration::from_micros(1), Duration::from_secs(100_000)] {
            times.add(time);
        }
        assert_eq!(times.count(), 3);
        let kept = serde_json::to_string(&times).expect("numbers can be written");
        assert_eq!(serde_json::from_str::<Times>(&kept).expect("and read"), times);
    }
}
