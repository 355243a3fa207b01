//! The effect of a mapping change: recorded exchanges replayed through the pack under test.

use super::checked::FailedExample;
use super::tried::{DryRunPack, PlaygroundSession, TryError};
use crate::replay::{Fronts, ReplayChange, ReplayVerdict, Replayer};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use switchback_engine::har::Exchange;
use switchback_engine::redact::Salt;
use switchback_engine::translate::Settings;
use tokio::task::spawn_blocking;

/// The effect of a mapping text: recorded exchanges whose answers would not be those that clients
/// received, and examples that would not hold.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WhatIf {
    /// Number of recorded exchanges.
    pub exchanges: usize,
    /// Exchanges with the answer that the client received.
    pub same: usize,
    /// Exchanges with another answer.
    pub differ: usize,
    /// Exchanges that cannot be judged, with the reasons below.
    pub unknown: usize,
    pub reasons: Vec<(String, usize)>,
    /// Exchanges in `same` with masked values that were compared by their kind alone.
    pub masked: usize,
    /// The differences and changed calls, most frequent first.
    pub changed: Vec<ChangeGroup>,
    /// Number of examples in the pack.
    pub examples: usize,
    /// Examples that do not hold.
    pub failed: Vec<FailedExample>,
}

/// Exchanges with the same change.
#[derive(Clone, Debug, Serialize)]
pub struct ChangeGroup {
    /// Side and operation.
    pub operation: String,
    /// The change in one sentence, without values of single exchanges.
    pub what: String,
    /// The responsible mapping line, as `file:line`.
    pub line: Option<String>,
    /// An example with masked values.
    pub example: String,
    pub count: usize,
    /// Numbers of the first recorded exchanges.
    pub recorded: Vec<usize>,
}

/// Most exchange numbers in a group.
const NAMED_MAX: usize = 5;

impl PlaygroundSession {
    /// Replays all recorded exchanges through the pack with these files, and runs its examples.
    pub async fn what_if(&self, files: BTreeMap<String, String>) -> Result<WhatIf, TryError> {
        let tried = self.compile_changes(files).await?;
        let exchanges = self.recorded().all();
        spawn_blocking(move || summarize(&tried, &exchanges)).await.map_err(|_| TryError::Interrupted)?
    }
}

fn summarize(tried: &DryRunPack, exchanges: &[Exchange]) -> Result<WhatIf, TryError> {
    let mut salt = [0; 32];
    getrandom::fill(&mut salt).map_err(|error| TryError::Request(error.to_string()))?;
    // The recorded exchanges contain their side, so the configured prefixes are not needed.
    let fronts = Fronts::from_pack(&tried.pack);
    let settings = Settings::clone(&tried.settings);
    let replayer = Replayer::new(Arc::clone(&tried.pack), settings, fronts, Salt::new(salt));
    let replayer = replayer.against_received();
    let mut summary = WhatIf {
        exchanges: exchanges.len(),
        examples: tried.checked.examples,
        failed: tried.checked.failed.clone(),
        ..WhatIf::default()
    };
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut found: BTreeMap<(String, String, Option<String>), ChangeGroup> = BTreeMap::new();
    for (number, exchange) in exchanges.iter().enumerate() {
        let outcome = replayer.offline(exchange);
        let operation = outcome.operation.unwrap_or_default();
        let (changes, unknown) = match outcome.verdict {
            ReplayVerdict::Same => {
                summary.same += 1;
                summary.masked += usize::from(outcome.is_by_kind);
                continue;
            }
            ReplayVerdict::SameCalls => (Vec::new(), Some(PLANNED_WRITE.to_owned())),
            ReplayVerdict::Unknown(why) => (Vec::new(), Some(why.to_string())),
            ReplayVerdict::Changed(changes) if !is_answer_known(&changes) => {
                (changes, Some(OTHER_CALLS.to_owned()))
            }
            ReplayVerdict::Changed(changes) => (changes, None),
        };
        match unknown {
            Some(why) => {
                summary.unknown += 1;
                *reasons.entry(why).or_default() += 1;
            }
            None => summary.differ += 1,
        }
        let mut seen = Vec::new();
        for change in changes {
            let (what, line) = alike(&change);
            let key = (operation.clone(), what.clone(), line.clone());
            // The counts are of exchanges: a list may have the same change in each of its elements.
            if seen.contains(&key) {
                continue;
            }
            seen.push(key.clone());
            let group = found.entry(key).or_insert_with(|| ChangeGroup {
                operation: operation.clone(),
                what,
                line,
                example: change.to_string(),
                count: 0,
                recorded: Vec::new(),
            });
            group.count += 1;
            if group.recorded.len() < NAMED_MAX {
                group.recorded.push(number);
            }
        }
    }
    summary.reasons = reasons.into_iter().collect();
    summary.changed = found.into_values().collect();
    summary.changed.sort_by_key(|group| std::cmp::Reverse(group.count));
    Ok(summary)
}

const PLANNED_WRITE: &str = "the write was planned and not sent, so its answer is not known";
const OTHER_CALLS: &str = "it makes other calls than the recorded ones, whose replies are not known";

/// Returns whether a changed answer is known: replies of other calls than the recorded ones are not.
fn is_answer_known(changes: &[ReplayChange]) -> bool {
    let is_of_answer =
        |change: &ReplayChange| matches!(change, ReplayChange::Answer(_) | ReplayChange::Fault { .. });
    let is_other_call = |change: &ReplayChange| {
        matches!(change, ReplayChange::CallBody { .. } | ReplayChange::NewCall { .. })
    };
    changes.iter().any(is_of_answer) && !changes.iter().any(is_other_call)
}

/// Returns the grouping key of a change: a description without values, and the mapping line.
fn alike(change: &ReplayChange) -> (String, Option<String>) {
    let line = |finding: &switchback_engine::diff::Finding| {
        finding.cause.line().filter(|line| !line.starts_with(':')).map(str::to_owned)
    };
    match change {
        ReplayChange::Answer(finding) => {
            (format!("answer {}: {}", finding.pattern, finding.kind.word()), line(finding))
        }
        ReplayChange::CallBody { number, finding, .. } => {
            (format!("call {number} sends {}: {}", finding.pattern, finding.kind.word()), line(finding))
        }
        ReplayChange::NewCall { number, .. } => (format!("call {number} is new"), None),
        ReplayChange::LostCall { .. } => ("a call is not made any more".to_owned(), None),
        ReplayChange::Fault { .. } => ("cannot be answered".to_owned(), None),
    }
}
