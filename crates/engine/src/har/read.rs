//! Reads archives. Strict about the members in use, lenient about the rest: tools differ in the
//! members that they omit, add, or set to null. An unusable entry is reported with its number and
//! does not prevent reading the others.

use super::{Body, Exchange, Gateway, Request, Response, Shadow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::io::{self, BufReader, Read};

/// The reason why a file is not an archive.
#[derive(Debug, thiserror::Error)]
pub enum HarError {
    /// Reading the file failed.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The text is not JSON, or its members have unexpected types.
    #[error("it is not an HTTP Archive: {0}")]
    Json(serde_json::Error),
    /// The document is JSON without `log.entries`.
    #[error("it has no `log.entries`; an HTTP Archive has")]
    NoEntries,
}

/// An unusable entry.
#[derive(Debug, thiserror::Error)]
#[error("entry {number}: {why}")]
pub struct Malformed {
    /// Number of the entry, counted from 1.
    pub number: usize,
    /// Description of the error, as a clause without a full stop.
    pub why: String,
}

/// Calls `each` with every entry, in the order of the file. Only one entry is in memory at a time.
/// A byte order mark is allowed.
///
/// # Errors
/// Fails if the file is not an archive or is truncated. Entries before the error have already been
/// passed to `each`.
pub fn parse(input: impl Read, mut each: impl FnMut(Result<Exchange, Malformed>)) -> Result<(), HarError> {
    let input = without_mark(BufReader::with_capacity(64 * 1024, input))?;
    let mut entries = Entries { each: &mut each, count: None };
    let mut json = serde_json::Deserializer::from_reader(input);
    let outcome = In { name: "log", inner: In { name: "entries", inner: &mut entries } }
        .deserialize(&mut json)
        .and_then(|()| json.end());
    match outcome {
        // serde_json wraps the errors of the reader.
        Err(error) if error.is_io() => Err(HarError::Io(error.into())),
        Err(error) => Err(HarError::Json(error)),
        Ok(()) if entries.count.is_none() => Err(HarError::NoEntries),
        Ok(()) => Ok(()),
    }
}

/// Skips a byte order mark, if present (HAR 1.2: tools support and ignore it).
fn without_mark(mut input: impl Read) -> io::Result<impl Read> {
    const MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];
    // Read the mark separately, because the input cannot be rewound.
    let mut first = Vec::with_capacity(MARK.len());
    input.by_ref().take(MARK.len() as u64).read_to_end(&mut first)?;
    if first == MARK {
        first.clear();
    }
    Ok(io::Cursor::new(first).chain(input))
}

/// Deserializes the member `name` of an object with `inner` and ignores all others.
struct In<S> {
    name: &'static str,
    inner: S,
}

impl<'de, S: DeserializeSeed<'de, Value = ()>> DeserializeSeed<'de> for In<S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, S: DeserializeSeed<'de, Value = ()>> Visitor<'de> for In<S> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an object with `{}`", self.name)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut inner = Some(self.inner);
        while let Some(name) = members.next_key::<String>()? {
            match inner.take_if(|_| name == self.name) {
                Some(seed) => members.next_value_seed(seed)?,
                None => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The array of entries.
struct Entries<'e, F> {
    each: &'e mut F,
    /// Number of entries so far. `None` until the array is found.
    count: Option<usize>,
}

impl<'de, F: FnMut(Result<Exchange, Malformed>)> DeserializeSeed<'de> for &mut Entries<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(Result<Exchange, Malformed>)> Visitor<'de> for &mut Entries<'_, F> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        self.count = Some(0);
        // Parse each entry into a tree first, so that a malformed entry does not fail the entire
        // array.
        while let Some(tree) = elements.next_element::<Value>()? {
            let number = self.count.map_or(1, |count| count + 1);
            self.count = Some(number);
            let entry = serde_json::from_value::<Entry>(tree)
                .map_err(|error| Malformed { number, why: error.to_string() })
                .and_then(|entry| exchange(entry).map_err(|why| Malformed { number, why: why.to_owned() }));
            (self.each)(entry);
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    started_date_time: Option<String>,
    #[serde(default)]
    time: Option<f64>,
    request: EntryRequest,
    #[serde(default)]
    response: Option<EntryResponse>,
    #[serde(default, rename = "_switchback")]
    gateway: Option<EntryGateway>,
}

#[derive(Deserialize)]
struct EntryGateway {
    #[serde(default)]
    side: String,
    #[serde(default)]
    target: String,
    #[serde(default)]
    client: String,
    #[serde(default)]
    language: usize,
    #[serde(default)]
    masked: Vec<String>,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    recalled: bool,
    #[serde(default)]
    shadow: Option<EntryShadow>,
    #[serde(default)]
    calls: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum EntryShadow {
    Answered {
        answer: EntryResponse,
        #[serde(default)]
        masked: Vec<String>,
    },
    Planned,
    Dropped(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Option<Vec<Field>>,
    #[serde(default)]
    post_data: Option<PostData>,
    #[serde(default)]
    body_size: Option<f64>,
    #[serde(default, rename = "_masked")]
    masked: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    encoding: Option<String>,
    #[serde(default)]
    params: Option<Vec<Parameter>>,
    #[serde(default, rename = "_missing")]
    missing: bool,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    #[serde(default)]
    value: Option<String>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    #[serde(default)]
    value: Option<String>,
}

#[derive(Deserialize)]
struct EntryResponse {
    /// 0 or -1 if a browser received no answer.
    #[serde(default)]
    status: Option<f64>,
    #[serde(default)]
    headers: Option<Vec<Field>>,
    #[serde(default)]
    content: Option<Content>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    size: Option<f64>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    encoding: Option<String>,
    #[serde(default, rename = "_missing")]
    missing: bool,
}

fn exchange(entry: Entry) -> Result<Exchange, &'static str> {
    if entry.request.method.is_empty() || entry.request.url.is_empty() {
        return Err("a request without method or address");
    }
    let gateway = entry.gateway.map(gateway).transpose()?;
    Ok(Exchange {
        started: entry.started_date_time.unwrap_or_default(),
        millis: entry.time.unwrap_or_default(),
        request: request(entry.request),
        response: entry.response.and_then(response),
        gateway,
    })
}

fn gateway(entry: EntryGateway) -> Result<Gateway, &'static str> {
    let EntryGateway { side, target, client, language, masked, outcome, recalled, shadow, calls } = entry;
    let calls = calls.into_iter().map(exchange).collect::<Result<_, _>>()?;
    let shadow = match shadow {
        None => None,
        Some(EntryShadow::Planned) => Some(Shadow::Planned),
        Some(EntryShadow::Dropped(why)) => Some(Shadow::Dropped(why)),
        Some(EntryShadow::Answered { answer, masked }) => {
            let answer = response(answer).ok_or("an answer of the shadow without a status")?;
            Some(Shadow::Answered { answer, masked })
        }
    };
    Ok(Gateway { side, target, client, language, masked, outcome, is_recalled: recalled, shadow, calls })
}

fn request(entry: EntryRequest) -> Request {
    let body = match entry.post_data {
        Some(data) => post_body(data),
        // Tools that omit bodies still record their size.
        None if entry.body_size.is_some_and(|size| size > 0.0) => Body::Missing,
        None => Body::None,
    };
    Request {
        method: entry.method,
        url: entry.url,
        headers: fields(entry.headers),
        body,
        masked: entry.masked,
    }
}

fn post_body(data: PostData) -> Body {
    if data.missing {
        return Body::Missing;
    }
    let text = data.text.unwrap_or_default();
    match data.params {
        // HAR 1.2 represents a form either as text or as parameters.
        Some(params) if text.is_empty() && !params.is_empty() => {
            let pairs = params
                .iter()
                .map(|p| format!("{}={}", form(&p.name), form(p.value.as_deref().unwrap_or_default())));
            Body::Whole(pairs.collect::<Vec<_>>().join("&").into())
        }
        _ => bytes(text, data.encoding.as_deref()).into(),
    }
}

fn form(text: &str) -> impl fmt::Display + '_ {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC)
}

fn response(entry: EntryResponse) -> Option<Response> {
    let status = entry.status.filter(|status| (100.0..=599.0).contains(status))? as u16;
    let body = match entry.content {
        None => Body::None,
        Some(content) if content.missing => Body::Missing,
        Some(Content { text: Some(text), encoding, .. }) => bytes(text, encoding.as_deref()).into(),
        // Browsers omit the text when they save an archive without contents.
        Some(content) if content.size.is_some_and(|size| size > 0.0) => Body::Missing,
        Some(_) => Body::None,
    };
    Some(Response { status, headers: fields(entry.headers), body })
}

fn bytes(text: String, encoding: Option<&str>) -> Bytes {
    if encoding.is_some_and(|name| name.eq_ignore_ascii_case("base64")) {
        // Some versions of Firefox declare base64 for plain text.
        if let Ok(bytes) = STANDARD.decode(text.trim()) {
            return bytes.into();
        }
    }
    text.into_bytes().into()
}

fn fields(fields: Option<Vec<Field>>) -> Vec<(String, String)> {
    let fields = fields.unwrap_or_default().into_iter();
    fields.map(|field| (field.name, field.value.unwrap_or_default())).collect()
}
