//! Body formats. Plans see the same JSON tree for every format that is parsed; an opaque body is
//! not parsed.

use super::form::{Form, FormKind};
use super::json::Key;
use super::parameter::ListStyle;
use super::xml::{XmlFormat, is_xml};
use std::sync::Arc;

/// The format of a body. To add one, add a variant here, and read and write it in `translate`.
#[derive(Clone, Debug, Default)]
pub enum BodyFormat {
    /// JSON (`application/json`, `+json`).
    #[default]
    Json,
    /// A URL-encoded form (`application/x-www-form-urlencoded`).
    Form(Arc<FormFormat>),
    /// JSON or a URL-encoded form, by the media type of each request. Calls are written in one format.
    JsonOrForm(Arc<FormFormat>),
    /// A multipart form (`multipart/form-data`), which may contain files.
    Multipart(Arc<MultipartFormat>),
    /// XML (`application/xml`, `text/xml`, `+xml`).
    Xml(Arc<XmlFormat>),
    /// Any other media type, forwarded unchanged.
    Opaque(Arc<MediaTypes>),
}

/// The media types of an opaque body on both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaTypes {
    /// Ranges (`image/*`) in the sender's contract, in lower case and without parameters.
    pub from: Vec<Arc<str>>,
    /// Ranges in the receiver's contract.
    pub to: Vec<Arc<str>>,
    /// Types with another name on the other side.
    pub renamed: Vec<(Arc<str>, Arc<str>)>,
}

/// The translation of the media type of an opaque body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType<'m> {
    /// Unchanged.
    Same,
    /// Renamed; parameters are preserved.
    Renamed(&'m str),
    /// Not accepted by the receiver's contract.
    Untaken,
    /// Not in the sender's contract.
    Foreign,
}

impl MediaTypes {
    /// Default type of a body without a `Content-Type` (RFC 9110, section 8.3).
    pub const UNNAMED: &'static str = "application/octet-stream";

    /// Translates the media type of a body.
    pub fn classify(&self, named: &str) -> MediaType<'_> {
        let essence = essence(named);
        // A renamed type may also be in a range that both sides declare, such as `image/*`. The mapping's
        // explicit line takes precedence over the range.
        if let Some((_, to)) = self.renamed.iter().find(|(from, _)| from.eq_ignore_ascii_case(essence)) {
            return MediaType::Renamed(to);
        }
        // JSON has many names, and a contract lists some of them.
        let is_in = |range: &str| media_in_range(essence, range) || is_json(essence) && is_json(range);
        let is_of = |ranges: &[Arc<str>]| ranges.iter().any(|range| is_in(range));
        // A type outside the sender's contract is always an error. A reply may still have a type that only
        // the sender declares, because clients read the type from the header; a request may not.
        match (is_of(&self.from), is_of(&self.to)) {
            (false, _) => MediaType::Foreign,
            (true, true) => MediaType::Same,
            (true, false) => MediaType::Untaken,
        }
    }

    /// Returns the media type to send for a body without one, or `None` if the contracts do not
    /// determine it.
    pub fn default_type(&self) -> Option<&str> {
        // A single declared type is certain, and JSON is likely. Otherwise, assume the default.
        let only = match &self.from[..] {
            [only] if !only.contains('*') => only,
            [first, ..] if is_json(first) => first,
            _ => Self::UNNAMED,
        };
        // The type must be valid on the receiving side too.
        match self.classify(only) {
            MediaType::Same => {
                self.from.iter().find(|from| ***from == *only).map_or(Some(Self::UNNAMED), |one| Some(one))
            }
            MediaType::Renamed(to) => Some(to),
            MediaType::Untaken | MediaType::Foreign => None,
        }
    }
}

/// Returns a media type without its parameters.
pub fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or("").trim()
}

/// Returns whether a media type without parameters is in a range such as `image/*`. A range is in
/// another one of the same width.
pub fn media_in_range(essence: &str, range: &str) -> bool {
    match range.strip_suffix("/*") {
        Some("*") => essence.contains('/'),
        Some(kind) => essence.split_once('/').is_some_and(|(of, _)| of.eq_ignore_ascii_case(kind)),
        None => range.eq_ignore_ascii_case(essence),
    }
}

/// A URL-encoded form as its contract declares it.
#[derive(Debug)]
pub struct FormFormat {
    /// Determines which texts are numbers, and which names are lists.
    pub form: Arc<Form>,
    /// Top-level lists that are not written with brackets.
    pub lists: Vec<(Key, ListStyle)>,
}

/// A multipart form as its contract declares it.
#[derive(Debug)]
pub struct MultipartFormat {
    /// The parts that are texts.
    pub fields: FormFormat,
    /// The declared parts that are not texts.
    pub parts: Vec<(Key, PartKind)>,
}

/// The kind of a part that is not a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// JSON, with the media type to write.
    Json(Arc<str>),
    /// Opaque bytes. Several files may have the same name.
    File,
}

impl MultipartFormat {
    /// Returns the kind of the declared part with this name; `None` for texts and undeclared parts.
    pub fn kind(&self, name: &str) -> Option<&PartKind> {
        self.parts.iter().find(|(key, _)| *key.text == *name).map(|(_, kind)| kind)
    }

    /// Returns whether the part with this name is a file, with bytes that are forwarded unchanged.
    pub fn is_file(&self, name: &str) -> bool {
        self.kind(name) == Some(&PartKind::File)
    }

    /// Returns the constraints on the part with this name.
    pub fn form(&self, name: &str) -> Option<&Form> {
        match &self.fields.form.kind {
            FormKind::Object { fields, .. } => {
                fields.iter().find(|field| *field.name.text == *name).map(|field| &*field.form)
            }
            _ => None,
        }
    }
}

impl BodyFormat {
    /// Media type of multipart forms, without a boundary.
    pub const MULTIPART: &'static str = "multipart/form-data";
    /// Media type of JSON.
    pub const JSON: &'static str = "application/json";
    /// Media type of URL-encoded forms.
    pub const FORM: &'static str = "application/x-www-form-urlencoded";

    /// Returns the media type of bodies that the gateway writes; `None` for an opaque format.
    pub fn media_type(&self) -> Option<&str> {
        match self {
            BodyFormat::Json | BodyFormat::JsonOrForm(_) => Some(BodyFormat::JSON),
            BodyFormat::Form(_) => Some(BodyFormat::FORM),
            BodyFormat::Multipart(_) => Some(BodyFormat::MULTIPART),
            BodyFormat::Xml(format) => Some(&format.content_type),
            BodyFormat::Opaque(_) => None,
        }
    }

    /// Returns whether bodies are converted from and to JSON, and therefore buffered.
    pub fn is_converted(&self) -> bool {
        matches!(self, BodyFormat::Form(_) | BodyFormat::Xml(_))
    }

    /// Returns whether bodies are forwarded without being parsed.
    pub fn is_opaque(&self) -> bool {
        matches!(self, BodyFormat::Opaque(_))
    }

    /// Returns whether a body with this media type may have this format. Parameters and letter case
    /// are ignored.
    pub fn takes(&self, media_type: &str) -> bool {
        let essence = essence(media_type);
        match self {
            BodyFormat::Json => is_json(essence),
            BodyFormat::Form(_) => essence.eq_ignore_ascii_case(BodyFormat::FORM),
            BodyFormat::JsonOrForm(_) => is_json(essence) || essence.eq_ignore_ascii_case(BodyFormat::FORM),
            BodyFormat::Multipart(_) => essence.eq_ignore_ascii_case(BodyFormat::MULTIPART),
            BodyFormat::Xml(_) => is_xml(essence),
            BodyFormat::Opaque(media) => media.classify(media_type) != MediaType::Foreign,
        }
    }
}

/// Returns whether a media type without parameters denotes JSON, by its name or because the pack
/// declares it (see [`Pack::json_types`](crate::Pack::json_types)).
pub fn is_json_type(essence: &str, declared: &[Arc<str>]) -> bool {
    is_json(essence) || declared.iter().any(|own| own.eq_ignore_ascii_case(essence))
}

/// Returns whether a media type without parameters denotes JSON by its name.
pub fn is_json(essence: &str) -> bool {
    // At least one character precedes the suffix.
    // `+json` is the structured syntax suffix of RFC 6839, section 3.1, as in `application/problem+json`.
    let ends_in_json = essence.len() > 5
        && essence.get(essence.len() - 5..).is_some_and(|end| end.eq_ignore_ascii_case("+json"));
    essence.eq_ignore_ascii_case(BodyFormat::JSON)
        || essence.eq_ignore_ascii_case("text/json")
        || ends_in_json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_goes_where_both_contracts_have_it() {
        let all = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect::<Vec<Arc<str>>>();
        let types = MediaTypes {
            from: all(&["image/*", "application/pdf", "application/x-zip"]),
            to: all(&["image/png", "application/*"]),
            renamed: vec![("application/x-zip".into(), "application/zip".into())],
        };
        for (named, becomes) in [
            ("image/png", MediaType::Same),
            ("IMAGE/PNG; q=1", MediaType::Same),
            ("image/gif", MediaType::Untaken),
            ("application/pdf", MediaType::Same),
            ("application/x-zip; a=b", MediaType::Renamed("application/zip")),
            ("text/html", MediaType::Foreign),
            ("image", MediaType::Foreign),
            ("", MediaType::Foreign),
        ] {
            assert_eq!(types.classify(named), becomes, "{named}");
        }
        assert_eq!(types.default_type(), None);
        let one =
            |from: &str, to: &str| MediaTypes { from: all(&[from]), to: all(&[to]), renamed: Vec::new() };
        assert_eq!(one("text/csv", "text/*").default_type(), Some("text/csv"));
        assert_eq!(one("*/*", "*/*").default_type(), Some(MediaTypes::UNNAMED));
        assert_eq!(one("image/*", "*/*").default_type(), None);
    }
}
