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

    /// The situations that a caller may ask for.
    pub fn requested(name: &str) -> Option<Situation> {
        [Situation::Auto, Situation::WaitForChat, Situation::InChat, Situation::Blocked]
            .into_iter()
            .find(|situation| situation.name() == name)
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

/// The filters of a list of chats; an empty one lets everything through.
#[derive(Default)]
pub struct ChatFilter {
    pub agent: Option<i64>,
    pub department: Option<i64>,
    pub situation: Option<String>,
    pub status: Option<String>,
    pub channel: Option<String>,
}

impl ChatFilter {
    pub fn admits(&self, company: &Company, chat: &Chat) -> bool {
        let is = |wanted: Option<i64>, found: Option<Id>| {
            wanted.is_none_or(|wanted| found.is_some_and(|found| i64::try_from(found) == Ok(wanted)))
        };
        is(self.agent, chat.agent)
            && is(self.department, chat.department)
            && self.situation.as_ref().is_none_or(|wanted| wanted == chat.situation.name())
            && self.status.as_ref().is_none_or(|wanted| wanted == status(chat))
            && self.channel.as_ref().is_none_or(|wanted| company.channel_of(chat).kind.is_called(wanted))
    }
}

fn status(chat: &Chat) -> &'static str {
    if chat.is_open() { "open" } else { "closed" }
}
