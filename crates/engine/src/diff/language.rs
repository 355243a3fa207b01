//! Guesses the language of a short text from the vocabulary of the pack's own texts: a pack lists
//! its languages and provides each reason in all of them. The guess distinguishes a translated text
//! from another text; it is not a dictionary.

use std::collections::{BTreeMap, BTreeSet};
use switchback_plan::Pack;

/// The words of each of a pack's languages.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    languages: Vec<String>,
    /// Indices of the languages in whose texts a word occurs.
    words: BTreeMap<String, BTreeSet<usize>>,
}

impl Vocabulary {
    pub(super) fn from_pack(pack: &Pack) -> Vocabulary {
        let mut vocabulary = Vocabulary { languages: pack.languages.clone(), words: BTreeMap::new() };
        for reason in &pack.reasons {
            for (at, language) in pack.languages.iter().enumerate() {
                for word in reason.texts.get(language).into_iter().flat_map(|text| words(text)) {
                    vocabulary.words.entry(word).or_default().insert(at);
                }
            }
        }
        vocabulary
    }

    /// Returns the language that most words of the text belong to, or `None` if there is a tie.
    pub(super) fn language(&self, text: &str) -> Option<&str> {
        let mut score = vec![0usize; self.languages.len()];
        for word in words(text) {
            for at in self.words.get(&word).into_iter().flatten() {
                score[*at] += 1;
            }
        }
        let best = *score.iter().max().filter(|best| **best > 0)?;
        let mut leading = score.iter().enumerate().filter(|(_, score)| **score == best);
        let (at, _) = leading.next()?;
        // A tie is no evidence for either language.
        leading.next().is_none().then(|| self.languages[at].as_str())
    }

    /// Returns whether two texts are recognized as different languages.
    pub(super) fn differ(&self, a: &str, b: &str) -> bool {
        matches!((self.language(a), self.language(b)), (Some(a), Some(b)) if a != b)
    }
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase)
}
