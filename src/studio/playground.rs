//! The playground page: a dry run of a request with its calls, the context of each step, the
//! answer, and for each field the mapping line and message that it originates from. Calls with an
//! effect are never sent.
//!
//! This module renders the page; `crate::playground` executes the run and traces values.

use super::PageContext;
use super::clients::client_field;
use super::edits;
use super::fields::FormFields;
use super::layout::{Page, Tab, empty};
use super::route::tone;
use super::words::{Tone, badge, count, count_noun, moment_text, operation, percent, phase};
use crate::admin::{AdminResponse, dry_run, record_next};
use crate::playground::{
    DryRunRequest, EXCHANGES_MAX, Edits, ExampleRequest, Ran, RanAnswer, RanCall, TracedField, TriedRequest,
    TryError, texts,
};
use http::StatusCode;
use maud::{Markup, html};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Most displayed lines of a body.
const LINES_MAX: usize = 2_000;
/// Most listed recordings.
const RECORDED_SHOWN: usize = 30;
/// The phases that can be assumed.
const PHASES: [&str; 4] = ["legacy", "shadow", "canary", "translated"];

/// Time limit for the examples on a page that does not need one: compiling a pack of a thousand
/// operations takes a second.
const PATIENCE: Duration = Duration::from_millis(120);

/// The content of the editor.
#[derive(Clone, Debug, Default)]
struct PlaygroundDraft {
    method: String,
    target: String,
    headers: String,
    body: String,
    har: String,
    recorded: Option<usize>,
    phase: String,
    live: bool,
    client: String,
    /// Mapping files with texts other than the served ones.
    edits: Edits,
}

/// The result of the page's action.
enum PlaygroundResult {
    Nothing,
    Ran(Box<Ran>),
    Fault(TryError),
}

pub(super) async fn look(visit: &PageContext<'_>, rest: &[&str]) -> AdminResponse {
    if !rest.is_empty() {
        return visit.not_found();
    }
    let bench = &visit.parts.workbench;
    let is_bare = ["example", "operation", "recorded"].iter().all(|one| visit.query.get(one).is_empty());
    // A page without a choice needs the examples only for its list. A link to one of them has to wait,
    // because the page consists of its result.
    let examples = match is_bare {
        true => bench.examples_within(PATIENCE).await,
        false => bench.examples().await.map(Some),
    };
    let examples = match examples {
        Ok(Some(examples)) => examples,
        Ok(None) => return being_read(visit),
        Err(error) => return page(visit, &[], &PlaygroundDraft::default(), &PlaygroundResult::Fault(error)),
    };
    let mut draft = PlaygroundDraft::default();
    let wanted = visit.query.get("operation");
    let number = visit.query.get("example").parse::<usize>().ok();
    let number = number.or_else(|| {
        examples
            .iter()
            .position(|one| !wanted.is_empty() && format!("{} {}", one.side, one.operation) == wanted)
    });
    if let Some(recorded) = visit
        .query
        .get("recorded")
        .parse::<usize>()
        .ok()
        .filter(|at| visit.parts.workbench.recorded().get(*at).is_some())
    {
        draft.recorded = Some(recorded);
    } else if let Some(example) = number.and_then(|at| examples.get(at)) {
        draft.take(example);
    }
    // A dry run of an example is cheap and has no effect, so a link executes it at once.
    let came = if draft.is_empty() { PlaygroundResult::Nothing } else { run(visit, &draft).await };
    page(visit, &examples, &draft, &came)
}

/// Renders a page that updates itself until the examples are compiled.
fn being_read(visit: &PageContext<'_>) -> AdminResponse {
    let body = html! {
        div.page-head { h1 { "Playground" } }
        (empty("The pack is being compiled for trying", &html! { "Its examples are loading. " a href="/playground" { "Look again" } }))
    };
    visit.page(Page::live(Tab::Playground, "Playground", body))
}

pub(super) async fn form(visit: &PageContext<'_>, rest: &[&str], form: &FormFields) -> AdminResponse {
    let draft = PlaygroundDraft::from_form(visit, form);
    let came = match rest {
        // From the editor, without a request.
        [] if draft.is_empty() && !form.has("target") => PlaygroundResult::Nothing,
        [] => run(visit, &draft).await,
        // A redirect, so that reloading the page does not record again.
        ["record"] => {
            if record_next(visit.parts, visit.who(), EXCHANGES_MAX).await.is_ok() {
                return AdminResponse::see("/playground#recorded");
            }
            PlaygroundResult::Fault(TryError::Request("Another capture is open; end it first.".to_owned()))
        }
        _ => return visit.not_found(),
    };
    let examples = visit.parts.workbench.examples().await.unwrap_or_default();
    page(visit, &examples, &draft, &came)
}

async fn run(visit: &PageContext<'_>, draft: &PlaygroundDraft) -> PlaygroundResult {
    let ask = match draft.ask() {
        Ok(ask) => ask,
        Err(error) => return PlaygroundResult::Fault(error),
    };
    match dry_run(visit.parts, ask).await {
        Ok(ran) => PlaygroundResult::Ran(Box::new(ran)),
        Err(error) => PlaygroundResult::Fault(error),
    }
}

impl PlaygroundDraft {
    fn from_form(visit: &PageContext<'_>, form: &FormFields) -> PlaygroundDraft {
        // Browsers submit line ends as CRLF.
        let text = |name: &str| form.get(name).replace("\r\n", "\n");
        PlaygroundDraft {
            method: text("method"),
            target: text("target"),
            headers: text("headers"),
            body: text("body"),
            har: text("har"),
            recorded: form.get("recorded").parse().ok(),
            phase: text("phase"),
            live: form.has("live"),
            client: text("client"),
            edits: edits::parse(visit, form),
        }
    }

    fn is_empty(&self) -> bool {
        self.target.trim().is_empty() && self.har.trim().is_empty() && self.recorded.is_none()
    }

    fn take(&mut self, example: &ExampleRequest) {
        self.method.clone_from(&example.method);
        self.target.clone_from(&example.target);
        self.headers = example.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        // Bodies that are not JSON are displayed as they are.
        self.body = serde_json::from_str::<Json>(&example.body)
            .map_or_else(|_| example.body.clone(), |body| format!("{body:#}"));
    }

    fn ask(&self) -> Result<DryRunRequest, TryError> {
        let har = (!self.har.trim().is_empty()).then(|| serde_json::from_str(&self.har)).transpose();
        let har = har.map_err(|error| TryError::Request(format!("the pasted entry is no JSON: {error}")))?;
        let headers = self.headers.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        });
        let asked = TriedRequest {
            method: self.method.clone(),
            target: self.target.clone(),
            headers: headers.collect(),
            body: self.body.clone(),
        };
        let is_har = har.is_some();
        Ok(DryRunRequest {
            // A pasted entry takes precedence over a recording, and both over the fields, which may be
            // left from before.
            request: (self.recorded.is_none() && !is_har).then_some(asked),
            har,
            recorded: self.recorded.filter(|_| !is_har),
            phase: Some(self.phase.clone()).filter(|phase| !phase.is_empty()),
            files: texts(&self.edits),
            live: self.live,
            client: Some(self.client.clone()).filter(|client| !client.is_empty()),
        })
    }
}

fn page(
    visit: &PageContext<'_>,
    examples: &[ExampleRequest],
    draft: &PlaygroundDraft,
    came: &PlaygroundResult,
) -> AdminResponse {
    // The editor opens the route of the request.
    let route = match came {
        PlaygroundResult::Ran(ran) => ran.route.as_str(),
        _ => "",
    };
    // 422 instead of 200, so that scripts and tests notice a fault without reading the page.
    let status = match came {
        PlaygroundResult::Fault(_) => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::OK,
    };
    let body = html! {
        div.page-head {
            h1 { "Playground" }
            p.lead { "Runs a request through the mapping. Calls with side effects are planned and not sent; replies come from the pack's examples unless you select live reads. Point at a field of the answer, or move to it with the Tab key, to highlight its way through the mapping." }
        }
        div.bench {
            (editor(visit, examples, draft, route))
            div.bench-result #result aria-live="polite" {
                @match came {
                    PlaygroundResult::Nothing => { (empty("No result yet", &html! { "Take an example, or write a request, and press Try." })) }
                    PlaygroundResult::Fault(error) => { (fault(error)) }
                    PlaygroundResult::Ran(ran) => { (result(ran)) }
                }
            }
        }
    };
    visit.page(Page::still(Tab::Playground, "Playground", body).status(status))
}

fn fault(error: &TryError) -> Markup {
    html! {
        div.notice.bad #fault role="alert" {
            @match error {
                TryError::Findings(found) => {
                    p { strong { "The mapping text does not compile." } " The served pack is not affected." }
                    pre tabindex="0" aria-label="Findings of the compiler" { (found) }
                }
                other => { p { strong { "No request was run." } " " (other) } }
            }
        }
    }
}

fn editor(
    visit: &PageContext<'_>,
    examples: &[ExampleRequest],
    draft: &PlaygroundDraft,
    route: &str,
) -> Markup {
    html! {
        div.bench-editor {
            section.panel aria-labelledby="examples-title" {
                h2 #examples-title { "Examples of the pack" }
                @let find = visit.query.get("find").to_lowercase();
                @let fits = |one: &ExampleRequest| [&one.operation, &one.target, &one.end].iter().any(|text| text.to_lowercase().contains(&find));
                form.row method="get" action="/playground" role="search" {
                    label.grow { span.visually-hidden { "Search examples" }
                        input type="search" name="find" value=(visit.query.get("find")) placeholder="Operation, path or status";
                    }
                    button type="submit" { "Search" }
                }
                form.row method="get" action="/playground" {
                    @if !find.is_empty() { input type="hidden" name="find" value=(visit.query.get("find")); }
                    label { span.visually-hidden { "Example" }
                        select name="example" data-submit {
                            option value="" { "Take an example …" }
                            @for (at, one) in examples.iter().enumerate().filter(|(_, one)| fits(one)) {
                                option value=(at) selected[one.method == draft.method && one.target == draft.target] {
                                    (one.side) " " (one.operation) " → " (one.end) " (" (one.target) ")"
                                }
                            }
                        }
                    }
                    button type="submit" { "Take" }
                }
            }
            form.stack #bench-form method="post" action="/playground" {
                (visit.form_token())
                section.panel.stack aria-labelledby="request-title" {
                    h2 #request-title { "Request" }
                    @if let Some(recorded) = draft.recorded {
                        p.notice.busy { "Recorded exchange " (recorded) ", values masked. " a href="/playground" { "Write a request instead" } }
                        input type="hidden" name="recorded" value=(recorded);
                    } @else {
                        div.row {
                            label.method-field { "Method"
                                select name="method" {
                                    @for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
                                        option selected[method == draft.method] { (method) }
                                    }
                                }
                            }
                            label.grow { "Path and query"
                                input type="text" name="target" value=(draft.target) placeholder="/v1/things/7" spellcheck="false" autocomplete="off";
                            }
                        }
                        details open[!draft.headers.trim().is_empty()] {
                            summary { "Header fields" }
                            label { span.visually-hidden { "Header fields, one in a line" }
                                textarea name="headers" rows="3" spellcheck="false" placeholder="accept-language: es" { (draft.headers) }
                            }
                        }
                        label { "Body"
                            textarea name="body" rows=(draft.body.lines().count().clamp(3, 16)) spellcheck="false" { (draft.body) }
                        }
                        details open[!draft.har.trim().is_empty()] {
                            summary { "Paste an entry of an HTTP Archive instead" }
                            label { span.visually-hidden { "HAR entry" }
                                textarea name="har" rows="4" spellcheck="false" placeholder="{ \"request\": { … } }" { (draft.har) }
                            }
                        }
                    }
                    div.row {
                        label { "In the phase"
                            select name="phase" {
                                option value="" { "as it is now" }
                                @for phase in PHASES { option selected[phase == draft.phase] { (phase) } }
                            }
                        }
                        (client_field(visit, "Live reads on behalf of", "client", "nobody", &draft.client))
                    }
                    label.check { input type="checkbox" name="live" checked[draft.live]; span { "Send calls without side effects to the new service" } }
                    @if visit.may_operate() {
                        div.actions { button.primary type="submit" { "Try" } }
                    } @else {
                        p.hint { "Sign in with an operator token to run your own requests; examples are available to all users." }
                    }
                }
                section.panel.stack aria-labelledby="mapping-title" {
                    h2 #mapping-title { "Mapping" }
                    (edits::hidden(&draft.edits, ""))
                    input type="hidden" name="go" value=(route);
                    @if draft.edits.is_empty() { p.hint { "The served mapping files." } } @else {
                        p.notice.busy { "With the edited texts of " (edits::names(&draft.edits)) "." }
                    }
                    @if visit.may_operate() {
                        div.actions { button type="submit" formaction="/editor" { "Edit the mapping" } }
                    } @else {
                        p { a href="/editor" { "Mapping files" } }
                    }
                }
            }
            (recorded_list(visit))
        }
    }
}

fn recorded_list(visit: &PageContext<'_>) -> Markup {
    let bench = &visit.parts.workbench;
    let all = bench.recorded().list();
    html! {
        section.panel #recorded aria-labelledby="recorded-title" {
            header {
                h2 #recorded-title { "Recorded exchanges" }
                @if bench.recorded().is_recording() { (badge(Tone::Busy, "recording")) }
            }
            @if all.is_empty() {
                p.soft { "None. The next " (count(EXCHANGES_MAX as u64)) " exchanges can be recorded, masked, in memory." }
            } @else {
                div.scroll role="region" aria-label="Recorded exchanges" tabindex="0" {
                    table {
                        thead { tr { th { "Request" } th { "Client" } th.n { "Answer" } th.n { "Calls" } th { "When" } } }
                        tbody { @for one in all.iter().take(RECORDED_SHOWN) {
                            tr id={ "recorded-" (one.number) } {
                                td { a href={ "/playground?recorded=" (one.number) } { (operation(&format!("{} {}", one.method, one.target))) } }
                                td { (one.client) }
                                td.n { (one.status) }
                                td.n { (one.calls) }
                                td { (moment_text(&one.at, visit.now_ms)) }
                            }
                        } }
                    }
                }
                @if all.len() > RECORDED_SHOWN { p.soft { (count_noun((all.len() - RECORDED_SHOWN) as u64, "older one")) " not shown" } }
            }
            @if visit.may_operate() && !bench.recorded().is_recording() {
                form method="post" action="/playground/record" {
                    (visit.form_token())
                    button.small type="submit" { "Record the next " (count(EXCHANGES_MAX as u64)) " exchanges" }
                }
            }
        }
    }
}

fn result(ran: &Ran) -> Markup {
    let (name, share) = ran.phase.split_once(' ').unwrap_or((&ran.phase, ""));
    html! {
        section.panel.verdict aria-labelledby="verdict-title" {
            header {
                h2 #verdict-title { (ran.side) " " (operation(&ran.operation)) }
                span.aside { code { (ran.route) } }
            }
            p {
                @if !name.is_empty() { (phase(name, share.parse().ok())) " " }
                @if ran.answered_by == "plans" { (answering(&ran.side, name, share.parse().ok())) } @else if ran.is_forwarded {
                    "The pack refuses this, so " (ran.side) "'s own service answers"
                    @if ran.needs_credential { " clients that have a credential for it" }
                    ", unchanged. The answer without that service is below."
                } @else {
                    "In this phase " (ran.answered_by) "'s own service answers, unchanged. The result of the mapping is below."
                }
                " Verdict of the route: " (badge(tone(&ran.verdict), &ran.verdict)) " " (count_noun(ran.calls.len() as u64, "call")) "."
            }
            @if let Some(fault) = &ran.fault { div.notice.bad role="alert" { p { strong { "It fails: " } (fault) } } }
        }
        @if let Some(answer) = &ran.answer { (trail(ran, answer)) }
        @for call in &ran.calls { (call_panel(call)) }
        @if !ran.steps.is_empty() {
            section.panel aria-labelledby="context-title" {
                h2 #context-title { "Values available to the mapping" }
                @for step in &ran.steps {
                    details {
                        summary { "After call " (step.after_call + 1) }
                        pre tabindex="0" aria-label={ "Context after call " (step.after_call + 1) } { (format!("{:#}", step.context)) }
                    }
                }
            }
        }
    }
}

/// Describes which clients the mapping answers in a phase, and which the side's own service.
fn answering(side: &str, phase: &str, share: Option<f64>) -> String {
    let all = "The mapping answers.".to_owned();
    if phase != "canary" {
        return all;
    }
    match share {
        Some(1.0) => all,
        Some(share) => format!(
            "The mapping answers {} of the clients; {side}'s own service answers the others, unchanged.",
            percent(share)
        ),
        None => format!(
            "The mapping answers the clients of the canary's share; {side}'s own service answers the others, unchanged."
        ),
    }
}

/// Renders the answer, its mapping lines and its sources in columns.
fn trail(ran: &Ran, answer: &RanAnswer) -> Markup {
    html! {
        section.panel.trail aria-labelledby="answer-title" data-trail {
            header {
                h2 #answer-title { "Answer" }
                span.status { (answer.status) }
                @if answer.refused { (badge(Tone::Bad, "refused by the pack")) }
            }
            div.trail-columns {
                div.trail-answer {
                    h3 { "Answer to the client" }
                    @if let Some(body) = &answer.body {
                        pre.json tabindex="0" aria-label="Answer" { (json(body, "answer", &answer.parts)) }
                    } @else { p.soft { "No body." } }
                }
                div.trail-lines {
                    h3 { "Lines of the mapping" }
                    (lines(answer.parts.iter().chain(ran.calls.iter().flat_map(|call| &call.parts))))
                }
                div.trail-sources {
                    h3 { "Sources" }
                    @if ran.calls.iter().all(|call| call.reply.is_none()) && ran.request.is_null() { p.soft { "None." } }
                    @for call in &ran.calls {
                        @if let Some(reply) = &call.reply {
                            p.source-name { (call.number + 1) ". " code { (call.method) " " (call.target) } " " (reply_badge(call)) }
                            pre.json tabindex="0" aria-label={ "Reply to call " (call.number + 1) } { (json(reply, &format!("reply-{}", call.number), &[])) }
                        }
                    }
                    @if !ran.request.is_null() {
                        p.source-name { "The request's body" }
                        pre.json tabindex="0" aria-label="The request's body" { (json(&ran.request, "request", &[])) }
                    }
                }
            }
            p.trail-note #trail-note role="status" { "Point at a field of the answer to see its source." }
            @if !answer.parts.is_empty() { (table(&answer.parts)) }
        }
    }
}

/// Renders the same as a table, for users without a pointer and for print.
fn table(parts: &[TracedField]) -> Markup {
    html! {
        details.trail-table {
            summary { "Fields and sources as a table" }
            div.scroll role="region" aria-label="Fields and sources" tabindex="0" {
                table {
                    thead { tr { th { "Field" } th { "How" } th { "From" } th { "Line" } } }
                    tbody { @for part in parts {
                        tr {
                            td { code { (part.to) } }
                            td { (part.how) }
                            td { @if part.from.is_empty() { span.soft { "the mapping itself" } } @else { @for place in &part.from { code { (from_words(place.root, place.call, &place.place)) } " " } } }
                            td { code { (part.file) ":" (part.line) } " " span.soft { (part.text) } }
                        }
                    } }
                }
            }
        }
    }
}

fn from_words(root: &str, call: Option<u32>, place: &str) -> String {
    match (root, call) {
        ("reply", Some(call)) => format!("reply {} {place}", call + 1),
        ("request", _) => format!("request {place}"),
        _ => place.to_owned(),
    }
}

/// Renders each mapping line once, by file and number.
fn lines<'p>(parts: impl Iterator<Item = &'p TracedField>) -> Markup {
    let mut by_file: BTreeMap<&str, BTreeSet<(u32, &str)>> = BTreeMap::new();
    for part in parts.filter(|part| part.line > 0) {
        by_file.entry(&part.file).or_default().insert((part.line, &part.text));
    }
    html! {
        @for (file, lines) in &by_file {
            p.source-name { code { (file) } }
            ol.mapping-lines {
                @for (number, text) in lines {
                    li data-line={ (file) ":" (number) } { span.number { (number) } code { (text) } }
                }
            }
        }
        @if by_file.is_empty() { p.soft { "No line of it maps a field." } }
    }
}

fn reply_badge(call: &RanCall) -> Markup {
    match call.reply_by.as_str() {
        "service" => badge(Tone::Busy, "live"),
        "recording" => badge(Tone::Quiet, "recorded"),
        "example" => badge(Tone::Quiet, "example"),
        "contract" => badge(Tone::Quiet, "generated from the contract"),
        _ => badge(Tone::Bad, "no reply"),
    }
}

fn call_panel(call: &RanCall) -> Markup {
    html! {
        section.panel.call aria-label={ "Call " (call.number + 1) } {
            header {
                h2 { "Call " (call.number + 1) }
                code { (call.method) " " (call.target) }
                @if call.writes { (badge(Tone::Warn, "planned, never sent")) }
                @if call.reply_by == "service" { (badge(Tone::Busy, "sent")) }
                span.aside { code { (call.line) } }
            }
            p.soft { "Operation " (operation(&call.operation)) ", result " code { "$." (call.step) } }
            @if let Some(body) = &call.body {
                pre.json tabindex="0" aria-label={ "Body of call " (call.number + 1) } { (json(body, &format!("call-{}", call.number), &call.parts)) }
            }
            p.soft {
                "Reply: " @match call.status { Some(status) => { (status) } None => "none" } ", " (reply_badge(call))
            }
        }
    }
}

/// Renders a body line by line. Each scalar has its place, and its sources if it was generated.
fn json(body: &Json, of: &str, parts: &[TracedField]) -> Markup {
    let parts = parts.iter().map(|part| (part.to.as_str(), part)).collect();
    let mut printer = Printer { of, parts, lines: 0, cut: 0 };
    let lines = printer.value(body, "$", 0);
    html! {
        (lines)
        @if printer.cut > 0 { "\n" span.soft { "… " (count_noun(printer.cut, "further value")) " not displayed, with all that they contain" } }
    }
}

struct Printer<'p> {
    of: &'p str,
    parts: BTreeMap<&'p str, &'p TracedField>,
    lines: usize,
    /// Number of omitted members and elements.
    cut: u64,
}

impl Printer<'_> {
    fn value(&mut self, value: &Json, place: &str, depth: usize) -> Markup {
        let pad = "  ".repeat(depth + 1);
        let end = "  ".repeat(depth);
        match value {
            Json::Object(members) if !members.is_empty() => html! {
                "{\n"
                @for (at, (name, value)) in members.iter().enumerate() {
                    @if self.has_room() {
                        (pad) span.key { "\"" (name) "\"" } ": "
                        (self.value(value, &crate::playground::member_place(place, name), depth + 1))
                        @if at + 1 < members.len() { "," } "\n"
                    }
                }
                (end) "}"
            },
            Json::Array(values) if !values.is_empty() => html! {
                "[\n"
                @for (at, value) in values.iter().enumerate() {
                    @if self.has_room() {
                        (pad) (self.value(value, &format!("{place}[{at}]"), depth + 1))
                        @if at + 1 < values.len() { "," } "\n"
                    }
                }
                (end) "]"
            },
            scalar => self.leaf(scalar, place),
        }
    }

    fn has_room(&mut self) -> bool {
        // The size of a body is limited by `limits`, which may permit megabytes. A page of that many
        // elements would stop the browser.
        let has_room = self.lines < LINES_MAX;
        if has_room {
            self.lines += 1
        } else {
            self.cut += 1
        }
        has_room
    }

    fn leaf(&self, value: &Json, place: &str) -> Markup {
        let at = format!("{} {place}", self.of);
        let text = value.to_string();
        let Some(part) = self.parts.get(place) else {
            return html! { span.leaf data-place=(at) { (text) } };
        };
        let from: Vec<String> =
            part.from.iter().map(|from| from_key(from.root, from.call, &from.place)).collect();
        let words: Vec<String> =
            part.from.iter().map(|from| from_words(from.root, from.call, &from.place)).collect();
        let words = if words.is_empty() { "the mapping itself".to_owned() } else { words.join(" and ") };
        let line = format!("{}:{}", part.file, part.line);
        let note = format!("{} is {} from {words}, by {line}", part.to, part.how);
        html! {
            span.leaf.made tabindex="0" role="note" aria-label={ (text) ": " (note) } data-place=(at)
                data-from=(from.join("\n")) data-by=(line) data-note=(note) { (text) }
        }
    }
}

/// Returns the key that links a source to its place on the page.
fn from_key(root: &str, call: Option<u32>, place: &str) -> String {
    // Must equal the keys of `json`, from which the script draws the line to the source.
    match (root, call) {
        ("reply", Some(call)) => format!("reply-{call} {place}"),
        ("request", _) => format!("request {place}"),
        _ => format!("{root} {place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text of markup without its tags.
    fn text(markup: &Markup) -> String {
        let pieces = markup.0.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
        pieces.collect()
    }

    #[test]
    fn a_canary_answers_a_share_of_the_clients() {
        for (phase, share, expected) in [
            ("translated", None, "The mapping answers."),
            ("canary", Some(1.0), "The mapping answers."),
            (
                "canary",
                Some(0.5),
                "The mapping answers 50.0 % of the clients; v2's own service answers the others, unchanged.",
            ),
            (
                "canary",
                None,
                "The mapping answers the clients of the canary's share; v2's own service answers the others, unchanged.",
            ),
        ] {
            assert_eq!(answering("v2", phase, share), expected);
        }
    }

    #[test]
    fn values_of_a_long_body_that_are_not_displayed_are_counted() {
        let body = Json::from((0..LINES_MAX + 7).collect::<Vec<_>>());
        assert!(
            text(&json(&body, "answer", &[]))
                .ends_with("… 7 further values not displayed, with all that they contain")
        );
        let body = Json::from((0..LINES_MAX).collect::<Vec<_>>());
        assert!(text(&json(&body, "answer", &[])).ends_with(']'));
    }

    /// What came of a request of v2 that makes no call.
    fn ran(phase: &str, answered_by: &str, is_forwarded: bool, needs_credential: bool) -> Ran {
        Ran {
            side: "v2".to_owned(),
            operation: "GET /a".to_owned(),
            verdict: "exact".to_owned(),
            route: "a.map.yaml:1".to_owned(),
            phase: phase.to_owned(),
            answered_by: answered_by.to_owned(),
            is_forwarded,
            needs_credential,
            request: Json::Null,
            calls: Vec::new(),
            steps: Vec::new(),
            answer: None,
            fault: None,
        }
    }

    #[test]
    fn a_result_states_who_answers_the_client() {
        for (ran, expected) in [
            (ran("translated", "plans", false, false), "The mapping answers."),
            (
                ran("canary 0.25", "plans", false, false),
                "The mapping answers 25.0 % of the clients; v2's own service answers the others, unchanged.",
            ),
            (
                ran("shadow", "v2", false, false),
                "In this phase v2's own service answers, unchanged. The result of the mapping is below.",
            ),
            (
                ran("translated", "v2", true, false),
                "The pack refuses this, so v2's own service answers, unchanged. The answer without that service is below.",
            ),
            (
                ran("translated", "v2", true, true),
                "The pack refuses this, so v2's own service answers clients that have a credential for it, unchanged. \
                 The answer without that service is below.",
            ),
        ] {
            let said = text(&result(&ran));
            assert!(said.contains(&format!(" {expected} Verdict of the route: exact 0 calls.")), "{said}");
        }
    }

    #[test]
    fn a_verdict_and_the_badges_of_a_call_have_the_colour_of_what_they_state() {
        for (verdict, tone) in
            [("exact", "good"), ("different", "busy"), ("partly", "warn"), ("not possible", "bad")]
        {
            let ran = Ran { verdict: verdict.to_owned(), ..ran("translated", "plans", false, false) };
            assert!(result(&ran).0.contains(&format!("<span class=\"badge {tone}\">{verdict}</span>")));
        }
        for (writes, reply_by, words) in [
            (false, "service", "sentReply live"),
            (true, "example", "planned, never sentReply example"),
            (false, "recording", "Reply recorded"),
            (false, "contract", "Reply generated from the contract"),
            (true, "", "planned, never sentReply no reply"),
        ] {
            let call = RanCall {
                number: 0,
                step: "reply".to_owned(),
                operation: "GET /b".to_owned(),
                method: "GET".to_owned(),
                target: "/b".to_owned(),
                headers: Vec::new(),
                body: None,
                parts: Vec::new(),
                writes,
                line: "a.map.yaml:2".to_owned(),
                status: None,
                reply: None,
                reply_by: reply_by.to_owned(),
            };
            let markup = call_panel(&call).0;
            let badges = markup.split("class=\"badge ").skip(1);
            let badges: Vec<&str> = badges
                .filter_map(|rest| rest.split('<').next()?.split_once('>').map(|(_, text)| text))
                .collect();
            let (last, before) = badges.split_last().expect("one for the reply");
            assert_eq!(format!("{}Reply {last}", before.concat()), words);
        }
    }
}
