//! Configuration keys for operations: `GET /things`, `default`, and the same with a side in front
//! where clients use several sides. Plain values.

use std::fmt;

/// Selects the operations that a setting applies to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationKey {
    /// The side; `None` for every side.
    pub side: Option<String>,
    /// The operation, such as `GET /things/{id}`; `None` for all operations without their own
    /// setting.
    pub operation: Option<String>,
}

const DEFAULT: &str = "default";

impl OperationKey {
    /// Parses `default`, `GET /things`, `v1 default` or `v1 GET /things`.
    pub fn parse(text: &str) -> OperationKey {
        let words: Vec<&str> = text.split_whitespace().collect();
        let of = |side: Option<&str>, operation: &str| OperationKey {
            side: side.map(str::to_owned),
            operation: (operation != DEFAULT).then(|| operation.to_owned()),
        };
        match words.as_slice() {
            [side, word] if *word == DEFAULT => of(Some(side), word),
            [side, method, path] => of(Some(side), &format!("{method} {path}")),
            _ => of(None, text.trim()),
        }
    }
}

impl fmt::Display for OperationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(side) = &self.side {
            write!(f, "{side} ")?;
        }
        f.write_str(self.operation.as_deref().unwrap_or(DEFAULT))
    }
}

/// A setting per operation, sorted by key.
#[derive(Clone, Debug, PartialEq)]
pub struct PerOperation<T>(Vec<(OperationKey, T)>);

impl<T> Default for PerOperation<T> {
    fn default() -> PerOperation<T> {
        PerOperation(Vec::new())
    }
}

impl<T> FromIterator<(OperationKey, T)> for PerOperation<T> {
    fn from_iter<I: IntoIterator<Item = (OperationKey, T)>>(entries: I) -> PerOperation<T> {
        let mut entries: Vec<_> = entries.into_iter().collect();
        // Of two spellings of a key, which differ in white space, the last one counts.
        entries.reverse();
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        entries.dedup_by(|(one, _), (other, _)| one == other);
        PerOperation(entries)
    }
}

impl<T> PerOperation<T> {
    /// Returns the value of the most specific key that matches an operation of a side.
    pub fn get(&self, side: &str, operation: &str) -> Option<&T> {
        // A named operation outweighs a named side.
        let keys = [(Some(side), Some(operation)), (None, Some(operation)), (Some(side), None), (None, None)];
        let find = |(side, operation): (Option<&str>, Option<&str>)| {
            let of =
                |key: &OperationKey| (key.side.as_deref(), key.operation.as_deref()).cmp(&(side, operation));
            self.0.binary_search_by(|(key, _)| of(key)).ok()
        };
        keys.into_iter().find_map(find).map(|at| &self.0[at].1)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_that_says_most_wins() {
        let keys = ["default", "v1 default", "v1 GET /c", "GET /a", "v1 GET /a", "v2 GET /b", "v1  GET  /c"];
        let all: PerOperation<&str> = keys.iter().map(|key| (OperationKey::parse(key), *key)).collect();
        for (side, operation, key) in [
            ("v2", "GET /z", "default"),
            ("v1", "GET /z", "v1 default"),
            ("v2", "GET /a", "GET /a"),
            ("v1", "GET /a", "v1 GET /a"),
            ("v2", "GET /b", "v2 GET /b"),
            ("v1", "GET /b", "v1 default"),
            ("v1", "GET /c", "v1  GET  /c"),
        ] {
            assert_eq!(all.get(side, operation), Some(&key), "{side} {operation}");
        }
        assert_eq!(PerOperation::<u8>::default().get("v1", "GET /a"), None);
    }

    #[test]
    fn keys_are_written_as_they_are_read() {
        for text in ["default", "GET /a/{id}", "v1 default", "v1 GET /a/{id}", "nonsense"] {
            assert_eq!(OperationKey::parse(text).to_string(), text);
        }
    }
}
