//! What bodies are written in. Whatever it is, plans see one tree: a format is a spelling of it, or nothing that is looked into.

use super::body::Key;
use super::form::{Form, FormKind};
use super::parameter::ListStyle;
use std::sync::Arc;

/// A spelling of bodies. A further one is a variant here, read and written in `translate`.
#[derive(Clone, Debug, Default)]
pub enum BodyFormat {
    /// JSON (`application/json`, `+json`).
    #[default]
    Json,
    /// A form in one line (`application/x-www-form-urlencoded`).
    Form(Arc<FormFormat>),
    /// A form of parts (`multipart/form-data`), of which some are files.
    Multipart(Arc<MultipartFormat>),
    /// Passed as it comes, in its own media type.
    Opaque(Arc<MediaTypes>),
}

/// Which media types a body that is passed has, where it comes from and where it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaTypes {
    /// Ranges (`image/*`) that its sender's contract has, in small letters, without parameters.
    pub from: Vec<Arc<str>>,
    /// Ranges that its receiver's contract has.
    pub to: Vec<Arc<str>>,
    /// Types that are called otherwise on the other side.
    pub renamed: Vec<(Arc<str>, Arc<str>)>,
}

/// What becomes of the media type of a body that is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType<'m> {
    /// It goes on as it came.
    Same,
    /// It is called so on the other side. Its parameters stay.
    Renamed(&'m str),
    /// The receiver's contract has no such type.
    Untaken,
    /// The sender's contract has no such type.
    Foreign,
}

impl MediaTypes {
    /// What a body is called that says nothing of itself (RFC 9110, section 8.3).
    pub const UNNAMED: &'static str = "application/octet-stream";

    /// What becomes of a body that its sender calls so.
    pub fn of(&self, named: &str) -> MediaType<'_> {
        let essence = essence(named);
        if let Some((_, to)) = self.renamed.iter().find(|(from, _)| from.eq_ignore_ascii_case(essence)) {
            return MediaType::Renamed(to);
        }
        let is_of = |ranges: &[Arc<str>]| ranges.iter().any(|range| media_in_range(essence, range));
        match (is_of(&self.from), is_of(&self.to)) {
            (false, _) => MediaType::Foreign,
            (true, true) => MediaType::Same,
            (true, false) => MediaType::Untaken,
        }
    }

    /// What a body that its sender gives no type is called where it goes; none where nothing can be said.
    pub fn unnamed(&self) -> Option<&str> {
        let only = match &self.from[..] {
            [only] if !only.contains('*') => only,
            _ => Self::UNNAMED,
        };
        match self.of(only) {
            MediaType::Same => {
                self.from.iter().find(|from| ***from == *only).map_or(Some(Self::UNNAMED), |one| Some(one))
            }
            MediaType::Renamed(to) => Some(to),
            MediaType::Untaken | MediaType::Foreign => None,
        }
    }
}

/// A media type without its parameters.
pub fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or("").trim()
}

/// Whether a media type, without parameters, falls under a range such as `image/*`. A range falls under one that is as wide.
pub fn media_in_range(essence: &str, range: &str) -> bool {
    match range.strip_suffix("/*") {
        Some("*") => essence.contains('/'),
        Some(kind) => essence.split_once('/').is_some_and(|(of, _)| of.eq_ignore_ascii_case(kind)),
        None => range.eq_ignore_ascii_case(essence),
    }
}

/// A form (`application/x-www-form-urlencoded`) as its contract has it.
#[derive(Debug)]
pub struct FormFormat {
    /// Says which texts are numbers, and which names are lists.
    pub form: Arc<Form>,
    /// Lists of the form itself that are not written with brackets.
    pub lists: Vec<(Key, ListStyle)>,
}

/// A form of parts as its contract has it.
#[derive(Debug)]
pub struct MultipartFormat {
    /// Of the parts that are texts.
    pub fields: FormFormat,
    /// The declared parts that are no texts.
    pub parts: Vec<(Key, PartKind)>,
}

/// What a part is that is no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// JSON, called so where the gateway writes it.
    Json(Arc<str>),
    /// Bytes that nobody looks into. They may be many under one name.
    File,
}

impl MultipartFormat {
    /// What the declared part of this name is; none for texts, and for what is not declared.
    pub fn kind(&self, name: &str) -> Option<&PartKind> {
        self.parts.iter().find(|(key, _)| *key.text == *name).map(|(_, kind)| kind)
    }

    /// Whether the part of this name is a file, whose bytes pass as they come.
    pub fn is_file(&self, name: &str) -> bool {
        self.kind(name) == Some(&PartKind::File)
    }

    /// What the contract says of the value under this name.
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
    /// Media type of forms of parts, without a boundary.
    pub const MULTIPART: &'static str = "multipart/form-data";
    /// Media type of JSON.
    pub const JSON: &'static str = "application/json";
    /// Media type of forms in one line.
    pub const FORM: &'static str = "application/x-www-form-urlencoded";

    /// What a body of it that the gateway writes is called; none of what it does not write.
    pub fn media_type(&self) -> Option<&'static str> {
        match self {
            BodyFormat::Json => Some(BodyFormat::JSON),
            BodyFormat::Form(_) => Some(BodyFormat::FORM),
            BodyFormat::Multipart(_) => Some(BodyFormat::MULTIPART),
            BodyFormat::Opaque(_) => None,
        }
    }

    /// Whether bodies of it are passed without being read.
    pub fn is_opaque(&self) -> bool {
        matches!(self, BodyFormat::Opaque(_))
    }

    /// Whether a body that is called so may be one of it. Parameters of a media type do not matter, nor do its letters.
    pub fn takes(&self, media_type: &str) -> bool {
        let essence = essence(media_type);
        match self {
            BodyFormat::Json => is_json(essence),
            BodyFormat::Form(_) => essence.eq_ignore_ascii_case(BodyFormat::FORM),
            BodyFormat::Multipart(_) => essence.eq_ignore_ascii_case(BodyFormat::MULTIPART),
            BodyFormat::Opaque(media) => media.of(media_type) != MediaType::Foreign,
        }
    }
}

/// Whether a media type without parameters says that a body is JSON.
pub fn is_json(essence: &str) -> bool {
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
            assert_eq!(types.of(named), becomes, "{named}");
        }
        assert_eq!(types.unnamed(), None);
        let one =
            |from: &str, to: &str| MediaTypes { from: all(&[from]), to: all(&[to]), renamed: Vec::new() };
        assert_eq!(one("text/csv", "text/*").unnamed(), Some("text/csv"));
        assert_eq!(one("*/*", "*/*").unnamed(), Some(MediaTypes::UNNAMED));
        assert_eq!(one("image/*", "*/*").unnamed(), None);
    }
}
