//! Compiles the target of a call: its operation and the parts of its path.

use super::faults;
use super::flow::Flow;
use super::proof::{PlaceUse, is_any};
use super::route::RouteCheck;
use crate::contract::{OpKey, Operation};
use crate::diagnostic::Span;
use crate::mapping::ast::Spanned;
use switchback_plan::{PathPart, SideId};

/// A piece of the path in a `call:`.
enum TargetPiece<'t> {
    Literal(&'t str),
    /// The text between braces, and its offset.
    Variable(&'t str, usize),
}

impl<'a> RouteCheck<'_, 'a> {
    /// Resolves the target of a call such as `call: 'PUT /things/{id}'`: its operation and the
    /// parts of its path. With `certain`, reports places that may be absent or null.
    pub(super) fn target(
        &mut self,
        written: &Spanned<String>,
        called: SideId,
        certain: bool,
        flow: &Flow,
    ) -> Option<(&'a Operation, Vec<PathPart>)> {
        let contract = self.env.contract(called);
        let (method, pieces) = pieces(&written.value);
        let mut template = format!("{method} ");
        for (at, piece) in pieces.iter().enumerate() {
            match piece {
                TargetPiece::Literal(text) => template.push_str(text),
                TargetPiece::Variable(..) => template.push_str(&format!("{{v{at}}}")),
            }
        }
        let key = match OpKey::parse(&template) {
            Ok(key) => key,
            Err(fault) => {
                self.findings.push(faults::operation_form(&written.value, written.span, &fault));
                return None;
            }
        };
        // Compile every piece before looking up the operation, so that errors in both are reported.
        let parts: Vec<_> = pieces.iter().map(|piece| self.part(piece, written, certain, flow)).collect();
        let Some(operation) = contract.find_shape(&key.method, &key.path.shape()) else {
            self.findings.push(faults::unknown_call(&written.value, &key, written.span, contract));
            return None;
        };
        self.env.record_operation(written.span, operation, called);
        Some((operation, parts.into_iter().collect::<Option<Vec<_>>>()?))
    }

    fn part(
        &mut self,
        piece: &TargetPiece<'_>,
        written: &Spanned<String>,
        certain: bool,
        flow: &Flow,
    ) -> Option<PathPart> {
        let (text, offset) = match piece {
            TargetPiece::Literal(text) => return Some(PathPart::Literal((*text).into())),
            TargetPiece::Variable(text, offset) => (*text, *offset),
        };
        let span = self.inside(written, text, offset);
        if text.starts_with('$') {
            let found = self.reading(flow).find_one(text, span)?;
            self.is_scalar(&found.held, "a part of an address", span)?;
            self.needs_place(&found.location, PlaceUse::Text("a part of an address"), flow, span);
            let types = self.env.types(found.held.side);
            let is_there = !found.held.absent
                && (!types.resolve(&found.held.ty).nullable || is_any(&found.held.ty, types));
            if certain && !is_there {
                self.findings.push(faults::empty_part(text, span));
                return None;
            }
            return Some(PathPart::Value(found.into()));
        }
        let names: Vec<&str> = self.operation.key.path.variables().collect();
        let Some(index) = names.iter().position(|name| *name == text) else {
            self.findings.push(faults::unknown_variable(text, span, &self.operation.key, &names));
            return None;
        };
        self.summary.reads.places.insert(format!("request.path.{text}"));
        Some(PathPart::Variable(index as u16))
    }

    /// Returns the span of a part of a text, or that of the entire text if it is written with
    /// escapes.
    fn inside(&self, written: &Spanned<String>, part: &str, offset: usize) -> Span {
        let whole = written.span;
        let source = self.env.world.sources.text(whole.file);
        let quoted = source.as_bytes().get(whole.start as usize).is_some_and(|b| matches!(b, b'\'' | b'"'));
        let start = whole.start as usize + offset + usize::from(quoted);
        match source.get(start..start + part.len()) {
            Some(found) if found == part => Span::new(whole.file, start as u32, (start + part.len()) as u32),
            _ => whole,
        }
    }
}

/// Splits a call into its method and the pieces of its path.
fn pieces(text: &str) -> (&str, Vec<TargetPiece<'_>>) {
    let (method, _) = text.split_once(' ').unwrap_or(("", text));
    let mut pieces = Vec::new();
    let mut literal = if method.is_empty() { 0 } else { method.len() + 1 };
    let mut at = literal;
    while let Some(open) = text[at..].find('{').map(|found| found + at) {
        let Some(close) = closing(text, open) else { break };
        if open > literal {
            pieces.push(TargetPiece::Literal(&text[literal..open]));
        }
        pieces.push(TargetPiece::Variable(&text[open + 1..close], open + 1));
        literal = close + 1;
        at = literal;
    }
    if literal < text.len() {
        pieces.push(TargetPiece::Literal(&text[literal..]));
    }
    (method, pieces)
}

/// Returns the position of the brace that closes the one at `open`.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(open + at);
        }
    }
    None
}
