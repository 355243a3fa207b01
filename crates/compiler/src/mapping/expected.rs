//! Converts contract types to run-time checks of entire bodies.

use super::lens::kinds_of;
use crate::contract::{Access, Type, TypeKind, Types};
use switchback_plan::{Expected, Key, Kinds, Root};

/// Returns the checks for a response of this type while it is streamed.
pub(in crate::mapping) fn answer_root(ty: &Type, types: &Types) -> Root {
    let Expected { kinds, members, needed: _ } = answer(ty, types);
    Root { kinds, members: !members.is_empty() }
}

/// Returns the checks for a request of this type. Missing members are left for the service to
/// report.
pub(in crate::mapping) fn request_root(ty: &Type, types: &Types) -> Root {
    Root { kinds: kinds(ty, types), members: false }
}

/// Returns the checks for a response of this type that a step reads.
pub(in crate::mapping) fn answer(ty: &Type, types: &Types) -> Expected {
    let members = match types.resolve(ty).kind {
        TypeKind::Object(object) => {
            let required =
                // Responses never contain write-only members.
                object.fields.iter().filter(|field| field.required && field.access != Access::WriteOnly);
            required.map(|field| Key::new(&field.name)).collect()
        }
        _ => Vec::new(),
    };
    Expected { kinds: kinds(ty, types), members, needed: Vec::new() }
}

fn kinds(ty: &Type, types: &Types) -> Kinds {
    match types.resolve(ty).kind {
        TypeKind::Any => Kinds::ANY,
        _ => kinds_of(types.at(ty)),
    }
}
