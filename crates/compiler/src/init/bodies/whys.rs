//! Why a route or a shape was not drafted: all reasons, not the first alone.

use super::Drafted;

/// Why a body is not drafted, and whether that is said of a field of its own or of one further down.
pub(super) struct Why {
    pub(super) text: String,
    pub(super) own: bool,
}

/// All that stands against a shape: a person wants to decide it in one go.
#[derive(Default)]
pub(super) struct Whys {
    pub(super) own: Vec<String>,
    /// The first of what lies further down.
    pub(super) within: Option<String>,
}

impl Whys {
    /// Shown in one decision.
    const SHOWN_MAX: usize = 4;
    const CHARS_MAX: usize = 900;

    pub(super) fn own(&mut self, why: String) {
        self.own.push(why);
    }

    pub(super) fn add(&mut self, why: Why) {
        match why.own {
            true => self.own(why.text),
            false => {
                self.within.get_or_insert(why.text);
            }
        }
    }

    pub(super) fn none(self) -> Drafted<()> {
        let mut all = self.own;
        let more = all.len().saturating_sub(Whys::SHOWN_MAX);
        all.truncate(Whys::SHOWN_MAX);
        if more > 0 {
            all.push(format!("and {more} fields more"));
        }
        all.extend(self.within);
        let text = all.join("; ");
        match (text.is_empty(), text.char_indices().nth(Whys::CHARS_MAX)) {
            (true, _) => Ok(()),
            (false, None) => Err(text),
            (false, Some((end, _))) => Err(format!("{} …", &text[..end])),
        }
    }
}
