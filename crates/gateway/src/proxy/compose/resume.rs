//! Half-done work of routes with several writes. When a later step fails, the client may repeat its request; the steps that
//! were done are then taken from here instead of being done again. One piece of work is done by one request at a time.

use crate::error::{GatewayError, Kind};
use crate::store::{Store, StoreError};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use switchback_engine::translate::Reply;
use tokio::sync::OwnedMutexGuard;

/// How long half-done work is remembered: long enough for a client's retries, short enough that the same request on
/// another day is a new one.
const REMEMBERED: Duration = Duration::from_secs(10 * 60);

/// The store knows several steps per piece of work; the key of a run names the step already.
const STEP: &str = "reply";

type Locks = Arc<Mutex<HashMap<Vec<u8>, Arc<tokio::sync::Mutex<()>>>>>;

/// Where half-done work is remembered.
#[derive(Clone, Debug)]
pub(crate) struct Resume {
    store: Store,
    locks: Locks,
}

/// A step that this request alone may do now.
#[derive(Debug)]
pub(crate) struct Work {
    store: Store,
    locks: Locks,
    client: String,
    key: Vec<u8>,
    lock_key: Vec<u8>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Resume {
    pub(crate) fn new(store: Store) -> Resume {
        Resume { store, locks: Locks::default() }
    }

    /// Where it is remembered.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Claims the step `key` for a client, waiting for another request that is at it.
    pub(crate) async fn claim(&self, client: &str, key: Vec<u8>) -> Work {
        let lock_key = [client.as_bytes(), b"\0", &key].concat();
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(lock_key.clone()).or_default())
        };
        let guard = lock.lock_owned().await;
        let (store, locks) = (self.store.clone(), Arc::clone(&self.locks));
        Work { store, locks, client: client.to_owned(), key, lock_key, guard: Some(guard) }
    }
}

impl Work {
    /// The reply of an earlier request that did the step.
    pub(crate) async fn reply(&self) -> Result<Option<Reply>, GatewayError> {
        let steps = self.store.resume_get(&self.client, &self.key).await.map_err(unknown)?;
        Ok(steps.into_iter().find(|(step, _)| step == STEP).and_then(|(_, bytes)| decode(bytes.expose())))
    }

    /// The step is done, with this reply. A store that cannot take it is no reason to fail: the client has its answer,
    /// only a repeat would do the step again.
    pub(crate) async fn done(&self, reply: &Reply) {
        let kept = self.store.resume_put(&self.client, &self.key, STEP, &encode(reply), REMEMBERED).await;
        if let Err(error) = kept {
            tracing::warn!(%error, "half-done work could not be remembered");
        }
    }

    /// The whole request is done: a repeat is a new one.
    pub(crate) async fn forget(self) {
        if let Err(error) = self.store.resume_clear(&self.client, &self.key).await {
            tracing::warn!(%error, "finished work could not be forgotten");
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.guard = None;
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        // The only reference left is the table's own: nobody waits.
        if locks.get(&self.lock_key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.lock_key);
        }
    }
}

/// Whether the step was done cannot be known, so it must not be done.
fn unknown(error: StoreError) -> GatewayError {
    GatewayError::new(
        Kind::Overloaded { retry_after: Duration::from_secs(1) },
        "half-done work cannot be looked up",
    )
    .because(error)
}

/// Set in the status of a reply that is kept with header fields; earlier versions kept none.
const WITH_HEADERS: u16 = 1 << 15;

/// Status, bytes of the head, the head as lines, the body.
fn encode(reply: &Reply) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in reply.headers.iter().filter(|(name, _)| is_lasting(name)) {
        [name.as_str().as_bytes(), b":", value.as_bytes(), b"\n"].iter().for_each(|part| head.extend(*part));
    }
    let length = u32::try_from(head.len()).unwrap_or(0);
    head.truncate(length as usize);
    let status = reply.status | WITH_HEADERS;
    [&status.to_be_bytes()[..], &length.to_be_bytes(), &head, &reply.body].concat()
}

/// Whether a header field says something of what was done, and not of the moment.
fn is_lasting(name: &HeaderName) -> bool {
    let name = name.as_str();
    !["set-cookie", "retry-after", "date"].contains(&name) && !name.contains("ratelimit")
}

fn decode(bytes: &[u8]) -> Option<Reply> {
    let (status, mut body) = bytes.split_first_chunk()?;
    let status = u16::from_be_bytes(*status);
    let mut headers = HeaderMap::new();
    if status & WITH_HEADERS != 0 {
        let (length, rest) = body.split_first_chunk()?;
        let (head, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        for line in head.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let name = HeaderName::from_bytes(&line[..colon]).ok()?;
            headers.append(name, HeaderValue::from_bytes(&line[colon + 1..]).ok()?);
        }
        body = rest;
    }
    Some(Reply { status: status & !WITH_HEADERS, headers, body: Bytes::copy_from_slice(body) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{LOCATION, RETRY_AFTER};

    #[test]
    fn a_reply_is_remembered_with_what_it_says_of_what_was_done() {
        let mut headers = HeaderMap::new();
        headers.append(LOCATION, HeaderValue::from_static("/jobs/7"));
        headers.append("x-job", HeaderValue::from_static("a: b"));
        headers.append("x-job", HeaderValue::from_static("c"));
        let body = Bytes::from_static(b"{}\n:");
        let known = Reply { status: 202, headers: headers.clone(), body: body.clone() };
        headers.append(RETRY_AFTER, HeaderValue::from_static("3"));
        let read = decode(&encode(&Reply { status: 202, headers, body })).expect("it can be read");
        assert_eq!((read.status, &read.headers, &read.body), (known.status, &known.headers, &known.body));
    }

    #[test]
    fn what_an_earlier_version_has_remembered_is_known_still() {
        let read = decode(&[&201u16.to_be_bytes()[..], b"{}"].concat()).expect("it can be read");
        assert_eq!((read.status, read.headers.len(), &read.body[..]), (201, 0, &b"{}"[..]));
    }
}
