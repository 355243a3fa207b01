//! What a comparison knows beforehand, compiled out of a pack: for each place of an operation's answer which line makes it,
//! whether it is expected to differ, whether it is noise, how elements of its arrays are matched. One tree per answer, walked
//! along with the bodies.

use super::language::Vocabulary;
use super::place::{member_path, names};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use switchback_json::{Limits, Value};
use switchback_plan::{
    Absent, Answer, Block, Close, CloseFrom, CompareKind, CompareRule, Disclosed, Disclosures, End, Expr,
    Loss, MemberAction, ObjectOp, OnFail, Origin, Others, Pack, PerSide, ResponseBody, Route, RouteId,
    RouteKind, SideId, StatusFrom, StatusTo, StepAction, ValueOp,
};

/// All rules of a pack; compiled once, with it.
#[derive(Debug)]
pub struct Rules {
    /// By served side and route.
    operations: PerSide<Vec<OperationRules>>,
    /// By the place of the event among those of the pack; none of one that receivers are not told of.
    events: Vec<Option<OperationRules>>,
}

/// The rules of one operation of the served side.
#[derive(Debug)]
pub struct OperationRules {
    /// As the contract writes it, such as `GET /things/{id}`.
    pub operation: Arc<str>,
    /// First match wins. Errors mostly look the same for all operations, and so share one tree.
    answers: Box<[(Statuses, Arc<Node>)]>,
    /// The route's own line, for what no other line makes.
    pub(super) origin: Origin,
    /// Headers compared beside the usual ones; lower case.
    pub(super) headers: Arc<[String]>,
    pub(super) vocabulary: Arc<Vocabulary>,
    /// What may be shown of messages of the served side.
    disclosures: Arc<Disclosures>,
}

/// Which answers of the served side a tree is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statuses {
    Exact(u16),
    Class(u8),
    Any,
}

/// What is known of one place.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// By name.
    pub members: BTreeMap<Arc<str>, Node>,
    /// Of every element.
    pub element: Option<Box<Node>>,
    pub source: Source,
    /// Every member it can have is named: another one comes from nowhere.
    pub is_closed: bool,
    pub expected: Option<Expected>,
    /// The value differs from one asking to the next.
    pub is_noise: bool,
    /// The order of the elements says nothing.
    pub is_unordered: bool,
    /// The member by whose value elements are the same.
    pub key: Option<Arc<str>>,
    /// A text for people.
    pub is_text: bool,
}

impl Node {
    fn without_excuses(&self) -> Node {
        let members = self.members.iter().map(|(name, node)| (Arc::clone(name), node.without_excuses()));
        Node {
            members: members.collect(),
            element: self.element.as_ref().map(|node| Box::new(node.without_excuses())),
            expected: None,
            is_noise: false,
            is_unordered: false,
            ..self.clone()
        }
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, Default)]
pub(super) enum Source {
    /// As the value around it.
    #[default]
    Inherited,
    /// Made out of something else by this line.
    Made(Origin),
    /// Copied as it is, with all that is in it.
    Copied(Origin),
}

/// What the candidate has at a place that is listed as lost.
#[derive(Clone, Debug)]
pub(super) enum Expected {
    /// Always this.
    Value(Value),
    /// Nothing.
    Nothing,
    /// Something that only the running gateway knows (a setting).
    Anything,
}

impl Rules {
    /// The rules of a pack.
    pub fn of(pack: &Pack) -> Rules {
        let headers: Arc<[String]> = pack.compared_headers.iter().cloned().collect();
        let vocabulary = Arc::new(Vocabulary::of(pack));
        let operations = [0, 1].map(|side| {
            let direction = &pack.directions[side];
            let text = text_place(pack, direction.serves);
            let ground =
                Ground { pack, serves: direction.serves, text: text.as_deref(), errors: RefCell::default() };
            let rules = direction.routes.iter().map(|route| OperationRules {
                operation: Arc::clone(&route.operation.key),
                answers: ground.answers(route, &direction.error.op),
                origin: route.origin.clone(),
                headers: Arc::clone(&headers),
                vocabulary: Arc::clone(&vocabulary),
                disclosures: Arc::clone(&pack.disclosures[side]),
            });
            rules.collect()
        });
        let events = pack.events.iter().flat_map(|events| {
            let serves = events.from.other();
            let ground = Ground { pack, serves, text: None, errors: RefCell::default() };
            let rules = events.routes.iter().map(move |route| {
                let told = route.told()?;
                let node = ground.body(&told.body.op, &route.losses, &route.origin, told.compare);
                Some(OperationRules {
                    operation: Arc::clone(told.operation),
                    answers: Box::new([(Statuses::Any, Arc::new(node))]),
                    origin: route.origin.clone(),
                    headers: Arc::default(),
                    vocabulary: Arc::default(),
                    disclosures: Arc::clone(&pack.disclosures[serves]),
                })
            });
            rules.collect::<Vec<_>>()
        });
        Rules { operations, events: events.collect() }
    }

    /// The rules of an event, by its place among those of the pack; none of one that receivers are not told of.
    pub fn of_event(&self, event: usize) -> Option<&OperationRules> {
        self.events.get(event)?.as_ref()
    }

    /// The rules of a route.
    pub fn of_route(&self, serves: SideId, route: RouteId) -> &OperationRules {
        &self.operations[serves][route]
    }
}

#[cfg(test)]
impl Rules {
    /// Trees of the errors of a side's operations, and how many of these trees there are.
    pub(crate) fn errors(&self, serves: SideId) -> (usize, usize) {
        let last = self.operations[serves].iter().filter_map(|rules| rules.answers.last());
        let all: Vec<*const Node> = last.map(|(_, node)| Arc::as_ptr(node)).collect();
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        (all.len(), distinct.len())
    }
}

impl OperationRules {
    /// For values that no operation's answers are: nothing is known of them.
    pub fn unknown() -> OperationRules {
        OperationRules {
            operation: "".into(),
            answers: Box::default(),
            origin: Origin { file: "".into(), line: 0 },
            headers: Arc::default(),
            vocabulary: Arc::default(),
            disclosures: Arc::default(),
        }
    }

    /// The same, for two answers that one and the same service gave: nothing is expected to be lost, and nothing is noise.
    #[must_use]
    pub fn without_excuses(&self) -> OperationRules {
        OperationRules {
            operation: Arc::clone(&self.operation),
            answers: self
                .answers
                .iter()
                .map(|(statuses, node)| (*statuses, Arc::new(node.without_excuses())))
                .collect(),
            origin: self.origin.clone(),
            headers: Arc::clone(&self.headers),
            vocabulary: Arc::clone(&self.vocabulary),
            disclosures: Arc::clone(&self.disclosures),
        }
    }

    /// What may be shown of the body of an answer with this status.
    pub(super) fn disclosed(&self, status: u16) -> Disclosed<'_> {
        let operation = self.disclosures.operation(&self.operation);
        operation.map_or(Disclosed::UNKNOWN, |operation| self.disclosures.answer(operation, status))
    }

    /// What is known of the body of an answer with this status.
    pub(super) fn body(&self, status: u16) -> &Node {
        static UNKNOWN: Node = Node::UNKNOWN;
        self.answers.iter().find(|(statuses, _)| statuses.cover(status)).map_or(&UNKNOWN, |(_, node)| node)
    }

    /// Rules of an operation out of a tree and declarations, without a pack.
    #[cfg(test)]
    pub(super) fn for_tests(
        name: &str,
        origin: Origin,
        mut node: Node,
        declared: &[CompareRule],
        disclosures: Disclosures,
    ) -> OperationRules {
        declare(&mut node, declared);
        OperationRules {
            operation: name.into(),
            answers: Box::new([(Statuses::Any, Arc::new(node))]),
            origin,
            headers: Arc::new([]),
            vocabulary: Arc::default(),
            disclosures: Arc::new(disclosures),
        }
    }
}

impl Statuses {
    fn cover(self, status: u16) -> bool {
        match self {
            Statuses::Exact(exact) => exact == status,
            Statuses::Class(class) => status / 100 == u16::from(class),
            Statuses::Any => true,
        }
    }
}

impl Node {
    /// Of a place that nothing is known of.
    pub(super) const UNKNOWN: Node = Node {
        members: BTreeMap::new(),
        element: None,
        source: Source::Inherited,
        is_closed: false,
        expected: None,
        is_noise: false,
        is_unordered: false,
        key: None,
        is_text: false,
    };

    fn below(&self, name: &str) -> Option<&Node> {
        if name == "*" { self.element.as_deref() } else { self.members.get(name) }
    }

    fn member(&mut self, name: &str) -> &mut Node {
        self.members.entry(name.into()).or_default()
    }

    fn any_element(&mut self) -> &mut Node {
        self.element.get_or_insert_default()
    }

    /// Another tree for the same place: what this one does not say, that one may.
    fn merge(&mut self, other: Node) {
        for (name, node) in other.members {
            self.members.entry(name).or_default().merge(node);
        }
        if let Some(element) = other.element {
            self.any_element().merge(*element);
        }
        if matches!(self.source, Source::Inherited) {
            self.source = other.source;
        }
        self.expected = self.expected.take().or(other.expected);
        self.key = self.key.take().or(other.key);
        self.is_closed |= other.is_closed;
        self.is_noise |= other.is_noise;
        self.is_unordered |= other.is_unordered;
        self.is_text |= other.is_text;
    }
}

/// What trees are made from.
struct Ground<'p> {
    pack: &'p Pack,
    serves: SideId,
    /// Where the text for people stands in an error.
    text: Option<&'p [String]>,
    /// Trees of errors, by what makes them and the line that is blamed.
    errors: RefCell<HashMap<ErrorKey, Arc<Node>>>,
}

/// The op that makes an error, where it is not kept, and the line that is blamed.
type ErrorKey = (Option<*const ValueOp>, Origin);

impl Ground<'_> {
    fn answers(&self, route: &Route, error: &ValueOp) -> Box<[(Statuses, Arc<Node>)]> {
        let mut answers = Vec::new();
        match &route.kind {
            RouteKind::Pair(pair) => {
                for response in &pair.responses {
                    let statuses = match (response.to, response.from) {
                        (StatusTo::Exact(status), _) => Statuses::Exact(status),
                        (StatusTo::Same, StatusFrom::Exact(status)) => Statuses::Exact(status),
                        (StatusTo::Same, StatusFrom::Class(class)) => Statuses::Class(class),
                    };
                    let node = match &response.body {
                        ResponseBody::Empty | ResponseBody::Opaque(_) => Arc::default(),
                        ResponseBody::Plan(plan) => Arc::new(self.success(&plan.op, route)),
                        ResponseBody::Error(plan) => self.error(&plan.op, route),
                    };
                    add(&mut answers, statuses, node);
                }
            }
            RouteKind::Serve(serve) => self.block(&serve.block, route, &mut answers),
            RouteKind::Refuse(_) => {}
        }
        add(&mut answers, Statuses::Any, self.error(error, route));
        answers.into()
    }

    fn success(&self, op: &ValueOp, route: &Route) -> Node {
        self.body(op, &route.losses, &route.origin, &route.compare)
    }

    fn body(&self, op: &ValueOp, losses: &[Loss], origin: &Origin, declared: &[CompareRule]) -> Node {
        let tree = Tree { ground: self, losses, origin };
        let mut node = tree.op(op, "$");
        tree.left_out(&mut node);
        declare(&mut node, declared);
        node
    }

    fn error(&self, op: &ValueOp, route: &Route) -> Arc<Node> {
        // What is kept is kept alike, whichever op says so.
        let made_by = (!matches!(op, ValueOp::Keep)).then_some(std::ptr::from_ref(op));
        let key = (made_by, route.origin.clone());
        if let Some(known) = self.errors.borrow().get(&key) {
            return Arc::clone(known);
        }
        let node = Arc::new(self.error_tree(op, route));
        self.errors.borrow_mut().insert(key, Arc::clone(&node));
        node
    }

    fn error_tree(&self, op: &ValueOp, route: &Route) -> Node {
        let mut node = Tree { ground: self, losses: &[], origin: &route.origin }.op(op, "$");
        if let Some(names) = self.text {
            names.iter().fold(&mut node, |node, name| node.member(name)).is_text = true;
        }
        declare(&mut node, &self.pack.compared_errors[self.serves]);
        node
    }

    /// The answers that a block may end with, those of failed steps included.
    fn block(&self, block: &Block, route: &Route, answers: &mut Vec<(Statuses, Arc<Node>)>) {
        for step in &block.steps {
            if let StepAction::Call(call) = &step.action
                && let OnFail::Answer(answer) = &call.on_fail
            {
                self.answer(answer, &step.origin, route, answers);
            }
        }
        match &block.end {
            End::Answer(answer) => self.answer(answer, &route.origin, route, answers),
            End::Refuse(_) => {}
            End::Decide(decision) => {
                decision.outcomes.iter().for_each(|outcome| self.block(&outcome.block, route, answers));
            }
        }
    }

    fn answer(
        &self,
        answer: &Answer,
        origin: &Origin,
        route: &Route,
        answers: &mut Vec<(Statuses, Arc<Node>)>,
    ) {
        let tree = Tree { ground: self, losses: &route.losses, origin };
        let mut node = answer.body.as_ref().map(|body| tree.value(body, "$")).unwrap_or_default();
        if answer.status < 400 {
            tree.left_out(&mut node);
            declare(&mut node, &route.compare);
        }
        add(answers, Statuses::Exact(answer.status), Arc::new(node));
    }
}

fn add(answers: &mut Vec<(Statuses, Arc<Node>)>, statuses: Statuses, node: Arc<Node>) {
    match answers.iter_mut().find(|(known, _)| *known == statuses) {
        Some((_, known)) if Arc::ptr_eq(known, &node) => {}
        Some((_, known)) => Arc::make_mut(known).merge(Arc::unwrap_or_clone(node)),
        None => answers.push((statuses, node)),
    }
}

/// Puts what the pack declares into a tree.
fn declare(node: &mut Node, rules: &[CompareRule]) {
    for rule in rules {
        let mut at = &mut *node;
        for name in &rule.at {
            at = if &**name == "*" { at.any_element() } else { at.member(name) };
        }
        match &rule.kind {
            CompareKind::Key(name) => at.key = Some(Arc::clone(name)),
            CompareKind::Noise => at.is_noise = true,
            CompareKind::Unordered => at.is_unordered = true,
        }
    }
}

/// Makes one tree out of the ops of a body.
struct Tree<'g> {
    ground: &'g Ground<'g>,
    losses: &'g [Loss],
    /// Blamed for what has no line of its own.
    origin: &'g Origin,
}

impl Tree<'_> {
    /// The node of what an op makes. `at` is its place, with `*` for any element.
    fn op(&self, op: &ValueOp, at: &str) -> Node {
        let made = |source| Node { source, ..Node::default() };
        match op {
            ValueOp::Keep => made(Source::Copied(self.origin.clone())),
            ValueOp::Constant(_) | ValueOp::Convert(_) => made(Source::Made(self.origin.clone())),
            ValueOp::Array(inner) => self.list(inner, &format!("{at}[*]")),
            ValueOp::Wrap(inner) => self.list(inner, &format!("{at}[0]")),
            ValueOp::Unwrap(inner) => self.op(inner, at),
            ValueOp::Object(object) => self.object(object, at),
            // Any of them may have made what stands there.
            ValueOp::Choose(choose) => choose.arms.iter().fold(Node::default(), |mut node, arm| {
                node.merge(self.op(arm, at));
                node
            }),
            ValueOp::Attempt(attempt) => self.op(&attempt.op, at),
            // What lies deeper is blamed on the line that leads there.
            ValueOp::Again(_) => made(Source::Made(self.origin.clone())),
        }
    }

    fn list(&self, inner: &ValueOp, at: &str) -> Node {
        let element = Some(Box::new(self.op(inner, at)));
        Node { element, source: Source::Made(self.origin.clone()), ..Node::default() }
    }

    fn object(&self, object: &ObjectOp, at: &str) -> Node {
        let (source, is_closed) = match &object.others {
            Others::Keep => (Source::Copied(self.origin.clone()), false),
            Others::Each(_) => (Source::Made(self.origin.clone()), false),
            Others::Drop | Others::Refuse(_) => (Source::Made(self.origin.clone()), true),
        };
        let mut node = Node { source, is_closed, ..Node::default() };
        for member in &object.members {
            if let MemberAction::Emit(emit) = &member.action {
                let tree = Tree { origin: &member.origin, ..*self };
                let place = format!("{at}{}", member_path(&emit.name.text));
                let mut made = tree.op(&emit.op, &place);
                made.expected = self.expected(&place);
                node.member(&emit.name.text).merge(made);
            }
        }
        for close in &object.close {
            self.close(close, &mut node, at);
        }
        node
    }

    fn close(&self, close: &Close, parent: &mut Node, at: &str) {
        let place = format!("{at}{}", member_path(&close.name.text));
        let mut node = Node { source: Source::Made(close.origin.clone()), ..Node::default() };
        match &close.from {
            CloseFrom::Object(members) => {
                node.is_closed = true;
                members.iter().for_each(|inner| self.close(inner, &mut node, &place))
            }
            CloseFrom::Captured { alternatives, absent } => {
                if let ([one], Absent::Omit | Absent::Value(_)) = (alternatives.as_slice(), absent) {
                    let tree = Tree { origin: &close.origin, ..*self };
                    node = tree.op(&one.op, &place);
                }
            }
            CloseFrom::Constant(_)
            | CloseFrom::Default { .. }
            | CloseFrom::Supplied(_)
            | CloseFrom::Setting(_) => node.expected = self.expected(&place),
        }
        parent.member(&close.name.text).merge(node);
    }

    /// What the report says the candidate has at a place, if it lists it as lost.
    fn expected(&self, place: &str) -> Option<Expected> {
        let side = &self.ground.pack.sides[self.ground.serves].name;
        let loss =
            self.losses.iter().find(|loss| loss.side == *side && loss.place == place && !loss.partly)?;
        Some(match &loss.instead {
            _ if loss.unless_found => Expected::Anything,
            None => Expected::Nothing,
            Some(text) => {
                Value::parse(text.as_bytes(), &Limits::DOCUMENT).map_or(Expected::Anything, Expected::Value)
            }
        })
    }

    /// Members of the served side that are listed as lost and that nothing makes: the candidate never has them.
    fn left_out(&self, node: &mut Node) {
        let side = &self.ground.pack.sides[self.ground.serves].name;
        for loss in
            self.losses.iter().filter(|loss| loss.side == *side && loss.instead.is_none() && !loss.partly)
        {
            let Some(names) = names(&loss.place) else { continue };
            let found = names.iter().try_fold(&*node, |node, name| node.below(name));
            if found.is_none() {
                let at = names.iter().fold(&mut *node, |node, name| match name.as_str() {
                    "*" => node.any_element(),
                    name => node.member(name),
                });
                at.source = Source::Made(loss.origin.clone());
                at.expected = Some(Expected::Nothing);
            }
        }
    }

    /// The node of a value that a route puts together.
    fn value(&self, value: &Expr, at: &str) -> Node {
        let mut node = Node { source: Source::Made(self.origin.clone()), ..Node::default() };
        match value {
            Expr::Object(members) => {
                node.is_closed = true;
                for (key, inner) in members {
                    let place = format!("{at}{}", member_path(&key.text));
                    node.member(&key.text).merge(self.value(inner, &place));
                }
            }
            Expr::Array(items) => {
                for item in items {
                    node.any_element().merge(self.value(item, &format!("{at}[*]")));
                }
            }
            Expr::Shape { op, .. } => node = self.op(op, at),
            Expr::At(_) | Expr::Lookup { .. } => node.source = Source::Copied(self.origin.clone()),
            Expr::Text { .. } => node.is_text = true,
            Expr::Present(items) => {
                for item in items {
                    node.any_element().merge(self.value(item, &format!("{at}[*]")));
                }
            }
            Expr::Each { give, .. } => node.any_element().merge(self.value(give, &format!("{at}[*]"))),
            Expr::If { .. } | Expr::Lines { .. } | Expr::Aggregate { .. } => {}
            Expr::Constant(_) | Expr::Convert { .. } | Expr::FirstOf(_) => {}
        }
        node
    }
}

/// Where the gateway's own errors have their text: the names from the top.
fn text_place(pack: &Pack, served: SideId) -> Option<Vec<String>> {
    let body = pack.errors[served].body("internal", 500, "");
    let body = Value::parse(&body, &Limits::DOCUMENT).ok()?;
    let mut names = Vec::new();
    find_empty(&body, &mut names).then_some(names)
}

fn find_empty(value: &Value, names: &mut Vec<String>) -> bool {
    match value {
        Value::String(text) => text.raw().is_empty(),
        Value::Object(members) => members.iter().any(|(key, inner)| {
            names.push(key.decode().into_owned());
            let found = find_empty(inner, names);
            if !found {
                names.pop();
            }
            found
        }),
        _ => false,
    }
}
