//! [`Secret`]: a value that is never printed and is wiped from memory when dropped. It carries
//! tokens, client secrets and keys from where they are read to where they are used. The
//! configuration resolves references to secrets (environment, files).

use std::fmt;
use zeroize::Zeroize;

/// A value that `Debug` and `Display` render as `***`. It does not implement `Serialize`, so it
/// cannot end up in a response by accident. [`Secret::expose`] is the only access and easy to
/// search for.
#[derive(Clone)]
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Secret(value)
    }

    /// Returns the value. Keep the borrow short, and copy nothing out of it that outlives the use.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl Secret<Vec<u8>> {
    /// Converts the secret to text if it is UTF-8.
    pub(crate) fn into_text(mut self) -> Option<Secret<String>> {
        String::from_utf8(std::mem::take(&mut self.0)).ok().map(Secret)
    }
}

impl<T: Zeroize> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Secret(value)
    }
}

impl From<&str> for Secret<String> {
    fn from(value: &str) -> Self {
        Secret(value.to_owned())
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<T: Zeroize> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<'de, T: Zeroize + serde::Deserialize<'de>> serde::Deserialize<'de> for Secret<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_in_no_kind_of_formatting() {
        let secret = Secret::<String>::from("hunter2");
        let wrapped = Some((1, secret.clone()));
        for shown in
            [format!("{secret}"), format!("{secret:?}"), format!("{secret:#?}"), format!("{wrapped:?}")]
        {
            assert!(!shown.contains("hunter2"), "{shown}");
            assert!(shown.contains("***"), "{shown}");
        }
        assert_eq!(secret.expose(), "hunter2");
    }
}
