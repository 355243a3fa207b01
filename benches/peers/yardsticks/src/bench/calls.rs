//! The calls to the peers. Each exists in both versions, because peers that forward bytes get the
//! new one.

use super::peers::{Peer, Running};
use crate::bodies::VARIED;
use crate::fixture::{ACCESS_TOKEN, CLIENT_TOKEN, VARIED_FROM};
use clap::ValueEnum;

/// A measured call.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Call {
    /// 20 messages, 16 KB
    List,
    /// One chat
    Single,
    /// A message to send; the old version answers 201 without a body
    Send,
    /// Lists of 1 to 200 messages with varying members, in rotation
    Varied,
    /// A list of 1 MB
    #[value(name = "list-1mb")]
    List1Mb,
    /// A list of 10 MB
    #[value(name = "list-10mb")]
    List10Mb,
    /// A list of 100 MB
    #[value(name = "list-100mb")]
    List100Mb,
}

const SENT: &str = r#"{"text":"Olá! O seu pedido saiu hoje 🚚 e chega amanhã de manhã.","isInternal":false}"#;

impl Call {
    /// Returns its name in the tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::List => "20 messages, 16 KB",
            Self::Single => "one chat",
            Self::Send => "send a message",
            Self::Varied => "1 to 200 messages that vary",
            Self::List1Mb => "messages, 1 MB",
            Self::List10Mb => "messages, 10 MB",
            Self::List100Mb => "messages, 100 MB",
        }
    }

    /// Returns whether the answer fits into the caches many times, so that requests per second are
    /// the best unit.
    pub const fn is_small(self) -> bool {
        matches!(self, Self::List | Self::Single | Self::Send | Self::Varied)
    }

    /// Returns how often a large answer is fetched in one round.
    pub fn large_count(self) -> u64 {
        match self {
            Self::List10Mb => 12,
            Self::List100Mb => 2,
            _ => 100,
        }
    }

    /// Returns the body of the request, which is the same in both versions.
    pub fn body(self) -> &'static str {
        if self == Self::Send { SENT } else { "" }
    }

    /// Returns the status for a client of this peer.
    pub fn status(self, peer: Peer) -> u16 {
        if self == Self::Send && peer.translates() { 201 } else { 200 }
    }

    /// Returns the bytes to send to a peer, usually the same for each request.
    pub fn requests(self, running: &Running) -> Vec<Vec<u8>> {
        self.paths().iter().map(|path| call_of(path, self.body(), running)).collect()
    }

    fn paths(self) -> Vec<String> {
        let path = match self {
            Self::List | Self::Send => "/chats/481/messages",
            Self::Single => "/chats/481",
            Self::Varied => {
                return (0..VARIED).map(|at| format!("/chats/{}/messages", VARIED_FROM + at)).collect();
            }
            Self::List1Mb => "/chats/1000000/messages",
            Self::List10Mb => "/chats/10000000/messages",
            Self::List100Mb => "/chats/100000000/messages",
        };
        vec![path.to_owned()]
    }
}

/// Returns a request for a path below the version; a POST if there is a body.
pub fn call_of(path: &str, body: &str, running: &Running) -> Vec<u8> {
    call_with(path, body, running, CLIENT_TOKEN)
}

/// Returns the request, with the token of a client if the peer translates.
pub fn call_with(path: &str, body: &str, running: &Running, client_token: &str) -> Vec<u8> {
    let (version, credential) = if running.peer.translates() {
        ("v2", format!("x-authorization: Bearer {client_token}"))
    } else {
        ("v3", format!("authorization: Bearer {ACCESS_TOKEN}"))
    };
    let (method, content) = if body.is_empty() {
        ("GET", String::new())
    } else {
        ("POST", format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()))
    };
    let address = running.target.address;
    format!(
        "{method} /{version}{path} HTTP/1.1\r\nhost: {address}\r\nuser-agent: yardsticks\r\naccept: application/json\r\n{credential}\r\n{content}\r\n{body}"
    )
    .into_bytes()
}
