//! Asking the side that did not answer, as the shadow's workers do it: after the client was served, within the shadow's time,
//! and so that nothing but a comparison can come of it. What is done about writes is in `planned` and `read_back`.

use super::Dual;
use crate::body::Body;
use crate::error::{GatewayError, Kind, Side};
use crate::proxy::calls::call::Credential;
use crate::proxy::calls::upstream_auth;
use crate::proxy::compose;
use crate::proxy::compose::coding::{decoded, without_mark};
use crate::proxy::compose::forward::forward;
use crate::proxy::context::Facts;
use crate::proxy::layers::rescue;
use crate::proxy::program::Beside;
use crate::proxy::{Request, Response};
use crate::secret::Secret;
use crate::shadow::{Done, Dropped, Judging, Outcome, Subject};
use bytes::Bytes;
use http::{HeaderMap, header};
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::diff::{Candidate, Comparison, Held, Holding, Verdict, View};

/// Who answers the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Primary {
    /// The served side's own service.
    Own,
    /// The other side, translated.
    Plans,
}

/// A request whose other side is to be asked, without its body.
pub(crate) struct Asked {
    pub(crate) subject: Subject,
    pub(crate) facts: Arc<Facts>,
    pub(crate) beside: Arc<Beside>,
    pub(crate) primary: Primary,
    pub(crate) writes: bool,
}

/// How the client was answered.
pub(crate) enum Seen {
    Answered { status: u16, headers: HeaderMap, body: Held },
    Failed(GatewayError),
}

/// How often a difference is looked at once more before it is given up as one of things that do not stand still.
const ASKED_AGAIN_MAX: u32 = 2;

/// Bytes of a candidate's answer that are read beyond what its counterpart has: more of it would say nothing new.
const BEYOND_BYTES: u64 = 64 * 1024;

impl Dual {
    /// Asks, and says what came of it.
    pub(crate) async fn done(self, asked: Asked, body: Held, seen: Seen) -> Done {
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
        asked: &Asked,
        body: &Held,
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
                    Seen::Answered { .. } if asked.facts.is_unanswered() => {
                        return Err(Dropped::CandidateFailed);
                    }
                    seen => Candidate::Answered(self.view(seen).await?),
                };
                let reference = self.own(asked, body).await?;
                // Asked once more, as in the shadow: a failure that has passed says nothing of the mapping.
                if has_failed(&candidate)
                    && !has_failed(&self.plans(asked, body, reference.body.total_bytes()).await?)
                {
                    return Err(Dropped::CandidateFailed);
                }
                Ok(vec![self.settled(asked, body, judging, reference, candidate).await?])
            }
            Primary::Own => {
                let reference = self.view(seen).await?;
                if is_failure(reference.status) {
                    return Err(Dropped::ReferenceFailed);
                }
                match asked.writes {
                    true => self.write(asked, body, reference).await,
                    false => self.read(asked, body, reference, judging).await,
                }
            }
        }
    }

    /// A write that the own service did: what it changed, as both sides show it, where that is wanted; then what the plans would
    /// have done.
    async fn write(&self, asked: &Asked, body: &Held, reference: View) -> Result<Vec<Outcome>, Dropped> {
        let reference_status = reference.status;
        let request = self.uncoded(&asked.facts.headers, body.start().clone()).await?;
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
        asked: &Asked,
        body: &Held,
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
    /// change, or is asked once more as well. Of what never stands still only those differences count that are seen every time,
    /// at places that did stand still.
    async fn settled(
        &self,
        asked: &Asked,
        body: &Held,
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
                Primary::Own => {
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
                Primary::Own => candidate = self.plans(asked, body, reference.body.total_bytes()).await?,
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

    /// What the plans would have answered; asked once more where the other side gave no answer, or a failure of its own.
    pub(crate) async fn plans(
        &self,
        asked: &Asked,
        body: &Held,
        counterpart_bytes: u64,
    ) -> Result<Candidate, Dropped> {
        let asking = async {
            let first = self.plans_once(asked, body, counterpart_bytes).await;
            match first {
                Err(Dropped::CandidateFailed) => self.plans_once(asked, body, counterpart_bytes).await,
                Ok(candidate) if has_failed(&candidate) => {
                    self.plans_once(asked, body, counterpart_bytes).await
                }
                first => first,
            }
        };
        tokio::time::timeout(self.timeout(), asking).await.unwrap_or(Err(Dropped::CandidateFailed))
    }

    async fn plans_once(
        &self,
        asked: &Asked,
        body: &Held,
        counterpart_bytes: u64,
    ) -> Result<Candidate, Dropped> {
        let request = asked.request(body.start().clone());
        let facts = Arc::clone(&request.facts);
        let answering = async {
            let response = compose::answer(Arc::clone(&self.composer), request).await?;
            self.held(response, counterpart_bytes).await
        };
        match answering.await {
            _ if facts.is_unanswered() => Err(Dropped::CandidateFailed),
            Ok(view) => Ok(Candidate::Answered(view)),
            Err(error) => self.failure(asked, &error).await,
        }
    }

    /// What the served side's own service answers; asked once more where it gave no answer, or one that says nothing.
    pub(crate) async fn own(&self, asked: &Asked, body: &Held) -> Result<View, Dropped> {
        let asking = async {
            match self.own_once(asked, body).await {
                Err(Dropped::ReferenceFailed) => self.own_once(asked, body).await,
                first => first,
            }
        };
        tokio::time::timeout(self.timeout(), asking).await.unwrap_or(Err(Dropped::ReferenceFailed))
    }

    async fn own_once(&self, asked: &Asked, body: &Held) -> Result<View, Dropped> {
        let target = asked.facts.matched().below_front(&asked.facts);
        let request = asked.request(body.start().clone());
        let (calls, pseudonym) = (self.composer.calls.clone(), self.composer.pseudonym.clone());
        let answering = async {
            let response = forward(calls, Arc::clone(&asked.beside.own), request, target, pseudonym).await?;
            self.held(response, u64::MAX - BEYOND_BYTES).await
        };
        match answering.await {
            Ok(view) if !is_failure(view.status) => Ok(view),
            Err(error) if matches!(error.kind(), Kind::Overloaded { .. }) => Err(Dropped::Budget),
            _ => Err(Dropped::ReferenceFailed),
        }
    }

    /// What an error of the plans means for the comparison: what the client would have seen, or why there is nothing to
    /// compare.
    async fn failure(&self, asked: &Asked, error: &GatewayError) -> Result<Candidate, Dropped> {
        let what = error.detail();
        match error.kind() {
            _ if error.is_unanswered() => Err(Dropped::CandidateFailed),
            Kind::UpstreamBroken => Ok(Candidate::Unanswered { what }),
            Kind::BadBody | Kind::Internal => Ok(Candidate::Untranslated { what }),
            Kind::Overloaded { .. } => Err(Dropped::Budget),
            Kind::NeedsReconnect => Err(Dropped::Credential),
            Kind::Refused => Err(Dropped::Refused),
            _ => {
                let view = self.held(rescue::response(&asked.facts, error), 0).await;
                view.map(Candidate::Answered).map_err(|_| Dropped::PrimaryFailed)
            }
        }
    }

    /// An answer that the client got, without its content coding.
    async fn view(&self, seen: Seen) -> Result<View, Dropped> {
        let Seen::Answered { status, headers, body } = seen else { return Err(Dropped::PrimaryFailed) };
        if !headers.contains_key(header::CONTENT_ENCODING) || body.is_empty() {
            return Ok(View { status, headers, body });
        }
        if !body.is_whole() {
            return Err(Dropped::TooLarge);
        }
        let mut response = Response::new(Body::full(body.start().clone()));
        *response.headers_mut() = headers;
        let view = self.held(response, u64::MAX - BEYOND_BYTES).await;
        view.map(|view| View { status, ..view }).map_err(|_| Dropped::PrimaryFailed)
    }

    /// Reads an answer, without its content coding, and keeps as much of it as is kept of any. Little more is read than
    /// `counterpart_bytes`.
    async fn held(&self, response: Response, counterpart_bytes: u64) -> Result<View, GatewayError> {
        let limits = &self.composer.limits;
        let (parts, body) = response.into_parts();
        let mut body = decoded(
            body,
            &parts.headers,
            Side::Upstream,
            limits.decode_ratio_max,
            limits.response_bytes_max,
        )?;
        let body_bytes = self.shadow.settings().body_bytes;
        let enough = counterpart_bytes.max(body_bytes as u64) + BEYOND_BYTES;
        let (mut holding, mut read) = (Holding::new(body_bytes), 0);
        while read <= enough
            && let Some(chunk) = body.chunk().await.transpose()?
        {
            let chunk = if read == 0 { without_mark(chunk) } else { chunk };
            read += chunk.len() as u64;
            holding.push(&chunk);
            // Small pieces that are all there already must not keep the timer from its turn.
            tokio::task::consume_budget().await;
        }
        Ok(View { status: parts.status.as_u16(), headers: parts.headers, body: holding.finish() })
    }

    /// A request's body without its content coding.
    async fn uncoded(&self, headers: &HeaderMap, body: Bytes) -> Result<Bytes, Dropped> {
        if !headers.contains_key(header::CONTENT_ENCODING) || body.is_empty() {
            return Ok(body);
        }
        let limits = &self.composer.limits;
        let bytes_max = self.shadow.settings().body_bytes as u64;
        let plain = decoded(Body::full(body), headers, Side::Client, limits.decode_ratio_max, bytes_max);
        let plain = plain.map_err(|_| Dropped::PrimaryFailed)?;
        plain.collect(bytes_max).await.map_err(|_| Dropped::TooLarge)
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.shadow.settings().timeout
    }
}

impl Asked {
    /// The request once more, with facts of its own: what the shadow does is not counted as the client's.
    pub(crate) fn request(&self, body: Bytes) -> Request {
        let own = &self.facts;
        let facts = own.with_head(own.method.clone(), own.uri.clone(), own.headers.clone());
        facts.set_front(Arc::clone(&own.matched().front));
        facts.set_matched(own.matched().clone());
        facts.set_client(Arc::clone(own.enrolled()));
        Request { facts: Arc::new(facts), body: Body::full(body) }
    }

    /// Waits for the grants that calls go out with and that are being refreshed at this moment, as they all are when a gateway
    /// begins: the shadow renews none, and need not miss what is on its way.
    async fn credentials_renewed(&self, patience: Duration) {
        let serves = self.facts.matched().front.serves;
        for side in [serves, serves.other()] {
            let credential = upstream_auth::credential(&self.facts.program, self.facts.enrolled(), side);
            if let Ok(Credential::Grant { client, .. }) = credential {
                client.grant.awaited(patience).await;
            }
        }
    }

    /// Every credential that the request came with, and the one that its calls go out with.
    fn secrets(&self) -> Vec<Secret<String>> {
        let front = &self.facts.matched().front;
        let own = self.facts.program.credential(front.serves).read.iter().map(String::as_str);
        let names = own.chain(["authorization", "proxy-authorization", "cookie"]);
        let values =
            names.flat_map(|name| self.facts.headers.get_all(name)).filter_map(|value| value.to_str().ok());
        let words = values.flat_map(str::split_whitespace);
        let mut secrets: Vec<Secret<String>> = words.map(Secret::from).collect();
        for side in [front.serves, front.serves.other()] {
            match upstream_auth::credential(&self.facts.program, self.facts.enrolled(), side) {
                Ok(Credential::Grant { client, .. }) => {
                    secrets.extend(client.grant.current().map(|token| token.secret().clone()));
                }
                Ok(Credential::Fixed { value, .. } | Credential::Ready { value, .. }) => {
                    secrets
                        .extend(value.to_str().into_iter().flat_map(str::split_whitespace).map(Secret::from));
                }
                Ok(Credential::Carried) | Err(_) => {}
            }
        }
        secrets
    }
}

/// A failure of a service says nothing about the other one.
pub(crate) fn is_failure(status: u16) -> bool {
    status >= 500
}

fn has_failed(candidate: &Candidate) -> bool {
    matches!(candidate, Candidate::Answered(view) if is_failure(view.status))
}
