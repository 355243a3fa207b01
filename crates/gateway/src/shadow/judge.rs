//! What came of asking → what is recorded: comparisons made and redacted, noise learnt, planned calls held against the
//! contract of the side they would have gone to. Nothing leaves here with a value in it that was not redacted.

use super::job::{Done, Outcome, PlanEnd, Planned, PlannedCall, ReadBack, Subject};
use super::record::{CallRecord, Entry, Key, PlannedRecord, What};
use crate::secret::Secret;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use switchback_engine::diff::{
    BufferedAnswer, Candidate, Cause, Comparison, Coverage, Finding, FindingKind, Limits, Noise, NotReadBack,
    OperationRules, Record, SkipReason, Verdict, View, compare,
};
use switchback_engine::redact::Redactor;
use switchback_json::{self as json, Object, Value};
use switchback_plan::{Disclosed, Disclosures};

/// Noise that was learnt, by side and operation.
type Learnt = HashMap<(String, String), Arc<Noise>>;

/// Compares and redacts.
pub(super) struct Judge {
    redactor: Redactor,
    limits: Limits,
    /// Held for moments: comparing works on a share of what is known.
    learnt: Mutex<Learnt>,
}

impl Judge {
    /// `redactor` knows no request's secrets yet; `learnt` is what was known when the gateway stopped last.
    pub(super) fn new(redactor: Redactor, learnt: Learnt) -> Judge {
        Judge { redactor, limits: Limits::default(), learnt: Mutex::new(learnt) }
    }

    /// What is to be recorded of a request.
    pub(super) fn entries(&self, subject: &Subject, done: Done, at_ms: i64) -> Vec<Entry> {
        let redactor = self.redactor(&done.secrets);
        let entry = |what| Entry { key: Key::of(subject), at_ms, what };
        done.outcomes
            .into_iter()
            .map(|outcome| match outcome {
                Outcome::Skipped(why) => entry(What::Skipped(why)),
                Outcome::Compared(comparison) => {
                    entry(What::Compared(record(subject, &redactor, at_ms, comparison)))
                }
                Outcome::Unsettled(comparison) => {
                    entry(What::Unsettled(record(subject, &redactor, at_ms, comparison)))
                }
                Outcome::Twice { first, second } => {
                    let rules = subject.knowledge.rules_about(subject.serves, subject.about);
                    let (second, none) = (Candidate::Answered(second), Noise::default());
                    let twice = compare(rules, &first, &second, &none, &self.limits, &redactor);
                    entry(What::Learnt(self.learn(subject, &twice)))
                }
                Outcome::Planned { planned, reference_status } => {
                    self.planned(subject, &redactor, at_ms, planned, reference_status)
                }
                Outcome::Unpaired { is_missing, why } => {
                    let kind = if is_missing { FindingKind::Missing } else { FindingKind::Extra };
                    let found = self.finding(subject, "event", kind, Some(why));
                    let finding = Finding { cause: Cause::Upstream, ..found };
                    let comparison = Comparison { findings: vec![finding], ..Comparison::default() };
                    entry(What::Unpaired {
                        record: record(subject, &redactor, at_ms, comparison),
                        is_missing,
                    })
                }
                Outcome::Timed { reference, candidate } => entry(What::Timed { reference, candidate }),
                Outcome::ReadBack(read) => entry(self.read_back(subject, &redactor, at_ms, read)),
                Outcome::NotReadBack(why) => entry(What::NotReadBack(why)),
            })
            .collect()
    }

    /// Compares what a client would have seen of either side.
    pub(super) fn compared(
        &self,
        subject: &Subject,
        redactor: &Redactor,
        reference: &View,
        candidate: &Candidate,
    ) -> Comparison {
        let noise = self.noise_of(&name(subject));
        let rules = subject.knowledge.rules_about(subject.serves, subject.about);
        compare(rules, reference, candidate, &noise, &self.limits, redactor)
    }

    /// What masks the secrets of a request besides what it always masks.
    pub(super) fn redactor(&self, secrets: &[Secret<String>]) -> Redactor {
        self.redactor.knowing(secrets.iter().map(Secret::expose))
    }

    fn noise_of(&self, operation: &(String, String)) -> Arc<Noise> {
        let learnt = self.learnt.lock().unwrap_or_else(PoisonError::into_inner);
        learnt.get(operation).cloned().unwrap_or_default()
    }

    /// Compares as the reading is compared when a client asks for it, with the noise that was learnt of it.
    fn read_back(&self, subject: &Subject, redactor: &Redactor, at_ms: i64, read: ReadBack) -> What {
        let rules = subject.knowledge.rules(subject.serves, read.route);
        let operation = rules.operation.to_string();
        let noise = self.noise_of(&(subject.side.to_string(), operation.clone()));
        let again = Candidate::Answered(read.again);
        let against = |candidate| compare(rules, &read.reference, candidate, &noise, &self.limits, redactor);
        if against(&again).verdict() == Verdict::Different {
            return What::Skipped(SkipReason::Moved);
        }
        let mut comparison = against(&read.candidate);
        if let Some(wanted) = &read.wanted {
            match self.unlike_request(subject, rules, redactor, wanted, &read.reference) {
                Ok(found) => comparison.findings.extend(found),
                Err(why) => return What::Skipped(why),
            }
        }
        What::ReadBack(Record { read_back: Some(operation), ..record(subject, redactor, at_ms, comparison) })
    }

    /// Findings where a write's reading does not show the members of its request. The line behind them is that of the write.
    /// A reading that is not there, or has no object, lacks them all; one that was refused is not comparable.
    fn unlike_request(
        &self,
        subject: &Subject,
        rules: &OperationRules,
        redactor: &Redactor,
        wanted: &Value,
        shown: &View,
    ) -> Result<Vec<Finding>, SkipReason> {
        let view = |status, body| View { status, headers: http::HeaderMap::new(), body };
        let found = match shown.status {
            200..300 if !shown.body.is_whole() => return Err(SkipReason::TooLarge),
            200..300 => view(200, with_members_of(wanted, &shown.body)),
            404 | 410 => view(shown.status, shown.body.clone()),
            _ => return Err(SkipReason::Unreadable),
        };
        let wanted = view(200, BufferedAnswer::whole(wanted.to_vec()));
        let found = Candidate::Answered(found);
        let comparison = compare(rules, &wanted, &found, &Noise::default(), &self.limits, redactor);
        let origin = subject.knowledge.origin(subject.serves, subject.about);
        let line = format!("{}:{}", origin.file, origin.line);
        let of_write = |finding| Finding { cause: Cause::Made { line: line.clone() }, ..finding };
        Ok(comparison.findings.into_iter().map(of_write).collect())
    }

    fn learn(&self, subject: &Subject, twice: &Comparison) -> Arc<Noise> {
        let mut learnt = self.learnt.lock().unwrap_or_else(PoisonError::into_inner);
        let noise = learnt.entry(name(subject)).or_default();
        Arc::make_mut(noise).learn(twice);
        Arc::clone(noise)
    }

    fn planned(
        &self,
        subject: &Subject,
        redactor: &Redactor,
        at_ms: i64,
        planned: Planned,
        reference_status: u16,
    ) -> Entry {
        let key = Key::of(subject);
        let is_unread = matches!(planned.end, PlanEnd::Unread { .. });
        let breaches =
            planned.calls.iter().flat_map(|call| subject.knowledge.breaches(subject.serves.other(), call));
        let breach =
            |said: String| self.finding(subject, "call", FindingKind::Value, Some(redactor.text(&said)));
        let mut findings: Vec<Finding> = breaches.map(breach).collect();
        // What the side that clients know refused as well needs no call.
        if (200..300).contains(&reference_status) {
            findings.extend(self.misled(subject, redactor, &planned, reference_status));
        }
        // A call that was not made proves nothing of its answer.
        let comparison = Comparison { findings, coverage: Coverage::Sample, ..Comparison::default() };
        let planned = shown(redactor, subject.knowledge.disclosures(subject.serves.other()), planned);
        let record = record(subject, redactor, at_ms, comparison);
        // A call that is against the contract is wrong, whatever would have followed it; else nobody knows how the plan goes on.
        let is_unanswered = is_unread && record.comparison.findings.is_empty();
        let what = if is_unanswered { What::Unread(record, planned) } else { What::Planned(record, planned) };
        Entry { key, at_ms, what }
    }

    /// What is wrong with a plan that makes no call of a request that was done.
    fn misled(
        &self,
        subject: &Subject,
        redactor: &Redactor,
        planned: &Planned,
        reference_status: u16,
    ) -> Option<Finding> {
        match &planned.end {
            // What was read showed the effect already: that the plan has nothing to do any more says nothing.
            PlanEnd::Whole { status: Some(status) }
                if planned.calls.is_empty() && planned.readings == 0 && !(200..300).contains(status) =>
            {
                let sample = |status: u16| Some(redactor.sample(None, Disclosed::UNKNOWN, &number(status)));
                Some(Finding {
                    reference: sample(reference_status),
                    candidate: sample(*status),
                    ..self.finding(subject, "status", FindingKind::Status, None)
                })
            }
            PlanEnd::Impossible { why } => {
                let why = redactor.text(why);
                Some(self.finding(subject, "call", FindingKind::Unanswered, Some(why)))
            }
            PlanEnd::Whole { .. } | PlanEnd::Open | PlanEnd::Unread { .. } => None,
        }
    }

    fn finding(&self, subject: &Subject, place: &str, kind: FindingKind, detail: Option<String>) -> Finding {
        let origin = subject.knowledge.origin(subject.serves, subject.about);
        Finding {
            place: place.to_owned(),
            pattern: place.to_owned(),
            kind,
            cause: Cause::Made { line: format!("{}:{}", origin.file, origin.line) },
            times: 1,
            reference: None,
            candidate: None,
            detail,
        }
    }
}

/// A reading without the members that a write did not ask for. A reading without an object is left as it is.
fn with_members_of(wanted: &Value, body: &BufferedAnswer) -> BufferedAnswer {
    let Ok(Value::Object(shown)) = Value::parse(body.start(), &json::Limits::DOCUMENT) else {
        return body.clone();
    };
    let mut found = Object::new();
    for (name, value) in shown.iter().filter(|(name, _)| wanted.get(&name.decode()).is_some()) {
        found.insert(&*name.decode(), value.clone());
    }
    BufferedAnswer::whole(Value::Object(found).to_vec())
}

fn name(subject: &Subject) -> (String, String) {
    (subject.side.to_string(), subject.operation.to_string())
}

fn number(status: u16) -> Value {
    Value::Number(json::Number::from_i64(i64::from(status)))
}

fn record(subject: &Subject, redactor: &Redactor, at_ms: i64, comparison: Comparison) -> Record {
    let disclosures = subject.knowledge.disclosures(subject.serves);
    let operation = disclosures.operation(&subject.operation);
    Record {
        operation: subject.operation.to_string(),
        side: subject.side.to_string(),
        at_ms,
        client: Some(subject.client.to_string()),
        target: redactor.target(&subject.target, disclosures, operation),
        request_id: Some(subject.request_id.clone()),
        pack: Some(subject.knowledge.pack_hash().to_string()),
        read_back: None,
        comparison,
    }
}

/// A plan as it is kept: addresses and bodies with every value masked that must not be kept. `called` is what may be shown of
/// messages of the side that is called.
fn shown(redactor: &Redactor, called: &Disclosures, planned: Planned) -> PlannedRecord {
    let (status, ends) = match planned.end {
        PlanEnd::Whole { status } => (status, None),
        PlanEnd::Open => (None, Some("what follows depends on the answer to the last call".to_owned())),
        PlanEnd::Unread { why } | PlanEnd::Impossible { why } => (None, Some(redactor.text(&why))),
    };
    let calls = planned.calls.into_iter().map(|call| shown_call(redactor, called, &call)).collect();
    PlannedRecord { calls, readings: planned.readings, is_all: ends.is_none(), status, ends }
}

fn shown_call(redactor: &Redactor, called: &Disclosures, call: &PlannedCall) -> CallRecord {
    let body = call.body.as_deref().and_then(|text| Value::parse(text, &json::Limits::DOCUMENT).ok());
    let operation = called.operation(&call.operation);
    let disclosed = operation.map_or(Disclosed::BEYOND, |operation| called.request(operation));
    CallRecord {
        operation: call.operation.to_string(),
        method: call.method.to_string(),
        target: redactor.target(&call.target, called, operation),
        body: body.map(|body| sample_of(redactor, disclosed, &body)),
    }
}

/// The members of a body, each as a sample: names and kinds, and values only where that is known to be harmless.
fn sample_of(redactor: &Redactor, disclosed: Disclosed<'_>, body: &Value) -> serde_json::Value {
    match body {
        Value::Object(members) => members
            .iter()
            .enumerate()
            .map(|(at, (name, value))| {
                let name = name.decode();
                let shown = match redactor.masks_name(&name) || disclosed.is_data_name(&name) {
                    true => format!("{}{at}", switchback_engine::redact::MASK),
                    false => name.clone().into_owned(),
                };
                (shown, redactor.sample(Some(&name), disclosed.member(&name), value).to_string().into())
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => redactor.sample(None, disclosed, other).to_string().into(),
    }
}

impl Entry {
    pub(super) fn not_read_back(subject: &Subject, why: NotReadBack, at_ms: i64) -> Entry {
        Entry { key: Key::of(subject), at_ms, what: What::NotReadBack(why) }
    }

    pub(super) fn dropped(subject: &Subject, why: SkipReason, at_ms: i64) -> Entry {
        Entry { key: Key::of(subject), at_ms, what: What::Skipped(why) }
    }
}
