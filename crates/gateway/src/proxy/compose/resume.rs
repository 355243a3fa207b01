//! Recorded steps of routes with several writes. If a later step fails and the client repeats its
//! request, completed steps are answered from their recorded replies instead of being performed
//! again. Each step is claimed by one request at a time.

use crate::error::{ErrorKind, GatewayError};
use crate::store::{Store, StoreError};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use switchback_engine::translate::Reply;
use tokio::sync::OwnedMutexGuard;

/// Lifetime of a recorded step: long enough for a client's retries, short enough that the same
/// request on another day is a new one.
const REMEMBERED: Duration = Duration::from_secs(10 * 60);

/// The store supports several steps per key. A run's key already identifies the step, so one name
/// is enough.
const STEP: &str = "reply";

type Locks = Arc<Mutex<HashMap<Vec<u8>, Arc<tokio::sync::Mutex<()>>>>>;

/// Store of recorded steps.
#[derive(Clone, Debug)]
pub(crate) struct Resume {
    store: Store,
    locks: Locks,
}

/// A step claimed by one request.
#[derive(Debug)]
pub(crate) struct ResumableStep {
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

    /// Returns the underlying store.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Claims step `key` for a client. Waits while another request has the claim.
    pub(crate) async fn claim(&self, client: &str, key: Vec<u8>) -> ResumableStep {
        // In-process locks are enough to serialize concurrent retries of one client at this
        // gateway. The table lock is released before waiting.
        // A zero byte cannot occur in a client id, so keys of two clients never coincide.
        let lock_key = [client.as_bytes(), b"\0", &key].concat();
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(lock_key.clone()).or_default())
        };
        let guard = lock.lock_owned().await;
        let (store, locks) = (self.store.clone(), Arc::clone(&self.locks));
        ResumableStep { store, locks, client: client.to_owned(), key, lock_key, guard: Some(guard) }
    }
}

impl ResumableStep {
    /// Returns the recorded reply of an earlier request that completed the step.
    ///
    /// # Errors
    ///
    /// Returns a retryable overload if the store cannot be read.
    pub(crate) async fn reply(&self) -> Result<Option<Reply>, GatewayError> {
        let steps = self.store.resume_get(&self.client, &self.key).await.map_err(unknown)?;
        Ok(steps.into_iter().find(|(step, _)| step == STEP).and_then(|(_, bytes)| decode(bytes.expose())))
    }

    /// Records the reply of a completed step. A store error is only logged: failing now would not
    /// undo the step, and the client has a response.
    pub(crate) async fn done(&self, reply: &Reply) {
        let kept = self.store.resume_put(&self.client, &self.key, STEP, &encode(reply), REMEMBERED).await;
        if let Err(error) = kept {
            tracing::warn!(%error, "a completed step was not stored; a retry of the request may repeat it");
        }
    }

    /// Removes the record after the request has completed, so that a repeat counts as a new
    /// request.
    pub(crate) async fn forget(self) {
        if let Err(error) = self.store.resume_clear(&self.client, &self.key).await {
            tracing::warn!(%error, "the steps of a finished request were not deleted; an equal request may reuse their results");
        }
    }
}

impl Drop for ResumableStep {
    fn drop(&mut self) {
        self.guard = None;
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        // Only the table refers to the lock, so no request waits for it. Claims clone the lock
        // under the table's mutex, so the count cannot grow here.
        if locks.get(&self.lock_key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.lock_key);
        }
    }
}

/// It is unknown whether the step was done, so it must not be performed.
fn unknown(error: StoreError) -> GatewayError {
    GatewayError::new(
        ErrorKind::Overloaded { retry_after: Duration::from_secs(1) },
        "half-done work cannot be looked up",
    )
    .because(error)
}

/// Flag in the status of a record with header fields. Earlier versions stored none.
const WITH_HEADERS: u16 = 1 << 15;

/// Serializes a reply: status, length of the head in bytes, the head as lines, the body.
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

/// Returns whether a header field describes the result rather than the moment of the response.
fn is_lasting(name: &HeaderName) -> bool {
    let name = name.as_str();
    // A replayed cookie or rate limit would describe an earlier moment.
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
