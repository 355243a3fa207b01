//! The representation of chats in v3, and small answers about a chat.

use super::agent::is_online;
use super::message::{Department, Person};
use super::{CustomValues, Numeric, Photo};
use crate::clock::Stamp;
use crate::state::{self, Company, Id, Kind, Party, State};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// A chat.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Chat<'a> {
    id: Id,
    agent_id: Option<Id>,
    second_agent_id: Option<Id>,
    contact_id: Id,
    department_id: Option<Id>,
    tabulation_id: Option<Id>,
    chat_tabulation: Option<Tabulation<'a>>,
    last_message: LastMessage<'a>,
    chat_department: Option<Department<'a>>,
    unread: u32,
    channels: [Channel<'a>; 1],
    chat_customer: Customer<'a>,
    queue_number: Option<u64>,
    situation: &'static str,
    created_at: Stamp,
    updated_at: Stamp,
    attended_at: Option<Stamp>,
    closed_at: Option<Stamp>,
    state: &'static str,
    channel: &'static str,
    agents: Vec<Attending<'a>>,
}

#[derive(Serialize)]
struct Tabulation<'a> {
    id: Numeric<Id>,
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LastMessage<'a> {
    text: Cow<'a, str>,
    file: Option<Box<str>>,
    send_at: Stamp,
    sender_type: &'static str,
    sender: Person<'a>,
}

/// A channel of a chat.
#[derive(Serialize)]
pub struct Channel<'a> {
    uuid: &'a str,
    id: Numeric<Id>,
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Customer<'a> {
    id: Numeric<Id>,
    name: &'a str,
    mobile: Option<&'a str>,
    phone: Option<&'a str>,
    email: Option<&'a str>,
    photo: Option<Photo>,
    custom_fields: CustomValues<'a>,
}

#[derive(Serialize)]
#[allow(non_snake_case)]
struct Attending<'a> {
    id: Id,
    name: &'a str,
    mobile: Option<&'a str>,
    phone: Option<&'a str>,
    email: &'a str,
    photo: Option<Photo>,
    isActive: bool,
    isOnline: bool,
    isAvailable: bool,
    photo_url: Option<Photo>,
}

/// Returns the representation of a chat.
pub fn chat<'a>(state: &'a State, company: &'a Company, chat: &'a state::Chat) -> Chat<'a> {
    let last = chat.messages.last();
    Chat {
        id: chat.id,
        agent_id: chat.agent,
        second_agent_id: chat.second_agent,
        contact_id: chat.contact,
        department_id: chat.department,
        tabulation_id: chat.tabulation,
        chat_tabulation: tabulation(company, chat),
        chat_department: Department::new(company, chat),
        unread: chat.unread,
        channels: channels(company, chat),
        chat_customer: customer(company, chat),
        queue_number: chat.queue_number,
        situation: chat.situation.name(),
        created_at: Stamp(chat.created_at),
        updated_at: Stamp(chat.updated_at),
        attended_at: chat.attended_at.map(Stamp),
        closed_at: chat.closed_at.map(Stamp),
        state: match &last {
            Some(message)
                if matches!(message.from, Party::Agent(_)) && message.kind != Kind::InternalEvent =>
            {
                "answered"
            }
            _ => "without_answer",
        },
        channel: company.channel_of(chat).kind.slug(),
        agents: [chat.agent, chat.second_agent]
            .into_iter()
            .flatten()
            .filter_map(|id| attending(state, id))
            .collect(),
        last_message: last_message(state, company, chat, last),
    }
}

fn tabulation<'a>(company: &'a Company, chat: &state::Chat) -> Option<Tabulation<'a>> {
    let tabulation = company.tabulation(chat.tabulation?)?;
    Some(Tabulation { id: Numeric(tabulation.id), name: &tabulation.name })
}

fn last_message<'a>(
    state: &'a State,
    company: &'a Company,
    chat: &'a state::Chat,
    last: Option<state::Message>,
) -> LastMessage<'a> {
    let contact = company.contact_of(chat);
    let Some(last) = last else {
        // Every chat starts with an event, so this is only a fallback.
        return LastMessage {
            text: Cow::Borrowed(""),
            file: None,
            send_at: Stamp(chat.created_at),
            sender_type: "system",
            sender: Person::system(company),
        };
    };
    LastMessage {
        text: Cow::Owned(last.text.render(&contact.name).into_owned()),
        file: last.file,
        send_at: Stamp(last.sent_at),
        sender_type: super::message::party_type(last.from, company.channel_of(chat).kind),
        sender: Person::short(state, company, chat, last.from),
    }
}

/// Returns the channels of a chat, of which there is exactly one.
pub fn channels<'a>(company: &'a Company, chat: &state::Chat) -> [Channel<'a>; 1] {
    let channel = company.channel_of(chat);
    [Channel {
        uuid: &channel.uuid,
        id: Numeric(channel.id),
        name: &channel.name,
        kind: channel.kind.type_name(),
    }]
}

fn customer<'a>(company: &'a Company, chat: &state::Chat) -> Customer<'a> {
    let contact = company.contact_of(chat);
    Customer {
        id: Numeric(contact.id),
        name: &contact.name,
        mobile: contact.mobile.as_deref(),
        phone: contact.phone.as_deref(),
        email: contact.email.as_deref(),
        photo: Photo::of_contact(contact.id, contact.has_photo),
        custom_fields: CustomValues::by_name(company, &contact.custom),
    }
}

fn attending(state: &State, id: Id) -> Option<Attending<'_>> {
    let agent = state.agent(id)?;
    let photo = Photo::of_agent(agent.id, agent.has_photo);
    Some(Attending {
        id: agent.id,
        name: &agent.name,
        mobile: agent.mobile.as_deref(),
        phone: agent.phone.as_deref(),
        email: &agent.login,
        photo,
        isActive: agent.active,
        isOnline: is_online(agent),
        isAvailable: agent.presence.is_available(),
        photo_url: photo,
    })
}

/// A tag of a chat.
#[derive(Serialize)]
pub struct ChatTag<'a> {
    id: Numeric<Id>,
    name: &'a str,
}

/// Returns the tags of a chat, in the order of their addition.
pub fn tags<'a>(company: &'a Company, chat: &'a state::Chat) -> impl Iterator<Item = ChatTag<'a>> {
    let tag = |id: &Id| company.tags.iter().find(|tag| tag.id == *id);
    chat.tags.iter().filter_map(tag).map(|tag| ChatTag { id: Numeric(tag.id), name: &tag.name })
}

/// A short representation of an agent of a chat.
#[derive(Serialize)]
pub struct Member<'a> {
    name: &'a str,
    id: Id,
}

/// Returns the agents of a chat.
pub fn members<'a>(state: &'a State, chat: &'a state::Chat) -> impl Iterator<Item = Member<'a>> {
    let agents = [chat.agent, chat.second_agent].into_iter().flatten();
    agents.filter_map(|id| state.agent(id)).map(|agent| Member { name: &agent.name, id: agent.id })
}

/// The answer to a transfer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Transfer {
    customer_id: Numeric<Id>,
    chat_id: Id,
}

impl Transfer {
    pub fn new(chat: &state::Chat) -> Transfer {
        Transfer { customer_id: Numeric(chat.contact), chat_id: chat.id }
    }
}

/// The variables that flows and texts can refer to.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextVariables {
    id: Id,
    customer_id: Id,
    context_variables: Map<String, Value>,
}

/// Returns the context variables of a chat.
pub fn context_variables(state: &State, company: &Company, chat: &state::Chat) -> ContextVariables {
    let channel = company.channel_of(chat);
    let contact = company.contact_of(chat);
    let hello = match state.now.rem_euclid(86_400) / 3600 {
        5..12 => "Good morning",
        12..18 => "Good afternoon",
        _ => "Good evening",
    };
    let agent = chat.agent.and_then(|id| state.agent(id));
    let variables = json!({
        "svc.time_hello": hello,
        "svc.chat.id": chat.id,
        "svc.chat.agent.name": agent.map(|agent| &agent.name),
        "svc.chat.agent.email": agent.map(|agent| &agent.login),
        "svc.chat.company.id": company.id,
        "svc.chat.company.name": company.name,
        "svc.chat.company.created_at": Stamp(company.created_at).to_string(),
        "svc.chat.channel.type": channel.kind.type_name(),
        "svc.chat.customer.name": contact.name,
        "svc.chat.customer.email": contact.email,
        "svc.chat.customer.mobile": contact.mobile,
    });
    let Value::Object(context_variables) = variables else { unreachable!("the literal above is an object") };
    ContextVariables { id: chat.id, customer_id: chat.contact, context_variables }
}

/// The answer to an assignment.
#[derive(Serialize)]
#[allow(non_snake_case)]
pub struct Assignment<'a> {
    messages: Vec<super::Message<'a>>,
    chatID: Id,
    emailID: Option<Id>,
    callStatus: &'static str,
    callQueue: Option<&'static str>,
    callNumber: Option<&'static str>,
    page_current: u64,
    formSvcChat: Map<String, Value>,
    contextVariables: [ContextVariables; 1],
}

/// Returns an assigned chat with the first page of its messages.
pub fn assignment<'a>(state: &'a State, company: &'a Company, chat: &'a state::Chat) -> Assignment<'a> {
    let newest = chat.messages.newest_first(0).take(crate::call::PAGE);
    Assignment {
        messages: newest.map(|message| super::message(state, company, chat, message)).collect(),
        chatID: chat.id,
        emailID: None,
        callStatus: "",
        callQueue: None,
        callNumber: None,
        page_current: 0,
        formSvcChat: Map::new(),
        contextVariables: [context_variables(state, company, chat)],
    }
}
