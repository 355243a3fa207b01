//! Display rules for the messages of a side: lowers the contract and the `secret` and `harmless`
//! declarations of `compare.types` from types to the bodies, paths, queries and headers of
//! operations.

use super::compare::{Comparisons, DeclaredPlaces};
use super::events;
use crate::contract::{
    Additional, Contract, Literal, Operation, Parameter, ScalarKind, Segment, StatusPattern, Type, TypeId,
    TypeKind, Webhook,
};
use http::Method;
use std::collections::HashMap;
use std::sync::Arc;
use switchback_plan::{
    Disclosure, DisclosureId, Disclosures, OperationDisclosure, SegmentDisclosure, StatusFrom,
};

/// Returns the display rules for all messages of a side.
pub(super) fn of_side(comparisons: &Comparisons<'_>, side: usize) -> Disclosures {
    let contract = comparisons.contract(side);
    let mut builder = DisclosureBuilder {
        comparisons,
        contract,
        side,
        values: Vec::new(),
        known: HashMap::new(),
        written: HashMap::new(),
        plain: HashMap::new(),
    };
    let mut operations: Vec<OperationDisclosure> =
        contract.operations.iter().map(|operation| builder.operation(operation)).collect();
    operations.extend(contract.webhooks.iter().map(|webhook| builder.event(webhook)));
    Disclosures { values: builder.values, operations }
}

struct DisclosureBuilder<'b> {
    comparisons: &'b Comparisons<'b>,
    contract: &'b Contract,
    side: usize,
    values: Vec<Disclosure>,
    /// Rules of named types, by the outer declarations for their places. The number of such
    /// declarations is finite, so recursive types terminate.
    known: HashMap<(TypeId, DeclaredPlaces), DisclosureId>,
    /// Rules of inline unions, by address. Unions may refer to each other without a named type
    /// between them.
    written: HashMap<(*const Type, DeclaredPlaces), DisclosureId>,
    /// Rules of leaf values, by their flags. Most fields of a contract share one of a few
    /// combinations.
    plain: HashMap<[bool; 4], DisclosureId>,
}

impl DisclosureBuilder<'_> {
    fn operation(&mut self, operation: &Operation) -> OperationDisclosure {
        let mut variables = operation.path_params.iter();
        let segments = operation.key.path.segments().iter();
        OperationDisclosure {
            key: operation.key.to_string().into(),
            method: operation.key.method.clone(),
            path: segments
                .map(|segment| match segment {
                    Segment::Literal(text) => SegmentDisclosure::Literal(text.as_str().into()),
                    Segment::Variable(_) => {
                        let ty = variables.next().map(|parameter| &parameter.ty);
                        SegmentDisclosure::Variable(self.outermost(ty))
                    }
                    // A segment with several variables is displayed as one value, so the types of
                    // its variables do not apply.
                    Segment::Mixed(_) => {
                        variables.by_ref().take(segment.variables().count()).for_each(|_| {});
                        SegmentDisclosure::Variable(self.outermost(None))
                    }
                })
                .collect(),
            query: self.parameters(&operation.query, str::to_owned),
            headers: self.parameters(&operation.headers, str::to_ascii_lowercase),
            request: operation.body.as_ref().map(|body| self.outermost(Some(&body.ty))),
            answers: operation
                .responses
                .iter()
                .filter_map(|response| Some((statuses(response.status), response.body.as_ref()?)))
                .map(|(statuses, ty)| (statuses, self.outermost(Some(ty))))
                .collect(),
        }
    }

    /// Returns the rules of an event. Its method occurs in no request, so events are found only by
    /// key.
    fn event(&mut self, webhook: &Webhook) -> OperationDisclosure {
        let body = webhook.body.as_ref().map(|body| self.outermost(Some(&body.ty)));
        // `EVENT` is not a registered method, so no request matches this entry.
        OperationDisclosure {
            key: events::operation(&webhook.name).into(),
            method: Method::from_bytes(b"EVENT").expect("it is a token"),
            path: Vec::new(),
            query: Vec::new(),
            headers: Vec::new(),
            request: None,
            answers: body.into_iter().map(|body| (None, body)).collect(),
        }
    }

    fn parameters(
        &mut self,
        parameters: &[Parameter],
        name: fn(&str) -> String,
    ) -> Vec<(Arc<str>, DisclosureId)> {
        parameters
            .iter()
            .map(|parameter| (name(&parameter.name).into(), self.outermost(Some(&parameter.ty))))
            .collect()
    }

    fn outermost(&mut self, ty: Option<&Type>) -> DisclosureId {
        match ty {
            Some(ty) => self.value(ty, &DeclaredPlaces::default()),
            None => {
                let id = self.add(Disclosure::default());
                let same = self.same(&Disclosure::default(), id);
                same.inspect(|_| drop(self.values.pop())).unwrap_or(id)
            }
        }
    }

    fn add(&mut self, value: Disclosure) -> DisclosureId {
        let id = u32::try_from(self.values.len()).expect("contracts are bounded by the size of their files");
        self.values.push(value);
        DisclosureId(id)
    }

    /// Returns the rules for a value of a type, extended by `declared`.
    fn value(&mut self, ty: &Type, declared: &DeclaredPlaces) -> DisclosureId {
        let named = match &ty.kind {
            TypeKind::Named(reference) => Some((reference.id, declared.clone())),
            _ => None,
        };
        if let Some(id) = named.as_ref().and_then(|named| self.known.get(named)) {
            return *id;
        }
        let written =
            matches!(ty.kind, TypeKind::OneOf(_)).then(|| (std::ptr::from_ref(ty), declared.clone()));
        if let Some(id) = written.as_ref().and_then(|written| self.written.get(written)) {
            return *id;
        }
        // Reserve the id before the type is entered, so that a recursive reference finds it.
        let id = self.add(Disclosure::default());
        if let Some(written) = &written {
            self.written.insert(written.clone(), id);
        }
        if let Some(named) = &named {
            self.known.insert(named.clone(), id);
        }
        let mut value = Disclosure::default();
        self.fill(&mut value, ty, declared);
        let Some(same) = self.same(&value, id) else {
            self.values[id.0 as usize] = value;
            return id;
        };
        // An equal value exists, so release the reserved id.
        self.values.pop();
        written.map(|written| self.written.insert(written, same));
        named.map(|named| self.known.insert(named, same));
        same
    }

    /// Returns an equal value that exists already. Leaf values only, and only if `id` is the last
    /// value: then removing it leaves no gap.
    fn same(&mut self, value: &Disclosure, id: DisclosureId) -> Option<DisclosureId> {
        let Disclosure {
            is_secret,
            is_harmless,
            is_number,
            listed,
            members,
            others,
            element,
            has_data_names,
        } = value;
        let is_plain = listed.is_empty() && members.is_empty() && others.is_none() && element.is_none();
        if !is_plain || id.0 as usize + 1 != self.values.len() {
            return None;
        }
        let key = [*is_secret, *is_harmless, *is_number, *has_data_names];
        let known = *self.plain.entry(key).or_insert(id);
        (known != id).then_some(known)
    }

    fn fill(&mut self, value: &mut Disclosure, ty: &Type, declared: &DeclaredPlaces) {
        value.is_secret |= declared.is_secret;
        value.is_harmless |= declared.is_harmless;
        match &ty.kind {
            TypeKind::Named(reference) => {
                let by_name = self.comparisons.disclosure(self.side, &reference.name);
                let both = by_name.map_or_else(|| declared.clone(), |by_name| declared.and(by_name));
                let named = self.contract.types.by_id(reference.id);
                self.fill(value, &named.ty, &both);
            }
            TypeKind::Scalar(scalar) => {
                value.is_number |= scalar.kind != ScalarKind::String;
                let listed = scalar.values.iter().flat_map(|listed| &listed.values);
                value.listed.extend(listed.filter_map(|literal| match literal {
                    Literal::String(text) => Some(text.as_str().into()),
                    Literal::Boolean(_) | Literal::Number(_) => None,
                }));
            }
            // Declarations name members only, so they never extend into elements.
            TypeKind::Array(array) => {
                value.element = Some(self.value(&array.items, &DeclaredPlaces::default()))
            }
            TypeKind::Object(object) => {
                for field in &object.fields {
                    let below = declared.members.get(&field.name);
                    let id = match below {
                        Some(below) => self.value(&field.ty, below),
                        None => self.value(&field.ty, &DeclaredPlaces::default()),
                    };
                    value.members.insert(field.name.as_str().into(), id);
                }
                match &object.additional {
                    Additional::Of(others) => {
                        value.others = Some(self.value(others, &DeclaredPlaces::default()));
                        value.has_data_names = true;
                    }
                    // An object without declared members is a map.
                    Additional::Open => value.has_data_names |= object.fields.is_empty(),
                    Additional::Closed => {}
                }
            }
            // Alternatives differ by JSON kind, so their rules can be merged without conflict.
            TypeKind::OneOf(alternatives) => {
                alternatives.iter().for_each(|one| self.fill(value, one, declared));
            }
            // The renderer does not determine which alternative a value is. If any of them contains
            // a declared type, the entire value is secret.
            TypeKind::Choice(choice) => {
                for one in &choice.alternatives {
                    if let TypeKind::Named(reference) = &one.kind {
                        self.comparisons.disclosure(self.side, &reference.name);
                    }
                    value.is_secret |= self.comparisons.holds_declared(self.side, one);
                }
                value.has_data_names = true;
            }
            TypeKind::Any => value.has_data_names = true,
            TypeKind::Null => {}
        }
    }
}

fn statuses(pattern: StatusPattern) -> Option<StatusFrom> {
    match pattern {
        StatusPattern::Exact(status) => Some(StatusFrom::Exact(status)),
        StatusPattern::Class(class) => Some(StatusFrom::Class(class)),
        StatusPattern::Default => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::mapping::compile;
    use crate::mapping::load::PackSource;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn plain_values_are_disclosed_alike_once() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mappings/messaging");
        let source = PackSource::from_dir(&folder).expect("the pack lies beside the sources");
        let pack = compile(&source).pack.expect("the pack compiles");
        for disclosures in &pack.disclosures {
            let values = disclosures.values.iter();
            let plain = values.filter(|value| {
                value.members.is_empty()
                    && value.element.is_none()
                    && value.others.is_none()
                    && value.listed.is_empty()
            });
            let plain: Vec<String> = plain.map(|value| format!("{value:?}")).collect();
            let distinct: BTreeSet<&String> = plain.iter().collect();
            assert!(distinct.len() > 1);
            assert_eq!(plain.len(), distinct.len(), "{plain:?}");
        }
    }
}
