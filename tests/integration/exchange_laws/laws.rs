//! The laws, and the test that runs them on drawn packs.

use super::draw::{Case, Lines, Message, PATTERNS, SIDES, case};
use super::judge::{Aim, Answered, Breach, Judge, Parsed};
use super::services::{Ended, asked, run};
use super::values::Pool;
use fastrand::Rng;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use switchback_compiler::init;
use switchback_compiler::mapping::load::PackSource;
use switchback_compiler::mapping::{Compiled, compile};
use switchback_plan::{LossReport, OperationReport, Pack, RouteId, RouteKind, SideId};

const MANIFEST: &str = "pack: drawn
sides: {old: a, new: b}
contracts: {a: a.json, b: b.json}
identical: keep
rest: refuse
credentials:
  a: {read: [authorization], send: authorization, scheme: Bearer}
  b: {read: [authorization], send: authorization, scheme: Bearer}
languages: [en]
errors: {body: {message: $text}}
refuse: {legacy: never, status: 501}
";

/// Counts of a campaign.
#[derive(Default)]
struct Counts {
    packs: usize,
    refused: usize,
    findings: BTreeMap<&'static str, usize>,
    operations: usize,
    not_possible: usize,
    clean: usize,
    exchanges: usize,
    losses: usize,
    witnessed: usize,
    /// Losses without a witness, by the reason for which they may have none.
    excepted: BTreeMap<&'static str, usize>,
    /// Operations that are not exact although their edits change nothing.
    wary: BTreeSet<String>,
    /// What does not hold, by rows and kind: how often, and the first seed.
    kinds: BTreeMap<String, (usize, u64)>,
}

fn source(case: &Case) -> PackSource {
    let mut files = vec![
        ("pack.yaml".to_owned(), MANIFEST.to_owned().into_bytes()),
        ("a.json".to_owned(), case.documents[0].to_string().into_bytes()),
        ("b.json".to_owned(), case.documents[1].to_string().into_bytes()),
    ];
    files.extend(case.mapping().map(|text| ("x.map.yaml".to_owned(), text.into_bytes())));
    PackSource::from_files(files)
}

/// The pack of a case, compiled. `init` drafts it where the case says so; the error says that
/// `check` refuses the draft.
fn compiled(case: &Case) -> Result<Compiled, String> {
    if case.lines != Lines::Drafted {
        return Ok(compile(&source(case)));
    }
    let sides = [0, 1].map(|side| init::SideDocument {
        name: SIDES[side].to_owned(),
        document: format!("{}.json", SIDES[side]),
        files: vec![(format!("{}.json", SIDES[side]), case.documents[side].to_string().into_bytes().into())],
    });
    let Ok(draft) = init::draft("drawn", &sides, &[], &BTreeSet::new(), &mut |_| {}) else {
        return Err("init cannot read the documents".to_owned());
    };
    let mut files: Vec<(String, Vec<u8>)> =
        draft.files.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    files.extend(sides.into_iter().flat_map(|side| side.files).map(|(name, bytes)| (name, bytes.to_vec())));
    let checked = compile(&PackSource::from_files(files));
    match checked.pack.is_some() {
        true => Ok(checked),
        false => Err(format!("check refuses what init drafts: {:?}", numbers(&checked))),
    }
}

fn numbers(compiled: &Compiled) -> BTreeSet<&'static str> {
    compiled.findings.in_order().iter().map(|finding| finding.code.number()).collect()
}

/// The losses that a report lists for an operation: they excuse breaches and differences, and each
/// wants a witness.
struct Losses {
    is_clean: bool,
    listed: Vec<Listed>,
    witnessed: BTreeSet<usize>,
}

#[derive(Debug)]
struct Listed {
    place: String,
    message: Message,
    values: Option<String>,
}

/// Losses of a place of the answer that the called side never fills.
const UNFILLED: [&str; 2] = ["nothing on the other side fills it", "never in answers of the other side"];

/// The keywords by which a judge excludes the values of a loss, by the start of its text. A loss of
/// another text is one of any.
const KEYWORDS: [(&str, &[&str]); 14] = [
    ("values above", &["maximum", "exclusiveMaximum"]),
    ("values from", &["exclusiveMaximum", "maximum"]),
    ("values below", &["minimum", "exclusiveMinimum"]),
    ("values up to", &["exclusiveMinimum", "minimum"]),
    ("values that are no multiple", &["multipleOf"]),
    ("texts longer", &["maxLength"]),
    ("texts shorter", &["minLength"]),
    ("texts that do not match", &["pattern"]),
    ("texts that are no", &["format"]),
    ("lists of more", &["maxItems"]),
    ("lists of fewer", &["minItems"]),
    ("lists with equal", &["uniqueItems"]),
    ("the value", &["enum", "const", "maximum", "minimum", "multipleOf", "maxLength", "pattern", "format"]),
    ("members that", &["additionalProperties", "falseSchema", "type"]),
];

/// Whether a loss is one that a pattern of the sender may exclude: texts outside a wider pattern,
/// or elements of a list that hold its delimiter.
fn is_by_pattern(values: &str, documents: &[Value; 2]) -> bool {
    let (narrower, wider) = (PATTERNS[0].0, PATTERNS[1].0);
    let mut documents = documents.iter().map(Value::to_string);
    match values.starts_with("lists with an element") {
        true => documents.any(|text| text.contains(r#""items":{"type":"string","pattern":"#)),
        false => values.contains(wider) && documents.any(|text| text.contains(narrower)),
    }
}

impl Listed {
    fn is_unfilled(&self) -> bool {
        self.values.as_deref().is_some_and(|values| UNFILLED.contains(&values))
    }

    /// Whether a breach by this keyword shows the loss.
    fn is_by(&self, keyword: &str) -> bool {
        let Some(values) = &self.values else { return true };
        // ``values that `not: …` excludes``
        if let Some(named) = values.strip_prefix("values that `") {
            let named = named.split([':', '`']).next().unwrap_or_default();
            // These report the keyword within.
            let is_around = ["if", "dependentRequired", "propertyNames", "patternProperties", "contains"];
            return named == keyword || is_around.contains(&named);
        }
        KEYWORDS.iter().find(|(text, _)| values.starts_with(text)).is_none_or(|(_, of)| of.contains(&keyword))
    }
}

impl Losses {
    fn of(report: &OperationReport, served: usize) -> Losses {
        let message = |loss: &LossReport| match loss.to.as_deref() {
            Some(to) if to == SIDES[served] => Message::Answer,
            None if loss.side == SIDES[served] => Message::Answer,
            _ => Message::Request,
        };
        let listed = report.lost.iter().map(|loss| Listed {
            place: loss.place.clone(),
            message: message(loss),
            values: loss.values.clone(),
        });
        let gaps = report.without_source.iter();
        let gaps =
            gaps.map(|gap| Listed { place: gap.place.clone(), message: Message::Answer, values: None });
        let listed: Vec<Listed> = listed.chain(gaps).collect();
        let is_clean = report.verdict == "exact" && listed.is_empty();
        Losses { is_clean, listed, witnessed: BTreeSet::new() }
    }

    /// Whether the report lists a loss of this message at this place, around it or, where an object
    /// as a whole is wrong, within it.
    fn excuse(&mut self, message: Message, breach: &Breach) -> bool {
        let of_objects = [
            "required",
            "falseSchema",
            "additionalProperties",
            "minProperties",
            "maxProperties",
            "propertyNames",
            "dependentRequired",
            "not",
            "oneOf",
            "anyOf",
        ];
        let Breach { place, keyword, .. } = breach;
        let is_there = |listed: &Listed| {
            is_within(place, &listed.place)
                || (of_objects.contains(&keyword.as_str()) && is_within(&listed.place, place))
        };
        let all = self.listed.iter().enumerate().filter(|(_, listed)| listed.message == message);
        let found: Vec<(usize, &Listed)> = all.filter(|(_, listed)| is_there(listed)).collect();
        let shown = found.iter().filter(|(_, listed)| listed.is_by(keyword));
        let shown: Vec<usize> = shown.map(|(at, _)| *at).collect();
        let is_excused = !found.is_empty();
        self.witnessed.extend(shown);
        is_excused
    }
}

/// Whether the report calls an operation of the old side exact, and lists nothing that is lost.
pub fn is_exact(pack: &Pack, key: &str) -> bool {
    let report = switchback_plan::report(pack);
    let found = report.sides[0].operations.iter().find(|operation| operation.operation == key);
    found.is_some_and(|report| Losses::of(report, 0).is_clean)
}

/// Whether a place is another one or lies in it; `*` is any member.
fn is_within(inner: &str, outer: &str) -> bool {
    let steps =
        |place: &str| -> Vec<String> { place.replace('[', ".[").split('.').map(str::to_owned).collect() };
    let (inner, outer) = (steps(inner), steps(outer));
    inner.len() >= outer.len() && inner.iter().zip(&outer).all(|(one, other)| one == other || other == "*")
}

/// The places where two messages differ.
fn differences(sent: &Parsed, got: &Parsed) -> Vec<Breach> {
    let mut found = Vec::new();
    let mut say = |place: &str, why: String| {
        found.push(Breach { place: place.to_owned(), keyword: "differs".to_owned(), why });
    };
    for (place, texts) in &sent.parts {
        match got.parts.get(place) {
            Some(others) if others == texts => {}
            other => say(place, format!("{texts:?} was sent, {other:?} arrives")),
        }
    }
    for (place, texts) in got.parts.iter().filter(|(place, _)| !sent.parts.contains_key(*place)) {
        say(place, format!("{texts:?} arrives and was not sent"));
    }
    match (&sent.body, &got.body) {
        (Some(sent), Some(got)) => values_differ("$", sent, got, &mut say),
        (None, None) => {}
        (sent, got) => say("$", format!("{sent:?} was sent, {got:?} arrives")),
    }
    found
}

fn values_differ(place: &str, sent: &Value, got: &Value, say: &mut dyn FnMut(&str, String)) {
    match (sent, got) {
        (Value::Object(sent), Value::Object(got)) => {
            let names: BTreeSet<&String> = sent.keys().chain(got.keys()).collect();
            for name in names {
                let inner = format!("{place}.{name}");
                match (sent.get(name), got.get(name)) {
                    (Some(one), Some(other)) => values_differ(&inner, one, other, say),
                    // `init` writes a conversion that takes null for absence.
                    (Some(Value::Null), None) | (None, Some(Value::Null)) => {}
                    (one, other) => say(&inner, format!("{one:?} was sent, {other:?} arrives")),
                }
            }
        }
        (Value::Array(sent), Value::Array(got)) if sent.len() == got.len() => {
            for (one, other) in sent.iter().zip(got) {
                values_differ(&format!("{place}[*]"), one, other, say);
            }
        }
        (sent, got) if sent == got => {}
        // `init` writes a conversion between numbers and their texts; of documents without one the
        // judge finds the type.
        (Value::Number(number), Value::String(text)) | (Value::String(text), Value::Number(number))
            if *text == number.to_string() => {}
        (sent, got) => say(place, format!("{sent} was sent, {got} arrives")),
    }
}

/// Runs the laws on one case. Returns what does not hold, each as one line.
fn faults(case: &Case, counts: &mut Counts) -> Vec<String> {
    counts.packs += 1;
    let compiled = match compiled(case) {
        Ok(compiled) => compiled,
        Err(why) => return vec![why],
    };
    let Some(pack) = &compiled.pack else {
        counts.refused += 1;
        for number in numbers(&compiled) {
            *counts.findings.entry(number).or_default() += 1;
        }
        return Vec::new();
    };
    let report = switchback_plan::report(pack);
    let judges = [0, 1].map(|side| Judge::new(&case.documents[side]));
    let pool = Pool::of(&case.documents);
    let mut faults = Vec::new();
    for (served, side) in report.sides.iter().enumerate() {
        let direction = &pack.directions[if served == 0 { SideId::OLD } else { SideId::NEW }];
        for (route, operation) in direction.routes.iter().zip(&side.operations) {
            counts.operations += 1;
            if operation.verdict == "not possible" {
                counts.not_possible += 1;
                continue;
            }
            if !matches!(route.kind, RouteKind::Pair(_)) {
                continue;
            }
            let mut losses = Losses::of(operation, served);
            counts.clean += usize::from(losses.is_clean);
            let key = operation.operation.clone();
            let crossing = Crossing { case, pack, served, id: route.id, key, judges: &judges, pool: &pool };
            let found = crossing.faults(operation, &mut losses, counts);
            if std::env::var_os("SWITCHBACK_DRAWN_SHOW").is_some() {
                for loss in &losses.listed {
                    println!("{} of {}: {loss:?}", operation.operation, side.side);
                }
            }
            let who = format!("{} of {}", operation.operation, side.side);
            for (kind, why) in found {
                let rows = case
                    .edits
                    .iter()
                    .filter(|edit| edit.uses.iter().any(|(of, _)| *of == operation.operation));
                let rows: BTreeSet<&str> = rows.map(|edit| edit.row).collect();
                let by_kind = counts.kinds.entry(format!("{rows:?}: {kind}")).or_insert((0, case.seed));
                by_kind.0 += 1;
                faults.push(format!("{who}: {kind} {why}"));
            }
            counts.losses += losses.listed.len();
            counts.witnessed += losses.witnessed.len();
        }
    }
    faults
}

/// One operation of a pack, which clients of `served` call.
struct Crossing<'c> {
    case: &'c Case,
    pack: &'c Arc<Pack>,
    served: usize,
    id: RouteId,
    key: String,
    judges: &'c [Judge<'c>; 2],
    pool: &'c Pool,
}

/// The findings of one exchange.
#[derive(Default)]
struct Exchange {
    /// Breaches of messages that arrived, and differences from those that were sent.
    arrived: Vec<(Message, Breach)>,
    /// The message that did not cross, and why.
    stopped: Option<(Message, String)>,
    /// Breaches that a stopped message would have been for its receiver, and values that a receiver
    /// passes over.
    spared: Vec<(Message, Breach)>,
    /// The answer that the client got.
    answer: Option<Parsed>,
}

/// Exchanges that are drawn without an aim.
const DRAWS: usize = 16;

/// Exchanges that are drawn for one loss, at most.
const AIMED_DRAWS: usize = 400;

impl Crossing<'_> {
    fn faults(
        &self,
        report: &OperationReport,
        losses: &mut Losses,
        counts: &mut Counts,
    ) -> BTreeMap<String, String> {
        let key = &self.key;
        let mut faults = BTreeMap::new();
        let edits: Vec<_> =
            self.case.edits.iter().filter(|edit| edit.uses.iter().any(|(of, _)| of == key)).collect();
        let narrowing = edits.iter().find_map(|edit| {
            let request = edit.narrows(key, Message::Request, self.served).then_some("requests");
            let answer = || edit.narrows(key, Message::Answer, 1 - self.served).then_some("answers");
            Some((edit.row, request.or_else(answer)?))
        });
        match (narrowing, losses.is_clean) {
            (Some((row, message)), true) => {
                faults.insert(
                    format!("exact without a loss, but `{row}` narrows its {message}"),
                    String::new(),
                );
            }
            (None, false) if edits.iter().all(|edit| edit.change == super::edits::SAME) => {
                let rows: Vec<&str> = edits.iter().map(|edit| edit.row).collect();
                let lost: Vec<_> = losses.listed.iter().map(|loss| (&loss.place, &loss.values)).collect();
                counts.wary.insert(format!("{rows:?} {:?}: {} {lost:?}", self.case.lines, report.verdict));
            }
            _ => {}
        }
        let mut rng = Rng::with_seed(self.case.seed ^ 0x5eed);
        for _ in 0..DRAWS {
            let nowhere = [Aim::default(), Aim::default()];
            let Some(exchange) = self.exchange(&mut rng, &nowhere, counts) else { continue };
            self.judge(&exchange, losses, &mut faults);
        }
        for at in 0..losses.listed.len() {
            self.witness(at, &mut rng, losses, &mut faults, counts);
        }
        faults
    }

    /// Looks for a message in which a listed loss shows. Two kinds of losses may have none:
    ///
    /// - Losses of an operation without an exchange: its document has no valid request, or the pack
    ///   refuses each. The report lists them all the same, since whether a request exists is not
    ///   decidable in general.
    /// - Values that a pattern of the sender excludes already. The compiler compares patterns as
    ///   texts and does not know which texts match them.
    fn witness(
        &self,
        at: usize,
        rng: &mut Rng,
        losses: &mut Losses,
        faults: &mut BTreeMap<String, String>,
        counts: &mut Counts,
    ) {
        let listed = &losses.listed[at];
        let (place, values) = (listed.place.clone(), listed.values.clone().unwrap_or_default());
        let (message, is_unfilled) = (listed.message, listed.is_unfilled());
        let mut aims = [Aim::default(), Aim::default()];
        aims[usize::from(message == Message::Answer)] = Aim::at(&place);
        let mut crossed = 0;
        for _ in 0..AIMED_DRAWS {
            if losses.witnessed.contains(&at) && !is_unfilled {
                return;
            }
            let Some(exchange) = self.exchange(rng, &aims, counts) else { continue };
            crossed += usize::from(!matches!(exchange.stopped, Some((Message::Request, _))));
            self.judge(&exchange, losses, faults);
            let Some(answer) = exchange.answer.filter(|_| is_unfilled) else { continue };
            match self.judges[self.served].lacks(&self.key, &answer, &place) {
                Some(true) => {
                    losses.witnessed.insert(at);
                    return;
                }
                Some(false) => {
                    faults.insert(format!("{place} arrives, and the report says `{values}`"), String::new());
                    return;
                }
                None => {}
            }
        }
        if crossed == 0 {
            *counts.excepted.entry("no request of the operation crosses").or_default() += 1;
        } else if is_by_pattern(&values, &self.case.documents) {
            *counts.excepted.entry("a pattern of the sender excludes the values").or_default() += 1;
        } else {
            faults.insert(format!("{message:?} loss without a witness: {place} {values}"), String::new());
        }
    }

    fn judge(&self, exchange: &Exchange, losses: &mut Losses, faults: &mut BTreeMap<String, String>) {
        for (message, breach) in &exchange.arrived {
            if !losses.excuse(*message, breach) {
                let kind = format!("{message:?} {} {}", breach.place, breach.keyword);
                faults.entry(kind).or_insert_with(|| breach.why.clone());
            }
        }
        if let (Some((message, why)), true) = (&exchange.stopped, losses.is_clean) {
            faults.insert(format!("{message:?} stopped"), why.clone());
        }
        for (message, breach) in &exchange.spared {
            losses.excuse(*message, breach);
        }
    }

    /// Draws one exchange, with the places that the request and the reply are to have; none where
    /// no request is drawn.
    fn exchange(&self, rng: &mut Rng, aims: &[Aim; 2], counts: &mut Counts) -> Option<Exchange> {
        let Crossing { case, served, key, pool, .. } = self;
        let (own, other) = (&self.judges[*served], &self.judges[1 - *served]);
        let sent = own.draw_request(pool, rng, key, &aims[0])?;
        let (mut reply, mut is_undrawn) = (None::<(String, Answered)>, false);
        let mut exchange = Exchange::default();
        let of =
            |message: Message, found: Vec<Breach>| found.into_iter().map(move |breach| (message, breach));
        let ended = run(self.pack, *served, self.id, &sent, &mut |call| {
            let called = call.operation.to_string();
            let (parsed, found) = other.request(&called, &asked(call));
            exchange.arrived.extend(of(Message::Request, found));
            let wanted = renamed(case, *served, own.request(key, &sent).0);
            exchange.arrived.extend(of(Message::Request, differences(&wanted, &parsed)));
            exchange.spared.extend(of(Message::Request, other.unread(&called, &asked(call), &wanted)));
            let answered = other.draw_answer(pool, rng, &called, &aims[1]);
            is_undrawn = answered.is_none();
            let answered = answered.unwrap_or_default();
            reply = Some((called, answered.clone()));
            answered
        });
        counts.exchanges += 1;
        if is_undrawn {
            return Some(exchange);
        }
        let Some((called, replied)) = reply else {
            if let Ended::Stopped(why) = ended {
                exchange.stopped = Some((Message::Request, why));
                let wanted = renamed(case, *served, own.request(key, &sent).0);
                exchange.spared.extend(of(Message::Request, other.unread(key, &sent, &wanted)));
            }
            return Some(exchange);
        };
        match ended {
            Ended::Answered(answered) => {
                let (got, mut found) = own.answer(key, &answered);
                let sent = renamed(case, 1 - served, other.answer(&called, &replied).0);
                if own.declares(key, replied.status) {
                    let is_known = |breach: &Breach| own.knows(key, &breach.place);
                    found.extend(differences(&sent, &got).into_iter().filter(is_known));
                }
                exchange.arrived.extend(of(Message::Answer, of_error(found, answered.status)));
                exchange.answer = Some(got);
            }
            Ended::Stopped(why) => {
                exchange.stopped = Some((Message::Answer, why));
                let found = of_error(own.answer(key, &replied).1, replied.status);
                exchange.spared.extend(of(Message::Answer, found));
            }
        }
        Some(exchange)
    }
}

/// The report tells the bodies of errors from those of successes.
fn of_error(mut found: Vec<Breach>, status: u16) -> Vec<Breach> {
    let of_body = found.iter_mut().filter(|breach| status >= 400 && breach.place.starts_with('$'));
    of_body.for_each(|breach| breach.place = format!("error body {}", breach.place));
    found
}

/// A message of `sender` under the names of the other side.
fn renamed(case: &Case, sender: usize, mut message: Parsed) -> Parsed {
    for edit in case.edits.iter().filter(|edit| edit.row == "renamed member") {
        let name = case.documents[1 - edit.side].pointer("/components/schemas/Thing/properties");
        let Some(name) = name.and_then(Value::as_object).and_then(|members| members.keys().next()) else {
            continue;
        };
        let (from, to) =
            if sender == edit.side { ("renamed", name.as_str()) } else { (name.as_str(), "renamed") };
        let mut rename = |value: &mut Value| {
            if let Some(members) = value.as_object_mut()
                && let Some(moved) = members.remove(from)
            {
                members.insert(to.to_owned(), moved);
            }
        };
        match &mut message.body {
            Some(Value::Array(items)) => items.iter_mut().for_each(&mut rename),
            Some(value) => rename(value),
            None => {}
        }
    }
    message
}

/// All laws on packs that are drawn. The campaign: `SWITCHBACK_DRAWN_PACKS=2000 cargo test --test
/// integration exchange_laws`; `SWITCHBACK_DRAWN_FROM` is the first seed, `SWITCHBACK_DRAWN_SHOW=1`
/// prints the packs.
#[test]
fn what_a_report_promises_holds_for_every_exchange() {
    let setting =
        |name: &str, usual| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok()).unwrap_or(usual);
    let (count, first) = (setting("SWITCHBACK_DRAWN_PACKS", 60), setting("SWITCHBACK_DRAWN_FROM", 1));
    let mut counts = Counts::default();
    let mut failed = Vec::new();
    for seed in first..first + count {
        let case = case(seed);
        if std::env::var_os("SWITCHBACK_DRAWN_SHOW").is_some() {
            println!("{}", case.files());
        }
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| faults(&case, &mut counts)));
        let found = found.unwrap_or_else(|_| vec!["panics".to_owned()]);
        if !found.is_empty() {
            failed.push(format!("{}    {}", case.description(), found.join("\n    ")));
        }
    }
    println!(
        "{} packs, {} refused {:?}; {} operations, {} not possible, {} exact without a loss; {} exchanges; {} of {} losses have a witness, others {:?}",
        counts.packs,
        counts.refused,
        counts.findings,
        counts.operations,
        counts.not_possible,
        counts.clean,
        counts.exchanges,
        counts.witnessed,
        counts.losses,
        counts.excepted,
    );
    for wary in &counts.wary {
        println!("wary: {wary}");
    }
    for (kind, (count, seed)) in &counts.kinds {
        println!("{count} times, first of seed {seed}: {kind}");
    }
    assert!(failed.is_empty(), "{} packs break a law:\n{}", failed.len(), failed.join("\n"));
}
