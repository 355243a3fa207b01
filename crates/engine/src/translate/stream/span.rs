//! Parts of the chunk that are copied to the output. Adjacent parts are joined into one span, so that a run of unchanged members
//! costs one copy.

use std::ops::Range;
use switchback_json::scan::{Windows, append_start};

/// Bytes of a span that are copied without asking how many there are.
pub(super) const COPIED_AT_ONCE: usize = 64;

/// Nothing of the chunk is to be written next; a part that begins anywhere does not follow it, nor would
/// it after one more byte.
pub(super) const NO_SPAN: Range<usize> = usize::MAX - 1..usize::MAX - 1;

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
