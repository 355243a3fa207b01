//! Which member names the objects now open have had: finds a member named twice in a stream, where
//! no document exists to ask.

use super::text;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};

/// Objects with more members than this get an index by hash. It is keyed at random, so names chosen by
/// an attacker do not degrade it.
const LINEAR_MAX: usize = 16;

/// The names seen in every open object, decoded. Holds at most the names of the objects that are
/// open at one time.
#[derive(Debug, Default)]
pub struct KeyLedger {
    bytes: Vec<u8>,
    /// All names, those of all open objects one after the other.
    names: Vec<Name>,
    open: Vec<Names>,
    hasher: RandomState,
}

/// A name in the bytes of its ledger: where it ends, and what tells most names apart.
#[derive(Clone, Copy, Debug)]
struct Name {
    end: usize,
    mark: u64,
}

#[derive(Debug)]
struct Names {
    first: usize,
    /// The places of all names by their hashes, once they are many. The texts are not kept a second
    /// time: a copy of each would cost more than all else that is done with it.
    index: Option<HashMap<u64, usize>>,
}

impl KeyLedger {
    /// An object opens.
    pub fn open(&mut self) {
        if self.open.is_empty() {
            // Most objects are small, and growing step by step costs more than noting their names.
            self.bytes.reserve(64);
            self.names.reserve(8);
        }
        self.open.push(Names { first: self.names.len(), index: None });
    }

    /// The innermost object closes and its names are forgotten.
    pub fn close(&mut self) {
        if let Some(names) = self.open.pop() {
            self.names.truncate(names.first);
            self.bytes.truncate(self.names.last().map_or(0, |name| name.end));
        }
    }

    /// Bytes of all names held.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Names of the innermost object.
    pub fn len(&self) -> usize {
        self.open.last().map_or(0, |names| self.names.len() - names.first)
    }

    /// Whether the innermost object has had no name yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes a name of the innermost object, given as it stands between its quotes, checked.
    /// Returns false when the object has had it.
    pub fn insert(&mut self, raw: &str) -> bool {
        let key = text::decode(raw);
        let key = key.as_bytes();
        let Some(names) = self.open.last_mut() else {
            return true;
        };
        let (first, mark) = (names.first, mark(key));
        let all = Kept { bytes: &self.bytes, names: &self.names };
        let place = self.names.len();
        let fresh = match &mut names.index {
            Some(index) => match index.entry(self.hasher.hash_one(key)) {
                Entry::Vacant(entry) => {
                    entry.insert(place);
                    true
                }
                // Of two names with one hash, which chance alone does not bring, the first has the entry.
                Entry::Occupied(entry) => all.name(*entry.get()) != key && !all.has(first, mark, key),
            },
            None => !all.has(first, mark, key),
        };
        if fresh {
            self.bytes.extend_from_slice(key);
            self.names.push(Name { end: self.bytes.len(), mark });
            if names.index.is_none() && self.names.len() - first > LINEAR_MAX {
                let all = Kept { bytes: &self.bytes, names: &self.names };
                let places = first..self.names.len();
                names.index = Some(places.map(|at| (self.hasher.hash_one(all.name(at)), at)).collect());
            }
        }
        fresh
    }
}

/// Names that were noted.
#[derive(Clone, Copy)]
struct Kept<'k> {
    bytes: &'k [u8],
    names: &'k [Name],
}

impl<'k> Kept<'k> {
    fn name(self, at: usize) -> &'k [u8] {
        let start = if at == 0 { 0 } else { self.names[at - 1].end };
        &self.bytes[start..self.names[at].end]
    }

    /// Whether a name is among those from `first` on.
    fn has(self, first: usize, mark: u64, key: &[u8]) -> bool {
        let mut alike = self.names[first..].iter().zip(first..).filter(|(other, _)| other.mark == mark);
        alike.any(|(_, at)| self.name(at) == key)
    }
}

/// The length of a name and its first and last bytes: alike for few names of one object. Names that an
/// attacker makes alike are few as well, since many go into the hash set.
fn mark(name: &[u8]) -> u64 {
    let mut bytes = [name.len() as u8; 8];
    let start = name.len().min(4);
    bytes[..start].copy_from_slice(&name[..start]);
    let end = (name.len() - start).min(3);
    bytes[4..4 + end].copy_from_slice(&name[name.len() - end..]);
    u64::from_le_bytes(bytes)
}
