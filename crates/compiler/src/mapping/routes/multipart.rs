//! `multipart/form-data` bodies that a shape maps: ensures that files remain files. Changing a
//! file would require buffering it, so shapes can only pass, rename or drop files.

use super::faults;
use super::operations::multipart;
use super::route::RouteCheck;
use crate::contract::{Media, RequestBody};
use crate::diagnostic::Span;
use crate::mapping::ast;
use switchback_plan::{Close, CloseFrom, Member, MemberAction, MultipartFormat, PartKind, ValueOp};

impl RouteCheck<'_, '_> {
    /// Checks that the op of a request passes files as files. `used` is the pair's `request:`.
    pub(super) fn files(
        &mut self,
        op: &ValueOp,
        used: &ast::BodyDecl,
        span: Span,
        [from, to]: [Option<&RequestBody>; 2],
    ) -> Option<()> {
        let sides = [(from, self.serves), (to, self.serves.other())];
        let formats = sides.map(|(body, side)| match body.map(|body| (&body.media, body)) {
            Some((Media::Multipart(_, said, lists), body)) => {
                Some(multipart(&body.ty, said, lists, self.env.types(side)))
            }
            _ => None,
        });
        if formats.iter().all(Option::is_none) {
            return Some(());
        }
        let [from, to] = &formats;
        let is_file = |format: &Option<MultipartFormat>, name: &str| {
            format.as_ref().is_some_and(|format| format.is_file(name))
        };
        let (members, closes): (&[Member], &[Close]) = match op {
            ValueOp::Object(object) => (&object.members, &object.close),
            _ => {
                self.findings.push(faults::parts_of_no_object(span));
                return None;
            }
        };
        let mark = self.findings.len();
        let files = |format: &Option<MultipartFormat>| -> Vec<String> {
            let parts = format.iter().flat_map(|format| &format.parts);
            let files = parts.filter(|(_, kind)| *kind == PartKind::File);
            files.map(|(name, _)| name.text.to_string()).collect()
        };
        for name in files(from) {
            // The name of the target part, empty if the file becomes part of another value, `None`
            // if it is dropped or refused.
            let fate = match members.iter().find(|member| *member.name.text == *name) {
                None => None,
                Some(member) if member.capture.is_some() => Some(""),
                Some(member) => match &member.action {
                    MemberAction::Emit(emit) if matches!(emit.op, ValueOp::Keep) => Some(&*emit.name.text),
                    MemberAction::Emit(_) => Some(""),
                    MemberAction::Drop | MemberAction::Shadowed | MemberAction::Refuse(_) => None,
                },
            };
            if fate.is_some_and(|fate| !is_file(to, fate)) {
                let at = self.line_of(used, &name, span);
                let side = self.env.side_name(self.serves);
                self.findings.push(faults::file_alone(at, side, &name));
            }
        }
        for name in files(to) {
            let made = members.iter().any(|member| match &member.action {
                MemberAction::Emit(emit) => *emit.name.text == *name && !is_file(from, &member.name.text),
                _ => false,
            });
            let is_settled = |from: &CloseFrom| !matches!(from, CloseFrom::Captured { .. });
            let closed = closes.iter().any(|close| *close.name.text == *name && is_settled(&close.from));
            // The first loop has reported captured files.
            let captured = closes.iter().any(|close| {
                let CloseFrom::Captured { alternatives, .. } = &close.from else { return false };
                let of = |slot: u16| members.iter().find(|member| member.capture == Some(slot));
                *close.name.text == *name
                    && alternatives
                        .iter()
                        .any(|one| of(one.slot).is_none_or(|member| !is_file(from, &member.name.text)))
            });
            if made || closed || captured {
                let at = self.line_of(used, &name, span);
                let side = self.env.side_name(self.serves.other());
                self.findings.push(faults::file_alone(at, side, &name));
            }
        }
        (!self.findings.errors_since(mark)).then_some(())
    }

    /// Returns the line of a shape that names a member of a body.
    fn line_of(&self, used: &ast::BodyDecl, name: &str, otherwise: Span) -> Span {
        let shape = match used {
            ast::BodyDecl::Inline(shape) => Some(&**shape),
            ast::BodyDecl::Shape(used) => {
                let shapes = &self.env.world.program.shapes;
                shapes
                    .iter()
                    .find(|shape| shape.name.as_ref().is_some_and(|known| known.value == used.name.value))
            }
            ast::BodyDecl::Keep(span) | ast::BodyDecl::Empty(span) => return *span,
        };
        let Some(shape) = shape else { return otherwise };
        let is_it = |place: &ast::FieldPlace| place.0.first().is_some_and(|first| first == name);
        let renamed = shape.lines.rename.iter().find(|line| is_it(&line.old.value) || is_it(&line.new.value));
        let only =
            || shape.lines.only.iter().find(|line| is_it(&line.place.value)).map(|line| line.place.span);
        let constant =
            || shape.lines.constant.iter().find(|line| line.name.value == name).map(|line| line.name.span);
        let same = || shape.lines.same.iter().find(|one| one.value == name).map(|one| one.span);
        renamed.map(|line| line.span).or_else(same).or_else(only).or_else(constant).unwrap_or(shape.span)
    }
}
