//! What happens to refused operations, as the pack says and single routes override.

use super::faults;
use crate::diagnostic::Findings;
use crate::mapping::ast;
use switchback_plan::RefusePolicy;

/// The pack's policy. What it leaves out: refused calls are not forwarded, and are answered 501 now, 410 from a date on.
pub(in crate::mapping) fn of_pack(written: &ast::RefusePolicy, findings: &mut Findings) -> RefusePolicy {
    check(written, findings);
    let status = |status: &Option<ast::Spanned<i64>>, or: u16| status.as_ref().map_or(or, |s| s.value as u16);
    RefusePolicy {
        legacy_forward: written.legacy_forward.map(|said| said.unwrap_or(false)),
        status: status(&written.status, 501),
        after_date: written.after_date.as_ref().and_then(|date| date.value.clone()),
        after_status: status(&written.after_status, 410),
    }
}

/// A refusal is an error to the client, and its date a day that there is.
pub(super) fn check(written: &ast::RefusePolicy, findings: &mut Findings) {
    for status in written.status.iter().chain(&written.after_status) {
        if status.value < 400 {
            findings.push(faults::refusal_status(status));
        }
    }
    let Some(date) = &written.after_date else { return };
    let Some(text) = &date.value else { return };
    let format = time::macros::format_description!("[year]-[month]-[day]");
    if time::Date::parse(text, format).is_err() {
        findings.push(faults::refusal_date(text, date.span));
    }
}
