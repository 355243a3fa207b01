//! Bodies of parts (`multipart/form-data`) through a plan: fields are gathered until the first file that goes on, and are
//! then one object, which a plan makes another of as it does of JSON; files stream after them, kept, renamed or dropped by
//! the members of the same object. So an upload of any size is mapped in the memory of its fields.
//!
//! A field that comes after a file is too late for what is written of all fields together. It is still good where nothing
//! else is made of it: then it goes on in its place. Else the body is at fault, and whoever has begun to send it stops.

use super::document::{Env, document};
use super::error::Cause;
use super::fault::{Fault, FaultKind, Sender};
use super::multipart::{self, MultipartFault, PartHead, Piece, Reader};
use super::pieces::{elements, members};
use super::request::{decode_query, query_pairs};
use super::settings::Settings;
use super::urlencoded;
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use switchback_json::raw::{self, Kind};
use switchback_json::{self as json, Limits, Object, Value, text};
use switchback_plan::{
    BodyFormat, CloseFrom, FormKind, Key, Member, MemberAction, MultipartFormat, ObjectOp, Others, PartKind,
    ReasonId, ValueOp, is_json,
};

/// A body of parts on its way.
#[derive(Debug)]
pub struct Parts {
    reader: Reader,
    boundary: String,
    op: ValueOp,
    from: Arc<MultipartFormat>,
    /// None where the call's body is no form of parts: files are dropped then.
    to: Option<Arc<MultipartFormat>>,
    limits: Limits,
    /// Bytes that fields may still have.
    fields_left: usize,
    fields: Vec<Field>,
    held: usize,
    at: At,
    /// The file that ended the gathering, under its new name.
    first: Option<(String, PartHead)>,
    /// Where files are written: their boundary, and names of fields that came before and since.
    passing: Option<Passing>,
}

#[derive(Debug)]
struct Passing {
    boundary: String,
    settings: Arc<Settings>,
    seen: HashSet<String>,
}

/// The part at work.
#[derive(Debug)]
enum At {
    Between,
    Field(Field),
    Passed,
    Dropped,
}

#[derive(Debug)]
struct Field {
    name: String,
    is_json: bool,
    text: Vec<u8>,
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
    /// `media_type` is what the body is called; `op` makes the call's body, written as `to`, of an object that is made of the
    /// fields. `fields_max`: bytes that all fields together may have.
    pub fn new(
        media_type: &str,
        from: &Arc<MultipartFormat>,
        to: &BodyFormat,
        op: &ValueOp,
        limits: Limits,
        fields_max: usize,
    ) -> Result<Parts, Fault> {
        let boundary = multipart::boundary_of(media_type).map_err(bad)?;
        let to = match to {
            BodyFormat::Multipart(to) => Some(Arc::clone(to)),
            BodyFormat::Json | BodyFormat::Form(_) | BodyFormat::Opaque(_) => None,
        };
        Ok(Parts {
            reader: Reader::new(&boundary, limits.members),
            boundary: boundary.into_owned(),
            op: op.clone(),
            from: Arc::clone(from),
            to,
            limits,
            fields_left: fields_max,
            fields: Vec::new(),
            held: 0,
            at: At::Between,
            first: None,
            passing: None,
        })
    }

    /// Takes a piece of the body.
    pub fn push(&mut self, chunk: Bytes) {
        self.reader.push(chunk);
    }

    /// Bytes that the fields take while they are held.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Reads what is there, up to the first file that goes on.
    pub fn gather(&mut self) -> Result<Gathered, Fault> {
        while let Some(piece) = self.reader.next_piece().map_err(bad)? {
            match piece {
                Piece::Head(head) => match self.fate(&head)? {
                    Fate::Field { is_json } => self.open(head, is_json)?,
                    Fate::Drop => self.at = At::Dropped,
                    Fate::Refuse(reason) => return Ok(Gathered::Refused(reason)),
                    Fate::Pass(name) => {
                        self.at = At::Passed;
                        self.first = Some((name, head));
                        return Ok(Gathered::File);
                    }
                },
                Piece::Data(data) => self.hold(&data)?,
                Piece::End => {
                    if let At::Field(field) = std::mem::replace(&mut self.at, At::Between) {
                        self.fields.push(field);
                    }
                }
            }
        }
        Ok(Gathered::More)
    }

    /// To be asked when the body has ended: whether all of it came.
    pub fn finish(&self) -> Result<(), Fault> {
        self.reader.finish().map_err(bad)
    }

    /// The fields gathered, given away.
    pub fn fields(&mut self, gathered: Gathered) -> Result<Fields, Fault> {
        let mut out = Vec::with_capacity(self.held);
        object_of(&self.from, &self.fields, &self.limits, &mut out).map_err(bad)?;
        let (refused, has_files) = match gathered {
            Gathered::Refused(reason) => (Some(reason), false),
            gathered => (None, gathered == Gathered::File),
        };
        Ok(Fields { json: out.into(), boundary: self.boundary.clone(), refused, has_files })
    }

    /// From here on files go on, after fields that were written with this boundary.
    pub fn begin(&mut self, boundary: &str, settings: Arc<Settings>) {
        let seen = std::mem::take(&mut self.fields).into_iter().map(|field| field.name).collect();
        self.passing = Some(Passing { boundary: boundary.to_owned(), settings, seen });
    }

    /// Gives all that can be written of what has come. Only after [`Parts::begin`].
    pub fn pass(&mut self, out: &mut Vec<Bytes>) -> Result<(), Fault> {
        if let (Some((name, head)), Some(passing)) = (self.first.take(), &self.passing) {
            out.push(opened(&head, &passing.boundary, &name));
        }
        while let Some(piece) = self.reader.next_piece().map_err(bad)? {
            match piece {
                Piece::Head(head) => match self.fate(&head)? {
                    Fate::Field { is_json } => self.open(head, is_json)?,
                    Fate::Drop => self.at = At::Dropped,
                    Fate::Refuse(_) => {
                        return Err(bad("a part that the mapping refuses comes after a file".to_owned()));
                    }
                    Fate::Pass(name) => {
                        self.at = At::Passed;
                        let boundary = self.passing.as_ref().map_or("", |passing| &passing.boundary);
                        out.push(opened(&head, boundary, &name));
                    }
                },
                Piece::Data(data) if matches!(self.at, At::Passed) => out.push(data),
                Piece::Data(data) => self.hold(&data)?,
                Piece::End => match std::mem::replace(&mut self.at, At::Between) {
                    At::Passed => out.push(Bytes::from_static(b"\r\n")),
                    At::Field(field) => {
                        let came = field.text.len();
                        out.extend(self.late(field)?);
                        self.fields_left += came;
                    }
                    At::Between | At::Dropped => {}
                },
            }
        }
        Ok(())
    }

    /// What ends the body that is written; when the one that is read has ended.
    pub fn end(&self) -> Result<Bytes, Fault> {
        self.finish()?;
        let mut out = Vec::new();
        multipart::write_end(self.passing.as_ref().map_or("", |passing| &passing.boundary), &mut out);
        Ok(out.into())
    }

    fn open(&mut self, head: PartHead, is_json: bool) -> Result<(), Fault> {
        if head.is_coded {
            return Err(bad("a field is coded for its transfer, which RFC 7578 forbids".to_owned()));
        }
        self.charge(head.name.len())?;
        self.at = At::Field(Field { name: head.name, is_json, text: Vec::new() });
        Ok(())
    }

    /// A piece of a field; of what is dropped nothing is held.
    fn hold(&mut self, data: &[u8]) -> Result<(), Fault> {
        if matches!(self.at, At::Field(_)) {
            self.charge(data.len())?;
        }
        if let At::Field(field) = &mut self.at {
            field.text.extend_from_slice(data);
        }
        Ok(())
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Fault> {
        let left = self.fields_left.checked_sub(bytes);
        self.fields_left = left.ok_or_else(|| {
            Fault::new(
                FaultKind::TooLarge,
                "the fields of the body are larger than a body that is held may be",
            )
        })?;
        // As they came, as an object, and as what is made of it.
        self.held += 3 * bytes + size_of::<Field>();
        Ok(())
    }

    fn fate(&self, head: &PartHead) -> Result<Fate, Fault> {
        let is_called_json =
            || head.content_type.as_deref().is_some_and(|named| is_json(switchback_plan::essence(named)));
        let form = self.from.form(&head.name);
        let is_field = match self.from.kind(&head.name) {
            Some(PartKind::Json(_)) => return Ok(Fate::Field { is_json: true }),
            Some(PartKind::File) => false,
            // Tools give texts the name of a file, too, when they are to have a media type.
            None => form.is_some() || !head.has_filename,
        };
        if is_field {
            let is_text = form.is_some_and(|form| matches!(form.kind, FormKind::String(_)));
            return Ok(Fate::Field { is_json: !is_text && is_called_json() });
        }
        let fate = match &self.op {
            ValueOp::Object(op) => match op.member(&head.name).map(|(_, member)| &member.action) {
                Some(MemberAction::Emit(emit)) => Fate::Pass(emit.name.text.to_string()),
                Some(MemberAction::Drop | MemberAction::Shadowed) => Fate::Drop,
                Some(MemberAction::Refuse(reason)) => Fate::Refuse(*reason),
                None => match &op.others {
                    Others::Keep => Fate::Pass(head.name.clone()),
                    Others::Refuse(reason) => Fate::Refuse(*reason),
                    Others::Drop | Others::Each(_) => Fate::Drop,
                },
            },
            _ => Fate::Pass(head.name.clone()),
        };
        Ok(match fate {
            Fate::Pass(_) if self.to.is_none() => Fate::Drop,
            fate => fate,
        })
    }

    /// A field after a file, as it goes on; nothing of one that the mapping drops.
    fn late(&mut self, field: Field) -> Result<Option<Bytes>, Fault> {
        let (Some(passing), Some(to)) = (&mut self.passing, &self.to) else { return Ok(None) };
        let root = field.name.split('[').next().unwrap_or("").to_owned();
        let name = if self.from.form(&field.name).is_some() { field.name.clone() } else { root };
        let needed = || {
            // What the contract has no name for is the client's own text.
            let known = self.from.form(&name).map_or("a field".to_owned(), |_| format!("the field `{name}`"));
            bad(format!("{known} comes after a file, and the mapping needs it before"))
        };
        let is_first = passing.seen.insert(name.clone());
        let mini = match &self.op {
            ValueOp::Object(op) => {
                let found = op.member(&name);
                let is_dropped = match found {
                    Some((_, member)) => {
                        member.capture.is_none()
                            && matches!(member.action, MemberAction::Drop | MemberAction::Shadowed)
                    }
                    None => matches!(op.others, Others::Drop),
                };
                if is_dropped {
                    return Ok(None);
                }
                let is_alone = found.is_none_or(|(at, member)| is_alone(op, at, member));
                let is_repeatable = found.is_none_or(|(_, member)| is_by_element(member));
                let is_list = |form: &switchback_plan::Form| matches!(form.kind, FormKind::Array { .. });
                let may_repeat = is_repeatable && self.from.form(&name).is_none_or(is_list);
                if !is_alone || name != field.name || !is_first && !may_repeat {
                    return Err(needed());
                }
                ValueOp::Object(Arc::new(ObjectOp {
                    name: Arc::clone(&op.name),
                    members: found.map(|(_, member)| member.clone()).into_iter().collect(),
                    others: op.others.clone(),
                    close: Vec::new(),
                    captures: 0,
                    supplied: 0,
                }))
            }
            op => op.clone(),
        };
        let mut given = Vec::new();
        object_of(&self.from, &[field], &self.limits, &mut given).map_err(bad)?;
        let mut made = Vec::new();
        document(&mini, &given, &Env::of(&passing.settings), &self.limits, &mut made).map_err(|error| {
            match error.cause {
                Cause::Refused(_) => bad("a field that the mapping refuses comes after a file".to_owned()),
                _ => Fault::of_body(Sender::ClientBody, &error),
            }
        })?;
        let written = parts_of(to, &made, &self.limits)?;
        if written.iter().any(|part| memchr::memmem::find(&part.text, passing.boundary.as_bytes()).is_some())
        {
            return Err(bad("a field holds the boundary of the body".to_owned()));
        }
        let mut out = Vec::new();
        written.iter().for_each(|part| part.write(&passing.boundary, &mut out));
        Ok(Some(out.into()))
    }
}

fn opened(head: &PartHead, boundary: &str, name: &str) -> Bytes {
    let mut out = Vec::new();
    head.write(boundary, name, &mut out);
    out.into()
}

/// Whether nothing but what stands where it stands is made of a member.
fn is_alone(op: &ObjectOp, at: usize, member: &Member) -> bool {
    let asks = |from: &CloseFrom| matches!(from, CloseFrom::Default { unless_written, .. } if usize::from(*unless_written) == at);
    member.capture.is_none() && !op.close.iter().any(|close| asks(&close.from))
}

/// Whether a list is what its elements are, each by itself.
fn is_by_element(member: &Member) -> bool {
    let MemberAction::Emit(emit) = &member.action else { return true };
    matches!(emit.op, ValueOp::Keep | ValueOp::Array(_))
}

fn bad(detail: MultipartFault) -> Fault {
    Fault::new(FaultKind::BadBody, detail)
}

/// Appends the object that fields are: texts as those of any form, and members that are JSON.
fn object_of(
    format: &MultipartFormat,
    fields: &[Field],
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<(), MultipartFault> {
    let utf8 = || "a field of the body is not UTF-8".to_owned();
    let texts = fields.iter().filter(|field| !field.is_json).map(|field| {
        let text = std::str::from_utf8(&field.text).map_err(|_| utf8())?;
        Ok((Cow::Borrowed(field.name.as_str()), Cow::Borrowed(text)))
    });
    let start = out.len();
    urlencoded::tree(&format.fields, texts, limits, out)?;
    let mut named: Vec<(&str, Vec<&[u8]>)> = Vec::new();
    for field in fields.iter().filter(|field| field.is_json) {
        json::validate(&field.text, limits)
            .map_err(|error| format!("a field of the body is no JSON: {error}"))?;
        let text = field.text.trim_ascii();
        match named.iter_mut().find(|(name, _)| *name == field.name) {
            Some((_, texts)) => texts.push(text),
            None => named.push((&field.name, vec![text])),
        }
    }
    if named.is_empty() {
        return Ok(());
    }
    let has_texts = out.len() > start + 2;
    if has_texts
        && members(&out[start..]).any(|(text, _)| named.iter().any(|(name, _)| text::decode(text) == *name))
    {
        return Err("a name of the form is both JSON and a text".to_owned());
    }
    out.pop();
    for (at, (name, texts)) in named.iter().enumerate() {
        if at > 0 || has_texts {
            out.push(b',');
        }
        out.extend_from_slice(&Key::new(name).json);
        out.push(b':');
        // Each element of a list is a part, or one part is all of the list.
        let is_list = match format.form(name).map(|form| &form.kind) {
            Some(FormKind::Array { items, .. }) => {
                texts.len() > 1
                    || raw::kind(texts[0]) != Some(Kind::Array)
                    || matches!(items.kind, FormKind::Array { .. })
            }
            Some(_) => false,
            None => texts.len() > 1,
        };
        match (is_list, &texts[..]) {
            (false, [only]) => out.extend_from_slice(only),
            (false, _) => return Err("a name of the form is no list and comes more than once".to_owned()),
            (true, all) => {
                out.push(b'[');
                out.extend_from_slice(&all.join(&b","[..]));
                out.push(b']');
            }
        }
    }
    out.push(b'}');
    Ok(())
}

/// A field as it is written.
struct WrittenPart {
    name: String,
    content_type: Option<Arc<str>>,
    text: Vec<u8>,
}

impl WrittenPart {
    fn write(&self, boundary: &str, out: &mut Vec<u8>) {
        multipart::write_part(boundary, &self.name, self.content_type.as_deref(), &self.text, out);
    }
}

/// The fields of a JSON object, which is checked whole: JSON where the contract has it, else texts as those of any form.
fn parts_of(format: &MultipartFormat, object: &[u8], limits: &Limits) -> Result<Vec<WrittenPart>, Fault> {
    let of_body = |error| Fault::of_body(Sender::ClientBody, &error);
    json::validate(object, limits).map_err(|error| of_body(error.into()))?;
    if raw::kind(object) != Some(Kind::Object) {
        return Err(bad("the body is made of a value that is no object".to_owned()));
    }
    let mut all = Vec::new();
    for (name, value) in members(object) {
        let text = text::decode(name);
        let Some(PartKind::Json(content_type)) = format.kind(&text) else {
            let alone = [b"{\"", name.as_bytes(), b"\":", value, b"}"].concat();
            let form = urlencoded::encode(&format.fields, &alone, limits).map_err(of_body)?;
            all.extend(query_pairs(&form).map(|(name, value)| WrittenPart {
                name: decode_query(name),
                content_type: None,
                text: decode_query(value.unwrap_or("")).into_bytes(),
            }));
            continue;
        };
        let is_list = format.form(&text).is_some_and(|form| matches!(form.kind, FormKind::Array { .. }));
        let is_list = is_list && raw::kind(value) == Some(Kind::Array);
        let values: Vec<&[u8]> = if is_list { elements(value).collect() } else { vec![value] };
        all.extend(values.into_iter().map(|value| WrittenPart {
            name: text.to_string(),
            content_type: Some(Arc::clone(content_type)),
            text: value.to_vec(),
        }));
    }
    Ok(all)
}

/// The fields of a JSON object as the beginning of a body, and its boundary. `of`: the boundary of the files that follow.
pub(super) fn written(
    format: &MultipartFormat,
    object: &[u8],
    of: Option<&str>,
    salt: u64,
    limits: &Limits,
) -> Result<(Vec<u8>, String), Fault> {
    let parts = parts_of(format, object, limits)?;
    let texts = parts.iter().flat_map(|part| [part.name.as_bytes(), &part.text]);
    let boundary = multipart::boundary_for(of, salt, texts).map_err(bad)?;
    let mut out = Vec::with_capacity(object.len() * 2);
    parts.iter().for_each(|part| part.write(&boundary, &mut out));
    Ok((out, boundary))
}

// --- examples --------------------------------------------------------------------------------------------------------

/// The boundary of examples.
const EXAMPLE: &str = "example";

/// An example's body, which gives the fields by name, and files as `{filename: …, type: …, content: …}`; with what it is
/// called.
pub(super) fn example(format: &MultipartFormat, value: &Value) -> Option<(Vec<u8>, String)> {
    let mut fields = Object::new();
    let mut files = Vec::new();
    for (name, value) in value.as_object()?.iter() {
        let name = name.decode();
        let contents = match value.as_array() {
            Some(all) if !all.is_empty() => all.iter().map(file_of).collect::<Option<Vec<_>>>(),
            _ => file_of(value).map(|file| vec![file]),
        };
        match contents {
            Some(contents) => files.extend(contents.into_iter().map(|file| (name.to_string(), file))),
            None => drop(fields.insert(&*name, value.clone())),
        }
    }
    let fields = Value::Object(fields).to_vec();
    let mut out = Vec::new();
    for part in parts_of(format, &fields, &Limits::DOCUMENT).ok()? {
        part.write(EXAMPLE, &mut out);
    }
    for (name, [filename, named, content]) in files {
        let head = [
            format!(
                "--{EXAMPLE}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{filename}\"\r\n"
            ),
            format!("Content-Type: {named}\r\n\r\n{content}\r\n"),
        ];
        out.extend_from_slice(head.concat().as_bytes());
    }
    multipart::write_end(EXAMPLE, &mut out);
    Some((out, multipart::media_type(EXAMPLE)))
}

fn file_of(value: &Value) -> Option<[String; 3]> {
    let text = |name: &str| value.get(name).and_then(|value| value.as_str().map(Cow::into_owned));
    let content = text("content")?;
    let [filename, named] = [("filename", "file"), ("type", "application/octet-stream")]
        .map(|(name, otherwise)| text(name).unwrap_or_else(|| otherwise.to_owned()));
    Some([filename, named, content])
}

/// A body of parts as an example gives it: texts, JSON, and files; several of one name as a list. None for what is none.
pub(super) fn told(media_type: &str, body: &[u8]) -> Option<Value> {
    let boundary = multipart::boundary_of(media_type).ok()?;
    let mut reader = Reader::new(&boundary, usize::MAX);
    reader.push(Bytes::copy_from_slice(body));
    let mut named: Vec<(String, Vec<Value>)> = Vec::new();
    let mut at: Option<(PartHead, Vec<u8>)> = None;
    while let Some(piece) = reader.next_piece().ok()? {
        match piece {
            Piece::Head(head) => at = Some((head, Vec::new())),
            Piece::Data(data) => at.as_mut()?.1.extend_from_slice(&data),
            Piece::End => {
                let (head, content) = at.take()?;
                let name = head.name.clone();
                let value = told_part(&head, &content);
                match named.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, values)) => values.push(value),
                    None => named.push((name, vec![value])),
                }
            }
        }
    }
    reader.finish().ok()?;
    let mut object = Object::new();
    for (name, mut values) in named {
        let value = if values.len() == 1 { values.remove(0) } else { Value::from(values) };
        object.insert(&*name, value);
    }
    Some(Value::Object(object))
}

fn told_part(head: &PartHead, content: &[u8]) -> Value {
    let text = String::from_utf8_lossy(content);
    let named = head.content_type.as_deref();
    if !head.has_filename {
        let is_json = named.is_some_and(|named| is_json(switchback_plan::essence(named)));
        let read = is_json.then(|| Value::parse(content, &Limits::DOCUMENT).ok()).flatten();
        return read.unwrap_or_else(|| Value::string(&text));
    }
    let mut file = Object::new();
    if let Some(filename) = head.filename() {
        file.insert("filename", Value::string(&filename));
    }
    if let Some(named) = named {
        file.insert("type", Value::string(named));
    }
    file.insert("content", Value::string(&text));
    Value::Object(file)
}

/// The same of what an example wants: a text says no kind of value.
pub(super) fn as_told(value: &Value) -> Value {
    fn scalar(value: &Value) -> Value {
        match value {
            Value::Null => Value::string(""),
            Value::Bool(value) => Value::string(if *value { "true" } else { "false" }),
            Value::Number(number) => Value::string(number.text()),
            other => other.clone(),
        }
    }
    let Some(object) = value.as_object() else { return value.clone() };
    let mut told = Object::new();
    for (name, value) in object.iter() {
        let value = match value.as_array() {
            Some(list) => Value::from(list.iter().map(scalar).collect::<Vec<_>>()),
            None => scalar(value),
        };
        told.insert(&*name.decode(), value);
    }
    Value::Object(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use switchback_plan::{Emit, Form, FormField, FormFormat, Origin};

    const NAMES: [(&str, &str); 4] =
        [("title", "name"), ("meta", "about"), ("tags", "labels"), ("scan", "image")];

    /// A title, JSON, a list of texts and files, by the names of one side.
    fn format(is_new: bool) -> Arc<MultipartFormat> {
        let name = |at: usize| Key::new(if is_new { NAMES[at].1 } else { NAMES[at].0 });
        let form = |kind| Arc::new(Form { kind, nullable: false });
        let text = || form(FormKind::String(None));
        let forms = [
            text(),
            form(FormKind::Any),
            form(FormKind::Array { items: text(), items_min: 0, items_max: None }),
        ];
        let fields = forms.into_iter().enumerate();
        let fields = fields.map(|(at, form)| FormField { name: name(at), form, required: false }).collect();
        let lists = vec![(name(2), switchback_plan::ListStyle::Repeated)];
        let fields = FormFormat { form: form(FormKind::Object { fields, others: None }), lists };
        let parts = vec![(name(1), PartKind::Json("application/json".into())), (name(3), PartKind::File)];
        Arc::new(MultipartFormat { fields, parts })
    }

    fn op(to_new: bool) -> ValueOp {
        let member = |(old, new): (&str, &str)| {
            let (from, to) = if to_new { (old, new) } else { (new, old) };
            Member {
                name: Key::new(from),
                action: MemberAction::Emit(Emit { name: Key::new(to), op: ValueOp::Keep }),
                capture: None,
                origin: Origin { file: "t".into(), line: 1 },
            }
        };
        let mut members: Vec<Member> = NAMES.into_iter().map(member).collect();
        members.sort_by(|a, b| a.name.text.cmp(&b.name.text));
        let others = Others::Drop;
        let close = Vec::new();
        ValueOp::Object(Arc::new(ObjectOp {
            name: "t".into(),
            members,
            others,
            close,
            captures: 0,
            supplied: 0,
        }))
    }

    /// A body of these pieces, mapped; with the boundary of what comes of it.
    fn mapped(pieces: &[&[u8]], boundary: &str, to_new: bool) -> Result<(Vec<u8>, String), String> {
        let (from, to) = (format(!to_new), format(to_new));
        let (limits, op, named) = (Limits::DOCUMENT, op(to_new), multipart::media_type(boundary));
        let target = BodyFormat::Multipart(Arc::clone(&to));
        let mut parts =
            Parts::new(&named, &from, &target, &op, limits, 10_000).map_err(|fault| fault.to_string())?;
        let mut pieces = pieces.iter();
        let mut run = || {
            let gathered = loop {
                let gathered = parts.gather()?;
                if gathered != Gathered::More {
                    break gathered;
                }
                match pieces.next() {
                    Some(piece) => parts.push(Bytes::copy_from_slice(piece)),
                    None => break gathered,
                }
            };
            if gathered == Gathered::More {
                parts.finish()?;
            }
            let fields = parts.fields(gathered)?;
            let mut json = Vec::new();
            let settings = Arc::new(Settings::default());
            document(&op, &fields.json, &Env::of(&settings), &limits, &mut json)
                .map_err(|error| Fault::of_body(Sender::ClientBody, &error))?;
            let (mut out, boundary) = written(&to, &json, Some(boundary), 7, &limits)?;
            parts.begin(&boundary, settings);
            let mut more = Vec::new();
            parts.pass(&mut more)?;
            for piece in pieces.by_ref() {
                parts.push(Bytes::copy_from_slice(piece));
                parts.pass(&mut more)?;
            }
            more.push(parts.end()?);
            out.extend(more.concat());
            Ok((out, boundary))
        };
        run().map_err(|fault: Fault| fault.to_string())
    }

    fn body(parts: &[(usize, String)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (at, content) in parts {
            let head = match at {
                3 => "name=scan; filename=\"f\"\r\nContent-Type: a/b".to_owned(),
                4 => "name=other; filename=x".to_owned(),
                at => format!("name={}", NAMES[*at].0),
            };
            let content = if *at == 1 { format!("[{:?}]", content.len()) } else { content.clone() };
            out.extend(format!("--B\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n").bytes());
        }
        out.extend(b"--B--\r\n");
        out
    }

    fn some_parts() -> impl Strategy<Value = Vec<(usize, String)>> {
        let content = "[a\r\n-]{0,8}";
        let files = prop::collection::vec((2_usize..5, content), 0..5);
        (prop::option::of(content), any::<bool>(), files).prop_map(|(title, has_meta, files)| {
            let title = title.map(|title| (0, title)).into_iter();
            let meta = has_meta.then(|| (1, "x".to_owned())).into_iter();
            title.chain(meta).chain(files).collect()
        })
    }

    proptest! {
        #[test]
        fn every_cut_of_a_body_is_mapped_the_same_and_back_again(
            parts in some_parts(),
            cuts in prop::collection::vec(0_usize..400, 0..6),
        ) {
            let body = body(&parts);
            let whole = mapped(&[&body], "B", true).map_err(TestCaseError::fail)?;
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect();
            prop_assert_eq!(&mapped(&pieces, "B", true), &Ok(whole.clone()));
            let single: Vec<&[u8]> = body.chunks(1).collect();
            prop_assert_eq!(&mapped(&single, "B", true), &Ok(whole.clone()));
            // Back again nothing but order and what nobody knows is lost.
            let (back, boundary) = mapped(&[&whole.0], &whole.1, false).map_err(TestCaseError::fail)?;
            let known: Vec<(usize, String)> = parts.into_iter().filter(|(at, _)| *at != 4).collect();
            let wanted = told("a/b; boundary=B", &super::tests::body(&known)).expect("parts");
            let found = told(&multipart::media_type(&boundary), &back).expect("parts");
            let json = |value: &Value| {
                let value: serde_json::Value = serde_json::from_slice(&value.to_vec()).expect("it is JSON");
                let mut value = value;
                if let Some(meta) = value.get_mut("meta") {
                    // The gateway calls JSON so.
                    *meta = meta.as_str().map_or(meta.clone(), |text| serde_json::from_str(text).expect("JSON"));
                }
                value
            };
            prop_assert_eq!(json(&found), json(&wanted));
        }
    }

    #[test]
    fn a_field_after_a_file_is_taken_where_it_is_in_time() {
        let part = |at: usize| (at, "x".to_owned());
        let told = |parts: &[(usize, String)]| mapped(&[&body(parts)], "B", true).map(drop);
        assert_eq!(told(&[part(3), part(0)]), Ok(()));
        assert_eq!(told(&[part(2), part(3), part(2), part(2)]), Ok(()));
        // One that is no list comes twice, before and after.
        let twice = told(&[part(0), part(3), part(0)]).expect_err("it comes twice");
        assert!(twice.contains("the field `title` comes after a file"), "{twice}");
        assert!(told(&[part(3), part(1), part(1)]).is_err());
        let cut = mapped(&[&body(&[part(0), part(3)])[..90]], "B", true).expect_err("it is cut");
        assert!(cut.contains("before its final boundary"), "{cut}");
        let large = told(&[(0, "x".repeat(10_001))]).expect_err("too large");
        assert!(large.starts_with("too_large"), "{large}");
    }
}
