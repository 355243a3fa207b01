//! Suggestions for misspelt words.

/// Maximum length of compared words in characters. Names are shorter, and the cost of the distance
/// is the product of both lengths.
const CHARS_MAX: usize = 80;

/// Counts comparisons of names and of findings, for tests of how work grows with a pack.
#[cfg(test)]
pub(crate) mod work {
    use std::cell::Cell;

    thread_local!(static COMPARED: Cell<usize> = const { Cell::new(0) });

    pub(crate) fn count() {
        COMPARED.set(COMPARED.get() + 1);
    }

    /// Returns the count of this thread and sets it to zero.
    pub(crate) fn take() -> usize {
        COMPARED.take()
    }
}

/// Returns the candidate nearest to `word`, if it is near enough to be a typing mistake.
///
/// The limit is one edit per three letters. A swap of neighbouring letters is one edit; differences
/// in case, `-` and `_` count zero. Among equally near candidates, the first one is returned.
pub fn suggest<'c, I, S>(word: &str, candidates: I) -> Option<&'c str>
where
    I: IntoIterator<Item = &'c S>,
    S: AsRef<str> + ?Sized + 'c,
{
    nearest(word, candidates).map(|(near, _)| near)
}

/// Like [`suggest`], with whether no other candidate is as near.
pub(super) fn nearest<'c, I, S>(word: &str, candidates: I) -> Option<(&'c str, bool)>
where
    I: IntoIterator<Item = &'c S>,
    S: AsRef<str> + ?Sized + 'c,
{
    let folded = fold(word);
    let folded_chars = folded.chars().count();
    if folded_chars > CHARS_MAX {
        return None;
    }
    let mut best: Option<(usize, &str, bool)> = None;
    for candidate in candidates {
        #[cfg(test)]
        work::count();
        let candidate = candidate.as_ref();
        let longest = word.chars().count().max(candidate.chars().count());
        if longest > CHARS_MAX || candidate == word {
            continue;
        }
        // The distance is at least the difference of the lengths. This rules out most candidates
        // cheaply.
        if folded_chars.abs_diff(candidate.chars().filter(is_folded).count()) > longest.max(3) / 3 {
            continue;
        }
        let other = fold(candidate);
        let distance = if folded == other { 0 } else { strsim::osa_distance(&folded, &other) };
        if distance > longest.max(3) / 3 {
            continue;
        }
        best = match best {
            Some((least, near, _)) if distance == least && near != candidate => Some((least, near, false)),
            Some((least, ..)) if distance >= least => best,
            _ => Some((distance, candidate, true)),
        };
    }
    best.map(|(_, candidate, is_sure)| (candidate, is_sure))
}

/// Returns the result of [`suggest`] as a sentence.
pub fn did_you_mean<'c, I, S>(word: &str, candidates: I) -> Option<String>
where
    I: IntoIterator<Item = &'c S>,
    S: AsRef<str> + ?Sized + 'c,
{
    suggest(word, candidates).map(|near| format!("did you mean `{near}`?"))
}

fn fold(word: &str) -> String {
    word.chars().filter(is_folded).flat_map(char::to_lowercase).collect()
}

fn is_folded(c: &char) -> bool {
    !matches!(c, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::{nearest, suggest};

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let words = ["type", "title", "isLarge", "additionalProperties"];
        assert_eq!(suggest("typ", &words), Some("type"));
        assert_eq!(suggest("tpye", &words), Some("type"));
        assert_eq!(suggest("is_large", &words), Some("isLarge"));
        assert_eq!(suggest("additionalPropertys", &words), Some("additionalProperties"));
        assert_eq!(suggest("colour", &words), None);
        assert_eq!(suggest("x", &words), None);
        assert_eq!(suggest("", &words), None);
    }

    #[test]
    fn equally_near_words_are_no_sure_suggestion() {
        assert_eq!(nearest("tities", &["titles", "tithes", "tities"]), Some(("titles", false)));
        assert_eq!(nearest("nmae", &["game", "name"]), Some(("name", true)));
        assert_eq!(nearest("nmae", &["name", "name"]), Some(("name", true)));
    }

    #[test]
    fn a_word_of_a_page_is_not_compared() {
        assert_eq!(suggest(&"a".repeat(100_000), &["aaaa"]), None);
    }
}
