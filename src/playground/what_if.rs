//! What a change of the mapping would do: recorded exchanges through the pack that serves and through the one that is tried.

use super::tried::{Tried, TryError, Workbench};
use crate::replay::{Change, Fronts, Replayer, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use switchback_engine::har::Exchange;
use switchback_engine::redact::Salt;
use switchback_engine::translate::Settings;
use tokio::task::spawn_blocking;

/// What became of the recorded exchanges.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WhatIf {
    pub exchanges: usize,
    /// Their calls and answers are as they were recorded.
    pub same: usize,
    /// Nothing can be said of them, with the reasons.
    pub unknown: usize,
    pub reasons: Vec<(String, usize)>,
    /// What changed, the most frequent first.
    pub changed: Vec<Group>,
}

/// Exchanges that change alike.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// Side and operation.
    pub operation: String,
    /// In one sentence, without values of one exchange alone.
    pub what: String,
    /// The line of the mapping behind it, as `file:line`.
    pub line: Option<String>,
    /// An example, values masked.
    pub example: String,
    pub count: usize,
    /// Numbers of recorded exchanges, the first few.
    pub recorded: Vec<usize>,
}

/// Exchanges that a group names.
const NAMED_MAX: usize = 5;

impl Workbench {
    /// Runs all recorded exchanges through the pack with these files.
    pub async fn what_if(&self, files: BTreeMap<String, String>) -> Result<WhatIf, TryError> {
        let tried = self.tried(files).await?;
        let exchanges = self.exchanges();
        spawn_blocking(move || told(&tried, &exchanges)).await.map_err(|_| TryError::Interrupted)?
    }
}

fn told(tried: &Tried, exchanges: &[Exchange]) -> Result<WhatIf, TryError> {
    let mut salt = [0; 32];
    getrandom::fill(&mut salt).map_err(|error| TryError::Request(error.to_string()))?;
    let fronts = Fronts::of(&tried.pack);
    let settings = Settings::clone(&tried.settings);
    let replayer = Replayer::new(Arc::clone(&tried.pack), settings, fronts, Salt::new(salt));
    let mut said = WhatIf { exchanges: exchanges.len(), ..WhatIf::default() };
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut found: BTreeMap<(String, String, Option<String>), Group> = BTreeMap::new();
    for (number, exchange) in exchanges.iter().enumerate() {
        let outcome = replayer.offline(exchange);
        let operation = outcome.operation.unwrap_or_default();
        match outcome.verdict {
            Verdict::Same | Verdict::SameCalls => said.same += 1,
            Verdict::Unknown(why) => {
                said.unknown += 1;
                *reasons.entry(why.to_string()).or_default() += 1;
            }
            Verdict::Changed(changes) => {
                let mut seen = Vec::new();
                for change in changes {
                    let (what, line) = alike(&change);
                    let key = (operation.clone(), what.clone(), line.clone());
                    if seen.contains(&key) {
                        continue;
                    }
                    seen.push(key.clone());
                    let group = found.entry(key).or_insert_with(|| Group {
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

/// What changes have in common that are counted together.
fn alike(change: &Change) -> (String, Option<String>) {
    let line = |finding: &switchback_engine::diff::Finding| {
        finding.cause.line().filter(|line| !line.starts_with(':')).map(str::to_owned)
    };
    match change {
        Change::Answer(finding) => {
            (format!("answer {}: {}", finding.pattern, finding.kind.word()), line(finding))
        }
        Change::CallBody { number, finding, .. } => {
            (format!("call {number} sends {}: {}", finding.pattern, finding.kind.word()), line(finding))
        }
        Change::NewCall { number, .. } => (format!("call {number} is new"), None),
        Change::LostCall { .. } => ("a call is not made any more".to_owned(), None),
        Change::Fault { .. } => ("cannot be answered".to_owned(), None),
    }
}
