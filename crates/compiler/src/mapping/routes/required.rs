//! Header fields that a called operation requires: each has somebody who fills it.

use super::faults;
use super::route::RouteCheck;
use super::rules::is_own_header;
use crate::contract::Operation;
use crate::diagnostic::Span;
use switchback_plan::HeaderRule;

impl RouteCheck<'_, '_> {
    /// Reports required header fields of a call that neither these rules nor the gateway fill. The gateway fills those of the
    /// connection and of the body, and the pack's `credentials` those that carry tokens and those that go with every call.
    pub(super) fn required_headers(&mut self, rules: &[HeaderRule], called: &Operation, span: Span) {
        let credential = self.ground.world.program.manifest.credentials[self.serves.other().place()].as_ref();
        for parameter in called.headers.iter().filter(|parameter| parameter.required) {
            let name = parameter.name.to_ascii_lowercase();
            let is_credential = credential.is_some_and(|credential| {
                let fixed = credential.headers.iter().map(|(field, _)| field);
                credential.send.iter().chain(fixed).any(|field| field.value.eq_ignore_ascii_case(&name))
            });
            let is_filled = rules.iter().any(|rule| *rule.name.text == *name);
            if !is_filled && !is_credential && !is_own_header(&name) {
                self.findings.push(faults::header_missing(&parameter.name, span, &called.key));
            }
        }
    }
}
