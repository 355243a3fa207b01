//! Appending a few bytes out of a window that holds more. The numbers in brackets refer to the list in the module above.

#![expect(unsafe_code, reason = "writes into the spare room of a vector")]

/// Appends the first `len` bytes of `window`, or all of it where it has no more. Most of what is appended is short: copying a
/// fixed number of bytes costs less than asking how many there are.
#[inline(always)]
pub fn append_start<const N: usize>(out: &mut Vec<u8>, window: &[u8; N], len: usize) {
    if out.capacity() - out.len() < N {
        out.reserve(N);
    }
    // SAFETY: behind the last byte of the vector there is room for `N` bytes, made sure of in the lines above,
    // and the window has as many (2); what is borrowed is no part of a vector that is borrowed to be changed.
    // The length grows by no more than what has been written.
    unsafe {
        let end = out.as_mut_ptr().add(out.len());
        window.as_ptr().copy_to_nonoverlapping(end, N);
        out.set_len(out.len() + len.min(N));
    }
}

/// [`append_start`] of two windows, one after the other, with one question about the room.
#[inline(always)]
pub fn append_starts<const N: usize, const M: usize>(
    out: &mut Vec<u8>,
    (first, first_len): (&[u8; N], usize),
    (second, second_len): (&[u8; M], usize),
) {
    if out.capacity() - out.len() < N + M {
        out.reserve(N + M);
    }
    let first_len = first_len.min(N);
    // SAFETY: as in `append_start`, with room for `N + M` bytes; the second window starts no later than `N` bytes behind the end.
    unsafe {
        let end = out.as_mut_ptr().add(out.len());
        first.as_ptr().copy_to_nonoverlapping(end, N);
        second.as_ptr().copy_to_nonoverlapping(end.add(first_len), M);
        out.set_len(out.len() + first_len + second_len.min(M));
    }
}
