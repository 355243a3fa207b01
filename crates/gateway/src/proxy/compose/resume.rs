//! Half-done work of routes with several writes. When a later step fails, the client may repeat its request; the steps that
//! were done are then taken from here instead of being done again. One piece of work is done by one request at a time.

use crate::error::{GatewayError, Kind};
use crate::store::{Store, StoreError};
use bytes::Bytes;
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

fn encode(reply: &Reply) -> Vec<u8> {
    [&reply.status.to_be_bytes()[..], &reply.body].concat()
}

fn decode(bytes: &[u8]) -> Option<Reply> {
    let (status, body) = bytes.split_first_chunk()?;
    Some(Reply {
        status: u16::from_be_bytes(*status),
        body: Bytes::copy_from_slice(body),
        ..Reply::default()
    })
}
