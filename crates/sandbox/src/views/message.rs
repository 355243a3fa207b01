//! The representation of messages in v3, and of their senders and receivers.

use super::agent::is_online;
use super::{CustomValues, Photo};
use crate::clock::Stamp;
use crate::state::{self, ChannelKind, Company, Id, Kind, Party, State};
use serde::Serialize;
use std::borrow::Cow;

/// A sender or receiver.
#[derive(Serialize)]
#[allow(non_snake_case)]
pub struct Person<'a> {
    id: Option<Id>,
    name: &'a str,
    mobile: Option<&'a str>,
    phone: Option<&'a str>,
    email: Option<&'a str>,
    photo: Option<Photo>,
    #[serde(flatten)]
    status: Option<PersonStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_fields: Option<CustomValues<'a>>,
}

/// Additional fields of agents.
#[derive(Serialize)]
#[allow(non_snake_case)]
struct PersonStatus {
    isActive: bool,
    isOnline: bool,
    isAvailable: bool,
    statusID: i64,
    statusType: i64,
}

impl<'a> Person<'a> {
    /// Returns the platform as a person without an id.
    pub fn system(company: &'a Company) -> Person<'a> {
        Person {
            id: None,
            name: company.name,
            mobile: None,
            phone: None,
            email: None,
            photo: None,
            status: None,
            custom_fields: None,
        }
    }

    fn contact(contact: &'a state::Contact) -> Person<'a> {
        Person {
            id: Some(contact.id),
            name: &contact.name,
            mobile: contact.mobile.as_deref(),
            phone: contact.phone.as_deref(),
            email: contact.email.as_deref(),
            photo: Photo::of_contact(contact.id, contact.has_photo),
            status: None,
            custom_fields: None,
        }
    }

    /// Returns the six fields common to all parties.
    pub fn short(state: &'a State, company: &'a Company, chat: &'a state::Chat, party: Party) -> Person<'a> {
        match party {
            Party::Contact => Person::contact(company.contact_of(chat)),
            Party::System => Person::system(company),
            Party::Agent(id) => match state.agent(id) {
                None => Person::system(company),
                Some(agent) => Person {
                    id: Some(agent.id),
                    name: &agent.name,
                    mobile: agent.mobile.as_deref(),
                    phone: agent.phone.as_deref(),
                    email: Some(&agent.login),
                    photo: Photo::of_agent(agent.id, agent.has_photo),
                    status: None,
                    custom_fields: None,
                },
            },
        }
    }

    fn sender(state: &'a State, company: &'a Company, chat: &'a state::Chat, party: Party) -> Person<'a> {
        let mut person = Person::short(state, company, chat, party);
        if let Party::Agent(id) = party
            && let Some(agent) = state.agent(id)
        {
            let status = agent.presence as i64;
            person.status = Some(PersonStatus {
                isActive: agent.active,
                isOnline: is_online(agent),
                isAvailable: agent.presence.is_available(),
                statusID: status,
                statusType: status,
            });
        }
        person
    }

    /// Returns the receiver of a message. For messages of agents and the platform, it is the
    /// contact with its custom fields; for messages of the contact, it is the chat's agent, or else
    /// the company.
    fn receiver(state: &'a State, company: &'a Company, chat: &'a state::Chat, from: Party) -> Person<'a> {
        match (from, chat.agent) {
            (Party::Contact, Some(agent)) => Person::short(state, company, chat, Party::Agent(agent)),
            (Party::Contact, None) => Person::system(company),
            _ => {
                let contact = company.contact_of(chat);
                let mut person = Person::contact(contact);
                person.custom_fields =
                    (!contact.custom.is_empty()).then(|| CustomValues::by_name(company, &contact.custom));
                person
            }
        }
    }
}

/// Returns the `senderType` or `receiverType` of a party.
pub fn party_type(party: Party, channel: ChannelKind) -> &'static str {
    match party {
        Party::Agent(_) => "agent",
        Party::Contact => channel.slug(),
        Party::System => "system",
    }
}

fn receiver_type(from: Party, chat: &state::Chat, channel: ChannelKind) -> &'static str {
    match (from, chat.agent) {
        (Party::Contact, Some(_)) => "agent",
        (Party::Contact, None) => "system",
        _ => channel.slug(),
    }
}

/// A department.
#[derive(Serialize)]
pub struct Department<'a> {
    id: Id,
    name: &'a str,
}

impl<'a> Department<'a> {
    pub fn new(company: &'a Company, chat: &state::Chat) -> Option<Department<'a>> {
        let department = company.department(chat.department?)?;
        Some(Department { id: department.id, name: &department.name })
    }
}

/// A department, or `false` if there is none.
#[derive(Serialize)]
#[serde(untagged)]
pub enum DepartmentOrFalse<'a> {
    Set(Department<'a>),
    Unset(bool),
}

impl<'a> DepartmentOrFalse<'a> {
    pub fn new(company: &'a Company, chat: &state::Chat) -> DepartmentOrFalse<'a> {
        Department::new(company, chat).map_or(DepartmentOrFalse::Unset(false), DepartmentOrFalse::Set)
    }
}

#[derive(Serialize)]
#[allow(non_snake_case)]
struct MessageChat<'a> {
    id: Id,
    channel: &'static str,
    situation: &'static str,
    department: DepartmentOrFalse<'a>,
    customer: Person<'a>,
    workflowID: Option<Id>,
    workflowStepID: Option<Id>,
}

/// A message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Message<'a> {
    id: Id,
    text: String,
    is_internal: bool,
    is_email: bool,
    sender: Person<'a>,
    sender_type: &'static str,
    receiver: Person<'a>,
    receiver_type: &'static str,
    file: Option<Box<str>>,
    chat: MessageChat<'a>,
    send_at: Stamp,
    read_at: Option<Stamp>,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    can_enable_session: Option<bool>,
}

/// Returns the representation of a message.
pub fn message<'a>(
    state: &'a State,
    company: &'a Company,
    chat: &'a state::Chat,
    message: state::Message,
) -> Message<'a> {
    let channel = company.channel_of(chat).kind;
    let common = Common::of(state, company, chat, &message);
    Message {
        id: message.id,
        text: common.text,
        is_internal: message.internal,
        is_email: common.is_email,
        sender: common.sender,
        sender_type: common.sender_type,
        receiver: common.receiver,
        receiver_type: common.receiver_type,
        file: message.file,
        chat: MessageChat {
            id: chat.id,
            channel: channel.slug(),
            situation: chat.situation.name(),
            department: DepartmentOrFalse::new(company, chat),
            customer: Person::contact(company.contact_of(chat)),
            workflowID: chat.step.and_then(|step| company.step(step)).map(|step| step.workflow),
            workflowStepID: chat.step,
        },
        send_at: Stamp(message.sent_at),
        read_at: message.read_at.map(Stamp),
        kind: message.kind.name(),
        can_enable_session: None,
    }
}

/// Returns the representation of a message that was just sent.
pub fn sent<'a>(
    state: &'a State,
    company: &'a Company,
    chat: &'a state::Chat,
    sent: state::Message,
) -> Message<'a> {
    let day_ago = sent.sent_at - 86_400;
    let app = company.channel_of(chat).kind.is_messaging_app();
    let heard = |m: &state::Message| {
        m.from == Party::Contact && m.kind != Kind::InternalEvent && m.sent_at >= day_ago
    };
    // One page is enough for a day of most chats and bounds the work.
    let recent = chat.messages.newest_first(0).take(crate::call::PAGE);
    let can_enable_session = app && !recent.into_iter().any(|m| heard(&m));
    Message { can_enable_session: Some(can_enable_session), ..message(state, company, chat, sent) }
}

/// Fields that both versions contain under different names.
pub struct Common<'a> {
    pub text: String,
    pub is_email: bool,
    pub sender: Person<'a>,
    pub sender_type: &'static str,
    pub receiver: Person<'a>,
    pub receiver_type: &'static str,
}

impl<'a> Common<'a> {
    pub fn of(
        state: &'a State,
        company: &'a Company,
        chat: &'a state::Chat,
        message: &state::Message,
    ) -> Common<'a> {
        let channel = company.channel_of(chat).kind;
        Common {
            text: Cow::into_owned(message.text.render(&company.contact_of(chat).name)),
            is_email: message.kind == Kind::Email,
            sender: Person::sender(state, company, chat, message.from),
            sender_type: party_type(message.from, channel),
            receiver: Person::receiver(state, company, chat, message.from),
            receiver_type: receiver_type(message.from, chat, channel),
        }
    }
}

impl<'a> Person<'a> {
    /// Returns the contact of a chat, without custom fields.
    pub fn customer(company: &'a Company, chat: &state::Chat) -> Person<'a> {
        Person::contact(company.contact_of(chat))
    }
}
