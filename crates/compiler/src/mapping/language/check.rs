//! Checks before steps, and the conditions that they share with decision tables.

use super::kinds::{Status, Text};
use super::section::{Read, Section, section};
use super::{Refuse, Spanned, SyntaxReader, faults};
use crate::diagnostic::Span;
use crate::mapping::schema::{Sides, anything, list_of, reference, text};
use crate::yaml::{Fields, Key, Node, described};
use serde_json::{Map, Value, json};

#[derive(Clone, Debug)]
pub(crate) struct CheckDecl {
    pub predicate: PredicateDecl,
    /// `if: $.config.name`
    pub only_if: Option<Spanned<String>>,
    /// `unless: $.config.name`
    pub unless: Option<Spanned<String>>,
    pub otherwise: CheckElseDecl,
    pub span: Span,
}

section! {
    /// The keys of a check, in addition to its condition.
    CheckKeys is "a check" {
        /// A setting that makes the check optional: `$.config.name`.
        optional only_if("if"): Text,
        /// A setting that disables the check: `$.config.name`.
        optional unless: Text,
        /// Response if the condition is false.
        lenient otherwise("else"): CheckElseDecl,
    }
}

impl Read for CheckDecl {
    type Output = CheckDecl;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<CheckDecl> {
        let options: Vec<_> = CheckKeys::KEYS.all().into_iter().map(|(name, _)| name).collect();
        let predicate = PredicateDecl::read_beside(node, &options, reader);
        let fields = Fields::unchecked(node)?;
        let CheckKeys { only_if, unless, otherwise } = CheckKeys::read_fields(key, &fields, reader)?;
        if fields.get("else").is_none() {
            reader.findings.push(faults::check_without_else(node.span));
        }
        Some(CheckDecl { predicate: predicate?, only_if, unless, otherwise: otherwise?, span: node.span })
    }

    fn schema(_: Sides<'_>) -> Value {
        reference("check")
    }
}

impl CheckDecl {
    pub(in crate::mapping) fn definition(sides: Sides<'_>) -> Value {
        let mut schema = PredicateDecl::definition(sides);
        schema["required"] = json!(["else"]);
        if let Value::Object(properties) = &mut schema["properties"] {
            CheckKeys::properties(sides, properties);
        }
        schema
    }
}

/// Response to a check that fails.
#[derive(Clone, Debug)]
pub(crate) enum CheckElseDecl {
    /// `{status, reason}`
    Answer { status: Spanned<i64>, reason: Spanned<String> },
    /// `{refuse: reason}` with an optional `policy:`
    Refuse(Refuse),
}

section! {
    /// `{status, reason}`
    CheckAnswer is "`else`" {
        /// Status if the condition is false.
        required status: Status,
        /// Reason, as the text of the answer.
        required reason: Text,
    }
    into CheckElseDecl: |CheckAnswer { status, reason }, _, _| Some(CheckElseDecl::Answer { status, reason })
}

impl Read for CheckElseDecl {
    type Output = CheckElseDecl;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<CheckElseDecl> {
        if node.get("refuse").is_some() {
            return Refuse::read(key, node, reader).map(CheckElseDecl::Refuse);
        }
        CheckAnswer::read(key, node, reader)
    }

    fn schema(sides: Sides<'_>) -> Value {
        json!({"anyOf": [CheckAnswer::definition(sides), Refuse::definition(sides)]})
    }
}

/// `{present: place}` and so on. In `check`, bare words are members of the request body.
#[derive(Clone, Debug)]
pub(crate) struct PredicateDecl {
    pub word: Spanned<PredicateWord>,
    /// Paths, already prefixed with `$.request.body.` where the file has a bare word.
    pub places: Vec<Spanned<String>>,
    /// The values of `one_of`, or the word of `kind`.
    pub values: Vec<Node>,
    /// Operands of `all`, `any` and `not`.
    pub of: Vec<PredicateDecl>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PredicateWord {
    Present,
    Missing,
    NotNull,
    AnyPresent,
    AllPresent,
    NonePresent,
    OneOf,
    Kind,
    Equal,
    AbsentOrEqual,
    Conforms,
    All,
    Any,
    Not,
}

use PredicateWord as Word;

/// The operands of a condition.
#[derive(Clone, Copy)]
enum Operands {
    Place,
    Places,
    TwoPlaces,
    /// `{place: values}`
    Values,
    Condition,
    Conditions,
}

use Operands::{Condition, Conditions, Place, Places, TwoPlaces, Values};

/// The conditions: keyword, operands and description.
const PREDICATES: &[(&str, Word, Operands, &str)] = &[
    ("present", Word::Present, Place, "The place is there."),
    ("missing", Word::Missing, Place, "The place is not there. A place with null is not missing."),
    ("not_null", Word::NotNull, Places, "None of the places is null."),
    ("any_present", Word::AnyPresent, Places, "At least one of the places is there."),
    ("all_present", Word::AllPresent, Places, "All of the places are there."),
    ("none_present", Word::NonePresent, Places, "None of the places is there."),
    ("one_of", Word::OneOf, Values, "The place has one of these values."),
    ("kind", Word::Kind, Values, "The place has a value of this kind."),
    ("equal", Word::Equal, TwoPlaces, "Both places have the same value."),
    (
        "absent_or_equal",
        Word::AbsentOrEqual,
        TwoPlaces,
        "The first place is not there, or equals the second.",
    ),
    ("conforms", Word::Conforms, Places, "All of the places are what the contract says of them."),
    ("all", Word::All, Conditions, "All of these conditions hold."),
    ("any", Word::Any, Conditions, "At least one of these conditions holds."),
    ("not", Word::Not, Condition, "This condition does not hold."),
];

impl Operands {
    fn schema(self) -> Value {
        match self {
            Operands::Place => text(),
            Operands::Places => list_of(&text()),
            Operands::TwoPlaces => json!({"type": "array", "items": text(), "minItems": 2, "maxItems": 2}),
            Operands::Values => {
                json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": anything()})
            }
            Operands::Condition => reference("predicate"),
            Operands::Conditions => json!({"type": "array", "items": reference("predicate"), "minItems": 2}),
        }
    }
}

impl Read for PredicateDecl {
    type Output = PredicateDecl;

    fn read(_: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<PredicateDecl> {
        PredicateDecl::read_beside(node, &[], reader)
    }

    fn schema(_: Sides<'_>) -> Value {
        reference("predicate")
    }
}

impl PredicateDecl {
    pub(in crate::mapping) fn definition(_: Sides<'_>) -> Value {
        let lines = PREDICATES
            .iter()
            .map(|(word, _, operands, about)| ((*word).to_owned(), described(operands.schema(), &[about])));
        let properties: Map<String, Value> = lines.collect();
        let one: Vec<Value> = PREDICATES.iter().map(|(word, ..)| json!({"required": [word]})).collect();
        json!({"type": "object", "additionalProperties": false, "properties": properties, "required": [], "oneOf": one})
    }

    /// Returns all places that the predicate reads, including those of nested predicates.
    pub(in crate::mapping) fn all_places(&self) -> Vec<&Spanned<String>> {
        self.places.iter().chain(self.of.iter().flat_map(PredicateDecl::all_places)).collect()
    }

    /// Reads a map with exactly one condition. Other keys must be listed in `options`.
    fn read_beside(node: &Node, options: &[&str], reader: &mut SyntaxReader<'_>) -> Option<PredicateDecl> {
        let words: Vec<&str> = PREDICATES.iter().map(|(word, ..)| *word).collect();
        let possible: Vec<&str> = words.iter().chain(options).copied().collect();
        let mut found = None;
        let mark = reader.findings.len();
        for (key, value) in node.map(reader.findings)? {
            match PREDICATES.iter().find(|(word, ..)| *word == key.name) {
                // Take the first condition, so that a second one is reported at its own key.
                Some((_, word, operands, _)) if found.is_none() => {
                    found = Some((*word, *operands, key, value));
                }
                None if options.contains(&key.name.as_str()) => {}
                Some(_) => reader.findings.push(faults::one_of_keys(key.span, "a condition", &words)),
                None => {
                    reader.findings.push(faults::unknown_line(&key.name, key.span, "a condition", &possible));
                }
            }
        }
        let Some((word, operands, key, value)) = found else {
            // A misspelled condition has been reported already.
            if !reader.findings.errors_since(mark) {
                reader.findings.push(faults::one_of_keys(node.span, "a condition", &words));
            }
            return None;
        };
        let word = Spanned { value: word, span: key.span };
        let mut predicate = PredicateDecl { word, places: Vec::new(), values: Vec::new(), of: Vec::new() };
        predicate.read_operands(operands, value, reader)?;
        Some(predicate)
    }

    fn read_operands(
        &mut self,
        operands: Operands,
        node: &Node,
        reader: &mut SyntaxReader<'_>,
    ) -> Option<()> {
        match operands {
            Operands::Place => self.places.push(operand(node, reader)?),
            Operands::Places | Operands::TwoPlaces => {
                let items = node.list(reader.findings)?.iter();
                self.places.extend(items.filter_map(|item| operand(item, reader)));
                if matches!(operands, Operands::TwoPlaces) && self.places.len() != 2 {
                    reader.findings.push(faults::two_places(node.span));
                    return None;
                }
            }
            Operands::Values => {
                let [(key, value)] = node.map(reader.findings)? else {
                    reader.findings.push(faults::one_member(node.span));
                    return None;
                };
                self.places.push(place_of(&key.name, key.span));
                self.values = value.as_seq().map_or_else(|| vec![value.clone()], <[Node]>::to_vec);
            }
            Operands::Condition => self.of.push(PredicateDecl::read_beside(node, &[], reader)?),
            Operands::Conditions => {
                let all: Vec<_> = node
                    .list(reader.findings)?
                    .iter()
                    .map(|one| PredicateDecl::read_beside(one, &[], reader))
                    .collect();
                if all.len() < 2 {
                    reader.findings.push(faults::too_few_conditions(node.span));
                    return None;
                }
                self.of = all.into_iter().collect::<Option<_>>()?;
            }
        }
        Some(())
    }
}

fn operand(node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Spanned<String>> {
    reader.text(node).map(|text| place_of(&text.value, text.span))
}

/// Expands a bare word to a member of the request body.
fn place_of(text: &str, span: Span) -> Spanned<String> {
    let value = if text.starts_with('$') { text.to_owned() } else { format!("$.request.body.{text}") };
    Spanned { value, span }
}
