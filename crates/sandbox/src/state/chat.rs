//! A conversation between a contact and agents on a channel.

use super::{Company, Id, Messages};

/// The state of a chat.
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

    /// Returns the situation with this name.
    pub fn by_name(name: &str) -> Option<Situation> {
        let all = [
            Situation::Auto,
            Situation::WaitForChat,
            Situation::InChat,
            Situation::Blocked,
            Situation::Finishing,
        ];
        all.into_iter().find(|situation| situation.name() == name)
    }

    /// Returns the situation with this name, if callers may request it.
    pub fn parse_requested(name: &str) -> Option<Situation> {
        // Finishing has a call of its own, which also sets the time and the timeline.
        Situation::by_name(name).filter(|situation| *situation != Situation::Finishing)
    }
}

/// A contact's answer to the satisfaction survey.
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
    /// Index of the channel in the company's list.
    pub channel: u16,
    pub situation: Situation,
    pub queue_number: Option<u64>,
    pub unread: u32,
    pub created_at: i64,
    pub updated_at: i64,
    pub attended_at: Option<i64>,
    /// Set if and only if the chat is closed.
    pub closed_at: Option<i64>,
    /// Ids of the company's tags.
    pub tags: Vec<Id>,
    /// The running flow.
    pub flow: Option<Id>,
    pub step: Option<Id>,
    pub survey: Option<Survey>,
    /// Locked by control: every call that refers to the chat answers 423.
    pub locked: bool,
    pub deleted: bool,
    pub messages: Messages,
}

impl Chat {
    pub fn is_open(&self) -> bool {
        self.closed_at.is_none()
    }
}

/// The filters of a list of chats, as received in a query. Absent filters match every chat.
#[derive(Default)]
pub struct ChatQuery {
    pub agent: Option<i64>,
    pub department: Option<i64>,
    pub situation: Option<String>,
    pub status: Option<String>,
    pub channel: Option<String>,
}

/// A [`ChatQuery`] with resolved names, so that matching a chat only compares numbers.
#[derive(Default)]
pub struct ChatFilter {
    agent: Option<Id>,
    department: Option<Id>,
    situation: Option<Situation>,
    open: Option<bool>,
    /// A bit for the index of each requested channel.
    channels: Option<u32>,
}

impl ChatQuery {
    /// Resolves the filter. Returns `None` if a value matches no chat.
    pub fn filter(&self, company: &Company) -> Option<ChatFilter> {
        Some(ChatFilter {
            agent: id(self.agent)?,
            department: id(self.department)?,
            situation: self
                .situation
                .as_deref()
                .map(|name| Situation::by_name(name).ok_or(()))
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
    // A bit set, because `whatsapp` means two kinds, and matching runs for every chat of a large company.
    called.fold(0, |bits, (place, _)| bits | 1 << place)
}

impl ChatFilter {
    /// Returns whether the filter matches every chat.
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
