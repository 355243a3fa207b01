//! Reader and writer for `multipart/form-data` (RFC 7578, RFC 2046). The reader is incremental,
//! part by part. `parts.rs` interprets the parts.
//!
//! The reader is a push parser without I/O, because uploads are streamed through it in arbitrary
//! chunks. It is strict wherever two parsers could disagree about the end of a part: lines end with
//! CRLF, and any line that starts with the boundary is a delimiter (RFC 2046, section 5.1.1), even
//! as the first line of a part. Therefore no content contains the boundary at the start of a line,
//! and an extension of the boundary delimits the same contents.

use bytes::Bytes;
use memchr::memmem::{self, Finder};
use std::borrow::Cow;

/// The reason why a body is not a valid multipart form, without any of its content.
pub type MultipartFault = String;

/// Maximum number of bytes of one part's header, including line breaks.
pub const HEADER_BYTES_MAX: usize = 16 * 1024;

/// Maximum number of bytes of a boundary (RFC 2046, section 5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;

/// Maximum number of spaces and tabs between a boundary and the end of its line.
const PADDING_MAX: usize = 256;

/// An event of the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The start of a part.
    Head(PartHead),
    /// A chunk of the part's content, never empty.
    Data(Bytes),
    /// The end of the part.
    End,
}

/// The header of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartHead {
    /// The part's `name`, decoded.
    pub name: String,
    /// Whether the part has a file name.
    pub has_filename: bool,
    /// The `Content-Type` with its parameters, as received.
    pub content_type: Option<String>,
    /// Whether the content has a transfer encoding other than the identity.
    pub has_transfer_encoding: bool,
    /// Parameters of `Content-Disposition` except the name, as received, with a leading `;`.
    disposition: Vec<u8>,
    /// The other header fields as received, each with its line end.
    others: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Preamble,
    AfterBoundary,
    Header,
    /// Before the first byte of a content. The preceding line end is still buffered.
    Begin,
    Content,
    Epilogue,
}

/// An incremental reader of a multipart body.
#[derive(Debug)]
pub struct Reader {
    state: State,
    /// CRLF, two dashes, the boundary.
    delimiter: Finder<'static>,
    /// Received bytes that are not parsed yet.
    rest: Bytes,
    parts_left: usize,
}

impl Reader {
    /// Creates a reader that accepts at most `parts_max` parts.
    pub fn new(boundary: &str, parts_max: usize) -> Reader {
        let delimiter = Finder::new(&[b"\r\n--", boundary.as_bytes()].concat()).into_owned();
        // Prepend a line end, because the first boundary also starts a line.
        let rest = Bytes::from_static(b"\r\n");
        Reader { state: State::Preamble, delimiter, rest, parts_left: parts_max }
    }

    /// Appends a chunk of the body. [`Reader::next_piece`] returns its events.
    pub fn push(&mut self, chunk: Bytes) {
        // Avoid a copy in the common case that all preceding data was parsed.
        self.rest = if self.rest.is_empty() { chunk } else { [&self.rest[..], &chunk].concat().into() };
    }

    /// Returns the next event, or `None` if more of the body is needed.
    ///
    /// # Errors
    ///
    /// Fails if the body is not a multipart form, is ambiguous, or has too many parts.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, MultipartFault> {
        loop {
            // Without progress, more data is needed.
            let before = (self.state, self.rest.len());
            let piece = match self.state {
                State::Preamble => {
                    self.preamble();
                    None
                }
                State::AfterBoundary => {
                    self.boundary_line()?;
                    None
                }
                State::Header => self.header()?,
                State::Begin => self.begin(),
                State::Content => self.content(),
                State::Epilogue => {
                    // The epilogue has no meaning and is discarded (RFC 2046, section 5.1.1).
                    self.rest = Bytes::new();
                    return Ok(None);
                }
            };
            if piece.is_some() || (self.state, self.rest.len()) == before {
                return Ok(piece);
            }
        }
    }

    /// Checks for the final boundary. Call it at the end of the body, when [`Reader::next_piece`]
    /// returns `None`.
    ///
    /// # Errors
    ///
    /// Fails if the first or the final boundary is missing.
    pub fn finish(&self) -> Result<(), MultipartFault> {
        match self.state {
            State::Epilogue => Ok(()),
            State::Preamble => Err("the body does not begin with its boundary".to_owned()),
            _ => Err("the body ends before its final boundary".to_owned()),
        }
    }

    fn preamble(&mut self) {
        match self.delimiter.find(&self.rest) {
            Some(at) => self.continue_after(at),
            // Retain a possible start of the delimiter for the next chunk.
            None => drop(self.rest.split_to(self.rest.len() - self.partial_delimiter())),
        }
    }

    /// Continues after a delimiter.
    fn continue_after(&mut self, at: usize) {
        drop(self.rest.split_to(at + self.delimiter.needle().len()));
        self.state = State::AfterBoundary;
    }

    /// Returns the number of bytes at the end that may be the start of a delimiter.
    fn partial_delimiter(&self) -> usize {
        let needle = self.delimiter.needle();
        // One byte less than the delimiter: a complete one would have been found.
        let longest = needle.len().min(self.rest.len() + 1) - 1;
        let tail = &self.rest[self.rest.len() - longest..];
        let mut candidates = memchr::memchr_iter(b'\r', tail).map(|at| longest - at);
        candidates.find(|length| self.rest.ends_with(&needle[..*length])).unwrap_or(0)
    }

    /// Parses the rest of a boundary's line.
    fn boundary_line(&mut self) -> Result<(), MultipartFault> {
        let rest = &self.rest[..];
        if rest.starts_with(b"--") {
            self.state = State::Epilogue;
            return Ok(());
        }
        // Transport padding is allowed after a boundary (RFC 2046, section 5.1.1).
        let padding = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let end = &rest[padding..];
        let is_end = b"\r\n".starts_with(&end[..end.len().min(2)]);
        let may_close = padding == 0 && rest == b"-";
        if padding > PADDING_MAX || !is_end && !may_close {
            return Err("a line begins with the boundary and is no delimiter".to_owned());
        }
        if end.len() >= 2 {
            self.rest = self.rest.slice(padding + 2..);
            self.state = State::Header;
        }
        Ok(())
    }

    fn header(&mut self) -> Result<Option<Piece>, MultipartFault> {
        let end = match self.rest.starts_with(b"\r\n") {
            // A part without header fields starts with the empty line.
            true => Some(0),
            false => memmem::find(&self.rest[..self.rest.len().min(HEADER_BYTES_MAX)], b"\r\n\r\n")
                .map(|at| at + 2),
        };
        let Some(end) = end else {
            // Bounds the memory for a header that never ends.
            return match self.rest.len() >= HEADER_BYTES_MAX {
                true => Err("the header of a part is too large".to_owned()),
                false => Ok(None),
            };
        };
        let header = self.rest.split_to(end);
        self.parts_left =
            self.parts_left.checked_sub(1).ok_or_else(|| "the body has too many parts".to_owned())?;
        self.state = State::Begin;
        PartHead::parse(&header).map(|head| Some(Piece::Head(head)))
    }

    /// Handles the line end before a content. If it belongs to a delimiter, the content is empty.
    fn begin(&mut self) -> Option<Piece> {
        let needle = self.delimiter.needle();
        let length = self.rest.len().min(needle.len());
        if self.rest[..length] == needle[..length] {
            if length == needle.len() {
                self.continue_after(0);
                return Some(Piece::End);
            }
            return None;
        }
        self.rest = self.rest.slice(2..);
        self.state = State::Content;
        None
    }

    fn content(&mut self) -> Option<Piece> {
        let at = self.delimiter.find(&self.rest);
        let length = at.unwrap_or_else(|| self.rest.len() - self.partial_delimiter());
        if length > 0 {
            return Some(Piece::Data(self.rest.split_to(length)));
        }
        self.continue_after(at?);
        Some(Piece::End)
    }
}

impl PartHead {
    fn parse(header: &[u8]) -> Result<PartHead, MultipartFault> {
        let mut head = PartHead {
            name: String::new(),
            has_filename: false,
            content_type: None,
            has_transfer_encoding: false,
            disposition: Vec::new(),
            others: Vec::new(),
        };
        let (mut is_named, mut is_typed, mut has_encoding) = (false, false, false);
        let mut rest = header;
        while let Some(end) = memmem::find(rest, b"\r\n") {
            let line = &rest[..end];
            rest = &rest[end + 2..];
            if line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
                return Err("the header of a part has a line that does not end with CRLF".to_owned());
            }
            let colon = line.iter().position(|byte| *byte == b':');
            let (name, value) = match colon.filter(|at| *at > 0 && is_token(&line[..*at])) {
                Some(at) => (&line[..at], line[at + 1..].trim_ascii()),
                None => return Err("the header of a part has a line that is no field".to_owned()),
            };
            // A valid token, but a less strict parser could treat the line as a delimiter.
            if name.starts_with(b"--") {
                return Err("the header of a part has a line that begins as a delimiter does".to_owned());
            }
            if name.eq_ignore_ascii_case(b"content-disposition") {
                check_once(&mut is_named, "Content-Disposition")?;
                head.read_disposition(value)?;
                continue;
            }
            if name.eq_ignore_ascii_case(b"content-type") {
                check_once(&mut is_typed, "Content-Type")?;
                // The line is also stored in `others`, so that it is forwarded as received.
                head.content_type = Some(String::from_utf8_lossy(value).into_owned());
            }
            if name.eq_ignore_ascii_case(b"content-transfer-encoding") {
                check_once(&mut has_encoding, "Content-Transfer-Encoding")?;
                // These encodings leave the content unchanged, so they are permitted.
                let as_it_is: [&[u8]; 3] = [b"7bit", b"8bit", b"binary"];
                head.has_transfer_encoding = !as_it_is.iter().any(|one| value.eq_ignore_ascii_case(one));
            }
            head.others.extend_from_slice(line);
            head.others.extend_from_slice(b"\r\n");
        }
        if is_named { Ok(head) } else { Err("a part has no `Content-Disposition`".to_owned()) }
    }

    fn read_disposition(&mut self, value: &[u8]) -> Result<(), MultipartFault> {
        let wrong = || "a part has a `Content-Disposition` that names no field of a form".to_owned();
        let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
        if !value[..end].trim_ascii().eq_ignore_ascii_case(b"form-data") {
            return Err(wrong());
        }
        let mut name = None;
        let (mut has_plain, mut has_extended) = (false, false);
        let mut rest = &value[end..];
        while let Some(parameter) = rest.strip_prefix(b";") {
            let (length, key, value) = parameter_of(parameter).ok_or_else(wrong)?;
            let written = &rest[..length + 1];
            rest = &rest[length + 1..];
            if key.eq_ignore_ascii_case(b"name") {
                if name.replace(value).is_some() {
                    return Err(wrong());
                }
                continue;
            }
            if key.eq_ignore_ascii_case(b"filename") {
                check_once(&mut has_plain, "filename")?;
            } else if key.eq_ignore_ascii_case(b"filename*") {
                check_once(&mut has_extended, "filename*")?;
            }
            self.disposition.extend_from_slice(written);
        }
        self.has_filename = has_plain || has_extended;
        let name = String::from_utf8(name.ok_or_else(wrong)?).map_err(|_| wrong())?;
        self.name = unescape(&name);
        if rest.is_empty() { Ok(()) } else { Err(wrong()) }
    }

    /// Returns the plain `filename` parameter, if any.
    pub fn filename(&self) -> Option<String> {
        let mut rest = &self.disposition[..];
        while let Some(parameter) = rest.strip_prefix(b";") {
            let (length, key, value) = parameter_of(parameter)?;
            if key.eq_ignore_ascii_case(b"filename") {
                return Some(String::from_utf8_lossy(&value).into_owned());
            }
            rest = &rest[length + 1..];
        }
        None
    }

    /// Writes the header under another name, preceded by the boundary.
    pub fn write(&self, boundary: &str, name: &str, out: &mut Vec<u8>) {
        write_name(boundary, name, out);
        out.extend_from_slice(&self.disposition);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.others);
        out.extend_from_slice(b"\r\n");
    }
}

/// Rejects a repeated field, because parsers disagree about which one applies.
fn check_once(has_come: &mut bool, name: &str) -> Result<(), MultipartFault> {
    match std::mem::replace(has_come, true) {
        true => Err(format!("a part has `{name}` twice")),
        false => Ok(()),
    }
}

/// Parses one parameter. Returns its encoded length, name and value.
fn parameter_of(text: &[u8]) -> Option<(usize, &[u8], Vec<u8>)> {
    let equals = text.iter().position(|byte| matches!(byte, b'=' | b';' | b'"'));
    let Some(equals) = equals.filter(|at| text[*at] == b'=') else {
        // `form-data;` without a parameter.
        let is_blank = text.iter().all(|byte| matches!(byte, b' ' | b'\t'));
        return is_blank.then(|| (text.len(), &text[..0], Vec::new()));
    };
    let key = text[..equals].trim_ascii();
    let key = Some(key).filter(|key| !key.is_empty() && is_token(key))?;
    let value = &text[equals + 1..];
    let blank = value.len() - value.trim_ascii_start().len();
    if value.get(blank) != Some(&b'"') {
        let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
        return Some((equals + 1 + end, key, value[..end].trim_ascii().to_vec()));
    }
    let (mut at, mut inner) = (blank + 1, Vec::new());
    loop {
        match *value.get(at)? {
            b'"' => break,
            // Only `\"` and `\\` are escapes: browsers write Windows paths with plain backslashes.
            b'\\' if matches!(value.get(at + 1), Some(b'"' | b'\\')) => {
                inner.push(value[at + 1]);
                at += 2;
            }
            byte => {
                inner.push(byte);
                at += 1;
            }
        }
    }
    let after = &value[at + 1..];
    let end = after.iter().position(|byte| *byte == b';').unwrap_or(after.len());
    after[..end].trim_ascii().is_empty().then_some((equals + 1 + at + 1 + end, key, inner))
}

/// Decodes a name as browsers escape it (WHATWG, multipart/form-data encoding algorithm).
fn unescape(name: &str) -> String {
    name.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n")
}

fn write_name(boundary: &str, name: &str, out: &mut Vec<u8>) {
    // Browsers do not escape backslashes, but one before the closing quote would hide it.
    let name = name.replace('\\', "\\\\").replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    let name = name.replace('\0', "%00");
    let parts = ["--", boundary, "\r\nContent-Disposition: form-data; name=\"", &name, "\""];
    parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
}

/// Writes a complete part.
pub fn write_part(boundary: &str, name: &str, content_type: Option<&str>, content: &[u8], out: &mut Vec<u8>) {
    write_name(boundary, name, out);
    for part in content_type.iter().flat_map(|named| ["\r\nContent-Type: ", named]) {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(content);
    out.extend_from_slice(b"\r\n");
}

/// Writes the final boundary.
pub fn write_end(boundary: &str, out: &mut Vec<u8>) {
    for part in ["--", boundary, "--\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn is_token(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// Returns the boundary of a media type.
///
/// # Errors
///
/// Fails if the media type has no boundary, has two, or has one that RFC 2046 does not allow.
pub fn boundary_of(media_type: &str) -> Result<Cow<'_, str>, MultipartFault> {
    let missing = || "the media type of the body has no boundary".to_owned();
    let mut rest = media_type.find(';').map_or(&b""[..], |at| &media_type.as_bytes()[at..]);
    let mut found = None;
    while let Some(parameter) = rest.strip_prefix(b";") {
        let (length, key, value) = parameter_of(parameter).ok_or_else(missing)?;
        rest = &rest[length + 1..];
        if key.eq_ignore_ascii_case(b"boundary") && found.replace(value).is_some() {
            return Err("the media type of the body has two boundaries".to_owned());
        }
    }
    let found = found.and_then(|found| String::from_utf8(found).ok()).ok_or_else(missing)?;
    let is_allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=?".contains(&byte) || byte == b' ';
    if found.is_empty()
        || found.len() > BOUNDARY_BYTES_MAX
        || found.ends_with(' ')
        || !found.bytes().all(is_allowed)
    {
        return Err("the boundary of the body is none that RFC 2046 allows".to_owned());
    }
    Ok(found.into())
}

/// Returns the media type for a boundary.
pub fn media_type(boundary: &str) -> String {
    let quote = if is_token(boundary.as_bytes()) { "" } else { "\"" };
    format!("multipart/form-data; boundary={quote}{boundary}{quote}")
}

/// Returns a boundary for contents that were received under the boundary `of`, if any, and for the
/// additional `texts`. It extends `of`, which no content contains, and no text contains it. `salt`
/// makes it unpredictable, because a less strict parser could otherwise treat crafted content as a
/// delimiter.
///
/// # Errors
///
/// Fails if the texts contain all 16 candidates.
pub fn boundary_for<'t>(
    of: Option<&str>,
    salt: u64,
    texts: impl Iterator<Item = &'t [u8]> + Clone,
) -> Result<String, MultipartFault> {
    let base = of.unwrap_or("part-");
    // RFC 2046 limits the length, so use only as much of the suffix as fits.
    let room = BOUNDARY_BYTES_MAX - base.len().min(BOUNDARY_BYTES_MAX);
    for more in 0..16 {
        let suffix = format!("{:016x}", salt.wrapping_add(more));
        let boundary = format!("{base}{}", &suffix[suffix.len() - room.min(suffix.len())..]);
        let finder = Finder::new(boundary.as_bytes());
        if !texts.clone().any(|text| finder.find(text).is_some()) {
            return Ok(boundary);
        }
    }
    Err("a field holds the boundary of the body".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Found = Result<Vec<(PartHead, Vec<u8>)>, MultipartFault>;

    fn read(pieces: &[&[u8]]) -> Found {
        read_with("B", pieces)
    }

    fn read_with(boundary: &str, pieces: &[&[u8]]) -> Found {
        let mut reader = Reader::new(boundary, 5);
        let mut all: Vec<(PartHead, Vec<u8>)> = Vec::new();
        let mut is_open = false;
        for piece in pieces {
            reader.push(Bytes::copy_from_slice(piece));
            while let Some(piece) = reader.next_piece()? {
                match piece {
                    Piece::Head(head) => {
                        assert!(!std::mem::replace(&mut is_open, true));
                        all.push((head, Vec::new()));
                    }
                    Piece::Data(data) => {
                        assert!(is_open && !data.is_empty());
                        all.last_mut().unwrap().1.extend_from_slice(&data);
                    }
                    Piece::End => assert!(std::mem::replace(&mut is_open, false)),
                }
            }
        }
        reader.finish().map(|()| all)
    }

    /// A body with bars for line breaks.
    fn body(text: &str) -> Vec<u8> {
        text.replace('|', "\r\n").into_bytes()
    }

    fn told(text: &str) -> String {
        match read(&[&body(text)]) {
            Err(fault) => fault,
            Ok(parts) => parts
                .iter()
                .map(|(head, data)| format!("{}={}", head.name, String::from_utf8_lossy(data)))
                .collect::<Vec<_>>()
                .join("&"),
        }
    }

    #[test]
    fn parts_are_what_stands_between_delimiters() {
        for (text, parts) in [
            ("--B--", ""),
            ("--B--|epilogue|--B|", ""),
            ("preamble|--B|CONTENT-disposition: FORM-DATA; NAME=\"a b\"||x|--B--|", "a b=x"),
            ("--B \t|Content-Disposition: form-data; name=a|||--B--", "a="),
            // Without content, the line end of the delimiter is that of the header.
            ("--B|Content-Disposition: form-data; name=a||--B--", "a="),
            (
                "--B|X: y|Content-Disposition: form-data; name=a;||-|-|--|--A|\r|\r\n|--B--",
                "a=-|-|--|--A|\r|\r\n",
            ),
            (
                "--B|Content-Disposition: form-data; name=\"%22a\\\"\"; filename=\"C:\\x;\\\"y\"||1|--B|\
                 Content-Disposition: form-data; filename*=utf-8''x ; name = b ||2|--B--",
                "\"a\"=1&b=2",
            ),
        ] {
            assert_eq!(told(text).replace("\r\n", "|"), parts.replace("\r\n", "|"), "{text}");
        }
    }

    #[test]
    fn what_readers_could_differ_about_is_refused() {
        for (text, fault) in [
            ("", "does not begin with its boundary"),
            ("--A--", "does not begin with its boundary"),
            ("--B", "before its final boundary"),
            ("--B-", "before its final boundary"),
            ("--B|Content-Disposition: form-data; name=a||x", "before its final boundary"),
            ("--B|Content-Disposition: form-data; name=a||x|--Bx|", "is no delimiter"),
            ("--B|Content-Disposition: form-data; name=a||x|--B-x", "is no delimiter"),
            ("--B\nContent-Disposition: form-data; name=a|||--B--", "is no delimiter"),
            ("--B|Content-Disposition: form-data; name=a\nX: y||x|--B--", "does not end with CRLF"),
            ("--B|Content-Disposition: form-data; name=a| folded||x|--B--", "is no field"),
            ("--B||x|--B--", "no `Content-Disposition`"),
            ("--B|Content-Disposition: form-data||x|--B--", "names no field"),
            ("--B|Content-Disposition: attachment; name=a||x|--B--", "names no field"),
            ("--B|Content-Disposition: form-data; name=a; name=b||x|--B--", "names no field"),
            ("--B|Content-Disposition: form-data; name=a; filename=a; Filename=b||x|--B--", "twice"),
            (
                "--B|Content-Disposition: form-data; filename*=utf-8''a; name=a; filename*=utf-8''b||x|--B--",
                "twice",
            ),
            ("--B|Content-Disposition: form-data; name=\"a||x|--B--", "names no field"),
            ("--B|Content-Disposition: form-data; name=\"a\"b||x|--B--", "names no field"),
            (
                "--B|Content-Disposition: form-data; name=a|Content-Disposition: form-data; name=b||x|--B--",
                "twice",
            ),
            (
                "--B|Content-Disposition: form-data; name=a|Content-Type: text/plain|Content-type: a/b||x|--B--",
                "twice",
            ),
            (
                "--B|Content-Transfer-Encoding: base64|Content-Disposition: form-data; name=a|\
                 Content-Transfer-Encoding: 8bit||x|--B--",
                "twice",
            ),
            ("--B|Content-Disposition: form-data; name=a|--C: y||x|--B--", "begins as a delimiter"),
            ("--B|Content-Disposition: form-data; name=a|--B: y||x|--B--", "begins as a delimiter"),
        ] {
            assert!(told(text).contains(fault), "{text}: {}", told(text));
        }
        let large = format!("--B|Content-Disposition: form-data; name=a|X: {}||x|--B--", "y".repeat(17_000));
        assert!(told(&large).contains("too large"));
        let many = "--B|Content-Disposition: form-data; name=a||x|".repeat(6) + "--B--";
        assert!(told(&many).contains("too many parts"));
    }

    #[test]
    fn a_boundary_is_one_of_the_rfc() {
        for (named, boundary) in [
            ("multipart/form-data; boundary=abc", Ok("abc")),
            ("multipart/form-data; charset=x; Boundary=\"a b'c\" ; x=y", Ok("a b'c")),
            ("multipart/form-data", Err("no boundary")),
            ("multipart/form-data; boundary=", Err("RFC 2046")),
            ("multipart/form-data; boundary=a;boundary=b", Err("two boundaries")),
            ("multipart/form-data; boundary=\"a\u{e4}\"", Err("RFC 2046")),
            ("multipart/form-data; boundary=\"a ", Err("no boundary")),
        ] {
            match (boundary_of(named), boundary) {
                (Ok(found), Ok(wanted)) => assert_eq!(found, wanted),
                (Err(found), Err(wanted)) => assert!(found.contains(wanted), "{named}: {found}"),
                (found, _) => panic!("{named}: {found:?}"),
            }
        }
        assert!(boundary_of(&format!("a/b;boundary={}", "a".repeat(71))).is_err());
        assert_eq!(media_type("a b"), "multipart/form-data; boundary=\"a b\"");
    }

    #[test]
    fn a_boundary_that_is_made_stands_in_no_text() {
        let texts = [&b"--part-0000000000000007"[..], b"part-0000000000000008"];
        let made = boundary_for(None, 7, texts.into_iter());
        assert_eq!(made.as_deref(), Ok("part-0000000000000009"));
        let long = "a".repeat(68);
        let made = boundary_for(Some(&long), 0x1234, std::iter::empty());
        assert_eq!(made, Ok(format!("{long}34")));
        let full = "a".repeat(70);
        assert_eq!(boundary_for(Some(&full), 1, std::iter::empty()), Ok(full.clone()));
        assert!(boundary_for(Some(&full), 1, [full.as_bytes()].into_iter()).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_however_it_is_cut(
            parts in prop::collection::vec(("[ -~ä\"]{0,6}", "[\r\nB-]{0,12}"), 0..4),
            cuts in prop::collection::vec(0_usize..200, 0..8),
        ) {
            let held: Vec<&[u8]> = parts.iter().map(|(_, text)| text.as_bytes()).collect();
            let boundary = boundary_for(None, 0, held.into_iter()).unwrap();
            let mut text = Vec::new();
            for (name, content) in &parts {
                write_part(&boundary, name, None, content.as_bytes(), &mut text);
            }
            write_end(&boundary, &mut text);
            let mut reader = Reader::new(&boundary, 5);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut found: Vec<(String, Vec<u8>)> = Vec::new();
            for cut in cuts.windows(2) {
                reader.push(Bytes::copy_from_slice(&text[cut[0]..cut[1]]));
                while let Some(piece) = reader.next_piece().unwrap() {
                    match piece {
                        Piece::Head(head) => found.push((head.name, Vec::new())),
                        Piece::Data(data) => found.last_mut().unwrap().1.extend_from_slice(&data),
                        Piece::End => {}
                    }
                }
            }
            prop_assert_eq!(reader.finish(), Ok(()));
            let wanted: Vec<(String, Vec<u8>)> =
                parts.iter().map(|(name, text)| (unescape(name), text.clone().into_bytes())).collect();
            // The generated texts do not contain the boundary.
            prop_assert_eq!(found, wanted);
        }

        #[test]
        fn every_cut_reads_the_same(text in "(--B|--B\r\nContent-Disposition: form-data; filename=f; name=\"%22a\\\\\"\r\nX: y\r\n\r\n|\r\n|\r|\n|-|B|x| |--B--){0,16}", at in 0_usize..80) {
            let text = [b"--B\r\nContent-Disposition: form-data; name=a\r\n\r\n", text.as_bytes()].concat();
            let at = at.min(text.len());
            let whole = read(&[&text]);
            prop_assert_eq!(&read(&[&text[..at], &text[at..]]), &whole);
            let single: Vec<&[u8]> = text.chunks(1).collect();
            prop_assert_eq!(&read(&single), &whole);
            // Parts written under an extended boundary read back unchanged.
            let Ok(parts) = whole else { return Ok(()) };
            let boundary = boundary_for(Some("B"), 7, std::iter::empty()).unwrap();
            let mut out = Vec::new();
            for (head, content) in &parts {
                head.write(&boundary, &head.name, &mut out);
                out.extend_from_slice(content);
                out.extend_from_slice(b"\r\n");
            }
            write_end(&boundary, &mut out);
            prop_assert_eq!(read_with(&boundary, &[&out]), Ok(parts));
        }
    }
}
