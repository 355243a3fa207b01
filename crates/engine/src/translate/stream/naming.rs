//! Reads member names: checks their grammar, finds their member in the plan, and rejects duplicates.

use super::fault::{self, Fault};
use super::machine::{Run, State};
use super::names::{NONE, NameId};
use std::sync::Arc;
use switchback_json::scan::{Scan, Task};
use switchback_json::text;
use switchback_json::{ErrorKind, Limit};

impl<S: Scan> Run<'_, S> {
    /// Reads a name up to its closing quote or the end of the chunk.
    pub(super) fn key(&mut self, from: usize, escaped: bool) -> Result<usize, Fault> {
        let machine = &mut *self.machine;
        let found = self.scan.enter(NameEnd { chunk: self.chunk, from, escaped });
        let (end, piece) = match found {
            Ok(end) => (end, &self.chunk[from..end - 1]),
            Err(_) => (self.chunk.len(), &self.chunk[from..]),
        };
        // Checked before the piece is copied, so that a name without an end does not use up memory.
        if machine.key.len() + piece.len() > machine.bounds.json.key_bytes {
            return Err(fault::json(machine.before + end as u64, ErrorKind::Limit(Limit::KeyBytes)));
        }
        if let Err(escaped) = found {
            machine.key.extend_from_slice(piece);
            machine.state = State::InKey(escaped);
        } else if machine.key.is_empty() {
            self.name(piece, end)?;
        } else {
            machine.key.extend_from_slice(piece);
            let key = std::mem::take(&mut machine.key);
            self.name(&key, end)?;
            // Put back for its capacity: the next cut name needs no allocation.
            self.machine.key = key;
            self.machine.key.clear();
        }
        Ok(end)
    }

    /// Finds the member of a complete name, and checks that the name is new in the object.
    fn name(&mut self, raw: &[u8], end: usize) -> Result<(), Fault> {
        let start = self.place(end).saturating_sub(raw.len() as u64 + 1);
        let raw = text::check_string(raw).map_err(|(at, kind)| fault::json(start + at as u64, kind))?;
        // Names are compared decoded: `"\u0061"` is the same member as `"a"` (RFC 8259, section
        // 8.3).
        let decoded = text::decode(raw);
        let top = *self.top();
        let object = &self.program.objects[top.id as usize];
        let known = object.plan.member(&decoded).map(|(at, _)| at as NameId);
        // A name that needs an escape has several spellings, so an edge could not recognize it by
        // its bytes.
        let plain = text::string_break(decoded.as_bytes()) == decoded.len();
        let id = known.or_else(|| if plain { self.number_for(decoded.as_bytes()) } else { None });
        let fresh = match id {
            Some(id) => {
                if let Some(recording) = &mut self.recording {
                    recording.see(id, end - raw.len() - 1);
                }
                self.see(id)
            }
            None => {
                // The ledger is not part of edges, so an edge over this name would miss a
                // duplicate.
                self.recording = None;
                self.ledger(raw, start)?
            }
        };
        if !fresh {
            return Err(fault::json(start, ErrorKind::DuplicateMember));
        }
        let top = self.top_mut();
        top.member = known.unwrap_or(NONE);
        if let Some(id) = id {
            top.last = id;
        }
        if known.is_none() && object.others.are_written() {
            let first = !std::mem::replace(&mut top.wrote, true);
            self.write(if first { b"\"" } else { b",\"" });
            self.write(raw.as_bytes());
            self.write(b"\":");
        }
        self.machine.state = State::Colon;
        Ok(())
    }

    /// Returns the number of a name that the plan does not know. Assigns one if there is room.
    fn number_for(&mut self, name: &[u8]) -> Option<NameId> {
        let object = self.top().id as usize;
        let names = &self.machine.layout.learned.names[object];
        let found = names.find(name);
        if found.is_some() || !self.machine.layout.may_change || !names.has_room_for(name) {
            return found;
        }
        self.machine.layout.is_changed = true;
        Some(Arc::make_mut(&mut self.machine.layout.learned).names[object].add(name))
    }

    /// Marks the name as seen in the innermost object. Returns whether it is new.
    pub(super) fn see(&mut self, id: NameId) -> bool {
        let machine = &mut *self.machine;
        let top = machine.stack.frames.last_mut().expect("a name lies within an object");
        let word = match usize::from(id / 64).checked_sub(1) {
            None => &mut top.seen,
            Some(word) => &mut machine.stack.bits[top.bits + word],
        };
        let bit = 1 << (id % 64);
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }

    /// Adds a name without a number to the ledger. Returns whether it is new.
    fn ledger(&mut self, raw: &str, offset: u64) -> Result<bool, Fault> {
        if !std::mem::replace(&mut self.top_mut().has_other_names, true) {
            self.machine.other_names.open();
        }
        let fresh = self.machine.other_names.insert(raw);
        if self.machine.other_names.len() > self.machine.bounds.json.members {
            return Err(fault::json(offset, ErrorKind::Limit(Limit::Members)));
        }
        if self.machine.other_names.bytes() > self.machine.bounds.names_bytes {
            return Err(fault::json(offset, ErrorKind::Limit(Limit::Nodes)));
        }
        Ok(fresh)
    }
}

/// Finds the end of a name that is read from `from` on. `escaped`: whether that byte is escaped.
struct NameEnd<'c> {
    chunk: &'c [u8],
    from: usize,
    escaped: bool,
}

impl Task for NameEnd<'_> {
    /// The position after the closing quote; if the chunk has none, whether the next byte is escaped.
    type Output = Result<usize, bool>;

    #[inline(always)]
    fn run<S: Scan>(self, scan: S) -> Result<usize, bool> {
        let len = self.chunk.len();
        let mut at = self.from + usize::from(self.escaped);
        while at <= len {
            at = scan.text_break(self.chunk, at);
            match self.chunk.get(at) {
                Some(b'"') => return Ok(at + 1),
                Some(b'\\') => at += 2,
                // A control character, which `name` reports.
                Some(_) => at += 1,
                None => return Err(false),
            }
        }
        // The backslash was the last byte.
        Err(true)
    }
}
