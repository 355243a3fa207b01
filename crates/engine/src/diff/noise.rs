//! Noise that no pack declares: differences between two answers of one side to the same request.
//! The gateway learns it by occasionally reading a side twice, and forgets it when it no longer
//! occurs.

use super::finding::{Comparison, FindingKind};
use serde::{Deserialize, Serialize};

/// Maximum number of patterns per operation.
const PATTERNS_MAX: usize = 256;

/// Number of double readings after which the weight of older observations is halved.
const HALF_LIFE_ASKS: u32 = 64;

/// A pattern is noise if it differed in at least this many double readings (decayed) ...
const SEEN_MIN: f64 = 2.0;

/// ... and in at least this share of them.
const SHARE_MIN: f64 = 0.02;

/// The learned noise of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Number of double readings, decayed.
    asked: f64,
    patterns: Vec<Pattern>,
    /// Number of double readings since the last decay.
    since: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Pattern {
    pattern: String,
    kind: FindingKind,
    /// Number of double readings in which the pattern differed, decayed.
    seen: f64,
}

impl Noise {
    /// Learns from a comparison of two answers of the same side to the same request. The comparison
    /// must not apply learned noise; otherwise known patterns would no longer be observed and would
    /// decay.
    pub fn learn(&mut self, twice: &Comparison) {
        self.asked += 1.0;
        for finding in twice.findings.iter().filter(|finding| can_be_noise(finding.kind)) {
            let known = |known: &&mut Pattern| known.pattern == finding.pattern && known.kind == finding.kind;
            let has_room = self.patterns.len() < PATTERNS_MAX;
            match self.patterns.iter_mut().find(known) {
                Some(known) => known.seen += 1.0,
                // A full table learns no new patterns until old ones decay.
                None if has_room => {
                    let pattern = finding.pattern.clone();
                    self.patterns.push(Pattern { pattern, kind: finding.kind, seen: 1.0 });
                }
                None => {}
            }
        }
        self.since += 1;
        if self.since >= HALF_LIFE_ASKS {
            self.decay();
        }
    }

    /// Returns whether a difference of this kind at this pattern is noise.
    pub fn excuses(&self, pattern: &str, kind: FindingKind) -> bool {
        let known = self.patterns.iter().find(|known| known.kind == kind && known.pattern == pattern);
        known.is_some_and(|known| known.is_noise(self.asked))
    }

    /// Returns the patterns that currently count as noise.
    pub fn patterns(&self) -> impl Iterator<Item = (&str, FindingKind)> {
        let noisy = self.patterns.iter().filter(|known| known.is_noise(self.asked));
        noisy.map(|known| (known.pattern.as_str(), known.kind))
    }

    fn decay(&mut self) {
        self.since = 0;
        self.asked /= 2.0;
        for known in &mut self.patterns {
            known.seen /= 2.0;
        }
        self.patterns.retain(|known| known.seen >= 0.5);
    }
}

impl Pattern {
    fn is_noise(&self, asked: f64) -> bool {
        self.seen >= SEEN_MIN && self.seen >= SHARE_MIN * asked
    }
}

/// Returns whether a side may differ from itself in this way. In the other kinds, a side that
/// contradicts itself is broken, not noisy.
fn can_be_noise(kind: FindingKind) -> bool {
    match kind {
        FindingKind::Value
        | FindingKind::Order
        | FindingKind::Missing
        | FindingKind::Extra
        | FindingKind::Header => true,
        FindingKind::Type
        | FindingKind::Spelling
        | FindingKind::Language
        | FindingKind::Status
        | FindingKind::Late
        | FindingKind::Unanswered => false,
    }
}
