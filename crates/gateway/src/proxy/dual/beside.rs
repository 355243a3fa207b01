//! The job of a shadow worker: requests the response of the other side after the client was served,
//! and compares both. Writes are handled in `planned` and `read_back`.

use super::ask::Dual;
use super::shadow_request::{ClientView, Primary, ShadowRequest, is_failure};
use crate::shadow::{Done, JobResult, Judging};
use switchback_engine::diff::{
    BufferedAnswer, Candidate, Comparison, Party, Readings, Settled, SkipReason, Step, View, is_accepted,
    settle, settle_unfinished,
};

impl Dual {
    /// Runs the job and returns its results.
    pub(crate) async fn done(self, asked: ShadowRequest, body: BufferedAnswer, seen: ClientView) -> Done {
        // The job may run seconds after the request, when the token of that time has expired. The
        // shadow never starts a refresh itself, so it waits for the one that the data path starts.
        asked.credentials_renewed(self.timeout()).await;
        let secrets = asked.secrets();
        let judging = self.shadow.judging(&secrets);
        let mut outcomes = match self.outcomes(&asked, &body, seen, &judging).await {
            Ok(outcomes) => outcomes,
            Err(why) => vec![JobResult::Skipped(why)],
        };
        // Timing repeats the request on both sides, which only a read permits.
        if !asked.writes && self.shadow.settings().shares.timed.takes(fastrand::u64(..)) {
            outcomes.extend(self.time_both(&asked, &body).await);
        }
        Done { outcomes, secrets }
    }

    async fn outcomes(
        &self,
        asked: &ShadowRequest,
        body: &BufferedAnswer,
        seen: ClientView,
        judging: &Judging,
    ) -> Result<Vec<JobResult>, SkipReason> {
        if !body.is_whole() {
            return Err(SkipReason::TooLarge);
        }
        match asked.primary {
            Primary::Plans if asked.writes => {
                let written = self.view(seen).await?;
                if !is_accepted(self.client_status(asked, &written)) {
                    return Err(SkipReason::NotAccepted);
                }
                let request = self.decode_body(&asked.request.context.headers, body.start().clone()).await?;
                Ok(self.read_back(asked, &request, written).await.into_iter().collect())
            }
            Primary::Plans => {
                let candidate = match seen {
                    ClientView::Failed(error) => self.failure(asked, &error).await?,
                    ClientView::Answered { .. } if asked.request.context.record.is_unanswered() => {
                        return Err(SkipReason::CandidateFailed);
                    }
                    seen => Candidate::Answered(self.view(seen).await?),
                };
                // The client received the response of the plans, so the reference is read
                // afterwards.
                let reference = self.own(asked, body).await?;
                // Retried as in the shadow phase: a transient failure is no evidence about the
                // mapping.
                if self.has_failed(asked, &candidate) {
                    let again = self.plans(asked, body, reference.body.total_bytes()).await?;
                    if !self.has_failed(asked, &again) {
                        return Err(SkipReason::CandidateFailed);
                    }
                }
                Ok(vec![self.compare_and_settle(asked, body, judging, reference, candidate).await?])
            }
            Primary::Legacy => {
                let reference = self.view(seen).await?;
                if is_failure(self.client_status(asked, &reference)) {
                    return Err(SkipReason::ReferenceFailed);
                }
                match asked.writes {
                    true => self.write(asked, body, reference).await,
                    false => self.compare_read(asked, body, reference, judging).await,
                }
            }
        }
    }

    /// Handles a write that the own service executed: reads its effect back on both sides if
    /// configured, then plans the translated calls.
    async fn write(
        &self,
        asked: &ShadowRequest,
        body: &BufferedAnswer,
        reference: View,
    ) -> Result<Vec<JobResult>, SkipReason> {
        let reference_status = self.client_status(asked, &reference);
        if !is_accepted(reference_status) {
            return Err(SkipReason::NotAccepted);
        }
        let request = self.decode_body(&asked.request.context.headers, body.start().clone()).await?;
        // The read-back runs first: the earlier it runs, the fewer other writes interfere.
        let read_back = self.read_back(asked, &request, reference).await;
        // A write is only planned on the other side. Sending it would execute its effect twice.
        let planned = match self.plan_calls(asked, request).await {
            Ok(planned) => JobResult::Planned { planned, reference_status },
            Err(why) => JobResult::Skipped(why),
        };
        Ok(read_back.into_iter().chain([planned]).collect())
    }

    /// Compares a read that the own service answered with the response of the plans. For a sample,
    /// also repeats the read on the own service to measure noise.
    async fn compare_read(
        &self,
        asked: &ShadowRequest,
        body: &BufferedAnswer,
        reference: View,
        judging: &Judging,
    ) -> Result<Vec<JobResult>, SkipReason> {
        // Two responses of the same side differ only by noise. Read before the candidate, so that
        // both reference reads are as close in time as possible.
        let twice = match self.shadow.settings().shares.noise.takes(fastrand::u64(..)) {
            true => self.own(asked, body).await.ok(),
            false => None,
        };
        let candidate = self.plans(asked, body, reference.body.total_bytes()).await?;
        let twice = twice.map(|second| JobResult::Twice { first: reference.clone(), second });
        let compared = self.compare_and_settle(asked, body, judging, reference, candidate).await;
        let compared = compared.unwrap_or_else(JobResult::Skipped);
        Ok(twice.into_iter().chain([compared]).collect())
    }

    /// Measures one more read on each side, in random order, so that warm caches favour neither side.
    /// `None` if a read fails.
    async fn time_both(&self, asked: &ShadowRequest, body: &BufferedAnswer) -> Option<JobResult> {
        // Only a digest of the rest exists, so the request cannot be repeated.
        if !body.is_whole() {
            return None;
        }
        let (reference, candidate) = if fastrand::bool() {
            let reference = self.own_timed(asked, body).await?;
            (reference, self.plans_timed(asked, body).await?)
        } else {
            let candidate = self.plans_timed(asked, body).await?;
            (self.own_timed(asked, body).await?, candidate)
        };
        Some(JobResult::Timed { reference, candidate })
    }

    /// Compares both responses to a read and repeats reads while they differ. [`settle`] defines the
    /// rules.
    async fn compare_and_settle(
        &self,
        asked: &ShadowRequest,
        body: &BufferedAnswer,
        judging: &Judging,
        reference: View,
        candidate: Candidate,
    ) -> Result<JobResult, SkipReason> {
        let first = match asked.primary {
            Primary::Legacy => Party::Reference,
            Primary::Plans => Party::Candidate,
        };
        let mut reference_bytes = reference.body.total_bytes();
        let mut readings = Readings {
            first,
            // Evaluated when the comparison starts: a difference caused by a write of the client in
            // between is no evidence against the mapping.
            is_written: self.writes.has_written_since(&asked.request.client.name, asked.written),
            references: vec![Candidate::Answered(reference)],
            candidates: vec![candidate],
        };
        let compare = |reference: &Candidate, other: &Candidate| match reference {
            Candidate::Answered(view) => judging.compare(&asked.subject, view, other),
            // A missing response has no fields that could have changed.
            _ => Comparison::default(),
        };
        loop {
            let read = match settle(&readings, compare) {
                Step::Ask(Party::Reference) => self.own(asked, body).await.map(|view| {
                    reference_bytes = view.body.total_bytes();
                    readings.references.push(Candidate::Answered(view));
                }),
                Step::Ask(Party::Candidate) => {
                    self.plans(asked, body, reference_bytes).await.map(|candidate| {
                        readings.candidates.push(candidate);
                    })
                }
                Step::End(settled) => return outcome(settled),
            };
            if let Err(why) = read {
                return settle_unfinished(&readings, compare).map_or(Err(why), outcome);
            }
        }
    }
}

fn outcome(settled: Settled) -> Result<JobResult, SkipReason> {
    match settled {
        Settled::Compared(comparison) => Ok(JobResult::Compared(comparison)),
        Settled::Unsettled(comparison) => Ok(JobResult::Unsettled(comparison)),
        Settled::Moved => Err(SkipReason::Moved),
    }
}
