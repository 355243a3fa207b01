//! Representations of the state on the wire. Every struct has exactly the fields of the document,
//! in the same order. Inconsistent types, such as integers and numeric strings for ids, are
//! expressed by field types. Where the document mixes letter cases, the Rust fields have the
//! documented names.

mod agent;
mod chat;
mod contact;
mod message;
mod timeline;
pub mod v2;

pub use agent::{
    AgentItem, AgentStatus, AgentStatusResult, detail as agent_detail, profile as agent_profile,
};
pub use chat::{Channel, Transfer, assignment, channels, chat, context_variables, members, tags};
pub use contact::{Reach, contact, custom_fields, groups, organizations};
pub use message::{Message, Person, message, sent};
pub use timeline::{comment, timeline};

use super::state::{Company, Id};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt::Display;

/// A number that is serialized as a string.
#[derive(Clone, Copy)]
pub struct Numeric<N>(pub N);

impl<N: Display> Serialize for Numeric<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// The URL of a photo.
#[derive(Clone, Copy)]
pub struct Photo {
    folder: &'static str,
    id: Id,
    suffix: &'static str,
}

impl Photo {
    pub fn of_agent(id: Id, has: bool) -> Option<Photo> {
        has.then_some(Photo { folder: "agents", id, suffix: "" })
    }

    pub fn of_contact(id: Id, has: bool) -> Option<Photo> {
        has.then_some(Photo { folder: "contacts", id, suffix: "" })
    }

    /// Returns the URL of the small version.
    pub fn small(self) -> Photo {
        Photo { suffix: "_small", ..self }
    }
}

impl Serialize for Photo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!(
            "https://files.example.com/{}/{}{}.jpg",
            self.folder, self.id, self.suffix
        ))
    }
}

/// A contact's custom values as an object with names or tokens as keys.
pub struct CustomValues<'a> {
    company: &'a Company,
    values: &'a [(u16, String)],
    by_token: bool,
}

impl<'a> CustomValues<'a> {
    pub fn by_name(company: &'a Company, values: &'a [(u16, String)]) -> CustomValues<'a> {
        CustomValues { company, values, by_token: false }
    }

    pub fn by_token(company: &'a Company, values: &'a [(u16, String)]) -> CustomValues<'a> {
        CustomValues { company, values, by_token: true }
    }
}

impl Serialize for CustomValues<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.values.len()))?;
        for (place, value) in self.values {
            let field = &self.company.custom_fields[*place as usize];
            map.serialize_entry(if self.by_token { field.token } else { field.name }, value)?;
        }
        map.end()
    }
}
