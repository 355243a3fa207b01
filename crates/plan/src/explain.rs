//! Explains a route to a person: its calls, and the source of each field it writes.

use super::format::essence;
use super::{
    Absent, Aggregate, Answer, Becomes, Beyond, Block, BodyFormat, BodyPlan, Captured, Cell, Check,
    CheckElse, ChooseBy, ChooseOp, Close, CloseFrom, Column, Correlate, End, EventName, EventRoute, Events,
    Expr, ListStyle, Location, Loss, LossReport, MediaTypes, MemberAction, ObjectOp, OnFail, Origin, Others,
    Pack, PartKind, PathPart, Predicate, QueryFrom, Raw, ReasonId, Response, ResponseBody, Route, RouteKind,
    SideId, Step, StepAction, StepCall, ValueOp,
};
use std::fmt::Write as _;

/// Renders the route as text, with the responsible line of the mapping after each statement.
pub fn explain(pack: &Pack, serves: SideId, route: &Route) -> String {
    let mut text = Text { pack, serves, supplied: Vec::new(), out: String::new(), depth: 0 };
    let side = &pack.sides[serves].name;
    text.line(&format!("{} of {side}", route.operation.key), Some(&route.origin));
    text.depth += 1;
    text.line(&format!("verdict: {}", route.verdict.word()), None);
    text.line(&labelled_calls(route.calls_min, route.calls_max), None);
    if let (Some(class), Some(because)) = (route.class(), because(route)) {
        text.line(&format!("class: {}, because {because}", class.word()), None);
    }
    if let Some(paging) = &route.paging {
        text.line(&paging.sentence(), Some(&paging.origin));
    }
    match &route.kind {
        RouteKind::Refuse(refusal) => text.refusal(refusal.reason),
        RouteKind::Pair(pair) => {
            for refusal in &pair.refused {
                let said = format!("query {} → refused: “{}”", refusal.name, text.reason(refusal.reason));
                text.line(&said, Some(&refusal.origin));
            }
            text.call(&pair.call, &route.operation.variables);
            text.depth += 1;
            match &pair.request {
                Some(plan) => text.body("request body", plan),
                None => text.line("no request body", None),
            }
            text.depth -= 1;
            for response in &pair.responses {
                text.response(response);
            }
        }
        RouteKind::Serve(serve) => {
            for check in &serve.checks {
                text.check(check);
            }
            for (name, value) in &serve.fill {
                text.line(&format!("fill $.request.body.{} with {}", name.text, json(value)), None);
            }
            text.block(&serve.block, &route.operation.variables);
        }
    }
    if let (Some(address), Some(read_back)) = (read_back(pack, route), &route.read_back) {
        text.line(&format!("read back in a dual run by {address} of {side}"), Some(&read_back.origin));
    }
    text.losses(&route.losses);
    for note in &route.notes {
        text.line(&format!("note: {}", note.text), Some(&note.origin));
    }
    text.out
}

/// Returns the number of calls for one request: `no call`, `1`, or `0, up to 20`.
pub(super) fn calls(min: u32, max: u32) -> String {
    match (min, max) {
        (0, 0) => "no call".to_owned(),
        (min, max) if min == max => min.to_string(),
        (min, max) => format!("{min}, up to {max}"),
    }
}

/// Returns the number of calls with its label: `no call`, or `calls: 1`.
pub(super) fn labelled_calls(min: u32, max: u32) -> String {
    match max {
        0 => calls(min, max),
        _ => format!("calls: {}", calls(min, max)),
    }
}

/// Renders the translation of an event as text, with the responsible lines of the mapping.
pub fn explain_event(pack: &Pack, events: &Events, route: &EventRoute) -> String {
    let receivers = events.from.other();
    let mut text = Text { pack, serves: receivers, supplied: Vec::new(), out: String::new(), depth: 0 };
    let [sender, receiver] = [events.from, receivers].map(|side| &pack.sides[side].name);
    text.line(&format!("event {} of {sender}", route.sent), Some(&route.origin));
    text.depth += 1;
    let named = match &events.name {
        EventName::Header(field) => format!("the header field {field}"),
        EventName::Body(names) => format!("$.body.{}", names.join(".")),
    };
    text.line(&format!("known by {named}"), None);
    match &route.becomes {
        Becomes::Dropped { because } => {
            text.line(&format!("receivers of {receiver} are not told: {because}"), None);
        }
        Becomes::Event { name, body, correlate: by, .. } => {
            let field = events.told_in().map_or_else(String::new, |field| format!(", named in {field}"));
            text.line(&format!("receivers of {receiver} get {name}{field}"), None);
            let order = match route.key.as_slice() {
                [] => "one after the other".to_owned(),
                key => format!("one after the other by $.body.{}", key.join(".")),
            };
            text.line(&format!("delivered {order}"), None);
            if let Some(by) = by {
                text.line(&format!("compared in a dual run {}", correlate(by)), None);
            }
            text.body("body", body);
            text.losses(&route.losses);
        }
    }
    text.out
}

/// Returns a description such as `with the one of the same $.body.id, within 120 s`.
pub(super) fn correlate(correlate: &Correlate) -> String {
    let places: Vec<String> =
        correlate.by.iter().map(|names| format!("$.body.{}", names.join("."))).collect();
    format!("with the one of the same {}, within {} s", places.join(" and "), correlate.within.as_secs())
}

/// Returns the operation that reads the effect of the route, in the notation of the mapping.
pub(super) fn read_back(pack: &Pack, route: &Route) -> Option<String> {
    let path = &route.read_back.as_ref()?.path;
    Some(format!("GET {}", address(pack, path, &route.operation.variables)))
}

fn address(pack: &Pack, path: &[PathPart], variables: &[super::Variable]) -> String {
    let mut address = String::new();
    for part in path {
        match part {
            PathPart::Literal(text) => address.push_str(text),
            PathPart::Variable(index) => {
                let _ = write!(address, "{{{}}}", variables[usize::from(*index)].name);
            }
            PathPart::Value(value) => {
                let _ = write!(address, "{{{}}}", expr(pack, value));
            }
        }
    }
    address
}

/// Lists the media types of a body that is forwarded unchanged.
fn passed_media(media: &MediaTypes) -> String {
    let renamed = media.renamed.iter().map(|(from, to)| format!("{from} as {to}"));
    let others = media.from.iter().filter(|from| !media.renamed.iter().any(|(one, _)| one == *from));
    renamed.chain(others.map(|from| from.to_string())).collect::<Vec<_>>().join(", ")
}

/// Returns the reason why the bodies of the route are not in a cheaper class.
pub(super) fn because(route: &Route) -> Option<String> {
    let class = route.class()?;
    match &route.kind {
        RouteKind::Pair(_) if route.has_encoded_answers() => {
            Some("an answer is a form on one side".to_owned())
        }
        RouteKind::Pair(_) if route.paging.as_ref().is_some_and(|paging| paging.reads_body()) => {
            Some("its members about other pages are read or written".to_owned())
        }
        RouteKind::Pair(pair) => {
            // The class describes the regular bodies; those of errors do not count.
            let answers = pair.responses.iter().filter_map(|response| match &response.body {
                ResponseBody::Plan(plan) => Some(plan),
                ResponseBody::Empty
                | ResponseBody::Opaque(_)
                | ResponseBody::Undescribed
                | ResponseBody::Error(_) => None,
            });
            let mut plans = pair.request.iter().chain(answers);
            Some(
                plans
                    .find(|plan| plan.class == class)
                    .map_or_else(|| "no body is translated".to_owned(), |plan| plan.because.clone()),
            )
        }
        RouteKind::Serve(_) => Some("its steps read and build documents".to_owned()),
        RouteKind::Refuse(_) => None,
    }
}

/// Returns whether the route reads from the archive, and whether it writes to it.
pub(super) fn uses(route: &Route, archive: super::ArchiveId) -> (bool, bool) {
    let does = |does: fn(&StepAction, super::ArchiveId) -> bool| {
        route.blocks().flat_map(|block| &block.steps).any(|step| does(&step.action, archive))
    };
    let reads =
        does(|action, archive| matches!(action, StepAction::Recall(recall) if recall.archive == archive));
    (reads, does(|action, archive| matches!(action, StepAction::Keep(keep) if keep.archive == archive)))
}

/// Returns the reasons with which the route refuses some or all requests, sorted and without
/// duplicates.
pub fn refusals(route: &Route) -> Vec<ReasonId> {
    fn block(of: &Block, reasons: &mut Vec<ReasonId>) {
        for (_, call) in of.calls() {
            if let OnFail::Refuse(refusal) = &call.on_fail {
                reasons.push(refusal.reason);
            }
            if let Some(Beyond::Refuse(refusal)) = call.pages.as_ref().map(|pages| &pages.beyond) {
                reasons.push(refusal.reason);
            }
            if let Some(refusal) = call.each.as_ref().and_then(|each| each.beyond.as_ref()) {
                reasons.push(refusal.reason);
            }
        }
        if let End::Refuse(refusal) = &of.end {
            reasons.push(refusal.reason);
        }
    }
    fn op(of: &ValueOp, reasons: &mut Vec<ReasonId>) {
        match of {
            ValueOp::Object(object) => {
                for member in &object.members {
                    match &member.action {
                        MemberAction::Refuse(reason) => reasons.push(*reason),
                        MemberAction::Emit(emit) => op(&emit.op, reasons),
                        MemberAction::Drop | MemberAction::Shadowed => {}
                    }
                }
                match &object.others {
                    Others::Refuse(reason) => reasons.push(*reason),
                    Others::Each(inner) => op(inner, reasons),
                    Others::Keep | Others::Drop => {}
                }
            }
            ValueOp::Array(inner) | ValueOp::Wrap(inner) | ValueOp::Unwrap(inner) => op(inner, reasons),
            ValueOp::Choose(choose) => choose.arms.iter().for_each(|arm| op(arm, reasons)),
            ValueOp::Attempt(attempt) => op(&attempt.op, reasons),
            // The op that `Again` refers to encloses it, and is visited already.
            ValueOp::Keep | ValueOp::Convert(_) | ValueOp::Constant(_) | ValueOp::Again(_) => {}
        }
    }
    let mut reasons = Vec::new();
    match &route.kind {
        RouteKind::Refuse(refusal) => reasons.push(refusal.reason),
        RouteKind::Serve(serve) => {
            for check in &serve.checks {
                if let CheckElse::Refuse(refusal) = &check.otherwise {
                    reasons.push(refusal.reason);
                }
            }
            serve.block.all().for_each(|one| block(one, &mut reasons));
        }
        RouteKind::Pair(pair) => {
            reasons.extend(pair.refused.iter().map(|refused| refused.reason));
            pair.request.iter().for_each(|plan| op(&plan.op, &mut reasons));
        }
    }
    // Several steps may have the same reason.
    reasons.sort_unstable_by_key(|reason| reason.0);
    reasons.dedup();
    reasons
}

/// Returns the texts of the pack that the route's responses contain, each with its status.
pub(super) fn own_words(route: &Route) -> Vec<(u16, ReasonId)> {
    fn texts(of: &Expr, found: &mut Vec<ReasonId>) {
        match of {
            Expr::Text { reason, .. } => found.push(*reason),
            Expr::Object(members) => members.iter().for_each(|(_, value)| texts(value, found)),
            Expr::Array(items) | Expr::Present(items) | Expr::FirstOf(items) => {
                items.iter().for_each(|item| texts(item, found));
            }
            Expr::If { then, otherwise, .. } => {
                texts(then, found);
                otherwise.iter().for_each(|otherwise| texts(otherwise, found));
            }
            Expr::Each { give, .. } => texts(give, found),
            _ => {}
        }
    }
    fn block(of: &Block, words: &mut Vec<(u16, ReasonId)>) {
        let failed = of.calls().filter_map(|(_, call)| match &call.on_fail {
            OnFail::Answer(answer) => Some(answer),
            _ => None,
        });
        let end = match &of.end {
            End::Answer(answer) => Some(answer),
            End::Refuse(_) | End::Decide(_) => None,
        };
        for answer in failed.chain(end) {
            let mut found = Vec::new();
            answer.body.iter().for_each(|body| texts(body, &mut found));
            words.extend(found.into_iter().map(|reason| (answer.status, reason)));
        }
    }
    let RouteKind::Serve(serve) = &route.kind else { return Vec::new() };
    let mut words = Vec::new();
    for check in &serve.checks {
        if let CheckElse::Answer { status, reason } = &check.otherwise {
            words.push((*status, *reason));
        }
    }
    serve.block.all().for_each(|one| block(one, &mut words));
    // Several steps may respond with the same text.
    words.sort_unstable_by_key(|(status, reason)| (*status, reason.0));
    words.dedup();
    words
}

struct Text<'p> {
    pack: &'p Pack,
    serves: SideId,
    /// Values that the route supplies to the current shape, by index.
    supplied: Vec<Expr>,
    out: String,
    depth: usize,
}

impl Text<'_> {
    fn line(&mut self, what: &str, origin: Option<&Origin>) {
        let indent = "  ".repeat(self.depth);
        let place = origin.map(|origin| format!("   ({origin})")).unwrap_or_default();
        let _ = writeln!(self.out, "{indent}{what}{place}");
    }

    fn losses(&mut self, losses: &[Loss]) {
        for loss in losses {
            let when = if loss.unless_found { " where nothing is found" } else { "" };
            let sentence = LossReport::new(self.pack, loss).sentence();
            self.line(&format!("lost: {sentence}{when}"), Some(&loss.origin));
        }
    }

    fn reason(&self, id: ReasonId) -> &str {
        self.pack.reason_text(id).unwrap_or_default()
    }

    fn refusal(&mut self, reason: ReasonId) {
        let said = format!("refused: “{}”", self.reason(reason));
        self.line(&said, Some(&self.pack.reasons[reason].origin));
    }

    fn call(&mut self, head: &super::CallHead, variables: &[super::Variable]) {
        let address = address(self.pack, &head.path, variables);
        let effect = match (head.effect, head.repeatable) {
            (super::Effect::None, _) => "reads only",
            (super::Effect::Write, true) => "writes, may be repeated",
            (super::Effect::Write, false) => "writes, sent once",
        };
        let side = &self.pack.sides[self.serves.other()];
        // The main host has no name.
        let host = head.host.place().and_then(|place| side.hosts.get(place));
        let host = host.map_or_else(String::new, |host| format!(" at its host {host}"));
        let side = &side.name;
        self.line(&format!("call {} {address} of {side}{host}: {effect}", head.method), Some(&head.origin));
        self.depth += 1;
        for rule in &head.query {
            let from = match &rule.from {
                QueryFrom::Client(name) => format!("the client's `{name}`"),
                QueryFrom::ClientFields(name) => format!("the client's fields of `{name}`"),
                QueryFrom::Constant(raw) => json(raw),
                QueryFrom::Value(value) => expr(self.pack, value),
            };
            // A repeated parameter is the default notation of a list.
            let style = match rule.style {
                ListStyle::Repeated => String::new(),
                style => format!(", a list {}", style.word()),
            };
            self.line(&format!("query {} ← {from}{style}", rule.name), None);
        }
        for rule in &head.headers {
            self.line(&format!("header {} ← {}", rule.name.text, expr(self.pack, &rule.value)), None);
        }
        match &head.format {
            BodyFormat::Json | BodyFormat::JsonOrForm(_) => {}
            BodyFormat::Form(_) => self.line(&format!("body as {}", BodyFormat::FORM), None),
            BodyFormat::Multipart(format) => {
                let files = format.parts.iter().filter(|(_, kind)| *kind == PartKind::File);
                let files: Vec<&str> = files.map(|(name, _)| &*name.text).collect();
                let streamed = match files.is_empty() {
                    true => String::new(),
                    false => format!(", files as they come: {}", files.join(", ")),
                };
                self.line(&format!("body as {}{streamed}", BodyFormat::MULTIPART), None);
            }
            BodyFormat::Xml(format) => self.line(&format!("body as {}", essence(&format.content_type)), None),
            BodyFormat::Opaque(media) => {
                self.line(&format!("body as it comes: {}", passed_media(media)), None)
            }
        }
        match &head.answers {
            BodyFormat::Form(_) => self.line(&format!("answered as {}", BodyFormat::FORM), None),
            BodyFormat::Xml(format) => {
                self.line(&format!("answered as {}", essence(&format.content_type)), None);
            }
            BodyFormat::Json
            | BodyFormat::JsonOrForm(_)
            | BodyFormat::Multipart(_)
            | BodyFormat::Opaque(_) => {}
        }
        self.depth -= 1;
    }

    fn response(&mut self, response: &Response) {
        let (from, to) = (response.from, response.to);
        match &response.body {
            ResponseBody::Empty => self.line(&format!("answer to {from}: {to}, without a body"), None),
            ResponseBody::Opaque(media) => {
                let what =
                    format!("answer to {from}: {to}, with the body as it comes: {}", passed_media(media));
                self.line(&what, None);
            }
            ResponseBody::Undescribed => {
                self.line(&format!("answer to {from}: {to}, with the body as it comes"), None)
            }
            ResponseBody::Error(_) => self.line(&format!("answer to {from}: {to}, with the error"), None),
            ResponseBody::Plan(plan) => self.body(&format!("answer to {from}: {to}, with"), plan),
        }
    }

    fn body(&mut self, what: &str, plan: &BodyPlan) {
        self.line(&format!("{what} ({}: {})", plan.class.word(), plan.because), None);
        self.depth += 1;
        self.op(&plan.op, "$", "$");
        self.depth -= 1;
    }

    /// Writes the source of the value at `to`, given that the op reads from `from`.
    fn op(&mut self, op: &ValueOp, from: &str, to: &str) {
        match op {
            ValueOp::Keep => self.line(&format!("{to} ← {from} as it is"), None),
            ValueOp::Constant(raw) => self.line(&format!("{to} ← {}", json(raw)), None),
            ValueOp::Convert(conversion) => {
                self.line(&format!("{to} ← {from} by {}", conversion.kind.name()), None);
            }
            ValueOp::Array(inner) => self.op(inner, &format!("{from}[*]"), &format!("{to}[*]")),
            ValueOp::Wrap(inner) => self.op(inner, from, &format!("{to}[0]")),
            ValueOp::Unwrap(inner) => self.op(inner, &format!("{from}[0]"), to),
            ValueOp::Object(object) => self.object(object, from, to),
            ValueOp::Choose(choose) => self.choose(choose, from, to),
            ValueOp::Attempt(attempt) => {
                self.op(&attempt.op, from, to);
                let said = match &attempt.instead {
                    None => format!("a value of {from} that this does not take is left out"),
                    Some(value) => {
                        format!("a value of {from} that this does not take becomes {}", json(value))
                    }
                };
                self.line(&said, Some(&attempt.origin));
            }
            ValueOp::Again(again) => {
                self.line(&format!("{to} ← {from} by `{}`, as around it", again.name()), None);
            }
        }
    }

    /// Writes each alternative below its condition.
    fn choose(&mut self, choose: &ChooseOp, from: &str, to: &str) {
        for (at, arm) in choose.arms.iter().enumerate() {
            let when = match &choose.by {
                ChooseBy::Constant { member, values } => {
                    let meant = values.iter().filter(|(_, alternative)| usize::from(*alternative) == at);
                    let words: Vec<String> = meant.map(|(value, _)| json(value)).collect();
                    format!("where {from}.{} is {}", member.text, words.join(" or "))
                }
                ChooseBy::OwnField(fields) => match fields.get(at).and_then(Option::as_ref) {
                    Some(own) => format!("where {from}.{} is there", own.text),
                    None => "else".to_owned(),
                },
            };
            self.line(&when, Some(&choose.origin));
            self.depth += 1;
            self.op(arm, from, to);
            self.depth -= 1;
        }
    }

    fn object(&mut self, object: &ObjectOp, from: &str, to: &str) {
        for member in &object.members {
            let source = format!("{from}.{}", member.name.text);
            match &member.action {
                // A captured member is described by the `close` entry that uses it.
                MemberAction::Drop if member.capture.is_some() => {}
                // The target's own member of this name has its own line.
                MemberAction::Shadowed => {}
                MemberAction::Drop => self.line(&format!("{source} is dropped"), Some(&member.origin)),
                MemberAction::Refuse(reason) => {
                    let said = format!("{source} is refused: “{}”", self.reason(*reason));
                    self.line(&said, Some(&member.origin));
                }
                MemberAction::Emit(emit) => {
                    let target = format!("{to}.{}", emit.name.text);
                    match &emit.op {
                        ValueOp::Keep => self.line(&format!("{target} ← {source}"), Some(&member.origin)),
                        ValueOp::Convert(conversion) => {
                            let what = format!("{target} ← {source} by {}", conversion.kind.name());
                            self.line(&what, Some(&member.origin));
                        }
                        inner => self.op(inner, &source, &target),
                    }
                }
            }
        }
        match &object.others {
            Others::Drop => {}
            Others::Keep => self.line(&format!("all other members of {from} are kept"), None),
            Others::Each(op) => self.op(op, &format!("{from}.*"), &format!("{to}.*")),
            Others::Refuse(reason) => {
                let said = format!("any other member of {from} is refused: “{}”", self.reason(*reason));
                self.line(&said, None);
            }
        }
        for close in &object.close {
            self.close(close, object, from, to);
        }
    }

    fn close(&mut self, close: &Close, object: &ObjectOp, from: &str, to: &str) {
        let target = format!("{to}.{}", close.name.text);
        let source = match &close.from {
            CloseFrom::Constant(raw) => json(raw),
            CloseFrom::Default { value, .. } => format!("{} when nothing is there", json(value)),
            CloseFrom::Captured { alternatives, absent } => {
                let mut places: Vec<String> =
                    alternatives.iter().map(|one| captured_source(one, object, from)).collect();
                if let Absent::Value(raw) = absent {
                    places.push(json(raw));
                }
                places.join(", else ")
            }
            // A nested object has no line of its own; its members describe it.
            CloseFrom::Object(members) => {
                return members.iter().for_each(|member| self.close(member, object, from, &target));
            }
            CloseFrom::Supplied(index) => match self.supplied.get(usize::from(*index)).cloned() {
                Some(value) => return self.value(&value, &target),
                None => format!("value {index} that the route supplies"),
            },
            CloseFrom::Setting(index) => format!("$.config.{}", self.pack.settings[usize::from(*index)].name),
        };
        self.line(&format!("{target} ← {source}"), Some(&close.origin));
    }

    fn check(&mut self, check: &Check) {
        let setting = |word: &str, place: &Option<Location>| {
            place.as_ref().map(|place| format!(" {word} {}", place.text)).unwrap_or_default()
        };
        let when = setting("if", &check.only_if) + &setting("unless", &check.unless);
        let otherwise = match &check.otherwise {
            CheckElse::Answer { status, reason } => format!("{status} “{}”", self.reason(*reason)),
            CheckElse::Refuse(refusal) => format!("refused: “{}”", self.reason(refusal.reason)),
        };
        self.line(
            &format!("check {}{when}, else {otherwise}", predicate(&check.predicate)),
            Some(&check.origin),
        );
    }

    fn block(&mut self, block: &Block, variables: &[super::Variable]) {
        for step in &block.steps {
            self.step(step, variables);
        }
        match &block.end {
            End::Answer(answer) => self.answer(answer),
            End::Refuse(refusal) => self.refusal(refusal.reason),
            End::Decide(decision) => {
                let columns: Vec<String> = decision
                    .columns
                    .iter()
                    .map(|column| match column {
                        Column::Place(location) => location.text.to_string(),
                        Column::Holds(condition) => predicate(condition),
                    })
                    .collect();
                self.line(&format!("decide by {}", columns.join(" | ")), None);
                self.depth += 1;
                for row in &decision.rows {
                    let cells: Vec<String> = row.cells.iter().map(cell).collect();
                    let outcome = &decision.outcomes[usize::from(row.outcome)].name;
                    self.line(&format!("{} → {outcome}", cells.join(" | ")), Some(&row.origin));
                }
                self.depth -= 1;
                for outcome in &decision.outcomes {
                    self.line(&format!("outcome {}", outcome.name), Some(&outcome.origin));
                    self.depth += 1;
                    self.block(&outcome.block, variables);
                    self.depth -= 1;
                }
            }
        }
    }

    fn step(&mut self, step: &Step, variables: &[super::Variable]) {
        if let Some(name) = &step.name {
            self.line(&format!("step {}", name.text), Some(&step.origin));
        }
        match &step.action {
            StepAction::Select(selection) => {
                for choice in &selection.choices {
                    let when = choice.when.as_ref().map(|when| format!(" when {}", predicate(when)));
                    self.line(&format!("select {}{}", choice.from.text, when.unwrap_or_default()), None);
                }
            }
            StepAction::Make(value) => {
                self.depth += 1;
                self.value(value, "$");
                self.depth -= 1;
            }
            StepAction::Call(call) => self.step_call(call, variables),
            StepAction::Recall(recall) => {
                let archive = self.archive(recall.archive);
                let key = expr(self.pack, &recall.key);
                self.each_of(recall.each.as_ref());
                if let Some(when) = &recall.when {
                    self.line(&format!("only when {}", predicate(when)), None);
                }
                self.line(&format!("look up {key} in the archive {archive}"), None);
            }
            StepAction::Keep(keep) => {
                let archive = self.archive(keep.archive);
                let key = expr(self.pack, &keep.key);
                self.each_of(keep.each.as_ref());
                if let Some(when) = &keep.when {
                    self.line(&format!("only when {}", predicate(when)), None);
                }
                self.line(&format!("keep {key} in the archive {archive}"), None);
                if let Some(value) = &keep.value {
                    self.depth += 1;
                    self.value(value, "$");
                    self.depth -= 1;
                }
            }
        }
    }

    fn archive(&self, id: super::ArchiveId) -> String {
        let archive = self.pack.archives.get(usize::from(id.0));
        archive.map_or_else(String::new, |archive| archive.name.clone())
    }

    fn each_of(&mut self, each: Option<&super::EachOf>) {
        if let Some(each) = each {
            self.line(&format!("for each `{}` of {}", each.name.text, each.list.text), None);
        }
    }

    fn step_call(&mut self, call: &StepCall, variables: &[super::Variable]) {
        if let Some(each) = &call.each {
            let (name, list) = (&each.name.text, &each.list.text);
            self.line(&format!("for each `{name}` of {list}, up to {}", each.upto), None);
            match &each.beyond {
                None => self.line("beyond these: no call", None),
                Some(refusal) => self.refusal(refusal.reason),
            }
        }
        if let Some(when) = &call.when {
            self.line(&format!("only when {}", predicate(when)), None);
        }
        self.call(&call.head, variables);
        self.depth += 1;
        if let Some(body) = &call.body {
            self.value(body, "$");
        }
        if let Some(pages) = &call.pages {
            self.line(&format!("up to {} pages by `{}`", pages.upto, pages.parameter), None);
            match &pages.beyond {
                Beyond::Cut => self.line("beyond these: the list is cut", None),
                Beyond::Absent => self.line("beyond these: goes on without a body", None),
                Beyond::Refuse(refusal) => self.refusal(refusal.reason),
            }
        }
        if let Some(poll) = &call.poll {
            let (every, within, most) = (poll.every, poll.within, poll.most());
            let until = predicate(&poll.until);
            let line = format!("again every {every:?} for {within:?} ({most} calls at most), until {until}");
            self.line(&line, None);
        }
        if call.resume.is_some() {
            self.line("the reply is remembered: a repeated request goes on behind it", None);
        }
        match &call.on_fail {
            OnFail::Pass => {}
            OnFail::PassWith(_) => self.line("on failure: its error, with headers", None),
            OnFail::Answer(answer) => self.line(&format!("on failure: {}", answer.status), None),
            OnFail::Use(_) => self.line("on failure: goes on with a value of the route", None),
            OnFail::Absent(statuses) if statuses.is_empty() => {
                self.line("on failure: goes on without a body", None);
            }
            OnFail::Absent(statuses) => {
                let statuses: Vec<String> = statuses.iter().map(u16::to_string).collect();
                self.line(&format!("on {}: goes on without a body", statuses.join(", ")), None);
            }
            OnFail::Refuse(refusal) => self.refusal(refusal.reason),
        }
        self.depth -= 1;
    }

    fn answer(&mut self, answer: &Answer) {
        self.line(&format!("answer {}", answer.status), None);
        self.depth += 1;
        for rule in &answer.headers {
            self.line(&format!("header {} ← {}", rule.name.text, expr(self.pack, &rule.value)), None);
        }
        if let Some(body) = &answer.body {
            self.value(body, "$");
        }
        self.depth -= 1;
    }

    /// Writes the source of each field of a computed value.
    fn value(&mut self, value: &Expr, to: &str) {
        match value {
            Expr::Object(members) => {
                for (name, value) in members {
                    self.value(value, &format!("{to}.{}", name.text));
                }
            }
            Expr::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.value(item, &format!("{to}[{at}]"));
                }
            }
            Expr::Each { name, list, give } => {
                self.line(&format!("{to} for each `{}` of {}:", name.text, expr(self.pack, list)), None);
                self.depth += 1;
                self.value(give, &format!("{to}[*]"));
                self.depth -= 1;
            }
            Expr::If { predicate: when, then, otherwise } => {
                self.line(&format!("{to} where {}:", predicate(when)), None);
                self.depth += 1;
                self.value(then, to);
                self.depth -= 1;
                if let Some(otherwise) = otherwise {
                    self.line("else:", None);
                    self.depth += 1;
                    self.value(otherwise, to);
                    self.depth -= 1;
                }
            }
            Expr::Present(items) => {
                for item in items {
                    self.value(item, &format!("{to}[*]"));
                }
            }
            Expr::Shape { op, from, with, over, .. } => {
                // A nested shape has its own `with:`, so the outer values are restored afterwards.
                let outer = std::mem::replace(&mut self.supplied, with.clone());
                self.op(op, &expr(self.pack, from), to);
                self.supplied = outer;
                if let Some(over) = over {
                    self.line(&format!("{to}: the rest from {}", expr(self.pack, &over.base)), None);
                }
            }
            other => self.line(&format!("{to} ← {}", expr(self.pack, other)), None),
        }
    }
}

/// Describes a value in one phrase.
fn expr(pack: &Pack, value: &Expr) -> String {
    match value {
        Expr::Constant(raw) => json(raw),
        Expr::At(location) => location.text.to_string(),
        Expr::Convert { from, conversion } => {
            format!("{} by {}", expr(pack, from), conversion.kind.name())
        }
        Expr::Apply { from, functions, .. } => {
            let names = functions.iter().map(|function| function.name()).collect::<Vec<_>>().join(", then ");
            format!("{} by {names}", expr(pack, from))
        }
        Expr::Object(_) => "an object".to_owned(),
        Expr::Array(_) => "an array".to_owned(),
        Expr::Text { reason, .. } => format!("the text `{}`", pack.reasons[*reason].name),
        Expr::Shape { from, .. } => format!("a shape of {}", expr(pack, from)),
        Expr::Each { list, .. } => format!("a value for each of {}", expr(pack, list)),
        Expr::If { then, otherwise, .. } => match otherwise {
            Some(otherwise) => format!("{} or {}", expr(pack, then), expr(pack, otherwise)),
            None => format!("{} or nothing", expr(pack, then)),
        },
        Expr::Present(_) => "a list of what is there".to_owned(),
        Expr::Lookup { value, list, by, field } => {
            let field = field.as_ref().map(|field| format!("`{}` of ", field.text)).unwrap_or_default();
            format!("{field}the one in {} whose `{}` is {}", list.text, by.text, expr(pack, value))
        }
        Expr::Aggregate { what: Aggregate::Count, list } => format!("the number of {}", expr(pack, list)),
        Expr::Aggregate { what: Aggregate::Sum, list } => format!("the sum of {}", expr(pack, list)),
        Expr::Lines { .. } => "a text of lines".to_owned(),
        Expr::FirstOf(items) => items.iter().map(|item| expr(pack, item)).collect::<Vec<_>>().join(", else "),
    }
}

fn json(raw: &Raw) -> String {
    String::from_utf8_lossy(raw).into_owned()
}

fn captured_source(one: &Captured, object: &ObjectOp, from: &str) -> String {
    let member = object.members.iter().find(|member| member.capture == Some(one.slot));
    let mut place = from.to_owned();
    for name in member.map(|member| &member.name).into_iter().chain(&one.path) {
        let _ = write!(place, ".{}", name.text);
    }
    place
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Any => "_".to_owned(),
        Cell::Absent => "absent".to_owned(),
        Cell::OneOf(values) => values.iter().map(json).collect::<Vec<_>>().join(" or "),
    }
}

fn predicate(predicate: &Predicate) -> String {
    let all = |places: &[Location]| places.iter().map(|p| p.text.as_ref()).collect::<Vec<_>>().join(", ");
    match predicate {
        Predicate::Present(place) => format!("{} is present", place.text),
        Predicate::Missing(place) => format!("{} is missing", place.text),
        Predicate::NotNull(places) => format!("not null: {}", all(places)),
        Predicate::AnyPresent(places) => format!("any present: {}", all(places)),
        Predicate::AllPresent(places) => format!("all present: {}", all(places)),
        Predicate::NonePresent(places) => format!("none present: {}", all(places)),
        Predicate::OneOf(place, values) => {
            let values: Vec<String> = values.iter().map(json).collect();
            format!("{} is one of {}", place.text, values.join(", "))
        }
        Predicate::Kind(place, _) => format!("the kind of {}", place.text),
        Predicate::Equal(left, right) => format!("{} equals {}", left.text, right.text),
        Predicate::AbsentOrEqual(left, right) => format!("{} is absent or equals {}", left.text, right.text),
        Predicate::All(of) | Predicate::Any(of) => {
            let word = if matches!(predicate, Predicate::All(_)) { " and " } else { " or " };
            let of = of.iter().map(|one| format!("({})", self::predicate(one)));
            of.collect::<Vec<_>>().join(word)
        }
        Predicate::Not(of) => format!("not ({})", self::predicate(of)),
        Predicate::Conforms(places) => {
            let places: Vec<&str> = places.iter().map(|one| one.place.text.as_ref()).collect();
            format!("as the contract says: {}", places.join(", "))
        }
    }
}
