//! The mapping editor: a file of the pack, opened at a line, with the findings of the compiler; its
//! effect on recorded exchanges and on the pack's examples; the patch; and, if the configuration permits
//! it, saving to the folder of the pack.
//!
//! Without the script, the editor is a text area, and findings appear after a check. The script
//! (`editor/entry.js`) replaces the text area, and requests findings and completions of the language
//! server while the user types.

use super::PageContext;
use super::assets::ASSETS;
use super::edits;
use super::fields::{FormFields, percent_encode};
use super::layout::{Page, Tab};
use super::words::{Tone, badge, count, count_noun, operation};
use crate::admin::{AdminResponse, fault_status, record_next};
use crate::operate::save_mapping;
use crate::playground::{EXCHANGES_MAX, Edits, FileEdit, TryError, WhatIf, texts};
use http::{HeaderValue, StatusCode, header};
use maud::{Markup, html};
use serde_json::json;

/// Mapping lines displayed before and after the opened one, without the script.
const LINES_AROUND: u32 = 4;
/// Most listed examples that do not hold.
const FAILED_MAX: usize = 20;

/// The content of the editor.
struct EditorDraft {
    /// The displayed file.
    file: String,
    /// The line of the cursor, from 1.
    line: u32,
    edits: Edits,
}

/// The result of the page's action.
enum EditorResult {
    Nothing,
    WhatIf(WhatIf),
    Fault(TryError),
}

/// Returns the address of the editor at a place of the mapping, such as `things.map.yaml:7`.
pub(super) fn address(place: &str) -> Option<String> {
    let (file, line) = place.rsplit_once(':').filter(|(file, _)| !file.is_empty())?;
    Some(format!("/editor?file={}&line={line}", percent_encode(file)))
}

pub(super) async fn look(visit: &PageContext<'_>, rest: &[&str]) -> AdminResponse {
    if !rest.is_empty() {
        return visit.not_found();
    }
    let line = visit.query.get("line").parse().unwrap_or(1);
    let draft = EditorDraft { file: visit.query.get("file").to_owned(), line, edits: Edits::new() };
    page(visit, &draft, &EditorResult::Nothing)
}

pub(super) async fn form(visit: &PageContext<'_>, rest: &[&str], form: &FormFields) -> AdminResponse {
    let draft = EditorDraft::from_form(visit, form);
    let workbench = &visit.parts.workbench;
    match rest {
        [] => page(visit, &draft, &EditorResult::Nothing),
        ["check"] => match workbench.findings(texts(&draft.edits)).await {
            Ok(findings) => AdminResponse::json(StatusCode::OK, &json!({ "findings": findings })),
            Err(error) => error.into(),
        },
        ["complete"] => {
            let number = |name: &str| form.get(name).parse::<u32>().unwrap_or(0);
            let position = json!({ "line": number("row"), "character": number("column") });
            // The displayed file may have no change yet.
            let mut all = texts(&draft.edits);
            if let Some(served) = workbench.open(&draft.file) {
                all.entry(draft.file.clone()).or_insert(served.text);
            }
            match workbench.complete(all, draft.file, position).await {
                Ok(items) => AdminResponse::json(StatusCode::OK, &json!({ "items": items })),
                Err(error) => error.into(),
            }
        }
        ["what-if"] => match workbench.what_if(texts(&draft.edits)).await {
            Ok(effect) => page(visit, &draft, &EditorResult::WhatIf(effect)),
            Err(error) => page(visit, &draft, &EditorResult::Fault(error)),
        },
        ["patch"] => match workbench.patch(&draft.edits) {
            Ok(patch) => {
                let name = HeaderValue::from_static("attachment; filename=\"mapping.patch\"");
                AdminResponse::text(StatusCode::OK, "text/x-patch; charset=utf-8", patch)
                    .header(header::CONTENT_DISPOSITION, name)
            }
            Err(error) => page(visit, &draft, &EditorResult::Fault(error)),
        },
        ["save"] => {
            let pack = visit.parts.board.load().pack.name.clone();
            match save_mapping(&draft.edits, workbench, &pack, &visit.parts.store.by(visit.who())).await {
                Ok(()) => {
                    visit.studio.outdate();
                    AdminResponse::see("/pack?show=reload")
                }
                Err(error) => page(visit, &draft, &EditorResult::Fault(error)),
            }
        }
        ["record"] => match record_next(visit.parts, visit.who(), EXCHANGES_MAX).await {
            Ok(()) => page(visit, &draft, &EditorResult::Nothing),
            Err(refusal) => page(
                visit,
                &draft,
                &EditorResult::Fault(TryError::Request(format!("{refusal}; end it first"))),
            ),
        },
        _ => visit.not_found(),
    }
}

impl EditorDraft {
    fn from_form(visit: &PageContext<'_>, form: &FormFields) -> EditorDraft {
        let shown = (form.get("file"), form.get("line"));
        // A button of a result opens a place; the list of files opens its selected file.
        let (file, line) = match (form.get("go").rsplit_once(':'), form.get("open")) {
            (Some(place), _) => place,
            (None, "") => shown,
            (None, open) if open == shown.0 => shown,
            (None, open) => (open, "1"),
        };
        let edits = edits::parse(visit, form);
        // From the playground without a route.
        let file = if file.is_empty() { edits.keys().next().map_or("", String::as_str) } else { file };
        EditorDraft { file: file.to_owned(), line: line.parse().unwrap_or(1), edits }
    }
}

fn page(visit: &PageContext<'_>, draft: &EditorDraft, result: &EditorResult) -> AdminResponse {
    let files: Vec<String> = visit.parts.workbench.files().into_iter().map(|(name, _)| name).collect();
    // Without a choice, the first file that is no collection of examples.
    let file = files.iter().find(|name| **name == draft.file);
    let file = file.or_else(|| files.iter().find(|name| !name.contains("examples")));
    let served = file.and_then(|name| Some((name, visit.parts.workbench.open(name)?)));
    let (status, is_known) = match result {
        EditorResult::Fault(error) => (fault_status(error).0, true),
        _ => (StatusCode::OK, draft.file.is_empty() || file.is_some_and(|name| *name == draft.file)),
    };
    let status = if is_known { status } else { StatusCode::NOT_FOUND };
    let body = html! {
        div.page-head {
            p.crumbs { a href="/playground" { "Playground" } }
            h1 { "Mapping editor" }
            p.lead { "Changes a mapping file and compares its effect with recorded traffic and with the examples of the pack. What serves changes only by a reload." }
        }
        @match result {
            EditorResult::Nothing => {}
            EditorResult::WhatIf(effect) => { (what_if(effect)) }
            EditorResult::Fault(error) => { (fault(error)) }
        }
        @match &served {
            None => { p.notice.warn { "This pack was not read from files." } }
            Some((name, served)) => { (editor(visit, draft, &files, name, served)) }
        }
    };
    let page = Page::still(Tab::Playground, "Mapping editor", body).script(&ASSETS.editor.path);
    visit.page(page.status(status))
}

fn editor(
    visit: &PageContext<'_>,
    draft: &EditorDraft,
    files: &[String],
    name: &str,
    served: &FileEdit,
) -> Markup {
    let shown = draft.edits.get(name).unwrap_or(served);
    let workbench = &visit.parts.workbench;
    let is_outdated =
        |name: &str, edit: &FileEdit| workbench.open(name).is_none_or(|served| served.opened != edit.opened);
    let recorded = workbench.recorded();
    html! {
        form #editor-form method="post" action="/editor" {
            (visit.form_token())
            input type="hidden" name="file" value=(name);
            input type="hidden" name="line" value=(draft.line);
            (edits::hidden(&draft.edits, name))
            (edits::opened(name, shown))
            @for (name, _) in draft.edits.iter().filter(|(name, edit)| is_outdated(name.as_str(), edit)) {
                p.notice.warn { code { (name) } " has been reloaded with another text since it was opened here. Its patch and its saving are refused; copy your text, open the file again and repeat the change." }
            }
            section.panel.stack aria-labelledby="editor-title" {
                header {
                    h2 #editor-title { code { (name) } }
                    @if draft.edits.contains_key(name) { (badge(Tone::Warn, "changed")) }
                    @if visit.may_operate() {
                        div.row.aside {
                            label { span.visually-hidden { "File" }
                                select name="open" data-submit {
                                    @for other in files { option selected[other == name] value=(other) { (other) @if draft.edits.contains_key(other) { " (changed)" } } }
                                }
                            }
                            button type="submit" { "Open" }
                        }
                    }
                }
                noscript {
                    ol.mapping-lines {
                        @for (number, text) in &workbench.lines_around(name, draft.line, LINES_AROUND) {
                            li.marked[*number == draft.line] { span.number { (number) } code { (text) } }
                        }
                    }
                }
                // A browser drops the first line break of a text area.
                textarea.mapping #editor-text name=(edits::text_field(name)) rows="24" spellcheck="false" wrap="off" readonly[!visit.may_operate()]
                    aria-label={ "Text of " (name) } data-editor=(name) data-line=(draft.line) { "\n" (shown.text) }
                @if visit.may_operate() {
                    p.hint { "Tab leaves the editor. Ctrl-Space lists the possible names." }
                    div.actions {
                        button.primary type="submit" formaction="/editor/what-if" { "Compare with " (count_noun(recorded.list().len() as u64, "recorded exchange")) " and the examples" }
                        button type="submit" formaction="/editor/patch" { "Download patch" }
                        @if workbench.is_writable() { button type="submit" formaction="/editor/save" { "Save to the pack" } }
                        button type="submit" formaction="/playground" { "Try a request" }
                        @if recorded.is_recording() { (badge(Tone::Busy, "recording")) } @else {
                            button type="submit" formaction="/editor/record" { "Record the next " (count(EXCHANGES_MAX as u64)) " exchanges" }
                        }
                    }
                } @else {
                    p.hint { "Sign in with an operator token to change and compare mapping files." }
                    ul.files { @for other in files { li { a href={ "/editor?file=" (percent_encode(other)) } { (other) } } } }
                }
            }
        }
    }
}

/// Renders a button that opens a place of a mapping file with all edits.
fn place(line: &str) -> Markup {
    html! { button.link type="submit" form="editor-form" formaction="/editor" name="go" value=(line) { code { (line) } } }
}

fn fault(error: &TryError) -> Markup {
    let title = match error {
        TryError::Findings(_) => "The mapping text does not compile.",
        TryError::Examples(_) => "Examples of the pack do not hold.",
        _ => "Nothing was changed.",
    };
    html! {
        div.notice.bad #fault role="alert" {
            p { strong { (title) } " The served pack is not affected." }
            @match error {
                TryError::Findings(found) => pre tabindex="0" aria-label="Findings of the compiler" { (found) },
                other => p { (other) },
            }
        }
    }
}

/// Renders the effect of the texts. Unknown exchanges count as neither equal nor different.
fn what_if(effect: &WhatIf) -> Markup {
    let compared = (effect.same + effect.differ) as u64;
    let is_good = effect.differ == 0 && effect.unknown == 0 && compared > 0 && effect.failed.is_empty();
    let tone = match (effect.differ + effect.failed.len(), is_good) {
        (0, true) => "good",
        (0, false) => "warn",
        _ => "bad",
    };
    html! {
        section.panel #effect aria-labelledby="effect-title" {
            header { h2 #effect-title { "Effect of these texts" } span.soft { "compared with the answers that clients received" } }
            div.notice.(tone) role="status" {
                p #effect-sum {
                    strong { (count(effect.differ as u64)) " of " (count_noun(compared, "recorded exchange")) " differ" }
                    @if effect.unknown > 0 { "; " (count_noun(effect.unknown as u64, "further exchange")) " unknown" }
                    ". " (count(effect.failed.len() as u64)) " of " (count_noun(effect.examples as u64, "example")) " differ."
                }
                @if compared == 0 { p { "No exchange could be compared, so the effect on traffic is unknown." } }
                @if effect.masked > 0 { p { "In " (count(effect.masked as u64)) " of the equal ones, masked values were compared by their kind alone." } }
            }
            @if !effect.reasons.is_empty() {
                h3 { "Unknown" }
                ul { @for (reason, times) in &effect.reasons { li { (count_noun(*times as u64, "exchange")) ": " (reason) } } }
            }
            @if !effect.changed.is_empty() {
                div.scroll role="region" aria-label="Differences" tabindex="0" {
                    table #what-changes {
                        thead { tr { th { "Operation" } th { "Difference" } th.n { "Exchanges" } th { "Line" } th { "Open" } } }
                        tbody { @for group in &effect.changed {
                            tr {
                                td { @let (side, name) = group.operation.split_once(' ').unwrap_or(("", &group.operation)); (side) " " (operation(name)) }
                                td { strong { (group.what) } p.soft { (group.example) } }
                                td.n { (count(group.count as u64)) }
                                td { @if let Some(line) = &group.line { (place(line)) } }
                                td { @for number in &group.recorded {
                                    button.link type="submit" form="editor-form" formaction="/playground" name="recorded" value=(number) aria-label={ "Recorded exchange " (number) } { (number) } " "
                                } }
                            }
                        } }
                    }
                }
            }
            @if !effect.failed.is_empty() {
                h3 { "Examples" }
                ul.plain #failed-examples { @for example in effect.failed.iter().take(FAILED_MAX) {
                    li { (place(&example.line)) pre tabindex="0" aria-label={ "Example at " (example.line) } { (example.what) } }
                } }
                @if effect.failed.len() > FAILED_MAX { p.soft { (count_noun((effect.failed.len() - FAILED_MAX) as u64, "further example")) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_good_only_where_every_exchange_and_example_is_known_to_be_equal() {
        let failed = crate::playground::FailedExample { line: "a:1".to_owned(), what: "a:1: x".to_owned() };
        for (same, differ, unknown, failed, tone, text) in [
            (
                500,
                0,
                0,
                vec![],
                "good",
                "0 of 500 recorded exchanges differ</strong>. 0 of 7 examples differ.",
            ),
            (0, 0, 0, vec![], "warn", "0 of 0 recorded exchanges differ"),
            (
                3,
                0,
                2,
                vec![],
                "warn",
                "0 of 3 recorded exchanges differ</strong>; 2 further exchanges unknown",
            ),
            (1, 1, 0, vec![], "bad", "1 of 2 recorded exchanges differ"),
            (2, 0, 0, vec![failed], "bad", "1 of 7 examples differ"),
        ] {
            let exchanges = same + differ + unknown;
            let effect =
                WhatIf { exchanges, same, differ, unknown, failed, examples: 7, ..WhatIf::default() };
            let markup = what_if(&effect).0;
            assert!(markup.contains(&format!("notice {tone}\"")) && markup.contains(text), "{markup}");
            assert_eq!(markup.contains("effect on traffic is unknown"), same + differ == 0);
        }
    }
}
