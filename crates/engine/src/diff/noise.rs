//! Noise that nobody declared: what differs between two answers of one side to the same request. Learnt by asking a side
//! twice now and then; forgotten again when it no longer shows.

use super::finding::{Comparison, FindingKind};
use serde::{Deserialize, Serialize};

/// Most patterns that are remembered per operation.
const PATTERNS_MAX: usize = 256;

/// How many times a side is asked twice before what was learnt counts half.
const HALF_LIFE_ASKS: u32 = 64;

/// A pattern is noise when it differed in at least this many double askings (decayed) ...
const SEEN_MIN: f64 = 2.0;

/// ... and in at least this share of them.
const SHARE_MIN: f64 = 0.02;

/// What is known to differ by itself, for one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Double askings, decayed.
    asked: f64,
    patterns: Vec<Pattern>,
    /// Double askings since the last decay.
    since: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Pattern {
    pattern: String,
    kind: FindingKind,
    /// Double askings in which it differed, decayed.
    seen: f64,
}

impl Noise {
    /// Takes in a comparison of two answers of the same side to the same request. It must have been made without learnt
    /// noise, or what is known would never be seen again.
    pub fn learn(&mut self, twice: &Comparison) {
        self.asked += 1.0;
        for finding in twice.findings.iter().filter(|finding| can_be_noise(finding.kind)) {
            let known = |known: &&mut Pattern| known.pattern == finding.pattern && known.kind == finding.kind;
            let has_room = self.patterns.len() < PATTERNS_MAX;
            match self.patterns.iter_mut().find(known) {
                Some(known) => known.seen += 1.0,
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

    /// Whether a difference of this kind at this pattern says nothing.
    pub fn excuses(&self, pattern: &str, kind: FindingKind) -> bool {
        let known = self.patterns.iter().find(|known| known.kind == kind && known.pattern == pattern);
        known.is_some_and(|known| known.is_noise(self.asked))
    }

    /// The patterns that count as noise now, for reports.
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

/// A side that contradicts itself in these is broken, not noisy.
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
