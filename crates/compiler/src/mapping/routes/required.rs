//! Checks that a plan provides the required parts of a call: headers, cookies, and a place for the
//! token.

use super::faults;
use super::route::RouteCheck;
use super::rules::is_own_header;
use crate::contract::{Media, Operation};
use crate::diagnostic::Span;
use crate::mapping::ast::CarrierKind;
use switchback_plan::HeaderRule;

/// Request header that carries cookies.
const COOKIE: &str = "cookie";

impl RouteCheck<'_, '_> {
    /// Reports required headers and cookies of a call that neither `rules` nor the gateway
    /// provides. The gateway sets the headers of the connection and the body; `credentials` in the
    /// pack provides those for tokens and for every call.
    pub(super) fn required_headers(&mut self, rules: &[HeaderRule], called: &Operation, span: Span) {
        let credential = self.env.manifest().credentials[self.serves.other().place()].as_ref();
        let sends_form = credential.is_some_and(|credential| {
            credential.send.iter().any(|one| matches!(one.kind, CarrierKind::FormField))
        });
        // Without a body of its own, a call with one of these methods can carry a form for the
        // token.
        let takes_form = match &called.body {
            Some(body) => matches!(body.media, Media::Form(..)),
            None => [http::Method::POST, http::Method::PUT, http::Method::PATCH].contains(&called.key.method),
        };
        if sends_form && !takes_form {
            let side = self.env.manifest().sides[self.serves.other().place()].value.as_str();
            self.findings.push(faults::no_form_for_token(span, &called.key, side));
        }
        let of_credential = credential.map_or(Vec::new(), |credential| {
            let carried = credential.send.iter().filter(|carrier| carrier.kind.is_header());
            let fixed = credential.headers.iter().map(|(field, _)| field);
            carried
                .map(|carrier| &carrier.name)
                .chain(fixed)
                .map(|name| name.value.to_ascii_lowercase())
                .collect()
        });
        let is_filled = |name: &str| {
            rules.iter().any(|rule| *rule.name.text == *name)
                || of_credential.iter().any(|known| known == name)
        };
        // One `Cookie` header carries all cookies, so a rule for it may provide each of them.
        for cookie in called.cookies.iter().filter(|cookie| cookie.required && !is_filled(COOKIE)) {
            self.findings.push(faults::cookie_missing(&cookie.name, span, &called.key));
        }
        for parameter in called.headers.iter().filter(|parameter| parameter.required) {
            let name = parameter.name.to_ascii_lowercase();
            if !is_filled(&name) && !is_own_header(&name) {
                self.findings.push(faults::header_missing(&parameter.name, span, &called.key));
            }
        }
    }
}
