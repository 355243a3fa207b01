//! Types of a contract as what is checked of whole bodies.

use super::lens::kinds_of;
use crate::contract::{Access, Type, TypeKind, Types};
use switchback_plan::{Expected, Key, Kinds, Root};

/// What is checked of an answer of this type while it passes.
pub(in crate::mapping) fn answer_root(ty: &Type, types: &Types) -> Root {
    let Expected { kinds, members, needed: _ } = answer(ty, types);
    Root { kinds, members: !members.is_empty() }
}

/// What is checked of a request of this type. Members that it lacks are for the service to name.
pub(in crate::mapping) fn request_root(ty: &Type, types: &Types) -> Root {
    Root { kinds: kinds(ty, types), members: false }
}

/// What is checked of an answer of this type that a step gets.
pub(in crate::mapping) fn answer(ty: &Type, types: &Types) -> Expected {
    let members = match types.resolve(ty).kind {
        TypeKind::Object(object) => {
            let required =
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
