//! Compares two answers to one request and reports the differences that a client would notice:
//! place, kind and the responsible line of the mapping. The module is pure; scheduling and storage
//! of comparisons belong to the callers.
//!
//! The **reference** is the answer of the legacy service; the **candidate** is the answer that the
//! gateway translates from the other version. [`compare()`] looks at the status, the headers in
//! [`HEADERS`] and in the pack, and the body. Two classes of differences are not findings:
//!
//! - *expected*: the pack's report lists the value as lost (computed by the compiler);
//! - *noise*: the pack declares it as noise or as unordered, or [`Noise`] has learned it by reading
//!   one side twice.
//!
//! [`Excused`] counts both, so that a report shows how much was ignored.
//!
//! Decisions to know before editing:
//!
//! - Null and absent differ. `1.10` and `1.1` are the same number in two spellings, which is a kind
//!   of its own: [`FindingKind::Spelling`].
//! - Elements of an array are matched by the key that the pack names. Without a key, equal elements
//!   at both ends are matched by position and the rest by the longest common subsequence.
//! - [`Limits`] bound the memory for bodies of any size. Bytes beyond the cap are not compared,
//!   except through a digest that proves both bodies equal. Such a comparison reports
//!   [`Coverage::Sample`] and finds a subset of the differences that a full comparison finds.
//! - Values leave this module only through [`crate::redact::Redactor`].

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
pub use compare::{HEADERS, compare};
pub use counts::Counts;
pub use finding::{Cause, Comparison, Coverage, Excused, Finding, FindingKind, Verdict};
pub use noise::Noise;
pub use record::{Blamed, Record, Summary, TALLIES_MAX, Tally};
pub use report::{OperationReport, Proof, Report, Threshold, report, report_one};
pub use rules::{OperationRules, Rules};
pub use settle::{Party, Readings, Settled, Step, is_accepted, settle, settle_unfinished};
pub use skip::{NotReadBack, SkipReason};
pub use view::{Candidate, View};
pub use walk::Limits;

#[cfg(test)]
mod tests;
