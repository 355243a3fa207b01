//! Converts the results of a job to records: compares and redacts responses, learns noise, and
//! validates planned calls against the contract of the called side. All output is redacted.

use super::job::{Done, JobResult, PlanEnd, Planned, ReadBack, Subject};
use super::record::{EntryKind, PlannedCallRecord, PlannedRecord, RecordEntry, RecordKey};
use super::subject::PlannedCall;
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

/// Learned noise by side and operation.
type Learnt = HashMap<(String, String), Arc<Noise>>;

/// Compares and redacts.
pub(super) struct ShadowJudge {
    redactor: Redactor,
    limits: Limits,
    /// Locked only briefly: a comparison works on a shared copy of the noise.
    learnt: Mutex<Learnt>,
}

impl ShadowJudge {
    /// Creates a judge. `redactor` contains no secrets of requests yet; `learnt` is the noise
    /// stored by earlier runs.
    pub(super) fn new(redactor: Redactor, learnt: Learnt) -> ShadowJudge {
        ShadowJudge { redactor, limits: Limits::default(), learnt: Mutex::new(learnt) }
    }

    /// Returns the entries to record for a request.
    pub(super) fn entries(&self, subject: &Subject, done: Done, at_ms: i64) -> Vec<RecordEntry> {
        // Includes the request's own credentials: a service may repeat them in a response, where no
        // rule about names masks them.
        let redactor = self.redactor(&done.secrets);
        let entry = |what| RecordEntry { key: RecordKey::from_subject(subject), at_ms, what };
        done.outcomes
            .into_iter()
            .map(|outcome| match outcome {
                JobResult::Skipped(why) => entry(EntryKind::Skipped(why)),
                JobResult::Compared(comparison) => {
                    entry(EntryKind::Compared(record(subject, &redactor, at_ms, comparison)))
                }
                JobResult::Unsettled(comparison) => {
                    entry(EntryKind::Unsettled(record(subject, &redactor, at_ms, comparison)))
                }
                JobResult::Twice { first, second } => {
                    let rules = subject.knowledge.rules_about(subject.serves, subject.about);
                    // Compared without learned noise: a known place must be observed again to
                    // remain learned.
                    let (second, none) = (Candidate::Answered(second), Noise::default());
                    let twice = compare(rules, &first, &second, &none, &self.limits, &redactor);
                    entry(EntryKind::Learnt(self.learn(subject, &twice)))
                }
                JobResult::Planned { planned, reference_status } => {
                    self.judge_plan(subject, &redactor, at_ms, planned, reference_status)
                }
                JobResult::Unpaired { is_missing, why } => {
                    let kind = if is_missing { FindingKind::Missing } else { FindingKind::Extra };
                    let found = self.finding(subject, "event", kind, Some(why));
                    let finding = Finding { cause: Cause::Upstream, ..found };
                    let comparison = Comparison { findings: vec![finding], ..Comparison::default() };
                    entry(EntryKind::Unpaired {
                        record: record(subject, &redactor, at_ms, comparison),
                        is_missing,
                    })
                }
                JobResult::Timed { reference, candidate } => entry(EntryKind::Timed { reference, candidate }),
                JobResult::ReadBack(read) => entry(self.read_back(subject, &redactor, at_ms, read)),
                JobResult::NotReadBack(why) => entry(EntryKind::NotReadBack(why)),
            })
            .collect()
    }

    /// Compares the responses that a client would have received from either side.
    pub(super) fn compare(
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

    /// Returns a redactor that also masks the secrets of a request.
    pub(super) fn redactor(&self, secrets: &[Secret<String>]) -> Redactor {
        self.redactor.knowing(secrets.iter().map(Secret::expose))
    }

    fn noise_of(&self, operation: &(String, String)) -> Arc<Noise> {
        let learnt = self.learnt.lock().unwrap_or_else(PoisonError::into_inner);
        learnt.get(operation).cloned().unwrap_or_default()
    }

    /// Compares the reads after a write with the rules and the learned noise of the reading
    /// operation.
    fn read_back(&self, subject: &Subject, redactor: &Redactor, at_ms: i64, read: ReadBack) -> EntryKind {
        let rules = subject.knowledge.rules(subject.serves, read.route);
        let operation = rules.operation.to_string();
        let noise = self.noise_of(&(subject.side.to_string(), operation.clone()));
        let again = Candidate::Answered(read.again);
        let against = |candidate| compare(rules, &read.reference, candidate, &noise, &self.limits, redactor);
        // The reference itself changed between two reads, so another writer is active.
        if against(&again).verdict() == Verdict::Different {
            return EntryKind::Skipped(SkipReason::Moved);
        }
        let mut comparison = against(&read.candidate);
        if let Some(wanted) = &read.wanted {
            match self.unlike_request(subject, rules, redactor, wanted, &read.reference) {
                Ok(found) => comparison.findings.extend(found),
                Err(why) => return EntryKind::Skipped(why),
            }
        }
        EntryKind::ReadBack(Record {
            read_back: Some(operation),
            ..record(subject, redactor, at_ms, comparison)
        })
    }

    /// Returns findings for members of a write that its read does not contain; their cause is the
    /// mapping line of the write. A read that was not found or has no object lacks all of them.
    /// Other failed reads are not comparable.
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
        // Copies the noise if a comparison is using it; that one continues with its own version.
        Arc::make_mut(noise).learn(twice);
        Arc::clone(noise)
    }

    fn judge_plan(
        &self,
        subject: &Subject,
        redactor: &Redactor,
        at_ms: i64,
        planned: Planned,
        reference_status: u16,
    ) -> RecordEntry {
        let key = RecordKey::from_subject(subject);
        let is_unread = matches!(planned.end, PlanEnd::Unread { .. });
        let breaches =
            planned.calls.iter().flat_map(|call| subject.knowledge.breaches(subject.serves.other(), call));
        let breach =
            |said: String| self.finding(subject, "call", FindingKind::Value, Some(redactor.text(&said)));
        let mut findings: Vec<Finding> = breaches.map(breach).collect();
        // A request that the reference side rejected needs no call on the other side.
        if (200..300).contains(&reference_status) {
            findings.extend(self.missing_calls(subject, redactor, &planned, reference_status));
        }
        // The call was only planned. Its response is unknown, so the coverage is that of a sample.
        let comparison = Comparison { findings, coverage: Coverage::Sample, ..Comparison::default() };
        let planned = redact_plan(redactor, subject.knowledge.disclosures(subject.serves.other()), planned);
        let record = record(subject, redactor, at_ms, comparison);
        // A call that violates the contract is wrong in any case. Otherwise the rest of an unread
        // plan is unknown.
        let is_unanswered = is_unread && record.comparison.findings.is_empty();
        let what = if is_unanswered {
            EntryKind::Unread(record, planned)
        } else {
            EntryKind::Planned(record, planned)
        };
        RecordEntry { key, at_ms, what }
    }

    /// Returns a finding if a plan makes no call although the request succeeded.
    fn missing_calls(
        &self,
        subject: &Subject,
        redactor: &Redactor,
        planned: &Planned,
        reference_status: u16,
    ) -> Option<Finding> {
        match &planned.end {
            // If the plan read anything, it may have seen the effect already and correctly needs no
            // call.
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

/// Reduces a read to the members that the write set. A read without an object is unchanged.
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

/// Converts a plan for storage, with addresses and bodies redacted. `called` contains the
/// disclosure rules of the called side.
fn redact_plan(redactor: &Redactor, called: &Disclosures, planned: Planned) -> PlannedRecord {
    let (status, ends) = match planned.end {
        PlanEnd::Whole { status } => (status, None),
        PlanEnd::Open => (None, Some("what follows depends on the answer to the last call".to_owned())),
        PlanEnd::Unread { why } | PlanEnd::Impossible { why } => (None, Some(redactor.text(&why))),
    };
    let calls = planned.calls.into_iter().map(|call| shown_call(redactor, called, &call)).collect();
    PlannedRecord { calls, readings: planned.readings, is_all: ends.is_none(), status, ends }
}

fn shown_call(redactor: &Redactor, called: &Disclosures, call: &PlannedCall) -> PlannedCallRecord {
    let body = call.body.as_deref().and_then(|text| Value::parse(text, &json::Limits::DOCUMENT).ok());
    let operation = called.operation(&call.operation);
    let disclosed = operation.map_or(Disclosed::BEYOND, |operation| called.request(operation));
    PlannedCallRecord {
        operation: call.operation.to_string(),
        method: call.method.to_string(),
        target: redactor.target(&call.target, called, operation),
        body: body.map(|body| sample_of(redactor, disclosed, &body)),
    }
}

/// Converts a body to samples: names and kinds, and values only if known to be harmless.
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

impl RecordEntry {
    pub(super) fn not_read_back(subject: &Subject, why: NotReadBack, at_ms: i64) -> RecordEntry {
        RecordEntry { key: RecordKey::from_subject(subject), at_ms, what: EntryKind::NotReadBack(why) }
    }

    pub(super) fn skip(subject: &Subject, why: SkipReason, at_ms: i64) -> RecordEntry {
        RecordEntry { key: RecordKey::from_subject(subject), at_ms, what: EntryKind::Skipped(why) }
    }
}
