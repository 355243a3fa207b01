//! Parts of the chunk that are copied to the output. Adjacent parts are joined into one span, so
//! that a run of unchanged members costs one copy.

use std::ops::Range;
use switchback_json::scan::{Windows, append_start};

/// Spans up to this length are copied with a fixed length.
pub(super) const COPIED_AT_ONCE: usize = 64;

/// The empty span. No part of a chunk is adjacent to it, even one byte later.
pub(super) const NO_SPAN: Range<usize> = usize::MAX - 1..usize::MAX - 1;

/// Appends the pending span and resets it.
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
        // Most spans are short. A copy of fixed length, truncated afterwards, is cheaper than a
        // call to `memcpy`.
        Some(window) if len <= COPIED_AT_ONCE => {
            append_start(out, window, len);
        }
        _ if len == 0 => {}
        _ => out.extend_from_slice(&chunk[start..start + len]),
    }
}
