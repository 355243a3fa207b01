//! Policy for refused operations: defaults of the pack, with overrides by routes.

use super::faults;
use crate::diagnostic::Findings;
use crate::mapping::ast;
use crate::mapping::names::PackNames;
use switchback_plan::{self as plan, AfterDate, RefusePolicy, SettingKind};

/// Returns the pack's policy. By default refused calls are not forwarded, and are answered with
/// 501, or with 410 after the date.
pub(in crate::mapping) fn of_pack(
    written: &ast::RefusePolicyDecl,
    names: &PackNames,
    findings: &mut Findings,
) -> RefusePolicy {
    let after_date = check(written, names, findings);
    let status = |status: Option<&ast::Spanned<i64>>, or: u16| status.map_or(or, |s| s.value as u16);
    let after = written.after.as_ref();
    RefusePolicy {
        legacy_forward: written.legacy_forward.map(|said| said.unwrap_or(false)),
        status: status(written.status.as_ref(), 501),
        after_date: after_date.flatten(),
        after_status: status(after.and_then(|after| after.status.as_ref()), 410),
    }
}

/// Checks that the statuses of a policy are errors and that its date is a valid day or a date
/// setting. Returns the date, if declared.
pub(super) fn check(
    written: &ast::RefusePolicyDecl,
    names: &PackNames,
    findings: &mut Findings,
) -> Option<Option<AfterDate>> {
    let after = written.after.as_ref();
    for status in written.status.iter().chain(after.and_then(|after| after.status.as_ref())) {
        if status.value < 400 {
            findings.push(faults::refusal_status(status));
        }
    }
    let date = after?.date.as_ref()?;
    Some(match &date.value {
        ast::AfterDateDecl::Never => None,
        ast::AfterDateDecl::Day(text) => {
            if !plan::is_day(text) {
                findings.push(faults::refusal_date(text, date.span));
            }
            Some(AfterDate::Day(text.clone()))
        }
        ast::AfterDateDecl::Setting(name) => {
            let setting = names.setting(name, findings);
            if setting.as_ref().is_some_and(|found| found.kind.is_some_and(|kind| kind != SettingKind::Date))
            {
                findings.push(faults::refusal_setting(name));
            }
            setting.map(|setting| AfterDate::Setting(setting.index))
        }
    })
}
