//! The operator's settings that a pack reads, as JSON text by index.

use std::collections::BTreeSet;
use std::fmt;
use switchback_json::{Limits, Value};
use switchback_plan::{Pack, Raw, SettingKind, is_day};

/// The values of a pack's settings. [`Settings::missing`] lists required ones without a value.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    values: Vec<Option<Raw>>,
}

/// An invalid setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// The pack has no setting of this name. The caller may suggest similar names.
    Unknown {
        /// The given name.
        name: String,
    },
    /// A value of another type than the pack declares.
    WrongKind {
        /// The setting's dotted name.
        name: String,
        /// The declared type.
        expected: SettingKind,
    },
    /// A text outside the declared values.
    Unlisted {
        /// The setting's dotted name.
        name: String,
        /// The declared values.
        values: Vec<String>,
    },
}

impl fmt::Display for SettingError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingError::Unknown { name } => write!(out, "the pack has no setting `{name}`"),
            SettingError::WrongKind { name, expected } => {
                let expected = match expected {
                    SettingKind::Boolean => "true or false",
                    SettingKind::Integer => "an integer",
                    SettingKind::String => "a text",
                    SettingKind::Date => "a day, written YYYY-MM-DD",
                };
                write!(out, "the setting `{name}` must be {expected}")
            }
            SettingError::Unlisted { name, values } => {
                write!(out, "the setting `{name}` must be one of {}", values.join(", "))
            }
        }
    }
}

impl std::error::Error for SettingError {}

impl Settings {
    /// Overlays the given settings on the pack's defaults. `given` is an object with nested
    /// (`{things: {max: 1}}`) or dotted (`{things.max: 1}`) names. Returns all errors at once.
    pub fn new(pack: &Pack, given: &Value) -> Result<Settings, Vec<SettingError>> {
        let mut values: Vec<Option<Raw>> =
            pack.settings.iter().map(|setting| setting.default.clone()).collect();
        let mut errors = Vec::new();
        let mut leaves = Vec::new();
        flatten(given, String::new(), &mut leaves);
        for (name, value) in leaves {
            match pack.settings.iter().position(|setting| setting.name == name) {
                // Report all errors at once instead of the first one.
                None => errors.push(SettingError::Unknown { name }),
                // A null counts as not given.
                Some(at) if value.is_null() && !pack.settings[at].is_required => {}
                Some(at) if !fits(pack.settings[at].kind, value) => {
                    errors.push(SettingError::WrongKind { name, expected: pack.settings[at].kind });
                }
                Some(at) if !is_listed(&pack.settings[at].values, value) => {
                    errors.push(SettingError::Unlisted { name, values: pack.settings[at].values.clone() });
                }
                Some(at) => values[at] = Some(value.to_vec().into()),
            }
        }
        if errors.is_empty() { Ok(Settings { values }) } else { Err(errors) }
    }

    /// Creates settings with these values, for tests.
    #[cfg(test)]
    pub(crate) fn of_values(values: Vec<Option<Raw>>) -> Settings {
        Settings { values }
    }

    /// Returns the JSON text of a setting by its index in [`Pack::settings`].
    pub fn get(&self, at: u16) -> Option<&Raw> {
        self.values.get(usize::from(at))?.as_ref()
    }

    /// Reduces each operation of a pack to the one route that these settings select. Returns the
    /// settings (indexes into [`Pack::settings`], in order) that selected an alternative route.
    pub fn choose(&self, pack: &mut Pack) -> BTreeSet<u16> {
        let mut chose = BTreeSet::new();
        for route in pack.directions.iter_mut().flat_map(|direction| &mut direction.routes) {
            let chosen = route.chosen(|setting| self.is_on(setting));
            let mut instead = std::mem::take(&mut route.instead);
            if let Some(at) = chosen {
                let instead = instead.swap_remove(at);
                chose.insert(instead.setting);
                *route = instead.route;
            }
        }
        chose
    }

    /// Returns whether a boolean setting is on.
    pub fn is_on(&self, at: u16) -> bool {
        self.get(at).is_some_and(|value| **value == *b"true")
    }

    /// Returns the text of a string setting.
    pub fn text(&self, at: u16) -> Option<String> {
        let value = Value::parse(self.get(at)?, &Limits::UNLIMITED).ok()?;
        value.as_str().map(|text| text.into_owned())
    }

    /// Returns the names of required settings without a value.
    pub fn missing<'p>(&self, pack: &'p Pack) -> Vec<&'p str> {
        let without = |(at, setting): &(usize, &switchback_plan::Setting)| {
            setting.is_required && !matches!(self.values.get(*at), Some(Some(_)))
        };
        pack.settings.iter().enumerate().filter(without).map(|(_, setting)| setting.name.as_str()).collect()
    }
}

/// Collects the scalars of a configuration tree under their dotted names. The parser of the
/// configuration file bounds the depth.
fn flatten<'v>(value: &'v Value, name: String, leaves: &mut Vec<(String, &'v Value)>) {
    let Some(members) = value.as_object() else {
        leaves.push((name, value));
        return;
    };
    for (key, value) in members.iter() {
        let dot = if name.is_empty() { "" } else { "." };
        flatten(value, format!("{name}{dot}{}", key.decode()), leaves);
    }
}

fn fits(kind: SettingKind, value: &Value) -> bool {
    match kind {
        SettingKind::Boolean => value.as_bool().is_some(),
        SettingKind::Integer => value.as_i64().is_some(),
        SettingKind::String => value.as_str().is_some(),
        SettingKind::Date => value.as_str().is_some_and(|text| is_day(&text)),
    }
}

fn is_listed(values: &[String], value: &Value) -> bool {
    values.is_empty() || value.as_str().is_some_and(|text| values.iter().any(|known| *known == text))
}
