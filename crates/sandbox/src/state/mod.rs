//! The single state that both versions act on: companies with their contacts and chats, and agents,
//! who may be linked to several companies. `moves.rs` contains all modifications, `views/` the
//! representations.

mod agent;
mod catalog;
mod chat;
mod contact;
mod flow;
mod marker;
mod message;
pub mod moves;
mod template;

pub use agent::{Agent, Presence, Role};
pub use catalog::{
    ChannelAccount, ChannelKind, CustomField, Flow, Group, Named, Organization, Step, Template, TemplateUse,
};
pub use chat::{Chat, ChatQuery, Situation, Survey};
pub use contact::{Comment, Contact, Happening, Mark};
pub use flow::{FlowFlags, Verdict, verdict};
pub use message::{Draft, Kind, Message, Messages, Party, Seeded, Text};
pub use template::check as check_template;

use std::collections::{BTreeMap, HashMap};

/// Identifies a record of one kind.
pub type Id = u64;

/// The complete state of the service.
pub struct State {
    pub seed: u64,
    /// Seconds of the logical clock.
    pub now: i64,
    pub companies: Vec<Company>,
    pub agents: Vec<Agent>,
    pub effects: Effects,
    /// The id of the next message.
    pub next_message: Id,
    /// The id of the next agent, comment or other small record.
    pub next_record: Id,
}

impl State {
    pub fn agent(&self, id: Id) -> Option<&Agent> {
        let first = self.agents.first()?.id;
        // Ids are assigned in order, so the index follows from the id.
        id.checked_sub(first).and_then(|at| self.agents.get(at as usize)).filter(|agent| agent.id == id)
    }

    pub fn agent_mut(&mut self, id: Id) -> Option<&mut Agent> {
        let at = id.checked_sub(self.agents.first()?.id)?;
        self.agents.get_mut(at as usize).filter(|agent| agent.id == id)
    }

    /// Returns the agent with this id, if it is linked to the company at index `company`.
    pub fn agent_of(&self, company: usize, id: Id) -> Option<&Agent> {
        self.agent(id).filter(|agent| agent.companies.contains(&self.companies[company].id))
    }

    /// Returns the agent with this login, ignoring ASCII case.
    pub fn agent_by_login(&self, login: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.login.eq_ignore_ascii_case(login))
    }

    /// Returns the index of the company with this id.
    pub fn company_at(&self, id: Id) -> Option<usize> {
        self.companies.iter().position(|company| company.id == id)
    }
}

/// A company account with all its records.
pub struct Company {
    pub id: Id,
    pub name: &'static str,
    pub created_at: i64,
    /// Linked agents, in the order of linking.
    pub agents: Vec<Id>,
    /// Contacts by index; the id is `contact_base` plus the index. Deleted ones remain, because
    /// their chats still refer to them.
    pub contacts: Vec<Contact>,
    pub contact_base: Id,
    /// Indices of the listed contacts, ascending.
    pub listed_contacts: Vec<u32>,
    /// Chats by index; the id is `chat_base` plus the index. Deleted ones remain, because timelines
    /// still refer to them.
    pub chats: Vec<Chat>,
    pub chat_base: Id,
    /// Indices of the listed chats, ascending.
    pub listed_chats: Vec<u32>,
    pub departments: Vec<Named>,
    pub tabulations: Vec<Named>,
    pub tags: Vec<Named>,
    pub flows: Vec<Flow>,
    pub steps: Vec<Step>,
    pub channels: Vec<ChannelAccount>,
    pub templates: Vec<Template>,
    pub groups: Vec<Group>,
    pub organizations: Vec<Organization>,
    pub custom_fields: Vec<CustomField>,
    /// Pending invitations, by email address.
    pub invitations: BTreeMap<String, Invitation>,
    /// The queue number of the next queued chat.
    pub next_queue_number: u64,
    /// Indices of contacts by lower-case email address.
    pub by_email: HashMap<Box<str>, Vec<u32>>,
    /// Indices of contacts by the digits of phone or mobile number.
    pub by_phone: HashMap<Box<str>, Vec<u32>>,
}

/// An invitation to become an agent.
#[derive(Clone, serde::Serialize)]
pub struct Invitation {
    pub email: String,
    #[serde(rename = "type")]
    pub role: i64,
    #[serde(rename = "maxChats")]
    pub max_chats: i64,
}

impl Company {
    /// Returns a contact, unless it is deleted.
    pub fn contact(&self, id: Id) -> Option<&Contact> {
        self.any_contact(id).filter(|contact| !contact.deleted)
    }

    pub fn contact_mut(&mut self, id: Id) -> Option<&mut Contact> {
        let at = id.checked_sub(self.contact_base)?;
        self.contacts.get_mut(at as usize).filter(|contact| !contact.deleted)
    }

    /// Returns a contact, even if it is deleted.
    pub fn any_contact(&self, id: Id) -> Option<&Contact> {
        self.contacts.get(usize::try_from(id.checked_sub(self.contact_base)?).ok()?)
    }

    /// Returns the contact of a chat.
    pub fn contact_of(&self, chat: &Chat) -> &Contact {
        self.any_contact(chat.contact)
            .expect("chats are only made for contacts, and contacts are never removed")
    }

    pub fn chat(&self, id: Id) -> Option<&Chat> {
        self.any_chat(id).filter(|chat| !chat.deleted)
    }

    /// Returns a chat, even if it is deleted.
    pub fn any_chat(&self, id: Id) -> Option<&Chat> {
        self.chats.get(usize::try_from(id.checked_sub(self.chat_base)?).ok()?)
    }

    pub fn chat_mut(&mut self, id: Id) -> Option<&mut Chat> {
        let at = id.checked_sub(self.chat_base)?;
        self.chats.get_mut(at as usize).filter(|chat| !chat.deleted)
    }

    /// Returns listed contacts, oldest first. Skipping takes constant time.
    pub fn contacts_from(&self, skip: usize) -> impl Iterator<Item = &Contact> {
        self.listed_contacts.iter().skip(skip).map(|at| &self.contacts[*at as usize])
    }

    /// Returns listed chats, newest first. Skipping takes constant time.
    pub fn chats_newest_first(&self, skip: usize) -> impl Iterator<Item = &Chat> {
        self.listed_chats.iter().rev().skip(skip).map(|at| &self.chats[*at as usize])
    }

    pub fn channel_of(&self, chat: &Chat) -> &ChannelAccount {
        &self.channels[chat.channel as usize]
    }

    pub fn department(&self, id: Id) -> Option<&Named> {
        self.departments.iter().find(|department| department.id == id)
    }

    pub fn tabulation(&self, id: Id) -> Option<&Named> {
        self.tabulations.iter().find(|tabulation| tabulation.id == id)
    }

    pub fn flow(&self, id: Id) -> Option<&Flow> {
        self.flows.iter().find(|flow| flow.id == id)
    }

    pub fn step(&self, id: Id) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// Adds a contact to the indexes for filters.
    pub fn index_contact(&mut self, at: u32) {
        let contact = &self.contacts[at as usize];
        if let Some(email) = &contact.email {
            enter(&mut self.by_email, email.to_lowercase(), at);
        }
        // Both numbers lead to the contact: a caller does not know in which field a number was stored.
        for number in [&contact.phone, &contact.mobile].into_iter().flatten() {
            enter(&mut self.by_phone, digits(number), at);
        }
    }

    /// Removes a contact from the indexes for filters, before it is modified.
    pub fn unindex_contact(&mut self, at: u32) {
        let contact = &self.contacts[at as usize];
        if let Some(places) =
            contact.email.as_ref().and_then(|e| self.by_email.get_mut(e.to_lowercase().as_str()))
        {
            places.retain(|place| *place != at);
        }
        for number in [&contact.phone, &contact.mobile].into_iter().flatten() {
            if let Some(places) = self.by_phone.get_mut(digits(number).as_str()) {
                places.retain(|place| *place != at);
            }
        }
    }
}

fn enter(index: &mut HashMap<Box<str>, Vec<u32>>, key: String, at: u32) {
    let places = index.entry(key.into_boxed_str()).or_default();
    // Sorted, so that lists have the order of ids, and without duplicates: phone and mobile are often
    // equal.
    if let Err(place) = places.binary_search(&at) {
        places.insert(place, at);
    }
}

/// Returns the digits of a phone number, which do not depend on its format.
pub fn digits(number: &str) -> String {
    number.chars().filter(char::is_ascii_digit).collect()
}

/// Number of times each kind of write took effect, per chat, contact or agent. Tests of
/// exactly-once semantics read it.
#[derive(Default)]
pub struct Effects {
    counts: BTreeMap<(&'static str, Id), u64>,
}

/// A row of [`Effects`].
#[derive(serde::Serialize)]
pub struct Effect {
    pub effect: &'static str,
    pub id: Id,
    pub count: u64,
}

impl Effects {
    pub fn count(&mut self, effect: &'static str, id: Id) {
        *self.counts.entry((effect, id)).or_default() += 1;
    }

    pub fn all(&self) -> Vec<Effect> {
        self.counts.iter().map(|((effect, id), count)| Effect { effect, id: *id, count: *count }).collect()
    }

    pub fn clear(&mut self) {
        self.counts.clear();
    }
}
