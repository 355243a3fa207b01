//! An authenticated request as handlers see it: caller, company, path, query and body. Accessors
//! check the type of each field, so that a handler either gets a value of the documented type or
//! answers 400.

use super::Side;
use super::reasons::{Expect, Lang, Reason, Thing};
use super::reply::Failure;
use super::state::{Agent, Chat, Company, Contact, Id, State};
use http::StatusCode;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Number of entries per page of every list.
pub const PAGE: usize = 20;

/// An authenticated request.
pub struct Call<'a> {
    pub side: Side,
    pub lang: Lang,
    /// The agent that the token identifies.
    pub caller: Id,
    /// Index of the company that the request acts on.
    pub company: usize,
    /// Decoded path segments below the side and company prefix.
    pub segments: &'a [Cow<'a, str>],
    pub query: &'a str,
    pub body: &'a [u8],
}

impl Call<'_> {
    /// Returns the path segment at `index` as an id. A segment that is not a number identifies no
    /// resource, hence `None`.
    pub fn id(&self, index: usize) -> Option<Id> {
        let text = self.segments.get(index)?;
        // `parse` would accept `+7`, which is another path than `7`.
        if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
    }

    /// Returns the first value of a query parameter, decoded.
    pub fn parameter(&self, name: &str) -> Option<String> {
        parameters(self.query).find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns an integer query parameter. Fails if it is present but not an integer.
    pub fn integer_parameter(&self, name: &'static str) -> Result<Option<i64>, Failure> {
        self.parameter(name)
            .map(|text| text.parse().map_err(|_| Failure::wrong_type(name, Expect::Integer)))
            .transpose()
    }

    /// Returns the number of entries before the requested page.
    pub fn skip(&self) -> Result<usize, Failure> {
        match self.parameter("page") {
            None => Ok(0),
            Some(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
                // A page beyond the range of usize is empty, not an error.
                Ok(text.parse::<usize>().unwrap_or(usize::MAX).saturating_mul(PAGE))
            }
            Some(_) => Err(Failure::bad(Reason::PageWrong)),
        }
    }

    /// Returns the requested page of an iterator.
    pub fn page<I: Iterator>(&self, entries: I) -> Result<std::iter::Take<std::iter::Skip<I>>, Failure> {
        Ok(entries.skip(self.skip()?).take(PAGE))
    }

    /// Parses the body as an object. An empty body counts as `{}`, so that the error names a
    /// missing field.
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

    /// Returns the company that the request acts on.
    pub fn company<'s>(&self, state: &'s State) -> &'s Company {
        &state.companies[self.company]
    }

    /// Returns the calling agent.
    pub fn agent<'s>(&self, state: &'s State) -> Result<&'s Agent, Failure> {
        state.agent(self.caller).ok_or(Failure::new(StatusCode::UNAUTHORIZED, Reason::TokenWrong))
    }

    /// Returns the chat in the path: 404 if it does not exist, 423 while it is locked.
    pub fn chat<'s>(&self, state: &'s State) -> Result<&'s Chat, Failure> {
        let chat = self.id(1).and_then(|id| self.company(state).chat(id)).ok_or(Failure::no(Thing::Chat))?;
        match chat.locked {
            true => Err(Failure::new(StatusCode::LOCKED, Reason::ChatLocked)),
            false => Ok(chat),
        }
    }

    /// Returns the chat in the path, if it is open.
    pub fn open_chat<'s>(&self, state: &'s State) -> Result<&'s Chat, Failure> {
        let chat = self.chat(state)?;
        match chat.closed_at {
            Some(_) => Err(Failure::bad(Reason::ChatClosed)),
            None => Ok(chat),
        }
    }

    /// Returns the contact in the path segment at `index`.
    pub fn contact<'s>(&self, state: &'s State, index: usize) -> Result<&'s Contact, Failure> {
        self.id(index).and_then(|id| self.company(state).contact(id)).ok_or(Failure::no(Thing::Contact))
    }
}

/// Returns the decoded pairs of a query.
pub fn parameters(query: &str) -> impl Iterator<Item = (String, String)> + '_ {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (percent_decode(key), percent_decode(value))
    })
}

// `+` first: in a query of a form it means a space, while `%2B` is a literal plus.
fn percent_decode(text: &str) -> String {
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
        self.0.get(name).map(|value| read(value).ok_or(Failure::wrong_type(name, expect))).transpose()
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

    /// Returns a required id. A negative integer is returned as 0, which is never an id.
    pub fn required_id(&self, name: &'static str) -> Result<Id, Failure> {
        Ok(u64::try_from(self.required_integer(name)?).unwrap_or(0))
    }
}

/// Returns a JSON number as an integer. `7.0` is an integer, because JSON has only one number type.
/// Numbers beyond 64 bits are clamped; they identify no resource either way.
pub fn integer(value: &Value) -> Option<i64> {
    if let Some(whole) = value.as_i64() {
        return Some(whole);
    }
    value.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i64)
}
