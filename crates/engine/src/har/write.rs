//! Writes archives with one entry per line, so that a long recording needs no memory and works with
//! line tools. The comma precedes its entry: each line is then complete as soon as it is written,
//! and a reader need not wait for the next one.

use super::{Body, Exchange, Gateway, Request, Response, Shadow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// A writer of one archive. Without [`Writer::finish`], the file is truncated and not a valid
/// archive.
pub struct Writer<W> {
    out: W,
    is_first: bool,
}

impl<W: Write> Writer<W> {
    /// Writes the start of an archive.
    pub fn new(mut out: W) -> io::Result<Writer<W>> {
        let creator = json!({"name": "Switchback", "version": env!("CARGO_PKG_VERSION")});
        writeln!(out, "{{\"log\":{{\"version\":\"1.2\",\"creator\":{creator},\"pages\":[],\"entries\":[")?;
        Ok(Writer { out, is_first: true })
    }

    /// Adds an entry. The caller must have redacted it.
    pub fn entry(&mut self, exchange: &Exchange) -> io::Result<()> {
        let separator = if self.is_first { "" } else { "," };
        self.is_first = false;
        writeln!(self.out, "{separator}{}", entry(exchange))
    }

    /// Completes the archive, flushes it and returns the underlying writer.
    pub fn finish(self) -> io::Result<W> {
        self.finish_without(0)
    }

    /// Completes an archive from which `left_out` exchanges are missing for lack of space.
    pub fn finish_without(mut self, left_out: u64) -> io::Result<W> {
        match left_out {
            0 => writeln!(self.out, "]}}}}")?,
            left_out => writeln!(self.out, "],\"{LEFT_OUT}\":{left_out}}}}}")?,
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// The member of `log` with the number of exchanges that are missing from the archive.
const LEFT_OUT: &str = "_left_out";

/// Returns the number of missing exchanges from the last line of an archive.
pub fn left_out(end: &str) -> u64 {
    let number = end.split_once(LEFT_OUT).map(|(_, rest)| rest.trim_matches(['"', ':', '}', '\n']));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

impl Writer<Vec<u8>> {
    /// Returns the bytes written since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

fn entry(exchange: &Exchange) -> Value {
    let mut written = json!({
        "startedDateTime": exchange.started,
        "time": exchange.millis,
        "request": request(&exchange.request),
        "response": response(exchange.response.as_ref()),
        "cache": {},
        "timings": {"send": 0, "wait": exchange.millis, "receive": 0},
    });
    if let Some(known) = &exchange.gateway {
        let Gateway { side, target, client, language, masked, outcome, is_recalled, shadow, calls } = known;
        let shadow = shadow.as_ref().map(|shadow| match shadow {
            Shadow::Answered { answer, masked } => {
                json!({ "answered": { "answer": response(Some(answer)), "masked": masked } })
            }
            Shadow::Planned => json!("planned"),
            Shadow::Dropped(why) => json!({ "dropped": why }),
        });
        let calls: Vec<Value> = calls.iter().map(entry).collect();
        written["_switchback"] = json!({
            "side": side,
            "target": target,
            "client": client,
            "language": language,
            "masked": masked,
            "outcome": outcome,
            "recalled": is_recalled,
            "shadow": shadow,
            "calls": calls,
        });
    }
    written
}

fn request(request: &Request) -> Value {
    let query = request.url.split_once('?').map_or("", |(_, query)| query);
    let query: Vec<Value> = query.split('&').filter(|pair| !pair.is_empty()).map(parameter).collect();
    let mut value = json!({
        "method": request.method,
        "url": request.url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": fields(&request.headers),
        "queryString": query,
        "headersSize": -1,
        "bodySize": size(&request.body),
    });
    if !request.masked.is_empty() {
        value["_masked"] = request.masked.clone().into();
    }
    if request.body != Body::None {
        let mut data = content(&request.body);
        data.insert("mimeType".into(), mime_type(&request.headers).into());
        value["postData"] = Value::Object(data);
    }
    value
}

fn response(response: Option<&Response>) -> Value {
    let none = Response::default();
    // HAR uses the status 0 for a missing answer.
    let response = response.unwrap_or(&none);
    let reason =
        http::StatusCode::from_u16(response.status).ok().and_then(|status| status.canonical_reason());
    let mut content = content(&response.body);
    content.insert("size".into(), size(&response.body).into());
    content.insert("mimeType".into(), mime_type(&response.headers).into());
    json!({
        "status": response.status,
        "statusText": reason.unwrap_or_default(),
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": fields(&response.headers),
        "content": content,
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": size(&response.body),
    })
}

fn content(body: &Body) -> Map<String, Value> {
    let mut content = Map::new();
    match body {
        Body::None => {}
        Body::Missing => {
            content.insert("_missing".into(), true.into());
        }
        Body::Whole(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => {
                content.insert("text".into(), text.into());
            }
            Err(_) => {
                // HAR texts are JSON strings, so other bytes need an encoding.
                content.insert("text".into(), STANDARD.encode(bytes).into());
                content.insert("encoding".into(), "base64".into());
            }
        },
    }
    content
}

/// Returns the length in bytes, or -1 if it is unknown (HAR 1.2, `bodySize`).
fn size(body: &Body) -> i64 {
    body.bytes().map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap_or(-1))
}

fn mime_type(headers: &[(String, String)]) -> &str {
    let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    found.map_or("", |(_, value)| value.as_str())
}

fn fields(headers: &[(String, String)]) -> Value {
    headers.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

fn parameter(pair: &str) -> Value {
    let decoded = |text: &str| {
        // A plus encodes a space in a query.
        let spaced = text.replace('+', " ");
        percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
    };
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    json!({"name": decoded(name), "value": decoded(value)})
}
