//! Which operations correspond, with their parameters, header fields and credentials.

use super::*;

#[test]
fn what_is_equal_is_served_without_a_line() {
    let draft = drafted(OLD, OLD, &[]);
    assert_eq!(draft.counts, DraftCounts { operations: 9, untouched: 9, ..DraftCounts::default() });
    let names: Vec<&str> = draft.files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["pack.yaml", DECISIONS, DECISIONS_JSON]);
    assert_eq!(draft.decisions, []);
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
