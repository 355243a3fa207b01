//! Pages of lists, as the plan's pager wants them: cursors sealed for one client and one list, and the service's cursors
//! that were found on the way, cached for a while. Only clients that count pages before a service of cursors come by the cache:
//! it has a lock, which such a request takes once for each page that it reads.

use super::composer::Composer;
use crate::clock::Clock;
use crate::proxy::context::RequestContext;
use crate::proxy::forwarding::Forwarding;
use crate::store::Store;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use switchback_engine::translate::paging::Pages;

/// How long a cursor that was handed out is good: a client that reads a long list takes hours, not days.
const CURSOR_LASTS: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a service's cursor is remembered: longer than a client takes between two pages, shorter than services keep them.
const REMEMBERED: Duration = Duration::from_secs(5 * 60);

/// Bounds of what is remembered: lists, pages of each, bytes of a cursor. Sixteen megabytes at the most.
const LISTS_MAX: usize = 256;
const PAGES_MAX: usize = 64;
const CURSOR_BYTES_MAX: usize = 1024;

/// What is remembered of lists that clients count pages of. Clones remember together.
#[derive(Clone, Debug, Default)]
pub(crate) struct CursorCache(Arc<Mutex<HashMap<Vec<u8>, CachedList>>>);

#[derive(Debug)]
struct CachedList {
    /// By position: the service's cursor, and when it was seen.
    pages: BTreeMap<u64, (String, Duration)>,
    used: Duration,
}

impl CursorCache {
    fn recall(&self, list: &[u8], position: u64, now: Duration) -> Option<(u64, String)> {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let list = lists.get_mut(list)?;
        list.used = now;
        let mut before = list.pages.range(..=position).rev();
        let (position, (cursor, _)) = before.find(|(_, (_, seen))| now.saturating_sub(*seen) < REMEMBERED)?;
        Some((*position, cursor.clone()))
    }

    fn remember(&self, list: Vec<u8>, position: u64, cursor: &str, now: Duration) {
        if cursor.len() > CURSOR_BYTES_MAX {
            return;
        }
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lists.len() >= LISTS_MAX && !lists.contains_key(&list) {
            lists.retain(|_, list| now.saturating_sub(list.used) < REMEMBERED);
            let oldest = lists.iter().min_by_key(|(_, list)| list.used).map(|(key, _)| key.clone());
            if let (Some(oldest), true) = (oldest, lists.len() >= LISTS_MAX) {
                lists.remove(&oldest);
            }
        }
        let list = lists.entry(list).or_insert_with(|| CachedList { pages: BTreeMap::new(), used: now });
        list.used = now;
        list.pages.insert(position, (cursor.to_owned(), now));
        if list.pages.len() > PAGES_MAX {
            // Whoever counts goes on from the last ones.
            list.pages.pop_first();
        }
    }
}

/// What the pager of one request needs.
pub(super) struct RequestPages {
    store: Store,
    clock: Clock,
    cache: CursorCache,
    forwarding: Forwarding,
    facts: Arc<RequestContext>,
    client: String,
    account: Option<String>,
}

/// Nothing of the client shows.
impl fmt::Debug for RequestPages {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("RequestPages")
    }
}

impl RequestPages {
    /// For one request; `client` and `account` are those that it is answered for.
    pub(super) fn new(
        composer: &Composer,
        facts: &Arc<RequestContext>,
        client: &str,
        account: Option<&str>,
    ) -> RequestPages {
        RequestPages {
            store: composer.resume.store().clone(),
            clock: composer.clock.clone(),
            cache: composer.cursors.clone(),
            forwarding: composer.forwarding.clone(),
            facts: Arc::clone(facts),
            client: client.to_owned(),
            account: account.map(str::to_owned),
        }
    }

    /// The list, for this client and its account, in this pack's form of it.
    fn row(&self, list: &str) -> Vec<u8> {
        let (account, side) =
            (self.account.as_deref().unwrap_or(""), self.facts.matched().front.serves.place());
        format!("{side}:{}:{account}{list}", account.len()).into_bytes()
    }

    fn key(&self, list: &str) -> Vec<u8> {
        [format!("{}:{}", self.client.len(), self.client).into_bytes(), self.row(list)].concat()
    }

    fn now(&self) -> i64 {
        self.clock.unix_ms() / 1000
    }
}

impl Pages for RequestPages {
    fn seal(&self, state: &str, list: &str) -> String {
        let plain = format!("{}\n{state}", self.now());
        URL_SAFE_NO_PAD.encode(self.store.seal_cursor(&self.client, &self.row(list), plain.as_bytes()))
    }

    fn open(&self, cursor: &str, list: &str) -> Option<String> {
        let sealed = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let plain = self.store.open_cursor(&self.client, &self.row(list), &sealed)?;
        let text = std::str::from_utf8(plain.expose()).ok()?;
        let (made, state) = text.split_once('\n')?;
        let age = self.now().saturating_sub(made.parse().ok()?);
        // Clocks of replicas are not the same to the second.
        (age < CURSOR_LASTS.as_secs() as i64).then(|| state.to_owned())
    }

    fn recall(&self, list: &str, position: u64) -> Option<(u64, String)> {
        self.cache.recall(&self.key(list), position, self.clock.elapsed())
    }

    fn remember(&self, list: &str, position: u64, cursor: &str) {
        self.cache.remember(self.key(list), position, cursor, self.clock.elapsed());
    }

    fn address(&self) -> String {
        let facts = &self.facts;
        let path = facts.uri.path();
        let host = facts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let Some(host) = facts.uri.authority().map(|authority| authority.as_str()).or(host) else {
            return path.to_owned();
        };
        let scheme = self.forwarding.scheme(facts.peer, &facts.headers);
        format!("{scheme}://{host}{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_nearest_page_before_is_found_while_it_is_remembered() {
        let cache = CursorCache::default();
        cache.remember(b"a".to_vec(), 2, "two", at(0));
        cache.remember(b"a".to_vec(), 5, "five", at(200));
        let recall = |list: &[u8], position, now| cache.recall(list, position, at(now)).map(|(at, _)| at);
        assert_eq!(recall(b"a", 4, 10), Some(2));
        assert_eq!(recall(b"a", 5, 10), Some(5));
        assert_eq!(recall(b"a", 1, 10), None);
        assert_eq!(recall(b"b", 9, 10), None);
        assert_eq!(recall(b"a", 4, 300), None, "it is too long ago");
        assert_eq!(recall(b"a", 9, 300), Some(5));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let cache = CursorCache::default();
        for list in 0..LISTS_MAX as u64 + 10 {
            cache.remember(list.to_le_bytes().to_vec(), 1, "x", Duration::from_millis(list));
        }
        assert_eq!(cache.0.lock().unwrap().len(), LISTS_MAX);
        assert!(cache.recall(&0_u64.to_le_bytes(), 1, at(1)).is_none(), "the oldest one went");
        for position in 0..PAGES_MAX as u64 + 10 {
            cache.remember(b"a".to_vec(), position, "x", at(1));
        }
        cache.remember(b"a".to_vec(), 1000, &"x".repeat(CURSOR_BYTES_MAX + 1), at(1));
        assert_eq!(cache.0.lock().unwrap()[&b"a"[..]].pages.len(), PAGES_MAX);
        assert_eq!(cache.recall(b"a", 9, at(1)), None);
        assert_eq!(cache.recall(b"a", 2000, at(1)), Some((PAGES_MAX as u64 + 9, "x".to_owned())));
    }
}
