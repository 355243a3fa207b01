//! Which member names the objects now open have had: finds a member named twice in a stream, where
//! no document exists to ask.

use super::text;
use std::collections::HashSet;

/// Objects with more members than this get a hash set; `HashSet` is keyed at random, so names chosen
/// by an attacker do not degrade it.
const LINEAR_MAX: usize = 16;

/// The names seen in every open object, decoded. Holds at most the names of the objects that are
/// open at one time.
#[derive(Debug, Default)]
pub struct KeyLedger {
    bytes: Vec<u8>,
    /// End of each name in `bytes`, all open objects one after the other.
    ends: Vec<usize>,
    open: Vec<Names>,
}

#[derive(Debug)]
struct Names {
    first: usize,
    index: HashSet<Box<[u8]>>,
}

impl KeyLedger {
    /// An object opens.
    pub fn open(&mut self) {
        self.open.push(Names { first: self.ends.len(), index: HashSet::new() });
    }

    /// The innermost object closes and its names are forgotten.
    pub fn close(&mut self) {
        if let Some(names) = self.open.pop() {
            self.ends.truncate(names.first);
            self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
        }
    }

    /// Bytes of all names held.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Notes a name of the innermost object, given as it stands between its quotes, checked.
    /// Returns false when the object has had it.
    pub fn insert(&mut self, raw: &str) -> bool {
        let key = text::decode(raw);
        let key = key.as_bytes();
        let Some(names) = self.open.last_mut() else {
            return true;
        };
        let (first, count) = (names.first, self.ends.len() - names.first);
        let fresh = if count <= LINEAR_MAX {
            !(first..self.ends.len()).any(|at| name(&self.bytes, &self.ends, at) == key)
        } else {
            names.index.insert(key.into())
        };
        if fresh {
            self.bytes.extend_from_slice(key);
            self.ends.push(self.bytes.len());
            if count == LINEAR_MAX {
                let all = (first..self.ends.len()).map(|at| name(&self.bytes, &self.ends, at).into());
                names.index = all.collect();
            }
        }
        fresh
    }
}

fn name<'a>(bytes: &'a [u8], ends: &[usize], at: usize) -> &'a [u8] {
    let start = if at == 0 { 0 } else { ends[at - 1] };
    &bytes[start..ends[at]]
}
