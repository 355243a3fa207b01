//! An item of the list of conditions that need an operator, and the way to end the condition.

use super::sentence::Sentence;

/// A condition that needs an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttentionItem {
    /// Unique in the list, and stable while the condition lasts, such as `brownout-b1`.
    pub(crate) id: String,
    pub(crate) text: Sentence,
    pub(crate) remedy: Remedy,
}

/// The way to end a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The text has it, or there is none.
    None,
    /// A place to look at, with the label of its link.
    Look(&'static str, Place),
    /// Remove a brownout.
    EndBrownout(String),
    /// Change the configuration, which sets it.
    Configuration,
    /// Look at the errors, and reload again.
    Reload,
    /// Change the phase.
    Promote { side: String, operation: String, phase: &'static str, share: &'static str },
    /// Look at the list of unknown calls.
    UnknownCalls,
}

/// A place with the details of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Operations,
    Operation {
        side: String,
        operation: String,
    },
    Rollout {
        side: String,
        operation: String,
    },
    Differences {
        side: String,
        operation: String,
    },
    Clients,
    Client(String),
    /// A client whose owner has to connect it.
    ClientToConnect(String),
    /// A client with a fixed token that has to be replaced.
    ClientCredential {
        client: String,
        side: String,
    },
    Events,
    /// The recorded packs.
    Packs,
}

impl Remedy {
    /// Returns the command that ends the condition or displays its details.
    pub(crate) fn command(&self) -> Option<String> {
        let of = |verb: &str, side: &str, operation: &str, rest: &str| {
            format!("switchback {verb} {} --side {side}{rest}", quote(operation))
        };
        Some(match self {
            Remedy::None | Remedy::Configuration => return None,
            Remedy::EndBrownout(id) => format!("switchback brownout remove {}", quote(id)),
            Remedy::Reload => "switchback serve --check".to_owned(),
            Remedy::UnknownCalls => "switchback unknown".to_owned(),
            Remedy::Promote { side, operation, phase, share } => {
                let share = if share.is_empty() { String::new() } else { format!(" --share {share}") };
                of("phase set", side, operation, &format!(" {phase}{share}"))
            }
            Remedy::Look(_, place) => match place {
                Place::Operations => "switchback phase list".to_owned(),
                Place::Operation { .. } => "switchback phase transitions".to_owned(),
                Place::Rollout { side, operation } => {
                    format!("switchback rollout status {}", quote(&format!("{side} {operation}")))
                }
                Place::Differences { .. } => "switchback diff report".to_owned(),
                Place::Clients | Place::Client(_) => "switchback client list".to_owned(),
                Place::ClientToConnect(name) => format!("switchback client connect {}", quote(name)),
                Place::ClientCredential { client, side } => {
                    format!("switchback client credential {} {side}=env:NAME", quote(client))
                }
                Place::Events => "switchback events list".to_owned(),
                Place::Packs => "switchback pack list".to_owned(),
            },
        })
    }
}

/// Quotes a word for the shell, if it needs quotes.
fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:@/".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
