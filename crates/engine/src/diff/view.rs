//! An answer as its client receives it.

use super::buffered::BufferedAnswer;
use http::HeaderMap;

/// An answer after its content codings are decoded.
#[derive(Clone, Debug)]
pub struct View {
    /// The status that the client receives.
    pub status: u16,
    /// The headers that the client receives.
    pub headers: HeaderMap,
    /// The decoded body; of a long body, the start and a digest.
    pub body: BufferedAnswer,
}

/// The result of the candidate.
#[derive(Clone, Debug)]
pub enum Candidate {
    /// An answer that a client could have read.
    Answered(View),
    /// No answer within the time limit.
    Late {
        /// The time limit in milliseconds.
        after_ms: u64,
    },
    /// No answer, or one that was cut off.
    Unanswered {
        /// A human-readable reason without parts of a message.
        what: String,
    },
    /// The gateway could not translate the request or the answer.
    Untranslated {
        /// A human-readable reason without parts of a message.
        what: String,
    },
}
