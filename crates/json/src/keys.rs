//! The member names of open objects, to find duplicates in a stream.

use super::text;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};

/// Objects with more members than this have a hash index. Its key is random, so that chosen names
/// cannot degrade it.
const LINEAR_MAX: usize = 16;

/// The decoded names of all open objects.
#[derive(Debug, Default)]
pub struct KeyLedger {
    bytes: Vec<u8>,
    /// All names, grouped by open object.
    names: Vec<Name>,
    open: Vec<Names>,
    hasher: RandomState,
}

/// A name: its end in the bytes of the ledger, and a short key that differs for most names.
#[derive(Clone, Copy, Debug)]
struct Name {
    end: usize,
    mark: u64,
}

#[derive(Debug)]
struct Names {
    first: usize,
    /// Positions of names by hash, for large objects. The texts are not stored twice: copying each
    /// would cost more than all other work.
    index: Option<HashMap<u64, usize>>,
}

impl KeyLedger {
    /// Opens an object.
    pub fn open(&mut self) {
        if self.open.is_empty() {
            // Most objects are small; a larger first allocation avoids repeated growth.
            self.bytes.reserve(64);
            self.names.reserve(8);
        }
        self.open.push(Names { first: self.names.len(), index: None });
    }

    /// Closes the innermost object and removes its names.
    pub fn close(&mut self) {
        if let Some(names) = self.open.pop() {
            self.names.truncate(names.first);
            self.bytes.truncate(self.names.last().map_or(0, |name| name.end));
        }
    }

    /// Returns the bytes of all stored names.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of names of the innermost object.
    pub fn len(&self) -> usize {
        self.open.last().map_or(0, |names| self.names.len() - names.first)
    }

    /// Returns whether the innermost object has no name yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a valid name of the innermost object, with its escapes.
    /// Returns whether it is new.
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
                // If two names have the same hash, which is improbable, the first one has the entry.
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

/// The stored names.
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

    /// Returns whether one of the names from `first` equals this one.
    fn has(self, first: usize, mark: u64, key: &[u8]) -> bool {
        let mut alike = self.names[first..].iter().zip(first..).filter(|(other, _)| other.mark == mark);
        alike.any(|(_, at)| self.name(at) == key)
    }
}

/// The length, the first and the last bytes of a name: few names of one object agree in all. An
/// attacker can choose names that do, but large objects use the hash index.
fn mark(name: &[u8]) -> u64 {
    let mut bytes = [name.len() as u8; 8];
    let start = name.len().min(4);
    bytes[..start].copy_from_slice(&name[..start]);
    let end = (name.len() - start).min(3);
    bytes[4..4 + end].copy_from_slice(&name[name.len() - end..]);
    u64::from_le_bytes(bytes)
}
