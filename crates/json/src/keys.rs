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
    /// What tells most names apart, in the same order.
    marks: Vec<u64>,
    open: Vec<Names>,
}

#[derive(Debug)]
struct Names {
    first: usize,
    /// All names, once they are many.
    index: Option<HashSet<Box<[u8]>>>,
}

impl KeyLedger {
    /// An object opens.
    pub fn open(&mut self) {
        self.open.push(Names { first: self.ends.len(), index: None });
    }

    /// The innermost object closes and its names are forgotten.
    pub fn close(&mut self) {
        if let Some(names) = self.open.pop() {
            self.ends.truncate(names.first);
            self.marks.truncate(names.first);
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
        let (first, mark) = (names.first, mark(key));
        let fresh = match &mut names.index {
            Some(index) => index.insert(key.into()),
            None => {
                let alike = self.marks[first..].iter().zip(first..).filter(|(other, _)| **other == mark);
                !alike.into_iter().any(|(_, at)| name(&self.bytes, &self.ends, at) == key)
            }
        };
        if fresh {
            self.bytes.extend_from_slice(key);
            self.ends.push(self.bytes.len());
            self.marks.push(mark);
            if names.index.is_none() && self.ends.len() - first > LINEAR_MAX {
                let all = (first..self.ends.len()).map(|at| name(&self.bytes, &self.ends, at).into());
                names.index = Some(all.collect());
            }
        }
        fresh
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

fn name<'a>(bytes: &'a [u8], ends: &[usize], at: usize) -> &'a [u8] {
    let start = if at == 0 { 0 } else { ends[at - 1] };
    &bytes[start..ends[at]]
}
