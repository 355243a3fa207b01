//! Paths into the context: parsed by jsonpath-rust, resolved along the types of the contracts, and
//! lowered to plain steps if singular. A path that cannot match is an error at the first word that
//! does not exist.
//!
//! The rules are stricter than RFC 9535. A member that the contract does not declare is an error
//! even if the type is open, because it has no guarantee. `..` is not supported, because it
//! obscures the source of a value.

use super::context::{ContextValue, list, scalar};
use super::faults;
use super::flow::{Flow, Reads};
use super::proof::object_of;
use super::{Findings, RouteEnv};
use crate::contract::{Additional, Enum, Literal, ScalarKind, Type, TypeKind};
use crate::diagnostic::{Sources, Span, suggest};
use crate::mapping::ast::Spanned;
use crate::mapping::language::unquote;
use crate::mapping::references::ResolvedKind;
use jsonpath_rust::parser::errors::JsonPathError;
use jsonpath_rust::parser::model::{JpQuery, Segment, Selector};
use jsonpath_rust::parser::parse_json_path;
use std::sync::Arc;
use switchback_plan::{Key, Location, Path, Segment as Step, SettingKind};

/// Headers that carry cookies. Cookies belong to the origin that set them, and the context does not
/// contain them.
pub(super) const COOKIES: [&str; 2] = ["cookie", "set-cookie"];

/// A resolved path with its type.
#[derive(Clone, Debug)]
pub(super) struct FoundPath {
    pub location: Location,
    pub held: ContextValue,
}

impl FoundPath {
    pub(super) fn is_singular(&self) -> bool {
        matches!(self.location.path, Path::Singular(_))
    }

    /// Returns the steps of a singular path: names, and indexes in brackets.
    pub(super) fn steps(&self) -> Option<Vec<String>> {
        let Path::Singular(steps) = &self.location.path else { return None };
        Some(steps.iter().map(step_text).collect())
    }

    /// Returns the member names of a singular path without indexes.
    pub(super) fn names(&self) -> Option<Vec<&str>> {
        let Path::Singular(steps) = &self.location.path else { return None };
        let names = steps.iter().map(|step| match step {
            Step::Member(key) => Some(key.text.as_ref()),
            Step::Index(_) => None,
        });
        names.collect()
    }
}

/// Locates the words of a path in its source text, from left to right.
pub(super) struct PathWords<'s> {
    sources: &'s Sources,
    text: &'s str,
    whole: Span,
    from: usize,
}

impl<'s> PathWords<'s> {
    pub(super) fn new(sources: &'s Sources, whole: Span) -> PathWords<'s> {
        let text = sources.text(whole.file).get(whole.start as usize..whole.end as usize);
        PathWords { sources, text: text.unwrap_or(""), whole, from: 0 }
    }

    /// Returns `place` if it is in the same file and contains exactly this name, plain or quoted.
    fn find_word(&self, name: &str, place: Span) -> Option<Span> {
        let text = self.sources.text(place.file).get(place.start as usize..place.end as usize)?;
        (place.file == self.whole.file && text.trim_matches(['\'', '"']) == name).then_some(place)
    }

    /// Returns the span of the entire path.
    pub(super) fn whole(&self) -> Span {
        self.whole
    }

    /// Returns the span of the next occurrence of a word, or of the entire path if the word is
    /// written with escapes.
    pub(super) fn next(&mut self, word: &str) -> Span {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let mut from = self.from;
        while let Some(at) = self.text[from..].find(word).map(|at| at + from) {
            let end = at + word.len();
            let before = self.text[..at].chars().next_back();
            let after = self.text[end..].chars().next();
            if !before.is_some_and(is_name) && !after.is_some_and(is_name) {
                self.from = end;
                let start = self.whole.start + at as u32;
                return Span::new(self.whole.file, start, start + word.len() as u32);
            }
            from = end.max(at + 1);
            if !self.text.is_char_boundary(from) || word.is_empty() {
                break;
            }
        }
        self.whole
    }
}

/// Parses a JSONPath query (RFC 9535).
fn parse(text: &str) -> Result<JpQuery, JsonPathError> {
    // Most paths are plain, and parsing them with the whole grammar takes a tenth of the time of
    // compiling a pack.
    plain(text).map_or_else(|| parse_json_path(text), Ok)
}

/// Parses a query of member names without quotes, such as `$.body.name`.
fn plain(text: &str) -> Option<JpQuery> {
    let is_name = |name: &str| {
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        name.starts_with(is_first) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let names = text.strip_prefix("$.")?.split('.');
    let segment = |name: &str| is_name(name).then(|| Segment::Selector(Selector::Name(name.to_owned())));
    Some(JpQuery::new(names.map(segment).collect::<Option<_>>()?))
}

/// Environment for resolving paths at one point of a route.
pub(super) struct PathEnv<'g, 'a> {
    pub env: &'g RouteEnv<'a>,
    pub flow: &'g Flow,
    pub reads: &'g mut Reads,
    pub findings: &'g mut Findings,
}

impl PathEnv<'_, '_> {
    /// Resolves a path. Returns `None` if it reports an error.
    pub(super) fn find(&mut self, text: &str, span: Span) -> Option<FoundPath> {
        let text = &*self.flow.written_out(text);
        let query = match parse(text) {
            Ok(query) => query,
            Err(error) => {
                self.findings.push(faults::path_form(text, span, &error));
                return None;
            }
        };
        let mut words = PathWords::new(self.env.world.sources, span);
        let (held, many) = self.held_from_root(&query.segments, &mut words)?;
        let (path, held) = match many {
            false => {
                let steps: Vec<Step> = query.segments.iter().filter_map(step).collect();
                let texts: Vec<String> = steps.iter().map(step_text).collect();
                if let [_, headers, name] = texts.as_slice()
                    && headers == "headers"
                    && COOKIES.iter().any(|field| name.eq_ignore_ascii_case(field))
                {
                    self.findings.push(faults::cookie_read(name, words.next(name)));
                    return None;
                }
                (Path::Singular(steps), self.flow.narrow(&texts, held, self.env.world.contracts))
            }
            true => (Path::Query(Arc::new(query)), held),
        };
        // A path with several matches yields their list, which may be empty but is never absent.
        let held = if many { ContextValue { ty: list(held.ty, span), absent: false, ..held } } else { held };
        Some(FoundPath { location: Location { text: text.into(), path }, held })
    }

    /// Resolves a path that must be singular.
    pub(super) fn find_one(&mut self, text: &str, span: Span) -> Option<FoundPath> {
        let found = self.find(text, span)?;
        if !found.is_singular() {
            self.findings.push(faults::path_singular(text, span));
            return None;
        }
        Some(found)
    }

    pub(super) fn find_spanned(&mut self, path: &Spanned<String>) -> Option<FoundPath> {
        self.find_one(&path.value, path.span)
    }

    /// Resolves segments from the root of the context, and returns the type and whether they may
    /// select several values.
    pub(super) fn held_from_root(
        &mut self,
        segments: &[Segment],
        words: &mut PathWords<'_>,
    ) -> Option<(ContextValue, bool)> {
        let Some((Segment::Selector(Selector::Name(root)), rest)) = segments.split_first() else {
            self.findings.push(faults::path_root(words.whole, &self.roots()));
            return None;
        };
        let root = unquote(root);
        if root == "config" {
            return self.setting(rest, words).map(|held| (held, false));
        }
        let span = words.next(&root);
        let Some(held) = self.flow.get(&root).cloned() else {
            if self.flow.is_named_value(&root) {
                self.findings.push(faults::computed_value(&root, span));
                return None;
            }
            let later = self.flow.later.iter().find(|(name, _)| *name == root).map(|(_, span)| *span);
            self.findings.push(match later {
                Some(later) => faults::used_before(&root, span, later),
                None => faults::unknown_root(&root, span, &self.roots()),
            });
            // Continue with the most similar name to report errors further along the path.
            let roots = self.roots();
            let meant = suggest(&root, &roots).filter(|_| later.is_none());
            let held = meant.and_then(|meant| self.flow.get(meant).cloned())?;
            return self.walk(held, rest, words);
        };
        let names = rest.iter().map_while(|segment| match segment {
            Segment::Selector(Selector::Name(name)) => Some(unquote(name)),
            _ => None,
        });
        let root_name = root.clone();
        // Track reads with two names below the root at most. Checks for unread fields look no
        // deeper.
        let read = names.take(2).fold(root, |read, name| read + "." + &name);
        // Recorded before the path is resolved, so that an invalid path does not make its step
        // unread as well.
        self.reads.places.insert(read);
        if self.flow.faulty.contains(&root_name) {
            self.reads.faulty += 1;
            let many = rest.iter().any(|segment| step(segment).is_none());
            let ty = Type { nullable: false, ..Type::any(held.ty.span) };
            return Some((ContextValue::present(ty, held.side), many));
        }
        self.walk(held, rest, words)
    }

    fn roots(&self) -> Vec<String> {
        self.flow.names().map(str::to_owned).chain(["config".to_owned()]).collect()
    }

    /// Resolves `$.config.…`: the remaining names form the dotted name of a setting.
    fn setting(&mut self, rest: &[Segment], words: &mut PathWords<'_>) -> Option<ContextValue> {
        words.next("config");
        let mut names = Vec::new();
        for segment in rest {
            let Segment::Selector(Selector::Name(name)) = segment else {
                self.findings.push(faults::setting_path(words.whole));
                return None;
            };
            names.push(unquote(name));
        }
        let name = names.join(".");
        let span = words.next(&name);
        let absent = !self.flow.is_set(&name);
        let setting = self.env.setting(&Spanned { value: name, span }, self.findings)?;
        let mut ty = scalar(
            match setting.kind? {
                SettingKind::Boolean => ScalarKind::Boolean,
                SettingKind::Integer => ScalarKind::Integer,
                SettingKind::String | SettingKind::Date => ScalarKind::String,
            },
            span,
        );
        if let (TypeKind::Scalar(scalar), false) = (&mut ty.kind, setting.values.is_empty()) {
            let values = setting.values.into_iter().map(Literal::String).collect();
            scalar.values = Some(Box::new(Enum { values, open: false }));
        }
        // Settings belong to no side. Scalars have the same meaning on both.
        Some(ContextValue { ty, side: switchback_plan::SideId::OLD, absent: setting.optional && absent })
    }

    /// Resolves segments relative to a known value.
    pub(super) fn walk(
        &mut self,
        mut held: ContextValue,
        segments: &[Segment],
        words: &mut PathWords<'_>,
    ) -> Option<(ContextValue, bool)> {
        let mut many = false;
        for segment in segments {
            match segment {
                Segment::Selector(Selector::Name(name)) => {
                    held = self.member(&held, &unquote(name), words)?;
                }
                Segment::Selector(Selector::Index(index)) => {
                    held = self.items(&held, words)?;
                    // The length of a list is unknown, so an element by index may be absent.
                    held.absent = true;
                    words.next(&index.to_string());
                }
                Segment::Selector(Selector::Wildcard | Selector::Slice(..)) => {
                    held = self.items(&held, words)?;
                    many = true;
                }
                Segment::Selector(Selector::Filter(filter)) => {
                    held = self.items(&held, words)?;
                    held.absent = false;
                    many = true;
                    self.filter(filter, &held, words)?;
                }
                // Descendants hide the origin of a value, and several selectors have no common
                // type.
                Segment::Selectors(_) | Segment::Descendant(_) => {
                    self.findings.push(faults::path_subset(words.whole));
                    return None;
                }
            }
        }
        Some((held, many))
    }

    /// Resolves a member of a value.
    fn member(&mut self, held: &ContextValue, name: &str, words: &mut PathWords<'_>) -> Option<ContextValue> {
        let span = words.next(name);
        let types = self.env.types(held.side);
        let resolved = types.resolve(&held.ty);
        if matches!(resolved.kind, TypeKind::Any) {
            return Some(ContextValue::any(held.side, held.ty.span));
        }
        let Some(object) = object_of(&held.ty, types) else {
            self.findings.push(faults::no_members(name, span, &held.ty));
            return None;
        };
        let certain = matches!(resolved.kind, TypeKind::Object(_)) && !resolved.nullable;
        let absent = held.absent || !certain;
        if let Some(field) = object.field(name) {
            let absent = absent || !field.required;
            self.env.world.names.references.add(span, ResolvedKind::Field, field.span, || {
                let presence = if absent { "may be absent" } else { "always present" };
                format!("`{}` {name}: `{}`, {presence}", self.env.side_name(held.side), field.ty)
            });
            return Some(ContextValue { ty: field.ty.clone(), side: held.side, absent });
        }
        match &object.additional {
            Additional::Of(ty) => Some(ContextValue { ty: (**ty).clone(), side: held.side, absent: true }),
            Additional::Open if object.fields.is_empty() => Some(ContextValue::any(held.side, held.ty.span)),
            Additional::Open | Additional::Closed => {
                let known = object.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>();
                let made =
                    |name: &str| object.field(name).and_then(|field| words.find_word(name, field.span));
                self.findings.push(faults::unknown_member(name, span, &held.ty, &known, made));
                None
            }
        }
    }

    /// Resolves the elements of a list.
    fn items(&mut self, held: &ContextValue, words: &PathWords<'_>) -> Option<ContextValue> {
        let types = self.env.types(held.side);
        let array = match types.resolve(&held.ty).kind {
            TypeKind::Any => {
                return Some(ContextValue { absent: false, ..ContextValue::any(held.side, held.ty.span) });
            }
            TypeKind::Array(array) => Some(array),
            TypeKind::OneOf(alternatives) => {
                alternatives.iter().find_map(|one| match types.resolve(one).kind {
                    TypeKind::Array(array) => Some(array),
                    _ => None,
                })
            }
            _ => None,
        };
        if array.is_none() {
            self.findings.push(faults::no_items(words.whole, &held.ty));
        }
        Some(ContextValue::present((*array?.items).clone(), held.side))
    }
}

fn step_text(step: &Step) -> String {
    match step {
        Step::Member(key) => key.text.to_string(),
        Step::Index(index) => format!("[{index}]"),
    }
}

/// Converts a singular segment to a step.
pub(super) fn step(segment: &Segment) -> Option<Step> {
    match segment {
        Segment::Selector(Selector::Name(name)) => Some(Step::Member(Key::new(&unquote(name)))),
        Segment::Selector(Selector::Index(index)) => Some(Step::Index(*index)),
        _ => None,
    }
}

/// Returns the singular path with these names.
pub(super) fn location(names: &[&str]) -> Location {
    let steps = names.iter().map(|name| Step::Member(Key::new(name))).collect();
    Location { text: format!("$.{}", names.join(".")).into(), path: Path::Singular(steps) }
}

#[cfg(test)]
mod tests {
    use super::{parse_json_path, plain};

    #[test]
    fn a_plain_path_is_what_the_whole_grammar_makes_of_it() {
        for text in ["$.a", "$.body.first_name", "$._.x9.A", "$.length.value"] {
            assert_eq!(plain(text), parse_json_path(text).ok(), "{text}");
        }
        for text in
            ["$", "$.", "$.a.", "$..a", "$.9", "$.a-b", "$.a b", "$.a[0]", "$.*", "a.b", "$.é", "$.a()"]
        {
            assert_eq!(plain(text), None, "{text}");
        }
    }
}
