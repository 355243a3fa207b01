//! Appends a few bytes of a longer window. The numbers in parentheses refer to the list in the parent module.

#![expect(unsafe_code, reason = "writes into the spare room of a vector")]

/// Appends the first `len` bytes of `window`, at most all of it. A copy of fixed length costs less
/// than one of variable length, and most appended texts are short.
#[inline(always)]
pub fn append_start<const N: usize>(out: &mut Vec<u8>, window: &[u8; N], len: usize) {
    if out.capacity() - out.len() < N {
        out.reserve(N);
    }
    // SAFETY: the vector has spare capacity for `N` bytes, checked above, and the window has as many (2).
    // They do not overlap, because the vector is borrowed mutably.
    // The new length covers only bytes that were written.
    unsafe {
        let end = out.as_mut_ptr().add(out.len());
        window.as_ptr().copy_to_nonoverlapping(end, N);
        out.set_len(out.len() + len.min(N));
    }
}

/// Like [`append_start`] for two windows in sequence, with one check of the capacity.
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
    // SAFETY: as in `append_start`, with `N + M` bytes; the second window starts at most `N` bytes
    // after the end.
    unsafe {
        let end = out.as_mut_ptr().add(out.len());
        first.as_ptr().copy_to_nonoverlapping(end, N);
        second.as_ptr().copy_to_nonoverlapping(end.add(first_len), M);
        out.set_len(out.len() + first_len + second_len.min(M));
    }
}
