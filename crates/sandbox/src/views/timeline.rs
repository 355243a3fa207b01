//! The timeline of a contact: its creation, its chats, their events, and comments.

use super::message::DepartmentOrFalse;
use super::{Numeric, Photo};
use crate::clock::Stamp;
use crate::state::{self, Chat, Comment, Company, Contact, Happening, Id, Mark, State};
use serde::Serialize;

/// A timeline entry. The entry for the contact's creation has no `about`.
#[derive(Serialize)]
pub struct Entry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Numeric<Id>>,
    icon: &'static str,
    text: String,
    title: String,
    time: String,
    photo: Option<Photo>,
    name: &'a str,
    #[serde(flatten)]
    about: Option<About<'a>>,
    #[serde(skip)]
    at: i64,
}

#[derive(Serialize)]
#[allow(non_snake_case)]
struct About<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    channel: Option<&'static str>,
    department: Option<DepartmentOrFalse<'a>>,
    duration: Option<String>,
    situation: Option<&'static str>,
    chatID: Option<Numeric<Id>>,
    deleted: bool,
}

/// Returns the entries of a contact, newest first.
pub fn timeline<'a>(state: &'a State, company: &'a Company, contact: &'a Contact) -> Vec<Entry<'a>> {
    let mut entries = vec![contact_created(company, contact)];
    entries.extend(
        contact
            .chats
            .iter()
            .filter_map(|id| company.any_chat(*id))
            .map(|chat| chat_started(company, contact, chat)),
    );
    entries.extend(contact.happenings.iter().map(|happening| chat_event(state, company, contact, happening)));
    entries.extend(contact.comments.iter().map(|remark| comment(state, company, remark)));
    // The sort is stable, so entries of the same second remain in the order of their kinds.
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.at));
    entries
}

fn contact_created<'a>(company: &'a Company, contact: &Contact) -> Entry<'a> {
    Entry {
        id: None,
        icon: "user-plus",
        text: String::new(),
        title: "Contact created".to_owned(),
        time: Stamp(contact.created_at).day_first(),
        photo: None,
        name: company.name,
        about: None,
        at: contact.created_at,
    }
}

fn chat_started<'a>(company: &'a Company, contact: &'a Contact, chat: &Chat) -> Entry<'a> {
    Entry {
        id: Some(Numeric(chat.id)),
        icon: "comments",
        text: format!("Chat on {}", company.channel_of(chat).name),
        title: "Chat created".to_owned(),
        time: Stamp(chat.created_at).day_first(),
        photo: Photo::of_contact(contact.id, contact.has_photo),
        name: &contact.name,
        about: Some(about_chat(company, chat, "chat.created")),
        at: chat.created_at,
    }
}

fn chat_event<'a>(
    state: &'a State,
    company: &'a Company,
    contact: &'a Contact,
    happening: &Happening,
) -> Entry<'a> {
    let (kind, title) = match happening.mark {
        Mark::Closed => ("chat.closed", "Chat finished"),
        Mark::Reopened => ("chat.reopened", "Chat reopened"),
        Mark::Deleted => ("chat.deleted", "Chat deleted"),
    };
    let by = state.agent(happening.by);
    Entry {
        id: Some(Numeric(happening.id)),
        icon: "comments",
        text: String::new(),
        title: title.to_owned(),
        time: Stamp(happening.at).day_first(),
        photo: by.and_then(|agent| Photo::of_agent(agent.id, agent.has_photo)),
        name: by.map_or(contact.name.as_str(), |agent| &agent.name),
        about: company.any_chat(happening.chat).map(|chat| about_chat(company, chat, kind)),
        at: happening.at,
    }
}

fn about_chat<'a>(company: &'a Company, chat: &Chat, kind: &'static str) -> About<'a> {
    About {
        kind,
        channel: Some(company.channel_of(chat).kind.slug()),
        department: Some(DepartmentOrFalse::new(company, chat)),
        duration: chat.closed_at.map(|closed| duration(closed - chat.created_at)),
        situation: Some(chat.situation.name()),
        chatID: Some(Numeric(chat.id)),
        deleted: chat.deleted,
    }
}

/// Formats a duration as `HH:MM:SS`, with as many digits for the hours as needed.
fn duration(seconds: i64) -> String {
    let seconds = seconds.max(0);
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Returns the representation of a comment.
pub fn comment<'a>(state: &'a State, company: &'a Company, comment: &Comment) -> Entry<'a> {
    let by: Option<&state::Agent> = state.agent(comment.by);
    Entry {
        id: Some(Numeric(comment.id)),
        icon: "comment",
        text: comment.text.clone(),
        title: "Comment".to_owned(),
        time: Stamp(comment.at).day_first(),
        photo: by.and_then(|agent| Photo::of_agent(agent.id, agent.has_photo)),
        name: by.map_or(company.name, |agent| &agent.name),
        about: Some(About {
            kind: "comment.created",
            channel: None,
            department: None,
            duration: None,
            situation: None,
            chatID: None,
            deleted: false,
        }),
        at: comment.at,
    }
}
