//! One authenticated request as handlers see it: who calls, on which company, with which path, query and body. Reading a
//! field checks its type, so that a handler either has a value of the documented type or has answered 400.

use super::Side;
use super::reasons::{Expect, Lang, Reason, Thing};
use super::reply::Failure;
use super::state::{Agent, Chat, Company, Contact, Id, State};
use http::StatusCode;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// How many entries a page of any list has.
pub const PAGE: usize = 20;

/// An authenticated request.
pub struct Call<'a> {
    pub side: Side,
    pub lang: Lang,
    /// The agent that the token stands for.
    pub caller: Id,
    /// Index of the company acted on.
    pub company: usize,
    /// Decoded path segments below the side and company prefix.
    pub segments: &'a [Cow<'a, str>],
    pub query: &'a str,
    pub body: &'a [u8],
}

impl Call<'_> {
    /// The path segment at `index` as an id. A segment that is no number names nothing, hence `None`.
    pub fn id(&self, index: usize) -> Option<Id> {
        let text = self.segments.get(index)?;
        if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
    }

    /// The first value of a query parameter, decoded.
    pub fn parameter(&self, name: &str) -> Option<String> {
        parameters(self.query).find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// A query parameter that must be an integer where it is given.
    pub fn integer_parameter(&self, name: &'static str) -> Result<Option<i64>, Failure> {
        self.parameter(name)
            .map(|text| text.parse().map_err(|_| Failure::mistyped(name, Expect::Integer)))
            .transpose()
    }

    /// How many entries to skip for the wanted page.
    pub fn skip(&self) -> Result<usize, Failure> {
        match self.parameter("page") {
            None => Ok(0),
            Some(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
                Ok(text.parse::<usize>().unwrap_or(usize::MAX).saturating_mul(PAGE))
            }
            Some(_) => Err(Failure::bad(Reason::PageWrong)),
        }
    }

    /// The wanted page of something that can be walked.
    pub fn page<I: Iterator>(&self, entries: I) -> Result<std::iter::Take<std::iter::Skip<I>>, Failure> {
        Ok(entries.skip(self.skip()?).take(PAGE))
    }

    /// The body as an object; nothing at all counts as `{}`, so that a required field is then named as missing.
    pub fn fields(&self) -> Result<Fields, Failure> {
        if self.body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Fields(Map::new()));
        }
        match serde_json::from_slice(self.body) {
            Ok(Value::Object(map)) => Ok(Fields(map)),
            Ok(_) => Err(Failure::bad(Reason::BodyNotObject)),
            Err(_) => Err(Failure::bad(Reason::BodyMalformed)),
        }
    }

    /// The company acted on.
    pub fn company<'s>(&self, state: &'s State) -> &'s Company {
        &state.companies[self.company]
    }

    /// The agent who calls.
    pub fn agent<'s>(&self, state: &'s State) -> Result<&'s Agent, Failure> {
        state.agent(self.caller).ok_or(Failure::new(StatusCode::UNAUTHORIZED, Reason::TokenWrong))
    }

    /// The chat that the path names: 404 where there is none, 423 while it is locked.
    pub fn chat<'s>(&self, state: &'s State) -> Result<&'s Chat, Failure> {
        let chat = self.id(1).and_then(|id| self.company(state).chat(id)).ok_or(Failure::no(Thing::Chat))?;
        match chat.locked {
            true => Err(Failure::new(StatusCode::LOCKED, Reason::ChatLocked)),
            false => Ok(chat),
        }
    }

    /// The same, where only an open chat will do.
    pub fn open_chat<'s>(&self, state: &'s State) -> Result<&'s Chat, Failure> {
        let chat = self.chat(state)?;
        match chat.closed_at {
            Some(_) => Err(Failure::bad(Reason::ChatClosed)),
            None => Ok(chat),
        }
    }

    /// The contact that the path names at `index`.
    pub fn contact<'s>(&self, state: &'s State, index: usize) -> Result<&'s Contact, Failure> {
        self.id(index).and_then(|id| self.company(state).contact(id)).ok_or(Failure::no(Thing::Contact))
    }
}

/// The pairs of a query, decoded.
pub fn parameters(query: &str) -> impl Iterator<Item = (String, String)> + '_ {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(key), decoded(value))
    })
}

fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// The members of a request body.
pub struct Fields(pub Map<String, Value>);

impl Fields {
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn optional<'a, T>(
        &'a self,
        name: &'static str,
        expect: Expect,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        self.0.get(name).map(|value| read(value).ok_or(Failure::mistyped(name, expect))).transpose()
    }

    pub fn text(&self, name: &'static str) -> Result<Option<&str>, Failure> {
        self.optional(name, Expect::String, Value::as_str)
    }

    pub fn integer(&self, name: &'static str) -> Result<Option<i64>, Failure> {
        self.optional(name, Expect::Integer, integer)
    }

    pub fn boolean(&self, name: &'static str) -> Result<Option<bool>, Failure> {
        self.optional(name, Expect::Boolean, Value::as_bool)
    }

    pub fn object(&self, name: &'static str) -> Result<Option<&Map<String, Value>>, Failure> {
        self.optional(name, Expect::Object, Value::as_object)
    }

    pub fn array(&self, name: &'static str) -> Result<Option<&Vec<Value>>, Failure> {
        self.optional(name, Expect::Array, Value::as_array)
    }

    pub fn required_text(&self, name: &'static str) -> Result<&str, Failure> {
        self.text(name)?.ok_or(Failure::bad(Reason::Missing(name)))
    }

    pub fn required_integer(&self, name: &'static str) -> Result<i64, Failure> {
        self.integer(name)?.ok_or(Failure::bad(Reason::Missing(name)))
    }

    /// A required integer that is to name something; a negative one names nothing and comes back as 0, which is no id.
    pub fn required_id(&self, name: &'static str) -> Result<Id, Failure> {
        Ok(u64::try_from(self.required_integer(name)?).unwrap_or(0))
    }
}

/// JSON's only number type makes `7.0` an integer too; anything beyond 64 bits is taken as the nearest that fits, since it
/// names nothing either way.
pub fn integer(value: &Value) -> Option<i64> {
    if let Some(whole) = value.as_i64() {
        return Some(whole);
    }
    value.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i64)
}
