//! The supported content codings and their decoders.

use super::{CodedBody, Decoder};
use async_compression::tokio::bufread::{
    BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder,
};
use std::pin::Pin;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    pub(super) fn from_name(name: &str) -> Option<Coding> {
        match name {
            "gzip" | "x-gzip" => Some(Coding::Gzip),
            "deflate" => Some(Coding::Deflate),
            "br" => Some(Coding::Brotli),
            "zstd" => Some(Coding::Zstd),
            _ => None,
        }
    }

    /// Returns how many bytes are needed to select the decoder.
    pub(super) fn first_bytes(self) -> usize {
        if self == Coding::Deflate { 2 } else { 1 }
    }

    /// Returns the decoder for a body that starts with `first`.
    pub(super) fn decoder(self, first: &[u8], source: CodedBody) -> Pin<Box<dyn Decoder>> {
        match self {
            // A body may consist of several members (gzip) or frames (zstd).
            Coding::Gzip => {
                let mut decoder = GzipDecoder::new(source);
                decoder.multiple_members(true);
                Box::pin(decoder)
            }
            Coding::Zstd => {
                let mut decoder = ZstdDecoder::new(source);
                decoder.multiple_members(true);
                Box::pin(decoder)
            }
            Coding::Brotli => Box::pin(BrotliDecoder::new(source)),
            // RFC 9110 (section 8.4.1.2) defines `deflate` as the zlib format and notes that some
            // senders omit the zlib wrapper.
            Coding::Deflate if is_zlib(first) => Box::pin(ZlibDecoder::new(source)),
            Coding::Deflate => Box::pin(DeflateDecoder::new(source)),
        }
    }
}

/// Returns whether the bytes are a zlib header (RFC 1950, section 2.2).
fn is_zlib(first: &[u8]) -> bool {
    matches!(first, [method, flags, ..] if method & 0x0f == 8 && u16::from_be_bytes([*method, *flags]).is_multiple_of(31))
}

macro_rules! decoders {
    ($($decoder:ident)*) => {
        $(impl Decoder for $decoder<CodedBody> {
            fn source(self: Pin<&mut Self>) -> Pin<&mut CodedBody> {
                self.get_pin_mut()
            }
        })*
    };
}

decoders!(GzipDecoder ZlibDecoder DeflateDecoder BrotliDecoder ZstdDecoder);
