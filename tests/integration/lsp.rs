//! `switchback lsp` as an editor uses it, on the first pack.

use crate::support::editor::{Editor, position};
use serde_json::{Value, json};

const FILE: &str = "messages.map.yaml";

fn messages(findings: &[Value]) -> Vec<&str> {
    findings.iter().map(|finding| finding["message"].as_str().expect("a text")).collect()
}

/// Opens the file in an editor with its text.
fn start() -> (Editor, String) {
    let mut editor = Editor::start(&[]);
    let text = editor.text(FILE);
    editor.set(FILE, &text);
    assert!(editor.published(FILE, json!(1)).is_empty(), "the pack has no findings");
    (editor, text)
}

/// Replaces a part that the text has.
fn edit(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the text contains `{from}`");
    text.replacen(from, to, 1)
}

#[test]
fn findings_follow_the_unsaved_text_and_vanish_with_their_cause() {
    let (mut editor, text) = start();
    let found = editor.change(FILE, &edit(&text, "is_email: isEmail", "is_email: isEmial"));
    assert_eq!(messages(&found), ["`isEmial` is not a field of v3 object\ndid you mean `isEmail`?"]);
    assert_eq!(found[0]["code"], "M029");
    assert_eq!(found[0]["severity"], 1);
    assert_eq!(found[0]["range"]["start"], position(&text, "isEmail", 0));
    assert!(editor.change(FILE, &text).is_empty());
    assert!(!editor.text(FILE).contains("isEmial"), "the file on disk is not written");
    assert!(editor.exit().success());
}

/// A change or a request ends the check of the text before it, and nothing is lost by that.
#[test]
fn a_change_supersedes_the_check_of_the_text_before_it() {
    let (mut editor, text) = start();
    let slip = edit(&text, "is_email: isEmail", "is_email: isEmial");
    for text in [&slip, &text, &slip, &text] {
        editor.set(FILE, text);
        let words = editor.ask("hover", FILE, position(text, "is_internal", 1));
        assert!(
            words["contents"]["value"].as_str().is_some_and(|words| words.contains("isInternal")),
            "{words}"
        );
    }
    let found = editor.change(FILE, &slip);
    assert_eq!(messages(&found), ["`isEmial` is not a field of v3 object\ndid you mean `isEmail`?"]);
    assert!(editor.exit().success());
}

/// A change of one file may cause findings in another one, which need not be open.
#[test]
fn findings_are_published_for_files_that_are_not_open() {
    let (mut editor, text) = start();
    editor.change(FILE, &text.replace("Message:\n    of:", "Massage:\n    of:"));
    let uri = editor.uri(FILE);
    editor.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    assert!(editor.published(FILE, Value::Null).is_empty(), "a closed file is read from disk");
}

#[test]
fn columns_are_counted_in_the_negotiated_encoding() {
    for (encodings, name, columns) in [(&["utf-16", "utf-8"][..], "utf-8", 4), (&[], "utf-16", 2)] {
        let mut editor = Editor::start(encodings);
        assert_eq!(editor.capabilities["capabilities"]["positionEncoding"], name);
        let text = format!("mapping: 1\nshapes: {{}}\n{}: 1\n", "😀");
        editor.set("new.map.yaml", &text);
        let found = editor.published("new.map.yaml", json!(1));
        let unknown = found.iter().find(|one| one["code"] == "Y020").unwrap_or_else(|| panic!("{found:?}"));
        assert_eq!(unknown["range"]["end"], json!({"line": 2, "character": columns}));
    }
}

fn labels(items: &Value) -> Vec<String> {
    let items = items.as_array().expect("a list").iter();
    items.map(|item| item["label"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn names_of_every_kind_are_completed_where_they_are_possible() {
    let (mut editor, text) = start();
    for (from, written, has, lacks) in [
        ("is_email: isEmail", "is_email: isE", "isEmail", "is_email"),
        ("is_email: isEmail", "is_em", "is_email", "isEmail"),
        ("is_email: isEmail", "is_email: ", "isEmail", "is_email"),
        ("response: [Message]", "response: [Mes", "MessageSent", "GET /chats"),
        ("    query: [page]", "    que", "query", "response"),
        ("v3: chat, shape: MessageChat}", "v3: chat, sha", "shape", "same"),
        ("v3: 'GET /chats/{id}/messages'}", "v3: GET /ch", "GET /chats/{id}", "MessageSent"),
        ("v3: 'GET /chats/{id}/messages'}", "v3: 'GE", "GET /chats/{id}", "no_file"),
        ("call: 'GET /chats/{id}/messages', pages", "call: 'GE', pages", "GET /chats", "Message"),
        ("refuse: no_file", "refuse: ", "no_file", "Message"),
        ("from: $.one.message,", "from: $.one.", "message", "request"),
        ("each: {message: $.messages.body}", "each: {message: $.}", "messages", "body"),
        ("$.config.lists.all_pages", "$.config.lists.a", "lists.all_pages", "Message"),
        ("mapping: 1\n", "mapping: 1\nexa", "examples", "query"),
    ] {
        let cursor = written.trim_end_matches("', pages").trim_end_matches('}');
        let changed = edit(&text, from, written);
        editor.change(FILE, &changed);
        let at = position(&changed, written, cursor.len());
        let found = labels(&editor.ask("completion", FILE, at));
        assert!(found.iter().any(|name| name == has), "{written}: {found:?}");
        assert!(!found.iter().any(|name| name == lacks), "{written}: {found:?}");
    }
}

#[test]
fn a_completed_name_replaces_what_is_written_and_keys_have_their_documentation() {
    let (mut editor, text) = start();
    let operation = edit(&text, "v3: 'GET /chats/{id}/messages'}", "v3: GET /ch");
    editor.change(FILE, &operation);
    let items = editor.ask("completion", FILE, position(&operation, "v3: GET /ch", 11));
    let item = items.as_array().expect("a list").iter().find(|item| item["label"] == "GET /chats/{id}");
    let item = item.expect("the contract has it");
    assert_eq!(item["textEdit"]["newText"], "'GET /chats/{id}'", "braces are quoted");
    assert_eq!(item["textEdit"]["range"]["start"], position(&operation, "v3: GET /ch", 4));
    let key = edit(&text, "    query: [page]", "    que");
    editor.change(FILE, &key);
    let items = editor.ask("completion", FILE, position(&key, "    que", 7));
    let item = items.as_array().expect("a list").iter().find(|item| item["label"] == "query");
    let item = item.expect("a pair has it");
    assert!(item["documentation"].as_str().is_some_and(|about| about.contains("Query parameters")), "{item}");
}

fn about(editor: &mut Editor, text: &str, needle: &str, after: usize) -> String {
    let answer = editor.ask("hover", FILE, position(text, needle, after));
    answer["contents"]["value"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_field_is_described_with_both_types_and_a_key_with_its_documentation() {
    let (mut editor, text) = start();
    let both = "`v2` is_email: `boolean`, required\n\n`v3` isEmail: `boolean`, required";
    assert_eq!(about(&mut editor, &text, "is_email: isEmail", 2), both);
    assert_eq!(about(&mut editor, &text, "is_email: isEmail", 12), both);
    for (needle, after, contains) in [
        ("[Message]", 2, "`v2` Message, `v3` Message"),
        ("rename:", 2, "place of the old side"),
        ("GET /chats/{id}/messages', v3", 2, "List the messages of a chat"),
        ("no_file", 2, "en:"),
        ("of: {v2: Message", 10, "- is_email: `boolean`, required"),
        ("$.one.message", 8, "`Message`"),
    ] {
        let said = about(&mut editor, &text, needle, after);
        assert!(said.contains(contains), "{needle}: {said}");
    }
}

#[test]
fn definitions_lead_to_shapes_types_operations_fields_and_reasons() {
    let (mut editor, text) = start();
    for (needle, after, file, line) in [
        ("[Message]", 2, FILE, "  Message:"),
        ("of: {v2: Message", 10, "contracts/v2.openapi.yaml", "    Message:"),
        ("is_email: isEmail", 12, "contracts/v3.openapi.yaml", "isEmail:"),
        ("GET /chats/{id}/messages', v3", 2, "contracts/v2.openapi.yaml", "    get:"),
        ("no_file", 2, FILE, "  no_file:"),
    ] {
        let places = editor.ask("definition", FILE, position(&text, needle, after));
        assert_eq!(places[0]["uri"], editor.uri(file), "{needle}");
        let at = places[0]["range"]["start"]["line"].as_u64().expect("a line") as usize;
        let declared = editor.text(file).lines().nth(at).unwrap_or_default().to_owned();
        assert!(declared.contains(line), "{needle}: {declared}");
    }
}

#[test]
fn a_shape_is_renamed_in_all_files_of_the_pack() {
    let (mut editor, text) = start();
    let at = position(&text, "[Message]", 2);
    assert!(editor.ask("prepareRename", FILE, at.clone())["start"].is_object());
    assert!(editor.ask("prepareRename", FILE, position(&text, "rename:", 1)).is_null());
    let (document, rename) = (json!({"uri": editor.uri(FILE)}), "textDocument/rename");
    let answer = editor.request(rename, json!({"textDocument": document, "position": at, "newName": "Note"}));
    let changes = answer["changes"].as_object().expect("edits by file").clone();
    assert_eq!(changes.len(), 2, "{changes:?}");
    for file in [FILE, "messages.examples.map.yaml"] {
        let edits = changes[&editor.uri(file)].as_array().expect("a list").clone();
        let mut lines: Vec<String> = editor.text(file).lines().map(str::to_owned).collect();
        for one in edits.iter().rev() {
            let [start, end] =
                ["start", "end"].map(|end| one["range"][end]["character"].as_u64().expect("one"));
            let line = &mut lines[one["range"]["start"]["line"].as_u64().expect("a line") as usize];
            line.replace_range(start as usize..end as usize, one["newText"].as_str().expect("a text"));
        }
        let renamed = lines.join("\n") + "\n";
        std::fs::write(editor.path(file), &renamed).expect("the file is written");
        editor.set(file, &renamed);
    }
    assert!(editor.change(FILE, &editor.text(FILE)).is_empty());
}

#[test]
fn a_rename_that_would_change_the_pack_is_refused() {
    let (mut editor, text) = start();
    let (document, rename) = (json!({"uri": editor.uri(FILE)}), "textDocument/rename");
    let at = position(&text, "[Message]", 2);
    let known = json!({"textDocument": document, "position": at, "newName": "Chat"});
    let refused = editor.request(rename, known.clone());
    assert!(refused["message"].as_str().is_some_and(|why| why.contains("same meaning")), "{refused}");
    editor.change(FILE, &edit(&text, "is_email: isEmail", "is_email: isEmial"));
    let refused = editor.request(rename, known);
    assert!(refused["message"].as_str().is_some_and(|why| why.contains("has errors")), "{refused}");
}

#[test]
fn a_suggestion_is_a_correction() {
    let (mut editor, text) = start();
    let wrong = edit(&text, "is_email: isEmail", "is_email: isEmial");
    editor.change(FILE, &wrong);
    let at = position(&wrong, "isEmial", 3);
    let range = json!({"start": at, "end": at});
    let document = json!({"uri": editor.uri(FILE)});
    let ask = json!({"textDocument": document, "range": range, "context": {"diagnostics": []}});
    let actions = editor.request("textDocument/codeAction", ask);
    let change = &actions[0]["edit"]["changes"][editor.uri(FILE)][0];
    assert_eq!(change["newText"], "isEmail");
    assert_eq!(change["range"]["start"], position(&wrong, "isEmial", 0));
    let elsewhere = position(&wrong, "routes:", 0);
    let ask = json!({"textDocument": document, "range": {"start": elsewhere, "end": elsewhere}});
    assert_eq!(editor.request("textDocument/codeAction", ask), json!([]));
}

/// While a file is not YAML, its names keep the meaning that they had, except in the changed text.
#[test]
fn a_broken_file_keeps_its_help() {
    let (mut editor, text) = start();
    let broken = edit(&text, "is_email: isEmail", "is_email: isEmail\n      x: [a");
    let found = editor.change(FILE, &broken);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["code"], "Y001");
    assert!(about(&mut editor, &broken, "is_internal: isInternal", 2).contains("isInternal"));
    assert!(about(&mut editor, &broken, "[Message]", 2).contains("shape `Message`"));
    let found = labels(&editor.ask("completion", FILE, position(&broken, "is_internal: isI", 16)));
    assert!(found.iter().any(|name| name == "isInternal"), "{found:?}");
    let places = editor.ask("definition", FILE, position(&broken, "[Message]", 2));
    assert_eq!(places[0]["range"]["start"], position(&broken, "Message:", 0));
    let document = json!({"uri": editor.uri(FILE)});
    let at = position(&broken, "[Message]", 2);
    let ask = json!({"textDocument": document, "position": at, "newName": "Note"});
    let refused = editor.request("textDocument/rename", ask);
    assert!(refused.is_null() || refused["message"].is_string(), "{refused}");
}

#[test]
fn requests_that_make_no_sense_have_an_answer() {
    let (mut editor, text) = start();
    let at = position(&text, "rename:", 1);
    for uri in ["file:///nowhere/x.map.yaml", "untitled:1", ""] {
        for method in ["completion", "hover", "definition", "prepareRename", "rename", "codeAction"] {
            let ask = json!({"textDocument": {"uri": uri}, "position": at, "newName": "x"});
            assert!(editor.request(&format!("textDocument/{method}"), ask).is_null(), "{method} {uri}");
        }
    }
    for position in [json!(null), json!({"line": -1}), json!({"line": 9_999_999, "character": 9_999_999})] {
        editor.ask("completion", FILE, position.clone());
        editor.ask("hover", FILE, position);
    }
    assert_eq!(editor.request("textDocument/unheardOf", json!({}))["code"], -32601);
    editor.notify("textDocument/didChange", json!({"textDocument": {}, "contentChanges": []}));
    editor.notify("$/unheardOf", json!(null));
    assert!(editor.change(FILE, "").iter().any(|one| one["code"] == "Y003"));
    assert!(editor.exit().success());
}

/// Each prefix of a file is a text that occurs while it is typed.
#[test]
fn every_prefix_of_a_file_has_an_answer() {
    let (mut editor, text) = start();
    for end in (0..text.len()).step_by(211).filter(|end| text.is_char_boundary(*end)) {
        let typed = &text[..end];
        editor.set(FILE, typed);
        let line = typed.rfind('\n').map_or(0, |at| at + 1);
        let column = typed[line..].encode_utf16().count();
        let at = json!({"line": typed.matches('\n').count(), "character": column});
        assert!(editor.ask("completion", FILE, at.clone()).is_array());
        editor.ask("hover", FILE, at);
    }
    assert!(editor.change(FILE, &text).is_empty());
}
