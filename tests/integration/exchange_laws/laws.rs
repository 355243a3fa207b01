//! The laws, and the test that runs them on drawn packs.

use super::draw::{Case, Lines, Message, SIDES, case};
use super::judge::{Answered, Breach, Judge, Parsed};
use super::services::{Ended, asked, run};
use super::values::Pool;
use fastrand::Rng;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use switchback_compiler::init;
use switchback_compiler::mapping::load::PackSource;
use switchback_compiler::mapping::{Compiled, compile};
use switchback_plan::{OperationReport, Pack, RouteKind, SideId};

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

/// The pack of a case, compiled. `init` drafts it where the case says so; the error says that `check` refuses the draft.
fn compiled(case: &Case) -> Result<Compiled, String> {
    if case.lines != Lines::Drafted {
        return Ok(compile(&source(case)));
    }
    let sides = [0, 1].map(|side| init::Side {
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
    compiled.findings.sorted().iter().map(|finding| finding.code.number()).collect()
}

/// One place of a report that excuses a breach or a difference.
struct Excuses<'r> {
    report: &'r OperationReport,
    witnessed: BTreeSet<usize>,
}

impl Excuses<'_> {
    fn is_clean(&self) -> bool {
        let report = self.report;
        report.verdict == "exact" && report.lost.is_empty() && report.without_source.is_empty()
    }

    /// Whether the report lists a loss at this place, around it or, where an object as a whole is wrong, within it.
    fn excuse(&mut self, place: &str, keyword: &str) -> bool {
        let places = self.report.lost.iter().map(|loss| &loss.place);
        let all: Vec<&String> =
            places.chain(self.report.without_source.iter().map(|gap| &gap.place)).collect();
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
        let found: Vec<usize> = all
            .iter()
            .enumerate()
            .filter(|(_, listed)| {
                is_within(place, listed) || (of_objects.contains(&keyword) && is_within(listed, place))
            })
            .map(|(at, _)| at)
            .collect();
        self.witnessed.extend(&found);
        !found.is_empty()
    }
}

/// Whether the report calls an operation of the old side exact, and lists nothing that is lost.
pub fn is_exact(pack: &Pack, key: &str) -> bool {
    let report = switchback_plan::report(pack);
    let found = report.sides[0].operations.iter().find(|operation| operation.operation == key);
    found.is_some_and(|report| Excuses { report, witnessed: BTreeSet::new() }.is_clean())
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
            let mut excuses = Excuses { report: operation, witnessed: BTreeSet::new() };
            counts.clean += usize::from(excuses.is_clean());
            let found = operation_faults(case, pack, served, &judges, &pool, &mut excuses, counts);
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
            counts.losses += operation.lost.len() + operation.without_source.len();
            counts.witnessed += excuses.witnessed.len();
        }
    }
    faults
}

fn operation_faults(
    case: &Case,
    pack: &Arc<Pack>,
    served: usize,
    judges: &[Judge<'_>; 2],
    pool: &Pool,
    excuses: &mut Excuses<'_>,
    counts: &mut Counts,
) -> BTreeMap<String, String> {
    let key = excuses.report.operation.clone();
    let mut faults = BTreeMap::new();
    let edits: Vec<_> = case.edits.iter().filter(|edit| edit.uses.iter().any(|(of, _)| *of == key)).collect();
    let narrowing = edits.iter().find_map(|edit| {
        let request = edit.narrows(&key, Message::Request, served).then_some("requests");
        let answer = || edit.narrows(&key, Message::Answer, 1 - served).then_some("answers");
        Some((edit.row, request.or_else(answer)?))
    });
    match (narrowing, excuses.is_clean()) {
        (Some((row, message)), true) => {
            faults.insert(format!("exact without a loss, but `{row}` narrows its {message}"), String::new());
        }
        (None, false) if edits.iter().all(|edit| edit.change == super::edits::SAME) => {
            let rows: Vec<&str> = edits.iter().map(|edit| edit.row).collect();
            let lost: Vec<_> = excuses.report.lost.iter().map(|loss| (&loss.place, &loss.values)).collect();
            counts.wary.insert(format!("{rows:?} {:?}: {} {lost:?}", case.lines, excuses.report.verdict));
        }
        _ => {}
    }
    let side = if served == 0 { SideId::OLD } else { SideId::NEW };
    let route = pack.directions[side].routes.iter().find(|route| route.operation.key.to_string() == key);
    let Some(route) = route else { return faults };
    let mut rng = Rng::with_seed(case.seed ^ 0x5eed);
    for _ in 0..16 {
        let Some(sent) = judges[served].draw_request(pool, &mut rng, &key) else { continue };
        let (mut reply, mut is_undrawn) = (None::<(String, Answered)>, false);
        let mut breaches = Vec::new();
        let ended = run(pack, served, route.id, &sent, &mut |call| {
            let called = call.operation.to_string();
            let (parsed, found) = judges[1 - served].request(&called, &asked(call));
            breaches.extend(found);
            let wanted = judges[served].request(&key, &sent).0;
            let wanted = renamed(case, served, wanted);
            breaches.extend(differences(&wanted, &parsed));
            let answered = judges[1 - served].draw_answer(pool, &mut rng, &called);
            is_undrawn = answered.is_none();
            let answered = answered.unwrap_or_default();
            reply = Some((called, answered.clone()));
            answered
        });
        counts.exchanges += 1;
        let mut hold = |message: &str, breaches: &[Breach], excuses: &mut Excuses<'_>| {
            for breach in breaches {
                if !excuses.excuse(&breach.place, &breach.keyword) {
                    let kind = format!("{message} {} {}", breach.place, breach.keyword);
                    faults.entry(kind).or_insert_with(|| breach.why.clone());
                }
            }
        };
        hold("request", &breaches, excuses);
        if is_undrawn {
            continue;
        }
        let Some((called, replied)) = reply else {
            if let (Ended::Stopped(why), true) = (&ended, excuses.is_clean()) {
                faults.insert("request stopped".to_owned(), why.clone());
            }
            continue;
        };
        match ended {
            Ended::Answered(answered) => {
                let (got, mut found) = judges[served].answer(&key, &answered);
                let sent = renamed(case, 1 - served, judges[1 - served].answer(&called, &replied).0);
                if judges[served].declares(&key, replied.status) {
                    let is_known = |breach: &Breach| judges[served].knows(&key, &breach.place);
                    found.extend(differences(&sent, &got).into_iter().filter(is_known));
                }
                // The report tells the bodies of errors from those of successes.
                if answered.status >= 400 {
                    let of_body = found.iter_mut().filter(|breach| breach.place.starts_with('$'));
                    of_body.for_each(|breach| breach.place = format!("error body {}", breach.place));
                }
                hold("answer", &found, excuses);
            }
            Ended::Stopped(why) if excuses.is_clean() => {
                faults.insert("answer stopped".to_owned(), why);
            }
            Ended::Stopped(_) => {}
        }
    }
    faults
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

/// All laws on packs that are drawn. The campaign: `SWITCHBACK_DRAWN_PACKS=2000 cargo test --test integration exchange_laws`;
/// `SWITCHBACK_DRAWN_FROM` is the first seed, `SWITCHBACK_DRAWN_SHOW=1` prints the packs.
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
        "{} packs, {} refused {:?}; {} operations, {} not possible, {} exact without a loss; {} exchanges; {} of {} losses seen",
        counts.packs,
        counts.refused,
        counts.findings,
        counts.operations,
        counts.not_possible,
        counts.clean,
        counts.exchanges,
        counts.witnessed,
        counts.losses,
    );
    for wary in &counts.wary {
        println!("wary: {wary}");
    }
    for (kind, (count, seed)) in &counts.kinds {
        println!("{count} times, first of seed {seed}: {kind}");
    }
    assert!(failed.is_empty(), "{} packs break a law:\n{}", failed.len(), failed.join("\n"));
}
