//! Asking the side that did not answer, as the shadow's workers do it: after the client was served, within the shadow's time,
//! and so that nothing but a comparison can come of it. What is done about writes is in `planned` and `read_back`.

use super::ask::Dual;
use super::shadow_request::{Primary, Seen, ShadowRequest, is_failure};
use crate::shadow::{Done, Dropped, Judging, Outcome};
use switchback_engine::diff::{BufferedAnswer, Candidate, Comparison, Verdict, View};

/// How often a difference is looked at once more before it is given up as one of things that do not stand still.
const ASKED_AGAIN_MAX: u32 = 2;

impl Dual {
    /// Asks, and says what came of it.
    pub(crate) async fn done(self, asked: ShadowRequest, body: BufferedAnswer, seen: Seen) -> Done {
        asked.credentials_renewed(self.timeout()).await;
        let secrets = asked.secrets();
        let judging = self.shadow.judging(&secrets);
        let outcomes = match self.outcomes(&asked, &body, seen, &judging).await {
            Ok(outcomes) => outcomes,
            Err(why) => vec![Outcome::Dropped(why)],
        };
        Done { outcomes, secrets }
    }

    async fn outcomes(
        &self,
        asked: &ShadowRequest,
        body: &BufferedAnswer,
        seen: Seen,
        judging: &Judging,
    ) -> Result<Vec<Outcome>, Dropped> {
        if !body.is_whole() {
            return Err(Dropped::TooLarge);
        }
        match asked.primary {
            Primary::Plans => {
                let candidate = match seen {
                    Seen::Failed(error) => self.failure(asked, &error).await?,
                    Seen::Answered { .. } if asked.context.is_unanswered() => {
                        return Err(Dropped::CandidateFailed);
                    }
                    seen => Candidate::Answered(self.view(seen).await?),
                };
                let reference = self.own(asked, body).await?;
                // Asked once more, as in the shadow: a failure that has passed says nothing of the mapping.
                if self.has_failed(asked, &candidate) {
                    let again = self.plans(asked, body, reference.body.total_bytes()).await?;
                    if !self.has_failed(asked, &again) {
                        return Err(Dropped::CandidateFailed);
                    }
                }
                Ok(vec![self.settled(asked, body, judging, reference, candidate).await?])
            }
            Primary::Legacy => {
                let reference = self.view(seen).await?;
                if is_failure(self.told(asked, &reference)) {
                    return Err(Dropped::ReferenceFailed);
                }
                match asked.writes {
                    true => self.write(asked, body, reference).await,
                    false => self.read(asked, body, reference, judging).await,
                }
            }
        }
    }

    /// A write that the own service did: what it changed, as both sides show it, where that is wanted; then what the plans
    /// would have done.
    async fn write(
        &self,
        asked: &ShadowRequest,
        body: &BufferedAnswer,
        reference: View,
    ) -> Result<Vec<Outcome>, Dropped> {
        let reference_status = self.told(asked, &reference);
        let request = self.uncoded(&asked.context.headers, body.start().clone()).await?;
        // First what was changed: the sooner it is looked at, the fewer others have changed it since.
        let read_back = self.read_back(asked, &request, reference).await;
        let planned = match self.planned(asked, request).await {
            Ok(planned) => Outcome::Planned { planned, reference_status },
            Err(why) => Outcome::Dropped(why),
        };
        Ok(read_back.into_iter().chain([planned]).collect())
    }

    /// A read that the own service answered: the plans' answer beside it, and now and then the own service's once more.
    async fn read(
        &self,
        asked: &ShadowRequest,
        body: &BufferedAnswer,
        reference: View,
        judging: &Judging,
    ) -> Result<Vec<Outcome>, Dropped> {
        let twice = match self.shadow.settings().noise.takes(fastrand::u64(..)) {
            true => self.own(asked, body).await.ok(),
            false => None,
        };
        let candidate = self.plans(asked, body, reference.body.total_bytes()).await?;
        let twice = twice.map(|second| Outcome::Twice { first: reference.clone(), second });
        let compared = self.settled(asked, body, judging, reference, candidate).await;
        let compared = compared.unwrap_or_else(Outcome::Dropped);
        Ok(twice.into_iter().chain([compared]).collect())
    }

    /// Compares both sides of a reading. Where they differ, the side that answered the client is asked once more before that
    /// counts: the two answers are some time apart, and where what they show was changed in between they differ for that
    /// alone. If the side still says what it said, the difference is one. If not, the other side has either seen the same
    /// change, or is asked once more as well. Of what never stands still only those differences count that are seen every
    /// time, at places that did stand still.
    async fn settled(
        &self,
        asked: &ShadowRequest,
        body: &BufferedAnswer,
        judging: &Judging,
        mut reference: View,
        mut candidate: Candidate,
    ) -> Result<Outcome, Dropped> {
        let subject = &asked.subject;
        let mut comparison = judging.compared(subject, &reference, &candidate);
        let mut lasting = comparison.clone();
        for _ in 0..ASKED_AGAIN_MAX {
            if comparison.verdict() != Verdict::Different {
                break;
            }
            let moved = match asked.primary {
                Primary::Legacy => {
                    let before = std::mem::replace(&mut reference, self.own(asked, body).await?);
                    judging.compared(subject, &before, &Candidate::Answered(reference.clone()))
                }
                Primary::Plans => {
                    let again = self.plans(asked, body, reference.body.total_bytes()).await?;
                    let before = std::mem::replace(&mut candidate, again);
                    match before {
                        Candidate::Answered(before) => judging.compared(subject, &before, &candidate),
                        // It is not translated: that has no places, and depends on nothing that others write.
                        _ => Comparison::default(),
                    }
                }
            };
            if moved.verdict() != Verdict::Different {
                return Ok(Outcome::Compared(comparison));
            }
            comparison = judging.compared(subject, &reference, &candidate);
            lasting.keep_lasting(&comparison, &moved);
            if comparison.verdict() != Verdict::Different {
                break;
            }
            match asked.primary {
                Primary::Legacy => candidate = self.plans(asked, body, reference.body.total_bytes()).await?,
                Primary::Plans => reference = self.own(asked, body).await?,
            }
            comparison = judging.compared(subject, &reference, &candidate);
            lasting.keep_lasting(&comparison, &moved);
        }
        match (comparison.verdict(), lasting.findings.is_empty()) {
            (Verdict::Equal | Verdict::EqualSoFar, _) => Ok(Outcome::Compared(comparison)),
            (Verdict::Different, false) => Ok(Outcome::Compared(lasting)),
            (Verdict::Different, true) => Err(Dropped::Moved),
        }
    }
}
