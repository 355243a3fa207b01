//! Sentences for operators. Pages render them with emphasis and live times, the command line as
//! plain text.

use crate::figures::relative;
use switchback_gateway::clock::unix_ms;

/// A sentence, or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sentence(Vec<Piece>);

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Plain(String),
    Strong(String),
    Code(String),
    /// Method and path, such as `GET /things/{id}`.
    Operation(String),
    /// Unix time in milliseconds, rendered relative to now.
    Moment(i64),
}

impl Sentence {
    pub(crate) fn plain(text: impl Into<String>) -> Sentence {
        Sentence::default().and(text)
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.0
    }

    #[must_use]
    pub(crate) fn and(mut self, text: impl Into<String>) -> Sentence {
        self.0.push(Piece::Plain(text.into()));
        self
    }

    #[must_use]
    pub(crate) fn strong(mut self, text: impl Into<String>) -> Sentence {
        self.0.push(Piece::Strong(text.into()));
        self
    }

    #[must_use]
    pub(crate) fn code(mut self, text: impl Into<String>) -> Sentence {
        self.0.push(Piece::Code(text.into()));
        self
    }

    #[must_use]
    pub(crate) fn operation(mut self, name: &str) -> Sentence {
        self.0.push(Piece::Operation(name.to_owned()));
        self
    }

    #[must_use]
    pub(crate) fn moment(mut self, at_ms: i64) -> Sentence {
        self.0.push(Piece::Moment(at_ms));
        self
    }

    /// Appends a moment given as RFC 3339; other text is appended unchanged.
    #[must_use]
    pub(crate) fn moment_text(self, text: &str) -> Sentence {
        match unix_ms(text) {
            Some(at_ms) => self.moment(at_ms),
            None => self.and(text),
        }
    }

    #[must_use]
    pub(crate) fn append(mut self, more: Sentence) -> Sentence {
        self.0.extend(more.0);
        self
    }

    /// Returns the sentence without emphasis.
    pub(crate) fn text(&self, now_ms: i64) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Plain(text) | Piece::Strong(text) | Piece::Code(text) | Piece::Operation(text) => {
                text.clone()
            }
            Piece::Moment(at_ms) => relative(*at_ms, now_ms),
        };
        // The narrow spaces of pages separate words for programs that read this text.
        self.0.iter().map(piece).collect::<String>().replace('\u{202f}', "")
    }
}
