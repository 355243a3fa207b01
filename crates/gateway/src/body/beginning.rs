//! Buffers short bodies completely before they are forwarded; longer ones stream.

use super::Body;
use crate::error::GatewayError;
use bytes::{Bytes, BytesMut};
use http_body::Frame;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The result of reading the start of a body.
pub(crate) enum BodyStart {
    /// The complete body.
    Whole(Bytes),
    /// A body beyond the limit, restored to its original content.
    Longer(Body),
}

impl Body {
    /// Buffers a body of at most `bytes_max` bytes. Reading stops with the chunk that exceeds the
    /// limit. Read errors are returned.
    pub(crate) async fn beginning(mut self, bytes_max: u64) -> Result<BodyStart, GatewayError> {
        if self.length().is_some_and(|length| length > bytes_max) {
            return Ok(BodyStart::Longer(self));
        }
        let side = self.side;
        let (mut chunks, mut length) = (VecDeque::new(), 0);
        while let Some(chunk) = self.chunk().await.transpose()? {
            if chunk.is_empty() {
                continue;
            }
            length += chunk.len() as u64;
            chunks.push_back(chunk);
            if length > bytes_max {
                return Ok(BodyStart::Longer(Body::stream(Rejoined { chunks, rest: self }, side)));
            }
        }
        Ok(BodyStart::Whole(match chunks.len() {
            0 | 1 => chunks.pop_front().unwrap_or_default(),
            _ => chunks.iter().fold(BytesMut::with_capacity(length as usize), join).freeze(),
        }))
    }
}

fn join(mut whole: BytesMut, chunk: &Bytes) -> BytesMut {
    whole.extend_from_slice(chunk);
    whole
}

/// A body that replays the chunks already read, then continues with the rest.
struct Rejoined {
    chunks: VecDeque<Bytes>,
    rest: Body,
}

impl http_body::Body for Rejoined {
    type Data = Bytes;
    type Error = GatewayError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        match self.chunks.pop_front() {
            Some(chunk) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorSide;
    use proptest::prelude::*;

    struct Chunks(VecDeque<Bytes>);

    impl http_body::Body for Chunks {
        type Data = Bytes;
        type Error = GatewayError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
            Poll::Ready(self.0.pop_front().map(|chunk| Ok(Frame::data(chunk))))
        }
    }

    proptest! {
        #[test]
        fn nothing_of_a_body_is_lost_however_it_comes(
            chunks in prop::collection::vec("[a-z]{0,6}", 0..8),
            bytes_max in 0..24_u64,
        ) {
            let all = chunks.concat();
            let body = Chunks(chunks.into_iter().map(Bytes::from).collect());
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let read = runtime.block_on(async {
                match Body::stream(body, ErrorSide::Client).beginning(bytes_max).await.unwrap() {
                    BodyStart::Whole(bytes) => (true, bytes.to_vec()),
                    BodyStart::Longer(mut body) => {
                        let mut bytes = Vec::new();
                        while let Some(chunk) = body.chunk().await {
                            bytes.extend_from_slice(&chunk.unwrap());
                        }
                        (false, bytes)
                    }
                }
            });
            prop_assert_eq!(read, (all.len() as u64 <= bytes_max, all.into_bytes()));
        }
    }
}
