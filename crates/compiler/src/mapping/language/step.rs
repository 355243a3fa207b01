//! Routes with several calls: steps, and blocks with their last action.

use super::kinds::{
    Count, Effect, Element, EntriesOf, ListOf, MapOf, OneOrList, Operation, Retry, Status, Text, kinds,
    word_kinds,
};
use super::notes::{Approximations, Notes, Sentences};
use super::section::{Read, section};
use super::{
    Decide, DecideDecl, ExprDecl, KeepDecl, LegacyForward, PredicateDecl, RecallDecl, Refuse,
    RefusePolicyDecl, RowDecl, Spanned, SyntaxReader, faults,
};
use crate::diagnostic::{Span, suggest};
use crate::mapping::schema::{Sides, list_of, reference, text, words};
use crate::yaml::{Key, Kind, Node, described};
use serde_json::{Value, json};

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
