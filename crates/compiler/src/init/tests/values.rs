//! Values: enumerations, instants, numbers and null.

use super::*;

#[test]
fn values_that_differ_in_case_and_separators_have_a_table() {
    let with = |values: &str| noted(&format!("state: {{type: string, enum: [{values}]}}"), "state");
    let draft = drafted(&with("in_progress, done"), &with("IN-PROGRESS, DONE"), &[]);
    let shapes = file(&draft, "shapes.map.yaml");
    assert!(
        shapes.contains("      state: {v2: state, as: {table: {in_progress: 'IN-PROGRESS', done: DONE}}}\n"),
        "{shapes}"
    );
    assert_eq!((draft.counts.written, draft.decisions.as_slice()), (1, &[][..]));
    // Lists of them too.
    let list = |values: &str| {
        noted(&format!("states: {{type: array, items: {{type: string, enum: [{values}]}}}}"), "states")
    };
    let draft = drafted(&list("in_progress, done"), &list("inProgress, Done"), &[]);
    let shapes = file(&draft, "shapes.map.yaml");
    assert!(shapes.contains("as: {each: {table: {in_progress: inProgress, done: Done}}}"), "{shapes}");
    // Two values of one side may be spelled alike.
    let twice = drafted(&with("in_progress, done"), &with("IN-PROGRESS, INPROGRESS, DONE"), &[]);
    assert_eq!(twice.counts.refused, 1, "{:?}", twice.decisions);
}

#[test]
fn parameters_whose_values_differ_in_case_have_a_table() {
    let with = |values: &str| {
        notes("    Note: {type: object, properties: {id: {type: string}}}\n").replace(
            "/note: {get: {",
            &format!("/note: {{get: {{parameters: [{{name: sort, in: query, schema: {{type: string, enum: [{values}]}}}}], "),
        )
    };
    let draft = drafted(&with("asc, desc"), &with("ASC, DESC"), &[]);
    let lines = file(&draft, "note.map.yaml");
    assert!(lines.contains("query: {sort: {v2: sort, as: {table: {asc: ASC, desc: DESC}}}}"), "{lines}");
    assert_eq!((draft.counts.written, draft.decisions.as_slice()), (1, &[][..]));
}

#[test]
fn instants_and_digits_are_converted_where_every_value_is_accepted() {
    let draft = drafted(
        &noted("at: {type: integer, format: unix-time}", "at"),
        &noted("at: {type: string, format: date-time}", "at"),
        &[],
    );
    let shapes = file(&draft, "shapes.map.yaml");
    assert!(shapes.contains("as: {date: {v1: epoch_second, v2: rfc3339}}, else: error"), "{shapes}");
    let digits = drafted(
        &noted("n: {type: integer}", "n"),
        &noted("n: {type: string, pattern: '^[1-9][0-9]*$'}", "n"),
        &[],
    );
    assert!(file(&digits, "shapes.map.yaml").contains("as: integer_to_string"), "{:?}", digits.decisions);
    let texts = drafted(&noted("n: {type: integer}", "n"), &noted("n: {type: string}", "n"), &[]);
    assert_eq!(texts.counts.refused, 1);
}

/// A day is no instant: a person decides which time it means.
#[test]
fn a_day_and_an_instant_correspond_by_a_decision() {
    let [day, instant] =
        ["date", "date-time"].map(|format| noted(&format!("at: {{type: string, format: {format}}}"), "at"));
    for (old, new, patterns, more) in [
        (&day, &instant, "v1: '%Y-%m-%d', v2: '%Y-%m-%dT00:00:00Z'", ", else: error"),
        (&instant, &day, "v1: '%Y-%m-%dT00:00:00Z', v2: '%Y-%m-%d'", ""),
    ] {
        let draft = drafted(old, new, &[]);
        assert_eq!(draft.counts.refused, 1, "{:?}", draft.decisions);
        let choice = draft.decisions[0].choices.last().expect("a choice");
        assert!(choice.label.contains("midnight UTC"), "{choice:?}");
        assert_eq!(choice.line, format!("rename: {{at: {{v2: at, as: {{date: {{{patterns}}}}}{more}}}}}"));
        let decided = drafted(old, new, &[&format!("{}: {}", draft.decisions[0].id, choice.line)]);
        assert_eq!((decided.counts.refused, decided.faults.len()), (0, 0), "{:?}", decided.faults);
        assert!(file(&decided, "shapes.map.yaml").contains(patterns));
    }
}

#[test]
fn a_null_that_an_enumeration_lacks_is_a_value_of_the_chosen_table() {
    let old = noted("kind: {type: string, enum: [in_use, gone]}", "kind");
    let new = noted("kind: {type: string, enum: [IN-USE, GONE], nullable: true}", "kind");
    let draft = drafted(&old, &new, &[]);
    let choice = draft.decisions[0].choices.last().expect("a choice");
    assert!(choice.line.ends_with("as: {table: {in_use: 'IN-USE', gone: [GONE, null]}}}}"), "{choice:?}");
    let decided = drafted(&old, &new, &[&format!("{}: {}", draft.decisions[0].id, choice.line)]);
    assert_eq!((decided.counts.refused, decided.faults.len()), (0, 0), "{:?}", decided.faults);
}

/// A value that two rows would write has no way back, so each value of the new side has one row.
#[test]
fn every_choice_for_two_enumerations_compiles() {
    let member = |values: &str| format!("status: {{type: string, enum: [{values}]}}");
    let (four, three) = ("Active, Closed, Inactive, Suspended", "active, closed, suspended");
    for (old, new) in [(four, three), (three, four)] {
        let request = |values: &str| posted(&member(values));
        let answer = |values: &str| noted(&member(values), "status");
        for (old, new) in [(request(old), request(new)), (answer(old), answer(new))] {
            let draft = drafted(&old, &new, &[]);
            for decision in &draft.decisions {
                for choice in &decision.choices {
                    let decided = drafted(&old, &new, &[&format!("{}: {}", decision.id, choice.line)]);
                    assert_eq!(
                        (decided.counts.refused, decided.faults.len()),
                        (0, 0),
                        "{choice:?}: {:?}",
                        decided.faults
                    );
                }
            }
        }
    }
}
