//! Hashes of clients' tokens, made once while a client goes on calling: the HMAC takes longer than
//! all else of a look-up.

use crate::shard;
use crate::store::seal::{HashOf, Hasher, KeyedHash};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};

/// Hashes that each core remembers: with more clients, some of their calls take an HMAC.
const SLOTS: usize = 64;

/// Hashes the tokens of clients. Each core remembers the hashes that it made last. A hash depends
/// on the token and the key alone, so it stays right whatever becomes of its client.
///
/// Tokens are not stored, only 128 bits of each that depend on random keys of this process. Their
/// values never leave it, so a client that makes tokens up can do no better than guess them.
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
        // Each core has its own, so the lock is there for the few threads beside them.
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
