//! Reference implementation of body translation: applies one tree of operations to a complete body.
//! The streaming implementations must produce the same bytes. `plan/body.rs` defines the semantics.

use super::context::same;
use super::error::{Cause, TranslateError};
use super::pieces::{MemberWriter, elements, members};
use super::settings::Settings;
use switchback_json::raw::{self, Kind};
use switchback_json::{self as json, Limits, Value, text};
use switchback_plan::convert::{Conversion, Yield};
use switchback_plan::{
    Absent, AttemptOp, Captured, ChooseBy, ChooseOp, Close, CloseFrom, MemberAction, ObjectOp, Others,
    ValueOp,
};

/// The data that a tree of operations reads in addition to the body.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    /// The operator's settings.
    pub settings: &'a Settings,
    /// JSON text by index of [`CloseFrom::Supplied`]. `None`: the route yields no value.
    pub supplied: &'a [Option<Vec<u8>>],
}

impl<'a> Env<'a> {
    /// Creates an environment for bodies without supplied values.
    pub fn new(settings: &'a Settings) -> Env<'a> {
        Env { settings, supplied: &[] }
    }
}

/// Appends the translation of `input` to `out`. On error, `out` is unchanged. The entire input is
/// first validated against RFC 8259 and `limits`. A body without output is written as null.
pub fn document(
    op: &ValueOp,
    input: &[u8],
    env: &Env<'_>,
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<(), TranslateError> {
    translate(op, input, Walk { env: *env, make_up: true }, limits, out)
}

/// Appends the translation of a part of a body, which must be a single value. Returns whether any
/// output was written.
pub(super) fn part(
    op: &ValueOp,
    input: &[u8],
    env: &Env<'_>,
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<bool, TranslateError> {
    json::validate(input, limits)?;
    Walk { env: *env, make_up: true }.value(op, input, out)
}

/// Like [`document`]. Without [`Walk::make_up`], it writes only values from the source or supplied
/// ones, so that an overlay may replace old values by the result.
pub(super) fn translate(
    op: &ValueOp,
    input: &[u8],
    walk: Walk<'_>,
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<(), TranslateError> {
    json::validate(input, limits)?;
    // Copy the text verbatim, including white space.
    if matches!(op, ValueOp::Keep) {
        out.extend_from_slice(input);
        return Ok(());
    }
    let start = out.len();
    let from = raw::skip_blank(input, 0);
    let to = raw::skip_value(input, from)?;
    match walk.value(op, &input[from..to], out) {
        Ok(true) => Ok(()),
        Ok(false) => {
            out.extend_from_slice(b"null");
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

/// Walks a tree of operations and a body in parallel. All methods return whether they wrote output.
#[derive(Clone, Copy)]
pub(super) struct Walk<'a> {
    pub env: Env<'a>,
    /// Whether constants, defaults and settings are written.
    pub make_up: bool,
}

impl Walk<'_> {
    fn value(&self, op: &ValueOp, json: &[u8], out: &mut Vec<u8>) -> Result<bool, TranslateError> {
        match op {
            ValueOp::Keep => Ok(keep(json, out)),
            ValueOp::Object(op) => self.object(op, json, out),
            ValueOp::Array(op) => self.array(op, json, out),
            ValueOp::Wrap(op) => self.wrap(op, json, out),
            ValueOp::Unwrap(op) => self.unwrap(op, json, out),
            ValueOp::Convert(conversion) => convert(conversion, json, out),
            ValueOp::Constant(value) => Ok(self.make_up && keep(value, out)),
            ValueOp::Choose(_) if is_null(json, Kind::Object)? => Ok(keep(json, out)),
            ValueOp::Choose(op) => self.value(arm(op, json).ok_or(Cause::NoAlternative)?, json, out),
            ValueOp::Attempt(attempt) => self.attempt(attempt, json, out),
            ValueOp::Again(again) => self.value(&again.op(), json, out),
        }
    }

    fn attempt(&self, attempt: &AttemptOp, json: &[u8], out: &mut Vec<u8>) -> Result<bool, TranslateError> {
        let start = out.len();
        let made = match raw::kind(json) {
            Some(Kind::Null) if !attempt.null => Err(Cause::NoAlternative.into()),
            _ => self.value(&attempt.op, json, out),
        };
        match made {
            // Discard the partial output of the rejected value.
            Err(error) if error.cause.is_of_the_value() => {
                out.truncate(start);
                Ok(self.make_up && attempt.instead.as_ref().is_some_and(|value| keep(value, out)))
            }
            done => done,
        }
    }

    fn array(&self, op: &ValueOp, json: &[u8], out: &mut Vec<u8>) -> Result<bool, TranslateError> {
        if is_null(json, Kind::Array)? {
            return Ok(keep(json, out));
        }
        out.push(b'[');
        let mut empty = true;
        for (at, element) in elements(json).enumerate() {
            let start = out.len();
            if !empty {
                out.push(b',');
            }
            if self.value(op, element, out).map_err(|error| error.inside_element(at))? {
                empty = false;
            } else {
                out.truncate(start);
            }
        }
        out.push(b']');
        Ok(true)
    }

    fn wrap(&self, op: &ValueOp, json: &[u8], out: &mut Vec<u8>) -> Result<bool, TranslateError> {
        let start = out.len();
        out.push(b'[');
        let written = self.value(op, json, out)?;
        if written {
            out.push(b']');
        } else {
            out.truncate(start);
        }
        Ok(written)
    }

    fn unwrap(&self, op: &ValueOp, json: &[u8], out: &mut Vec<u8>) -> Result<bool, TranslateError> {
        if is_null(json, Kind::Array)? {
            return Ok(keep(json, out));
        }
        let mut inside = elements(json);
        match (inside.next(), inside.next()) {
            (Some(only), None) => self.value(op, only, out).map_err(|error| error.inside_element(0)),
            _ => Err(Cause::NotOne.into()),
        }
    }

    fn object(&self, op: &ObjectOp, json: &[u8], out: &mut Vec<u8>) -> Result<bool, TranslateError> {
        if is_null(json, Kind::Object)? {
            return Ok(keep(json, out));
        }
        let mut captures = vec![None; usize::from(op.captures)];
        let mut written = vec![false; op.members.len()];
        let mut writer = MemberWriter::open(out);
        for (name, value) in members(json) {
            let Some((at, member)) = op.member(&text::decode(name)) else {
                self.other(op, name, value, &mut writer)?;
                continue;
            };
            if let Some(slot) = member.capture {
                captures[usize::from(slot)] = Some(value);
            }
            let done = match &member.action {
                MemberAction::Drop | MemberAction::Shadowed => Ok(false),
                MemberAction::Emit(emit) => {
                    writer.member(&emit.name.json, |out| self.value(&emit.op, value, out))
                }
                // A null requests no feature, so it is dropped instead of refused.
                MemberAction::Refuse(_) if raw::kind(value) == Some(Kind::Null) => Ok(false),
                MemberAction::Refuse(reason) => Err(Cause::Refused(*reason).into()),
            };
            written[at] =
                done.map_err(|error| error.inside_member(&member.name.text, Some(&member.origin)))?;
        }
        let closing = Closing { walk: self, op, captures: &captures, written: &written };
        closing.write(&op.close, &mut writer)?;
        writer.close();
        Ok(true)
    }

    /// Handles a member that no rule names.
    fn other(
        &self,
        op: &ObjectOp,
        name: &str,
        value: &[u8],
        writer: &mut MemberWriter<'_>,
    ) -> Result<(), TranslateError> {
        let quoted = || [b"\"", name.as_bytes(), b"\""].concat();
        let done = match &op.others {
            Others::Drop => return Ok(()),
            Others::Keep => writer.member(&quoted(), |out| Ok(keep(value, out))),
            Others::Each(inner) => writer.member(&quoted(), |out| self.value(inner, value, out)),
            // As for named members, a null requests no feature.
            Others::Refuse(_) if raw::kind(value) == Some(Kind::Null) => return Ok(()),
            Others::Refuse(reason) => Err(Cause::Refused(*reason).into()),
        };
        done.map(drop).map_err(|error: TranslateError| error.inside_member("*", None))
    }
}

/// Returns the operation of the alternative that an object matches.
pub(super) fn arm<'o>(op: &'o ChooseOp, object: &[u8]) -> Option<&'o ValueOp> {
    let at = match &op.by {
        ChooseBy::Constant { member, values } => {
            let value = members(object).find(|(name, _)| text::decode(name) == *member.text)?.1;
            values.iter().find(|(known, _)| is_same(known, value)).map(|(_, at)| usize::from(*at))
        }
        ChooseBy::OwnField(fields) => {
            let has = |name: &str| {
                let is_there = |(found, value): (&str, &[u8])| {
                    raw::kind(value) != Some(Kind::Null) && text::decode(found) == name
                };
                members(object).any(is_there)
            };
            let own = fields.iter().position(|field| field.as_ref().is_some_and(|field| has(&field.text)));
            own.or_else(|| fields.iter().position(Option::is_none))
        }
    };
    op.arms.get(at?)
}

/// Returns whether two scalars have the same value, regardless of spelling.
fn is_same(known: &[u8], found: &[u8]) -> bool {
    let read = |json| Value::parse(json, &Limits::UNLIMITED).ok();
    // Most values are spelled identically, so compare the bytes before parsing.
    known == found
        || !matches!(raw::kind(found), Some(Kind::Array | Kind::Object))
            && read(known).zip(read(found)).is_some_and(|(known, found)| same(&known, &found))
}

/// The state of an object when it is closed.
struct Closing<'a> {
    walk: &'a Walk<'a>,
    op: &'a ObjectOp,
    captures: &'a [Option<&'a [u8]>],
    written: &'a [bool],
}

/// The result of writing a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrote {
    Nothing,
    /// An object without content, or null, written because the member is required.
    Empty,
    Something,
}

impl Closing<'_> {
    /// Writes these members. Returns [`Wrote::Nothing`] if a required one is missing.
    fn write(&self, items: &[Close], writer: &mut MemberWriter<'_>) -> Result<Wrote, TranslateError> {
        let (mut all, mut is_complete) = (Wrote::Empty, true);
        for close in items {
            let mut wrote = Wrote::Nothing;
            writer.member(&close.name.json, |out| {
                wrote = self.item(close, out)?;
                Ok::<_, TranslateError>(wrote != Wrote::Nothing)
            })?;
            match wrote {
                Wrote::Something => all = Wrote::Something,
                Wrote::Empty => {}
                // Without constants and defaults, the result is partial and may lack required
                // members.
                Wrote::Nothing => is_complete &= !(close.needed && self.walk.make_up),
            }
        }
        Ok(if is_complete { all } else { Wrote::Nothing })
    }

    fn item(&self, close: &Close, out: &mut Vec<u8>) -> Result<Wrote, TranslateError> {
        let (env, make_up) = (self.walk.env, self.walk.make_up);
        let is_written = match &close.from {
            CloseFrom::Object(items) => {
                let start = out.len();
                let mut writer = MemberWriter::open(out);
                let wrote = self.write(items, &mut writer)?;
                writer.close();
                if wrote == Wrote::Nothing && close.needed && close.null && make_up {
                    out.truncate(start);
                    keep(b"null", out);
                    return Ok(Wrote::Empty);
                }
                let is_there = wrote == Wrote::Something || close.needed && make_up;
                return Ok(if is_there { wrote } else { Wrote::Nothing });
            }
            CloseFrom::Constant(value) => make_up && keep(value, out),
            CloseFrom::Default { unless_written, value } => {
                let written = self.written.get(usize::from(*unless_written)) == Some(&true);
                make_up && !written && keep(value, out)
            }
            CloseFrom::Captured { alternatives, absent } => {
                for place in alternatives {
                    if self.write_captured(place, close, out)? {
                        return Ok(Wrote::Something);
                    }
                }
                match absent {
                    Absent::Value(value) => make_up && keep(value, out),
                    Absent::Omit => false,
                }
            }
            CloseFrom::Supplied(at) => {
                env.supplied.get(usize::from(*at)).and_then(Option::as_ref).is_some_and(|v| keep(v, out))
            }
            CloseFrom::Setting(_) if !make_up => false,
            CloseFrom::Setting(at) => match env.settings.get(*at) {
                Some(value) => keep(value, out),
                None => {
                    return Err(TranslateError::from(Cause::Setting(*at))
                        .inside_member(&close.name.text, Some(&close.origin)));
                }
            },
        };
        Ok(if is_written { Wrote::Something } else { Wrote::Nothing })
    }

    fn write_captured(
        &self,
        place: &Captured,
        close: &Close,
        out: &mut Vec<u8>,
    ) -> Result<bool, TranslateError> {
        let Some(source) = self.captures.get(usize::from(place.slot)).copied().flatten() else {
            return Ok(false);
        };
        let Some(found) = raw::lookup(source, place.path.iter().map(|key| key.text.as_ref()))? else {
            return Ok(false);
        };
        let found = &source[found];
        let wanted = raw::kind(found).is_some_and(|kind| place.only.is_none_or(|only| only.contains(kind)));
        if !wanted {
            return Ok(false);
        }
        self.walk.value(&place.op, found, out).map_err(|error| {
            let inner =
                place.path.iter().rev().fold(error, |e, key| e.inside_member(&key.text, Some(&close.origin)));
            let holder = self.op.members.iter().find(|member| member.capture == Some(place.slot));
            inner.inside_member(holder.map_or("", |member| &member.name.text), Some(&close.origin))
        })
    }
}

fn keep(json: &[u8], out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(json);
    true
}

fn convert(conversion: &Conversion, json: &[u8], out: &mut Vec<u8>) -> Result<bool, TranslateError> {
    let done = conversion.apply(json, out).map_err(Cause::Convert)?;
    Ok(done == Yield::Written)
}

/// Whether the value is null; an error when it is neither null nor of the expected kind.
fn is_null(json: &[u8], expected: Kind) -> Result<bool, TranslateError> {
    match raw::kind(json) {
        Some(Kind::Null) => Ok(true),
        Some(found) if found != expected => Err(Cause::Kind { expected, found }.into()),
        _ => Ok(false),
    }
}
