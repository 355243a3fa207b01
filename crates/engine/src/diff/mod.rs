//! Two answers to one request → what a client would notice: where they differ, in which way, and which line of the mapping
//! is behind it. Values in, values out: who asked, when, and what is done about it is the business of others.
//!
//! The **reference** is the answer of the service that clients know; the **candidate** is what the gateway makes of the other
//! version. [`compare()`] looks at what a client can see: status, the headers that matter ([`HEADERS`] and what the pack
//! adds), body. What it finds has a place, a kind and a cause. Not everything that differs is a finding:
//!
//! - what the pack's report lists as lost is *expected*: the compiler worked it out, nobody types it twice;
//! - what the pack declares as noise or as unordered, and what [`Noise`] has learnt by asking one side twice, is *noise*.
//!
//! Both are counted ([`Excused`]), so that a report can say how much was looked away from.
//!
//! Decisions to know before editing:
//!
//! - Null and absent differ. `1.10` and `1.1` are one number written twice: a finding of its own kind, [`FindingKind::Spelling`].
//! - Elements of an array are matched by the key that the pack names; without one, by what stands at the same place from
//!   both ends, and between by the longest common run.
//! - Memory is bounded by [`Limits`], whatever the bodies: what is beyond the cap is not looked at, unless both bodies are
//!   the same to the byte. A comparison by sample says so ([`Coverage`]) and claims nothing of the rest; what it finds, the
//!   whole comparison finds too.
//! - Nothing of a value leaves this room but through [`crate::redact::Redactor`].

mod arrays;
mod buffered;
mod compare;
mod counts;
mod finding;
mod language;
mod noise;
mod percent;
mod place;
mod record;
mod report;
mod rules;
mod settle;
mod skip;
mod view;
mod walk;

pub use buffered::{BufferedAnswer, Buffering};
pub use compare::{HEADERS, Limits, compare};
pub use counts::Counts;
pub use finding::{Cause, Comparison, Coverage, Excused, Finding, FindingKind, Verdict};
pub use noise::Noise;
pub use record::{Blamed, Record, Summary, Tally};
pub use report::{OperationReport, Proof, Report, Threshold, report};
pub use rules::{OperationRules, Rules};
pub use settle::{Party, Readings, Settled, Step, is_accepted, settle, unfinished};
pub use skip::{NotReadBack, SkipReason};
pub use view::{Candidate, View};

#[cfg(test)]
mod tests;
