//! Messages of a chat. Seeded ones are a function of seed, chat and position and are made when they are looked at, so that a
//! million of them cost nothing until then; the ones written since stand behind them.

use super::Id;
use crate::seed::stock;
use std::borrow::Cow;

/// The kinds of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Text,
    Image,
    Audio,
    Video,
    Document,
    Email,
    Sms,
    InternalEvent,
    Template,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Image => "image",
            Kind::Audio => "audio",
            Kind::Video => "video",
            Kind::Document => "document",
            Kind::Email => "email",
            Kind::Sms => "sms",
            Kind::InternalEvent => "internalEvent",
            Kind::Template => "templateMessage",
        }
    }
}

/// Who wrote a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Party {
    Agent(Id),
    Contact,
    /// The platform itself: flows, thank-you messages.
    System,
}

/// A text, or the recipe of a seeded one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Text {
    Own(Box<str>),
    /// Place in the stock of texts, and the number it mentions.
    Stock(u16, u32),
}

impl Text {
    pub fn own(text: impl Into<Box<str>>) -> Text {
        Text::Own(text.into())
    }

    /// What people read; `name` is the contact's.
    pub fn read(&self, name: &str) -> Cow<'_, str> {
        match self {
            Text::Own(text) => Cow::Borrowed(text),
            Text::Stock(place, number) => stock::text(*place, *number, name),
        }
    }
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    pub id: Id,
    pub from: Party,
    pub kind: Kind,
    /// Not sent to the contact.
    pub internal: bool,
    pub text: Text,
    pub file: Option<Box<str>>,
    pub sent_at: i64,
    pub read_at: Option<i64>,
    /// What an internal event records.
    pub event: Option<&'static str>,
}

/// A message about to be written.
pub struct Draft {
    pub from: Party,
    pub kind: Kind,
    pub internal: bool,
    pub text: Text,
    pub file: Option<Box<str>>,
    pub event: Option<&'static str>,
}

impl Draft {
    /// A message that is only text.
    pub fn text(from: Party, internal: bool, text: impl Into<Box<str>>) -> Draft {
        Draft { from, kind: Kind::Text, internal, text: Text::own(text), file: None, event: None }
    }

    /// A record of something that happened, which the contact is not shown.
    pub fn event(by: Party, event: &'static str, text: String) -> Draft {
        Draft { kind: Kind::InternalEvent, event: Some(event), ..Draft::text(by, true, text) }
    }

    /// What the effect of writing it is called; events tell of other effects and are none themselves.
    pub fn effect(&self) -> Option<&'static str> {
        match (self.kind, self.from) {
            (Kind::InternalEvent, _) => None,
            (_, Party::System) => Some("automatic message"),
            (_, Party::Contact) => Some("inbound message"),
            (_, Party::Agent(_)) if self.internal => Some("note"),
            (_, Party::Agent(_)) => Some("message"),
        }
    }
}

/// The seeded messages of one chat.
#[derive(Clone, Copy)]
pub struct Seeded {
    pub seed: u64,
    pub chat: Id,
    pub first_id: Id,
    pub count: u32,
    pub from_at: i64,
    /// Seconds between two messages.
    pub pace: i64,
    pub agent: Option<Id>,
    /// Whether texts are sent as e-mail, as SMS or as chat text.
    pub kind: Kind,
    /// How many of the newest are unread messages of the contact.
    pub unread: u32,
}

/// All messages of a chat, oldest first.
pub struct Messages {
    seeded: Seeded,
    /// When the unread ones among the seeded were read.
    read_at: Option<i64>,
    written: Vec<Message>,
}

impl Messages {
    pub fn seeded(seeded: Seeded) -> Messages {
        Messages { seeded, read_at: None, written: Vec::new() }
    }

    /// For a chat that begins now.
    pub fn none() -> Messages {
        let seeded = Seeded {
            seed: 0,
            chat: 0,
            first_id: 0,
            count: 0,
            from_at: 0,
            pace: 0,
            agent: None,
            kind: Kind::Text,
            unread: 0,
        };
        Messages::seeded(seeded)
    }

    pub fn len(&self) -> usize {
        self.seeded.count as usize + self.written.len()
    }

    /// The message at a position, oldest first.
    pub fn get(&self, at: usize) -> Option<Message> {
        let seeded = self.seeded.count as usize;
        if at >= seeded {
            return self.written.get(at - seeded).cloned();
        }
        let mut message = stock::message(&self.seeded, at as u32);
        if message.read_at.is_none() && message.from == Party::Contact {
            message.read_at = self.read_at;
        }
        Some(message)
    }

    /// The newest, if there is any.
    pub fn last(&self) -> Option<Message> {
        self.len().checked_sub(1).and_then(|at| self.get(at))
    }

    /// The messages, newest first. What is skipped costs nothing.
    pub fn newest_first(&self, skip: usize) -> impl Iterator<Item = Message> + '_ {
        (0..self.len()).rev().skip(skip).filter_map(|at| self.get(at))
    }

    pub fn push(&mut self, message: Message) {
        self.written.push(message);
    }

    /// Marks what the contact wrote as read.
    pub fn read_all(&mut self, now: i64) {
        self.read_at.get_or_insert(now);
        for message in self.written.iter_mut().filter(|m| m.from == Party::Contact) {
            message.read_at.get_or_insert(now);
        }
    }
}
