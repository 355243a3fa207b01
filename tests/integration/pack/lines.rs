//! A line that can be removed without a failure is not tested.

use super::{in_parallel, passes, with_file, written};
use std::collections::BTreeMap;
use std::path::Path;
use switchback_compiler::mapping::load::PackSource;
use switchback_compiler::mapping::{Compiler, compile};

/// Lines that may be removed without a finding or a failing example, each with the reason.
/// `pack/file: line as written, without indentation`, and their number.
const SURVIVORS: &[(&str, usize, &str)] = &[
    (
        "messaging/agents.map.yaml: differs: 'Of all agents at once (allPages) not more than 400 are shown; with more the call is refused.'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/chats.map.yaml: differs: 'With more than 400 chats a list without a page is refused, where `lists.all_pages` is on.'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/chats.map.yaml: approximate: {chats_archived: 'siteCustomerId and messengerId are what v2 showed when it was last read.'}",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/chats.map.yaml: differs: 'With more than 400 chats a list without a page is refused.'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/chats.map.yaml: differs: 'With more than 400 chats the filters are refused. Of the agents only the ids are known, of the customer, too, unless each is asked for. The id of the customer is an integer, which v3 may show as a text (A5).'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/chats.map.yaml: differs: 'An agent whom v2 does not show any more has no name.'",
        1,
        "a sentence for the report: the route is `different` with or without it, since a type is not kept",
    ),
    (
        "messaging/chats.map.yaml: differs: 'v2 asks the contact to rate the service where v3 sends the configured thank-you message (A18).'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/chats.map.yaml: differs: 'The contact is found by its e-mail, in any case of letters, else by the digits of its phone, and its name is not changed. A subject is the first line of the message.'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/contacts.map.yaml: - 'A page can be shorter by the contacts that were deleted on it.'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/contacts.map.yaml: - 'With more than 400 contacts a list without a page is refused, where `lists.all_pages` is on.'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/chats.map.yaml: only: {v3: {id: none}}                            # an integer as in the chat, where the agent's own view has a text (A5)",
        1,
        "the steps give the agent of a chat its id; without this line the report counts it among what `rest` leaves out",
    ),
    (
        "messaging/contacts.map.yaml: differs: 'With more than 400 contacts a list without a page is refused.'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/contacts.map.yaml: differs: 'The filter `email` is compared without regard to case, `phone` by its digits and with either number. With more than 400 contacts they are refused.'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/contacts.map.yaml: differs: 'Made by several calls. If the change after the making fails, the contact exists: the answer then carries its id in `x-created-id`, and a repeated request completes it.'",
        1,
        "a sentence for the report: the verdict is the same with or without it, since the route takes several calls",
    ),
    (
        "messaging/contacts.map.yaml: differs: *whole",
        1,
        "a sentence for the report: the verdict is the same with or without it, since the route takes several calls",
    ),
    (
        "messaging/flows.map.yaml: differs: 'A flow with variables runs only in a chat that is the only open one of its contact on the channel, among at most 400 chats, and an agent who attends it is removed. v2 answers 200 where it does not run the flow, too, and 400 on a channel other than Email, Messenger, TelegramBot and Whatsapp.'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/flows.map.yaml: differs: 'v3 does not say that the agent is removed or that the chat returns to auto. v3 lists no channels, so a `uuid` that is of none is refused like one of a channel without an open chat, where v2 answers 400. A chat in wait_for_chat runs the flow only without whenWaitForChat, as the document has it, or only with it, where the operator wants it so (A22).'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/messages.map.yaml: differs: 'With more than 400 messages a list without a page is refused, where `lists.all_pages` is on.'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/messages.map.yaml: differs: 'With more than 400 messages a list without a page is refused.'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/messages.map.yaml: differs: 'The message in the answer is the newest of the chat with the same text. Where there is none, or the chat has more than 100 messages, it has no id. `canEnableSession` is left out, since v2 does not show it.'",
        1,
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messaging/pack.yaml: scope: {v3: '/companies/{company}'}",
        1,
        "read by the gateway for clients with a secondary company, which an example of a pack cannot have",
    ),
    (
        "messaging/pack.yaml: types: {v2: Error, v3: Error}",
        1,
        "both contracts name one type of errors, which is found without the line",
    ),
    ("messaging/pack.yaml: default: false", 2, "no value is as good as `false` to `unless`"),
    (
        "ingress/pack.yaml: types: {v1beta1: Status, v1: Status}",
        1,
        "both contracts name one type of errors, which is found without the line",
    ),
    (
        "ingress/pack.yaml: unknown_token: Unauthorized",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: not_found: NotFound",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: wrong_method: MethodNotAllowed",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: bad_path: BadRequest",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: bad_request: BadRequest",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: bad_body: BadRequest",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: too_large: RequestEntityTooLarge",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: unsupported_media: UnsupportedMediaType",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: request_timeout: Timeout",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: overloaded: ServiceUnavailable",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: needs_reconnect: ServiceUnavailable",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: upstream_unreachable: ServiceUnavailable",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: upstream_refused: Forbidden",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: upstream_closed: InternalError",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: upstream_broken: InternalError",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: upstream_timeout: Timeout",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: refused: NotImplemented",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: internal: InternalError",
        1,
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "sendgrid/lists.map.yaml: start_time: drop",
        5,
        "a parameter of v3 that nothing fills: only v2 is served",
    ),
    ("sendgrid/lists.map.yaml: end_time: drop", 5, "a parameter of v3 that nothing fills: only v2 is served"),
    (
        "sendgrid/lists.map.yaml: on_fail: pass",
        5,
        "the only call: nothing was written before it that its failure could follow",
    ),
    (
        "tickets/pack.yaml: types: {v1: Error, v2: Error}",
        1,
        "both contracts name one type of errors, which is found without the line",
    ),
    (
        "tickets/tickets.map.yaml: key: {v1: $.body.ticket_id, v2: $.body.data.id}",
        1,
        "an example is one message, and this says how several belong together: the tests of events hold it",
    ),
    (
        "tickets/tickets.map.yaml: key: {v1: $.body.ticket.id, v2: $.body.data.id}",
        1,
        "an example is one message, and this says how several belong together: the tests of events hold it",
    ),
    (
        "tickets/tickets.map.yaml: correlate: {by: [$.body.ticket_id, $.body.at], within: 2m}",
        1,
        "an example is one message, and this says how several belong together: the tests of events hold it",
    ),
    (
        "tickets/tickets.map.yaml: correlate: {by: [$.body.ticket.id, $.body.at], within: 2m}",
        1,
        "an example is one message, and this says how several belong together: the tests of events hold it",
    ),
];

/// Of the lines of the packs, one in so many is removed in the suite; all of them with
/// `SWITCHBACK_EVERY_LINE=1 cargo test --test integration pack::lines`.
const ONE_IN: usize = 4;

/// A line of a pack: the number of the pack, its file, its number from 0, and its words.
type Line = (usize, String, usize, String);

/// The lines that carry something.
fn lines(number: usize, pack: &PackSource) -> Vec<Line> {
    let mut lines = Vec::new();
    for (name, text) in written(pack) {
        let mut section = "";
        for (index, line) in text.lines().enumerate() {
            let words = line.trim();
            if !line.starts_with([' ', '#', '-']) && !words.is_empty() {
                section = words;
            }
            // An example has one answer and no comparison: these lines are tested by the dual run's
            // corpus. A missing example tests nothing.
            if ["compare:", "examples:"].contains(&section) {
                continue;
            }
            if !words.is_empty() && !words.starts_with('#') {
                lines.push((number, name.to_owned(), index, words.to_owned()));
            }
        }
    }
    lines
}

/// Whether a pack passes without this line.
fn survives(compiler: &mut Compiler, pack: &PackSource, (_, name, index, _): &Line) -> bool {
    let text = written(pack).find(|(have, _)| have == name).expect("a file of the pack").1;
    let rest = text.lines().enumerate().filter(|(at, _)| at != index);
    let rest: String = rest.flat_map(|(_, line)| [line, "\n"]).collect();
    passes(&compiler.compile(&with_file(pack, name, rest)))
}

/// How often each line is there, by its pack, file and words.
fn counted<'l>(
    lines: impl Iterator<Item = &'l Line>,
    packs: &[(&str, PackSource)],
) -> BTreeMap<String, usize> {
    let named = lines.map(|(pack, file, _, words)| format!("{}/{file}: {words}", packs[*pack].0));
    named.fold(BTreeMap::new(), |mut counts, name| {
        *counts.entry(name).or_default() += 1;
        counts
    })
}

#[test]
fn no_line_of_a_pack_can_be_removed_unnoticed() {
    let one_in = if std::env::var_os("SWITCHBACK_EVERY_LINE").is_some() { 1 } else { ONE_IN };
    let packs = ["ingress", "issues", "messaging", "payments", "sendgrid", "tickets", "tweets"].map(|name| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings").join(name);
        (name, PackSource::from_dir(&folder).expect("the pack lies beside the sources"))
    });
    for (name, pack) in &packs {
        assert!(passes(&compile(pack)), "{name} passes as it is");
    }
    let all: Vec<Line> =
        packs.iter().enumerate().flat_map(|(number, (_, pack))| lines(number, pack)).collect();
    let tried: Vec<&Line> = all.iter().step_by(one_in).collect();
    let survived = in_parallel(&tried, |compiler, line| survives(compiler, &packs[line.0].1, line));
    let survived = tried.iter().zip(survived).filter(|(_, survived)| *survived).map(|(line, _)| *line);
    let (all, tried, survived) =
        (counted(all.iter(), &packs), counted(tried.iter().copied(), &packs), counted(survived, &packs));
    println!("{} lines removed one at a time, {} survivors", tried.len(), survived.len());
    assert!(tried.len() > 200, "the packs were not read");
    let may_go: BTreeMap<&str, usize> = SURVIVORS.iter().map(|(line, count, _)| (*line, *count)).collect();
    let unjustified: Vec<_> = survived
        .iter()
        .filter(|(line, count)| may_go.get(line.as_str()).is_none_or(|may| may < count))
        .collect();
    assert!(unjustified.is_empty(), "{unjustified:#?}");
    // A line that occurs several times is informative only if each occurrence was tried.
    let held: Vec<_> = may_go
        .iter()
        .filter(|(line, may)| {
            tried.get(**line) == all.get(**line) && survived.get(**line).copied().unwrap_or(0) < **may
        })
        .collect();
    assert!(held.is_empty(), "these lines are held by now: {held:#?}");
}
