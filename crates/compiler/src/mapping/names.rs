//! Pack-wide names, by index, with a usage mark: settings and reasons.

use super::ast::{ProgramDecl, Spanned};
use super::references::{NameLog, ResolvedKind};
use crate::diagnostic::{Code, Finding, Findings, NameKind};
use std::cell::Cell;
use std::collections::HashMap;
use switchback_plan::{ReasonId, SettingKind};

/// The settings and reasons of a program. Each lookup marks the item as used.
#[derive(Debug, Default)]
pub(crate) struct PackNames {
    settings: NameTable<SettingRef>,
    reasons: NameTable<()>,
    /// The resolved names of all kinds.
    pub(crate) references: NameLog,
}

/// A resolved setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingRef {
    /// Index into [`switchback_plan::Pack::settings`].
    pub index: u16,
    /// `None` if the declaration has an unknown type, which is reported there.
    pub kind: Option<SettingKind>,
    /// Whether the setting may have no value.
    pub optional: bool,
    /// The permitted texts; unrestricted if empty.
    pub values: Vec<String>,
}

impl PackNames {
    /// Collects the declarations of a program in order. Reports duplicate names.
    pub(crate) fn collect(program: &ProgramDecl, findings: &mut Findings) -> PackNames {
        let mut names = PackNames::default();
        for (index, setting) in program.manifest.settings.iter().enumerate() {
            let kind = setting_kind(&setting.kind.value);
            if kind.is_none() {
                let words = SettingKind::WORDS.iter().map(|(word, _)| word);
                findings.push(
                    Finding::error(
                        Code::SettingType,
                        setting.kind.span,
                        "a setting is a boolean, an integer, a string or a date",
                    )
                    .did_you_mean(&setting.kind.value, words),
                );
            }
            let listed = setting.values.iter().filter(|_| kind == Some(SettingKind::String));
            let values = listed.map(|value| value.value.clone()).collect();
            let declared = SettingRef { index: index as u16, kind, optional: setting.is_optional(), values };
            names.settings.add(&setting.name, declared, "setting", findings);
        }
        for reason in &program.reasons {
            names.reasons.add(&reason.name, (), "reason", findings);
        }
        names
    }

    /// Resolves a setting by its dotted name, without `$.config.`.
    pub(crate) fn setting(&self, name: &Spanned<String>, findings: &mut Findings) -> Option<SettingRef> {
        let found = self.settings.find(&name.value);
        if found.is_none() {
            let message = format!("`{}` is not a setting of this pack", name.value);
            findings.push(
                Finding::error(Code::UnknownSetting, name.span, message)
                    .help("declare it under `settings:` in `pack.yaml`")
                    .did_you_mean(&name.value, self.settings.names())
                    .with_declarations(NameKind::Setting, &name.value),
            );
        }
        found.map(|(index, declared)| {
            let place = self.settings.rows[index].0.span;
            self.references.add(name.span, ResolvedKind::Setting, place, || {
                let kind = declared.kind.map_or("unknown", SettingKind::word);
                format!("setting `{}`: {kind}", name.value)
            });
            declared.clone()
        })
    }

    /// Resolves a reason by name.
    pub(crate) fn reason(&self, name: &Spanned<String>, findings: &mut Findings) -> Option<ReasonId> {
        let found = self.reasons.find(&name.value);
        if found.is_none() {
            let message = format!("there is no reason `{}`", name.value);
            findings.push(
                Finding::error(Code::UnknownReason, name.span, message)
                    .help("add it under `reasons:`, with a text in each language")
                    .did_you_mean(&name.value, self.reasons.names())
                    .with_declarations(NameKind::Reason, &name.value),
            );
        }
        found.map(|(index, ())| {
            let place = self.reasons.rows[index].0.span;
            self.references
                .add(name.span, ResolvedKind::Reason, place, || format!("reason `{}`", name.value));
            ReasonId(index as u16)
        })
    }

    /// Reports settings and reasons that were never looked up.
    pub(crate) fn report_unused(&self, findings: &mut Findings) {
        let settings = self.settings.unused_names().map(|name| ("setting", NameKind::Setting, name));
        let reasons = self.reasons.unused_names().map(|name| ("reason", NameKind::Reason, name));
        for (what, kind, entry) in settings.chain(reasons) {
            findings.push(
                Finding::error(
                    Code::Unused,
                    entry.span,
                    format!("nothing uses the {what} `{}`", entry.value),
                )
                .help("remove it, or use it")
                .with_uses(kind, &entry.value),
            );
        }
    }
}

/// Parses the `type:` of a setting.
pub(crate) fn setting_kind(word: &str) -> Option<SettingKind> {
    SettingKind::WORDS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind)
}

#[derive(Debug)]
struct NameTable<T> {
    // A cell, because all checks share the names and each lookup records the use.
    rows: Vec<(Spanned<String>, T, Cell<bool>)>,
    by_name: HashMap<String, usize>,
}

impl<T> Default for NameTable<T> {
    fn default() -> NameTable<T> {
        NameTable { rows: Vec::new(), by_name: HashMap::new() }
    }
}

impl<T> NameTable<T> {
    fn add(&mut self, name: &Spanned<String>, value: T, what: &str, findings: &mut Findings) {
        if let Some(first) = self.by_name.get(&name.value) {
            let message = format!("the {what} `{}` is declared twice", name.value);
            let first = self.rows[*first].0.span;
            findings.push(
                Finding::error(Code::DeclaredTwice, name.span, message)
                    .with_related(first, "first declared here"),
            );
        } else {
            self.by_name.insert(name.value.clone(), self.rows.len());
        }
        // A duplicate occupies a row as well: indexes must match those of the compiled pack.
        self.rows.push((name.clone(), value, Cell::new(false)));
    }

    fn find(&self, name: &str) -> Option<(usize, &T)> {
        let index = *self.by_name.get(name)?;
        let (_, value, used) = &self.rows[index];
        used.set(true);
        Some((index, value))
    }

    fn names(&self) -> Vec<&str> {
        self.rows.iter().map(|(name, ..)| name.value.as_str()).collect()
    }

    fn unused_names(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.rows.iter().filter(|(_, _, used)| !used.get()).map(|(name, ..)| name)
    }
}
