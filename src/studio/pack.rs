//! The page of the served pack: routes, shapes, decisions of its draft, settings, contracts, files,
//! the difference to the previous pack, the last reload, and the recorded packs.

mod recorded;

use super::PageContext;
use super::decisions;
use super::fields::percent_encode;
use super::layout::{Page, Tab, empty, page_slice, pager};
use super::operations::address;
use super::route::tone;
use super::words::{Tone, badge, bytes, count, count_noun, moment_text, operation};
use crate::admin::{AdminResponse, PackShown, PackStatus};
use crate::operate::packs_in;
use crate::playground::PackFile;
use http::StatusCode;
use maud::{Markup, html};
use serde_json::Value as Json;
use std::sync::Arc;
use switchback_compiler::contract::{NamedType, Operation, TypeKind};
use switchback_plan::{LossReport, OperationReport, SideReport, report};
use tokio::task::spawn_blocking;

pub(super) use recorded::form;

/// The tabs of the page.
const PARTS: [(&str, &str); 9] = [
    ("", "Routes"),
    ("shapes", "Shapes"),
    ("decisions", "Decisions"),
    ("settings", "Settings"),
    ("contract", "Contracts"),
    ("files", "Files"),
    ("changes", "Changes"),
    ("reload", "Last reload"),
    ("recorded", "Recorded packs"),
];
/// Operations, shapes and types per page.
const LISTED: usize = 100;
/// Most displayed lines of a diff.
const DIFF_LINES_MAX: usize = 2_000;

pub(super) async fn look(visit: &PageContext<'_>, rest: &[&str]) -> AdminResponse {
    if !rest.is_empty() {
        return visit.not_found();
    }
    let board = visit.parts.board.load_full();
    let part = visit.query.get("show");
    if let ("contract", Some(shown)) = (part, &board.shown) {
        // The first access parses the contracts, which takes up to a second.
        let contracts = Arc::clone(&shown.contracts);
        let _ = spawn_blocking(move || contracts.contracts().is_some()).await;
    }
    let decided = match (part, &board.shown) {
        ("decisions", Some(shown)) => {
            let shown = Arc::clone(shown);
            spawn_blocking(move || shown.read_decisions()).await.ok().flatten()
        }
        _ => None,
    };
    let recorded = match part {
        "recorded" => {
            let store = visit.parts.store.clone();
            visit.in_time(async move { packs_in(&store).await }).await
        }
        _ => None,
    };
    // An unknown part shows the routes, but with 404, so that a mistyped link is noticed.
    let known = PARTS.iter().any(|(name, _)| *name == part);
    let program = visit.parts.program.load_full();
    let body = html! {
        div.page-head {
            h1 { "Pack " (board.pack.name) }
            p.lead { (board.pack.source) ", loaded " (moment_text(&board.pack.loaded_at, visit.now_ms)) ", hash " code { (board.pack.hash.get(..16).unwrap_or(&board.pack.hash)) } }
            @if visit.may_operate() {
                form.aside method="post" action="/reload" { (visit.form_token()) input type="hidden" name="seen" value=(visit.pack_seen()); input type="hidden" name="to" value="/pack?show=reload"; button.small type="submit" { "Reload" } }
            }
        }
        (failed_reload(visit, &board.pack))
        (recorded::notice(visit, &board.pack))
        nav.tabs aria-label="Parts of the pack" {
            @for (name, title) in PARTS {
                a href={ "/pack" @if !name.is_empty() { "?show=" (name) } } aria-current=[(name == part || (!known && name.is_empty())).then_some("true")] { (title) }
            }
        }
        @match part {
            "shapes" => {
                (search(visit, "shapes", "Shape", ""))
                (shapes(visit, board.shown.as_deref()))
            },
            "decisions" => {
                (search(visit, "decisions", "Operation or difference", "/things"))
                (decisions::list(visit, &board.pack.source, decided.as_deref()))
            },
            "settings" => (settings(board.shown.as_deref(), &board.config["settings"])),
            "contract" => (contract(visit, board.shown.as_deref())),
            "files" => (files(visit, board.shown.as_deref())),
            "changes" => (changes(board.shown.as_deref(), board.before.as_deref())),
            "reload" => (reload(visit, &board.pack)),
            "recorded" => (recorded::list(visit, &board.pack, recorded.as_ref())),
            _ => {
                (search(visit, "", "Operation", "/things"))
                @for side in &report(program.pack()).sides { (routes(visit, side)) }
            },
        }
    };
    let status = if known { StatusCode::OK } else { StatusCode::NOT_FOUND };
    visit.page(Page::live(Tab::Pack, "Pack", body).status(status))
}

fn failed_reload(visit: &PageContext<'_>, pack: &PackStatus) -> Markup {
    html! {
        @if let Some(reload) = pack.last_reload.as_ref().filter(|reload| reload.error.is_some()) {
            div.notice.bad #reload-failed role="alert" {
                strong { "The last reload failed" } " " (moment_text(&reload.at, visit.now_ms)) "; what was loaded before goes on serving. "
                a href="/pack?show=reload" { "Errors" }
            }
        }
    }
}

fn search(visit: &PageContext<'_>, part: &str, words: &str, example: &str) -> Markup {
    html! {
        form.filter method="get" action="/pack" role="search" {
            @if !part.is_empty() { input type="hidden" name="show" value=(part); }
            label.grow { (words) input #q type="search" name="q" value=(visit.query.get("q")) placeholder=(example); }
            button type="submit" { "Show" }
        }
    }
}

/// Returns the entries of the current page with names that match the search, and the number of all
/// matches.
fn of_page<'a, T>(visit: &PageContext<'_>, all: &'a [T], name: impl Fn(&T) -> &str) -> (Vec<&'a T>, usize) {
    let asked = visit.query.get("q").to_lowercase();
    // Filtered before the pages are cut, so that a search covers the complete list.
    let found: Vec<&T> = all.iter().filter(|one| name(one).to_lowercase().contains(&asked)).collect();
    (page_slice(&found, visit.query.page(), LISTED).to_vec(), found.len())
}

fn routes(visit: &PageContext<'_>, side: &SideReport) -> Markup {
    let answered = side.exact + side.different + side.partly;
    let (shown, found) = of_page(visit, &side.operations, |one| &one.operation);
    html! {
        section.panel id={ "routes-" (side.side) } {
            header {
                h2 { "Clients of " (side.side) ", answered by " (side.backend) }
                span.soft { (answered) " of " (count_noun(side.operations.len() as u64, "operation")) " are answered" @if side.degraded > 0 { ", " (side.degraded) " of them degraded" } }
            }
            div.scroll role="region" aria-label={ "Routes of " (side.side) } tabindex="0" { table {
                thead { tr { th { "Operation" } th { "Kept" } th { "Route" } th { "Counterpart" } th.n { "Calls" } th.n { "Lost" } th.n { "Without source" } th { "Line" } } }
                tbody { @for one in &shown { (route_row(side, one)) } }
            } }
            (pager(visit, shown.len(), found, LISTED))
        }
    }
}

fn route_row(side: &SideReport, one: &OperationReport) -> Markup {
    let calls = if one.calls_min == one.calls_max {
        one.calls_max.to_string()
    } else {
        format!("{}–{}", one.calls_min, one.calls_max)
    };
    html! {
        tr id={ "route-" (side.side) "-" (percent_encode(&one.operation)) } {
            td { a.quiet-link href=(address(&side.side, &one.operation)) { (operation(&one.operation)) } }
            td { (badge(tone(one.verdict), one.verdict)) @if one.degraded { " " (badge(Tone::Quiet, "degraded")) } }
            td { (one.route) }
            td { @if let Some(counterpart) = &one.counterpart { (operation(counterpart)) } }
            td.n { (calls) } td.n { (one.lost.len()) } td.n { (one.without_source.len()) }
            td { span.place { (one.place) } }
        }
    }
}

fn shapes(visit: &PageContext<'_>, shown: Option<&PackShown>) -> Markup {
    let all = shown.map_or(&[][..], |shown| &shown.report.shapes);
    let (of_page, found) = of_page(visit, all, |one| &one.shape);
    html! {
        section.panel #shapes {
            @if all.is_empty() { (empty("No shape", &html! { "This pack relates no types by name." })) } @else {
                div.scroll role="region" aria-label="Shapes" tabindex="0" { table {
                    thead { tr { th { "Shape" } th { "Carries" } th { "Losses" } th { "Line" } } }
                    tbody { @for shape in &of_page {
                        tr id={ "shape-" (percent_encode(&shape.shape)) } {
                            td { code { (shape.shape) } }
                            td { @match shape.law { "iso" => (badge(Tone::Good, "everything")), "lens" => (badge(Tone::Busy, "one side has more")), _ => (badge(Tone::Warn, "both sides have more")) } }
                            td { (lost(&shape.lost)) }
                            td { span.place { (shape.place) } }
                        }
                    } }
                } }
                (pager(visit, of_page.len(), found, LISTED))
            }
        }
    }
}

fn lost(losses: &[LossReport]) -> Markup {
    html! {
        @if losses.is_empty() { span.soft { "–" } } @else if losses.len() <= 3 {
            @for loss in losses { p { (loss.sentence()) } }
        } @else {
            details { summary { (count_noun(losses.len() as u64, "field")) } ul.plain { @for loss in losses { li { (loss.sentence()) } } } }
        }
    }
}

/// Renders the settings of the pack. `given` are the configured values with secrets masked.
fn settings(shown: Option<&PackShown>, given: &Json) -> Markup {
    let all = shown.map_or(&[][..], |shown| &shown.report.settings);
    html! {
        section.panel #settings {
            @if all.is_empty() { (empty("No setting", &html! { "This pack reads no settings under " code { "settings" } " of the configuration." })) } @else {
                div.scroll role="region" aria-label="Settings" tabindex="0" { table {
                    thead { tr { th { "Setting" } th { "Type" } th { "Value" } th { "Default" } th { "About" } th { "Line" } } }
                    tbody { @for one in all { tr {
                        td { code { (one.setting) } @if one.required { " " (badge(Tone::Warn, "required")) } } td { (one.kind) }
                        td { @match given_value(given, &one.setting) {
                            Some(value) => { code { (value) } " " span.soft { "set" } },
                            None if one.default.is_some() => { code { (one.default.as_deref().unwrap_or_default()) } " " span.soft { "default" } },
                            None => span.soft { "none" },
                        } }
                        td { @match &one.default { Some(default) => code { (default) }, None => span.soft { "–" } } } td { (one.about) } td { span.place { (one.place) } }
                    } } }
                } }
            }
        }
    }
}

/// Returns the configured value of a setting as JSON text. Its dotted name may be split into nested
/// maps at any dot. Null counts as absent.
fn given_value(given: &Json, name: &str) -> Option<String> {
    let members = given.as_object()?;
    // A dotted name may be nested objects or a key that contains the dot, so both are tried.
    members.iter().find_map(|(key, value)| match name.strip_prefix(key.as_str())? {
        "" if value.is_null() => None,
        "" => Some(value.to_string()),
        rest => given_value(value, rest.strip_prefix('.')?),
    })
}

/// Renders the operations and types of a contract.
fn contract(visit: &PageContext<'_>, shown: Option<&PackShown>) -> Markup {
    let Some(shown) = shown else {
        return html! { (empty("No contract", &html! { "This pack was not read from files." })) };
    };
    let Some([old, new]) = shown.contracts.contracts() else {
        return html! { (empty("No contract", &html! { "The contracts of this pack could not be read." })) };
    };
    let side = visit.query.get("side");
    let chosen = if side == new.name { new } else { old };
    let asked = visit.query.get("q").to_lowercase();
    let operations: Vec<&Operation> =
        chosen.operations.iter().filter(|one| one.key.to_string().to_lowercase().contains(&asked)).collect();
    let page = page_slice(&operations, visit.query.page(), LISTED);
    let types: Vec<&NamedType> =
        chosen.types.iter().filter(|one| one.name.to_lowercase().contains(&asked)).collect();
    html! {
        form.filter method="get" action="/pack" role="search" {
            input type="hidden" name="show" value="contract";
            label { "Side" select name="side" data-submit {
                @for one in [old, new] { option value=(one.name) selected[one.name == chosen.name] { (one.name) } }
            } }
            label.grow { "Search" input #q type="search" name="q" value=(visit.query.get("q")) placeholder="Operation or type"; }
            button type="submit" { "Show" }
        }
        div.grid {
            section.panel.w8 #contract-operations aria-labelledby="contract-operations-title" {
                header { h2 #contract-operations-title { "Operations of " (chosen.name) } span.soft { (count(operations.len() as u64)) } }
                @for one in page { (contract_operation(one)) }
                (pager(visit, page.len(), operations.len(), LISTED))
            }
            section.panel.w4 #contract-types aria-labelledby="contract-types-title" {
                header { h2 #contract-types-title { "Types" } span.soft { (count(types.len() as u64)) } }
                @for one in types.iter().take(LISTED) { (contract_type(one)) }
                @if types.len() > LISTED { p.soft { (count_noun((types.len() - LISTED) as u64, "further type")) "; search for one." } }
            }
        }
    }
}

fn contract_operation(one: &Operation) -> Markup {
    let key = one.key.to_string();
    let parameters = [("path", &one.path_params), ("query", &one.query), ("header", &one.headers)];
    html! {
        details.contract id={ "contract-" (percent_encode(&key)) } {
            summary { (operation(&key)) @if let Some(summary) = &one.summary { " " span.soft { (summary) } } }
            table {
                thead { tr { th { "Part" } th { "Name" } th { "Type" } } }
                tbody {
                    @for (place, all) in parameters { @for parameter in all {
                        tr { td { (place) } td { code { (parameter.name) } @if parameter.required { " " (badge(Tone::Quiet, "required")) } } td { (parameter.ty) } }
                    } }
                    @if let Some(body) = &one.body { tr { td { "body" } td { @if body.required { (badge(Tone::Quiet, "required")) } } td { (body.ty) } } }
                    @for response in &one.responses {
                        tr { td { "answer" } td { code { (response.status) } } td { @match &response.body { Some(body) => (body), None => span.soft { "no body" } } } }
                    }
                }
            }
        }
    }
}

fn contract_type(one: &NamedType) -> Markup {
    html! {
        details.contract id={ "type-" (percent_encode(&one.name)) } {
            summary { code { (one.name) } }
            @match &one.ty.kind {
                TypeKind::Object(object) => {
                    ul.plain { @for field in &object.fields { li { code { (field.name) } " " (field.ty) @if field.required { " " (badge(Tone::Quiet, "required")) } } } }
                }
                _ => p { (one.ty) },
            }
        }
    }
}

/// Renders the list of files, and one file with line numbers.
fn files(visit: &PageContext<'_>, shown: Option<&PackShown>) -> Markup {
    let Some(shown) = shown else {
        return html! { (empty("No files", &html! { "This pack was not read from files." })) };
    };
    let asked = visit.query.get("file");
    let line: usize = visit.query.get("line").parse().unwrap_or(0);
    let file = shown.files.find(asked).map(|file| (&*file.name, text(file)));
    html! {
        div.grid {
            section.panel.w4 #files aria-label="Files" {
                ul.plain { @for file in shown.files.iter() { li id={ "file-" (percent_encode(&file.name)) } {
                    a href={ "/pack?show=files&file=" (percent_encode(&file.name)) } aria-current=[(file.name == asked).then_some("true")] { (file.name) } " " span.soft { (bytes(file.length as u64)) }
                } } }
            }
            section.panel.w8 #file data-keep aria-label="File" {
                @match file {
                    None => (empty("Choose a file", &html! { "The files of the pack as they were loaded." })),
                    Some((name, text)) => {
                        @match text {
                            Some(text) => {
                                header {
                                    h2 { (name) } span.soft { (count_noun(text.lines().count() as u64, "line")) }
                                    @if visit.parts.workbench.open(name).is_some() { a.aside href={ "/editor?file=" (percent_encode(name)) "&line=" (line.max(1)) } { "Edit" } }
                                }
                                (source_view(name, &text, line))
                            }
                            None => {
                                header { h2 { (name) } }
                                p.soft { "It is too large to be displayed: more than " (bytes(BYTES_MAX as u64)) "." }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Largest displayed file.
const BYTES_MAX: usize = 4 << 20;

/// Returns the text of a file; `None` if it is too large to display.
fn text(file: &PackFile) -> Option<String> {
    (file.length <= BYTES_MAX).then(|| file.text())
}

/// Renders a file with line numbers and one highlighted line. A long file is cut to the lines
/// around the highlight.
fn source_view(name: &str, text: &str, marked: usize) -> Markup {
    const AROUND: usize = 1_500;
    // Only the lines around the marked one: a contract of a hundred thousand lines would make the page too
    // large.
    let first = marked.saturating_sub(AROUND / 2);
    let all = text.lines().count();
    html! {
        pre.numbered tabindex="0" aria-label={ "Text of " (name) } {
            @for (at, text) in text.lines().enumerate().skip(first).take(AROUND) {
                span.line id={ "L" (at + 1) } aria-current=[(at + 1 == marked).then_some("true")] { span.line-number { (at + 1) } (text) "\n" }
            }
        }
        @if all > first + AROUND { p.soft { (count((all - first - AROUND) as u64)) " further lines." } }
    }
}

/// Renders the differences to the previous pack.
fn changes(shown: Option<&PackShown>, before: Option<&PackShown>) -> Markup {
    let (Some(now), Some(before)) = (shown, before) else {
        return html! { section.panel { (empty("No earlier pack", &html! { "The changes of the last reload appear here." })) } };
    };
    let mut names: Vec<&str> =
        now.files.iter().chain(before.files.iter()).map(|file| file.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let patch = |name: &str| {
        let (old, new) = (before.files.find(name), now.files.find(name));
        if old.map(PackFile::content) == new.map(PackFile::content) {
            return None;
        }
        // A missing file counts as empty.
        let text = |file: Option<&PackFile>| file.map_or_else(|| Some(String::new()), text);
        let texts = text(old).zip(text(new));
        Some(texts.map(|(old, new)| diffy::create_patch(&old, &new).to_string()))
    };
    let changed: Vec<(&str, Option<String>)> =
        names.into_iter().filter_map(|name| Some((name, patch(name)?))).collect();
    html! {
        section.panel #changes {
            @if changed.is_empty() { (empty("No change", &html! { "The pack was loaded again with the same files." })) }
            @for (name, patch) in &changed {
                h2 { (name) }
                @match patch {
                    None => p.soft { "It differs and is too large to be displayed by line." },
                    Some(patch) => {
                        // The first two lines of a patch are file names, which the heading has.
                        @let further = patch.lines().skip(2 + DIFF_LINES_MAX).count();
                        pre.diff tabindex="0" aria-label={ "Changes of " (name) } {
                            @for line in patch.lines().skip(2).take(DIFF_LINES_MAX) {
                                @let class = match line.as_bytes().first() { Some(b'+') => "added", Some(b'-') => "removed", Some(b'@') => "where", _ => "same" };
                                span.line.(class) { (line) "\n" }
                            }
                        }
                        @if further > 0 { p.soft { (count_noun(further as u64, "further line")) "." } }
                    }
                }
            }
        }
    }
}

fn reload(visit: &PageContext<'_>, pack: &PackStatus) -> Markup {
    html! {
        section.panel #reload {
            // The element is there before its outcome, so that screen readers announce it.
            div role="status" { @match &pack.last_reload {
                None => (empty("No reload yet", &html! { "The configuration loaded at start is in use." })),
                Some(reload) => p {
                    @if reload.succeeded { (badge(Tone::Good, "reloaded")) } @else { (badge(Tone::Bad, "failed")) }
                    " " (moment_text(&reload.at, visit.now_ms))
                },
            } }
            @if let Some(reload) = &pack.last_reload {
                @if let Some(error) = &reload.error { pre.diagnostics tabindex="0" aria-label="Findings" { (error) } }
                @if !reload.needs_restart.is_empty() { p.notice.warn { "Changes of " code { (reload.needs_restart.join(", ")) } " take a restart." } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_value_of_a_setting_is_found_however_its_name_is_nested() {
        let given = json!({"a": {"b.c": 1, "d": null}, "a.e": "x", "f": {"g": {"h": false}}});
        let found = ["a.b.c", "a.d", "a.e", "f.g.h", "f.g", "a.b", "z"].map(|name| given_value(&given, name));
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(found, [text("1"), None, text("\"x\""), text("false"), text("{\"h\":false}"), None, None]);
        assert_eq!(given_value(&Json::Null, "a"), None);
    }
}
