//! Targets of the requests that read back the effect of a write.

use super::pack::{EDIT, at, pack};
use super::testing::origin;
use super::*;
use bytes::Bytes;
use switchback_plan::{PathPart, ReadBack};

/// Returns the target `/notes/` followed by these values, after a write to note 7 with this body
/// and this answer.
fn address(parts: Vec<PathPart>, body: &str, answer: &str) -> Option<String> {
    let pack = pack();
    let route = &pack.directions[0].routes[EDIT];
    let path = [PathPart::Literal("/notes/".into())].into_iter().chain(parts).collect();
    let declared =
        ReadBack { operation: "GET /notes/{id}".into(), path, shows: Vec::new(), origin: origin() };
    let settings = Settings::new(&pack, &Value::Object(switchback_json::Object::new())).unwrap();
    let body = Bytes::copy_from_slice(body.as_bytes());
    let request = Request { path: vec!["7".to_owned()], body, ..Request::default() };
    let body = (!answer.is_empty()).then(|| Bytes::copy_from_slice(answer.as_bytes()));
    let mut answer = Answer { status: 201, body, ..Answer::default() };
    answer.headers.insert("x-made", "m9".parse().unwrap());
    answer.headers.insert("x-token", "secret".parse().unwrap());
    read_back(&pack, route, &declared, &request, &answer, &settings)
}

fn of(place: &str, body: &str, answer: &str) -> Option<String> {
    address(vec![PathPart::Value(at(place))], body, answer)
}

#[test]
fn it_is_made_of_the_path_the_request_and_the_answer() {
    assert_eq!(address(vec![PathPart::Variable(0)], "", "").as_deref(), Some("/notes/7"));
    assert_eq!(of("$.request.path.id", "", "").as_deref(), Some("/notes/7"));
    assert_eq!(of("$.request.body.name", r#"{"name":"a b"}"#, "").as_deref(), Some("/notes/a%20b"));
    // A large number is not rounded.
    let made = r#"{"id":9007199254740993}"#;
    assert_eq!(of("$.answer.body.id", "", made).as_deref(), Some("/notes/9007199254740993"));
    assert_eq!(of("$.answer.headers.x-made", "", "").as_deref(), Some("/notes/m9"));
}

#[test]
fn without_what_it_is_made_of_there_is_none() {
    for (place, body, answer) in [
        ("$.answer.body.id", "", ""),
        ("$.answer.body.id", "", "{}"),
        ("$.answer.body.id", "", r#"{"id":null}"#),
        ("$.answer.body.id", "", r#"{"id":[1]}"#),
        ("$.answer.body.id", "", "no JSON"),
        ("$.request.body.name", "", ""),
        // Credentials must not become part of a target.
        ("$.answer.headers.x-token", "", ""),
    ] {
        assert_eq!(of(place, body, answer), None, "{place} of {body} and {answer}");
    }
}

#[test]
fn no_value_leads_to_another_address() {
    assert_eq!(
        of("$.answer.body.id", "", r#"{"id":"8/../../others"}"#).as_deref(),
        Some("/notes/8%2F..%2F..%2Fothers")
    );
    for escape in [r#"{"id":".."}"#, r#"{"id":""}"#] {
        assert_eq!(of("$.answer.body.id", "", escape), None, "{escape}");
    }
}
