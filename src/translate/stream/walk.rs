//! The short cut through the machine: members whose name is the expected one, that are dropped or
//! copied, and whose value ends within the chunk, one after the other. Whatever is unusual is left to
//! the machine, at a place where the machine could have come by itself.

use super::fault::Fault;
use super::machine::{Machine, Run, State, slot_index};
use super::output::flush;
use super::program::{Action, Program};
use super::skip::{Nested, Skipped};
use crate::json::scan::{Scan, Task};
use std::ops::Range;

/// Bytes that stand around the text of a name.
const QUOTES_AND_COLON: usize = 3;

/// Why the short cut ends.
#[derive(Debug, Clone, Copy)]
enum Pause {
    /// At the quote of a name that is not the expected one, or has another difficulty.
    Name,
    /// At the value of a member that is neither dropped nor copied.
    Value,
    /// After a member that is not followed by another at once.
    Member,
}

impl<S: Scan> Run<'_, S> {
    /// Reads members from the quote of a name at `at` on.
    pub fn members(&mut self, at: usize) -> Result<usize, Fault> {
        let walk = Walk {
            machine: self.machine,
            program: self.program,
            chunk: self.chunk,
            out: self.out,
            span: &mut self.span,
            at,
        };
        let (at, pause) = self.scan.enter(walk);
        match pause {
            Pause::Name => {
                self.machine.state = State::InKey(false);
                Ok(at + 1)
            }
            Pause::Value => {
                self.machine.state = State::MemberValue;
                Ok(at)
            }
            Pause::Member if self.chunk.get(at) == Some(&b'}') => {
                self.end_object(at)?;
                Ok(at + 1)
            }
            Pause::Member => {
                self.machine.state = State::AfterMember;
                Ok(at)
            }
        }
    }
}

/// The members of one object from the quote of a name at `at` on.
struct Walk<'r> {
    machine: &'r mut Machine,
    program: &'r Program,
    chunk: &'r [u8],
    out: &'r mut Vec<u8>,
    /// See [`Run::span`].
    span: &'r mut Range<usize>,
    at: usize,
}

impl Task for Walk<'_> {
    type Output = (usize, Pause);

    /// Goes as far as members are plain.
    #[inline(always)]
    fn run<S: Scan>(self, scan: S) -> (usize, Pause) {
        let Walk { machine, program, chunk, out, span: kept, mut at } = self;
        let innermost = machine.frames.len() - 1;
        let frame = &machine.frames[innermost];
        let object = &program.objects[frame.id as usize];
        let names = &machine.names[frame.id as usize];
        let (seen, written) = machine.bits[frame.bits..].split_at_mut(object.words.seen);
        let depth_left = machine.bounds.json.depth - machine.depth;
        let quoted_bytes_max = machine.bounds.json.key_bytes.saturating_add(QUOTES_AND_COLON);
        // Kept in registers on the way and written back at the end.
        let (mut last, mut member_at, mut wrote) = (frame.last, frame.member, frame.wrote);
        let mut span = kept.clone();
        let mut id = names.after(last);
        let pause = loop {
            let Some(name) = names.get(id) else { break Pause::Name };
            let Some(len) = name.len_at(chunk, at) else { break Pause::Name };
            let (word, bit) = (usize::from(id / 64), 1u64 << (id % 64));
            let value = at + len;
            let Some(&first) = chunk.get(value) else { break Pause::Name };
            if seen[word] & bit != 0 || len > quoted_bytes_max {
                break Pause::Name;
            }
            let member = object.members.get(usize::from(id));
            if let Some(member) = member
                && matches!(member.action, Action::Run(..) | Action::Refuse(_))
            {
                seen[word] |= bit;
                (last, member_at, at) = (id, id, value);
                break Pause::Value;
            }
            let Some(end) = value_end(scan, chunk, first, value, depth_left) else {
                break Pause::Name;
            };
            seen[word] |= bit;
            last = id;
            let joins =
                if wrote { at > 0 && span.end == at - 1 && chunk[at - 1] == b',' } else { span.end == at };
            match member.map(|member| &member.action) {
                Some(Action::Copy(_)) if joins => {
                    span.end = end;
                    wrote = true;
                    written[word] |= bit;
                }
                Some(Action::Copy(prefix) | Action::Rename(prefix)) => {
                    flush(chunk, &mut span, out);
                    prefix.write(!wrote, out);
                    span = value..end;
                    wrote = true;
                    written[word] |= bit;
                }
                None if object.keep_others => {
                    if !joins {
                        flush(chunk, &mut span, out);
                        out.extend_from_slice(if wrote { b"," } else { b"" });
                        span.start = at;
                    }
                    span.end = end;
                    wrote = true;
                }
                _ => {}
            }
            for capture in member.map_or(&[][..], |member| &member.captures) {
                let slot = &mut machine.slots[slot_index(&machine.frames, capture)];
                slot.open(value);
                slot.end(end, chunk);
            }
            if chunk.get(end..end + 2) != Some(b",\"") {
                at = end;
                break Pause::Member;
            }
            at = end + 1;
            id = name.next;
        };
        let frame = &mut machine.frames[innermost];
        (frame.last, frame.member, frame.wrote) = (last, member_at, wrote);
        *kept = span;
        (at, pause)
    }
}

/// How the end of a value is found, by its first byte.
#[derive(Debug, Clone, Copy)]
enum Shape {
    None,
    String,
    Number,
    /// A word of this many bytes, of which the last four are checked.
    Word(u8, [u8; 4]),
    Nested,
}

static SHAPES: [Shape; 256] = {
    let mut shapes = [Shape::None; 256];
    shapes[b'"' as usize] = Shape::String;
    shapes[b'-' as usize] = Shape::Number;
    let mut digit = b'0';
    while digit <= b'9' {
        shapes[digit as usize] = Shape::Number;
        digit += 1;
    }
    shapes[b'n' as usize] = Shape::Word(4, *b"null");
    shapes[b't' as usize] = Shape::Word(4, *b"true");
    shapes[b'f' as usize] = Shape::Word(5, *b"alse");
    shapes[b'[' as usize] = Shape::Nested;
    shapes[b'{' as usize] = Shape::Nested;
    shapes
};

/// The place after the value at `value`, which begins with `first`, if it ends within the chunk and
/// nothing is wrong with it.
#[inline(always)]
fn value_end<S: Scan>(scan: S, chunk: &[u8], first: u8, value: usize, depth_left: usize) -> Option<usize> {
    match SHAPES[usize::from(first)] {
        Shape::String => {
            let mut at = value + 1;
            loop {
                at = scan.string_break(chunk, at);
                match chunk.get(at)? {
                    b'"' => return Some(at + 1),
                    _ => at += 2,
                }
                if at > chunk.len() {
                    return None;
                }
            }
        }
        Shape::Number => Some(scan.bare_end(chunk, value)).filter(|end| *end < chunk.len()),
        Shape::Word(len, last) => {
            let end = value + usize::from(len);
            let ends = matches!(chunk.get(end)?, b',' | b'}');
            (ends && chunk[end - 4..end] == last).then_some(end)
        }
        Shape::Nested => match Nested::default().over(scan, chunk, value, depth_left) {
            Skipped::To(end) => Some(end),
            _ => None,
        },
        Shape::None => None,
    }
}
