//! An answer as its client sees it.

use super::buffered::BufferedAnswer;
use http::HeaderMap;

/// An answer: what came over the wire once content codings are undone.
#[derive(Clone, Debug)]
pub struct View {
    /// As the client would see it.
    pub status: u16,
    /// As the client would see them.
    pub headers: HeaderMap,
    /// Decoded of content codings; of a long one the beginning.
    pub body: BufferedAnswer,
}

/// What the candidate came up with.
#[derive(Clone, Debug)]
pub enum Candidate {
    /// An answer that a client could have read.
    Answered(View),
    /// Nothing within the time it was given, in milliseconds.
    Late {
        /// Milliseconds that were waited.
        after_ms: u64,
    },
    /// No answer at all, or one that ended early; `what` says why, for people.
    Unanswered {
        /// Why, for people; nothing of a message.
        what: String,
    },
    /// The call failed inside the gateway: it could not be translated there or back.
    Untranslated {
        /// Why, for people; nothing of a message.
        what: String,
    },
}
