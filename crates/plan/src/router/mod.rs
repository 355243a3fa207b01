//! Which route of a direction a request is for: method and path in, route and decoded path values out.
//!
//! Paths are taken as they stand in the request line ([`path`]) and never normalised: a path that another server could
//! read as another one is refused. Literal segments win over segments that are variable in part (`{id}.json`, the longest
//! text first), and these over variables; a variable that the contract calls an integer matches integers only, so that a
//! malformed id is not found instead of reaching the upstream.

pub mod path;

#[cfg(test)]
mod tests;

pub use path::{Allowed, PathError, UnsafeSegment, encode_segment};

use crate::{Direction, ParameterKind, RouteId, Variable};
use foldhash::fast::RandomState;
use http::Method;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Finds routes of one direction. Built once per pack; finding allocates for escaped values only.
#[derive(Debug, Default)]
pub struct Router {
    root: Node,
    /// By route: the path variables, in order.
    variables: Vec<Vec<Slot>>,
    /// Whether some template ends in a slash.
    has_slash_at_end: bool,
    /// Whether some variable may hold slashes.
    has_escaped_slash: bool,
}

/// What a path variable takes.
#[derive(Clone, Copy, Debug)]
struct Slot {
    kind: ParameterKind,
    takes_slash: bool,
}

impl Slot {
    fn takes(self, value: &str) -> bool {
        fits(self.kind, value) && (self.takes_slash || !value.contains('/'))
    }
}

/// All templates with the same beginning.
#[derive(Debug, Default)]
struct Node {
    literals: HashMap<Box<str>, Node, RandomState>,
    /// Segments that are variable in part, those with the most text first.
    mixed: Vec<(Mixed, Node)>,
    variable: Option<Box<Node>>,
    routes: Vec<(Method, RouteId)>,
}

/// The texts of a segment that is variable in part: before the first variable, between each two, and after the last.
#[derive(Debug, PartialEq, Eq)]
struct Mixed {
    before: Box<str>,
    /// Each not empty, but perhaps the last.
    after: Vec<Box<str>>,
}

impl Mixed {
    fn parse(segment: &str) -> Mixed {
        let mut texts = segment.split('{').enumerate().map(|(at, part)| match at {
            0 => part,
            _ => part.split_once('}').map_or("", |(_, text)| text),
        });
        Mixed { before: texts.next().unwrap_or("").into(), after: texts.map(Into::into).collect() }
    }

    fn text_bytes(&self) -> usize {
        self.before.len() + self.after.iter().map(|text| text.len()).sum::<usize>()
    }

    /// Where the values of the variables lie: each ends at the first text that follows it, the last one at the end. None is
    /// empty.
    fn values(&self, segment: &str) -> Option<Vec<Range<usize>>> {
        let mut at = self.before.len();
        segment.starts_with(&*self.before).then_some(())?;
        let (last, between) = self.after.split_last()?;
        let mut values = Vec::with_capacity(self.after.len());
        for text in between {
            let first = at + segment[at..].chars().next()?.len_utf8();
            let end = first + segment[first..].find(&**text)?;
            values.push(at..end);
            at = end + text.len();
        }
        let end = segment.len().checked_sub(last.len())?;
        // What the last variable stands for is cut off before its text, which therefore begins a character.
        (end > at && segment.ends_with(&**last)).then(|| values.push(at..end))?;
        Some(values)
    }
}

/// What a request line is for.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'p> {
    /// A route answers it.
    Route {
        /// Index into the routes of the direction.
        route: RouteId,
        /// The decoded value of each path variable of the route's operation, in order.
        values: Vec<Cow<'p, str>>,
    },
    /// The path exists under these methods, as the `Allow` header wants them: sorted, `HEAD` beside `GET`.
    WrongMethod {
        /// Never empty.
        allow: Vec<Method>,
    },
    /// No route has this path under any method.
    NotFound,
    /// The path cannot be told: an escape or a segment that services read differently.
    Bad(PathError),
}

/// The state of one search.
struct Search<'s, 'p> {
    method: &'s Method,
    segments: &'s [Cow<'p, str>],
    slots: &'s [Vec<Slot>],
    /// What variables stand for, on the way to the node at hand: a segment, or a part of one.
    variables: Vec<(usize, Option<Range<usize>>)>,
    allow: BTreeSet<&'s str>,
    /// A route of this method has the right form, but a value does not fit its variable.
    unfit: bool,
}

impl Node {
    fn mixed(&mut self, mixed: Mixed) -> &mut Node {
        let at = match self.mixed.iter().position(|(known, _)| *known == mixed) {
            Some(at) => at,
            None => {
                let at = self.mixed.partition_point(|(known, _)| known.text_bytes() >= mixed.text_bytes());
                self.mixed.insert(at, (mixed, Node::default()));
                at
            }
        };
        &mut self.mixed[at].1
    }
}

impl Router {
    /// Takes in all routes of a direction. Of templates that match the same path, the one with literal text further left
    /// wins.
    pub fn new(direction: &Direction) -> Router {
        let mut router = Router::default();
        for route in &direction.routes {
            let slot = |variable: &Variable| Slot { kind: variable.kind, takes_slash: variable.takes_slash };
            let slots = route.operation.variables.iter().map(slot).collect();
            router.add(&route.operation.method, &route.operation.template, slots, route.id);
        }
        router
    }

    /// `slots`: the template's variables, in order. Routes are added in the order of their ids.
    fn add(&mut self, method: &Method, template: &str, slots: Vec<Slot>, id: RouteId) {
        let template = template.strip_prefix('/').unwrap_or(template);
        self.has_slash_at_end |= template.ends_with('/');
        self.has_escaped_slash |= slots.iter().any(|slot| slot.takes_slash);
        let segments = template.split('/').filter(|_| !template.is_empty());
        let node = segments.fold(&mut self.root, |node, segment| match segment.find('{') {
            None => node.literals.entry(segment.into()).or_default(),
            Some(0) if segment.find('}') == Some(segment.len() - 1) => node.variable.get_or_insert_default(),
            Some(_) => node.mixed(Mixed::parse(segment)),
        });
        node.routes.push((method.clone(), id));
        let at = usize::from(id.0);
        self.variables.resize_with(self.variables.len().max(at + 1), Vec::new);
        self.variables[at] = slots;
    }

    /// The route for a method and a path as it stands in the request line, below the front's prefix and without a query.
    /// `HEAD` finds the route of `GET`.
    pub fn find<'p>(&self, method: &Method, raw_path: &'p str) -> Found<'p> {
        let allowed = Allowed { slash_at_end: self.has_slash_at_end, escaped_slash: self.has_escaped_slash };
        let segments = match path::segments_with(raw_path, allowed) {
            Ok(segments) => segments,
            Err(error) => return Found::Bad(error),
        };
        let mut search = Search {
            method: if method == Method::HEAD { &Method::GET } else { method },
            segments: &segments,
            slots: &self.variables,
            variables: Vec::new(),
            allow: BTreeSet::new(),
            unfit: false,
        };
        if let Some(route) = search.descend(&self.root, 0) {
            let variables = search.variables;
            let mut segments: Vec<Option<Cow<'p, str>>> = segments.into_iter().map(Some).collect();
            let values = variables.into_iter().filter_map(|(at, part)| match part {
                None => segments[at].take(),
                Some(range) => match segments[at].as_ref()? {
                    Cow::Borrowed(text) => Some(Cow::Borrowed(&text[range])),
                    Cow::Owned(text) => Some(Cow::Owned(text[range].to_owned())),
                },
            });
            return Found::Route { route, values: values.collect() };
        }
        // Of routes whose variables take no slash, the path is none.
        if segments.iter().any(|segment| segment.contains('/')) {
            return Found::Bad(PathError::HiddenSeparator);
        }
        if search.unfit || search.allow.is_empty() {
            return Found::NotFound;
        }
        let allow = search.allow.iter().filter_map(|method| method.parse().ok());
        Found::WrongMethod { allow: allow.collect() }
    }
}

impl<'s> Search<'s, '_> {
    /// Literal before variable; leaves the variables of the route it finds in `self.variables`. Templates are as deep as
    /// a contract writes them, so the recursion is bounded by the pack, not by the request.
    fn descend(&mut self, node: &'s Node, at: usize) -> Option<RouteId> {
        let Some(segment) = self.segments.get(at) else {
            return self.here(node);
        };
        if let Some(literal) = node.literals.get(segment.as_ref())
            && let Some(route) = self.descend(literal, at + 1)
        {
            return Some(route);
        }
        for (mixed, inner) in &node.mixed {
            let Some(values) = mixed.values(segment) else { continue };
            let before = self.variables.len();
            self.variables.extend(values.into_iter().map(|range| (at, Some(range))));
            if let Some(route) = self.descend(inner, at + 1) {
                return Some(route);
            }
            self.variables.truncate(before);
        }
        // No variable is empty.
        let variable = node.variable.as_deref().filter(|_| !segment.is_empty())?;
        self.variables.push((at, None));
        let found = self.descend(variable, at + 1);
        if found.is_none() {
            self.variables.pop();
        }
        found
    }

    fn here(&mut self, node: &'s Node) -> Option<RouteId> {
        for (method, route) in &node.routes {
            let fits = self.fits(*route);
            if method == self.method && fits {
                return Some(*route);
            }
            self.unfit |= method == self.method;
            if fits {
                self.allow.insert(method.as_str());
                if method == Method::GET {
                    self.allow.insert(Method::HEAD.as_str());
                }
            }
        }
        None
    }

    fn fits(&self, route: RouteId) -> bool {
        let slots = self.slots.get(usize::from(route.0)).map_or(&[][..], Vec::as_slice);
        let mut values = self.variables.iter().map(|(at, part)| {
            let segment = self.segments[*at].as_ref();
            part.as_ref().map_or(segment, |range| &segment[range.clone()])
        });
        slots.iter().all(|slot| values.next().is_some_and(|value| slot.takes(value)))
    }
}

/// Whether the text of a parameter is a value of this kind, written as JSON would.
pub fn fits(kind: ParameterKind, value: &str) -> bool {
    let number = || switchback_json::text::check_number(value.as_bytes()).is_ok();
    match kind {
        ParameterKind::String => true,
        ParameterKind::Boolean => matches!(value, "true" | "false"),
        ParameterKind::Number => number(),
        ParameterKind::Integer => number() && !value.contains(['.', 'e', 'E']),
    }
}
