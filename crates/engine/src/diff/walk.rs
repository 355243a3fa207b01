//! Walks two JSON values in parallel with the tree of rules. Findings are grouped by pattern, kind
//! and cause, so that a list with a thousand equal differences yields one finding.

use super::finding::{Cause, Comparison, Coverage, Excused, Finding, FindingKind};
use super::noise::Noise;
use super::place::{Step, disclosure_at, texts};
use super::rules::{Expected, Node, OperationRules, Source};
use crate::redact::{Redactor, is_telling_name};
use switchback_json::{Object, Value};
use switchback_plan::Disclosed;

/// Bounds of one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of JSON values per body. A body with more is compared by sample.
    pub nodes: usize,
    /// Maximum number of findings per comparison. Further ones are only counted.
    pub findings: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { nodes: 50_000, findings: 64 }
    }
}

/// A value, and how much of it was read.
#[derive(Clone, Copy)]
pub(super) struct Part<'v> {
    pub value: &'v Value,
    /// Number of containers, from this one down along the last children, that were not read to
    /// their end. 0 for a complete value.
    pub open: usize,
}

impl<'v> Part<'v> {
    pub(super) fn is_open(self) -> bool {
        self.open > 0
    }

    /// Returns the child at index `at` of `count`. Only the last child of an open container can be
    /// open.
    pub(super) fn child(self, value: &'v Value, at: usize, count: usize) -> Part<'v> {
        Part { value, open: if at + 1 == count { self.open.saturating_sub(1) } else { 0 } }
    }
}

/// The state of a walk.
pub(super) struct Walk<'a> {
    rules: &'a OperationRules,
    noise: &'a Noise,
    limits: &'a Limits,
    pub redactor: &'a Redactor,
    pub at: Vec<Step>,
    found: Comparison,
    /// While `Some`, differences are only counted, up to two: enough to distinguish equal, similar
    /// and unrelated elements.
    counting: Option<u32>,
    /// Which parts of the bodies may be disclosed.
    root: Disclosed<'a>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        rules: &'a OperationRules,
        noise: &'a Noise,
        limits: &'a Limits,
        redactor: &'a Redactor,
    ) -> Walk<'a> {
        Walk {
            rules,
            noise,
            limits,
            redactor,
            at: Vec::new(),
            found: Comparison::default(),
            counting: None,
            root: Disclosed::UNKNOWN,
        }
    }

    pub(super) fn finish(self) -> Comparison {
        self.found
    }

    /// Sets which parts of the following bodies may be disclosed.
    pub(super) fn disclosing(&mut self, root: Disclosed<'a>) {
        self.root = root;
    }

    /// Records that a part of the bodies was not compared.
    pub(super) fn note_sampled(&mut self) {
        self.found.coverage = Coverage::Sample;
    }

    /// Compares two values at the same place.
    pub(super) fn value(&mut self, a: Part<'_>, b: Part<'_>, node: &Node, around: &Cause) {
        // Two differences suffice to distinguish a similar element from an unrelated one.
        if self.has_counted_enough() {
            return;
        }
        // Equal values need no excuse, even if a loss is expected.
        if node.expected.as_ref().is_some_and(|expected| expected.is_met(Some(b.value))) {
            return self.excuse_if(a.value != b.value, |excused| &mut excused.expected);
        }
        let cause = cause(&node.source, around);
        self.pair(a, b, node, cause);
    }

    fn pair(&mut self, a: Part<'_>, b: Part<'_>, node: &Node, cause: Cause) {
        match (a.value, b.value) {
            (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_)) if node.is_noise => {
                self.excuse_if(a.value != b.value, |excused| &mut excused.declared);
            }
            (Value::Object(left), Value::Object(right)) => self.objects((a, left), (b, right), node, &cause),
            (Value::Array(left), Value::Array(right)) => self.arrays((a, left), (b, right), node, &cause),
            (left, right) => {
                if let Some(kind) = self.scalars(left, right, node) {
                    match node.is_noise && kind != FindingKind::Type {
                        true => self.excuse_if(true, |excused| &mut excused.declared),
                        false => self.note(kind, Some(left), Some(right), cause),
                    }
                }
            }
        }
    }

    /// Compares two values that are not both objects or both arrays.
    fn scalars(&self, a: &Value, b: &Value, node: &Node) -> Option<FindingKind> {
        match (a, b) {
            (Value::Null, Value::Null) => None,
            (Value::Bool(a), Value::Bool(b)) => (a != b).then_some(FindingKind::Value),
            (Value::Number(a), Value::Number(b)) => match a == b {
                true => None,
                false if same_number(a.text(), b.text()) => Some(FindingKind::Spelling),
                false => Some(FindingKind::Value),
            },
            (Value::String(a), Value::String(b)) if a == b => None,
            (Value::String(a), Value::String(b)) => {
                let vocabulary = &self.rules.vocabulary;
                let is_language = node.is_text && vocabulary.differ(&a.decode(), &b.decode());
                Some(if is_language { FindingKind::Language } else { FindingKind::Value })
            }
            _ => Some(FindingKind::Type),
        }
    }

    fn objects(
        &mut self,
        (a, left): (Part<'_>, &Object),
        (b, right): (Part<'_>, &Object),
        node: &Node,
        cause: &Cause,
    ) {
        static UNKNOWN: Node = Node::UNKNOWN;
        for (at, (key, value)) in left.iter().enumerate() {
            let name = key.decode();
            let known = node.members.get(&*name);
            let cause_there =
                if known.is_none() && node.is_closed { no_line_cause(cause) } else { cause.clone() };
            let below = known.unwrap_or(&UNKNOWN);
            self.at.push(Step::Member(name.clone().into_owned()));
            match position(right, &name) {
                Some((there, other)) => {
                    let (a, b) = (a.child(value, at, left.len()), b.child(other, there, right.len()));
                    self.value(a, b, below, &cause_there);
                }
                // The member may be in the unread part of the candidate.
                None if b.is_open() => {}
                None => self.lone(FindingKind::Missing, value, below, &cause_there),
            }
            self.at.pop();
        }
        // Members of the candidate only may be in the unread part of the reference.
        if a.is_open() {
            return;
        }
        for (key, value) in right.iter().filter(|(key, _)| !left.contains_key(&key.decode())) {
            let name = key.decode();
            let known = node.members.get(&*name);
            let cause_there =
                if known.is_none() && node.is_closed { no_line_cause(cause) } else { cause.clone() };
            self.at.push(Step::Member(name.into_owned()));
            self.lone(FindingKind::Extra, value, known.unwrap_or(&UNKNOWN), &cause_there);
            self.at.pop();
        }
    }

    /// Reports a value that only one side has.
    pub(super) fn lone(&mut self, kind: FindingKind, value: &Value, node: &Node, around: &Cause) {
        let is_missing = kind == FindingKind::Missing;
        let there = (!is_missing).then_some(value);
        if node.expected.as_ref().is_some_and(|expected| expected.is_met(there)) {
            return self.excuse_if(true, |excused| &mut excused.expected);
        }
        let (reference, candidate) = if is_missing { (Some(value), None) } else { (None, Some(value)) };
        self.note(kind, reference, candidate, cause(&node.source, around));
    }

    /// Records a difference at the current place.
    pub(super) fn note(
        &mut self,
        kind: FindingKind,
        reference: Option<&Value>,
        candidate: Option<&Value>,
        cause: Cause,
    ) {
        if self.counting.is_some() {
            // Learned noise depends on the place, so the pattern is needed for counting, too.
            let (_, pattern) = texts(&self.at, self.redactor, self.root);
            let counts = !self.noise.excuses(&pattern, kind);
            return self.counting.iter_mut().for_each(|count| *count += u32::from(counts));
        }
        let (place, pattern) = texts(&self.at, self.redactor, self.root);
        if self.noise.excuses(&pattern, kind) {
            return self.excuse_if(true, |excused| &mut excused.learnt);
        }
        let disclosed = disclosure_at(&self.at, self.root);
        let mut names = self.at.iter().rev().filter_map(|step| match step {
            Step::Member(name) => Some(name.as_str()),
            Step::Element(_) => None,
        });
        // A telling name applies to all values below it, so search the ancestors first.
        let name = names.clone().find(|name| is_telling_name(name)).or_else(|| names.next());
        let sample = |value: Option<&Value>| value.map(|value| self.redactor.sample(name, disclosed, value));
        let (reference, candidate) = (sample(reference), sample(candidate));
        self.keep(Finding { place, pattern, kind, cause, times: 1, reference, candidate, detail: None });
    }

    /// Adds a finding, or increments the count of an equal one.
    pub(super) fn keep(&mut self, finding: Finding) {
        let like = |known: &&mut Finding| {
            known.kind == finding.kind && known.pattern == finding.pattern && known.cause == finding.cause
        };
        let has_room = self.found.findings.len() < self.limits.findings;
        match self.found.findings.iter_mut().find(like) {
            Some(known) => known.times = known.times.saturating_add(1),
            None if has_room => self.found.findings.push(finding),
            None => self.found.more = self.found.more.saturating_add(1),
        }
    }

    pub(super) fn excuse_if(&mut self, differs: bool, which: impl Fn(&mut Excused) -> &mut u32) {
        if differs && self.counting.is_none() {
            *which(&mut self.found.excused) += 1;
        }
    }

    /// Returns the number of differences between two values, at most two, without recording them.
    pub(super) fn differences(&mut self, a: Part<'_>, b: Part<'_>, node: &Node, around: &Cause) -> u32 {
        // Comparisons nest: counting differences of an element may count those of inner arrays.
        let before = self.counting.replace(0);
        self.value(a, b, node, around);
        std::mem::replace(&mut self.counting, before).unwrap_or(0).min(2)
    }

    pub(super) fn has_counted_enough(&self) -> bool {
        self.counting.is_some_and(|count| count >= 2)
    }
}

impl Expected {
    /// Returns whether the candidate's value is the expected one.
    fn is_met(&self, candidate: Option<&Value>) -> bool {
        match self {
            Expected::Anything => true,
            Expected::Nothing => candidate.is_none(),
            Expected::Value(value) => candidate == Some(value),
        }
    }
}

/// Returns the cause of a difference at a node whose parent has the cause `around`.
pub(super) fn cause(source: &Source, around: &Cause) -> Cause {
    match source {
        Source::Made(origin) => Cause::from_value(origin),
        Source::Copied(origin) => Cause::from_copy(origin),
        Source::Inherited => around.clone(),
    }
}

/// Returns the cause for a member that no line names, in an object with the cause `around`.
fn no_line_cause(around: &Cause) -> Cause {
    match around {
        Cause::Made { line } => Cause::Unmapped { line: line.clone() },
        around => around.clone(),
    }
}

fn position<'v>(object: &'v Object, name: &str) -> Option<(usize, &'v Value)> {
    let value = object.get(name)?;
    // Only the last member of an open object can be open, so other positions are not needed.
    let is_last =
        object.iter().next_back().map(|(_, last)| last).is_some_and(|last| std::ptr::eq(last, value));
    Some((if is_last { object.len() - 1 } else { 0 }, value))
}

/// Returns whether two number texts denote the same number, regardless of size.
pub(super) fn same_number(a: &str, b: &str) -> bool {
    a == b || matches!((Decimal::parse(a), Decimal::parse(b)), (Some(a), Some(b)) if a == b)
}

/// A number in canonical form: sign, digits without zeros at either end, and the power of ten of
/// the last digit.
#[derive(PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn parse(text: &str) -> Option<Decimal> {
        let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0').trim_end_matches('0').to_owned();
        let zeros = all.len() - all.trim_end_matches('0').len();
        let exponent = exponent.checked_sub(fraction.len() as i64)?.checked_add(zeros as i64)?;
        // Zero equals zero for any sign and exponent.
        match digits.is_empty() {
            true => Some(Decimal { is_negative: false, digits, exponent: 0 }),
            false => Some(Decimal { is_negative, digits, exponent }),
        }
    }
}
