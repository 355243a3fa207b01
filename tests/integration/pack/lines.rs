//! A line that can be removed without anything noticing is a line that nobody holds to.

use super::{in_parallel, messaging, passes, with_file, written};
use std::path::Path;
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::PackSource;

/// Lines that may go without a finding or a failing example, each with the reason why nothing can hold on to it.
/// `file: line as written, without indentation`.
const SURVIVORS: &[(&str, &str)] = &[
    (
        "agents.map.yaml: differs: 'Of all agents at once (allPages) not more than 400 are shown; with more the call is refused.'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "chats.map.yaml: differs: 'With more than 400 chats a list without a page is refused, where `lists.all_pages` is on.'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "chats.map.yaml: approximate: {chats_archived: 'siteCustomerId and messengerId are what v2 showed when it was last read.'}",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "chats.map.yaml: differs: 'With more than 400 chats a list without a page is refused.'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "chats.map.yaml: differs: 'With more than 400 chats the filters are refused. Of the agents only the ids are known, of the customer, too, unless each is asked for.'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "chats.map.yaml: differs: 'An agent whom v2 does not show any more has no name.'",
        "a sentence for the report: the route is `different` with or without it, since a type is not kept",
    ),
    (
        "chats.map.yaml: differs: 'v2 asks the contact to rate the service where v3 sends the configured thank-you message (A18).'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "chats.map.yaml: differs: 'The contact is found by its e-mail, in any case of letters, else by the digits of its phone, and its name is not changed. A subject is the first line of the message.'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "contacts.map.yaml: - 'A page can be shorter by the contacts that were deleted on it.'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "contacts.map.yaml: - 'With more than 400 contacts a list without a page is refused, where `lists.all_pages` is on.'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "contacts.map.yaml: differs: 'With more than 400 contacts a list without a page is refused.'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "contacts.map.yaml: differs: 'The filter `email` is compared without regard to case, `phone` by its digits and with either number. With more than 400 contacts they are refused.'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "contacts.map.yaml: differs: 'Made by several calls. If the change after the making fails, the contact exists: the answer then carries its id in `x-created-id`, and a repeated request completes it.'",
        "a sentence for the report: the verdict is the same with or without it, since the route takes several calls",
    ),
    (
        "contacts.map.yaml: differs: 'Read, then written whole: a change by somebody else between the two calls is overwritten.'",
        "a sentence for the report: the verdict is the same with or without it, since the route takes several calls",
    ),
    (
        "contacts.map.yaml: differs: 'Read, then written whole: a change by somebody else between the two calls is overwritten.'",
        "a sentence for the report: the verdict is the same with or without it, since the route takes several calls",
    ),
    (
        "flows.map.yaml: differs: 'A flow with variables runs only in a chat that is the only open one of its contact on the channel, among at most 400 chats, and an agent who attends it is removed. v2 answers 200 where it does not run the flow, too.'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "flows.map.yaml: differs: 'v3 does not say that the agent is removed or that the chat returns to auto. A chat in wait_for_chat runs the flow only without whenWaitForChat, as the document has it, or only with it, where the operator wants it so (A22).'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messages.map.yaml: differs: 'With more than 400 messages a list without a page is refused, where `lists.all_pages` is on.'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messages.map.yaml: differs: 'With more than 400 messages a list without a page is refused.'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "messages.map.yaml: differs: 'The message in the answer is the newest of the chat with the same text. Where there is none, or the chat has more than 100 messages, it has no id.'",
        "a sentence for the report: the route is `partly` with or without it",
    ),
    (
        "pack.yaml: scope: {v3: '/companies/{company}'}",
        "read by the gateway for clients with a secondary company, which an example of a pack cannot have",
    ),
    (
        "pack.yaml: types: {v2: Error, v3: Error}",
        "both contracts name one type of errors, which is found without the line",
    ),
    ("pack.yaml: default: false", "no value is as good as `false` to `unless`"),
    ("pack.yaml: default: false", "no value is as good as `false` to `unless`"),
];

/// The same for the packs beside it, each line with its pack before it.
const SURVIVORS_ELSEWHERE: &[(&str, &str)] = &[
    (
        "ingress/pack.yaml: types: {v1beta1: Status, v1: Status}",
        "both contracts name one type of errors, which is found without the line",
    ),
    (
        "ingress/pack.yaml: unknown_token: Unauthorized",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: not_found: NotFound",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: wrong_method: MethodNotAllowed",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: bad_path: BadRequest",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: bad_request: BadRequest",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: bad_body: BadRequest",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: too_large: RequestEntityTooLarge",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: unsupported_media: UnsupportedMediaType",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: request_timeout: Timeout",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: overloaded: ServiceUnavailable",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: needs_reconnect: ServiceUnavailable",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: upstream_unreachable: ServiceUnavailable",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: upstream_refused: Forbidden",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: upstream_closed: InternalError",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: upstream_broken: InternalError",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: upstream_timeout: Timeout",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: refused: NotImplemented",
        "a word for an error of the gateway's own, which no example can have",
    ),
    (
        "ingress/pack.yaml: internal: InternalError",
        "a word for an error of the gateway's own, which no example can have",
    ),
    ("sendgrid/lists.map.yaml: start_time: drop", "a parameter of v3 that nothing fills: only v2 is served"),
    ("sendgrid/lists.map.yaml: end_time: drop", "a parameter of v3 that nothing fills: only v2 is served"),
    (
        "sendgrid/lists.map.yaml: on_fail: pass",
        "the only call: nothing was written before it that its failure could follow",
    ),
    (
        "tickets/pack.yaml: types: {v1: Error, v2: Error}",
        "both contracts name one type of errors, which is found without the line",
    ),
];

/// Of the lines of the packs beside the first, one in so many is removed in the suite; all of them with
/// `SWITCHBACK_EVERY_LINE=1 cargo test --test integration pack::lines`.
const ONE_IN: usize = 4;

/// A line of a pack: its file, its number from 0, and its words.
type Line = (String, usize, String);

/// The lines that carry something.
fn lines(pack: &PackSource) -> Vec<Line> {
    let mut lines = Vec::new();
    for (name, text) in written(pack) {
        let mut section = "";
        for (index, line) in text.lines().enumerate() {
            let words = line.trim();
            if !line.starts_with([' ', '#', '-']) && !words.is_empty() {
                section = words;
            }
            // An example has one answer and nothing to compare it with: these lines are held by the dual run's corpus. An
            // example that is not there holds nothing.
            if ["compare:", "examples:"].contains(&section) {
                continue;
            }
            if !words.is_empty() && !words.starts_with('#') {
                lines.push((name.to_owned(), index, words.to_owned()));
            }
        }
    }
    lines
}

/// Those of the lines without which nothing is found and every example holds, as `file: words`.
fn survivors(pack: &PackSource, lines: &[Line]) -> Vec<String> {
    let survived = in_parallel(lines, |compiler, (name, index, _)| {
        let text = written(pack).find(|(have, _)| have == name).expect("a file of the pack").1;
        let rest = text.lines().enumerate().filter(|(at, _)| at != index);
        let rest: String = rest.flat_map(|(_, line)| [line, "\n"]).collect();
        passes(&compiler.compile(&with_file(pack, name, rest)))
    });
    let survivors = lines.iter().zip(survived).filter(|(_, survived)| *survived).map(|(line, _)| line);
    survivors.map(|(name, _, words)| format!("{name}: {words}")).collect()
}

#[test]
fn no_line_of_the_pack_can_be_removed_unnoticed() {
    let pack = messaging();
    let lines = lines(&pack);
    let survivors = survivors(&pack, &lines);
    let justified: Vec<&str> = SURVIVORS.iter().map(|(line, _)| *line).collect();
    println!("{} lines removed one at a time, {} survivors", lines.len(), survivors.len());
    assert!(lines.len() > 200, "the pack was not read");
    assert_eq!(survivors, justified);
}

#[test]
fn no_line_of_the_packs_beside_it_can_be_removed_unnoticed() {
    let one_in = if std::env::var_os("SWITCHBACK_EVERY_LINE").is_some() { 1 } else { ONE_IN };
    let (mut tried, mut survived) = (Vec::new(), Vec::new());
    for name in ["ingress", "sendgrid", "tickets", "tweets"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings").join(name);
        let pack = PackSource::from_dir(&folder).expect("the pack lies beside the sources");
        assert!(passes(&compile(&pack)), "{name} passes as it is");
        let chosen: Vec<Line> = lines(&pack).into_iter().step_by(one_in).collect();
        tried.extend(chosen.iter().map(|(file, _, words)| format!("{name}/{file}: {words}")));
        survived.extend(survivors(&pack, &chosen).into_iter().map(|line| format!("{name}/{line}")));
    }
    println!("{} lines removed one at a time, {} survivors", tried.len(), survived.len());
    let justified = |line: &&String| SURVIVORS_ELSEWHERE.iter().any(|(known, _)| known == line);
    let unjustified: Vec<&String> = survived.iter().filter(|line| !justified(line)).collect();
    assert!(unjustified.is_empty(), "{unjustified:#?}");
    let held =
        |line: &&&(&str, &str)| tried.iter().any(|t| t == line.0) && !survived.iter().any(|s| s == line.0);
    let held: Vec<_> = SURVIVORS_ELSEWHERE.iter().filter(|line| held(&line)).collect();
    assert!(held.is_empty(), "these lines are held by now: {held:#?}");
}
