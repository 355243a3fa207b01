//! Tests of routing, and of paths that must be rejected.

use super::path::segments;
use super::*;
use proptest::prelude::*;

/// Builds a router from lines `METHOD /template`. A variable `id` is an integer, and a variable
/// `key` may contain slashes.
fn router(operations: &[&str]) -> Router {
    let mut router = Router::default();
    for (at, operation) in operations.iter().enumerate() {
        let (method, template) = operation.split_once(' ').unwrap();
        let variables = template.split('/').filter(|segment| segment.starts_with('{'));
        let slot = |name| Slot {
            kind: if name == "{id}" { ParameterKind::Integer } else { ParameterKind::String },
            takes_slash: name == "{key}",
        };
        router.add(&method.parse().unwrap(), template, variables.map(slot).collect(), RouteId(at as u16));
    }
    router
}

fn notes() -> Router {
    router(&[
        "GET /notes",
        "GET /notes/{id}",
        "POST /notes/{kind}",
        "POST /notes/{id}/close",
        "GET /notes/recent",
        "PUT /notes/{id}",
        "POST /boxes/{box}/notes/{note}/move",
    ])
}

fn check(request: &str, expected: &str) {
    let (method, path) = request.split_once(' ').unwrap();
    let found = match notes().find(&method.parse().unwrap(), path) {
        Found::Route { route, values } => format!("{} {}", route.0, values.join(",")),
        Found::WrongMethod { allow } => format!("{allow:?}"),
        Found::NotFound => "none".into(),
        Found::Bad(error) => error.to_string(),
    };
    assert_eq!(found.trim_end(), expected, "{request}");
}

#[test]
fn a_request_finds_the_most_literal_route_that_fits() {
    check("GET /notes", "0");
    check("GET /notes/7", "1 7");
    check("HEAD /notes/7", "1 7");
    check("POST /notes/latest", "2 latest");
    check("POST /notes/7", "2 7");
    check("POST /notes/7/close", "3 7");
    check("GET /notes/recent", "4");
    check("GET /n%6ftes/recent", "4");
    check("POST /boxes/a%20b/notes/%C3%A9/move", "6 a b,é");
    check("POST /boxes/%252e/notes/x/move", "6 %2e,x");
}

#[test]
fn what_fits_no_route_is_not_found() {
    for path in ["/", "/other", "/notes/7/open", "/notes/7/close/x"] {
        check(&format!("GET {path}"), "none");
    }
    for id in ["seven", "7.0", "1e3", "07", "+7", "%2B7", "7%20", "-"] {
        check(&format!("GET /notes/{id}"), "none");
    }
    check("PUT /notes/-7", "5 -7");
}

#[test]
fn segments_that_are_variable_in_part_and_slashes_at_the_end() {
    let router = router(&[
        "GET /notes/{id}.json",
        "GET /notes/{name}",
        "GET /notes/{name}/",
        "GET /notes/{from}...{to}",
        "GET /notes/v{name}.tar.gz/x",
        "GET /notes/all.json",
        "GET /notes/",
    ]);
    let check = |path: &str, expected: &str| {
        let found = match router.find(&Method::GET, path) {
            Found::Route { route, values } => format!("{} {}", route.0, values.join(",")),
            Found::NotFound => "none".into(),
            other => format!("{other:?}"),
        };
        assert_eq!(found.trim_end(), expected, "{path}");
    };
    check("/notes/7.json", "0 7");
    check("/notes/all.json", "5");
    check("/notes/x.json", "0 x");
    check("/notes/%C3%A9...%C3%A9", "3 é,é");
    check("/notes/.json", "1 .json");
    check("/notes/a...b", "3 a,b");
    check("/notes/a...b...c", "3 a,b...c");
    check("/notes/...b", "1 ...b");
    check("/notes/a%20b...c", "3 a b,c");
    check("/notes/v1.tar.gz/x", "4 1");
    check("/notes/v1.tar.gz", "1 v1.tar.gz");
    check("/notes/a/", "2 a");
    check("/notes/", "6");
    check("/notes", "none");
    check("/notes/v1.tar.gz/x/", "none");
    check("/notes//", "Bad(EmptySegment)");
}

#[test]
fn another_method_is_told_the_right_ones() {
    check("DELETE /notes", "[GET, HEAD]");
    check("DELETE /notes/7", "[GET, HEAD, POST, PUT]");
    check("GET /notes/7/close", "[POST]");
    check("PUT /notes/recent", "none");
    check("DELETE /notes/recent", "[GET, HEAD, POST]");
}

#[test]
fn an_escaped_slash_is_part_of_a_variable_that_takes_one() {
    let router = router(&[
        "GET /files/{key}",
        "GET /files/{key}/parts/{part}",
        "GET /notes/{id}",
        "PUT /notes/{name}",
    ]);
    let found = |method: Method, path: &str| match router.find(&method, path) {
        Found::Route { route, values } => format!("{} {}", route.0, values.join(" ")),
        Found::Bad(error) => error.to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!(found(Method::GET, "/files/a%2Fb%2f.c"), "0 a/b/.c");
    assert_eq!(found(Method::GET, "/files/a%2Fb/parts/7"), "1 a/b 7");
    for (path, error) in [
        ("/files/a%2Fb/parts/7%2F8", "the path has an escaped slash or a backslash"),
        ("/notes/7%2F8", "the path has an escaped slash or a backslash"),
        ("/files/a%5Cb", "the path has an escaped slash or a backslash"),
        ("/files/a%2F..%2Fb", "the path has a dot segment"),
        ("/files/%2e%2Fb", "the path has a dot segment"),
        ("/files/a%2F%2Fb", "the path has an empty segment"),
        ("/files/%2Fb", "the path has an empty segment"),
    ] {
        assert_eq!(found(Method::GET, path), error, "{path}");
    }
}

#[test]
fn a_path_that_two_servers_could_read_differently_is_refused() {
    for (path, expected) in [
        ("", "the path does not begin with a slash"),
        ("notes", "the path does not begin with a slash"),
        ("//notes", "the path has an empty segment"),
        ("/notes/", "the path has an empty segment"),
        ("/notes//7", "the path has an empty segment"),
        ("/notes/./7", "the path has a dot segment"),
        ("/notes/../7", "the path has a dot segment"),
        ("/notes/%2e%2E/7", "the path has a dot segment"),
        ("/notes/.%2e/7", "the path has a dot segment"),
        ("/notes%2f7", "the path has an escaped slash or a backslash"),
        ("/notes/a%5Cb", "the path has an escaped slash or a backslash"),
        ("/notes/a\\b", "the path has an escaped slash or a backslash"),
        ("/notes/%00", "the path has a control character"),
        ("/notes/%0a", "the path has a control character"),
        ("/notes/%C2%85", "the path has a control character"),
        ("/notes/a\u{7f}", "the path has a control character"),
        ("/notes/%", "the path has a percent sign that escapes nothing"),
        ("/notes/%4", "the path has a percent sign that escapes nothing"),
        ("/notes/%zz", "the path has a percent sign that escapes nothing"),
        ("/notes/%ff", "the path has a character that is not allowed there"),
        ("/notes/é", "the path has a character that is not allowed there"),
        ("/notes/a b", "the path has a character that is not allowed there"),
        ("/notes/a\"b", "the path has a character that is not allowed there"),
    ] {
        check(&format!("GET {path}"), expected);
    }
}

#[test]
fn a_value_that_would_be_a_dot_segment_makes_no_address() {
    for value in ["", ".", ".."] {
        assert_eq!(encode_segment(value, &mut String::new()), Err(UnsafeSegment));
    }
}

proptest! {
    #[test]
    fn no_path_makes_the_router_panic(path in "[/a-z0-9%.\\\\é\u{0}]{0,20}") {
        let _ = notes().find(&Method::GET, &path);
    }

    #[test]
    fn any_value_becomes_one_harmless_segment(value in "\\PC*") {
        prop_assume!(!matches!(value.as_str(), "" | "." | ".."));
        let mut encoded = String::new();
        encode_segment(&value, &mut encoded).unwrap();
        prop_assert!(encoded.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~%".contains(&b)));
        prop_assert!(encoded != "." && encoded != "..");
        let back = percent_encoding::percent_decode_str(&encoded).decode_utf8().unwrap();
        prop_assert_eq!(back, value.as_str());
    }

    #[test]
    fn what_was_read_is_written_as_the_same_segment(value in "[^/\\\\\\p{C}]{1,12}") {
        prop_assume!(value != "." && value != "..");
        let mut path = String::from("/");
        encode_segment(&value, &mut path).unwrap();
        prop_assert_eq!(segments(&path).unwrap(), vec![value]);
    }
}

#[test]
fn an_account_is_taken_off_a_path_only_where_it_stands() {
    let under = |path| path::strip_prefix("/accounts/{account}", path);
    assert_eq!(under("/accounts/a%20b/notes/7"), Some(("a b".into(), "/notes/7")));
    for path in
        ["/accounts/7", "/accounts", "/accounts//notes", "/accounts/../notes", "/account/7/notes", "/notes/7"]
    {
        assert_eq!(under(path), None, "{path}");
    }
}

#[test]
fn what_may_climb_above_the_prefix_is_seen_however_it_is_written() {
    for path in [
        "",
        "/",
        "//",
        "/a//b/",
        "/a/../b",
        "/a/b/../..",
        "/%41/.%2e/b",
        "/a/..;x=1",
        "/...",
        "/a/%2e",
        "/%",
        "/a;b/c",
    ] {
        assert!(path::stays_below(path), "{path}");
    }
    for path in [
        "/..",
        "/../b",
        "/a/../..",
        "/%2e%2E/b",
        "/.%2e",
        "//..",
        "/a//../..",
        "/..;x/b",
        "/..%2fb",
        "/a/..%5c..%5cb",
        "/\\..\\b",
        "/./..",
    ] {
        assert!(!path::stays_below(path), "{path}");
    }
}
