//! The header fields and bodies of a sampled request and of its calls, masked.

use super::sample::text_bytes;
use serde::{Deserialize, Serialize};
use switchback_engine::har;

/// The messages of a sampled request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleMessages {
    /// The request of the client.
    pub request: SampleMessage,
    /// The response to the client.
    pub response: SampleMessage,
    /// The translated calls, in the order of their starts.
    pub calls: Vec<SampledCall>,
    /// Whether the calls are those of a comparison: the client's own side answered.
    pub is_shadow: bool,
}

/// A call with its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampledCall {
    /// The method.
    pub method: String,
    /// Path and query below the upstream's base.
    pub path: String,
    /// The request, without its credential.
    pub request: SampleMessage,
    /// The status; `None` without a response.
    pub status: Option<u16>,
    /// The response; empty without one.
    pub response: SampleMessage,
}

/// Header fields and body of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleMessage {
    /// Names and values in order.
    pub headers: Vec<(String, String)>,
    /// The body; `None` if it was not recorded, because it was streamed, long, or truncated.
    pub body: Option<String>,
}

impl SampleMessages {
    /// Converts a masked exchange.
    pub(crate) fn new(masked: har::Exchange) -> SampleMessages {
        let (request, response) = (message(masked.request), answer(masked.response).1);
        let gateway = masked.gateway.unwrap_or_default();
        let calls = gateway.calls.into_iter().map(|call| {
            let (method, path) = (call.request.method.clone(), call.request.url.clone());
            let (status, response) = answer(call.response);
            SampledCall { method, path, request: message(call.request), status, response }
        });
        SampleMessages { request, response, calls: calls.collect(), is_shadow: gateway.shadow.is_some() }
    }

    /// Returns the memory of the messages in bytes, including their allocations.
    pub fn bytes(&self) -> usize {
        let call = |call: &SampledCall| {
            size_of::<SampledCall>()
                + text_bytes(&call.method)
                + text_bytes(&call.path)
                + call.request.bytes()
                + call.response.bytes()
        };
        let calls: usize = self.calls.iter().map(call).sum();
        size_of::<SampleMessages>() + self.request.bytes() + self.response.bytes() + calls
    }
}

impl SampleMessage {
    fn bytes(&self) -> usize {
        let field = |(name, value): &(String, String)| {
            size_of::<(String, String)>() + text_bytes(name) + text_bytes(value)
        };
        self.headers.iter().map(field).sum::<usize>() + self.body.as_ref().map_or(0, text_bytes)
    }
}

fn message(request: har::Request) -> SampleMessage {
    SampleMessage { headers: request.headers, body: text(&request.body) }
}

fn answer(response: Option<har::Response>) -> (Option<u16>, SampleMessage) {
    let Some(response) = response else { return (None, SampleMessage::default()) };
    (Some(response.status), SampleMessage { headers: response.headers, body: text(&response.body) })
}

fn text(body: &har::Body) -> Option<String> {
    body.bytes().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
