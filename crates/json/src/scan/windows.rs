//! Windows of a fixed width into bytes, each for one question about the end. The numbers in
//! brackets refer to the list in the module above.

#![expect(unsafe_code, reason = "a window whose bounds were checked once")]

/// Bytes of which windows of `N` bytes are looked at.
#[derive(Debug, Clone, Copy)]
pub struct Windows<'b, const N: usize> {
    bytes: &'b [u8],
    /// How many places have `N` bytes from them on: all below this one.
    places: usize,
}

impl<'b, const N: usize> Windows<'b, N> {
    /// Windows into these bytes; none where they are fewer than `N`.
    #[inline]
    pub fn of(bytes: &'b [u8]) -> Windows<'b, N> {
        Windows { bytes, places: (bytes.len() + 1).saturating_sub(N) }
    }

    /// The `N` bytes from `at` on, unless there are fewer.
    #[inline(always)]
    pub fn at(self, at: usize) -> Option<&'b [u8; N]> {
        if at >= self.places {
            return None;
        }
        // SAFETY: `at` is below `len + 1 - N`, so that `at + N` is at most the length of the slice
        // (2); arrays of bytes need no alignment.
        Some(unsafe { &*self.bytes.as_ptr().add(at).cast::<[u8; N]>() })
    }
}
