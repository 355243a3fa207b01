//! Windows of a fixed width into bytes, with one bounds check each. The numbers in brackets refer
//! to the list in the parent module.

#![expect(unsafe_code, reason = "a window whose bounds were checked once")]

/// Bytes that are read in windows of `N` bytes.
#[derive(Debug, Clone, Copy)]
pub struct Windows<'b, const N: usize> {
    bytes: &'b [u8],
    /// Number of positions that have `N` bytes after them.
    places: usize,
}

impl<'b, const N: usize> Windows<'b, N> {
    /// Creates windows into these bytes. If there are fewer than `N`, [`Windows::at`] returns
    /// `None`.
    #[inline]
    pub fn of(bytes: &'b [u8]) -> Windows<'b, N> {
        Windows { bytes, places: (bytes.len() + 1).saturating_sub(N) }
    }

    /// Returns the `N` bytes from `at`, or `None` if there are fewer.
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
