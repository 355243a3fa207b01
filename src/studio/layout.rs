//! The frame of all pages: header, navigation, theme switch, and common notices.

use super::PageContext;
use super::assets::ASSETS;
use super::seen::Snapshot;
use super::words::{Tone, badge, moment};
use crate::admin::{AdminResponse, Role};
use http::{StatusCode, header};
use maud::{DOCTYPE, Markup, html};

/// The entries of the navigation, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tab {
    Overview,
    Operations,
    Requests,
    Differences,
    Playground,
    Clients,
    Pack,
    History,
}

/// The path, the name and the icon path (on a 16 × 16 grid) of each entry.
const TABS: [(Tab, &str, &str, &str); 8] = [
    (Tab::Overview, "/", "Overview", "M2 9h3l2-5 3 9 2-4h2"),
    (Tab::Operations, "/operations", "Operations", "M2 4h12M2 8h12M2 12h7"),
    (Tab::Requests, "/requests", "Requests", "M2 3h5M5 8h7M9 13h5"),
    (Tab::Differences, "/differences", "Differences", "M5 2v12M11 2v12M2 6h6M8 10h6"),
    (Tab::Playground, "/playground", "Playground", "M4 3l8 5-8 5z"),
    (Tab::Clients, "/clients", "Clients", "M8 8a3 3 0 100-6 3 3 0 000 6zM2.5 14c.5-3 2.7-4 5.5-4s5 1 5.5 4"),
    (Tab::Pack, "/pack", "Pack", "M8 2l6 3v6l-6 3-6-3V5zM2 5l6 3 6-3M8 8v6"),
    (Tab::History, "/history", "History", "M8 4v4l3 2M2 8a6 6 0 106-6 6 6 0 00-5 2.7M2.5 2v3h3"),
];

impl Tab {
    /// Returns which parts of a page are missing or outdated while the store does not answer, and
    /// which are current.
    fn without_store(self) -> (&'static str, &'static str) {
        match self {
            Tab::Overview => (
                "Grants, evidence and transitions are the last known ones, or missing",
                "traffic, latency, phases and the pack are of now",
            ),
            Tab::Operations => (
                "Evidence, transitions and gate values are the last known ones, or missing, and phases cannot be changed",
                "traffic and phases are of now",
            ),
            Tab::Requests => (
                "Requests of other replicas are the last known ones, or missing",
                "requests of this replica are of now",
            ),
            Tab::Differences => (
                "Records of the dual run are the last known ones, or missing",
                "the mapping files and the playground work",
            ),
            Tab::Playground => {
                ("Nothing here is read from it", "requests and mapping texts can be tried as ever")
            }
            Tab::Clients => (
                "Grants and usage are the last known ones, or missing, and clients, brownouts and sunsets cannot be changed",
                "brownouts and sunsets stay in effect, and calls are counted in memory",
            ),
            Tab::Pack => ("Nothing here is read from it", "this page is current, and a reload works"),
            Tab::History => (
                "Transitions and other entries are the last known ones, or missing, and cannot be downloaded",
                "what the log and the numbers of this process say is of now",
            ),
        }
    }
}

/// The colour theme that the user has chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Follows the system's setting.
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub(crate) fn from_word(word: &str) -> Theme {
        match word {
            "light" => Theme::Light,
            "dark" => Theme::Dark,
            _ => Theme::System,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Theme::System => "system",
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }
}

/// A page without its frame.
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) tab: Option<Tab>,
    pub(crate) title: String,
    /// Whether the page updates itself every two seconds.
    pub(crate) is_live: bool,
    /// Path of a script of this page alone.
    pub(crate) script: Option<&'static str>,
    pub(crate) body: Markup,
}

impl Page {
    /// Creates a page that updates itself.
    pub(crate) fn live(tab: Tab, title: impl Into<String>, body: Markup) -> Page {
        Page {
            status: StatusCode::OK,
            tab: Some(tab),
            title: title.into(),
            is_live: true,
            script: None,
            body,
        }
    }

    /// Creates a static page.
    pub(crate) fn still(tab: Tab, title: impl Into<String>, body: Markup) -> Page {
        Page { is_live: false, ..Page::live(tab, title, body) }
    }

    /// Replaces the status.
    pub(crate) fn status(self, status: StatusCode) -> Page {
        Page { status, ..self }
    }

    /// Adds a script.
    pub(crate) fn script(self, path: &'static str) -> Page {
        Page { script: Some(path), ..self }
    }

    /// Creates a page with only a title and a text, such as an error.
    pub(crate) fn notice(status: StatusCode, title: &str, body: Markup) -> Page {
        let body = html! { div.notice-page { h1 { (title) } (body) } };
        Page { status, tab: None, title: title.to_owned(), is_live: false, script: None, body }
    }
}

impl PageContext<'_> {
    /// Renders a page in its frame.
    pub(crate) fn page(&self, page: Page) -> AdminResponse {
        let html = html! {
            (DOCTYPE)
            html lang="en" data-theme=(self.theme.word()) {
                (head(&page.title, page.script))
                body data-live[page.is_live] data-path=(self.path) {
                    a.skip href="#main" { "Skip to the content" }
                    (self.masthead(page.tab))
                    main #main tabindex="-1" {
                        div #live-state .live-state role="status" hidden {}
                        @if let (Some(since), Some(tab)) = (self.store_away, page.tab) { (self.without_store(since, tab)) }
                        (page.body)
                    }
                }
            }
        };
        let answer = AdminResponse::html(page.status, html.into_string());
        // Automatic updates must not extend a session: an open tab is no activity.
        let renewed = self.visitor.session.as_ref().filter(|_| !self.is_following);
        match renewed.and_then(|session| self.studio.guard.renew(session)) {
            Some(session) => answer.cookie(&self.studio.guard.session_cookie(&session, self.headers)),
            None => answer,
        }
        .header(header::VARY, header::HeaderValue::from_static("cookie"))
    }

    fn masthead(&self, here: Option<Tab>) -> Markup {
        let board = self.parts.board.load();
        html! {
            header.masthead {
                a.brand href="/" { (mark()) span { "Switchback" } }
                nav aria-label="Pages" {
                    ul {
                        @for (tab, path, name, sign) in TABS {
                            li {
                                a href=(path) aria-current=[(here == Some(tab)).then_some("page")] {
                                    (icon(sign)) span { (name) }
                                }
                            }
                        }
                    }
                }
                div.standing {
                    p.pack-line title={ "pack " (board.pack.hash) } {
                        span.pack-name { (board.pack.name) }
                        " " span.hash { (board.pack.hash.get(..8).unwrap_or(&board.pack.hash)) }
                    }
                    p.who {
                        @if let Some(session) = &self.visitor.session {
                            @if !session.name.is_empty() { span.name { (session.name) } " " }
                        }
                        (role_badge(self))
                    }
                    div.standing-actions {
                        (self.theme_switch())
                        @if self.visitor.session.is_some() {
                            form method="post" action="/logout" {
                                (self.form_token())
                                button.plain type="submit" { "Sign out" }
                            }
                        }
                    }
                }
            }
        }
    }

    fn theme_switch(&self) -> Markup {
        html! {
            form.theme method="post" action="/theme" aria-label="Colours" {
                input type="hidden" name="to" value=(self.address());
                @for theme in [Theme::System, Theme::Light, Theme::Dark] {
                    button.plain type="submit" name="theme" value=(theme.word())
                        aria-pressed=(if theme == self.theme { "true" } else { "false" })
                        title={ "Colours: " (theme.word()) } {
                        (theme_icon(theme))
                        span.visually-hidden { (theme.word()) }
                    }
                }
            }
        }
    }

    /// Renders the hidden CSRF field of a form.
    pub(crate) fn form_token(&self) -> Markup {
        let token = self.visitor.session.as_ref().map(|session| self.studio.guard.form_token(session));
        html! { @if let Some(token) = token { input type="hidden" name="form_token" value=(token); } }
    }

    /// Renders the banner of all pages while the store does not answer.
    fn without_store(&self, since: i64, tab: Tab) -> Markup {
        let (lacks, holds) = tab.without_store();
        html! {
            div.notice.bad #store-away role="alert" {
                strong { "The store stopped answering " (moment(since, self.now_ms)) "." }
                " " (lacks) "; " (holds) ". Requests go on being served, the log says what is wrong, and this page goes on by itself when the store is back."
            }
        }
    }

    /// Renders a notice for data from the store that is outdated or missing.
    pub(crate) fn staleness<T>(&self, seen: &Snapshot<T>) -> Markup {
        html! {
            @if seen.failing_since.is_some() {
                p.notice.warn.stale {
                    @if seen.value.is_some() {
                        "Data of the store is from " (moment(seen.at, self.now_ms)) "."
                    } @else if self.store_away.is_some() {
                        "Data of the store is not loaded yet."
                    } @else {
                        "Data of the store is loading."
                    }
                }
            }
        }
    }

    /// Renders controls that need the store: disabled with a reason while it does not answer.
    pub(crate) fn with_store(&self, controls: &Markup) -> Markup {
        html! {
            fieldset.bare disabled[self.store_away.is_some()] {
                (controls)
                @if self.store_away.is_some() { p.hint.out-of-use { "Unavailable: the store does not answer." } }
            }
        }
    }
}

fn role_badge(visit: &PageContext<'_>) -> Markup {
    if visit.studio.guard.is_open() {
        return html! { span title="Set admin.token in the configuration to make changes here" { (badge(Tone::Quiet, "no token: read only")) } };
    }
    match visit.visitor.role {
        Role::Operate => badge(Tone::Busy, "operate"),
        Role::Read => badge(Tone::Quiet, "read only"),
    }
}

fn head(title: &str, script: Option<&str>) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · Switchback" }
            link rel="icon" type="image/svg+xml" href=(ASSETS.icon.path);
            link rel="stylesheet" href=(ASSETS.style.path);
            script src=(ASSETS.script.path) defer {}
            @if let Some(script) = script { script src=(script) defer {} }
        }
    }
}

/// Renders a page for users without a session, such as the end of an authorization.
pub(crate) fn bare(title: &str, words: &Markup) -> String {
    outside(title, Theme::System, &html! { h1 { (title) } p { (words) } })
}

/// Renders a page without the frame.
pub(super) fn outside(title: &str, theme: Theme, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" data-theme=(theme.word()) {
            (head(title, None))
            body.outside {
                main #main {
                    div.card {
                        p.brand { (mark()) span { "Switchback" } }
                        (body)
                    }
                }
            }
        }
    }
    .into_string()
}

/// Renders a placeholder for an empty list: its future content, and how to get it.
pub(crate) fn empty(title: &str, words: &Markup) -> Markup {
    html! { div.empty { (mark()) p.empty-title { (title) } p { (words) } } }
}

/// Renders the placeholder of data that the store has not returned.
pub(crate) fn unread() -> Markup {
    html! { p.soft { "It is loading from the store." } }
}

/// Returns the rows of one page of a list.
pub(crate) fn page_slice<T>(all: &[T], page: usize, of_page: usize) -> &[T] {
    let from = (page - 1).saturating_mul(of_page).min(all.len());
    &all[from..(from + of_page).min(all.len())]
}

/// Renders the page links of a list, or that nothing matches.
pub(crate) fn pager(visit: &PageContext<'_>, shown: usize, all: usize, of_page: usize) -> Markup {
    pager_of(visit, "page", "Pages of the list", (shown, all, of_page))
}

/// Renders the page links of one of several lists, or that nothing matches. `name` is the page parameter.
pub(crate) fn pager_of(
    visit: &PageContext<'_>,
    name: &str,
    label: &str,
    (shown, all, of_page): (usize, usize, usize),
) -> Markup {
    let (page, pages) = (visit.query.page_of(name), all.div_ceil(of_page).max(1));
    let link = |page: usize, words: &str, rel: &str| {
        html! { a.button rel=(rel) href={ (visit.path) (visit.query.with(name, &page.to_string())) } { (words) } }
    };
    html! {
        @if all == 0 { p.soft { "No matches." } }
        @if pages > 1 {
            nav.pager aria-label=(label) {
                @if page > 1 { (link((page - 1).min(pages), "Previous", "prev")) }
                span { "Page " (page) " of " (pages) ", " (shown) " of " (all) }
                @if page < pages { (link(page + 1, "Next", "next")) }
            }
        }
    }
}

fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" focusable="false" {
            path d="M4 20h11a4 4 0 000-8H9a4 4 0 010-8h11" fill="none" stroke="currentColor" stroke-width="2.6" stroke-linecap="round" {}
            circle cx="4" cy="20" r="2" fill="currentColor" {}
            circle cx="20" cy="4" r="2" fill="currentColor" {}
        }
    }
}

fn icon(lines: &str) -> Markup {
    html! {
        svg.icon viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false" {
            path d=(lines) fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" {}
        }
    }
}

fn theme_icon(theme: Theme) -> Markup {
    let lines = match theme {
        Theme::System => "M2 3h12v8H2zM6 14h4M8 11v3",
        Theme::Light => {
            "M8 5a3 3 0 100 6 3 3 0 000-6zM8 1v1.5M8 13.500V15M1 8h1.5M13.500 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1"
        }
        Theme::Dark => "M13 10A6 6 0 016 3a5.5 5.5 0 107 7z",
    };
    icon(lines)
}
