//! Headers that contracts declare. Headers that both sides declare alike pass without a line;
//! headers that differ need a line; headers of the served side only are listed as a loss.
//!
//! Routes do not handle headers of the connection, of credentials, and those that every translated
//! message carries. Cookies belong to the origin that set them, so the gateway never passes them: a
//! declared cookie is a loss.

use super::faults;
use super::paths::location;
use super::route::RouteCheck;
use super::rules::{DROP, is_own_header};
use crate::contract::{Difference, Operation, Parameter, Response, StatusPattern, TypeIn, compare, defaults};
use crate::diagnostic::Span;
use crate::mapping::ast::{PairDecl, ParameterLine, ServeDecl};
use switchback_plan::{self as plan, HeaderRule, Key, Loss, Message, Narrow, SideId};

/// Response header that controls caching.
const CACHE_CONTROL: &str = "cache-control";

/// Response header with the target of a redirect.
const LOCATION: &str = "location";

/// Response header that sets a cookie.
const SET_COOKIE: &str = "set-cookie";

/// Why a response lacks a header: the other side never sends it, or the gateway removes it.
const UNFILLED: &str = "nothing on the other side fills it";
const NOT_PASSED: &str = "not passed on";

/// Why a header may not pass to the receiving side.
#[derive(Debug, thiserror::Error)]
enum HeaderMisfit {
    #[error("it may be absent, and the other side requires it")]
    MayBeAbsent,
    #[error("its name is not the name of a header field")]
    Name,
    #[error(transparent)]
    Types(#[from] Difference),
}

/// Returns the key for a kind of message under `headers:` of a pair.
pub(super) fn key(message: Message) -> &'static str {
    match message {
        Message::Request => "request",
        Message::Answer => "response",
    }
}

/// Returns the word for a kind of message in sentences.
pub(super) fn word(message: Message) -> &'static str {
    match message {
        Message::Request => "request",
        Message::Answer => "answer",
    }
}

fn is_passed_anyway(message: Message, name: &str) -> bool {
    match message {
        Message::Request => plan::CALL_KEEPS.iter().any(|kept| *kept == *name),
        Message::Answer => plan::ANSWER_KEEPS.iter().any(|kept| *kept == *name),
    }
}

impl<'a> RouteCheck<'_, 'a> {
    /// Adds rules for the declared request headers that no line of a pair names.
    pub(super) fn declared_request_headers(
        &mut self,
        pair: &PairDecl,
        called: &Operation,
        rules: &mut Vec<HeaderRule>,
    ) {
        self.lost_cookies(pair.span);
        for header in &self.operation.headers {
            let name = header.name.to_ascii_lowercase();
            if !self.is_of_service(Message::Request, &name) {
                continue;
            }
            let is_named = |line: &&ParameterLine| {
                let source = if self.serves == SideId::OLD { &line.old } else { &line.new };
                line.new.value != DROP && source.value.eq_ignore_ascii_case(&name)
            };
            if pair.headers.request.lines.iter().find(is_named).is_some() {
                continue;
            }
            let is_made = rules.iter().any(|rule| *rule.name.text == *name);
            let taken = called.headers.iter().find(|other| other.name.eq_ignore_ascii_case(&name));
            match taken.filter(|_| !is_made && !is_dropped(&pair.headers.request.lines, &name)) {
                Some(taken) => match self.alike(Message::Request, header, taken, pair.span) {
                    Ok(()) => rules.push(pass_rule(&name, "request")),
                    Err(why) => {
                        let finding = faults::header_differs(
                            Message::Request,
                            &header.name,
                            pair.span,
                            &why.to_string(),
                        );
                        self.findings.push(finding);
                    }
                },
                None => self.lose_request_header(&header.name, pair.span),
            }
        }
    }

    /// Records the cookies of the served operation as lost.
    fn lost_cookies(&mut self, span: Span) {
        for cookie in &self.operation.cookies {
            self.lose_part(format!("cookie {} of the request", cookie.name), None, span);
        }
    }

    /// Adds rules for the declared response headers that no line of a pair names.
    pub(super) fn declared_answer_headers(
        &mut self,
        pair: &PairDecl,
        called: &Operation,
        rules: &mut Vec<HeaderRule>,
    ) {
        // Snapshot the names from lines: rules added by this loop must not suppress the checks of
        // later responses.
        let made: Vec<String> = rules.iter().map(|rule| rule.name.text.to_string()).collect();
        for (promised, wanted) in response_headers(self.operation) {
            let name = wanted.name.to_ascii_lowercase();
            // The gateway rewrites the links of pages.
            let is_paged = pair.paging.is_some() && name == "link";
            if !self.is_of_service(Message::Answer, &name) || made.contains(&name) || is_paged {
                continue;
            }
            if is_dropped(&pair.headers.response.lines, &name) {
                self.lose_answer_header(
                    format!("header {} of the answer", wanted.name),
                    NOT_PASSED,
                    pair.span,
                );
                continue;
            }
            // A redirect passes it, declared or not.
            if name == LOCATION
                && matches!(promised.status, StatusPattern::Exact(300..=399) | StatusPattern::Class(3))
            {
                continue;
            }
            // Without `status:` lines a failure keeps its status, so compare failures by status.
            let becomes = |response: &Response| match response.is_success() || !pair.status.is_empty() {
                true => response.is_success() == promised.is_success(),
                false => overlap(response.status, promised.status),
            };
            let named = response_headers(called).filter(|(_, other)| other.name.eq_ignore_ascii_case(&name));
            let sources: Vec<&Parameter> =
                named.filter(|(response, _)| becomes(response)).map(|(_, source)| source).collect();
            if sources.is_empty() || name == SET_COOKIE {
                let of_error =
                    if promised.is_success() { String::new() } else { format!(" {}", promised.status) };
                let why = if sources.is_empty() { UNFILLED } else { NOT_PASSED };
                let place = format!("header {} of the answer{of_error}", wanted.name);
                self.lose_answer_header(place, why, pair.span);
                continue;
            }
            // A generated pair changes nothing of the answer, so it may be stored as long as before.
            if name == CACHE_CONTROL && !pair.sides.made {
                // Without a line, a translated response only keeps directives that forbid storing.
                let place = format!("header {} of the answer", wanted.name);
                self.lose_answer_header(place, "values that allow caching", pair.span);
                continue;
            }
            let alike = |source: &&Parameter| self.alike(Message::Answer, source, wanted, pair.span).err();
            let misfit = sources.iter().find_map(alike);
            match misfit {
                None if !rules.iter().any(|rule| *rule.name.text == *name) => {
                    rules.push(pass_rule(&name, "reply"));
                }
                None => {}
                Some(why) => {
                    let finding =
                        faults::header_differs(Message::Answer, &wanted.name, pair.span, &why.to_string());
                    self.findings.push(finding);
                }
            }
        }
    }

    /// Adds a rule for the `Location` of redirects, whether or not the contract declares it (RFC
    /// 9110, section 15.4).
    pub(super) fn location_of_redirect(&self, pair: &PairDecl, rules: &mut Vec<HeaderRule>) {
        let is_made = rules.iter().any(|rule| *rule.name.text == *LOCATION);
        if !is_made && !is_dropped(&pair.headers.response.lines, LOCATION) {
            rules.push(pass_rule(LOCATION, "reply"));
        }
    }

    /// Reports headers that a `serve` route neither reads, writes nor drops. With several calls,
    /// only a line can determine which call they belong to.
    pub(super) fn unread_headers(&mut self, serve: &ServeDecl) {
        let is_dropped =
            |name: &str| serve.dropped_headers.iter().any(|one| one.value.eq_ignore_ascii_case(name));
        let operation = self.operation;
        self.lost_cookies(serve.at.span);
        for header in &operation.headers {
            let name = header.name.to_ascii_lowercase();
            if !self.is_of_service(Message::Request, &name) || self.reads_header(&name) {
                continue;
            }
            let taken = self
                .summary
                .called
                .iter()
                .find(|called| called.headers.iter().any(|other| other.name.eq_ignore_ascii_case(&name)));
            match taken.filter(|_| !is_dropped(&name)) {
                Some(called) => {
                    let finding = faults::request_header_unread(&header.name, serve.at.span, &called.key);
                    self.findings.push(finding);
                }
                None => self.lose_request_header(&header.name, serve.at.span),
            }
        }
        for (_, header) in response_headers(operation) {
            let name = header.name.to_ascii_lowercase();
            let is_paged = serve.paging.is_some() && name == "link";
            if !self.is_of_service(Message::Answer, &name)
                || is_paged
                || self.summary.answered_headers.contains(&name)
            {
                continue;
            }
            let source = self.summary.called.iter().find(|called| {
                response_headers(called).any(|(_, other)| other.name.eq_ignore_ascii_case(&name))
            });
            match source.filter(|_| !is_dropped(&name) && name != SET_COOKIE) {
                Some(called) => {
                    let finding = faults::answer_header_unmade(&header.name, serve.at.span, &called.key);
                    self.findings.push(finding);
                }
                None => {
                    let why = if source.is_none() { UNFILLED } else { NOT_PASSED };
                    self.lose_answer_header(
                        format!("header {} of the answer", header.name),
                        why,
                        serve.at.span,
                    );
                }
            }
        }
    }

    fn reads_header(&self, name: &str) -> bool {
        let read = self.summary.reads.places.iter();
        read.filter_map(|place| place.strip_prefix("request.headers"))
            .any(|rest| rest.is_empty() || rest.trim_start_matches('.').eq_ignore_ascii_case(name))
    }

    /// Returns whether a header (in lower case) is specific to the service, that is, not managed by
    /// the gateway and not part of every message.
    fn is_of_service(&self, message: Message, name: &str) -> bool {
        let has_credential = self.env.credential_headers.iter().any(|known| known == name);
        let is_fixed = self.env.manifest().credentials.iter().flatten().any(|credential| {
            message == Message::Request
                && credential.headers.iter().any(|(field, _)| field.value.eq_ignore_ascii_case(name))
        });
        let is_own = is_own_header(name) || self.env.approximate_header == Some(name);
        !is_own && !has_credential && !is_fixed && !is_passed_anyway(message, name)
    }

    /// Checks whether a header may pass to the receiving side, and returns the reason if not.
    /// Values that the receiver does not accept are losses.
    fn alike(
        &mut self,
        message: Message,
        from: &Parameter,
        to: &Parameter,
        span: Span,
    ) -> Result<(), HeaderMisfit> {
        // The gateway cannot invent a value for the receiver.
        if to.required && !from.required {
            return Err(HeaderMisfit::MayBeAbsent);
        }
        if http::HeaderName::from_bytes(to.name.as_bytes()).is_err() {
            return Err(HeaderMisfit::Name);
        }
        let towards = if message == Message::Request { self.serves.other() } else { self.serves };
        let source = TypeIn { types: self.env.types(towards.other()), ty: &from.ty };
        let target = TypeIn { types: self.env.types(towards), ty: &to.ty };
        let mut narrowings = compare(source, target, Some(message))?;
        if !from.required {
            narrowings.extend(defaults(from.default.as_deref(), to.default.as_deref()));
        }
        let place = format!("header {} of the {}", from.name, word(message));
        self.lose_narrower(&narrowings, towards, &place, span);
        Ok(())
    }

    /// Records a response header that clients do not receive, or not with all of its values.
    fn lose_answer_header(&mut self, place: String, values: &str, span: Span) {
        let narrow = Narrow { values: values.to_owned(), only_in: Some(Message::Answer), is_of_target: true };
        self.lose_part(place, Some(narrow), span);
    }

    fn lose_request_header(&mut self, name: &str, span: Span) {
        self.lose_part(format!("header {name} of the request"), None, span);
    }

    /// Records a part of the served side that does not reach the other one, or not with all values.
    pub(super) fn lose_part(&mut self, place: String, narrow: Option<Narrow>, span: Span) {
        self.lose(Loss {
            side: self.env.side_name(self.serves).to_owned(),
            place,
            instead: None,
            unless_found: false,
            partly: narrow.is_some(),
            narrow,
            origin: self.env.origin(span),
        });
    }
}

/// Returns the headers of an operation's responses, each with its response.
fn response_headers(operation: &Operation) -> impl Iterator<Item = (&Response, &Parameter)> {
    operation
        .responses
        .iter()
        .flat_map(|response| response.headers.iter().map(move |header| (response, header)))
}

/// Returns whether two patterns have a status in common.
fn overlap(a: StatusPattern, b: StatusPattern) -> bool {
    match (a, b) {
        (StatusPattern::Default, _) | (_, StatusPattern::Default) => true,
        (StatusPattern::Exact(status), other) | (other, StatusPattern::Exact(status)) => other.covers(status),
        (StatusPattern::Class(a), StatusPattern::Class(b)) => a == b,
    }
}

fn is_dropped(lines: &[ParameterLine], name: &str) -> bool {
    lines.iter().any(|line| line.new.value == DROP && line.old.value.eq_ignore_ascii_case(name))
}

/// Returns the rule that passes a header (in lower case) unchanged.
fn pass_rule(name: &str, from: &str) -> HeaderRule {
    HeaderRule { name: Key::new(name), value: plan::Expr::At(location(&[from, "headers", name])) }
}
