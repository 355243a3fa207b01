//! Judges a 401 of the API: the access token may be invalid, or the client may lack a permission.
//! The response does not distinguish them, so other evidence is used, for each operation
//! separately.
//!
//! - The same token worked for this operation before: the token has ended. Refresh.
//! - A fresh token from such a refresh is rejected too: the operation is not permitted. Its 401s
//!   are forwarded for a quiet period, which doubles while they continue. Other operations are
//!   unaffected.
//! - Otherwise: refresh, unless the token itself is fresh from a refresh caused by a 401. A client
//!   without any permission would otherwise cause a refresh for each operation that it tries.
//!
//! An operation that always answers 401 thus costs one refresh per quiet period, and a token that
//! has ended is replaced at the first call of any other operation.

use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Maximum number of operations remembered as not permitted. Beyond it, the one whose quiet period
/// finishes first is evicted.
const JUDGED_MAX: usize = 256;
/// Size of the operation bitmap of a token, in words of 64 bits.
const WORDS: usize = 16;

/// An operation of the API, identified by the method and the path of a call without segments that
/// look like ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallOperation(u64);

impl CallOperation {
    /// Returns the operation of a call. `target` is the path below the service's base, with or
    /// without a query.
    pub fn from_call(method: &http::Method, target: &str) -> CallOperation {
        let mut bytes = target.bytes();
        let end = bytes.position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(target.len());
        // Equal in all of the process, and quick: every call is judged by it, and a client only
        // misleads itself.
        let mut hasher = FixedState::default().build_hasher();
        method.hash(&mut hasher);
        // Segments with digits count as ids. Two operations with equal hashes would only share a
        // verdict.
        let segments = target.as_bytes()[..end].split(|byte| *byte == b'/');
        for segment in segments.filter(|segment| !segment.is_empty()) {
            let is_id = segment.len() > 32
                || segment.iter().any(|byte| byte.is_ascii_digit() || matches!(byte, b'%' | b'@'));
            hasher.write(if is_id { b"*" } else { segment });
            hasher.write_u8(b'/');
        }
        CallOperation(hasher.finish())
    }
}

/// A bitmap of the operations that a token worked for. A collision costs an occasional unnecessary
/// refresh.
#[derive(Debug, Default)]
pub(super) struct WorkedFor([AtomicU64; WORDS]);

impl WorkedFor {
    pub(super) fn note(&self, operation: CallOperation) {
        let (word, bit) = self.place(operation);
        // The bit is usually set already, and a load avoids invalidating the cache line of other
        // cores.
        if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }

    pub(super) fn has(&self, operation: CallOperation) -> bool {
        let (word, bit) = self.place(operation);
        word.load(Relaxed) & bit != 0
    }

    fn place(&self, operation: CallOperation) -> (&AtomicU64, u64) {
        let place = (operation.0 % (WORDS as u64 * 64)) as usize;
        (&self.0[place / 64], 1 << (place % 64))
    }
}

/// Rejections of one grant.
#[derive(Debug)]
pub(super) struct Rejections {
    /// The first quiet period, and the longest.
    quiet: Duration,
    quiet_max: Duration,
    /// The last generation that a 401 caused a refresh of, and the time.
    refreshed: Option<(i64, Duration)>,
    judged: HashMap<CallOperation, Judged>,
}

/// An operation that is presumably not permitted.
#[derive(Clone, Copy, Debug)]
struct Judged {
    /// The generation of the rejected fresh token.
    generation: i64,
    quiet: Duration,
    until: Duration,
}

impl Rejections {
    pub(super) fn new(quiet: Duration, quiet_max: Duration) -> Rejections {
        Rejections { quiet, quiet_max, refreshed: None, judged: HashMap::new() }
    }

    /// Returns whether a 401 for `operation` with the newest token, of `generation`, warrants a
    /// refresh.
    pub(super) fn is_worth_refresh(
        &mut self,
        generation: i64,
        operation: CallOperation,
        has_worked: bool,
        now: Duration,
    ) -> bool {
        // Another call of the same burst, or a failed refresh: the backoff decides about retries.
        if self.refreshed.is_some_and(|(refreshed, _)| refreshed == generation) {
            return true;
        }
        // A refresh would not help: the last fresh token was rejected for this operation too.
        if self.judged.get(&operation).is_some_and(|judged| now < judged.until) {
            return false;
        }
        let is_fresh = self.refreshed.is_some_and(|(refreshed, at)| {
            // Only the token that directly followed counts as fresh, and only for the quiet period:
            // an older one may have ended by itself.
            refreshed + 1 == generation && now < at.saturating_add(self.quiet)
        });
        if is_fresh && !has_worked {
            self.note_refusal(generation, operation, now);
            return false;
        }
        // Noted before the refresh runs, so that the other calls of the burst join it.
        self.refreshed = Some((generation, now));
        true
    }

    /// Returns whether `operation` is known not to be permitted.
    pub(super) fn is_judged(&self, operation: CallOperation, now: Duration) -> bool {
        self.judged.get(&operation).is_some_and(|judged| now < judged.until)
    }

    /// Records that the fresh token of `generation` was rejected for `operation`.
    pub(super) fn note_refusal(&mut self, generation: i64, operation: CallOperation, now: Duration) {
        let before = self.judged.get(&operation);
        // Count concurrent retries with the same token once.
        if before.is_some_and(|judged| judged.generation == generation) {
            return;
        }
        let quiet = match before {
            // Doubles only while refusals continue; after a pause as long as the last period, it
            // starts over.
            Some(judged) if now < judged.until.saturating_add(judged.quiet) => {
                judged.quiet.saturating_mul(2).min(self.quiet_max)
            }
            _ => self.quiet,
        };
        // Clients choose their paths, so the map must not grow with them.
        if self.judged.len() >= JUDGED_MAX
            && !self.judged.contains_key(&operation)
            && let Some(first) = self.judged.iter().min_by_key(|(_, judged)| judged.until).map(|(at, _)| *at)
        {
            self.judged.remove(&first);
        }
        self.judged.insert(operation, Judged { generation, quiet, until: now.saturating_add(quiet) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    const MINUTE: Duration = Duration::from_secs(60);

    fn rejections() -> Rejections {
        Rejections::new(MINUTE, 4 * MINUTE)
    }

    fn operation(path: &str) -> CallOperation {
        CallOperation::from_call(&Method::GET, path)
    }

    #[test]
    fn an_operation_is_one_whatever_its_ids_and_query() {
        assert_eq!(operation("/things/1/parts"), operation("/things/22/parts?page=3"));
        assert_eq!(operation("/things/a%20b"), operation("/things/me@there.test"));
        assert_ne!(operation("/things/1"), operation("/things/1/parts"));
        assert_ne!(operation("/things"), operation("/parts"));
        assert_ne!(operation("/things"), CallOperation::from_call(&Method::POST, "/things"));
    }

    #[test]
    fn an_operation_that_is_never_permitted_costs_ever_fewer_refreshes_and_no_other_operation_waits() {
        let (mut rejections, forbidden, usual) = (rejections(), operation("/forbidden"), operation("/usual"));
        let (mut generation, mut refreshes) = (1, Vec::new());
        for minute in 0..60 {
            let now = MINUTE * minute;
            if rejections.is_worth_refresh(generation, forbidden, false, now) {
                refreshes.push(minute);
                generation += 1;
                rejections.note_refusal(generation, forbidden, now);
            }
        }
        assert!(refreshes.len() < 20, "{refreshes:?}");
        assert!(refreshes.windows(2).skip(2).all(|pair| pair[1] - pair[0] >= 4), "{refreshes:?}");
        // In the midst of its quiet time the token ends: the first other call that was good with it
        // finds out.
        let now = MINUTE * refreshes[refreshes.len() - 1] + Duration::from_secs(1);
        assert!(!rejections.is_worth_refresh(generation, forbidden, false, now));
        assert!(rejections.is_worth_refresh(generation, usual, true, now));
    }

    #[test]
    fn a_client_that_may_do_nothing_causes_one_refresh_for_all_it_tries() {
        let mut rejections = rejections();
        let tried: Vec<_> = (b'a'..=b'z').map(|letter| operation(&format!("/{}", letter as char))).collect();
        assert!(rejections.is_worth_refresh(1, tried[0], false, Duration::ZERO));
        rejections.note_refusal(2, tried[0], Duration::ZERO);
        for other in &tried[1..] {
            assert!(!rejections.is_worth_refresh(2, *other, false, Duration::from_secs(1)));
        }
    }

    #[test]
    fn calls_refused_together_are_judged_once_and_the_memory_is_bounded() {
        let mut rejections = rejections();
        for _ in 0..100 {
            rejections.note_refusal(2, operation("/a"), Duration::ZERO);
        }
        assert!(!rejections.is_judged(operation("/a"), MINUTE));
        for n in 0..1000_u64 {
            rejections.note_refusal(2, CallOperation(n), Duration::ZERO);
        }
        assert!(rejections.judged.len() <= JUDGED_MAX);
    }

    #[test]
    fn a_token_knows_what_it_was_good_for() {
        let worked = WorkedFor::default();
        assert!(!worked.has(operation("/a")));
        worked.note(operation("/a"));
        assert!(worked.has(operation("/a")) && !worked.has(operation("/b")));
    }
}
