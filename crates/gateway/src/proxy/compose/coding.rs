//! Content codings (RFC 9110, section 8.4). Bodies are decoded before translation, with a limit on
//! the expansion ratio. Translated messages are sent uncoded: upstreams are asked for `identity`,
//! and clients receive it.

#[cfg_attr(not(feature = "codings"), path = "coding/decoder_off.rs")]
mod decoder;

use crate::body::Body;
use crate::error::{ErrorKind, ErrorSide, GatewayError};
use bytes::{Buf as _, Bytes};
use decoder::Coding;
use http::{HeaderMap, header};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncBufRead, AsyncRead, ReadBuf};

/// Bytes decoded per step.
const PIECE_BYTES: usize = 16 * 1024;

/// The ratio is not checked below this many decoded bytes, because short repetitive texts compress
/// well.
const RATIO_GRACE_BYTES: u64 = 32 * 1024;

/// UTF-8 byte order mark, which parsers may ignore (RFC 8259, section 8.1).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns the codings of a body, in the order of their application. Some upstreams send `none` for
/// `identity`.
fn codings(headers: &HeaderMap, side: ErrorSide) -> Vec<String> {
    let lines = headers.get_all(header::CONTENT_ENCODING).iter();
    let is_coding = |coding: &String| match coding.as_str() {
        "" | "identity" => false,
        "none" => side == ErrorSide::Client,
        _ => true,
    };
    lines
        .flat_map(|line| line.to_str().unwrap_or("?").split(','))
        .map(|coding| coding.trim().to_ascii_lowercase())
        .filter(is_coding)
        .collect()
}

/// Removes the content coding of a body sent by `side`. An empty body is returned unchanged,
/// whatever its head announces.
///
/// # Errors
///
/// Returns an error of the sender for an unknown coding or more than one. Errors in the coded data
/// are reported while the body is read.
pub(crate) fn strip_coding(
    body: Body,
    headers: &HeaderMap,
    side: ErrorSide,
    ratio_max: u64,
    bytes_max: u64,
) -> Result<Body, GatewayError> {
    let codings = codings(headers, side);
    let coding = match codings.as_slice() {
        [] => return Ok(body),
        _ if body.is_empty() => return Ok(body),
        [one] => {
            Coding::from_name(one).ok_or_else(|| unsupported_coding(side, "an unknown content coding"))?
        }
        // Each further coding multiplies the possible expansion, and no common client uses two.
        _ => return Err(unsupported_coding(side, "more than one content coding")),
    };
    let came = Arc::new(AtomicU64::new(0));
    let source = CodedBody { body, chunk: Bytes::new(), came: Arc::clone(&came) };
    let stage = DecodeStage::Waiting(Some(source));
    let mut decoded = Decoded { stage, coding, came, made: 0, ratio_max, side };
    Ok(Body::generated(move |cx| decoded.poll_chunk(cx), side).with_limit(bytes_max))
}

fn unsupported_coding(side: ErrorSide, detail: &str) -> GatewayError {
    let kind =
        if side == ErrorSide::Client { ErrorKind::UnsupportedMedia } else { ErrorKind::UpstreamBroken };
    GatewayError::new(kind, detail)
}

/// Removes a leading byte order mark.
pub(crate) fn without_mark(mut text: Bytes) -> Bytes {
    if text.starts_with(BYTE_ORDER_MARK) {
        text.advance(BYTE_ORDER_MARK.len());
    }
    text
}

/// Returns whether more bytes are needed to decide if the text starts with a byte order mark.
pub(crate) fn may_be_mark(text: &[u8]) -> bool {
    text.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(text)
}

/// Adapter that lets the decoders read a body.
struct CodedBody {
    body: Body,
    chunk: Bytes,
    came: Arc<AtomicU64>,
}

impl CodedBody {
    /// Returns the buffered bytes, at least `count` of them unless the body ends before.
    fn poll_ahead(&mut self, cx: &mut Context<'_>, count: usize) -> Poll<io::Result<&[u8]>> {
        while self.chunk.len() < count {
            let next = ready!(self.body.poll_chunk(cx)).transpose().map_err(io::Error::other)?;
            let Some(next) = next else { break };
            self.chunk = match self.chunk.is_empty() {
                true => next,
                false => [&self.chunk[..], &next].concat().into(),
            };
        }
        Poll::Ready(Ok(&self.chunk))
    }
}

impl AsyncBufRead for CodedBody {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.get_mut().poll_ahead(cx, 1)
    }

    fn consume(mut self: Pin<&mut Self>, count: usize) {
        self.chunk.advance(count);
        // Count the bytes that the decoder consumed rather than those received: a decompression
        // bomb fits into one small frame.
        self.came.fetch_add(count as u64, Relaxed);
    }
}

impl AsyncRead for CodedBody {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let ready = ready!(self.as_mut().poll_fill_buf(cx))?;
        let count = ready.len().min(buf.remaining());
        buf.put_slice(&ready[..count]);
        self.consume(count);
        Poll::Ready(Ok(()))
    }
}

/// A decoder with access to its source.
trait Decoder: AsyncRead + Send {
    fn source(self: Pin<&mut Self>) -> Pin<&mut CodedBody>;
}

/// Progress of decoding a body.
enum DecodeStage {
    /// Waiting for the first bytes, which select the decoder.
    Waiting(Option<CodedBody>),
    Decoding(Pin<Box<dyn Decoder>>),
    Done,
}

/// Body of decoded bytes.
struct Decoded {
    stage: DecodeStage,
    coding: Coding,
    came: Arc<AtomicU64>,
    made: u64,
    ratio_max: u64,
    side: ErrorSide,
}

impl Decoded {
    /// Returns the decoder when it is known, or `None` if there is no more data to decode.
    fn poll_decoder(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Pin<&mut dyn Decoder>>>> {
        if let DecodeStage::Waiting(source) = &mut self.stage {
            let waiting = source.as_mut().expect("it is taken with the stage");
            let first = ready!(waiting.poll_ahead(cx, self.coding.first_bytes()))?;
            // `deflate` is sent with and without the zlib header (RFC 9110, section 8.4.1.2); the first
            // two bytes differ.
            let first: Vec<u8> = first.iter().copied().take(2).collect();
            let source = source.take().expect("it was there a moment ago");
            self.stage = match first.is_empty() {
                true => DecodeStage::Done,
                false => DecodeStage::Decoding(self.coding.decoder(&first, source)),
            };
        }
        Poll::Ready(Ok(match &mut self.stage {
            DecodeStage::Decoding(decoder) => Some(decoder.as_mut()),
            DecodeStage::Waiting(_) | DecodeStage::Done => None,
        }))
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        let Some(mut decoder) = ready!(self.poll_decoder(cx))? else { return Poll::Ready(Ok(None)) };
        let mut piece = vec![0; PIECE_BYTES];
        let mut space = ReadBuf::new(&mut piece);
        ready!(decoder.as_mut().poll_read(cx, &mut space))?;
        let count = space.filled().len();
        if count == 0 {
            // The body must not continue after the coded data: silently dropping the rest could
            // drop content.
            if !ready!(decoder.source().get_mut().poll_ahead(cx, 1))?.is_empty() {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "more follows its end")));
            }
            self.stage = DecodeStage::Done;
            return Poll::Ready(Ok(None));
        }
        piece.truncate(count);
        Poll::Ready(Ok(Some(piece)))
    }

    fn fault(&self, error: io::Error) -> GatewayError {
        match error.downcast::<GatewayError>() {
            Ok(error) => error,
            Err(error) => self.broken("a body does not keep to its content coding").because(error),
        }
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, GatewayError>>> {
        let Some(piece) = ready!(self.poll_piece(cx)).map_err(|error| self.fault(error))? else {
            return Poll::Ready(None);
        };
        self.made += piece.len() as u64;
        if self.made > RATIO_GRACE_BYTES && self.made / self.ratio_max.max(1) > self.came.load(Relaxed) {
            return Poll::Ready(Some(Err(self.broken("a body grows beyond its limit when decoded"))));
        }
        Poll::Ready(Some(Ok(piece.into())))
    }

    fn broken(&self, detail: &str) -> GatewayError {
        let kind =
            if self.side == ErrorSide::Client { ErrorKind::BadBody } else { ErrorKind::UpstreamBroken };
        GatewayError::new(kind, detail)
    }
}

#[cfg(test)]
#[cfg(feature = "codings")]
mod tests {
    use super::*;
    use async_compression::tokio::write::{
        BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder,
    };
    use http::HeaderValue;
    use tokio::io::AsyncWriteExt as _;

    async fn encode(coding: &str, text: &[u8]) -> Vec<u8> {
        macro_rules! with {
            ($encoder:ident) => {{
                let mut encoder = $encoder::new(Vec::new());
                encoder.write_all(text).await.unwrap();
                encoder.shutdown().await.unwrap();
                encoder.into_inner()
            }};
        }
        match coding {
            "gzip" => with!(GzipEncoder),
            "deflate" => with!(ZlibEncoder),
            "raw deflate" => with!(DeflateEncoder),
            "br" => with!(BrotliEncoder),
            _ => with!(ZstdEncoder),
        }
    }

    fn coded(coding: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_ENCODING, HeaderValue::from_static(coding))])
    }

    async fn decode(bytes: Vec<u8>, coding: &'static str, side: ErrorSide) -> Result<Bytes, GatewayError> {
        let (sender, body) = Body::channel(1, None);
        tokio::spawn(async move {
            for piece in bytes.chunks(7) {
                if sender.send(Ok(Bytes::copy_from_slice(piece))).await.is_err() {
                    return;
                }
            }
        });
        strip_coding(body, &coded(coding), side, 100, 1 << 20)?.whole().await
    }

    #[tokio::test]
    async fn all_four_codings_are_undone_from_small_pieces() {
        let text = "olá 😀 ".repeat(400);
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let bytes = encode(coding, text.as_bytes()).await;
            assert_eq!(decode(bytes, coding, ErrorSide::Upstream).await.unwrap(), text, "{coding}");
        }
    }

    #[tokio::test]
    async fn a_body_cut_short_within_its_coding_is_an_error() {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let mut bytes = encode(coding, "text ".repeat(400).as_bytes()).await;
            bytes.truncate(bytes.len() - 5);
            let error = decode(bytes, coding, ErrorSide::Upstream).await.unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::UpstreamBroken, "{coding}");
        }
    }

    #[tokio::test]
    async fn deflate_is_read_with_and_without_its_wrapping() {
        let bytes = encode("raw deflate", "text ".repeat(400).as_bytes()).await;
        assert_eq!(decode(bytes, "deflate", ErrorSide::Upstream).await.unwrap(), "text ".repeat(400));
    }

    #[tokio::test]
    async fn all_members_of_a_body_are_read() {
        for coding in ["gzip", "zstd"] {
            let members = [encode(coding, b"one, ").await, encode(coding, b"two").await].concat();
            assert_eq!(decode(members, coding, ErrorSide::Upstream).await.unwrap(), "one, two", "{coding}");
        }
    }

    #[tokio::test]
    async fn what_follows_a_coded_body_is_an_error() {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            for junk in ["j", "junk", "some more junk than that, longer than any head"] {
                let bytes = [encode(coding, b"one").await, junk.into()].concat();
                let outcome = decode(bytes, coding, ErrorSide::Upstream).await;
                assert_eq!(*outcome.unwrap_err().kind(), ErrorKind::UpstreamBroken, "{coding} {junk}");
            }
        }
    }

    #[tokio::test]
    async fn no_bytes_are_nothing_to_decode() {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            assert_eq!(decode(Vec::new(), coding, ErrorSide::Upstream).await.unwrap(), "", "{coding}");
            let empty = strip_coding(Body::empty(), &coded(coding), ErrorSide::Upstream, 100, 10).unwrap();
            assert!(empty.is_empty(), "{coding}");
        }
    }

    #[tokio::test]
    async fn none_is_how_some_upstreams_say_identity() {
        assert_eq!(decode(b"{}".to_vec(), "None", ErrorSide::Upstream).await.unwrap(), "{}");
        assert_eq!(
            *decode(b"{}".to_vec(), "none", ErrorSide::Client).await.unwrap_err().kind(),
            ErrorKind::UnsupportedMedia
        );
    }

    #[test]
    fn a_mark_is_passed_over_once_and_only_where_it_is_whole() {
        for (text, left) in [("\u{feff}{}", "{}"), ("{}", "{}"), ("\u{feff}\u{feff}", "\u{feff}"), ("", "")] {
            assert_eq!(without_mark(Bytes::from(text)), left);
        }
        assert!(
            may_be_mark(b"")
                && may_be_mark(b"\xef\xbb")
                && !may_be_mark(b"{")
                && !may_be_mark(BYTE_ORDER_MARK)
        );
    }

    #[tokio::test]
    async fn a_bomb_stops_at_the_ratio_and_is_the_senders_fault() {
        let bytes = encode("gzip", &vec![b' '; 900_000]).await;
        assert_eq!(
            *decode(bytes.clone(), "gzip", ErrorSide::Client).await.unwrap_err().kind(),
            ErrorKind::BadBody
        );
        assert_eq!(
            *decode(bytes, "gzip", ErrorSide::Upstream).await.unwrap_err().kind(),
            ErrorKind::UpstreamBroken
        );
    }

    #[test]
    fn what_cannot_be_undone_is_refused_before_it_is_read() {
        for coding in ["compress", "gzip, br", "\u{7f}"] {
            let Ok(value) = HeaderValue::from_str(coding) else { continue };
            let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, value)]);
            let error = strip_coding(Body::full("x"), &headers, ErrorSide::Client, 100, 10).unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::UnsupportedMedia, "{coding}");
        }
        assert!(strip_coding(Body::full("x"), &coded("identity"), ErrorSide::Client, 100, 10).is_ok());
    }
}
