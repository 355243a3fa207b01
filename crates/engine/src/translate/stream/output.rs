//! What is written: text of the plan, and parts of the chunk, joined as long as they follow one another.

use super::machine::Run;
use super::program::Prefix;
use std::ops::Range;
use switchback_json::scan::{Scan, Windows, append_start};

/// Bytes of a span that are copied without asking how many there are.
pub(super) const COPIED_AT_ONCE: usize = 64;

/// Nothing of the chunk is to be written next; a part that begins anywhere does not follow it, nor would
/// it after one more byte.
pub(super) const NO_SPAN: Range<usize> = usize::MAX - 1..usize::MAX - 1;

impl<S: Scan> Run<'_, S> {
    /// Writes the name of the member whose value is written next.
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

    /// Writes the comma before an element whose text begins at `at`, if one is due.
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

    /// Writes a part of the chunk, together with what stands before it where that is written as well.
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

/// Appends the part of `chunk` that is to be written next, if any; then there is none.
#[inline(always)]
pub(super) fn flush(chunk: &[u8], span: &mut Range<usize>, out: &mut Vec<u8>) {
    append(chunk, span.start, span.end, out);
    *span = NO_SPAN;
}

/// Appends the part of `chunk` from `start` to `end`.
#[inline(always)]
pub(super) fn append(chunk: &[u8], start: usize, end: usize, out: &mut Vec<u8>) {
    let len = end - start;
    match Windows::<COPIED_AT_ONCE>::of(chunk).at(start) {
        // Most spans are short: copying a fixed number of bytes and taking back what is too much costs
        // less than a call.
        Some(window) if len <= COPIED_AT_ONCE => {
            append_start(out, window, len);
        }
        _ if len == 0 => {}
        _ => out.extend_from_slice(&chunk[start..start + len]),
    }
}
