//! The short cut through the machine: members whose name is the expected one and whose value ends
//! within the chunk, one after the other. Whatever is unusual is left to the machine, at a place where
//! the machine could have come by itself.

use super::fault::Fault;
use super::machine::{Run, State};
use super::names::{NONE, NameId};
use super::program::Action;
use super::skip::word_len;
use crate::json::reader::is_blank;
use crate::json::scan::Scan;

/// Bytes that stand around the text of a name.
const QUOTES_AND_COLON: usize = 3;

impl<S: Scan> Run<'_, S> {
    /// Reads members from the quote of a name at `at` on.
    #[inline(always)]
    pub fn members(&mut self, at: usize) -> Result<usize, Fault> {
        let mut at = at;
        loop {
            let Some((id, value)) = self.expected_name(at) else {
                self.machine.state = State::InKey(false);
                return Ok(at + 1);
            };
            let end = match self.scalar(id, at, value) {
                Some(end) => end,
                None => {
                    let object = &self.program.objects[self.top().id as usize];
                    if object.keep_others && self.top().member == NONE {
                        self.copy_member(at, value);
                    }
                    self.machine.state = State::MemberValue;
                    if self.chunk.get(value).is_none_or(|byte| is_blank(*byte)) {
                        return Ok(value);
                    }
                    self.member_value(value)?
                }
            };
            match self.machine.state {
                State::AfterMember => match self.chunk.get(end..end + 2) {
                    Some(b",\"") => at = end + 1,
                    Some([b'}', _]) => return self.end_object(end),
                    _ => return Ok(end),
                },
                State::FirstKey if self.chunk.get(end) == Some(&b'"') => at = end,
                _ => return Ok(end),
            }
        }
    }

    /// If the expected name stands at `at`, and the object has not had it, its id and the place after
    /// its colon; the innermost object then names it.
    #[inline(always)]
    fn expected_name(&mut self, at: usize) -> Option<(NameId, usize)> {
        let top = *self.top();
        let names = &self.machine.names[top.id as usize];
        let id = names.after(top.last);
        let len = names.matches(id, self.chunk, at)?;
        let known = usize::from(id) < names.known;
        // A name that is too long by the limits is left to the machine, which tells so.
        if len > self.machine.bounds.json.key_bytes.saturating_add(QUOTES_AND_COLON) {
            return None;
        }
        if !self.see(&top, id) {
            return None;
        }
        let top = self.top_mut();
        top.last = id;
        top.member = if known { id } else { NONE };
        Some((id, at + len))
    }

    /// Passes a scalar that is dropped or copied, if that is what stands at `value` and it ends within
    /// the chunk; the place after it. The member's name stands at `name`.
    #[inline(always)]
    fn scalar(&mut self, id: NameId, name: usize, value: usize) -> Option<usize> {
        let top = *self.top();
        let object = &self.program.objects[top.id as usize];
        let end = match *self.chunk.get(value)? {
            b'"' => self.string_end(value + 1)?,
            first @ (b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                let end = self.scan.bare_end(self.chunk, value);
                if end == self.chunk.len() || word_len(first).is_some_and(|len| len != end - value) {
                    return None;
                }
                end
            }
            _ => return None,
        };
        match object.members.get(usize::from(id)) {
            Some(member) => {
                match &member.action {
                    Action::Drop => {}
                    Action::Copy(prefix) => {
                        if self.keep_member(name, end) {
                            self.mark_written();
                        } else {
                            self.begin_member(prefix);
                            self.keep(value, end);
                        }
                    }
                    Action::Rename(prefix) => {
                        self.begin_member(prefix);
                        self.keep(value, end);
                    }
                    Action::Run(..) | Action::Refuse(_) => return None,
                }
                for capture in &member.captures {
                    let chunk = self.chunk;
                    let slot = self.slot(capture);
                    slot.open(value);
                    slot.end(end, chunk);
                }
            }
            None if object.keep_others => self.copy_member(name, end),
            None => {}
        }
        self.machine.state = State::AfterMember;
        Some(end)
    }

    /// Writes a member, or the beginning of one, as it stands, with the comma before it if one is due.
    #[inline(always)]
    fn copy_member(&mut self, name: usize, end: usize) {
        if !self.keep_member(name, end) {
            if std::mem::replace(&mut self.top_mut().wrote, true) {
                self.write(b",");
            }
            self.keep(name, end);
        }
    }

    /// Writes a member as it stands, with the comma before it if one is due, if it continues what is
    /// written from the chunk already.
    #[inline(always)]
    fn keep_member(&mut self, name: usize, end: usize) -> bool {
        if !self.top().wrote {
            let continues = self.span.end == name;
            if continues {
                self.keep(name, end);
                self.top_mut().wrote = true;
            }
            return continues;
        }
        let continues = name > 0 && self.span.end == name - 1 && self.chunk[name - 1] == b',';
        if continues {
            self.keep(name - 1, end);
        }
        continues
    }

    /// The place after the quote that ends a string within the chunk.
    #[inline(always)]
    fn string_end(&self, at: usize) -> Option<usize> {
        let mut at = at;
        loop {
            at = self.scan.string_break(self.chunk, at);
            match self.chunk.get(at)? {
                b'"' => return Some(at + 1),
                _ => at += 2,
            }
            if at > self.chunk.len() {
                return None;
            }
        }
    }

    #[inline(always)]
    fn mark_written(&mut self) {
        let top = *self.top();
        let words = self.program.objects[top.id as usize].words;
        self.machine.bits[top.bits + words.seen + usize::from(top.member) / 64] |= 1 << (top.member % 64);
    }
}
