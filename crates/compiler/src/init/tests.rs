//! Tests of drafts from two small contracts.

use super::*;
use crate::diagnostic::{Colour, to_text};

const OLD: &str = r"
openapi: 3.0.3
info: {title: t, version: '1'}
paths:
  /notes/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get: {operationId: getNote, responses: {200: {description: it, content: {application/json: {schema: {$ref: '#/components/schemas/Note'}}}}}}
    delete: {responses: {204: {description: done}}}
  /notes:
    get:
      parameters: [{name: page, in: query, schema: {type: integer}}]
      responses: {200: {description: all, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Note'}}}}}}
    post:
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/NewNote'}}}}
      responses: {201: {description: made, content: {application/json: {schema: {$ref: '#/components/schemas/Note'}}}}}
  /notes/{id}/picture:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get: {responses: {200: {description: it, content: {application/pdf: {}}}}}
  /rooms: {get: {responses: {204: {description: done}}}}
  /rooms/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    delete: {responses: {204: {description: done}}}
  /users/search_all: {get: {responses: {204: {description: done}}}}
  /gone: {get: {responses: {204: {description: done}}}}
components:
  schemas:
    Note:
      type: object
      required: [id]
      properties:
        id: {type: string}
        state: {type: string, enum: [open, done]}
        is_private: {type: boolean}
        stars: {type: integer}
    NewNote: {type: object, required: [title], properties: {title: {type: string}, colour: {type: string}}}
";

/// Returns the new side, which is partly equal.
fn new() -> String {
    OLD.replace("/rooms", "/spaces")
        .replace("/users/search_all", "/users/searchAll")
        .replace("  /gone: {get: {responses: {204: {description: done}}}}\n", "")
        .replace("enum: [open, done]", "enum: [open, done, stale]")
        .replace("is_private", "isPrivate")
        .replace(
            "stars: {type: integer}",
            "stars: {type: integer, nullable: true}\n        more: {type: string}",
        )
        .replace(", colour: {type: string}", "")
        .replace("NewNote: {type: object,", "NewNote: {type: object, additionalProperties: false,")
}

fn side(name: &str, text: &str) -> SideDocument {
    let document = format!("contracts/{name}/api.yaml");
    SideDocument {
        name: name.to_owned(),
        document: document.clone(),
        files: vec![(document, text.as_bytes().into())],
    }
}

fn drafted(old: &str, new: &str, accepted: &[&str]) -> Draft {
    let sides = [side("v1", old), side("v2", new)];
    let accepted = accepted.iter().map(|id| (*id).to_owned()).collect();
    let draft = draft("notes", &sides, &[], &accepted, &mut |_| ()).unwrap_or_else(|compiled| {
        panic!("{}", to_text(&compiled.sources, &compiled.findings, Colour::Never))
    });
    let findings = to_text(&draft.compiled.sources, &draft.compiled.findings, Colour::Never);
    assert!(draft.compiled.pack.is_some(), "a draft passes check at once:\n{findings}\n{:?}", draft.files);
    draft
}

#[test]
fn what_is_equal_is_served_without_a_line() {
    let draft = drafted(OLD, OLD, &[]);
    assert_eq!(draft.counts, DraftCounts { operations: 9, untouched: 9, written: 0, marked: 0, refused: 0 });
    let names: Vec<&str> = draft.files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["pack.yaml", DECISIONS, DECISIONS_JSON]);
    assert_eq!(draft.decisions, []);
}

/// Returns the old side with its notes in XML.
fn in_xml(schema: &str) -> String {
    OLD.replace("application/json", "text/xml").replace("      type: object\n", schema)
}

#[test]
fn bodies_in_xml_are_served_without_a_line_where_they_have_a_layout() {
    let plain = in_xml("      type: object\n      xml: {name: note}\n");
    let other = plain.replace("id: {type: string}\n", "id: {type: string, xml: {attribute: true}}\n");
    // The list that `GET /notes` answers has no name for its root element.
    for (old, new, refused) in
        [(&*plain, &*plain, 0), (&plain, &other, 1), (&plain, OLD, 1), (OLD, &plain, 1)]
    {
        let draft = drafted(old, new, &[]);
        assert_eq!(
            (draft.counts.untouched, draft.counts.refused),
            (9 - refused, refused),
            "{:?}",
            draft.files
        );
        let texts: Vec<&str> = draft.decisions.iter().map(|decision| decision.text.as_str()).collect();
        assert_eq!(texts, vec!["the root element of this body has no name"; refused]);
    }
}

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
fn contracts_that_are_far_apart_still_make_a_pack() {
    let other = "swagger: '2.0'\ninfo: {title: o, version: '9'}\npaths:\n  /pets: {get: {responses: {200: {description: all}}}}\n";
    let draft = drafted(OLD, other, &[]);
    assert_eq!((draft.counts.operations, draft.counts.refused), (9, 9));
    assert_eq!(draft.decisions.iter().filter(|one| one.weight == Weight::Blocker).count(), 9);
}

#[test]
fn a_likely_operation_is_a_proposal_until_it_is_accepted() {
    let old = "openapi: 3.1.0\ninfo: {title: o, version: '1'}\npaths:\n  /letters/send: {post: {operationId: sendLetter, summary: Send a letter, responses: {204: {description: done}}}}\n";
    let new = old
        .replace("/letters/send:", "/outbox/letters/{kind}:")
        .replace("operationId: sendLetter", "operationId: sendLetterNow");
    let new = new.replace("post: {", "post: {parameters: [], ");
    // The path has one variable more, so no route can be drafted, whether the guess is accepted or
    // not.
    let open = drafted(old, &new, &[]);
    assert_eq!(open.counts.refused, 1);
    let [decision] = open.decisions.as_slice() else { panic!("{:?}", open.decisions) };
    assert_eq!((decision.weight, &decision.lines), (Weight::Blocker, &None));
    assert!(decision.text.starts_with("it may have become `POST /outbox/letters/{kind}` (for: "));
    assert!(decision.text.contains("no route is drafted: the paths have 0 and 1 variables"), "{decision:?}");
    let taken = drafted(old, &new, &[&decision.id]);
    assert!(taken.decisions.iter().any(|one| one.weight == Weight::Blocker && one.id == decision.id));
    let fits = new.replace("/{kind}", "");
    let open = drafted(old, &fits, &[]);
    let id = open.decisions.iter().find(|one| one.weight == Weight::Proposal).map(|one| one.id.clone());
    let taken = drafted(old, &fits, &[&id.expect("it is likely")]);
    assert_eq!((taken.counts.refused, taken.counts.marked), (0, 1), "{:?}", taken.decisions);
}

/// Returns create, read, update and delete operations for `resource`. Its objects have a `name` and
/// this member.
fn resource(resource: &str, member: &str) -> String {
    format!(
        "openapi: 3.0.3
info: {{title: t, version: '1'}}
paths:
  /{resource}:
    get: {{summary: List all {resource}, responses: {{200: {{description: all, content: {{application/json: {{schema: {{type: array, items: {{$ref: '#/components/schemas/Thing'}}}}}}}}}}}}}}
    post:
      requestBody: {{required: true, content: {{application/json: {{schema: {{$ref: '#/components/schemas/Thing'}}}}}}}}
      responses: {{201: {{description: made}}}}
  /{resource}/{{id}}:
    parameters: [{{name: id, in: path, required: true, schema: {{type: string}}}}]
    get: {{responses: {{200: {{description: one, content: {{application/json: {{schema: {{$ref: '#/components/schemas/Thing'}}}}}}}}}}}}
    delete: {{operationId: '{resource}.delete', responses: {{204: {{description: done}}}}}}
components: {{schemas: {{Thing: {{type: object, additionalProperties: false, properties: {{name: {{type: string}}, {member}: {{type: string}}}}}}}}}}
"
    )
}

/// The resource `coupons` was removed, and `customers` was added with the same path structure.
/// `DELETE /coupons/7` must not become `DELETE /customers/7`.
#[test]
fn a_resource_of_the_same_form_is_a_guess_and_never_served_before_a_person_accepts_it() {
    let (old, new) = (resource("coupons", "percent"), resource("customers", "email"));
    let draft = drafted(&old, &new, &[]);
    assert_eq!(draft.counts, DraftCounts { operations: 4, refused: 4, ..DraftCounts::default() });
    assert!(!draft.files.iter().any(|(name, _)| name.ends_with(".map.yaml")), "{:?}", draft.files);
    let decision = draft.decisions.iter().find(|one| one.operation == "DELETE /coupons/{id}");
    let decision = decision.expect("it is a decision");
    assert_eq!(
        decision.text,
        "it may have become `DELETE /customers/{id}`: `coupons` may be called `customers` now \
         (for: 4 operations differ by this segment alone. \
         Against: the `operationId` was `coupons.delete` and is `customers.delete`; \
         DELETE changes data: a wrong counterpart is destructive)"
    );
    assert_eq!(
        (decision.weight, decision.id.as_str()),
        (Weight::Proposal, "delete-coupons-id-becomes-delete-customers-id")
    );
    let list = draft.decisions.iter().find(|one| one.operation == "GET /coupons").expect("a decision");
    assert!(list.text.contains("50 % of the words of their summaries agree"), "{}", list.text);
    assert!(list.text.contains("1 of 2 members of the answer have the same name"), "{}", list.text);
    // The decision contains lines that pass `check` unchanged. Accepting a guess writes only that
    // one.
    let decisions = file(&draft, DECISIONS);
    let lines = list.lines.as_deref().expect("a mapping file");
    assert!(
        lines.contains("shapes:\n") && lines.contains("  - pair: {v1: 'GET /coupons', v2: 'GET /customers'")
    );
    for line in lines.lines() {
        assert!(decisions.contains(&format!("\n  {line}\n")), "{line}\n{decisions}");
    }
    let own = [("lists.map.yaml".to_owned(), lines.to_owned())];
    let sides = [side("v1", &old), side("v2", &new)];
    let pasted = super::draft("t", &sides, &own, &BTreeSet::new(), &mut |_| ()).expect("it drafts");
    assert!(!pasted.compiled.findings.has_errors());
    assert_eq!((pasted.counts.written, pasted.counts.refused), (1, 3), "{:?}", pasted.decisions);
    let taken = drafted(&old, &new, &[&decision.id]);
    assert_eq!((taken.counts.marked, taken.counts.refused), (1, 3), "{:?}", taken.decisions);
    // The guess about `customers` was accepted. The next document has `clients` instead, which is a
    // different guess.
    let other = drafted(&old, &resource("clients", "email"), &[&decision.id]);
    assert_eq!(other.counts.refused, 4, "{:?}", other.decisions);
}

/// Some documents use one `operationId` for several operations, or move it to another method.
#[test]
fn an_operation_id_that_is_not_of_one_operation_alone_pairs_nothing() {
    let with = |path: &str, method: &str, id: &str| {
        format!("  /{path}: {{{method}: {{operationId: {id}, responses: {{204: {{description: done}}}}}}}}\n")
    };
    let head = "openapi: 3.0.3\ninfo: {title: t, version: '1'}\npaths:\n";
    let old = format!("{head}{}", with("coupons", "delete", "remove"));
    let moved = drafted(&old, &format!("{head}{}", with("vouchers", "delete", "remove")), &[]);
    assert_eq!(moved.counts.refused, 0, "{:?}", moved.decisions);
    let two = with("vouchers", "delete", "remove") + &with("customers", "delete", "remove");
    assert_eq!(drafted(&old, &format!("{head}{two}"), &[]).counts.refused, 1);
    let posted = drafted(&old, &format!("{head}{}", with("vouchers", "post", "remove")), &[]);
    assert_eq!(posted.counts.refused, 1, "{:?}", posted.decisions);
}

#[test]
fn a_document_that_is_no_contract_is_told_so() {
    let sides = [side("v1", "just: text\n"), side("v2", OLD)];
    let failed = draft("notes", &sides, &[], &BTreeSet::new(), &mut |_| ());
    let compiled = failed.err().expect("it is no contract");
    assert!(compiled.findings.has_errors());
}

/// Returns `count` types that all refer to each other. A field of the first one has the type
/// `first`.
fn mutual(count: usize, first: &str) -> String {
    let mut text = String::from(
        "openapi: 3.0.3\ninfo: {title: t, version: '1'}\npaths:\n  /t: {get: {responses: {200: {description: t, content: {application/json: {schema: {$ref: '#/components/schemas/T1'}}}}}}}\ncomponents:\n  schemas:\n",
    );
    for i in 0..count {
        let fields = (0..count).map(|j| format!("f{j}: {{$ref: '#/components/schemas/T{j}'}}"));
        let own = if i == 0 { format!("own: {first}") } else { "own: {type: string}".to_owned() };
        let fields: Vec<String> = fields.chain([own]).collect();
        text.push_str(&format!("    T{i}: {{type: object, properties: {{{}}}}}\n", fields.join(", ")));
    }
    text
}

#[test]
fn types_that_all_hold_one_another_are_drafted_once_each() {
    // A number that became a text has a conversion, so all shapes are drafted.
    let draft = drafted(&mutual(12, "{type: string}"), &mutual(12, "{type: integer}"), &[]);
    assert_eq!(draft.counts.refused, 0, "{:?}", draft.decisions);
    // A list has no conversion, so all shapes fail, with the first reason.
    let draft =
        drafted(&mutual(40, "{type: string}"), &mutual(40, "{type: array, items: {type: string}}"), &[]);
    assert_eq!(draft.counts.refused, 1);
}

#[test]
fn types_that_lead_to_one_another_by_alternatives_alone_make_a_pack() {
    let ends = |one: &str, other: &str| {
        format!(
            "    {one}: {{type: object, properties: {{to: {{oneOf: [{{type: string}}, {{$ref: '#/components/schemas/{other}'}}]}}}}}}\n"
        )
    };
    let text = mutual(2, "{type: string}") + &ends("Here", "There") + &ends("There", "Here");
    let text = text.replace("own: {type: string}", "own: {$ref: '#/components/schemas/Here'}");
    assert_eq!(drafted(&text, &text, &[]).counts.refused, 0);
}

/// Returns a document with these schemas and one operation that returns a `Note`.
fn notes(schemas: &str) -> String {
    format!(
        "openapi: 3.0.3\ninfo: {{title: t, version: '1'}}\npaths:\n  /note: {{get: {{responses: {{200: {{description: it, content: {{application/json: {{schema: {{$ref: '#/components/schemas/Note'}}}}}}}}}}}}}}\ncomponents:\n  schemas:\n{schemas}"
    )
}

fn file<'d>(draft: &'d Draft, name: &str) -> &'d str {
    draft.files.iter().find(|(known, _)| known == name).map_or("", |(_, text)| text)
}

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
fn the_values_of_a_map_go_by_a_shape_of_their_own() {
    let with = |more: &str| {
        notes(&format!(
            "    Note: {{type: object, properties: {{id: {{type: string}}, plans: {{type: object, additionalProperties: {{$ref: '#/components/schemas/Plan'}}}}}}}}\n    Plan: {{type: object, additionalProperties: false, properties: {{most: {{type: integer}}{more}}}}}\n"
        ))
    };
    let draft = drafted(&with(""), &with(", least: {type: integer}"), &[]);
    assert_eq!((draft.counts.written, draft.decisions.as_slice()), (1, &[][..]));
    let shapes = file(&draft, "shapes.map.yaml");
    assert!(shapes.contains("      plans: {v2: plans, each_value: Plan}\n"), "{shapes}");
    assert!(
        shapes.contains("  Plan:\n    of: {v1: Plan, v2: Plan}\n    same: [most]\n    rest: {v2: lost}\n"),
        "{shapes}"
    );
    // A map that may be null is not compatible with one that may not.
    let null = with(", least: {type: integer}")
        .replace("plans: {type: object,", "plans: {type: object, nullable: true,");
    assert_eq!(drafted(&with(""), &null, &[]).counts.refused, 1);
}

#[test]
fn the_members_of_an_object_without_a_name_are_named_by_their_places() {
    let with = |inner: &str| {
        notes(&format!(
            "    Note: {{type: object, properties: {{id: {{type: string}}, pin: {{type: object, additionalProperties: false, properties: {{set: {{type: boolean}}, {inner}}}}}}}}}\n"
        ))
    };
    let old = with(
        "is_new: {type: boolean}, at: {type: object, additionalProperties: false, properties: {x: {type: integer}}}",
    );
    let new = with(
        "isNew: {type: boolean}, at: {type: object, additionalProperties: false, properties: {x: {type: integer}, y: {type: integer}}}",
    );
    let draft = drafted(&old, &new, &[]);
    assert_eq!((draft.counts.written, draft.decisions.as_slice()), (1, &[][..]));
    let shapes = file(&draft, "shapes.map.yaml");
    for line in ["$.pin.set: $.pin.set", "$.pin.is_new: $.pin.isNew", "$.pin.at.x: $.pin.at.x"] {
        assert!(shapes.contains(&format!("      {line}\n")), "{shapes}");
    }
    // A member that only one side requires is a decision for a person.
    let demanded = old.replace("properties: {set:", "required: [set], properties: {set:");
    let refused = drafted(&demanded, &new, &[]);
    assert!(
        refused.decisions[0].text.contains("`pin.set` is always there on one side"),
        "{:?}",
        refused.decisions
    );
}

/// Returns a document with one operation that takes a `Note`.
fn posted(schema: &str) -> String {
    format!(
        "openapi: 3.0.3\ninfo: {{title: t, version: '1'}}\npaths:\n  /note: {{post: {{requestBody: {{required: true, content: {{application/json: {{schema: {{$ref: '#/components/schemas/Note'}}}}}}}}, responses: {{204: {{description: taken}}}}}}}}\ncomponents:\n  schemas:\n    Note: {{type: object, additionalProperties: false, properties: {{id: {{type: string}}, {schema}}}}}\n"
    )
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
fn header_fields_of_both_sides_are_passed_without_a_line() {
    let with = |names: &[&str]| {
        let all = names.iter().map(|name| format!("{{name: {name}, in: header, schema: {{type: string}}}}"));
        let all: Vec<String> = all.collect();
        notes("    Note: {type: object, properties: {id: {type: string}}}\n")
            .replace("{get: {", &format!("{{get: {{parameters: [{}], ", all.join(", ")))
    };
    let new = with(&["idempotency-key", "X-New"]).replace("/note:", "/v2/note:");
    let draft = drafted(&with(&["Idempotency-Key", "X-Old", "Authorization"]), &new, &[]);
    let lines = file(&draft, "note.map.yaml");
    assert!(!lines.contains("headers:"), "{lines}");
    let pack = draft.compiled.pack.as_ref().expect("it compiles");
    let RouteKind::Pair(pair) = &pack.directions[0].routes[0].kind else { panic!("a pair") };
    let sent: Vec<&str> = pair.call.headers.iter().map(|rule| &*rule.name.text).collect();
    assert_eq!(sent, ["idempotency-key"]);
    let texts: Vec<&str> = draft.decisions.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(texts, ["`header X-Old of the request` of v1: it does not go over"]);
    let demanded = new.replace("name: X-New, in: header,", "name: X-New, in: header, required: true,");
    let refused = drafted(&with(&["Idempotency-Key"]), &demanded, &[]);
    assert!(
        refused.decisions[0].text.contains("the header field `X-New` is required"),
        "{:?}",
        refused.decisions
    );
}

#[test]
fn another_default_of_a_header_field_is_listed() {
    let with = |version: &str| {
        notes("    Note: {type: object, properties: {id: {type: string}}}\n").replace(
            "/note: {get: {",
            &format!("/note: {{get: {{parameters: [{{name: X-Version, in: header, schema: {{type: string, default: '{version}'}}}}], "),
        )
    };
    let draft = drafted(&with("1.1"), &with("1.2"), &[]);
    let listed: Vec<(&str, Weight)> =
        draft.decisions.iter().map(|one| (one.text.as_str(), one.weight)).collect();
    let text =
        "`header X-Version of the request` of v1: left out: it means \"1.1\", and \"1.2\" on the other side";
    assert_eq!(listed, [(text, Weight::Changed)]);
    assert_eq!(drafted(&with("1.1"), &with("1.1"), &[]).decisions, []);
}

#[test]
fn a_key_of_its_own_stands_alone() {
    let with = |name: &str| {
        let text = notes("    Note: {type: object, properties: {id: {type: string}}}\n");
        text + &format!("  securitySchemes: {{key: {{type: apiKey, in: header, name: {name}}}}}\n")
    };
    let draft = drafted(&with("X-API-Key"), &with("Authorization"), &[]);
    let manifest = file(&draft, "pack.yaml");
    assert!(manifest.contains("v1: {read: ['x-api-key'], send: 'x-api-key', scheme: none}"), "{manifest}");
    assert!(
        manifest.contains("v2: {read: [authorization], send: authorization, scheme: Bearer}"),
        "{manifest}"
    );
}

/// All security schemes that packs support are read from requests; the first one is sent. A
/// parameter with the key needs no mapping.
#[test]
fn keys_in_queries_and_basic_are_said_as_documents_have_them() {
    let with = |schemes: &str| {
        let text = notes("    Note: {type: object, properties: {id: {type: string}}}\n");
        text + &format!("  securitySchemes: {{{schemes}}}\n")
    };
    let old = with("k: {type: apiKey, in: query, name: api_key}, c: {type: apiKey, in: cookie, name: sid}")
        .replacen("parameters: [", "parameters: [{name: api_key, in: query, schema: {type: string}}, ", 1);
    let new = with(
        "b: {type: http, scheme: basic}, t: {type: http, scheme: Token}, o: {type: oauth2}, p: {type: oauth2}",
    );
    let draft = drafted(&old, &new, &[]);
    let manifest = file(&draft, "pack.yaml");
    assert!(manifest.contains("  v1: {read: [{query: api_key}], send: {query: api_key}}\n"), "{manifest}");
    assert!(
        manifest.contains(
            "  v2: {read: [{basic: both}, {header: authorization, scheme: Token}, {header: authorization, scheme: Bearer}], send: {basic: both}}\n"
        ),
        "{manifest}"
    );
    assert!(!draft.files.iter().any(|(name, text)| name.ends_with(".map.yaml") && text.contains("api_key")));
}

#[test]
fn a_form_that_is_the_same_is_kept_under_another_path() {
    let form = "openapi: 3.0.3\ninfo: {title: t, version: '1'}\npaths:\n  /v1/notes: {post: {requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {title: {type: string}}}}}}, responses: {204: {description: made}}}}\n";
    let moved = form.replace("/v1/", "/v2/");
    let draft = drafted(form, &moved, &[]);
    assert_eq!(draft.counts.written, 1, "{:?}", draft.decisions);
    assert!(file(&draft, "notes.map.yaml").contains("    request: keep\n"));
    let other =
        drafted(form, &moved.replace("application/x-www-form-urlencoded", "multipart/form-data"), &[]);
    assert!(other.decisions[0].text.contains("is not mapped"), "{:?}", other.decisions);
}

#[test]
fn a_type_without_a_name_has_its_lines_in_place() {
    let text = notes("    Note: {type: object}\n").replace(
        "{$ref: '#/components/schemas/Note'}",
        "{type: object, additionalProperties: false, properties: {id: {type: string}, is_new: {type: boolean}}}",
    );
    let new = text.replace("is_new", "isNew");
    let draft = drafted(&text, &new, &[]);
    assert_eq!(draft.counts.written, 1, "{:?}", draft.decisions);
    let lines = file(&draft, "note.map.yaml");
    assert!(
        lines.contains("    response:\n      same: [id]\n      rename:\n        is_new: isNew\n"),
        "{lines}"
    );
}

#[test]
fn parameters_about_pages_are_paired_and_told_where_they_differ() {
    let with = |path: &str, names: &[&str]| {
        let all = names.iter().map(|name| format!("{{name: {name}, in: query, schema: {{type: integer}}}}"));
        let all: Vec<String> = all.collect();
        notes("    Note: {type: object, properties: {id: {type: string}}}\n")
            .replace("/note: {get: {", &format!("{path}: {{get: {{parameters: [{}], ", all.join(", ")))
    };
    let old = with("/notes", &["page", "per_page"]);
    let renamed = drafted(&old, &with("/v2/notes", &["pageNumber", "pageSize"]), &[]);
    assert!(file(&renamed, "notes.map.yaml").contains("query: {page: pageNumber, per_page: pageSize}"));
    assert_eq!(renamed.counts.marked, 1, "{:?}", renamed.decisions);
    assert!(file(&renamed, "pack.yaml").contains("# paging: {query: pageNumber, first: 1, size: 20}\n"));
    let cursors = drafted(&old, &with("/v2/notes", &["starting_after", "limit"]), &[]);
    assert!(file(&cursors, "notes.map.yaml").contains("query: {page: {refuse: todo}, per_page: limit}"));
    let texts: Vec<&str> = cursors.decisions.iter().map(|one| one.text.as_str()).collect();
    assert!(
        texts.iter().any(|text| text.contains(
            "pages go by number on the old side (`page`), and by cursor on the new one (`starting_after`)"
        )),
        "{texts:?}"
    );
    // The line is drafted if the response contains the required members.
    let told = with("/v2/notes", &["starting_after", "limit"])
        .replace("Note: {type: object, properties: {", "Note: {type: object, properties: {list: {type: array, items: {type: string}}, meta: {type: object, properties: {next_cursor: {type: string}}}, ");
    let translated = drafted(&old, &told, &[]);
    let lines = file(&translated, "notes.map.yaml");
    assert!(
        lines.contains("paging: {v1: {page: page, size: per_page, default: 20}, v2: {cursor: starting_after, size: limit, next: $.meta.next_cursor, items: $.list}}\n"),
        "{lines}"
    );
    assert!(!lines.contains("todo"), "{lines}");
    let offsets = drafted(&old, &with("/v2/notes", &["offset", "limit"]), &[]);
    let lines = file(&offsets, "notes.map.yaml");
    assert!(
        lines.contains(
            "paging: {v1: {page: page, size: per_page, default: 20}, v2: {offset: offset, size: limit}}\n"
        ),
        "{lines}"
    );
    assert!(
        cursors
            .summary
            .contains("Most lists are paged by number (`page`, `per_page` at once; 1 lists) on the old side")
    );
}

#[test]
fn the_summary_says_what_the_refused_ones_wait_for() {
    let draft = drafted(OLD, &new(), &[]);
    assert!(draft.summary.starts_with("Of the 9 operations that clients of v1 call, "), "{}", draft.summary);
    assert!(
        draft.summary.contains("- 1 operation: the new side has no such operation\n"),
        "{}",
        draft.summary
    );
}

#[test]
fn very_many_alternatives_that_hold_one_another_are_left_to_a_person() {
    let with = |count: usize, own: &str| {
        let one = |i: usize| {
            format!(
                "    C{i}: {{type: object, required: [k], properties: {{own: {{type: {own}}}, k: {{enum: [c{i}]}}, in: {{$ref: '#/components/schemas/Note'}}}}}}\n"
            )
        };
        let all: Vec<String> = (0..count).map(|i| format!("{{$ref: '#/components/schemas/C{i}'}}")).collect();
        let each: String = (0..count).map(one).collect();
        notes(&format!("{each}    Note: {{oneOf: [{}]}}\n", all.join(", ")))
    };
    // Each shape is drafted once, even if shapes refer to each other. Otherwise this would take
    // hours.
    let some = drafted(&with(30, "string"), &with(30, "integer"), &[]);
    assert_eq!(some.counts.refused, 0, "{:?}", some.decisions);
    let many = drafted(&with(400, "string"), &with(400, "integer"), &[]);
    assert_eq!(many.counts.refused, 1);
    assert!(many.decisions[0].text.contains("more than 32 alternatives"), "{:?}", many.decisions);
}

/// Returns a document with an operation that returns a `Note` with these members, all required.
fn noted(members: &str, required: &str) -> String {
    notes(&format!("    Note: {{type: object, required: [{required}], properties: {{{members}}}}}\n"))
}

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
