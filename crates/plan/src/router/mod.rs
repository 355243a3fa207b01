//! Which route of a direction a request is for: method and path in, route and decoded path values out.
//!
//! Paths are taken as they stand in the request line ([`path`]) and never normalised: a path that another server could
//! read as another one is refused. Literal segments win over variables; a variable that the contract calls an integer
//! matches integers only, so that a malformed id is not found instead of reaching the upstream.

pub mod path;

#[cfg(test)]
mod tests;

pub use path::{PathError, UnsafeSegment, encode_segment};

use crate::{Direction, ParameterKind, RouteId};
use foldhash::fast::RandomState;
use http::Method;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

/// Finds routes of one direction. Built once per pack; finding allocates for escaped values only.
#[derive(Debug, Default)]
pub struct Router {
    root: Node,
    /// By route: the kind of each path variable, in order.
    kinds: Vec<Vec<ParameterKind>>,
}

/// All templates with the same beginning.
#[derive(Debug, Default)]
struct Node {
    literals: HashMap<Box<str>, Node, RandomState>,
    variable: Option<Box<Node>>,
    routes: Vec<(Method, RouteId)>,
}

/// What a request line is for.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'p> {
    Route {
        route: RouteId,
        /// The decoded value of each path variable of the route's operation, in order.
        values: Vec<Cow<'p, str>>,
    },
    /// The path exists under these methods, as the `Allow` header wants them: sorted, `HEAD` beside `GET`.
    WrongMethod {
        allow: Vec<Method>,
    },
    NotFound,
    Bad(PathError),
}

/// The state of one search.
struct Search<'s, 'p> {
    method: &'s Method,
    segments: &'s [Cow<'p, str>],
    kinds: &'s [Vec<ParameterKind>],
    /// Places of the segments that variables stand for, on the way to the node at hand.
    variables: Vec<usize>,
    allow: BTreeSet<&'s str>,
    /// A route of this method has the right form, but a value does not fit its variable.
    unfit: bool,
}

impl Router {
    pub fn new(direction: &Direction) -> Router {
        let mut router = Router::default();
        for route in &direction.routes {
            let kinds = route.operation.variables.iter().map(|variable| variable.kind).collect();
            router.add(&route.operation.method, &route.operation.template, kinds, route.id);
        }
        router
    }

    /// `kinds`: of the template's variables, in order. Routes are added in the order of their ids.
    fn add(&mut self, method: &Method, template: &str, kinds: Vec<ParameterKind>, id: RouteId) {
        let segments =
            template.strip_prefix('/').unwrap_or(template).split('/').filter(|segment| !segment.is_empty());
        let node = segments.fold(&mut self.root, |node, segment| match segment.starts_with('{') {
            true => node.variable.get_or_insert_default(),
            false => node.literals.entry(segment.into()).or_default(),
        });
        node.routes.push((method.clone(), id));
        let at = usize::from(id.0);
        self.kinds.resize_with(self.kinds.len().max(at + 1), Vec::new);
        self.kinds[at] = kinds;
    }

    /// The route for a method and a path as it stands in the request line, below the front's prefix and without a query.
    /// `HEAD` finds the route of `GET`.
    pub fn find<'p>(&self, method: &Method, raw_path: &'p str) -> Found<'p> {
        let segments = match path::segments(raw_path) {
            Ok(segments) => segments,
            Err(error) => return Found::Bad(error),
        };
        let mut search = Search {
            method: if method == Method::HEAD { &Method::GET } else { method },
            segments: &segments,
            kinds: &self.kinds,
            variables: Vec::new(),
            allow: BTreeSet::new(),
            unfit: false,
        };
        if let Some(route) = search.descend(&self.root, 0) {
            let variables = search.variables;
            let value = |(at, segment)| variables.contains(&at).then_some(segment);
            return Found::Route {
                route,
                values: segments.into_iter().enumerate().filter_map(value).collect(),
            };
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
        let variable = node.variable.as_deref()?;
        self.variables.push(at);
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
        let kinds = self.kinds.get(usize::from(route.0)).map_or(&[][..], Vec::as_slice);
        let mut values = self.variables.iter().map(|&at| self.segments[at].as_ref());
        kinds.iter().all(|&kind| values.next().is_some_and(|value| fits(kind, value)))
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
