//! The context document of a request, which the paths of a mapping refer to, and path evaluation.
//!
//! Singular paths are resolved on the lossless document. Other paths are evaluated by jsonpath-rust
//! on a copy of [`Node`]s, which support the evaluator without rounding numbers: integers
//! beyond the precision of a double are compared as text.

use jsonpath_rust::query::js_path_process;
use jsonpath_rust::query::queryable::Queryable;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use switchback_json::{Number, Object, Value};
use switchback_plan::{Key, Location, Path, Segment};

/// `{request: {path, query, headers, body}, config, <step>: …}`. Clones share all values.
#[derive(Clone, Default)]
pub(super) struct Context {
    roots: Vec<Root>,
}

/// A top-level member of the document.
#[derive(Clone)]
struct Root {
    name: Arc<str>,
    value: Arc<Value>,
    /// The evaluator's copy, created on first use.
    node: Arc<OnceLock<Arc<Node>>>,
    /// Indexes of lists in this member, created on first use and shared by all lookups.
    indexes: Arc<Mutex<Indexes>>,
}

/// Each index with the path of its list and the member it is keyed by.
type Indexes = Vec<(Arc<str>, Arc<str>, Arc<Index>)>;

/// The positions of a list's elements by the value of one member.
#[derive(Debug, Default)]
pub(super) struct Index {
    places: HashMap<String, usize>,
}

impl Index {
    fn build(list: &[Value], by: &str) -> Index {
        let mut places = HashMap::with_capacity(list.len());
        for (at, element) in list.iter().enumerate() {
            if let Some(key) = element.get(by).and_then(index_key) {
                // The first of several elements with the same key wins.
                places.entry(key).or_insert(at);
            }
        }
        Index { places }
    }

    /// Returns the position of the element whose member has this value.
    pub(super) fn find(&self, value: &Value) -> Option<usize> {
        self.places.get(&index_key(value)?).copied()
    }
}

/// Returns the index key of a scalar. Numbers are compared by value, as in [`same`].
fn index_key(value: &Value) -> Option<String> {
    Some(match value {
        Value::String(text) => format!("s{}", text.decode()),
        Value::Number(number) => match exact(number) {
            // Adding 0.0 turns -0.0 into 0.0.
            Some(exact) => format!("n{:x}", (exact + 0.0).to_bits()),
            None => format!("t{}", number.text()),
        },
        Value::Bool(value) => format!("b{value}"),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    })
}

/// Prints names only, because the values are message data.
impl fmt::Debug for Context {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.roots.iter().map(|root| &root.name)).finish()
    }
}

impl Context {
    /// Sets a top-level member.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.remove(name);
        let (value, node, indexes) = (Arc::new(value), Arc::default(), Arc::default());
        self.roots.push(Root { name: name.into(), value, node, indexes });
    }

    /// Removes a top-level member.
    pub(super) fn remove(&mut self, name: &str) {
        self.roots.retain(|root| &*root.name != name);
    }

    /// Returns a top-level member for modification and invalidates its caches.
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let root = self.roots.iter_mut().find(|root| &*root.name == name)?;
        root.node = Arc::default();
        root.indexes = Arc::default();
        Some(Arc::make_mut(&mut root.value))
    }

    /// Returns the value at a path. For a path that can match several values, returns an array of
    /// all matches.
    pub(super) fn value(&self, location: &Location) -> Option<Cow<'_, Value>> {
        match &location.path {
            Path::Singular(segments) => self.walk(segments).map(Cow::Borrowed),
            Path::Query(_) => {
                let matches = self.matches(location).into_iter().map(Cow::into_owned);
                Some(Cow::Owned(Value::from(matches.collect::<Vec<_>>())))
            }
        }
    }

    /// Returns all matches of a path, in document order.
    pub(super) fn matches(&self, location: &Location) -> Vec<Cow<'_, Value>> {
        match &location.path {
            Path::Singular(segments) => self.walk(segments).map(Cow::Borrowed).into_iter().collect(),
            Path::Query(query) => {
                // The nodes of the members are shared, so each is built only once.
                let nodes = Node::Members(self.roots.iter().map(Root::node).collect());
                // The evaluator fails only for a query that is a bare value, which its parser never
                // produces.
                let found = js_path_process(query, &nodes).unwrap_or_default();
                found.into_iter().map(|found| Cow::Owned(found.val.to_value())).collect()
            }
        }
    }

    /// Returns a copy of the document.
    pub(super) fn document(&self) -> Value {
        let mut document = Object::new();
        for root in &self.roots {
            document.insert(&*root.name, Value::clone(&root.value));
        }
        Value::Object(document)
    }

    /// Returns the index of a list by a member of its elements, creating it on first use.
    pub(super) fn index(&self, list: &Location, by: &Key) -> Option<Arc<Index>> {
        let Path::Singular(segments) = &list.path else { return None };
        let Some(Segment::Member(first)) = segments.first() else { return None };
        let root = self.roots.iter().find(|root| root.name == first.text)?;
        // A poisoned lock is harmless, because indexes are derived from immutable values.
        let mut indexes = root.indexes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let known = indexes.iter().find(|(path, member, _)| *path == list.text && *member == by.text);
        if let Some((_, _, index)) = known {
            return Some(Arc::clone(index));
        }
        let index = Arc::new(Index::build(self.walk(segments)?.as_array()?, &by.text));
        indexes.push((Arc::clone(&list.text), Arc::clone(&by.text), Arc::clone(&index)));
        Some(index)
    }

    /// Returns an element of a list.
    pub(super) fn element(&self, list: &Location, at: usize) -> Option<&Value> {
        let Path::Singular(segments) = &list.path else { return None };
        self.walk(segments)?.as_array()?.get(at)
    }

    pub(super) fn walk(&self, segments: &[Segment]) -> Option<&Value> {
        let (first, rest) = segments.split_first()?;
        let Segment::Member(name) = first else { return None };
        let root = self.roots.iter().find(|root| root.name == name.text)?;
        rest.iter().try_fold(&*root.value, |value, segment| match segment {
            Segment::Member(key) => value.get(&key.text),
            Segment::Index(at) => {
                let array = value.as_array()?;
                // Negative indices count from the end (RFC 9535, section 2.3.3).
                let from_end = || array.len().checked_sub(usize::try_from(at.unsigned_abs()).ok()?);
                array.get(if *at < 0 { from_end()? } else { usize::try_from(*at).ok()? })
            }
        })
    }
}

impl Root {
    /// Returns the member in the evaluator's representation.
    fn node(&self) -> (String, Node) {
        let node = self.node.get_or_init(|| Arc::new(Node::from_value(&self.value)));
        (self.name.as_ref().to_owned(), Node::Shared(Arc::clone(node)))
    }
}

/// Returns whether two values are equal. Numbers are compared by value, so `1` equals `1.0`;
/// numbers beyond the precision of a double are compared as text.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| value.as_number().and_then(exact);
    a == b || number(a).is_some_and(|a| Some(a) == number(b))
}

/// Returns the number as a double, or `None` if its magnitude is 2^53 or more.
fn exact(number: &Number) -> Option<f64> {
    const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;
    number.text().parse().ok().filter(|value: &f64| value.abs() < INTEGER_MAX)
}

/// A value in the evaluator's representation: strings decoded, arrays as vectors.
#[derive(Clone, Debug, Default)]
enum Node {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Members(Vec<(String, Node)>),
    /// A top-level member, shared by all copies.
    Shared(Arc<Node>),
}

impl Node {
    /// Returns the node behind [`Node::Shared`].
    fn plain(&self) -> &Node {
        match self {
            Node::Shared(node) => node.plain(),
            node => node,
        }
    }

    /// Converts a value. The recursion is bounded by the depth limit of the documents in the
    /// context.
    fn from_value(value: &Value) -> Node {
        match value {
            Value::Null => Node::Null,
            Value::Bool(value) => Node::Bool(*value),
            Value::Number(number) => Node::Number(number.clone()),
            Value::String(text) => Node::Text(text.decode().into_owned()),
            Value::Array(values) => Node::List(values.iter().map(Node::from_value).collect()),
            Value::Object(members) => Node::of_members(members),
        }
    }

    fn of_members(members: &Object) -> Node {
        Node::Members(
            members.iter().map(|(key, value)| (key.decode().into_owned(), Node::from_value(value))).collect(),
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

/// The order of members is irrelevant (RFC 9535, section 2.3.5.2.2).
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
        // NaN and infinities have no JSON representation.
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

    /// The evaluator compares integers as doubles; [`exact`] excludes those that a double would
    /// round.
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

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_json::Limits;

    fn location(names: &[&str]) -> Location {
        let path = Path::Singular(names.iter().map(|name| Segment::Member(Key::new(name))).collect());
        Location { text: format!("$.{}", names.join(".")).into(), path }
    }

    fn context(json: &str) -> Context {
        let mut context = Context::default();
        context.set("page", Value::parse(json.as_bytes(), &Limits::DOCUMENT).expect("it is JSON"));
        context
    }

    #[test]
    fn an_index_is_made_once_for_each_list_and_shared_by_copies() {
        let mut context = context(r#"{"users":[{"id":1},{"id":"1"},{"id":1.0,"second":true}]}"#);
        let (users, id) = (location(&["page", "users"]), Key::new("id"));
        let index = context.index(&users, &id).expect("there is a list");
        let copy = context.clone();
        assert!(Arc::ptr_eq(&index, &copy.index(&users, &id).expect("there is a list")));
        assert!(!Arc::ptr_eq(&index, &copy.index(&users, &Key::new("name")).expect("there is a list")));
        let number = |text: &str| Value::parse(text.as_bytes(), &Limits::DOCUMENT).expect("it is JSON");
        assert_eq!((index.find(&number("1.0")), index.find(&number("\"1\""))), (Some(0), Some(1)));
        assert_eq!((index.find(&number("2")), index.find(&Value::Null)), (None, None));
        // Replacing a value invalidates its index.
        context.set("page", number(r#"{"users":[]}"#));
        assert_eq!(context.index(&users, &id).expect("there is a list").find(&number("1")), None);
        assert!(context.index(&location(&["page", "none"]), &id).is_none());
    }
}
