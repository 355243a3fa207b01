//! Escapes external text for logs, so that control characters can neither forge a line nor control
//! the reader's terminal. The module `redact` of the engine masks credentials in external text. The
//! gateway's own secrets are wrapped in `Secret`, which cannot be printed.

use std::fmt::{self, Write as _};
use switchback_engine::redact::is_active;

/// Longest external text in a log line, in characters.
const SHOWN_CHARS_MAX: usize = 512;

/// Displays a text with every character escaped that could affect a terminal or a log parser,
/// truncated to 512 characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        for c in chars.by_ref().take(SHOWN_CHARS_MAX) {
            match c {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                c if is_active(c) => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        if chars.next().is_some() { f.write_char('…') } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_forge_a_line_or_colour_the_terminal() {
        let forged = "/x\n2026 INFO all is well\u{1b}[2J\u{9b}1m\u{202e}";
        let shown = Escaped(forged).to_string();
        assert_eq!(shown, "/x\\n2026 INFO all is well\\u{1b}[2J\\u{9b}1m\\u{202e}");
        assert!(!shown.chars().any(char::is_control));
    }

    #[test]
    fn a_very_long_text_is_cut_and_says_so() {
        let shown = Escaped(&"é".repeat(SHOWN_CHARS_MAX + 1)).to_string();
        assert_eq!(shown.chars().count(), SHOWN_CHARS_MAX + 1);
        assert!(shown.ends_with('…'));
        assert!(!Escaped(&"é".repeat(SHOWN_CHARS_MAX)).to_string().ends_with('…'));
    }
}
