//! Renders a draft: `pack.yaml`, routes, the list of decisions.

use super::bodies::{RouteDraft, quote};
use super::operations::{PairCandidate, Tier};
use super::{Decision, DecisionCase, DecisionGroup, DraftCounts, SideDocument, Weight, paging};
use crate::contract::{Contract, Contracts};
use crate::yaml::{self, Node};
use std::collections::{BTreeMap, BTreeSet};
use switchback_plan::Loss;

/// Renders `pack.yaml`. `contracts`, once they are read, provide the form of errors.
pub(super) fn manifest(
    pack: &str,
    sides: &[SideDocument; 2],
    rest: &str,
    contracts: Option<&Contracts>,
) -> String {
    let [old, new] = sides;
    let (a, b) = (quote(&old.name), quote(&new.name));
    let mut text = String::new();
    text.push_str(&format!("pack: {}\n", quote(pack)));
    text.push_str(&format!("sides: {{old: {a}, new: {b}}}\n"));
    text.push_str(&format!("contracts: {{{a}: {}, {b}: {}}}\n", quote(&old.document), quote(&new.document)));
    text.push_str(&format!("serves: [{a}]                 # clients speak {}\n", old.name));
    text.push_str("identical: keep               # what is equal on both sides needs no line\n");
    text.push_str(&format!("rest: {rest}                  # what no route answers\n"));
    text.push_str("credentials:\n");
    for side in sides {
        let carriers = carriers(side);
        let name = quote(&side.name);
        // A single header field has a shorter notation.
        if let [TokenLocation::Header { name: header, scheme }] = &carriers[..] {
            let header = quote(header);
            text.push_str(&format!("  {name}: {{read: [{header}], send: {header}, scheme: {scheme}}}\n"));
            continue;
        }
        // All carriers are read; the first one is sent.
        let read: Vec<String> = carriers.iter().map(TokenLocation::render).collect();
        text.push_str(&format!("  {name}: {{read: [{}], send: {}}}\n", read.join(", "), read[0]));
    }
    text.push_str("languages: [en]\n");
    if let Some((words, Some(line))) = contracts.and_then(|[_, new]| paging::usual(new)) {
        text.push_str(&format!(
            "# Lists of {} are paged {words}. For `pages:`, look at first and size:\n",
            new.name
        ));
        text.push_str(&format!("# {line}\n"));
    }
    let body = contracts
        .map_or_else(|| "{message: $text}".to_owned(), |[old, _]| super::error_form::draft(old).body);
    text.push_str(&format!("errors: {{body: {body}}}\n"));
    text.push_str("refuse: {legacy: forward, status: 501}\n");
    text
}

/// The location of a token according to the document.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TokenLocation {
    Header { name: String, scheme: String },
    Basic,
    Query(String),
}

impl TokenLocation {
    fn bearer() -> TokenLocation {
        TokenLocation::Header { name: "authorization".to_owned(), scheme: "Bearer".to_owned() }
    }

    /// Returns the header field, if it is one.
    pub(super) fn header(&self) -> Option<&str> {
        match self {
            TokenLocation::Header { name, .. } => Some(name),
            TokenLocation::Basic => Some("authorization"),
            TokenLocation::Query(_) => None,
        }
    }

    /// Formats the carrier for a pack.
    fn render(&self) -> String {
        match self {
            TokenLocation::Header { name, scheme } => {
                format!("{{header: {}, scheme: {}}}", quote(name), quote(scheme))
            }
            // OpenAPI cannot declare that the user or the password is ignored.
            TokenLocation::Basic => "{basic: both}".to_owned(),
            TokenLocation::Query(name) => format!("{{query: {}}}", quote(name)),
        }
    }
}

/// Returns the locations of a side's token from the security schemes of its document, in order. The
/// default is a bearer token, if the document has no scheme that packs support.
pub(super) fn carriers(side: &SideDocument) -> Vec<TokenLocation> {
    let mut found = Vec::new();
    for carrier in security_schemes(side).unwrap_or_default() {
        if !found.contains(&carrier) {
            found.push(carrier);
        }
    }
    if found.is_empty() {
        found.push(TokenLocation::bearer());
    }
    found
}

fn security_schemes(side: &SideDocument) -> Option<Vec<TokenLocation>> {
    let (name, bytes) = side.files.iter().find(|(name, _)| *name == side.document)?;
    let (mut sources, mut findings) = (crate::diagnostic::Sources::new(), crate::diagnostic::Findings::new());
    let root = yaml::read_document(&mut sources, name, bytes, &mut findings)?;
    let schemes = root
        .get("components")
        .and_then(|components| components.get("securitySchemes"))
        .or_else(|| root.get("securityDefinitions"))
        .and_then(Node::as_map)?;
    Some(schemes.iter().filter_map(|(_, scheme)| carrier(scheme)).collect())
}

fn carrier(written: &Node) -> Option<TokenLocation> {
    let text = |key: &str| written.get(key).and_then(Node::as_str).unwrap_or("");
    let (place, name, scheme) = (text("in"), text("name"), text("scheme"));
    match text("type") {
        "apiKey" if place == "query" && !name.is_empty() => Some(TokenLocation::Query(name.to_owned())),
        "apiKey" if place == "header" => {
            let name = http::HeaderName::from_bytes(name.as_bytes()).ok()?.as_str().to_owned();
            // An API key in another field has no scheme. The scheme before a key in `Authorization`
            // is not declared; assume `Bearer`.
            Some(match name.as_str() {
                "authorization" => TokenLocation::bearer(),
                _ => TokenLocation::Header { name, scheme: "none".to_owned() },
            })
        }
        "basic" => Some(TokenLocation::Basic),
        "http" if scheme.eq_ignore_ascii_case("basic") => Some(TokenLocation::Basic),
        "http" if scheme.is_empty() || scheme.eq_ignore_ascii_case("bearer") => Some(TokenLocation::bearer()),
        "http" => Some(TokenLocation::Header { name: "authorization".to_owned(), scheme: scheme.to_owned() }),
        "oauth2" | "openIdConnect" => Some(TokenLocation::bearer()),
        _ => None,
    }
}

/// Renders one route of a mapping file.
pub(super) fn route(route: &RouteDraft, candidate: &PairCandidate<'_>, sides: &[SideDocument; 2]) -> String {
    let mut text = String::new();
    if candidate.tier == Tier::Guess {
        text.push_str(&format!("  # look: {}\n", candidate.why.replace('\n', " ")));
    }
    let [old, new] = [candidate.old, candidate.new].map(|operation| quote(&operation.key.to_string()));
    let (a, b) = (quote(&sides[0].name), quote(&sides[1].name));
    text.push_str(&format!("  - pair: {{{a}: {old}, {b}: {new}, front: {a}}}\n"));
    for line in &route.lines {
        text.push_str(&format!("    {line}\n"));
    }
    text
}

/// The owner of a line in a drafted file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineOwner {
    /// The route, by the old side's operation.
    Route(String),
    Shape(String),
    Nobody,
}

/// Returns the owner of a line (1-based).
pub(super) fn owner(text: &str, line: usize) -> LineOwner {
    let shapes = text.starts_with("mapping: 1\nshapes:");
    let before: Vec<&str> = text.lines().take(line).collect();
    let unquoted = |text: &str| text.trim().trim_matches('\'').replace("''", "'");
    for line in before.into_iter().rev() {
        if shapes {
            let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '));
            if let Some(name) = name.and_then(|rest| rest.strip_suffix(':')) {
                return LineOwner::Shape(unquoted(name));
            }
        } else if let Some(pair) = line.strip_prefix("  - pair: {") {
            let value = pair.split_once(": ").map_or("", |(_, rest)| rest);
            // The key is always quoted, because it contains a space.
            let inner = value.strip_prefix('\'').unwrap_or(value);
            let key = inner.split_once("', ").map_or(inner, |(key, _)| key);
            return LineOwner::Route(key.replace("''", "'"));
        }
    }
    LineOwner::Nobody
}

/// Describes a part of the messages that does not go over.
pub(super) fn loss(loss: &Loss) -> String {
    let Loss { side, place, partly, narrow, instead, .. } = loss;
    // The name alone: the place differs from operation to operation.
    let name = match place.strip_prefix('$') {
        Some("") => "the body",
        Some(path) => path.rsplit(['.', '\'']).find(|part| !part.is_empty() && *part != "]").unwrap_or(path),
        None => place,
    };
    let what = match (narrow, instead, partly) {
        (Some(narrow), _, _) => narrow.values.clone(),
        (None, Some(value), _) => format!("always {value}"),
        (None, None, true) => "not all of its values go over as they are".to_owned(),
        (None, None, false) => "it does not go over".to_owned(),
    };
    format!("`{name}` of {side}: {what}")
}

/// Renders the list of decisions as Markdown.
pub(super) fn decisions(summary: &str, joined: &[DecisionGroup], files: &BTreeMap<&str, &str>) -> String {
    let mut text = format!("# Decisions\n\n{summary}");
    let parts = [
        (
            Weight::Blocker,
            "Refused until decided",
            "Write a route, or leave it refused. The lines below a question are its choices; the file below an operation contains the first choice of each, passes `switchback check`, and is ready to be pasted as a file whose name ends in `.map.yaml`.",
        ),
        (
            Weight::Proposal,
            "Guesses, not written",
            "`switchback init --accept ID` writes one. An operation is refused until its guess is accepted or it has a route of your own; a guess with a mapping file below it can be pasted, edited and kept as a file whose name ends in `.map.yaml`.",
        ),
        (Weight::Look, "Served: have a look", "Each line says what was taken for granted."),
        (
            Weight::Changed,
            "Passes, but changed",
            "The operations are served. These parts of their messages do not go over, or one contract does not take them.",
        ),
    ];
    for (weight, title, what) in parts {
        let of: Vec<&DecisionGroup> = joined.iter().filter(|group| group.weight == weight).collect();
        if of.is_empty() {
            continue;
        }
        let cases: usize = of.iter().map(|group| group.cases.len()).sum();
        text.push_str(&format!("\n## {title} ({cases})\n\n{what}\n\n"));
        of.iter().for_each(|group| self::group(group, &mut text));
        let operations: BTreeSet<&str> =
            of.iter().flat_map(|group| &group.cases).map(|case| case.operation.as_str()).collect();
        for (operation, lines) in files.iter().filter(|(operation, _)| operations.contains(*operation)) {
            text.push_str(&format!("\n`{operation}`:\n\n{}", block(lines)));
        }
    }
    text
}

/// Renders one question with its operations, places and choices.
fn group(group: &DecisionGroup, text: &mut String) {
    let places: Vec<String> =
        group.places.iter().flatten().map(|place| format!("{}:{}", place.file, place.line)).collect();
    let places = if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) };
    let accept = |case: &DecisionCase| {
        let proposal = case.proposal.as_ref().map(|proposal| format!(" To {proposal}: `{}`.", case.id));
        proposal.unwrap_or_default()
    };
    let at = |case: &DecisionCase| match case.at.as_slice() {
        [] => String::new(),
        all => format!(" at {}", all.iter().map(|at| format!("`{at}`")).collect::<Vec<_>>().join(", ")),
    };
    let traffic = group.traffic.map(|traffic| format!(" {}.", traffic.render())).unwrap_or_default();
    match group.cases.as_slice() {
        [case] => text.push_str(&format!(
            "- `{}`{}: {}.{traffic}{}{places}\n",
            case.operation,
            at(case),
            group.text,
            accept(case)
        )),
        cases => {
            text.push_str(&format!("- {} operations: {}.{traffic}{places}\n", cases.len(), group.text));
            for case in cases {
                text.push_str(&format!("  - `{}`{}{}\n", case.operation, at(case), accept(case)));
            }
        }
    }
    for choice in &group.choices {
        text.push_str(&format!("  - {}: `{}`\n", choice.label, choice.line));
    }
}

/// Maximum number of lines of a mapping file in the list. Longer ones are in the JSON alone.
const LINES_SHOWN: usize = 80;

/// Renders a mapping file as a block.
fn block(lines: &str) -> String {
    let count = lines.lines().count();
    if count > LINES_SHOWN {
        return format!("  {count} lines, in `{}`\n", super::DECISIONS_JSON);
    }
    let indented: String = lines.lines().map(|line| format!("  {line}\n")).collect();
    format!("  ```yaml\n{indented}  ```\n")
}

/// Maximum number of reasons in a summary.
const REASONS_SHOWN: usize = 8;
/// Maximum length of a reason in a summary, in characters.
const REASON_CHARS: usize = 160;

/// Renders the summary for management: progress, obstacles, and required decisions.
pub(super) fn summary(
    sides: &[SideDocument; 2],
    counts: &DraftCounts,
    decisions: &[Decision],
    contracts: [&Contract; 2],
) -> String {
    let share = |count: usize| (count * 100).checked_div(counts.operations).unwrap_or(0);
    let [old, new] = sides.each_ref().map(|side| side.name.as_str());
    let done = counts.untouched + counts.written;
    let mut text = format!(
        "Of the {} operations that clients of {old} call, {done} ({} %) are answered by {new} without an open decision.\n\n",
        counts.operations,
        share(done)
    );
    text.push_str(&format!(
        "| Operations of the old side | {} | |\n|---|---|---|\n| served untouched | {} | {} % |\n| served by lines that are sure | {} | {} % |\n| served, to be looked at | {} | {} % |\n| refused until decided | {} | {} % |\n",
        counts.operations,
        counts.untouched,
        share(counts.untouched),
        counts.written,
        share(counts.written),
        counts.marked,
        share(counts.marked),
        counts.refused,
        share(counts.refused),
    ));
    if counts.refused_by_lines > 0 {
        let by_lines = counts.refused_by_lines;
        text.push_str(&format!("| refused for good | {by_lines} | {} % |\n", share(by_lines)));
    }
    let of = |weight: Weight| decisions.iter().filter(move |decision| decision.weight == weight);
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for decision in of(Weight::Blocker) {
        *reasons.entry(&decision.text).or_default() += 1;
    }
    let mut reasons: Vec<(&str, usize)> = reasons.into_iter().collect();
    // The most frequent reasons first.
    reasons.sort_by_key(|(text, count)| (std::cmp::Reverse(*count), *text));
    if !reasons.is_empty() {
        text.push_str("\nWhat the refused ones wait for:\n\n");
    }
    for (reason, count) in reasons.iter().take(REASONS_SHOWN) {
        let end = reason.char_indices().nth(REASON_CHARS);
        let short = end.map_or_else(|| (*reason).to_owned(), |(end, _)| format!("{} …", &reason[..end]));
        let plural = if *count == 1 { "operation" } else { "operations" };
        text.push_str(&format!("- {count} {plural}: {short}\n"));
    }
    if let Some(more) = reasons.len().checked_sub(REASONS_SHOWN).filter(|more| *more > 0) {
        text.push_str(&format!("- {more} other reasons\n"));
    }
    let likely = of(Weight::Proposal).count();
    if likely > 0 {
        text.push_str(&format!(
            "\n{likely} guesses wait for a yes or no in `DECISIONS.md`, with the evidence. None of them is served.\n"
        ));
    }
    let [a, b] = contracts.map(|contract| paging::usual(contract).map(|(words, _)| words));
    if let (Some(a), Some(b)) = (a, b) {
        text.push_str(&format!("\nMost lists are paged {a} on the old side, and {b} on the new one.\n"));
    }
    text
}
