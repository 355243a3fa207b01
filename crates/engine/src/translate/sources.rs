//! Traces each part of a translated body to its place in the source and its line of the mapping.
//! For explanations only, not on the data path: the walk tests every part by translating it.
//!
//! There are two walks, one parallel to [`document()`](super::document()) and one over the values
//! of a `serve` route. Both report which line may have written a part; the body shows which parts
//! exist.

use super::document::{Env, part};
use super::value::Scope;
use switchback_json::raw::{self, Kind};
use switchback_json::{Limits, Value};
use switchback_plan::{Absent, Close, CloseFrom, Expr, MemberAction, ObjectOp, Origin, Others, ValueOp};

/// The way in which a part was produced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Copied unchanged, with all its children.
    Kept,
    /// Converted.
    Converted,
    /// A constant of the mapping.
    Constant,
    /// A default of the mapping, because the source had no value.
    Default,
    /// A setting of the operator.
    Setting,
    /// A text of the pack in the client's language.
    Text,
    /// Composed of several places.
    Composed,
}

impl How {
    /// Returns the word in reports and answers.
    pub fn word(self) -> &'static str {
        match self {
            How::Kept => "kept",
            How::Converted => "converted",
            How::Constant => "constant",
            How::Default => "default",
            How::Setting => "setting",
            How::Text => "text",
            How::Composed => "composed",
        }
    }
}

/// The source of a part of a translated body. If several sources apply to a part, the longest place
/// wins; of equal places, the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Place in the output, such as `$.items[0].id`.
    pub to: String,
    /// Places in the input; empty for a value of the mapping.
    pub from: Vec<String>,
    /// How the part was produced.
    pub how: How,
    /// The responsible line; `None` if it is the line of the route.
    pub origin: Option<Origin>,
}

/// Maximum depth, equal to the depth limit of parsed bodies.
const DEPTH_MAX: usize = 128;

/// Returns the sources of an operation's output. `from` and `to` are the places of input and
/// output.
pub fn of_body(op: &ValueOp, input: &[u8], env: &Env<'_>, from: &str, to: &str) -> Vec<Source> {
    let mut walk = Walk { env, supplied: &[], settings: &[], found: Vec::new() };
    let Ok(body) = Value::parse(input, &Limits::DOCUMENT) else { return Vec::new() };
    walk.value(op, &body, from, to, None, 0);
    walk.found
}

struct Walk<'a> {
    env: &'a Env<'a>,
    /// Places that each [`CloseFrom::Supplied`] value was composed of.
    supplied: &'a [Vec<String>],
    /// Name of each [`CloseFrom::Setting`].
    settings: &'a [String],
    found: Vec<Source>,
}

impl Walk<'_> {
    fn push(&mut self, to: &str, from: Vec<String>, how: How, origin: Option<&Origin>) {
        self.found.push(Source { to: to.to_owned(), from, how, origin: origin.cloned() });
    }

    /// Returns whether an operation accepts a value.
    fn is_taken(&self, op: &ValueOp, value: &Value) -> bool {
        part(op, &value.to_vec(), self.env, &Limits::DOCUMENT, &mut Vec::new()).is_ok()
    }

    /// Returns whether an operation produces output for a value.
    fn yields(&self, op: &ValueOp, value: &Value) -> bool {
        part(op, &value.to_vec(), self.env, &Limits::DOCUMENT, &mut Vec::new()).unwrap_or(false)
    }

    fn value(
        &mut self,
        op: &ValueOp,
        value: &Value,
        from: &str,
        to: &str,
        origin: Option<&Origin>,
        depth: usize,
    ) {
        if depth > DEPTH_MAX {
            return;
        }
        let one = || vec![from.to_owned()];
        match op {
            ValueOp::Keep => self.push(to, one(), How::Kept, origin),
            ValueOp::Object(_) | ValueOp::Array(_) | ValueOp::Choose(_) | ValueOp::Unwrap(_)
                if value.is_null() =>
            {
                self.push(to, one(), How::Kept, origin);
            }
            ValueOp::Object(op) => self.object(op, value, from, to, origin, depth),
            ValueOp::Array(op) => {
                self.push(to, one(), How::Kept, origin);
                // Omitted elements shift the indices of the following ones.
                let mut written = 0;
                for (at, element) in value.as_array().into_iter().flatten().enumerate() {
                    if self.yields(op, element) {
                        let (from, to) = (format!("{from}[{at}]"), format!("{to}[{written}]"));
                        self.value(op, element, &from, &to, origin, depth + 1);
                        written += 1;
                    }
                }
            }
            ValueOp::Wrap(op) => self.value(op, value, from, &format!("{to}[0]"), origin, depth + 1),
            ValueOp::Unwrap(op) => {
                if let Some(element) = value.as_array().and_then(|all| all.iter().next()) {
                    self.value(op, element, &format!("{from}[0]"), to, origin, depth + 1);
                }
            }
            ValueOp::Constant(_) => self.push(to, Vec::new(), How::Constant, origin),
            ValueOp::Choose(choice) => {
                if let Some(arm) = super::document::arm(choice, &value.to_vec()) {
                    let origin = origin.unwrap_or(&choice.origin).clone();
                    self.value(arm, value, from, to, Some(&origin), depth + 1);
                }
            }
            ValueOp::Attempt(attempt) if self.is_taken(&attempt.op, value) => {
                self.value(&attempt.op, value, from, to, origin, depth + 1);
            }
            ValueOp::Attempt(attempt) => self.push(to, Vec::new(), How::Constant, Some(&attempt.origin)),
            ValueOp::Again(again) => self.value(&again.op(), value, from, to, origin, depth + 1),
            _ => self.push(to, one(), How::Converted, origin),
        }
    }

    fn object(
        &mut self,
        op: &ObjectOp,
        value: &Value,
        from: &str,
        to: &str,
        origin: Option<&Origin>,
        depth: usize,
    ) {
        self.push(to, vec![from.to_owned()], How::Composed, origin);
        let Some(members) = value.as_object() else { return };
        let mut written = vec![false; op.members.len()];
        for (name, value) in members.iter() {
            let name = name.decode();
            let from = member_place(from, &name);
            let Some((at, member)) = op.member(&name) else {
                match &op.others {
                    Others::Keep => self.push(&member_place(to, &name), vec![from], How::Kept, origin),
                    Others::Each(inner) => {
                        self.value(inner, value, &from, &member_place(to, &name), origin, depth + 1);
                    }
                    _ => {}
                }
                continue;
            };
            if let MemberAction::Emit(emit) = &member.action
                && self.yields(&emit.op, value)
            {
                written[at] = true;
                let to = member_place(to, &emit.name.text);
                self.value(&emit.op, value, &from, &to, Some(&member.origin), depth + 1);
            }
        }
        self.closing(op, &op.close, value, from, to, &written, depth);
    }

    #[expect(clippy::too_many_arguments, reason = "what is known of an object when it closes")]
    fn closing(
        &mut self,
        op: &ObjectOp,
        items: &[Close],
        value: &Value,
        from: &str,
        to: &str,
        written: &[bool],
        depth: usize,
    ) {
        for close in items {
            let (to, origin) = (member_place(to, &close.name.text), Some(&close.origin));
            match &close.from {
                CloseFrom::Object(items) => {
                    self.push(&to, Vec::new(), How::Composed, origin);
                    self.closing(op, items, value, from, &to, written, depth);
                }
                CloseFrom::Constant(_) => self.push(&to, Vec::new(), How::Constant, origin),
                CloseFrom::Default { unless_written, .. } => {
                    if written.get(usize::from(*unless_written)) != Some(&true) {
                        self.push(&to, Vec::new(), How::Default, origin);
                    }
                }
                CloseFrom::Captured { alternatives, absent } => {
                    let mut is_found = false;
                    for place in alternatives {
                        let Some(member) = op.members.iter().find(|one| one.capture == Some(place.slot))
                        else {
                            continue;
                        };
                        let mut at = member_place(from, &member.name.text);
                        let mut there = value.get(&member.name.text);
                        for key in &place.path {
                            at = member_place(&at, &key.text);
                            there = there.and_then(|value| value.get(&key.text));
                        }
                        let Some(there) = there else { continue };
                        let kind = raw::kind(&there.to_vec());
                        let is_wanted =
                            kind.is_some_and(|kind: Kind| place.only.is_none_or(|only| only.contains(kind)));
                        if is_wanted && self.yields(&place.op, there) {
                            self.value(&place.op, there, &at, &to, origin, depth + 1);
                            is_found = true;
                            break;
                        }
                    }
                    if !is_found && matches!(absent, Absent::Value(_)) {
                        self.push(&to, Vec::new(), How::Default, origin);
                    }
                }
                CloseFrom::Supplied(at) => {
                    let from = self.supplied.get(usize::from(*at)).cloned().unwrap_or_default();
                    let how = if from.is_empty() { How::Constant } else { How::Composed };
                    self.push(&to, from, how, origin);
                }
                CloseFrom::Setting(at) => {
                    let name = self.settings.get(usize::from(*at));
                    let from = name.map(|name| format!("$.config.{name}")).into_iter().collect();
                    self.push(&to, from, How::Setting, origin);
                }
                #[allow(
                    unreachable_patterns,
                    reason = "what the plan may come to know is of the object as a whole"
                )]
                _ => self.push(&to, vec![from.to_owned()], How::Composed, origin),
            }
        }
    }
}

impl Scope<'_> {
    /// Returns the sources of a value in a call or an answer; `to` is its place. Places in the
    /// context have the notation of the mapping.
    pub(super) fn sources(&self, expr: &Expr, to: &str) -> Vec<Source> {
        let mut found = Vec::new();
        self.sources_of(expr, to, &mut found);
        found
    }

    fn sources_of(&self, expr: &Expr, to: &str, found: &mut Vec<Source>) {
        let mut push = |from: Vec<String>, how| {
            found.push(Source { to: to.to_owned(), from, how, origin: None });
        };
        match expr {
            Expr::Constant(_) => push(Vec::new(), How::Constant),
            Expr::At(location) => push(vec![location.text.to_string()], How::Kept),
            Expr::Convert { from, .. } | Expr::Apply { from, .. } => push(self.places(from), How::Converted),
            Expr::Text { with, .. } => {
                push(with.iter().flat_map(|(_, expr)| self.places(expr)).collect(), How::Text);
            }
            Expr::Object(members) => {
                push(Vec::new(), How::Composed);
                for (key, expr) in members {
                    self.sources_of(expr, &member_place(to, &key.text), found);
                }
            }
            Expr::Array(values) => {
                push(Vec::new(), How::Composed);
                // Absent elements are omitted, which shifts the indices of the following ones.
                for (at, expr) in values.iter().filter(|expr| self.is_there(expr)).enumerate() {
                    self.sources_of(expr, &format!("{to}[{at}]"), found);
                }
            }
            Expr::Present(values) => {
                push(Vec::new(), How::Composed);
                for (at, expr) in values.iter().filter(|expr| self.is_something(expr)).enumerate() {
                    self.sources_of(expr, &format!("{to}[{at}]"), found);
                }
            }
            Expr::FirstOf(values) => {
                let chosen = values.iter().find(|expr| self.is_something(expr)).or(values.last());
                if let Some(chosen) = chosen {
                    self.sources_of(chosen, to, found);
                }
            }
            Expr::If { predicate, then, otherwise } => {
                let taken = if self.context.holds(predicate) { Some(then) } else { otherwise.as_ref() };
                if let Some(taken) = taken {
                    self.sources_of(taken, to, found);
                }
            }
            Expr::Shape { op, from, with, over, .. } => {
                if let Some(overlay) = over {
                    // Members that the shape does not write keep the value of the base.
                    push(self.places(&overlay.base), How::Kept);
                    if let Some(base) = self.places(&overlay.base).first() {
                        for key in &overlay.fields {
                            let (to, from) = (member_place(to, &key.text), member_place(base, &key.text));
                            found.push(Source { to, from: vec![from], how: How::Kept, origin: None });
                        }
                    }
                }
                self.shape_sources(op, from, with, to, found);
            }
            other => push(self.places(other), How::Composed),
        }
    }

    fn shape_sources(&self, op: &ValueOp, from: &Expr, with: &[Expr], to: &str, found: &mut Vec<Source>) {
        let supplied: Vec<Vec<String>> = with.iter().map(|expr| self.places(expr)).collect();
        let values: Vec<Option<Vec<u8>>> =
            with.iter().map(|expr| self.value(expr).ok().flatten().map(|value| value.to_vec())).collect();
        let settings: Vec<String> = self.pack.settings.iter().map(|setting| setting.name.clone()).collect();
        let env = Env { settings: self.settings, supplied: &values };
        let mut walk = Walk { env: &env, supplied: &supplied, settings: &settings, found: Vec::new() };
        let source = self.value(from).ok().flatten();
        let place = self.places(from).into_iter().next().unwrap_or_else(|| "$".to_owned());
        if let Some(source) = source {
            walk.value(op, &source, &place, to, None, 0);
        }
        found.append(&mut walk.found);
    }

    fn is_there(&self, expr: &Expr) -> bool {
        self.value(expr).is_ok_and(|value| value.is_some())
    }

    fn is_something(&self, expr: &Expr) -> bool {
        self.value(expr).is_ok_and(|value| value.is_some_and(|value| !value.is_null()))
    }

    /// Returns all places in the context that a value is composed of, in the notation of the
    /// mapping.
    fn places(&self, expr: &Expr) -> Vec<String> {
        let mut places = Vec::new();
        self.places_in(expr, &mut places);
        places.dedup();
        places
    }

    fn places_in(&self, expr: &Expr, places: &mut Vec<String>) {
        match expr {
            Expr::At(location) => places.push(location.text.to_string()),
            Expr::Convert { from, .. } | Expr::Apply { from, .. } => self.places_in(from, places),
            Expr::Object(members) => members.iter().for_each(|(_, expr)| self.places_in(expr, places)),
            Expr::Array(values) | Expr::Present(values) => {
                values.iter().for_each(|expr| self.places_in(expr, places));
            }
            Expr::FirstOf(values) => {
                let chosen = values.iter().find(|expr| self.is_something(expr)).or(values.last());
                chosen.into_iter().for_each(|expr| self.places_in(expr, places));
            }
            Expr::Text { with, .. } => with.iter().for_each(|(_, expr)| self.places_in(expr, places)),
            Expr::Shape { from, with, over, .. } => {
                self.places_in(from, places);
                with.iter().for_each(|expr| self.places_in(expr, places));
                over.iter().for_each(|overlay| self.places_in(&overlay.base, places));
            }
            Expr::Each { list, .. } => self.places_in(list, places),
            Expr::If { predicate, then, otherwise } => {
                let taken = if self.context.holds(predicate) { Some(then) } else { otherwise.as_ref() };
                taken.into_iter().for_each(|expr| self.places_in(expr, places));
            }
            Expr::Lines { plain, numbered } => {
                plain.iter().chain(numbered).for_each(|expr| self.places_in(expr, places));
            }
            #[allow(unreachable_patterns, reason = "what the plan may come to know says no place of its own")]
            _ => {}
        }
    }
}

/// Returns the place of a member: identifiers after a dot, other names in brackets.
pub fn member_place(place: &str, name: &str) -> String {
    let is_plain = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.as_bytes()[0].is_ascii_digit();
    if is_plain { format!("{place}.{name}") } else { format!("{place}['{}']", name.replace('\'', "\\'")) }
}

/// Returns the source of each scalar and each empty container of a translated body.
pub fn leaves(body: &Value, sources: &[Source]) -> Vec<Source> {
    let mut found = Vec::new();
    leaf(body, "$", sources, &mut found);
    found
}

fn leaf(value: &Value, place: &str, sources: &[Source], found: &mut Vec<Source>) {
    match value {
        Value::Object(members) if members.iter().next().is_some() => {
            for (name, value) in members.iter() {
                leaf(value, &member_place(place, &name.decode()), sources, found);
            }
        }
        Value::Array(values) if values.iter().next().is_some() => {
            for (at, value) in values.iter().enumerate() {
                leaf(value, &format!("{place}[{at}]"), sources, found);
            }
        }
        _ => found.extend(source_of(place, sources)),
    }
}

/// Returns the source of the part at a place.
pub fn source_of(place: &str, sources: &[Source]) -> Option<Source> {
    let holds = |source: &&Source| {
        place.strip_prefix(&*source.to).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let found = sources.iter().filter(holds).max_by_key(|source| source.to.len())?;
    let rest = &place[found.to.len()..];
    // A child of a copied value has the same relative place in the source.
    let below = |from: &String| format!("{from}{rest}");
    let from = match found.how {
        How::Kept => found.from.iter().map(below).collect(),
        _ => found.from.clone(),
    };
    Some(Source { to: place.to_owned(), from, how: found.how, origin: found.origin.clone() })
}

/// The sources of one output of a run.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The number of the call, starting at 0, or `None` for the answer.
    pub call: Option<u32>,
    /// The mapping's name for the call's result.
    pub step: Option<String>,
    /// Sources of all values, in the order of the body.
    pub sources: Vec<Source>,
    /// The line of the step or outcome.
    pub origin: Option<Origin>,
}
