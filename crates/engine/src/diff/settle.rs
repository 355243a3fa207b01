//! Decides from several readings of both sides whether a difference is real.
//!
//! Two readings are taken at different times. If they differ, either the candidate is wrong or the
//! data changed in between. Repeating both until they agree cannot distinguish the two cases: it
//! forgets every wrong answer that is followed by a correct one. A candidate reading between two
//! *equal* readings of the reference does distinguish them, because no change of the data explains
//! its difference.
//!
//! - If the legacy service answered the client, the candidate's reading is followed by another one
//!   of the reference. Every difference then ends as equal, as different, or, if the reference
//!   changed at the same place, as no evidence.
//! - If the candidate answered the client, no reading of the reference precedes its answer. A
//!   difference that the next reading of the candidate repeats is real. One that does not repeat is
//!   *unsettled*, unless the reference changes again at the same place during the comparison.
//! - If the same client wrote through the gateway after its request arrived, the first two answers
//!   are not comparable, equal or not: the candidate is read again, between two readings of the
//!   reference. Repeating only the unequal pairs would again forget wrong answers.

use super::finding::{Comparison, Verdict};

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The legacy service.
    Reference,
    /// The gateway's translation of the other version.
    Candidate,
}

/// All readings of both sides so far.
#[derive(Clone, Debug)]
pub struct Readings<A> {
    /// The side that answered the client. Its answer is the first of its readings.
    pub first: Party,
    /// Whether the same client wrote through the gateway between its request and the first reading
    /// of the reference.
    pub is_written: bool,
    /// In chronological order; at least one.
    pub references: Vec<A>,
    /// In chronological order; at least one.
    pub candidates: Vec<A>,
}

/// The next step of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Read this side again.
    Ask(Party),
    /// The comparison is complete.
    End(Settled),
}

/// The outcome of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Settled {
    /// Equal, or certainly different.
    Compared(Comparison),
    /// The candidate differed once, and no change of the reference explains it.
    Unsettled(Comparison),
    /// The reference changed at the places of the difference.
    Moved,
}

/// Returns the next step. `compare` compares a reading, as the reference, with another one.
pub fn settle<A>(readings: &Readings<A>, compare: impl Fn(&A, &A) -> Comparison) -> Step {
    let (references, candidates) = (&readings.references[..], &readings.candidates[..]);
    match (readings.first, readings.is_written) {
        (Party::Reference, _) => between_references(references, candidates, compare),
        // The client's own answer is left out: the write may have changed the data after it was
        // read.
        (Party::Candidate, true) => between_references(references, &candidates[1..], compare),
        (Party::Candidate, false) => after_candidate(references, candidates, compare),
    }
}

/// Returns the outcome of a comparison that a failed reading cut short, or `None` if no pair was
/// compared yet.
pub fn settle_unfinished<A>(
    readings: &Readings<A>,
    compare: impl Fn(&A, &A) -> Comparison,
) -> Option<Settled> {
    // As in `settle`, the client's own answer is not comparable after a write.
    let anew = usize::from(readings.first == Party::Candidate && readings.is_written);
    let found = compare(&readings.references[0], readings.candidates.get(anew)?);
    let moved = readings.references.get(1).map(|after| compare(&readings.references[0], after));
    Some(match moved {
        // Without another reading of the reference, a change of the data is not excluded.
        None => Settled::Unsettled(found),
        Some(moved) => settle_unexplained(&found, &moved),
    })
}

/// Returns whether the reference accepted a call, by its status. Plans and effects of a write are
/// only evaluated for accepted calls.
pub fn is_accepted(reference_status: u16) -> bool {
    (200..400).contains(&reference_status)
}

fn between_references<A>(references: &[A], candidates: &[A], compare: impl Fn(&A, &A) -> Comparison) -> Step {
    let Some(candidate) = candidates.first() else { return Step::Ask(Party::Candidate) };
    let found = compare(&references[0], candidate);
    if found.verdict() != Verdict::Different {
        return compared_step(found);
    }
    let Some(after) = references.get(1) else { return Step::Ask(Party::Reference) };
    let moved = compare(&references[0], after);
    // The reference did not change between the readings, so the candidate is wrong.
    if moved.verdict() != Verdict::Different {
        return compared_step(found);
    }
    // The data may have changed before the candidate was read.
    let later = compare(after, candidate);
    if later.verdict() != Verdict::Different {
        return compared_step(later);
    }
    // The reference changed, but possibly elsewhere: a finding of both comparisons outside the
    // changed places is real.
    let lasting = found.lasting(&later, &moved);
    match lasting.verdict() {
        Verdict::Different => compared_step(lasting),
        Verdict::Equal | Verdict::EqualSoFar => Step::End(Settled::Moved),
    }
}

fn after_candidate<A>(references: &[A], candidates: &[A], compare: impl Fn(&A, &A) -> Comparison) -> Step {
    let found = compare(&references[0], &candidates[0]);
    if found.verdict() != Verdict::Different {
        return compared_step(found);
    }
    let Some(again) = candidates.get(1) else { return Step::Ask(Party::Candidate) };
    let repeated = compare(&references[0], again);
    // A finding of both readings of the candidate is real at places where the candidate did not
    // change.
    let lasting = found.lasting(&repeated, &compare(&candidates[0], again));
    if lasting.verdict() == Verdict::Different {
        return compared_step(lasting);
    }
    let Some(after) = references.get(1) else { return Step::Ask(Party::Reference) };
    let moved = compare(&references[0], after);
    // The second reading of the candidate lies between two readings of the reference, so it can
    // prove a difference that the first one could not.
    let lasting = repeated.lasting(&compare(after, again), &moved);
    if lasting.verdict() == Verdict::Different {
        return compared_step(lasting);
    }
    Step::End(settle_unexplained(&found, &moved))
}

fn settle_unexplained(found: &Comparison, moved: &Comparison) -> Settled {
    let left = found.apart_from(moved);
    match left.verdict() {
        Verdict::Different => Settled::Unsettled(left),
        Verdict::Equal | Verdict::EqualSoFar => Settled::Moved,
    }
}

fn compared_step(comparison: Comparison) -> Step {
    Step::End(Settled::Compared(comparison))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Cause, Finding, FindingKind};

    /// A reading of an object with two members, `$.a` and `$.b`.
    type Pair = (u8, u8);

    fn compare(reference: &Pair, candidate: &Pair) -> Comparison {
        let members = [("$.a", reference.0 != candidate.0), ("$.b", reference.1 != candidate.1)];
        let finding = |place: &str| Finding::new(place, FindingKind::Value, Cause::Upstream);
        let differing = members.iter().filter(|(_, is_different)| *is_different);
        Comparison { findings: differing.map(|(place, _)| finding(place)).collect(), ..Comparison::default() }
    }

    /// Runs a comparison with these readings to its end; returns the outcome and the readings of
    /// each side.
    fn end(
        first: Party,
        is_written: bool,
        references: &[Pair],
        candidates: &[Pair],
    ) -> (Settled, usize, usize) {
        let (mut of_reference, mut of_candidate) = (1, 1);
        loop {
            let readings = Readings {
                first,
                is_written,
                references: references[..of_reference].to_vec(),
                candidates: candidates[..of_candidate].to_vec(),
            };
            match settle(&readings, compare) {
                Step::Ask(Party::Reference) => of_reference += 1,
                Step::Ask(Party::Candidate) => of_candidate += 1,
                Step::End(settled) => return (settled, of_reference, of_candidate),
            }
        }
    }

    fn places(settled: &Settled) -> (&'static str, Vec<&str>) {
        let of = |comparison: &'_ Comparison| -> Vec<String> {
            comparison.findings.iter().map(|finding| finding.pattern.clone()).collect()
        };
        let (word, found) = match settled {
            Settled::Compared(found) if found.findings.is_empty() => ("equal", of(found)),
            Settled::Compared(found) => ("different", of(found)),
            Settled::Unsettled(found) => ("unsettled", of(found)),
            Settled::Moved => ("moved", Vec::new()),
        };
        (word, found.into_iter().map(|place| if place == "$.a" { "$.a" } else { "$.b" }).collect())
    }

    /// Name, readings of the reference, readings of the candidate, and the expected outcome with
    /// its places.
    type Case<'a> = (&'a str, &'a [Pair], &'a [Pair], (&'a str, &'a [&'a str]));

    #[test]
    fn after_the_candidate_answered() {
        let cases: [Case<'_>; 8] = [
            ("alike", &[(1, 1)], &[(1, 1)], ("equal", &[])),
            ("the same difference twice", &[(1, 1)], &[(2, 1), (2, 1)], ("different", &["$.a"])),
            ("gone when asked again", &[(1, 1), (1, 1)], &[(2, 1), (1, 1)], ("unsettled", &["$.a"])),
            ("another value each time", &[(1, 1), (1, 1)], &[(2, 1), (3, 1)], ("different", &["$.a"])),
            ("the reference changes there", &[(1, 1), (4, 1)], &[(2, 1), (1, 1)], ("moved", &[])),
            ("it changes elsewhere", &[(1, 1), (1, 4)], &[(2, 1), (1, 1)], ("unsettled", &["$.a"])),
            ("one stays, one goes", &[(1, 1)], &[(2, 2), (2, 1)], ("different", &["$.a"])),
            ("another place each time", &[(1, 1), (1, 1)], &[(2, 1), (1, 2)], ("different", &["$.b"])),
        ];
        for (name, references, candidates, wanted) in cases {
            let (settled, ..) = end(Party::Candidate, false, references, candidates);
            assert_eq!(places(&settled), (wanted.0, wanted.1.to_vec()), "{name}");
        }
    }

    #[test]
    fn after_the_reference_answered() {
        let cases: [Case<'_>; 5] = [
            ("alike", &[(1, 1)], &[(1, 1)], ("equal", &[])),
            ("different while nothing moves", &[(1, 1), (1, 1)], &[(2, 1)], ("different", &["$.a"])),
            ("both saw the change", &[(1, 1), (2, 1)], &[(2, 1)], ("equal", &[])),
            ("it moved elsewhere", &[(1, 1), (1, 4)], &[(2, 1)], ("different", &["$.a"])),
            ("it moved there, to something else", &[(1, 1), (2, 1)], &[(3, 1)], ("moved", &[])),
        ];
        for (name, references, candidates, wanted) in cases {
            let (settled, ..) = end(Party::Reference, false, references, candidates);
            assert_eq!(places(&settled), (wanted.0, wanted.1.to_vec()), "{name}");
        }
    }

    #[test]
    fn with_a_write_in_between_the_candidate_is_read_anew_whatever_it_answered() {
        for first in [(1, 1), (2, 1)] {
            let (settled, of_reference, of_candidate) =
                end(Party::Candidate, true, &[(1, 1)], &[first, (1, 1)]);
            assert_eq!((places(&settled).0, of_reference, of_candidate), ("equal", 1, 2));
            let (settled, of_reference, of_candidate) =
                end(Party::Candidate, true, &[(1, 1), (1, 1)], &[first, (2, 1)]);
            assert_eq!((places(&settled).0, of_reference, of_candidate), ("different", 2, 2));
        }
    }
}
