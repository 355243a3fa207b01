//! How a side carries tokens: where in a request, and after which scheme. What is done with that stands in the gateway's
//! `token/carried.rs`.

use super::TokenRequests;

/// How a side carries its credential.
#[derive(Clone, Debug)]
pub struct Credential {
    /// Where a client's token is read from; the first that is there wins.
    pub read: Vec<Carrier>,
    /// Where a token is sent, one at least. Several are header fields that all carry it after the same scheme.
    pub send: Vec<Carrier>,
    /// Headers (lower case) that every call to the side carries, and their values.
    pub headers: Vec<(String, String)>,
    /// How its authorization server wants to be asked for tokens.
    pub tokens: TokenRequests,
}

impl Credential {
    /// The headers (lower case) that a token is read from, and the scheme before it in each.
    pub fn read_fields(&self) -> impl Iterator<Item = (&str, &Scheme)> {
        self.read.iter().filter_map(Carrier::header)
    }

    /// The headers (lower case) that a token is read from.
    pub fn read_headers(&self) -> impl Iterator<Item = &str> {
        self.read_fields().map(|(name, _)| name)
    }

    /// The query parameters that a token is read from.
    pub fn read_queries(&self) -> impl Iterator<Item = &str> + Clone {
        self.read.iter().filter_map(|carrier| match carrier {
            Carrier::Query(name) => Some(name.as_str()),
            Carrier::Header { .. } | Carrier::FormField(_) => None,
        })
    }

    /// The fields of forms that a token is read from.
    pub fn read_form_fields(&self) -> impl Iterator<Item = &str> + Clone {
        self.read.iter().filter_map(|carrier| match carrier {
            Carrier::FormField(name) => Some(name.as_str()),
            Carrier::Header { .. } | Carrier::Query(_) => None,
        })
    }

    /// Whether a token may stand in a form, read or sent.
    pub fn uses_forms(&self) -> bool {
        self.read.iter().chain(&self.send).any(|carrier| matches!(carrier, Carrier::FormField(_)))
    }

    /// All headers (lower case) that carry a token, one way or the other.
    pub fn headers_of_tokens(&self) -> impl Iterator<Item = &str> {
        self.read.iter().chain(&self.send).filter_map(Carrier::header).map(|(name, _)| name)
    }
}

/// A place of a request that carries a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A header field.
    Header {
        /// In lower case.
        name: String,
        /// What stands before the token in the field.
        scheme: Scheme,
    },
    /// A query parameter, by its name.
    Query(String),
    /// A field of an urlencoded form, by its name.
    FormField(String),
}

impl Carrier {
    /// Name (lower case) and scheme of the header, where it is one.
    pub fn header(&self) -> Option<(&str, &Scheme)> {
        match self {
            Carrier::Header { name, scheme } => Some((name, scheme)),
            Carrier::Query(_) | Carrier::FormField(_) => None,
        }
    }
}

/// How a token stands in its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// After a word, such as `Bearer` (RFC 9110, section 11.4).
    Word(String),
    /// Alone.
    Bare,
    /// In Basic (RFC 7617).
    Basic(BasicPart),
}

impl Scheme {
    /// The scheme as a challenge names it, where it has one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Scheme::Word(word) => Some(word),
            Scheme::Bare => None,
            Scheme::Basic(_) => Some("Basic"),
        }
    }
}

/// What of user and password is the token.
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
    /// The words of packs for them.
    pub const WORDS: &[&str] = &["user", "password", "both"];

    /// The part that a word of a pack names; none for another word.
    pub fn of_word(word: &str) -> Option<BasicPart> {
        match word {
            "user" => Some(BasicPart::User),
            "password" => Some(BasicPart::Password),
            "both" => Some(BasicPart::Both),
            _ => None,
        }
    }
}
