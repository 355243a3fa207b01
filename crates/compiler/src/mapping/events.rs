//! Compiles event routes: each event that one side sends becomes an event of the other side, or is
//! dropped with a stated reason.

use super::ast::{BodyDecl, Correlation, EventDecl, EventKey, EventSides, Spanned};
use super::compare::Comparisons;
use super::lens::{LensEnv, Lenses, Supply};
use super::message_place::{MessagePart, Missed, parse, walk};
use super::{faults, literal};
use crate::contract::{TypeKind, Webhook, compare};
use crate::diagnostic::{Finding, Findings};
use std::sync::Arc;
use std::time::Duration;
use switchback_plan::{
    Becomes, BodyPlan, Class, Correlate, EventName, EventRoute, Events, Loss, Message, Root, SideId, ValueOp,
};

/// Bounds of the time that an event may wait for its counterpart from the other side.
const WITHIN_MIN: Duration = Duration::from_secs(1);
const WITHIN_MAX: Duration = Duration::from_secs(86_400);

struct EventCheck<'c, 'p> {
    world: LensEnv<'p>,
    lenses: &'c Lenses<'p>,
    comparisons: &'c Comparisons<'p>,
    sides: &'c EventSides,
    from: SideId,
    findings: &'c mut Findings,
}

/// Compiles the routes for the events of the sending side, or returns `None` if the pack has no
/// events.
pub(super) fn compile<'p>(
    world: LensEnv<'p>,
    lenses: &Lenses<'p>,
    comparisons: &Comparisons<'p>,
    findings: &mut Findings,
) -> Option<Events> {
    let written = &world.program.events;
    let Some(sides) = &world.program.manifest.events else {
        if let Some(first) = written.first() {
            findings.push(faults::events_undeclared(first.span));
        }
        return None;
    };
    let from = if sides.from.side == 0 { SideId::OLD } else { SideId::NEW };
    let mut check = EventCheck { world, lenses, comparisons, sides, from, findings };
    let webhooks = &check.world.contracts[from.place()].webhooks;
    if webhooks.is_empty() {
        check.findings.push(faults::no_webhooks(sides.from.span, &world.contracts[from.place()].name));
    }
    let name = check.name(sides, webhooks);
    let told = check.event_name(sides);
    let mut routes: Vec<EventRoute> = Vec::new();
    for webhook in webhooks {
        let of = |event: &&EventDecl| {
            event.names[from.place()].as_ref().is_some_and(|name| name.value == webhook.name)
        };
        let mut found = written.iter().filter(of);
        match found.next() {
            None => {
                let side = &world.contracts[from.place()].name;
                check.findings.push(faults::event_unanswered(sides.span, &webhook.name, side));
            }
            Some(event) => {
                let route = check.event(event, webhook);
                if let Some(route) = &route {
                    check.agrees(event, route, &routes);
                }
                routes.extend(route);
            }
        }
        if let Some(again) = found.next() {
            check.findings.push(faults::event_twice(again.span, &webhook.name));
        }
    }
    // Covers events with unknown names, which the loop over webhooks does not reach.
    for event in written {
        check.check_names(event);
    }
    Some(Events { from, name: name?, told, routes })
}

impl<'p> EventCheck<'_, 'p> {
    /// Returns where events of the sending side contain their name.
    fn name(&mut self, sides: &EventSides, webhooks: &[Webhook]) -> Option<EventName> {
        let place = sides.names[self.from.place()].as_ref()?;
        let Some((part, names)) = parse(&place.value) else {
            self.findings.push(faults::event_place(place));
            return None;
        };
        if part == MessagePart::Headers {
            return Some(EventName::Header(names[0].to_ascii_lowercase()));
        }
        for webhook in webhooks {
            self.is_there(self.from, place, &names, webhook)?;
        }
        Some(EventName::Body(names.into_iter().map(Into::into).collect()))
    }

    /// Checks that a place in the body of an event exists and may be a scalar.
    fn is_there(
        &mut self,
        side: SideId,
        place: &Spanned<String>,
        names: &[&str],
        webhook: &Webhook,
    ) -> Option<()> {
        let types = &self.world.contracts[side.place()].types;
        let mut missed = Missed::default();
        let found =
            webhook.body.as_ref().map(|body| walk(&body.ty, names, types, &mut missed)).unwrap_or_default();
        // An object without declared fields may hold a scalar as far as the contract shows.
        let is_scalar = found.iter().any(|ty| {
            matches!(
                types.resolve(ty).kind,
                TypeKind::Any | TypeKind::Scalar(_) | TypeKind::OneOf(_) | TypeKind::Object(_)
            ) && !matches!(types.resolve(ty).kind, TypeKind::Object(object) if !object.fields.is_empty())
        });
        if !is_scalar {
            self.findings.push(faults::event_place_unknown(place, &webhook.name, &missed));
            return None;
        }
        Some(())
    }

    /// Returns where events of the receiving side contain their name.
    fn event_name(&mut self, sides: &EventSides) -> Option<EventName> {
        let place = sides.names[self.from.other().place()].as_ref()?;
        match parse(&place.value) {
            Some((MessagePart::Headers, names)) => Some(EventName::Header(names[0].to_ascii_lowercase())),
            // Not checked against the contract: the shape writes this member.
            Some((MessagePart::Body, names)) => {
                Some(EventName::Body(names.into_iter().map(Into::into).collect()))
            }
            None => {
                self.findings.push(faults::event_place(place));
                None
            }
        }
    }

    /// Parses a place in the body of an event and checks that it exists.
    fn in_body(
        &mut self,
        side: SideId,
        place: &Spanned<String>,
        webhook: &Webhook,
        otherwise: fn(&Spanned<String>) -> Finding,
    ) -> Option<Vec<Arc<str>>> {
        let Some((MessagePart::Body, names)) = parse(&place.value) else {
            self.findings.push(otherwise(place));
            return None;
        };
        self.is_there(side, place, &names, webhook)?;
        Some(names.into_iter().map(Into::into).collect())
    }

    /// Returns the ordering keys of the sending side's event and of the receiving side's own event;
    /// empty paths if not declared.
    fn keys(&mut self, event: &EventDecl, webhook: &Webhook) -> Option<[Vec<Arc<str>>; 2]> {
        let to = self.from.other();
        let (sent, own) = match &event.key {
            None => (None, None),
            Some(EventKey::Sent(place)) => (Some(place), None),
            Some(EventKey::BySide(places)) => {
                (places[self.from.place()].as_ref(), places[to.place()].as_ref())
            }
        };
        let mut keys = [Vec::new(), Vec::new()];
        if let Some(place) = sent {
            keys[0] = self.in_body(self.from, place, webhook, faults::event_key)?;
        }
        // Dropped events have no counterpart, so their own key is not checked.
        if let (Some(place), Some(told)) = (own, self.receiving(event)) {
            keys[1] = self.in_body(to, place, told, faults::event_key)?;
        }
        Some(keys)
    }

    /// Returns the receiving side's event that this one becomes.
    fn receiving(&self, event: &EventDecl) -> Option<&'p Webhook> {
        let to = self.from.other().place();
        let name = event.names[to].as_ref()?;
        self.world.contracts[to].webhook(&name.value)
    }

    /// Compiles the rule that matches the event with the receiving side's own event.
    fn correlate(&mut self, written: &Correlation, told: &Webhook) -> Option<Correlate> {
        let to = self.from.other();
        let within = period(&written.within.value);
        if within.is_none() {
            self.findings.push(faults::correlated_within(&written.within, WITHIN_MAX.as_secs()));
        }
        if written.by.is_empty() {
            self.findings.push(faults::correlated_by_nothing(written.within.span));
            return None;
        }
        let by = written.by.iter().map(|place| self.in_body(to, place, told, faults::correlated_place));
        // Collect before returning, so that every invalid place is reported.
        let by: Vec<_> = by.collect();
        Some(Correlate { by: by.into_iter().collect::<Option<_>>()?, within: within? })
    }

    /// Checks that all events that become the same event share one correlation: the receiving
    /// side's own event does not reveal which of them it matches.
    fn agrees(&mut self, event: &EventDecl, route: &EventRoute, before: &[EventRoute]) {
        let Some(told) = route.delivered() else {
            if let Some(written) = &event.correlate {
                self.findings.push(faults::correlated_dropped(written.within.span));
            }
            return;
        };
        let same = before.iter().filter_map(EventRoute::delivered).find(|other| other.name == told.name);
        if let Some(other) = same
            && (other.correlate != told.correlate)
        {
            self.findings.push(faults::correlated_otherwise(event.span, told.name));
        }
        if told.correlate.is_some() && self.sides.names[self.from.other().place()].is_none() {
            let side = &self.world.contracts[self.from.other().place()].name;
            self.findings.push(faults::correlated_unnamed(self.sides.span, side));
        }
    }

    fn event(&mut self, event: &EventDecl, webhook: &Webhook) -> Option<EventRoute> {
        let [key, own_key] = self.keys(event, webhook)?;
        let (becomes, losses) = match (&event.drop, &event.names[self.from.other().place()]) {
            (Some(because), None) if event.body.is_none() => {
                (Becomes::Dropped { because: because.value.clone() }, Vec::new())
            }
            (None, Some(name)) => {
                let (body, losses) = self.body(event, name, webhook)?;
                let correlate = match (&event.correlate, self.receiving(event)) {
                    (Some(written), Some(told)) => Some(self.correlate(written, told)?),
                    _ => None,
                };
                let to = self.from.other().place();
                let becomes = Becomes::Event {
                    name: name.value.as_str().into(),
                    operation: operation(&name.value).into(),
                    body,
                    correlate,
                    compare: self.comparisons.of_event(to, &name.value),
                };
                (becomes, losses)
            }
            _ => {
                self.findings.push(faults::event_or_drop(event.span));
                return None;
            }
        };
        let origin = super::origin(self.world.sources, event.span);
        Some(EventRoute { sent: webhook.name.as_str().into(), becomes, key, own_key, losses, origin })
    }

    fn body(
        &mut self,
        event: &EventDecl,
        name: &Spanned<String>,
        webhook: &Webhook,
    ) -> Option<(BodyPlan, Vec<Loss>)> {
        let to = self.from.other();
        let told = self.world.contracts[to.place()].webhook(&name.value)?;
        let (Some(sent), Some(wanted)) = (&webhook.body, &told.body) else {
            self.findings.push(faults::event_without_body(event.span));
            return None;
        };
        let of = [self.from, to].map(|side| &self.world.contracts[side.place()].types);
        let (source, target) = (of[0].at(&sent.ty), of[1].at(&wanted.ty));
        let types = if to == SideId::OLD { [target, source] } else { [source, target] };
        let supply = Supply::default();
        let lens = match &event.body {
            None | Some(BodyDecl::Empty(_)) => {
                self.findings.push(faults::event_body_missing(event.span));
                return None;
            }
            Some(BodyDecl::Keep(span)) => {
                // Contracts describe events like responses: the service sends them.
                let narrowings = match compare(source, target, Some(Message::Answer)) {
                    Ok(narrowings) => narrowings,
                    Err(why) => {
                        self.findings.push(faults::event_keep(*span, &why.to_string()));
                        return None;
                    }
                };
                let losses = narrowings.iter().map(|narrowing| {
                    let side = if narrowing.is_of_target { to } else { self.from };
                    let side = self.world.sides()[side.place()].to_owned();
                    super::lens::lost(narrowing, side, "$", super::origin(self.world.sources, *span))
                });
                let losses = losses.collect();
                let because = "the body is the same on both sides".to_owned();
                return Some((
                    BodyPlan { op: ValueOp::Keep, root: Root::ANY, class: Class::Pass, because },
                    losses,
                ));
            }
            Some(BodyDecl::Shape(used)) => self.lenses.body(used, types, to, &supply, self.findings)?,
            Some(BodyDecl::Inline(shape)) => {
                // Require a named shape, so that examples can test it.
                self.findings.push(faults::event_inline(shape.span));
                return None;
            }
        };
        let plan = BodyPlan { op: lens.op, root: Root::ANY, class: lens.class, because: lens.because };
        let matters = |loss: &Loss| {
            let only_in = loss.narrow.as_ref().and_then(|narrow| narrow.only_in);
            only_in.is_none_or(|only| only == Message::Answer)
        };
        Some((plan, lens.losses.into_iter().filter(matters).collect()))
    }

    /// Checks that both names exist in the contracts.
    fn check_names(&mut self, event: &EventDecl) {
        if event.names[self.from.place()].is_none() {
            self.findings.push(faults::event_or_drop(event.span));
        }
        for (side, name) in event.names.iter().enumerate() {
            let contract = &self.world.contracts[side];
            if let Some(name) = name
                && contract.webhook(&name.value).is_none()
            {
                let known: Vec<&str> = contract.webhooks.iter().map(|known| known.name.as_str()).collect();
                self.findings.push(faults::unknown_event(name, &contract.name, known));
            }
        }
    }
}

/// Returns the name of an event in a dual run, in the same namespace as the operations of its side.
pub(super) fn operation(name: &str) -> String {
    format!("event {name}")
}

/// Parses a time such as `90s`, `2m` or `1h` within the bounds.
fn period(text: &str) -> Option<Duration> {
    literal::duration(text).filter(|time| (WITHIN_MIN..=WITHIN_MAX).contains(time))
}
