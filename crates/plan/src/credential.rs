//! Credentials of a side: where a request carries the token, and with which scheme. The gateway's
//! `token/carried.rs` reads and writes them.

use super::TokenRequests;

/// The way in which requests to a side carry their credential.
#[derive(Clone, Debug)]
pub struct Credential {
    /// Places to read a client's token from; the first one that is present applies.
    pub read: Vec<Carrier>,
    /// Places to write a token to; at least one. Several places are always header fields, all with
    /// the same scheme.
    pub send: Vec<Carrier>,
    /// Names (lower case) and values of header fields that every call to the side carries.
    pub headers: Vec<(String, String)>,
    /// Parameters of token requests to the side's authorization server.
    pub tokens: TokenRequests,
}

impl Credential {
    /// Returns the header fields (lower case) that a token is read from, with their schemes.
    pub fn read_fields(&self) -> impl Iterator<Item = (&str, &Scheme)> {
        self.read.iter().filter_map(Carrier::header)
    }

    /// Returns the names (lower case) of header fields that a token is read from.
    pub fn read_headers(&self) -> impl Iterator<Item = &str> {
        self.read_fields().map(|(name, _)| name)
    }

    /// Returns the query parameters that a token is read from.
    pub fn read_queries(&self) -> impl Iterator<Item = &str> + Clone {
        self.read.iter().filter_map(|carrier| match carrier {
            Carrier::Query(name) => Some(name.as_str()),
            Carrier::Header { .. } | Carrier::FormField(_) => None,
        })
    }

    /// Returns the form fields that a token is read from.
    pub fn read_form_fields(&self) -> impl Iterator<Item = &str> + Clone {
        self.read.iter().filter_map(|carrier| match carrier {
            Carrier::FormField(name) => Some(name.as_str()),
            Carrier::Header { .. } | Carrier::Query(_) => None,
        })
    }

    /// Returns whether a token may be in a form, in either direction.
    pub fn uses_forms(&self) -> bool {
        self.read.iter().chain(&self.send).any(|carrier| matches!(carrier, Carrier::FormField(_)))
    }

    /// Returns all header fields (lower case) that carry a token, in either direction.
    pub fn headers_of_tokens(&self) -> impl Iterator<Item = &str> {
        self.read.iter().chain(&self.send).filter_map(Carrier::header).map(|(name, _)| name)
    }
}

/// A place in a request that carries a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A header field.
    Header {
        /// Name in lower case.
        name: String,
        /// Scheme of the token in the field.
        scheme: Scheme,
    },
    /// A query parameter, by name.
    Query(String),
    /// A field of a URL-encoded form, by name.
    FormField(String),
}

impl Carrier {
    /// Returns the name (lower case) and the scheme of a header field.
    pub fn header(&self) -> Option<(&str, &Scheme)> {
        match self {
            Carrier::Header { name, scheme } => Some((name, scheme)),
            Carrier::Query(_) | Carrier::FormField(_) => None,
        }
    }
}

/// The format of a token in a header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// After an authentication scheme, such as `Bearer` (RFC 9110, section 11.4).
    Word(String),
    /// The token alone.
    Bare,
    /// Part of Basic credentials (RFC 7617).
    Basic(BasicPart),
}

impl Scheme {
    /// Returns the authentication scheme for a `WWW-Authenticate` challenge, if any.
    pub fn name(&self) -> Option<&str> {
        match self {
            Scheme::Word(word) => Some(word),
            Scheme::Bare => None,
            Scheme::Basic(_) => Some("Basic"),
        }
    }
}

/// The part of Basic credentials that is the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BasicPart {
    /// The user; the password is empty.
    User,
    /// The password; the user is empty.
    Password,
    /// `user:password`.
    Both,
}

impl BasicPart {
    /// The names of the parts in packs.
    pub const WORDS: &[&str] = &["user", "password", "both"];

    /// Returns the part with this name.
    pub fn of_word(word: &str) -> Option<BasicPart> {
        match word {
            "user" => Some(BasicPart::User),
            "password" => Some(BasicPart::Password),
            "both" => Some(BasicPart::Both),
            _ => None,
        }
    }
}
