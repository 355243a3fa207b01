//! The text of one captured value, across chunks.

use super::span::append;

/// The text of a value that is needed when its object closes: a part of the chunk, or a copy after the chunk.
#[derive(Debug, Default)]
pub(super) struct Slot {
    state: SlotState,
    held: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum SlotState {
    #[default]
    Empty,
    /// Incomplete: starts or continues at this place of the chunk; `held` has earlier parts.
    Open(usize),
    /// Complete, in the chunk.
    InChunk(usize, usize),
    /// Complete, in `held`.
    Held,
}

impl Slot {
    pub(super) fn open(&mut self, at: usize) {
        self.state = SlotState::Open(at);
    }

    pub(super) fn end(&mut self, at: usize, chunk: &[u8]) {
        if let SlotState::Open(start) = self.state {
            // The usual value lies in one chunk and is never copied.
            self.state = if self.held.is_empty() {
                SlotState::InChunk(start, at)
            } else {
                self.held.extend_from_slice(&chunk[start..at]);
                SlotState::Held
            };
        }
    }

    /// Copies the text out of the chunk. Fails if the copy exceeds `bound` bytes.
    pub(super) fn suspend(&mut self, chunk: &[u8], bound: usize) -> Result<(), ()> {
        match self.state {
            SlotState::Open(start) => {
                self.held.extend_from_slice(&chunk[start..]);
                // The value continues at the start of the next chunk.
                self.state = SlotState::Open(0);
            }
            SlotState::InChunk(start, end) => {
                self.held.extend_from_slice(&chunk[start..end]);
                self.state = SlotState::Held;
            }
            SlotState::Empty | SlotState::Held => {}
        }
        if self.held.len() <= bound { Ok(()) } else { Err(()) }
    }

    pub(super) fn len(&self) -> usize {
        match self.state {
            SlotState::InChunk(start, end) => end - start,
            _ => self.held.len(),
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        size_of::<Slot>() + self.held.capacity()
    }

    pub(super) fn clear(&mut self) {
        self.state = SlotState::Empty;
        // Keeps the capacity: slots are reused for each object of a list.
        self.held.clear();
    }

    pub(super) fn is_full(&self) -> bool {
        matches!(self.state, SlotState::InChunk(..) | SlotState::Held)
    }

    /// Appends the text if it is complete, and returns whether it is.
    #[inline(always)]
    pub(super) fn write(&self, chunk: &[u8], out: &mut Vec<u8>) -> bool {
        match self.state {
            SlotState::InChunk(start, end) => append(chunk, start, end, out),
            SlotState::Held => out.extend_from_slice(&self.held),
            SlotState::Empty | SlotState::Open(_) => return false,
        }
        true
    }

    pub(super) fn text<'t>(&'t self, chunk: &'t [u8]) -> Option<&'t [u8]> {
        match self.state {
            SlotState::InChunk(start, end) => Some(&chunk[start..end]),
            SlotState::Held => Some(&self.held),
            SlotState::Empty | SlotState::Open(_) => None,
        }
    }
}
