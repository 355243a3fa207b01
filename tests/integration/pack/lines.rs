//! A line that can be removed without anything noticing is a line that nobody holds to.

use super::{in_parallel, messaging, passes, with_file, written};
use switchback_compiler::mapping::compile;

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

#[test]
fn no_line_of_the_pack_can_be_removed_unnoticed() {
    let pack = messaging();
    let mut removals = Vec::new();
    for (name, text) in written(&pack) {
        let mut section = "";
        for (index, line) in text.lines().enumerate() {
            let words = line.trim();
            if !line.starts_with([' ', '#']) && !words.is_empty() {
                section = words;
            }
            // An example has one answer and nothing to compare it with: these lines are held by the dual run's corpus.
            if section == "compare:" && words != section {
                continue;
            }
            if !words.is_empty() && !words.starts_with('#') {
                removals.push((name.to_owned(), index, words.to_owned()));
            }
        }
    }
    let survived = in_parallel(&removals, |(name, index, _)| {
        let text = written(&pack).find(|(have, _)| have == name).expect("a file of the pack").1;
        let rest = text.lines().enumerate().filter(|(at, _)| at != index);
        let rest: String = rest.flat_map(|(_, line)| [line, "\n"]).collect();
        passes(&compile(&with_file(&pack, name, rest)))
    });
    let survivors =
        removals.iter().zip(survived).filter(|(_, survived)| *survived).map(|(removal, _)| removal);
    let survivors: Vec<String> = survivors.map(|(name, _, words)| format!("{name}: {words}")).collect();
    let justified: Vec<&str> = SURVIVORS.iter().map(|(line, _)| *line).collect();
    println!("{} lines removed one at a time, {} survivors", removals.len(), survivors.len());
    assert!(removals.len() > 200, "the pack was not read");
    assert_eq!(survivors, justified);
}
