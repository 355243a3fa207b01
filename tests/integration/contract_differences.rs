//! Two contracts that differ in keywords of OpenAPI other than types: the findings of `check` and
//! `report`, and the answers to clients through a gateway.

use crate::support::program::Program;
use crate::support::raw::{Act, Upstream, exchange};
use crate::support::serving;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};
use switchback_gateway::store::seal::SealingKey;
use tempfile::TempDir;

const MANIFEST: &str = "pack: notes
sides: {old: v1, new: v2}
contracts: {v1: contracts/v1.yaml, v2: contracts/v2.yaml}
serves: [v1]
identical: keep
rest: refuse
credentials:
  v1: {read: [authorization], send: authorization, scheme: Bearer}
  v2: {read: [authorization], send: authorization, scheme: Bearer}
languages: [en]
errors: {body: {message: $text}}
refuse: {legacy: forward, status: 501}
";

/// A folder with a pack of these documents and routes.
fn pack(old: &str, new: &str, routes: Option<&str>) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let put = |name: &str, text: &str| {
        let path = folder.path().join("pack").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
        std::fs::write(path, text).expect("it is written");
    };
    put("contracts/v1.yaml", old);
    put("contracts/v2.yaml", new);
    put("pack.yaml", MANIFEST);
    if let Some(routes) = routes {
        put("notes.map.yaml", routes);
    }
    folder
}

fn run(verb: &str, folder: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
    command.arg(verb).arg(folder.join("pack")).args(more).output().expect("the program runs")
}

fn report(folder: &Path) -> serde_json::Value {
    let reported = run("report", folder, &["--format", "json"]);
    assert!(reported.status.success(), "{}", String::from_utf8_lossy(&reported.stderr));
    serde_json::from_slice(&reported.stdout).expect("the report is JSON")
}

/// Verdict and losses of the only operation of the old side: `place: values`.
fn losses(old: &str, new: &str, routes: Option<&str>) -> (String, Vec<String>) {
    let report = report(pack(old, new, routes).path());
    let operation = &report["sides"][0]["operations"][0];
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let lost = operation["lost"].as_array().expect("a list").iter();
    let lost = lost.map(|loss| match text(&loss["values"]).as_str() {
        "" => format!("{} {}", text(&loss["side"]), text(&loss["place"])),
        values => format!("{} {}: {values}", text(&loss["side"]), text(&loss["place"])),
    });
    (text(&operation["verdict"]), lost.collect())
}

/// The program with the pack of a folder, in front of a service.
async fn served(folder: &TempDir, service: SocketAddr) -> (Program, SocketAddr) {
    let file = folder.path().join("switchback.yaml");
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{0}/store.db\nkey: ${{TEST_KEY}}\n\
         mapping: {0}/pack\nfronts: {{ /v1: {{ speaks: v1 }} }}\nupstreams: {{ v2: {{ url: 'http://{service}' }} }}\n\
         clients: [{{ name: app, v1_token: token-of-a-client, credentials: {{ v2: token-of-the-service }} }}]\n",
        folder.path().display(),
    );
    std::fs::write(&file, text).expect("it is written");
    let (program, gateway, _) = serving::serve(&file, &SealingKey::generate()).await;
    (program, gateway)
}

/// Returns a document of `POST /notes/{id}` with a `Note` of these members as request and answer.
fn document(parameter: &str, members: &str) -> String {
    format!(
        "openapi: 3.0.3
info: {{title: t, version: '1'}}
paths:
  /notes/{{id}}:
    post:
      parameters:
        - {{name: id, in: path, required: true, schema: {{type: string}}}}
        - {{name: size, in: query, schema: {parameter}}}
      requestBody: {{required: true, content: {{application/json: {{schema: {{$ref: '#/components/schemas/Note'}}}}}}}}
      responses:
        '200': {{description: it, content: {{application/json: {{schema: {{$ref: '#/components/schemas/Note'}}}}}}}}
components: {{schemas: {{Note: {{type: object, properties: {{{members}}}}}}}}}
"
    )
}

const PAIR: &str = "mapping: 1
shapes:
  Note: {of: {v1: Note, v2: Note}, same: [limit]}
routes:
  - pair: {v1: 'POST /notes/{id}', v2: 'POST /notes/{id}', front: v1}
    query: [size]
    request: Note
    response: Note
";

#[test]
fn no_operation_is_exact_whose_contracts_are_not_equal() {
    let integer = "{type: integer}";
    let equal = document(integer, "limit: {type: integer, format: int64}");
    assert_eq!(losses(&equal, &equal, None), ("exact".to_owned(), Vec::new()));
    assert_eq!(losses(&equal, &equal, Some(PAIR)), ("exact".to_owned(), Vec::new()));
    let narrow = document(integer, "limit: {type: integer, format: int32}");
    let of_request = ["v1 $.limit: values above 2147483647", "v1 $.limit: values below -2147483648"];
    let of_answer = ["v2 $.limit: values above 2147483647", "v2 $.limit: values below -2147483648"];
    for routes in [None, Some(PAIR)] {
        let (verdict, lost) = losses(&equal, &narrow, routes);
        assert_eq!((verdict.as_str(), lost), ("different", of_request.map(str::to_owned).to_vec()));
        let (verdict, lost) = losses(&narrow, &equal, routes);
        assert_eq!((verdict.as_str(), lost), ("different", of_answer.map(str::to_owned).to_vec()));
    }
    // A member under another name that no document requires.
    let renamed = losses(
        &document(integer, "user_name: {type: string}"),
        &document(integer, "userName: {type: string}"),
        None,
    );
    let lost = [
        "v1 $.user_name: not declared on the other side",
        "v1 $.user_name: nothing on the other side fills it",
    ];
    assert_eq!(renamed, ("different".to_owned(), lost.map(str::to_owned).to_vec()));
    let parameter = losses(&document("{type: string}", ""), &document(integer, ""), None);
    assert_eq!(
        parameter,
        (
            "different".to_owned(),
            vec!["v1 query.size: values that are no integer: string is not integer".to_owned()]
        )
    );
    assert_eq!(losses(&document(integer, ""), &document("{type: string}", ""), None).0, "exact");
}

#[test]
fn formats_without_a_common_value_do_not_fit() {
    let [old, new] = ["date", "date-time"]
        .map(|format| document("{type: integer}", &format!("limit: {{type: string, format: {format}}}")));
    let folder = pack(&old, &new, Some(PAIR));
    let checked = run("check", folder.path(), &[]);
    let said =
        String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
    assert!(!checked.status.success(), "{said}");
    assert!(said.contains("a `date` is no `date-time`") && said.contains("notes.map.yaml:3:"), "{said}");
    // `identical: keep` keeps no such operation.
    assert_eq!(losses(&old, &new, None).0, "not possible");
}

/// `default` next to a listed success: an error for 404, and absent for 202 and 204.
#[tokio::test]
async fn a_default_beside_a_listed_success_stands_for_errors() {
    let text = "openapi: 3.0.3
info: {title: t, version: '1'}
paths:
  /notes:
    delete:
      responses:
        '204': {description: done}
        default: {description: bad, content: {application/json: {schema: {$ref: '#/components/schemas/Error'}}}}
    put:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Note'}}}}
      responses:
        '200': {description: it, content: {application/json: {schema: {$ref: '#/components/schemas/Note'}}}}
        default: {description: bad, content: {application/json: {schema: {$ref: '#/components/schemas/Error'}}}}
components:
  schemas:
    Note: {type: object, properties: {id: {type: string}}}
    Error: {type: object, required: [message], properties: {message: {type: string}}}
";
    let folder = pack(text, text, None);
    let report = report(folder.path());
    assert_eq!((&report["sides"][0]["exact"], &report["sides"][0]["refused"]), (&2.into(), &0.into()));
    let service = Upstream::start(vec![
        Act::Reply(b"HTTP/1.1 204 X\r\n\r\n".to_vec()),
        Act::Reply(b"HTTP/1.1 202 X\r\ncontent-length: 0\r\n\r\n".to_vec()),
        Act::json(404, r#"{"message":"none"}"#),
    ])
    .await;
    let (_program, gateway) = served(&folder, service.address).await;
    for (line, body, status, answered) in [
        ("DELETE /v1/notes", "", 204, ""),
        ("PUT /v1/notes", r#"{"id":"1"}"#, 202, ""),
        ("PUT /v1/notes", r#"{"id":"2"}"#, 404, r#"{"message":"none"}"#),
    ] {
        let request = format!(
            "{line} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer token-of-a-client\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let got = exchange(gateway, request).await.expect("an answer");
        assert_eq!((got.status, got.text().as_str()), (status, answered), "{line} {body}");
    }
}

/// A document of `POST /notes` with these parts.
fn posted(body: &str, answers: &str, schemas: &str) -> String {
    format!(
        "openapi: 3.1.0
info: {{title: t, version: '1'}}
paths:
  /notes:
    post:
      requestBody: {{{body}}}
      responses: {{{answers}}}
components: {{schemas: {{{schemas}}}}}
"
    )
}

/// The same with a JSON body of a `Note`, and an answer without one.
fn noted(note: &str) -> String {
    posted(
        "required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Note'}}}",
        "'204': {description: done}",
        &format!("Note: {note}"),
    )
}

const POST: &str = "mapping: 1
shapes:
  Note: {of: {v1: Note, v2: Note}, same: [in]}
routes:
  - pair: {v1: POST /notes, v2: POST /notes, front: v1}
    request: Note
    response: empty
";

/// A member that requests of one side never have fills no required one of the other.
#[test]
fn what_requests_do_not_carry_fills_nothing() {
    let within = |member: &str| {
        noted(&format!(
            "{{type: object, properties: {{in: {{type: object, required: [id], properties: {{id: {{type: string{member}}}}}}}}}}}"
        ))
    };
    let (read_only, both) = (within(", readOnly: true"), within(""));
    for (old, new, is_possible) in
        [(&read_only, &both, false), (&both, &both, true), (&both, &read_only, true)]
    {
        let verdict = losses(old, new, None).0;
        assert_eq!(verdict != "not possible", is_possible, "{verdict}");
        let folder = pack(old, new, Some(POST));
        let checked = run("check", folder.path(), &[]);
        let text =
            String::from_utf8_lossy(&checked.stderr).into_owned() + &String::from_utf8_lossy(&checked.stdout);
        assert_eq!(checked.status.success(), is_possible, "{text}");
        assert_eq!(text.contains("`id`: it is required, and there is none"), !is_possible, "{text}");
    }
    // One that only requests have, and that the old side does not know.
    let without = noted("{type: object, properties: {in: {type: object}}}");
    let write_only = within(", writeOnly: true");
    assert_eq!(losses(&without, &write_only, None).0, "not possible");
    assert_eq!(losses(&without, &without, None).0, "exact");
}

#[test]
fn a_body_that_may_be_left_out_does_not_all_go_where_one_is_required() {
    let schemas = "Note: {type: object}";
    let of = |required: &str| {
        let body = format!(
            "required: {required}, content: {{application/json: {{schema: {{$ref: '#/components/schemas/Note'}}}}}}"
        );
        posted(&body, "'204': {description: done}", schemas)
    };
    let lost = losses(&of("false"), &of("true"), None);
    assert_eq!(lost, ("different".to_owned(), vec!["v1 $: a request without a body".to_owned()]));
    assert_eq!(losses(&of("true"), &of("false"), None).0, "exact");
}

#[test]
fn media_types_that_are_not_read_are_losses() {
    let schemas = "Note: {type: object}";
    let schema = "{schema: {$ref: '#/components/schemas/Note'}}";
    let of = |media: &[&str]| {
        let content = media.iter().map(|media| format!("{media}: {schema}")).collect::<Vec<_>>().join(", ");
        posted(
            &format!("required: true, content: {{{content}}}"),
            &format!("'200': {{description: it, content: {{{content}}}}}"),
            schemas,
        )
    };
    let json = of(&["application/json"]);
    let both = of(&["application/xml", "application/json"]);
    let expected = ["v1 $: requests of `application/xml`", "v1 $: answers of `application/xml`"];
    let expected = expected.map(str::to_owned).to_vec();
    assert_eq!(losses(&both, &json, None), ("different".to_owned(), expected.clone()));
    assert_eq!(losses(&json, &both, None).0, "exact");
    let form = of(&["application/x-www-form-urlencoded"]);
    let lost = losses(&of(&["application/x-www-form-urlencoded", "application/xml"]), &form, None);
    assert_eq!(lost, ("different".to_owned(), expected));
    // JSON of the same schema under another name is read.
    assert_eq!(losses(&of(&["application/json", "application/vnd.note+json"]), &json, None).0, "exact");
}

#[test]
fn values_of_errors_that_a_contract_does_not_take_are_losses() {
    let of = |bound: &str| {
        posted(
            "content: {application/json: {schema: {type: object}}}",
            "'204': {description: done}, '400': {description: bad, content: {application/json: {schema: {$ref: '#/components/schemas/Error'}}}}",
            &format!("Error: {{type: object, properties: {{message: {{type: string{bound}}}}}}}"),
        )
    };
    let lost = losses(&of(", maxLength: 80"), &of(""), None);
    let expected = vec!["v2 error body $.message: texts longer than 80 characters".to_owned()];
    assert_eq!(lost, ("different".to_owned(), expected));
    assert_eq!(losses(&of(""), &of(", maxLength: 80"), None).0, "exact");
}

#[test]
fn a_parameter_whose_default_differs_is_a_difference() {
    let of = |default: u8| document(&format!("{{type: integer, default: {default}}}"), "");
    let lost = losses(&of(10), &of(20), None);
    let expected = vec!["v1 query.size: left out: it means 10, and 20 on the other side".to_owned()];
    assert_eq!(lost, ("different".to_owned(), expected));
    assert_eq!(losses(&of(10), &of(10), None).0, "exact");
}

/// An element of a list that is encoded as one text must not contain the separator.
#[test]
fn a_list_in_one_text_takes_fewer_elements_than_one_in_several_parameters() {
    let of = |elements: &str, explode: bool| {
        let list = format!("schema: {{type: array, items: {{{elements}}}}}, explode: {explode}");
        document("{type: integer}", "").replace("schema: {type: integer}", &list)
    };
    let texts = |explode| of("type: string", explode);
    let (_, lost) = losses(&texts(true), &texts(false), None);
    assert_eq!(lost, ["v1 query.size: lists with an element that is empty or holds `,`"]);
    assert_eq!(losses(&texts(false), &texts(true), None).0, "exact");
    assert_eq!(losses(&of("type: integer", true), &of("type: integer", false), None).0, "exact");
}

/// A parameter that is a text of a media type is described by that.
#[test]
fn a_parameter_of_a_media_type_is_compared_by_it() {
    let of = |what: &str| document("{type: integer}", "").replace("schema: {type: integer}", what);
    let content = |kind: &str| of(&format!("content: {{application/json: {{schema: {{type: {kind}}}}}}}"));
    assert_eq!(losses(&content("object"), &content("object"), None).0, "exact");
    let lost = losses(&content("object"), &content("array"), None);
    let expected = r#"v1 query.size: values that `content` excludes"#;
    assert_eq!(lost, ("different".to_owned(), vec![expected.to_owned()]));
    assert_eq!(losses(&content("object"), &of("schema: {type: integer}"), None).0, "different");
}

#[test]
fn what_conversions_give_beyond_bounds_is_a_loss() {
    let note = |code: &str| {
        noted(&format!("{{type: object, properties: {{in: {{type: string}}, code: {{{code}}}}}}}"))
    };
    let routes = |conversion: &str| {
        POST.replace("same: [in]", &format!("same: [in], rename: {{code: {{v2: code, as: {conversion}}}}}"))
    };
    let (old, new) = (note("type: integer, enum: [7, 123]"), note("type: string, maxLength: 2"));
    let lost = losses(&old, &new, Some(&routes("integer_to_string")));
    assert_eq!(lost, ("different".to_owned(), vec!["v1 $.code: the value 123".to_owned()]));
    let lost = losses(&note("type: integer"), &new, Some(&routes("integer_to_string")));
    assert_eq!(lost.1, ["v1 $.code: texts longer than 2 characters"]);
    let (old, new) = (note("type: string, enum: [a, b]"), note("type: integer, maximum: 1"));
    let lost = losses(&old, &new, Some(&routes("{table: {a: 1, b: 2}}")));
    assert_eq!(lost.1, [r#"v1 $.code: the value "b""#]);
}

/// JSON of a name of its own is called so on either side.
#[tokio::test]
async fn json_under_another_name_keeps_its_name() {
    let of = |media: &str| {
        let content = format!("content: {{{media}: {{schema: {{type: object}}}}}}");
        posted(&format!("required: true, {content}"), &format!("'200': {{description: it, {content}}}"), "")
    };
    let folder = pack(&of("application/vnd.old+json"), &of("application/vnd.new+json"), None);
    let report = report(folder.path());
    assert_eq!(report["sides"][0]["exact"], 1);
    let service = Upstream::start(vec![Act::json(200, r#"{"id":"1"}"#)]).await;
    let (_program, gateway) = served(&folder, service.address).await;
    let request = "POST /v1/notes HTTP/1.1\r\nhost: g\r\nauthorization: Bearer token-of-a-client\r\ncontent-type: application/vnd.old+json\r\ncontent-length: 2\r\n\r\n{}";
    let got = exchange(gateway, request.to_owned()).await.expect("an answer");
    assert_eq!((got.status, got.text().as_str()), (200, r#"{"id":"1"}"#));
    assert_eq!(got.value("content-type"), "application/vnd.old+json");
    let seen = service.seen();
    let sent = |name: &str| seen[0].values(name);
    assert_eq!(
        (sent("content-type"), sent("accept")),
        (vec!["application/vnd.new+json"], vec!["application/vnd.new+json"])
    );
}

#[test]
fn a_shape_is_as_narrow_as_the_types_that_it_relates() {
    let note = |more: &str, default: &str| {
        noted(&format!("{{type: object, properties: {{in: {{type: integer{default}}}}}{more}}}"))
    };
    let lost = losses(&note("", ", default: 1"), &note(", minProperties: 1", ", default: 2"), Some(POST));
    let expected = [
        "v1 $.in: left out: it means 1, and 2 on the other side",
        "v1 $: values that `minProperties: 1` excludes",
    ];
    assert_eq!(lost, ("different".to_owned(), expected.map(str::to_owned).to_vec()));
    let equal = note(", minProperties: 1", ", default: 1");
    assert_eq!(losses(&equal, &equal, Some(POST)).0, "exact");
}

#[test]
fn a_member_that_one_side_has_in_one_message_alone_is_a_loss() {
    let both = "limit: {type: integer}";
    let read = "limit: {type: integer, readOnly: true}";
    let written = "limit: {type: integer, writeOnly: true}";
    for routes in [None, Some(PAIR)] {
        for (old, new, lost) in [
            (both, read, "v1 $.limit: read-only on the other side"),
            (both, written, "v1 $.limit: never in answers of the other side"),
        ] {
            let (old, new) = (document("{type: integer}", old), document("{type: integer}", new));
            assert_eq!(losses(&old, &new, routes), ("different".to_owned(), vec![lost.to_owned()]));
            // Clients cannot lose members that they do not have.
            assert_eq!(losses(&new, &old, routes), ("exact".to_owned(), Vec::new()));
        }
    }
}

/// An object of which the client's contract requires a member that no answer has is left out of answers.
#[test]
fn an_object_goes_with_the_member_that_it_requires() {
    let note = |access: &str| {
        let within = format!("most: {{type: integer{access}}}, least: {{type: integer}}");
        let bounds = format!(
            "bounds: {{type: object, additionalProperties: false, required: [most], properties: {{{within}}}}}"
        );
        document("{type: integer}", &bounds)
    };
    let (both, written) = (note(""), note(", writeOnly: true"));
    let routes = PAIR
        .replace("same: [limit]", "rename: {$.bounds.most: $.bounds.most, $.bounds.least: $.bounds.least}");
    let lost = vec!["v1 $.bounds: never in answers of the other side".to_owned()];
    assert_eq!(losses(&both, &written, Some(&routes)), ("different".to_owned(), lost));
}

#[test]
fn an_operation_with_a_loss_in_part_or_a_gap_where_nothing_is_found_is_not_exact() {
    let member = |ty: &str| document("{type: integer}", &format!("limit: {ty}"));
    // A default replaces an absent member, and is returned as if it had been present.
    let routes = PAIR.replace("same: [limit]", "rename: {limit: {v2: limit, default: {v2: 0}}}");
    let (verdict, lost) = losses(&member("{type: integer}"), &member("{type: integer}"), Some(&routes));
    assert_eq!((verdict.as_str(), lost.len()), ("different", 1), "{lost:?}");
}

/// An undeclared member under a name that the other side declares is not carried: a map promises to
/// take any name.
#[test]
fn a_map_loses_the_names_that_the_other_side_declares() {
    let old = document("{type: integer}", "limit: {type: integer}");
    let new = document("{type: integer}", "most: {type: integer}");
    let map = |text: &str| {
        text.replace("Note: {type: object,", "Note: {type: object, additionalProperties: {type: integer},")
    };
    let routes = PAIR.replace("same: [limit]", "rename: {limit: most}");
    assert_eq!(losses(&old, &new, Some(&routes)), ("exact".to_owned(), Vec::new()));
    let (verdict, lost) = losses(&map(&old), &map(&new), Some(&routes));
    assert_eq!(verdict, "different");
    assert_eq!(lost, ["v1 $.*: members named `most`", "v2 $.*: members named `limit`"]);
}

/// The messages of an example are checked against both contracts.
#[test]
fn an_example_that_breaks_a_contract_is_a_finding_at_its_place() {
    let text = document("{type: integer}", "limit: {type: integer}, kind: {type: string, enum: [a, b]}");
    let routes = PAIR.replace("same: [limit]", "same: [limit, kind]");
    let example = |request: &str, reply: &str, end: &str| {
        format!(
            "{routes}examples:\n  - at: v1 POST /notes/7\n    send: {{body: {request}}}\n    calls: [{{expect: POST /notes/7, body: {request}, reply: {{{reply}}}}}]\n    answer: {{{end}}}\n"
        )
    };
    let good = "{limit: 1, kind: a}";
    let whole = example(good, "200: {limit: 1}", "status: 200, body: {limit: 1}");
    for (name, routes, said) in [
        ("all of it", whole.clone(), None),
        (
            "the request",
            example("{limit: x}", "200: {limit: 1}", "status: 200, body: {limit: 1}"),
            Some("the request is not what `POST /notes/{id}` promises: `$.limit` should be a whole number"),
        ),
        (
            "the reply",
            example(good, "200: {kind: c}", "status: 200, body: {kind: c}"),
            Some("the reply is not what `POST /notes/{id}` promises: `$.kind` is none of the listed values"),
        ),
        (
            "a reply without its body",
            example(good, "200: empty", "status: 200, body: {limit: 1}"),
            Some("the reply is not what `POST /notes/{id}` promises: 200 has a body, and it is missing"),
        ),
        (
            "the address",
            whole.replace("v1 POST /notes/7", "v1 POST /notes/7?size=x"),
            Some("the parameter `size` is not what it should be"),
        ),
        // An incomplete reply leads to an error of the gateway, which is the subject of such an example.
        ("a broken reply", example(good, "200: {kind: 7}", "status: 502"), None),
    ] {
        let folder = pack(&text, &text, Some(&routes));
        let checked = run("check", folder.path(), &[]);
        let found =
            String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
        assert_eq!(checked.status.success(), said.is_none(), "{name}: {found}");
        assert!(said.is_none_or(|said| found.contains("M263") && found.contains(said)), "{name}: {found}");
    }
}

/// A redirect in both contracts is passed to the client if its address is usable.
#[tokio::test]
async fn a_declared_redirect_is_answered_as_it_comes() {
    let text = |status: &str| {
        format!(
            "openapi: 3.0.3
info: {{title: t, version: '1'}}
paths:
  /notes/{{id}}/file:
    get:
      parameters: [{{name: id, in: path, required: true, schema: {{type: string}}}}]
      responses:
        '200': {{description: it, content: {{application/json: {{schema: {{type: object}}}}}}}}
        '{status}': {{description: elsewhere}}
"
        )
    };
    let routes = "mapping: 1\nroutes:\n  - {pair: {v1: 'GET /notes/{id}/file', v2: 'GET /notes/{id}/file', front: v1}, response: keep}\n";
    let said = report(pack(&text("404"), &text("302"), Some(routes)).path());
    let operation = &said["sides"][0]["operations"][0];
    assert_eq!(operation["verdict"], "different");
    let differs = "302 of `GET /notes/{id}/file` is answered 502: `GET /notes/{id}/file` lists no 302";
    assert_eq!(operation["differs"], serde_json::json!([differs]));

    let folder = pack(&text("302"), &text("302"), Some(routes));
    assert_eq!(report(folder.path())["sides"][0]["operations"][0]["verdict"], "exact");
    let moved = |location: &str| {
        Act::Reply(
            format!("HTTP/1.1 302 X\r\nlocation: {location}\r\ncontent-type: text/html\r\ncontent-length: 3\r\n\r\n<p>")
                .into_bytes(),
        )
    };
    let service = Upstream::start(vec![
        moved("https://files.example.test/7?sign=a%2Fb"),
        moved("/v2/files/7"),
        moved("http://127.0.0.1:1/v2/files/7"),
    ])
    .await;
    let (_program, gateway) = served(&folder, service.address).await;
    for (status, location) in [(302, "https://files.example.test/7?sign=a%2Fb"), (502, ""), (502, "")] {
        let request =
            "GET /v1/notes/7/file HTTP/1.1\r\nhost: g\r\nauthorization: Bearer token-of-a-client\r\n\r\n";
        let got = exchange(gateway, request).await.expect("an answer");
        assert_eq!((got.status, got.values("location").join("").as_str()), (status, location));
        assert!(status == 502 || got.text().is_empty(), "{}", got.text());
    }
}

/// A document of `GET /notes` with these parameters, header fields of its 200 and of its 404.
fn listed(parameters: &str, found: &str, missing: &str) -> String {
    format!(
        "openapi: 3.0.3
info: {{title: t, version: '1'}}
paths:
  /notes:
    get:
      parameters: [{parameters}]
      responses:
        '200': {{description: it, headers: {{{found}}}, content: {{application/json: {{schema: {{type: object}}}}}}}}
        '404': {{description: none, headers: {{{missing}}}}}
"
    )
}

const LISTED: &str =
    "mapping: 1\nroutes:\n  - pair: {v1: GET /notes, v2: GET /notes, front: v1}\n    response: keep\n";

#[test]
fn cookies_and_fields_that_do_not_pass_are_losses() {
    let text = "{schema: {type: string}}";
    let cookie = "{name: s, in: cookie, schema: {type: string}}";
    let field = |name: &str| format!("{name}: {text}");
    for (old, new, lost) in [
        (listed(cookie, "", ""), listed(cookie, "", ""), "v1 cookie s of the request"),
        (
            listed("", &field("Set-Cookie"), ""),
            listed("", &field("Set-Cookie"), ""),
            "v1 header Set-Cookie of the answer: not passed on",
        ),
        (
            listed("", &field("Cache-Control"), ""),
            listed("", &field("Cache-Control"), ""),
            "v1 header Cache-Control of the answer: values that allow caching",
        ),
        // The field of one status does not apply to another.
        (
            listed("", "", &field("X-Why")),
            listed("", &field("X-Why"), ""),
            "v1 header X-Why of the answer 404: nothing on the other side fills it",
        ),
        (
            listed("", &field("X-Why"), ""),
            listed("", "", &field("X-Why")),
            "v1 header X-Why of the answer: nothing on the other side fills it",
        ),
    ] {
        assert_eq!(losses(&old, &new, Some(LISTED)), ("different".to_owned(), vec![lost.to_owned()]));
    }
    let alike = listed("", &field("Vary"), &field("X-Why"));
    assert_eq!(losses(&alike, &alike, Some(LISTED)), ("exact".to_owned(), Vec::new()));
}

/// The context has no cookies: reading one is an error, and a required one is sent as a constant.
#[tokio::test]
async fn a_required_cookie_is_a_constant() {
    let cookie = "{name: s, in: cookie, required: true, schema: {type: string}}";
    let document = listed(cookie, "", "");
    let checked = |line: &str| {
        let folder = pack(&document, &document, Some(&format!("{LISTED}    headers: {{request: {line}}}\n")));
        let checked = run("check", folder.path(), &[]);
        let said =
            String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
        (checked.status.success(), said, folder)
    };
    let (is_good, said, _) = checked("{}");
    assert!(!is_good && said.contains("M262") && said.contains("requires the cookie `s`"), "{said}");
    let (is_good, said, _) = checked("{Cookie: Cookie}");
    assert!(!is_good && said.contains("`Cookie` cannot be read"), "{said}");
    let (is_good, said, folder) = checked("{Cookie: {constant: {v2: s=1}}}");
    assert!(is_good, "{said}");
    let service = Upstream::start(vec![Act::json(200, "{}")]).await;
    let (_program, gateway) = served(&folder, service.address).await;
    let request = "GET /v1/notes HTTP/1.1\r\nhost: g\r\nauthorization: Bearer token-of-a-client\r\ncookie: s=secret\r\n\r\n";
    assert_eq!(exchange(gateway, request).await.expect("an answer").status, 200);
    assert_eq!(service.seen()[0].values("cookie"), ["s=1"]);
}
