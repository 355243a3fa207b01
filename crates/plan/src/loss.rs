//! Differences between the sides that a report lists: losses, and notes of the mapping.

use super::Origin;
use std::sync::Arc;

/// A sentence for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The list of the report that it belongs to.
    pub kind: NoteKind,
    /// Name of the approximation, listed in the header of responses that use it.
    pub name: Option<Arc<str>>,
    /// The sentence from the mapping.
    pub text: String,
    /// The line of the mapping that declares it.
    pub origin: Origin,
}

impl Note {
    /// Returns the note for a value that is nested below `step`. Only a note of kind
    /// [`NoteKind::Despite`] starts with its place in backticks; others are unchanged.
    #[must_use]
    pub fn below(self, step: &str) -> Note {
        let NoteKind::Despite = self.kind else { return self };
        let Some(place) = self.text.strip_prefix('`') else { return self };
        let dot = if place.starts_with('[') { "" } else { "." };
        Note { text: format!("`{step}{dot}{place}"), ..self }
    }
}

/// The subject of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// A difference that clients may observe.
    Differs,
    /// An approximation.
    Approximate,
    /// A deviation from a type of the contract.
    Despite,
}

/// A field that does not survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Name of the side that has the field.
    pub side: String,
    /// Place in the body, such as `$[*].size`.
    pub place: String,
    /// JSON text that the place always has, because it has no source on the other side. `None`: its
    /// value is lost.
    pub instead: Option<String>,
    /// Whether the constant occurs only when no source was found.
    pub unless_found: bool,
    /// Whether only some values, or only the spelling of values, are lost.
    pub partly: bool,
    /// The values that the stricter contract does not allow. `None` if the mapping causes the loss.
    pub narrow: Option<Narrow>,
    /// The line of the mapping that omits it.
    pub origin: Origin,
}

/// Values that the receiving side's contract does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrow {
    /// Description, such as `values above 100`.
    pub values: String,
    /// The only message that the restriction affects; `None` if it affects both.
    pub only_in: Option<Message>,
    /// Whether the receiving side has the place, and the other side has no source for it.
    pub is_of_target: bool,
}

/// The direction of a message between the sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// From the served side to the called one.
    Request,
    /// From the called side back.
    Answer,
}
