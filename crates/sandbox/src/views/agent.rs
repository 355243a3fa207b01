//! The representation of agents in v3.

use super::{Numeric, Photo};
use crate::clock::Stamp;
use crate::state::{Agent, Id};
use serde::Serialize;

/// An entry of the list of agents.
#[derive(Serialize)]
pub struct AgentItem<'a> {
    id: Id,
    name: &'a str,
    email: &'a str,
    photo_url: Option<Photo>,
    phone: Option<&'a str>,
}

impl<'a> AgentItem<'a> {
    pub fn new(agent: &'a Agent) -> AgentItem<'a> {
        AgentItem {
            id: agent.id,
            name: &agent.name,
            email: &agent.login,
            photo_url: Photo::of_agent(agent.id, agent.has_photo),
            phone: agent.phone.as_deref(),
        }
    }
}

/// Returns the profile of the token's owner, in the current company.
pub fn profile(agent: &Agent, company: Id) -> impl Serialize + '_ {
    #[derive(Serialize)]
    #[allow(non_snake_case)]
    struct Profile<'a> {
        id: Id,
        roleID: Numeric<i64>,
        companyID: Numeric<Id>,
        name: &'a str,
        email: &'a str,
        photo: Option<Photo>,
        createdAt: Stamp,
    }
    Profile {
        id: agent.id,
        roleID: Numeric(agent.role as i64),
        companyID: Numeric(company),
        name: &agent.name,
        email: &agent.login,
        photo: Photo::of_agent(agent.id, agent.has_photo),
        createdAt: Stamp(agent.created_at),
    }
}

#[derive(Serialize)]
#[allow(non_snake_case)]
struct Detail<'a> {
    id: Numeric<Id>,
    name: &'a str,
    login: &'a str,
    status: bool,
    companyID: Numeric<Id>,
    photoLink: Option<Photo>,
    gender: Option<&'a str>,
    birthDate: Option<&'a str>,
    email: &'a str,
    createdAt: Stamp,
    updatedAt: Stamp,
    whatsappID: Option<&'a str>,
    maxChats: Numeric<i64>,
    perfilID: Numeric<i64>,
    welcomeText: Option<&'a str>,
    departmentsAccess: Option<&'a str>,
    viewedUpdates: Numeric<i64>,
    statusID: Numeric<i64>,
    pushToken: Option<&'a str>,
    osDevice: Option<&'a str>,
    signatureEmail: Option<&'a str>,
    autoLogin: Numeric<u8>,
    autoDistribution: Numeric<u8>,
    lastAutoChatAt: Option<Stamp>,
    active: Numeric<u8>,
    layoutType: Numeric<u8>,
    blocked: u8,
    office: Option<&'a str>,
    confirmedEmail: Numeric<u8>,
    confirmEmailAlert: Numeric<u8>,
    photo_url: Option<Photo>,
    #[serde(rename = "type")]
    role: i64,
    roleID: Numeric<i64>,
    phone: Option<&'a str>,
    closedAlertInTrial: bool,
    closedAlertExpiredTrial: bool,
    perfilName: &'static str,
    photo_small: Option<Photo>,
    image_small: Option<Photo>,
    number: Option<&'a str>,
    isActive: bool,
    isAvailable: bool,
    isOnline: bool,
    lastSeen: Option<Stamp>,
    isGuest: Numeric<u8>,
}

/// Returns the full representation of an agent, in the current company.
pub fn detail(agent: &Agent, company: Id) -> impl Serialize + '_ {
    let photo = Photo::of_agent(agent.id, agent.has_photo);
    let role = agent.role as i64;
    Detail {
        id: Numeric(agent.id),
        name: &agent.name,
        login: &agent.login,
        status: agent.active,
        companyID: Numeric(company),
        photoLink: photo,
        gender: None,
        birthDate: agent.birth_date,
        email: &agent.login,
        createdAt: Stamp(agent.created_at),
        updatedAt: Stamp(agent.updated_at),
        whatsappID: None,
        maxChats: Numeric(agent.max_chats),
        perfilID: Numeric(role),
        welcomeText: agent.welcome_text,
        departmentsAccess: None,
        viewedUpdates: Numeric(1),
        statusID: Numeric(agent.presence as i64),
        pushToken: None,
        osDevice: None,
        signatureEmail: agent.signature.as_deref(),
        autoLogin: Numeric(0),
        autoDistribution: Numeric(1),
        lastAutoChatAt: None,
        active: Numeric(u8::from(agent.active)),
        layoutType: Numeric(1),
        blocked: 0,
        office: None,
        confirmedEmail: Numeric(1),
        confirmEmailAlert: Numeric(0),
        photo_url: photo,
        role,
        roleID: Numeric(role),
        phone: agent.phone.as_deref(),
        closedAlertInTrial: false,
        closedAlertExpiredTrial: false,
        perfilName: agent.role.name(),
        photo_small: photo.map(Photo::small),
        image_small: photo.map(Photo::small),
        number: agent.mobile.as_deref().or(agent.phone.as_deref()),
        isActive: agent.active,
        isAvailable: agent.presence.is_available(),
        isOnline: is_online(agent),
        lastSeen: agent.last_seen.map(Stamp),
        isGuest: Numeric(u8::from(agent.guest)),
    }
}

/// Returns whether an agent is online: seen at least once and not unavailable.
pub fn is_online(agent: &Agent) -> bool {
    agent.last_seen.is_some() && agent.presence as i64 != -1
}

/// The presence of an agent.
#[derive(Serialize)]
#[allow(non_snake_case)]
pub struct AgentStatus<'a> {
    id: i64,
    name: &'a str,
    message: Option<&'a str>,
    #[serde(rename = "type")]
    kind: i64,
    createdAt: Stamp,
    updatedAt: Stamp,
    agentID: Numeric<Id>,
    updatedBy: Numeric<Id>,
    companyID: Numeric<Id>,
    available: bool,
}

impl<'a> AgentStatus<'a> {
    pub fn new(agent: &'a Agent, company: Id) -> AgentStatus<'a> {
        AgentStatus {
            id: agent.presence as i64,
            name: agent.presence.name(),
            message: agent.presence_message,
            kind: agent.presence as i64,
            createdAt: Stamp(agent.created_at),
            updatedAt: Stamp(agent.presence_at),
            agentID: Numeric(agent.id),
            updatedBy: Numeric(agent.presence_by),
            companyID: Numeric(company),
            available: agent.presence.is_available(),
        }
    }
}

/// The answer to setting a presence.
#[derive(Serialize)]
pub struct AgentStatusResult {
    #[serde(rename = "statusId")]
    status_id: i64,
    available: bool,
    #[serde(rename = "type")]
    kind: i64,
}

impl AgentStatusResult {
    pub fn new(agent: &Agent) -> AgentStatusResult {
        let status_id = agent.presence as i64;
        AgentStatusResult { status_id, available: agent.presence.is_available(), kind: status_id }
    }
}
