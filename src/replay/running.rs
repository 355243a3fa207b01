//! The replay of one exchange.

use super::address::Fronts;
use super::outcome::{ReplayChange, ReplayOutcome, ReplayVerdict, UnknownReason};
use http::{HeaderMap, HeaderName, Method, header};
use std::sync::Arc;
use switchback_engine::diff::Comparison;
use switchback_engine::har::{self, Exchange, Shadow};
use switchback_engine::redact::Salt;
use switchback_engine::translate::example::same_target;
use switchback_engine::translate::paging::{Readable, asks_beyond_first, asks_by_cursor};
use switchback_engine::translate::{
    self, Answer, Event, Fault, Next, Refused, Reply, Run, Settings, gateway_error, negotiate,
};
use switchback_gateway::outcome::Outcome as Ended;
use switchback_json::Limits;
use switchback_plan::router::{Found, Router};
use switchback_plan::{Effect, Pack, Paging, PerSide, SideId, Told};

/// Replays exchanges through a pack.
pub struct Replayer {
    pub(super) pack: Arc<Pack>,
    settings: Arc<Settings>,
    fronts: Fronts,
    /// By served side.
    routers: PerSide<Router>,
    pub(super) judge: super::judge::ReplayJudge,
    /// Whether answers are compared with those that clients received. Otherwise those of the shadow
    /// are compared with the recorded ones of the shadow.
    is_against_received: bool,
}

/// The next action of a replay.
#[derive(Debug)]
pub enum ReplayStep {
    /// A call to make, or to look up in the recording.
    Call(translate::Call),
    /// The pause of a step that polls.
    Wait(translate::Wait),
    Over(ReplayOutcome),
}

/// The recorded result of a call.
#[derive(Debug)]
pub enum RecordedReply {
    Reply(Event),
    /// No usable reply.
    Unknown(UnknownReason),
    /// The shadow stopped here.
    End,
}

/// An exchange that is being replayed.
pub struct ReplayRun<'r> {
    replayer: &'r Replayer,
    exchange: &'r Exchange,
    at: super::judge::ExchangeRoute,
    run: Run,
    language: usize,
    operation: String,
    calls: Vec<String>,
    changes: Vec<ReplayChange>,
    /// Whether the plan has repeated each recorded call.
    used: Vec<bool>,
    /// Whether the plan's calls are compared with the recorded ones.
    compares_calls: bool,
    /// Whether replies are taken from the recording.
    is_offline: bool,
    pages: ReplayPages,
}

impl Replayer {
    /// Builds a replayer. `settings` are the operator's settings of the pack, `fronts` the places
    /// where clients speak it. `salt` keys the hashes that are printed in place of redacted values.
    pub fn new(pack: Arc<Pack>, settings: Settings, fronts: Fronts, salt: Salt) -> Replayer {
        Replayer {
            routers: SideId::BOTH.map(|side| Router::new(&pack.directions[side])),
            judge: super::judge::ReplayJudge::new(&pack, salt),
            settings: Arc::new(settings),
            fronts,
            pack,
            is_against_received: false,
        }
    }

    /// Compares each answer with the one that the client received, also where the plan ran in the
    /// shadow of the service that answered.
    pub fn against_received(mut self) -> Replayer {
        self.is_against_received = true;
        self.judge.compares_masked_texts = true;
        self
    }

    /// Finds the route of an exchange and starts its replay.
    ///
    /// # Errors
    ///
    /// The outcome, if it is known without a replay.
    pub fn begin<'r>(&'r self, exchange: &'r Exchange) -> Result<ReplayRun<'r>, ReplayOutcome> {
        let over =
            |operation, verdict| ReplayOutcome { operation, calls: Vec::new(), verdict, is_by_kind: false };
        let foreign = || over(None, ReplayVerdict::Unknown(UnknownReason::Foreign));
        let (serves, target) = self.fronts.find(exchange).ok_or_else(foreign)?;
        let method: Method = exchange.request.method.parse().map_err(|_| foreign())?;
        let (path, query) =
            target.split_once('?').map_or((&*target, None), |(path, query)| (path, Some(query)));
        let Found::Route { route, values } = self.routers[serves].find(&method, path) else {
            return Err(foreign());
        };
        let planned = &self.pack.directions[serves].routes[route];
        let operation = format!("{} {}", self.pack.sides[serves].name, planned.operation.key);
        let Some(body) = exchange.request.body.bytes() else {
            return Err(over(Some(operation), ReplayVerdict::Unknown(UnknownReason::NoRequestBody)));
        };
        let pages = ReplayPages::from_paging(planned.paging.as_deref(), query.unwrap_or_default());
        if pages.asks_by_sealed {
            return Err(over(Some(operation), ReplayVerdict::Unknown(UnknownReason::Cursor)));
        }
        let headers = har::header_map(&exchange.request.headers);
        let language = self.language(exchange, &headers);
        let request = translate::Request {
            path: values.into_iter().map(std::borrow::Cow::into_owned).collect(),
            query: query.map(str::to_owned),
            headers,
            body,
            language,
            arrival: Some(translate::Arrival::of_recording(&exchange.started)),
        };
        let (pack, settings) = (Arc::clone(&self.pack), Arc::clone(&self.settings));
        let recorded = exchange.gateway.as_ref().map_or(0, |known| known.calls.len());
        let is_by_plan = exchange.gateway.as_ref().is_some_and(|known| {
            matches!(Ended::parse(&known.outcome), Some(Ended::Translated | Ended::Refused))
        });
        Ok(ReplayRun {
            replayer: self,
            exchange,
            at: super::judge::ExchangeRoute { serves, route },
            run: Run::new(pack, serves, route, request, settings, Limits::DOCUMENT)
                .with_pages(Arc::new(RecordedPages::from_url(&exchange.request.url))),
            language,
            operation,
            calls: Vec::new(),
            changes: Vec::new(),
            used: vec![false; recorded],
            // Without an outcome, missing calls may be unrecorded.
            compares_calls: recorded > 0 || is_by_plan,
            is_offline: true,
            pages,
        })
    }

    fn language(&self, exchange: &Exchange, headers: &HeaderMap) -> usize {
        let languages = &self.pack.languages;
        match &exchange.gateway {
            Some(known) if known.language < languages.len() => known.language,
            _ => {
                let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
                negotiate(accepted.unwrap_or_default(), languages)
            }
        }
    }
}

impl ReplayRun<'_> {
    /// Returns the effect of the operation on the service.
    pub fn effect(&self) -> Effect {
        self.replayer.pack.directions[self.at.serves].routes[self.at.route].operation.effect
    }

    /// Limits the comparison to the answer, for live replays.
    pub fn ignore_recorded_calls(&mut self) {
        (self.compares_calls, self.is_offline) = (false, false);
    }

    /// Returns why the exchange cannot be judged with any pack.
    pub fn unknown(&self) -> Option<UnknownReason> {
        let known = self.exchange.gateway.as_ref()?;
        let ended = Ended::parse(&known.outcome);
        match (&known.shadow, ended) {
            (Some(_), _) if self.is_offline && known.is_recalled => Some(UnknownReason::Recalled),
            (Some(Shadow::Dropped(why)), _) if self.is_offline => {
                Some(UnknownReason::ShadowDropped(why.clone()))
            }
            (Some(_), _) => None,
            // The plan did not run at that time, so there are no replies to feed it with.
            (None, Some(Ended::Forwarded)) if self.is_offline => Some(UnknownReason::Forwarded),
            (None, None | Some(Ended::Translated | Ended::Forwarded | Ended::Refused | Ended::Rejected)) => {
                (self.is_offline && known.is_recalled).then_some(UnknownReason::Recalled)
            }
            // Plans map the errors of a service, so such an answer can be replayed if the service
            // replied at all.
            (None, Some(Ended::UpstreamError)) if self.is_offline && !known.calls.is_empty() => None,
            (None, Some(ended)) => Some(UnknownReason::Unanswered(ended.as_str().to_owned())),
        }
    }

    /// Returns whether the gateway recorded this outcome.
    fn has_ended(&self, outcome: Ended) -> bool {
        self.exchange.gateway.as_ref().is_some_and(|known| known.outcome == outcome.as_str())
    }

    /// Advances the plan by an event. After [`ReplayStep::Over`] the replay is finished.
    pub fn next(&mut self, event: Event) -> ReplayStep {
        match self.run.next(event) {
            Ok(Next::Call(call)) => {
                self.calls.push(self.name(&call));
                ReplayStep::Call(call)
            }
            // A replay has no archives: lookups return no entry, and writes are discarded.
            Ok(Next::Recall(lookup)) => self.next(lookup.nothing()),
            Ok(Next::Keep(_)) => self.next(Event::Kept),
            Ok(Next::Wait(wait)) => ReplayStep::Wait(wait),
            Ok(Next::Answer(answer)) => ReplayStep::Over(self.over(&answer)),
            Ok(Next::Refuse(refused)) => ReplayStep::Over(self.finish_refused(&refused)),
            Err(fault) => ReplayStep::Over(self.fault(&fault)),
        }
    }

    /// Returns the recorded reply of a call. Each is used once. Records differences of the call.
    pub fn take_reply(&mut self, call: &translate::Call) -> RecordedReply {
        let number = self.calls.len();
        let known = self.exchange.gateway.as_ref();
        let calls = known.map_or(&[][..], |known| &known.calls);
        let is_planned = known.is_some_and(|known| known.shadow == Some(Shadow::Planned));
        // The shadow stops once no write can follow, so the recording stops here, too.
        let is_last = !self.run.may_write();
        if is_planned && is_last && call.effect == Effect::None {
            self.calls.pop();
            return RecordedReply::End;
        }
        let is_same = |recorded: &Exchange| {
            recorded.request.method == call.method.as_str()
                && same_target(&recorded.request.url, &call.target)
        };
        // By method and target instead of position: an added call must not shift all later ones.
        let at = (0..calls.len()).find(|at| !self.used[*at] && is_same(&calls[*at]));
        let Some(at) = at else {
            if self.has_ended(Ended::Rejected) && calls.is_empty() {
                return RecordedReply::Unknown(UnknownReason::Unanswered(
                    Ended::Rejected.as_str().to_owned(),
                ));
            }
            // The gateway resumed from a cached page position.
            if self.is_offline && self.pages.page_call.as_deref() == Some(&*call.operation) {
                return RecordedReply::Unknown(UnknownReason::Position);
            }
            if self.compares_calls {
                let call = self.name(call);
                self.changes.push(ReplayChange::NewCall { number, call });
            }
            return RecordedReply::Unknown(UnknownReason::NoReply);
        };
        self.used[at] = true;
        self.compare_body(number, call, &calls[at]);
        match &calls[at].response {
            None if is_planned && call.effect == Effect::Write => match is_last || call.is_read {
                true => RecordedReply::End,
                // The plan uses only the success of a write.
                false => RecordedReply::Reply(Event::Reply(Reply { status: 200, ..Reply::default() })),
            },
            None => RecordedReply::Unknown(UnknownReason::CallUnanswered),
            Some(response) => match response.body.bytes() {
                None => RecordedReply::Unknown(UnknownReason::NoReply),
                Some(body) => {
                    let headers = har::header_map(&response.headers);
                    RecordedReply::Reply(Event::Reply(Reply { status: response.status, headers, body }))
                }
            },
        }
    }

    fn compare_body(&mut self, number: usize, call: &translate::Call, recorded: &Exchange) {
        let Some(before) = recorded.request.body.bytes() else { return };
        let now = call.body.clone().unwrap_or_default();
        let findings = self.replayer.judge.bodies(&recorded.request.masked, before, now);
        let call = self.name(call);
        let change = |finding| ReplayChange::CallBody { number, call: call.clone(), finding };
        self.changes.extend(findings.into_iter().map(change));
    }

    /// Finishes a replay that cannot continue.
    pub fn finish_unknown(mut self, why: UnknownReason) -> ReplayOutcome {
        self.outcome(Err(why))
    }

    /// Finishes a replay at the point where the shadow stopped. Only the calls are judged.
    pub fn finish_planned(mut self) -> ReplayOutcome {
        self.note_lost_calls();
        let changes = std::mem::take(&mut self.changes);
        let verdict =
            if changes.is_empty() { ReplayVerdict::SameCalls } else { ReplayVerdict::Changed(changes) };
        ReplayOutcome {
            operation: Some(self.operation.clone()),
            calls: std::mem::take(&mut self.calls),
            verdict,
            is_by_kind: false,
        }
    }

    /// Finishes a replay without sending its calls.
    pub fn given_up(mut self, why: UnknownReason) -> ReplayOutcome {
        // The run stops before its calls, so the differences so far prove no change.
        self.changes.clear();
        self.outcome(Err(why))
    }

    fn over(&mut self, answer: &Answer) -> ReplayOutcome {
        self.note_lost_calls();
        self.outcome(Ok(answer))
    }

    fn note_lost_calls(&mut self) {
        if self.compares_calls {
            let calls = self.exchange.gateway.as_ref().map_or(&[][..], |known| &known.calls);
            let lost = calls.iter().zip(&self.used).filter(|(_, used)| !**used).map(|(call, _)| {
                ReplayChange::LostCall { call: self.call_label(&call.request.method, &call.request.url) }
            });
            self.changes.extend(lost.collect::<Vec<_>>());
        }
    }

    fn finish_refused(&mut self, refused: &Refused) -> ReplayOutcome {
        // The old service answered in place of the refusal, so the recorded answer is not the plan's.
        let was_forwarded = self.exchange.gateway.as_ref().is_some_and(|known| known.calls.is_empty())
            && self.exchange.response.as_ref().is_some_and(|answer| answer.status != refused.refusal.status);
        if refused.refusal.legacy_forward && was_forwarded {
            return self.outcome(Err(UnknownReason::Forwarded));
        }
        let answer = refused.answer(&self.replayer.pack, self.at.serves);
        self.over(&answer)
    }

    fn fault(&mut self, fault: &Fault) -> ReplayOutcome {
        let pack = &self.replayer.pack;
        let (status, _) = gateway_error(pack, self.at.serves, fault.kind.name(), self.language);
        let was_fault = self.exchange.response.as_ref().is_some_and(|answer| answer.status == status);
        // If the gateway failed with this status when it recorded, failing again is no change.
        if !was_fault {
            self.changes.push(ReplayChange::Fault { detail: fault.to_string() });
        }
        let answer = fault.answer(pack, self.at.serves, self.language);
        self.over(&answer)
    }

    fn outcome(&mut self, answer: Result<&Answer, UnknownReason>) -> ReplayOutcome {
        let mut changes = std::mem::take(&mut self.changes);
        let mut is_by_kind = false;
        let verdict = match answer {
            Err(why) => ReplayVerdict::Unknown(why),
            Ok(answer) => match self.compare(answer) {
                Err(why) => ReplayVerdict::Unknown(why),
                Ok((comparison, by_kind)) => {
                    is_by_kind = by_kind;
                    changes.extend(comparison.findings.into_iter().map(ReplayChange::Answer));
                    ReplayVerdict::of_equal(comparison.coverage)
                }
            },
        };
        // A difference that was found outweighs the rest that cannot be judged.
        let verdict = match changes.is_empty() {
            true => verdict,
            false => ReplayVerdict::Changed(changes),
        };
        ReplayOutcome {
            operation: Some(self.operation.clone()),
            calls: std::mem::take(&mut self.calls),
            verdict,
            is_by_kind,
        }
    }

    /// Returns the redacted target of a call.
    fn name(&self, call: &translate::Call) -> String {
        self.call_label(call.method.as_str(), &call.target)
    }

    fn call_label(&self, method: &str, target: &str) -> String {
        let target = self.replayer.judge.target(self.at.serves.other(), method, target);
        format!("{method} {target}")
    }

    /// Compares the recorded answer with this one. Also returns whether a masked value was compared by
    /// its kind alone.
    fn compare(&self, answer: &Answer) -> Result<(Comparison, bool), UnknownReason> {
        let known = self.exchange.gateway.as_ref();
        let is_against_plan = self.is_offline && !self.replayer.is_against_received;
        // If another service answered the client, compare with the recorded answer of the plan.
        let candidate = known.and_then(|known| match &known.shadow {
            Some(Shadow::Answered { answer, masked }) if is_against_plan => Some((answer, masked)),
            _ => None,
        });
        let recorded = candidate.map(|(answer, _)| answer).or(self.exchange.response.as_ref());
        let recorded = recorded.ok_or(UnknownReason::NoAnswer)?;
        let body = recorded.body.bytes().ok_or(UnknownReason::NoAnswer)?;
        let before = (recorded.status, har::header_map(&recorded.headers), body);
        let now = (answer.status, answer.headers.clone(), answer.body.clone().unwrap_or_default());
        // A service's own answer may differ as the report declares; two answers of the gateway must
        // be equal.
        let by_service = candidate.is_none()
            && known.is_none_or(|known| match Ended::parse(&known.outcome) {
                Some(ended) => ended == Ended::Forwarded,
                // Archives of earlier releases have no outcome.
                None => known.calls.is_empty(),
            });
        let masked = match candidate {
            Some((_, masked)) => masked,
            None => known.map_or(&[][..], |known| &known.masked),
        };
        // Each sealed cursor is unique: compare its presence, not its text.
        let masked: Vec<String> = masked.iter().chain(&self.pages.sealed_member).cloned().collect();
        let sealed_header = self.pages.sealed_header.as_ref();
        let judge = &self.replayer.judge;
        Ok(judge.answers(self.at, by_service, &masked, sealed_header, before, now))
    }
}

/// Properties of an operation's paging that affect a replay.
#[derive(Debug, Default)]
struct ReplayPages {
    /// Whether the request has a sealed cursor, which a replay cannot open.
    asks_by_sealed: bool,
    /// The place of a sealed cursor in answers.
    sealed_member: Option<String>,
    sealed_header: Option<HeaderName>,
    /// The operation of the call that reads a page, if the gateway may resume from a cached
    /// position.
    page_call: Option<Arc<str>>,
}

impl ReplayPages {
    fn from_paging(paging: Option<&Paging>, query: &str) -> ReplayPages {
        let Some(paging) = paging else { return ReplayPages::default() };
        let mut pages = ReplayPages::default();
        if paging.seals() {
            pages.asks_by_sealed = asks_by_cursor(paging, query);
            match &paging.client.next {
                Some(Told::Member(path) | Told::LinkMember(path)) => {
                    let names: Vec<&str> = path.iter().map(|key| &*key.text).collect();
                    pages.sealed_member = Some(format!("$.{}", names.join(".")));
                }
                Some(Told::Header(name)) => pages.sealed_header = HeaderName::try_from(&**name).ok(),
                Some(Told::Link) => pages.sealed_header = Some(header::LINK),
                None => {}
            }
        }
        if paging.walks() && asks_beyond_first(paging, query) {
            pages.page_call = Some(Arc::clone(&paging.call));
        }
        pages
    }
}

/// The paging state of a recorded request: the client's URL. A replay can neither open sealed
/// cursors nor recall positions.
#[derive(Debug)]
struct RecordedPages {
    address: String,
}

impl RecordedPages {
    fn from_url(url: &str) -> RecordedPages {
        RecordedPages { address: url.split(['?', '#']).next().unwrap_or_default().to_owned() }
    }
}

impl translate::paging::Pages for RecordedPages {
    fn seal(&self, state: &str, list: &str) -> String {
        translate::paging::Pages::seal(&Readable, state, list)
    }

    fn open(&self, _: &str, _: &str) -> Option<String> {
        None
    }

    fn recall(&self, _: &str, _: u64) -> Option<(u64, String)> {
        None
    }

    fn remember(&self, _: &str, _: u64, _: &str) {}

    // Links in answers repeat this URL; with the recorded one, they are equal to those of the recording.
    fn address(&self) -> String {
        self.address.clone()
    }
}
