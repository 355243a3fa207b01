//! Writes the end of an object: constants, defaults and captured values. Also converts buffered values.

use super::fault::{self, Fault};
use super::frame::Frame;
use super::machine::Run;
use super::program::{Action, Alternative, Close, Ending, From, Held, Inner, Object};
use super::slot::Slot;
use super::{Bounds, Values, translate_whole};
use crate::translate::Cause;
use crate::translate::document::{Env, part};
use std::sync::Arc;
use switchback_json::raw::{self, Kind};
use switchback_json::scan::Scan;
use switchback_json::{ErrorKind, Limits};
use switchback_plan::convert::Yield;
use switchback_plan::{Key, ValueOp};

impl<S: Scan> Run<'_, S> {
    /// Writes the close items of the object whose bracket is at `at`.
    pub(super) fn close(&mut self, top: &Frame, object: &Object, at: usize) -> Result<(), Fault> {
        self.flush();
        let machine = &*self.machine;
        let bound = machine.bounds.capture_bytes;
        // `Slot::suspend` checks only values that were cut, and the result must not depend on cuts.
        if machine.stack.slots[top.slots..machine.stack.slots_used].iter().any(|slot| slot.len() > bound) {
            return Err(fault::too_long(self.place(at)));
        }
        if let Some(endings) = &object.endings {
            let slots = &machine.stack.slots[top.slots..];
            write_endings(endings, slots, top.wrote, self.chunk, self.out);
            return Ok(());
        }
        let closing = Closing {
            slots: &machine.stack.slots[top.slots..],
            object,
            top,
            bits: &machine.stack.bits[top.bits..],
            chunk: self.chunk,
            values: &machine.values,
            bounds: machine.bounds,
            offset: machine.before + at as u64,
        };
        closing.items(&object.close, top.wrote, self.out).map(drop)
    }
}

/// Writes simple close items. `begun`: whether the object has a member already.
fn write_endings(endings: &[Ending], slots: &[Slot], begun: bool, chunk: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    for ending in endings {
        match ending {
            Ending::Constant(text) => text.write(out),
            Ending::Captured { prefix, slot, absent } => {
                let slot = &slots[usize::from(*slot)];
                if slot.is_full() {
                    prefix.write(out);
                    slot.write(chunk, out);
                } else {
                    absent.write(out);
                }
            }
        }
    }
    // Each text starts with a comma.
    if !begun && out.len() > start {
        // Moves the few bytes after it. Deciding per item whether it is the first would cost each
        // object.
        out.remove(start);
    }
}

/// An object that closes.
struct Closing<'a> {
    slots: &'a [Slot],
    object: &'a Object,
    top: &'a Frame,
    /// See [`super::machine::Stack::bits`].
    bits: &'a [u64],
    chunk: &'a [u8],
    values: &'a Arc<Values>,
    bounds: Bounds,
    /// Offset of the closing bracket in the body.
    offset: u64,
}

/// The result of a close item. After [`Wrote::Nothing`], the caller truncates the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrote {
    Nothing,
    /// An empty object, or null for a required member.
    Empty,
    Something,
}

impl Closing<'_> {
    /// Appends `items`. `begun`: whether their object has a member already. Returns
    /// [`Wrote::Nothing`] if a needed item is missing.
    fn items(&self, items: &[Close], begun: bool, out: &mut Vec<u8>) -> Result<Wrote, Fault> {
        let (mut begun, mut all, mut is_complete) = (begun, Wrote::Empty, true);
        for item in items {
            let before = out.len();
            item.prefix.write(!begun, out);
            let wrote = self.item(item, out)?;
            begun |= wrote != Wrote::Nothing;
            match wrote {
                Wrote::Something => all = Wrote::Something,
                Wrote::Empty => {}
                Wrote::Nothing => {
                    is_complete &= !item.needed;
                    out.truncate(before);
                }
            }
        }
        Ok(if is_complete { all } else { Wrote::Nothing })
    }

    /// Appends a value.
    fn item(&self, item: &Close, out: &mut Vec<u8>) -> Result<Wrote, Fault> {
        if let From::Object(items) = &item.from {
            let start = out.len();
            out.push(b'{');
            let wrote = self.items(items, false, out)?;
            out.push(b'}');
            if wrote == Wrote::Nothing && item.needed && item.null {
                out.truncate(start);
                out.extend_from_slice(b"null");
                return Ok(Wrote::Empty);
            }
            let is_there = wrote == Wrote::Something || item.needed;
            return Ok(if is_there { wrote } else { Wrote::Nothing });
        }
        Ok(if self.value(&item.from, out)? { Wrote::Something } else { Wrote::Nothing })
    }

    /// Appends a value other than an object, and returns whether there is one.
    #[inline(always)]
    fn value(&self, from: &From, out: &mut Vec<u8>) -> Result<bool, Fault> {
        let value = match from {
            From::Constant(value) => Some(value),
            From::Default { unless_written, value } => (!self.is_written(*unless_written)).then_some(value),
            From::Captured { alternatives, absent } => {
                let start = out.len();
                for alternative in alternatives {
                    if self.alternative(alternative, out)? {
                        return Ok(true);
                    }
                    // A failed alternative may have written a part of its value.
                    out.truncate(start);
                }
                absent.as_ref()
            }
            From::Object(_) => None,
            From::Supplied(at) => {
                let supplied = self.values.supplied.get(usize::from(*at)).and_then(Option::as_ref);
                out.extend_from_slice(supplied.map_or(&[], |text| text));
                return Ok(supplied.is_some());
            }
            From::Setting(at) => Some(self.values.settings.get(*at).ok_or(Cause::Setting(*at))?),
        };
        out.extend_from_slice(value.map_or(&[], |text| text));
        Ok(value.is_some())
    }

    fn is_written(&self, member: u16) -> bool {
        let (seen, withdrawn) = match usize::from(member / 64).checked_sub(1) {
            None => (self.top.seen, self.top.withdrawn),
            Some(word) => (self.bits[word], self.bits[self.object.words.seen + word]),
        };
        let action = &self.object.members[usize::from(member)].action;
        matches!(action, Action::Copy(_) | Action::Rename(_) | Action::Run(..))
            && (seen & !withdrawn) >> (member % 64) & 1 == 1
    }

    #[inline(always)]
    fn alternative(&self, alternative: &Alternative, out: &mut Vec<u8>) -> Result<bool, Fault> {
        let slot = &self.slots[usize::from(alternative.slot)];
        if alternative.is_whole {
            return Ok(slot.write(self.chunk, out));
        }
        let Some(captured) = slot.text(self.chunk) else { return Ok(false) };
        let Some(text) = self.inside(captured, &alternative.path)? else { return Ok(false) };
        let wanted =
            alternative.only.is_none_or(|only| raw::kind(text).is_some_and(|kind| only.contains(kind)));
        match &alternative.op {
            _ if !wanted => Ok(false),
            Inner::Copy => {
                out.extend_from_slice(text);
                Ok(true)
            }
            Inner::Run(program) => translate_whole(program, self.values, self.bounds, text, out),
            Inner::Walk(op) => walk(op, text, self.values, &self.bounds.json, self.offset, out),
        }
    }

    /// Returns the value at a path of names in captured text, which is exactly one value.
    fn inside<'t>(&self, captured: &'t [u8], path: &[Key]) -> Result<Option<&'t [u8]>, Fault> {
        if path.is_empty() {
            return Ok(Some(captured));
        }
        let found = raw::lookup(captured, path.iter().map(|key| &*key.text));
        Ok(found.map_err(|error| self.moved(error))?.map(|place| &captured[place]))
    }

    /// Errors in captured text are reported at the end of the object, because the position of the
    /// capture is not stored.
    fn moved(&self, error: switchback_json::Error) -> Fault {
        fault::json(self.offset, error.kind)
    }
}

impl Held {
    /// Appends the conversion of `text`, which starts at `offset` of the body, and returns whether
    /// there is one. If not, the caller truncates the output.
    pub(super) fn run(
        &self,
        text: &[u8],
        (offset, values, limits): (u64, &Values, &Limits),
        out: &mut Vec<u8>,
    ) -> Result<bool, Fault> {
        let around = (offset, values, limits);
        match self {
            Held::Choose(choose) => {
                walk(&ValueOp::Choose(Arc::clone(choose)), text, values, limits, offset, out)
            }
            Held::Attempt(attempt) => {
                walk(&ValueOp::Attempt(Arc::clone(attempt)), text, values, limits, offset, out)
            }
            Held::Convert(conversion) => match conversion.apply(text, out) {
                Ok(done) => Ok(done == Yield::Written),
                Err(error) => Err(Cause::Convert(error).into()),
            },
            Held::Wrap(inner) => {
                out.push(b'[');
                let wrote = inner.run(text, around, out)?;
                out.push(b']');
                Ok(wrote)
            }
            Held::Unwrap(inner) => match raw::kind(text) {
                Some(Kind::Null) => {
                    out.extend_from_slice(text);
                    Ok(true)
                }
                Some(Kind::Array) => inner.run(only_element(text, offset)?, around, out),
                Some(found) => Err(Cause::Kind { expected: Kind::Array, found }.into()),
                None => Err(fault::json(offset, ErrorKind::UnexpectedEnd)),
            },
        }
    }
}

/// Runs an op over complete text, as the reference does. Errors are reported at `offset`.
fn walk(
    op: &ValueOp,
    text: &[u8],
    values: &Values,
    limits: &Limits,
    offset: u64,
    out: &mut Vec<u8>,
) -> Result<bool, Fault> {
    let env = Env { settings: &values.settings, supplied: &values.supplied };
    part(op, text, &env, limits, out).map_err(|error| match error.cause {
        Cause::Json(error) => fault::json(offset, error.kind),
        cause => cause.into(),
    })
}

/// Returns the element of an array that has exactly one. `text` starts with the bracket.
fn only_element(text: &[u8], offset: u64) -> Result<&[u8], Fault> {
    let moved = |error: switchback_json::Error| fault::json(offset + error.offset, error.kind);
    let start = raw::skip_blank(text, 1);
    if text.get(start) == Some(&b']') {
        return Err(Cause::NotOne.into());
    }
    let end = raw::skip_value(text, start).map_err(moved)?;
    match text.get(raw::skip_blank(text, end)) {
        Some(b']') => Ok(&text[start..end]),
        _ => Err(Cause::NotOne.into()),
    }
}
