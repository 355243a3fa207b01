//! Caches the keyed hashes of client tokens per core, because the HMAC is the most expensive part
//! of a client lookup.

use crate::shard;
use crate::store::seal::{HashOf, Hasher, KeyedHash};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};

/// Cached hashes per core. With more active clients than slots, some calls compute the HMAC.
const SLOTS: usize = 64;

/// Hashes client tokens. Each core caches its most recent hashes. A hash depends only on the token
/// and the key, so changes of the client never invalidate it.
///
/// Tokens are not cached, only a 128-bit fingerprint of each that depends on random keys of this
/// process. Fingerprints never leave the process, so a client can only guess at a collision.
pub(super) struct TokenHasher {
    hasher: Hasher,
    random: [RandomState; 2],
    cores: Box<[Mutex<Recent>]>,
}

type Recent = [Option<(u128, KeyedHash)>; SLOTS];

impl TokenHasher {
    pub(super) fn new(hasher: Hasher) -> TokenHasher {
        let cores = (0..shard::count()).map(|_| Mutex::new([None; SLOTS])).collect();
        TokenHasher { hasher, random: [(); 2].map(|()| RandomState::new()), cores }
    }

    /// Returns the keyed hash under which the token is stored.
    pub(super) fn hash(&self, token: &[u8]) -> KeyedHash {
        let [high, low] = self.random.each_ref().map(|random| random.hash_one(token));
        let fingerprint = u128::from(high) << 64 | u128::from(low);
        // The lock is uncontended: each core uses its own cache, and few threads run outside of the
        // cores.
        let core = &self.cores[shard::current() % self.cores.len()];
        let slot = &mut core.lock().unwrap_or_else(PoisonError::into_inner)[low as usize % SLOTS];
        match slot {
            Some((known, hash)) if *known == fingerprint => *hash,
            _ => slot.insert((fingerprint, self.hasher.hash(HashOf::ClientToken, token))).1,
        }
    }
}

impl fmt::Debug for TokenHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHasher(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn remembered_hashes_are_those_of_the_key() {
        let keyed = Hasher::new(&Secret::new(vec![7; 32]));
        let tokens: Vec<String> = (0..4 * SLOTS).map(|number| format!("token-{number}")).collect();
        let recent = TokenHasher::new(keyed.clone());
        for token in tokens.iter().flat_map(|token| [token, token]).chain(&tokens) {
            let token = token.as_bytes();
            assert_eq!(recent.hash(token), keyed.hash(HashOf::ClientToken, token));
        }
    }
}
