//! An answer as its client sees it.

use super::buffered::BufferedAnswer;
use http::HeaderMap;

/// An answer: what came over the wire once content codings are undone.
#[derive(Clone, Debug)]
pub struct View {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: BufferedAnswer,
}

/// What the candidate came up with.
#[derive(Clone, Debug)]
pub enum Candidate {
    Answered(View),
    /// Nothing within the time it was given, in milliseconds.
    Late {
        after_ms: u64,
    },
    /// No answer at all, or one that ended early; `what` says why, for people.
    Unanswered {
        what: String,
    },
    /// The call failed inside the gateway: it could not be translated there or back.
    Untranslated {
        what: String,
    },
}
