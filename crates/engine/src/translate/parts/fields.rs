//! Conversion between the fields of a multipart body and a JSON object.

use super::bad;
use crate::translate::fault::{Fault, Sender};
use crate::translate::multipart::{self, MultipartFault};
use crate::translate::pieces::{elements, members};
use crate::translate::request::{decode_query, query_pairs};
use crate::translate::urlencoded;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use switchback_json::raw::{self, Kind};
use switchback_json::{self as json, Limits, text};
use switchback_plan::{FormKind, Key, MultipartFormat, PartKind};

/// A received field.
#[derive(Debug)]
pub(super) struct Field {
    pub name: String,
    pub is_json: bool,
    pub text: Vec<u8>,
}

/// Appends the object that the fields form: texts as in any form, and JSON members. Names are
/// hashed, so that no body takes quadratic time.
pub(super) fn object_of(
    format: &MultipartFormat,
    fields: &[Field],
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<(), MultipartFault> {
    let utf8 = || "a field of the body is not UTF-8".to_owned();
    let texts = fields.iter().filter(|field| !field.is_json).map(|field| {
        let text = std::str::from_utf8(&field.text).map_err(|_| utf8())?;
        Ok((Cow::Borrowed(field.name.as_str()), Cow::Borrowed(text)))
    });
    let start = out.len();
    urlencoded::tree(&format.fields, texts, limits, out)?;
    let mut named: Vec<(&str, Vec<&[u8]>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for field in fields.iter().filter(|field| field.is_json) {
        json::validate(&field.text, limits)
            .map_err(|error| format!("a field of the body is no JSON: {error}"))?;
        let place = *places.entry(&field.name).or_insert(named.len());
        if place == named.len() {
            named.push((&field.name, Vec::new()));
        }
        named[place].1.push(field.text.trim_ascii());
    }
    if named.is_empty() {
        return Ok(());
    }
    // An object without members is `{}`.
    let has_texts = out.len() > start + 2;
    if has_texts && members(&out[start..]).any(|(text, _)| places.contains_key(&*text::decode(text))) {
        return Err("a name of the form is both JSON and a text".to_owned());
    }
    // Reopen the object of the texts in order to append the JSON members.
    out.pop();
    for (at, (name, texts)) in named.iter().enumerate() {
        if at > 0 || has_texts {
            out.push(b',');
        }
        out.extend_from_slice(&Key::new(name).json);
        out.push(b':');
        // A list is either one part per element or a single part with the entire list.
        let is_list = match format.form(name).map(|form| &form.kind) {
            Some(FormKind::Array { items, .. }) => {
                texts.len() > 1
                    || raw::kind(texts[0]) != Some(Kind::Array)
                    || matches!(items.kind, FormKind::Array { .. })
            }
            Some(_) => false,
            None => texts.len() > 1,
        };
        match (is_list, &texts[..]) {
            (false, [only]) => out.extend_from_slice(only),
            (false, _) => return Err("a name of the form is no list and comes more than once".to_owned()),
            (true, all) => {
                out.push(b'[');
                out.extend_from_slice(&all.join(&b","[..]));
                out.push(b']');
            }
        }
    }
    out.push(b'}');
    Ok(())
}

/// Approximate encoding overhead of a part, in addition to boundary, name and content.
const PART_BYTES: usize = 100;

/// An encoded field.
pub(super) struct WrittenPart {
    name: String,
    content_type: Option<Arc<str>>,
    pub text: Vec<u8>,
}

impl WrittenPart {
    pub(super) fn write(&self, boundary: &str, out: &mut Vec<u8>) {
        multipart::write_part(boundary, &self.name, self.content_type.as_deref(), &self.text, out);
    }
}

/// Returns the fields of a JSON object, which is validated first. Members are encoded as JSON if
/// the contract declares it, otherwise as texts like in any form.
pub(super) fn parts_of(
    format: &MultipartFormat,
    object: &[u8],
    limits: &Limits,
) -> Result<Vec<WrittenPart>, Fault> {
    let of_body = |error| Fault::of_body(Sender::ClientBody, &error);
    json::validate(object, limits).map_err(|error| of_body(error.into()))?;
    if raw::kind(object) != Some(Kind::Object) {
        return Err(bad("the body is made of a value that is no object".to_owned()));
    }
    let mut all = Vec::new();
    for (name, value) in members(object) {
        let text = text::decode(name);
        let Some(PartKind::Json(content_type)) = format.kind(&text) else {
            let alone = [b"{\"", name.as_bytes(), b"\":", value, b"}"].concat();
            let form = urlencoded::encode(&format.fields, &alone, limits).map_err(of_body)?;
            all.extend(query_pairs(&form).map(|(name, value)| WrittenPart {
                name: decode_query(name),
                content_type: None,
                text: decode_query(value.unwrap_or("")).into_bytes(),
            }));
            continue;
        };
        let is_list = format.form(&text).is_some_and(|form| matches!(form.kind, FormKind::Array { .. }));
        let is_list = is_list && raw::kind(value) == Some(Kind::Array);
        let values: Vec<&[u8]> = if is_list { elements(value).collect() } else { vec![value] };
        all.extend(values.into_iter().map(|value| WrittenPart {
            name: text.to_string(),
            content_type: Some(Arc::clone(content_type)),
            text: value.to_vec(),
        }));
    }
    Ok(all)
}

/// Encodes the fields of a JSON object as the start of a body, and returns it with its boundary.
/// `of` is the boundary of the files that follow.
pub(in crate::translate) fn write_fields(
    format: &MultipartFormat,
    object: &[u8],
    of: Option<&str>,
    salt: u64,
    limits: &Limits,
) -> Result<(Vec<u8>, String), Fault> {
    let parts = parts_of(format, object, limits)?;
    let texts = parts.iter().flat_map(|part| [part.name.as_bytes(), &part.text]);
    let boundary = multipart::boundary_for(of, salt, texts).map_err(bad)?;
    let heads = parts.iter().map(|part| part.name.len() + boundary.len() + PART_BYTES);
    let texts = parts.iter().map(|part| part.text.len());
    let mut out = Vec::with_capacity(heads.chain(texts).sum());
    parts.iter().for_each(|part| part.write(&boundary, &mut out));
    Ok((out, boundary))
}
