//! The router: finds the route of a request by method and path, and extracts the decoded path
//! values.
//!
//! Paths are matched as they are in the request line ([`path`]) and never normalized: a path that
//! another server could interpret differently is rejected. Literal segments take precedence over
//! partly variable segments (`{id}.json`, longest literal text first), and these over variables. A
//! variable of type integer matches integers only, so a malformed id yields "not found" instead of
//! reaching the upstream.

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

/// The router of one direction. It is built once per pack. A lookup copies values only if they are
/// percent-encoded.
#[derive(Debug, Default)]
pub struct Router {
    root: Node,
    /// Path variables of each route, in order.
    variables: Vec<Vec<Slot>>,
    /// Whether a template ends with a slash.
    has_slash_at_end: bool,
    /// Whether a variable may contain slashes.
    has_escaped_slash: bool,
}

/// The values that a path variable accepts.
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

/// A node for all templates with the same leading segments.
#[derive(Debug, Default)]
struct Node {
    literals: HashMap<Box<str>, Node, RandomState>,
    /// Partly variable segments, those with the most literal text first.
    mixed: Vec<(Mixed, Node)>,
    variable: Option<Box<Node>>,
    routes: Vec<(Method, RouteId)>,
}

/// The literal texts of a partly variable segment: before the first variable, between variables,
/// and after the last.
#[derive(Debug, PartialEq, Eq)]
struct Mixed {
    before: Box<str>,
    /// Only the last may be empty.
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

    /// Returns the ranges of the variables' values. Each value ends at the first occurrence of the
    /// text that follows its variable; the last one extends to the suffix. No value is empty.
    fn values(&self, segment: &str) -> Option<Vec<Range<usize>>> {
        let mut at = self.before.len();
        segment.starts_with(&*self.before).then_some(())?;
        let (last, between) = self.after.split_last()?;
        let mut values = Vec::with_capacity(self.after.len());
        for text in between {
            // A value has at least one character, so the search starts after the first.
            let first = at + segment[at..].chars().next()?.len_utf8();
            let end = first + segment[first..].find(&**text)?;
            values.push(at..end);
            at = end + text.len();
        }
        let end = segment.len().checked_sub(last.len())?;
        // The suffix matches at the end, so `end` is a character boundary.
        (end > at && segment.ends_with(&**last)).then(|| values.push(at..end))?;
        Some(values)
    }
}

/// The result of a lookup.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'p> {
    /// A route matches.
    Route {
        /// Index into the routes of the direction.
        route: RouteId,
        /// Decoded values of the operation's path variables, in order.
        values: Vec<Cow<'p, str>>,
    },
    /// The path exists with other methods. They are sorted for the `Allow` header and include
    /// `HEAD` if they include `GET`.
    WrongMethod {
        /// Never empty.
        allow: Vec<Method>,
    },
    /// No route has this path with any method.
    NotFound,
    /// The path is ambiguous: servers interpret one of its escapes or segments differently.
    Bad(PathError),
}

/// The state of one lookup.
struct Search<'s, 'p> {
    method: &'s Method,
    segments: &'s [Cow<'p, str>],
    slots: &'s [Vec<Slot>],
    /// Segment index, and the range within a partly variable segment, of each variable on the path
    /// to the current node.
    variables: Vec<(usize, Option<Range<usize>>)>,
    allow: BTreeSet<&'s str>,
    /// Whether a route of this method matched except for the value of a variable.
    unfit: bool,
}

impl Node {
    fn mixed_child(&mut self, mixed: Mixed) -> &mut Node {
        let at = match self.mixed.iter().position(|(known, _)| *known == mixed) {
            Some(at) => at,
            None => {
                // More literal text is more specific, and tried first.
                let at = self.mixed.partition_point(|(known, _)| known.text_bytes() >= mixed.text_bytes());
                self.mixed.insert(at, (mixed, Node::default()));
                at
            }
        };
        &mut self.mixed[at].1
    }
}

impl Router {
    /// Builds the router for all routes of a direction. If several templates match a path, the one
    /// with a literal further left applies.
    pub fn new(direction: &Direction) -> Router {
        let mut router = Router::default();
        for route in &direction.routes {
            let slot = |variable: &Variable| Slot { kind: variable.kind, takes_slash: variable.takes_slash };
            let slots = route.operation.variables.iter().map(slot).collect();
            router.add(&route.operation.method, &route.operation.template, slots, route.id);
        }
        router
    }

    /// Adds a route. `slots` are the variables of the template, in order. Routes are added in the
    /// order of their ids.
    fn add(&mut self, method: &Method, template: &str, slots: Vec<Slot>, id: RouteId) {
        let template = template.strip_prefix('/').unwrap_or(template);
        self.has_slash_at_end |= template.ends_with('/');
        self.has_escaped_slash |= slots.iter().any(|slot| slot.takes_slash);
        // `/` has no segments, but `split` yields one.
        let segments = template.split('/').filter(|_| !template.is_empty());
        let node = segments.fold(&mut self.root, |node, segment| match segment.find('{') {
            None => node.literals.entry(segment.into()).or_default(),
            Some(0) if segment.find('}') == Some(segment.len() - 1) => node.variable.get_or_insert_default(),
            Some(_) => node.mixed_child(Mixed::parse(segment)),
        });
        node.routes.push((method.clone(), id));
        let at = usize::from(id.0);
        self.variables.resize_with(self.variables.len().max(at + 1), Vec::new);
        self.variables[at] = slots;
    }

    /// Finds the route for a method and a path from the request line, without the front's prefix
    /// and without a query. `HEAD` finds the route of `GET` if it has none of its own.
    pub fn find<'p>(&self, method: &Method, raw_path: &'p str) -> Found<'p> {
        let allowed = Allowed { slash_at_end: self.has_slash_at_end, escaped_slash: self.has_escaped_slash };
        let segments = match path::segments_with(raw_path, allowed) {
            Ok(segments) => segments,
            Err(error) => return Found::Bad(error),
        };
        let mut search = Search {
            method,
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
                // A segment with several variables is used several times, so its values are slices.
                Some(range) => match segments[at].as_ref()? {
                    Cow::Borrowed(text) => Some(Cow::Borrowed(&text[range])),
                    Cow::Owned(text) => Some(Cow::Owned(text[range].to_owned())),
                },
            });
            return Found::Route { route, values: values.collect() };
        }
        // An escaped slash is allowed only in a variable that accepts slashes, and no such variable
        // matched.
        if segments.iter().any(|segment| segment.contains('/')) {
            return Found::Bad(PathError::HiddenSeparator);
        }
        // A wrong value is reported as "not found" even if other methods match.
        if search.unfit || search.allow.is_empty() {
            return Found::NotFound;
        }
        let allow = search.allow.iter().filter_map(|method| method.parse().ok());
        Found::WrongMethod { allow: allow.collect() }
    }
}

impl<'s> Search<'s, '_> {
    /// Searches below a node, literals first, and leaves the ranges of the variables in
    /// `self.variables`. The recursion depth is limited by the templates of the contract, not by
    /// the request.
    fn descend(&mut self, node: &'s Node, at: usize) -> Option<RouteId> {
        let Some(segment) = self.segments.get(at) else {
            return self.match_here(node);
        };
        if let Some(literal) = node.literals.get(segment.as_ref())
            && let Some(route) = self.descend(literal, at + 1)
        {
            return Some(route);
        }
        // Backtrack if the remaining path does not match below the literal.
        for (mixed, inner) in &node.mixed {
            let Some(values) = mixed.values(segment) else { continue };
            let before = self.variables.len();
            self.variables.extend(values.into_iter().map(|range| (at, Some(range))));
            if let Some(route) = self.descend(inner, at + 1) {
                return Some(route);
            }
            self.variables.truncate(before);
        }
        // A variable does not match an empty segment.
        let variable = node.variable.as_deref().filter(|_| !segment.is_empty())?;
        self.variables.push((at, None));
        let found = self.descend(variable, at + 1);
        if found.is_none() {
            self.variables.pop();
        }
        found
    }

    fn match_here(&mut self, node: &'s Node) -> Option<RouteId> {
        // `HEAD` is `GET` without content (RFC 9110, section 9.3.2).
        let other = if *self.method == Method::HEAD { &Method::GET } else { self.method };
        for wanted in [self.method, other] {
            let own = node.routes.iter().find(|(method, route)| method == wanted && self.fits(*route));
            if let Some((_, route)) = own {
                return Some(*route);
            }
        }
        // Only now, since most requests find their route.
        for (method, route) in &node.routes {
            self.unfit |= method == self.method || method == other;
            if self.fits(*route) {
                self.allow.insert(method.as_str());
                // `HEAD` is available wherever `GET` is.
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

/// Returns whether the text of a parameter is a value of this kind in JSON notation.
pub fn fits(kind: ParameterKind, value: &str) -> bool {
    let number = || switchback_json::text::check_number(value.as_bytes()).is_ok();
    match kind {
        ParameterKind::String => true,
        ParameterKind::Boolean => matches!(value, "true" | "false"),
        ParameterKind::Number => number(),
        ParameterKind::Integer => number() && !value.contains(['.', 'e', 'E']),
    }
}
