//! Skips values that no op reads: copies them, drops them, or buffers them for a conversion.

use super::fault::{self, Fault};
use super::frame::{FrameKind, OpId, Sink};
use super::machine::{Run, State};
use super::program::{Action, Op};
use std::sync::Arc;
use switchback_json::Limits;
use switchback_json::scan::Scan;

impl<S: Scan> Run<'_, S> {
    /// Skips the value at `at`.
    #[inline(always)]
    pub(super) fn pass(&mut self, sink: Sink, at: usize) -> Result<usize, Fault> {
        let machine = &mut *self.machine;
        // The depth counts from the root of the body, not from the skipped value.
        machine.grammar.restart(machine.bounds.json.depth - machine.depth, machine.before + at as u64);
        self.pass_from(sink, at)
    }

    /// Skips the rest of a value, from `at`.
    #[inline(always)]
    pub(super) fn pass_from(&mut self, sink: Sink, at: usize) -> Result<usize, Fault> {
        let end = self.machine.grammar.feed_to_end(self.scan, &self.chunk[at..]);
        match end.map_err(|error| fault::json(error.offset, error.kind))? {
            Some(len) => self.finish_value(sink, at, at + len),
            None => self.suspend_value(sink, at),
        }
    }

    /// Finishes a skipped value and returns its end.
    #[inline(always)]
    pub(super) fn finish_value(&mut self, sink: Sink, start: usize, end: usize) -> Result<usize, Fault> {
        self.value_ends(sink, start, end)?;
        Ok(end)
    }

    /// Suspends a skipped value that continues in the next chunk.
    #[inline(always)]
    pub(super) fn suspend_value(&mut self, sink: Sink, start: usize) -> Result<usize, Fault> {
        self.deliver(sink, start, self.chunk.len())?;
        self.machine.state = State::Passing(sink);
        Ok(self.chunk.len())
    }

    #[inline(always)]
    pub(super) fn deliver(&mut self, sink: Sink, start: usize, end: usize) -> Result<(), Fault> {
        match sink {
            Sink::Copy => self.keep(start, end),
            Sink::Drop => {}
            Sink::Hold(op) => {
                self.bound_held(op, self.machine.held.len() + end - start, end)?;
                // Only a cut value is copied. A conversion of a complete one reads it in the chunk.
                self.machine.held.extend_from_slice(&self.chunk[start..end]);
            }
        }
        Ok(())
    }

    /// Delivers the last part of a skipped value, and converts it if it was buffered.
    #[inline(always)]
    pub(super) fn value_ends(&mut self, sink: Sink, start: usize, end: usize) -> Result<(), Fault> {
        match sink {
            Sink::Hold(op) if self.machine.held.is_empty() => {
                self.bound_held(op, end - start, end)?;
                let chunk = self.chunk;
                self.convert(op, &chunk[start..end], end)?;
            }
            Sink::Hold(op) => {
                self.deliver(sink, start, end)?;
                // Moved out, because `convert` needs the machine mutably, and put back for its
                // capacity.
                let held = std::mem::take(&mut self.machine.held);
                self.convert(op, &held, end)?;
                self.machine.held = held;
                self.machine.held.clear();
            }
            _ => self.deliver(sink, start, end)?,
        }
        self.machine.state = State::ValueEnd(sink);
        Ok(())
    }

    fn bound_held(&self, op: OpId, len: usize, end: usize) -> Result<(), Fault> {
        let bounds = &self.machine.bounds;
        let bound = match &self.program.ops[op as usize] {
            Op::Held(held) if held.is_object() => bounds.choice_bytes,
            _ => bounds.capture_bytes,
        };
        if len <= bound { Ok(()) } else { Err(fault::too_long(self.place(end))) }
    }

    /// Converts a complete value. Writes the name or comma before it first, and removes it if the
    /// conversion yields no value.
    fn convert(&mut self, op: OpId, text: &[u8], end: usize) -> Result<(), Fault> {
        let Op::Held(held) = &self.program.ops[op as usize] else {
            return Ok(());
        };
        self.flush();
        let before = self.out.len();
        let top = self.machine.stack.frames.last().copied();
        match top.map(|top| top.kind) {
            Some(FrameKind::Object) => {
                let object = &self.program.objects[self.top().id as usize];
                if let Some(Action::Run(prefix, _)) =
                    object.members.get(usize::from(self.top().member)).map(|member| &member.action)
                {
                    self.begin_member(prefix);
                }
            }
            Some(FrameKind::Array) => self.begin_element(0),
            _ => {}
        }
        // From the end, because the start of a cut value is in an earlier chunk.
        let offset = self.place(end) - text.len() as u64;
        let json = self.machine.bounds.json;
        // The value lies within open containers, which use up a part of the depth.
        let limits = Limits { depth: json.depth - self.machine.depth, ..json };
        let values = Arc::clone(&self.machine.values);
        if !held.run(text, (offset, &values, &limits), self.out)? {
            self.out.truncate(before);
            match top {
                Some(top) => {
                    // Restores the frame: `begin_member` has marked the object as having a member.
                    *self.top_mut() = top;
                    if top.kind == FrameKind::Object {
                        self.machine.withdraw(self.program);
                    }
                }
                None => self.machine.wrote = false,
            }
        }
        Ok(())
    }
}
