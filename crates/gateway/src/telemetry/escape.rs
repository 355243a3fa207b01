//! Making text from outside fit for a log: control characters are escaped, so that nobody can forge a line or move the
//! reader's cursor. Masking credentials in texts of others is the business of the room `redact`; secrets of our own never
//! get here: they are wrapped in `Secret`, which has no way to print itself.

use std::fmt::{self, Write as _};
use switchback_engine::redact::is_active;

/// Most characters of a text from outside that a log line repeats.
const SHOWN_CHARS_MAX: usize = 512;

/// Displays a text with every character that could act on a terminal or on a log parser written as an escape, cut after
/// 512 characters.
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
