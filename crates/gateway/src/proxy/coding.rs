//! Content codings: bodies that come coded are decoded before they are translated, within a limit on how much larger they
//! may become. Translated messages go out as they are (`identity`): upstreams are asked for that, and clients get it.

use crate::body::Body;
use crate::error::{GatewayError, Kind, Side};
use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use bytes::{Buf as _, Bytes};
use http::{HeaderMap, header};
use http_body::Frame;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncBufRead, AsyncRead, ReadBuf};

/// Bytes decoded at a time.
const PIECE_BYTES: usize = 16 * 1024;

/// Below this many decoded bytes the ratio is not judged: short texts may well be of one letter.
const RATIO_GRACE_BYTES: u64 = 32 * 1024;

/// The codings applied to a body, in the order they were applied.
fn codings(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all(header::CONTENT_ENCODING).iter();
    lines
        .flat_map(|line| line.to_str().unwrap_or("?").split(','))
        .map(|coding| coding.trim().to_ascii_lowercase())
        .filter(|coding| !coding.is_empty() && coding != "identity")
        .collect()
}

/// The body without its content coding. `side` is who sent it. More than one coding, or one that is not known, is an
/// error of the sender.
pub fn decoded(
    body: Body,
    headers: &HeaderMap,
    side: Side,
    ratio_max: u64,
    bytes_max: u64,
) -> Result<Body, GatewayError> {
    let codings = codings(headers);
    let coding = match codings.as_slice() {
        [] => return Ok(body),
        [one] => one.as_str(),
        _ => return Err(unsupported(side, "more than one content coding")),
    };
    let came = Arc::new(AtomicU64::new(0));
    let source = Source { body, chunk: Bytes::new(), came: Arc::clone(&came) };
    let reader: Pin<Box<dyn AsyncRead + Send>> = match coding {
        "gzip" | "x-gzip" => Box::pin(GzipDecoder::new(source)),
        "deflate" => Box::pin(ZlibDecoder::new(source)),
        "br" => Box::pin(BrotliDecoder::new(source)),
        "zstd" => Box::pin(ZstdDecoder::new(source)),
        _ => return Err(unsupported(side, "an unknown content coding")),
    };
    Ok(Body::stream(Decoded { reader, came, made: 0, ratio_max, side }, side).limited(bytes_max))
}

fn unsupported(side: Side, detail: &str) -> GatewayError {
    let kind = if side == Side::Client { Kind::UnsupportedMedia } else { Kind::UpstreamBroken };
    GatewayError::new(kind, detail)
}

/// A body as the decoders read it.
struct Source {
    body: Body,
    chunk: Bytes,
    came: Arc<AtomicU64>,
}

impl AsyncBufRead for Source {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        while this.chunk.is_empty() {
            match ready!(http_body::Body::poll_frame(Pin::new(&mut this.body), cx)) {
                None => break,
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                Some(Ok(frame)) => this.chunk = frame.into_data().unwrap_or_default(),
            }
        }
        Poll::Ready(Ok(&this.chunk))
    }

    fn consume(mut self: Pin<&mut Self>, count: usize) {
        self.chunk.advance(count);
        // What the decoder has used, not what has come: a bomb comes whole in one small frame.
        self.came.fetch_add(count as u64, Relaxed);
    }
}

impl AsyncRead for Source {
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

/// What comes out of a decoder.
struct Decoded {
    reader: Pin<Box<dyn AsyncRead + Send>>,
    came: Arc<AtomicU64>,
    made: u64,
    ratio_max: u64,
    side: Side,
}

impl Decoded {
    fn fault(&self, error: io::Error) -> GatewayError {
        match error.downcast::<GatewayError>() {
            Ok(error) => error,
            Err(error) => self.broken("a body does not keep to its content coding").because(error),
        }
    }

    fn broken(&self, detail: &str) -> GatewayError {
        let kind = if self.side == Side::Client { Kind::BadBody } else { Kind::UpstreamBroken };
        GatewayError::new(kind, detail)
    }
}

impl http_body::Body for Decoded {
    type Data = Bytes;
    type Error = GatewayError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        let this = self.get_mut();
        let mut piece = vec![0; PIECE_BYTES];
        let mut space = ReadBuf::new(&mut piece);
        if let Err(error) = ready!(this.reader.as_mut().poll_read(cx, &mut space)) {
            return Poll::Ready(Some(Err(this.fault(error))));
        }
        let count = space.filled().len();
        if count == 0 {
            return Poll::Ready(None);
        }
        this.made += count as u64;
        if this.made > RATIO_GRACE_BYTES && this.made / this.ratio_max.max(1) > this.came.load(Relaxed) {
            return Poll::Ready(Some(Err(this.broken("a body grows beyond its limit when decoded"))));
        }
        piece.truncate(count);
        Poll::Ready(Some(Ok(Frame::data(piece.into()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_compression::tokio::write::{BrotliEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
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
            "br" => with!(BrotliEncoder),
            _ => with!(ZstdEncoder),
        }
    }

    fn coded(coding: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_ENCODING, HeaderValue::from_static(coding))])
    }

    async fn decode(bytes: Vec<u8>, coding: &'static str, side: Side) -> Result<Bytes, GatewayError> {
        let (sender, body) = Body::channel(1, None);
        tokio::spawn(async move {
            for piece in bytes.chunks(7) {
                if sender.send(Ok(Bytes::copy_from_slice(piece))).await.is_err() {
                    return;
                }
            }
        });
        decoded(body, &coded(coding), side, 100, 1 << 20)?.collect(1 << 20).await
    }

    #[tokio::test]
    async fn all_four_codings_are_undone_from_small_pieces() {
        let text = "olá 😀 ".repeat(400);
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let bytes = encode(coding, text.as_bytes()).await;
            assert_eq!(decode(bytes, coding, Side::Upstream).await.unwrap(), text, "{coding}");
        }
    }

    #[tokio::test]
    async fn a_body_cut_short_within_its_coding_is_an_error() {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let mut bytes = encode(coding, "text ".repeat(400).as_bytes()).await;
            bytes.truncate(bytes.len() - 5);
            let error = decode(bytes, coding, Side::Upstream).await.unwrap_err();
            assert_eq!(*error.kind(), Kind::UpstreamBroken, "{coding}");
        }
    }

    #[tokio::test]
    async fn a_bomb_stops_at_the_ratio_and_is_the_senders_fault() {
        let bytes = encode("gzip", &vec![b' '; 900_000]).await;
        assert_eq!(*decode(bytes.clone(), "gzip", Side::Client).await.unwrap_err().kind(), Kind::BadBody);
        assert_eq!(*decode(bytes, "gzip", Side::Upstream).await.unwrap_err().kind(), Kind::UpstreamBroken);
    }

    #[test]
    fn what_cannot_be_undone_is_refused_before_it_is_read() {
        for coding in ["compress", "gzip, br", "\u{7f}"] {
            let Ok(value) = HeaderValue::from_str(coding) else { continue };
            let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, value)]);
            let error = decoded(Body::full("x"), &headers, Side::Client, 100, 10).unwrap_err();
            assert_eq!(*error.kind(), Kind::UnsupportedMedia, "{coding}");
        }
        assert!(decoded(Body::full("x"), &coded("identity"), Side::Client, 100, 10).is_ok());
    }
}
