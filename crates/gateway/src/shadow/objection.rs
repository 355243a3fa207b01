//! Evidence against a transition requested by an operator. It applies to transitions that give more
//! clients translated responses; moving back is never rejected.

use super::evidence::Objection;
use super::phase::Phase;
use super::phases::{Phases, PhasesError};
use super::record::Archive;
use switchback_engine::diff::{Proof, Threshold, report_one};

/// Number of differences to name.
const NAMED: usize = 3;

impl Phases {
    /// Returns the threshold for an operation. An operator may tolerate as much as the gate.
    pub fn threshold(&self, side: &str, operation: &str) -> Threshold {
        let fixed = Threshold::default();
        match self.policy(side, operation) {
            Some(policy) => {
                Threshold { mismatch_max: policy.mismatch_max, confidence: policy.confidence, ..fixed }
            }
            None => fixed,
        }
    }

    /// Returns the evidence of the operation's current period against moving it to this phase.
    /// Returns `None` if there is none, or if the transition does not increase the share of
    /// translated responses.
    ///
    /// # Errors
    ///
    /// No front serves the operation, several sides have one of this name, or the store fails.
    pub async fn objection(
        &self,
        side: Option<&str>,
        operation: &str,
        to: Phase,
    ) -> Result<Option<Objection>, PhasesError> {
        self.sync().await?;
        let info = self.get(side, operation)?;
        let all = self.current();
        let found = all.iter().find(|one| one.side == info.side && one.operation == info.operation);
        let Some(current) = found.filter(|current| translated_share(to) > translated_share(current.phase))
        else {
            return Ok(None);
        };
        let summaries = Archive::new(self.store().clone()).current(self).await?;
        let of_period =
            summaries.into_iter().find(|one| one.side == current.side && one.operation == current.operation);
        let Some(summary) = of_period else { return Ok(None) };
        let threshold = self.threshold(&current.side, &current.operation);
        let report = report_one(&summary, threshold);
        if report.proof != Proof::Above {
            return Ok(None);
        }
        let counts = &report.counts;
        let parts = [
            (counts.different, counts.compared_count(), "compared answers differ"),
            (counts.unsettled, counts.compared_count(), "compared answers differed once and did not repeat"),
            (
                counts.unpaired_count(),
                counts.compared_count() + counts.unpaired_count(),
                "events were sent by one side alone",
            ),
            (counts.read_back_different, counts.read_back, "effects that were read back differ"),
            (counts.planned_wrong, counts.planned, "planned writes are wrong"),
        ];
        let is_above = |part: u64, whole: u64| part as f64 > threshold.mismatch_max * whole as f64;
        let above = parts.iter().filter(|(part, whole, _)| is_above(*part, *whole));
        let mut verdict: Vec<String> =
            above.map(|(part, whole, words)| format!("{part} of {whole} {words}")).collect();
        // Parts that are individually within the threshold may exceed it together.
        if verdict.is_empty() {
            let answers = counts.evidence().answers;
            let (part, whole) = (answers.different + counts.unsettled, answers.compared);
            verdict.push(format!("{part} of {whole} comparisons differ or did not repeat"));
        }
        let causes = report.top.iter().take(NAMED);
        let causes = causes.map(|tally| format!("{}: {}", tally.pattern, tally.cause)).collect();
        Ok(Some(Objection { verdict: verdict.join(", "), causes }))
    }
}

/// Returns the share of clients that receive translated responses.
fn translated_share(phase: Phase) -> f64 {
    match phase {
        Phase::Legacy | Phase::Shadow => 0.0,
        Phase::Canary(share) => share.part(),
        Phase::Translated { .. } => 1.0,
    }
}
