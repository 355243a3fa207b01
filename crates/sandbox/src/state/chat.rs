//! A conversation between a contact and agents on a channel.

use super::{Company, Id, Messages};

/// Where a chat stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Situation {
    Auto,
    WaitForChat,
    InChat,
    Blocked,
    /// Closed.
    Finishing,
}

impl Situation {
    pub fn name(self) -> &'static str {
        match self {
            Situation::Auto => "auto",
            Situation::WaitForChat => "wait_for_chat",
            Situation::InChat => "in_chat",
            Situation::Blocked => "blocked",
            Situation::Finishing => "finishing",
        }
    }

    /// The situation with that name.
    pub fn named(name: &str) -> Option<Situation> {
        let all = [
            Situation::Auto,
            Situation::WaitForChat,
            Situation::InChat,
            Situation::Blocked,
            Situation::Finishing,
        ];
        all.into_iter().find(|situation| situation.name() == name)
    }

    /// One of the situations that a caller may ask for.
    pub fn requested(name: &str) -> Option<Situation> {
        Situation::named(name).filter(|situation| *situation != Situation::Finishing)
    }
}

/// The answer of a contact to the satisfaction survey.
#[derive(Clone)]
pub struct Survey {
    pub score: u8,
    pub text: String,
}

/// A chat.
pub struct Chat {
    pub id: Id,
    pub contact: Id,
    pub agent: Option<Id>,
    pub second_agent: Option<Id>,
    pub department: Option<Id>,
    pub tabulation: Option<Id>,
    /// Place in the company's channels.
    pub channel: u16,
    pub situation: Situation,
    pub queue_number: Option<u64>,
    pub unread: u32,
    pub created_at: i64,
    pub updated_at: i64,
    pub attended_at: Option<i64>,
    /// Set exactly while the chat is closed.
    pub closed_at: Option<i64>,
    /// Ids of the company's tags.
    pub tags: Vec<Id>,
    /// The flow in process.
    pub flow: Option<Id>,
    pub step: Option<Id>,
    pub survey: Option<Survey>,
    /// Locked by control: every call that names it answers 423.
    pub locked: bool,
    pub deleted: bool,
    pub messages: Messages,
}

impl Chat {
    pub fn is_open(&self) -> bool {
        self.closed_at.is_none()
    }
}

/// The filters of a list of chats, as they come from a query. What is not given lets everything through.
#[derive(Default)]
pub struct ChatQuery {
    pub agent: Option<i64>,
    pub department: Option<i64>,
    pub situation: Option<String>,
    pub status: Option<String>,
    pub channel: Option<String>,
}

/// The same, looked up once, so that trying a chat compares numbers only.
#[derive(Default)]
pub struct ChatFilter {
    agent: Option<Id>,
    department: Option<Id>,
    situation: Option<Situation>,
    open: Option<bool>,
    /// A bit for each wanted place of the company's channels.
    channels: Option<u32>,
}

impl ChatQuery {
    /// The filter; nothing where a value is wanted that no chat can have.
    pub fn filter(&self, company: &Company) -> Option<ChatFilter> {
        Some(ChatFilter {
            agent: id(self.agent)?,
            department: id(self.department)?,
            situation: self
                .situation
                .as_deref()
                .map(|name| Situation::named(name).ok_or(()))
                .transpose()
                .ok()?,
            open: match self.status.as_deref() {
                None => None,
                Some("open") => Some(true),
                Some("closed") => Some(false),
                Some(_) => return None,
            },
            channels: self.channel.as_deref().map(|name| channels(company, name)),
        })
    }
}

fn id(wanted: Option<i64>) -> Option<Option<Id>> {
    wanted.map(Id::try_from).transpose().ok()
}

fn channels(company: &Company, name: &str) -> u32 {
    let called = company.channels.iter().enumerate().filter(|(_, channel)| channel.kind.is_called(name));
    called.fold(0, |bits, (place, _)| bits | 1 << place)
}

impl ChatFilter {
    /// Whether it lets everything through.
    pub fn admits_all(&self) -> bool {
        let ids = self.agent.is_none() && self.department.is_none();
        ids && self.situation.is_none() && self.open.is_none() && self.channels.is_none()
    }

    pub fn admits(&self, chat: &Chat) -> bool {
        (self.agent.is_none() || self.agent == chat.agent)
            && (self.department.is_none() || self.department == chat.department)
            && self.situation.is_none_or(|wanted| wanted == chat.situation)
            && self.open.is_none_or(|wanted| wanted == chat.is_open())
            && self.channels.is_none_or(|wanted| wanted >> chat.channel & 1 == 1)
    }
}
