//! The small records of a company that chats and contacts refer to. They are seeded and immutable,
//! except tags.

use super::Id;

/// A record with only a name: department, tabulation, tag.
#[derive(Clone)]
pub struct Named {
    pub id: Id,
    pub name: String,
}

/// The provider of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChannelKind {
    /// The service's own messaging-app provider.
    WhatsappEnterprise,
    /// Another provider of the same messaging app.
    Whatsapp,
    Widget,
    Email,
    Messenger,
    Instagram,
    TelegramBot,
    Sms,
    Voip,
    /// Between agents, without an external contact.
    Internal,
}

impl ChannelKind {
    pub const ALL: [ChannelKind; 10] = [
        ChannelKind::WhatsappEnterprise,
        ChannelKind::Whatsapp,
        ChannelKind::Widget,
        ChannelKind::Email,
        ChannelKind::Messenger,
        ChannelKind::Instagram,
        ChannelKind::TelegramBot,
        ChannelKind::Sms,
        ChannelKind::Voip,
        ChannelKind::Internal,
    ];

    /// Returns the `type` in a chat's `channels`.
    pub fn type_name(self) -> &'static str {
        match self {
            ChannelKind::WhatsappEnterprise => "Whatsapp-Enterprise",
            ChannelKind::Whatsapp => "Whatsapp",
            ChannelKind::Widget => "Widget",
            ChannelKind::Email => "Email",
            ChannelKind::Messenger => "Messenger",
            ChannelKind::Instagram => "Instagram",
            ChannelKind::TelegramBot => "TelegramBot",
            ChannelKind::Sms => "Sms",
            ChannelKind::Voip => "Voip",
            ChannelKind::Internal => "Internal",
        }
    }

    /// Returns the `channel` of a chat, which is also the party type of a message.
    pub fn slug(self) -> &'static str {
        match self {
            ChannelKind::WhatsappEnterprise => "whatsapp-enterprise",
            ChannelKind::Whatsapp => "whatsapp",
            ChannelKind::Widget => "widget",
            ChannelKind::Email => "email",
            ChannelKind::Messenger => "messenger",
            ChannelKind::Instagram => "instagram",
            ChannelKind::TelegramBot => "telegram-bot",
            ChannelKind::Sms => "sms",
            ChannelKind::Voip => "voip",
            ChannelKind::Internal => "internal",
        }
    }

    /// Returns whether a `channel` parameter or path segment refers to this kind. `whatsapp` refers
    /// to every provider of the messaging app.
    pub fn is_called(self, name: &str) -> bool {
        self.slug() == name || (name == "whatsapp" && self == ChannelKind::WhatsappEnterprise)
    }

    /// Returns the maximum number of button options; 0 if buttons are unavailable.
    pub fn options_max(self) -> usize {
        match self {
            ChannelKind::WhatsappEnterprise => 10,
            ChannelKind::Messenger | ChannelKind::Instagram => 13,
            ChannelKind::TelegramBot => 1000,
            _ => 0,
        }
    }

    /// Returns whether v2's flow execution may select a channel of this kind.
    pub fn runs_flows(self) -> bool {
        matches!(
            self,
            ChannelKind::WhatsappEnterprise
                | ChannelKind::Whatsapp
                | ChannelKind::Email
                | ChannelKind::Messenger
                | ChannelKind::TelegramBot
        )
    }

    /// Returns whether this is the messaging app, with any provider.
    pub fn is_messaging_app(self) -> bool {
        matches!(self, ChannelKind::WhatsappEnterprise | ChannelKind::Whatsapp)
    }

    /// Returns the bit of this kind in a contact's set of channels.
    pub fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A channel that a company has configured.
pub struct ChannelAccount {
    pub id: Id,
    pub uuid: String,
    pub name: String,
    pub kind: ChannelKind,
}

/// An automated flow with the texts that it sends, including `{{variable}}` markers.
pub struct Flow {
    pub id: Id,
    pub name: &'static str,
    pub texts: &'static [&'static str],
}

/// A step of a workflow.
pub struct Step {
    pub id: Id,
    pub workflow: Id,
    pub name: &'static str,
}

/// The permitted use of a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TemplateUse {
    Marketing,
    Authentication,
    Service,
}

/// A template message created on the platform.
pub struct Template {
    pub id: Id,
    pub purpose: TemplateUse,
    /// The text, with `{{1}}`, `{{2}}` … for the parameters.
    pub text: &'static str,
    pub params: usize,
    /// Number of dynamic URL buttons.
    pub buttons: usize,
    /// Type of the header, if any.
    pub header: Option<&'static str>,
}

/// A group of contacts.
pub struct Group {
    pub id: Id,
    pub name: &'static str,
    pub emoji: Option<&'static str>,
}

/// An organization that contacts belong to.
pub struct Organization {
    pub id: Id,
    pub name: &'static str,
    pub cnpj: Option<&'static str>,
    pub address: Option<&'static str>,
    pub city: Option<&'static str>,
    pub state: Option<&'static str>,
    pub country: Option<&'static str>,
    pub zip_code: Option<&'static str>,
    pub description: Option<&'static str>,
    pub domains: Option<&'static str>,
    pub phone: Option<&'static str>,
}

/// A custom field of a company's contacts.
pub struct CustomField {
    pub id: Id,
    pub name: &'static str,
    pub token: &'static str,
    pub description: Option<&'static str>,
    pub field_type: &'static str,
    pub input_type: &'static str,
    /// A JSON array, as text.
    pub validation: &'static str,
    pub payload: Option<&'static str>,
}
