//! Types: alternatives, recursion, maps, types without a name, XML and forms.

use super::*;

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
