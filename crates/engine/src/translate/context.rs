//! The context document of a request: what the paths of a mapping look into, and the looking.
//!
//! Plain places are walked on the lossless document. Other paths are run by the evaluator of jsonpath-rust on a copy of it
//! made of [`Node`]s, which answer the evaluator's questions without rounding a number: integers that a double cannot hold
//! are compared by their text.

use jsonpath_rust::query::js_path_process;
use jsonpath_rust::query::queryable::Queryable;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use switchback_json::{Number, Object, Value};
use switchback_plan::{Location, Path, Segment};

/// `{request: {path, query, headers, body}, config, <step>: …}`. A copy shares all values with its original.
#[derive(Clone, Default)]
pub(super) struct Context {
    roots: Vec<Root>,
}

/// A member of the document.
#[derive(Clone)]
struct Root {
    name: Arc<str>,
    value: Arc<Value>,
    /// Made when the first path needs it.
    node: Arc<OnceLock<Arc<Node>>>,
}

/// Names only: the values are somebody's messages.
impl fmt::Debug for Context {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.roots.iter().map(|root| &root.name)).finish()
    }
}

impl Context {
    /// Sets or replaces one member of the document.
    pub fn set(&mut self, name: &str, value: Value) {
        self.remove(name);
        self.roots.push(Root { name: name.into(), value: Arc::new(value), node: Arc::default() });
    }

    /// Takes a member out of the document.
    pub fn remove(&mut self, name: &str) {
        self.roots.retain(|root| &*root.name != name);
    }

    /// A member of the document, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let root = self.roots.iter_mut().find(|root| &*root.name == name)?;
        root.node = Arc::default();
        Some(Arc::make_mut(&mut root.value))
    }

    /// The value at a place; for a path that may match several, the array of all matches.
    pub fn value(&self, location: &Location) -> Option<Cow<'_, Value>> {
        match &location.path {
            Path::Singular(segments) => self.walk(segments).map(Cow::Borrowed),
            Path::Query(_) => {
                let matches = self.matches(location).into_iter().map(Cow::into_owned);
                Some(Cow::Owned(Value::from(matches.collect::<Vec<_>>())))
            }
        }
    }

    /// All matches of a path, in document order.
    pub fn matches(&self, location: &Location) -> Vec<Cow<'_, Value>> {
        match &location.path {
            Path::Singular(segments) => self.walk(segments).map(Cow::Borrowed).into_iter().collect(),
            Path::Query(query) => {
                let nodes = Node::Members(self.roots.iter().map(Root::node).collect());
                // The evaluator's only error is a query that is a bare value, which its parser does not make.
                let found = js_path_process(query, &nodes).unwrap_or_default();
                found.into_iter().map(|found| Cow::Owned(found.val.to_value())).collect()
            }
        }
    }

    /// All of it.
    pub fn document(&self) -> Value {
        let mut document = Object::new();
        for root in &self.roots {
            document.insert(&*root.name, Value::clone(&root.value));
        }
        Value::Object(document)
    }

    pub fn walk(&self, segments: &[Segment]) -> Option<&Value> {
        let (first, rest) = segments.split_first()?;
        let Segment::Member(name) = first else { return None };
        let root = self.roots.iter().find(|root| root.name == name.text)?;
        rest.iter().try_fold(&*root.value, |value, segment| match segment {
            Segment::Member(key) => value.get(&key.text),
            Segment::Index(at) => {
                let array = value.as_array()?;
                let from_end = || array.len().checked_sub(usize::try_from(at.unsigned_abs()).ok()?);
                array.get(if *at < 0 { from_end()? } else { usize::try_from(*at).ok()? })
            }
        })
    }
}

impl Root {
    /// The member as the evaluator sees it.
    fn node(&self) -> (String, Node) {
        let node = self.node.get_or_init(|| Arc::new(Node::of(&self.value)));
        (self.name.as_ref().to_owned(), Node::Shared(Arc::clone(node)))
    }
}

/// Whether two values are the same: as JSON values are, and numbers by what they count, so that `1` is `1.0`. Numbers
/// that a double cannot hold are the same when their text is.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| value.as_number().and_then(exact);
    a == b || number(a).is_some_and(|a| Some(a) == number(b))
}

/// The number as a double, if it is one of those that survive the way: integers below 2^53, fractions as near as written.
fn exact(number: &Number) -> Option<f64> {
    const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;
    number.text().parse().ok().filter(|value: &f64| value.abs() < INTEGER_MAX)
}

/// A value as the evaluator wants to see it: strings decoded, arrays as vectors.
#[derive(Clone, Debug, Default)]
enum Node {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Members(Vec<(String, Node)>),
    /// A member of the document, shared between its copies.
    Shared(Arc<Node>),
}

impl Node {
    /// The node that holds the value.
    fn plain(&self) -> &Node {
        match self {
            Node::Shared(node) => node.plain(),
            node => node,
        }
    }

    /// Recursion is bounded by the depth limit of the documents in the context.
    fn of(value: &Value) -> Node {
        match value {
            Value::Null => Node::Null,
            Value::Bool(value) => Node::Bool(*value),
            Value::Number(number) => Node::Number(number.clone()),
            Value::String(text) => Node::Text(text.decode().into_owned()),
            Value::Array(values) => Node::List(values.iter().map(Node::of).collect()),
            Value::Object(members) => Node::of_members(members),
        }
    }

    fn of_members(members: &Object) -> Node {
        Node::Members(
            members.iter().map(|(key, value)| (key.decode().into_owned(), Node::of(value))).collect(),
        )
    }

    fn to_value(&self) -> Value {
        match self {
            Node::Null => Value::Null,
            Node::Bool(value) => Value::Bool(*value),
            Node::Number(number) => Value::Number(number.clone()),
            Node::Text(text) => Value::string(text),
            Node::List(values) => Value::from(values.iter().map(Node::to_value).collect::<Vec<_>>()),
            Node::Members(members) => {
                Value::Object(members.iter().map(|(key, value)| (key.as_str(), value.to_value())).collect())
            }
            Node::Shared(node) => node.to_value(),
        }
    }
}

/// Of objects, order does not count (RFC 9535, section 2.3.5.2.2).
impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        match (self.plain(), other.plain()) {
            (Node::Null, Node::Null) => true,
            (Node::Bool(a), Node::Bool(b)) => a == b,
            (Node::Number(a), Node::Number(b)) => a == b || exact(a).is_some_and(|a| Some(a) == exact(b)),
            (Node::Text(a), Node::Text(b)) => a == b,
            (Node::List(a), Node::List(b)) => a == b,
            (Node::Members(a), Node::Members(b)) => {
                a.len() == b.len() && a.iter().all(|(key, value)| other.get(key) == Some(value))
            }
            _ => false,
        }
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Node {
        Node::Text(text.to_owned())
    }
}

impl From<String> for Node {
    fn from(text: String) -> Node {
        Node::Text(text)
    }
}

impl From<bool> for Node {
    fn from(value: bool) -> Node {
        Node::Bool(value)
    }
}

impl From<i64> for Node {
    fn from(value: i64) -> Node {
        Node::Number(Number::from_i64(value))
    }
}

impl From<f64> for Node {
    fn from(value: f64) -> Node {
        Number::from_text(&value.to_string()).map_or(Node::Null, Node::Number)
    }
}

impl From<Vec<Node>> for Node {
    fn from(values: Vec<Node>) -> Node {
        Node::List(values)
    }
}

impl Queryable for Node {
    fn get(&self, key: &str) -> Option<&Node> {
        match self.plain() {
            Node::Members(members) => members.iter().find(|(known, _)| known == key).map(|(_, value)| value),
            _ => None,
        }
    }

    fn as_array(&self) -> Option<&Vec<Node>> {
        match self.plain() {
            Node::List(values) => Some(values),
            _ => None,
        }
    }

    fn as_object(&self) -> Option<Vec<(&str, &Node)>> {
        match self.plain() {
            Node::Members(members) => {
                Some(members.iter().map(|(key, value)| (key.as_str(), value)).collect())
            }
            _ => None,
        }
    }

    fn as_str(&self) -> Option<&str> {
        match self.plain() {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The evaluator takes an integer for a double where it can; see [`exact`] for when it must not.
    fn as_i64(&self) -> Option<i64> {
        match self.plain() {
            Node::Number(number) => exact(number).and(number.as_i64()),
            _ => None,
        }
    }

    fn as_f64(&self) -> Option<f64> {
        match self.plain() {
            Node::Number(number) => exact(number),
            _ => None,
        }
    }

    fn as_bool(&self) -> Option<bool> {
        match self.plain() {
            Node::Bool(value) => Some(*value),
            _ => None,
        }
    }

    fn null() -> Node {
        Node::Null
    }
}
