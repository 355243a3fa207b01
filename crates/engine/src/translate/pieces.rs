//! The members and elements of JSON text that has been validated, as slices of it; and writing members one by one.

use switchback_json::raw;

/// The members of an object: name as it stands between its quotes, and value, both without white space around them.
/// Stops at the first thing that is not JSON, which validated text does not have.
pub(super) fn members(object: &[u8]) -> impl Iterator<Item = (&str, &[u8])> {
    let mut at = raw::skip_blank(object, 0) + 1;
    std::iter::from_fn(move || {
        let name = piece(object, at)?;
        let value = piece(object, raw::skip_blank(object, name.end) + 1)?;
        at = raw::skip_blank(object, value.end) + 1;
        let name = std::str::from_utf8(object.get(name.start + 1..name.end - 1)?).ok()?;
        Some((name, &object[value]))
    })
}

/// The elements of an array, without white space around them.
pub(super) fn elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = raw::skip_blank(array, 0) + 1;
    std::iter::from_fn(move || {
        let element = piece(array, at)?;
        at = raw::skip_blank(array, element.end) + 1;
        Some(&array[element])
    })
}

/// The value that begins at or after `at`; none at a closing bracket or the end.
fn piece(text: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    let start = raw::skip_blank(text, at.min(text.len()));
    raw::kind(text.get(start..)?)?;
    Some(start..raw::skip_value(text, start).ok()?)
}

/// Writes the members of one object, with commas where they belong. A member whose value turns out to be nothing is
/// taken back.
pub(super) struct MemberWriter<'o> {
    pub out: &'o mut Vec<u8>,
    empty: bool,
}

impl<'o> MemberWriter<'o> {
    pub(super) fn open(out: &'o mut Vec<u8>) -> MemberWriter<'o> {
        out.push(b'{');
        MemberWriter { out, empty: true }
    }

    /// Writes a member, whose name is JSON text with its quotes, if `value` writes one (returns true).
    pub(super) fn member<E>(
        &mut self,
        name: &[u8],
        value: impl FnOnce(&mut Vec<u8>) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let start = self.out.len();
        if !self.empty {
            self.out.push(b',');
        }
        self.out.extend_from_slice(name);
        self.out.push(b':');
        let written = value(self.out)?;
        if written {
            self.empty = false;
        } else {
            self.out.truncate(start);
        }
        Ok(written)
    }

    pub(super) fn close(self) {
        self.out.push(b'}');
    }
}
