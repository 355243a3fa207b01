//! Messages of a chat. Seeded ones are computed on access from seed, chat and position, so that a
//! million of them need no memory. Messages written later follow them in a list.

use super::Id;
use crate::seed::stock;
use std::borrow::Cow;

/// The kind of a message.
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

/// The author of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Party {
    Agent(Id),
    Contact,
    /// The platform itself: flows, thank-you messages.
    System,
}

/// A text, or a reference to a seeded one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Text {
    Own(Box<str>),
    /// Index in the stock of texts, and the number to insert.
    Stock(u16, u32),
}

impl Text {
    pub fn own(text: impl Into<Box<str>>) -> Text {
        Text::Own(text.into())
    }

    /// Returns the rendered text. `name` is the contact's name.
    pub fn render(&self, name: &str) -> Cow<'_, str> {
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
    /// Whether the message is hidden from the contact.
    pub internal: bool,
    pub text: Text,
    pub file: Option<Box<str>>,
    pub sent_at: i64,
    pub read_at: Option<i64>,
    /// The kind of an internal event.
    pub event: Option<&'static str>,
}

/// A message to be written.
pub struct Draft {
    pub from: Party,
    pub kind: Kind,
    pub internal: bool,
    pub text: Text,
    pub file: Option<Box<str>>,
    pub event: Option<&'static str>,
}

impl Draft {
    /// Creates a text message.
    pub fn text(from: Party, internal: bool, text: impl Into<Box<str>>) -> Draft {
        Draft { from, kind: Kind::Text, internal, text: Text::own(text), file: None, event: None }
    }

    /// Creates an internal event, which is hidden from the contact.
    pub fn event(by: Party, event: &'static str, text: String) -> Draft {
        Draft { kind: Kind::InternalEvent, event: Some(event), ..Draft::text(by, true, text) }
    }

    /// Returns the effect that is counted for this message. Internal events accompany other effects
    /// and are not counted.
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
    /// Kind of the texts: email, SMS or chat text.
    pub kind: Kind,
    /// Number of latest messages that are unread, all of them from the contact.
    pub unread: u32,
}

/// All messages of a chat, oldest first.
pub struct Messages {
    seeded: Seeded,
    /// The time at which the unread seeded messages were read.
    read_at: Option<i64>,
    written: Vec<Message>,
}

impl Messages {
    pub fn from_seed(seeded: Seeded) -> Messages {
        Messages { seeded, read_at: None, written: Vec::new() }
    }

    /// Creates the empty list of a new chat.
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
        Messages::from_seed(seeded)
    }

    pub fn len(&self) -> usize {
        self.seeded.count as usize + self.written.len()
    }

    /// Returns the message at a position, oldest first.
    pub fn get(&self, at: usize) -> Option<Message> {
        let seeded = self.seeded.count as usize;
        if at >= seeded {
            return self.written.get(at - seeded).cloned();
        }
        let mut message = stock::message(&self.seeded, at as u32);
        // Seeded messages are computed, so the time of reading is stored separately.
        if message.read_at.is_none() && message.from == Party::Contact {
            message.read_at = self.read_at;
        }
        Some(message)
    }

    /// Returns the latest message, if any.
    pub fn last(&self) -> Option<Message> {
        self.len().checked_sub(1).and_then(|at| self.get(at))
    }

    /// Returns the messages, newest first. Skipped messages are not computed.
    pub fn newest_first(&self, skip: usize) -> impl Iterator<Item = Message> + '_ {
        (0..self.len()).rev().skip(skip).filter_map(|at| self.get(at))
    }

    pub fn push(&mut self, message: Message) {
        self.written.push(message);
    }

    /// Marks all messages of the contact as read.
    pub fn read_all(&mut self, now: i64) {
        // The first time remains, since a message is read only once.
        self.read_at.get_or_insert(now);
        for message in self.written.iter_mut().filter(|m| m.from == Party::Contact) {
            message.read_at.get_or_insert(now);
        }
    }
}
