//! Bytes that end where memory ends: behind them lies a page that nobody may read, so that a way of
//! scanning that looks one byte too far ends the test there and then.

#![expect(unsafe_code, reason = "maps a page that nobody may read")]

use std::ptr;

/// A page that can be read, and one behind it that cannot.
pub(crate) struct Guarded {
    start: *mut u8,
    page_bytes: usize,
}

impl Guarded {
    pub(crate) fn new() -> Guarded {
        // SAFETY: asks for a number.
        let page_bytes =
            usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).expect("a page has a size");
        let (both, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory, which nothing else refers to.
        let start = unsafe { libc::mmap(ptr::null_mut(), 2 * page_bytes, both, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED, "two pages of memory");
        let start = start.cast::<u8>();
        // SAFETY: the second of the two pages that have just been mapped.
        let denied = unsafe { libc::mprotect(start.add(page_bytes).cast(), page_bytes, libc::PROT_NONE) };
        assert_eq!(denied, 0, "a page can be closed");
        Guarded { start, page_bytes }
    }

    /// The same bytes, the last of them at the end of the page.
    pub(crate) fn at_the_end(&mut self, bytes: &[u8]) -> &[u8] {
        assert!(bytes.len() <= self.page_bytes);
        // SAFETY: so many bytes are left of the first page, which is mapped, can be written and is
        // borrowed for this.
        unsafe {
            let place = self.start.add(self.page_bytes - bytes.len());
            ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
            std::slice::from_raw_parts(place, bytes.len())
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: what `new` has mapped, to which no reference is left.
        unsafe { libc::munmap(self.start.cast(), 2 * self.page_bytes) };
    }
}
