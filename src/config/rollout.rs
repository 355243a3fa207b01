//! The section of rollout plans, and phases that start one.

use super::checked::PhasesConfig;
use super::dual::{operation_key, phase_of, phase_schema};
use super::read::{
    FromYaml, NamedMap, Placed, ReadContext, describe_schema, is_measure, is_name, is_word, scalar_text,
    section, value_of,
};
use super::scalars::Period;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use switchback_compiler::diagnostic::{Code, Finding, Findings, Span};
use switchback_compiler::yaml::{Fields, KeyEntry, Keys, Kind, Node};
use switchback_gateway::shadow::{
    DAYS, DayTime, Phase, RolloutPlan, RolloutSettings, RolloutStep, TimeWindow,
};

section! {
    /// A rollout plan.
    RawRollout is "a rollout plan",
    required {
        /// The phases in their order: `shadow`, growing shares of `canary`, `translated`; some may be
        /// left out. `{ phase: canary, share: 1%, for: 2h }` is left after two hours at the earliest,
        /// and when the evidence of the phase satisfies the policy of `gate`. The default of `for` is
        /// `min_period` of that policy. A last step with `for` is compared for this time before
        /// the rollout is completed.
        steps: Vec<Placed<RawStep>>,
    }
    optional {
        /// Times at which an operation may advance. A rollback is possible at any time.
        when: RawWhen,
    }
}

section! {
    /// Times of day.
    RawWhen is "`when`",
    required {
        /// Begin and end, such as `09:00-17:00`. With the end before the begin, it extends over
        /// midnight.
        between: DayTimes,
    }
    optional {
        /// Days of the week, such as `mon-fri` or `tue, thu`.
        days: Days = Days([true; 7]),
        /// The time zone: a name such as `Europe/Berlin`, or an offset such as `+02:00`.
        zone: ZoneName = ZoneName("UTC".to_owned()),
    }
}

/// A step: a phase with the least time in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawStep {
    phase: Phase,
    period: Option<Period>,
}

const STEP: Keys = Keys {
    what: "a step",
    entries: &[
        KeyEntry::required("phase"),
        KeyEntry::optional("share"),
        KeyEntry::optional("check"),
        KeyEntry::optional("for"),
    ],
};

impl FromYaml for RawStep {
    fn may_quote(text: &str) -> bool {
        Phase::may_quote(text)
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let Kind::Map(_) = node.kind else {
            return <Phase as FromYaml>::parse(node, reading).map(|phase| RawStep { phase, period: None });
        };
        let fields = Fields::parse(node, &STEP, reading.findings)?;
        let period = fields.get("for").and_then(|period| value_of(period, reading));
        phase_of(&fields, node, reading).map(|phase| RawStep { phase, period })
    }

    fn schema() -> Value {
        let about = "Least time of the step. The default is `min_period` of the policy.";
        phase_schema(&[("for", describe_schema(Period::schema(), &[about], None))])
    }

    fn to_value(&self) -> Value {
        let mut value = match self.phase.to_value() {
            Value::String(name) if self.period.is_some() => json!({"phase": name}),
            value => value,
        };
        if let (Value::Object(members), Some(period)) = (&mut value, self.period) {
            members.insert("for".to_owned(), period.to_value());
        }
        value
    }
}

/// A phase, or the name of the plan that starts in its first one.
#[derive(Clone, Debug)]
pub(super) enum RawPhase {
    Phase(Phase),
    Rollout(Placed<String>),
}

const ROLLOUT: Keys = Keys { what: "a phase", entries: &[KeyEntry::required("rollout")] };

impl FromYaml for RawPhase {
    fn may_quote(text: &str) -> bool {
        Phase::may_quote(text)
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let is_rollout =
            node.as_map().is_some_and(|entries| entries.iter().any(|(key, _)| key.name == "rollout"));
        if !is_rollout {
            return <Phase as FromYaml>::parse(node, reading).map(RawPhase::Phase);
        }
        let fields = Fields::parse(node, &ROLLOUT, reading.findings)?;
        value_of(fields.get("rollout")?, reading).map(RawPhase::Rollout)
    }

    fn schema() -> Value {
        let about = "Name of the plan that starts in its first phase.";
        let rollout = json!({
            "type": "object", "additionalProperties": false, "required": ["rollout"],
            "properties": {"rollout": describe_schema(String::schema(), &[about], None)},
        });
        json!({"anyOf": [Phase::schema(), rollout]})
    }

    fn to_value(&self) -> Value {
        match self {
            RawPhase::Phase(phase) => phase.to_value(),
            RawPhase::Rollout(name) => json!({"rollout": name.to_value()}),
        }
    }
}

/// Two times of day.
#[derive(Clone, Copy, Debug)]
pub(super) struct DayTimes(DayTime, DayTime);

impl FromYaml for DayTimes {
    fn may_quote(text: &str) -> bool {
        is_measure(text)
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let text = scalar_text(node, "two times of day such as `09:00-17:00`", reading)?;
        let time = |text: &str| {
            let (hour, minute) = text.trim().split_once(':')?;
            let digits = [hour, minute].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
            DayTime::new(hour.parse().ok()?, minute.parse().ok()?).filter(|_| digits)
        };
        let times = text.split_once('-').and_then(|(from, until)| Some((time(from)?, time(until)?)));
        let midnight = DayTime::new(24, 0);
        match times.filter(|(from, until)| from != until && Some(*from) != midnight) {
            Some((from, until)) => Some(DayTimes(from, until)),
            None => {
                let what = "expected two different times of day such as `09:00-17:00`";
                reading.findings.push(Finding::error(Code::ValueForm, node.span, what));
                None
            }
        }
    }

    fn schema() -> Value {
        json!({"type": "string", "examples": ["09:00-17:00"]})
    }

    fn to_value(&self) -> Value {
        json!(format!("{}-{}", self.0, self.1))
    }
}

/// Days of the week, Monday first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Days([bool; 7]);

impl FromYaml for Days {
    fn may_quote(text: &str) -> bool {
        text.split([',', '-']).all(|part| is_word(part.trim(), &DAYS))
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let text = scalar_text(node, "days such as `mon-fri` or `tue, thu`", reading)?;
        let mut days = [false; 7];
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let [first, last] = [first, last].map(|name| {
                let name = name.trim();
                let found = DAYS.iter().position(|day| *day == name);
                if found.is_none() {
                    let what = format!("`{name}` is no day; days are written as `mon-fri` or `tue, thu`");
                    let finding = Finding::error(Code::UnknownWord, node.span, what);
                    // The whole value would be replaced, so the day is part of the text.
                    let near = switchback_compiler::diagnostic::did_you_mean(name, DAYS.iter().copied());
                    reading.findings.push(finding.maybe_help(near));
                }
                found
            });
            let (mut at, last) = (first?, last?);
            days[at] = true;
            while at != last {
                at = (at + 1) % 7;
                days[at] = true;
            }
        }
        Some(Days(days))
    }

    fn schema() -> Value {
        json!({"type": "string", "examples": ["mon-fri", "tue, thu"]})
    }

    fn to_value(&self) -> Value {
        let names = DAYS.iter().zip(self.0).filter_map(|(name, is_in)| is_in.then_some(*name));
        json!(names.collect::<Vec<_>>().join(", "))
    }
}

/// The name of a time zone.
#[derive(Clone, Debug)]
pub(super) struct ZoneName(String);

impl FromYaml for ZoneName {
    fn may_quote(text: &str) -> bool {
        is_name(text)
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        scalar_text(node, "a time zone such as `Europe/Berlin`", reading)
            .map(|text| ZoneName(text.to_owned()))
    }

    fn schema() -> Value {
        json!({"type": "string", "examples": ["Europe/Berlin", "+02:00"]})
    }

    fn to_value(&self) -> Value {
        json!(self.0)
    }
}

/// Converts the phases and the plans that they start.
pub(super) fn phases(
    raw: &NamedMap<String, RawPhase>,
    rollout: &NamedMap<String, RawRollout>,
    findings: &mut Findings,
) -> PhasesConfig {
    let named = rollout.0.iter().map(|(name, raw)| (name.value.clone(), plan(name, raw, findings)));
    let plans: BTreeMap<String, RolloutPlan> = named.collect();
    let (mut keys, mut started) = (Vec::new(), Vec::new());
    for (key, raw) in &raw.0 {
        let key = operation_key(key);
        let (phase, name) = match raw {
            RawPhase::Phase(phase) => (*phase, None),
            RawPhase::Rollout(name) => {
                let plan = plans.get(&name.value);
                if plan.is_none() {
                    let what = format!("there is no rollout plan `{}`", name.value);
                    let finding = Finding::error(Code::UnknownWord, name.span, what);
                    let finding = finding.help("plans are declared in the section `rollout`");
                    findings.push(finding.did_you_mean(&name.value, plans.keys()));
                }
                let first = plan.and_then(|plan| plan.steps.first()).map(|step| step.phase);
                (first.unwrap_or_default(), Some(name.value.clone()))
            }
        };
        started.push((key.value.clone(), name));
        keys.push((key, phase));
    }
    let operations = keys.iter().map(|(key, phase)| (key.value.clone(), *phase)).collect();
    let rollouts = RolloutSettings { plans, operations: started.into_iter().collect() };
    PhasesConfig { keys, operations, rollouts }
}

fn plan(name: &Placed<String>, raw: &RawRollout, findings: &mut Findings) -> RolloutPlan {
    let steps: &[Placed<RawStep>] = raw.steps.as_ref().map_or(&[], |steps| &steps.value);
    if let Some(all) = raw.steps.as_ref().filter(|_| steps.is_empty()) {
        let what = format!("the rollout plan `{}` has no steps", name.value);
        let help = "a plan is, for example, `[{ phase: shadow, for: 1d }, { phase: canary, share: 10%, for: 1d }, translated]`";
        findings.push(Finding::error(Code::MissingKey, all.span, what).help(help));
    }
    for step in steps.iter().filter(|step| step.phase == Phase::Legacy) {
        let what = "a rollout has no step `legacy`: nothing is compared there";
        findings.push(Finding::error(Code::Conflict, step.span, what).help("begin with `shadow`"));
    }
    for pair in steps.windows(2).filter(|pair| pair[1].phase.rank() <= pair[0].phase.rank()) {
        findings.push(order_finding(pair[0].phase, pair[1].phase, pair[1].span));
    }
    let window = raw.when.as_ref().and_then(|raw| window(&raw.value, findings));
    let step = |step: &Placed<RawStep>| RolloutStep {
        phase: step.phase,
        period: step.period.map(|period| period.0),
    };
    RolloutPlan { steps: steps.iter().map(step).collect(), window }
}

fn order_finding(before: Phase, after: Phase, span: Span) -> Finding {
    let what = match (before, after) {
        (Phase::Canary(before), Phase::Canary(after)) => {
            format!("the share of `canary` grows from step to step: {after} does not follow {before}")
        }
        _ => format!("`{}` does not follow `{}`", after.name(), before.name()),
    };
    let help = "a rollout goes from `shadow` through growing shares of `canary` to `translated`";
    Finding::error(Code::Conflict, span, what).help(help)
}

fn window(raw: &RawWhen, findings: &mut Findings) -> Option<TimeWindow> {
    let DayTimes(from, until) = raw.between.as_ref()?.value;
    let zone = &raw.zone;
    let window = TimeWindow::new(from, until, raw.days.value.0, &zone.value.0);
    let report = |error: switchback_plan::convert::ArgumentError| {
        let finding = Finding::error(Code::ValueForm, zone.span, error.to_string());
        let known = error.unknown_word().map(|unknown| unknown.known.as_slice()).unwrap_or_default();
        findings.push(finding.did_you_mean(&zone.value.0, known));
    };
    window.map_err(report).ok()
}
