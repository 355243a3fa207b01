//! Values of a route's context document, and constructors of their types.
//!
//! The types are owned copies of the contracts' types, because a route narrows them: after
//! `all_present: [name]`, the request's `name` is present and not null. Named types in a
//! [`ContextValue`] belong to the contract of its side.

use crate::contract::{
    Access, Additional, Array, Contracts, Field, JsonKind, Limits, Object, Scalar, ScalarKind, Type, TypeIn,
    TypeKind, Unread,
};
use crate::diagnostic::Span;
use switchback_plan::{Kinds, SideId};

/// Type of a value in the context.
#[derive(Clone, Debug)]
pub(super) struct ContextValue {
    pub ty: Type,
    pub side: SideId,
    /// Whether the value may be absent.
    pub absent: bool,
}

impl ContextValue {
    pub(super) fn present(ty: Type, side: SideId) -> ContextValue {
        ContextValue { ty, side, absent: false }
    }

    pub(super) fn any(side: SideId, span: Span) -> ContextValue {
        ContextValue { ty: Type::any(span), side, absent: true }
    }

    /// Limits the length of a list.
    pub(super) fn with_most(mut self, items: Option<u64>) -> ContextValue {
        if let TypeKind::Array(array) = &mut self.ty.kind {
            array.max_items = items;
        }
        self
    }

    /// Returns the maximum length of a list.
    pub(super) fn most(&self) -> Option<u64> {
        let TypeKind::Array(array) = &self.ty.kind else { return None };
        array.max_items
    }

    pub(super) fn in_types<'a>(&'a self, contracts: &'a Contracts) -> TypeIn<'a> {
        TypeIn { types: &contracts[self.side].types, ty: &self.ty }
    }
}

/// Returns the type of a call's result.
pub(super) fn reply(body: Option<Type>, body_required: bool, span: Span) -> Type {
    let status = field("status", scalar(ScalarKind::Integer, span), true, span);
    let mut fields = vec![status, field("headers", headers(span), true, span)];
    fields.extend(body.map(|ty| field("body", ty, body_required, span)));
    object(fields, Additional::Closed, span)
}

/// Returns the type of a fanned-out call's result: a list of the elements, each with its reply if
/// there is one.
pub(super) fn fan_out(name: &str, element: ContextValue, mut reply: Type, span: Span) -> ContextValue {
    if let TypeKind::Object(object) = &mut reply.kind {
        // Elements beyond the bound, and failed calls, have no reply.
        object.fields.iter_mut().for_each(|field| field.required = false);
        object.fields.push(field(name, element.ty, true, span));
    }
    ContextValue::present(list(reply, span), element.side)
}

/// Returns the type of headers: text values with arbitrary names.
pub(super) fn headers(span: Span) -> Type {
    object(Vec::new(), Additional::Of(Box::new(scalar(ScalarKind::String, span))), span)
}

pub(super) fn field(name: &str, ty: Type, required: bool, span: Span) -> Field {
    Field { name: name.to_owned(), ty, required, access: Access::Both, default: None, span }
}

pub(super) fn object(fields: Vec<Field>, additional: Additional, span: Span) -> Type {
    Type {
        kind: TypeKind::Object(Object { fields, additional, unread: Unread::default() }),
        nullable: false,
        span,
    }
}

/// Returns a scalar type without bounds.
pub(super) fn scalar(kind: ScalarKind, span: Span) -> Type {
    let scalar = Scalar { kind, values: None, format: None, limits: Limits::default() };
    Type { kind: TypeKind::Scalar(scalar), nullable: false, span }
}

/// Returns a list type without bounds.
pub(super) fn list(items: Type, span: Span) -> Type {
    let array = Array {
        items: Box::new(items),
        min_items: 0,
        max_items: None,
        unique: false,
        unread: Unread::default(),
    };
    Type { kind: TypeKind::Array(array), nullable: false, span }
}

/// Converts the kinds to their form in plans.
pub(super) fn kinds_of(of: &[JsonKind]) -> Kinds {
    use switchback_json::raw::Kind;
    let kind = |kind: &JsonKind| match kind {
        JsonKind::Boolean => Kind::Bool,
        JsonKind::Number => Kind::Number,
        JsonKind::String => Kind::String,
        JsonKind::Array => Kind::Array,
        JsonKind::Object => Kind::Object,
    };
    Kinds::from_kinds(&of.iter().map(kind).collect::<Vec<_>>())
}
