//! What is copied while members follow one another: where it begins is known, and that it goes as far as members have been
//! read. Written is it when something else has to be.

use super::output::{NO_SPAN, append, flush};
use super::program::{Object, Written};
use super::script::Kind;
use std::ops::Range;

/// Where members come from and go to.
pub(super) struct Output<'o> {
    pub chunk: &'o [u8],
    pub out: &'o mut Vec<u8>,
}

impl Output<'_> {
    /// Appends the part of the chunk from `start` to `end`.
    #[inline(always)]
    fn append(&mut self, start: usize, end: usize) {
        append(self.chunk, start, end, self.out);
    }
}

/// What is written of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    Nothing,
    /// Name and value.
    Whole,
    /// The value, under another name.
    Renamed,
}

/// The part of the chunk that is being copied.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copying {
    /// [`NOTHING`] while nothing is copied.
    from: usize,
    /// The kind of step at which nothing is to be done: none while nothing is copied.
    idle: Option<Kind>,
}

/// The place from which nothing is copied.
const NOTHING: usize = NO_SPAN.start;

/// A member that is read: places of its name, with the quote, and of its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub name: usize,
    pub value: usize,
    /// Whether a comma stands before the name.
    pub comma: bool,
}

impl Copying {
    /// Goes on with the span before the name at `at`, if nothing but the comma that is due stands between.
    #[inline(always)]
    pub(super) fn resume(
        chunk: &[u8],
        span: &mut Range<usize>,
        out: &mut Vec<u8>,
        at: usize,
        wrote: bool,
    ) -> Copying {
        if span.end + usize::from(wrote) == at {
            return Copying::from(span.start);
        }
        flush(chunk, span, out);
        Copying::OFF
    }

    const OFF: Copying = Copying { from: NOTHING, idle: None };

    #[inline(always)]
    fn from(start: usize) -> Copying {
        Copying { from: start, idle: Some(Kind::Copy) }
    }

    /// Whether a step of this kind needs nothing but to be read.
    #[inline(always)]
    pub(super) fn is_idle(self, kind: Kind) -> bool {
        self.idle == Some(kind)
    }

    #[inline(always)]
    fn is_on(self) -> bool {
        self.from != NOTHING
    }

    /// Copies from `at` on, unless that is done already.
    #[inline(always)]
    pub(super) fn start(&mut self, at: usize) {
        if !self.is_on() {
            *self = Copying::from(at);
        }
    }

    /// What is copied when everything before `end` has been read.
    #[inline(always)]
    pub(super) fn until(self, end: usize) -> Range<usize> {
        if self.is_on() { self.from..end } else { NO_SPAN }
    }

    /// The same before a name that is left to others: the comma belongs to its member.
    #[inline(always)]
    pub(super) fn before_name(self, at: usize, comma: bool) -> Range<usize> {
        self.until(at - usize::from(comma))
    }

    /// Writes what is copied before `end`; from there on nothing is.
    #[inline(always)]
    pub(super) fn stop(&mut self, output: &mut Output<'_>, end: usize) {
        if self.is_on() {
            output.append(self.from, end);
        }
        *self = Copying::OFF;
    }

    /// Writes the end of an object, whose bracket is at `at`, if that end is always the same.
    #[inline(always)]
    pub(super) fn close(&mut self, output: &mut Output<'_>, object: &Object, wrote: bool, at: usize) {
        let closing = object.closing.as_deref().unwrap_or_default();
        if closing.len() <= 1 {
            return self.start(at);
        }
        self.stop(output, at);
        output.out.extend_from_slice(&closing[usize::from(!wrote)..]);
    }

    /// Writes what has been copied, where the member at `at` ends that, and begins to copy the member or its value.
    #[inline(always)]
    pub(super) fn edit(
        &mut self,
        output: &mut Output<'_>,
        wrote: &mut bool,
        plain: Plain,
        at: At,
        name: &Written,
    ) {
        if plain == Plain::Nothing {
            if self.is_on() {
                output.append(self.from, at.name - usize::from(at.comma));
                *self = Copying::OFF;
            }
            return;
        }
        let is_renamed = plain == Plain::Renamed;
        if !self.is_on() {
            if *wrote {
                output.out.push(b',');
            }
            *self = Copying::from(at.name);
        } else if is_renamed {
            output.append(self.from, at.name);
        }
        if is_renamed {
            name.write(output.out);
            *self = Copying::from(at.value);
        }
        *wrote = true;
    }
}
