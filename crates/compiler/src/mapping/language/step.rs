//! Routes with several calls: checks, steps, blocks with their last action, and decision tables.

use super::kinds::{
    Count, Effect, Element, EntriesOf, ListOf, MapOf, OneOrList, Operation, Retry, Status, Text, kinds,
    word_kinds,
};
use super::notes::{Approximations, Notes, Sentences};
use super::section::{Read, Section, section};
use super::{
    ExprDecl, KeepDecl, LegacyForward, RecallDecl, Refuse, RefusePolicyDecl, Spanned, SyntaxReader, faults,
};
use crate::diagnostic::{Span, suggest};
use crate::mapping::schema::{Sides, anything, list_of, reference, text, words};
use crate::yaml::{Fields, Key, Kind, Node, TextStyle, described};
use serde_json::{Map, Value, json};

/// Steps, followed by exactly one of `answer`, `refuse` or `decide`.
#[derive(Clone, Debug)]
pub(crate) struct BlockDecl {
    pub steps: Vec<StepDecl>,
    pub end: Option<BlockEnd>,
}

#[derive(Clone, Debug)]
pub(crate) enum BlockEnd {
    Answer(AnswerDecl),
    /// `refuse: reason` with an optional `policy:`
    Refuse(Refuse),
    /// `decide: {on: […], rows: [[…, outcome]]}` and `outcomes:`
    Decide(Decide),
}

section! {
    /// The keys of steps and their end.
    BlockKeys is "a block" {
        /// Calls and selections, in order.
        default steps: ListOf<StepDecl>,
        /// The end: an answer.
        optional answer: AnswerDecl,
        /// The end: refused, with this reason.
        optional refuse: Text,
        /// Policy for this refusal.
        default policy: RefusePolicyDecl,
        /// The end: a table that chooses an outcome.
        optional decide: DecideDecl,
        /// The outcomes of the table, by name.
        default outcomes: EntriesOf<OutcomeKeys>,
    }
    into BlockDecl: |BlockKeys { steps, answer, refuse, policy, decide, outcomes }, fields, reader| {
        let has = |name: &str| fields.get(name).is_some();
        let ends: Vec<_> =
            ["answer", "refuse", "decide"].iter().filter_map(|name| fields.entry(name)).collect();
        match ends.as_slice() {
            [] => {
                let what = if has("serve") { "this route" } else { "this outcome" };
                reader.findings.push(faults::no_end(fields.node.span, what));
            }
            [_] => {}
            [(first, _), (second, _), ..] => reader.findings.push(faults::two_ends(first.span, second.span)),
        }
        for (name, needed) in [("outcomes", "decide"), ("policy", "refuse")] {
            if let (Some((key, _)), false) = (fields.entry(name), has(needed)) {
                reader.findings.push(faults::key_without(key, needed));
            }
        }
        if let (Some(table), false) = (fields.get("decide"), has("outcomes")) {
            reader.findings.push(faults::no_outcomes(table.span));
        }
        let end = match (ends.as_slice(), answer, refuse, decide) {
            ([_], Some(answer), _, _) => Some(BlockEnd::Answer(answer)),
            ([_], _, Some(reason), _) => Some(BlockEnd::Refuse(Refuse { reason, policy })),
            ([_], _, _, Some(DecideDecl { on, rows, span })) => {
                let rows = rows.iter().filter_map(|row| RowDecl::read(row, on.len(), reader)).collect();
                Some(BlockEnd::Decide(Decide { on, rows, outcomes, span }))
            }
            _ => None,
        };
        Some(BlockDecl { steps, end })
    }
}

/// Adds to a schema that a block has one end.
pub(super) fn one_end(schema: &mut Value) {
    schema["oneOf"] =
        json!([{"required": ["answer"]}, {"required": ["refuse"]}, {"required": ["decide", "outcomes"]}]);
}

section! {
    /// The end of a block that answers.
    AnswerDecl is "an answer", defines "answer" {
        /// Status of the answer.
        required status: Status,
        /// `forward`: the old service answers while one is configured.
        default legacy_forward("legacy"): LegacyForward,
        /// Header fields of the answer.
        default headers: MapOf<ExprDecl>,
        /// Body of the answer; empty without it.
        optional body: ExprDecl,
        at span: Span,
    }
}

section! {
    /// A decision table with unread rows.
    DecideDecl is "a decision", defines "decide" {
        /// Columns: paths or conditions.
        filled on: ListOf<ColumnDecl>,
        /// Cells for each column and the name of an outcome; the first row that matches counts.
        filled rows: ListOf<UnreadRow>,
        at span: Span,
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Decide {
    pub on: Vec<ColumnDecl>,
    pub rows: Vec<RowDecl>,
    pub outcomes: Vec<OutcomeDecl>,
    pub span: Span,
}

/// A column of a decision table.
#[derive(Clone, Debug)]
pub(crate) enum ColumnDecl {
    /// A path.
    Place(Spanned<String>),
    /// `{predicate: …}`; its cells are `true` and `false`.
    Holds(PredicateDecl),
}

impl Read for ColumnDecl {
    type Output = ColumnDecl;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<ColumnDecl> {
        match &node.kind {
            Kind::Map(_) => PredicateDecl::read(key, node, reader).map(ColumnDecl::Holds),
            _ => reader.text(node).map(ColumnDecl::Place),
        }
    }

    fn schema(_: Sides<'_>) -> Value {
        json!({"anyOf": [text(), reference("predicate")]})
    }
}

#[derive(Clone, Debug)]
pub(crate) struct RowDecl {
    pub cells: Vec<CellDecl>,
    pub outcome: Spanned<String>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum CellDecl {
    /// `_`
    Any,
    /// `absent`
    Absent(Span),
    /// A literal or a list of literals.
    OneOf(Vec<Node>),
}

kinds! {
    /// `[cell, …, outcome]`. The form of a cell depends on its column.
    UnreadRow -> Node, |_, node, _| Some(node.clone()), |_| json!({"type": "array", "minItems": 2});
}

impl RowDecl {
    fn read(node: &Node, columns: usize, reader: &mut SyntaxReader<'_>) -> Option<RowDecl> {
        let items = node.list(reader.findings)?;
        let Some((outcome, cells)) = items.split_last().filter(|(_, cells)| cells.len() == columns) else {
            reader.findings.push(faults::row_length(node.span, items.len().saturating_sub(1), columns));
            return None;
        };
        let outcome = reader.text(outcome)?;
        let mut read = Vec::with_capacity(cells.len());
        for cell in cells {
            reader.warn_of_quotes(
                cell,
                &["absent", "_"],
                "null is absent too, and a list of one says that the text is meant",
            );
            if let Node { kind: Kind::String(word, TextStyle::Plain), span } = cell
                && let Some(near) = suggest(word, &["absent"])
            {
                reader.findings.push(faults::nearly_otherwise(word, near, *span));
                read.push(CellDecl::Absent(*span));
            } else {
                read.push(self::cell(cell));
            }
        }
        Some(RowDecl { cells: read, outcome, span: node.span })
    }
}

fn cell(node: &Node) -> CellDecl {
    match &node.kind {
        Kind::String(word, TextStyle::Plain) if word == "_" => CellDecl::Any,
        Kind::String(word, TextStyle::Plain) if word == "absent" => CellDecl::Absent(node.span),
        Kind::Seq(items) => CellDecl::OneOf(items.clone()),
        _ => CellDecl::OneOf(vec![node.clone()]),
    }
}

#[derive(Clone, Debug)]
pub(crate) struct OutcomeDecl {
    pub name: Spanned<String>,
    pub block: BlockDecl,
    pub notes: Notes,
}

section! {
    /// The keys of an outcome.
    OutcomeKeys is "an outcome", defines "outcome", with one_end {
        name name: Spanned<String>,
        part block: BlockKeys,
        /// Differences, for the report.
        default differs: Sentences,
        /// Approximations, for the report. Names of approximations are listed in a header field of
        /// answers.
        default approximate: Approximations,
    }
    into OutcomeDecl: |OutcomeKeys { name, block, differs, approximate }, _, _| {
        Some(OutcomeDecl { name, block, notes: Notes { differs, approximate, verdict: Vec::new() } })
    }
}

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

#[derive(Clone, Debug)]
pub(crate) struct StepDecl {
    pub name: Option<Spanned<String>>,
    pub action: StepActionDecl,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum StepActionDecl {
    Call(CallDecl),
    /// `pick: path` with `take: first | all` or `newest: member`
    Pick(Pick),
    /// `first: [{when: …, pick: …}, …]`
    First(Vec<Pick>),
    /// `make: value`
    Make(ExprDecl),
    Recall(RecallDecl),
    Keep(KeepDecl),
}

/// An action: the key that marks it, its reader, and its schema.
type Action =
    (&'static str, fn(&Key, &Node, &mut SyntaxReader<'_>) -> Option<StepActionDecl>, fn(Sides<'_>) -> Value);

/// The actions, in the order in which messages list them.
const ACTIONS: &[Action] = &[
    (
        "call",
        |key, node, reader| Some(StepActionDecl::Call(CallDecl::read(key, node, reader)?)),
        CallDecl::definition,
    ),
    (
        "pick",
        |key, node, reader| Some(StepActionDecl::Pick(PickKeys::read(key, node, reader)?)),
        PickKeys::definition,
    ),
    ("first", FirstKeys::read, FirstKeys::definition),
    ("make", MakeKeys::read, MakeKeys::definition),
    (
        "recall",
        |key, node, reader| Some(StepActionDecl::Recall(RecallDecl::read(key, node, reader)?)),
        RecallDecl::definition,
    ),
    (
        "keep",
        |key, node, reader| Some(StepActionDecl::Keep(KeepDecl::read(key, node, reader)?)),
        KeepDecl::definition,
    ),
];

impl Read for StepDecl {
    type Output = StepDecl;

    /// Reads `name: {call: …}`, or an unnamed action.
    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<StepDecl> {
        let words = action_words();
        let entries = node.map(reader.findings)?;
        if entries.iter().any(|(key, _)| words.contains(&key.name.as_str())) {
            let action = StepActionDecl::read(key, node, reader)?;
            return Some(StepDecl { name: None, action, span: node.span });
        }
        // A misspelled action looks like the name of a step, but its value is rarely a map.
        let slip = |(key, value): &&(Key, Node)| {
            !matches!(value.kind, Kind::Map(_)) && suggest(&key.name, words.iter().copied()).is_some()
        };
        if let Some((key, _)) = entries.iter().find(slip) {
            reader.findings.push(faults::unknown_line(&key.name, key.span, "a step", &words));
            return None;
        }
        match entries {
            [(key, value)] => {
                let action = StepActionDecl::read(key, value, reader)?;
                Some(StepDecl { name: Some(SyntaxReader::key(key)), action, span: key.span })
            }
            _ => {
                reader.findings.push(faults::one_of_keys(node.span, "a step", &words));
                None
            }
        }
    }

    fn schema(_: Sides<'_>) -> Value {
        reference("step")
    }
}

impl StepDecl {
    pub(in crate::mapping) fn definition(sides: Sides<'_>) -> Value {
        // An action as a key makes an unnamed step. Any other key is the name of the step.
        let named = json!({
            "type": "object", "minProperties": 1, "maxProperties": 1,
            "propertyNames": {"not": words(&action_words())}, "additionalProperties": reference("action"),
        });
        let actions = ACTIONS.iter().map(|(_, _, definition)| definition(sides));
        json!({"anyOf": actions.chain([named]).collect::<Vec<_>>()})
    }
}

impl StepActionDecl {
    pub(in crate::mapping) fn definition(sides: Sides<'_>) -> Value {
        json!({"anyOf": ACTIONS.iter().map(|(_, _, definition)| definition(sides)).collect::<Vec<_>>()})
    }

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<StepActionDecl> {
        let entries = node.map(reader.findings)?;
        let actions: Vec<_> = ACTIONS.iter().filter(|(word, ..)| node.get(word).is_some()).collect();
        if let [(_, read, _)] = actions.as_slice() {
            return read(key, node, reader);
        }
        let words = action_words();
        // Report a misspelled action at the word itself. Keys of calls such as `each` are
        // legitimate, however similar to an action.
        let of_calls = CallDecl::KEYS.all();
        let slip = entries.iter().find(|(key, _)| {
            actions.is_empty()
                && !of_calls.iter().any(|(name, _)| *name == key.name)
                && suggest(&key.name, words.iter().copied()).is_some()
        });
        reader.findings.push(match slip {
            Some((key, _)) => faults::unknown_line(&key.name, key.span, "a step", &words),
            None => faults::one_of_keys(node.span, "a step", &words),
        });
        None
    }
}

fn action_words() -> Vec<&'static str> {
    ACTIONS.iter().map(|(word, ..)| *word).collect()
}

section! {
    /// `call: 'PUT /things/{$.made.body.id}'`
    CallDecl is "a call" {
        /// Method and path; `{var}` is a variable of the request, `{$.place}` any scalar.
        required operation("call"): Operation,
        /// Condition under which the call is sent.
        optional when: PredicateDecl,
        part each: EachKeys,
        /// Query parameters.
        default query: MapOf<ExprDecl>,
        /// Header fields.
        default headers: MapOf<ExprDecl>,
        /// Body of the call.
        optional body: ExprDecl,
        /// Reads a list over several pages.
        optional pages: PagesDecl,
        part poll: PollKeys,
        /// Fallback for a call without a 2xx reply. Required after a write.
        optional on_fail: OnFailDecl,
        /// The reply is stored under these values, so that a repeated request continues after it.
        default resume: ListOf<Text>,
        /// Whether a repeat of this write is harmless.
        optional retry: Retry,
        /// Whether it writes, where the method misleads.
        optional effect: Effect,
    }
}

/// `each: {name: list}, upto: 20, beyond: absent`
#[derive(Clone, Debug)]
pub(crate) struct EachDecl {
    /// Binds the current element, both in the call and in its result.
    pub name: Spanned<String>,
    pub list: Spanned<String>,
    pub upto: Spanned<i64>,
    pub beyond: Option<Spanned<BeyondDecl>>,
}

section! {
    /// The keys of a call that is repeated for each element of a list.
    EachKeys is "a call" {
        /// Repeats the call for each element of a list: `{name: list}`.
        optional each: FirstElement,
        /// Maximum number of elements.
        optional upto: Count<1, 1000>,
        /// Policy for further elements; a write is refused.
        optional beyond: BeyondElements,
    }
    into Option<EachDecl>: |EachKeys { each, upto, beyond }, fields, reader| {
        let Some(node) = fields.get("each") else {
            for (key, _) in ["upto", "beyond"].iter().filter_map(|key| fields.entry(key)) {
                reader.findings.push(faults::key_without(key, "each"));
            }
            return Some(None);
        };
        if node.as_map().is_some() && fields.get("upto").is_none() {
            reader.findings.push(faults::each_without_bound(node.span));
        }
        // Continue with an arbitrary bound to check the rest of the route.
        let upto = upto.unwrap_or(Spanned { value: 1, span: node.span });
        Some(each.map(|(name, list)| EachDecl { name, list, upto, beyond }))
    }
}

/// `until: predicate, every: 1s, within: 20s`: repeats the call until its reply satisfies the
/// predicate.
#[derive(Clone, Debug)]
pub(crate) struct PollDecl {
    pub until: PredicateDecl,
    pub every: Spanned<String>,
    pub within: Spanned<String>,
    /// Span of the word `until`.
    pub span: Span,
}

section! {
    /// The keys of a call that is repeated until a condition holds.
    PollKeys is "a call" {
        /// Repeats the call until its reply satisfies this condition; with `every` and `within`.
        optional until: PredicateDecl,
        /// From one reply to the next call: `500ms`, `1s`.
        optional every: Text,
        /// From the first reply to the last call: `20s`, `1m`.
        optional within: Text,
    }
    into Option<PollDecl>: |PollKeys { until, every, within }, fields, reader| {
        const WORDS: [&str; 3] = ["until", "every", "within"];
        let Some((first, _)) = WORDS.iter().find_map(|word| fields.entry(word)) else { return Some(None) };
        let missing: Vec<&str> = WORDS.into_iter().filter(|word| fields.get(word).is_none()).collect();
        if !missing.is_empty() {
            reader.findings.push(faults::poll_without(first.span, &missing));
        }
        // Continue with arbitrary times to check the rest of the route.
        let span = first.span;
        let arbitrary = |word| missing.contains(&word).then(|| Spanned { value: "1s".to_owned(), span });
        let (every, within) = (every.or_else(|| arbitrary("every")), within.or_else(|| arbitrary("within")));
        let poll = until.zip(every).zip(within);
        Some(poll.map(|((until, every), within)| PollDecl { until, every, within, span }))
    }
}

section! {
    /// `pages: {upto: 5, until: path}`
    PagesDecl is "`pages`" {
        /// Maximum number of pages.
        required upto: Count<1, 1000>,
        /// Stops once this path selects a value.
        optional until: Text,
        /// Policy for a list with more pages.
        optional beyond: BeyondPages,
        at span: Span,
    }
}

/// Policy for a list that is longer than its bound.
#[derive(Clone, Debug)]
pub(crate) enum BeyondDecl {
    /// `cut`: truncates the list to the pages that were read.
    Cut,
    /// `absent`: for pages, no body, as if the call had failed; for elements, no result for those
    /// beyond the bound.
    Absent,
    /// `{refuse: reason}`
    Refuse(Refuse),
}

kinds! {
    /// One element of a list. Further ones are reported, and the first is checked.
    FirstElement -> (Spanned<String>, Spanned<String>), |_, node, reader| {
        let entries = node.map(reader.findings)?;
        if entries.len() != 1 {
            reader.findings.push(faults::one_element_name(node.span));
        }
        let (name, list) = entries.first()?;
        Some((SyntaxReader::key(name), reader.text(list)?))
    }, Element::<Text>::schema;
    /// The policy for elements beyond a bound.
    BeyondElements -> Spanned<BeyondDecl>, |key, node, reader| beyond(key, node, &["absent"], reader),
        |sides| json!({"anyOf": [words(&["absent"]), Refuse::definition(sides)]});
    /// The policy for pages beyond a bound.
    BeyondPages -> Spanned<BeyondDecl>, |key, node, reader| beyond(key, node, &["cut", "absent"], reader),
        |sides| json!({"anyOf": [words(&["cut", "absent"]), Refuse::definition(sides)]});
}

/// Reads one of `words`, or `{refuse: reason}`.
fn beyond(
    key: &Key,
    node: &Node,
    words: &[&str],
    reader: &mut SyntaxReader<'_>,
) -> Option<Spanned<BeyondDecl>> {
    let value = if let Kind::String(..) = &node.kind {
        // Report an invalid word once, and check the rest of the route with `absent`.
        match node.word(words, reader.findings) {
            Some("cut") => BeyondDecl::Cut,
            _ => BeyondDecl::Absent,
        }
    } else {
        BeyondDecl::Refuse(Refuse::read(key, node, reader)?)
    };
    Some(Spanned { value, span: key.span })
}

#[derive(Clone, Debug)]
pub(crate) enum OnFailDecl {
    /// `pass`
    Pass,
    /// `{pass: {headers: {name: expr}}}`
    PassWith(Vec<(Spanned<String>, ExprDecl)>),
    /// `{answer: {…}}`
    Answer(AnswerDecl),
    /// `{use: expr}`
    Use(ExprDecl),
    /// `{refuse: reason}`
    Refuse(Refuse),
    /// `absent`, or `{absent: [404]}` for these statuses only: continues without a body.
    Absent(Vec<Spanned<i64>>),
}

section! {
    /// `{headers: {name: expr}}`
    PassKeys is "`pass`" {
        /// Header fields added to the answer.
        filled headers: MapOf<ExprDecl>,
    }
    into OnFailDecl: |pass, _, _| Some(OnFailDecl::PassWith(pass.headers))
}

/// The long forms of `on_fail`.
const ON_FAIL: &[&str] = &["pass", "absent", "answer", "use", "refuse"];

impl Read for OnFailDecl {
    type Output = OnFailDecl;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<OnFailDecl> {
        if let Kind::String(..) = &node.kind {
            let word = node.word(&["pass", "absent"], reader.findings)?;
            return Some(if word == "pass" { OnFailDecl::Pass } else { OnFailDecl::Absent(Vec::new()) });
        }
        let [(form, value)] = node.map(reader.findings)? else {
            reader.findings.push(faults::one_of_keys(node.span, "`on_fail`", ON_FAIL));
            return None;
        };
        match form.name.as_str() {
            "pass" => PassKeys::read(key, value, reader),
            "absent" => {
                let statuses = ListOf::<Status>::read(key, value, reader)?;
                if statuses.is_empty() {
                    reader.findings.push(faults::status("[]", value.span));
                    return None;
                }
                Some(OnFailDecl::Absent(statuses))
            }
            "answer" => AnswerDecl::read(key, value, reader).map(OnFailDecl::Answer),
            "use" => ExprDecl::read(key, value, reader).map(OnFailDecl::Use),
            "refuse" => {
                let reason = reader.text(value)?;
                Some(OnFailDecl::Refuse(Refuse { reason, policy: RefusePolicyDecl::default() }))
            }
            other => {
                reader.findings.push(faults::unknown_line(other, form.span, "`on_fail`", ON_FAIL));
                None
            }
        }
    }

    fn schema(_: Sides<'_>) -> Value {
        reference("onFail")
    }
}

impl OnFailDecl {
    pub(in crate::mapping) fn definition(sides: Sides<'_>) -> Value {
        let about = |word: &str| match word {
            "pass" => ("The status and error of the call.", PassKeys::definition(sides)),
            "absent" => ("After these statuses, goes on without a body.", list_of(&reference("status"))),
            "answer" => ("This answer.", reference("answer")),
            "use" => ("Goes on with this as the body of the reply.", reference("value")),
            _ => ("Refused, with this reason.", text()),
        };
        let one = |word: &&str| {
            let (sentence, schema) = about(word);
            json!({
                "type": "object", "additionalProperties": false, "required": [word],
                "properties": {*word: described(schema, &[sentence])},
            })
        };
        let forms = std::iter::once(words(&["pass", "absent"])).chain(ON_FAIL.iter().map(one));
        json!({"anyOf": forms.collect::<Vec<_>>()})
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Pick {
    pub when: Option<PredicateDecl>,
    pub path: Spanned<String>,
    pub take: TakeDecl,
}

#[derive(Clone, Debug)]
pub(crate) enum TakeDecl {
    All,
    First,
    /// `newest: member`, or `newest: [member, …]` with tie breakers in order.
    Newest(Vec<Spanned<String>>),
    /// `page: path`: the slice of the matches on the page with this number.
    Page(Spanned<String>),
}

section! {
    /// `pick: path` with a selection.
    PickKeys is "a selection", with one_selection {
        /// Path that selects.
        required path("pick"): Text,
        part take: TakeKeys,
    }
    into Pick: |PickKeys { path, take }, _, _| Some(Pick { when: None, path, take })
}

section! {
    /// A selection within a `first:` step.
    ChoiceKeys is "a choice", with one_selection {
        /// Path that selects.
        required path("pick"): Text,
        /// Condition of this selection.
        optional when: PredicateDecl,
        part take: TakeKeys,
    }
    into Pick: |ChoiceKeys { path, when, take }, _, _| Some(Pick { when, path, take })
}

section! {
    /// `take:`, `newest:` or `page:`
    TakeKeys is "a selection" {
        /// All matches as a list, or the first.
        strict take: TakeWord,
        /// Takes the match with the greatest value of this member; of several names, later ones
        /// break ties.
        strict newest: OneOrList<Text>,
        /// Takes the matches on the page with this number.
        strict page: Text,
    }
    into TakeDecl: |TakeKeys { take, newest, page }, fields, reader| {
        const WORDS: [&str; 3] = ["take", "newest", "page"];
        let given: Vec<_> = WORDS.iter().filter_map(|key| fields.get(key)).collect();
        if let [first, _, ..] = given.as_slice() {
            reader.findings.push(faults::one_of_keys(first.span, "a selection", &WORDS));
            return None;
        }
        let take = take.map(|take| take.value);
        let take = take.or(newest.map(TakeDecl::Newest)).or(page.map(TakeDecl::Page));
        Some(take.unwrap_or(TakeDecl::All))
    }
}

word_kinds! {
    /// The number of matches.
    TakeWord -> TakeDecl { "first" => TakeDecl::First, "all" => TakeDecl::All }
}

/// Adds to a schema that the options exclude each other, because each selects in its own way.
fn one_selection(schema: &mut Value) {
    let both = [["take", "newest"], ["take", "page"], ["newest", "page"]];
    schema["not"] = json!({"anyOf": both.map(|both| json!({"required": both}))});
}

section! {
    /// `first: [{when: …, pick: …}, …]`
    FirstKeys is "a step that chooses" {
        /// Selections; the first one with a true condition applies.
        filled first: ListOf<ChoiceKeys>,
    }
    into StepActionDecl: |step, _, _| Some(StepActionDecl::First(step.first))
}

section! {
    /// `make: value`
    MakeKeys is "a step that makes a value" {
        /// A value that later steps read.
        required make: ExprDecl,
    }
    into StepActionDecl: |step, _, _| Some(StepActionDecl::Make(step.make))
}
