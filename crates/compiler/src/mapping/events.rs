//! Events: each that the one side sends becomes one of the other's, or is dropped for a reason that somebody has written down.

use super::ast::{Body, Event, EventSides, Spanned};
use super::faults;
use super::lens::{Lenses, Supply, World};
use super::message_place::{Missed, Part, parse, walk};
use crate::contract::{TypeKind, Webhook, assignable};
use crate::diagnostic::Findings;
use switchback_plan::{Becomes, BodyPlan, Class, EventName, EventRoute, Events, Loss, SideId, ValueOp};

struct Check<'c, 'p> {
    world: World<'p>,
    lenses: &'c Lenses<'p>,
    from: SideId,
    findings: &'c mut Findings,
}

/// What becomes of the events of the side that sends; none where the pack carries none.
pub(super) fn compile<'p>(world: World<'p>, lenses: &Lenses<'p>, findings: &mut Findings) -> Option<Events> {
    let written = &world.program.events;
    let Some(sides) = &world.program.manifest.events else {
        if let Some(first) = written.first() {
            findings.push(faults::events_undeclared(first.span));
        }
        return None;
    };
    let from = if sides.from.side == 0 { SideId::OLD } else { SideId::NEW };
    let mut check = Check { world, lenses, from, findings };
    let webhooks = &check.world.contracts[from.place()].webhooks;
    if webhooks.is_empty() {
        check.findings.push(faults::no_webhooks(sides.from.span, &world.contracts[from.place()].name));
    }
    let name = check.name(sides, webhooks);
    let told_in = check.told_in(sides);
    let mut routes = Vec::new();
    for webhook in webhooks {
        let of = |event: &&Event| {
            event.names[from.place()].as_ref().is_some_and(|name| name.value == webhook.name)
        };
        let mut found = written.iter().filter(of);
        match found.next() {
            None => {
                let side = &world.contracts[from.place()].name;
                check.findings.push(faults::event_unanswered(sides.span, &webhook.name, side));
            }
            Some(event) => routes.extend(check.event(event, webhook)),
        }
        if let Some(again) = found.next() {
            check.findings.push(faults::event_twice(again.span, &webhook.name));
        }
    }
    for event in written {
        check.known(event);
    }
    Some(Events { from, name: name?, told_in, routes })
}

impl Check<'_, '_> {
    /// Where the name of an event stands that is sent.
    fn name(&mut self, sides: &EventSides, webhooks: &[Webhook]) -> Option<EventName> {
        let place = sides.names[self.from.place()].as_ref()?;
        let Some((part, names)) = parse(&place.value) else {
            self.findings.push(faults::event_place(place));
            return None;
        };
        if part == Part::Headers {
            return Some(EventName::Header(names[0].to_ascii_lowercase()));
        }
        for webhook in webhooks {
            self.is_there(place, &names, webhook)?;
        }
        Some(EventName::Body(names.into_iter().map(Into::into).collect()))
    }

    /// A place in the body of an event that is sent.
    fn is_there(&mut self, place: &Spanned<String>, names: &[&str], webhook: &Webhook) -> Option<()> {
        let types = &self.world.contracts[self.from.place()].types;
        let mut missed = Missed::default();
        let found =
            webhook.body.as_ref().map(|body| walk(&body.ty, names, types, &mut missed)).unwrap_or_default();
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

    /// The header field in which receivers are told the name.
    fn told_in(&mut self, sides: &EventSides) -> Option<String> {
        let place = sides.names[self.from.other().place()].as_ref()?;
        match parse(&place.value) {
            Some((Part::Headers, names)) => Some(names[0].to_ascii_lowercase()),
            // The shape makes it.
            Some((Part::Body, _)) => None,
            None => {
                self.findings.push(faults::event_place(place));
                None
            }
        }
    }

    fn event(&mut self, event: &Event, webhook: &Webhook) -> Option<EventRoute> {
        let key = match &event.key {
            None => Vec::new(),
            Some(place) => match parse(&place.value) {
                Some((Part::Body, names)) => {
                    self.is_there(place, &names, webhook)?;
                    names.into_iter().map(Into::into).collect()
                }
                _ => {
                    self.findings.push(faults::event_key(place));
                    return None;
                }
            },
        };
        let (becomes, losses) = match (&event.drop, &event.names[self.from.other().place()]) {
            (Some(because), None) if event.body.is_none() => {
                (Becomes::Dropped { because: because.value.clone() }, Vec::new())
            }
            (None, Some(name)) => {
                let (body, losses) = self.body(event, name, webhook)?;
                (Becomes::Event { name: name.value.as_str().into(), body }, losses)
            }
            _ => {
                self.findings.push(faults::event_or_drop(event.span));
                return None;
            }
        };
        let origin = super::origin(self.world.sources, event.span);
        Some(EventRoute { sent: webhook.name.as_str().into(), becomes, key, losses, origin })
    }

    fn body(
        &mut self,
        event: &Event,
        name: &Spanned<String>,
        webhook: &Webhook,
    ) -> Option<(BodyPlan, Vec<Loss>)> {
        let to = self.from.other();
        let told = self.world.contracts[to.place()].webhooks.iter().find(|known| known.name == name.value)?;
        let (Some(sent), Some(wanted)) = (&webhook.body, &told.body) else {
            self.findings.push(faults::event_without_body(event.span));
            return None;
        };
        let of = [self.from, to].map(|side| &self.world.contracts[side.place()].types);
        let (source, target) = (of[0].at(&sent.ty), of[1].at(&wanted.ty));
        let types = if to == SideId::OLD { [target, source] } else { [source, target] };
        let supply = Supply::default();
        let lens = match &event.body {
            None | Some(Body::Empty(_)) => {
                self.findings.push(faults::event_body_missing(event.span));
                return None;
            }
            Some(Body::Keep(span)) => {
                if let Err(why) = assignable(source, target) {
                    self.findings.push(faults::event_keep(*span, &why.to_string()));
                    return None;
                }
                let because = "the body is the same on both sides".to_owned();
                return Some((BodyPlan { op: ValueOp::Keep, class: Class::Pass, because }, Vec::new()));
            }
            Some(Body::Shape(used)) => self.lenses.body(used, types, to, &supply, self.findings)?,
            Some(Body::Inline(shape)) => {
                // Named shapes are enough for events: a shape in place has no name to be tested by.
                self.findings.push(faults::event_inline(shape.span));
                return None;
            }
        };
        let plan = BodyPlan { op: lens.op, class: lens.class, because: lens.because };
        Some((plan, lens.losses))
    }

    /// Both names are those of events that there are.
    fn known(&mut self, event: &Event) {
        if event.names[self.from.place()].is_none() {
            self.findings.push(faults::event_or_drop(event.span));
        }
        for (side, name) in event.names.iter().enumerate() {
            let contract = &self.world.contracts[side];
            if let Some(name) = name
                && !contract.webhooks.iter().any(|known| known.name == name.value)
            {
                let known: Vec<&str> = contract.webhooks.iter().map(|known| known.name.as_str()).collect();
                self.findings.push(faults::unknown_event(name, &contract.name, known));
            }
        }
    }
}
