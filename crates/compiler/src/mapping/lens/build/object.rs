//! The op of an object while its shape is being built: the members of the source, and the values
//! that are written when the object closes.

use crate::contract::TypeIn;
use crate::mapping::lens::fields::is_needed;
use std::collections::BTreeMap;
use switchback_plan::{Close, CloseFrom, Key, Member, MemberAction, ObjectOp, Origin, Others, Raw};

/// An op before the members have indexes and the closing values are grouped.
#[derive(Default)]
pub(super) struct ObjectDraft {
    /// Members of the source, by name.
    members: BTreeMap<String, MemberDraft>,
    close: Vec<CloseDraft>,
    /// Treatment of undeclared members, once determined.
    pub others: Option<Others>,
    captures: u16,
}

pub(super) struct MemberDraft {
    pub action: MemberAction,
    capture: Option<u16>,
    origin: Origin,
}

/// A value written on close, before it is grouped into nested objects.
struct CloseDraft {
    place: Vec<String>,
    what: MemberClosing,
    origin: Origin,
}

pub(super) enum MemberClosing {
    From(CloseFrom),
    /// A constant, unless the member of this name was written.
    Unless {
        member: String,
        value: Raw,
    },
}

impl ObjectDraft {
    /// Returns the member of the source with this name, which is dropped unless its action is set.
    pub(super) fn member(&mut self, name: &str, origin: Origin) -> &mut MemberDraft {
        let draft = || MemberDraft { action: MemberAction::Drop, capture: None, origin };
        self.members.entry(name.to_owned()).or_insert_with(draft)
    }

    /// Reserves a name of the target: an undeclared member of the source with the same name must
    /// not be written as well. Returns whether the source does not declare the name.
    pub(super) fn shadow(&mut self, name: &str, origin: &Origin) -> bool {
        let is_undeclared = !self.members.contains_key(name);
        if is_undeclared {
            self.member(name, origin.clone()).action = MemberAction::Shadowed;
        }
        is_undeclared
    }

    /// Captures a member of the source, and returns its slot. Lines that read the same member share
    /// its slot.
    pub(super) fn capture(&mut self, name: &str, origin: &Origin) -> u16 {
        let next = self.captures;
        let slot = *self.member(name, origin.clone()).capture.get_or_insert(next);
        self.captures = self.captures.max(slot + 1);
        slot
    }

    /// Adds a value that is written at `place` when the object closes.
    pub(super) fn close(&mut self, place: &[String], what: MemberClosing, origin: Origin) {
        self.close.push(CloseDraft { place: place.to_vec(), what, origin });
    }

    /// Returns the op. `built` is the target type.
    pub(super) fn finish(self, name: &str, built: TypeIn<'_>, supplied: usize) -> ObjectOp {
        // The run time finds members by binary search, so they must be sorted by name. The map is.
        let indexes: BTreeMap<&String, u16> = self.members.keys().zip(0..).collect();
        let close = nest(&self.close.iter().collect::<Vec<_>>(), 0, built, &indexes);
        let members = self.members.into_iter().map(|(name, draft)| Member {
            name: Key::new(&name),
            action: draft.action,
            capture: draft.capture,
            origin: draft.origin,
        });
        ObjectOp {
            name: name.into(),
            members: members.collect(),
            others: self.others.unwrap_or(Others::Drop),
            close,
            captures: self.captures,
            supplied: supplied as u16,
        }
    }
}

/// Groups the drafts into nested objects, in the order of their first appearance. `built` is the
/// target type; `indexes` maps source members to their position in the op.
fn nest(
    drafts: &[&CloseDraft],
    depth: usize,
    built: TypeIn<'_>,
    indexes: &BTreeMap<&String, u16>,
) -> Vec<Close> {
    let mut names: Vec<&String> = Vec::new();
    for draft in drafts {
        // Keep the order of lines, which determines the order of members in the output.
        if !names.contains(&&draft.place[depth]) {
            names.push(&draft.place[depth]);
        }
    }
    let of = |name: &String| drafts.iter().copied().filter(|d| d.place[depth] == *name).collect::<Vec<_>>();
    let mut close = Vec::new();
    for name in names {
        let group = of(name);
        let from = match &group[0].what {
            _ if group[0].place.len() > depth + 1 => {
                CloseFrom::Object(nest(&group, depth + 1, built, indexes))
            }
            MemberClosing::From(from) => from.clone(),
            MemberClosing::Unless { member, value } => {
                CloseFrom::Default { unless_written: indexes[member], value: value.clone() }
            }
        };
        let [needed, null] = is_needed(built, &group[0].place[..=depth]);
        close.push(Close { name: Key::new(name), from, needed, null, origin: group[0].origin.clone() });
    }
    close
}
