//! What may be shown of messages of either side, by their contract and by what the pack declares of its types
//! (`compare.types`: `secret`, `harmless`). Whatever is kept of a message is masked by this: samples of the dual run,
//! recordings, planned calls, paths in logs. How a value is masked is the business of `redact`.
//!
//! The rule that holds where nothing is declared: a text may hold what people write, so it is shown only where the contract
//! lists it; what no contract names is such a text as well.

use super::StatusFrom;
use http::Method;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Index into [`Disclosures::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisclosureId(pub u32);

/// What may be shown of one value of a contract. A graph and no tree: types may contain themselves.
#[derive(Clone, Debug, Default)]
pub struct Disclosure {
    /// Declared: of the value and of all that is in it, nothing is shown.
    pub is_secret: bool,
    /// Declared: the texts in it are shown.
    pub is_harmless: bool,
    /// A number or a boolean, also where it is written as a text: in paths and queries.
    pub is_number: bool,
    /// Texts that the contract lists.
    pub listed: Vec<Arc<str>>,
    /// Declared members.
    pub members: BTreeMap<Arc<str>, DisclosureId>,
    /// Members with names that are data, where they have a type.
    pub others: Option<DisclosureId>,
    /// Of lists, what may be shown of each element.
    pub element: Option<DisclosureId>,
    /// Names beside the declared ones are data: those of a map, or of an object whose members are not shown.
    pub has_data_names: bool,
}

/// What may be shown of the messages of one side.
#[derive(Clone, Debug, Default)]
pub struct Disclosures {
    /// All of them; [`DisclosureId`] indexes these.
    pub values: Vec<Disclosure>,
    /// In the order of the contract.
    pub operations: Vec<OperationDisclosure>,
}

/// What may be shown of the messages of one operation.
#[derive(Clone, Debug)]
pub struct OperationDisclosure {
    /// As the contract writes it, such as `GET /things/{id}`.
    pub key: Arc<str>,
    /// The method of its requests.
    pub method: Method,
    /// Its path template, segment by segment.
    pub path: Vec<SegmentDisclosure>,
    /// By name.
    pub query: Vec<(Arc<str>, DisclosureId)>,
    /// By name in lower case.
    pub headers: Vec<(Arc<str>, DisclosureId)>,
    /// Of the request's body, where the contract declares one.
    pub request: Option<DisclosureId>,
    /// By status; none = all that no other is for.
    pub answers: Vec<(Option<StatusFrom>, DisclosureId)>,
}

/// One segment of a path.
#[derive(Clone, Debug)]
pub enum SegmentDisclosure {
    /// A fixed segment, which is shown.
    Literal(Arc<str>),
    /// A variable: what may be shown of its value.
    Variable(DisclosureId),
}

/// How much of a text may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// Declared secret.
    Secret,
    /// Nothing is declared, so it may be what people write.
    Private,
    /// Declared harmless.
    Harmless,
    /// One of the words that the contract lists.
    Listed,
}

/// A place in a message, and what may be shown of the value there.
#[derive(Clone, Copy, Debug)]
pub struct Disclosed<'d> {
    at: Option<(&'d Disclosures, DisclosureId)>,
    /// Declared of something around it.
    is_secret: bool,
    is_harmless: bool,
    /// It is in something that the contract does not know: names in it are data as well.
    is_beyond: bool,
}

/// Segments of a path that no operation has that are shown.
const SEGMENTS_MAX: usize = 16;
/// Segments of an answered path in which a collection may be named.
const NAMED_MAX: usize = 4;

impl Disclosures {
    /// The operation of this key.
    pub fn operation(&self, key: &str) -> Option<&OperationDisclosure> {
        self.operations.iter().find(|operation| *operation.key == *key)
    }

    /// The operation that a method and a path below the side's base are for; the one with most literal segments. `HEAD` is
    /// for what `GET` is for.
    pub fn find(&self, method: &str, path: &str) -> Option<&OperationDisclosure> {
        let method = if method == Method::HEAD.as_str() { Method::GET.as_str() } else { method };
        let of_method = self.operations.iter().filter(|operation| operation.method.as_str() == method);
        let fitting = of_method.filter_map(|operation| Some((operation.literals_of(path)?, operation)));
        fitting.max_by_key(|(literals, _)| *literals).map(|(_, operation)| operation)
    }

    /// Whether a segment of a path is a word of the contract.
    pub fn is_literal(&self, segment: &str) -> bool {
        let segments = self.operations.iter().flat_map(|operation| &operation.path);
        segments
            .into_iter()
            .any(|known| matches!(known, SegmentDisclosure::Literal(text) if **text == *segment))
    }

    /// A path that no operation has, with `*` for all that is no word of the contract: such a segment may be anything, a
    /// token too.
    pub fn outline(&self, path: &str) -> String {
        self.outlined(path, false)
    }

    /// The same of a path that the service itself answers. Its first and third segments nearly always name collections, and are
    /// shown where they are plain words; the segments between are ids.
    pub fn outline_of_answered(&self, path: &str) -> String {
        self.outlined(path, true)
    }

    fn outlined(&self, path: &str, is_answered: bool) -> String {
        let mut outline = String::new();
        let segments = path.split('/').skip(1);
        for (at, segment) in segments.clone().take(SEGMENTS_MAX).enumerate() {
            let is_named = is_answered && at % 2 == 0 && at < NAMED_MAX && is_plain_word(segment);
            let is_shown = segment.is_empty() || is_named || self.is_literal(segment);
            outline.push('/');
            outline.push_str(if is_shown { segment } else { "*" });
        }
        if segments.count() > SEGMENTS_MAX {
            outline.push_str("/…");
        }
        outline
    }

    /// The body of a request.
    pub fn request(&self, operation: &OperationDisclosure) -> Disclosed<'_> {
        self.value(operation.request)
    }

    /// The body of an answer with this status.
    pub fn answer(&self, operation: &OperationDisclosure, status: u16) -> Disclosed<'_> {
        let rank = |from: &Option<StatusFrom>| match from {
            Some(StatusFrom::Exact(_)) => 0,
            Some(StatusFrom::Class(_)) => 1,
            None => 2,
        };
        let fits = |from: &Option<StatusFrom>| from.is_none_or(|from| from.matches(status));
        let fitting = operation.answers.iter().filter(|(from, _)| fits(from));
        self.value(fitting.min_by_key(|(from, _)| rank(from)).map(|(_, id)| *id))
    }

    /// The value of a query parameter; unknown where the operation has none of this name.
    pub fn parameter(&self, operation: &OperationDisclosure, name: &str) -> Disclosed<'_> {
        self.named(&operation.query, name)
    }

    /// Whether the operation has a query parameter of this name; any one has, where no operation is known.
    pub fn is_parameter(&self, operation: Option<&OperationDisclosure>, name: &str) -> bool {
        let has = |operation: &OperationDisclosure| operation.query.iter().any(|(known, _)| **known == *name);
        operation.map_or_else(|| self.operations.iter().any(has), has)
    }

    /// The value of a header field of a request, by its name in lower case.
    pub fn header(&self, operation: &OperationDisclosure, name: &str) -> Disclosed<'_> {
        self.named(&operation.headers, name)
    }

    fn named(&self, known: &[(Arc<str>, DisclosureId)], name: &str) -> Disclosed<'_> {
        self.value(known.iter().find(|(known, _)| **known == *name).map(|(_, id)| *id))
    }

    /// The place of this value.
    pub fn value(&self, id: Option<DisclosureId>) -> Disclosed<'_> {
        Disclosed::UNKNOWN.below(id.map(|id| (self, id)))
    }
}

impl OperationDisclosure {
    /// How many segments of a path are literal ones of this operation; none where the path is not this operation's.
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
    /// A place of which no contract says anything. Names of members are shown: who compares without a contract has nothing else.
    pub const UNKNOWN: Disclosed<'static> =
        Disclosed { at: None, is_secret: false, is_harmless: false, is_beyond: false };

    /// A message that no operation has: names of members are data too.
    pub const BEYOND: Disclosed<'static> = Disclosed { is_beyond: true, ..Disclosed::UNKNOWN };

    fn below(self, at: Option<(&'d Disclosures, DisclosureId)>) -> Disclosed<'d> {
        let known = at.map(|(of, id)| &of.values[id.0 as usize]);
        Disclosed {
            at,
            is_secret: self.is_secret || known.is_some_and(|known| known.is_secret),
            is_harmless: self.is_harmless || known.is_some_and(|known| known.is_harmless),
            is_beyond: self.is_beyond || (self.at.is_some() && at.is_none()),
        }
    }

    fn known(self) -> Option<&'d Disclosure> {
        self.at.map(|(of, id)| &of.values[id.0 as usize])
    }

    /// The member of this name.
    #[must_use]
    pub fn member(self, name: &str) -> Disclosed<'d> {
        let id = self.known().and_then(|known| known.members.get(name).copied().or(known.others));
        self.below(self.at.zip(id).map(|((of, _), id)| (of, id)))
    }

    /// Any element.
    #[must_use]
    pub fn element(self) -> Disclosed<'d> {
        let id = self.known().and_then(|known| known.element);
        self.below(self.at.zip(id).map(|((of, _), id)| (of, id)))
    }

    /// Whether the name of a member is data, and no word of the contract.
    pub fn is_data_name(self, name: &str) -> bool {
        let is_declared = self.known().is_some_and(|known| known.members.contains_key(name));
        let has_data_names = self.is_beyond || self.known().is_some_and(|known| known.has_data_names);
        !is_declared && !self.is_harmless && has_data_names
    }

    /// Whether nothing of the value is shown.
    pub fn is_secret(self) -> bool {
        self.is_secret
    }

    /// Whether the contract says that the value is a number or a boolean.
    pub fn is_number(self) -> bool {
        self.known().is_some_and(|known| known.is_number)
    }

    /// How much of a text at this place may be shown.
    pub fn text(self, text: &str) -> Exposure {
        match self.known() {
            _ if self.is_secret => Exposure::Secret,
            Some(known) if known.listed.iter().any(|listed| **listed == *text) => Exposure::Listed,
            _ if self.is_harmless => Exposure::Harmless,
            _ => Exposure::Private,
        }
    }
}

/// Bytes of a segment that may be shown although no contract has it.
const WORD_BYTES_MAX: usize = 24;

/// Returns whether a segment consists of at most [`WORD_BYTES_MAX`] lower-case ASCII letters, as most names of
/// collections do. Anything else may be a token.
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
