//! Events: the sending side, and the translation of each event.

use super::kinds::{BySide, OneOrList, SideName, Text, kinds};
use super::route::BodyDecl;
use super::section::{Read, section};
use super::{SideRef, Spanned, SyntaxReader, faults};
use crate::diagnostic::Span;
use crate::mapping::schema::{Sides, text};
use crate::yaml::{Key, Kind, Node};
use serde_json::{Value, json};

/// A text for each side, of which one suffices.
type Names = BySide<Text, 1>;

/// The side that sends events, and the location of their names.
#[derive(Clone, Debug)]
pub(crate) struct EventSides {
    pub from: SideRef,
    /// By side. The receivers' side needs no name if the body contains it.
    pub names: [Option<Spanned<String>>; 2],
    pub span: Span,
}

section! {
    /// `{from: v2, name: {v1: $.headers.x-event, v2: $.body.type}}`
    EventSidesKeys is "`events`" {
        /// The side that sends.
        required from: Sender,
        /// Place of an event's name: `$.body.type` or `$.headers.x-event`. The receivers' side
        /// needs one only if its body lacks the name; it is then a header field.
        filled name: Names,
        at span: Span,
    }
    into EventSides: |EventSidesKeys { from, name: names, span }, fields, reader| {
        let name = fields.get("name")?;
        if names[from.side].is_none() {
            let sender = &reader.sides[from.side].value;
            reader.findings.push(faults::missing_side("`name`", sender, name.span));
        }
        Some(EventSides { from, names, span })
    }
}

kinds! {
    /// The side that sends events.
    Sender -> SideRef, SideName::read, |_| text();
}

section! {
    /// Translation of one event of the sending side.
    EventDecl is "an event", defines "event" {
        /// Its name on the side that sends, and on the other one.
        required names("event"): Names,
        /// Translation of the body: a shape, or `keep` if both sides have the same body.
        optional body: EventBody,
        /// The value in the body, such as `$.body.data.id`, that keeps events in order; by side
        /// where the other one sends them too.
        optional key: EventKey,
        /// Reason why receivers of the other side do not get the event.
        optional drop: Text,
        /// Values by which a dual run recognizes the other side's event about the same occurrence.
        optional correlate: Correlation,
        span_of span("event"): Span,
    }
}

kinds! {
    /// A body, of which the schema describes the usual forms.
    EventBody -> BodyDecl, BodyDecl::read, |_| text();
}

/// Ordering key: events with the same key are delivered in order.
#[derive(Clone, Debug)]
pub(crate) enum EventKey {
    /// A path in the event of the sending side.
    Sent(Spanned<String>),
    /// One path per side, if the other side also sends events itself.
    BySide([Option<Spanned<String>>; 2]),
}

impl Read for EventKey {
    type Output = EventKey;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<EventKey> {
        Some(match node.kind {
            Kind::Map(_) => EventKey::BySide(Names::read(key, node, reader)?),
            _ => EventKey::Sent(reader.text(node)?),
        })
    }

    fn schema(sides: Sides<'_>) -> Value {
        json!({"anyOf": [text(), Names::schema(sides)]})
    }
}

section! {
    /// Deduplication: identifies two events, one of each side, as the same event.
    Correlation is "`correlate`" {
        /// Values in the body that receivers know, such as `$.body.note.id`: one, or several that
        /// are equal together.
        required by: OneOrList<Text>,
        /// How long the one waits for the other: `90s`, `2m`, `1h`.
        required within: Text,
    }
}
