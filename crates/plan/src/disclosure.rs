//! Disclosure rules: how much of a message may be shown, from the contract and from the pack's
//! declarations (`compare.types`: `secret`, `harmless`). They mask every stored copy of a message:
//! samples of the dual run, recordings, planned calls, paths in logs. The module `redact`
//! implements the masks.
//!
//! Without a declaration, a text may be personal. It is shown only if the contract enumerates it.
//! The same applies to values that no contract declares.

use super::StatusFrom;
use http::Method;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Index into [`Disclosures::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisclosureId(pub u32);

/// The disclosure rule of one value of a contract. The rules form a graph, because types may be
/// recursive.
#[derive(Clone, Debug, Default)]
pub struct Disclosure {
    /// Declared `secret`: no part of the value is shown.
    pub is_secret: bool,
    /// Declared `harmless`: the texts in the value are shown.
    pub is_harmless: bool,
    /// The value is a number or a boolean, or its text form in a path or query.
    pub is_number: bool,
    /// Texts that the contract enumerates.
    pub listed: Vec<Arc<str>>,
    /// Declared members.
    pub members: BTreeMap<Arc<str>, DisclosureId>,
    /// Rule for undeclared members with names that are data.
    pub others: Option<DisclosureId>,
    /// Rule for the elements of a list.
    pub element: Option<DisclosureId>,
    /// Whether undeclared member names are data: in a map, or in an object whose members are not
    /// shown.
    pub has_data_names: bool,
}

/// The disclosure rules for all messages of one side.
#[derive(Clone, Debug, Default)]
pub struct Disclosures {
    /// All rules; [`DisclosureId`] is an index into them.
    pub values: Vec<Disclosure>,
    /// In the order of the contract.
    pub operations: Vec<OperationDisclosure>,
}

/// The disclosure rules for the messages of one operation.
#[derive(Clone, Debug)]
pub struct OperationDisclosure {
    /// The operation as in the contract, such as `GET /things/{id}`.
    pub key: Arc<str>,
    /// The method of its requests.
    pub method: Method,
    /// Its path template, segment by segment.
    pub path: Vec<SegmentDisclosure>,
    /// Query parameters by name.
    pub query: Vec<(Arc<str>, DisclosureId)>,
    /// Header fields by name in lower case.
    pub headers: Vec<(Arc<str>, DisclosureId)>,
    /// The request body, if the contract declares one.
    pub request: Option<DisclosureId>,
    /// Response bodies by status. `None`: all other statuses.
    pub answers: Vec<(Option<StatusFrom>, DisclosureId)>,
}

/// A segment of a path template.
#[derive(Clone, Debug)]
pub enum SegmentDisclosure {
    /// A fixed segment, which is shown.
    Literal(Arc<str>),
    /// A variable, with the rule for its value.
    Variable(DisclosureId),
}

/// How much of a text may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// Declared secret.
    Secret,
    /// Undeclared, so people may have written it.
    Private,
    /// Declared harmless.
    Harmless,
    /// Enumerated by the contract.
    Listed,
}

/// A place in a message with its disclosure rule.
#[derive(Clone, Copy, Debug)]
pub struct Disclosed<'d> {
    at: Option<(&'d Disclosures, DisclosureId)>,
    /// Declared for the value or for a value that contains it.
    is_secret: bool,
    is_harmless: bool,
    /// Whether the contract does not declare the enclosing value. Member names are then data.
    is_beyond: bool,
}

/// Segments shown of a path that matches no operation.
const SEGMENTS_MAX: usize = 16;
/// Leading segments of an answered path that may name a collection.
const NAMED_MAX: usize = 4;

impl Disclosures {
    /// Returns the operation with this key.
    pub fn operation(&self, key: &str) -> Option<&OperationDisclosure> {
        self.operations.iter().find(|operation| *operation.key == *key)
    }

    /// Returns the operation for a method and a path below the side's base URL. If several match,
    /// the one with most literal segments applies. `HEAD` matches the operations of `GET`.
    pub fn find(&self, method: &str, path: &str) -> Option<&OperationDisclosure> {
        let method = if method == Method::HEAD.as_str() { Method::GET.as_str() } else { method };
        let of_method = self.operations.iter().filter(|operation| operation.method.as_str() == method);
        let fitting = of_method.filter_map(|operation| Some((operation.literals_of(path)?, operation)));
        // `/things/new` must not be reported under the rules of `/things/{id}`, where `new` would be an
        // id.
        fitting.max_by_key(|(literals, _)| *literals).map(|(_, operation)| operation)
    }

    /// Returns whether the segment is a literal segment of an operation.
    pub fn is_literal(&self, segment: &str) -> bool {
        let segments = self.operations.iter().flat_map(|operation| &operation.path);
        segments
            .into_iter()
            .any(|known| matches!(known, SegmentDisclosure::Literal(text) if **text == *segment))
    }

    /// Returns a path that matches no operation, with `*` for each segment that is not a literal of
    /// the contract: such a segment may be a token.
    pub fn outline(&self, path: &str) -> String {
        self.outline_message(path, false)
    }

    /// Returns the outline of a path that the service itself answered. The first and the third
    /// segment usually name collections, and are shown if they are plain words. The segments
    /// between them are ids.
    pub fn outline_of_answered(&self, path: &str) -> String {
        self.outline_message(path, true)
    }

    fn outline_message(&self, path: &str, is_answered: bool) -> String {
        let mut outline = String::new();
        // The path starts with a slash, so the first part is empty.
        let segments = path.split('/').skip(1);
        for (at, segment) in segments.clone().take(SEGMENTS_MAX).enumerate() {
            // Collections and ids alternate, starting with a collection.
            let is_named = is_answered && at % 2 == 0 && at < NAMED_MAX && is_plain_word(segment);
            let is_shown = segment.is_empty() || is_named || self.is_literal(segment);
            outline.push('/');
            outline.push_str(if is_shown { segment } else { "*" });
        }
        // A path without end must not fill the log, but a reader has to see that it was cut.
        if segments.count() > SEGMENTS_MAX {
            outline.push_str("/…");
        }
        outline
    }

    /// Returns the rule for a request body.
    pub fn request(&self, operation: &OperationDisclosure) -> Disclosed<'_> {
        self.value(operation.request)
    }

    /// Returns the rule for a response body with this status.
    pub fn answer(&self, operation: &OperationDisclosure, status: u16) -> Disclosed<'_> {
        // The most specific status applies.
        let rank = |from: &Option<StatusFrom>| match from {
            Some(StatusFrom::Exact(_)) => 0,
            Some(StatusFrom::Class(_)) => 1,
            None => 2,
        };
        let fits = |from: &Option<StatusFrom>| from.is_none_or(|from| from.matches(status));
        let fitting = operation.answers.iter().filter(|(from, _)| fits(from));
        self.value(fitting.min_by_key(|(from, _)| rank(from)).map(|(_, id)| *id))
    }

    /// Returns the rule for a query parameter, or [`Disclosed::UNKNOWN`] if the operation has none
    /// by this name.
    pub fn parameter(&self, operation: &OperationDisclosure, name: &str) -> Disclosed<'_> {
        self.by_name(&operation.query, name)
    }

    /// Returns whether the operation has a query parameter by this name. Without an operation,
    /// those of all operations count.
    pub fn is_parameter(&self, operation: Option<&OperationDisclosure>, name: &str) -> bool {
        let has = |operation: &OperationDisclosure| operation.query.iter().any(|(known, _)| **known == *name);
        operation.map_or_else(|| self.operations.iter().any(has), has)
    }

    /// Returns the rule for a request header field, by its name in lower case.
    pub fn header(&self, operation: &OperationDisclosure, name: &str) -> Disclosed<'_> {
        self.by_name(&operation.headers, name)
    }

    fn by_name(&self, known: &[(Arc<str>, DisclosureId)], name: &str) -> Disclosed<'_> {
        self.value(known.iter().find(|(known, _)| **known == *name).map(|(_, id)| *id))
    }

    /// Returns the place with this rule.
    pub fn value(&self, id: Option<DisclosureId>) -> Disclosed<'_> {
        Disclosed::UNKNOWN.below(id.map(|id| (self, id)))
    }
}

impl OperationDisclosure {
    /// Returns the number of literal segments if the path matches this operation.
    fn literals_of(&self, path: &str) -> Option<usize> {
        let mut segments = path.split('/').skip(1).filter(|segment| !segment.is_empty());
        let mut literals = 0;
        for known in &self.path {
            let segment = segments.next()?;
            match known {
                SegmentDisclosure::Literal(text) if **text == *segment => literals += 1,
                SegmentDisclosure::Literal(_) => return None,
                SegmentDisclosure::Variable(_) => {}
            }
        }
        segments.next().is_none().then_some(literals)
    }
}

impl<'d> Disclosed<'d> {
    /// A place without a contract. Member names are shown, because a comparison without a contract
    /// has only these to report.
    pub const UNKNOWN: Disclosed<'static> =
        Disclosed { at: None, is_secret: false, is_harmless: false, is_beyond: false };

    /// A message that belongs to no operation. Its member names are data too.
    pub const BEYOND: Disclosed<'static> = Disclosed { is_beyond: true, ..Disclosed::UNKNOWN };

    fn below(self, at: Option<(&'d Disclosures, DisclosureId)>) -> Disclosed<'d> {
        let known = at.map(|(of, id)| &of.values[id.0 as usize]);
        Disclosed {
            at,
            // `secret` and `harmless` apply to all nested values.
            is_secret: self.is_secret || known.is_some_and(|known| known.is_secret),
            is_harmless: self.is_harmless || known.is_some_and(|known| known.is_harmless),
            // The contract declares the parent, but not this value.
            is_beyond: self.is_beyond || (self.at.is_some() && at.is_none()),
        }
    }

    fn as_declared(self) -> Option<&'d Disclosure> {
        self.at.map(|(of, id)| &of.values[id.0 as usize])
    }

    /// Returns the place of the member with this name.
    #[must_use]
    pub fn member(self, name: &str) -> Disclosed<'d> {
        let id = self.as_declared().and_then(|known| known.members.get(name).copied().or(known.others));
        self.below(self.at.zip(id).map(|((of, _), id)| (of, id)))
    }

    /// Returns the place of any element.
    #[must_use]
    pub fn element(self) -> Disclosed<'d> {
        let id = self.as_declared().and_then(|known| known.element);
        self.below(self.at.zip(id).map(|((of, _), id)| (of, id)))
    }

    /// Returns whether the member name is data, rather than declared by the contract.
    pub fn is_data_name(self, name: &str) -> bool {
        let is_declared = self.as_declared().is_some_and(|known| known.members.contains_key(name));
        let has_data_names = self.is_beyond || self.as_declared().is_some_and(|known| known.has_data_names);
        // In a map with free keys, a name may be a person's id or e-mail address, so it is masked like a
        // value.
        !is_declared && !self.is_harmless && has_data_names
    }

    /// Returns whether no part of the value may be shown.
    pub fn is_secret(self) -> bool {
        self.is_secret
    }

    /// Returns whether the contract declares the value as a number or a boolean.
    pub fn is_number(self) -> bool {
        self.as_declared().is_some_and(|known| known.is_number)
    }

    /// Returns how much of a text at this place may be shown.
    pub fn text(self, text: &str) -> Exposure {
        // `secret` takes precedence. An enumerated text is public by contract.
        match self.as_declared() {
            _ if self.is_secret => Exposure::Secret,
            Some(known) if known.listed.iter().any(|listed| **listed == *text) => Exposure::Listed,
            _ if self.is_harmless => Exposure::Harmless,
            _ => Exposure::Private,
        }
    }
}

/// Maximum length of an undeclared segment that may be shown.
const WORD_BYTES_MAX: usize = 24;

/// Returns whether a segment consists of at most [`WORD_BYTES_MAX`] lower-case ASCII letters, as
/// most names of collections do. Other segments may be tokens.
fn is_plain_word(segment: &str) -> bool {
    segment.len() <= WORD_BYTES_MAX && segment.bytes().all(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `GET /things/{id}`, `GET /things/new`, and a thing: `{id, note: secret, tags: {…}, parts: [thing]}`.
    fn disclosures() -> Disclosures {
        let id = DisclosureId;
        let plain = Disclosure::default();
        let thing = Disclosure {
            members: [("id", 1), ("note", 2), ("tags", 3), ("parts", 5)]
                .into_iter()
                .map(|(name, at)| (name.into(), id(at)))
                .collect(),
            ..plain.clone()
        };
        let number = Disclosure { is_number: true, ..plain.clone() };
        let secret = Disclosure { is_secret: true, ..plain.clone() };
        let map = Disclosure { others: Some(id(4)), has_data_names: true, ..plain.clone() };
        let word = Disclosure { listed: vec!["red".into()], ..plain.clone() };
        let list = Disclosure { element: Some(id(0)), ..plain };
        let operation = |key: &str, path: Vec<SegmentDisclosure>| OperationDisclosure {
            key: key.into(),
            method: Method::GET,
            path,
            query: vec![("page".into(), id(1))],
            headers: Vec::new(),
            request: None,
            answers: vec![
                (None, id(2)),
                (Some(StatusFrom::Class(2)), id(0)),
                (Some(StatusFrom::Exact(202)), id(1)),
            ],
        };
        let things = || SegmentDisclosure::Literal("things".into());
        Disclosures {
            values: vec![thing, number, secret, map, word, list],
            operations: vec![
                operation("GET /things/{id}", vec![things(), SegmentDisclosure::Variable(id(1))]),
                operation("GET /things/new", vec![things(), SegmentDisclosure::Literal("new".into())]),
            ],
        }
    }

    #[test]
    fn the_operation_with_most_literals_is_found() {
        let disclosures = disclosures();
        let found =
            |method: &str, path: &str| disclosures.find(method, path).map(|found| found.key.to_string());
        assert_eq!(found("GET", "/things/7").as_deref(), Some("GET /things/{id}"));
        assert_eq!(found("HEAD", "/things/new").as_deref(), Some("GET /things/new"));
        assert_eq!(found("PUT", "/things/7"), None);
        assert_eq!((found("GET", "/things"), found("GET", "/things/7/x")), (None, None));
    }

    #[test]
    fn what_is_declared_of_a_value_holds_for_all_that_is_in_it_however_deep() {
        let disclosures = disclosures();
        let thing = disclosures.answer(&disclosures.operations[0], 200);
        let deep = thing.member("parts").element().member("parts").element();
        for thing in [thing, deep] {
            assert_eq!(thing.member("note").member("a").element().text("x"), Exposure::Secret);
            assert_eq!(thing.member("tags").member("x").text("red"), Exposure::Listed);
            assert_eq!(thing.member("tags").member("x").text("blue"), Exposure::Private);
            assert!(thing.member("tags").is_data_name("x") && !thing.is_data_name("unheard_of"));
            assert_eq!(thing.member("unheard_of").text("x"), Exposure::Private);
            assert!(thing.member("id").is_number());
            assert!(
                thing.member("unheard_of").is_data_name("x"),
                "names in what nobody knows may be anything"
            );
        }
    }

    #[test]
    fn the_nearest_status_says_what_an_answer_is() {
        let disclosures = disclosures();
        let operation = &disclosures.operations[0];
        assert!(disclosures.answer(operation, 202).is_number());
        assert!(!disclosures.answer(operation, 201).is_secret());
        assert!(disclosures.answer(operation, 404).is_secret());
    }

    #[test]
    fn a_path_that_nobody_knows_shows_only_words_of_the_contract() {
        let disclosures = disclosures();
        for (path, shown) in [
            ("/things/t0ken/new", "/things/*/new"),
            ("/t0ken", "/*"),
            ("/", "/"),
            ("//things/", "//things/"),
            ("/%74hings", "/*"),
        ] {
            assert_eq!(disclosures.outline(path), shown);
        }
        assert!(disclosures.outline(&"/x".repeat(1000)).len() < 64);
        for (path, shown) in [
            ("/reports/daily", "/reports/*"),
            ("/webhooks/t0ken/new", "/webhooks/*/new"),
            ("/web-hooks/t0ken/new", "/*/*/new"),
            ("/t0ken", "/*"),
            ("/Secret", "/*"),
            ("/correct-horse-battery-staple", "/*"),
        ] {
            assert_eq!(disclosures.outline_of_answered(path), shown);
        }
    }
}
