//! The effect of a mapping change: recorded exchanges replayed through the pack under test.

use super::tried::{DryRunPack, PlaygroundSession, TryError};
use crate::replay::{Fronts, ReplayChange, ReplayVerdict, Replayer};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use switchback_engine::har::Exchange;
use switchback_engine::redact::Salt;
use switchback_engine::translate::Settings;
use tokio::task::spawn_blocking;

/// Results of the replay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WhatIf {
    pub exchanges: usize,
    /// Exchanges with unchanged calls and answers.
    pub same: usize,
    /// Exchanges that cannot be judged, with the reasons below.
    pub unknown: usize,
    pub reasons: Vec<(String, usize)>,
    /// The changes, most frequent first.
    pub changed: Vec<ChangeGroup>,
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
    /// Replays all recorded exchanges through the pack with these files.
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
    let mut said = WhatIf { exchanges: exchanges.len(), ..WhatIf::default() };
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut found: BTreeMap<(String, String, Option<String>), ChangeGroup> = BTreeMap::new();
    for (number, exchange) in exchanges.iter().enumerate() {
        let outcome = replayer.offline(exchange);
        let operation = outcome.operation.unwrap_or_default();
        match outcome.verdict {
            ReplayVerdict::Same | ReplayVerdict::SameCalls => said.same += 1,
            ReplayVerdict::Unknown(why) => {
                said.unknown += 1;
                *reasons.entry(why.to_string()).or_default() += 1;
            }
            ReplayVerdict::Changed(changes) => {
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
        }
    }
    said.reasons = reasons.into_iter().collect();
    said.changed = found.into_values().collect();
    said.changed.sort_by_key(|group| std::cmp::Reverse(group.count));
    Ok(said)
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
