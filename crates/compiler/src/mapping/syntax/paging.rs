//! Reads `paging:` of a route.

use super::{SyntaxReader, keys};
use crate::mapping::ast::{FieldPlace, NextPageDecl, PagedRoute, PagedSideDecl, Spanned};
use crate::yaml::{Kind, Node};

impl SyntaxReader<'_> {
    /// Reads `{v1: {…}, v2: {…}, call: GET /things, upto: 20}`.
    pub(super) fn paged_route(&mut self, node: &Node) -> Option<PagedRoute> {
        let mut sides = [None, None];
        let (mut call, mut upto) = (None, None);
        for (key, value) in node.map(self.findings)? {
            match key.name.as_str() {
                "call" => call = self.text(value),
                // The maximum number of calls per request.
                "upto" => upto = self.whole(value, 1..=50),
                _ => {
                    if let Some(side) = self.side(&key.name, key.span) {
                        sides[side.side] = self.paged_side(value);
                    }
                }
            }
        }
        for (side, read) in sides.iter().enumerate() {
            // A side with an error is present, so do not report it as missing.
            if node.get(&self.sides[side].value).is_none() && read.is_none() {
                self.findings.push(super::faults::missing_side(
                    "`paging`",
                    &self.sides[side].value,
                    node.span,
                ));
            }
        }
        let [old, new] = sides;
        Some(PagedRoute { sides: [old?, new?], call, upto, span: node.span })
    }

    fn paged_side(&mut self, node: &Node) -> Option<PagedSideDecl> {
        let fields = self.fields(node, &keys::PAGED_SIDE)?;
        let mark = self.findings.len();
        let side = PagedSideDecl {
            page: self.text_of(fields.get("page")),
            offset: self.text_of(fields.get("offset")),
            cursor: self.text_of(fields.get("cursor")),
            first: fields.get("first").and_then(|node| self.whole(node, 0..=1)),
            start: self.text_of(fields.get("start")),
            end: self.text_of(fields.get("end")),
            size: self.text_of(fields.get("size")),
            default: fields.get("default").and_then(|node| self.whole(node, 1..=100_000)),
            maximum: fields.get("maximum").and_then(|node| self.whole(node, 1..=100_000)),
            next: fields.get("next").and_then(|node| self.next_page(node)),
            more: fields.get("more").and_then(|node| self.paged_place(node)),
            total: fields.get("total").and_then(|node| self.paged_place(node)),
            items: fields.get("items").and_then(|node| self.paged_place(node)),
            span: node.span,
        };
        (!self.findings.errors_since(mark)).then_some(side)
    }

    /// Reads `link`, `$.place`, `{header: name}` or `{link: $.place}`.
    fn next_page(&mut self, node: &Node) -> Option<Spanned<NextPageDecl>> {
        let span = node.span;
        let value = match &node.kind {
            Kind::String(word, _) if word == "link" => NextPageDecl::Link,
            Kind::Map(_) => {
                let fields = self.fields(node, &keys::PAGED_NEXT)?;
                match (fields.get("header"), fields.get("link")) {
                    (Some(name), None) => NextPageDecl::Header(self.text(name)?.value),
                    (None, Some(place)) => NextPageDecl::LinkMember(self.paged_place(place)?.value),
                    _ => {
                        self.findings.push(super::faults::one_of_keys(span, "`next`", &["header", "link"]));
                        return None;
                    }
                }
            }
            _ => NextPageDecl::Member(self.paged_place(node)?.value),
        };
        Some(Spanned { value, span })
    }

    /// Reads a place in a response; `$` is the entire body.
    fn paged_place(&mut self, node: &Node) -> Option<Spanned<FieldPlace>> {
        let text = self.text(node)?;
        match text.value.as_str() {
            "$" => Some(Spanned { value: FieldPlace(Vec::new()), span: text.span }),
            path => self.place(path, text.span),
        }
    }
}
