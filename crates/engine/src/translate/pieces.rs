//! Iterators over the members and elements of validated JSON text, and a writer for members.

use switchback_json::raw;

/// Returns the members of an object: the raw name without its quotes, and the value, both without
/// surrounding white space. Stops at a syntax error, which validated text does not contain.
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

/// Returns the elements of an array, without surrounding white space.
pub(super) fn elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = raw::skip_blank(array, 0) + 1;
    std::iter::from_fn(move || {
        let element = piece(array, at)?;
        at = raw::skip_blank(array, element.end) + 1;
        Some(&array[element])
    })
}

/// Returns the span of the value at or after `at`, or `None` at a closing bracket or the end.
fn piece(text: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    let start = raw::skip_blank(text, at.min(text.len()));
    raw::kind(text.get(start..)?)?;
    Some(start..raw::skip_value(text, start).ok()?)
}

/// A writer of the members of one object. A member without a value is undone.
pub(super) struct MemberWriter<'o> {
    pub out: &'o mut Vec<u8>,
    empty: bool,
}

impl<'o> MemberWriter<'o> {
    pub(super) fn open(out: &'o mut Vec<u8>) -> MemberWriter<'o> {
        out.push(b'{');
        MemberWriter { out, empty: true }
    }

    /// Writes a member whose name is quoted JSON text, unless `value` writes no value (returns
    /// `false`).
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
