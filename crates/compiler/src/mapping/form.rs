//! Converts contract types to forms, which check requests and responses at run time.

use crate::contract::{Additional, Literal, ScalarKind, Type, TypeId, TypeKind, Types};
use std::collections::HashMap;
use std::sync::Arc;
use switchback_plan::{Form, FormField, FormKind, Key, Raw};

/// Returns the form of a type.
pub(in crate::mapping) fn form_of(ty: &Type, types: &Types) -> Arc<Form> {
    Forms { types, made: HashMap::new(), depth: 0 }.form(ty)
}

/// Builds forms of types. The form of a named type is built once and shared.
struct Forms<'t> {
    types: &'t Types,
    made: HashMap<(TypeId, bool), Arc<Form>>,
    depth: usize,
}

/// Maximum nesting depth of a form.
const DEPTH_MAX: usize = 64;

impl Forms<'_> {
    fn form(&mut self, ty: &Type) -> Arc<Form> {
        let resolved = self.types.resolve(ty);
        let named = match &ty.kind {
            TypeKind::Named(reference) => Some((reference.id, resolved.nullable)),
            _ => None,
        };
        if let Some(made) = named.and_then(|named| self.made.get(&named)) {
            return Arc::clone(made);
        }
        if let Some(named) = named {
            // Recursive references within the type find this entry and accept any value, so the
            // form is finite.
            self.made.insert(named, Arc::new(Form { kind: FormKind::Any, nullable: true }));
        }
        self.depth += 1;
        let kind = match resolved.kind {
            // Deeper values are not checked.
            _ if self.depth == DEPTH_MAX => FormKind::Any,
            // Forms do not determine which alternative of a choice an object is.
            TypeKind::Any | TypeKind::Named(_) | TypeKind::Choice(_) => FormKind::Any,
            TypeKind::Null => FormKind::Null,
            TypeKind::Scalar(scalar) => {
                let closed = scalar.values.as_ref().filter(|values| !values.open);
                let listed = closed.map(|values| values.values.iter().map(json).collect());
                match scalar.kind {
                    ScalarKind::Boolean => FormKind::Boolean,
                    ScalarKind::Integer => FormKind::Integer(listed),
                    ScalarKind::Number => FormKind::Number(listed),
                    ScalarKind::String => FormKind::String(listed),
                }
            }
            TypeKind::Array(array) => FormKind::Array {
                items: self.form(&array.items),
                items_min: array.min_items,
                items_max: array.max_items,
            },
            TypeKind::Object(object) => {
                let fields = object.fields.iter().map(|field| FormField {
                    name: Key::new(&field.name),
                    form: self.form(&field.ty),
                    required: field.required,
                });
                let fields = fields.collect();
                let others = match &object.additional {
                    Additional::Of(ty) => Some(self.form(ty)),
                    Additional::Open | Additional::Closed => None,
                };
                FormKind::Object { fields, others }
            }
            TypeKind::OneOf(alternatives) => {
                FormKind::OneOf(alternatives.iter().map(|one| self.form(one)).collect())
            }
        };
        self.depth -= 1;
        let form = Arc::new(Form { kind, nullable: resolved.nullable });
        if let Some(named) = named {
            self.made.insert(named, Arc::clone(&form));
        }
        form
    }
}

fn json(literal: &Literal) -> Raw {
    match literal {
        Literal::Boolean(value) => value.to_string().into_bytes().into(),
        Literal::Number(text) => text.clone().into_bytes().into(),
        Literal::String(text) => serde_json::Value::from(text.as_str()).to_string().into_bytes().into(),
    }
}
