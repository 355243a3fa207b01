//! Decisions: their order, the lines to paste, and the places that they refer to.

use super::*;

#[test]
fn what_is_sure_is_written_and_what_is_not_is_a_decision() {
    let draft = drafted(OLD, &new(), &[]);
    let file = |name: &str| draft.files.iter().find(|(known, _)| known == name).map_or("", |(_, text)| text);
    assert_eq!(
        file("shapes.map.yaml"),
        "mapping: 1
shapes:
  NewNoteSent:
    of: {v1: NewNote, v2: NewNote}
    same: [title]
    only: {v1: {colour: {refuse: todo}}}
  Note:
    of: {v1: Note, v2: Note}
    same: [id]
    rename:
      state: {v2: state, as: {table: {open: open, done: done}}, else: keep}
      is_private: isPrivate
      stars: {v2: stars, as: null_is_absent}
    rest: {v2: lost}
"
    );
    assert!(file("notes.map.yaml").contains("front: v1}\n    query: {page: page}\n    response: [Note]\n"));
    assert!(file("notes.map.yaml").contains("    request: NewNoteSent\n    response: Note\n"));
    assert_eq!(file("rooms.map.yaml"), "", "a guess is not written");
    assert!(
        file("users.map.yaml")
            .contains("pair: {v1: 'GET /users/search_all', v2: 'GET /users/searchAll', front: v1}")
    );
    assert_eq!(draft.counts.refused, 3, "{:?}", draft.decisions);
    let blockers: Vec<&str> = draft
        .decisions
        .iter()
        .filter(|decision| decision.weight == Weight::Blocker)
        .map(|decision| decision.operation.as_str())
        .collect();
    assert_eq!(blockers, ["GET /gone"]);
    assert_eq!(draft.decisions[0].weight, Weight::Blocker, "blockers come first");
    let look = draft.decisions.iter().filter(|decision| decision.weight == Weight::Look).count();
    assert!(look >= 3, "{:?}", draft.decisions);
}

#[test]
fn decisions_are_ranked_by_the_calls_and_clients_that_wait_for_them() {
    let one = |name: &str| format!("  /{name}: {{get: {{responses: {{204: {{description: done}}}}}}}}\n");
    let head = "openapi: 3.0.3\ninfo: {title: t, version: '1'}\npaths:\n";
    let names = ["a", "b", "c", "d"].map(one);
    let (old, new) = (format!("{head}{}", names.concat()), format!("{head}{}", one("other")));
    let mut draft = drafted(&old, &new, &[]);
    let operations = |draft: &Draft| -> Vec<String> {
        draft.questions().iter().map(|group| group.cases[0].operation.clone()).collect()
    };
    assert_eq!(operations(&draft), ["GET /a", "GET /b", "GET /c", "GET /d"]);
    assert!(!file(&draft, DECISIONS).contains(" calls"));
    let learned = r#"{"operations": [
        {"operation": "GET /c", "calls": 9, "clients": 1, "client_numbers": [3]},
        {"operation": "GET /b", "calls": 1, "clients": 1, "client_numbers": [3]},
        {"operation": "GET /d", "calls": 9, "clients": 2, "client_numbers": [1, 3]}]}"#;
    draft.rank(parse_uses(learned).expect("it is read"));
    assert_eq!(operations(&draft), ["GET /d", "GET /c", "GET /b", "GET /a"]);
    let list = file(&draft, DECISIONS);
    assert!(list.contains(" 9 calls, 2 clients."), "{list}");
    assert!(list.contains(" 1 call, 1 client."), "{list}");
    let list = parse_list(file(&draft, DECISIONS_JSON)).expect("it is read");
    assert_eq!(list, draft.questions());
    assert_eq!(list[0].traffic, Some(DecisionTraffic { calls: 9, clients: 2 }));
    assert_eq!(list[3].traffic, None);
    // The clients of several operations are counted once.
    let uses = parse_uses(learned).expect("it is read");
    let mut same = draft.decisions.clone();
    same.iter_mut().for_each(|one| (one.text, one.places) = ("the same".to_owned(), [None, None]));
    let [group] = decision::group(&same, &uses).try_into().expect("one question");
    assert_eq!(group.traffic, Some(DecisionTraffic { calls: 19, clients: 2 }));
}

#[test]
fn parts_that_do_not_go_over_are_listed_with_their_places() {
    let two = |text: String| {
        let path =
            text.split("paths:\n").nth(1).and_then(|rest| rest.split("components:").next()).expect("paths");
        let other = path.replace("/note:", "/other:");
        text.replace("components:", &format!("{other}components:"))
    };
    let old =
        two(noted("id: {type: string}, size: {type: integer, maximum: 10}, gone: {type: string}", "id"));
    let new = two(noted("id: {type: string}, size: {type: integer}", "id"));
    let draft = drafted(&old, &new, &[]);
    assert_eq!((draft.counts.marked, draft.counts.refused), (2, 0), "{:?}", draft.decisions);
    let joined = draft.questions();
    let texts: Vec<(&str, usize)> = joined.iter().map(|one| (one.text.as_str(), one.cases.len())).collect();
    assert_eq!(
        texts,
        [("`size` of v2: values above 10", 2), ("`gone` of v1: nothing on the other side fills it", 2)]
    );
    assert!(joined.iter().all(|one| one.weight == Weight::Changed && one.places.iter().all(Option::is_some)));
    let line = |text: &str| text.lines().position(|line| line.contains("Note: {")).map(|at| at as u32 + 1);
    assert_eq!(joined[0].places[0].as_ref().map(|place| place.line), line(&old));
    let decisions = file(&draft, DECISIONS);
    assert!(decisions.contains("## Passes, but changed (4)"), "{decisions}");
    assert!(decisions.contains("- 2 operations: `size` of v2: values above 10."), "{decisions}");
    assert!(decisions.contains("  - `GET /other` at `$.size`\n"), "{decisions}");
    let json: serde_json::Value = serde_json::from_str(file(&draft, DECISIONS_JSON)).expect("it is JSON");
    assert_eq!(json["decisions"][0]["cases"][0]["operation"], "GET /note");
    assert_eq!(json["decisions"][0]["weight"], "changed");
}

/// The lines of a refused operation pass `check` when they are pasted, and its obstacles name all
/// that a person has to decide.
#[test]
fn an_operation_with_obstacles_has_lines_that_are_ready_to_be_pasted() {
    let old = noted(
        "id: {type: string}, total: {type: integer}, kind: {type: string, enum: [a, b]}, tags: {type: string}, was: {type: string}",
        "id, total, kind, tags, was",
    );
    let new = noted(
        "id: {type: string}, sum: {type: integer}, kind: {type: string, enum: [x, y]}, tags: {type: array, items: {type: string}}, was: {type: string}",
        "id, sum, kind, tags",
    );
    let draft = drafted(&old, &new, &[]);
    assert_eq!(draft.counts.refused, 1);
    let blockers: Vec<&Decision> =
        draft.decisions.iter().filter(|one| one.weight == Weight::Blocker).collect();
    let texts: Vec<&str> = blockers.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(texts.len(), 4, "{texts:?}");
    for part in ["`total` is always there", "kind", "tags", "`was` is always there on one side"] {
        assert!(texts.iter().any(|text| text.contains(part)), "{part}: {texts:?}");
    }
    let total = blockers.iter().find(|one| one.text.contains("`total`")).expect("a decision");
    let lines: Vec<&str> = total.choices.iter().map(|choice| choice.line.as_str()).collect();
    assert_eq!(lines, ["only: {v1: {total: 1}}", "rename: {total: sum}"]);
    let file = total.lines.as_deref().expect("a mapping file");
    let own = [("note.map.yaml".to_owned(), file.to_owned())];
    let sides = [side("v1", &old), side("v2", &new)];
    let pasted = super::draft("t", &sides, &own, &BTreeSet::new(), &mut |_| ()).expect("it drafts");
    assert!(!pasted.compiled.findings.has_errors());
    assert_eq!(pasted.counts.refused, 0, "{file}\n{:?}", pasted.decisions);
    // The chosen lines make the same operation part of the draft, and leave no decision.
    for at in [0, 1] {
        let line = |one: &&Decision| {
            let at = if one.id == "note-total" { at } else { 0 };
            format!("{}: {}", one.id, one.choices[at].line)
        };
        let lines: Vec<String> = blockers.iter().map(line).collect();
        let decided = drafted(&old, &new, &lines.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((decided.counts.refused, decided.faults.len()), (0, 0), "{lines:?}\n{:?}", decided.faults);
        assert!(decided.decisions.iter().all(|one| one.weight > Weight::Proposal), "{:?}", decided.decisions);
        let shapes = self::file(&decided, "shapes.map.yaml");
        assert_eq!(shapes.contains("      total: sum\n"), at > 0, "{shapes}");
        assert_eq!(shapes.contains("total: 1"), at == 0, "{shapes}");
    }
    // A line that does not compile refuses the operation again, with the reason.
    let wrong = drafted(&old, &new, &["note-total: rename: {total: nowhere}"]);
    assert!(wrong.faults["GET /note"].contains("nowhere"), "{:?}", wrong.faults);
    assert_eq!(wrong.counts.refused, 1);
}

/// A member that the other side does not always have takes its place only with a value for answers
/// without it.
#[test]
fn an_offered_rename_compiles_if_its_member_may_be_absent() {
    let old = noted("id: {type: string}, total: {type: integer}", "id, total");
    let new = noted("id: {type: string}, sum: {type: integer}", "id");
    let draft = drafted(&old, &new, &[]);
    let total = draft.decisions.iter().find(|one| one.text.contains("`total`")).expect("a decision");
    let line = &total.choices[1].line;
    assert_eq!(line, "rename: {total: {v2: sum, default: {v1: 1}}}");
    let decided = drafted(&old, &new, &[&format!("{}: {line}", total.id)]);
    assert_eq!((decided.counts.refused, decided.faults.len()), (0, 0), "{:?}", decided.faults);
}

#[test]
fn lines_of_several_operations_can_be_pasted_together() {
    let head = "openapi: 3.0.3\ninfo: {title: t, version: '1'}\npaths:\n";
    let one = |name: &str| format!("  /{name}: {{get: {{responses: {{204: {{description: done}}}}}}}}\n");
    let (old, new) = (format!("{head}{}{}", one("a"), one("b")), format!("{head}{}", one("other")));
    let draft = drafted(&old, &new, &[]);
    let own: Vec<(String, String)> = draft
        .decisions
        .iter()
        .filter_map(|one| Some((format!("{}.map.yaml", one.id), one.lines.as_deref()?.to_owned())))
        .collect();
    assert_eq!(own.len(), 2, "{:?}", draft.decisions);
    let sides = [side("v1", &old), side("v2", &new)];
    let pasted = super::draft("t", &sides, &own, &BTreeSet::new(), &mut |_| ()).expect("it drafts");
    assert!(!pasted.compiled.findings.has_errors());
    assert_eq!(pasted.decisions, []);
}

/// The gateway's own errors have the form that clients know.
#[test]
fn errors_have_the_form_of_the_contract() {
    let with = |error: &str| {
        notes(&format!("    Note: {{type: object}}\n    Error: {error}\n")).replace(
            "{responses: {",
            "{responses: {404: {description: none, content: {application/json: {schema: {$ref: '#/components/schemas/Error'}}}}, ",
        )
    };
    for (error, body) in [
        ("{type: object, required: [message], properties: {message: {type: string}}}", "{message: $text}"),
        (
            "{type: object, required: [status_code, error, message], properties: {status_code: {type: integer}, error: {type: string}, message: {type: string}}}",
            "{status_code: $status, error: $kind, message: $text}",
        ),
        (
            "{type: object, required: [errors], properties: {errors: {type: array, items: {type: object, required: [code, detail], properties: {code: {type: string}, detail: {type: string}}}}}}",
            "{errors: [{code: $kind, detail: $text}]}",
        ),
        (
            "{type: object, required: [title, detail, status], properties: {title: {type: string}, detail: {type: string}, status: {type: integer}}}",
            "{title: $kind, detail: $text, status: $status}",
        ),
        (
            "{type: object, properties: {error: {type: object, properties: {title: {type: string}}}}}",
            "{error: {title: $text}}",
        ),
    ] {
        let text = with(error);
        let draft = drafted(&text, &text, &[]);
        let manifest = file(&draft, "pack.yaml");
        assert!(manifest.contains(&format!("errors: {{body: {body}}}\n")), "{error}\n{manifest}");
        assert_eq!(draft.decisions, []);
    }
    let silent = with("{type: object, required: [code], properties: {code: {type: integer}}}");
    let draft = drafted(&silent, &silent, &[]);
    let [decision] = draft.decisions.as_slice() else { panic!("{:?}", draft.decisions) };
    assert_eq!((decision.weight, decision.operation.as_str()), (Weight::Look, "pack.yaml"));
    assert!(decision.text.contains("has a place for the text"), "{decision:?}");
}
