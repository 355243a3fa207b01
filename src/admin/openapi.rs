//! The description of the admin port as an OpenAPI 3.1 document, generated from the table of its
//! routes. Schemas of request bodies come from the types that parse them, schemas of responses from
//! `schemas.json`.

use super::api::NoMembers;
use super::guard::AccessLevel;
use super::route::{AdminRoute, AnswerContent, QueryParameter};
use super::{OPERATOR, need};
use http::{Method, StatusCode};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Schemas of responses, by name. Objects with properties are closed, and all properties are
/// required except those in `optional`; [`close`] writes both out.
const SCHEMAS: &str = include_str!("schemas.json");

/// Returns the document of these routes.
pub(super) fn document(routes: &[AdminRoute]) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut bodies = settings.into_generator();
    let mut paths = Map::new();
    for route in routes {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_ascii_lowercase()] = operation(route, &mut bodies);
    }
    let mut schemas: Map<String, Value> = serde_json::from_str(SCHEMAS).expect("a test reads it");
    schemas.values_mut().for_each(close);
    schemas.extend(bodies.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Switchback admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Health, metrics, the OAuth callback, and the state of a gateway with the changes of operators. \
                            Every path with GET takes HEAD too, except the callback.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "`admin.token`, or `admin.read_token` for reading" },
                "password": { "type": "http", "scheme": "basic", "description": "The token as the password, for reading" },
            },
        },
    })
}

/// Adds the required properties to the objects of a schema, and that they have no others.
fn close(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Object(members) => {
            members.values_mut().for_each(close);
            let optional = members.remove("optional").unwrap_or_default();
            if let Some(Value::Object(properties)) = members.get("properties") {
                let is_optional = |name: &&String| {
                    optional.as_array().is_some_and(|all| all.iter().any(|one| one == name.as_str()))
                };
                let required: Value = properties.keys().filter(|name| !is_optional(name)).cloned().collect();
                members.insert("required".to_owned(), required);
                members.insert("additionalProperties".to_owned(), false.into());
            }
        }
        _ => {}
    }
}

fn operation(route: &AdminRoute, bodies: &mut SchemaGenerator) -> Value {
    let access = need(route.path, &Method::from_bytes(route.method.as_bytes()).expect("GET or POST"));
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.about,
        "parameters": parameters(route, access),
        "responses": responses(route, access),
        "security": match access {
            AccessLevel::Nothing | AccessLevel::Visitor => json!([]),
            AccessLevel::ToRead => json!([{ "token": [] }, { "password": [] }]),
            AccessLevel::ToChange => json!([{ "token": [] }]),
        },
    });
    if route.method == "POST" {
        let schema = match route.body {
            Some(schema) => schema(bodies).to_value(),
            None => bodies.subschema_for::<NoMembers>().to_value(),
        };
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

/// Returns the method and the words of the path, such as `postClientsRotate`.
fn operation_id(route: &AdminRoute) -> String {
    let words = route.path.split(['/', '-', '.']).filter(|word| !word.is_empty() && *word != "api");
    let words = words.filter(|word| route.path.ends_with(*word) || !word.starts_with('{'));
    words.fold(route.method.to_ascii_lowercase(), |id, word| {
        let word = word.trim_matches(['{', '}']);
        format!("{id}{}{}", word[..1].to_ascii_uppercase(), &word[1..])
    })
}

fn parameters(route: &AdminRoute, access: AccessLevel) -> Value {
    let variable = route.path.split('/').find(|part| part.starts_with('{'));
    let variable = variable.map(|name| {
        let name = name.trim_matches(['{', '}']);
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
    });
    let query = |one: &QueryParameter| {
        let schema: Value = serde_json::from_str(one.schema).expect("a test reads it");
        json!({ "name": one.name, "in": "query", "description": one.about, "schema": schema })
    };
    let operator = (access == AccessLevel::ToChange).then(|| {
        let about = "The name of the person that a program acts for, for the history";
        json!({ "name": OPERATOR, "in": "header", "description": about, "schema": { "type": "string" } })
    });
    variable.into_iter().chain(route.query.iter().map(query)).chain(operator).collect()
}

/// Statuses of errors by access level: of the credential, the body, the path and the store.
fn statuses(route: &AdminRoute, access: AccessLevel) -> Vec<u16> {
    let mut statuses = route.errors.to_vec();
    if access != AccessLevel::Nothing {
        statuses.extend([401, 403, 429, 503]);
    }
    if access == AccessLevel::ToChange {
        statuses.extend([400, 413, 415]);
    }
    if route.path.contains('{') {
        statuses.push(404);
    }
    statuses
}

fn responses(route: &AdminRoute, access: AccessLevel) -> Value {
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let response = |status: u16, content: Value| {
        let status = StatusCode::from_u16(status).expect("a status");
        let about = status.canonical_reason().unwrap_or_default();
        (status.as_str().to_owned(), json!({ "description": about, "content": content }))
    };
    let (success, error) = match route.answer.1 {
        AnswerContent::Json(name) => (json!({ "application/json": { "schema": reference(name) } }), None),
        AnswerContent::Text(kind) => (json!({ (kind): { "schema": { "type": "string" } } }), Some(kind)),
    };
    // The callback answers people, also with an error; a health check has one form.
    let error = match (access, error) {
        (AccessLevel::Nothing, _) => success.clone(),
        _ => json!({ "application/json": { "schema": reference("Error") } }),
    };
    let errors = statuses(route, access).into_iter().map(|status| response(status, error.clone()));
    std::iter::once(response(route.answer.0, success)).chain(errors).collect::<Map<_, _>>().into()
}
