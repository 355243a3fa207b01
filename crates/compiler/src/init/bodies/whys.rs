//! The reasons why a route or a shape is not drafted. All reasons are collected, not only the
//! first.

use super::Drafted;

/// A reason, and whether it concerns one of the object's own fields rather than a nested type.
pub(super) struct DraftObstacle {
    pub(super) text: String,
    pub(super) own: bool,
}

/// All reasons against a shape, so that a person can resolve them together.
#[derive(Default)]
pub(super) struct Whys {
    pub(super) own: Vec<String>,
    /// First reason from a nested type.
    pub(super) within: Option<String>,
}

impl Whys {
    /// Maximum number of reasons in one decision.
    const SHOWN_MAX: usize = 4;
    const CHARS_MAX: usize = 900;

    pub(super) fn own(&mut self, why: String) {
        self.own.push(why);
    }

    pub(super) fn add(&mut self, why: DraftObstacle) {
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
