//! What bodies are written in. Whatever it is, plans see one tree: a format is a spelling of it, or nothing that is looked into.

use super::body::Key;
use super::form::Form;
use super::parameter::ListStyle;
use std::sync::Arc;

/// A spelling of bodies. A further one is a variant here, read and written in `translate`.
#[derive(Clone, Debug, Default)]
pub enum BodyFormat {
    #[default]
    Json,
    Form(Arc<FormFormat>),
    /// Passed as it comes, in its own media type.
    Opaque,
}

/// A form (`application/x-www-form-urlencoded`) as its contract has it.
#[derive(Debug)]
pub struct FormFormat {
    /// Says which texts are numbers, and which names are lists.
    pub form: Arc<Form>,
    /// Lists of the form itself that are not written with brackets.
    pub lists: Vec<(Key, ListStyle)>,
}

impl BodyFormat {
    pub const JSON: &'static str = "application/json";
    pub const FORM: &'static str = "application/x-www-form-urlencoded";

    /// What a body of it that the gateway writes is called; none of what it does not write.
    pub fn media_type(&self) -> Option<&'static str> {
        match self {
            BodyFormat::Json => Some(BodyFormat::JSON),
            BodyFormat::Form(_) => Some(BodyFormat::FORM),
            BodyFormat::Opaque => None,
        }
    }

    pub fn is_opaque(&self) -> bool {
        matches!(self, BodyFormat::Opaque)
    }

    /// Whether a body that is called so may be one of it. Parameters of a media type do not matter, nor do its letters.
    pub fn takes(&self, media_type: &str) -> bool {
        let essence = media_type.split(';').next().unwrap_or("").trim();
        match self {
            BodyFormat::Json => is_json(essence),
            BodyFormat::Form(_) => essence.eq_ignore_ascii_case(BodyFormat::FORM),
            BodyFormat::Opaque => true,
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
