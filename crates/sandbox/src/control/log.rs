//! The log of the latest requests.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::VecDeque;

/// Default number of requests in the log.
pub const KEEP: usize = 1_000;

/// Maximum number of bytes per body.
const BODY_BYTES_MAX: usize = 64 * 1024;

struct Entry {
    number: u64,
    method: Method,
    target: String,
    headers: HeaderMap,
    body: Bytes,
    /// `None` while the request is in progress, and if its connection was reset.
    status: Option<u16>,
}

/// The log.
pub struct Log {
    entries: VecDeque<Entry>,
    keep: usize,
    /// Number of requests since the start, including discarded ones.
    total: u64,
}

impl Default for Log {
    fn default() -> Log {
        Log { entries: VecDeque::new(), keep: KEEP, total: 0 }
    }
}

/// A log entry in its JSON form.
#[derive(Serialize)]
pub struct Shown<'a> {
    number: u64,
    method: &'a str,
    path: &'a str,
    headers: Map<String, Value>,
    /// The body as JSON if it is valid JSON, otherwise as text; null if empty.
    body: Value,
    status: Option<u16>,
}

impl Log {
    /// Adds a request and returns its number, which [`Log::answered`] takes.
    pub fn enter(&mut self, method: &Method, target: &str, headers: HeaderMap, body: Bytes) -> u64 {
        // Counted even without a log, so that numbers remain unique when it is enabled again.
        self.total += 1;
        if self.keep > 0 {
            if self.entries.len() >= self.keep {
                self.entries.pop_front();
            }
            // Copy the stored part of a large body, so that the rest can be freed.
            let large = body.len() > BODY_BYTES_MAX;
            let body = if large { Bytes::copy_from_slice(&body[..BODY_BYTES_MAX]) } else { body };
            let (number, method, target) = (self.total, method.clone(), target.to_owned());
            self.entries.push_back(Entry { number, method, target, headers, body, status: None });
        }
        self.total
    }

    /// Sets the status of a request, if it is still in the log.
    pub fn set_status(&mut self, number: u64, status: u16) {
        let Some(first) = self.entries.front() else { return };
        // Numbers are consecutive, so the index follows from that of the first entry.
        let place = number.checked_sub(first.number).and_then(|place| usize::try_from(place).ok());
        if let Some(entry) = place.and_then(|place| self.entries.get_mut(place)) {
            entry.status = Some(status);
        }
    }

    /// Sets the maximum number of entries; 0 disables the log.
    pub fn keep(&mut self, keep: usize) {
        // The bound protects a long load test from filling the memory with requests.
        self.keep = keep.min(1_000_000);
        while self.entries.len() > self.keep {
            self.entries.pop_front();
        }
    }

    pub fn is_kept(&self) -> bool {
        self.keep > 0
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Returns all entries, oldest first.
    pub fn all(&self) -> Vec<Shown<'_>> {
        self.entries.iter().map(render).collect()
    }
}

fn render(entry: &Entry) -> Shown<'_> {
    let mut headers = Map::new();
    for (name, value) in &entry.headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        match headers.get_mut(name.as_str()) {
            // A repeated header is listed with all its lines, in order.
            Some(Value::Array(lines)) => lines.push(Value::from(value)),
            Some(first) => *first = Value::from(vec![first.take(), Value::from(value)]),
            None => drop(headers.insert(name.as_str().to_owned(), Value::from(value))),
        }
    }
    let body = match entry.body.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&entry.body)
            .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&entry.body).into_owned())),
    };
    let (method, path) = (entry.method.as_str(), entry.target.as_str());
    Shown { number: entry.number, method, path, headers, body, status: entry.status }
}

impl Shown<'_> {
    /// Returns whether the path, without its query, is this one.
    pub fn has_path(&self, path: &str) -> bool {
        self.path.split('?').next() == Some(path)
    }

    pub fn has_method(&self, method: &str) -> bool {
        self.method.eq_ignore_ascii_case(method)
    }
}
