//! The members of a JSON object, in the order of the text. Names are unique and found after
//! decoding. Small objects are searched linearly, large ones have an index, so both many small
//! objects and one with 100,000 members are fast.

use super::{Str, Value, dismantle};
use std::collections::HashMap;

/// Maximum members of an object without an index.
const LINEAR_MAX: usize = 32;

/// An ordered JSON object. Names that are equal after decoding escapes are one name.
#[derive(Default)]
pub struct Object {
    members: Vec<(Str, Value)>,
    /// Position by decoded name; present exactly if there are more than [`LINEAR_MAX`] members.
    index: Option<Box<Index>>,
}

/// Boxed, because it is rare and an [`Object`] is part of every [`Value`].
struct Index {
    places: HashMap<Box<str>, usize>,
}

impl Object {
    /// Returns an empty object.
    pub fn new() -> Object {
        Object::default()
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the value of the member with the decoded name `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.position(key).map(|at| &self.members[at].1)
    }

    /// Returns the value of the member with the decoded name `key`.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.position(key).map(|at| &mut self.members[at].1)
    }

    /// Returns whether there is a member with the decoded name `key`.
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// Sets the member `key`. Replaces and returns the value of an existing member, or
    /// adds one at the end.
    pub fn insert(&mut self, key: impl Into<Str>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        match self.position(&key.decode()) {
            Some(at) => Some(std::mem::replace(&mut self.members[at].1, value)),
            None => {
                self.push(key, value);
                None
            }
        }
    }

    /// Adds a member at the end, or returns it if the name exists.
    pub fn insert_new(&mut self, key: Str, value: Value) -> Result<(), (Str, Value)> {
        if self.contains_key(&key.decode()) {
            return Err((key, value));
        }
        self.push(key, value);
        Ok(())
    }

    /// Removes and returns the member `key`; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.position(key)?;
        let (_, value) = self.members.remove(at);
        self.reindex();
        Some(value)
    }

    /// Retains the members for which `keep` returns true, in one pass.
    pub fn retain(&mut self, mut keep: impl FnMut(&Str, &mut Value) -> bool) {
        self.members.retain_mut(|(key, value)| keep(key, value));
        self.reindex();
    }

    /// Returns the members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Str, &Value)> + DoubleEndedIterator {
        self.members.iter().map(|(key, value)| (key, value))
    }

    /// Returns the members in order; names are immutable.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&Str, &mut Value)> {
        self.members.iter_mut().map(|(key, value)| (&*key, value))
    }

    /// Returns the names in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Str> {
        self.members.iter().map(|(key, _)| key)
    }

    /// Returns the values in order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> {
        self.members.iter().map(|(_, value)| value)
    }

    fn position(&self, key: &str) -> Option<usize> {
        match &self.index {
            Some(index) => index.places.get(key).copied(),
            None => self.members.iter().position(|(name, _)| name.is(key)),
        }
    }

    /// The name must be new.
    fn push(&mut self, key: Str, value: Value) {
        if let Some(index) = &mut self.index {
            index.places.insert(key.decode().into(), self.members.len());
        }
        self.members.push((key, value));
        if self.index.is_none() {
            self.reindex();
        }
    }

    fn reindex(&mut self) {
        self.index = (self.members.len() > LINEAR_MAX).then(|| {
            let names = self.members.iter().enumerate();
            Box::new(Index { places: names.map(|(at, (key, _))| (key.decode().into(), at)).collect() })
        });
    }

    pub(super) fn take_values(&mut self) -> impl Iterator<Item = Value> + use<> {
        self.index = None;
        std::mem::take(&mut self.members).into_iter().map(|(_, value)| value)
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if self.members.iter().any(|(_, value)| value.has_children()) {
            dismantle(self.take_values().collect());
        }
    }
}

impl IntoIterator for Object {
    type Item = (Str, Value);
    type IntoIter = std::vec::IntoIter<(Str, Value)>;

    fn into_iter(mut self) -> Self::IntoIter {
        std::mem::take(&mut self.members).into_iter()
    }
}

/// A later member with an equal name replaces the value of an earlier one, like [`Object::insert`].
impl<K: Into<Str>, V: Into<Value>> FromIterator<(K, V)> for Object {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Object {
        let mut object = Object::new();
        for (key, value) in members {
            object.insert(key, value);
        }
        object
    }
}
