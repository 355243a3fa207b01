//! The route of an operation as a diagram: checks, calls, choices, decisions and outcomes in order,
//! and the losses of either side. It consists of nested lists, so that screen readers read it in
//! order.

use super::fields::percent_encode;
use super::words::{Tone, badge};
use maud::{Markup, html};
use switchback_plan::{
    Answer, Block, CallHead, Cell, CheckElse, Decision, Effect, End, Location, Loss, LossReport, OnFail,
    Origin, Pack, PathPart, Predicate, ReasonId, Refusal, Response, ResponseBody, Route, RouteKind, SideId,
    Step, StepAction, Verdict, explain, refusals,
};

/// Renders a route as a diagram, followed by the compiler's full explanation.
///
/// `has_own`: the served side has a configured service, which answers refused calls that may be
/// forwarded.
pub(super) fn diagram(pack: &Pack, serves: SideId, route: &Route, has_own: bool) -> Markup {
    let drawing = Drawing { pack, serves, route, has_own };
    html! {
        ol.flow {
            li.flow-step.start { div.flow-card { p.flow-what { (route.operation.key) } p.hint { "of " (pack.sides[serves].name) ", asked by the client" } } }
            @match &route.kind {
                RouteKind::Refuse(refusal) => (drawing.refusal(refusal)),
                RouteKind::Pair(pair) => {
                    (drawing.call(&pair.call, None))
                    li.flow-step { div.flow-card {
                        p.flow-what { "Answer" }
                        ul.flow-outcomes { @for response in &pair.responses { (response_step(response)) } }
                    } }
                }
                RouteKind::Serve(serve) => {
                    @for check in &serve.checks {
                        li.flow-step { div.flow-card.check {
                            p.flow-what { "Check " (predicate(&check.predicate)) (place(&check.origin)) }
                            p.hint { @match &check.otherwise {
                                CheckElse::Answer { status, reason } => { "else " (status) ": “" (drawing.reason(*reason)) "”" }
                                CheckElse::Refuse(refusal) => { "else refused: “" (drawing.reason(refusal.reason)) "”" }
                            } }
                        } }
                    }
                    (drawing.block(&serve.block))
                }
            }
        }
        details { summary { "Fields with mapping lines" } pre tabindex="0" aria-label="The route in full" { (explain(pack, serves, route)) } }
    }
}

/// Renders losses, substitutes for missing sources, and declared differences.
pub(super) fn losses(pack: &Pack, serves: SideId, route: &Route) -> Markup {
    let served = &pack.sides[serves].name;
    let (gaps, mut lost): (Vec<&Loss>, Vec<&Loss>) =
        route.losses.iter().partition(|loss| loss.instead.is_some() && loss.side == *served);
    // As in the report: several lines of a mapping may lose the same place.
    let mut listed: Vec<LossReport> = Vec::new();
    lost.retain(|loss| {
        let one = LossReport::new(pack, loss);
        let is_new = !listed.contains(&one);
        listed.extend(is_new.then_some(one));
        is_new
    });
    let refusals = refusals(route);
    let is_whole = route.verdict == Verdict::Exact && lost.is_empty() && gaps.is_empty();
    html! {
        p { (badge(tone(route.verdict.word()), route.verdict.word())) }
        @if is_whole && route.notes.is_empty() { p.soft { "None: all fields are preserved in both directions." } }
        @if !refusals.is_empty() {
            h3 { "Refused" }
            ul.plain { @for reason in refusals { li { "“" (pack.reason_text(reason).unwrap_or_default()) "”" } } }
        }
        @for side in &pack.sides {
            @let of_side: Vec<&Loss> = lost.iter().copied().filter(|loss| loss.side == side.name).collect();
            @if !of_side.is_empty() {
                h3 { "Fields of " (side.name) " that do not reach the other side" }
                ul.plain { @for loss in of_side { li { (LossReport::new(pack, loss).sentence()) (place(&loss.origin)) } } }
            }
        }
        @if !gaps.is_empty() {
            h3 { "Fields without a source" }
            ul.plain { @for loss in gaps { li { code { (loss.place) } " is " code { (loss.instead.as_deref().unwrap_or("null")) } @if loss.unless_found { " where nothing is found" } (place(&loss.origin)) } } }
        }
        @if !route.notes.is_empty() {
            h3 { "Declared" }
            ul.plain { @for note in &route.notes { li { (note.text) (place(&note.origin)) } } }
        }
    }
}

pub(super) fn tone(verdict: &str) -> Tone {
    match verdict {
        "exact" => Tone::Good,
        "different" => Tone::Busy,
        "partly" => Tone::Warn,
        _ => Tone::Bad,
    }
}

struct Drawing<'d> {
    pack: &'d Pack,
    serves: SideId,
    route: &'d Route,
    has_own: bool,
}

impl Drawing<'_> {
    fn reason(&self, id: ReasonId) -> &str {
        self.pack.reason_text(id).unwrap_or_default()
    }

    fn refusal(&self, refusal: &Refusal) -> Markup {
        let (status, reason) = (refusal.status, self.reason(refusal.reason));
        let own = self.has_own && refusal.legacy_forward;
        html! { li.flow-step.end { div.flow-card.refuse {
            @if own {
                p.flow-what { "Forwarded to the service of " (self.pack.sides[self.serves].name) }
                p.hint { "without it, refused with " (status) ": “" (reason) "”" }
            } @else {
                p.flow-what { "Refused with " (status) }
                p.hint { "“" (reason) "”" }
            }
        } } }
    }

    fn address(&self, path: &[PathPart]) -> String {
        let part = |part: &PathPart| match part {
            PathPart::Literal(text) => text.to_string(),
            PathPart::Variable(index) => {
                format!("{{{}}}", self.route.operation.variables[usize::from(*index)].name)
            }
            PathPart::Value(_) => "{…}".to_owned(),
        };
        path.iter().map(part).collect()
    }

    fn call(&self, head: &CallHead, more: Option<Markup>) -> Markup {
        let effect = match (head.effect, head.repeatable) {
            (Effect::None, _) => "reads",
            (Effect::Write, true) => "writes, may be repeated",
            (Effect::Write, false) => "writes, sent once",
        };
        html! {
            li.flow-step { div.flow-card.call {
                p.flow-what { (super::words::operation(&format!("{} {}", head.method, self.address(&head.path)))) (place(&head.origin)) }
                p.hint { "call of " (self.pack.sides[self.serves.other()].name) ", " (effect) }
                @if let Some(more) = more { (more) }
            } }
        }
    }

    fn block(&self, block: &Block) -> Markup {
        html! {
            @for step in &block.steps { (self.step(step)) }
            @match &block.end {
                End::Answer(answer) => (answer_step(answer)),
                End::Refuse(refusal) => (self.refusal(refusal)),
                End::Decide(decision) => (self.decision(decision)),
            }
        }
    }

    fn step(&self, step: &Step) -> Markup {
        let name = step.name.as_ref().map(|name| name.text.to_string()).unwrap_or_default();
        let plain = |what: &str| {
            html! {
                li.flow-step { div.flow-card { p.flow-what { (what) @if !name.is_empty() { " " code { "$." (name) } } (place(&step.origin)) } } }
            }
        };
        match &step.action {
            StepAction::Call(call) => {
                let more = html! {
                    ul.flow-facts {
                        @if !name.is_empty() { li { "its reply is " code { "$." (name) } } }
                        @if let Some(when) = &call.when { li { "only where " (predicate(when)) } }
                        @if let Some(each) = &call.each { li { "for each " code { (each.name.text) } " of a list, up to " (each.upto) } }
                        @if let Some(pages) = &call.pages { li { "page by page, up to " (pages.upto) } }
                        @if let Some(poll) = &call.poll { li { "again every " (format!("{:?}", poll.every)) " for " (format!("{:?}", poll.within)) ", until " (predicate(&poll.until)) } }
                        @if let Some(fail) = self.fails(&call.on_fail) { li { (fail) } }
                    }
                };
                self.call(&call.head, Some(more))
            }
            StepAction::Select(_) => plain("Choose"),
            StepAction::Make(_) => plain("Make"),
            StepAction::Recall(_) => plain("Look into an archive"),
            StepAction::Keep(_) => plain("Keep in an archive"),
        }
    }

    fn fails(&self, on_fail: &OnFail) -> Option<String> {
        match on_fail {
            OnFail::Pass | OnFail::PassWith(_) => None,
            OnFail::Answer(answer) => Some(format!("when it fails, the answer is {}", answer.status)),
            OnFail::Use(_) => Some("when it fails, goes on with a value in its place".to_owned()),
            OnFail::Refuse(refusal) => {
                Some(format!("when it fails, refused: “{}”", self.reason(refusal.reason)))
            }
            OnFail::Absent(_) => Some("when it fails, goes on without it".to_owned()),
        }
    }

    fn decision(&self, decision: &Decision) -> Markup {
        html! {
            li.flow-step.end { div.flow-card.decide {
                p.flow-what { "Decide" }
                div.scroll role="region" aria-label="Decision table" tabindex="0" { table {
                    thead { tr { @for at in 0..decision.columns.len() { th { "Condition " (at + 1) } } th { "Outcome" } } }
                    tbody { @for row in &decision.rows { tr {
                        @for cell in &row.cells { td { (render_cell(cell)) } }
                        td { (decision.outcomes.get(usize::from(row.outcome)).map_or("", |outcome| outcome.name.as_str())) (place(&row.origin)) }
                    } } }
                } }
                @for outcome in &decision.outcomes {
                    details { summary { "Outcome " strong { (outcome.name) } } ol.flow { (self.block(&outcome.block)) } }
                }
            } }
        }
    }
}

fn answer_step(answer: &Answer) -> Markup {
    html! { li.flow-step.end { div.flow-card.answer { p.flow-what { "Answer " (answer.status) } p.hint { @if answer.body.is_some() { "with a body that is made of what was read" } @else { "without a body" } } } } }
}

fn response_step(response: &Response) -> Markup {
    let (from, to) = (response.from, response.to);
    let body = match &response.body {
        ResponseBody::Empty => "without a body",
        ResponseBody::Opaque(_) | ResponseBody::Undescribed => "with the body as it comes",
        ResponseBody::Error(_) => "with the error in the client's form",
        ResponseBody::Plan(_) => "with the body translated",
    };
    html! { li { code { (from) } " → " code { (to) } ", " (body) } }
}

fn render_cell(cell: &Cell) -> Markup {
    html! {
        @match cell {
            Cell::Any => span.soft { "any" },
            Cell::Absent => "absent",
            Cell::OneOf(values) => { @for (at, value) in values.iter().enumerate() { @if at > 0 { " or " } code { (String::from_utf8_lossy(value)) } } }
        }
    }
}

/// Renders a condition in words.
fn predicate(of: &Predicate) -> Markup {
    let joined = |of: &[Predicate], word: &str| {
        html! { "(" @for (at, one) in of.iter().enumerate() { @if at > 0 { " " (word) " " } (predicate(one)) } ")" }
    };
    let places: Vec<String> = of.places().into_iter().map(location).collect();
    let places = places.join(", ");
    let words = match of {
        Predicate::Present(_) => "is there",
        Predicate::Missing(_) => "is not there",
        Predicate::NotNull(_) => "is not null",
        Predicate::AnyPresent(_) => "one of them is there",
        Predicate::AllPresent(_) => "all of them are there",
        Predicate::NonePresent(_) => "none of them is there",
        Predicate::OneOf(..) => "has one of the listed values",
        Predicate::Kind(..) => "is of its type",
        Predicate::Equal(..) => "are equal",
        Predicate::AbsentOrEqual(..) => "are equal, where there",
        Predicate::All(of) => return joined(of, "and"),
        Predicate::Any(of) => return joined(of, "or"),
        Predicate::Not(of) => return html! { "not (" (predicate(of)) ")" },
        Predicate::Conforms(_) => return html! { "that the request is what the contract says" },
    };
    html! { code { (places) } " " (words) }
}

/// Returns the text of a place in the context.
fn location(of: &Location) -> String {
    of.text.to_string()
}

/// Renders a link to the responsible mapping line.
pub(super) fn place(origin: &Origin) -> Markup {
    let (file, line) = (&origin.file, origin.line);
    html! { " " a.place href={ "/pack?show=files&file=" (percent_encode(file)) "&line=" (line) "#L" (line) } { (file) ":" (line) } }
}
