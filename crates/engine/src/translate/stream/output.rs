//! Writes text of the plan, and parts of the chunk.

use super::machine::Run;
use super::program::Prefix;
use super::span::flush;
use switchback_json::scan::Scan;

impl<S: Scan> Run<'_, S> {
    /// Writes the name of a member, with the comma before it.
    #[inline(always)]
    pub(super) fn begin_member(&mut self, prefix: &Prefix) {
        self.flush();
        let first = !std::mem::replace(&mut self.top_mut().wrote, true);
        let before = self.out.len();
        prefix.write(first, self.out);
        if let Some(recording) = &mut self.recording {
            recording.write(&self.out[before..]);
        }
    }

    /// Writes the comma before the element at `at`, unless it is the first one. Copies the comma of
    /// the chunk if there is one, so that the span continues.
    #[inline(always)]
    pub(super) fn begin_element(&mut self, at: usize) {
        if std::mem::replace(&mut self.top_mut().wrote, true) {
            if at > 0 && self.chunk.get(at - 1) == Some(&b',') {
                self.keep(at - 1, at);
            } else {
                self.write(b",");
            }
        }
    }

    /// Writes a part of the chunk. Extends the pending span if the part is adjacent to it.
    #[inline(always)]
    pub(super) fn keep(&mut self, start: usize, end: usize) {
        if let Some(recording) = &mut self.recording {
            recording.keep(start, end);
        }
        if self.span.end != start {
            self.flush();
            self.span.start = start;
        }
        self.span.end = end;
    }

    #[inline(always)]
    pub(super) fn flush(&mut self) {
        flush(self.chunk, &mut self.span, self.out);
    }

    #[inline(always)]
    pub(super) fn write(&mut self, text: &[u8]) {
        self.flush();
        self.out.extend_from_slice(text);
        if let Some(recording) = &mut self.recording {
            recording.write(text);
        }
    }
}
