//! State of checking one route in one direction, and the parts common to all kinds of routes:
//! places, notes, losses, refusals and statuses.

use super::RouteEnv;
use super::faults;
use super::flow::{Flow, Reads};
use super::paths::PathEnv;
use crate::contract::{
    Narrowing, Operation, Parameter, ScalarKind, Type, TypeIn, TypeKind, compare, defaults,
};
use crate::diagnostic::{Findings, Span};
use crate::mapping::ast::{Notes, Refuse, Spanned};
use crate::mapping::lens::{Lens, Partial};
use std::collections::BTreeSet;
use std::sync::Arc;
use switchback_plan::{self as plan, HeaderRule, Key, Loss, Message, Note, NoteKind, Refusal, SideId};

/// Checks one route that serves clients of one side. Its flow is passed to the checks of its parts.
pub(super) struct RouteCheck<'g, 'a> {
    pub env: &'g RouteEnv<'a>,
    pub serves: SideId,
    /// The served operation.
    pub operation: &'a Operation,
    pub paged: PagedNames,
    /// Whether this is a harvest.
    pub is_harvest: bool,
    pub findings: &'g mut Findings,
    pub summary: RouteSummary<'a>,
}

/// Notes, losses and uses that the parts of a route add. It only grows: a use in any branch counts.
/// Only the checks of the entire route read it.
#[derive(Default)]
pub(super) struct RouteSummary<'a> {
    pub notes: Vec<Note>,
    /// Notes about values that bounds and `over:` omit.
    pub bounds: Vec<Note>,
    pub losses: Vec<Loss>,
    /// Whether a field or an outcome is refused.
    pub refuses: bool,
    pub reads: Reads,
    /// Results of steps and members of `make` steps that must be read: their place and name.
    pub results: Vec<(String, Spanned<String>)>,
    /// Results with an opaque body: name, span of the call, media type.
    pub opaque_results: Vec<(String, Span, String)>,
    /// Called operations, for the statuses and headers that they list.
    pub called: Vec<&'a Operation>,
    /// Lower-case names of the headers that successful responses set.
    pub answered_headers: BTreeSet<String>,
}

/// Parameters and members that `paging` handles instead of the route.
#[derive(Default)]
pub(super) struct PagedNames {
    /// Parameters of the served operation and of the call.
    pub parameters: [Vec<String>; 2],
    /// By side: response members.
    pub members: [Vec<Vec<String>>; 2],
    /// Whether `paging` has an error.
    pub is_faulty: bool,
}

/// Target of a value within the response.
#[derive(Clone, Debug)]
pub(super) struct AnswerPlace {
    /// Starts with `$`.
    pub place: String,
    pub unless_found: bool,
}

impl<'g, 'a> RouteCheck<'g, 'a> {
    pub(super) fn new(
        env: &'g RouteEnv<'a>,
        serves: SideId,
        operation: &'a Operation,
        findings: &'g mut Findings,
    ) -> RouteCheck<'g, 'a> {
        RouteCheck {
            env,
            serves,
            operation,
            paged: PagedNames::default(),
            is_harvest: false,
            findings,
            summary: RouteSummary::default(),
        }
    }

    /// Returns the environment for resolving paths.
    pub(super) fn reading<'c>(&'c mut self, flow: &'c Flow) -> PathEnv<'c, 'a> {
        PathEnv { env: self.env, flow, reads: &mut self.summary.reads, findings: self.findings }
    }

    pub(super) fn note(&mut self, kind: NoteKind, text: String, span: Span) {
        let origin = self.env.origin(span);
        self.summary.notes.push(Note { kind, name: None, text, origin });
    }

    /// Records the sentences of a route or an outcome. Returns the names of their approximations.
    pub(super) fn sentences(&mut self, notes: &Notes) -> Vec<Arc<str>> {
        for text in &notes.differs {
            self.note(NoteKind::Differs, text.value.clone(), text.span);
        }
        let mut names = Vec::new();
        for (name, text) in &notes.approximate {
            let origin = self.env.origin(text.span);
            let name = self.approximation(name.as_ref(), text);
            names.extend(name.clone().filter(|name| !names.contains(name)));
            self.summary.notes.push(Note {
                kind: NoteKind::Approximate,
                name,
                text: text.value.clone(),
                origin,
            });
        }
        names
    }

    /// Checks the name of an approximation.
    fn approximation(&mut self, name: Option<&Spanned<String>>, text: &Spanned<String>) -> Option<Arc<str>> {
        let Some(name) = name else {
            if self.env.approximate_header.is_some() {
                self.findings.push(faults::approximation_without_name(text));
            }
            return None;
        };
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if name.value.is_empty() || !name.value.bytes().all(is_name) {
            self.findings.push(faults::approximation_name(name));
        }
        Some(name.value.as_str().into())
    }

    /// Returns the header that lists the active approximations of a successful response, if any.
    pub(super) fn approximate_header(&self, active: &[Arc<str>]) -> Option<HeaderRule> {
        let name = self.env.approximate_header.filter(|_| !active.is_empty())?;
        let value = format!("\"{}\"", active.join(", "));
        Some(HeaderRule { name: Key::new(name), value: plan::Expr::Constant(value.into_bytes().into()) })
    }

    /// Adds the notes, losses and refusals of a shape that builds `to`. `read` is the source place,
    /// unless it is the body of the only call. `answer` is the target in the response, `wrote` the
    /// write before.
    pub(super) fn take_over(
        &mut self,
        lens: &Lens,
        to: SideId,
        read: Option<&str>,
        answer: Option<&AnswerPlace>,
        wrote: Option<&str>,
    ) {
        for partial in &lens.partials {
            self.env.lenses.use_partial(partial, wrote);
        }
        let place = answer.map_or("$", |at| at.place.as_str());
        for note in &lens.notes {
            let note = note.clone().below(place);
            if !self.summary.notes.contains(&note) {
                self.summary.notes.push(note);
            }
        }
        for loss in &lens.losses {
            let mut loss = loss.clone();
            let only_in = loss.narrow.as_ref().and_then(|narrow| narrow.only_in);
            // The shape may serve both kinds of messages, but this route builds only one of them.
            if only_in.is_some_and(|only| only != self.message(to)) {
                continue;
            }
            // A replacement is a place of the response. Any other loss is a place of the source.
            if let (Some(at), true) = (answer, loss.instead.is_some()) {
                loss.place.replace_range(..1, &at.place);
                loss.unless_found = at.unless_found;
            }
            if let (Some(read), None) = (read, &loss.instead)
                && loss.side != self.env.side_name(self.serves)
            {
                loss.place.replace_range(..1, read);
            }
            self.lose(loss);
        }
        self.summary.refuses |= !lens.refuses.is_empty();
    }

    /// Registers the use of a conversion towards `to` that rejects values of the type `ty`.
    pub(super) fn use_partial(&self, name: &Spanned<String>, to: SideId, ty: &Type, wrote: Option<&str>) {
        let partial = Partial {
            name: name.value.clone(),
            span: name.span,
            from: self.env.side_name(to.other()).to_owned(),
            to: self.env.side_name(to).to_owned(),
            ty: ty.to_string(),
            wrote: None,
            is_function: false,
        };
        self.env.lenses.use_partial(&partial, wrote);
    }

    /// Returns the kind of message that is built for a side.
    pub(super) fn message(&self, to: SideId) -> Message {
        if to == self.serves { Message::Answer } else { Message::Request }
    }

    /// Records the narrowings of a value at `place` as losses.
    pub(super) fn lose_narrower(
        &mut self,
        narrowings: &[Narrowing],
        towards: SideId,
        place: &str,
        span: Span,
    ) {
        for narrowing in narrowings {
            if narrowing.concerns(self.message(towards)) {
                let side = if narrowing.is_of_target { towards } else { towards.other() };
                let (side, origin) = (self.env.side_name(side).to_owned(), self.env.origin(span));
                self.lose(crate::mapping::lens::lost(narrowing, side, place, origin));
            }
        }
    }

    /// Compares the types of a parameter that passes unchanged, as text.
    pub(super) fn parameter_types(&mut self, part: &str, from: &Parameter, to: &Parameter, span: Span) {
        let towards = self.serves.other();
        let source = TypeIn { types: self.env.types(self.serves), ty: &from.ty };
        let target = TypeIn { types: self.env.types(towards), ty: &to.ty };
        let place = format!("{part}.{}", from.name);
        // Parameters are compared by their types, although they are sent as text: the receiver
        // parses them.
        let mut found = match compare(source, target, Some(Message::Request)) {
            Ok(narrowings) => narrowings,
            // Any value can be written as text, so a type mismatch is irrelevant here.
            Err(_) if is_any_text(target) => Vec::new(),
            Err(why) => vec![Narrowing::of_both_messages(format!("values that are no {}: {why}", to.ty))],
        };
        if to.required && !from.required {
            found.push(Narrowing::of_both_messages("a request without it".to_owned()));
        }
        if !from.required {
            found.extend(defaults(from.default.as_deref(), to.default.as_deref()));
        }
        self.lose_narrower(&found, towards, &place, span);
    }

    /// Records a loss, unless it is known already.
    pub(super) fn lose(&mut self, loss: Loss) {
        if !self.summary.losses.contains(&loss) {
            self.summary.losses.push(loss);
        }
    }

    /// Records a restriction that a line of the mapping implies.
    pub(super) fn limit(&mut self, text: String, span: Span) {
        let note =
            plan::Note { kind: plan::NoteKind::Differs, name: None, text, origin: self.env.origin(span) };
        if !self.summary.bounds.contains(&note) {
            self.summary.bounds.push(note);
        }
    }

    /// Compiles a refusal: the pack's policy with the overrides of the route.
    pub(super) fn refusal(&mut self, refuse: &Refuse) -> Option<Refusal> {
        self.summary.refuses = true;
        let reason = self.env.reason(&refuse.reason, &[], self.findings)?;
        let (pack, own) = (&self.env.refuse, &refuse.policy);
        let after_date = super::policy::check(own, self.env.world.names, self.findings);
        let after_status = own.after.as_ref().and_then(|after| after.status.as_ref());
        let side = self.serves.place();
        Some(Refusal {
            reason,
            legacy_forward: own.legacy_forward[side].unwrap_or(pack.legacy_forward[side]),
            status: own.status.as_ref().map_or(pack.status, |status| status.value as u16),
            // An explicit `date: null` overrides the pack's date.
            after_date: after_date.unwrap_or_else(|| pack.after_date.clone()),
            after_status: after_status.map_or(pack.after_status, |status| status.value as u16),
        })
    }

    /// Reports names under `allow_slash:` that are no path variables.
    pub(super) fn unknown_slashes(&mut self, listed: &[Spanned<String>], operations: &[&Operation]) {
        for name in listed {
            let known: Vec<&str> =
                operations.iter().flat_map(|operation| operation.key.path.variables()).collect();
            if !known.contains(&name.value.as_str()) {
                self.findings.push(faults::unknown_slash(name, &known));
            }
        }
    }

    /// Checks that the served operation lists the status of a response.
    pub(super) fn promised_status(&mut self, status: &Spanned<i64>) -> Option<u16> {
        let value = status.value as u16;
        if self.operation.response(value).is_none() {
            let side = self.env.side_name(self.serves);
            self.findings.push(faults::unknown_status(value, status.span, side, self.operation));
            return None;
        }
        Some(value)
    }
}

/// Returns whether a type accepts every text.
fn is_any_text(ty: TypeIn<'_>) -> bool {
    match ty.types.resolve(ty.ty).kind {
        TypeKind::Scalar(scalar) => {
            scalar.kind == ScalarKind::String
                && scalar.values.as_ref().is_none_or(|values| values.open)
                && scalar.format.is_none()
                && *scalar.limits == crate::contract::ScalarLimits::default()
        }
        _ => false,
    }
}
