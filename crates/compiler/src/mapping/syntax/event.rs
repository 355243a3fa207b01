//! Reads events: the sending side, and the translation of each event.

use super::{SyntaxReader, faults, keys};
use crate::mapping::ast::{Correlation, EventDecl, EventKey, EventSides, Spanned};
use crate::yaml::{Kind, Node};

impl SyntaxReader<'_> {
    /// `{from: v2, name: {v1: $.headers.x-event, v2: $.body.type}}`
    pub(super) fn event_sides(&mut self, node: &Node) -> Option<EventSides> {
        let fields = self.fields(node, &keys::EVENTS)?;
        let from = self.text_of(fields.get("from")).and_then(|name| self.side(&name.value, name.span))?;
        let names = self.event_names(fields.get("name")?);
        if names[from.side].is_none() {
            let sender = self.sides[from.side].value.clone();
            self.findings.push(faults::missing_side("`name`", &sender, fields.get("name")?.span));
        }
        Some(EventSides { from, names, span: node.span })
    }

    /// `{event: {v2: note.changed, v1: noteChanged}, body: Shape, key: $.body.id}`
    pub(super) fn event(&mut self, node: &Node) -> Option<EventDecl> {
        let fields = self.fields(node, &keys::EVENT)?;
        Some(EventDecl {
            names: self.event_names(fields.get("event")?),
            body: fields.get("body").and_then(|node| self.body(node)),
            key: fields.get("key").and_then(|node| self.event_key(node)),
            correlate: fields.get("correlate").and_then(|node| self.correlate(node)),
            drop: self.text_of(fields.get("drop")),
            span: fields.get("event")?.span,
        })
    }

    /// Reads `key:`. A single place belongs to the sending side.
    fn event_key(&mut self, node: &Node) -> Option<EventKey> {
        Some(match node.kind {
            Kind::Map(_) => EventKey::BySide(self.event_names(node)),
            _ => EventKey::Sent(self.text(node)?),
        })
    }

    fn correlate(&mut self, node: &Node) -> Option<Correlation> {
        let fields = self.fields(node, &keys::CORRELATE)?;
        let by = fields.get("by")?;
        let by = match by.kind {
            Kind::Seq(_) => self.texts(Some(by)),
            _ => vec![self.text(by)?],
        };
        Some(Correlation { by, within: self.text(fields.get("within")?)? })
    }

    fn event_names(&mut self, node: &Node) -> [Option<Spanned<String>>; 2] {
        self.by_side(node, "an event", true).map(|node| self.text(node?))
    }
}
