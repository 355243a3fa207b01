//! The representation of the state in v2.

use super::contact::messenger_id;
use super::message::{Common, DepartmentOrFalse};
use super::{Channel, CustomValues, Numeric, Person, Reach, channels};
use crate::clock::Stamp;
use crate::state::{self, ChannelKind, Company, Id, State};
use serde::ser::{Serialize, SerializeSeq, Serializer};

/// An entry of the list of agents.
#[derive(serde::Serialize)]
pub struct AgentItem<'a> {
    pub id: Id,
    pub name: &'a str,
}

/// An agent.
#[derive(serde::Serialize)]
pub struct AgentDetail<'a> {
    id: Numeric<Id>,
    name: &'a str,
    email: &'a str,
    login: &'a str,
    #[serde(rename = "type")]
    role: i64,
    phone: Option<&'a str>,
}

impl<'a> AgentDetail<'a> {
    pub fn new(agent: &'a state::Agent) -> AgentDetail<'a> {
        AgentDetail {
            id: Numeric(agent.id),
            name: &agent.name,
            email: &agent.login,
            login: &agent.login,
            role: agent.role as i64,
            phone: agent.phone.as_deref(),
        }
    }
}

/// A contact. `channels` is only present in the representation of a single contact.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Contact<'a> {
    id: Numeric<Id>,
    name: &'a str,
    email: Option<&'a str>,
    mobile: Option<&'a str>,
    phone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    birthday: Option<&'a str>,
    custom_fields: CustomFields<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<Reach>,
}

/// Custom values: an empty array if there are none, otherwise an object from tokens to values.
struct CustomFields<'a>(&'a Company, &'a [(u16, String)]);

impl Serialize for CustomFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.1.is_empty() {
            return serializer.serialize_seq(Some(0))?.end();
        }
        CustomValues::by_token(self.0, self.1).serialize(serializer)
    }
}

impl<'a> Contact<'a> {
    pub fn item(company: &'a Company, contact: &'a state::Contact) -> Contact<'a> {
        Contact {
            id: Numeric(contact.id),
            name: &contact.name,
            email: contact.email.as_deref(),
            mobile: contact.mobile.as_deref(),
            phone: contact.phone.as_deref(),
            birthday: contact.birth_date.as_deref(),
            custom_fields: CustomFields(company, &contact.custom),
            channels: None,
        }
    }

    pub fn detail(company: &'a Company, contact: &'a state::Contact) -> Contact<'a> {
        Contact { channels: Some(Reach::new(contact)), ..Contact::item(company, contact) }
    }
}

/// A chat. The workflow is only present in the answer to its creation.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Chat<'a> {
    id: Id,
    agent_id: Option<Id>,
    second_agent_id: Option<Id>,
    contact_id: Id,
    site_customer_id: Option<Id>,
    messenger_id: Option<Id>,
    department_id: Option<Id>,
    tabulation_id: Option<Id>,
    channels: [Channel<'a>; 1],
    queue_number: Option<u64>,
    created_at: Stamp,
    updated_at: Stamp,
    attended_at: Option<Stamp>,
    closed_at: Option<Stamp>,
    #[serde(flatten)]
    workflow: Option<Workflow>,
}

#[derive(serde::Serialize)]
#[allow(non_snake_case)]
struct Workflow {
    workflowID: Option<Id>,
    workflowStepID: Option<Id>,
}

impl<'a> Chat<'a> {
    pub fn new(company: &'a Company, chat: &'a state::Chat) -> Chat<'a> {
        let kind = company.channel_of(chat).kind;
        Chat {
            id: chat.id,
            agent_id: chat.agent,
            second_agent_id: chat.second_agent,
            contact_id: chat.contact,
            site_customer_id: (kind == ChannelKind::Widget).then_some(chat.contact),
            messenger_id: messenger_id(company.contact_of(chat)).filter(|_| kind == ChannelKind::Messenger),
            department_id: chat.department,
            tabulation_id: chat.tabulation,
            channels: channels(company, chat),
            queue_number: chat.queue_number,
            created_at: Stamp(chat.created_at),
            updated_at: Stamp(chat.updated_at),
            attended_at: chat.attended_at.map(Stamp),
            closed_at: chat.closed_at.map(Stamp),
            workflow: None,
        }
    }

    pub fn newly_created(company: &'a Company, chat: &'a state::Chat) -> Chat<'a> {
        let workflow = chat.step.and_then(|step| company.step(step)).map(|step| step.workflow);
        let workflow = Workflow { workflowID: workflow, workflowStepID: chat.step };
        Chat { workflow: Some(workflow), ..Chat::new(company, chat) }
    }
}

/// A message.
#[derive(serde::Serialize)]
pub struct Message<'a> {
    id: Id,
    body: String,
    is_internal: bool,
    is_email: bool,
    sender: Person<'a>,
    #[serde(rename = "senderType")]
    sender_type: &'static str,
    receiver: Person<'a>,
    #[serde(rename = "receiverType")]
    receiver_type: &'static str,
    file: Option<Box<str>>,
    channel: &'static str,
    customer: Person<'a>,
    chat: MessageChat<'a>,
    send_at: Stamp,
    read_at: Option<Stamp>,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "eventType")]
    event_type: Option<&'static str>,
}

#[derive(serde::Serialize)]
struct MessageChat<'a> {
    id: Id,
    channel: &'static str,
    situation: &'static str,
    department: DepartmentOrFalse<'a>,
    customer: Person<'a>,
}

/// Returns the representation of a message.
pub fn message<'a>(
    state: &'a State,
    company: &'a Company,
    chat: &'a state::Chat,
    message: state::Message,
) -> Message<'a> {
    let channel = company.channel_of(chat).kind.slug();
    let common = Common::of(state, company, chat, &message);
    Message {
        id: message.id,
        body: common.text,
        is_internal: message.internal,
        is_email: common.is_email,
        sender: common.sender,
        sender_type: common.sender_type,
        receiver: common.receiver,
        receiver_type: common.receiver_type,
        file: message.file,
        channel,
        customer: Person::customer(company, chat),
        chat: MessageChat {
            id: chat.id,
            channel,
            situation: chat.situation.name(),
            department: DepartmentOrFalse::new(company, chat),
            customer: Person::customer(company, chat),
        },
        send_at: Stamp(message.sent_at),
        read_at: message.read_at.map(Stamp),
        kind: message.kind.name(),
        event_type: message.event,
    }
}

/// The answer to a satisfaction survey.
#[derive(serde::Serialize)]
pub struct Feedback<'a> {
    score: Numeric<u8>,
    text: &'a str,
}

impl<'a> Feedback<'a> {
    pub fn new(survey: &'a state::Survey) -> Feedback<'a> {
        Feedback { score: Numeric(survey.score), text: &survey.text }
    }
}

/// The outcome of a flow execution.
#[derive(serde::Serialize)]
pub struct FlowResult {
    pub reason: String,
    #[serde(rename = "chatID")]
    pub chat_id: Id,
}
