//! Bodies of parts (`multipart/form-data`) through a plan: fields are gathered until the first file that goes on, and are
//! then one object, which a plan makes another of as it does of JSON; files stream after them, kept, renamed or dropped by
//! the members of the same object. So an upload of any size is mapped in the memory of its fields.
//!
//! A field that comes after a file is too late for what is written of all fields together. It is still good where it is
//! written as it would be among the others: then it goes on in its place. Else the body is at fault, and whoever has begun
//! to send it stops.
//!
//! How fields are an object, and an object is fields, is in `fields.rs`; what examples say of bodies, in `examples.rs`.

mod examples;
mod fields;
#[cfg(test)]
mod tests;

pub(super) use examples::{example, example_of, example_text};
pub(super) use fields::written;

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

/// How often the bytes of a field are there at most: in an object, in what is made of it, in its parts and in the call.
pub const HELD_TIMES: usize = 4;

/// Bytes of a field beside its name and content: its own, those of its node in the tree of a form, and its header.
const FIELD_BYTES: usize = size_of::<Field>() + 320;

/// Asked before so many further bytes are held: whether there is memory for them.
pub type Room<'r> = &'r mut dyn FnMut(usize) -> bool;

/// A body of parts on its way.
#[derive(Debug)]
pub struct Parts {
    reader: Reader,
    boundary: String,
    op: Arc<ObjectOp>,
    from: Arc<MultipartFormat>,
    /// None where the call's body is no form of parts: files are dropped then.
    to: Option<Arc<MultipartFormat>>,
    limits: Limits,
    /// Bytes that fields may still have.
    fields_left: usize,
    fields: Vec<Field>,
    /// Bytes that the fields take, and of these, what there was room for so far.
    held: usize,
    granted: usize,
    state: PartState,
    /// The file that ended the gathering, under its new name.
    first: Option<(String, PartHead)>,
    /// The members that fields came for, once these are given away.
    seen: HashMap<String, Seen>,
    /// Where files are written.
    passing: Option<Passing>,
}

#[derive(Debug)]
struct Passing {
    boundary: String,
    settings: Arc<Settings>,
}

/// How a member came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    is_json: bool,
    /// Whether one part was all of a list.
    is_whole_list: bool,
}

/// The part at work.
#[derive(Debug)]
enum PartState {
    Between,
    Field(Field),
    Passed,
    Dropped,
}

/// How far the fields have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathered {
    /// More of the body is wanted, or it has ended.
    More,
    /// A file follows that goes on.
    File,
    /// A file that the mapping refuses.
    Refused(ReasonId),
}

/// What becomes of a part.
enum Fate {
    Field { is_json: bool },
    Pass(String),
    Drop,
    Refuse(ReasonId),
}

/// Fields as one object, and what a call needs to know of the body that they came in.
#[derive(Clone, Debug)]
pub struct Fields {
    /// JSON text.
    pub json: Bytes,
    /// The boundary that they came with.
    pub boundary: String,
    /// A file that the mapping refuses.
    pub refused: Option<ReasonId>,
    /// Whether files follow.
    pub has_files: bool,
}

impl Parts {
    /// `media_type` is what the body is called, nothing where nobody says; `op` makes the call's body, written as `to`, of an
    /// object that is made of the fields. `fields_max`: bytes that all fields together may have.
    ///
    /// # Errors
    ///
    /// The body is called otherwise than a form of parts, or with no boundary.
    pub fn new(
        media_type: &str,
        from: &Arc<MultipartFormat>,
        to: &BodyFormat,
        op: &ValueOp,
        limits: Limits,
        fields_max: usize,
    ) -> Result<Parts, Fault> {
        if !essence(media_type).eq_ignore_ascii_case(BodyFormat::MULTIPART) {
            return Err(Fault::unsupported(BodyFormat::MULTIPART));
        }
        let ValueOp::Object(op) = op else {
            return Err(Fault::new(FaultKind::Internal, "a plan for a body of parts that makes no object"));
        };
        let boundary = multipart::boundary_of(media_type).map_err(bad)?;
        let to = match to {
            BodyFormat::Multipart(to) => Some(Arc::clone(to)),
            BodyFormat::Json | BodyFormat::Form(_) | BodyFormat::Opaque(_) => None,
        };
        Ok(Parts {
            reader: Reader::new(&boundary, limits.members),
            boundary: boundary.into_owned(),
            op: Arc::clone(op),
            from: Arc::clone(from),
            to,
            limits,
            fields_left: fields_max,
            fields: Vec::new(),
            held: 0,
            granted: 0,
            state: PartState::Between,
            first: None,
            seen: HashMap::new(),
            passing: None,
        })
    }

    /// Takes a piece of the body.
    pub fn push(&mut self, chunk: Bytes) {
        self.reader.push(chunk);
    }

    /// Bytes that the fields take while they are held, with all that is made of them.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Bytes that are here of the field at work.
    pub fn begun_bytes(&self) -> usize {
        if let PartState::Field(field) = &self.state { field.text.len() } else { 0 }
    }

    /// Reads what is there, up to the first file that goes on.
    ///
    /// # Errors
    ///
    /// The body is no form of parts, or there is no room for its fields.
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

    /// To be asked when the body has ended.
    ///
    /// # Errors
    ///
    /// Not all of the body came.
    pub fn finish(&self) -> Result<(), Fault> {
        self.reader.finish().map_err(bad)
    }

    /// The fields gathered, given away.
    ///
    /// # Errors
    ///
    /// The fields make no object of the contract: what should be JSON is none, or two are one member.
    pub fn fields(&mut self, gathered: Gathered) -> Result<Fields, Fault> {
        let mut out = Vec::with_capacity(self.held / HELD_TIMES);
        let fields = std::mem::take(&mut self.fields);
        object_of(&self.from, &fields, &self.limits, &mut out).map_err(bad)?;
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

    /// From here on files go on, after fields that were written with this boundary.
    pub fn begin(&mut self, boundary: &str, settings: Arc<Settings>) {
        self.passing = Some(Passing { boundary: boundary.to_owned(), settings });
    }

    /// The next bytes that can be written of what has come; none until more of the body is here. Only after
    /// [`Parts::begin`].
    ///
    /// # Errors
    ///
    /// The body is no form of parts; there is no room for a field; or a part comes after a file that cannot.
    pub fn pass(&mut self, room: Room<'_>) -> Result<Option<Bytes>, Fault> {
        if let Some((name, head)) = self.first.take() {
            return Ok(Some(self.opened(&head, &name)));
        }
        while let Some(piece) = self.reader.next_piece().map_err(bad)? {
            match piece {
                Piece::Head(head) => match self.fate(&head) {
                    Fate::Field { is_json } => self.open(head, is_json, room)?,
                    Fate::Drop => self.state = PartState::Dropped,
                    Fate::Refuse(_) => {
                        return Err(bad("a part that the mapping refuses comes after a file".to_owned()));
                    }
                    Fate::Pass(name) => {
                        self.state = PartState::Passed;
                        return Ok(Some(self.opened(&head, &name)));
                    }
                },
                Piece::Data(data) if matches!(self.state, PartState::Passed) => return Ok(Some(data)),
                Piece::Data(data) => self.hold(&data, room)?,
                Piece::End => match std::mem::replace(&mut self.state, PartState::Between) {
                    PartState::Passed => return Ok(Some(Bytes::from_static(b"\r\n"))),
                    PartState::Field(field) => {
                        let bytes = field.text.len();
                        let late = self.late(field)?;
                        // Its name stays known.
                        self.fields_left += bytes;
                        self.held -= HELD_TIMES * bytes;
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

    /// What ends the body that is written; when the one that is read has ended.
    ///
    /// # Errors
    ///
    /// Not all of the body came.
    pub fn end(&self) -> Result<Bytes, Fault> {
        self.finish()?;
        let mut out = Vec::new();
        multipart::write_end(self.boundary_out(), &mut out);
        Ok(out.into())
    }

    fn boundary_out(&self) -> &str {
        self.passing.as_ref().map_or("", |passing| &passing.boundary)
    }

    fn opened(&self, head: &PartHead, name: &str) -> Bytes {
        let mut out = Vec::new();
        head.write(self.boundary_out(), name, &mut out);
        out.into()
    }

    fn open(&mut self, head: PartHead, is_json: bool, room: Room<'_>) -> Result<(), Fault> {
        if head.has_transfer_encoding {
            return Err(bad("a field is coded for its transfer, which RFC 7578 forbids".to_owned()));
        }
        self.charge(head.name.len(), FIELD_BYTES, room)?;
        self.state = PartState::Field(Field { name: head.name, is_json, text: Vec::new() });
        Ok(())
    }

    /// A piece of a field; of what is dropped nothing is held.
    fn hold(&mut self, data: &[u8], room: Room<'_>) -> Result<(), Fault> {
        if matches!(self.state, PartState::Field(_)) {
            self.charge(data.len(), 0, room)?;
        }
        if let PartState::Field(field) = &mut self.state {
            field.text.extend_from_slice(data);
        }
        Ok(())
    }

    /// Counts bytes of a field before they are held, and what is held `beside` them.
    fn charge(&mut self, bytes: usize, beside: usize, room: Room<'_>) -> Result<(), Fault> {
        let left = self.fields_left.checked_sub(bytes);
        self.fields_left = left.ok_or_else(|| {
            Fault::new(
                FaultKind::TooLarge,
                "the fields of the body are larger than a body that is held may be",
            )
        })?;
        self.held += HELD_TIMES * bytes + beside;
        if self.held > self.granted {
            if !room(self.held - self.granted) {
                return Err(Fault::new(FaultKind::Overloaded, "there is no memory for the fields of a body"));
            }
            self.granted = self.held;
        }
        Ok(())
    }

    fn fate(&self, head: &PartHead) -> Fate {
        let is_called_json = || head.content_type.as_deref().is_some_and(|named| is_json(essence(named)));
        let form = self.from.form(&head.name);
        let is_field = match self.from.kind(&head.name) {
            Some(PartKind::Json(_)) => return Fate::Field { is_json: true },
            Some(PartKind::File) => false,
            // Tools give texts the name of a file, too, when they are to have a media type.
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

    /// The member of the object that a field is of, or stands within.
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

    /// A field after a file, as it goes on; nothing of one that the mapping drops.
    fn late(&mut self, field: Field) -> Result<Option<Bytes>, Fault> {
        let (Some(passing), Some(to)) = (&self.passing, &self.to) else { return Ok(None) };
        let name = self.member_of(&field).to_owned();
        let needed = || {
            // What the contract has no name for is the client's own text.
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
        document(&member_op, &given, &Env::of(&passing.settings), &self.limits, &mut made).map_err(
            |error| match error.cause {
                Cause::Refused(_) => bad("a field that the mapping refuses comes after a file".to_owned()),
                _ => Fault::of_body(Sender::ClientBody, &error),
            },
        )?;
        let written = parts_of(to, &made, &self.limits)?;
        let boundary = passing.boundary.as_bytes();
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

/// Whether nothing but what stands where it stands is made of a member.
fn is_alone(op: &ObjectOp, at: usize, member: &Member) -> bool {
    let asks = |from: &CloseFrom| matches!(from, CloseFrom::Default { unless_written, .. } if usize::from(*unless_written) == at);
    member.capture.is_none() && !op.close.iter().any(|close| asks(&close.from))
}

/// Whether a list is made of its elements and written by them, each by itself: then one that comes later stands as well.
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
            // What holds others is written with its number in the list.
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
