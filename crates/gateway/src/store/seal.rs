//! Encryption of secrets at rest: XChaCha20-Poly1305 with a random 192-bit nonce. The associated
//! data bind a secret to its place, so that a value copied to another client, grant or column does
//! not decrypt. This module contains no SQL.
//!
//! The sealed format is one version byte, the 8-byte key id, the 24-byte nonce, then ciphertext and
//! tag. Version and key id are authenticated together with the place. A [`KeyRing`] seals with its
//! first key and opens with any, which permits rotation without downtime.

use crate::secret::Secret;
use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

const VERSION: u8 = 1;
const KEY_ID_BYTES: usize = 8;
const NONCE_BYTES: usize = 24;
const HEAD_BYTES: usize = 1 + KEY_ID_BYTES + NONCE_BYTES;
/// Prefix of a key's text, for recognition by people and secret scanners.
const KEY_PREFIX: &str = "sbk_";

/// An error of a sealing key or sealed value. Contains nothing of their content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The text is not a key in the format of `switchback key generate`.
    #[error("not a sealing key: expected sbk_ and 43 characters, as `switchback key generate` prints")]
    NotAKey,
    /// The list of keys is empty.
    #[error("no sealing key given")]
    NoKey,
    /// The ring contains the same key twice, probably by mistake in a rotation.
    #[error("sealing key {0} is given twice")]
    KeyTwice(KeyId),
    /// The value was sealed with a key that is not in the ring.
    #[error("sealed with key {0}, which was not given")]
    KeyMissing(KeyId),
    /// The value was modified, truncated, or moved from the place it was sealed for.
    #[error("sealed value does not open: changed, or moved from another row")]
    Broken,
}

/// The public id of a sealing key. It is derived from the key and safe to display.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId([u8; KEY_ID_BYTES]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A sealing key. `Debug` prints only its id.
#[derive(Clone)]
pub struct SealingKey {
    id: KeyId,
    cipher: XChaCha20Poly1305,
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKey({})", self.id)
    }
}

impl SealingKey {
    /// Generates the text of a new random key: `sbk_` and 43 characters of base64url.
    pub fn generate() -> Secret<String> {
        let key = Zeroizing::new(random::<32>());
        Secret::new(format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(*key)))
    }

    /// Parses a key. Surrounding white space is ignored, since files often have a final line break.
    ///
    /// # Errors
    ///
    /// The text is not a key in the format of `switchback key generate`.
    pub fn parse(text: &Secret<String>) -> Result<Self, SealError> {
        let encoded = text.expose().trim().strip_prefix(KEY_PREFIX).ok_or(SealError::NotAKey)?;
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(encoded).map_err(|_| SealError::NotAKey)?);
        if bytes.len() != 32 {
            return Err(SealError::NotAKey);
        }
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&derive(&bytes, b"switchback key id 1")[..KEY_ID_BYTES]);
        let sealing = derive(&bytes, b"switchback sealing 1");
        let cipher =
            XChaCha20Poly1305::new_from_slice(sealing.as_slice()).expect("a derived key has 32 bytes");
        Ok(SealingKey { id: KeyId(id), cipher })
    }

    /// Returns the key's public id.
    pub fn id(&self) -> KeyId {
        self.id
    }

    fn seal(&self, place: &SealContext<'_>, plain: &[u8]) -> Vec<u8> {
        let nonce = random::<NONCE_BYTES>();
        let aad = place.aad(self.id);
        let sealed = self
            .cipher
            .encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: &aad })
            .expect("only messages of many gigabytes are refused, and ours are tokens");
        let mut out = Vec::with_capacity(HEAD_BYTES + sealed.len());
        out.push(VERSION);
        out.extend_from_slice(&self.id.0);
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&sealed);
        out
    }
}

/// The place of a sealed value, which opens only there.
#[derive(Clone, Copy, Debug)]
pub struct SealContext<'a> {
    /// Table and column, such as `grants.refresh`.
    pub column: &'static str,
    /// Id of the client that owns the row; empty if there is none.
    pub client: &'a str,
    /// Id of the row within the client: a grant, or a piece of work.
    pub row: &'a [u8],
}

impl SealContext<'_> {
    /// Serializes version, key id and the length-prefixed parts of the place, so that no two places
    /// have the same bytes.
    fn aad(&self, key: KeyId) -> Vec<u8> {
        let mut aad = vec![VERSION];
        aad.extend_from_slice(&key.0);
        for part in [self.column.as_bytes(), self.client.as_bytes(), self.row] {
            aad.extend_from_slice(&(part.len() as u64).to_le_bytes());
            aad.extend_from_slice(part);
        }
        aad
    }
}

/// The available sealing keys: the first one seals, all open. Clones share the ring, whose keys can
/// be replaced.
#[derive(Clone, Debug)]
pub struct KeyRing(Arc<ArcSwap<Vec<SealingKey>>>);

impl KeyRing {
    /// Parses a ring from `texts`, newest first; at least one key, without duplicates.
    ///
    /// # Errors
    ///
    /// There is no key, a key occurs twice, or a text is not a key.
    pub fn parse(texts: &[Secret<String>]) -> Result<Self, SealError> {
        let keys = texts.iter().map(SealingKey::parse).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err(SealError::NoKey);
        }
        for (at, key) in keys.iter().enumerate() {
            if keys[..at].iter().any(|earlier| earlier.id == key.id) {
                return Err(SealError::KeyTwice(key.id));
            }
        }
        Ok(KeyRing(Arc::new(ArcSwap::from_pointee(keys))))
    }

    /// Returns the key that seals new values.
    pub fn newest(&self) -> SealingKey {
        self.0.load().first().expect("a ring is never empty").clone()
    }

    /// Replaces the keys by those of `other`.
    pub(super) fn replace(&self, other: &KeyRing) {
        self.0.store(other.0.load_full());
    }

    /// Adds the keys of `other` behind its own.
    pub(super) fn accept(&self, other: &KeyRing) {
        let mut keys = Vec::clone(&self.0.load());
        for key in other.0.load().iter() {
            if keys.iter().all(|known| known.id != key.id) {
                keys.push(key.clone());
            }
        }
        self.0.store(Arc::new(keys));
    }

    /// Returns whether the ring contains the key called `id` (as [`KeyId`] displays it).
    pub fn holds(&self, id: &str) -> bool {
        self.0.load().iter().any(|key| key.id.to_string() == id)
    }

    /// Seals `plain` for `place` with the newest key.
    pub fn seal(&self, place: &SealContext<'_>, plain: &[u8]) -> Vec<u8> {
        self.newest().seal(place, plain)
    }

    /// Opens a value sealed for `place` with any key of the ring.
    ///
    /// # Errors
    ///
    /// The value was sealed with a key that is not in the ring, for another place, or was modified.
    pub fn open(&self, place: &SealContext<'_>, sealed: &[u8]) -> Result<Secret<Vec<u8>>, SealError> {
        let Some((head, body)) = sealed.split_at_checked(HEAD_BYTES) else { return Err(SealError::Broken) };
        if head[0] != VERSION {
            return Err(SealError::Broken);
        }
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&head[1..=KEY_ID_BYTES]);
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&head[1 + KEY_ID_BYTES..]);
        let keys = self.0.load();
        let key = keys.iter().find(|key| key.id.0 == id).ok_or(SealError::KeyMissing(KeyId(id)))?;
        let aad = place.aad(key.id);
        let plain = key.cipher.decrypt(&XNonce::from(nonce), Payload { msg: body, aad: &aad });
        plain.map(Secret::new).map_err(|_| SealError::Broken)
    }
}

/// Domain of a keyed hash. Hashes of different domains differ even for the same bytes.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum HashOf {
    /// A token that authenticates a client.
    ClientToken = 1,
    /// The `state` of a pending authorization.
    ConnectState = 2,
    /// The credentials that the configuration seeds a grant with.
    Seed = 3,
    /// A refresh token about to be spent.
    RefreshToken = 4,
    /// The key of unfinished work.
    Work = 5,
    /// The salt of the hashes in message samples.
    SampleSalt = 6,
    /// The content of a client's row.
    ClientRow = 7,
    /// The assignment of a token to a client.
    TokenRow = 8,
    /// The assignment of a credential to a client and side.
    CredentialRow = 9,
    /// The assignment of a grant to a client, and its flow.
    GrantRow = 10,
    /// The key of an archive entry, with its owner.
    ArchiveEntry = 11,
    /// The ordering key of a receiver's events.
    EventKey = 12,
    /// The sender's message id of an event.
    EventMessage = 13,
    /// The correlation key of an event.
    EventPair = 14,
    /// The id of an admin session.
    Session = 15,
}

/// A value covered by a row's keyed hash.
#[derive(Clone, Copy, Debug)]
pub enum HashedValue<'a> {
    /// A text or a blob.
    Bytes(&'a [u8]),
    /// A number.
    Int(i64),
    /// An SQL `NULL`, distinct from an empty text.
    Nothing,
}

impl<'a> From<&'a str> for HashedValue<'a> {
    fn from(text: &'a str) -> Self {
        HashedValue::Bytes(text.as_bytes())
    }
}

impl<'a> From<Option<&'a str>> for HashedValue<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(HashedValue::Nothing, HashedValue::from)
    }
}

impl From<Option<i64>> for HashedValue<'_> {
    fn from(number: Option<i64>) -> Self {
        number.map_or(HashedValue::Nothing, HashedValue::Int)
    }
}

/// A keyed hash (HMAC-SHA-256).
pub(crate) type KeyedHash = [u8; 32];

/// Computes keyed hashes. The key is random, created with the store, and stored sealed.
#[derive(Clone)]
pub struct Hasher(Hmac<Sha256>);

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher(***)")
    }
}

impl Hasher {
    /// Creates a hasher with the given key.
    pub(crate) fn new(key: &Secret<Vec<u8>>) -> Self {
        Hasher(Hmac::new_from_slice(key.expose()).expect("HMAC takes keys of any length"))
    }

    /// Returns the keyed hash of `bytes` in a domain.
    pub fn hash(&self, kind: HashOf, bytes: &[u8]) -> KeyedHash {
        let mut mac = self.0.clone();
        mac.update(&[kind as u8]);
        mac.update(bytes);
        mac.finalize().into_bytes().into()
    }

    /// Returns the keyed hash of a row in a domain.
    pub(crate) fn row(&self, kind: HashOf, parts: &[HashedValue<'_>]) -> KeyedHash {
        self.mac_of_row(kind, parts).finalize().into_bytes().into()
    }

    /// Returns whether `mac` is the keyed hash of a row.
    pub(crate) fn is_row(&self, kind: HashOf, parts: &[HashedValue<'_>], mac: Option<&[u8]>) -> bool {
        mac.is_some_and(|mac| self.mac_of_row(kind, parts).verify_slice(mac).is_ok())
    }

    /// Prefixes every part with its type, and bytes with their length, so that no two rows have the
    /// same input.
    fn mac_of_row(&self, kind: HashOf, parts: &[HashedValue<'_>]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(&[kind as u8]);
        for part in parts {
            match part {
                HashedValue::Nothing => mac.update(&[0]),
                HashedValue::Int(number) => {
                    mac.update(&[1]);
                    mac.update(&number.to_le_bytes());
                }
                HashedValue::Bytes(bytes) => {
                    mac.update(&[2]);
                    mac.update(&(bytes.len() as u64).to_le_bytes());
                    mac.update(bytes);
                }
            }
        }
        mac
    }
}

/// Returns `N` random bytes from the operating system.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

fn derive(key: &[u8], purpose: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(purpose);
    Zeroizing::new(mac.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(count: usize) -> (Vec<Secret<String>>, KeyRing) {
        let texts: Vec<_> = (0..count).map(|_| SealingKey::generate()).collect();
        let ring = KeyRing::parse(&texts).expect("generated keys parse");
        (texts, ring)
    }

    const PLACE: SealContext<'static> = SealContext { column: "grants.refresh", client: "c1", row: b"g1" };

    #[test]
    fn a_sealed_value_opens_in_its_place_and_nowhere_else() {
        let (_, ring) = ring(1);
        let sealed = ring.seal(&PLACE, b"token");
        assert_eq!(ring.open(&PLACE, &sealed).expect("opens").expose(), b"token");
        for elsewhere in [
            SealContext { client: "c2", ..PLACE },
            SealContext { row: b"g2", ..PLACE },
            SealContext { column: "grants.access", ..PLACE },
            SealContext { client: "c1g", row: b"1", ..PLACE },
        ] {
            assert_eq!(ring.open(&elsewhere, &sealed).unwrap_err(), SealError::Broken, "{elsewhere:?}");
        }
    }

    #[test]
    fn any_flipped_bit_or_cut_byte_keeps_it_shut() {
        let (_, ring) = ring(1);
        let sealed = ring.seal(&PLACE, b"token");
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(ring.open(&PLACE, &flipped).is_err(), "bit {bit}");
        }
        for cut in 0..sealed.len() {
            assert!(ring.open(&PLACE, &sealed[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_rotated_ring_reads_old_and_new_and_the_old_key_alone_does_not_read_new() {
        let (texts, both) = ring(2);
        let old = KeyRing::parse(&texts[1..]).expect("one key");
        let sealed_before = old.seal(&PLACE, b"before");
        let sealed_after = both.seal(&PLACE, b"after");
        assert_eq!(both.open(&PLACE, &sealed_before).expect("opens").expose(), b"before");
        assert_eq!(both.open(&PLACE, &sealed_after).expect("opens").expose(), b"after");
        let missing = old.open(&PLACE, &sealed_after).unwrap_err();
        assert_eq!(missing, SealError::KeyMissing(both.newest().id()));
    }

    #[test]
    fn no_two_sealings_share_a_nonce() {
        let (_, ring) = ring(1);
        let nonces: std::collections::HashSet<Vec<u8>> =
            (0..10_000).map(|_| ring.seal(&PLACE, b"same")[1 + KEY_ID_BYTES..HEAD_BYTES].to_vec()).collect();
        assert_eq!(nonces.len(), 10_000);
    }

    #[test]
    fn a_text_that_is_no_key_is_refused_without_repeating_it() {
        for text in ["", "sbk_", "hunter2", "sbk_hunter2", "sbk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
            let refused = SealingKey::parse(&text.into()).unwrap_err();
            assert_eq!(refused, SealError::NotAKey);
            assert!(!format!("{refused} {refused:?}").contains("hunter2"));
        }
    }

    #[test]
    fn a_key_given_twice_is_refused() {
        let (texts, _) = ring(1);
        let twice = [texts[0].clone(), texts[0].clone()];
        assert!(matches!(KeyRing::parse(&twice), Err(SealError::KeyTwice(_))));
    }

    #[test]
    fn neither_key_nor_hasher_shows_in_debug_output() {
        let (texts, ring) = ring(1);
        let key_text = texts[0].expose().trim_start_matches(KEY_PREFIX).to_owned();
        let shown = format!("{ring:?} {:?}", Hasher::new(&Secret::new(key_text.clone().into_bytes())));
        assert!(!shown.contains(&key_text), "{shown}");
    }

    #[test]
    fn a_row_with_any_other_part_is_another_row() {
        let hasher = Hasher::new(&Secret::new(vec![7; 32]));
        let parts = [HashedValue::from("acme"), HashedValue::from(None::<&str>), HashedValue::from(Some(7))];
        let mac = hasher.row(HashOf::ClientRow, &parts);
        assert!(hasher.is_row(HashOf::ClientRow, &parts, Some(&mac)));
        assert!(!hasher.is_row(HashOf::ClientRow, &parts, None));
        assert!(!hasher.is_row(HashOf::TokenRow, &parts, Some(&mac)));
        for other in [
            [HashedValue::from("acmf"), HashedValue::Nothing, HashedValue::Int(7)],
            [HashedValue::from("acme"), HashedValue::from(""), HashedValue::Int(7)],
            [HashedValue::from("acme"), HashedValue::Nothing, HashedValue::Nothing],
            [HashedValue::from("acme"), HashedValue::Nothing, HashedValue::Bytes(&[7, 0, 0, 0, 0, 0, 0, 0])],
        ] {
            assert!(!hasher.is_row(HashOf::ClientRow, &other, Some(&mac)), "{other:?}");
        }
        let split = [HashedValue::from("ab"), HashedValue::from("c")];
        let mac = hasher.row(HashOf::TokenRow, &split);
        assert!(!hasher.is_row(
            HashOf::TokenRow,
            &[HashedValue::from("a"), HashedValue::from("bc")],
            Some(&mac)
        ));
    }

    #[test]
    fn hashes_of_different_kinds_differ() {
        let hasher = Hasher::new(&Secret::new(vec![7; 32]));
        assert_ne!(hasher.hash(HashOf::ClientToken, b"x"), hasher.hash(HashOf::ConnectState, b"x"));
    }
}
