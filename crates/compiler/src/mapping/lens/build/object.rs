//! Values that a shape writes when an object closes, grouped into their enclosing objects.

use crate::contract::TypeIn;
use crate::mapping::ast::FieldPlace;
use std::collections::BTreeMap;
use switchback_plan::{Close, CloseFrom, Key, Origin, Raw};

/// A value written on close, before it is grouped into nested objects.
pub(super) struct CloseDraft {
    pub place: Vec<String>,
    pub what: MemberClosing,
    pub origin: Origin,
}

pub(super) enum MemberClosing {
    From(CloseFrom),
    /// A constant, unless the member of this name was written.
    Unless {
        member: String,
        value: Raw,
    },
}

/// Groups the drafts into nested objects, in the order of their first appearance. `built` is the
/// target type; `indexes` maps source members to their position in the op.
pub(super) fn nest(drafts: &[CloseDraft], built: TypeIn<'_>, indexes: &BTreeMap<&String, u16>) -> Vec<Close> {
    level(&drafts.iter().collect::<Vec<_>>(), 0, built, indexes)
}

fn level(
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
                CloseFrom::Object(level(&group, depth + 1, built, indexes))
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

/// Returns whether the enclosing object requires the place, and whether the place is nullable.
pub(super) fn is_needed(built: TypeIn<'_>, place: &[String]) -> [bool; 2] {
    let Some((name, around)) = place.split_last() else { return [false; 2] };
    let around = super::account::field_at(built, &FieldPlace(around.to_vec()));
    let holder = around.ok().and_then(|around| super::object(around.ty));
    let field = holder.and_then(|holder| holder.field(name));
    field.map_or([false; 2], |field| [field.required, built.types.resolve(&field.ty).nullable])
}
