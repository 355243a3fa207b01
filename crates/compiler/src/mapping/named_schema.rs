//! The schema of the mapping files of one pack: like the general one, and the names of shapes, types,
//! operations and fields are those that the pack and its contracts have. An editor reports a
//! misspelled field by it without the language server.

use super::ast::{ShapeDecl, USE};
use super::compile::Compiled;
use super::schema;
use crate::contract::{Additional, Contract, Contracts, TypeIn, TypeKind};
use serde_json::{Map, Value, json};

/// Depth of nested places that are listed. Deeper ones are not checked.
const DEPTH_MAX: usize = 4;
/// Places of a type that are listed. The places of a larger type are not checked.
const PLACES_MAX: usize = 1000;

/// Returns the schema of the mapping files of a pack, or the general one if its manifest or a contract
/// cannot be read.
pub fn named_schema(compiled: &Compiled) -> Value {
    let Some((contracts, shapes)) = compiled.contracts.as_ref().zip(compiled.shapes()) else {
        return schema::mapping(None);
    };
    let sides = contracts.each_ref().map(|contract| contract.name.as_str());
    let mut schema = schema::without_uses(Some(sides));
    let operations = contracts.each_ref().map(|contract| operations(contract));
    for (side, operations) in sides.iter().zip(&operations) {
        set(&mut schema, &format!("/$defs/pair/properties/pair/properties/{side}"), one_of(operations));
    }
    for pointer in ["/$defs/serve/properties/at/anyOf/0", "/$defs/serve/properties/at/anyOf/1/items"] {
        set(&mut schema, pointer, one_of(&operations.concat()));
    }
    let names: Vec<&str> =
        shapes.iter().filter_map(|shape| Some(shape.name.as_ref()?.value.as_str())).collect();
    for pointer in [
        "/$defs/shapeUse/anyOf/0",
        "/$defs/shapeUse/anyOf/1/items",
        "/$defs/shape/properties/like",
        "/$defs/shape/properties/alternatives/items",
    ] {
        set(&mut schema, pointer, one_of(&names));
    }
    for (side, contract) in sides.iter().zip(contracts) {
        let types: Vec<&str> = contract.types.iter().map(|named| &*named.name).collect();
        set(&mut schema, &format!("/$defs/shape/properties/of/properties/{side}"), one_of(&types));
    }
    let named = shapes.iter().filter_map(|shape| {
        let name = shape.name.as_ref()?.value.clone();
        Some((name, shape_of(&schema["$defs"]["shape"], shape, sides, contracts)?))
    });
    let named: Map<String, Value> = named.collect();
    schema["properties"]["shapes"]["properties"] = named.into();
    schema::with_uses(schema, Some(sides))
}

fn operations(contract: &Contract) -> Vec<String> {
    contract.operations.iter().map(|operation| operation.key.to_string()).collect()
}

fn one_of<T: AsRef<str>>(names: &[T]) -> Value {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    // An empty enumeration is no schema, and a pack without names has none to misspell.
    if names.is_empty() { schema::text() } else { json!({"enum": names}) }
}

/// Replaces a form, and keeps its description.
fn set(schema: &mut Value, pointer: &str, mut form: Value) {
    let Some(place) = schema.pointer_mut(pointer) else { return };
    if let Some(about) = place.get("description") {
        form["description"] = about.clone();
    }
    *place = form;
}

/// Returns the schema of a shape with the places of its types, or `None` if these have no fields.
fn shape_of(general: &Value, shape: &ShapeDecl, sides: [&str; 2], contracts: &Contracts) -> Option<Value> {
    let of = shape.of.as_ref()?;
    let mut types = of.iter().zip(contracts).map(|(name, contract)| {
        let ty = contract.types.at(&contract.types.get(&name.value)?.ty);
        ty.object().map(|_| places(ty))
    });
    let places = [types.next()??, types.next()??];
    let mut schema = general.clone();
    let [old, new] = &places;
    let forms = [
        ("same/items", json!({"allOf": [old, new]})),
        ("rename/propertyNames", old.clone()),
        ("rename/additionalProperties/anyOf/0", new.clone()),
        (&format!("rename/additionalProperties/anyOf/1/properties/{}", sides[1]), new.clone()),
        ("constant/propertyNames", json!({"allOf": [old, new]})),
        ("by_kind/propertyNames", old.clone()),
        ("by_kind/additionalProperties/additionalProperties", new.clone()),
    ];
    for (pointer, form) in forms {
        insert(&mut schema, &format!("/properties/{pointer}"), form);
    }
    for (side, name) in sides.iter().enumerate() {
        for line in ["only", "copy"] {
            let pointer = format!("/properties/{line}/properties/{name}/propertyNames");
            insert(&mut schema, &pointer, places[side].clone());
        }
        let from = format!("/properties/copy/properties/{name}/additionalProperties");
        insert(&mut schema, &from, places[1 - side].clone());
    }
    Some(schema)
}

/// Sets a keyword of an existing form, or replaces the form.
fn insert(schema: &mut Value, pointer: &str, form: Value) {
    match pointer.strip_suffix("/propertyNames").and_then(|around| schema.pointer_mut(around)) {
        Some(around) => around["propertyNames"] = json!({"anyOf": [{"const": USE}, form]}),
        None => set(schema, pointer, form),
    }
}

/// Returns the schema of a place of an object: a member name, or a path. The members of a value
/// without a declared form are not checked.
fn places(ty: TypeIn<'_>) -> Value {
    let (mut names, mut open) = (Vec::new(), vec!["^\\$.*\\[".to_owned()]);
    collect(ty, &mut Vec::new(), &mut names, &mut open);
    let patterns = open.iter().map(|pattern| json!({"pattern": pattern}));
    match names.len() {
        0..=PLACES_MAX => {
            json!({"type": "string", "anyOf": patterns.chain([one_of(&names)]).collect::<Vec<_>>()})
        }
        _ => schema::text(),
    }
}

fn collect(ty: TypeIn<'_>, around: &mut Vec<String>, names: &mut Vec<String>, open: &mut Vec<String>) {
    let Some(object) = ty.object() else { return };
    if around.is_empty() && object.additional != Additional::Closed {
        names.push("*".to_owned());
    }
    for field in &object.fields {
        around.push(field.name.clone());
        let path = format!("$.{}", around.join("."));
        let inside = ty.types.at(&field.ty);
        let is_checked = around.len() < DEPTH_MAX && names.len() <= PLACES_MAX;
        match inside.kind() {
            TypeKind::Scalar(_) | TypeKind::Array(_) | TypeKind::Null => {}
            TypeKind::Object(_) if is_checked => collect(inside, around, names, open),
            _ => open.push(format!("^{}\\.", path.replace('$', "\\$").replace('.', "\\."))),
        }
        if let [name] = around.as_slice() {
            names.push(name.clone());
        }
        names.push(path);
        around.pop();
    }
}
