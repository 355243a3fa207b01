//! The sections of the dual run: phases, gate and shadow.

use super::read::{
    FromYaml, NamedMap, Placed, PositiveCount, ReadContext, describe_schema, is_measure, is_word,
    scalar_text, section,
};
use super::scalars::{ByteSize, Period};
use serde_json::{Value, json};
use std::time::Duration;
use switchback_compiler::diagnostic::{Code, Finding, Findings, Span};
use switchback_compiler::yaml::{Fields, KeyEntry, Keys, Kind, Node};
use switchback_engine::evidence::{LatencyMax, Policy};
use switchback_gateway::shadow::{
    GatePolicy, GateSettings, OperationKey, PHASES, Phase, Priority, ShadowSettings, ShadowShares, Share,
    ShareError,
};

section! {
    /// Comparison with the side that does not answer. It has its own limits: comparisons beyond
    /// them are dropped and counted, and no client waits for one.
    RawShadow is "`shadow`",
    required {}
    optional {
        /// Share of the requests in the phases `shadow` and `canary` that are compared.
        sample: Share = Share::ALL,
        /// Share of these, reads only, for which the answering side is read twice: differences
        /// between the two readings are noise.
        noise: Share = Share::new(0.01).expect("between 0 and 1"),
        /// Share of these, reads only, for which both sides are read once more, sequentially in
        /// random order, and timed. Each costs either service one read.
        timed: Share = Share::new(0.02).expect("between 0 and 1"),
        /// Share of these, writes only, whose effect is read on both sides and compared, if the
        /// pack declares a reading (`compare.read_back`). Each costs the old service two reads and
        /// the new one one.
        read_back: Share = Share::NONE,
        /// Concurrent read-backs. Further ones are skipped.
        read_backs: PositiveCount = PositiveCount(4),
        /// Pairs that wait for the other side.
        queue: PositiveCount = PositiveCount(256),
        /// Total size of the bodies of waiting and running comparisons.
        queue_bytes: ByteSize = ByteSize(32 << 20),
        /// Number of bytes of a body that are compared; longer bodies are truncated for the
        /// comparison.
        body_bytes: ByteSize = ByteSize(256 << 10),
        /// Concurrent comparisons, and concurrent calls to one upstream.
        calls: PositiveCount = PositiveCount(16),
        /// Timeout for the response of the other side, including all calls.
        timeout: Period = Period(Duration::from_secs(5)),
        /// Retention of findings and samples.
        keep: Period = Period(Duration::from_secs(30 * 86_400)),
        /// Stored findings per operation, each with its newest sample. The oldest are deleted
        /// first.
        findings: PositiveCount = PositiveCount(200),
        /// Scheduling priority of comparisons: `low` uses idle CPU time only, so a fully loaded
        /// machine compares nothing; `normal` competes with other work.
        priority: Priority = Priority::Low,
    }
}

section! {
    /// Accepted slowdown of the new version, as a factor.
    RawLatency is "`latency`",
    required {}
    optional {
        /// Factor at the median.
        p50: Factor,
        /// Factor at the 95th percentile.
        p95: Factor,
        /// Factor at the 99th percentile. Its proof takes about a thousand timed readings.
        p99: Factor,
    }
}

/// A factor such as `1.5x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Factor(pub(super) f64);

impl FromYaml for Factor {
    fn may_quote(text: &str) -> bool {
        is_measure(text)
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let text = scalar_text(node, "a factor such as `1.5x`", reading)?;
        let number = text.strip_suffix('x').unwrap_or(text).parse::<f64>();
        let number = number.ok().filter(|number| (1.0..=1000.0).contains(number));
        if number.is_none() {
            // Do not quote the text: it may be a misplaced secret.
            let what = "expected a factor from 1x to 1000x, such as `1.5x`";
            reading.findings.push(Finding::error(Code::ValueForm, node.span, what));
        }
        number.map(Factor)
    }

    fn schema() -> Value {
        json!({"type": ["number", "string"], "minimum": 1, "maximum": 1000, "examples": ["1.5x", 2]})
    }

    fn to_value(&self) -> Value {
        json!(format!("{}x", self.0))
    }
}

section! {
    /// Evidence that the gate requires before it changes the phase of an operation.
    RawPolicy is "a policy of `gate`",
    required {}
    optional {
        /// Tolerated rate of differences.
        mismatch: Share = Share::new(0.01).expect("between 0 and 1"),
        /// Tolerated rate of differences that did not repeat. The default is `mismatch`. Above it,
        /// an operation is rolled back. For a promotion they also count as differences.
        unsettled: Share,
        /// Confidence of the decision, in both directions.
        confidence: Share = Share::new(0.95).expect("between 0 and 1"),
        /// Minimum number of comparisons in a phase before a promotion.
        compared: PositiveCount = PositiveCount(500),
        /// Minimum time in a phase before a promotion.
        min_period: Period = Period(Duration::from_secs(3_600)),
        /// Accepted slowdown of a read by the new version, by quantile. The shadow times both
        /// versions (`shadow.timed`). A promotion waits until the proof is complete.
        latency: RawLatency,
        /// Number of differences in a phase that causes a rollback regardless of their rate. By
        /// default only the rate counts.
        differences: PositiveCount,
        /// Share of clients after a promotion to `canary`.
        share: Share = Share::new(0.1).expect("between 0 and 1"),
        /// Share of requests that are still compared after a promotion to `translated`.
        check: Share = Share::new(0.01).expect("between 0 and 1"),
    }
}

/// A policy, or `never`.
#[derive(Clone, Debug)]
pub(super) struct RawGate(Option<RawPolicy>);

impl FromYaml for RawGate {
    fn may_quote(text: &str) -> bool {
        is_word(text, &["never", "always"])
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        match node.kind {
            Kind::Map(_) => RawPolicy::parse(node, reading).map(|policy| RawGate(Some(policy))),
            _ => node.word(&["never"], reading.findings).map(|_| RawGate(None)),
        }
    }

    fn schema() -> Value {
        json!({"anyOf": [{"const": "never"}, RawPolicy::schema()]})
    }

    fn to_value(&self) -> Value {
        self.0.as_ref().map_or_else(|| json!("never"), RawPolicy::to_value)
    }
}

/// Parses a key of `phases` or `gate`.
pub(super) fn operation_key(key: &Placed<String>) -> Placed<OperationKey> {
    Placed { value: OperationKey::parse(&key.value), span: key.span }
}

/// Converts the policies of the gate. Also returns the keys with their places.
pub(super) fn gate(
    raw: &NamedMap<String, RawGate>,
    findings: &mut Findings,
) -> (GateSettings, Vec<Placed<OperationKey>>) {
    let keys: Vec<_> = raw.0.iter().map(|(key, _)| operation_key(key)).collect();
    let policies = raw.0.iter().map(|(_, raw)| raw.0.as_ref().map(|raw| policy(raw, findings)));
    let operations = keys.iter().map(|key| key.value.clone()).zip(policies).collect();
    (GateSettings { operations }, keys)
}

fn policy(raw: &RawPolicy, findings: &mut Findings) -> GatePolicy {
    let proper = |name: &str, share: &Placed<Share>, findings: &mut Findings| {
        // No number of comparisons proves a rate of 0 or a confidence of 1, and a rate of 1 always holds.
        if share.is_none() || share.value == Share::ALL {
            let what = format!("`{name}` is more than 0 and less than 1");
            findings.push(Finding::error(Code::OutOfRange, share.span, what));
        }
    };
    proper("mismatch", &raw.mismatch, findings);
    proper("confidence", &raw.confidence, findings);
    if let Some(unsettled) = &raw.unsettled {
        proper("unsettled", unsettled, findings);
    }
    GatePolicy {
        policy: Policy {
            mismatch_max: raw.mismatch.part(),
            unsettled_max: raw.unsettled.as_ref().map_or(raw.mismatch.part(), |share| share.part()),
            confidence: raw.confidence.part(),
            latency_max: raw.latency.as_ref().map_or_else(LatencyMax::default, |latency| {
                [&latency.p50, &latency.p95, &latency.p99]
                    .map(|factor| factor.as_ref().map(|factor| factor.0))
            }),
            samples_min: u64::from(raw.compared.0),
            duration_min_ms: u64::try_from(raw.min_period.0.as_millis()).unwrap_or(u64::MAX),
            rollback_after: raw.differences.as_ref().map(|count| u64::from(count.0)),
        },
        share: raw.share.value,
        check: raw.check.value,
    }
}

pub(super) fn shadow(raw: &RawShadow) -> ShadowSettings {
    let count = |number: &PositiveCount| usize::try_from(number.0).unwrap_or(usize::MAX);
    ShadowSettings {
        shares: ShadowShares {
            sample: raw.sample.value,
            noise: raw.noise.value,
            timed: raw.timed.value,
            read_back: raw.read_back.value,
        },
        read_backs: count(&raw.read_backs),
        queue: count(&raw.queue),
        queue_bytes: raw.queue_bytes.0,
        body_bytes: usize::try_from(raw.body_bytes.0).unwrap_or(usize::MAX),
        workers: count(&raw.calls),
        timeout: raw.timeout.0,
        keep: raw.keep.0,
        records: raw.findings.0,
        priority: raw.priority.value,
    }
}

pub(super) fn check_shadow(raw: &RawShadow, findings: &mut Findings) {
    if raw.timeout.0 == Duration::ZERO {
        let what = "`timeout` is at least 1ms";
        findings.push(Finding::error(Code::OutOfRange, raw.timeout.span, what));
    }
    if raw.queue_bytes.0 < raw.body_bytes.0.saturating_mul(2) {
        let what = "`queue_bytes` has room for the two bodies of a pair";
        let help = "raise it to at least twice `body_bytes`";
        findings.push(Finding::error(Code::Conflict, raw.queue_bytes.span, what).help(help));
    }
}

/// Reports latency requirements that cannot be met because no read is timed: they would block
/// promotion forever.
pub(super) fn check_timed(gate: &NamedMap<String, RawGate>, shadow: &RawShadow, findings: &mut Findings) {
    let policies = gate.0.iter().filter_map(|(_, raw)| raw.0.as_ref());
    let is_demanded = |latency: &&Placed<RawLatency>| {
        [&latency.p50, &latency.p95, &latency.p99].iter().any(|factor| factor.is_some())
    };
    let demands = policies.filter_map(|policy| policy.latency.as_ref()).filter(is_demanded);
    for latency in demands.filter(|_| shadow.timed.is_none()) {
        let what = "`latency` is never proved: `shadow.timed` is 0, so no reading is timed";
        let help = "raise `shadow.timed`, or leave `latency` out";
        findings.push(Finding::error(Code::Conflict, latency.span, what).help(help));
    }
}

const PHASE: Keys = Keys {
    what: "a phase",
    entries: &[KeyEntry::required("phase"), KeyEntry::optional("share"), KeyEntry::optional("check")],
};

impl FromYaml for Phase {
    fn may_quote(text: &str) -> bool {
        // Users often write a share after the word; such a text is no secret.
        text.split_whitespace().all(|part| is_word(part, &PHASES) || is_measure(part))
    }

    /// Reads a word, or `{ phase: canary, share: 0.1 }`, or `{ phase: translated, check: 0.01 }`.
    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let Kind::Map(_) = node.kind else {
            return match node.word(&PHASES, reading.findings)? {
                "canary" => no_share(node, reading),
                name => Phase::parse(name, None).ok(),
            };
        };
        let fields = Fields::parse(node, &PHASE, reading.findings)?;
        phase_of(&fields, node, reading)
    }

    fn schema() -> Value {
        phase_schema(&[])
    }

    fn to_value(&self) -> Value {
        match self {
            Phase::Canary(share) => json!({"phase": "canary", "share": share.part()}),
            Phase::Translated { check } if !check.is_none() => {
                json!({"phase": "translated", "check": check.part()})
            }
            other => json!(other.name()),
        }
    }
}

/// Returns the JSON Schema of a phase. Maps may have `more` properties.
pub(super) fn phase_schema(more: &[(&str, Value)]) -> Value {
    let with = |phase: Value, own: &[(&str, Value)], required: &[&str]| {
        let properties = own.iter().chain(more).map(|(name, schema)| ((*name).to_owned(), schema.clone()));
        let mut properties: serde_json::Map<String, Value> = properties.collect();
        properties.insert("phase".to_owned(), describe_schema(phase, &["The phase."], None));
        json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
    };
    let part = |about: &str| describe_schema(Share::schema(), &[about], None);
    let share = part("`canary`: share of the clients that get translated answers.");
    let check = part("`translated`: share of the requests that are still compared.");
    json!({"anyOf": [
        {"enum": ["legacy", "shadow", "translated"]},
        with(json!({"const": "canary"}), &[("share", share)], &["phase", "share"]),
        with(json!({"const": "translated"}), &[("check", check)], &["phase"]),
        with(json!({"enum": ["legacy", "shadow"]}), &[], &["phase"]),
    ]})
}

/// Reads the keys of a phase from a map.
pub(super) fn phase_of(fields: &Fields<'_>, node: &Node, reading: &mut ReadContext<'_>) -> Option<Phase> {
    fields.get("phase").into_iter().for_each(|value| reading.quote::<Phase>(value));
    ["share", "check"]
        .iter()
        .filter_map(|key| fields.get(key))
        .for_each(|value| reading.quote::<Share>(value));
    let name = fields.get("phase")?.word(&PHASES, reading.findings)?;
    for (key, owner) in [("share", "canary"), ("check", "translated")] {
        if let Some((key, _)) = fields.entry(key).filter(|_| name != owner) {
            let what = format!("`{}` belongs to the phase `{owner}`", key.name);
            reading.findings.push(Finding::error(Code::Conflict, key.span, what).help("leave it out"));
            return None;
        }
    }
    match (name, fields.get("share").or_else(|| fields.get("check"))) {
        ("canary", None) => no_share(node, reading),
        (name, Some(share)) => Phase::parse(name, Some(Share::parse(share, reading)?)).ok(),
        (name, None) => Phase::parse(name, None).ok(),
    }
}

fn no_share<T>(node: &Node, reading: &mut ReadContext<'_>) -> Option<T> {
    let what = "the phase `canary` needs a share of clients";
    let help = "write `{ phase: canary, share: 0.1 }`";
    reading.findings.push(Finding::error(Code::MissingKey, node.span, what).help(help));
    None
}

impl FromYaml for Share {
    fn may_quote(text: &str) -> bool {
        is_measure(text)
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let text = scalar_text(node, "a share such as `0.1`", reading)?;
        text.parse()
            .map_err(|error: ShareError| {
                reading.findings.push(Finding::error(Code::ValueForm, node.span, error.to_string()));
            })
            .ok()
    }

    fn schema() -> Value {
        json!({"type": ["number", "string"], "minimum": 0, "maximum": 1, "examples": [0.1, "10%"]})
    }

    fn to_value(&self) -> Value {
        json!(self.part())
    }
}
