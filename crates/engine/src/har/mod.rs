//! HTTP Archives (HAR 1.2): recorded exchanges as people keep and pass them on. Reading takes what browsers, proxies and
//! other tools write, one entry at a time; writing makes files that those tools open.
//!
//! An exchange that the gateway recorded carries the calls it made as well, in a field of the gateway's own: HAR reserves
//! names that begin with `_` for that. What an exchange holds is here; how it is written and read, in `write` and `read`. What
//! lives elsewhere: recording exchanges (the gateway's `capture`), what of them is masked (`redact`), running them again
//! (`replay`).
//!
//! Source: the HAR 1.2 specification (`har-spec`, versions/1.2).

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{HarError, Malformed, read};
pub use write::{Writer, left_out};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

/// One request and what came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exchange {
    /// When it began, as ISO 8601; empty = not known.
    pub started: String,
    /// Milliseconds from its first byte to the last of the answer.
    pub millis: f64,
    /// What was asked for.
    pub request: Request,
    /// None = there was no answer, or the tool that recorded it saw none.
    pub response: Option<Response>,
    /// What only a gateway knows of it.
    pub gateway: Option<Gateway>,
}

/// What a gateway knows of an exchange besides the exchange.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gateway {
    /// The side that the client spoke.
    pub side: String,
    /// Path and query below the front, where the operation begins.
    pub target: String,
    /// The client's enrolled name; empty = not known.
    pub client: String,
    /// Index of the client's language among the pack's.
    pub language: usize,
    /// Places of the answer's body whose values (numbers, booleans, moments) stand for others that must not be kept, with `*`
    /// for every index: a masked text can be seen, these cannot.
    pub masked: Vec<String>,
    /// What became of the request, as the gateway's log says it; empty = not known.
    pub outcome: String,
    /// Whether the plan read something from an archive of the gateway, which no recording holds.
    pub is_recalled: bool,
    /// What the shadow made of a request that its own service answered.
    pub shadow: Option<Shadow>,
    /// The calls made to the other side, in their order; the shadow's, where `shadow` is there. Their own `gateway` is none.
    pub calls: Vec<Exchange>,
}

/// How far the shadow followed the plan of a request that another service answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Shadow {
    /// It came to an answer. `masked`: as in [`Gateway::masked`], of this answer.
    Answered {
        /// What the client would have been answered.
        answer: Response,
        /// Places of the body whose values stand for others.
        masked: Vec<String>,
    },
    /// The plan of a write was followed as far as it can be without writing. Calls with an effect are among the calls, without
    /// a response: nobody made them.
    Planned,
    /// It came to neither, for this reason.
    Dropped(String),
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// In upper case, as it was sent.
    pub method: String,
    /// Absolute for exchanges of clients, from the path on for calls of the gateway.
    pub url: String,
    /// In the order in which they came, names as they were written.
    pub headers: Vec<(String, String)>,
    /// Without its content coding, whatever the headers say of it.
    pub body: Body,
    /// Of calls of the gateway: places of the body whose values stand for others, as in [`Gateway::masked`].
    pub masked: Vec<String>,
}

/// What was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// The status of the answer.
    pub status: u16,
    /// In the order in which they came, names as they were written.
    pub headers: Vec<(String, String)>,
    /// Without its content coding, whatever the headers say of it.
    pub body: Body,
}

/// The bytes of a recorded message.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Body {
    /// There were none.
    #[default]
    None,
    /// All of them, in which there may be none.
    Whole(Bytes),
    /// There were some that were not kept, or not all of them.
    Missing,
}

impl Body {
    /// The bytes, where they are known; none for a body that is missing.
    pub fn known(&self) -> Option<Bytes> {
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

/// Recorded header fields as a map. Left out: what is no field (HTTP/2 pseudo-headers, which browsers list among them),
/// and what describes the bytes on the wire, which the archive does not hold: archives hold decoded bodies.
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
