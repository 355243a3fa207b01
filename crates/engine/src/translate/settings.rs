//! What the pack reads from the operator's configuration, as JSON text by index.

use std::fmt;
use switchback_json::Value;
use switchback_plan::{Pack, Raw, SettingKind};

/// The values of a pack's settings. What has no value and no default is found by [`Settings::missing`].
#[derive(Clone, Debug, Default)]
pub struct Settings {
    values: Vec<Option<Raw>>,
}

/// A given setting that the pack cannot use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// The pack reads no setting of this name; the nearest known ones are the caller's to offer.
    Unknown {
        name: String,
    },
    WrongKind {
        name: String,
        expected: SettingKind,
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
                };
                write!(out, "the setting `{name}` must be {expected}")
            }
        }
    }
}

impl std::error::Error for SettingError {}

impl Settings {
    /// The pack's defaults, with what is given laid over them. `given` is an object; names may be nested
    /// (`{things: {max: 1}}`) or dotted (`{things.max: 1}`). All mistakes are returned at once.
    pub fn new(pack: &Pack, given: &Value) -> Result<Settings, Vec<SettingError>> {
        let mut values: Vec<Option<Raw>> =
            pack.settings.iter().map(|setting| setting.default.clone()).collect();
        let mut errors = Vec::new();
        let mut leaves = Vec::new();
        flatten(given, String::new(), &mut leaves);
        for (name, value) in leaves {
            match pack.settings.iter().position(|setting| setting.name == name) {
                None => errors.push(SettingError::Unknown { name }),
                Some(at) if !fits(pack.settings[at].kind, value) => {
                    errors.push(SettingError::WrongKind { name, expected: pack.settings[at].kind });
                }
                Some(at) => values[at] = Some(value.to_vec().into()),
            }
        }
        if errors.is_empty() { Ok(Settings { values }) } else { Err(errors) }
    }

    /// Settings with these values, for tests of what reads them.
    #[cfg(test)]
    pub(crate) fn of_values(values: Vec<Option<Raw>>) -> Settings {
        Settings { values }
    }

    /// The JSON text of a setting, by its index in [`Pack::settings`].
    pub fn get(&self, at: u16) -> Option<&Raw> {
        self.values.get(usize::from(at))?.as_ref()
    }

    /// Names of the settings that the operator must still give.
    pub fn missing<'p>(&self, pack: &'p Pack) -> Vec<&'p str> {
        let without =
            |(at, _): &(usize, &switchback_plan::Setting)| !matches!(self.values.get(*at), Some(Some(_)));
        pack.settings.iter().enumerate().filter(without).map(|(_, setting)| setting.name.as_str()).collect()
    }
}

/// The scalars of a configuration tree under their dotted names. The tree comes from a configuration file, whose depth is
/// bounded by its reader.
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
    }
}
