//! Analyses of the data that plans read: the settings that one side depends on, and the members of
//! a step's reply that the rest of its route uses.

use super::{
    Answer, Beyond, Block, BodyPlan, CallHead, Check, CheckElse, Choice, Close, CloseFrom, Column, Decision,
    Direction, Each, EachOf, Effect, Emit, End, ErrorPlan, Expr, HeaderRule, Keep, Location, Member,
    MemberAction, ObjectOp, OnFail, Others, Overlay, Pack, PageOf, Pages, Pair, Path, PathPart, Poll,
    Predicate, QueryFrom, ReadBack, Recall, Refusal, Response, ResponseBody, Route, RouteKind, Segment,
    Selection, Serve, SideId, StepAction, StepCall, Take, ValueOp,
};
use crate::AfterDate;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Pack {
    /// Returns the settings (indices into [`Pack::settings`]) that serving a side reads, for any
    /// choice of alternative routes.
    ///
    /// All plans are destructured without `..`, so that a new field of a plan is a compile error
    /// here. A setting that this analysis overlooks would not be required at startup, and the first
    /// request that reads it would fail.
    pub fn settings_read(&self, serves: SideId) -> BTreeSet<u16> {
        let mut found = BTreeSet::new();
        let mut note = |read: Read<'_>| match read {
            Read::Setting(setting) => drop(found.insert(setting)),
            Read::Place(place) => self.settings_at(place, &mut found),
            Read::Shape { .. } => {}
        };
        let mut reads = Reads { note: &mut note };
        let Direction { serves: _, routes, error } = &self.directions[serves];
        reads.body(error);
        for route in routes {
            route.instead.iter().for_each(|instead| (reads.note)(Read::Setting(instead.setting)));
            route.all().for_each(|route| reads.route(route));
        }
        // The clients' archived data is harvested from their own side.
        for harvest in self.harvests.iter().filter(|harvest| harvest.from == serves) {
            reads.route(&harvest.route);
        }
        found
    }

    fn settings_at(&self, place: &Location, found: &mut BTreeSet<u16>) {
        let settings = self.settings.iter().zip(0..);
        match &place.path {
            Path::Singular(segments) => {
                let mut names = members_of(segments);
                // Settings are below `$.config`.
                if names.next() == Some("config") {
                    let name = names.collect::<Vec<_>>().join(".");
                    found.extend(settings.filter(|(one, _)| one.name == name).map(|(_, at)| at));
                }
            }
            // A filter may spell a path in several ways. Treat a query that contains all words of a
            // setting's name as reading it.
            // A setting too many only adds a requirement at startup. A setting too few would fail at a
            // request.
            Path::Query(_) if place.text.contains("config") => {
                let mentioned = |name: &str| name.split('.').all(|word| place.text.contains(word));
                found.extend(settings.filter(|(one, _)| mentioned(&one.name)).map(|(_, at)| at));
            }
            Path::Query(_) => {}
        }
    }
}

impl Block {
    /// Returns the members of a step's reply body that later writes depend on, directly, through a
    /// shape, or through computed values of the block. Members of a body that is passed on
    /// unchanged, and places in conditions, do not count.
    pub(super) fn members_written(&self, step: &str) -> BTreeSet<Arc<str>> {
        let mut found = BTreeSet::new();
        let mut note = |read: Read<'_>| match read {
            Read::Setting(_) => {}
            Read::Place(place) => {
                if let Path::Singular(segments) = &place.path
                    && let mut names = members_of(segments)
                    && (names.next(), names.next()) == (Some(step), Some("body"))
                    && let Some(member) = names.next()
                {
                    found.insert(member.into());
                }
            }
            Read::Shape { op, from, over } => {
                if let ValueOp::Object(object) = op
                    && is_body_of(from, step)
                {
                    // A dropped member does not depend on the reply.
                    let is_read = |member: &&Member| {
                        matches!(member.action, MemberAction::Emit(_)) || member.capture.is_some()
                    };
                    found.extend(object.members.iter().filter(is_read).map(|one| one.name.text.clone()));
                }
                if let Some(over) = over.filter(|over| is_body_of(&over.base, step)) {
                    found.extend(over.fields.iter().map(|field| field.text.clone()));
                }
            }
        };
        Reads { note: &mut note }.note_writes(self);
        found
    }
}

impl Expr {
    /// Returns whether the value depends on the arrival of the request, directly or through one of
    /// these results, so that it differs for each request.
    pub fn depends_on_arrival(&self, results: &BTreeSet<Arc<str>>) -> bool {
        let mut found = false;
        let mut note = |read: Read<'_>| {
            if let Read::Place(place) = read {
                found |= match &place.path {
                    Path::Singular(segments) => {
                        let names: Vec<&str> = members_of(segments).take(2).collect();
                        names.first().is_some_and(|first| results.contains(*first))
                            || ARRIVAL.contains(&names.join(".").as_str())
                    }
                    Path::Query(_) => false,
                };
            }
        };
        Reads { note: &mut note }.expr(self);
        found
    }
}

/// The places of the arrival of a request.
pub const ARRIVAL: [&str; 2] = ["request.received", "request.id"];

fn is_body_of(expr: &Expr, step: &str) -> bool {
    match expr {
        Expr::At(Location { path: Path::Singular(segments), .. }) => members_of(segments).eq([step, "body"]),
        _ => false,
    }
}

/// Returns the leading member names of a path, up to its first index.
fn members_of(segments: &[Segment]) -> impl Iterator<Item = &str> {
    segments.iter().map_while(|segment| match segment {
        Segment::Member(key) => Some(&*key.text),
        Segment::Index(_) => None,
    })
}

/// One read of a plan.
enum Read<'r> {
    Setting(u16),
    Place(&'r Location),
    Shape { op: &'r ValueOp, from: &'r Expr, over: Option<&'r Overlay> },
}

struct Reads<'n> {
    note: &'n mut dyn FnMut(Read<'_>),
}

impl Reads<'_> {
    fn route(&mut self, route: &Route) {
        match &route.kind {
            RouteKind::Pair(pair) => self.pair(pair),
            RouteKind::Serve(serve) => {
                let Serve { checks, fill: _, block, reads_arrival: _ } = &**serve;
                checks.iter().for_each(|check| self.check(check));
                self.block(block);
            }
            RouteKind::Refuse(refusal) => self.refusal(refusal),
        }
        if let Some(ReadBack { operation: _, path, shows: _, origin: _ }) = &route.read_back {
            path.iter().for_each(|part| self.part(part));
        }
    }

    fn pair(&mut self, pair: &Pair) {
        let Pair { refused: _, constants: _, call, request, responses } = pair;
        self.call(call);
        request.iter().for_each(|body| self.body(body));
        for Response { from: _, to: _, headers, body } in responses {
            self.headers(headers);
            match body {
                ResponseBody::Plan(body) | ResponseBody::Error(ErrorPlan { body, declared: _ }) => {
                    self.body(body)
                }
                ResponseBody::Empty | ResponseBody::Opaque(_) | ResponseBody::Undescribed => {}
            }
        }
    }

    fn call(&mut self, call: &CallHead) {
        let CallHead {
            operation: _,
            host: _,
            method: _,
            path,
            query,
            headers,
            format: _,
            answers: _,
            partial: _,
            effect: _,
            repeatable: _,
            origin: _,
        } = call;
        // A value in a path, query or header is as much a part of a write as its body.
        path.iter().for_each(|part| self.part(part));
        for rule in query {
            match &rule.from {
                QueryFrom::Value(value) => self.expr(value),
                QueryFrom::Client(_) | QueryFrom::ClientFields(_) | QueryFrom::Constant(_) => {}
            }
        }
        self.headers(headers);
    }

    fn part(&mut self, part: &PathPart) {
        match part {
            PathPart::Value(value) => self.expr(value),
            PathPart::Literal(_) | PathPart::Variable(_) => {}
        }
    }

    fn headers(&mut self, headers: &[HeaderRule]) {
        headers.iter().for_each(|HeaderRule { name: _, value }| self.expr(value));
    }

    fn check(&mut self, check: &Check) {
        let Check { predicate, only_if, unless, otherwise, origin: _ } = check;
        self.predicate(predicate);
        only_if.iter().chain(unless).for_each(|place| self.place(place));
        match otherwise {
            CheckElse::Refuse(refusal) => self.refusal(refusal),
            CheckElse::Answer { .. } => {}
        }
    }

    fn refusal(&mut self, refusal: &Refusal) {
        match &refusal.after_date {
            Some(AfterDate::Setting(setting)) => (self.note)(Read::Setting(*setting)),
            Some(AfterDate::Day(_)) | None => {}
        }
    }

    fn block(&mut self, block: &Block) {
        let Block { steps, end } = block;
        for step in steps {
            match &step.action {
                StepAction::Call(call) => self.step(call),
                StepAction::Select(selection) => self.selection(selection),
                StepAction::Make(value) => self.expr(value),
                StepAction::Recall(recall) => {
                    let Recall { archive: _, key, each, when } = &**recall;
                    self.expr(key);
                    when.iter().for_each(|predicate| self.predicate(predicate));
                    self.each_of(each.as_ref());
                }
                StepAction::Keep(keep) => {
                    let Keep { archive: _, key, value, each, when } = &**keep;
                    self.expr(key);
                    value.iter().for_each(|value| self.expr(value));
                    when.iter().for_each(|predicate| self.predicate(predicate));
                    self.each_of(each.as_ref());
                }
            }
        }
        match end {
            End::Answer(answer) => self.answer(answer),
            End::Refuse(refusal) => self.refusal(refusal),
            End::Decide(decision) => {
                let Decision { columns, rows: _, outcomes } = &**decision;
                for column in columns {
                    match column {
                        Column::Place(place) => self.place(place),
                        Column::Holds(predicate) => self.predicate(predicate),
                    }
                }
                outcomes.iter().for_each(|outcome| self.block(&outcome.block));
            }
        }
    }

    // All computed values count, even if no write uses them.
    fn note_writes(&mut self, block: &Block) {
        // Only writes and computed values are relevant: a read that is built from an incomplete reply
        // changes nothing at the service.
        for step in block.all().flat_map(|block| &block.steps) {
            match &step.action {
                StepAction::Call(call) if call.head.effect == Effect::Write => {
                    self.call(&call.head);
                    call.body.iter().for_each(|value| self.expr(value));
                }
                StepAction::Make(value) => self.expr(value),
                StepAction::Call(_) | StepAction::Select(_) | StepAction::Recall(_) | StepAction::Keep(_) => {
                }
            }
        }
    }

    fn step(&mut self, step: &StepCall) {
        let StepCall { head, body, when, each, pages, poll, promises: _, on_fail, resume } = step;
        self.call(head);
        body.iter().chain(resume.iter().flatten()).for_each(|value| self.expr(value));
        when.iter().for_each(|predicate| self.predicate(predicate));
        if let Some(Each { name: _, list, upto: _, beyond }) = each {
            self.place(list);
            beyond.iter().for_each(|refusal| self.refusal(refusal));
        }
        if let Some(Pages { parameter: _, first: _, upto: _, size: _, until, beyond }) = pages {
            until.iter().for_each(|place| self.place(place));
            match beyond {
                Beyond::Refuse(refusal) => self.refusal(refusal),
                Beyond::Cut | Beyond::Absent => {}
            }
        }
        if let Some(Poll { until, every: _, within: _ }) = poll {
            self.predicate(until);
        }
        match on_fail {
            OnFail::PassWith(headers) => self.headers(headers),
            OnFail::Answer(answer) => self.answer(answer),
            OnFail::Use(value) => self.expr(value),
            OnFail::Refuse(refusal) => self.refusal(refusal),
            OnFail::Pass | OnFail::Absent(_) => {}
        }
    }

    fn each_of(&mut self, each: Option<&EachOf>) {
        if let Some(EachOf { name: _, list }) = each {
            self.place(list);
        }
    }

    fn selection(&mut self, selection: &Selection) {
        for Choice { when, from, take } in &selection.choices {
            when.iter().for_each(|predicate| self.predicate(predicate));
            self.place(from);
            match take {
                Take::Page(PageOf { at, first: _, size: _ }) => self.place(at),
                Take::All | Take::First | Take::Newest(_) => {}
            }
        }
    }

    fn answer(&mut self, answer: &Answer) {
        let Answer { status: _, headers, body, legacy_forward: _ } = answer;
        self.headers(headers);
        body.iter().for_each(|value| self.expr(value));
    }

    fn predicate(&mut self, predicate: &Predicate) {
        predicate.places().into_iter().for_each(|place| self.place(place));
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Constant(_) => {}
            Expr::At(place) => self.place(place),
            Expr::Convert { from, conversion: _ } => self.expr(from),
            Expr::Apply { from, functions: _, otherwise: _ } => self.expr(from),
            Expr::Lookup { value, list, by: _, field: _ } => {
                self.expr(value);
                self.place(list);
            }
            Expr::Aggregate { what: _, list } => self.expr(list),
            Expr::Object(members) => members.iter().for_each(|(_, value)| self.expr(value)),
            Expr::Array(values) | Expr::FirstOf(values) | Expr::Present(values) => self.exprs(values),
            Expr::Text { reason: _, with } => with.iter().for_each(|(_, value)| self.expr(value)),
            Expr::Shape { op, from, with, over, null_as: _, null_else: _ } => {
                (self.note)(Read::Shape { op, from, over: over.as_deref() });
                self.op(op);
                self.expr(from);
                self.exprs(with);
                if let Some(over) = over {
                    let Overlay { base, fields: _ } = &**over;
                    self.expr(base);
                }
            }
            Expr::Each { name: _, list, give } => {
                self.expr(list);
                self.expr(give);
            }
            Expr::If { predicate, then, otherwise } => {
                self.predicate(predicate);
                self.expr(then);
                otherwise.iter().for_each(|value| self.expr(value));
            }
            Expr::Lines { plain, numbered } => {
                self.exprs(plain);
                self.exprs(numbered);
            }
        }
    }

    fn exprs(&mut self, exprs: &[Expr]) {
        exprs.iter().for_each(|one| self.expr(one));
    }

    fn body(&mut self, body: &BodyPlan) {
        self.op(&body.op);
    }

    fn op(&mut self, op: &ValueOp) {
        match op {
            ValueOp::Object(object) => self.object(object),
            ValueOp::Array(inner) | ValueOp::Wrap(inner) | ValueOp::Unwrap(inner) => self.op(inner),
            ValueOp::Choose(choose) => choose.arms.iter().for_each(|arm| self.op(arm)),
            ValueOp::Attempt(attempt) => self.op(&attempt.op),
            // The enclosing op is visited already.
            ValueOp::Again(_) => {}
            ValueOp::Keep | ValueOp::Convert(_) | ValueOp::Constant(_) => {}
        }
    }

    fn object(&mut self, object: &ObjectOp) {
        let ObjectOp { name: _, members, others, close, captures: _, supplied: _ } = object;
        for Member { name: _, action, capture: _, origin: _ } in members {
            match action {
                MemberAction::Emit(Emit { name: _, op }) => self.op(op),
                MemberAction::Drop | MemberAction::Shadowed | MemberAction::Refuse(_) => {}
            }
        }
        match others {
            Others::Each(op) => self.op(op),
            Others::Drop | Others::Keep | Others::Refuse(_) => {}
        }
        close.iter().for_each(|close| self.close(close));
    }

    fn close(&mut self, close: &Close) {
        match &close.from {
            CloseFrom::Setting(setting) => (self.note)(Read::Setting(*setting)),
            CloseFrom::Captured { alternatives, absent: _ } => {
                alternatives.iter().for_each(|one| self.op(&one.op));
            }
            CloseFrom::Object(inner) => inner.iter().for_each(|close| self.close(close)),
            CloseFrom::Constant(_) | CloseFrom::Default { .. } | CloseFrom::Supplied(_) => {}
        }
    }

    fn place(&mut self, place: &Location) {
        (self.note)(Read::Place(place));
    }
}
