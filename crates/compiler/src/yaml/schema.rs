//! JSON Schemas of the forms that readers of trees share.

use serde_json::Value;

/// Adds a description, given by its lines, to a schema. Siblings of `$ref` are valid since draft
/// 2019-09.
pub fn described(mut schema: Value, lines: &[&str]) -> Value {
    let about = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    if let Value::Object(members) = &mut schema {
        members.insert("description".to_owned(), about.trim().into());
    }
    schema
}
