//! Comparison rules compiled from a pack. For each place of an operation's answer: the line that
//! produces it, whether it is expected to differ or is noise, and how elements of an array are
//! matched. There is one tree per answer, which the comparison walks in parallel with the bodies.

use super::buffered::BufferedAnswer;
use super::language::Vocabulary;
use super::place::{member_path, names};
use crate::xml;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use switchback_json::{Limits, Value};
use switchback_plan::{
    Absent, Answer, Block, BodyFormat, Close, CloseFrom, CompareKind, CompareRule, Disclosed, Disclosures,
    End, Expr, Loss, MemberAction, ObjectOp, OnFail, Origin, Others, Pack, PerSide, ResponseBody, Route,
    RouteId, RouteKind, Serve, SideId, StatusFrom, StatusTo, StepAction, ValueOp, XmlFormat,
};

/// All rules of a pack, compiled once when the pack is loaded.
#[derive(Debug)]
pub struct Rules {
    /// By served side and route.
    operations: PerSide<Vec<OperationRules>>,
    /// By event index in the pack. `None` for events that are not delivered to receivers.
    events: Vec<Option<OperationRules>>,
}

/// The rules of one operation of the served side.
#[derive(Debug)]
pub struct OperationRules {
    /// Key of the operation in the contract, such as `GET /things/{id}`.
    pub operation: Arc<str>,
    /// Trees by status; the first match wins. Most operations share the tree of their errors.
    answers: Box<[(Statuses, Arc<Node>)]>,
    /// The line of the route, for values that no other line produces.
    pub(super) origin: Origin,
    /// Headers to compare in addition to [`HEADERS`](super::HEADERS), in lower case.
    pub(super) headers: Arc<[String]>,
    pub(super) vocabulary: Arc<Vocabulary>,
    /// Values of the served side's messages that may be disclosed.
    disclosures: Arc<Disclosures>,
    /// Layouts of successes and errors in XML, which are compared as the equivalent JSON.
    pub(super) xml: [Option<Arc<XmlFormat>>; 2],
}

/// The statuses of the served side that a tree applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statuses {
    Exact(u16),
    Class(u8),
    Any,
}

/// The rules for one place.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Rules for each member, by name.
    pub members: BTreeMap<Arc<str>, Node>,
    /// Rules for all elements.
    pub element: Option<Box<Node>>,
    pub source: Source,
    /// Whether all possible members are named. Any other member has no line that produces it.
    pub is_closed: bool,
    pub expected: Option<Expected>,
    /// Whether the value differs between two readings of the same side.
    pub is_noise: bool,
    /// Whether the order of the elements is irrelevant.
    pub is_unordered: bool,
    /// The member whose value identifies an element.
    pub key: Option<Arc<str>>,
    /// Whether the value is human-readable text.
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

/// The origin of a value.
#[derive(Clone, Debug, Default)]
pub(super) enum Source {
    /// The same as the origin of the parent.
    #[default]
    Inherited,
    /// Computed by this line.
    Made(Origin),
    /// Copied unchanged by this line, including all children.
    Copied(Origin),
}

/// The candidate's value at a place that the report lists as lost.
#[derive(Clone, Debug)]
pub(super) enum Expected {
    /// A constant.
    Value(Value),
    /// Absent.
    Nothing,
    /// A value known only at run time, such as a setting.
    Anything,
}

impl Rules {
    /// Compiles the rules of a pack.
    pub fn compile(pack: &Pack) -> Rules {
        let headers: Arc<[String]> = pack.compared_headers.iter().cloned().collect();
        let vocabulary = Arc::new(Vocabulary::from_pack(pack));
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
                xml: [
                    match &route.operation.answers {
                        BodyFormat::Xml(format) => Some(Arc::clone(format)),
                        _ => None,
                    },
                    pack.errors[side].xml.clone(),
                ],
            });
            rules.collect()
        });
        let events = pack.events.iter().flat_map(|events| {
            let serves = events.from.other();
            let ground = Ground { pack, serves, text: None, errors: RefCell::default() };
            let rules = events.routes.iter().map(move |route| {
                let told = route.delivered()?;
                let node = ground.body(&told.body.op, &route.losses, &route.origin, told.compare);
                Some(OperationRules {
                    operation: Arc::clone(told.operation),
                    answers: Box::new([(Statuses::Any, Arc::new(node))]),
                    origin: route.origin.clone(),
                    headers: Arc::default(),
                    vocabulary: Arc::default(),
                    disclosures: Arc::clone(&pack.disclosures[serves]),
                    xml: [None, None],
                })
            });
            rules.collect::<Vec<_>>()
        });
        Rules { operations, events: events.collect() }
    }

    /// Returns the rules of an event by its index in the pack, or `None` if the event is not
    /// delivered to receivers.
    pub fn of_event(&self, event: usize) -> Option<&OperationRules> {
        self.events.get(event)?.as_ref()
    }

    /// Returns the rules of a route.
    pub fn of_route(&self, serves: SideId, route: RouteId) -> &OperationRules {
        &self.operations[serves][route]
    }
}

#[cfg(test)]
impl Rules {
    /// Returns the number of a side's operations with an error tree, and the number of distinct
    /// trees.
    pub(crate) fn errors(&self, serves: SideId) -> (usize, usize) {
        let last = self.operations[serves].iter().filter_map(|rules| rules.answers.last());
        let all: Vec<*const Node> = last.map(|(_, node)| Arc::as_ptr(node)).collect();
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        (all.len(), distinct.len())
    }
}

impl OperationRules {
    /// Returns rules without any knowledge, for values outside an operation's answers.
    pub fn unknown() -> OperationRules {
        OperationRules {
            operation: "".into(),
            answers: Box::default(),
            origin: Origin { file: "".into(), line: 0 },
            headers: Arc::default(),
            vocabulary: Arc::default(),
            disclosures: Arc::default(),
            xml: [None, None],
        }
    }

    /// Returns the same rules without expected losses, noise or unordered arrays. Two answers of
    /// the same service are compared by these.
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
            xml: self.xml.clone(),
        }
    }

    /// Returns which parts of a body with this status may be disclosed.
    pub(super) fn disclosure_for(&self, status: u16) -> Disclosed<'_> {
        let operation = self.disclosures.operation(&self.operation);
        operation.map_or(Disclosed::UNKNOWN, |operation| self.disclosures.answer(operation, status))
    }

    /// Converts a complete body in XML to JSON. Any other body remains unchanged.
    pub(super) fn decoded<'b>(&self, status: u16, body: &'b BufferedAnswer) -> Cow<'b, BufferedAnswer> {
        let format = self.xml[usize::from(status >= 400)].as_ref();
        let Some(format) = format.filter(|_| body.is_whole() && xml::begins_as_xml(body.start())) else {
            return Cow::Borrowed(body);
        };
        match xml::decode(format, body.start(), &Limits::DOCUMENT) {
            Ok(json) => Cow::Owned(BufferedAnswer::whole(json)),
            Err(_) => Cow::Borrowed(body),
        }
    }

    /// Returns the tree for the body of an answer with this status.
    pub(super) fn body(&self, status: u16) -> &Node {
        static UNKNOWN: Node = Node::UNKNOWN;
        self.answers.iter().find(|(statuses, _)| statuses.cover(status)).map_or(&UNKNOWN, |(_, node)| node)
    }

    /// Builds rules from a tree and declarations, without a pack.
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
            xml: [None, None],
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
    /// The rules of a place that the pack does not describe.
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

    /// Merges the tree of another answer for the same place. Existing entries take precedence.
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

/// Context for building the trees of one side.
struct Ground<'p> {
    pack: &'p Pack,
    serves: SideId,
    /// Path to the human-readable text in an error.
    text: Option<&'p [String]>,
    /// Cache of error trees, by producing operation and responsible line.
    errors: RefCell<HashMap<ErrorKey, Arc<Node>>>,
}

/// The operation that produces an error (`None` if the error is copied unchanged), and the
/// responsible line.
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
                        ResponseBody::Empty | ResponseBody::Opaque(_) | ResponseBody::Undescribed => {
                            Arc::default()
                        }
                        ResponseBody::Plan(plan) => Arc::new(self.success(&plan.op, route)),
                        ResponseBody::Error(plan) => self.error(&plan.body.op, route),
                    };
                    add(&mut answers, statuses, node);
                }
            }
            RouteKind::Serve(serve) => {
                let arrival = results_of_arrival(serve);
                serve.block.all().for_each(|block| self.block(block, route, &arrival, &mut answers))
            }
            RouteKind::Refuse(_) => {}
        }
        add(&mut answers, Statuses::Any, self.error(error, route));
        answers.into()
    }

    fn success(&self, op: &ValueOp, route: &Route) -> Node {
        self.body(op, &route.losses, &route.origin, &route.compare)
    }

    fn body(&self, op: &ValueOp, losses: &[Loss], origin: &Origin, declared: &[CompareRule]) -> Node {
        let tree = Tree::new(self, losses, origin);
        let mut node = tree.op(op, "$");
        tree.left_out(&mut node);
        declare(&mut node, declared);
        node
    }

    fn error(&self, op: &ValueOp, route: &Route) -> Arc<Node> {
        // All `Keep` operations yield the same tree, so they share one cache entry.
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
        let mut node = Tree::new(self, &[], &route.origin).op(op, "$");
        if let Some(names) = self.text {
            names.iter().fold(&mut node, |node, name| node.member(name)).is_text = true;
        }
        declare(&mut node, &self.pack.compared_errors[self.serves]);
        node
    }

    /// Adds the answers that a block itself can end with, including those of failed steps.
    fn block(
        &self,
        block: &Block,
        route: &Route,
        arrival: &BTreeSet<Arc<str>>,
        answers: &mut Vec<(Statuses, Arc<Node>)>,
    ) {
        let tree = |origin| Tree { ground: self, losses: &route.losses, origin, arrival, supplied: &[] };
        for (step, call) in block.calls() {
            if let OnFail::Answer(answer) = &call.on_fail {
                add_answer(&tree(&step.origin), answer, route, answers);
            }
        }
        if let End::Answer(answer) = &block.end {
            add_answer(&tree(&route.origin), answer, route, answers);
        }
    }
}

fn add_answer(tree: &Tree<'_>, answer: &Answer, route: &Route, answers: &mut Vec<(Statuses, Arc<Node>)>) {
    let mut node = answer.body.as_ref().map(|body| tree.value(body, "$")).unwrap_or_default();
    // Losses and declared rules of a route describe its successes.
    if answer.status < 400 {
        tree.left_out(&mut node);
        declare(&mut node, &route.compare);
    }
    add(answers, Statuses::Exact(answer.status), Arc::new(node));
}

/// Returns the results of steps that are computed from the arrival of the request.
fn results_of_arrival(serve: &Serve) -> BTreeSet<Arc<str>> {
    let mut results = BTreeSet::new();
    if serve.reads_arrival {
        for step in serve.block.all().flat_map(|block| &block.steps) {
            if let (Some(name), StepAction::Make(value)) = (&step.name, &step.action)
                && value.depends_on_arrival(&results)
            {
                results.insert(Arc::clone(&name.text));
            }
        }
    }
    results
}

fn add(answers: &mut Vec<(Statuses, Arc<Node>)>, statuses: Statuses, node: Arc<Node>) {
    match answers.iter_mut().find(|(known, _)| *known == statuses) {
        // The shared tree of errors is already complete.
        Some((_, known)) if Arc::ptr_eq(known, &node) => {}
        Some((_, known)) => Arc::make_mut(known).merge(Arc::unwrap_or_clone(node)),
        None => answers.push((statuses, node)),
    }
}

/// Adds the pack's declarations to a tree.
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

/// Builds a tree from the operations on a body.
struct Tree<'g> {
    ground: &'g Ground<'g>,
    losses: &'g [Loss],
    /// The line responsible for values without a line of their own.
    origin: &'g Origin,
    /// Results of steps that are computed from the arrival of the request.
    arrival: &'g BTreeSet<Arc<str>>,
    /// The values that a shape is supplied with.
    supplied: &'g [Expr],
}

impl<'g> Tree<'g> {
    fn new(ground: &'g Ground<'g>, losses: &'g [Loss], origin: &'g Origin) -> Tree<'g> {
        static NONE: BTreeSet<Arc<str>> = BTreeSet::new();
        Tree { ground, losses, origin, arrival: &NONE, supplied: &[] }
    }
}

impl Tree<'_> {
    /// Returns the node of the value that an operation produces. `at` is its place, with `*` for
    /// elements.
    fn op(&self, op: &ValueOp, at: &str) -> Node {
        let made = |source| Node { source, ..Node::default() };
        match op {
            ValueOp::Keep => made(Source::Copied(self.origin.clone())),
            ValueOp::Constant(_) | ValueOp::Convert(_) => made(Source::Made(self.origin.clone())),
            ValueOp::Array(inner) => self.list(inner, &format!("{at}[*]")),
            ValueOp::Wrap(inner) => self.list(inner, &format!("{at}[0]")),
            ValueOp::Unwrap(inner) => self.op(inner, at),
            ValueOp::Object(object) => self.object(object, at),
            // Any of the arms may have produced the value.
            ValueOp::Choose(choose) => choose.arms.iter().fold(Node::default(), |mut node, arm| {
                node.merge(self.op(arm, at));
                node
            }),
            ValueOp::Attempt(attempt) => self.op(&attempt.op, at),
            // A recursive shape is not expanded: deeper values are attributed to the line that
            // refers to it.
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
            // Unnamed members never pass, so no line produces one that occurs in an answer.
            Others::Drop | Others::Refuse(_) => (Source::Made(self.origin.clone()), true),
        };
        let mut node = Node { source, is_closed, ..Node::default() };
        for member in &object.members {
            if let MemberAction::Emit(emit) = &member.action {
                let tree = Tree { origin: &member.origin, ..*self };
                let place = format!("{at}{}", member_path(&emit.name.text));
                let mut made = tree.op(&emit.op, &place);
                made.expected = self.expected_value(&place);
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
                // With several alternatives, the line that produced the value is unknown.
                if let ([one], Absent::Omit | Absent::Value(_)) = (alternatives.as_slice(), absent) {
                    let tree = Tree { origin: &close.origin, ..*self };
                    node = tree.op(&one.op, &place);
                }
            }
            CloseFrom::Supplied(at) => {
                node.expected = self.expected_value(&place);
                let value = self.supplied.get(usize::from(*at));
                node.is_noise = value.is_some_and(|value| value.depends_on_arrival(self.arrival));
            }
            CloseFrom::Constant(_) | CloseFrom::Default { .. } | CloseFrom::Setting(_) => {
                node.expected = self.expected_value(&place)
            }
        }
        parent.member(&close.name.text).merge(node);
    }

    /// Returns the candidate's value at a place that the report lists as lost.
    fn expected_value(&self, place: &str) -> Option<Expected> {
        let side = &self.ground.pack.sides[self.ground.serves].name;
        // A partial loss affects only some values, so it does not predict this one.
        let loss =
            self.losses.iter().find(|loss| loss.side == *side && loss.place == place && !loss.partly)?;
        Some(match &loss.instead {
            // The value depends on the data, so the comparison cannot predict it.
            _ if loss.unless_found => Expected::Anything,
            None => Expected::Nothing,
            Some(text) => {
                Value::parse(text.as_bytes(), &Limits::DOCUMENT).map_or(Expected::Anything, Expected::Value)
            }
        })
    }

    /// Adds members of the served side that are listed as lost and that no line produces. The
    /// candidate never contains them.
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

    /// Returns the node of a value that a route constructs.
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
            Expr::Shape { op, with, .. } => node = Tree { supplied: with, ..*self }.op(op, at),
            Expr::At(_) | Expr::Lookup { .. } => node.source = Source::Copied(self.origin.clone()),
            Expr::Text { .. } => node.is_text = true,
            Expr::Present(items) => {
                for item in items {
                    node.any_element().merge(self.value(item, &format!("{at}[*]")));
                }
            }
            Expr::Each { give, .. } => node.any_element().merge(self.value(give, &format!("{at}[*]"))),
            Expr::If { .. } | Expr::Lines { .. } | Expr::Aggregate { .. } => {}
            Expr::Constant(_) | Expr::Convert { .. } | Expr::Apply { .. } | Expr::FirstOf(_) => {}
        }
        // The other version has another time or id there.
        let is_leaf = node.members.is_empty() && node.element.is_none();
        node.is_noise |= is_leaf && value.depends_on_arrival(self.arrival);
        node
    }
}

/// Returns the path to the text in the gateway's own errors.
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
