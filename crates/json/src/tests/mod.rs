//! The promises of this room: grammar by category of RFC 8259, fidelity of the document, laws over
//! generated input, and the public JSONTestSuite where it lies at hand.

mod document;
mod grammar;
mod grammar_alone;
#[cfg(unix)]
pub(crate) mod guarded;
mod laws;
mod scanning;
mod suite;

use super::{Error, Limits, Reader, Validator, Value};

/// The verdict of the push reader on `text` cut into chunks of `size` bytes.
pub(super) fn push(text: &[u8], size: usize, limits: Limits) -> Result<(), Error> {
    let mut reader = Reader::new(Validator::default(), limits);
    for chunk in text.chunks(size) {
        reader.feed(chunk)?;
    }
    reader.finish().map(drop)
}

/// The one verdict of document and stream, whatever the chunks.
pub(super) fn verdict(text: &[u8], limits: Limits) -> Result<(), Error> {
    let document = Value::parse(text, &limits).map(drop);
    for size in [1, 2, 3, 7, 64, text.len().max(1)] {
        let size_name = format!("{} in chunks of {size}", String::from_utf8_lossy(text));
        assert_eq!(push(text, size, limits), document, "{size_name}");
    }
    document
}
