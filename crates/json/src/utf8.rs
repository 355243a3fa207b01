//! Checks chunks for UTF-8, at several bytes per cycle.

use super::error::{Error, ErrorKind};

/// Checks chunks of any size, also if a cut is inside a character.
#[derive(Debug, Clone, Default)]
pub struct Utf8Checker {
    /// The start of a character at the end of the last chunk, `held` bytes long.
    start: [u8; 4],
    held: usize,
    /// Bytes of all chunks so far.
    seen: u64,
}

impl Utf8Checker {
    /// Checks the next bytes. The offset of an error is that of the first byte of the invalid character.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), Error> {
        let mut rest = chunk;
        while self.held > 0 && !rest.is_empty() {
            self.start[self.held] = rest[0];
            self.held += 1;
            rest = &rest[1..];
            match std::str::from_utf8(&self.start[..self.held]) {
                Ok(_) => self.held = 0,
                // An incomplete character needs another byte.
                Err(fault) if fault.error_len().is_none() => {}
                Err(_) => {
                    let consumed = (chunk.len() - rest.len()) as u64;
                    return Err(invalid(self.seen + consumed - self.held as u64));
                }
            }
        }
        let cut = cut_character(rest);
        let (whole, tail) = rest.split_at(rest.len() - cut);
        if simdutf8::basic::from_utf8(whole).is_err() {
            // The fast check does not return the position.
            let valid = std::str::from_utf8(whole).map_or_else(|fault| fault.valid_up_to(), str::len);
            return Err(invalid(self.seen + (chunk.len() - rest.len() + valid) as u64));
        }
        if cut > 0 {
            self.start[..cut].copy_from_slice(tail);
            self.held = cut;
            if std::str::from_utf8(tail).is_err_and(|fault| fault.error_len().is_some()) {
                return Err(invalid(self.seen + (chunk.len() - cut) as u64));
            }
        }
        self.seen += chunk.len() as u64;
        Ok(())
    }

    /// Finishes the text. An incomplete character is an error.
    pub fn finish(&self) -> Result<(), Error> {
        if self.held == 0 { Ok(()) } else { Err(invalid(self.seen - self.held as u64)) }
    }
}

/// Returns the number of bytes at the end of `bytes` that are an incomplete character.
fn cut_character(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let needed = match bytes[bytes.len() - back] {
            0x80..0xC0 => continue,
            0xC0..0xE0 => 2,
            0xE0..0xF0 => 3,
            0xF0.. => 4,
            _ => 1,
        };
        return if needed > back { back } else { 0 };
    }
    0
}

fn invalid(offset: u64) -> Error {
    Error::new(offset, ErrorKind::InvalidUtf8)
}
