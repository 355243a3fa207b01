//! Translates multipart bodies (`multipart/form-data`) by a plan. Fields are buffered up to the
//! first forwarded file and treated as one object, which the plan translates like JSON. Files are
//! streamed after the fields; the members of the same object decide whether they are forwarded,
//! renamed or dropped. An upload of any size therefore only needs memory for its fields.
//!
//! A field after a file is too late for values that depend on several fields. If its translation
//! does not depend on other fields, it is translated on its own and written at its position.
//! Otherwise the body is rejected, and the upload stops.
//!
//! `fields.rs` converts between fields and objects, `examples.rs` between bodies and examples.

mod examples;
mod fields;
#[cfg(test)]
mod tests;

pub(super) use examples::{example, example_of, example_text};
pub(super) use fields::write_fields;

use super::document::{Env, document};
use super::error::Cause;
use super::fault::{Fault, FaultKind, Sender};
use super::multipart::{self, MultipartFault, PartHead, Piece, Reader};
use super::settings::Settings;
use super::urlencoded;
use bytes::Bytes;
use fields::{Field, object_of, parts_of};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use switchback_json::Limits;
use switchback_plan::{
    BodyFormat, CloseFrom, FormKind, ListStyle, Member, MemberAction, MultipartFormat, ObjectOp, Others,
    PartKind, ReasonId, ValueOp, essence, is_json,
};

/// Maximum number of simultaneous copies of a field's bytes: in the object, in its translation, in
/// the encoded parts and in the call.
pub const HELD_TIMES: usize = 4;

/// Memory per field in addition to its name and content: the `Field`, its node in the form's tree,
/// and its header.
const FIELD_BYTES: usize = size_of::<Field>() + 320;

/// Reserves memory for this number of additional bytes. Returns `false` if the budget is exhausted.
pub type Room<'r> = &'r mut dyn FnMut(usize) -> bool;

/// The state of a multipart body in transit.
#[derive(Debug)]
pub struct Parts {
    reader: Reader,
    boundary: String,
    op: Arc<ObjectOp>,
    from: Arc<MultipartFormat>,
    /// `None` if the call's body is not multipart. Files are then dropped.
    to: Option<Arc<MultipartFormat>>,
    limits: Limits,
    fields: Vec<Field>,
    budget: FieldBudget,
    state: PartState,
    /// The first forwarded file, with its new name.
    first: Option<(String, PartHead)>,
    /// Members that already received a field, recorded when the fields are passed on.
    seen: HashMap<String, Seen>,
    /// The output for files.
    passing: Option<Passing>,
}

/// The memory of fields.
#[derive(Debug)]
struct FieldBudget {
    /// Number of bytes that further fields may have.
    left: usize,
    /// Bytes that the fields occupy, and the part of them that is reserved.
    held: usize,
    granted: usize,
}

impl FieldBudget {
    /// Accounts for bytes of a field before they are buffered, with `beside` bytes of overhead.
    fn charge(&mut self, bytes: usize, beside: usize, room: Room<'_>) -> Result<(), Fault> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| {
            Fault::new(
                FaultKind::TooLarge,
                "the fields of the body are larger than a body that is held may be",
            )
        })?;
        self.held += HELD_TIMES * bytes + beside;
        // Memory of forwarded fields remains reserved for later ones.
        if self.held > self.granted {
            if !room(self.held - self.granted) {
                return Err(Fault::new(FaultKind::Overloaded, "there is no memory for the fields of a body"));
            }
            self.granted = self.held;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Passing {
    boundary: String,
    settings: Arc<Settings>,
}

/// The form in which a member was first received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    is_json: bool,
    /// Whether a single part contained the entire list.
    is_whole_list: bool,
}

/// The current part.
#[derive(Debug)]
enum PartState {
    Between,
    Field(Field),
    Passed,
    Dropped,
}

/// The result of buffering fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathered {
    /// The end of the available data, or of the body.
    More,
    /// A file to forward follows.
    File,
    /// The mapping refuses a file.
    Refused(ReasonId),
}

/// The treatment of a part.
enum Fate {
    Field { is_json: bool },
    Pass(String),
    Drop,
    Refuse(ReasonId),
}

/// The fields as one object, and the properties of their body that a call needs.
#[derive(Clone, Debug)]
pub struct Fields {
    /// JSON text.
    pub json: Bytes,
    /// The boundary of the body.
    pub boundary: String,
    /// The reason, if the mapping refuses a file.
    pub refused: Option<ReasonId>,
    /// Whether files follow.
    pub has_files: bool,
}

impl Parts {
    /// Creates the state for a body. `media_type` is the received media type, empty if missing.
    /// `op` translates the object of the fields to the call's body in the format `to`. `fields_max`
    /// is the maximum number of bytes of all fields.
    ///
    /// # Errors
    ///
    /// Fails if the media type is not multipart or has no valid boundary.
    pub fn new(
        media_type: &str,
        from: &Arc<MultipartFormat>,
        to: &BodyFormat,
        op: &ValueOp,
        limits: Limits,
        fields_max: usize,
    ) -> Result<Parts, Fault> {
        if !essence(media_type).eq_ignore_ascii_case(BodyFormat::MULTIPART) {
            return Err(Fault::unsupported_media(BodyFormat::MULTIPART));
        }
        let ValueOp::Object(op) = op else {
            return Err(Fault::new(FaultKind::Internal, "a plan for a body of parts that makes no object"));
        };
        let boundary = multipart::boundary_of(media_type).map_err(bad)?;
        let to = match to {
            BodyFormat::Multipart(to) => Some(Arc::clone(to)),
            BodyFormat::Json
            | BodyFormat::JsonOrForm(_)
            | BodyFormat::Form(_)
            | BodyFormat::Xml(_)
            | BodyFormat::Opaque(_) => None,
        };
        Ok(Parts {
            reader: Reader::new(&boundary, limits.members),
            boundary: boundary.into_owned(),
            op: Arc::clone(op),
            from: Arc::clone(from),
            to,
            limits,
            fields: Vec::new(),
            budget: FieldBudget { left: fields_max, held: 0, granted: 0 },
            state: PartState::Between,
            first: None,
            seen: HashMap::new(),
            passing: None,
        })
    }

    /// Appends a chunk of the body.
    pub fn push(&mut self, chunk: Bytes) {
        self.reader.push(chunk);
    }

    /// Returns the memory that the fields occupy, including all their copies.
    pub fn buffered_bytes(&self) -> usize {
        self.budget.held
    }

    /// Returns the number of buffered bytes of the current field.
    pub fn begun_bytes(&self) -> usize {
        if let PartState::Field(field) = &self.state { field.text.len() } else { 0 }
    }

    /// Parses the available data, up to the first file to forward.
    ///
    /// # Errors
    ///
    /// Fails if the body is not multipart, or if the fields exceed their limit or the memory
    /// budget.
    pub fn gather(&mut self, room: Room<'_>) -> Result<Gathered, Fault> {
        while let Some(piece) = self.reader.next_piece().map_err(bad)? {
            match piece {
                Piece::Head(head) => match self.fate(&head) {
                    Fate::Field { is_json } => self.open(head, is_json, room)?,
                    Fate::Drop => self.state = PartState::Dropped,
                    Fate::Refuse(reason) => return Ok(Gathered::Refused(reason)),
                    Fate::Pass(name) => {
                        self.state = PartState::Passed;
                        self.first = Some((name, head));
                        return Ok(Gathered::File);
                    }
                },
                Piece::Data(data) => self.hold(&data, room)?,
                Piece::End => {
                    if let PartState::Field(field) = std::mem::replace(&mut self.state, PartState::Between) {
                        self.fields.push(field);
                    }
                }
            }
        }
        Ok(Gathered::More)
    }

    /// Checks that the body is complete. Call it at the end of the body.
    ///
    /// # Errors
    ///
    /// Fails if a part of the body is missing.
    pub fn finish(&self) -> Result<(), Fault> {
        self.reader.finish().map_err(bad)
    }

    /// Takes the buffered fields.
    ///
    /// # Errors
    ///
    /// Fails if the fields do not form an object: a JSON field is malformed, or two fields denote
    /// the same member.
    pub fn fields(&mut self, gathered: Gathered) -> Result<Fields, Fault> {
        let mut out = Vec::with_capacity(self.budget.held / HELD_TIMES);
        let fields = std::mem::take(&mut self.fields);
        object_of(&self.from, &fields, &self.limits, &mut out).map_err(bad)?;
        // Fields after a file must not repeat these members.
        for field in &fields {
            let seen = self.seen_of(field);
            self.seen.entry(self.member_of(field).to_owned()).or_insert(seen);
        }
        let (refused, has_files) = match gathered {
            Gathered::Refused(reason) => (Some(reason), false),
            gathered => (None, gathered == Gathered::File),
        };
        Ok(Fields { json: out.into(), boundary: self.boundary.clone(), refused, has_files })
    }

    /// Starts forwarding files, after fields that were written with this boundary.
    pub fn begin(&mut self, boundary: &str, settings: Arc<Settings>) {
        self.passing = Some(Passing { boundary: boundary.to_owned(), settings });
    }

    /// Returns the next bytes of the call's body, or `None` if more data is needed. Requires a
    /// preceding call of [`Parts::begin`].
    ///
    /// # Errors
    ///
    /// Fails if the body is not multipart, if the memory for a field is exhausted, or if a part
    /// after a file depends on other fields.
    pub fn pass(&mut self, room: Room<'_>) -> Result<Option<Bytes>, Fault> {
        if let Some((name, head)) = self.first.take() {
            return Ok(Some(self.part_opening(&head, &name)));
        }
        while let Some(piece) = self.reader.next_piece().map_err(bad)? {
            match piece {
                Piece::Head(head) => match self.fate(&head) {
                    Fate::Field { is_json } => self.open(head, is_json, room)?,
                    Fate::Drop => self.state = PartState::Dropped,
                    // The call has already started, so a regular refusal is no longer possible.
                    Fate::Refuse(_) => {
                        return Err(bad("a part that the mapping refuses comes after a file".to_owned()));
                    }
                    Fate::Pass(name) => {
                        self.state = PartState::Passed;
                        return Ok(Some(self.part_opening(&head, &name)));
                    }
                },
                Piece::Data(data) if matches!(self.state, PartState::Passed) => return Ok(Some(data)),
                Piece::Data(data) => self.hold(&data, room)?,
                Piece::End => match std::mem::replace(&mut self.state, PartState::Between) {
                    PartState::Passed => return Ok(Some(Bytes::from_static(b"\r\n"))),
                    PartState::Field(field) => {
                        let bytes = field.text.len();
                        let late = self.late(field)?;
                        // The member's name remains in `seen`.
                        self.budget.left += bytes;
                        self.budget.held -= HELD_TIMES * bytes;
                        if late.is_some() {
                            return Ok(late);
                        }
                    }
                    PartState::Between | PartState::Dropped => {}
                },
            }
        }
        Ok(None)
    }

    /// Returns the end of the call's body. Call it at the end of the received body.
    ///
    /// # Errors
    ///
    /// Fails if a part of the body is missing.
    pub fn end(&self) -> Result<Bytes, Fault> {
        self.finish()?;
        let mut out = Vec::new();
        multipart::write_end(self.boundary_out(), &mut out);
        Ok(out.into())
    }

    fn boundary_out(&self) -> &str {
        self.passing.as_ref().map_or("", |passing| &passing.boundary)
    }

    fn part_opening(&self, head: &PartHead, name: &str) -> Bytes {
        let mut out = Vec::new();
        head.write(self.boundary_out(), name, &mut out);
        out.into()
    }

    fn open(&mut self, head: PartHead, is_json: bool, room: Room<'_>) -> Result<(), Fault> {
        if head.has_transfer_encoding {
            return Err(bad("a field is coded for its transfer, which RFC 7578 forbids".to_owned()));
        }
        self.budget.charge(head.name.len(), FIELD_BYTES, room)?;
        self.state = PartState::Field(Field { name: head.name, is_json, text: Vec::new() });
        Ok(())
    }

    /// Buffers a chunk of a field. Chunks of dropped parts are discarded.
    fn hold(&mut self, data: &[u8], room: Room<'_>) -> Result<(), Fault> {
        if matches!(self.state, PartState::Field(_)) {
            self.budget.charge(data.len(), 0, room)?;
        }
        if let PartState::Field(field) = &mut self.state {
            field.text.extend_from_slice(data);
        }
        Ok(())
    }

    fn fate(&self, head: &PartHead) -> Fate {
        let is_called_json = || head.content_type.as_deref().is_some_and(|named| is_json(essence(named)));
        let form = self.from.form(&head.name);
        let is_field = match self.from.kind(&head.name) {
            Some(PartKind::Json(_)) => return Fate::Field { is_json: true },
            Some(PartKind::File) => false,
            // Some tools also set a file name for texts, in order to specify their media type.
            None => form.is_some() || !head.has_filename,
        };
        if is_field {
            let is_text = form.is_some_and(|form| matches!(form.kind, FormKind::String(_)));
            return Fate::Field { is_json: !is_text && is_called_json() };
        }
        let fate = match self.op.member(&head.name).map(|(_, member)| &member.action) {
            Some(MemberAction::Emit(emit)) => Fate::Pass(emit.name.text.to_string()),
            Some(MemberAction::Drop | MemberAction::Shadowed) => Fate::Drop,
            Some(MemberAction::Refuse(reason)) => Fate::Refuse(*reason),
            None => match &self.op.others {
                Others::Keep => Fate::Pass(head.name.clone()),
                Others::Refuse(reason) => Fate::Refuse(*reason),
                Others::Drop | Others::Each(_) => Fate::Drop,
            },
        };
        match fate {
            Fate::Pass(_) if self.to.is_none() => Fate::Drop,
            fate => fate,
        }
    }

    /// Returns the member of the object that a field belongs to.
    fn member_of<'n>(&self, field: &'n Field) -> &'n str {
        if field.is_json {
            return &field.name;
        }
        let brackets = urlencoded::brackets_of(&self.from.fields.form, &field.name);
        &field.name[..brackets.unwrap_or(field.name.len())]
    }

    fn seen_of(&self, field: &Field) -> Seen {
        let is_list_of_lists = match self.from.form(&field.name).map(|form| &form.kind) {
            Some(FormKind::Array { items, .. }) => matches!(items.kind, FormKind::Array { .. }),
            _ => true,
        };
        let is_list = field.is_json && field.text.trim_ascii_start().starts_with(b"[");
        Seen { is_json: field.is_json, is_whole_list: is_list && !is_list_of_lists }
    }

    /// Translates a field after a file. Returns `None` if the mapping drops it.
    fn late(&mut self, field: Field) -> Result<Option<Bytes>, Fault> {
        let (Some(passing), Some(to)) = (&self.passing, &self.to) else { return Ok(None) };
        let name = self.member_of(&field).to_owned();
        let needed = || {
            // An undeclared name is client data and must not appear in error texts.
            let known = self.from.form(&name).map_or("a field".to_owned(), |_| format!("the field `{name}`"));
            bad(format!("{known} comes after a file, and the mapping needs it before"))
        };
        let found = self.op.member(&name);
        let is_dropped = match found {
            Some((_, member)) => {
                member.capture.is_none()
                    && matches!(member.action, MemberAction::Drop | MemberAction::Shadowed)
            }
            None => matches!(self.op.others, Others::Drop),
        };
        if is_dropped {
            return Ok(None);
        }
        // A further element of a list does not depend on the earlier ones.
        let may_repeat = found.is_some_and(|(_, member)| {
            let is_list =
                self.from.form(&name).is_some_and(|form| matches!(form.kind, FormKind::Array { .. }));
            is_list && is_by_element(member, to)
        });
        let now = self.seen_of(&field);
        let is_in_time = match self.seen.get(&name) {
            Some(before) => may_repeat && *before == now && !now.is_whole_list,
            None => true,
        };
        let is_alone = found.is_none_or(|(at, member)| is_alone(&self.op, at, member));
        if !is_alone || name != field.name || !is_in_time {
            return Err(needed());
        }
        // Translate the field by an operation that contains only its member.
        let member_op = ValueOp::Object(Arc::new(ObjectOp {
            name: Arc::clone(&self.op.name),
            members: found.map(|(_, member)| member.clone()).into_iter().collect(),
            others: self.op.others.clone(),
            close: Vec::new(),
            captures: 0,
            supplied: 0,
        }));
        let mut given = Vec::new();
        object_of(&self.from, &[field], &self.limits, &mut given).map_err(bad)?;
        let mut made = Vec::new();
        document(&member_op, &given, &Env::new(&passing.settings), &self.limits, &mut made).map_err(
            |error| match error.cause {
                Cause::Refused(_) => bad("a field that the mapping refuses comes after a file".to_owned()),
                _ => Fault::of_body(Sender::ClientBody, &error),
            },
        )?;
        let written = parts_of(to, &made, &self.limits)?;
        let boundary = passing.boundary.as_bytes();
        // The boundary was chosen before this field arrived.
        if written.iter().any(|part| memchr::memmem::find(&part.text, boundary).is_some()) {
            return Err(bad("a field holds the boundary of the body".to_owned()));
        }
        let mut out = Vec::new();
        written.iter().for_each(|part| part.write(&passing.boundary, &mut out));
        if let Entry::Vacant(first) = self.seen.entry(name) {
            first.insert(now);
        }
        Ok(Some(Bytes::from(out)).filter(|out| !out.is_empty()))
    }
}

/// Returns whether the translation of a member is independent of its position and of other members.
fn is_alone(op: &ObjectOp, at: usize, member: &Member) -> bool {
    let asks = |from: &CloseFrom| matches!(from, CloseFrom::Default { unless_written, .. } if usize::from(*unless_written) == at);
    member.capture.is_none() && !op.close.iter().any(|close| asks(&close.from))
}

/// Returns whether a list is translated and encoded element by element, so that elements can be
/// added later.
fn is_by_element(member: &Member, to: &MultipartFormat) -> bool {
    let MemberAction::Emit(emit) = &member.action else { return true };
    let Some(FormKind::Array { items, .. }) = to.form(&emit.name.text).map(|form| &form.kind) else {
        return false;
    };
    let is_written = match to.kind(&emit.name.text) {
        Some(PartKind::Json(_)) => true,
        Some(PartKind::File) => false,
        None => {
            let style = to.fields.lists.iter().find(|(name, _)| *name.text == *emit.name.text);
            // Non-scalar elements are encoded with their index.
            let is_scalar = matches!(
                items.kind,
                FormKind::Boolean | FormKind::Integer(_) | FormKind::Number(_) | FormKind::String(_)
            );
            is_scalar && style.is_some_and(|(_, style)| *style == ListStyle::Repeated)
        }
    };
    is_written && matches!(emit.op, ValueOp::Keep | ValueOp::Array(_))
}

fn bad(detail: MultipartFault) -> Fault {
    Fault::new(FaultKind::BadBody, detail)
}
