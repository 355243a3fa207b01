//! Compiles conditions (`present: f`, `one_of: {f: [a, b]}`, …): checks that their places exist and
//! their values can occur, and derives facts about these places for the case that a condition
//! holds.

use super::context::kinds_of;
use super::faults;
use super::flow::{Fact, Flow};
use super::paths::FoundPath;
use super::proof::{ProvenFact, form_of, is_told_by_kind};
use super::route::RouteCheck;
use crate::contract::{JsonKind, Literal, ScalarKind, TypeKind};
use crate::mapping::ast::{self, PredicateWord, Spanned};
use crate::mapping::literal;
use crate::yaml::Node;
use switchback_plan::{self as plan, Predicate};

/// A lowered condition, with the facts that follow from it.
pub(super) struct Condition {
    pub predicate: Predicate,
    /// By the names that lead to a place.
    pub facts: Vec<(Vec<String>, Fact)>,
}

impl RouteCheck<'_, '_> {
    pub(super) fn condition(&mut self, written: &ast::PredicateDecl, flow: &Flow) -> Option<Condition> {
        if !written.of.is_empty() {
            return self.compound(written, flow);
        }
        // Resolve all places before returning, so that every invalid one is reported.
        let places: Vec<_> =
            written.places.iter().map(|place| self.reading(flow).find_spanned(place)).collect();
        let places = places.into_iter().collect::<Option<Vec<FoundPath>>>()?;
        if places.is_empty() {
            self.findings.push(faults::condition_without_place(written.word.span));
            return None;
        }
        let word = written.word.value;
        let one = || places[0].location.clone();
        let all = || places.iter().map(|found| found.location.clone()).collect();
        let (predicate, fact, proven) = match word {
            PredicateWord::Conforms => {
                let fields = self.conforming(&places, &written.places)?;
                (Predicate::Conforms(fields), None, Some(ProvenFact::Conforms))
            }
            PredicateWord::Present => {
                (Predicate::Present(one()), Some(Fact::Present), Some(ProvenFact::There))
            }
            PredicateWord::AllPresent => {
                (Predicate::AllPresent(all()), Some(Fact::Present), Some(ProvenFact::There))
            }
            PredicateWord::NotNull => (Predicate::NotNull(all()), Some(Fact::NotNull), None),
            PredicateWord::Missing => (Predicate::Missing(one()), None, None),
            PredicateWord::AnyPresent => (Predicate::AnyPresent(all()), None, None),
            PredicateWord::NonePresent => (Predicate::NonePresent(all()), None, None),
            PredicateWord::OneOf => {
                let values = self.values(&places[0], &written.values)?;
                let listed = written.values.iter().map(literal::json).collect();
                (Predicate::OneOf(one(), listed), Some(Fact::OneOf(values)), Some(ProvenFact::Typed))
            }
            PredicateWord::Kind => {
                let kinds = self.kind_words(&written.values)?;
                let is_typed = |found: &FoundPath| {
                    is_told_by_kind(&found.held.ty, &kinds, self.env.types(found.held.side))
                };
                let proven = places.iter().all(is_typed).then_some(ProvenFact::Typed);
                (Predicate::Kind(one(), kinds_of(&kinds)), Some(Fact::Kinds(kinds)), proven)
            }
            PredicateWord::Equal | PredicateWord::AbsentOrEqual => {
                self.comparable(&places, &written.places)?;
                let other = places[1].location.clone();
                let predicate = match word {
                    PredicateWord::Equal => Predicate::Equal(one(), other),
                    _ => Predicate::AbsentOrEqual(one(), other),
                };
                (predicate, None, None)
            }
            // Compiled above, because they have operands instead of places.
            PredicateWord::All | PredicateWord::Any | PredicateWord::Not => return None,
        };
        let of_places = |fact: Fact| {
            let steps = places.iter().filter_map(FoundPath::steps);
            steps.map(move |steps| (steps, fact.clone()))
        };
        let mut facts: Vec<_> = fact.into_iter().chain(proven.map(Fact::Known)).flat_map(of_places).collect();
        // A condition may list the same place twice.
        facts.dedup_by(|a, b| {
            a.0 == b.0 && matches!((&a.1, &b.1), (Fact::Known(a), Fact::Known(b)) if a == b)
        });
        Some(Condition { predicate, facts })
    }

    /// Compiles `all`, `any` and `not`. `all` implies the facts of every operand, `any` those that
    /// all operands have in common, and `not` the negation of its operand where that is a fact.
    fn compound(&mut self, written: &ast::PredicateDecl, flow: &Flow) -> Option<Condition> {
        let of: Vec<_> = written.of.iter().map(|one| self.condition(one, flow)).collect();
        let of = of.into_iter().collect::<Option<Vec<Condition>>>()?;
        let facts = match written.word.value {
            PredicateWord::All => of.iter().flat_map(|one| one.facts.clone()).collect(),
            PredicateWord::Any => {
                of.iter().skip(1).fold(of[0].facts.clone(), |facts, one| either(&facts, &one.facts))
            }
            // The operand has been checked above, so its negation is derived without findings.
            _ => self.opposite(&written.of[0], flow),
        };
        let mut predicates: Vec<_> = of.into_iter().map(|one| one.predicate).collect();
        let predicate = match written.word.value {
            PredicateWord::All => Predicate::All(predicates),
            PredicateWord::Any => Predicate::Any(predicates),
            _ => Predicate::Not(Box::new(predicates.pop()?)),
        };
        Some(Condition { predicate, facts })
    }

    /// Returns the facts that follow if a condition does not hold.
    pub(super) fn opposite(&mut self, written: &ast::PredicateDecl, flow: &Flow) -> Vec<(Vec<String>, Fact)> {
        match written.word.value {
            PredicateWord::Not => match self.quietly(|check| check.condition(&written.of[0], flow)) {
                Some(condition) => condition.facts,
                None => Vec::new(),
            },
            // By De Morgan: if `any` fails, every operand fails. The negation of `all` yields no
            // fact.
            PredicateWord::Any => written.of.iter().flat_map(|one| self.opposite(one, flow)).collect(),
            // With several places, any of them could be the present one.
            PredicateWord::NonePresent if written.places.len() == 1 => {
                let present = ast::PredicateDecl {
                    word: Spanned { value: PredicateWord::Present, span: written.word.span },
                    ..written.clone()
                };
                self.quietly(|check| check.condition(&present, flow)).map(|one| one.facts).unwrap_or_default()
            }
            PredicateWord::Missing => {
                let found = self.quietly(|check| check.reading(flow).find_spanned(&written.places[0]));
                let names = found.as_ref().and_then(FoundPath::names);
                let names = names.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
                names.map(|names| (names, Fact::Filled)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Calls `work` on a condition that has been checked already, and discards its findings.
    fn quietly<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.findings.len();
        let done = work(self);
        self.findings.truncate(mark);
        done
    }

    /// Compiles `conforms`: places of the request's body with their forms from the contract.
    fn conforming(
        &mut self,
        places: &[FoundPath],
        written: &[Spanned<String>],
    ) -> Option<Vec<plan::Conform>> {
        let mut fields = Vec::new();
        for (found, written) in places.iter().zip(written) {
            let names = found.names().unwrap_or_default();
            let made = match names.split_first() {
                Some((&"request", ["body", rest @ ..])) => {
                    form_of(self.operation, self.env.types(self.serves), rest)
                }
                _ => None,
            };
            match made {
                Some((form, required)) => {
                    fields.push(plan::Conform { place: found.location.clone(), form, required });
                }
                None => self.findings.push(faults::conforms_to_nothing(written)),
            }
        }
        (fields.len() == places.len()).then_some(fields)
    }

    /// Returns the literals, which must be possible values of a place.
    fn values(&mut self, found: &FoundPath, nodes: &[Node]) -> Option<Vec<Literal>> {
        let values: Vec<_> = nodes.iter().map(|node| self.possible(found, node)).collect();
        values.into_iter().collect()
    }

    /// Returns a literal if it is a possible value of a place: of its kind, and in its list of
    /// values.
    pub(super) fn possible(&mut self, found: &FoundPath, node: &Node) -> Option<Literal> {
        let Some(value) = literal::scalar(node) else {
            self.findings.push(faults::not_a_scalar(node.span));
            return None;
        };
        let types = self.env.types(found.held.side);
        let resolved = types.resolve(&found.held.ty);
        let fits = match resolved.kind {
            TypeKind::Scalar(scalar) => match &scalar.values {
                Some(listed) => listed.values.contains(&value),
                None => is_of(&value, scalar.kind),
            },
            TypeKind::OneOf(alternatives) => alternatives.iter().any(|one| match types.resolve(one).kind {
                TypeKind::Scalar(scalar) => is_of(&value, scalar.kind),
                _ => false,
            }),
            TypeKind::Any => true,
            _ => false,
        };
        if !fits {
            let listed = match resolved.kind {
                TypeKind::Scalar(scalar) => scalar.values.as_deref(),
                _ => None,
            };
            self.findings.push(faults::impossible_value(&value, node.span, &found.held.ty, listed));
        }
        fits.then_some(value)
    }

    fn kind_words(&mut self, nodes: &[Node]) -> Option<Vec<JsonKind>> {
        const WORDS: &[(&str, JsonKind)] = &[
            ("boolean", JsonKind::Boolean),
            ("number", JsonKind::Number),
            ("string", JsonKind::String),
            ("array", JsonKind::Array),
            ("object", JsonKind::Object),
        ];
        let words: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
        let mut kinds = Vec::new();
        for node in nodes {
            let word = node.word(&words, self.findings)?;
            kinds.extend(WORDS.iter().filter(|(known, _)| *known == word).map(|(_, kind)| *kind));
        }
        Some(kinds)
    }

    /// Checks that two compared places can have equal values.
    fn comparable(&mut self, places: &[FoundPath], written: &[Spanned<String>]) -> Option<()> {
        let [left, right] = places else { return None };
        let kinds = |found: &FoundPath| self.env.types(found.held.side).json_kinds(&found.held.ty);
        let (mine, other) = (kinds(left), kinds(right));
        if !mine.iter().any(|kind| other.contains(kind)) {
            let span = written.last().map_or(left.held.ty.span, |place| place.span);
            self.findings.push(faults::never_equal_places(span, &left.held.ty, &right.held.ty));
            return None;
        }
        Some(())
    }
}

/// Returns the facts that follow from either of two conditions: those in common, and the union of
/// listed values and kinds.
fn either(a: &[(Vec<String>, Fact)], b: &[(Vec<String>, Fact)]) -> Vec<(Vec<String>, Fact)> {
    let joined = |(names, fact): &(Vec<String>, Fact)| {
        let others = || b.iter().filter(|(others, _)| others == names).map(|(_, fact)| fact);
        let fact = match fact {
            Fact::OneOf(values) => others().find_map(|other| match other {
                Fact::OneOf(more) => {
                    let more = more.iter().filter(|value| !values.contains(value));
                    Some(Fact::OneOf(values.iter().chain(more).cloned().collect()))
                }
                _ => None,
            }),
            Fact::Present => others().find(|other| matches!(other, Fact::Present)).cloned(),
            // Presence implies that the value is not null.
            Fact::NotNull => {
                others().find(|other| matches!(other, Fact::NotNull | Fact::Present)).map(|_| Fact::NotNull)
            }
            Fact::Filled => others().find(|other| matches!(other, Fact::Filled)).cloned(),
            Fact::Known(known) => {
                others().find(|other| matches!(other, Fact::Known(other) if other == known)).cloned()
            }
            // Either condition may hold, so all kinds of both remain possible.
            Fact::Kinds(kinds) => others().find_map(|other| match other {
                Fact::Kinds(more) => Some(Fact::Kinds(kinds.iter().chain(more).copied().collect())),
                _ => None,
            }),
        };
        fact.map(|fact| (names.clone(), fact))
    };
    a.iter().filter_map(joined).collect()
}

/// Returns whether a scalar is of a kind.
pub(super) fn is_of(value: &Literal, kind: ScalarKind) -> bool {
    match (value, kind) {
        (Literal::Boolean(_), ScalarKind::Boolean)
        | (Literal::Number(_), ScalarKind::Number)
        | (Literal::String(_), ScalarKind::String) => true,
        (Literal::Number(text), ScalarKind::Integer) => !text.contains(['.', 'e', 'E']),
        _ => false,
    }
}
