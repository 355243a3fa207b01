//! HTTP Archives (HAR 1.2): recorded exchanges in the format of browsers, proxies and other tools.
//! Reading accepts the archives of these tools, one entry at a time; writing produces files that
//! they open.
//!
//! For an exchange that the gateway recorded, the archive also contains the upstream calls, in a
//! field of the gateway's own: HAR reserves names with a leading `_` for that purpose. This file
//! defines the model; `read` and `write` convert it. Recording (the gateway's `capture`), masking
//! (`redact`) and running exchanges again (`replay`) live elsewhere.
//!
//! Source: the HAR 1.2 specification (`har-spec`, versions/1.2).

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{HarError, Malformed, parse};
pub use write::{Writer, left_out};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

/// A request and its answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exchange {
    /// Start time in ISO 8601; empty if unknown.
    pub started: String,
    /// Milliseconds from the first byte of the request to the last byte of the answer.
    pub millis: f64,
    /// The request.
    pub request: Request,
    /// The answer. `None` if there was no answer or the recording tool missed it.
    pub response: Option<Response>,
    /// Data that only a gateway records.
    pub gateway: Option<Gateway>,
}

impl Exchange {
    /// Returns the total size of the bodies in bytes, with those of calls and of the shadow's answer.
    pub fn body_bytes(&self) -> usize {
        let body = |body: &Body| if let Body::Whole(bytes) = body { bytes.len() } else { 0 };
        let answer = self.response.as_ref().map_or(0, |response| body(&response.body));
        let gateway = self.gateway.as_ref();
        let shadow = gateway.map_or(0, |known| match &known.shadow {
            Some(Shadow::Answered { answer, .. }) => body(&answer.body),
            _ => 0,
        });
        let calls = gateway.iter().flat_map(|known| &known.calls).map(Exchange::body_bytes).sum::<usize>();
        body(&self.request.body) + answer + shadow + calls
    }
}

/// Data about an exchange that only a gateway records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gateway {
    /// The side that the client used.
    pub side: String,
    /// Path and query below the base path of the front.
    pub target: String,
    /// Name of the enrolled client; empty if unknown.
    pub client: String,
    /// Index of the client's language in the pack's list.
    pub language: usize,
    /// Places of the answer's body whose values (numbers, booleans, times) are replaced because
    /// they must not be stored, with `*` for every index. A masked text is recognizable; these are
    /// not.
    pub masked: Vec<String>,
    /// The outcome, as in the gateway's log; empty if unknown.
    pub outcome: String,
    /// Whether the plan read from the gateway's archive. Recordings do not contain that data.
    pub is_recalled: bool,
    /// The shadow's result for a request that the legacy service answered.
    pub shadow: Option<Shadow>,
    /// The upstream calls in order; with `shadow`, those of the shadow. Their own `gateway` is
    /// `None`.
    pub calls: Vec<Exchange>,
}

/// The extent to which the shadow followed the plan of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Shadow {
    /// The shadow obtained an answer.
    Answered {
        /// The answer that the client would have received.
        answer: Response,
        /// Places of the body whose values are replaced, as in [`Gateway::masked`].
        masked: Vec<String>,
    },
    /// The plan of a write was followed without sending its writing calls. These are recorded
    /// without a response.
    Planned,
    /// The comparison was skipped, for this reason.
    Dropped(String),
}

/// A recorded request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The method as sent, in upper case.
    pub method: String,
    /// Absolute URL for requests of clients; path and query for calls of the gateway.
    pub url: String,
    /// Header fields in order, with the original spelling of their names.
    pub headers: Vec<(String, String)>,
    /// The body after decoding of content codings, even if the headers still list them.
    pub body: Body,
    /// For calls of the gateway: places of the body whose values are replaced, as in
    /// [`Gateway::masked`].
    pub masked: Vec<String>,
}

/// A recorded answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Header fields in order, with the original spelling of their names.
    pub headers: Vec<(String, String)>,
    /// The body after decoding of content codings, even if the headers still list them.
    pub body: Body,
}

/// The body of a recorded message.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Body {
    /// No body.
    #[default]
    None,
    /// The complete body, which may be empty.
    Whole(Bytes),
    /// A body that was not recorded, or not completely.
    Missing,
}

impl Body {
    /// Returns the bytes, or `None` if the body is missing.
    pub fn bytes(&self) -> Option<Bytes> {
        match self {
            Body::None => Some(Bytes::new()),
            Body::Whole(bytes) => Some(bytes.clone()),
            Body::Missing => None,
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        if bytes.is_empty() { Body::None } else { Body::Whole(bytes) }
    }
}

/// Returns recorded header fields as a map. Omits HTTP/2 pseudo-headers, which browsers list, and
/// headers about the bytes on the wire, because archives contain decoded bodies.
pub fn header_map(headers: &[(String, String)]) -> HeaderMap {
    const OF_THE_WIRE: [&str; 4] = ["content-encoding", "content-length", "transfer-encoding", "connection"];
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value))
            && !OF_THE_WIRE.contains(&name.as_str())
        {
            map.append(name, value);
        }
    }
    map
}
