//! Detection of the ends of HTTP/1.1 messages, for the load generator and the fixture. Both must be
//! cheap in comparison with the measured peers, so bodies are skipped and not parsed. Sockets, and
//! anything that only a proxy needs, are not handled here.

use anyhow::{Context, Result, bail};

const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Reads consecutive messages from pieces of any size.
pub struct Reader {
    part: Part,
    head: Vec<u8>,
    size_line: Vec<u8>,
    body: Option<Vec<u8>>,
}

#[derive(Clone, Copy)]
enum Part {
    Head,
    Sized(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd(u8),
    Trailer,
    Complete,
}

impl Reader {
    /// Returns a reader that skips bodies, or stores them with `keep_bodies`.
    pub fn new(keep_bodies: bool) -> Self {
        let body = keep_bodies.then(Vec::new);
        Self { part: Part::Head, head: Vec::with_capacity(512), size_line: Vec::new(), body }
    }

    /// Consumes bytes until the message is complete. Returns the number of consumed bytes.
    ///
    /// # Errors
    /// What cannot be read as HTTP/1.1 with a length or chunks.
    pub fn push(&mut self, input: &[u8]) -> Result<usize> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match self.part {
                Part::Complete => return Ok(at),
                Part::Sized(0) => self.part = Part::Complete,
                _ if rest.is_empty() => return Ok(at),
                Part::Head => at += self.push_head(rest)?,
                Part::Sized(left) => {
                    let taken = self.take_body(rest, left);
                    self.part = Part::Sized(left - taken);
                    at += taken as usize;
                }
                Part::Chunk(0) => self.part = Part::ChunkEnd(2),
                Part::Chunk(left) => {
                    let taken = self.take_body(rest, left);
                    self.part = Part::Chunk(left - taken);
                    at += taken as usize;
                }
                Part::ChunkEnd(left) => {
                    at += 1;
                    self.part = if left == 1 { Part::ChunkSize } else { Part::ChunkEnd(left - 1) };
                }
                Part::ChunkSize | Part::Trailer => at += self.push_line(rest)?,
            }
        }
    }

    fn push_head(&mut self, input: &[u8]) -> Result<usize> {
        let before = self.head.len();
        let taken = if before == 0 {
            // The usual case: the complete head in one piece, followed by a large part of the body that
            // should not be copied.
            find(input).unwrap_or(input.len())
        } else {
            let seen = before.saturating_sub(3);
            self.head.extend_from_slice(input);
            let end = find(&self.head[seen..]).map_or(self.head.len(), |end| seen + end);
            self.head.truncate(before);
            end - before
        };
        self.head.extend_from_slice(&input[..taken]);
        if self.head.ends_with(b"\r\n\r\n") {
            self.part = self.framing()?;
        } else if self.head.len() > HEAD_BYTES_MAX {
            bail!("a head of more than {HEAD_BYTES_MAX} bytes");
        }
        Ok(taken)
    }

    fn push_line(&mut self, input: &[u8]) -> Result<usize> {
        let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
            self.size_line.extend_from_slice(input);
            return Ok(input.len());
        };
        self.size_line.extend_from_slice(&input[..end]);
        let line = self.size_line.trim_ascii();
        self.part = match self.part {
            Part::Trailer if line.is_empty() => Part::Complete,
            Part::Trailer => Part::Trailer,
            _ => {
                let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
                let size = std::str::from_utf8(digits)
                    .ok()
                    .and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
                match size.context("a chunk without a size")? {
                    0 => Part::Trailer,
                    size => Part::Chunk(size),
                }
            }
        };
        self.size_line.clear();
        Ok(end + 1)
    }

    fn take_body(&mut self, input: &[u8], left: u64) -> u64 {
        let taken = left.min(input.len() as u64);
        if let Some(body) = &mut self.body {
            body.extend_from_slice(&input[..taken as usize]);
        }
        taken
    }

    /// Returns the delimitation of the body after a head (RFC 9112, section 6.3).
    fn framing(&self) -> Result<Part> {
        if let Some(coding) = self.field("transfer-encoding") {
            if !coding.eq_ignore_ascii_case(b"chunked") {
                bail!("a transfer coding other than chunked");
            }
            return Ok(Part::ChunkSize);
        }
        if let Some(length) = self.field("content-length") {
            let text = std::str::from_utf8(length)?;
            return Ok(Part::Sized(text.parse().context("a length that is no number")?));
        }
        if self.head.starts_with(b"HTTP/") && !matches!(self.status(), 204 | 304) {
            bail!("an answer that ends with its connection");
        }
        Ok(Part::Sized(0))
    }

    /// Returns the value of a header field of the current message, by its name in lower case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.head.split(|byte| *byte == b'\n').skip(1).find_map(|line| {
            let (found, value) = line.split_at_checked(name.len())?;
            let value = value.strip_prefix(b":")?;
            found.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
        })
    }

    /// Returns the status of the current answer; 0 for a request.
    pub fn status(&self) -> u16 {
        let digits = self.head.get(9..12).and_then(|text| std::str::from_utf8(text).ok());
        digits.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Returns method and target of the current request.
    pub fn request(&self) -> (&[u8], &[u8]) {
        let mut words = self.head.split(|byte| matches!(byte, b' ' | b'\r'));
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    }

    /// Returns the body so far, if bodies are stored.
    pub fn body(&self) -> &[u8] {
        self.body.as_deref().unwrap_or_default()
    }

    /// Returns whether the message is complete.
    pub fn is_complete(&self) -> bool {
        matches!(self.part, Part::Complete)
    }

    /// Continues with the next message.
    pub fn reset(&mut self) {
        self.part = Part::Head;
        self.head.clear();
        if let Some(body) = &mut self.body {
            body.clear();
        }
    }
}

/// Returns the end of a head that starts or continues in a text.
fn find(text: &[u8]) -> Option<usize> {
    text.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

#[cfg(test)]
mod tests {
    use super::Reader;

    /// Reads a text in pieces of a size. Returns status and body of each message.
    fn messages(text: &[u8], size: usize) -> Vec<(u16, Vec<u8>)> {
        let (mut reader, mut found) = (Reader::new(true), Vec::new());
        for piece in text.chunks(size) {
            let mut at = 0;
            while at < piece.len() {
                at += reader.push(&piece[at..]).expect("the text is HTTP");
                if reader.is_complete() {
                    found.push((reader.status(), reader.body().to_vec()));
                    reader.reset();
                }
            }
        }
        found
    }

    #[test]
    fn messages_cut_anywhere_are_told_apart() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 201 Created\r\ncontent-length:0\r\n\r\n\
            HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\na;x=1\r\n0123456789\r\n0\r\nx: y\r\n\r\nHTTP/1.1 204 No\r\n\r\n";
        let whole =
            vec![(200, b"hello".to_vec()), (201, vec![]), (200, b"abc0123456789".to_vec()), (204, vec![])];
        for size in 1..=text.len() {
            assert_eq!(messages(text, size), whole, "pieces of {size}");
        }
    }

    #[test]
    fn an_answer_without_an_end_is_refused() {
        let mut reader = Reader::new(false);
        assert!(reader.push(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(Reader::new(false).push(b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n").is_err());
        assert!(
            Reader::new(false).push(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n").is_err()
        );
    }

    #[test]
    fn a_request_is_read_by_its_line_and_fields() {
        let mut reader = Reader::new(false);
        let text = b"POST /v3/chats/7/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t \r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(reader.push(text).unwrap(), text.len());
        assert!(reader.is_complete());
        assert_eq!(reader.request(), (&b"POST"[..], &b"/v3/chats/7/messages"[..]));
        assert_eq!(reader.field("authorization"), Some(&b"Bearer t"[..]));
    }
}
