//! Fields that are renamed, moved or never sent.

use super::*;

#[test]
fn an_object_around_all_fields_is_taken_away() {
    let bare =
        "    Note: {type: object, required: [id], properties: {id: {type: string}, text: {type: string}}}\n";
    let wrapped = "    Note: {type: object, required: [details], properties: {details: {$ref: '#/components/schemas/Details'}}}\n    Details: {type: object, required: [id], properties: {id: {type: string}, text: {type: string}}}\n";
    let away = drafted(&notes(wrapped), &notes(bare), &[]);
    assert_eq!((away.counts.refused, away.counts.written), (0, 1), "{:?}", away.decisions);
    let shapes = file(&away, "shapes.map.yaml");
    assert!(shapes.contains("      $.details.id: id\n      $.details.text: text\n"), "{shapes}");
    let around = drafted(&notes(bare), &notes(wrapped), &[]);
    assert_eq!(around.counts.written, 1, "{:?}", around.decisions);
    assert!(file(&around, "shapes.map.yaml").contains("      id: $.details.id\n"));
    // An optional wrapper cannot supply required fields.
    let optional = wrapped.replace("required: [details], ", "");
    let refused = drafted(&notes(bare), &notes(&optional), &[]);
    assert_eq!(refused.counts.refused, 1);
    assert!(
        refused.decisions[0].text.contains("`id` is always there on one side"),
        "{:?}",
        refused.decisions
    );
    // The only member of one side must contain most fields of the other.
    let other = bare.replace(
        "id: {type: string}, text",
        "id: {type: string}, colour: {type: string}, size: {type: integer}, author",
    );
    assert_eq!(drafted(&notes(&other), &notes(wrapped), &[]).counts.refused, 1);
}

const COLOUR: &str = "    Note: {type: object, properties: {id: {type: string}, colour: {type: string, description: 'The colour of the paper that the note is written on'}}}\n";

#[test]
fn a_likely_field_is_a_comment_and_a_proposal_until_it_is_accepted() {
    let new = COLOUR.replace("colour:", "paperColour:").replace("written on", "written on by hand");
    let new = new.replace("type: object,", "type: object, additionalProperties: false,");
    let old = COLOUR.replace("type: object,", "type: object, additionalProperties: false,");
    let open = drafted(&notes(&old), &notes(&new), &[]);
    let shapes = file(&open, "shapes.map.yaml");
    assert!(shapes.contains("    # likely (0."), "{shapes}");
    assert!(shapes.contains("`colour` has become `paperColour`: the same kind; names agree by"), "{shapes}");
    assert!(
        shapes.contains(
            "descriptions by 89 %; --accept note-colour-papercolour\n    only: {v1: {colour: absent}}"
        ),
        "{shapes}"
    );
    let proposal = open.decisions.iter().find(|one| one.weight == Weight::Proposal).expect("a proposal");
    assert_eq!(
        (proposal.id.as_str(), proposal.operation.as_str()),
        ("note-colour-papercolour", "Note: colour")
    );
    let taken = drafted(&notes(&old), &notes(&new), &["note-colour-papercolour"]);
    assert!(file(&taken, "shapes.map.yaml").contains("      colour: paperColour\n"));
    assert!(taken.taken.contains("note-colour-papercolour"));
    assert!(taken.decisions.is_empty(), "{:?}", taken.decisions);
    // Without descriptions, there is no guess.
    let silent = |text: &str| {
        let text = text.replace(" by hand", "");
        text.replace(", description: 'The colour of the paper that the note is written on'", "")
    };
    let none = drafted(&notes(&silent(&old)), &notes(&silent(&new)), &[]);
    assert!(none.decisions.iter().all(|one| one.weight != Weight::Proposal), "{:?}", none.decisions);
}

#[test]
fn a_field_that_has_moved_into_an_object_is_a_proposal() {
    let paper = "paper: {type: object, properties: {size: {type: integer}";
    let new = COLOUR.replace("colour: {", &format!("{paper}, colour: {{"));
    let new = new.replace("written on'}", "written on'}}}");
    let old = COLOUR.replace("id: {type: string}, ", &format!("{paper}}}}}, "));
    let old = old.replace("properties: {paper", "required: [colour], properties: {paper");
    let open = drafted(&notes(&old), &notes(&new), &[]);
    assert_eq!(open.counts.refused, 1);
    let texts: Vec<&str> = open.decisions.iter().map(|one| one.text.as_str()).collect();
    assert!(texts[0].contains("(likely `paper.colour`, 0.90: `note-colour-paper-colour`)"), "{texts:?}");
    assert!(texts[1].contains("the same name within `paper`"), "{texts:?}");
    // A field of the object that the old side has too is its counterpart.
    let colour =
        ", colour: {type: string, description: 'The colour of the paper that the note is written on'}";
    let note = |inner: &str, outer: &str| {
        format!("paper: {{type: object, properties: {{size: {{type: integer}}{inner}}}}}{outer}")
    };
    let [moved, both, new] = [note("", colour), note(colour, colour), note(colour, "")];
    let is_proposed = |old: &str, new: &str| {
        drafted(old, new, &[]).decisions.iter().any(|one| one.weight == Weight::Proposal)
    };
    assert!(is_proposed(&posted(&moved), &posted(&new)));
    assert!(!is_proposed(&posted(&both), &posted(&new)));
    assert!(!is_proposed(&noted(&both, "paper"), &noted(&new, "paper")));
}

#[test]
fn a_field_of_another_name_that_is_described_in_the_same_words_is_sure() {
    let old = COLOUR.replace("type: object,", "type: object, additionalProperties: false,");
    let new = old.replace("colour:", "paperColour:");
    let draft = drafted(&notes(&old), &notes(&new), &[]);
    let shapes = file(&draft, "shapes.map.yaml");
    assert!(shapes.contains("      colour: paperColour   # both documents say the same of it\n"), "{shapes}");
    assert_eq!((draft.counts.written, draft.decisions.as_slice()), (1, &[][..]));
    let is_sure = |old: &str, new: &str| {
        let draft = drafted(&notes(old), &notes(new), &[]);
        file(&draft, "shapes.map.yaml").contains("both documents say the same")
    };
    // A match is not certain if the unit or the kind differs, if two fields share the description,
    // or if it has only two words.
    assert!(!is_sure(&old, &new.replace("paperColour:", "colourHex:")));
    assert!(!is_sure(&old, &new.replace("paperColour: {type: string", "paperColour: {type: integer")));
    let twice = "inkColour: {type: string, description: 'The colour of the paper that the note is written on'}, paperColour:";
    assert!(!is_sure(&old, &new.replace("paperColour:", twice)));
    let short = |text: &str| text.replace("that the note is written on", "");
    assert!(!is_sure(&short(&old), &short(&new)));
    // Enumerated values do not count as words. An enumeration may grow in a request, but a response
    // must not have additional values.
    let listed = |text: &str, values: &str| {
        text.replace(
            "string, description: 'The",
            &format!("string, enum: [{values}], description: 'One of {values}: the"),
        )
    };
    assert!(is_sure(&listed(&old, "red, blue"), &listed(&new, "red")));
    assert!(!is_sure(&listed(&old, "red"), &listed(&new, "red, blue")));
}

#[test]
fn what_clients_do_not_send_is_in_no_ones_way() {
    let old = posted("seen: {type: string, readOnly: true}");
    let draft = drafted(&old, &posted("more: {type: string}"), &[]);
    assert_eq!((draft.counts.untouched, draft.decisions.as_slice()), (1, &[][..]));
    // If a shape needs lines, a read-only member needs one too.
    let draft = drafted(
        &posted("seen: {type: string, readOnly: true}, at: {type: integer}"),
        &posted("when: {type: integer}"),
        &[],
    );
    assert!(file(&draft, "shapes.map.yaml").contains("seen: absent"), "{:?}", draft.counts);
}

#[test]
fn members_that_have_moved_into_a_new_object_go_there() {
    let old =
        noted("id: {type: string}, cents: {type: integer}, currency: {type: string}", "id, cents, currency");
    let new = noted(
        "id: {type: string}, price: {type: object, required: [cents, currency], properties: {cents: {type: integer}, currency: {type: string}}}",
        "id, price",
    );
    for (old, new, line) in [(&old, &new, "cents: $.price.cents"), (&new, &old, "$.price.cents: cents")] {
        let draft = drafted(old, new, &[]);
        let shapes = file(&draft, "shapes.map.yaml");
        assert!(shapes.contains(&format!("      {line}\n")), "{shapes}\n{:?}", draft.decisions);
        assert_eq!(draft.counts.written, 1, "{:?}", draft.decisions);
    }
    // A common name alone in a new object is another thing's.
    let owned = noted("id: {type: string}, owner: {type: object, properties: {name: {type: string}}}", "id");
    let named = noted("id: {type: string}, name: {type: string}", "id, name");
    assert_eq!(drafted(&named, &owned, &[]).counts.refused, 1);
}

/// Each attempt at the draft has to change something. A moved member without lines that compile did not.
#[test]
fn members_that_have_moved_without_lines_that_compile_end_the_attempts() {
    let old = noted("code_word: {type: string}, left: {type: integer}", "code_word, left");
    let new = noted(
        "holder: {type: object, additionalProperties: false, properties: {code_word: {type: string}}}",
        "holder",
    );
    let draft = drafted(&old, &new, &[]);
    assert_eq!(draft.counts.refused, 1, "{:?}", draft.decisions);
}

#[test]
fn an_accepted_rename_holds_in_the_types_beside_it() {
    let note = "The colour of the paper that the note is written on";
    let with = |name: &str, said: &str| {
        notes(&format!(
            "    Note: {{type: object, additionalProperties: false, properties: {{{name}: {{type: string, description: '{said}'}}, list: {{type: array, items: {{$ref: '#/components/schemas/Line'}}}}}}}}\n    Line: {{type: object, additionalProperties: false, properties: {{text: {{type: string}}, {name}: {{type: string}}}}}}\n"
        ))
    };
    let (old, new) = (with("colour", note), with("paperColour", &format!("{note} by hand")));
    let taken = drafted(&old, &new, &["note-colour-papercolour"]);
    let shapes = file(&taken, "shapes.map.yaml");
    assert_eq!(shapes.matches("      colour: paperColour\n").count(), 2, "{shapes}");
    assert!(taken.taken.contains("note-colour-papercolour"));
}

/// An optional member of another spelling in an open type is not forwarded unchanged: the other side
/// would not find it.
#[test]
fn an_operation_that_would_lose_a_renamed_member_has_a_line_for_it() {
    let draft = drafted(&noted("user_name: {type: string}", ""), &noted("userName: {type: string}", ""), &[]);
    assert!(file(&draft, "shapes.map.yaml").contains("user_name: userName\n"), "{:?}", draft.files);
    assert_eq!((draft.counts.written, draft.decisions.as_slice()), (1, &[][..]));
}
