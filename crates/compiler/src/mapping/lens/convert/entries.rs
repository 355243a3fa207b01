//! The types of `pairs` and `pairs_to_object`: the entries of a list, and the members of an object.

use crate::contract::{Additional, Difference, Narrowing, Object, TypeIn, TypeKind, compare};
use switchback_plan::convert::{Conversion, ConversionKind};
use switchback_plan::{Message, SideId};

/// Why the entries of a list and the members of an object do not correspond.
#[derive(Debug, thiserror::Error)]
pub(in crate::mapping) enum EntryMisfit {
    #[error(transparent)]
    Types(#[from] Difference),
    #[error("the entries of the list have no member `{0}`")]
    NoMember(String),
    #[error("the entries of the list require `{0}`, which an object cannot give")]
    OtherMember(String),
}

/// A conversion between entries and members with the types of both places.
struct Entries<'c, 't> {
    key: &'c str,
    value: &'c str,
    builds_list: bool,
    /// The type of an entry.
    entry: (TypeIn<'t>, &'t Object),
    /// The type of the object; `None` if the place accepts any object.
    object: Option<(TypeIn<'t>, &'t Object)>,
}

/// Checks that entries have the members of the conversion and no others that they require, and that
/// the values of one place are values of the other.
pub(super) fn check_entries(
    conversion: &Conversion,
    from: TypeIn<'_>,
    to: TypeIn<'_>,
) -> Result<(), EntryMisfit> {
    for entries in all(conversion, from, to) {
        let (_, entry) = entries.entry;
        let names = [entries.key, entries.value];
        let is_closed = entry.additional == Additional::Closed;
        if let Some(name) = names.iter().find(|name| is_closed && entry.field(name).is_none()) {
            return Err(EntryMisfit::NoMember((*name).to_owned()));
        }
        let mut required = entry.fields.iter().filter(|field| field.required);
        if let Some(field) = required.find(|field| !names.contains(&field.name.as_str()))
            && entries.builds_list
        {
            return Err(EntryMisfit::OtherMember(field.name.clone()));
        }
        for (_, from, to) in entries.values() {
            compare(from, to, None)?;
        }
    }
    Ok(())
}

/// Returns the values that the target does not accept.
pub(super) fn exceeding_entries(
    conversion: &Conversion,
    from: TypeIn<'_>,
    to: TypeIn<'_>,
    message: Option<Message>,
) -> Vec<Narrowing> {
    let mut all_found = Vec::new();
    for entries in all(conversion, from, to) {
        for (place, from, to) in entries.values() {
            let mut found = compare(from, to, message).unwrap_or_default();
            found.iter_mut().for_each(|one| one.path.replace_range(..1, &place));
            all_found.extend(found);
        }
    }
    all_found
}

/// Returns the members of a list's entries that an object cannot represent; `*` for undeclared
/// members.
pub(in crate::mapping::lens) fn passed_over(kind: &ConversionKind, list: TypeIn<'_>) -> Vec<String> {
    let pairs = kind.alternatives().iter().find_map(|kind| match kind {
        ConversionKind::Pairs { key, value, .. } => Some((key, value)),
        _ => None,
    });
    let (Some((key, value)), Some((_, entry))) = (pairs, entry_in(list)) else { return Vec::new() };
    let names = entry.fields.iter().map(|field| field.name.as_str());
    let others = (entry.additional != Additional::Closed).then_some("*");
    names.filter(|name| *name != &**key && *name != &**value).chain(others).map(str::to_owned).collect()
}

impl<'t> Entries<'_, 't> {
    /// Returns the types of values that are related: their place in the source, the type there and
    /// the type in the target. Undeclared values have no type to compare.
    fn values(&self) -> Vec<(String, TypeIn<'t>, TypeIn<'t>)> {
        let ((within, entry), Some((around, object))) = (self.entry, self.object) else { return Vec::new() };
        let Some(value) = entry.field(self.value).map(|field| within.types.at(&field.ty)) else {
            return Vec::new();
        };
        let others = match &object.additional {
            Additional::Of(ty) => Some(("$.*".to_owned(), around.types.at(ty))),
            Additional::Open | Additional::Closed => None,
        };
        if !self.builds_list {
            return others.map(|(_, to)| (format!("$[*].{}", self.value), value, to)).into_iter().collect();
        }
        let fields = object.fields.iter();
        let declared = fields.map(|field| (format!("$.{}", field.name), around.types.at(&field.ty)));
        declared.chain(others).map(|(place, from)| (place, from, value)).collect()
    }
}

fn all<'c, 't>(conversion: &'c Conversion, from: TypeIn<'t>, to: TypeIn<'t>) -> Vec<Entries<'c, 't>> {
    let read = |kind: &'c ConversionKind| {
        let ConversionKind::Pairs { key, value, list } = kind else { return None };
        let builds_list = conversion.forward == (*list == SideId::NEW);
        let (list, object) = if builds_list { (to, from) } else { (from, to) };
        Some(Entries { key, value, builds_list, entry: entry_in(list)?, object: object_in(object) })
    };
    conversion.kind.alternatives().iter().filter_map(read).collect()
}

/// Returns the type of the entries of a list that is the type or one of its alternatives.
fn entry_in(ty: TypeIn<'_>) -> Option<(TypeIn<'_>, &Object)> {
    match ty.kind() {
        TypeKind::Array(array) => object_in(ty.types.at(&array.items)),
        TypeKind::OneOf(alternatives) => alternatives.iter().find_map(|one| entry_in(ty.types.at(one))),
        _ => None,
    }
}

/// Returns the object that a type or one of its alternatives is.
pub(super) fn object_in(ty: TypeIn<'_>) -> Option<(TypeIn<'_>, &Object)> {
    match ty.kind() {
        TypeKind::Object(object) => Some((ty, object)),
        TypeKind::OneOf(alternatives) => alternatives.iter().find_map(|one| object_in(ty.types.at(one))),
        _ => None,
    }
}
