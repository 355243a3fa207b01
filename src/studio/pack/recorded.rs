//! The recorded packs of the page, and the form that restores one.

use super::super::PageContext;
use super::super::fields::FormFields;
use super::super::layout::{Page, empty, unread};
use super::super::words::{Tone, badge, count_noun, moment_text, operation};
use crate::admin::{AdminResponse, PackStatus};
use crate::operate::{OperationChanges, PackList, RecordedPack, RefusalKind};
use http::StatusCode;
use maud::{Markup, html};

/// Most operations in a list of changes.
const LISTED: usize = 50;

/// States that the served pack is not the one on disk.
pub(super) fn notice(visit: &PageContext<'_>, pack: &PackStatus) -> Markup {
    html! {
        @if let Some(restored) = &pack.restored {
            div.notice.warn #restored role="status" {
                strong { "The served pack is not the one on disk." } " " (restored.by) " restored it " (moment_text(&restored.since, visit.now_ms))
                " instead of " code { (restored.instead_of.get(..16).unwrap_or(&restored.instead_of)) } ". It serves until the files change, or "
                strong { "Reload" } " loads them. " a href="/pack?show=recorded" { "Recorded packs" }
            }
        }
    }
}

pub(super) fn list(visit: &PageContext<'_>, pack: &PackStatus, recorded: Option<&PackList>) -> Markup {
    html! {
        section.panel #recorded {
            header { h2 { "Packs that served" } span.soft { "the last ten, of all replicas" } }
            @match recorded {
                None => (unread()),
                Some(list) if list.packs.is_empty() => (empty("No pack yet", &html! { "Each pack that begins to serve is recorded here." })),
                Some(list) => {
                    div.scroll role="region" aria-label="Recorded packs" tabindex="0" { table {
                        thead { tr { th { "Pack" } th { "Began to serve" } th { "By" } th { "Changes of operations" } th { span.visually-hidden { "Action" } } } }
                        tbody { @for one in &list.packs { (row(visit, pack, one)) } }
                    } }
                },
            }
        }
    }
}

fn row(visit: &PageContext<'_>, pack: &PackStatus, one: &RecordedPack) -> Markup {
    let on_disk = pack.restored.as_ref().map_or(&pack.hash, |restored| &restored.instead_of);
    html! {
        tr id={ "pack-" (one.short_id()) } {
            td { (one.name) " " code { (one.short_id()) }
                @if one.id == pack.hash { " " (badge(Tone::Good, "serves")) }
                @if one.id == *on_disk { " " (badge(Tone::Quiet, "on disk")) }
            }
            td { (moment_text(&one.served_at, visit.now_ms)) }
            td { (one.by) }
            td { @match &one.changes {
                None => span.soft { "no pack before it is recorded" },
                Some(all) if all.is_empty() => span.soft { "none" },
                Some(all) => (changes(all)),
            } }
            td { @if one.id != pack.hash && visit.may_operate() {
                details id={ "restore-" (one.short_id()) } {
                    summary { "Restore" }
                    form.stack method="post" action="/pack/restore" {
                        (visit.form_token())
                        input type="hidden" name="seen" value=(visit.pack_seen());
                        input type="hidden" name="id" value=(one.id);
                        p { "All replicas with the pack on disk serve this one instead, with its " (count_noun(one.operations as u64, "operation")) ", until the files change or are reloaded." }
                        (visit.with_store(&html! { button.primary type="submit" { "Restore this pack" } }))
                    }
                }
            } }
        }
    }
}

fn changes(all: &OperationChanges) -> Markup {
    html! {
        details {
            summary { (all.summary()) }
            @for (name, list) in [("Added", &all.added), ("Removed", &all.removed), ("Changed", &all.changed)] {
                @if !list.is_empty() {
                    h3 { (name) }
                    ul.plain {
                        @for one in list.iter().take(LISTED) {
                            @let (side, name) = one.split_once(' ').unwrap_or(("", one));
                            li { (side) " " (operation(name)) }
                        }
                        @if list.len() > LISTED { li { "and " (list.len() - LISTED) " more" } }
                    }
                }
            }
        }
    }
}

/// Restores a recorded pack.
pub(in crate::studio) async fn form(
    visit: &PageContext<'_>,
    rest: &[&str],
    form: &FormFields,
) -> AdminResponse {
    if rest != ["restore"] {
        return visit.not_found();
    }
    if form.get("seen") != visit.pack_seen() {
        return visit.second_reload(form).await;
    }
    match visit.parts.reload.restore(form.get("id"), visit.who()).await {
        Ok(()) => {
            visit.studio.outdate();
            AdminResponse::see("/pack?show=recorded")
        }
        Err(refusal) => {
            let status = match refusal.kind() {
                RefusalKind::NotFound => StatusCode::NOT_FOUND,
                _ => StatusCode::CONFLICT,
            };
            let words = html! {
                p { "The recorded pack cannot serve with this version of the program and this configuration:" }
                pre.diagnostics tabindex="0" aria-label="Findings" { (refusal.to_string()) }
                p { a.button href="/pack?show=recorded" { "Back" } }
            };
            visit.page(Page::notice(status, "Nothing was changed", words))
        }
    }
}
