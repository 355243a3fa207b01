//! Agents, who serve contacts.

use super::Id;

/// The role, called the type of an agent in the document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Agent = 1,
    Manager = 2,
    Administrator = 3,
}

impl Role {
    pub fn from_number(number: i64) -> Option<Role> {
        match number {
            1 => Some(Role::Agent),
            2 => Some(Role::Manager),
            3 => Some(Role::Administrator),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Role::Agent => "Agent",
            Role::Manager => "Manager",
            Role::Administrator => "Administrator",
        }
    }
}

/// The presence that an agent has set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    Available = 0,
    Unavailable = -1,
    Paused = -2,
}

impl Presence {
    pub fn from_number(number: i64) -> Option<Presence> {
        match number {
            0 => Some(Presence::Available),
            -1 => Some(Presence::Unavailable),
            -2 => Some(Presence::Paused),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Presence::Available => "Available",
            Presence::Unavailable => "Unavailable",
            Presence::Paused => "Paused",
        }
    }

    pub fn is_available(self) -> bool {
        self == Presence::Available
    }
}

/// An agent. `companies` is ordered; the first one is the main company.
pub struct Agent {
    pub id: Id,
    pub name: String,
    /// The email address that the agent signs in with.
    pub login: String,
    pub phone: Option<String>,
    pub mobile: Option<String>,
    pub has_photo: bool,
    pub role: Role,
    /// A guest may serve chats but not add other agents to them.
    pub guest: bool,
    pub active: bool,
    pub companies: Vec<Id>,
    pub presence: Presence,
    pub presence_message: Option<&'static str>,
    pub presence_at: i64,
    pub presence_by: Id,
    pub max_chats: i64,
    pub birth_date: Option<&'static str>,
    pub welcome_text: Option<&'static str>,
    pub signature: Option<String>,
    pub last_seen: Option<i64>,
    pub created_at: i64,
    pub updated_at: i64,
}
