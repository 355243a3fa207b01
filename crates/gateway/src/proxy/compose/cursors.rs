//! Cache of upstream cursors for clients that address pages by number. Without it, each page would
//! be located by reading all preceding pages. The mutex is taken once per upstream page and only by
//! such requests.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Lifetime of a cached cursor: longer than the usual time between two page requests of a client,
/// shorter than the lifetime of a cursor at upstreams.
const REMEMBERED: Duration = Duration::from_secs(5 * 60);

/// Limits of the cache: lists, pages of each list, and bytes of a cursor. Together 16 MiB of
/// cursors.
const LISTS_MAX: usize = 256;
const PAGES_MAX: usize = 64;
const CURSOR_BYTES_MAX: usize = 1024;

/// Shared cache of cursors. Clones refer to the same cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct CursorCache(Arc<Mutex<HashMap<Vec<u8>, CachedList>>>);

#[derive(Debug)]
struct CachedList {
    /// Cursor and time of storage, by position.
    pages: BTreeMap<u64, (String, Duration)>,
    used: Duration,
}

impl CursorCache {
    /// Returns the nearest cached position at or before `position` and its cursor.
    pub(super) fn recall(&self, list: &[u8], position: u64, now: Duration) -> Option<(u64, String)> {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let list = lists.get_mut(list)?;
        list.used = now;
        let mut before = list.pages.range(..=position).rev();
        let (position, (cursor, _)) = before.find(|(_, (_, seen))| now.saturating_sub(*seen) < REMEMBERED)?;
        Some((*position, cursor.clone()))
    }

    /// Caches the cursor for a position. `now` is measured from the start of the program.
    pub(super) fn remember(&self, list: Vec<u8>, position: u64, cursor: &str, now: Duration) {
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
            // Clients that count pages move forward, so evict the lowest position.
            list.pages.pop_first();
        }
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
