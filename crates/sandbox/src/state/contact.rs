//! Contacts and the history recorded about them.

use super::{ChannelKind, Id};

/// A comment that an agent added to a contact.
pub struct Comment {
    pub id: Id,
    pub at: i64,
    pub by: Id,
    pub text: String,
}

/// A kind of timeline entry about a chat, in addition to its creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    Closed,
    Reopened,
    Deleted,
}

/// A timeline entry about a chat of the contact.
pub struct Happening {
    pub id: Id,
    pub at: i64,
    pub chat: Id,
    pub by: Id,
    pub mark: Mark,
}

/// A contact.
#[derive(Default)]
pub struct Contact {
    pub id: Id,
    pub name: String,
    pub email: Option<String>,
    pub phone: Option<String>,
    pub mobile: Option<String>,
    pub has_photo: bool,
    pub address: Option<String>,
    pub district: Option<String>,
    pub city: Option<String>,
    pub state: Option<String>,
    pub zip_code: Option<String>,
    pub obs: Option<String>,
    /// `M`, `F` or empty.
    pub gender: &'static str,
    pub birth_date: Option<String>,
    pub created_at: i64,
    pub updated_at: i64,
    pub last_seen: Option<i64>,
    pub blocked: bool,
    /// Ids of the company's groups.
    pub groups: Vec<Id>,
    pub organization: Option<Id>,
    /// The main contact of this one, and the contacts linked to this one.
    pub parent: Option<Id>,
    pub links: Vec<Id>,
    /// Index of the company's custom field, and its value.
    pub custom: Vec<(u16, String)>,
    /// All chats, oldest first, including deleted ones.
    pub chats: Vec<Id>,
    pub comments: Vec<Comment>,
    pub happenings: Vec<Happening>,
    /// Bits of the channel kinds through which the contact was served or can be reached.
    pub channels: u16,
    pub deleted: bool,
}

impl Contact {
    pub fn reaches(&self, kind: ChannelKind) -> bool {
        self.channels & kind.bit() != 0
    }

    /// Returns whether the phone number is in international format: country code, area code and
    /// number, digits only.
    pub fn has_international_phone(&self) -> bool {
        let number = self.mobile.as_ref().or(self.phone.as_ref());
        number.is_some_and(|n| (10..=15).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()))
    }
}
