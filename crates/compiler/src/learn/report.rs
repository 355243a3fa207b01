//! The findings as Markdown for people and as JSON for tools.

use super::evidence::{BITS_MIN, DISTINCT_MIN};
use super::guesses::GuessWitness;
use super::model::{Confidence, Learned, LearnedLine};
use crate::init::{DecisionGroup, DecisionTraffic};
use serde_json::{Value as Serde, json};
use std::fmt::Write as _;

/// Renders the findings, and the traffic about the decisions of a draft, as Markdown.
pub fn to_markdown(learned: &Learned, guesses: &[GuessWitness], decisions: &[DecisionGroup]) -> String {
    let [old, new] = &learned.sides;
    let [a, b] = learned.calls;
    let mut text = format!(
        "# Learned from traffic\n\n{a} calls of {old}, {b} calls of {new}; {} calls match no operation of their contract. \
         These lines are proposals. `switchback learn … --accept ID` writes one into the pack, `--accept sure` all sure ones.\n",
        learned.unknown
    );
    let of = |confidence: Confidence| learned.lines.iter().filter(move |line| line.confidence == confidence);
    let sure = format!(
        "At least {DISTINCT_MIN} different values, or every row of a table three times; {BITS_MIN} bits of information; no contradiction; no other explanation; types that are each other's best counterpart."
    );
    section(&mut text, "Sure", &sure, of(Confidence::Sure).map(|line| line_text(line, &learned.sides)));
    let likely = "The values agree, but they are few, some contradict, another explanation is as good, or another type is the better counterpart.";
    section(&mut text, "Likely", likely, of(Confidence::Likely).map(|line| line_text(line, &learned.sides)));
    let joins = learned.joins.iter().map(|join| {
        let conversion = join.conversion.as_ref().map_or_else(String::new, |how| format!(" as `{how}`"));
        format!(
            "`{}: {}` is `{}` of `{}`, found by `{}`{conversion}: {} values agree, {} different ones",
            join.ty, join.place, join.found, join.operation, join.via, join.supports, join.distinct
        )
    });
    section(
        &mut text,
        "Members of another answer",
        "A `serve` route with a second call supplies them.",
        joins,
    );
    let guesses = guesses.iter().map(|one| {
        let verdict = match one.holds {
            Some(true) => "supported",
            Some(false) => "contradicted",
            None => "open",
        };
        format!("{verdict}: `{}` as `{}` ({}): {}", one.guess[0], one.guess[1], one.id, one.why)
    });
    section(&mut text, "Guesses of the draft", "The ids are those of `DECISIONS.md`.", guesses);
    let conflicts = learned.conflicts.iter().map(|one| {
        format!("`{}` of `{}` and `{}`, in {} objects", one.place, one.types[0], one.types[1], one.objects)
    });
    section(&mut text, "Equal names, unrelated values", "These members need a decision.", conflicts);
    let links = learned.links.iter().map(|link| {
        let [old, new] = &link.operations;
        format!(
            "`{old}` and `{new}`: {} resources, {:.0} % of the values agree",
            link.objects,
            link.agreement * 100.0
        )
    });
    section(&mut text, "Operations with the same resources", "The best counterpart of each.", links);
    let decisions = decisions.iter().filter_map(|one| {
        let traffic = one.traffic.filter(|traffic| traffic.calls > 0)?;
        let operations = match one.cases.as_slice() {
            [only] => format!("`{}`", only.operation),
            several => format!("{} operations", several.len()),
        };
        Some(format!("{}: {operations}: {} ({})", traffic.render(), one.text, one.ids().join(", ")))
    });
    let about = "The open decisions of `DECISIONS.md` about operations with calls.";
    section(&mut text, "Decisions by calls", about, decisions);
    let called = learned.operations.iter().filter(|one| one.calls > 0);
    let called = called.map(|one| {
        let traffic = DecisionTraffic { calls: one.calls, clients: one.clients.len() };
        format!("`{}`: {}", one.operation, traffic.render())
    });
    section(&mut text, "Operations by calls", "Calls and different clients in this traffic.", called);
    let idle = learned.operations.iter().filter(|one| one.calls == 0);
    section(
        &mut text,
        "Operations without calls",
        "No client called them in this traffic.",
        idle.map(|one| format!("`{}`", one.operation)),
    );
    text
}

fn section(text: &mut String, title: &str, about: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.collect();
    if !lines.is_empty() {
        // Writing to a text cannot fail.
        let _ = write!(text, "\n## {title}\n\n{about}\n\n");
        lines.iter().for_each(|line| _ = writeln!(text, "- {line}"));
    }
}

fn line_text(line: &LearnedLine, sides: &[String; 2]) -> String {
    let copy = if line.is_copy { "copy " } else { "" };
    let mut text = format!(
        "`{}` to `{}`: {copy}`{}` ({}): {} values agree, {} different ones, {} contradict",
        line.types[0],
        line.types[1],
        line.render(sides),
        line.id,
        line.supports,
        line.distinct,
        line.against
    );
    if let Some([old, new]) = &line.through {
        let answers = if old == new { format!("`{old}`") } else { format!("`{old}` and `{new}`") };
        let _ = write!(text, "; a member of a request, whose values answers of {answers} repeat");
    }
    if !line.rivals.is_empty() {
        let _ = write!(text, "; also {}", line.rivals.join(", "));
    }
    text
}

/// Renders the findings, and the traffic about the decisions of a draft, as JSON.
pub fn to_json(learned: &Learned, guesses: &[GuessWitness], decisions: &[DecisionGroup]) -> Serde {
    let lines = learned.lines.iter().map(|line| {
        json!({
            "id": line.id,
            "types": line.types,
            "places": line.places,
            "as": line.conversion,
            "defaults": line.defaults,
            "copy": line.is_copy,
            "line": line.render(&learned.sides),
            "confidence": if line.confidence == Confidence::Sure { "sure" } else { "likely" },
            "supports": line.supports,
            "against": line.against,
            "distinct": line.distinct,
            "bits": line.bits.round(),
            "rivals": line.rivals,
            "through": line.through,
        })
    });
    let joins = learned.joins.iter().map(|join| {
        json!({
            "type": join.ty,
            "place": join.place,
            "via": join.via,
            "operation": join.operation,
            "found": join.found,
            "as": join.conversion,
            "supports": join.supports,
            "distinct": join.distinct,
        })
    });
    let guesses = guesses
        .iter()
        .map(|one| json!({"id": one.id, "guess": one.guess, "holds": one.holds, "why": one.why}));
    let decisions = decisions.iter().filter_map(|one| {
        let DecisionTraffic { calls, clients } = one.traffic?;
        let operations: Vec<&str> = one.cases.iter().map(|case| case.operation.as_str()).collect();
        Some(json!({"ids": one.ids(), "text": one.text, "operations": operations, "calls": calls, "clients": clients}))
    });
    let operations = learned.operations.iter().map(|one| {
        json!({"operation": one.operation, "calls": one.calls, "clients": one.clients.len(), "client_numbers": one.clients})
    });
    let links = learned.links.iter().map(|link| {
        json!({"operations": link.operations, "keys": link.keys, "objects": link.objects, "agreement": link.agreement})
    });
    let conflicts = learned
        .conflicts
        .iter()
        .map(|one| json!({"types": one.types, "place": one.place, "objects": one.objects}));
    let same = learned.same.iter().map(|one| json!({"types": one.types, "place": one.places[0]}));
    json!({
        "sides": learned.sides,
        "calls": learned.calls,
        "unknown": learned.unknown,
        "lines": lines.collect::<Vec<_>>(),
        "joins": joins.collect::<Vec<_>>(),
        "guesses": guesses.collect::<Vec<_>>(),
        "decisions": decisions.collect::<Vec<_>>(),
        "operations": operations.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
        "same": same.collect::<Vec<_>>(),
        "conflicts": conflicts.collect::<Vec<_>>(),
    })
}
