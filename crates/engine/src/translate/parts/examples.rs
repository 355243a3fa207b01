//! Multipart bodies in examples.

use super::fields::parts_of;
use crate::translate::multipart::{self, PartHead, Piece, Reader};
use bytes::Bytes;
use std::borrow::Cow;
use switchback_json::{Limits, Object, Value};
use switchback_plan::{MultipartFormat, essence, is_json};

/// The boundary in examples.
const EXAMPLE: &str = "example";

/// Encodes the body of an example, which contains fields by name and files as
/// `{filename: …, type: …, content: …}`. Returns the body with its media type.
pub(in crate::translate) fn example(format: &MultipartFormat, value: &Value) -> Option<(Vec<u8>, String)> {
    let mut fields = Object::new();
    let mut files = Vec::new();
    for (name, value) in value.as_object()?.iter() {
        let name = name.decode();
        let contents = match value.as_array() {
            Some(all) if !all.is_empty() => all.iter().map(file_of).collect::<Option<Vec<_>>>(),
            _ => file_of(value).map(|file| vec![file]),
        };
        match contents {
            Some(contents) => files.extend(contents.into_iter().map(|file| (name.to_string(), file))),
            None => drop(fields.insert(&*name, value.clone())),
        }
    }
    let fields = Value::Object(fields).to_vec();
    let mut out = Vec::new();
    for part in parts_of(format, &fields, &Limits::DOCUMENT).ok()? {
        part.write(EXAMPLE, &mut out);
    }
    for (name, [filename, named, content]) in files {
        let head = [
            format!(
                "--{EXAMPLE}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{filename}\"\r\n"
            ),
            format!("Content-Type: {named}\r\n\r\n{content}\r\n"),
        ];
        out.extend_from_slice(head.concat().as_bytes());
    }
    multipart::write_end(EXAMPLE, &mut out);
    Some((out, multipart::media_type(EXAMPLE)))
}

fn file_of(value: &Value) -> Option<[String; 3]> {
    let text = |name: &str| value.get(name).and_then(|value| value.as_str().map(Cow::into_owned));
    let content = text("content")?;
    let [filename, named] = [("filename", "file"), ("type", "application/octet-stream")]
        .map(|(name, otherwise)| text(name).unwrap_or_else(|| otherwise.to_owned()));
    Some([filename, named, content])
}

/// Decodes a multipart body to its representation in examples: texts, JSON and files, with repeated
/// names as lists. Returns `None` if the body is not multipart.
pub(in crate::translate) fn example_of(media_type: &str, body: &[u8]) -> Option<Value> {
    let boundary = multipart::boundary_of(media_type).ok()?;
    let mut reader = Reader::new(&boundary, usize::MAX);
    reader.push(Bytes::copy_from_slice(body));
    let mut named: Vec<(String, Vec<Value>)> = Vec::new();
    let mut open: Option<(PartHead, Vec<u8>)> = None;
    while let Some(piece) = reader.next_piece().ok()? {
        match piece {
            Piece::Head(head) => open = Some((head, Vec::new())),
            Piece::Data(data) => open.as_mut()?.1.extend_from_slice(&data),
            Piece::End => {
                let (head, content) = open.take()?;
                let name = head.name.clone();
                let value = example_of_part(&head, &content);
                match named.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, values)) => values.push(value),
                    None => named.push((name, vec![value])),
                }
            }
        }
    }
    reader.finish().ok()?;
    let mut object = Object::new();
    for (name, mut values) in named {
        let value = if values.len() == 1 { values.remove(0) } else { Value::from(values) };
        object.insert(&*name, value);
    }
    Some(Value::Object(object))
}

fn example_of_part(head: &PartHead, content: &[u8]) -> Value {
    let text = String::from_utf8_lossy(content);
    let named = head.content_type.as_deref();
    if !head.has_filename {
        let is_json = named.is_some_and(|named| is_json(essence(named)));
        let read = is_json.then(|| Value::parse(content, &Limits::DOCUMENT).ok()).flatten();
        return read.unwrap_or_else(|| Value::string(&text));
    }
    let mut file = Object::new();
    if let Some(filename) = head.filename() {
        file.insert("filename", Value::string(&filename));
    }
    if let Some(named) = named {
        file.insert("type", Value::string(named));
    }
    file.insert("content", Value::string(&text));
    Value::Object(file)
}

/// Converts the scalars of an expected body to text, because a text part has no type.
pub(in crate::translate) fn example_text(value: &Value) -> Value {
    fn scalar(value: &Value) -> Value {
        match value {
            Value::Null => Value::string(""),
            Value::Bool(value) => Value::string(if *value { "true" } else { "false" }),
            Value::Number(number) => Value::string(number.text()),
            other => other.clone(),
        }
    }
    let Some(object) = value.as_object() else { return value.clone() };
    let mut texts = Object::new();
    for (name, value) in object.iter() {
        let value = match value.as_array() {
            Some(list) => Value::from(list.iter().map(scalar).collect::<Vec<_>>()),
            None => scalar(value),
        };
        texts.insert(&*name.decode(), value);
    }
    Value::Object(texts)
}
