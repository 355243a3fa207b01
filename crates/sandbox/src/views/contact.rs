//! The representation of contacts in v3, with their groups, organizations and custom fields.

use super::{CustomValues, Numeric, Photo};
use crate::clock::Stamp;
use crate::state::{self, ChannelKind, Company, Id};
use serde::Serialize;
use serde_json::Value;

/// The channels through which a contact can be reached.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reach {
    voip: bool,
    messenger: bool,
    widget: bool,
    whatsapp: bool,
    email: bool,
    sms: bool,
    telegram_bot: bool,
    whatsapp_api: bool,
    instagram: bool,
}

impl Reach {
    pub fn new(contact: &state::Contact) -> Reach {
        let on = |kind| contact.reaches(kind);
        Reach {
            voip: on(ChannelKind::Voip),
            messenger: on(ChannelKind::Messenger),
            widget: on(ChannelKind::Widget),
            whatsapp: on(ChannelKind::Whatsapp),
            email: on(ChannelKind::Email),
            sms: on(ChannelKind::Sms),
            telegram_bot: on(ChannelKind::TelegramBot),
            whatsapp_api: on(ChannelKind::WhatsappEnterprise),
            instagram: on(ChannelKind::Instagram),
        }
    }
}

/// A contact.
#[derive(Serialize)]
#[allow(non_snake_case)]
pub struct Contact<'a> {
    id: Numeric<Id>,
    whatsappID: Option<&'a str>,
    name: &'a str,
    companyID: Numeric<Id>,
    email: Option<&'a str>,
    photo: Option<Photo>,
    groupID: Option<Numeric<Id>>,
    address: Option<&'a str>,
    district: Option<&'a str>,
    state: Option<&'a str>,
    city: Option<&'a str>,
    zipCode: Option<&'a str>,
    gender: &'a str,
    obs: Option<&'a str>,
    birthDate: Option<&'a str>,
    lastSeen: Option<Stamp>,
    createdAt: Stamp,
    updatedAt: Stamp,
    status: Numeric<u8>,
    lastSync: Option<Stamp>,
    syncWhatsapp: Numeric<u8>,
    lastChatID: Option<Numeric<Id>>,
    tokens: String,
    mobile: Option<&'a str>,
    phone: Option<&'a str>,
    talkChatType: u8,
    organizationID: Option<Numeric<Id>>,
    blocked: Numeric<u8>,
    canAutoUpdatePhoto: Numeric<u8>,
    telegramID: Option<&'a str>,
    tokenTelegram: Option<&'a str>,
    telegramBotCustomerID: Option<Numeric<Id>>,
    parentID: Option<Numeric<Id>>,
    nameEmoji: &'a str,
    photo_small: Option<Photo>,
    image_small: Option<Photo>,
    channelsSituation: Reach,
    customFields: Option<CustomValues<'a>>,
    custom_fields: Option<CustomValues<'a>>,
    number: Option<&'a str>,
    #[serde(rename = "type")]
    kind: u8,
    isEditable: bool,
    messengerId: Option<Id>,
    groups: Vec<Group<'a>>,
    organizations: Vec<Organization<'a>>,
    organization: bool,
    parent: Option<Link<'a>>,
    links: Vec<Link<'a>>,
}

#[derive(Serialize)]
struct Link<'a> {
    id: Numeric<Id>,
    name: &'a str,
    photo: Option<Photo>,
}

/// Returns the representation of a contact.
pub fn contact<'a>(company: &'a Company, contact: &'a state::Contact) -> Contact<'a> {
    let photo = Photo::of_contact(contact.id, contact.has_photo);
    let has_custom = !contact.custom.is_empty();
    let link = |id: Id| company.contact(id).map(link);
    Contact {
        id: Numeric(contact.id),
        whatsappID: contact.mobile.as_deref().filter(|_| contact.reaches(ChannelKind::WhatsappEnterprise)),
        name: &contact.name,
        companyID: Numeric(company.id),
        email: contact.email.as_deref(),
        photo,
        groupID: contact.groups.first().copied().map(Numeric),
        address: contact.address.as_deref(),
        district: contact.district.as_deref(),
        state: contact.state.as_deref(),
        city: contact.city.as_deref(),
        zipCode: contact.zip_code.as_deref(),
        gender: contact.gender,
        obs: contact.obs.as_deref(),
        birthDate: contact.birth_date.as_deref(),
        lastSeen: contact.last_seen.map(Stamp),
        createdAt: Stamp(contact.created_at),
        updatedAt: Stamp(contact.updated_at),
        status: Numeric(1),
        lastSync: None,
        syncWhatsapp: Numeric(0),
        lastChatID: contact.chats.last().copied().map(Numeric),
        tokens: tokens(contact),
        mobile: contact.mobile.as_deref(),
        phone: contact.phone.as_deref(),
        talkChatType: 1,
        organizationID: contact.organization.map(Numeric),
        blocked: Numeric(u8::from(contact.blocked)),
        canAutoUpdatePhoto: Numeric(1),
        telegramID: None,
        tokenTelegram: None,
        telegramBotCustomerID: contact.reaches(ChannelKind::TelegramBot).then_some(Numeric(contact.id)),
        parentID: contact.parent.map(Numeric),
        nameEmoji: &contact.name,
        photo_small: photo.map(Photo::small),
        image_small: photo.map(Photo::small),
        channelsSituation: Reach::new(contact),
        customFields: has_custom.then(|| CustomValues::by_token(company, &contact.custom)),
        custom_fields: has_custom.then(|| CustomValues::by_name(company, &contact.custom)),
        number: contact.mobile.as_deref().or(contact.phone.as_deref()),
        kind: 1,
        isEditable: true,
        messengerId: messenger_id(contact),
        groups: groups(company, contact).collect(),
        organizations: organizations(company, contact).collect(),
        organization: contact.organization.is_some(),
        parent: contact.parent.and_then(link),
        links: contact.links.iter().copied().filter_map(link).collect(),
    }
}

fn link(contact: &state::Contact) -> Link<'_> {
    Link {
        id: Numeric(contact.id),
        name: &contact.name,
        photo: Photo::of_contact(contact.id, contact.has_photo),
    }
}

/// Returns the contact's Messenger id, if the contact was served on that channel.
pub fn messenger_id(contact: &state::Contact) -> Option<Id> {
    contact.reaches(ChannelKind::Messenger).then_some(2_000_000_000 + contact.id)
}

/// Returns the text for the platform's search.
fn tokens(contact: &state::Contact) -> String {
    let mut tokens = contact.name.to_lowercase();
    for part in [&contact.email, &contact.phone, &contact.mobile].into_iter().flatten() {
        tokens.push(' ');
        tokens.push_str(part);
    }
    tokens
}

/// A group of contacts.
#[derive(Serialize)]
#[allow(non_snake_case)]
pub struct Group<'a> {
    id: Numeric<Id>,
    name: &'a str,
    companyID: Numeric<Id>,
    createdAt: Stamp,
    updatedAt: Stamp,
    status: Numeric<u8>,
    nameEmoji: String,
}

/// Returns the groups of a contact.
pub fn groups<'a>(company: &'a Company, contact: &'a state::Contact) -> impl Iterator<Item = Group<'a>> {
    let found = contact.groups.iter().filter_map(|id| company.groups.iter().find(|group| group.id == *id));
    found.map(|group| Group {
        id: Numeric(group.id),
        name: group.name,
        companyID: Numeric(company.id),
        createdAt: Stamp(company.created_at),
        updatedAt: Stamp(company.created_at),
        status: Numeric(1),
        nameEmoji: group
            .emoji
            .map_or_else(|| group.name.to_owned(), |emoji| format!("{emoji} {}", group.name)),
    })
}

/// An organization.
#[derive(Serialize)]
#[allow(non_snake_case)]
pub struct Organization<'a> {
    id: Numeric<Id>,
    name: &'a str,
    cnpj: Option<&'a str>,
    ie: Option<&'a str>,
    address: Option<&'a str>,
    state: Option<&'a str>,
    city: Option<&'a str>,
    country: Option<&'a str>,
    district: Option<&'a str>,
    zipCode: Option<&'a str>,
    createdAt: Stamp,
    updatedAt: Stamp,
    companyID: Numeric<Id>,
    status: Numeric<u8>,
    description: Option<&'a str>,
    observation: Option<&'a str>,
    domains: Option<&'a str>,
    phone: Option<&'a str>,
    photo: Option<&'a str>,
    nameEmoji: &'a str,
    customFields: [(); 0],
}

/// Returns the organizations of a contact.
pub fn organizations<'a>(
    company: &'a Company,
    contact: &'a state::Contact,
) -> impl Iterator<Item = Organization<'a>> {
    let found = contact.organization.and_then(|id| company.organizations.iter().find(|entry| entry.id == id));
    found.into_iter().map(|entry| Organization {
        id: Numeric(entry.id),
        name: entry.name,
        cnpj: entry.cnpj,
        ie: None,
        address: entry.address,
        state: entry.state,
        city: entry.city,
        country: entry.country,
        district: None,
        zipCode: entry.zip_code,
        createdAt: Stamp(company.created_at),
        updatedAt: Stamp(company.created_at),
        companyID: Numeric(company.id),
        status: Numeric(1),
        description: entry.description,
        observation: None,
        domains: entry.domains,
        phone: entry.phone,
        photo: None,
        nameEmoji: entry.name,
        customFields: [],
    })
}

/// A custom field with the contact's value.
#[derive(Serialize)]
#[allow(non_snake_case)]
pub struct CustomFieldEntry<'a> {
    id: Numeric<Id>,
    companyID: Numeric<Id>,
    name: &'a str,
    description: Option<&'a str>,
    fieldType: &'a str,
    payload: Option<Value>,
    entityID: Numeric<Id>,
    validation: &'a str,
    createdAt: Stamp,
    updatedAt: Stamp,
    deletedAt: Option<Stamp>,
    active: Numeric<u8>,
    status: Numeric<u8>,
    token: &'a str,
    inputType: &'a str,
    value: &'a str,
}

/// Returns the custom fields for which a contact has a value.
pub fn custom_fields<'a>(
    company: &'a Company,
    contact: &'a state::Contact,
) -> impl Iterator<Item = CustomFieldEntry<'a>> {
    contact.custom.iter().map(|(place, value)| {
        let field = &company.custom_fields[*place as usize];
        CustomFieldEntry {
            id: Numeric(field.id),
            companyID: Numeric(company.id),
            name: field.name,
            description: field.description,
            fieldType: field.field_type,
            payload: field.payload.and_then(|payload| serde_json::from_str(payload).ok()),
            entityID: Numeric(contact.id),
            validation: field.validation,
            createdAt: Stamp(company.created_at),
            updatedAt: Stamp(company.created_at),
            deletedAt: None,
            active: Numeric(1),
            status: Numeric(1),
            token: field.token,
            inputType: field.input_type,
            value,
        }
    })
}
