//! The decisions of a drafted pack, read-only: `switchback decide` makes them on the terminal.

use super::PageContext;
use super::layout::{empty, page_slice, pager};
use super::words::{Tone, badge, count, count_noun, operation};
use maud::{Markup, html};
use switchback_compiler::init::{DECISIONS_JSON, DecisionCase, DecisionGroup, Weight};

/// Decisions per page.
const LISTED: usize = 100;

/// Renders the list in the order of `DECISIONS.json`. `folder` is that of the pack.
pub(super) fn list(visit: &PageContext<'_>, folder: &str, decisions: Option<&[DecisionGroup]>) -> Markup {
    let Some(all) = decisions else {
        let why = html! { "The folder of this pack has no readable " code { (DECISIONS_JSON) } ". " code { "switchback init" } " writes it when it drafts a pack." };
        return html! { section.panel #decisions { (empty("No decisions", &why)) } };
    };
    let asked = visit.query.get("q").to_lowercase();
    let is_found = |group: &&DecisionGroup| {
        let names = group.cases.iter().flat_map(|case| [&case.operation, &case.id]);
        names.chain([&group.text]).any(|text| text.to_lowercase().contains(&asked))
    };
    let found: Vec<&DecisionGroup> = all.iter().filter(is_found).collect();
    let of_page = page_slice(&found, visit.query.page(), LISTED);
    let open = all.iter().filter(|group| group.is_open()).count();
    html! {
        section.panel #decisions {
            header {
                h2 { "Decisions" }
                span.soft { (count_noun(open as u64, "question")) " open, " (count((all.len() - open) as u64)) " to review" }
            }
            @if open > 0 { p { "Run " code { "switchback decide " (folder) } " where the pack is edited, then reload." } }
            div.scroll role="region" aria-label="Decisions" tabindex="0" { table {
                thead { tr { th { "Decision" } th { "Operations" } th.n { "Calls" } th.n { "Clients" } th { "Difference" } th { "Choices" } } }
                tbody { @for group in of_page { (row(group)) } }
            } }
            (pager(visit, of_page.len(), found.len(), LISTED))
        }
    }
}

fn row(group: &DecisionGroup) -> Markup {
    let (tone, word) = match group.weight {
        Weight::Blocker => (Tone::Bad, "refused until decided"),
        Weight::Proposal => (Tone::Warn, "proposal"),
        Weight::Look => (Tone::Busy, "to review"),
        Weight::Changed => (Tone::Quiet, "passes, but changed"),
    };
    let ids = group.ids();
    let proposal = group.cases.iter().find_map(|case| case.proposal.as_ref());
    html! {
        tr id={ "decision-" (ids.first().map_or("", String::as_str)) } {
            td { (badge(tone, word)) @if group.is_open() { @for id in ids.iter().take(1) { " " code { (id) } } } }
            td { (operations(&group.cases)) }
            td.n { @match group.traffic { Some(traffic) => (count(traffic.calls)), None => span.soft { "–" } } }
            td.n { @match group.traffic { Some(traffic) => (count(traffic.clients as u64)), None => span.soft { "–" } } }
            td {
                (marked(&group.text))
                @for place in group.places.iter().flatten() { " " span.place { (place.file) ":" (place.line) } }
            }
            td {
                @if let Some(proposal) = proposal { p { "accept: " (marked(proposal)) } }
                @for choice in &group.choices { p { (marked(&choice.label)) ": " code { (choice.line) } } }
            }
        }
    }
}

fn operations(cases: &[DecisionCase]) -> Markup {
    // A decision about a type names its member: `Type: member`.
    let subject = |name: &str| match name.contains(": ") {
        true => html! { code { (name) } },
        false => operation(name),
    };
    let one =
        |case: &DecisionCase| html! { (subject(&case.operation)) @for at in &case.at { " " code { (at) } } };
    match cases {
        [case] => one(case),
        cases => html! {
            details { summary { (count_noun(cases.len() as u64, "operation")) } ul.plain { @for case in cases { li { (one(case)) } } } }
        },
    }
}

/// Renders text with Markdown's code spans, which is all that decisions use of it.
fn marked(text: &str) -> Markup {
    html! { @for (at, part) in text.split('`').enumerate() { @if at % 2 == 0 { (part) } @else { code { (part) } } } }
}
