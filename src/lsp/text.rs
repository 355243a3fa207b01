//! Places of the Language Server Protocol: positions in the negotiated encoding, and file URIs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The unit in which columns are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnUnit {
    /// Bytes.
    Utf8,
    /// 16-bit units, the default of the protocol.
    Utf16,
}

impl ColumnUnit {
    /// Returns the best encoding that the client offers.
    pub(super) fn negotiate(initialize: &Value) -> ColumnUnit {
        let offered = initialize.pointer("/capabilities/general/positionEncodings");
        let offered =
            offered.and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == "utf-8"));
        if offered { ColumnUnit::Utf8 } else { ColumnUnit::Utf16 }
    }

    /// Returns the name of the encoding in the protocol.
    pub(super) fn name(self) -> &'static str {
        match self {
            ColumnUnit::Utf8 => "utf-8",
            ColumnUnit::Utf16 => "utf-16",
        }
    }

    fn len(self, c: char) -> usize {
        match self {
            ColumnUnit::Utf8 => c.len_utf8(),
            ColumnUnit::Utf16 => c.len_utf16(),
        }
    }

    /// Returns the position of a byte offset. An offset past the end is the end.
    pub(super) fn position(self, text: &str, offset: u32) -> Value {
        let before = &text[..text.floor_char_boundary(offset as usize)];
        let line = before.matches('\n').count();
        let column: usize = before.rsplit('\n').next().unwrap_or("").chars().map(|c| self.len(c)).sum();
        json!({"line": line, "character": column})
    }

    /// Returns the range of two byte offsets.
    pub(super) fn range(self, text: &str, start: u32, end: u32) -> Value {
        json!({"start": self.position(text, start), "end": self.position(text, end)})
    }

    /// Returns the byte offset of a position, or `None` if it has no line and column. A position past
    /// the end of its line is the end of the line.
    pub(super) fn offset(self, text: &str, position: &Value) -> Option<u32> {
        let [line, column] = ["line", "character"].map(|name| position.get(name).and_then(Value::as_u64));
        let (line, column) = (usize::try_from(line?).ok()?, usize::try_from(column?).ok()?);
        let Some(content) = text.split_inclusive('\n').nth(line) else {
            return u32::try_from(text.len()).ok();
        };
        let start = content.as_ptr() as usize - text.as_ptr() as usize;
        let (mut at, mut seen) = (start, 0);
        for c in content.trim_end_matches(['\r', '\n']).chars() {
            seen += self.len(c);
            if seen > column {
                break;
            }
            at += c.len_utf8();
        }
        u32::try_from(at).ok()
    }
}

/// Characters that a path keeps in a URI (RFC 3986, section 3.3).
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'@');

/// Returns the path of a file URI, or `None` for any other URI.
pub(super) fn path_of(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://")?;
    let path = percent_decode_str(path).decode_utf8().ok()?;
    path.starts_with('/').then(|| PathBuf::from(path.as_ref()))
}

/// Returns the URI of a file.
pub(super) fn uri_of(path: &Path) -> String {
    format!("file://{}", utf8_percent_encode(&path.to_string_lossy(), PATH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_units_of_the_encoding() {
        let text = "a\né😀x\n";
        for (encoding, column) in [(ColumnUnit::Utf8, 6), (ColumnUnit::Utf16, 3)] {
            let at = text.find('x').expect("it is there") as u32;
            let position = json!({"line": 1, "character": column});
            assert_eq!(encoding.position(text, at), position);
            assert_eq!(encoding.offset(text, &position), Some(at));
        }
    }

    #[test]
    fn a_position_outside_of_the_text_or_within_a_character_is_a_place_near_it() {
        let text = "ab\n😀";
        let offset =
            |line, character| ColumnUnit::Utf16.offset(text, &json!({"line": line, "character": character}));
        assert_eq!([offset(0, 99), offset(9, 0), offset(1, 1)], [Some(2), Some(7), Some(3)]);
        assert_eq!(ColumnUnit::Utf16.offset(text, &json!({"line": -1})), None);
    }

    #[test]
    fn a_path_survives_its_uri() {
        let path = Path::new("/a b/c#d/ü.map.yaml");
        assert_eq!(path_of(&uri_of(path)).as_deref(), Some(path));
        assert_eq!(path_of("untitled:1"), None);
    }
}
