//! Validates a body against the contract's requirements on its root before it is translated.

use super::condition::kind_of;
use super::error::{Cause, kind_name};
use switchback_json::Value;
use switchback_json::raw::Kind;
use switchback_json::reader::is_blank;
use switchback_plan::{Expected, Kinds, Root};

/// The state of checking a body's root. The body may be split anywhere.
#[derive(Clone, Copy, Debug)]
pub(super) enum RootCheck {
    /// The value has not started.
    Value(Root),
    /// An object has started and must have a member.
    Members,
    Done,
}

impl RootCheck {
    pub(super) fn new(root: Root) -> RootCheck {
        if root == Root::ANY { RootCheck::Done } else { RootCheck::Value(root) }
    }

    /// Checks the next bytes. Syntax errors are left to the parser.
    #[inline(always)]
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Result<(), Cause> {
        // Almost all chunks arrive after the check, so only this test is inlined.
        if matches!(self, RootCheck::Done) { Ok(()) } else { self.begin(chunk) }
    }

    #[cold]
    fn begin(&mut self, chunk: &[u8]) -> Result<(), Cause> {
        for byte in chunk.iter().filter(|byte| !is_blank(**byte)) {
            match *self {
                RootCheck::Value(root) => {
                    let Some(found) = Kind::of_first_byte(*byte) else {
                        *self = RootCheck::Done;
                        return Ok(());
                    };
                    if !root.kinds.contains(found) {
                        return Err(Cause::Kind { expected: first_of(root.kinds), found });
                    }
                    *self = match found == Kind::Object && root.members {
                        true => RootCheck::Members,
                        false => RootCheck::Done,
                    };
                }
                RootCheck::Members => {
                    *self = RootCheck::Done;
                    return if *byte == b'}' { Err(Cause::NoMembers) } else { Ok(()) };
                }
                RootCheck::Done => return Ok(()),
            }
        }
        Ok(())
    }
}

/// Checks a complete body.
pub(super) fn check_root(root: Root, body: &[u8]) -> Result<(), Cause> {
    RootCheck::new(root).feed(body)
}

/// Returns the type to name in error messages.
fn first_of(kinds: Kinds) -> Kind {
    let all = [Kind::Object, Kind::Array, Kind::String, Kind::Number, Kind::Bool];
    all.into_iter().find(|kind| kinds.contains(*kind)).unwrap_or(Kind::Null)
}

/// Returns a log message if a value violates the contract's guarantee, otherwise `None`. The
/// message contains names and types only.
pub(super) fn broken_promise(value: &Value, expected: &Expected) -> Option<String> {
    let found = kind_of(value);
    if !expected.kinds.contains(found) {
        return Some(format!("expected {}, found {}", kind_name(first_of(expected.kinds)), kind_name(found)));
    }
    let Value::Object(object) = value else { return None };
    let has_some = expected.members.iter().any(|name| object.get(&name.text).is_some());
    if let Some(first) = expected.members.first().filter(|_| !has_some) {
        let name = &first.text;
        return Some(format!(
            "an object without any of the members that its contract requires, such as `{name}`"
        ));
    }
    let lacking = expected.needed.iter().find(|name| object.get(&name.text).is_none())?;
    Some(format!("an object without `{}`, which its contract requires and a write is made of", lacking.text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_json::Limits;
    use switchback_plan::Key;

    #[test]
    fn the_beginning_of_a_body_tells_its_kind_and_whether_it_has_members_wherever_it_is_cut() {
        let object = Root { kinds: Kinds::from_kinds(&[Kind::Object]), members: true };
        let list = Root { kinds: Kinds::from_kinds(&[Kind::Array, Kind::Null]), members: false };
        for (root, body, fits) in [
            (object, r#" {"a":1}"#, true),
            (object, " { \n } ", false),
            (object, "null", false),
            (object, "[{}]", false),
            (object, "", true),
            (object, "<html>", true),
            (list, " [ ]", true),
            (list, "null", true),
            (list, "{}", false),
            (Root::ANY, "{}", true),
        ] {
            assert_eq!(check_root(root, body.as_bytes()).is_ok(), fits, "{body:?}");
            let mut check = RootCheck::new(root);
            let bytes = body.as_bytes().chunks(1);
            assert_eq!(bytes.map(|byte| check.feed(byte)).all(|fed| fed.is_ok()), fits, "{body:?} in bytes");
        }
    }

    #[test]
    fn a_promise_is_of_the_kind_and_of_members_and_of_no_values() {
        let object = Expected {
            kinds: Kinds::from_kinds(&[Kind::Object]),
            members: vec![Key::new("id"), Key::new("name")],
            needed: Vec::new(),
        };
        let written = Expected { needed: vec![Key::new("name")], ..object.clone() };
        let list =
            Expected { kinds: Kinds::from_kinds(&[Kind::Array]), members: Vec::new(), needed: Vec::new() };
        let lacks = Some("an object without any of the members that its contract requires, such as `id`");
        for (expected, json, why) in [
            (&object, r#"{"id":null,"more":1}"#, None),
            (&object, r#"{"name":7}"#, None),
            (&object, "null", Some("expected an object, found null")),
            (&object, "{}", lacks),
            (&object, r#"{"ok":true}"#, lacks),
            (&written, r#"{"id":7,"name":null}"#, None),
            (
                &written,
                r#"{"id":7}"#,
                Some("an object without `name`, which its contract requires and a write is made of"),
            ),
            (&list, "[null]", None),
            (&list, "{}", Some("expected an array, found an object")),
        ] {
            let value = Value::parse(json.as_bytes(), &Limits::DOCUMENT).expect("the test writes JSON");
            assert_eq!(broken_promise(&value, expected).as_deref(), why, "{json}");
        }
    }
}
